//! Caveats: typed reasons to trust a finding less.

use serde::{Deserialize, Serialize};

/// With advice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Caveat {
    pub kind: CaveatKind,
    pub message: String,
    pub advice: String,
    /// Empty for all.
    pub variants: Vec<usize>,
    /// Empty for all.
    pub steps: Vec<usize>,
}

/// Each has a test that provokes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    /// Fewer than three.
    TooFewRepetitions,
    /// A worker of the generator was busy for over 70 % of the time, did over 70 % of its
    /// calibrated work, or waited for a CPU.
    GeneratorLimit,
    /// On a generating host a worker was busy for over 70 % of the time, or waited for a CPU.
    HostLimit,
    /// A generating host sent later than the others.
    HostLag,
    /// A generating host did another share than planned.
    HostShare,
    /// Fewer hosts loaded some trials than others.
    HostMissing,
    HostClock,
    Errors,
    /// Nothing committed at the end of a measurement phase.
    DeadEnd,
    /// A control group's CPU limit held the server back.
    Throttled,
    /// Due and never sent.
    MissedArrivals,
    /// Clients waited in a pooler for most of a step.
    Unserved,
    DifferentDurability,
    InMemory,
    /// Confirmed writes may not have been on disk, or reads came from memory.
    NotOnDisk,
    /// Data of some trials were on a filesystem in user space.
    UserSpace,
    /// A compressing filesystem stored most data uncompressed.
    StoredUncompressed,
    MissingTrials,
    /// The tables did not contain what the server confirmed.
    AuditFailed,
    /// A search lacks a load that holds, or one that breaks.
    UnsettledSearch,
    /// Too short for the quantile.
    ShortMeasurement,
    /// The first measured seconds are still like warm-up.
    WarmUpTooShort,
    NotSteady,
    /// Seconds with hardly any work.
    Stalls,
    /// Throughput reached no level within the measurement phase.
    NeverSteady,
    /// Earlier blocks are unlike later ones.
    Drift,
    /// Differences between variants changed with the block, or the place in it.
    DriftingDifferences,
    /// A variant's repetitions copy one data set, different from other variants'.
    OneDataSet,
    /// The compared runs were not interleaved.
    SeparateRuns,
    /// A variant's trials, or compared variants, had different machines.
    SeveralMachines,
    DifferentMemory,
    /// Versions of a product were built by different builders.
    DifferentBuilders,
    DifferentProtocol,
    /// Compared servers share CPUs with the generator in different ways.
    DifferentScheduling,
    DifferentTls,
    DataChangedSize,
    /// The data are in memory in one variant only, or were not read from where the study meant.
    UnexpectedCaching,
    NoisyHost,
    ServerRestarted,
    /// One variant after the other: drift looks like an effect.
    SequentialOrder,
    /// Not done in the step's longest time.
    UnfinishedQuota,
    /// Deferred work was left when a step began, or after the load.
    NotCaughtUp,
    /// Sequential stopping ended with open verdicts.
    NotSettled,
    LawMisses,
    /// Namesakes of two runs differ in workload or options, and are not compared.
    DifferentWorkload,
    DifferentSteps,
    Imported,
    /// A simulation, or a server that stores nothing.
    Simulated,
}
