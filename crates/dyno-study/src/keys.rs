//! The keys of a study file, each named once: the parser reads no other, and schema, reference page and
//! `vary` follow from them. Keys of tables that a study has by name stand with their kind
//! ([`crate::parse::kind`]).

use dyno_model::declared::DeclaredKey;
use dyno_units::Question;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// Its value when it is not given, as it would be written in TOML.
    pub(crate) default: Option<&'static str>,
    /// One sentence or two for editors.
    pub(crate) help: &'static str,
    /// A value for the reference page as TOML has it, if its shape alone does not say enough.
    pub(crate) example: Option<&'static str>,
    /// Why it cannot be varied; none if it can, as far as its table can.
    pub(crate) fixed: Option<&'static str>,
    /// Whether it changes nothing that is measured, so that a run continues when it changes.
    pub(crate) is_afterwards: bool,
}

impl Key {
    pub(crate) const fn help(self, help: &'static str) -> Key {
        Key { help, ..self }
    }

    pub(crate) const fn default(self, default: &'static str) -> Key {
        Key { default: Some(default), ..self }
    }

    pub(crate) const fn example(self, example: &'static str) -> Key {
        Key { example: Some(example), ..self }
    }

    pub(crate) const fn fixed(self, why: &'static str) -> Key {
        Key { fixed: Some(why), ..self }
    }

