//! The headline of several variants: which is best. "Is fastest" needs a best mean clearly ahead of
//! all others and better than the baseline; else the rivals are named. Also of each load, of each contest,
//! and of steps that do different work.

use super::grammar::{MORE_REPETITIONS as MORE, Said, is_duration};
use super::ranking::{Ranked, Standing};
use super::{AnswerWriter, NAMED_MOST};
use crate::insert_benchmark::InsertBenchmarkCell;
use crate::numbers::{EffectStyle, Unit};
use crate::words::{begin, capital, distinct, grouped, joined, list, loads, share, size};
use crate::{Claim, Comparison, Direction, MetricId, Verdict, metrics};

/// Parts of the headline; of more, winners are counted.
const PARTS_MOST: usize = 3;

const MAIN_STEPS: usize = 3;

const UNDECIDED: &str = "undecided";

const NO_DIFFERENCE: &str = "no difference";

/// Of several loads, at each of which the same would have to be shown.
const NO_SINGLE: &str = "no single best shown";

pub(super) const OTHERS_NAMED: usize = 2;

/// Loads whose values are named.
const LOADS_NAMED: usize = 2;

/// Variants with one baseline: the best is sought for each, never across them.
pub(super) struct Contest {
    /// The levels that only they share.
    pub(super) name: String,
    pub(super) variants: Vec<usize>,
}

#[derive(PartialEq)]
enum Outcome {
    /// By the levels that distinguish it.
    Best(String),
    /// The first of several variants is not ahead of all others: what is said of them, and of two the
    /// levels that they do not share.
    Open(&'static str, Option<String>),
    /// There is one repetition, which ranks nothing.
    Single,
}

/// How the others stand against the first, and the words for it.
pub(super) struct Race<'a> {
    pub(super) others: Vec<(usize, Standing)>,
    /// `fastest`, `faster`, `slower`.
    pub(super) words: [&'a str; 3],
    /// After a blank; empty if `had` has it.
    pub(super) place: &'a str,
    /// `b had the highest throughput (1,310 transactions/s)`.
    pub(super) had: &'a str,
}

impl AnswerWriter<'_> {
    pub(super) fn best_of_several(&self) -> Said {
        if let Some(text) = self.best_by_step().or_else(|| self.best_by_contest()) {
            return text;
        }
        let (metric, steps) = self.main_metric_and_steps();
        match steps.as_slice() {
            [only] => self.best_at(metric, *only),
            several => self.best_over_loads(metric, several),
        }
    }

    fn best_at(&self, metric: MetricId, step: usize) -> Said {
        let ranked = self.ranker.rank(metric, &[step]);
        let Some((best, others)) = ranked.split_first() else {
            return format!("No variant committed transactions {}.", self.at(step)).into();
        };
        let (name, value) = (self.name(best.variant), self.value_named(metric, &best.mean));
        let race = Race {
            others: standings(&ranked),
            words: match metric {
                metrics::THROUGHPUT => ["fastest", "faster", "slower"],
                _ => ["best", "better", "worse"],
            },
            place: &format!(" {}", self.at(step)),
            had: &format!(
                "{name} had the {} {} ({value})",
                self.extreme(metric),
                self.title(metric)
            ),
        };
        let text = self.unless_ahead(&race);
        let text = text.unwrap_or_else(|| self.winner(&ranked, metric, step));
        Said::of(others.iter().filter_map(|other| other.claim.clone()), text)
    }

