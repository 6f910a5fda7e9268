//! Refused declarations, rows and distributions, and what clients send.

use std::collections::BTreeMap;

use dyno_model::{OptionError, Tree};
use dyno_units::Seed;

use super::*;
use crate::fake::{Fake, request};
use crate::{Cell, KeptRows, MadeWorkload, Value};

/// The options of a study that declares these tables and transactions, in JSON.
fn given(tables: &str, transactions: &str) -> BTreeMap<String, String> {
    let option = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    BTreeMap::from([option("table", tables), option("transaction", transactions)])
}

fn planned(tables: &str, transactions: &str) -> MadeWorkload {
    let files = BTreeMap::from([("words".to_owned(), "alpha\nbeta\n".to_owned())]);
    let plan = spec(files).plan(&given(tables, transactions), request(1), Seed(5));
    MadeWorkload::new(plan.unwrap())
}

const GO: &str = r#"{"go": {"steps": [{"sql": "SELECT 1"}]}}"#;

/// A table `t` of so many rows with a key and one more column of this generator.
fn with_value(rows: u64, value: &str) -> String {
    format!(
        r#"{{"t": {{"rows": {rows}, "columns": {{
            "id": {{"type": "int", "key": true, "value": {{"sequence": 1}}}},
            "x": {{"type": "text", "value": {value}}}}}}}}}"#
    )
}

/// The texts of the second column.
fn column(rows: u64, value: &str) -> Vec<Option<String>> {
    let workload = planned(&with_value(rows, value), GO);
    let mut row = Row::new();
    let texts = (0..rows).map(|number| {
        row.clear();
        workload.fill_row(0, number, &mut row);
        let cell = row.cells()[1];
        match cell {
            Cell::Null => None,
            Cell::Integer(number) => Some(number.to_string()),
            Cell::Text { .. } => Some(String::from_utf8(row.text(cell).to_vec()).unwrap()),
        }
    });
    texts.collect()
}

