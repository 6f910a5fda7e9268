//! Servers that Dyno did not start: their contents stay, and secrets stay secret.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use dyno_database::{Place, Products, Server, ServerSpec};
use dyno_host::Keeper;
use dyno_load::{AbortFlag, Job, StepSpec, StepTotals, run_step};
use dyno_model::{Load, StepRequest};
use dyno_units::{Clock, Nanoseconds, Seed, SettingValue};
use dyno_workload::catalog::Catalog;
use dyno_workload::{Connection, Connector, MadeWorkload, Row, Workload};

use crate::support::{Workbench, data_root, user_root};

/// Real time, for the tests' own servers.
pub(crate) struct TestClock(Instant);

impl TestClock {
    #[expect(clippy::disallowed_methods, reason = "real servers live in real time")]
    pub(crate) fn start() -> Arc<dyn Clock> {
        Arc::new(TestClock(Instant::now()))
    }
}

impl Clock for TestClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds::from(self.0.elapsed())
    }

    fn unix_millis(&self) -> u64 {
        self.now().0 / 1_000_000
    }

    fn sleep_until(&self, until: Nanoseconds) {
        std::thread::sleep(until.saturating_sub(self.now()).to_duration());
    }
}

/// A running server, as Dyno's commands see it.
pub(crate) struct Standing {
    pub(crate) server: Option<Box<dyn Server>>,
    pub(crate) socket: PathBuf,
    keeper: Arc<Keeper>,
}

impl Standing {
    pub(crate) fn start(product: &str) -> Standing {
        Standing::start_with(product, &[])
    }

    pub(crate) fn start_with(product: &str, settings: &[(&str, &str)]) -> Standing {
        let keeper = Keeper::new(&data_root()).unwrap().with_initial_data(&user_root());
        let keeper = Arc::new(keeper);
        let clock = TestClock::start();
        let mut spec = ServerSpec::new(product);
        let text = |value: &str| SettingValue::Text(value.to_owned());
        spec.settings = settings.iter().map(|(n, value)| ((*n).to_owned(), text(value))).collect();
        let server = Products::built_in().start(&spec, &Place::under(&keeper), &clock).unwrap();
        let settings = server.facts().unwrap().settings;
        let socket = match product {
            "mariadb" => PathBuf::from(&settings["socket"]),
            _ => PathBuf::from(&settings["unix_socket_directories"])
                .join(format!(".s.PGSQL.{}", settings["port"])),
        };
        Standing { server: Some(server), socket, keeper }
    }

    /// For commands, with this catalog.
    pub(crate) fn url(&self, catalog: &str) -> String {
        let socket = &self.socket;
        match socket.extension().and_then(|port| port.to_str()).filter(|port| *port != "sock") {
            Some(port) => {
                let folder = socket.parent().unwrap().display();
                format!("postgresql://dyno@x:{port}/{catalog}?host={folder}")
            }
            None => format!("mysql://root@x/{catalog}?socket={}", socket.display()),
        }
    }

    pub(crate) fn connector(&self) -> Connector {
        self.server.as_ref().unwrap().connector()
    }

    pub(crate) fn connection(&self) -> Box<dyn Connection> {
        self.connector()().unwrap()
    }

    pub(crate) fn populate(&self, workload: &dyn Workload) {
        let mut connection = self.connection();
        for (idx, table) in workload.tables(connection.dialect()).iter().enumerate() {
            connection.query(&table.create).unwrap();
            let mut number = 0;
            let mut next_row = |row: &mut Row| {
                row.clear();
                if number < table.rows {
                    workload.fill_row(idx, number, row);
                }
                number += 1;
                number <= table.rows
            };
            connection.load_rows(&table.name, &table.columns, &mut next_row).unwrap();
            for statement in &table.after {
                connection.query(statement).unwrap();
            }
        }
    }
}

pub(crate) fn planned(name: &str, options: &[(&str, &str)]) -> MadeWorkload {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let catalog = Catalog::built_in();
    let spec = catalog.find(name).unwrap();
    MadeWorkload::new(spec.plan(&options.collect(), StepRequest::LEAST, Seed(5)).unwrap())
}

