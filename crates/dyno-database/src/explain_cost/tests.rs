//! The arithmetic of costs, on an engine with given counters.

use super::*;

/// A clock that moves when something is slept for or run.
struct Shared(std::sync::Mutex<u64>);

impl Clock for Shared {
    fn now(&self) -> Nanoseconds {
        Nanoseconds(*self.0.lock().unwrap())
    }

    fn unix_millis(&self) -> u64 {
        0
    }

    fn sleep_until(&self, until: Nanoseconds) {
        let mut now = self.0.lock().unwrap();
        *now = (*now).max(until.0);
    }
}

struct Engine<'a> {
    clock: &'a Shared,
    rows: f64,
    n_reads: f64,
    fails: bool,
    n_after: u32,
}

impl CostSource for Engine<'_> {
    fn counters(&mut self) -> Result<Counters, String> {
        self.n_reads += 1.0;
        let seconds = self.clock.now().as_secs_f64();
        Ok([
            ("rows_read", self.rows),
            // Moves with every look at it, and with time: none of the statement's doing.
            ("reads_of_counters", self.n_reads * 10.0),
            ("ticks", (seconds * 100.0).round()),
            ("still", 7.0),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into())
    }

    fn run(&mut self, sql: Option<&str>) -> Result<Reply, String> {
        if self.fails {
            return Err("the server refuses the statement: no".to_owned());
        }
        if sql.is_some() {
            self.rows += 1000.0;
            self.clock.sleep_until(self.clock.now() + Nanoseconds::from_millis(250));
            return Ok(Reply { rows: 3, ..Reply::default() });
        }
        Ok(Reply::default())
    }

    fn plan(&mut self, sql: &str) -> Result<Vec<String>, String> {
        Ok(vec![format!("plan of {sql}")])
    }

    fn after(&mut self) -> Result<(), String> {
        self.n_after += 1;
        Ok(())
    }
}

fn engine(clock: &Shared) -> Engine<'_> {
    Engine { clock, rows: 0.0, n_reads: 0.0, fails: false, n_after: 0 }
}

const PLAN: CostPlan = CostPlan { runs: 4, access: Access::ReadOnly };

#[test]
fn only_what_the_statement_moves_is_reported() {
    let clock = Shared(std::sync::Mutex::new(0));
    let mut engine = engine(&clock);
    let cost = explain_cost(&mut engine, "SELECT 1", PLAN, &clock, &|| false).unwrap().unwrap();
    assert_eq!((cost.runs, cost.rows, cost.n_counters), (4, 3, 4));
    assert_eq!(cost.seconds, Spread { median: 0.25, low: 0.25, high: 0.25 });
    let names: Vec<&str> = cost.counters.iter().map(|counter| counter.name.as_str()).collect();
    assert_eq!(names, ["rows_read"]);
    assert_eq!(cost.plan, Ok(vec!["plan of SELECT 1".to_owned()]));
    assert_eq!(cost.counters[0].per_run, Spread { median: 1000.0, low: 1000.0, high: 1000.0 });
    assert_eq!(cost.counters[0].idle, Spread::default());
    // The first run warms up: five runs and four idle intervals.
    assert_eq!(engine.n_after, 9);
}

#[test]
fn it_can_be_stopped_between_two_runs() {
    let clock = Shared(std::sync::Mutex::new(0));
    let mut engine = engine(&clock);
    let is_late = || clock.now() >= Nanoseconds::from_millis(500);
    let cost = explain_cost(&mut engine, "SELECT 1", PLAN, &clock, &is_late).unwrap();
    assert_eq!(cost, None);
    assert!(engine.n_after < 9);
}

#[test]
fn a_refusal_is_reported() {
    let clock = Shared(std::sync::Mutex::new(0));
    let mut engine = Engine { fails: true, ..engine(&clock) };
    let error = explain_cost(&mut engine, "SELECT nonsense", PLAN, &clock, &|| false).unwrap_err();
    assert!(error.contains("refuses"), "{error}");
}

#[track_caller]
fn check(sql: &str, access: Access, is_allowed: bool) {
    assert_eq!(check_statement(sql, access).is_ok(), is_allowed, "{sql}");
}

#[test]
fn only_reading_is_allowed_by_itself() {
    check("select 1", Access::ReadOnly, true);
    check("  (SELECT 1) UNION (SELECT 2)", Access::ReadOnly, true);
    check("/* a */ -- b\n # c\n select 1", Access::ReadOnly, true);
    check("EXPLAIN SELECT 1", Access::ReadOnly, true);
    check("DELETE FROM t", Access::ReadOnly, false);
    check("/* SELECT */ SHUTDOWN", Access::ReadOnly, false);
    check("SET GLOBAL x = 1", Access::ReadOnly, false);
    check("", Access::ReadOnly, false);
    check("-- nothing", Access::ReadOnly, false);
    check("/* open", Access::ReadOnly, false);
    check("DELETE FROM t", Access::RolledBack, true);
    check("COMMIT", Access::RolledBack, false);
}

#[test]
fn only_what_a_transaction_takes_back_may_write() {
    let check = |sql: &str, is_allowed: bool| check(sql, Access::RolledBack, is_allowed);
    check("WITH x AS (SELECT 1) DELETE FROM t", true);
    check("insert into t values (1);", true);
    check("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", true);
    for sql in ["DROP TABLE t", "CREATE TABLE t (a int)", "TRUNCATE t", "CALL p()", "DO $$ $$"] {
        check(sql, false);
    }
    check("SELECT 1; COMMIT; DELETE FROM t; ", false);
    check("DELETE FROM t WHERE a = ';'", false);
    check("/*!50000 DROP TABLE t */", false);
    check("/*M! TRUNCATE t */", false);
    // A server that is older passes over such a comment, and begins with what follows it.
    check("/*!999999 SELECT */ DROP TABLE t", false);
    check("SELECT 1 /*m! INTO OUTFILE 'x' */", false);
    assert!(check_statement("SELECT 1; DROP TABLE t", Access::ReadOnly).is_err());
}

#[test]
fn spreads_are_of_all_values() {
    assert_eq!(Spread::of(&[]), Spread::default());
    assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, low: 1.0, high: 3.0 });
    assert_eq!(Spread::of(&[4.0, 1.0]), Spread { median: 2.5, low: 1.0, high: 4.0 });
}

#[test]
fn statements_without_a_plan_say_so() {
    let clock = Shared(std::sync::Mutex::new(0));
    let mut engine = engine(&clock);
    let cost = explain_cost(&mut engine, "SHOW TABLES", PLAN, &clock, &|| false).unwrap().unwrap();
    assert_eq!(cost.plan, Err("a statement that begins with SHOW has none".to_owned()));
}

#[test]
fn columns_of_a_plan_are_below_each_other() {
    let text = |text: &str| Some(text.to_owned());
    let answer = NamedRows {
        columns: ["id", "table", "key"].map(str::to_owned).into(),
        rows: vec![
            vec![text("1"), text("sbtest1"), None],
            vec![text("12"), text("t"), text("k_1")],
        ],
    };
    let expected = ["id  table    key", "1   sbtest1  NULL", "12  t        k_1"];
    assert_eq!(table(&answer), expected);
}
