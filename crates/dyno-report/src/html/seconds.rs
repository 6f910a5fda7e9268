//! One-second charts of what the clients saw: every second of every step, warm-up shaded, stalls and
//! changes of level marked; and response times of a stretch of time that the reader chooses.
//!
//! Variants share a chart. Repetitions are light, their median is bold.

use dyno_analysis::kinds::KindCell;
use dyno_analysis::stalls::{Moved, StallFacts};
use dyno_analysis::{Estimate, MetricId, metrics};

use super::Page;
use super::panel::{Panel, Quantity, Source, large};
use super::{kind_seconds, parts, steadiness};
use crate::document::Section;
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
use crate::times::{Grid, Times};
use crate::view::View;
use crate::words;

/// Stalls that are listed without being asked for.
const STALLS_OPEN: usize = 12;

const STALLS_MOST: usize = 200;

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let Page { view, steps, times, points, .. } = *page;
    let mut section = Section::new(
        "seconds",
        "Over time",
        "Second by second",
        "Thin lines: individual repetitions; thick line: their median. Warm-up is shaded and not part of any \
         estimate. Dotted lines mark faults, stalls and level shifts. Drag over a chart, or hold shift and \
         use the arrow keys, to select a period and see its percentiles; double-click or press Escape to \
         zoom out again.",
    );
    let out = section.drawn();
    let drawn: Vec<usize> = (0..steps.len()).filter(|s| !steps[*s].is_empty()).collect();
    if drawn.is_empty() {
        out.classed("p", "absent", "No trial has per-second values.");
    }
    for step in drawn {
        parts::open_panel(out, view, step);
        window(out, view, times, step);
        let panel = Panel { view, step, trials: &steps[step], points };
        clients(out, &panel);
        kind_seconds::charts(out, &panel, times);
        steadiness::table(out, view, step);
        stalls(out, view, step);
        out.raw("</div>");
    }
    Some(section)
}

/// Response times of all of the measurement phase; a script shows those of a chosen stretch here.
fn window(out: &mut Markup, view: &View<'_>, times: &Times, step: usize) {
    let grids: Vec<(usize, &str, &Grid)> =
        times.of_step(step).map(|((v, _, kind), grid)| (*v, kind.as_str(), grid)).collect();
    let Some(first) = grids.first().map(|(_, _, grid)| *grid) else {
        out.classed("p", "absent", no_stretch(view, step));
        return;
    };
    let has_kinds = grids.iter().any(|(_, kind, _)| !kind.is_empty());
    let to_s = first.to_s();
    out.raw(format_args!(
        "<div class=\"scroll window\" data-step=\"{step}\" aria-live=\"polite\">"
    ));
    out.raw("<table><caption>Response times <span class=\"stretch\">");
    out.text("of the whole measurement phase");
    out.raw("</span></caption><thead><tr><th scope=\"col\">Variant</th>");
    if has_kinds {
        out.raw("<th scope=\"col\">Kind</th>");
    }
    for title in ["Transactions", "Throughput", "p50", "p95", "p99", "p99.9", "Longest"] {
        out.raw(format_args!("<th class=\"n\" scope=\"col\">{title}</th>"));
    }
    out.raw("</tr></thead><tbody>");
    for (variant, kind, grid) in grids {
        out.raw(format_args!(
            "<tr class=\"v{variant}\" data-v=\"{variant}\" data-kind=\"{}\"><th scope=\"row\">{}</th>",
            escape(kind),
            parts::name(view, variant)
        ));
        if has_kinds {
            out.element("td", if kind.is_empty() { "all" } else { view.kind_title(kind) });
        }
        let window = grid.window(0.0, to_s);
        out.classed("td", "n", format::grouped(window.n));
        // One number for one quantity: what the report estimates is shown as estimated.
        let estimated = |metric| estimate_of(view, (variant, step, kind), metric);
        let rate = (window.seconds > 0.0).then(|| window.n as f64 / window.seconds);
        let shown = |estimate: Option<&Estimate>, unit: Unit, value: Option<f64>| {
            let text = estimate.map(format::value).or_else(|| value.map(|value| unit.show(value)));
            text.unwrap_or_else(|| "–".to_owned())
        };
        out.classed("td", "n", shown(estimated(metrics::THROUGHPUT), Unit::PerSecond, rate));
        // A percentile without an observation beyond it has no estimate.
        for metric in [
            metrics::RESPONSE_P50,
            metrics::RESPONSE_P95,
            metrics::RESPONSE_P99,
            metrics::RESPONSE_P999,
        ] {
            let few = match kind_cell(view, (variant, step, kind)) {
                Some(of_kind) => View::few_of_kind(of_kind, metric),
                None => view.few(variant, step, metric),
            };
            let text = shown(estimated(metric), Unit::Micros, None);
            let mark = if text == "–" { "" } else { few };
            out.classed("td", "n", format!("{text}{mark}"));
        }
        let longest = (window.n > 0).then_some(window.max_us);
        out.classed("td", "n", shown(estimated(metrics::RESPONSE_MAX), Unit::Micros, longest));
        out.raw("</tr>");
    }
    let zoomed = format!(
        "Selected period: all repetitions merged, in columns of {}; percentiles are from buckets that are 9 % \
         wide (± 4.4 %), counts and longest times are exact.",
        format::seconds(first.column_s)
    );
    out.raw("</tbody></table>");
    out.raw(format_args!("<p class=\"quiet of-window\" data-zoomed=\"{}\">", escape(&zoomed)));
    out.text(
        "Throughput and percentiles are the estimates from the section “The numbers” (means over repetitions), \
         where there are any; transaction counts and longest times cover all repetitions. Select a period \
         in a chart to see its percentiles.",
    );
    out.raw("</p></div>");
}

