//! `dyno pgbench`: command lines and scripts of pgbench, on Dyno's load generator, with pgbench's output
//! and a record beside it.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod getopt;
mod host;
mod init;
mod options;
mod results;
mod run;
mod target;

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use dyno_database::{Address, Endpoint};
use dyno_units::Clock;
use dyno_workload::pgbench::{message_of, server_message};
use dyno_workload::{Connection, StatementError};

use self::options::{Options, PartitionMethod, Stop};
use self::results::TableFacts;
use self::target::Surroundings;
use crate::clock::SystemClock;
use crate::{End, scripts, secrets, signals, terminal};

/// The version of pgbench whose output this is.
const VERSION: &str = concat!("15 (Dyno ", env!("CARGO_PKG_VERSION"), ")");

pub(crate) fn run(words: &[String]) -> anyhow::Result<End> {
    let shown = match words.first().map(String::as_str) {
        Some("--help" | "-?") => HELP.to_owned(),
        Some("--version" | "-V") => format!("pgbench (PostgreSQL) {VERSION}"),
        _ => String::new(),
    };
    if !shown.is_empty() {
        terminal::out(&shown);
        return Ok(End::Good);
    }
    let performed = perform(words);
    signals::die_of_first();
    match performed {
        Ok(end) => Ok(end),
        Err(Stop::Shown(text)) => {
            terminal::say_part(&text);
            Ok(End::Good)
        }
        Err(Stop::Refused(lines)) => {
            lines.iter().for_each(|line| match line.strip_prefix('\n') {
                Some(text) => terminal::say_part(text),
                None => terminal::say(&format!("pgbench: {line}")),
            });
            Ok(End::Bad)
        }
    }
}

/// Where the words have passwords: the place of the word, and the bytes in it.
pub(crate) fn password_places(words: &[String]) -> Vec<(usize, Range<usize>)> {
    let of = |(at, begin): (usize, usize)| {
        let places = target::password_places(&words[at][begin..]);
        places.into_iter().map(move |place| (at, begin + place.start..begin + place.end))
    };
    options::connections(words).into_iter().flat_map(of).collect()
}

fn refused(error: impl std::fmt::Display) -> Stop {
    options::refused(format!("{error:#}"))
}

fn perform(words: &[String]) -> Result<End, Stop> {
    let mut read_file = |name: &str| -> std::io::Result<Vec<u8>> {
        if name != "-" {
            // The user has named it: whatever pgbench would read, a pipe for example.
            return std::fs::read(name);
        }
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let clock = SystemClock::start();
    let seed = seed(
        terminal::variable("PGBENCH_RANDOM_SEED").as_deref(),
        &clock,
        "PGBENCH_RANDOM_SEED environment variable",
    )?;
    let mut options = Options::read(words, &mut read_file)?;
    let given = options.seed.as_deref();
    let given = given.map(|text| self::seed(Some(text), &clock, "--random-seed option"));
    let seed = given.transpose()?.unwrap_or(seed);
    if let Some(url) = &options.dbname {
        options.dbname = Some(secrets::expand(url).map_err(refused)?);
    }
    let from = Surroundings {
        variable: &terminal::variable,
        system_user: &system_user,
        read_private: &read_private,
        exists: &scripts::is_there,
    };
    let endpoint = target::resolve(&options, &from).map_err(refused)?;
    let mut connection = connect(&endpoint)?;
    if options.is_init {
        init::run(&options, connection.as_mut(), &clock)?;
        return Ok(End::Good);
    }
    banner(connection.as_mut())?;
    if options.settings.is_debugging {
        tell_of_run(&options, &endpoint);
    }
    let tables = table_facts(&options, connection.as_mut(), &endpoint)?;
    if !options.no_vacuum {
        vacuum(&options, connection.as_mut());
    }
    drop(connection);
    run::run(&options, &endpoint, tables, seed).map_err(refused)
}

/// The seed that was asked for; by default, the time decides.
fn seed(text: Option<&str>, clock: &dyn Clock, whence: &str) -> Result<u64, Stop> {
    let mut strong = [0; 8];
    if text == Some("rand") {
        let mut file = std::fs::File::open("/dev/urandom").map_err(refused)?;
        file.read_exact(&mut strong).map_err(refused)?;
    }
    let now_us = clock.unix_millis() * 1000 + clock.now().0 / 1000;
    let strong = u64::from_ne_bytes(strong);
    let seed = options::seed(text, now_us, strong).map_err(|mut lines| {
        lines.push(format!("error: error while setting random seed from {whence}"));
        Stop::Refused(lines)
    })?;
    if text.is_some() {
        terminal::say(&format!("pgbench: setting random seed to {seed}"));
    }
    Ok(seed)
}

fn system_user() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut found = fields.filter(|fields| fields.get(2) == Some(&uid.as_str()));
    found.next().and_then(|fields| fields.first().map(|name| (*name).to_owned()))
}

