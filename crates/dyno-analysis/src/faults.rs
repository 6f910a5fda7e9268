//! Faults made on purpose, and what became of the load (docs/method/stalls-and-steadiness.md). A
//! fault is judged by its trial's throughput before; what the step does not show is `None`.

use std::collections::BTreeMap;

use dyno_record::{Fault, StepSummary};
use serde::{Deserialize, Serialize};

use crate::join::Joined;
use crate::metrics::{DESIGNED, Value};
use crate::stalls::Bins;
use crate::statistics::{mean, median};

/// Seconds before a step's first fault, for the throughput before.
const BEFORE_MOST: usize = 30;

/// Fewer seconds say nothing.
const BEFORE_LEAST: usize = 3;

/// Share of the throughput before, for a recovered load …
const RECOVERED: f64 = 0.9;

/// … which has to hold in each of so many seconds.
const RECOVERED_FOR: usize = 3;

const BIN_S: f64 = 0.1;

/// Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultFacts {
    pub variant: usize,
    pub step: usize,
    /// In its own run.
    pub trial: u32,
    pub fault: Fault,
    /// Transactions per second before the step's first fault: median of at most 30 seconds; `None`
    /// with fewer than 3, or without commits.
    pub before: Option<f64>,
    /// Of these seconds, those below 90 % of their median.
    pub before_below: u32,
    pub before_seconds: u32,
    /// Transactions in the worst second between the fault and the recovery.
    pub lowest: Option<f64>,
    /// Longest time without commits after it.
    pub away_s: Option<f64>,
    /// Until the server answered a statement again; for `stop`, until it was resumed.
    pub answered_after_s: Option<f64>,
    /// Until the promoted replica committed for a client, to 0.1 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_commit_after_s: Option<f64>,
    /// Least and most confirmed transactions that the promoted replica lacks, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<(u64, u64)>,
    /// Until the first of three seconds with at least 90 % of the throughput before, each; `None`
    /// if there were none before the next fault or the end.
    pub recovered_after_s: Option<f64>,
    /// Longest response time, in µs, that ended before recovery, or the server's return if later.
    pub longest_us: Option<f64>,
    /// Failed attempts in that time.
    pub errors: f64,
    /// Failed attempts in the measured time, by class.
    pub error_classes: BTreeMap<String, u64>,
}

/// In the order of trials, steps and times.
pub(crate) fn faults(joined: &Joined<'_>) -> Vec<FaultFacts> {
    let mut all = Vec::new();
    for (trial, step, summary) in joined.measured_steps() {
        let (variant, trial) = (trial.variant, trial.number);
        let of_step = of_summary(summary).into_iter();
        all.extend(of_step.map(|one| FaultFacts { variant, step, trial, ..one }));
    }
    all
}

fn of_summary(summary: &StepSummary) -> Vec<FaultFacts> {
    let Some(first) = summary.faults.first() else { return Vec::new() };
    let Some(bins) = Bins::of(summary) else { return Vec::new() };
    let commits = |from: f64, to: f64| bins.between(from, to);
    let before = Before::of(first.began_s, &commits);
    let nexts = summary.faults.iter().skip(1).map(|next| next.began_s);
    let ends = nexts.chain([summary.measured_s]);
    let of_fault = |(fault, end): (&Fault, f64)| {
        let window = (fault.began_s, end.min(summary.measured_s));
        let recovered_s = before.level.and_then(|level| recovered(level, window, &commits));
        let until = recovered_s.unwrap_or(window.1);
        let end_s = if fault.kind == "stop" { fault.ended_s } else { fault.answered_s };
        // Bins may show the recovery before the server's return, which ends the longest waits.
        let seen_until = end_s.map_or(until, |end| until.max(end + BIN_S)).min(window.1);
        let seconds = |column: &[f64]| -> Vec<f64> {
            // The record is by second: all intervals that touch the time.
            let all = summary.intervals.start_s.iter().zip(column);
            let within = all.filter(|(start, _)| **start + 1.0 > window.0 && **start < seen_until);
            within.map(|(_, value)| *value).collect()
        };
        let longest = seconds(&summary.intervals.max_us).into_iter().fold(0.0, f64::max);
        let promoted_s = fault.promotion.as_ref().and(fault.answered_s);
        let first_commit_s = promoted_s.and_then(|at| first_commit(&bins, (at, window.1)));
        FaultFacts {
            first_commit_after_s: first_commit_s.map(|at| rounded(at - fault.began_s)),
            lost: lost(fault),
            fault: fault.clone(),
            before: before.level,
            before_below: before.n_below,
            before_seconds: before.n,
            lowest: lowest((window.0, until.max(window.0 + 1.0).min(window.1)), &commits),
            away_s: away(&bins, window).map(rounded),
            answered_after_s: end_s.map(|end| rounded(end - fault.began_s)),
            recovered_after_s: recovered_s.map(|at| rounded(at - fault.began_s)),
            longest_us: (longest > 0.0).then_some(longest),
            errors: seconds(&summary.intervals.errors).iter().sum(),
            error_classes: error_classes(summary),
            ..FaultFacts::default()
        }
    };
    summary.faults.iter().zip(ends).map(of_fault).collect()
}

