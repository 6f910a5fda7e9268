//! The generator's own limits: against null servers, which reply at once; its memory for many users of db_STRESS, on a
//! real server; and the cost of many load generators to the controller. These rows have no peer: the ratio is to the
//! goal.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::peer::{Perf, in_turn, number, timed_in};
use super::table::{Figure, Goal, Row};

const TARGET: &str = "(target)";

const MERGE: &str = "adding up a second of 1,000 load generators × 3 kinds on one core";
const MEMORY: &str = "memory of adding up 1,000 load generators × 3 kinds";

/// In the two studies whose starts are compared.
const FEW: usize = 1;
const MANY: usize = 9;

pub(crate) fn measure(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut one = |name: &str, (unit, goal, target): (_, _, f64), words: &str, pointer: &str| {
        let figure: Figure<f64> = ("", unit, goal, |value| *value);
        let ours = || number(&perf.load(&format!("{words} --workers 1 --warm-up 1s"))?, pointer);
        rows.extend(perf.beside((name, TARGET), &[figure], ours, || Ok(target))?);
        anyhow::Ok(())
    };
    for product in ["null-mysql", "null-postgresql"] {
        one(
            &format!("statements/s of one worker, {product}, 64 clients"),
            ("statements/s", Goal::AtLeast(1.0), 200_000.0),
            &format!("oltp_point_select --on {product} --clients 64 --table-size 1000"),
            "/statements_per_s",
        )?;
    }
    one(
        "memory of 9 900 clients on one worker, null-mysql",
        ("MiB", Goal::AtMost(1.0), 256.0),
        // Clients and server in one process: 19,800 open files, where many machines allow 20,000.
        "oltp_point_select --on null-mysql --clients 9900 --table-size 1000",
        "/generator/rss_mib",
    )?;
    one(
        "lag p99 of 20 000 arrivals/s, null-mysql",
        ("µs", Goal::AtMost(1.0), 500.0),
        "oltp_point_select --on null-mysql --rate 20000 --clients 64 --table-size 1000",
        "/lag_us/p99",
    )?;
    one(
        "memory of 1600 db_STRESS users on one worker, MariaDB",
        ("MiB", Goal::AtMost(1.0), 128.0),
        // The published figures go up to 1600 users, each with at least ten objects of its own.
        "dbstress --on mariadb --clients 1600 --obj-table-size 20000 --setting max_connections=2000",
        "/generator/rss_mib",
    )?;
    rows.extend(agents(perf)?);
    Ok(rows)
}

fn agents(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    if perf.wants(MERGE) || perf.wants(MEMORY) {
        let pairs = in_turn(MERGE, perf.effort.pairs, || merged(perf), || Ok((1.0, 2048.0)))?;
        let took: Figure<(f64, f64)> = ("", "s", Goal::AtMost(1.0), |one| one.0);
        let memory: Figure<(f64, f64)> = ("", "MiB", Goal::AtMost(1.0), |one| one.1);
        rows.extend(perf.rows((MERGE, TARGET), &[took], &pairs));
        rows.extend(perf.rows((MEMORY, TARGET), &[memory], &pairs));
    }
    let ours = || {
        let more = start_s(perf, MANY)? - start_s(perf, FEW)?;
        Ok(more.max(0.0) * 1e3 / (MANY - FEW) as f64)
    };
    let start: Figure<f64> = ("", "ms", Goal::AtMost(1.0), |value| *value);
    let name = "start of one more local load generator";
    rows.extend(perf.beside((name, TARGET), &[start], ours, || Ok(100.0))?);
    Ok(rows)
}

/// Time and memory that the example takes, for a second of those that it adds up.
fn merged(perf: &Perf) -> anyhow::Result<(f64, f64)> {
    let words = format!(
        "run --quiet --profile dist --locked --package dyno-load --example merge_agents 1000 {}",
        perf.effort.seconds
    );
    let report = timed_in(&crate::shell::root(), env!("CARGO"), &words)?;
    Ok((report.after("a second took")?, report.after("peak memory")?))
}

/// From the start of a trial's agents until all are ready.
fn start_s(perf: &Perf, agents: usize) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let folder: &Path = folder.path();
    let names: Vec<String> = (1..=agents).map(|nth| format!("\"g{nth}\"")).collect();
    let study = format!(
        "title = \"x\"\n[database.null]\nproduct = \"null-mysql\"\n[workload.oltp_point_select]\n\
         table_size = 1000\n[host.load]\nnames = [{}]\n[design]\ngenerators = \"load\"\n\
         clients = {MANY}\nworkers = 1\nrepetitions = 1\nwarm_up = \"0s\"\nduration = \"1s\"\n",
        names.join(", ")
    );
    std::fs::write(folder.join("study.toml"), study)?;
    timed_in(folder, &perf.dyno, "run study.toml --new --no-reuse")?;
    let script = "zcat -f $(ls -d runs/study*/trials/*/events.jsonl* | tail -n 1)";
    let events =
        crate::shell::output(Command::new("bash").args(["-c", script]).current_dir(folder))?;
    let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut of_start = events.filter(|event| event["phase"] == "start agents");
    of_start.find_map(|event| event["took_s"].as_f64()).context("no agents were started")
}
