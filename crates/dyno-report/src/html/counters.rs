//! What the server and the machine did, second by second: the machine as charts, all other readings
//! as a table with search, each of which a script draws when it is asked for.

use std::collections::BTreeSet;

use dyno_units::Reading;
use dyno_units::reading::Topic;

use super::Page;
use super::panel::{Panel, Quantity, Source, TrialStep, small};
use super::parts;
use super::readings::{Meanings, group, meanings};
use crate::chart::lines::path_of;
use crate::chart::reduce::{Point, reduce};
use crate::chart::scale::{nice_range, nice_ticks};
use crate::chart::sparse;
use crate::document::Section;
use crate::format::{self, Unit};
use crate::markup::{Markup, escape};
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
    let Page { view, steps, runs, points, .. } = *page;
    let mut section = Section::new(
        "counters",
        "Counters",
        "Database and machine",
        "Readings of the database and the machine, on the same time axis as the load.",
    );
    let out = section.drawn();
    let meanings = meanings(runs);
    let drawn: Vec<usize> = (0..steps.len())
        .filter(|s| steps[*s].iter().any(|trial| !trial.readings.is_empty()))
        .collect();
    if drawn.is_empty() {
        out.classed("p", "absent", "No trial has readings.");
    }
    let n_series: usize = drawn.iter().map(|s| others(&steps[*s], &meanings).len()).sum();
    let n_series = n_series * view.findings.variants.len();
    let most = (SERIES_BYTES / n_series.max(1) / 7).clamp(POINTS.0, POINTS.1);
    for step in drawn {
        parts::open_panel(out, view, step);
        let panel = Panel { view, step, trials: &steps[step], points };
        machine(out, &panel, &meanings);
        table(out, &panel, &meanings, most);
        out.raw("</div>");
    }
    Some(section)
}

fn others<'a>(trials: &[TrialStep<'a>], meanings: &Meanings<'_>) -> BTreeSet<&'a str> {
    let names = trials.iter().flat_map(|t| t.readings.keys()).map(String::as_str);
    names.filter(|name| meanings.get(name).is_none_or(|one| one.chart.is_none())).collect()
}

fn machine(out: &mut Markup, panel: &Panel<'_>, meanings: &Meanings<'_>) {
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
    let note = "CPU seconds per second";
    if panel.view.findings.variants.len() <= SIDE_BY_SIDE_MOST {
        panel.by_variant(out, "CPU by mode", "all CPUs of the machine", &of(Topic::CpuMode));
        panel.by_variant(out, "CPU by group of processes", note, &of(Topic::CpuGroup));
    } else {
        topic(out, panel, "CPU by mode, all CPUs of the machine", &of(Topic::CpuMode));
        topic(out, panel, "CPU by group of processes", &of(Topic::CpuGroup));
    }
    topic(out, panel, "Load on the machine", &of(Topic::Load));
    topic(out, panel, "Disk", &of(Topic::Disk));
    topic(out, panel, "Data files", &of(Topic::Files));
    topic(out, panel, "Memory", &of(Topic::Memory));
    let title = "Pressure: share of time in which some thread waited";
    topic(out, panel, title, &of(Topic::Pressure));
}

fn topic(out: &mut Markup, panel: &Panel<'_>, title: &str, readings: &[(&str, &Reading)]) {
    let mut charts = Markup::new();
    for (name, reading) in readings {
        let quantity = Quantity {
            title: reading.title.to_string(),
            note: (*name).to_owned(),
            unit: Unit::from(&reading.unit),
            source: Source::Reading((*name).to_owned()),
            is_marked: false,
        };
        panel.overlay(&mut charts, &quantity, small());
    }
    // A reading may have no value within the measured time.
    let charts = charts.finish();
    if !charts.is_empty() {
        out.element("h4", title);
        out.raw("<div class=\"charts small\">").raw(charts).raw("</div>");
    }
}

