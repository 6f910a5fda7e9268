//! A declared workload from statements that a server has counted: `pg_stat_statements`, or the digests of
//! MySQL's performance schema. They have placeholders for values, whose meaning follows from their place: the
//! column that they are compared with, assigned or inserted into, LIMIT, and so on. Values are drawn from the
//! column's present ones. Statements with unexplained values are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::Dialect;
use crate::declared::sql::{Scanned, Token, continues_name, is_one_of, trimmed};

use super::control::{has_executable_comment, not_replayed, without_comments};
use super::statement::{
    Kind, VALUES_MOST, first_word, is_routine, names_secret, obstacle, scan, table_of,
};
use super::steps::after;
use super::values::{Budget, Seen, Shown, Stats, quoted};
use super::write::{begin, comment, copy, counted, design, lets, name_of, title, why_nothing};
use super::{CaptureError, Captured, Counts, Format, Reason, Request};

/// Most values that stand for the list of an IN.
const LIST_MOST: u64 = 100;
const ROWS_MOST: u64 = 100;
/// The width of a range of a statement that returns one row: it is not known.
const WIDTH: u64 = 99;
/// No blank may follow these functions' names (MySQL's manual, "Function Name Parsing and Resolution").
const WITHOUT_BLANK: &str = "\
    adddate bit_and bit_or bit_xor cast count curdate curtime date_add date_sub extract \
    group_concat json_arrayagg json_objectagg max mid min now position session_user std stddev \
    stddev_pop stddev_samp subdate substr substring sum sysdate system_user trim variance \
    var_pop var_samp";
/// What MySQL writes behind the first row of a digest's INSERT of several.
const SEVERAL_ROWS: &str = "/* , ... */";

/// A statement, with placeholders for its values, and how often it was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedStatement {
    /// Its text; empty if the server has not kept it.
    pub text: String,
    pub executions: u64,
    /// Rows that all executions together returned or changed.
    pub rows: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedColumn {
    pub table: String,
    pub name: String,
    pub is_number: bool,
    /// Whether new rows need values of their own: it is unique, or the last column of a unique index.
    pub is_unique: bool,
}

/// The columns of a database and what they hold, for the values that a server does not keep.
pub struct CountedColumns<'a> {
    /// All columns, of each table in their order.
    pub columns: Vec<CountedColumn>,
    /// Reads values of a column, the smallest and the largest among them, as texts.
    pub values: &'a mut dyn FnMut(&CountedColumn) -> Result<Vec<String>, String>,
}

/// Fails if no statement can be replayed, or a column's values cannot be read.
pub fn capture_counted(
    statements: &[CountedStatement],
    columns: &mut CountedColumns<'_>,
    (dialect, schema): (Dialect, &str),
    request: &Request,
) -> Result<Captured, CaptureError> {
    let format = match dialect {
        Dialect::PostgreSql => Format::PostgreSqlStatements,
        _ => Format::MySqlDigests,
    };
    let mut counts = Counts::default();
    let mut kept: Vec<Kept> = Vec::new();
    for statement in statements {
        let n = statement.executions;
        counts.read = counts.read.saturating_add(n);
        match understood(statement, &columns.columns, (dialect, request)) {
            Ok(Some(one)) => kept.push(one),
            Ok(None) => counts.control = counts.control.saturating_add(n),
            Err(reason) => counts.leave_out(reason, n),
        }
    }
    kept.sort_by_key(|one| std::cmp::Reverse(one.executions));
    for rare in kept.split_off(request.kinds.min(kept.len())) {
        counts.leave_out(Reason::Rare, rare.executions);
    }
    let all = kept.iter().fold(0_u64, |all, one| all.saturating_add(one.executions));
    counts.replayed = all;
    if kept.is_empty() {
        let parts = vec![format!("{} executions were counted", counts.read)];
        return Err(CaptureError::Nothing(why_nothing(parts, &counts)));
    }
    let mut out = String::new();
    head(&mut out, &counts, (format, request), schema);
    copy(&mut out, Some(schema), (format, request));
    let has_texts = request.has_texts;
    let mut values = Values { columns, known: BTreeMap::new(), has_texts, dialect, kept: &kept };
    for (idx, one) in kept.iter().enumerate() {
        one.write(&mut out, (idx, all), &mut values)?;
    }
    design(&mut out, "It is not known how many sessions there were, or how long they paused.", 16);
    let (schema, kinds) = (Some(schema.to_owned()), kept.len());
    Ok(Captured { study: out, format, schema, kinds, transactions: all, counts })
}

