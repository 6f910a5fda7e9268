//! The first screen: the question, the answer with one picture, and a few lines; below, folded,
//! every comparison, what the work costs, and the caveats.

use dyno_analysis::numbers::EffectStyle;
use dyno_analysis::statistics::REPETITIONS_CAP;
use dyno_analysis::{Caveat, Comparison, Estimate, MetricId, Verdict, metrics};

use super::page::{Page, Reader};
use super::{parts, picture, price, why};
use crate::chart::strip::Ruler;
use crate::document::{Block, Cell, Element, Piece, Row as TableRow, Section, Table, Text};
use crate::markup::kept_together;
use crate::view::{Place, View};
use crate::words::{self, Judged};
use crate::{format, measured};

pub(crate) fn section(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let answer = &view.findings.answer;
    let mut blocks = vec![
        Block::Title(view.findings.title.clone()),
        Block::Headline(view.prose(&answer.headline)),
    ];
    blocks.extend(answer.note.as_ref().map(|note| Block::Note("lead", view.prose(note))));
    // What decides whether to believe the answer stands beside it.
    let sentences = kept_sentences(view, &answer.lines).into_iter().chain(why::first(page));
    let main = picture::draw(view).into_iter().chain(sentences);
    let beside = caveats(view).into_iter().chain([conditions(view)]);
    let columns = [Block::group("main", main.collect()), Block::group("beside", beside.collect())];
    blocks.push(Block::group("opening", columns.into()));
    blocks.extend(verdicts(view));
    blocks.extend(why::folded(page));
    blocks.extend(price::below(view));
    Some(Section::new("answer", "Answer", "", "").with(blocks))
}

/// What was measured, on what, for how long.
fn conditions(view: &View<'_>) -> Block {
    let parts = measured::parts(view).into_iter().chain(measured::conditions(view));
    let parts = parts.map(|part| Text::from(kept_together(&part))).collect();
    Block::group("conditions", vec![Block::List(parts)])
}

fn kept_sentences(view: &View<'_>, sentences: &[String]) -> Option<Block> {
    let items = sentences.iter().map(|sentence| view.prose(sentence));
    (!sentences.is_empty()).then(|| Block::List(items.collect()))
}

/// The question and the answer as text, with what was measured.
pub(crate) fn in_text(page: &Page<'_>) -> Option<Section> {
    let (view, answer) = (page.view, &page.view.findings.answer);
    // A version is what a server says: no part of it becomes markup.
    let paragraph = |text: String| match page.reader {
        Reader::PullRequest => Block::lead(text.replace('`', "'")),
        _ => Block::lead(text),
    };
    let title = Block::Title(view.findings.title.clone());
    let headline = Block::Headline(Text::prose(&*answer.headline));
    let note = answer.note.clone().map(Block::Paragraph);
    let measured = std::iter::once(measured::parts(view).join(" · "));
    let measured = measured.chain(measured::conditions(view)).map(paragraph);
    let blocks = [title, headline].into_iter().chain(note).chain([sentences(&answer.lines)]);
    let folded = match page.reader {
        // A terminal folds nothing.
        Reader::Terminal => None,
        _ => why::folded(page),
    };
    Some(Section::of(blocks.chain(why::first(page)).chain(folded).chain(measured)))
}

pub(crate) fn sentences(all: &[String]) -> Block {
    Block::List(all.iter().map(|sentence| Text::prose(&**sentence)).collect())
}

pub(crate) fn caveats_in_text(page: &Page<'_>) -> Option<Section> {
    let all = page.view.findings.caveats.iter().map(|caveat| (caveat.clone(), String::new()));
    let caveats = Block::Caveats(all.collect());
    (!page.view.findings.caveats.is_empty()).then(|| Section::of([caveats]))
}

/// A place where a variant was compared: the comparison in the main metric of the step, and others.
struct Row<'a> {
    variant: usize,
    step: usize,
    main: Option<&'a Comparison>,
    others: Vec<Option<&'a Comparison>>,
}

impl<'a> Row<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Comparison> {
        std::iter::once(self.main).chain(self.others.iter().copied()).flatten()
    }
}

fn rows<'a>(view: &View<'a>, beside: &[MetricId]) -> Vec<Row<'a>> {
    let row = |(variant, step): Place| {
        let main = view.main_comparison(variant, step);
        let other = |metric: &MetricId| {
            let found = view.comparison((variant, step), *metric);
            found.filter(|_| view.findings.steps[step].main_metric != *metric)
        };
        Row { variant, step, main, others: beside.iter().map(other).collect() }
    };
    view.places().map(row).filter(|row| row.all().next().is_some()).collect()
}

