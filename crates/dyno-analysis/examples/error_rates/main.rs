//! Simulates studies whose truth is known and prints, as Markdown tables, how often the verdict
//! rules err. METHOD.md holds the tables.
//!
//! `cargo run -p dyno-analysis --example error_rates`

mod seconds;

use std::io::Write;

use dyno_analysis::statistics::{Call, Effect, Rule, decide};
use dyno_units::{RandomStream, Seed};

/// Simulated studies for each line of the table.
const STUDIES: u32 = 10_000;
/// Comparisons of each study: three variants against a baseline at four steps.
const VARIANTS: usize = 3;
const STEPS: usize = 4;
/// The rule of a study that says nothing else.
const RULE: Rule = Rule { threshold: 0.03, confidence: 0.95 };

/// Noise of one trial, on the scale of natural logarithms.
#[derive(Clone, Copy)]
enum Noise {
    /// Normal, with a standard deviation of 2 %.
    Normal,
    /// Exponential to one side, with a standard deviation of 2 %: now and then a slow trial.
    Skewed,
    /// Normal with 1 %, and one trial in ten loses 10 % or so: a disturbed machine.
    Disturbed,
}

impl Noise {
    fn draw(self, random: &mut RandomStream) -> f64 {
        match self {
            Noise::Normal => 0.02 * random.normal(),
            Noise::Skewed => -random.exponential(0.02),
            Noise::Disturbed => {
                let hit = if random.below(10) == 0 { random.exponential(0.1) } else { 0.0 };
                0.01 * random.normal() - hit
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Noise::Normal => "normal",
            Noise::Skewed => "skewed",
            Noise::Disturbed => "disturbed",
        }
    }
}

/// How trials were ordered, and how the machine changed meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Blocks; what drifts hits a block's trials alike, with a standard deviation of 5 %.
    Interleaved,
    /// One variant after the other, on a machine that does not change.
    Sequential,
    /// One variant after the other, on a machine that is another by 2 % or so for each of them.
    SequentialDrifting,
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Order::Interleaved => "interleaved, drift",
            Order::Sequential => "sequential, no drift",
            Order::SequentialDrifting => "sequential, drift",
        }
    }
}

/// One line of the table.
#[derive(Clone, Copy)]
struct Setup {
    noise: Noise,
    repetitions: usize,
    order: Order,
}

/// Logarithms of throughput of one variant: by repetition, then by step. Half of the noise is the
/// trial's own, shared by its steps; half is each step's.
fn trials(setup: Setup, effect: f64, random: &mut RandomStream) -> Vec<[f64; STEPS]> {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    (0..setup.repetitions)
        .map(|_| {
            let shared = setup.noise.draw(random);
            [(); STEPS].map(|()| effect + half * (shared + setup.noise.draw(random)))
        })
        .collect()
}

/// The decisions of one study in which the first variant has this effect and the others none.
fn study(setup: Setup, effect: f64, random: &mut RandomStream) -> Vec<Call> {
    let is_paired = setup.order == Order::Interleaved;
    let block_drift = if is_paired { 0.05 } else { 0.0 };
    let drift: Vec<f64> = (0..setup.repetitions).map(|_| block_drift * random.normal()).collect();
    let variant_drift = if setup.order == Order::SequentialDrifting { 0.02 } else { 0.0 };
    let baseline = trials(setup, 0.0, random);
    let mut effects = Vec::new();
    for variant in 0..VARIANTS {
        let effect = if variant == 0 { effect } else { 0.0 };
        let own = trials(setup, effect + variant_drift * random.normal(), random);
        for step in 0..STEPS {
            let of = |trials: &[[f64; STEPS]]| -> Vec<f64> {
                let drifting = |(block, trial): (usize, &[f64; STEPS])| trial[step] + drift[block];
                trials.iter().enumerate().map(drifting).collect()
            };
            let (ours, theirs) = (of(&own), of(&baseline));
            effects.push(if is_paired {
                let differences: Vec<f64> =
                    ours.iter().zip(&theirs).map(|(our, their)| our - their).collect();
                Effect::paired(&differences, 0.0)
            } else {
                Effect::welch(&ours, &theirs, 0.0)
            });
        }
    }
    decide(&effects, &RULE).into_iter().map(|decision| decision.call).collect()
}

/// Shares, in percent: of studies without an effect that see one; of their comparisons called "no
/// difference"; of comparisons with an effect of 10 %, 25 % that find it in the right direction;
/// of comparisons with an effect of just the threshold that are called "no difference".
fn rates(setup: Setup) -> [f64; 5] {
    let seed =
        Seed(1).derive(setup.noise.name(), setup.repetitions as u64).derive(setup.order.name(), 0);
    let is_difference = |call: &Call| matches!(call, Call::Higher | Call::Lower);
    let (mut false_studies, mut inside) = (0, 0);
    let mut random = seed.derive("none", 0).stream();
    for _ in 0..STUDIES {
        let calls = study(setup, 0.0, &mut random);
        false_studies += u32::from(calls.iter().any(is_difference));
        inside += calls.iter().filter(|call| **call == Call::Inside).count();
    }
    let with_effect = |effect: f64, wanted: Call| {
        let mut random = seed.derive("some", effect.to_bits()).stream();
        let hits: usize = (0..STUDIES)
            .map(|_| {
                let calls = study(setup, effect, &mut random);
                calls[..STEPS].iter().filter(|call| **call == wanted).count()
            })
            .sum();
        100.0 * hits as f64 / f64::from(STUDIES) / STEPS as f64
    };
    [
        100.0 * f64::from(false_studies) / f64::from(STUDIES),
        100.0 * inside as f64 / f64::from(STUDIES) / (VARIANTS * STEPS) as f64,
        with_effect(1.10_f64.ln(), Call::Higher),
        with_effect(1.25_f64.ln(), Call::Higher),
        with_effect(RULE.band(), Call::Inside),
    ]
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    seconds::table(&mut out)?;
    writeln!(out)?;
    verdicts(&mut out)
}

/// The table of noises, orders and repetitions.
fn verdicts(out: &mut impl Write) -> std::io::Result<()> {
    writeln!(
        out,
        "| noise | order | n | false alarm | no difference | +10 % found | +25 % found | \
         missed threshold |"
    )?;
    writeln!(out, "|---|---|--:|--:|--:|--:|--:|--:|")?;
    for noise in [Noise::Normal, Noise::Skewed, Noise::Disturbed] {
        for order in [Order::Interleaved, Order::Sequential, Order::SequentialDrifting] {
            for repetitions in [3, 5, 10] {
                let rates = rates(Setup { noise, repetitions, order });
                let cells: Vec<String> = rates.iter().map(|rate| format!("{rate:.1} %")).collect();
                writeln!(
                    out,
                    "| {} | {} | {repetitions} | {} |",
                    noise.name(),
                    order.name(),
                    cells.join(" | ")
                )?;
            }
        }
    }
    Ok(())
}
