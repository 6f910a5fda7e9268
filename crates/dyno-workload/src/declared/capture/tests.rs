//! Logs of every kind, and what becomes of their statements.

mod dangerous;
mod formats;
mod ids;
mod recorded;
mod sessions;
mod values;

use super::*;

fn request() -> Request {
    Request {
        format: None,
        prefix: None,
        schema: None,
        kinds: 50,
        has_texts: false,
        has_routines: false,
        url: None,
        source: "test.log".to_owned(),
    }
}

fn captured_with(log: &str, request: &Request) -> Captured {
    let captured = capture(&mut log.as_bytes(), request).unwrap();
    let counts = &captured.counts;
    let left_out: u64 = counts.left_out.values().sum();
    assert_eq!(counts.read, counts.replayed + counts.control + left_out, "{counts:?}");
    captured
}

fn captured(log: &str) -> Captured {
    captured_with(log, &request())
}

/// A general log of one session with these statements.
fn general(statements: &[&str]) -> String {
    let mut log = "mariadbd, Version: 10.11.19-MariaDB-log (Debian 12). started with:\n\
                   Tcp port: 0  Unix socket: /s\nTime\t\t    Id Command\tArgument\n\
                   261123 20:22:53\t     4 Connect\troot@localhost on shop using Socket\n"
        .to_owned();
    for statement in statements {
        log += &format!("\t\t     4 Query\t{statement}\n");
    }
    log + "\t\t     4 Quit\t\n"
}

/// What stands in the study from the first transaction on, without comments.
fn transactions(study: &str) -> String {
    let from = study.find("[workload.").unwrap();
    let to = study.find("\n[design]").unwrap();
    let lines = study[from..to].lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.replace("workload.captured.transaction.", "") + "\n").collect()
}

