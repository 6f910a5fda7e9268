//! The first screen: the question, the answer with one picture, and a few lines; below, folded,
//! every comparison, what the work costs, and the caveats.

use dyno_analysis::numbers::EffectStyle;
use dyno_analysis::statistics::REPETITIONS_CAP;
use dyno_analysis::{Caveat, Comparison, Estimate, MetricId, Verdict, metrics};

use super::Page;
use super::{parts, picture, price};
use crate::chart::strip::{self, Ruler};
use crate::document::Section;
use crate::format;
use crate::markup::{Markup, escape, kept_together};
use crate::measured;
use crate::view::View;
use crate::words::{self, Judged};

/// Letters of a headline that is set in the largest size.
const HEADLINE_LARGE: usize = 130;

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let answer = &view.findings.answer;
    let mut section = Section::new("answer", "Answer", "", "");
    let out = section.drawn();
    out.element("h1", &view.findings.title);
    let headline = kept_together(&answer.headline);
    // A long answer in the largest letters would fill the first screen by itself.
    let long = if headline.chars().count() > HEADLINE_LARGE { " long" } else { "" };
    out.raw(format_args!("<h2 class=\"headline{long}\">"))
        .prose_with(&headline, &view.unbroken_names())
        .raw("</h2>");
    if let Some(note) = &answer.note {
        out.raw("<p class=\"lead\">")
            .prose_with(&kept_together(note), &view.unbroken_names())
            .raw("</p>");
    }
    let conditions = measured::conditions(view);
    let above = if conditions.is_some() { "eyebrow above" } else { "eyebrow" };
    out.classed("p", above, kept_together(&measured::parts(view).join(" · ")));
    if let Some(conditions) = conditions {
        out.classed("p", "eyebrow", kept_together(&conditions));
    }
    picture::draw(out, view);
    sentences(out, view, &answer.lines);
    verdicts(out, view);
    price::section_below(out, view);
    caveats(out, view);
    Some(section)
}

fn sentences(out: &mut Markup, view: &View<'_>, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    out.raw("<ul class=\"details\">");
    for sentence in sentences {
        out.raw("<li>").prose_with(&kept_together(sentence), &view.unbroken_names()).raw("</li>");
    }
    out.raw("</ul>");
}

/// A place where a variant was compared: the comparison in the main metric of the step, and others.
struct Row<'a> {
    variant: usize,
    step: usize,
    main: Option<&'a Comparison>,
    others: Vec<Option<&'a Comparison>>,
}

impl<'a> Row<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Comparison> {
        std::iter::once(self.main).chain(self.others.iter().copied()).flatten()
    }
}

fn rows<'a>(view: &View<'a>, beside: &[MetricId]) -> Vec<Row<'a>> {
    let row = |(variant, step): (usize, usize)| {
        let main = view.main_comparison(variant, step);
        let other = |metric: &MetricId| {
            let found = view.comparison(variant, step, *metric);
            found.filter(|_| view.findings.steps[step].main_metric != *metric)
        };
        Row { variant, step, main, others: beside.iter().map(other).collect() }
    };
    view.places().map(row).filter(|row| row.all().next().is_some()).collect()
}