fn head(out: &mut String, counts: &Counts, (format, request): (Format, &Request), schema: &str) {
    comment(out, &format!("Captured from {}: {}.", request.source, format.text()));
    counted(out, "executions were counted since the statistics were last reset", counts);
    for line in [
        "What the server does not count, and this study therefore lacks:",
        "- transactions: each statement is its own transaction",
        "- values: they are drawn from those that are now in the columns, not from those that the \
         program chose",
        "- which values belong together, and what the program read with one statement to use in \
         the next",
        "- the tables and their rows: run it on a copy of the database, never on the one that is \
         in use",
    ] {
        comment(out, line);
    }
    title(out, "What do the statements counted in", schema);
}

#[derive(Clone, Debug, PartialEq)]
enum Meaning {
    /// A value of the column; of a new row, if the flag is set.
    Column(usize, bool),
    /// So much more than the value before it: the end of a range.
    Above(String, u64),
    Fixed(u64),
}

struct Kept {
    verb: String,
    table: Option<String>,
    executions: u64,
    rows: u64,
    sql: String,
    names: Vec<(String, Meaning)>,
}

/// The statement, unless it is left out; none if it begins or ends a transaction.
fn understood(
    statement: &CountedStatement,
    columns: &[CountedColumn],
    (dialect, request): (Dialect, &Request),
) -> Result<Option<Kept>, Reason> {
    let text = trimmed(&statement.text);
    if text.is_empty() {
        return Err(Reason::NoText);
    }
    if has_executable_comment(text, dialect) {
        return Err(Reason::Executable);
    }
    let text = without_comments(&scan(text, dialect)?, SEVERAL_ROWS);
    let scanned = scan(&text, dialect)?;
    if scanned.tokens.is_empty() {
        return Err(Reason::NotUnderstood);
    }
    match not_replayed(&scanned) {
        Some(Kind::Control(_)) => return Ok(None),
        Some(Kind::LeftOut(reason, _)) => return Err(reason),
        _ => {}
    }
    obstacle(&scanned, None)?;
    let verb = first_word(&scanned).to_owned();
    if is_routine(&verb) && !request.has_routines {
        return Err(Reason::Routine);
    }
    // What the server has not replaced may be anybody's data.
    if !request.has_texts && scanned.tokens.contains(&Token::Sign('\'')) {
        return Err(Reason::Literal);
    }
    let (tables, inserted) = (tables(&scanned), BTreeMap::new());
    let reader = Reader { statement, scanned: &scanned, columns, tables, inserted };
    let (sql, names) = reader.read()?;
    let CountedStatement { executions, rows, .. } = *statement;
    Ok(Some(Kept { verb, table: table_of(&scanned), executions, rows, sql, names }))
}

/// Words behind a table that are no other name of it.
const NO_ALIAS: &str = "\
    where set on using join inner left right full cross natural group order having limit offset \
    union except intersect values value select returning for lock force use ignore straight_join \
    partition fetch window default overriding tablesample lateral";

/// The tables of a statement, by the names that it has for them.
fn tables(scanned: &Scanned<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for idx in (0..scanned.tokens.len()).filter(|&idx| scanned.precedes_table(idx)) {
        // `IS DISTINCT FROM` compares.
        if scanned.word(idx) == "from" && scanned.word_before(idx) == "distinct" {
            continue;
        }
        let mut at = idx + 1;
        while let Some((name, after)) = scanned.name(at) {
            at = after + usize::from(scanned.word(after) == "as");
            found.insert(name.to_lowercase(), name.clone());
            if !is_one_of(scanned.word(at), NO_ALIAS)
                && let Some((alias, after)) = scanned.name(at)
            {
                found.insert(alias, name);
                at = after;
            }
            if !scanned.is_sign(at, ',') || scanned.word(idx) == "into" {
                break;
            }
            at += 1;
        }
    }
    found
}

