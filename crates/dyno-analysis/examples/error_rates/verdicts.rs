//! Kinds of noise, also such as is not the same in all variants, and orders of trials.

use std::io::Write;

use dyno_analysis::statistics::{Call, Effect, calls_at, mean, pooled_errors, variance};
use dyno_units::{RandomStream, Seed};

use crate::{RULE, head, percent};

/// Simulated studies for each line of the table.
pub(crate) const STUDIES: u32 = 4_000;
/// Variants, the baseline first, and steps: a family of 12 comparisons.
pub(crate) const VARIANTS: usize = 4;
pub(crate) const STEPS: usize = 4;
/// The variant that has an effect, where one has; its noise is the ordinary one.
pub(crate) const WITH_EFFECT: usize = 2;

/// Noise of one trial, on the scale of natural logarithms, less its mean.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Noise {
    /// Normal, with a standard deviation of 2 %.
    Normal,
    /// Exponential to one side, with a standard deviation of 2 %: now and then a slow trial.
    Skewed,
    /// Normal with 1 %, and one trial in ten loses 10 % or so: a disturbed machine.
    Disturbed,
    /// Normal; one variant has four times the standard deviation of the others.
    NoisyVariant,
    /// Normal; the baseline has four times the standard deviation of the others.
    NoisyBaseline,
    /// Normal; one step has four times the standard deviation of the others.
    NoisyStep,
    /// One variant is disturbed, the others are normal with 1 %.
    DisturbedVariant,
    /// One variant has exponential noise of 4 %, the others are normal with 1 %.
    SkewedVariant,
    /// A fifth of one variant's starts are 10 % slower, the others are normal with 0.5 %.
    BimodalVariant,
    /// The same, 20 % slower.
    WideBimodalVariant,
}

impl Noise {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Noise::Normal => "normal",
            Noise::Skewed => "skewed",
            Noise::Disturbed => "disturbed",
            Noise::NoisyVariant => "one variant 4 × as noisy",
            Noise::NoisyBaseline => "baseline 4 × as noisy",
            Noise::NoisyStep => "one load level 4 × as noisy",
            Noise::DisturbedVariant => "one variant disturbed",
            Noise::SkewedVariant => "one variant skewed",
            Noise::BimodalVariant => "one variant bimodal",
            Noise::WideBimodalVariant => "one variant bimodal, 20 % apart",
        }
    }

    /// The noise of a trial at all steps: half of its variance is the trial's own, half each step's.
    fn trial(self, variant: usize, random: &mut RandomStream) -> [f64; STEPS] {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let is_special = variant == 1;
        let disturbed = |random: &mut RandomStream| {
            let hit = if random.below(10) == 0 { random.exponential(0.1) } else { 0.0 };
            0.01 * random.normal() - (hit - 0.01)
        };
        let mut draw: Box<dyn FnMut(&mut RandomStream) -> f64> = match self {
            Noise::Normal | Noise::NoisyStep => Box::new(|random| 0.02 * random.normal()),
            Noise::Skewed => Box::new(|random| 0.02 - random.exponential(0.02)),
            Noise::Disturbed => Box::new(disturbed),
            Noise::NoisyVariant if is_special => Box::new(|random| 0.08 * random.normal()),
            Noise::NoisyBaseline if variant == 0 => Box::new(|random| 0.08 * random.normal()),
            Noise::NoisyVariant | Noise::NoisyBaseline => Box::new(|random| 0.02 * random.normal()),
            Noise::DisturbedVariant if is_special => Box::new(disturbed),
            Noise::SkewedVariant if is_special => {
                Box::new(|random| 0.04 - random.exponential(0.04))
            }
            Noise::DisturbedVariant | Noise::SkewedVariant => {
                Box::new(|random| 0.01 * random.normal())
            }
            Noise::BimodalVariant | Noise::WideBimodalVariant => {
                Box::new(|random| 0.005 * random.normal())
            }
        };
        let shared = draw(random);
        let mut values = [0.0; STEPS];
        for value in &mut values {
            *value = half * (shared + draw(random));
        }
        if self == Noise::NoisyStep {
            values[1] *= 4.0;
        }
        let apart = match self {
            Noise::BimodalVariant => 0.1,
            Noise::WideBimodalVariant => 0.2,
            _ => 0.0,
        };
        if apart > 0.0 && is_special {
            let slow = if random.below(5) == 0 { apart } else { 0.0 };
            values.iter_mut().for_each(|value| *value += apart / 5.0 - slow);
        }
        values
    }
}

