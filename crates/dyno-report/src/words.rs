//! The words for metrics, verdicts, outcomes and caveats: the same in every renderer.

use std::collections::BTreeSet;

use dyno_analysis::{CaveatKind, ConcurrencyGroup, MetricId, Verdict};

/// What a comparison is called: its verdict, but no variant that is known to be less durable than its
/// baseline is called better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Verdict(Verdict),
    /// It would be better if it promised as much; whether the metric is one of speed.
    LessDurable {
        is_faster: bool,
    },
}

impl Judged {
    /// All of them, in the order in which they are counted.
    pub(crate) const ALL: [Judged; 6] = [
        Judged::Verdict(Verdict::Better),
        Judged::LessDurable { is_faster: true },
        Judged::LessDurable { is_faster: false },
        Judged::Verdict(Verdict::Worse),
        Judged::Verdict(Verdict::NoDifference),
        Judged::Verdict(Verdict::Inconclusive),
    ];

    /// Its sign is for those who do not see its colour, which its class gives it.
    fn word_sign_class(self) -> [&'static str; 3] {
        match self {
            Judged::Verdict(Verdict::Better) => ["better", "✓", "better"],
            Judged::Verdict(Verdict::Worse) => ["worse", "✗", "worse"],
            Judged::Verdict(Verdict::NoDifference) => ["no difference", "=", "same"],
            Judged::Verdict(Verdict::Inconclusive) => ["undecided", "?", "open"],
            Judged::LessDurable { is_faster: true } => ["faster, less durable", "◇", "open"],
            Judged::LessDurable { is_faster: false } => ["less durable", "◇", "open"],
        }
    }

    pub(crate) fn word(self) -> &'static str {
        self.word_sign_class()[0]
    }

    pub(crate) fn sign(self) -> &'static str {
        self.word_sign_class()[1]
    }

    pub(crate) fn class(self) -> &'static str {
        self.word_sign_class()[2]
    }
}

pub(crate) fn caveat(kind: CaveatKind) -> &'static str {
    match kind {
        CaveatKind::TooFewRepetitions => "too few repetitions",
        CaveatKind::GeneratorLimit => "load generator near its limit",
        CaveatKind::HostLimit => "load-generating host near its limit",
        CaveatKind::HostLag => "lagging host",
        CaveatKind::HostShare => "uneven hosts",
        CaveatKind::HostMissing => "missing hosts",
        CaveatKind::HostClock => "host clock off",
        CaveatKind::Errors => "failed attempts",
        CaveatKind::DeadEnd => "no commits at the end",
        CaveatKind::InMemory => "data in memory",
        CaveatKind::NotOnDisk => "not on disk",
        CaveatKind::StoredUncompressed => "data not compressed",
        CaveatKind::Imported => "measured by another tool",
        CaveatKind::UserSpace => "filesystem in user space",
        CaveatKind::Throttled => "CPU limit reached",
        CaveatKind::MissedArrivals => "missed arrivals",
        CaveatKind::Unserved => "clients not served",
        CaveatKind::DifferentDurability => "different durability",
        CaveatKind::MissingTrials => "missing trials",
        CaveatKind::AuditFailed => "audit failed",
        CaveatKind::ShortMeasurement => "short measurement",
        CaveatKind::WarmUpTooShort => "warm-up too short",
        CaveatKind::NotSteady => "not steady",
        CaveatKind::Stalls => "stalls",
        CaveatKind::UnsettledSearch => "incomplete search",
        CaveatKind::NeverSteady => "never steady",
        CaveatKind::Drift => "drift",
        CaveatKind::DriftingDifferences => "drifting differences",
        CaveatKind::OneDataSet => "one data set per variant",
        CaveatKind::SeparateRuns => "runs not interleaved",
        CaveatKind::SeveralMachines => "several machines",
        CaveatKind::DifferentMemory => "different memory",
        CaveatKind::DifferentBuilders => "different builders",
        CaveatKind::DifferentProtocol => "different connections",
        CaveatKind::DifferentScheduling => "different scheduling groups",
        CaveatKind::DifferentTls => "encryption on one side",
        CaveatKind::DataChangedSize => "data set changed size",
        CaveatKind::UnexpectedCaching => "unexpected caching",
        CaveatKind::NoisyHost => "noisy host",
        CaveatKind::ServerRestarted => "server restarted",
        CaveatKind::SequentialOrder => "not interleaved",
        CaveatKind::UnfinishedQuota => "time limit reached",
        CaveatKind::NotCaughtUp => "deferred work left over",
        CaveatKind::NotSettled => "undecided at the end",
        CaveatKind::LawMisses => "poor fit of the scaling law",
        CaveatKind::DifferentWorkload => "different workloads",
        CaveatKind::DifferentSteps => "different load levels",
        CaveatKind::Simulated => "simulated",
    }
}

/// Whether a caveat may void an answer, and not only widen its doubt: something else was measured, or a difference may
/// not come from the variants.
pub(crate) fn is_grave(kind: CaveatKind) -> bool {
    use CaveatKind::{
        AuditFailed, DeadEnd, DifferentDurability, DifferentMemory, DifferentWorkload, Errors,
        GeneratorLimit, HostLimit, HostMissing, MissedArrivals, MissingTrials, NeverSteady,
        NotOnDisk, SeparateRuns, SequentialOrder, ServerRestarted, SeveralMachines, Simulated,
        TooFewRepetitions, UnexpectedCaching, Unserved,
    };
    matches!(
        kind,
        AuditFailed
            | DeadEnd
            | DifferentDurability
            | DifferentMemory
            | DifferentWorkload
            | Errors
            | GeneratorLimit
            | HostLimit
            | HostMissing
            | MissedArrivals
            | MissingTrials
            | NeverSteady
            | NotOnDisk
            | SeparateRuns
            | SequentialOrder
            | ServerRestarted
            | SeveralMachines
            | Simulated
            | TooFewRepetitions
            | UnexpectedCaching
            | Unserved
    )
}

pub(crate) fn group(group: ConcurrencyGroup) -> &'static str {
    match group {
        ConcurrencyGroup::Low => "low concurrency",
        ConcurrencyGroup::High => "high concurrency",
    }
}

/// `1 trial`, `2 trials`.
pub(crate) fn counted(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// The values, each once, in their order.
pub(crate) fn distinct<T: Ord + Copy>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = BTreeSet::new();
    all.into_iter().filter(|one| known.insert(*one)).collect()
}

/// The values, each once, from the least to the greatest.
pub(crate) fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    all.into_iter().collect::<BTreeSet<T>>().into_iter().collect()
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(parts: &[&str]) -> String {
    match parts {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// A metric as the page's scripts and classes name it.
pub(crate) fn slug(metric: MetricId) -> String {
    metric.as_str().replace(['.', '_'], "-")
}

/// A word or phrase with a capital.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// A text with a capital and a full stop.
pub(crate) fn full_sentence(text: &str) -> String {
    let text = sentence(text);
    if text.ends_with(['.', '?', '!']) { text } else { text + "." }
}
