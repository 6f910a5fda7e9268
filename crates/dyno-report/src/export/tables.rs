//! The tables themselves.

use std::collections::{BTreeMap, BTreeSet};

use dyno_analysis::{Comparison, Estimate, Findings};
use dyno_record::{IntervalColumns, KindSummary, Run, StepSummary, TrialOutcome, TrialSummary};
use serde::Serialize;

use super::{Column, Table, Values};
use crate::findings_index::FindingsIndex;
use crate::sections::Distribution;
use crate::sections::readings::meanings;
use crate::times::Times;

pub(super) struct Builder {
    name: &'static str,
    columns: Vec<Column>,
}

pub(super) enum Cell {
    Text(Option<String>),
    Number(Option<f64>),
    Whole(Option<i64>),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(Some(text.to_owned()))
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Cell {
        Cell::Number(number.filter(|v| v.is_finite()))
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Some(number).into()
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Cell {
        Cell::Whole(Some(number.into()))
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Whole(i64::try_from(number).ok())
    }
}

/// Columns of one kind and unit: an example of what they hold, the unit, and the names with blanks between them.
pub(super) type Columns<'a> = (Cell, &'a str, &'a str);

impl Builder {
    pub(super) fn new(name: &'static str, columns: &[Columns<'_>]) -> Builder {
        let mut builder = Builder { name, columns: Vec::new() };
        for (kind, unit, names) in columns {
            names.split(' ').for_each(|name| builder.column(name, unit, kind));
        }
        builder
    }

    pub(super) fn column(&mut self, name: &str, unit: &str, kind: &Cell) {
        let values = match kind {
            Cell::Text(_) => Values::Text(Vec::new()),
            Cell::Number(_) => Values::Number(Vec::new()),
            Cell::Whole(_) => Values::Whole(Vec::new()),
        };
        self.columns.push(Column { name: name.to_owned(), unit: unit.to_owned(), values });
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a row of {}", self.name);
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match (&mut column.values, cell) {
                (Values::Text(values), Cell::Text(value)) => values.push(value),
                (Values::Number(values), Cell::Number(value)) => values.push(value),
                (Values::Whole(values), Cell::Whole(value)) => values.push(value),
                // A cell of another kind would shift all below it.
                (Values::Text(values), _) => values.push(None),
                (Values::Number(values), _) => values.push(None),
                (Values::Whole(values), _) => values.push(None),
            }
        }
    }

    pub(super) fn finish(self) -> Table {
        Table { name: self.name, columns: self.columns }
    }
}

pub(super) const TEXT: Cell = Cell::Text(None);
pub(super) const NUMBER: Cell = Cell::Number(None);
pub(super) const WHOLE: Cell = Cell::Whole(None);

/// A word as findings.json and the other tables have it: `response_p95`, `no_difference`.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

pub(super) fn name(names: Option<&String>) -> Cell {
    Cell::Text(names.cloned())
}

fn bounded(e: &Estimate) -> [Cell; 3] {
    [e.value.into(), e.low.into(), e.high.into()]
}

/// One row for each variant, step, kind of transaction (`all` for all of them) and metric.
pub(super) fn estimates(findings: &Findings) -> Table {
    let mut table = Builder::new(
        "estimates",
        &[
            (TEXT, "", "variant step kind metric unit"),
            (NUMBER, "", "value low high"),
            (WHOLE, "", "n"),
            (NUMBER, "", "min max"),
        ],
    );
    let mut add = |(variant, step): (usize, usize), kind: &str, metric: &str, e: &Estimate| {
        let variant = name(findings.variants.get(variant).map(|v| &v.name));
        let step = name(findings.steps.get(step).map(|s| &s.name));
        let words = [kind, metric, e.unit.as_str()].map(Cell::from);
        let row = [variant, step].into_iter().chain(words).chain(bounded(e));
        table.row(row.chain([e.n.into(), e.min.into(), e.max.into()]).collect());
    };
    for cell in &findings.cells {
        for (metric, estimate) in &cell.metrics {
            add((cell.variant, cell.step), "all", &word(metric), estimate);
        }
    }
    for kind in &findings.kinds {
        for (metric, estimate) in &kind.metrics {
            add((kind.variant, kind.step), &kind.kind, &word(metric), estimate);
        }
    }
    for facts in &findings.attribution {
        for resource in &facts.uses {
            if let Some(estimate) = &resource.per_transaction {
                let metric = format!("{}_per_transaction", resource.name);
                add((facts.variant, facts.step), "all", &metric, estimate);
            }
        }
    }
    table.finish()
}

