//! Dyno beside pgbench on PostgreSQL: same tables and statements, prepared.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::peer::{Outcome, bench, dyno_outcome, in_turn, number_after, timed};
use super::server::{PrivateServer, Session, Started};
use super::table::Goal;
use super::{Effort, Pair, Row};

const SCALE: u32 = 5;
/// In the row about populating.
const POPULATED: u32 = 20;
const ROWS_PER_SCALE: f64 = 100_000.0;

struct Script {
    dyno: &'static str,
    pgbench: &'static str,
    /// Per transaction.
    statements: f64,
}

const SELECT_ONLY: Script = Script { dyno: "select-only", pgbench: "select-only", statements: 1.0 };
const TPCB: Script = Script { dyno: "tpcb-like", pgbench: "tpcb-like", statements: 7.0 };

pub(crate) fn measure(
    dyno: &Path,
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut server = Started::none();
    for session in Session::BOTH {
        for (script, clients) in [(SELECT_ONLY, 8), (SELECT_ONLY, 64), (TPCB, 8)] {
            let (script_name, words) = (script.dyno, session.words());
            let name = format!("{script_name}, prepared, PostgreSQL, {clients} clients, {words}");
            if !is_wanted(&name) {
                continue;
            }
            let server = server.get(session, start)?;
            pgbench_tables(server, SCALE)?;
            let ours = || with_dyno(dyno, server, &script, clients, effort);
            let theirs = || with_pgbench(server, &script, clients, effort);
            rows.extend(rows_of(&name, &in_turn(&name, effort.pairs, ours, theirs)?));
        }
        rows.extend(command_rows(dyno, (session, &mut server), effort, is_wanted)?);
    }
    let name = format!("populate pgbench scale {POPULATED}, PostgreSQL");
    if is_wanted(&name) {
        rows.push(populate(dyno, server.get(Session::Own, start)?, effort, name)?);
    }
    Ok(rows)
}

/// `dyno pgbench` takes pgbench's command line.
fn command_rows(
    dyno: &Path,
    (session, server): (Session, &mut Started<PrivateServer>),
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (options, statements) in [("-S", 1.0), ("-N", 5.0), ("-b tpcb-like", 7.0)] {
        let words = session.words();
        let name = format!("dyno pgbench {options} -M prepared -c 8, PostgreSQL, {words}");
        if !is_wanted(&name) {
            continue;
        }
        let server = server.get(session, start)?;
        pgbench_tables(server, SCALE)?;
        let line = format!("{options} -n -M prepared -c 8 -j 2 -T {}", effort.seconds);
        let arguments: Vec<String> =
            line.split_whitespace().map(str::to_owned).chain(place(server)?).collect();
        let own = ["pgbench".to_owned(), "--no-record".to_owned()];
        let own: Vec<String> = own.into_iter().chain(arguments.iter().cloned()).collect();
        let program = dyno.to_string_lossy();
        let ours = || of_command_line(&program, &own, statements);
        let theirs = || of_command_line("pgbench", &arguments, statements);
        rows.extend(rows_of(&name, &in_turn(&name, effort.pairs, ours, theirs)?));
    }
    Ok(rows)
}

/// From output in pgbench's format; CPU is that of the whole process.
fn of_command_line(
    program: &str,
    arguments: &[String],
    statements: f64,
) -> anyhow::Result<Outcome> {
    let (report, user_s, system_s) = timed(program, arguments)?;
    let all = number_after(&report, "actually processed:")? * statements;
    Ok(Outcome {
        statements_per_s: number_after(&report, "tps =")? * statements,
        user_us: user_s * 1e6 / all,
        system_us: system_s * 1e6 / all,
    })
}

fn start(session: Session) -> anyhow::Result<PrivateServer> {
    PrivateServer::start("postgresql", "shared_buffers", session)
}