    /// Each load has its own best. That one is the best at all of them needs no correction; at some, that for the
    /// number of loads (Bonferroni).
    fn best_over_loads(&self, metric: MetricId, steps: &[usize]) -> Said {
        let of_all = self.best_at_each(metric, steps, 1);
        let (outcomes, claims) = match of_all.0.iter().all(|(one, _)| *one == of_all.0[0].0) {
            true => of_all,
            false => self.best_at_each(metric, steps, steps.len()),
        };
        let (n_all, all) = (steps.len(), self.all_steps(steps.len()));
        let is_uniform =
            outcomes.len() == n_all && outcomes.iter().all(|(one, _)| *one == outcomes[0].0);
        let uniform = match outcomes.first() {
            None => Some(format!("No variant committed transactions at {all}.")),
            Some((Outcome::Best(name), _)) if is_uniform => {
                let values = match n_all <= LOADS_NAMED {
                    true => format!(": {}", list(outcomes.iter().map(|(_, place)| place))),
                    false => String::new(),
                };
                Some(format!("{name} {} at {all}{values}.", self.is_best(metric)))
            }
            Some((Outcome::Open(UNDECIDED, _), _)) if is_uniform => {
                let best = if metric == metrics::THROUGHPUT { "fastest" } else { "best" };
                Some(format!("Undecided which is {best} at {all}."))
            }
            Some((Outcome::Open(NO_DIFFERENCE, _), _)) if is_uniform => {
                let threshold = share(self.findings.threshold);
                Some(format!(
                    "No winner at {all}: none of the others differs from the best by more than {threshold}."
                ))
            }
            Some(_) => None,
        };
        let text = uniform.unwrap_or_else(|| {
            let noun = self.findings.step_noun();
            let at = |names: &[String]| match names.len() {
                n if n == n_all => format!("at {all}"),
                n if n > NAMED_MOST => format!("at {n} of {n_all} {noun}s"),
                _ => format!("at {}", loads(names)),
            };
            let told = told(outcomes, &self.is_best(metric), (&at, "in the tables below"));
            let names = self.findings.variants.iter().map(|variant| variant.name.as_str());
            match told.unwrap_or_default() {
                (text, true) => format!("{text}. {MORE}."),
                (text, false) => format!("{}.", begin(&text, names)),
            }
        });
        Said::of(claims, text)
    }

    /// What is said of each load, with its name and, of few, the value of the best there.
    fn best_at_each(
        &self,
        metric: MetricId,
        steps: &[usize],
        n_places: usize,
    ) -> (Vec<(Outcome, String)>, Vec<Claim>) {
        let all: Vec<usize> = (0..self.findings.variants.len()).collect();
        let mut claims = Vec::new();
        let at_step = |step: &usize| {
            let ranked = self.ranker.rank_of(&all, (metric, &[*step]), n_places);
            claims.extend(ranked.iter().filter_map(|other| other.claim.clone()));
            let name = |variant: usize| self.name(variant).to_owned();
            let outcome = self.outcome(&ranked, (metric, &[*step]), &all, &name)?;
            let first = ranked.first()?;
            let outcome = match outcome {
                Outcome::Best(_) if !self.is_better_at(first.variant, *step) => {
                    Outcome::Open(UNDECIDED, None)
                }
                outcome => outcome,
            };
            let place = match outcome {
                Outcome::Best(_) if steps.len() <= LOADS_NAMED => {
                    format!("{} ({})", self.step(*step), self.value_named(metric, &first.mean))
                }
                _ => self.step(*step),
            };
            Some((outcome, place))
        };
        let outcomes = steps.iter().filter_map(at_step).collect();
        (outcomes, claims)
    }

