//! The words a study file may use, handed in by whoever knows the products and the workloads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dyno_units::Nanoseconds;

use crate::Product;

/// All products and workloads that exist.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// Products a `[database.…]` table may name.
    pub products: Vec<ProductWord>,
    /// Workloads a `[workload.…]` table may name.
    pub workloads: Vec<WorkloadWord>,
    /// What products say of settings; none where nobody can be asked.
    pub setting_rules: Option<Arc<dyn SettingRules>>,
}

/// What products say of settings before a server runs.
pub trait SettingRules: fmt::Debug + Send + Sync {
    /// Why a product that Dyno starts must not have a setting; none if it may.
    fn refused(&self, product: &str, setting: &str) -> Option<String>;
}

/// A product.
#[derive(Clone, Debug)]
pub struct ProductWord {
    /// Its name in study files.
    pub name: String,
    /// One sentence.
    pub summary: String,
    /// Storage engines that `engine` may name, or none where the product has just one.
    pub engines: Vec<String>,
    /// Whether Dyno runs it inside its own process (then it has no URL, no programs, no version to
    /// choose).
    pub is_embedded: bool,
}

/// A workload.
#[derive(Clone, Debug)]
pub struct WorkloadWord {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub summary: String,
    /// Its options.
    pub options: Vec<OptionWord>,
    /// What it says once its options are known; none where nobody can be asked.
    pub rules: Option<Arc<dyn WorkloadRules>>,
}

/// What a workload says of itself once its options are known. Pure: no table is made for it.
pub trait WorkloadRules: fmt::Debug + Send + Sync {
    /// The steps that the workload itself defines, in their order; none where the load levels of
    /// the study are its steps.
    ///
    /// # Errors
    ///
    /// Why it cannot run with these options and so many clients, and what to do.
    fn steps(&self, options: &Options, frame: &Frame) -> Result<Vec<StepOutline>, String>;

    /// Whether it can run with these options under such a load: open (a rate), or closed.
    ///
    /// # Errors
    ///
    /// Why not, and what to do.
    fn check_load(&self, options: &Options, is_open: bool) -> Result<(), String> {
        let _ = (options, is_open);
        Ok(())
    }

    /// Whether it can run on this product with these options.
    ///
    /// # Errors
    ///
    /// Why not, and what to do.
    fn check(&self, options: &Options, product: &Product) -> Result<(), String>;
}

/// Options of a workload by name, as text; those that are not given have their defaults.
pub type Options = BTreeMap<String, String>;

/// What a study says to a workload that defines its own steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Clients, as the workload counts them.
    pub clients: u64,
    /// Length of the steps that end by time.
    pub duration: Nanoseconds,
}

/// A step that a workload defines, as far as a plan needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepOutline {
    /// Its name: `l.i0`, `q100`.
    pub name: String,
    /// Who does what in it, at the same time.
    pub roles: Vec<RoleOutline>,
    /// Its longest time; just its time where it does not end by quota.
    pub limit: Nanoseconds,
    /// Longest wait before it for the engine to pay its debt; zero for none.
    pub settle: Nanoseconds,
}

/// Clients of a step that do the same thing.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleOutline {
    /// `inserter`, `deleter`, `query`.
    pub name: String,
    /// How many of them, each with a connection of its own.
    pub clients: u64,
    /// Transactions per second that each of them offers; none where one follows the other.
    pub rate: Option<f64>,
    /// Transactions that each of them has to commit; none to go on until the step ends.
    pub quota: Option<u64>,
}

impl StepOutline {
    /// Connections of all roles.
    pub fn connections(&self) -> u64 {
        self.roles.iter().map(|role| role.clients).sum()
    }

    /// Whether it ends when something is done, rather than by time.
    pub fn ends_by_quota(&self) -> bool {
        self.roles.iter().any(|role| role.quota.is_some())
    }
}

impl fmt::Display for RoleOutline {
    /// Writes `4 × inserter at 100/s until 5000 done`; rate and quota are those of each.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} × {}", self.clients, self.name)?;
        if let Some(rate) = self.rate {
            write!(out, " at {rate}/s")?;
        }
        match self.quota {
            Some(quota) => write!(out, " until {quota} done"),
            None => Ok(()),
        }
    }
}

/// An option of a workload.
#[derive(Clone, Debug)]
pub struct OptionWord {
    /// Its name.
    pub name: String,
    /// What its value is.
    pub kind: ValueKind,
    /// Its value when it is not given, as text.
    pub default: String,
    /// One sentence.
    pub help: String,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A whole number; as text also `"20M"`.
    Count,
    /// A number.
    Real,
    /// `true`, `false`, `"on"`, `"off"`.
    Switch,
    /// One of these words.
    Word(Vec<String>),
}
