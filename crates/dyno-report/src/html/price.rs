//! Price: work for money, and which variants nobody beats in both price and performance.

use dyno_analysis::cost::CostFacts;
use dyno_analysis::{Estimate, metrics};

use super::Page;
use super::parts;
use crate::chart::Frame;
use crate::chart::scatter::{Line, Scatter, Spot};
use crate::document::Section;
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
use crate::view::View;

/// The section; none where no study gave a price and no CPU time is known.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let n = view.findings.variants.len();
    let known = |c: &&CostFacts| c.variant < n && c.step < view.findings.steps.len();
    let facts: Vec<&CostFacts> = view.findings.cost.iter().filter(known).collect();
    if facts.is_empty() {
        return None;
    }
    let has_price = facts.iter().any(|c| c.price_per_hour.is_some());
    let lead = match has_price {
        true => {
            "Prices come from the study. A variant is on the frontier if no other is faster without \
             costing more, or cheaper without being slower."
        }
        false => {
            "The study gives no prices (`price_per_hour` of a database), so only transactions per CPU \
             second are shown."
        }
    };
    let title = if has_price { "Price" } else { "Cost" };
    let mut section = Section::new("price", title, title, &lead.replace('`', ""));
    let out = section.drawn();
    for step in 0..view.findings.steps.len() {
        let own: Vec<&CostFacts> = facts.iter().copied().filter(|c| c.step == step).collect();
        if own.is_empty() {
            continue;
        }
        parts::open_panel(out, view, step);
        if has_price {
            frontier(out, view, step, &own);
        }
        table(out, view, &own, has_price);
        out.raw("</div>");
    }
    Some(section)
}

/// Writes what the work costs, folded, below the effects: money where the study gives prices, and
/// CPU time of the server where it is known. A row for each variant, a column for each step. Nothing
/// where neither is known.
pub(crate) fn section_below(out: &mut Markup, view: &View<'_>) {
    let n = view.findings.variants.len();
    let known = |c: &&CostFacts| c.variant < n && c.step < view.findings.steps.len();
    let has = |pick: CostPick| view.findings.cost.iter().filter(known).any(|c| pick(c).is_some());
    let shown: Vec<(&str, CostPick)> = COSTS.into_iter().filter(|(_, pick)| has(*pick)).collect();
    if shown.is_empty() {
        return;
    }
    out.raw("<details class=\"fold\"><summary>What the work costs</summary>");
    let n_steps = view.findings.steps.len();
    let dense = if n_steps > 6 { " dense" } else { "" };
    for (title, pick) in shown {
        out.raw(format_args!(
            "<div class=\"scroll\"><table class=\"heat{dense}\"><caption>{title}"
        ));
        out.raw("</caption><thead><tr><th>Variant</th>");
        for step in &view.findings.steps {
            out.raw(format_args!("<th class=\"n\" scope=\"col\">{}</th>", escape(&step.name)));
        }
        out.raw("</tr></thead><tbody>");
        for variant in 0..n {
            out.raw(format_args!("<tr class=\"v{variant}\"><th scope=\"row\">"));
            out.raw(parts::name(view, variant)).raw("</th>");
            for step in 0..n_steps {
                let is_it = |c: &&CostFacts| (c.variant, c.step) == (variant, step);
                worth(out, view.findings.cost.iter().find(is_it).and_then(pick));
            }
            out.raw("</tr>");
        }
        out.raw("</tbody></table></div>");
    }
    out.raw("</details>");
}

type CostPick = fn(&CostFacts) -> Option<&Estimate>;

const COSTS: [(&str, CostPick); 2] = [
    (
        "Cost of a million transactions <span>lower is better: price per hour ÷ throughput</span>",
        |cost| cost.money_per_million.as_ref(),
    ),
    ("Transactions per CPU second of the server <span>higher is better</span>", |cost| {
        cost.work_per_cpu_s.as_ref()
    }),
];

fn worth(out: &mut Markup, estimate: Option<&Estimate>) {
    let Some(estimate) = estimate else {
        out.raw("<td class=\"n none\">–</td>");
        return;
    };
    let (value, spread) = format::value_and_spread(estimate);
    out.raw("<td class=\"n\">").element("b", value);
    if !spread.is_empty() {
        out.raw(" ").element("i", spread);
    }
    let bounds = if format::interval(estimate).is_some() { "" } else { ", no CI" };
    out.element("small", format!("n = {}{bounds}", estimate.n)).raw("</td>");
}

