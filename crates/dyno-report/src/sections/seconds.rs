//! One-second charts of what the clients saw: every second of every step, warm-up shaded, stalls and
//! changes of level marked; and response times of a stretch of time that the reader chooses.
//!
//! Variants share a chart. Repetitions are light, their median is bold.

use dyno_analysis::kinds::KindCell;
use dyno_analysis::stalls::{Moved, StallFacts};
use dyno_analysis::{Estimate, MetricId, metrics};

use super::panel::{Panel, Quantity, Source, large};
use super::{kind_seconds, page::Page, parts, steadiness};
use crate::document::{Block, Cell, Element, Row, Section, Table, Text};
use crate::format::{self, Unit};
use crate::times::{Grid, KeyOf, Times, Window};
use crate::view::View;
use crate::words;

/// Stalls that are listed without being asked for.
const STALLS_OPEN: usize = 12;

const STALLS_MOST: usize = 200;

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let &Page { view, ref steps, ref times, points, .. } = page;
    let section = Section::new(
        "seconds",
        "Over time",
        "Second by second",
        "Each line is a repetition; the median of more than five is a thicker one. Of many variants the median is \
         drawn, in the range from the lowest to the highest. Warm-up is shaded and not part of any \
         estimate. Dotted lines mark faults, stalls and level shifts. Drag over a chart, or hold shift and \
         use the arrow keys, to select a period and see its percentiles; double-click or press Escape to \
         zoom out again.",
    );
    let drawn: Vec<usize> = (0..steps.len()).filter(|s| !steps[*s].is_empty()).collect();
    let absent = drawn.is_empty().then(|| Block::absent("No trial has per-second values."));
    let panel = |step: usize| {
        let panel = Panel { view, step, trials: &steps[step], points };
        let mut blocks = vec![window(view, times, step)];
        match panel.too_short() {
            Some(why) => blocks.extend(tenths(&panel, why)),
            None => {
                blocks.extend(clients(&panel));
                blocks.extend(kind_seconds::charts(&panel, times));
            }
        }
        blocks.extend(steadiness::table(view, step));
        blocks.extend(made_dips(view, step));
        blocks.extend(stalls(view, step));
        parts::panel(view, step, blocks)
    };
    Some(section.with(absent).with(drawn.into_iter().map(panel)))
}

/// Response times of all of the measurement phase; a script shows those of a chosen stretch here.
fn window(view: &View<'_>, times: &Times, step: usize) -> Block {
    let grids: Vec<(usize, &str, &Grid)> =
        times.of_step(step).map(|((v, _, kind), grid)| (*v, kind.as_str(), grid)).collect();
    let Some(first) = grids.first().map(|(_, _, grid)| *grid) else {
        return Block::absent(no_stretch(view, step));
    };
    let has_kinds = grids.iter().any(|(_, kind, _)| !kind.is_empty());
    let mut heads = vec!["Variant", "Kind"];
    heads.truncate(if has_kinds { 2 } else { 1 });
    let n_text = heads.len();
    heads.extend(["Transactions", "Throughput", "p50", "p95", "p99", "p99.9", "Longest"]);
    let stretch = Element::of("span", "of the whole measurement phase").class("stretch");
    let title = Text::from("Response times ").element(stretch);
    let mut table = Table { scroll: "", ..Table::of(heads, n_text).titled(title) };
    for (variant, kind, grid) in grids {
        let name = if kind.is_empty() { "all" } else { view.kind_title(kind) };
        let values = values(view, (variant, step, kind), &grid.window(0.0, first.to_s()));
        let place = [view.head(variant)].into_iter().chain(has_kinds.then(|| name.into()));
        let row = Row::new(place.chain(values.map(Cell::from)));
        table.rows.push(row.with("data-v", variant).with("data-kind", kind));
    }
    let zoomed = format!(
        "Selected period: all repetitions merged, in columns of {}; percentiles are from buckets that are 9 % \
         wide (± 4.4 %), counts and longest times are exact.",
        format::seconds(first.column_s)
    );
    let note = Element::of(
        "p",
        "Throughput and percentiles are the estimates from the section “The numbers” (means over repetitions), \
         where there are any; transaction counts and longest times cover all repetitions. Select a period \
         in a chart to see its percentiles.",
    );
    let note = Block::Control(note.class("quiet of-window").with("data-zoomed", zoomed));
    let window = Element::new("div").class("scroll window").with("data-step", step);
    Block::Group(window.with("aria-live", "polite"), vec![table.into(), note])
}

