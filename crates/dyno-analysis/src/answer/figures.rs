//! What a study asks for besides comparisons: figures of each variant, side by side.

use std::collections::BTreeSet;

use super::AnswerWriter;
use super::best::{OTHERS_NAMED, Race, standings};
use super::grammar::{Said, n_of};
use super::ranking::Standing;
use crate::attribution::AttributionFacts;
use crate::debt::DebtFacts;
use crate::kinds::KindCell;
use crate::numbers::{EffectStyle, value};
use crate::statistics::median;
use crate::time::{Steadiness, TimeFacts};
use crate::words::{count, joined, list, number, share};
use crate::{Cell, Claim, Estimate, MadeDips, MetricId, metrics, tpcc};

const NAMED_MOST: usize = 4;

const STEPS_SAID: usize = 2;

const READS: &str = "reads.data";
pub(super) const ON_DISK: MetricId = MetricId::new("data.on_disk");
pub(super) const SNAPSHOT: MetricId = MetricId::new("volume.snapshot_time");
pub(super) const CLONE: MetricId = MetricId::new("volume.clone_time");

impl AnswerWriter<'_> {
    /// `innodb 4×, postgresql 0.5×`, and `more` if there are too many.
    fn by_variant(&self, all: impl IntoIterator<Item = (usize, String)>, more: &str) -> String {
        let named = |(variant, figure): (usize, String)| format!("{} {figure}", self.name(variant));
        let named: Vec<String> = all.into_iter().map(named).collect();
        let more = if named.len() > NAMED_MOST { more } else { "" };
        format!("{}{more}", joined(named.iter().take(NAMED_MOST), ", "))
    }

    /// Share of seconds near each variant's median, at the heaviest load known for all.
    pub(super) fn evenness(&self) -> Option<String> {
        let score = |cell: &Cell| {
            let is_judged = |facts: &&TimeFacts| facts.steadiness != Steadiness::TooShort;
            let scores: Vec<f64> =
                cell.time.iter().filter(is_judged).map(|facts| facts.score).collect();
            let n = scores.len();
            (n > 0).then(|| (scores.iter().sum::<f64>() / n as f64, n as u32))
        };
        let of_step = |step: usize| -> Option<(usize, Vec<(usize, (f64, u32))>)> {
            let of = |variant| Some((variant, score(self.cell(variant, step)?)?));
            Some((step, (0..self.findings.variants.len()).map(of).collect::<Option<_>>()?))
        };
        let (step, mut all) = (0..self.findings.steps.len()).rev().find_map(of_step)?;
        all.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
        let n = n_of(all.iter().map(|(_, (_, n))| *n));
        let shares = all.into_iter().map(|(variant, (score, _))| (variant, share(score)));
        Some(format!(
            "Share of seconds within 10 % of the median throughput {}: {} ({n}).",
            self.at(step),
            self.by_variant(shares, "; the others in fewer")
        ))
    }

    /// At the heaviest load with known reads.
    pub(super) fn reads_of_the_disk(&self) -> Option<String> {
        let of_step = |step: usize| {
            let facts = self.findings.attribution.iter().filter(|facts| facts.step == step);
            let all: Vec<(usize, &Estimate)> = facts.filter_map(reads).collect();
            (!all.is_empty()).then_some((step, all))
        };
        let (step, all) = (0..self.findings.steps.len()).rev().find_map(of_step)?;
        let n = n_of(all.iter().map(|(_, reads)| reads.n));
        let reads = all.into_iter().map(|(variant, reads)| (variant, number(reads.value)));
        let (at, reads) = (self.at(step), self.by_variant(reads, ", …"));
        Some(format!("Data disk reads per transaction {at}: {reads} ({n})."))
    }

    /// Deferred work at the end of the last known step, over the level that counts as caught up.
    pub(super) fn fallen_behind(&self) -> Option<String> {
        let gauges = || self.findings.debt.iter().filter(|facts| facts.gauge);
        let step = gauges().map(|facts| facts.step).max()?;
        let mut here: Vec<&DebtFacts> = gauges().filter(|facts| facts.step == step).collect();
        here.sort_by(|a, b| b.at_end.value.total_cmp(&a.at_end.value));
        let n = n_of(here.iter().map(|one| one.at_end.n));
        let levels = here.iter().map(|one| (one.variant, format!("{}×", number(one.at_end.value))));
        Some(format!(
            "Deferred work at the end ({}), relative to the level at which an engine counts as caught \
             up: {} ({n}).",
            self.step(step),
            self.by_variant(levels, ", …")
        ))
    }

    /// Which takes the least space on disk, by the rule for "is fastest": at the last step at which all variants
    /// have a size that have one anywhere, else at the last that tells, with those that are left out.
    pub(super) fn smallest(&self) -> Option<Said> {
        let sizes = self.findings.cells.iter().filter(|c| c.metrics.contains_key(&ON_DISK));
        let sized: BTreeSet<usize> = sizes.clone().map(|cell| cell.variant).collect();
        let has_all =
            |step: &usize| sizes.clone().filter(|c| c.step == *step).count() == sized.len();
        let all = sizes.clone().map(|cell| cell.step);
        let step = all.clone().filter(has_all).max().or_else(|| all.max())?;
        let ranked = self.ranker.rank(ON_DISK, &[step]);
        let (first, last) = (ranked.first()?, ranked.last()?);
        let (name, size) = (self.name(first.variant), value(&first.mean));
        let is_ranked = |variant: &usize| ranked.iter().any(|one| one.variant == *variant);
        let measured = self.findings.cells.iter().map(|cell| cell.variant);
        let without: BTreeSet<usize> = measured.filter(|variant| !is_ranked(variant)).collect();
        let without: Vec<usize> = without.into_iter().collect();
        let without = match without.is_empty() {
            true => String::new(),
            false => format!(
                " Without a size {}: {}.",
                self.at(step),
                self.named(&without, without.len())
            ),
        };
        if ranked.len() < 2 {
            let ci = self.ci_of(&first.mean);
            return Some(format!("The data of {name} take {size} on disk ({ci}).{without}").into());
        }
        let others = ranked.iter().skip(1).take(OTHERS_NAMED);
        let others =
            others.map(|other| format!("{} {}", self.name(other.variant), value(&other.mean)));
        let is_single = ranked.iter().any(|other| other.standing == Standing::Single);
        let race = Race {
            others: standings(&ranked),
            words: ["smallest", "smaller", "larger"],
            place: if is_single { " by size on disk" } else { " on disk" },
            had: &format!("{name} measured {size} ({})", list(others)),
        };
        let text = self.unless_ahead(&race).unwrap_or_else(|| {
            let baseline = self.findings.variants[first.variant].baseline;
            let other = ranked.iter().find(|other| Some(other.variant) == baseline).unwrap_or(last);
            let saved = 100.0 * (1.0 - first.mean.value / other.mean.value);
            let ci = other.claim.as_ref().map_or(String::new(), |Claim { relative, .. }| {
                format!("; {}", self.effect_ci(relative, EffectStyle::Percent))
            });
            let (other, reference) = (self.name(other.variant), value(&other.mean));
            let saved = crate::words::size(saved);
            format!(
                "{name} takes the least disk space: {size}, {saved} less than {other} ({reference}{ci})."
            )
        });
        Some(Said::of(ranked.iter().filter_map(|other| other.claim.clone()), text + &without))
    }

    pub(super) fn snapshots(&self) -> Option<String> {
        let range = |metric: MetricId| {
            let all = self.measured(metric);
            let ((fast, least), (slow, most)) = (all.first()?, all.last()?);
            let (least, most) = (value(least), value(most));
            Some(match least == most {
                true => least,
                false => format!("{least} ({}) to {most} ({})", self.name(*fast), self.name(*slow)),
            })
        };
        let (snapshot, clone) = (range(SNAPSHOT)?, range(CLONE)?);
        let all = [SNAPSHOT, CLONE].map(|metric| self.measured(metric)).concat();
        let n = n_of(all.iter().map(|(_, time)| time.n));
        Some(format!("A snapshot takes {snapshot}, a clone of it {clone} ({n})."))
    }

    /// Each variant's last measurement, the least value first.
    fn measured(&self, metric: MetricId) -> Vec<(usize, &Estimate)> {
        let of_variant = |variant: usize| {
            let has_it =
                |cell: &&Cell| cell.variant == variant && cell.metrics.contains_key(&metric);
            let last = self.findings.cells.iter().filter(has_it).max_by_key(|cell| cell.step);
            Some((variant, last?.metrics.get(&metric)?))
        };
        let mut all: Vec<(usize, &Estimate)> =
            (0..self.findings.variants.len()).filter_map(of_variant).collect();
        all.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        all
    }

    /// Throughput of TPC-C says little without the mode.
    pub(super) fn with_tpcc_mode(&self, headline: String) -> String {
        let variants = self.findings.variants.iter().filter(|v| v.workload == tpcc::WORKLOAD);
        let modes: BTreeSet<&str> = variants
            .flat_map(|variant| {
                let steps = self.findings.steps.iter();
                steps.map(move |step| tpcc::mode(&variant.options, step.rate.is_some()))
            })
            .collect();
        match modes.is_empty() {
            true => headline,
            false => format!("{} (TPC-C, {}).", headline.trim_end_matches('.'), list(modes)),
        }
    }

    pub(super) fn new_orders(&self) -> Option<String> {
        let (mut parts, mut names, mut ns) = (Vec::new(), Vec::new(), Vec::new());
        for (variant, facts) in self.findings.variants.iter().enumerate() {
            let is_it = |k: &&KindCell| {
                let is_asked = facts.workload == tpcc::WORKLOAD && k.kind == "new_order";
                is_asked && k.variant == variant
            };
            for cell in self.findings.kinds.iter().filter(is_it).take(STEPS_SAID) {
                let Some(rate) = cell.metrics.get(&metrics::THROUGHPUT) else { continue };
                let step = &self.findings.steps[cell.step];
                let is_open = step.rate.is_some();
                names.push(tpcc::new_orders_name(&facts.options, step.clients, is_open));
                let (value, at) = (number(60.0 * rate.value), self.at(cell.step));
                parts.push(format!("{} {value} {at}", self.name(variant)));
                ns.push(rate.n);
            }
        }
        names.dedup();
        let more = if parts.len() > 2 * STEPS_SAID { "; more in the tables" } else { "" };
        let parts = list(parts.iter().take(2 * STEPS_SAID));
        let what = || format!("{}; {}", list(names), n_of(ns.into_iter()));
        (!parts.is_empty()).then(|| format!("New orders per minute ({}): {parts}{more}.", what()))
    }

    /// Dips of a volume's limit that the study made: those found as stalls, their period and depth.
    pub(super) fn made_dips(&self) -> impl Iterator<Item = String> {
        let all = &self.findings.made_dips;
        let volumes: BTreeSet<&str> = all.iter().map(|dips| &*dips.volume).collect();
        volumes.into_iter().map(move |volume| {
            let of_volume: Vec<&MadeDips> = all.iter().filter(|d| d.volume == volume).collect();
            line(volume, &of_volume)
        })
    }
}

