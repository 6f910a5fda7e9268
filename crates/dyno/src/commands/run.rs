//! `dyno run`: from a study file to an answer.

use std::path::{Path, PathBuf};

use anyhow::Context;
use dyno_analysis::{RequirementFacts, RequirementOutcome};
use dyno_lab::datasets::{DataSets, Limits};
use dyno_lab::{Lab, RunEnd, RunOrder};
use dyno_record::{WriteError, WriteErrorKind};
use dyno_study::{Plan, Study};
use dyno_units::{ByteCount, Nanoseconds, Seed};

use crate::cli::RunOptions;
use crate::commands::{StudyFile, counted, plan, read_study, report};
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::{End, lab, terminal};

/// Runs a study, or continues it, and writes its report.
pub(crate) fn run(options: &RunOptions) -> anyhow::Result<End> {
    let Some(StudyFile { mut study, source }) = read_study(&options.study)? else {
        return Ok(End::Misused);
    };
    if options.no_reuse {
        study.design.reuse = false;
    }
    let metrics = Metrics::from_option(options.metrics.as_ref())?;
    let folder = run_folder(options);
    let of_study = study.design.data_folder.as_ref().map(Path::new);
    let mut lab = lab::make(options.data_folder.as_deref().or(of_study))?;
    lab.data_sets = Limits { bytes: options.keep_data, unused: options.keep_data_for };
    let now = lab.clock.unix_millis();
    let seed = seed(options, &study, &folder, now)?;
    let plan = plan::for_run(&study, seed, &folder);
    let manifest = dyno_lab::make_manifest(&plan, &study, &source, &lab.environment, now)?;
    plan::warn_of_disk(&plan, &lab)?;
    if !takes_settings(&lab, &plan, &study) {
        return Ok(End::Misused);
    }
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
        retry_failed: options.retry_failed,
        void: Some(&dyno_analysis::voiding::void_blocks),
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
        Err(error) => return broken_off(error, &folder, now),
    };
    terminal::out(&report::write_all(&folder, lab.clock.unix_millis())?);
    if let Some(told) = kept_data(&lab) {
        terminal::say(&told);
    }
    Ok(match tell(&end) {
        End::Good => required(&folder)?,
        other => other,
    })
}

/// Whether all servers take their settings; if not, says so before anything has been done.
fn takes_settings(lab: &Lab, plan: &Plan, study: &Study) -> bool {
    let refused = dyno_lab::check_settings(lab, plan, &study.design);
    for (variant, why) in &refused {
        terminal::say(&format!("error: {variant}: {why}"));
    }
    if !refused.is_empty() {
        terminal::say("nothing was run; correct the study");
    }
    refused.is_empty()
}

/// Whether what the study demands is met: not met is 1, not decided is 2.
fn required(folder: &Path) -> anyhow::Result<End> {
    let run = crate::readings::read_run(folder)?;
    if run.manifest.requirements.is_empty() {
        return Ok(End::Good);
    }
    let findings = dyno_analysis::analyse(&[run], &dyno_analysis::Options::default());
    let of = |outcome: RequirementOutcome| -> Vec<String> {
        let those = findings.requirements.iter().filter(|one| one.outcome == outcome);
        let place = |one: &RequirementFacts| {
            let (variant, step) = (&findings.variants[one.variant], &findings.steps[one.step]);
            format!("{} ({} at {})", one.text, variant.name, step.name)
        };
        those.map(place).collect()
    };
    let (broken, open) = (of(RequirementOutcome::NotMet), of(RequirementOutcome::Inconclusive));
    if !broken.is_empty() {
        terminal::say(&format!("required and not met: {}", broken.join(", ")));
    }
    if !open.is_empty() {
        terminal::say(&format!("required and not decided: {}", open.join(", ")));
    }
    Ok(match (broken.is_empty(), open.is_empty()) {
        (false, _) => End::Bad,
        (true, false) => End::CannotSay,
        (true, true) => End::Good,
    })
}

