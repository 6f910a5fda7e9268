//! Response times by time, reduced so that a page can hold them: how many transactions took how
//! long in each stretch of a few seconds, for each variant and step, repetitions merged.
//!
//! Times are put into buckets that are 2^(1/8) wide, eight for each doubling. A percentile that is
//! read from them is the middle of its bucket and so at most a factor of 2^(1/16) off: 4.4 %.

mod grid;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use dyno_analysis::Findings;
use dyno_record::{KindSummary, Run, SecondOfTimes, StepSummary};

#[cfg(test)]
pub(crate) use grid::Buckets;
pub(crate) use grid::{Grid, Window, bucket_start_us};

use crate::findings_index::FindingsIndex;

/// Bytes that all grids together should take on a page, about.
const PAGE_BYTES: usize = 2_800_000;

/// Bytes that all grids together may take on a page.
const PAGE_BYTES_MOST: usize = 4_000_000;

/// About the bytes that a column of a grid takes on a page.
const COLUMN_BYTES: usize = 115;

/// Most and fewest columns of a grid.
const COLUMNS: (usize, usize) = (24, 300);

/// With fewer columns than this, kinds of transactions are not kept apart.
const COLUMNS_FOR_KINDS: usize = 60;

const KINDS_MOST: usize = 8;

/// Lengths of columns, in seconds.
const LENGTHS: [f64; 16] = [
    1.0, 2.0, 3.0, 5.0, 6.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
    7200.0,
];

/// Which grid: variant, step, and kind of transaction (empty for all kinds together).
pub(crate) type Key = (usize, usize, String);

/// The same for one to look it up.
pub(crate) type KeyOf<'k> = (usize, usize, &'k str);

/// A step of a trial: run and trial, variant and step among the findings, and what was measured.
type Found<'a> = ((usize, u32), (usize, usize), &'a StepSummary);

/// Seconds since the measurement phase began, each with microseconds.
type BySecond = Vec<(f64, f64)>;

/// The response times of all trials by time. Made empty, then filled second by second.
#[derive(Clone, Default)]
pub struct Times {
    grids: BTreeMap<Key, Grid>,
    is_by_kind: bool,
    /// By run, trial and step of the run: where its seconds go.
    targets: HashMap<(usize, u32, usize), Target>,
    second: grid::Buckets,
    /// The longest response time of each second, by kind of transaction, where a step has several:
    /// seconds since the measurement phase began, and microseconds.
    longest: HashMap<(usize, u32, usize), BTreeMap<String, BySecond>>,
    /// Finished trials, by run and number, whose seconds are not all there.
    lacking: BTreeSet<(usize, u32)>,
}

/// Where the seconds of one step of one trial go.
#[derive(Clone)]
struct Target {
    variant: usize,
    step: usize,
    /// For each of several kinds; a log has no more of them than the summary has, however long it is.
    seconds_most: usize,
    /// Start of the first second in which anything was done, since the measurement phase began.
    first_s: Option<f64>,
    /// What to add to the run's clock to get the time since the measurement phase began.
    shift_s: Option<f64>,
}

impl Times {
    pub fn new(findings: &Findings, runs: &[Run]) -> Times {
        let places = FindingsIndex::new(findings, runs);
        let steps = places.steps(runs).filter(|(.., step)| step.search.is_none());
        let found = steps.map(|(i, trial, place, step)| ((i, trial.number), place, step));
        let found: Vec<Found<'_>> = found.collect();
        let mut times = Times::default();
        times.plan(&found);
        for ((run, trial), (variant, step), summary) in found {
            let columns = &summary.intervals;
            // A step without load has neither.
            let is_done = |i: &usize| {
                let mut values = [&columns.throughput, &columns.p50_us].into_iter();
                values.any(|column| column.get(*i).is_some_and(|value| *value > 0.0))
            };
            let first = (0..columns.start_s.len()).find(is_done).map(|i| columns.start_s[i]);
            let key = (run, trial, summary.step);
            let seconds_most = 2 * columns.start_s.len();
            let target = Target { variant, step, seconds_most, first_s: first, shift_s: None };
            times.targets.insert(key, target);
            if summary.kinds.len() > 1 {
                let none = |kind: &KindSummary| (kind.name.clone(), BySecond::new());
                times.longest.insert(key, summary.kinds.iter().map(none).collect());
            }
        }
        times
    }

