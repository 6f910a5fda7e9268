//! Reads the `[job.NAME]` tables.

use dyno_units::SettingValue;

use super::relation::{self, Relation, each, either, missing};
use super::table::{Draft, Kind, RawTable, Wrong, wrong};
use super::value::{at_key, at_value};
use super::{fault, host};
use crate::job::{OTHER_DATABASE, figure};
use crate::keys::{INHERITED, Key, Shape, key};
use crate::nearest::did_you_mean;
use crate::{Database, FieldValue, HostPool, JobChoice, Product, Table, Variant, Vocabulary};

pub(crate) const KIND: Kind = Kind {
    help: "Work that runs to completion and is timed at each load level: [job.NAME].",
    lead: "One table for each job: SQL statements, or a command, that run to completion and whose \
           time is measured. It runs at every load level, alone or during the load. Each variant has \
           one job; without such a table, only the load runs.",
    example: "{ index = { sql = \"CREATE INDEX by_c ON sbtest1 (c)\" } }",
    names: ["\"index\"", "\"analyze\""],
    alternatives: &["sql", "command"],
    ..Kind::new("job", KEYS, read)
};

const OWN_TABLE: &str = "give each job a table and vary `job`";

const KEYS: &[Key] = &[
    key("sql", Shape::Texts)
        .help(
            "Statements, sent to the server in this order, each when a connection is free. An \
             empty list runs nothing, for variants without the job.",
        )
        .example("[\"CREATE INDEX by_k ON sbtest1 (k)\", \"CREATE INDEX by_c ON sbtest1 (c)\"]")
        .fixed(OWN_TABLE),
    key("command", Shape::Command)
        .help(
            "A program with its arguments, without a shell. It runs as the server's user, with \
             PATH and, if Dyno has started the server, DYNO_URL, DYNO_USER, DYNO_DATABASE, \
             DYNO_SOCKET (for a server without one, DYNO_HOST, DYNO_PORT and DYNO_PASSWORD) and \
             the variables that the product's own clients read, such as PGHOST; DYNO_PROGRAM is \
             the path of this Dyno. It must exit with code 0. With `on`, it runs on the server's \
             host.",
        )
        .example("[\"pg_dump\", \"--file=/dev/null\"]")
        .fixed(OWN_TABLE),
    key("setup", Shape::Command)
        .help(
            "A command that runs before the job and before the statements of `before`, untimed and \
             in the same way as `command`: to make the dump that the job restores, for example. \
             Both have DYNO_SCRATCH, a folder that is removed after the job.",
        )
        .example("[\"pg_dump\", \"--format=directory\", \"--file=dump\"]")
        .fixed(OWN_TABLE),
    key("other_database", Shape::Text)
        .help(
            "Another [database.NAME]: a server that Dyno starts, empty, for each trial in addition \
             to the measured one, so that the job can move data to it, for example. Commands find \
             its address in DYNO_OTHER_URL. Its data are in Dyno's data folder; its processes are \
             watched, but the server itself is not queried.",
        )
        .example("\"past\""),
    key("member", Shape::Text)
        .help(
            "The member with which the job works: primary, the server that is measured; replica-1, \
             replica-2 …; node-1, node-2 …; of independent servers on hosts, the name of the host. \
             Statements are sent to it, and commands run beside it, on its host.",
        )
        .example("\"replica-1\""),
    key("like", Shape::Text)
        .help("Another job, whose keys this one inherits and may override.")
        .example("\"index\"")
        .fixed(INHERITED),
    key("at_once", Shape::Integer(1, 1000))
        .default("1")
        .help("Number of statements of `sql` that run in parallel.")
        .example("3"),
    key("repeat", Shape::Words(&["never", "until-no-rows"]))
        .default("\"never\"")
        .help(
            "Until-no-rows: the statements of `sql` are a batch, which each connection sends \
             repeatedly. The last statement must return the number of rows that the batch handled; \
             zero ends the job.",
        )
        .fixed(OWN_TABLE),
    key("pause", Shape::Duration)
        .default("\"0s\"")
        .help("How long a connection pauses between two batches.")
        .example("\"5s\""),
    key("load", Shape::Words(&["off", "until-done", "on"])).default("\"off\"").help(
        "Off: the job runs alone, and ends the measurement. Until-done: the load runs during \
             the job, and is stopped when the job has ended. On: the job is stopped when the load \
             ends.",
    ),
    key("start_after", Shape::Duration)
        .default("\"0s\"")
        .help("How long the load is measured before the job begins."),
    key("same_tables", Shape::Switch)
        .default("false")
        .help(
            "Whether the workload's tables must have the same rows after the job as before \
             `setup`, compared by count and checksum; if they differ, the trial fails. The figure \
             job.data_per_s is then the size of the data divided by the job's time.",
        )
        .fixed(OWN_TABLE),
    key("before", Shape::Texts)
        .help("Statements sent before the job begins, untimed.")
        .example("\"DROP INDEX IF EXISTS by_c\"")
        .fixed(OWN_TABLE),
    key("check", Shape::Text)
        .help(
            "A statement sent after the job, which must return a row whose first value is not 0, \
             false, no, empty or NULL; otherwise the trial fails.",
        )
        .example("\"SELECT count(*) FROM pg_indexes WHERE indexname = 'by_c'\"")
        .fixed(OWN_TABLE),
    key("figures", Shape::Settings)
        .help(
            "Figures that the command prints, by name, each with its unit and whether `higher` or \
             `lower` is better. The command prints a line with the name, then a space, a colon or \
             `=`, then a number.",
        )
        .example("{ rows_per_s = \"1/s, higher\" }"),
];

