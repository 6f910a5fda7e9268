//! New-order (clause 2.4.2): the transaction that is counted.

use crate::{Done, Value};

use super::inputs::{LINES_MOST, Line, NewOrder};
use super::random::is_brand;
use super::rows::LINES;
use super::statements::{BatchSql, Sql};
use super::transaction::{Transaction as Tx, missing};

/// The values of a statement that inserts all lines.
type AllLines<'a> = [Value<'a>; 9 * LINES_MOST];

/// Length of `s_dist_xx`.
const DIST_LEN: usize = 24;

/// What has been read for the lines of an order, in memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    price: [i64; LINES_MOST],
    quantity: [i64; LINES_MOST],
    dist: [[u8; DIST_LEN]; LINES_MOST],
    is_brand: [bool; LINES_MOST],
    /// One statement for all items, one for all stock, one for all lines.
    pub(super) is_batched: bool,
    /// The number of the order.
    pub(super) o_id: i64,
    /// A fault, for tests.
    pub(super) forgets_stock: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Cents, with discount and taxes.
    pub(super) total: i64,
    pub(super) brands: u64,
}

/// What is shown of an order; none if it was rolled back.
pub(super) type Placed = Done<Option<Shown>>;

/// Tax and discount rates, in ten-thousandths.
pub(super) struct Rates {
    pub(super) discount: i64,
    pub(super) w_tax: i64,
    pub(super) d_tax: i64,
}

/// Places an order, statement by statement.
pub(super) async fn perform(tx: &mut Tx<'_>, order: &NewOrder, scratch: &mut Scratch) -> Placed {
    let NewOrder { w, d, c, .. } = *order;
    tx.begin(true).await?;
    tx.ask(Sql::OrderCustomer, [w, w, d, c]).await?;
    let discount = tx.fixed(0, 4, "customer of a new order")?;
    let w_tax = tx.fixed(3, 4, "warehouse of a new order")?;
    tx.ask(Sql::NextOrder, [w, d]).await?;
    let o_id = tx.integer(0, "district of a new order")?;
    scratch.o_id = o_id;
    let d_tax = tx.fixed(1, 4, "district of a new order")?;
    tx.ask(Sql::TakeOrder, [w, d]).await?;
    let n_lines = order.n_lines as i64;
    let is_all_local = order.is_all_local().into();
    tx.ask(Sql::InsertOrder, [o_id, d, w, c, n_lines, is_all_local]).await?;
    tx.ask(Sql::InsertNewOrder, [o_id, d, w]).await?;
    let is_complete = match scratch.is_batched {
        true => all_lines(tx, order, scratch).await?,
        false => line_by_line(tx, order, scratch).await?,
    };
    if !is_complete {
        tx.roll_back_as_designed().await?;
        return Ok(None);
    }
    tx.commit().await?;
    Ok(Some(shown(order.lines(), scratch, &Rates { discount, w_tax, d_tax })))
}

/// The order's total (clause 2.4.2.2), rounded to cents.
pub(super) fn shown(lines: &[Line], scratch: &Scratch, rates: &Rates) -> Shown {
    const ONE: i64 = 10_000;
    let sum: i64 = lines.iter().zip(scratch.price).map(|(line, price)| line.quantity * price).sum();
    let factor = (ONE - rates.discount) * (ONE + rates.w_tax + rates.d_tax);
    let total = (sum * factor + ONE * ONE / 2) / (ONE * ONE);
    let brands = scratch.is_brand[..lines.len()].iter().filter(|&&is_brand| is_brand).count();
    Shown { total, brands: brands as u64 }
}

/// What stays of a stock of `stock` when `quantity` are taken: below 10 it is filled up by 91.
fn after_taking(stock: i64, quantity: i64) -> i64 {
    if stock >= quantity + 10 { stock - quantity } else { stock - quantity + 91 }
}