fn numbers(rows: u64, value: &str) -> Vec<f64> {
    column(rows, value).into_iter().map(|text| text.unwrap().parse().unwrap()).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn bounds(numbers: &[f64]) -> (f64, f64) {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    (least, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

#[test]
fn generators_give_what_they_say() {
    let uniform = numbers(20_000, r#"{"uniform": [-10, 10]}"#);
    assert_eq!(bounds(&uniform), (-10.0, 10.0));
    assert!(mean(&uniform).abs() < 0.2);
    let fractions = numbers(20_000, r#"{"uniform": [0, 1], "decimals": 3}"#);
    assert!((mean(&fractions) - 0.5).abs() < 0.01 && bounds(&fractions) == (0.0, 1.0));
    let normal = numbers(20_000, r#"{"normal": [0, 100], "mean": 50, "deviation": 10}"#);
    let deviation = mean(&normal.iter().map(|x| (x - 50.0).powi(2)).collect::<Vec<_>>()).sqrt();
    assert!((mean(&normal) - 50.0).abs() < 0.5 && (deviation - 10.0).abs() < 0.3, "{deviation}");
    let cut = numbers(5_000, r#"{"normal": [0, 5], "mean": 0, "deviation": 100}"#);
    assert_eq!(bounds(&cut), (0.0, 5.0));
    // The share of the first of n by Zipf's law with exponent 1 is 1 / H(n).
    let zipf = numbers(20_000, r#"{"zipf": [1, 100], "theta": 1}"#);
    let first = zipf.iter().filter(|x| **x == 1.0).count() as f64 / 20_000.0;
    assert!((first - 1.0 / 5.187).abs() < 0.02, "{first}");
    assert_eq!(bounds(&zipf), (1.0, 100.0));
    let chosen = column(20_000, r#"{"one_of": ["a", 7], "weights": [1, 3]}"#);
    let share = chosen.iter().filter(|text| text.as_deref() == Some("7")).count() as f64 / 20_000.0;
    assert!((share - 0.75).abs() < 0.02, "{share}");
    let some = column(20_000, r#"{"letters": [1, 3], "null": "25%"}"#);
    let share = some.iter().filter(|text| text.is_none()).count() as f64 / 20_000.0;
    assert!((share - 0.25).abs() < 0.02, "{share}");
    assert!(some.iter().flatten().all(|text| (1..=3).contains(&text.len())));
}

#[test]
fn values_follow_from_others_and_from_the_number_of_the_row() {
    let texts = |value: &str| -> Vec<String> {
        column(3, value).into_iter().map(|text| text.unwrap_or("NULL".to_owned())).collect()
    };
    assert_eq!(texts(r#"{"sequence": 10, "step": -3}"#), ["10", "7", "4"]);
    assert_eq!(texts(r#"{"expression": ":id * 2 + 1"}"#), ["3", "5", "7"]);
    assert_eq!(texts(r#"{"expression": ":id / 2.0"}"#), ["0.5", "1", "1.5"]);
    assert_eq!(texts(r#"{"text": "n{id}"}"#), ["n1", "n2", "n3"]);
    assert_eq!(
        texts(r#"{"map": {"1": "one", "2": 2}, "of": "id", "otherwise": "many"}"#),
        ["one", "2", "many"]
    );
    assert_eq!(texts(r#"{"map": {"1": "one"}, "of": "id"}"#), ["one", "NULL", "NULL"]);
    assert_eq!(texts("\"same\""), ["same"; 3]);
    assert_eq!(texts(r#"{"date": ["2024-02-29", "2024-02-29"]}"#), ["2024-02-29"; 3]);
    let words = column(50, r#"{"lines": "words"}"#);
    assert!(words.iter().flatten().all(|word| ["alpha", "beta"].contains(&word.as_str())));
    let words = ListFile::new("a\nb".to_owned());
    assert!(Arc::ptr_eq(&words.items().0, &words.items().0));
    let ids = column(100, r#"{"uuid": true}"#);
    for id in ids.iter().flatten() {
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
        assert!(id.as_bytes()[14] == b'4' && b"89ab".contains(&id.as_bytes()[19]), "{id}");
    }
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), 100);
}

#[test]
fn plans_and_rows_are_pure() {
    let table = with_value(100, r#"{"letters": 10}"#);
    let rows = |seed: u64, order: &mut dyn Iterator<Item = u64>| {
        let plan = spec(BTreeMap::new()).plan(&given(&table, GO), request(1), Seed(seed)).unwrap();
        let rows = order.map(|number| {
            let mut row = Row::new();
            plan.fill_row(0, number, &mut row);
            let mut out = Vec::new();
            row.write_tab_separated(&mut out);
            (number, out)
        });
        rows.collect::<BTreeMap<_, _>>()
    };
    assert_eq!(rows(1, &mut (0..100)), rows(1, &mut (0..100).rev()));
    assert_ne!(rows(1, &mut (0..100)), rows(2, &mut (0..100)));
    let plan = planned(&table, GO);
    let other = planned(&with_value(100, r#"{"letters": 11}"#), GO);
    assert_eq!(plan.outline().fills, planned(&table, GO).outline().fills);
    assert_ne!(plan.outline().fills, other.outline().fills);
    let mut scaled = given(&table, GO);
    scaled.insert("scale".to_owned(), "3".to_owned());
    let plan = spec(BTreeMap::new()).plan(&scaled, request(1), Seed(1)).unwrap();
    assert_eq!(plan.tables(Dialect::Sqlite)[0].rows, 300);
}

#[test]
fn tables_are_made_in_each_dialect() {
    let table = r#"{"Or der2": {"rows": 1, "columns": {"id": {"type": "int"}}}}"#;
    let error = spec(BTreeMap::new()).plan(&given(table, GO), request(1), Seed(1)).err().unwrap();
    assert!(error.to_string().contains("cannot be the name of a table"), "{error}");
    let table = r#"{"Order": {"rows": 5, "indexes": [["a`b"]], "columns": {
        "id": {"type": "bigint", "key": true, "identity": true, "value": {"sequence": 1}},
        "a`b": {"type": {"mysql": "int", "postgresql": "int4", "sqlite": "int"}}}}}"#;
    let workload = planned(table, GO);
    let text = |dialect| {
        let table = workload.tables(dialect).remove(0);
        assert_eq!(table.columns, ["id"]);
        format!("{}; {}", table.create, table.after.join("; "))
    };
    assert_eq!(
        text(Dialect::MySql),
        "CREATE TABLE `Order` (`id` bigint AUTO_INCREMENT, `a``b` int, PRIMARY KEY (`id`)); \
         CREATE INDEX `Order_i1` ON `Order` (`a``b`); ANALYZE TABLE `Order`"
    );
    assert_eq!(
        text(Dialect::PostgreSql),
        "CREATE TABLE \"Order\" (\"id\" bigint GENERATED BY DEFAULT AS IDENTITY, \"a`b\" int4, \
         PRIMARY KEY (\"id\")); CREATE INDEX \"Order_i1\" ON \"Order\" (\"a`b\"); \
         SELECT setval(pg_get_serial_sequence('\"Order\"', 'id'), MAX(\"id\")) FROM \"Order\"; \
         VACUUM ANALYZE \"Order\""
    );
    assert_eq!(
        text(Dialect::Sqlite),
        "CREATE TABLE \"Order\" (\"id\" INTEGER NOT NULL, \"a`b\" int, PRIMARY KEY (\"id\")); \
         CREATE INDEX \"Order_i1\" ON \"Order\" (\"a`b\"); ANALYZE \"Order\""
    );
}

const BUY: &str = r#"{"buy": {"let": {"c": {"uniform": [7, 7]}}, "steps": [
    {"sql": "SELECT id, qty FROM t WHERE c = :c", "read": ["id", "qty"], "rows": "0.."},
    {"if": ":qty > 0", "times": 2, "let": {"n": {"sequence": 100}},
     "sql": "UPDATE t SET qty = :qty, n = :n WHERE id = :id"},
    {"if": ":qty IS NULL", "roll_back": true},
    {"sql": "INSERT INTO t VALUES (:id, :id)", "rows": 1}]}}"#;

/// A client whose reading gets this quantity.
fn bought(quantity: Option<i64>, affected: u64, n: u64) -> (MadeWorkload, crate::fake::Ran) {
    let workload = planned(&with_value(10, "1"), BUY);
    let answers = Box::new(move |_: &str, _: &[Value<'_>], rows: &mut KeptRows| {
        rows.clear(2);
        if let Some(quantity) = quantity {
            rows.push_integer(42);
            rows.push_integer(quantity);
        }
    });
    let fake = Fake::new(Dialect::MySql).answering(answers).affecting(affected);
    let ran = fake.run(&workload, n);
    (workload, ran)
}

#[test]
fn steps_follow_what_was_read() {
    let (_, ran) = bought(Some(3), 1, 1);
    assert_eq!(
        ran.sent_text(),
        "BEGIN\nSELECT id, qty FROM t WHERE c = ? 7\nUPDATE t SET qty = ?, n = ? WHERE id = ? 3 100 \
         42\nUPDATE t SET qty = ?, n = ? WHERE id = ? 3 101 42\nINSERT INTO t VALUES (?, ?) 42 \
         42\nCOMMIT\n"
    );
    let (_, ran) = bought(Some(0), 1, 1);
    assert_eq!(
        ran.sent_text(),
        "BEGIN\nSELECT id, qty FROM t WHERE c = ? 7\nINSERT INTO t VALUES (?, ?) 42 42\nCOMMIT\n"
    );
    let (_, ran) = bought(None, 1, 1);
    assert_eq!(ran.sent_text(), "BEGIN\nSELECT id, qty FROM t WHERE c = ? 7\nROLLBACK\n");
}

#[test]
fn statements_of_any_number_of_values_get_them_in_their_order() {
    // At the bounds of the ways that `send` has for few values and for many.
    for n in [0, 1, 2, 3, 4, 5, 8, 9, 32, 33, 255] {
        let join = |item: &dyn Fn(usize) -> String, between: &str| {
            (0..n).map(item).collect::<Vec<_>>().join(between)
        };
        let lets = join(&|nth| format!(r#""v{nth}": {}"#, 100 + nth), ", ");
        let names = join(&|nth| format!(":v{nth}"), ", ");
        let transaction = format!(
            r#"{{"go": {{"let": {{{lets}}}, "steps": [{{"sql": "SELECT f({names})"}}]}}}}"#
        );
        let ran = Fake::new(Dialect::MySql).run(&planned("{}", &transaction), 1);
        let expected: Vec<String> = (0..n).map(|nth| (100 + nth).to_string()).collect();
        assert_eq!(ran.sent[0].values, expected, "{n} values");
    }
}

#[test]
fn without_tables_nothing_is_made_and_no_rows_are_audited() {
    let workload = planned(NO_TABLES, GO);
    assert!(workload.outline().makes_nothing && workload.tables(Dialect::MySql).is_empty());
    assert!(workload.audit_queries(Dialect::MySql).is_empty());
    assert!(!planned(&with_value(1, "1"), GO).outline().makes_nothing);
}

#[test]
fn other_numbers_of_rows_are_errors() {
    let (_, ran) = bought(Some(0), 2, 1);
    assert!(ran.sent_text().ends_with("INSERT INTO t VALUES (?, ?) 42 42\nROLLBACK\n"));
}

#[test]
fn the_audit_counts_what_was_committed_and_finds_what_is_missing() {
    let judged = |workload: &MadeWorkload, found: &str| {
        let answers = vec![vec![vec![Some(found.to_owned())]]];
        workload.audit(&AuditTotals::default(), &answers).remove(0)
    };
    let (workload, _) = bought(Some(0), 1, 5);
    assert_eq!(workload.audit_queries(Dialect::MySql), ["SELECT (SELECT COUNT(*) FROM `t`)"]);
    assert!(judged(&workload, "15").pass);
    let wrong = judged(&workload, "14");
    assert!(!wrong.pass && wrong.expected == "15", "{wrong:?}");
    // What was refused is rolled back and not counted.
    let (workload, _) = bought(Some(0), 2, 5);
    assert!(judged(&workload, "10").pass && !judged(&workload, "11").pass);
    let unclear = r#"{"go": {"steps": [{"sql": "REPLACE INTO t VALUES (1, 1)"}]}}"#;
    let row = judged(&planned(&with_value(10, "1"), unclear), "99");
    assert!(row.is_undecided && row.expected.starts_with("not audited"), "{row:?}");
}

#[test]
fn counts_of_other_processes_are_added() {
    let (here, _) = bought(Some(0), 1, 5);
    let (there, _) = bought(Some(0), 1, 3);
    here.clients.add_counts(&there.clients.counts());
    let answers = vec![vec![vec![Some("18".to_owned())]]];
    assert!(here.audit(&AuditTotals::default(), &answers)[0].pass);
}

/// The problem of a declaration: its place and what is wrong.
#[track_caller]
fn check(tables: &str, transactions: &str, place: &str, why: &str) {
    let found = spec(BTreeMap::new()).problems(&given(tables, transactions));
    let shown: Vec<String> = found
        .iter()
        .map(|problem| format!("{}: {}", problem.path.join("/"), problem.message))
        .collect();
    let is_it = |text: &&String| text.starts_with(&format!("{place}: ")) && text.contains(why);
    assert!(shown.iter().any(|text| is_it(&text)), "{why}: {shown:#?}");
}

#[test]
fn wrong_generators_are_refused() {
    let check = |value: &str, place: &str, why: &str| {
        let place = format!("table/t/columns/x/value{place}");
        check(&with_value(10, value), GO, &place, why);
    };
    check("{}", "", "none of these keys is a generator");
    check("[]", "", "expected a number, a text");
    check(r#"{"uniform": [1, 2], "theta": 1}"#, "/theta", "unknown key");
    check(r#"{"uniform": 5}"#, "/uniform", "two bounds");
    check(r#"{"uniform": [0.5, 2]}"#, "/uniform", "more than 0 decimal places");
    check(r#"{"uniform": [1, 1e300]}"#, "/uniform", "too large");
    check(r#"{"uniform": [1, 2], "decimals": 10}"#, "/decimals", "from 0 to 9");
    check(r#"{"zipf": [1, 2], "theta": -1}"#, "/theta", "not in [0, 20]");
    check(r#"{"normal": [1, 2], "mean": 3}"#, "/mean", "not within the bounds");
    check(r#"{"normal": [1, 1]}"#, "", "standard deviation");
    check(r#"{"text": "{y}"}"#, "/text", "`y` is not known");
    check(r#"{"letters": -1}"#, "/letters", "expected a length");
    let long = format!(r#"{{"text": "{}"}}"#, "@".repeat((1 << 24) + 1));
    check(&long, "/text", "more than 16777216 bytes");
    check(r#"{"date": ["2024-02-30", "2024-03-01"]}"#, "/date", "the first and the last");
    check(r#"{"date": ["2024-03-02", "2024-03-01"]}"#, "/date", "after the last");
    check(r#"{"one_of": []}"#, "/one_of", "nothing to choose");
    check(r#"{"one_of": [1, 2], "weights": [0, 0]}"#, "/weights", "not all 0");
    check(r#"{"one_of": [1, 2], "weights": [1]}"#, "/weights", "2 whole numbers");
    check(r#"{"lines": "nothing"}"#, "/lines", "was not read");
    check(r#"{"expression": "1 +"}"#, "/expression", "syntax error");
    check(r#"{"map": {"1": 2}}"#, "", "needs `of`");
    check(r#"{"uuid": false}"#, "/uuid", "uuid = true");
    check(r#"{"sequence": 1, "step": 0}"#, "/step", "other than 0");
    check(r#"{"sequence": "t"}"#, "/sequence", "the first number");
    check(r#"{"uuid": true, "null": 2}"#, "/null", "a share");
}

#[test]
fn wrong_tables_and_transactions_are_refused() {
    check("{}", "{}", "transaction", "no transactions");
    check(r#"{"t": {"columns": {}}}"#, GO, "table/t", "how many rows");
    check(r#"{"t": {"rows": 1}}"#, GO, "table/t", "no columns");
    check(r#"{"t": {"rows": -1}}"#, GO, "table/t/rows", "a whole number");
    check(r#"{"t": {"rows": 1, "columns": {"a": {}}}}"#, GO, "table/t/columns/a", "no type");
    let columns = r#""columns": {"a": {"type": "int"}}"#;
    let index = format!(r#"{{"t": {{"rows": 1, {columns}, "indexes": [["b"]]}}}}"#);
    check(&index, GO, "table/t/indexes/0", "no column `b`");
    let twice = format!(r#"{{"t": {{"rows": 1, {columns}}}, "T": {{"rows": 1, {columns}}}}}"#);
    check(&twice, GO, "table", "differ only in case");
    let go = |inner: &str| format!(r#"{{"go": {{{inner}}}}}"#);
    let one = |place: &str, inner: &str, why: &str| check("{}", &go(inner), place, why);
    one("transaction/go", "", "no steps");
    one("transaction/go/steps", r#""steps": []"#, "no steps");
    one("transaction/go/steps/0", r#""steps": [{}]"#, "either a statement or a rollback");
    one("transaction/go/steps/0/sql", r#""steps": [{"sql": "COMMIT"}]"#, "cannot be a statement");
    one(
        "transaction/go/steps/0/rows",
        r#""steps": [{"sql": "SELECT 1", "rows": "2..1"}]"#,
        "number of rows",
    );
    one("transaction/go/steps/0/times", r#""steps": [{"sql": "SELECT 1", "times": 0}]"#, "from 1");
    one("transaction/go/think", r#""steps": [{"sql": "SELECT 1"}], "think": 5"#, "a duration");
    one(
        "transaction/go/let/rows",
        r#""let": {"rows": 1}, "steps": [{"sql": "SELECT :rows"}]"#,
        "latest statement",
    );
    one(
        "transaction/go/let/a b",
        r#""let": {"a b": 1}, "steps": [{"sql": "SELECT 1"}]"#,
        "cannot be the name",
    );
    one(
        "transaction/go/steps/0/sql/oracle",
        r#""steps": [{"sql": {"oracle": "SELECT 1"}}]"#,
        "unknown key",
    );
}

/// Whoever checks a study makes some rows of its tables.
#[test]
fn texts_of_a_row_and_of_a_transaction_are_bounded() {
    let letters = r#"{"letters": 16777216}"#;
    let columns: Vec<String> =
        (0..5).map(|nth| format!(r#""c{nth}": {{"type": "text", "value": {letters}}}"#)).collect();
    let table = format!(r#"{{"t": {{"rows": 1, "columns": {{{}}}}}}}"#, columns.join(", "));
    check(&table, GO, "table/t/columns", "a row may have more than 64 MiB of text");
    let lets: Vec<String> = (0..5).map(|nth| format!(r#""v{nth}": {letters}"#)).collect();
    let go = format!(
        r#"{{"go": {{"let": {{{}}}, "steps": [{{"sql": "SELECT :v0"}}]}}}}"#,
        lets.join(", ")
    );
    check("{}", &go, "transaction/go", "its values may have more than 64 MiB of text");
}

#[test]
fn a_problem_lists_some_of_many_names() {
    let lets: Vec<String> = (0..30).map(|nth| format!(r#""v{nth:02}": 1"#)).collect();
    let check = |value: &str, sql: &str, place: &str, expected: &str| {
        let lets = format!(r#"{}, "w": {value}"#, lets.join(", "));
        let go = format!(r#"{{"go": {{"let": {{{lets}}}, "steps": [{{"sql": "{sql}"}}]}}}}"#);
        check("{}", &go, place, expected);
    };
    let place = "transaction/go/let/w/text";
    check(r#"{"text": "{x}"}"#, "SELECT :w", place, "v17, v18 and 11 more");
    check("1", "SELECT :x", "transaction/go/steps/0/sql", "`:v17`, `:v18` and 12 more");
}

#[test]
fn all_problems_are_found_at_once() {
    let found = spec(BTreeMap::new()).problems(&given(
        &with_value(10, r#"{"uniform": 5}"#),
        r#"{"go": {"steps": [{"sql": "SELECT :a"}, {"sql": "SELECT :b"}]}}"#,
    ));
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn without_a_definition_it_cannot_be_planned() {
    let result = spec(BTreeMap::new()).plan(&BTreeMap::new(), request(1), Seed(1));
    let Err(PlanError::Option(OptionError { name, reason })) = result else {
        panic!("it was planned")
    };
    assert!(name == "transaction" && reason.contains("no transactions"), "{name}: {reason}");
}

#[test]
fn a_sequence_keeps_clients_in_one_process() {
    let sequence = r#"{"go": {"let": {"n": {"sequence": 1}}, "steps": [{"sql": "SELECT :n"}]}}"#;
    assert!(planned("{}", sequence).check_apart().is_err());
    assert!(planned("{}", GO).check_apart().is_ok());
    assert!(Tree::from_text(sequence).is_ok());
}

/// The numbers that clients draw in a trial that begins with these answers.
fn drawn(lets: &str, names: &str, answers: &[Option<&str>]) -> Result<Vec<i64>, String> {
    let go = format!(r#"{{"go": {{"let": {{{lets}}}, "steps": [{{"sql": "SELECT {names}"}}]}}}}"#);
    let workload = planned("{}", &go);
    let row = |answer: &Option<&str>| vec![vec![answer.map(str::to_owned)]];
    workload.clients.begin(&answers.iter().map(row).collect::<Vec<_>>())?;
    Ok(Fake::of(0, 1).run(&workload, 4).integers().collect())
}

#[test]
fn sequences_go_on_after_the_largest_value_of_a_column() {
    let one = r#""a": {"sequence": 50, "after": "orders.id"}"#;
    assert_eq!(
        planned(
            "{}",
            &format!(r#"{{"go": {{"let": {{{one}}}, "steps": [{{"sql": "SELECT :a"}}]}}}}"#)
        )
        .first_queries(),
        ["SELECT MAX(id) FROM orders"]
    );
    let check = |answer: Option<&str>, expected: &[i64]| {
        assert_eq!(drawn(one, ":a", &[answer]).unwrap(), expected);
    };
    check(Some("7000"), &[7001, 7002, 7003, 7004]);
    check(Some("-3"), &[-2, -1, 0, 1]);
    check(None, &[50, 51, 52, 53]);
    for wrong in ["2024-01-01", "1.5", "", "9223372036854775807", "18446744073709551615"] {
        let why = drawn(one, ":a", &[Some(wrong)]).unwrap_err();
        assert!(why.contains("after orders.id") && why.contains(wrong), "{why}");
    }
    // Without the answers of a server, each begins with its own number.
    assert_eq!(drawn(r#""a": {"sequence": 5}"#, ":a", &[]).unwrap(), [5, 6, 7, 8]);
}

#[test]
fn sequences_after_one_column_share_its_numbers() {
    let two = r#""a": {"sequence": 50, "after": "`s`.`t`.`id`"}, "b": {"sequence": 60, "after": "`s`.`t`.`id`"}"#;
    let numbers = |first: i64| (first..first + 8).collect::<Vec<_>>();
    assert_eq!(drawn(two, ":a, :b", &[Some("9")]).unwrap(), numbers(10));
    assert_eq!(drawn(two, ":a, :b", &[None]).unwrap(), numbers(60));
    let two = two.replace("50,", r#"50, "step": 10,"#).replace("60,", r#"60, "step": 10,"#);
    let tens: Vec<i64> = numbers(0).iter().map(|n| 10 + 10 * n).collect();
    assert_eq!(drawn(&two, ":a, :b", &[Some("9")]).unwrap(), tens);
    let other = two.replace("`id`", "`no`").replace("\"a\"", "\"c\"").replace("\"b\"", "\"d\"");
    let all = drawn(&format!("{two}, {other}"), ":a, :b, :c, :d", &[Some("9"), Some("9")]);
    assert_eq!(all.unwrap().len(), 16);
}

#[test]
fn files_with_too_many_lines_are_refused() {
    let check = |n_lines: usize, is_refused: bool| {
        let file = Arc::new(ListFile::new("\n".repeat(n_lines)));
        let column = with_value(5, r#"{"lines": "words"}"#);
        let found = problems(&given(&column, GO), &Files::from([("words".to_owned(), file)]));
        let is_it = |one: &DefinitionProblem| one.message.contains("more than 4000000 lines");
        assert_eq!(found.iter().any(is_it), is_refused, "{found:#?}");
    };
    check(3, false);
    check(LINES_MOST + 1, true);
}

#[test]
fn what_a_sequence_cannot_go_on_after_is_refused() {
    let check = |lets: &str, place: &str, words: &str| {
        let go = format!(r#"{{"go": {{"let": {{{lets}}}, "steps": [{{"sql": "SELECT :a"}}]}}}}"#);
        let found = problems(&given("{}", &go), &Files::new());
        let is_it = |one: &DefinitionProblem| {
            one.path.join("/").ends_with(place) && one.message.contains(words)
        };
        assert!(found.iter().any(is_it), "{found:#?}");
    };
    for wrong in
        ["id", "orders.", ".id", "(SELECT 1).id", "t.id; DROP TABLE t", "t.`id", "t.id -- "]
    {
        check(
            &format!(r#""a": {{"sequence": 1, "after": "{wrong}"}}"#),
            "a/after",
            "a table and a column",
        );
    }
    check(r#""a": {"sequence": 1, "step": -1, "after": "t.id"}"#, "a/after", "at least 1");
    check(
        r#""b": {"sequence": 1, "after": "t.id"}, "a": {"sequence": 1, "step": 2, "after": "t.id"}"#,
        "a/after",
        "another `step`",
    );
    let column = with_value(5, r#"{"sequence": 1, "after": "t.id"}"#);
    let found = problems(&given(&column, GO), &Files::new());
    assert!(found[0].message.contains("of transactions"), "{found:#?}");
}

/// A declaration of one table and one transaction, with one more key at one place; the keys of all problems.
fn problems_with(place: &str, key: &str, value: &str) -> Vec<String> {
    let more = |at: &str| match at == place {
        true => format!(", \"{key}\": {value}"),
        false => String::new(),
    };
    let replaced = |at: &str, own: &str, text: &str| match at == place && own == key {
        true => String::new(),
        false => text.to_owned(),
    };
    let tables = format!(
        r#"{{"t": {{"scaled": true {}{}{}}}}}"#,
        replaced("table", "rows", r#", "rows": 2"#),
        replaced(
            "table",
            "columns",
            &format!(
                r#", "columns": {{"a": {{"type": "int", "value": 1}}, "x": {{ {} {} }}}}"#,
                replaced("column", "type", r#""type": "int""#),
                more("column").trim_start_matches(if key == "type" { ", " } else { "" }),
            )
        ),
        if key == "scaled" { String::new() } else { more("table") },
    );
    let tables = match (place, key) {
        ("table", "scaled") => tables.replacen("true", value, 1),
        _ => tables,
    };
    let transactions = format!(
        r#"{{"go": {{"weight": 1 {}{}}}}}"#,
        replaced(
            "transaction",
            "steps",
            &format!(
                r#", "steps": [{{"times": 1 {}{}}}]"#,
                replaced("step", "sql", r#", "sql": "SELECT 1""#),
                if key == "times" { String::new() } else { more("step") },
            )
        ),
        if key == "weight" { String::new() } else { more("transaction") },
    );
    let transactions = match (place, key) {
        ("transaction", "weight") => transactions.replacen('1', value, 1),
        ("step", "times") => {
            transactions.replacen("\"times\": 1", &format!("\"times\": {value}"), 1)
        }
        _ => transactions,
    };
    let found = problems(&given(&tables, &transactions), &Files::new());
    found.into_iter().map(|problem| problem.path.join(".")).collect()
}

#[test]
fn every_key_that_is_offered_is_read() {
    use dyno_model::declared::{COLUMN, GENERATORS, STEP, TABLE, TRANSACTION};
    // Each of them is wrong behind most keys, and a list in a list, or a table without keys, behind all.
    let wrong = ["[[true]]", "{\"\": {}}", "-1", "\"\""];
    let check = |place: &str, key: &str, wrap: &str| {
        let is_seen = wrong.iter().any(|value| {
            let value = wrap.replace('@', value);
            let found = problems_with(place, if wrap == "@" { key } else { "value" }, &value);
            assert!(found.iter().all(|path| !path.is_empty()), "{found:?}");
            found.iter().any(|path| path.split('.').any(|part| part == key))
        });
        assert!(is_seen, "nothing is wrong with a wrong `{key}` of a {place}");
    };
    for (place, keys) in
        [("table", TABLE), ("column", COLUMN), ("transaction", TRANSACTION), ("step", STEP)]
    {
        keys.iter().for_each(|key| check(place, key.name, "@"));
    }
    for one in GENERATORS {
        let name = one.key.name;
        let of = if name == "map" { ", \"of\": \"a\"" } else { "" };
        check("column", name, &format!("{{\"{name}\": @{of}}}"));
        let right = match name {
            "sequence" => "1",
            "map" => "{\"1\": 1}",
            "one_of" => "[1, 2]",
            _ => "[1, 9]",
        };
        for key in one.beside {
            let of = if name == "map" && key.name != "of" { ", \"of\": \"a\"" } else { "" };
            let wrap = format!("{{\"{name}\": {right}{of}, \"{}\": @}}", key.name);
            check("column", key.name, &wrap);
        }
    }
}
