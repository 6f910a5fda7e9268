//! Payment, order-status and stock-level, and delivery statement by statement (clauses 2.5 to 2.8).

use std::io::Write as _;

use crate::{Done, Value};

use super::inputs::{Customer, Inputs};
use super::settings::DISTRICTS;
use super::statements::Sql;
use super::transaction::{Ask, Transaction as Tx, missing};

/// Longest `c_data`.
const DATA_MOST: usize = 500;

const ORDERS_OF_STOCK_LEVEL: i64 = 20;

/// Most times that a delivery looks for a district's oldest order, if others take it first.
const LOOKS_MOST: u32 = 1000;

/// Text that is put together for a payment, in memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    history: Vec<u8>,
    data: Vec<u8>,
}

impl Scratch {
    pub(super) fn new() -> Scratch {
        Scratch { history: Vec::with_capacity(64), data: Vec::with_capacity(1024) }
    }

    /// The text of a payment's history begins with the warehouse just returned.
    fn names_warehouse(&mut self, tx: &Tx<'_>) {
        self.history.clear();
        tx.kept().write_text(0, 0, &mut self.history);
        self.history.extend_from_slice(b"    ");
    }

    /// Puts the payment before the data just returned.
    fn writes_down(&mut self, tx: &Tx<'_>, inputs: &Inputs, id: i64) {
        let Inputs { w, d, ref customer, cents, .. } = *inputs;
        let data = &mut self.data;
        data.clear();
        let ids = format_args!("{id} {} {} {d} {w} ", customer.d, customer.w);
        // Writing into memory cannot fail.
        let _ = write!(data, "{ids}{}.{:02} | ", cents / 100, cents % 100);
        tx.kept().write_text(0, 0, data);
        data.truncate(DATA_MOST);
    }

    fn bad_customer_values(&self, inputs: &Inputs, id: i64) -> [Value<'_>; 6] {
        let Customer { w, d, .. } = inputs.customer;
        let [id, c_d, c_w, cents] = [id, d, w, inputs.cents].map(Value::Integer);
        [cents, cents, Value::Text(&self.data), c_w, c_d, id]
    }

    fn history_values(&self, inputs: &Inputs, id: i64) -> [Value<'_>; 7] {
        let Inputs { w, d, ref customer, cents, .. } = *inputs;
        let mut values = [id, customer.d, customer.w, d, w, cents, 0].map(Value::Integer);
        values[6] = Value::Text(&self.history);
        values
    }
}

fn name_values(customer: &Customer) -> [Value<'_>; 3] {
    [Value::Integer(customer.w), Value::Integer(customer.d), Value::Text(&customer.name)]
}

/// The middle one by first name of the customers just returned, rounded up.
fn middle_customer(tx: &Tx<'_>) -> Done<i64> {
    let middle = tx.kept().n_rows().div_ceil(2).checked_sub(1);
    let id = middle.and_then(|row| tx.kept().integer(row, 0));
    id.ok_or_else(|| missing("customer of that name"))
}

pub(super) async fn payment(tx: &mut Tx<'_>, inputs: &Inputs, scratch: &mut Scratch) -> Done {
    let customer = &inputs.customer;
    let [w, d, cents] = [inputs.w, inputs.d, inputs.cents].map(Value::Integer);
    let by_name = name_values(customer);
    let by_id = [customer.w, customer.d, customer.id].map(Value::Integer);
    let who: Ask<'_> = match customer.is_by_name() {
        true => (Sql::CustomersByName, &by_name),
        false => (Sql::PayingCustomer, &by_id),
    };
    tx.begin(true).await?;
    let asks: [Ask<'_>; 5] = [
        (Sql::PayWarehouse, &[cents, w]),
        (Sql::Warehouse, &[w]),
        (Sql::PayDistrict, &[cents, w, d]),
        (Sql::District, &[w, d]),
        who,
    ];
    let read = |tx: &Tx<'_>, nth| {
        match nth {
            1 => scratch.names_warehouse(tx),
            // It ends with the district just returned.
            3 => tx.kept().write_text(0, 0, &mut scratch.history),
            _ => {}
        }
        Ok(())
    };
    tx.exchange(&asks, read).await?;
    let mut id = customer.id;
    if customer.is_by_name() {
        id = middle_customer(tx)?;
        tx.ask(Sql::PayingCustomer, [customer.w, customer.d, id]).await?;
    }
    let credit = tx.kept().text(0, 9).ok_or_else(|| missing("customer of a payment"))?;
    let is_bad = credit == b"BC";
    if is_bad {
        tx.ask(Sql::CustomerData, [customer.w, customer.d, id]).await?;
        scratch.writes_down(tx, inputs, id);
    }
    let bad = scratch.bad_customer_values(inputs, id);
    let [c_w, c_d, c] = [customer.w, customer.d, id].map(Value::Integer);
    let good = [cents, cents, c_w, c_d, c];
    let pay: Ask<'_> = if is_bad { (Sql::PayBadCustomer, &bad) } else { (Sql::PayCustomer, &good) };
    let history = scratch.history_values(inputs, id);
    tx.exchange_and_commit(&[pay, (Sql::InsertHistory, &history)], true).await
}