    /// What is said of the first of several, unless it is ahead of all others.
    pub(super) fn unless_ahead(&self, race: &Race<'_>) -> Option<String> {
        let Race { others, words: [best, better, worse], place, had } = race;
        let of = |standings: &[Standing]| -> Vec<usize> {
            let such = others.iter().filter(|(_, standing)| standings.contains(standing));
            such.map(|(variant, _)| *variant).collect()
        };
        let (tied, single) = (of(&[Standing::Same, Standing::Tied]), of(&[Standing::Single]));
        // Of single tests, which show that all are behind, but not each that is named among others.
        let behind = match others.len() - tied.len() - single.len() {
            0 => String::new(),
            1 => format!("; the other measured {worse}"),
            n => format!("; the remaining {n} measured {worse}"),
        };
        if !single.is_empty() {
            let single = match single.len() == others.len() {
                true => "variants".to_owned(),
                false => self.named(&single, NAMED_MOST),
            };
            return Some(format!(
                "One repetition cannot rank {single}{place}: {had}{behind}. {MORE}."
            ));
        }
        if tied.is_empty() {
            return None;
        }
        if others.iter().all(|(_, standing)| *standing == Standing::Same) {
            let threshold = share(self.findings.threshold);
            let others = match others.as_slice() {
                [(only, _)] => format!("{} does not differ", self.name(*only)),
                others => format!("none of the other {} differs", others.len()),
            };
            return Some(format!(
                "No winner{place}: {had}, but {others} by more than {threshold}."
            ));
        }
        let tied = self.named(&tied, NAMED_MOST);
        Some(format!(
            "Undecided which is {best}{place}: {had}, not shown to be {better} than {tied}{behind}."
        ))
    }

    fn winner(&self, ranked: &[Ranked], metric: MetricId, step: usize) -> String {
        let (best, steps) = (&ranked[0], &[step][..]);
        let (name, value) = (self.name(best.variant), self.value_named(metric, &best.mean));
        let is_best = match self.is_better_at(best.variant, step) {
            true => self.is_best(metric),
            false => format!("has the {} mean {}", self.extreme(metric), self.title(metric)),
        };
        // Its baseline; for a baseline the next variant. The line below has the interval.
        let baseline = self.findings.variants[best.variant].baseline;
        let other = baseline.or_else(|| ranked.get(1).map(|next| next.variant));
        let ahead = other.and_then(|other| {
            let Claim { relative, .. } =
                self.ranker.against((best.variant, other), metric, steps)?;
            let other = self.name(other);
            let style = EffectStyle::of([&relative]);
            Some(match style {
                EffectStyle::Ratio => format!(", {} that of {other}", style.show(relative.value)),
                EffectStyle::Percent if baseline.is_none() => {
                    // Relative to the baseline, as the comparisons below.
                    let next = (ranked[1].variant, best.variant);
                    let next = self.ranker.against(next, metric, steps)?.relative.value;
                    let word = if next > 0.0 { "higher" } else { "lower" };
                    format!("; next is {other}, {} {word}", size(next))
                }
                EffectStyle::Percent => {
                    let word = if relative.value > 0.0 { "more" } else { "less" };
                    format!(", {} {word} than {other}", size(relative.value))
                }
            })
        });
        format!("{name} {is_best} {}: {value}{}.", self.at(step), ahead.unwrap_or_default())
    }

    /// By its comparison with its baseline; if it is the baseline, those of its rivals.
    fn is_better_at(&self, best: usize, step: usize) -> bool {
        let is_main = |c: &&Comparison| c.step == step && c.metric == self.main_metric(step);
        let all = || self.findings.comparisons.iter().filter(is_main);
        all().filter(|c| c.variant == best).all(|c| c.verdict == Verdict::Better)
            && all().filter(|c| c.baseline == best).all(|c| c.verdict == Verdict::Worse)
    }

    fn is_best(&self, metric: MetricId) -> String {
        match metric {
            metrics::THROUGHPUT => "is fastest".to_owned(),
            metrics::RATE_AT_LIMIT => "sustains the highest rate".to_owned(),
            metrics::CLIENTS_AT_LIMIT => "sustains the most clients".to_owned(),
            other => format!("has the {} {}", self.extreme(other), self.title(other)),
        }
    }

