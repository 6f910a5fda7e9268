//! The result of a trial of `dyno bench`, as JSON and as text.

use std::collections::BTreeMap;

use anyhow::Context;
use dyno_analysis::insert_benchmark::InsertBenchmarkCell;
use dyno_analysis::{CaveatKind, Cell, Estimate, Findings, metrics, tpcc};
use dyno_record::{
    EncodedHistogram, Environment, KindSummary, Run, StepRecord, StepSummary, TrialSummary,
    new_histogram,
};
use dyno_units::MetricId;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::{job, search};
use crate::calibration;
use crate::commands::{report, time};

const RESPONSE_TIMES: [(&str, MetricId); 6] = [
    ("mean", metrics::RESPONSE_MEAN),
    ("p50", metrics::RESPONSE_P50),
    ("p95", metrics::RESPONSE_P95),
    ("p99", metrics::RESPONSE_P99),
    ("p999", metrics::RESPONSE_P999),
    ("max", metrics::RESPONSE_MAX),
];

/// docs/bench-json.md describes the fields.
pub(super) fn of(run: &Run, trial: &TrialSummary, machine: &Environment) -> anyhow::Result<Value> {
    let mut result = of_trial(run, trial);
    let findings = report::find(std::slice::from_ref(run), None);
    result["caveats"] = caveats(&findings);
    let manifest = &run.manifest;
    let has_own_steps = manifest.steps.iter().any(|step| step.own.is_some());
    let stalls = dyno_analysis::stalls::stalls_of(run);
    let mut steps = Vec::new();
    for step in &trial.steps {
        let cell = findings.cells.iter().find(|cell| cell.step == step.step);
        let mut result = of_step(&manifest.steps[step.step], step, cell)?;
        result["stalls"] =
            json!(stalls.iter().filter(|stall| stall.step == step.step).collect::<Vec<_>>());
        result["generator"]["share_of_calibrated_absent_because"] =
            json!(why_no_share(trial, step, machine));
        search::add_to(&mut result, manifest, step);
        let job = job::result(trial, step);
        if !job.is_null() {
            result["job"] = job;
        }
        if manifest.variants[0].workload == tpcc::WORKLOAD {
            let planned = &manifest.steps[step.step];
            result["new_orders"] = new_orders(&result, &manifest.variants[0].options, planned);
        }
        if let Some(cell) = findings.insert_benchmark.iter().find(|cell| cell.step == step.step) {
            result["insert_benchmark"] = insert_benchmark(cell);
        }
        steps.push(result);
    }
    if has_own_steps {
        result["steps"] = Value::Array(steps);
    } else if let (Some(result), Some(Value::Object(step))) =
        (result.as_object_mut(), steps.into_iter().next())
    {
        result.extend(step);
    }
    Ok(result)
}

/// Without the caveat that one trial has no bounds, which the text states anyway.
fn caveats(findings: &Findings) -> Value {
    let caveats = findings.caveats.iter();
    let shown = caveats.filter(|caveat| caveat.kind != CaveatKind::TooFewRepetitions);
    shown.map(|caveat| report::caveat(findings, caveat)).collect()
}

fn of_trial(run: &Run, trial: &TrialSummary) -> Value {
    let manifest = &run.manifest;
    json!({
        "format": crate::commands::JSON_FORMAT,
        "workload": manifest.variants[0].workload,
        "options": manifest.variants[0].options,
        "database": format!("{} {}", trial.server.product, trial.server.version),
        "durability": trial.server.durability,
        "seed": manifest.seed,
        "audit": trial.audit,
        "canary": trial.canary,
        "run_off": trial.run_off,
        "data": {
            "rows": trial.data.rows,
            "populate_s": trial.data.populate_s,
            "bytes": trial.data.bytes,
            "bytes_after": trial.data.bytes_after,
            "reused": trial.data.reused,
            "key": trial.data.key,
        },
    })
}

