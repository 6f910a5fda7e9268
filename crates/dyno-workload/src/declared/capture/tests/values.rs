//! Values by their types, and literals that are part of a statement.

use super::super::values::quoted;
use super::*;

/// The generators and statements of the study of a log.
fn lines(log: &str) -> String {
    let study = transactions(&captured(log).study);
    let is_one = |line: &&str| line.starts_with('v') || line.starts_with("sql = ");
    study.lines().filter(is_one).map(|line| line.to_owned() + "\n").collect()
}

/// A log of PostgreSQL in which a statement is executed with each of these parameters.
fn bound(values: &[&str]) -> String {
    let time = "2026-11-26 20:46:00.123 UTC [77] me@shop";
    let one = |value: &&str| {
        format!(
            "{time} LOG:  execute <unnamed>: SELECT a FROM t WHERE b = $1\n\
             {time} DETAIL:  parameters: $1 = '{value}'\n"
        )
    };
    values.iter().map(one).collect()
}

#[track_caller]
fn typed(values: &[&str], expected: &str) {
    let expected = format!("{expected}sql = \"SELECT a FROM t WHERE b = :v1\"\n");
    assert_eq!(lines(&bound(values)), expected);
    if values[0].contains(|c: char| c.is_ascii_alphabetic() || ":/[".contains(c)) {
        // The same as literals.
        let of = |value: &&str| format!("SELECT a FROM t WHERE b = '{value}'");
        let statements: Vec<String> = values.iter().map(of).collect();
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        if !values[0].contains('e') || values[0].contains('-') {
            assert_eq!(lines(&general(&statements)), expected);
        }
    }
}

#[test]
fn values_are_of_the_types_of_those_in_the_log() {
    assert_eq!(
        lines(include_str!("../cases/C8-uuid-boolean.log")),
        "v1 = { uuid = true }\nsql = \"SELECT id FROM ty WHERE u = :v1\"\n\
         v1 = { uniform = [1, 89] }\nv2 = { one_of = [\"f\", \"t\"], weights = [2, 5] }\n\
         sql = \"SELECT id FROM ty WHERE id = :v1 AND b = :v2\"\n",
    );
    let days = "v1_moment = { timestamp = [\"2026-01-02 10:11:12\", \"2026-02-02 00:00:00\"] }\n";
    typed(
        &["2026-01-02 10:11:12+02", "2026-02-02 00:00:00.5+02"],
        &format!("{days}v1 = {{ text = \"{{v1_moment}}+02\" }}\n"),
    );
    typed(
        &["2026-01-02T10:11:12Z", "2026-02-02T00:00:00Z"],
        &format!("{days}v1 = {{ text = \"{{v1_moment}}Z\" }}\n"),
    );
    typed(
        &["true", "false", "true"],
        "v1 = { one_of = [\"false\", \"true\"], weights = [1, 2] }\n",
    );
    typed(&["t", "t"], "v1 = \"t\"\n");
    typed(
        &["10:11:12", "23:59:59"],
        "v1_hour = { uniform = [0, 23] }\nv1_minute = { uniform = [0, 59] }\n\
         v1_second = { uniform = [0, 59] }\nv1 = { text = \"{v1_hour}:{v1_minute}:{v1_second}\" }\n",
    );
    typed(
        &["10.1.2.3/24", "10.2.3.4/24"],
        "v1_host = { uniform = [1, 254] }\nv1 = { text = \"{v1_host}.0.0.0/24\" }\n",
    );
    typed(&["08:00:2b:01:02:03", "08:00:2b:01:02:04"], "v1 = { text = \"##:##:##:##:##:##\" }\n");
    typed(&["7 days", "30 days"], "v1 = { text = \"# days\" }\n");
    typed(&["<a>b</a>", "<c>de</c>"], "v1 = { letters = [8, 9] }\n");
    typed(
        &["[2026-01-02,2026-01-03)", "[2026-02-02,2026-02-04)"],
        "v1_moment = { date = [\"2026-01-02\", \"2026-02-02\"] }\nv1 = { text = \"[{v1_moment},)\" }\n",
    );
    typed(
        &["123456789012345678", "123456789012345679"],
        "v1_nth = { uniform = [0, 1] }\nv1 = { expression = \":v1_nth * 1 + 123456789012345678\" }\n",
    );
    typed(&["1e5", "2.5e4"], "v1 = { uniform = [25000.0, 100000.0], decimals = 1 }\n");
    typed(
        &["1e17", "3.5e17"],
        "v1_nth = { uniform = [0, 1000000] }\nv1 = { expression = \":v1_nth * 2.5e11 + 1e17\" }\n",
    );
    // Two types in one place are texts.
    typed(&["10:11:12", "7 days"], "v1 = { letters = [6, 8] }\n");
}

