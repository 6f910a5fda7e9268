//! Runs that are repeated and joined until something is found.

use std::io::Write;

use dyno_analysis::statistics::{Call, Effect, calls_at, decide};
use dyno_analysis::stopping::share_of_look;
use dyno_units::Seed;

use crate::{RULE, head, percent};

const STUDIES: u32 = 4_000;
/// Most runs that are joined.
const RUNS_MOST: usize = 10;

/// Studies without an effect in which a difference is found by the k-th joined run at the latest: with
/// the full level every time, and with that of repeated looks. One comparison; `grow` says how many
/// blocks the next run has.
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
            let effect = Effect::paired(&differences, 0.0).expect("two pairs at least");
            let call = |share: f64| {
                let level = share * (1.0 - RULE.confidence);
                calls_at(&[(Some(effect), level)], &RULE)[0].0
            };
            let decided = |call: Call| (call != Call::Undecided).then_some(call);
            by_naive = by_naive.or_else(|| decided(call(1.0)));
            by_looks = by_looks.or_else(|| decided(call(share_of_look(look as u32 + 1))));
            let is_alarm =
                |call: Option<Call>| u32::from(matches!(call, Some(Call::Higher | Call::Lower)));
            naive[look] += is_alarm(by_naive);
            looked[look] += is_alarm(by_looks);
            more = grow(&effect);
        }
    }
    (naive, looked)
}

pub(crate) fn table(out: &mut dyn Write) -> std::io::Result<()> {
    let columns =
        ["how", "noise", "judged", "1 run", "at most 2", "at most 3", "at most 5", "at most 10"];
    head(out, &columns, 3)?;
    let needed = |effect: &Effect| {
        let decision = decide(&[Some(*effect)], &RULE)[0];
        decision.repetitions_needed.unwrap_or(3).clamp(3, 40)
    };
    let mut lines = Vec::new();
    for noise in [0.02, 0.03, 0.08] {
        lines.push(("3 more each time", noise, alarms(noise, 3, |_| 3)));
    }
    for noise in [0.02, 0.03] {
        lines.push(("as many as are said to decide", noise, alarms(noise, 3, needed)));
    }
    for (how, noise, (naive, looked)) in lines {
        for (judged, found) in [("each time at 5 %", naive), ("as repeated looks (Dyno)", looked)] {
            let cells = [0, 1, 2, 4, 9].map(|i: usize| percent(found[i], STUDIES));
            writeln!(out, "| {how} | {} % | {judged} | {} |", noise * 100.0, cells.join(" | "))?;
        }
    }
    Ok(())
}
