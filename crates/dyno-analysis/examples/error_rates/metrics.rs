//! Several metrics, each its own family: how often any has a false alarm.

use std::io::Write;

use dyno_units::Seed;

use crate::noise::{Noise, Order, Setup, effects, has_difference, study};
use crate::{head, percent};

const STUDIES: u32 = 4_000;
const FAMILIES: [usize; 4] = [1, 5, 9, 14];

pub(crate) fn table(out: &mut dyn Write) -> std::io::Result<()> {
    head(out, "noise variance that all metrics share | n | 1 metric | 5 metrics | 9 | 14", 0)?;
    for shared in [0.0_f64, 0.5, 0.8] {
        for repetitions in [3, 5, 10] {
            let setup = Setup::new(Noise::Normal, Order::Interleaved, repetitions);
            let seed = Seed(29).derive("metrics", repetitions as u64);
            let mut random = seed.derive("shared", shared.to_bits()).stream();
            let mut alarms = [0; FAMILIES.len()];
            for _ in 0..STUDIES {
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
                for (count, families) in alarms.iter_mut().zip(FAMILIES) {
                    *count += u32::from(first < families);
                }
            }
            let cells = alarms.map(|count| percent(count, STUDIES));
            writeln!(out, "| {} % | {repetitions} | {} |", shared * 100.0, cells.join(" | "))?;
        }
    }
    Ok(())
}
