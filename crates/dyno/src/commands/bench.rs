//! `dyno bench`: one trial without a study file.

mod place;
mod result;
mod search;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use dyno_lab::RunOrder;
use dyno_record::{Environment, EventKind, Run, TrialOutcome, TrialSummary, read_run};
use dyno_study::{
    Arrivals, CLIENTS_MAX, Database, Design, Frame, LoadLevel, Order, OwnLoad, Product, Search,
    Sought, Study, WorkloadChoice,
};
use dyno_units::{ByteCount, Nanoseconds, Seed, SettingValue, SteppedRate};
use dyno_workload::catalog::WorkloadSpec;

use self::place::Place;
use crate::commands::report;
use crate::metrics::Metrics;
use crate::progress::{self, Progress};
use crate::{End, lab, secrets, terminal, vocabulary};

/// The subcommand, with a subcommand of its own for each workload, so that `--help` tells the
/// workload's options.
pub(crate) fn command() -> Command {
    Command::new("bench")
        .about("Run one trial of a workload without a study file")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand_value_name("WORKLOAD")
        .subcommand_help_heading("Workloads")
        .subcommands(dyno_workload::catalog::workloads().iter().map(workload_command))
}

fn workload_command(workload: &WorkloadSpec) -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let mut command = Command::new(workload.name)
        .about(workload.summary)
        .arg(
            option(
                "on",
                "DATABASE",
                "sqlite, mariadb, postgresql, simulated, null-mysql, null-postgresql, or the URL of a server that runs",
            )
            .required(true),
        )
        .args(load_arguments())
        .arg(option("duration", "TIME", "Measured time").default_value("10s"))
        .arg(option(
            "until-steady",
            "TIME",
            "Go on until throughput has been steady for --duration, at most this long",
        ))
        .arg(option("warm-up", "TIME", "Warm-up before it").default_value("1s"))
        .arg(option("run-off", "TIME", "Watch the debt being paid after the load, at most so long"))
        .arg(probes_off())
        .arg(option("statement-timeout", "TIME", "Time limit of a statement").default_value("60s"))
        .arg(option("retries", "N", "Retries after a deadlock or the like").default_value("3"))
        .arg(option("workers", "N", "Load generator threads [default: one for each CPU]"))
        .arg(option("engine", "ENGINE", "Storage engine, where the product has several"))
        .arg(option("programs", "FOLDER", "Folder with the server's programs"))
        .arg(
            option("setting", "NAME=VALUE", "A setting of the private server; may be given again")
                .action(ArgAction::Append),
        )
        .arg(option("seed", "N", "The seed [default: 1]"))
        .arg(option("data-folder", "FOLDER", "Where a private server keeps its data"))
        .arg(option(
            "metrics",
            "ADDRESS",
            "Serve the latest numbers as OpenMetrics text on this loopback address: 127.0.0.1:9464",
        ))
        .arg(option("out", "FOLDER", "Keep the record in this folder"))
        .arg(flag(
            "allow-foreign-tables",
            "Use a catalog that holds tables which Dyno did not make",
        ))
        .arg(flag("no-reuse", "Populate, whatever data sets are kept, and keep none"))
        .arg(flag("json", "Print the result as JSON"));
    command = search::with_options(command).next_help_heading("Options of the workload");
    for spec in &workload.options {
        command = command.arg(
            Arg::new(format!("option:{}", spec.name))
                .long(spec.name.replace('_', "-"))
                .alias(spec.name)
                .value_name("VALUE")
                .default_value(spec.default)
                .help(spec.help),
        );
    }
    command
}

/// The options that say how hard the load is, but for those of a search.
fn load_arguments() -> [Arg; 3] {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    [
        option(
            "clients",
            "N",
            "Clients; with a rate the most transactions in flight [default: 1, or 64 with a rate]",
        ),
        option(
            "rate",
            "R",
            "Offered rate in transactions per second (open load): 500, 2k; or rates that hold one \
             after the other, round and round: \"500 for 10s, 2k for 5s\"",
        ),
        option(
            "arrivals",
            "WORD",
            "How arrivals are spread: poisson or constant [default: poisson]",
        )
        .requires(search::OPEN),
    ]
}

