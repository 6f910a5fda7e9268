//! Dips made on purpose, by lowering a device's limit, against the stalls that were found.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::StallFacts;
use super::bins::Bins;
use crate::join::Joined;
use crate::statistics::median;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MadeDips {
    pub variant: usize,
    pub step: usize,
    /// In its own run.
    pub trial: u32,
    pub volume: String,
    pub limit: String,
    /// In the measured time.
    pub made: u32,
    /// Dips with a stall.
    pub found: u32,
    /// Stalls that began in none.
    pub others: u32,
    /// Between made dips; `None` with fewer than two.
    pub period_s: Option<f64>,
    /// Between found dips, the median; `None` with fewer than two.
    pub found_period_s: Option<f64>,
    /// Throughput in dips over that of the rest, if the record tells.
    pub level_left: Option<f64>,
}

/// In the order of trials and steps.
pub(crate) fn made_dips(joined: &Joined<'_>, stalls: &[StallFacts]) -> Vec<MadeDips> {
    let mut all = Vec::new();
    for trial in &joined.trials {
        for step in 0..joined.steps.len() {
            let Some(summary) = trial.step(step) else { continue };
            let is_here = |stall: &&StallFacts| {
                (stall.variant, stall.step, stall.trial) == (trial.variant, step, trial.number)
            };
            let stalls: Vec<&StallFacts> = stalls.iter().filter(is_here).collect();
            let volumes: BTreeSet<&str> = summary.dips.iter().map(|dip| &*dip.volume).collect();
            for volume in volumes {
                let dips = summary.dips.iter().filter(|dip| dip.volume == volume);
                let times: Vec<(f64, f64)> =
                    dips.clone().map(|dip| (dip.start_s, dip.start_s + dip.length_s)).collect();
                all.push(MadeDips {
                    variant: trial.variant,
                    step,
                    trial: trial.number,
                    volume: volume.to_owned(),
                    level_left: Bins::of(summary).and_then(|total| {
                        let commits = |from, to| total.between(from, to);
                        level_left(&times, summary.measured_s, commits)
                    }),
                    limit: dips.clone().next().map(|dip| dip.limit.clone()).unwrap_or_default(),
                    ..of_times(&times, &stalls)
                });
            }
        }
    }
    all
}

fn of_times(times: &[(f64, f64)], stalls: &[&StallFacts]) -> MadeDips {
    let overlaps = |(start, end): (f64, f64), stall: &StallFacts| {
        stall.start_s < end + stall.bin_s && start - stall.bin_s < stall.start_s + stall.length_s
    };
    let of_dip = |time: (f64, f64)| stalls.iter().find(move |stall| overlaps(time, stall));
    let found: Vec<&&StallFacts> = times.iter().filter_map(|time| of_dip(*time)).collect();
    let is_other = |stall: &&&StallFacts| !times.iter().any(|time| overlaps(*time, stall));
    let starts = |starts: Vec<f64>| {
        let periods: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        (!periods.is_empty()).then(|| median(&periods))
    };
    MadeDips {
        made: times.len() as u32,
        found: found.len() as u32,
        others: stalls.iter().filter(is_other).count() as u32,
        period_s: starts(times.iter().map(|(start, _)| *start).collect()),
        found_period_s: starts(found.iter().map(|stall| stall.start_s).collect()),
        ..MadeDips::default()
    }
}

/// Rate in these times over that of the rest of the measured time; `None` if the rest is empty.
fn level_left(
    times: &[(f64, f64)],
    measured_s: f64,
    commits: impl Fn(f64, f64) -> f64,
) -> Option<f64> {
    let within: f64 = times.iter().map(|(start, end)| commits(*start, *end)).sum();
    let length: f64 = times.iter().map(|(start, end)| end - start).sum();
    let rest = (commits(0.0, measured_s) - within) / (measured_s - length);
    (length > 0.0 && measured_s > length && rest > 0.0).then(|| within / length / rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dips_that_were_made_are_compared_with_stalls_that_were_found() {
        let stall = |start_s: f64, length_s: f64, missing: f64| StallFacts {
            start_s,
            length_s,
            missing,
            level: 1000.0,
            bin_s: 0.1,
            ..StallFacts::default()
        };
        let made = [(55.0, 60.0), (115.0, 120.0), (175.0, 180.0)];
        let stalls = [
            stall(55.1, 4.8, 4320.0),
            stall(80.0, 1.0, 900.0),
            stall(115.2, 4.9, 4410.0),
            // Its effect began after its end.
            stall(181.0, 3.0, 2700.0),
        ];
        let found = of_times(&made, &stalls.iter().collect::<Vec<_>>());
        assert_eq!((found.made, found.found, found.others), (3, 2, 2));
        assert_eq!(found.period_s, Some(60.0));
        let period = found.found_period_s.expect("two were found");
        assert!((period - 60.1).abs() < 1e-9, "{period}");
        let none = of_times(&made[..1], &[]);
        assert_eq!((none.made, none.found, none.period_s), (1, 0, None));
    }

    #[test]
    fn what_was_done_in_dips_is_compared_with_the_rest() {
        // 10 a second in dips, else 100.
        let times = [(8.0, 10.0), (18.0, 20.0)];
        let commits = |from: f64, to: f64| {
            let dipped: f64 =
                times.iter().map(|(start, end)| (to.min(*end) - from.max(*start)).max(0.0)).sum();
            (to - from - dipped) * 100.0 + dipped * 10.0
        };
        let left = level_left(&times, 20.0, commits).expect("known");
        assert!((left - 0.1).abs() < 1e-9, "{left}");
        assert_eq!(level_left(&[], 20.0, commits), None);
        assert_eq!(level_left(&times, 20.0, |_, _| 0.0), None);
    }
}