    fn extreme(&self, metric: MetricId) -> &'static str {
        let metric = self.findings.metrics.get(metric);
        match (metric.better, is_duration(metric)) {
            (Direction::Higher, _) => "highest",
            (_, true) => "shortest",
            (_, false) => "lowest",
        }
    }

    /// In the study's order; none with one baseline, or if nothing varied distinguishes them.
    pub(super) fn contests(&self) -> Vec<Contest> {
        let variants = self.findings.variants.iter().enumerate();
        let groups = grouped(variants.map(|(idx, facts)| (facts.baseline.unwrap_or(idx), idx)));
        if groups.len() < 2 {
            return Vec::new();
        }
        let contest = |(_, variants): (usize, Vec<usize>)| {
            let name = self.common_levels(&variants)?;
            Some(Contest { name, variants })
        };
        groups.into_iter().map(contest).collect::<Option<_>>().unwrap_or_default()
    }

    /// Contests with a workload each; none if some share one.
    pub(super) fn works(&self) -> Vec<Contest> {
        let contests = self.contests();
        let works = distinct(contests.iter().map(|contest| {
            let facts = &self.findings.variants[contest.variants[0]];
            (&facts.workload, &facts.options)
        }));
        if works.len() == contests.len() { contests } else { Vec::new() }
    }

    /// As in names: levels that these variants share and some other lacks.
    fn common_levels(&self, own: &[usize]) -> Option<String> {
        let all = &self.findings.variants;
        let has = |idx: usize, level: &(String, String)| all[idx].levels.contains(level);
        let is_common = |level: &&(String, String)| {
            own.iter().all(|idx| has(*idx, level)) && (0..all.len()).any(|idx| !has(idx, level))
        };
        let levels = joined(all[own[0]].levels.iter().filter(is_common).map(shown), " · ");
        (!levels.is_empty()).then_some(levels)
    }

    /// By the levels that differ within its contest.
    fn within(&self, variant: usize, contest: &Contest) -> String {
        let all = &self.findings.variants;
        let differs = |(factor, level): &&(String, String)| {
            contest.variants.iter().any(|idx| {
                all[*idx].levels.iter().any(|(other, theirs)| other == factor && theirs != level)
            })
        };
        let own = joined(all[variant].levels.iter().filter(differs).map(shown), " · ");
        if own.is_empty() { self.name(variant).to_owned() } else { own }
    }

    /// `None` for a single contest, or if nothing is ranked.
    fn best_by_contest(&self) -> Option<Said> {
        let contests = self.contests();
        let (metric, steps) = self.main_metric_and_steps();
        let place = match steps.as_slice() {
            [only] => self.at(*only),
            several => format!("at {}", self.all_steps(several.len())),
        };
        let mut claims = Vec::new();
        let outcomes = contests.iter().filter_map(|contest| {
            let name = |variant: usize| self.within(variant, contest);
            let at_step = |step: &usize| {
                let place = (metric, &[*step][..]);
                let ranked = self.ranker.rank_of(&contest.variants, place, 1);
                claims.extend(ranked.iter().filter_map(|other| other.claim.clone()));
                self.outcome(&ranked, place, &contest.variants, &name)
            };
            let each: Vec<Outcome> = steps.iter().filter_map(at_step).collect();
            let is_uniform = each.len() == steps.len() && each.iter().all(|one| *one == each[0]);
            let outcome = each.into_iter().next()?;
            let outcome = if is_uniform { outcome } else { Outcome::Open(NO_SINGLE, None) };
            Some((outcome, contest.name.clone()))
        });
        let outcomes = outcomes.collect();
        let (on, noun) = match self.works().is_empty() {
            true => ("with", "combinations"),
            false => ("on", "workloads"),
        };
        let on = |names: &[String]| match names.len() {
            n if n > NAMED_MOST => format!("{on} {n} of {} {noun}", contests.len()),
            _ => format!("{on} {}", list(names)),
        };
        let (text, is_single) = told(outcomes, &self.is_best(metric), (&on, "below"))?;
        let text = match is_single {
            true => format!("{text} {place}. {MORE}."),
            false => format!("{}, {text}.", capital(&place)),
        };
        Some(Said::of(claims, text))
    }

    /// `104k rows/s`: of the Insert Benchmark its queries, indexed or inserted rows; else transactions.
    fn own_rate(&self, variant: usize, step: usize) -> String {
        let is_it = |c: &&InsertBenchmarkCell| (c.variant, c.step) == (variant, step);
        let cell = self.findings.insert_benchmark.iter().find(is_it);
        let found = cell.and_then(|cell| {
            let queries = cell.queries.as_ref().map(|rate| (rate, "queries/s"));
            let indexed = cell.indexed.as_ref().map(|rate| (rate, "rows indexed/s"));
            let inserts = cell.inserts.as_ref().map(|rate| (rate, "rows/s"));
            queries.or(indexed).or(inserts)
        });
        let committed = || {
            let rate = self.cell(variant, step)?.metrics.get(&metrics::THROUGHPUT)?;
            Some((rate, "transactions/s"))
        };
        match found.or_else(committed) {
            Some((rate, unit)) => format!("{} {unit}", Unit::Count.show(rate.value)),
            None => "nothing committed".to_owned(),
        }
    }

    /// The Insert Benchmark's load, inserts with indexes and heaviest queries; else the first few.
    fn main_steps(&self) -> Vec<usize> {
        let steps = 0..self.findings.steps.len();
        let of = |step: usize| self.findings.insert_benchmark.iter().find(move |c| c.step == step);
        let is_query = |step: &usize| of(*step).is_some_and(|c| c.queries.is_some());
        let is_insert =
            |step: &usize| of(*step).is_some_and(|c| c.inserts.is_some() && c.queries.is_none());
        let inserts = steps.clone().filter(is_insert).take(2);
        let main: Vec<usize> = inserts.chain(steps.clone().rfind(is_query)).collect();
        if main.is_empty() { steps.take(MAIN_STEPS).collect() } else { main }
    }

    /// Whether several variants are compared over steps of different work.
    pub(super) fn has_own_steps(&self) -> bool {
        let steps = &self.findings.steps;
        let is_own = steps.len() > 1 && steps.iter().any(|step| step.own.is_some());
        is_own && !self.compared_variants().is_empty() && !self.is_mismatched()
    }

    /// The best at each of the main steps, with what it does there; `None` if steps are loads.
    fn best_by_step(&self) -> Option<Said> {
        if !self.has_own_steps() {
            return None;
        }
        let main = self.main_steps();
        let all: Vec<usize> = (0..self.findings.variants.len()).collect();
        let mut claims = Vec::new();
        let at_step = |step: &usize| {
            let metric = self.main_metric(*step);
            let ranked = self.ranker.rank(metric, &[*step]);
            claims.extend(ranked.iter().filter_map(|other| other.claim.clone()));
            let name = |variant: usize| self.name(variant).to_owned();
            let outcome = self.outcome(&ranked, (metric, &[*step]), &all, &name)?;
            let step = match outcome {
                Outcome::Best(_) => {
                    format!("{} ({})", self.step(*step), self.own_rate(ranked[0].variant, *step))
                }
                _ => self.step(*step),
            };
            Some((outcome, step))
        };
        let outcomes = main.iter().filter_map(at_step).collect();
        let at = |steps: &[String]| format!("at {}", list(steps));
        let (text, is_single) = told(outcomes, "is fastest", (&at, "in the tables below"))?;
        let names = self.findings.variants.iter().map(|variant| variant.name.as_str());
        let text = match () {
            () if is_single => format!("{text}. {MORE}."),
            () if main.len() < self.findings.steps.len() => format!("Of the main steps: {text}."),
            () => format!("{}.", begin(&text, names)),
        };
        Some(Said::of(claims, text))
    }

    /// Of one of several groups of variants, or of steps, each of which has its own best.
    fn outcome(
        &self,
        ranked: &[Ranked],
        (metric, steps): (MetricId, &[usize]),
        all: &[usize],
        name: &dyn Fn(usize) -> String,
    ) -> Option<Outcome> {
        let (first, others) = ranked.split_first()?;
        let has = |standing: Standing| others.iter().any(|other| other.standing == standing);
        let open = |call: &'static str| {
            let both = (all.len() == 2).then(|| list(all.iter().map(|variant| name(*variant))));
            Outcome::Open(call, both)
        };
        // A variant that commits nothing has no rank, but is behind; of one that was not measured, nothing is known.
        let n_least = || all.iter().map(|v| self.ranker.means(metric, *v, steps).len()).min();
        Some(match () {
            () if has(Standing::Tied) => open(UNDECIDED),
            () if others.iter().all(|other| other.standing == Standing::Same)
                && !others.is_empty() =>
            {
                open(NO_DIFFERENCE)
            }
            () if has(Standing::Same) => open("no winner"),
            () if has(Standing::Single) => Outcome::Single,
            () if !others.is_empty() => Outcome::Best(name(first.variant)),
            () if all.len() < 2 => return None,
            () => match n_least() {
                None | Some(0) => open(UNDECIDED),
                Some(1) => Outcome::Single,
                Some(_) => Outcome::Best(name(first.variant)),
            },
        })
    }

    /// One variant over steps of the workload, each by itself; `None` if a step is a load.
    pub(super) fn own_steps_of(&self, variant: usize) -> Option<String> {
        let cells = self.findings.cells.iter().filter(|cell| cell.variant == variant);
        let steps: Vec<usize> = cells.map(|cell| cell.step).collect();
        if steps.is_empty() || steps.iter().any(|s| self.findings.steps[*s].own.is_none()) {
            return None;
        }
        let main = self.main_steps().into_iter().filter(|step| steps.contains(step));
        let parts =
            list(main.map(|step| format!("{} {}", self.step(step), self.own_rate(variant, step))));
        Some(format!("{}: {parts}.", self.name(variant)))
    }
}

