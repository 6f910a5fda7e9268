//! How throughput scales: with what is varied (shards, workers, threads) and with load, and where that
//! ends.

use dyno_units::Varied;

use super::grammar::Said;
use super::{AnswerWriter, At, NAMED_MOST};
use crate::compare::Samples;
use crate::numbers::{EffectStyle, Unit, interval};
use crate::scaling::{End, ScalingFacts, ScalingLoad, Turn, end_of};
use crate::statistics::{Call, Effect, calls_at};
use crate::words::{count, joined, list, said, share};
use crate::{Comparison, Verdict, metrics};

const TURNS_UP: &str = "Turns up: from there to twice as many clients, response time grows faster than \
    the square root of the number of clients, in each repetition. Throughput may still rise.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// Also after correction for the number of levels.
    More,
    Less,
    Open,
}

struct Grown<'a> {
    level: f64,
    /// The baseline's level.
    least: f64,
    comparison: &'a Comparison,
}

struct SpeedUp<'a> {
    variant: usize,
    best: &'a ScalingLoad,
    first: &'a ScalingLoad,
    last: &'a ScalingLoad,
    /// Loads with more than the fewest clients.
    n_choices: usize,
    end: End,
}

impl AnswerWriter<'_> {
    /// Whether throughput at the last step grows faster than the one number that is varied, against the variant
    /// with the least of it; none if not exactly one is varied, the baseline is another variant, or the step is
    /// not judged by throughput.
    pub(super) fn linear(&self) -> Option<Said> {
        let (factor, all) = self.grown_with_number()?;
        let verdicts = self.growths(&all);
        let what = match verdicts.iter().position(|one| *one == Growth::More) {
            Some(first) if verdicts[first..].iter().any(|one| *one != Growth::More) => {
                format!("superlinear in {factor} at {}", all[first].level)
            }
            Some(0) => format!("superlinear in {factor}"),
            Some(first) => format!("superlinear in {factor} from {} upwards", all[first].level),
            None if verdicts.iter().all(|one| *one == Growth::Less) => {
                format!("sublinear in {factor}")
            }
            None => format!("not shown to be superlinear in {factor}"),
        };
        let text = format!("Throughput is {what}: {}.", self.growth_in_numbers(&all));
        Some(Said::of(all.iter().map(|one| one.comparison), text))
    }

    /// What more of the one number that is varied brings, by the same comparisons.
    pub(super) fn grown(&self) -> Option<Said> {
        let (factor, all) = self.grown_with_number()?;
        let first = all.first().filter(|_| Varied::counts_members(factor))?;
        let place = match self.findings.steps.len() {
            1 => String::new(),
            _ => format!(" {}", self.at(first.comparison.step)),
        };
        let is_open = all.iter().all(|one| one.comparison.verdict == Verdict::Inconclusive);
        let (numbers, least) = (self.growth_in_numbers(&all), first.least);
        let text = match is_open {
            true => format!(
                "Undecided whether throughput{place} grows with the number of {factor}, relative to \
                 {least}: {numbers}."
            ),
            false => {
                format!("Throughput{place} by number of {factor}, relative to {least}: {numbers}.")
            }
        };
        Some(Said::of(all.iter().map(|one| one.comparison), text))
    }

    fn grown_with_number(&self) -> Option<(&str, Vec<Grown<'_>>)> {
        let (factor, levels) = self.only_number()?;
        let step = self.findings.steps.len().checked_sub(1)?;
        if self.main_metric(step) != metrics::THROUGHPUT || self.is_mismatched() {
            return None;
        }
        let mut all = Vec::new();
        for variant in self.compared_variants() {
            let comparisons = self.comparisons_of(variant, metrics::THROUGHPUT);
            let comparison = comparisons.into_iter().find(|c| c.step == step)?;
            let (level, least) = (levels[variant], levels[comparison.baseline]);
            if least <= 0.0 || level <= least {
                return None;
            }
            all.push(Grown { level, least, comparison });
        }
        all.sort_by(|a, b| a.level.total_cmp(&b.level));
        (!all.is_empty()).then_some((factor, all))
    }

    /// `1.50× at 2 (95 % CI 1.48–1.52×), 2.99× at 4 (2.95–3.03×); n = 5`
    fn growth_in_numbers(&self, all: &[Grown<'_>]) -> String {
        let style = EffectStyle::of(all.iter().map(|one| &one.comparison.relative));
        let named = all.iter().skip(all.len().saturating_sub(NAMED_MOST)).enumerate();
        let parts = named.map(|(nth, one)| {
            let effect = &one.comparison.relative;
            let word = match (nth, effect.n) {
                (0, 2) => "two repetitions: ".to_owned(),
                (0, _) => format!("{} CI ", share(self.findings.confidence)),
                _ => String::new(),
            };
            let interval = style.interval(effect).map_or("no CI".to_owned(), |ci| word + &ci);
            format!("{} at {} ({interval})", style.show(effect.value), one.level)
        });
        let n = all.iter().map(|one| one.comparison.relative.n).min().unwrap_or(0);
        format!("{}; n = {n}", joined(parts, ", "))
    }

    /// "Superlinear at N" is corrected for the number of levels (Holm); "sublinear" is said of all
    /// together, without correction.
    fn growths(&self, all: &[Grown<'_>]) -> Vec<Growth> {
        let rule = self.ranker.levels.rule;
        let beyond_linear = |one: &Grown<'_>| -> (Option<Effect>, f64) {
            let Comparison { variant, baseline, step, .. } = *one.comparison;
            let at = |variant, log_factor| At { variant, step, log_factor };
            let multiple = one.level / one.least;
            let (ours, theirs) = (at(variant, -multiple.ln()), at(baseline, 0.0));
            let effect = self.ranker.log_ratio(metrics::THROUGHPUT, ours, theirs);
            (effect, self.ranker.strict_level((variant, baseline)))
        };
        let effects: Vec<(Option<Effect>, f64)> = all.iter().map(beyond_linear).collect();
        let together = calls_at(&effects, rule).into_iter().map(|(call, _)| call);
        let growth = |(call, effect): (Call, &(Option<Effect>, f64))| {
            let alone = calls_at(std::slice::from_ref(effect), rule);
            match (call, alone.as_slice()) {
                (Call::Higher, _) => Growth::More,
                (_, [(Call::Lower, _)]) => Growth::Less,
                _ => Growth::Open,
            }
        };
        together.zip(&effects).map(growth).collect()
    }

    /// The only varied factor and each variant's level, if they are numbers.
    fn only_number(&self) -> Option<(&str, Vec<f64>)> {
        let variants = &self.findings.variants;
        let level = |variant: usize, factor: &str| {
            let levels = variants[variant].levels.iter();
            levels.clone().find(|(name, _)| name == factor).map(|(_, level)| level.as_str())
        };
        let first = variants.first()?;
        let differs = |factor: &&(String, String)| {
            (1..variants.len()).any(|v| level(v, &factor.0) != Some(factor.1.as_str()))
        };
        let varied: Vec<&(String, String)> = first.levels.iter().filter(differs).collect();
        let [(factor, _)] = varied.as_slice() else { return None };
        let numbers = (0..variants.len()).map(|v| level(v, factor)?.parse::<f64>().ok());
        let levels = numbers.collect::<Option<Vec<f64>>>()?;
        Some((factor.rsplit('.').next().unwrap_or(factor), levels))
    }

    /// `None` without at least three closed loads.
    pub(super) fn scaling(&self) -> Option<String> {
        let mut all: Vec<SpeedUp<'_>> = self.all_speed_ups().collect();
        all.sort_by(|a, b| b.best.speed_up.total_cmp(&a.best.speed_up));
        let (first, others) = all.split_first()?;
        let show = |one: &SpeedUp<'_>| Unit::Ratio.show(one.best.speed_up);
        let name = self.name(first.variant);
        let loads = format!("{} to {} clients", first.first.clients, first.last.clients);
        if others.is_empty() {
            let best = show(first);
            return Some(match first.end {
                End::Rising => format!("{name} scales to {best} from {loads} and is still rising."),
                End::Level(clients) => {
                    format!("{name} scales to {best} and levels off at {clients} clients.")
                }
                End::Peak(clients) => {
                    format!("{name} scales to {best}, peaks at {clients} clients and falls beyond.")
                }
            });
        }
        let end = |one: &SpeedUp<'_>| match one.end {
            End::Rising => ", still rising".to_owned(),
            End::Level(clients) => format!(", flat from {clients}"),
            End::Peak(clients) => format!(", peak at {clients}"),
        };
        let part =
            |one: &SpeedUp<'_>| format!("{} {}{}", self.name(one.variant), show(one), end(one));
        let (least, named) = match others {
            [.., last] if all.len() > NAMED_MOST => ("lowest: ", std::slice::from_ref(last)),
            few => ("", few),
        };
        let rest = joined(named.iter().map(part), "; ");
        Some(match others.iter().all(|other| self.scales_further(first, other)) {
            true => format!(
                "{name} scales furthest: {} from {loads}{}; {least}{rest}.",
                show(first),
                end(first)
            ),
            false => format!(
                "Undecided which scales furthest: {name} measured {} from {loads}{}; {least}{rest}.",
                show(first),
                end(first)
            ),
        })
    }

    fn scales_further(&self, one: &SpeedUp<'_>, other: &SpeedUp<'_>) -> bool {
        let by_block = |one: &SpeedUp<'_>| -> Vec<(u32, f64)> {
            let at = |load: &ScalingLoad| {
                self.ranker.means(metrics::THROUGHPUT, one.variant, &[load.step])
            };
            let fewest = at(one.first);
            let speed_up = |(block, most): (u32, f64)| {
                let least = fewest.iter().find(|(own, least)| *own == block && *least > 0.0)?;
                Some((block, most / least.1))
            };
            at(one.best).into_iter().filter_map(speed_up).collect()
        };
        let (ours, theirs) = (by_block(one), by_block(other));
        let samples = Samples::new(&ours, &theirs, self.ranker.joined.interleaved);
        let pair = (one.variant, other.variant);
        samples
            .log_effect(0.0)
            .is_some_and(|effect| self.ranker.is_ahead(effect, pair, one.n_choices))
    }

    fn all_speed_ups(&self) -> impl Iterator<Item = SpeedUp<'_>> {
        self.findings.scaling.iter().filter_map(move |facts| self.speed_up(facts))
    }

    fn speed_up<'a>(&self, facts: &'a ScalingFacts) -> Option<SpeedUp<'a>> {
        let best = facts.loads.iter().max_by(|a, b| a.speed_up.total_cmp(&b.speed_up))?;
        let (first, last) = (facts.loads.first()?, facts.loads.last()?);
        let loads: Vec<(u64, f64)> =
            facts.loads.iter().map(|load| (load.clients, load.speed_up)).collect();
        let end = end_of(&loads, self.findings.threshold)?;
        let n_choices = facts.loads.len() - 1;
        Some(SpeedUp { variant: facts.variant, best, first, last, n_choices, end })
    }

    /// Where response time turns up, over the fewest clients'; `None` below three closed loads.
    pub(super) fn saturation(&self) -> Option<String> {
        let all = &self.findings.scaling;
        let turn = |facts: &ScalingFacts| match facts.turn {
            Turn::Never => "at no load level".to_owned(),
            Turn::At { from, to } if from == to => format!("at {}", count(from, "client")),
            Turn::At { from, to } => format!("between {from} and {to} clients"),
            Turn::Unclear => "at a load level that differs between repetitions".to_owned(),
        };
        let part = |(nth, facts): (usize, &ScalingFacts)| {
            let (first, last) = (facts.loads.first()?.clients, facts.loads.last()?);
            let (times, last) = (Unit::Ratio.show(last.saturation), last.clients);
            let (turn, name) = (turn(facts), self.name(facts.variant));
            Some(match nth {
                _ if all.len() == 1 => format!(
                    "of {name} turns up {turn}: at {last} clients it is {times} that at {}",
                    count(first, "client")
                ),
                0 => {
                    format!("{turn} with {name} ({times} as long at {last} clients as at {first})")
                }
                _ => format!("{turn} with {name} ({times})"),
            })
        };
        let parts = list(all.iter().take(NAMED_MOST).enumerate().filter_map(part));
        let turns_up = if all.len() == 1 { "" } else { "turns up " };
        (!parts.is_empty()).then(|| format!("Response time {turns_up}{parts}."))
    }

    pub(super) fn saturation_note(&self) -> String {
        let with_interval = |facts: &ScalingFacts| {
            let last = facts.loads.last()?.saturation_estimate.as_ref().filter(|e| e.n > 2)?;
            Some(format!("{} with {}", interval(last)?, self.name(facts.variant)))
        };
        let all = self.findings.scaling.iter().take(NAMED_MOST);
        let what = format!(" {} CI of the multiple", share(self.findings.confidence));
        let intervals = said(&what, &list(all.filter_map(with_interval)));
        format!("{TURNS_UP}{}", intervals.unwrap_or_default())
    }

    pub(super) fn speed_ups(&self) -> Option<String> {
        let all: Vec<SpeedUp<'_>> = self.all_speed_ups().collect();
        let named = |one: &SpeedUp<'_>| {
            let interval = interval(one.best.speed_up_estimate.as_ref()?)?;
            Some(format!("{} {interval} at {} clients", self.name(one.variant), one.best.clients))
        };
        let shown = all.iter().filter_map(|one| one.best.speed_up_estimate.as_ref());
        let what = match shown.map(|estimate| estimate.n).max() {
            Some(2) => "Speed-up in the two repetitions".to_owned(),
            _ => format!("{} CI of the speed-up", share(self.findings.confidence)),
        };
        said(&what, &list(all.iter().take(NAMED_MOST).filter_map(named)))
    }
}