fn table(out: &mut Markup, panel: &Panel<'_>, meanings: &Meanings<'_>, n_points: usize) {
    let names = others(panel.trials, meanings);
    let (constant, moving): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| panel.is_constant(name));
    if moving.is_empty() && constant.is_empty() {
        return;
    }
    let variants: Vec<usize> = (0..panel.view.findings.variants.len()).collect();
    out.element("h4", format!("Other readings ({})", moving.len()));
    out.raw(format_args!(
        "<div class=\"find\" hidden><input type=\"search\" placeholder=\"Search by name or meaning\" \
         aria-label=\"Search readings\"><span class=\"quiet\">Select readings to plot \
         them.</span></div><div class=\"charts small chosen\" data-step=\"{}\"></div>\
         <div class=\"scroll tall\"><table class=\"counters\"><thead><tr><th scope=\"col\">Reading</th>",
        panel.step
    ));
    for variant in &variants {
        out.raw("<th class=\"n\" scope=\"col\">")
            .raw(parts::name(panel.view, *variant))
            .raw("</th>");
    }
    out.raw("</tr></thead>");
    let unit = |name: &str| meanings.get(name).map_or(Unit::Count, |one| Unit::from(&one.unit));
    for group_of in moving.chunk_by(|a, b| group(meanings, a) == group(meanings, b)) {
        let span = variants.len() + 1;
        out.raw(format_args!(
            "<tbody><tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{span}\">"
        ));
        out.text(group(meanings, group_of[0])).raw("</th></tr>");
        for name in group_of {
            let of =
                |v: &usize| Some((*v, panel.median(*v, &Source::Reading((*name).to_owned()))?));
            let medians = variants.iter().filter_map(of).collect();
            let row = Row { name, unit: unit(name), medians };
            write_row(out, &row, panel, (meanings.get(name).copied(), n_points));
        }
        out.raw("</tbody>");
    }
    out.raw("</table></div>").classed(
        "p",
        "quiet",
        "Each value is the mean over whole measured seconds, with the range from lowest to highest \
         below it; each second is the median of the repetitions. Resources per transaction (under \
         The numbers) cover the whole measurement phase of each trial, so they can differ slightly.",
    );
    if !constant.is_empty() {
        out.raw("<details class=\"fold\">");
        let n = words::counted(constant.len(), "reading", "readings");
        out.element("summary", format!("{n} that did not change"));
        out.classed("p", "quiet", constant.join(", ")).raw("</details>");
    }
}

fn write_row(
    out: &mut Markup,
    row: &Row<'_>,
    panel: &Panel<'_>,
    (meaning, n_points): (Option<&Reading>, usize),
) {
    let name = escape(row.name);
    let text = meaning.map_or("", |m| m.text.as_ref());
    out.raw(format_args!("<tr data-reading=\"{name}\"><th scope=\"row\">{name}"));
    out.element("small", text);
    series(out, row, panel, n_points);
    out.raw("</th>");
    for variant in 0..panel.view.findings.variants.len() {
        let found = row.medians.iter().find(|(v, _)| *v == variant);
        let measured: Vec<f64> = found
            .into_iter()
            .flat_map(|(_, points)| points.iter().filter(|p| p.0 >= 0.0).filter_map(|p| p.1))
            .collect();
        if measured.is_empty() {
            out.raw("<td class=\"n none\">–</td>");
            continue;
        }
        let mean = measured.iter().sum::<f64>() / measured.len() as f64;
        let low = measured.iter().copied().fold(f64::INFINITY, f64::min);
        let high = measured.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        out.raw(format_args!("<td class=\"n v{variant}\">")).element("b", row.unit.show(mean));
        let (low, high) = (row.unit.show(low), row.unit.show(high));
        let range = if low == high { String::new() } else { format::range(&low, &high) };
        out.element("small", range).raw("</td>");
    }
    out.raw("</tr>");
}

/// What a script draws a chart of: the paths of all variants on one scale.
fn series(out: &mut Markup, row: &Row<'_>, panel: &Panel<'_>, n_points: usize) {
    let values = || row.medians.iter().flat_map(|(_, points)| points).filter_map(|p| p.1);
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    if !(low.is_finite() && high.is_finite() && low < high) {
        return;
    }
    let (low, high) = nice_range(low, high, 4);
    let ticks: Vec<String> = nice_ticks(low, high, 4).iter().map(f64::to_string).collect();
    let (from, to) = panel.time();
    let paths: Vec<String> = row
        .medians
        .iter()
        .map(|(variant, points)| {
            let path = path_of(&reduce(points, n_points), from, (low, high));
            format!("{variant}:{path}")
        })
        .collect();
    let is_sparse = sparse::own_interval(row.medians.iter().map(|(_, points)| points)).is_some();
    out.raw(format_args!(
        "<data class=\"series\" hidden data-x=\"{from} {to}\" data-y=\"{low} {high}\" data-ticks=\"{}\" \
         data-unit=\"{}\"{} value=\"{}\"></data>",
        ticks.join(" "),
        escape(&crate::chart::lines::unit_code(&row.unit)),
        if is_sparse { " data-dots=\"\"" } else { "" },
        paths.join("|")
    ));
}
