//! Cost: work for money, work per CPU second, and dominated variants.

use std::ops::RangeInclusive;

use dyno_record::Price;
use serde::{Deserialize, Serialize};

use crate::answer::{At, Ranker, Standing};
use crate::cells::{at, estimate};
use crate::statistics::mean;
use crate::{Cell, Estimate, MetricId, NoBounds, metrics};

/// Of claims: two costs of a million transactions.
pub(crate) const MONEY_PER_MILLION: MetricId = MetricId::new("money_per_million");

#[cfg(test)]
mod tests;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostFacts {
    pub variant: usize,
    pub step: usize,
    pub price_per_hour: Option<Price>,
    /// For one unit of the currency: throughput × 3600 ÷ price per hour.
    pub work_per_money: Option<Estimate>,
    /// Of transactions.
    pub money_per_million: Option<Estimate>,
    /// Transactions per CPU second of the server.
    pub work_per_cpu_s: Option<Estimate>,
    /// On the frontier of price and performance: no other variant with this currency is as fast at
    /// this step for no more money, and better in one of both. `None` without prices to compare.
    pub on_frontier: Option<bool>,
    /// If it is not on the frontier.
    pub dominated: Option<Dominated>,
}

/// Another variant is cheaper and not slower, or faster and not dearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dominated {
    pub by: usize,
    /// By the comparison of throughputs; else only by the means.
    pub surely: bool,
}

/// Other ones are no prices of machines, and money would have no value.
const PRICES: RangeInclusive<f64> = 1e-12..=1e12;

pub(crate) fn cost(cells: &[Cell], ranker: &Ranker<'_>) -> Vec<CostFacts> {
    let Ranker { joined, measured, levels } = ranker;
    let of_cell = |cell: &Cell| {
        let rule = levels.of_cells(cell.variant);
        let price = joined.variants[cell.variant].price_per_hour.clone();
        let price = price.filter(|price| PRICES.contains(&price.amount));
        let here = at(measured, cell.variant, cell.step);
        let rates: Vec<f64> = here.iter().filter_map(|m| m.value(metrics::THROUGHPUT)).collect();
        // A trial without commits costs as much as any other. Money for a million has no value for
        // it, so all trials together give it, without bounds.
        let is_idle = rates.contains(&0.0);
        let is_any = rates.iter().any(|rate| *rate > 0.0);
        let for_money = |of: &dyn Fn(f64, f64) -> f64, (unit, is_inverse): (String, bool)| {
            let price = price.as_ref().filter(|_| is_any)?;
            if is_idle && is_inverse {
                let together = vec![of(mean(&rates), price.amount)];
                let n = rates.len() as u32;
                let of_all = estimate(together, &unit, rule.confidence);
                return Some(Estimate { n, no_bounds: Some(NoBounds::Zero), ..of_all });
            }
            let values: Vec<f64> = rates.iter().map(|rate| of(*rate, price.amount)).collect();
            Some(estimate(values, &unit, rule.confidence))
        };
        // Of prices that no machine has, it may have no value.
        let for_money = |of: &dyn Fn(f64, f64) -> f64, unit: (String, bool)| {
            for_money(of, unit).filter(is_known)
        };
        let currency = price.as_ref().map_or("", |price| price.currency.as_str());
        let per_cpu: Vec<f64> = here
            .iter()
            .filter_map(|m| m.value(metrics::SERVER_CPU))
            .filter(|us| *us > 0.0)
            .map(|us| 1e6 / us)
            .collect();
        CostFacts {
            variant: cell.variant,
            step: cell.step,
            work_per_money: for_money(
                &|rate, a| rate * 3600.0 / a,
                (format!("1/{currency}"), false),
            ),
            money_per_million: for_money(
                &|rate, a| a / 3600.0 / rate * 1e6,
                (currency.to_owned(), true),
            ),
            work_per_cpu_s: (!per_cpu.is_empty())
                .then(|| estimate(per_cpu, "1/CPU s", rule.confidence)),
            price_per_hour: price,
            ..CostFacts::default()
        }
    };
    let mut all: Vec<CostFacts> = cells.iter().map(of_cell).collect();
    all.retain(|facts| facts.work_per_cpu_s.is_some() || facts.work_per_money.is_some());
    draw_frontier(&mut all, cells, ranker);
    all
}

fn is_known(money: &Estimate) -> bool {
    let Estimate { value, low, high, min, max, .. } = money;
    let all = [value, min, max].into_iter().chain(low).chain(high);
    *value > 0.0 && all.into_iter().all(|one| one.is_finite())
}

struct Point<'a> {
    variant: usize,
    price: f64,
    throughput: &'a Estimate,
}

impl Point<'_> {
    /// As fast for no more money, and better in one of both.
    fn dominates(&self, other: &Point<'_>) -> bool {
        let (ours, theirs) = (self.throughput.value, other.throughput.value);
        self.price <= other.price && ours >= theirs && (self.price < other.price || ours > theirs)
    }
}

/// By step and currency.
fn draw_frontier(all: &mut [CostFacts], cells: &[Cell], ranker: &Ranker<'_>) {
    for idx in 0..all.len() {
        let point = |facts: &CostFacts| {
            let is_it = |c: &&Cell| (c.variant, c.step) == (facts.variant, facts.step);
            let throughput = cells.iter().find(is_it)?.metrics.get(&metrics::THROUGHPUT)?;
            let price = facts.price_per_hour.as_ref()?.amount;
            Some(Point { variant: facts.variant, price, throughput })
        };
        let currency = |facts: &CostFacts| facts.price_per_hour.clone().map(|p| p.currency);
        let own = &all[idx];
        let Some(here) = point(own) else { continue };
        let is_rival = |other: &&CostFacts| {
            other.variant != own.variant
                && other.step == own.step
                && currency(other) == currency(own)
        };
        let rivals: Vec<Point<'_>> = all.iter().filter(is_rival).filter_map(point).collect();
        if rivals.is_empty() {
            continue;
        }
        let fastest = rivals
            .iter()
            .filter(|rival| rival.dominates(&here))
            .max_by(|a, b| a.throughput.value.total_cmp(&b.throughput.value));
        // The fastest was chosen among these.
        let n_choices = rivals.iter().filter(|rival| rival.price <= here.price).count();
        let place = |variant: usize| At { variant, step: own.step, log_factor: 0.0 };
        let dominated = fastest.map(|rival| {
            let (them, us) = ((place(rival.variant), n_choices), [place(own.variant)]);
            let standing = ranker.stand_against(metrics::THROUGHPUT, them, &us);
            Dominated { by: rival.variant, surely: standing == Standing::Behind }
        });
        all[idx].on_frontier = Some(dominated.is_none());
        all[idx].dominated = dominated;
    }
}
