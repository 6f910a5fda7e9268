//! "About N repetitions decide with 80 % probability": how often a new run of N does.

use dyno_analysis::statistics::{Call, Effect, REPETITIONS_CAP, decide};
use dyno_units::{RandomStream, Seed};

use crate::{LEVEL, RULE, Rows, call_at, paired, percents};

const STUDIES: u32 = 1_500;
const MOST: u32 = 400;

fn pairs(effect: f64, noise: f64, n: u32, random: &mut RandomStream) -> Effect {
    let differences: Vec<f64> =
        (0..n).map(|_| effect + noise * (random.normal() - random.normal())).collect();
    paired(&differences)
}

fn is_decided(effect: Effect) -> bool {
    call_at(effect, LEVEL) != Call::Undecided
}

pub(crate) const COLUMNS: &str = "true effect | noise | first run | median of the number asked \
    for | a new run of that size reaches a verdict, if the truth is what was measured | whatever \
    the truth is";

pub(crate) fn table(row: Rows<'_>) {
    for (effect, noise) in [(0.0, 0.03), (0.02, 0.03), (0.05, 0.03), (0.05, 0.02), (0.1, 0.08)] {
        let mut random = Seed(13).derive("needed", (effect * 1e3) as u64).stream();
        let (mut asked, mut as_measured, mut in_truth) = (Vec::new(), 0, 0);
        while (asked.len() as u32) < STUDIES {
            let first = pairs(f64::ln_1p(effect), noise, 3, &mut random);
            let decision = decide(&[Some(first)], &RULE)[0];
            let Some(n) = decision.repetitions_needed.filter(|n| *n < REPETITIONS_CAP) else {
                continue;
            };
            asked.push(n);
            let spread = first.standard_error * 3_f64.sqrt() / std::f64::consts::SQRT_2;
            let n = n.min(MOST);
            as_measured += u32::from(is_decided(pairs(first.value, spread, n, &mut random)));
            in_truth += u32::from(is_decided(pairs(f64::ln_1p(effect), noise, n, &mut random)));
        }
        asked.sort_unstable();
        row(format!(
            "{} % | {} % | 3 | {} | {}",
            effect * 100.0,
            noise * 100.0,
            asked[asked.len() / 2],
            percents(&[as_measured, in_truth], STUDIES),
        ));
    }
}
