//! One-second charts: every second of every step, warm-up shaded.
//!
//! Variants share a chart, except where a chart needs several lines for each of them: those are
//! drawn once per variant, on the same scale. Repetitions are light, their median is bold.

use std::collections::{BTreeMap, HashMap};

use dyno_record::{IntervalColumns, Run, TrialOutcome};

use super::parts;
use super::readings::{Reading, Topic, classify};
use crate::chart::lines::{Across, LinesChart, Moment, Series, Shape};
use crate::chart::reduce::{Point, together};
use crate::chart::{Frame, variant_class};
use crate::format::Unit;
use crate::markup::{Markup, escape};
use crate::view::View;
use crate::words;

/// The most lines of single repetitions in a chart; from there on they become an area.
const LIGHT_LINES_MAX: usize = 16;

/// Bytes that all paths of one-second charts together should stay below.
const PATHS_BYTES: usize = 6_000_000;

/// About the bytes of a path without its points, and its share of its chart.
const PATH_BYTES: usize = 90;

/// About the bytes of a point in a path.
const POINT_BYTES: usize = 6;

/// With fewer points than this the further readings are left to the record.
const POINTS_WANTED: usize = 100;

/// Readings without a chart of their own that are drawn.
const OTHERS_MAX: usize = 36;

/// Ratio of largest to smallest value from which on a logarithmic axis is used for times.
const LOG_FROM: f64 = 40.0;

/// One step of one finished trial.
struct TrialStep<'a> {
    variant: usize,
    intervals: &'a IntervalColumns,
    readings: &'a BTreeMap<String, Vec<Option<f64>>>,
}

/// What is drawn.
#[derive(Clone)]
struct Quantity {
    title: String,
    note: String,
    unit: Unit,
    source: Source,
}

impl Quantity {
    /// Whether stalls and changes of level are marked: where clients saw them.
    fn is_marked(&self) -> bool {
        ["Throughput", "p95 response time", "Longest response time"].contains(&self.title.as_str())
    }
}

/// Where its values are.
#[derive(Clone)]
enum Source {
    /// A rate; zero is a value.
    Rate(fn(&IntervalColumns) -> &Vec<f64>),
    /// A response time; zero means that nothing was done in that second.
    Time(fn(&IntervalColumns) -> &Vec<f64>),
    /// A reading, by its name.
    Reading(String),
}

/// One quantity of one variant: a median with its repetitions behind it.
struct Strand<'a> {
    variant: usize,
    source: &'a Source,
    class: &'a str,
    name: &'a str,
}

/// Most moments that are marked in a chart.
const MOMENTS_MOST: usize = 200;

/// Writes the section.
pub(crate) fn section(out: &mut Markup, view: &View<'_>, runs: &[Run]) {
    parts::open_section(
        out,
        "seconds",
        "Second by second",
        "Repetitions are light, their median is bold; warm-up is shaded and not used for estimates. \
         Drag over a chart to see a stretch of time, double-click to see all of it again.",
    );
    let steps = gather(view, runs);
    let drawn: Vec<usize> = (0..steps.len()).filter(|s| !steps[*s].is_empty()).collect();
    if drawn.is_empty() {
        out.classed("p", "absent", "No trial has one-second values.");
    }
    let first = default_step(view, &drawn);
    selector(out, view, &drawn, first);
    let budget = Budget::new(view, &steps);
    for step in drawn {
        let trials = &steps[step];
        let on = if Some(step) == first { " on" } else { "" };
        out.raw(format_args!("<div class=\"panel{on}\" data-step=\"{step}\">"));
        out.element("h3", view.step(step));
        Panel { view, step, trials, budget }.write(out);
        out.raw("</div>");
    }
    out.raw("</section>");
}

/// The step with the largest throughput: what most readers look for first.
fn default_step(view: &View<'_>, drawn: &[usize]) -> Option<usize> {
    let best = |step: &usize| {
        (0..view.findings.variants.len())
            .filter_map(|v| view.estimate(v, *step, dyno_analysis::Metric::Throughput))
            .map(|e| e.value)
            .fold(0.0, f64::max)
    };
    drawn.iter().copied().max_by(|a, b| best(a).total_cmp(&best(b)))
}