fn rows_of(name: &str, pairs: &[(Outcome, Outcome)]) -> Vec<Row> {
    let row = |measure: &str, unit, goal, value: fn(&Outcome) -> f64| {
        Row::of(format!("{name}: {measure}"), ("pgbench", unit, goal), pairs, value)
    };
    vec![
        row("throughput", "statements/s", Goal::AtLeast(1.0), |o| o.statements_per_s),
        row("user CPU", "µs/statement", Goal::AtMost(1.0), |o| o.user_us),
    ]
}

fn folder_and_port(server: &PrivateServer) -> anyhow::Result<(PathBuf, String)> {
    let folder = server.socket.parent().context("a socket is in a folder")?.to_owned();
    let port = server.socket.extension().context("a socket has a port")?;
    Ok((folder, port.to_string_lossy().into_owned()))
}

fn place(server: &PrivateServer) -> anyhow::Result<Vec<String>> {
    let (folder, port) = folder_and_port(server)?;
    Ok(vec![
        format!("--host={}", folder.display()),
        format!("--port={port}"),
        "--username=dyno".to_owned(),
        "dyno".to_owned(),
    ])
}

/// Dyno's tables come and go in another catalog. Returns seconds.
fn pgbench_tables(server: &PrivateServer, scale: u32) -> anyhow::Result<f64> {
    let mut arguments = vec!["--initialize".to_owned(), "--quiet".to_owned()];
    arguments.push(format!("--scale={scale}"));
    arguments.extend(place(server)?);
    // pgbench prints the time of initialisation on standard error.
    let output = Command::new("pgbench").args(&arguments).output().context("cannot run pgbench")?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    number_after(&report, "done in")
}

fn dyno_arguments(server: &PrivateServer, options: &str) -> anyhow::Result<Vec<String>> {
    let (folder, port) = folder_and_port(server)?;
    let url = format!("postgresql://dyno@localhost:{port}/perf?host={}", folder.display());
    let arguments = format!("tpcb {options} --on {url}");
    Ok(arguments.split_whitespace().map(str::to_owned).collect())
}

fn with_dyno(
    dyno: &Path,
    server: &PrivateServer,
    script: &Script,
    clients: u32,
    effort: Effort,
) -> anyhow::Result<Outcome> {
    let options = format!(
        "--script {} --scale {SCALE} --clients {clients} --duration {}s --warm-up 2s",
        script.dyno, effort.seconds
    );
    dyno_outcome(&bench(dyno, &dyno_arguments(server, &options)?)?)
}

fn with_pgbench(
    server: &PrivateServer,
    script: &Script,
    clients: u32,
    effort: Effort,
) -> anyhow::Result<Outcome> {
    let mut arguments = vec![
        format!("--builtin={}", script.pgbench),
        "--no-vacuum".to_owned(),
        "--protocol=prepared".to_owned(),
        format!("--client={clients}"),
        "--jobs=2".to_owned(),
        format!("--time={}", effort.seconds),
    ];
    arguments.extend(place(server)?);
    of_command_line("pgbench", &arguments, script.statements)
}

/// In rows per second, so the goal is a minimum.
fn populate(
    dyno: &Path,
    server: &PrivateServer,
    effort: Effort,
    name: String,
) -> anyhow::Result<Row> {
    let rows = f64::from(POPULATED) * ROWS_PER_SCALE;
    let mut pairs = Vec::new();
    for nth in 0..effort.pairs.min(3) {
        crate::say(&format!("{name}: pair {}", nth + 1));
        let options =
            format!("--script select-only --scale {POPULATED} --duration 100ms --warm-up 0s");
        let result = bench(dyno, &dyno_arguments(server, &options)?)?;
        let ours = result["data"]["populate_s"].as_f64().unwrap_or(f64::NAN);
        let theirs = pgbench_tables(server, POPULATED)?;
        pairs.push(Pair { dyno: rows / ours, peer: rows / theirs });
    }
    Ok(Row { measure: name, peer: "pgbench", unit: "rows/s", goal: Goal::AtLeast(1.0), pairs })
}
