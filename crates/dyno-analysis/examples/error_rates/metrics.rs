//! Several metrics, each its own family: how often any has a false alarm.

use dyno_units::Seed;

use crate::noise::{Noise, Order, Setup, effects, has_difference, study};
use crate::{Rows, shares};

const STUDIES: u32 = 4_000;
const FAMILIES: [usize; 4] = [1, 5, 9, 14];

pub(crate) const COLUMNS: &str = "noise variance that all metrics share | n | 1 metric | 5 \
    metrics | 9 | 14";

pub(crate) fn table(row: Rows<'_>) {
    for shared in [0.0_f64, 0.5, 0.8] {
        for repetitions in [3, 5, 10] {
            let setup = Setup::new(Noise::Normal, Order::Interleaved, repetitions);
            let seed = Seed(29).derive("metrics", repetitions as u64);
            let mut random = seed.derive("shared", shared.to_bits()).stream();
            let shares = shares(STUDIES, || {
                let common = study(setup, &mut random);
                let mut is_alarm = |_: usize| {
                    let mut table = study(setup, &mut random);
                    let values = table.iter_mut().flatten().flatten();
                    for (own, common) in values.zip(common.iter().flatten().flatten()) {
                        *own = shared.sqrt() * common + (1.0 - shared).sqrt() * *own;
                    }
                    has_difference(&effects(&table, true))
                };
                let most = FAMILIES[FAMILIES.len() - 1];
                let first = (0..most).find(|metric| is_alarm(*metric)).unwrap_or(most);
                FAMILIES.map(|families| first < families)
            });
            row(format!("{} % | {repetitions} | {shares}", shared * 100.0));
        }
    }
}