/// Without a warm-up.
pub(crate) fn put_load(
    connector: Connector,
    workload: &MadeWorkload,
    load: Load,
    seconds: u64,
) -> StepTotals {
    let job = Job {
        workload: workload.clone(),
        connector,
        clock: TestClock::start(),
        abort: AbortFlag::new(),
    };
    let spec = StepSpec {
        load,
        step: 0,
        warm_up: Nanoseconds::ZERO,
        duration: Nanoseconds::from_secs(seconds),
        until_steady: None,
        gone_limit: Some(dyno_load::GONE_LIMIT),
        statement_timeout: Nanoseconds::from_secs(30),
        retries: 10,
        workers: 1,
        cpus: Vec::new(),
        seed: Seed(9),
    };
    run_step(&spec, &job, &mut |_| {}).unwrap()
}

impl Drop for Standing {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().unwrap();
        }
        let _ = &self.keeper;
    }
}

const SHORT: [&str; 6] = ["--duration", "300ms", "--warm-up", "0s", "--table-size", "500"];

#[test]
fn tables_that_dyno_did_not_make_are_refused_and_kept() {
    let standing = Standing::start("mariadb");
    let mut connection = standing.connection();
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders(id INT PRIMARY KEY)",
        "INSERT INTO shop.orders VALUES (1), (2)",
    ] {
        connection.query(sql).unwrap();
    }
    let bench = Workbench::new();
    let url =
        |catalog: &str| format!("mysql://root@x/{catalog}?socket={}", standing.socket.display());
    let shop = url("shop");
    let arguments = ["bench", "oltp_point_select", "--on", &shop];
    let answer = bench.dyno(&[&arguments[..], &SHORT[..]].concat());
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("orders"), "{}", answer.err);
    assert!(answer.err.contains("--allow-existing-tables"), "{}", answer.err);
    let with = [&arguments[..], &SHORT[..], &["--allow-existing-tables"][..]].concat();
    bench.dyno_good(&with);
    let rows = connection.query("SELECT COUNT(*) FROM shop.orders").unwrap();
    assert_eq!(rows[0][0].as_deref(), Some("2"));
    let left = connection.query("SHOW TABLES FROM shop").unwrap();
    assert_eq!(left.len(), 1, "Dyno's own tables are gone: {left:?}");

    // Its tables stay on request, and the next run replaces them.
    let keeping = [&arguments[..], &SHORT[..], &["--allow-existing-tables", "--keep-tables"][..]];
    bench.dyno_good(&keeping.concat());
    let rows = connection.query("SELECT COUNT(*) FROM shop.sbtest1").unwrap();
    assert_eq!(rows[0][0].as_deref(), Some("500"));
    bench.dyno_good(&with);
    assert_eq!(connection.query("SHOW TABLES FROM shop").unwrap().len(), 1);

    // A missing catalog is made, and removed afterwards.
    let fresh = url("fresh");
    bench.dyno_good(&[&["bench", "oltp_point_select", "--on", &fresh], &SHORT[..]].concat());
    let left = connection.query("SHOW DATABASES LIKE 'fresh'").unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_password_reaches_no_record_report_message_or_process_list() {
    const PASSWORD: &str = "hunter2secret";
    let standing = Standing::start("mariadb");
    let mut connection = standing.connection();
    connection.query(&format!("CREATE USER tester@localhost IDENTIFIED BY '{PASSWORD}'")).unwrap();
    connection.query("GRANT ALL ON *.* TO tester@localhost").unwrap();
    let bench = Workbench::new();
    let url = format!("mysql://tester:{PASSWORD}@x/secret?socket={}", standing.socket.display());
    bench.write(
        "study.toml",
        &format!(
            "title = \"x\"\n[database.there]\nurl = \"{url}\"\n[workload.oltp_point_select]\n\
             table_size = 500\n[design]\nrepetitions = 1\nwarm_up = \"0s\"\nduration = \"1s\"\n\
             [probe.own]\ncommand = [\"sh\", \"-c\", \"echo a 1; : PGPASSWORD={PASSWORD}; : \
             mysql -p{PASSWORD}\"]\n"
        ),
    );
    let answer = bench.dyno_good(&["run", "study.toml"]);
    assert!(!answer.out.contains(PASSWORD) && !answer.err.contains(PASSWORD));
    let mut files = Vec::new();
    collect(&bench.path("runs"), &mut files);
    assert!(files.len() > 5, "{files:?}");
    for path in files {
        let bytes = unpacked(&path);
        let found = bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes());
        assert!(!found, "{} holds the password", path.display());
    }
    // The server refuses a wrong password, and the message does not repeat it.
    let wrong = url.replace(PASSWORD, "hunter3secret");
    let answer =
        bench.dyno(&[&["bench", "oltp_point_select", "--on", &wrong], &SHORT[..]].concat());
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("denied") && !answer.err.contains("hunter3"), "{}", answer.err);
    // On the command line, it is gone from the process list with Dyno's first message.
    let arguments = ["bench", "oltp_point_select", "--on", &url, "--duration", "2s"];
    let mut running = bench.start(&[&arguments[..], &["--table-size", "500"]].concat());
    running.wait_for(&["measuring"]);
    let line = std::fs::read(format!("/proc/{}/cmdline", running.child.id())).unwrap();
    let line = String::from_utf8_lossy(&line).into_owned();
    assert!(line.contains("oltp_point_select") && !line.contains(PASSWORD), "{line}");
    assert_eq!(running.end(), 0);
}

