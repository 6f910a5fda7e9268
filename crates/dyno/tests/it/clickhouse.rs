//! ClickHouse as a user sees it: private and by URL, under load, with audits.

use std::fs;
use std::sync::Arc;

use dyno_database::{Act, Place, Products, Server, ServerSpec};
use dyno_host::Keeper;
use dyno_units::SettingValue;

use crate::bench::check_audit;
use crate::foreign::TestClock;
use crate::support::{DataFolder, Workbench, await_good, is_alive};
use crate::up::UpBench;

const SHORT: [&str; 6] = ["--duration", "1s", "--warm-up", "300ms", "--clients", "3"];
const TABLES: [&str; 6] = ["--tables", "2", "--table-size", "3000", "--create-secondary", "false"];

#[track_caller]
fn check_load(place: &[&str], workload: &[&str]) {
    let result = Workbench::new().bench(&[workload, place, &TABLES, &SHORT].concat());
    check_audit(&result, &format!("{workload:?}"));
    assert!(result["transactions"].as_u64() > Some(0), "{result:#}");
    assert_eq!(result["errors"]["total"].as_u64().unwrap_or(0), 0, "{result:#}");
}

#[test]
fn what_it_can_run_runs_and_is_audited() {
    check_load(&["--on", "clickhouse"], &["oltp_point_select"]);
    // The others, to save time, on a standing one.
    let folder = DataFolder::new();
    let server = start(&folder, &[]).unwrap();
    let url = server.reach().unwrap().endpoint;
    let password = url.password.as_ref().unwrap().reveal();
    let url = url.to_string().replace("dyno@", &format!("dyno:{password}@"));
    let place = ["--on", &*url];
    check_load(&place, &["oltp_read_only", "--skip-trx", "true"]);
    check_load(&place, &["oltp_insert"]);
    check_load(&place, &["select_random_points"]);
    check_load(&place, &["select_random_ranges"]);
    server.stop().unwrap();
}

#[test]
fn what_it_cannot_run_is_refused_with_what_to_do() {
    let check = |workload: &[&str], part: &str| {
        let on = ["--on", "clickhouse"];
        let answer = Workbench::new().dyno(&[&["bench"], workload, &on[..], &SHORT].concat());
        assert!(answer.code == 2 && answer.err.contains(part), "{workload:?}: {}", answer.err);
    };
    check(&["oltp_read_only", "--create-secondary", "false"], "skip_trx = true");
    check(&["oltp_point_select"], "create_secondary = false");
    check(&["oltp_write_only"], "ClickHouse has neither");
    check(&["bulk_insert"], "ClickHouse does not report");
    check(&["tpcb"], "ClickHouse has neither");
    check(&["tpcc"], "ClickHouse has neither");
    check(&["insert-benchmark"], "ClickHouse has neither");
}

fn start(folder: &DataFolder, settings: &[(&str, &str)]) -> Result<Box<dyn Server>, String> {
    let keeper = Arc::new(Keeper::new(folder.path()).unwrap());
    let mut spec = ServerSpec::new("clickhouse");
    let text = |value: &str| SettingValue::Text(value.to_owned());
    spec.settings = settings.iter().map(|(n, value)| ((*n).to_owned(), text(value))).collect();
    Products::built_in()
        .start(&spec, &Place::under(&keeper), &TestClock::start())
        .map_err(|error| error.message)
}

#[test]
fn settings_that_it_does_not_take_are_refused() {
    let folder = DataFolder::new();
    let check = |name: &str, value: &str, part: &str| {
        let why = start(&folder, &[(name, value)]).err().expect("it is refused");
        assert!(why.contains(part), "{why}");
    };
    check("no_such_setting", "1", "Unknown setting no_such_setting");
    check("max_memory_usage", "lots", "it read it as `0`");
    check("merge_tree.index_granularty", "1", "Unknown MergeTree setting index_granularty");
    check("http_port", "1", "set by Dyno");
    let server = start(&folder, &[("max_threads", "1"), ("merge_tree.index_granularity", "1024")]);
    let mut server = server.unwrap();
    let facts = server.facts().unwrap();
    assert_eq!(facts.settings["max_threads"], "1");
    assert_eq!(facts.settings["merge_tree.index_granularity"], "1024");
    assert_eq!((&*facts.durability.words, &*facts.product), ("not synced", "ClickHouse"));
    assert_eq!(server.down(), None);
    server.stop().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was left");
}