/// What the report estimates of a kind of transaction, of all kinds if it is empty.
fn estimate_of<'a>(
    view: &View<'a>,
    (variant, step, kind): (usize, usize, &str),
    metric: MetricId,
) -> Option<&'a Estimate> {
    let estimate = match kind {
        "" => view.estimate(variant, step, metric)?,
        kind => kind_cell(view, (variant, step, kind))?.metrics.get(&metric)?,
    };
    Some(estimate).filter(|estimate| estimate.value.is_finite())
}

/// What is known of one kind of transaction; none for all kinds together, which have no name.
fn kind_cell<'a>(
    view: &View<'a>,
    (variant, step, kind): (usize, usize, &str),
) -> Option<&'a KindCell> {
    let is_it = |c: &&KindCell| (c.variant, c.step, c.kind.as_str()) == (variant, step, kind);
    view.findings.kinds.iter().find(is_it)
}

/// Why the percentiles of a stretch of time are not known.
fn no_stretch(view: &View<'_>, step: usize) -> &'static str {
    match view.findings.steps[step].search {
        Some(_) => {
            "A search tries one load after another, at different times in each trial, so percentiles \
             of a period are not shown."
        }
        None => {
            "The record has no per-second histograms, so percentiles of a period are not \
             available."
        }
    }
}

fn clients(out: &mut Markup, panel: &Panel<'_>) {
    let quantity = |title: &str, note: &str, source: Source| Quantity {
        title: title.to_owned(),
        note: note.to_owned(),
        unit: if matches!(source, Source::Rate(_)) { Unit::PerSecond } else { Unit::Micros },
        source,
        is_marked: true,
    };
    let findings = panel.view.findings;
    let has_little = dyno_analysis::is_watched(findings) || dyno_analysis::is_imported(findings);
    out.raw("<div class=\"charts\">");
    let per_second = "committed transactions per second";
    for quantity in [
        quantity("Throughput", per_second, Source::Rate(|i| &i.throughput)),
        quantity("p95 response time", "of each second", Source::Time(|i| &i.p95_us)),
        quantity("p99 response time", "of each second", Source::Time(|i| &i.p99_us)),
        quantity("Longest response time", "of each second", Source::Time(|i| &i.max_us)),
    ] {
        // Without load there are no response times, and not every server counts transactions; other tools
        // print few times, and little of what did not happen.
        if has_little && panel.is_zero(&quantity.source) {
            continue;
        }
        panel.overlay(out, &quantity, large());
    }
    let mut quiet = Vec::new();
    for (quantity, nothing) in [
        (
            quantity("Errors", "attempts that did not commit", Source::Rate(|i| &i.errors)),
            "no attempt failed",
        ),
        (
            quantity("Missed arrivals", "due and never sent", Source::Rate(|i| &i.missed)),
            "no arrival was missed",
        ),
        (
            quantity("p99 lag", "sent − due", Source::Time(|i| &i.lag_p99_us)),
            "nothing was sent late",
        ),
    ] {
        if panel.is_zero(&quantity.source) {
            quiet.push(nothing);
        } else {
            panel.overlay(out, &Quantity { is_marked: false, ..quantity }, large());
        }
    }
    out.raw("</div>");
    if !quiet.is_empty() && !has_little {
        let text = format!("During the measurement, {}.", words::list(&quiet));
        out.classed("p", "quiet", text);
    }
}

fn stalls(out: &mut Markup, view: &View<'_>, step: usize) {
    made_dips(out, view, step);
    let mut all: Vec<&StallFacts> =
        (0..view.findings.variants.len()).flat_map(|v| view.stalls(v, step)).collect();
    if all.is_empty() {
        return;
    }
    all.sort_by(|a, b| b.missing.total_cmp(&a.missing));
    let open = if all.len() <= STALLS_OPEN { " open" } else { "" };
    out.raw(format_args!("<details class=\"fold\"{open}>"));
    let n = words::counted(all.len(), "stall", "stalls");
    out.element("summary", format!("{n}, and what moved first"));
    out.classed(
        "p",
        "quiet",
        "Readings that left their usual range around the stall, earliest first; a negative time is before \
         it. This is evidence, not proof of the cause.",
    );
    out.raw("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Variant</th><th class=\"n\" scope=\"col\">Trial</th>");
    out.raw("<th class=\"n\" scope=\"col\">At</th><th class=\"n\" scope=\"col\">Length</th><th class=\"n\" scope=\"col\">Missing transactions</th>");
    out.raw(
        "<th scope=\"col\">Kinds</th><th scope=\"col\">What moved first</th></tr></thead><tbody>",
    );
    for stall in all.iter().take(STALLS_MOST) {
        out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">", stall.variant));
        out.raw(parts::name(view, stall.variant)).raw("</th>");
        out.classed("td", "n", stall.trial.to_string());
        out.classed("td", "n", format!("{:.1} s", stall.start_s));
        out.raw("<td class=\"n\">").text(format!("{:.2} s", stall.length_s));
        out.element("small", if stall.gap { "nothing committed" } else { "a dip" }).raw("</td>");
        out.raw("<td class=\"n\">").text(Unit::Count.show(stall.missing.round()));
        let level = Unit::PerSecond.show(stall.level);
        out.element("small", format!("compared with {level} around it")).raw("</td>");
        let kinds: Vec<&str> = stall.kinds.iter().map(|kind| view.kind_title(kind)).collect();
        out.element("td", kinds.join(", ")).raw("<td class=\"moved\">");
        if stall.moved_first.is_empty() {
            out.classed("span", "none", "no reading left its usual range");
        }
        stall.moved_first.iter().for_each(|reading| moved(out, reading));
        out.raw("</td></tr>");
    }
    out.raw("</tbody></table></div>");
    if all.len() > STALLS_MOST {
        let text = format!(
            "Only the {STALLS_MOST} most costly stalls are listed; findings.json has all of them."
        );
        out.classed("p", "quiet", text);
    }
    out.raw("</details>");
}

