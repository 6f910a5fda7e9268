//! Dyno beside sysbench on MariaDB.

use std::process::Command;

use super::peer::{Outcome, Perf, Report, number, number_after, outcome, populated_s, timed};
use super::server::{PrivateServer, Session, Started};
use super::table::{Figure, Goal, Row};

const TABLES: u32 = 4;
const ROWS: u32 = 25_000;
/// Of each of the four tables, in rows about populating.
const POPULATED: u32 = 250_000;
/// Of each of the four tables.
const DUMPED: u32 = 1_000_000;

const FIGURES: [Figure<Outcome>; 3] = [
    ("throughput", "statements/s", Goal::AtLeast(1.0), |one| one.per_s),
    ("user CPU", "µs/statement", Goal::AtMost(0.5), |one| one.user_us),
    ("user + system CPU", "µs/statement", Goal::AtMost(0.85), Outcome::cpu_us),
];

/// `dyno sysbench` takes sysbench's command line and script.
const OF_SCRIPTS: [Figure<Outcome>; 2] =
    [FIGURES[0], ("user CPU", "µs/statement", Goal::AtMost(0.8), |one| one.user_us)];

pub(crate) fn measure(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    let servers = Started::new("mariadb", tables);
    let run = |script: &str, threads: u32, session| {
        let time = perf.effort.seconds;
        let options = format!("--threads={threads} --time={time} --table-size={ROWS} run");
        anyhow::Ok(words(&*servers.get(session)?, script, &options))
    };
    let mut rows = Vec::new();
    for session in Session::BOTH {
        for script in ["oltp_point_select", "oltp_read_only"] {
            for clients in [1, 16, 64, 256] {
                let s = if clients == 1 { "" } else { "s" };
                let name = format!("{script}, MariaDB, {clients} client{s}, {}", session.words());
                let figures = &FIGURES[..if matches!(clients, 16 | 64) { 3 } else { 1 }];
                let ours = || {
                    outcome(&perf.load(&format!(
                        "{script} --clients {clients} --warm-up 2s --tables {TABLES} \
                         --table-size {ROWS} --on {}",
                        servers.get(session)?.url
                    ))?)
                };
                let theirs = || of_report(&timed("sysbench", &run(script, clients, session)?)?);
                rows.extend(perf.beside((&name, "sysbench"), figures, ours, theirs)?);
            }
        }
        for script in ["oltp_point_select", "oltp_read_write"] {
            for threads in [16, 64] {
                let of = session.words();
                let name = format!("dyno sysbench {script}.lua, MariaDB, {threads} threads, {of}");
                let script = format!("/usr/share/sysbench/{script}.lua");
                let ours = || {
                    let run = run(&script, threads, session)?;
                    of_report(&timed(&perf.dyno, &format!("sysbench --no-record {run}"))?)
                };
                let theirs = || of_report(&timed("sysbench", &run(&script, threads, session)?)?);
                rows.extend(perf.beside((&name, "sysbench"), &OF_SCRIPTS, ours, theirs)?);
            }
        }
    }
    rows.extend(dump_and_restore(&perf.few(), &servers)?);
    rows.extend(populate(&perf.few(), &servers)?);
    Ok(rows)
}

fn tables(server: &PrivateServer) -> anyhow::Result<()> {
    sysbench(server, &format!("--table-size={ROWS}"), "prepare").map(drop)
}

/// Make sysbench do what Dyno does.
fn words(server: &PrivateServer, script: &str, options: &str) -> String {
    // Numbers are uniform by Dyno's default, but not by that of sysbench 1.0.20.
    format!(
        "{script} --db-driver=mysql --mysql-user=root --mysql-db=dyno --mysql-socket={} \
         --tables={TABLES} --rand-type=uniform {options}",
        server.socket.display()
    )
}

/// All its scripts have the same tables.
fn sysbench(server: &PrivateServer, options: &str, command: &str) -> anyhow::Result<Report> {
    timed("sysbench", &words(server, "oltp_point_select", &format!("{options} {command}")))
}

/// In sysbench's format.
fn of_report(report: &Report) -> anyhow::Result<Outcome> {
    let statements = report.after("total:")?;
    Ok(report.outcome(statements, statements / report.after("total time:")?))
}

/// Beside mydumper and myloader, with equal tables and files; nobody flushes, each restores its own dump.
fn dump_and_restore(perf: &Perf, servers: &Started) -> anyhow::Result<Vec<Row>> {
    const DUMP: &str = "dump 4 × 1M rows, MariaDB, 2 threads";
    const RESTORE: &str = "restore 4 × 1M rows, MariaDB, 2 threads";
    const RATE: fn(&f64) -> f64 = |took_s| f64::from(TABLES * DUMPED) / took_s;
    if !perf.wants(DUMP) && !perf.wants(RESTORE) {
        return Ok(Vec::new());
    }
    let server = servers.get(Session::Own)?;
    let options = format!("--table-size={DUMPED} --threads=2");
    sysbench(&server, &options, "cleanup")?;
    sysbench(&server, &options, "prepare")?;
    let folder = tempfile::tempdir()?;
    let socket = server.socket.display().to_string();
    let url = format!("mysql://root@localhost/dyno?socket={socket}");
    let own = folder.path().join("dyno").display().to_string();
    let peers = folder.path().join("mydumper").display().to_string();
    let common = format!("--socket={socket} --user=root --database=dyno --threads=2");
    let (mut dumped, mut restored) = (Vec::new(), Vec::new());
    for nth in 0..perf.effort.pairs {
        crate::shell::say(&format!("{DUMP}: pair {}", nth + 1));
        for path in [&own, &peers] {
            let _ = std::fs::remove_dir_all(path);
        }
        let took = |program: &str, words: String| anyhow::Ok(timed(program, &words)?.took_s);
        let restored_by = |program: &str, words: String| {
            sysbench(&server, &options, "cleanup")?;
            took(program, words)
        };
        dumped.push((
            took(&perf.dyno, format!("dump {url} {own} --threads 2 --rows 200k --no-sync"))?,
            took("mydumper", format!("{common} --rows=200000 --outputdir={peers}"))?,
        ));
        restored.push((
            restored_by(&perf.dyno, format!("restore {own} {url} --threads 2"))?,
            restored_by("myloader", format!("{common} --directory={peers}"))?,
        ));
    }
    // Other rows need small tables.
    sysbench(&server, &options, "cleanup")?;
    tables(&server)?;
    let figure = |least| [("", "rows/s", Goal::AtLeast(least), RATE)];
    let mut rows = perf.rows((DUMP, "mydumper"), &figure(1.5), &dumped);
    rows.extend(perf.rows((RESTORE, "myloader"), &figure(1.2), &restored));
    Ok(rows)
}