#[test]
fn the_password_is_in_no_command_line_and_no_environment() {
    let folder = DataFolder::new();
    let server = start(&folder, &[]).unwrap();
    let endpoint = server.reach().unwrap().endpoint;
    let password = endpoint.password.as_ref().unwrap().reveal().to_owned();
    assert!(password.len() >= 16 && !endpoint.to_string().contains(&password));
    let pid = server.processes()[0];
    for file in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(&password), "{file}");
    }
    let url = |word: &str| {
        let place = endpoint.to_string();
        place.replace("dyno@", &format!("dyno:{word}@"))
    };
    // By URL it is an ordinary server; a wrong password is reported, but not shown.
    let bench = Workbench::new();
    let load = [&["bench", "oltp_point_select"], &TABLES[..], &SHORT].concat();
    let good = url(&password);
    bench.dyno_good(&[&load[..], &["--on", &good]].concat());
    let wrong = url("wrong-word-55");
    let answer = bench.dyno(&[&load[..], &["--on", &wrong]].concat());
    assert!(answer.code != 0 && answer.err.contains("Wrong password"), "{}", answer.err);
    assert!(!answer.err.contains("wrong-word-55"), "{}", answer.err);
    // Dyno's objects are gone; others' stay untouched.
    let mut connection = server.connector()().unwrap();
    let tables = "SELECT name FROM system.tables WHERE database = currentDatabase()";
    assert!(connection.query(tables).unwrap().is_empty());
    connection.query("CREATE TABLE theirs (a Int32) ENGINE = Log").unwrap();
    let answer = bench.dyno(&[&load[..], &["--on", &good]].concat());
    assert!(answer.code != 0 && answer.err.contains("theirs"), "{}", answer.err);
    assert_eq!(connection.query(tables).unwrap().len(), 1);
    // A forged list of Dyno's tables must not make it drop others'.
    let forged = "CREATE VIEW dyno_tables AS SELECT 'tables of Dyno: theirs' AS noted";
    connection.query(forged).unwrap();
    bench.dyno(&[&load[..], &["--on", &good]].concat());
    let left = connection.query(tables).unwrap();
    assert!(left.contains(&vec![Some("theirs".to_owned())]), "{left:?}");
    drop(connection);
    server.stop().unwrap();
}

#[test]
fn a_server_that_dies_is_a_failed_trial_and_leaves_nothing() {
    let folder = DataFolder::new();
    let mut server = start(&folder, &[]).unwrap();
    let mut connection = server.connector()().unwrap();
    connection.query("SELECT 1").unwrap();
    let control = server.control().unwrap();
    control.act(Act::Kill).unwrap();
    assert!(server.down().is_some());
    assert!(connection.query("SELECT 1").is_err());
    // The port is free or a stranger's: nothing is sent to it.
    assert!(server.connector()().is_err());
    control.act(Act::Start).unwrap();
    let mut connection = await_good(|| server.connector()().map_err(|error| error.to_string()));
    assert_eq!(
        connection.query("SELECT currentDatabase()").unwrap()[0][0].as_deref(),
        Some("dyno")
    );
    let pid = server.processes()[0];
    drop(connection);
    server.stop().unwrap();
    assert!(!is_alive(pid));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was left");
}

#[test]
fn a_server_that_stays_is_reached_with_its_password_file() {
    let bench = UpBench::new();
    let url = bench.up(&["clickhouse"]);
    let (_, file) = url.split_once("?password_file=").expect("the URL names the file");
    let password = fs::read_to_string(file).unwrap().trim().to_owned();
    assert!(password.len() >= 16);
    let listed = bench.ls();
    let member = &listed[0]["members"][0];
    assert_eq!((&listed[0]["state"], &member["url"]), (&"up".into(), &url.as_str().into()));
    // Study and load use the URL; neither shows the password.
    let load = [&["bench", "oltp_insert", "--on", &url], &TABLES[..], &SHORT].concat();
    let answer = bench.good(&load);
    assert!(!format!("{}{}", answer.out, answer.err).contains(&password));
    bench.bench.write(
        "study.toml",
        &format!(
            "title = \"Reads\"\n[database.kept]\nurl = \"{url}\"\n[workload.oltp_point_select]\n\
             table_size = 1000\ncreate_secondary = false\n[design]\nclients = 2\n\
             repetitions = 1\nwarm_up = \"0s\"\nduration = \"1s\"\nrest = \"0s\"\n"
        ),
    );
    bench.good(&["run", "study.toml"]);
    assert!(!holds(&bench.bench.path("."), &password), "the record has the password");
    // A file tells its own client the password.
    match client_folder() {
        Some(_) => {
            let answer = bench.good(&["connect", "clickhouse", "--", "--query", "SELECT 6 * 7"]);
            assert_eq!(answer.out.trim(), "42", "{}", answer.err);
        }
        None => eprintln!("skipped: there is no clickhouse-client here"),
    }
    bench.good(&["logs", "clickhouse"]);
    // A file that others can read is refused.
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(file, mode(0o644)).unwrap();
    let answer = bench.dyno(&load);
    assert!(
        answer.code != 0 && answer.err.contains("can be read by other users"),
        "{}",
        answer.err
    );
    bench.good(&["down", "clickhouse"]);
    assert_eq!(bench.left(), Vec::<String>::new());
    assert!(!std::path::Path::new(file).exists());
}

/// None if it is not installed.
fn client_folder() -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join("clickhouse-client").is_file())
}

fn holds(folder: &std::path::Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
        match entry.file_type().unwrap().is_dir() {
            true => holds(&entry.path(), text),
            false => String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).contains(text),
        }
    })
}
