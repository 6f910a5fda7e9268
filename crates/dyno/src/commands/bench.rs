//! `dyno bench`: one trial without a study file.

mod search;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use dyno_lab::RunOrder;
use dyno_record::{
    Environment, Run, StepSummary, TrialOutcome, TrialSummary, new_histogram, read_run,
};
use dyno_study::{Arrivals, Database, Design, LoadLevel, Order, Product, Study, WorkloadChoice};
use dyno_units::{ByteCount, Nanoseconds, Seed, SettingValue};
use dyno_workload::catalog::WorkloadSpec;
use serde_json::{Value, json};

use crate::commands::report;
use crate::progress::Progress;
use crate::{End, calibration, lab, secrets, terminal};

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
        .arg(option(
            "clients",
            "N",
            "Clients; with a rate the most transactions in flight [default: 1, or 64 with a rate]",
        ))
        .arg(option("rate", "R", "Offered rate in transactions per second (open load)"))
        .arg(
            option(
                "arrivals",
                "WORD",
                "How arrivals are spread: poisson or constant [default: poisson]",
            )
            .requires(search::OPEN),
        )
        .arg(option("duration", "TIME", "Measured time").default_value("10s"))
        .arg(option("warm-up", "TIME", "Warm-up before it").default_value("1s"))
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

/// Runs one trial and prints what it came to.
pub(crate) fn run(matches: &ArgMatches) -> anyhow::Result<End> {
    let (name, matches) = matches.subcommand().context("a workload has to be named")?;
    let study = study(name, matches)?;
    let seed = Seed(parsed(matches, "seed")?.unwrap_or(1));
    let plan = dyno_study::plan(&study, seed);
    let lab = lab::make(study.design.data_folder.as_ref().map(Path::new))?;
    let manifest = dyno_lab::make_manifest(
        &plan,
        &study.design,
        "",
        &lab.environment,
        lab.clock.unix_millis(),
    )?;
    let record = Folder::choose(text(matches, "out"))?;
    let order = RunOrder {
        plan: &plan,
        design: &study.design,
        manifest: &manifest,
        folder: record.path().to_owned(),
    };
    let mut progress = Progress::new(&plan, &lab);
    let end = dyno_lab::run(&lab, &order, &mut |event| progress.hear(event));
    progress.close();
    if end?.interrupted {
        return Ok(End::Interrupted);
    }
    let run = read_run(record.path())?;
    let Some(trial) = run.trials.first() else { bail!("the trial left no summary") };
    if let TrialOutcome::Failed { message, server_log } = &trial.outcome {
        for line in server_log {
            terminal::say(&format!("  server log: {line}"));
        }
        bail!("the trial failed: {message}");
    }
    let mut result = result(&run, trial, &trial.steps[0])?;
    result["generator"]["share_of_calibrated_absent_because"] =
        json!(why_no_share(trial, &trial.steps[0], &lab.environment));
    search::add_to(&mut result, &run.manifest, &trial.steps[0]);
    if matches.get_flag("json") {
        terminal::out(&serde_json::to_string_pretty(&result)?);
    } else {
        terminal::out(&(summary(&result) + &search::told(&result["search"])));
        if record.is_kept() {
            terminal::out(&report::write_all(
                &[record.path().to_owned()],
                None,
                lab.clock.unix_millis(),
            )?);
        }
    }
    Ok(End::Good)
}

