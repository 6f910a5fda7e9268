//! Chooses the tables of the variants: of each kind the one that the design names, or those that are
//! varied.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Kind, KnownNames, NamedTable, NamedTables, known_name};
use super::value::{Entry, Section, at_key};
use super::vary::Vary;
use crate::Diagnostic;
use crate::nearest::list;

/// The tables of one kind, and which of them the variants have.
pub(super) struct Chosen<'t, 'a> {
    pub(super) tables: &'t NamedTables<'a>,
    pub(super) choice: Choice,
}

pub(super) enum Choice {
    Varied,
    Fixed(String),
    /// None: the study has no such tables, and needs none.
    Without,
    /// None could be chosen, which has been reported.
    Unknown,
}

/// The tables of each kind that some variant has.
pub(super) struct Involved<'t>(BTreeMap<&'static str, Vec<&'t NamedTable<'t>>>);

impl<'t> Involved<'t> {
    pub(super) fn new(chosen: &'t [Chosen<'t, '_>], vary: &Vary<'_>) -> Involved<'t> {
        let of_kind = |Chosen { tables, choice }: &'t Chosen<'t, '_>| {
            let names: BTreeSet<String> = match (vary.names(tables.kind), choice) {
                (Some(varied), _) => {
                    varied.whole().into_iter().flat_map(|one| one.levels).collect()
                }
                (None, Choice::Fixed(name)) => BTreeSet::from([name.clone()]),
                (None, _) => BTreeSet::new(),
            };
            let involved = tables.tables.iter().filter(|table| names.contains(table.name));
            (tables.kind.name, involved.collect())
        };
        Involved(chosen.iter().map(of_kind).collect())
    }

    pub(super) fn of(&self, kind: &Kind) -> &[&'t NamedTable<'t>] {
        self.0.get(kind.name).map_or(&[], Vec::as_slice)
    }
}

pub(super) fn choose<'t, 'a>(
    design: &Section<'_>,
    tables: &'t [NamedTables<'a>],
    vary: &Vary<'_>,
) -> Vec<Chosen<'t, 'a>> {
    let one = |tables| Chosen { tables, choice: choose_one(design, tables, vary) };
    tables.iter().map(one).collect()
}

fn choose_one(design: &Section<'_>, tables: &NamedTables<'_>, vary: &Vary<'_>) -> Choice {
    let (kind, names) = (tables.kind.name, tables.names());
    let known = KnownNames::new(names.clone());
    let fixed = design.entry(kind);
    let name = fixed.as_ref().map(|entry| known_name(entry, kind, &known));
    match (fixed, vary.names(tables.kind), &names[..]) {
        (fixed, Some(_), _) => {
            fixed.iter().for_each(report_fixed_and_varied);
            Choice::Varied
        }
        (Some(_), None, _) => name.flatten().map_or(Choice::Unknown, Choice::Fixed),
        (None, None, [only]) => Choice::Fixed((*only).to_owned()),
        (None, None, []) if tables.kind.needed.is_none() => Choice::Without,
        // Reported already.
        (None, None, []) => Choice::Unknown,
        (None, None, names) => {
            let message = format!("`[design]` must select a {kind}");
            design.parser.add_missing(
                Diagnostic::new(design.span.clone(), message)
                    .with_label(format!("the study defines {}", list(names)))
                    .with_help(format!(
                        "choose one with {kind} = \"…\", or vary them with \
                         vary = {{ {kind} = [\"…\", \"…\"] }}"
                    )),
            );
            Choice::Unknown
        }
    }
}

pub(super) fn report_fixed_and_varied(entry: &Entry<'_>) {
    at_key(entry, format!("`{}` is both fixed and varied", entry.key))
        .with_label("also in `vary`")
        .with_help("leave out one of the two")
        .add_to(entry.parser);
}
