//! Statements that use more than an application's own tables are left out.

use super::*;

/// The reasons for which statements of a log are left out; what is replayed is `SELECT kept`.
#[track_caller]
fn check(log: &str, expected: &[(Reason, u64)]) {
    let captured = captured(log);
    let left_out: Vec<(Reason, u64)> = captured.counts.left_out.into_iter().collect();
    assert_eq!(left_out, expected, "{log}");
    let study = transactions(&captured.study);
    assert_eq!(study.matches("sql = ").count(), study.matches("SELECT kept").count(), "{study}");
}

#[track_caller]
fn mysql(statement: &str, reason: Reason) {
    check(&general(&["SELECT kept", statement]), &[(reason, 1)]);
}

#[track_caller]
fn postgresql(statement: &str, reason: Reason) {
    let line =
        |text: &str| format!("2026-11-26 20:46:00.123 UTC [77] me@shop LOG:  statement: {text}\n");
    check(&(line("SELECT kept") + &line(statement)), &[(reason, 1)]);
}

#[test]
fn functions_and_tables_of_the_server() {
    let log = include_str!("../cases/C12-server-control.log");
    let error = capture(&mut log.as_bytes(), &request()).unwrap_err().to_string();
    assert!(error.contains("12 statements were read, 12 that use the server's own"), "{error}");
    for statement in [
        "SELECT pg_cancel_backend(7)",
        "SELECT \"pg_terminate_backend\"(pid) FROM x",
        "SELECT * FROM pg_catalog.pg_stat_activity",
        "UPDATE pg_authid SET rolsuper = true",
        "SELECT pg_stat_statements_reset()",
        "SELECT pg_advisory_lock(7)",
        "SELECT set_config('search_path', '', false)",
        "SELECT SET_CONFIG ('role', 'x', false)",
        "SELECT setval('a', 7)",
        "SELECT dblink_exec('host=x', 'DROP TABLE y')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT query_to_xml('SELECT 1', true, true, '')",
        "SELECT U&\"\\0070g_terminate_backend\"(7)",
        "SELECT 1 FROM information_schema.tables",
        "SELECT table_to_xml('pg_authid', true, false, '')",
        "SELECT database_to_xml_and_xmlschema(true, true, '')",
        "SELECT lowrite(1, 'x')",
        "SELECT * FROM crosstab2('DROP TABLE t')",
        "SELECT * FROM xpath_table('a', 'b', 'c', 'd', 'DROP TABLE t')",
        "SELECT http_get('http://x/')",
        "SELECT postgres_fdw_disconnect_all()",
    ] {
        postgresql(statement, Reason::Server);
    }
    for statement in [
        "DELETE FROM mysql.global_priv",
        "UPDATE `MySQL` . `user` SET a = 1",
        "REPLACE INTO t SELECT * FROM sys.x",
        "SELECT GET_LOCK('a', 10)",
        "SELECT SLEEP(10)",
        "SELECT benchmark (10, 1)",
        "SELECT sys_exec('id')",
        "SELECT SETVAL(orders_seq, 1)",
        "SELECT spider_direct_sql('DROP TABLE t', '', '')",
        "SELECT group_replication_set_as_primary('x')",
        "SELECT `sleep`(10)",
        "SELECT mroonga_command(a) FROM t",
        "SELECT flush_rewrite_rules()",
        // Names in the mode ANSI_QUOTES.
        "SELECT * FROM t JOIN \"mysql\".user",
        "UPDATE \"MySQL\".user SET a = 1",
        "SELECT SQL_BUFFER_RESULT \"sleep\"(10)",
    ] {
        mysql(statement, Reason::Server);
    }
    check(
        &general(&["SELECT kept", "SELECT kept", "USE mysql", "DELETE FROM global_priv"]),
        &[(Reason::Session, 1), (Reason::Server, 1)],
    );
    // These are columns and tables of applications.
    let plain =
        ["SELECT sleep FROM nights", "SELECT mysql FROM products", "SELECT u.dblink FROM u"];
    assert_eq!(captured(&general(&plain)).counts.replayed, 3);
    for statement in [
        "SELECT a, b INTO c FROM d",
        "(SELECT a, b INTO c FROM d)",
        "WITH x AS (SELECT 1) (SELECT a INTO c FROM d)",
        "SELECT 1 AS insert INTO c",
        "SELECT a merge INTO c FROM d",
        "WITH x AS (SELECT 1) SELECT (1) insert INTO c FROM x",
    ] {
        postgresql(statement, Reason::Schema);
    }
    // Where a number ends, servers begin another word.
    for statement in ["SELECT 1into c", "SELECT 1.5into c", "SELECT 1e1into c", "SELECT 0x1into c"]
    {
        postgresql(statement, Reason::NotUnderstood);
    }
    for statement in ["SELECT 1.5union TABLE t", "SELECT 1e1union TABLE t", "SELECT [a].[b]"] {
        mysql(statement, Reason::NotUnderstood);
    }
    assert_eq!(captured(&general(&["SELECT 1e5, 1.5e-3, .5 FROM 2fa"])).counts.replayed, 1);
}

#[test]
fn files_are_neither_read_nor_written() {
    for statement in [
        "SELECT LOAD_FILE ('/etc/passwd')",
        "SELECT `load_file`(a) FROM t",
        "SELECT SQL_BUFFER_RESULT \"Load_File\"(a) FROM t",
        "SELECT a FROM t INTO OUTFILE '/tmp/x'",
        "TABLE t INTO DUMPFILE '/tmp/x'",
    ] {
        mysql(statement, Reason::File);
    }
    assert_eq!(captured(&general(&["SELECT load_file FROM uploads"])).counts.replayed, 1);
    // They add rows.
    let line =
        |text: &str| format!("2026-11-26 20:46:00.123 UTC [77] me@shop LOG:  statement: {text}\n");
    let log = line("WITH x AS (SELECT 1) INSERT INTO t SELECT 1 FROM x")
        + &line("WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT a FROM x");
    assert_eq!(captured(&log).counts.replayed, 2);
}

