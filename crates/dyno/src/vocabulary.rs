//! The words a study may use, from the catalogs of products and workloads.

use std::sync::Arc;

use dyno_database::{Endpoint, Protocol};
use dyno_study::{
    Frame, OptionWord, Options, Product, ProductWord, RoleOutline, StepOutline, ValueKind,
    Vocabulary, WorkloadRules, WorkloadWord,
};
use dyno_units::Seed;
use dyno_workload::options::{OptionKind, OptionSpec};
use dyno_workload::{Dialect, Pacing, Role, StepFrame, Workload};

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
                default: default(option),
                help: option.help.to_owned(),
            })
            .collect(),
        rules: Some(Arc::new(Rules { workload: workload.name })),
    });
    Vocabulary {
        products: products.collect(),
        workloads: workloads.collect(),
        refused_setting: Some(dyno_database::refused_setting),
    }
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

/// The default as a study would write it: switches are `on` or `off`.
fn default(option: &OptionSpec) -> String {
    match (option.kind, option.default) {
        (OptionKind::Switch, "on" | "true" | "yes" | "1") => "on".to_owned(),
        (OptionKind::Switch, _) => "off".to_owned(),
        (_, default) => default.to_owned(),
    }
}

/// Asks a workload of the catalog.
#[derive(Debug)]
struct Rules {
    workload: &'static str,
}

impl Rules {
    /// The workload with these options. What it says does not depend on its data, nor on the seed.
    fn make(&self, options: &Options) -> Result<Arc<dyn Workload>, String> {
        let spec = dyno_workload::catalog::find(self.workload)
            .ok_or_else(|| format!("there is no workload `{}`", self.workload))?;
        spec.create(options, Seed(0)).map_err(|error| error.to_string())
    }
}

impl WorkloadRules for Rules {
    fn steps(&self, options: &Options, frame: &Frame) -> Result<Vec<StepOutline>, String> {
        let frame = StepFrame { clients: frame.clients as usize, duration: frame.duration };
        let steps = self.make(options)?.steps(&frame)?;
        let outline = |step: dyno_workload::OwnStep| StepOutline {
            roles: step.roles.iter().map(role).collect(),
            name: step.name,
            limit: step.limit,
            settle: step.settle,
        };
        Ok(steps.into_iter().map(outline).collect())
    }

    fn check_load(&self, options: &Options, is_open: bool) -> Result<(), String> {
        self.make(options)?.check_load(is_open)
    }

    fn check(&self, options: &Options, product: &Product) -> Result<(), String> {
        if let Product::Url(url) = product
            && !url.contains("${")
        {
            Endpoint::from_url(url).map_err(|error| error.0)?;
        }
        match dialect(product) {
            Some(dialect) => {
                let workload = self.make(options)?;
                if workload.needs_rows()
                    && let Product::Private(name) = product
                    && name.starts_with("null-")
                {
                    return Err(format!(
                        "`{}` goes on with rows that it reads, and a null server stores none; take \
                         another workload or database",
                        self.workload
                    ));
                }
                workload.check(dialect)
            }
            // Simulated, or a URL of which the environment tells a part.
            None => Ok(()),
        }
    }
}

fn role(role: &Role) -> RoleOutline {
    RoleOutline {
        name: role.name.to_owned(),
        clients: role.clients as u64,
        rate: match role.pacing {
            Pacing::Closed => None,
            Pacing::Constant { rate } | Pacing::Poisson { rate } => Some(rate),
            Pacing::Bursts { per_burst } => Some(per_burst as f64),
        },
        quota: role.quota,
    }
}

/// The SQL that a product speaks, where that is known before it runs.
fn dialect(product: &Product) -> Option<Dialect> {
    match product {
        Product::Private(name) => match name.as_str() {
            "sqlite" => Some(Dialect::Sqlite),
            "mariadb" | "null-mysql" => Some(Dialect::MySql),
            "postgresql" | "null-postgresql" => Some(Dialect::PostgreSql),
            _ => None,
        },
        Product::Url(url) => match Endpoint::from_url(url).ok()?.protocol {
            Protocol::MySql => Some(Dialect::MySql),
            Protocol::PostgreSql => Some(Dialect::PostgreSql),
        },
    }
}
