//! The words a study file may use, handed in by whoever knows the products and the workloads.

/// All products and workloads that exist.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// Products a `[database.…]` table may name.
    pub products: Vec<ProductWord>,
    /// Workloads a `[workload.…]` table may name.
    pub workloads: Vec<WorkloadWord>,
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
