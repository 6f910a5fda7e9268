//! Reads the `[database.NAME]` tables.

use dyno_units::SettingValue;

use super::relation::{self, Relation, apart, each, either, first};
use super::table::{Kind, RawTable};
use super::value::{Entry, at_key, at_value};
use super::{behind, member, programs};
use crate::keys::{INHERITED, Key, Shape, key};
use crate::nearest::did_you_mean;
use crate::vocabulary::ProductWord;
use crate::{Cluster, DataOrigin, Database, Diagnostic, FieldValue, Product, Table};

pub(crate) const KIND: Kind = Kind {
    help: "The databases, one table each: [database.NAME].",
    lead: "One table for each database: either a product that Dyno starts, or a URL.",
    example: "{ synced = { product = \"mariadb\" } }",
    names: ["\"synced\"", "\"once-a-second\""],
    baseline_note: "; \"own\" compares each database with the first one of its product",
    alternatives: &["product", "url"],
    needed: Some("add a table such as [database.a] with the line: product = \"…\""),
    ..Kind::new("database", KEYS, read)
};

const KEYS: &[Key] = &[
    key("product", Shape::Product).help("The product of a server that Dyno starts and owns."),
    key("url", Shape::Url)
        .help(
            "A running server: scheme://user:password@host:port/database. Dyno does not change its \
             settings. The password is never shown or stored.",
        )
        .example("\"mysql://me:${DB_PASSWORD}@db1:3306/test\"")
        .fixed("give each server a table and vary `database`"),
    key("more_urls", Shape::Urls)
        .help(
            "Additional servers that share the data of `url`, such as the SQL servers of one \
             cluster. The load is divided among all of them: each load generator gets one, in \
             turn; without `generators`, each client does. Tables are populated and audited \
             through `url`.",
        )
        .example("[\"mysql://me:${DB_PASSWORD}@db2:3306/test\"]")
        .fixed("vary `database.sql_servers` instead"),
    key("sql_servers", Shape::Integer(1, SERVERS_MAX))
        .help(
            "How many of the servers receive load: `url` and the first ones of `more_urls`; all of \
             them if not given.",
        )
        .example("2"),
    key("like", Shape::Text)
        .help("Another database, whose keys this one inherits and may override.")
        .example("\"synced\"")
        .fixed(INHERITED),
    key("on", Shape::Text)
        .help(
            "The [host.NAME] table of the hosts that Dyno starts servers on, one on each, inside \
             an agent there (docs/hosts.md): independent servers, or the members of a deployment \
             with `replicas`, a `cluster` or a router (`behind`). If not given, they are on the \
             machine that runs the study. Only for servers that Dyno starts.",
        )
        .example("\"sql\""),
    key("servers", Shape::Integer(1, SERVERS_MAX))
        .help(
            "How many independent servers there are, one on each of the first hosts of `on`; one \
             on each host if not given. Each has all tables and a load generator of its own; their \
             results are added up.",
        )
        .example("2"),
    key("trials_on", Shape::Text)
        .help(
            "The [host.NAME] table of the hosts on which whole trials of this database run: \
             server, load, volumes, jobs and probes, inside an agent there (docs/hosts.md). Each \
             block runs on one host, the next block on the next one, and trials on different \
             machines run at the same time. If not given, trials run on the machine that runs the \
             study.",
        )
        .example("\"m6g\""),
    key("version", Shape::Text)
        .help("The prefix that the server's version must have.")
        .example("\"10.11\""),
    key("engine", Shape::Engine).help("The storage engine, if the product has several."),
    key("programs", Shape::Text)
        .help("The folder with the server's programs, if it is not in PATH.")
        .example("\"/opt/mariadb-11.8/bin\""),
    key("from", Shape::Source)
        .help(
            "Where the server's programs come from: `machine` (installed on it), or the source of \
             packages from which they were fetched. Without this key, all programs on this machine \
             are considered.",
        )
        .example("\"maven\""),
    key("image", Shape::Text)
        .help(
            "The container image from which the server is started, as it is named for `podman run` \
             or `docker run`. The container has no network and no privileges, and sees only Dyno's \
             own folder.",
        )
        .example("\"docker.io/library/postgres:17\""),
    key("fetch", Shape::Switch)
        .default("false")
        .help(
            "Whether programs that are not on this machine may be fetched, as `dyno products \
             fetch` does, and an image with the engine's `pull`.",
        )
        .afterwards(),
    key("settings", Shape::Settings)
        .help(
            "Settings by the product's own names. \"25%\" is a share of the host's memory, or of \
             its container's limit, and \"8GiB\" (KiB, MiB, GiB, TiB: powers of 1024) a size for \
             any product. All other strings are passed to the product as they are: \"64MB\" may \
             mean 64 × 1024² bytes there.",
        )
        .example("{ innodb_buffer_pool_size = \"25%\", innodb_flush_log_at_trx_commit = 1 }"),
    key("memory", Shape::Size)
        .help(
            "Memory limit of the server, including the page cache of the files that it reads and \
             writes (a control group; needs root privileges; only for servers that Dyno starts).",
        )
        .example("\"4GiB\""),
    key("swap", Shape::SizeOrZero)
        .help("How much swap the server may use beyond its `memory`; none if not given.")
        .example("\"1GiB\""),
    key("cpu_weight", Shape::Integer(1, 10_000))
        .help(
            "The server's relative share of CPU time while other programs compete for it: the \
             weight of its own control group, 100 by default (`cpu.weight`; in cgroup v1, \
             `cpu.shares`, where 1024 corresponds to 100). All its threads together have this \
             weight; a single thread outside any group has 100. Needs root privileges; only for \
             servers that Dyno starts.",
        )
        .example("50"),
    key("kernel", Shape::Settings)
        .help(
            "Kernel settings that Dyno changes for a trial and restores after it: \
             transparent_hugepage.enabled, transparent_hugepage.defrag, and these as vm.NAME, as \
             in sysctl: swappiness, dirty_ratio, dirty_background_ratio, dirty_bytes, \
             dirty_background_bytes, dirty_expire_centisecs, dirty_writeback_centisecs, \
             vfs_cache_pressure, nr_hugepages, page-cluster, compaction_proactiveness, \
             watermark_scale_factor and zone_reclaim_mode. They apply to the whole machine, so \
             only one run at a time can set them. Needs root privileges; only for servers that \
             Dyno starts.",
        )
        .example("{ \"vm.swappiness\" = 1, \"transparent_hugepage.enabled\" = \"never\" }"),
    key("log_volume", Shape::Text)
        .help(
            "A separate volume for the server's logs: InnoDB's redo log and the binary log, or \
             PostgreSQL's pg_wal. It is created for the logs alone, as [volume.NAME] describes it.",
        )
        .example("\"logs\""),
    key("replicas", Shape::Integer(0, REPLICAS_MAX))
        .default("0")
        .help(
            "Number of replicas that follow the server: servers of the same product and version, \
             started on a copy of its data before the load begins, to which it streams its writes. \
             Only for servers that Dyno starts.",
        )
        .example("2"),
    key("replication", Shape::Words(&REPLICATION_WORDS))
        .default("\"asynchronous\"")
        .help(
            "What a commit waits for: nothing, or until one replica has the transaction in its log \
             (PostgreSQL calls this synchronous, MariaDB and MySQL semi-synchronous).",
        )
        .example("\"synchronous\""),
    key("reads_on", Shape::Words(&READS_ON))
        .default("\"primary\"")
        .help(
            "Which members the clients of a read-only workload connect to: the primary, its \
             `replicas` in turn, or `all` members in turn. Without replicas, the primary.",
        )
        .example("\"replicas\""),
    key("replica_settings", Shape::Settings)
        .help("Settings of the replicas; they are added to `settings`, and override them.")
        .example("{ innodb_flush_log_at_trx_commit = 2 }"),
    key("cluster", Shape::Words(&CLUSTERS))
        .help(
            "A cluster of servers: \"galera\" (MariaDB), whose nodes all accept writes, or \
             \"group-replication\" (MySQL), where one does, or all with load_on = \"all\". The \
             tables are populated on the first node, which the other nodes join before the load \
             begins. Only for servers that Dyno starts.",
        )
        .example("\"galera\""),
    key("nodes", Shape::Integer(NODES_MIN, NODES_MAX))
        .default("3")
        .help("Number of nodes in the cluster.")
        .example("3"),
    key("load_on", Shape::Words(&LOAD_ON))
        .default("\"first\"")
        .help(
            "Which nodes of the cluster the clients connect to: the `first` one, or `all` in turn.",
        )
        .example("\"all\""),
    key("shards", Shape::Integer(0, SHARDS_MAX))
        .default("0")
        .help(
            "Number of servers among which the tables are split, behind a router to which clients \
             connect (MariaDB: the router's tables have the engine Spider; PostgreSQL: they are \
             foreign tables of postgres_fdw); 0 for one server without a router. Only for servers \
             that Dyno starts.",
        )
        .example("4"),
    key("shard_by", Shape::Words(&SHARD_BY))
        .default("\"table\"")
        .help(
            "What each shard gets: whole tables in turn (`table`), or some rows of every table \
             (`key`), by the first column of the primary key, an integer: those whose column value \
             modulo the number of shards equals the shard's remainder (MariaDB), or those whose \
             hash PostgreSQL assigns to the shard's partition.",
        )
        .example("\"key\""),
    key("router_settings", Shape::Settings)
        .help("Settings of the router in front of the shards; the shards have `settings`.")
        .example("{ spider_conn_recycle_mode = 1 }"),
    key("behind", Shape::Settings)
        .help(
            "The pooler or proxy in front of the server, as `product` and its options; clients \
             connect to it instead. For postgresql: \"pgbouncer\" with pool_mode (session, \
             transaction or statement), pool_size, min_pool_size, reserve_pool_size, max_clients, \
             query_wait_timeout and server_idle_timeout. For mariadb, mysql and postgresql: \
             \"haproxy\" with balance (leastconn, roundrobin or first) and max_clients.",
        )
        .example("{ product = \"pgbouncer\", pool_mode = \"transaction\", pool_size = 4 }"),
    key(member::CPUS, Shape::Settings)
        .help(
            "CPUs that individual members of a deployment are bound to, by the member's name: a \
             number, or a list as for `taskset`. The others are bound to `server_cpus`, if that is \
             given.",
        )
        .example("{ pooler = 1, replica-1 = \"2-3,6\" }"),
    key(member::MEMORY, Shape::Settings)
        .help(
            "Memory limits of individual members of a deployment, by the member's name, instead of \
             `memory`: a size, or a share of the host's memory (needs root privileges; not for a \
             pooler or proxy).",
        )
        .example("{ replica-1 = \"1GiB\" }"),
    key("data", Shape::Words(&DataOrigin::WORDS)).default("\"copied\"").help(
        "How the data of a trial get onto the volume (only for servers that Dyno starts): \
             `copied` from the kept data set, with the same space preallocated as where they were \
             populated; `populated` in place in every trial; or `restored`, written as tar and cp \
             write files, with nothing preallocated. Compressing filesystems store the three \
             differently.",
    ),
    key("allow_existing_tables", Shape::Switch)
        .default("false")
        .help(
            "Whether a database with tables that Dyno did not create may be used; they are left \
             alone (only with `url`).",
        )
        .fixed("it is a permission"),
    key("keep_tables", Shape::Switch)
        .default("false")
        .help(
            "Whether Dyno's tables are kept after the run; a later run in the same database \
             replaces them (only with `url`).",
        )
        .afterwards(),
    key("price_per_hour", Shape::Price)
        .help(
            "Price per hour of this database, such as \"0.192 USD\"; the report then shows what \
             the work costs.",
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

const SETTINGS: [&str; 3] = ["settings", "replica_settings", "router_settings"];

const LOAD_ON: [&str; 2] = ["first", "all"];

const READS_ON: [&str; 3] = ["primary", "replicas", "all"];

const REPLICATION_WORDS: [&str; 2] = ["asynchronous", "synchronous"];

const REPLICATED: &[&str] = &["replicas", "replication", "replica_settings"];

const SHARDED: &[&str] = &["shards", "router_settings", "shard_by"];

const OF_PROCESS: &[&str] = &["memory", "swap", "cpu_weight", member::CPUS, member::MEMORY];

const PRODUCT_OR_URL: &[Relation] =
    &[either(&["product", "url"], "`product` and `url` cannot be combined")
        .help("`product` is a server that Dyno starts, `url` one that is already running")];

/// What a server that is given by `url` cannot have.
const BY_URL: &[Relation] = &[
    started(&["trials_on", "engine", "programs", "from", "log_volume", "data", "on", "servers"]),
    started(REPLICATED),
    started(&["reads_on", "cluster", "nodes", "load_on", "behind", "kernel"]),
    started(SHARDED),
    started(OF_PROCESS),
];

const fn started(keys: &'static [&'static str]) -> Relation {
    each(keys, "`{key}` cannot be combined with `url`", "only for servers that Dyno starts")
        .idle(&[])
        .help("use `product` instead of `url`, or leave this key out")
}

const fn embedded(keys: &'static [&'static str]) -> Relation {
    let message = "`{key}` cannot be combined with product `{product}`";
    each(keys, message, "this product is built into Dyno")
        .of(|word| word.is_embedded)
        .help("leave this key out")
}

