//! The keys of a study file, each named once: the parser reads no other, the schema shows these.

/// A key of a table of the study file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Its name.
    pub(crate) name: &'static str,
    /// What its value is.
    pub(crate) shape: Shape,
    /// Its value when it is not given, as it would be written in TOML.
    pub(crate) default: Option<&'static str>,
    /// One sentence or two for editors.
    pub(crate) help: &'static str,
}

/// What the value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Any text that is not empty.
    Text,
    /// One of these words.
    Words(&'static [&'static str]),
    /// The name of a probe, from the vocabulary.
    Probe,
    /// A product of the vocabulary.
    Product,
    /// A workload of the vocabulary.
    Workload,
    /// A storage engine of the product.
    Engine,
    /// `true` or `false`.
    Switch,
    /// A whole number from the first to the second; as text also `"250k"`.
    Count(u64, u64),
    /// A whole number from the first to the second.
    Integer(u64, u64),
    /// Arrivals per second; as text also `"2k"`, and `"500 for 10s, 2k for 5s"`.
    Rate,
    /// A duration such as `"30s"`; may be zero.
    Duration,
    /// A duration above zero.
    PositiveDuration,
    /// A percentage such as `"3%"`.
    Percentage,
    /// A limit on response times such as `"p99 <= 20ms"`.
    Limit,
    /// Demands on the answer, one or a list: `"p99 <= 20ms"`, `"throughput >= 1000"`.
    Requirements,
    /// Numbers of CPUs.
    Cpus,
    /// Settings by name.
    Settings,
    /// Levels of each load and factor.
    Vary,
    /// A level of each factor named.
    Baseline,
    /// A list of levels of this kind.
    Levels(&'static Shape),
    /// Lists of levels of settings, by name.
    SettingLevels,
    /// Lists of levels of workload options, by name.
    OptionLevels,
    /// One value of each setting named.
    SettingValues,
    /// One value of each option named.
    OptionValues,
    /// Tables by name: databases.
    Databases,
    /// Tables by name: workloads.
    Workloads,
    /// The design.
    Design,
    /// An amount of money such as `"0.192 USD"`.
    Price,
    /// A program and its arguments.
    Command,
    /// Names from the study.
    Names,
    /// What is known of the machine.
    Machine,
    /// Tables by name: probes.
    Probes,
}

/// Most clients of one load level.
pub const CLIENTS_MAX: u64 = 1_000_000;

const fn key(name: &'static str, shape: Shape, help: &'static str) -> Key {
    Key { name, shape, default: None, help }
}

const fn with_default(
    name: &'static str,
    shape: Shape,
    default: &'static str,
    help: &'static str,
) -> Key {
    Key { name, shape, default: Some(default), help }
}

const CLIENTS: Shape = Shape::Count(1, CLIENTS_MAX);

/// Keys of the file.
pub(crate) const STUDY: &[Key] = &[
    key("title", Shape::Text, "The question that the study answers."),
    key("database", Shape::Databases, "The databases, one table each: [database.NAME]."),
    key("workload", Shape::Workloads, "What the clients do, one table each: [workload.NAME]."),
    key("design", Shape::Design, "What is varied, and how it is measured."),
    key("machine", Shape::Machine, "Facts about the machine that Dyno cannot detect."),
    key(
        "probe",
        Shape::Probes,
        "Additional probes, read while trials run, one table each: [probe.NAME]. Their readings \
         are called probe.NAME.",
    ),
];

/// Keys of the `[machine]` table.
pub(crate) const MACHINE: &[Key] = &[key(
    "price_per_hour",
    Shape::Price,
    "Price of an hour on this machine, for databases that have no price of their own.",
)];

/// Keys of a `[probe.NAME]` table.
pub(crate) const PROBE: &[Key] = &[
    key(
        "command",
        Shape::Command,
        "A program with its arguments, run for each reading, without a shell: its output is one \
         value, or lines of name and value.",
    ),
    key(
        "sql",
        Shape::Text,
        "A statement, sent on a connection of its own: it returns one value, or rows of name and \
         value.",
    ),
    with_default("every", Shape::PositiveDuration, "\"1s\"", "Time from one reading to the next."),
    key("databases", Shape::Names, "The databases in whose trials it is read; all, if not given."),
];

