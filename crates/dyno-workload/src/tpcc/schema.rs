//! The nine tables of clause 1.3 in three dialects, their keys, and their rows' sources.
//! Departures, as in all implementations:
//!
//! - ORDER, a reserved word of SQL, is called `orders`.
//! - HISTORY has no key, as specified; InnoDB gives it one.
//! - A tenth table, `tpcc_before`, has the consistency conditions' results before the load.
//!
//! PostgreSQL's keys are made after the rows, which is faster; an InnoDB or SQLite table is its
//! primary key, and a later key would rewrite it.

use crate::prelude::*;
use crate::workload::columns_of;

use super::audit::conditions;
use super::procedures;
use super::random::Constants;
use super::rows::{Rows, TableId};
use super::settings::{Consistency, Settings};

struct Shape {
    name: &'static str,
    /// Its columns with their types. DATETIME is a date in any dialect.
    columns: &'static str,
    key: &'static str,
    /// Name and columns of a further index, and whether it is unique.
    index: Option<(&'static str, &'static str, &'static str)>,
    /// Foreign keys: columns, and the table whose key they refer to (clause 1.3.1).
    foreign_keys: &'static [(&'static str, TableId)],
}

const fn shape(name: &'static str, key: &'static str, columns: &'static str) -> Shape {
    Shape { name, columns, key, index: None, foreign_keys: &[] }
}

impl Shape {
    const fn index(self, name: &'static str, columns: &'static str, unique: &'static str) -> Shape {
        Shape { index: Some((name, columns, unique)), ..self }
    }

    const fn refers(self, foreign_keys: &'static [(&'static str, TableId)]) -> Shape {
        Shape { foreign_keys, ..self }
    }
}

static SHAPES: [Shape; TableId::ALL.len()] = [
    shape(
        "item",
        "i_id",
        "\
            i_id int not null, i_im_id int not null, i_name varchar(24) not null, \
            i_price decimal(5,2) not null, i_data varchar(50) not null",
    ),
    shape(
        "warehouse",
        "w_id",
        "\
            w_id int not null, w_name varchar(10) not null, \
            w_street_1 varchar(20) not null, w_street_2 varchar(20) not null, \
            w_city varchar(20) not null, w_state char(2) not null, w_zip char(9) not null, \
            w_tax decimal(4,4) not null, w_ytd decimal(12,2) not null",
    ),
    shape(
        "district",
        "d_w_id, d_id",
        "\
            d_id smallint not null, d_w_id int not null, d_name varchar(10) not null, \
            d_street_1 varchar(20) not null, d_street_2 varchar(20) not null, \
            d_city varchar(20) not null, d_state char(2) not null, d_zip char(9) not null, \
            d_tax decimal(4,4) not null, d_ytd decimal(12,2) not null, \
            d_next_o_id int not null",
    )
    .refers(&[("d_w_id", TableId::Warehouse)]),
    shape(
        "customer",
        "c_w_id, c_d_id, c_id",
        "\
            c_id int not null, c_d_id smallint not null, c_w_id int not null, \
            c_first varchar(16) not null, c_middle char(2) not null, \
            c_last varchar(16) not null, c_street_1 varchar(20) not null, \
            c_street_2 varchar(20) not null, c_city varchar(20) not null, \
            c_state char(2) not null, c_zip char(9) not null, c_phone char(16) not null, \
            c_since DATETIME not null, c_credit char(2) not null, \
            c_credit_lim decimal(12,2) not null, c_discount decimal(4,4) not null, \
            c_balance decimal(12,2) not null, c_ytd_payment decimal(12,2) not null, \
            c_payment_cnt smallint not null, c_delivery_cnt smallint not null, \
            c_data varchar(500) not null",
    )
    .index("customer_name", "c_w_id, c_d_id, c_last, c_first", "")
    .refers(&[("c_w_id, c_d_id", TableId::District)]),
    shape(
        "stock",
        "s_w_id, s_i_id",
        "\
            s_i_id int not null, s_w_id int not null, s_quantity smallint not null, \
            s_dist_01 char(24) not null, s_dist_02 char(24) not null, \
            s_dist_03 char(24) not null, s_dist_04 char(24) not null, \
            s_dist_05 char(24) not null, s_dist_06 char(24) not null, \
            s_dist_07 char(24) not null, s_dist_08 char(24) not null, \
            s_dist_09 char(24) not null, s_dist_10 char(24) not null, s_ytd int not null, \
            s_order_cnt int not null, s_remote_cnt int not null, s_data varchar(50) not null",
    )
    .refers(&[("s_w_id", TableId::Warehouse), ("s_i_id", TableId::Item)]),
    shape(
        "history",
        "",
        "\
            h_c_id int not null, h_c_d_id smallint not null, h_c_w_id int not null, \
            h_d_id smallint not null, h_w_id int not null, h_date DATETIME not null, \
            h_amount decimal(6,2) not null, h_data varchar(24) not null",
    )
    .refers(&[
        ("h_c_w_id, h_c_d_id, h_c_id", TableId::Customer),
        ("h_w_id, h_d_id", TableId::District),
    ]),
    shape(
        "orders",
        "o_w_id, o_d_id, o_id",
        "\
            o_id int not null, o_d_id smallint not null, o_w_id int not null, \
            o_c_id int not null, o_entry_d DATETIME not null, o_carrier_id smallint, \
            o_ol_cnt smallint not null, o_all_local smallint not null",
    )
    .index("orders_customer", "o_w_id, o_d_id, o_c_id, o_id", "UNIQUE ")
    .refers(&[("o_w_id, o_d_id, o_c_id", TableId::Customer)]),
    shape(
        "new_order",
        "no_w_id, no_d_id, no_o_id",
        "no_o_id int not null, no_d_id smallint not null, no_w_id int not null",
    )
    .refers(&[("no_w_id, no_d_id, no_o_id", TableId::Orders)]),
    shape(
        "order_line",
        "ol_w_id, ol_d_id, ol_o_id, ol_number",
        "\
            ol_o_id int not null, ol_d_id smallint not null, ol_w_id int not null, \
            ol_number smallint not null, ol_i_id int not null, ol_supply_w_id int not null, \
            ol_delivery_d DATETIME, ol_quantity smallint not null, \
            ol_amount decimal(6,2) not null, ol_dist_info char(24) not null",
    )
    .refers(&[
        ("ol_w_id, ol_d_id, ol_o_id", TableId::Orders),
        ("ol_supply_w_id, ol_i_id", TableId::Stock),
    ]),
    shape("tpcc_before", "number", "number int not null, violations int not null"),
];

