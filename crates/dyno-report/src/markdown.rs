//! Findings → Markdown for a pull request: the answer, tables, caveats, and the rest folded.

use dyno_analysis::{Findings, Metric};
use dyno_units::is_unsafe_char;

use crate::author;
use crate::field;
use crate::format::{self, Unit};
use crate::view::View;
use crate::words;

#[cfg(test)]
mod tests;

/// Renders findings as GitHub-flavoured Markdown. Text from outside is escaped: it can neither
/// break a table nor become markup.
pub fn render(findings: &Findings) -> String {
    let view = View::new(findings);
    let mut out = String::new();
    out += &format!("## {}\n\n", escape(&findings.title));
    out += &format!("**{}**\n\n", prose(&findings.answer.headline));
    for line in &findings.answer.lines {
        out += &format!("- {}\n", prose(line));
    }
    if !findings.answer.lines.is_empty() {
        out.push('\n');
    }
    caveats(&mut out, &view);
    comparisons(&mut out, &view);
    field_tables(&mut out, &view);
    out += &author::markdown(&view, escape);
    for metric in
        [Metric::RateAtLimit, Metric::ClientsAtLimit, Metric::Throughput, Metric::ResponseP95]
    {
        numbers(&mut out, &view, metric);
    }
    failures(&mut out, &view);
    details(&mut out, &view);
    settings(&mut out, &view);
    environment(&mut out, &view);
    out
}

/// A text as it is safe in Markdown: it can become no markup, and be no part of a table.
pub fn escaped(text: &str) -> String {
    escape(text)
}

/// Makes a text harmless: Markdown signs are escaped, HTML too, and line breaks become spaces.
fn escape(text: &str) -> String {
    escape_keeping_ends(text).trim().to_owned()
}

