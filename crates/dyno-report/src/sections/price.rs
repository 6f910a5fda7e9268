//! Price: work for money, and which variants nobody beats in both price and performance.

use dyno_analysis::cost::CostFacts;
use dyno_analysis::{Estimate, metrics};

use super::{page::Page, parts};
use crate::chart::Frame;
use crate::chart::scatter::{Line, Scatter, Spot};
use crate::document::{Block, Cell, Figure, Row, Section, Table, Text};
use crate::format::{self, Unit};
use crate::view::View;
use crate::words;

/// The section; none where no study gave a price: CPU time is told below the answer.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let facts = facts(view);
    if !facts.iter().any(|cost| cost.price_per_hour.is_some()) {
        return None;
    }
    let lead = "Prices come from the study. A variant is on the frontier if no other is faster without \
                costing more, or cheaper without being slower.";
    let panel = |step: usize| {
        let own: Vec<&CostFacts> = facts.iter().copied().filter(|c| c.step == step).collect();
        let blocks = || vec![frontier(view, step, &own), table(view, &own).into()];
        (!own.is_empty()).then(|| parts::panel(view, step, blocks()))
    };
    let section = Section::new("price", "Price", "Price", lead);
    Some(section.with(view.steps().filter_map(panel)))
}

/// The costs at known places.
fn facts<'a>(view: &View<'a>) -> Vec<&'a CostFacts> {
    let all = view.findings.cost.iter();
    all.filter(|cost| view.has_place(cost.variant, cost.step)).collect()
}

/// What the work costs, folded, below the effects: money where the study gives prices, and
/// CPU time of the server where it is known. A row for each variant, a column for each step. None
/// where neither is known.
pub(crate) fn below(view: &View<'_>) -> Option<Block> {
    let facts = facts(view);
    let class = if view.findings.steps.len() > 6 { "heat dense" } else { "heat" };
    let table = |(title, note, pick): (&str, &str, CostPick)| {
        let table = parts::by_step(view, view.variants(), view.steps(), |variant, step| {
            let own = facts.iter().find(|c| (c.variant, c.step) == (variant, step));
            own.and_then(|cost| pick(cost)).map_or(Cell::none("–"), worth)
        });
        let has_some = facts.iter().any(|cost| pick(cost).is_some());
        let title = Text::from(title).text(" ").span(note);
        has_some.then(|| table.titled(title).class(class).bare(|column| column == 0).into())
    };
    let tables: Vec<Block> = COSTS.into_iter().filter_map(table).collect();
    (!tables.is_empty()).then(|| Block::fold("What the work costs", false, tables))
}

type CostPick = fn(&CostFacts) -> Option<&Estimate>;

const COSTS: [(&str, &str, CostPick); 2] = [
    ("Cost of a million transactions", "lower is better: price per hour ÷ throughput", |cost| {
        cost.money_per_million.as_ref()
    }),
    ("Transactions per CPU second of the server", "higher is better", |cost| {
        cost.work_per_cpu_s.as_ref()
    }),
];

fn worth(estimate: &Estimate) -> Cell {
    let bounds = if format::interval(estimate).is_some() { "" } else { ", no CI" };
    parts::estimate(estimate, "").small(format!("n = {}{bounds}", estimate.n)).into()
}

fn frontier(view: &View<'_>, step: usize, own: &[&CostFacts]) -> Block {
    let prices = own.iter().filter_map(|c| c.price_per_hour.as_ref());
    let currencies = words::distinct(prices.map(|price| price.currency.as_str()));
    let mut figures = Vec::new();
    for currency in currencies {
        let spot = |cost: &&CostFacts| {
            let price = cost.price_per_hour.as_ref().filter(|p| p.currency == currency)?;
            let speed = view.estimate((cost.variant, step), metrics::THROUGHPUT)?;
            Some(Spot {
                variant: cost.variant,
                x: price.amount,
                y: speed.value,
                bounds: format::bounds(speed),
                is_joined: cost.on_frontier.unwrap_or(false),
                tip: parts::describe(view.variant(cost.variant), view.step(step), speed),
            })
        };
        let spots: Vec<Spot> = own.iter().filter_map(spot).collect();
        if spots.is_empty() {
            continue;
        }
        let chart = Scatter {
            label: format!("Throughput by price, {}", view.step(step)),
            spots,
            line: Line::Frontier,
            x_range: None,
            x_unit: Unit::Other(format!("{currency}/h")),
            y_unit: Unit::PerSecond,
            frame: Frame::new(560.0, 250.0),
        };
        let note = "throughput by price per hour; up and left is better; the line is the frontier";
        figures.push(Figure::new("Price and performance", note, chart.svg()).block());
    }
    Block::group("charts", figures)
}

fn table(view: &View<'_>, own: &[&CostFacts]) -> Table {
    let heads = "Variant | #Price per hour | #Transactions per unit of money | #Cost of a million \
         transactions | #Transactions per CPU second of the server | Frontier";
    let row = |cost: &&CostFacts| {
        let shown = |estimate: Option<&Estimate>| estimate.map_or("–".to_owned(), parts::with_n);
        let price = cost.price_per_hour.as_ref();
        Row::new([
            view.head(cost.variant),
            price.map_or("–".to_owned(), |p| format!("{} {}", p.amount, p.currency)).into(),
            shown(cost.work_per_money.as_ref()).into(),
            shown(cost.money_per_million.as_ref()).into(),
            shown(cost.work_per_cpu_s.as_ref()).into(),
            place(view, cost).into(),
        ])
    };
    let mut table = Table::headed("", heads).bare(|idx| idx == 0 || idx == 5);
    table.rows = own.iter().map(row).collect();
    table
}

/// Whether a variant is on the frontier, and who beats it if not.
fn place(view: &View<'_>, cost: &CostFacts) -> String {
    match (cost.on_frontier, &cost.dominated) {
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
    }
}
