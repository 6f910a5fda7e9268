//! What all charts of one step by second share: its trials, the lines of a quantity, the axis of
//! time, and the marks of stalls.

use std::collections::{BTreeMap, HashMap};

use dyno_record::{IntervalColumns, Run, StepSummary};

use crate::chart::lines::{Across, LinesChart, Moment, Series, Shape};
use crate::chart::reduce::{Point, Together, together};
use crate::chart::sparse;
use crate::chart::{Frame, variant_class};
use crate::document::{Block, Figure};
use crate::findings_index::FindingsIndex;
use crate::format::{self, Unit};
use crate::markup::Markup;
use crate::view::View;

/// The most lines of single repetitions in a chart; from there on they become an area.
const LIGHT_LINES_MAX: usize = 16;

/// Bytes that all paths of one-second charts together should stay below.
const PATHS_BYTES: usize = 5_000_000;

/// About the bytes of a path without its points, and its share of its chart.
const PATH_BYTES: usize = 90;

/// About the bytes of a point in a path.
const POINT_BYTES: usize = 7;

/// Up to so many repetitions each is a line of its own, and their median, which no run had, is none.
const APART_MOST: usize = 5;

/// A measurement of fewer whole seconds has no course to show by second.
const SECONDS_LEAST: usize = 5;

/// Ratio of largest to smallest value from which on a logarithmic axis is used for times.
const LOG_FROM: f64 = 40.0;

/// With more variants than this, moments are marked above the lines instead of behind them.
const MOMENTS_OVER_MOST: usize = 3;

const MOMENTS_MOST: usize = 200;

pub(crate) struct TrialStep<'a> {
    pub(crate) variant: usize,
    /// What the clients saw.
    pub(crate) intervals: &'a IntervalColumns,
    pub(crate) readings: &'a BTreeMap<String, Vec<Option<f64>>>,
    pub(crate) summary: &'a StepSummary,
    pub(crate) key: Key,
    /// Which of its intervals are whole seconds.
    pub(crate) is_whole: Vec<bool>,
}

/// A run, the number of a trial, and a step of the run.
pub(crate) type Key = (usize, u32, usize);

/// An interval that is shorter is no second: what was done in it, by the second, is noise.
const WHOLE_S: f64 = 0.95;

/// Which intervals of a step are whole seconds: the last one of a phase may be cut short. Where no
/// interval is a whole second, all of them count.
fn whole_seconds(summary: &StepSummary) -> Vec<bool> {
    let starts = &summary.intervals.start_s;
    let end = |i: usize| starts.get(i + 1).copied().unwrap_or(summary.measured_s);
    let is_short = |i: usize| (0.0..WHOLE_S).contains(&(end(i) - starts[i]));
    let whole: Vec<bool> = (0..starts.len()).map(|i| !is_short(i)).collect();
    if whole.contains(&true) { whole } else { vec![true; starts.len()] }
}

#[derive(Clone)]
pub(crate) struct Quantity {
    pub(crate) title: String,
    /// What it is; may be empty.
    pub(crate) note: String,
    pub(crate) unit: Unit,
    pub(crate) source: Source,
    /// Whether stalls and changes of level are marked: where all clients saw them.
    pub(crate) is_marked: bool,
}

impl Quantity {
    pub(crate) fn new(
        title: impl Into<String>,
        note: impl Into<String>,
        unit: Unit,
        source: Source,
    ) -> Quantity {
        Quantity { title: title.into(), note: note.into(), unit, source, is_marked: false }
    }
}

#[derive(Clone)]
pub(crate) enum Source {
    /// A rate; zero is a value.
    Rate(fn(&IntervalColumns) -> &Vec<f64>),
    /// A response time; zero means that nothing was done in that second.
    Time(fn(&IntervalColumns) -> &Vec<f64>),
    Reading(String),
    Points(HashMap<Key, Vec<Point>>),
    /// The same of each tenth of a second.
    Tenths(HashMap<Key, Vec<Point>>),
}

/// By the findings' steps.
pub(crate) fn gather<'a>(view: &View<'_>, runs: &'a [Run]) -> Vec<Vec<TrialStep<'a>>> {
    let findings = view.findings;
    let mut steps: Vec<Vec<TrialStep<'a>>> = findings.steps.iter().map(|_| Vec::new()).collect();
    for (i, trial, (variant, at), step) in FindingsIndex::new(findings, runs).steps(runs) {
        steps[at].push(TrialStep {
            variant,
            intervals: &step.intervals,
            readings: &step.readings,
            summary: step,
            key: (i, trial.number, step.step),
            is_whole: whole_seconds(step),
        });
    }
    steps.iter_mut().for_each(|trials| trials.sort_by_key(|t| t.variant));
    steps
}