fn of_step(planned: &StepRecord, step: &StepSummary, cell: Option<&Cell>) -> anyhow::Result<Value> {
    let mut service = new_histogram();
    let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
    for kind in &step.kinds {
        service.add(decoded(&kind.service)?)?;
        for (outcome, count) in &kind.outcomes {
            *outcomes.entry(outcome).or_default() += count;
        }
    }
    outcomes.insert("missed", step.missed);
    let transactions = service.len();
    let estimate =
        |id: MetricId| cell.and_then(|cell| cell.metrics.get(&id)).map(|estimate| estimate.value);
    let response = RESPONSE_TIMES.map(|(name, id)| (name.to_owned(), json!(estimate(id))));
    let statements = step.reads + step.writes + step.others;
    let seconds = step.measured_s.max(f64::MIN_POSITIVE);
    let per_statement = |cpu_s: f64| {
        if statements == 0 { Value::Null } else { json!(cpu_s * 1e6 / statements as f64) }
    };
    let mut result = json!({
        "clients": planned.clients,
        "rate": planned.rate,
        "stepped": planned.stepped,
        "measured_s": step.measured_s,
        "ended_by": step.ended_by,
        "throughput_tps": estimate(metrics::THROUGHPUT),
        "statements_per_s": statements as f64 / seconds,
        "response_time_us": Value::Object(response.into_iter().collect()),
        "service_time_us": times(&service),
        "lag_us": times(&decoded(&step.lag)?),
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
        "kinds": kinds(step, seconds)?,
    });
    if let Some(own) = &planned.own {
        result["name"] = json!(planned.name);
        result["roles"] = json!(own.roles);
        result["settled"] = json!(step.settled);
    }
    Ok(result)
}

fn kinds(step: &StepSummary, seconds: f64) -> anyhow::Result<Vec<Value>> {
    let result = |kind: &KindSummary| -> anyhow::Result<Value> {
        let response = decoded(&kind.response)?;
        Ok(json!({
            "name": kind.name,
            "transactions": response.len(),
            "throughput_tps": response.len() as f64 / seconds,
            "outcomes": kind.outcomes,
            "response_time_us": times(&response),
            "service_time_us": times(&decoded(&kind.service)?),
        }))
    };
    step.kinds.iter().filter(|kind| !kind.outcomes.is_empty()).map(result).collect()
}

fn decoded(histogram: &EncodedHistogram) -> anyhow::Result<Histogram<u64>> {
    histogram.decode().context("a histogram is damaged")
}

/// In microseconds; null where there are too few values.
fn times(histogram: &Histogram<u64>) -> Value {
    let known = metrics::statistics(histogram);
    json!(known.map(|(name, value)| (name, value.ok())).into_iter().collect::<BTreeMap<_, _>>())
}

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
        "calibration_disturbed": step.generator.calibration_disturbed,
        "rss_mib": step.generator.rss_bytes as f64 / f64::from(1 << 20),
    })
}

fn why_no_share(trial: &TrialSummary, step: &StepSummary, machine: &Environment) -> Option<String> {
    if step.generator.share_of_calibrated.is_some() {
        return None;
    }
    let server = trial.server.product_facts();
    let reason = match (server.in_process, server.simulated) {
        (true, _) => "the database runs inside Dyno's process",
        (_, true) => "the server is simulated",
        _ => return calibration::read(machine).err(),
    };
    Some(reason.to_owned())
}

pub(super) fn text(result: &Value) -> String {
    let text = match result["steps"].as_array() {
        Some(steps) => steps_text(result, steps),
        None if is_alone(result) => format!(
            "{}\n{}audit           {}\n",
            heading(result),
            job::lines(&result["job"]),
            audit(&result["audit"])
        ),
        None => {
            let search = &result["search"];
            search::headline(search) + &summary(result) + &search::text(search)
        }
    };
    text + &caveats_text(&result["caveats"])
}

/// A job without a load.
fn is_alone(result: &Value) -> bool {
    !result["job"].is_null() && result["kinds"].as_array().is_none_or(Vec::is_empty)
}

fn heading(result: &Value) -> String {
    let word = |name: &str| result[name].as_str().unwrap_or_default();
    format!("{} on {}", word("workload"), word("database"))
}

/// Keys in the report's advice that are options here.
const KEYS_OF_OPTIONS: [&str; 7] =
    ["duration", "warm_up", "workers", "clients", "statement_timeout", "until_steady", "run_off"];
const KEYS_OF_STUDIES: [&str; 2] = ["generator_cpus", "server_cpus"];

/// Follows keys in advice about a study.
const OF_A_STUDY: &str = " in the study's `[design]`";

/// Rewrites advice for a command line: options by their names, and a hint that some keys need a study.
fn for_command_line(advice: &str) -> String {
    let mut advice = advice.replace(OF_A_STUDY, "");
    for key in KEYS_OF_OPTIONS {
        advice = advice.replace(&format!("`{key}`"), &format!("--{}", key.replace('_', "-")));
    }
    if KEYS_OF_STUDIES.iter().any(|key| advice.contains(&format!("`{key}`"))) {
        advice += " These are keys of a study: --print-study prints this bench as one.";
    }
    advice
}

