//! `dyno bench create-index`: jobs that have a name of their own, and what they came to.

use anyhow::bail;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use dyno_analysis::numbers;
use dyno_record::{StepSummary, TrialSummary};
use dyno_workload::catalog::Catalog;
use serde_json::{Value, json};

use super::arguments::{self, JOB};
use super::{is_given, search, text};
use crate::examples;
use crate::written::{Written, scalar};

/// A job that `dyno bench` knows by name.
pub(super) struct NamedJob {
    /// The name of its subcommand.
    pub(super) name: &'static str,
    about: &'static str,
    /// The workload on whose tables it works, and which is the load beside it.
    pub(super) workload: &'static str,
    /// The statements that it consists of, unless others are given.
    statements: &'static [&'static str],
}

/// All of them.
const JOBS: &[NamedJob] = &[NamedJob {
    name: "create-index",
    about: "A job: three secondary indexes on the table of oltp_update_non_index, alone or beside its load",
    workload: "oltp_update_non_index",
    statements: &[
        "CREATE INDEX by_c ON sbtest1 (c)",
        "CREATE INDEX by_pad ON sbtest1 (pad)",
        "CREATE INDEX by_k_pad ON sbtest1 (k, pad)",
    ],
}];

/// Options of a load that are nothing to a job that runs alone.
const OF_LOADS: [&str; 5] = ["clients", "rate", "arrivals", "duration", "start-after"];
/// Options that make no sense beside a job: it has an end, and runs once.
const NOT_OF_JOBS: [&str; 2] = ["until-steady", "run-off"];

/// The job with this name; none if it is a workload.
pub(super) fn find(name: &str) -> Option<&'static NamedJob> {
    JOBS.iter().find(|job| job.name == name)
}

/// The subcommands.
pub(super) fn commands() -> impl Iterator<Item = Command> {
    JOBS.iter().map(|job| {
        let catalog = Catalog::built_in();
        let workload = catalog.find(job.workload);
        let options = workload.into_iter().flat_map(|workload| &workload.options);
        let times = arguments::time_arguments();
        let times = times.into_iter().filter(|arg| !NOT_OF_JOBS.contains(&arg.get_id().as_str()));
        Command::new(job.name)
            .about(job.about)
            .after_help(examples::of_job(job.name))
            .args(arguments::database_arguments(dyno_workload::Target::Sql))
            .args(job_arguments(job))
            .args(arguments::load_arguments())
            .group(ArgGroup::new(search::OPEN).args(["rate"]))
            .args(times)
            .args(arguments::record_arguments())
            .args(options.map(arguments::workload_argument))
    })
}

fn job_arguments(job: &NamedJob) -> Vec<Arg> {
    let option =
        |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let arguments = [
        option("sql", "STATEMENT").action(ArgAction::Append).help(format!(
            "A statement of the job; may be repeated [default: {}]",
            job.statements.join("; ")
        )),
        option("at-once", "N").help("Statements that run at once [default: 1]"),
        arguments::proposing(
            option("load", "WORD").help(
                "What the load does meanwhile. off: there is none; until-done: it goes on until the job \
                 has ended; on: it ends after --duration, and the job with it [default: off]",
            ),
            ["off", "until-done", "on"].map(str::to_owned).into(),
        ),
        option("start-after", "TIME")
            .help("How long the load is measured before the job begins [default: 0s]"),
        option("check", "STATEMENT").help(
            "A statement sent after the job that must return something true; otherwise the trial fails",
        ),
    ];
    arguments.map(|argument| argument.help_heading(JOB)).into()
}

impl NamedJob {
    /// Writes the table `[job.NAME]`.
    ///
    /// # Errors
    ///
    /// When an option of the load is given, and there is none.
    pub(super) fn write(&self, study: &mut Written, matches: &ArgMatches) -> anyhow::Result<()> {
        let is_alone = text(matches, "load").is_none_or(|load| load == "off");
        if let Some(option) = OF_LOADS.iter().find(|one| is_alone && is_given(matches, one)) {
            bail!(
                "--{option} has no effect: the job runs alone; add --load until-done to measure it beside \
                 the load"
            );
        }
        study.table(&["job", self.name]);
        match matches.get_many::<String>("sql") {
            Some(given) => study.line("sql", given.cloned().collect::<Vec<String>>()),
            None => study.fixed("sql", self.statements.to_vec()),
        }
        if let Some(at_once) = text(matches, "at-once") {
            study.line("at_once", scalar(at_once));
        }
        for key in ["load", "start_after", "check"] {
            if let Some(value) = text(matches, &key.replace('_', "-")) {
                study.line(key, &**value);
            }
        }
        Ok(())
    }
}

/// What the jobs of a step came to; null where it has none.
pub(super) fn result(trial: &TrialSummary, step: &StepSummary) -> Value {
    if step.activities.is_empty() {
        return Value::Null;
    }
    let activities = step.activities.iter().map(|activity| {
        json!({
            "name": activity.name,
            "kind": activity.kind,
            "took_s": activity.took_s,
            "ended": activity.ended,
            "is_done": activity.is_done,
            "output": activity.output,
        })
    });
    let figures = trial.metrics.iter().filter_map(|metric| {
        let value = *step.figures.get(&metric.id)?;
        Some(json!({
            "id": metric.id.as_str(),
            "title": metric.title,
            "value": value,
            "unit": metric.unit.symbol(),
            "shown": numbers::Unit::of_metric(metric).show(value),
        }))
    });
    json!({
        "activities": activities.collect::<Vec<_>>(),
        "figures": figures.collect::<Vec<_>>(),
    })
}

/// The same for a person; nothing where there is no job.
pub(super) fn lines(job: &Value) -> String {
    let word = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let activities = job["activities"].as_array().into_iter().flatten().map(|activity| {
        let took = activity["took_s"].as_f64().unwrap_or_default();
        let took = dyno_units::Nanoseconds((took * 1e9) as u64);
        let output = activity["output"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let output: String = output.map(|line| format!("                {line}\n")).collect();
        format!(
            "job             {} {} after {took} (one trial, so no CI)\n{output}",
            word(activity, "name"),
            word(activity, "ended"),
        )
    });
    let figures = job["figures"].as_array().into_iter().flatten().map(|figure| {
        format!("                {}: {}\n", word(figure, "title"), word(figure, "shown"))
    });
    activities.chain(figures).collect()
}

/// Why a job that was to be measured was not; none if each came to its end.
pub(super) fn unfinished(steps: &[StepSummary]) -> Option<String> {
    let mut activities = steps.iter().flat_map(|step| &step.activities);
    let unfinished = activities.find(|activity| !activity.is_done)?;
    Some(format!(
        "the job `{}` {}; give it a longer --duration, or --load until-done",
        unfinished.name, unfinished.ended
    ))
}