pub(super) fn comparisons(findings: &Findings) -> Table {
    let mut table = Builder::new(
        "comparisons",
        &[
            (TEXT, "", "variant baseline step kind metric"),
            (NUMBER, "%", "relative relative_low relative_high"),
            (NUMBER, "", "absolute absolute_low absolute_high"),
            (TEXT, "", "absolute_unit"),
            (WHOLE, "", "n"),
            (NUMBER, "", "p_value_of_verdict"),
            (TEXT, "", "verdict"),
            (WHOLE, "", "repetitions_needed"),
        ],
    );
    let all = findings.comparisons.iter().map(|c| ("all", c));
    let kinds = findings.kind_comparisons.iter().map(|k| (k.kind.as_str(), &k.comparison));
    for (kind, c) in all.chain(kinds) {
        let c: &Comparison = c;
        let of = |variant: usize| name(findings.variants.get(variant).map(|v| &v.name));
        let step = name(findings.steps.get(c.step).map(|s| &s.name));
        let place =
            [of(c.variant), of(c.baseline), step, kind.into(), word(&c.metric).as_str().into()];
        let effects = bounded(&c.relative).into_iter().chain(bounded(&c.absolute));
        let verdict = [
            c.absolute.unit.as_str().into(),
            c.relative.n.into(),
            c.p_value_of_verdict.into(),
            word(&c.verdict).as_str().into(),
            Cell::Whole(c.repetitions_needed.map(i64::from)),
        ];
        table.row(place.into_iter().chain(effects).chain(verdict).collect());
    }
    table.finish()
}

/// One row for each variant, step and resource whose use was asked for.
pub(super) fn bound_by(findings: &Findings) -> Table {
    let mut table = Builder::new(
        "bound_by",
        &[
            (TEXT, "", "variant step by text"),
            (WHOLE, "", "agreeing n"),
            (TEXT, "", "why resource"),
            (NUMBER, "", "share"),
            (TEXT, "", "absent"),
        ],
    );
    for bound in &findings.bound_by {
        for used in &bound.uses {
            let (by, resource) = (word(&bound.by), word(&used.resource));
            table.row(vec![
                name(findings.variants.get(bound.variant).map(|v| &v.name)),
                name(findings.steps.get(bound.step).map(|s| &s.name)),
                by.as_str().into(),
                bound.text.as_str().into(),
                bound.agreeing.into(),
                bound.n.into(),
                name(bound.why.as_ref()),
                resource.as_str().into(),
                used.share.into(),
                name(used.absent.as_ref()),
            ]);
        }
    }
    table.finish()
}

/// One row for each ended trial, step and kind of transaction; the measurement phase only.
pub(super) fn trials(findings: &Findings, runs: &[Run]) -> Table {
    let mut table = Builder::new(
        "trials",
        &[
            (TEXT, "", "run"),
            (WHOLE, "", "trial"),
            (TEXT, "", "variant"),
            (WHOLE, "", "repetition block"),
            (TEXT, "", "state"),
            (WHOLE, "ms", "began_unix_ms"),
            (TEXT, "", "step kind"),
            (NUMBER, "s", "measured"),
            (WHOLE, "", "committed not_committed"),
            (NUMBER, "1/s", "throughput"),
            (NUMBER, "µs", "response_mean response_p50 response_p95 response_p99"),
            (NUMBER, "µs", "response_p999 response_max"),
            (NUMBER, "s", "server_cpu"),
            (WHOLE, "", "missed retries"),
        ],
    );
    each_step(findings, runs, &mut |place, trial, step| {
        step.kinds.iter().for_each(|kind| table.row(trial_row(place, trial, step, kind)));
    });
    table.finish()
}

struct Place<'a> {
    index: usize,
    run: String,
    variant: Option<&'a String>,
    step: Option<&'a String>,
}

/// What tables of seconds begin with.
const OF_TRIAL: [Columns<'_>; 5] = [
    (TEXT, "", "run"),
    (WHOLE, "", "trial"),
    (TEXT, "", "variant"),
    (WHOLE, "", "repetition"),
    (TEXT, "", "step"),
];

impl Place<'_> {
    fn cells(&self, trial: &TrialSummary) -> Vec<Cell> {
        vec![
            self.run.as_str().into(),
            trial.number.into(),
            name(self.variant),
            trial.repetition.into(),
            name(self.step),
        ]
    }
}

