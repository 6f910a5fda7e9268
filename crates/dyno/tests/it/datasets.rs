//! Data sets are populated once, kept, and reused by trials that would make the same.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dyno_database::{Place, Products, ServerSpec};
use dyno_host::Keeper;
use dyno_model::StepRequest;
use dyno_units::{Clock, Seed};
use dyno_workload::Row;
use dyno_workload::catalog::Catalog;
use rustix::process::Signal;
use serde_json::Value;

use crate::foreign::TestClock;
use crate::support::{DataFolder, Workbench, await_that, events, read_json, trial_folder};

const ROWS: u64 = 1200;

/// With a data folder that the user of servers can enter; both vanish with the test.
struct DataBench {
    bench: Workbench,
    folder: DataFolder,
    n_trials: AtomicU32,
}

impl DataBench {
    fn new() -> DataBench {
        DataBench {
            bench: Workbench::new(),
            folder: DataFolder::new(),
            n_trials: AtomicU32::new(0),
        }
    }

    fn arguments<'a>(&'a self, product: &'a str, rows: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let folder = self.folder.text();
        let mut arguments = vec!["bench", "oltp_write_only", "--on", product];
        arguments.extend(["--data-folder", folder, "--table-size", rows]);
        arguments.extend(["--duration", "1s", "--warm-up", "0s"]);
        arguments.extend(more);
        arguments
    }

    #[track_caller]
    fn trial(&self, product: &str, rows: u64, more: &[&str]) -> Trial {
        let n = self.n_trials.fetch_add(1, Ordering::Relaxed);
        let (out, rows) = (format!("out-{n}"), rows.to_string());
        let more = [more, &["--out", &out, "--json"]].concat();
        let answer = self.bench.dyno_good(&self.arguments(product, &rows, &more));
        let result: Value = serde_json::from_str(&answer.out).expect("bench prints JSON");
        let folder = trial_folder(&self.bench.path(&out), 1);
        let trial = Trial {
            is_reused: result["data"]["reused"].as_bool().unwrap(),
            key: result["data"]["key"].as_str().map(str::to_owned),
            rows: result["data"]["rows"].as_u64().unwrap(),
            settings: read_json(&folder.join("summary.json"))["server"]["settings"].clone(),
            events: events(&folder),
            message: answer.err,
        };
        let has = |event: &str| trial.events.contains(&format!("\"event\":\"{event}\""));
        assert_eq!(has("data_set_reused"), trial.is_reused, "{}", trial.events);
        assert_eq!(has("populated"), !trial.is_reused, "{}", trial.events);
        assert_eq!(has("data_set_kept"), !trial.is_reused && trial.key.is_some());
        trial
    }

    fn datasets(&self, more: &[&str]) -> crate::support::Answer {
        let folder = self.folder.text();
        self.bench.dyno(&[&["datasets", "--data-folder", folder], more].concat())
    }

    /// Read by another server, from a copy.
    fn kept_rows(&self, product: &str, key: &str) -> String {
        let keeper = Arc::new(Keeper::new(self.folder.path()).unwrap());
        let clock: Arc<dyn Clock> = TestClock::start();
        let holder = keeper.make_folder("test").unwrap();
        let (kept, copy) =
            (self.folder.path().join("datasets").join(key).join("data"), holder.join("d"));
        let layout = dyno_host::CopyLayout::AsOriginal;
        dyno_host::copy_folder(&kept, &copy, keeper.run_as(), layout, &|| false).unwrap();
        let spec = ServerSpec::new(product);
        let server =
            Products::built_in().start_on(&copy, &spec, &Place::under(&keeper), &clock).unwrap();
        let mut connection = server.connector()().unwrap();
        let rows = connection.query("SELECT id, k, c, pad FROM sbtest1 ORDER BY id").unwrap();
        drop(connection);
        server.stop().unwrap();
        keeper.remove_folder(&holder).unwrap();
        let line = |row: Vec<Option<String>>| {
            let cells: Vec<String> =
                row.into_iter().map(|cell| cell.unwrap().trim_end().to_owned()).collect();
            cells.join("\t") + "\n"
        };
        rows.into_iter().map(line).collect()
    }
}

