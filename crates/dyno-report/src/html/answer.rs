//! The first screen: the question, the answer with one picture, and a few lines; below, folded,
//! every comparison, what the work costs, and the caveats.

use dyno_analysis::numbers::EffectStyle;
use dyno_analysis::statistics::REPETITIONS_CAP;
use dyno_analysis::{Caveat, Comparison, Estimate, Metric, Verdict};

use super::{parts, picture, price};
use crate::chart::strip::{self, Ruler};
use crate::format;
use crate::markup::{Markup, escape, kept_together};
use crate::view::View;
use crate::words;

/// Letters of a headline that is set in the largest size.
const HEADLINE_LARGE: usize = 130;

/// Writes the section.
pub(crate) fn section(out: &mut Markup, view: &View<'_>) {
    let answer = &view.findings.answer;
    out.raw("<section id=\"answer\">");
    out.classed("p", "eyebrow", summary(view));
    out.element("h1", &view.findings.title);
    let headline = kept_together(&answer.headline);
    // A long answer in the largest letters would fill the first screen by itself.
    let long = if headline.chars().count() > HEADLINE_LARGE { " long" } else { "" };
    out.raw(format_args!("<h2 class=\"headline{long}\">")).prose(&headline).raw("</h2>");
    picture::draw(out, view);
    sentences(out, &answer.lines);
    verdicts(out, view);
    price::beneath(out, view);
    caveats(out, view);
    out.raw("</section>");
}

/// A list of sentences.
fn sentences(out: &mut Markup, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    out.raw("<ul class=\"details\">");
    for sentence in sentences {
        out.raw("<li>").prose(&kept_together(sentence)).raw("</li>");
    }
    out.raw("</ul>");
}

/// What was done, in one line.
fn summary(view: &View<'_>) -> String {
    let findings = view.findings;
    let in_state = |state: &str| findings.trials.iter().filter(|t| t.state == state).count();
    let mut trials = words::counted(findings.trials.len(), "trial", "trials");
    for state in ["failed", "missing", "not needed"] {
        if in_state(state) > 0 {
            trials += &format!(", {} {state}", in_state(state));
        }
    }
    [
        words::counted(findings.variants.len(), "variant", "variants"),
        words::counted(findings.steps.len(), "step", "steps"),
        trials,
        format!("effects below {} do not matter", parts::threshold(view)),
        format!("{} confidence", parts::confidence(view)),
    ]
    .join(" · ")
}

/// The places where a variant was compared, with throughput and p95.
struct Row<'a> {
    variant: usize,
    step: usize,
    throughput: Option<&'a Comparison>,
    p95: Option<&'a Comparison>,
}

fn rows<'a>(view: &View<'a>) -> Vec<Row<'a>> {
    view.places()
        .map(|(variant, step)| Row {
            variant,
            step,
            throughput: view.main_comparison(variant, step),
            p95: view
                .comparison(variant, step, Metric::ResponseP95)
                .filter(|_| view.findings.steps[step].main_metric != Metric::ResponseP95),
        })
        .filter(|row| row.throughput.is_some() || row.p95.is_some())
        .collect()
}

