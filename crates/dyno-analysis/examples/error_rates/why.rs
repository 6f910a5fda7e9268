//! "Goes with +12 % server CPU per transaction": how often a use is named, or called unchanged, that is not.

use dyno_analysis::statistics::{Call, Effect, call_among};
use dyno_units::{RandomStream, Seed};

use crate::noise::{Noise, Order, Setup, calls_shifted, effects, is_difference, study};
use crate::{LEVEL, RULE, Rows, shares_of};

const STUDIES: u32 = 4_000;
/// Of each comparison; the first is the server's CPU.
const USES: usize = 12;

pub(crate) const COLUMNS: &str = "variants | load levels | n | all alike: a reason is named | \
    one variant 10 % slower, uses alike: one is named | it also uses 10 % more of one: it is named | \
    another is named beside it | its CI covers | a use that is alike: called unchanged | one that \
    differs by δ: called unchanged";

/// Comparisons of throughput, and of each use the effects in the same order.
struct Study {
    calls: Vec<Call>,
    uses: Vec<Vec<Effect>>,
}

/// Uses share half of their noise; the variant with an effect is slower by `slower`, and has so much more of the first.
fn made(setup: Setup, (slower, more): (f64, f64), random: &mut RandomStream) -> Study {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let raise = |table: &mut Vec<Vec<Vec<f64>>>, effect: f64| {
        table[1].iter_mut().flatten().for_each(|value| *value += effect);
    };
    let mut throughput = study(setup, random);
    raise(&mut throughput, (1.0 - slower).ln());
    let common = study(setup, random);
    let one = |nth: usize| {
        let mut table = study(setup, random);
        let values = table.iter_mut().flatten().flatten();
        for (own, common) in values.zip(common.iter().flatten().flatten()) {
            *own = half * (common + *own);
        }
        raise(&mut table, if nth == 0 { more.ln_1p() } else { 0.0 });
        effects(&table, true)
    };
    let uses = (0..USES).map(one).collect();
    let calls = calls_shifted(&effects(&throughput, true), setup.steps, 0.0);
    Study { calls: calls.into_iter().map(|(call, _)| call).collect(), uses }
}

impl Study {
    fn call(&self, nth: usize, place: usize) -> Call {
        let looked_at = self.uses.len() * self.calls.len();
        call_among(&self.uses[nth][place], (RULE.band(), LEVEL), looked_at)
    }

    /// As the analysis does: more with what is slower, less with what is faster; with what is undecided any, if the
    /// first use, the server's CPU, is decided. At most three, the largest.
    fn named(&self) -> Vec<(usize, usize)> {
        let of_place = |place: usize| {
            let goes_with = |nth: &usize| match (self.calls[place], self.call(*nth, place)) {
                (Call::Lower, Call::Higher) | (Call::Higher, Call::Lower) => true,
                (Call::Undecided, call) => {
                    is_difference(call) && self.call(0, place) != Call::Undecided
                }
                _ => false,
            };
            let mut named: Vec<usize> = (0..self.uses.len()).filter(goes_with).collect();
            let size = |nth: usize| self.uses[nth][place].value.abs();
            named.sort_by(|a, b| size(*b).total_cmp(&size(*a)));
            named.truncate(3);
            named.into_iter().map(move |nth| (nth, place))
        };
        (0..self.calls.len()).flat_map(of_place).collect()
    }
}

pub(crate) fn table(row: Rows<'_>) {
    for (variants, steps) in [(2, 1), (4, 1), (4, 4)] {
        for blocks in [3, 5, 10] {
            let setup = Setup::new(Noise::Normal, Order::Interleaved, blocks);
            let setup = Setup { variants, steps, ..setup };
            let place = (variants * 10_000 + steps * 1_000 + blocks) as u64;
            let mut random = Seed(83).derive("why", place).stream();
            let cells = shares_of(STUDIES, || {
                let mut of = |effects| made(setup, effects, &mut random);
                let (alike, slower) = (of((0.0, 0.0)), of((0.1, 0.0)));
                let (costly, at_edge) = (of((0.1, 0.1)), of((0.1, RULE.threshold)));
                let named = costly.named();
                let is_it = |(nth, place): &(usize, usize)| *nth == 0 && *place < steps;
                let found = named.iter().find(|one| is_it(one));
                // As printed, corrected for all that was looked at.
                let confidence = 1.0 - LEVEL / (USES * costly.calls.len()) as f64;
                let covers = |(nth, place): &(usize, usize)| {
                    let (low, high) = costly.uses[*nth][*place].bounds(confidence);
                    low <= 1.1_f64.ln() && 1.1_f64.ln() <= high
                };
                [
                    Some(!alike.named().is_empty()),
                    Some(!slower.named().is_empty()),
                    Some(found.is_some()),
                    Some(named.iter().any(|one| !is_it(one))),
                    found.map(covers),
                    Some(alike.call(1, 0) == Call::Inside),
                    Some(at_edge.call(0, 0) == Call::Inside),
                ]
            });
            row(format!("{variants} | {steps} | {blocks} | {cells}"));
        }
    }
}
