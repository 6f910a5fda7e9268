//! The metrics derived from a step's record, a line each; activities declare others.

use std::borrow::Cow;
use std::cell::OnceCell;

use dyno_record::{
    EncodedHistogram, KindSummary, ProductFacts, StepRecord, StepSummary, VariantRecord,
    new_histogram, sends_nothing,
};
use dyno_units::Direction::{Higher, Lower};
use dyno_units::Unit::{Bytes, Microseconds, PerSecond};
use dyno_units::reading::known;
use dyno_units::{Direction, Metric, MetricId, MetricRole, Unit, metric};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::attribution::readings::mean_rate;
use crate::{attribution, faults, searches};

macro_rules! ids {
    ($($name:ident = $id:literal;)*) => {
        $(#[doc = concat!("`", $id, "`")] pub const $name: MetricId = MetricId::new($id);)*
    };
}

// Used by name; registered below.
ids! {
    RATE_AT_LIMIT = "rate_at_limit";
    CLIENTS_AT_LIMIT = "clients_at_limit";
    THROUGHPUT = "throughput";
    STEP_TIME = "step_time";
    RESPONSE_MEAN = "response_mean";
    RESPONSE_P50 = "response_p50";
    RESPONSE_P95 = "response_p95";
    RESPONSE_P99 = "response_p99";
    RESPONSE_P999 = "response_p999";
    RESPONSE_MAX = "response_max";
    SERVICE_P95 = "service_p95";
    SERVER_CPU = "server_cpu_per_transaction";
    GENERATOR_CPU = "generator_cpu_per_statement";
    DISK_READ = "disk_read_per_transaction";
    DISK_WRITTEN = "disk_written_per_transaction";
}

/// In the order in which they are shown.
#[rustfmt::skip]
const BUILT_IN: &[BuiltIn] = &[
    built_in(metric("rate_at_limit", PerSecond, Higher, "sustained rate", "highest offered rate that met the limit twice").main(), Derived(|step| step.rate_at_limit())).of("transactions"),
    built_in(metric("clients_at_limit", Unit::other("clients"), Higher, "sustained clients", "most clients that met the limit twice").main(), Derived(|step| step.clients_at_limit())),
    built_in(metric("throughput", PerSecond, Higher, "throughput", "committed transactions per second").main(), Derived(|step| step.throughput())).of("transactions"),
    built_in(metric("step_time", Microseconds, Lower, "step time", "time until all quotas were met").main(), Derived(|step| step.step_time())),
    built_in(metric("response_mean", Microseconds, Lower, "mean response time", "from the due time to completion, committed transactions only, mean").secondary(), Response(Mean)),
    built_in(metric("response_p50", Microseconds, Lower, "median response time", "from the due time to completion, committed transactions only, median").secondary(), Response(Quantile("p50", 0.5))),
    built_in(metric("response_p95", Microseconds, Lower, "p95 response time", "from the due time to completion, committed transactions only, 95th percentile").main(), Response(Quantile("p95", 0.95))),
    built_in(metric("response_p99", Microseconds, Lower, "p99 response time", "from the due time to completion, committed transactions only, 99th percentile").secondary(), Response(Quantile("p99", 0.99))),
    built_in(metric("response_p999", Microseconds, Lower, "p99.9 response time", "from the due time to completion, committed transactions only, 99.9th percentile"), Response(Quantile("p99.9", 0.999))),
    built_in(metric("response_max", Microseconds, Lower, "longest response time", "from the due time to completion, committed transactions only, the longest of all"), Response(Longest)),
    built_in(metric("service_p95", Microseconds, Lower, "p95 service time", "done − sent of committed transactions, 95th percentile"), Service(Quantile("p95", 0.95))),
    built_in(metric("server_cpu_per_transaction", Microseconds, Lower, "server CPU per transaction", "CPU time of the server's processes ÷ transactions").secondary(), Derived(|step| step.server_cpu())),
    built_in(metric("disk_read_per_transaction", Bytes, Lower, "data read from disk per transaction", "bytes read from disk devices ÷ transactions"), Derived(|step| step.disk_bytes(known::DISK_READ_BYTES))),
    built_in(metric("disk_written_per_transaction", Bytes, Lower, "data written to disk per transaction", "bytes written to disk devices ÷ transactions"), Derived(|step| step.disk_bytes(known::DISK_WRITE_BYTES))),
    built_in(metric("fault_away", Unit::Seconds, Lower, "time without commits after a fault", "longest time after a fault in which nothing was committed").secondary(), Derived(|step| faults::away_of(step.summary))),
    built_in(metric("fault_answer", Unit::Seconds, Lower, "time to the first answer after a fault", "from a fault until the server answered one of Dyno's statements again").secondary(), Derived(|step| faults::answer_of(step.summary))),
    built_in(metric("fault_recovery", Unit::Seconds, Lower, "time to recover from a fault", "from a fault to the first of three seconds that each had at least 90 % of the throughput before it").secondary(), Derived(|step| faults::recovery_of(step.summary))),
    built_in(metric("fault_lost", Unit::Count, Lower, "confirmed transactions lost", "transactions whose commit was confirmed but that the promoted replica does not have; of a range, the smallest number").secondary(), Derived(|step| faults::lost_of(step.summary))),
    built_in(metric("generator_cpu_per_statement", Microseconds, Lower, "generator CPU per statement", "CPU time of the load generator's threads ÷ statements"), Derived(|step| step.generator_cpu())),
];

use Derivation::{Derived, Response, Service};
use Statistic::{Longest, Mean, Quantile};

pub(crate) struct BuiltIn {
    pub(crate) metric: Metric,
    pub(crate) derivation: Derivation,
    thing: Option<&'static str>,
}

const fn built_in(metric: Metric, derivation: Derivation) -> BuiltIn {
    BuiltIn { metric, derivation, thing: None }
}

impl BuiltIn {
    const fn of(mut self, thing: &'static str) -> BuiltIn {
        self.thing = Some(thing);
        self
    }
}

/// What a rate counts, in the plural: `transactions`.
pub fn thing(metric: MetricId) -> Option<&'static str> {
    find(metric)?.thing
}

