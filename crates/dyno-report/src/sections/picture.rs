//! The picture of the first screen: what the answer speaks of. Its metrics, its pairs and its steps come from the
//! answer's claims; where the answer claims nothing, they are those that steps are judged by.

use dyno_analysis::{Claim, Comparison, Estimate, MetricId, metrics};
use dyno_units::Question;

use super::{loads, parts};
use crate::chart::for_all_screens;
use crate::chart::marks::{Mark, MarksChart, Style};
use crate::chart::rows::RowsChart;
use crate::chart::scale::Measure;
use crate::document::{Block, Figure};
use crate::format::{self, Unit};
use crate::markup::Markup;
use crate::view::{Place, View};
use crate::words;

/// Most rows of a picture.
const ROWS_MOST: usize = 16;

/// With more variants a picture of their effects and one of their values would fill the first screen.
const BOTH_MOST: usize = 6;

/// Metrics of an answer that are drawn.
const METRICS_MOST: usize = 2;

/// Letters and number of the names that stand at the ends of lines; others are in a key above them.
const LETTERS_MOST: usize = 16;
const NAMES_MOST: usize = 8;

const LINES_WIDE: f64 = 640.0;

const WIDE: f64 = 720.0;

/// Most values that a picture's label reads out; the tables have them all.
const SPOKEN_MOST: usize = 40;

/// The picture; nothing where there is one value and nothing to compare it with.
pub(crate) fn draw(view: &View<'_>) -> Vec<Block> {
    asked(view).into_iter().flat_map(|asked| asked.draw(view)).collect()
}

/// A metric that the answer speaks of, with what it claims of it.
struct Asked<'a> {
    metric: MetricId,
    claims: Vec<&'a Claim>,
    steps: Vec<usize>,
}

fn asked<'a>(view: &View<'a>) -> Vec<Asked<'a>> {
    let (claims, steps) = (&view.findings.answer.claims, &view.findings.steps);
    let claims: Vec<&Claim> = claims.iter().filter(|claim| view.knows(claim)).collect();
    // No cell has the cost or the speed-up.
    let claimed = claims.iter().map(|claim| claim.metric).filter(|metric| view.has(*metric));
    let claimed = words::distinct(claimed);
    let judged = words::distinct(steps.iter().map(|step| step.main_metric));
    let named = view.findings.answer.question.map(of_question).unwrap_or_default();
    let named = named.iter().copied();
    let named: Vec<MetricId> = named.filter(|metric| view.has(*metric)).collect();
    let metrics = [claimed, named, judged].into_iter().find(|metrics| !metrics.is_empty());
    let of = |metric: MetricId| {
        let claims: Vec<&Claim> = claims.iter().copied().filter(|c| c.metric == metric).collect();
        let is_its = |step: &usize| steps[*step].main_metric == metric;
        let own = words::sorted(claims.iter().flat_map(|claim| &claim.steps).copied());
        let judged: Vec<usize> = view.steps().filter(is_its).collect();
        let all = view.steps().collect();
        let steps = [own, judged, all].into_iter().find(|steps| !steps.is_empty());
        Asked { metric, claims, steps: steps.unwrap_or_default() }
    };
    metrics.unwrap_or_default().into_iter().take(METRICS_MOST).map(of).collect()
}

/// The metrics that a question is about, where its answer compares no variants.
fn of_question(question: Question) -> &'static [MetricId] {
    const SPACE: [MetricId; 1] = [MetricId::new("data.on_disk")];
    const SNAPSHOTS: [MetricId; 2] =
        [MetricId::new("volume.snapshot_time"), MetricId::new("volume.clone_time")];
    const RECOVERS: [MetricId; 2] = [MetricId::new("fault_away"), MetricId::new("fault_recovery")];
    match question {
        Question::Saturates => &[metrics::RESPONSE_MEAN, metrics::THROUGHPUT],
        Question::Space => &SPACE,
        Question::Snapshots => &SNAPSHOTS,
        Question::Recovers => &RECOVERS,
        _ => &[],
    }
}