/// What is known of a stretch. One number for one quantity: what the report estimates is shown as estimated.
fn values(view: &View<'_>, at: KeyOf<'_>, window: &Window) -> [String; 7] {
    let shown = |metric: MetricId, unit: Unit, value: Option<f64>| {
        let estimated = estimate_of(view, at, metric).map(format::value);
        let text = estimated.or_else(|| value.map(|value| unit.show(value)));
        text.unwrap_or_else(|| "–".to_owned())
    };
    // A percentile without an observation beyond it has no estimate.
    let percentile = |metric: MetricId| {
        let few = match kind_cell(view, at) {
            Some(of_kind) => View::few_of_kind(of_kind, metric),
            None => view.few((at.0, at.1), metric),
        };
        let text = shown(metric, Unit::Micros, None);
        let mark = if text == "–" { "" } else { few };
        format!("{text}{mark}")
    };
    let rate = (window.seconds > 0.0).then(|| window.n as f64 / window.seconds);
    let longest = (window.n > 0).then_some(window.max_us);
    [
        format::grouped(window.n),
        shown(metrics::THROUGHPUT, Unit::PerSecond, rate),
        percentile(metrics::RESPONSE_P50),
        percentile(metrics::RESPONSE_P95),
        percentile(metrics::RESPONSE_P99),
        percentile(metrics::RESPONSE_P999),
        shown(metrics::RESPONSE_MAX, Unit::Micros, longest),
    ]
}

/// What the report estimates of a kind of transaction, of all kinds if it is empty.
fn estimate_of<'a>(view: &View<'a>, at: KeyOf<'_>, metric: MetricId) -> Option<&'a Estimate> {
    let estimate = match at {
        (variant, step, "") => view.estimate((variant, step), metric)?,
        at => kind_cell(view, at)?.metrics.get(&metric)?,
    };
    Some(estimate).filter(|estimate| estimate.value.is_finite())
}

