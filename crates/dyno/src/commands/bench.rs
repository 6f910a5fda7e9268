//! `dyno bench`: one trial without a study file. Each workload and job is a subcommand, so that `--help` lists its own
//! options.

pub(crate) mod arguments;
mod job;
mod place;
mod result;
mod search;
mod study;
mod work;

use std::path::Path;

use anyhow::{Context, bail};
use clap::{ArgMatches, Command};
use dyno_lab::{Lab, RunEnd, RunOrder};
use dyno_record::{Environment, EventKind, Run, StepSummary, TrialOutcome, TrialSummary};
use dyno_units::Seed;
use dyno_workload::Target;
use dyno_workload::catalog::{Catalog, WorkloadSpec};

use self::arguments::text;
use crate::commands::beside::Folder;
use crate::commands::{Planned, beforehand, report};
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::{End, examples, lab, terminal};

pub(crate) fn command() -> Command {
    Command::new("bench")
        .about("Run one trial of a workload or job without a study file")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand_value_name("WORKLOAD")
        .override_usage("dyno bench <WORKLOAD> --on <DATABASE> [OPTIONS]")
        .subcommand_help_heading("Workloads and jobs")
        .disable_help_subcommand(true)
        .after_help(format!(
            "{}\n\n`dyno bench <WORKLOAD> --help` lists all options of a workload.",
            examples::of_bench()
        ))
        .subcommands(Catalog::built_in().workloads().iter().filter(is_load).map(workload_command))
        .subcommands(job::commands())
}

/// Workloads without load are for `dyno watch`.
fn is_load(workload: &&WorkloadSpec) -> bool {
    workload.target != Target::Anything
}

fn workload_command(workload: &WorkloadSpec) -> Command {
    let command = Command::new(workload.name.clone().into_owned())
        .about(workload.summary.clone().into_owned())
        .after_help(examples::of_workload(&workload.name, workload.target))
        .args(arguments::database_arguments(workload.target))
        .args(arguments::load_arguments());
    search::with_options(command)
        .args(arguments::time_arguments())
        .args(arguments::record_arguments())
        .args(workload.options.iter().map(arguments::workload_argument))
}

pub(crate) fn run(matches: &ArgMatches) -> anyhow::Result<End> {
    let (name, matches) = matches.subcommand().context("name a workload")?;
    let (mut study, source) = study::read(name, matches).map_err(crate::usage_error)?;
    if matches.get_flag("print-study") {
        terminal::out(&study::printed(&source));
        return Ok(End::Good);
    }
    crate::commands::expand_urls(&mut study).map_err(crate::usage_error)?;
    if let Some(folder) = text(matches, "out") {
        beforehand::check_place(Path::new(folder))?;
    }
    let lab = lab::make(study.design.data_folder.as_ref().map(Path::new))?;
    let planned = Planned::new(&lab, (&study, &source), dyno_study::plan(&study, Seed(1)))?;
    beforehand::check_deployments(&lab, &planned.plan, &study.design)?;
    let record = place::choose(text(matches, "out"), &lab)?;
    let order = planned.order(record.path());
    let measured = measure(matches, &lab, &order)?;
    conclude(matches, &record, measured, &order, &lab)
}

fn conclude(
    matches: &ArgMatches,
    record: &Folder,
    measured: Measured,
    order: &RunOrder<'_>,
    lab: &Lab,
) -> anyhow::Result<End> {
    let end = measured.end;
    if end.interrupted {
        if let Some(search) = measured.probes.unfinished(order.manifest) {
            print_unfinished(&search, matches.get_flag("json"))?;
        }
        return Ok(End::Interrupted);
    }
    if end.kept > 0 {
        terminal::say(&format!(
            "nothing was measured: {} already holds this trial, whose result is shown here; to \
             measure again, choose another --out",
            record.path().display()
        ));
    }
    let run = crate::readings::read_run(record.path())?;
    let Some(trial) = run.trials.first() else { bail!("the trial left no summary") };
    if let TrialOutcome::Failed { message, server_log } = &trial.outcome {
        print_log(server_log);
        if measured.has_begun {
            print_measured(record, &run, trial, &lab.environment)?;
        }
        bail!("the trial failed: {message}");
    }
    show(matches, record, (&run, trial), lab)?;
    if end.uncleaned > 0 {
        terminal::say("the result is valid; remove what was left behind (see above) manually");
        return Ok(End::Bad);
    }
    match unfit(trial) {
        None => Ok(report::requirements(&report::find(&[run], None), &|_| true)),
        Some(why) => {
            terminal::say(&format!("not a usable measurement: {why}"));
            Ok(End::Bad)
        }
    }
}

struct Measured {
    end: RunEnd,
    has_begun: bool,
    probes: search::Probes,
}

