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
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::peer::{bench, number_after, timed};
use super::server::{PrivateServer, Session};
use super::table::Goal;
use super::{Effort, Pair, Row};

const WAREHOUSES: u32 = 2;
const CLIENTS: u32 = 16;

/// The goals were set against this version.
const GO_TPC: &str = "github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.9";

const SYSBENCH_TPCC: &str = "DYNO_SYSBENCH_TPCC";

/// Both products' clients reach it by TCP.
struct Site {
    product: &'static str,
    // Held until the last row is measured.
    _server: PrivateServer,
    socket: PathBuf,
    port: u16,
}

impl Site {
    fn start(product: &'static str) -> anyhow::Result<Site> {
        let memory =
            if product == "mariadb" { "innodb_buffer_pool_size" } else { "shared_buffers" };
        let server = PrivateServer::start(product, memory, Session::Own)?;
        let socket = server.socket.clone();
        let port = relay(socket.clone())?;
        Ok(Site { product, _server: server, socket, port })
    }

    fn url(&self) -> String {
        match self.product {
            "mariadb" => format!("mysql://root@127.0.0.1:{}/perf", self.port),
            _ => format!("postgresql://dyno@127.0.0.1:{}/perf", self.port),
        }
    }

    fn go_tpc(&self) -> String {
        let port = self.port;
        match self.product {
            "mariadb" => format!("-d mysql -H 127.0.0.1 -P {port} -U root -D dyno"),
            _ => format!(
                "-d postgres -H 127.0.0.1 -P {port} -U dyno -D dyno --conn-params sslmode=disable"
            ),
        }
    }
}

pub(crate) fn measure(
    dyno: &Path,
    effort: Effort,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut go_tpc: Option<Option<PathBuf>> = None;
    for product in ["postgresql", "mariadb"] {
        let mut site = None;
        let product_name = if product == "mariadb" { "MariaDB" } else { "PostgreSQL" };
        let of_go_tpc = wanted_of_go_tpc(product_name, is_wanted);
        if !of_go_tpc.is_empty() {
            let program = go_tpc.get_or_insert_with(find_go_tpc).clone();
            let Some(program) = program else {
                rows.extend(of_go_tpc.into_iter().map(|wanted| wanted.row(Vec::new())));
                continue;
            };
            let site = site.insert(Site::start(product)?);
            rows.extend(beside_go_tpc(dyno, &program, site, effort, of_go_tpc)?);
        }
        let name = "tpcc, MariaDB, 16 clients: user + system CPU";
        if product == "mariadb" && is_wanted(name) {
            let site = match &site {
                Some(site) => site,
                None => site.insert(Site::start(product)?),
            };
            rows.push(beside_sysbench(dyno, site, effort, name)?);
        }
    }
    Ok(rows)
}

