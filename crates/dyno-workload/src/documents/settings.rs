//! Checked options of the workload `documents`.

use dyno_model::{OptionError, OptionSpec};

use crate::options::{Options, refuse, within};
use crate::sysbench::distribution::{self, Distribution, DistributionSpec};

/// Longest content, in bytes: MongoDB takes documents of 16 MiB, fields and names included.
const CONTENT_MAX: u64 = 15 << 20;

/// Most documents: the sum of all numbers must fit in 64 bits.
const DOCUMENTS_MAX: u64 = 1_000_000_000;

/// Longest range, so that an answer is one batch of bounded size.
const RANGE_MAX: u64 = 10_000;

/// Most bytes of content in the answer to a range.
const ANSWER_MAX: u64 = 16 << 20;

pub(super) fn options() -> Vec<OptionSpec> {
    let mut options = vec![
        OptionSpec::count("documents", "100k", "documents in the collection before the load")
            .within(1, DOCUMENTS_MAX),
        OptionSpec::size("document_size", "1KiB", "bytes of a document's content"),
        OptionSpec::real(
            "find_weight",
            "70",
            "weight of operations that find a document by its key",
        ),
        OptionSpec::real(
            "update_weight",
            "20",
            "weight of operations that replace a document's content",
        ),
        OptionSpec::real("insert_weight", "5", "weight of operations that insert a document"),
        OptionSpec::real(
            "range_weight",
            "5",
            "weight of operations that find documents by a range of an indexed field",
        ),
        OptionSpec::count("range_size", "10", "documents in a range"),
    ];
    options.extend_from_slice(distribution::OPTIONS);
    options
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Find,
    Update,
    Insert,
    Range,
}

#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Documents before the load.
    pub(super) documents: u64,
    /// Bytes of a document's content.
    pub(super) content: u64,
    pub(super) range_size: u64,
    /// The operations with a weight, and the share of each: they sum to 1.
    pub(super) shares: Vec<(What, f64)>,
    pub(super) keys: Distribution,
}

impl Settings {
    pub(super) fn read(options: &Options) -> Result<Settings, OptionError> {
        let documents = options.in_range("documents")?;
        let content = within("document_size", options.size("document_size"), (1, CONTENT_MAX))?;
        let longest = (ANSWER_MAX / content).clamp(1, RANGE_MAX.min(documents));
        let range_size = options.count("range_size");
        let shares = shares(options)?;
        if shares.iter().any(|(what, _)| *what == What::Range)
            && !(1..=longest).contains(&range_size)
        {
            return refuse(
                "range_size",
                format!(
                    "`{range_size}` is not between 1 and {longest}, which is the most for this number of \
                     documents of this size"
                ),
            );
        }
        let keys = DistributionSpec::from_options(options)?.over(documents);
        Ok(Settings { documents, content, range_size, shares, keys })
    }
}

fn shares(options: &Options) -> Result<Vec<(What, f64)>, OptionError> {
    let all = [
        (What::Find, "find_weight"),
        (What::Update, "update_weight"),
        (What::Insert, "insert_weight"),
        (What::Range, "range_weight"),
    ];
    let mut weights = Vec::new();
    for (what, name) in all {
        let weight = options.real(name);
        if !(0.0..=1e9).contains(&weight) {
            return refuse(name, format!("`{weight}` is not between 0 and 1000000000"));
        }
        if weight > 0.0 {
            weights.push((what, weight));
        }
    }
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    if weights.is_empty() {
        return refuse("find_weight", "all weights are 0, so there is nothing to do");
    }
    Ok(weights.into_iter().map(|(what, weight)| (what, weight / total)).collect())
}
