//! Readings that left their ordinary range about the time of a stall, and which did first. Nothing
//! here decides the cause: several readings move in most stalls; the first is where to look first.

use std::collections::BTreeMap;

use dyno_record::StepSummary;
use dyno_units::Reading;
use dyno_units::reading::{Evidence as Sign, Movement, Role, StallCause};

use crate::statistics::{median, robust_deviation};

use super::Moved;

/// Seconds before a stall in which a reading may move.
const BEFORE_S: f64 = 3.0;
/// Robust standard deviations for a move, on the plain scale and, rising, on that of logarithms, as
/// waits and queues have long tails.
const DEVIATIONS: f64 = 5.0;
/// Least spread as a share of the ordinary value, for readings that are nearly constant.
const LEAST_SPREAD: f64 = 0.05;
/// Share of ordinary seconds that may be as far off as the moved one.
const RARE: f64 = 0.02;
/// Far from every stall; with fewer, seconds that no stall touches are ordinary too.
const SECONDS_ENOUGH: usize = 5;
/// Fewest seconds for a judgement.
const SECONDS_LEAST: usize = 3;
/// Share of a limit from which it counts as reached.
const AT_LIMIT: f64 = 0.9;
/// Below this share of the ordinary value, a reading has all but stopped.
const NEXT_TO_NOTHING: f64 = 0.1;
/// Entries of a stall, and those of the same sign.
const MOVED_MOST: usize = 8;
const OF_SAME_SIGN_MOST: usize = 2;

struct Ordinary<'a> {
    name: &'a str,
    column: &'a [Option<f64>],
    reading: &'a Reading,
    sign: Sign,
    median: f64,
    spread: f64,
    /// Median and spread of the logarithms; `None` if the median is zero.
    logs: Option<(f64, f64)>,
    values: Vec<f64>,
    /// By interval, if the reading has one.
    limit: Option<&'a [Option<f64>]>,
}

pub(super) struct Evidence<'a> {
    summary: &'a StepSummary,
    readings: Vec<Ordinary<'a>>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(
        summary: &'a StepSummary,
        meanings: &'a BTreeMap<String, Reading>,
        stalls: &[(f64, f64)],
    ) -> Evidence<'a> {
        let ordinary = ordinary_seconds(summary, stalls);
        let of_reading = |(name, reading): (&'a String, &'a Reading)| {
            let sign = reading.evidence?;
            let limit = match sign.movement {
                Movement::ToLimit => Some(limit_of(summary, meanings, sign)?),
                _ => None,
            };
            Ordinary::new((name, reading, sign), summary.readings.get(name)?, limit, &ordinary)
        };
        Evidence { summary, readings: meanings.iter().filter_map(of_reading).collect() }
    }

    /// What moved about a stall, earliest first, of the same second what moved farthest; behind all of it a server
    /// that used less CPU, as one does that waits for something, in whichever second that shows. Where more
    /// moved than is shown, each sign has its first reading there before another has its second: else
    /// ten readings of one busy disk would hide the rest.
    pub(super) fn moved(&self, (from_s, to_s): (f64, f64)) -> Vec<Moved> {
        let mut moved: Vec<(usize, Moved)> =
            self.readings.iter().filter_map(|one| self.first_move(one, from_s, to_s)).collect();
        let distance = |m: &Moved| m.deviations.map_or(f64::INFINITY, f64::abs);
        let is_idle =
            |m: &Moved| m.sign_of == StallCause::NotRunning.text() && m.value < m.ordinary;
        moved.sort_by(|(a_idx, a), (b_idx, b)| {
            let order = is_idle(a).cmp(&is_idle(b)).then(a_idx.cmp(b_idx));
            order.then(distance(b).total_cmp(&distance(a)))
        });
        let rank = |place: usize| {
            let is_same = |(_, other): &&(usize, Moved)| other.sign_of == moved[place].1.sign_of;
            moved[..place].iter().filter(is_same).count()
        };
        let mut places: Vec<(usize, usize)> = (0..moved.len()).map(|p| (rank(p), p)).collect();
        places.retain(|(rank, _)| *rank < OF_SAME_SIGN_MOST);
        places.sort_unstable();
        places.truncate(MOVED_MOST);
        let is_kept = |place: &usize| places.iter().any(|(_, kept)| kept == place);
        let shown = moved.iter().enumerate().filter(|(place, _)| is_kept(place));
        shown.map(|(_, (_, one))| one.clone()).collect()
    }

    /// About the stall.
    fn first_move(&self, one: &Ordinary<'_>, from_s: f64, to_s: f64) -> Option<(usize, Moved)> {
        let starts = &self.summary.intervals.start_s;
        // A reading stands for its whole interval: an overlap counts.
        let first = starts.partition_point(|start| *start < from_s - BEFORE_S);
        let window = starts.partition_point(|start| *start < to_s).saturating_sub(first);
        for (idx, &start) in starts.iter().enumerate().skip(first) {
            if start >= to_s {
                break;
            }
            let Some(value) = one.column.get(idx).copied().flatten() else { continue };
            let shown = match one.sign.movement {
                Movement::From(limit) => {
                    let limit = f64::from(limit);
                    (value >= limit).then_some((limit, None))
                }
                Movement::ToLimit => one.reaches_limit(idx, value).map(|limit| (limit, None)),
                _ => one.leaves_range(value).map(|z| (one.median, Some(z))),
            };
            let Some((ordinary, deviations)) = shown else { continue };
            let moved = Moved {
                reading: one.name.to_owned(),
                sign_of: one.sign.cause.text().to_owned(),
                at_s: ((start - from_s) * 1e3).round() / 1e3,
                value,
                ordinary,
                deviations: deviations.map(|z| (z * 10.0).round() / 10.0),
                unit: one.reading.unit.code().to_owned(),
                meaning: one.reading.text.to_string(),
                chance: deviations.map(|_| one.chance(value, window)),
            };
            return Some((idx, moved));
        }
        None
    }
}

