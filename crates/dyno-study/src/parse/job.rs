//! Reads the `[job.NAME]` tables.

use std::ops::Range;

use dyno_units::SettingValue;

use super::kind::Kind;
use super::problems::Problems;
use super::table::{NamedTables, RawTable};
use super::value::Section;
use super::{fault, host};
use crate::job::{OTHER_DATABASE, figure};
use crate::keys::{INHERITED, Key, Shape, key, with_default};
use crate::nearest::did_you_mean;
use crate::{
    Database, Diagnostic, FieldValue, HostPool, JobChoice, Product, Table, Variant, Vocabulary,
};

pub(crate) const KIND: Kind = Kind {
    name: "job",
    help: "Work that runs to completion and is timed at each load level: [job.NAME].",
    lead: "One table for each job: SQL statements, or a command, that run to completion and whose \
           time is measured. It runs at every load level, alone or during the load. Each variant has \
           one job; without such a table, only the load runs.",
    example: "{ index = { sql = \"CREATE INDEX by_c ON sbtest1 (c)\" } }",
    names: ["\"index\"", "\"analyze\""],
    baseline_note: "",
    keys: KEYS,
    has_options: false,
    alternatives: &["sql", "command"],
    is_chosen: true,
    needed: None,
    read,
};

const OWN_TABLE: &str = "give each job a table and vary `job`";

const KEYS: &[Key] = &[
    key(
        "sql",
        Shape::Texts,
        "Statements, sent to the server in this order, each when a connection is free. An empty \
         list runs nothing, for variants without the job.",
    )
    .example("[\"CREATE INDEX by_k ON sbtest1 (k)\", \"CREATE INDEX by_c ON sbtest1 (c)\"]")
    .fixed(OWN_TABLE),
    key(
        "command",
        Shape::Command,
        "A program with its arguments, without a shell. It runs as the server's user, with PATH \
         and, if Dyno has started the server, DYNO_URL, DYNO_USER, DYNO_DATABASE, DYNO_SOCKET \
         (for a server without one, DYNO_HOST, DYNO_PORT and DYNO_PASSWORD) and the variables \
         that the product's own clients read, such as PGHOST; DYNO_PROGRAM is the path of this \
         Dyno. It must exit with code 0. With `on`, it runs on the server's host.",
    )
    .example("[\"pg_dump\", \"--file=/dev/null\"]")
    .fixed(OWN_TABLE),
    key(
        "setup",
        Shape::Command,
        "A command that runs before the job and before the statements of `before`, untimed and in \
         the same way as `command`: to make the dump that the job restores, for example. Both \
         have DYNO_SCRATCH, a folder that is removed after the job.",
    )
    .example("[\"pg_dump\", \"--format=directory\", \"--file=dump\"]")
    .fixed(OWN_TABLE),
    key(
        "other_database",
        Shape::Text,
        "Another [database.NAME]: a server that Dyno starts, empty, for each trial in addition to \
         the measured one, so that the job can move data to it, for example. Commands find its \
         address in DYNO_OTHER_URL. Its data are in Dyno's data folder; its processes are \
         watched, but the server itself is not queried.",
    )
    .example("\"past\""),
    key(
        "member",
        Shape::Text,
        "The member with which the job works: primary, the server that is measured; replica-1, \
         replica-2 …; node-1, node-2 …; of independent servers on hosts, the name of the host. \
         Statements are sent to it, and commands run beside it, on its host.",
    )
    .example("\"replica-1\""),
    key("like", Shape::Text, "Another job, whose keys this one inherits and may override.")
        .example("\"index\"")
        .fixed(INHERITED),
    with_default(
        "at_once",
        Shape::Integer(1, 1000),
        "1",
        "Number of statements of `sql` that run in parallel.",
    )
    .example("3"),
    with_default(
        "repeat",
        Shape::Words(&["never", "until-no-rows"]),
        "\"never\"",
        "Until-no-rows: the statements of `sql` are a batch, which each connection sends \
         repeatedly. The last statement must return the number of rows that the batch handled; \
         zero ends the job.",
    )
    .fixed(OWN_TABLE),
    with_default(
        "pause",
        Shape::Duration,
        "\"0s\"",
        "How long a connection pauses between two batches.",
    )
    .example("\"5s\""),
    with_default(
        "load",
        Shape::Words(&["off", "until-done", "on"]),
        "\"off\"",
        "Off: the job runs alone, and ends the measurement. Until-done: the load runs during the job, and \
         is stopped when the job has ended. On: the job is stopped when the load ends.",
    ),
    with_default(
        "start_after",
        Shape::Duration,
        "\"0s\"",
        "How long the load is measured before the job begins.",
    ),
    with_default(
        "same_tables",
        Shape::Switch,
        "false",
        "Whether the workload's tables must have the same rows after the job as before `setup`, \
         compared by count and checksum; if they differ, the trial fails. The figure job.data_per_s is \
         then the size of the data divided by the job's time.",
    )
    .fixed(OWN_TABLE),
    key("before", Shape::Texts, "Statements sent before the job begins, untimed.")
        .example("\"DROP INDEX IF EXISTS by_c\"")
        .fixed(OWN_TABLE),
    key(
        "check",
        Shape::Text,
        "A statement sent after the job, which must return a row whose first value is not 0, \
         false, no, empty or NULL; otherwise the trial fails.",
    )
    .example("\"SELECT count(*) FROM pg_indexes WHERE indexname = 'by_c'\"")
    .fixed(OWN_TABLE),
    key(
        "figures",
        Shape::Settings,
        "Figures that the command prints, by name, each with its unit and whether `higher` or \
         `lower` is better. The command prints a line with the name, then a space, a colon or \
         `=`, then a number.",
    )
    .example("{ rows_per_s = \"1/s, higher\" }"),
];

