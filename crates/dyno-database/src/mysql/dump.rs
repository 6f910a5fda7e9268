//! Dumps and restores MariaDB and MySQL: SELECT by ranges of the primary key, LOAD DATA LOCAL.

mod allowed;
mod create;
mod rows;

use std::collections::BTreeSet;
use std::io;

use dyno_workload::{Connection, StatementError};

use super::connect;
use super::connection::MySqlConnection;
use super::sql::quoted;
use crate::Endpoint;
use crate::dump::{
    Column, Dump, DumpError, Dumping, Loader, PieceReader, Snapshot, Table, TableSource, Wanted,
};
use crate::sql::first_cell;

pub(super) struct BySql;

/// Texts in UTF-8, times in UTC, definitions as MySQL writes them without any mode.
const SESSION: [&str; 4] = [
    "SET NAMES utf8mb4",
    "SET SESSION time_zone = '+00:00', sql_mode = '', sql_quote_show_create = 1",
    "SET SESSION net_read_timeout = 3600, net_write_timeout = 3600, lock_wait_timeout = 60",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
];

const PIECES_MOST: u64 = 100_000;

/// Limits on the time of a statement: MariaDB's, and MySQL's. The other one is unknown to each.
const NO_LIMIT: [&str; 2] =
    ["SET SESSION max_statement_time = 0", "SET SESSION max_execution_time = 0"];
const UNKNOWN_VARIABLE: &str = "1193";

/// Values come as the server has them, in no character set.
const RAW_RESULTS: &str = "SET SESSION character_set_results = NULL";

/// Zero is stored as zero in a column that counts by itself; tables come in any order.
const RESTORING: &str =
    "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, autocommit = 1";

impl Dumping for BySql {
    fn begin(&self, endpoint: &Endpoint, wanted: &Wanted<'_>) -> Result<Snapshot, DumpError> {
        let mut lock = session(endpoint)?;
        // A single connection sees one state by itself.
        let is_locked = wanted.n_readers > 1;
        if is_locked {
            lock.query("FLUSH TABLES WITH READ LOCK").map_err(explained)?;
        }
        let mut readers = Vec::with_capacity(wanted.n_readers);
        for _ in 0..wanted.n_readers {
            let mut reader = session(endpoint)?;
            reader.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
            readers.push(reader);
        }
        let version = readers[0].version().to_owned();
        let (sources, notes) = find_tables(&mut readers[0], wanted)?;
        if is_locked {
            lock.query("UNLOCK TABLES")?;
        }
        let boxed = readers.into_iter().map(|mut connection| {
            connection.query(RAW_RESULTS)?;
            Ok(Box::new(Reader(connection)) as Box<dyn PieceReader>)
        });
        let readers = boxed.collect::<Result<_, DumpError>>()?;
        Ok(Snapshot { version, tables: sources, readers, notes })
    }

    fn check(&self, table: &Table, tables: &BTreeSet<&str>) -> Result<(), DumpError> {
        allowed::check(table, tables)
    }

    fn loader(&self, endpoint: &Endpoint) -> Result<Box<dyn Loader>, DumpError> {
        let mut connection = session(endpoint)?;
        connection.query(RESTORING)?;
        Ok(Box::new(Restorer(connection)))
    }
}

fn session(endpoint: &Endpoint) -> Result<MySqlConnection, DumpError> {
    let mut connection = connect(endpoint)?;
    connection.set_cold_limit(0);
    for statement in SESSION {
        connection.query(statement)?;
    }
    for statement in NO_LIMIT {
        match connection.query(statement) {
            Err(error) if error.code != UNKNOWN_VARIABLE => return Err(error.into()),
            _ => {}
        }
    }
    Ok(connection)
}

