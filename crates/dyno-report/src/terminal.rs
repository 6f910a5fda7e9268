//! Findings → plain text for a terminal: the answer, one table, the caveats.

use dyno_analysis::{Comparison, Findings, MetricId, is_watched, metrics};

use crate::document::terminal::Screen;
use crate::document::{Block, Cell, Table};
use crate::field;
use crate::format;
use crate::measured;
use crate::view::View;

#[cfg(test)]
mod tests;

/// Renders findings for a terminal of `width` columns. With `colour`, verdicts are coloured by ANSI
/// escape sequences; without, by words and signs alone. Control characters in names
/// and messages are replaced, so that no text from a server can steer the terminal.
pub fn render(findings: &Findings, width: usize, colour: bool) -> String {
    let screen = Screen::new(width, colour);
    let mut out = String::new();
    screen.blocks(&mut out, &document(&View::new(findings), &screen));
    out
}

fn document(view: &View<'_>, screen: &Screen) -> Vec<Block> {
    let findings = view.findings;
    let mut all = vec![
        Block::Title(findings.title.clone()),
        Block::Headline(findings.answer.headline.clone()),
    ];
    all.extend(findings.answer.note.clone().map(Block::Paragraph));
    all.push(Block::List(findings.answer.lines.clone()));
    all.push(Block::Paragraph(measured::parts(view).join(" · ")));
    all.extend(measured::conditions(view).map(Block::Paragraph));
    all.extend(tables(view, screen));
    all.push(Block::Caveats(findings.caveats.clone()));
    all.push(Block::Messages(failures(findings)));
    all
}

/// The tables of estimates and effects, with p95 beside them where there is room, else below.
fn tables(view: &View<'_>, screen: &Screen) -> Vec<Block> {
    if is_watched(view.findings) && !view.has(view.main_metric()) {
        return Vec::new();
    }
    let declared = view.findings.metrics.declared().map(|metric| metric.id);
    let beside: Vec<MetricId> = std::iter::once(metrics::RESPONSE_P95)
        .chain(declared)
        .filter(|metric| view.has(*metric) && *metric != view.main_metric())
        .collect();
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

/// Whether effects are against different variants, so that each has to name its own.
fn has_several_baselines(view: &View<'_>) -> bool {
    let mut baselines = main_comparisons(view).map(|c| c.baseline);
    let first = baselines.next();
    baselines.any(|baseline| Some(baseline) != first)
}

/// Columns of estimates before their effects: variant, step, n, value.
const PLACE_AND_VALUE: usize = 4;

fn estimates(view: &View<'_>, beside: &[MetricId]) -> Table {
    let is_compared = !view.findings.comparisons.is_empty();
    let main_head = field::main_head(view, view.main_metric());
    let mut heads = vec!["variant", view.findings.step_noun(), "n", &*main_head];
    heads.extend(beside.iter().map(|metric| short(view, *metric)));
    let effect_head = effect_head(view);
    if is_compared {
        heads.extend([&*effect_head, "verdict"]);
    }
    let mut table = Table::new("", &heads, 2);
    if is_compared {
        table = table.with_text(&[heads.len() - 1]);
    }
    let rows = view.places().filter_map(|place| row(view, place, (is_compared, beside)));
    rows.for_each(|row| table.row(row));
    match has_several_baselines(view) {
        true => with_baselines(view, &table),
        false => table,
    }
}

fn with_baselines(view: &View<'_>, table: &Table) -> Table {
    let mut heads: Vec<&str> = table.columns.iter().map(|column| &*column.head).collect();
    heads.push("relative to");
    let mut wider = Table::new("", &heads, 2).with_text(&[heads.len() - 2, heads.len() - 1]);
    let places = view.places().filter(|(variant, step)| view.cell(*variant, *step).is_some());
    for ((variant, step), row) in places.zip(&table.rows) {
        let against = view.main_comparison(variant, step).map_or("", |c| view.variant(c.baseline));
        wider.row(row.iter().cloned().chain([Cell::from(against)]));
    }
    wider
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

fn row(
    view: &View<'_>,
    at: (usize, usize),
    (is_compared, beside): (bool, &[MetricId]),
) -> Option<Vec<Cell>> {
    let (variant, step) = at;
    view.cell(variant, step)?;
    let main = view.estimate(variant, step, view.main_metric());
    let absent = || "–".to_owned();
    let mut texts = vec![
        view.variant(variant).to_owned(),
        view.step(step).to_owned(),
        main.map_or_else(absent, |estimate| estimate.n.to_string()),
        main.map_or_else(absent, |e| {
            let few = view.few(variant, step, view.main_metric());
            format!("{}{few}{}", format::estimate(e), field::mode(view, at))
        }),
    ];
    let value = |metric: &MetricId| view.estimate(variant, step, *metric);
    let marked = |metric: &MetricId| {
        let few = view.few(variant, step, *metric);
        value(metric).map_or_else(absent, |estimate| format!("{}{few}", format::estimate(estimate)))
    };
    texts.extend(beside.iter().map(marked));
    let mut cells: Vec<Cell> = texts.into_iter().map(Cell::from).collect();
    if is_compared {
        match view.main_comparison(variant, step) {
            Some(c) => {
                cells.push(effect(view, c).into());
                cells.push(Cell::Verdict(view.judged(c)));
            }
            None => cells.extend([Cell::from(""), Cell::from("")]),
        }
    }
    Some(cells)
}

fn estimates_of(view: &View<'_>, metric: MetricId) -> Table {
    let mut table =
        Table::new("", &["variant", view.findings.step_noun(), "n", &view.metric(metric).title], 2);
    for (variant, step) in view.places() {
        let Some(estimate) = view.estimate(variant, step, metric) else { continue };
        let place = [view.variant(variant), view.step(step)].map(str::to_owned);
        let value = format!("{}{}", format::estimate(estimate), view.few(variant, step, metric));
        table.row([place, [estimate.n.to_string(), value]].concat());
    }
    table
}

fn failures(findings: &Findings) -> Vec<String> {
    let failed = findings.trials.iter().filter_map(|trial| Some((trial, trial.message.as_ref()?)));
    let line = |(trial, message): (&dyno_analysis::TrialFacts, &String)| {
        format!("Trial {} {}: {message}", trial.number, trial.state)
    };
    failed.map(line).collect()
}