fn measure(matches: &ArgMatches, lab: &Lab, order: &RunOrder<'_>) -> anyhow::Result<Measured> {
    let metrics = Metrics::from_option(text(matches, "metrics"))?;
    let mut has_begun = false;
    let mut probes = search::Probes::default();
    let end = Progress::follow(lab, order, metrics.as_ref(), &mut |event| {
        has_begun |= matches!(event.kind, EventKind::PhaseBegan { .. });
        probes.on_event(&event.kind, order.manifest);
        // The failed trial is already the error of this command.
        !matches!(event.kind, EventKind::TrialFailed { .. })
    })?;
    Ok(Measured { end, has_begun, probes })
}

/// A record that the user has named also gets a report.
fn show(
    matches: &ArgMatches,
    record: &Folder,
    (run, trial): (&Run, &TrialSummary),
    lab: &Lab,
) -> anyhow::Result<()> {
    let result = result::of(run, trial, &lab.environment)?;
    if matches.get_flag("json") {
        terminal::out(&serde_json::to_string_pretty(&result)?);
        return Ok(());
    }
    terminal::out(&result::text(&result));
    match record.kept() {
        Some(folder) => terminal::out(&report::write_all(&folder, lab.clock.unix_millis())?),
        None => terminal::say("no record was kept; --out FOLDER keeps one, with a report"),
    }
    Ok(())
}

/// Below this share of attempts that succeeded, nothing was measured.
const DONE_LEAST: f64 = 0.1;

/// Why the trial did not measure what was asked for.
fn unfit(trial: &TrialSummary) -> Option<String> {
    if let Some(row) = trial.audit.iter().find(|row| !row.pass) {
        return Some(format!("the audit failed ({})", row.name));
    }
    job::unfinished(&trial.steps).or_else(|| refused(&trial.steps))
}

/// For steps in which nothing was done or nearly all was refused.
fn refused(steps: &[StepSummary]) -> Option<String> {
    // A job that runs alone has no load.
    let is_alone = |step: &StepSummary| step.kinds.is_empty() && !step.activities.is_empty();
    if !steps.is_empty() && steps.iter().all(is_alone) {
        return None;
    }
    let (mut done, mut all) = (0, 0);
    for (outcome, n) in steps.iter().flat_map(|step| &step.kinds).flat_map(|k| &k.outcomes) {
        all += n;
        done += if matches!(&**outcome, "committed" | "rolled_back") { *n } else { 0 };
    }
    if all == 0 {
        return Some("no transaction completed in the measured time".to_owned());
    }
    (((done as f64) / all as f64) < DONE_LEAST)
        .then(|| format!("{} of {all} attempts failed or were refused", all - done))
}

fn print_unfinished(search: &serde_json::Value, is_json: bool) -> anyhow::Result<()> {
    terminal::out(&match is_json {
        true => serde_json::to_string_pretty(&serde_json::json!({
            "format": super::JSON_FORMAT,
            "search": search,
        }))?,
        false => search::headline(search) + &search::text(search),
    });
    Ok(())
}

fn print_log(server_log: &[String]) {
    server_log.iter().for_each(|line| terminal::say(&format!("  server log: {line}")));
}

/// For a trial that failed under load: the steps it finished, and its record.
fn print_measured(
    record: &Folder,
    run: &Run,
    trial: &TrialSummary,
    environment: &Environment,
) -> anyhow::Result<()> {
    let has_own_steps = run.manifest.steps.iter().any(|step| step.own.is_some());
    if has_own_steps && !trial.steps.is_empty() {
        terminal::say(&result::text(&result::of(run, trial, environment)?));
    }
    let kept = place::keep(record)?;
    terminal::say(&format!(
        "what was measured before that is kept in {}; `dyno report` and `dyno sql` read it",
        kept.display()
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_a_bench_has_a_heading() {
        for command in command().get_subcommands() {
            let shown = command.get_arguments().filter(|argument| argument.get_id() != "help");
            for argument in shown {
                let heading = argument.get_help_heading();
                assert!(heading.is_some(), "{}: {}", command.get_name(), argument.get_id());
            }
        }
    }

    #[test]
    fn a_trial_in_which_nearly_all_was_refused_measured_nothing() {
        let check = |committed: u64, failed: u64, expected: Option<&str>| {
            let outcomes = [("committed", committed), ("refused", failed)];
            let kind = dyno_record::KindSummary {
                name: "x".to_owned(),
                outcomes: outcomes.map(|(name, n)| (name.to_owned(), n)).into(),
                response: dyno_record::EncodedHistogram(String::new()),
                service: dyno_record::EncodedHistogram(String::new()),
                commits_100ms: None,
            };
            let step = dyno_record::StepSummary { kinds: vec![kind], ..Default::default() };
            assert_eq!(refused(&[step]).as_deref(), expected);
        };
        check(100, 0, None);
        check(10, 90, None);
        check(9, 91, Some("91 of 100 attempts failed or were refused"));
        check(0, 0, Some("no transaction completed in the measured time"));
    }
}
