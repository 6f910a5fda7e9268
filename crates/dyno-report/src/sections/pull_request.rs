//! The evidence of a pull request: effects and numbers as tables, the rest folded.

use dyno_analysis::{MetricId, metrics};

use super::answer::sentences;
use super::{bound, page::Page, parts};
use crate::document::{Block, Cell, Section, Table};
use crate::view::View;
use crate::{author, field, format, words};

/// The effects, the tables that stand beside throughput, and those of the Insert Benchmark's author.
pub(crate) fn effects(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let confidence = view.confidence();
    let beside = field::tables(view).into_iter().map(|mut table| {
        let title = table.title.take().map_or(String::new(), |title| title.plain());
        table.titled(format!("{title}, with {confidence} CIs")).into()
    });
    let blocks = comparisons(view).into_iter().chain(beside).chain(author::blocks(view));
    Some(Section::of(blocks))
}

/// A table for each of the main metrics; what failed; and every comparison in words, folded.
pub(crate) fn numbers(page: &Page<'_>) -> Option<Section> {
    let view = page.view;
    let shown = with_declared(view);
    let few = view.few_in_words(&shown).map(Block::lead);
    let details = &view.findings.answer.details;
    let in_words = || Block::fold("Every comparison in words", false, vec![sentences(details)]);
    let details = (!details.is_empty()).then(in_words);
    let tables = shown.into_iter().map(|metric| estimates(view, metric));
    let bound = bound::listed(view).map(Block::from);
    Some(Section::of(tables.chain(few).chain(bound).chain(failures(view)).chain(details)))
}

/// What was set, and where it ran, folded.
pub(crate) fn setup(page: &Page<'_>) -> Option<Section> {
    Some(Section::of(settings(page.view).into_iter().chain([environment(page.view)])))
}

fn comparisons(view: &View<'_>) -> Vec<Block> {
    if view.findings.comparisons.is_empty() {
        return Vec::new();
    }
    let confidence = view.confidence();
    let text = format!("Effects relative to the baseline with {confidence} CIs; {}.", view.signs());
    let main = view.main_metric();
    let mut compared = vec![main];
    compared.extend(view.beside_main().into_iter().filter(|metric| *metric != main));
    let mut heads = vec!["variant", view.findings.step_noun()];
    for metric in &compared {
        heads.extend([&view.metric(*metric).title, "CI", "verdict", "n"]);
    }
    let mut table = Table::of(heads, 2);
    for (variant, step) in view.places() {
        let of = |metric: &MetricId| view.comparison((variant, step), *metric);
        if compared.iter().all(|metric| of(metric).is_none()) {
            continue;
        }
        let effect = |c: Option<&dyno_analysis::Comparison>| -> [Cell; 4] {
            let Some(c) = c else { return ["–", "–", "–", "–"].map(Cell::from) };
            let style = view.effect_style(c.metric);
            let interval = match (style.interval(&c.relative), c.relative.n) {
                (Some(values), 2) => format!("two values: {values}"),
                (Some(interval), _) => interval,
                (None, _) => "no CI".to_owned(),
            };
            let effect = style.show(c.relative.value);
            [
                effect.into(),
                interval.into(),
                Cell::verdict(view.judged(c)),
                c.relative.n.to_string().into(),
            ]
        };
        let place = [Cell::from(view.variant(variant)), Cell::from(view.step(step))];
        let effects = compared.iter().flat_map(|metric| effect(of(metric)));
        table.row(place.into_iter().chain(effects));
    }
    vec![Block::Paragraph(text), Block::Table(table)]
}

/// The metrics that have a table each: the main ones, and what activities declare.
fn with_declared(view: &View<'_>) -> Vec<MetricId> {
    let mut shown = view.main_metrics();
    let declared = view.findings.metrics.declared().map(|metric| metric.id);
    shown.extend(declared.filter(|metric| !view.main_metrics().contains(metric)));
    shown.retain(|metric| view.has(*metric));
    shown
}

/// A row for each variant, a column for each step.
fn estimates(view: &View<'_>, metric: MetricId) -> Block {
    let is_rate = matches!(metric, metrics::THROUGHPUT | metrics::RATE_AT_LIMIT);
    let mut table = parts::by_step(view, view.variants(), view.steps(), |variant, step| {
        let Some(estimate) = view.estimate((variant, step), metric) else { return "–".into() };
        let mode = if is_rate { field::mode(view, (variant, step)) } else { String::new() };
        let few = view.few((variant, step), metric);
        format!("{}{few}{mode} (n = {})", format::estimate(estimate), estimate.n).into()
    });
    let (head, confidence) = (field::main_head(view, metric), view.confidence());
    table.columns[0].head = format!("{head}, with {confidence} CIs").into();
    table.into()
}

fn failures(view: &View<'_>) -> Option<Block> {
    let is_lost = |state: &str| !matches!(state, "finished" | "not needed");
    let failed = view.findings.trials.iter().filter(|trial| is_lost(&trial.state));
    let item = |trial: &dyno_analysis::TrialFacts| {
        let why =
            trial.message.as_deref().map_or_else(String::new, |message| format!(": {message}"));
        let (number, variant) = (trial.number, view.variant(trial.variant));
        format!("Trial {number} ({variant}, repetition {}) {}{why}", trial.repetition, trial.state)
    };
    let items: Vec<String> = failed.map(item).collect();
    (!items.is_empty()).then_some(Block::Messages(items))
}

fn settings(view: &View<'_>) -> Option<Block> {
    let differences = &view.findings.setting_differences;
    let mut heads = vec!["setting"];
    heads.extend(view.findings.variants.iter().map(|variant| variant.name.as_str()));
    let mut table = Table::of(heads, usize::MAX);
    for difference in differences {
        let values = difference.values.iter().map(|value| value.as_deref().unwrap_or("not set"));
        table.row(std::iter::once(difference.name.as_str()).chain(values));
    }
    let summary = "Settings that differ";
    (!differences.is_empty()).then(|| Block::fold(summary, false, vec![table.into()]))
}

/// The machine in one line; of its facts only those that differ between runs or machines, the rest
/// by their number. What servers are and promise is a row each, if they are not all the same.
fn environment(view: &View<'_>) -> Block {
    let findings = view.findings;
    let mut table = Table::headed("", "fact | value");
    table.row(["CPUs".to_owned(), findings.cpus.to_string()]);
    let is_shown = |name: &str, value: &str| SHOWN.contains(&name) || value.contains("; ");
    let mut n_more = 0;
    for (name, value) in &findings.environment {
        if is_shown(name, value) {
            table.row([name.as_str(), value]);
        } else {
            n_more += 1;
        }
    }
    let variants = &findings.variants;
    let servers: Vec<String> =
        variants.iter().map(|v| format!("{}; {}", v.server, v.durability)).collect();
    match servers.first() {
        // Without a server, nothing is known of one.
        Some(first) if first == "; " => {}
        Some(first) if servers.iter().all(|server| server == first) => {
            table.row(["all servers", first]);
        }
        _ => {
            let rows = variants.iter().zip(&servers);
            rows.for_each(|(v, server)| table.row([v.name.as_str(), server]));
        }
    }
    let mut blocks = vec![Block::Table(table)];
    if n_more > 0 {
        let facts = words::counted(n_more, "more fact", "more facts");
        blocks.push(Block::lead(format!("report.html has {facts} about the machine.")));
    }
    Block::fold("Environment", false, blocks)
}

const SHOWN: [&str; 6] = ["machine", "cpu.model", "memory", "kernel", "filesystem", "dyno"];
