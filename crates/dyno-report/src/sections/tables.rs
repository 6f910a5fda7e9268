//! The numbers: throughput, p95 and cost for each variant and step, coloured by the effect.

use dyno_analysis::{
    Comparison, Direction, Estimate, Metric, MetricId, MetricRole, Verdict, metrics,
};

use super::{bound, kinds, page::Page, parts, searches};
use crate::document::{Block, Cell, Element, Piece, Section, Table, Text};
use crate::view::{Place, View};
use crate::{field, format, words};

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let effect = match view.findings.comparisons.is_empty() {
        true => String::new(),
        false => format!(" Below it is the effect relative to the baseline: {}.", view.signs()),
    };
    let lead = format!(
        "Each value is the mean over {} (geometric; arithmetic where values may be zero). Its {} CI is in \
         parentheses.{effect}",
        parts::repetitions(view),
        view.confidence()
    );
    let mut blocks = if view.findings.steps.len() == 1 { one_step(view) } else { by_step(view) };
    blocks.extend(bound::blocks(view));
    blocks.extend(kinds::tables(view));
    blocks.extend((!view.findings.comparisons.is_empty()).then(parts::heat_key));
    blocks.extend(notes(view));
    blocks.extend(searches::probes(view));
    Some(Section::new("numbers", "Numbers", "The numbers", &lead).with(blocks))
}

/// What is to be known of the tables' values: which percentiles rest on little, and where a mean is beyond
/// one of them.
fn notes(view: &View<'_>) -> impl Iterator<Item = Block> {
    let all: Vec<MetricId> = view.findings.metrics.iter().map(|metric| metric.id).collect();
    let few = view.few_in_words(&all).map(Block::quiet);
    few.into_iter().chain(means_beyond(view).map(Block::quiet))
}

/// Where the mean response time is above the 95th or 99th percentile: few transactions took most of the
/// time.
fn means_beyond(view: &View<'_>) -> Option<String> {
    let value = |at: Place, metric| Some(view.estimate(at, metric)?.value);
    let is_beyond = |at: &Place| {
        let mean = value(*at, metrics::RESPONSE_MEAN);
        mean.is_some_and(|mean| value(*at, metrics::RESPONSE_P95).is_some_and(|p95| mean > p95))
    };
    let mut names: Vec<&str> =
        view.places().filter(is_beyond).map(|(variant, _)| view.variant(variant)).collect();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "For {}, the mean response time exceeds the p95: a few very slow transactions dominate it \
             (see the longest response time).",
            words::list(&names)
        )
    })
}

/// Steps beyond which tables are set more tightly.
const DENSE_FROM: usize = 6;

/// The metrics in groups: those that steps are judged by and what activities declare, costs, others.
struct Groups {
    main: Vec<MetricId>,
    costs: Vec<MetricId>,
    others: Vec<MetricId>,
}

