//! Pieces that several sections use: legends, panels of steps, values with their bounds.

use dyno_analysis::{Comparison, Estimate, Verdict};

use crate::chart::strip::{self, Ruler};
use crate::chart::{swatch, variant_class};
use crate::document::{Block, Cell, Column, Element, Piece, Table, Text};
use crate::format;
use crate::view::View;
use crate::words::Judged;

/// What stays in sight: each variant is a button that shows it alone, and each step one that shows
/// the step, everywhere. Without a script all is shown.
pub(crate) fn sticky_legend(view: &View<'_>) -> Block {
    let key = |(idx, variant): (usize, &dyno_analysis::VariantFacts)| {
        let mut text = Text::of(Piece::Drawing(swatch(idx))).text(&*variant.name);
        if is_baseline(view, idx) {
            text = text.text(" ").i("baseline");
        }
        let key = Element::of("button", text).with("type", "button");
        key.class(format!("key {}", variant_class(idx)))
            .with("data-variant", idx)
            .with("aria-pressed", false)
    };
    let keys = view.findings.variants.iter().enumerate().map(key);
    let hint = Element::of("span", "Click a variant to see it alone.").class("hint").hidden();
    let keys = group_of_buttons("keys", "Variants").inside(keys).inside([hint]);
    Block::Control(Element::new("div").class("legend").inside([keys]).inside(steps(view)))
}

/// The names of all variants with their colours, above a drawing that has no room for them.
pub(crate) fn names_above(view: &View<'_>) -> Block {
    let name = |variant: usize| {
        Element::of("span", Text::of(Piece::Drawing(swatch(variant))).text(view.label(variant)))
    };
    Block::Note("modes", view.variants().map(name).fold(Text::default(), Text::element))
}

fn group_of_buttons(class: &str, label: &str) -> Element {
    Element::new("div").class(class).with("role", "group").with("aria-label", label)
}

fn steps(view: &View<'_>) -> Option<Element> {
    let n = view.findings.steps.len();
    let button = |step: String, is_on: bool, text: &str| {
        let button = Element::of("button", text).with("type", "button");
        button.with("data-step", step).with("aria-pressed", is_on)
    };
    let first = view.first_step();
    let buttons = (0..n).map(|step| button(step.to_string(), step == first, view.step(step)));
    let head = view.step_head();
    let steps = group_of_buttons("steps", head).hidden().inside([Element::of("span", head)]);
    let all = button("all".to_owned(), false, "all");
    (n > 1).then(|| steps.inside(buttons).inside([all]))
}

/// What shows one step only; with a script only that of the chosen step is in sight.
pub(crate) fn panel(view: &View<'_>, step: usize, blocks: Vec<Block>) -> Block {
    let class = if step == view.first_step() { "panel on" } else { "panel" };
    let has_heading = view.findings.steps.len() > 1;
    let heading = has_heading.then(|| Block::heading(3, view.step(step)));
    let panel = Element::new("div").class(class).with("data-step", step);
    Block::Group(panel, heading.into_iter().chain(blocks).collect())
}

/// A table with a row for each of these variants and a column for each of these steps.
pub(crate) fn by_step(
    view: &View<'_>,
    variants: impl IntoIterator<Item = usize>,
    steps: impl Iterator<Item = usize> + Clone,
    cell: impl Fn(usize, usize) -> Cell,
) -> Table {
    let heads = std::iter::once("Variant").chain(steps.clone().map(|step| view.step(step)));
    let row = |variant: usize| {
        let cells: Vec<Cell> = steps.clone().map(|step| cell(variant, step)).collect();
        std::iter::once(view.head(variant)).chain(cells)
    };
    Table::of(heads, 1).rows(variants.into_iter().map(row))
}

/// A choice for the page's script: each option has a value and a text.
pub(crate) fn choice(
    label: &str,
    id: &str,
    options: impl IntoIterator<Item = (String, String)>,
) -> Element {
    let option = |(value, text): (String, String)| Element::of("option", text).with("value", value);
    let select = Element::new("select").with("id", id);
    let select = select.inside(options.into_iter().map(option));
    Element::of("label", format!("{label} ")).inside([select])
}