#[test]
fn secrets_in_settings_reach_no_record() {
    const SECRET: &str = "hunter4secret";
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        &format!(
            "title = \"x\"\n[database.there]\nproduct = \"mariadb\"\n\
             settings = {{ init_connect = \"SET @key = '{SECRET}'\" }}\n\
             [workload.oltp_point_select]\ntable_size = 500\n\
             [design]\nrepetitions = 1\nwarm_up = \"0s\"\nduration = \"1s\"\n"
        ),
    );
    let answer = bench.dyno_good(&["run", "study.toml"]);
    assert!(!answer.out.contains(SECRET) && !answer.err.contains(SECRET));
    let mut files = Vec::new();
    collect(&bench.path("runs"), &mut files);
    assert!(files.len() > 5, "{files:?}");
    for path in files {
        let bytes = unpacked(&path);
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "{} holds the secret", path.display());
    }
}

/// Each value has a secret, as in practice.
const SECRETIVE: [(&str, &str); 5] = [
    ("primary_conninfo", "host=h user=me password=hunter6secret application_name=x"),
    ("archive_command", "curl -H 'Authorization: Bearer hunter6secret' -T %p http://h/%f"),
    ("restore_command", "PGPASSWORD=hunter6secret fetch --token hunter6secret %f %p"),
    ("ssl_passphrase_command", "echo hunter6secret"),
    ("shop.api_key", "hunter6secret"),
];

/// No file of the runs has the secret, but the record has the text beside it.
#[track_caller]
fn check_runs_without(bench: &Workbench, secret: &str, beside: &str) {
    let mut files = Vec::new();
    collect(&bench.path("runs"), &mut files);
    assert!(files.len() > 5, "{files:?}");
    let mut has_other = false;
    for path in files {
        let bytes = unpacked(&path);
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!has(secret), "{} holds the secret", path.display());
        has_other |= path.ends_with("summary.json") && has(beside);
    }
    assert!(has_other, "settings are recorded");
}

