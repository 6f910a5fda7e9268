//! `tpcb`: pgbench's tables, with an audit that passes on every product and finds what is wrong.

use std::process::Command;

use dyno_load::{OUTCOMES, StepTotals};
use dyno_model::Load;
use dyno_workload::{AuditRow, AuditTotals, Connection, KindTotals, MadeWorkload, TextRows};

use crate::bench::check_audit;
use crate::foreign::{Standing, planned, put_load};
use crate::support::Workbench;

const CLIENTS: Load = Load::Closed { clients: 4 };

fn workload(options: &[(&str, &str)]) -> MadeWorkload {
    planned("tpcb", options)
}

fn every_script_on(product: &str) {
    let bench = Workbench::new();
    let standing = (product != "sqlite").then(|| Standing::start(product));
    let on = standing.as_ref().map_or_else(|| product.to_owned(), |server| server.url("scripts"));
    for (script, statements) in [("tpcb-like", 7), ("simple-update", 5), ("select-only", 1)] {
        let protocols: &[&str] = match product {
            "postgresql" => &["prepared", "simple", "extended"],
            _ => &["prepared", "simple"],
        };
        for &protocol in protocols {
            let arguments = ["tpcb", "--on", &on, "--script", script, "--protocol", protocol];
            let length = ["--duration", "400ms", "--warm-up", "100ms", "--clients", "3"];
            let result = bench.bench(&[&arguments[..], &length[..]].concat());
            let name = format!("{script} {protocol} on {product}");
            let count = |name: &str| result[name].as_u64().unwrap();
            assert!(count("transactions") > 0, "{name}: {result:#}");
            check_audit(&result, &name);
            let sent = format!("statements sent, {statements} per transaction");
            assert_eq!(result["audit"][0]["name"], sent.as_str(), "{name}");
            if count("retries") == 0 && result["errors"] == serde_json::json!({}) {
                assert_eq!(count("statements"), statements * count("transactions"), "{name}");
            }
        }
    }
}

#[test]
fn every_script_passes_its_audit_on_sqlite() {
    every_script_on("sqlite");
}

#[test]
fn every_script_passes_its_audit_on_mariadb() {
    every_script_on("mariadb");
}

#[test]
fn every_script_passes_its_audit_on_postgresql() {
    every_script_on("postgresql");
}

#[test]
fn extended_is_refused_by_check_where_nothing_is_unnamed() {
    let bench = Workbench::new();
    let check = |product: &str, expected: &str| {
        let study = format!(
            "title = \"x\"\n[database.a]\nproduct = \"{product}\"\n[workload.tpcb]\n\
             protocol = \"extended\"\n[design]\nduration = \"1s\"\nclients = 1\n"
        );
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["check", "study.toml"]);
        let is_refused = !expected.is_empty();
        assert_eq!(answer.code != 0, is_refused, "{product}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(expected), "{product}: {}", answer.err);
    };
    check("mariadb", "two round trips");
    check("sqlite", "has no wire protocol");
    check("postgresql", "");
}

#[test]
fn a_fillfactor_is_refused_where_there_is_none() {
    let bench = Workbench::new();
    let arguments = ["bench", "tpcb", "--fillfactor", "80", "--duration", "200ms"];
    let answer = bench.dyno(&[&arguments[..], &["--on", "sqlite"]].concat());
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("--fillfactor: only tables of PostgreSQL"), "{}", answer.err);
    let answer = bench.dyno_good(&[&arguments[..], &["--on", "postgresql"]].concat());
    let audit = answer.out.lines().find(|line| line.starts_with("audit ")).unwrap();
    assert!(audit.contains(" passed") && !audit.contains("FAILED"), "{audit}");
}

/// The four tables from outside: columns, keys, storage options, and a digest of all rows.
pub(crate) fn seen(connection: &mut dyn Connection) -> Vec<TextRows> {
    let catalog = [
        "SELECT table_name, column_name, ordinal_position, data_type, character_maximum_length, \
         is_nullable, column_default FROM information_schema.columns \
         WHERE table_name LIKE 'pgbench%' ORDER BY table_name, ordinal_position",
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint \
         WHERE conrelid::regclass::text LIKE 'pgbench%' ORDER BY 1, 2",
        "SELECT relname, reloptions FROM pg_class \
         WHERE relname LIKE 'pgbench%' AND relkind = 'r' ORDER BY 1",
        "SELECT tablename, indexname, indexdef FROM pg_indexes \
         WHERE tablename LIKE 'pgbench%' ORDER BY 1, 2",
    ];
    let digest = |table: &str| {
        format!(
            "SELECT COUNT(*), md5(string_agg(t::text, ';' ORDER BY t::text COLLATE \"C\")) \
             FROM pgbench_{table} t"
        )
    };
    let rows = ["branches", "tellers", "accounts", "history"].map(digest);
    let queries = catalog.into_iter().chain(rows.iter().map(String::as_str));
    queries.map(|sql| connection.query(sql).unwrap()).collect()
}

