//! Kinds of transactions apart: a table for each step that has several, and charts by step.

use dyno_analysis::kinds::KindCell;
use dyno_analysis::{Comparison, Estimate, MetricId, metrics, tpcc};

use super::parts;
use crate::format::{self, Unit};
use crate::markup::Markup;
use crate::view::View;
use crate::words::Judged;

const SHOWN: [MetricId; 6] = [
    metrics::THROUGHPUT,
    metrics::RESPONSE_MEAN,
    metrics::RESPONSE_P50,
    metrics::RESPONSE_P95,
    metrics::RESPONSE_P99,
    metrics::RESPONSE_MAX,
];

const TITLES: [&str; 6] = ["Throughput", "Mean time", "p50", "p95", "p99", "Longest"];

fn is_good(outcome: &str) -> bool {
    matches!(outcome, "committed" | "rolled_back")
}

/// The kinds of a step, in the order of variants; those that point nowhere are left out.
pub(crate) fn of_step<'a>(view: &View<'a>, step: usize) -> Vec<&'a KindCell> {
    let n = view.findings.variants.len();
    view.findings.kinds.iter().filter(|k| k.step == step && k.variant < n).collect()
}

pub(crate) fn names<'a>(view: &View<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for kind in view.findings.kinds.iter().filter(|k| k.step < view.findings.steps.len()) {
        if !names.contains(&kind.kind.as_str()) {
            names.push(&kind.kind);
        }
    }
    names
}

/// Puts kinds into the order of the tables, which is that of the workload.
pub(crate) fn in_order(view: &View<'_>, kinds: &mut [&str]) {
    let order = names(view);
    kinds.sort_by_key(|kind| order.iter().position(|name| name == kind).unwrap_or(order.len()));
}

pub(crate) fn tables(out: &mut Markup, view: &View<'_>) {
    if view.findings.kinds.is_empty() {
        return;
    }
    out.element("h3", "By kind of transaction");
    for step in 0..view.findings.steps.len() {
        let kinds = of_step(view, step);
        if !kinds.is_empty() {
            parts::open_panel(out, view, step);
            table(out, view, step, &kinds);
            out.raw("</div>");
        }
    }
    if let Some(text) = view.few_of_kinds_in_words(&SHOWN) {
        out.classed("p", "quiet", text);
    }
}

fn table(out: &mut Markup, view: &View<'_>, step: usize, kinds: &[&KindCell]) {
    let is_offered = kinds.iter().any(|k| k.offered.is_some());
    out.raw("<div class=\"scroll\"><table class=\"heat dense\"><thead><tr><th scope=\"col\">Kind</th><th scope=\"col\">Variant</th>");
    for title in TITLES {
        out.raw(format_args!("<th class=\"n\" scope=\"col\">{title}</th>"));
    }
    if is_offered {
        out.raw("<th class=\"n\" scope=\"col\">Offered to its role</th>");
    }
    out.raw("<th class=\"n\" scope=\"col\">Failed</th></tr></thead><tbody>");
    for name in names(view) {
        for kind in kinds.iter().filter(|k| k.kind == name) {
            out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">", kind.variant));
            out.text(view.kind_title(name));
            if let Some(role) = kind.role.as_ref().filter(|role| *role != name) {
                out.element("small", role);
            }
            if let Some(note) = new_orders(view, kind) {
                out.element("small", note);
            }
            out.raw(format_args!("</th><td>{}</td>", parts::name(view, kind.variant)));
            for metric in SHOWN {
                let compared = comparison(view, kind, step, metric);
                cell(
                    out,
                    view,
                    (kind.metrics.get(&metric), View::few_of_kind(kind, metric)),
                    compared,
                );
            }
            if is_offered {
                offered(out, kind);
            }
            let failed = kind.outcomes.iter().filter(|(name, _)| !is_good(name));
            out.classed("td", "n", format::grouped(failed.map(|(_, n)| n).sum())).raw("</tr>");
        }
    }
    out.raw("</tbody></table></div>");
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

fn comparison<'a>(
    view: &View<'a>,
    kind: &KindCell,
    step: usize,
    metric: MetricId,
) -> Option<&'a Comparison> {
    let is_it = |c: &&Comparison| (c.variant, c.step, c.metric) == (kind.variant, step, metric);
    let own = view.findings.kind_comparisons.iter().filter(|c| c.kind == kind.kind);
    own.map(|c| &c.comparison).find(is_it)
}

fn cell(
    out: &mut Markup,
    view: &View<'_>,
    (estimate, few): (Option<&Estimate>, &str),
    compared: Option<&Comparison>,
) {
    let Some(estimate) = estimate else {
        out.raw("<td class=\"n none\">–</td>");
        return;
    };
    let judged = compared.map(|comparison| (view.judged(comparison), comparison));
    let heat = judged.and_then(|(judged, comparison)| parts::heat(judged, comparison));
    let (class, strength) = heat.unwrap_or(("", 0));
    out.raw(format_args!("<td class=\"n {class}\" style=\"--h:{strength}%\">"));
    let (value, spread) = format::value_and_spread(estimate);
    out.element("b", format!("{value}{few}"));
    if !spread.is_empty() {
        out.raw(" ").element("i", spread);
    }
    let below = parts::below(estimate, compared);
    let sign = match judged {
        Some((judged, _)) if heat.is_some() || matches!(judged, Judged::LessDurable { .. }) => {
            format!("{} ", judged.sign())
        }
        _ => String::new(),
    };
    out.element("small", format!("{sign}{below}"));
    out.raw("</td>");
}

/// The rate that is offered to the role, and how much of it was done in how many trials.
fn offered(out: &mut Markup, kind: &KindCell) {
    let Some(offered) = &kind.offered else {
        out.raw("<td class=\"n none\">–</td>");
        return;
    };
    let class = if offered.met < offered.of { "n bad" } else { "n" };
    out.raw(format_args!("<td class=\"{class}\"><b>{}</b>", Unit::PerSecond.show(offered.rate)));
    let percent = |share: f64| Unit::Percent.show(share * 100.0);
    let bounds = match offered.kept.low.zip(offered.kept.high) {
        Some((low, high)) => format!(" ({})", format::range(&percent(low), &percent(high))),
        None => String::new(),
    };
    out.element("small", format!("{} done{bounds}", percent(offered.kept.value)));
    out.element("small", format!("met in {} of {} trials", offered.met, offered.of)).raw("</td>");
}