/// Buttons, one for each step; without a script all steps are shown and there are none.
fn selector(out: &mut Markup, view: &View<'_>, drawn: &[usize], on: Option<usize>) {
    if drawn.len() < 2 {
        return;
    }
    out.raw("<div class=\"steps\" role=\"group\" aria-label=\"Step\" hidden>");
    for step in drawn {
        out.raw(format_args!(
            "<button type=\"button\" data-step=\"{step}\" aria-pressed=\"{}\">{}</button>",
            Some(*step) == on,
            escape(view.step(*step))
        ));
    }
    out.raw("</div>");
}

/// The steps of finished trials, by the findings' steps.
fn gather<'a>(view: &View<'_>, runs: &'a [Run]) -> Vec<Vec<TrialStep<'a>>> {
    let findings = view.findings;
    let mut steps: Vec<Vec<TrialStep<'a>>> = findings.steps.iter().map(|_| Vec::new()).collect();
    for (run, planned) in runs.iter().zip(planned(view, runs)) {
        let variants: Vec<&str> = findings.variants.iter().map(|v| v.name.as_str()).collect();
        let step_names: Vec<&str> = findings.steps.iter().map(|s| s.name.as_str()).collect();
        for trial in run.trials.iter().filter(|t| t.outcome == TrialOutcome::Finished) {
            let name = run.manifest.variants.get(trial.variant).map(|v| v.name.as_str());
            let by_plan = planned.get(&trial.number).copied();
            let by_name = || place(&variants, name, trial.variant);
            let Some(variant) = by_plan.or_else(by_name) else { continue };
            for step in &trial.steps {
                let name = run.manifest.steps.get(step.step).map(|s| s.name.as_str());
                let Some(at) = place(&step_names, name, step.step) else { continue };
                steps[at].push(TrialStep {
                    variant,
                    intervals: &step.intervals,
                    readings: &step.readings,
                });
            }
        }
    }
    for trials in &mut steps {
        trials.sort_by_key(|t| t.variant);
    }
    steps
}

/// For each run the variant of each trial by its number. The findings list the trials of all runs
/// in their order; where they do not, nothing is known and names must tell.
pub(super) fn planned(view: &View<'_>, runs: &[Run]) -> Vec<HashMap<u32, usize>> {
    let n_variants = view.findings.variants.len();
    let mut facts = view.findings.trials.iter();
    let mut all = Vec::new();
    for run in runs {
        let mut variants = HashMap::new();
        for plan in &run.manifest.trials {
            match facts.next() {
                Some(fact) if fact.number == plan.number && fact.variant < n_variants => {
                    variants.insert(plan.number, fact.variant);
                }
                _ => return runs.iter().map(|_| HashMap::new()).collect(),
            }
        }
        all.push(variants);
    }
    all
}

/// The index of a name among those of the findings. Where several runs are analysed together their
/// own indexes need not be those of the findings; where names were made unlike, they still are.
fn place(names: &[&str], name: Option<&str>, index: usize) -> Option<usize> {
    names.iter().position(|n| Some(*n) == name).or((index < names.len()).then_some(index))
}

/// What may be drawn, so that the whole report stays small.
#[derive(Clone, Copy)]
struct Budget {
    /// Most points of a path.
    points: usize,
    /// Most readings without a place of their own.
    others: usize,
}

impl Budget {
    fn new(view: &View<'_>, steps: &[Vec<TrialStep<'_>>]) -> Budget {
        let n_variants = view.findings.variants.len();
        let points = |others: usize| {
            let paths: usize = steps.iter().map(|trials| n_paths(trials, n_variants, others)).sum();
            (PATHS_BYTES / paths.max(1)).saturating_sub(PATH_BYTES) / POINT_BYTES
        };
        let others = if points(OTHERS_MAX) >= POINTS_WANTED { OTHERS_MAX } else { 0 };
        Budget { points: points(others).clamp(24, 3600), others }
    }
}

