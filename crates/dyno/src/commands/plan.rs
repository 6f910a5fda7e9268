//! `dyno plan`: the trials in order, with times and disk space.

use std::collections::HashSet;
use std::path::Path;

use dyno_lab::ExpectedData;
use dyno_study::plan::{PlannedTrial, TableContext, VariantSize, canonical_text, render_table};
use dyno_study::{BlockOrder, Design, Plan, Product, Study, Variant};
use dyno_units::{ByteCount, Nanoseconds, Seed};

use crate::commands::power::{self, Past};
use crate::commands::{StudyFile, disk, read_study};
use crate::{End, terminal};

/// A cautious guess for a private server.
const START_TIME: Nanoseconds = Nanoseconds::from_secs(4);

/// Without a server to start.
const OPEN_TIME: Nanoseconds = Nanoseconds::from_secs(1);

/// A cautious guess for a small machine, indexes included.
const POPULATE_ROWS_PER_S: u64 = 50_000;

pub(crate) fn run(path: &Path, seed: Option<Seed>, is_canonical: bool) -> anyhow::Result<End> {
    let Some(file) = read_study(path)? else { return Ok(End::Misused) };
    let study = &file.study;
    let is_seed_given = seed.is_some();
    let seed = study.design.seed.or(seed).unwrap_or(Seed(1));
    let plan = dyno_study::plan(study, seed);
    if is_canonical {
        terminal::out(&canonical_text(&plan, study));
        return Ok(End::Good);
    }
    let past = past(&plan, &study.design);
    let context = context(&plan, &file, &past)?;
    let finds = power::section(&power::lines(&plan, &study.design, &past.noise));
    let order = match (study.design.seed, is_seed_given) {
        (None, false) => {
            "note: this is the order for seed 1; without a seed, `dyno run` picks one at random, and the order differs\n"
        }
        _ => "",
    };
    terminal::out(&format!("{}{finds}{order}", render_table(&plan, &context)));
    Ok(End::Good)
}

/// For the study's hosts.
pub(crate) fn show_manifests(path: &Path) -> anyhow::Result<End> {
    let Some(file) = read_study(path)? else { return Ok(End::Misused) };
    let design = &file.study.design;
    let pools = design.generators.iter().chain(&design.trial_hosts);
    let manifests: Vec<String> = pools.filter_map(dyno_lab::kubernetes_manifest).collect();
    if manifests.is_empty() {
        terminal::say("no hosts of this study are reached by `kubernetes`");
    }
    manifests.iter().for_each(|manifest| terminal::out(&format!("{manifest}\n")));
    Ok(End::Good)
}

pub(crate) fn context(plan: &Plan, file: &StudyFile, past: &Past) -> anyhow::Result<TableContext> {
    let StudyFile { study, catalog, products, .. } = file;
    let data = dyno_lab::expected_disk(catalog, plan)?;
    let rows: Vec<u64> = data.iter().map(|data| data.rows).collect();
    let sends = plan.steps.iter().any(|step| step.load.clients() > 0);
    let design = &study.design;
    let pools = design.generators.iter().chain(&design.server_hosts).chain(&design.trial_hosts);
    let mut hosts: Vec<_> =
        pools.filter_map(|pool| Some((pool.name.clone(), pool.requested_time()?))).collect();
    hosts.dedup();
    Ok(TableContext {
        hosts,
        measured: past.steps.clone(),
        disk: disk::lines(products, plan, &data, study.design.reuse),
        budget: study.design.budget,
        void_repeats: study.design.void_repeats,
        sizes: data.iter().map(size).filter(|_| sends).collect(),
        prepare: Some(start_time(products, plan)),
        populate: populate_times(plan, &rows, study),
    })
}

pub(crate) fn start_time(products: &dyno_database::Products, plan: &Plan) -> Nanoseconds {
    let is_embedded = |product: &Product| match product {
        Product::Private(name) => products.spec(name).is_some_and(|product| product.is_embedded),
        Product::Url(_) => true,
    };
    match plan.variants.iter().all(|variant| is_embedded(&variant.database.product)) {
        true => OPEN_TIME,
        false => START_TIME,
    }
}

/// From this machine's earlier runs in `runs`, or assumed.
pub(crate) fn past(plan: &Plan, design: &Design) -> Past {
    let folder = design.data_folder.as_ref().map(Path::new);
    match crate::lab::data_root(folder) {
        Ok(root) => {
            let machine = crate::lab::environment(&root).machine;
            Past::of(plan, Path::new("runs"), &machine)
        }
        Err(_) => Past::unknown(),
    }
}

