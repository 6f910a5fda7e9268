//! A vocabulary and a study for the tests of this crate.

use std::sync::Arc;

use dyno_units::Nanoseconds;

use crate::vocabulary::{
    Frame, OptionWord, Options, ProductWord, RoleOutline, SettingRules, StepOutline, ValueKind,
    Vocabulary, WorkloadRules, WorkloadWord,
};
use crate::{Product, Study, diagnostic, parse};

/// Products and workloads as Dyno has them, as far as studies of the catalogue use them.
pub(crate) fn vocabulary() -> Vocabulary {
    Vocabulary {
        setting_rules: Some(Arc::new(NoAddress)),
        products: vec![
            product("sqlite", &[], true),
            product("mariadb", &["InnoDB", "RocksDB", "Aria"], false),
            product("postgresql", &[], false),
            product("simulated", &[], true),
        ],
        workloads: vec![
            workload("oltp_read_only", &[TABLES, POINTS, RANGES]),
            workload("oltp_read_write", &[TABLES, POINTS, RANGES, UPDATES]),
            workload("oltp_write_only", &[TABLES, UPDATES]),
            workload("oltp_point_select", &[TABLES]),
            workload("oltp_update_index", &[TABLES]),
            workload("oltp_update_non_index", &[TABLES]),
            workload("oltp_insert", &[TABLES]),
            workload("tpcb", &[TPCB]),
            workload("insert-benchmark", &[INSERT_BENCHMARK]),
            workload("key-order", &[KEY_ORDER]),
            workload("dbstress", &[DBSTRESS]),
            workload("tpcc", &[TPCC]),
            WorkloadWord { rules: Some(Arc::new(StagedRules)), ..workload("staged", &[STAGED]) },
        ],
    }
}

#[derive(Debug)]
struct NoAddress;

impl SettingRules for NoAddress {
    fn refused(&self, product: &str, setting: &str) -> Option<String> {
        let is_refused = (product, setting) == ("mariadb", "bind_address");
        is_refused.then(|| "a private server listens nowhere".to_owned())
    }
}

fn product(name: &str, engines: &[&str], is_embedded: bool) -> ProductWord {
    ProductWord {
        name: name.to_owned(),
        summary: format!("The {name} database."),
        engines: engines.iter().map(|engine| (*engine).to_owned()).collect(),
        is_embedded,
    }
}

type Group = &'static [(&'static str, &'static str)];

const TABLES: Group = &[
    ("tables", "1"),
    ("table_size", "10000"),
    ("auto_inc", "on"),
    ("secondary", "off"),
    ("create_secondary", "on"),
    ("distribution", "uniform"),
    ("pareto_h", "0.2"),
    ("skip_trx", "off"),
];
const POINTS: Group = &[("point_selects", "10"), ("point_select_keys", "1")];
const RANGES: Group = &[
    ("range_selects", "on"),
    ("range_size", "100"),
    ("simple_ranges", "1"),
    ("sum_ranges", "1"),
    ("order_ranges", "1"),
    ("distinct_ranges", "1"),
    ("row_filter", "off"),
];
const TPCB: Group = &[
    ("scale", "1"),
    ("script", "tpcb-like"),
    ("protocol", "prepared"),
    ("fillfactor", "100"),
    ("distribution", "uniform"),
];
const INSERT_BENCHMARK: Group = &[
    ("reads", "qr-qp"),
    ("create_indexes", "together"),
    ("rows_i0", "100k"),
    ("rows_i1", "40k"),
    ("rows_i2", "10k"),
    ("rate_1", "100"),
    ("rate_2", "500"),
    ("rate_3", "1000"),
    ("resync_get_min", "1000"),
    ("settle_s", "1200"),
    ("limit_s", "14400"),
];
const KEY_ORDER: Group =
    &[("key", "sequential"), ("table_size", "0"), ("rows_per_transaction", "1")];
const DBSTRESS: Group = &[("obj_table_size", "10k"), ("ref", "slice"), ("rw_ratio", "1")];
const TPCC: Group = &[("tables", "1"), ("warehouses", "1"), ("consistency", "before-and-after")];
const UPDATES: Group =
    &[("index_updates", "1"), ("non_index_updates", "1"), ("delete_inserts", "1")];

