//! What the server and the machine did, second by second: the machine as charts, all other readings
//! as a table with search, each of which a script draws when it is asked for.

use std::collections::BTreeSet;

use dyno_units::Reading;
use dyno_units::reading::Topic;

use super::panel::{Panel, Quantity, Source, TrialStep, small};
use super::readings::{Meanings, group, meanings};
use super::{page::Page, parts};
use crate::chart::lines::path_of;
use crate::chart::reduce::{Point, reduce};
use crate::chart::scale::{nice_range, nice_ticks};
use crate::chart::sparse;
use crate::document::html::GROUPED;
use crate::document::{Block, Cell, Element, Row as TableRow, Section, Table, Text};
use crate::format::{self, Unit};
use crate::words;

/// Bytes that the readings which a script draws should stay below, all together.
const SERIES_BYTES: usize = 2_000_000;

/// Most and fewest points of such a reading.
const POINTS: (usize, usize) = (16, 240);

/// With more variants than this, a chart of its own for each is more than anybody reads.
const SIDE_BY_SIDE_MOST: usize = 8;

struct Row<'a> {
    name: &'a str,
    unit: Unit,
    medians: Vec<(usize, Vec<Point>)>,
}

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let &Page { view, ref steps, runs, points, .. } = page;
    let section = Section::new(
        "counters",
        "Counters",
        "Database and machine",
        "Readings of the database and the machine, on the same time axis as the load.",
    );
    let meanings = meanings(runs);
    let drawn: Vec<usize> = (0..steps.len())
        .filter(|s| steps[*s].iter().any(|trial| !trial.readings.is_empty()))
        .collect();
    let absent = drawn.is_empty().then(|| Block::absent("No trial has readings."));
    let n_series: usize = drawn.iter().map(|s| others(&steps[*s], &meanings).len()).sum();
    let n_series = n_series * view.findings.variants.len();
    let most = (SERIES_BYTES / n_series.max(1) / 7).clamp(POINTS.0, POINTS.1);
    let panel = |step: usize| {
        let panel = Panel { view, step, trials: &steps[step], points };
        let mut blocks = machine(&panel, &meanings);
        blocks.extend(table(&panel, &meanings, most));
        parts::panel(view, step, blocks)
    };
    Some(section.with(absent).with(drawn.into_iter().map(panel)))
}

fn others<'a>(trials: &[TrialStep<'a>], meanings: &Meanings<'_>) -> BTreeSet<&'a str> {
    let names = trials.iter().flat_map(|t| t.readings.keys()).map(String::as_str);
    names.filter(|name| meanings.get(name).is_none_or(|one| one.chart.is_none())).collect()
}

fn machine(panel: &Panel<'_>, meanings: &Meanings<'_>) -> Vec<Block> {
    let names: BTreeSet<&String> = panel.trials.iter().flat_map(|t| t.readings.keys()).collect();
    let mut shown: Vec<(&str, &Reading)> = names
        .into_iter()
        .filter_map(|name| Some((name.as_str(), *meanings.get(name.as_str())?)))
        .filter(|(name, r)| r.chart.is_some_and(|c| c.always || !panel.is_constant(name)))
        .collect();
    shown.sort_by_key(|(name, reading)| (reading.chart.map(|chart| chart.place), *name));
    let of = |topic: Topic| -> Vec<(&str, &Reading)> {
        shown.iter().filter(|(_, r)| r.topic == topic).copied().collect()
    };
    let (mode, group) = (of(Topic::CpuMode), of(Topic::CpuGroup));
    let note = "CPU seconds per second";
    let mut blocks = Vec::new();
    if panel.view.findings.variants.len() <= SIDE_BY_SIDE_MOST {
        blocks.extend(panel.by_variant("CPU by mode", "all CPUs of the machine", &mode));
        blocks.extend(panel.by_variant("CPU by group of processes", note, &group));
    } else {
        blocks.extend(topic(panel, "CPU by mode, all CPUs of the machine", &mode));
        blocks.extend(topic(panel, "CPU by group of processes", &group));
    }
    for (one, title) in [
        (Topic::Load, "Load on the machine"),
        (Topic::Disk, "Disk"),
        (Topic::Files, "Data files"),
        (Topic::Memory, "Memory"),
        (Topic::Pressure, "Pressure: share of time in which some thread waited"),
    ] {
        blocks.extend(topic(panel, title, &of(one)));
    }
    blocks
}

fn topic(panel: &Panel<'_>, title: &str, readings: &[(&str, &Reading)]) -> Vec<Block> {
    let chart = |(name, reading): &(&str, &Reading)| {
        let (unit, source) = (Unit::from(&reading.unit), Source::Reading((*name).to_owned()));
        panel.overlay(&Quantity::new(&*reading.title, *name, unit, source), small())
    };
    let charts: Vec<Block> = readings.iter().filter_map(chart).collect();
    // A reading may have no value within the measured time.
    if charts.is_empty() {
        return charts;
    }
    vec![Block::heading(4, title), Block::group("charts small", charts)]
}