/// `8,590 transactions/s` for `8,590/s`.
pub fn with_thing(metric: MetricId, value: &str) -> String {
    match (thing(metric), value.strip_suffix("/s")) {
        (Some(thing), Some(number)) => format!("{number} {thing}/s"),
        _ => value.to_owned(),
    }
}

/// Or why there is none; `None` if the step has no such thing.
pub(crate) type Value = Option<Result<f64, String>>;

#[derive(Clone, Copy)]
pub(crate) enum Derivation {
    Derived(fn(&Source<'_>) -> Value),
    Response(Statistic),
    Service(Statistic),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Statistic {
    Mean,
    /// Its word in a study, and the quantile.
    Quantile(&'static str, f64),
    Longest,
}

impl Statistic {
    /// In a study: `p99`.
    fn word(self) -> &'static str {
        match self {
            Mean => "mean",
            Quantile(word, _) => word,
            Longest => "max",
        }
    }

    /// In µs, or why there is none.
    pub(crate) fn of(self, histogram: &Histogram<u64>) -> Result<f64, String> {
        if histogram.is_empty() {
            return Err(NOTHING_COMMITTED.to_owned());
        }
        let ns = match self {
            Mean => histogram.mean(),
            Longest => histogram.max() as f64,
            Quantile(_, quantile) => {
                // Otherwise it would be the largest value under another name.
                let (n, least) = (histogram.len(), (1.0 / (1.0 - quantile)).round());
                if (n as f64) < least {
                    return Err(format!(
                        "it needs at least {least} transactions in every trial, and one had only {n}"
                    ));
                }
                histogram.value_at_quantile(quantile) as f64
            }
        };
        Ok(ns / 1e3)
    }
}

/// By their names in JSON, in µs, or why there is none: as for metrics of response times.
pub fn statistics(histogram: &Histogram<u64>) -> [(&'static str, Result<f64, String>); 6] {
    let quantile = |word, quantile| (word, Quantile(word, quantile).of(histogram));
    [
        ("mean", Mean.of(histogram)),
        quantile("p50", 0.5),
        quantile("p95", 0.95),
        quantile("p99", 0.99),
        quantile("p999", 0.999),
        ("max", Longest.of(histogram)),
    ]
}

const NOTHING_COMMITTED: &str = "no transaction committed";

fn find(metric: MetricId) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|row| row.metric.id == metric)
}

/// Of metrics that are quantiles of response or service times.
pub(crate) fn quantile(metric: MetricId) -> Option<f64> {
    match find(metric)?.derivation {
        Response(Quantile(_, quantile)) | Service(Quantile(_, quantile)) => Some(quantile),
        _ => None,
    }
}

/// For an estimate; fewer are an anecdote.
pub(crate) const BEYOND_LEAST: f64 = 20.0;

/// Observations beyond a quantile, if fewer than [`BEYOND_LEAST`].
pub(crate) fn few_beyond(quantile: f64, observations: u64) -> Option<u64> {
    let beyond = (1.0 - quantile) * observations as f64;
    // Tolerance, as 1 − 0.95 is not quite 0.05.
    (beyond < BEYOND_LEAST - 0.5).then_some((beyond + 1e-6).round() as u64)
}

pub(crate) fn response_statistics() -> impl Iterator<Item = (MetricId, Statistic)> {
    BUILT_IN.iter().filter_map(|row| match row.derivation {
        Response(statistic) => Some((row.metric.id, statistic)),
        _ => None,
    })
}

/// In the order in which they are shown: built-in ones, then declared ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metrics(Vec<Metric>);

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics(BUILT_IN.iter().map(|row| row.metric.clone()).collect())
    }
}

