//! One-second charts of what the clients saw: every second of every step, warm-up shaded, stalls and
//! changes of level marked; and response times of a stretch of time that the reader chooses.
//!
//! Variants share a chart. Repetitions are light, their median is bold.

use dyno_analysis::stalls::{Moved, StallFacts};

use super::panel::{Panel, Quantity, Source, TrialStep, large};
use super::{kind_seconds, parts, steadiness};
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
use crate::times::{Grid, Times};
use crate::view::View;
use crate::words;

/// Stalls that are listed without being asked for.
const STALLS_OPEN: usize = 12;

/// Most stalls that are listed.
const STALLS_MOST: usize = 200;

/// Writes the section.
pub(crate) fn section(
    out: &mut Markup,
    view: &View<'_>,
    steps: &[Vec<TrialStep<'_>>],
    (times, points): (&Times, usize),
) {
    parts::open_section(
        out,
        "seconds",
        "Second by second",
        "Thin lines: single repetitions; thick line: their median. Warm-up is shaded and not part of any \
         estimate. Dotted lines mark stalls and changes of level. Drag over a chart, or hold shift and \
         use the arrow keys, to select a period and see its percentiles; double-click or Escape shows \
         all of it again.",
    );
    let drawn: Vec<usize> = (0..steps.len()).filter(|s| !steps[*s].is_empty()).collect();
    if drawn.is_empty() {
        out.classed("p", "absent", "No trial has one-second values.");
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
    out.raw("</section>");
}

/// Response times of all of the measure phase; a script shows those of a chosen stretch here.
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
    out.text(format!("0 s … {}, all of the measure phase", format::seconds(to_s)));
    out.raw("</span></caption><thead><tr><th>Variant</th>");
    if has_kinds {
        out.raw("<th>Kind</th>");
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
            out.element("td", if kind.is_empty() { "all" } else { kind });
        }
        let window = grid.window(0.0, to_s);
        out.classed("td", "n", format::grouped(window.n));
        let rate = (window.seconds > 0.0).then(|| window.n as f64 / window.seconds);
        out.classed("td", "n", rate.map_or("–".to_owned(), |r| Unit::PerSecond.show(r)));
        let quantiles = [0.5, 0.95, 0.99, 0.999].map(|q| window.quantile_us(q));
        for us in quantiles.into_iter().chain([(window.n > 0).then_some(window.max_us)]) {
            out.classed("td", "n", us.map_or("–".to_owned(), |us| Unit::Micros.show(us)));
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table>").classed(
        "p",
        "quiet",
        format!(
            "Repetitions merged, in columns of {}. Percentiles are from buckets that are 9 % wide: \
             ± 4.4 %. The longest time and the counts are exact. The tables above have the \
             estimates with their bounds.",
            format::seconds(first.column_s)
        ),
    );
    out.raw("</div>");
}

/// Why the percentiles of a stretch of time are not known.
fn no_stretch(view: &View<'_>, step: usize) -> &'static str {
    match view.findings.steps[step].search {
        Some(_) => {
            "A search tries one load after another, so percentiles of a stretch of time are not \
             shown: each trial's stretches are of other loads."
        }
        None => {
            "The record keeps no histograms of single seconds: percentiles of a stretch of time are \
             not known."
        }
    }
}

/// What the clients saw.
fn clients(out: &mut Markup, panel: &Panel<'_>) {
    let quantity = |title: &str, note: &str, source: Source| Quantity {
        title: title.to_owned(),
        note: note.to_owned(),
        unit: if matches!(source, Source::Rate(_)) { Unit::PerSecond } else { Unit::Micros },
        source,
    };
    let is_watched = dyno_analysis::is_watched(panel.view.findings);
    out.raw("<div class=\"charts\">");
    let per_second = "committed transactions per second";
    for quantity in [
        quantity("Throughput", per_second, Source::Rate(|i| &i.throughput)),
        quantity("p95 response time", "of each second", Source::Time(|i| &i.p95_us)),
        quantity("p99 response time", "of each second", Source::Time(|i| &i.p99_us)),
        quantity("Longest response time", "of each second", Source::Time(|i| &i.max_us)),
    ] {
        // Without load there are no response times, and not every server counts transactions.
        if is_watched && panel.is_zero(&quantity.source) {
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
            panel.overlay(out, &quantity, large());
        }
    }
    out.raw("</div>");
    if !quiet.is_empty() && !is_watched {
        let text = format!("In all seconds of this step {}.", quiet.join(", "));
        out.classed("p", "quiet", text);
    }
}

/// Every stall of a step, with what moved first among the readings.
fn stalls(out: &mut Markup, view: &View<'_>, step: usize) {
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
        "Readings that left their ordinary range about then, earliest first: evidence, not a \
         verdict. Those before the stall have a negative time.",
    );
    out.raw("<div class=\"scroll\"><table><thead><tr><th>Variant</th><th class=\"n\">Trial</th>");
    out.raw("<th class=\"n\">At</th><th class=\"n\">Length</th><th class=\"n\">Missing</th>");
    out.raw("<th>Kinds</th><th>What moved first</th></tr></thead><tbody>");
    for stall in all.iter().take(STALLS_MOST) {
        out.raw(format_args!("<tr class=\"v{}\"><th scope=\"row\">", stall.variant));
        out.raw(parts::name(view, stall.variant)).raw("</th>");
        out.classed("td", "n", stall.trial.to_string());
        out.classed("td", "n", format!("{:.1} s", stall.start_s));
        out.raw("<td class=\"n\">").text(format!("{:.2} s", stall.length_s));
        out.element("small", if stall.gap { "nothing was done" } else { "a dip" }).raw("</td>");
        out.raw("<td class=\"n\">").text(Unit::Count.show(stall.missing.round()));
        let level = Unit::PerSecond.show(stall.level);
        out.element("small", format!("at {level} around it")).raw("</td>");
        out.element("td", stall.kinds.join(", ")).raw("<td class=\"moved\">");
        if stall.moved_first.is_empty() {
            out.classed("span", "none", "no reading left its ordinary range");
        }
        stall.moved_first.iter().for_each(|reading| moved(out, reading));
        out.raw("</td></tr>");
    }
    out.raw("</tbody></table></div>");
    if all.len() > STALLS_MOST {
        let text = format!("The {STALLS_MOST} that cost most; all are in findings.json.");
        out.classed("p", "quiet", text);
    }
    out.raw("</details>");
}

fn moved(out: &mut Markup, moved: &Moved) {
    let unit = super::readings::unit_of(&moved.reading, &moved.unit);
    let sign = match (moved.at_s.abs() < 0.05, moved.at_s < 0.0) {
        (true, _) => "",
        (false, true) => "−",
        (false, false) => "+",
    };
    out.raw(format_args!("<div title=\"{}\">", escape(&moved.meaning)));
    out.text(format!("{sign}{:.1} s ", moved.at_s.abs()));
    out.element("b", if moved.sign_of.is_empty() { &moved.reading } else { &moved.sign_of });
    let (value, ordinary) = (unit.show(moved.value), unit.show(moved.ordinary));
    out.classed("small", "", format!("{}: {value}, ordinarily {ordinary}", moved.reading));
    out.raw("</div>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_search_does_not_say_that_there_are_no_histograms() {
        let (mut findings, _) = fixture::three_variants();
        assert!(no_stretch(&View::new(&findings), 0).starts_with("The record keeps no histograms"));
        findings.steps[0].search = Some(dyno_analysis::StepSearch {
            metric: dyno_analysis::Metric::RateAtLimit,
            limit: "p99 ≤ 20 ms".to_owned(),
            precision: 0.05,
        });
        assert!(no_stretch(&View::new(&findings), 0).starts_with("A search tries"));
    }
}