fn read(problems: &mut Problems, raw: &RawTable<'_>, vocabulary: &Vocabulary) -> Option<Table> {
    let table = raw.read(problems, vocabulary);
    let before = problems.count();
    let title = format!("`[job.{}]`", raw.name);
    match (raw.entry("sql"), raw.entry("command")) {
        (Some(sql), Some(command)) => {
            let later = if sql.key_span.start < command.key_span.start { command } else { sql };
            problems.add(
                Diagnostic::new(later.key_span.clone(), "`sql` and `command` cannot be combined")
                    .with_label("these two are mutually exclusive")
                    .with_help("make them two jobs"),
            );
        }
        (None, None) => problems.add_missing(
            Diagnostic::new(raw.name_span.clone(), format!("{title} does nothing"))
                .with_label("neither `sql` nor `command`")
                .with_help("add sql = \"…\" or command = [\"…\"]"),
        ),
        _ => {}
    }
    let only = |field: &str, of: &str| {
        let entry = raw.entry(field).filter(|_| raw.entry(of).is_none())?;
        let message = format!("`{field}` has no effect without `{of}`");
        Some(Diagnostic::new(entry.key_span.clone(), message).with_label("only with it"))
    };
    for (field, of) in [("at_once", "sql"), ("repeat", "sql"), ("pause", "repeat")] {
        only(field, of).into_iter().for_each(|problem| problems.add(problem));
    }
    let has_command = raw.entry("command").or(raw.entry("setup")).is_some();
    if let Some(other) = raw.entry("other_database").filter(|_| !has_command) {
        problems.add(
            Diagnostic::new(
                other.key_span.clone(),
                "`other_database` has no effect without `command`",
            )
            .with_label("statements are sent to the database that is measured"),
        );
    }
    for (name, entry) in raw.named("figures") {
        let value = table.as_ref().and_then(|table| table.fields.get(&format!("figures.{name}")));
        let Some(FieldValue::Setting(value)) = value else { continue };
        let given = match value {
            SettingValue::Text(text) => figure(name, text),
            _ => None,
        };
        if raw.entry("command").is_none() {
            problems.add(
                Diagnostic::new(
                    entry.key_span.clone(),
                    "`figures` has no effect without `command`",
                )
                .with_label("only with it"),
            );
        } else if given.is_none() {
            problems.add(
                Diagnostic::new(
                    entry.span.clone(),
                    format!("`{name}` must be a unit and `higher` or `lower`"),
                )
                .with_label(
                    "not a unit, not `higher` or `lower`, or a figure that Dyno itself measures",
                )
                .with_help("write it like \"rows/s, higher\" or \"s, lower\""),
            );
        }
    }
    table.filter(|_| problems.count() == before)
}

