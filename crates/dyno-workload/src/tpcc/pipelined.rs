//! The five transactions with statements that do not need each other's replies sent together.
//!
//! The statements, and what stands in them, are those that are sent one by one; their order
//! changes within a transaction where none needs another. A customer looked up by name, a
//! customer's data, or a district whose oldest order somebody else has taken, cost a round trip
//! more. What becomes of statements behind one that fails is told at [`Talk::begin_together`] and
//! [`Talk::send_and_commit`].

use crate::StatementError;

use super::inputs::{Inputs, NewOrder};
use super::new_order::{self, Rates, Shown, line_values, taking, used_lines};
use super::others::{self, ORDERS_OF_STOCK_LEVEL};
use super::settings::DISTRICTS;
use super::statements::{BatchSql, Sql};
use super::talk::Talk;

/// Places an order; none where it was rolled back. All is read in one round trip, all written in
/// another.
pub(super) async fn new_order(
    talk: &mut Talk<'_>,
    order: &NewOrder,
    scratch: &mut new_order::Scratch,
    is_batched: bool,
) -> Result<Option<Shown>, StatementError> {
    ask_for_order(talk, order, is_batched);
    talk.pass(1).await?;
    talk.next().await?;
    let discount = talk.fixed(0, 4, "customer of a new order")?;
    let w_tax = talk.fixed(3, 4, "warehouse of a new order")?;
    talk.next().await?;
    let o_id = talk.integer(0, "district of a new order")?;
    let d_tax = talk.fixed(1, 4, "district of a new order")?;
    talk.pass(1).await?;
    match is_batched {
        true => take_all_lines(talk, order, scratch).await?,
        false => take_lines(talk, order, scratch).await?,
    }
    write_order(talk, order, o_id, scratch, is_batched);
    if order.rolls_back {
        talk.send_and_roll_back_as_meant().await?;
        return Ok(None);
    }
    talk.send_and_commit(true).await?;
    let rates = Rates { discount, w_tax, d_tax };
    Ok(Some(new_order::shown(order.lines(), scratch, &rates)))
}

/// Sends all that is read for an order.
fn ask_for_order(talk: &mut Talk<'_>, order: &NewOrder, is_batched: bool) {
    let NewOrder { w, d, c, .. } = *order;
    talk.begin_together();
    talk.push(Sql::OrderCustomer, [w, w, d, c]);
    talk.push(Sql::NextOrder, [w, d]);
    talk.push(Sql::TakeOrder, [w, d]);
    if is_batched {
        talk.push_with(BatchSql::Items.index(), &new_order::items_of(order));
        talk.push_with(BatchSql::Stocks.index(), &new_order::stocks_of(order));
    } else {
        order.lines().iter().for_each(|line| talk.push(Sql::Item, [line.item]));
        for line in used_lines(order) {
            talk.push(Sql::Stock, [d, line.supply_w, line.item]);
        }
    }
    talk.send();
}

/// Takes the replies about the lines, one by one.
async fn take_lines(
    talk: &mut Talk<'_>,
    order: &NewOrder,
    scratch: &mut new_order::Scratch,
) -> Result<(), StatementError> {
    let n_used = used_lines(order).len();
    for idx in 0..order.n_lines {
        talk.next().await?;
        if idx < n_used {
            new_order::read_item(talk, idx, scratch)?;
        }
    }
    for idx in 0..n_used {
        talk.next().await?;
        new_order::read_stock(talk, idx, scratch)?;
    }
    Ok(())
}

/// Takes the two replies about all lines.
async fn take_all_lines(
    talk: &mut Talk<'_>,
    order: &NewOrder,
    scratch: &mut new_order::Scratch,
) -> Result<(), StatementError> {
    let used = used_lines(order);
    talk.next().await?;
    new_order::read_items(talk, used, scratch)?;
    talk.next().await?;
    new_order::read_stocks(talk, used, scratch)
}

/// Writes down all that an order writes.
fn write_order(
    talk: &mut Talk<'_>,
    order: &NewOrder,
    o_id: i64,
    scratch: &mut new_order::Scratch,
    is_batched: bool,
) {
    let NewOrder { w, d, c, .. } = *order;
    let used = used_lines(order);
    talk.together();
    let is_all_local = order.is_all_local().into();
    talk.push(Sql::InsertOrder, [o_id, d, w, c, order.n_lines as i64, is_all_local]);
    talk.push(Sql::InsertNewOrder, [o_id, d, w]);
    for (idx, line) in used.iter().enumerate() {
        let left = new_order::take_from(used, idx, scratch);
        if !scratch.forgets_stock {
            talk.push(Sql::TakeStock, taking(order, line, left));
        }
    }
    if !is_batched {
        for idx in 0..used.len() {
            talk.push_with(Sql::InsertLine.index(), &line_values(order, o_id, idx, scratch));
        }
    } else if !order.rolls_back {
        let (sql, values) = new_order::all_line_values(order, o_id, scratch);
        talk.push_with(sql, &values[..9 * order.n_lines]);
    }
}

