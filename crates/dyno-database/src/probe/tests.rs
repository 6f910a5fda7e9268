//! Counters, names and numbers.

use dyno_host::Readings;
use dyno_units::reading::prelude::*;
use dyno_workload::NamedRows;
use proptest::prelude::*;

use super::*;

const ITEMS: &[Item] = &[
    gauge("level", reading("x.level", Count, "level", "a level")),
    rate("ticks", reading("x.ticks_per_s", PerSecond, "ticks", "ticks")),
    rate("micros", reading("x.waited_s_per_s", Waiters, "waiting", "time")).times(1e-6),
];

#[test]
fn counters_become_rates() {
    let mut table = Table::new(ITEMS);
    let mut read = |second: u64, level: f64, ticks: f64| {
        let values = [("level", level), ("ticks", ticks), ("micros", ticks * 1e6)];
        let mut readings = Readings::new();
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        table.put(Nanoseconds::from_secs(second), values, &mut readings);
        readings.into_iter().collect::<Vec<_>>()
    };
    let name = |name: &str, value: f64| (name.to_owned(), value);
    assert_eq!(read(1, 5.0, 100.0), [name("x.level", 5.0)]);
    let expected =
        [name("x.level", 6.0), name("x.ticks_per_s", 50.0), name("x.waited_s_per_s", 50.0)];
    assert_eq!(read(3, 6.0, 200.0), expected);
    // The server restarted: no rate, and the next one is from there.
    assert_eq!(read(4, 6.0, 10.0), [name("x.level", 6.0)]);
    assert_eq!(read(5, 6.0, 11.0)[1], name("x.ticks_per_s", 1.0));
    // Twice at the same moment: no time has passed.
    assert_eq!(read(5, 6.0, 12.0), [name("x.level", 6.0)]);
}

#[test]
fn numbers_are_what_servers_write() {
    let check = |text: &str, expected: Option<f64>| assert_eq!(number(text), expected, "{text}");
    check("12", Some(12.0));
    check(" -0.5 ", Some(-0.5));
    check("1.5e3", Some(1500.0));
    check("t", Some(1.0));
    check("OFF", Some(0.0));
    check("", None);
    check("NaN", None);
    check("inf", None);
    check("1e999", None);
    check("12 kB", None);
}

#[track_caller]
fn check_sql(columns: &[&str], rows: &[&[Option<&str>]], expected: &[(&str, f64)]) {
    let answer = NamedRows {
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        rows: rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.map(str::to_owned)).collect())
            .collect(),
    };
    let expected: Vec<_> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    assert_eq!(sql::numbers(&answer), expected);
}

#[test]
fn a_users_answer_is_rows_of_names_or_one_row_of_columns() {
    check_sql(
        &["n", "v"],
        &[&[Some("a"), Some("1")], &[Some("b"), Some("2")]],
        &[("a", 1.0), ("b", 2.0)],
    );
    check_sql(&["n", "v"], &[&[Some("a"), None], &[Some("b"), Some("2")]], &[("b", 2.0)]);
    // One row of two numbers is columns; so is one with more of them.
    check_sql(&["n", "v"], &[&[Some("1"), Some("2")]], &[("n", 1.0), ("v", 2.0)]);
    check_sql(&["n", "v", "w"], &[&[Some("1"), None, Some("x")]], &[("n", 1.0)]);
    check_sql(&["n"], &[&[Some("1")], &[Some("2")]], &[]);
    check_sql(&["n"], &[], &[]);
}

#[test]
fn what_is_rare_is_due_in_time() {
    let mut every = Every::new(Nanoseconds::from_secs(5));
    let due: Vec<u64> = (0..12)
        .filter(|second| every.is_due(Nanoseconds::from_millis(second * 1000 - second % 2)))
        .collect();
    assert_eq!(due, [0, 5, 10]);
}

proptest! {
    #[test]
    fn no_text_makes_a_number_panic(text in ".{0,20}") {
        prop_assert!(number(&text).is_none_or(f64::is_finite));
    }
}
