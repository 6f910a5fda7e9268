//! What the pooled error variance and its guard save and cost.

use dyno_analysis::statistics::Effect;
use dyno_units::Seed;

use crate::noise::{
    Errors, Noise, Order, STEPS, STUDIES, Setup, VARIANTS, WITH_EFFECT, calls_shifted,
    effects_with, is_difference, study,
};
use crate::{Rows, percent, percents};

#[derive(Default)]
struct Tally {
    alarms: u32,
    five: u32,
    ten: u32,
    /// Standard errors over those without a guard, summed.
    width: f64,
}

fn found(effects: &[Effect], steps: usize, shift: f64) -> Vec<bool> {
    calls_shifted(effects, steps, shift).into_iter().map(|(call, _)| is_difference(call)).collect()
}

pub(crate) const COLUMNS: &str = "noise | variants × load levels | n | error variance | false \
    alarm | +5 % found | +10 % found | standard error, × that without guard";

pub(crate) fn table(row: Rows<'_>) {
    let of = |noise, repetitions| Setup::new(noise, Order::Interleaved, repetitions);
    let mut setups = Vec::new();
    for (noise, all) in [
        (Noise::Normal, vec![3, 5, 10]),
        (Noise::NoisyVariant, vec![3]),
        (Noise::NoisyBaseline, vec![3]),
        (Noise::NoisyStep, vec![3]),
        (Noise::NoisyCell, vec![3, 5, 10]),
        (Noise::BimodalVariant, vec![3, 5]),
        (Noise::RareModeVariant, vec![3, 5, 10]),
        (Noise::DataSets, vec![3, 5, 10]),
    ] {
        setups.extend(all.into_iter().map(|repetitions| of(noise, repetitions)));
    }
    setups.push(Setup { variants: 7, steps: 1, ..of(Noise::NoisyBaseline, 3) });
    for repetitions in [3, 5, 10] {
        setups.push(Setup { variants: 7, steps: 6, ..of(Noise::NoisyCell, repetitions) });
    }
    setups.push(Setup { variants: VARIANTS, steps: 1, ..of(Noise::BimodalVariant, 3) });
    setups.push(Setup { variants: 2, steps: STEPS, ..of(Noise::BimodalVariant, 5) });
    let kinds = [
        (Errors::Guarded, "pooled, with guard (Dyno)"),
        (Errors::Unguarded, "pooled, without guard"),
        (Errors::Own, "each comparison's own"),
    ];
    for setup in setups {
        let mut random = Seed(23)
            .derive(setup.noise.name(), setup.repetitions as u64)
            .derive("variants", (setup.variants * 10 + setup.steps) as u64)
            .stream();
        let mut tallies = kinds.map(|_| Tally::default());
        for _ in 0..STUDIES {
            let table = study(setup, &mut random);
            let plain = effects_with(&table, true, Errors::Unguarded);
            for ((errors, _), tally) in kinds.iter().zip(&mut tallies) {
                let effects = effects_with(&table, true, *errors);
                let of_effect = |found: &[bool]| {
                    let own = found.iter().enumerate();
                    own.filter(|(i, hit)| **hit && i / setup.steps + 1 == WITH_EFFECT).count()
                };
                tally.alarms += u32::from(found(&effects, setup.steps, 0.0).contains(&true));
                let five = found(&effects, setup.steps, 1.05_f64.ln());
                tally.five += of_effect(&five) as u32;
                let ten = found(&effects, setup.steps, 1.1_f64.ln());
                tally.ten += of_effect(&ten) as u32;
                let sum =
                    |effects: &[Effect]| effects.iter().map(|e| e.standard_error).sum::<f64>();
                tally.width += sum(&effects) / sum(&plain);
            }
        }
        let with_effect =
            if setup.variants > WITH_EFFECT { STUDIES * setup.steps as u32 } else { 0 };
        for ((_, name), tally) in kinds.iter().zip(&tallies) {
            row(format!(
                "{} | {} × {} | {} | {name} | {} | {} | {:.2}",
                setup.noise.name(),
                setup.variants - 1,
                setup.steps,
                setup.repetitions,
                percent(tally.alarms, STUDIES),
                percents(&[tally.five, tally.ten], with_effect),
                tally.width / f64::from(STUDIES),
            ));
        }
    }
}
