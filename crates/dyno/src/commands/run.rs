//! `dyno run`: from a study file to an answer.

use std::path::{Path, PathBuf};

use anyhow::Context;
use dyno_lab::datasets::{DataSets, Limits};
use dyno_lab::{Hopeless, Lab, RunEnd, RunOrder, StudyText};
use dyno_record::{WriteError, WriteErrorKind};
use dyno_study::Study;
use dyno_units::{ByteCount, Nanoseconds, Seed};

use crate::commands::{
    Planned, StudyFile, beforehand, counted, plan, products, read_study, report,
};
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::{End, lab, scripts, terminal, values};

/// Options of `dyno run`.
#[derive(clap::Args)]
pub(crate) struct RunOptions {
    /// The study file
    study: PathBuf,
    /// The run's folder [default: `runs/` and the study's name]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Begin a new run instead of resuming the last one; earlier runs are kept
    #[arg(long, conflicts_with = "out")]
    new: bool,
    /// The seed, if the study sets none
    #[arg(long, value_parser = values::seed)]
    seed: Option<Seed>,
    /// The folder in which private servers (those that Dyno starts) keep their data
    #[arg(long, value_name = "FOLDER")]
    data_folder: Option<PathBuf>,
    /// Allow formatting this device for a volume of the study; may be repeated
    #[arg(long, value_name = "DEVICE")]
    format_device: Vec<PathBuf>,
    /// Fetch programs that the study names by version and that are not installed, as `dyno products
    /// fetch` does
    #[arg(long)]
    fetch: bool,
    /// Populate in every trial; neither reuse nor keep data sets
    #[arg(long)]
    no_reuse: bool,
    /// Repeat trials that failed; the files of the failed ones are kept
    #[arg(long)]
    retry_failed: bool,
    /// Disk space for kept data sets; beyond it, the least recently used are removed
    #[arg(long, value_name = "SIZE", default_value = "20GiB", value_parser = values::size_with_unit)]
    keep_data: ByteCount,
    /// Keep a data set for at most this long after its last use
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = dyno_units::parse_duration)]
    keep_data_for: Nanoseconds,
    /// Serve the latest numbers as OpenMetrics text on this loopback address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
}

pub(crate) fn run(options: &RunOptions) -> anyhow::Result<End> {
    let Some(StudyFile { mut study, source, catalog, products: known }) =
        read_study(&options.study)?
    else {
        return Ok(End::Misused);
    };
    if options.no_reuse {
        study.design.reuse = false;
    }
    let metrics = Metrics::from_option(options.metrics.as_ref())?;
    let folder = run_folder(options);
    beforehand::check_place(&folder)?;
    let of_study = study.design.data_folder.as_ref().map(Path::new);
    let mut lab = lab::make(options.data_folder.as_deref().or(of_study))?;
    lab.catalog = catalog;
    lab.products = known;
    lab.data_sets = Limits { bytes: options.keep_data, unused: options.keep_data_for };
    lab.format_devices = options.format_device.clone();
    let now = lab.clock.unix_millis();
    let seed = seed(options, &study, &folder, now)?;
    let plan = plan::for_run(&study, seed, &folder);
    let planned = Planned::new(&lab, (&study, &source), plan)?;
    let plan = &planned.plan;
    let text = if study.design.trial_hosts.is_empty() {
        beforehand::check_commands(&study, plan)?;
        beforehand::warn_of_disk(plan, &lab)?;
        beforehand::check_volumes(&lab.keeper, &lab.format_devices, plan)?;
        products::provide(&lab, plan, options.fetch)?;
        beforehand::check_deployments(&lab, plan, &study.design)?;
        None
    } else {
        let is_remote = study.design.trial_hosts.iter().any(|pool| !pool.is_local());
        if (options.data_folder.is_some() && is_remote) || !options.format_device.is_empty() {
            return Err(crate::usage_error(anyhow::anyhow!(
                "--data-folder and --format-device are for this machine, and the trials of this study \
                 run on hosts (`trials_on`): name a folder with `data_folder` in [design]; devices \
                 cannot be formatted there"
            )));
        }
        // Each host checks its own trials.
        let beside = options.study.parent().unwrap_or_else(|| Path::new(""));
        let files = scripts::files(&source, beside)?;
        Some(StudyText { source: source.clone(), files, fetch: options.fetch })
    };
    terminal::say(&beforehand::headline(&lab.products, plan, &study.design, &folder));
    let order = RunOrder {
        decide: Some(&decide),
        retry_failed: options.retry_failed,
        void: Some(&dyno_analysis::voiding::void_blocks),
        text: text.as_ref(),
        ..planned.order(&folder)
    };
    let end = match Progress::follow(&lab, &order, metrics.as_ref(), &mut |_| true) {
        Ok(end) => end,
        Err(error) => return broken_off(error, &folder, now),
    };
    let report = report::write_all(&folder, lab.clock.unix_millis())?;
    if let Some(text) = kept_data(&lab) {
        terminal::say(&text);
    }
    if !end.interrupted || end.finished + end.kept > 0 {
        terminal::out(&report);
    }
    Ok(match report_end(&end) {
        End::Good => required(&folder)?,
        other => other,
    })
}

