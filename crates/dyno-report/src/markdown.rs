//! Findings → Markdown for a pull request: the answer, tables, caveats, and the rest folded.

use dyno_analysis::{Findings, MetricId, metrics};

use crate::author;
use crate::document::markdown::blocks;
use crate::document::{Block, Cell, Table};
use crate::field;
use crate::format;
use crate::measured;
use crate::view::View;
use crate::words;

#[cfg(test)]
mod tests;

/// Renders findings as GitHub-flavoured Markdown. Text from outside is escaped: it can neither
/// break a table nor become markup.
pub fn render(findings: &Findings) -> String {
    let mut out = String::new();
    blocks(&mut out, &document(&View::new(findings)));
    // One line break ends the text.
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// A text as it is safe in Markdown: it can become no markup, and be no part of a table.
pub fn escaped(text: &str) -> String {
    crate::document::markdown::escape(text)
}

fn document(view: &View<'_>) -> Vec<Block> {
    let findings = view.findings;
    let mut all = vec![
        Block::Title(findings.title.clone()),
        Block::Headline(findings.answer.headline.clone()),
    ];
    all.extend(findings.answer.note.clone().map(Block::Paragraph));
    if !findings.answer.lines.is_empty() {
        all.push(Block::List(findings.answer.lines.clone()));
    }
    // A version is what a server says: no part of it becomes markup.
    all.push(Block::Paragraph(measured::parts(view).join(" · ").replace('`', "'")));
    all.extend(measured::conditions(view).map(|text| Block::Paragraph(text.replace('`', "'"))));
    if !findings.caveats.is_empty() {
        all.push(Block::Caveats(findings.caveats.clone()));
    }
    all.extend(comparisons(view));
    let confidence = view.confidence();
    for mut table in field::tables(view) {
        table.title = format!("{}, with {confidence} CIs", table.title);
        all.push(Block::Table(table));
    }
    all.extend(author::blocks(view));
    all.extend(crate::html::vectors::tables(view).into_iter().map(Block::Table));
    all.extend(crate::html::faults::tables(view).into_iter().map(Block::Table));
    let shown = with_declared(view);
    let few = view.few_in_words(&shown);
    all.extend(shown.into_iter().map(|metric| numbers(view, metric)));
    all.extend(few.map(|text| Block::Paragraph(text.to_owned())));
    all.extend(failures(view));
    if !findings.answer.details.is_empty() {
        let details = Block::List(findings.answer.details.clone());
        all.push(fold("Every comparison in words", vec![details]));
    }
    all.extend(settings(view));
    all.push(environment(view));
    all
}

fn fold(summary: &str, blocks: Vec<Block>) -> Block {
    Block::Fold { summary: summary.to_owned(), is_open: false, blocks }
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
    let mut table = Table::new("", &heads, 2);
    for (variant, step) in view.places() {
        let of = |metric: &MetricId| view.comparison(variant, step, *metric);
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
                Cell::Verdict(view.judged(c)),
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
fn numbers(view: &View<'_>, metric: MetricId) -> Block {
    let confidence = view.confidence();
    let mut heads = vec![format!("{}, with {confidence} CIs", field::main_head(view, metric))];
    heads.extend(view.findings.steps.iter().map(|step| step.name.clone()));
    let mut table = Table::new("", &heads, 1);
    let is_rate = matches!(metric, metrics::THROUGHPUT | metrics::RATE_AT_LIMIT);
    for variant in 0..view.findings.variants.len() {
        let value = |step: usize| {
            let Some(estimate) = view.estimate(variant, step, metric) else {
                return "–".to_owned();
            };
            let mode = if is_rate { field::mode(view, (variant, step)) } else { String::new() };
            let few = view.few(variant, step, metric);
            format!("{}{few}{mode} (n = {})", format::estimate(estimate), estimate.n)
        };
        let values = (0..view.findings.steps.len()).map(value);
        table.row(std::iter::once(view.variant(variant).to_owned()).chain(values));
    }
    Block::Table(table)
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
    let mut table = Table::new("", &heads, heads.len());
    for difference in differences {
        let values = difference.values.iter().map(|value| value.as_deref().unwrap_or("not set"));
        table.row(std::iter::once(difference.name.as_str()).chain(values));
    }
    (!differences.is_empty()).then(|| fold("Settings that differ", vec![Block::Table(table)]))
}

/// The machine in one line; of its facts only those that differ between runs or machines, the rest
/// by their number. What servers are and promise is a row each, if they are not all the same.
fn environment(view: &View<'_>) -> Block {
    let findings = view.findings;
    let mut table = Table::new("", &["fact", "value"], 2);
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
            variants
                .iter()
                .zip(&servers)
                .for_each(|(v, server)| table.row([v.name.as_str(), server]));
        }
    }
    let mut blocks = vec![Block::Table(table)];
    if n_more > 0 {
        let facts = words::counted(n_more, "more fact", "more facts");
        blocks.push(Block::Paragraph(format!("report.html has {facts} about the machine.")));
    }
    fold("Environment", blocks)
}

const SHOWN: [&str; 6] = ["machine", "cpu.model", "memory", "kernel", "filesystem", "dyno"];
