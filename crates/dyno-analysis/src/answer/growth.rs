//! How throughput scales: with what is varied (shards, workers, threads) and with load, and where that
//! ends.

use dyno_units::Varied;

use super::best::Contest;
use super::grammar::Said;
use super::{AnswerWriter, At, NAMED_MOST};
use crate::numbers::{EffectStyle, Unit, interval};
use crate::scaling::{End, SPEED_UP, ScalingFacts, ScalingLoad, Turn};
use crate::statistics::{Call, Effect, calls_at};
use crate::words::{capital, count, joined, list, said, share};
use crate::{Claim, Comparison, Verdict, metrics};

const TURNS_UP: &str = "Turns up: from there to twice as many clients, response time grows faster than \
    the square root of the number of clients, in each repetition. Throughput may still rise.";

/// Of which each has a sentence.
const GROUPS_MOST: usize = 2;

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

/// Variants with one baseline.
struct Group<'a> {
    /// Empty if it is the only one.
    name: String,
    all: Vec<Grown<'a>>,
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

impl SpeedUp<'_> {
    /// At all loads, so that there is no rise.
    fn is_level(&self) -> bool {
        matches!(self.end, End::Level { from } if from == self.first.clients)
    }
}

impl AnswerWriter<'_> {
    /// Whether throughput at the last step grows faster than the one number that is varied, against the variant
    /// with the least of it, in each group with a baseline; none if not exactly one is varied there, the baseline is
    /// another variant, or the step is not judged by throughput.
    pub(super) fn linear(&self) -> Option<Said> {
        let (factor, groups) = self.grown_with_number()?;
        let what = |all: &[Grown<'_>]| {
            let verdicts = self.growths(all);
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
            format!("throughput is {what}")
        };
        Some(self.of_groups(&groups, &what))
    }

    /// What more of the one number that is varied brings, by the same comparisons.
    pub(super) fn grown(&self) -> Option<Said> {
        let (factor, groups) = self.grown_with_number()?;
        let first = groups.first()?.all.first().filter(|_| Varied::counts_members(factor))?;
        let place = match self.findings.steps.len() {
            1 => String::new(),
            _ => format!(" {}", self.at(first.comparison.step)),
        };
        let what = |all: &[Grown<'_>]| {
            let is_open = all.iter().all(|one| one.comparison.verdict == Verdict::Inconclusive);
            let least = all.first().map_or(0.0, |one| one.least);
            match is_open {
                true => format!(
                    "undecided whether throughput{place} grows with the number of {factor}, relative to {least}"
                ),
                false => format!("throughput{place} by number of {factor}, relative to {least}"),
            }
        };
        Some(self.of_groups(&groups, &what))
    }

    /// A sentence for each group; of several, with the numbers at the most.
    fn of_groups(&self, groups: &[Group<'_>], what: &dyn Fn(&[Grown<'_>]) -> String) -> Said {
        let sentence = |Group { name, all }: &Group<'_>| {
            let (with, named) = match groups.len() {
                1 => (String::new(), &all[..]),
                _ => (format!("with {name} "), &all[all.len().saturating_sub(1)..]),
            };
            capital(&format!("{with}{}: {}.", what(all), self.growth_in_numbers(named)))
        };
        let mut text = joined(groups.iter().take(GROUPS_MOST).map(sentence), " ");
        if groups.len() > GROUPS_MOST {
            text += &format!(" {} more in the tables.", groups.len() - GROUPS_MOST);
        }
        Said::of(groups.iter().flat_map(|group| &group.all).map(|one| one.comparison), text)
    }

    fn grown_with_number(&self) -> Option<(&str, Vec<Group<'_>>)> {
        let step = self.findings.steps.len().checked_sub(1)?;
        if self.main_metric(step) != metrics::THROUGHPUT || self.is_mismatched() {
            return None;
        }
        let mut contests = self.contests();
        if contests.is_empty() {
            let (name, variants) = (String::new(), (0..self.findings.variants.len()).collect());
            contests.push(Contest { name, variants });
        }
        let of = |Contest { name, variants }: Contest| {
            let (factor, all) = self.grown_in(&variants, step)?;
            Some((factor, Group { name, all }))
        };
        let groups: Vec<(&str, Group<'_>)> = contests.into_iter().map(of).collect::<Option<_>>()?;
        let factor = groups.first()?.0;
        let is_one = groups.iter().all(|(other, _)| *other == factor);
        is_one.then(|| (factor, groups.into_iter().map(|(_, group)| group).collect()))
    }

    /// Of variants with one baseline.
    fn grown_in(&self, group: &[usize], step: usize) -> Option<(&str, Vec<Grown<'_>>)> {
        let (factor, levels) = self.only_number(group)?;
        let level = |variant: usize| {
            let own = group.iter().position(|other| *other == variant)?;
            Some(levels[own])
        };
        let mut all = Vec::new();
        for variant in self.compared_variants() {
            let Some(own) = level(variant) else { continue };
            let comparisons = self.comparisons_of(variant, metrics::THROUGHPUT);
            let comparison = comparisons.into_iter().find(|c| c.step == step)?;
            let least = level(comparison.baseline)?;
            if least <= 0.0 || own <= least {
                return None;
            }
            all.push(Grown { level: own, least, comparison });
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

    /// The only factor that these variants differ in and the level of each, if they are numbers.
    fn only_number(&self, group: &[usize]) -> Option<(&str, Vec<f64>)> {
        let variants = &self.findings.variants;
        let level = |variant: usize, factor: &str| {
            let levels = variants[variant].levels.iter();
            levels.clone().find(|(name, _)| name == factor).map(|(_, level)| level.as_str())
        };
        let (first, others) = group.split_first()?;
        let differs = |factor: &&(String, String)| {
            others.iter().any(|v| level(*v, &factor.0) != Some(factor.1.as_str()))
        };
        let varied: Vec<&(String, String)> =
            variants[*first].levels.iter().filter(differs).collect();
        let [(factor, _)] = varied.as_slice() else { return None };
        let numbers = group.iter().map(|v| level(*v, factor)?.parse::<f64>().ok());
        let levels = numbers.collect::<Option<Vec<f64>>>()?;
        Some((factor.rsplit('.').next().unwrap_or(factor), levels))
    }

    /// `None` without at least three closed loads.
    pub(super) fn scaling(&self) -> Option<Said> {
        let mut all: Vec<SpeedUp<'_>> = self.all_speed_ups().collect();
        all.sort_by(|a, b| b.best.speed_up.total_cmp(&a.best.speed_up));
        let (first, others) = all.split_first()?;
        let show = |one: &SpeedUp<'_>| Unit::Ratio.show(one.best.speed_up);
        let name = self.name(first.variant);
        let loads = format!("{} to {} clients", first.first.clients, first.last.clients);
        if others.is_empty() {
            let scales = match first.end {
                _ if first.is_level() => "measured at most",
                End::Falls { .. } | End::NoRise | End::Unknown => "measured at most",
                _ => "scales to",
            };
            let (best, end) = (show(first), ends(first));
            let text = format!("{name} {scales} {best} from {loads}{end}.");
            return Some(Said::of(self.own_speed_up(first), text));
        }
        let part = |one: &SpeedUp<'_>| {
            format!("{} {}{}", self.name(one.variant), show(one), ends_in_short(one))
        };
        let (least, named) = match others {
            [.., last] if all.len() > NAMED_MOST => ("lowest: ", std::slice::from_ref(last)),
            few => ("", few),
        };
        let rest = joined(named.iter().map(part), "; ");
        let against = |other: &SpeedUp<'_>| self.further(first, other);
        let claims: Vec<Option<Claim>> = others.iter().map(against).collect();
        let is_ahead = |claim: &Claim| claim.verdict == Verdict::Better;
        let (best, end) = (show(first), ends_in_short(first));
        let text = match () {
            () if claims.iter().all(|claim| claim.as_ref().is_some_and(is_ahead)) => {
                format!("{name} scales furthest: {best} from {loads}{end}; {least}{rest}.")
            }
            () if claims.iter().flatten().any(|claim| claim.relative.n < 2) => format!(
                "One repetition cannot show which scales furthest: {name} measured {best} from {loads}; \
                 {least}{rest}."
            ),
            () => format!(
                "Undecided which scales furthest: {name} measured {best} from {loads}{end}; \
                 {least}{rest}."
            ),
        };
        Some(Said::of(claims.into_iter().flatten(), text))
    }

    /// Whose speed-up is larger, of two variants that each are at the best of their loads.
    fn further(&self, one: &SpeedUp<'_>, other: &SpeedUp<'_>) -> Option<Claim> {
        let by_block = |one: &SpeedUp<'_>| -> Vec<(u32, f64)> {
            let fewest = self.by_block(one.variant, one.first);
            let speed_up = |(block, most): (u32, f64)| {
                let least = fewest.iter().find(|(own, least)| *own == block && *least > 0.0)?;
                Some((block, most / least.1))
            };
            self.by_block(one.variant, one.best).into_iter().filter_map(speed_up).collect()
        };
        let chosen = ((one.variant, other.variant), one.n_choices);
        let both = (&by_block(one)[..], &by_block(other)[..]);
        let claim = self.ranker.claim_of_values(chosen, both, one.best.step)?;
        Some(Claim { metric: SPEED_UP, other_steps: vec![other.best.step], ..claim })
    }

    /// Throughput at the best load against that with the fewest clients; none if that is the best.
    fn own_speed_up(&self, one: &SpeedUp<'_>) -> Option<Claim> {
        if one.best.step == one.first.step {
            return None;
        }
        let chosen = ((one.variant, one.variant), one.n_choices);
        let most = self.by_block(one.variant, one.best);
        let both = (&most[..], &self.by_block(one.variant, one.first)[..]);
        let claim = self.ranker.claim_of_values(chosen, both, one.best.step)?;
        Some(Claim { other_steps: vec![one.first.step], ..claim })
    }

    fn by_block(&self, variant: usize, load: &ScalingLoad) -> Vec<(u32, f64)> {
        self.ranker.means(metrics::THROUGHPUT, variant, &[load.step])
    }

    fn all_speed_ups(&self) -> impl Iterator<Item = SpeedUp<'_>> {
        self.findings.scaling.iter().filter_map(move |facts| self.speed_up(facts))
    }

    fn speed_up<'a>(&self, facts: &'a ScalingFacts) -> Option<SpeedUp<'a>> {
        let best = facts.loads.iter().max_by(|a, b| a.speed_up.total_cmp(&b.speed_up))?;
        let (first, last) = (facts.loads.first()?, facts.loads.last()?);
        let n_choices = facts.loads.len() - 1;
        Some(SpeedUp { variant: facts.variant, best, first, last, n_choices, end: facts.end })
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
        let is_single_of = |facts: &ScalingFacts| {
            let estimate = facts.loads.last().and_then(|last| last.saturation_estimate.as_ref());
            estimate.is_some_and(|estimate| estimate.n < 2)
        };
        let is_single = !all.is_empty() && all.iter().all(is_single_of);
        let part = |(nth, facts): (usize, &ScalingFacts)| {
            let (first, last) = (facts.loads.first()?.clients, facts.loads.last()?);
            let (times, last) = (Unit::Ratio.show(last.saturation), last.clients);
            let once = match is_single_of(facts) && !is_single {
                true => ", by one repetition, which cannot show it",
                false => "",
            };
            let (turn, name) = (turn(facts), self.name(facts.variant));
            Some(match nth {
                _ if all.len() == 1 => format!(
                    "of {name} turns up {turn}: at {last} clients it is {times} that at {}",
                    count(first, "client")
                ),
                0 => {
                    format!(
                        "{turn} with {name} ({times} as long at {last} clients as at {first}{once})"
                    )
                }
                _ => format!("{turn} with {name} ({times}{once})"),
            })
        };
        let parts = list(all.iter().take(NAMED_MOST).enumerate().filter_map(part));
        let turns_up = if all.len() == 1 { "" } else { "turns up " };
        (!parts.is_empty()).then(|| match is_single {
            true => format!(
                "One repetition cannot show where response time turns up; measured: response time \
                 {turns_up}{parts}."
            ),
            false => format!("Response time {turns_up}{parts}."),
        })
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

    /// With intervals that allow for the choice of the best load.
    pub(super) fn speed_ups(&self) -> Option<String> {
        let all: Vec<SpeedUp<'_>> = self.all_speed_ups().collect();
        let style = EffectStyle::Ratio;
        let shown: Vec<(&SpeedUp<'_>, Claim)> =
            all.iter().filter_map(|one| Some((one, self.own_speed_up(one)?))).collect();
        let named = shown.iter().take(NAMED_MOST).filter_map(|(one, claim)| {
            let interval = style.interval(&claim.relative)?;
            Some(format!("{} {interval} at {} clients", self.name(one.variant), one.best.clients))
        });
        let what = match shown.iter().map(|(_, claim)| claim.relative.n).max()? {
            2 => "Speed-up in the two repetitions".to_owned(),
            _ => {
                let n_choices = all.iter().map(|one| one.n_choices).max().unwrap_or(0);
                let confidence = share(self.findings.confidence);
                format!("{confidence} CI of the speed-up, for the best of {n_choices} load levels")
            }
        };
        said(&what, &list(named))
    }
}

