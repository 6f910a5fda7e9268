//! Checked options of TPC-B.

use dyno_model::{OptionError, OptionSpec};

use crate::options::Options;
use crate::sysbench::distribution::{self, Distribution, DistributionSpec};

use super::transactions::Script;

/// Accounts of one branch.
pub(super) const ACCOUNTS: u64 = 100_000;

/// Tellers of one branch.
pub(super) const TELLERS: u64 = 10;

/// Most branches: tellers are numbered in 32 bits.
const SCALE_MAX: u64 = 200_000_000;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::count(
        "scale",
        "1",
        "branches; each has 10 tellers and 100,000 accounts (about 15 MB)",
    )
    .within(1, SCALE_MAX),
    OptionSpec::word(
        "script",
        &["tpcb-like", "simple-update", "select-only"],
        "what a transaction does: 7 statements; 5, without tellers and branches; or 1 SELECT",
    ),
    OptionSpec::word(
        "protocol",
        &["prepared", "simple", "extended"],
        "statements prepared once for each connection; sent as text (pgbench's default); or \
               parsed, bound and executed each time (PostgreSQL only)",
    ),
    OptionSpec::count(
        "fillfactor",
        "100",
        "percentage of a page to fill, from 10 to 100 (PostgreSQL only)",
    )
    .within(10, 100),
];

/// The options of the workload; `distribution` and what follows it choose accounts.
pub(super) fn option_specs() -> Vec<OptionSpec> {
    [OPTIONS, distribution::OPTIONS].concat()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Prepared once, executed with values.
    Prepared,
    /// As text with the values in it.
    Simple,
    /// Parsed again for each execution, then executed with values.
    Extended,
}

#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Number of branches, as pgbench's scale.
    pub(super) scale: u64,
    pub(super) script: Script,
    pub(super) protocol: Protocol,
    /// Percent, in [10, 100].
    pub(super) fillfactor: u64,
    /// Of the accounts, counted from 0.
    pub(super) accounts: Distribution,
    /// Whether rows of history say in `filler` which transaction made them.
    pub(super) names_transactions: bool,
}

impl Settings {
    pub(super) fn read(options: &Options) -> Result<Settings, OptionError> {
        let scale = options.in_range("scale")?;
        Ok(Settings {
            scale,
            script: options.meaning("script", Script::ALL),
            protocol: options
                .meaning("protocol", [Protocol::Prepared, Protocol::Simple, Protocol::Extended]),
            fillfactor: options.in_range("fillfactor")?,
            accounts: DistributionSpec::from_options(options)?.over(scale * ACCOUNTS),
            names_transactions: false,
        })
    }
}
