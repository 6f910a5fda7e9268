//! Differences from a baseline that the reader chooses: a row for each variant, a column for each step.
//!
//! Without a script they are those from the baseline of the study, with its verdicts. The others are
//! effects with an interval each, as the findings hold them; no verdict was made on them.

use dyno_analysis::{Comparison, MetricId, OtherEffect};

use super::parts;
use crate::format;
use crate::markup::{Markup, escape};
use crate::view::View;
use crate::words;

/// Writes the chooser and a table for each metric; nothing where nothing is compared, or where there is
/// no other baseline to choose.
pub(crate) fn tables(out: &mut Markup, view: &View<'_>) {
    let findings = view.findings;
    if findings.comparisons.is_empty() || findings.other_effects.is_empty() {
        return;
    }
    out.element("h3", "Differences from a baseline of your choice");
    chooser(out, view);
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
    for (of, hidden, text) in [("study", "", study), ("other", " hidden", other)] {
        out.raw(format_args!("<p class=\"quiet base-note\" data-of=\"{of}\"{hidden}>"));
        out.text(text).raw("</p>");
    }
    for metric in view.main_metrics() {
        table(out, view, metric);
    }
    data(out, view);
}

fn chooser(out: &mut Markup, view: &View<'_>) {
    let mut own: Vec<&str> = Vec::new();
    for baseline in view.findings.variants.iter().filter_map(|variant| variant.baseline) {
        if !own.contains(&view.variant(baseline)) {
            own.push(view.variant(baseline));
        }
    }
    out.raw("<p class=\"chooser\" hidden><label>Baseline <select id=\"base\"><option value=\"\">");
    out.text(format!("as in the study: {}", own.join(", "))).raw("</option>");
    for (i, variant) in view.findings.variants.iter().enumerate() {
        out.raw(format_args!("<option value=\"{i}\">{}</option>", escape(&variant.name)));
    }
    out.raw("</select></label></p>");
}

fn table(out: &mut Markup, view: &View<'_>, metric: MetricId) {
    let steps: Vec<usize> = (0..view.findings.steps.len())
        .filter(|step| {
            (0..view.findings.variants.len()).any(|v| view.comparison(v, *step, metric).is_some())
        })
        .collect();
    if steps.is_empty() {
        return;
    }
    let name = words::slug(metric);
    out.raw(format_args!(
        "<div class=\"scroll\"><table class=\"heat dense bases\" data-metric=\"{name}\"><caption>"
    ));
    out.text(view.heading(metric));
    out.raw("</caption><thead><tr><th scope=\"col\">Variant</th>");
    for step in &steps {
        out.raw("<th class=\"n\" scope=\"col\">").text(view.step(*step)).raw("</th>");
    }
    out.raw("</tr></thead><tbody>");
    for (variant, facts) in view.findings.variants.iter().enumerate() {
        out.raw(format_args!("<tr class=\"v{variant}\"><th scope=\"row\">"));
        out.raw(parts::name(view, variant)).raw("</th>");
        for step in &steps {
            let at = format!("data-at=\"{variant} {step}\"");
            match (facts.baseline, view.comparison(variant, *step, metric)) {
                (_, Some(comparison)) => cell(out, view, &at, comparison),
                (None, None) => {
                    out.raw(format_args!("<td class=\"n none\" {at}><i>baseline</i></td>"));
                }
                (Some(_), None) => {
                    out.raw(format_args!("<td class=\"n none\" {at}>–</td>"));
                }
            }
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
}

fn cell(out: &mut Markup, view: &View<'_>, at: &str, comparison: &Comparison) {
    let judged = view.judged(comparison);
    let (class, strength) = parts::heat(judged, comparison).unwrap_or(("", 0));
    let sign = judged.sign();
    out.raw(format_args!(
        "<td class=\"n {class}\" style=\"--h:{strength}%\" {at} data-base=\"{}\">",
        comparison.baseline
    ));
    out.element("b", format!("{sign} {}", format::effect_of(&comparison.relative)));
    let bounds = format::interval(&comparison.relative);
    out.element("small", bounds.unwrap_or_else(|| "no CI".to_owned())).raw("</td>");
}

/// What the script shows: metric, variant, baseline, step, percent, low, high.
fn data(out: &mut Markup, view: &View<'_>) {
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
    out.raw(format_args!("<data id=\"bases\" hidden value=\"{}\"></data>", all.join(";")));
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
            let mut out = Markup::new();
            tables(&mut out, &View::new(findings));
            out.finish()
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
        let effect = format::effect_of(&first.relative);
        let sign = words::Judged::Verdict(first.verdict).sign();
        assert!(html.contains(&format!("<b>{sign} {effect}</b>")), "{html}");
        assert!(html.contains("value=\"throughput 2 1 3 12.3 8.0 -\""), "{html}");
        assert!(html.contains("data-of=\"other\" hidden>"), "{html}");
        assert!(html.contains("<i>baseline</i>") && html.contains("there are no verdicts"));
    }
}
