//! What TPC-C's clients draw and send to a scripted connection.

use std::collections::{BTreeMap, BTreeSet};

use dyno_units::Seed;

use crate::catalog::PlanError;
use crate::fake::{Answers, Fake, Ran, Sent, given, made, refused_option, request};
use crate::{Dialect, ErrorClass, KeptRows, MadeWorkload, StatementError, Value};

use super::KINDS;

const DIALECTS: [Dialect; 3] = [Dialect::PostgreSql, Dialect::MySql, Dialect::Sqlite];

fn make(options: &[(&str, &str)]) -> Result<MadeWorkload, PlanError> {
    made(super::NAME, options, 1)
}

fn workload(options: &[(&str, &str)]) -> MadeWorkload {
    make(options).unwrap()
}

/// A server with every row: numbers are 1, even customers have bad credit, and no item is beyond
/// the last.
fn answers() -> Answers {
    Box::new(|sql: &str, values: &[Value<'_>], rows: &mut KeptRows| {
        let last = match values.last() {
            Some(Value::Integer(number)) => *number,
            _ => 1,
        };
        let dist: &[u8] = b"abcdefghijklmnopqrstuvwx";
        if sql.starts_with("SELECT c_discount") {
            rows.clear(4);
            rows.push_text(b"0.1000");
            rows.push_text(b"BARBARBAR");
            rows.push_text(b"GC");
            rows.push_text(b"0.2000");
        } else if sql.starts_with("SELECT i_price") {
            rows.clear(3);
            if last <= 100_000 {
                [&b"1.50"[..], b"name", b"data"].into_iter().for_each(|text| rows.push_text(text));
            }
        } else if sql.starts_with("SELECT s_quantity") {
            rows.clear(3);
            rows.push_integer(10);
            [&b"data"[..], dist].into_iter().for_each(|text| rows.push_text(text));
        } else if sql.starts_with("SELECT c_id FROM customer") {
            rows.clear(1);
            (31..35).for_each(|id| rows.push_integer(id));
        } else if sql.starts_with("SELECT c_first") {
            rows.clear(14);
            (0..9).for_each(|_| rows.push_text(b"x"));
            rows.push_text(if last % 2 == 0 { b"BC" } else { b"GC" });
            (0..4).for_each(|_| rows.push_integer(1));
        } else if sql.contains("i_id IN") {
            batch_of_items(values, rows);
        } else if sql.contains("(s_w_id, s_i_id) IN") {
            batch_of_stock(values, rows);
        } else {
            rows.clear(6);
            (0..6).for_each(|_| rows.push_integer(1));
        }
    })
}