/// Most points of a path, so that the whole report stays small.
pub(crate) fn points_most(view: &View<'_>, steps: &[Vec<TrialStep<'_>>]) -> usize {
    let n_variants = view.findings.variants.len();
    let paths: usize = steps.iter().map(|trials| n_paths(trials, n_variants)).sum();
    let points = (PATHS_BYTES / paths.max(1)).saturating_sub(PATH_BYTES) / POINT_BYTES;
    points.clamp(22, 3600)
}

fn n_paths(trials: &[TrialStep<'_>], n_variants: usize) -> usize {
    let lines = if trials.len() <= LIGHT_LINES_MAX {
        trials.len() + n_variants
    } else {
        // A median, and an area of two lines.
        3 * n_variants
    };
    const CHARTS: usize = 7;
    lines * CHARTS
}

pub(crate) struct Panel<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) step: usize,
    pub(crate) trials: &'a [TrialStep<'a>],
    pub(crate) points: usize,
}

impl Panel<'_> {
    /// The whole seconds that were measured, in the longest trial.
    pub(crate) fn n_seconds(&self) -> usize {
        let measured = |t: &TrialStep<'_>| {
            let both = t.intervals.start_s.iter().zip(&t.is_whole);
            both.filter(|(start, is_whole)| **is_whole && **start >= 0.0).count()
        };
        self.trials.iter().map(measured).max().unwrap_or(0)
    }

    /// Why nothing is drawn by second: that it was too short.
    pub(crate) fn too_short(&self) -> Option<String> {
        (self.n_seconds() < SECONDS_LEAST).then(|| {
            format!(
                "Each trial was measured for {}: too short to plot by second.",
                format::seconds(self.longest())
            )
        })
    }

    fn longest(&self) -> f64 {
        self.trials.iter().map(|t| t.summary.measured_s).fold(0.0, f64::max)
    }

    /// Commits in each tenth of a second, where the record has them.
    pub(crate) fn tenths(&self) -> HashMap<Key, Vec<Point>> {
        let of =
            |t: &TrialStep<'_>| Some((t.key, dyno_analysis::stalls::rates_of_tenths(t.summary)?));
        let some = |(key, rates): (Key, Vec<(f64, f64)>)| {
            (key, rates.into_iter().map(|(start, rate)| (start, Some(rate))).collect())
        };
        self.trials.iter().filter_map(of).map(some).collect()
    }

    pub(crate) fn is_zero(&self, source: &Source) -> bool {
        self.trials.iter().all(|t| points(t, source).iter().all(|p| p.1.unwrap_or(0.0) == 0.0))
    }

    pub(crate) fn is_constant(&self, name: &str) -> bool {
        let mut values =
            self.trials.iter().filter_map(|t| t.readings.get(name)).flatten().flatten();
        let Some(first) = values.next() else { return true };
        values.all(|v| v == first)
    }

    /// The median over a variant's trials of a quantity, second by second; none where it has none.
    pub(crate) fn median(&self, variant: usize, source: &Source) -> Option<Vec<Point>> {
        let own = self.trials.iter().filter(|t| t.variant == variant);
        let all: Vec<Vec<Point>> = own.map(|t| points(t, source)).collect();
        let median = joined(&all, 1.0).median;
        median.iter().any(|p| p.1.is_some()).then_some(median)
    }

    /// The lines of all trials of a variant, background first, with their class and their name.
    /// `n` is the number of single lines that the whole chart would have.
    fn lines(&self, variant: usize, what: &Source, (class, name): (&str, &str), n: usize) -> Lines {
        let all = self.trials.iter().filter(|t| t.variant == variant).map(|t| points(t, what));
        let mut all: Vec<Vec<Point>> = all.filter(|p| p.iter().any(|p| p.1.is_some())).collect();
        let mut lines = Lines::default();
        if all.is_empty() {
            return lines;
        }
        lines.values = all.iter().flatten().filter_map(|p| p.1).fold(None, widen);
        let series = |weight: &str, name: Option<&str>, shape| Series {
            class: format!("{weight} {class}"),
            name: name.map(str::to_owned),
            shape,
        };
        let length = if matches!(what, Source::Tenths(_)) { 0.1 } else { 1.0 };
        let joined = joined(&all, length);
        let interval = sparse::own_interval(&all);
        if let Some(interval) = interval {
            all.iter_mut().for_each(|points| *points = sparse::bridged(points, interval));
        }
        let line = |points| match interval {
            Some(_) => Shape::Line(points),
            None => Shape::Steps(points, length),
        };
        let is_apart = all.len() > 1 && n <= LIGHT_LINES_MAX;
        let is_alone = is_apart && all.len() <= APART_MOST;
        let (rep, median) = if is_alone { ("l rep few", "l med read") } else { ("l rep", "l med") };
        let marked = if is_alone { all.clone() } else { vec![joined.median.clone()] };
        if is_apart {
            lines.back = all.into_iter().map(|p| series(rep, None, line(p))).collect();
        } else if all.len() > 1 {
            let area = match interval {
                Some(_) => Shape::Area(joined.lowest, joined.highest),
                None => Shape::StepArea(joined.lowest, joined.highest),
            };
            lines.back.push(series("env", None, area));
        }
        lines.front.push(series(median, Some(name), line(joined.median)));
        let marks = marked.into_iter().filter(|_| interval.is_some());
        lines.front.extend(marks.map(|points| series("l dots", None, Shape::Marks(points))));
        lines
    }

    /// A chart in which all variants share the plot; none where there is no value.
    pub(crate) fn overlay(&self, quantity: &Quantity, frame: Frame) -> Option<Block> {
        let mut lines = Lines::default();
        for variant in self.view.variants() {
            let (class, name) = (variant_class(variant), self.view.variant(variant));
            let n = self.trials.len();
            lines.extend(self.lines(variant, &quantity.source, (&class, name), n));
        }
        let place = (frame, quantity.is_marked);
        let svg = self.chart(&quantity.title, quantity.unit.clone(), lines, place)?;
        let mut note = with_unit(&quantity.note, &quantity.unit);
        if svg.contains(" data-log") {
            note += " · log scale";
        }
        Some(Figure::new(&*quantity.title, note, svg).block())
    }

    fn chart(
        &self,
        title: &str,
        unit: Unit,
        lines: Lines,
        (frame, is_marked): (Frame, bool),
    ) -> Option<Markup> {
        let (low, high) = lines.values?;
        let is_log = unit == Unit::Micros && low > 0.0 && high / low >= LOG_FROM;
        let (from, to) = self.time();
        let series = lines.back.into_iter().chain(lines.front).collect();
        let across = Across::Seconds { from, to };
        let chart = LinesChart {
            label: format!("{title} by second, {}", self.view.step(self.step)),
            row: format!("step{}", self.step),
            moments: if is_marked { self.moments() } else { Vec::new() },
            is_log,
            series,
            max_points: self.points,
            ..LinesChart::new(across, unit, (low, high), frame)
        };
        Some(chart.svg())
    }

    /// Faults, stalls, and changes of level where at least half of a variant's trials agree that there are
    /// some.
    fn moments(&self) -> Vec<Moment> {
        let mut moments = Vec::new();
        for variant in self.view.variants() {
            let Some(cell) = self.view.cell(variant, self.step) else { continue };
            let changed = cell.time.iter().filter(|t| !t.changes.is_empty()).count();
            let is_agreed = 2 * changed >= cell.time.len();
            let name = self.view.variant(variant);
            let mut push = |trial: u32, (at, length): (f64, f64), what: String| {
                let class = variant_class(variant);
                let title = format!("{name}, trial {trial}, {at} s: {what}");
                let n = self.view.findings.variants.len();
                let lane = (n > MOMENTS_OVER_MOST).then_some((variant, n));
                moments.push(Moment { at, length, class, lane, title });
            };
            let faults = self.view.findings.faults.iter();
            for facts in faults.filter(|one| (one.variant, one.step) == (variant, self.step)) {
                let fault = &facts.fault;
                let at = (fault.began_s * 10.0).round() / 10.0;
                let length = facts.answered_after_s.unwrap_or(0.0);
                let text = format!("fault {}: {} of {}", fault.name, fault.kind, fault.member);
                push(facts.trial, (at, length), text);
            }
            let fine = self.view.stalls(variant, self.step);
            for stall in &fine {
                let missing = Unit::Count.show(stall.missing.round());
                let length = (stall.length_s * 100.0).round() / 100.0;
                let what = if stall.gap {
                    "nothing committed for"
                } else {
                    "almost nothing committed for"
                };
                let text = format!("{what} {length} s, {missing} fewer transactions than expected");
                push(stall.trial, (stall.start_s, stall.length_s), text);
            }
            for facts in &cell.time {
                for stall in facts.stalls.iter().filter(|_| fine.is_empty()) {
                    let missing = Unit::Count.show(stall.missing.round());
                    let text = format!(
                        "stall of {} s, {missing} fewer transactions than expected",
                        stall.seconds
                    );
                    push(facts.trial, (stall.at_s, f64::from(stall.seconds)), text);
                }
                for change in facts.changes.iter().filter(|_| is_agreed) {
                    let show = |value| Unit::PerSecond.show(value);
                    let (before, after) = (show(change.before), show(change.after));
                    let text = format!("level changes from {before} to {after}");
                    push(facts.trial, (change.at_s, 0.0), text);
                }
            }
        }
        moments.truncate(MOMENTS_MOST);
        moments
    }

    /// From the first to the end of the last second of the step, in any trial.
    pub(crate) fn time(&self) -> (f64, f64) {
        let whole = |t: &'_ TrialStep<'_>| -> Vec<f64> {
            let both = t.intervals.start_s.iter().zip(&t.is_whole);
            both.filter(|(s, is_whole)| **is_whole && s.is_finite()).map(|(s, _)| *s).collect()
        };
        let starts = || self.trials.iter().flat_map(whole);
        let from = starts().fold(f64::INFINITY, f64::min);
        let to = starts().fold(f64::NEG_INFINITY, f64::max);
        if from > to {
            return (0.0, 1.0);
        }
        let end = if self.n_seconds() < SECONDS_LEAST { self.longest() } else { 0.0 };
        (from.round(), end.max(to.round() + 1.0))
    }
}