const fn on_hosts(keys: &'static [&'static str], label: &'static str) -> Relation {
    apart(keys, &["on"], label)
        .help("leave one of the two out, or run whole trials on hosts with `trials_on`")
}

const fn in_image(keys: &'static [&'static str], label: &'static str) -> Relation {
    apart(keys, &["image"], label).of(|word| word.has_images)
}

const OTHER_PRODUCT: &str = "leave this key out, or choose another product";

/// What keys of a server that Dyno starts have to do with its product and with each other.
const PRIVATE: &[Relation] = &[
    each(
        &["allow_existing_tables"],
        "`{key}` works only with `url`",
        "a server that Dyno starts has no other tables",
    ),
    each(
        &["keep_tables"],
        "`{key}` works only with `url`",
        "a server that Dyno starts is removed together with its tables",
    ),
    each(
        &["more_urls", "sql_servers"],
        "`{key}` works only with `url`",
        "these servers are already running",
    )
    .help("to start several servers, configure a cluster, replicas or shards"),
    embedded(&["version", "programs", "from", "image"]),
    embedded(OF_PROCESS),
    first(
        REPLICATED,
        "product `{product}` has no replicas",
        "its servers cannot replicate from each other",
    )
    .of(|word| !word.replicates)
    .help(OTHER_PRODUCT),
    apart(
        &["reads_on"],
        &["behind"],
        "clients connect to the pooler or proxy in front of the primary",
    )
    .idle(&["\"primary\""]),
    each(&["nodes", "load_on"], "`{key}` needs a `cluster`", "this database has one server")
        .without(&["cluster"])
        .help("add cluster = \"…\", or leave this key out"),
    apart(&["replicas", "log_volume"], &["cluster"], "not for the nodes of a cluster"),
    first(SHARDED, "product `{product}` has no shards", "there is no router for its servers")
        .of(|word| !word.has_shards)
        .help(OTHER_PRODUCT),
    each(
        &["replicas", "cluster", "behind"],
        "`{key}` and `shards` cannot be combined",
        "not for shards behind a router",
    )
    .with(SHARDED)
    .of(|word| word.has_shards)
    .help("leave one of the two out"),
    each(&["servers"], "`{key}` needs `on`", "each independent server needs a host of its own")
        .without(&["on"])
        .help(
            "name the [host.NAME] table with on = \"…\"; to start several servers on one \
             machine, configure a cluster, replicas or shards",
        ),
    each(
        &["on"],
        "product `{product}` cannot be started on other hosts",
        "no client on another machine could connect to it",
    )
    .of(|word| !word.can_be_open)
    .help("choose another product, or start the server there yourself and give its `url`"),
    apart(
        &["servers"],
        &["replicas", "cluster", "behind"],
        "independent servers are no members of one deployment",
    )
    .also("on"),
    apart(
        &["image"],
        &["on"],
        "a server in a container has no network by which other machines could reach it",
    )
    .help("leave `image` out: the programs that are installed on the hosts are used"),
    apart(SHARDED, &["on"], "the router reaches its shards through sockets of one machine"),
    on_hosts(OF_PROCESS, "it is set on the machine that runs the study, and not on hosts"),
    on_hosts(&["kernel"], "it is set on the machine that runs the study, and not on hosts"),
    apart(&["fetch"], &["on"], "programs are not fetched to hosts")
        .help("leave `fetch` out, and install the programs on the hosts"),
    on_hosts(&["data"], "data sets are kept on the machine that runs the study")
        .idle(&["\"copied\""]),
    each(
        &["from"],
        "`{key}` and `programs` cannot be combined",
        "these two are mutually exclusive",
    )
    .with(&["programs"])
    .help("`programs` names the folder; leave `from` out"),
    each(
        &["image"],
        "product `{product}` cannot be started from an image",
        "its servers do not run in containers",
    )
    .of(|word| !word.has_images && !word.is_embedded)
    .help("leave this key out"),
    in_image(&["programs", "from"], "an image has its own programs"),
    in_image(
        &["replicas", "cluster", "shards"],
        "the container has no network, by which such servers reach each other",
    ),
    in_image(
        &["memory", member::MEMORY, "cpu_weight"],
        "the container engine, not Dyno, makes the control group of a container",
    ),
];

