//! `dyno bench`: one trial without a study file.

pub(crate) mod arguments;
mod place;
mod result;
mod search;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use dyno_lab::{Lab, RunEnd, RunOrder};
use dyno_model::{Arrivals, Load, StepRequest};
use dyno_record::{Environment, EventKind, Run, TrialOutcome, TrialSummary};
use dyno_study::{
    CLIENTS_MAX, Database, Design, LoadLevel, Order, OwnLoad, Product, Requirement, Study,
    WorkloadChoice,
};
use dyno_units::{Nanoseconds, Seed, SteppedRate};
use dyno_workload::catalog::Catalog;

pub(crate) use self::arguments::command;
use self::place::Place;
use crate::commands::{beforehand, report, requirements};
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::{End, hints, lab, secrets, terminal, vocabulary};

/// Runs one trial and prints what it came to.
pub(crate) fn run(matches: &ArgMatches) -> anyhow::Result<End> {
    let (name, matches) = matches.subcommand().context("a workload has to be named")?;
    let study = study(name, matches).map_err(crate::misuse)?;
    let seed = Seed(parsed(matches, "seed").map_err(crate::misuse)?.unwrap_or(1));
    let plan = dyno_study::plan(&study, seed);
    if let Some(folder) = text(matches, "out") {
        beforehand::check_place(Path::new(folder))?;
    }
    let lab = lab::make(study.design.data_folder.as_ref().map(Path::new))?;
    let manifest = dyno_lab::make_manifest(
        &lab.catalog,
        &plan,
        &study,
        "",
        &lab.environment,
        lab.clock.unix_millis(),
    )?;
    beforehand::check_settings(&lab, &plan, &study.design)?;
    let record = Place::choose(text(matches, "out"), &lab)?;
    let order = RunOrder {
        plan: &plan,
        design: &study.design,
        manifest: &manifest,
        probes: &study.probes,
        decide: None,
        retry_failed: false,
        void: None,
        folder: record.path().to_owned(),
    };
    let measured = measure(matches, &lab, &order)?;
    let end = measured.end;
    if end.interrupted {
        if let Some(search) = measured.probes.unfinished(&manifest) {
            tell_unfinished(&search, matches.get_flag("json"))?;
        }
        return Ok(End::Interrupted);
    }
    if end.kept > 0 {
        terminal::say(&format!(
            "nothing was measured: {} already holds this trial, and this is its result; to measure \
             again, choose another --out",
            record.path().display()
        ));
    }
    let run = crate::readings::read_run(record.path())?;
    let Some(trial) = run.trials.first() else { bail!("the trial left no summary") };
    if let TrialOutcome::Failed { message, server_log } = &trial.outcome {
        tell_log(server_log);
        if measured.has_begun {
            tell_measured(&record, &run, trial, &lab.environment)?;
        }
        bail!("the trial failed: {message}");
    }
    show(matches, &record, (&run, trial), &lab)?;
    if end.uncleaned > 0 {
        terminal::say("the result is valid; remove what was left behind (see above) by hand");
        return Ok(End::Bad);
    }
    match unfit(trial) {
        None => Ok(requirements::end(&report::find(&[run], None), &|_| true)),
        Some(why) => {
            terminal::say(&format!("not a usable measurement: {why}"));
            Ok(End::Bad)
        }
    }
}

/// How the run of a bench went.
struct Measured {
    end: RunEnd,
    /// Whether it came to a load.
    has_begun: bool,
    /// What its search knows.
    probes: search::Probes,
}

/// Runs the trial, with its progress and metrics.
fn measure(matches: &ArgMatches, lab: &Lab, order: &RunOrder<'_>) -> anyhow::Result<Measured> {
    let metrics = Metrics::from_option(text(matches, "metrics"))?;
    let mut progress = Progress::new(order.plan, lab);
    let mut has_begun = false;
    let mut probes = search::Probes::default();
    let end = dyno_lab::run(lab, order, &mut |event| {
        has_begun |= matches!(event.kind, EventKind::PhaseBegan { .. });
        probes.hear(&event.kind, order.manifest);
        metrics.iter().for_each(|metrics| metrics.on_event(event));
        // Why the trial failed is the error that this command ends with: once is enough.
        if !matches!(event.kind, EventKind::TrialFailed { .. }) {
            progress.on_event(event);
        }
    });
    progress.close();
    Ok(Measured { end: end?, has_begun, probes })
}

