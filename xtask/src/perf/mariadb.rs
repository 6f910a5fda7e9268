//! Dyno beside sysbench on MariaDB.

use std::path::Path;

use super::peer::{Outcome, bench, dyno_outcome, in_turn, number_after, timed};
use super::server::{PrivateServer, Session, Started};
use super::table::Goal;
use super::{Effort, Pair, Row};

const TABLES: u32 = 4;
const ROWS: u32 = 25_000;
/// Of each of the four tables, in rows about populating.
const POPULATED: u32 = 250_000;

pub(crate) fn measure(
    dyno: &Path,
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut server = Started::none();
    for session in Session::BOTH {
        for script in ["oltp_point_select", "oltp_read_only"] {
            for clients in [1, 16, 64, 256] {
                let s = if clients == 1 { "" } else { "s" };
                let name = format!("{script}, MariaDB, {clients} client{s}, {}", session.words());
                if !is_wanted(&name) {
                    continue;
                }
                let server = server.get(session, Standing::start)?;
                let ours = || with_dyno(dyno, server, script, clients, effort);
                let theirs = || with_sysbench(server, script, clients, effort);
                rows.extend(rows_of(&name, clients, &in_turn(&name, effort.pairs, ours, theirs)?));
            }
        }
        for script in ["oltp_point_select", "oltp_read_write"] {
            for threads in [16, 64] {
                let session_words = session.words();
                let name = format!(
                    "dyno sysbench {script}.lua, MariaDB, {threads} threads, {session_words}"
                );
                if is_wanted(&name) {
                    let what = (name.as_str(), script, threads);
                    let server = server.get(session, Standing::start)?;
                    rows.extend(command_rows(dyno, server, effort, what)?);
                }
            }
        }
    }
    if is_wanted(DUMP) || is_wanted(RESTORE) {
        let server = server.get(Session::Own, Standing::start)?;
        let found = dump_and_restore(dyno, server, effort)?;
        rows.extend(found.into_iter().filter(|row| is_wanted(&row.measure)));
    }
    let name = format!("populate {TABLES} × {POPULATED} rows, MariaDB");
    if is_wanted(&name) {
        rows.push(populate(dyno, server.get(Session::Own, Standing::start)?, effort, name)?);
    }
    Ok(rows)
}

/// `dyno sysbench` takes sysbench's command line and script.
fn command_rows(
    dyno: &Path,
    server: &Standing,
    effort: Effort,
    (name, script, threads): (&str, &str, u32),
) -> anyhow::Result<Vec<Row>> {
    let mut arguments = server.sysbench(&format!("/usr/share/sysbench/{script}.lua"));
    arguments.extend([
        format!("--threads={threads}"),
        format!("--time={}", effort.seconds),
        format!("--table-size={ROWS}"),
        "run".to_owned(),
    ]);
    let own = ["sysbench".to_owned(), "--no-record".to_owned()];
    let own: Vec<String> = own.into_iter().chain(arguments.iter().cloned()).collect();
    let program = dyno.to_string_lossy();
    let ours = || of_report(timed(&program, &own)?);
    let theirs = || of_report(timed("sysbench", &arguments)?);
    let pairs = in_turn(name, effort.pairs, ours, theirs)?;
    let row = |measure: &str, unit, goal, value: fn(&Outcome) -> f64| {
        Row::of(format!("{name}: {measure}"), ("sysbench", unit, goal), &pairs, value)
    };
    Ok(vec![
        row("throughput", "statements/s", Goal::AtLeast(1.0), |o| o.statements_per_s),
        row("user CPU", "µs/statement", Goal::AtMost(0.8), |o| o.user_us),
    ])
}

/// With sysbench's tables; Dyno's come and go in another catalog.
pub(crate) struct Standing(PrivateServer);

