//! Whether the run was TPC-C: consistency conditions before and after the load, mix, skew, remote
//! accesses, and every commit in the tables. The tables count more than what clients say. Shares
//! are judged by how far that many draws can stray, never by a fixed tolerance. With a single
//! warehouse nothing remote is expected.

pub(super) mod conditions;

use crate::skew::{share_row, sum_tolerance};
use crate::{AuditRow, AuditTotals, TextRows, number_in};

use super::TpcC;
use super::client::{DECK, WEIGHTS};
use super::inputs::{Count, Counts, Sums};
use super::rows::{LINES, TableId};
use super::schema::suffix;
use super::settings::{Consistency, DELIVERY, DISTRICTS, KINDS, NEW_ORDER, PAYMENT, Settings};
use super::statements::StatementMode;

/// Most statements of a transaction without conflicts.
const STATEMENTS_MOST: u64 = 92;

/// The query of most tables; its columns are named by [`Found`].
const FOUND: &str = "SELECT (SELECT COUNT(*) FROM orders), \
    (SELECT SUM(d_next_o_id) FROM district), \
    (SELECT COUNT(*) FROM history), \
    (SELECT COUNT(*) FROM history WHERE h_c_w_id <> h_w_id), \
    (SELECT SUM(c_delivery_cnt) FROM customer), \
    (SELECT COUNT(*) FROM order_line WHERE ol_o_id > FIRST), \
    (SELECT COUNT(*) FROM order_line WHERE ol_o_id > FIRST AND ol_supply_w_id <> ol_w_id), \
    (SELECT COALESCE(SUM(ol_quantity), 0) FROM order_line WHERE ol_o_id > FIRST), \
    (SELECT SUM(s_order_cnt) FROM stock), \
    (SELECT SUM(s_remote_cnt) FROM stock), \
    (SELECT SUM(s_ytd) FROM stock), \
    (SELECT COUNT(*) FROM order_line WHERE ol_o_id <= FIRST), \
    (SELECT COUNT(*) FROM item), \
    (SELECT COUNT(*) FROM customer), \
    (SELECT COUNT(*) FROM stock)";

const FOUND_QUICKLY: &str = "SELECT NULL, (SELECT SUM(d_next_o_id) FROM district)";

#[derive(Clone, Copy)]
enum Found {
    Orders,
    NextOrders,
    History,
    RemoteHistory,
    Deliveries,
    Lines,
    RemoteLines,
    Quantity,
    StockOrders,
    StockRemote,
    StockQuantity,
    FirstLines,
    Items,
    Customers,
    Stock,
}

pub(super) fn queries(settings: &Settings) -> Vec<String> {
    let of_set = |set| {
        let suffix = suffix(set, settings.sets);
        let mut queries = Vec::new();
        if settings.consistency != Consistency::None {
            queries.extend(conditions::queries(&suffix, &settings.sizes));
        }
        if settings.consistency == Consistency::BeforeAndAfter {
            let before = "SELECT violations FROM tpcc_before";
            queries.push(format!("{before}{suffix} ORDER BY number"));
        }
        let found = match settings.consistency {
            Consistency::None => FOUND_QUICKLY,
            _ => FOUND,
        };
        let first = settings.sizes.customers.to_string();
        queries.push(conditions::with_suffix(&found.replace("FIRST", &first), &suffix));
        queries
    };
    (0..settings.sets).flat_map(of_set).collect()
}

pub(super) struct Audit<'a> {
    pub(super) plan: &'a TpcC,
    pub(super) counts: &'a Counts,
    pub(super) totals: &'a AuditTotals,
    pub(super) answers: &'a [TextRows],
}