/// A password file that is its owner's alone.
fn read_private(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let mut file = dyno_units::open_named(path).ok()?;
    if file.metadata().ok()?.permissions().mode() & 0o077 != 0 {
        terminal::say(&format!(
            "WARNING: password file \"{}\" has group or world access; permissions should be u=rw \
             (0600) or less",
            path.display()
        ));
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some(text)
}

fn connect(endpoint: &Endpoint) -> Result<Box<dyn Connection>, Stop> {
    terminal::warn_of_login(endpoint);
    let mut connection = (endpoint.protocol.connector(endpoint))().map_err(|error| {
        let place = match &endpoint.address {
            Address::Unix(socket) => format!("on socket \"{}\"", socket.display()),
            Address::Tcp { host, port } => format!("at \"{host}\", port {port}"),
        };
        let said = error.details.as_ref().map(|details| message_of(details, None));
        let why = said.unwrap_or(error.reason);
        Stop::Refused(vec![
            format!("error: connection to server {place} failed: {why}"),
            "error: could not create connection for setup".to_owned(),
        ])
    })?;
    connection.set_cold_limit(0);
    Ok(connection)
}

fn failed(what: &str, error: &StatementError) -> Stop {
    options::refused(format!("{what}: {}", server_message(error, None)))
}

fn value(connection: &mut dyn Connection, sql: &str) -> Result<Option<String>, StatementError> {
    let rows = connection.query(sql)?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
}

/// Prints the versions, as pgbench does where they differ.
fn banner(connection: &mut dyn Connection) -> Result<(), Stop> {
    let version = value(connection, "show server_version");
    let version = version.map_err(|error| failed("query failed", &error))?.unwrap_or_default();
    terminal::out(&format!("pgbench ({VERSION}, server {version})"));
    Ok(())
}

/// What `--debug` shows first.
fn tell_of_run(options: &Options, endpoint: &Endpoint) {
    let (host, port) = match &endpoint.address {
        Address::Tcp { host, port } => (host.clone(), port.to_string()),
        Address::Unix(socket) => {
            let folder = socket.parent().unwrap_or(Path::new("/"));
            let port = socket.extension().unwrap_or_default();
            (folder.display().to_string(), port.to_string_lossy().into_owned())
        }
    };
    let (what, number) = match options.duration {
        0 => ("nxacts", options.transactions),
        seconds => ("duration", seconds),
    };
    let (clients, name) = (options.clients, &endpoint.catalog);
    let of_run = format!("nclients: {clients} {what}: {number} dbName: {name}");
    terminal::say(&format!("pgbench: pghost: {host} pgport: {port} {of_run}"));
}

fn table_facts(
    options: &Options,
    connection: &mut dyn Connection,
    endpoint: &Endpoint,
) -> Result<TableFacts, Stop> {
    let scale = options.scale.max(1);
    if !options.uses_built_in {
        return Ok(TableFacts { scale, partitions: None });
    }
    let how = "hint: Perhaps you need to do initialization (\"pgbench -i\") in database";
    let hint = || format!("{how} \"{}\".", endpoint.catalog);
    let n_branches = value(connection, COUNT_BRANCHES).map_err(|error| {
        let said = server_message(&error, Some(COUNT_BRANCHES));
        let mut lines = vec![format!("error: could not count number of branches: {said}")];
        lines.extend((error.code == "42P01").then(hint));
        Stop::Refused(lines)
    })?;
    let scale = n_branches.and_then(|text| text.parse().ok()).unwrap_or(0);
    if options.scale > 0 {
        terminal::say(&format!(
            "pgbench: warning: scale option ignored, using count from pgbench_branches table ({scale})"
        ));
    }
    let rows = connection.query(PARTITIONS).unwrap_or_default();
    let Some(row) = rows.first() else {
        let why = "error: no pgbench_accounts table found in search_path".to_owned();
        return Err(Stop::Refused(vec![why, hint()]));
    };
    let method = match row.first().and_then(Option::as_deref) {
        Some("r") => Some(PartitionMethod::Range),
        Some("h") => Some(PartitionMethod::Hash),
        _ => None,
    };
    let n = row.get(1).cloned().flatten().and_then(|text| text.parse().ok()).unwrap_or(0);
    Ok(TableFacts { scale, partitions: method.map(|method| (method, n)) })
}

/// The number of branches is the scale.
const COUNT_BRANCHES: &str = "select count(*) from pgbench_branches";

/// How the first `pgbench_accounts` of the search path is partitioned, and into how many parts.
const PARTITIONS: &str = "select p.partstrat, (select pg_catalog.count(*) from pg_catalog.pg_inherits i \
    where i.inhparent = c.oid) from pg_catalog.pg_class c left join \
    pg_catalog.pg_partitioned_table p on p.partrelid = c.oid \
    where c.oid = pg_catalog.to_regclass('pgbench_accounts')";

/// Cleans the tables before a run; what fails is reported and ignored.
fn vacuum(options: &Options, connection: &mut dyn Connection) {
    let mut try_all = |statements: &[&str]| {
        for sql in statements {
            if let Err(error) = connection.query(sql) {
                let said = server_message(&error, Some(sql));
                terminal::say(&format!("pgbench: error: {said}"));
                terminal::say("pgbench: detail: (ignoring this error and continuing anyway)");
            }
        }
    };
    terminal::say_part("starting vacuum...");
    try_all(&["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"]);
    terminal::say_part("end.\n");
    if options.vacuums_all {
        terminal::say_part("starting vacuum pgbench_accounts...");
        try_all(&["vacuum analyze pgbench_accounts"]);
        terminal::say_part("end.\n");
    }
}

impl From<init::Failed> for Stop {
    fn from(init::Failed { error, sql }: init::Failed) -> Stop {
        let said = server_message(&error, Some(&sql));
        Stop::Refused(vec![
            format!("error: query failed: {said}"),
            format!("detail: Query was: {sql}"),
        ])
    }
}

const HELP: &str = "\
pgbench is a benchmarking tool for PostgreSQL; this is Dyno, which accepts its command lines and scripts.

Usage:
  dyno pgbench [OPTION]... [DBNAME]

Initialization options:
  -i, --initialize         invokes initialization mode
  -I, --init-steps=[dtgGvpf]+ (default \"dtgvp\")
                           run selected initialization steps: drop tables, create tables, generate data
                           here (g) or in the server (G), vacuum, primary keys, foreign keys
  -F, --fillfactor=NUM     set fill factor
  -n, --no-vacuum          do not run VACUUM during initialization
  -q, --quiet              quiet logging (one message each 5 seconds)
  -s, --scale=NUM          scaling factor
  --foreign-keys           create foreign key constraints between tables
  --index-tablespace=TABLESPACE
                           create indexes in the specified tablespace
  --partition-method=(range|hash)
                           partition pgbench_accounts with this method (default: range)
  --partitions=NUM         partition pgbench_accounts into NUM parts (default: 0)
  --tablespace=TABLESPACE  create tables in the specified tablespace
  --unlogged-tables        create tables as unlogged tables

Options to select what to run:
  -b, --builtin=NAME[@W]   add builtin script NAME weighted at W (default: 1)
                           (use \"-b list\" to list available scripts)
  -f, --file=FILENAME[@W]  add script FILENAME weighted at W (default: 1)
  -N, --skip-some-updates  skip updates of pgbench_tellers and pgbench_branches
                           (same as \"-b simple-update\")
  -S, --select-only        perform SELECT-only transactions
                           (same as \"-b select-only\")

Benchmarking options:
  -c, --client=NUM         number of concurrent database clients (default: 1)
  -C, --connect            establish new connection for each transaction
  -D, --define=VARNAME=VALUE
                           define variable for use by custom script
  -j, --jobs=NUM           number of threads (default: 1)
  -l, --log                write transaction times to log file
  -L, --latency-limit=NUM  count transactions lasting more than NUM ms as late
  -M, --protocol=simple|extended|prepared
                           protocol for submitting queries (default: simple)
  -n, --no-vacuum          do not run VACUUM before tests
  -P, --progress=NUM       show thread progress report every NUM seconds
  -r, --report-per-command report latencies, failures, and retries per command
  -R, --rate=NUM           target rate in transactions per second
  -s, --scale=NUM          report this scale factor in output
  -t, --transactions=NUM   number of transactions each client runs (default: 10)
  -T, --time=NUM           duration of benchmark test in seconds
  -v, --vacuum-all         vacuum all four standard tables before tests
  --aggregate-interval=NUM aggregate data over NUM seconds
  --continue-on-error      continue running after an SQL error
  --exit-on-abort          exit when any client is aborted
  --failures-detailed      report the failures grouped by basic types
  --log-prefix=PREFIX      prefix for transaction time log file
                           (default: \"pgbench_log\")
  --max-tries=NUM          max number of tries to run transaction (default: 1)
  --progress-timestamp     use Unix epoch timestamps for progress
  --random-seed=SEED       set random seed (\"time\", \"rand\", integer)
  --sampling-rate=NUM      fraction of transactions to log (e.g., 0.01 for 1%)
  --show-script=NAME       show builtin script code, then exit
  --verbose-errors         print messages of all errors

Common options:
  -d, --dbname=DBNAME      database name to connect to
  -h, --host=HOSTNAME      database server host or socket directory
  -p, --port=PORT          database server port number
  -U, --username=USERNAME  connect as specified database user
  --debug                  show what each client does
  -V, --version            output version information, then exit
  -?, --help               show this help, then exit

Dyno's own options:
  --record=FOLDER          keep the record in this folder (default: runs/pgbench, with a number)
  --no-record              keep no record

Report bugs to Dyno's authors, not to PostgreSQL's.
";
