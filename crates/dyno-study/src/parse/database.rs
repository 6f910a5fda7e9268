//! Reads the `[database.NAME]` tables.

use std::ops::Range;

use dyno_units::{ByteCount, SettingValue};

use super::behind;
use super::by_url;
use super::kind::Kind;
use super::member;
use super::on_hosts;
use super::problems::Problems;
use super::programs;
use super::table::RawTable;
use super::value::Entry;
use crate::keys::{INHERITED, Key, Shape, key, with_default};
use crate::nearest::did_you_mean;
use crate::vocabulary::{ProductWord, SettingRules, Vocabulary};
use crate::{Cluster, DataOrigin, Database, Diagnostic, FieldValue, Product, Table};

pub(crate) const KIND: Kind = Kind {
    name: "database",
    help: "The databases, one table each: [database.NAME].",
    lead: "One table for each database: either a product that Dyno starts, or a URL.",
    example: "{ synced = { product = \"mariadb\" } }",
    names: ["\"synced\"", "\"once-a-second\""],
    baseline_note: "; \"own\" compares each database with the first one of its product",
    keys: KEYS,
    has_options: false,
    alternatives: &["product", "url"],
    is_chosen: true,
    needed: Some("add a table such as [database.a] with the line: product = \"…\""),
    read,
};

