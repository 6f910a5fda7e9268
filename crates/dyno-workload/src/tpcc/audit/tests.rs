//! Audits of right and wrong answers.

use dyno_units::Seed;

use crate::{AuditRow, AuditTotals, KindTotals, MadeWorkload, TextRows, fake};

use super::super::small_spec;

/// Columns of what is found in the tables after 450 new-orders, 430 payments and 40 deliveries.
const FOUND: [i64; 15] = [1650, 0, 1630, 0, 400, 4500, 0, 24_750, 4500, 0, 24_750, 0, 0, 0, 0];

struct Case {
    workload: MadeWorkload,
    totals: AuditTotals,
    answers: Vec<TextRows>,
}

fn text(number: i64) -> Option<String> {
    Some(number.to_string())
}

impl Case {
    /// Two warehouses, everything as it should be, according to the tables and the totals.
    fn new(consistency: &str) -> Case {
        let given = [("warehouses", "2"), ("consistency", consistency)];
        let planned = small_spec(None).plan(&fake::given(&given), fake::request(1), Seed(3));
        let workload = MadeWorkload::new(planned.unwrap());
        let kind =
            |committed, rolled_back| KindTotals { committed, rolled_back, ..KindTotals::default() };
        let kinds = vec![kind(450, 5), kind(430, 0), kind(40, 0), kind(40, 0), kind(40, 0)];
        let tables = workload.tables(crate::Dialect::MySql);
        let rows = |name: &str| tables.iter().find(|table| table.name == name).unwrap().rows;
        let mut found = FOUND;
        found[1] = (20 + rows("orders") + 450) as i64;
        found[3] = 64;
        (found[6], found[9]) = (45, 45);
        found[11] = rows("order_line") as i64;
        found[12] = rows("item") as i64;
        found[13] = rows("customer") as i64;
        found[14] = rows("stock") as i64;
        let zero = vec![vec![text(0)]];
        let found = vec![found.map(text).to_vec()];
        let answers = match consistency {
            "none" => vec![found],
            "after" => [vec![zero; 12], vec![found]].concat(),
            _ => [vec![zero.clone(); 12], vec![vec![vec![text(0)]; 12], found]].concat(),
        };
        let totals = AuditTotals { kinds, ..AuditTotals::default() };
        assert_eq!(workload.audit_queries(crate::Dialect::MySql).len(), answers.len());
        Case { workload, totals, answers }
    }

    fn rows(&self) -> Vec<AuditRow> {
        self.workload.audit(&self.totals, &self.answers)
    }

    #[track_caller]
    fn check(&self, expected_to_fail: &[&str]) {
        let rows = self.rows();
        let failed: Vec<&str> =
            rows.iter().filter(|row| !row.pass).map(|row| row.name.as_str()).collect();
        let is_as_expected = failed.len() == expected_to_fail.len()
            && failed.iter().zip(expected_to_fail).all(|(row, part)| row.contains(part));
        assert!(is_as_expected, "{failed:#?}");
    }

    fn found(&mut self, column: usize, number: i64) {
        self.answers.last_mut().unwrap()[0][column] = text(number);
    }
}

#[test]
fn what_is_right_passes() {
    Case::new("before-and-after").check(&[]);
    Case::new("after").check(&[]);
    Case::new("none").check(&[]);
    assert_eq!(Case::new("before-and-after").rows().len(), 54);
}

#[test]
fn each_condition_is_reported_before_and_after() {
    let mut case = Case::new("before-and-after");
    case.answers[12][7][0] = text(2);
    case.answers[6][0][0] = text(1);
    case.check(&["before the load, condition 8:", "after the load, condition 7:"]);
    // A table of notes that is empty is no proof.
    case = Case::new("before-and-after");
    case.answers[12].clear();
    assert_eq!(case.rows().iter().filter(|row| !row.pass).count(), 12);
}

#[test]
fn what_is_missing_and_what_is_too_much_is_found() {
    let check = |column, number, expected: &[&str]| {
        let mut case = Case::new("after");
        case.found(column, number);
        case.check(expected);
    };
    check(0, 1649, &["growth of orders"]);
    check(0, 1651, &["growth of orders"]);
    check(1, 0, &["order numbers"]);
    check(2, 1629, &["growth of history"]);
    check(3, 0, &["payments by customers"]);
    check(4, 360, &["orders delivered"]);
    check(5, 4499, &["lines ordered"]);
    check(8, 0, &["lines ordered"]);
    check(9, 44, &["remote lines"]);
    check(10, 1, &["quantity ordered"]);
    check(14, 3999, &["population: stock"]);
}

#[test]
fn a_set_without_an_order_adds_nothing_and_no_answer_is_no_zero() {
    let workload = Case::new("after").workload;
    let queries = workload.audit_queries(crate::Dialect::MySql);
    assert!(queries[12].contains("COALESCE(SUM(ol_quantity), 0)"), "{}", queries[12]);
    let mut case = Case::new("after");
    case.answers[12][0][7] = None;
    case.check(&["quantity ordered"]);
}

#[test]
fn rollbacks_that_never_come_are_found_where_there_are_enough_orders() {
    let judge = |committed| {
        let mut case = Case::new("none");
        case.totals.kinds[0] = KindTotals { committed, ..KindTotals::default() };
        let name = "new-orders that are rolled back";
        let row = case.rows().into_iter().find(|row| row.name == name).unwrap();
        (row.pass, row.is_undecided)
    };
    assert_eq!([judge(450), judge(5000)], [(true, true), (false, false)]);
}

#[test]
fn what_was_in_flight_may_have_committed() {
    let mut case = Case::new("after");
    case.totals.in_flight = 1;
    case.totals.kinds[1].lost = 2;
    case.found(0, 1651);
    case.found(2, 1633);
    case.check(&[]);
    case.found(2, 1634);
    case.check(&["growth of history"]);
}

#[test]
fn a_wrong_mix_is_found() {
    let mut case = Case::new("none");
    case.totals.kinds[4].committed = 100;
    case.check(&["mix: share of stock_level"]);
    case = Case::new("none");
    case.totals.kinds[0].rolled_back = 60;
    case.check(&["new-orders that are rolled back"]);
}