/// A run that ended with an error of its record: the error, then what became of its report. What was
/// measured is kept and shown.
fn broken_off(error: anyhow::Error, folder: &Path, now_unix_ms: u64) -> anyhow::Result<End> {
    match error.downcast_ref::<WriteError>().map(|error| error.kind) {
        Some(WriteErrorKind::Misuse) => return Err(crate::misuse(error)),
        Some(WriteErrorKind::Held) => return Err(error),
        Some(WriteErrorKind::Failed) | None => {}
    }
    terminal::error(&error);
    if folder.join("manifest.json").is_file()
        && let Err(why) = report::write_all(folder, now_unix_ms)
    {
        terminal::say(&format!("no report was written: {why:#}"));
    }
    Ok(End::Bad)
}

/// Removes data sets that are too many or too old, and says what is kept; none where nothing is.
fn kept_data(lab: &Lab) -> Option<String> {
    let data_sets = DataSets::of(&lab.keeper);
    // What cannot be looked at is told when it is wanted.
    let (n_removed, bytes_removed) =
        data_sets.clean(&lab.data_sets, lab.clock.unix_millis()).unwrap_or_default();
    let kept = data_sets.list().ok().filter(|kept| n_removed > 0 || !kept.is_empty())?;
    let bytes = kept.iter().map(|one| one.bytes).sum();
    let removed = match n_removed {
        0 => String::new(),
        n => format!("; {}, {}, removed", counted(n, "old one"), ByteCount(bytes_removed)),
    };
    Some(format!(
        "{} kept in {} for later runs: {} of at most {}{removed}; `dyno datasets` lists them",
        counted(kept.len(), "data set"),
        lab.keeper.root().display(),
        ByteCount(bytes),
        lab.data_sets.bytes
    ))
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
        terminal::say("stopped; the same command continues with the trials that are missing");
        return End::Interrupted;
    }
    let has_more = end.over_budget > 0 || !end.hopeless.is_empty() || end.failed_before > 0;
    if end.finished + end.failed == 0 && end.kept > 0 && !has_more {
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
             continues with them",
            end.over_budget
        ));
    }
    for (variant, (n, _)) in &end.hopeless {
        terminal::say(&format!(
            "{} of {variant} not run, because its server cannot be deployed (see above); correct the \
             study, or try again with --retry-failed",
            counted(*n as usize, "trial")
        ));
    }
    if let Some(why) = &end.stopped {
        terminal::say(&format!("the run was ended early: {why}"));
    }
    if end.failed_before > 0 {
        terminal::say(&format!(
            "{} failed earlier and not repeated; --retry-failed repeats them and keeps what they left",
            counted(end.failed_before as usize, "trial")
        ));
    }
    let is_bad = end.failed + end.failed_before + end.uncleaned > 0
        || !end.hopeless.is_empty()
        || end.stopped.is_some();
    if is_bad { End::Bad } else { End::Good }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_failed_trials_is_never_good() {
        let check = |end: RunEnd, is_good: bool| {
            assert_eq!(matches!(tell(&end), End::Good), is_good, "{end:?}");
        };
        check(RunEnd { finished: 3, ..RunEnd::default() }, true);
        check(RunEnd { kept: 3, ..RunEnd::default() }, true);
        check(RunEnd { finished: 2, failed: 1, ..RunEnd::default() }, false);
        check(RunEnd { finished: 2, uncleaned: 1, ..RunEnd::default() }, false);
        check(RunEnd { kept: 3, failed_before: 1, ..RunEnd::default() }, false);
        let hopeless = [("a".to_owned(), (2, "why".to_owned()))].into();
        check(RunEnd { kept: 3, hopeless, ..RunEnd::default() }, false);
        let stopped = Some("the disk is full".to_owned());
        check(RunEnd { finished: 3, stopped, ..RunEnd::default() }, false);
    }
}
