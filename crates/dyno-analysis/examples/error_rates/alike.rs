//! Two equal variants (`studies/aa`): what their study finds, by the noise of the machine.

use dyno_analysis::statistics::{Call, Effect, Rule, calls_at};
use dyno_units::Seed;

use crate::noise::is_difference;
use crate::{LEVEL, Rows, paired, shares};

const STUDIES: u32 = 4_000;

pub(crate) const COLUMNS: &str = "study | n | δ | noise | no effect: no difference | no effect: \
    false alarm | an effect of δ is found | an effect of δ: no difference";

pub(crate) fn table(row: Rows<'_>) {
    for (name, n, threshold, noises) in [
        ("bench-top.toml", 12, 0.1, [0.02, 0.05, 0.08, 0.1]),
        ("full.toml", 20, 0.03, [0.01, 0.02, 0.03, 0.05]),
    ] {
        let rule = Rule { threshold, confidence: 0.95 };
        for noise in noises {
            let seed = Seed(37).derive(name, n);
            let mut random = seed.derive("noise", f64::to_bits(noise)).stream();
            let shares = shares(STUDIES, || {
                let pairs: Vec<f64> =
                    (0..n).map(|_| noise * (random.normal() - random.normal())).collect();
                let own = paired(&pairs);
                let call = |shift: f64| {
                    let shifted = Effect { value: own.value + shift, ..own };
                    calls_at(&[(Some(shifted), LEVEL)], &rule)[0].0
                };
                let (none, some) = (call(0.0), call(rule.band()));
                let is_found = some == Call::Higher;
                [none == Call::Inside, is_difference(none), is_found, some == Call::Inside]
            });
            let (threshold, noise) = (threshold * 100.0, noise * 100.0);
            row(format!("{name} | {n} | {threshold} % | {noise} % | {shares}"));
        }
    }
}