/// To follow `a scales to 3.00× from 1 to 16 clients`.
fn ends(one: &SpeedUp<'_>) -> String {
    match one.end {
        End::Level { .. } if one.is_level() => "; it is level at all of them".to_owned(),
        End::Rising => " and is still rising".to_owned(),
        End::Level { from } => format!(" and is level from {} on", count(from, "client")),
        End::Peak { from, to } if from == to => {
            format!(", peaks at {} and falls beyond", count(from, "client"))
        }
        End::Peak { from, to } => {
            format!(", peaks between {from} and {to} clients and falls beyond")
        }
        End::Falls { to } => format!(" and falls beyond {}", count(to, "client")),
        End::NoFurtherRise { from } => {
            format!("; no further rise is shown after {}", count(from, "client"))
        }
        End::NoRise => "; neither a rise nor a fall is shown".to_owned(),
        End::Unknown => {
            "; fewer than two repetitions have all load levels, so where that ends is not shown"
                .to_owned()
        }
    }
}

fn ends_in_short(one: &SpeedUp<'_>) -> String {
    match one.end {
        End::Level { .. } if one.is_level() => ", level at all loads".to_owned(),
        End::Rising => ", still rising".to_owned(),
        End::Level { from } => format!(", level from {from}"),
        End::Peak { from, to } if from == to => format!(", peak at {from}"),
        End::Peak { from, to } => format!(", peak between {from} and {to}"),
        End::Falls { to } => format!(", falling beyond {to}"),
        End::NoFurtherRise { from } => format!(", no rise shown beyond {from}"),
        End::NoRise => ", no rise shown".to_owned(),
        End::Unknown => String::new(),
    }
}
