//! Sessions and transactions: what is in a study is what the server committed, or rolled back.

use super::*;

/// What a log becomes: a line for each kind of transaction in the order of the log, with its weight, its statements
/// without their values, and `rolled back`; behind it, what was left out.
fn kinds(log: &str, request: &Request) -> String {
    let captured = match capture(&mut log.as_bytes(), request) {
        Ok(captured) => captured,
        Err(error) => return error.to_string(),
    };
    let mut out = String::new();
    for kind in transactions(&captured.study).split("weight = ").skip(1) {
        let (weight, rest) = kind.split_once('\n').unwrap();
        let statements: Vec<&str> =
            rest.lines().filter_map(|line| line.strip_prefix("sql = ")).collect();
        let begins = rest.contains("begin = true")
            || (statements.len() > 1 && !rest.contains("begin = false"));
        let ends = match (rest.contains("roll_back = true"), begins) {
            (true, _) => ", rolled back",
            (false, true) => ", committed",
            (false, false) => "",
        };
        out += &format!("{weight}: {}{ends}\n", statements.join(" "));
    }
    for (reason, n) in &captured.counts.left_out {
        out += &format!("{n} {reason:?}\n");
    }
    let left_out: u64 = captured.counts.left_out.values().sum();
    let counts = captured.counts;
    assert_eq!(counts.read, counts.replayed + counts.control + left_out, "{counts:?}");
    out
}

#[track_caller]
fn check(log: &str, expected: &str) {
    assert_eq!(kinds(log, &request()), expected, "{log}");
}

/// Statements in a general log that has the beginning of their session.
#[track_caller]
fn mysql(statements: &[&str], expected: &str) {
    check(&general(statements), expected);
}

/// Statements and errors in a log of PostgreSQL.
#[track_caller]
fn postgresql(lines: &[&str], expected: &str) {
    let of = |line: &&str| {
        let line = match line.split_once(":  ") {
            Some(_) => (*line).to_owned(),
            None => format!("LOG:  statement: {line}"),
        };
        format!("2026-11-26 20:46:00.123 UTC [77] me@shop {line}\n")
    };
    check(&lines.iter().map(of).collect::<String>(), expected);
}

#[test]
fn commits_of_pools_do_not_make_transactions() {
    check(
        include_str!("../cases/C1-pool-rollback.log"),
        "2: \"UPDATE orders SET total = :v1 WHERE id = :v2\"\n\
         2: \"UPDATE orders SET note = :v1 WHERE id = :v2\"\n\
         2: \"INSERT INTO log1 (msg) VALUES (:v2)\"\n1 Session\n",
    );
    mysql(&["SELECT a", "COMMIT", "SELECT b"], "1: \"SELECT a\"\n1: \"SELECT b\"\n");
    mysql(&["COMMIT", "SELECT a", "SELECT b"], "1: \"SELECT a\"\n1: \"SELECT b\"\n");
    mysql(
        &["BEGIN", "SELECT a", "COMMIT", "ROLLBACK", "ROLLBACK", "SELECT b", "SELECT c"],
        "1: \"SELECT a\", committed\n1: \"SELECT b\"\n1: \"SELECT c\"\n",
    );
    // A session that is older than the log.
    let older = |statements: &[&str]| general(statements).replace("Connect\t", "Ping\t");
    let study = captured(&older(&["COMMIT", "SELECT a", "SELECT b", "COMMIT"])).study;
    assert!(study.contains("it is assumed that they do not"), "{study}");
    check(
        &older(&["COMMIT", "SELECT a", "SELECT b", "COMMIT"]),
        "1: \"SELECT a\" \"SELECT b\", committed\n",
    );
    check(&older(&["BEGIN", "COMMIT", "ROLLBACK", "SELECT a", "ROLLBACK"]), "1: \"SELECT a\"\n");
    check(
        &older(&["SET autocommit = 1", "ROLLBACK", "SELECT a", "ROLLBACK"]),
        "1: \"SELECT a\"\n1 Session\n",
    );
    let reset =
        older(&["COMMIT", "SELECT a", "SELECT b"]).replace("Query\tSELECT a", "Reset connection\t");
    check(&reset, "1: \"SELECT b\"\n");
    postgresql(
        &["COMMIT", "SELECT a", "ROLLBACK", "SELECT b"],
        "1: \"SELECT a\"\n1: \"SELECT b\"\n",
    );
}