/// Without its memory, a table with `swap` is not looked at further.
const SWAP: &[Relation] = &[each(
    &["swap"],
    "`{key}` needs `memory`",
    "swap is what the server may use beyond its memory",
)
.without(&["memory"])
.help("set the limit of its memory, such as memory = \"1GiB\"")];

fn read(raw: &RawTable<'_>) -> Option<Table> {
    let table = raw.read();
    relation::check(raw, PRODUCT_OR_URL, None);
    match (raw.entry("product"), raw.entry("url")) {
        (Some(_), Some(_)) => None,
        (None, None) => {
            let message = format!("`[database.{}]` names neither a product nor a URL", raw.name);
            let products = raw.parser.vocabulary.products.iter().map(|word| word.name.as_str());
            raw.parser.add_missing(
                Diagnostic::new(raw.name_span.clone(), message)
                    .with_label("neither `product` nor `url`")
                    .with_help(format!("add product = \"…\", one of {}", quoted(products))),
            );
            None
        }
        (None, Some(_)) => {
            relation::check(raw, BY_URL, None);
            check_by_url(raw, table.as_ref());
            table
        }
        (Some(product), None) => {
            let word = check_private(raw, product)?;
            let before = raw.parser.count();
            check_machine(raw, table.as_ref());
            let mut table = table.filter(|_| raw.parser.count() == before)?;
            behind::check(raw, word, &mut table);
            if let Some(FieldValue::Text(engine)) = table.fields.get_mut("engine") {
                *engine = engine_word(word, engine)?.to_owned();
            }
            Some(table)
        }
    }
}