const RELATIONS: &[Relation] = &[
    either(&["sql", "command"], "`sql` and `command` cannot be combined")
        .help("make them two jobs"),
    missing("{table} does nothing", "neither `sql` nor `command`")
        .without(&["sql", "command"])
        .help("add sql = \"…\" or command = [\"…\"]"),
    each(&["at_once", "repeat"], "`{key}` has no effect without `sql`", "only with it")
        .without(&["sql"]),
    each(&["pause"], "`{key}` has no effect without `repeat`", "only with it").without(&["repeat"]),
    each(
        &["other_database"],
        "`{key}` has no effect without `command`",
        "statements are sent to the database that is measured",
    )
    .without(&["command", "setup"]),
];

fn read(raw: &RawTable<'_>) -> Option<Table> {
    let table = raw.read();
    let before = raw.parser.count();
    relation::check(raw, RELATIONS, None);
    for (name, entry) in raw.named("figures") {
        let value = table.as_ref().and_then(|table| table.fields.get(&format!("figures.{name}")));
        let Some(FieldValue::Setting(value)) = value else { continue };
        let given = match value {
            SettingValue::Text(text) => figure(name, text),
            _ => None,
        };
        if raw.entry("command").is_none() {
            at_key(entry, "`figures` has no effect without `command`")
                .with_label("only with it")
                .add_to(raw.parser);
        } else if given.is_none() {
            at_value(entry, format!("`{name}` must be a unit and `higher` or `lower`"))
                .with_label(
                    "not a unit, not `higher` or `lower`, or a figure that Dyno itself measures",
                )
                .with_help("write it like \"rows/s, higher\" or \"s, lower\"")
                .add_to(raw.parser);
        }
    }
    table.filter(|_| raw.parser.count() == before)
}

/// Checks with which members the jobs of the variants work.
pub(super) fn check(draft: &Draft<'_>) {
    let found = draft.variants().filter_map(|variant| {
        let job = variant.job()?;
        let pool = variant.database.on.as_ref().and_then(|on| host::pool(draft.hosts, on));
        let wrong = wrong_member(&job, &variant.database, pool.as_ref())
            .or_else(|| wrong_place(&job, variant))?;
        Some((job.name, wrong))
    });
    draft.report(&KIND, found);
}

fn wrong_member(job: &JobChoice, database: &Database, pool: Option<&HostPool>) -> Option<Wrong> {
    let (name, of) = (&job.name, &database.name);
    let independent = fault::independent(database, pool);
    let Some(member) = &job.member else {
        let (first, _) = independent.split_first().filter(|(_, others)| !others.is_empty())?;
        let n = independent.len();
        return wrong(
            "member",
            format!("the job `{name}` must name one of the {n} servers of `{of}`"),
            "they are independent of each other",
            format!("add member = \"{first}\", or give the database servers = 1"),
        );
    };
    if let Product::Url(_) = &database.product {
        return wrong(
            "member",
            format!("the job `{name}` cannot name a member of the database `{of}`"),
            "it is given by `url`, and Dyno has not started its servers",
            "leave `member` out, or give the `url` of that server",
        );
    }
    let mut known = fault::servers_of(database);
    known.extend(independent);
    if known.contains(member) {
        return None;
    }
    wrong(
        "member",
        format!("the database `{of}` has no server `{member}`"),
        format!("of the job `{name}`"),
        did_you_mean(member, known.iter().map(String::as_str)),
    )
}

fn wrong_place(job: &JobChoice, variant: &Variant) -> Option<Wrong> {
    variant.database.on.as_ref().and(variant.other_database.as_ref())?;
    let (job, database) = (&job.name, &variant.database.name);
    wrong(
        OTHER_DATABASE,
        format!("the job `{job}` cannot have an `other_database`: `{database}` has `on`"),
        "it is started on the machine that runs the study, where commands on the host of the \
         server cannot reach it",
        "leave `on` out, or run whole trials on hosts with `trials_on`",
    )
}

/// Why a database cannot be the other database of a job, and what to do; none if it can.
pub(super) fn wrong_other(
    database: &Database,
    vocabulary: &Vocabulary,
) -> Option<(String, &'static str)> {
    let Product::Private(product) = &database.product else {
        return Some((
            "it is already running, and Dyno starts the other database of a job".to_owned(),
            "write its URL into the command",
        ));
    };
    if vocabulary.is_embedded(product) {
        let why = format!("{product} runs inside Dyno, where no command can reach it");
        return Some((why, "choose a product that is a server"));
    }
    let several = [
        ("replicas", database.replicas > 0),
        ("cluster", database.cluster.is_some()),
        ("shards", database.shards > 0),
        ("behind", database.behind.is_some()),
        ("log_volume", database.log_volume.is_some()),
        ("kernel", !database.kernel.is_empty()),
    ];
    let (key, _) = several.into_iter().find(|(_, is_given)| *is_given)?;
    let why =
        format!("it has `{key}`, but the other database is a single server in Dyno's data folder");
    Some((why, "leave the key out, or give the job a table of its own"))
}
