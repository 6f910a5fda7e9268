//! Debt: what the engine put off while the load went on, and how long it took to pay it afterwards.

use dyno_analysis::Estimate;
use dyno_analysis::debt::{DebtFacts, DebtTrend};
use dyno_record::{Run, RunOff};
use dyno_units::Reading;
use dyno_units::reading::Topic;

use super::panel::{Panel, Quantity, Source, TrialStep, small, with_unit};
use super::readings::{Meanings, meanings, unit_of_code};
use super::{page::Page, parts};
use crate::chart::lines::{Across, LinesChart, Series, Shape};
use crate::chart::reduce::Point;
use crate::chart::variant_class;
use crate::document::{Block, Cell, Figure, Section, Table, Text};
use crate::findings_index::FindingsIndex;
use crate::format::{self, Unit};
use crate::view::View;
use crate::words;

/// Most points of a line of the run-off.
const POINTS: usize = 300;

/// The section; none where no debt was seen.
pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let &Page { view, ref steps, runs, points, .. } = page;
    let known = |d: &&DebtFacts| view.has_place(d.variant, d.step);
    let facts: Vec<&DebtFacts> = view.findings.debt.iter().filter(known).collect();
    let run_offs = run_offs(view, runs);
    if facts.is_empty() && run_offs.is_empty() && view.findings.run_off.is_empty() {
        return None;
    }
    let section = Section::new(
        "debt",
        "Deferred work",
        "Deferred work",
        "Work that the engine deferred under load: history to purge, tombstones, dead rows, dirty \
         pages, log to be checkpointed. If the backlog keeps growing, the engine cannot sustain \
         the load.",
    );
    let panel = |(step, trials): (usize, &Vec<TrialStep<'_>>)| {
        let own: Vec<&DebtFacts> = facts.iter().copied().filter(|d| d.step == step).collect();
        if own.is_empty() {
            return None;
        }
        let mut blocks = Vec::from(table(view, &own));
        blocks.push(charts(&Panel { view, step, trials, points }, &own));
        Some(parts::panel(view, step, blocks))
    };
    let section = section.with(steps.iter().enumerate().filter_map(panel));
    Some(section.with(run_off(view, &run_offs, &meanings(runs))))
}

fn table(view: &View<'_>, facts: &[&DebtFacts]) -> [Block; 2] {
    let heads = "Deferred work | Variant | #At the start | #At the end | #Highest | #Slope per \
         second | #n | Trend";
    let mut table = Table::headed("", heads);
    let mut ordered = facts.to_vec();
    ordered.sort_by(|a, b| (&a.reading, a.variant).cmp(&(&b.reading, b.variant)));
    let mut before = "";
    for debt in ordered {
        let unit = unit_of_code(&debt.unit);
        let head = Cell::code(debt.reading.trim_start_matches("debt.")).head();
        let head = if before == debt.reading { head } else { head.small(&*debt.meaning) };
        before = &debt.reading;
        let (class, trend) = match debt.trend {
            DebtTrend::Grew => ("bad", "grew"),
            DebtTrend::Shrank => ("", "shrank"),
            // Wide bounds that hold zero are no proof of a level.
            DebtTrend::Level if is_flat(&debt.slope_per_s) => ("", "level"),
            DebtTrend::Level => ("none", "undecided"),
            DebtTrend::Unknown => ("none", "unknown: only one repetition"),
        };
        // Debt is never below zero, so neither are its bounds.
        let least = [(&debt.at_start, 0.0), (&debt.at_end, 0.0), (&debt.most, 0.0)];
        let levels = least.into_iter().chain([(&debt.slope_per_s, f64::NEG_INFINITY)]);
        let levels = levels.map(|(estimate, least)| level(estimate, &unit, least));
        let place = [head, view.head(debt.variant).value()];
        let n = debt.slope_per_s.n.to_string().into();
        let behind = [n, Cell::from(trend).class(class)];
        table.row(place.into_iter().chain(levels).chain(behind));
    }
    let note = Block::quiet(format!(
        "Means over n repetitions, with their {} CIs below. Deferred work grew or shrank if the CI \
         of its slope excludes zero; otherwise the trend is undecided.",
        view.confidence()
    ));
    [table.into(), note]
}