struct Trial {
    is_reused: bool,
    key: Option<String>,
    rows: u64,
    settings: Value,
    events: String,
    message: String,
}

/// As the workload makes them for the seed of `dyno bench`.
fn true_rows() -> String {
    let options = BTreeMap::from([("table_size".to_owned(), ROWS.to_string())]);
    let catalog = Catalog::built_in();
    let spec = catalog.find("oltp_write_only").unwrap();
    let seed = Seed(1).derive("data", 0);
    let workload = spec.plan(&options, StepRequest::LEAST, seed).unwrap();
    let (mut row, mut text) = (Row::new(), Vec::new());
    for number in 0..ROWS {
        row.clear();
        workload.fill_row(0, number, &mut row);
        row.write_tab_separated(&mut text);
    }
    String::from_utf8(text).unwrap()
}

/// The second trial reuses the first one's data, without the trials' writes. `free` is a setting
/// without traces in data, `shaping` one with.
fn reused_on(product: &str, free: &str, shaping: &str) {
    let bench = DataBench::new();
    let first = bench.trial(product, ROWS, &["--setting", free]);
    assert!(!first.is_reused);
    let key = first.key.unwrap();
    let second = bench.trial(product, ROWS, &[]);
    assert!(second.is_reused, "{}", second.message);
    assert_eq!((second.key.as_deref(), second.rows), (Some(key.as_str()), ROWS));
    assert!(
        second.message.contains("data set reused (1,200 rows, populated in"),
        "{}",
        second.message
    );
    let (name, value) = free.split_once('=').unwrap();
    assert_eq!(first.settings[name], value);
    assert_ne!(second.settings[name], value, "a setting of the first trial is in the second one");
    assert_eq!(bench.kept_rows(product, &key), true_rows());

    for (rows, more) in
        [(ROWS, ["--setting", shaping]), (ROWS, ["--seed", "2"]), (900, ["--clients", "1"])]
    {
        let other = bench.trial(product, rows, &more);
        assert!(!other.is_reused, "{more:?}");
        assert_ne!(other.key.as_deref(), Some(key.as_str()), "{more:?}");
        assert_eq!(other.rows, rows);
    }
    let listed = bench.datasets(&[]).out;
    assert_eq!(listed.lines().count(), 1 + 4 + 1, "{listed}");
    let fifth = bench.trial(product, ROWS, &["--no-reuse"]);
    assert!(!fifth.is_reused && fifth.key.is_none());
    assert_eq!(bench.datasets(&[]).out.lines().count(), 6);
}

#[test]
fn a_data_set_is_reused_on_sqlite() {
    reused_on("sqlite", "journal_mode=wal", "page_size=8192");
}

#[test]
fn a_data_set_is_reused_on_mariadb() {
    reused_on("mariadb", "max_connections=77", "innodb_log_file_size=16777216");
}

#[test]
#[ignore = "matrix products: as a MariaDB, which is in the suite"]
fn a_data_set_is_reused_on_postgresql() {
    reused_on("postgresql", "deadlock_timeout=7s", "max_wal_size=64MB");
}

