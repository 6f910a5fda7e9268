//! The generator's own limits, against null servers, which reply at once.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::peer::bench;
use super::table::Goal;
use super::{Effort, Pair, Row};

/// These rows have no peer: the ratio is to the goal.
pub(crate) fn measure(
    dyno: &Path,
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for product in ["null-mysql", "null-postgresql"] {
        rows.extend(one_row(
            dyno,
            effort,
            is_wanted,
            &Measure {
                name: format!("statements/s of one worker, {product}, 64 clients"),
                unit: "statements/s",
                goal: Goal::AtLeast(1.0),
                reach: 200_000.0,
                arguments: format!("oltp_point_select --on {product} --clients 64 --workers 1"),
                pointer: "/statements_per_s",
            },
        )?);
    }
    rows.extend(one_row(
        dyno,
        effort,
        is_wanted,
        &Measure {
            // Clients and server in one process: 19,800 open files, where many machines allow
            // 20,000.
            name: "memory of 9 900 clients on one worker, null-mysql".to_owned(),
            unit: "MiB",
            goal: Goal::AtMost(1.0),
            reach: 256.0,
            arguments: "oltp_point_select --on null-mysql --clients 9900 --workers 1".to_owned(),
            pointer: "/generator/rss_mib",
        },
    )?);
    rows.extend(one_row(
        dyno,
        effort,
        is_wanted,
        &Measure {
            name: "lag p99 of 20 000 arrivals/s, null-mysql".to_owned(),
            unit: "µs",
            goal: Goal::AtMost(1.0),
            reach: 500.0,
            arguments: "oltp_point_select --on null-mysql --rate 20000 --clients 64 --workers 1"
                .to_owned(),
            pointer: "/lag_us/p99",
        },
    )?);
    Ok(rows)
}

struct Measure {
    name: String,
    unit: &'static str,
    goal: Goal,
    /// The goal's minimum or maximum.
    reach: f64,
    arguments: String,
    pointer: &'static str,
}

fn one_row(
    dyno: &Path,
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
    measure: &Measure,
) -> anyhow::Result<Option<Row>> {
    if !is_wanted(&measure.name) {
        return Ok(None);
    }
    let mut pairs = Vec::new();
    for nth in 0..effort.pairs {
        crate::say(&format!("{}: {} of {}", measure.name, nth + 1, effort.pairs));
        let times = format!("--duration {}s --warm-up 1s --table-size 1000", effort.seconds);
        let arguments: Vec<String> = measure
            .arguments
            .split_whitespace()
            .chain(times.split_whitespace())
            .map(str::to_owned)
            .collect();
        let result = bench(dyno, &arguments)?;
        let value = result.pointer(measure.pointer).and_then(Value::as_f64);
        let dyno =
            value.with_context(|| format!("dyno bench did not report {}", measure.pointer))?;
        pairs.push(Pair { dyno, peer: measure.reach });
    }
    Ok(Some(Row {
        measure: measure.name.clone(),
        peer: "(target)",
        unit: measure.unit,
        goal: measure.goal,
        pairs,
    }))
}