/// About the number of paths in the charts of a step.
fn n_paths(trials: &[TrialStep<'_>], n_variants: usize, others: usize) -> usize {
    let lines = if trials.len() <= LIGHT_LINES_MAX {
        trials.len() + n_variants
    } else {
        // A median, and an area of two lines.
        3 * n_variants
    };
    let names = trials.iter().map(|t| t.readings.keys());
    let readings = names.max_by_key(|names| names.len()).into_iter().flatten();
    let (known, unknown): (Vec<&String>, Vec<&String>) =
        readings.partition(|name| classify(name).topic != Topic::Other);
    const COLUMNS: usize = 7;
    lines * (known.len() + unknown.len().min(others) + COLUMNS)
}

/// The charts of one step.
struct Panel<'a> {
    view: &'a View<'a>,
    step: usize,
    trials: &'a [TrialStep<'a>],
    budget: Budget,
}

impl Panel<'_> {
    fn write(&self, out: &mut Markup) {
        self.clients(out);
        let (readings, constant) = self.readings();
        let of = |topic: Topic| -> Vec<&(String, Reading)> {
            readings.iter().filter(|(_, r)| r.topic == topic).collect()
        };
        self.by_variant(out, "CPU by mode", "all CPUs of the machine", &of(Topic::CpuMode));
        self.by_variant(
            out,
            "CPU by group of processes",
            "CPU seconds per second",
            &of(Topic::CpuGroup),
        );
        self.topic(out, "Disk", &of(Topic::Disk));
        self.topic(out, "Memory", &of(Topic::Memory));
        self.topic(out, "Pressure: share of time in which something waited", &of(Topic::Pressure));
        self.others(out, &of(Topic::Other), &constant);
    }

    /// What the clients saw.
    fn clients(&self, out: &mut Markup) {
        let quantity = |title: &str, note: &str, source: Source| Quantity {
            title: title.to_owned(),
            note: note.to_owned(),
            unit: if matches!(source, Source::Rate(_)) { Unit::PerSecond } else { Unit::Micros },
            source,
        };
        out.raw("<div class=\"charts\">");
        let per_second = "committed transactions per second";
        for quantity in [
            quantity("Throughput", per_second, Source::Rate(|i| &i.throughput)),
            quantity("p95 response time", "of each second", Source::Time(|i| &i.p95_us)),
            quantity("p99 response time", "of each second", Source::Time(|i| &i.p99_us)),
            quantity("Longest response time", "of each second", Source::Time(|i| &i.max_us)),
        ] {
            self.overlay(out, &quantity, large());
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
            if self.is_zero(&quantity.source) {
                quiet.push(nothing);
            } else {
                self.overlay(out, &quantity, large());
            }
        }
        out.raw("</div>");
        if !quiet.is_empty() {
            let text = format!("In all seconds of this step {}.", quiet.join(", "));
            out.classed("p", "quiet", text);
        }
    }

    fn is_zero(&self, source: &Source) -> bool {
        self.trials.iter().all(|t| points(t, source).iter().all(|p| p.1.unwrap_or(0.0) == 0.0))
    }

    /// The readings of this step in the order in which they are shown, and the names of those that
    /// are not drawn because they did not change.
    fn readings(&self) -> (Vec<(String, Reading)>, Vec<String>) {
        let mut names: Vec<&String> = self.trials.iter().flat_map(|t| t.readings.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let (mut shown, mut constant) = (Vec::new(), Vec::new());
        for name in names {
            let reading = classify(name);
            if reading.is_kept || !self.is_constant(name) {
                shown.push((name.clone(), reading));
            } else {
                constant.push(name.clone());
            }
        }
        shown.sort_by(|a, b| (a.1.topic, a.1.rank, &a.0).cmp(&(b.1.topic, b.1.rank, &b.0)));
        (shown, constant)
    }

    /// Whether a reading had the same value in all seconds of all trials.
    fn is_constant(&self, name: &str) -> bool {
        let mut values =
            self.trials.iter().filter_map(|t| t.readings.get(name)).flatten().flatten();
        let Some(first) = values.next() else { return true };
        values.all(|v| v == first)
    }

    /// A heading and a chart for each reading.
    fn topic(&self, out: &mut Markup, title: &str, readings: &[&(String, Reading)]) {
        if readings.is_empty() {
            return;
        }
        out.element("h4", title).raw("<div class=\"charts small\">");
        for (name, reading) in readings {
            self.overlay(
                out,
                &Quantity {
                    title: reading.title.clone(),
                    note: if reading.title == *name { String::new() } else { name.clone() },
                    unit: reading.unit.clone(),
                    source: Source::Reading(name.clone()),
                },
                small(),
            );
        }
        out.raw("</div>");
    }

    /// Readings of no known topic, folded, and the names of those that did not change.
    fn others(&self, out: &mut Markup, readings: &[&(String, Reading)], constant: &[String]) {
        if readings.is_empty() && constant.is_empty() {
            return;
        }
        let n = readings.len();
        out.raw("<details class=\"fold\">");
        out.element("summary", words::counted(n, "further reading", "further readings"));
        let drawn = n.min(self.budget.others);
        self.topic(out, "", &readings[..drawn]);
        if n > drawn {
            let names: Vec<&str> =
                readings[drawn..].iter().map(|(name, _)| name.as_str()).collect();
            out.classed("p", "quiet", format!("In the record only: {}.", names.join(", ")));
        }
        if !constant.is_empty() {
            out.classed("p", "quiet", format!("Did not change: {}.", constant.join(", ")));
        }
        out.raw("</details>");
    }

    /// The lines of all trials of a variant, background first.
    /// `n` is the number of single lines that the whole chart would have.
    fn lines(&self, strand: &Strand<'_>, n: usize) -> Lines {
        let all: Vec<Vec<Point>> = self
            .trials
            .iter()
            .filter(|t| t.variant == strand.variant)
            .map(|t| points(t, strand.source))
            .filter(|p| p.iter().any(|p| p.1.is_some()))
            .collect();
        let mut lines = Lines::default();
        if all.is_empty() {
            return lines;
        }
        lines.values = all.iter().flatten().filter_map(|p| p.1).fold(None, widen);
        let series = |weight: &str, name: Option<&str>, shape| Series {
            class: format!("{weight} {}", strand.class),
            name: name.map(str::to_owned),
            shape,
        };
        let joined = together(&all);
        if all.len() > 1 {
            if n <= LIGHT_LINES_MAX {
                lines.back =
                    all.into_iter().map(|p| series("l rep", None, Shape::Line(p))).collect();
            } else {
                let area = Shape::Area(joined.lowest, joined.highest);
                lines.back.push(series("env", None, area));
            }
        }
        lines.front.push(series("l med", Some(strand.name), Shape::Line(joined.median)));
        lines
    }

    /// A chart in which all variants share the plot.
    fn overlay(&self, out: &mut Markup, quantity: &Quantity, frame: Frame) {
        let mut lines = Lines::default();
        for variant in 0..self.view.findings.variants.len() {
            let name = self.view.variant(variant);
            let class = variant_class(variant);
            let n = self.trials.len();
            let strand = Strand { variant, source: &quantity.source, class: &class, name };
            lines.extend(self.lines(&strand, n));
        }
        if let Some(svg) =
            self.chart(&quantity.title, quantity.unit.clone(), lines, (frame, quantity.is_marked()))
        {
            let is_log = svg.contains(" data-log");
            let note = match (is_log, quantity.note.is_empty()) {
                (true, _) => format!("{} · log scale", quantity.note),
                (false, _) => quantity.note.clone(),
            };
            parts::figure(out, "", &quantity.title, &note, &svg);
        }
    }

    /// A chart for each variant, with a line for each reading.
    fn by_variant(
        &self,
        out: &mut Markup,
        title: &str,
        note: &str,
        readings: &[&(String, Reading)],
    ) {
        let Some((_, first)) = readings.first() else { return };
        let mut charts = Vec::new();
        let mut values = None;
        for variant in 0..self.view.findings.variants.len() {
            let n = readings.len() * self.trials.iter().filter(|t| t.variant == variant).count();
            let mut lines = Lines::default();
            for (i, (name, reading)) in readings.iter().enumerate() {
                let source = Source::Reading(name.clone());
                let class = format!("m{}", i % 8);
                let name = &reading.title;
                lines.extend(
                    self.lines(&Strand { variant, source: &source, class: &class, name }, n),
                );
            }
            if let Some((low, high)) = lines.values {
                values = widen(widen(values, low), high);
                charts.push((variant, lines));
            }
        }
        if charts.is_empty() {
            return;
        }
        out.element("h4", title);
        mode_legend(out, note, readings);
        out.raw("<div class=\"charts small\">");
        for (variant, mut lines) in charts {
            // The same scale for all of them, or they could not be compared.
            lines.values = values;
            let name = self.view.variant(variant);
            let label = format!("{title}, {name}");
            let Some(svg) = self.chart(&label, first.unit.clone(), lines, (small(), false)) else {
                continue;
            };
            out.raw(format_args!("<figure class=\"chart of v{variant}\"><figcaption><b>"));
            out.raw(parts::name(self.view, variant)).raw("</b></figcaption>");
            out.raw(svg).raw("</figure>");
        }
        out.raw("</div>");
    }

    fn chart(
        &self,
        title: &str,
        unit: Unit,
        lines: Lines,
        (frame, is_marked): (Frame, bool),
    ) -> Option<String> {
        let (low, high) = lines.values?;
        let is_log = unit == Unit::Micros && low > 0.0 && high / low >= LOG_FROM;
        let (from, to) = self.time();
        let series = lines.back.into_iter().chain(lines.front).collect();
        let chart = LinesChart {
            label: format!("{title} by second, {}", self.view.step(self.step)),
            row: format!("step{}", self.step),
            moments: if is_marked { self.moments() } else { Vec::new() },
            across: Across::Seconds { from, to },
            unit,
            is_log,
            values: (low, high),
            series,
            frame,
            max_points: self.budget.points,
        };
        Some(chart.svg())
    }

    /// Stalls, and changes of level where at least half of a variant's trials agree that there are
    /// some.
    fn moments(&self) -> Vec<Moment> {
        let mut moments = Vec::new();
        for variant in 0..self.view.findings.variants.len() {
            let Some(cell) = self.view.cell(variant, self.step) else { continue };
            let changed = cell.time.iter().filter(|t| !t.changes.is_empty()).count();
            let is_agreed = 2 * changed >= cell.time.len();
            for facts in &cell.time {
                let mut push = |at_s: f64, what: String| {
                    let name = self.view.variant(variant);
                    moments.push(Moment {
                        at: at_s,
                        class: variant_class(variant),
                        title: format!("{name}, trial {}, {at_s} s: {what}", facts.trial),
                    });
                };
                for stall in &facts.stalls {
                    let missing = Unit::Count.show(stall.missing.round());
                    push(
                        stall.at_s,
                        format!("stall of {} s, {missing} transactions missing", stall.seconds),
                    );
                }
                for change in facts.changes.iter().filter(|_| is_agreed) {
                    let show = |value| Unit::PerSecond.show(value);
                    let (before, after) = (show(change.before), show(change.after));
                    push(change.at_s, format!("level changes from {before} to {after}"));
                }
            }
        }
        moments.truncate(MOMENTS_MOST);
        moments
    }

    /// From the first to the end of the last second of the step, in any trial.
    fn time(&self) -> (f64, f64) {
        let all = || self.trials.iter().flat_map(|t| t.intervals.start_s.iter().copied());
        let starts = || all().filter(|s| s.is_finite());
        let from = starts().fold(f64::INFINITY, f64::min);
        let to = starts().fold(f64::NEG_INFINITY, f64::max);
        if from <= to { (from.round(), to.round() + 1.0) } else { (0.0, 1.0) }
    }
}

/// What the clients saw: two charts beside each other.
fn large() -> Frame {
    Frame::new(560.0, 190.0)
}

/// What the machine did: three charts beside each other.
fn small() -> Frame {
    Frame::new(370.0, 138.0)
}

/// Lines of a chart: those behind, those in front, and their smallest and largest value.
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
        Source::Reading(name) => match trial.readings.get(name) {
            Some(column) => column.iter().map(|v| v.as_ref().and_then(finite)).collect(),
            None => Vec::new(),
        },
    };
    starts.zip(values).filter(|(start, _)| start.is_finite()).collect()
}

/// A legend for the lines of one variant's chart.
fn mode_legend(out: &mut Markup, note: &str, readings: &[&(String, Reading)]) {
    out.raw("<p class=\"modes\">");
    for (i, (_, reading)) in readings.iter().enumerate() {
        out.raw(format_args!(
            "<span><svg class=\"sw m{}\" viewBox=\"0 0 18 10\" aria-hidden=\"true\"><path \
             d=\"M1 5H17\" class=\"l\"/></svg>{}</span>",
            i % 8,
            escape(&reading.title)
        ));
    }
    if !note.is_empty() {
        out.classed("span", "quiet", note);
    }
    out.raw("</p>");
}
