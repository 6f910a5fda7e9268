//! The generator's memory for many users of db_STRESS, on a real server.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::peer::bench;
use super::table::Goal;
use super::{Effort, Pair, Row};

/// Limit of the generator's memory, with all clients on one worker.
const REACH_MIB: f64 = 128.0;

/// The published figures go up to 1600 users, each with at least ten objects of its own.
const ARGUMENTS: &str = "dbstress --on mariadb --clients 1600 --workers 1 --obj-table-size 20000 \
                         --setting max_connections=2000 --warm-up 1s";

/// No peer: the ratio is to the goal.
pub(crate) fn measure(
    dyno: &Path,
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Row>> {
    let name = "memory of 1600 db_STRESS users on one worker, MariaDB";
    if !is_wanted(name) {
        return Ok(Vec::new());
    }
    let mut pairs = Vec::new();
    for nth in 0..effort.pairs {
        crate::say(&format!("{name}: {} of {}", nth + 1, effort.pairs));
        pairs.push(Pair { dyno: resident_mib(dyno, effort)?, peer: REACH_MIB });
    }
    Ok(vec![Row {
        measure: name.to_owned(),
        peer: "(target)",
        unit: "MiB",
        goal: Goal::AtMost(1.0),
        pairs,
    }])
}

fn resident_mib(dyno: &Path, effort: Effort) -> anyhow::Result<f64> {
    let arguments = format!("{ARGUMENTS} --duration {}s", effort.seconds);
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    let result = bench(dyno, &arguments)?;
    let resident = result.pointer("/generator/rss_mib").and_then(Value::as_f64);
    resident.context("dyno bench did not report its memory")
}