    /// The key of a field that changes nothing that is measured; it cannot be varied.
    pub(crate) const fn afterwards(self) -> Key {
        Key { is_afterwards: true, ..self }.fixed("it changes nothing that is measured")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Any text that is not empty.
    Text,
    Url,
    Urls,
    Words(&'static [&'static str]),
    Probe,
    Product,
    Workload,
    Engine,
    Filesystem,
    Source,
    /// Bytes above zero, such as `"8GiB"`.
    Size,
    SizeOrZero,
    Switch,
    /// A whole number from the first to the second; as text also `"250k"`.
    Count(u64, u64),
    /// A whole number from the first to the second.
    Integer(u64, u64),
    /// Arrivals per second; as text also `"2k"`, and `"500 for 10s, 2k for 5s"`.
    Rate,
    /// A duration such as `"30s"`; may be zero.
    Duration,
    PositiveDuration,
    /// A percentage such as `"3%"`.
    Percentage,
    /// A limit on response times such as `"p99 <= 20ms"`.
    Limit,
    /// Demands on the answer, one or a list: `"p99 <= 20ms"`, `"throughput >= 1000"`.
    Requirements,
    Cpus,
    Settings,
    Setting,
    Vary,
    Baseline,
    Levels(&'static Shape),
    /// One of these, or a list of them.
    OneOrMore(&'static Shape),
    SettingLevels,
    OptionLevels,
    SettingValues,
    OptionValues,
    Tables(&'static str),
    Design,
    /// An amount of money such as `"0.192 USD"`.
    Price,
    Command,
    /// One text, or a list of them.
    Texts,
    Names,
    /// Tables in tables, which declare a workload: those by name have these keys.
    Declaration(&'static [DeclaredKey]),
    Machine,
    /// Products that are described here, which their own reader checks.
    Recipes,
}

pub(crate) const INHERITED: &str = "`like` is resolved before anything is varied";

pub const CLIENTS_MAX: u64 = 1_000_000;

pub(crate) const fn key(name: &'static str, shape: Shape) -> Key {
    let (default, help, example, fixed) = (None, "", None, None);
    Key { name, shape, default, help, example, fixed, is_afterwards: false }
}

const CLIENTS: Shape = Shape::Count(1, CLIENTS_MAX);

/// Keys of the file that are not names of kinds of tables.
pub(crate) const STUDY_ONLY: &[Key] = &[
    key("title", Shape::Text)
        .help("The question that the study answers.")
        .example("\"What does it cost to have every commit on disk?\""),
    key("design", Shape::Design)
        .help("What is varied, and how it is measured.")
        .example("{ clients = 8, repetitions = 6 }"),
    key("machine", Shape::Machine)
        .help("Facts about the machine that Dyno cannot detect.")
        .example("{ price_per_hour = \"0.192 USD\" }"),
    key("product", Shape::Recipes)
        .help(
            "Products that are described here, one table each, [product.NAME]: how their \
             servers are found, initialised, started and stopped (docs/recipes.md).",
        )
        .example(
            "{ fork = { title = \"My fork\", protocol = \"mysql\", program = \"forkd\", \
             start = [\"--datadir={data}\"] } }",
        ),
];

pub(crate) const MACHINE: &[Key] = &[key("price_per_hour", Shape::Price)
    .help("Price per hour of this machine, for databases without their own price.")];

/// Keys of the `[design]` table that are not names of tables.
pub(crate) const DESIGN_ONLY: &[Key] = &[
    key("vary", Shape::Vary)
        .help("What is varied on purpose: lists of levels.")
        .example("{ database = [\"synced\", \"once-a-second\"], clients = [1, 8, 32] }"),
    key("clients", CLIENTS)
        .help(
            "Number of clients, if not varied; 1 if not given. Under open-loop load, the maximum \
             number of transactions in flight; 64 if not given. With `find_clients`, the maximum \
             number tried; 1024 if not given. A workload that defines its own steps accepts no \
             other key for the load.",
        )
        .example("8"),
    key("rate", Shape::Rate).help(
        "Offered rate in transactions per second; the load is then open. A string may give a \
             schedule of rates, which repeats from the beginning of the measured time: \"500 for \
             10s, 2k for 5s\".",
    ),
    key("find_rate", Shape::Limit).help(
        "Searches for the highest offered rate that meets this limit on response times (mean, \
             p50, p90, p95, p99, p99.9 or max), instead of `rate`.",
    ),
    key("find_clients", Shape::Limit).help(
        "Searches for the largest number of clients of a closed-loop load that meets this \
             limit on response times.",
    ),
    key("find_precision", Shape::Percentage)
        .help(
            "Precision of a search: the maximum distance between the highest load that meets the \
             limit and the lowest that exceeds it; 5% if not given.",
        )
        .example("\"2%\""),
    key("arrivals", Shape::Words(&["poisson", "constant"]))
        .default("\"poisson\"")
        .help("Distribution of the arrivals of an open-loop load (only with a rate)."),
    key("baseline", Shape::Baseline)
        .help(
            "Levels of the variants that the others are compared with. Factors not named keep \
             their level; without this key, the baseline has the first level of each factor.",
        )
        .example("{ database = \"synced\" }"),
    key("repetitions", Shape::Integer(1, 1000))
        .default("5")
        .help(
            "Trials of each variant; with stop = \"settled\", at most. Five take two thirds more \
             time than three, and with 2 % noise detect a difference of 5 % in 67 of 100 \
             comparisons instead of 28 (docs/method/error-rates.md); `dyno plan` shows which \
             differences your study can detect.",
        )
        .example("6"),
    key("stop", Shape::Words(&["repetitions", "settled"]))
        .default("\"repetitions\"")
        .help(
            "Repetitions: every variant gets all of them. Settled: after each block, variants \
             whose verdicts are settled get no further repetitions, which leaves more time for the \
             others.",
        )
        .example("\"settled\""),
    key("repetitions_min", Shape::Integer(2, 1000))
        .help(
            "Trials of each variant before any can be settled: 3 if not given (only with stop = \
             \"settled\").",
        )
        .example("4"),
    key("void_blocks", Shape::Words(&["repeat", "keep"])).default("\"repeat\"").help(
        "Repeat: a block during which the host was disturbed (CPU time that the hypervisor \
             took, other processes, a slow CPU probe) is discarded and measured again, at most \
             (repetitions − 1) / 2 blocks, rounded down (with 3 or more repetitions, interleaved, \
             without `stop`). Keep: all blocks count.",
    ),
    key("require", Shape::Requirements).help(
        "What every variant has to meet at every load level: \"p99 <= 20ms\" (mean, p50, p95, \
             p99, p99.9 or max) or \"throughput >= 1000\", or a list of these. `dyno run` exits \
             with 1 if it is not met, and with 2 if the data leave it undecided.",
    ),
    key("order", Shape::Words(&["interleaved", "sequential"])).default("\"interleaved\"").help(
        "Interleaved: each repetition of all variants is a block in random order, and every \
             second block reverses the order of the one before, so that drift affects all variants \
             alike. Sequential: in the order of the file.",
    ),
    key("seed", Shape::Integer(0, i64::MAX as u64))
        .help("The seed of all random streams of the run.")
        .example("42"),
    key("warm_up", Shape::Duration)
        .default("\"5s\"")
        .help("Load before the measured time of each load level.")
        .example("\"1min\""),
    key("duration", Shape::PositiveDuration)
        .default("\"30s\"")
        .help("How long each load level is measured.")
        .example("\"5min\""),
    key("until_steady", Shape::PositiveDuration)
        .help(
            "Each measurement that ends by time continues until its throughput has been steady for \
             `duration`, but at most this long.",
        )
        .example("\"30min\""),
    key("rest", Shape::Duration)
        .default("\"2s\"")
        .help("Idle time between load levels and between trials."),
    key("run_off", Shape::PositiveDuration)
        .help(
            "After the last load level of each trial, watch without load how the engine catches up \
             with deferred work (flushing, purge, compaction, vacuum), for at most this long.",
        )
        .example("\"10min\""),
    key("drop_caches", Shape::Switch)
        .default("false")
        .help(
            "Whether the operating system's page cache is dropped before each load level (for the \
             whole machine; with `on`, on the hosts of the servers; needs root privileges there). \
             Caches in a server's own memory are kept.",
        )
        .example("true"),
    key("probes_off", Shape::Levels(&Shape::Probe))
        .help(
            "Probes to leave out: \"responsiveness\" starts a process every second, \"innodb\" and \
             \"debt\" read InnoDB's status, which takes InnoDB's latches.",
        )
        .example("[\"responsiveness\", \"innodb\"]"),
    key("question", Shape::OneOrMore(&Shape::Words(&Question::WORDS)))
        .help(
            "What the answer is about, or a list of it, most important first; inferred from what varies if not given. \
             best: which variant is best. worse, same: whether any is worse than its baseline, or differs. \
             scales, linear: how throughput grows with clients, or with a number that is varied. \
             saturates: from how many clients on response time turns up. limit: how much load fits \
             within `require` or the limit of a search. cost: money per million transactions. reads: disk reads per \
             transaction. space: disk space. durability: the price of syncing every commit. snapshots: \
             how long they take. backlog: work that engines put off. blocks: whether a job holds up the \
             load. recovers: how long nothing commits after a fault. steady: how much throughput varies. It changes \
             nothing that is measured.",
        )
        .example("[\"best\", \"space\"]"),
    key("threshold", Shape::Percentage)
        .default("\"3%\"")
        .help("Differences smaller than this do not matter.")
        .example("\"5%\""),
    key("budget", Shape::PositiveDuration)
        .help("Time limit of the whole run; trials that would exceed it are not started.")
        .example("\"8h\""),
    key("statement_timeout", Shape::Duration)
        .default("\"60s\"")
        .help("Time limit of one statement; \"0\" for none."),
    key("retries", Shape::Integer(0, 1_000_000))
        .default("3")
        .help("Retries of a transaction that failed for a transient reason, such as a deadlock.")
        .example("0"),
    key("generators", Shape::Text)
        .help(
            "The [host.NAME] table of the machines that generate the load together: each agent \
             takes an equal share of the clients and of the schedule, and all begin at the same \
             time.",
        )
        .example("\"sql\""),
    key("workers", Shape::Integer(1, 4096))
        .help("Threads of the load generator; with `generators`, of each.")
        .example("2"),
    key("generator_cpus", Shape::Cpus)
        .help("CPUs that the load generator's threads are bound to.")
        .example("[0]"),
    key("server_cpus", Shape::Cpus)
        .help("CPUs that private servers are bound to.")
        .example("[1, 2, 3]"),
    key("reuse", Shape::Switch).default("true").help(
        "Whether private servers may start on a copy of a data set that was populated earlier \
             with the same product, version, settings that affect files, tables and seed.",
    ),
    key("data_folder", Shape::Text)
        .help("The folder in which private servers keep their data.")
        .example("\"/mnt/nvme/dyno\""),
];

/// Keys of `vary` that are not names of tables.
pub(crate) const VARY_ONLY: &[Key] = &[
    key("clients", Shape::Levels(&CLIENTS))
        .help("Numbers of clients: load levels within each trial.")
        .example("[1, 8, 32]"),
    key("rate", Shape::Levels(&Shape::Rate))
        .help("Offered rates: load levels within each trial.")
        .example("[500, \"2k\"]"),
    key("setting", Shape::SettingLevels)
        .help("Settings by name, each with the list of its values.")
        .example("{ innodb_io_capacity = [200, 2000] }"),
    key("option", Shape::OptionLevels)
        .help("Workload options by name, each with its list of values.")
        .example("{ table_size = [\"10k\", \"1M\"] }"),
];

/// Keys of `baseline` that are not names of tables.
pub(crate) const BASELINE_ONLY: &[Key] = &[
    key("setting", Shape::SettingValues)
        .help("Settings of the baseline by name.")
        .example("{ innodb_io_capacity = 200 }"),
    key("option", Shape::OptionValues)
        .help("Workload options of the baseline by name.")
        .example("{ table_size = \"10k\" }"),
];

pub(crate) fn names(keys: &[Key]) -> impl Iterator<Item = &str> {
    keys.iter().map(|key| key.name)
}