/// Reads what the placeholders of a statement stand for.
struct Reader<'a> {
    statement: &'a CountedStatement,
    scanned: &'a Scanned<'a>,
    columns: &'a [CountedColumn],
    tables: BTreeMap<String, String>,
    /// The columns of placeholders of inserted rows, by the index of their token.
    inserted: BTreeMap<usize, usize>,
}

impl Reader<'_> {
    fn read(mut self) -> Result<(String, Vec<(String, Meaning)>), Reason> {
        let known: BTreeSet<String> =
            self.columns.iter().map(|column| column.table.to_lowercase()).collect();
        // Those of the catalog, of other databases, and those that are gone.
        if self.tables.values().any(|table| !known.contains(&table.to_lowercase())) {
            return Err(Reason::OtherSchema);
        }
        self.find_inserted();
        let (mut sql, mut names): (String, Vec<(String, Meaning)>) = (String::new(), Vec::new());
        let (mut end, mut idx, text) = (0, 0, self.scanned.text);
        while idx < self.scanned.tokens.len() {
            let span = self.scanned.spans[idx].clone();
            if !self.is_placeholder(idx) && !self.is_list(idx) {
                // A digest has a blank before each bracket, with which these are no functions.
                if self.scanned.is_mysql() && self.is_call(idx) {
                    sql.push_str(&text[end..self.scanned.spans[idx - 1].end]);
                    end = span.start;
                }
                idx += 1;
                continue;
            }
            sql.push_str(&text[end..span.start]);
            if self.is_list(idx) {
                sql.push_str(&self.list(idx, &mut names)?);
                end = self.scanned.spans[idx + 2].end;
                idx += 3;
                continue;
            }
            let name = self.name_of(idx, &names);
            if names.iter().all(|(known, _)| *known != name) {
                let meaning = self.meaning(idx, &names)?;
                names.push((name.clone(), meaning));
                // Each name is looked up among those before it.
                if names.len() > VALUES_MOST {
                    return Err(Reason::ManyValues);
                }
            }
            match names.iter().find(|(known, _)| *known == name) {
                Some((_, Meaning::Fixed(number))) => sql.push_str(&number.to_string()),
                _ => sql.push_str(&format!(":{name}")),
            }
            end = span.end;
            // The name of a value ends where something else begins.
            if text[end..].starts_with(continues_name) {
                sql.push(' ');
            }
            idx += 1;
        }
        sql.push_str(&text[end..]);
        // Removes the mark of several rows, written out by now; a blank keeps words apart.
        let sql = sql.replace(SEVERAL_ROWS, " ").trim_end().to_owned();
        names.retain(|(_, meaning)| !matches!(meaning, Meaning::Fixed(_)));
        Ok((sql, names))
    }

    /// Whether this is the bracket behind a function whose name must not be followed by a blank.
    fn is_call(&self, idx: usize) -> bool {
        self.scanned.is_sign(idx, '(') && is_one_of(self.scanned.word_before(idx), WITHOUT_BLANK)
    }

    fn is_placeholder(&self, idx: usize) -> bool {
        let is_number = |idx| self.scanned.at(idx)[1..].parse::<u32>().is_ok();
        match self.scanned.dialect {
            Dialect::PostgreSql => self.scanned.is_sign(idx, '$') && is_number(idx),
            _ => self.scanned.is_sign(idx, '?'),
        }
    }

    /// Whether `...` begins here, which stands for several values.
    fn is_list(&self, idx: usize) -> bool {
        self.scanned.is_mysql() && (0..3).all(|nth| self.scanned.is_sign(idx + nth, '.'))
    }

    fn name_of(&self, idx: usize, names: &[(String, Meaning)]) -> String {
        match self.scanned.dialect {
            Dialect::PostgreSql => format!("v{}", &self.scanned.at(idx)[1..]),
            _ => format!("v{}", names.len() + 1),
        }
    }

    /// The rows of an execution, on average.
    fn rows(&self) -> u64 {
        let executions = self.statement.executions.max(1);
        self.statement.rows.saturating_add(executions / 2) / executions
    }

    /// The columns that an INSERT names, or all of its table; and where its VALUES is.
    fn insert_columns(&self) -> Option<(Vec<usize>, usize)> {
        if !matches!(first_word(self.scanned), "insert" | "replace") {
            return None;
        }
        let (table, at) = self.scanned.inserted()?;
        let find = |from, is_it: &dyn Fn(usize) -> bool| {
            (from..self.scanned.tokens.len()).find(|&idx| is_it(idx))
        };
        let mut end = at;
        let columns: Vec<usize> = if self.scanned.is_sign(at, '(') {
            end = find(at, &|idx| self.scanned.is_sign(idx, ')'))?;
            let (_, names) = self.scanned.inserted_columns()?;
            names.iter().map(|name| self.column_of(&table, name)).collect::<Option<_>>()?
        } else {
            let is_its = |idx: &usize| self.columns[*idx].table.eq_ignore_ascii_case(&table);
            (0..self.columns.len()).filter(is_its).collect()
        };
        let is_values = |idx| matches!(self.scanned.word(idx), "values" | "value");
        Some((columns, find(end, &is_values)?))
    }

    /// Finds the columns of placeholders that stand alone at a place of an inserted row.
    fn find_inserted(&mut self) {
        let Some((columns, values)) = self.insert_columns() else { return };
        for (depth, nth, idx) in self.scanned.inserted_values(values) {
            if depth == 1 && self.is_placeholder(idx) {
                self.inserted.extend(columns.get(nth).map(|column| (idx, *column)));
            }
        }
    }

    /// The text for `...`, with the names in it.
    fn list(&self, idx: usize, names: &mut Vec<(String, Meaning)>) -> Result<String, Reason> {
        let is_in_brackets =
            idx > 0 && self.scanned.is_sign(idx - 1, '(') && self.scanned.is_sign(idx + 3, ')');
        let mut add = |meaning: Meaning| {
            let name = format!("v{}", names.len() + 1);
            let text = format!(":{name}");
            names.push((name, meaning));
            text
        };
        if is_in_brackets && self.scanned.word_before(idx - 1) == "in" {
            let column = idx.checked_sub(3).and_then(|idx| self.column_before(idx));
            let column = column.ok_or(Reason::UnknownValue)?;
            let n = self.rows().clamp(1, LIST_MOST);
            let list: Vec<String> = (0..n).map(|_| add(Meaning::Column(column, false))).collect();
            return Ok(list.join(", "));
        }
        if is_in_brackets && let Some((columns, at)) = self.insert_columns() {
            if at + 1 != idx - 1 || columns.is_empty() {
                return Err(Reason::UnknownValue);
            }
            let several =
                self.scanned.text[self.scanned.spans[idx + 2].end..].contains(SEVERAL_ROWS);
            let rows = if several { self.rows().clamp(1, ROWS_MOST) } else { 1 };
            let rows: Vec<String> = (0..rows)
                .map(|_| {
                    let row: Vec<String> =
                        columns.iter().map(|column| add(Meaning::Column(*column, true))).collect();
                    row.join(", ")
                })
                .collect();
            return Ok(rows.join("), ("));
        }
        // `LIMIT ?, ...`: rows to skip, and how many to return.
        let is_limit = idx >= 3
            && self.scanned.is_sign(idx - 1, ',')
            && self.scanned.word_before(idx - 2) == "limit";
        is_limit.then(|| self.rows().max(1).to_string()).ok_or(Reason::UnknownValue)
    }

    fn column_of(&self, table: &str, name: &str) -> Option<usize> {
        let is_it = |column: &CountedColumn| {
            column.table.eq_ignore_ascii_case(table) && column.name.eq_ignore_ascii_case(name)
        };
        self.columns.iter().position(is_it)
    }

    fn column_before(&self, idx: usize) -> Option<usize> {
        let name = |idx: usize| self.scanned.named(idx).map(str::to_lowercase);
        let idx = if self.scanned.word(idx) == "not" { idx.checked_sub(1)? } else { idx };
        let column = name(idx)?;
        if idx >= 2 && self.scanned.is_sign(idx - 1, '.') {
            let table = self.tables.get(&name(idx - 2)?)?;
            return self.column_of(table, &column);
        }
        let tables: BTreeSet<&String> = self.tables.values().collect();
        let mut found = tables.iter().filter_map(|table| self.column_of(table, &column));
        let one = found.next()?;
        found.next().is_none().then_some(one)
    }

    fn meaning(&self, idx: usize, names: &[(String, Meaning)]) -> Result<Meaning, Reason> {
        if let Some(column) = self.inserted.get(&idx) {
            return Ok(Meaning::Column(*column, true));
        }
        let at_value = |idx: Option<usize>| {
            let column = idx.and_then(|idx| self.column_before(idx));
            column.map(|column| Meaning::Column(column, false)).ok_or(Reason::UnknownValue)
        };
        match self.scanned.word_before(idx) {
            "limit" if self.scanned.is_sign(idx + 1, ',') => return Ok(Meaning::Fixed(0)),
            "limit" | "first" | "next" => return Ok(Meaning::Fixed(self.rows().max(1))),
            "offset" => return Ok(Meaning::Fixed(0)),
            "select" => return Ok(Meaning::Fixed(1)),
            "like" | "ilike" | "between" => return at_value(idx.checked_sub(2)),
            "and" if idx >= 3 && self.scanned.word_before(idx - 2) == "between" => {
                return self.end_of_range(idx, names).ok_or(Reason::UnknownValue);
            }
            _ => {}
        }
        if self.scanned.is_sign(idx.wrapping_sub(1), '(') {
            return match self.scanned.word_before(idx - 1) {
                "in" => at_value(idx.checked_sub(3)),
                "count" => Ok(Meaning::Fixed(1)),
                _ => Err(Reason::UnknownValue),
            };
        }
        let mut at = idx;
        // `IN ($1, $2, $3)`.
        if self.scanned.is_sign(idx.wrapping_sub(1), ',') {
            while at >= 2 && self.scanned.is_sign(at - 1, ',') && self.is_placeholder(at - 2) {
                at -= 2;
            }
            let is_it = at >= 3
                && self.scanned.is_sign(at - 1, '(')
                && self.scanned.word_before(at - 1) == "in";
            return at_value(is_it.then(|| at - 3));
        }
        // `n = n + ?` and `n - ?`: by one.
        let is_added = idx >= 2 && self.scanned.is_any_sign(idx - 1, "+-");
        if is_added && self.column_before(idx - 2).is_some() {
            return Ok(Meaning::Fixed(1));
        }
        while at > 0 && self.scanned.is_any_sign(at - 1, "=<>!") {
            at -= 1;
        }
        // What follows must not make it part of a larger expression.
        let is_whole = !self.scanned.is_any_sign(idx + 1, "+-*/%|:[");
        at_value(at.checked_sub(1).filter(|_| at < idx && is_whole))
    }

    fn end_of_range(&self, idx: usize, names: &[(String, Meaning)]) -> Option<Meaning> {
        let begin = match self.scanned.dialect {
            _ if !self.is_placeholder(idx - 2) => return None,
            Dialect::PostgreSql => self.name_of(idx - 2, names),
            _ => names.last()?.0.clone(),
        };
        let (_, meaning) = names.iter().find(|(name, _)| *name == begin)?;
        let Meaning::Column(column, _) = *meaning else { return None };
        if !self.columns[column].is_number {
            return Some(Meaning::Column(column, false));
        }
        let rows = self.rows();
        Some(Meaning::Above(begin, if rows > 1 { rows - 1 } else { WIDTH }))
    }
}

