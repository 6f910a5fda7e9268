//! The words for metrics, verdicts, outcomes and caveats: the same in every renderer.

use dyno_analysis::{CaveatKind, ConcurrencyGroup, Metric, Verdict};

/// A metric's name.
pub(crate) fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::ResponseMean => "mean response time",
        Metric::ResponseP50 => "median response time",
        Metric::ResponseP95 => "p95 response time",
        Metric::ResponseP99 => "p99 response time",
        Metric::ResponseP999 => "p99.9 response time",
        Metric::ResponseMax => "longest response time",
        Metric::ServiceP95 => "p95 service time",
        Metric::ServerCpuPerTransaction => "server CPU per transaction",
        Metric::GeneratorCpuPerStatement => "generator CPU per statement",
        Metric::DiskReadPerTransaction => "disk read per transaction",
        Metric::DiskWrittenPerTransaction => "disk written per transaction",
        Metric::RateAtLimit => "sustained rate",
        Metric::ClientsAtLimit => "sustained clients",
        Metric::StepTime => "time of the step",
    }
}

/// Whether more of a metric is better.
pub(crate) fn is_more_better(metric: Metric) -> bool {
    metric.more_is_better()
}

/// A verdict in words.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// A verdict as a sign, for those who do not see its colour.
pub(crate) fn verdict_sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "▲",
        Verdict::Worse => "▼",
        Verdict::NoDifference => "=",
        Verdict::Inconclusive => "?",
    }
}

/// A verdict as the name of a CSS class.
pub(crate) fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "same",
        Verdict::Inconclusive => "open",
    }
}

/// A caveat's kind in words.
pub(crate) fn caveat(kind: CaveatKind) -> String {
    match kind {
        CaveatKind::TooFewRepetitions => "too few repetitions".to_owned(),
        CaveatKind::GeneratorLimit => "the load generator was the limit".to_owned(),
        CaveatKind::Errors => "attempts failed".to_owned(),
        CaveatKind::DeadEnd => "no work at the end".to_owned(),
        CaveatKind::MissedArrivals => "missed arrivals".to_owned(),
        CaveatKind::UnlikeDurability => "unlike durability".to_owned(),
        CaveatKind::MissingTrials => "trials are missing".to_owned(),
        CaveatKind::AuditFailed => "the audit failed".to_owned(),
        CaveatKind::ShortMeasurement => "short measurement".to_owned(),
        CaveatKind::WarmUpTooShort => "warm-up too short".to_owned(),
        CaveatKind::NotSteady => "not steady".to_owned(),
        CaveatKind::Stalls => "stalls".to_owned(),
        CaveatKind::UnsettledSearch => "unsettled search".to_owned(),
        CaveatKind::NeverSteady => "never steady".to_owned(),
        CaveatKind::Drift => "drift".to_owned(),
        CaveatKind::DriftingDifferences => "differences drift".to_owned(),
        CaveatKind::OneDataSet => "one data set for each variant".to_owned(),
        CaveatKind::SeparateRuns => "runs not interleaved".to_owned(),
        CaveatKind::UnlikeMemory => "unlike memory".to_owned(),
        CaveatKind::UnlikeProtocol => "unlike protocol".to_owned(),
        CaveatKind::UnlikeTls => "unlike TLS".to_owned(),
        CaveatKind::DataChangedSize => "data set changed size".to_owned(),
        CaveatKind::CacheNotAsMeant => "cached or not as meant".to_owned(),
        CaveatKind::NoisyHost => "noisy host".to_owned(),
        CaveatKind::ServerRestarted => "server restarted".to_owned(),
        CaveatKind::SequentialOrder => "sequential order".to_owned(),
        CaveatKind::UnfinishedQuota => "unfinished step".to_owned(),
        CaveatKind::DebtUnpaid => "debt not paid".to_owned(),
        CaveatKind::NotSettled => "not settled".to_owned(),
        CaveatKind::LawMisses => "the fitted law misses".to_owned(),
        CaveatKind::UnlikeWorkload => "unlike workloads".to_owned(),
        CaveatKind::UnlikeSteps => "unlike steps".to_owned(),
        CaveatKind::Simulated => "simulated".to_owned(),
    }
}

/// A group of steps in words.
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
