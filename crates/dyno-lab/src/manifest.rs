//! What the record says of the run before its first trial.

use std::collections::BTreeMap;

use dyno_record::{
    Environment, FORMAT, LevelRecord, Manifest, OwnStepRecord, Price, RoleRecord, SearchRecord,
    StepRecord, StoppingRecord, TrialPlan, VariantRecord,
};
use dyno_study::{
    Arrivals, Design, Frame, LoadLevel, Order, Plan, PlannedStep, Product, Search, Sought, Study,
    Variant,
};
use dyno_units::{ByteCount, Nanoseconds, Seed};
use dyno_workload::{OwnStep, Pacing, Role, StepFrame, Workload};

/// Digest of what decides whether a run may be resumed: plan, seed, what the trials are run with,
/// and what the study itself has read beside them. FNV-1a, 64 bits; not a secret's hash, because
/// passwords in URLs are taken out first.
pub fn fingerprint(plan: &Plan, study: &Study) -> String {
    let design = &study.design;
    let mut text = format!(
        "{plan:?} {:?} {} {:?} {:?} {:?}",
        design.statement_timeout,
        design.retries,
        design.workers,
        design.generator_cpus,
        design.server_cpus
    );
    // Runs without such probes keep the digest that they had before these were part of it.
    if !study.probes.is_empty() {
        text += &format!(" {:?}", study.probes);
    }
    if !design.probes_off.is_empty() {
        text += &format!(" without {:?}", design.probes_off);
    }
    let text = dyno_study::redact_urls(&text);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// Makes the manifest of a run. `source` is the study's text; passwords in URLs are taken out.
pub fn make_manifest(
    plan: &Plan,
    study: &Study,
    source: &str,
    environment: &Environment,
    created_unix_ms: u64,
) -> anyhow::Result<Manifest> {
    let design = &study.design;
    let memory = ByteCount(environment.memory_bytes);
    let own = match plan.variants.first() {
        Some(first) => own_records(plan, first)?,
        None => Vec::new(),
    };
    let mut variants = Vec::new();
    for variant in &plan.variants {
        let mut record = variant_record(variant, memory, plan.seed)?;
        let steps = plan.steps.iter().zip(&own).zip(own_records(plan, variant)?);
        let other = steps.filter(|((_, first), own)| *first != own);
        record.own_steps = other.map(|((step, _), own)| (step.name.clone(), own)).collect();
        variants.push(record);
    }
    Ok(Manifest {
        stopping: design.repetitions_min.map(|repetitions_min| StoppingRecord {
            repetitions_min,
            repetitions_max: design.repetitions,
        }),
        format: FORMAT,
        dyno: env!("CARGO_PKG_VERSION").to_owned(),
        title: plan.title.clone(),
        fingerprint: fingerprint(plan, study),
        seed: plan.seed.0,
        created_unix_ms,
        threshold: design.threshold,
        order: match design.order {
            Order::Interleaved => "interleaved".to_owned(),
            Order::Sequential => "sequential".to_owned(),
        },
        variants,
        steps: plan
            .steps
            .iter()
            .enumerate()
            .map(|(index, step)| step_record(step, own.get(index).cloned()))
            .collect(),
        trials: plan
            .trials
            .iter()
            .map(|trial| TrialPlan {
                number: trial.number,
                variant: trial.variant,
                repetition: trial.repetition,
                block: trial.block,
            })
            .collect(),
        environment: environment.clone(),
        design: design_record(design),
        study_source: dyno_study::redact_urls(source),
    })
}

/// What all trials are run with and neither variants nor steps tell.
fn design_record(design: &Design) -> BTreeMap<String, String> {
    let cpus = |cpus: &[u32]| match cpus {
        [] => "all".to_owned(),
        some => some.iter().map(u32::to_string).collect::<Vec<String>>().join(","),
    };
    let workers = design.workers.map_or_else(|| "auto".to_owned(), |workers| workers.to_string());
    let told = [
        ("statement_timeout", design.statement_timeout.to_string()),
        ("retries", design.retries.to_string()),
        ("workers", workers),
        ("generator_cpus", cpus(&design.generator_cpus)),
        ("server_cpus", cpus(&design.server_cpus)),
    ];
    told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn variant_record(
    variant: &Variant,
    memory: ByteCount,
    seed: Seed,
) -> anyhow::Result<VariantRecord> {
    let workload = make_workload(variant, seed)?;
    let mut settings: BTreeMap<String, String> = variant
        .database
        .settings
        .iter()
        .map(|(name, value)| (name.clone(), value.resolve(memory).to_string()))
        .collect();
    if let Some(engine) = &variant.database.engine {
        settings.insert("engine".to_owned(), engine.clone());
    }
    Ok(VariantRecord {
        price_per_hour: variant
            .database
            .price_per_hour
            .as_ref()
            .map(|price| Price { amount: price.amount, currency: price.currency.clone() }),
        name: variant.name.clone(),
        levels: variant
            .levels
            .iter()
            .map(|level| LevelRecord { factor: level.factor.clone(), level: level.level.clone() })
            .collect(),
        baseline: variant.baseline,
        database: variant.database.name.clone(),
        product: match &variant.database.product {
            Product::Private(name) => name.clone(),
            Product::Url(url) => dyno_study::redact_urls(url),
        },
        settings,
        workload: variant.workload.workload.clone(),
        options: workload.options().into_iter().collect(),
        own_steps: BTreeMap::new(),
    })
}

/// What a variant's workload says of its own steps, where they are those of the plan.
fn own_records(plan: &Plan, variant: &Variant) -> anyhow::Result<Vec<OwnStepRecord>> {
    let workload = make_workload(variant, plan.seed)?;
    let steps = own_steps(plan, workload.as_ref()).map_err(anyhow::Error::msg)?;
    Ok(steps.iter().map(|step| own_record(step, workload.as_ref())).collect())
}

/// The steps that a workload defines, asked for as the plan was made; none where the plan's loads
/// are its steps. A workload that has steps of its own is asked before anything else.
pub(crate) fn own_steps(plan: &Plan, workload: &dyn Workload) -> Result<Vec<OwnStep>, String> {
    let Some(LoadLevel::Own(own)) = plan.steps.first().map(|step| &step.load) else {
        return Ok(Vec::new());
    };
    let Frame { clients, duration } = own.frame;
    workload.steps(&StepFrame { clients: clients as usize, duration })
}

fn own_record(step: &OwnStep, workload: &dyn Workload) -> OwnStepRecord {
    let record = |role: &Role| role_record(role, workload.kinds_of_role(role.name));
    OwnStepRecord {
        roles: step.roles.iter().map(record).collect(),
        ends_by_quota: step.has_quota(),
        settle_s: step.settle.as_secs_f64(),
    }
}

fn role_record(role: &Role, kinds: &[&str]) -> RoleRecord {
    let (pacing, rate) = match role.pacing {
        Pacing::Closed => ("closed", None),
        Pacing::Constant { rate } => ("constant", Some(rate)),
        Pacing::Poisson { rate } => ("poisson", Some(rate)),
        Pacing::Bursts { per_burst } => ("bursts", Some(per_burst as f64)),
    };
    RoleRecord {
        name: role.name.to_owned(),
        clients: role.clients as u64,
        pacing: pacing.to_owned(),
        rate,
        quota: role.quota,
        kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
    }
}

fn step_record(step: &PlannedStep, own: Option<OwnStepRecord>) -> StepRecord {
    let (clients, rate, arrivals) = match &step.load {
        LoadLevel::Closed { clients } => (*clients, None, "closed"),
        LoadLevel::Open { rate, arrivals, clients } => (*clients, Some(*rate), word(*arrivals)),
        LoadLevel::Stepped { rate, arrivals, clients } => {
            (*clients, Some(rate.mean_until(step.duration)), word(*arrivals))
        }
        LoadLevel::Search(search) => match search.sought {
            Sought::Rate { arrivals, clients } => (clients, None, word(arrivals)),
            Sought::Clients { most } => (most, None, "closed"),
        },
        LoadLevel::Own(own) => (own.connections, None, "own"),
    };
    let search = match &step.load {
        LoadLevel::Search(search) => Some(search_record(search)),
        _ => None,
    };
    StepRecord {
        own,
        stepped: match &step.load {
            LoadLevel::Stepped { rate, .. } => Some(rate.to_string()),
            _ => None,
        },
        name: step.name.clone(),
        clients,
        rate,
        arrivals: arrivals.to_owned(),
        warm_up_s: step.warm_up.as_secs_f64(),
        duration_s: step.duration.as_secs_f64(),
        until_steady_s: step.until_steady.map(Nanoseconds::as_secs_f64),
        search,
    }
}

fn search_record(search: &Search) -> SearchRecord {
    SearchRecord {
        sought: match search.sought {
            Sought::Rate { .. } => "rate".to_owned(),
            Sought::Clients { .. } => "clients".to_owned(),
        },
        statistic: search.limit.statistic.word().to_owned(),
        bound_us: search.limit.bound.0 as f64 / 1e3,
        limit: search.limit.to_string(),
        precision: search.precision,
    }
}

fn word(arrivals: Arrivals) -> &'static str {
    match arrivals {
        Arrivals::Constant => "constant",
        Arrivals::Poisson => "poisson",
    }
}

/// Makes the workload of a variant. Its data follow from the run's seed alone, so that all
/// variants meet the same rows.
pub(crate) fn make_workload(
    variant: &Variant,
    seed: Seed,
) -> anyhow::Result<std::sync::Arc<dyn Workload>> {
    let choice = &variant.workload;
    let spec = dyno_workload::catalog::find(&choice.workload)
        .ok_or_else(|| anyhow::anyhow!("there is no workload `{}`", choice.workload))?;
    Ok(spec.create(&choice.options, seed.derive("data", 0))?)
}
