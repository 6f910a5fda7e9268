//! Jobs that `dyno bench` knows by name, such as `dyno bench create-index`.

use anyhow::bail;
use clap::{Arg, ArgGroup, ArgMatches, Command};
use dyno_analysis::numbers;
use dyno_database::Product;
use dyno_record::{StepSummary, TrialSummary};
use dyno_workload::catalog::Catalog;
use serde_json::{Value, json};

use super::arguments::{self, JOB, OPEN, is_given, text};
use super::work::Work;
use crate::examples;
use crate::written::Written;

pub(super) struct NamedJob {
    pub(super) name: &'static str,
    about: &'static str,
    /// Its tables are what the job works on; it is also the load beside the job.
    pub(super) workload: &'static str,
    work: Work,
}

const JOBS: &[NamedJob] = &[
    NamedJob {
        name: "create-index",
        about: "A job: three secondary indexes on the table of oltp_update_non_index, alone or \
            during its load",
        workload: "oltp_update_non_index",
        work: Work::Statements(&[
            "CREATE INDEX by_c ON sbtest1 (c)",
            "CREATE INDEX by_pad ON sbtest1 (pad)",
            "CREATE INDEX by_k_pad ON sbtest1 (k, pad)",
        ]),
    },
    NamedJob {
        name: "dump",
        about: "A job: a dump of the tables of oltp_read_write, by `dyno dump` or the product's \
            own program, alone or during its load",
        workload: "oltp_read_write",
        work: Work::Dump,
    },
    NamedJob {
        name: "restore",
        about: "A job: the tables of oltp_read_write are dropped, restored from a dump, and compared",
        workload: "oltp_read_write",
        work: Work::Restore,
    },
    NamedJob {
        name: "migrate",
        about: "A job: pgbench's accounts are moved into another table in batches, by \
            inheritance, during its load",
        workload: "tpcb",
        work: Work::Inheritance,
    },
];

const OF_LOADS: [&str; 5] = ["clients", "rate", "arrivals", "duration", "start-after"];
/// Options that a job never has: it has an end, and runs once.
const NOT_OF_JOBS: [&str; 2] = ["until-steady", "run-off"];

pub(super) fn find(name: &str) -> Option<&'static NamedJob> {
    JOBS.iter().find(|job| job.name == name)
}

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
            .group(ArgGroup::new(OPEN).args(["rate"]))
            .args(times)
            .args(arguments::record_arguments())
            .args(options.map(arguments::workload_argument))
    })
}

fn job_arguments(job: &NamedJob) -> Vec<Arg> {
    let mut arguments = job.work.arguments();
    if !job.work.loads().is_empty() {
        let help = format!(
            "The load during the job. off: no load; until-done: the load runs until the job has \
             ended; on: the load ends after --duration, and the job with it [default: {}]",
            job.work.load()
        );
        let load = arguments::option("load", "WORD", help);
        arguments.push(arguments::proposing(load, job.work.loads().iter().copied()));
        let help = "How long the load is measured before the job begins [default: 0s]";
        arguments.push(arguments::option("start-after", "TIME", help));
    }
    arguments.into_iter().map(|argument| argument.help_heading(JOB)).collect()
}

impl NamedJob {
    /// `product` is that of a server that Dyno starts. Fails for options of a missing load or job.
    pub(super) fn write(
        &self,
        study: &mut Written,
        matches: &ArgMatches,
        product: Option<&Product>,
    ) -> anyhow::Result<()> {
        let load = text(matches, "load").map_or(self.work.load(), String::as_str);
        let is_alone = load == "off";
        if let Some(option) = OF_LOADS.iter().find(|one| is_alone && is_given(matches, one)) {
            match self.work.loads() {
                [] => bail!("--{option} has no effect: this job runs alone"),
                _ => bail!(
                    "--{option} has no effect: the job runs alone; add --load until-done to \
                     measure it during a load"
                ),
            }
        }
        study.table(&["job", self.name]);
        self.work.write(study, matches, product)?;
        study.line("load", load);
        if let Some(time) = text(matches, "start-after") {
            study.line("start_after", &**time);
        }
        Ok(())
    }
}

/// Null without jobs.
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

/// Empty without jobs.
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

/// None if all jobs finished.
pub(super) fn unfinished(steps: &[StepSummary]) -> Option<String> {
    let mut activities = steps.iter().flat_map(|step| &step.activities);
    let unfinished = activities.find(|activity| !activity.is_done)?;
    Some(format!(
        "the job `{}` {}; give it a longer --duration, or --load until-done",
        unfinished.name, unfinished.ended
    ))
}
