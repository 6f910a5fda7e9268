//! Simulated studies: kinds of noise, also such as is not the same in all variants, and orders of trials.

use dyno_analysis::statistics::{Call, Effect, pooled_error_unguarded, pooled_errors};
use dyno_units::RandomStream;

pub(crate) const STUDIES: u32 = 4_000;
/// Variants, the baseline first, and steps: a family of 12 comparisons.
pub(crate) const VARIANTS: usize = 4;
pub(crate) const STEPS: usize = 4;
/// The correlation of a machine's speed from trial to trial.
const WANDERING: f64 = 0.9;
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
    /// The same, a tenth of the starts and 30 % slower.
    RareModeVariant,
    /// Normal; one variant has eight times the standard deviation of the others, at the last step alone.
    NoisyCell,
    /// Normal, with 2 %; besides, all trials of a variant share an offset, as if they copied a data set of
    /// the variant's own. Offsets have a standard deviation of 1 %.
    DataSets,
    /// Normal, with 2 %; of a variant, each trial is correlated by this share with that of the block before.
    Memory(f64),
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
            Noise::RareModeVariant => "one variant bimodal, a tenth of its starts 30 % slower",
            Noise::NoisyCell => "one variant 8 × as noisy at one load level",
            Noise::DataSets => "one data set for each variant",
            Noise::Memory(share) if share < 0.4 => "each variant autocorrelated, φ = 0.3",
            Noise::Memory(share) if share < 0.7 => "each variant autocorrelated, φ = 0.5",
            Noise::Memory(_) => "each variant autocorrelated, φ = 0.8",
        }
    }

    /// The noise of a trial at all steps: half of its variance is the trial's own, half each step's.
    fn trial(self, variant: usize, steps: usize, random: &mut RandomStream) -> Vec<f64> {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let is_special = variant == 1;
        let disturbed = |random: &mut RandomStream| {
            let hit = if random.below(10) == 0 { random.exponential(0.1) } else { 0.0 };
            0.01 * random.normal() - (hit - 0.01)
        };
        let mut draw: Box<dyn FnMut(&mut RandomStream) -> f64> = match self {
            Noise::Normal
            | Noise::NoisyStep
            | Noise::NoisyCell
            | Noise::DataSets
            | Noise::Memory(_) => Box::new(|random| 0.02 * random.normal()),
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
            Noise::BimodalVariant | Noise::WideBimodalVariant | Noise::RareModeVariant => {
                Box::new(|random| 0.005 * random.normal())
            }
        };
        let shared = draw(random);
        let mut values = vec![0.0; steps];
        for value in &mut values {
            *value = half * (shared + draw(random));
        }
        if self == Noise::NoisyStep {
            values[1] *= 4.0;
        }
        if self == Noise::NoisyCell && is_special {
            values.last_mut().into_iter().for_each(|value| *value *= 8.0);
        }
        // One start in so many is slower by so much.
        let (one_in, apart) = match self {
            Noise::BimodalVariant => (5, 0.1),
            Noise::WideBimodalVariant => (5, 0.2),
            Noise::RareModeVariant => (10, 0.3),
            _ => (1, 0.0),
        };
        if apart > 0.0 && is_special {
            let slow = if random.below(one_in) == 0 { apart } else { 0.0 };
            values.iter_mut().for_each(|value| *value += apart / one_in as f64 - slow);
        }
        values
    }

    pub(crate) fn trials(
        self,
        variant: usize,
        (blocks, steps): (usize, usize),
        random: &mut RandomStream,
    ) -> Vec<Vec<f64>> {
        let offset = if self == Noise::DataSets { 0.01 * random.normal() } else { 0.0 };
        let mut trials: Vec<Vec<f64>> = Vec::new();
        for _ in 0..blocks {
            let mut values = self.trial(variant, steps, random);
            if let (Noise::Memory(share), Some(before)) = (self, trials.last()) {
                let fresh = (1.0 - share * share).sqrt();
                for (value, before) in values.iter_mut().zip(before) {
                    *value = share * before + fresh * *value;
                }
            }
            trials.push(values);
        }
        trials.iter_mut().flatten().for_each(|value| *value += offset);
        trials
    }
}

/// How trials were ordered, and how the machine changed meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Blocks; what drifts hits a block's trials alike, with a standard deviation of 5 %.
    Interleaved,
    /// Blocks, every second one reversed; besides, the machine changes by 2 % from trial to trial.
    Mirrored,
    /// Blocks, every second one reversed; besides, the machine's speed has a standard deviation of 2 %, and
    /// from trial to trial a correlation of 0.9.
    Wandering,
    /// Blocks, each drawn freely, with the same change from trial to trial.
    Free,
    /// One variant after the other, on a machine that does not change.
    Sequential,
    /// One variant after the other, on a machine that is another by 2 % or so for each of them.
    SequentialDrifting,
}

