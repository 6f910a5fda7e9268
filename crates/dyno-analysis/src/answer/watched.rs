//! The answer for what was only observed: nothing was asked, so it says what went on.

use dyno_record::sends_nothing;
use dyno_units::Unit;

use crate::attribution::AttributionFacts;
use crate::debt::DebtFacts;
use crate::words::{bytes, list, number, said};
use crate::{Answer, Findings, metrics};

/// Other processes with this share of all CPUs, and more than the server, come first.
const BUSY_ELSEWHERE: f64 = 0.25;

/// All was observed without load (`dyno watch`), and no step is judged, as a job's is.
pub fn is_watched(findings: &Findings) -> bool {
    let is_watched = |variant: &crate::VariantFacts| sends_nothing(&variant.workload);
    let is_judged = |step: &crate::StepFacts| step.main_metric != metrics::THROUGHPUT;
    !findings.variants.is_empty()
        && findings.variants.iter().all(is_watched)
        && !findings.steps.iter().any(is_judged)
}

pub(super) fn watched(findings: &Findings) -> Option<Answer> {
    if !is_watched(findings) {
        return None;
    }
    let mut sentences = findings.attribution.iter().flat_map(|facts| sentences(findings, facts));
    let headline = sentences.next().unwrap_or_else(|| "Observed (Dyno sent no load).".to_owned());
    let mut lines: Vec<String> = sentences.collect();
    let gauges = findings.debt.iter().filter(|facts| facts.gauge);
    lines.extend(gauges.filter_map(|gauge| deferred(gauge, &findings.debt)));
    lines.truncate(super::LINES_MOST);
    Some(Answer { headline, lines, ..Answer::default() })
}

fn sentences(findings: &Findings, facts: &AttributionFacts) -> Vec<String> {
    let per_second = |name: &str| {
        let used = facts.uses.iter().find(|used| used.name == name)?;
        used.per_second.as_ref().map(|estimate| estimate.value)
    };
    let cpus = |name: &str| per_second(name).map(|us| us / 1e6);
    let cell = findings.cells.iter().find(|c| (c.variant, c.step) == (facts.variant, facts.step));
    // Without the server's processes, CPU figures are the machine's.
    let it = if cpus("cpu.server").is_some() { "it" } else { "the server" };
    let transactions = cell
        .and_then(|cell| cell.metrics.get(&metrics::THROUGHPUT))
        .filter(|rate| rate.value > 0.0)
        .map(|rate| format!("{it} committed {} transactions/s", number(rate.value)));
    let statements =
        || per_second("statements").map(|rate| format!("{it} ran {} statements/s", number(rate)));
    let counted = transactions
        .or_else(statements)
        .map_or_else(String::new, |counted| format!("; {counted}, Dyno's own included"));
    let mut sentences = Vec::new();
    let of = match &findings.variants[..] {
        [_] => String::new(),
        variants => format!(" on {}", variants[facts.variant].name),
    };
    let cpu = cpu_sentence(cpus("cpu.server"), cpus("cpu.machine"), findings.cpus);
    if let Some(cpu) = cpu {
        sentences.push(format!("Observed{of} (Dyno sent no load): {cpu}{counted}."));
    }
    let disk = |count: &str, size: &str| {
        Some(format!("{} {count}/s ({}/s)", number(per_second(count)?), bytes(per_second(size)?)))
    };
    if let (Some(reads), Some(writes)) =
        (disk("reads", "read_bytes"), disk("writes", "written_bytes"))
    {
        sentences
            .push(format!("All disks{}: {reads}, {writes}.", of.replacen(" on ", " during ", 1)));
    }
    sentences
}

fn cpu_sentence(server: Option<f64>, machine: Option<f64>, cpus: u32) -> Option<String> {
    let [by_server, by_all] = [server, machine].map(|used| number(used.unwrap_or_default()));
    Some(match (server, machine) {
        (Some(server), Some(machine)) => {
            let others = (machine - server).max(0.0);
            if others > server && others >= BUSY_ELSEWHERE * f64::from(cpus) {
                let others = number(others);
                format!(
                    "the machine was busy with other work, {others} of {cpus} CPUs; the server used \
                     {by_server}"
                )
            } else {
                format!("the server used {by_server} of {cpus} CPUs, the whole machine {by_all}")
            }
        }
        (None, Some(_)) => format!("{by_all} of {cpus} CPUs of this machine were busy"),
        (Some(_), None) => format!("the server used {by_server} of {cpus} CPUs"),
        (None, None) => return None,
    })
}

/// At its peak, part by part, without a verdict: an idle server keeps dirty pages by choice.
fn deferred(gauge: &DebtFacts, all: &[DebtFacts]) -> Option<String> {
    let of_gauge = |facts: &&DebtFacts| {
        (facts.variant, facts.step) == (gauge.variant, gauge.step)
            && !facts.gauge
            && facts.most.value > 0.0
    };
    let parts = list(all.iter().filter(of_gauge).map(part));
    said("Deferred work of the engine at its peak", &parts)
}

/// `dirty pages 5.6 %`, `history list length 6,500`, `pending compaction 1.2 GB`.
fn part(facts: &DebtFacts) -> String {
    let (title, most) = (&facts.title, facts.most.value);
    match Unit::from(facts.unit.as_str()) {
        Unit::Percent => format!("{title} {} %", number(most)),
        Unit::Bytes => format!("{title} {}", bytes(most)),
        _ => format!("{title} {}", number(most)),
    }
}
