//! Rate and longest response time of each kind of transaction, second by second: a chart for each, in
//! which variants share the plot, and a table. Of the Insert Benchmark kinds are joined as its author
//! has them: rows inserted, queries, rows deleted.

use std::collections::{BTreeSet, HashMap};

use dyno_analysis::insert_benchmark::QUERIES;

use super::panel::{Key, Panel, Quantity, Source, TrialStep, large};
use crate::chart::reduce::Point;
use crate::document::{Block, Cell, Table};
use crate::format::Unit;
use crate::times::Times;
use crate::words;

/// Kinds that are drawn at most; more are in the export.
const GROUPS_MOST: usize = 8;

/// Kinds of transaction that are drawn as one.
struct Group {
    /// What begins the title of its rate: `Insert rate`, `new-order`.
    title: String,
    note: &'static str,
    /// One of them, in a sentence: `insert`.
    one: String,
    kinds: Vec<String>,
    /// Whether rows are counted, and not transactions.
    is_rows: bool,
}

/// A group's points: rates, and longest response times in microseconds, by trial.
struct Seconds {
    rates: HashMap<Key, Vec<Point>>,
    longest: HashMap<Key, Vec<Point>>,
}

/// Charts and table; nothing where a step has one kind only.
pub(crate) fn charts(panel: &Panel<'_>, times: &Times) -> Vec<Block> {
    let found: Vec<(Group, Seconds)> = groups(panel)
        .into_iter()
        .map(|group| {
            let seconds = seconds(panel, times, &group);
            (group, seconds)
        })
        .filter(|(_, seconds)| !seconds.rates.is_empty() || !seconds.longest.is_empty())
        .collect();
    if found.is_empty() {
        return Vec::new();
    }
    let mut charts = Vec::new();
    for (group, seconds) in &found {
        let rate = if group.title.ends_with(" rate") {
            group.title.clone()
        } else {
            format!("{}: throughput", group.title)
        };
        let points = |all: &HashMap<Key, Vec<Point>>| Source::Points(all.clone());
        let rates = Quantity::new(rate, group.note, Unit::PerSecond, points(&seconds.rates));
        let title = format!("Longest {}", group.one);
        let note = "longest response time of each second, from due time to completion";
        let longest = Quantity::new(title, note, Unit::Micros, points(&seconds.longest));
        charts.extend([rates, longest].iter().filter_map(|one| panel.overlay(one, large())));
    }
    let n = words::counted(found.len(), "kind", "kinds");
    let blocks = [Block::group("charts", charts)].into_iter().chain(table(panel, &found));
    let is_open = panel.view.findings.insert_benchmark.iter().any(|cell| cell.step == panel.step);
    vec![Block::fold(format!("By second, of each of {n}"), is_open, blocks.collect())]
}

/// What is drawn at a step: the author's three for the Insert Benchmark, else each kind that is done
/// more than a few times.
fn groups(panel: &Panel<'_>) -> Vec<Group> {
    let view = panel.view;
    let is_insert_benchmark =
        view.findings.insert_benchmark.iter().any(|cell| cell.step == panel.step);
    if is_insert_benchmark {
        let group = |one: &str, kinds: &[&str], is_rows: bool| Group {
            title: format!("{} rate", words::sentence(one)),
            note: if is_rows { "rows per second" } else { "queries per second" },
            one: one.to_owned(),
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            is_rows,
        };
        return vec![
            group("insert", &["insert"], true),
            group("query", &QUERIES, false),
            group("delete", &["delete"], true),
        ];
    }
    let names: BTreeSet<&str> =
        panel.trials.iter().flat_map(|t| &t.summary.kinds).map(|k| k.name.as_str()).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    if names.len() < 2 {
        return Vec::new();
    }
    super::kinds::in_order(view, &mut names);
    names.retain(|name| !view.is_one_off(name));
    let group = |name: &str| Group {
        title: view.kind_title(name).to_owned(),
        note: "committed per second",
        one: view.kind_title(name).to_owned(),
        kinds: vec![name.to_owned()],
        is_rows: false,
    };
    names.into_iter().take(GROUPS_MOST).map(group).collect()
}

fn seconds(panel: &Panel<'_>, times: &Times, group: &Group) -> Seconds {
    let mut found = Seconds { rates: HashMap::new(), longest: HashMap::new() };
    for trial in panel.trials {
        let scale = if group.is_rows { rows(panel, trial.variant) } else { 1.0 };
        let rates = rates(trial, &group.kinds, scale);
        if rates.iter().any(|p| p.1.is_some_and(|rate| rate > 0.0)) {
            found.rates.insert(trial.key, rates);
        }
        let longest = longest(trial, times, &group.kinds);
        if longest.iter().any(|p| p.1.is_some()) {
            found.longest.insert(trial.key, longest);
        }
    }
    found
}

/// Rows of one INSERT of a variant.
fn rows(panel: &Panel<'_>, variant: usize) -> f64 {
    let cells = &panel.view.findings.insert_benchmark;
    let own = cells.iter().find(|cell| (cell.variant, cell.step) == (variant, panel.step));
    own.and_then(|cell| cell.rows_per_insert).unwrap_or(1) as f64
}

