//! Jobs beside a load and instead of one, from the order to the record.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use dyno_record::{Run, StepSummary, TrialOutcome};
use dyno_units::MetricId;

use super::*;

/// `load` is what the load does meanwhile.
fn script(script: &str, load: &str) -> String {
    format!(
        "command = ['sh', '-c', '''{script}''']\nload = '{load}'\n\
         figures = {{ rows = 'rows, higher' }}\n"
    )
}

fn run_with(product: &str, seconds: u32, job: &str) -> Run {
    run_trials(product, (1, seconds), job)
}

fn run_trials(product: &str, (trials, seconds): (u32, u32), job: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    // The job may run as another user.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let source = format!(
        "title = 'x'\n[database.a]\nproduct = '{product}'\n[workload.oltp_point_select]\n\
         table_size = 10\n[job.copy]\n{job}[design]\nclients = 2\nrepetitions = {trials}\n\
         warm_up = '0s'\nrest = '0s'\nduration = '{seconds}s'\nseed = 3\nreuse = false\n"
    );
    let study = dyno_study::parse(&source, &crate::vocabulary::vocabulary()).unwrap();
    let lab = lab::make(Some(&folder.path().join("root"))).unwrap();
    let plan = dyno_study::plan(&study, Seed(3));
    let manifest =
        dyno_lab::make_manifest(&lab.catalog, &plan, (&study, &source), &lab.environment, 0)
            .unwrap();
    let order = RunOrder {
        plan: &plan,
        design: &study.design,
        manifest: &manifest,
        probes: &[],
        decide: None,
        retry_failed: false,
        void: None,
        text: None,
        watching: None,
        folder: folder.path().join("run"),
    };
    dyno_lab::run(&lab, &order, &mut |_| {}).unwrap();
    let left: Vec<_> =
        fs::read_dir(lab.keeper.root()).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    dyno_record::read_run(&order.folder).unwrap()
}

fn figure(step: &StepSummary, id: &str) -> Option<f64> {
    step.figures.get(&MetricId::parse(id).unwrap()).copied()
}

#[test]
fn a_job_has_its_figures_beside_those_of_the_load() {
    let run =
        run_with("simulated", 2, &script("echo rows 1; echo hello; echo rows: 42", "until-done"));
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, TrialOutcome::Finished);
    let step = &trial.steps[0];
    assert!(step.kinds[0].outcomes["committed"] > 0);
    let activity = &step.activities[0];
    assert_eq!((activity.name.as_str(), activity.kind.as_str()), ("copy", "command"));
    assert!(activity.is_done, "{}", activity.ended);
    assert_eq!(activity.output, ["rows 1", "hello", "rows: 42"]);
    assert_eq!(figure(step, "job.rows"), Some(42.0));
    assert_eq!(figure(step, "job.time"), Some(activity.took_s));
    // It may end before its memory is read.
    assert!(figure(step, "job.cpu").is_some() && figure(step, "job.rss_peak") != Some(0.0));
    let ids: Vec<&str> = trial.metrics.iter().map(|metric| metric.id.as_str()).collect();
    assert_eq!(ids, ["job.time", "job.cpu", "job.rss_peak", "job.rows"]);
    let (member, place) = (&trial.members[0], &trial.members[0].place);
    assert_eq!((member.name.as_str(), place), ("server", &None));
}

#[test]
fn a_step_needs_no_load() {
    let run = run_with("sqlite", 60, &script("echo rows 7", "off"));
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, TrialOutcome::Finished);
    let step = &trial.steps[0];
    assert!(step.kinds.is_empty() && step.intervals.throughput.is_empty());
    assert_eq!(step.ended_by.as_deref(), Some("activity"));
    assert!(step.measured_s < 60.0 && !step.intervals.start_s.is_empty());
    assert_eq!(figure(step, "job.rows"), Some(7.0));
    let place = trial.members[0].place.as_ref().unwrap();
    assert_eq!(place.kind, "folder");
    assert!(place.filesystem.is_some());

    let runs = [run];
    let findings = dyno_analysis::analyse(&runs, &dyno_analysis::Options::default());
    let times = dyno_report::times::Times::new(&findings, &runs);
    let page = dyno_report::html::render(&findings, &runs, &times, "2026-01-01");
    assert!(page.contains("<h1"), "it has a page");
    assert!(!dyno_report::markdown::render(&findings).is_empty());
}

#[test]
fn a_step_ends_with_the_job_that_ends_it() {
    let run = run_with("sqlite", 60, &script("sleep 1.5", "until-done"));
    let step = &run.trials[0].steps[0];
    assert_eq!(step.ended_by.as_deref(), Some("activity"), "{:?}", run.trials[0].outcome);
    assert!(step.measured_s < 50.0, "{}", step.measured_s);
    assert!(step.activities[0].is_done);
}