#[test]
fn sessions_become_transactions_and_transactions_shares() {
    let log = "2026-11-23T20:22:53.123456Z\t    8 Connect\tme@localhost on shop using TCP/IP\n\
               2026-11-23T20:22:53.123456Z\t    9 Connect\tme@localhost on shop using TCP/IP\n\
               2026-11-23T20:22:53.123456Z\t    8 Query\tBEGIN\n\
               2026-11-23T20:22:53.123456Z\t    9 Query\tSELECT name\n  FROM item /* of 9 */ WHERE id = 17\n\
               2026-11-23T20:22:53.123456Z\t    8 Prepare\tUPDATE stock SET n = n - ? WHERE id = ?\n\
               2026-11-23T20:22:53.123456Z\t    8 Execute\tUPDATE stock SET n = n - 2 WHERE id = 5\n\
               2026-11-23T20:22:53.123456Z\t    8 Execute\tINSERT INTO sale VALUES (5, 2, 'it''s')\n\
               2026-11-23T20:22:53.123456Z\t    9 Query\tselect name from item where id = 90\n\
               2026-11-23T20:22:53.123456Z\t    8 Query\tCOMMIT\n\
               2026-11-23T20:22:53.123456Z\t    9 Query\tSELECT name FROM item WHERE id = 33\n\
               2026-11-23T20:22:53.123456Z\t    8 Query\tbegin\n\
               2026-11-23T20:22:53.123456Z\t    8 Execute\tUPDATE stock SET n = n - 2 WHERE id = 9\n\
               2026-11-23T20:22:53.123456Z\t    8 Execute\tINSERT INTO sale VALUES (9, 2, 'two!')\n\
               2026-11-23T20:22:53.123456Z\t    8 Query\tcommit\n\
               2026-11-23T20:22:53.123456Z\t    8 Query\tBEGIN\n\
               2026-11-23T20:22:53.123456Z\t    8 Query\tDELETE FROM sale WHERE id = -1.50\n\
               2026-11-23T20:22:53.123456Z\t    8 Query\tROLLBACK\n";
    let captured = captured(log);
    assert_eq!((captured.kinds, captured.transactions), (4, 6));
    assert_eq!(captured.counts.control, 6);
    assert_eq!(captured.counts.replayed, 8);
    expect_test::expect![[r#"
        [t1_select_item]
        weight = 2
        [t1_select_item.let]
        v1 = { uniform = [17, 33] }
        [[t1_select_item.steps]]
        sql = "SELECT name FROM item WHERE id = :v1"
        [t2_update_stock]
        weight = 2
        [t2_update_stock.let]
        v2 = { uniform = [5, 9] }
        v5 = { letters = [4, 4] }
        [[t2_update_stock.steps]]
        sql = "UPDATE stock SET n = n - 2 WHERE id = :v2"
        [[t2_update_stock.steps]]
        sql = "INSERT INTO sale VALUES (:v2, 2, :v5)"
        [t3_select_item]
        weight = 1
        [[t3_select_item.steps]]
        sql = "select name from item where id = 90"
        [t4_delete_sale]
        weight = 1
        [[t4_delete_sale.steps]]
        sql = "DELETE FROM sale WHERE id = -1.50"
        [[t4_delete_sale.steps]]
        roll_back = true
    "#]]
    .assert_eq(&transactions(&captured.study));
}

#[test]
fn each_statement_that_is_left_out_has_its_reason() {
    let check = |statement: &str, reason: Reason| {
        let captured = captured(&general(&["SELECT 1", statement]));
        let expected = BTreeMap::from([(reason, 1)]);
        assert_eq!(captured.counts.left_out, expected, "{statement}");
        assert!(!captured.study.contains("s3cret"), "{}", captured.study);
    };
    check("CREATE USER bob IDENTIFIED BY 's3cret'", Reason::Users);
    check("SET PASSWORD FOR bob = PASSWORD('s3cret')", Reason::Users);
    check("GRANT ALL ON *.* TO bob IDENTIFIED BY 's3cret'", Reason::Users);
    check("ALTER USER bob IDENTIFIED BY 's3cret", Reason::Schema);
    check("CREATE TABLE t (id int)", Reason::Schema);
    check("/* x */ truncate t", Reason::Schema);
    check("SET NAMES utf8mb4", Reason::Session);
    check("SET autocommit = 1", Reason::Session);
    check("SHOW TABLES", Reason::Session);
    check("SELECT @x", Reason::Variable);
    check("SELECT id INTO @x FROM t", Reason::Variable);
    check("SAVEPOINT a", Reason::Savepoint);
    check("ROLLBACK TO SAVEPOINT a", Reason::Savepoint);
    check("XA PREPARE 'a'", Reason::Savepoint);
    check("SELECT 1 INTO OUTFILE '/s3cret'", Reason::File);
    check("INSERT INTO t VALUES (x'AB')", Reason::Binary);
    check("INSERT INTO t VALUES (_binary'AB')", Reason::Binary);
    check("INSERT INTO t VALUES (0xAB)", Reason::Binary);
    check("SELECT ?", Reason::Placeholder);
    check("SELECT :name", Reason::Colon);
    check("BEGIN NOT ATOMIC SELECT 1; SELECT 2; END", Reason::Several);
    check("SELECT 'cut", Reason::NotUnderstood);
    check("SELECT (1", Reason::NotUnderstood);
    check(&format!("SELECT {}1", "1,".repeat(255)), Reason::ManyValues);
    check(&format!("SELECT '{}'", "x".repeat(1 << 20)), Reason::Long);
    check(&format!("SELECT {}", "x".repeat(70_000)), Reason::Long);
}

#[test]
fn values_become_generators() {
    let check = |statement: &dyn Fn(u64) -> String, has_texts: bool, expected: &str| {
        let statements: Vec<String> = (0..400).map(statement).collect();
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        let request = Request { has_texts, ..request() };
        let study = transactions(&captured_with(&general(&statements), &request).study);
        assert!(study.contains(expected), "{expected}\n{study}");
    };
    let id = |n: u64| n * 7919 % 1000;
    check(
        &|n| format!("SELECT a FROM t WHERE id = {}", id(n)),
        false,
        "v1 = { uniform = [0, 999] }",
    );
    check(
        &|n| format!("SELECT {}.25 - 1", id(n)),
        false,
        "v1 = { uniform = [0.25, 999.25], decimals = 2 }",
    );
    check(
        &|n| format!("SELECT a FROM t WHERE x = {}", n % 4 / 3),
        false,
        "v1 = { one_of = [0, 1], weights = [300, 100] }",
    );
    // Numbers that SQL knows and TOML does not.
    check(
        &|n| format!("SELECT a FROM t WHERE x = {}", ["007", "010"][(n % 4 / 3) as usize]),
        false,
        "v1 = { one_of = [7, 10], weights = [300, 100] }",
    );
    check(&|n| format!("INSERT INTO t VALUES ({}, 1)", n + 5), false, "v1 = { sequence = 405 }");
    let skewed = |n: u64| (n % 23) * (n % 17) * (n % 5);
    check(
        &|n| format!("SELECT a FROM t WHERE id = {}", 5 + skewed(n)),
        false,
        "v1 = { expression = \"permute(:v1_rank - 1, ",
    );
    check(
        &|n| format!("SELECT a FROM t WHERE b = '{}'", id(n)),
        false,
        "v1 = { text = \"{v1_number}\" }",
    );
    check(
        &|n| format!("SELECT a FROM t WHERE b = 'x-{:03}'", id(n)),
        false,
        "v1 = { text = \"@-###\" }",
    );
    check(
        &|n| format!("SELECT a FROM t WHERE b LIKE '{}%'", "x".repeat(3 + n as usize % 5)),
        false,
        "v1_inner = { letters = [3, 7] }\nv1 = { text = \"{v1_inner}%\" }",
    );
    check(
        &|n| format!("SELECT a FROM t WHERE d > '2026-01-{:02}'", n % 31 + 1),
        false,
        "v1 = { date = [\"2026-01-01\", \"2026-01-31\"] }",
    );
    check(
        &|n| format!("SELECT a FROM t WHERE d > '2026-01-01 10:00:{:02}.5'", n % 60),
        false,
        "v1 = { timestamp = [\"2026-01-01 10:00:00\", \"2026-01-01 10:00:59\"] }",
    );
    let state = |n: u64| if n.is_multiple_of(4) { "open" } else { "shut" };
    check(
        &|n| format!("SELECT a FROM t WHERE s = '{}'", state(n)),
        false,
        "v1 = { text = \"@@@@\" }",
    );
    check(
        &|n| format!("SELECT a FROM t WHERE s = '{}'", state(n)),
        true,
        "v1 = { one_of = [\"open\", \"shut\"], weights = [100, 300] }",
    );
    check(
        &|n| format!("SELECT a FROM t WHERE passwd = '{}'", state(n)),
        true,
        "v1 = { text = \"@@@@\" }",
    );
    check(
        &|n| format!("SELECT a FROM t WHERE id IN ({}, {}) ORDER BY 2, 1", n, id(n)),
        false,
        "sql = \"SELECT a FROM t WHERE id IN (:v1_1, :v1_2) ORDER BY 2, 1\"",
    );
    check(
        &|n| format!("SELECT {} + 9223372036854770000", n * (i64::MAX as u64 / 400)),
        false,
        "* 1024 + 0",
    );
}

#[test]
fn statements_keep_what_is_no_value() {
    let check = |statement: &str, expected: &str| {
        let study = captured(&general(&[statement])).study;
        let expected = format!("sql = {}\n", super::values::quoted(expected));
        assert!(study.contains(&expected), "{expected}{study}");
    };
    check("SELECT 1 -- a\n + 2 # b\n;", "SELECT 1 + 2");
    check("SELECT /*+ X(t) */  a /* b */ FROM t", "SELECT /*+ X(t) */ a FROM t");
    check("SELECT a-1, -1, 1e-5, .5, t1.c2", "SELECT a-1, -1, 1e-5, .5, t1.c2");
    check(
        "SELECT CAST(a AS CHAR(10)), j->'$.x' FROM t",
        "SELECT CAST(a AS CHAR(10)), j->'$.x' FROM t",
    );
    check("SELECT DATE '2026-01-01', _utf8'x'", "SELECT CAST(:v1 AS date), :v2");
    check("SELECT '5', NULL, TRUE, `a b`", "SELECT '5', NULL, TRUE, `a b`");
    check("(SELECT 1) UNION (SELECT 2)", "(SELECT 1) UNION (SELECT 2)");
    // To a study, any character beyond ASCII would belong to the name of the value before it.
    check("SELECT 'x'→b", "SELECT :v1 →b");
}

#[test]
fn values_a_constant_apart_and_equal_ones_are_drawn_once() {
    let check = |statements: &dyn Fn(i64) -> Vec<String>, expected: &[&str]| {
        let all: Vec<String> = (0..200)
            .flat_map(|n| {
                let middle = statements(n);
                ["BEGIN".to_owned()].into_iter().chain(middle).chain(["COMMIT".to_owned()])
            })
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let captured = captured(&general(&all));
        assert_eq!(captured.kinds, 1);
        for expected in expected {
            assert!(captured.study.contains(expected), "{expected}\n{}", captured.study);
        }
    };
    let id = |n: i64| n * 7919 % 1000;
    let range = |n: i64| {
        vec![
            format!("SELECT c FROM t WHERE id BETWEEN {} AND {}", id(n), id(n) + 99),
            format!("UPDATE t SET k = k + 1 WHERE id = {}", id(n + 3)),
            format!("DELETE FROM t WHERE id = {}", id(n + 3)),
            format!("INSERT INTO t (id, k) VALUES ({}, {})", id(n + 3), id(n) - 7),
        ]
    };
    check(
        &range,
        &[
            "v2 = { expression = \":v1 + 99\" }",
            "sql = \"SELECT c FROM t WHERE id BETWEEN :v1 AND :v2\"",
            "sql = \"UPDATE t SET k = k + 1 WHERE id = :v4\"",
            "sql = \"DELETE FROM t WHERE id = :v4\"",
            "v7 = { expression = \":v1 - 7\" }",
            "VALUES (:v4, :v7)",
        ],
    );
    // In nearly all transactions.
    let nearly = |n: i64| {
        let other = if n % 50 == 1 { id(n + 1) } else { id(n) };
        vec![
            format!("SELECT c FROM t WHERE id = {}", id(n)),
            format!("SELECT c FROM u WHERE id = {other}"),
            format!("SELECT c FROM w WHERE id = {}", if n % 5 == 1 { 5 } else { id(n) }),
        ]
    };
    check(
        &nearly,
        &[
            "# v1 is also used for another value, which was equal in 196 of 200",
            "sql = \"SELECT c FROM u WHERE id = :v1\"",
            "sql = \"SELECT c FROM w WHERE id = :v3\"",
        ],
    );
    // Within a statement that is executed several times, and in all of its executions.
    let run = |n: i64| {
        let one = |nth: i64| {
            let from = id(n + nth * 31);
            format!("SELECT c FROM t WHERE a = {} AND id BETWEEN {from} AND {}", id(n), from + 9)
        };
        (0..3).map(one).collect()
    };
    check(
        &run,
        &[
            "times = 3\nsql = \"SELECT c FROM t WHERE a = :v1 AND id BETWEEN :v2 AND :v3\"",
            "v3 = { expression = \":v2 + 9\" }",
            ".let]\n# 200 seen, 200 different\nv1 = { uniform",
        ],
    );
}

#[test]
fn tables_that_differ_by_a_number_are_drawn() {
    let statements: Vec<String> = (0..400)
        .flat_map(|n| {
            let (one, other) = (n * 7 % 4 + 1, n * 11 % 3 + 1);
            let mut all = vec!["BEGIN".to_owned()];
            all.extend(
                (0..3).map(|nth| format!("SELECT c FROM sbtest{one} WHERE id = {}", n + nth)),
            );
            all.push(format!("UPDATE `sbtest{one}` SET k = 1 WHERE sbtest{one}.id = {}", n * 3));
            all.push(format!("DELETE FROM sbtest{other} WHERE id = {}", n * 3));
            all.push("SELECT c FROM fixed7, sum2(1)".to_owned());
            all.push("COMMIT".to_owned());
            all
        })
        .collect();
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let captured = captured(&general(&statements));
    assert_eq!((captured.kinds, captured.counts.replayed), (1, 2400));
    let study = &captured.study;
    for expected in [
        "# Tables: fixed7, sbtest1 … sbtest3, sbtest1 … sbtest4\n",
        "[workload.captured.transaction.t1_update_sbtest]\n",
        "table1 = { one_of = [1, 2, 3, 4], weights = [300, 300, 300, 300] }",
        "times = 3\nif = \":table1 = 4\"\nsql = \"SELECT c FROM sbtest4 WHERE id = :v2_t4\"",
        "if = \":table1 = 2\"\nsql = \"UPDATE `sbtest2` SET k = 1 WHERE sbtest2.id = :v5\"",
        "table6 = { one_of = [1, 2, 3], weights = [134, 133, 133] }",
        "if = \":table6 = 3\"\nsql = \"DELETE FROM sbtest3 WHERE id = :v5\"",
        "sql = \"SELECT c FROM fixed7, sum2(1)\"",
    ] {
        assert!(study.contains(expected), "{expected}\n{study}");
    }
}

#[test]
fn a_table_of_each_execution_is_drawn_for_each() {
    let statements: Vec<String> = (0..300)
        .flat_map(|n| {
            let update = |nth: u64| {
                let table = (n * 5 + nth * 3) % 7 + 1;
                format!("UPDATE part{table} SET n = 1 WHERE id = {}", n * 13 + nth * 5)
            };
            ["BEGIN".to_owned(), update(0), update(1), "COMMIT".to_owned()]
        })
        .collect();
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let study = captured(&general(&statements)).study;
    assert_eq!(study.matches("sql = ").count(), 14, "{study}");
    assert!(study.contains("if = \":table1_e2 = 7\""), "{study}");
    // Of very many tables, the most frequent.
    let many: Vec<String> =
        (0..1000).map(|n| format!("SELECT a FROM part{} WHERE b = {n}", n % 100 + 1)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let captured = captured(&general(&many));
    assert_eq!(captured.kinds, 1);
    assert_eq!(captured.counts.left_out, BTreeMap::from([(Reason::ManyTables, 360)]));
}

#[test]
fn runs_of_a_statement_are_one_step() {
    let mut statements = Vec::new();
    for n in [2, 4, 3] {
        statements.push("BEGIN".to_owned());
        statements.extend((0..n).map(|id| format!("SELECT a FROM t WHERE id = {}", id + n)));
        statements.push("COMMIT".to_owned());
    }
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let captured = captured(&general(&statements));
    assert_eq!(captured.kinds, 1);
    assert!(
        captured.study.contains("# 2 to 4 times, 3 on average\ntimes = 3\n"),
        "{}",
        captured.study
    );
}

#[test]
fn the_database_with_the_most_statements_is_captured() {
    let log = general(&["SELECT a", "USE other", "SELECT b", "SELECT c"]);
    let left_out = |captured: &Captured| captured.counts.left_out[&Reason::OtherSchema];
    let most = captured(&log);
    assert_eq!(
        (most.schema.as_deref(), most.counts.replayed, left_out(&most)),
        (Some("other"), 2, 1)
    );
    let asked = captured_with(&log, &Request { schema: Some("shop".to_owned()), ..request() });
    assert_eq!((asked.counts.replayed, left_out(&asked)), (1, 2));
    let none = Request { schema: Some("none".to_owned()), ..request() };
    let error = capture(&mut log.as_bytes(), &none).unwrap_err().to_string();
    assert!(error.contains("3 in other databases"), "{error}");
    let rare = captured_with(&log, &Request { kinds: 1, ..request() });
    assert_eq!(rare.counts.left_out[&Reason::Rare], 1);
}

#[test]
fn slow_logs_of_mariadb_and_mysql() {
    let mariadb = "# Time: 261123 20:22:53\n# User@Host: root[root] @ localhost []\n\
                   # Thread_id: 4  Schema: shop  QC_hit: No\n# Query_time: 0.1  Lock_time: 0.0  Rows_sent: 1\n\
                   # Rows_affected: 0  Bytes_sent: 104\nuse `shop`;\nSET timestamp=1795465373;\n\
                   select * from t\nwhere id=1;\n\
                   # User@Host: root[root] @ localhost []\n# Thread_id: 4  Schema: shop  QC_hit: No\n\
                   # Query_time: 0.1\nSET timestamp=1795465373;\nselect * from t\nwhere id=2;\n\
                   # User@Host: root[root] @ localhost []\n# Thread_id: 4  Schema: shop  QC_hit: No\n\
                   # Query_time: 0.1\nSET timestamp=1795465373;\ncommit;\n\
                   # User@Host: root[root] @ localhost []\n# Thread_id: 4  Schema: shop  QC_hit: No\n\
                   # administrator command: Quit;\n";
    let mysql = "/usr/sbin/mysqld, Version: 9.7.4 (x). started with:\nTcp port: 0  Unix socket: (null)\n\
                 Time                 Id Command    Argument\n# Time: 2026-11-23T20:22:53.123456Z\n\
                 # User@Host: root[root] @ localhost []  Id:     8\n\
                 # Query_time: 0.1  Lock_time: 0.0 Rows_sent: 0  Rows_examined: 0\n\
                 use shop;\nSET timestamp=1795465373;\nselect * from t where id=1;\n\
                 # Time: 2026-11-23T20:22:53.123456Z\n\
                 # User@Host: root[root] @ localhost []  Id:     9\n# Query_time: 0.1\n\
                 SET timestamp=1795465373;\nselect * from t where id=2;\n";
    for (log, control) in [(mariadb, 1), (mysql, 0)] {
        let captured = captured(log);
        assert_eq!(captured.format, Format::MySqlSlow);
        assert_eq!(captured.schema.as_deref(), Some("shop"));
        assert_eq!((captured.counts.replayed, captured.counts.control), (2, control));
        assert!(
            captured.study.contains("sql = \"select * from t where id=:v1\""),
            "{}",
            captured.study
        );
    }
}

#[test]
fn logs_of_postgresql() {
    let plain = |prefix: &dyn Fn(u32, &str) -> String| {
        let entry = |pid: u32, level: &str, text: &str| {
            format!("{}{level}:  {text}\n", prefix(pid, "shop"))
        };
        let mut log = entry(1, "LOG", "database system is ready to accept connections");
        for n in 0..30 {
            log += &entry(7, "LOG", "duration: 0.1 ms  statement: BEGIN;");
            log += &entry(
                7,
                "LOG",
                "duration: 0.1 ms  parse P1: UPDATE a SET n = n + $1 WHERE id = $2",
            );
            log += &entry(
                7,
                "LOG",
                "duration: 0.1 ms  bind P1: UPDATE a SET n = n + $1 WHERE id = $2",
            );
            log += &entry(7, "DETAIL", &format!("parameters: $1 = '-7', $2 = '{}'", n * 37 % 100));
            log += &entry(
                8,
                "LOG",
                &format!("statement: SELECT b\n\tFROM a WHERE id = {n} AND c = 'x'"),
            );
            log += &entry(
                7,
                "LOG",
                "duration: 0.1 ms  execute P1: UPDATE a SET n = n + $1 WHERE id = $2",
            );
            log += &entry(7, "DETAIL", &format!("Parameters: $1 = '-7', $2 = '{}'", n * 37 % 100));
            log += &entry(8, "ERROR", "nothing");
            log += &entry(8, "STATEMENT", "SELECT 1/0");
            log += &entry(7, "LOG", "execute P2: INSERT INTO h\n\tVALUES ($2, $1, $3, -5)");
            log += &entry(
                7,
                "DETAIL",
                &format!("parameters: $1 = 'it''s', $2 = '{}', $3 = NULL", n * 37 % 100),
            );
            log += &entry(7, "LOG", "execute fetch from P2: INSERT INTO h VALUES ($2, $1, $3, -5)");
            log += &entry(7, "LOG", "statement: COMMIT");
            log += &entry(7, "LOG", "duration: 0.1 ms");
        }
        log
    };
    let check = |log: &str, format: Format, prefix: Option<&str>, schema: Option<&str>| {
        let request = Request { prefix: prefix.map(str::to_owned), ..request() };
        let captured = captured_with(log, &request);
        assert_eq!((captured.format, captured.schema.as_deref()), (format, schema));
        assert_eq!((captured.counts.read, captured.counts.replayed), (150, 90));
        for expected in [
            "sql = \"UPDATE a SET n = n + :v1 WHERE id = :v2\"",
            "sql = \"INSERT INTO h VALUES (:v2, :v4, NULL, -5)\"",
            "v1 = { uniform = [-7, -7] }",
            "sql = \"SELECT b FROM a WHERE id = :v1 AND c = :v2\"",
            "url = \"postgresql://",
        ] {
            assert!(captured.study.contains(expected), "{expected}\n{}", captured.study);
        }
    };
    let time = "2026-11-23 20:22:53.123 UTC";
    let usual = plain(&|pid, db| format!("{time} [{pid}] me@{db} "));
    check(&usual, Format::PostgreSqlPlain, None, Some("shop"));
    check(&usual, Format::PostgreSqlPlain, Some("%m [%p] %u@%d "), Some("shop"));
    let odd = plain(&|pid, db| format!("<{db}|{pid}> "));
    check(&odd, Format::PostgreSqlPlain, Some("<%d|%p> "), Some("shop"));
    check(&plain(&|pid, _| format!("{time} [{pid}] ")), Format::PostgreSqlPlain, None, None);
    // The same as CSV, where the detail is a field of its own.
    let mut csv = String::new();
    let marked = plain(&|pid, _| format!("\u{2}{pid} "));
    let entries: Vec<&str> = marked.split('\u{2}').filter(|entry| !entry.is_empty()).collect();
    for (idx, entry) in entries.iter().enumerate() {
        let (pid, rest) = entry.trim_end().split_once(' ').unwrap();
        let (level, text) = rest.split_once(":  ").unwrap();
        if ["DETAIL", "STATEMENT"].contains(&level) {
            continue;
        }
        let of_next = |mark: &str| {
            let next = entries.get(idx + 1).and_then(|next| next.split_once(mark));
            next.map_or("", |(_, text)| text.trim_end()).replace('"', "\"\"")
        };
        csv += &format!(
            "{time},\"me\",\"shop\",{pid},\"[local]\",69238f.{pid},3,\"SELECT\",{time},3/5,0,{level},00000,\"{}\",\"{}\",,,,,\"{}\",,,\"\",\"client backend\",,0\n",
            text.replace("\n\t", "\n").replace('"', "\"\""),
            of_next("DETAIL:  "),
            of_next("STATEMENT:  "),
        );
    }
    check(&csv, Format::PostgreSqlCsv, None, Some("shop"));
    let error = |prefix: &str| {
        let request = Request { prefix: Some(prefix.to_owned()), ..request() };
        capture(&mut usual.as_bytes(), &request).unwrap_err().to_string()
    };
    assert!(error("%m ").contains("neither %p nor %c"));
    let nothing = error("<%p> ");
    assert!(nothing.contains("0 statements were read; if its messages begin"), "{nothing}");
    assert!(nothing.contains("--prefix"), "{nothing}");
}

#[test]
fn what_is_no_log_is_refused() {
    let check = |log: &[u8], expected: &str| {
        let error = capture(&mut &*log, &request()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(b"", "look like neither a general or slow log");
    check(b"SELECT 1;\n", "look like neither a general or slow log");
    check(general(&["SET x = 1"]).as_bytes(), "1 of the session");
}

mod counted {
    use super::super::*;
    use crate::Dialect;

    fn columns() -> Vec<CountedColumn> {
        let of = |table: &str, name: &str, is_number: bool, is_unique: bool| CountedColumn {
            table: table.to_owned(),
            name: name.to_owned(),
            is_number,
            is_unique,
        };
        vec![
            of("t", "id", true, true),
            of("t", "n", true, false),
            of("t", "c", false, false),
            of("u", "id", true, true),
            of("u", "password", false, false),
        ]
    }

    fn captured(
        statements: &[(&str, u64, u64)],
        dialect: Dialect,
    ) -> Result<Captured, CaptureError> {
        let statements: Vec<CountedStatement> = statements
            .iter()
            .map(|(text, executions, rows)| CountedStatement {
                text: (*text).to_owned(),
                executions: *executions,
                rows: *rows,
            })
            .collect();
        let mut values = |column: &CountedColumn| {
            Ok(match (column.is_number, column.is_unique) {
                (true, true) => (1..=500).map(|n: u64| n.to_string()).collect(),
                (true, false) => (0..100).map(|n: u64| (n * 37 % 1000).to_string()).collect(),
                _ => (0..50).map(|n| format!("secret {n:03}")).collect(),
            })
        };
        let mut columns = CountedColumns { columns: columns(), values: &mut values };
        let request = Request {
            format: None,
            prefix: None,
            schema: None,
            kinds: 50,
            has_texts: false,
            has_routines: false,
            url: None,
            source: "here".to_owned(),
        };
        capture_counted(&statements, &mut columns, (dialect, "shop"), &request)
    }

    #[test]
    fn what_a_server_has_not_replaced_is_not_kept() {
        let said = "SELECT c FROM t WHERE id = $1 /* user=alice token=abcd */";
        let literal = "SELECT c FROM t WHERE id = $1 AND c = 's3cret'";
        let found = captured(&[(said, 10, 10), (literal, 5, 5)], Dialect::PostgreSql).unwrap();
        assert!(
            !found.study.contains("abcd") && !found.study.contains("s3cret"),
            "{}",
            found.study
        );
        assert_eq!((found.counts.replayed, found.counts.left_out[&Reason::Literal]), (10, 5));
    }

    /// In PostgreSQL, the second part of a text is read as the first one is.
    #[test]
    fn literals_with_backslashes_are_not_kept() {
        let unclear = "SELECT n FROM t WHERE c = E'a'\n'b\\' || ' || id(c) || '";
        let plain = "SELECT n FROM t WHERE id = $1";
        let found = captured(&[(unclear, 3, 3), (plain, 1, 1)], Dialect::PostgreSql).unwrap();
        assert_eq!(found.counts.left_out, BTreeMap::from([(Reason::NotUnderstood, 3)]));
    }

    /// The mark of several rows is a comment, and in PostgreSQL anybody's.
    #[test]
    fn words_beside_a_mark_of_several_rows_stay_two() {
        let text = "SELECT n FROM t, u/* , ... */id(c)";
        let study = captured(&[(text, 1, 1)], Dialect::PostgreSql).unwrap().study;
        assert!(study.contains("SELECT n FROM t, u id(c)"), "{study}");
    }

    #[test]
    fn counts_of_a_server_that_lies_do_not_overflow() {
        let many = u64::MAX - 1;
        let all =
            [("COMMIT", many, 0), ("SELECT c FROM t WHERE id = $1", many, 1), ("BEGIN", many, 0)];
        assert_eq!(captured(&all, Dialect::PostgreSql).unwrap().counts.read, u64::MAX);
    }

    /// The statement of the study, and the generators before it.
    fn check(dialect: Dialect, text: &str, (n, rows): (u64, u64), sql: &str, generators: &[&str]) {
        let study = captured(&[(text, n, rows)], dialect).unwrap().study;
        assert!(study.contains(&format!("sql = \"{}\"", sql.replace('"', "\\\""))), "{study}");
        let found: Vec<&str> =
            study.lines().filter(|line| line.starts_with('v') && line.contains(" = ")).collect();
        assert_eq!(found, generators, "{study}");
    }

    const ID: &str = "{ uniform = [1, 500] }";

    #[test]
    fn placeholders_are_explained_by_their_place() {
        let mysql = |text, rows, sql, generators: &[&str]| {
            check(Dialect::MySql, text, rows, sql, generators);
        };
        let id = |n: u32| format!("v{n} = {ID}");
        let one = &[&*id(1)];
        mysql(
            "SELECT `c` FROM `t` WHERE `id` = ?",
            (10, 10),
            "SELECT `c` FROM `t` WHERE `id` = :v1",
            one,
        );
        mysql(
            "SELECT `c` FROM `t` WHERE `id` BETWEEN ? AND ?",
            (10, 1000),
            "SELECT `c` FROM `t` WHERE `id` BETWEEN :v1 AND :v2",
            &[&id(1), "v2 = { expression = \":v1 + 99\" }"],
        );
        mysql(
            "UPDATE `t` SET `n` = `n` + ? WHERE `id` = ? LIMIT ?",
            (10, 10),
            "UPDATE `t` SET `n` = `n` + 1 WHERE `id` = :v2 LIMIT 1",
            &[&id(2)],
        );
        mysql(
            "SELECT COUNT ( * ) , MAX ( `n` ) FROM `t` WHERE `id` = ? AND ( `n` = ? )",
            (10, 10),
            "SELECT COUNT( * ) , MAX( `n` ) FROM `t` WHERE `id` = :v1 AND ( `n` = :v2 )",
            &[&id(1), "v2 = { uniform = [0, 999] }"],
        );
        mysql(
            "SELECT `n` FROM `t` WHERE `id` IN (...)",
            (10, 20),
            "SELECT `n` FROM `t` WHERE `id` IN (:v1, :v2)",
            &[&id(1), &id(2)],
        );
        mysql(
            "INSERT INTO `t` ( `id` , `c` ) VALUES (...) /* , ... */",
            (10, 20),
            "INSERT INTO `t` ( `id` , `c` ) VALUES (:v1, :v2), (:v3, :v4)",
            &[
                "v1 = { sequence = 501, step = 2, after = \"`t`.`id`\" }",
                "v2 = { text = \"@@@@@@ ###\" }",
                "v3 = { expression = \":v1 + 1\" }",
                "v4 = { text = \"@@@@@@ ###\" }",
            ],
        );
        let postgresql = |text, rows, sql, generators: &[&str]| {
            check(Dialect::PostgreSql, text, rows, sql, generators);
        };
        postgresql(
            "SELECT a.c FROM t AS a JOIN u b ON a.id = b.id WHERE b.id >= $1 AND a.id <> $2 LIMIT $3 OFFSET $4",
            (10, 50),
            "SELECT a.c FROM t AS a JOIN u b ON a.id = b.id WHERE b.id >= :v1 AND a.id <> :v2 LIMIT 5 OFFSET 0",
            &[&id(1), &id(2)],
        );
        postgresql(
            "SELECT 1 FROM t WHERE id IN ($1, $2) OR id = $1",
            (10, 0),
            "SELECT 1 FROM t WHERE id IN (:v1, :v2) OR id = :v1",
            &[&id(1), &id(2)],
        );
    }

    #[test]
    fn the_table_of_an_insert_needs_no_into() {
        let numbers = &["v1 = { sequence = 501, after = \"`t`.`id`\" }"];
        for begin in ["INSERT `t`", "INSERT IGNORE `t`", "REPLACE LOW_PRIORITY INTO `t`"] {
            let with = |value: &str| format!("{begin} ( `id` ) VALUES ({value})");
            check(Dialect::MySql, &with("?"), (10, 10), &with(":v1"), numbers);
        }
    }

    #[test]
    fn statements_that_insert_into_one_column_share_its_numbers() {
        let one = "INSERT INTO t (id, c) VALUES ($1, $2)";
        let two = "INSERT INTO t (id, c) VALUES ($1, $2), ($3, $4)";
        let study = captured(&[(one, 10, 10), (two, 5, 10)], Dialect::PostgreSql).unwrap().study;
        let numbers = r#"v1 = { sequence = 501, step = 2, after = "\"t\".\"id\"" }"#;
        assert_eq!(study.matches(numbers).count(), 2, "{study}");
    }

    #[test]
    fn texts_are_not_in_the_study() {
        let study =
            captured(&[("DELETE FROM u WHERE password = ?", 1, 1)], Dialect::MySql).unwrap();
        assert!(!study.study.contains("secret"), "{}", study.study);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let statements = [
            ("SELECT c FROM t WHERE id = ?", 60, 60),
            ("SELECT c FROM t WHERE lower(c) = lower(?)", 1, 0),
            ("SELECT c FROM t WHERE id = ? + n", 2, 0),
            ("SELECT x FROM performance_schema.y WHERE x = ?", 3, 0),
            ("SET NAMES ?", 4, 0),
            ("COMMIT", 5, 0),
            ("DROP TABLE t", 6, 0),
            ("SELECT c FROM t WHERE id = ? AND ...", 7, 0),
            ("SELECT id FROM t, u WHERE id = ?", 8, 0),
        ];
        let captured = captured(&statements, Dialect::MySql).unwrap();
        let counts = &captured.counts;
        assert_eq!((counts.read, counts.replayed, counts.control), (96, 60, 5));
        assert_eq!(counts.left_out[&Reason::UnknownValue], 1 + 2 + 7 + 8);
        assert_eq!(counts.left_out[&Reason::Server], 3);
        assert_eq!(counts.left_out[&Reason::Session], 4);
        assert_eq!(counts.left_out[&Reason::Schema], 6);
        let sum: u64 = counts.left_out.values().sum();
        assert_eq!(counts.read, counts.replayed + counts.control + sum);
    }

    #[test]
    fn nothing_to_replay_is_an_error() {
        let error = captured(&[("SET NAMES ?", 4, 0)], Dialect::MySql).unwrap_err();
        assert!(error.to_string().contains("4 executions were counted"), "{error}");
    }
}