impl Audit<'_> {
    pub(super) fn rows(&self) -> Vec<AuditRow> {
        let sums = self.counts.sums();
        let mut rows = self.conditions();
        rows.extend(self.mix());
        rows.extend(self.counts.keys.audit_rows());
        rows.extend(self.shares(&sums));
        rows.extend(self.remote(&sums));
        rows.extend(self.growth(&sums));
        rows.push(self.statements(&sums));
        rows.extend((0..KINDS.len()).map(|kind| self.round_trips(kind, &sums)));
        rows
    }

    fn n_queries(&self) -> usize {
        match self.plan.settings.consistency {
            Consistency::BeforeAndAfter => 14,
            Consistency::After => 13,
            Consistency::None => 1,
        }
    }

    /// The sum over all sets of the number in this place of the answer to a set's query.
    fn sum(&self, query: usize, row: usize, column: usize) -> Option<i128> {
        let answers = (0..self.plan.settings.sets as usize).map(|set| {
            let answer = self.answers.get(set * self.n_queries() + query)?;
            number_in(answer, row, column)
        });
        answers.sum()
    }

    fn found(&self, what: Found) -> Option<i128> {
        self.sum(self.n_queries() - 1, 0, what as usize)
    }

    fn has_found(&self) -> bool {
        self.plan.settings.consistency != Consistency::None
    }

    fn conditions(&self) -> Vec<AuditRow> {
        let names = conditions::NAMES;
        let row = |when: &str, name: &str, violations| {
            AuditRow::equal(format!("violations {when} the load, condition {name}"), 0, violations)
        };
        let mut rows = Vec::new();
        if self.plan.settings.consistency == Consistency::BeforeAndAfter {
            let before = names.iter().enumerate();
            rows.extend(before.map(|(idx, name)| row("before", name, self.sum(12, idx, 0))));
        }
        if self.has_found() {
            let after = names.iter().enumerate();
            rows.extend(after.map(|(idx, name)| row("after", name, self.sum(idx, 0, 0))));
        }
        rows
    }

    /// Transactions of a kind that the clients know to have ended as they should.
    fn ended(&self, kind: usize) -> u64 {
        self.totals.kinds.get(kind).map_or(0, |totals| totals.committed + totals.rolled_back)
    }

    fn mix(&self) -> Vec<AuditRow> {
        let weights = if self.plan.settings.has_deck { DECK } else { WEIGHTS };
        let total: u64 = weights.iter().sum();
        let n = (0..KINDS.len()).map(|kind| self.ended(kind)).sum();
        let row = |(kind, name): (usize, &&str)| {
            let p = weights[kind] as f64 / total as f64;
            let name = format!("mix: share of {name}");
            share_row(&name, p, (self.ended(kind), n), self.unended())
        };
        KINDS.iter().enumerate().map(row).collect()
    }

    /// Transactions that were drawn and are not among those that ended as they should.
    fn unended(&self) -> u64 {
        let failed: u64 = self.totals.kinds.iter().map(|kind| kind.undone + kind.lost).sum();
        failed + self.totals.in_flight
    }

    fn shares(&self, sums: &Sums) -> Vec<AuditRow> {
        let new_orders = self.totals.kinds.get(NEW_ORDER).copied().unwrap_or_default();
        let ended = new_orders.committed + new_orders.rolled_back;
        let picked = (sums.of(Count::PickedByName), sums.of(Count::CustomersPicked));
        let rolled_back = (new_orders.rolled_back, ended);
        vec![
            share_row("new-orders that are rolled back", 0.01, rolled_back, self.unended()),
            share_row("customers looked up by last name", 0.6, picked, 0),
            lines_of_orders(sums.of(Count::LinesDrawn), sums.of(Count::OrdersDrawn)),
        ]
    }

    fn remote(&self, sums: &Sums) -> Vec<AuditRow> {
        let has_others = self.plan.settings.warehouses > 1;
        let p = |share| if has_others { share } else { 0.0 };
        let note = if has_others { "" } else { " (there is one warehouse: none can be)" };
        let lines = format!("order lines supplied by another warehouse{note}");
        let payments = format!("payments by customers of another warehouse{note}");
        if !self.has_found() {
            let drawn = |hits, n| (sums.of(hits), sums.of(n));
            let remote_lines = drawn(Count::RemoteLinesDrawn, Count::LinesDrawn);
            let remote_payments = drawn(Count::RemotePaymentsDrawn, Count::PaymentsDrawn);
            return vec![
                share_row(&format!("{lines}, as drawn"), p(0.01), remote_lines, 0),
                share_row(&format!("{payments}, as drawn"), p(0.15), remote_payments, 0),
            ];
        }
        let count = |what| self.found(what).and_then(|n| u64::try_from(n).ok());
        let n_paid = count(Found::History)
            .map(|n| n.saturating_sub(self.plan.schema.count(TableId::History)));
        let row = |name: &str, p, hits: Option<u64>, n: Option<u64>| match hits.zip(n) {
            Some(counts) => share_row(name, p, counts, 0),
            None => AuditRow::judged(name, "numbers", "no number", false),
        };
        let mut rows = vec![
            row(&lines, p(0.01), count(Found::RemoteLines), count(Found::Lines)),
            row(&payments, p(0.15), count(Found::RemoteHistory), n_paid),
        ];
        let same = [
            ("lines ordered, as stock counts them", Found::Lines, Found::StockOrders),
            ("remote lines, as stock counts them", Found::RemoteLines, Found::StockRemote),
            ("quantity ordered, as stock has it", Found::Quantity, Found::StockQuantity),
        ];
        rows.extend(same.map(|(name, expected, measured)| self.same(name, expected, measured)));
        rows
    }

    fn same(&self, name: &str, expected: Found, measured: Found) -> AuditRow {
        match self.found(expected) {
            Some(expected) => AuditRow::equal(name, expected, self.found(measured)),
            None => AuditRow::judged(name, "a number", "no number", false),
        }
    }

    fn growth(&self, sums: &Sums) -> Vec<AuditRow> {
        let of = |kind: usize| self.totals.kinds.get(kind).copied().unwrap_or_default();
        let grown = |what, first: u64| Some(self.found(what)? - i128::from(first));
        let row = |name: &str, kind: usize, measured: Option<i128>| {
            let low = i128::from(of(kind).committed);
            let unknown = of(kind).lost + self.totals.in_flight;
            AuditRow::between(name, (low, low + i128::from(unknown)), measured)
        };
        let first = |table| self.plan.schema.count(table);
        let n_districts = first(TableId::District);
        let numbers = grown(Found::NextOrders, n_districts + first(TableId::Orders));
        let mut rows = vec![row("order numbers assigned, 1 per new-order", NEW_ORDER, numbers)];
        if !self.has_found() {
            return rows;
        }
        let orders = grown(Found::Orders, first(TableId::Orders));
        rows.push(row("growth of orders, 1 per new-order", NEW_ORDER, orders));
        let history = grown(Found::History, first(TableId::History));
        rows.push(row("growth of history, 1 per payment", PAYMENT, history));
        rows.push(self.delivered(sums));
        let equal = |name: &str, table, what| {
            let expected = i128::from(first(table));
            AuditRow::equal(format!("rows of the population: {name}"), expected, self.found(what))
        };
        rows.push(equal("items", TableId::Item, Found::Items));
        rows.push(equal("customers", TableId::Customer, Found::Customers));
        rows.push(equal("stock", TableId::Stock, Found::Stock));
        rows.push(equal("order lines", TableId::OrderLine, Found::FirstLines));
        rows
    }

    /// A delivery delivers in all ten districts but those where nothing is to be delivered.
    fn delivered(&self, sums: &Sums) -> AuditRow {
        let totals = self.totals.kinds.get(DELIVERY).copied().unwrap_or_default();
        let n_empty = sums.of(Count::EmptyDistricts);
        let of = |n: u64| i128::from(n * DISTRICTS) - i128::from(n_empty);
        let most = of(totals.committed + totals.lost + self.totals.in_flight);
        let name =
            format!("orders delivered, {DISTRICTS} per delivery, {n_empty} districts found empty");
        AuditRow::between(name, (of(totals.committed), most), self.found(Found::Deliveries))
    }

    /// What the sessions counted, compared with the statements that transactions consist of.
    fn statements(&self, sums: &Sums) -> AuditRow {
        let done: u64 = (0..KINDS.len()).map(|kind| sums.of_kind(kind)[1]).sum();
        let failed = self.unended() - self.totals.in_flight;
        let low = i128::from(done) - i128::from(self.totals.in_flight * STATEMENTS_MOST);
        let high = i128::from(done) + i128::from(failed * (STATEMENTS_MOST + 1));
        let sent = self.totals.tally.statements();
        AuditRow::between("statements sent, all transactions", (low, high), Some(sent.into()))
            .of_clients()
    }

    fn round_trips(&self, kind: usize, sums: &Sums) -> AuditRow {
        let [n_done, n_statements, n_round_trips, n_rows] = sums.of_kind(kind);
        let (statements, rows) = expected_counts(self.plan.statement_mode, kind);
        // What is sent one by one has as many statements as round trips.
        let mut what = "round trips and rows";
        let mut counts = vec![(statements, n_round_trips), (rows, n_rows)];
        if self.plan.settings.is_pipelined {
            what = "round trips, statements and rows";
            counts[0].1 = n_statements;
            counts.insert(0, (expected_round_trips(kind), n_round_trips));
        }
        let name = format!("{what} of {}", KINDS[kind]);
        let expected: Vec<_> = counts.iter().map(|(range, _)| range_text(*range)).collect();
        let expected = expected.join("; ");
        if n_done == 0 {
            return AuditRow::judged(name, expected, "none was done", true).undecided_if(true);
        }
        let mean = |n: u64| n as f64 / n_done as f64;
        let found: Vec<_> = counts.iter().map(|(_, n)| format!("{:.1}", mean(*n))).collect();
        let is_within = |&((low, high), n): &((u64, u64), u64)| {
            (low as f64 - 1e-9..=high as f64 + 1e-9).contains(&mean(n))
        };
        AuditRow::judged(name, expected, found.join("; "), counts.iter().all(is_within))
    }
}

