//! Checks before the first trial that servers accept their settings and jobs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dyno_database::Products;
use dyno_study::{Database, Design, JobWork, LoadLevel, Plan, Product, Variant};
use dyno_units::ByteCount;
use dyno_workload::Workload;
use dyno_workload::catalog::Catalog;

use crate::deployment::{endpoint, front, resolved, source, spec, unknown_members};
use crate::lab::Basis;
use crate::{Deployment, Lab, Result, Source, TrialError, fail, plan_workload};

/// The name of a variant, and why it is refused.
type Refused = (String, String);

/// Variants whose servers will refuse their settings, as far as known before they start: name and
/// reason, each configuration once. Running servers are not asked.
pub fn check_settings(lab: &Lab, plan: &Plan, design: &Design) -> Vec<Refused> {
    let basis = lab.basis(design);
    let mut refused = Vec::new();
    for (variant, _) in with_own_database(plan) {
        let result = source(basis, variant).and_then(|(source, _)| match source {
            // Programs are those of this machine.
            Source::Start(ref spec) if variant.database.on.is_none() => {
                lab.products.check_settings(spec, &lab.place())?;
                match front(basis, variant, &source) {
                    Some(spec) => Ok(lab.products.check_settings(&spec, &lab.place())?),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        });
        let result = result.and_then(|()| match &variant.database.behind {
            Some(behind) if variant.database.on.is_none() => {
                Ok(lab.products.router(&behind.product)?.check(&lab.place())?)
            }
            _ => Ok(()),
        });
        refused.extend(message(result).map(|why| (variant.name.clone(), why)));
    }
    for (variant, database) in with_other_database(plan) {
        let result = spec(basis, database)
            .and_then(|spec| Ok(lab.products.check_settings(&spec, &lab.place())?));
        let why = message(result).map(|why| format!("{}: {why}", database.name));
        refused.extend(why.map(|why| (variant.name.clone(), why)));
    }
    refused.extend(without_vectors((lab, basis), plan));
    refused.extend(unpromotable(&lab.catalog, plan));
    refused.extend(wrong_shards(plan));
    refused.extend(wrong_urls(plan));
    refused.extend(sql_for_nobody(&lab.products, plan));
    refused
}

/// Why something would fail, if it would.
fn message<T>(result: Result<T>) -> Option<String> {
    match result {
        Err(TrialError::Failed { message, .. }) => Some(message),
        _ => None,
    }
}

/// Variants that limit members which no variant of their database has, or which cannot be limited, with the reason.
pub fn check_members(
    products: &Products,
    plan: &Plan,
    design: &Design,
    memory: ByteCount,
) -> Vec<Refused> {
    let basis = Basis { products, design, memory };
    let mut refused = Vec::new();
    let mut known: HashMap<&str, Vec<String>> = HashMap::new();
    let has_limited = |variant: &&Variant| {
        !(variant.database.member_cpus.is_empty() && variant.database.member_memory.is_empty())
    };
    for variant in plan.variants.iter().filter(has_limited) {
        let deployment = match Deployment::of(basis, variant) {
            Ok(deployment) => deployment,
            failed => {
                refused.extend(message(failed).map(|why| (variant.name.clone(), why)));
                continue;
            }
        };
        let all = known.entry(&variant.database.name).or_default();
        for name in deployment.members.into_iter().map(|member| member.facts.name) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    for variant in &plan.variants {
        let Some(known) = known.get(&*variant.database.name) else { continue };
        let unknown = unknown_members(&variant.database, known).into_iter();
        refused.extend(unknown.map(|message| (variant.name.clone(), message)));
    }
    refused
}

fn unpromotable(catalog: &Catalog, plan: &Plan) -> Vec<Refused> {
    let refused = plan.variants.iter().filter_map(|variant| {
        variant.fault().filter(|fault| fault.promotes)?;
        // What a workload cannot be planned for is reported elsewhere.
        let workload = plan_workload(catalog, plan, variant).ok()?;
        Some((variant.name.clone(), message(check_promotion(plan, variant, &*workload))?))
    });
    refused.collect()
}

/// Refuses to promote a replica where it could not be told what was lost.
pub(crate) fn check_promotion(plan: &Plan, variant: &Variant, workload: &dyn Workload) -> Result {
    let Some(fault) = variant.fault().filter(|fault| fault.promotes) else { return Ok(()) };
    let refused = |why: &str| fail(format!("the fault {} cannot promote: {why}", fault.name));
    if plan.steps.len() > 1 {
        return refused(
            "after the first step, the primary is another server; give the study one step, with one number \
             of clients or one rate",
        );
    }
    if !workload.outline().counts_commits {
        return refused(&format!(
            "how many transactions are lost cannot be counted in the tables of the workload {}; use tpcb, \
             key-order or oltp_insert",
            workload.name()
        ));
    }
    Ok(())
}

fn without_vectors((lab, basis): (&Lab, Basis<'_>), plan: &Plan) -> Vec<Refused> {
    let mut seen = HashSet::new();
    let mut refused = Vec::new();
    for variant in &plan.variants {
        let needs_them = plan_workload(&lab.catalog, plan, variant)
            .is_ok_and(|workload| workload.outline().needs_vectors);
        if !needs_them || !seen.insert(Arc::as_ptr(&variant.database)) {
            continue;
        }
        if variant.database.on.is_none()
            && let Ok((Source::Start(spec), _)) = source(basis, variant)
            && let Err(error) = lab.products.check_vectors(&spec, &lab.place())
        {
            refused.push((variant.name.clone(), error.to_string()));
        }
    }
    refused
}

/// Without running a program; `memory` is the host's, for settings that are a share of it.
pub fn check_without_programs(
    (products, catalog): (&Products, &Catalog),
    plan: &Plan,
    design: &Design,
    memory: ByteCount,
) -> Vec<Refused> {
    let databases = with_own_database(plan).filter_map(|(variant, name)| {
        let settings = resolved(&variant.database, memory);
        Some((variant.name.clone(), products.settings_refusal(name, &settings)?))
    });
    let beside = with_other_database(plan).filter_map(|(variant, database)| {
        let Product::Private(name) = &database.product else { return None };
        let refusal = products.settings_refusal(name, &resolved(database, memory))?;
        Some((variant.name.clone(), format!("{}: {refusal}", database.name)))
    });
    let others = wrong_urls(plan).chain(wrong_shards(plan)).chain(sql_for_nobody(products, plan));
    let others = others.chain(unpromotable(catalog, plan));
    let others = others.chain(check_members(products, plan, design, memory));
    databases.chain(beside).chain(others).collect()
}

/// A variant for each other database that jobs of the plan have, with that database.
fn with_other_database(plan: &Plan) -> impl Iterator<Item = (&Variant, &Database)> {
    let mut seen = HashSet::new();
    plan.variants.iter().filter_map(move |variant| {
        let other = variant.other_database.as_ref()?;
        seen.insert(Arc::as_ptr(other)).then_some((variant, &**other))
    })
}

/// A variant for each private server that the plan has, with its product.
fn with_own_database(plan: &Plan) -> impl Iterator<Item = (&Variant, &str)> {
    let mut seen = HashSet::new();
    plan.variants.iter().filter_map(move |variant| {
        let Product::Private(name) = &variant.database.product else { return None };
        // Variants that change nothing of a database share it.
        seen.insert(Arc::as_ptr(&variant.database)).then_some((variant, name.as_str()))
    })
}

/// Variants with shards that are to do what Dyno does at one server only, with the reason.
fn wrong_shards(plan: &Plan) -> impl Iterator<Item = Refused> {
    let has_shards = |variant: &&Variant| variant.database.shards > 0;
    plan.variants.iter().filter(has_shards).filter_map(|variant| {
        // Such steps make indexes, and wait for what one server has deferred.
        let has_own_steps = plan.steps.iter().any(|step| matches!(step.load, LoadLevel::Own(_)));
        let what = match (variant.job(), plan.run_off) {
            (Some(job), _) => format!("the job `{}`", job.name),
            (None, Some(_)) => "`run_off`".to_owned(),
            (None, None) if has_own_steps => {
                format!(
                    "the workload `{}`, which defines its own steps,",
                    variant.workload.workload
                )
            }
            (None, None) => return None,
        };
        let why =
            format!("{what} works with one server only, and cannot be combined with `shards`");
        Some((variant.name.clone(), why))
    })
}

fn wrong_urls(plan: &Plan) -> impl Iterator<Item = Refused> {
    let reason = |variant: &Variant| {
        // A password that is still to be put in is no mistake.
        let mut urls = variant.database.urls().filter(|url| !url.contains("${"));
        let why = urls.find_map(|url| endpoint(variant, url).err())?.0;
        Some((variant.name.clone(), why))
    };
    plan.variants.iter().filter_map(reason)
}

fn sql_for_nobody(products: &Products, plan: &Plan) -> Vec<Refused> {
    let reason = |variant: &Variant| Some((variant.name.clone(), no_sql(products, variant)?));
    plan.variants.iter().filter_map(reason).collect()
}

fn no_sql(products: &Products, variant: &Variant) -> Option<String> {
    let job = variant.job()?;
    let is_sql = !matches!(job.work, JobWork::Command { .. });
    let Product::Private(name) = &variant.database.product else { return None };
    let spec = &products.find(name)?.spec;
    let is_refused = spec.dialect.is_none() || spec.is_simulated;
    let asks = is_sql || !job.before.is_empty() || job.check.is_some();
    (asks && is_refused)
        .then(|| format!("the job `{}` sends SQL, which {name} does not understand", job.name))
}