#[test]
fn variants_and_repetitions_share_one_data_set() {
    let bench = DataBench::new();
    bench.bench.write(
        "study.toml",
        "title = \"x\"\n[database.a]\nproduct = \"sqlite\"\n[workload.oltp_point_select]\n\
         table_size = 500\n[design]\nvary = { setting.synchronous = [\"off\", \"full\"] }\n\
         repetitions = 2\nduration = \"200ms\"\nwarm_up = \"0s\"\nrest = \"0s\"\n",
    );
    let folder = bench.folder.text();
    bench.bench.dyno_good(&["run", "study.toml", "--data-folder", folder]);
    let reused: Vec<bool> = (1..=4)
        .map(|number| {
            let trial = trial_folder(&bench.bench.path("runs/study"), number);
            read_json(&trial.join("summary.json"))["data"]["reused"].as_bool().unwrap()
        })
        .collect();
    assert_eq!(reused, [false, true, true, true]);
    let findings = bench.bench.json("runs/study/findings.json");
    assert_eq!(findings["trials"][3]["is_reused"], true);

    bench.bench.write("no.toml", &{
        let text = std::fs::read_to_string(bench.bench.path("study.toml")).unwrap();
        text.replace("[design]\n", "[design]\nreuse = false\n")
    });
    bench.bench.dyno_good(&["run", "no.toml", "--data-folder", folder]);
    let trial = trial_folder(&bench.bench.path("runs/no"), 4);
    let data = read_json(&trial.join("summary.json"))["data"].clone();
    assert_eq!((&data["reused"], &data["key"]), (&false.into(), &Value::Null));
}

/// No data set is kept, and nothing else is left.
#[track_caller]
fn check_empty(bench: &DataBench) {
    let listed = bench.datasets(&[]).out;
    assert!(listed.contains("no data sets are kept"), "{listed}");
    let entries: Vec<_> = std::fs::read_dir(bench.folder.path()).unwrap().flatten().collect();
    assert!(entries.is_empty(), "{entries:?}");
}

#[test]
fn what_was_not_populated_to_its_end_is_not_kept() {
    let bench = DataBench::new();
    // So many rows that progress, shown after a second, comes long before the end on any machine.
    let rows = "20M";
    for (signal, code) in [(Signal::KILL, -1), (Signal::INT, 130)] {
        let out = format!("out-{code}");
        let mut running = bench.bench.start(&bench.arguments("sqlite", rows, &["--out", &out]));
        let trials = bench.bench.path(&out).join("trials");
        await_that("some rows are stored", || {
            let ended = running.child.try_wait().unwrap();
            assert!(ended.is_none(), "dyno ended before it was stopped: {ended:?}");
            has_populated_some(&trials)
        });
        running.signal(signal);
        assert_eq!(running.end(), code);
        assert_eq!(
            std::fs::read_dir(bench.folder.path().join("datasets")).map_or(0, Iterator::count),
            0
        );
    }
    // A failure half-way keeps nothing either; the next run removes what the killed one left.
    let more = ["--setting", "max_page_count=2000"];
    let full = bench.bench.dyno(&bench.arguments("sqlite", rows, &more));
    assert_eq!(full.code, 1);
    assert!(full.err.contains("full"), "{}", full.err);
    check_empty(&bench);
}

fn has_populated_some(trials: &Path) -> bool {
    let entries = std::fs::read_dir(trials).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("events.jsonl")).ok())
        .any(|text| text.contains("populate_progressed"))
}

#[test]
fn two_at_once_keep_one() {
    let bench = DataBench::new();
    let start = |out: &'static str| {
        let arguments = bench.arguments("sqlite", "20000", &["--out", out]);
        bench.bench.start(&arguments)
    };
    let (one, two) = (start("one"), start("two"));
    assert_eq!((one.end(), two.end()), (0, 0));
    assert_eq!(bench.datasets(&[]).out.lines().count(), 3);
    assert!(bench.trial("sqlite", 20_000, &[]).is_reused);
}

#[test]
fn data_sets_are_listed_and_removed() {
    let bench = DataBench::new();
    check_empty(&bench);
    let keys: Vec<String> = [700, 800, 900]
        .into_iter()
        .map(|rows| bench.trial("sqlite", rows, &[]).key.unwrap())
        .collect();
    let listed = bench.datasets(&[]).out;
    let line = listed.lines().find(|line| line.starts_with(&keys[1])).unwrap();
    for word in ["sqlite", "3.", "oltp_write_only", "800", "KiB", "UTC"] {
        assert!(line.contains(word), "{word}: {line}");
    }
    let removed = bench.datasets(&["--remove", &keys[1]]);
    assert_eq!((removed.code, removed.out.trim()), (0, format!("removed {}", keys[1]).as_str()));
    assert!(!bench.datasets(&[]).out.contains(&keys[1]));
    let again = bench.datasets(&["--remove", &keys[1]]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("no data set"), "{}", again.err);
    assert!(!bench.trial("sqlite", 800, &[]).is_reused);
    assert_eq!(bench.datasets(&["--remove-all"]).code, 0);
    let listed = bench.datasets(&[]).out;
    assert!(listed.contains("no data sets are kept"), "{listed}");
}

