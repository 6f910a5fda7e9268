//! Reads the `[probe.NAME]` tables.

use dyno_units::Nanoseconds;

use super::relation::{self, Relation, either, missing};
use super::table::{Kind, KnownNames, NamedTables, RawTable, known_name};
use super::value::{Entry, list, values, wrong_value};
use crate::keys::{Key, Shape, key};
use crate::{ProbeSource, Table, UserProbe};

/// Probes that the study declares itself. They are the same in all variants.
pub(crate) const KIND: Kind = Kind {
    help: "Additional probes, read while trials run, one table each: [probe.NAME]. Their readings \
           are called probe.NAME.",
    lead: "Additional probes, read while trials run: the output of a program, or the result of a \
        statement.",
    example: "{ queue = { sql = \"SELECT count(*) FROM jobs\" } }",
    is_chosen: false,
    ..Kind::new("probe", KEYS, read_one)
};

const KEYS: &[Key] = &[
    key("command", Shape::Command)
        .help(
            "A program with its arguments, run for each reading, without a shell: its output is \
             one value, or lines of name and value.",
        )
        .example("[\"sensors\", \"-u\"]"),
    key("sql", Shape::Text)
        .help(
            "A statement, sent on a separate connection: it returns one value, or rows of name and \
             value.",
        )
        .example("\"SELECT count(*) FROM jobs\""),
    key("every", Shape::PositiveDuration)
        .default("\"1s\"")
        .help("Time from one reading to the next."),
    key("databases", Shape::Names)
        .help("The databases in whose trials the probe is read; all if not given.")
        .example("[\"synced\"]"),
];

const RELATIONS: &[Relation] = &[
    either(&["command", "sql"], "`command` and `sql` cannot be combined")
        .help("make them two probes"),
    missing("{table} reads nothing", "neither `command` nor `sql`")
        .without(&["command", "sql"])
        .help("add command = [\"…\"] or sql = \"…\""),
];

/// The shortest time between readings: the length of an interval.
const EVERY_LEAST: Nanoseconds = Nanoseconds::SECOND;

fn read_one(raw: &RawTable<'_>) -> Option<Table> {
    let table = raw.read();
    relation::check(raw, RELATIONS, None);
    let every = table.as_ref().and_then(|table| table.time("every"));
    if let Some(entry) = raw.entry("every").filter(|_| every.is_some_and(|it| it < EVERY_LEAST)) {
        let message = format!("`every` must be at least {EVERY_LEAST}, the length of an interval");
        return wrong_value(entry, message);
    }
    table
}

pub(super) fn read(all: &NamedTables<'_>, databases: &NamedTables<'_>) -> Option<Vec<UserProbe>> {
    let names = KnownNames::new(databases.names());
    let known = |entry: &Entry<'_>| known_name(entry, "database", &names);
    let probes = all.tables.iter().map(|named| {
        let chosen = named.raw.as_ref()?.entry("databases");
        let chosen = chosen.map(|entry| list(entry, known, String::clone));
        let table = named.table.as_ref()?;
        Some(UserProbe {
            hidden_variables: Vec::new(),
            name: table.name.clone(),
            source: match table.texts("command") {
                [] => ProbeSource::Sql(table.owned("sql")?),
                command => ProbeSource::Command(command.to_vec()),
            },
            every: table.time("every").unwrap_or(EVERY_LEAST),
            databases: chosen.map_or(Some(Vec::new()), |chosen| values(&chosen?))?,
        })
    });
    let probes: Vec<Option<UserProbe>> = probes.collect();
    probes.into_iter().collect()
}
