//! What the record says of the run before its first trial.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_model::{Load, Role, WorkloadStep};
use dyno_record::{
    Environment, FORMAT, LevelRecord, Manifest, OwnStepRecord, Price, RequirementRecord,
    RoleRecord, SearchRecord, StepRecord, StoppingRecord, TrialPlan, VariantRecord,
};
use dyno_study::plan::{PLAN_FORMAT, order_word};
use dyno_study::{
    Behind, Cluster, DataOrigin, Database, Design, LoadLevel, Plan, PlannedStep, ProbeSource,
    Product, Requirement, Search, Sought, Study, Variant,
};
use dyno_units::{
    ByteCount, Nanoseconds, SettingValue, redact_command, redact_secrets, redact_setting,
};
use dyno_workload::Workload;
use dyno_workload::catalog::Catalog;

/// FNV-1a, 64 bits, as 16 hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// A digest of the plan's canonical text, behind the format of that text.
fn fingerprint(plan: &Plan, study: &Study) -> String {
    let text = dyno_study::plan::canonical_text(plan, study);
    format!("plan{PLAN_FORMAT}-{}", digest(text.as_bytes()))
}

/// The name under which a setting that is a share of the memory is kept as the study has it.
fn share_key(setting: &str) -> String {
    format!("setting.{setting}")
}

/// What all trials are run with besides variants, steps and [`design_record`], in words: a run that cannot
/// continue because one of them changed names it.
fn conditions(plan: &Plan, study: &Study) -> BTreeMap<String, String> {
    let mut conditions = BTreeMap::from([("rest".to_owned(), plan.rest.to_string())]);
    if let Some(limit) = plan.run_off {
        conditions.insert("run_off".to_owned(), limit.to_string());
    }
    if plan.drop_caches {
        conditions.insert("drop_caches".to_owned(), "true".to_owned());
    }
    if !study.design.probes_off.is_empty() {
        conditions.insert("probes_off".to_owned(), study.design.probes_off.join(", "));
    }
    for probe in &study.probes {
        let source = match &probe.source {
            ProbeSource::Command(words) => format!("command {}", redact_command(words).join("\0")),
            ProbeSource::Sql(sql) => format!("sql {}", redact_secrets(sql)),
        };
        // Without secrets, because a digest of a weak password can be guessed.
        let text = format!("{source}\0{}\0{}", probe.every, probe.databases.join("\0"));
        conditions.insert(format!("probe.{}", probe.name), digest(text.as_bytes()));
    }
    conditions
}

/// Makes the manifest of a run. `source` is the study's text; passwords in URLs are taken out.
pub fn make_manifest(
    catalog: &Catalog,
    plan: &Plan,
    (study, source): (&Study, &str),
    environment: &Environment,
    created_unix_ms: u64,
) -> anyhow::Result<Manifest> {
    let design = &study.design;
    let memory = ByteCount(environment.memory_bytes);
    let own = match plan.variants.first() {
        Some(first) => own_records(catalog, plan, first)?,
        None => Vec::new(),
    };
    let mut variants = Vec::new();
    for variant in &plan.variants {
        let mut record = variant_record(catalog, plan, variant, memory)?;
        let steps = plan.steps.iter().zip(&own).zip(own_records(catalog, plan, variant)?);
        let other = steps.filter(|((_, first), own)| *first != own);
        record.own_steps = other.map(|((step, _), own)| (step.name.clone(), own)).collect();
        variants.push(record);
    }
    Ok(Manifest {
        stopping: design.repetitions_min.map(|repetitions_min| StoppingRecord {
            repetitions_min,
            repetitions_max: design.repetitions,
        }),
        voiding: crate::voiding::rule(design),
        requirements: design.requirements.iter().map(requirement_record).collect(),
        questions: crate::question::questions(study),
        seed: plan.seed.0,
        threshold: design.threshold,
        order: order_word(design.order).to_owned(),
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
        design: design_record(design),
        conditions: conditions(plan, study),
        study_source: redact_secrets(source),
        format: FORMAT,
        dyno: env!("CARGO_PKG_VERSION").to_owned(),
        title: plan.title.clone(),
        fingerprint: fingerprint(plan, study),
        created_unix_ms,
        environment: environment.clone(),
        extensions: Vec::new(),
    })
}

fn requirement_record(requirement: &Requirement) -> RequirementRecord {
    RequirementRecord {
        text: requirement.to_string(),
        measure: requirement.measure().to_owned(),
        is_least: Some(requirement.is_least()),
        bound: requirement.bound(),
        is_in_own_unit: requirement.is_in_own_unit(),
    }
}

fn listed(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<String>>().join(",")
}