#[test]
fn transactions_begin_with_the_end_of_others() {
    check(
        include_str!("../cases/C2-commit-and-chain.log"),
        "1: \"UPDATE orders SET total = 11 WHERE id = 1\" \"UPDATE orders SET note = :v3 WHERE id = 2\", committed\n\
         1: \"UPDATE orders SET total = 12 WHERE id = 1\" \"UPDATE orders SET note = :v3 WHERE id = 2\", rolled back\n",
    );
    mysql(
        &["BEGIN", "SELECT a", "ROLLBACK AND CHAIN", "SELECT b", "COMMIT AND NO CHAIN", "SELECT c"],
        "1: \"SELECT a\", rolled back\n1: \"SELECT b\", committed\n1: \"SELECT c\"\n",
    );
    mysql(
        &[
            "SET completion_type = 1",
            "COMMIT",
            "SELECT a",
            "SELECT b",
            "ROLLBACK AND NO CHAIN",
            "SELECT c",
        ],
        "1: \"SELECT a\" \"SELECT b\", rolled back\n1: \"SELECT c\"\n1 Session\n",
    );
    mysql(
        &[
            "SET @@completion_type := 'CHAIN', @a = 1",
            "SET SESSION completion_type = 0",
            "COMMIT",
            "SELECT a",
        ],
        "1: \"SELECT a\"\n2 Session\n",
    );
    mysql(
        &["SET GLOBAL completion_type = 1", "COMMIT", "SELECT a"],
        "1: \"SELECT a\"\n1 Session\n",
    );
    postgresql(
        &["BEGIN", "SELECT a", "COMMIT AND CHAIN", "SELECT b", "SELECT c", "ROLLBACK"],
        "1: \"SELECT a\", committed\n1: \"SELECT b\" \"SELECT c\", rolled back\n",
    );
}

#[test]
fn statements_commit_as_the_server_says() {
    let both = "1: \"SELECT a\" \"SELECT b\", rolled back\n";
    let apart = "1: \"SELECT a\", committed\n1: \"SELECT b\"\n";
    let between = |statement: &str, expected: &str, reason: &str| {
        let expected = match reason {
            "" => expected.to_owned(),
            reason => format!("{expected}1 {reason}\n"),
        };
        mysql(&["BEGIN", "SELECT a", statement, "SELECT b", "ROLLBACK"], &expected);
    };
    between("CREATE TEMPORARY TABLE t (a INT)", both, "Schema");
    between("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", both, "Schema");
    between("DROP TEMPORARY TABLE IF EXISTS t", both, "Schema");
    between("CHECKSUM TABLE t", both, "Schema");
    between("SET autocommit = 1", both, "Session");
    between("SET autocommit = ON", both, "Session");
    between("SET @autocommit = 1", both, "Session");
    between("SET NAMES utf8mb4", both, "Session");
    between("UNLOCK TABLES", both, "Session");
    between("CREATE TABLE temporary (a INT)", apart, "Schema");
    between("TRUNCATE t", apart, "Schema");
    between("LOCK TABLES t WRITE", apart, "Session");
    between("FLUSH TABLES", apart, "Session");
    between("GRANT SELECT ON t TO u", apart, "Users");
    between("BEGIN", "1: \"SELECT a\", committed\n1: \"SELECT b\", rolled back\n", "");
    mysql(
        &[
            "SET autocommit = 0",
            "LOCK TABLES t WRITE",
            "SELECT a",
            "UNLOCK TABLES",
            "SELECT b",
            "ROLLBACK",
        ],
        "1: \"SELECT a\", committed\n1: \"SELECT b\", rolled back\n3 Session\n",
    );
    mysql(
        &[
            "SET sql_mode = '', @@session.autocommit = 'OFF'",
            "SELECT a",
            "SET autocommit = DEFAULT",
            "SELECT b",
        ],
        "1: \"SELECT a\", committed\n1: \"SELECT b\"\n2 Session\n",
    );
    mysql(&["SET GLOBAL autocommit = 0", "SELECT a", "ROLLBACK"], "1: \"SELECT a\"\n1 Session\n");
    // PostgreSQL's DDL is part of a transaction, and a second BEGIN is none.
    postgresql(
        &["BEGIN", "SELECT a", "CREATE TABLE t (a int)", "BEGIN", "SELECT b", "ROLLBACK"],
        &format!("{both}1 Schema\n"),
    );
}

