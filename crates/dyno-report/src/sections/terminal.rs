//! The evidence of a terminal: one table, or as many as its width takes.

use dyno_analysis::{Comparison, MetricId, is_watched, metrics};

use super::{bound, page::Page};
use crate::document::terminal::Screen;
use crate::document::{Block, Cell, Section, Table};
use crate::view::{Place, View};
use crate::{field, format, words};

/// The tables of estimates and effects, with p95 beside them where there is room, else below.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    Some(Section::of(tables(page.view, &Screen::new(page.width, false))))
}

fn tables(view: &View<'_>, screen: &Screen) -> Vec<Block> {
    if is_watched(view.findings) && !view.has(view.main_metric()) {
        return Vec::new();
    }
    let declared = view.findings.metrics.declared().map(|metric| metric.id);
    let beside = std::iter::once(metrics::RESPONSE_P95).chain(declared);
    let is_beside = |metric: &MetricId| view.has(*metric) && *metric != view.main_metric();
    let beside: Vec<MetricId> = beside.filter(is_beside).collect();
    let wide = estimates(view, &beside);
    if wide.rows.is_empty() {
        return vec![Block::Messages(vec!["Nothing was measured.".to_owned()])];
    }
    let mut shown = vec![wide];
    if !screen.fits(&shown[0]) {
        let main = estimates(view, &[]);
        shown = match screen.fits(&main) || main.columns.len() <= PLACE_AND_VALUE {
            true => vec![main],
            // Effects below the values, so that the names of variants stay whole.
            false => {
                let effects: Vec<usize> =
                    [0, 1].into_iter().chain(PLACE_AND_VALUE..main.columns.len()).collect();
                vec![main.with_columns(&[0, 1, 2, 3]), main.with_columns(&effects)]
            }
        };
        shown.extend(beside.into_iter().map(|metric| estimates_of(view, metric)));
    }
    shown.extend(field::tables(view));
    shown.extend(bound::listed(view));
    let confidence = view.confidence();
    let corrected = match main_comparisons(view).count() {
        0 | 1 => "",
        _ => " Verdicts are adjusted for multiple comparisons (Holm's method); CIs are not.",
    };
    let signs = view.signs_of(&mut main_comparisons(view));
    let signs = if signs.is_empty() { String::new() } else { format!(" {signs}.") };
    let main = view.main_metric();
    let marked = view.few_in_words(&[metrics::RESPONSE_P95, main]);
    let marked = marked.map_or(String::new(), |text| format!(" {text}"));
    let legend = format!("n: repetitions. (low–high): {confidence} CI.{corrected}{signs}{marked}");
    let legend = Block::Paragraph(legend);
    std::iter::once(legend).chain(shown.into_iter().map(Block::Table)).collect()
}

fn main_comparisons<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a Comparison> {
    view.places().filter_map(|(variant, step)| view.main_comparison(variant, step))
}

/// Columns of estimates before their effects: variant, step, n, value.
const PLACE_AND_VALUE: usize = 4;

fn estimates(view: &View<'_>, beside: &[MetricId]) -> Table {
    let (main_head, effect_head) = (field::main_head(view, view.main_metric()), effect_head(view));
    let heads = ["variant", view.findings.step_noun(), "n", &*main_head].into_iter();
    let heads = heads.chain(beside.iter().map(|metric| short(view, *metric)));
    let heads = heads.chain([&*effect_head, "verdict", "relative to"]);
    let table = Table::of(heads, 2);
    let table = table.rows(view.places().filter_map(|place| row(view, place, beside)));
    let n = table.columns.len();
    // Effects against different variants name their own.
    let n_baselines = words::distinct(main_comparisons(view).map(|c| c.baseline)).len();
    let n_shown = match (view.findings.comparisons.is_empty(), n_baselines) {
        (true, _) => n - 3,
        (false, 0 | 1) => n - 1,
        _ => n,
    };
    table.with_text(&[n - 2, n - 1]).only(&(0..n_shown).collect::<Vec<_>>())
}

/// What all effects of the table are of, where that is one metric, and not the value beside them.
fn effect_metric(view: &View<'_>) -> Option<MetricId> {
    let mut metrics = main_comparisons(view).map(|comparison| comparison.metric);
    let first = metrics.next()?;
    (first != view.main_metric() && metrics.all(|metric| metric == first)).then_some(first)
}

fn effect_head(view: &View<'_>) -> String {
    match effect_metric(view) {
        Some(metric) => format!("effect on {}", short(view, metric)),
        None => "effect".to_owned(),
    }
}

/// An effect with its confidence interval. If effects of the table are of different metrics, those that
/// are not of the value beside them name theirs.
fn effect(view: &View<'_>, comparison: &Comparison) -> String {
    let text = view.effect_style(comparison.metric).with_ci(&comparison.relative);
    let is_named = comparison.metric != view.main_metric() && effect_metric(view).is_none();
    if is_named { format!("{text} on {}", short(view, comparison.metric)) } else { text }
}

fn short<'a>(view: &View<'a>, metric: MetricId) -> &'a str {
    match metric {
        metrics::RESPONSE_P95 => "p95",
        other => &view.metric(other).title,
    }
}

fn row(view: &View<'_>, at: Place, beside: &[MetricId]) -> Option<Vec<Cell>> {
    let (variant, step) = at;
    view.cell(variant, step)?;
    let value = |metric: MetricId, mode: &str| {
        let few = view.few((variant, step), metric);
        let estimate = view.estimate((variant, step), metric);
        let shown = estimate.map(|estimate| format!("{}{few}{mode}", format::estimate(estimate)));
        Cell::from(shown.unwrap_or_else(|| "–".to_owned()))
    };
    let main = view.main_metric();
    let n = view.estimate((variant, step), main).map(|estimate| estimate.n.to_string());
    let place = [
        view.variant(variant).into(),
        view.step(step).into(),
        n.unwrap_or_else(|| "–".to_owned()).into(),
        value(main, &field::mode(view, at)),
    ];
    let beside = beside.iter().map(|metric| value(*metric, ""));
    let comparison = view.main_comparison(variant, step);
    let compared = [
        comparison.map_or(Cell::default(), |c| effect(view, c).into()),
        comparison.map_or(Cell::default(), |c| Cell::verdict(view.judged(c))),
        comparison.map_or("", |c| view.variant(c.baseline)).into(),
    ];
    Some(place.into_iter().chain(beside).chain(compared).collect())
}

fn estimates_of(view: &View<'_>, metric: MetricId) -> Table {
    let row = |(variant, step): Place| {
        let estimate = view.estimate((variant, step), metric)?;
        let place = [view.variant(variant), view.step(step)].map(str::to_owned);
        let value = format!("{}{}", format::estimate(estimate), view.few((variant, step), metric));
        Some([place, [estimate.n.to_string(), value]].concat())
    };
    let heads = ["variant", view.findings.step_noun(), "n", &view.metric(metric).title];
    Table::of(heads, 2).rows(view.places().filter_map(row))
}

/// Why trials failed.
pub(crate) fn failures(page: &Page<'_>) -> Option<Section> {
    let trials = page.view.findings.trials.iter();
    let failed = trials.filter_map(|trial| Some((trial, trial.message.as_ref()?)));
    let line = |(trial, message): (&dyno_analysis::TrialFacts, &String)| {
        format!("Trial {} {}: {message}", trial.number, trial.state)
    };
    Some(Section::of([Block::Messages(failed.map(line).collect())]))
}
