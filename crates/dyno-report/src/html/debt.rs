//! Debt: what the engine put off while the load went on, and how long it took to pay it afterwards.

use dyno_analysis::Estimate;
use dyno_analysis::debt::{DebtFacts, DebtTrend};
use dyno_record::{Run, RunOff, TrialOutcome};
use dyno_units::Reading;
use dyno_units::reading::Topic;

use super::Page;
use super::panel::{Panel, Quantity, Source, small, with_unit};
use super::parts;
use super::readings::{Meanings, meanings, unit_of_code};
use crate::chart::lines::{Across, LinesChart, Series, Shape};
use crate::chart::reduce::Point;
use crate::chart::variant_class;
use crate::document::Section;
use crate::findings_index::FindingsIndex;
use crate::format::{self, Unit};
use crate::markup::Markup;
use crate::view::View;

/// Most points of a line of the run-off.
const POINTS: usize = 300;

/// The section; none where no debt was seen.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let Page { view, steps, runs, points, .. } = *page;
    let n = view.findings.variants.len();
    let known = |d: &&DebtFacts| d.variant < n && d.step < view.findings.steps.len();
    let facts: Vec<&DebtFacts> = view.findings.debt.iter().filter(known).collect();
    let run_offs = run_offs(view, runs);
    if facts.is_empty() && run_offs.is_empty() && view.findings.run_off.is_empty() {
        return None;
    }
    let mut section = Section::new(
        "debt",
        "Deferred work",
        "Deferred work",
        "Work that the engine deferred under load: history to purge, tombstones, dead rows, dirty \
         pages, log to be checkpointed. If the backlog keeps growing, the engine cannot sustain \
         the load.",
    );
    let out = section.drawn();
    for (step, trials) in steps.iter().enumerate() {
        let own: Vec<&DebtFacts> = facts.iter().copied().filter(|d| d.step == step).collect();
        if own.is_empty() {
            continue;
        }
        parts::open_panel(out, view, step);
        table(out, view, &own);
        charts(out, &Panel { view, step, trials, points }, &own);
        out.raw("</div>");
    }
    run_off(out, view, &run_offs, &meanings(runs));
    Some(section)
}

fn table(out: &mut Markup, view: &View<'_>, facts: &[&DebtFacts]) {
    out.raw(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Deferred work</th><th \
         scope=\"col\">Variant</th>",
    );
    for title in ["At the start", "At the end", "Highest", "Slope per second"] {
        out.raw(format_args!("<th class=\"n\" scope=\"col\">{title}</th>"));
    }
    out.raw("<th class=\"n\" scope=\"col\">n</th><th scope=\"col\">Trend</th></tr></thead><tbody>");
    let mut ordered = facts.to_vec();
    ordered.sort_by(|a, b| (&a.reading, a.variant).cmp(&(&b.reading, b.variant)));
    let mut before = "";
    for debt in ordered {
        let unit = unit_of_code(&debt.unit);
        out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">", debt.variant));
        out.element("code", debt.reading.trim_start_matches("debt."));
        if before != debt.reading {
            out.element("small", &debt.meaning);
        }
        before = &debt.reading;
        out.raw("</th>");
        out.raw(format_args!("<td>{}</td>", parts::name(view, debt.variant)));
        for estimate in [&debt.at_start, &debt.at_end, &debt.most] {
            // Debt is never below zero, so neither are its bounds.
            level(out, estimate, &unit, 0.0);
        }
        level(out, &debt.slope_per_s, &unit, f64::NEG_INFINITY);
        out.classed("td", "n", debt.slope_per_s.n.to_string());
        let (class, trend) = match debt.trend {
            DebtTrend::Grew => ("bad", "grew"),
            DebtTrend::Shrank => ("", "shrank"),
            // Wide bounds that hold zero are no proof of a level.
            DebtTrend::Level if is_flat(&debt.slope_per_s) => ("", "level"),
            DebtTrend::Level => ("none", "undecided"),
            DebtTrend::Unknown => ("none", "unknown: only one repetition"),
        };
        out.classed("td", class, trend).raw("</tr>");
    }
    out.raw("</tbody></table></div>").classed(
        "p",
        "quiet",
        format!(
            "Means over n repetitions, with their {} CIs below. Deferred work grew or shrank if the CI \
             of its slope excludes zero; otherwise the trend is undecided.",
            view.confidence()
        ),
    );
}

/// Whether a slope is zero in all repetitions.
fn is_flat(slope: &Estimate) -> bool {
    slope.low == Some(0.0) && slope.high == Some(0.0)
}

/// A cell with a value with its bounds below, none of them below `least`.
fn level(out: &mut Markup, estimate: &Estimate, unit: &Unit, least: f64) {
    out.raw("<td class=\"n\">").element("b", unit.show(estimate.value));
    if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
        out.element("small", format::range(&unit.show(low.max(least)), &unit.show(high)));
    }
    out.raw("</td>");
}