    fn plan(&mut self, found: &[Found<'_>]) {
        let mut spans: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
        let mut kinds: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (_, (variant, step), summary) in found {
            let Some((from, to)) = span(summary) else { continue };
            let span = spans.entry((*variant, *step)).or_insert((from, to));
            *span = (span.0.min(from), span.1.max(to));
            let known = kinds.entry(*step).or_default();
            for kind in summary.kinds.iter().filter(|k| !k.response.0.is_empty()) {
                if !known.contains(&kind.name.as_str()) {
                    known.push(&kind.name);
                }
            }
        }
        let n_kinds = |step: usize| match kinds.get(&step).map_or(0, Vec::len) {
            n @ 2..=KINDS_MOST => n,
            _ => 0,
        };
        let columns = |n_grids: usize| PAGE_BYTES / COLUMN_BYTES / n_grids.max(1);
        let with_kinds = spans.keys().map(|(_, step)| 1 + n_kinds(*step)).sum();
        self.is_by_kind = columns(with_kinds) >= COLUMNS_FOR_KINDS;
        let n_grids = if self.is_by_kind { with_kinds } else { spans.len() };
        let most = columns(n_grids).clamp(COLUMNS.0, COLUMNS.1);
        // The steps of all variants share their columns, so that they can be read side by side.
        let mut by_step: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for ((_, step), (from, to)) in &spans {
            let all = by_step.entry(*step).or_insert((*from, *to));
            *all = (all.0.min(*from), all.1.max(*to));
        }
        for (variant, step) in spans.keys() {
            let grid = Grid::new(by_step[step], length(by_step[step], most));
            if self.is_by_kind && n_kinds(*step) > 0 {
                for kind in &kinds[step] {
                    self.grids.insert((*variant, *step, (*kind).to_owned()), grid.clone());
                }
            }
            self.grids.insert((*variant, *step, String::new()), grid);
        }
        for (_, (variant, step), summary) in found {
            let starts = &summary.intervals.start_s;
            let from = (*variant, *step, String::new());
            let of_step = |(v, s, _): &Key| (v, s) == (variant, step);
            for (_, grid) in self.grids.range_mut(from..).take_while(|(key, _)| of_step(key)) {
                for (i, start) in starts.iter().enumerate() {
                    let next = starts.get(i + 1).copied().unwrap_or(start + 1.0);
                    let end = if *start < 0.0 { next } else { next.min(summary.measured_s) };
                    grid.cover(*start, (end - start).clamp(0.0, 1.0));
                }
            }
        }
    }

    /// Adds a second of a trial. Warm-up is kept too: a chart shows it.
    pub fn add(&mut self, run: usize, trial: u32, second: &SecondOfTimes<'_>) {
        let Some(target) = self.targets.get_mut(&(run, trial, second.step)) else { return };
        let Some(first_s) = target.first_s else { return };
        let at_s = second.start_s + *target.shift_s.get_or_insert(first_s - second.start_s);
        self.second.fill(second.counts);
        let of_step = self.longest.get_mut(&(run, trial, second.step));
        if let Some((ns, _)) = second.counts.last()
            && let Some(of_kind) = of_step.and_then(|of| of.get_mut(second.kind))
            && of_kind.len() < target.seconds_most
        {
            of_kind.push((at_s, *ns as f64 / 1e3));
        }
        let kinds = [String::new(), second.kind.to_owned()];
        let n = if self.is_by_kind { 2 } else { 1 };
        for kind in kinds.into_iter().take(n) {
            if let Some(grid) = self.grids.get_mut(&(target.variant, target.step, kind)) {
                grid.add(at_s, &self.second);
            }
        }
    }

    /// Adds the seconds that were added to a copy of these times, of other trials: so that several
    /// threads can read a record, each with a copy of the empty plan.
    pub fn absorb(&mut self, other: &Times) {
        self.lacking.extend(&other.lacking);
        // Each trial is read by one thread.
        for (key, of_kinds) in &other.longest {
            if of_kinds.values().any(|seconds| !seconds.is_empty()) {
                self.longest.insert(*key, of_kinds.clone());
            }
        }
        for (key, grid) in &mut self.grids {
            if let Some(more) = other.grids.get(key) {
                grid.absorb(more);
            }
        }
    }

    /// The longest response time of a kind in each second of a step of a trial: seconds since the measurement
    /// phase began, and microseconds. Empty where it is not known, or the step has one kind only.
    pub(crate) fn longest(&self, key: (usize, u32, usize), kind: &str) -> &[(f64, f64)] {
        self.longest.get(&key).and_then(|of| of.get(kind)).map_or(&[], Vec::as_slice)
    }

    /// Notes that a trial's log is cut or not there. Trials that did not finish have no seconds here
    /// in any case.
    pub fn lacks(&mut self, run: usize, trial: u32) {
        if self.targets.keys().any(|(r, t, _)| (*r, *t) == (run, trial)) {
            self.lacking.insert((run, trial));
        }
    }

    /// Which trials' seconds are not all there, in words; empty where all are.
    pub(crate) fn lacking_in_words(&self) -> String {
        let is_one_run = self.lacking.iter().all(|(run, _)| *run == 0);
        let name = |(run, trial): &(usize, u32)| match is_one_run {
            true => trial.to_string(),
            false => format!("{trial} of run {}", run + 1),
        };
        self.lacking.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// The same with columns so long that the page stays small. How many bytes a column takes is
    /// known only when it is filled: spread-out times take more than [`COLUMN_BYTES`].
    pub(crate) fn fitting(&self) -> Cow<'_, Times> {
        let mut fitting = Cow::Borrowed(self);
        while fitting.grids.values().map(|grid| grid.encode().len()).sum::<usize>()
            > PAGE_BYTES_MOST
            && fitting.grids.values().any(|grid| grid.columns.len() > COLUMNS.0)
        {
            fitting.to_mut().grids.values_mut().for_each(|grid| *grid = grid.coarser());
        }
        fitting
    }

    /// The grids that hold anything, of a step, in the order of variants and kinds.
    pub(crate) fn of_step(&self, step: usize) -> impl Iterator<Item = (&Key, &Grid)> {
        self.grids.iter().filter(move |((_, s, _), grid)| *s == step && !grid.is_empty())
    }
}

/// From the first second to the end of the last.
fn span(summary: &StepSummary) -> Option<(f64, f64)> {
    let starts = || summary.intervals.start_s.iter().copied().filter(|s| s.is_finite());
    let (from, to) = (starts().reduce(f64::min)?, starts().reduce(f64::max)?);
    (to - from < 1e7).then_some((from, to + 1.0))
}

/// The length of columns, so that a span has at most about so many.
fn length((from, to): (f64, f64), most: usize) -> f64 {
    let least = (to - from) / most as f64;
    let last = LENGTHS[LENGTHS.len() - 1];
    LENGTHS.into_iter().find(|length| *length >= least - 1e-9).unwrap_or(least.max(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn columns_are_as_long_as_the_page_needs() {
        let check = |span: (f64, f64), most: usize, expected: f64| {
            assert!((length(span, most) - expected).abs() < 1e-9, "{span:?} {most}");
        };
        check((-5.0, 30.0), 300, 1.0);
        check((0.0, 1800.0), 300, 6.0);
        check((0.0, 1801.0), 300, 10.0);
        check((0.0, 1800.0), 24, 120.0);
    }

    #[test]
    fn grids_that_take_too_much_become_coarser_and_keep_all_that_is_in_them() {
        let mut times = Times::default();
        let mut grid = Grid::new((0.0, 1800.0), 6.0);
        // Every bucket filled with large counts: as much as a column can take.
        let full: Vec<(u64, u64)> = (0..333).map(|b| (1_u64 << (b / 8), 1 << 40)).collect();
        (0..1800).for_each(|at| grid.add(f64::from(at), &Buckets::of(&full)));
        for variant in 0..70 {
            times.grids.insert((variant, 0, String::new()), grid.clone());
        }
        let bytes = |times: &Times| times.grids.values().map(|g| g.encode().len()).sum::<usize>();
        assert!(bytes(&times) > PAGE_BYTES_MOST);
        let fitting = times.fitting();
        assert!(bytes(&fitting) <= PAGE_BYTES_MOST);
        let found = &fitting.grids[&(3, 0, String::new())];
        assert!(found.column_s > 6.0 && found.columns.len() >= COLUMNS.0 / 2);
        assert_eq!(found.window(0.0, 1e9), grid.window(0.0, 1e9));
        assert!(matches!(Times::default().fitting(), Cow::Borrowed(_)));
    }

    #[test]
    fn seconds_go_where_their_clock_says_and_repetitions_are_merged() {
        let (findings, mut runs) = fixture::three_variants();
        // Nothing was done in the first second of warm-up of the first trial.
        let first = &mut runs[0].trials[0].steps[0].intervals;
        (first.throughput[0], first.p50_us[0]) = (0.0, 0.0);
        let mut times = Times::new(&findings, &runs);
        let second = |start_s: f64, counts: &'static [(u64, u64)]| SecondOfTimes {
            step: 0,
            kind: "read_write",
            is_measured: true,
            start_s,
            length_s: 1.0,
            counts,
        };
        let again = runs[0].trials.iter().find(|t| t.variant == 0 && t.number != 1).unwrap().number;
        times.add(0, 1, &second(100.0, &[(1000, 2)]));
        times.add(0, 1, &second(104.0, &[(1000, 3), (900_000, 1)]));
        let mut other = Times::new(&findings, &runs);
        other.add(0, again, &second(55.0, &[(1000, 7)]));
        other.add(0, again, &second(60.0, &[(1000, 5)]));
        times.absorb(&other);
        let grids: Vec<_> = times.of_step(0).collect();
        assert_eq!(grids.len(), 1, "empty ones and those of a single kind are left out");
        let (key, grid) = grids[0];
        assert_eq!(key, &(0, 0, String::new()));
        // The first trial's first busy second is the second of its warm-up, −4 s; the other's −5 s.
        let n = |at: usize| grid.columns[at].counts.iter().map(|(_, n)| n).sum::<u64>();
        assert_eq!((n(0), n(1), n(5)), (7, 2, 9));
        assert!((grid.columns[5].seconds - 3.0).abs() < 1e-9, "three repetitions");
        assert!((grid.columns[5].max_us - 900.0).abs() < 1e-9);
        // What is not in the plan is not counted.
        assert!(times.longest.is_empty(), "the step has one kind");
        times.add(0, 77, &second(60.0, &[(1000, 5)]));
        times.add(3, 1, &second(60.0, &[(1000, 5)]));
    }

    #[test]
    fn a_log_has_no_more_kinds_and_seconds_than_the_summary() {
        let (findings, mut runs) = fixture::three_variants();
        let step = &mut runs[0].trials[0].steps[0];
        let n = step.intervals.start_s.len();
        step.kinds.push(KindSummary { name: "read_only".to_owned(), ..step.kinds[0].clone() });
        let mut times = Times::new(&findings, &runs);
        let counts = &[(1000, 2)][..];
        for at in 0..100 * n {
            for kind in ["read_only", "read_write", "invented"] {
                let start_s = at as f64;
                let is_measured = true;
                times.add(
                    0,
                    1,
                    &SecondOfTimes { step: 0, kind, is_measured, start_s, length_s: 1.0, counts },
                );
            }
        }
        let mut whole = Times::new(&findings, &runs);
        whole.absorb(&times);
        for (kind, most) in [("read_only", 2 * n), ("read_write", 2 * n), ("invented", 0)] {
            assert_eq!(whole.longest((0, 1, 0), kind).len(), most, "{kind}");
        }
    }
}