/// `pg is fastest on point and inserts; ch on sums`, the decided first, and whether it is only that one repetition
/// ranks nothing; none without outcomes.
fn told(
    outcomes: Vec<(Outcome, String)>,
    is_best: &str,
    (on, below): (&dyn Fn(&[String]) -> String, &str),
) -> Option<(String, bool)> {
    let mut outcomes = grouped(outcomes);
    outcomes.sort_by_key(|(outcome, _)| !matches!(outcome, Outcome::Best(_)));
    if let [(Outcome::Single, names)] = outcomes.as_slice() {
        return Some((format!("One repetition cannot rank variants {}", on(names)), true));
    }
    let part = |(nth, (outcome, names)): (usize, &(Outcome, Vec<String>))| {
        let names = on(names);
        match outcome {
            Outcome::Best(name) if nth == 0 => format!("{name} {is_best} {names}"),
            Outcome::Best(name) => format!("{name} {names}"),
            Outcome::Open(call, Some(pair)) => format!("{call} between {pair} {names}"),
            Outcome::Open(call, None) => format!("{call} {names}"),
            Outcome::Single => format!("one repetition cannot rank variants {names}"),
        }
    };
    let mut parts: Vec<String> = outcomes.iter().enumerate().map(part).collect();
    if parts.len() > PARTS_MOST {
        let n_more = parts.drain(PARTS_MOST - 1..).count();
        parts.push(format!("{n_more} more results {below}"));
    }
    (!parts.is_empty()).then(|| (parts.join("; "), false))
}

/// Of all but the first, with their variants.
pub(super) fn standings(ranked: &[Ranked]) -> Vec<(usize, Standing)> {
    ranked.iter().skip(1).map(|other| (other.variant, other.standing)).collect()
}

/// A level as names of variants have it: with the last part of its factor's name, unless it is a name itself.
fn shown((factor, level): &(String, String)) -> String {
    match factor.rsplit_once('.') {
        Some((_, key)) => format!("{key}={level}"),
        None => level.clone(),
    }
}