#[test]
fn numbers_without_a_sign() {
    let hash = "(:v1 + 9810467044027025159)";
    assert_eq!(
        lines(include_str!("../cases/C9-unsigned-hash.log")),
        format!(
            "v1_nth = {{ uniform = [0, 8141918859284557] }}\n\
             v1 = {{ expression = \":v1_nth * 1024 + 0\" }}\n\
             sql = \"SELECT kind FROM events WHERE hash = {hash}\"\n"
        ),
    );
    // One that stands for "all" does not spoil the place.
    let sentinel = |n: u64| match n {
        7 => "SELECT a FROM t WHERE b = 18446744073709551615".to_owned(),
        n => format!("SELECT a FROM t WHERE b = {}", n * 37 % 101),
    };
    let statements: Vec<String> = (0..100).map(sentinel).collect();
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let captured = captured(&general(&statements)).study;
    assert!(
        captured.contains("1 above 9223372036854775807 are not drawn\nv1 = { uniform = [0, 100] }"),
        "{captured}"
    );
    let lists: Vec<String> = (0..20_u64)
        .map(|n| format!("SELECT a FROM t WHERE b IN ({}, {})", u64::MAX - n, u64::MAX - 50))
        .collect();
    let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
    assert!(
        lines(&general(&lists)).contains("IN ((:v1_1 + 18446744073709551565), (:v1_2 + "),
        "{}",
        lines(&general(&lists))
    );
}

/// The statement of a study, whose literals stay or become `:v1`.
#[track_caller]
fn fixed(log: &str, expected: &[&str]) {
    let study = captured(log).study;
    let found: Vec<&str> = study.lines().filter_map(|line| line.strip_prefix("sql = ")).collect();
    let expected: Vec<String> = expected.iter().map(|sql| quoted(sql)).collect();
    assert_eq!(found, expected, "{study}");
}

#[track_caller]
fn mysql(statement: &str, expected: &str) {
    fixed(&general(&[statement]), &[expected]);
}

#[track_caller]
fn postgresql(statement: &str, expected: &str) {
    fixed(
        &format!("2026-11-26 20:46:00.123 UTC [77] me@shop LOG:  statement: {statement}\n"),
        &[expected],
    );
}

#[test]
fn texts_that_are_part_of_the_statement_stay() {
    fixed(
        include_str!("../cases/C10-constant-texts.log"),
        &[
            "SELECT nextval('orders_id_seq')",
            "SELECT date_trunc('hour', created) FROM orders WHERE id = :v1",
            "SELECT id FROM orders WHERE status = 'paid' AND id = :v2",
        ],
    );
    for statement in [
        "SELECT a AT TIME ZONE 'Europe/Berlin' FROM t",
        "SELECT now() - '7 days'::interval",
        "SELECT 'orders'::regclass",
        "SELECT to_tsvector('english', a) FROM t",
        "SELECT currval('a_id_seq')",
        "SELECT to_char(a, 'YYYY-MM') FROM t",
        "SELECT box '((0,0),(1,1))'",
    ] {
        postgresql(statement, statement);
    }
    postgresql("SELECT to_tsvector('some text')", "SELECT to_tsvector(:v1)");
    postgresql("SELECT a FROM t WHERE b = 'x'::text", "SELECT a FROM t WHERE b = :v1::text");
    postgresql("SELECT timestamptz '2026-01-01 00:00:00+00'", "SELECT CAST(:v1 AS timestamptz)");
    mysql("SELECT DATE_FORMAT(a, '%Y-%m') FROM t", "SELECT DATE_FORMAT(a, '%Y-%m') FROM t");
    // A text that varies, one of few executions, and what may be a secret are values.
    let log = |n: u64, condition: &dyn Fn(u64) -> String| {
        let all: Vec<String> =
            (0..n).map(|n| format!("SELECT a FROM t WHERE {}", condition(n))).collect();
        general(&all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    fixed(&log(5, &|_| "b = 'IN_TRANSIT'".to_owned()), &["SELECT a FROM t WHERE b = 'IN_TRANSIT'"]);
    let value = &["SELECT a FROM t WHERE b = :v1"];
    fixed(&log(4, &|_| "b = 'paid'".to_owned()), value);
    fixed(&log(9, &|n| format!("b = 'paid{n}'")), value);
    fixed(&log(9, &|_| "b = 'Alice'".to_owned()), value);
    fixed(&log(9, &|_| "b = 'alice@example.com'".to_owned()), value);
    fixed(&log(9, &|_| "token = 'abcd'".to_owned()), &["SELECT a FROM t WHERE token = :v1"]);
}

#[test]
fn literals_stay_where_no_placeholder_may_stand() {
    let study = captured(include_str!("../cases/C11-fixed-places.log")).study;
    for sql in [
        "SELECT count(*) 'total rows' FROM orders WHERE id < :v1",
        "SELECT id FROM orders WHERE customer = :v1 FOR UPDATE WAIT 3",
        "SELECT sum(total) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) FROM orders WHERE id < :v1",
    ] {
        assert!(study.contains(&format!("sql = \"{sql}\"")), "{sql}\n{study}");
    }
    for statement in [
        "SELECT a 'b' FROM t",
        "SELECT `a` 'b' FROM t",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) OVER () FROM t",
    ] {
        mysql(statement, statement);
    }
    mysql(
        "SELECT a FROM JSON_TABLE('[7]', '$[*]' COLUMNS (a INT PATH '$')) AS j",
        "SELECT a FROM JSON_TABLE(:v1, '$[*]' COLUMNS (a INT PATH '$')) AS j",
    );
    mysql(
        "SELECT a FROM t WHERE b LIKE BINARY 'x' OR c > d + INTERVAL '1 2' DAY_HOUR",
        "SELECT a FROM t WHERE b LIKE BINARY :v1 OR c > d + INTERVAL :v2 DAY_HOUR",
    );
    mysql("SELECT secret 'x'", "SELECT secret :v1");
}
