//! Runs repeated and joined, or extended, until something is found.

use dyno_analysis::statistics::{Call, Effect, calls_at, decide};
use dyno_analysis::stopping::share_of_look;
use dyno_units::Seed;

use crate::noise::{effects, is_difference};
use crate::{LEVEL, RULE, Rows, call_at, paired, percents, shares};

const STUDIES: u32 = 4_000;
const RUNS_MOST: usize = 10;

/// False alarms of one comparison by the k-th joined run: at the full level each time, and at that
/// of repeated looks. `grow` gives the blocks of the next run.
fn alarms(
    noise: f64,
    first: u32,
    grow: impl Fn(&Effect) -> u32,
) -> ([u32; RUNS_MOST], [u32; RUNS_MOST]) {
    let mut random = Seed(11).derive("joined", noise.to_bits()).stream();
    let (mut naive, mut looked) = ([0; RUNS_MOST], [0; RUNS_MOST]);
    for _ in 0..STUDIES {
        let mut differences: Vec<f64> = Vec::new();
        let mut more = first;
        let (mut by_naive, mut by_looks): (Option<Call>, Option<Call>) = (None, None);
        for look in 0..RUNS_MOST {
            differences.extend((0..more).map(|_| noise * (random.normal() - random.normal())));
            let effect = paired(&differences);
            let call = |share: f64| call_at(effect, share * LEVEL);
            let decided = |call: Call| (call != Call::Undecided).then_some(call);
            by_naive = by_naive.or_else(|| decided(call(1.0)));
            by_looks = by_looks.or_else(|| decided(call(share_of_look(look as u32 + 1))));
            let is_alarm = |call: Option<Call>| u32::from(call.is_some_and(is_difference));
            naive[look] += is_alarm(by_naive);
            looked[look] += is_alarm(by_looks);
            more = grow(&effect);
        }
    }
    (naive, looked)
}

/// The baseline first.
const EXTENDED_VARIANTS: usize = 4;

/// As [`alarms`], for a run that is extended by `more` repetitions after each look: three variants,
/// a baseline, one step, and a common error. A difference counts once any look has shown it.
fn alarms_extended(noise: f64, first: u32, more: u32) -> ([u32; RUNS_MOST], [u32; RUNS_MOST]) {
    let mut random = Seed(12).derive("extended", noise.to_bits() ^ u64::from(more)).stream();
    let (mut naive, mut looked) = ([0; RUNS_MOST], [0; RUNS_MOST]);
    for _ in 0..STUDIES {
        let mut table = vec![vec![Vec::new()]; EXTENDED_VARIANTS];
        let (mut by_naive, mut by_looks) = (false, false);
        for look in 0..RUNS_MOST {
            let n = if look == 0 { first } else { more };
            for values in table.iter_mut().flatten() {
                values.extend((0..n).map(|_| noise * random.normal()));
            }
            let effects = effects(&table, true);
            let is_alarm = |share: f64| {
                let level = share * LEVEL;
                let family: Vec<_> = effects.iter().map(|own| (Some(*own), level)).collect();
                calls_at(&family, &RULE).iter().any(|(call, _)| is_difference(*call))
            };
            by_naive |= is_alarm(1.0);
            by_looks |= is_alarm(share_of_look(look as u32 + 1));
            naive[look] += u32::from(by_naive);
            looked[look] += u32::from(by_looks);
        }
    }
    (naive, looked)
}

const LOOKED_AT: u32 = 20_000;

pub(crate) const LOOKS: &str = "a test at 5 % after each of | finds a difference where there is \
    none";

/// At the full level: what sequential stopping (METHOD 7.1) avoids.
pub(crate) fn looks(row: Rows<'_>) {
    for most in [10, 20, 40] {
        let mut random = Seed(41).derive("looks", most as u64).stream();
        let share = shares(LOOKED_AT, || {
            let differences: Vec<f64> = (0..most).map(|_| random.normal()).collect();
            let p = |n: usize| paired(&differences[..n]).p_value();
            [(3..=most).any(|n| p(n) <= LEVEL)]
        });
        row(format!("3 to {most} repetitions | {share}"));
    }
}

pub(crate) const COLUMNS: &str = "how | noise | judged | 1 run | at most 2 | at most 3 | at most \
    5 | at most 10";

pub(crate) fn table(row: Rows<'_>) {
    let needed = |effect: &Effect| {
        let decision = decide(&[Some(*effect)], &RULE)[0];
        decision.repetitions_needed.unwrap_or(3).clamp(3, 40)
    };
    let mut lines = Vec::new();
    for noise in [0.02, 0.03, 0.08] {
        lines.push(("3 more each time", noise, alarms(noise, 3, |_| 3)));
    }
    for noise in [0.02, 0.03] {
        lines.push(("as many as are said to be needed", noise, alarms(noise, 3, needed)));
    }
    for (how, first, more) in
        [("one run, extended by 2 each time", 3, 2), ("one run of 5, extended by 5", 5, 5)]
    {
        for noise in [0.02, 0.03, 0.08] {
            lines.push((how, noise, alarms_extended(noise, first, more)));
        }
    }
    for (how, noise, (naive, looked)) in lines {
        for (judged, found) in [("each time at 5 %", naive), ("as repeated looks (Dyno)", looked)] {
            let cells = percents(&[0, 1, 2, 4, 9].map(|i: usize| found[i]), STUDIES);
            row(format!("{how} | {} % | {judged} | {cells}", noise * 100.0));
        }
    }
}