impl Asked<'_> {
    fn draw(&self, view: &View<'_>) -> Vec<Block> {
        let all = &view.findings.steps;
        let is_load = |step: &usize| all[*step].own.is_none() && all[*step].search.is_none();
        // Of one load level among several all are shown: a reader sees whether the others agree.
        let is_by_load = all.len() > 1
            && view.steps().all(|step| is_load(&step))
            && all.iter().all(|step| step.main_metric == all[0].main_metric);
        if is_by_load {
            return by_load(view, self.metric).into_iter().collect();
        }
        let effects = self.effects(view);
        let n = effects.as_ref().map_or(0, |effects| effects.rows.len());
        let has_effects_only = n > BOTH_MOST && self.is_of_effects(view);
        let values = self.values(view).filter(|_| !has_effects_only);
        let is_left_out = n > BOTH_MOST && !has_effects_only && values.is_some();
        let effects = effects.filter(|_| !is_left_out);
        let effects = effects.and_then(|effects| effects.draw(view, self.metric));
        effects.into_iter().chain(values).collect()
    }

    /// Whether what was asked is how far others are from one, and not which is best.
    fn is_of_effects(&self, view: &View<'_>) -> bool {
        use Question::{Blocks, Durability, Same, Worse};
        let asked = view.findings.answer.question;
        asked.is_none_or(|question| matches!(question, Worse | Same | Durability | Blocks))
    }

    /// The effects that are relative to one variant, with which the answer compares the others.
    fn effects(&self, view: &View<'_>) -> Option<Effects> {
        let others = words::distinct(self.claims.iter().map(|claim| claim.other));
        let compared = view.places().filter(|(_, step)| self.steps.contains(step));
        let compared = compared.filter_map(|at| view.comparison(at, self.metric));
        let compared: Vec<&Comparison> = compared.collect();
        let against = match others[..] {
            [] => words::distinct(compared.iter().map(|c| c.baseline)),
            [one] => vec![one],
            _ => return None,
        };
        let other = view.findings.answer.against.or(match against[..] {
            [one] => Some(one),
            _ => None,
        });
        // Effects relative to one variant below a headline about another would be read as the headline's.
        if against.iter().any(|one| other.is_some_and(|other| *one != other)) {
            return None;
        }
        let is_compared = compared.iter().all(|c| Some(c.baseline) == other || other.is_none());
        let comparisons: Vec<Claim> = compared.into_iter().map(Claim::from).collect();
        let claims = || self.claims.iter().map(|claim| (*claim).clone()).collect();
        let mut rows = if is_compared && !comparisons.is_empty() { comparisons } else { claims() };
        if rows.len() > ROWS_MOST {
            rows = if self.claims.is_empty() { of_largest_step(rows) } else { claims() };
            rows.truncate(ROWS_MOST);
        }
        Some(Effects { rows, other })
    }

    fn values(&self, view: &View<'_>) -> Option<Block> {
        let metric = self.metric;
        let first_step = view.first_step();
        let step = match self.steps[..] {
            [only] => only,
            _ if self.steps.contains(&first_step) => first_step,
            [first, ..] => first,
            [] => return None,
        };
        let found = view.variants().map(|variant| (variant, step));
        let found = found.filter_map(|at| Some((at, view.estimate(at, metric)?)));
        let mut found: Vec<(Place, &Estimate)> = found.collect();
        if !view.is_factorial() {
            sort(view, metric, &mut found);
        }
        found.truncate(ROWS_MOST);
        let row = |(at, estimate): &(Place, &Estimate)| {
            (view.label(at.0).to_owned(), loads::mark(view, *at, estimate))
        };
        let rows: Vec<(String, Mark)> = found.iter().map(row).collect();
        let (_, first) = found.first().filter(|_| found.len() > 1)?;
        let unit = Unit::of(first);
        let is_log = loads::needs_log(&found, &unit);
        let title = format!("{}{}", view.heading_with_unit(metric), at_step(view, &[step]));
        let spoken: Vec<String> = rows.iter().map(|(_, mark)| mark.tip.clone()).collect();
        let scale = if is_log { ", log scale" } else { "" };
        let note = format!("{}{scale}; {}", better(view, metric), key(view, &rows));
        let measure = Measure::Value(unit);
        let label = format!("{title}. {}", spoken.join("; "));
        let chart = RowsChart { label, rows, measure, is_log, band: None, width: WIDE };
        Some(figure((title, note), chart.for_all_screens(loads::NARROW)))
    }
}