fn required(folder: &Path) -> anyhow::Result<End> {
    let run = crate::readings::read_run(folder)?;
    if run.manifest.requirements.is_empty() {
        return Ok(End::Good);
    }
    Ok(report::requirements(&report::find(&[run], None), &|_| true))
}

/// After an error of the record: the error, then the report of what was measured and kept.
fn broken_off(error: anyhow::Error, folder: &Path, now_unix_ms: u64) -> anyhow::Result<End> {
    match error.downcast_ref::<WriteError>().map(|error| error.kind) {
        Some(WriteErrorKind::Usage) => return Err(crate::usage_error(error)),
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

/// Removes data sets beyond the limits and describes the rest.
fn kept_data(lab: &Lab) -> Option<String> {
    let data_sets = DataSets::of(&lab.keeper);
    let (n_removed, bytes_removed) =
        data_sets.clean(&lab.data_sets, lab.clock.unix_millis()).unwrap_or_default();
    let mut kept = data_sets.list().ok()?;
    kept.retain(|one| !one.is_initial());
    if kept.is_empty() && n_removed == 0 {
        return None;
    }
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

/// Variants that need no more repetitions after the blocks before this one.
fn decide(folder: &Path, block: u32) -> anyhow::Result<Vec<(usize, String)>> {
    let mut run = dyno_record::read_run(folder).context("cannot read the run so far")?;
    run.trials.retain(|trial| trial.block < block);
    Ok(dyno_analysis::stopping::decide(&run).settled)
}

fn run_folder(options: &RunOptions) -> PathBuf {
    if let Some(folder) = &options.out {
        return folder.clone();
    }
    let path = &options.study;
    let mut name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // `studies/durability/bench-top.toml` gets its folder's name, too.
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

/// From the study, the command line, the run to continue, or a new one.
fn seed(options: &RunOptions, study: &Study, folder: &Path, now: u64) -> anyhow::Result<Seed> {
    if let Some(seed) = study.design.seed.or(options.seed) {
        return Ok(seed);
    }
    if folder.join("manifest.json").exists() {
        let run = dyno_record::read_run(folder).context("cannot continue the run")?;
        return Ok(Seed(run.manifest.seed));
    }
    // A short number is easier to copy.
    Ok(Seed(Seed(now).derive("run", 0).0 % 1_000_000))
}

fn report_end(end: &RunEnd) -> End {
    if end.interrupted {
        terminal::say(
            "stopped; what the unfinished trial measured stays in its folder, and the same \
             command repeats that trial and continues with the remaining ones",
        );
        return End::Interrupted;
    }
    let has_more = end.over_budget > 0 || !end.hopeless.is_empty() || end.failed_before > 0;
    if end.finished + end.failed == 0 && end.kept > 0 && !has_more {
        terminal::say("all trials are already done; `--new` starts a new run");
    }
    if end.settled > 0 {
        terminal::say(&format!(
            "{} trials were not needed: the verdicts of their variants are decided",
            end.settled
        ));
    }
    if end.over_budget > 0 {
        terminal::say(&format!(
            "{} trials were not started: they would have exceeded the time budget; the same \
             command continues with them",
            end.over_budget
        ));
    }
    for (variant, Hopeless { n_trials, was_deployed, .. }) in &end.hopeless {
        let what_next = match was_deployed {
            true => {
                "correct the study, or try again: the same command begins them, and with --retry-failed \
                 also repeats those that failed"
            }
            false => "correct the study, or try again with --retry-failed",
        };
        terminal::say(&format!(
            "{} of {variant} not run, for the reason above; {what_next}",
            counted(*n_trials as usize, "trial")
        ));
    }
    if let Some(why) = &end.stopped {
        terminal::say(&format!("the run was ended early: {why}"));
    }
    if end.failed_before > 0 {
        terminal::say(&format!(
            "{} failed earlier, not repeated; --retry-failed repeats them and keeps the files of \
             the failed ones",
            counted(end.failed_before as usize, "trial")
        ));
    }
    let is_bad = end.failed + end.failed_before + end.uncleaned > 0
        || !end.hopeless.is_empty()
        || end.stopped.is_some();
    if is_bad { End::Bad } else { End::Good }
}

#[cfg(test)]
mod job_tests;

#[cfg(test)]
mod tests {
    use dyno_record::{Canary, Run};

    use super::*;

    /// Two simulated servers in five blocks, with at most two more. `canary` gives the trials'
    /// canary from the run so far and the block.
    fn run_with_canary(folder: &Path, canary: &dyn Fn(&Run, u32) -> f64) -> (RunEnd, Run) {
        let source = "title = 'x'\n[database.a]\nproduct = 'simulated'\n[database.b]\nlike = 'a'\n\
             [workload.oltp_point_select]\n[design]\nvary = { database = ['a', 'b'] }\nclients = 2\n\
             repetitions = 5\nwarm_up = '0s'\nduration = '2s'\nrest = '0s'\nseed = 3\n";
        let study = dyno_study::parse(source, &crate::vocabulary::vocabulary()).unwrap();
        let lab = lab::make(Some(folder)).unwrap();
        let plan = dyno_study::plan(&study, Seed(3));
        let planned = Planned::new(&lab, (&study, source), plan).unwrap();
        let void = |run: &Run| {
            let mut disturbed = run.clone();
            for trial in &mut disturbed.trials {
                let took = canary(run, trial.block);
                trial.canary = Some(Canary { before_s: took, after_s: took });
            }
            dyno_analysis::voiding::void_blocks(&disturbed)
        };
        let order = RunOrder { void: Some(&void), ..planned.order(&folder.join("run")) };
        let end = dyno_lab::run(&lab, &order, &mut |_| {}).unwrap();
        (end, dyno_record::read_run(&order.folder).unwrap())
    }

    #[test]
    fn a_void_block_is_measured_again_kept_aside_and_reported() {
        let folder = tempfile::tempdir().unwrap();
        // Block 2 is disturbed the first time.
        let once = |run: &Run, block| if block == 2 && run.voids.is_empty() { 0.09 } else { 0.05 };
        let (end, run) = run_with_canary(folder.path(), &once);
        assert_eq!((end.finished, run.trials.len()), (12, 10), "{end:?}");
        assert_eq!(run.voids.iter().map(|void| void.block).collect::<Vec<_>>(), [2]);
        assert!(run.voids[0].why.iter().all(|why| why.contains("CPU probe took 90 ms")));
        // Both trials are kept beside their replacements.
        let names = std::fs::read_dir(folder.path().join("run/trials")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        assert_eq!(names.filter(|name| name.ends_with(".void-1")).count(), 2);
        report::write_all(&folder.path().join("run"), 0).unwrap();
        let text = std::fs::read_to_string(folder.path().join("run/report.md")).unwrap();
        assert!(text.contains("1 block was discarded and run again"), "{text}");
        // The same run again: nothing is missing or newly void.
        let (again, run) = run_with_canary(folder.path(), &once);
        assert_eq!((again.finished, again.kept, run.voids.len()), (0, 10, 1));
    }

    #[test]
    fn void_blocks_are_repeated_as_often_as_the_design_allows() {
        let folder = tempfile::tempdir().unwrap();
        // All blocks but the first are disturbed: only two are repeated.
        let always = |_: &Run, block| if block == 1 { 0.05 } else { 0.09 };
        let (end, run) = run_with_canary(folder.path(), &always);
        assert_eq!((end.finished, run.trials.len(), run.voids.len()), (14, 10, 2), "{end:?}");
    }

    #[test]
    fn a_run_with_failed_trials_is_never_good() {
        let check = |end: RunEnd, is_good: bool| {
            assert_eq!(matches!(report_end(&end), End::Good), is_good, "{end:?}");
        };
        check(RunEnd { finished: 3, ..RunEnd::default() }, true);
        check(RunEnd { kept: 3, ..RunEnd::default() }, true);
        check(RunEnd { finished: 2, failed: 1, ..RunEnd::default() }, false);
        check(RunEnd { finished: 2, uncleaned: 1, ..RunEnd::default() }, false);
        check(RunEnd { kept: 3, failed_before: 1, ..RunEnd::default() }, false);
        let why = "why".to_owned();
        let hopeless = Hopeless { n_trials: 2, why, was_deployed: false };
        let hopeless = [("a".to_owned(), hopeless)].into();
        check(RunEnd { kept: 3, hopeless, ..RunEnd::default() }, false);
        let stopped = Some("the disk is full".to_owned());
        check(RunEnd { finished: 3, stopped, ..RunEnd::default() }, false);
    }
}