impl TableId {
    fn shape(self) -> &'static Shape {
        &SHAPES[self as usize]
    }

    pub(super) fn name(self) -> &'static str {
        self.shape().name
    }
}

/// The number at the end of a set's names: none if there is one set.
pub(super) fn suffix(set: u64, sets: u64) -> String {
    if sets == 1 { String::new() } else { (set + 1).to_string() }
}

#[derive(Clone, Debug)]
pub(super) struct Schema {
    settings: Settings,
    sets: Vec<Rows>,
}

impl Schema {
    pub(super) fn new(settings: Settings, seed: Seed, constants: Constants) -> Schema {
        let rows = |set| {
            let seed = seed.derive("tpcc", set);
            Rows::new(settings.warehouses, settings.sizes, seed, constants)
        };
        Schema { settings, sets: (0..settings.sets).map(rows).collect() }
    }

    /// The tables, set after set, in the order that [`Schema::fill_row`] knows.
    pub(super) fn tables(&self, dialect: Dialect) -> Vec<Table> {
        let n_sets = self.settings.sets;
        let sets = (0..n_sets).zip(&self.sets);
        let tables = sets.flat_map(|(set, rows)| {
            let suffix = suffix(set, n_sets);
            TableId::ALL.map(|id| self.table(id, &suffix, rows.count(id), dialect))
        });
        tables.collect()
    }

    pub(super) fn count(&self, table: TableId) -> u64 {
        self.sets.iter().map(|rows| rows.count(table)).sum()
    }

    pub(super) fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        let n = TableId::ALL.len();
        self.sets[table_idx / n].fill(TableId::ALL[table_idx % n], number, row);
    }

    fn table(&self, id: TableId, suffix: &str, rows: u64, dialect: Dialect) -> Table {
        let (create, after) = (self.create(id, suffix, dialect), self.after(id, suffix, dialect));
        let (name, columns) = (format!("{}{suffix}", id.name()), columns_of(id.shape().columns));
        Table { name, create, columns, rows, after }
    }

    fn create(&self, id: TableId, suffix: &str, dialect: Dialect) -> String {
        let Shape { name, columns, key, .. } = id.shape();
        let date = if dialect == Dialect::MySql { "datetime" } else { "timestamp" };
        let mut columns = columns.replace("DATETIME", date);
        // Of exactly this type a primary key is the row's own number, and no second tree.
        if dialect == Dialect::Sqlite && !key.is_empty() {
            columns = columns.replace(&format!("{key} int "), &format!("{key} integer "));
        }
        let has_key_now = id == TableId::Before || !self.makes_key_later(dialect);
        if !key.is_empty() && has_key_now {
            columns += &format!(", PRIMARY KEY ({key})");
        }
        let is_clustered = dialect == Dialect::Sqlite && key.contains(',');
        let end = if is_clustered { " WITHOUT ROWID" } else { "" };
        format!("CREATE TABLE {name}{suffix} ({columns}){end}")
    }

    /// Foreign keys come after the last table, when other tables' keys must exist.
    fn makes_key_later(&self, dialect: Dialect) -> bool {
        dialect == Dialect::PostgreSql && !self.settings.has_foreign_keys
    }

    fn after(&self, id: TableId, suffix: &str, dialect: Dialect) -> Vec<String> {
        if id == TableId::Before {
            return self.after_all(suffix, dialect);
        }
        let Shape { name, key, index, .. } = id.shape();
        let table = format!("{name}{suffix}");
        let mut statements = Vec::new();
        if !key.is_empty() && self.makes_key_later(dialect) {
            statements.push(format!("ALTER TABLE {table} ADD PRIMARY KEY ({key})"));
        }
        if let Some((name, columns, unique)) = index {
            statements.push(format!("CREATE {unique}INDEX {name}{suffix} ON {table} ({columns})"));
        }
        statements.push(dialect.analyze(&table));
        statements
    }

    fn after_all(&self, suffix: &str, dialect: Dialect) -> Vec<String> {
        let mut statements = Vec::new();
        if self.settings.has_foreign_keys {
            statements.extend(foreign_keys(suffix));
        }
        if self.settings.has_procedures {
            statements.extend(procedures::create(dialect, suffix));
        }
        if self.settings.consistency == Consistency::BeforeAndAfter {
            statements.extend(conditions::note_before(suffix, &self.settings.sizes));
        }
        statements
    }
}

fn foreign_keys(suffix: &str) -> Vec<String> {
    let all =
        SHAPES.iter().flat_map(|table| table.foreign_keys.iter().map(move |key| (table, key)));
    let statement = |(table, (columns, other)): (&Shape, &(&str, TableId))| {
        let (table, Shape { name: other, key, .. }) = (table.name, other.shape());
        format!(
            "ALTER TABLE {table}{suffix} ADD FOREIGN KEY ({columns}) \
             REFERENCES {other}{suffix} ({key})"
        )
    };
    all.map(statement).collect()
}
