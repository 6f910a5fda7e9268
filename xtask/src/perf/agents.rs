//! The cost of many load generators to the controller: to add up a second of a thousand, and to start
//! one more.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::peer::number_after;
use super::table::Goal;
use super::{Effort, Pair, Row};

const MERGE: &str = "adding up a second of 1,000 load generators × 3 kinds on one core";
const MEMORY: &str = "memory of adding up 1,000 load generators × 3 kinds";
const START: &str = "start of one more local load generator";

/// In the two studies whose starts are compared.
const FEW: usize = 1;
const MANY: usize = 9;

/// These rows have no peer: the ratio is to the goal.
pub(crate) fn measure(
    dyno: &Path,
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Row>> {
    let row = |measure: &str, unit, pairs| Row {
        measure: measure.to_owned(),
        peer: "(target)",
        unit,
        goal: Goal::AtMost(1.0),
        pairs,
    };
    let mut rows = Vec::new();
    if is_wanted(MERGE) || is_wanted(MEMORY) {
        let (mut times, mut memory) = (Vec::new(), Vec::new());
        for nth in 0..effort.pairs {
            crate::say(&format!("{MERGE}: {} of {}", nth + 1, effort.pairs));
            let text = merged(effort.seconds)?;
            times.push(Pair { dyno: number_after(&text, "a second took")?, peer: 1.0 });
            memory.push(Pair { dyno: number_after(&text, "peak memory")?, peer: 2048.0 });
        }
        rows.extend(is_wanted(MERGE).then(|| row(MERGE, "s", times)));
        rows.extend(is_wanted(MEMORY).then(|| row(MEMORY, "MiB", memory)));
    }
    if is_wanted(START) {
        let mut pairs = Vec::new();
        for nth in 0..effort.pairs {
            crate::say(&format!("{START}: {} of {}", nth + 1, effort.pairs));
            let more = start_s(dyno, MANY)? - start_s(dyno, FEW)?;
            pairs.push(Pair { dyno: more.max(0.0) * 1e3 / (MANY - FEW) as f64, peer: 100.0 });
        }
        rows.push(row(START, "ms", pairs));
    }
    Ok(rows)
}

/// Output of the example that adds up this many seconds of a thousand generators.
fn merged(seconds: u32) -> anyhow::Result<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--profile", "dist", "--locked", "--package", "dyno-load"])
        .args(["--example", "merge_agents", "1000", &seconds.to_string()])
        .current_dir(root)
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the example failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// From the start of a trial's agents until all are ready.
fn start_s(dyno: &Path, agents: usize) -> anyhow::Result<f64> {
    let folder = std::env::temp_dir().join(format!("dyno-perf-agents-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = started(dyno, &folder, agents);
    fs::remove_dir_all(&folder)?;
    result
}

fn started(dyno: &Path, folder: &Path, agents: usize) -> anyhow::Result<f64> {
    let names: Vec<String> = (1..=agents).map(|nth| format!("\"g{nth}\"")).collect();
    let study = format!(
        "title = \"x\"\n[database.null]\nproduct = \"null-mysql\"\n[workload.oltp_point_select]\n\
         table_size = 1000\n[host.load]\nnames = [{}]\n[design]\ngenerators = \"load\"\n\
         clients = {MANY}\nworkers = 1\nrepetitions = 1\nwarm_up = \"0s\"\nduration = \"1s\"\n",
        names.join(", ")
    );
    fs::write(folder.join("study.toml"), study)?;
    let output = Command::new(dyno)
        .args(["run", "study.toml", "--new", "--no-reuse"])
        .current_dir(folder)
        .output()
        .context("cannot run dyno")?;
    if !output.status.success() {
        bail!("dyno run failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let events = Command::new("bash")
        .args(["-c", "zcat -f $(ls -d runs/study*/trials/*/events.jsonl* | tail -n 1)"])
        .current_dir(folder)
        .output()
        .context("cannot read the events")?;
    let text = String::from_utf8_lossy(&events.stdout).into_owned();
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut of_start = events.filter(|event| event["phase"] == "start agents");
    of_start.find_map(|event| event["took_s"].as_f64()).context("no agents were started")
}