/// What is known of one kind of transaction; none for all kinds together, which have no name.
fn kind_cell<'a>(view: &View<'a>, at: KeyOf<'_>) -> Option<&'a KindCell> {
    let is_it = |c: &&KindCell| (c.variant, c.step, c.kind.as_str()) == at;
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

/// What is too short to be seen by second: commits by tenths of one, where the record has them, and why nothing else.
fn tenths(panel: &Panel<'_>, why: String) -> Vec<Block> {
    let source = Source::Tenths(panel.tenths());
    let note = "committed transactions per second, in bins of 100 ms";
    let quantity = Quantity::new("Throughput", note, Unit::PerSecond, source);
    let chart = panel.overlay(&Quantity { is_marked: true, ..quantity }, large());
    let chart = chart.map(|chart| Block::group("charts", vec![chart]));
    [Block::quiet(why)].into_iter().chain(chart).collect()
}

fn clients(panel: &Panel<'_>) -> Vec<Block> {
    let findings = panel.view.findings;
    let has_little = dyno_analysis::is_watched(findings) || dyno_analysis::is_imported(findings);
    let (mut charts, mut quiet) = (Vec::new(), Vec::new());
    let second = "of each second";
    // Each with what is said instead if it is zero throughout; nothing of what is always drawn.
    for (title, note, nothing, source) in [
        ("Throughput", "committed transactions per second", "", Source::Rate(|i| &i.throughput)),
        ("p95 response time", second, "", Source::Time(|i| &i.p95_us)),
        ("p99 response time", second, "", Source::Time(|i| &i.p99_us)),
        ("Longest response time", second, "", Source::Time(|i| &i.max_us)),
        (
            "Errors",
            "attempts that did not commit",
            "no attempt failed",
            Source::Rate(|i| &i.errors),
        ),
        (
            "Missed arrivals",
            "due and never sent",
            "no arrival was missed",
            Source::Rate(|i| &i.missed),
        ),
        ("p99 lag", "sent − due", "nothing was sent late", Source::Time(|i| &i.lag_p99_us)),
    ] {
        // Without load there are no response times, and not every server counts transactions; other tools
        // print few times, and little of what did not happen.
        if panel.is_zero(&source) && (has_little || !nothing.is_empty()) {
            quiet.push(nothing);
            continue;
        }
        let unit = if matches!(source, Source::Rate(_)) { Unit::PerSecond } else { Unit::Micros };
        let quantity = Quantity::new(title, note, unit, source);
        let quantity = Quantity { is_marked: nothing.is_empty(), ..quantity };
        charts.extend(panel.overlay(&quantity, large()));
    }
    let note = (!quiet.is_empty() && !has_little)
        .then(|| Block::quiet(format!("During the measurement, {}.", words::list(&quiet))));
    let more = charts.split_off(charts.len().min(OPEN_MOST));
    let n = words::counted(more.len(), "more chart", "more charts");
    let more = (!more.is_empty()).then(|| {
        let summary = format!("{n} by second: higher percentiles, and what failed or was late");
        Block::fold(summary, false, vec![Block::group("charts", more)])
    });
    [Block::group("charts", charts)].into_iter().chain(more).chain(note).collect()
}

/// Charts by second that are open.
const OPEN_MOST: usize = 2;

fn stalls(view: &View<'_>, step: usize) -> Option<Block> {
    let mut all: Vec<&StallFacts> = view.variants().flat_map(|v| view.stalls(v, step)).collect();
    if all.is_empty() {
        return None;
    }
    all.sort_by(|a, b| b.missing.total_cmp(&a.missing));
    let heads =
        "Variant | #Trial | #At | #Length | #Missing transactions | Kinds | What moved first";
    let table = Table::headed("", heads);
    let table = table.rows(all.iter().take(STALLS_MOST).map(|stall| stall_row(view, stall)));
    let above = Block::quiet(
        "Readings that left their usual range around the stall, earliest first; a negative time is before \
         it. This is evidence, not proof of the cause.",
    );
    let below = (all.len() > STALLS_MOST).then(|| {
        Block::quiet(format!(
            "Only the {STALLS_MOST} most costly stalls are listed; findings.json has all of them."
        ))
    });
    let n = words::counted(all.len(), "stall", "stalls");
    let blocks = [above, table.into()].into_iter().chain(below).collect();
    Some(Block::fold(format!("{n}, and what moved first"), all.len() <= STALLS_OPEN, blocks))
}

fn stall_row(view: &View<'_>, stall: &StallFacts) -> [Cell; 7] {
    let level = Unit::PerSecond.show(stall.level);
    let kinds: Vec<&str> = stall.kinds.iter().map(|kind| view.kind_title(kind)).collect();
    let moved = match stall.moved_first.is_empty() {
        true => vec![Element::of("span", "no reading left its usual range").class("none")],
        false => stall.moved_first.iter().map(moved).collect(),
    };
    let moved = moved.into_iter().fold(Text::default(), Text::element);
    [
        view.head(stall.variant),
        stall.trial.to_string().into(),
        format!("{:.1} s", stall.start_s).into(),
        Cell::from(format!("{:.2} s", stall.length_s)).small(if stall.gap {
            "nothing committed"
        } else {
            "a dip"
        }),
        Cell::from(Unit::Count.show(stall.missing.round()))
            .small(format!("compared with {level} around it")),
        kinds.join(", ").into(),
        Cell::from(moved).class("moved"),
    ]
}

/// Dips that were made on purpose, and how many of them were found.
fn made_dips(view: &View<'_>, step: usize) -> Vec<Block> {
    let dips = |dips: &dyno_analysis::MadeDips| {
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
        text.extend(seconds(dips.found_period_s).map(|period| format!(", {period} apart")));
        if let Some(left) = dips.level_left {
            text += &format!("; it fell to {:.1} % of its level outside the dips", left * 100.0);
        }
        text += &match dips.others {
            0 => "; there were no other stalls.".to_owned(),
            1 => "; there was 1 other stall.".to_owned(),
            n => format!("; there were {n} other stalls."),
        };
        Block::Note("", text.into())
    };
    view.findings.made_dips.iter().filter(|dips| dips.step == step).map(dips).collect()
}

fn moved(moved: &Moved) -> Element {
    let unit = super::readings::unit_of_code(&moved.unit);
    let sign = match (moved.at_s.abs() < 0.05, moved.at_s < 0.0) {
        (true, _) => "",
        (false, true) => "−",
        (false, false) => "+",
    };
    let (value, ordinary) = (unit.show(moved.value), unit.show(moved.ordinary));
    // What reaches a limit is shown with the limit.
    let word = if moved.deviations.is_some() { "usually" } else { "limit" };
    let small = format!("{}: {value}, {word} {ordinary}", moved.reading);
    let name = if moved.sign_of.is_empty() { &moved.reading } else { &moved.sign_of };
    let text = Text::from(format!("{sign}{:.1} s ", moved.at_s.abs())).b(name);
    let text = text.element(Element::of("small", small).class(""));
    Element::of("div", text).with("title", &moved.meaning)
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
        let html = crate::document::html::shown(&[window(&view, &times, 2)]);
        for metric in [metrics::THROUGHPUT, metrics::RESPONSE_P95] {
            let value = format::value(view.estimate((1, 2), metric).expect("it is estimated"));
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
        let text = |step| crate::document::html::shown(&made_dips(&View::new(&findings), step));
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