#[test]
fn sessions_end_with_a_rollback() {
    let rolled_back = "1: \"SELECT a\"\n1: \"SELECT b\", rolled back\n";
    mysql(&["SELECT a", "BEGIN", "SELECT b"], rolled_back);
    mysql(&["SELECT a", "SET autocommit = 0", "SELECT b"], &format!("{rolled_back}1 Session\n"));
    postgresql(
        &["SELECT a", "BEGIN", "SELECT b", "LOG:  disconnection: session time: 0:00:01"],
        rolled_back,
    );
    postgresql(&["SELECT a", "BEGIN", "SELECT b", "FATAL:  terminating connection"], rolled_back);
    // The log does not have the end.
    let unfinished = "1: \"SELECT a\"\n1 Unfinished\n";
    postgresql(&["SELECT a", "BEGIN", "SELECT b"], unfinished);
    postgresql(
        &["SELECT a", "BEGIN", "SELECT b", "LOG:  connection received: host=[local]", "COMMIT"],
        unfinished,
    );
    check(&general(&["SELECT a", "BEGIN", "SELECT b"]).replace("Quit", "Ping"), unfinished);
}

#[test]
fn savepoints_take_back_what_was_done() {
    mysql(
        &["BEGIN", "SELECT a", "SAVEPOINT s", "SELECT b", "ROLLBACK TO s", "SELECT c", "COMMIT"],
        "1: \"SELECT a\" \"SELECT c\", committed\n2 Savepoint\n1 RolledBack\n",
    );
    mysql(
        &[
            "BEGIN",
            "SELECT a",
            "SAVEPOINT `S`",
            "SELECT b",
            "SAVEPOINT t",
            "SELECT c",
            "ROLLBACK WORK TO SAVEPOINT s",
            "COMMIT",
        ],
        "1: \"SELECT a\", committed\n3 Savepoint\n2 RolledBack\n",
    );
    // Those that are not there, or no longer, take nothing back.
    mysql(
        &["SAVEPOINT s", "BEGIN", "SELECT a", "ROLLBACK TO s", "SELECT b", "COMMIT"],
        "1: \"SELECT a\" \"SELECT b\", committed\n2 Savepoint\n",
    );
    let again = ["BEGIN", "SAVEPOINT s", "SELECT a", "SAVEPOINT s", "RELEASE SAVEPOINT s"];
    let again = [&again[..], &["SELECT b", "ROLLBACK TO s", "SELECT c", "COMMIT"]].concat();
    let all = "1: \"SELECT a\" \"SELECT b\" \"SELECT c\", committed\n4 Savepoint\n";
    mysql(&again, all);
    // In PostgreSQL the earlier one of the same name is there again.
    postgresql(&again, "1: \"SELECT c\", committed\n4 Savepoint\n2 RolledBack\n");
    mysql(
        &[
            "XA START 'x'",
            "SELECT a",
            "XA END 'x'",
            "XA PREPARE 'x'",
            "XA ROLLBACK 'x'",
            "SELECT b",
        ],
        "1: \"SELECT a\", rolled back\n1: \"SELECT b\"\n4 Savepoint\n",
    );
    postgresql(
        &["BEGIN", "SELECT a", "PREPARE TRANSACTION 'x'", "SELECT b", "COMMIT PREPARED 'x'"],
        "1: \"SELECT b\"\n3 Savepoint\n",
    );
}

