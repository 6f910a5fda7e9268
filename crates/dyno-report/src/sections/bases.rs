//! Differences from a baseline that the reader chooses: a row for each variant, a column for each step.
//!
//! Without a script they are those from the baseline of the study, with its verdicts. The others are
//! effects with an interval each, as the findings hold them; no verdict was made on them.

use dyno_analysis::{Comparison, MetricId, OtherEffect};

use super::parts;
use crate::document::{Block, Cell, Element, Text};
use crate::view::View;
use crate::words;

/// The chooser and a table for each metric; nothing where nothing is compared, or where there is
/// no other baseline to choose.
pub(crate) fn tables(view: &View<'_>) -> Vec<Block> {
    let findings = view.findings;
    if findings.comparisons.is_empty() || findings.other_effects.is_empty() {
        return Vec::new();
    }
    let confidence = view.confidence();
    let study = format!(
        "Relative to the study's baseline, with {confidence} confidence intervals and verdicts: {}.",
        view.signs()
    );
    let other = format!(
        "Estimates relative to the chosen baseline, each with its own {confidence} confidence interval, not \
         adjusted for multiple comparisons. The study was not designed for this comparison, so \
         there are no verdicts. A variant that the study compares with the chosen baseline keeps its \
         verdict."
    );
    let note = |of: &str, text: String| {
        Element::of("p", text).class("quiet base-note").with("data-of", of)
    };
    let heading = Block::heading(3, "Differences from a baseline of your choice");
    let above = [chooser(view), note("study", study), note("other", other).hidden()];
    let tables = view.main_metrics().into_iter().filter_map(|metric| table(view, metric));
    let above = above.map(Block::Control).into_iter();
    [heading].into_iter().chain(above).chain(tables).chain([Block::Control(data(view))]).collect()
}

fn chooser(view: &View<'_>) -> Element {
    let own = view.findings.variants.iter().filter_map(|variant| variant.baseline);
    let own = words::distinct(own.map(|baseline| view.variant(baseline)));
    let first = (String::new(), format!("as in the study: {}", own.join(", ")));
    let variants = view.findings.variants.iter().enumerate();
    let others = variants.map(|(idx, variant)| (idx.to_string(), variant.name.clone()));
    let choice = parts::choice("Baseline", "base", std::iter::once(first).chain(others));
    Element::new("p").class("chooser").hidden().inside([choice])
}

fn table(view: &View<'_>, metric: MetricId) -> Option<Block> {
    let variants = view.variants();
    let is_compared =
        |step: &usize| variants.clone().any(|v| view.comparison((v, *step), metric).is_some());
    let steps = view.steps().filter(is_compared);
    steps.clone().next()?;
    let table = parts::by_step(view, variants.clone(), steps, |variant, step| {
        let comparison = view.comparison((variant, step), metric);
        let cell = match (view.findings.variants[variant].baseline, comparison) {
            (_, Some(comparison)) => effect(view, comparison),
            (None, None) => Cell::none(Text::default().i("baseline")),
            (Some(_), None) => Cell::none("–"),
        };
        let cell = cell.with("data-at", format!("{variant} {step}"));
        match comparison {
            Some(comparison) => cell.with("data-base", comparison.baseline),
            None => cell,
        }
    });
    let mut table = table.titled(view.heading(metric)).class("heat dense bases");
    table.attributes.push(("data-metric", words::slug(metric)));
    Some(table.into())
}

fn effect(view: &View<'_>, comparison: &Comparison) -> Cell {
    let judged = view.judged(comparison);
    let (class, strength) = parts::heat(view, comparison).unwrap_or(("", 0));
    let style = view.effect_style(comparison.metric);
    let effect = format!("{} {}", judged.sign(), style.show(comparison.relative.value));
    let bounds = style.interval(&comparison.relative);
    let text = Text::default().b(effect).small(bounds.unwrap_or_else(|| "no CI".to_owned()));
    Cell::from(text).class(class).with("style", format!("--h:{strength}%"))
}

/// What the script shows: metric, variant, baseline, step, percent, low, high.
fn data(view: &View<'_>) -> Element {
    let shown = view.main_metrics();
    let number = |value: Option<f64>| match value {
        Some(value) if value.is_finite() => format!("{value:.1}"),
        _ => "-".to_owned(),
    };
    let entry = |e: &OtherEffect| {
        let place = format!("{} {} {} {}", words::slug(e.metric), e.variant, e.baseline, e.step);
        let [percent, low, high] = [Some(e.percent), e.low, e.high].map(number);
        format!("{place} {percent} {low} {high}")
    };
    let is_shown = |e: &&OtherEffect| shown.contains(&e.metric);
    let all: Vec<String> = view.findings.other_effects.iter().filter(is_shown).map(entry).collect();
    Element::new("data").with("id", "bases").hidden().with("value", all.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_analysis::metrics;

    use crate::fixture;

    #[test]
    fn the_baseline_of_the_study_comes_first_and_the_others_are_data() {
        let (mut findings, _) = fixture::three_variants();
        let render = |findings: &dyno_analysis::Findings| {
            crate::document::html::shown(&tables(&View::new(findings)))
        };
        assert_eq!(render(&findings), "");
        findings.other_effects = vec![OtherEffect {
            variant: 2,
            baseline: 1,
            step: 3,
            metric: metrics::THROUGHPUT,
            percent: 12.34,
            low: Some(8.0),
            high: None,
            n: 3,
        }];
        let html = render(&findings);
        let first = &findings.comparisons[0];
        let effect = findings.effect_style(first.metric).show(first.relative.value);
        let sign = words::Judged::Verdict(first.verdict).sign();
        assert!(html.contains(&format!("<b>{sign} {effect}</b>")), "{html}");
        assert!(html.contains("value=\"throughput 2 1 3 12.3 8.0 -\""), "{html}");
        assert!(html.contains("data-of=\"other\" hidden>"), "{html}");
        assert!(html.contains("<i>baseline</i>") && html.contains("there are no verdicts"));
    }
}