fn verdicts(out: &mut Markup, view: &View<'_>) {
    let rows = rows(view);
    if rows.is_empty() {
        out.classed("p", "lead", "No comparison: no variant has a baseline that was measured.");
        sentences(out, &view.findings.answer.details);
        return;
    }
    let findings = view.findings;
    let threshold = findings.threshold * 100.0;
    let has_p95 = rows.iter().any(|row| row.p95.is_some());
    let throughput = rows.iter().filter_map(|r| r.throughput).map(|c| &c.relative);
    let p95 = rows.iter().filter_map(|r| r.p95).map(|c| &c.relative);
    let rulers = (Ruler::new(throughput, threshold), Ruler::new(p95, threshold));
    let main = rows.iter().find_map(|row| row.throughput).map_or(Metric::Throughput, |c| c.metric);
    let styles = (view.effect_style(main), view.effect_style(Metric::ResponseP95));
    out.raw("<details class=\"fold\">");
    let n = words::counted(rows.len(), "comparison", "comparisons");
    out.element("summary", format!("{n} with CIs and verdicts: {}", tally(&rows)));
    out.raw("<div class=\"scroll\"><table class=\"verdicts\"><thead><tr><th>Variant</th>");
    if findings.steps.len() > 1 {
        out.raw("<th>Step</th>");
    }
    let main = super::tables::title(main);
    head(out, &main, &rulers.0);
    if has_p95 {
        head(out, "p95 response time", &rulers.1);
    }
    out.raw("</tr></thead><tbody>");
    let mut variant_before = None;
    for row in &rows {
        let is_first = variant_before != Some(row.variant);
        variant_before = Some(row.variant);
        let first = if is_first { " first" } else { "" };
        out.raw(format_args!("<tr class=\"v{}{first}\">", row.variant));
        verdict_row(out, view, row, is_first);
        effect(out, (&main, row.throughput), (&rulers.0, styles.0), threshold);
        if has_p95 {
            effect(out, ("p95 response time", row.p95), (&rulers.1, styles.1), threshold);
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
    out.classed("p", "quiet", legend(view, &rows));
    if !findings.answer.details.is_empty() {
        out.element("h3", "In words");
        sentences(out, &findings.answer.details);
    }
    out.raw("</details>");
}

/// The heads of the three cells of an effect; the drawing's says where its ends are.
pub(crate) fn head(out: &mut Markup, name: &str, ruler: &Ruler) {
    let (low, high) = ruler.ends();
    out.raw(format_args!(
        "<th class=\"n\">{name}</th><th class=\"strip\"><div class=\"ends\"><span>{low}</span>\
         <span>{high}</span></div></th><th>Verdict</th>"
    ));
}

fn verdict_row(out: &mut Markup, view: &View<'_>, row: &Row<'_>, is_first: bool) {
    if is_first {
        let baseline = view.findings.variants[row.variant].baseline.map(|b| view.variant(b));
        out.raw(format_args!("<th scope=\"row\">{}", parts::name(view, row.variant)));
        if let Some(baseline) = baseline {
            out.raw(format_args!("<small>against {}</small>", escape(baseline)));
        }
        out.raw("</th>");
    } else {
        let name = escape(view.variant(row.variant));
        out.raw(format_args!("<th scope=\"row\"><span class=\"again\">{name}</span></th>"));
    }
    if view.findings.steps.len() > 1 {
        out.element("td", view.step(row.step));
    }
}

/// How to read the table.
fn legend(view: &View<'_>, rows: &[Row<'_>]) -> String {
    let (confidence, threshold) = (parts::confidence(view), parts::threshold(view));
    let mut text = format!(
        "Effect with its {confidence} CI and n repetitions; the grey band is ± {threshold}, too \
         small to matter."
    );
    let has_p = |c: &Comparison| c.p_value_of_verdict.is_some();
    if rows.iter().any(|r| r.throughput.is_some_and(has_p) || r.p95.is_some_and(has_p)) {
        text += " p: how often noise alone would show an effect at least this large; corrected for \
                 the number of comparisons (Student's t of the logarithms, Holm).";
    }
    text
}

/// How many comparisons ended with which verdict in the main metric; verdicts that none has are left
/// out.
fn tally(rows: &[Row<'_>]) -> String {
    [Verdict::Better, Verdict::Worse, Verdict::NoDifference, Verdict::Inconclusive]
        .into_iter()
        .filter_map(|verdict| {
            let has = |r: &&Row<'_>| r.throughput.is_some_and(|c| c.verdict == verdict);
            let n = rows.iter().filter(has).count();
            (n > 0).then(|| format!("{n} {}", words::verdict(verdict)))
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// Three cells: the effect in numbers, as a drawing, and the verdict. `of` is the metric's name, which
/// a narrow screen shows in place of the table's head.
fn effect(
    out: &mut Markup,
    (of, comparison): (&str, Option<&Comparison>),
    (ruler, style): (&Ruler, EffectStyle),
    threshold: f64,
) {
    let Some(comparison) = comparison else {
        out.raw("<td class=\"n\">–</td><td></td><td></td>");
        return;
    };
    let relative = &comparison.relative;
    let class = words::verdict_class(comparison.verdict);
    out.raw(format_args!(
        "<td class=\"n\" data-of=\"{}\"><b>{}</b><small>{}</small></td><td class=\"strip\">{}</td>\
         <td class=\"v\">{}",
        escape(of),
        style.show(relative.value),
        escape(&spread(relative, style)),
        strip::effect(relative, ruler, threshold, class),
        parts::badge(comparison.verdict)
    ));
    let mut remarks = Vec::new();
    let is_asked = comparison.verdict != Verdict::NoDifference;
    if let Some(p) = comparison.p_value_of_verdict.filter(|_| is_asked) {
        remarks.push(format::p_value(p));
    }
    if let Some(n) = comparison.repetitions_needed {
        remarks.push(match n {
            REPETITIONS_CAP.. => format!("even {n} repetitions might not be enough"),
            n => format!("roughly {n} repetitions needed"),
        });
    }
    if !remarks.is_empty() {
        out.classed("small", "", remarks.join(" · "));
    }
    out.raw("</td>");
}

/// Confidence interval and repetitions of an effect.
fn spread(relative: &Estimate, style: EffectStyle) -> String {
    match style.interval(relative) {
        Some(interval) => format!("{interval}, n = {}", relative.n),
        None => format!("no CI, n = {}", relative.n),
    }
}

fn caveats(out: &mut Markup, view: &View<'_>) {
    let caveats = &view.findings.caveats;
    if caveats.is_empty() {
        out.classed(
            "p",
            "lead",
            "No caveats: nothing was found that casts doubt on these numbers.",
        );
        return;
    }
    let mut names: Vec<&str> = caveats.iter().map(|caveat| words::caveat(caveat.kind)).collect();
    names.dedup();
    let n = words::counted(caveats.len(), "caveat", "caveats");
    out.raw("<details class=\"fold\">");
    out.element("summary", format!("{n}: {}", names.join(" · ")));
    out.raw("<ul class=\"caveats\">");
    for caveat in caveats {
        out.raw("<li>").element("b", parts::sentence(words::caveat(caveat.kind)));
        let scope = scope(view, caveat);
        if !scope.is_empty() {
            out.classed("span", "scope", scope);
        }
        out.raw("<p>").prose(&caveat.message).raw("</p><p class=\"advice\">");
        out.prose(&caveat.advice).raw("</p></li>");
    }
    out.raw("</ul></details>");
}

/// The variants and steps that a caveat concerns.
fn scope(view: &View<'_>, caveat: &Caveat) -> String {
    let variants: Vec<&str> = caveat.variants.iter().map(|v| view.variant(*v)).collect();
    let steps: Vec<&str> = caveat.steps.iter().map(|s| view.step(*s)).collect();
    let parts: Vec<String> = [variants, steps]
        .into_iter()
        .filter(|names| !names.is_empty())
        .map(|names| names.join(", "))
        .collect();
    parts.join(" · ")
}