/// Checks with which members the jobs of the variants work.
pub(super) fn check(
    problems: &mut Problems,
    section: &Section<'_>,
    (tables, hosts): (&[NamedTables<'_>], &NamedTables<'_>),
    variants: Option<&[Variant]>,
) {
    let jobs = tables.iter().find(|tables| tables.kind == &KIND);
    // Where a key of its table is, or the table; a value that is varied stands in the design.
    let span = |name: &str, key: &str| -> Range<usize> {
        let named = jobs.and_then(|jobs| jobs.tables.iter().find(|table| table.name == name));
        let raw = named.and_then(|named| named.raw.as_ref());
        let entry = raw.and_then(|raw| raw.entry(key)).map(|entry| entry.span.clone());
        entry.or_else(|| raw.map(|raw| raw.name_span.clone())).unwrap_or(section.span.clone())
    };
    let mut told: Vec<(String, String)> = Vec::new();
    for variant in variants.into_iter().flatten() {
        let Some(job) = variant.job() else { continue };
        let pool = variant.database.on.as_ref().and_then(|on| host::pool(hosts, on));
        let wrong = wrong_member(&job, &variant.database, pool.as_ref())
            .or_else(|| wrong_place(&job, variant));
        let Some(Wrong { key, message, label, help }) = wrong else { continue };
        // Variants that share a job share its mistakes.
        if !told.contains(&(job.name.clone(), message.clone())) {
            let diagnostic = Diagnostic::new(span(&job.name, key), &*message);
            problems.add(diagnostic.with_label(label).with_help(help));
            told.push((job.name, message));
        }
    }
}

struct Wrong {
    key: &'static str,
    message: String,
    label: String,
    help: String,
}

fn wrong_member(job: &JobChoice, database: &Database, pool: Option<&HostPool>) -> Option<Wrong> {
    let (name, of) = (&job.name, &database.name);
    let wrong = |message: String, label: &str, help: String| {
        Some(Wrong { key: "member", message, label: label.to_owned(), help })
    };
    let independent = fault::independent(database, pool);
    let Some(member) = &job.member else {
        let (first, _) = independent.split_first().filter(|(_, others)| !others.is_empty())?;
        return wrong(
            format!(
                "the job `{name}` must name one of the {} servers of `{of}`",
                independent.len()
            ),
            "they are independent of each other",
            format!("add member = \"{first}\", or give the database servers = 1"),
        );
    };
    if let Product::Url(_) = &database.product {
        return wrong(
            format!("the job `{name}` cannot name a member of the database `{of}`"),
            "it is given by `url`, and Dyno has not started its servers",
            "leave `member` out, or give the `url` of that server".to_owned(),
        );
    }
    let mut known = fault::servers_of(database);
    known.extend(independent);
    if known.contains(member) {
        return None;
    }
    wrong(
        format!("the database `{of}` has no server `{member}`"),
        &format!("of the job `{name}`"),
        did_you_mean(member, known.iter().map(String::as_str)),
    )
}

fn wrong_place(job: &JobChoice, variant: &Variant) -> Option<Wrong> {
    variant.database.on.as_ref().and(variant.other_database.as_ref())?;
    Some(Wrong {
        key: OTHER_DATABASE,
        message: format!(
            "the job `{}` cannot have an `other_database`: `{}` has `on`",
            job.name, variant.database.name
        ),
        label:
            "it is started on the machine that runs the study, where commands on the host of the \
                server cannot reach it"
                .to_owned(),
        help: "leave `on` out, or run whole trials on hosts with `trials_on`".to_owned(),
    })
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
    let mut words = vocabulary.products.iter();
    if words.any(|word| word.name == *product && word.is_embedded) {
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