/// Runs one trial and prints what it came to.
pub(crate) fn run(matches: &ArgMatches) -> anyhow::Result<End> {
    let (name, matches) = matches.subcommand().context("a workload has to be named")?;
    let study = study(name, matches).map_err(crate::misuse)?;
    let seed = Seed(parsed(matches, "seed").map_err(crate::misuse)?.unwrap_or(1));
    let plan = dyno_study::plan(&study, seed);
    let lab = lab::make(study.design.data_folder.as_ref().map(Path::new))?;
    let manifest =
        dyno_lab::make_manifest(&plan, &study, "", &lab.environment, lab.clock.unix_millis())?;
    let record = Place::choose(text(matches, "out"), &lab)?;
    let order = RunOrder {
        plan: &plan,
        design: &study.design,
        manifest: &manifest,
        probes: &study.probes,
        decide: None,
        folder: record.path().to_owned(),
    };
    let metrics = Metrics::from_option(text(matches, "metrics"))?;
    let mut progress = Progress::new(&plan, &lab);
    let mut has_begun = false;
    let end = dyno_lab::run(&lab, &order, &mut |event| {
        has_begun |= matches!(event.kind, EventKind::PhaseBegan { .. });
        metrics.iter().for_each(|metrics| metrics.hear(event));
        progress.hear(event);
    });
    progress.close();
    let end = end?;
    if end.interrupted {
        return Ok(End::Interrupted);
    }
    if end.kept > 0 {
        terminal::say(&format!(
            "nothing was measured: {} holds this very trial already, and this is its result; \
             another --out measures again",
            record.path().display()
        ));
    }
    let run = read_run(record.path())?;
    let Some(trial) = run.trials.first() else { bail!("the trial left no summary") };
    if let TrialOutcome::Failed { message, server_log } = &trial.outcome {
        tell_log(server_log);
        if has_begun {
            tell_measured(&record, &run, trial, &lab.environment)?;
        }
        bail!("the trial failed: {message}");
    }
    let result = result::of(&run, trial, &lab.environment)?;
    if matches.get_flag("json") {
        terminal::out(&serde_json::to_string_pretty(&result)?);
    } else {
        terminal::out(&result::told(&result));
        if record.is_named() {
            terminal::out(&report::write_all(record.path(), lab.clock.unix_millis())?);
        }
    }
    Ok(End::Good)
}

