//! A mode of a variant's starts that may not have occurred: in verdicts, and in the gate.

use dyno_analysis::statistics::Effect;
use dyno_analysis::{GateCall, GateInput, gate_calls};
use dyno_units::Seed;

use crate::noise::{Noise, Order, STEPS, STUDIES, Setup, effects, has_difference, study};
use crate::{LEVEL, RULE, Rows, shares};

pub(crate) const COLUMNS: &str = "noise | n | a mode in up to so many starts is absent from all \
    with 5 % | false alarm | gate passes a bimodal candidate that is worse by δ on average \
    (stated: at most 2.5 %)";

pub(crate) fn table(row: Rows<'_>) {
    for noise in [Noise::BimodalVariant, Noise::WideBimodalVariant, Noise::RareModeVariant] {
        for repetitions in [3, 5, 10, 20] {
            let setup = Setup::new(noise, Order::Interleaved, repetitions);
            let mut random = Seed(73).derive(noise.name(), repetitions as u64).stream();
            let shares = shares(STUDIES, || {
                let found = effects(&study(setup, &mut random), true);
                // The candidate is the variant with the modes.
                let pair = Setup { variants: 2, ..setup };
                let of_pair = effects(&study(pair, &mut random), true);
                let input = |effect: &Effect| GateInput {
                    harm: Some(Effect { value: RULE.band() - effect.value, ..*effect }),
                    level: LEVEL,
                    is_required: true,
                    is_total_loss: false,
                };
                let inputs: Vec<GateInput> = of_pair.iter().map(input).collect();
                debug_assert_eq!(inputs.len(), STEPS);
                let calls = gate_calls(&inputs, &RULE);
                let is_passed = calls.iter().all(|(call, _)| *call == GateCall::NoWorse);
                [has_difference(&found), is_passed]
            });
            let unseen = 1.0 - 0.05_f64.powf(1.0 / repetitions as f64);
            let (name, unseen) = (noise.name(), 100.0 * unseen);
            row(format!("{name} | {repetitions} | {unseen:.0} % | {shares}"));
        }
    }
}
