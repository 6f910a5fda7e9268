//! Logs as servers write them with other settings, and as programs rewrite them.

use super::*;

/// The statements of the study of a log, whose values stay numbers.
#[track_caller]
fn check(log: &str, expected: &[&str]) {
    let captured = captured(log);
    let statements = transactions(&captured.study);
    let found: Vec<&str> = statements
        .lines()
        .filter_map(|line| line.strip_prefix("sql = \"")?.strip_suffix('"'))
        .collect();
    assert_eq!(found, expected, "{log}");
    assert_eq!(captured.counts.read, captured.transactions, "{log}");
}

const POINT: &str = "SELECT id FROM orders WHERE id = :v1";

#[test]
fn slow_logs_with_the_plans_of_statements() {
    let log = include_str!("../cases/C4-slow-explain.log");
    let expected = &[
        "SELECT id, total FROM orders WHERE customer = 4",
        "UPDATE orders SET total = total + 1 WHERE id = 7",
    ];
    check(log, expected);
    // What the engine did stands between them.
    let engine = "#   Pages_accessed: 2  Pages_read: 0\n#\n# explain:";
    check(&log.replace("#\n# explain: id", &format!("{engine} id")), expected);
    check(
        &log.replace("#\n# explain: id", "# Full_scan: No  Full_join: No\n# explain: id"),
        expected,
    );
    check(&log.replace("Extra\n", "Schema: other  Thread_id: 9\n"), expected);
    check(&log.replace("\n#\nuse", "\n# explain:\n#\n#\nuse"), expected);
}

#[test]
fn slow_logs_that_were_filtered() {
    let entry = |head: &str, id: u32| {
        format!("{head}SET timestamp=1547809741;\nSELECT id FROM orders\nWHERE id = {id};\n")
    };
    for head in [
        "# Query_time: 0.1  Lock_time: 0.0 Rows_sent: 0\n",
        "# Schema: shop  Last_errno: 0  Killed: 0\n# Query_time: 0.1  Lock_time: 0.0\n",
        "# Thread_id: 4  Schema: shop  QC_hit: No\n# Query_time: 0.1  Lock_time: 0.0\n",
        "# Time: 190118 12:09:01\n# Query_time: 0.1  Lock_time: 0.0\n",
        "# User@Host: app[app] @ web1 [10.0.0.1]\n# Query_time: 0.1  Lock_time: 0.0\n",
    ] {
        let log = "# User@Host: app[app] @ web1 []\n".to_owned()
            + &entry(head, 3)
            + &entry(head, 8)
            + &entry(head, 9);
        check(&log, &[POINT]);
    }
}

#[test]
fn general_logs_with_blanks() {
    let log = include_str!("../cases/C13-general-blanks.log");
    check(log, &[POINT]);
    check(&log.replace('\t', "   "), &[POINT]);
    let older = "051007 21:55:24       42 Connect     db1@web1 on shop using Socket\n\
                 \x20                     42 Query       SELECT id\n\
                 FROM orders WHERE id = 3\n\
                 \x20                     42 Init DB     shop\n\
                 051007  1:55:24       42 Query       SELECT id FROM orders WHERE id = 8\n\
                 \x20                     42 Quit\n";
    check(older, &[POINT]);
    // In a log with tabs such a line is part of a statement.
    let log = general(&["SELECT id\n                      42 Query FROM orders WHERE id = 3"]);
    check(&log, &["SELECT id 42 Query FROM orders WHERE id = 3"]);
}

#[test]
fn logs_of_postgresql_with_all_of_a_message() {
    let log = include_str!("../cases/C6-verbose.log");
    let expected =
        &["SELECT id FROM orders WHERE id = 7", "SELECT total FROM orders WHERE id = :v1"];
    check(log, expected);
    check(&log.replace("00000: statement", "00000: duration: 0.1 ms  statement"), expected);
    let failed = "2026-11-26 20:46:01.124 UTC [77] me@shop ERROR:  22P02: no\n\
                  2026-11-26 20:46:01.124 UTC [77] me@shop LOCATION:  x, y.c:1\n\
                  2026-11-26 20:46:01.124 UTC [77] me@shop STATEMENT:  SELECT id FROM orders WHERE id = 7;\n";
    let (first, rest) = log.split_once("2026-11-26 20:46:01.200").unwrap();
    let captured = captured(&format!("{first}{failed}2026-11-26 20:46:01.200{rest}"));
    assert_eq!((captured.counts.replayed, captured.counts.left_out[&Reason::Failed]), (1, 1));
}

#[test]
fn prefixes_that_the_log_says() {
    let log = include_str!("../cases/C7-other-prefix.log");
    let expected = &[POINT, "UPDATE orders SET total = 3 WHERE id = 9"];
    check(log, expected);
    assert_eq!(captured(log).schema.as_deref(), Some("shop"));
    let (server, sessions) = log.split_at(log.find("2026-11-26 20:46:01.123").unwrap());
    for (prefix, of) in [
        ("< %m %c %e %Q > ", "< 2026-11-26 20:46:01.123 UTC 6560.4d 00000 7 > LOG:"),
        ("%n %p %d %b ", "1795725961.123 77 shop client backend LOG:"),
        ("%t:%r:%u %d:[%p]: ", "2026-11-26 20:46:01 UTC:[local]:me shop:[77]: LOG:"),
        ("[%p] %d/%u ", "[77] shop/me LOG:"),
    ] {
        let server = server.replace("%m [%p] %d %u ", prefix);
        let line = |line: &str| format!("{of}{}\n", line.split_once("LOG:").unwrap().1);
        let sessions: String = sessions.lines().map(line).collect();
        check(&(server.clone() + &sessions), expected);
        // Without the message, nobody knows it.
        let unsaid: String = server.lines().take(1).map(|line| line.to_owned() + "\n").collect();
        let error =
            capture(&mut (unsaid + &sessions).as_bytes(), &request()).unwrap_err().to_string();
        assert!(error.contains("--prefix"), "{error}");
    }
}
