//! The five tables of a set in three dialects, and their rows. Departures from the original:
//!
//! - The original fills tables that have their indexes. So does this on MariaDB and MySQL, where a
//!   table is its clustered index (the unique one; HISTORY without `hpk` has a hidden one);
//!   elsewhere indexes follow the rows, with the same result.
//! - Filled tables are analysed (PostgreSQL: vacuumed, too); otherwise the server would do it
//!   during the measurement.
//! - Names of sections and zones, which are unknown, are made like those of states.

use std::io::Write;

use crate::workload::columns_of;
use crate::{Dialect, Row, Table};

use super::{HISTORY, Settings};

pub(super) const TABLES: usize = 5;

const ZONES: u64 = 10;
const SECTIONS: u64 = 100;
pub(super) const STATES: u64 = 1000;

/// Rows of the tables of a set that never change, with the tables' names; OBJECT comes after them.
pub(super) const FIXED: [(&str, u64); 3] =
    [("zone", ZONES), ("section", SECTIONS), ("stat", STATES)];

pub(super) const NOTE: usize = 100;

pub(super) fn tables(settings: &Settings, dialect: Dialect) -> Vec<Table> {
    (1..=settings.sets).flat_map(|set| tables_of_set(settings, set, dialect)).collect()
}

struct Plan {
    name: &'static str,
    definition: &'static str,
    key: &'static str,
    is_unique: bool,
    rows: u64,
}

fn tables_of_set(settings: &Settings, set: u64, dialect: Dialect) -> [Table; TABLES] {
    let plan =
        |name, definition, rows| Plan { name, definition, key: "ref", is_unique: true, rows };
    let zone = "ref char(2) not null, name char(40) not null";
    let section = "ref char(2) not null, ref_zone char(2) not null, name char(40) not null";
    let stat = "ref char(3) not null, name char(40) not null, numb int not null";
    let object = "ref char(10) not null, ref_section char(2) not null, name char(30) not null, \
                  create_date char(12) not null, note char(100)";
    let history = "ref_object char(10) not null, horder int not null, ref_stat char(3) not null, \
                   begin_date char(12) not null, end_date char(12), note char(100)";
    [
        plan("zone", zone, ZONES),
        plan("section", section, SECTIONS),
        plan("stat", stat, STATES),
        plan("object", object, settings.objects),
        Plan {
            key: "ref_object, horder",
            is_unique: settings.hpk,
            ..plan("history", history, settings.history_rows())
        },
    ]
    .map(|plan| plan.table(set, dialect))
}

impl Plan {
    fn table(&self, set: u64, dialect: Dialect) -> Table {
        let Plan { definition, key, .. } = self;
        let name = format!("{}{set}", self.name);
        let unique = if self.is_unique { "UNIQUE " } else { "" };
        let index = format!("{name}_ref");
        let (inline, later) = match dialect {
            Dialect::MySql => (format!(", {unique}KEY {index} ({key})"), None),
            Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => {
                (String::new(), Some(format!("CREATE {unique}INDEX {index} ON {name} ({key})")))
            }
        };
        Table {
            create: format!("CREATE TABLE {name} ({definition}{inline})"),
            columns: columns_of(definition),
            rows: self.rows,
            after: later.into_iter().chain([dialect.analyze(&name)]).collect(),
            name,
        }
    }
}

/// Writes row `number`, counted from 0, of table `table_idx` of [`tables`].
pub(super) fn fill_row(table_idx: usize, number: u64, row: &mut Row) {
    match table_idx % TABLES {
        0 => {
            push(row, 2, format_args!("{number:02}"));
            push(row, 40, format_args!("Zone {number:02} "));
        }
        1 => {
            push(row, 2, format_args!("{number:02}"));
            push(row, 2, format_args!("{:02}", number % ZONES));
            push(row, 40, format_args!("Section {number:02} "));
        }
        2 => {
            push(row, 3, format_args!("{number:03}"));
            push(row, 40, format_args!("Status {number:03} "));
            row.push_integer(0);
        }
        3 => {
            push(row, 10, format_args!("{number:010}"));
            push(row, 2, format_args!("{:02}", number % SECTIONS));
            push(row, 28, format_args!("{number:010} NAME "));
            push_date(row, number);
            push(row, 100, format_args!("{number:010} NOTES "));
        }
        _ => {
            let (object, nth) = (number / HISTORY, number % HISTORY);
            push(row, 10, format_args!("{object:010}"));
            row.push_integer(nth as i64);
            push(row, 3, format_args!("{:03}", (object + 10 * nth) % STATES));
            push_date(row, object + nth);
            push_date(row, object + nth);
            push(row, NOTE, format_args!("{object:010}_{nth:02} HISTORY NOTES "));
        }
    }
}

/// Appends text, made `width` bytes long with X.
fn push(row: &mut Row, width: usize, text: std::fmt::Arguments<'_>) {
    row.push_text_with(|bytes| {
        let start = bytes.len();
        bytes.write_fmt(text).expect("writing to memory does not fail");
        bytes.resize(start + width, b'X');
    });
}

fn push_date(row: &mut Row, number: u64) {
    row.push_text(&date(number));
}

pub(super) fn date(number: u64) -> [u8; 10] {
    let (day, month, year) = (number % 28 + 1, number % 12 + 1, number % 100);
    let mut date = *b"dd/mm/19yy";
    for (at, value) in [(0, day), (3, month), (8, year)] {
        date[at] = b'0' + (value / 10) as u8;
        date[at + 1] = b'0' + (value % 10) as u8;
    }
    date
}