/// To milliseconds.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

#[derive(Default)]
struct Before {
    level: Option<f64>,
    n: u32,
    n_below: u32,
}

impl Before {
    /// The last whole measured seconds before a fault; `commits` counts between two times.
    fn of(began_s: f64, commits: &impl Fn(f64, f64) -> f64) -> Before {
        let n = (began_s.max(0.0).floor() as usize).min(BEFORE_MOST);
        if n < BEFORE_LEAST {
            return Before::default();
        }
        let second = |back: usize| commits(began_s - back as f64, began_s - back as f64 + 1.0);
        let seconds: Vec<f64> = (1..=n).map(second).collect();
        let level = median(&seconds);
        let n_below = seconds.iter().filter(|one| **one < RECOVERED * level).count() as u32;
        Before { level: Some(level).filter(|level| *level > 0.0), n: n as u32, n_below }
    }
}

/// The first tenth of a second with a commit that begins three seconds of at least 90 % each.
fn recovered(
    level: f64,
    (from, to): (f64, f64),
    commits: &impl Fn(f64, f64) -> f64,
) -> Option<f64> {
    let last = to - RECOVERED_FOR as f64;
    let starts = (0_u32..).map(|tenth| from + f64::from(tenth) / 10.0);
    let mut starts = starts.take_while(|start| *start <= last + 1e-9);
    starts.find(|start| {
        // A burst does not make up for a time without work.
        let begins = commits(*start, start + 0.1) > 0.0;
        begins
            && (0..RECOVERED_FOR).all(|second| {
                let start = start + second as f64;
                // Shares of bins are rounded.
                commits(start, start + 1.0) >= RECOVERED * level - 1e-6 * level
            })
    })
}

/// In the worst whole second, in steps of 0.1 s; `None` without a whole second.
fn lowest((from, to): (f64, f64), commits: &impl Fn(f64, f64) -> f64) -> Option<f64> {
    let starts = (0_u32..).map(|tenth| from + f64::from(tenth) / 10.0);
    let starts = starts.take_while(|start| *start + 1.0 <= to + 1e-9);
    starts.map(|start| commits(start, start + 1.0)).reduce(f64::min)
}

/// To 0.1 s: bins are cut at the ends of the window. `None` without bins.
fn away(bins: &Bins, (from, to): (f64, f64)) -> Option<f64> {
    let (mut longest, mut current): (Option<f64>, f64) = (None, 0.0);
    for (idx, start) in bins.start_s.iter().enumerate() {
        let end = (start + bins.width_s[idx]).min(to);
        let start = start.max(from);
        if end <= start {
            continue;
        }
        current = if bins.counts[idx] > 0.0 { 0.0 } else { current + (end - start) };
        longest = Some(longest.unwrap_or(0.0).max(current));
    }
    longest
}

/// To 0.1 s.
fn first_commit(bins: &Bins, (from, to): (f64, f64)) -> Option<f64> {
    let ends = bins.start_s.iter().zip(&bins.width_s).map(|(start, width)| start + width);
    let mut all = bins.start_s.iter().zip(ends).zip(&bins.counts);
    let ((start, _), _) =
        all.find(|((start, end), count)| **count > 0.0 && *end > from && **start < to)?;
    Some(start.max(from))
}

fn lost(fault: &Fault) -> Option<(u64, u64)> {
    Some(fault.promotion.as_ref()?.survived.as_ref()?.lost())
}

fn error_classes(summary: &StepSummary) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (outcome, n) in summary.kinds.iter().flat_map(|kind| &kind.outcomes) {
        if !DESIGNED.contains(&outcome.as_str()) && *n > 0 {
            *all.entry(outcome.clone()).or_default() += n;
        }
    }
    all
}

/// Over the faults of a step, or why there is no mean; `None` without faults.
fn mean_of(summary: &StepSummary, why: &str, of: fn(&FaultFacts) -> Option<f64>) -> Value {
    let faults = of_summary(summary);
    if faults.is_empty() {
        return None;
    }
    let values: Option<Vec<f64>> = faults.iter().map(of).collect();
    Some(values.map(|values| mean(&values)).ok_or_else(|| why.to_owned()))
}

pub(crate) fn away_of(summary: &StepSummary) -> Value {
    mean_of(summary, "the fault was at the end of the measured time", |fault| fault.away_s)
}