const KEYS: &[Key] = &[
    key("product", Shape::Product, "The product of a server that Dyno starts and owns."),
    key(
        "url",
        Shape::Url,
        "A running server: scheme://user:password@host:port/database. Dyno does not change its \
         settings. The password is never shown or stored.",
    )
    .example("\"mysql://me:${DB_PASSWORD}@db1:3306/test\"")
    .fixed("give each server a table and vary `database`"),
    key(
        "more_urls",
        Shape::Urls,
        "Additional servers that share the data of `url`, such as the SQL servers of one cluster. The \
         load is divided among all of them: each load generator gets one, in turn; without \
         `generators`, each client does. Tables are populated and audited through `url`.",
    )
    .example("[\"mysql://me:${DB_PASSWORD}@db2:3306/test\"]")
    .fixed("vary `database.sql_servers` instead"),
    key(
        "sql_servers",
        Shape::Integer(1, SERVERS_MAX),
        "How many of the servers receive load: `url` and the first ones of `more_urls`; all of \
         them if not given.",
    )
    .example("2"),
    key("like", Shape::Text, "Another database, whose keys this one inherits and may override.")
        .example("\"synced\"")
        .fixed(INHERITED),
    key(
        "on",
        Shape::Text,
        "The [host.NAME] table of the hosts that Dyno starts servers on, one on each, inside an agent \
         there (docs/hosts.md): independent servers, or the members of a deployment with `replicas`, a \
         `cluster` or a router (`behind`). If not given, they are on the machine that runs the study. \
         Only for servers that Dyno starts.",
    )
    .example("\"sql\""),
    key(
        "servers",
        Shape::Integer(1, SERVERS_MAX),
        "How many independent servers there are, one on each of the first hosts of `on`; one on each \
         host if not given. Each has all tables and a load generator of its own; their results are \
         added up.",
    )
    .example("2"),
    key(
        "trials_on",
        Shape::Text,
        "The [host.NAME] table of the hosts on which whole trials of this database run: server, load, \
         volumes, jobs and probes, inside an agent there (docs/hosts.md). Each block runs on one host, the \
         next block on the next one, and trials on different machines run at the same time. If not given, \
         trials run on the machine that runs the study.",
    )
    .example("\"m6g\""),
    key("version", Shape::Text, "The prefix that the server's version must have.")
        .example("\"10.11\""),
    key("engine", Shape::Engine, "The storage engine, if the product has several."),
    key("programs", Shape::Text, "The folder with the server's programs, if it is not in PATH.")
        .example("\"/opt/mariadb-11.8/bin\""),
    key(
        "from",
        Shape::Source,
        "Where the server's programs come from: `machine` (installed on it), or the source of \
         packages from which they were fetched. Without this key, all programs on this machine \
         are considered.",
    )
    .example("\"maven\""),
    key(
        "image",
        Shape::Text,
        "The container image from which the server is started, as it is named for `podman run` or `docker \
         run`. The container has no network and no privileges, and sees \
         only Dyno's own folder.",
    )
    .example("\"docker.io/library/postgres:17\""),
    with_default(
        "fetch",
        Shape::Switch,
        "false",
        "Whether programs that are not on this machine may be fetched, as `dyno products fetch` does, \
         and an image with the engine's `pull`.",
    )
    .afterwards(),
    key(
        "settings",
        Shape::Settings,
        "Settings by the product's own names. \"25%\" is a share of the host's memory, or of its container's limit, and \
         \"8GiB\" (KiB, MiB, GiB, TiB: powers of 1024) a size for any product. All other strings \
         are passed to the product as they are: \"64MB\" may mean 64 × 1024² bytes there.",
    )
    .example("{ innodb_buffer_pool_size = \"25%\", innodb_flush_log_at_trx_commit = 1 }"),
    key(
        "memory",
        Shape::Size,
        "Memory limit of the server, including the page cache of the files that it reads and \
         writes (a control group; needs root privileges; only for servers that Dyno starts).",
    )
    .example("\"4GiB\""),
    key(
        "swap",
        Shape::SizeOrZero,
        "How much swap the server may use beyond its `memory`; none if not given.",
    )
    .example("\"1GiB\""),
    key(
        "cpu_weight",
        Shape::Integer(1, 10_000),
        "The server's relative share of CPU time while other programs compete for it: the weight \
         of its own control group, 100 by default (`cpu.weight`; in cgroup v1, `cpu.shares`, where \
         1024 corresponds to 100). All its threads together have this weight; a single thread outside any group \
         has 100. Needs root privileges; only for servers that Dyno starts.",
    )
    .example("50"),
    key(
        "kernel",
        Shape::Settings,
        "Kernel settings that Dyno changes for a trial and restores after it: \
         transparent_hugepage.enabled, transparent_hugepage.defrag, and these as vm.NAME, as in \
         sysctl: swappiness, dirty_ratio, dirty_background_ratio, dirty_bytes, \
         dirty_background_bytes, dirty_expire_centisecs, dirty_writeback_centisecs, \
         vfs_cache_pressure, nr_hugepages, page-cluster, compaction_proactiveness, \
         watermark_scale_factor and zone_reclaim_mode. They apply to the whole machine, so only \
         one run at a time can set them. Needs root privileges; only for servers that Dyno starts.",
    )
    .example("{ \"vm.swappiness\" = 1, \"transparent_hugepage.enabled\" = \"never\" }"),
    key(
        "log_volume",
        Shape::Text,
        "A separate volume for the server's logs: InnoDB's redo log and the binary log, or \
         PostgreSQL's pg_wal. It is created for the logs alone, as [volume.NAME] describes it.",
    )
    .example("\"logs\""),
    with_default(
        "replicas",
        Shape::Integer(0, REPLICAS_MAX),
        "0",
        "Number of replicas that follow the server: servers of the same product and version, \
         started on a copy of its data before the load begins, to which it streams its writes. \
         Only for servers that Dyno starts.",
    )
    .example("2"),
    with_default(
        "replication",
        Shape::Words(&REPLICATION_WORDS),
        "\"asynchronous\"",
        "What a commit waits for: nothing, or until one replica has the transaction in its log \
         (PostgreSQL calls this synchronous, MariaDB and MySQL semi-synchronous).",
    )
    .example("\"synchronous\""),
    with_default(
        "reads_on",
        Shape::Words(&READS_ON),
        "\"primary\"",
        "Which members the clients of a read-only workload connect to: the primary, its `replicas` \
         in turn, or `all` members in turn. Without replicas, the primary.",
    )
    .example("\"replicas\""),
    key(
        "replica_settings",
        Shape::Settings,
        "Settings of the replicas; they are added to `settings`, and override them.",
    )
    .example("{ innodb_flush_log_at_trx_commit = 2 }"),
    key(
        "cluster",
        Shape::Words(&CLUSTERS),
        "A cluster of servers: \"galera\" (MariaDB), whose nodes all accept writes, or \
         \"group-replication\" (MySQL), where one does, or all with load_on = \"all\". The tables are \
         populated on the first node, which the other nodes join before the load begins. Only for \
         servers that Dyno starts.",
    )
    .example("\"galera\""),
    with_default(
        "nodes",
        Shape::Integer(NODES_MIN, NODES_MAX),
        "3",
        "Number of nodes in the cluster.",
    )
    .example("3"),
    with_default(
        "load_on",
        Shape::Words(&LOAD_ON),
        "\"first\"",
        "Which nodes of the cluster the clients connect to: the `first` one, or `all` in turn.",
    )
    .example("\"all\""),
    with_default(
        "shards",
        Shape::Integer(0, SHARDS_MAX),
        "0",
        "Number of servers among which the tables are split, behind a router \
         to which clients connect (MariaDB: the router's tables have the engine Spider; PostgreSQL: \
         they are foreign tables of postgres_fdw); 0 for one server without a router. Only for \
         servers that Dyno starts.",
    )
    .example("4"),
    with_default(
        "shard_by",
        Shape::Words(&SHARD_BY),
        "\"table\"",
        "What each shard gets: whole tables in turn (`table`), or some rows of every table \
         (`key`), by the first column of the primary key, an integer: those whose column value \
         modulo the number of shards equals the shard's remainder (MariaDB), or those whose \
         hash PostgreSQL assigns to the shard's partition.",
    )
    .example("\"key\""),
    key(
        "router_settings",
        Shape::Settings,
        "Settings of the router in front of the shards; the shards have `settings`.",
    )
    .example("{ spider_conn_recycle_mode = 1 }"),
    key(
        "behind",
        Shape::Settings,
        "The pooler or proxy in front of the server, as `product` and its options; clients \
         connect to it instead. For postgresql: \"pgbouncer\" with pool_mode (session, \
         transaction or statement), pool_size, min_pool_size, reserve_pool_size, max_clients, \
         query_wait_timeout and server_idle_timeout. For mariadb, mysql and postgresql: \
         \"haproxy\" with balance (leastconn, roundrobin or first) and max_clients.",
    )
    .example("{ product = \"pgbouncer\", pool_mode = \"transaction\", pool_size = 4 }"),
    key(
        member::CPUS,
        Shape::Settings,
        "CPUs that individual members of a deployment are bound to, by the member's name: a number, or a list as \
         for `taskset`. The others are bound to `server_cpus`, if that is given.",
    )
    .example("{ pooler = 1, replica-1 = \"2-3,6\" }"),
    key(
        member::MEMORY,
        Shape::Settings,
        "Memory limits of individual members of a deployment, by the member's name, instead of `memory`: a size, or \
         a share of the host's memory (needs root privileges; not for a pooler or proxy).",
    )
    .example("{ replica-1 = \"1GiB\" }"),
    with_default(
        "data",
        Shape::Words(&DataOrigin::WORDS),
        "\"copied\"",
        "How the data of a trial get onto the volume (only for servers that Dyno starts): `copied` \
         from the kept data set, with the same space preallocated as where they were populated; \
         `populated` in place in every trial; or `restored`, written as tar and cp write files, \
         with nothing preallocated. Compressing filesystems store the three differently.",
    ),
    with_default(
        "allow_existing_tables",
        Shape::Switch,
        "false",
        "Whether a database with tables that Dyno did not create may be used; they are left alone \
         (only with `url`).",
    )
    .fixed("it is a permission"),
    with_default(
        "keep_tables",
        Shape::Switch,
        "false",
        "Whether Dyno's tables are kept after the run; a later run in the same database replaces \
         them (only with `url`).",
    )
    .afterwards(),
    key(
        "price_per_hour",
        Shape::Price,
        "Price per hour of this database, such as \"0.192 USD\"; the report then shows what the \
         work costs.",
    )
    .afterwards(),
];