fn range_text((low, high): (u64, u64)) -> String {
    if low == high { low.to_string() } else { format!("{low} to {high}") }
}

/// Minimum and maximum for a kind in pipelines. On MariaDB and MySQL the COMMIT after writes takes
/// another round trip; a payment or order-status by name one more, as does a customer's data; a
/// delivery looks again if another was faster.
fn expected_round_trips(kind: usize) -> (u64, u64) {
    match KINDS[kind] {
        "new_order" => (2, 3),
        "payment" => (2, 5),
        "order_status" => (2, 3),
        "delivery" => (2, STATEMENTS_MOST),
        _ => (2, 2),
    }
}

/// Lines of an order are drawn uniformly, so their variance is (11² − 1) / 12 = 10.
fn lines_of_orders(n_lines: u64, n_orders: u64) -> AuditRow {
    let mean = (LINES.0 + LINES.1) as f64 / 2.0;
    let tolerance = sum_tolerance(n_orders, 10.0, 5.0) / n_orders.max(1) as f64;
    let (low, high) = ((mean - tolerance).max(5.0), (mean + tolerance).min(15.0));
    let measured = n_lines as f64 / n_orders.max(1) as f64;
    let expected = format!("{mean} ({low:.3} to {high:.3} of {n_orders})");
    let is_good = n_orders == 0 || (low..=high).contains(&measured);
    let row = AuditRow::judged("lines of an order", expected, format!("{measured:.3}"), is_good);
    row.undecided_if(low <= 5.0 && high >= 15.0)
}

/// Minimum and maximum statements and rows of a kind. Fewer statements: a new-order was rolled
/// back. A last name has three customers on average, but may have many; a delivery looks again if
/// another was faster.
fn expected_counts(statement_mode: StatementMode, kind: usize) -> ((u64, u64), (u64, u64)) {
    match (statement_mode, KINDS[kind]) {
        (StatementMode::Procedures, "order_status") => ((1, 1), LINES),
        (StatementMode::Procedures, _) => ((1, 1), (1, 1)),
        (StatementMode::Single, "new_order") => ((24, 67), (10, 32)),
        (StatementMode::Batched, "new_order") => ((13, 25), (6, 32)),
        (_, "payment") => ((9, 11), (3, 40)),
        (_, "order_status") => ((5, 6), (7, 50)),
        (_, "delivery") => ((12, STATEMENTS_MOST), (0, 40)),
        _ => ((4, 4), (2, 2)),
    }
}

#[cfg(test)]
mod tests;
