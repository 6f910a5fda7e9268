//! Reads `behind`: what stands in front of a database.

use dyno_model::OptionSpec;

use super::problems::Problems;
use super::table::RawTable;
use super::workload::option_text;
use crate::nearest::did_you_mean;
use crate::vocabulary::{ProductWord, RouterWord, Vocabulary};
use crate::{Behind, Diagnostic, FieldValue, Table};

const BEHIND: &str = "behind";

const PRODUCT: &str = "product";

/// Checks what stands in front of a product that Dyno starts, and puts its options into `table` as the router
/// reads them.
pub(super) fn check(
    problems: &mut Problems,
    raw: &RawTable<'_>,
    product: &ProductWord,
    vocabulary: &Vocabulary,
    table: &mut Table,
) {
    let Some((_, first)) = raw.named(BEHIND).next() else { return };
    let Some(name) = raw.entry(&field(PRODUCT)) else {
        let known = vocabulary.routers.iter().map(|router| router.name.as_str());
        problems.add(
            Diagnostic::new(first.key_span.clone(), "`behind` names no product")
                .with_label("no `product`")
                .with_help(format!("add product = \"…\", one of {}", listed(known))),
        );
        return;
    };
    let Some(router) = router(problems, raw, vocabulary) else { return };
    if !router.fronts.contains(&product.name) {
        let fronts = listed(router.fronts.iter().map(String::as_str));
        problems.add(
            Diagnostic::new(
                name.span.clone(),
                format!("`{}` cannot be placed in front of `{}`", router.name, product.name),
            )
            .with_label(format!("it speaks the protocol of {fronts}"))
            .with_help(format!("leave `behind` out, or choose {fronts}")),
        );
    }
    for (option, given) in raw.named(BEHIND).filter(|(option, _)| *option != PRODUCT) {
        match router.options.iter().find(|known| known.name == option) {
            None => problems.add(unknown(router, option, given.key_span.clone())),
            Some(known) => {
                let text = option_text(problems, given, known);
                let text = text.map(|text| (field(option), FieldValue::Text(text)));
                table.fields.extend(text);
            }
        }
    }
}

fn router<'v>(
    problems: &mut Problems,
    raw: &RawTable<'_>,
    vocabulary: &'v Vocabulary,
) -> Option<&'v RouterWord> {
    let given = raw.entry(&field(PRODUCT))?;
    let text = given.value.as_str().unwrap_or_default();
    let found = vocabulary.routers.iter().find(|router| router.name == text);
    if found.is_none() {
        let known = vocabulary.routers.iter().map(|router| router.name.as_str());
        let lower = text.to_ascii_lowercase();
        let mut confused = vocabulary.routers.iter().flat_map(|router| &router.confused_names);
        let confused = confused.find(|(word, _)| *word == lower).map(|(_, hint)| hint.clone());
        problems.add(
            Diagnostic::new(given.span.clone(), format!("no pooler or proxy is named `{text}`"))
                .with_label("not known to Dyno")
                .with_help(confused.unwrap_or_else(|| did_you_mean(text, known))),
        );
    }
    found
}

fn unknown(router: &RouterWord, option: &str, span: std::ops::Range<usize>) -> Diagnostic {
    let names = |option: &'_ OptionSpec| option.name.clone().into_owned();
    let names: Vec<String> = router.options.iter().map(names).collect();
    let names = names.iter().map(String::as_str);
    Diagnostic::new(span, format!("`{}` has no option `{option}`", router.name))
        .with_label("unknown option")
        .with_help(did_you_mean(option, names.chain([PRODUCT])))
}

pub(super) fn of(table: &Table) -> Option<Behind> {
    let fields = table.fields.iter();
    let mut options: std::collections::BTreeMap<String, String> = fields
        .filter_map(|(name, value)| {
            let option = name.strip_prefix(BEHIND)?.strip_prefix('.')?;
            Some((option.to_owned(), value.to_string()))
        })
        .collect();
    let product = options.remove(PRODUCT)?;
    Some(Behind { product, options })
}

fn field(option: &str) -> String {
    format!("{BEHIND}.{option}")
}

fn listed<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}
