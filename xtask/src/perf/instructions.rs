//! User-space instructions per point select, of Dyno's workload and of sysbench's script, counted by cachegrind: the
//! same on every machine at any time. (Some versions of callgrind give up at a signal.) Each program runs twice, once
//! for longer: the difference in instructions, divided by that in statements, excludes start-up and populating.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::mariadb::Standing;
use super::peer::number_after;
use super::server::Session;
use super::table::Goal;
use super::{Pair, Row};

const NAME: &str = "user-space instructions per point select, MariaDB, 16 clients";

const SCRIPT_NAME: &str =
    "user-space instructions per statement, dyno sysbench oltp_point_select.lua, MariaDB";

/// Only with valgrind.
pub(crate) fn measure(dyno: &Path, is_wanted: &dyn Fn(&str) -> bool) -> anyhow::Result<Vec<Row>> {
    if !is_wanted(NAME) && !is_wanted(SCRIPT_NAME) {
        return Ok(Vec::new());
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        crate::say("valgrind is not installed: no rows about instructions");
        return Ok(Vec::new());
    }
    let server = Standing::start(Session::Own)?;
    let peer = per_statement(|effort| with_sysbench(&server, effort))?;
    let row = |measure: &str, most, dyno| Row {
        measure: measure.to_owned(),
        peer: "sysbench",
        unit: "instructions",
        goal: Goal::AtMost(most),
        pairs: vec![Pair { dyno, peer }],
    };
    let mut rows = Vec::new();
    if is_wanted(NAME) {
        rows.push(row(NAME, 0.4, per_statement(|effort| with_dyno(dyno, &server, effort))?));
    }
    if is_wanted(SCRIPT_NAME) {
        let ours = per_statement(|effort| with_script(dyno, &server, effort))?;
        rows.push(row(SCRIPT_NAME, 0.8, ours));
    }
    Ok(rows)
}

/// `effort` is 1 for the short run and 4 for the long one; runs return instructions and statements.
fn per_statement(run: impl Fn(u32) -> anyhow::Result<(f64, f64)>) -> anyhow::Result<f64> {
    let (short, long) = (run(1)?, run(4)?);
    Ok((long.0 - short.0) / (long.1 - short.1))
}

/// Returns the output, and the instructions of all threads.
fn counted(program: &Path, arguments: &[String]) -> anyhow::Result<(String, f64)> {
    crate::say(&format!("{NAME}: {}", program.display()));
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--"])
        .arg(program)
        .args(arguments)
        .output()
        .context("cannot run valgrind")?;
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{} failed under valgrind: {err}", program.display());
    }
    // `I   refs:      1,234,567`
    let instructions = number_after(&err.replace(',', ""), "refs:")?;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), instructions))
}

fn with_dyno(dyno: &Path, server: &Standing, effort: u32) -> anyhow::Result<(f64, f64)> {
    let arguments = format!(
        "bench oltp_point_select --json --clients 16 --duration {}s --warm-up 0s --table-size 1000 \
         --on {}",
        2 * effort,
        server.url()
    );
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    let (out, instructions) = counted(dyno, &arguments)?;
    let result: Value = serde_json::from_str(&out).context("dyno bench printed no JSON")?;
    let statements = result["statements"].as_f64().context("no statements were reported")?;
    Ok((instructions, statements))
}

fn command_line(script: &str, server: &Standing, effort: u32) -> Vec<String> {
    let mut arguments = server.sysbench(script);
    let options = [format!("--events={}", 20_000 * effort), "--time=0".to_owned()];
    arguments.extend(options);
    arguments.extend(["--threads=16", "--table-size=1000", "run"].map(str::to_owned));
    arguments
}

fn with_script(dyno: &Path, server: &Standing, effort: u32) -> anyhow::Result<(f64, f64)> {
    let own = ["sysbench".to_owned(), "--no-record".to_owned()];
    let script = "/usr/share/sysbench/oltp_point_select.lua";
    let arguments: Vec<String> =
        own.into_iter().chain(command_line(script, server, effort)).collect();
    let (out, instructions) = counted(dyno, &arguments)?;
    Ok((instructions, number_after(&out, "total:")?))
}

fn with_sysbench(server: &Standing, effort: u32) -> anyhow::Result<(f64, f64)> {
    let arguments = command_line("oltp_point_select", server, effort);
    let (out, instructions) = counted(Path::new("sysbench"), &arguments)?;
    Ok((instructions, number_after(&out, "total:")?))
}
