//! Rows of the nine tables as populated by clause 4.3.3.1, each from its number alone.
//!
//! Where the specification has random orders or draws, a row is a function of number and seed, so
//! that any worker can make it:
//!
//! - The customers of a district's first orders are a random permutation with random access.
//! - Numbers of lines are uniform from 5 to 15 in blocks: of 11 orders one has 5 lines, one 6, and
//!   so on, in random order. So frequencies are exact, every block has 110 lines, and any line's
//!   order is known without counting. (Clients' orders draw their lines independently.)
//! - All dates are one fixed moment.

use crate::prelude::*;

use super::random::{
    Constants, NuRand, Permutation, push_brand, push_digits, push_last_name, push_text, push_zip,
};
use super::settings::{DISTRICTS, Sizes};

/// The tables of a set, in the order in which they are made: what is referred to comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableId {
    Item,
    Warehouse,
    District,
    Customer,
    Stock,
    History,
    Orders,
    NewOrder,
    OrderLine,
    /// Not in the specification: the results of the consistency conditions before the load.
    Before,
}

impl TableId {
    pub(super) const ALL: [TableId; 10] = {
        use TableId::*;
        [Item, Warehouse, District, Customer, Stock, History, Orders, NewOrder, OrderLine, Before]
    };
}

pub(super) const LINES: (u64, u64) = (5, 15);

/// Orders of a block, one of each number of lines.
const BLOCK_ORDERS: u64 = LINES.1 - LINES.0 + 1;

const BLOCK_LINES: u64 = (LINES.0 + LINES.1) * BLOCK_ORDERS / 2;

const DATE: &[u8] = b"2026-01-01 00:00:00";

#[derive(Clone, Debug)]
pub(super) struct Rows {
    warehouses: u64,
    sizes: Sizes,
    seed: Seed,
    /// The permutation of last names beyond the first customers.
    name: NuRand,
}

impl Rows {
    pub(super) fn new(warehouses: u64, sizes: Sizes, seed: Seed, constants: Constants) -> Rows {
        let name = NuRand::new(255, constants.last_name_of_load, (0, sizes.names - 1));
        Rows { warehouses, sizes, seed, name }
    }

    fn n_orders(&self) -> u64 {
        self.warehouses * DISTRICTS * self.sizes.customers
    }

    pub(super) fn count(&self, table: TableId) -> u64 {
        match table {
            TableId::Item => self.sizes.items,
            TableId::Warehouse => self.warehouses,
            TableId::District => self.warehouses * DISTRICTS,
            TableId::Customer | TableId::History | TableId::Orders => self.n_orders(),
            TableId::NewOrder => self.warehouses * DISTRICTS * self.sizes.undelivered,
            TableId::OrderLine => {
                let n_orders = self.n_orders();
                let last = self.block(n_orders / BLOCK_ORDERS);
                let rest = &last[..(n_orders % BLOCK_ORDERS) as usize];
                n_orders / BLOCK_ORDERS * BLOCK_LINES + rest.iter().sum::<u64>()
            }
            TableId::Stock => self.warehouses * self.sizes.items,
            TableId::Before => 0,
        }
    }

    pub(super) fn fill(&self, table: TableId, number: u64, row: &mut Row) {
        let random = &mut self.seed.derive("row", number << 4 | table as u64).stream();
        match table {
            TableId::Item => item(number, row, random),
            TableId::Warehouse => self.warehouse(number, row, random),
            TableId::District => self.district(number, row, random),
            TableId::Customer => self.customer(number, row, random),
            TableId::History => self.history(number, row, random),
            TableId::Orders => self.order(number, row, random),
            TableId::NewOrder => self.new_order(number, row),
            TableId::OrderLine => self.order_line(number, row, random),
            TableId::Stock => self.stock(number, row, random),
            TableId::Before => {}
        }
    }

    fn warehouse(&self, number: u64, row: &mut Row, random: &mut RandomStream) {
        push_number(row, number + 1);
        row.push_text_with(|out| push_text(out, (6, 10), random));
        push_address(row, random);
        push_rate(row, random.below(2001));
        push_money(row, DISTRICTS * self.paid_cents());
    }

    /// Cents that the customers of a district have paid initially, 10.00 each.
    fn paid_cents(&self) -> u64 {
        1000 * self.sizes.customers
    }

    fn district(&self, number: u64, row: &mut Row, random: &mut RandomStream) {
        push_number(row, number % DISTRICTS + 1);
        push_number(row, number / DISTRICTS + 1);
        row.push_text_with(|out| push_text(out, (6, 10), random));
        push_address(row, random);
        push_rate(row, random.below(2001));
        push_money(row, self.paid_cents());
        push_number(row, self.sizes.customers + 1);
    }

    /// Warehouse, district (from 1) and place in it; the table has `n` rows a district.
    fn place(number: u64, n: u64) -> (u64, u64, u64) {
        let district = number / n;
        (district / DISTRICTS + 1, district % DISTRICTS + 1, number % n)
    }