impl Database {
    pub(super) fn of(table: &Table) -> Option<Database> {
        let text = |field: &str| table.owned(field);
        let word = |field: &str, usual: &str| text(field).unwrap_or_else(|| usual.to_owned());
        let url = text("url").map(Product::Url);
        let kernel = table.settings_in("kernel").into_iter();
        let data = DataOrigin::ALL.into_iter().find(|one| table.text("data") == Some(one.word()));
        Some(Database {
            name: table.name.clone(),
            product: url.or_else(|| text("product").map(Product::Private))?,
            more_urls: table.texts("more_urls").iter().cloned().map(Product::Url).collect(),
            sql_servers: table.number("sql_servers"),
            on: text("on"),
            servers: table.number("servers"),
            trials_on: text("trials_on"),
            version: text("version"),
            engine: text("engine"),
            programs: text("programs"),
            from: text("from"),
            image: text("image"),
            fetch: table.is_on("fetch"),
            memory: table.size("memory"),
            swap: table.size("swap"),
            cpu_weight: table.number("cpu_weight"),
            kernel: kernel.map(|(name, value)| (name, kernel_value(&value))).collect(),
            log_volume: text("log_volume"),
            data: data.unwrap_or_default(),
            settings: table.settings_in("settings"),
            replicas: table.number("replicas").unwrap_or(0),
            cluster: text("cluster").map(|kind| Cluster {
                kind,
                nodes: table.number("nodes").unwrap_or(NODES),
                load_on_all: table.text("load_on") == Some(LOAD_ON[1]),
            }),
            replication: word("replication", REPLICATION_WORDS[0]),
            reads_on: word("reads_on", READS_ON[0]),
            replica_settings: table.settings_in("replica_settings"),
            shards: table.number("shards").unwrap_or(0),
            shard_by: word("shard_by", SHARD_BY[0]),
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

/// The value of a setting of the kernel as the kernel has it: bytes as a number.
fn kernel_value(value: &SettingValue) -> String {
    match value {
        SettingValue::Bytes(bytes) => bytes.0.to_string(),
        other => other.to_string(),
    }
}

fn quoted<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

/// Several servers over the same data: they are of one kind, and there are as many as get load.
fn check_further(raw: &RawTable<'_>, table: Option<&Table>) {
    let Some(table) = table else { return };
    let further = table.texts("more_urls");
    if let (Some(given), Some(url)) = (raw.entry("more_urls"), table.text("url")) {
        let scheme = |url: &str| url.split_once("://").map(|(scheme, _)| scheme.to_owned());
        let mut all = vec![url];
        for other in further {
            let wrong = match () {
                () if scheme(other) != scheme(url) => "its servers speak another protocol",
                () if all.contains(&other.as_str()) => "a server is listed twice",
                () => {
                    all.push(other);
                    continue;
                }
            };
            at_value(given, format!("`more_urls` of `{}`: {wrong}", raw.name))
                .with_label("these servers share the same data")
                .with_help("name each server once, with the scheme of `url`")
                .add_to(raw.parser);
            return;
        }
    }
    let (Some(given), Some(wanted)) = (raw.entry("sql_servers"), table.number("sql_servers"))
    else {
        return;
    };
    let n = further.len() + 1;
    if wanted as usize > n {
        let there = if n == 1 { "only 1 server".to_owned() } else { format!("{n} servers") };
        at_value(given, format!("`{}` has {there}", raw.name))
            .with_label(format!("{wanted} are to receive load"))
            .with_help("name the others in `more_urls`")
            .add_to(raw.parser);
    }
}

/// A server that runs already is taken as it is.
fn check_by_url(raw: &RawTable<'_>, table: Option<&Table>) {
    check_further(raw, table);
    for (name, given) in raw.named("settings") {
        at_key(
            given,
            format!(
                "setting `{name}` cannot be changed on database `{}`, given by `url`",
                raw.name
            ),
        )
        .with_label("Dyno does not change a server that it did not start")
        .with_help("set it on the server yourself, or use `product` instead of `url`")
        .add_to(raw.parser);
    }
}

fn check_private<'v>(raw: &RawTable<'v>, product: &Entry<'_>) -> Option<&'v ProductWord> {
    let name = raw.text("product")?;
    let Some(word) = raw.parser.vocabulary.product(name) else {
        let words = raw.parser.vocabulary.products.iter().map(|word| word.name.as_str());
        let lower = name.to_ascii_lowercase();
        let mut confused =
            raw.parser.vocabulary.products.iter().flat_map(|word| &word.confused_names);
        let confused = confused.find(|(word, _)| *word == lower).map(|(_, hint)| hint.clone());
        at_value(product, format!("unknown product `{name}`"))
            .with_label("not known to Dyno")
            .with_help(match (raw.parser.vocabulary.left_out, confused) {
                (Some(why), _) => why.to_owned(),
                (None, Some(hint)) => hint,
                (None, None) => did_you_mean(name, words),
            })
            .add_to(raw.parser);
        return None;
    };
    relation::check(raw, PRIVATE, Some(word));
    check_cluster(raw, word);
    check_engine(raw, word);
    programs::check_source(raw);
    programs::check_image(raw);
    for (setting, given) in SETTINGS.iter().flat_map(|map| raw.named(map)) {
        let rules = raw.parser.vocabulary.setting_rules.as_deref();
        if let Some(why) = rules.and_then(|rules| rules.refused(name, setting)) {
            let message = format!("setting `{setting}` cannot be set on product `{name}`");
            at_key(given, message)
                .with_label("Dyno sets it itself for a server that it starts")
                .with_help(why)
                .add_to(raw.parser);
        }
    }
    Some(word)
}

fn check_machine(raw: &RawTable<'_>, table: Option<&Table>) {
    relation::check(raw, SWAP, None);
    let Some(table) = table else { return };
    member::check(raw, table);
    let Some(rules) = raw.parser.vocabulary.setting_rules.as_deref() else { return };
    for (name, entry) in raw.named("kernel") {
        let Some(FieldValue::Setting(value)) = table.fields.get(&format!("kernel.{name}")) else {
            continue;
        };
        if let Some(why) = rules.refused_of_kernel(name, &kernel_value(value)) {
            at_value(entry, format!("kernel setting `{name}` is not accepted"))
                .with_label("unknown setting, or an invalid value")
                .with_help(why)
                .add_to(raw.parser);
        }
    }
}

fn check_cluster(raw: &RawTable<'_>, word: &ProductWord) {
    let Some((given, kind)) = raw.entry("cluster").zip(raw.text("cluster")) else { return };
    if word.cluster.as_deref() != Some(kind) && CLUSTERS.contains(&kind) {
        let message = format!("product `{}` has no cluster `{kind}`", word.name);
        at_value(given, message)
            .with_label("its servers cannot form one")
            .with_help(OTHER_PRODUCT)
            .add_to(raw.parser);
    }
}

/// The vocabulary's spelling of an engine; servers do not distinguish case.
fn engine_word<'v>(word: &'v ProductWord, engine: &str) -> Option<&'v str> {
    let known = word.engines.iter().find(|known| known.eq_ignore_ascii_case(engine));
    known.map(String::as_str)
}

fn check_engine(raw: &RawTable<'_>, word: &ProductWord) {
    let Some((given, engine)) = raw.entry("engine").zip(raw.text("engine")) else { return };
    if engine_word(word, engine).is_some() {
        return;
    }
    let problem = if word.engines.is_empty() {
        let message = format!("product `{}` has only one storage engine", word.name);
        at_key(given, message)
            .with_label("no other engine to choose")
            .with_help("leave this key out")
    } else {
        let message = format!("product `{}` has no storage engine `{engine}`", word.name);
        at_value(given, message)
            .with_label("unknown engine")
            .with_help(did_you_mean(engine, word.engines.iter().map(String::as_str)))
    };
    raw.parser.add(problem);
}
