//! The batches: read and locked, inserted, compared, deleted.

use std::collections::{HashMap, HashSet};

use dyno_workload::{Dialect, TextRows};

use super::note::Note;
use super::sql;
use super::table::{self, Route};
use super::value::{self, Held};
use super::{ArchiveError, ArchiveOptions, ArchiveSide, Archived, Result, refuse};

/// Bytes of the longest list of keys or rows in a statement; ClickHouse parses statements up to 256 KiB.
const KEYS_MAX: usize = 96 * 1024;
const ROWS_MAX: usize = 1 << 20;

/// How often it is looked whether ClickHouse has removed rows, and the seconds between: it does so in the background.
const REMOVED_LOOKS: usize = 600;
const REMOVED_PAUSE: &str = "SELECT sleep(0.1)";

/// How often a batch is begun again after a deadlock before the run ends.
const REPEATS_MAX: u64 = 20;

/// A row on its way, in the one text of each value.
type Row = Vec<Option<String>>;

/// Archives rows until none are left, the limit is reached, or `goes_on`, which is called after each batch,
/// returns false. `notes` is another connection to the source. Fails if a server refuses something, a table
/// or value cannot be carried over exactly, or rows of the same key differ. A failed batch leaves the source
/// unchanged.
pub fn archive_between(
    source: &mut ArchiveSide,
    to: &mut ArchiveSide,
    notes: &mut ArchiveSide,
    options: &ArchiveOptions,
    goes_on: &mut dyn FnMut(&Archived) -> bool,
) -> Result<Archived> {
    if options.condition.trim().is_empty() {
        return refuse("there is no condition that selects the old rows");
    }
    begin_sessions(source, to, notes, &options.table)?;
    let found = table::of_source(source, options)?;
    let route = table::route(to, options, found)?;
    table::check_idle(to, &options.table, &route.columns)?;
    let note = Note::open(notes, options)?;
    let mut batches = Batches { source, to, notes, options, route: &route, note: &note };
    let archived = batches.run(goes_on);
    if archived.is_err() {
        batches.roll_back();
    }
    // If it can be put in order now, the next run need not.
    if archived.is_ok() || batches.undo().is_ok() {
        note.close(batches.notes);
    }
    archived
}

/// Prepares the sessions. Ensures that no other run moves these rows, and that the destination is not the
/// source: all rows would be found there, and then deleted.
fn begin_sessions(
    source: &mut ArchiveSide,
    to: &mut ArchiveSide,
    notes: &mut ArchiveSide,
    table: &str,
) -> Result<()> {
    for side in [&mut *source, &mut *to, notes] {
        for statement in sql::session(side.dialect) {
            side.rows("prepare the session", statement)?;
        }
    }
    if !is_locked(source, table)? {
        return refuse(format!("another run is archiving `{table}` from the source"));
    }
    if !is_locked(to, table)? {
        return refuse(format!(
            "the destination's `{table}` is the source table itself, or another run is archiving \
             from it"
        ));
    }
    Ok(())
}

fn is_locked(side: &mut ArchiveSide, table: &str) -> Result<bool> {
    let Some(statement) = sql::lock(side.dialect, table) else { return Ok(true) };
    match side.cell("lock the table's name", &statement) {
        Ok(cell) => Ok(cell.as_deref() == Some("1")),
        // The lock was not granted in time.
        Err(error) if error.may_repeat => Ok(false),
        Err(error) => Err(error),
    }
}

struct Batches<'a> {
    source: &'a mut ArchiveSide,
    to: &'a mut ArchiveSide,
    notes: &'a mut ArchiveSide,
    options: &'a ArchiveOptions,
    route: &'a Route,
    note: &'a Note,
}