/// The baseline first, then the best.
fn sort(view: &View<'_>, metric: MetricId, found: &mut [(Place, &Estimate)]) {
    let sign = if view.is_more_better(metric) { -1.0 } else { 1.0 };
    found.sort_by(|(a, one), (b, other)| {
        let is_after = |at: &Place| !parts::is_baseline(view, at.0);
        let by_value = (sign * one.value).total_cmp(&(sign * other.value));
        is_after(a).cmp(&is_after(b)).then(by_value)
    });
}

/// Those of the step at which variants differ most.
fn of_largest_step(rows: Vec<Claim>) -> Vec<Claim> {
    let size = |claim: &Claim| format::as_ratio(claim.relative.value).max(1e-9).ln().abs();
    let largest = rows.iter().max_by(|a, b| size(a).total_cmp(&size(b)));
    let steps = largest.map_or(Vec::new(), |claim| claim.steps.clone());
    rows.into_iter().filter(|claim| claim.steps == steps).collect()
}

/// ` at 8 clients`, of one step among several.
fn at_step(view: &View<'_>, steps: &[usize]) -> String {
    match steps {
        [step] if view.findings.steps.len() > 1 => format!(" at {}", view.step(*step)),
        _ => String::new(),
    }
}

fn better(view: &View<'_>, metric: MetricId) -> &'static str {
    if view.is_more_better(metric) { "right is better" } else { "left is better" }
}

fn figure((title, note): (String, String), drawing: Markup) -> Block {
    Block::group("picture", vec![Figure::new(title, note, drawing).block()])
}

fn dots<'a>(marks: impl IntoIterator<Item = &'a Mark>) -> &'static str {
    match marks.into_iter().all(|mark| mark.dots.len() == 2) {
        true => "the two repetitions",
        false => "repetitions",
    }
}

fn key(view: &View<'_>, rows: &[(String, Mark)]) -> String {
    let has_line = rows.iter().any(|(_, mark)| mark.bounds.is_some());
    let line =
        if has_line { format!("; line: its {} CI", view.confidence()) } else { String::new() };
    format!("filled dot: mean{line}; hollow dots: {}", dots(rows.iter().map(|(_, mark)| mark)))
}