    fn customer(&self, number: u64, row: &mut Row, random: &mut RandomStream) {
        let (w, d, idx) = Rows::place(number, self.sizes.customers);
        [idx + 1, d, w].into_iter().for_each(|id| push_number(row, id));
        row.push_text_with(|out| push_text(out, (8, 16), random));
        row.push_text(b"OE");
        let name = if idx < self.sizes.names { idx } else { self.name.draw(random) };
        row.push_text_with(|out| push_last_name(out, name));
        push_address(row, random);
        row.push_text_with(|out| push_digits(out, 16, random));
        row.push_text(DATE);
        row.push_text(if random.below(10) == 0 { b"BC" } else { b"GC" });
        row.push_text(b"50000.00");
        push_rate(row, random.below(5001));
        row.push_text(b"-10.00");
        row.push_text(b"10.00");
        push_number(row, 1);
        push_number(row, 0);
        row.push_text_with(|out| push_text(out, (300, 500), random));
    }

    fn history(&self, number: u64, row: &mut Row, random: &mut RandomStream) {
        let (w, d, idx) = Rows::place(number, self.sizes.customers);
        [idx + 1, d, w, d, w].into_iter().for_each(|id| push_number(row, id));
        row.push_text(DATE);
        row.push_text(b"10.00");
        row.push_text_with(|out| push_text(out, (12, 24), random));
    }

    fn order(&self, number: u64, row: &mut Row, random: &mut RandomStream) {
        let (w, d, idx) = Rows::place(number, self.sizes.customers);
        [idx + 1, d, w].into_iter().for_each(|id| push_number(row, id));
        let district = number / self.sizes.customers;
        let seed = self.seed.derive("customers of orders", district);
        push_number(row, Permutation::new(self.sizes.customers, seed).at(idx) + 1);
        row.push_text(DATE);
        if self.is_delivered(idx) {
            push_number(row, 1 + random.below(10));
        } else {
            row.push_null();
        }
        push_number(row, self.block(number / BLOCK_ORDERS)[(number % BLOCK_ORDERS) as usize]);
        push_number(row, 1);
    }

    fn is_delivered(&self, idx: u64) -> bool {
        idx < self.sizes.customers - self.sizes.undelivered
    }

    fn new_order(&self, number: u64, row: &mut Row) {
        let (w, d, idx) = Rows::place(number, self.sizes.undelivered);
        let first = self.sizes.customers - self.sizes.undelivered;
        [first + idx + 1, d, w].into_iter().for_each(|id| push_number(row, id));
    }

    fn order_line(&self, number: u64, row: &mut Row, random: &mut RandomStream) {
        let (order, line) = self.order_of_line(number);
        let (w, d, idx) = Rows::place(order, self.sizes.customers);
        [idx + 1, d, w, line + 1].into_iter().for_each(|id| push_number(row, id));
        push_number(row, 1 + random.below(self.sizes.items));
        push_number(row, w);
        if self.is_delivered(idx) {
            row.push_text(DATE);
        } else {
            row.push_null();
        }
        push_number(row, 5);
        if self.is_delivered(idx) {
            row.push_text(b"0.00");
        } else {
            push_money(row, 1 + random.below(999_999));
        }
        row.push_text_with(|out| push_text(out, (24, 24), random));
    }

    fn stock(&self, number: u64, row: &mut Row, random: &mut RandomStream) {
        push_number(row, number % self.sizes.items + 1);
        push_number(row, number / self.sizes.items + 1);
        push_number(row, 10 + random.below(91));
        for _ in 0..DISTRICTS {
            row.push_text_with(|out| push_text(out, (24, 24), random));
        }
        (0..3).for_each(|_| push_number(row, 0));
        row.push_text_with(|out| push_brand(out, random));
    }

    fn block(&self, block: u64) -> [u64; BLOCK_ORDERS as usize] {
        let mut lines = [0; BLOCK_ORDERS as usize];
        (LINES.0..).zip(&mut lines).for_each(|(n, slot)| *slot = n);
        self.seed.derive("lines of orders", block).stream().shuffle(&mut lines);
        lines
    }

    /// The order of line `number` of the table, and its place in it; both counted from 0.
    fn order_of_line(&self, number: u64) -> (u64, u64) {
        let block = number / BLOCK_LINES;
        let mut left = number % BLOCK_LINES;
        let mut order = block * BLOCK_ORDERS;
        for n_lines in self.block(block) {
            if left < n_lines {
                break;
            }
            left -= n_lines;
            order += 1;
        }
        (order, left)
    }
}

fn item(number: u64, row: &mut Row, random: &mut RandomStream) {
    push_number(row, number + 1);
    push_number(row, 1 + random.below(10_000));
    row.push_text_with(|out| push_text(out, (14, 24), random));
    push_money(row, 100 + random.below(9901));
    row.push_text_with(|out| push_brand(out, random));
}

fn push_number(row: &mut Row, number: u64) {
    row.push_integer(number as i64);
}

fn push_address(row: &mut Row, random: &mut RandomStream) {
    (0..3).for_each(|_| row.push_text_with(|out| push_text(out, (10, 20), random)));
    let letter = |random: &mut RandomStream| b'A' + random.below(26) as u8;
    let state = [letter(random), letter(random)];
    row.push_text(&state);
    row.push_text_with(|out| push_zip(out, random));
}