pub(super) async fn order_status(tx: &mut Tx<'_>, inputs: &Inputs) -> Done {
    let customer = &inputs.customer;
    tx.begin(false).await?;
    let mut id = customer.id;
    if customer.is_by_name() {
        let by_name = name_values(customer);
        tx.exchange(&[(Sql::CustomersByName, &by_name)], |_, _| Ok(())).await?;
        id = middle_customer(tx)?;
    }
    let mut key = [customer.w, customer.d, id].map(Value::Integer);
    let asks: [Ask<'_>; 2] = [(Sql::CustomerStatus, &key), (Sql::LastOrder, &key)];
    tx.exchange(&asks, |_, _| Ok(())).await?;
    key[2] = Value::Integer(tx.integer(0, "last order of a customer")?);
    tx.exchange_and_commit(&[(Sql::LinesOfOrder, &key)], false).await
}

/// Delivers each district's oldest new order, without the last `skipped` districts (0 except in
/// tests of faults). Returns how many districts had none.
pub(super) async fn delivery(tx: &mut Tx<'_>, inputs: &Inputs, skipped: u64) -> Done<u64> {
    let mut n_empty = 0;
    tx.begin(true).await?;
    for d in 1..=(DISTRICTS - skipped) as i64 {
        match oldest_order(tx, inputs.w, d).await? {
            Some(order) => deliver(tx, inputs, d, order).await?,
            None => n_empty += 1,
        }
    }
    tx.commit().await?;
    Ok(n_empty)
}

/// Takes the oldest new order of a district; none if it has none.
pub(super) async fn oldest_order(tx: &mut Tx<'_>, w: i64, d: i64) -> Done<Option<i64>> {
    for _ in 0..LOOKS_MOST {
        tx.ask(Sql::OldestNewOrder, [w, d]).await?;
        let Some(order) = tx.kept().integer(0, 0) else { return Ok(None) };
        // Another delivery may have taken it meanwhile.
        if tx.ask(Sql::DeleteNewOrder, [w, d, order]).await?.affected > 0 {
            return Ok(Some(order));
        }
    }
    Err(missing("new order that could be taken"))
}

async fn deliver(tx: &mut Tx<'_>, inputs: &Inputs, d: i64, order: i64) -> Done {
    let Inputs { w, carrier, .. } = *inputs;
    tx.ask(Sql::CustomerOfOrder, [w, d, order]).await?;
    let customer = tx.integer(0, "order of a new order")?;
    tx.ask(Sql::Carrier, [carrier, w, d, order]).await?;
    tx.ask(Sql::DeliverLines, [w, d, order]).await?;
    tx.ask(Sql::AmountOfOrder, [w, d, order]).await?;
    let cents = tx.fixed(0, 2, "line of a new order")?;
    tx.ask(Sql::PayDelivery, [cents, w, d, customer]).await?;
    Ok(())
}

pub(super) async fn stock_level(tx: &mut Tx<'_>, inputs: &Inputs) -> Done {
    let Inputs { w, d, threshold, .. } = *inputs;
    tx.begin(false).await?;
    let district = [w, d].map(Value::Integer);
    tx.exchange(&[(Sql::OrdersSoFar, &district)], |_, _| Ok(())).await?;
    let next = tx.integer(0, "district of a stock-level")?;
    let values = [w, d, next, next - ORDERS_OF_STOCK_LEVEL, w, threshold].map(Value::Integer);
    tx.exchange_and_commit(&[(Sql::LowStock, &values)], false).await
}