impl Batches<'_> {
    fn run(&mut self, goes_on: &mut dyn FnMut(&Archived) -> bool) -> Result<Archived> {
        let mut done = Archived { found: self.undo()?, ..Archived::default() };
        let mut n_repeats = 0;
        loop {
            let left = self.options.limit.map_or(u64::MAX, |limit| limit.saturating_sub(done.rows));
            if left == 0 {
                return Ok(done);
            }
            match self.batch(self.options.batch.min(left)) {
                Ok((0, _)) if self.is_rest_empty()? => return Ok(done),
                Ok((0, _)) => {}
                Ok((rows, n_found)) => {
                    done.rows += rows;
                    done.found += n_found;
                    done.batches += 1;
                    n_repeats = 0;
                }
                Err(error) => {
                    self.roll_back();
                    if !error.may_repeat || n_repeats == REPEATS_MAX {
                        return Err(error);
                    }
                    // Rows that it has locked may be changed before they are locked again.
                    self.undo()?;
                    n_repeats += 1;
                    done.repeated += 1;
                }
            }
            if !goes_on(&done) {
                return Ok(done);
            }
        }
    }

    /// Removes an unfinished batch's rows from the destination, if the source still has them: they will be written
    /// again as they are now. Returns their number.
    fn undo(&mut self) -> Result<u64> {
        let (idx, n_columns) = (self.route.key, self.route.columns.len());
        let Some(kind) = self.route.columns[idx].kind else { return Ok(0) };
        let keys = self.note.read(self.source, kind)?;
        if keys.is_empty() {
            return Ok(0);
        }
        let mut noted = vec![vec![None; n_columns]; keys.len()];
        noted.iter_mut().zip(keys).for_each(|(row, key)| row[idx] = Some(key));
        self.source.rows("begin", "BEGIN")?;
        let lock = " FOR UPDATE";
        let kept = self.of_these(&noted.iter().collect::<Vec<_>>(), (true, lock))?;
        let mut stored = self.of_these(&kept.iter().collect::<Vec<_>>(), (false, ""))?;
        // Keys that differ may be the same to the destination: then that row is another one.
        let kept: HashSet<&str> = kept.iter().map(|row| self.key_of(row)).collect();
        stored.retain(|row| kept.contains(self.key_of(row)));
        if !stored.is_empty() {
            self.remove_stored(&stored.iter().collect::<Vec<_>>())?;
        }
        self.source.rows("empty the note of a batch", &self.note.clear())?;
        self.source.rows("commit", "COMMIT")?;
        Ok(stored.len() as u64)
    }

    fn of_these(&mut self, rows: &[&Row], (is_source, lock): (bool, &str)) -> Result<Vec<Row>> {
        let (idx, columns) = (self.route.key, &self.route.columns);
        let Some(kind) = columns[idx].kind else { return Ok(Vec::new()) };
        let dialect = if is_source { self.source.dialect } else { self.to.dialect };
        let lists = self.keys(dialect, rows)?;
        let side = if is_source { &mut *self.source } else { &mut *self.to };
        let key = sql::quoted(dialect, &columns[idx].name);
        let read = value::expression(dialect, &columns[idx].name, kind);
        let table = sql::rows_of(dialect, &self.options.table);
        let mut found = Vec::new();
        for keys in lists {
            let select = format!("SELECT {read} FROM {table} WHERE {key} IN ({keys}){lock}");
            for cells in side.rows("look for the rows of a batch that has not ended", &select)? {
                let text = cells.into_iter().next().flatten().unwrap_or_default();
                let mut row = vec![None; columns.len()];
                row[idx] = Some(value::canonical(kind, &text).map_err(ArchiveError::new)?);
                found.push(row);
            }
        }
        Ok(found)
    }

    fn remove_stored(&mut self, rows: &[&Row]) -> Result<()> {
        let dialect = self.to.dialect;
        let key = &self.route.columns[self.route.key].name;
        let doing = "remove the rows of a batch that has not ended from the destination";
        for keys in self.keys(dialect, rows)? {
            self.to.rows(doing, &sql::remove(dialect, &self.options.table, key, &keys))?;
        }
        for _ in 0..REMOVED_LOOKS {
            if self.of_these(rows, (false, ""))?.is_empty() {
                return Ok(());
            }
            if !dialect.has_transactions() {
                self.to.rows(doing, REMOVED_PAUSE)?;
            }
        }
        refuse(format!("cannot {doing}: they are still there"))
    }

    /// Moves up to `n_rows` rows. Returns how many, and how many of them were at the destination before.
    fn batch(&mut self, n_rows: u64) -> Result<(u64, u64)> {
        self.source.rows("begin", "BEGIN")?;
        let rows = self.rows_of_source(n_rows)?;
        if rows.is_empty() {
            self.source.rows("end the transaction", "COMMIT")?;
            return Ok((0, 0));
        }
        let has_transactions = self.to.dialect.has_transactions();
        if has_transactions {
            self.to.rows("begin", "BEGIN")?;
        }
        let all: Vec<&Row> = rows.iter().collect();
        let there = self.rows_there(&all)?;
        let missing: Vec<&Row> =
            rows.iter().filter(|row| !there.contains_key(self.key_of(row))).collect();
        let keys: Vec<&str> = missing.iter().map(|row| self.key_of(row)).collect();
        if !keys.is_empty() {
            self.note.write(self.notes, &keys)?;
        }
        self.insert(&missing)?;
        let stored = self.rows_there(&missing)?;
        for row in &rows {
            let key = self.key_of(row);
            self.check_same(row, there.get(key).or_else(|| stored.get(key)))?;
        }
        if has_transactions {
            self.to.rows("commit", "COMMIT")?;
        }
        self.delete(&rows)?;
        self.source.rows("empty the note of a batch", &self.note.clear())?;
        self.source.rows("commit", "COMMIT")?;
        Ok((rows.len() as u64, there.len() as u64))
    }

    /// Another session's changes can make a batch end early, or without rows.
    fn is_rest_empty(&mut self) -> Result<bool> {
        let rows = sql::rows_of(self.source.dialect, &self.options.table);
        let condition = &self.options.condition;
        let left = format!("SELECT 1 FROM {rows} WHERE ({condition}\n) LIMIT 1");
        Ok(self.source.cell("look for rows", &left)?.is_none())
    }

    /// After an error: a connection that is lost is rolled back by its server.
    fn roll_back(&mut self) {
        let _ = self.source.send("ROLLBACK");
        let _ = self.notes.send("ROLLBACK");
        if self.to.dialect.has_transactions() {
            let _ = self.to.send("ROLLBACK");
        }
    }

    fn key_of<'r>(&self, row: &'r Row) -> &'r str {
        row[self.route.key].as_deref().unwrap_or_default()
    }

    fn rows_of_source(&mut self, n_rows: u64) -> Result<Vec<Row>> {
        let columns = &self.route.columns;
        let key = &columns[self.route.key].name;
        let condition = &self.options.condition;
        let what = (key.as_str(), condition.as_str(), n_rows);
        let statement = sql::batch(self.source.dialect, &self.options.table, columns, what);
        let rows = self.source.rows("read rows from the source", &statement)?;
        let is_checked = self.to.dialect == Dialect::ClickHouse;
        let mut read = Vec::with_capacity(rows.len());
        for row in self.canonical(rows, "source", |_| false)? {
            for (idx, column) in columns.iter().enumerate() {
                if let (true, Held::Own, Some(kind), Some(text)) =
                    (is_checked, self.route.held[idx], column.kind, row[idx].as_deref())
                {
                    value::fits_clickhouse(kind, text)
                        .map_err(|why| self.about(&row, &column.name, "source", &why))?;
                }
            }
            read.push(row);
        }
        Ok(read)
    }

    /// Rows as their server gave them, each value in its one text; in columns that `is_raw`, as it is.
    fn canonical(
        &self,
        rows: TextRows,
        place: &str,
        is_raw: impl Fn(usize) -> bool,
    ) -> Result<Vec<Row>> {
        let columns = &self.route.columns;
        let mut read = Vec::with_capacity(rows.len());
        for mut row in rows {
            if row.len() != columns.len() + 1 {
                return refuse(format!(
                    "the {place} sent a row with an unexpected number of columns"
                ));
            }
            row.truncate(columns.len());
            // The key first: messages name the row by it.
            let others = (0..columns.len()).filter(|&idx| idx != self.route.key);
            for idx in std::iter::once(self.route.key).chain(others) {
                if let (false, Some(kind), Some(text)) =
                    (is_raw(idx), columns[idx].kind, row[idx].as_deref())
                {
                    let text = value::canonical(kind, text);
                    let text =
                        text.map_err(|why| self.about(&row, &columns[idx].name, place, &why))?;
                    row[idx] = Some(text);
                }
            }
            read.push(row);
        }
        Ok(read)
    }

    fn about(&self, row: &Row, column: &str, place: &str, why: &str) -> ArchiveError {
        let key = &self.route.columns[self.route.key];
        let shown = key
            .kind
            .map_or_else(String::new, |kind| value::shown(kind, row[self.route.key].as_deref()));
        ArchiveError::new(format!(
            "the row with {} {shown} at the {place}: `{column}` {why}; its batch was not archived",
            key.name
        ))
    }

    /// Lists of literals, each at most `max` bytes long.
    fn lists(
        dialect: Dialect,
        max: usize,
        rows: &[&Row],
        mut write: impl FnMut(Dialect, &Row, &mut String) -> Result<()>,
    ) -> Result<Vec<String>> {
        let mut lists: Vec<String> = Vec::new();
        let mut list = String::new();
        for row in rows {
            if list.len() > max {
                lists.push(std::mem::take(&mut list));
            }
            if !list.is_empty() {
                list.push(',');
            }
            write(dialect, row, &mut list)?;
        }
        lists.extend((!list.is_empty()).then_some(list));
        Ok(lists)
    }

    fn keys(&self, dialect: Dialect, rows: &[&Row]) -> Result<Vec<String>> {
        let idx = self.route.key;
        let Some(kind) = self.route.columns[idx].kind else { return Ok(Vec::new()) };
        Self::lists(dialect, KEYS_MAX, rows, |dialect, row, out| {
            value::write_literal(dialect, kind, row[idx].as_deref(), out)
                .map_err(|why| self.about(row, &self.route.columns[idx].name, "source", &why))
        })
    }

    fn rows_there(&mut self, rows: &[&Row]) -> Result<HashMap<String, Row>> {
        let dialect = self.to.dialect;
        let columns = &self.route.columns;
        let held = &self.route.held;
        let is_text = |idx: usize| held[idx] == Held::AsText;
        let read =
            sql::reading(dialect, columns, |idx| columns[idx].kind.filter(|_| !is_text(idx)));
        let key = sql::quoted(dialect, &columns[self.route.key].name);
        let table = sql::rows_of(dialect, &self.options.table);
        let mut there = HashMap::new();
        for keys in self.keys(dialect, rows)? {
            let statement = format!("SELECT {read} FROM {table} WHERE {key} IN ({keys})");
            let found = self.to.rows("read rows from the destination", &statement)?;
            for row in self.canonical(found, "destination", is_text)? {
                let key = self.key_of(&row).to_owned();
                if let Some(first) = there.insert(key, row) {
                    let column = columns[self.route.key].name.clone();
                    let why = "exists more than once";
                    return Err(self.about(&first, &column, "destination", why));
                }
            }
        }
        Ok(there)
    }

    fn insert(&mut self, rows: &[&Row]) -> Result<()> {
        let dialect = self.to.dialect;
        let columns = &self.route.columns;
        let begins = sql::insert(dialect, &self.options.table, columns);
        let values = Self::lists(dialect, ROWS_MAX, rows, |dialect, row, out| {
            out.push('(');
            let stored = columns.iter().enumerate().filter(|(_, column)| !column.is_generated);
            for (nth, (idx, column)) in stored.enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                let Some(kind) = column.kind else { continue };
                value::write_literal(dialect, kind, row[idx].as_deref(), out)
                    .map_err(|why| self.about(row, &column.name, "source", &why))?;
            }
            out.push(')');
            Ok(())
        })?;
        for values in values {
            self.to.rows("insert rows", &format!("{begins}{values}"))?;
        }
        Ok(())
    }

    fn check_same(&self, row: &Row, there: Option<&Row>) -> Result<()> {
        let columns = &self.route.columns;
        let Some(there) = there else {
            let column = &columns[self.route.key].name;
            return Err(self.about(row, column, "source", "is not found at the destination"));
        };
        let Some(idx) = (0..columns.len()).find(|&idx| row[idx] != there[idx]) else {
            return Ok(());
        };
        let kind = columns[idx].kind.unwrap_or(value::Kind::Text);
        let why = format!(
            "is {}, and the destination has {}",
            value::shown(kind, row[idx].as_deref()),
            value::shown(kind, there[idx].as_deref())
        );
        Err(self.about(row, &columns[idx].name, "source", &why))
    }

    fn delete(&mut self, rows: &[Row]) -> Result<()> {
        let all: Vec<&Row> = rows.iter().collect();
        let dialect = self.source.dialect;
        let key = self.route.columns[self.route.key].name.clone();
        let mut n_deleted = 0;
        for keys in self.keys(dialect, &all)? {
            let mut count = None;
            for statement in sql::delete(dialect, &self.options.table, &key, &keys) {
                count = self.source.cell("delete rows from the source", &statement)?;
            }
            n_deleted += count.and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        }
        if n_deleted == rows.len() {
            return Ok(());
        }
        refuse(format!(
            "of {} rows that the destination has, only {n_deleted} could be deleted from the \
             source: does a trigger or a policy keep rows there? The deletion of this batch was \
             rolled back",
            rows.len()
        ))
    }
}
