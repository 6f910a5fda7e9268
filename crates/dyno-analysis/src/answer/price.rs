//! The sentence on money: which variant does its work for least.

use super::Teller;
use crate::Estimate;
use crate::cost::CostFacts;
use crate::words::{bounds, list, number};

/// As many variants beside the cheapest are told with their cost.
const OTHERS_TOLD: usize = 3;

impl Teller<'_> {
    /// Which variant is cheapest for its work, each at the step where it is; of steps that are unlike
    /// work, at each of them. One sentence for each currency.
    pub(super) fn cheapest(&self) -> Vec<String> {
        let mut currencies: Vec<&str> = Vec::new();
        for facts in &self.findings.cost {
            let currency = facts.price_per_hour.as_ref().map(|price| price.currency.as_str());
            currencies.extend(currency.filter(|currency| !currencies.contains(currency)));
        }
        let is_own = |facts: &&CostFacts| self.findings.steps[facts.step].own.is_some();
        let mut told = Vec::new();
        for currency in currencies {
            let has_it = |facts: &&CostFacts| {
                facts.price_per_hour.as_ref().is_some_and(|price| price.currency == currency)
            };
            let priced: Vec<&CostFacts> = self.findings.cost.iter().filter(has_it).collect();
            if priced.iter().any(is_own) {
                for step in 0..self.findings.steps.len() {
                    let here = priced.iter().filter(|facts| facts.step == step).copied();
                    told.extend(self.cheapest_of(here, currency));
                }
            } else {
                told.extend(self.cheapest_of(priced.into_iter(), currency));
            }
        }
        told
    }

    fn cheapest_of<'a>(
        &self,
        priced: impl Iterator<Item = &'a CostFacts>,
        currency: &str,
    ) -> Option<String> {
        // Of each variant the step at which it is cheapest.
        let mut best: Vec<(&CostFacts, &Estimate)> = Vec::new();
        for facts in priced {
            let Some(money) = &facts.money_per_million else { continue };
            match best.iter_mut().find(|(own, _)| own.variant == facts.variant) {
                Some(own) if money.value < own.1.value => *own = (facts, money),
                Some(_) => {}
                None => best.push((facts, money)),
            }
        }
        best.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        let (&(first, least), others) = best.split_first()?;
        let cost = |(facts, money): &(&CostFacts, &Estimate)| {
            let bounds = bounds(money, self.findings.confidence, number);
            let step = self.step(facts.step);
            format!("{} {currency} at {step} ({bounds})", number(money.value))
        };
        let name = self.name(first.variant);
        let what = "a million transactions cost";
        if others.is_empty() {
            return Some(format!("On {name} {what} {}.", cost(&(first, least))));
        }
        let is_apart = |other: &Estimate| least.high.zip(other.low).is_some_and(|(a, b)| a < b);
        let tied: Vec<&str> = others
            .iter()
            .filter(|(_, money)| !is_apart(money))
            .map(|(facts, _)| self.name(facts.variant))
            .collect();
        let claim = match tied.len() {
            0 => format!("{name} is cheapest for its work"),
            n if n == others.len() => {
                format!("No variant is told to be cheapest for its work; {name} cost least")
            }
            _ => format!("{name} and {} are cheapest, and not told apart", list(&tied)),
        };
        let told: Vec<String> = others
            .iter()
            .take(OTHERS_TOLD)
            .map(|other| format!("{} on {}", cost(other), self.name(other.0.variant)))
            .collect();
        let more = if others.len() > OTHERS_TOLD { "; more in the tables" } else { "" };
        Some(format!("{claim}: {what} {} on {name}, {}{more}.", cost(&(first, least)), list(&told)))
    }
}