const SERVERS_MAX: u64 = 1_000;

const REPLICAS_MAX: u64 = 8;

const SHARDS_MAX: u64 = 8;

const SHARD_BY: [&str; 2] = ["table", "key"];

const CLUSTERS: [&str; 2] = ["galera", "group-replication"];

const NODES_MIN: u64 = 2;
const NODES_MAX: u64 = 8;

/// How many nodes a cluster has if a study does not say.
const NODES: u32 = 3;

const LOAD_ON: [&str; 2] = ["first", "all"];

const READS_ON: [&str; 3] = ["primary", "replicas", "all"];

const REPLICATION_WORDS: [&str; 2] = ["asynchronous", "synchronous"];

fn read(problems: &mut Problems, raw: &RawTable<'_>, vocabulary: &Vocabulary) -> Option<Table> {
    let table = raw.read(problems, vocabulary);
    match (raw.entry("product"), raw.entry("url")) {
        (Some(product), Some(url)) => {
            let later = if product.key_span.start < url.key_span.start { url } else { product };
            problems.add(
                Diagnostic::new(later.key_span.clone(), "`product` and `url` cannot be combined")
                    .with_label("these two are mutually exclusive")
                    .with_help(
                        "`product` is a server that Dyno starts, `url` one that is already running",
                    ),
            );
            None
        }
        (None, None) => {
            let message = format!("`[database.{}]` names neither a product nor a URL", raw.name);
            let products = vocabulary.products.iter().map(|word| word.name.as_str());
            problems.add_missing(
                Diagnostic::new(raw.name_span.clone(), message)
                    .with_label("neither `product` nor `url`")
                    .with_help(format!("add product = \"…\", one of {}", quoted(products))),
            );
            None
        }
        (None, Some(_)) => {
            by_url::check(problems, raw);
            by_url::check_further(problems, raw, table.as_ref());
            table
        }
        (Some(product), None) => {
            let word = check_private(problems, raw, product, vocabulary)?;
            let before = problems.count();
            check_machine(problems, raw, table.as_ref(), vocabulary);
            let mut table = table.filter(|_| problems.count() == before)?;
            behind::check(problems, raw, word, vocabulary, &mut table);
            if let Some(FieldValue::Text(engine)) = table.fields.get_mut("engine") {
                *engine = engine_word(word, engine)?.to_owned();
            }
            Some(table)
        }
    }
}

