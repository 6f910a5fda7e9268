//! Makes the variants: every combination of levels, each with its tables.
//!
//! A level is applied by putting it into the table and reading the table: what could not be written in a
//! table cannot be a level of its field, and is refused with the same words at its place in `vary`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::choice::{Choice, Chosen};
use super::design::TRIALS_MAX;
use super::parser::Parser;
use super::table::{Kind, NamedTable, RawTable, TABLES_MOST};
use super::vary::ReadFactor;
use super::{database, job, volume};
use crate::job::OTHER_DATABASE;
use crate::nearest::did_you_mean;
use crate::volume::LOG_VOLUME;
use crate::{Database, Diagnostic, Level, Table, Variant, WorkloadChoice};

/// In place of a database: each product has a baseline of its own, the first of its databases.
pub(super) const OWN_BASELINE: &str = "own";

/// A level of each factor, as an index.
type Cell = Vec<usize>;

/// Every combination of levels; the first factor changes last.
fn cells(factors: &[ReadFactor<'_>]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![Vec::new()];
    for factor in factors {
        let n_levels = factor.factor.levels.len();
        cells = cells
            .iter()
            .flat_map(|cell| {
                (0..n_levels).map(move |level| cell.iter().copied().chain([level]).collect())
            })
            .collect();
    }
    cells
}

/// All variants; none if something about one is wrong, or if they are too many.
pub(super) fn make(
    parser: &Parser<'_>,
    factors: &[ReadFactor<'_>],
    baseline: &BTreeMap<String, String>,
    chosen: &[Chosen<'_, '_>],
) -> Option<Vec<Variant>> {
    let n = factors.iter().try_fold(1_usize, |n, one| n.checked_mul(one.factor.levels.len()));
    if chosen.iter().any(|one| matches!(one.choice, Choice::Unknown)) || n? > TRIALS_MAX {
        return None;
    }
    if are_too_large(parser, factors, chosen) {
        return None;
    }
    let fixed = baseline_levels(factors, baseline, chosen);
    // Once for each level, not for each variant that has it.
    let shown: Vec<Vec<String>> = factors
        .iter()
        .map(|read| (0..read.factor.levels.len()).map(|at| shown(read, at)).collect())
        .collect();
    let mut names = Names::default();
    let mut tables = Tables { parser, factors, chosen, known: HashMap::new() };
    // All problems are reported, not only those of the first variant.
    let made: Vec<Option<Variant>> = cells(factors)
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            let (tables, other_database) = tables.at(cell)?;
            let levels: Vec<Level> = factors
                .iter()
                .zip(shown.iter().zip(cell))
                .map(|(read, (shown, at))| level(read, &shown[*at]))
                .collect();
            let baseline = baseline_index(cell, &fixed, factors);
            let find = |made: fn(&Made) -> bool| tables.iter().find(|table| made(table));
            Some(Variant {
                name: names.unique(name(factors, &levels, &tables)),
                levels,
                baseline: (baseline != index).then_some(baseline),
                database: find(|made| made.database.is_some())?.database.clone()?,
                other_database,
                workload: find(|made| made.workload.is_some())?.workload.clone()?,
                tables: tables.iter().map(|made| Arc::clone(&made.table)).collect(),
            })
        })
        .collect();
    made.into_iter().collect()
}

/// Whether tables and names of the variants would take too much memory, which is reported then.
fn are_too_large(
    parser: &Parser<'_>,
    factors: &[ReadFactor<'_>],
    chosen: &[Chosen<'_, '_>],
) -> bool {
    let combined = |n: usize, one: &ReadFactor<'_>| n.saturating_mul(one.factor.levels.len());
    let longest =
        |one: &ReadFactor<'_>| one.factor.levels.iter().map(String::len).max().unwrap_or(0);
    let levels: usize = factors.iter().map(longest).sum();
    let names = factors.iter().fold(levels, combined);
    let of_kind = |chosen: &Chosen<'_, '_>| {
        let kind = chosen.tables.kind;
        let own: Vec<_> = factors.iter().filter(|one| one.path.kind == kind).collect();
        if own.iter().all(|one| one.path.field.is_none()) {
            return 0;
        }
        let raws = chosen.tables.tables.iter().filter_map(|one| one.raw.as_ref());
        let largest = raws.map(RawTable::size).max().unwrap_or(0);
        own.into_iter().fold(largest + levels, combined)
    };
    let is_too_large = chosen.iter().map(of_kind).fold(names, usize::saturating_add) > TABLES_MOST;
    if let Some(first) = factors.first().filter(|_| is_too_large) {
        let message =
            format!("the tables of all variants would take more than {} MiB", TABLES_MOST >> 20);
        Diagnostic::new(first.key_span.clone(), message)
            .with_label("all levels of all factors are combined")
            .with_help("vary fewer factors at once, or fewer levels of each")
            .add_to(parser);
    }
    is_too_large
}

fn level(read: &ReadFactor<'_>, shown: &str) -> Level {
    Level { factor: read.factor.name.clone(), level: shown.to_owned() }
}

/// A level as names of variants, plans and records have it: of a secret, only which one it is.
fn shown(read: &ReadFactor<'_>, at: usize) -> String {
    let level = &read.factor.levels[at];
    let hidden =
        dyno_units::redact_setting(read.factor.label.as_deref().unwrap_or_default(), level);
    if hidden == *level { hidden } else { format!("{hidden} ({})", at + 1) }
}

#[derive(Clone)]
struct Made {
    table: Arc<Table>,
    database: Option<Arc<Database>>,
    workload: Option<Arc<WorkloadChoice>>,
}

type Field<'f> = (&'f Kind, &'f str, &'f str);

