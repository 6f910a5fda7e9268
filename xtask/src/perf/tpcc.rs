//! Dyno beside go-tpc on PostgreSQL and MariaDB, and beside sysbench-tpcc on MariaDB.
//!
//! go-tpc comes from PATH, or is built from the Go module proxy into the user's cache. It speaks
//! only TCP, unlike private servers, so a relay in this process connects them, also for Dyno; it
//! admits only the user who runs this. sysbench-tpcc is in no registry: `DYNO_SYSBENCH_TPCC` names
//! its folder. Rows of a missing peer stay empty, and the reason is printed.
//!
//! go-tpc's new-order reads items and stock with one statement each and stores all lines with
//! another, as Dyno's does with `batched`; rows without that compare more statements with fewer.
//! go-tpc waits for each reply; Dyno's `pipelined` rows send without waiting, and say so.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::peer::{
    Perf, Report, number, number_after, populated_s, process_cpu_us, timed, timed_in,
};
use super::server::{PrivateServer, Session};
use super::table::{Figure, Goal, Row};

const WAREHOUSES: u32 = 2;
const CLIENTS: u32 = 16;

/// The goals were set against this version.
const GO_TPC: &str = "github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.9";

const SYSBENCH_TPCC: &str = "DYNO_SYSBENCH_TPCC";

/// From the seconds that it takes.
const POPULATE: Figure<f64> =
    ("", "warehouses/s", Goal::AtLeast(3.0), |took_s| f64::from(WAREHOUSES) / took_s);
const NEW_ORDER: Figure<f64> = ("", "µs/new-order", Goal::AtMost(0.3), |us| *us);
const TRANSACTION: Figure<f64> = ("", "µs/transaction", Goal::AtMost(0.6), |us| *us);

/// Both products' clients reach it by TCP.
struct Site {
    server: PrivateServer,
    /// Of Dyno's catalog.
    url: String,
    /// For go-tpc, of its own.
    words: String,
}

impl Site {
    fn start(product: &str) -> anyhow::Result<Site> {
        let server = PrivateServer::start(product, Session::Own)?;
        let port = relay(server.socket.clone())?;
        let (scheme, user, words) = match product {
            "mariadb" => ("mysql", "root", "-d mysql"),
            _ => ("postgresql", "dyno", "-d postgres --conn-params sslmode=disable"),
        };
        let url = format!("{scheme}://{user}@127.0.0.1:{port}/perf");
        let words = format!("{words} -H 127.0.0.1 -P {port} -U {user} -D dyno");
        Ok(Site { server, url, words })
    }
}

pub(crate) fn measure(perf: &Perf) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut go_tpc: Option<Option<PathBuf>> = None;
    for (product, name) in [("postgresql", "PostgreSQL"), ("mariadb", "MariaDB")] {
        let cpu = |sending: &'static str| {
            let of = format!("{name}, {CLIENTS} clients: user + system CPU a new-order");
            (format!("tpcc{sending}, {of}"), Some(sending))
        };
        let mut cases = vec![
            (format!("populate tpcc, {WAREHOUSES} warehouses, {name}"), None),
            cpu(" batched"),
            cpu(""),
            cpu(" batched pipelined"),
            cpu(" pipelined"),
        ];
        cases.retain(|(name, _)| perf.wants(name));
        let sysbench = format!("tpcc, MariaDB, {CLIENTS} clients: user + system CPU");
        let beside_sysbench = product == "mariadb" && perf.wants(&sysbench);
        if cases.is_empty() && !beside_sysbench {
            continue;
        }
        let program = match cases.is_empty() {
            true => None,
            false => go_tpc.get_or_insert_with(find_go_tpc).as_ref(),
        };
        let Some(program) = program else {
            rows.extend(cases.iter().flat_map(|(name, sending)| {
                let figure = if sending.is_some() { NEW_ORDER } else { POPULATE };
                perf.rows((name, "go-tpc"), &[figure], &[])
            }));
            if beside_sysbench {
                rows.extend(of_sysbench(perf, &Site::start(product)?, &sysbench)?);
            }
            continue;
        };
        let site = Site::start(product)?;
        rows.extend(beside_go_tpc(perf, &program.display().to_string(), &site, cases)?);
        if beside_sysbench {
            rows.extend(of_sysbench(perf, &site, &sysbench)?);
        }
    }
    Ok(rows)
}