/// Runs planned before Dyno mirrored blocks keep their manifest's order, to be continued.
pub(crate) fn for_run(study: &Study, seed: Seed, folder: &Path) -> Plan {
    let plan = dyno_study::plan(study, seed);
    // Opening the record reports errors of its manifest.
    let Ok(manifest) = dyno_record::read_manifest(folder) else { return plan };
    let is_recorded = |plan: &Plan| {
        let mut both = plan.trials.iter().zip(&manifest.trials);
        both.all(|(ours, theirs)| (ours.variant, ours.block) == (theirs.variant, theirs.block))
    };
    if is_recorded(&plan) {
        return plan;
    }
    let free = dyno_study::plan_in(study, seed, BlockOrder::Free);
    if is_recorded(&free) { free } else { plan }
}

/// None if the variant's own steps fill its tables.
fn size(data: &ExpectedData) -> Option<VariantSize> {
    let size = VariantSize { rows: data.rows, bytes: ByteCount(data.bytes) };
    (data.rows > 0).then_some(size)
}

/// By trial; `rows` is by variant. A private server's data set is populated once as far as known
/// beforehand: settings that shape its files may need further ones.
fn populate_times(plan: &Plan, rows: &[u64], study: &Study) -> Vec<Nanoseconds> {
    let is_reused = study.design.reuse;
    let mut kept = HashSet::new();
    let populate = |trial: &PlannedTrial| {
        let Variant { database, workload, .. } = &plan.variants[trial.variant];
        let programs = (&database.programs, &database.image);
        let data = (&database.product, &database.engine, programs, workload);
        let is_here = matches!(database.product, Product::Private(_)) && database.on.is_none();
        if is_here && !kept.insert(data) && is_reused {
            return Nanoseconds::ZERO;
        }
        let pools = study.design.server_hosts.iter();
        let pool = pools.filter(|pool| Some(&pool.name) == database.on.as_ref()).next();
        // Independent servers are populated one after the other; of one deployment, one server is.
        let independent = pool.filter(|_| !database.is_one_deployment());
        let servers = independent.map_or(1, |pool| database.servers_on(pool)) as u64;
        Nanoseconds::from_secs(servers * rows[trial.variant] / POPULATE_ROWS_PER_S)
    };
    plan.trials.iter().map(populate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_is_populated_once_where_it_can_be_reused() {
        let check = |product: &str, is_reused: bool, expected: [u64; 3]| {
            let source = format!(
                "title = 'x'\n[database.a]\n{product}\n[workload.oltp_insert]\n[design]\n\
                 repetitions = 3\n"
            );
            let mut study = dyno_study::parse(&source, &crate::vocabulary::vocabulary()).unwrap();
            study.design.reuse = is_reused;
            let plan = dyno_study::plan(&study, Seed(1));
            let found = populate_times(&plan, &[200_000], &study);
            assert_eq!(found, expected.map(Nanoseconds::from_secs));
        };
        check("product = 'mariadb'", true, [4, 0, 0]);
        check("product = 'mariadb'", false, [4, 4, 4]);
        check("url = 'mysql://me@h/c'", true, [4, 4, 4]);
        // On hosts, data sets are not kept.
        let hosts = "product = 'mariadb'\non = 'h'\n[host.h]\nnames = ['a']\n";
        check(hosts, true, [4, 4, 4]);
    }

    #[test]
    fn a_run_of_before_blocks_were_mirrored_keeps_its_order() {
        let source = "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[workload.oltp_insert]\n\
             [design]\nrepetitions = 6\nvary.option.tables = [1, 2, 3]\n";
        let study = dyno_study::parse(source, &crate::vocabulary::vocabulary()).unwrap();
        let free = dyno_study::plan_in(&study, Seed(1), BlockOrder::Free);
        let mirrored = dyno_study::plan(&study, Seed(1));
        assert_ne!(free.trials, mirrored.trials);
        let folder = tempfile::tempdir().unwrap();
        let environment = dyno_record::Environment::default();
        for plan in [free, mirrored] {
            let manifest = dyno_lab::make_manifest(
                &dyno_workload::catalog::Catalog::built_in(),
                &plan,
                (&study, source),
                &environment,
                0,
            )
            .unwrap();
            let text = serde_json::to_string(&manifest).unwrap();
            std::fs::write(folder.path().join("manifest.json"), text).unwrap();
            assert_eq!(for_run(&study, Seed(1), folder.path()), plan);
        }
        let other = for_run(&study, Seed(2), folder.path());
        assert_eq!(other, dyno_study::plan(&study, Seed(2)), "another run is planned as new ones");
    }

    #[test]
    fn an_empty_table_is_of_no_known_size() {
        let check = |rows: u64, expected: Option<u64>| {
            assert_eq!(
                size(&ExpectedData { rows, bytes: 7, is_populated: true }).map(|size| size.rows),
                expected
            );
        };
        check(5, Some(5));
        check(0, None);
    }
}