/// Which table it is: its kind, its name, and for each factor that it takes a level of, which one.
type Key = (usize, String, Vec<(usize, usize)>);

/// The tables of the variants, shared by all that have the same one.
struct Tables<'r, 'a> {
    parser: &'r Parser<'r>,
    factors: &'r [ReadFactor<'r>],
    chosen: &'r [Chosen<'r, 'a>],
    /// None for a table that is wrong, which has been reported.
    known: HashMap<Key, Option<Made>>,
}

impl Tables<'_, '_> {
    /// The tables of the variant at `cell`, with the other database of its job; none if one is wrong, which has
    /// been reported.
    fn at(&mut self, cell: &[usize]) -> Option<(Vec<Made>, Option<Arc<Database>>)> {
        let mut all = Vec::new();
        for (kind, chosen) in self.chosen.iter().enumerate() {
            let of_kind =
                |(at, _): &(usize, &usize)| self.factors[*at].path.kind == chosen.tables.kind;
            let levels = cell.iter().enumerate().filter(of_kind);
            let (fields, names): (Vec<_>, Vec<_>) = levels
                .map(|(factor, level)| (factor, *level))
                .partition(|(factor, _)| self.factors[*factor].path.field.is_some());
            let name = match (&chosen.choice, names.first()) {
                (_, Some((factor, level))) => self.factors[*factor].factor.levels[*level].clone(),
                (Choice::Fixed(name), None) => name.clone(),
                (Choice::Without, None) if fields.is_empty() => continue,
                _ => return None,
            };
            let key = (kind, name, fields);
            let made = match self.known.get(&key) {
                Some(made) => made.clone(),
                None => {
                    let made = self.make(&key);
                    self.known.insert(key, made.clone());
                    made
                }
            };
            all.push(made);
        }
        let mut all: Vec<Made> = all.into_iter().collect::<Option<_>>()?;
        let logs = self.log_volume(&all)?;
        let other = self.other_database(&all)?;
        all.extend(logs);
        let (other, database) = other.unzip();
        all.extend(other);
        Some((all, database))
    }

    /// The volume of the database's logs, if it names one; none if there is no such volume, which is
    /// reported.
    fn log_volume(&self, tables: &[Made]) -> Option<Option<Made>> {
        let Some(database) = tables.iter().find_map(|made| made.database.as_ref()) else {
            return Some(None);
        };
        let Some(name) = &database.log_volume else { return Some(None) };
        let by = (&database::KIND, database.name.as_str(), "log_volume");
        let volume = self.named((&volume::KIND, name), by)?;
        let table = Table { kind: LOG_VOLUME, ..volume.table.clone()? };
        Some(Some(Made { table: Arc::new(table), database: None, workload: None }))
    }

    /// The other database of the job, if it names one; none if there is no such database, or it cannot be one,
    /// which is reported.
    fn other_database(&self, tables: &[Made]) -> Option<Option<(Made, Arc<Database>)>> {
        let Some(job) = tables.iter().find(|made| made.table.kind == job::KIND.name) else {
            return Some(None);
        };
        let Some(name) = job.table.text(OTHER_DATABASE) else { return Some(None) };
        let by = (&job::KIND, job.table.name.as_str(), OTHER_DATABASE);
        let other = self.named((&database::KIND, name), by)?;
        let table = other.table.clone()?;
        let database = Database::of(&table)?;
        if let Some((what, help)) = job::wrong_other(&database, self.parser.vocabulary) {
            let span = self.span_of(by, name).unwrap_or_default();
            Diagnostic::new(span, format!("`{name}` cannot be the other database of a job"))
                .with_label(what)
                .with_help(help)
                .add_to(self.parser);
            return None;
        }
        let table = Arc::new(Table { kind: OTHER_DATABASE, ..table });
        Some(Some((Made { table, database: None, workload: None }, Arc::new(database))))
    }

