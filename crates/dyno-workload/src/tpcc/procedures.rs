//! The five transactions as stored procedures: one call, one round trip.
//!
//! They do the same as the statements, in the same order, with the client's inputs; an order's
//! lines go as one text of fixed columns. On MariaDB and MySQL each procedure is its own
//! transaction. On PostgreSQL new-order is a procedure, as only those can roll back; the others are
//! functions, and each call is a transaction. They are made once all tables are filled, and are named
//! `dyno_tpcc_…`; an earlier run's, which bear a mark, are dropped before.

use crate::{Dialect, Done, Statement, StatementClass, Value};

use super::audit::conditions::with_suffix;
use super::inputs::{Inputs, NewOrder};
use super::settings::{DELIVERY, KINDS, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL};
use super::transaction::{Transaction, missing};

mod mysql;
mod postgresql;

/// Digits of item, supplying warehouse and quantity in the text of a line.
const ITEM_DIGITS: usize = 6;
const WAREHOUSE_DIGITS: usize = 7;
const QUANTITY_DIGITS: usize = 2;

/// Statements that make the procedures of a set; none if there are no procedures.
pub(super) fn create(dialect: Dialect, suffix: &str) -> Vec<String> {
    let texts = match dialect {
        Dialect::MySql => mysql::create(),
        Dialect::PostgreSql => postgresql::create(),
        Dialect::Sqlite | Dialect::ClickHouse => Vec::new(),
    };
    texts.iter().map(|sql| of_set(sql, suffix)).collect()
}

pub(super) fn calls(dialect: Dialect, suffix: &str) -> Vec<Statement> {
    let texts = match dialect {
        Dialect::MySql => mysql::CALLS,
        Dialect::PostgreSql | Dialect::Sqlite | Dialect::ClickHouse => postgresql::CALLS,
    };
    let call = |(kind, sql): (usize, &str)| {
        let class = match kind {
            ORDER_STATUS | STOCK_LEVEL => StatementClass::Read,
            _ => StatementClass::Write,
        };
        Statement::new(dialect.placeholders(&of_set(sql, suffix)), class).keeping_rows()
    };
    texts.into_iter().enumerate().map(call).collect()
}

/// The text with the names of a set: of tables, and of procedures (`dyno_tpcc_…@`).
fn of_set(sql: &str, suffix: &str) -> String {
    with_suffix(sql, suffix).replace('@', suffix)
}

/// Does a transaction of this kind; returns how many districts a delivery found empty.
pub(super) async fn call(
    tx: &mut Transaction<'_>,
    kind: usize,
    inputs: &Inputs,
    lines: &mut Vec<u8>,
) -> Done<u64> {
    debug_assert!(kind < KINDS.len(), "the kinds are those of the workload");
    let customer = &inputs.customer;
    let name = Value::Text(&customer.name);
    let [w, d, c_w, c_d, c, cents] =
        [inputs.w, inputs.d, customer.w, customer.d, customer.id, inputs.cents].map(Value::Integer);
    match kind {
        NEW_ORDER => new_order(tx, &inputs.order, lines).await?,
        PAYMENT => {
            tx.execute(kind, &[w, d, c_w, c_d, c, name, cents]).await?;
            tx.integer(0, "customer of a payment")?;
        }
        ORDER_STATUS => {
            tx.execute(kind, &[c_w, c_d, c, name]).await?;
            tx.integer(0, "last order of a customer")?;
        }
        DELIVERY => {
            tx.execute(kind, &[w, Value::Integer(inputs.carrier)]).await?;
            return Ok(tx.integer(0, "number of districts without a new order")? as u64);
        }
        _ => {
            tx.execute(kind, &[w, d, Value::Integer(inputs.threshold)]).await?;
            tx.integer(0, "stock that is low")?;
        }
    }
    Ok(0)
}

async fn new_order(tx: &mut Transaction<'_>, order: &NewOrder, lines: &mut Vec<u8>) -> Done {
    write_lines(lines, order);
    let n_lines = order.n_lines as i64;
    let integers = [order.w, order.d, order.c, n_lines, order.is_all_local().into(), 0];
    let mut values = integers.map(Value::Integer);
    values[5] = Value::Text(lines);
    tx.execute(NEW_ORDER, &values).await?;
    match (tx.integer(0, "outcome of a new order")?, order.rolls_back) {
        (0, false) => Ok(()),
        (1, true) => {
            tx.rolled_back_as_designed();
            Ok(())
        }
        _ => Err(missing("item of an order line")),
    }
}

/// One line after the other, each number with leading zeros.
fn write_lines(out: &mut Vec<u8>, order: &NewOrder) {
    out.clear();
    for line in order.lines() {
        push_padded(out, line.item, ITEM_DIGITS);
        push_padded(out, line.supply_w, WAREHOUSE_DIGITS);
        push_padded(out, line.quantity, QUANTITY_DIGITS);
    }
}

fn push_padded(out: &mut Vec<u8>, number: i64, digits: usize) {
    let start = out.len();
    out.resize(start + digits, b'0');
    crate::row::write_digits(&mut out[start..], number.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::super::inputs::Line;
    use super::*;

    #[test]
    fn lines_stand_in_columns() {
        let mut order = NewOrder { n_lines: 2, ..NewOrder::default() };
        order.lines[0] = Line { item: 100_001, supply_w: 1_000_000, quantity: 10 };
        order.lines[1] = Line { item: 7, supply_w: 2, quantity: 3 };
        let mut out = b"before".to_vec();
        write_lines(&mut out, &order);
        assert_eq!(out, b"100001100000010000007000000203");
    }

    #[test]
    fn procedures_are_those_of_their_set() {
        for dialect in [Dialect::MySql, Dialect::PostgreSql] {
            let all = create(dialect, "4").join("\n");
            assert!(all.contains("dyno_tpcc_delivery4") && all.contains(" new_order4 "), "{all}");
            assert!(!all.contains('@') && !all.contains('?'), "{all}");
            // Nobody else's is replaced, and these will be known.
            assert!(!all.contains("OR REPLACE") && !all.contains("DROP "), "{all}");
            assert_eq!(all.matches("made by Dyno").count(), create(dialect, "4").len(), "{all}");
            assert_eq!(calls(dialect, "").len(), KINDS.len());
        }
        assert!(create(Dialect::Sqlite, "").is_empty());
    }
}
