//! Reads and checks a declaration: tables with columns, transactions with steps. Finds all problems
//! at once, with their places.

use std::collections::BTreeMap;

use dyno_model::declared::DIALECTS;
use dyno_model::{DefinitionProblem, Tree, declared};
use dyno_pgbench::Names;

use crate::prelude::*;

use super::Files;
use super::generator::Generator;
use super::problems::{
    Problems, count, each, find, list, only, only_names, owned, read, switch, table, texts,
};
use super::read_generator::{Known, Numbering, generator};
use super::transaction::{self, Transaction};

#[derive(Clone, Debug, Default)]
pub(super) struct Definition {
    pub(super) tables: Vec<DeclaredTable>,
    pub(super) transactions: Vec<Transaction>,
    pub(super) names: Names,
    pub(super) numbering: Numbering,
}

#[derive(Clone, Debug)]
pub(super) struct DeclaredTable {
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) columns: Vec<Column>,
    /// Indexes: whether each is unique, and its columns.
    pub(super) indexes: Vec<(bool, Vec<String>)>,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: PerDialect,
    pub(super) is_key: bool,
    /// Whether the server gives a value to rows that come without.
    pub(super) is_identity: bool,
    /// What fills it; none leaves it to the server.
    pub(super) generator: Option<Generator>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PerDialect([Option<String>; 3]);

impl PerDialect {
    pub(super) fn of(&self, dialect: Dialect) -> Option<&str> {
        self.0[place(dialect)].as_deref()
    }
}

/// The place of a dialect in [`Dialect::WITH_TRANSACTIONS`].
pub(super) fn place(dialect: Dialect) -> usize {
    match dialect {
        Dialect::MySql => 0,
        Dialect::PostgreSql => 1,
        // What is declared is refused on ClickHouse.
        Dialect::Sqlite | Dialect::ClickHouse => 2,
    }
}

/// Longest name of a table that no server truncates.
const TABLE_NAME_MOST: usize = 63;

/// Rows of a table that are made to see whether its expressions have values …
const ROWS_TRIED: u64 = 100;
/// … and bytes of text in the rows of all tables.
const BYTES_TRIED: u64 = 64 << 20;
/// Most bytes of text in a row, and in the values of a transaction: servers take no longer row as they are set up.
pub(super) const TEXTS_MOST: usize = 64 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// The tables, as text; empty if there are none.
    pub(super) tables: &'a str,
    pub(super) transactions: &'a str,
    /// The number that the rows of the tables are multiplied by.
    pub(super) scale: u64,
    pub(super) files: &'a Files,
}

impl Definition {
    /// Fails with all problems.
    pub(super) fn read(source: Source<'_>) -> Result<Definition, Vec<DefinitionProblem>> {
        let mut problems = Problems::default();
        let mut definition = Definition::default();
        if !source.tables.is_empty() {
            problems.within("table", |problems| definition.read_tables(problems, source));
        }
        problems.within("transaction", |problems| definition.read_transactions(problems, source));
        if problems.found.is_empty() {
            definition.try_rows(&mut problems);
        }
        if problems.found.is_empty() { Ok(definition) } else { Err(problems.found) }
    }