#[test]
fn a_job_beside_the_load_is_stopped_when_that_ends() {
    let on_signal = "trap 'exit 0' TERM; echo rows 1; sleep 600 & wait";
    for text in ["echo rows 1; exec sleep 600", on_signal] {
        let run = run_with("sqlite", 1, &script(text, "on"));
        let trial = &run.trials[0];
        assert_eq!(trial.outcome, TrialOutcome::Finished);
        let step = &trial.steps[0];
        assert_eq!(step.ended_by.as_deref(), Some("time"));
        let activity = &step.activities[0];
        assert_eq!(
            (activity.ended.as_str(), activity.is_done),
            ("was stopped at the end of the measured time", false)
        );
        assert!(step.figures.is_empty(), "{:?}", step.figures);
    }
}

#[test]
fn after_a_job_that_was_killed_the_next_trial_starts_clean() {
    let marks = tempfile::tempdir().unwrap();
    fs::set_permissions(marks.path(), Permissions::from_mode(0o777)).unwrap();
    let child = marks.path().join("child");
    // In the first trial it leaves half of its work and a child behind.
    let text = format!(
        "if [ -e {child} ]; then ls $DYNO_SCRATCH; echo rows 1; exit 0; fi; \
         echo half > $DYNO_SCRATCH/half; echo half done; sleep 600 & echo $! > {child}; kill -9 $$",
        child = child.display()
    );
    let job = format!("{}setup = ['true']\n", script(&text, "until-done"));
    let run = run_trials("sqlite", (2, 60), &job);
    let [killed, next] = &run.trials[..] else { panic!("{} trials", run.trials.len()) };
    let TrialOutcome::Failed { message, server_log } = &killed.outcome else {
        panic!("{:?}", killed.outcome)
    };
    assert!(message.contains("the command `copy` was ended by signal 9"), "{message}");
    assert_eq!(server_log, &["half done"]);
    assert!(killed.steps[0].figures.is_empty());
    // `run_trials` has seen that nothing is left; the next trial finds nothing of the one before.
    assert_eq!(next.outcome, TrialOutcome::Finished);
    assert_eq!(next.steps[0].activities[0].output, ["rows 1"]);
    let child = fs::read_to_string(child).unwrap();
    let command = format!("/proc/{}/cmdline", child.trim());
    assert!(!fs::read(command).is_ok_and(|words| words.starts_with(b"sleep\x00600\x00")));
}

#[test]
fn a_job_that_fails_fails_its_trial_and_what_was_measured_stays() {
    let fails = r#"echo "FATAL: no mysql://me:pw@host"; exit 3"#;
    let run = run_with("simulated", 2, &script(fails, "until-done"));
    let trial = &run.trials[0];
    let TrialOutcome::Failed { message, server_log } = &trial.outcome else {
        panic!("{:?}", trial.outcome)
    };
    assert!(message.contains("the command `copy` ended with exit code 3"), "{message}");
    assert_eq!(server_log, &["FATAL: no mysql://me:***@host"]);
    let step = &trial.steps[0];
    assert!(!step.kinds.is_empty() && !step.activities[0].is_done && step.figures.is_empty());

    let run = run_with("simulated", 2, "command = ['no-such']\nload = 'until-done'\n");
    let TrialOutcome::Failed { message, .. } = &run.trials[0].outcome else {
        panic!("{:?}", run.trials[0].outcome)
    };
    assert!(message.contains("`no-such` is not installed"), "{message}");
}

#[test]
fn statements_are_a_job_with_a_check_after_it() {
    let run = run_with(
        "sqlite",
        60,
        "before = 'CREATE TABLE other (a INTEGER)'\n\
         sql = ['CREATE INDEX by_a ON other (a)', 'INSERT INTO other VALUES (1)', 'ANALYZE']\n\
         check = \"SELECT count(*) FROM sqlite_master WHERE name = 'by_a'\"\n",
    );
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, TrialOutcome::Finished);
    let step = &trial.steps[0];
    let activity = &step.activities[0];
    assert_eq!((activity.kind.as_str(), activity.is_done), ("sql", true));
    assert!(activity.output[0].ends_with("CREATE INDEX by_a ON other (a)"), "{activity:?}");
    let value = |id: &str| figure(step, id).unwrap();
    let (time, slowest) = (value("job.time"), value("job.slowest"));
    assert!(slowest > 0.0 && slowest <= time, "{slowest} of {time}");
    assert!(step.kinds.is_empty());
}

