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
    postgresql("SELECT a, b INTO c FROM d", Reason::Schema);
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