/// What a chart shows, with its unit where that does not stand at its axis.
pub(crate) fn with_unit(note: &str, unit: &Unit) -> String {
    match unit.beside_axis() {
        Some(unit) if note.is_empty() => format!("in {unit}"),
        Some(unit) => format!("{note} · in {unit}"),
        None => note.to_owned(),
    }
}

/// What the clients saw: two charts beside each other.
pub(crate) fn large() -> Frame {
    Frame::new(560.0, 190.0)
}

/// What the machine did: three charts beside each other.
pub(crate) fn small() -> Frame {
    Frame::new(370.0, 138.0)
}

/// Series of several trials seen together, each by its own interval; those of points that are so far apart.
fn joined(all: &[Vec<Point>], apart: f64) -> Together {
    let placed = |points: &Vec<Point>, by: f64| points.iter().map(|(x, v)| (x * by, *v)).collect();
    match sparse::own_interval(all) {
        Some(interval) => sparse::joined(all, interval),
        None if apart == 1.0 => together(all),
        None => {
            let all: Vec<Vec<Point>> =
                all.iter().map(|points| placed(points, apart.recip())).collect();
            let Together { median, lowest, highest } = together(&all);
            let [median, lowest, highest] =
                [median, lowest, highest].map(|points| placed(&points, apart));
            Together { median, lowest, highest }
        }
    }
}

