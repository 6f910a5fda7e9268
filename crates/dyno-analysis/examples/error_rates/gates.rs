//! How often the gate passes what is the same, and what is worse.

use dyno_analysis::statistics::{Effect, Rule};
use dyno_analysis::{GateCall, GateInput, gate_calls};
use dyno_units::{RandomStream, Seed};

use crate::{RULE, Rows, percents};

const STUDIES: u32 = 2_000;

#[derive(Clone, Copy)]
struct Setup {
    /// Run in the same blocks.
    paired: bool,
    steps: usize,
    repetitions: usize,
    /// Standard deviation of throughput; p95 spreads twice as much.
    noise: f64,
    /// Standard deviation of the machine's slowdown on another afternoon.
    shift: f64,
}

/// By step and repetition; half of the noise variance is the trial's.
fn trials(setup: Setup, noise: f64, random: &mut RandomStream) -> Vec<Vec<f64>> {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let own: Vec<f64> = (0..setup.repetitions).map(|_| random.normal()).collect();
    let mut step = || own.iter().map(|own| noise * half * (own + random.normal())).collect();
    (0..setup.steps).map(|_| step()).collect()
}

/// By step, for a candidate worse by `harm`.
fn effects(setup: Setup, (noise, harm): (f64, f64), random: &mut RandomStream) -> Vec<Effect> {
    let table = vec![trials(setup, noise, random), trials(setup, noise, random)];
    let worse = |own: Effect| Effect { value: own.value + harm, ..own };
    crate::noise::effects(&table, setup.paired).into_iter().map(worse).collect()
}

/// Gates that pass, and that say worse. The harm is at one step only.
fn rates(setup: Setup, harm: f64, (rule, studies): (&Rule, u32)) -> (u32, u32) {
    let mut random = Seed(9)
        .derive("gate", (setup.repetitions * 100 + setup.steps) as u64)
        .derive("harm", harm.to_bits() ^ setup.shift.to_bits() ^ setup.noise.to_bits())
        .stream();
    let (mut passed, mut stopped) = (0, 0);
    for _ in 0..studies {
        let shift = setup.shift * random.normal();
        let mut inputs = Vec::new();
        for (is_required, noise) in [(true, setup.noise), (false, 2.0 * setup.noise)] {
            let found = effects(setup, (noise, shift), &mut random);
            inputs.extend(found.into_iter().enumerate().map(|(step, effect)| {
                let added = if step == 0 { harm } else { 0.0 };
                let own = Effect { value: effect.value + added, ..effect };
                GateInput {
                    harm: Some(own),
                    level: 1.0 - rule.confidence,
                    is_required,
                    is_total_loss: false,
                }
            }));
        }
        let calls = gate_calls(&inputs, rule);
        let is_worse = calls.iter().any(|(call, _)| *call == GateCall::Worse);
        let mut required = calls.iter().zip(&inputs).filter(|(_, input)| input.is_required);
        let is_passed = !is_worse && required.all(|((call, _), _)| *call == GateCall::NoWorse);
        stopped += u32::from(is_worse);
        passed += u32::from(is_passed);
    }
    (passed, stopped)
}

pub(crate) const COLUMNS: &str = "builds | steps | noise | shift | n | same: no worse | same: \
    worse | threshold worse: passes | twice the threshold: passes | twice the threshold: worse";

pub(crate) fn table(row: Rows<'_>) {
    for (paired, shift) in [(true, 0.0), (false, 0.0), (false, 0.01), (false, 0.02)] {
        for (steps, noise) in [(1, 0.01), (4, 0.01), (1, 0.02), (4, 0.02)] {
            if shift > 0.0 && noise > 0.01 {
                continue;
            }
            for repetitions in [3, 5, 10, 20] {
                let setup = Setup { paired, steps, repetitions, noise, shift };
                let default = (&RULE, STUDIES);
                let (passed, worse) = rates(setup, 0.0, default);
                let (at_threshold, _) = rates(setup, RULE.band(), default);
                let (at_twice, seen) = rates(setup, 2.0 * RULE.band(), default);
                let how = if paired { "same blocks" } else { "two runs" };
                let hits = [passed, worse, at_threshold, at_twice, seen];
                row(format!(
                    "{how} | {steps} | {} % | {} % | {repetitions} | {}",
                    noise * 100.0,
                    shift * 100.0,
                    percents(&hits, STUDIES)
                ));
            }
        }
    }
}

const TRIED: u32 = 10_000;

pub(crate) const NEEDED: &str = "noise | load levels | 3 % | 5 % | 10 %";

/// With which 80 of 100 gates of an equally good build pass.
pub(crate) fn repetitions(row: Rows<'_>) {
    for noise in [0.005, 0.01, 0.02, 0.03, 0.05] {
        for steps in [1, 4] {
            let needed = [0.03, 0.05, 0.1].map(|threshold| {
                let rule = Rule { threshold, ..RULE };
                let is_enough = |repetitions: usize| {
                    let setup = Setup { paired: true, steps, repetitions, noise, shift: 0.0 };
                    let (passed, _) = rates(setup, 0.0, (&rule, TRIED));
                    passed * 10 >= TRIED * 8
                };
                let mut high = 2;
                while !is_enough(high) {
                    high *= 2;
                }
                let mut low = high / 2 + 1;
                while low < high {
                    let middle = low + (high - low) / 2;
                    if is_enough(middle) { high = middle } else { low = middle + 1 }
                }
                high.to_string()
            });
            row(format!("{} % | {steps} | {}", noise * 100.0, needed.join(" | ")));
        }
    }
}
