//! Golden pages of the catalogue: each bench-top study, made small and simulated, from file to
//! page. `UPDATE_EXPECT=1 cargo test -p dyno --test it golden` rewrites them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dyno_model::StepRequest;
use dyno_units::Seed;
use dyno_workload::catalog::Catalog;
use expect_test::expect_file;

use crate::golden;

/// Replacements for values of workloads and designs, so that a study takes no second.
const SMALL: [(&str, &str); 17] = [
    ("budget", ""),
    ("duration", "\"3s\""),
    ("history", "5"),
    ("limit_s", "60"),
    ("obj_table_size", "\"2k\""),
    ("repetitions", "3"),
    ("rest", "\"0s\""),
    ("resync_get_min", "5"),
    ("rows_i0", "\"10k\""),
    ("rows_i1", "\"2k\""),
    ("rows_i2", "\"200\""),
    ("run_off", ""),
    ("scale", "1"),
    ("table_size", "\"1k\""),
    ("tables", "1"),
    ("threshold", "\"5%\""),
    ("warm_up", "\"1s\""),
];

/// A table's name and its lines.
type Part<'a> = (&'a str, Vec<&'a str>);

/// In order; the first table has no name. Without comments.
fn parts(study: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part> = vec![("", Vec::new())];
    for line in study.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => parts.push((name, Vec::new())),
            None => parts.last_mut().expect("there is a first one").1.push(line),
        }
    }
    parts
}

/// Mean service times of databases, in microseconds: 1 ms for the first, 10 % more for each that
/// sets something; one that sets nothing takes as long as the one it is like.
fn service_times<'a>(parts: &[Part<'a>]) -> BTreeMap<&'a str, f64> {
    let mut times = BTreeMap::new();
    let mut next = 1000.0;
    for (name, lines) in parts {
        let Some(name) = name.strip_prefix("database.").filter(|name| !name.contains('.')) else {
            continue;
        };
        let value = |key: &str| {
            let value = lines.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            value.map(|value| value.trim_matches('"'))
        };
        let settings = format!("database.{name}.settings");
        let sets = value("settings").is_some() || parts.iter().any(|(name, _)| *name == settings);
        let same = value("like").filter(|_| !sets).and_then(|like| times.get(like).copied());
        let time = same.unwrap_or(next);
        if same.is_none() {
            next *= 1.1;
        }
        times.insert(name, time);
    }
    times
}

/// Workloads that decide by rows that they read, with a setting for small tables: their simulated
/// servers have rows, and are faster, as a transaction has many statements.
const READING: [(&str, &str); 1] = [("tpcc", "size = \"small\"\n")];

/// How much faster servers of [`READING`] workloads are.
const FASTER: f64 = 10.0;

/// With a database for each volume, which simulated servers lack.
fn without_volumes(study: &str) -> String {
    if !study.contains("[volume.") {
        return study.to_owned();
    }
    let is_volume = |name: &str| name.starts_with("volume.");
    let parts = parts(study).into_iter().filter(|(name, _)| !name.starts_with("database."));
    let text = parts.map(|(name, lines)| {
        let lines = match is_volume(name) {
            // Each is another database.
            true => "settings = {}".to_owned(),
            false => lines.join("\n").replace("volume = ", "database = "),
        };
        let heading = name.replace("volume.", "database.");
        if name.is_empty() { format!("{lines}\n") } else { format!("[{heading}]\n{lines}\n") }
    });
    text.collect()
}

/// On simulated servers: keeps title, variants and loads, drops what such servers lack (engine,
/// settings, volumes), and uses `SMALL` sizes and times.
fn simulated(study: &str) -> String {
    let study = &without_volumes(study);
    let parts = parts(study);
    let times = service_times(&parts);
    let reading = |name: &str| {
        let workload = name.strip_prefix("workload.")?;
        READING.iter().find(|(reading, _)| *reading == workload).map(|(_, small)| *small)
    };
    let reads = parts.iter().any(|(name, _)| reading(name).is_some());
    let (faster, store) = if reads { (FASTER, ", store = \"sqlite\"") } else { (1.0, "") };
    let mut out = String::new();
    // A simulated server has no process for faults.
    let parts = parts.iter().filter(|(name, _)| !name.starts_with("fault."));
    for (name, lines) in parts {
        match name.strip_prefix("database.") {
            Some(name) if name.contains('.') => continue,
            Some(name) => {
                out += &format!(
                    "[database.{name}]\nproduct = \"simulated\"\nsettings = {{ service_time = \
                     \"{:.0}us\", servers = 2, noise = 0.02{store} }}\n",
                    times[name] / faster
                );
                continue;
            }
            None if name.is_empty() => {}
            None => out += &format!("[{name}]\n"),
        }
        for line in lines {
            let small = line
                .split_once(" = ")
                .and_then(|(key, _)| SMALL.iter().find(|(name, _)| *name == key));
            out += &match small {
                Some((_, "")) => String::new(),
                Some((key, value)) => format!("{key} = {value}\n"),
                None => format!("{line}\n"),
            };
        }
        out += reading(name).unwrap_or_default();
        if *name == "design" && !lines.iter().any(|line| line.starts_with("seed ")) {
            out += "seed = 1\n";
        }
    }
    out
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

fn check(name: &str) {
    let study = std::fs::read_to_string(folder().join(name).join("bench-top.toml")).unwrap();
    let page = format!("../../../dyno-report/tests/golden/catalog/{name}.txt");
    golden::check(&simulated(&study), expect_file![page]);
}

/// A test for each study, and a list of names.
macro_rules! pages {
    ($($test:ident: $name:literal,)*) => {
        const PAGES: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                check($name);
            }
        )*
    };
}