/// The end of a server's log, where more of it is known than was told when the trial failed.
fn tell_log(server_log: &[String]) {
    if server_log.len() > progress::LOG_LINES {
        server_log.iter().for_each(|line| terminal::say(&format!("  server log: {line}")));
    }
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
    let spec = dyno_workload::catalog::find(workload).context("there is no such workload")?;
    let mut options = BTreeMap::new();
    for option in &spec.options {
        if let Some(value) = text(matches, &format!("option:{}", option.name)) {
            dyno_workload::options::check_kind(option, value)?;
            options.insert(option.name.to_owned(), value.clone());
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
        title: format!("{workload} on {}", dyno_study::redact_urls(on(matches))),
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

fn probes_off() -> Arg {
    Arg::new("probes-off")
        .long("probes-off")
        .value_name("PROBE")
        .help("A probe that is not read; may be given again")
        .action(ArgAction::Append)
        .value_parser(clap::builder::PossibleValuesParser::new(dyno_study::PROBES))
}

/// Names of the probes that are not read.
fn off(matches: &ArgMatches) -> Vec<&'static str> {
    let given: Vec<&String> = matches.get_many("probes-off").into_iter().flatten().collect();
    let is_given = |name: &&&str| given.iter().any(|given| given.as_str() == **name);
    dyno_study::PROBES.iter().filter(is_given).copied().collect()
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
    rules.check(options, product).map_err(anyhow::Error::msg)?;
    rules.check_load(options, load.is_open()).map_err(anyhow::Error::msg)?;
    let clients = match &load {
        // How many there will be is what is sought.
        LoadLevel::Search(Search { sought: Sought::Clients { .. }, .. }) => 1,
        load => load.clients(),
    };
    let frame = Frame { clients, duration: duration(matches, "duration")? };
    let steps = rules.steps(options, &frame).map_err(anyhow::Error::msg)?;
    if steps.is_empty() {
        return Ok(vec![load]);
    }
    if !matches!(load, LoadLevel::Closed { .. }) {
        bail!("the steps of {workload} are its own: give only --clients, no rate and no search");
    }
    Ok(steps.into_iter().map(|step| LoadLevel::Own(OwnLoad::new(frame, step))).collect())
}

fn load(matches: &ArgMatches) -> anyhow::Result<LoadLevel> {
    let clients = parsed::<u64>(matches, "clients")?;
    match clients {
        Some(0) => bail!("--clients: at least one client is needed"),
        Some(clients) if clients > CLIENTS_MAX => {
            bail!("--clients: {clients} are more than {CLIENTS_MAX}")
        }
        _ => {}
    }
    let arrivals = match text(matches, "arrivals").map(String::as_str) {
        None | Some("poisson") => Arrivals::Poisson,
        Some("constant") => Arrivals::Constant,
        Some(other) => bail!("--arrivals: `{other}` is neither poisson nor constant"),
    };
    if let Some(search) = search::load(matches, clients, arrivals)? {
        return Ok(search);
    }
    let Some(rate) = text(matches, "rate") else {
        return Ok(LoadLevel::Closed { clients: clients.unwrap_or(1) });
    };
    let clients = clients.unwrap_or(64);
    if rate.contains("for") {
        let rate: SteppedRate = rate.parse().context("--rate")?;
        let (once, duration) = (rate.length(), duration(matches, "duration")?);
        if once > duration {
            bail!("--duration: {duration} is too short for --rate, whose rates once take {once}");
        }
        return Ok(LoadLevel::Stepped { rate, arrivals, clients });
    }
    Ok(LoadLevel::Open { rate: steady_rate(rate)?, arrivals, clients })
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
        settings.insert(name.to_owned(), setting_value(value));
    }
    let product = if on.contains("://") {
        if !settings.is_empty() {
            bail!("--setting is for private servers; Dyno does not change one that runs already");
        }
        for name in ["engine", "programs", "data-folder"] {
            if text(matches, name).is_some() {
                let url = dyno_study::redact_urls(on);
                bail!("--{name} is for servers that Dyno starts, and {url} runs already");
            }
        }
        Product::Url(secrets::expand(on)?)
    } else {
        let products = dyno_lab::products();
        if !products.iter().any(|product| product.name == on) {
            let names: Vec<&str> = products.iter().map(|product| product.name).collect();
            let on = dyno_study::redact_url(on);
            bail!("--on: there is no product `{on}`; there are {}, or a URL", names.join(", "));
        }
        Product::Private(on.to_owned())
    };
    Ok(Database {
        name: dyno_study::redact_urls(on),
        product,
        version: None,
        engine: text(matches, "engine").cloned(),
        programs: text(matches, "programs").cloned(),
        settings,
        allow_foreign_tables: matches.get_flag("allow-foreign-tables"),
        price_per_hour: None,
    })
}

/// Reads a setting as a study file would: `25%` of memory, `1GiB`, a number, or text.
pub(crate) fn setting_value(text: &str) -> SettingValue {
    let is_size = text.ends_with('B') && text.starts_with(|c: char| c.is_ascii_digit());
    if let Ok(percent) = dyno_units::parse_percentage(text) {
        SettingValue::PercentOfMemory(percent)
    } else if let Some(bytes) = text.parse::<ByteCount>().ok().filter(|_| is_size) {
        SettingValue::Bytes(bytes)
    } else if let Ok(number) = text.parse() {
        SettingValue::Integer(number)
    } else {
        SettingValue::Text(text.to_owned())
    }
}
