//! `tpcc`: an audit that passes on every product in every mode, and finds what is not TPC-C.

use dyno_load::{AbortFlag, Job, OUTCOMES, StepSpec, StepTotals, run_step};
use dyno_model::{Load, StepRequest};
use dyno_units::{Nanoseconds, Seed};
use dyno_workload::tpcc::{self, Fault};
use dyno_workload::{
    AuditRow, AuditTotals, Connection, KindTotals, MadeWorkload, TextRows, Workload,
};

use crate::bench::check_audit;
use crate::foreign::{Standing, TestClock};
use crate::support::Workbench;

const CLIENTS: Load = Load::Closed { clients: 4 };

/// A fiftieth of TPC-C is quickly populated.
fn small(options: &[(&str, &str)], fault: Option<Fault>) -> MadeWorkload {
    let given = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let planned = tpcc::small_spec(fault).plan(&given.collect(), StepRequest::LEAST, Seed(5));
    MadeWorkload::new(planned.unwrap())
}

/// At full size, by the program.
fn bench_on(product: &str, options: &[&str]) {
    let bench = Workbench::new();
    let arguments = ["tpcc", "--on", product, "--duration", "1s", "--warm-up", "200ms"];
    let result = bench.bench(&[&arguments[..], &["--clients", "4"], options].concat());
    let name = format!("tpcc {options:?} on {product}");
    assert!(result["transactions"].as_u64().unwrap() > 0, "{name}: {result:#}");
    check_audit(&result, &name);
    let rows = result["audit"].as_array().unwrap();
    assert_eq!(rows.len(), 54, "{name}");
    let conditions = rows.iter().filter(|row| row["name"].as_str().unwrap().contains("condition "));
    assert_eq!(conditions.count(), 24, "twelve before and twelve after");
    assert_eq!(result["new_orders"]["name"], "NOPM", "{name}");
    assert_eq!(result["new_orders"]["mode"], "unpaced", "{name}");
    assert!(result["new_orders"]["per_minute"].as_f64().unwrap() > 0.0, "{name}");
    let refused = result["outcomes"]["refused"].as_u64().unwrap_or_default();
    assert_eq!(refused, 0, "{name}: {}", result["errors"]);
}

#[test]
fn a_warehouse_passes_its_audit_on_sqlite() {
    bench_on("sqlite", &["--batched", "on"]);
}

#[test]
fn a_warehouse_passes_its_audit_on_mariadb() {
    bench_on("mariadb", &["--procedures", "on"]);
}

#[test]
fn two_warehouses_pass_their_audit_on_postgresql() {
    bench_on("postgresql", &["--warehouses", "2", "--mix", "deck"]);
}

/// Payments take three seconds to key, smaller requests two: within five seconds most of ten
/// terminals do something, and none a third time.
#[test]
fn paced_terminals_key_and_think_and_are_named_so() {
    let bench = Workbench::new();
    let arguments = ["tpcc", "--on", "postgresql", "--mode", "paced"];
    let length = ["--duration", "5s", "--warm-up", "0s", "--clients", "10"];
    let result = bench.bench(&[&arguments[..], &length].concat());
    check_audit(&result, "paced");
    let n = result["transactions"].as_u64().unwrap();
    assert!((1..=20).contains(&n), "{n}");
    assert_eq!(result["new_orders"]["name"], "tpmC");
    assert_eq!(result["new_orders"]["mode"], "paced");
    assert_eq!(result["options"]["mode"], "paced");
    // Response times exclude keying and thinking.
    let median = result["response_time_us"]["p50"].as_f64().unwrap();
    assert!(median < 2e6, "{median}");
}

/// Of a step without a warm-up.
fn totals(step: &StepTotals) -> AuditTotals {
    let kinds = step.measured.kinds.iter().map(|kind| {
        let count = |name: &str| {
            let idx = OUTCOMES.iter().position(|outcome| *outcome == name).unwrap();
            kind.outcomes.0[idx]
        };
        let attempts: u64 = kind.outcomes.0.iter().sum();
        let (committed, rolled_back) = (count("committed"), count("rolled_back"));
        let lost = count("disconnected") + count("timed_out");
        let undone = attempts - committed - rolled_back - lost;
        KindTotals { committed, rolled_back, undone, lost }
    });
    AuditTotals {
        kinds: kinds.collect(),
        tally: step.measured.tally,
        in_flight: step.in_flight_at_end,
    }
}

