//! `dyno check`: all errors of a study.

use std::path::{Path, PathBuf};

use dyno_host::Keeper;
use dyno_study::{Product, Variant};
use dyno_units::ByteCount;

use crate::commands::{StudyFile, beforehand, counted, plan, power, read_study};
use crate::{End, terminal};

/// Whether a variant wants something of the machine that may not be there, or needs rights.
fn asks_of_the_machine(variant: &Variant) -> bool {
    let database = &variant.database;
    let is_limited = database.memory.is_some() || database.cpu_weight.is_some();
    is_limited || !database.kernel.is_empty() || !variant.volumes().is_empty()
}

/// Checks a study file.
pub(crate) fn run(path: &Path) -> anyhow::Result<End> {
    let Some(StudyFile { study, .. }) = read_study(path)? else { return Ok(End::Misused) };
    let seed = study.design.seed.unwrap_or(dyno_units::Seed(1));
    let plan = dyno_study::plan(&study, seed);
    let root = crate::lab::data_root(study.design.data_folder.as_deref().map(Path::new))?;
    let memory = ByteCount(crate::lab::environment(&root).memory_bytes);
    beforehand::check_without_programs(&plan, memory)?;
    if plan.drop_caches || plan.variants.iter().any(asks_of_the_machine) {
        let keeper = Keeper::new(&root)?;
        // Whether a device may be formatted is said when the study is run.
        let volumes = plan.variants.iter().flat_map(|variant| variant.volumes());
        let devices = volumes.filter_map(|volume| volume.device);
        let devices: Vec<PathBuf> = devices.map(PathBuf::from).collect();
        beforehand::check_volumes(&keeper, &devices, &plan)?;
    }
    let past = plan::past(&plan, &study.design);
    let finds = power::section(&power::lines(&plan, &study.design, &past.noise));
    let products = dyno_lab::products();
    let has_programs = plan.variants.iter().any(|variant| match &variant.database.product {
        Product::Private(name) => products
            .spec(name)
            .is_some_and(|one| !one.is_embedded && !one.is_simulated && one.dialect.is_some()),
        Product::Url(_) => false,
    });
    let later = match has_programs {
        true => {
            "not checked: the programs of servers and the values of their settings; `dyno run` checks them \
             before the first trial\n"
        }
        false => "",
    };
    terminal::out(&format!(
        "{}: no errors; {}, {}, {}\n{finds}{later}",
        path.display(),
        counted(plan.variants.len(), "variant"),
        counted(plan.steps.len(), "step"),
        counted(plan.trials.len(), "trial")
    ));
    Ok(End::Good)
}