/// Keys of a `[database.NAME]` table.
pub(crate) const DATABASE: &[Key] = &[
    key("product", Shape::Product, "The product of a server that Dyno starts and owns."),
    key(
        "url",
        Shape::Text,
        "A running server: scheme://user:password@host:port/database. Dyno does not change its \
         settings. The password is never shown or stored.",
    ),
    key("like", Shape::Text, "Another database, whose keys this one inherits and may override."),
    key("version", Shape::Text, "What the server's version must begin with."),
    key("engine", Shape::Engine, "The storage engine, if the product has several."),
    key("programs", Shape::Text, "The folder with the server's programs, if it is not in PATH."),
    key(
        "settings",
        Shape::Settings,
        "Settings by the product's own names. \"25%\" is a share of the host's memory, and \
         \"8GiB\" (KiB, MiB, GiB, TiB: powers of 1024) a size for any product. All other strings \
         are passed on and mean what the product makes of them: \"64MB\" can be 64 × 1024² \
         bytes.",
    ),
    with_default(
        "allow_existing_tables",
        Shape::Switch,
        "false",
        "Whether a database with tables that Dyno did not create may be used; they are left alone \
         (only with `url`).",
    ),
    with_default(
        "keep_tables",
        Shape::Switch,
        "false",
        "Whether Dyno's tables are kept after the run; a later run in the same database replaces \
         them (only with `url`).",
    ),
    key(
        "price_per_hour",
        Shape::Price,
        "Price of an hour on this database, such as \"0.192 USD\"; the report then shows what the \
         work costs.",
    ),
];

/// Keys of a `[workload.NAME]` table that are not options of the workload.
pub(crate) const WORKLOAD: &[Key] = &[
    key("workload", Shape::Workload, "The workload; if not given, NAME is the workload."),
    key("like", Shape::Text, "Another workload, whose keys this one inherits and may override."),
];