fn explained(error: StatementError) -> DumpError {
    DumpError::new(format!(
        "the server refused FLUSH TABLES WITH READ LOCK, which lets several connections see the \
         same state of the tables: {error}; one connection needs no lock (--threads 1)"
    ))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// The base tables of the database that are wanted, and what the dump lacks, in sentences.
fn find_tables(
    connection: &mut MySqlConnection,
    wanted: &Wanted<'_>,
) -> Result<(Vec<TableSource>, Vec<String>), DumpError> {
    let rows = connection.query(
        "SELECT t.table_name, t.table_type, t.engine, t.table_rows, t.data_length, e.transactions \
         FROM information_schema.tables t LEFT JOIN information_schema.engines e \
         ON e.engine = t.engine WHERE t.table_schema = DATABASE() ORDER BY 1",
    )?;
    let mut found = Vec::new();
    let mut notes = Vec::new();
    for row in rows {
        let [name, kind, engine, n_rows, bytes, transactions] =
            <[Option<String>; 6]>::try_from(row)
                .map_err(|_| DumpError::new("the list of tables has an unexpected shape"))?
                .map(Option::unwrap_or_default);
        if !wanted.tables.is_empty() && !wanted.tables.contains(&name) {
            continue;
        }
        match kind.as_str() {
            "BASE TABLE" => {}
            "SYSTEM VERSIONED" => {
                notes.push(format!("earlier versions of the rows of {name} are not in the dump"));
            }
            _ => {
                notes.push(format!("the {} {name} is not in the dump", kind.to_lowercase()));
                continue;
            }
        }
        if transactions != "YES" {
            notes.push(format!(
                "the rows of {name} may be from another point in time than those of other tables: \
                 its engine, {engine}, has no transactions"
            ));
        }
        found.push((name, engine, n_rows.parse().unwrap_or(0_u64), bytes.parse().unwrap_or(0)));
    }
    if let Some(missing) =
        wanted.tables.iter().find(|name| !found.iter().any(|(found, ..)| found == *name))
    {
        return Err(DumpError::new(format!("the database has no table `{missing}`")));
    }
    if found.is_empty() {
        return Err(DumpError::new("the database has no tables"));
    }
    notes.extend(routines(connection)?);
    let (mut bytes_of_list, mut n_pieces) = (0_u64, 0);
    let sources = found.into_iter().map(|(name, engine, n_rows, bytes)| {
        let source = source(connection, &name, &engine, (n_rows, bytes), wanted.rows_per_file);
        let source = source.map_err(|error| error.at(&name))?;
        let n_of_table = source.pieces.len() as u64;
        bytes_of_list += Dump::table_bytes(&source.table, n_of_table);
        n_pieces += n_of_table;
        Dump::check_size(bytes_of_list, n_pieces)?;
        Ok(source)
    });
    let mut sources = sources.collect::<Result<Vec<_>, DumpError>>()?;
    notes.extend(leave_out_foreign_keys(&mut sources));
    Ok((sources, notes))
}

/// Leaves out foreign keys to tables that are not in the dump, and says so.
fn leave_out_foreign_keys(sources: &mut [TableSource]) -> Vec<String> {
    let names: Vec<String> = sources.iter().map(|one| one.table.name.clone()).collect();
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut notes = Vec::new();
    for TableSource { table, .. } in sources {
        let n = table.at_last.len();
        table.at_last.retain(|key| !allowed::refers_elsewhere(key, &names));
        if table.at_last.len() < n {
            notes.push(format!(
                "foreign keys of {} to tables that are not in the dump are not in it either",
                table.name
            ));
        }
    }
    notes
}

/// What a database has beside tables and views, in sentences.
fn routines(connection: &mut MySqlConnection) -> Result<Vec<String>, DumpError> {
    let kinds = [
        ("trigger", "triggers WHERE trigger_schema"),
        ("routine", "routines WHERE routine_schema"),
        ("event", "events WHERE event_schema"),
    ];
    let mut found = Vec::new();
    for (kind, of) in kinds {
        let sql = format!("SELECT COUNT(*) FROM information_schema.{of} = DATABASE()");
        match single(connection, &sql)?.as_str() {
            "0" | "" => {}
            "1" => found.push(format!("1 {kind} is not in the dump")),
            n => found.push(format!("{n} {kind}s are not in the dump")),
        }
    }
    Ok(found)
}

/// The first value of the first row; empty if there is none.
fn single(connection: &mut MySqlConnection, sql: &str) -> Result<String, DumpError> {
    Ok(first_cell(connection.query(sql)?).unwrap_or_default())
}

fn source(
    connection: &mut MySqlConnection,
    name: &str,
    engine: &str,
    (n_rows, bytes): (u64, u64),
    rows_per_file: u64,
) -> Result<TableSource, DumpError> {
    let rows = connection.query(&format!("SHOW CREATE TABLE {}", quoted(name)))?;
    let create = rows.into_iter().next().and_then(|row| row.into_iter().nth(1)?);
    let create = create.ok_or_else(|| DumpError::new("the server gives no definition"))?;
    let parts = create::split(&create, &quoted(name), engine);
    let columns = columns(connection, name)?;
    let pieces = match parts.leading_key.as_deref() {
        Some(key) if is_whole_number(&columns, key) && n_rows > rows_per_file => {
            let bounds = (quoted(key), quoted(name));
            let found = connection.query(&format!(
                "SELECT MIN({key}), MAX({key}) FROM {name}",
                key = bounds.0,
                name = bounds.1
            ))?;
            let n_pieces = n_rows.div_ceil(rows_per_file);
            ranges(&bounds.0, found.first().map_or(&[], Vec::as_slice), n_pieces)
        }
        _ => vec![String::new()],
    };
    let table = Table {
        name: name.to_owned(),
        columns,
        create: parts.create,
        after: parts.after,
        at_last: parts.at_last,
    };
    Ok(TableSource { table, bytes, pieces })
}

fn is_whole_number(columns: &[Column], name: &str) -> bool {
    let kinds = ["tinyint", "smallint", "mediumint", "int", "bigint"];
    columns.iter().any(|one| one.name == name && kinds.contains(&one.data_type.as_str()))
}

/// Conditions that cut the key's values into ranges of equal width. The server gives minimum, maximum and row count: if
/// they cannot be a key's, all rows are one piece.
fn ranges(key: &str, bounds: &[Option<String>], n_pieces: u64) -> Vec<String> {
    let known = i128::from(i64::MIN)..=i128::from(u64::MAX);
    let number = |idx: usize| {
        let number = bounds.get(idx)?.as_deref()?.parse().ok()?;
        known.contains(&number).then_some(number)
    };
    let (least, most) = match (number(0), number(1)) {
        (Some(least), Some(most)) if least <= most => (least, most),
        _ => return vec![String::new()],
    };
    let n_values = most - least + 1;
    let n_pieces = i128::from(n_pieces.min(PIECES_MOST)).min(n_values);
    let begins = |idx: i128| least + n_values * idx / n_pieces;
    let piece = |idx: i128| match (idx > 0, idx + 1 < n_pieces) {
        (false, false) => String::new(),
        (false, true) => format!("{key} < {}", begins(idx + 1)),
        (true, false) => format!("{key} >= {}", begins(idx)),
        (true, true) => format!("{key} >= {} AND {key} < {}", begins(idx), begins(idx + 1)),
    };
    (0..n_pieces).map(piece).collect()
}

/// The columns that are not computed.
fn columns(connection: &mut MySqlConnection, table: &str) -> Result<Vec<Column>, DumpError> {
    let rows = connection.query(&format!(
        "SELECT column_name, data_type, extra FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND table_name = {} ORDER BY ordinal_position",
        literal(table)
    ))?;
    let mut found = Vec::new();
    for row in rows {
        let [name, data_type, extra] = <[Option<String>; 3]>::try_from(row)
            .map_err(|_| DumpError::new("the list of columns has an unexpected shape"))?
            .map(Option::unwrap_or_default);
        let extra = extra.to_uppercase();
        let is_computed = ["VIRTUAL GENERATED", "STORED GENERATED", "PERSISTENT"]
            .iter()
            .any(|word| extra.contains(word));
        if !is_computed {
            found.push(Column { name, data_type: data_type.to_lowercase() });
        }
    }
    Ok(found)
}

struct Reader(MySqlConnection);

impl PieceReader for Reader {
    fn read(
        &mut self,
        table: &Table,
        condition: &str,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), DumpError>,
    ) -> Result<u64, DumpError> {
        let column = |column: &Column| match column.data_type.as_str() {
            // As text, a FLOAT has six digits; as a DOUBLE it has all.
            "float" => format!("({} + 0e0)", quoted(&column.name)),
            _ => quoted(&column.name),
        };
        let columns: Vec<String> = table.columns.iter().map(column).collect();
        let selected = if columns.is_empty() { "NULL".to_owned() } else { columns.join(", ") };
        let mut sql = format!("SELECT {selected} FROM {}", quoted(&table.name));
        if !condition.is_empty() {
            // In the order of the primary key, so that rows are restored in it.
            sql.push_str(&format!(" FORCE INDEX (PRIMARY) WHERE {condition}"));
        }
        rows::read(&mut self.0, &sql, sink)
    }
}