#[test]
fn batches_are_sent_until_one_handles_no_row() {
    let ten = "WITH RECURSIVE n(a) AS (VALUES (1) UNION ALL SELECT a + 1 FROM n WHERE a < 10) \
               INSERT INTO other SELECT a FROM n";
    let job = format!(
        "before = ['CREATE TABLE other (a INTEGER)', '{ten}']\n\
         sql = ['DELETE FROM other WHERE a IN (SELECT a FROM other LIMIT 4)', 'SELECT changes()']\n\
         repeat = 'until-no-rows'\npause = '1ms'\ncheck = 'SELECT count(*) = 0 FROM other'\n"
    );
    let run = run_with("sqlite", 60, &job);
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, TrialOutcome::Finished);
    let step = &trial.steps[0];
    let activity = &step.activities[0];
    assert_eq!((activity.kind.as_str(), activity.is_done), ("batches", true));
    assert!(activity.output[0].starts_with("3 batches, 10 rows"), "{activity:?}");
    assert_eq!(figure(step, "job.rows"), Some(10.0));
    assert!(figure(step, "job.time") >= figure(step, "job.slowest"));

    let run =
        run_with("sqlite", 60, "sql = 'DROP TABLE IF EXISTS other'\nrepeat = 'until-no-rows'\n");
    let TrialOutcome::Failed { message, .. } = &run.trials[0].outcome else {
        panic!("{:?}", run.trials[0].outcome)
    };
    assert!(message.contains("must return one whole number, but returned nothing"), "{message}");
}

#[test]
fn batches_that_the_load_outlives_are_counted_as_far_as_they_came() {
    let job = "before = 'CREATE TABLE other AS SELECT generate_series(1, 1000000) AS a'\n\
               sql = 'WITH gone AS (DELETE FROM other WHERE ctid IN (SELECT ctid FROM other LIMIT 1) \
               RETURNING 1) SELECT count(*) FROM gone'\n\
               repeat = 'until-no-rows'\npause = '50ms'\nat_once = 2\nload = 'on'\n";
    let run = run_with("postgresql", 5, job);
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, TrialOutcome::Finished);
    let step = &trial.steps[0];
    assert!(!step.activities[0].is_done, "{:?}", step.activities);
    let rows = figure(step, "job.rows").expect("rows were deleted");
    assert!((1.0..1e6).contains(&rows), "{rows}");
    assert!(trial.meanings.contains_key("job.rows_per_s"), "{:?}", trial.meanings.keys());
    assert_eq!(figure(step, "job.time"), None);
}

#[test]
fn a_statement_or_a_check_that_fails_fails_its_trial() {
    let check = |job: &str, expected: &str| {
        let run = run_with("sqlite", 60, job);
        let TrialOutcome::Failed { message, .. } = &run.trials[0].outcome else {
            panic!("{:?}", run.trials[0].outcome)
        };
        assert!(message.contains(expected), "{message}");
    };
    let failed = "the job `copy` failed at statement 2 (`SELECT no_such`)";
    check("sql = ['SELECT 1', 'SELECT no_such']\n", failed);
    let untrue = "the check of the job `copy`, `SELECT 0`, returned `0`";
    check("sql = 'SELECT 1'\ncheck = 'SELECT 0'\n", untrue);
    check("sql = 'SELECT 1'\ncheck = 'SELECT 1 WHERE 1 = 0'\n", "returned no row");
    check(
        "sql = 'SELECT 1'\nbefore = 'SELECT no_such'\n",
        "before the job `copy`: `SELECT no_such`",
    );
}

#[test]
fn a_statement_that_is_still_running_when_the_load_ends_is_cancelled() {
    for (product, sleep) in [("postgresql", "pg_sleep"), ("mariadb", "sleep")] {
        let job = format!("sql = 'SELECT {sleep}(600)'\nload = 'on'\n");
        let run = run_with(product, 1, &job);
        let trial = &run.trials[0];
        assert_eq!(trial.outcome, TrialOutcome::Finished, "{product}");
        let activity = &trial.steps[0].activities[0];
        assert!(activity.took_s < 60.0, "{activity:?}");
    }
}

#[test]
fn a_command_reaches_the_private_server_by_its_environment() {
    let psql =
        r#"psql --tuples-only --command="SELECT concat(\$\$rows \$\$, count(*)) FROM sbtest1""#;
    let mariadb = r#"mariadb --socket=$DYNO_SOCKET --user=$DYNO_USER --batch --skip-column-names --execute="SELECT concat(0x726f777320, count(*)) FROM sbtest1" $DYNO_DATABASE"#;
    for (product, command) in [("postgresql", psql), ("mariadb", mariadb)] {
        let run = run_with(product, 60, &script(command, "off"));
        assert_eq!(run.trials[0].outcome, TrialOutcome::Finished, "{product}");
        let rows = figure(&run.trials[0].steps[0], "job.rows");
        assert_eq!(rows, Some(10.0), "{product}");
    }
}

