//! Which variant does its work for the least money: the difference to the next, with its interval.

use super::best::{OTHERS_NAMED, Race};
use super::grammar::Said;
use super::{AnswerWriter, At, Standing};
use crate::cost::{CostFacts, MONEY_PER_MILLION};
use crate::numbers::{EffectStyle, as_ratio, bounds, is_too_wide};
use crate::words::{distinct, number, share, size};
use crate::{Claim, Estimate, metrics};

impl AnswerWriter<'_> {
    /// Each variant at its cheapest step, or the last if steps differ in work. A sentence for each
    /// currency and workload: millions of transactions are comparable only within one.
    pub(super) fn cheapest(&self) -> Vec<Said> {
        let price =
            |facts: &CostFacts| facts.price_per_hour.as_ref().map(|one| one.currency.clone());
        let currencies = distinct(self.findings.cost.iter().filter_map(price));
        let has_own = self.findings.steps.iter().any(|step| step.own.is_some());
        let last = self.findings.steps.len().saturating_sub(1);
        let mut works: Vec<Vec<usize>> =
            self.works().into_iter().map(|work| work.variants).collect();
        if works.is_empty() {
            works.push((0..self.findings.variants.len()).collect());
        }
        let of = |(variants, currency): (&Vec<usize>, &String)| {
            let is_it = |facts: &&CostFacts| {
                price(facts).as_ref() == Some(currency)
                    && variants.contains(&facts.variant)
                    && (!has_own || facts.step == last)
            };
            let priced: Vec<&CostFacts> = self.findings.cost.iter().filter(is_it).collect();
            self.cheapest_of(&priced, currency)
        };
        let pairs = works.iter().flat_map(|work| currencies.iter().map(move |one| (work, one)));
        pairs.filter_map(of).collect()
    }

    fn cheapest_of(&self, priced: &[&CostFacts], currency: &str) -> Option<Said> {
        let best = cheapest_steps(priced);
        let (&(first, least), others) = best.split_first()?;
        let (name, at) = (self.name(first.variant), self.at(first.step));
        let unit = format!("{currency} per million transactions {at}");
        let price = format!("{} {unit}", number(least.value));
        let Some((&(next, dearer), rest)) = others.split_first() else {
            return Some(format!("{name} costs {price} ({}).", self.ci_of(least)).into());
        };
        let (mut standings, mut claims) = (Vec::new(), Vec::new());
        for (other, _) in others {
            let found = self.cost_claims(first, other, priced);
            let standing = found.as_deref().map_or(Standing::Tied, Standing::of_all);
            standings.push((other.variant, standing));
            claims.extend(found.into_iter().flatten().filter_map(in_money));
        }
        let open = match (claims.as_slice(), standings.as_slice()) {
            ([only], [(_, Standing::Tied)]) => self.may_cost(only),
            _ => None,
        };
        if let Some(amount) = open {
            let (least, dearer) = (number(least.value), number(dearer.value));
            let text = format!(
                "Undecided which is cheapest: {name} may cost {amount}: {least} and {dearer} {unit}."
            );
            return Some(Said::of(claims, text));
        }
        let is_next =
            |claim: &&Claim| claim.other == next.variant && claim.other_steps == [next.step];
        let to_next = claims.iter().find(is_next);
        let less = to_next.map_or(String::new(), |claim| self.less_than_next(claim, dearer));
        let rest = rest.iter().take(OTHERS_NAMED - 1);
        let rest: String = rest
            .map(|(of, money)| format!("; {} {}", self.name(of.variant), number(money.value)))
            .collect();
        let beside = format!("; {} {}{rest}", self.name(next.variant), number(dearer.value));
        let is_single = standings.iter().any(|(_, standing)| *standing == Standing::Single);
        let race = Race {
            others: standings,
            words: ["cheapest", "cheaper", "dearer"],
            place: if is_single { " by cost" } else { "" },
            had: &format!("{name} measured {price}{beside}"),
        };
        let text = self.unless_ahead(&race);
        let text = text.unwrap_or_else(|| format!("{name} is cheapest: {price}{less}{rest}."));
        Some(Said::of(claims, text))
    }

    /// `, 33.3 % less than a (0.277; 95 % CI −34.2 to −32.4 %, n = 5)`
    fn less_than_next(&self, claim: &Claim, dearer: &Estimate) -> String {
        let (relative, next) = (&claim.relative, self.name(claim.other));
        let style = EffectStyle::of([relative]);
        let amount = match style {
            EffectStyle::Ratio => format!("{} that of", style.show(relative.value)),
            EffectStyle::Percent => format!("{} less than", size(relative.value)),
        };
        let dearer = number(dearer.value);
        let ci = self.effect_ci(relative, style);
        format!(", {amount} {next} ({dearer}; {ci}{})", self.choice(claim))
    }

    /// `5.9 % less or 0.6 % more than a (95 % CI, n = 3)`; none without an interval around nothing.
    fn may_cost(&self, claim: &Claim) -> Option<String> {
        let relative = &claim.relative;
        let (low, high) = bounds(relative)?;
        let is_around = low < 0.0 && high > 0.0 && !is_too_wide(low, high);
        let is_percent = EffectStyle::of([relative]) == EffectStyle::Percent;
        (is_around && is_percent).then(|| {
            let (less, more, next) = (size(low), size(high), self.name(claim.other));
            let (confidence, n) = (share(self.findings.confidence), relative.n);
            let choice = self.choice(claim);
            format!("{less} less or {more} more than {next} ({confidence} CI, n = {n}{choice})")
        })
    }

    /// Work for money of `first` against that of `other` at all its steps; `None` without work somewhere. With
    /// equal prices this compares throughputs.
    fn cost_claims(
        &self,
        first: &CostFacts,
        other: &CostFacts,
        all: &[&CostFacts],
    ) -> Option<Vec<Claim>> {
        // Without work there is none for money.
        let of = |variant: usize| {
            let with_work = all.iter().filter(|facts| facts.money_per_million.is_some());
            with_work.filter(move |facts| facts.variant == variant)
        };
        let at = |facts: &CostFacts| {
            let price = facts.price_per_hour.as_ref()?.amount;
            Some(At { variant: facts.variant, step: facts.step, log_factor: -price.ln() })
        };
        let n_choices = of(first.variant).count();
        let theirs: Vec<At> = of(other.variant).filter_map(|facts| at(facts)).collect();
        self.ranker.claims_across(metrics::THROUGHPUT, (at(first)?, n_choices), &theirs)
    }
}

/// Of each variant, the cheapest first.
fn cheapest_steps<'a>(priced: &[&'a CostFacts]) -> Vec<(&'a CostFacts, &'a Estimate)> {
    let mut best: Vec<(&CostFacts, &Estimate)> = Vec::new();
    for &facts in priced {
        let Some(money) = &facts.money_per_million else { continue };
        match best.iter_mut().find(|(own, _)| own.variant == facts.variant) {
            Some(own) if money.value < own.1.value => *own = (facts, money),
            Some(_) => {}
            None => best.push((facts, money)),
        }
    }
    best.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    best
}

/// From work for money to money for work; none where a trial did no work.
fn in_money(claim: Claim) -> Option<Claim> {
    let inverse = |percent: f64| (1.0 / as_ratio(percent) - 1.0) * 100.0;
    let work = claim.relative;
    let relative = Estimate {
        value: inverse(work.value),
        low: work.high.map(inverse),
        high: work.low.map(inverse),
        min: inverse(work.max),
        max: inverse(work.min),
        values: work.values.iter().map(|value| inverse(*value)).collect(),
        ..work
    };
    let is_known = relative.values.iter().all(|value| value.is_finite());
    is_known.then_some(Claim { metric: MONEY_PER_MILLION, relative, ..claim })
}