/// How trials were ordered, and how the machine changed meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Blocks; what drifts hits a block's trials alike, with a standard deviation of 5 %.
    Interleaved,
    /// Blocks, every second one reversed; besides, the machine changes by 2 % from trial to trial.
    Mirrored,
    /// Blocks, each drawn freely, with the same change from trial to trial.
    Free,
    /// One variant after the other, on a machine that does not change.
    Sequential,
    /// One variant after the other, on a machine that is another by 2 % or so for each of them.
    SequentialDrifting,
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Order::Interleaved => "interleaved",
            Order::Mirrored => "interleaved, 2 % drift a trial",
            Order::Free => "same, blocks not reversed",
            Order::Sequential => "sequential",
            Order::SequentialDrifting => "sequential, drift",
        }
    }

    fn is_paired(self) -> bool {
        !matches!(self, Order::Sequential | Order::SequentialDrifting)
    }

    /// What the machine adds to each variant in each block.
    fn drift(self, blocks: usize, random: &mut RandomStream) -> Vec<Vec<f64>> {
        let mut drift = vec![vec![0.0; blocks]; VARIANTS];
        let mut order: Vec<usize> = (0..VARIANTS).collect();
        for block in 0..blocks {
            let whole = if self.is_paired() { 0.05 * random.normal() } else { 0.0 };
            if self == Order::Mirrored && block % 2 == 1 {
                order.reverse();
            } else {
                random.shuffle(&mut order);
            }
            let each = if matches!(self, Order::Mirrored | Order::Free) { 0.02 } else { 0.0 };
            for (place, &variant) in order.iter().enumerate() {
                drift[variant][block] = whole + each * (block * VARIANTS + place) as f64;
            }
        }
        if self == Order::SequentialDrifting {
            for variant in &mut drift[1..] {
                let other = 0.02 * random.normal();
                variant.iter_mut().for_each(|value| *value += other);
            }
        }
        drift
    }
}

/// One line of the table.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) noise: Noise,
    pub(crate) order: Order,
    pub(crate) repetitions: usize,
}

/// Logarithms by variant, step and block.
pub(crate) fn study(setup: Setup, random: &mut RandomStream) -> Vec<Vec<Vec<f64>>> {
    let drift = setup.order.drift(setup.repetitions, random);
    let mut table = vec![vec![vec![0.0; setup.repetitions]; STEPS]; VARIANTS];
    for (variant, steps) in table.iter_mut().enumerate() {
        for block in 0..setup.repetitions {
            let values = setup.noise.trial(variant, random);
            for (step, value) in values.into_iter().enumerate() {
                steps[step][block] = value + drift[variant][block];
            }
        }
    }
    table
}

/// The effects as an analysis has them: with a common error where there is one.
pub(crate) fn effects(table: &[Vec<Vec<f64>>], is_paired: bool) -> Vec<Effect> {
    let errors = if is_paired { pooled_errors(table) } else { None };
    let mut effects = Vec::new();
    for variant in 1..VARIANTS {
        for step in 0..STEPS {
            let (ours, theirs) = (&table[variant][step], &table[0][step]);
            let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
            let own = match is_paired {
                true => Effect::paired(&differences, 0.0),
                false => Effect::welch(ours, theirs, 0.0),
            };
            let own = own.expect("two repetitions at least");
            let error = errors.as_ref().map(|errors| errors[variant - 1][step]);
            effects.push(error.map_or(own, |error| own.with_error(error, 0.0)));
        }
    }
    effects
}

#[derive(Default)]
struct Tally {
    studies: u32,
    alarms: u32,
    compared: u32,
    inside: u32,
    missed: u32,
    five: u32,
    ten: u32,
    with_effect: u32,
    covered: u32,
    cells: u32,
    cells_covered: u32,
    /// Sum of measured effects of +5 % that were found.
    measured: f64,
}