/// Dips that were made on purpose, and how many of them were found.
fn made_dips(out: &mut Markup, view: &View<'_>, step: usize) {
    for dips in view.findings.made_dips.iter().filter(|dips| dips.step == step) {
        let seconds = |value: Option<f64>| value.map(|value| format!("{value:.1} s"));
        let every =
            seconds(dips.period_s).map_or(String::new(), |every| format!(", every {every}"));
        let mut text = format!(
            "In trial {} the limit of volume {} was lowered {} to {}{every}. Throughput stalled in {} of \
             the {}",
            dips.trial,
            dips.volume,
            words::counted(dips.made as usize, "time", "times"),
            dips.limit,
            dips.found,
            words::counted(dips.made as usize, "dip", "dips"),
        );
        if let Some(period) = seconds(dips.found_period_s) {
            text += &format!(", {period} apart");
        }
        if let Some(left) = dips.level_left {
            text += &format!("; it fell to {:.1} % of its level outside the dips", left * 100.0);
        }
        text += &match dips.others {
            0 => "; there were no other stalls.".to_owned(),
            1 => "; there was 1 other stall.".to_owned(),
            n => format!("; there were {n} other stalls."),
        };
        out.element("p", text);
    }
}

fn moved(out: &mut Markup, moved: &Moved) {
    let unit = super::readings::unit_of_code(&moved.unit);
    let sign = match (moved.at_s.abs() < 0.05, moved.at_s < 0.0) {
        (true, _) => "",
        (false, true) => "−",
        (false, false) => "+",
    };
    out.raw(format_args!("<div title=\"{}\">", escape(&moved.meaning)));
    out.text(format!("{sign}{:.1} s ", moved.at_s.abs()));
    out.element("b", if moved.sign_of.is_empty() { &moved.reading } else { &moved.sign_of });
    let (value, ordinary) = (unit.show(moved.value), unit.show(moved.ordinary));
    // What reaches a limit is shown with the limit.
    let word = if moved.deviations.is_some() { "usually" } else { "limit" };
    out.classed("small", "", format!("{}: {value}, {word} {ordinary}", moved.reading));
    out.raw("</div>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_whole_measure_phase_has_the_estimates_of_the_numbers() {
        let (findings, runs) = fixture::three_variants();
        let mut times = Times::new(&findings, &runs);
        fixture::times(&runs, &mut |run, trial, second| times.add(run, trial, second));
        let view = View::new(&findings);
        let mut out = Markup::new();
        window(&mut out, &view, &times, 2);
        let html = out.finish();
        for metric in [metrics::THROUGHPUT, metrics::RESPONSE_P95] {
            let value = format::value(view.estimate(1, 2, metric).expect("it is estimated"));
            assert!(
                html.contains(&format!("<td class=\"n\">{value}</td>")),
                "no {value} in {html}"
            );
        }
    }

    #[test]
    fn dips_that_were_made_are_compared_with_stalls() {
        let (mut findings, _) = fixture::three_variants();
        let dips = dyno_analysis::MadeDips {
            step: 1,
            trial: 4,
            volume: "drive".into(),
            limit: "50 writes/s".into(),
            made: 3,
            found: 2,
            others: 1,
            period_s: Some(60.0),
            found_period_s: Some(60.1),
            level_left: Some(0.06),
            ..dyno_analysis::MadeDips::default()
        };
        findings.made_dips = vec![dips];
        let text = |step| {
            let mut out = Markup::new();
            made_dips(&mut out, &View::new(&findings), step);
            out.finish()
        };
        assert_eq!(
            text(1),
            "<p>In trial 4 the limit of volume drive was lowered 3 times to 50 writes/s, every 60.0 s. \
             Throughput stalled in 2 of the 3 dips, 60.1 s apart; it fell to 6.0 % of its level outside \
             the dips; there was 1 other stall.</p>"
        );
        assert_eq!(text(0), "");
    }

    #[test]
    fn a_search_does_not_say_that_there_are_no_histograms() {
        let (mut findings, _) = fixture::three_variants();
        assert!(
            no_stretch(&View::new(&findings), 0)
                .starts_with("The record has no per-second histograms")
        );
        findings.steps[0].search = Some(dyno_analysis::StepSearch {
            metric: dyno_analysis::metrics::RATE_AT_LIMIT,
            limit: "p99 ≤ 20 ms".to_owned(),
            precision: 0.05,
        });
        assert!(no_stretch(&View::new(&findings), 0).starts_with("A search tries"));
    }
}