#[derive(Default)]
struct Lines {
    back: Vec<Series>,
    front: Vec<Series>,
    values: Option<(f64, f64)>,
}

impl Lines {
    fn extend(&mut self, other: Lines) {
        self.back.extend(other.back);
        self.front.extend(other.front);
        if let Some((low, high)) = other.values {
            self.values = widen(widen(self.values, low), high);
        }
    }
}

fn widen(range: Option<(f64, f64)>, value: f64) -> Option<(f64, f64)> {
    let (low, high) = range.unwrap_or((value, value));
    Some((low.min(value), high.max(value)))
}

/// The points of a quantity in a trial. A response time of zero means that nothing was done.
fn points(trial: &TrialStep<'_>, source: &Source) -> Vec<Point> {
    let starts = trial.intervals.start_s.iter().copied();
    let finite = |v: &f64| Some(*v).filter(|v| v.is_finite());
    let values: Vec<Option<f64>> = match source {
        Source::Rate(pick) => pick(trial.intervals).iter().map(finite).collect(),
        Source::Time(pick) => {
            let done = |v: &f64| finite(v).filter(|v| *v > 0.0);
            pick(trial.intervals).iter().map(done).collect()
        }
        Source::Points(all) | Source::Tenths(all) => {
            return all.get(&trial.key).cloned().unwrap_or_default();
        }
        Source::Reading(name) => match trial.readings.get(name) {
            Some(column) => column.iter().map(|v| v.as_ref().and_then(finite)).collect(),
            None => Vec::new(),
        },
    };
    let whole = starts.zip(values).zip(&trial.is_whole).filter(|(_, is_whole)| **is_whole);
    whole.map(|(point, _)| point).filter(|(start, _)| start.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_second_that_was_cut_short_is_no_second() {
        let (_, runs) = fixture::single();
        let mut summary = runs[0].trials[0].steps[0].clone();
        let mut check = |starts: &[f64], measured_s: f64, expected: &[bool]| {
            summary.intervals.start_s = starts.to_vec();
            summary.measured_s = measured_s;
            assert_eq!(whole_seconds(&summary), expected, "{starts:?} {measured_s}");
        };
        check(&[-1.0, 0.0, 1.0], 2.0, &[true, true, true]);
        check(&[-1.4, -0.4, 0.0, 1.0], 1.5, &[true, false, true, false]);
        check(&[0.0, 1.001, 2.0], 2.98, &[true, true, true]);
        // Less than a second in all: better a short second than none.
        check(&[0.0], 0.4, &[true]);
        // A record that does not tell how long it was.
        check(&[0.0, 1.0], 0.0, &[true, true]);
    }
}
