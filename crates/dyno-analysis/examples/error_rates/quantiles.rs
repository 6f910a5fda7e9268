//! p95 and p99 of trials, from histograms of a limited number of response times.

use dyno_analysis::statistics::{Effect, mean};
use dyno_record::new_histogram;
use dyno_units::{RandomStream, Seed};

use crate::noise::{effects, has_difference};
use crate::{Rows, paired, percent};

const STUDIES: u32 = 400;
const VARIANTS: usize = 3;
const TRANSACTIONS: u32 = 2_000;

/// Of one trial: lognormal, with a level that varies by 1 % and a varying share of slow times.
fn quantile(of: f64, random: &mut RandomStream) -> f64 {
    let level = 0.01 * random.normal();
    let slow_share = 0.02 * (0.3 * random.normal()).exp();
    let mut histogram = new_histogram();
    histogram.auto(true);
    for _ in 0..TRANSACTIONS {
        let slow = if random.unit() < slow_share { random.exponential(2.0) } else { 0.0 };
        let log = level + 0.3 * random.normal() + slow;
        histogram.record((1e6 * log.exp()) as u64).expect("the histogram grows");
    }
    (histogram.value_at_quantile(of) as f64).ln()
}

pub(crate) const COLUMNS: &str = "metric | n | false alarm | effect CI covers | cell CI covers";

pub(crate) fn table(row: Rows<'_>) {
    for (name, of) in [("p95", 0.95), ("p99", 0.99)] {
        // The mean over many trials.
        let mut random = Seed(17).derive(name, 0).stream();
        let many: Vec<f64> = (0..4_000).map(|_| quantile(of, &mut random)).collect();
        let truth = mean(&many);
        for n in [3_usize, 5, 10] {
            let mut random = Seed(17).derive(name, n as u64).stream();
            let (mut alarms, mut covered, mut cells) = (0, 0, 0);
            for _ in 0..STUDIES {
                let mut trials = || (0..n).map(|_| quantile(of, &mut random)).collect::<Vec<f64>>();
                let table: Vec<Vec<Vec<f64>>> = (0..VARIANTS).map(|_| vec![trials()]).collect();
                let effects = effects(&table, true);
                covered += effects.iter().filter(|effect| effect.p_value() > 0.05).count() as u32;
                alarms += u32::from(has_difference(&effects));
                let cell = &table[0][0];
                let own = Effect { value: mean(cell) - truth, ..paired(cell) };
                cells += u32::from(own.p_value() > 0.05);
            }
            row(format!(
                "{name} | {n} | {} | {} | {}",
                percent(alarms, STUDIES),
                percent(covered, STUDIES * (VARIANTS as u32 - 1)),
                percent(cells, STUDIES),
            ));
        }
    }
}