fn verdicts(view: &View<'_>) -> Vec<Block> {
    let mut beside = view.beside_main();
    let is_main = |metric: &MetricId| view.findings.steps.iter().all(|s| s.main_metric == *metric);
    beside.retain(|metric| !is_main(metric));
    let rows = rows(view, &beside);
    let details = kept_sentences(view, &view.findings.answer.details);
    if rows.is_empty() {
        let text = match view.findings.variants.len() {
            1 => "No comparison: there is only one variant.",
            _ => "No comparison: no variant has a measured baseline.",
        };
        return [Block::lead(text)].into_iter().chain(details).collect();
    }
    let threshold = view.findings.threshold * 100.0;
    let main = rows.iter().find_map(|row| row.main).map_or(metrics::THROUGHPUT, |c| c.metric);
    let is_mixed = main_metrics(&rows).len() > 1;
    let column = |(idx, metric): (usize, &MetricId)| {
        let of = rows.iter().filter_map(|r| if idx == 0 { r.main } else { r.others[idx - 1] });
        let style = view.effect_style(*metric);
        let ruler = Ruler::new(of.map(|c| &c.relative), threshold, style);
        let is_named = is_mixed && idx == 0;
        let heading = if is_named { "Main metric".to_owned() } else { view.heading(*metric) };
        EffectColumn { heading, ruler, style, is_named }
    };
    let metrics = std::iter::once(&main).chain(&beside);
    let columns: Vec<EffectColumn> = metrics.enumerate().map(column).collect();
    let mut blocks = vec![Block::quiet(legend(view, &rows)), table(view, &rows, &columns).into()];
    if let Some(details) = details {
        blocks.extend([Block::heading(3, "In words"), details]);
    }
    let n = words::counted(rows.len(), "comparison", "comparisons");
    let summary = format!("{n} with CIs and verdicts ({})", tallies(view, &rows));
    vec![Block::fold(summary, false, blocks)]
}

fn table(view: &View<'_>, rows: &[Row<'_>], columns: &[EffectColumn]) -> Table {
    let has_steps = view.findings.steps.len() > 1;
    let heads = [Some("Variant"), has_steps.then(|| view.step_head())];
    let heads = heads.into_iter().flatten().map(Text::from);
    let mut table = Table::of(heads, 2).class("verdicts").bare(|_| true);
    let heads = |column: &EffectColumn| parts::heads_of(&column.heading, &column.ruler);
    table.columns.extend(columns.iter().flat_map(heads));
    let mut variant_before = None;
    for row in rows {
        let is_first = variant_before.replace(row.variant) != Some(row.variant);
        let head = if is_first { head(view, row.variant) } else { again(view, row.variant) };
        let step = has_steps.then(|| Cell::from(view.step(row.step)));
        let of_row = std::iter::once(row.main).chain(row.others.iter().copied());
        let effects = of_row.zip(columns).flat_map(|(one, column)| effect(view, one, column));
        let first = if is_first { " first" } else { "" };
        let cells = [head].into_iter().chain(step).chain(effects);
        table.rows.push(TableRow::new(cells).class(format!("v{}{first}", row.variant)));
    }
    table
}

fn head(view: &View<'_>, variant: usize) -> Cell {
    let baseline = view.findings.variants[variant].baseline.map(|b| view.variant(b));
    match baseline {
        Some(baseline) => view.head(variant).small(format!("vs. {baseline}")),
        None => view.head(variant),
    }
}

fn again(view: &View<'_>, variant: usize) -> Cell {
    let name = Element::of("span", view.variant(variant)).class("again");
    Cell::from(Text::default().element(name)).head()
}

fn legend(view: &View<'_>, rows: &[Row<'_>]) -> String {
    let (confidence, threshold) = (view.confidence(), view.threshold());
    let mut text = format!(
        "Effect with its {confidence} CI and n repetitions. The grey band is ± {threshold}: an effect whose CI \
         lies within it counts as no difference. Verdicts: {}.",
        view.signs()
    );
    let has_p = |c: &Comparison| c.p_value_of_verdict.is_some();
    if rows.iter().flat_map(Row::all).any(has_p) {
        text += " p: how often noise alone would produce an effect at least this large (t-test on the \
                 logarithms, adjusted for multiple comparisons by Holm's method; CIs are not adjusted).";
    }
    text
}

struct EffectColumn {
    heading: String,
    ruler: Ruler,
    style: EffectStyle,
    /// Whether its effects are of several metrics, so that each names its own.
    is_named: bool,
}

/// The main metrics of these rows, each once, in their order.
fn main_metrics(rows: &[Row<'_>]) -> Vec<MetricId> {
    words::distinct(rows.iter().filter_map(|row| row.main).map(|comparison| comparison.metric))
}

fn tallies(view: &View<'_>, rows: &[Row<'_>]) -> String {
    let of =
        |metric: MetricId| format!("{}: {}", view.metric(metric).title, tally(view, rows, metric));
    main_metrics(rows).into_iter().map(of).collect::<Vec<_>>().join("; ")
}

