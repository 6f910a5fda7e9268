//! Statements of the five transactions, one SELECT, INSERT, UPDATE or DELETE at a time.
//!
//! Rows that are read to be written, other than by a relative UPDATE, are read FOR UPDATE (the
//! district's next order, stock, a customer's data). SQLite needs no FOR UPDATE: transactions that
//! write begin with BEGIN IMMEDIATE. A district's oldest new order is read FOR UPDATE only on
//! MariaDB and MySQL. PostgreSQL would wait for another delivery, find the row gone, and return
//! none; there the DELETE shows whether the order still existed, else the next one is looked for.

use crate::{Dialect, Statement, StatementClass};

use super::audit::conditions::with_suffix;
use super::rows::LINES;

/// Statements of one set of tables; [`Sql::index`] is their place among those of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sql {
    OrderCustomer,
    NextOrder,
    TakeOrder,
    InsertOrder,
    InsertNewOrder,
    Item,
    Stock,
    TakeStock,
    InsertLine,
    PayWarehouse,
    Warehouse,
    PayDistrict,
    District,
    CustomersByName,
    PayingCustomer,
    CustomerData,
    PayCustomer,
    PayBadCustomer,
    InsertHistory,
    CustomerStatus,
    LastOrder,
    LinesOfOrder,
    OldestNewOrder,
    DeleteNewOrder,
    CustomerOfOrder,
    Carrier,
    DeliverLines,
    AmountOfOrder,
    PayDelivery,
    OrdersSoFar,
    LowStock,
}

const N_SINGLE: usize = Sql::LowStock as usize + 1;

/// Statements that do for all lines of an order what [`Sql`] does for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchSql {
    Items,
    Stocks,
    /// The first of those that insert 5, 6 … 15 lines.
    InsertLines,
}

const N_BATCH: usize = BatchSql::InsertLines as usize + (LINES.1 - LINES.0 + 1) as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementMode {
    Single,
    Batched,
    Procedures,
}

impl StatementMode {
    fn n_statements(self) -> usize {
        match self {
            StatementMode::Single => N_SINGLE,
            StatementMode::Batched => N_SINGLE + N_BATCH,
            StatementMode::Procedures => super::settings::KINDS.len(),
        }
    }

    pub(super) fn base(self, set: u64) -> usize {
        set as usize * self.n_statements()
    }
}

impl Sql {
    pub(super) fn index(self) -> usize {
        self as usize
    }
}

impl BatchSql {
    pub(super) fn index(self) -> usize {
        N_SINGLE + self as usize
    }
}

pub(super) fn of_set(mode: StatementMode, dialect: Dialect, suffix: &str) -> Vec<Statement> {
    let mut texts: Vec<String> = SINGLE.iter().map(|sql| (*sql).to_owned()).collect();
    match mode {
        StatementMode::Procedures => return super::procedures::calls(dialect, suffix),
        StatementMode::Single => {}
        StatementMode::Batched => texts.extend(batch(dialect)),
    }
    texts.iter().map(|sql| statement(sql, dialect, suffix)).collect()
}

fn statement(sql: &str, dialect: Dialect, suffix: &str) -> Statement {
    let sql = with_suffix(sql, suffix);
    let sql = match dialect {
        Dialect::MySql => sql.replace(" LOCKED_TOO", " FOR UPDATE"),
        _ => sql.replace(" LOCKED_TOO", ""),
    };
    let sql = match dialect {
        Dialect::Sqlite => sql.replace(" FOR UPDATE", ""),
        _ => sql,
    };
    let sql = dialect.placeholders(&sql);
    if sql.starts_with("SELECT") {
        Statement::new(sql, StatementClass::Read).keeping_rows()
    } else {
        Statement::new(sql, StatementClass::Write)
    }
}