impl Database {
    pub(super) fn of(table: &Table) -> Option<Database> {
        let text = |field: &str| table.text(field).map(str::to_owned);
        let url = text("url").map(Product::Url);
        Some(Database {
            name: table.name.clone(),
            product: url.or_else(|| text("product").map(Product::Private))?,
            more_urls: texts(table, "more_urls").into_iter().map(Product::Url).collect(),
            sql_servers: number(table, "sql_servers"),
            on: text("on"),
            servers: number(table, "servers"),
            trials_on: text("trials_on"),
            version: text("version"),
            engine: text("engine"),
            programs: text("programs"),
            from: text("from"),
            image: text("image"),
            fetch: table.is_on("fetch"),
            memory: size(table, "memory"),
            swap: size(table, "swap"),
            cpu_weight: match table.fields.get("cpu_weight") {
                Some(FieldValue::Number(weight)) => Some(u32::try_from(*weight).ok()?),
                _ => None,
            },
            kernel: table
                .settings_in("kernel")
                .iter()
                .map(|(name, value)| (name.clone(), kernel_value(value)))
                .collect(),
            log_volume: text("log_volume"),
            data: data_origin(table),
            settings: table.settings(),
            replicas: match table.fields.get("replicas") {
                Some(FieldValue::Number(replicas)) => u32::try_from(*replicas).ok()?,
                _ => 0,
            },
            cluster: text("cluster").map(|kind| Cluster {
                kind,
                nodes: match table.fields.get("nodes") {
                    Some(FieldValue::Number(nodes)) => u32::try_from(*nodes).unwrap_or(NODES),
                    _ => NODES,
                },
                load_on_all: table.text("load_on") == Some(LOAD_ON[1]),
            }),
            replication: text("replication").unwrap_or_else(|| REPLICATION_WORDS[0].to_owned()),
            reads_on: text("reads_on").unwrap_or_else(|| READS_ON[0].to_owned()),
            replica_settings: table.settings_in("replica_settings"),
            shards: match table.fields.get("shards") {
                Some(FieldValue::Number(shards)) => u32::try_from(*shards).ok()?,
                _ => 0,
            },
            shard_by: text("shard_by").unwrap_or_else(|| SHARD_BY[0].to_owned()),
            router_settings: table.settings_in("router_settings"),
            behind: behind::of(table),
            member_cpus: member::cpus(table),
            member_memory: table.settings_in(member::MEMORY),
            allow_existing_tables: table.is_on("allow_existing_tables"),
            keep_tables: table.is_on("keep_tables"),
            price_per_hour: match table.fields.get("price_per_hour") {
                Some(FieldValue::Price(price)) => Some(price.clone()),
                _ => None,
            },
        })
    }
}