#[test]
fn secrets_in_settings_of_a_server_by_url_reach_no_record_report_or_message() {
    let standing = Standing::start_with("postgresql", &SECRETIVE);
    let shown = standing.connection().query("SHOW primary_conninfo").unwrap();
    assert!(shown[0][0].as_deref().is_some_and(|value| value.contains("hunter6secret")));
    let folder = standing.socket.parent().unwrap().display().to_string();
    let port = standing.socket.extension().unwrap().to_string_lossy().into_owned();
    let bench = Workbench::new();
    bench.write(
        "study.toml",
        &format!(
            "title = \"x\"\n[database.there]\n\
             url = \"postgresql://dyno@x:{port}/secretive?host={folder}\"\n\
             [workload.oltp_point_select]\ntable_size = 500\n\
             [design]\nrepetitions = 1\nwarm_up = \"0s\"\nduration = \"1s\"\n"
        ),
    );
    let answer = bench.dyno_good(&["run", "study.toml"]);
    assert!(!answer.out.contains("hunter6") && !answer.err.contains("hunter6"));
    check_runs_without(&bench, "hunter6secret", "host=h user=me password=*** application_name=x");
}

#[test]
fn secrets_in_settings_of_a_private_postgresql_reach_no_record_report_or_message() {
    let bench = Workbench::new();
    let study = |settings: &[(&str, &str)]| {
        let line = |(name, value): &(&str, &str)| format!("\"{name}\" = \"{value}\"");
        let settings = settings.iter().map(line).collect::<Vec<_>>().join(", ");
        format!(
            "title = \"x\"\n[database.own]\nproduct = \"postgresql\"\n\
             settings = {{ {settings} }}\n[workload.oltp_point_select]\ntable_size = 500\n\
             [design]\nrepetitions = 1\nwarm_up = \"0s\"\nduration = \"1s\"\n"
        )
    };
    bench.write("study.toml", &study(&SECRETIVE));
    let answer = bench.dyno_good(&["run", "study.toml"]);
    assert!(!answer.out.contains("hunter6") && !answer.err.contains("hunter6"));
    check_runs_without(&bench, "hunter6secret", "host=h user=me password=*** application_name=x");
    // A server that fails to start quotes the wrong setting in its log.
    let wrong = [("shared_preload_libraries", "password=hunter6secret"), SECRETIVE[0]];
    bench.write("wrong.toml", &study(&wrong));
    let answer = bench.dyno(&["run", "wrong.toml"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.err.contains("could not access file"), "{}", answer.err);
    assert!(!answer.out.contains("hunter6") && !answer.err.contains("hunter6"), "{}", answer.err);
    check_runs_without(&bench, "hunter6secret", "could not access file");
}

#[test]
fn a_password_on_a_foreign_network_is_warned_of_once_and_recorded() {
    let bench = Workbench::new();
    // A host without a loopback name, and without a server.
    let url = "postgresql://me:hunter5secret@0.0.0.0:1/x";
    bench.write(
        "study.toml",
        &format!(
            "title = \"x\"\n[database.there]\nurl = \"{url}\"\n[workload.oltp_point_select]\n\
             [design]\nrepetitions = 2\nwarm_up = \"0s\"\nduration = \"1s\"\n"
        ),
    );
    let answer = bench.dyno(&["run", "study.toml"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    let warning = "the password of `me` and all data go to 0.0.0.0:1 without encryption";
    assert_eq!(answer.err.matches(warning).count(), 1, "{}", answer.err);
    assert!(!answer.err.contains("hunter5"), "{}", answer.err);
    let mut files = Vec::new();
    collect(&bench.path("runs"), &mut files);
    let events = files.iter().find(|path| path.ends_with("study/events.jsonl")).expect("events");
    let events = String::from_utf8(unpacked(events)).unwrap();
    assert_eq!(events.matches(warning).count(), 1, "{events}");
    // A wrong port is reported once, with its address.
    let arguments = ["bench", "oltp_point_select", "--on", url];
    let answer = bench.dyno(&[&arguments[..], &SHORT[..]].concat());
    assert_eq!(answer.err.matches("nothing is listening there").count(), 1, "{}", answer.err);
    assert!(!answer.err.contains("0.0.0.0:1: 0.0.0.0:1"), "{}", answer.err);
}

#[test]
fn a_trial_whose_clean_up_is_refused_keeps_its_result() {
    let standing = Standing::start("postgresql");
    let mut connection = standing.connection();
    let folder = standing.socket.parent().unwrap().display().to_string();
    let port = standing.socket.extension().unwrap().to_string_lossy().into_owned();
    let url = |catalog: &str| format!("postgresql://dyno@x:{port}/{catalog}?host={folder}");
    connection.query("CREATE DATABASE guarded").unwrap();
    let endpoint = dyno_database::Endpoint::from_url(&url("guarded")).unwrap();
    let mut guarded = dyno_database::postgresql::connect(&endpoint).unwrap();
    guarded
        .query(
            "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE 'nothing is dropped here'; END $$",
        )
        .unwrap();
    guarded
        .query(
            "CREATE EVENT TRIGGER guard ON ddl_command_start WHEN TAG IN ('DROP TABLE') \
             EXECUTE FUNCTION refuse()",
        )
        .unwrap();
    let bench = Workbench::new();
    let url = url("guarded");
    let arguments = ["bench", "oltp_point_select", "--on", &url, "--json"];
    let answer = bench.dyno(&[&arguments[..], &SHORT[..]].concat());
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.err.contains("CLEAN-UP FAILED"), "{}", answer.err);
    assert!(answer.err.contains("nothing is dropped here"), "{}", answer.err);
    let result: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert!(result["transactions"].as_u64().unwrap() > 0);
}

/// Cleaning up waits for a server that no longer answers: the reason is given before that.
#[test]
fn a_failure_is_told_before_tables_are_dropped() {
    let standing = Standing::start("postgresql");
    let folder = standing.socket.parent().unwrap().display().to_string();
    let port = standing.socket.extension().unwrap().to_string_lossy().into_owned();
    standing.connection().query("CREATE DATABASE closed").unwrap();
    let url = format!("postgresql://dyno@x:{port}/closed?host={folder}");
    let endpoint = dyno_database::Endpoint::from_url(&url).unwrap();
    let mut closed = dyno_database::postgresql::connect(&endpoint).unwrap();
    for sql in [
        "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE 'nothing is made here'; END $$",
        "CREATE EVENT TRIGGER guard ON ddl_command_start WHEN TAG IN ('CREATE TABLE') \
         EXECUTE FUNCTION refuse()",
    ] {
        closed.query(sql).unwrap();
    }
    let bench = Workbench::new();
    let arguments = ["bench", "oltp_point_select", "--on", &url];
    let answer = bench.dyno(&[&arguments[..], &SHORT[..]].concat());
    assert_eq!(answer.code, 1, "{}", answer.err);
    let told = answer.err.find("the trial has failed: ").expect(&answer.err);
    let ended = answer.err.find("error: the trial failed: ").expect(&answer.err);
    assert!(told < ended, "{}", answer.err);
    let line = answer.err[told..].lines().next().unwrap_or_default();
    assert!(line.contains("nothing is made here"), "{line}");
    let waiting = "to drop Dyno's tables; Ctrl-C ends the wait";
    assert!(line.contains("waiting for postgresql://") && line.ends_with(waiting), "{line}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

fn unpacked(path: &Path) -> Vec<u8> {
    if path.extension().is_some_and(|extension| extension == "gz") {
        std::process::Command::new("gzip").arg("-dc").arg(path).output().unwrap().stdout
    } else {
        std::fs::read(path).unwrap()
    }
}

#[test]
fn a_postgresql_that_runs_is_used_and_left_as_it_was() {
    let standing = Standing::start("postgresql");
    let folder = standing.socket.parent().unwrap().display().to_string();
    let port = standing.socket.extension().unwrap().to_string_lossy().into_owned();
    let bench = Workbench::new();
    let url = format!("postgresql://dyno@x:{port}/fresh?host={folder}");
    let result = bench.bench(&[&["oltp_read_write", "--on", &url], &SHORT[..]].concat());
    assert!(result["transactions"].as_u64().unwrap() > 0);
    let mut connection = standing.connection();
    let left = connection.query("SELECT 1 FROM pg_database WHERE datname = 'fresh'").unwrap();
    assert!(left.is_empty());
}
