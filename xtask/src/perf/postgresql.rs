//! Dyno beside pgbench on PostgreSQL: same tables and statements, prepared.

use anyhow::Context;

use super::peer::{Outcome, Perf, number_after, outcome, populated_s, timed};
use super::server::{PrivateServer, Session, Started};
use super::table::{Figure, Goal, Row};

const SCALE: u32 = 5;
/// In the row about populating.
const POPULATED: u32 = 20;
const ROWS_PER_SCALE: u32 = 100_000;

const FIGURES: [Figure<Outcome>; 2] = [
    ("throughput", "statements/s", Goal::AtLeast(1.0), |one| one.per_s),
    ("user CPU", "µs/statement", Goal::AtMost(1.0), |one| one.user_us),
];

const ROWS: Figure<f64> =
    ("", "rows/s", Goal::AtLeast(1.0), |took_s| f64::from(POPULATED * ROWS_PER_SCALE) / took_s);

pub(crate) fn measure(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    let servers = Started::new("postgresql", |_| Ok(()));
    let seconds = perf.effort.seconds;
    let mut rows = Vec::new();
    for session in Session::BOTH {
        let words = session.words();
        for (script, clients, statements) in
            [("select-only", 8, 1.0), ("select-only", 64, 1.0), ("tpcb-like", 8, 7.0)]
        {
            let name = format!("{script}, prepared, PostgreSQL, {clients} clients, {words}");
            if perf.rows((&name, "pgbench"), &FIGURES, &[]).is_empty() {
                continue;
            }
            let server = servers.get(session)?;
            pgbench_tables(&server, SCALE)?;
            let ours = || {
                outcome(&perf.load(&format!(
                    "tpcb --script {script} --scale {SCALE} --clients {clients} --warm-up 2s --on {}",
                    server.url
                ))?)
            };
            let options = format!(
                "--builtin={script} --no-vacuum --protocol=prepared --client={clients} --jobs=2 \
                 --time={seconds} {}",
                place(&server)?
            );
            let theirs = || of_command_line("pgbench", &options, statements);
            rows.extend(perf.beside((&name, "pgbench"), &FIGURES, ours, theirs)?);
        }
        // `dyno pgbench` takes pgbench's command line.
        for (options, statements) in [("-S", 1.0), ("-N", 5.0), ("-b tpcb-like", 7.0)] {
            let name = format!("dyno pgbench {options} -M prepared -c 8, PostgreSQL, {words}");
            if perf.rows((&name, "pgbench"), &FIGURES, &[]).is_empty() {
                continue;
            }
            let server = servers.get(session)?;
            pgbench_tables(&server, SCALE)?;
            let place = place(&server)?;
            let options = format!("{options} -n -M prepared -c 8 -j 2 -T {seconds} {place}");
            let own = format!("pgbench --no-record {options}");
            let ours = || of_command_line(&perf.dyno, &own, statements);
            let theirs = || of_command_line("pgbench", &options, statements);
            rows.extend(perf.beside((&name, "pgbench"), &FIGURES, ours, theirs)?);
        }
    }
    let ours = || {
        let result = perf.bench(&format!(
            "tpcb --script select-only --scale {POPULATED} --duration 100ms --warm-up 0s --on {}",
            servers.get(Session::Own)?.url
        ))?;
        Ok(populated_s(&result))
    };
    let theirs = || pgbench_tables(&*servers.get(Session::Own)?, POPULATED);
    let name = format!("populate pgbench scale {POPULATED}, PostgreSQL");
    rows.extend(perf.few().beside((&name, "pgbench"), &[ROWS], ours, theirs)?);
    Ok(rows)
}

/// From output in pgbench's format.
fn of_command_line(program: &str, words: &str, statements: f64) -> anyhow::Result<Outcome> {
    let report = timed(program, words)?;
    let all = report.after("actually processed:")? * statements;
    Ok(report.outcome(all, report.after("tps =")? * statements))
}

fn place(server: &PrivateServer) -> anyhow::Result<String> {
    let folder = server.socket.parent().context("a socket is in a folder")?.display();
    let port = server.socket.extension().context("a socket has a port")?.display();
    Ok(format!("--host={folder} --port={port} --username=dyno dyno"))
}

/// Returns seconds.
fn pgbench_tables(server: &PrivateServer, scale: u32) -> anyhow::Result<f64> {
    let words = format!("--initialize --quiet --scale={scale} {}", place(server)?);
    // pgbench prints the time of initialisation on standard error.
    number_after(&timed("pgbench", &words)?.err, "done in")
}