fn verdicts(out: &mut Markup, view: &View<'_>) {
    let mut beside = view.beside_main();
    let is_main = |metric: &MetricId| view.findings.steps.iter().all(|s| s.main_metric == *metric);
    beside.retain(|metric| !is_main(metric));
    let rows = rows(view, &beside);
    if rows.is_empty() {
        let text = match view.findings.variants.len() {
            1 => "No comparison: there is only one variant.",
            _ => "No comparison: no variant has a measured baseline.",
        };
        out.classed("p", "lead", text);
        sentences(out, view, &view.findings.answer.details);
        return;
    }
    let findings = view.findings;
    let threshold = findings.threshold * 100.0;
    let main = rows.iter().find_map(|row| row.main).map_or(metrics::THROUGHPUT, |c| c.metric);
    let is_mixed = main_metrics(&rows).len() > 1;
    let column = |(idx, metric): (usize, &MetricId)| {
        let of = rows.iter().filter_map(|r| if idx == 0 { r.main } else { r.others[idx - 1] });
        let ruler = Ruler::new(of.map(|c| &c.relative), threshold);
        let is_named = is_mixed && idx == 0;
        let heading = if is_named { "Main metric".to_owned() } else { view.heading(*metric) };
        Column { heading, ruler, style: view.effect_style(*metric), is_named }
    };
    let metrics = std::iter::once(&main).chain(&beside);
    let columns: Vec<Column> = metrics.enumerate().map(column).collect();
    out.raw("<details class=\"fold\">");
    let n = words::counted(rows.len(), "comparison", "comparisons");
    out.element("summary", format!("{n} with CIs and verdicts ({})", tallies(view, &rows)));
    out.classed("p", "quiet", legend(view, &rows));
    out.raw("<div class=\"scroll\"><table class=\"verdicts\"><thead><tr><th>Variant</th>");
    if findings.steps.len() > 1 {
        out.raw(format_args!("<th>{}</th>", view.step_head()));
    }
    columns.iter().for_each(|column| head(out, &column.heading, &column.ruler));
    out.raw("</tr></thead><tbody>");
    let mut variant_before = None;
    for row in &rows {
        let is_first = variant_before != Some(row.variant);
        variant_before = Some(row.variant);
        let first = if is_first { " first" } else { "" };
        out.raw(format_args!("<tr class=\"v{}{first}\">", row.variant));
        verdict_row(out, view, row, is_first);
        let of_row = std::iter::once(row.main).chain(row.others.iter().copied());
        for (comparison, column) in of_row.zip(&columns) {
            effect(out, view, comparison, column, threshold);
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
    if !findings.answer.details.is_empty() {
        out.element("h3", "In words");
        sentences(out, view, &findings.answer.details);
    }
    out.raw("</details>");
}

/// The heads of the three cells of an effect; the drawing's says where its ends are.
pub(crate) fn head(out: &mut Markup, name: &str, ruler: &Ruler) {
    let (low, high) = ruler.ends();
    out.raw(format_args!(
        "<th class=\"n\">{}</th><th class=\"strip\"><div class=\"ends\"><span>{low}</span>\
         <span>{high}</span></div></th><th>Verdict</th>",
        escape(name)
    ));
}

fn verdict_row(out: &mut Markup, view: &View<'_>, row: &Row<'_>, is_first: bool) {
    if is_first {
        let baseline = view.findings.variants[row.variant].baseline.map(|b| view.variant(b));
        out.raw(format_args!("<th scope=\"row\">{}", parts::name(view, row.variant)));
        if let Some(baseline) = baseline {
            out.raw(format_args!("<small>vs. {}</small>", escape(baseline)));
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

fn legend(view: &View<'_>, rows: &[Row<'_>]) -> String {
    let (confidence, threshold) = (view.confidence(), view.threshold());
    let mut text = format!(
        "Effect with its {confidence} CI and n repetitions. The grey band is ± {threshold}: an effect whose CI \
         lies within it counts as no difference. Verdicts: {}.",
        view.signs()
    );
    let has_p = |c: &Comparison| c.p_value_of_verdict.is_some();
    if rows.iter().flat_map(Row::all).any(has_p) {
        text += " p: how often noise alone would produce an effect at least this large (t-test on the \
                 logarithms, adjusted for multiple comparisons by Holm's method; CIs are not adjusted).";
    }
    text
}

struct Column {
    heading: String,
    ruler: Ruler,
    style: EffectStyle,
    /// Whether its effects are of several metrics, so that each names its own.
    is_named: bool,
}

/// The main metrics of these rows, each once, in their order.
fn main_metrics(rows: &[Row<'_>]) -> Vec<MetricId> {
    let mut all = Vec::new();
    for comparison in rows.iter().filter_map(|row| row.main) {
        if !all.contains(&comparison.metric) {
            all.push(comparison.metric);
        }
    }
    all
}

fn tallies(view: &View<'_>, rows: &[Row<'_>]) -> String {
    let of =
        |metric: MetricId| format!("{}: {}", view.metric(metric).title, tally(view, rows, metric));
    main_metrics(rows).into_iter().map(of).collect::<Vec<_>>().join("; ")
}

/// How many comparisons of a main metric ended with which verdict; verdicts that none has are left out.
fn tally(view: &View<'_>, rows: &[Row<'_>], metric: MetricId) -> String {
    Judged::ALL
        .into_iter()
        .filter_map(|judged| {
            let is_it = |c: &Comparison| c.metric == metric && view.judged(c) == judged;
            let n = rows.iter().filter(|row| row.main.is_some_and(is_it)).count();
            (n > 0).then(|| format!("{n} {}", judged.word()))
        })
        .collect::<Vec<_>>()
        .join(" · ")
}

/// Three cells: the effect in numbers, as a drawing, and the verdict. A narrow screen shows the metric's
/// name in place of the table's head.
fn effect(
    out: &mut Markup,
    view: &View<'_>,
    comparison: Option<&Comparison>,
    column: &Column,
    threshold: f64,
) {
    let Some(comparison) = comparison else {
        out.raw("<td class=\"n\">–</td><td></td><td></td>");
        return;
    };
    let relative = &comparison.relative;
    let (of, style, named) = match column.is_named {
        true => {
            let metric = comparison.metric;
            let named = format!("{}, ", view.metric(metric).title);
            (view.heading(metric), view.effect_style(metric), named)
        }
        false => (column.heading.clone(), column.style, String::new()),
    };
    let judged = view.judged(comparison);
    let class = judged.class();
    out.raw(format_args!(
        "<td class=\"n\" data-of=\"{}\"><b>{}</b><small>{}{}</small></td><td class=\"strip\">{}</td>\
         <td class=\"v\">{}",
        escape(&of),
        style.show(relative.value),
        escape(&named),
        escape(&spread(relative, style)),
        strip::effect(relative, &column.ruler, threshold, class),
        parts::badge(judged)
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
    let names: Vec<&str> = caveats.iter().map(|caveat| words::caveat(caveat.kind)).collect();
    let named = |same: &[&str]| match same.len() {
        1 => same[0].to_owned(),
        n => format!("{} ({n})", same[0]),
    };
    let names: Vec<String> = names.chunk_by(|a, b| a == b).map(named).collect();
    let n = words::counted(caveats.len(), "caveat", "caveats");
    out.raw("<details class=\"fold\">");
    out.element(
        "summary",
        format!("{n} to read before you rely on these results: {}", names.join(" · ")),
    );
    out.raw("<ul class=\"caveats\">");
    for caveat in caveats {
        parts::caveat(out, caveat, &scope(view, caveat));
    }
    out.raw("</ul></details>");
}

/// A caveat that concerns all variants, or all steps, names as many; of more it says how many.
const NAMED_MOST: usize = 3;

fn scope(view: &View<'_>, caveat: &Caveat) -> String {
    let variants: Vec<&str> = caveat.variants.iter().map(|v| view.variant(*v)).collect();
    let steps: Vec<&str> = caveat.steps.iter().map(|s| view.step(*s)).collect();
    let noun = view.findings.step_noun();
    let parts: Vec<String> = [
        (variants, view.findings.variants.len(), "variant"),
        (steps, view.findings.steps.len(), noun),
    ]
    .into_iter()
    .filter(|(names, ..)| !names.is_empty())
    .map(|(names, n_all, noun)| match names.len() {
        n if n == n_all && n > NAMED_MOST => format!("all {n} {noun}s"),
        _ => names.join(", "),
    })
    .collect();
    parts.join(" · ")
}