    /// The table of a kind that a field of another table names; none if there is no such table, which is reported.
    fn named(&self, (kind, name): (&Kind, &str), by: Field<'_>) -> Option<&NamedTable<'_>> {
        let tables = self.of_kind(kind);
        if let Some(named) = tables.iter().find(|table| table.name == name) {
            return Some(named);
        }
        let names = tables.iter().map(|table| table.name);
        Diagnostic::new(self.span_of(by, name)?, format!("unknown {} `{name}`", kind.name))
            .with_label(format!("there is no `[{}.{name}]`", kind.name))
            .with_help(did_you_mean(name, names))
            .add_to(self.parser);
        None
    }

    fn of_kind(&self, kind: &Kind) -> &[NamedTable<'_>] {
        let mut chosen = self.chosen.iter().filter(|chosen| chosen.tables.kind == kind);
        chosen.next().map_or(&[], |chosen| &chosen.tables.tables)
    }

    /// Where a table names another one; at the name of the table if the value is a level of a factor, which does
    /// not stand in it.
    fn span_of(&self, (kind, table, field): Field<'_>, value: &str) -> Option<Range<usize>> {
        let raw = self.of_kind(kind).iter().find(|named| named.name == table)?.raw.as_ref()?;
        let entry = raw.entry(field).filter(|entry| entry.value.as_str() == Some(value));
        Some(entry.map_or(&raw.name_span, |entry| &entry.span).clone())
    }

    fn make(&self, (kind, name, fields): &Key) -> Option<Made> {
        let tables = self.chosen[*kind].tables;
        let named = tables.tables.iter().find(|table| table.name == *name)?;
        let table = if fields.is_empty() {
            named.table.clone()?
        } else {
            let mut raw = named.raw.clone()?;
            for (factor, level) in fields {
                let ReadFactor { path, entries, .. } = &self.factors[*factor];
                raw.set(path.field.as_deref()?, entries[*level].clone());
            }
            (tables.kind.read)(&raw)?
        };
        Some(Made {
            database: Database::of(&table).map(Arc::new),
            workload: WorkloadChoice::of(&table).map(Arc::new),
            table: Arc::new(table),
        })
    }
}

enum BaselineLevel {
    Same,
    Of(usize),
    /// One for each level of the variant.
    ByLevel(Vec<usize>),
}

fn baseline_levels(
    factors: &[ReadFactor<'_>],
    baseline: &BTreeMap<String, String>,
    chosen: &[Chosen<'_, '_>],
) -> Vec<BaselineLevel> {
    let level = |read: &ReadFactor<'_>| {
        if baseline.is_empty() {
            return BaselineLevel::Of(0);
        }
        let factor = &read.factor;
        let Some(level) = baseline.get(&factor.name) else { return BaselineLevel::Same };
        let is_own = factor.name == database::KIND.name && level == OWN_BASELINE;
        match factor.levels.iter().position(|other| other == level) {
            Some(level) => BaselineLevel::Of(level),
            None if is_own => BaselineLevel::ByLevel(first_of_product(chosen, &factor.levels)),
            None => BaselineLevel::Same,
        }
    };
    factors.iter().map(level).collect()
}

/// For each database the first one of the same product.
fn first_of_product(chosen: &[Chosen<'_, '_>], names: &[String]) -> Vec<usize> {
    let databases = chosen.iter().filter(|chosen| chosen.tables.kind == &database::KIND);
    let tables = databases.flat_map(|chosen| &chosen.tables.tables);
    let tables: Vec<&Table> = tables.filter_map(|table| table.table.as_ref()).collect();
    let product = |name: &String| {
        let table = tables.iter().find(|table| table.name == *name)?;
        Some((table.text("product"), table.text("url")))
    };
    let first = |(at, name): (usize, &String)| {
        names.iter().position(|other| product(other) == product(name)).unwrap_or(at)
    };
    names.iter().enumerate().map(first).collect()
}

/// The index of the variant that the one at `cell` is compared with: cells are numbered as the
/// digits of a number whose bases are the numbers of levels.
fn baseline_index(cell: &[usize], fixed: &[BaselineLevel], factors: &[ReadFactor<'_>]) -> usize {
    let digits = cell.iter().zip(fixed).map(|(own, fixed)| match fixed {
        BaselineLevel::Same => *own,
        BaselineLevel::Of(level) => *level,
        BaselineLevel::ByLevel(of) => of.get(*own).copied().unwrap_or(*own),
    });
    let bases = factors.iter().map(|factor| factor.factor.levels.len());
    digits.zip(bases).fold(0, |index, (digit, base)| index * base + digit)
}

/// The name of a variant: its levels, or its database if nothing is varied.
fn name(factors: &[ReadFactor<'_>], levels: &[Level], tables: &[Made]) -> String {
    let part = |(read, Level { level, .. }): (&ReadFactor<'_>, &Level)| match &read.factor.label {
        None => level.clone(),
        Some(label) => format!("{label}={level}"),
    };
    let parts: Vec<String> = factors.iter().zip(levels).map(part).collect();
    match (parts.is_empty(), tables.first()) {
        (true, Some(first)) => first.table.name.clone(),
        _ => parts.join(" · "),
    }
}

#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
    /// The last number that was put behind a name.
    numbers: BTreeMap<String, u32>,
}

impl Names {
    /// The name, with a number behind it where another variant has it already: texts of settings
    /// may contain what separates levels.
    fn unique(&mut self, name: String) -> String {
        if self.taken.insert(name.clone()) {
            return name;
        }
        let number = self.numbers.entry(name.clone()).or_insert(1);
        loop {
            *number += 1;
            let candidate = format!("{name} ({number})");
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}
