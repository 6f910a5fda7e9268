//! A whole trial on an agent's host: reads the study again and runs one trial of it as `dyno run` would.

use std::fs;
use std::path::{Component, Path};

use anyhow::{Context, bail};
use dyno_lab::Lab;
use dyno_lab::agent::{FromTrial, MakeKeeper, TrialOrder, TrialReport, run_trial, unrecorded};
use dyno_lab::datasets::{DataSets, Limits};
use dyno_load::AbortFlag;
use dyno_record::Environment;
use dyno_study::{Plan, Study};
use dyno_units::{ByteCount, Seed};

use crate::commands::{Planned, StudyFile, beforehand, products, read_study_as_it_is};
use crate::lab;

const STUDY: &str = "study.toml";

pub(super) fn run(
    order: &TrialOrder,
    abort: &AbortFlag,
    keeper: &MakeKeeper,
    tell: &mut dyn FnMut(FromTrial<'_>),
) -> TrialReport {
    let usual = || {
        let root = lab::data_root(None);
        root.map(|root| lab::environment(&root)).unwrap_or_else(|_| Environment::default())
    };
    match begin(order, abort, keeper, tell) {
        Ok(report) => report,
        Err(error) => unrecorded(usual(), format!("{error:#}")),
    }
}

fn begin(
    order: &TrialOrder,
    abort: &AbortFlag,
    make_keeper: &MakeKeeper,
    tell: &mut dyn FnMut(FromTrial<'_>),
) -> anyhow::Result<TrialReport> {
    let folder = order.data_folder.as_deref().map(Path::new);
    let keeper = make_keeper(folder).map_err(anyhow::Error::msg)?;
    let mut lab = lab::make_with(keeper);
    lab.abort = abort.clone();
    lab.data_sets = Limits { bytes: ByteCount(order.keep_bytes), unused: order.keep_for };
    let folder = lab.keeper.make_folder("study")?;
    let report = in_folder(order, &mut lab, &folder, tell);
    let removed = lab.keeper.remove_folder(&folder);
    let _ = DataSets::of(&lab.keeper).clean(&lab.data_sets, lab.clock.unix_millis());
    let report = report?;
    removed?;
    Ok(report)
}

fn in_folder(
    order: &TrialOrder,
    lab: &mut Lab,
    folder: &Path,
    tell: &mut dyn FnMut(FromTrial<'_>),
) -> anyhow::Result<TrialReport> {
    write_files(order, folder)?;
    let Some(file) = read_study_as_it_is(&folder.join(STUDY))? else {
        bail!("the study cannot be read there; is it the same version of Dyno?");
    };
    let StudyFile { mut study, source, catalog, products: known } = file;
    let seed = Seed(order.seed);
    let plan = dyno_study::plan(&study, seed);
    let trials = plan.trials.iter();
    let planned = trials.filter(|planned| planned.number == order.number).next();
    let variant = planned.map(|planned| &plan.variants[planned.variant]);
    let Some(variant) = variant.filter(|variant| variant.name == order.variant) else {
        bail!("the plan made there is not that of the controller");
    };
    lab.catalog = catalog;
    lab.products = known;
    let only = Plan { variants: vec![variant.clone()], trials: Vec::new(), ..plan.clone() };
    // Seen from the agent, everything is on this machine.
    study.design.trial_hosts.clear();
    study.design.reuse = order.reuse;
    check(lab, &only, &study, order.fetch)?;
    let planned = Planned::new(lab, (&study, &source), plan)?;
    Ok(run_trial(lab, &planned.order(&folder.join("run")), order.number, tell))
}

fn check(lab: &Lab, only: &Plan, study: &Study, fetch: bool) -> anyhow::Result<()> {
    beforehand::warn_of_disk(only, lab)?;
    beforehand::check_volumes(&lab.keeper, &[], only)?;
    products::provide(lab, only, fetch)?;
    beforehand::check_settings(lab, only, &study.design)
}

fn write_files(order: &TrialOrder, folder: &Path) -> anyhow::Result<()> {
    fs::write(folder.join(STUDY), &order.study).context("the study cannot be written")?;
    for (name, text) in &order.files {
        let path = Path::new(name);
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            bail!("the study names a file outside its folder: {name}");
        }
        let path = folder.join(path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = written.and_then(|()| fs::write(&path, text));
        written.with_context(|| format!("{name} cannot be written"))?;
    }
    Ok(())
}
