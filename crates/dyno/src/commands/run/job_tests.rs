//! Jobs beside a load and instead of one, from the order to the record.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use dyno_lab::{CommandJob, JobRole};
use dyno_record::{Run, StepSummary, TrialOutcome};
use dyno_units::{Direction, MetricId, Unit, metric};

use super::*;

fn job(script: &str, role: JobRole) -> CommandJob {
    let rows =
        metric("copy.rows", Unit::Number, Direction::Higher, "rows", "rows that were copied");
    CommandJob {
        name: "copy".to_owned(),
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        environment: vec![("GREETING".to_owned(), "hello".to_owned())],
        figures: vec![rows],
        role,
    }
}

/// Runs one trial of so many seconds with this job on a server of this product.
fn run_with(product: &str, seconds: u32, job: CommandJob) -> Run {
    let folder = tempfile::tempdir().unwrap();
    // The job may run as another user.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let source = format!(
        "title = 'x'\n[database.a]\nproduct = '{product}'\n[workload.oltp_point_select]\n\
         table_size = 10\n[design]\nclients = 2\nrepetitions = 1\nwarm_up = '0s'\nrest = '0s'\n\
         duration = '{seconds}s'\nseed = 3\nreuse = false\n"
    );
    let study = dyno_study::parse(&source, &crate::vocabulary::vocabulary()).unwrap();
    let lab = lab::make(Some(&folder.path().join("root"))).unwrap();
    let plan = dyno_study::plan(&study, Seed(3));
    let manifest =
        dyno_lab::make_manifest(&lab.catalog, &plan, &study, &source, &lab.environment, 0).unwrap();
    let order = RunOrder {
        plan: &plan,
        design: &study.design,
        manifest: &manifest,
        probes: &[],
        jobs: &[job],
        decide: None,
        retry_failed: false,
        void: None,
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
    let script = "echo rows 1; echo $GREETING; echo rows: 42";
    let run = run_with("simulated", 2, job(script, JobRole::EndsStep));
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, TrialOutcome::Finished);
    let step = &trial.steps[0];
    assert!(step.kinds[0].outcomes["committed"] > 0);
    let activity = &step.activities[0];
    assert_eq!((activity.name.as_str(), activity.kind.as_str()), ("copy", "command"));
    assert!(activity.is_done, "{}", activity.ended);
    assert_eq!(activity.output, ["rows 1", "hello", "rows: 42"]);
    assert_eq!(figure(step, "copy.rows"), Some(42.0));
    assert_eq!(figure(step, "copy.time"), Some(activity.took_s));
    assert!(figure(step, "copy.cpu").is_some() && figure(step, "copy.rss_peak").is_some());
    let ids: Vec<&str> = trial.metrics.iter().map(|metric| metric.id.as_str()).collect();
    assert_eq!(ids, ["copy.time", "copy.cpu", "copy.rss_peak", "copy.rows"]);
    let (member, place) = (&trial.members[0], &trial.members[0].place);
    assert_eq!((member.name.as_str(), place), ("server", &None));
}

#[test]
fn a_step_needs_no_load() {
    let run = run_with("sqlite", 60, job("echo rows 7", JobRole::InsteadOfLoad));
    let trial = &run.trials[0];
    assert_eq!(trial.outcome, TrialOutcome::Finished);
    let step = &trial.steps[0];
    assert!(step.kinds.is_empty() && step.intervals.throughput.is_empty());
    assert_eq!(step.ended_by.as_deref(), Some("activity"));
    assert!(step.measured_s < 60.0 && !step.intervals.start_s.is_empty());
    assert_eq!(figure(step, "copy.rows"), Some(7.0));
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
    let run = run_with("sqlite", 60, job("sleep 1.5", JobRole::EndsStep));
    let step = &run.trials[0].steps[0];
    assert_eq!(step.ended_by.as_deref(), Some("activity"), "{:?}", run.trials[0].outcome);
    assert!(step.measured_s < 50.0, "{}", step.measured_s);
    assert!(step.activities[0].is_done);
}

#[test]
fn a_job_beside_the_load_is_stopped_when_that_ends() {
    let on_signal = "trap 'exit 0' TERM; echo rows 1; sleep 600 & wait";
    for script in ["echo rows 1; exec sleep 600", on_signal] {
        let run = run_with("sqlite", 1, job(script, JobRole::Beside));
        let trial = &run.trials[0];
        assert_eq!(trial.outcome, TrialOutcome::Finished);
        let step = &trial.steps[0];
        assert_eq!(step.ended_by.as_deref(), Some("time"));
        let activity = &step.activities[0];
        assert_eq!(
            (activity.ended.as_str(), activity.is_done),
            ("was stopped at the end of the step", false)
        );
        // What it was doing is no result, even if it says that it succeeded.
        assert!(step.figures.is_empty(), "{:?}", step.figures);
    }
}

#[test]
fn a_job_that_fails_fails_its_trial_and_what_was_measured_stays() {
    let script = "echo 'FATAL: no mysql://me:pw@host'; exit 3";
    let run = run_with("simulated", 2, job(script, JobRole::EndsStep));
    let trial = &run.trials[0];
    let TrialOutcome::Failed { message, server_log } = &trial.outcome else {
        panic!("{:?}", trial.outcome)
    };
    assert!(message.contains("the command `copy` ended with exit code 3"), "{message}");
    assert_eq!(server_log, &["FATAL: no mysql://me:***@host"]);
    let step = &trial.steps[0];
    assert!(!step.kinds.is_empty() && !step.activities[0].is_done && step.figures.is_empty());

    let missing = CommandJob { command: vec!["no-such".to_owned()], ..job("", JobRole::EndsStep) };
    let run = run_with("simulated", 2, missing);
    let TrialOutcome::Failed { message, .. } = &run.trials[0].outcome else {
        panic!("{:?}", run.trials[0].outcome)
    };
    assert!(message.contains("`no-such` is not installed"), "{message}");
}