#[test]
fn what_postgresql_refused_is_not_done() {
    let error = |statement: &'static str| {
        [statement.to_owned(), "ERROR:  no".to_owned(), format!("STATEMENT:  {statement}")]
    };
    let check = |groups: &[&[String]], expected: &str| {
        let lines: Vec<&str> =
            groups.iter().flat_map(|group| group.iter()).map(String::as_str).collect();
        postgresql(&lines, expected);
    };
    let one = |statement: &str| [statement.to_owned()];
    check(&[&one("SELECT a"), &error("SELECT b")], "1: \"SELECT a\"\n1 Failed\n");
    check(
        &[
            &one("BEGIN"),
            &one("SELECT a"),
            &error("SELECT b"),
            &error("SELECT c"),
            &one("COMMIT"),
            &one("SELECT d"),
        ],
        "1: \"SELECT a\", rolled back\n1: \"SELECT d\"\n2 Failed\n",
    );
    check(
        &[
            &one("BEGIN"),
            &one("SELECT a"),
            &one("SAVEPOINT s"),
            &error("SELECT b"),
            &one("ROLLBACK TO s"),
            &one("COMMIT"),
        ],
        "1: \"SELECT a\", committed\n2 Savepoint\n1 Failed\n",
    );
    check(
        &[&one("BEGIN"), &one("SELECT a"), &error("COMMIT"), &one("SELECT d")],
        "1: \"SELECT a\", rolled back\n1: \"SELECT d\"\n",
    );
    // Statements that are logged when they end are not logged if they fail.
    let ended = |statement: &str| [format!("LOG:  duration: 0.1 ms  statement: {statement}")];
    let failed = ["ERROR:  no".to_owned(), "STATEMENT:  SELECT a".to_owned()];
    check(
        &[
            &ended("BEGIN"),
            &ended("SELECT a"),
            &failed,
            &ended("COMMIT"),
            &failed,
            &ended("SELECT b"),
        ],
        "1: \"SELECT a\", rolled back\n1: \"SELECT b\"\n",
    );
}

#[test]
fn texts_of_several_statements_are_taken_apart() {
    mysql(
        &["SET autocommit = 0; SELECT a; SELECT ';'", "ROLLBACK; SELECT b;"],
        "1: \"SELECT a\" \"SELECT :v1\", rolled back\n1: \"SELECT b\", rolled back\n1 Session\n",
    );
    // In PostgreSQL they are one transaction.
    postgresql(
        &["SELECT a; SELECT b", "SET x = 1; SELECT c;"],
        "1: \"SELECT a\" \"SELECT b\", committed\n1: \"SELECT c\"\n1 Session\n",
    );
    postgresql(
        &["SELECT a; BEGIN; SELECT b", "SELECT c; ROLLBACK; SELECT d"],
        "1: \"SELECT a\" \"SELECT b\" \"SELECT c\", rolled back\n1: \"SELECT d\"\n",
    );
    postgresql(
        &["SELECT a", "SELECT b; SELECT c", "ERROR:  no", "STATEMENT:  SELECT b; SELECT c"],
        "1: \"SELECT a\"\n2 Failed\n",
    );
}

/// Entries of a slow log: lines before each statement, and the statement.
fn slow(entries: &[(&str, &str)]) -> String {
    let one = |(head, statement): &(&str, &str)| {
        format!(
            "{head}# Query_time: 0.1  Lock_time: 0.0\nSET timestamp=1547809741;\n{statement};\n"
        )
    };
    entries.iter().map(one).collect()
}