/// Loads the tables for a second at a time, with new draws, until it is enough; longer on a slow
/// machine.
fn load_until(
    standing: &Standing,
    workload: &MadeWorkload,
    is_enough: fn(&AuditTotals) -> bool,
) -> AuditTotals {
    let mut all = AuditTotals::default();
    // What is under way at the end of a step may hide a fault: steps get longer, so that they stay few.
    for nth in 0..6 {
        let job = Job {
            workload: workload.clone(),
            connector: standing.connector(),
            clock: TestClock::start(),
            abort: AbortFlag::new(),
        };
        let spec = StepSpec {
            load: CLIENTS,
            step: 0,
            warm_up: Nanoseconds::ZERO,
            duration: Nanoseconds::from_secs(1 << nth),
            until_steady: None,
            gone_limit: Some(dyno_load::GONE_LIMIT),
            statement_timeout: Nanoseconds::from_secs(30),
            retries: 10,
            workers: 1,
            cpus: Vec::new(),
            seed: Seed(nth),
        };
        all.add(&totals(&run_step(&spec, &job, &mut |_| {}).unwrap()));
        if is_enough(&all) {
            return all;
        }
    }
    panic!("not even a minute is enough: {all:?}");
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

fn drop_tables(workload: &dyn Workload, connection: &mut dyn Connection) {
    for table in workload.tables(connection.dialect()).iter().rev() {
        connection.query(&format!("DROP TABLE {}", table.name)).unwrap();
    }
}

/// Audits before and after a load.
fn every_manner_on(product: &str) {
    let standing = Standing::start(product);
    let mut connection = standing.connection();
    let manners: [&[(&str, &str)]; 6] = [
        &[("warehouses", "2")],
        &[("warehouses", "2"), ("batched", "on"), ("home", "off"), ("sort_lines", "off")],
        &[("warehouses", "2"), ("pipelined", "on")],
        &[("warehouses", "1"), ("pipelined", "on"), ("batched", "on"), ("sort_lines", "off")],
        &[("warehouses", "2"), ("procedures", "on"), ("mix", "deck")],
        &[("warehouses", "1"), ("tables", "2"), ("foreign_keys", "on"), ("consistency", "after")],
    ];
    for options in manners {
        let workload = small(options, None);
        standing.populate(&*workload);
        let rows = audit(&workload, &AuditTotals::default(), connection.as_mut());
        assert_eq!(failed(&rows), Vec::<&str>::new(), "fresh, {options:?}: {rows:#?}");
        let totals = load_until(&standing, &workload, |all| {
            all.kinds[1].committed >= 40 && all.kinds[3].committed >= 2
        });
        let rows = audit(&workload, &totals, connection.as_mut());
        assert_eq!(failed(&rows), Vec::<&str>::new(), "{options:?}: {rows:#?}");
        drop_tables(&*workload, connection.as_mut());
    }
}

#[test]
fn every_manner_of_asking_passes_on_mariadb() {
    every_manner_on("mariadb");
}

#[test]
fn every_manner_of_asking_passes_on_postgresql() {
    every_manner_on("postgresql");
}

#[test]
fn what_is_not_tpcc_fails_its_audit() {
    let standing = Standing::start("postgresql");
    let mut connection = standing.connection();
    let mut check = |fault, is_enough: fn(&AuditTotals) -> bool, expected: &[&str]| {
        let workload = small(&[("warehouses", "4"), ("consistency", "after")], Some(fault));
        standing.populate(&*workload);
        let totals = load_until(&standing, &workload, is_enough);
        let rows = audit(&workload, &totals, connection.as_mut());
        let failed = failed(&rows);
        let is_as_expected = failed.len() == expected.len()
            && failed.iter().zip(expected).all(|(row, part)| row.starts_with(part));
        assert!(is_as_expected, "{fault:?}: {failed:#?}");
        drop_tables(&*workload, connection.as_mut());
    };
    let remote = ["order lines supplied by another", "payments by customers of another"];
    check(Fault::NeverRemote, |all| all.kinds[1].committed >= 600, &remote);
    let skew = ["skew of items", "skew of customers by number", "skew of customers by last name"];
    check(Fault::FlatSkew, |all| all.kinds[1].committed >= 400, &skew);
    // Each delivery skips a district; each transaction under way at the end may hide ten.
    let is_enough = |all: &AuditTotals| all.kinds[3].committed >= 20 + 10 * all.in_flight;
    check(Fault::SkipsDistricts, is_enough, &["orders delivered"]);
    check(
        Fault::NeverByName,
        |all| all.kinds[1].committed >= 150,
        &["customers looked up by last name"],
    );
    check(
        Fault::ForgetsStock,
        |all| all.kinds[0].committed >= 200,
        &["lines ordered", "remote lines", "quantity ordered"],
    );
}

#[test]
fn tables_that_somebody_changed_are_found() {
    let standing = Standing::start("mariadb");
    let mut connection = standing.connection();
    let workload = small(&[], None);
    standing.populate(&*workload);
    let mut check = |sql: &str, undo: &str, conditions: &[&str]| {
        connection.query(sql).unwrap();
        let rows = audit(&workload, &AuditTotals::default(), connection.as_mut());
        let failed = failed(&rows);
        let found = failed.iter().filter_map(|name| {
            name.strip_prefix("violations after the load, condition ")?.split(':').next()
        });
        assert_eq!(found.collect::<Vec<_>>(), conditions, "{sql}: {failed:?}");
        connection.query(undo).unwrap();
    };
    let district =
        |change: &str| format!("UPDATE district SET {change} WHERE d_w_id = 1 AND d_id = 1");
    check(
        "UPDATE warehouse SET w_ytd = w_ytd + 1",
        "UPDATE warehouse SET w_ytd = w_ytd - 1",
        &["1", "8"],
    );
    check(&district("d_ytd = d_ytd + 1"), &district("d_ytd = d_ytd - 1"), &["1", "9"]);
    check(
        &district("d_next_o_id = d_next_o_id + 1"),
        &district("d_next_o_id = d_next_o_id - 1"),
        &["2"],
    );
    let order = "o_w_id = 1 AND o_d_id = 1 AND o_id = 50";
    check(
        &format!("UPDATE orders SET o_carrier_id = 3 WHERE {order}"),
        &format!("UPDATE orders SET o_carrier_id = NULL WHERE {order}"),
        &["5", "7"],
    );
    check(
        &format!("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE {order}"),
        &format!("UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE {order}"),
        &["4", "6"],
    );
    let new_order = "no_w_id = 1 AND no_d_id = 1 AND no_o_id = 50";
    check(
        &format!("DELETE FROM new_order WHERE {new_order}"),
        "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (1, 1, 50)",
        &["3", "5", "11"],
    );
    let customer = |change: &str| {
        let of = "c_w_id = 1 AND c_d_id = 1 AND c_id = 1";
        format!("UPDATE customer SET {change} WHERE {of}")
    };
    check(
        &customer("c_balance = c_balance + 1"),
        &customer("c_balance = c_balance - 1"),
        &["10", "12"],
    );
}

#[test]
fn what_cannot_run_is_refused_by_check() {
    let bench = Workbench::new();
    let check = |product: &str, options: &str, load: &str, expected: &str| {
        let study = format!(
            "title = \"x\"\n[database.a]\nproduct = \"{product}\"\n[workload.tpcc]\n{options}\n\
             [design]\nduration = \"1s\"\n{load}\n"
        );
        bench.write("study.toml", &study);
        let answer = bench.dyno(&["check", "study.toml"]);
        assert_ne!(answer.code, 0, "{options}: {}", answer.out);
        assert!(answer.err.contains(expected), "{options}: {}", answer.err);
    };
    let one = "clients = 1";
    check("sqlite", "procedures = \"on\"", one, "SQLite has no stored procedures");
    check("sqlite", "foreign_keys = \"on\"", one, "foreign_keys");
    check("sqlite", "pipelined = \"on\"", one, "without round trips");
    let paced = "mode = \"paced\"\nwarehouses = 2";
    check("mariadb", paced, "clients = 21", "ten terminals for each warehouse");
    check("mariadb", paced, "rate = 50", "cannot be combined with a rate");
    check("mariadb", "mode = \"open\"", one, "needs a rate");
    check("mariadb", "mode = \"paced\"\nhome = \"off\"", one, "each client is a terminal");
}
