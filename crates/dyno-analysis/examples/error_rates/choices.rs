//! Sentences about one of several: cost of safe commits, growth, fastest search with a recall.

use std::io::Write;

use dyno_analysis::statistics::{
    Call, Effect, bounds_of_geometric_mean, calls_at, geometric_mean, mean,
};
use dyno_units::{RandomStream, Seed};

use crate::noise::{calls_shifted, effects};
use crate::{RULE, head, percent};

const STUDIES: u32 = 4_000;

/// By variant and block of one load level, with noise of 2 %.
fn study((variants, blocks): (usize, usize), random: &mut RandomStream) -> Vec<Vec<Vec<f64>>> {
    let machine: Vec<f64> = (0..blocks).map(|_| 0.05 * random.normal()).collect();
    let mut of = || vec![machine.iter().map(|drift| drift + 0.02 * random.normal()).collect()];
    (0..variants).map(|_| of()).collect()
}

/// Cost of safe commits where there is none: the fastest of several unsafe variants against one.
pub(crate) fn durability(out: &mut dyn Write) -> std::io::Result<()> {
    let columns = "variants that do not sync | n | a cost is said (Dyno) | CI covers | as a single \
        test: a cost is said | CI covers";
    head(out, columns, 0)?;
    for unsynced in [1, 2, 3, 6] {
        for blocks in [3, 5, 10] {
            let mut random = Seed(43).derive("safe", (unsynced * 100 + blocks) as u64).stream();
            let (mut said, mut covered) = ([0_u32; 2], [0_u32; 2]);
            for _ in 0..STUDIES {
                let table = study((unsynced + 1, blocks), &mut random);
                let value = |variant: &usize| mean(&table[*variant][0]);
                let fastest = (1..=unsynced).max_by(|a, b| value(a).total_cmp(&value(b)));
                let effect = effects(&table, true)[fastest.expect("there is one") - 1];
                for (rule, pairs) in [unsynced as f64, 1.0].into_iter().enumerate() {
                    let level = (1.0 - RULE.confidence) / pairs;
                    let call = calls_at(&[(Some(effect), level)], &RULE)[0].0;
                    said[rule] += u32::from(call == Call::Higher);
                    let (low, high) = effect.bounds(1.0 - level);
                    covered[rule] += u32::from(low <= 0.0 && high >= 0.0);
                }
            }
            let part =
                |rule: usize| [percent(said[rule], STUDIES), percent(covered[rule], STUDIES)];
            let (ours, single) = (part(0).join(" | "), part(1).join(" | "));
            writeln!(out, "| {unsynced} | {blocks} | {ours} | {single} |")?;
        }
    }
    Ok(())
}

/// "Superlinear at N" where growth is linear.
pub(crate) fn growth(out: &mut dyn Write) -> std::io::Result<()> {
    head(out, "levels | n | superlinear somewhere (Dyno) | by single intervals", 0)?;
    for levels in [1, 2, 3, 4, 7] {
        for blocks in [3, 5, 10] {
            let mut random = Seed(47).derive("growth", (levels * 100 + blocks) as u64).stream();
            let mut said = [0_u32; 2];
            for _ in 0..STUDIES {
                // The expected growth is taken out.
                let table = study((levels + 1, blocks), &mut random);
                let effects = effects(&table, true);
                let calls = calls_shifted(&effects, 1, 0.0);
                said[0] += u32::from(calls.iter().any(|(call, _)| *call == Call::Higher));
                let is_above = |effect: &Effect| effect.bounds(RULE.confidence).0 > 0.0;
                said[1] += u32::from(effects.iter().any(is_above));
            }
            let shares: Vec<String> = said.iter().map(|n| percent(*n, STUDIES)).collect();
            writeln!(out, "| {levels} | {blocks} | {} |", shares.join(" | "))?;
        }
    }
    Ok(())
}

/// Its true recall is too low.
pub(crate) fn recall(out: &mut dyn Write) -> std::io::Result<()> {
    let columns = "n | recall is truly too low (Dyno) | by the mean | steps slower than the \
        fastest that truly has it (Dyno) | by the mean";
    head(out, columns, 0)?;
    const ASKED: f64 = 0.95;
    // From the fastest step to the slowest; recall differs by 0.25 points between steps.
    let truths: Vec<f64> = (0..12).map(|step| 0.940 + 0.0025 * f64::from(step) + 0.001).collect();
    let right = truths.iter().position(|truth| *truth >= ASKED).unwrap_or(0);
    for blocks in [1, 3, 5, 10] {
        let mut random = Seed(53).derive("recall", blocks as u64).stream();
        let (mut low, mut later) = ([0_u32; 2], [0_usize; 2]);
        for _ in 0..STUDIES {
            let mut values = |truth: &f64| -> Vec<f64> {
                (0..blocks).map(|_| (truth + 0.005 * random.normal()).min(1.0)).collect()
            };
            let found: Vec<Vec<f64>> = truths.iter().map(&mut values).collect();
            let mean = |values: &[f64]| geometric_mean(values).unwrap_or(0.0);
            let least = |values: &[f64]| {
                let bounds = bounds_of_geometric_mean(values, RULE.confidence, 0.0);
                bounds.map_or(mean(values), |(low, _)| low)
            };
            let rules: [&dyn Fn(&[f64]) -> f64; 2] = [&least, &mean];
            for (rule, of) in rules.into_iter().enumerate() {
                let taken = found.iter().position(|values| of(values) >= ASKED);
                let taken = taken.unwrap_or(truths.len());
                low[rule] += u32::from(taken < right);
                later[rule] += taken.saturating_sub(right);
            }
        }
        let steps = |n: usize| format!("{:.1}", n as f64 / f64::from(STUDIES));
        let (ours, means) = (percent(low[0], STUDIES), percent(low[1], STUDIES));
        let (slower, others) = (steps(later[0]), steps(later[1]));
        writeln!(out, "| {blocks} | {ours} | {means} | {slower} | {others} |")?;
    }
    Ok(())
}
