//! The nine tables of clause 1.3 in three dialects, their keys, and where their rows come from.
//!
//! Where they depart from the specification's letter, as all implementations do:
//!
//! - ORDER is called `orders`, because ORDER is a reserved word of SQL.
//! - Rows of HISTORY have no key, as in the specification; InnoDB gives them one of its own.
//! - A tenth table, `tpcc_before`, keeps the results of the consistency conditions before the load.
//!
//! PostgreSQL's keys are made when the rows are there, which is faster; in InnoDB and in SQLite a
//! table is its primary key, and a key that came later would rewrite it.

use dyno_model::name;
use dyno_units::Seed;

use crate::{Dialect, Row, Table};

use super::audit::conditions;
use super::procedures;
use super::random::Constants;
use super::rows::{Rows, TableId};
use super::settings::{Consistency, Settings};

impl TableId {
    /// Its name, without the number of the set.
    pub(super) fn name(self) -> &'static str {
        match self {
            TableId::Item => "item",
            TableId::Warehouse => "warehouse",
            TableId::District => "district",
            TableId::Customer => "customer",
            TableId::History => "history",
            TableId::Orders => "orders",
            TableId::NewOrder => "new_order",
            TableId::OrderLine => "order_line",
            TableId::Stock => "stock",
            TableId::Before => "tpcc_before",
        }
    }

    /// Columns with their types; `KEY` if they are of a primary key.
    fn columns(self) -> &'static [(&'static str, &'static str)] {
        match self {
            TableId::Item => ITEM,
            TableId::Warehouse => WAREHOUSE,
            TableId::District => DISTRICT,
            TableId::Customer => CUSTOMER,
            TableId::History => HISTORY,
            TableId::Orders => ORDERS,
            TableId::NewOrder => NEW_ORDER,
            TableId::OrderLine => ORDER_LINE,
            TableId::Stock => STOCK,
            TableId::Before => BEFORE,
        }
    }

    fn key(self) -> &'static str {
        match self {
            TableId::Item => "i_id",
            TableId::Warehouse => "w_id",
            TableId::District => "d_w_id, d_id",
            TableId::Customer => "c_w_id, c_d_id, c_id",
            TableId::History => "",
            TableId::Orders => "o_w_id, o_d_id, o_id",
            TableId::NewOrder => "no_w_id, no_d_id, no_o_id",
            TableId::OrderLine => "ol_w_id, ol_d_id, ol_o_id, ol_number",
            TableId::Stock => "s_w_id, s_i_id",
            TableId::Before => "number",
        }
    }

    /// Name and columns of a further index, and whether it is unique.
    fn index(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            TableId::Customer => Some(("customer_name", "c_w_id, c_d_id, c_last, c_first", "")),
            TableId::Orders => Some(("orders_customer", "o_w_id, o_d_id, o_c_id, o_id", "UNIQUE ")),
            _ => None,
        }
    }

    /// Foreign keys: columns, table and its columns (clause 1.3.1).
    fn foreign_keys(self) -> &'static [(&'static str, TableId, &'static str)] {
        match self {
            TableId::District => &[("d_w_id", TableId::Warehouse, "w_id")],
            TableId::Customer => &[("c_w_id, c_d_id", TableId::District, "d_w_id, d_id")],
            TableId::History => &[
                ("h_c_w_id, h_c_d_id, h_c_id", TableId::Customer, "c_w_id, c_d_id, c_id"),
                ("h_w_id, h_d_id", TableId::District, "d_w_id, d_id"),
            ],
            TableId::Orders => {
                &[("o_w_id, o_d_id, o_c_id", TableId::Customer, "c_w_id, c_d_id, c_id")]
            }
            TableId::NewOrder => {
                &[("no_w_id, no_d_id, no_o_id", TableId::Orders, "o_w_id, o_d_id, o_id")]
            }
            TableId::OrderLine => &[
                ("ol_w_id, ol_d_id, ol_o_id", TableId::Orders, "o_w_id, o_d_id, o_id"),
                ("ol_supply_w_id, ol_i_id", TableId::Stock, "s_w_id, s_i_id"),
            ],
            TableId::Stock => {
                &[("s_w_id", TableId::Warehouse, "w_id"), ("s_i_id", TableId::Item, "i_id")]
            }
            TableId::Item | TableId::Warehouse | TableId::Before => &[],
        }
    }
}

