//! Arrivals due and never sent: overload, or a moment cut off by the end of measuring.

use std::collections::BTreeMap;

use dyno_record::StepSummary;

use super::found::{At, Evidence, Found, Place};
use crate::words::{count, number, seconds, share};
use crate::{Findings, StallFacts};

/// Share of arrivals that means overload, as in a search (METHOD 2.6).
const OVERLOAD_LEAST: f64 = 0.01;

#[derive(Default)]
struct Arrivals<'a> {
    missed: u64,
    due: u64,
    summaries: Vec<&'a StepSummary>,
}

impl Arrivals<'_> {
    fn share(&self) -> f64 {
        self.missed as f64 / self.due.max(self.missed).max(1) as f64
    }
}

pub(super) fn arrivals(seen: &Evidence<'_>) -> Option<Found> {
    let mut by_place: BTreeMap<At, Arrivals<'_>> = BTreeMap::new();
    for Place { at, summary, .. } in &seen.places {
        let arrivals = by_place.entry(*at).or_default();
        arrivals.missed += summary.missed;
        arrivals.due += summary.due;
        arrivals.summaries.push(summary);
    }
    by_place.retain(|_, arrivals| arrivals.missed > 0);
    let (&at, worst) = by_place.iter().max_by(|(_, a), (_, b)| a.share().total_cmp(&b.share()))?;
    let (Arrivals { missed, due, .. }, place) = (worst, seen.place(at));
    let message = if missed >= due {
        format!(
            "None of the {due} arrivals that were due in the measured time were sent ({place}): \
             the transactions that committed had been due during the warm-up. The response times \
             are those of a growing backlog, and say nothing about the server.",
        )
    } else {
        format!(
            "{}{} of the arrivals were never sent ({place}: {missed} of {due}{}). They have no \
             response time, so the percentiles are too low.",
            if by_place.len() > 1 { "Up to " } else { "" },
            share(worst.share()),
            when(&worst.summaries),
        )
    };
    Found::at(message, by_place.keys().copied()).advise(advice(seen.findings, at, worst))
}

/// A stall explains arrivals missed at the end if it ended at most so many times its length before.
const CATCH_UP: f64 = 2.0;

/// To follow their number; empty if the record does not tell.
fn when(summaries: &[&StepSummary]) -> String {
    let (with, at_end, all) = seconds_with_missed(summaries);
    match with {
        0 => String::new(),
        _ if with == at_end => ", still waiting when the measurement ended".to_owned(),
        _ => format!(", given up in {with} of {}", count(all as u64, "second")),
    }
}

/// Measured seconds with given-up arrivals, those at the end of a trial, and all.
fn seconds_with_missed(summaries: &[&StepSummary]) -> (usize, usize, usize) {
    let (mut with, mut at_end, mut all) = (0, 0, 0);
    for summary in summaries {
        let intervals = &summary.intervals;
        let measured = intervals.start_s.iter().zip(&intervals.missed);
        let measured: Vec<f64> =
            measured.filter(|(start_s, _)| **start_s >= -1e-9).map(|(_, missed)| *missed).collect();
        let some = measured.iter().filter(|missed| **missed > 0.0).count();
        with += some;
        at_end += usize::from(measured.last().is_some_and(|missed| *missed > 0.0));
        all += measured.len();
    }
    (with, at_end, all)
}

fn advice(findings: &Findings, at: At, worst: &Arrivals<'_>) -> String {
    let measured_s = worst.summaries.iter().map(|summary| summary.measured_s).fold(0.0, f64::max);
    let (with, at_end, _) = seconds_with_missed(&worst.summaries);
    let can_explain = |stall: &&StallFacts| {
        let left = measured_s - stall.start_s - stall.length_s;
        (stall.variant, stall.step) == at && (with > at_end || left <= CATCH_UP * stall.length_s)
    };
    let stalled: f64 = findings.stalls.iter().filter(can_explain).map(|stall| stall.missing).sum();
    let time: f64 = worst.summaries.iter().map(|summary| summary.measured_s).sum();
    let rate = worst.due as f64 / time.max(f64::MIN_POSITIVE);
    let worth = seconds(worst.missed as f64 / rate.max(f64::MIN_POSITIVE));
    if stalled >= worst.missed as f64 {
        return format!(
            "Its stalls (about {} fewer transactions than expected) explain them: investigate the stalls. The \
             missed arrivals do not mean that the rate is too high.",
            number(stalled),
        );
    }
    if worst.share() < OVERLOAD_LEAST {
        return format!(
            "They amount to {worth} of load, and to less than {} of all arrivals: a burst, or \
             arrivals still queued at the end. This does not mean that the rate is too high; a longer `duration` \
             makes their share smaller.",
            share(OVERLOAD_LEAST),
        );
    }
    format!(
        "They amount to {worth} of load: the offered rate is more than this variant can serve with \
         this many clients. Lower the rate, or raise `clients` if the server had headroom.",
    )
}
