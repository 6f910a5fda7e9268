//! The columns of the author's tables: a row for each configuration, in his order and units.

use std::collections::BTreeMap;

use dyno_record::StepSummary;

use super::{InsertBenchmarkCell, QUERIES};
use crate::attribution::field_names;
use crate::kinds::seconds_of_kinds;
use crate::statistics::Rule;

/// Before `tag` (the configuration's name).
pub const COLUMNS: [&str; 20] = [
    "ips", "qps", "rps", "rmbps", "wps", "wmbps", "rpq", "rkbpq", "wpi", "wkbpi", "csps", "cpups",
    "cspq", "cpupq", "dbgb1", "dbgb2", "rss", "maxop", "p50", "p99",
];

/// For quantiles of rates, as the author has it.
const SECONDS_LEAST: usize = 10;

/// The known columns of a cell. `ips` and `qps` are the cell's rates, so that a page has one number
/// for them. `maxop` is the longest insert, in steps with queries the longest query, in seconds.
/// `p50` and `p99` are rates that half, and 99 %, of the seconds reached, for all clients together
/// (the author: the first one), as medians over trials. Values per operation or row are divided
/// here, so that a row's columns agree.
pub(super) fn columns(
    cell: &InsertBenchmarkCell,
    summaries: &[&StepSummary],
    (cpus, rule): (u32, &Rule),
) -> BTreeMap<String, f64> {
    let mut columns: BTreeMap<String, f64> = BTreeMap::new();
    for field in field_names(summaries, cpus, rule) {
        if let Some(value) = field.value.filter(|_| COLUMNS.contains(&field.name.as_str())) {
            columns.insert(field.name, value.value);
        }
    }
    let mut set = |name: &str, value: Option<f64>| match value {
        Some(value) => columns.insert(name.to_owned(), value),
        None => columns.remove(name),
    };
    set("ips", cell.inserts.as_ref().or(cell.indexed.as_ref()).map(|rate| rate.value));
    set("qps", Some(cell.queries.as_ref().map_or(0.0, |rate| rate.value)));
    let is_read = cell.queries.is_some();
    let operation = if is_read { "query" } else { "insert" };
    set("maxop", cell.response.get(operation).map(|buckets| buckets.max_s));
    let scale = if is_read { 1.0 } else { cell.rows_per_insert.unwrap_or(1) as f64 };
    let kinds: &[&str] = if is_read { &QUERIES } else { &["insert"] };
    set("p50", reached(summaries, kinds, 0.5).map(|rate| rate * scale));
    set("p99", reached(summaries, kinds, 0.99).map(|rate| rate * scale));
    divide(&mut columns, f64::from(cpus));
    columns
}

/// Others divided by the rate of operations (queries, else inserted rows) or of inserted rows.
fn divide(columns: &mut BTreeMap<String, f64>, cpus: f64) {
    let rate = |name: &str| columns.get(name).copied().filter(|rate| *rate > 0.0);
    let inserts = rate("ips");
    let operations = rate("qps").or(inserts);
    let divided = [
        ("rpq", "rps", 1.0, operations),
        ("rkbpq", "rmbps", 1024.0, operations),
        ("wpi", "wps", 1.0, inserts),
        ("wkbpi", "wmbps", 1024.0, inserts),
        ("cspq", "csps", 1.0, operations),
        ("cpupq", "cpups", cpus / 100.0 * 1e6, operations),
    ]
    .map(|(name, of, scale, by)| {
        let value = columns.get(of).zip(by).map(|(of, by)| of * scale / by);
        (name, value)
    });
    for (name, value) in divided {
        match value {
            Some(value) => columns.insert(name.to_owned(), value),
            None => columns.remove(name),
        };
    }
}

/// The rate that a share of the seconds reached, as a median over trials; `None` if a trial has too
/// few seconds, or does not separate kinds.
fn reached(summaries: &[&StepSummary], kinds: &[&str], share: f64) -> Option<f64> {
    let of_trials: Option<Vec<f64>> =
        summaries.iter().map(|summary| of_trial(summary, kinds, share)).collect();
    let mut values = of_trials?;
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn of_trial(summary: &StepSummary, kinds: &[&str], share: f64) -> Option<f64> {
    let mut seconds = seconds_of_kinds(summary, kinds);
    // The last second of a step is not whole.
    let n = (summary.measured_s + 0.05) as usize;
    seconds.resize(n.min(seconds.len() + 1), 0.0);
    if seconds.len() < SECONDS_LEAST {
        return None;
    }
    seconds.sort_by(|a, b| b.total_cmp(a));
    let place = (share * seconds.len() as f64) as usize;
    seconds.get(place.min(seconds.len() - 1)).copied()
}
