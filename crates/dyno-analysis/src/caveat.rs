//! Caveats: typed reasons to trust a finding less.

use serde::{Deserialize, Serialize};

/// A reason to trust less, with what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Caveat {
    pub kind: CaveatKind,
    pub message: String,
    pub advice: String,
    /// Indexes of the variants it concerns; empty for all.
    pub variants: Vec<usize>,
    /// Indexes of the steps it concerns; empty for all.
    pub steps: Vec<usize>,
}

/// Kinds of caveats; each has a test that provokes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    /// Fewer than three repetitions.
    TooFewRepetitions,
    /// A worker of the load generator was busy more than 70 % of the time, did more than 70 % of
    /// what it was calibrated to, or had to wait for a CPU.
    GeneratorLimit,
    /// On one of the hosts that generated the load, a worker was busy more than 70 % of the time, or had
    /// to wait for a CPU.
    HostLimit,
    /// One of the hosts that generated the load sent later than the others.
    HostLag,
    /// One of the hosts that generated the load did another part of it than it was to do.
    HostShare,
    /// Some trials were loaded by fewer hosts than others.
    HostMissing,
    HostClock,
    Errors,
    /// Nothing committed at the end of a measurement phase.
    DeadEnd,
    /// A control group's limit of CPU time held the server back.
    Throttled,
    /// Arrivals were due and never sent.
    MissedArrivals,
    /// Clients waited in a pooler for most of a step.
    Unserved,
    DifferentDurability,
    InMemory,
    /// What was written may not have been on the disk when that was confirmed, or reads may have been
    /// served from memory.
    NotOnDisk,
    /// The data of some trials lay on a filesystem in user space.
    UserSpace,
    /// A filesystem that compresses stored most of the data as they are.
    StoredUncompressed,
    MissingTrials,
    /// After the load, the tables were not as what the server had confirmed makes them.
    AuditFailed,
    /// A search for the highest load did not find both a load that holds and one that breaks.
    UnsettledSearch,
    /// The measured time is too short for the quantile.
    ShortMeasurement,
    /// The first measured seconds are not like the rest: warm-up that went on.
    WarmUpTooShort,
    NotSteady,
    /// Seconds in which hardly anything was done.
    Stalls,
    /// Throughput had not reached a level when the measurement phase ended.
    NeverSteady,
    /// Results changed with the time of day: earlier blocks are not like later ones.
    Drift,
    /// Differences between variants changed from block to block, or with the place in the block.
    DriftingDifferences,
    /// All repetitions of a variant copy one data set, and variants have different ones.
    OneDataSet,
    /// Two runs are compared that were not interleaved with each other.
    SeparateRuns,
    /// Trials of a variant ran on machines that differ, or variants that are compared on different ones.
    SeveralMachines,
    DifferentMemory,
    /// Variants that are compared as versions of a product were built by different builders.
    DifferentBuilders,
    DifferentProtocol,
    /// Servers that are compared share CPUs with the generator in different ways.
    DifferentScheduling,
    DifferentTls,
    DataChangedSize,
    /// The data set is in memory in one variant and not in the other, or was not read from where the
    /// study meant.
    UnexpectedCaching,
    NoisyHost,
    ServerRestarted,
    /// Variants were measured one after the other: what drifts looks like an effect.
    SequentialOrder,
    /// A step's quotas were not done when its longest time was over.
    UnfinishedQuota,
    /// The engine's debt was not paid when a step began, or after the load.
    NotCaughtUp,
    /// A run with sequential stopping ended with verdicts that are open.
    NotSettled,
    LawMisses,
    /// Namesakes of two runs do not run the same workload with the same options: they are not
    /// compared.
    DifferentWorkload,
    DifferentSteps,
    Imported,
    /// It was a simulation, or a server that stores nothing: no database was measured.
    Simulated,
}