/// The same, with blanks at both ends as they are.
fn escape_keeping_ends(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            // A name behind an @ would be told about the pull request.
            '@' => out.push_str("@\u{200b}"),
            // Behind these, GitHub makes a link of what follows.
            ':' | '.' if begins_link(&out, c) => {
                out.push(c);
                out.push('\u{200b}');
            }
            c if is_unsafe_char(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A sentence of Dyno's own, in which `backticks` mark code: they stay code. Everything else in it is
/// made harmless; within code only a backtick could end it, and there is none.
fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without its partner is no mark of code.
    if parts.len() % 2 == 0 {
        return escape(text);
    }
    let mut out = String::new();
    for (i, part) in parts.iter().enumerate() {
        if i % 2 == 1 {
            let code: String = part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            out += &format!("`{code}`");
        } else {
            out += &escape_keeping_ends(part);
        }
    }
    out.trim().to_owned()
}

/// Whether a text that ends so begins an address when this character follows.
fn begins_link(before: &str, next: char) -> bool {
    let words: &[&str] = if next == ':' { &["http", "https", "ftp"] } else { &["www"] };
    let ends_with = |word: &&str| {
        let start = before.len().checked_sub(word.len());
        start
            .and_then(|start| before.get(start..))
            .is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    words.iter().any(ends_with)
}

/// A row of a table.
fn row(out: &mut String, cells: &[String]) {
    *out += &format!("| {} |\n", cells.join(" | "));
}

/// The head of a table; the first `n_left` columns are left-aligned, the others right.
fn head(out: &mut String, titles: &[String], n_left: usize) {
    row(out, titles);
    let rule = |i: usize| if i < n_left { "---" } else { "---:" };
    let rules: Vec<&str> = (0..titles.len()).map(rule).collect();
    *out += &format!("|{}|\n", rules.join("|"));
}

fn titles(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|t| (*t).to_owned()).collect()
}

fn caveats(out: &mut String, view: &View<'_>) {
    for caveat in &view.findings.caveats {
        *out += &format!(
            "> **Caveat: {}.** {} {}\n>\n",
            words::caveat(caveat.kind),
            prose(&caveat.message),
            prose(&caveat.advice)
        );
    }
    if !view.findings.caveats.is_empty() {
        // The last empty line of the quotation is the end of it.
        out.truncate(out.len() - 2);
        out.push('\n');
    }
}

fn comparisons(out: &mut String, view: &View<'_>) {
    if view.findings.comparisons.is_empty() {
        return;
    }
    let confidence = Unit::Percent.tick(view.findings.confidence * 100.0);
    let threshold = Unit::Percent.tick(view.findings.threshold * 100.0);
    *out += &format!(
        "Effects against the baseline with {confidence} CIs; less than {threshold} is too small to \
         matter.\n\n"
    );
    let main = words::metric(view.main_metric());
    let of_each = ["CI", "verdict", "n"];
    let titles =
        [&["variant", "step", main][..], &of_each, &["p95 response time"], &of_each].concat();
    head(out, &self::titles(&titles), 2);
    for (variant, step) in view.places() {
        let throughput = view.comparison(variant, step, view.main_metric());
        let p95 = view.comparison(variant, step, Metric::ResponseP95);
        if throughput.or(p95).is_none() {
            continue;
        }
        let effect = |c: Option<&dyno_analysis::Comparison>| match c {
            Some(c) => [
                view.effect_style(c.metric).show(c.relative.value),
                view.effect_style(c.metric)
                    .interval(&c.relative)
                    .unwrap_or_else(|| "no CI".to_owned()),
                format!("{} {}", words::verdict_sign(c.verdict), words::verdict(c.verdict)),
                c.relative.n.to_string(),
            ],
            None => ["–", "–", "–", "–"].map(str::to_owned),
        };
        let place = [escape(view.variant(variant)), escape(view.step(step))];
        row(out, &[&place[..], &effect(throughput), &effect(p95)].concat());
    }
    out.push('\n');
}

/// The figures that the field asks for, and what the work cost.
fn field_tables(out: &mut String, view: &View<'_>) {
    let confidence = Unit::Percent.tick(view.findings.confidence * 100.0);
    for table in field::tables(view) {
        *out += &format!("{}, with {confidence} CIs:\n\n", escape(&table.title));
        head(out, &table.head.iter().map(|text| escape(text)).collect::<Vec<_>>(), 2);
        for cells in &table.rows {
            row(out, &cells.iter().map(|text| escape(text)).collect::<Vec<_>>());
        }
        out.push('\n');
    }
}

fn numbers(out: &mut String, view: &View<'_>, metric: Metric) {
    if !view.has(metric) {
        return;
    }
    let confidence = Unit::Percent.tick(view.findings.confidence * 100.0);
    let mut titles = vec![format!("{}, with {confidence} CIs", field::main_head(view, metric))];
    titles.extend(view.findings.steps.iter().map(|s| escape(&s.name)));
    head(out, &titles, 1);
    for variant in 0..view.findings.variants.len() {
        let mut cells = vec![escape(view.variant(variant))];
        let is_rate = matches!(metric, Metric::Throughput | Metric::RateAtLimit);
        let told = |step: usize| {
            let Some(estimate) = view.estimate(variant, step, metric) else {
                return "–".to_owned();
            };
            let mode = if is_rate { field::mode(view, (variant, step)) } else { String::new() };
            format!("{}{mode} (n = {})", format::told(estimate), estimate.n)
        };
        cells.extend((0..view.findings.steps.len()).map(told));
        row(out, &cells);
    }
    out.push('\n');
}

fn failures(out: &mut String, view: &View<'_>) {
    let is_lost = |state: &str| !matches!(state, "finished" | "not needed");
    let failed: Vec<_> = view.findings.trials.iter().filter(|t| is_lost(&t.state)).collect();
    for trial in &failed {
        let why = trial.message.as_deref().map_or_else(String::new, |m| format!(": {}", escape(m)));
        *out += &format!(
            "- Trial {} ({}, repetition {}) {}{why}\n",
            trial.number,
            escape(view.variant(trial.variant)),
            trial.repetition,
            escape(&trial.state)
        );
    }
    if !failed.is_empty() {
        out.push('\n');
    }
}

/// Every comparison in words, folded.
fn details(out: &mut String, view: &View<'_>) {
    let details = &view.findings.answer.details;
    if details.is_empty() {
        return;
    }
    *out += "<details><summary>Every comparison in words</summary>\n\n";
    for detail in details {
        *out += &format!("- {}\n", prose(detail));
    }
    *out += "\n</details>\n\n";
}

fn settings(out: &mut String, view: &View<'_>) {
    let differences = &view.findings.setting_differences;
    if differences.is_empty() {
        return;
    }
    *out += "<details><summary>Settings that differ</summary>\n\n";
    let mut titles = titles(&["setting"]);
    titles.extend(view.findings.variants.iter().map(|v| escape(&v.name)));
    head(out, &titles, titles.len());
    for difference in differences {
        let mut cells = vec![escape(&difference.name)];
        let value = |v: &Option<String>| v.as_deref().map_or("not set".to_owned(), escape);
        cells.extend(difference.values.iter().map(value));
        row(out, &cells);
    }
    *out += "\n</details>\n\n";
}

/// The machine in one line; of its facts only those that differ between runs or machines, the rest
/// by their number. What servers are and promise is a row each, if they are not all the same.
fn environment(out: &mut String, view: &View<'_>) {
    let findings = view.findings;
    *out += "<details><summary>Environment</summary>\n\n";
    head(out, &titles(&["fact", "value"]), 2);
    row(out, &titles(&["CPUs", &findings.cpus.to_string()]));
    let is_shown = |name: &str, value: &str| SHOWN.contains(&name) || value.contains("; ");
    let mut n_more = 0;
    for (name, value) in &findings.environment {
        if is_shown(name, value) {
            row(out, &[escape(name), escape(value)]);
        } else {
            n_more += 1;
        }
    }
    let servers: Vec<String> = findings
        .variants
        .iter()
        .map(|v| format!("{}; {}", escape(&v.server), escape(&v.durability)))
        .collect();
    match servers.first() {
        Some(first) if servers.iter().all(|server| server == first) => {
            row(out, &["all servers".to_owned(), first.clone()]);
        }
        _ => {
            for (variant, server) in findings.variants.iter().zip(servers) {
                row(out, &[escape(&variant.name), server]);
            }
        }
    }
    if n_more > 0 {
        let facts = words::counted(n_more, "more fact", "more facts");
        *out += &format!("\n{facts} of the machine in the report.\n");
    }
    *out += "\n</details>\n";
}

/// Facts of the machine that are always shown.
const SHOWN: [&str; 6] = ["machine", "cpu.model", "memory", "kernel", "filesystem", "dyno"];