struct Wanted {
    measure: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Populate,
    NewOrder(Sending),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Sending {
    is_batched: bool,
    is_pipelined: bool,
}

const ONE_BY_ONE: Sending = Sending { is_batched: false, is_pipelined: false };
const BATCHED: Sending = Sending { is_batched: true, is_pipelined: false };

impl Wanted {
    fn row(self, pairs: Vec<Pair>) -> Row {
        let (unit, goal) = match self.kind {
            Kind::Populate => ("warehouses/s", Goal::AtLeast(3.0)),
            Kind::NewOrder(_) => ("µs/new-order", Goal::AtMost(0.3)),
        };
        Row { measure: self.measure, peer: "go-tpc", unit, goal, pairs }
    }
}

fn wanted_of_go_tpc(product: &str, is_wanted: &dyn Fn(&str) -> bool) -> Vec<Wanted> {
    let cpu = |what: &str| {
        format!("tpcc{what}, {product}, {CLIENTS} clients: user + system CPU a new-order")
    };
    let all = [
        (format!("populate tpcc, {WAREHOUSES} warehouses, {product}"), Kind::Populate),
        (cpu(" batched"), Kind::NewOrder(BATCHED)),
        (cpu(""), Kind::NewOrder(ONE_BY_ONE)),
        (cpu(" batched pipelined"), Kind::NewOrder(Sending { is_pipelined: true, ..BATCHED })),
        (cpu(" pipelined"), Kind::NewOrder(Sending { is_pipelined: true, ..ONE_BY_ONE })),
    ];
    let all = all.into_iter().map(|(measure, kind)| Wanted { measure, kind });
    all.filter(|wanted| is_wanted(&wanted.measure)).collect()
}

fn beside_go_tpc(
    dyno: &Path,
    program: &Path,
    site: &Site,
    effort: Effort,
    all: Vec<Wanted>,
) -> anyhow::Result<Vec<Row>> {
    let program = program.to_string_lossy().into_owned();
    go_tpc(&program, site, "prepare -T 2 --no-check")?;
    let mut rows = Vec::new();
    for wanted in all {
        let n_pairs =
            if wanted.kind == Kind::Populate { 3.min(effort.pairs) } else { effort.pairs };
        let mut pairs = Vec::new();
        for nth in 0..n_pairs {
            crate::say(&format!("{}: pair {} of {n_pairs}", wanted.measure, nth + 1));
            pairs.push(match wanted.kind {
                Kind::Populate => populated(dyno, &program, site)?,
                Kind::NewOrder(sending) => Pair {
                    dyno: dyno_cpu(dyno, &site.url(), effort, sending)?.per_new_order,
                    peer: go_tpc_cpu(&program, site, effort)?,
                },
            });
        }
        rows.push(wanted.row(pairs));
    }
    Ok(rows)
}

/// Returns the report, CPU seconds, and elapsed seconds.
fn go_tpc(program: &str, site: &Site, command: &str) -> anyhow::Result<(String, f64, f64)> {
    let arguments = format!("tpcc {command} --warehouses {WAREHOUSES} {}", site.go_tpc());
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    let began = seconds()?;
    let (report, user_s, system_s) = timed(program, &arguments)?;
    Ok((report, user_s + system_s, seconds()? - began))
}

fn seconds() -> anyhow::Result<f64> {
    let output = Command::new("date").arg("+%s.%N").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

/// µs per new-order, with what go-tpc does beside them.
fn go_tpc_cpu(program: &str, site: &Site, effort: Effort) -> anyhow::Result<f64> {
    let command = format!("run -T {CLIENTS} --time {}s", effort.seconds);
    let (report, cpu_s, _) = go_tpc(program, site, &command)?;
    let label = "[Summary] NEW_ORDER -";
    let start = report.find(label).with_context(|| format!("no `{label}` in: {report}"))?;
    Ok(cpu_s * 1e6 / number_after(&report[start..], "Count:")?)
}

/// Warehouses per second; neither program checks its rows.
fn populated(dyno: &Path, program: &str, site: &Site) -> anyhow::Result<Pair> {
    let options = format!(
        "tpcc --warehouses {WAREHOUSES} --consistency none --clients 1 --duration 100ms \
         --warm-up 0s --on {}",
        site.url()
    );
    let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    let ours = bench(dyno, &options)?["data"]["populate_s"].as_f64().unwrap_or(f64::NAN);
    go_tpc(program, site, "cleanup")?;
    let (_, _, theirs) = go_tpc(program, site, "prepare -T 2 --no-check")?;
    let rate = |took_s: f64| f64::from(WAREHOUSES) / took_s;
    Ok(Pair { dyno: rate(ours), peer: rate(theirs) })
}

/// µs of the whole process.
struct Cpu {
    per_new_order: f64,
    per_transaction: f64,
}

fn dyno_cpu(dyno: &Path, url: &str, effort: Effort, sending: Sending) -> anyhow::Result<Cpu> {
    let switch = |is_on| if is_on { "on" } else { "off" };
    let (batched, pipelined) = (switch(sending.is_batched), switch(sending.is_pipelined));
    let options = format!(
        "tpcc --warehouses {WAREHOUSES} --consistency none --batched {batched} \
         --pipelined {pipelined} --clients {CLIENTS} --duration {}s --warm-up 500ms --on {url}",
        effort.seconds
    );
    let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    let result = bench(dyno, &options)?;
    let number = |value: &Value, what: &str| {
        value.as_f64().with_context(|| format!("dyno bench did not report {what}"))
    };
    let of_generator = |name: &str| number(&result["generator"][name], name);
    let per_statement = of_generator("process_cpu_user_us_per_statement")?
        + of_generator("process_cpu_system_us_per_statement")?;
    let total = per_statement * number(&result["statements"], "statements")?;
    let kinds = result["kinds"].as_array().context("dyno bench reported no kinds")?;
    let new_orders = kinds.iter().find(|kind| kind["name"] == "new_order");
    let new_orders = new_orders.context("dyno bench reported no new-orders")?;
    Ok(Cpu {
        per_new_order: total / number(&new_orders["transactions"], "new-orders")?,
        per_transaction: total / number(&result["transactions"], "transactions")?,
    })
}

fn beside_sysbench(dyno: &Path, site: &Site, effort: Effort, name: &str) -> anyhow::Result<Row> {
    let row = |pairs| Row {
        measure: name.to_owned(),
        peer: "sysbench-tpcc",
        unit: "µs/transaction",
        goal: Goal::AtMost(0.6),
        pairs,
    };
    let Some(folder) = variable(SYSBENCH_TPCC) else {
        crate::say(&format!(
            "{name}: sysbench-tpcc is in no registry; {SYSBENCH_TPCC} is to name its folder"
        ));
        return Ok(row(Vec::new()));
    };
    let folder = folder.to_string_lossy().into_owned();
    let url = format!("mysql://root@localhost/perf?socket={}", site.socket.display());
    sysbench(&folder, site, "--threads=1 prepare")?;
    let mut pairs = Vec::new();
    for nth in 0..effort.pairs {
        crate::say(&format!("{name}: pair {} of {}", nth + 1, effort.pairs));
        let command = format!("--threads={CLIENTS} --time={} run", effort.seconds);
        let (report, cpu_s) = sysbench(&folder, site, &command)?;
        let theirs = cpu_s * 1e6 / number_after(&report, "transactions:")?;
        let ours = dyno_cpu(dyno, &url, effort, ONE_BY_ONE)?.per_transaction;
        pairs.push(Pair { dyno: ours, peer: theirs });
    }
    Ok(row(pairs))
}

/// In its folder, where its parts find each other.
fn sysbench(folder: &str, site: &Site, command: &str) -> anyhow::Result<(String, f64)> {
    let script = "cd \"$0\" && exec sysbench ./tpcc.lua \"$@\"";
    let options = format!(
        "--db-driver=mysql --mysql-user=root --mysql-db=dyno --mysql-socket={} --tables=1 \
         --scale={WAREHOUSES} --use_fk=0 {command}",
        site.socket.display()
    );
    let mut arguments = vec!["-c".to_owned(), script.to_owned(), folder.to_owned()];
    arguments.extend(options.split_whitespace().map(str::to_owned));
    let (report, user_s, system_s) = timed("bash", &arguments)?;
    Ok((report, user_s + system_s))
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
    let warn = |error| crate::say(&format!("go-tpc is not available: {error:#}"));
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
    crate::say("building go-tpc, which takes a minute or more");
    std::fs::write(folder.join("go.mod"), "module dyno-perf\n\ngo 1.21\n")?;
    let package = GO_TPC.split('@').next().unwrap_or(GO_TPC);
    for arguments in [&["get", GO_TPC][..], &["build", "-o", "go-tpc", package]] {
        let output = Command::new("go")
            .args(arguments)
            // The public database lacks its checksum.
            .env("GOSUMDB", "off")
            .current_dir(folder)
            .output()
            .context("cannot run go")?;
        if !output.status.success() {
            bail!("go {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
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
                std::thread::spawn(move || carry_to_server(from, to));
                std::thread::spawn(move || carry_to_client(server, client));
            }
        }
    });
    Ok(port)
}

fn carry_to_server(from: TcpStream, to: UnixStream) {
    carry(&from, &to);
    let _ = to.shutdown(Shutdown::Both);
}

fn carry_to_client(from: UnixStream, to: TcpStream) {
    carry(&from, &to);
    let _ = to.shutdown(Shutdown::Both);
}

fn carry(mut from: impl Read, mut to: impl Write) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(n) = from.read(&mut bytes) {
        if n == 0 || to.write_all(&bytes[..n]).is_err() {
            return;
        }
    }
}