struct Restorer(MySqlConnection);

impl Loader for Restorer {
    fn session(&mut self) -> Option<u64> {
        crate::session(&mut self.0)
    }

    fn tables(&mut self) -> Result<Vec<String>, DumpError> {
        let rows = self.0.query(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
        )?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next()?).collect())
    }

    fn run(&mut self, statements: &[String]) -> Result<(), DumpError> {
        for statement in statements {
            self.0.query(statement)?;
        }
        Ok(())
    }

    fn load(&mut self, table: &Table, lines: &mut dyn io::Read) -> Result<u64, DumpError> {
        if table.columns.is_empty() {
            return Err(DumpError::new("the table has no column whose values could be stored"));
        }
        rows::store(&mut self.0, table, lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bounds: [&str; 2], n_pieces: u64, expected: &[&str]) {
        let bounds = bounds.map(|text| Some(text.to_owned()));
        assert_eq!(ranges("`a`", &bounds, n_pieces), expected);
    }

    #[test]
    fn ranges_hold_each_value_once() {
        check(["1", "10"], 1, &[""]);
        check(["1", "10"], 2, &["`a` < 6", "`a` >= 6"]);
        check(["-5", "4"], 3, &["`a` < -2", "`a` >= -2 AND `a` < 1", "`a` >= 1"]);
        check(["7", "7"], 5, &[""]);
        check(
            ["0", "18446744073709551615"],
            2,
            &["`a` < 9223372036854775808", "`a` >= 9223372036854775808"],
        );
        assert_eq!(ranges("`a`", &[None, None], 3), [""]);
    }

    #[test]
    fn forged_bounds_of_a_key_lose_no_rows_and_make_no_endless_list() {
        let (least, most) = (i128::MIN.to_string(), i128::MAX.to_string());
        check([&least, &most], 3, &[""]);
        check(["7", "6"], 3, &[""]);
        check(["9", "0"], 3, &[""]);
        check(["0", "18446744073709551616"], 3, &[""]);
        check(["-9223372036854775809", "0"], 3, &[""]);
        let bounds = ["-9223372036854775808", "18446744073709551615"];
        let pieces = ranges("`a`", &bounds.map(|text| Some(text.to_owned())), u64::MAX);
        assert_eq!(pieces.len() as u64, PIECES_MOST);
    }
}