fn workload(name: &str, groups: &[Group]) -> WorkloadWord {
    let options = groups.iter().flat_map(|group| group.iter());
    WorkloadWord {
        name: name.to_owned(),
        summary: format!("The workload {name}."),
        options: options
            .map(|(name, default)| OptionWord {
                name: (*name).to_owned(),
                kind: match *default {
                    "on" | "off" => ValueKind::Switch,
                    "uniform" => words(&["uniform", "pareto", "zipfian"]),
                    "tpcb-like" => words(&["tpcb-like", "simple-update", "select-only"]),
                    "prepared" => words(&["prepared", "extended", "simple"]),
                    "qr-qp" => words(&["qr-qp", "q"]),
                    "together" => words(&["together", "one-by-one"]),
                    "slice" => words(&["slice", "mod2000", "mod2t", "random"]),
                    "before-and-after" => words(&["before-and-after", "after", "none"]),
                    "sequential" => words(&["sequential", "random-string"]),
                    text if text.contains('.') => ValueKind::Real,
                    _ => ValueKind::Count,
                },
                default: (*default).to_owned(),
                help: format!("What {name} is."),
            })
            .collect(),
        rules: None,
    }
}

const STAGED: Group = &[("rows", "1000"), ("reads", "on"), ("procedures", "off")];

/// A workload that loads its rows, and then reads them for the time that the study gives, unless
/// it is told not to.
#[derive(Debug)]
struct StagedRules;

impl StagedRules {
    fn role(name: &str, clients: u64, quota: Option<u64>) -> RoleOutline {
        let rate = (name == "deleter").then_some(100.0);
        RoleOutline { name: name.to_owned(), clients, rate, quota }
    }
}

impl WorkloadRules for StagedRules {
    fn steps(&self, options: &Options, frame: &Frame) -> Result<Vec<StepOutline>, String> {
        let rows: u64 = options.get("rows").map_or(1000, |rows| rows.parse().expect("a count"));
        let clients = frame.clients;
        if rows < clients {
            return Err(format!("{rows} rows are too few; give rows = {clients} or more"));
        }
        let seconds = Nanoseconds::from_secs;
        let load = StepOutline {
            name: "load".to_owned(),
            roles: vec![StagedRules::role("inserter", clients, Some(rows / clients))],
            limit: seconds(7200),
            settle: Nanoseconds::ZERO,
        };
        let roles =
            vec![StagedRules::role("query", clients, None), StagedRules::role("deleter", 1, None)];
        let read = StepOutline {
            name: "read".to_owned(),
            roles,
            limit: frame.duration,
            settle: seconds(600),
        };
        let reads = options.get("reads").is_none_or(|reads| reads == "on");
        Ok(if reads { vec![load, read] } else { vec![load] })
    }

    fn check(&self, options: &Options, product: &Product) -> Result<(), String> {
        let is_sqlite = matches!(product, Product::Private(name) if name == "sqlite");
        if is_sqlite && options.get("procedures").is_some_and(|value| value == "on") {
            return Err("SQLite has no stored procedures; leave out `procedures`".to_owned());
        }
        Ok(())
    }
}

fn words(words: &[&str]) -> ValueKind {
    ValueKind::Word(words.iter().map(|word| (*word).to_owned()).collect())
}

/// A study with every kind of factor and every key.
pub(crate) const FULL_STUDY: &str = r#"
title = "Which one is faster?"

[database.a]
product = "mariadb"
version = "10.11"
engine = "innodb"
programs = "/opt/mariadb/bin"

[database.a.settings]
innodb_buffer_pool_size = "25%"
innodb_log_file_size = "500MB"
innodb_flush_log_at_trx_commit = 1

[database.b]
like = "a"
settings = { innodb_flush_log_at_trx_commit = 2, innodb_io_capacity = 200 }

[database.c]
url = "postgresql://me:secret@host:5432/db"
allow_existing_tables = true
keep_tables = true
price_per_hour = "0.192 USD"

[workload.oltp_read_only]
tables = 4
table_size = "250k"
distribution = "zipfian"
pareto_h = 0.25
skip_trx = true

[workload.short]
like = "oltp_read_only"
range_size = 10

[design]
workload = "short"
arrivals = "constant"
baseline = { database = "a", "setting.innodb_io_capacity" = 200, option = { range_size = "1k" } }
repetitions = 2
order = "sequential"
seed = 42
warm_up = "1s"
run_off = "30m"
stop = "repetitions"
duration = "10s"
rest = "500ms"
threshold = "2.5%"
budget = "4h"
statement_timeout = "30s"
retries = 5
workers = 2
generator_cpus = [0]
server_cpus = [1, 2]
reuse = false
data_folder = "/data"

[design.vary]
clients = [8, "1k"]
database = ["a", "b"]
setting = { innodb_io_capacity = [200, 2000] }
rate = [100, "2k"]
option = { range_size = [10, 1000] }

[machine]
price_per_hour = "0.1 USD"

[probe.locks]
sql = "SELECT count(*) FROM locks"
every = "5s"
databases = ["a", "b"]

[probe.load]
command = ["cat", "/proc/loadavg"]
"#;

/// Parses a study that must be right.
#[track_caller]
pub(crate) fn study(source: &str) -> Study {
    parse(source, &vocabulary()).unwrap_or_else(|diagnostics| {
        panic!("{}", diagnostic::render("study.toml", source, &diagnostics))
    })
}