    fn read_tables(&mut self, problems: &mut Problems, source: Source<'_>) {
        let Some(tree) = parsed(problems, source.tables) else { return };
        let Some(entries) = table(problems, &tree) else { return };
        // Bounds may refer to a table that stands further down.
        let mut rows = BTreeMap::new();
        for (name, declared) in entries {
            let n = problems.within(name.clone(), |problems| {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if name.is_empty() || name.len() > TABLE_NAME_MOST || !name.chars().all(is_part) {
                    let help = "use ASCII letters, digits and `_`, at most 63 characters";
                    problems.add("this cannot be the name of a table", help);
                }
                rows_of(problems, declared, source.scale)
            });
            rows.insert(name.clone(), n.unwrap_or(1));
        }
        for (name, declared) in entries {
            let read = problems.within(name.clone(), |problems| {
                self.read_table(problems, (name, declared), (&rows, source.files))
            });
            self.tables.extend(read);
        }
        let mut lower: Vec<String> =
            self.tables.iter().map(|table| table.name.to_lowercase()).collect();
        lower.sort();
        if let Some(pair) = lower.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("the names of two tables differ only in case: `{}`", pair[0]);
            problems.add(message, "databases do not distinguish them");
        }
    }

    fn read_table(
        &mut self,
        problems: &mut Problems,
        (name, tree): (&str, &Tree),
        (rows, files): (&BTreeMap<String, u64>, &Files),
    ) -> Option<DeclaredTable> {
        let entries = table(problems, tree)?;
        only(problems, entries, declared::TABLE);
        let Some(columns) = find(entries, "columns") else {
            let help = "add `columns = { id = { type = \"bigint\" } }`";
            return problems.refuse("the table has no columns", help);
        };
        let columns = problems
            .within("columns", |problems| self.read_columns(problems, columns, (rows, files)))?;
        let mut indexes = Vec::new();
        for (key, is_unique) in [("unique", true), ("indexes", false)] {
            let read = read(problems, entries, key, |problems, tree| {
                let items = list(problems, tree)?;
                Some(each(problems, items, |problems, item| index(problems, item, &columns)))
            });
            let read = read.into_iter().flatten().flatten();
            indexes.extend(read.map(|columns| (is_unique, columns)));
        }
        Some(DeclaredTable { name: name.to_owned(), rows: rows[name], columns, indexes })
    }

    fn read_columns(
        &mut self,
        problems: &mut Problems,
        tree: &Tree,
        (rows, files): (&BTreeMap<String, u64>, &Files),
    ) -> Option<Vec<Column>> {
        let entries = table(problems, tree)?;
        if entries.is_empty() {
            problems.add("the table has no columns", "");
        }
        let mut columns: Vec<Column> = Vec::new();
        let mut values = BTreeMap::new();
        let mut rooms = BTreeMap::new();
        for (idx, (name, tree)) in entries.iter().enumerate() {
            let mut known = Known {
                values: &values,
                what: "columns above this one that have a value",
                rows,
                files,
                names: &mut self.names,
                numbering: None,
                used: &mut Vec::new(),
                rooms: &rooms,
            };
            let column = problems
                .within(name.clone(), |problems| column(problems, (name, tree), &mut known));
            if column.as_ref().is_none_or(|column| column.generator.is_some()) {
                values.insert(name.clone(), idx);
            }
            let generator = column.as_ref().and_then(|column| column.generator.as_ref());
            rooms.extend(generator.map(|generator| (idx, generator.kind.room())));
            columns.extend(column);
        }
        if rooms.values().sum::<usize>() > TEXTS_MOST {
            let message = format!("a row may have more than {} MiB of text", TEXTS_MOST >> 20);
            problems.add(message, "");
        }
        let n_identities = columns.iter().filter(|column| column.is_identity).count();
        let n_keys = columns.iter().filter(|column| column.is_key).count();
        let lone_key = |column: &Column| column.is_identity && !(column.is_key && n_keys == 1);
        if n_identities > 1 || columns.iter().any(lone_key) {
            let why = "only one column can be `identity`, and it must be the entire primary key";
            problems.add(why, "give `key = true` to that column and to no other");
        }
        (columns.len() == entries.len()).then_some(columns)
    }

    fn read_transactions(&mut self, problems: &mut Problems, source: Source<'_>) {
        let Some(tree) = parsed(problems, source.transactions) else { return };
        let Some(entries) = table(problems, &tree) else { return };
        if entries.is_empty() {
            problems.add("the workload has no transactions", "");
        }
        for (name, tree) in entries {
            let read = problems.within(name.clone(), |problems| {
                if name.trim().is_empty() || name.chars().any(char::is_control) {
                    problems.add("this cannot be the name of a transaction", "");
                }
                transaction::read(problems, (name, tree), self, source.files)
            });
            self.transactions.extend(read);
        }
        let is_whole = self.transactions.len() == entries.len();
        if is_whole && self.transactions.iter().all(|one| one.weight == 0) && !entries.is_empty() {
            problems.add("all transactions have weight 0", "give at least one a weight");
        }
    }

    /// The table of this name, as a server without regard to capitals knows it.
    pub(super) fn find_table(&self, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// Makes some rows of each table: an expression that has no value is found before the run.
    fn try_rows(&self, problems: &mut Problems) {
        let mut bytes = BYTES_TRIED;
        for (idx, table) in self.tables.iter().enumerate() {
            let generators = table.columns.iter().filter_map(|column| column.generator.as_ref());
            let room = generators.map(|one| one.kind.room() as u64).sum::<u64>().max(1);
            let n_rows = table.rows.min(ROWS_TRIED).min(bytes / room);
            bytes -= n_rows * room;
            let tried = (0..n_rows)
                .find_map(|row| super::schema::first_failure(self, idx, row).map(|why| (row, why)));
            if let Some((row, (column, why))) = tried {
                let message = format!("it has no value in row {}: {why}", row + 1);
                problems.path_of(&["table", &table.name, "columns", &column], |problems| {
                    problems.add(message, "guard it with CASE WHEN");
                });
            }
        }
    }
}