/// What columns hold, read when it is first needed.
struct Values<'a, 'b, 'k> {
    columns: &'a mut CountedColumns<'b>,
    known: BTreeMap<usize, Stats>,
    has_texts: bool,
    dialect: Dialect,
    /// All statements: those that insert into one column share its numbers.
    kept: &'k [Kept],
}

impl Values<'_, '_, '_> {
    fn of(&mut self, idx: usize) -> Result<(&CountedColumn, &Stats), CaptureError> {
        if !self.known.contains_key(&idx) {
            let column = &self.columns.columns[idx];
            let texts = (self.columns.values)(column).map_err(CaptureError::Values)?;
            let (mut stats, mut budget) = (Stats::default(), Budget::default());
            let is_shown = self.has_texts && !names_secret(&column.name);
            let shown = if is_shown { Shown::All } else { Shown::None };
            for text in texts {
                let as_text = || Some(Seen::text(&text, shown));
                let seen = if column.is_number { Seen::number(&text) } else { as_text() };
                seen.iter().for_each(|seen| stats.add(seen, &mut budget));
            }
            self.known.insert(idx, stats);
        }
        Ok((&self.columns.columns[idx], &self.known[&idx]))
    }
}

impl Kept {
    fn write(
        &self,
        out: &mut String,
        (idx, all): (usize, u64),
        values: &mut Values<'_, '_, '_>,
    ) -> Result<(), CaptureError> {
        let rows = self.rows as f64 / self.executions.max(1) as f64;
        let name = name_of(idx, &self.verb, self.table.as_deref());
        let path = format!("workload.captured.transaction.{name}");
        let each = format!("; {rows:.1} rows each");
        begin(out, &path, ("executions", &each), (self.executions, all));
        if !self.names.is_empty() {
            let _ = writeln!(out, "\n[{path}.let]");
        }
        // The first number of the new rows of this statement, by column, and how many of them have been given.
        let mut numbered: BTreeMap<usize, (String, u64)> = BTreeMap::new();
        for (name, meaning) in &self.names {
            match meaning {
                Meaning::Fixed(_) => {}
                Meaning::Above(begin, above) => {
                    let _ = writeln!(out, "{name} = {{ expression = \":{begin} + {above}\" }}");
                }
                Meaning::Column(column, is_new) => {
                    value(out, name, (*column, *is_new), values, &mut numbered)?;
                }
            }
        }
        let _ = writeln!(out, "\n[[{path}.steps]]\nsql = {}", quoted(&self.sql));
        Ok(())
    }
}