impl Standing {
    pub(crate) fn start(session: Session) -> anyhow::Result<Standing> {
        let server = PrivateServer::start("mariadb", "innodb_buffer_pool_size", session)?;
        let server = Standing(server);
        sysbench(&server, "oltp_read_only", &[format!("--table-size={ROWS}")], "prepare")?;
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("mysql://root@localhost/perf?socket={}", self.0.socket.display())
    }

    /// Make sysbench do what Dyno does.
    pub(crate) fn sysbench(&self, script: &str) -> Vec<String> {
        vec![
            script.to_owned(),
            "--db-driver=mysql".to_owned(),
            "--mysql-user=root".to_owned(),
            "--mysql-db=dyno".to_owned(),
            format!("--mysql-socket={}", self.0.socket.display()),
            format!("--tables={TABLES}"),
            // Dyno's default, but not that of sysbench 1.0.20.
            "--rand-type=uniform".to_owned(),
        ]
    }
}

fn rows_of(name: &str, clients: u32, pairs: &[(Outcome, Outcome)]) -> Vec<Row> {
    let row = |measure: &str, unit, goal, value: fn(&Outcome) -> f64| {
        Row::of(format!("{name}: {measure}"), ("sysbench", unit, goal), pairs, value)
    };
    let mut rows =
        vec![row("throughput", "statements/s", Goal::AtLeast(1.0), |o| o.statements_per_s)];
    if clients == 16 || clients == 64 {
        rows.push(row("user CPU", "µs/statement", Goal::AtMost(0.5), |o| o.user_us));
        let both: fn(&Outcome) -> f64 = |o| o.user_us + o.system_us;
        rows.push(row("user + system CPU", "µs/statement", Goal::AtMost(0.85), both));
    }
    rows
}

fn with_dyno(
    dyno: &Path,
    server: &Standing,
    script: &str,
    clients: u32,
    effort: Effort,
) -> anyhow::Result<Outcome> {
    let arguments = format!(
        "{script} --clients {clients} --duration {}s --warm-up 2s --tables {TABLES} \
         --table-size {ROWS} --on",
        effort.seconds
    );
    let mut arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    arguments.push(server.url());
    dyno_outcome(&bench(dyno, &arguments)?)
}

fn sysbench(
    server: &Standing,
    script: &str,
    options: &[String],
    command: &str,
) -> anyhow::Result<(String, f64, f64)> {
    let mut arguments = server.sysbench(script);
    arguments.extend_from_slice(options);
    arguments.push(command.to_owned());
    timed("sysbench", &arguments)
}

fn with_sysbench(
    server: &Standing,
    script: &str,
    clients: u32,
    effort: Effort,
) -> anyhow::Result<Outcome> {
    let options = [
        format!("--threads={clients}"),
        format!("--time={}", effort.seconds),
        format!("--table-size={ROWS}"),
    ];
    of_report(sysbench(server, script, &options, "run")?)
}

/// From output in sysbench's format; CPU is that of the whole process.
fn of_report((report, user_s, system_s): (String, f64, f64)) -> anyhow::Result<Outcome> {
    let statements = number_after(&report, "total:")?;
    let seconds = number_after(&report, "total time:")?;
    Ok(Outcome {
        statements_per_s: statements / seconds,
        user_us: user_s * 1e6 / statements,
        system_us: system_s * 1e6 / statements,
    })
}

/// Of each of the four tables.
const DUMPED: u32 = 1_000_000;
const DUMP: &str = "dump 4 × 1M rows, MariaDB, 2 threads";
const RESTORE: &str = "restore 4 × 1M rows, MariaDB, 2 threads";