/// In rows per second, so the goal is a minimum.
fn populate(perf: &Perf, servers: &Started) -> anyhow::Result<Vec<Row>> {
    const FIGURE: Figure<f64> =
        ("", "rows/s", Goal::AtLeast(2.5), |took_s| f64::from(TABLES * POPULATED) / took_s);
    let name = format!("populate {TABLES} × {POPULATED} rows, MariaDB");
    let ours = || {
        let result = perf.bench(&format!(
            "oltp_point_select --duration 100ms --warm-up 0s --tables {TABLES} --table-size \
             {POPULATED} --on {}",
            servers.get(Session::Own)?.url
        ))?;
        Ok(populated_s(&result))
    };
    let theirs = || {
        let server = servers.get(Session::Own)?;
        let options = format!("--table-size={POPULATED} --threads=2");
        sysbench(&server, &options, "cleanup")?;
        Ok(sysbench(&server, &options, "prepare")?.took_s)
    };
    perf.beside((&name, "sysbench"), &[FIGURE], ours, theirs)
}

const INSTRUCTIONS: &str = "user-space instructions per point select, MariaDB, 16 clients";

const SCRIPT_INSTRUCTIONS: &str =
    "user-space instructions per statement, dyno sysbench oltp_point_select.lua, MariaDB";

/// User-space instructions per point select, of Dyno's workload and of sysbench's script, counted by cachegrind: the same
/// on every machine at any time; none without valgrind. (Some versions of callgrind give up at a signal.) Each program
/// runs twice, once for longer: the difference in instructions, divided by that in statements, excludes start-up and
/// populating.
pub(crate) fn instructions(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    if !perf.wants(INSTRUCTIONS) && !perf.wants(SCRIPT_INSTRUCTIONS) {
        return Ok(Vec::new());
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        crate::shell::say("valgrind is not installed: no rows about instructions");
        return Ok(Vec::new());
    }
    let server = PrivateServer::start("mariadb", Session::Own)?;
    tables(&server)?;
    let of_sysbench = |report: &Report| report.after("total:");
    let of_script = |script: &str, effort: u32| {
        let events = 20_000 * effort;
        let options = format!("--events={events} --time=0 --threads=16 --table-size=1000 run");
        words(&server, script, &options)
    };
    let peer = per_statement(of_sysbench, |effort| {
        format!("sysbench {}", of_script("oltp_point_select", effort))
    })?;
    let mut rows = Vec::new();
    let figure =
        |most| -> [Figure<f64>; 1] { [("", "instructions", Goal::AtMost(most), |value| *value)] };
    if perf.wants(INSTRUCTIONS) {
        let of_bench = |report: &Report| number(&serde_json::from_str(&report.out)?, "/statements");
        let ours = per_statement(of_bench, |effort| {
            format!(
                "{} bench oltp_point_select --json --clients 16 --duration {}s --warm-up 0s \
                 --table-size 1000 --on {}",
                perf.dyno,
                2 * effort,
                server.url
            )
        })?;
        rows.extend(perf.rows((INSTRUCTIONS, "sysbench"), &figure(0.4), &[(ours, peer)]));
    }
    if perf.wants(SCRIPT_INSTRUCTIONS) {
        let script = "/usr/share/sysbench/oltp_point_select.lua";
        let ours = per_statement(of_sysbench, |effort| {
            format!("{} sysbench --no-record {}", perf.dyno, of_script(script, effort))
        })?;
        rows.extend(perf.rows((SCRIPT_INSTRUCTIONS, "sysbench"), &figure(0.8), &[(ours, peer)]));
    }
    Ok(rows)
}

/// `effort` is 1 for the short run and 4 for the long one. Instructions are those of all threads.
fn per_statement(
    statements: impl Fn(&Report) -> anyhow::Result<f64>,
    command: impl Fn(u32) -> String,
) -> anyhow::Result<f64> {
    let run = |effort| {
        let command = command(effort);
        crate::shell::say(&format!("{INSTRUCTIONS}: {command}"));
        let report = timed(
            "valgrind",
            &format!(
                "--tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null -- {command}"
            ),
        )?;
        // `I   refs:      1,234,567`
        anyhow::Ok((number_after(&report.err.replace(',', ""), "refs:")?, statements(&report)?))
    };
    let (short, long) = (run(1)?, run(4)?);
    Ok((long.0 - short.0) / (long.1 - short.1))
}