/// Intervals at some distance from every stall; if too few, those that no stall touches.
pub(super) fn ordinary_seconds(summary: &StepSummary, stalls: &[(f64, f64)]) -> Vec<bool> {
    let starts = &summary.intervals.start_s;
    let apart = |distance: f64| -> Vec<bool> {
        let is_apart = |start: f64| {
            let is_clear =
                |(from, to): &(f64, f64)| start + 1.0 <= from - distance || start >= to + distance;
            start >= -1e-9 && stalls.iter().all(is_clear)
        };
        starts.iter().map(|start| is_apart(*start)).collect()
    };
    let far = apart(1.0);
    if far.iter().filter(|is| **is).count() >= SECONDS_ENOUGH { far } else { apart(0.0) }
}

/// By interval, for readings that are evidence of the same cause.
fn limit_of<'a>(
    summary: &'a StepSummary,
    meanings: &BTreeMap<String, Reading>,
    sign: Sign,
) -> Option<&'a [Option<f64>]> {
    let mut limits =
        meanings.iter().filter(|(_, reading)| reading.role == Some(Role::Limit(sign.cause)));
    limits.find_map(|(name, _)| Some(summary.readings.get(name)?.as_slice()))
}

/// Of logarithms, if the median is above zero; zeros count as very small values.
fn logs_of(values: &[f64], middle: f64, spread: f64) -> Option<(f64, f64)> {
    if middle <= 0.0 || spread <= 0.0 {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.max(1e-9 * middle).ln()).collect();
    let center = median(&logs);
    Some((center, robust_deviation(&logs, center).max(LEAST_SPREAD)))
}

impl<'a> Ordinary<'a> {
    /// `None` if read too rarely.
    fn new(
        (name, reading, sign): (&'a str, &'a Reading, Sign),
        column: &'a [Option<f64>],
        limit: Option<&'a [Option<f64>]>,
        ordinary: &[bool],
    ) -> Option<Ordinary<'a>> {
        let values: Vec<f64> =
            column.iter().zip(ordinary).filter(|(_, is)| **is).filter_map(|(v, _)| *v).collect();
        if values.len() < SECONDS_LEAST {
            return None;
        }
        let middle = median(&values);
        let spread = robust_deviation(&values, middle).max(LEAST_SPREAD * middle.abs());
        let logs = logs_of(&values, middle, spread);
        Some(Ordinary { name, column, reading, sign, median: middle, spread, logs, values, limit })
    }

    /// Upper bound of the probability that one of so many exchangeable seconds is as far off by
    /// chance: by ranks, so for every distribution.
    fn chance(&self, value: f64, seconds: usize) -> f64 {
        let is_up = value >= self.median;
        let as_far = |v: &&f64| if is_up { **v >= value } else { **v <= value };
        let n_as_far = self.values.iter().filter(as_far).count() as f64;
        let each = (n_as_far + 1.0) / (self.values.len() as f64 + 1.0);
        1.0 - (1.0 - each).powf(seconds as f64)
    }

    /// In the direction that counts.
    fn leaves_range(&self, value: f64) -> Option<f64> {
        let off = value - self.median;
        // A reading that is ordinarily zero has no spread: any value moves it.
        let deviations = if self.spread > 0.0 { off / self.spread } else { off.signum() * 99.0 };
        let is_far = match self.sign.movement {
            // CPU time is in ticks of 10 ms: with little load only next to nothing tells.
            Movement::DownTo(percent) => {
                let share = f64::from(percent) / 100.0;
                (deviations <= -DEVIATIONS && value < share * self.median)
                    || value < NEXT_TO_NOTHING * self.median
            }
            _ => {
                let is_far_in_logs = self.logs.is_none_or(|(center, spread)| {
                    value > 0.0 && (value.ln() - center) / spread >= DEVIATIONS
                });
                off >= self.reading.unit.least_rise().max(f64::MIN_POSITIVE)
                    && deviations >= DEVIATIONS
                    && is_far_in_logs
            }
        };
        if !is_far {
            return None;
        }
        let as_far = |v: &&f64| if off > 0.0 { **v >= value } else { **v <= value };
        let n_as_far = self.values.iter().filter(as_far).count();
        let is_rare = n_as_far as f64 <= RARE * self.values.len() as f64;
        is_rare.then(|| deviations.clamp(-99.0, 99.0))
    }

    fn reaches_limit(&self, idx: usize, value: f64) -> Option<f64> {
        let limit = self.limit?.get(idx).copied().flatten()?;
        (limit > 0.0 && value >= AT_LIMIT * limit).then_some(limit)
    }
}