/// False if there is no such item as that of the last line.
async fn line_by_line(tx: &mut Tx<'_>, order: &NewOrder, scratch: &mut Scratch) -> Done<bool> {
    for (idx, line) in order.lines().iter().enumerate() {
        tx.ask(Sql::Item, [line.item]).await?;
        if tx.kept().n_rows() == 0 && order.rolls_back && idx + 1 == order.n_lines {
            return Ok(false);
        }
        read_item(tx, idx, scratch)?;
        tx.ask(Sql::Stock, [order.d, line.supply_w, line.item]).await?;
        read_stock(tx, idx, scratch)?;
        if !scratch.forgets_stock {
            let left = after_taking(scratch.quantity[idx], line.quantity);
            tx.ask(Sql::TakeStock, taking(order, line, left)).await?;
        }
        let values = line_values(order, idx, scratch);
        tx.ask_with(Sql::InsertLine, &values).await?;
    }
    Ok(true)
}

/// Keeps the item of a line, whose row has just been returned.
pub(super) fn read_item(tx: &Tx<'_>, idx: usize, scratch: &mut Scratch) -> Done {
    scratch.price[idx] = tx.fixed(0, 2, "item of an order line")?;
    scratch.is_brand[idx] = tx.kept().text(0, 2).is_some_and(is_brand);
    Ok(())
}

/// Keeps the stock of a line, whose row has just been returned; its item is known.
pub(super) fn read_stock(tx: &Tx<'_>, idx: usize, scratch: &mut Scratch) -> Done {
    scratch.quantity[idx] = tx.integer(0, "stock of an order line")?;
    scratch.is_brand[idx] &= tx.kept().text(0, 1).is_some_and(is_brand);
    copy_dist(tx.kept().text(0, 2), &mut scratch.dist[idx])
}

/// The values by which a line is taken from its stock, of which `left` stay.
pub(super) fn taking(order: &NewOrder, line: &Line, left: i64) -> [i64; 5] {
    let is_remote = i64::from(line.supply_w != order.w);
    [left, line.quantity, is_remote, line.supply_w, line.item]
}

/// Stock left after line `idx` takes its quantity; a further line of the same stock finds that.
pub(super) fn take_from(used: &[Line], idx: usize, scratch: &mut Scratch) -> i64 {
    let line = &used[idx];
    let left = after_taking(scratch.quantity[idx], line.quantity);
    for (other, quantity) in used.iter().zip(&mut scratch.quantity).skip(idx + 1) {
        if (other.supply_w, other.item) == (line.supply_w, line.item) {
            *quantity = left;
        }
    }
    left
}

/// The lines of items that there are.
pub(super) fn used_lines(order: &NewOrder) -> &[Line] {
    &order.lines()[..order.n_lines - usize::from(order.rolls_back)]
}

fn copy_dist(from: Option<&[u8]>, to: &mut [u8; DIST_LEN]) -> Done {
    let from = from.filter(|text| text.len() == DIST_LEN);
    to.copy_from_slice(from.ok_or_else(|| missing("district information of stock"))?);
    Ok(())
}

pub(super) fn line_values<'a>(order: &NewOrder, idx: usize, of: &'a Scratch) -> [Value<'a>; 9] {
    let Line { item, supply_w, quantity } = order.lines[idx];
    let (number, amount) = (idx as i64 + 1, quantity * of.price[idx]);
    let integers = [of.o_id, order.d, order.w, number, item, supply_w, quantity, amount, 0];
    let mut values = integers.map(Value::Integer);
    values[8] = Value::Text(&of.dist[idx]);
    values
}

/// As [`line_by_line`], with one statement for all items, one for all stock, one for all lines.
async fn all_lines(tx: &mut Tx<'_>, order: &NewOrder, scratch: &mut Scratch) -> Done<bool> {
    let used = used_lines(order);
    tx.execute(BatchSql::Items.index(), &items_of(order)).await?;
    read_items(tx, used, scratch)?;
    tx.execute(BatchSql::Stocks.index(), &stocks_of(order)).await?;
    read_stocks(tx, used, scratch)?;
    for (idx, line) in used.iter().enumerate() {
        let left = take_from(used, idx, scratch);
        if !scratch.forgets_stock {
            tx.ask(Sql::TakeStock, taking(order, line, left)).await?;
        }
    }
    if order.rolls_back {
        return Ok(false);
    }
    let (sql, values) = all_line_values(order, scratch);
    tx.execute(sql, &values[..9 * order.n_lines]).await?;
    Ok(true)
}