/// Beside mydumper and myloader, with equal tables and files; nobody flushes, each restores its own dump.
fn dump_and_restore(dyno: &Path, server: &Standing, effort: Effort) -> anyhow::Result<Vec<Row>> {
    let options = [format!("--table-size={DUMPED}"), "--threads=2".to_owned()];
    sysbench(server, "oltp_point_select", &options, "cleanup")?;
    sysbench(server, "oltp_point_select", &options, "prepare")?;
    let folder = tempfile::tempdir()?;
    let program = dyno.to_string_lossy().into_owned();
    let socket = server.0.socket.display().to_string();
    let url = format!("mysql://root@localhost/dyno?socket={socket}");
    let own = folder.path().join("dyno").display().to_string();
    let peers = folder.path().join("mydumper").display().to_string();
    let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let table = |measure: &str, peer, goal| Row {
        measure: measure.to_owned(),
        peer,
        unit: "rows/s",
        goal: Goal::AtLeast(goal),
        pairs: Vec::new(),
    };
    let mut dumped = table(DUMP, "mydumper", 1.5);
    let mut restored = table(RESTORE, "myloader", 1.2);
    let rows = f64::from(TABLES * DUMPED);
    let rate = |took: f64| rows / took;
    for nth in 0..effort.pairs.min(3) {
        crate::say(&format!("{DUMP}: pair {}", nth + 1));
        for path in [&own, &peers] {
            let _ = std::fs::remove_dir_all(path);
        }
        let command = format!("dump {url} {own} --threads 2 --rows 200k --no-sync");
        let ours = rate(elapsed(&program, &words(command))?);
        let command = format!(
            "--socket={socket} --user=root --database=dyno --threads=2 --rows=200000 --outputdir={peers}"
        );
        dumped.pairs.push(Pair { dyno: ours, peer: rate(elapsed("mydumper", &words(command))?) });
        sysbench(server, "oltp_point_select", &options, "cleanup")?;
        let ours = rate(elapsed(&program, &words(format!("restore {own} {url} --threads 2")))?);
        sysbench(server, "oltp_point_select", &options, "cleanup")?;
        let command = format!(
            "--socket={socket} --user=root --database=dyno --threads=2 --directory={peers}"
        );
        restored.pairs.push(Pair { dyno: ours, peer: rate(elapsed("myloader", &words(command))?) });
    }
    // Other rows need small tables.
    sysbench(server, "oltp_point_select", &options, "cleanup")?;
    sysbench(server, "oltp_read_only", &[format!("--table-size={ROWS}")], "prepare")?;
    Ok(vec![dumped, restored])
}

#[expect(clippy::disallowed_methods, reason = "programs run in real time")]
fn elapsed(program: &str, arguments: &[String]) -> anyhow::Result<f64> {
    let began = std::time::Instant::now();
    timed(program, arguments)?;
    Ok(began.elapsed().as_secs_f64())
}

/// In rows per second, so the goal is a minimum.
fn populate(dyno: &Path, server: &Standing, effort: Effort, name: String) -> anyhow::Result<Row> {
    let rows = f64::from(TABLES * POPULATED);
    let mut pairs = Vec::new();
    for nth in 0..effort.pairs.min(3) {
        crate::say(&format!("{name}: pair {}", nth + 1));
        let arguments = format!(
            "oltp_point_select --duration 100ms --warm-up 0s --tables {TABLES} --table-size \
             {POPULATED} --on {}",
            server.url()
        );
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let result = bench(dyno, &arguments)?;
        let ours = result["data"]["populate_s"].as_f64().unwrap_or(f64::NAN);
        let options = [format!("--table-size={POPULATED}"), "--threads=2".to_owned()];
        sysbench(server, "oltp_point_select", &options, "cleanup")?;
        let began = std::process::Command::new("date").arg("+%s.%N").output()?;
        sysbench(server, "oltp_point_select", &options, "prepare")?;
        let ended = std::process::Command::new("date").arg("+%s.%N").output()?;
        let at = |output: std::process::Output| {
            String::from_utf8_lossy(&output.stdout).trim().parse::<f64>()
        };
        let theirs = at(ended)? - at(began)?;
        pairs.push(Pair { dyno: rows / ours, peer: rows / theirs });
    }
    Ok(Row { measure: name, peer: "sysbench", unit: "rows/s", goal: Goal::AtLeast(2.5), pairs })
}