fn parsed(problems: &mut Problems, text: &str) -> Option<Tree> {
    Tree::from_text(text).map_err(|why| problems.add(why, "")).ok()
}

fn rows_of(problems: &mut Problems, tree: &Tree, scale: u64) -> Option<u64> {
    let Tree::Table(entries) = tree else { return None };
    let Some(rows) = find(entries, "rows") else {
        return problems
            .refuse("the table does not say how many rows it has", "add `rows = 100000`, or 0");
    };
    let is_scaled = read(problems, entries, "scaled", switch).unwrap_or(true);
    let rows = problems.within("rows", |problems| count(problems, rows))?;
    let n = if is_scaled { rows.checked_mul(scale) } else { Some(rows) };
    let n = n.filter(|n| i64::try_from(*n).is_ok());
    if n.is_none() {
        problems.add("with this `scale` there are too many rows", "");
    }
    n
}

fn column(
    problems: &mut Problems,
    (name, tree): (&str, &Tree),
    known: &mut Known<'_>,
) -> Option<Column> {
    if name.trim().is_empty() || name.len() > 63 || name.chars().any(char::is_control) {
        problems.add("this cannot be the name of a column", "use at most 63 characters");
    }
    let entries = table(problems, tree)?;
    only(problems, entries, declared::COLUMN);
    let Some(kind) = find(entries, "type") else {
        let help = "add one of the database's types, such as `type = \"int\"`";
        return problems.refuse("the column has no type", help);
    };
    let kind = problems.within("type", |problems| per_dialect(problems, kind))?;
    let is_key = read(problems, entries, "key", switch).unwrap_or(false);
    let is_identity = read(problems, entries, "identity", switch).unwrap_or(false);
    let generator =
        read(problems, entries, "value", |problems, tree| generator(problems, tree, known));
    if find(entries, "value").is_some() && generator.is_none() {
        return None;
    }
    if is_key && generator.is_none() && !is_identity {
        let help = "such as `value = { sequence = 1 }`";
        problems.add("a column of the primary key needs a `value`", help);
    }
    Some(Column { name: name.to_owned(), kind, is_key, is_identity, generator })
}

/// A text, or a table with one for each dialect.
pub(super) fn per_dialect(problems: &mut Problems, tree: &Tree) -> Option<PerDialect> {
    let mut texts = [None, None, None];
    match tree {
        Tree::Text(text) => texts = std::array::from_fn(|_| Some(text.clone())),
        Tree::Table(entries) if !entries.is_empty() => {
            only_names(problems, entries, &DIALECTS);
            for (dialect, place) in DIALECTS.iter().zip(&mut texts) {
                *place = read(problems, entries, dialect, owned);
            }
        }
        other => {
            return problems
                .wrong_kind("a string, or one for each of mysql, postgresql and sqlite", other);
        }
    }
    if texts.iter().all(Option::is_none) {
        // What is wrong with those that are given has been reported.
        return None;
    }
    if texts.iter().flatten().any(|text| text.trim().is_empty()) {
        return problems.refuse("the string is empty", "");
    }
    Some(PerDialect(texts))
}

fn index(problems: &mut Problems, tree: &Tree, columns: &[Column]) -> Option<Vec<String>> {
    let names = texts(problems, tree)?;
    let is_known = |name: &&String| columns.iter().any(|column| column.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        problems.add(format!("the table has no column `{unknown}`"), "");
    }
    if names.is_empty() {
        problems.add("an index has at least one column", "");
    }
    Some(names)
}