fn integer(value: &Value<'_>) -> i64 {
    match value {
        Value::Integer(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}

fn batch_of_items(values: &[Value<'_>], rows: &mut KeptRows) {
    rows.clear(4);
    let items: BTreeSet<i64> = values.iter().map(integer).collect();
    for item in items.into_iter().filter(|&item| item <= 100_000) {
        rows.push_integer(item);
        [&b"1.50"[..], b"name", b"data"].into_iter().for_each(|text| rows.push_text(text));
    }
}

fn batch_of_stock(values: &[Value<'_>], rows: &mut KeptRows) {
    rows.clear(5);
    let keys: BTreeSet<(i64, i64)> =
        values[1..].chunks(2).map(|pair| (integer(&pair[0]), integer(&pair[1]))).collect();
    for (w, item) in keys.into_iter().filter(|&(_, item)| item <= 100_000) {
        [w, item, 10].into_iter().for_each(|number| rows.push_integer(number));
        [&b"data"[..], b"abcdefghijklmnopqrstuvwx"]
            .into_iter()
            .for_each(|text| rows.push_text(text));
    }
}

fn run_in(dialect: Dialect, options: &[(&str, &str)], n: u64) -> Ran {
    let fake = Fake::new(dialect).answering(answers()).affecting(1);
    fake.run(&workload(options), n)
}

/// The statements of each transaction, BEGIN and COMMIT or ROLLBACK included.
fn transactions(ran: &Ran) -> Vec<&[Sent]> {
    let is_end = |sent: &Sent| matches!(sent.sql.as_str(), "COMMIT" | "ROLLBACK");
    ran.sent.split_inclusive(is_end).collect()
}

/// The kind of a transaction, by what only it sends.
fn kind_of(transaction: &[Sent]) -> usize {
    let has = |text: &str| transaction.iter().any(|sent| sent.sql.contains(text));
    let marks = [
        "INTO orders",
        "INTO history",
        "o_entry_d FROM orders",
        "DELETE FROM new_order",
        "DISTINCT",
    ];
    marks.iter().position(|mark| has(mark)).expect("it is one of five")
}

fn count(transaction: &[Sent], text: &str) -> usize {
    transaction.iter().filter(|sent| sent.sql.starts_with(text)).count()
}

#[test]
fn transactions_send_what_the_specification_has_them_do() {
    for dialect in DIALECTS {
        let ran = run_in(dialect, &[("warehouses", "3")], 600);
        let transactions = transactions(&ran);
        assert_eq!(transactions.len(), 600);
        let mut n_rolled_back = 0;
        for transaction in transactions {
            let n = transaction.len();
            let n_lines = count(transaction, "INSERT INTO order_line");
            let is_rolled_back = transaction[n - 1].sql == "ROLLBACK";
            match (KINDS[kind_of(transaction)], is_rolled_back) {
                ("new_order", false) => assert_eq!(n, 7 + 4 * n_lines),
                ("new_order", true) => {
                    assert_eq!(n, 8 + 4 * n_lines, "an item too many, and the end");
                    n_rolled_back += 1;
                }
                ("payment", _) => assert!((9..=11).contains(&n), "{transaction:?}"),
                ("order_status", _) => assert!((5..=6).contains(&n), "{transaction:?}"),
                ("delivery", _) => assert_eq!(n, 72),
                _ => assert_eq!(n, 4),
            }
        }
        assert!((1..=12).contains(&n_rolled_back), "{n_rolled_back}");
    }
}

#[test]
fn in_sqlite_who_writes_says_so_in_the_beginning() {
    let begins = |dialect| -> BTreeSet<(usize, String)> {
        let ran = run_in(dialect, &[], 300);
        transactions(&ran).iter().map(|all| (kind_of(all), all[0].sql.clone())).collect()
    };
    let of = |words: [&str; 5]| (0..5).zip(words.map(str::to_owned)).collect::<BTreeSet<_>>();
    assert_eq!(begins(Dialect::MySql), of(["BEGIN"; 5]));
    let now = "BEGIN IMMEDIATE";
    assert_eq!(begins(Dialect::Sqlite), of([now, now, "BEGIN", now, "BEGIN"]));
}

#[test]
fn batched_orders_send_one_statement_for_all_lines() {
    for dialect in DIALECTS {
        let ran = run_in(dialect, &[("warehouses", "2"), ("batched", "on")], 400);
        for transaction in transactions(&ran).into_iter().filter(|all| kind_of(all) == 0) {
            let n_taken = count(transaction, "UPDATE stock");
            let is_complete = transaction.last().unwrap().sql == "COMMIT";
            assert_eq!(count(transaction, "INSERT INTO order_line"), usize::from(is_complete));
            assert_eq!(transaction.len(), n_taken + if is_complete { 10 } else { 9 });
        }
    }
}

/// What transactions of one kind send in any order, and how many round trips they take.
fn unordered(transaction: &[Sent]) -> (usize, Vec<String>, usize) {
    let show = |sent: &Sent| match sent.sql.as_str() {
        "SET autocommit = 0" => "BEGIN ".to_owned(),
        // Not what stays: the scripted server forgets what an earlier line of the order has taken.
        sql if sql.starts_with("UPDATE stock") => format!("{sql} {}", sent.values[1..].join(" ")),
        sql => format!("{sql} {}", sent.values.join(" ")),
    };
    let mut sent: Vec<String> = transaction.iter().map(show).collect();
    sent.sort();
    let trips: BTreeSet<usize> = transaction.iter().map(|sent| sent.trip).collect();
    (kind_of(transaction), sent, trips.len())
}

#[test]
fn pipelines_send_the_same_statements_in_fewer_round_trips() {
    for dialect in [Dialect::PostgreSql, Dialect::MySql] {
        for batched in ["off", "on"] {
            let ran = |pipelined| {
                let statement_mode =
                    [("warehouses", "3"), ("batched", batched), ("pipelined", pipelined)];
                run_in(dialect, &statement_mode, 400)
            };
            let (single, pipelined) = (ran("off"), ran("on"));
            let trips_of_commit = usize::from(dialect == Dialect::MySql);
            let pairs = transactions(&single).into_iter().zip(transactions(&pipelined));
            for (single, pipelined) in pairs {
                let rolls_back = pipelined.last().unwrap().sql == "ROLLBACK";
                let (kind, expected, n_single) = unordered(single);
                let (_, sent, n_trips) = unordered(pipelined);
                assert!(sent == expected, "{sent:?}, and one by one {expected:?}");
                assert_eq!(n_single, single.len(), "one round trip each");
                let by_name = count(pipelined, "SELECT c_id FROM customer");
                let bad = count(pipelined, "SELECT c_data");
                let expected = match KINDS[kind] {
                    "new_order" if rolls_back => 2,
                    "new_order" => 2 + trips_of_commit,
                    "payment" => 2 + by_name + bad + trips_of_commit,
                    "order_status" => 2 + by_name,
                    "delivery" => 4 + trips_of_commit,
                    _ => 2,
                };
                assert_eq!(n_trips, expected, "{pipelined:?}");
            }
            let statements = |ran: &Ran| -> Vec<u64> {
                ran.tallies.iter().map(|tally| tally.statements()).collect()
            };
            assert_eq!(statements(&single), statements(&pipelined));
        }
    }
}

#[test]
fn no_commit_of_writes_stands_in_a_pipeline_of_mysql() {
    let ran = run_in(Dialect::MySql, &[("pipelined", "on")], 300);
    for transaction in transactions(&ran) {
        assert_eq!(transaction[0].sql, "SET autocommit = 0");
        let n_of_last =
            transaction.iter().filter(|sent| sent.trip == transaction.last().unwrap().trip);
        let is_alone = n_of_last.count() == 1;
        let writes = !matches!(KINDS[kind_of(transaction)], "order_status" | "stock_level");
        let commits = transaction.last().unwrap().sql == "COMMIT";
        assert_eq!(is_alone, writes && commits, "{transaction:?}");
    }
}

#[test]
fn an_error_amid_a_pipeline_is_rolled_back_and_all_is_sent_again() {
    let error = || StatementError::new(ErrorClass::Deadlock, "1213", "no");
    for (dialect, is_passed_over) in [(Dialect::PostgreSql, true), (Dialect::MySql, false)] {
        let mut fake = Fake::new(dialect).answering(answers()).affecting(1);
        (0..3).for_each(|_| fake.succeed_next());
        fake.fail_next(error());
        let ran = fake.run(&workload(&[("pipelined", "on")]), 2);
        let all = transactions(&ran);
        assert_eq!((all.len(), all[0].last().unwrap().sql.as_str()), (3, "ROLLBACK"));
        let n_sent = all[0].len() - 1;
        // BEGIN, two replies, the error, and what comes after it.
        let reported = ran.tallies[0].statements();
        assert_eq!(reported, if is_passed_over { 4 } else { n_sent as u64 });
        let again = &all[1][..n_sent];
        let texts = |sent: &[Sent]| -> Vec<String> {
            sent.iter().map(|sent| format!("{} {:?}", sent.sql, sent.values)).collect()
        };
        assert_eq!(texts(&all[0][..n_sent]), texts(again));
    }
}

#[test]
fn rows_that_are_missing_amid_a_pipeline_leave_nothing_behind() {
    // The district is not reported; the replies about the lines are still to come.
    let mut inner = answers();
    let answers: Answers = Box::new(move |sql: &str, values: &[Value<'_>], rows: &mut KeptRows| {
        match sql.contains("d_next_o_id, d_tax") {
            true => rows.clear(2),
            false => inner(sql, values, rows),
        }
    });
    let fake = Fake::new(Dialect::MySql).answering(answers).affecting(1);
    let ran = fake.run(&workload(&[("pipelined", "on")]), 60);
    let orders = transactions(&ran).into_iter().filter(|all| count(all, "SELECT c_discount") > 0);
    assert!(orders.clone().count() > 10);
    assert!(orders.map(|all| all.last().unwrap().sql.as_str()).all(|sql| sql == "ROLLBACK"));
}

/// The values of all statements that begin so.
fn values<'a>(ran: &'a Ran, begins: &'a str) -> impl Iterator<Item = Vec<i64>> + 'a {
    ran.sent
        .iter()
        .filter(move |sent| sent.sql.starts_with(begins))
        .map(|sent| sent.values.iter().map(|value| value.parse().unwrap_or(0)).collect())
}

#[test]
fn a_terminal_stays_at_home_and_reaches_out_as_often_as_it_should() {
    let ran = run_in(Dialect::MySql, &[("warehouses", "4")], 4000);
    let (mut n_lines, mut n_remote) = (0, 0);
    let mut others = BTreeSet::new();
    for line in values(&ran, "INSERT INTO order_line") {
        assert_eq!(line[2], 1, "the first client is at home in the first warehouse");
        n_lines += 1;
        n_remote += i32::from(line[5] != 1);
        others.insert(line[5]);
        assert_eq!(line[7], line[6] * 150);
    }
    assert!((n_lines / 150..n_lines / 70).contains(&n_remote), "{n_remote} of {n_lines}");
    assert_eq!(others, BTreeSet::from([1, 2, 3, 4]));
    let paid: Vec<Vec<i64>> = values(&ran, "INSERT INTO history").collect();
    let n_remote = paid.iter().filter(|row| row[2] != row[4]).count();
    assert!((paid.len() / 9..paid.len() / 5).contains(&n_remote), "{n_remote} of {}", paid.len());
    assert!(paid.iter().all(|row| row[4] == 1 && (100..=500_000).contains(&row[5])));
    let taken: Vec<Vec<i64>> = values(&ran, "UPDATE stock").collect();
    assert!(taken.iter().all(|row| row[2] == i64::from(row[3] != 1)), "s_remote_cnt");
    assert!(taken.iter().all(|row| row[0] == if row[1] == 0 { 10 } else { 101 - row[1] }));
}

#[test]
fn with_one_warehouse_nothing_is_remote() {
    let ran = run_in(Dialect::MySql, &[], 2000);
    assert!(values(&ran, "INSERT INTO order_line").all(|row| row[5] == 1));
    assert!(values(&ran, "INSERT INTO history").all(|row| row[2] == 1));
}

#[test]
fn a_customer_of_a_name_is_the_one_in_the_middle() {
    let ran = run_in(Dialect::MySql, &[], 500);
    let mut n = 0;
    for pair in ran.sent.windows(2).filter(|pair| pair[0].sql.starts_with("SELECT c_id FROM")) {
        // Of 31 to 34 the second.
        assert_eq!(pair[1].values[2], "32", "{pair:?}");
        n += 1;
    }
    assert!(n > 100, "{n}");
}

#[test]
fn bad_credit_is_written_down() {
    let ran = run_in(Dialect::MySql, &[], 500);
    let n_bad = values(&ran, "SELECT c_data").count();
    let written = ran.sent.iter().filter(|sent| sent.sql.contains("c_data = ?")).count();
    assert!(n_bad > 0 && n_bad == written, "{n_bad} {written}");
}

#[test]
fn lines_take_stock_in_key_order_by_default() {
    let is_sorted = |sort_lines| {
        let ran = run_in(Dialect::MySql, &[("warehouses", "9"), ("sort_lines", sort_lines)], 200);
        transactions(&ran).iter().all(|transaction| {
            let lines = transaction.iter().filter(|sent| sent.sql.starts_with("UPDATE stock"));
            let number = |text: &String| text.parse::<i64>().unwrap();
            lines.map(|sent| (number(&sent.values[3]), number(&sent.values[4]))).is_sorted()
        })
    };
    assert!(is_sorted("on"));
    assert!(!is_sorted("off"));
}

#[test]
fn clients_are_spread_over_sets_warehouses_and_districts() {
    let warehouse = |options: &[(&str, &str)], client_idx| -> (String, i64) {
        let fake = Fake::of(client_idx, 40).answering(answers()).affecting(1);
        let ran = fake.run(&workload(options), 60);
        let sent = ran.sent.iter().find(|sent| sent.sql.starts_with("UPDATE warehouse"));
        let sent = sent.expect("there is a payment");
        (sent.sql[7..17].to_owned(), sent.values[1].parse().unwrap())
    };
    let sets = [("tables", "2"), ("warehouses", "3")];
    assert_eq!(warehouse(&sets, 0), ("warehouse1".to_owned(), 1));
    assert_eq!(warehouse(&sets, 1), ("warehouse2".to_owned(), 1));
    assert_eq!(warehouse(&sets, 2), ("warehouse1".to_owned(), 2));
    assert_eq!(warehouse(&sets, 6), ("warehouse1".to_owned(), 1));
    let paced = [("warehouses", "3"), ("mode", "paced")];
    assert_eq!(warehouse(&paced, 9).1, 1);
    assert_eq!(warehouse(&paced, 10).1, 2);
    let terminal = |client_idx| {
        let options = super::spec().options;
        let options = crate::options::Options::resolve(&options, &BTreeMap::new()).unwrap();
        let settings = super::settings::Settings::read(&options).unwrap();
        super::inputs::Terminal::of(&settings, client_idx)
    };
    let districts: BTreeSet<u64> = (0..10).map(|client_idx| terminal(client_idx).d).collect();
    assert_eq!(districts.len(), 10);
}

#[test]
fn a_call_is_one_round_trip() {
    for dialect in [Dialect::MySql, Dialect::PostgreSql] {
        // New-orders that the procedure does not roll back are those that are not to be.
        let answer: Answers = Box::new(|_: &str, values: &[Value<'_>], rows: &mut KeptRows| {
            rows.clear(1);
            let is_order = values.len() == 6;
            let rolls_back = matches!(values.last(), Some(Value::Text(lines))
                if lines.chunks(15).any(|line| line.starts_with(b"100001")));
            rows.push_integer(i64::from(is_order && rolls_back));
        });
        let fake = Fake::new(dialect).answering(answer);
        let ran = fake.run(&workload(&[("procedures", "on")]), 300);
        assert_eq!(ran.sent.len(), 300);
        assert!(ran.tallies.iter().all(|tally| tally.statements() == 1));
    }
}

#[track_caller]
fn check_refused(options: &[(&str, &str)], expected: &str) {
    let error = refused_option(make(options));
    assert_eq!(error.name, expected, "{error}");
}

#[test]
fn senseless_options_are_refused() {
    check_refused(&[("warehouses", "0")], "warehouses");
    check_refused(&[("warehouses", "2M")], "warehouses");
    check_refused(&[("tables", "0")], "tables");
    check_refused(&[("mode", "fast")], "mode");
    check_refused(&[("mode", "paced"), ("home", "off")], "home");
    check_refused(&[("procedures", "on"), ("batched", "on")], "batched");
    check_refused(&[("procedures", "on"), ("pipelined", "on")], "pipelined");
}

#[test]
fn a_small_warehouse_has_a_fiftieth_of_the_rows() {
    let rows = |size: &str, name: &str| {
        let tables = workload(&[("warehouses", "2"), ("size", size)]).tables(Dialect::Sqlite);
        tables.iter().find(|table| table.name == name).unwrap().rows
    };
    for table in ["item", "customer", "stock", "history", "orders", "new_order"] {
        assert_eq!(50 * rows("small", table), rows("full", table), "{table}");
    }
    // Ten lines an order, but for a block of eleven orders that is cut off.
    let [small, full] = ["small", "full"].map(|size| rows(size, "order_line"));
    assert!((50 * small).abs_diff(full) < full / 100, "{small} {full}");
    for table in ["warehouse", "district"] {
        assert_eq!(rows("small", table), rows("full", table), "{table}");
    }
    check_refused(&[("size", "tiny")], "size");
}

#[test]
fn what_a_product_does_not_have_is_refused() {
    for option in ["procedures", "foreign_keys", "pipelined"] {
        let workload = workload(&[(option, "on")]);
        let reason = workload.check(Dialect::Sqlite).unwrap_err();
        assert!(reason.contains(option) && reason.contains("SQLite"), "{reason}");
        assert_eq!(workload.check(Dialect::MySql), Ok(()));
        assert_eq!(workload.check(Dialect::PostgreSql), Ok(()));
    }
}

#[test]
fn a_mode_that_is_not_the_loads_is_refused() {
    let check = |mode, is_open| workload(&[("mode", mode)]).check_load(is_open);
    assert!(check("paced", true).unwrap_err().contains("cannot be combined with a rate"));
    assert!(check("open", false).unwrap_err().contains("needs a rate"));
    assert!(check("unpaced", true).unwrap_err().contains("its mode is `open`"));
    for (mode, is_open) in [("paced", false), ("open", true), ("unpaced", false)] {
        assert_eq!(check(mode, is_open), Ok(()));
    }
}

#[test]
fn paced_terminals_are_ten_for_each_warehouse() {
    let steps = |options: &[(&str, &str)], clients| {
        let planned = super::spec().plan(&given(options), request(clients), Seed(1));
        planned.map(|workload| workload.steps().len()).map_err(|error| error.to_string())
    };
    let paced = [("mode", "paced"), ("warehouses", "2"), ("tables", "3")];
    assert_eq!(steps(&paced, 60), Ok(0));
    let reason = steps(&paced, 61).unwrap_err();
    assert!(reason.contains("60 in all") && reason.contains("`warehouses`"), "{reason}");
    assert_eq!(steps(&[], 500), Ok(0));
}

#[test]
fn tables_are_made_parents_first_and_with_the_keys_that_are_asked_for() {
    for dialect in DIALECTS {
        let tables = workload(&[("tables", "2")]).tables(dialect);
        assert_eq!(tables.len(), 20);
        assert_eq!((&*tables[0].name, &*tables[19].name), ("item1", "tpcc_before2"));
        let after = tables[9].after.join("\n");
        assert_eq!(after.matches("INSERT INTO tpcc_before1").count(), 12);
        assert!(!after.contains("PROCEDURE") && !after.contains("FOREIGN"));
        let keyed = tables.iter().filter(|table| {
            table.create.contains("PRIMARY KEY")
                || table.after.iter().any(|sql| sql.contains("PRIMARY KEY"))
        });
        assert_eq!(keyed.count(), 18, "all but history");
    }
    let given = [("foreign_keys", "on"), ("procedures", "on"), ("consistency", "after")];
    let after = workload(&given).tables(Dialect::MySql)[9].after.join("\n");
    assert_eq!(after.matches("ADD FOREIGN KEY").count(), 10);
    assert_eq!(after.matches("CREATE PROCEDURE").count(), 5);
    assert!(!after.contains("INSERT INTO tpcc_before"));
}