#[test]
fn what_the_setup_left_is_there_for_the_job() {
    let job = format!(
        "setup = ['sh', '-c', 'echo rows 5 > $DYNO_SCRATCH/rows']\n{}",
        script("cat $DYNO_SCRATCH/rows", "until-done")
    );
    let run = run_with("simulated", 2, &job);
    assert_eq!(run.trials[0].outcome, TrialOutcome::Finished);
    let step = &run.trials[0].steps[0];
    assert_eq!(figure(step, "job.rows"), Some(5.0));
    assert_eq!(step.activities.len(), 1, "{:?}", step.activities);

    let job = format!("setup = ['false']\n{}", script("true", "until-done"));
    let run = run_with("simulated", 2, &job);
    let TrialOutcome::Failed { message, .. } = &run.trials[0].outcome else {
        panic!("{:?}", run.trials[0].outcome)
    };
    assert!(message.contains("the command `copy: setup` ended with exit code 1"), "{message}");
}

#[test]
fn tables_that_a_job_changed_are_found_where_they_must_be_the_same() {
    for product in ["postgresql", "mariadb"] {
        let run = run_with(product, 60, "sql = 'UPDATE sbtest1 SET k = k'\nsame_tables = true\n");
        assert_eq!(run.trials[0].outcome, TrialOutcome::Finished, "{product}");
        assert!(figure(&run.trials[0].steps[0], "job.data_per_s") > Some(0.0), "{product}");
        let change = "sql = 'UPDATE sbtest1 SET k = k + 1 WHERE id = 3'\nsame_tables = true\n";
        let run = run_with(product, 60, change);
        let TrialOutcome::Failed { message, .. } = &run.trials[0].outcome else {
            panic!("{:?}", run.trials[0].outcome)
        };
        let expected = "the table sbtest1 was changed by the job `copy`";
        assert!(message.contains(expected), "{product}: {message}");
    }
}

#[test]
fn the_progress_of_a_copy_is_read() {
    let job = "sql = \"COPY (SELECT pg_sleep(0.05) FROM generate_series(1, 60)) TO '/dev/null'\"\n";
    let run = run_with("postgresql", 60, job);
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, TrialOutcome::Finished);
    let readings = &trial.steps[0].readings;
    let rows: Vec<f64> = readings["pg.copied_rows"].iter().flatten().copied().collect();
    assert!(!rows.is_empty() && rows.iter().all(|rows| *rows <= 60.0), "{rows:?}");
}

/// Wherever a study may hold a secret, the manifest has what is beside it.
#[track_caller]
fn check_manifest(study: &str, expected: &[&str]) {
    let source = format!(
        "title = 'x'\n{study}\nclients = 2\nrepetitions = 1\nduration = '1s'\n\
         [workload.oltp_point_select]\ntable_size = 10\n"
    );
    let study = dyno_study::parse(&source, &crate::vocabulary::vocabulary()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let lab = lab::make(Some(&folder.path().join("root"))).unwrap();
    let plan = dyno_study::plan(&study, Seed(3));
    let manifest =
        dyno_lab::make_manifest(&lab.catalog, &plan, (&study, &source), &lab.environment, 0)
            .unwrap();
    let text = serde_json::to_string(&manifest).unwrap();
    for part in expected {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("hunter9"), "{text}");
}

#[test]
fn secrets_of_a_study_reach_no_manifest() {
    check_manifest(
        "[database.a]\nproduct = 'postgresql'\nreplicas = 1\n\
         replica_settings = { archive_command = 'PGPASSWORD=hunter9secret copy' }\n\
         [probe.command]\ncommand = ['mysql', '-phunter9secret', '-e', 'SELECT 1']\n\
         [probe.sql]\nsql = 'SELECT 1 AS n /* password=hunter9secret */'\n\
         [job.told]\ncommand = ['sh', '-c', 'curl --token hunter9secret h']\n\
         [job.asked]\nsql = [\"CREATE USER u PASSWORD 'hunter9secret'\"]\n\
         [design]\nvary = { job = ['told', 'asked'] }",
        &["PGPASSWORD=***", "-p***", "--token ***", "PASSWORD '***'"],
    );
    check_manifest(
        "[database.a]\nurl = 'mysql://me@db1/x'\n\
         [host.load]\nreach = 'ssh {name} TOKEN=hunter9secret dyno agent'\nnames = ['one', 'two']\n\
         [design]\ngenerators = 'load'",
        &["TOKEN=***"],
    );
}

/// What a command prints is kept with its job, without the secrets in it.
#[test]
fn what_a_job_prints_is_kept_without_secrets() {
    let said = script("echo PGPASSWORD=hunter9secret; echo rows 7", "until-done");
    let run = run_with("simulated", 1, &said);
    let output = &run.trials[0].steps[0].activities[0].output;
    assert_eq!(output, &["PGPASSWORD=***", "rows 7"]);
}