pages! {
    aa: "aa",
    connections: "connections",
    cpu_shootout: "cpu-shootout",
    dips: "dips",
    dbstress: "dbstress",
    durability: "durability",
    faults: "faults",
    fsync: "fsync",
    injected_dips: "injected-dips",
    insert_benchmark: "insert-benchmark",
    key_order: "key-order",
    pgbench: "pgbench",
    queue: "queue",
    saturation: "saturation",
    throttled_filesystems: "throttled-filesystems",
    tpcc_volumes: "tpcc-volumes",
    zfs_cache: "zfs-cache",
    zfs_tpcc: "zfs-tpcc",
}

/// Their questions do not fit a simulated server: it has no jobs in real time, no log drive, snapshot, other database,
/// version, replica, shard, pooler, external column or document, and no agents can connect.
const WITHOUT_PAGE: [&str; 16] = [
    "archive",
    "clickhouse",
    "create-index",
    "deployments",
    "documents",
    "log-drive",
    "migration",
    "pooling",
    "replicas",
    "restore",
    "shards",
    "sql-servers",
    "two-drives",
    "vectors",
    "versions",
    "zfs-by-hand",
];

#[test]
fn every_bench_top_study_has_a_page() {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap());
    let mut there: Vec<String> = entries
        .filter(|entry| entry.path().join("bench-top.toml").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| !WITHOUT_PAGE.contains(&name.as_str()))
        .collect();
    there.sort();
    let mut expected = PAGES.to_vec();
    expected.sort_unstable();
    assert_eq!(there, expected);
}

#[test]
fn a_study_is_made_small_and_keeps_its_question() {
    let study = r#"#:schema x
title = "Is it?"

[database.a]
product = "mariadb"
engine = "RocksDB"

# A comment.
[database.a.settings]
x = "y"

[database.b]
like = "a"

[database.c]
like = "a"
settings = { x = "z" }

[workload.tpcb]
scale = 10
script = "select-only"

[design]
repetitions = 7
budget = "5min"

[design.vary]
clients = [1, 8]
database = [
    "a", "b", "c",
]
"#;
    let server = |time: &str| {
        format!(
            "product = \"simulated\"\nsettings = {{ service_time = \"{time}\", servers = 2, noise \
             = 0.02 }}\n"
        )
    };
    let expected = format!(
        "title = \"Is it?\"\n[database.a]\n{}[database.b]\n{}[database.c]\n{}[workload.tpcb]\n\
         scale = 1\nscript = \"select-only\"\n[design]\nrepetitions = 3\nseed = 1\n\
         [design.vary]\nclients = [1, 8]\ndatabase = [\n    \"a\", \"b\", \"c\",\n]\n",
        server("1000us"),
        server("1000us"),
        server("1100us"),
    );
    assert_eq!(simulated(study), expected);

    let reading = study.replace("[workload.tpcb]", "[workload.tpcc]");
    let made = simulated(&reading);
    for line in [
        "settings = { service_time = \"100us\", servers = 2, noise = 0.02, store = \"sqlite\" }",
        "settings = { service_time = \"110us\", servers = 2, noise = 0.02, store = \"sqlite\" }",
        "size = \"small\"",
    ] {
        assert!(made.contains(line), "{made}");
    }
}

/// Kinds of Dyno's workloads never show as in code.
#[test]
fn every_kind_of_transaction_has_a_readable_name() {
    let catalog = Catalog::built_in();
    let mut n_kinds = 0;
    for spec in catalog.workloads() {
        // Users name scripts.
        if ["pgbench", "sysbench"].contains(&spec.name.as_ref()) {
            continue;
        }
        let plan = spec.plan(&BTreeMap::new(), StepRequest::LEAST, Seed(5));
        let workload = plan.unwrap_or_else(|error| panic!("{error}"));
        // Each of the sysbench family has one kind, the workload itself.
        for kind in workload.kinds().iter().filter(|kind| **kind != spec.name) {
            let title = dyno_analysis::kinds::title(&spec.name, kind);
            assert!(!title.contains('_'), "{}: {title}", spec.name);
            n_kinds += 1;
        }
    }
    assert!(n_kinds >= 20, "only {n_kinds} kinds");
}
