//! `dyno bench --find-rate` and `--find-clients`: options and output.

use clap::{Arg, ArgGroup, Command};
use dyno_record::{EventKind, Manifest, SearchRecord, SearchSummary, StepSummary};
use serde_json::{Value, json};

use super::arguments::{OPEN, SEARCH};
use crate::commands::{time, within_limit};

pub(super) fn with_options(command: Command) -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading(SEARCH)
    };
    command
        .arg(option(
            "find-rate",
            "LIMIT",
            "Search for the highest offered rate that meets a limit such as \"p99 <= 20ms\"",
        ))
        .arg(option(
            "find-clients",
            "LIMIT",
            "Search for the largest number of clients of a closed-loop load that meets a limit; at \
             most --clients [default: 1024]",
        ))
        .arg(
            option("find-precision", "PERCENTAGE", "Precision of a search [default: 5%]")
                .requires("search"),
        )
        .group(ArgGroup::new(OPEN).args(["rate", "find-rate"]))
        .group(ArgGroup::new("search").args(["find-rate", "find-clients"]))
        .mut_arg("find-clients", |arg| arg.conflicts_with("rate"))
}

/// The numbers of the result are those of the level found.
pub(super) fn add_to(result: &mut Value, manifest: &Manifest, step: &StepSummary) {
    let (Some(asked), Some(search)) = (&manifest.steps[step.step].search, &step.search) else {
        return;
    };
    let probes = search.probes.iter().map(|probe| {
        json!({
            level_name(asked): probe.level,
            "throughput_tps": probe.throughput,
            "quantile_us": probe.limited_us,
            "held": probe.held,
            "broken_by": probe.broken_by,
        })
    });
    result[asked.sought.as_str()] = json!(measured_level(search));
    result["search"] = result_of(asked, probes.collect());
    result["search"]["found"] = json!(search.found);
    result["search"]["lowest_broken"] = json!(search.lowest_broken);
    result["search"]["settled"] = json!(search.settled);
}

fn level_name(asked: &SearchRecord) -> &'static str {
    if asked.sought == "rate" { "offered" } else { "clients" }
}

/// Of a search that has found nothing so far.
fn result_of(asked: &SearchRecord, probes: Vec<Value>) -> Value {
    json!({
        "sought": asked.sought,
        "limit": asked.limit,
        "statistic": asked.statistic,
        "bound_us": asked.bound_us,
        "precision": asked.precision,
        "found": Value::Null,
        "unit": if asked.sought == "rate" { "1/s" } else { "clients" },
        "lowest_broken": Value::Null,
        "settled": false,
        "probes": probes,
    })
}

/// Kept for a search that the user stops.
#[derive(Default)]
pub(super) struct Probes(Vec<Value>);

impl Probes {
    pub(super) fn on_event(&mut self, event: &EventKind, manifest: &Manifest) {
        let EventKind::LoadProbed { step, level, throughput, limited_us, broken_by, .. } = event
        else {
            return;
        };
        let asked = manifest.steps.get(*step).and_then(|step| step.search.as_ref());
        self.0.push(json!({
            asked.map_or("clients", level_name): level,
            "throughput_tps": throughput,
            "quantile_us": limited_us,
            "held": broken_by.is_none(),
            "broken_by": broken_by,
        }));
    }

    /// None if no probe ended, or there is no search.
    pub(super) fn unfinished(self, manifest: &Manifest) -> Option<Value> {
        let asked = manifest.steps.first()?.search.as_ref()?;
        if self.0.is_empty() {
            return None;
        }
        let mut result = result_of(asked, self.0);
        result["interrupted"] = json!(true);
        Some(result)
    }
}

fn measured_level(search: &SearchSummary) -> Option<f64> {
    let measured = search.probes.iter().filter(|probe| probe.load.is_some());
    search.found.or_else(|| measured.map(|probe| probe.level).reduce(f64::min))
}

/// Empty without a search.
pub(super) fn headline(search: &Value) -> String {
    if search.is_null() {
        return String::new();
    }
    format!("{}\n", sentence(search, search["sought"] == "rate"))
}

/// Empty without a search.
pub(super) fn text(search: &Value) -> String {
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
        let ending = within_limit(probe["broken_by"].as_str());
        lines += &format!(
            "{:>5} {:>12} {:>14} {limited:>10}  {ending}\n",
            idx + 1,
            level(probe[heading].as_f64().unwrap_or_default(), is_rate),
            format!("{:.1}/s", probe["throughput_tps"].as_f64().unwrap_or_default()),
        );
    }
    lines
}

fn sentence(search: &Value, is_rate: bool) -> String {
    let what = if is_rate { "highest rate" } else { "most clients" };
    let limit = search["limit"].as_str().unwrap_or_default();
    let at = |name: &str| search[name].as_f64().map(|value| level(value, is_rate));
    if search["interrupted"] == true {
        return format!(
            "{what} with {limit}: not found, the search was stopped; {}",
            so_far(search)
        );
    }
    let answer = match (at("found"), at("lowest_broken")) {
        (Some(found), Some(broken)) => format!("{found} met the limit twice, {broken} did not"),
        (Some(found), None) => format!("{found} met the limit twice, and nothing higher was tried"),
        (None, Some(broken)) => format!("none met the limit twice, not even {broken}"),
        (None, None) => "none was found".to_owned(),
    };
    let precision = search["precision"].as_f64().unwrap_or_default() * 100.0;
    let unsettled = match search["settled"].as_bool() {
        Some(false) => "; the search did not converge: its probes contradicted each other",
        _ => "",
    };
    format!("{what} with {limit}: {answer} (precision {precision} %; one trial, no CI){unsettled}")
}

fn so_far(search: &Value) -> String {
    let is_rate = search["sought"] == "rate";
    let name = if is_rate { "offered" } else { "clients" };
    let levels = |held: bool| -> Vec<f64> {
        let probes = search["probes"].as_array().into_iter().flatten();
        probes.filter(|probe| probe["held"] == held).filter_map(|p| p[name].as_f64()).collect()
    };
    let highest = levels(true).into_iter().reduce(f64::max).map(|held| level(held, is_rate));
    let lowest = levels(false).into_iter().reduce(f64::min).map(|broken| level(broken, is_rate));
    match (highest, lowest) {
        (Some(held), Some(broken)) => format!("so far {held} met the limit and {broken} did not"),
        (Some(held), None) => format!("so far {held} met the limit, and nothing higher was tried"),
        (None, Some(broken)) => format!("so far nothing met the limit, not even {broken}"),
        (None, None) => "no probe had ended".to_owned(),
    }
}

fn level(value: f64, is_rate: bool) -> String {
    if is_rate { format!("{value}/s") } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_was_stopped_says_what_it_knows() {
        let check = |probes: &[(f64, bool)], expected: &str| {
            let probe = |(offered, held): &(f64, bool)| json!({"offered": offered, "held": held});
            let search = json!({
                "sought": "rate",
                "limit": "p99 ≤ 20 ms",
                "interrupted": true,
                "probes": probes.iter().map(probe).collect::<Vec<_>>(),
            });
            let line = headline(&search);
            assert!(line.ends_with(&format!("{expected}\n")), "{line}");
        };
        check(
            &[(100.0, true), (200.0, true)],
            "so far 200/s met the limit, and nothing higher was tried",
        );
        check(&[(100.0, true), (200.0, false)], "so far 100/s met the limit and 200/s did not");
        check(&[(100.0, false), (10.0, false)], "so far nothing met the limit, not even 10/s");
        assert_eq!((headline(&Value::Null), text(&Value::Null)), (String::new(), String::new()));
    }
}