/// Values of all loads, with the names at the ends of the lines; above them where there are many.
fn by_load(view: &View<'_>, metric: MetricId) -> Option<Block> {
    let mark = |at: Place| Some(loads::mark(view, at, view.estimate(at, metric)?));
    let marks: Vec<Mark> = view.places().filter_map(mark).collect();
    let first = view.findings.cells.iter().find_map(|cell| cell.metrics.get(&metric))?;
    let axis = loads::step_axis(view);
    let title = format!("{} by {}", view.heading_with_unit(metric), axis.name);
    let bars = marks.iter().any(|mark| mark.bounds.is_some());
    let bars = if bars { format!("error bars: {} CI; ", view.confidence()) } else { String::new() };
    let found = view.places().filter_map(|at| Some((at, view.estimate(at, metric)?)));
    let is_log = loads::needs_log(&found.collect::<Vec<_>>(), &Unit::of(first));
    let scale = if is_log { "; log scale" } else { "" };
    let note = format!("{bars}hollow dots: {}{scale}", dots(&marks));
    let spoken: Vec<String> = marks.iter().take(SPOKEN_MOST).map(|mark| mark.tip.clone()).collect();
    let names: Vec<String> = view.variants().map(|v| view.label(v).to_owned()).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let is_short = longest <= LETTERS_MOST && (2..=NAMES_MOST).contains(&names.len());
    let mut chart = MarksChart {
        label: format!("{title}. {}", spoken.join("; ")),
        steps: axis.labels,
        places: axis.places,
        marks,
        measure: Measure::Value(Unit::of(first)),
        style: Style::Lines,
        is_log,
        band: None,
        curves: Vec::new(),
        names: if is_short { names } else { Vec::new() },
        across: axis.name.to_owned(),
        frame: loads::with_axis_name(LINES_WIDE, 284.0),
    };
    let mut drawn = |width: f64| {
        chart.frame = loads::with_axis_name(width, 284.0);
        if is_short {
            chart.frame.right -= longest as f64 * 6.6 + 18.0;
        }
        chart.svg()
    };
    let out = for_all_screens(&drawn(LINES_WIDE), &drawn(loads::NARROW));
    let above = (!is_short && view.variants().len() > 1).then(|| parts::names_above(view));
    let figure = Figure::new(title, note, out).block();
    Some(Block::group("picture", above.into_iter().chain([figure]).collect()))
}

/// Effects relative to one variant, or of each to its own baseline.
struct Effects {
    rows: Vec<Claim>,
    other: Option<usize>,
}