/// What all trials are run with and neither variants nor steps tell.
fn design_record(design: &Design) -> BTreeMap<String, String> {
    let cpus = |cpus: &[u32]| if cpus.is_empty() { "all".to_owned() } else { listed(cpus) };
    let workers = design.workers.map_or_else(|| "auto".to_owned(), |workers| workers.to_string());
    let told = [
        ("statement_timeout", design.statement_timeout.to_string()),
        ("retries", design.retries.to_string()),
        ("workers", workers),
        ("generator_cpus", cpus(&design.generator_cpus)),
        ("server_cpus", cpus(&design.server_cpus)),
    ];
    let generators = design.generators.as_ref().map(|pool| {
        let reach = redact_secrets(&pool.reach_in_words());
        ("generators", format!("{} ({reach})", pool.names.join(", ")))
    });
    let hosts = design.server_hosts.iter().chain(&design.trial_hosts).map(|pool| {
        let reach = redact_secrets(&pool.reach_in_words());
        (format!("host.{}", pool.name), format!("{} ({reach})", pool.names.join(", ")))
    });
    let told = told.into_iter().chain(generators);
    told.map(|(name, value)| (name.to_owned(), value)).chain(hosts).collect()
}

fn variant_record(
    catalog: &Catalog,
    plan: &Plan,
    variant: &Variant,
    memory: ByteCount,
) -> anyhow::Result<VariantRecord> {
    let workload = plan_workload(catalog, plan, variant)?;
    let is_here = variant.database.on.is_none() && variant.database.trials_on.is_none();
    let mut settings: BTreeMap<String, String> = variant
        .database
        .settings
        .iter()
        .map(|(name, value)| {
            // A share of another machine's memory is resolved there.
            let value = if is_here { value.resolve(memory).to_string() } else { value.to_string() };
            (name.clone(), redact_setting(name, &value))
        })
        .collect();
    if let Some(engine) = &variant.database.engine {
        settings.insert("engine".to_owned(), engine.clone());
    }
    Ok(VariantRecord {
        asked: asked(variant),
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
            Product::Url(url) => redact_secrets(url),
        },
        settings,
        workload: variant.workload.workload.clone(),
        options: workload.options().into_iter().collect(),
        own_steps: BTreeMap::new(),
    })
}

/// What a study asks of a variant beside what the record keeps by itself: of its database, and of tables of
/// further kinds.
fn asked(variant: &Variant) -> BTreeMap<String, String> {
    let Database {
        version,
        programs,
        from,
        image,
        settings,
        allow_existing_tables,
        memory,
        swap,
        cpu_weight,
        kernel,
        replicas,
        replication,
        reads_on,
        replica_settings,
        cluster,
        shards,
        shard_by,
        router_settings,
        behind,
        member_cpus,
        member_memory,
        data,
        // The volume is in the variant's tables.
        log_volume: _,
        // Whether programs were fetched for the run changes nothing that is measured.
        fetch: _,
        // What becomes of the tables afterwards changes nothing that is measured.
        keep_tables: _,
        // In the plan, without their passwords.
        more_urls: _,
        sql_servers,
        on,
        servers,
        trials_on,
        // In the record by themselves.
        name: _,
        product: _,
        engine: _,
        price_per_hour: _,
    } = &*variant.database;
    let given = [
        ("version", version.clone()),
        ("programs", programs.clone()),
        ("from", from.clone()),
        ("image", image.clone()),
        ("memory", memory.map(|memory| memory.to_string())),
        ("swap", swap.map(|swap| swap.to_string())),
        ("cpu_weight", cpu_weight.map(|weight| weight.to_string())),
        ("sql_servers", sql_servers.map(|servers| servers.to_string())),
        ("on", on.clone()),
        ("servers", servers.map(|servers| servers.to_string())),
        ("trials_on", trials_on.clone()),
        ("allow_existing_tables", allow_existing_tables.then(|| "true".to_owned())),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mut asked: BTreeMap<String, String> = given.collect();
    let further = variant.database.further_servers().enumerate();
    asked.extend(further.map(|(idx, url)| (format!("server-{}", idx + 2), redact_secrets(url))));
    let kernel = kernel.iter();
    asked.extend(kernel.map(|(name, value)| (format!("kernel.{name}"), value.clone())));
    if *replicas > 0 {
        asked.insert("replicas".to_owned(), replicas.to_string());
        asked.insert("replication".to_owned(), replication.clone());
        asked.insert("reads_on".to_owned(), reads_on.clone());
        asked.extend(asked_settings("replica_settings", replica_settings));
    }
    if let Some(Cluster { kind, nodes, load_on_all }) = cluster {
        asked.insert("cluster".to_owned(), kind.clone());
        asked.insert("nodes".to_owned(), nodes.to_string());
        asked.insert("load_on".to_owned(), if *load_on_all { "all" } else { "first" }.to_owned());
    }
    if *shards > 0 {
        asked.insert("shards".to_owned(), shards.to_string());
        asked.insert("shard_by".to_owned(), shard_by.clone());
        asked.extend(asked_settings("router_settings", router_settings));
    }
    if let Some(Behind { product, options }) = behind {
        asked.insert("behind".to_owned(), product.clone());
        let options = options.iter();
        asked.extend(options.map(|(name, value)| (format!("behind.{name}"), value.clone())));
    }
    asked.extend(asked_cpus(member_cpus));
    asked.extend(asked_settings("member_memory", member_memory));
    if *data != DataOrigin::default() {
        asked.insert("data".to_owned(), data.word().to_owned());
    }
    let shares =
        settings.iter().filter(|(_, value)| matches!(value, SettingValue::PercentOfMemory(_)));
    asked.extend(shares.map(|(name, value)| (share_key(name), value.to_string())));
    asked.extend(asked_of_tables(variant));
    asked
}

fn asked_cpus(members: &BTreeMap<String, Vec<u32>>) -> impl Iterator<Item = (String, String)> {
    members.iter().map(|(member, cpus)| (format!("member_cpus.{member}"), listed(cpus)))
}

fn asked_settings<'s>(
    key: &'s str,
    settings: &'s BTreeMap<String, SettingValue>,
) -> impl Iterator<Item = (String, String)> + 's {
    settings.iter().map(move |(name, value)| {
        (format!("{key}.{name}"), redact_setting(name, &value.to_string()))
    })
}