#[test]
fn a_damaged_data_set_fails_its_trial_with_advice() {
    let bench = DataBench::new();
    let key = bench.trial("sqlite", 700, &[]).key.unwrap();
    let file = bench.folder.path().join("datasets").join(&key).join("data/dyno.db");
    std::fs::write(&file, "this is no database, and far too short for one").unwrap();
    let answer = bench.bench.dyno(&bench.arguments("sqlite", "700", &[]));
    assert_eq!(answer.code, 1);
    let advice = format!("dyno datasets --remove {key}");
    assert!(answer.err.contains(&advice), "{}", answer.err);
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| match entry.metadata().unwrap() {
            facts if facts.is_dir() => bytes_below(&entry.path()),
            facts => facts.len(),
        })
        .sum()
}

/// `11.2 MiB` after `before`.
#[track_caller]
fn size_behind(text: &str, before: &str) -> f64 {
    let tail = text.split_once(before).unwrap_or_else(|| panic!("{before}: {text}")).1;
    let size = tail.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    size.parse::<dyno_units::ByteCount>().unwrap_or_else(|_| panic!("{size}: {text}")).0 as f64
}

const DISK_STUDY: &str = "title = \"x\"\n[database.a]\nproduct = \"sqlite\"\n\
     [workload.oltp_read_write]\ntable_size = \"80k\"\n[design]\nrepetitions = 1\n\
     duration = \"300ms\"\nwarm_up = \"0s\"\nrest = \"0s\"\n";

#[test]
fn the_disk_that_a_plan_estimates_is_what_a_run_takes() {
    let bench = DataBench::new();
    bench.bench.write("study.toml", DISK_STUDY);
    let plan = bench.bench.dyno_good(&["plan", "study.toml"]).out;
    let folder = bench.folder.text();
    bench.bench.dyno_good(&["run", "study.toml", "--data-folder", folder]);
    let check = |estimate: f64, measured: u64| {
        let ratio = estimate / measured as f64;
        assert!((0.5..2.0).contains(&ratio), "{estimate} instead of {measured}\n{plan}");
    };
    check(size_behind(&plan, "and about "), bytes_below(&bench.folder.path().join("datasets")));
    let trial = trial_folder(&bench.bench.path("runs/study"), 1);
    let data = read_json(&trial.join("summary.json"))["data"].clone();
    let sizes = ["bytes_after", "log_bytes_after"].map(|name| data[name].as_u64().unwrap_or(0));
    check(size_behind(&plan, "disk    about "), sizes.iter().sum());
}

#[test]
fn data_sets_are_kept_within_limits_of_age_and_size() {
    let bench = DataBench::new();
    bench.bench.write("study.toml", DISK_STUDY);
    let folder = bench.folder.text();
    let run = |more: &[&str]| {
        let all = [&["run", "study.toml", "--new", "--data-folder", folder], more].concat();
        bench.bench.dyno_good(&all).err
    };
    let kept = run(&[]);
    assert!(kept.contains("1 data set kept in "), "{kept}");
    assert!(!kept.contains("removed"), "{kept}");
    // It was just used, which is already too long ago.
    let old = run(&["--keep-data-for", "0s"]);
    assert!(old.contains("0 data sets kept in ") && old.contains("; 1 old one, "), "{old}");
    assert!(bench.datasets(&[]).out.contains("no data sets are kept"));
    let large = run(&["--keep-data", "1MiB"]);
    assert!(large.contains("the data set is not kept: its size is "), "{large}");
    assert!(bench.datasets(&[]).out.contains("no data sets are kept"));
}
