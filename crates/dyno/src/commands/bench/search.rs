//! `dyno bench --find-rate`, `--find-clients`: what is asked, and how the search is told.

use anyhow::{Context, bail};
use clap::{Arg, ArgGroup, ArgMatches, Command};
use dyno_record::{Manifest, SearchSummary, StepSummary};
use dyno_study::{Arrivals, Limit, LoadLevel, Search, Sought};
use dyno_units::Nanoseconds;
use serde_json::{Value, json};

use super::{duration, text};

/// The name of the group of options that make the load an open one.
pub(super) const OPEN: &str = "open";

/// Adds the options of a search.
pub(super) fn with_options(command: Command) -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    command
        .arg(option(
            "find-rate",
            "LIMIT",
            "Search the highest offered rate that keeps a limit such as \"p99 <= 20ms\"",
        ))
        .arg(option(
            "find-clients",
            "LIMIT",
            "Search the most clients of a closed load that keep a limit; at most --clients [default: 1024]",
        ))
        .arg(
            option("find-precision", "SHARE", "How narrow a search ends [default: 5%]")
                .requires("search"),
        )
        .group(ArgGroup::new(OPEN).args(["rate", "find-rate"]))
        .group(ArgGroup::new("search").args(["find-rate", "find-clients"]))
        .mut_arg("find-clients", |arg| arg.conflicts_with("rate"))
}

/// The search that is asked for, if one is.
pub(super) fn load(
    matches: &ArgMatches,
    clients: Option<u64>,
    arrivals: Arrivals,
) -> anyhow::Result<Option<LoadLevel>> {
    let (name, sought) = if text(matches, "find-rate").is_some() {
        ("find-rate", Sought::Rate { arrivals, clients: clients.unwrap_or(64) })
    } else if text(matches, "find-clients").is_some() {
        ("find-clients", Sought::Clients { most: clients.unwrap_or(Search::CLIENTS_MOST) })
    } else {
        return Ok(None);
    };
    let limit: Limit = text(matches, name)
        .map_or("", String::as_str)
        .parse()
        .with_context(|| format!("--{name}"))?;
    let search = Search { sought, limit, precision: precision(matches)? };
    if let Err(why) = search.check_duration(duration(matches, "duration")?) {
        bail!("--duration: {why}");
    }
    Ok(Some(LoadLevel::Search(search)))
}

fn precision(matches: &ArgMatches) -> anyhow::Result<f64> {
    let Some(text) = text(matches, "find-precision") else { return Ok(Search::PRECISION) };
    let percent = dyno_units::parse_percentage(text).context("--find-precision")?;
    let (finest, coarsest) = Search::PRECISIONS;
    if !(finest..=coarsest).contains(&(percent / 100.0)) {
        bail!("--find-precision: `{text}` is not between 0.5% and 50%");
    }
    Ok(percent / 100.0)
}

/// Adds what a search found to the result of a trial, whose numbers are those of the found level.
pub(super) fn add_to(result: &mut Value, manifest: &Manifest, step: &StepSummary) {
    let (Some(asked), Some(search)) = (&manifest.steps[step.step].search, &step.search) else {
        return;
    };
    let level = if asked.sought == "rate" { "offered" } else { "clients" };
    let probes: Vec<Value> = search
        .probes
        .iter()
        .map(|probe| {
            json!({
                level: probe.level,
                "throughput_tps": probe.throughput,
                "quantile_us": probe.limited_us,
                "held": probe.held,
                "broken_by": probe.broken_by,
            })
        })
        .collect();
    result[asked.sought.as_str()] = json!(measured_level(search));
    result["search"] = json!({
        "sought": asked.sought,
        "limit": asked.limit,
        "statistic": asked.statistic,
        "bound_us": asked.bound_us,
        "precision": asked.precision,
        "found": search.found,
        "unit": if asked.sought == "rate" { "1/s" } else { "clients" },
        "lowest_broken": search.lowest_broken,
        "settled": search.settled,
        "probes": probes,
    });
}

/// The level that the summary's numbers belong to.
fn measured_level(search: &SearchSummary) -> Option<f64> {
    let measured = search.probes.iter().filter(|probe| probe.load.is_some());
    search.found.or_else(|| measured.map(|probe| probe.level).reduce(f64::min))
}

/// A search for a person: its probes as a table, and the answer in one sentence.
pub(super) fn told(search: &Value) -> String {
    if search.is_null() {
        return String::new();
    }
    let statistic = search["statistic"].as_str().unwrap_or_default();
    let is_rate = search["sought"] == "rate";
    let heading = if is_rate { "offered" } else { "clients" };
    let mut lines =
        format!("\n{:>5} {heading:>12} {:>14} {statistic:>10}\n", "probe", "throughput");
    for (idx, probe) in search["probes"].as_array().into_iter().flatten().enumerate() {
        let limited = probe["quantile_us"].as_f64().map_or("–".to_owned(), time);
        let ending = match probe["broken_by"].as_str() {
            None => "held".to_owned(),
            Some(why) => format!("broke: {why}"),
        };
        lines += &format!(
            "{:>5} {:>12} {:>14} {limited:>10}  {ending}\n",
            idx + 1,
            level(probe[heading].as_f64().unwrap_or_default(), is_rate),
            format!("{:.1}/s", probe["throughput_tps"].as_f64().unwrap_or_default()),
        );
    }
    format!("{lines}\n{}\n", sentence(search, is_rate))
}

fn sentence(search: &Value, is_rate: bool) -> String {
    let what = if is_rate { "highest rate" } else { "most clients" };
    let limit = search["limit"].as_str().unwrap_or_default();
    let at = |name: &str| search[name].as_f64().map(|value| level(value, is_rate));
    let answer = match (at("found"), at("lowest_broken")) {
        (Some(found), Some(broken)) => format!("{found} held twice, {broken} did not"),
        (Some(found), None) => format!("{found} held twice, and nothing higher was tried"),
        (None, Some(broken)) => format!("none held twice, not even {broken}"),
        (None, None) => "none was found".to_owned(),
    };
    let precision = search["precision"].as_f64().unwrap_or_default() * 100.0;
    let unsettled = match search["settled"].as_bool() {
        Some(false) => "; the search did not settle: probes contradicted each other",
        _ => "",
    };
    format!(
        "{what} with {limit}: {answer} (precision {precision} %, n = 1 trial, no bounds){unsettled}"
    )
}

fn level(value: f64, is_rate: bool) -> String {
    if is_rate { format!("{value}/s") } else { format!("{value}") }
}

fn time(us: f64) -> String {
    Nanoseconds((us * 1e3) as u64).to_string()
}