impl Order {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Order::Interleaved => "interleaved",
            Order::Mirrored => "interleaved, 2 % drift a trial",
            Order::Wandering => "interleaved, machine autocorrelated",
            Order::Free => "same, blocks not reversed",
            Order::Sequential => "sequential",
            Order::SequentialDrifting => "sequential, drift",
        }
    }

    pub(crate) fn is_paired(self) -> bool {
        !matches!(self, Order::Sequential | Order::SequentialDrifting)
    }

    fn drift(self, (variants, blocks): (usize, usize), random: &mut RandomStream) -> Vec<Vec<f64>> {
        let mut drift = vec![vec![0.0; blocks]; variants];
        let mut order: Vec<usize> = (0..variants).collect();
        let mut speed = None;
        for block in 0..blocks {
            let whole = if self.is_paired() { 0.05 * random.normal() } else { 0.0 };
            if matches!(self, Order::Mirrored | Order::Wandering) && block % 2 == 1 {
                order.reverse();
            } else {
                random.shuffle(&mut order);
            }
            let each = if matches!(self, Order::Mirrored | Order::Free) { 0.02 } else { 0.0 };
            for (place, &variant) in order.iter().enumerate() {
                drift[variant][block] = whole + each * (block * variants + place) as f64;
                if self == Order::Wandering {
                    let fresh = 0.02 * random.normal();
                    let next = speed.map_or(fresh, |speed| {
                        WANDERING * speed + (1.0 - WANDERING * WANDERING).sqrt() * fresh
                    });
                    speed = Some(next);
                    drift[variant][block] += next;
                }
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

#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) noise: Noise,
    pub(crate) order: Order,
    pub(crate) repetitions: usize,
    /// Variants with the baseline.
    pub(crate) variants: usize,
    pub(crate) steps: usize,
}

impl Setup {
    /// A family of 12 comparisons.
    pub(crate) fn new(noise: Noise, order: Order, repetitions: usize) -> Setup {
        Setup { noise, order, repetitions, variants: VARIANTS, steps: STEPS }
    }
}

/// Logarithms by variant, step and block.
pub(crate) fn study(setup: Setup, random: &mut RandomStream) -> Vec<Vec<Vec<f64>>> {
    let Setup { noise, order, repetitions, variants, steps } = setup;
    let drift = order.drift((variants, repetitions), random);
    let mut table = vec![vec![vec![0.0; repetitions]; steps]; variants];
    for (variant, of_steps) in table.iter_mut().enumerate() {
        let trials = noise.trials(variant, (repetitions, steps), random);
        for (block, values) in trials.into_iter().enumerate() {
            for (step, value) in values.into_iter().enumerate() {
                of_steps[step][block] = value + drift[variant][block];
            }
        }
    }
    table
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    Own,
    /// All values together.
    Unguarded,
    /// All values together, guarded: what an analysis does with interleaved trials.
    Guarded,
}

/// The effects as an analysis has them: with a common error where there is one.
pub(crate) fn effects(table: &[Vec<Vec<f64>>], is_paired: bool) -> Vec<Effect> {
    effects_with(table, is_paired, if is_paired { Errors::Guarded } else { Errors::Own })
}

pub(crate) fn effects_with(
    table: &[Vec<Vec<f64>>],
    is_paired: bool,
    errors: Errors,
) -> Vec<Effect> {
    let guarded = if errors == Errors::Guarded { pooled_errors(table) } else { None };
    let plain = if errors == Errors::Unguarded { pooled_error_unguarded(table) } else { None };
    let mut effects = Vec::new();
    for variant in 1..table.len() {
        for step in 0..table[0].len() {
            let (ours, theirs) = (&table[variant][step], &table[0][step]);
            let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
            let own = match is_paired {
                true => Effect::paired(&differences, 0.0),
                false => Effect::welch(ours, theirs, 0.0),
            };
            let own = own.expect("two repetitions at least");
            let error = guarded.as_ref().map(|errors| errors[variant - 1][step]).or(plain);
            effects.push(error.map_or(own, |error| own.with_error(error)));
        }
    }
    effects
}

pub(crate) fn is_difference(call: Call) -> bool {
    matches!(call, Call::Higher | Call::Lower)
}
