//! Simulated studies: kinds of noise, also unequal among variants, and orders of trials.

use dyno_analysis::statistics::{Call, Effect, calls_at, pooled_error_unguarded, pooled_errors};
use dyno_units::RandomStream;

use crate::{LEVEL, RULE, paired};

pub(crate) const STUDIES: u32 = 4_000;
/// With the steps, a family of 12 comparisons; the baseline is first.
pub(crate) const VARIANTS: usize = 4;
pub(crate) const STEPS: usize = 4;
/// Of a machine's speed from trial to trial.
const WANDERING: f64 = 0.9;
/// Its noise is the ordinary one.
pub(crate) const WITH_EFFECT: usize = 2;

/// On the scale of natural logarithms, with mean 0.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Noise {
    /// Standard deviation 2 %.
    Normal,
    /// One-sided exponential, standard deviation 2 %: some slow trials.
    Skewed,
    /// Normal with 1 %; one trial in ten loses about 10 %.
    Disturbed,
    /// Normal; one variant has four times the others' standard deviation.
    NoisyVariant,
    /// Normal; the baseline has four times the others' standard deviation.
    NoisyBaseline,
    /// Normal; one step has four times the others' standard deviation.
    NoisyStep,
    /// One variant is disturbed; the others are normal with 1 %.
    DisturbedVariant,
    /// One variant is exponential with 4 %; the others are normal with 1 %.
    SkewedVariant,
    /// A fifth of one variant's starts are 10 % slower; the others are normal with 0.5 %.
    BimodalVariant,
    /// As before, 20 % slower.
    WideBimodalVariant,
    /// As before, a tenth of the starts, 30 % slower.
    RareModeVariant,
    /// Normal; one variant has eight times the others' standard deviation at the last step.
    NoisyCell,
    /// Normal with 2 %; a variant's trials share an offset of 1 %, as from a data set of its own.
    DataSets,
    /// Normal with 2 %; correlation of a variant's trials in neighbouring blocks.
    Memory(f64),
}

enum Draw {
    Normal(f64),
    Exponential(f64),
    Disturbed,
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

    /// At all steps; half of the variance is the trial's, half each step's.
    fn trial(self, variant: usize, steps: usize, random: &mut RandomStream) -> Vec<f64> {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let is_special = variant == 1;
        // With standard deviations.
        let kind = match self {
            Noise::Skewed => Draw::Exponential(0.02),
            Noise::SkewedVariant if is_special => Draw::Exponential(0.04),
            Noise::Disturbed => Draw::Disturbed,
            Noise::DisturbedVariant if is_special => Draw::Disturbed,
            Noise::DisturbedVariant | Noise::SkewedVariant => Draw::Normal(0.01),
            Noise::NoisyVariant if is_special => Draw::Normal(0.08),
            Noise::NoisyBaseline if variant == 0 => Draw::Normal(0.08),
            Noise::BimodalVariant | Noise::WideBimodalVariant | Noise::RareModeVariant => {
                Draw::Normal(0.005)
            }
            _ => Draw::Normal(0.02),
        };
        let draw = |random: &mut RandomStream| match kind {
            Draw::Normal(deviation) => deviation * random.normal(),
            Draw::Exponential(deviation) => deviation - random.exponential(deviation),
            Draw::Disturbed => {
                let hit = if random.below(10) == 0 { random.exponential(0.1) } else { 0.0 };
                0.01 * random.normal() - (hit - 0.01)
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

/// Order of trials, and changes of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Blocks; drift with a standard deviation of 5 % hits a block's trials alike.
    Interleaved,
    /// Every second block is reversed; the machine also changes by 2 % from trial to trial.
    Mirrored,
    /// Every second block is reversed; the speed wanders by 2 %, with a correlation of 0.9.
    Wandering,
    /// Each block is drawn freely, with the same change from trial to trial.
    Free,
    /// One variant after the other, on an unchanged machine.
    Sequential,
    /// One variant after the other; the machine differs by about 2 % for each.
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
    /// With the baseline.
    pub(crate) variants: usize,
    pub(crate) steps: usize,
}

impl Setup {
    pub(crate) fn new(noise: Noise, order: Order, repetitions: usize) -> Setup {
        Setup { noise, order, repetitions, variants: VARIANTS, steps: STEPS }
    }
}

/// By variant, step and block.
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
    Unguarded,
    /// As an analysis does with interleaved trials.
    Guarded,
}

/// As in an analysis, with a common error if there is one.
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
                true => paired(&differences),
                false => Effect::welch(ours, theirs, 0.0).expect("two repetitions at least"),
            };
            let error = guarded.as_ref().map(|errors| errors[variant - 1][step]).or(plain);
            effects.push(error.map_or(own, |error| own.with_error(error)));
        }
    }
    effects
}

/// With their values; `shift` is added to those of the variant with an effect.
pub(crate) fn calls_shifted(effects: &[Effect], steps: usize, shift: f64) -> Vec<(Call, f64)> {
    let shifted = |(i, own): (usize, &Effect)| {
        let value = own.value + if i / steps + 1 == WITH_EFFECT { shift } else { 0.0 };
        Effect { value, ..*own }
    };
    let shifted: Vec<Effect> = effects.iter().enumerate().map(shifted).collect();
    let levels: Vec<_> = shifted.iter().map(|own| (Some(*own), LEVEL)).collect();
    let calls = calls_at(&levels, &RULE).into_iter().map(|(call, _)| call);
    calls.zip(shifted.iter().map(|own| own.value)).collect()
}

pub(crate) fn has_difference(effects: &[Effect]) -> bool {
    calls_shifted(effects, 1, 0.0).iter().any(|(call, _)| is_difference(*call))
}

pub(crate) fn is_difference(call: Call) -> bool {
    matches!(call, Call::Higher | Call::Lower)
}