/// Writes the generator of a value of a column.
fn value(
    out: &mut String,
    name: &str,
    (idx, is_new): (usize, bool),
    values: &mut Values<'_, '_, '_>,
    numbered: &mut BTreeMap<usize, (String, u64)>,
) -> Result<(), CaptureError> {
    let (kept, dialect) = (values.kept, values.dialect);
    let (column, stats) = values.of(idx)?;
    let table_column = format!("{}.{}", column.table, column.name);
    if stats.n == 0 {
        comment(out, &format!("{table_column}: no values are known"));
        let empty = if column.is_number { "{ uniform = [1, 1000] }" } else { "{ letters = 10 }" };
        let _ = writeln!(out, "{name} = {empty}");
        return Ok(());
    }
    let highest = stats.highest_whole().filter(|one| *one < i64::MAX / 2);
    let Some(highest) = highest.filter(|_| is_new && column.is_unique) else {
        let (generators, words) = stats.generators(name, false, !column.is_number);
        lets(out, &generators, &format!("{table_column}: {words}"));
        return Ok(());
    };
    if let Some((first, given)) = numbered.get_mut(&idx) {
        let _ = writeln!(out, "{name} = {{ expression = \":{first} + {given}\" }}");
        *given += 1;
        return Ok(());
    }
    comment(out, &format!("{table_column}: numbers of new rows"));
    let is_it = |(_, meaning): &&(String, Meaning)| *meaning == Meaning::Column(idx, true);
    let rows = |one: &Kept| one.names.iter().filter(is_it).count();
    let rows = kept.iter().map(rows).max().unwrap_or(0);
    let step = if rows > 1 { format!(", step = {rows}") } else { String::new() };
    let (first, after) = (highest + 1, after(dialect, &column.table, &column.name));
    let _ = writeln!(out, "{name} = {{ sequence = {first}{step}{after} }}");
    numbered.insert(idx, (name.to_owned(), 1));
    Ok(())
}