fn caveats_text(caveats: &Value) -> String {
    let word =
        |caveat: &Value, name: &str| for_command_line(caveat[name].as_str().unwrap_or_default());
    let line = |caveat: &Value| {
        format!(
            "caveat          {}\n                {}\n",
            word(caveat, "message"),
            word(caveat, "advice")
        )
    };
    caveats.as_array().into_iter().flatten().map(line).collect()
}

/// For a workload with steps of its own: a line for each step.
fn steps_text(result: &Value, steps: &[Value]) -> String {
    let mut lines = format!(
        "{} (one trial, so no CI)\n{:<12} {:>42} {:>10} {:>10} {:>12}  outcomes\n",
        heading(result),
        "step",
        "throughput",
        "p95",
        "p99",
        "measured",
    );
    for step in steps {
        let unfinished = unfinished(step);
        lines += &format!(
            "{:<12} {:>42} {:>10} {:>10} {:>12}  committed {}, {}{unfinished}\n",
            step["name"].as_str().unwrap_or_default(),
            throughput_of(step),
            response_time(step, "p95"),
            response_time(step, "p99"),
            format!("{:.1} s", step["measured_s"].as_f64().unwrap_or(0.0)),
            step["outcomes"]["committed"].as_u64().unwrap_or(0),
            failures(&step["outcomes"]),
        );
    }
    format!("{lines}audit           {}\n", audit(&result["audit"]))
}

/// A dash with too few transactions for a percentile.
fn response_time(step: &Value, name: &str) -> String {
    let us = step["response_time_us"][name].as_f64();
    us.map_or("–".to_owned(), time)
}

fn unfinished(step: &Value) -> &'static str {
    match step["ended_by"].as_str() {
        Some("limit") => ", NOT FINISHED within its time limit",
        Some("unsteady") => ", NOT STEADY within its time limit",
        _ => "",
    }
}

fn failures(outcomes: &Value) -> String {
    let failures: Vec<String> = outcomes
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, count)| *name != "committed" && count.as_u64() != Some(0))
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if failures.is_empty() { "no errors".to_owned() } else { failures.join(", ") }
}

fn summary(result: &Value) -> String {
    let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_f64);
    let fixed = |pointer: &str, digits: usize| {
        number(pointer).map_or("unknown".to_owned(), |value| format!("{value:.digits$}"))
    };
    let percent = |pointer: &str| match number(pointer) {
        Some(share) => format!("{:.0} %", share * 100.0),
        None => "an unknown share".to_owned(),
    };
    let headroom = match number("/generator/share_of_calibrated") {
        Some(share) => {
            let disturbed = match result["generator"]["calibration_disturbed"].as_bool() {
                Some(true) => ", by a calibration that other processes disturbed",
                _ => "",
            };
            format!("{:.0} % of its calibrated maximum{disturbed}", share * 100.0)
        }
        None => no_headroom(&result["generator"]["share_of_calibrated_absent_because"]),
    };
    let failures = failures(&result["outcomes"]);
    format!(
        "{}\n{}\
         throughput      {} transactions/s{}, {} statements/s ({} transactions in {} s{}; one \
         trial, so no CI)\n\
         {}response time   mean {}, p50 {}, p95 {}, p99 {}{}, max {}\n\
         outcomes        committed {}, {failures}\n\
         CPU/statement   generator {} µs user + {} µs system, server {}\n\
         generator       busiest worker {} of a CPU, {headroom}\n\
         audit           {}\n",
        heading(result),
        job::lines(&result["job"]),
        fixed("/throughput_tps", 1),
        result["new_orders"]["mode"].as_str().map_or(String::new(), |mode| format!(" ({mode})")),
        fixed("/statements_per_s", 1),
        result["transactions"],
        fixed("/measured_s", 1),
        unfinished(result),
        new_orders_line(&result["new_orders"]),
        response_time(result, "mean"),
        response_time(result, "p50"),
        response_time(result, "p95"),
        response_time(result, "p99"),
        number("/response_time_us/p999")
            .map_or(String::new(), |_| format!(", p99.9 {}", response_time(result, "p999"))),
        response_time(result, "max"),
        result["outcomes"]["committed"],
        fixed("/generator/cpu_user_us_per_statement", 2),
        fixed("/generator/cpu_system_us_per_statement", 2),
        number("/server/cpu_us_per_statement")
            .map_or("unknown".to_owned(), |us| format!("{us:.2} µs")),
        percent("/generator/busiest_worker"),
        audit(&result["audit"]),
    )
}

