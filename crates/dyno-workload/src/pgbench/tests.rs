//! What scripts send to a recording connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dyno_model::StepRequest;
use dyno_pgbench::{Names, Script};
use dyno_units::Seed;

use super::*;
use crate::fake::{Fake, Ran};
use crate::{ErrorClass, MadeWorkload, StatementError};

/// Keeps all messages.
#[derive(Default)]
struct Listening(Mutex<Vec<String>>);

impl Listening {
    fn push(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Host for Listening {
    fn say(&self, message: &str) {
        self.push(message.strip_prefix("pgbench: ").unwrap_or(message).to_owned());
    }

    fn shell(&self, command: &str, _: bool) -> Result<String, String> {
        self.push(format!("shell: {command}"));
        Ok("7".to_owned())
    }

    fn ended(&self, entry: &LogEntry) {
        self.push(format!("{} {:?} {}", entry.number, entry.outcome, entry.retries));
    }

    fn logs(&self) -> bool {
        true
    }
}

/// A workload of these scripts with their weights, its messages and its counters.
struct Made {
    workload: MadeWorkload,
    host: Arc<Listening>,
    statistics: Arc<Statistics>,
}

fn settings(scripts: &[(&str, u32)], change: impl FnOnce(&mut Settings)) -> Made {
    let mut names = Names::new();
    let scripts = scripts.iter().enumerate().map(|(nth, (text, weight))| WeightedScript {
        script: Script::read("s", text, &mut names).unwrap(),
        kind: format!("s{nth}").into(),
        weight: *weight,
    });
    let scripts = scripts.collect();
    let (host, statistics) = (Arc::new(Listening::default()), Arc::new(Statistics::default()));
    let mut settings = Settings {
        name: NAME.into(),
        scripts,
        names,
        defines: vec![("d".to_owned(), "0.50".to_owned())],
        scale: 2,
        seed: Some(42),
        max_tries: 1,
        measures_commands: true,
        is_verbose: true,
        statistics: Arc::clone(&statistics),
        ..Settings::default()
    };
    change(&mut settings);
    let workload = MadeWorkload::new(Arc::new(PgBench::new(
        settings,
        Arc::clone(&host) as _,
        StepRequest::LEAST,
    )));
    Made { workload, host, statistics }
}

impl Made {
    fn run(&self, fake: Fake, n: u64) -> Ran {
        fake.run(&self.workload, n)
    }

    fn said(&self) -> Vec<String> {
        self.host.0.lock().unwrap().drain(..).collect()
    }
}

fn postgresql() -> Fake {
    Fake::new(Dialect::PostgreSql)
}

const SCRIPT: &str = "\\set a random(1, 1000000)\n\\set b :a / 2.0\nSELECT :a, ':b', :d, :nothing;\n\
    UPDATE t SET x = :scale;\n";

#[test]
fn values_go_as_the_protocol_has_them() {
    let simple = settings(&[(SCRIPT, 1)], |_| {}).run(postgresql(), 1);
    let expected = "SELECT 668251, '334125.5', 0.50, :nothing;\nUPDATE t SET x = 2;\n";
    assert_eq!(simple.sent_text(), expected);
    let tally = simple.tallies[0];
    assert_eq!((tally.reads, tally.writes, tally.others), (1, 1, 0));
    for protocol in [Protocol::Extended, Protocol::Prepared] {
        let made = settings(&[(SCRIPT, 1)], |settings| settings.protocol = protocol);
        let ran = made.run(postgresql(), 1);
        let expected =
            "SELECT $1, '$2', $3, $4; 668251 text[8] text[4] Null\nUPDATE t SET x = $1; 2\n";
        assert_eq!(ran.sent_text(), expected);
        let statements = made.workload.statements(Dialect::PostgreSql);
        assert_eq!(statements[0].texts, Some(4));
        assert_eq!(statements[0].is_unnamed, protocol == Protocol::Extended);
    }
}

#[test]
fn scripts_are_chosen_by_their_weights() {
    let scripts = [("SELECT 0;", 1), ("SELECT 1;", 0), ("SELECT 2;", 3)];
    let made = settings(&scripts, |_| {});
    made.run(postgresql(), 4000);
    let n: Vec<u64> = made.statistics.scripts().iter().map(|script| script.committed).collect();
    assert_eq!((n[1], n.iter().sum::<u64>()), (0, 4000));
    assert!((850..1150).contains(&n[0]), "{n:?}");
}

#[test]
fn commands_follow_conditions_and_pipelines() {
    let script = "\\if :client_id = 0\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\n\\startpipeline\n\
        SELECT 3;\nSELECT :scale;\n\\endpipeline\n\\setshell x echo :scale ::y\nSELECT :x;\n";
    let made = settings(&[(script, 1)], |settings| settings.protocol = Protocol::Prepared);
    let ran = made.run(postgresql(), 1);
    assert_eq!(ran.sent_text(), "SELECT 1;\nSELECT 3;\nSELECT $1; 2\nSELECT $1; 7\n");
    assert_eq!(ran.sent.iter().map(|sent| sent.trip).collect::<Vec<_>>(), [0, 1, 1, 2]);
    assert!(made.said().contains(&"shell: echo 2 :y".to_owned()));
    let counts: Vec<u64> = made.statistics.commands(0).iter().map(|one| one.count).collect();
    assert_eq!(counts, [1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1]);
}

fn error(class: ErrorClass) -> StatementError {
    StatementError::new(class, "x", "why")
}

#[test]
fn failures_are_retried_with_the_same_numbers() {
    let made = settings(&[(SCRIPT, 1)], |settings| settings.max_tries = 3);
    let mut fake = postgresql();
    fake.succeed_next();
    fake.fail_next(error(ErrorClass::Deadlock));
    fake.fail_next(error(ErrorClass::Serialization));
    let ran = made.run(fake, 2);
    let selects: Vec<&str> = ran
        .sent
        .iter()
        .map(|sent| sent.sql.as_str())
        .filter(|sql| sql.starts_with("SELECT"))
        .collect();
    assert_eq!(selects.len(), 4);
    assert!(selects[0] == selects[1] && selects[1] == selects[2] && selects[2] != selects[3]);
    let totals = made.statistics.scripts()[0];
    assert_eq!((totals.committed, totals.retries, totals.retried), (2, 2, 1));
    let said = made.said();
    assert_eq!(said[1], "client 0 repeats the transaction after the error (try 1/3)");
    assert_eq!(said[3], "client 0 repeats the transaction after the error (try 2/3)");
    assert!(said[4].starts_with("1 Done(") && said[4].ends_with(") 2"), "{said:?}");
}

#[test]
fn what_is_not_retried_fails_or_ends_the_client() {
    let made = settings(&[(SCRIPT, 1)], |_| {});
    let mut fake = postgresql();
    fake.fail_next(error(ErrorClass::Serialization));
    made.run(fake, 2);
    let totals = made.statistics.scripts()[0];
    assert_eq!((totals.committed, totals.serialization, totals.retried), (1, 1, 0));
    assert_eq!(made.statistics.commands(0)[2].failures, 1);

    let mut fake = postgresql();
    fake.fail_next(error(ErrorClass::Refused));
    let made = settings(&[(SCRIPT, 1)], |_| {});
    assert_eq!(made.run(fake, 5).tallies.len(), 1);
    assert_eq!((made.statistics.n_aborted(), made.statistics.scripts()[0].failed()), (1, 0));
    let said = made.said();
    assert_eq!(said, ["error: client 0 script 0 aborted in command 2 query 0: ERROR:  why"]);

    let mut fake = postgresql();
    fake.fail_next(error(ErrorClass::Refused));
    let made = settings(&[(SCRIPT, 1)], |settings| settings.continues_on_error = true);
    made.run(fake, 3);
    let totals = made.statistics.scripts()[0];
    assert_eq!((totals.committed, totals.other, made.statistics.n_aborted()), (2, 1, 0));
}

#[test]
fn a_number_of_transactions_is_a_step_of_its_own() {
    let made = settings(&[(SCRIPT, 1)], |settings| settings.transactions = Some(3));
    let step = &made.workload.steps()[0];
    assert_eq!((step.roles[0].quota, step.ends_by_quota()), (Some(3), true));
    assert_eq!(made.run(postgresql(), 9).tallies.len(), 3);
}

#[test]
fn a_study_plans_scripts_with_their_tables() {
    let file = |text: &str| ScriptText { text: text.to_owned(), digest: "abc".to_owned() };
    let files = BTreeMap::from([
        ("a.sql".to_owned(), file("SELECT :scale;\n")),
        ("shell.sql".to_owned(), file("\\shell true\n")),
        ("bad.sql".to_owned(), file("\\set x (\n")),
    ]);
    let spec = spec(files);
    let plan = |script: &str, more: &[(&str, &str)]| {
        let mut given = crate::fake::given(more);
        given.insert("script".to_owned(), script.to_owned());
        spec.plan(&given, StepRequest::LEAST, Seed(1))
    };
    let workload = plan("a.sql", &[("scale", "3")]).unwrap();
    let tables = workload.tables(Dialect::PostgreSql);
    assert_eq!(tables.iter().map(|table| table.rows).sum::<u64>(), 3 + 30 + 300_000);
    assert!(!workload.outline().makes_nothing);
    assert!(workload.options().contains(&("script_sha256".to_owned(), "abc".to_owned())));
    let ran = Fake::new(Dialect::Sqlite).run(&MadeWorkload::new(workload), 1);
    assert_eq!(ran.sent_text(), "SELECT 3;\n");
    let bare = plan("select-only", &[("tables", "none")]).unwrap();
    assert!(bare.outline().makes_nothing && bare.tables(Dialect::MySql).is_empty());
    let prepared = plan("a.sql", &[("protocol", "prepared")]).unwrap();
    assert!(prepared.check(Dialect::MySql).unwrap_err().contains("use `simple`"));
    let why = |script: &str| plan(script, &[]).err().expect("it is refused").to_string();
    assert!(why("shell.sql").contains("`dyno pgbench` does"));
    assert!(why("bad.sql").contains("syntax error in command \"set\""));
    assert!(why("c.sql").contains("is not one of"));
}