impl Groups {
    /// Of main metrics and costs also those that have no value, because they come with a reason.
    fn new(view: &View<'_>) -> Groups {
        let (mut main, mut costs, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let is_known = |metric: &&Metric| {
            let is_absent = |cell: &dyno_analysis::Cell| cell.absent.contains_key(&metric.id);
            view.has(metric.id) || view.findings.cells.iter().any(is_absent)
        };
        let declared: Vec<MetricId> = view.findings.metrics.declared().map(|m| m.id).collect();
        let first = view.main_metrics();
        for metric in view.findings.metrics.iter().filter(is_known) {
            let is_main = first.contains(&metric.id) || metric.role == MetricRole::Main;
            let is_declared = declared.contains(&metric.id) && metric.role == MetricRole::Secondary;
            match metric.id {
                id if is_main || is_declared => main.push(id),
                id if is_cost(id) => costs.push(id),
                id if view.has(id) => others.push(id),
                _ => {}
            }
        }
        Groups { main, costs, others }
    }
}

/// Whether a metric is what the work cost: `server_cpu_per_transaction`.
pub(crate) fn is_cost(metric: MetricId) -> bool {
    metric.as_str().contains("_per_")
}

/// Variants at steps that fit beside each other; there a row is a metric, and one table has all.
const ACROSS_MOST: usize = 6;

fn places_across(view: &View<'_>) -> Option<Vec<Place>> {
    let n = view.variants().len() * view.steps().len();
    let of_step = |step: usize| view.variants().map(move |variant| (variant, step));
    (n <= ACROSS_MOST).then(|| view.steps().flat_map(of_step).collect())
}

/// A row for each metric, but for those that are equal everywhere: these are one line.
fn by_metric(view: &View<'_>, metrics: &[MetricId], places: &[Place]) -> Vec<Block> {
    let (same, shown): (Vec<MetricId>, Vec<MetricId>) =
        metrics.iter().partition(|metric| is_same(view, **metric, places));
    let head = |(variant, step): &Place| {
        let remarks = remarks(view, *variant);
        let step = (view.steps().len() > 1).then(|| view.step(*step).to_owned());
        let small: Vec<String> = step.into_iter().chain(remarks).collect();
        let name = view.name(*variant);
        if small.is_empty() { name } else { name.small(small.join(", ")) }
    };
    let heads = std::iter::once(Text::from("Metric")).chain(places.iter().map(head));
    let row = |metric: &MetricId| {
        let head = Cell::from(view.heading_with_unit(*metric)).head();
        let values: Vec<Cell> = places.iter().map(|at| cell(view, *at, *metric)).collect();
        std::iter::once(head.small(direction(view, *metric))).chain(values)
    };
    let table = Table::of(heads, 1).class("heat metrics").bare(|column| column == 0);
    let table: Option<Block> =
        (!shown.is_empty()).then(|| table.rows(shown.iter().map(row)).into());
    let value = |metric: &MetricId| {
        let value = places.iter().find_map(|at| view.estimate(*at, *metric)).map(format::value);
        format!("{} {}", view.metric(*metric).title, value.unwrap_or_default())
    };
    let same = (!same.is_empty()).then(|| {
        let values: Vec<String> = same.iter().map(value).collect();
        Block::quiet(format!("The same everywhere, in each repetition: {}.", values.join(", ")))
    });
    table.into_iter().chain(same).collect()
}

/// Whether a metric that nobody asked for has one value in all repetitions of all.
fn is_same(view: &View<'_>, metric: MetricId, places: &[Place]) -> bool {
    let all: Vec<&Estimate> = places.iter().filter_map(|at| view.estimate(*at, metric)).collect();
    let is_one = |e: &&Estimate| e.min == e.max && e.value == all[0].value;
    places.len() > 1
        && all.len() == places.len()
        && !view.is_judged(metric)
        && all.iter().all(is_one)
}

fn direction(view: &View<'_>, metric: MetricId) -> &'static str {
    match view.metric(metric).better {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neither => "",
    }
}

/// A table for each metric: a row for each variant, a column for each step. Few of both stand side by side in one.
fn by_step(view: &View<'_>) -> Vec<Block> {
    let groups = Groups::new(view);
    let across = places_across(view);
    let tables = |metrics: Vec<MetricId>| -> Vec<Block> {
        let Some(across) = &across else {
            return metrics.into_iter().filter_map(|id| table(view, id)).collect();
        };
        let (shown, missing): (Vec<MetricId>, Vec<MetricId>) =
            metrics.into_iter().partition(|metric| view.has(*metric));
        let missing = missing.into_iter().filter_map(|metric| absent(view, metric));
        by_metric(view, &shown, across).into_iter().chain(missing).collect()
    };
    let mut blocks: Vec<Block> = tables(groups.main);
    if !groups.costs.is_empty() {
        blocks.push(Block::heading(3, "Cost of a transaction"));
        blocks.extend(tables(groups.costs));
    }
    if !groups.others.is_empty() {
        let is_time =
            |metric: &MetricId| view.metric(*metric).unit == dyno_units::Unit::Microseconds;
        let what = if groups.others.iter().all(is_time) { "response times" } else { "metrics" };
        let n = words::counted(groups.others.len(), "more metric", "more metrics");
        let summary = format!("{n}: {what}");
        blocks.push(Block::fold(summary, false, tables(groups.others)));
    }
    blocks
}

/// With one step there is room for all metrics side by side.
fn one_step(view: &View<'_>) -> Vec<Block> {
    let Groups { main, costs, others } = Groups::new(view);
    let (shown, missing): (Vec<MetricId>, Vec<MetricId>) =
        [main, costs].concat().into_iter().partition(|metric| view.has(*metric));
    let shown = [shown, others].into_iter().filter(|metrics| !metrics.is_empty());
    let tables = shown.flat_map(|metrics| match places_across(view) {
        Some(places) => by_metric(view, &metrics, &places),
        None => {
            let tables =
                metrics.chunks(METRICS_ACROSS).map(|some| metrics_table(view, some).into());
            tables.collect()
        }
    });
    tables.chain(missing.into_iter().filter_map(|metric| absent(view, metric))).collect()
}

/// Metrics that fit beside each other.
const METRICS_ACROSS: usize = 6;

fn metrics_table(view: &View<'_>, metrics: &[MetricId]) -> Table {
    let heads = metrics.iter().map(|metric| view.heading_with_unit(*metric));
    let heads = std::iter::once("Variant".to_owned()).chain(heads);
    let row = |variant: usize| {
        let values = metrics.iter().map(move |metric| cell(view, (variant, 0), *metric));
        std::iter::once(row_head(view, variant)).chain(values)
    };
    let table = Table::of(heads, 1).class("heat").bare(|column| column == 0);
    table.rows(view.variants().map(row))
}

fn row_head(view: &View<'_>, variant: usize) -> Cell {
    let (head, remarks) = (view.head(variant), remarks(view, variant));
    if remarks.is_empty() { head } else { head.small(remarks.join(", ")) }
}

fn remarks(view: &View<'_>, variant: usize) -> Vec<String> {
    let is_even =
        view.findings.variants.windows(2).all(|pair| pair[0].finished == pair[1].finished);
    let finished = view.findings.variants[variant].finished;
    let remarks = [
        parts::is_baseline(view, variant).then(|| "baseline".to_owned()),
        mode(view, variant),
        (!is_even).then(|| format!("n = {finished}")),
    ];
    remarks.into_iter().flatten().collect()
}

/// How TPC-C's transactions follow each other, which its throughput means nothing without; none of
/// other workloads.
fn mode(view: &View<'_>, variant: usize) -> Option<String> {
    let modes = view.steps().map(|step| field::mode(view, (variant, step)));
    let modes = modes.map(|mode| mode.trim_start_matches(", ").to_owned());
    let mut modes: Vec<String> = modes.filter(|mode| !mode.is_empty()).collect();
    modes.dedup();
    (!modes.is_empty()).then(|| modes.join(" and "))
}

fn table(view: &View<'_>, metric: MetricId) -> Option<Block> {
    if !view.has(metric) {
        return absent(view, metric);
    }
    let mut table = parts::by_step(view, view.variants(), view.steps(), |variant, step| {
        cell(view, (variant, step), metric)
    });
    for (variant, row) in table.rows.iter_mut().enumerate() {
        row.cells[0] = row_head(view, variant);
    }
    // Many steps fit beside each other when bounds are below their values.
    let class = if view.findings.steps.len() > DENSE_FROM { "heat dense" } else { "heat" };
    let title = Text::from(view.heading_with_unit(metric)).text(" ").span(direction(view, metric));
    Some(table.titled(title).class(class).bare(|column| column == 0).into())
}

fn cell(view: &View<'_>, (variant, step): Place, metric: MetricId) -> Cell {
    let Some(cell) = view.cell(variant, step) else { return Cell::none("not measured") };
    let Some(estimate) = cell.metrics.get(&metric) else {
        let reason = cell.absent.get(&metric).map_or("not measured", String::as_str);
        return Cell::none("–").with("title", reason);
    };
    let comparison = view.comparison((variant, step), metric);
    let few = view.few((variant, step), metric);
    let cell = Cell::from(estimate_text(view, (estimate, few), comparison));
    let cell = match comparison.and_then(|c| parts::heat(view, c)) {
        Some((class, strength)) => cell.class(class).with("style", format!("--h:{strength}%")),
        None => cell.class(""),
    };
    cell.with("title", parts::describe(view.variant(variant), view.step(step), estimate))
}

fn estimate_text(
    view: &View<'_>,
    (estimate, few): (&Estimate, &str),
    comparison: Option<&Comparison>,
) -> Text {
    let (value, spread) = format::value_and_spread(estimate);
    let mut text = Text::default().b(format!("{value}{few}"));
    if !spread.is_empty() {
        let class = if spread.starts_with('(') { "range" } else { "" };
        text = text.text(" ").element(Element::of("i", spread).class(class));
    }
    let naked = if estimate.n == 1 { "n = 1, no CI" } else { "" };
    let Some(comparison) = comparison else { return text.small(naked) };
    // A sign beside the colour, and a word for those who see neither.
    let effect = view.effect_style(comparison.metric).show(comparison.relative.value);
    let joint = if naked.is_empty() { "" } else { ", " };
    // Of metrics that are not judged nothing is better or worse, but still undecided or the same.
    let judged = view.judged(comparison);
    let sign = match (view.is_judged(comparison.metric), comparison.verdict) {
        (true, _) => Text::of(Piece::Sign(judged)).text(" "),
        (false, Verdict::Inconclusive | Verdict::NoDifference) => {
            Text::from(format!("{} ", judged.sign()))
        }
        (false, _) => Text::default(),
    };
    text.element(Element::of("small", sign.text(format!("{effect}{joint}{naked}"))))
}

/// Says why a metric is nowhere, each reason once.
fn absent(view: &View<'_>, metric: MetricId) -> Option<Block> {
    let cells = view.findings.cells.iter();
    let reasons = words::sorted(cells.filter_map(|cell| cell.absent.get(&metric)));
    // Without load nobody expects response times.
    if reasons.is_empty() && dyno_analysis::is_watched(view.findings) {
        return None;
    }
    let reasons: Vec<String> = match reasons.is_empty() {
        true => vec!["It was not measured.".to_owned()],
        false => reasons.into_iter().map(|reason| words::full_sentence(reason)).collect(),
    };
    let text = Text::default().b(view.heading(metric)).text(": not available. ");
    Some(Block::absent(text.then(Piece::Prose(reasons.join(" "), Vec::new()))))
}

/// Outcomes with a column of their own, more than Dyno's drivers name.
const OUTCOMES_MOST: usize = 32;

/// Attempts by outcome, where any did not commit.
pub(super) fn outcomes(view: &View<'_>) -> Option<Block> {
    let cells = &view.findings.cells;
    let counted = cells.iter().flat_map(|cell| &cell.outcomes).filter(|(_, n)| **n > 0);
    let names = words::sorted(counted.map(|(name, _)| name));
    if names.iter().all(|name| *name == "committed")
        && cells.iter().all(|cell| cell.missed == 0 && cell.retries == 0)
    {
        let text = "Every attempt committed: no retries, no missed arrivals.";
        return (!names.is_empty()).then(|| Block::lead(text));
    }
    let (shown, has_more) = (&names[..names.len().min(OUTCOMES_MOST)], names.len() > OUTCOMES_MOST);
    let heads = ["Variant", view.step_head()].map(str::to_owned).into_iter();
    let heads = heads.chain(shown.iter().map(|name| name.replace('_', " ")));
    let heads = heads.chain(has_more.then(|| "other outcomes".to_owned()));
    let heads = heads.chain(["retries", "missed"].map(str::to_owned));
    let mut table = Table::of(heads, 2);
    for (variant, step) in view.places() {
        let Some(cell) = view.cell(variant, step) else { continue };
        let counts = shown.iter().map(|name| cell.outcomes.get(*name).copied().unwrap_or(0));
        let all = cell.outcomes.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let others = counts.clone().fold(all, u64::saturating_sub);
        let counts = counts.chain(has_more.then_some(others));
        let counts = counts.chain([cell.retries, cell.missed]).map(format::grouped);
        let place = [view.head(variant), view.step(step).into()];
        table.row(place.into_iter().chain(counts.map(Cell::from)));
    }
    let summary = "Attempts by outcome, retries, missed arrivals";
    Some(Block::fold(summary, false, vec![table.into()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_is_not_judged_has_the_signs_of_doubt_only() {
        let (findings, _) = crate::fixture::three_variants();
        let view = View::new(&findings);
        let mut all = findings.metrics.iter().map(|metric| metric.id);
        let metric = all.find(|metric| !view.is_judged(*metric)).unwrap();
        let of = |verdict: Verdict| {
            let comparison = Comparison { metric, verdict, ..findings.comparisons[0].clone() };
            estimate_text(&view, (&comparison.relative, ""), Some(&comparison)).plain()
        };
        assert!(of(Verdict::Inconclusive).contains('?') && of(Verdict::NoDifference).contains('='));
        assert!(!of(Verdict::Better).contains('✓') && !of(Verdict::Worse).contains('✗'));
    }
}
