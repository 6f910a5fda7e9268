//! The four tables in three dialects, and their rows: those of `pgbench -i`, except:
//!
//! - pgbench adds primary keys after the rows, as this does on PostgreSQL. An InnoDB table is its
//!   primary key, and a later key would rewrite it; SQLite cannot add one. There the key is made
//!   with the table.
//! - An account's `filler` is not sent, but a default during the fill: pgbench's empty string, which
//!   CHAR(84) pads to 84 blanks; on SQLite, which pads nothing, 84 blanks, as TPC-B wants rows of
//!   100 bytes.
//! - On MariaDB and MySQL `mtime` is a DATETIME, as TIMESTAMP is another type there.

use dyno_model::names;

use crate::workload::columns_of;
use crate::{Dialect, Row, Table};

use super::{ACCOUNTS, Settings, TELLERS};

/// From this scale on pgbench makes the columns of account numbers wider, as 32 bits are too tight.
const WIDE_SCALE: u64 = 20_000;

pub(super) const HISTORY: &str = "pgbench_history";

pub(super) fn tables(settings: &Settings, dialect: Dialect) -> Vec<Table> {
    let scale = settings.scale;
    let aid = if scale >= WIDE_SCALE { "bigint" } else { "int" };
    let keyed = |name: &str, columns: &str, rows| {
        let with = match dialect {
            Dialect::PostgreSql => format!(" WITH (fillfactor={})", settings.fillfactor),
            Dialect::MySql | Dialect::Sqlite | Dialect::ClickHouse => String::new(),
        };
        // All but the last one, `filler`.
        let mut filled = columns_of(columns);
        filled.pop();
        let (key, others) = columns.split_once(", ").expect("the key comes first");
        let key_column = key_column(dialect, key, aid);
        Table {
            name: name.to_owned(),
            create: format!("CREATE TABLE {name} ({key_column}, {others}){with}"),
            columns: filled,
            rows,
            after: after(dialect, name, Some(key)),
        }
    };
    let filled = filler(dialect);
    let accounts = format!("aid, bid int, abalance int, filler char(84) default '{filled}'");
    let mut accounts = keyed("pgbench_accounts", &accounts, scale * ACCOUNTS);
    accounts.after.splice(..0, without_default(dialect));
    let tellers = "tid, bid int, tbalance int, filler char(84)";
    let mtime = if dialect == Dialect::MySql { "datetime" } else { "timestamp" };
    vec![
        keyed("pgbench_branches", "bid, bbalance int, filler char(88)", scale),
        keyed("pgbench_tellers", tellers, scale * TELLERS),
        accounts,
        Table {
            name: HISTORY.to_owned(),
            create: format!(
                "CREATE TABLE {HISTORY} (tid int, bid int, aid {aid}, delta int, \
                 mtime {mtime}, filler char(22))"
            ),
            columns: names(&["tid", "bid", "aid", "delta"]),
            rows: 0,
            after: after(dialect, HISTORY, None),
        },
    ]
}

fn filler(dialect: Dialect) -> String {
    let width = if dialect == Dialect::Sqlite { 84 } else { 0 };
    " ".repeat(width)
}

/// Takes the default away again, if a table can be changed without being rewritten.
fn without_default(dialect: Dialect) -> Option<String> {
    let sql = "ALTER TABLE pgbench_accounts ALTER COLUMN filler DROP DEFAULT";
    (dialect != Dialect::Sqlite).then(|| sql.to_owned())
}

fn key_column(dialect: Dialect, key: &str, aid: &str) -> String {
    let kind = if key == "aid" { aid } else { "int" };
    match dialect {
        Dialect::PostgreSql => format!("{key} {kind} not null"),
        Dialect::MySql => format!("{key} {kind} not null primary key"),
        // Of exactly this type a primary key is the row's own number, and no second tree.
        Dialect::Sqlite | Dialect::ClickHouse => format!("{key} integer primary key not null"),
    }
}

/// What pgbench does after filling, in its order: VACUUM ANALYZE, then the primary key.
fn after(dialect: Dialect, table: &str, key: Option<&str>) -> Vec<String> {
    let key = key.filter(|_| dialect == Dialect::PostgreSql);
    let key = key.map(|key| format!("ALTER TABLE {table} ADD PRIMARY KEY ({key})"));
    [dialect.analyze(table)].into_iter().chain(key).collect()
}

/// Writes row `number`, counted from 0, of table `table_idx` of [`tables`].
pub(super) fn fill_row(table_idx: usize, number: u64, row: &mut Row) {
    row.push_integer(number as i64 + 1);
    match table_idx {
        0 => {}
        1 => row.push_integer((number / TELLERS) as i64 + 1),
        _ => row.push_integer((number / ACCOUNTS) as i64 + 1),
    }
    row.push_integer(0);
}
