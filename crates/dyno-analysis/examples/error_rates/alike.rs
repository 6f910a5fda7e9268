//! Two equal variants (`studies/aa`): what their study finds, by the noise of the machine.

use std::io::Write;

use dyno_analysis::statistics::{Call, Effect, Rule, calls_at};
use dyno_units::Seed;

use crate::noise::is_difference;
use crate::{head, percent};

const STUDIES: u32 = 4_000;

pub(crate) fn table(out: &mut dyn Write) -> std::io::Result<()> {
    let columns = "study | n | δ | noise | no effect: no difference | no effect: false alarm | an \
        effect of δ is found | an effect of δ: no difference";
    head(out, columns, 1)?;
    for (name, n, threshold, noises) in [
        ("bench-top.toml", 12, 0.1, [0.02, 0.05, 0.08, 0.1]),
        ("full.toml", 20, 0.03, [0.01, 0.02, 0.03, 0.05]),
    ] {
        let rule = Rule { threshold, confidence: 0.95 };
        for noise in noises {
            let seed = Seed(37).derive(name, n);
            let mut random = seed.derive("noise", f64::to_bits(noise)).stream();
            let (mut alike, mut alarms, mut found, mut missed) = (0, 0, 0, 0);
            for _ in 0..STUDIES {
                let pairs: Vec<f64> =
                    (0..n).map(|_| noise * (random.normal() - random.normal())).collect();
                let own = Effect::paired(&pairs, 0.0).expect("twelve pairs at least");
                let call = |shift: f64| {
                    let shifted = Effect { value: own.value + shift, ..own };
                    calls_at(&[(Some(shifted), 1.0 - rule.confidence)], &rule)[0].0
                };
                let (none, some) = (call(0.0), call(rule.band()));
                alike += u32::from(none == Call::Inside);
                alarms += u32::from(is_difference(none));
                found += u32::from(some == Call::Higher);
                missed += u32::from(some == Call::Inside);
            }
            let cells = [alike, alarms, found, missed].map(|hits| percent(hits, STUDIES));
            writeln!(
                out,
                "| {name} | {n} | {} % | {} % | {} |",
                threshold * 100.0,
                noise * 100.0,
                cells.join(" | ")
            )?;
        }
    }
    Ok(())
}