fn frontier(out: &mut Markup, view: &View<'_>, step: usize, own: &[&CostFacts]) {
    let mut currencies: Vec<&str> = Vec::new();
    for price in own.iter().filter_map(|c| c.price_per_hour.as_ref()) {
        if !currencies.contains(&price.currency.as_str()) {
            currencies.push(&price.currency);
        }
    }
    out.raw("<div class=\"charts\">");
    for currency in currencies {
        let spots: Vec<Spot> = own
            .iter()
            .filter_map(|cost| {
                let price = cost.price_per_hour.as_ref().filter(|p| p.currency == currency)?;
                let speed = view.estimate(cost.variant, step, metrics::THROUGHPUT)?;
                Some(Spot {
                    variant: cost.variant,
                    x: price.amount,
                    y: speed.value,
                    bounds: format::bounds(speed),
                    is_joined: cost.on_frontier.unwrap_or(false),
                    tip: parts::describe(view.variant(cost.variant), view.step(step), speed),
                })
            })
            .collect();
        if spots.is_empty() {
            continue;
        }
        let legend = view.legend(560.0);
        let chart = Scatter {
            label: format!("Throughput by price, {}", view.step(step)),
            spots,
            line: Line::Frontier,
            x_range: None,
            x_unit: Unit::Other(format!("{currency}/h")),
            y_unit: Unit::PerSecond,
            frame: legend.fit(Frame::new(560.0, 250.0)),
            legend,
        };
        let note = "throughput by price per hour; up and left is better; the line is the frontier";
        parts::figure(out, "", "Price and performance", note, &chart.svg());
    }
    out.raw("</div>");
}

fn table(out: &mut Markup, view: &View<'_>, own: &[&CostFacts], has_price: bool) {
    out.raw("<div class=\"scroll\"><table><thead><tr><th>Variant</th>");
    if has_price {
        for title in
            ["Price per hour", "Transactions per unit of money", "Cost of a million transactions"]
        {
            out.raw(format_args!("<th class=\"n\" scope=\"col\">{title}</th>"));
        }
    }
    out.raw("<th class=\"n\" scope=\"col\">Transactions per CPU second of the server</th>");
    out.raw(if has_price {
        "<th>Frontier</th></tr></thead><tbody>"
    } else {
        "</tr></thead><tbody>"
    });
    for cost in own {
        out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">", cost.variant));
        out.raw(parts::name(view, cost.variant)).raw("</th>");
        let shown = |estimate: Option<&Estimate>| estimate.map_or("–".to_owned(), parts::with_n);
        if has_price {
            let price = cost.price_per_hour.as_ref();
            let hour = price.map_or("–".to_owned(), |p| format!("{} {}", p.amount, p.currency));
            out.classed("td", "n", hour);
            out.classed("td", "n", shown(cost.work_per_money.as_ref()));
            out.classed("td", "n", shown(cost.money_per_million.as_ref()));
        }
        out.classed("td", "n", shown(cost.work_per_cpu_s.as_ref()));
        if has_price {
            place(out, view, cost);
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

/// Whether a variant is on the frontier, and who beats it if not.
fn place(out: &mut Markup, view: &View<'_>, cost: &CostFacts) {
    let text = match (cost.on_frontier, &cost.dominated) {
        (Some(true), _) => "on the frontier".to_owned(),
        (_, Some(by)) => {
            let beaten = view.variant(by.by);
            let doubt = if by.surely { "" } else { " (not certain: not significantly faster)" };
            let safety = |v: usize| view.findings.variants.get(v)?.commit_safety;
            // What is less safe is not simply better.
            let risk = match (safety(by.by), safety(cost.variant)) {
                (Some(theirs), Some(ours)) if theirs > ours => {
                    format!(", which is less durable ({})", theirs.words())
                }
                _ => String::new(),
            };
            format!("beaten by {beaten}{doubt}{risk}")
        }
        (Some(false), None) => "off the frontier".to_owned(),
        (None, None) => "–".to_owned(),
    };
    out.raw(format_args!("<td>{}</td>", escape(&text)));
}