/// In the order of [`Sql`]. Adding 0 makes PostgreSQL take the district for a number. Money is in
/// cents and divided where it is stored: exact on every product, unlike a floating-point parameter.
const SINGLE: [&str; N_SINGLE] = [
    "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
     WHERE w_id = ? AND c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
    "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
    "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
     VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)",
    "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
    "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?",
    "SELECT s_quantity, s_data, CASE 0 + ? WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 \
     WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 \
     WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END \
     FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE",
    "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
     s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
    "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, \
     ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ? / 100.0, ?)",
    "UPDATE warehouse SET w_ytd = w_ytd + ? / 100.0 WHERE w_id = ?",
    "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?",
    "UPDATE district SET d_ytd = d_ytd + ? / 100.0 WHERE d_w_id = ? AND d_id = ?",
    "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
     WHERE d_w_id = ? AND d_id = ?",
    "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
    "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
     c_credit, c_credit_lim, c_discount, c_balance, c_since FROM customer \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
    "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "UPDATE customer SET c_balance = c_balance - ? / 100.0, \
     c_ytd_payment = c_ytd_payment + ? / 100.0, c_payment_cnt = c_payment_cnt + 1 \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "UPDATE customer SET c_balance = c_balance - ? / 100.0, \
     c_ytd_payment = c_ytd_payment + ? / 100.0, c_payment_cnt = c_payment_cnt + 1, c_data = ? \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
     VALUES (?, ?, ?, ?, ?, CURRENT_TIMESTAMP, ? / 100.0, ?)",
    "SELECT c_balance, c_first, c_middle, c_last FROM customer \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "SELECT o_id, o_carrier_id, o_entry_d FROM orders \
     WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1",
    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
    "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
     ORDER BY no_o_id LIMIT 1 LOCKED_TOO",
    "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
    "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
    "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
    "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP \
     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
    "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
    "UPDATE customer SET c_balance = c_balance + ? / 100.0, c_delivery_cnt = c_delivery_cnt + 1 \
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
    "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock \
     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? \
     AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?",
];

/// In the order of [`BatchSql`]. Orders of fewer than 15 lines name their last item again.
fn batch(dialect: Dialect) -> Vec<String> {
    let most = LINES.1 as usize;
    let items = format!(
        "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN ({})",
        vec!["?"; most].join(", ")
    );
    let pairs = vec!["(?, ?)"; most].join(", ");
    // SQLite has pairs only as the rows of a query.
    let pairs = if dialect == Dialect::Sqlite { format!("VALUES {pairs}") } else { pairs };
    let stocks = format!(
        "SELECT s_w_id, s_i_id, s_quantity, s_data, CASE 0 + ? WHEN 1 THEN s_dist_01 \
         WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 \
         WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 \
         ELSE s_dist_10 END FROM stock WHERE (s_w_id, s_i_id) IN ({pairs}) FOR UPDATE"
    );
    let insert = |n: u64| {
        let row = "(?, ?, ?, ?, ?, ?, ?, ? / 100.0, ?)";
        let rows = vec![row; n as usize].join(", ");
        format!(
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
             ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES {rows}"
        )
    };
    [items, stocks].into_iter().chain((LINES.0..=LINES.1).map(insert)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_stand_where_their_names_say() {
        let check = |sql: Sql, begins: &str| {
            assert!(SINGLE[sql.index()].starts_with(begins), "{sql:?}: {}", SINGLE[sql.index()]);
        };
        check(Sql::OrderCustomer, "SELECT c_discount");
        check(Sql::Stock, "SELECT s_quantity");
        check(Sql::InsertLine, "INSERT INTO order_line");
        check(Sql::PayingCustomer, "SELECT c_first");
        check(Sql::InsertHistory, "INSERT INTO history");
        check(Sql::OldestNewOrder, "SELECT no_o_id");
        check(Sql::LowStock, "SELECT COUNT(DISTINCT");
        let all = of_set(StatementMode::Batched, Dialect::PostgreSql, "3");
        assert_eq!(all.len(), StatementMode::Batched.n_statements());
        assert!(all[BatchSql::Items.index()].sql.contains("FROM item3 WHERE i_id IN ($1"));
        assert!(all[BatchSql::InsertLines.index() + 10].sql.ends_with("$134 / 100.0, $135)"));
    }

    #[test]
    fn locks_are_asked_for_where_there_are_some() {
        let of =
            |dialect, sql: Sql| of_set(StatementMode::Single, dialect, "")[sql.index()].sql.clone();
        let has_lock = |dialect, sql| of(dialect, sql).ends_with(" FOR UPDATE");
        for sql in [Sql::NextOrder, Sql::Stock, Sql::PayingCustomer] {
            assert!(has_lock(Dialect::MySql, sql) && has_lock(Dialect::PostgreSql, sql));
            assert!(!has_lock(Dialect::Sqlite, sql));
        }
        let oldest = Sql::OldestNewOrder;
        assert!(has_lock(Dialect::MySql, oldest) && !has_lock(Dialect::PostgreSql, oldest));
        assert!(!of(Dialect::Sqlite, oldest).contains("LOCKED_TOO"));
    }
}