/// Commits of some kinds in each whole second, out of the counts of 100 ms.
pub(crate) fn rates(trial: &TrialStep<'_>, kinds: &[String], scale: f64) -> Vec<Point> {
    let n = trial.intervals.start_s.len();
    let mut sums = vec![0.0; n];
    let mut is_known = false;
    for kind in trial.summary.kinds.iter().filter(|kind| kinds.contains(&kind.name)) {
        let Some(own) = dyno_analysis::stalls::rates_of_kind(trial.summary, &kind.name) else {
            continue;
        };
        is_known = true;
        sums.iter_mut().zip(own).for_each(|(sum, rate)| *sum += rate * scale);
    }
    let starts = trial.intervals.start_s.iter().copied();
    let points = starts.zip(sums).zip(&trial.is_whole);
    let whole = points.filter(|((start, _), is_whole)| is_known && **is_whole && start.is_finite());
    whole.map(|((start, rate), _)| (start, Some(rate))).collect()
}

pub(crate) fn longest(trial: &TrialStep<'_>, times: &Times, kinds: &[String]) -> Vec<Point> {
    let mut by_second: HashMap<i64, f64> = HashMap::new();
    for kind in kinds {
        for (at_s, us) in times.longest(trial.key, kind) {
            let most = by_second.entry(at_s.round() as i64).or_default();
            *most = most.max(*us);
        }
    }
    let whole = trial.intervals.start_s.iter().zip(&trial.is_whole);
    let whole = whole.filter(|(start, is_whole)| **is_whole && start.is_finite());
    whole.map(|(start, _)| (*start, by_second.get(&(start.round() as i64)).copied())).collect()
}

/// Mean, lowest and highest second of each kind, for each variant.
fn table(panel: &Panel<'_>, found: &[(Group, Seconds)]) -> Vec<Block> {
    // A record of before commits were counted in tenths of seconds has no rates by kind.
    if found.iter().all(|(_, seconds)| seconds.rates.is_empty()) {
        return Vec::new();
    }
    let heads = "Rate | Variant | #Mean | #Lowest second | #Highest second | #Seconds at zero | \
         #Longest";
    let mut table = Table::headed("Seconds by kind of transaction", heads);
    for (group, seconds) in found {
        for variant in panel.view.variants() {
            let own = || panel.trials.iter().filter(move |trial| trial.variant == variant);
            let measured = |points: &HashMap<Key, Vec<Point>>| -> Vec<f64> {
                let all = own().filter_map(|trial| points.get(&trial.key)).flatten();
                all.filter(|p| p.0 >= 0.0).filter_map(|p| p.1).collect()
            };
            let rates = measured(&seconds.rates);
            if rates.is_empty() {
                continue;
            }
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let high = rates.iter().copied().fold(0.0, f64::max);
            let without = rates.iter().filter(|rate| **rate == 0.0).count();
            let longest = measured(&seconds.longest).into_iter().reduce(f64::max);
            let longest = longest.map_or("–".to_owned(), |us| Unit::Micros.show(us));
            let place = [Cell::from(&*group.title).head(), panel.view.head(variant).value()];
            let rates_shown = [mean, low, high].map(|rate| Unit::PerSecond.show(rate).into());
            let others = [format!("{without} of {}", rates.len()), longest].map(Cell::from);
            table.row(place.into_iter().chain(rates_shown).chain(others));
        }
    }
    let note = Block::quiet("Covers every complete measured second of every repetition.");
    vec![table.into(), note]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::sections::panel::gather;
    use crate::view::View;
    use dyno_analysis::insert_benchmark::InsertBenchmarkCell;
    use dyno_record::EncodedCounts;

    #[test]
    fn the_insert_benchmark_has_rates_of_rows_and_of_queries() {
        let (mut findings, mut runs) = fixture::own_steps();
        for trial in &mut runs[0].trials {
            for step in &mut trial.steps {
                let n = step.intervals.start_s.len();
                for kind in &mut step.kinds {
                    let each = if kind.name == "insert" { 2 } else { 7 };
                    let kinds = vec![each; 10 * n];
                    kind.commits_100ms = Some(EncodedCounts::encode(&kinds));
                    if kind.name == "query" {
                        "market".clone_into(&mut kind.name);
                    }
                }
            }
        }
        findings.insert_benchmark = vec![InsertBenchmarkCell {
            variant: 0,
            step: 3,
            rows_per_insert: Some(50),
            ..InsertBenchmarkCell::default()
        }];
        let mut times = Times::new(&findings, &runs);
        fixture::times(&runs, &mut |run, trial, second| times.add(run, trial, second));
        let view = View::new(&findings);
        let steps = gather(&view, &runs);
        let panel = Panel { view: &view, step: 3, trials: &steps[3], points: 100 };
        let html = crate::document::html::shown(&charts(&panel, &times));
        for text in [
            "<b>Insert rate</b>",
            "<b>Query rate</b>",
            "<b>Longest insert</b>",
            "<b>Longest query</b>",
        ] {
            assert!(html.contains(text), "no {text} in {html}");
        }
        // 20 inserts of 50 rows, and 70 queries, in each second; nothing was deleted.
        assert!(
            html.contains("<td class=\"n\">1,000/s</td>") || html.contains("1,000/s"),
            "{html}"
        );
        assert!(html.contains("70/s") && !html.contains("Delete rate"));
        assert!(html.contains("0 of 120"), "40 seconds of three repetitions: {html}");
    }
}
