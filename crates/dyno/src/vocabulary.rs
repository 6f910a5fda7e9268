//! The words a study may use, from the catalogs of products and workloads.

use dyno_study::{OptionWord, ProductWord, ValueKind, Vocabulary, WorkloadWord};
use dyno_workload::options::OptionKind;

/// All products and workloads of this Dyno.
pub(crate) fn vocabulary() -> Vocabulary {
    let products = dyno_lab::products().into_iter().map(|product| ProductWord {
        name: product.name.to_owned(),
        summary: product.summary.to_owned(),
        engines: product.engines.iter().map(|&engine| engine.to_owned()).collect(),
        is_embedded: product.is_embedded,
    });
    let workloads = dyno_workload::catalog::workloads().into_iter().map(|workload| WorkloadWord {
        name: workload.name.to_owned(),
        summary: workload.summary.to_owned(),
        options: workload
            .options
            .iter()
            .map(|option| OptionWord {
                name: option.name.to_owned(),
                kind: kind(option.kind),
                default: option.default.to_owned(),
                help: option.help.to_owned(),
            })
            .collect(),
    });
    Vocabulary { products: products.collect(), workloads: workloads.collect() }
}

fn kind(kind: OptionKind) -> ValueKind {
    match kind {
        OptionKind::Count => ValueKind::Count,
        OptionKind::Real => ValueKind::Real,
        OptionKind::Switch => ValueKind::Switch,
        OptionKind::Word(words) => {
            ValueKind::Word(words.iter().map(|&word| word.to_owned()).collect())
        }
    }
}