/// For a metric that was removed from findings.
static UNKNOWN: Metric =
    metric("unknown", Unit::Number, Direction::Neither, "unknown metric", "not declared");

impl Metrics {
    /// Of two with the same id the first counts.
    pub(crate) fn extend<'m>(&mut self, declared: impl IntoIterator<Item = &'m Metric>) {
        for metric in declared {
            if self.0.iter().all(|known| known.id != metric.id) {
                self.0.push(metric.clone());
            }
        }
    }

    pub fn get(&self, metric: MetricId) -> &Metric {
        self.0.iter().find(|known| known.id == metric).unwrap_or(&UNKNOWN)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Metric> {
        self.0.iter()
    }

    pub fn main(&self) -> impl Iterator<Item = MetricId> {
        self.0.iter().filter(|metric| metric.role == MetricRole::Main).map(|metric| metric.id)
    }

    /// Each is its own family.
    pub(crate) fn compared(&self) -> impl Iterator<Item = &Metric> {
        self.0.iter().filter(|m| m.role != MetricRole::Context && m.better != Direction::Neither)
    }

    pub fn declared(&self) -> impl Iterator<Item = &Metric> {
        self.0.iter().filter(|metric| find(metric.id).is_none())
    }

    /// By id, or by the word for a statistic of response times (`p99`).
    pub(crate) fn required(&self, word: &str) -> Option<&Metric> {
        let statistic = response_statistics().find(|(_, statistic)| statistic.word() == word);
        let id = statistic.map(|(id, _)| id);
        self.0.iter().find(|metric| Some(metric.id) == id || metric.id.as_str() == word)
    }
}

pub fn is_more_better(metric: &Metric) -> bool {
    metric.better == Higher
}