impl Tally {
    fn add(&mut self, setup: Setup, random: &mut RandomStream) {
        let table = study(setup, random);
        let none = effects(&table, setup.order.is_paired());
        let calls = |effect: f64| -> Vec<(Call, f64)> {
            let shifted = |(i, own): (usize, &Effect)| {
                let is_it = i / STEPS + 1 == WITH_EFFECT;
                let value = own.value + if is_it { effect } else { 0.0 };
                (Some(Effect { value, ..*own }), 1.0 - RULE.confidence)
            };
            let shifted: Vec<_> = none.iter().enumerate().map(shifted).collect();
            let called = calls_at(&shifted, &RULE).into_iter().zip(&shifted);
            called.map(|((call, _), (effect, _))| (call, effect.map_or(0.0, |e| e.value))).collect()
        };
        let is_difference = |(call, _): &(Call, f64)| matches!(call, Call::Higher | Call::Lower);
        let of_effect = (WITH_EFFECT - 1) * STEPS..WITH_EFFECT * STEPS;
        let without = calls(0.0);
        self.studies += 1;
        self.alarms += u32::from(without.iter().any(is_difference));
        self.compared += without.len() as u32;
        self.inside += without.iter().filter(|(call, _)| *call == Call::Inside).count() as u32;
        self.covered += none.iter().filter(|e| e.p_value() > 1.0 - RULE.confidence).count() as u32;
        self.with_effect += STEPS as u32;
        let found = |calls: &[(Call, f64)], wanted: Call| -> Vec<f64> {
            let own = calls[of_effect.clone()].iter().filter(|(call, _)| *call == wanted);
            own.map(|(_, value)| value.exp_m1()).collect()
        };
        let five = found(&calls(1.05_f64.ln()), Call::Higher);
        self.five += five.len() as u32;
        self.measured += five.iter().sum::<f64>();
        self.ten += found(&calls(1.1_f64.ln()), Call::Higher).len() as u32;
        self.missed += found(&calls(RULE.band()), Call::Inside).len() as u32;
        // A cell by itself, on a machine that does not drift.
        let trials = (0..setup.repetitions).map(|_| setup.noise.trial(1, random)[0]);
        let cell: Vec<f64> = trials.collect();
        let standard_error = (variance(&cell) / cell.len() as f64).sqrt();
        let own = Effect {
            value: mean(&cell),
            standard_error,
            freedom: cell.len() as f64 - 1.0,
            n: cell.len() as u32,
        };
        self.cells += 1;
        self.cells_covered += u32::from(own.p_value() > 1.0 - RULE.confidence);
    }

    fn line(&self, setup: Setup) -> String {
        let exaggeration = self.measured / f64::from(self.five.max(1)) / 0.05;
        let exaggeration =
            if self.five < 50 { "–".to_owned() } else { format!("{exaggeration:.2}") };
        [
            setup.noise.name().to_owned(),
            setup.order.name().to_owned(),
            setup.repetitions.to_string(),
            percent(self.alarms, self.studies),
            percent(self.inside, self.compared),
            percent(self.five, self.with_effect),
            percent(self.ten, self.with_effect),
            percent(self.missed, self.with_effect),
            percent(self.covered, self.compared),
            percent(self.cells_covered, self.cells),
            exaggeration,
        ]
        .join(" | ")
    }
}

pub(crate) fn table(out: &mut dyn Write) -> std::io::Result<()> {
    let columns = [
        "noise",
        "order",
        "n",
        "false alarm",
        "no difference",
        "+5 % found",
        "+10 % found",
        "missed threshold",
        "effect CI covers",
        "cell CI covers",
        "+5 % is reported as × 5 %",
    ];
    head(out, &columns, 2)?;
    let alike = [Noise::Normal, Noise::Skewed, Noise::Disturbed];
    let heteroscedastic = [
        Noise::NoisyVariant,
        Noise::NoisyBaseline,
        Noise::NoisyStep,
        Noise::DisturbedVariant,
        Noise::SkewedVariant,
        Noise::BimodalVariant,
    ];
    let orders = [Order::Mirrored, Order::Free, Order::Sequential, Order::SequentialDrifting];
    let mut setups = Vec::new();
    let mut add = |noise: Noise, order: Order, all: &[usize]| {
        setups.extend(all.iter().map(|&repetitions| Setup { noise, order, repetitions }));
    };
    alike.into_iter().for_each(|noise| add(noise, Order::Interleaved, &[2, 3, 4, 5, 10]));
    heteroscedastic.into_iter().for_each(|noise| add(noise, Order::Interleaved, &[3, 5, 10]));
    orders.into_iter().for_each(|order| add(Noise::Normal, order, &[3, 4, 5, 10]));
    for setup in setups {
        let mut random = Seed(1)
            .derive(setup.noise.name(), setup.repetitions as u64)
            .derive(setup.order.name(), 0)
            .stream();
        let mut tally = Tally::default();
        (0..STUDIES).for_each(|_| tally.add(setup, &mut random));
        writeln!(out, "| {} |", tally.line(setup))?;
    }
    Ok(())
}
