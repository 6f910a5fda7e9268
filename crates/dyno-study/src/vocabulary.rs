//! The words a study file may use, handed in by whoever knows the products and the workloads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dyno_model::{DefinitionProblem, OptionSpec, StepRequest, WorkloadStep};

use crate::Product;

/// All products and workloads that exist.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    pub products: Vec<ProductWord>,
    /// What `behind` may name.
    pub routers: Vec<RouterWord>,
    /// Why it may lack a product that other builds of Dyno have; none in a whole build.
    pub left_out: Option<&'static str>,
    pub filesystems: Vec<String>,
    /// Where programs may come from that a `[database.…]` table asks for with `from`.
    pub sources: Vec<String>,
    /// Probes that `probes_off` may name, as the readings of their cost do (`probes.NAME.read_ms`).
    pub probes: Vec<String>,
    pub workloads: Vec<WorkloadWord>,
    /// What products say of settings; none where nobody can be asked.
    pub setting_rules: Option<Arc<dyn SettingRules>>,
}

impl Vocabulary {
    pub(crate) fn product(&self, name: &str) -> Option<&ProductWord> {
        self.products.iter().find(|word| word.name == name)
    }

    pub(crate) fn router(&self, name: &str) -> Option<&RouterWord> {
        self.routers.iter().find(|word| word.name == name)
    }

    pub(crate) fn workload(&self, name: &str) -> Option<&WorkloadWord> {
        self.workloads.iter().find(|word| word.name == name)
    }

    pub(crate) fn is_embedded(&self, product: &str) -> bool {
        self.product(product).is_some_and(|word| word.is_embedded)
    }
}

/// What products say of settings before a server runs.
pub trait SettingRules: fmt::Debug + Send + Sync {
    /// Why a product that Dyno starts must not have a setting; none if it may.
    fn refused(&self, product: &str, setting: &str) -> Option<String>;

    /// Why a setting of the machine's kernel cannot have a value; none if it can.
    fn refused_of_kernel(&self, _setting: &str, _value: &str) -> Option<String> {
        None
    }
}

#[derive(Clone, Debug)]
pub struct ProductWord {
    pub name: String,
    pub summary: String,
    /// Storage engines that `engine` may name, or none where the product has just one.
    pub engines: Vec<String>,
    /// Whether Dyno runs it inside its own process (then it has no URL, no programs, no version to
    /// choose).
    pub is_embedded: bool,
    pub replicates: bool,
    /// The kind of cluster that its servers can form; none if they cannot.
    pub cluster: Option<String>,
    pub has_shards: bool,
    pub has_images: bool,
    /// Whether its servers can be started on other hosts.
    pub can_be_open: bool,
    /// Whether other processes can connect to it although it runs inside Dyno's own.
    pub has_socket: bool,
    /// Names that are mistaken for it, in lower case, each with what to write instead.
    pub confused_names: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub struct RouterWord {
    pub name: String,
    /// Its name among the members of a deployment.
    pub member: String,
    pub fronts: Vec<String>,
    pub options: Vec<OptionSpec>,
    /// Names of other programs for the same purpose, in lower case, each with what to say of it.
    pub confused_names: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub struct WorkloadWord {
    pub name: String,
    pub summary: String,
    pub options: Vec<OptionSpec>,
    /// What it says once its options are known; none where nobody can be asked.
    pub rules: Option<Arc<dyn WorkloadRules>>,
}

pub type Planned = Result<Arc<dyn PlannedWorkload>, String>;

/// What a workload says of itself. Pure: no table is made for it.
pub trait WorkloadRules: fmt::Debug + Send + Sync {
    /// The workload with these options.
    ///
    /// # Errors
    ///
    /// Why it cannot run with these options and so many clients, and what to do.
    fn plan(&self, options: &Options, request: StepRequest) -> Planned;

    /// All that is wrong with what a study declares of it.
    fn problems(&self, _options: &Options) -> Vec<DefinitionProblem> {
        Vec::new()
    }

    /// Whether a URL names a server that it can use.
    ///
    /// # Errors
    ///
    /// Why not, and what to do.
    fn check_url(&self, _url: &str) -> Result<(), String> {
        Ok(())
    }
}

/// What a workload says once its options are known. The errors of its checks are why not, and what to do.
pub trait PlannedWorkload {
    /// The steps that the workload itself defines, in their order; none where the load levels of
    /// the study are its steps.
    fn steps(&self) -> &[WorkloadStep];

    /// Whether it can run under such a load: open (a rate), or closed.
    fn check_load(&self, _is_open: bool) -> Result<(), String> {
        Ok(())
    }

    /// Whether its clients can run in several processes.
    fn check_apart(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether it only reads, so that its clients can connect to replicas.
    fn check_reads(&self, _product: &Product) -> Result<(), String> {
        Ok(())
    }

    /// Whether it can run on this product. Asked only of a URL that is right.
    fn check(&self, product: &Product) -> Result<(), String>;
}

/// Options of a workload by name, as text; those that are not given have their defaults.
pub type Options = BTreeMap<String, String>;