pub(crate) struct Source<'a> {
    pub(crate) summary: &'a StepSummary,
    step: &'a StepRecord,
    variant: &'a VariantRecord,
    server: Cow<'a, ProductFacts>,
    response: OnceCell<Result<Histogram<u64>, String>>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(
        summary: &'a StepSummary,
        step: &'a StepRecord,
        variant: &'a VariantRecord,
        server: Cow<'a, ProductFacts>,
    ) -> Source<'a> {
        Source { summary, step, variant, server, response: OnceCell::new() }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = (MetricId, Result<f64, String>)> {
        let is_own = |id: &MetricId| find(*id).is_none();
        let declared = self.summary.figures.iter().filter(move |(id, _)| is_own(id));
        let built_in =
            BUILT_IN.iter().filter_map(|row| Some((row.metric.id, self.derive(row.derivation)?)));
        built_in.chain(declared.map(|(id, value)| (*id, Ok(*value))))
    }

    pub(crate) fn value(&self, metric: MetricId) -> Value {
        match find(metric) {
            Some(row) => self.derive(row.derivation),
            None => self.summary.figures.get(&metric).map(|value| Ok(*value)),
        }
    }

    fn derive(&self, derivation: Derivation) -> Value {
        match derivation {
            Derived(derive) => derive(self),
            _ if self.is_watched() || !self.has_load() || self.has_no_times() => None,
            Response(statistic) => Some(self.response().and_then(|times| statistic.of(times))),
            Service(statistic) => {
                let service = merged(self.summary.kinds.iter().map(|kind| &kind.service));
                Some(service.and_then(|times| statistic.of(&times)))
            }
        }
    }

    fn has_load(&self) -> bool {
        let had_job_alone = self.summary.kinds.is_empty() && !self.summary.activities.is_empty();
        (has_load(self.step) && !had_job_alone) || !self.summary.kinds.is_empty()
    }

    /// Nobody waited for a response.
    fn is_watched(&self) -> bool {
        sends_nothing(&self.variant.workload)
    }

    fn has_no_times(&self) -> bool {
        self.summary.imported.is_some() && self.response().is_ok_and(|times| times.is_empty())
    }

    fn response(&self) -> Result<&Histogram<u64>, String> {
        let all = || merged(self.summary.kinds.iter().map(|kind| &kind.response));
        self.response.get_or_init(all).as_ref().map_err(Clone::clone)
    }

    fn found(&self, metric: MetricId) -> Value {
        let sought = self.step.search.as_ref().filter(|asked| searches::metric(asked) == metric)?;
        let search = self.summary.search.as_ref()?;
        let value = searches::value(sought, search);
        Some(value.ok_or_else(|| searches::why_absent(sought, search.lowest_broken)))
    }

    fn rate_at_limit(&self) -> Value {
        self.found(RATE_AT_LIMIT)
    }

    fn clients_at_limit(&self) -> Value {
        self.found(CLIENTS_AT_LIMIT)
    }

    fn throughput(&self) -> Value {
        if self.is_watched() && self.summary.kinds.is_empty() {
            let why = "this server counts statements, not transactions";
            return (attribution::uses::statements(self.summary) > 0).then(|| Err(why.to_owned()));
        }
        // A tool may have counted something else, which is declared.
        if self.summary.imported.is_some() && self.summary.kinds.is_empty() {
            return None;
        }
        self.has_load().then(|| Ok(committed(self.summary) as f64 / self.summary.measured_s))
    }

    /// For steps that end by quota, and trials done in time.
    fn step_time(&self) -> Value {
        self.step.own_of(self.variant).filter(|own| own.ends_by_quota)?;
        let is_done = self.summary.ended_by.as_deref() == Some("quota");
        let unfinished = || "its quotas were not met within its time limit".to_owned();
        Some(is_done.then_some(self.summary.measured_s * 1e6).ok_or_else(unfinished))
    }

    /// For a watched server, if it counts transactions.
    fn per_transaction(&self, total: Result<f64, String>) -> Value {
        let value = total.and_then(|total| match committed(self.summary) {
            0 => Err(NOTHING_COMMITTED.to_owned()),
            n => Ok(total / n as f64),
        });
        match self.is_watched() {
            true => value.ok().filter(|_| !self.summary.kinds.is_empty()).map(Ok),
            false => self.has_load().then_some(value),
        }
    }

    fn server_cpu(&self) -> Value {
        if self.summary.imported.is_some() {
            return None;
        }
        let why = match (self.server.in_process, self.server.simulated) {
            (true, _) => "the database runs inside the load generator's own process",
            (_, true) => "there was no server: it was a simulation",
            _ => "the server's processes could not be observed from this machine",
        };
        let cpu_us = self.summary.server_cpu_s.map(|cpu_s| cpu_s * 1e6);
        self.per_transaction(cpu_us.ok_or_else(|| why.to_owned()))
    }

    fn generator_cpu(&self) -> Value {
        if self.is_watched() || !self.has_load() || self.summary.imported.is_some() {
            return None;
        }
        let StepSummary { reads, writes, others, generator, .. } = self.summary;
        let statements = reads + writes + others;
        Some(match (self.server.in_process, self.server.simulated) {
            (true, _) => {
                Err("the database does its work on the load generator's own threads".to_owned())
            }
            (_, true) => Err("there was no load generator: it was a simulation".to_owned()),
            _ if statements == 0 => Err("no statement was answered".to_owned()),
            _ => Ok((generator.cpu_user_s + generator.cpu_system_s) * 1e6 / statements as f64),
        })
    }

    /// By transaction, as in the attribution: the intervals' weighted mean times the measured time.
    fn disk_bytes(&self, reading: &str) -> Value {
        if self.summary.imported.is_some() {
            return None;
        }
        let rate = mean_rate(self.summary, reading);
        self.per_transaction(rate.map(|rate| rate * self.summary.measured_s))
    }
}

