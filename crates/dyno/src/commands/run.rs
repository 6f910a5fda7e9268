//! `dyno run`: from a study file to an answer.

use std::path::{Path, PathBuf};

use anyhow::Context;
use dyno_lab::{RunEnd, RunOrder};
use dyno_study::{Plan, Study};
use dyno_units::{Nanoseconds, Seed};

use crate::cli::RunOptions;
use crate::commands::{StudyFile, counted, plan, read_study, report};
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::{End, lab, terminal};

/// Runs a study, or goes on with it, and writes its report.
pub(crate) fn run(options: &RunOptions) -> anyhow::Result<End> {
    let Some(StudyFile { mut study, source }) = read_study(&options.study)? else {
        return Ok(End::Misused);
    };
    if let Some(folder) = &options.data_folder {
        study.design.data_folder = Some(folder.display().to_string());
    }
    if options.no_reuse {
        study.design.reuse = false;
    }
    let metrics = Metrics::from_option(options.metrics.as_ref())?;
    let folder = run_folder(options);
    let lab = lab::make(study.design.data_folder.as_ref().map(Path::new))?;
    let now = lab.clock.unix_millis();
    let seed = seed(options, &study, &folder, now)?;
    let plan = plan::for_run(&study, seed, &folder);
    let manifest = dyno_lab::make_manifest(&plan, &study, &source, &lab.environment, now)?;
    plan::warn_of_disk(&plan, &lab)?;
    terminal::say(&format!(
        "{}\n{} × {}, {}, {} of load, seed {}; record in {}",
        plan.title,
        counted(plan.variants.len(), "variant"),
        counted(study.design.repetitions as usize, "repetition"),
        counted(plan.trials.len(), "trial"),
        load_time(&plan),
        seed.0,
        folder.display()
    ));
    let order = RunOrder {
        plan: &plan,
        design: &study.design,
        manifest: &manifest,
        probes: &study.probes,
        decide: Some(&decide),
        folder: folder.clone(),
    };
    let mut progress = Progress::new(&plan, &lab);
    let result = dyno_lab::run(&lab, &order, &mut |event| {
        metrics.iter().for_each(|metrics| metrics.hear(event));
        progress.hear(event);
    });
    progress.close();
    let end = match result {
        Ok(end) => end,
        // What was measured is kept and shown, whatever ended the run.
        Err(error) => {
            if report::write_all(&folder, now).is_err() {
                terminal::say("the report could not be written either");
            }
            return Err(error);
        }
    };
    terminal::out(&report::write_all(&folder, lab.clock.unix_millis())?);
    Ok(tell(&end))
}

/// How long the plan's load takes, as far as that is known beforehand.
fn load_time(plan: &Plan) -> String {
    match plan.time_bounds(Nanoseconds::ZERO) {
        (least, most) if least == most => format!("about {most}"),
        (least, most) => format!("{least} to {most}"),
    }
}

/// Which variants need no more repetitions after the blocks before this one.
fn decide(folder: &Path, block: u32) -> anyhow::Result<Vec<(usize, String)>> {
    let mut run = dyno_record::read_run(folder).context("cannot look at the run so far")?;
    run.trials.retain(|trial| trial.block < block);
    Ok(dyno_analysis::stopping::decide(&run).settled)
}

/// The run's folder.
fn run_folder(options: &RunOptions) -> PathBuf {
    if let Some(folder) = &options.out {
        return folder.clone();
    }
    let path = &options.study;
    let mut name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // `studies/durability/bench-top.toml` is known by its folder, too.
    if let Some(parent) = path.parent().and_then(Path::file_name)
        && parent != "studies"
    {
        name = format!("{}-{name}", parent.to_string_lossy());
    }
    let base = Path::new("runs").join(&name);
    let numbered = |n: u32| Path::new("runs").join(format!("{name}-{n}"));
    let taken = (2..).take_while(|&n| numbered(n).exists()).last();
    let last = taken.map_or(base.clone(), numbered);
    if options.new && base.exists() { numbered(taken.unwrap_or(1) + 1) } else { last }
}

/// The seed: the study's, the command line's, that of the run to go on with, or a new one.
fn seed(options: &RunOptions, study: &Study, folder: &Path, now: u64) -> anyhow::Result<Seed> {
    if let Some(seed) = study.design.seed.or(options.seed) {
        return Ok(seed);
    }
    if folder.join("manifest.json").exists() {
        let run = dyno_record::read_run(folder).context("cannot go on with the run")?;
        return Ok(Seed(run.manifest.seed));
    }
    // A short number is easier to copy by hand.
    Ok(Seed(Seed(now).derive("run", 0).0 % 1_000_000))
}

fn tell(end: &RunEnd) -> End {
    if end.interrupted {
        terminal::say("stopped; the same command goes on with the trials that are missing");
        return End::Interrupted;
    }
    if end.finished + end.failed == 0 && end.kept > 0 && end.over_budget == 0 {
        terminal::say("all trials were there already; `--new` begins another run");
    }
    if end.settled > 0 {
        terminal::say(&format!(
            "{} trials were not needed: the verdicts of their variants are settled",
            end.settled
        ));
    }
    if end.over_budget > 0 {
        terminal::say(&format!(
            "{} trials were not begun: the time budget would not have sufficed; the same command \
             goes on with them",
            end.over_budget
        ));
    }
    if end.failed > 0 { End::Bad } else { End::Good }
}