pub(crate) fn answer_of(summary: &StepSummary) -> Value {
    mean_of(summary, "the server did not respond again", |fault| fault.answered_after_s)
}

/// Confirmed transactions missing at least, after promotions; `None` without any.
pub(crate) fn lost_of(summary: &StepSummary) -> Value {
    let promotions = || summary.faults.iter().filter(|fault| fault.promotion.is_some());
    promotions().next()?;
    let all: Option<Vec<u64>> = promotions().map(|fault| Some(lost(fault)?.0)).collect();
    let why = "the audit did not count the transactions of the promoted replica";
    Some(all.map(|all| all.iter().sum::<u64>() as f64).ok_or_else(|| why.to_owned()))
}

pub(crate) fn recovery_of(summary: &StepSummary) -> Value {
    let why =
        "throughput did not recover within the measured time, or was not known before the fault";
    mean_of(summary, why, |fault| fault.recovered_after_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With these counts of tenths of a second.
    fn commits(tenths: &[f64]) -> impl Fn(f64, f64) -> f64 {
        let starts: Vec<f64> = (0..tenths.len()).map(|i| i as f64 / 10.0).collect();
        let bins = Bins::new(&starts, &vec![0.1; tenths.len()], tenths.to_vec());
        move |from, to| bins.between(from, to)
    }

    /// Counts of tenths of a second, as stretches.
    fn series(stretches: &[(usize, f64)]) -> Vec<f64> {
        stretches.iter().flat_map(|(n, value)| vec![*value; *n]).collect()
    }

    #[test]
    fn what_was_before_is_the_median_of_the_seconds_before_the_fault() {
        let check =
            |stretches: &[(usize, f64)], began_s: f64, expected: (Option<f64>, u32, u32)| {
                let found = Before::of(began_s, &commits(&series(stretches)));
                let level = found.level.map(|level| (level * 1e6).round() / 1e6);
                assert_eq!((level, found.n, found.n_below), expected, "{stretches:?}");
            };
        check(&[(100, 10.0)], 5.0, (Some(100.0), 5, 0));
        // One of five seconds was slow; the first half second is not whole.
        check(&[(15, 10.0), (10, 2.0), (100, 10.0)], 5.5, (Some(100.0), 5, 1));
        check(&[(1000, 10.0)], 60.0, (Some(100.0), 30, 0));
        check(&[(1000, 10.0)], 2.9, (None, 0, 0));
        check(&[(1000, 0.0)], 9.0, (None, 9, 0));
    }

    #[test]
    fn a_load_has_recovered_when_it_stays_at_nine_tenths() {
        let check = |stretches: &[(usize, f64)], expected: Option<f64>| {
            let tenths = series(stretches);
            let end = tenths.len() as f64 / 10.0;
            let found = recovered(100.0, (10.0, end), &commits(&tenths));
            let found = found.map(|at| (at * 10.0).round() / 10.0);
            assert_eq!(found, expected, "{stretches:?}");
        };
        // Away from second 10 to 14, then whole.
        check(&[(100, 10.0), (40, 0.0), (100, 10.0)], Some(14.0));
        // Neither catching up nor a time before a relapse counts.
        check(&[(100, 10.0), (40, 0.0), (20, 30.0), (20, 0.0), (60, 10.0)], Some(18.0));
        // Back at 80 %, then 95 %.
        check(&[(100, 10.0), (20, 0.0), (50, 8.0), (60, 9.5)], Some(16.7));
        check(&[(100, 10.0), (20, 0.0), (100, 8.0)], None);
        // Not enough time left.
        check(&[(100, 10.0), (40, 0.0), (29, 10.0)], None);
        // No effect.
        check(&[(300, 10.0)], Some(10.0));
    }

    #[test]
    fn the_time_without_a_commit_is_the_longest_one_after_the_fault() {
        let check = |stretches: &[(usize, f64)], expected: f64| {
            let tenths = series(stretches);
            let starts: Vec<f64> = (0..tenths.len()).map(|i| i as f64 / 10.0).collect();
            let bins = Bins::new(&starts, &vec![0.1; tenths.len()], tenths);
            let found = away(&bins, (10.0, 20.0)).expect("there are bins");
            assert!((found - expected).abs() < 1e-9, "{found} {stretches:?}");
        };
        check(&[(200, 1.0)], 0.0);
        check(&[(90, 1.0), (52, 0.0), (58, 1.0)], 4.2);
        check(&[(110, 1.0), (20, 0.0), (5, 1.0), (35, 0.0), (30, 1.0)], 3.5);
        check(&[(120, 1.0), (80, 0.0)], 8.0);
    }

    #[test]
    fn the_worst_second_may_begin_at_any_tenth() {
        let tenths = series(&[(105, 10.0), (10, 0.0), (50, 10.0)]);
        assert_eq!(lowest((10.0, 15.0), &commits(&tenths)).map(f64::round), Some(0.0));
        assert_eq!(lowest((10.0, 10.5), &commits(&tenths)), None);
    }

    #[test]
    fn the_first_commit_after_a_promotion_is_found_to_a_tenth() {
        let tenths = series(&[(40, 10.0), (7, 0.0), (50, 10.0)]);
        let starts: Vec<f64> = (0..tenths.len()).map(|i| i as f64 / 10.0).collect();
        let bins = Bins::new(&starts, &vec![0.1; tenths.len()], tenths);
        let found = |from: f64, to: f64| first_commit(&bins, (from, to)).map(rounded);
        assert_eq!(found(4.25, 9.0), Some(4.7));
        assert_eq!(found(4.73, 9.0), Some(4.73));
        assert_eq!(found(4.25, 4.6), None);
    }

    #[test]
    fn what_was_lost_is_counted_where_a_replica_was_promoted() {
        use dyno_record::{Promotion, Survived};
        let survived = |acknowledged, in_doubt, found| Survived {
            acknowledged,
            in_doubt,
            found,
            ..Survived::default()
        };
        let check = |survived: Option<Survived>, expected: Option<(u64, u64)>, least: Value| {
            let promotion =
                Some(Promotion { member: "replica-1".to_owned(), survived: survived.clone() });
            let fault = Fault { kind: "kill".to_owned(), promotion, ..Fault::default() };
            assert_eq!(lost(&fault), expected, "{survived:?}");
            let step = StepSummary { faults: vec![fault], ..StepSummary::default() };
            assert_eq!(lost_of(&step).map(|value| value.ok()), least.map(|value| value.ok()));
        };
        check(Some(survived(100, 0, 100)), Some((0, 0)), Some(Ok(0.0)));
        check(Some(survived(100, 0, 60)), Some((40, 40)), Some(Ok(40.0)));
        check(Some(survived(100, 4, 60)), Some((40, 44)), Some(Ok(40.0)));
        check(Some(survived(100, 4, 103)), Some((0, 1)), Some(Ok(0.0)));
        check(Some(survived(2, 4, 0)), Some((2, 2)), Some(Ok(2.0)));
        // Found by rows, whatever is in doubt.
        let exact = |lost| Some(Survived { lost: Some(lost), ..survived(100, 32, 100) });
        check(exact(0), Some((0, 0)), Some(Ok(0.0)));
        check(exact(3), Some((3, 3)), Some(Ok(3.0)));
        check(None, None, Some(Err(String::new())));
        assert_eq!(lost_of(&StepSummary::default()), None);
    }

    #[test]
    fn a_step_has_a_time_only_if_each_of_its_faults_has_one() {
        use crate::fixtures::run;
        let mut step = run(&["x"], &[4], 1, |_, _, _| 1_000.0).trials[0].steps[0].clone();
        assert_eq!(recovery_of(&step), None);
        let at = |began_s: f64| Fault {
            name: "crash".to_owned(),
            kind: "kill".to_owned(),
            began_s,
            answered_s: Some(began_s + 1.5),
            ..Fault::default()
        };
        let n = step.intervals.start_s.len();
        step.measured_s = n as f64;
        step.intervals.start_s = (0..n).map(|second| second as f64).collect();
        let tenths = vec![10_u32; 10 * n];
        step.kinds[0].commits_100ms = Some(dyno_record::EncodedCounts::encode(&tenths));
        step.faults = vec![at(4.0)];
        assert_eq!(recovery_of(&step), Some(Ok(0.0)));
        assert_eq!(answer_of(&step), Some(Ok(1.5)));
        // Waiting transactions end slightly after bins show commits.
        let stop = Fault { kind: "stop".to_owned(), ended_s: Some(6.0005), ..at(4.0) };
        let mut waited = step.clone();
        waited.kinds[0].commits_100ms = Some(dyno_record::EncodedCounts::encode(
            &(0..10 * n)
                .map(|tenth| if (40..59).contains(&tenth) { 0 } else { 10 })
                .collect::<Vec<u32>>(),
        ));
        waited.intervals.max_us =
            (0..n).map(|second| if second == 6 { 2e6 } else { 1e3 }).collect();
        waited.faults = vec![stop];
        let found = &of_summary(&waited)[0];
        assert_eq!((found.recovered_after_s, found.longest_us), (Some(1.9), Some(2e6)));
        // The second fault is too late to see a recovery.
        step.faults.push(at(n as f64 - 1.0));
        assert!(matches!(recovery_of(&step), Some(Err(_))), "{:?}", recovery_of(&step));
        assert_eq!(answer_of(&step), Some(Ok(1.5)));
    }
}