pub(crate) const DESIGNED: [&str; 2] = ["committed", "rolled_back"];
/// A retry may mend them, or a workload with random keys produces them.
pub(crate) const TRANSIENT: [&str; 4] =
    ["deadlock", "serialization", "lock_timeout", "duplicate_key"];
/// Rarer transient errors are ordinary.
pub(crate) const TRANSIENT_MOST: f64 = 0.001;

pub(crate) fn has_load(step: &StepRecord) -> bool {
    step.clients > 0
}

pub(crate) fn committed_of(kind: &KindSummary) -> u64 {
    kind.outcomes.get("committed").copied().unwrap_or(0)
}

pub(crate) fn committed(summary: &StepSummary) -> u64 {
    summary.kinds.iter().map(committed_of).sum()
}

/// Of all kinds, in µs; `None` without commits.
pub(crate) fn longest_response_us(summary: &StepSummary) -> Option<f64> {
    let response = merged(summary.kinds.iter().map(|kind| &kind.response));
    Longest.of(&response.ok()?).ok()
}

/// Fails if one cannot be decoded.
pub(crate) fn merged<'a>(
    encoded: impl Iterator<Item = &'a EncodedHistogram>,
) -> Result<Histogram<u64>, String> {
    let unreadable = || "the record's histogram cannot be decoded".to_owned();
    let mut total = new_histogram();
    total.auto(true);
    for one in encoded {
        total.add(&one.decode().ok_or_else(unreadable)?).map_err(|_| unreadable())?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_needs_observations_beyond_it() {
        let check = |quantile: f64, observations: u64, expected: Option<u64>| {
            assert_eq!(few_beyond(quantile, observations), expected, "{quantile} {observations}");
        };
        check(0.95, 400, None);
        check(0.95, 380, Some(19));
        check(0.99, 650, Some(7));
        check(0.999, 20_000, None);
        check(0.999, 650, Some(1));
        check(0.999, 400, Some(0));
    }

    #[test]
    fn every_id_is_registered_once() {
        let ids = [
            RATE_AT_LIMIT,
            CLIENTS_AT_LIMIT,
            THROUGHPUT,
            STEP_TIME,
            RESPONSE_MEAN,
            RESPONSE_P50,
            RESPONSE_P95,
            RESPONSE_P99,
            RESPONSE_P999,
            RESPONSE_MAX,
            SERVICE_P95,
            SERVER_CPU,
            GENERATOR_CPU,
            DISK_READ,
            DISK_WRITTEN,
        ];
        for id in ids {
            assert_eq!(BUILT_IN.iter().filter(|row| row.metric.id == id).count(), 1, "{id}");
        }
    }

    #[test]
    fn a_percentile_needs_an_observation_beyond_it() {
        let of = |n: u64, word: &'static str, quantile: f64| {
            let mut histogram = new_histogram();
            histogram.record_n(1_000, n - 1).expect("it is in range");
            histogram.record(9_000).expect("it is in range");
            Quantile(word, quantile).of(&histogram)
        };
        assert_eq!(of(999, "p99.9", 0.999).map_err(|why| why.contains("at least 1000")), Err(true));
        assert_eq!(of(1_000, "p99.9", 0.999), Ok(1.0));
        assert_eq!(of(99, "p99", 0.99).map_err(|why| why.contains("at least 100")), Err(true));
        assert_eq!(of(100, "p99", 0.99), Ok(1.0));
        assert!(of(19, "p95", 0.95).is_err() && of(20, "p95", 0.95).is_ok());
    }

    #[test]
    fn a_requirement_names_a_metric_by_its_word_or_its_id() {
        let metrics = Metrics::default();
        let check = |word: &str, expected: Option<MetricId>| {
            assert_eq!(metrics.required(word).map(|metric| metric.id), expected, "{word}");
        };
        check("p99.9", Some(RESPONSE_P999));
        check("max", Some(RESPONSE_MAX));
        check("throughput", Some(THROUGHPUT));
        check("step_time", Some(STEP_TIME));
        check("median of medians", None);
    }
}
