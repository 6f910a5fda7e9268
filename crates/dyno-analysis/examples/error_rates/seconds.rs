//! Studies simulated by the second, with correlated noise and drifting blocks, looked at or not.

use dyno_analysis::statistics::{Call, Effect, calls_at};
use dyno_analysis::stopping::{Series, levels, looks, settle};
use dyno_record::StoppingRecord;
use dyno_units::{RandomStream, Seed};

use crate::noise::is_difference;
use crate::{RULE, Rows};

const STUDIES: u32 = 4_000;
const FIRST: u32 = 400;
const SECONDS: u32 = 60;
/// Standard deviation, and correlation of neighbours.
const SECOND_NOISE: f64 = 0.05;
const MEMORY: f64 = 0.7;
/// Standard deviations.
const TRIAL_NOISE: f64 = 0.015;
const BLOCK_DRIFT: f64 = 0.03;

#[derive(Clone, Copy)]
struct Design {
    min: u32,
    max: u32,
}

impl Design {
    fn name(self) -> String {
        match self.min == self.max {
            true => format!("{} repetitions", self.max),
            false => {
                let stopping = self.stopping();
                format!("{} to {}, {} looks", self.min, self.max, looks(&stopping).len())
            }
        }
    }

    fn stopping(self) -> StoppingRecord {
        StoppingRecord { repetitions_min: self.min, repetitions_max: self.max }
    }
}

fn trial(level: f64, random: &mut RandomStream) -> f64 {
    let own = level + TRIAL_NOISE * random.normal();
    let fresh = SECOND_NOISE * (1.0 - MEMORY * MEMORY).sqrt();
    let mut noise = SECOND_NOISE * random.normal();
    let mut sum = 0.0;
    for _ in 0..SECONDS {
        sum += (own + noise).exp();
        noise = MEMORY * noise + fresh * random.normal();
    }
    (sum / f64::from(SECONDS)).ln()
}

struct Outcome {
    /// Without the baseline.
    calls: Vec<Call>,
    covered: u32,
    trials: u32,
}

fn study(effects: &[f64], design: Design, random: &mut RandomStream) -> Outcome {
    let stopping = design.stopping();
    let n = effects.len();
    let mut series = Series {
        baselines: (0..n).map(|v| (v > 0).then_some(0)).collect(),
        logs: vec![vec![Vec::new()]; n],
        more_is_better: vec![true],
        resolution: vec![0.0],
        repetitions: vec![0; n],
    };
    for block in 1..=design.max {
        let settled = settle(&series, &stopping, &RULE);
        let drift = BLOCK_DRIFT * random.normal();
        for variant in (0..n).filter(|&variant| settled[variant].is_none()) {
            let value = trial(effects[variant] + drift, random);
            series.logs[variant][0].push((block, value));
            series.repetitions[variant] += 1;
        }
    }
    let levels = levels(&series, &stopping, &RULE);
    let found: Vec<(Option<Effect>, f64)> =
        (1..n).map(|v| (series.effect(v, 0, 0), levels[v])).collect();
    let holds = |(v, (effect, level)): (usize, &(Option<Effect>, f64))| {
        let (low, high) = effect.expect("two blocks at least").bounds(1.0 - level);
        (low..=high).contains(&(effects[v + 1] - effects[0]))
    };
    Outcome {
        covered: found.iter().enumerate().filter(|one| holds(*one)).count() as u32,
        calls: calls_at(&found, &RULE).into_iter().map(|(call, _)| call).collect(),
        trials: series.repetitions.iter().sum(),
    }
}

#[derive(Default)]
struct Tally {
    hits_of_first: u32,
    hits: u32,
    covered: u32,
    compared: u32,
    trials: u32,
}

fn tally(effects: &[f64], design: Design, is_hit: impl Fn(&[Call]) -> bool) -> Tally {
    let mut all = Tally::default();
    let seed = Seed(5).derive("seconds", u64::from(design.min) << 32 | u64::from(design.max));
    let mut random = seed.derive("effect", effects[1].to_bits()).stream();
    for number in 0..STUDIES {
        let outcome = study(effects, design, &mut random);
        let hit = u32::from(is_hit(&outcome.calls));
        all.hits += hit;
        all.hits_of_first += hit * u32::from(number < FIRST);
        all.covered += outcome.covered;
        all.compared += outcome.calls.len() as u32;
        all.trials += outcome.trials;
    }
    all
}

fn percent(n: u32, of: u32) -> f64 {
    100.0 * f64::from(n) / f64::from(of)
}

pub(crate) const COLUMNS: &str = "design | false verdict, of 400 | of 4,000 | +5 % found, of 400 \
    | of 4,000 | CIs that contain the true effect | trials saved: no effect | +5 % | ±30 %";

pub(crate) fn table(row: Rows<'_>) {
    let designs = [(5, 5), (10, 10), (20, 20), (3, 10), (3, 20), (5, 40)];
    for design in designs.map(|(min, max)| Design { min, max }) {
        let none = tally(&[0.0; 4], design, |calls| calls.iter().any(|call| is_difference(*call)));
        let five = 1.05_f64.ln();
        let some = tally(&[0.0, five, 0.0, 0.0], design, |calls| calls[0] == Call::Higher);
        let large = 1.3_f64.ln();
        let large = tally(&[0.0, large, -large, large], design, |_| true);
        let saved = |tally: &Tally| {
            let planned = STUDIES * design.max * 4;
            percent(planned - tally.trials, planned)
        };
        row(format!(
            "{} | {} | {:.1} % | {} | {:.1} % | {:.1} % | {:.0} % | {:.0} % | {:.0} %",
            design.name(),
            none.hits_of_first,
            percent(none.hits, STUDIES),
            some.hits_of_first,
            percent(some.hits, STUDIES),
            percent(none.covered + some.covered, none.compared + some.compared),
            saved(&none),
            saved(&some),
            saved(&large),
        ));
    }
}
