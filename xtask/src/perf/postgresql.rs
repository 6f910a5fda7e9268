//! Dyno beside pgbench on PostgreSQL.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::peer::{Outcome, bench, dyno_outcome, number_after, timed};
use super::server::PrivateServer;
use super::table::Goal;
use super::{Effort, Pair, Row};

const ROWS: u32 = 100_000;

/// Measures the rows that are wanted.
pub(crate) fn measure(
    dyno: &Path,
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut server = None;
    for clients in [8, 64] {
        let name = format!("point select, prepared, PostgreSQL, {clients} clients");
        if !is_wanted(&name) {
            continue;
        }
        if server.is_none() {
            server = Some(PrivateServer::start("postgresql", "shared_buffers")?);
        }
        let server = server.as_ref().expect("it has just been started");
        let script = prepare(server)?;
        let mut pairs = Vec::new();
        for nth in 0..effort.pairs {
            crate::say(&format!("{name}: pair {} of {}", nth + 1, effort.pairs));
            let ours = with_dyno(dyno, server, clients, effort)?;
            let theirs = with_pgbench(server, &script, clients, effort)?;
            pairs.push((ours, theirs));
        }
        let row = |measure: &str, unit, goal, value: fn(&Outcome) -> f64| Row {
            measure: format!("{name}: {measure}"),
            peer: "pgbench",
            unit,
            goal,
            pairs: pairs
                .iter()
                .map(|(dyno, peer)| Pair { dyno: value(dyno), peer: value(peer) })
                .collect(),
        };
        rows.push(row("throughput", "statements/s", Goal::AtLeast(1.0), |o| o.statements_per_s));
        rows.push(row("user CPU", "µs/statement", Goal::AtMost(1.0), |o| o.user_us));
    }
    Ok(rows)
}

fn folder_and_port(server: &PrivateServer) -> anyhow::Result<(PathBuf, String)> {
    let folder = server.socket.parent().context("a socket is in a folder")?.to_owned();
    let port = server.socket.extension().context("a socket has a port")?;
    Ok((folder, port.to_string_lossy().into_owned()))
}

/// Makes pgbench's copy of the table, and the script that asks it what Dyno asks its own.
fn prepare(server: &PrivateServer) -> anyhow::Result<PathBuf> {
    let (folder, port) = folder_and_port(server)?;
    let sql = format!(
        "DROP TABLE IF EXISTS sbtest1; CREATE TABLE sbtest1(id INTEGER PRIMARY KEY, k INTEGER, \
         c CHAR(120), pad CHAR(60)); INSERT INTO sbtest1 SELECT i, i, repeat('0123456789-', 10), \
         repeat('0123456789-', 5) FROM generate_series(1, {ROWS}) AS i; ANALYZE sbtest1;"
    );
    let arguments = [
        format!("--host={}", folder.display()),
        format!("--port={port}"),
        "--username=dyno".to_owned(),
        "--dbname=dyno".to_owned(),
        "--quiet".to_owned(),
        format!("--command={sql}"),
    ];
    timed("psql", &arguments)?;
    let script = std::env::temp_dir().join(format!("dyno-perf-{}.sql", std::process::id()));
    let text = format!("\\set id random(1, {ROWS})\nSELECT c FROM sbtest1 WHERE id = :id;\n");
    std::fs::write(&script, text).context("cannot write pgbench's script")?;
    Ok(script)
}

fn with_dyno(
    dyno: &Path,
    server: &PrivateServer,
    clients: u32,
    effort: Effort,
) -> anyhow::Result<Outcome> {
    let (folder, port) = folder_and_port(server)?;
    let arguments = format!(
        "oltp_point_select --clients {clients} --duration {}s --warm-up 500ms --table-size {ROWS} \
         --on postgresql://dyno@localhost:{port}/perf?host={}",
        effort.seconds,
        folder.display()
    );
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    dyno_outcome(&bench(dyno, &arguments)?)
}

fn with_pgbench(
    server: &PrivateServer,
    script: &Path,
    clients: u32,
    effort: Effort,
) -> anyhow::Result<Outcome> {
    let (folder, port) = folder_and_port(server)?;
    let arguments = [
        format!("--host={}", folder.display()),
        format!("--port={port}"),
        "--username=dyno".to_owned(),
        "--no-vacuum".to_owned(),
        "--protocol=prepared".to_owned(),
        format!("--file={}", script.display()),
        format!("--client={clients}"),
        "--jobs=2".to_owned(),
        format!("--time={}", effort.seconds),
        "dyno".to_owned(),
    ];
    let (report, user_s, system_s) = timed("pgbench", &arguments)?;
    let statements = number_after(&report, "actually processed:")?;
    Ok(Outcome {
        statements_per_s: number_after(&report, "tps =")?,
        user_us: user_s * 1e6 / statements,
        system_us: system_s * 1e6 / statements,
    })
}