/// What a study asks by tables of further kinds than databases and workloads.
fn asked_of_tables(variant: &Variant) -> impl Iterator<Item = (String, String)> {
    let tables = variant.tables.iter();
    let tables = tables.filter(|table| !matches!(table.kind, "database" | "workload"));
    tables.flat_map(|table| {
        let fields = table.fields.iter().map(|(field, value)| {
            (format!("{}.{field}", table.kind), redact_setting(field, &value.to_string()))
        });
        std::iter::once((table.kind.to_owned(), table.name.clone())).chain(fields)
    })
}

/// What a variant's workload says of its own steps; none if the plan's loads are its steps.
fn own_records(
    catalog: &Catalog,
    plan: &Plan,
    variant: &Variant,
) -> anyhow::Result<Vec<OwnStepRecord>> {
    if !plan.steps.iter().any(|step| matches!(step.load, LoadLevel::Own(_))) {
        return Ok(Vec::new());
    }
    let workload = plan_workload(catalog, plan, variant)?;
    Ok(workload.steps().iter().map(own_record).collect())
}

fn own_record(step: &WorkloadStep) -> OwnStepRecord {
    OwnStepRecord {
        roles: step.roles.iter().map(role_record).collect(),
        ends_by_quota: step.ends_by_quota(),
        settle_s: step.settle.as_secs_f64(),
    }
}

fn role_record(role: &Role) -> RoleRecord {
    RoleRecord {
        name: role.name.clone().into_owned(),
        clients: role.clients as u64,
        pacing: role.pacing.word().to_owned(),
        rate: role.pacing.rate(),
        quota: role.quota,
        kinds: role.kinds.iter().map(|kind| kind.clone().into_owned()).collect(),
    }
}

fn step_record(step: &PlannedStep, own: Option<OwnStepRecord>) -> StepRecord {
    let (rate, arrivals) = match &step.load {
        LoadLevel::Given(Load::Open { rate, arrivals, .. }) => (Some(*rate), arrivals.word()),
        LoadLevel::Given(Load::Stepped { rate, arrivals, .. }) => {
            (Some(rate.mean_until(step.duration)), arrivals.word())
        }
        LoadLevel::Given(Load::Closed { .. } | Load::Roles(_)) => (None, "closed"),
        LoadLevel::Search(search) => match search.sought {
            Sought::Rate { arrivals, .. } => (None, arrivals.word()),
            Sought::Clients { .. } => (None, "closed"),
        },
        LoadLevel::Own(_) => (None, "own"),
    };
    let search = match &step.load {
        LoadLevel::Search(search) => Some(search_record(search)),
        _ => None,
    };
    StepRecord {
        own,
        stepped: match &step.load {
            LoadLevel::Given(Load::Stepped { rate, .. }) => Some(rate.to_string()),
            _ => None,
        },
        name: step.name.clone(),
        clients: if step.has_load { step.load.clients() as u64 } else { 0 },
        rate: rate.filter(|_| step.has_load),
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

/// Plans the workload of a variant. Its data follow from the run's seed alone, so that all variants
/// meet the same rows.
pub(crate) fn plan_workload(
    catalog: &Catalog,
    plan: &Plan,
    variant: &Variant,
) -> anyhow::Result<Arc<dyn Workload>> {
    let choice = &variant.workload;
    let spec = catalog
        .find(&choice.workload)
        .ok_or_else(|| anyhow::anyhow!("there is no workload `{}`", choice.workload))?;
    let workload = spec.plan(&choice.options, plan.step_request(), plan.seed.derive("data", 0))?;
    let promotes = variant.fault().is_some_and(|fault| fault.promotes);
    Ok(match promotes {
        true => Arc::clone(&workload).noting_commits().unwrap_or(workload),
        false => workload,
    })
}