const ITEM: &[(&str, &str)] = &[
    ("i_id", "int not null"),
    ("i_im_id", "int not null"),
    ("i_name", "varchar(24) not null"),
    ("i_price", "decimal(5,2) not null"),
    ("i_data", "varchar(50) not null"),
];

const WAREHOUSE: &[(&str, &str)] = &[
    ("w_id", "int not null"),
    ("w_name", "varchar(10) not null"),
    ("w_street_1", "varchar(20) not null"),
    ("w_street_2", "varchar(20) not null"),
    ("w_city", "varchar(20) not null"),
    ("w_state", "char(2) not null"),
    ("w_zip", "char(9) not null"),
    ("w_tax", "decimal(4,4) not null"),
    ("w_ytd", "decimal(12,2) not null"),
];

const DISTRICT: &[(&str, &str)] = &[
    ("d_id", "smallint not null"),
    ("d_w_id", "int not null"),
    ("d_name", "varchar(10) not null"),
    ("d_street_1", "varchar(20) not null"),
    ("d_street_2", "varchar(20) not null"),
    ("d_city", "varchar(20) not null"),
    ("d_state", "char(2) not null"),
    ("d_zip", "char(9) not null"),
    ("d_tax", "decimal(4,4) not null"),
    ("d_ytd", "decimal(12,2) not null"),
    ("d_next_o_id", "int not null"),
];

const CUSTOMER: &[(&str, &str)] = &[
    ("c_id", "int not null"),
    ("c_d_id", "smallint not null"),
    ("c_w_id", "int not null"),
    ("c_first", "varchar(16) not null"),
    ("c_middle", "char(2) not null"),
    ("c_last", "varchar(16) not null"),
    ("c_street_1", "varchar(20) not null"),
    ("c_street_2", "varchar(20) not null"),
    ("c_city", "varchar(20) not null"),
    ("c_state", "char(2) not null"),
    ("c_zip", "char(9) not null"),
    ("c_phone", "char(16) not null"),
    ("c_since", "DATETIME not null"),
    ("c_credit", "char(2) not null"),
    ("c_credit_lim", "decimal(12,2) not null"),
    ("c_discount", "decimal(4,4) not null"),
    ("c_balance", "decimal(12,2) not null"),
    ("c_ytd_payment", "decimal(12,2) not null"),
    ("c_payment_cnt", "smallint not null"),
    ("c_delivery_cnt", "smallint not null"),
    ("c_data", "varchar(500) not null"),
];

const HISTORY: &[(&str, &str)] = &[
    ("h_c_id", "int not null"),
    ("h_c_d_id", "smallint not null"),
    ("h_c_w_id", "int not null"),
    ("h_d_id", "smallint not null"),
    ("h_w_id", "int not null"),
    ("h_date", "DATETIME not null"),
    ("h_amount", "decimal(6,2) not null"),
    ("h_data", "varchar(24) not null"),
];

const ORDERS: &[(&str, &str)] = &[
    ("o_id", "int not null"),
    ("o_d_id", "smallint not null"),
    ("o_w_id", "int not null"),
    ("o_c_id", "int not null"),
    ("o_entry_d", "DATETIME not null"),
    ("o_carrier_id", "smallint"),
    ("o_ol_cnt", "smallint not null"),
    ("o_all_local", "smallint not null"),
];

const NEW_ORDER: &[(&str, &str)] =
    &[("no_o_id", "int not null"), ("no_d_id", "smallint not null"), ("no_w_id", "int not null")];

const ORDER_LINE: &[(&str, &str)] = &[
    ("ol_o_id", "int not null"),
    ("ol_d_id", "smallint not null"),
    ("ol_w_id", "int not null"),
    ("ol_number", "smallint not null"),
    ("ol_i_id", "int not null"),
    ("ol_supply_w_id", "int not null"),
    ("ol_delivery_d", "DATETIME"),
    ("ol_quantity", "smallint not null"),
    ("ol_amount", "decimal(6,2) not null"),
    ("ol_dist_info", "char(24) not null"),
];