pub(super) async fn payment(
    talk: &mut Talk<'_>,
    inputs: &Inputs,
    scratch: &mut others::Scratch,
) -> Result<(), StatementError> {
    let Inputs { w, d, ref customer, cents, .. } = *inputs;
    talk.begin_together();
    talk.push(Sql::PayWarehouse, [cents, w]);
    talk.push(Sql::Warehouse, [w]);
    talk.push(Sql::PayDistrict, [cents, w, d]);
    talk.push(Sql::District, [w, d]);
    match customer.is_by_name() {
        true => talk.push_with(Sql::CustomersByName.index(), &others::name_values(customer)),
        false => talk.push(Sql::PayingCustomer, [customer.w, customer.d, customer.id]),
    }
    talk.send();
    talk.pass(2).await?;
    talk.next().await?;
    scratch.names_warehouse(talk);
    talk.pass(1).await?;
    talk.next().await?;
    scratch.names_district(talk);
    talk.next().await?;
    let mut id = customer.id;
    if customer.is_by_name() {
        id = others::middle_customer(talk)?;
        talk.ask(Sql::PayingCustomer, [customer.w, customer.d, id]).await?;
    }
    let is_bad = others::has_bad_credit(talk)?;
    if is_bad {
        talk.ask(Sql::CustomerData, [customer.w, customer.d, id]).await?;
        scratch.writes_down(talk, inputs, id);
    }
    talk.together();
    match is_bad {
        true => {
            let values = scratch.bad_customer_values(inputs, id);
            talk.push_with(Sql::PayBadCustomer.index(), &values);
        }
        false => talk.push(Sql::PayCustomer, [cents, cents, customer.w, customer.d, id]),
    }
    talk.push_with(Sql::InsertHistory.index(), &scratch.history_values(inputs, id));
    talk.send_and_commit(true).await
}

pub(super) async fn order_status(
    talk: &mut Talk<'_>,
    inputs: &Inputs,
) -> Result<(), StatementError> {
    let customer = &inputs.customer;
    let (w, d) = (customer.w, customer.d);
    let ask = |talk: &mut Talk<'_>, id| {
        talk.push(Sql::CustomerStatus, [w, d, id]);
        talk.push(Sql::LastOrder, [w, d, id]);
    };
    talk.begin_together();
    match customer.is_by_name() {
        true => talk.push_with(Sql::CustomersByName.index(), &others::name_values(customer)),
        false => ask(talk, customer.id),
    }
    talk.send();
    talk.pass(1).await?;
    if customer.is_by_name() {
        talk.next().await?;
        let id = others::middle_customer(talk)?;
        talk.together();
        ask(talk, id);
        talk.send();
    }
    talk.pass(1).await?;
    talk.next().await?;
    let order = talk.integer(0, "last order of a customer")?;
    talk.together();
    talk.push(Sql::LinesOfOrder, [w, d, order]);
    talk.send_and_commit(false).await
}

/// As [`others::delivery`]: all districts at once. Returns how many had no new order.
pub(super) async fn delivery(
    talk: &mut Talk<'_>,
    inputs: &Inputs,
    n_skipped: u64,
) -> Result<u64, StatementError> {
    let (w, carrier) = (inputs.w, inputs.carrier);
    let n_districts = DISTRICTS - n_skipped;
    let orders = take_oldest_orders(talk, w, n_districts).await?;
    let taken = || (1..).zip(orders).filter_map(|(d, order)| Some((d, order?)));
    let n_empty = n_districts - taken().count() as u64;
    talk.together();
    for (d, order) in taken() {
        talk.push(Sql::CustomerOfOrder, [w, d, order]);
        talk.push(Sql::Carrier, [carrier, w, d, order]);
        talk.push(Sql::DeliverLines, [w, d, order]);
        talk.push(Sql::AmountOfOrder, [w, d, order]);
    }
    talk.send();
    let mut paid = [(0, 0); DISTRICTS as usize];
    for (_, paid) in taken().zip(&mut paid) {
        talk.next().await?;
        paid.0 = talk.integer(0, "order of a new order")?;
        talk.pass(2).await?;
        talk.next().await?;
        paid.1 = talk.fixed(0, 2, "line of a new order")?;
    }
    talk.together();
    for ((d, _), (customer, cents)) in taken().zip(paid) {
        talk.push(Sql::PayDelivery, [cents, w, d, customer]);
    }
    talk.send_and_commit(true).await?;
    Ok(n_empty)
}

/// Begins the transaction and takes the oldest new order of each district that has one.
async fn take_oldest_orders(
    talk: &mut Talk<'_>,
    w: i64,
    n_districts: u64,
) -> Result<[Option<i64>; DISTRICTS as usize], StatementError> {
    let mut orders = [None; DISTRICTS as usize];
    let orders_of = &mut orders[..n_districts as usize];
    talk.begin_together();
    (1..=n_districts as i64).for_each(|d| talk.push(Sql::OldestNewOrder, [w, d]));
    talk.send();
    talk.pass(1).await?;
    for order in orders_of.iter_mut() {
        talk.next().await?;
        *order = talk.kept().integer(0, 0);
    }
    talk.together();
    for (d, order) in (1..).zip(orders_of.iter()) {
        if let Some(order) = *order {
            talk.push(Sql::DeleteNewOrder, [w, d, order]);
        }
    }
    talk.send();
    let mut is_gone = [false; DISTRICTS as usize];
    for (order, is_gone) in orders_of.iter().zip(&mut is_gone) {
        *is_gone = order.is_some() && talk.next().await?.affected == 0;
    }
    for (d, (order, is_gone)) in (1..).zip(orders_of.iter_mut().zip(is_gone)) {
        if is_gone {
            // Another delivery has taken it meanwhile.
            *order = others::oldest_order(talk, w, d).await?;
        }
    }
    Ok(orders)
}

pub(super) async fn stock_level(
    talk: &mut Talk<'_>,
    inputs: &Inputs,
) -> Result<(), StatementError> {
    let Inputs { w, d, threshold, .. } = *inputs;
    talk.begin_together();
    talk.push(Sql::OrdersSoFar, [w, d]);
    talk.send();
    talk.pass(1).await?;
    talk.next().await?;
    let next = talk.integer(0, "district of a stock-level")?;
    talk.together();
    talk.push(Sql::LowStock, [w, d, next, next - ORDERS_OF_STOCK_LEVEL, w, threshold]);
    talk.send_and_commit(false).await
}
