//! The sentence on money: which variant is cheapest.

use super::{AnswerWriter, At, Standing};
use crate::cost::CostFacts;
use crate::words::{list, number};
use crate::{Estimate, metrics};

const OTHERS_NAMED: usize = 2;

impl AnswerWriter<'_> {
    /// Each variant at its cheapest step, or the last if steps differ in work. A sentence for each
    /// currency and workload: millions of transactions are comparable only within one.
    pub(super) fn cheapest(&self) -> Vec<String> {
        let mut currencies: Vec<&str> = Vec::new();
        for facts in &self.findings.cost {
            let currency = facts.price_per_hour.as_ref().map(|price| price.currency.as_str());
            currencies.extend(currency.filter(|currency| !currencies.contains(currency)));
        }
        let has_own = self.findings.steps.iter().any(|step| step.own.is_some());
        let last = self.findings.steps.len().saturating_sub(1);
        let works = match self.works() {
            works if works.is_empty() => vec![(0..self.findings.variants.len()).collect()],
            works => works.into_iter().map(|work| work.variants).collect::<Vec<Vec<usize>>>(),
        };
        let of = |(variants, currency): (&Vec<usize>, &str)| {
            let is_it = |facts: &&CostFacts| {
                let price = facts.price_per_hour.as_ref();
                price.is_some_and(|price| price.currency == currency)
                    && variants.contains(&facts.variant)
                    && (!has_own || facts.step == last)
            };
            self.cheapest_of(self.findings.cost.iter().filter(is_it), currency)
        };
        let pairs = works.iter().flat_map(|work| currencies.iter().map(move |one| (work, *one)));
        pairs.filter_map(of).collect()
    }

    fn cheapest_of<'a>(
        &self,
        priced: impl Iterator<Item = &'a CostFacts>,
        currency: &str,
    ) -> Option<String> {
        let priced: Vec<&CostFacts> = priced.collect();
        // Cheapest step of each variant.
        let mut best: Vec<(&CostFacts, &Estimate)> = Vec::new();
        for &facts in &priced {
            let Some(money) = &facts.money_per_million else { continue };
            match best.iter_mut().find(|(own, _)| own.variant == facts.variant) {
                Some(own) if money.value < own.1.value => *own = (facts, money),
                Some(_) => {}
                None => best.push((facts, money)),
            }
        }
        best.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        let (&(first, least), others) = best.split_first()?;
        let (name, at) = (self.name(first.variant), self.at(first.step));
        let price = format!("{} {currency} per million transactions {at}", number(least.value));
        if others.is_empty() {
            return Some(format!("{name} costs {price}."));
        }
        let standings: Vec<Standing> =
            others.iter().map(|(other, _)| self.cost_standing(first, other, &priced)).collect();
        let named = |wanted: Standing| -> Vec<&str> {
            let them = others.iter().zip(&standings).filter(|(_, standing)| **standing == wanted);
            them.map(|((facts, _), _)| self.name(facts.variant)).collect()
        };
        let (single, tied) = (named(Standing::Single), named(Standing::Tied));
        let others_named: Vec<String> = others
            .iter()
            .take(OTHERS_NAMED)
            .map(|(facts, money)| format!("{} {}", self.name(facts.variant), number(money.value)))
            .collect();
        let others_named = list(&others_named);
        if !single.is_empty() {
            let what = match single.len() == others.len() {
                true => "variants".to_owned(),
                false => list(&single),
            };
            return Some(format!(
                "One repetition cannot rank {what} by cost: {name} measured cheapest, {price}; \
                 {others_named}."
            ));
        }
        Some(match tied.len() {
            0 => format!("{name} is cheapest: {price}; {others_named}."),
            n if n == others.len() => {
                format!("Undecided which is cheapest: {name} measured {price}; {others_named}.")
            }
            n => {
                let tied = if n <= OTHERS_NAMED { list(&tied) } else { format!("{n} others") };
                format!(
                    "Undecided which is cheapest: {name} measured {price}, not shown to be cheaper than {tied}."
                )
            }
        })
    }

    /// Whether `other` is dearer at all its steps. With equal prices this compares throughputs.
    fn cost_standing(&self, first: &CostFacts, other: &CostFacts, all: &[&CostFacts]) -> Standing {
        // Without work there is none for money.
        let is_of = |facts: &&&CostFacts, variant: usize| {
            facts.variant == variant && facts.money_per_million.is_some()
        };
        let of = |variant: usize| all.iter().filter(move |facts| is_of(facts, variant));
        let at = |facts: &CostFacts| {
            let price = facts.price_per_hour.as_ref()?.amount;
            Some(At { variant: facts.variant, step: facts.step, log_factor: -price.ln() })
        };
        let Some(best) = at(first) else { return Standing::Tied };
        let theirs: Vec<At> = of(other.variant).filter_map(|facts| at(facts)).collect();
        let n_choices = of(first.variant).count();
        self.ranker.stand_against(metrics::THROUGHPUT, (best, n_choices), &theirs)
    }
}