fn reads(facts: &AttributionFacts) -> Option<(usize, &Estimate)> {
    let used = facts.uses.iter().find(|used| used.name == READS)?;
    Some((facts.variant, used.per_transaction.as_ref()?))
}

pub(super) fn line(volume: &str, dips: &[&MadeDips]) -> String {
    let sum = |of: fn(&MadeDips) -> u32| dips.iter().map(|one| of(one)).sum::<u32>();
    let middle = |of: fn(&MadeDips) -> Option<f64>| {
        let values: Vec<f64> = dips.iter().filter_map(|one| of(one)).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    let made = count(u64::from(sum(|d| d.made)), "time");
    let mut text =
        format!("Volume {volume} was slowed down {made}: {} detected as stalls", sum(|d| d.found));
    if let (Some(found), Some(made)) = (middle(|d| d.found_period_s), middle(|d| d.period_s)) {
        text += &format!(", {found:.1} s apart (made {made:.1} s apart)");
    }
    if let Some(left) = middle(|d| d.level_left) {
        let left = number(left * 100.0);
        text += &format!("; throughput fell to {left} % of its level between them");
    }
    match sum(|d| d.others) {
        0 => text + "; no other stalls.",
        n => format!("{text}; {}.", count(u64::from(n), "other stall")),
    }
}