#[test]
fn slow_logs_without_connections() {
    let log = include_str!("../cases/C15-slow-no-id.log");
    check(
        log,
        "1: \"UPDATE orders SET total = 1 WHERE id = 1\", committed\n\
         1: \"UPDATE orders SET note = :v1 WHERE id = 2\", rolled back\n",
    );
    let study = captured(log).study;
    assert!(study.contains("# - connections, which this log does not number"), "{study}");
    let (app, job) =
        ("# User@Host: app[app] @ web [10.0.0.1]\n", "# User@Host: job[job] @ web [10.0.0.1]\n");
    check(
        &slow(&[(app, "BEGIN"), (job, "SELECT j"), (app, "SELECT a"), (app, "ROLLBACK")]),
        "1: \"SELECT j\"\n1: \"SELECT a\", rolled back\n",
    );
    check(
        &slow(&[
            (app, "SET autocommit=0"),
            (job, "SELECT j"),
            (app, "SELECT a"),
            (job, "SELECT k"),
            (app, "ROLLBACK"),
        ]),
        "1: \"SELECT j\"\n1: \"SELECT k\"\n1: \"SELECT a\", rolled back\n1 Session\n",
    );
    // Nobody knows whose statements these are.
    let nobody = slow(&[
        ("# User@Host: a[a] @ b []\n", "BEGIN"),
        ("", "SELECT a"),
        ("", "ROLLBACK"),
        ("", "SELECT b"),
    ]);
    check(&nobody, "1: \"SELECT a\"\n1: \"SELECT b\"\n");
    assert!(captured(&nobody).study.contains("each of these is its own transaction"));
    let numbered = |n: u32| format!("# User@Host: app[app] @ web [10.0.0.1]  Id: {n}\n");
    let (one, other) = (numbered(1), numbered(2));
    let log = slow(&[(&one, "BEGIN"), (&other, "SELECT b"), (&one, "SELECT a"), (&one, "COMMIT")]);
    check(&log, "1: \"SELECT b\"\n1: \"SELECT a\", committed\n");
    assert!(!captured(&log).study.contains("- connections"));
}

#[test]
fn statements_of_routines_are_done_by_their_calls() {
    let log = include_str!("../cases/C5-slow-routine.log");
    let calls = Request { has_routines: true, ..request() };
    assert_eq!(kinds(log, &calls), "1: \"CALL bump(3)\"\n1 Inner\n");
    let words = "it contains nothing to replay: 2 statements were read, 1 inside stored routines";
    assert!(kinds(log, &request()).starts_with(words));
    let (outer, inner) = ("# Thread_id: 5\n", "# Thread_id: 5\n# Stored_routine: shop.f\n");
    check(
        &slow(&[(inner, "INSERT INTO t VALUES (1)"), (inner, "CALL i()"), (outer, "SELECT f(3)")]),
        "1: \"SELECT f(3)\"\n2 Inner\n",
    );
    check(
        &slow(&[(inner, "BEGIN"), (outer, "SELECT a"), (outer, "SELECT b")]),
        "1: \"SELECT a\"\n1: \"SELECT b\"\n1 Inner\n",
    );
    // MySQL does not say that it is one.
    mysql(&["SELECT a", "UPDATE t SET n =  NAME_CONST('c',3)"], "1: \"SELECT a\"\n1 Inner\n");
}

/// A small log cannot have a large memory of what was seen of its values.
#[test]
fn places_of_all_transactions_are_bounded() {
    let lists = "a IN (1) OR ".repeat(20);
    let mut all = Vec::new();
    for transaction in 0..6 {
        all.push("BEGIN".to_owned());
        let statement = |nth| format!("SELECT b{} FROM t{transaction}x WHERE {lists} c", nth % 2);
        all.extend((0..400).map(statement));
        all.push("COMMIT".to_owned());
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let counts = captured_with(&general(&all), &Request { kinds: 1, ..request() }).counts;
    assert_eq!(counts.replayed, 400);
    let left_out = BTreeMap::from([(Reason::Rare, 2 * 400), (Reason::Limits, 3 * 400)]);
    assert_eq!(counts.left_out, left_out);
}