/// A value with its bounds beside it, if it has some.
pub(crate) fn estimate(estimate: &Estimate, mark: &str) -> Text {
    let (value, spread) = format::value_and_spread(estimate);
    let text = Text::default().b(format!("{value}{mark}"));
    if spread.is_empty() { text } else { text.text(" ").i(spread) }
}

pub(crate) fn is_baseline(view: &View<'_>, variant: usize) -> bool {
    view.findings.variants.iter().any(|v| v.baseline == Some(variant))
}

pub(crate) fn describe(name: &str, step: &str, estimate: &Estimate) -> String {
    let value = format::value(estimate);
    let bounds = format::interval(estimate).map_or(String::new(), |b| format!(" ({b})"));
    format!("{name} · {step}: {value}{bounds}, n = {}", estimate.n)
}

/// A value as it stands alone in a text: with its bounds, or that there are none, and its
/// repetitions.
pub(crate) fn with_n(estimate: &Estimate) -> String {
    format!("{}, n = {}", format::estimate(estimate), estimate.n)
}

/// What stands below a value in a table of estimates: its effect, and that it has no bounds; empty
/// where it is a value with bounds that is not compared.
pub(crate) fn below(
    view: &View<'_>,
    estimate: &Estimate,
    comparison: Option<&Comparison>,
) -> String {
    let effect = comparison.map(|c| view.effect_style(c.metric).show(c.relative.value));
    let naked = (estimate.n == 1).then(|| "n = 1, no CI".to_owned());
    [effect, naked].into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// How a cell is coloured: only what was decided to be better or worse, so that a table's colours
/// claim no more than its verdicts, and only in what the study is about; by the ratio, whichever of both is larger,
/// in percent of the full colour.
pub(crate) fn heat(view: &View<'_>, comparison: &Comparison) -> Option<(&'static str, u32)> {
    let judged = view.judged(comparison);
    let is_decided = matches!(judged, Judged::Verdict(Verdict::Better | Verdict::Worse));
    let strength = strength(comparison.relative.value);
    (is_decided && view.is_judged(comparison.metric)).then(|| (judged.class(), strength))
}

/// Ratios from which on a cell has so much of the full colour.
const STRENGTHS: [(f64, u32); 4] = [(1.0, 6), (1.25, 12), (2.0, 20), (4.0, 30)];

fn strength(percent: f64) -> u32 {
    let ratio = format::as_ratio(percent);
    // Nothing at all, and what is no number, is as far as can be, and as near.
    let size = if ratio > 0.0 { ratio.max(ratio.recip()) } else { f64::INFINITY };
    let reached = STRENGTHS.iter().rev().find(|(from, _)| size >= from * (1.0 - 1e-9));
    reached.map_or(STRENGTHS[0].1, |(_, strength)| *strength)
}

/// What the colours of cells mean, below tables that have some.
pub(crate) fn heat_key() -> Block {
    let swatch = |class: &str, strength: u32| {
        let swatch = Element::new("i").class(format!("cell-key {class}"));
        swatch.with("style", format!("--h:{strength}%"))
    };
    let step = |(from, strength): (f64, u32)| {
        let text = if from == 1.0 { "decided".to_owned() } else { format!("from {from}×") };
        let [better, worse] = ["better", "worse"].map(|class| swatch(class, strength));
        Element::of("span", Text::default().element(better).element(worse).text(text))
    };
    let text = Text::from("Better and worse, by the ratio: ");
    Block::Note("modes", STRENGTHS.into_iter().map(step).fold(text, Text::element))
}

/// How many repetitions estimates rest on: `n = 5 repetitions`, `n = 3–5 repetitions`.
pub(crate) fn repetitions(view: &View<'_>) -> String {
    let counts = view.findings.variants.iter().map(|variant| variant.finished);
    let counts = counts.filter(|n| *n > 0);
    let (Some(least), Some(most)) = (counts.clone().min(), counts.max()) else {
        return "repetitions".to_owned();
    };
    match (least, most) {
        (1, 1) => "n = 1 repetition".to_owned(),
        (a, b) if a == b => format!("n = {a} repetitions"),
        (a, b) => format!("n = {a}–{b} repetitions"),
    }
}

/// The columns of an effect: its numbers, its drawing, whose head says where its ends are, and the verdict.
pub(crate) fn heads_of(name: &str, ruler: &Ruler) -> [Column; 3] {
    let (low, high) = ruler.ends();
    let ends = [low, high].map(|end| Element::of("span", end));
    let ends = Text::default().element(Element::new("div").class("ends").inside(ends));
    let heads = [(name.into(), Some("n")), (ends, Some("strip")), ("Verdict".into(), None)];
    heads.map(|(head, class)| {
        let is_number = class == Some("n");
        Column { head, is_number, class, is_bare: true }
    })
}

pub(crate) fn strip(view: &View<'_>, relative: &Estimate, ruler: &Ruler, judged: Judged) -> Cell {
    let threshold = view.findings.threshold * 100.0;
    let drawing = strip::effect(relative, ruler, threshold, judged.class());
    Cell::from(Text::of(Piece::Drawing(drawing))).class("strip")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn no_value_is_told_without_its_bounds_or_that_there_are_none() {
        let (findings, _) = fixture::three_variants();
        let metrics = &findings.cells[0].metrics;
        let mut estimate = metrics[&dyno_analysis::metrics::THROUGHPUT].clone();
        let comparison = &findings.comparisons[0];
        let view = View::new(&findings);
        let effect = view.effect_style(comparison.metric).show(comparison.relative.value);
        assert!(with_n(&estimate).ends_with(", n = 3") && !with_n(&estimate).contains("no CI"));
        assert_eq!(below(&view, &estimate, Some(comparison)), effect);
        assert_eq!(below(&view, &estimate, None), "");
        (estimate.low, estimate.high, estimate.n) = (None, None, 1);
        assert!(with_n(&estimate).ends_with(", no CI, n = 1"));
        assert_eq!(below(&view, &estimate, Some(comparison)), format!("{effect}, n = 1, no CI"));
        assert_eq!(below(&view, &estimate, None), "n = 1, no CI");
    }

    #[test]
    fn only_what_was_decided_and_asked_is_coloured() {
        let (findings, _) = fixture::three_variants();
        let view = View::new(&findings);
        let mut comparison = findings.comparisons[0].clone();
        let mut check = |metric, verdict, percent, expected| {
            (comparison.metric, comparison.verdict) = (metric, verdict);
            comparison.relative.value = percent;
            assert_eq!(heat(&view, &comparison), expected, "{metric:?} {verdict:?} {percent}");
        };
        use dyno_analysis::metrics::{RESPONSE_P95, SERVER_CPU, THROUGHPUT};
        // A large effect that chance explains has no colour, a small one that it does not has some.
        check(THROUGHPUT, Verdict::Inconclusive, 80.0, None);
        check(THROUGHPUT, Verdict::NoDifference, 2.0, None);
        check(THROUGHPUT, Verdict::Worse, -1.0, Some(("worse", 6)));
        check(RESPONSE_P95, Verdict::Better, 30.0, Some(("better", 12)));
        // Half is as far as twice.
        check(THROUGHPUT, Verdict::Worse, -50.0, Some(("worse", 20)));
        check(THROUGHPUT, Verdict::Better, 100.0, Some(("better", 20)));
        check(THROUGHPUT, Verdict::Better, 900.0, Some(("better", 30)));
        check(THROUGHPUT, Verdict::Worse, -100.0, Some(("worse", 30)));
        // What follows from another effect is no merit.
        check(SERVER_CPU, Verdict::Better, -60.0, None);
    }
}