/// Prints the result; a record that the user has named gets a report.
fn show(
    matches: &ArgMatches,
    record: &Place,
    (run, trial): (&Run, &TrialSummary),
    lab: &Lab,
) -> anyhow::Result<()> {
    let result = result::of(run, trial, &lab.environment)?;
    if matches.get_flag("json") {
        terminal::out(&serde_json::to_string_pretty(&result)?);
        return Ok(());
    }
    terminal::out(&result::told(&result));
    if record.is_named() {
        terminal::out(&report::write_all(record.path(), lab.clock.unix_millis())?);
    }
    Ok(())
}

/// With a smaller share of attempts than this that did what they were to do, nothing was measured.
const DONE_LEAST: f64 = 0.1;

/// Why what a trial came to is no measurement of what was asked; none where it is one.
fn unfit(trial: &TrialSummary) -> Option<String> {
    if let Some(row) = trial.audit.iter().find(|row| !row.pass) {
        return Some(format!("the audit failed ({})", row.name));
    }
    let (mut done, mut all) = (0, 0);
    for (outcome, n) in trial.steps.iter().flat_map(|step| &step.kinds).flat_map(|k| &k.outcomes) {
        all += n;
        done += if matches!(&**outcome, "committed" | "rolled_back") { *n } else { 0 };
    }
    if all == 0 {
        return Some("no transaction ended in the measured time".to_owned());
    }
    (((done as f64) / all as f64) < DONE_LEAST)
        .then(|| format!("{} of {all} attempts failed or were refused", all - done))
}

/// What a search knew when the user stopped it.
fn tell_unfinished(search: &serde_json::Value, is_json: bool) -> anyhow::Result<()> {
    terminal::out(&match is_json {
        true => serde_json::to_string_pretty(&serde_json::json!({ "search": search }))?,
        false => search::headline(search) + &search::told(search),
    });
    Ok(())
}

/// The end of a server's log.
fn tell_log(server_log: &[String]) {
    server_log.iter().for_each(|line| terminal::say(&format!("  server log: {line}")));
}

/// Of a trial that failed under load: the steps that it had done, and where its record is.
fn tell_measured(
    record: &Place,
    run: &Run,
    trial: &TrialSummary,
    environment: &Environment,
) -> anyhow::Result<()> {
    let has_own_steps = run.manifest.steps.iter().any(|step| step.own.is_some());
    if has_own_steps && !trial.steps.is_empty() {
        terminal::say(&result::told(&result::of(run, trial, environment)?));
    }
    let kept = record.keep()?;
    terminal::say(&format!(
        "what was measured until then is kept in {}; `dyno report` and `dyno sql` read it",
        kept.display()
    ));
    Ok(())
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a String> {
    matches.get_one::<String>(name)
}

fn parsed<T: std::str::FromStr>(matches: &ArgMatches, name: &str) -> anyhow::Result<Option<T>> {
    match text(matches, name) {
        None => Ok(None),
        Some(value) => match value.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => bail!("--{name}: `{value}` is not a number"),
        },
    }
}

fn duration(matches: &ArgMatches, name: &str) -> anyhow::Result<Nanoseconds> {
    let value = text(matches, name).map_or("0", String::as_str);
    dyno_units::parse_duration(value).with_context(|| format!("--{name}"))
}

fn positive(matches: &ArgMatches, name: &str) -> anyhow::Result<Nanoseconds> {
    match duration(matches, name)? {
        Nanoseconds::ZERO => bail!("--{name}: the time must be above 0"),
        time => Ok(time),
    }
}

/// The longest time of a step that is to become steady.
fn until_steady(
    matches: &ArgMatches,
    load: Option<&LoadLevel>,
) -> anyhow::Result<Option<Nanoseconds>> {
    if text(matches, "until-steady").is_none() {
        return Ok(None);
    }
    let longest = positive(matches, "until-steady")?;
    dyno_study::check_until_steady(load, positive(matches, "duration")?, longest)
        .map_err(|wrong| anyhow::anyhow!("--until-steady: {}; {}", wrong.why, wrong.help))?;
    Ok(Some(longest))
}