/// Keys of the `[design]` table.
pub(crate) const DESIGN: &[Key] = &[
    key("vary", Shape::Vary, "What is varied on purpose: lists of levels."),
    key("database", Shape::Text, "The database, if it is not varied and there are several."),
    key("workload", Shape::Text, "The workload, if it is not varied and there are several."),
    key(
        "clients",
        CLIENTS,
        "Number of clients, if not varied; 1 if not given. Under an open load, the most \
         transactions in flight; 64 if not given. With `find_clients`, the most that are tried; \
         1024 if not given. A workload that defines its own steps takes only this number.",
    ),
    key(
        "rate",
        Shape::Rate,
        "Offered rate in transactions per second, which makes the load open. A string may give a \
         schedule of rates, which repeats from the beginning of the measured time: \"500 for 10s, \
         2k for 5s\".",
    ),
    key(
        "find_rate",
        Shape::Limit,
        "Searches for the highest offered rate that meets this limit on response times (mean, p50, \
         p90, p95, p99, p99.9 or max), instead of `rate`.",
    ),
    key(
        "find_clients",
        Shape::Limit,
        "Searches for the largest number of clients of a closed load that meets this limit on \
         response times.",
    ),
    key(
        "find_precision",
        Shape::Percentage,
        "Precision of a search: how close the highest load that meets the limit and the lowest \
         that does not have to be; 5% if not given.",
    ),
    with_default(
        "arrivals",
        Shape::Words(&["poisson", "constant"]),
        "\"poisson\"",
        "Distribution of the arrivals of an open load (only with a rate).",
    ),
    key(
        "baseline",
        Shape::Baseline,
        "Levels of the variants that the others are compared with. Factors not named keep their \
         level; without this key, the baseline has the first level of each factor.",
    ),
    with_default(
        "repetitions",
        Shape::Integer(1, 1000),
        "5",
        "Trials of each variant; with stop = \"settled\", at most. Five take two thirds more time than \
         three, and at a noise of 2 % find a difference of 5 % in 68 of 100 comparisons instead of 29 \
         (docs/method/error-rates.md); `dyno plan` says what your study finds.",
    ),
    with_default(
        "stop",
        Shape::Words(&["repetitions", "settled"]),
        "\"repetitions\"",
        "Repetitions: every variant gets all of them. Settled: after each block, variants whose \
         verdicts are settled get no more, which leaves their time to the others.",
    ),
    key(
        "repetitions_min",
        Shape::Integer(2, 1000),
        "Trials of each variant before any can be settled: 3 if not given (only with stop = \
         \"settled\").",
    ),
    with_default(
        "void_blocks",
        Shape::Words(&["repeat", "keep"]),
        "\"repeat\"",
        "Repeat: a block during which the host was disturbed (CPU time that the hypervisor took, \
         other processes, a slow canary) is void and measured again, at most half of the blocks \
         (with 3 or more repetitions, interleaved, without `stop`). Keep: all blocks count.",
    ),
    key(
        "require",
        Shape::Requirements,
        "What every variant has to meet at every step: \"p99 <= 20ms\" (mean, p50, p95, p99, p99.9 \
         or max) or \"throughput >= 1000\", or a list of these. `dyno run` exits with 1 if it is \
         not met, and with 2 if the data are inconclusive.",
    ),
    with_default(
        "order",
        Shape::Words(&["interleaved", "sequential"]),
        "\"interleaved\"",
        "Interleaved: each repetition of all variants is a block in random order, and every second \
         block is the reverse of the one before, so that drift affects all alike. Sequential: as \
         written.",
    ),
    key("seed", Shape::Integer(0, i64::MAX as u64), "Seed of everything random in the run."),
    with_default(
        "warm_up",
        Shape::Duration,
        "\"5s\"",
        "Load before the measured time of each step.",
    ),
    with_default("duration", Shape::PositiveDuration, "\"30s\"", "Measured time of each step."),
    key(
        "until_steady",
        Shape::PositiveDuration,
        "Each step that ends by time continues until its throughput has been steady for \
         `duration`, at most this long.",
    ),
    with_default("rest", Shape::Duration, "\"2s\"", "Idle time between steps and between trials."),
    key(
        "run_off",
        Shape::PositiveDuration,
        "After the last step of each trial, watch without load how the engine catches up with \
         deferred work (flushing, purge, compaction, vacuum), at most this long.",
    ),
    key(
        "probes_off",
        Shape::Levels(&Shape::Probe),
        "Probes to leave out: \"responsiveness\" starts a process every second, \"innodb\" and \
         \"debt\" ask for InnoDB's status, which takes its latches.",
    ),
    with_default(
        "threshold",
        Shape::Percentage,
        "\"3%\"",
        "Differences smaller than this do not matter.",
    ),
    key(
        "budget",
        Shape::PositiveDuration,
        "Time limit of the whole run; trials that would exceed it are not started.",
    ),
    with_default(
        "statement_timeout",
        Shape::Duration,
        "\"60s\"",
        "Time limit of one statement; \"0\" for none.",
    ),
    with_default(
        "retries",
        Shape::Integer(0, 1_000_000),
        "3",
        "Retries of a transaction that failed for a transient reason, such as a deadlock.",
    ),
    key("workers", Shape::Integer(1, 4096), "Threads of the load generator."),
    key("generator_cpus", Shape::Cpus, "CPUs that the load generator's threads are bound to."),
    key("server_cpus", Shape::Cpus, "CPUs that private servers are bound to."),
    with_default(
        "reuse",
        Shape::Switch,
        "true",
        "Whether private servers may start on a copy of a data set that was populated earlier with \
         the same product, version, settings that affect files, tables and seed.",
    ),
    key("data_folder", Shape::Text, "The folder in which private servers keep their data."),
];

/// Keys of `vary`.
pub(crate) const VARY: &[Key] = &[
    key("database", Shape::Levels(&Shape::Text), "Names of [database.…] tables."),
    key("workload", Shape::Levels(&Shape::Text), "Names of [workload.…] tables."),
    key("clients", Shape::Levels(&CLIENTS), "Numbers of clients: steps inside each trial."),
    key("rate", Shape::Levels(&Shape::Rate), "Offered rates: steps inside each trial."),
    key("setting", Shape::SettingLevels, "Settings by name, each with the list of its values."),
    key("option", Shape::OptionLevels, "Workload options by name, each with its list of values."),
];

/// Keys of `baseline`, besides `"setting.NAME"` and `"option.NAME"`.
pub(crate) const BASELINE: &[Key] = &[
    key(
        "database",
        Shape::Text,
        "The database of the baseline; \"own\" compares each database with the first one of its \
         product.",
    ),
    key("workload", Shape::Text, "The workload of the baseline."),
    key("setting", Shape::SettingValues, "Settings of the baseline by name."),
    key("option", Shape::OptionValues, "Workload options of the baseline by name."),
];

/// The names of `keys`.
pub(crate) fn names(keys: &[Key]) -> impl Iterator<Item = &str> {
    keys.iter().map(|key| key.name)
}
