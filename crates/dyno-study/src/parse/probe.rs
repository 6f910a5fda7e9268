//! Reads the `[probe.NAME]` tables.

use dyno_units::Nanoseconds;

use super::kind::Kind;
use super::problems::Problems;
use super::table::{NamedTables, check_name};
use super::value::{self, Entry, Section, entries, list, values, wrong_value};
use super::vary::{KnownNames, known_name};
use crate::keys::{Key, Shape, key, with_default};
use crate::{Diagnostic, ProbeSource, UserProbe};

/// Probes that the study declares itself. They are the same in all variants.
pub(crate) const KIND: Kind = Kind {
    name: "probe",
    help: "Additional probes, read while trials run, one table each: [probe.NAME]. Their readings \
           are called probe.NAME.",
    lead: "Additional probes, read while trials run: the output of a program, or the result of a \
        statement.",
    example: "{ queue = { sql = \"SELECT count(*) FROM jobs\" } }",
    names: ["", ""],
    baseline_note: "",
    keys: KEYS,
    has_options: false,
    alternatives: &[],
    is_chosen: false,
    needed: None,
    read: |_, _, _| None,
};

const KEYS: &[Key] = &[
    key(
        "command",
        Shape::Command,
        "A program with its arguments, run for each reading, without a shell: its output is one \
         value, or lines of name and value.",
    )
    .example("[\"sensors\", \"-u\"]"),
    key(
        "sql",
        Shape::Text,
        "A statement, sent on a separate connection: it returns one value, or rows of name and \
         value.",
    )
    .example("\"SELECT count(*) FROM jobs\""),
    with_default("every", Shape::PositiveDuration, "\"1s\"", "Time from one reading to the next."),
    key(
        "databases",
        Shape::Names,
        "The databases in whose trials the probe is read; all if not given.",
    )
    .example("[\"synced\"]"),
];

/// The shortest time between readings: the length of an interval.
const EVERY_LEAST: Nanoseconds = Nanoseconds::SECOND;

pub(super) fn read(
    problems: &mut Problems,
    study: &Section<'_>,
    databases: &NamedTables<'_>,
) -> Option<Vec<UserProbe>> {
    let Some(entry) = study.entry("probe") else { return Some(Vec::new()) };
    let table = value::table(problems, &entry)?;
    let names = KnownNames::new(databases.names());
    let probes: Vec<Option<UserProbe>> =
        entries(table).iter().map(|entry| read_one(problems, entry, &names)).collect();
    probes.into_iter().collect()
}

fn read_one(
    problems: &mut Problems,
    entry: &Entry<'_>,
    databases: &KnownNames<'_>,
) -> Option<UserProbe> {
    check_name(problems, entry);
    let table = value::table(problems, entry)?;
    let title = format!("`[probe.{}]`", entry.key);
    let section = Section::closed(problems, (&title, entry.key_span.clone()), table, KEYS);
    let command = section.read("command", problems, value::command);
    let sql = section.read("sql", problems, value::text);
    let every = section.read("every", problems, every);
    let chosen = section.read("databases", problems, |problems, entry| {
        let known = |problems: &mut Problems, entry: &Entry<'_>| {
            known_name(problems, entry, "database", databases)
        };
        list(problems, entry, known, String::clone).and_then(|list| values(&list))
    });
    let source = match (command, sql) {
        (Some(command), None) => command.value.map(ProbeSource::Command),
        (None, Some(sql)) => sql.value.map(ProbeSource::Sql),
        (Some(command), Some(sql)) => {
            let later = if command.key_span.start < sql.key_span.start {
                sql.key_span
            } else {
                command.key_span
            };
            problems.add(
                Diagnostic::new(later, "`command` and `sql` cannot be combined")
                    .with_label("these two are mutually exclusive")
                    .with_help("make them two probes"),
            );
            None
        }
        (None, None) => {
            problems.add_missing(
                Diagnostic::new(entry.key_span.clone(), format!("{title} reads nothing"))
                    .with_label("neither `command` nor `sql`")
                    .with_help("add command = [\"…\"] or sql = \"…\""),
            );
            None
        }
    };
    Some(UserProbe {
        hidden_variables: Vec::new(),
        name: entry.key.to_owned(),
        source: source?,
        every: every.map_or(Some(EVERY_LEAST), |given| given.value)?,
        databases: chosen.map_or(Some(Vec::new()), |given| given.value)?,
    })
}

fn every(problems: &mut Problems, entry: &Entry<'_>) -> Option<Nanoseconds> {
    let every = value::positive_duration(problems, entry)?;
    if every < EVERY_LEAST {
        let message = format!("`every` must be at least {EVERY_LEAST}, the length of an interval");
        wrong_value(problems, entry, message);
        return None;
    }
    Some(every)
}