fn study(workload: &str, matches: &ArgMatches) -> anyhow::Result<Study> {
    let catalog = Catalog::built_in();
    let spec = catalog.find(workload).context("there is no such workload")?;
    let mut options = BTreeMap::new();
    for option in &spec.options {
        if let Some(value) = text(matches, &format!("option:{}", option.name)) {
            option.check(value)?;
            options.insert(option.name.clone().into_owned(), value.clone());
        }
    }
    let database = database(matches)?;
    let loads = loads(matches, workload, (&options, &database.product))?;
    let has_own_steps = matches!(loads[..], [LoadLevel::Own(_), ..]);
    let until_steady = until_steady(matches, loads.first())?;
    let workers = parsed::<u32>(matches, "workers")?;
    if workers == Some(0) {
        bail!("--workers: at least one worker is needed");
    }
    Ok(Study {
        probes: Vec::new(),
        title: format!("{workload} on {}", dyno_units::redact_secrets(on(matches))),
        databases: vec![database.clone()],
        workloads: vec![WorkloadChoice {
            name: workload.to_owned(),
            workload: workload.to_owned(),
            options,
        }],
        design: Design {
            factors: Vec::new(),
            database: Some(database.name.clone()),
            workload: Some(workload.to_owned()),
            loads,
            baseline: BTreeMap::new(),
            repetitions: 1,
            repetitions_min: None,
            void_repeats: 0,
            requirements: requirements_of(matches)?,
            order: Order::Interleaved,
            seed: None,
            warm_up: match matches.value_source("warm-up") {
                Some(ValueSource::DefaultValue) if has_own_steps => Nanoseconds::ZERO,
                _ => duration(matches, "warm-up")?,
            },
            duration: positive(matches, "duration")?,
            until_steady,
            rest: Nanoseconds::ZERO,
            run_off: text(matches, "run-off").map(|_| positive(matches, "run-off")).transpose()?,
            probes_off: off(matches),
            threshold: 0.03,
            budget: None,
            statement_timeout: duration(matches, "statement-timeout")?,
            retries: parsed(matches, "retries")?.unwrap_or(3),
            workers,
            generator_cpus: Vec::new(),
            server_cpus: Vec::new(),
            reuse: !matches.get_flag("no-reuse"),
            data_folder: text(matches, "data-folder").cloned(),
        },
    })
}

/// Names of the probes that are not read.
fn off(matches: &ArgMatches) -> Vec<String> {
    let given: Vec<&String> = matches.get_many("probes-off").into_iter().flatten().collect();
    let is_given = |name: &&str| given.iter().any(|given| given == name);
    vocabulary::probes().into_iter().filter(is_given).map(str::to_owned).collect()
}

fn on(matches: &ArgMatches) -> &str {
    text(matches, "on").map_or("", String::as_str)
}

/// The load that the options name; or the steps that the workload defines itself.
fn loads(
    matches: &ArgMatches,
    workload: &str,
    (options, product): (&BTreeMap<String, String>, &Product),
) -> anyhow::Result<Vec<LoadLevel>> {
    let load = load(matches)?;
    let vocabulary = vocabulary::vocabulary();
    let word = vocabulary.workloads.iter().find(|word| word.name == workload);
    let Some(rules) = word.and_then(|word| word.rules.as_ref()) else { return Ok(vec![load]) };
    let duration = duration(matches, "duration")?;
    let request = StepRequest { clients: load.clients_least(), duration };
    let steps = rules.steps(options, request).map_err(anyhow::Error::msg)?;
    rules.check(options, request, product).map_err(anyhow::Error::msg)?;
    rules.check_load(options, request, load.is_open()).map_err(anyhow::Error::msg)?;
    if steps.is_empty() {
        return Ok(vec![load]);
    }
    if !matches!(load, LoadLevel::Given(Load::Closed { .. })) {
        bail!("{workload} defines its own steps: give only --clients, no rate and no search");
    }
    Ok(steps.into_iter().map(|step| LoadLevel::Own(OwnLoad::new(request, step))).collect())
}