/// How many comparisons of a main metric ended with which verdict; verdicts that none has are left out.
fn tally(view: &View<'_>, rows: &[Row<'_>], metric: MetricId) -> String {
    let counted = |judged: Judged| {
        let is_it = |c: &Comparison| c.metric == metric && view.judged(c) == judged;
        let n = rows.iter().filter(|row| row.main.is_some_and(is_it)).count();
        (n > 0).then(|| format!("{n} {}", judged.word()))
    };
    Judged::ALL.into_iter().filter_map(counted).collect::<Vec<_>>().join(" · ")
}

/// Three cells: the effect in numbers, as a drawing, and the verdict. A narrow screen shows the metric's
/// name in place of the table's head.
fn effect(view: &View<'_>, comparison: Option<&Comparison>, column: &EffectColumn) -> [Cell; 3] {
    let Some(comparison) = comparison else { return ["–", "", ""].map(Cell::from) };
    let relative = &comparison.relative;
    let (of, style, named) = match column.is_named {
        true => {
            let metric = comparison.metric;
            let named = format!("{}, ", view.metric(metric).title);
            (view.heading(metric), view.effect_style(metric), named)
        }
        false => (column.heading.clone(), column.style, String::new()),
    };
    let judged = view.judged(comparison);
    let mut remarks = Vec::new();
    let is_asked = comparison.verdict != Verdict::NoDifference;
    remarks.extend(comparison.p_value_of_verdict.filter(|_| is_asked).map(format::p_value));
    if let Some(n) = comparison.repetitions_needed {
        remarks.push(match n {
            REPETITIONS_CAP.. => format!("even {n} repetitions might not be enough"),
            n => format!("roughly {n} repetitions needed"),
        });
    }
    let mut verdict = Text::of(Piece::Verdict(judged));
    if !remarks.is_empty() {
        verdict = verdict.element(Element::of("small", remarks.join(" · ")).class(""));
    }
    let spread = format!("{named}{}", spread(relative, style));
    let numbers = Text::default().b(style.show(relative.value)).small(spread);
    [
        Cell::from(numbers).with("data-of", of),
        parts::strip(view, relative, &column.ruler, judged),
        Cell::from(verdict).class("v"),
    ]
}

fn spread(relative: &Estimate, style: EffectStyle) -> String {
    match style.interval(relative) {
        Some(interval) => format!("{interval}, n = {}", relative.n),
        None => format!("no CI, n = {}", relative.n),
    }
}

/// Caveats that are named without being asked for.
const CAVEATS_OPEN: usize = 6;

/// The caveats, those that may void the answer first: a line each, which opens its text.
fn caveats(view: &View<'_>) -> Vec<Block> {
    let mut caveats: Vec<&Caveat> = view.findings.caveats.iter().collect();
    if caveats.is_empty() {
        return vec![Block::lead(
            "No caveats: nothing was found that casts doubt on these numbers.",
        )];
    }
    caveats.sort_by_key(|caveat| !words::is_grave(caveat.kind));
    let fold = |caveat: &&Caveat| {
        let (sign, class) = match words::is_grave(caveat.kind) {
            true => ("▲", "caveat grave"),
            false => ("△", "caveat"),
        };
        let summary = Text::from(format!("{sign} {}", words::sentence(words::caveat(caveat.kind))));
        let scope = scope(view, caveat);
        let summary = if scope.is_empty() { summary } else { summary.text(" ").span(scope) };
        let message = Block::Note("", view.prose(&caveat.message));
        let advice = Block::Note("advice", view.prose(&caveat.advice));
        Block::Fold { class, summary, is_open: false, blocks: vec![message, advice] }
    };
    let mut folds: Vec<Block> = caveats.iter().map(fold).collect();
    let more = folds.split_off(folds.len().min(CAVEATS_OPEN));
    let n = words::counted(caveats.len(), "caveat", "caveats");
    let heading = Block::heading(3, format!("Before you rely on this: {n}"));
    let more = (!more.is_empty()).then(|| Block::fold(format!("{} more", more.len()), false, more));
    [heading].into_iter().chain(folds).chain(more).collect()
}

/// A caveat that concerns all variants, or all steps, names as many; of more it says how many.
const NAMED_MOST: usize = 3;

fn scope(view: &View<'_>, caveat: &Caveat) -> String {
    let variants: Vec<&str> = caveat.variants.iter().map(|v| view.variant(*v)).collect();
    let steps: Vec<&str> = caveat.steps.iter().map(|s| view.step(*s)).collect();
    let noun = view.findings.step_noun();
    let parts: Vec<String> = [
        (variants, view.findings.variants.len(), "variant"),
        (steps, view.findings.steps.len(), noun),
    ]
    .into_iter()
    .filter(|(names, ..)| !names.is_empty())
    .map(|(names, n_all, noun)| match names.len() {
        n if n == n_all && n > NAMED_MOST => format!("all {n} {noun}s"),
        _ => names.join(", "),
    })
    .collect();
    parts.join(" · ")
}