#[test]
fn the_tables_are_those_of_pgbench() {
    let standing = Standing::start("postgresql");
    let mut connection = standing.connection();
    for fillfactor in ["100", "85"] {
        let output = Command::new("pgbench")
            .args(["--initialize", "--quiet", "--scale=1", "--fillfactor", fillfactor])
            .arg(format!("--host={}", standing.socket.parent().unwrap().display()))
            .arg(format!("--port={}", standing.socket.extension().unwrap().to_string_lossy()))
            .args(["--username=dyno", "dyno"])
            .output()
            .expect("pgbench is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let of_pgbench = seen(connection.as_mut());
        let accounts = of_pgbench[6][0][0].as_deref();
        assert_eq!((of_pgbench[0].len(), accounts), (17, Some("100000")), "{of_pgbench:?}");
        drop_tables(connection.as_mut());
        standing.populate(&*workload(&[("fillfactor", fillfactor)]));
        assert_eq!(seen(connection.as_mut()), of_pgbench);
        drop_tables(connection.as_mut());
    }
}

fn drop_tables(connection: &mut dyn Connection) {
    for table in ["branches", "tellers", "accounts", "history"] {
        connection.query(&format!("DROP TABLE pgbench_{table}")).unwrap();
    }
}

/// Of a step without a warm-up.
fn totals(step: &StepTotals) -> AuditTotals {
    let count = |name: &str| {
        let idx = OUTCOMES.iter().position(|outcome| *outcome == name).unwrap();
        step.measured.kinds[0].outcomes.0[idx]
    };
    let attempts: u64 = step.measured.kinds[0].outcomes.0.iter().sum();
    let (committed, lost) = (count("committed"), count("disconnected") + count("timed_out"));
    AuditTotals {
        kinds: vec![KindTotals {
            committed,
            lost,
            undone: attempts - committed - lost,
            ..KindTotals::default()
        }],
        tally: step.measured.tally,
        in_flight: step.in_flight_at_end,
    }
}

fn audit(
    workload: &MadeWorkload,
    totals: &AuditTotals,
    connection: &mut dyn Connection,
) -> Vec<AuditRow> {
    let queries = workload.audit_queries(connection.dialect());
    let answers: Vec<TextRows> = queries.iter().map(|sql| connection.query(sql).unwrap()).collect();
    workload.audit(totals, &answers)
}

fn failed(rows: &[AuditRow]) -> Vec<&str> {
    rows.iter().filter(|row| !row.pass).map(|row| row.name.as_str()).collect()
}

#[test]
fn a_balance_that_somebody_changed_and_a_row_that_is_lost_are_found() {
    let standing = Standing::start("mariadb");
    let workload = workload(&[]);
    standing.populate(&*workload);
    let totals = totals(&put_load(standing.connector(), &workload, CLIENTS, 1));
    let mut connection = standing.connection();
    let connection = connection.as_mut();
    let rows = audit(&workload, &totals, connection);
    assert_eq!((rows.len(), failed(&rows)), (9, vec![]), "{rows:?}");

    connection.query("UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 3").unwrap();
    let rows = audit(&workload, &totals, connection);
    assert_eq!(
        failed(&rows),
        ["sum of teller balances must equal the sum of the deltas in history"]
    );

    let n_lost = totals.unknown() + 1;
    connection.query("UPDATE pgbench_tellers SET tbalance = tbalance - 1 WHERE tid = 3").unwrap();
    connection.query("UPDATE pgbench_history SET delta = 0 LIMIT 1").unwrap();
    connection.query(&format!("DELETE FROM pgbench_history LIMIT {n_lost}")).unwrap();
    let rows = audit(&workload, &totals, connection);
    assert!(failed(&rows).contains(&"rows in history, 1 per transaction"), "{rows:?}");
}

#[test]
fn connections_that_are_lost_leave_bounds_and_no_false_alarm() {
    let standing = Standing::start("postgresql");
    let workload = workload(&[("scale", "2")]);
    standing.populate(&*workload);
    let connector = standing.connector();
    let step = std::thread::scope(|scope| {
        let load = scope.spawn(|| put_load(connector, &workload, CLIENTS, 2));
        let mut connection = standing.connection();
        while !load.is_finished() {
            let others = "datname = current_database() AND backend_type = 'client backend' \
                          AND pid <> pg_backend_pid()";
            let end =
                format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}");
            connection.query("SELECT pg_sleep(0.3)").unwrap();
            connection.query(&end).unwrap();
        }
        load.join().unwrap()
    });
    let totals = totals(&step);
    assert!(totals.kinds[0].lost > 0 && totals.committed() > 0, "{totals:?}");
    let rows = audit(&workload, &totals, standing.connection().as_mut());
    assert_eq!(failed(&rows), Vec::<&str>::new(), "{rows:?}");
}