fn table(panel: &Panel<'_>, meanings: &Meanings<'_>, n_points: usize) -> Vec<Block> {
    let names = others(panel.trials, meanings);
    let (constant, moving): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| panel.is_constant(name));
    if moving.is_empty() && constant.is_empty() {
        return Vec::new();
    }
    let variants = panel.view.variants();
    let heads = variants.clone().map(|variant| panel.view.name(variant));
    let heads = std::iter::once(Text::from("Reading")).chain(heads);
    let mut table = Table { scroll: GROUPED, ..Table::of(heads, 1).class("counters") };
    let unit = |name: &str| meanings.get(name).map_or(Unit::Count, |one| Unit::from(&one.unit));
    for group_of in moving.chunk_by(|a, b| group(meanings, a) == group(meanings, b)) {
        let n_columns = table.columns.len();
        table.rows.push(TableRow::group(group(meanings, group_of[0]), n_columns));
        for name in group_of {
            let of = |v: usize| Some((v, panel.median(v, &Source::Reading((*name).to_owned()))?));
            let medians = variants.clone().filter_map(of).collect();
            let row = Row { name, unit: unit(name), medians };
            table.rows.push(table_row(&row, panel, (meanings.get(name).copied(), n_points)));
        }
    }
    let note = Block::quiet(
        "Each value is the mean over whole measured seconds, with the range from lowest to highest \
         below it; each second is the median of the repetitions. Resources per transaction (under \
         The numbers) cover the whole measurement phase of each trial, so they can differ slightly.",
    );
    let n = words::counted(constant.len(), "reading", "readings");
    let still = vec![Block::quiet(constant.join(", "))];
    let still = (!constant.is_empty())
        .then(|| Block::fold(format!("{n} that did not change"), false, still));
    let chosen = Element::new("div").class("charts small chosen").with("data-step", panel.step);
    let heading = Block::heading(4, format!("Other readings ({})", moving.len()));
    let above = [heading, Block::Control(find()), Block::Control(chosen)];
    above.into_iter().chain([table.into(), note]).chain(still).collect()
}

fn find() -> Element {
    let input = Element::new("input").with("type", "search");
    let input = input.with("placeholder", "Search by name or meaning");
    let hint = Element::of("span", "Select readings to plot them.").class("quiet");
    let find = Element::new("div").class("find").hidden();
    find.inside([input.with("aria-label", "Search readings"), hint])
}

fn table_row(
    row: &Row<'_>,
    panel: &Panel<'_>,
    (meaning, n_points): (Option<&Reading>, usize),
) -> TableRow {
    let text = meaning.map_or("", |m| m.text.as_ref());
    let head = Text::from(row.name).small(text);
    let head = series(row, panel, n_points).into_iter().fold(head, Text::element);
    let value = |variant: usize| {
        let found = row.medians.iter().find(|(v, _)| *v == variant);
        let points = found.into_iter().flat_map(|(_, points)| points);
        let measured: Vec<f64> = points.filter(|p| p.0 >= 0.0).filter_map(|p| p.1).collect();
        if measured.is_empty() {
            return Cell::none("–");
        }
        let mean = measured.iter().sum::<f64>() / measured.len() as f64;
        let low = row.unit.show(measured.iter().copied().fold(f64::INFINITY, f64::min));
        let high = row.unit.show(measured.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let range = if low == high { String::new() } else { format::range(&low, &high) };
        let text = Text::default().b(row.unit.show(mean)).small(range);
        Cell::from(text).class(format!("v{variant}"))
    };
    let values = panel.view.variants().map(value);
    let cells = std::iter::once(Cell::from(head).head()).chain(values);
    TableRow::new(cells).with("data-reading", row.name)
}

/// What a script draws a chart of: the paths of all variants on one scale.
fn series(row: &Row<'_>, panel: &Panel<'_>, n_points: usize) -> Option<Element> {
    let values = || row.medians.iter().flat_map(|(_, points)| points).filter_map(|p| p.1);
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    if !(low.is_finite() && high.is_finite() && low < high) {
        return None;
    }
    let (low, high) = nice_range(low, high, 4);
    let ticks: Vec<String> = nice_ticks(low, high, 4).iter().map(f64::to_string).collect();
    let (from, to) = panel.time();
    let path = |(variant, points): &(usize, Vec<Point>)| {
        let path = path_of(&reduce(points, n_points), from, (low, high));
        format!("{variant}:{path}")
    };
    let paths: Vec<String> = row.medians.iter().map(path).collect();
    let is_sparse = sparse::own_interval(row.medians.iter().map(|(_, points)| points)).is_some();
    let data = Element::new("data").class("series").hidden();
    let data = data.with("data-x", format!("{from} {to}")).with("data-y", format!("{low} {high}"));
    let unit = crate::chart::lines::unit_code(&row.unit);
    let data = data.with("data-ticks", ticks.join(" ")).with("data-unit", unit);
    let data = if is_sparse { data.with("data-dots", "") } else { data };
    Some(data.with("value", paths.join("|")))
}
