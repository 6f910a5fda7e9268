//! Kinds of transactions apart: a table for each step that has several, and charts by step.

use dyno_analysis::kinds::KindCell;
use dyno_analysis::{Comparison, Estimate, MetricId, metrics, tpcc};

use super::parts;
use crate::document::{Block, Cell, Table, Text};
use crate::format::{self, Unit};
use crate::view::View;
use crate::words::{Judged, distinct};

const SHOWN: [MetricId; 6] = [
    metrics::THROUGHPUT,
    metrics::RESPONSE_MEAN,
    metrics::RESPONSE_P50,
    metrics::RESPONSE_P95,
    metrics::RESPONSE_P99,
    metrics::RESPONSE_MAX,
];

const TITLES: [&str; 6] = ["Throughput", "Mean time", "p50", "p95", "p99", "Longest"];

pub(crate) fn is_good(outcome: &str) -> bool {
    matches!(outcome, "committed" | "rolled_back")
}

/// The kinds of a step, in the order of variants; those that point nowhere are left out.
pub(crate) fn of_step<'a>(view: &View<'a>, step: usize) -> Vec<&'a KindCell> {
    let n = view.findings.variants.len();
    view.findings.kinds.iter().filter(|k| k.step == step && k.variant < n).collect()
}

pub(crate) fn names<'a>(view: &View<'a>) -> Vec<&'a str> {
    let kinds = view.findings.kinds.iter().filter(|k| k.step < view.findings.steps.len());
    distinct(kinds.map(|kind| kind.kind.as_str()))
}

/// Puts kinds into the order of the tables, which is that of the workload.
pub(crate) fn in_order(view: &View<'_>, kinds: &mut [&str]) {
    let order = names(view);
    kinds.sort_by_key(|kind| order.iter().position(|name| name == kind).unwrap_or(order.len()));
}

pub(crate) fn tables(view: &View<'_>) -> Vec<Block> {
    if view.findings.kinds.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::heading(3, "By kind of transaction")];
    for step in view.steps() {
        let kinds = of_step(view, step);
        if !kinds.is_empty() {
            let table = table(view, &kinds);
            blocks.push(parts::panel(view, step, vec![table.into()]));
        }
    }
    blocks.extend(view.few_of_kinds_in_words(&SHOWN).map(Block::quiet));
    blocks
}

fn table(view: &View<'_>, kinds: &[&KindCell]) -> Table {
    let is_offered = kinds.iter().any(|k| k.offered.is_some());
    let mut heads = [&["Kind", "Variant"][..], &TITLES].concat();
    heads.extend(is_offered.then_some("Offered to its role"));
    heads.push("Failed");
    let mut table = Table::of(heads, 2).class("heat dense");
    for name in names(view) {
        for kind in kinds.iter().filter(|k| k.kind == name) {
            let mut head = Cell::from(view.kind_title(name)).head();
            let role = kind.role.as_ref().filter(|role| *role != name).cloned();
            for text in [role, new_orders(view, kind)].into_iter().flatten() {
                head = head.small(text);
            }
            let value = |metric: &MetricId| {
                let estimate = (kind.metrics.get(metric), View::few_of_kind(kind, *metric));
                cell(view, estimate, comparison(view, kind, *metric))
            };
            let failed = kind.outcomes.iter().filter(|(name, _)| !is_good(name));
            let failed = format::grouped(failed.map(|(_, n)| n).sum());
            let values = SHOWN.iter().map(value).chain(is_offered.then(|| offered(kind)));
            let place = [head, view.head(kind.variant).value()];
            table.row(place.into_iter().chain(values).chain([failed.into()]));
        }
    }
    table
}

/// The throughput of TPC-C's new-orders under the name that the field has for it, and the mode.
fn new_orders(view: &View<'_>, kind: &KindCell) -> Option<String> {
    let variant = view.findings.variants.get(kind.variant)?;
    if variant.workload != tpcc::WORKLOAD || kind.kind != "new_order" {
        return None;
    }
    let throughput = kind.metrics.get(&metrics::THROUGHPUT)?;
    let step = view.findings.steps.get(kind.step)?;
    let is_open = step.rate.is_some();
    let name = match tpcc::new_orders_name(&variant.options, step.clients, is_open) {
        "tpmC" => "tpmC, not audited by the TPC",
        other => other,
    };
    let mode = tpcc::mode(&variant.options, is_open);
    let a_minute = |rate: f64| format::grouped((rate * 60.0).round().max(0.0) as u64);
    let bounds = match throughput.low.zip(throughput.high) {
        Some((low, high)) => format!(" ({})", format::range(&a_minute(low), &a_minute(high))),
        None => format!(" (no CI, n = {})", throughput.n),
    };
    Some(format!("{}{bounds} per minute: {name}, {mode}", a_minute(throughput.value)))
}

fn comparison<'a>(view: &View<'a>, kind: &KindCell, metric: MetricId) -> Option<&'a Comparison> {
    let at = (kind.variant, kind.step, metric);
    let is_it = |c: &&Comparison| (c.variant, c.step, c.metric) == at;
    let own = view.findings.kind_comparisons.iter().filter(|c| c.kind == kind.kind);
    own.map(|c| &c.comparison).find(is_it)
}

fn cell(
    view: &View<'_>,
    (estimate, few): (Option<&Estimate>, &str),
    compared: Option<&Comparison>,
) -> Cell {
    let Some(estimate) = estimate else { return Cell::none("–") };
    let judged = compared.map(|comparison| (view.judged(comparison), comparison));
    let heat = compared.and_then(|comparison| parts::heat(view, comparison));
    let (class, strength) = heat.unwrap_or(("", 0));
    let below = parts::below(view, estimate, compared);
    let sign = match judged {
        Some((judged, _)) if heat.is_some() || matches!(judged, Judged::LessDurable { .. }) => {
            format!("{} ", judged.sign())
        }
        _ => String::new(),
    };
    let text = parts::estimate(estimate, few).small(format!("{sign}{below}"));
    Cell::from(text).class(class).with("style", format!("--h:{strength}%"))
}

/// The rate that is offered to the role, and how much of it was done in how many trials.
fn offered(kind: &KindCell) -> Cell {
    let Some(offered) = &kind.offered else { return Cell::none("–") };
    let percent = |share: f64| Unit::Percent.show(share * 100.0);
    let bounds = match offered.kept.low.zip(offered.kept.high) {
        Some((low, high)) => format!(" ({})", format::range(&percent(low), &percent(high))),
        None => String::new(),
    };
    let text = Text::default()
        .b(Unit::PerSecond.show(offered.rate))
        .small(format!("{} done{bounds}", percent(offered.kept.value)))
        .small(format!("met in {} of {} trials", offered.met, offered.of));
    let cell = Cell::from(text);
    if offered.met < offered.of { cell.class("bad") } else { cell }
}
