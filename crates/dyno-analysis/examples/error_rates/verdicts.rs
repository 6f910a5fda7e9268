//! Verdicts of a family of 12 comparisons, by kind of noise and order of trials.

use dyno_analysis::statistics::Call;
use dyno_units::{RandomStream, Seed};

use crate::noise::{
    Noise, Order, STEPS, STUDIES, Setup, WITH_EFFECT, calls_shifted, effects, is_difference, study,
};
use crate::{LEVEL, RULE, Rows, paired, percent, percents};

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
    /// Effects of +5 % that were found, as measured, summed.
    measured: f64,
}

impl Tally {
    fn add(&mut self, setup: Setup, random: &mut RandomStream) {
        let table = study(setup, random);
        let none = effects(&table, setup.order.is_paired());
        let calls = |effect: f64| calls_shifted(&none, STEPS, effect);
        let of_effect = (WITH_EFFECT - 1) * STEPS..WITH_EFFECT * STEPS;
        let without = calls(0.0);
        self.studies += 1;
        self.alarms += u32::from(without.iter().any(|(call, _)| is_difference(*call)));
        self.compared += without.len() as u32;
        self.inside += without.iter().filter(|(call, _)| *call == Call::Inside).count() as u32;
        self.covered += none.iter().filter(|e| e.p_value() > LEVEL).count() as u32;
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
        // Without drift.
        let trials = setup.noise.trials(1, (setup.repetitions, STEPS), random);
        let cell: Vec<f64> = trials.iter().map(|values| values[0]).collect();
        self.cells += 1;
        self.cells_covered += u32::from(paired(&cell).p_value() > LEVEL);
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
            percents(&[self.five, self.ten, self.missed], self.with_effect),
            percent(self.covered, self.compared),
            percent(self.cells_covered, self.cells),
            exaggeration,
        ]
        .join(" | ")
    }
}

pub(crate) const COLUMNS: &str = "noise | order | n | false alarm | no difference | +5 % found | \
    +10 % found | missed threshold | effect CI covers | cell CI covers | +5 % is reported as × 5 \
    %";

pub(crate) fn table(row: Rows<'_>) {
    let alike = [Noise::Normal, Noise::Skewed, Noise::Disturbed];
    let heteroscedastic = [
        Noise::NoisyVariant,
        Noise::NoisyBaseline,
        Noise::NoisyStep,
        Noise::DisturbedVariant,
        Noise::SkewedVariant,
        Noise::BimodalVariant,
        Noise::RareModeVariant,
        Noise::NoisyCell,
    ];
    let orders = [Order::Mirrored, Order::Free, Order::Sequential, Order::SequentialDrifting];
    let mut setups = Vec::new();
    let mut add = |noise: Noise, order: Order, all: &[usize]| {
        setups.extend(all.iter().map(|&repetitions| Setup::new(noise, order, repetitions)));
    };
    alike.into_iter().for_each(|noise| add(noise, Order::Interleaved, &[2, 3, 4, 5, 10]));
    heteroscedastic.into_iter().for_each(|noise| add(noise, Order::Interleaved, &[3, 5, 10]));
    orders.into_iter().for_each(|order| add(Noise::Normal, order, &[3, 4, 5, 10]));
    let memories = [Noise::Memory(0.3), Noise::Memory(0.5), Noise::Memory(0.8)];
    memories.into_iter().for_each(|noise| add(noise, Order::Interleaved, &[3, 5, 10, 20]));
    add(Noise::Normal, Order::Wandering, &[3, 5, 10, 20]);
    add(Noise::DataSets, Order::Interleaved, &[3, 5, 10, 20]);
    for setup in setups {
        let mut random = Seed(1)
            .derive(setup.noise.name(), setup.repetitions as u64)
            .derive(setup.order.name(), 0)
            .stream();
        let mut tally = Tally::default();
        (0..STUDIES).for_each(|_| tally.add(setup, &mut random));
        row(tally.line(setup));
    }
}
