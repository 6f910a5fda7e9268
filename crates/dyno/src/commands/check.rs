//! `dyno check`: reports all errors of a study.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use dyno_database::Products;
use dyno_host::Keeper;
use dyno_lab::{RefusedSql, StatementCheck};
use dyno_study::{Diagnostic, Plan, Product, Variant};
use dyno_units::ByteCount;

use crate::commands::{StudyFile, beforehand, counted, plan, power, read_study, up};
use crate::{End, terminal};

/// Whether a variant needs features or rights that this machine may lack.
fn asks_of_the_machine(variant: &Variant) -> bool {
    let database = &variant.database;
    let is_limited = database.memory.is_some() || database.cpu_weight.is_some();
    // Volumes of servers on hosts are made there.
    let has_volumes = database.on.is_none() && !variant.volumes().is_empty();
    is_limited || !database.kernel.is_empty() || has_volumes
}

/// A data folder that was not there before the check.
struct RemovedIfEmpty(PathBuf);

impl Drop for RemovedIfEmpty {
    fn drop(&mut self) {
        // One that is not empty has something to keep.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// With `start_servers`, also checks statements of declared workloads on private servers.
pub(crate) fn run(path: &Path, start_servers: bool) -> anyhow::Result<End> {
    let Some(file) = read_study(path)? else { return Ok(End::Misused) };
    let study = &file.study;
    let seed = study.design.seed.unwrap_or(dyno_units::Seed(1));
    let plan = dyno_study::plan(study, seed);
    let root = crate::lab::data_root(study.design.data_folder.as_deref().map(Path::new))?;
    let _unchanged = (!root.exists()).then(|| RemovedIfEmpty(root.clone()));
    let memory = ByteCount(crate::lab::environment(&root).usable_memory_bytes());
    beforehand::check_without_programs((&file, &plan), memory)?;
    let is_here = study.design.trial_hosts.is_empty();
    if is_here {
        beforehand::check_commands(study, &plan)?;
    }
    let asks = plan.drop_caches || plan.variants.iter().any(asks_of_the_machine);
    if is_here && asks {
        let keeper = Keeper::new(&root)?;
        // `dyno run` says whether a device may be formatted.
        let volumes = plan.variants.iter().flat_map(|variant| variant.volumes());
        let devices: Vec<PathBuf> =
            volumes.filter_map(|volume| volume.device().map(Path::to_owned)).collect();
        beforehand::check_volumes(&keeper, &devices, &plan)?;
    }
    let statements = statements(&file, &plan, start_servers)?;
    if !statements.refused.is_empty() {
        say_refused(path, &file.source, &statements.refused);
        return Ok(End::Misused);
    }
    let past = plan::past(&plan, &study.design);
    let finds = power::section(&power::lines(&plan, &study.design, &past.noise));
    let context = plan::context(&plan, &file, &past)?;
    let mut warnings: Vec<String> =
        dyno_study::plan::over_budget(&plan, &context).into_iter().collect();
    warnings.extend(dyno_study::plan::over_host_time(&plan, &context));
    warnings.extend(if is_here { missing_versions(&plan, &root)? } else { Vec::new() });
    let mut later: String = warnings.iter().map(|why| format!("warning: {why}\n")).collect();
    if has_programs(&file.products, &plan) {
        later += "not checked: the servers' programs and the values of their settings; `dyno run` \
                  checks them before the first trial\n";
    }
    later.extend(statements.unchecked.iter().map(|why| format!("not checked: {why}\n")));
    let asked = dyno_lab::questions_in_words(study, &plan).join("; and ");
    let guessed = match study.design.questions.is_empty() {
        true => " (inferred from what is varied; set `question` in [design] to ask something else)",
        false => "",
    };
    terminal::out(&format!(
        "{}: no errors; {}, {}, {}\nasks {asked}{guessed}\n{finds}{later}",
        path.display(),
        counted(plan.variants.len(), "variant"),
        counted(plan.steps.len(), if plan.has_own_steps() { "step" } else { "load level" }),
        counted(plan.trials.len(), "trial")
    ));
    Ok(End::Good)
}

fn has_programs(products: &Products, plan: &Plan) -> bool {
    let here = plan.variants.iter().filter(|variant| variant.database.on.is_none());
    here.map(|variant| &variant.database.product).any(|product| match product {
        Product::Private(name) => products.spec(name).is_some_and(up::is_startable),
        Product::Url(_) => false,
    })
}

/// Missing versions that the study asks for by number; not of programs that it describes: a check
/// starts none.
fn missing_versions(plan: &Plan, root: &Path) -> anyhow::Result<Vec<String>> {
    let products = dyno_lab::products();
    let keeper = crate::lab::keeper(root)?.with_builds(crate::lab::builds()?);
    let mut seen = HashSet::new();
    let mut missing = Vec::new();
    let mut images = HashSet::new();
    for database in plan.variants.iter().map(|variant| &variant.database) {
        if let Some(image) = &database.image {
            if !database.fetch && images.insert(image) {
                missing.extend(keeper.image(image).err().map(|error| error.0));
            }
            continue;
        }
        let (Product::Private(name), Some(version)) = (&database.product, &database.version) else {
            continue;
        };
        let from = database.from.as_deref();
        let is_elsewhere = database.programs.is_some() || database.on.is_some();
        if is_elsewhere || database.fetch || !seen.insert((name, version, from)) {
            continue;
        }
        let Some(product) = products.find(name) else { continue };
        let found = dyno_database::find_programs(product, (Some(version), from), &keeper);
        missing.extend(found.err().map(|error| error.message));
    }
    Ok(missing)
}

fn statements(file: &StudyFile, plan: &Plan, start: bool) -> anyhow::Result<StatementCheck> {
    let design = &file.study.design;
    let lab = match start {
        true => Some(crate::lab::make(design.data_folder.as_deref().map(Path::new))?),
        false => None,
    };
    let words = (&file.products, &file.catalog);
    Ok(dyno_lab::check_statements(words, (plan, design), lab.as_ref()))
}

fn say_refused(path: &Path, source: &str, refused: &[RefusedSql]) {
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    for RefusedSql { workload, title, problem } in refused {
        let place = dyno_study::declared_place(source, workload, &problem.path);
        let diagnostic = Diagnostic::new(place, format!("workload `{workload}`: {title}"));
        let diagnostic = diagnostic.with_label(problem.message.clone());
        diagnostics.push(match &problem.help {
            Some(help) => diagnostic.with_help(help.clone()),
            None => diagnostic,
        });
    }
    diagnostics.sort_by_key(|one| one.span.start);
    super::say_diagnostics(&path.display().to_string(), source, &diagnostics);
}