fn size(table: &Table, field: &str) -> Option<ByteCount> {
    match table.fields.get(field) {
        Some(FieldValue::Size(bytes)) => Some(*bytes),
        _ => None,
    }
}

/// The value of a setting of the kernel as the kernel has it: bytes as a number.
fn kernel_value(value: &SettingValue) -> String {
    match value {
        SettingValue::Bytes(bytes) => bytes.0.to_string(),
        other => other.to_string(),
    }
}

fn data_origin(table: &Table) -> DataOrigin {
    let is_meant = |origin: &DataOrigin| table.text("data") == Some(origin.word());
    DataOrigin::ALL.into_iter().find(is_meant).unwrap_or_default()
}

fn quoted<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

pub(super) fn texts(table: &Table, field: &str) -> Vec<String> {
    match table.fields.get(field) {
        Some(FieldValue::Texts(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

pub(super) fn number(table: &Table, field: &str) -> Option<u32> {
    match table.fields.get(field) {
        Some(FieldValue::Number(number)) => u32::try_from(*number).ok(),
        _ => None,
    }
}

fn check_private<'v>(
    problems: &mut Problems,
    raw: &RawTable<'_>,
    product: &Entry<'_>,
    vocabulary: &'v Vocabulary,
) -> Option<&'v ProductWord> {
    let name = raw.text("product")?;
    let words = || vocabulary.products.iter().map(|word| word.name.as_str());
    let Some(word) = vocabulary.products.iter().find(|word| word.name == name) else {
        let lower = name.to_ascii_lowercase();
        let mut confused = vocabulary.products.iter().flat_map(|word| &word.confused_names);
        let confused = confused.find(|(word, _)| *word == lower).map(|(_, hint)| hint.clone());
        problems.add(
            Diagnostic::new(product.span.clone(), format!("unknown product `{name}`"))
                .with_label("not known to Dyno")
                .with_help(match (vocabulary.left_out, confused) {
                    (Some(why), _) => why.to_owned(),
                    (None, Some(hint)) => hint,
                    (None, None) => did_you_mean(name, words()),
                }),
        );
        return None;
    };
    for (name, why) in [
        ("allow_existing_tables", "a server that Dyno starts has no other tables"),
        ("keep_tables", "a server that Dyno starts is removed together with its tables"),
    ] {
        let given = raw.entry(name);
        if let Some(given) = given.filter(|one| one.value.as_bool() == Some(true)) {
            let message = format!("`{name}` works only with `url`");
            problems.add(Diagnostic::new(given.key_span.clone(), message).with_label(why));
        }
    }
    for name in ["more_urls", "sql_servers"] {
        if let Some(given) = raw.entry(name) {
            let message = format!("`{name}` works only with `url`");
            problems.add(
                Diagnostic::new(given.key_span.clone(), message)
                    .with_label("these servers are already running")
                    .with_help("to start several servers, configure a cluster, replicas or shards"),
            );
        }
    }
    if word.is_embedded {
        check_embedded(problems, raw, name);
    }
    if !word.replicates {
        check_replicas(problems, raw, name);
    }
    check_reads(problems, raw);
    check_cluster(problems, raw, word);
    check_shards(problems, raw, word);
    on_hosts::check_table(problems, raw, word);
    let others = raw.named("replica_settings").chain(raw.named("router_settings"));
    for (setting, given) in others {
        let place = (given.key_span.clone(), setting);
        check_setting(problems, vocabulary.setting_rules.as_deref(), name, place);
    }
    check_engine(problems, raw, word);
    programs::check_source(problems, raw, vocabulary);
    programs::check_image(problems, raw, word);
    for (setting, given) in raw.settings() {
        let place = (given.key_span.clone(), setting);
        check_setting(problems, vocabulary.setting_rules.as_deref(), name, place);
    }
    Some(word)
}

fn check_machine(
    problems: &mut Problems,
    raw: &RawTable<'_>,
    table: Option<&Table>,
    vocabulary: &Vocabulary,
) {
    if let (Some(swap), None) = (raw.entry("swap"), raw.entry("memory")) {
        problems.add(
            Diagnostic::new(swap.key_span.clone(), "`swap` needs `memory`")
                .with_label("swap is what the server may use beyond its memory")
                .with_help("set the limit of its memory, such as memory = \"1GiB\""),
        );
    }
    let Some(table) = table else { return };
    member::check(problems, raw, table);
    let Some(rules) = vocabulary.setting_rules.as_deref() else { return };
    for (name, entry) in raw.named("kernel") {
        let Some(FieldValue::Setting(value)) = table.fields.get(&format!("kernel.{name}")) else {
            continue;
        };
        if let Some(why) = rules.refused_of_kernel(name, &kernel_value(value)) {
            problems.add(
                Diagnostic::new(
                    entry.span.clone(),
                    format!("kernel setting `{name}` is not accepted"),
                )
                .with_label("unknown setting, or an invalid value")
                .with_help(why),
            );
        }
    }
}

fn check_replicas(problems: &mut Problems, raw: &RawTable<'_>, product: &str) {
    let replicas = raw
        .entry("replicas")
        .filter(|given| given.value.as_integer().is_none_or(|number| number.as_str() != "0"));
    let settings = raw.named("replica_settings").map(|(_, given)| given).next();
    let Some(given) = replicas.or(raw.entry("replication")).or(settings) else { return };
    problems.add(
        Diagnostic::new(given.key_span.clone(), format!("product `{product}` has no replicas"))
            .with_label("its servers cannot replicate from each other")
            .with_help("leave this key out, or choose another product"),
    );
}

/// Reports a cluster that a product lacks, what cannot be combined with one, and keys of one that is not there.
fn check_cluster(problems: &mut Problems, raw: &RawTable<'_>, word: &ProductWord) {
    let Some((given, kind)) = raw.entry("cluster").zip(raw.text("cluster")) else {
        for name in ["nodes", "load_on"] {
            if let Some(given) = raw.entry(name) {
                problems.add(
                    Diagnostic::new(given.key_span.clone(), format!("`{name}` needs a `cluster`"))
                        .with_label("this database has one server")
                        .with_help("add cluster = \"…\", or leave this key out"),
                );
            }
        }
        return;
    };
    if word.cluster.as_deref() != Some(kind) && CLUSTERS.contains(&kind) {
        let message = format!("product `{}` has no cluster `{kind}`", word.name);
        problems.add(
            Diagnostic::new(given.span.clone(), message)
                .with_label("its servers cannot form one")
                .with_help("leave this key out, or choose another product"),
        );
    }
    for name in ["replicas", "log_volume"] {
        let other = raw
            .entry(name)
            .filter(|other| other.value.as_integer().is_none_or(|number| number.as_str() != "0"));
        if let Some(other) = other {
            let message = format!("`{name}` and `cluster` cannot be combined");
            problems.add(
                Diagnostic::new(other.key_span.clone(), message)
                    .with_label("not for the nodes of a cluster")
                    .with_help("leave one of the two out"),
            );
        }
    }
}

/// Reports reads that are to go to replicas past what stands in front of the primary.
fn check_reads(problems: &mut Problems, raw: &RawTable<'_>) {
    let elsewhere = raw.entry("reads_on").filter(|_| raw.text("reads_on") != Some(READS_ON[0]));
    if let (Some(given), Some(_)) = (elsewhere, raw.named("behind").next()) {
        problems.add(
            Diagnostic::new(given.key_span.clone(), "`reads_on` and `behind` cannot be combined")
                .with_label("clients connect to the pooler or proxy in front of the primary")
                .with_help("leave one of the two out"),
        );
    }
}

fn check_shards(problems: &mut Problems, raw: &RawTable<'_>, word: &ProductWord) {
    let is_on = |given: &&Entry<'_>| given.value.as_integer().is_none_or(|one| one.as_str() != "0");
    let shards = raw.entry("shards").filter(is_on);
    let settings = raw.named("router_settings").map(|(_, given)| given).next();
    let Some(given) = shards.or(settings).or(raw.entry("shard_by")) else { return };
    if !word.has_shards {
        problems.add(
            Diagnostic::new(
                given.key_span.clone(),
                format!("product `{}` has no shards", word.name),
            )
            .with_label("there is no router for its servers")
            .with_help("leave this key out, or choose another product"),
        );
        return;
    }
    let behind = raw.named("behind").map(|(_, given)| given).next();
    let others = ["replicas", "cluster"].map(|name| (name, raw.entry(name).filter(is_on)));
    for (name, other) in others.into_iter().chain([("behind", behind)]) {
        if let Some(other) = other {
            let message = format!("`{name}` and `shards` cannot be combined");
            problems.add(
                Diagnostic::new(other.key_span.clone(), message)
                    .with_label("not for shards behind a router")
                    .with_help("leave one of the two out"),
            );
        }
    }
}

/// Reports a setting that a product which Dyno starts must not have.
fn check_setting(
    problems: &mut Problems,
    rules: Option<&dyn SettingRules>,
    product: &str,
    (span, setting): (Range<usize>, &str),
) {
    if let Some(why) = rules.and_then(|rules| rules.refused(product, setting)) {
        let message = format!("setting `{setting}` cannot be set on product `{product}`");
        problems.add(
            Diagnostic::new(span, message)
                .with_label("Dyno sets it itself for a server that it starts")
                .with_help(why),
        );
    }
}

fn check_embedded(problems: &mut Problems, raw: &RawTable<'_>, product: &str) {
    let maps = [member::CPUS, member::MEMORY].map(|map| (map, raw.named(map).next()));
    let maps = maps.map(|(map, given)| (map, given.map(|(_, entry)| entry)));
    let own = ["version", "programs", "from", "image", "memory", "swap", "cpu_weight"];
    for (name, given) in own.map(|name| (name, raw.entry(name))).into_iter().chain(maps) {
        if let Some(given) = given {
            let message = format!("`{name}` cannot be combined with product `{product}`");
            problems.add(
                Diagnostic::new(given.key_span.clone(), message)
                    .with_label("this product is built into Dyno")
                    .with_help("leave this key out"),
            );
        }
    }
}

/// The vocabulary's spelling of an engine; servers do not distinguish case.
fn engine_word<'v>(word: &'v ProductWord, engine: &str) -> Option<&'v str> {
    let known = word.engines.iter().find(|known| known.eq_ignore_ascii_case(engine));
    known.map(String::as_str)
}

fn check_engine(problems: &mut Problems, raw: &RawTable<'_>, word: &ProductWord) {
    let Some((given, engine)) = raw.entry("engine").zip(raw.text("engine")) else { return };
    if engine_word(word, engine).is_some() {
        return;
    }
    let problem = if word.engines.is_empty() {
        let message = format!("product `{}` has only one storage engine", word.name);
        Diagnostic::new(given.key_span.clone(), message)
            .with_label("no other engine to choose")
            .with_help("leave this key out")
    } else {
        let message = format!("product `{}` has no storage engine `{engine}`", word.name);
        Diagnostic::new(given.span.clone(), message)
            .with_label("unknown engine")
            .with_help(did_you_mean(engine, word.engines.iter().map(String::as_str)))
    };
    problems.add(problem);
}