/// A share in ten-thousandths, as `0.1234`.
fn push_rate(row: &mut Row, ten_thousandths: u64) {
    row.push_text_with(|out| push_decimal_places(out, ten_thousandths, 4));
}

/// Money in cents, as `12.34`.
fn push_money(row: &mut Row, cents: u64) {
    row.push_text_with(|out| push_decimal_places(out, cents, 2));
}

fn push_decimal_places(out: &mut Vec<u8>, value: u64, places: u32) {
    let unit = 10_u64.pow(places);
    crate::row::push_decimal(out, (value / unit) as i64);
    out.push(b'.');
    for place in (0..places).rev() {
        out.push(b'0' + (value / 10_u64.pow(place) % 10) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(warehouses: u64) -> Rows {
        Rows::new(warehouses, Sizes::FULL, Seed(3), Constants::draw(Seed(3)))
    }

    fn line(rows: &Rows, table: TableId, number: u64) -> Vec<String> {
        let (mut row, mut out) = (Row::new(), Vec::new());
        rows.fill(table, number, &mut row);
        row.write_tab_separated(&mut out);
        let text = String::from_utf8(out).unwrap();
        text.trim_end_matches('\n').split('\t').map(str::to_owned).collect()
    }

    #[test]
    fn counts_are_those_of_the_specification() {
        let rows = rows(2);
        let counts = TableId::ALL.map(|table| rows.count(table));
        assert_eq!(counts[..5], [100_000, 2, 20, 60_000, 200_000]);
        assert_eq!(counts[5..8], [60_000, 60_000, 18_000]);
        // 60,000 orders are 5454 blocks and 6 orders of one more.
        assert!((5454 * 110 + 6 * 5..=5454 * 110 + 6 * 15).contains(&counts[8]), "{}", counts[8]);
        assert_eq!(counts[9], 0);
    }

    #[test]
    fn every_order_has_the_lines_that_it_says() {
        let rows = rows(1);
        let (mut order, mut n_lines, mut frequency) = (0, 0, [0; 16]);
        for number in 0..rows.count(TableId::OrderLine) {
            let (of, line) = rows.order_of_line(number);
            if of != order {
                assert_eq!((of, line), (order + 1, 0));
                let stored = rows.block(order / 11)[(order % 11) as usize];
                assert_eq!(n_lines, stored, "order {order}");
                frequency[n_lines as usize] += 1;
                (order, n_lines) = (of, 0);
            }
            assert_eq!(line, n_lines);
            n_lines += 1;
        }
        assert_eq!(order, rows.n_orders() - 1);
        assert!(frequency[5..].iter().all(|n| (2726..=2729).contains(n)), "{frequency:?}");
    }

    #[test]
    fn rows_are_as_the_specification_has_them() {
        let rows = rows(2);
        let customer = line(&rows, TableId::Customer, 30_000 + 3000 + 371);
        assert_eq!(customer[..3], ["372", "2", "2"]);
        assert_eq!((&*customer[4], &*customer[5]), ("OE", "PRICALLYOUGHT"));
        assert_eq!(customer[16..20], ["-10.00", "10.00", "1", "0"]);
        assert!((300..=500).contains(&customer[20].len()) && customer[10].ends_with("11111"));
        let order = line(&rows, TableId::Orders, 2099);
        assert_eq!(order[..3], ["2100", "1", "1"]);
        assert_ne!(order[5], "\\N");
        assert_eq!(line(&rows, TableId::Orders, 2100)[5], "\\N");
        assert_eq!(line(&rows, TableId::NewOrder, 0), ["2101", "1", "1"]);
        assert_eq!(line(&rows, TableId::NewOrder, 9000), ["2101", "1", "2"]);
        assert_eq!(line(&rows, TableId::District, 13)[..2], ["4", "2"]);
        assert_eq!(line(&rows, TableId::District, 13)[9..], ["30000.00", "3001"]);
        let stock = line(&rows, TableId::Stock, 100_006);
        assert_eq!((&stock[..2], stock.len()), (&["7".to_owned(), "2".to_owned()][..], 17));
        let first = line(&rows, TableId::OrderLine, 0);
        assert_eq!(
            (&first[6][..], &first[7][..], &first[8][..]),
            ("2026-01-01 00:00:00", "5", "0.00")
        );
    }

    #[test]
    fn orders_of_a_district_have_all_customers_once() {
        let rows = rows(1);
        let mut seen: Vec<u64> = (3000..6000)
            .map(|number| line(&rows, TableId::Orders, number)[3].parse().unwrap())
            .collect();
        assert_ne!(seen, (1..=3000).collect::<Vec<_>>());
        seen.sort_unstable();
        assert_eq!(seen, (1..=3000).collect::<Vec<_>>());
    }

    #[test]
    fn a_tenth_of_the_customers_has_bad_credit() {
        let rows = rows(1);
        let n = (0..10_000).filter(|&number| line(&rows, TableId::Customer, number)[13] == "BC");
        assert!((850..1150).contains(&n.count()));
    }
}