fn no_headroom(why: &Value) -> String {
    match why.as_str() {
        Some(why) if why.contains("dyno calibrate") => {
            "headroom unknown: run `dyno calibrate` once".to_owned()
        }
        Some(why) => format!("headroom unknown: {why}"),
        None => "headroom unknown".to_owned(),
    }
}

/// TPC-C's throughput, under the field's usual name and with the mode that gives it meaning.
fn new_orders(step: &Value, options: &BTreeMap<String, String>, planned: &StepRecord) -> Value {
    let kinds = step["kinds"].as_array().into_iter().flatten();
    let mut new_orders = kinds.filter(|kind| kind["name"] == "new_order");
    let rate = new_orders.find_map(|kind| kind["throughput_tps"].as_f64());
    let is_open = planned.rate.is_some();
    json!({
        "per_minute": 60.0 * rate.unwrap_or(0.0),
        "name": tpcc::new_orders_name(options, planned.clients, is_open),
        "mode": tpcc::mode(options, is_open),
    })
}

fn new_orders_line(new_orders: &Value) -> String {
    let rate = new_orders["per_minute"].as_f64();
    let name = match new_orders["name"].as_str() {
        Some("tpmC") => "tpmC, not audited by the TPC",
        other => other.unwrap_or_default(),
    };
    let mode = new_orders["mode"].as_str().unwrap_or_default();
    rate.map_or(String::new(), |rate| {
        format!("new-orders      {rate:.0} per minute ({name}, {mode}; one trial, no CI)\n")
    })
}

fn insert_benchmark(cell: &InsertBenchmarkCell) -> Value {
    let rate = |estimate: &Option<Estimate>| estimate.as_ref().map(|estimate| estimate.value);
    json!({
        "rows_inserted_per_s": rate(&cell.inserts),
        "rows_deleted_per_s": rate(&cell.deletes),
        "rows_indexed_per_s": rate(&cell.indexed),
        "queries_per_s": rate(&cell.queries),
        "sla": cell.sla,
    })
}

fn throughput_of(step: &Value) -> String {
    let cell = &step["insert_benchmark"];
    let rates = [
        ("rows_inserted_per_s", "rows inserted/s"),
        ("rows_indexed_per_s", "rows indexed/s"),
        ("queries_per_s", "queries/s"),
    ];
    let rate = |(name, unit): (&str, &str)| Some(format!("{:.1} {unit}", cell[name].as_f64()?));
    let rates: Vec<String> = rates.into_iter().filter_map(rate).collect();
    if rates.is_empty() {
        return format!("{:.1} transactions/s", step["throughput_tps"].as_f64().unwrap_or(0.0));
    }
    rates.join(", ")
}

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
    let n_undecided = rows.iter().filter(|row| row["is_undecided"] == true).count();
    let n = rows.len() - n_undecided;
    let undecided = match n_undecided {
        0 => String::new(),
        some => format!(" ({some} more: sample too small to decide)"),
    };
    format!("{} of {n} passed{undecided}{}", n - failed.len(), failed.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_options_and_not_keys_of_a_study() {
        let check = |advice: &str, expected: &str| assert_eq!(for_command_line(advice), expected);
        check("increase `duration`.", "increase --duration.");
        check("give it more `workers`", "give it more --workers");
        check("increase `duration` (2 s) in the study's `[design]`.", "increase --duration (2 s).");
        check("Raise `statement_timeout`.", "Raise --statement-timeout.");
        check("See `dyno calibrate`.", "See `dyno calibrate`.");
        check(
            "Use `server_cpus`.",
            "Use `server_cpus`. These are keys of a study: --print-study prints this bench as one.",
        );
        // Each is an option.
        let command = crate::commands::bench::command();
        let workload = command.find_subcommand("oltp_read_only").expect("it is a workload");
        for key in KEYS_OF_OPTIONS {
            let name = key.replace('_', "-");
            assert!(workload.get_arguments().any(|a| a.get_long() == Some(&name)), "{name}");
        }
    }

    #[test]
    fn the_furthest_percentile_is_shown_where_it_is_known() {
        let result =
            |p999: Value| json!({ "response_time_us": { "p99": 5.0, "p999": p999, "max": 9.0 } });
        assert!(summary(&result(json!(7.0))).contains(", p99 5 µs, p99.9 7 µs, max 9 µs"));
        assert!(summary(&result(Value::Null)).contains(", p99 5 µs, max 9 µs"));
    }
}