/// The line of this number; if there are fewer, the last one.
fn line_or_last(order: &NewOrder, idx: usize) -> &Line {
    &order.lines[idx.min(order.n_lines - 1)]
}

/// The values of [`BatchSql::Items`].
pub(super) fn items_of(order: &NewOrder) -> [Value<'static>; LINES_MOST] {
    std::array::from_fn(|idx| Value::Integer(line_or_last(order, idx).item))
}

/// The values of [`BatchSql::Stocks`].
pub(super) fn stocks_of(order: &NewOrder) -> [Value<'static>; 1 + 2 * LINES_MOST] {
    let mut keys = [Value::Integer(order.d); 1 + 2 * LINES_MOST];
    for idx in 0..LINES_MOST {
        let line = line_or_last(order, idx);
        keys[1 + 2 * idx] = Value::Integer(line.supply_w);
        keys[2 + 2 * idx] = Value::Integer(line.item);
    }
    keys
}

/// The index of the statement that inserts all lines, and its values: nine for each line.
pub(super) fn all_line_values<'a>(order: &NewOrder, scratch: &'a Scratch) -> (usize, AllLines<'a>) {
    let mut values = [Value::Null; 9 * LINES_MOST];
    for (idx, nine) in values.chunks_exact_mut(9).take(order.n_lines).enumerate() {
        nine.copy_from_slice(&line_values(order, idx, scratch));
    }
    (BatchSql::InsertLines.index() + order.n_lines - LINES.0 as usize, values)
}

/// Keeps the items of all lines, whose rows have just been returned.
pub(super) fn read_items(tx: &Tx<'_>, used: &[Line], scratch: &mut Scratch) -> Done {
    let kept = tx.kept();
    for (idx, line) in used.iter().enumerate() {
        let row = (0..kept.n_rows()).find(|&row| kept.integer(row, 0) == Some(line.item));
        let row = row.ok_or_else(|| missing("item of an order line"))?;
        let price = kept.fixed(row, 1, 2);
        scratch.price[idx] = price.ok_or_else(|| missing("price of an item"))?;
        scratch.is_brand[idx] = kept.text(row, 3).is_some_and(is_brand);
    }
    Ok(())
}

/// Keeps the stock of all lines, whose rows have just been returned; their items are known.
pub(super) fn read_stocks(tx: &Tx<'_>, used: &[Line], scratch: &mut Scratch) -> Done {
    let kept = tx.kept();
    for (idx, line) in used.iter().enumerate() {
        let is_of = |&row: &usize| {
            kept.integer(row, 1) == Some(line.item) && kept.integer(row, 0) == Some(line.supply_w)
        };
        let row =
            (0..kept.n_rows()).find(is_of).ok_or_else(|| missing("stock of an order line"))?;
        let quantity = kept.integer(row, 2);
        scratch.quantity[idx] = quantity.ok_or_else(|| missing("quantity of stock"))?;
        scratch.is_brand[idx] &= kept.text(row, 3).is_some_and(is_brand);
        copy_dist(kept.text(row, 4), &mut scratch.dist[idx])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_filled_up_where_less_than_ten_would_stay() {
        let check = |stock, quantity, expected| assert_eq!(after_taking(stock, quantity), expected);
        check(20, 10, 10);
        check(19, 10, 100);
        check(11, 1, 10);
        check(10, 1, 100);
    }

    #[test]
    fn totals_have_discount_and_taxes() {
        let line = |quantity| Line { item: 1, supply_w: 1, quantity };
        let mut scratch = Scratch::default();
        (scratch.price[0], scratch.price[1]) = (1000, 333);
        scratch.is_brand[1] = true;
        let rates = Rates { discount: 1000, w_tax: 500, d_tax: 1500 };
        // (2 × 10.00 + 3 × 3.33) × 0.9 × 1.2 = 32.3892
        let shown = shown(&[line(2), line(3)], &scratch, &rates);
        assert_eq!(shown, Shown { total: 3239, brands: 1 });
    }
}