/// Where the record goes: a folder the user named, or one that is removed at the end.
struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Folder {
    fn choose(kept: Option<&String>) -> anyhow::Result<Folder> {
        if let Some(path) = kept {
            return Ok(Folder { path: PathBuf::from(path), is_kept: true });
        }
        let path = std::env::temp_dir().join(format!("dyno-bench-{}", std::process::id()));
        if path.exists() {
            bail!("{} is there already; --out names another folder", path.display());
        }
        Ok(Folder { path, is_kept: false })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn is_kept(&self) -> bool {
        self.is_kept
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept && self.path.join("manifest.json").exists() {
            // Left behind, it would do no harm: it is under the system's temporary folder.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
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

fn study(workload: &str, matches: &ArgMatches) -> anyhow::Result<Study> {
    let spec = dyno_workload::catalog::find(workload).context("there is no such workload")?;
    let mut options = BTreeMap::new();
    for option in &spec.options {
        if let Some(value) = text(matches, &format!("option:{}", option.name)) {
            dyno_workload::options::check_kind(option, value)?;
            options.insert(option.name.to_owned(), value.clone());
        }
    }
    let load = load(matches)?;
    let database = database(matches)?;
    let workers = parsed::<u32>(matches, "workers")?;
    if workers == Some(0) {
        bail!("--workers: at least one worker is needed");
    }
    Ok(Study {
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
            loads: vec![load],
            baseline: BTreeMap::new(),
            repetitions: 1,
            order: Order::Interleaved,
            seed: None,
            warm_up: duration(matches, "warm-up")?,
            duration: duration(matches, "duration")?,
            rest: Nanoseconds::ZERO,
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

fn on(matches: &ArgMatches) -> &str {
    text(matches, "on").map_or("", String::as_str)
}

fn load(matches: &ArgMatches) -> anyhow::Result<LoadLevel> {
    let clients = parsed::<u64>(matches, "clients")?;
    if clients == Some(0) {
        bail!("--clients: at least one client is needed");
    }
    let arrivals = match text(matches, "arrivals").map(String::as_str) {
        None | Some("poisson") => Arrivals::Poisson,
        Some("constant") => Arrivals::Constant,
        Some(other) => bail!("--arrivals: `{other}` is neither poisson nor constant"),
    };
    if let Some(search) = search::load(matches, clients, arrivals)? {
        return Ok(search);
    }
    let Some(rate) = parsed::<f64>(matches, "rate")? else {
        return Ok(LoadLevel::Closed { clients: clients.unwrap_or(1) });
    };
    if !(rate.is_finite() && rate > 0.0) {
        bail!("--rate: a rate is a number above zero");
    }
    Ok(LoadLevel::Open { rate, arrivals, clients: clients.unwrap_or(64) })
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
        Product::Url(secrets::expand(on)?)
    } else {
        let products = dyno_lab::products();
        if !products.iter().any(|product| product.name == on) {
            let names: Vec<&str> = products.iter().map(|product| product.name).collect();
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
    })
}

/// Reads a setting as a study file would: `25%` of memory, `1GiB`, a number, or text.
fn setting_value(text: &str) -> SettingValue {
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

/// The result as JSON; docs/bench-json.md tells the fields.
fn result(run: &Run, trial: &TrialSummary, step: &StepSummary) -> anyhow::Result<Value> {
    let (mut response, mut service) = (new_histogram(), new_histogram());
    let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
    for kind in &step.kinds {
        response.add(kind.response.decode().context("a histogram is damaged")?)?;
        service.add(kind.service.decode().context("a histogram is damaged")?)?;
        for (outcome, count) in &kind.outcomes {
            *outcomes.entry(outcome).or_default() += count;
        }
    }
    outcomes.insert("missed", step.missed);
    let transactions = response.len();
    let statements = step.reads + step.writes + step.others;
    let seconds = step.measured_s.max(f64::MIN_POSITIVE);
    let per_statement = |cpu_s: f64| {
        if statements == 0 { Value::Null } else { json!(cpu_s * 1e6 / statements as f64) }
    };
    let times = |histogram: &hdrhistogram::Histogram<u64>| {
        let us = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
        json!({
            "mean": histogram.mean() / 1e3,
            "p50": us(0.5), "p95": us(0.95), "p99": us(0.99), "p999": us(0.999),
            "max": histogram.max() as f64 / 1e3,
        })
    };
    let manifest = &run.manifest;
    Ok(json!({
        "workload": manifest.variants[0].workload,
        "options": manifest.variants[0].options,
        "database": format!("{} {}", trial.server.product, trial.server.version),
        "durability": trial.server.durability,
        "clients": manifest.steps[0].clients,
        "rate": manifest.steps[0].rate,
        "seed": manifest.seed,
        "measured_s": step.measured_s,
        "throughput_tps": transactions as f64 / seconds,
        "statements_per_s": statements as f64 / seconds,
        "response_time_us": times(&response),
        "service_time_us": times(&service),
        "lag_us": times(&step.lag.decode().context("a histogram is damaged")?),
        "transactions": transactions,
        "statements": statements,
        "reads": step.reads,
        "writes": step.writes,
        "others": step.others,
        "rows_received": step.rows_received,
        "rows_changed": step.rows_changed,
        "outcomes": outcomes,
        "retries": step.retries,
        "reconnects": step.reconnects,
        "errors": step.error_examples,
        "generator": generator(step, &per_statement),
        "server": {
            "cpu_us_per_statement": step.server_cpu_s.map_or(Value::Null, per_statement),
            "cpu_absent_because": step.server_cpu_s.is_none().then_some(
                "the server runs inside Dyno's process, or Dyno did not start it"
            ),
        },
        "audit": trial.audit,
        "data": {
            "rows": trial.data.rows,
            "populate_s": trial.data.populate_s,
            "bytes": trial.data.bytes,
            "reused": trial.data.reused,
            "key": trial.data.key,
        },
    }))
}

/// The part of the result that is about the load generator.
fn generator(step: &StepSummary, per_statement: &dyn Fn(f64) -> Value) -> Value {
    json!({
        "workers": step.generator.workers,
        "cpu_user_us_per_statement": per_statement(step.generator.cpu_user_s),
        "cpu_system_us_per_statement": per_statement(step.generator.cpu_system_s),
        "process_cpu_user_us_per_statement":
            step.generator.process_cpu_user_s.map_or(Value::Null, per_statement),
        "process_cpu_system_us_per_statement":
            step.generator.process_cpu_system_s.map_or(Value::Null, per_statement),
        "busiest_worker": step.generator.busiest_worker,
        "run_queue_s": step.generator.run_queue_s,
        "share_of_calibrated": step.generator.share_of_calibrated,
        "rss_mib": step.generator.rss_bytes as f64 / f64::from(1 << 20),
    })
}

/// Why it is not known how close the generator came to what it can do.
fn why_no_share(
    trial: &TrialSummary,
    step: &StepSummary,
    environment: &Environment,
) -> Option<String> {
    if step.generator.share_of_calibrated.is_some() {
        return None;
    }
    let reason = match trial.server.transport.as_str() {
        "in process" => "the database runs inside Dyno's process",
        "simulated" => "the server is simulated",
        _ => return calibration::read(environment).err(),
    };
    Some(reason.to_owned())
}

/// The result for a person.
fn summary(result: &Value) -> String {
    let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_f64);
    let fixed = |pointer: &str, digits: usize| {
        number(pointer).map_or("not known".to_owned(), |value| format!("{value:.digits$}"))
    };
    let percent = |pointer: &str| match number(pointer) {
        Some(share) => format!("{:.0} %", share * 100.0),
        None => "an unknown share".to_owned(),
    };
    let failures: Vec<String> = result["outcomes"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, count)| *name != "committed" && count.as_u64() != Some(0))
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let failures = if failures.is_empty() { "no errors".to_owned() } else { failures.join(", ") };
    format!(
        "{} on {}\n\
         throughput      {} transactions/s, {} statements/s ({} transactions in {} s, n = 1 trial, \
         no bounds)\n\
         response time   mean {} µs, p50 {} µs, p95 {} µs, p99 {} µs, max {} µs\n\
         outcomes        committed {}, {failures}\n\
         CPU/statement   generator {} µs user + {} µs system, server {} µs\n\
         generator       busiest worker {} of a CPU, {} of what it can do here\n\
         audit           {}\n",
        result["workload"].as_str().unwrap_or_default(),
        result["database"].as_str().unwrap_or_default(),
        fixed("/throughput_tps", 1),
        fixed("/statements_per_s", 1),
        result["transactions"],
        fixed("/measured_s", 1),
        fixed("/response_time_us/mean", 1),
        fixed("/response_time_us/p50", 1),
        fixed("/response_time_us/p95", 1),
        fixed("/response_time_us/p99", 1),
        fixed("/response_time_us/max", 1),
        result["outcomes"]["committed"],
        fixed("/generator/cpu_user_us_per_statement", 2),
        fixed("/generator/cpu_system_us_per_statement", 2),
        fixed("/server/cpu_us_per_statement", 2),
        percent("/generator/busiest_worker"),
        percent("/generator/share_of_calibrated"),
        audit(&result["audit"]),
    )
}

/// The audit for a person: how many demands are met, and which are not.
fn audit(rows: &Value) -> String {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let word = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let failed: Vec<String> = rows
        .iter()
        .filter(|row| row["pass"] != true)
        .map(|row| {
            let (expected, measured) = (word(row, "expected"), word(row, "measured"));
            format!("; FAILED: {}: expected {expected}, found {measured}", word(row, "name"))
        })
        .collect();
    if rows.is_empty() {
        return "nothing to check".to_owned();
    }
    format!("{} of {} passed{}", rows.len() - failed.len(), rows.len(), failed.concat())
}
