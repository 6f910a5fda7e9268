//! Guards against rare modes of starts, their gain and cost; METHOD 8.2 says why none is in use.

use dyno_analysis::statistics::{Call, incomplete_beta, t_two_sided_p, variance};
use dyno_units::Seed;

use crate::noise::{
    Noise, Order, STEPS, STUDIES, Setup, VARIANTS, WITH_EFFECT, calls_shifted, effects,
    is_difference, study,
};
use crate::{LEVEL, RULE, Rows, percent, percents};

#[derive(Clone, Copy)]
enum Guard {
    None,
    /// More spread than equal noise has in all but 1 % of cases (F of the variances).
    Spread,
    /// Its own pairs alone show nothing at 5 %, uncorrected.
    OwnPairs,
    /// Measured as smaller than the threshold.
    BelowThreshold,
}

impl Guard {
    fn name(self) -> &'static str {
        match self {
            Guard::None => "none (Dyno)",
            Guard::Spread => "spread of the variant is improbable",
            Guard::OwnPairs => "own pairs must show it, too",
            Guard::BelowThreshold => "measured effect must reach the threshold",
        }
    }

    fn withholds(
        self,
        table: &[Vec<Vec<f64>>],
        (variant, step): (usize, usize),
        value: f64,
    ) -> bool {
        let differences = |one: usize, other: usize| -> Vec<f64> {
            let pairs = table[one][step].iter().zip(&table[other][step]);
            pairs.map(|(a, b)| a - b).collect()
        };
        let n = table[0][0].len() as f64;
        match self {
            Guard::None => false,
            Guard::BelowThreshold => value.abs() < RULE.band(),
            Guard::OwnPairs => {
                let own = variance(&differences(variant, 0));
                // The tested effect may be shifted; its spread is not.
                t_two_sided_p(value / (own / n).sqrt(), n - 1.0) > LEVEL
            }
            Guard::Spread => {
                let others: Vec<usize> = (1..VARIANTS).filter(|v| *v != variant).collect();
                let theirs: f64 = others.iter().map(|v| variance(&differences(*v, 0))).sum::<f64>();
                let ratio = variance(&differences(variant, 0)) / (theirs / others.len() as f64);
                let (ours, theirs) = (n - 1.0, others.len() as f64 * (n - 1.0));
                let probability =
                    incomplete_beta(theirs / 2.0, ours / 2.0, theirs / (theirs + ours * ratio));
                n < 5.0 && probability < 0.01
            }
        }
    }
}

fn line(setup: Setup, guard: Guard) -> (u32, u32, u32) {
    let mut random = Seed(21).derive(setup.noise.name(), setup.repetitions as u64).stream();
    let (mut alarms, mut five, mut ten) = (0, 0, 0);
    for _ in 0..STUDIES {
        let table = study(setup, &mut random);
        let none = effects(&table, true);
        let found = |shift: f64| -> Vec<usize> {
            let is_found = |&(i, (call, value)): &(usize, (Call, f64))| {
                is_difference(call) && !guard.withholds(&table, (i / STEPS + 1, i % STEPS), value)
            };
            let calls = calls_shifted(&none, STEPS, shift).into_iter().enumerate();
            calls.filter(is_found).map(|(i, _)| i).collect()
        };
        let of_effect = |found: Vec<usize>| {
            found.into_iter().filter(|i| i / STEPS + 1 == WITH_EFFECT).count() as u32
        };
        alarms += u32::from(!found(0.0).is_empty());
        five += of_effect(found(1.05_f64.ln()));
        ten += of_effect(found(1.1_f64.ln()));
    }
    (alarms, five, ten)
}

pub(crate) const COLUMNS: &str = "noise | n | guard | false alarm | +5 % found | +10 % found";

pub(crate) fn table(row: Rows<'_>) {
    let noises = [Noise::BimodalVariant, Noise::WideBimodalVariant, Noise::Normal];
    let guards = [Guard::None, Guard::Spread, Guard::OwnPairs, Guard::BelowThreshold];
    for (noise, repetitions) in noises.into_iter().flat_map(|noise| [(noise, 3), (noise, 4)]) {
        for guard in guards {
            let setup = Setup::new(noise, Order::Interleaved, repetitions);
            let (alarms, five, ten) = line(setup, guard);
            let with_effect = STUDIES * STEPS as u32;
            row(format!(
                "{} | {repetitions} | {} | {} | {}",
                noise.name(),
                guard.name(),
                percent(alarms, STUDIES),
                percents(&[five, ten], with_effect)
            ));
        }
    }
}
