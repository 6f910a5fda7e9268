//! What the server and the machine did, second by second: a row for each reading, with a small line for each variant; a
//! script draws a chart of those that are chosen.

use std::collections::BTreeSet;

use dyno_units::Reading;
use dyno_units::reading::Topic;

use super::panel::{Panel, Source};
use super::readings::{Meanings, group, meanings};
use super::{page::Page, parts};
use crate::chart::lines::{path_of, spark, unit_code};
use crate::chart::reduce::{Point, reduce};
use crate::chart::scale::{nice_range, nice_ticks};
use crate::chart::sparse;
use crate::document::html::GROUPED;
use crate::document::{Block, Cell, Element, Piece, Row as TableRow, Section, Table, Text};
use crate::format::{self, Unit};
use crate::words;

/// Bytes that all small lines should stay below, together.
const SERIES_BYTES: usize = 2_000_000;

/// Most and fewest points of such a line.
const POINTS: (usize, usize) = (16, 240);

/// Variants whose lines have room for all numbers beside them.
const SIDE_BY_SIDE_MOST: usize = 3;

struct Row<'a> {
    name: &'a str,
    unit: Unit,
    medians: Vec<(usize, Vec<Point>)>,
}

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let &Page { view, ref steps, runs, points, .. } = page;
    let section = Section::new(
        "counters",
        "Readings",
        "Database and machine",
        "Readings of the database and the machine. Each value is the mean over whole measured seconds, with the \
         range from lowest to highest; each second is the median of the repetitions. The lines of a row share one \
         scale. Resources per transaction cover the whole measurement phase of each trial, so they can differ \
         slightly.",
    );
    let meanings = meanings(runs);
    let drawn: Vec<usize> = (0..steps.len())
        .filter(|s| steps[*s].iter().any(|trial| !trial.readings.is_empty()))
        .collect();
    if drawn.is_empty() {
        return Some(section.with([Block::absent("No trial has readings.")]));
    }
    let n_names = |s: &usize| steps[*s].iter().map(|t| t.readings.len()).max().unwrap_or(0);
    let n_series = drawn.iter().map(n_names).sum::<usize>() * view.findings.variants.len();
    let most = (SERIES_BYTES / n_series.max(1) / 8).clamp(POINTS.0, POINTS.1);
    let panel = |step: usize| {
        let panel = Panel { view, step, trials: &steps[step], points };
        parts::panel(view, step, tables(&panel, &meanings, most))
    };
    Some(section.with(drawn.into_iter().map(panel)))
}

/// The machine's readings in groups, open; all others folded.
fn tables(panel: &Panel<'_>, meanings: &Meanings<'_>, n_points: usize) -> Vec<Block> {
    let names = panel.trials.iter().flat_map(|t| t.readings.keys()).map(String::as_str);
    let names: BTreeSet<&str> = names.collect();
    let chart = |name: &str| meanings.get(name).and_then(|reading| reading.chart);
    let is_shown = |name: &&str| match chart(name) {
        Some(chart) => chart.always || !panel.is_constant(name),
        None => !panel.is_constant(name),
    };
    let (moving, constant): (Vec<&str>, Vec<&str>) = names.into_iter().partition(is_shown);
    let (mut machine, others): (Vec<&str>, Vec<&str>) =
        moving.into_iter().partition(|name| chart(name).is_some());
    machine.sort_by_key(|name| (topic_of(meanings, name), chart(name).map(|c| c.place), *name));
    let table = |names: &[&str], head: &dyn Fn(&str) -> String| {
        table(panel, meanings, (names, n_points), head).into()
    };
    let mut blocks: Vec<Block> = panel.too_short().map(Block::quiet).into_iter().collect();
    blocks.extend([
        Block::Control(find()),
        Block::Control(
            Element::new("div").class("charts small chosen").with("data-step", panel.step),
        ),
    ]);
    if !machine.is_empty() {
        blocks.push(table(&machine, &|name| topic(topic_of(meanings, name)).to_owned()));
    }
    if !others.is_empty() {
        let n = words::counted(others.len(), "other reading", "other readings");
        let others = table(&others, &|name| group(meanings, name).to_owned());
        blocks.push(Block::fold(n, false, vec![others]));
    }
    if !constant.is_empty() {
        let n = words::counted(constant.len(), "reading", "readings");
        let still = vec![Block::quiet(constant.join(", "))];
        blocks.push(Block::fold(format!("{n} that did not change"), false, still));
    }
    blocks
}

fn topic_of(meanings: &Meanings<'_>, name: &str) -> usize {
    let of = meanings.get(name).map(|reading| reading.topic);
    TOPICS.iter().position(|(topic, _)| Some(*topic) == of).unwrap_or(TOPICS.len())
}

fn topic(idx: usize) -> &'static str {
    TOPICS.get(idx).map_or("Others", |(_, title)| title)
}

