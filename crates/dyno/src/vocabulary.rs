//! The words a study may use, from the catalogs of products and workloads.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use dyno_database::{Endpoint, ProductSpec, Products};
use dyno_study::{
    Frame, OptionWord, Options, Product, ProductWord, RoleOutline, SettingRules, StepOutline,
    ValueKind, Vocabulary, WorkloadRules, WorkloadWord,
};
use dyno_units::Seed;
use dyno_workload::options::{OptionKind, OptionSpec};
use dyno_workload::{Dialect, Pacing, Role, StepFrame, Workload};

/// All products and workloads of this Dyno.
pub(crate) fn vocabulary() -> Vocabulary {
    vocabulary_of(&dyno_lab::products())
}

/// These products, and all workloads of this Dyno.
fn vocabulary_of(products: &Products) -> Vocabulary {
    let product = |product: &ProductSpec| ProductWord {
        name: product.name.clone(),
        summary: product.summary.clone(),
        engines: product.engines.clone(),
        is_embedded: product.is_embedded,
    };
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
        rules: Some(Arc::new(Rules {
            workload: workload.name,
            products: products.clone(),
            last: Mutex::new(None),
        })),
    });
    Vocabulary {
        products: products.specs().map(product).collect(),
        workloads: workloads.collect(),
        setting_rules: Some(Arc::new(Settings(products.clone()))),
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

/// Asks the products about settings.
#[derive(Debug)]
struct Settings(Products);

impl SettingRules for Settings {
    fn refused(&self, product: &str, setting: &str) -> Option<String> {
        self.0.refused_setting(product, setting)
    }
}

/// Asks a workload of the catalog.
struct Rules {
    workload: &'static str,
    products: Products,
    /// The workload that was made last, with its options: each is asked several things, and a study may
    /// have very many of them.
    last: Mutex<Option<(Options, Arc<dyn Workload>)>>,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("workload", &self.workload).finish_non_exhaustive()
    }
}

impl Rules {
    /// The workload with these options. What it says does not depend on its data, nor on the seed.
    fn make(&self, options: &Options) -> Result<Arc<dyn Workload>, String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, workload)) = &*last
            && known == options
        {
            return Ok(Arc::clone(workload));
        }
        let spec = dyno_workload::catalog::find(self.workload)
            .ok_or_else(|| format!("there is no workload `{}`", self.workload))?;
        let workload = spec.create(options, Seed(0)).map_err(|error| error.to_string())?;
        *last = Some((options.clone(), Arc::clone(&workload)));
        Ok(workload)
    }

    /// The SQL that a product speaks, where that is known before it runs.
    fn dialect(&self, product: &Product) -> Option<Dialect> {
        match product {
            Product::Private(name) => self.products.spec(name)?.dialect,
            Product::Url(url) => Some(Endpoint::from_url(url).ok()?.protocol.spec().dialect),
        }
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
        match self.dialect(product) {
            Some(dialect) => {
                let workload = self.make(options)?;
                if workload.needs_rows()
                    && let Product::Private(name) = product
                    && self.products.spec(name).is_some_and(|product| !product.stores_data)
                {
                    return Err(format!(
                        "`{}` works on rows that it has read, and `{name}` stores none; choose \
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