/// Whether a slope is zero in all repetitions.
fn is_flat(slope: &Estimate) -> bool {
    slope.low == Some(0.0) && slope.high == Some(0.0)
}

/// A cell with a value with its bounds below, none of them below `least`.
fn level(estimate: &Estimate, unit: &Unit, least: f64) -> Cell {
    let text = Text::default().b(unit.show(estimate.value));
    let cell = Cell::from(text);
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            cell.small(format::range(&unit.show(low.max(least)), &unit.show(high)))
        }
        _ => cell,
    }
}

fn charts(panel: &Panel<'_>, facts: &[&DebtFacts]) -> Block {
    let chart = |debt: &DebtFacts| {
        let (unit, source) = (unit_of_code(&debt.unit), Source::Reading(debt.reading.clone()));
        panel.overlay(&Quantity::new(&*debt.title, &*debt.meaning, unit, source), small())
    };
    let mut seen = std::collections::BTreeSet::new();
    let is_long = panel.too_short().is_none();
    let once = facts.iter().copied().filter(|debt| is_long && seen.insert(&debt.reading));
    Block::group("charts small", once.filter_map(chart).collect())
}

fn run_offs<'a>(view: &View<'_>, runs: &'a [Run]) -> Vec<(usize, &'a RunOff)> {
    let places = FindingsIndex::new(view.findings, runs);
    let found = places.trials(runs).filter_map(|(_, t, v)| Some((v, t.run_off.as_ref()?)));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(variant, _)| *variant);
    found
}

fn run_off(view: &View<'_>, run_offs: &[(usize, &RunOff)], meanings: &Meanings<'_>) -> Vec<Block> {
    let known = view.findings.run_off.iter().filter(|r| r.variant < view.findings.variants.len());
    let known: Vec<_> = known.collect();
    if known.is_empty() && run_offs.is_empty() {
        return Vec::new();
    }
    let title = "Run-off: time from the end of the load until the engine had caught up";
    let mut blocks = vec![Block::heading(3, title)];
    if !known.is_empty() {
        let mut table = Table::headed("", "Variant | #Caught up after | What happened");
        for facts in known {
            let paid = facts.paid_after_s.as_ref();
            let more = if facts.unpaid.is_empty() { "" } else { "more than " };
            let text =
                paid.map_or("–".to_owned(), |e| format!("{more}{}", format::seconds(e.value)));
            table.row([view.head(facts.variant), text.into(), facts.summary.as_str().into()]);
        }
        blocks.push(table.into());
    }
    let names = words::sorted(run_offs.iter().flat_map(|(_, r)| r.readings.keys()));
    let curve = |name: &String| {
        let debt = meanings.get(name.as_str()).filter(|one| one.topic == Topic::Debt);
        debt.map(|one| curve(view, run_offs, (name, one)))
    };
    let curves = names.into_iter().filter_map(curve).collect();
    blocks.push(Block::group("charts small", curves));
    blocks
}

fn curve(view: &View<'_>, runs: &[(usize, &RunOff)], (name, reading): (&str, &Reading)) -> Block {
    let mut series = Vec::new();
    let (mut most, mut least, mut to) = (0.0_f64, 0.0_f64, 1.0_f64);
    let mut before = None;
    for (variant, run_off) in runs {
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
    let across = Across::Seconds { from: 0.0, to };
    let chart = LinesChart {
        label: format!("{} after the load", reading.title),
        row: "runoff".to_owned(),
        series,
        max_points: POINTS,
        ..LinesChart::new(across, unit, (least, most), small())
    };
    Figure::new(&*reading.title, note, chart.svg()).block()
}
