//! A vocabulary and a study for the tests of this crate, and the vocabulary for its fuzz target.

use std::sync::Arc;

use dyno_model::option::{self, any_count, counts, real, size, switch, word};
use dyno_model::{OptionSpec, Pacing, Role, StepRequest, WorkloadStep};
use dyno_units::Nanoseconds;

use crate::Product;
use crate::vocabulary::{
    Options, PlannedWorkload, ProductWord, RouterWord, SettingRules, Vocabulary, WorkloadRules,
    WorkloadWord,
};
#[cfg(test)]
use crate::{Study, diagnostic, parse};

/// Products and workloads as Dyno has them, as far as studies of the catalogue use them.
pub(crate) fn vocabulary() -> Vocabulary {
    Vocabulary {
        setting_rules: Some(Arc::new(NoAddress)),
        left_out: None,
        routers: vec![
            RouterWord {
                name: "pgbouncer".to_owned(),
                member: "pooler".to_owned(),
                fronts: vec!["postgresql".to_owned()],
                options: vec![
                    word("pool_mode", &["session", "transaction"]).help("When."),
                    any_count("pool_size", "20").help("How many."),
                    any_count("min_pool_size", "0").help("How many at least."),
                ],
                confused_names: vec![("proxysql".to_owned(), "no package has it".to_owned())],
            },
            RouterWord {
                name: "haproxy".to_owned(),
                member: "proxy".to_owned(),
                fronts: ["mariadb", "postgresql"].map(str::to_owned).into(),
                options: vec![word("balance", &["leastconn", "roundrobin"]).help("How.")],
                confused_names: Vec::new(),
            },
        ],
        filesystems: ["ext4", "xfs", "btrfs", "zfs", "tmpfs"].map(str::to_owned).into(),
        sources: ["machine", "debian", "maven", "python"].map(str::to_owned).into(),
        products: vec![
            product("sqlite", &[], true),
            product("mariadb", &["InnoDB", "RocksDB", "Aria"], false),
            product("mysql", &["InnoDB"], false),
            product("postgresql", &[], false),
            product("clickhouse", &[], false),
            product("ferretdb", &[], false),
            product("percona-server", &["InnoDB"], false),
            product("files", &[], true),
            product("simulated", &[], true),
        ],
        probes: ["responsiveness", "frequency", "mysql", "innodb", "debt"]
            .map(str::to_owned)
            .into(),
        workloads: vec![
            workload("oltp_read_only", &[TABLES, POINTS, RANGES]),
            workload("oltp_read_write", &[TABLES, POINTS, RANGES, UPDATES]),
            workload("oltp_write_only", &[TABLES, UPDATES]),
            workload("oltp_point_select", &[TABLES]),
            workload("oltp_update_index", &[TABLES]),
            workload("oltp_update_non_index", &[TABLES]),
            workload("oltp_insert", &[TABLES]),
            workload("tpcb", &[TPCB]),
            workload("none", &[]),
            workload("insert-benchmark", &[INSERT_BENCHMARK]),
            workload("key-order", &[KEY_ORDER]),
            workload("dbstress", &[DBSTRESS]),
            workload("tpcc", &[TPCC]),
            workload("vectors", &[VECTORS]),
            workload("documents", &[DOCUMENTS]),
            workload("file-io", &[FILE_IO]),
            workload("fsync", &[FSYNC]),
            workload("declared", &[&[("scale", "1")]]),
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
        replicates: !is_embedded,
        cluster: (name == "mariadb").then(|| "galera".to_owned()),
        has_shards: ["mariadb", "postgresql"].contains(&name),
        has_images: ["mariadb", "postgresql"].contains(&name),
        can_be_open: ["mariadb", "mysql", "postgresql"].contains(&name),
        has_socket: false,
        confused_names: Vec::new(),
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
    ("schema", "2023-12"),
    ("limiter", "schedule"),
    ("deletes", "limit"),
];
const KEY_ORDER: Group =
    &[("key", "sequential"), ("table_size", "0"), ("rows_per_transaction", "1")];
const DBSTRESS: Group = &[("obj_table_size", "10k"), ("ref", "slice"), ("rw_ratio", "1")];
const FILE_IO: Group = &[
    ("operation", "read"),
    ("block_size", "16KiB"),
    ("total_size", "1GiB"),
    ("read_share", "50"),
    ("sync", "fsync"),
    ("sync_every", "0"),
];
const FSYNC: Group = &[
    ("bytes", "512B"),
    ("sync", "fsync"),
    ("position", "overwrite"),
    ("direct", "off"),
    ("operations", "0"),
];
const TPCC: Group = &[("tables", "1"), ("warehouses", "1"), ("consistency", "before-and-after")];
const DOCUMENTS: Group = &[
    ("documents", "100k"),
    ("document_size", "1KiB"),
    ("find_weight", "70"),
    ("update_weight", "20"),
    ("insert_weight", "5"),
    ("range_weight", "5"),
    ("range_size", "10"),
    ("distribution", "uniform"),
];

const VECTORS: Group = &[
    ("data", "generated"),
    ("query_data", "generated"),
    ("rows", "0"),
    ("dimensions", "64"),
    ("clusters", "100"),
    ("queries", "1000"),
    ("m", "16"),
    ("ef_search", "10,20,40"),
    ("recall", "0.95"),
    ("k", "10"),
    ("distance", "l2"),
];
const UPDATES: Group =
    &[("index_updates", "1"), ("non_index_updates", "1"), ("delete_inserts", "1")];

fn workload(name: &str, groups: &[Group]) -> WorkloadWord {
    let options = groups.iter().flat_map(|group| group.iter());
    WorkloadWord {
        name: name.to_owned(),
        summary: format!("The workload {name}."),
        options: options
            .map(|&(name, default)| {
                let help = "What it is.";
                match default {
                    "on" | "off" => switch(name, default == "on").help(help),
                    "generated" => option::text(name, default).help(help),
                    "10,20,40" => counts(name, default).help(help),
                    "uniform" => {
                        words(name, &["uniform", "gaussian", "special", "pareto", "zipfian"])
                    }
                    "tpcb-like" => words(name, &["tpcb-like", "simple-update", "select-only"]),
                    "prepared" => words(name, &["prepared", "extended", "simple"]),
                    "qr-qp" => words(name, &["qr-qp", "q"]),
                    "2023-12" => words(name, &["2023-12", "2023-07"]),
                    "schedule" => words(name, &["schedule", "iibench"]),
                    "limit" => words(name, &["limit", "range", "off"]),
                    "l2" => words(name, &["l2", "cosine"]),
                    "together" => words(name, &["together", "one-by-one"]),
                    "slice" => words(name, &["slice", "mod2000", "mod2t", "random"]),
                    "before-and-after" => words(name, &["before-and-after", "after", "none"]),
                    "read" => words(name, &["read", "rewrite", "write", "mixed"]),
                    "fsync" => words(name, &["fsync", "fdatasync", "dsync", "none"]),
                    "overwrite" => words(name, &["overwrite", "append"]),
                    "sequential" => words(name, &["sequential", "random-string"]),
                    text if text.ends_with('B') => size(name, default).help(help),
                    text if text.contains('.') => real(name, default).help(help),
                    _ => any_count(name, default).help(help),
                }
            })
            .collect(),
        rules: None,
    }
}

const STAGED: Group = &[("rows", "1000"), ("reads", "on"), ("procedures", "off")];

/// A workload that loads its rows, and then reads them for the time that the study gives, unless
/// they are switched off.
#[derive(Debug)]
struct StagedRules;

impl StagedRules {
    fn role(name: &'static str, clients: usize, quota: Option<u64>) -> Role {
        let pacing = match name {
            "deleter" => Pacing::Constant { rate: 100.0 },
            _ => Pacing::Closed,
        };
        Role { name: name.into(), clients, pacing, quota, kinds: Vec::new() }
    }
}

impl WorkloadRules for StagedRules {
    fn plan(
        &self,
        options: &Options,
        request: StepRequest,
    ) -> Result<Arc<dyn PlannedWorkload>, String> {
        let rows: u64 = options.get("rows").map_or(1000, |rows| rows.parse().expect("a count"));
        let clients = request.clients;
        if rows < clients as u64 {
            return Err(format!("{rows} rows are too few; give rows = {clients} or more"));
        }
        let seconds = Nanoseconds::from_secs;
        let quota = Some(rows / clients as u64);
        let load = WorkloadStep {
            name: "load".into(),
            roles: vec![StagedRules::role("inserter", clients, quota)],
            limit: seconds(7200),
            settle: Nanoseconds::ZERO,
        };
        let roles =
            vec![StagedRules::role("query", clients, None), StagedRules::role("deleter", 1, None)];
        let read = WorkloadStep {
            name: "read".into(),
            roles,
            limit: request.duration,
            settle: seconds(600),
        };
        let reads = options.get("reads").is_none_or(|reads| reads == "on");
        let steps = if reads { vec![load, read] } else { vec![load] };
        let has_procedures = options.get("procedures").is_some_and(|value| value == "on");
        Ok(Arc::new(Staged { steps, has_procedures }))
    }
}

struct Staged {
    steps: Vec<WorkloadStep>,
    has_procedures: bool,
}

impl PlannedWorkload for Staged {
    fn steps(&self) -> &[WorkloadStep] {
        &self.steps
    }

    fn check(&self, product: &Product) -> Result<(), String> {
        let is_sqlite = matches!(product, Product::Private(name) if name == "sqlite");
        if is_sqlite && self.has_procedures {
            return Err("SQLite has no stored procedures; leave out `procedures`".to_owned());
        }
        Ok(())
    }
}

fn words(name: &'static str, words: &'static [&'static str]) -> OptionSpec {
    word(name, words).help("What it is.")
}

/// A study with every kind of factor and every key.
#[cfg(test)]
pub(crate) const FULL_STUDY: &str = include_str!("../../../fuzz/corpus/study/full.toml");

/// Parses a study that must be right.
#[cfg(test)]
#[track_caller]
pub(crate) fn study(source: &str) -> Study {
    parse(source, &vocabulary()).unwrap_or_else(|diagnostics| {
        panic!("{}", diagnostic::render("study.toml", source, &diagnostics))
    })
}