fn each_step(
    findings: &Findings,
    runs: &[Run],
    visit: &mut dyn FnMut(&Place<'_>, &TrialSummary, &StepSummary),
) {
    let places = FindingsIndex::new(findings, runs);
    for (i, run) in runs.iter().enumerate() {
        for trial in &run.trials {
            let variant = places.variant(i, trial.number);
            for step in &trial.steps {
                let at = places.step(i, step.step);
                let place = Place {
                    index: i,
                    run: run.folder.display().to_string(),
                    variant: variant.and_then(|v| findings.variants.get(v)).map(|v| &v.name),
                    step: at.and_then(|s| findings.steps.get(s)).map(|s| &s.name),
                };
                visit(&place, trial, step);
            }
        }
    }
}

fn trial_row(
    place: &Place<'_>,
    trial: &TrialSummary,
    step: &StepSummary,
    kind: &KindSummary,
) -> Vec<Cell> {
    let is_committed = |name: &&String| name.as_str() == "committed";
    let committed = kind.outcomes.iter().find(|(n, _)| is_committed(n)).map_or(0, |(_, n)| *n);
    let others: u64 = kind.outcomes.iter().filter(|(n, _)| !is_committed(n)).map(|(_, n)| n).sum();
    let mut times = Distribution::default();
    // The reader has refused records whose histograms cannot be decoded.
    let _ = kind.response.walk(&mut |ns, n| times.add(ns, n));
    let rate = (step.measured_s > 0.0).then(|| committed as f64 / step.measured_s);
    let state = match trial.outcome {
        TrialOutcome::Finished => "finished",
        TrialOutcome::Failed { .. } => "failed",
    };
    let mut row = vec![
        place.run.as_str().into(),
        trial.number.into(),
        name(place.variant),
        trial.repetition.into(),
        trial.block.into(),
        state.into(),
        trial.began_unix_ms.into(),
        name(place.step),
        kind.name.as_str().into(),
        step.measured_s.into(),
        committed.into(),
        others.into(),
        rate.into(),
        times.mean_us().into(),
    ];
    row.extend([0.5, 0.95, 0.99, 0.999, 1.0].map(|q| Cell::from(times.quantile_us(q))));
    row.extend([step.server_cpu_s.into(), step.missed.into(), step.retries.into()]);
    row
}

/// What a column of a second's values is called, its unit, and where it is.
type SecondColumn = (&'static str, &'static str, fn(&IntervalColumns) -> &Vec<f64>);

const SECONDS: [SecondColumn; 8] = [
    ("throughput", "1/s", |i| &i.throughput),
    ("errors", "1/s", |i| &i.errors),
    ("missed", "1/s", |i| &i.missed),
    ("response_p50", "µs", |i| &i.p50_us),
    ("response_p95", "µs", |i| &i.p95_us),
    ("response_p99", "µs", |i| &i.p99_us),
    ("response_max", "µs", |i| &i.max_us),
    ("lag_p99", "µs", |i| &i.lag_p99_us),
];

/// One row for each second of each step of each ended trial, warm-up included, with all readings.
pub(super) fn seconds(findings: &Findings, runs: &[Run]) -> Table {
    let steps = runs.iter().flat_map(|run| &run.trials).flat_map(|trial| &trial.steps);
    let names = steps.flat_map(|step| step.readings.keys());
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    let meanings = meanings(runs);
    let unit = |name: &str| meanings.get(name).map_or("", |reading| reading.unit.symbol());
    let mut table = Builder::new("seconds", &OF_TRIAL);
    table.column("second", "s", &NUMBER);
    table.column("phase", "", &TEXT);
    SECONDS.iter().for_each(|(name, unit, _)| table.column(name, unit, &NUMBER));
    names.iter().for_each(|name| table.column(name, unit(name), &NUMBER));
    each_step(findings, runs, &mut |place, trial, step| {
        for (i, start) in step.intervals.start_s.iter().enumerate() {
            let mut row = place.cells(trial);
            row.extend([(*start).into(), phase(*start).into()]);
            let value = |pick: fn(&IntervalColumns) -> &Vec<f64>| pick(&step.intervals).get(i);
            row.extend(SECONDS.iter().map(|(_, _, pick)| Cell::from(value(*pick).copied())));
            row.extend(names.iter().map(|name| {
                let value = step.readings.get(*name).and_then(|column| column.get(i));
                Cell::from(value.copied().flatten())
            }));
            table.row(row);
        }
    });
    table.finish()
}

/// Whether a second counts: those of the warm-up begin before zero.
fn phase(start_s: f64) -> &'static str {
    if start_s < -1e-9 { "warm_up" } else { "measure" }
}

/// One row for each second and kind of transaction, warm-up included, of steps with several kinds.
pub(super) fn kind_seconds(findings: &Findings, runs: &[Run], times: &Times) -> Table {
    let mut table = Builder::new("kind_seconds", &OF_TRIAL);
    table.column("kind", "", &TEXT);
    table.column("second", "s", &NUMBER);
    table.column("phase", "", &TEXT);
    table.column("throughput", "1/s", &NUMBER);
    table.column("response_max", "µs", &NUMBER);
    each_step(findings, runs, &mut |place, trial, step| {
        for kind in step.kinds.iter().filter(|_| step.kinds.len() > 1) {
            let rates = dyno_analysis::stalls::rates_of_kind(step, &kind.name);
            let longest: BTreeMap<i64, f64> = times
                .longest((place.index, trial.number, step.step), &kind.name)
                .iter()
                .map(|(at_s, us)| (at_s.round() as i64, *us))
                .collect();
            for (i, start) in step.intervals.start_s.iter().enumerate() {
                let rate = rates.as_ref().and_then(|rates| rates.get(i)).copied();
                let longest = longest.get(&(start.round() as i64)).copied();
                let mut row = place.cells(trial);
                row.extend([
                    kind.name.as_str().into(),
                    (*start).into(),
                    phase(*start).into(),
                    rate.into(),
                    longest.into(),
                ]);
                table.row(row);
            }
        }
    });
    table.finish()
}