const STOCK: &[(&str, &str)] = &[
    ("s_i_id", "int not null"),
    ("s_w_id", "int not null"),
    ("s_quantity", "smallint not null"),
    ("s_dist_01", "char(24) not null"),
    ("s_dist_02", "char(24) not null"),
    ("s_dist_03", "char(24) not null"),
    ("s_dist_04", "char(24) not null"),
    ("s_dist_05", "char(24) not null"),
    ("s_dist_06", "char(24) not null"),
    ("s_dist_07", "char(24) not null"),
    ("s_dist_08", "char(24) not null"),
    ("s_dist_09", "char(24) not null"),
    ("s_dist_10", "char(24) not null"),
    ("s_ytd", "int not null"),
    ("s_order_cnt", "int not null"),
    ("s_remote_cnt", "int not null"),
    ("s_data", "varchar(50) not null"),
];

const BEFORE: &[(&str, &str)] = &[("number", "int not null"), ("violations", "int not null")];

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

    /// Rows that a table of all sets begins with.
    pub(super) fn count(&self, table: TableId) -> u64 {
        self.sets.iter().map(|rows| rows.count(table)).sum()
    }

    pub(super) fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        let n = TableId::ALL.len();
        self.sets[table_idx / n].fill(TableId::ALL[table_idx % n], number, row);
    }

    fn table(&self, id: TableId, suffix: &str, rows: u64, dialect: Dialect) -> Table {
        Table {
            name: format!("{}{suffix}", id.name()),
            create: self.create(id, suffix, dialect),
            columns: id.columns().iter().map(|(column, _)| name(column)).collect(),
            rows,
            after: self.after(id, suffix, dialect),
        }
    }

    fn create(&self, id: TableId, suffix: &str, dialect: Dialect) -> String {
        let date = if dialect == Dialect::MySql { "datetime" } else { "timestamp" };
        let column = |(name, kind): &(&str, &str)| match (dialect, *kind) {
            // Of exactly this type a primary key is the row's own number, and no second tree.
            (Dialect::Sqlite, kind) if id.key() == *name => {
                format!("{name} {}", kind.replace("int ", "integer "))
            }
            (_, kind) => format!("{name} {}", kind.replace("DATETIME", date)),
        };
        let mut parts: Vec<String> = id.columns().iter().map(column).collect();
        let has_key_now = id == TableId::Before || !self.makes_key_later(dialect);
        if !id.key().is_empty() && has_key_now {
            parts.push(format!("PRIMARY KEY ({})", id.key()));
        }
        let is_clustered = dialect == Dialect::Sqlite && id.key().contains(',');
        let end = if is_clustered { " WITHOUT ROWID" } else { "" };
        format!("CREATE TABLE {}{suffix} ({}){end}", id.name(), parts.join(", "))
    }

    /// Foreign keys need the keys that they refer to; they come when the last table is filled, and
    /// other tables may not yet have their keys then.
    fn makes_key_later(&self, dialect: Dialect) -> bool {
        dialect == Dialect::PostgreSql && !self.settings.has_foreign_keys
    }

    fn after(&self, id: TableId, suffix: &str, dialect: Dialect) -> Vec<String> {
        if id == TableId::Before {
            return self.after_all(suffix, dialect);
        }
        let table = format!("{}{suffix}", id.name());
        let mut statements = Vec::new();
        if !id.key().is_empty() && self.makes_key_later(dialect) {
            statements.push(format!("ALTER TABLE {table} ADD PRIMARY KEY ({})", id.key()));
        }
        if let Some((name, columns, unique)) = id.index() {
            statements.push(format!("CREATE {unique}INDEX {name}{suffix} ON {table} ({columns})"));
        }
        statements.push(match dialect {
            Dialect::PostgreSql => format!("VACUUM ANALYZE {table}"),
            Dialect::MySql => format!("ANALYZE TABLE {table}"),
            Dialect::Sqlite | Dialect::ClickHouse => format!("ANALYZE {table}"),
        });
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
    let of_table = |id: TableId| {
        id.foreign_keys().iter().map(move |(columns, other, keys)| {
            format!(
                "ALTER TABLE {}{suffix} ADD FOREIGN KEY ({columns}) REFERENCES {}{suffix} ({keys})",
                id.name(),
                other.name()
            )
        })
    };
    TableId::ALL.into_iter().flat_map(of_table).collect()
}
