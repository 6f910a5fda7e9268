//! The record before the first trial.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use dyno_model::{Load, Role, WorkloadStep};
use dyno_record::{
    Digest, Environment, FORMAT, Manifest, OwnStepRecord, RequirementRecord, RoleRecord,
    SearchRecord, StepRecord, StoppingRecord, VariantRecord,
};
use dyno_study::plan::{PLAN_FORMAT, measured_fields, order_word};
use dyno_study::{
    Cluster, Database, Design, FieldValue, LoadLevel, Plan, PlannedStep, ProbeSource, Product,
    Requirement, Search, Sought, Study, Variant,
};
use dyno_units::{
    ByteCount, Nanoseconds, SettingValue, redact_command, redact_secrets, redact_setting,
};
use dyno_workload::Workload;
use dyno_workload::catalog::Catalog;

/// A digest of the plan's canonical text, behind the format of that text.
fn fingerprint(plan: &Plan, study: &Study) -> String {
    let text = dyno_study::plan::canonical_text(plan, study);
    format!("plan{PLAN_FORMAT}-{}", Digest::of(text.as_bytes()))
}

/// Conditions of all trials besides variants, steps and [`design_record`], in words: a run that cannot
/// continue because one changed names it.
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
        conditions.insert(format!("probe.{}", probe.name), Digest::of(text.as_bytes()));
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
) -> Result<Manifest> {
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
    let steps = plan.steps.iter().enumerate();
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
        steps: steps.map(|(nth, step)| step_record(step, own.get(nth).cloned())).collect(),
        trials: plan.trials.clone(),
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
) -> Result<VariantRecord> {
    let workload = plan_workload(catalog, plan, variant)?;
    let is_here = variant.database.on.is_none() && variant.database.trials_on.is_none();
    let settings = variant.database.settings.iter().map(|(name, value)| {
        // A share of another machine's memory is resolved there.
        let value = if is_here { value.resolve(memory).to_string() } else { value.to_string() };
        (name.clone(), redact_setting(name, &value))
    });
    let mut settings: BTreeMap<String, String> = settings.collect();
    if let Some(engine) = &variant.database.engine {
        settings.insert("engine".to_owned(), engine.clone());
    }
    Ok(VariantRecord {
        asked: asked(variant),
        price_per_hour: variant.database.price_per_hour.clone(),
        name: variant.name.clone(),
        levels: variant.levels.clone(),
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

fn asked(variant: &Variant) -> BTreeMap<String, String> {
    let database = &*variant.database;
    let (has_replicas, has_shards) = (database.replicas > 0, database.shards > 0);
    let is_asked = |field: &str| match field.split('.').next().unwrap_or_default() {
        // In the record by themselves, in the variant's tables, or in the plan without their passwords.
        "product" | "engine" | "log_volume" | "url" | "more_urls" => false,
        "replication" | "reads_on" | "replica_settings" => has_replicas,
        "shard_by" | "router_settings" => has_shards,
        _ => true,
    };
    let table = variant.tables.iter().filter(|table| table.kind == "database");
    let fields = table.flat_map(|table| measured_fields(table));
    let fields = fields.filter(|(field, _)| is_asked(field));
    let fields = fields.filter_map(|(field, value)| asked_field(database, field, value));
    let mut asked: BTreeMap<String, String> = fields.collect();
    let further = database.further_servers().enumerate();
    asked.extend(further.map(|(idx, url)| (format!("server-{}", idx + 2), redact_secrets(url))));
    let mut usual = |key: &str, value: String| drop(asked.insert(key.to_owned(), value));
    if has_replicas {
        usual("replication", database.replication.clone());
        usual("reads_on", database.reads_on.clone());
    }
    if let Some(Cluster { nodes, load_on_all, .. }) = &database.cluster {
        usual("nodes", nodes.to_string());
        usual("load_on", if *load_on_all { "all" } else { "first" }.to_owned());
    }
    if has_shards {
        usual("shard_by", database.shard_by.clone());
    }
    asked.extend(asked_of_tables(variant));
    asked
}

/// A field of a database as the record has it; of its settings only those that are shares of the memory.
fn asked_field(database: &Database, field: &str, value: &FieldValue) -> Option<(String, String)> {
    let (map, name) = field.split_once('.').unwrap_or((field, ""));
    let text = match (map, value) {
        ("settings", FieldValue::Setting(share @ SettingValue::PercentOfMemory(_))) => {
            return Some((format!("setting.{name}"), share.to_string()));
        }
        ("settings", _) => return None,
        ("kernel", _) => database.kernel.get(name)?.clone(),
        ("member_cpus", _) => listed(database.member_cpus.get(name)?),
        (_, FieldValue::Setting(value)) => redact_setting(name, &value.to_string()),
        (_, FieldValue::Size(bytes)) => bytes.to_string(),
        _ => value.to_string(),
    };
    Some((if field == "behind.product" { map } else { field }.to_owned(), text))
}

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
fn own_records(catalog: &Catalog, plan: &Plan, variant: &Variant) -> Result<Vec<OwnStepRecord>> {
    if !plan.steps.iter().any(|step| matches!(step.load, LoadLevel::Own(_))) {
        return Ok(Vec::new());
    }
    let workload = plan_workload(catalog, plan, variant)?;
    let own = |step: &WorkloadStep| OwnStepRecord {
        roles: step.roles.iter().map(role_record).collect(),
        ends_by_quota: step.ends_by_quota(),
        settle_s: step.settle.as_secs_f64(),
    };
    Ok(workload.steps().iter().map(own).collect())
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

/// Data follow from the run's seed alone, so that all variants have the same rows.
pub(crate) fn plan_workload(
    catalog: &Catalog,
    plan: &Plan,
    variant: &Variant,
) -> Result<Arc<dyn Workload>> {
    let choice = &variant.workload;
    let spec = catalog.find(&choice.workload);
    let spec = spec.ok_or_else(|| anyhow::anyhow!("there is no workload `{}`", choice.workload))?;
    let workload = spec.plan(&choice.options, plan.step_request(), plan.seed.derive("data", 0))?;
    let promotes = variant.fault().is_some_and(|fault| fault.promotes);
    Ok(if promotes { Arc::clone(&workload).noting_commits().unwrap_or(workload) } else { workload })
}

#[cfg(test)]
mod tests {
    use dyno_model::option::any_count;
    use dyno_study::{ProductWord, RouterWord, Vocabulary, WorkloadWord};

    use super::*;

    fn vocabulary() -> Vocabulary {
        let product = ProductWord {
            name: "server".to_owned(),
            summary: String::new(),
            engines: vec!["fast".to_owned()],
            is_embedded: false,
            replicates: true,
            cluster: Some("galera".to_owned()),
            has_shards: true,
            has_images: true,
            can_be_open: true,
            has_socket: false,
            confused_names: Vec::new(),
        };
        let router = RouterWord {
            name: "pgbouncer".to_owned(),
            member: "pooler".to_owned(),
            fronts: vec!["server".to_owned()],
            options: vec![any_count("pool_size", "20").help("How many.")],
            confused_names: Vec::new(),
        };
        let workload = WorkloadWord {
            name: "tpcb".to_owned(),
            summary: String::new(),
            options: Vec::new(),
            rules: None,
        };
        Vocabulary {
            products: vec![product],
            routers: vec![router],
            sources: vec!["maven".to_owned()],
            workloads: vec![workload],
            ..Vocabulary::default()
        }
    }

    #[track_caller]
    fn check(keys: &str, expected: &[(&str, &str)]) {
        let hosts = "[host.sql]\nnames = ['a', 'b', 'c']\n";
        let source = format!(
            "title = 'x'\n[database.a]\n{keys}\n[workload.tpcb]\n{hosts}[design]\nclients = 4\n"
        );
        let study = dyno_study::parse(&source, &vocabulary()).expect("the study is right");
        let asked = asked(&study.variants[0]);
        let asked: Vec<(&str, &str)> =
            asked.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(asked, expected, "{keys}");
    }

    #[test]
    fn what_a_study_asks_of_a_database_is_in_the_record() {
        check("product = 'server'", &[]);
        check(
            "product = 'server'\nengine = 'fast'\nversion = '1'\nprograms = '/x'\nfetch = true\n\
             memory = '1500MiB'\nswap = '0'\ncpu_weight = 50\ndata = 'restored'\n\
             price_per_hour = '1 USD'\nkernel = { 'vm.swappiness' = 1, 'vm.dirty_bytes' = '1GiB' }\n\
             settings = { a = '25%', b = '1GiB', c = 'x' }",
            &[
                ("cpu_weight", "50"),
                ("data", "restored"),
                ("kernel.vm.dirty_bytes", "1073741824"),
                ("kernel.vm.swappiness", "1"),
                ("memory", "1.46 GiB"),
                ("programs", "/x"),
                ("setting.a", "25%"),
                ("swap", "0 B"),
                ("version", "1"),
            ],
        );
        check("product = 'server'\nfrom = 'maven'\ndata = 'copied'", &[("from", "maven")]);
        check("product = 'server'\nimage = 'a:1'", &[("image", "a:1")]);
        check("product = 'server'\ntrials_on = 'sql'", &[("trials_on", "sql")]);
        let url = "url = 'pg://u:secret@h/d'\nmore_urls = ['pg://u:secret@i/d', 'pg://u@j/d']";
        check(
            &format!("{url}\nsql_servers = 2\nallow_existing_tables = true\nkeep_tables = true"),
            &[
                ("allow_existing_tables", "true"),
                ("server-2", "pg://u:***@i/d"),
                ("sql_servers", "2"),
            ],
        );
    }

    #[test]
    fn members_that_a_study_asks_for_are_in_the_record_with_their_defaults() {
        check(
            "product = 'server'\nreplicas = 2\nreplica_settings = { x = '1GiB', password = 'p' }\n\
             member_cpus = { replica-1 = '2-3,1' }\nmember_memory = { replica-1 = '1GiB' }",
            &[
                ("member_cpus.replica-1", "1,2,3"),
                ("member_memory.replica-1", "1 GiB"),
                ("reads_on", "primary"),
                ("replica_settings.password", "***"),
                ("replica_settings.x", "1 GiB"),
                ("replicas", "2"),
                ("replication", "asynchronous"),
            ],
        );
        check(
            "product = 'server'\non = 'sql'\nreplicas = 1\nreplication = 'synchronous'",
            &[
                ("on", "sql"),
                ("reads_on", "primary"),
                ("replicas", "1"),
                ("replication", "synchronous"),
            ],
        );
        let none = "replicas = 0\nreplication = 'synchronous'\nreplica_settings = { x = 1 }";
        check(&format!("product = 'server'\n{none}\nshards = 0\nshard_by = 'key'"), &[]);
        check(
            "product = 'server'\ncluster = 'galera'\nnodes = 3",
            &[("cluster", "galera"), ("load_on", "first"), ("nodes", "3")],
        );
        check(
            "product = 'server'\ncluster = 'galera'\nnodes = 4\nload_on = 'all'",
            &[("cluster", "galera"), ("load_on", "all"), ("nodes", "4")],
        );
        check(
            "product = 'server'\nshards = 2\nrouter_settings = { x = 1 }",
            &[("router_settings.x", "1"), ("shard_by", "table"), ("shards", "2")],
        );
        check(
            "product = 'server'\nbehind = { product = 'pgbouncer', pool_size = '2k' }",
            &[("behind", "pgbouncer"), ("behind.pool_size", "2000")],
        );
    }
}
