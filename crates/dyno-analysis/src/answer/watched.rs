//! The answer of what was watched without load: nothing was asked, so it tells what went on.

use dyno_record::NO_WORKLOAD;

use crate::attribution::AttributionFacts;
use crate::debt::DebtFacts;
use crate::words::{bytes, list, number};
use crate::{Answer, Findings, Metric};

/// Whether all that the findings hold was watched without load.
pub(crate) fn is_watched(findings: &Findings) -> bool {
    let is_watched = |variant: &crate::VariantFacts| variant.workload == NO_WORKLOAD;
    !findings.variants.is_empty() && findings.variants.iter().all(is_watched)
}

/// The answer, if all that the findings hold was watched without load.
pub(super) fn watched(findings: &Findings) -> Option<Answer> {
    if !is_watched(findings) {
        return None;
    }
    let mut sentences = findings.attribution.iter().flat_map(|facts| told(findings, facts));
    let headline = sentences.next().unwrap_or_else(|| "Watched without load.".to_owned());
    let mut details: Vec<String> = sentences.collect();
    let gauges = findings.debt.iter().filter(|facts| facts.reading == "debt.gauge");
    details.extend(gauges.map(|gauge| debt(gauge, &findings.debt)));
    Some(Answer { headline, details })
}

/// CPU and what the server counted; then the disks.
fn told(findings: &Findings, facts: &AttributionFacts) -> Vec<String> {
    let per_second = |name: &str| {
        let used = facts.uses.iter().find(|used| used.name == name)?;
        used.per_second.as_ref().map(|estimate| estimate.value)
    };
    let cpus = |name: &str| per_second(name).map(|us| number(us / 1e6));
    let n = findings.cpus;
    let cpu = match (cpus("cpu.server"), cpus("cpu.machine")) {
        (Some(server), Some(all)) => {
            Some(format!("the server took {server} of {n} CPUs on average (all together {all})"))
        }
        (None, Some(all)) => Some(format!("{all} of {n} CPUs were busy on average")),
        (Some(server), None) => Some(format!("the server took {server} of {n} CPUs on average")),
        (None, None) => None,
    };
    let server = findings.variants[facts.variant].server.to_lowercase();
    let what = match server {
        server if server.contains("postgresql") => "commits",
        server if server.contains("pgbouncer") => "transactions",
        _ => "statements",
    };
    let cell = findings.cells.iter().find(|c| (c.variant, c.step) == (facts.variant, facts.step));
    let counted = cell
        .and_then(|cell| cell.metrics.get(&Metric::Throughput))
        .filter(|rate| rate.value > 0.0)
        .map(|rate| {
            format!("the server counted {} {what}/s, Dyno's probes included", number(rate.value))
        });
    let parts: Vec<String> = cpu.into_iter().chain(counted).collect();
    let mut sentences = Vec::new();
    if !parts.is_empty() {
        sentences.push(format!("Watched without load: {}.", list(&parts)));
    }
    let disk = |count: &str, size: &str| {
        Some(format!("{} {count}/s ({}/s)", number(per_second(count)?), bytes(per_second(size)?)))
    };
    if let (Some(reads), Some(writes)) =
        (disk("reads", "read_bytes"), disk("writes", "written_bytes"))
    {
        sentences.push(format!("All disks: {reads}, {writes}."));
    }
    sentences
}

/// How much was put off, and which part of it was the most.
fn debt(gauge: &DebtFacts, all: &[DebtFacts]) -> String {
    let most = gauge.most.value;
    if most <= 1.0 {
        return "The engine's debt was paid all the time.".to_owned();
    }
    let parts: Vec<String> = all
        .iter()
        .filter(|facts| (facts.variant, facts.step) == (gauge.variant, gauge.step))
        .filter(|facts| facts.reading != gauge.reading && facts.most.value > 0.0)
        .map(|facts| {
            let name = facts.reading.trim_start_matches("debt.").replace('_', " ");
            format!("{name} {}", number(facts.most.value))
        })
        .collect();
    format!(
        "The engine's debt was up to {} times what counts as paid, and {} times at the end; its \
         parts at the most: {}.",
        number(most),
        number(gauge.at_end.value),
        list(&parts)
    )
}