/// What the result has to keep to.
fn requirements_of(matches: &ArgMatches) -> anyhow::Result<Vec<Requirement>> {
    let texts = matches.get_many::<String>("require").unwrap_or_default();
    texts.map(|text| text.parse().with_context(|| format!("--require \"{text}\""))).collect()
}

fn load(matches: &ArgMatches) -> anyhow::Result<LoadLevel> {
    let clients = parsed::<usize>(matches, "clients")?;
    match clients {
        Some(0) => bail!("--clients: at least one client is needed"),
        Some(clients) if clients as u64 > CLIENTS_MAX => {
            bail!("--clients: {clients} are more than {CLIENTS_MAX}")
        }
        _ => {}
    }
    let arrivals = match text(matches, "arrivals").map(String::as_str) {
        None => Arrivals::Poisson,
        Some(word) => Arrivals::ALL
            .into_iter()
            .find(|arrivals| arrivals.word() == word)
            .with_context(|| format!("--arrivals: `{word}` is neither poisson nor constant"))?,
    };
    if let Some(search) = search::load(matches, clients, arrivals)? {
        return Ok(search);
    }
    let Some(rate) = text(matches, "rate") else {
        return Ok(LoadLevel::Given(Load::Closed { clients: clients.unwrap_or(1) }));
    };
    let clients = clients.unwrap_or(64);
    if rate.contains("for") {
        let rate: SteppedRate = rate.parse().context("--rate")?;
        let (once, duration) = (rate.length(), duration(matches, "duration")?);
        if once > duration {
            bail!(
                "--duration: {duration} is too short for --rate: one pass through its rates takes \
                 {once}"
            );
        }
        return Ok(LoadLevel::Given(Load::Stepped { rate, arrivals, clients }));
    }
    Ok(LoadLevel::Given(Load::Open { rate: steady_rate(rate)?, arrivals, clients }))
}

/// A rate as a study takes it: a number above zero, or a count such as `2k`.
fn steady_rate(text: &str) -> anyhow::Result<f64> {
    let rate = match text.parse::<f64>() {
        Ok(rate) => rate,
        Err(_) => dyno_units::parse_count(text).context("--rate")? as f64,
    };
    if !(rate > 0.0 && rate <= SteppedRate::RATE_MOST) {
        bail!("--rate: `{text}` is not above 0 and at most {} per second", SteppedRate::RATE_MOST);
    }
    Ok(rate)
}

fn database(matches: &ArgMatches) -> anyhow::Result<Database> {
    let on = on(matches);
    let mut settings = BTreeMap::new();
    for setting in matches.get_many::<String>("setting").unwrap_or_default() {
        let Some((name, value)) = setting.split_once('=') else {
            bail!("--setting: write NAME=VALUE, not `{setting}`");
        };
        let value = dyno_study::parse_setting(value)
            .map_err(|why| anyhow::anyhow!("--setting {name}: {why}"))?;
        settings.insert(name.to_owned(), value);
    }
    let product = if on.contains("://") {
        if !settings.is_empty() {
            bail!(
                "--setting is for private servers; Dyno does not change a server that is already \
                 running"
            );
        }
        for name in ["engine", "programs", "data-folder"] {
            if text(matches, name).is_some() {
                let url = dyno_units::redact_secrets(on);
                bail!("--{name} is for servers that Dyno starts, and {url} is already running");
            }
        }
        Product::Url(secrets::expand(on)?)
    } else {
        let products = dyno_lab::products();
        if products.find(on).is_none() {
            let hint = hints::for_product(on, &products);
            bail!("--on: there is no product `{}`; {hint}", dyno_units::redact_url(on));
        }
        for name in ["allow-existing-tables", "keep-tables"] {
            if matches.get_flag(name) {
                bail!("--{name} is for a running server, given by its URL");
            }
        }
        Product::Private(on.to_owned())
    };
    Ok(Database {
        name: dyno_units::redact_secrets(on),
        product,
        version: None,
        engine: text(matches, "engine").cloned(),
        programs: text(matches, "programs").cloned(),
        settings,
        allow_existing_tables: matches.get_flag("allow-existing-tables"),
        keep_tables: matches.get_flag("keep-tables"),
        price_per_hour: None,
    })
}
