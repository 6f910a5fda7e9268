//! The Insert Benchmark as its author reports it, in rows and queries a second: against the
//! baseline, by response time buckets, with the kept insert rate and times of `min(transactionid)`.

mod author;
mod buckets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dyno_record::{
    KindSummary, OwnStepRecord, StepRecord, StepSummary, VariantRecord, new_histogram,
};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

pub use author::COLUMNS;
pub use buckets::{BOUNDS_NS, Buckets, N_BUCKETS, buckets};

use crate::Estimate;
use crate::cells::estimate;
use crate::compare::Levels;
use crate::join::Joined;
use crate::kept::{KEPT, KeptSeconds, Offered};
use crate::statistics::Rule;

pub(crate) const WORKLOAD: &str = "insert-benchmark";

/// Queries by the author's count.
pub const QUERIES: [&str; 4] = ["market", "register", "pdc", "point"];

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InsertBenchmarkCell {
    pub variant: usize,
    pub step: usize,
    /// Rows per second, all clients; `None` without inserts.
    pub inserts: Option<Estimate>,
    /// Rows per second.
    pub deletes: Option<Estimate>,
    /// Per second.
    pub queries: Option<Estimate>,
    /// Rows left by l.i0, per second of making their indexes.
    pub indexed: Option<Estimate>,
    /// What the author compares (queries of a read/write step, indexed rows of l.x, else inserted
    /// rows), over the baseline's; `None` without one.
    pub relative: Option<f64>,
    /// Of `insert`, `delete` and `query`, since the statement was sent; all trials together.
    pub response: BTreeMap<String, Buckets>,
    /// Since the statement was due: includes waiting for the one before.
    pub response_from_due: BTreeMap<String, Buckets>,
    /// `None` in steps without a rate.
    pub sla: Option<Sla>,
    /// Times of `select min(transactionid)`; `None` in steps without deletes.
    pub get_min: Option<GetMin>,
    /// Rows of one INSERT; `None` in steps without inserts.
    #[serde(default)]
    pub rows_per_insert: Option<u64>,
    /// By name, in the author's units, without unmeasured ones; [`COLUMNS`] has their order.
    #[serde(default)]
    pub columns: BTreeMap<String, f64>,
}

/// How a read/write step kept its insert rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sla {
    /// Rows a second of all clients.
    pub target: f64,
    /// Trials that inserted at least 95 % of it in the whole step.
    pub met: u32,
    pub trials: u32,
    /// Share of seconds, of all trials, in windows with at least 95 % of it, less one statement of
    /// each client at an edge. `None` if the record does not tell, or no step had a whole window.
    pub seconds_met: Option<f64>,
    /// Most seconds in a row in windows that missed it.
    pub longest_miss_s: u32,
    /// Whole seconds of a window: enough for 20 statements of each client.
    #[serde(default)]
    pub window_s: u32,
}

/// Of the query for the smallest id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GetMin {
    /// When a step began: one per table and trial.
    pub at_start: u64,
    pub at_start_median_s: f64,
    pub at_start_max_s: f64,
    /// While the step ran.
    pub later: u64,
    pub later_max_s: f64,
}

/// Empty if no variant runs it.
pub(crate) fn insert_benchmark(
    joined: &Joined<'_>,
    levels: &Levels<'_>,
) -> Vec<InsertBenchmarkCell> {
    let mut cells = Vec::new();
    let is_own = |variant: usize| joined.variants[variant].workload == WORKLOAD;
    for (variant, step, summaries) in joined.measured_cells().filter(|(v, ..)| is_own(*v)) {
        let rule = levels.of_cells(variant);
        let place = InsertBenchmarkCell { variant, step, ..InsertBenchmarkCell::default() };
        let before = rows_before(joined, variant, step);
        let of = (&joined.steps[step], &joined.variants[variant]);
        let mut cell = cell(place, of, (&summaries, &before), &rule);
        cell.columns = author::columns(&cell, &summaries, (joined.cpus[variant], &rule));
        cells.push(cell);
    }
    let main: Vec<_> =
        cells.iter().map(|cell| (cell.variant, cell.step, main_rate(cell))).collect();
    for cell in &mut cells {
        let Some(baseline) = joined.variants[cell.variant].baseline else { continue };
        let of = |variant| {
            main.iter().find(|(v, s, _)| (*v, *s) == (variant, cell.step)).and_then(|one| one.2)
        };
        let (Some(ours), Some(theirs)) = (of(cell.variant), of(baseline)) else { continue };
        cell.relative = (theirs > 0.0).then(|| ours / theirs);
    }
    cells
}

fn main_rate(cell: &InsertBenchmarkCell) -> Option<f64> {
    let main = cell.queries.as_ref().or(cell.indexed.as_ref()).or(cell.inserts.as_ref());
    main.map(|rate| rate.value)
}

/// Of an INSERT and of a DELETE.
fn rows_per_commit(step: &str, options: &BTreeMap<String, String>) -> Option<u64> {
    let option = |name: &str| options.get(name).and_then(|text| dyno_units::parse_count(text).ok());
    match step {
        "l.i0" => option("commit_i0"),
        "l.i1" => option("commit_i1"),
        "l.i2" => option("commit_i2"),
        _ => {
            let rate = step.trim_start_matches(['q', 'r', 'p']).parse().ok()?;
            Some(option("commit_q")?.min(rate))
        }
    }
}

fn committed(summary: &StepSummary, kind: &str) -> u64 {
    let of = |one: &KindSummary| one.outcomes.get("committed").copied().unwrap_or(0);
    summary.kinds.iter().filter(|one| one.name == kind).map(of).sum()
}

