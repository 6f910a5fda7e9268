//! New-order and delivery with independent statements sent together, in another order than one by
//! one; statements and values are the same. A district whose oldest order is taken costs a further
//! round trip. [`Transaction::begin_together`] and [`Transaction::send_and_commit`] describe what
//! follows a failed statement.

use crate::Done;

use super::inputs::{Inputs, NewOrder};
use super::new_order::{self, Placed, Rates, Scratch, line_values, taking, used_lines};
use super::others;
use super::settings::DISTRICTS;
use super::statements::{BatchSql, Sql};
use super::transaction::Transaction as Tx;

/// Reads in one round trip, writes in another.
pub(super) async fn new_order(tx: &mut Tx<'_>, order: &NewOrder, scratch: &mut Scratch) -> Placed {
    ask_for_order(tx, order, scratch.is_batched);
    tx.pass(1).await?;
    tx.next().await?;
    let discount = tx.fixed(0, 4, "customer of a new order")?;
    let w_tax = tx.fixed(3, 4, "warehouse of a new order")?;
    tx.next().await?;
    scratch.o_id = tx.integer(0, "district of a new order")?;
    let d_tax = tx.fixed(1, 4, "district of a new order")?;
    tx.pass(1).await?;
    match scratch.is_batched {
        true => take_all_lines(tx, order, scratch).await?,
        false => take_lines(tx, order, scratch).await?,
    }
    write_order(tx, order, scratch);
    if order.rolls_back {
        tx.send_and_roll_back_as_designed().await?;
        return Ok(None);
    }
    tx.send_and_commit(true).await?;
    let rates = Rates { discount, w_tax, d_tax };
    Ok(Some(new_order::shown(order.lines(), scratch, &rates)))
}

fn ask_for_order(tx: &mut Tx<'_>, order: &NewOrder, is_batched: bool) {
    let NewOrder { w, d, c, .. } = *order;
    tx.begin_together();
    tx.push(Sql::OrderCustomer, [w, w, d, c]);
    tx.push(Sql::NextOrder, [w, d]);
    tx.push(Sql::TakeOrder, [w, d]);
    if is_batched {
        tx.push_with(BatchSql::Items.index(), &new_order::items_of(order));
        tx.push_with(BatchSql::Stocks.index(), &new_order::stocks_of(order));
    } else {
        order.lines().iter().for_each(|line| tx.push(Sql::Item, [line.item]));
        for line in used_lines(order) {
            tx.push(Sql::Stock, [d, line.supply_w, line.item]);
        }
    }
    tx.send();
}

async fn take_lines(tx: &mut Tx<'_>, order: &NewOrder, scratch: &mut Scratch) -> Done {
    let n_used = used_lines(order).len();
    for idx in 0..order.n_lines {
        tx.next().await?;
        if idx < n_used {
            new_order::read_item(tx, idx, scratch)?;
        }
    }
    for idx in 0..n_used {
        tx.next().await?;
        new_order::read_stock(tx, idx, scratch)?;
    }
    Ok(())
}

async fn take_all_lines(tx: &mut Tx<'_>, order: &NewOrder, scratch: &mut Scratch) -> Done {
    let used = used_lines(order);
    tx.next().await?;
    new_order::read_items(tx, used, scratch)?;
    tx.next().await?;
    new_order::read_stocks(tx, used, scratch)
}

fn write_order(tx: &mut Tx<'_>, order: &NewOrder, scratch: &mut Scratch) {
    let (NewOrder { w, d, c, .. }, o_id) = (*order, scratch.o_id);
    let used = used_lines(order);
    tx.together();
    let is_all_local = order.is_all_local().into();
    tx.push(Sql::InsertOrder, [o_id, d, w, c, order.n_lines as i64, is_all_local]);
    tx.push(Sql::InsertNewOrder, [o_id, d, w]);
    for (idx, line) in used.iter().enumerate() {
        let left = new_order::take_from(used, idx, scratch);
        if !scratch.forgets_stock {
            tx.push(Sql::TakeStock, taking(order, line, left));
        }
    }
    if !scratch.is_batched {
        for idx in 0..used.len() {
            tx.push_with(Sql::InsertLine.index(), &line_values(order, idx, scratch));
        }
    } else if !order.rolls_back {
        let (sql, values) = new_order::all_line_values(order, scratch);
        tx.push_with(sql, &values[..9 * order.n_lines]);
    }
}

/// As [`others::delivery`]: all districts at once. Returns how many had no new order.
pub(super) async fn delivery(tx: &mut Tx<'_>, inputs: &Inputs, skipped: u64) -> Done<u64> {
    let (w, carrier) = (inputs.w, inputs.carrier);
    let n_districts = DISTRICTS - skipped;
    let orders = take_oldest_orders(tx, w, n_districts).await?;
    let taken = || (1..).zip(orders).filter_map(|(d, order)| Some((d, order?)));
    let n_empty = n_districts - taken().count() as u64;
    tx.together();
    for (d, order) in taken() {
        tx.push(Sql::CustomerOfOrder, [w, d, order]);
        tx.push(Sql::Carrier, [carrier, w, d, order]);
        tx.push(Sql::DeliverLines, [w, d, order]);
        tx.push(Sql::AmountOfOrder, [w, d, order]);
    }
    tx.send();
    let mut charges = [(0, 0); DISTRICTS as usize];
    for (_, charge) in taken().zip(&mut charges) {
        tx.next().await?;
        charge.0 = tx.integer(0, "order of a new order")?;
        tx.pass(2).await?;
        tx.next().await?;
        charge.1 = tx.fixed(0, 2, "line of a new order")?;
    }
    tx.together();
    for ((d, _), (customer, cents)) in taken().zip(charges) {
        tx.push(Sql::PayDelivery, [cents, w, d, customer]);
    }
    tx.send_and_commit(true).await?;
    Ok(n_empty)
}

/// Of each district.
type Oldest = [Option<i64>; DISTRICTS as usize];

/// Begins the transaction and takes the oldest new order of each district that has one.
async fn take_oldest_orders(tx: &mut Tx<'_>, w: i64, n_districts: u64) -> Done<Oldest> {
    let mut orders: Oldest = [None; DISTRICTS as usize];
    let orders_of = &mut orders[..n_districts as usize];
    tx.begin_together();
    (1..=n_districts as i64).for_each(|d| tx.push(Sql::OldestNewOrder, [w, d]));
    tx.send();
    tx.pass(1).await?;
    for order in orders_of.iter_mut() {
        tx.next().await?;
        *order = tx.kept().integer(0, 0);
    }
    tx.together();
    for (d, order) in (1..).zip(orders_of.iter()) {
        if let Some(order) = *order {
            tx.push(Sql::DeleteNewOrder, [w, d, order]);
        }
    }
    tx.send();
    let mut is_gone = [false; DISTRICTS as usize];
    for (order, is_gone) in orders_of.iter().zip(&mut is_gone) {
        *is_gone = order.is_some() && tx.next().await?.affected == 0;
    }
    for (d, (order, is_gone)) in (1..).zip(orders_of.iter_mut().zip(is_gone)) {
        if is_gone {
            // Another delivery has taken it meanwhile.
            *order = others::oldest_order(tx, w, d).await?;
        }
    }
    Ok(orders)
}