#[test]
fn comments_that_the_server_executes() {
    for statement in [
        "SELECT id /*!50000 INTO DUMPFILE '/tmp/x' */ FROM t",
        "SELECT id /* a *//*!INTO OUTFILE '/tmp/x'*/ FROM t",
        "SELECT id /*M!100101 INTO OUTFILE '/tmp/x' */ FROM t",
        "SELECT id /*+ X(t) */ /*! INTO OUTFILE '/tmp/x' */ FROM t",
        "SELECT 'it''s /*! INTO OUTFILE \"/tmp/x\" */'",
        "/*!40101 SET NAMES utf8 */",
    ] {
        mysql(statement, Reason::Executable);
    }
    // What they do to the transaction counts nevertheless.
    let log = general(&["/*!40101 SET autocommit = 0 */", "SELECT a", "/*! COMMIT */", "SELECT b"]);
    let study = transactions(&captured(&log).study);
    assert!(study.contains("SELECT a\"\n[t2_select]\nweight = 1\n"), "{study}");
    assert!(study.ends_with("roll_back = true\n"), "{study}");
    // Hints stay, and nothing that stands beside them.
    let study = captured(&general(&[
        "SELECT /*+ X(t) */ /* s3cret */ a -- s3cret\n /* s3cret */ /*+ Y */ FROM t",
    ]))
    .study;
    assert!(study.contains("sql = \"SELECT /*+ X(t) */ a /*+ Y */ FROM t\""), "{study}");
}

/// Of literals that stay, only those that are no values.
#[test]
fn values_that_cannot_be_drawn_are_not_shown() {
    mysql("SELECT a FROM t WHERE b = 'Alice' 'Smith'", Reason::Literal);
    postgresql("SELECT a FROM t WHERE b = 'Alice'\n\t'Smith'", Reason::Literal);
    postgresql("SELECT a FROM t WHERE b = varchar 'Alice'", Reason::Literal);
    let study =
        captured(&general(&["SELECT SQL_BIG_RESULT 'Alice' 'name'; SELECT a 'Name' FROM t"]));
    assert_eq!(study.counts.left_out, BTreeMap::from([(Reason::Literal, 1)]));
    assert!(study.study.contains("SELECT a 'Name' FROM t"), "{}", study.study);
    let log = general(&["SELECT a FROM t WHERE passphrase = 'hunter-two' AND b = 1"; 6]);
    assert!(!captured(&log).study.contains("hunter"));
    let request = Request { has_texts: true, ..request() };
    let log = general(&["SELECT a FROM t WHERE b = 'Alice' 'Smith'"]);
    assert!(captured_with(&log, &request).study.contains("'Alice' 'Smith'"));
}

#[test]
fn hints_that_change_settings() {
    let study = captured(&general(&[
        "SELECT /*+ SET_VAR(foreign_key_checks = 0) BKA(t) */ a FROM t",
        "SELECT /*+ resource_group(r) */ a FROM t",
        "SELECT /*+ Set(work_mem '1MB') */ a FROM t",
    ]))
    .study;
    assert_eq!(study.matches("sql = \"SELECT a FROM t\"").count(), 1, "{study}");
    assert!(!study.contains("/*+"), "{study}");
    // For MySQL the hint ends behind the quoted name, and what is a name here is a part of the statement.
    let hidden = "SELECT /*+ BKA(`*/ `) */ INTO OUTFILE '/tmp/x' /* ` */ 1";
    let study = captured(&general(&[hidden])).study;
    assert!(study.contains("sql = \"SELECT `) */ INTO"), "{study}");
}

/// What is in a literal for one server is a part of the statement for another.
#[test]
fn literals_that_stay_have_one_end_for_all_servers() {
    mysql(r"SELECT 1 AS 'x\', sleep(10), ', 2 AS 'y'", Reason::NotUnderstood);
    mysql(r#"SELECT 1 AS "x\", sleep(10), ", 2 AS "y""#, Reason::NotUnderstood);
    let kept = |log: &str, expected: &str| {
        let study = captured(log).study;
        assert!(study.contains(expected), "{study}");
    };
    kept(&general(&[r"SELECT a FROM t WHERE b LIKE 'c' ESCAPE '\\'"]), r"ESCAPE '\\\\'");
    let line = "2026-11-26 20:46:00.123 UTC [77] me@shop LOG:  statement: ";
    kept(
        &format!(r"{line}SELECT to_char(a, 'b\', ' || pg_sleep(1) || ') FROM t"),
        r"to_char(a, E'b\\\\', ' || pg_sleep(1) || ')",
    );
}

#[test]
fn routines_are_called_on_request() {
    mysql("CALL rebuild(7)", Reason::Routine);
    mysql("DO release(7)", Reason::Routine);
    postgresql("DO $$ BEGIN DELETE FROM t; END $$", Reason::Routine);
    let request = Request { has_routines: true, ..request() };
    let log = general(&["CALL rebuild(7)", "CALL mysql.rds_kill(44)", "DO sleep(5)"]);
    let captured = captured_with(&log, &request);
    assert!(captured.study.contains("sql = \"CALL rebuild(7)\""), "{}", captured.study);
    assert_eq!(captured.counts.left_out, BTreeMap::from([(Reason::Server, 2)]));
}