/// A case is a row's name and how statements are sent, or none to populate.
fn beside_go_tpc(
    perf: &Perf,
    program: &str,
    site: &Site,
    cases: Vec<(String, Option<&str>)>,
) -> anyhow::Result<Vec<Row>> {
    let prepare = "prepare -T 2 --no-check";
    go_tpc(program, site, prepare)?;
    let mut rows = Vec::new();
    for (name, sending) in cases {
        let what = (name.as_str(), "go-tpc");
        rows.extend(match sending {
            // Neither program checks its rows.
            None => {
                let ours = || populated(perf, &site.url);
                let theirs = || {
                    go_tpc(program, site, "cleanup")?;
                    Ok(go_tpc(program, site, prepare)?.took_s)
                };
                perf.few().beside(what, &[POPULATE], ours, theirs)?
            }
            Some(sending) => {
                let ours = || Ok(dyno_cpu(perf, &site.url, sending)?.per_new_order);
                let theirs = || go_tpc_cpu(program, site, perf.effort.seconds);
                perf.beside(what, &[NEW_ORDER], ours, theirs)?
            }
        });
    }
    Ok(rows)
}

fn go_tpc(program: &str, site: &Site, command: &str) -> anyhow::Result<Report> {
    timed(program, &format!("tpcc {command} --warehouses {WAREHOUSES} {}", site.words))
}

/// µs per new-order, with what go-tpc does beside them.
fn go_tpc_cpu(program: &str, site: &Site, seconds: u32) -> anyhow::Result<f64> {
    let report = go_tpc(program, site, &format!("run -T {CLIENTS} --time {seconds}s"))?;
    let label = "[Summary] NEW_ORDER -";
    let summary = report.out.find(label).map(|start| &report.out[start..]);
    let summary = summary.with_context(|| format!("no `{label}` in: {}", report.out))?;
    Ok(report.cpu_us() / number_after(summary, "Count:")?)
}

fn populated(perf: &Perf, url: &str) -> anyhow::Result<f64> {
    let result = perf.bench(&format!(
        "tpcc --warehouses {WAREHOUSES} --consistency none --clients 1 --duration 100ms \
         --warm-up 0s --on {url}"
    ))?;
    Ok(populated_s(&result))
}

/// µs of the whole process.
struct Cpu {
    per_new_order: f64,
    per_transaction: f64,
}

fn dyno_cpu(perf: &Perf, url: &str, sending: &str) -> anyhow::Result<Cpu> {
    let switch = |name| if sending.contains(name) { "on" } else { "off" };
    let (batched, pipelined) = (switch("batched"), switch("pipelined"));
    let result = perf.load(&format!(
        "tpcc --warehouses {WAREHOUSES} --consistency none --batched {batched} \
         --pipelined {pipelined} --clients {CLIENTS} --warm-up 500ms --on {url}"
    ))?;
    let total = process_cpu_us(&result)? * number(&result, "/statements")?;
    let kinds = result["kinds"].as_array().context("dyno bench reported no kinds")?;
    let new_orders = kinds.iter().find(|kind| kind["name"] == "new_order");
    let new_orders = new_orders.context("dyno bench reported no new-orders")?;
    Ok(Cpu {
        per_new_order: total / number(new_orders, "/transactions")?,
        per_transaction: total / number(&result, "/transactions")?,
    })
}