fn rows_before(joined: &Joined<'_>, variant: usize, step: usize) -> Vec<u64> {
    let own = joined.trials.iter().filter(|trial| trial.variant == variant);
    let options = &joined.variants[variant].options;
    let rows = |trial: &crate::join::JoinedTrial<'_>| {
        let before = (0..step).filter_map(|idx| Some((idx, trial.step(idx)?)));
        before
            .map(|(idx, summary)| {
                let batch = rows_per_commit(&joined.steps[idx].name, options).unwrap_or(0);
                batch * committed(summary, "insert")
            })
            .sum()
    };
    own.filter(|trial| trial.step(step).is_some()).map(rows).collect()
}

fn cell(
    mut cell: InsertBenchmarkCell,
    (facts, variant): (&StepRecord, &VariantRecord),
    (summaries, before): (&[&StepSummary], &[u64]),
    rule: &Rule,
) -> InsertBenchmarkCell {
    let batch = rows_per_commit(&facts.name, &variant.options);
    let own = facts.own_of(variant);
    let rate = |done: &dyn Fn(&StepSummary) -> u64, scale: f64, role: &str| {
        let of = |s: &&StepSummary| scale * done(s) as f64 / own_time(own, role, s, done(s));
        let values: Vec<f64> = summaries.iter().map(of).collect();
        let has_any = values.iter().any(|value| *value > 0.0);
        has_any.then(|| estimate(values, "1/s", rule.confidence))
    };
    if let Some(batch) = batch {
        cell.inserts = rate(&|s| committed(s, "insert"), batch as f64, "inserter");
        cell.deletes = rate(&|s| committed(s, "delete"), batch as f64, "deleter");
        cell.rows_per_insert = cell.inserts.is_some().then_some(batch);
    }
    cell.queries = rate(&|s| QUERIES.iter().map(|kind| committed(s, kind)).sum(), 1.0, "");
    let is_indexed = summaries.iter().all(|s| committed(s, "create_indexes") > 0);
    if is_indexed {
        let values = summaries.iter().zip(before);
        let values = values.map(|(s, rows)| *rows as f64 / s.measured_s).collect();
        cell.indexed = Some(estimate(values, "1/s", rule.confidence));
    }
    for (name, kinds) in [("insert", &["insert"][..]), ("delete", &["delete"]), ("query", &QUERIES)]
    {
        for (from, into) in [
            (merged(summaries, kinds, |kind| &kind.service), &mut cell.response),
            (merged(summaries, kinds, |kind| &kind.response), &mut cell.response_from_due),
        ] {
            if !from.is_empty() {
                into.insert(name.to_owned(), buckets(&from));
            }
        }
    }
    cell.sla = batch.and_then(|batch| sla(facts.own_of(variant)?, summaries, batch as f64));
    cell.get_min = get_min(summaries);
    cell
}

/// The step's time for a rate. Statements with a rate count at least as long as the rate gives
/// them: ten at two a second take five seconds, although the last is done after 4.5.
fn own_time(own: Option<&OwnStepRecord>, role: &str, summary: &StepSummary, n: u64) -> f64 {
    let role = own.and_then(|own| own.roles.iter().find(|one| one.name == role));
    let statements = role.and_then(|role| Some(role.rate? * role.clients as f64));
    let planned = statements.filter(|rate| *rate > 0.0).map_or(0.0, |rate| n as f64 / rate);
    summary.measured_s.max(planned)
}

fn merged(
    summaries: &[&StepSummary],
    kinds: &[&str],
    of: fn(&KindSummary) -> &dyno_record::EncodedHistogram,
) -> Histogram<u64> {
    let mut all = new_histogram();
    let wanted = summaries.iter().flat_map(|s| &s.kinds);
    for kind in wanted.filter(|kind| kinds.contains(&kind.name.as_str())) {
        // Unreadable ones of another tool's record are left out.
        if let Some(histogram) = of(kind).decode() {
            let _ = all.add(histogram);
        }
    }
    all
}

/// `None` without an inserters' rate.
fn sla(record: &OwnStepRecord, summaries: &[&StepSummary], batch: f64) -> Option<Sla> {
    let inserter = record.roles.iter().find(|role| role.name == "inserter")?;
    let clients = inserter.clients as f64;
    let statements = inserter.rate? * clients;
    let is_met = |s: &&&StepSummary| {
        let n = committed(s, "insert");
        n as f64 / own_time(Some(record), "inserter", s, n) >= KEPT * statements
    };
    let mut sla = Sla {
        target: statements * batch,
        met: summaries.iter().filter(is_met).count() as u32,
        trials: summaries.len() as u32,
        ..Sla::default()
    };
    let offered = Offered { statements, clients };
    let mut kept = KeptSeconds::default();
    for summary in summaries {
        let Some(seconds) = crate::stalls::seconds_of_kind(summary, "insert") else { continue };
        // Neither what follows the last insert nor its second counts.
        let judged = seconds.iter().rposition(|count| *count > 0.0).unwrap_or(seconds.len());
        kept.add(offered, &seconds[..judged]);
    }
    sla.seconds_met = kept.share();
    sla.longest_miss_s = kept.longest_miss_s;
    sla.window_s = offered.window_s() as u32;
    Some(sla)
}

fn get_min(summaries: &[&StepSummary]) -> Option<GetMin> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let at_start = merged(summaries, &["get_min_start"], |kind| &kind.service);
    let later = merged(summaries, &["get_min"], |kind| &kind.service);
    (!at_start.is_empty()).then(|| GetMin {
        at_start: at_start.len(),
        at_start_median_s: seconds(at_start.value_at_quantile(0.5)),
        at_start_max_s: seconds(at_start.max()),
        later: later.len(),
        later_max_s: if later.is_empty() { 0.0 } else { seconds(later.max()) },
    })
}