impl Effects {
    fn draw(mut self, view: &View<'_>, metric: MetricId) -> Option<Block> {
        // Nothing at all has no place among ratios.
        self.rows.retain(|claim| format::as_ratio(claim.relative.value) > 0.0);
        if !view.is_factorial() && self.rows.windows(2).all(|two| two[0].steps == two[1].steps) {
            let sign = if view.is_more_better(metric) { -1.0 } else { 1.0 };
            let effect = |claim: &Claim| sign * claim.relative.value;
            self.rows.sort_by(|a, b| effect(a).total_cmp(&effect(b)));
        }
        let first = self.rows.first()?;
        let is_one_step = self.rows.iter().all(|claim| claim.steps == first.steps);
        let style = view.effect_style(metric);
        let steps = |claim: &Claim| match claim.steps[..] {
            [step] => view.step(step).to_owned(),
            _ => format!("{} {}s", claim.steps.len(), view.findings.step_noun()),
        };
        let in_words = |claim: &Claim| {
            let interval = style.interval(&claim.relative);
            let interval = interval.map_or(String::new(), |interval| format!(" ({interval})"));
            let judged = view.judge((claim.variant, claim.other), metric, claim.verdict).word();
            let effect = style.show(claim.relative.value);
            format!(
                "{} at {}: {effect}{interval}, {judged}",
                view.variant(claim.variant),
                steps(claim)
            )
        };
        let row = |claim: &Claim| {
            let step = claim.steps.first().copied().unwrap_or(0);
            let mark = loads::mark(view, (claim.variant, step), &claim.relative);
            let mut mark = mark.map(format::as_ratio);
            mark.tip = format!("{}, n = {}", in_words(claim), claim.relative.n);
            let name = view.label(claim.variant);
            match is_one_step {
                true => (name.to_owned(), mark),
                false => (format!("{name} · {}", steps(claim)), mark),
            }
        };
        let rows: Vec<(String, Mark)> = self.rows.iter().map(row).collect();
        let spoken: Vec<String> = self.rows.iter().map(in_words).collect();
        let at = if is_one_step { at_step(view, &first.steps) } else { String::new() };
        let is_baseline = |other: usize| parts::is_baseline(view, other);
        let other = match self.other {
            Some(other) if !is_baseline(other) => view.variant(other).to_owned(),
            _ => loads::baseline(view),
        };
        let title = format!("{} relative to {other}{at}", view.heading(metric));
        let note = format!(
            "{}, log scale; {}; grey band: no difference (± {})",
            better(view, metric),
            key(view, &rows),
            view.threshold()
        );
        let chart = RowsChart {
            label: format!("{title}. {}", spoken.join("; ")),
            rows,
            measure: Measure::Effect(style),
            is_log: true,
            band: Some(loads::band(view)),
            width: WIDE,
        };
        Some(figure((title, note), chart.for_all_screens(loads::NARROW)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::html::shown;
    use crate::fixture;

    /// One load level, at which two variants are compared with a third.
    fn findings() -> dyno_analysis::Findings {
        let (mut findings, _) = fixture::three_variants();
        findings.steps.truncate(1);
        findings.cells.retain(|cell| cell.step == 0);
        findings.comparisons.retain(|c| c.step == 0);
        findings
    }

    #[test]
    fn every_number_of_a_claim_is_a_mark() {
        let mut findings = findings();
        let p95 = findings.comparisons.iter().find(|c| c.metric == metrics::RESPONSE_P95).unwrap();
        findings.answer.claims = vec![Claim::from(p95)];
        let style = findings.effect_style(metrics::RESPONSE_P95);
        let claim = &findings.answer.claims[0];
        let effect = style.show(claim.relative.value);
        let view = View::new(&findings);
        let html = shown(&draw(&view));
        assert!(
            html.contains("p95 response time relative to") && !html.contains("Throughput"),
            "{html}"
        );
        let values = [(claim.variant, 0), (claim.other, 0)];
        let values =
            values.map(|at| format::value(view.estimate(at, metrics::RESPONSE_P95).unwrap()));
        for number in values.iter().chain([&effect]) {
            assert!(html.contains(&format!("class=\"val e\">{number}<")), "no {number} in {html}");
        }
    }

    #[test]
    fn a_pair_without_the_baseline_is_drawn_as_the_pair() {
        let mut findings = findings();
        let claim = Claim { variant: 1, other: 2, ..Claim::from(&findings.comparisons[0]) };
        findings.answer.claims = vec![claim];
        let html = shown(&draw(&View::new(&findings)));
        let other = &findings.variants[2].name;
        assert!(html.contains(&format!("relative to {}<", crate::markup::escape(other))), "{html}");
    }

    #[test]
    fn a_question_that_compares_nothing_has_its_own_metrics() {
        let (mut findings, _) = fixture::three_variants();
        let pictures = |findings: &dyno_analysis::Findings| -> Vec<String> {
            let html = shown(&draw(&View::new(findings)));
            let titles = html.split("<figcaption><b>").skip(1);
            titles.map(|rest| rest.split(" by ").next().unwrap().to_owned()).collect()
        };
        assert_eq!(pictures(&findings), ["Throughput (transactions/s)"]);
        findings.answer.question = Some(Question::Saturates);
        let both = ["Mean response time", "Throughput (transactions/s)"];
        assert_eq!(pictures(&findings), both);
    }

    #[test]
    fn a_claim_of_what_no_cell_has_is_drawn_as_what_steps_are_judged_by() {
        let mut findings = findings();
        let claim = Claim::from(&findings.comparisons[0]);
        let metric = MetricId::new("money_per_million");
        findings.answer.claims = vec![Claim { metric, ..claim }];
        assert!(shown(&draw(&View::new(&findings))).contains("Throughput"));
    }

    #[test]
    fn values_begin_with_the_baseline_and_then_the_best() {
        let findings = findings();
        let view = View::new(&findings);
        let metric = metrics::THROUGHPUT;
        let found = |at: Place| Some((at, view.estimate(at, metric)?));
        let mut found: Vec<_> = view.variants().filter_map(|v| found((v, 0))).collect();
        found.reverse();
        sort(&view, metric, &mut found);
        assert_eq!(found[0].0.0, 0);
        assert!(found[1].1.value >= found[2].1.value);
    }
}