fn charts(out: &mut Markup, panel: &Panel<'_>, facts: &[&DebtFacts]) {
    let mut names: Vec<&DebtFacts> = Vec::new();
    for debt in facts {
        if !names.iter().any(|known| known.reading == debt.reading) {
            names.push(debt);
        }
    }
    out.raw("<div class=\"charts small\">");
    for debt in names {
        let quantity = Quantity {
            title: debt.title.clone(),
            note: debt.meaning.clone(),
            unit: unit_of_code(&debt.unit),
            source: Source::Reading(debt.reading.clone()),
            is_marked: false,
        };
        panel.overlay(out, &quantity, small());
    }
    out.raw("</div>");
}

fn run_offs<'a>(view: &View<'_>, runs: &'a [Run]) -> Vec<(usize, &'a RunOff)> {
    let places = FindingsIndex::new(view.findings, runs);
    let mut found = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        for trial in run.trials.iter().filter(|t| t.outcome == TrialOutcome::Finished) {
            let variant = places.variant(i, trial.number);
            found.extend(variant.zip(trial.run_off.as_ref()));
        }
    }
    found.sort_by_key(|(variant, _)| *variant);
    found
}

fn run_off(
    out: &mut Markup,
    view: &View<'_>,
    run_offs: &[(usize, &RunOff)],
    meanings: &Meanings<'_>,
) {
    let known = view.findings.run_off.iter().filter(|r| r.variant < view.findings.variants.len());
    let known_debts: Vec<_> = known.collect();
    if known_debts.is_empty() && run_offs.is_empty() {
        return;
    }
    out.element("h3", "Run-off: time from the end of the load until the engine had caught up");
    if !known_debts.is_empty() {
        out.raw(
            "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Variant</th><th class=\"n\" \
             scope=\"col\">Caught up after</th>",
        );
        out.raw("<th scope=\"col\">What happened</th></tr></thead><tbody>");
        for facts in known_debts {
            out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">", facts.variant));
            out.raw(parts::name(view, facts.variant)).raw("</th>");
            let paid = facts.paid_after_s.as_ref();
            let more = if facts.unpaid.is_empty() { "" } else { "more than " };
            let text =
                paid.map_or("–".to_owned(), |e| format!("{more}{}", format::seconds(e.value)));
            out.classed("td", "n", text).element("td", &facts.summary).raw("</tr>");
        }
        out.raw("</tbody></table></div>");
    }
    let mut names: Vec<&String> = run_offs.iter().flat_map(|(_, r)| r.readings.keys()).collect();
    names.sort_unstable();
    names.dedup();
    out.raw("<div class=\"charts small\">");
    for name in names {
        let debt = meanings.get(name.as_str()).filter(|one| one.topic == Topic::Debt);
        debt.into_iter().for_each(|one| curve(out, view, run_offs, (name, one)));
    }
    out.raw("</div>");
}

fn curve(
    out: &mut Markup,
    view: &View<'_>,
    run_offs: &[(usize, &RunOff)],
    (name, reading): (&str, &Reading),
) {
    let mut series = Vec::new();
    let (mut most, mut least, mut to) = (0.0_f64, 0.0_f64, 1.0_f64);
    let mut before = None;
    for (variant, run_off) in run_offs {
        let Some(column) = run_off.readings.get(name) else { continue };
        let finite = |v: &Option<f64>| v.filter(|v| v.is_finite());
        let times = run_off.start_s.iter().copied();
        let points: Vec<Point> = times.zip(column.iter().map(finite)).collect();
        let values = || points.iter().filter_map(|p| p.1);
        most = values().fold(most, f64::max);
        least = values().fold(least, f64::min);
        to = points.iter().map(|p| p.0).filter(|s| s.is_finite()).fold(to, f64::max);
        let is_first = before.replace(*variant) != Some(*variant);
        series.push(Series {
            class: format!("l med {}", variant_class(*variant)),
            name: is_first.then(|| view.variant(*variant).to_owned()),
            shape: Shape::Line(points),
        });
    }
    let unit = Unit::from(&reading.unit);
    let note = with_unit("seconds since the load ended; one line per trial", &unit);
    let legend = view.legend(small().width);
    let chart = LinesChart {
        label: format!("{} after the load", reading.title),
        row: "runoff".to_owned(),
        across: Across::Seconds { from: 0.0, to },
        unit,
        is_log: false,
        values: (least, most),
        series,
        picture: None,
        attributes: String::new(),
        moments: Vec::new(),
        frame: legend.fit(small()),
        legend,
        max_points: POINTS,
    };
    parts::figure(out, "", &reading.title, &note, &chart.svg());
}