fn of_sysbench(perf: &Perf, site: &Site, name: &str) -> anyhow::Result<Vec<Row>> {
    let what = (name, "sysbench-tpcc");
    let Some(folder) = variable(SYSBENCH_TPCC) else {
        crate::shell::say(&format!(
            "{name}: sysbench-tpcc is in no registry; {SYSBENCH_TPCC} is to name its folder"
        ));
        return Ok(perf.rows(what, &[TRANSACTION], &[]));
    };
    sysbench(&folder, site, "--threads=1 prepare")?;
    let ours = || Ok(dyno_cpu(perf, &site.server.url, "")?.per_transaction);
    let theirs = || {
        let command = format!("--threads={CLIENTS} --time={} run", perf.effort.seconds);
        let report = sysbench(&folder, site, &command)?;
        Ok(report.cpu_us() / report.after("transactions:")?)
    };
    perf.beside(what, &[TRANSACTION], ours, theirs)
}

/// In its folder, where its parts find each other.
fn sysbench(folder: &Path, site: &Site, command: &str) -> anyhow::Result<Report> {
    let words = format!(
        "./tpcc.lua --db-driver=mysql --mysql-user=root --mysql-db=dyno --mysql-socket={} \
         --tables=1 --scale={WAREHOUSES} --use_fk=0 {command}",
        site.server.socket.display()
    );
    timed_in(folder, "sysbench", &words)
}

/// From PATH or the cache, else built; none, with the reason printed, if that fails.
fn find_go_tpc() -> Option<PathBuf> {
    let is_there = |program: &Path| {
        let output = Command::new(program).arg("--help").output();
        output.is_ok_and(|output| output.status.success())
    };
    let on_path = PathBuf::from("go-tpc");
    if is_there(&on_path) {
        return Some(on_path);
    }
    let result = cache().and_then(|folder| {
        let program = folder.join("go-tpc");
        if !is_there(&program) {
            build_go_tpc(&folder)?;
        }
        Ok(program)
    });
    let warn = |error| crate::shell::say(&format!("go-tpc is not available: {error:#}"));
    result.map_err(warn).ok()
}

#[expect(clippy::disallowed_methods, reason = "where peers are is the user's to say")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

fn cache() -> anyhow::Result<PathBuf> {
    let of_user = variable("XDG_CACHE_HOME");
    let of_home = || Some(variable("HOME")?.join(".cache"));
    let folder = of_user.or_else(of_home).context("there is no home")?.join("dyno-perf");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// As a dependency of an otherwise empty module.
fn build_go_tpc(folder: &Path) -> anyhow::Result<()> {
    crate::shell::say("building go-tpc, which takes a minute or more");
    std::fs::write(folder.join("go.mod"), "module dyno-perf\n\ngo 1.21\n")?;
    let package = GO_TPC.split('@').next().unwrap_or(GO_TPC);
    for arguments in [&["get", GO_TPC][..], &["build", "-o", "go-tpc", package]] {
        // The public database lacks its checksum.
        let mut go = Command::new("go");
        crate::shell::output(go.args(arguments).env("GOSUMDB", "off").current_dir(folder))?;
    }
    Ok(())
}

/// Connects a loopback port, which is returned, with a socket, until the process ends.
fn relay(socket: PathBuf) -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        let me = rustix::process::geteuid().as_raw();
        for client in listener.incoming().flatten() {
            if dyno_host::user_of_client(&client) != Some(me) {
                continue;
            }
            // If the server is gone, the closed connection tells the client.
            let Ok(server) = UnixStream::connect(&socket) else { continue };
            let _ = client.set_nodelay(true);
            if let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) {
                std::thread::spawn(move || {
                    carry(&from, &to);
                    let _ = to.shutdown(Shutdown::Both);
                });
                std::thread::spawn(move || {
                    carry(&server, &client);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        }
    });
    Ok(port)
}

fn carry(mut from: impl Read, mut to: impl Write) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(n) = from.read(&mut bytes) {
        if n == 0 || to.write_all(&bytes[..n]).is_err() {
            return;
        }
    }
}
