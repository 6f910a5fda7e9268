//! Pieces that several sections use: legends, badges, figures, headings.

use dyno_analysis::{Caveat, Comparison, Estimate, Verdict};

use crate::chart::variant_class;
use crate::format;
use crate::markup::{Markup, escape, kept_together};
use crate::view::View;
use crate::words::{self, Judged};

/// What stays in sight: each variant is a button that shows it alone, and each step one that shows
/// the step, everywhere. Without a script all is shown.
pub(crate) fn sticky_legend(out: &mut Markup, view: &View<'_>) {
    out.raw("<div class=\"legend\"><div class=\"keys\" role=\"group\" aria-label=\"Variants\">");
    for (i, variant) in view.findings.variants.iter().enumerate() {
        out.raw(format_args!(
            "<button type=\"button\" class=\"key {}\" data-variant=\"{i}\" \
             aria-pressed=\"false\">{}{}",
            variant_class(i),
            swatch(i),
            escape(&variant.name),
        ));
        if is_baseline(view, i) {
            out.raw(" <i>baseline</i>");
        }
        out.raw("</button>");
    }
    out.raw("<span class=\"hint\" hidden>Click a variant to see it alone.</span></div>");
    steps(out, view);
    out.raw("</div>");
}

fn steps(out: &mut Markup, view: &View<'_>) {
    let n = view.findings.steps.len();
    if n < 2 {
        return;
    }
    let first = view.first_step();
    let head = view.step_head();
    out.raw(format_args!(
        "<div class=\"steps\" role=\"group\" aria-label=\"{head}\" hidden><span>{head}</span>"
    ));
    for step in 0..n {
        out.raw(format_args!(
            "<button type=\"button\" data-step=\"{step}\" aria-pressed=\"{}\">{}</button>",
            step == first,
            escape(view.step(step))
        ));
    }
    out.raw("<button type=\"button\" data-step=\"all\" aria-pressed=\"false\">all</button></div>");
}

/// Opens what shows one step only; with a script only that of the chosen step is in sight.
pub(crate) fn open_panel(out: &mut Markup, view: &View<'_>, step: usize) {
    let on = if step == view.first_step() { " on" } else { "" };
    out.raw(format_args!("<div class=\"panel{on}\" data-step=\"{step}\">"));
    if view.findings.steps.len() > 1 {
        out.element("h3", view.step(step));
    }
}

pub(crate) fn is_baseline(view: &View<'_>, variant: usize) -> bool {
    view.findings.variants.iter().any(|v| v.baseline == Some(variant))
}

pub(crate) fn swatch(variant: usize) -> String {
    format!(
        "<svg class=\"sw {}\" viewBox=\"0 0 18 10\" aria-hidden=\"true\"><path d=\"M1 5H17\" \
         class=\"l\"/></svg>",
        variant_class(variant)
    )
}

pub(crate) fn name(view: &View<'_>, variant: usize) -> String {
    crate::document::html::named(variant, view.variant(variant))
}

pub(crate) fn badge(judged: Judged) -> String {
    format!(
        "<span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span>",
        judged.class(),
        judged.sign(),
        judged.word()
    )
}

/// A verdict as a sign, with its word for screen readers.
pub(crate) fn sign(judged: Judged) -> String {
    format!("<span role=\"img\" aria-label=\"{}\">{}</span>", judged.word(), judged.sign())
}

/// A figure: title, what it shows, and the chart. `class` may be empty.
pub(crate) fn figure(out: &mut Markup, class: &str, title: &str, note: &str, svg: &str) {
    out.raw(format_args!("<figure class=\"chart {class}\"><figcaption>"));
    out.element("b", title);
    if !note.is_empty() {
        out.element("span", note);
    }
    out.raw("</figcaption>").raw(svg).raw("</figure>");
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
pub(crate) fn below(estimate: &Estimate, comparison: Option<&Comparison>) -> String {
    let effect = comparison.map(|comparison| format::effect_of(&comparison.relative));
    let naked = (estimate.n == 1).then(|| "n = 1, no CI".to_owned());
    [effect, naked].into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// How a cell is coloured: only what was decided to be better or worse, so that a table's colours
/// claim no more than its verdicts; by the effect against 30 %, in percent of the full colour.
pub(crate) fn heat(judged: Judged, comparison: &Comparison) -> Option<(&'static str, u32)> {
    let (Judged::Verdict(Verdict::Better) | Judged::Verdict(Verdict::Worse)) = judged else {
        return None;
    };
    let class = judged.class();
    let value = comparison.relative.value;
    let size = if value.is_finite() { value.abs() } else { 0.0 };
    let strength = (size / 30.0).sqrt().clamp(0.25, 1.0) * 62.0;
    Some((class, strength.round() as u32))
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

pub(crate) use crate::words::{full_sentence, sentence};

/// A caveat as an item of a list; `scope` is what it concerns, and may be empty.
pub(crate) fn caveat(out: &mut Markup, caveat: &Caveat, scope: &str) {
    out.raw("<li>").element("b", sentence(words::caveat(caveat.kind)));
    if !scope.is_empty() {
        out.classed("span", "scope", scope);
    }
    out.raw("<p>").prose(&kept_together(&caveat.message)).raw("</p><p class=\"advice\">");
    out.prose(&kept_together(&caveat.advice)).raw("</p></li>");
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
        let effect = format::effect_of(&comparison.relative);
        assert!(with_n(&estimate).ends_with(", n = 3") && !with_n(&estimate).contains("no CI"));
        assert_eq!(below(&estimate, Some(comparison)), effect);
        assert_eq!(below(&estimate, None), "");
        (estimate.low, estimate.high, estimate.n) = (None, None, 1);
        assert!(with_n(&estimate).ends_with(", no CI, n = 1"));
        assert_eq!(below(&estimate, Some(comparison)), format!("{effect}, n = 1, no CI"));
        assert_eq!(below(&estimate, None), "n = 1, no CI");
    }

    #[test]
    fn only_what_was_decided_is_coloured() {
        let (findings, _) = fixture::three_variants();
        let mut comparison = findings.comparisons[0].clone();
        let mut check = |verdict, percent, expected| {
            comparison.verdict = verdict;
            comparison.relative.value = percent;
            assert_eq!(
                heat(Judged::Verdict(verdict), &comparison),
                expected,
                "{verdict:?} {percent}"
            );
        };
        // A large effect that chance explains has no colour, a small one that it does not has some.
        check(Verdict::Inconclusive, 80.0, None);
        check(Verdict::NoDifference, 2.0, None);
        check(Verdict::Better, 30.0, Some(("better", 62)));
        check(Verdict::Worse, -1.0, Some(("worse", 16)));
        check(Verdict::Worse, f64::NAN, Some(("worse", 16)));
    }
}
