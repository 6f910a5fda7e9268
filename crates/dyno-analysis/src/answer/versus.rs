//! Headlines of comparisons with a baseline: of one variant, of all, of the worst, of a second run.

use dyno_units::Question;

use super::grammar::{IS, MAY_BE, MORE_REPETITIONS, Said, distance, is_nothing};
use super::{AnswerWriter, LINES_MOST};
use crate::numbers::{EffectStyle, bounds, is_too_wide};
use crate::words::{capital, count, joined, share, size};
use crate::{Comparison, Verdict, metrics};

/// Decided comparisons that are named, for each direction, and variants beside the worst.
const NAMED_MOST: usize = 2;

impl AnswerWriter<'_> {
    pub(super) fn one_against_its_baseline(&self, variant: usize) -> Said {
        let all = self.main_comparisons(variant);
        let text = match all.first() {
            Some(first) => self.against_its_baseline(first, &all),
            None => format!("{} cannot be compared with its baseline.", self.name(variant)),
        };
        Said::of(all, text)
    }

    fn against_its_baseline(&self, first: &Comparison, all: &[&Comparison]) -> String {
        let at = match all {
            [only] => self.at(only.step),
            several => format!("at {}", self.all_steps(several.len())),
        };
        if let Some(text) = self.alike_or_open(all, &at) {
            return text;
        }
        let (ours, theirs) = (self.name(first.variant), self.name(first.baseline));
        let is_uniform = all.iter().all(|c| c.verdict == first.verdict);
        match (all, first.metric) {
            ([only], _) if is_nothing(only) => {
                format!("{ours} committed nothing {at} in any of {} trials.", only.relative.n)
            }
            ([only], _) => format!("{}: {} {at}.", self.claim(only), self.both_values(only)),
            (several, _) if several.iter().all(|c| is_nothing(c)) => {
                format!("{ours} {}.", self.over_loads(several, false))
            }
            (several, metrics::THROUGHPUT) if is_uniform => {
                let than = format!(" than {theirs} at ");
                format!("{ours} is {}.", self.over_loads(several, false).replacen(" at ", &than, 1))
            }
            (several, metrics::THROUGHPUT) => {
                format!("Compared with {theirs}, {ours} is {}.", self.over_loads(several, false))
            }
            (several, metric) => {
                let (title, text) = (capital(self.title(metric)), self.over_loads(several, false));
                format!("{title} of {ours} relative to {theirs}: {text}.")
            }
        }
    }

    /// That two variants are alike, or that nothing is decided; none unless all of these comparisons say the same.
    fn alike_or_open(&self, comparisons: &[&Comparison], place: &str) -> Option<String> {
        let first = comparisons[0];
        let (ours, theirs) = (self.name(first.variant), self.name(first.baseline));
        let in_metric = match first.metric {
            metrics::THROUGHPUT => String::new(),
            other => format!(" in {}", self.title(other)),
        };
        let measured = |before: &str, behind: &str| match comparisons {
            [only] => {
                let effect = self.findings.effect_style(only.metric).show(only.relative.value);
                format!("{before}measured: {effect}{behind}")
            }
            _ => String::new(),
        };
        Some(match first.verdict {
            verdict if comparisons.iter().any(|c| c.verdict != verdict) => return None,
            Verdict::Better | Verdict::Worse => return None,
            Verdict::NoDifference => {
                let threshold = share(self.findings.threshold);
                format!(
                    "No difference: {ours} and {theirs} are within {threshold} of each other{in_metric} \
                     {place}."
                )
            }
            Verdict::Inconclusive if comparisons.iter().all(|c| c.relative.n < 2) => format!(
                "One repetition cannot show a difference between {ours} and {theirs}{}{in_metric} {place}.",
                measured("; ", "")
            ),
            Verdict::Inconclusive => {
                let what = match self.may_be(comparisons) {
                    Some(may_be) => format!(": {may_be}"),
                    None => format!(" whether {ours} and {theirs} differ{in_metric}"),
                };
                // The outermost ends are not those of each place.
                match comparisons {
                    [_] => format!("Undecided{what} {place}{}.", measured(" (", ")")),
                    _ => format!("Undecided {place}{what}."),
                }
            }
        })
    }

    pub(super) fn main_comparisons(&self, variant: usize) -> Vec<&Comparison> {
        self.mains(variant).next().unwrap_or_default()
    }

    /// By metric, where steps are judged by several.
    pub(super) fn mains(&self, variant: usize) -> impl Iterator<Item = Vec<&Comparison>> {
        let of_metric = move |metric| {
            let mut comparisons = self.comparisons_of(variant, metric);
            comparisons.retain(|c| self.main_metric(c.step) == metric);
            comparisons
        };
        self.always_said().map(of_metric).filter(|all| !all.is_empty())
    }

    /// `b may be 54.0 % slower or 182 % faster than a`: what the intervals of undecided comparisons of one
    /// variant leave open, of several the outermost ends. None unless each of them has an interval around zero:
    /// one beside zero, undecided only by the correction for the number of comparisons, would read as decided.
    fn may_be(&self, comparisons: &[&Comparison]) -> Option<String> {
        let around_zero =
            |c: &&Comparison| bounds(&c.relative).filter(|(low, high)| *low < 0.0 && *high > 0.0);
        let ends: Vec<(f64, f64)> = comparisons.iter().map(around_zero).collect::<Option<_>>()?;
        let low = ends.iter().map(|(low, _)| *low).min_by(f64::total_cmp)?;
        let high = ends.iter().map(|(_, high)| *high).max_by(f64::total_cmp)?;
        let style = self.style_of(comparisons);
        let up_to = if comparisons.len() > 1 { "up to " } else { "" };
        let amount = |[more, less]: [&'static str; 2]| match style {
            EffectStyle::Ratio => format!("{} to {}", style.show(low), style.show(high)),
            EffectStyle::Percent => {
                format!("{up_to}{} {less} or {} {more}", size(low), size(high))
            }
        };
        (!is_too_wide(low, high)).then(|| self.clause(comparisons[0], MAY_BE, &amount))
    }

    /// `b is 2.31× as fast as a`, `b is 10.3 % slower than a`.
    fn claim(&self, c: &Comparison) -> String {
        let (style, effect) = (self.findings.effect_style(c.metric), c.relative.value);
        let amount = |[more, less]: [&'static str; 2]| match style {
            EffectStyle::Ratio => style.show(effect),
            EffectStyle::Percent => {
                format!("{} {}", size(effect), if effect > 0.0 { more } else { less })
            }
        };
        self.clause(c, IS, &amount)
    }

    /// Whether any variant is worse than its baseline, or differs from it: what all comparisons with baselines
    /// say together; none for one variant, and for runs that did different work. The correction for the number of
    /// comparisons is in their verdicts.
    pub(super) fn against_baselines(&self, variants: &[usize], question: Question) -> Option<Said> {
        if self.is_mismatched() {
            return None;
        }
        self.against_all(variants, question, None)
    }

    /// `of` are the baselines, if they have a name.
    fn against_all(
        &self,
        variants: &[usize],
        question: Question,
        of: Option<[&str; 2]>,
    ) -> Option<Said> {
        let is_main =
            |c: &&Comparison| variants.contains(&c.variant) && c.metric == self.main_metric(c.step);
        let all: Vec<&Comparison> = self.findings.comparisons.iter().filter(is_main).collect();
        let is_one = variants.len() < 2 && !self.has_own_steps();
        if is_one || all.len() < 2 {
            return None;
        }
        if all.iter().all(|c| c.relative.n < 2) {
            let text = format!("One repetition cannot show a difference. {MORE_REPETITIONS}.");
            return Some(Said::of(all, text));
        }
        let [of, than] =
            of.unwrap_or_else(|| match all.iter().all(|c| c.baseline == all[0].baseline) {
                true => [self.name(all[0].baseline); 2],
                false => ["its baseline"; 2],
            });
        let [is_better, is_worse] = match all.iter().all(|c| c.metric == metrics::THROUGHPUT) {
            true => ["faster", "slower"],
            false => ["better", "worse"],
        };
        let threshold = share(self.findings.threshold);
        let is_same = question == Question::Same;
        let n_of = |verdict: Verdict| all.iter().filter(|c| c.verdict == verdict).count();
        let (n_open, n_alike) = (n_of(Verdict::Inconclusive), n_of(Verdict::NoDifference));
        let part = |word: &str, n: usize| (n > 0).then(|| format!("{word} in {n}"));
        // Whether they differ is asked of those that do not, too.
        let alike = part("no difference", if is_same { n_alike } else { 0 });
        let parts = joined(part("undecided", n_open).into_iter().chain(alike), ", ");
        let open = match parts.is_empty() || n_alike == all.len() {
            true => String::new(),
            false => format!("; {parts} of {}", count(all.len() as u64, "comparison")),
        };
        let none = match (is_same, n_open) {
            (true, 0) => format!("No variant differs from {of} by more than {threshold}"),
            (true, _) => format!("No variant is shown to differ from {of}"),
            (false, 0) => format!("No variant is {is_worse} than {than} by more than {threshold}"),
            (false, _) => format!("No variant is shown to be {is_worse} than {than}"),
        };
        let worse = self.decided(&all, Verdict::Worse, is_worse);
        let text = match (worse, self.decided(&all, Verdict::Better, is_better)) {
            (None, None) => format!("{none}{open}."),
            (None, Some(better)) if is_same => format!("Relative to {of}, {better}{open}."),
            (None, Some(better)) => format!("{none}{open}; {better}."),
            (Some(worse), None) => format!("Relative to {of}, {worse}{open}."),
            (Some(worse), Some(better)) => format!("Relative to {of}, {worse}; {better}{open}."),
        };
        Some(Said::of(all, text))
    }

    /// `b is slower at 8 clients (0.910×, 95 % CI 0.880–0.940×, n = 5)`, the largest first; none if there are none.
    fn decided(&self, all: &[&Comparison], verdict: Verdict, word: &str) -> Option<String> {
        let mut all = all.to_vec();
        all.retain(|c| c.verdict == verdict);
        all.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
        let named = all.iter().take(NAMED_MOST).enumerate().map(|(nth, c)| {
            let (name, at) = (self.name(c.variant), self.at(c.step));
            if is_nothing(c) {
                return format!("{name} committed nothing {at}");
            }
            let style = self.findings.effect_style(c.metric);
            let interval = match nth {
                0 => self.effect_ci(&c.relative, style),
                _ => style.interval(&c.relative).unwrap_or_else(|| "no CI".to_owned()),
            };
            format!("{name} is {word} {at} ({}, {interval})", style.show(c.relative.value))
        });
        let more = match all.len().saturating_sub(NAMED_MOST) {
            0 => String::new(),
            n => format!(" and in {}", count(n as u64, "more comparison")),
        };
        (!all.is_empty()).then(|| format!("{}{more}", joined(named, ", ")))
    }

    /// Whether something beside the load blocks it: the variant that is worst against its baseline in the main
    /// metric of the last step, by how much, and which others are worse; `None` if none is.
    pub(super) fn blocked(&self) -> Option<Said> {
        let step = self.findings.steps.len().checked_sub(1)?;
        let of_variant = |variant: usize| {
            let all = self.main_comparisons(variant);
            all.into_iter().find(|c| c.step == step)
        };
        let mut all: Vec<&Comparison> =
            self.compared_variants().into_iter().filter_map(of_variant).collect();
        let is_worse = |c: &&&Comparison| c.verdict == Verdict::Worse;
        let by_distance = |a: &&&Comparison, b: &&&Comparison| distance(a).total_cmp(&distance(b));
        let Some(worst) = all.iter().filter(is_worse).max_by(by_distance).copied() else {
            return self.not_blocked();
        };
        let claims = all.clone();
        all.retain(|c| c.variant != worst.variant);
        let others = [
            (Verdict::Worse, "is also worse", "are also worse"),
            (Verdict::NoDifference, "makes no difference", "make no difference"),
            (Verdict::Inconclusive, "is undecided", "are undecided"),
            (Verdict::Better, "is better", "are better"),
        ];
        let others = others.iter().map(|(verdict, one, several)| {
            let of_verdict = all.iter().filter(|c| c.verdict == *verdict);
            let variants: Vec<usize> = of_verdict.map(|c| c.variant).collect();
            match variants.len() {
                0 => String::new(),
                1 => format!("; {} {one}", self.name(variants[0])),
                _ => format!("; {} {several}", self.named(&variants, NAMED_MOST)),
            }
        });
        let ci = self.effect_ci(&worst.relative, self.findings.effect_style(worst.metric));
        let text = format!("{} ({ci}){}.", self.claim(worst), others.collect::<String>());
        Some(Said::of(claims, text))
    }

    /// Where none is worse: whether that was decided; none where the usual sentence says it.
    fn not_blocked(&self) -> Option<Said> {
        let compared = self.compared_variants();
        let [only] = compared.as_slice() else {
            return self.against_baselines(&compared, Question::Worse);
        };
        let (name, mut said) = (self.name(*only), self.one_against_its_baseline(*only));
        said.text = match said.text.split_once(": ")? {
            ("Undecided", rest) => format!("Undecided whether {name} blocks the load: {rest}"),
            ("No difference", rest) => format!("{name} does not block the load: {rest}"),
            _ => return None,
        };
        Some(said)
    }

    /// Headline and lines, if several variants of a second run are compared with the first.
    pub(super) fn against_the_first_run(&self) -> Option<(Said, Vec<String>)> {
        let n_first = self.ranker.joined.n_first;
        let mut second = self.compared_variants();
        second.retain(|variant| *variant >= n_first);
        let is_second = n_first > 0 && second.len() > 1;
        let of = Some(["the first run", "in the first run"]);
        let mut said = is_second.then(|| self.against_all(&second, Question::Worse, of))??;
        if self.is_mismatched() {
            said.text = format!("These runs did different work. {}", said.text);
        }
        Some((said, self.of_several(&second, LINES_MOST)))
    }
}