const TOPICS: [(Topic, &str); 7] = [
    (Topic::CpuMode, "CPU by mode: CPU seconds per second, all CPUs of the machine"),
    (Topic::CpuGroup, "CPU by group of processes"),
    (Topic::Load, "Load on the machine"),
    (Topic::Disk, "Disk"),
    (Topic::Files, "Data files"),
    (Topic::Memory, "Memory"),
    (Topic::Pressure, "Pressure: share of time in which some thread waited"),
];

fn table(
    panel: &Panel<'_>,
    meanings: &Meanings<'_>,
    (names, n_points): (&[&str], usize),
    head: &dyn Fn(&str) -> String,
) -> Table {
    let variants = panel.view.variants();
    let heads = variants.clone().map(|variant| panel.view.name(variant));
    let heads = std::iter::once(Text::from("Reading")).chain(heads);
    let class = if variants.len() > SIDE_BY_SIDE_MOST { "counters many" } else { "counters" };
    let mut table = Table { scroll: GROUPED, ..Table::of(heads, 1).class(class) };
    let unit = |name: &str| meanings.get(name).map_or(Unit::Count, |one| Unit::from(&one.unit));
    for own in names.chunk_by(|a, b| head(a) == head(b)) {
        let n_columns = table.columns.len();
        table.rows.push(TableRow::group(head(own[0]), n_columns));
        for name in own {
            let of = |v: usize| Some((v, panel.median(v, &Source::Reading((*name).to_owned()))?));
            let medians = variants.clone().filter_map(of).collect();
            let row = Row { name, unit: unit(name), medians };
            table.rows.push(table_row(&row, panel, (meanings.get(name).copied(), n_points)));
        }
    }
    table
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
    // What has a chart of its own among the machine's has a title; all others go by the names that servers give.
    let title = meaning.filter(|meaning| meaning.chart.is_some()).map(|meaning| &*meaning.title);
    let text = meaning.map_or("", |m| m.text.as_ref());
    let text = if title.is_some() { row.name } else { text };
    let lines = lines(row, panel, n_points).filter(|_| panel.too_short().is_none());
    let head = Text::from(title.unwrap_or(row.name)).small(text);
    let data = lines.as_ref().map(|lines| lines.data.clone());
    let head = data.into_iter().fold(head, Text::element);
    let value = |variant: usize| {
        let found = row.medians.iter().position(|(v, _)| *v == variant);
        let points = found.into_iter().flat_map(|i| &row.medians[i].1);
        let measured: Vec<f64> = points.filter(|p| p.0 >= 0.0).filter_map(|p| p.1).collect();
        let Some(found) = found.filter(|_| !measured.is_empty()) else { return Cell::none("–") };
        let mean = measured.iter().sum::<f64>() / measured.len() as f64;
        let low = row.unit.show(measured.iter().copied().fold(f64::INFINITY, f64::min));
        let high = row.unit.show(measured.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let range = if low == high { String::new() } else { format::range(&low, &high) };
        let line = lines.as_ref().map(|lines| spark(&lines.paths[found], variant, lines.width));
        let text =
            line.into_iter().fold(Text::default(), |text, line| text.then(Piece::Drawing(line)));
        Cell::from(text.b(row.unit.show(mean)).small(range)).class(format!("v{variant}"))
    };
    let values = panel.view.variants().map(value);
    let cells = std::iter::once(Cell::from(head).head()).chain(values);
    TableRow::new(cells).with("data-reading", row.name)
}

/// The lines of all variants on one scale, and what a script needs to make a chart of them.
struct Lines {
    paths: Vec<String>,
    width: f64,
    data: Element,
}

fn lines(row: &Row<'_>, panel: &Panel<'_>, n_points: usize) -> Option<Lines> {
    let values = || row.medians.iter().flat_map(|(_, points)| points).filter_map(|p| p.1);
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    if !(low.is_finite() && high.is_finite() && low < high) {
        return None;
    }
    let (low, high) = nice_range(low, high, 4);
    let ticks: Vec<String> = nice_ticks(low, high, 4).iter().map(f64::to_string).collect();
    let (from, to) = panel.time();
    let is_sparse = sparse::own_interval(row.medians.iter().map(|(_, points)| points)).is_some();
    let path = |(_, points): &(usize, Vec<Point>)| {
        path_of(&reduce(points, n_points), from, (low, high), is_sparse)
    };
    let data = Element::new("data").class("series").hidden();
    let data = data.with("data-x", format!("{from} {to}")).with("data-y", format!("{low} {high}"));
    let data = data.with("data-ticks", ticks.join(" ")).with("data-unit", unit_code(&row.unit));
    let data = if is_sparse { data.with("data-dots", "") } else { data };
    Some(Lines { paths: row.medians.iter().map(path).collect(), width: to - from, data })
}
