//! Findings → plain text for a terminal: the answer, one table, the caveats.

use dyno_analysis::{Findings, MetricId, Verdict, is_watched, metrics};

use crate::document::{Cell, Table};
use crate::field;
use crate::format;
use crate::measured;
use crate::view::View;
use crate::words;

#[cfg(test)]
mod tests;

/// Narrowest width that is laid out for.
const WIDTH_MIN: usize = 40;

/// Renders findings for a terminal of `width` columns. With `colour`, verdicts are coloured by ANSI
/// escape sequences; without, by words and signs alone. Control characters in names
/// and messages are replaced, so that no text from a server can steer the terminal.
pub fn render(findings: &Findings, width: usize, colour: bool) -> String {
    let view = View::new(findings);
    let page = Page { width: width.max(WIDTH_MIN), colour };
    let mut out = String::new();
    page.paragraph(&mut out, &findings.title, "", Ink::Quiet);
    page.paragraph(&mut out, &findings.answer.headline, "", Ink::Bold);
    for line in &findings.answer.lines {
        page.paragraph(&mut out, line, "  ", Ink::Plain);
    }
    page.paragraph(&mut out, &measured::parts(&view).join(" · "), "", Ink::Quiet);
    out.push('\n');
    tables(&mut out, &view, &page);
    caveats(&mut out, &view, &page);
    trials(&mut out, findings, &page);
    out
}

/// One line that tells where the report is: to be printed behind what [`render`] returns.
pub fn report_line(path: &str) -> String {
    format!("Report: {}\n", clean(path))
}

/// How a text is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ink {
    Plain,
    Bold,
    Quiet,
    Good,
    Bad,
    Open,
}

struct Page {
    width: usize,
    colour: bool,
}

impl Page {
    fn paint(&self, text: &str, ink: Ink) -> String {
        let code = match ink {
            Ink::Plain => return text.to_owned(),
            _ if !self.colour => return text.to_owned(),
            Ink::Bold => "1",
            Ink::Quiet => "2",
            Ink::Good => "32",
            Ink::Bad => "31",
            Ink::Open => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Appends a text, wrapped at words, each line behind `indent`.
    fn paragraph(&self, out: &mut String, text: &str, indent: &str, ink: Ink) {
        for line in wrap(&clean(text), self.width.saturating_sub(indent.len())) {
            out.push_str(indent);
            out.push_str(&self.paint(&line, ink));
            out.push('\n');
        }
    }
}

/// Replaces what a terminal would obey; line breaks become spaces.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if dyno_units::is_unsafe_char(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Breaks a text into lines of at most `width` characters; longer words are broken too.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut letters: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + letters.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while letters.len() > width {
            let rest = letters.split_off(width);
            lines.push(letters.iter().collect());
            letters = rest;
            lines.push(String::new());
        }
        let Some(line) = lines.last_mut() else { continue };
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        used += letters.len();
        line.extend(letters);
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// The table of estimates and effects, with p95 beside them where there is room, else below.
fn tables(out: &mut String, view: &View<'_>, page: &Page) {
    if is_watched(view.findings) && !view.has(view.main_metric()) {
        return;
    }
    let declared = view.findings.metrics.declared().map(|metric| metric.id);
    let beside: Vec<MetricId> = std::iter::once(metrics::RESPONSE_P95)
        .chain(declared)
        .filter(|metric| view.has(*metric) && *metric != view.main_metric())
        .collect();
    let wide = estimates(view, &beside);
    if wide.rows.is_empty() {
        page.paragraph(out, "Nothing was measured.", "", Ink::Plain);
        return;
    }
    let confidence = view.confidence();
    let legend = format!("n: repetitions; (low–high): {confidence} CI");
    page.paragraph(out, &legend, "", Ink::Quiet);
    let mut shown = vec![wide];
    if !fits(&shown[0], page) {
        let main = estimates(view, &[]);
        shown = match fits(&main, page) || main.columns.len() <= PLACE_AND_VALUE {
            true => vec![main],
            // Effects below the values, so that the names of variants stay whole.
            false => vec![main.with_columns(&[0, 1, 2, 3]), main.with_columns(&[0, 1, 4, 5])],
        };
        shown.extend(beside.into_iter().map(|metric| estimates_of(view, metric)));
    }
    for (idx, one) in shown.iter().enumerate() {
        out.push_str(if idx > 0 { "\n" } else { "" });
        table(out, one, page);
    }
    for field in field::tables(view) {
        out.push('\n');
        page.paragraph(out, &field.title, "", Ink::Plain);
        table(out, &field, page);
    }
}

/// Columns of estimates before their effects: variant, step, n, value.
const PLACE_AND_VALUE: usize = 4;

fn fits(table: &Table, page: &Page) -> bool {
    let widths = needed(&texts(table));
    widths.iter().sum::<usize>() + 2 * (widths.len() - 1) <= page.width
}

/// Writes a table. A variant is named in the first of its rows alone.
fn table(out: &mut String, table: &Table, page: &Page) {
    let texts = texts(table);
    let widths = widths(&texts, page.width);
    for (idx, row) in texts.iter().enumerate() {
        let before = idx.checked_sub(1).filter(|before| *before > 0);
        let is_repeated = before.is_some_and(|before| texts[before][0] == row[0]);
        let mut text = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = if column == 0 && is_repeated { "" } else { cell };
            let cell = shorten(cell, *width);
            let padding = " ".repeat(width - cell.chars().count());
            let ink = match idx.checked_sub(1).map(|idx| &table.rows[idx][column]) {
                None => Ink::Quiet,
                Some(Cell::Verdict(verdict)) => verdict_ink(*verdict),
                Some(_) => Ink::Plain,
            };
            let shown = page.paint(&cell, ink);
            text += if column > 0 { "  " } else { "" };
            let is_number = table.columns[column].is_number;
            text += &if is_number { padding + &shown } else { shown + &padding };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

/// The head and the rows of a table as text that steers no terminal.
fn texts(table: &Table) -> Vec<Vec<String>> {
    let head = table.columns.iter().map(|column| clean(&column.head)).collect();
    let rows = table.rows.iter();
    let rows = rows.map(|row| row.iter().map(|cell| clean(&cell.text())).collect());
    std::iter::once(head).chain(rows).collect()
}

fn estimates(view: &View<'_>, beside: &[MetricId]) -> Table {
    let is_compared = !view.findings.comparisons.is_empty();
    let mut heads = vec!["variant", "step", "n", field::main_head(view, view.main_metric())];
    let short = |metric: &MetricId| match *metric {
        metrics::RESPONSE_P95 => "p95",
        other => &view.metric(other).title,
    };
    heads.extend(beside.iter().map(short));
    if is_compared {
        heads.extend([effect_head(view), "verdict"]);
    }
    let mut table = Table::new("", &heads, 2);
    if is_compared {
        table = table.with_text(&[heads.len() - 1]);
    }
    let rows = view.places().filter_map(|place| row(view, place, (is_compared, beside)));
    rows.for_each(|row| table.row(row));
    table
}

/// What the effect is of, where that is not the value beside it.
fn effect_head(view: &View<'_>) -> &'static str {
    let is_of_p95 = |step: &dyno_analysis::StepFacts| step.main_metric == metrics::RESPONSE_P95;
    let steps = &view.findings.steps;
    if !steps.is_empty() && steps.iter().all(is_of_p95) { "effect on p95" } else { "effect" }
}

fn row(
    view: &View<'_>,
    at: (usize, usize),
    (is_compared, beside): (bool, &[MetricId]),
) -> Option<Vec<Cell>> {
    let (variant, step) = at;
    view.cell(variant, step)?;
    let main = view.estimate(variant, step, view.main_metric());
    let absent = || "–".to_owned();
    let mut texts = vec![
        view.variant(variant).to_owned(),
        view.step(step).to_owned(),
        main.map_or_else(absent, |estimate| estimate.n.to_string()),
        main.map_or_else(absent, |e| format!("{}{}", format::estimate(e), field::mode(view, at))),
    ];
    let value = |metric: &MetricId| view.estimate(variant, step, *metric);
    texts.extend(beside.iter().map(|metric| value(metric).map_or_else(absent, format::estimate)));
    let mut cells: Vec<Cell> = texts.into_iter().map(Cell::from).collect();
    if is_compared {
        match view.main_comparison(variant, step) {
            Some(c) => {
                cells.push(view.effect_style(c.metric).with_ci(&c.relative).into());
                cells.push(Cell::Verdict(c.verdict));
            }
            None => cells.extend([Cell::from(""), Cell::from("")]),
        }
    }
    Some(cells)
}

/// The estimates of one metric.
fn estimates_of(view: &View<'_>, metric: MetricId) -> Table {
    let mut table = Table::new("", &["variant", "step", "n", &view.metric(metric).title], 2);
    for (variant, step) in view.places() {
        let Some(estimate) = view.estimate(variant, step, metric) else { continue };
        let place = [view.variant(variant), view.step(step)].map(str::to_owned);
        table.row([place, [estimate.n.to_string(), format::estimate(estimate)]].concat());
    }
    table
}

/// Widths of the columns as they need them.
fn needed(rows: &[Vec<String>]) -> Vec<usize> {
    let of = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    (0..rows[0].len()).map(of).collect()
}

/// Widths of the columns: what they need, the first one shortened until the table fits.
fn widths(rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let mut widths = needed(rows);
    let total = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
    widths[0] = widths[0].saturating_sub(total.saturating_sub(width)).max(widths[0].min(8));
    widths
}

fn verdict_ink(verdict: Verdict) -> Ink {
    match verdict {
        Verdict::Better => Ink::Good,
        Verdict::Worse => Ink::Bad,
        Verdict::NoDifference => Ink::Plain,
        Verdict::Inconclusive => Ink::Open,
    }
}

fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn caveats(out: &mut String, view: &View<'_>, page: &Page) {
    for caveat in &view.findings.caveats {
        out.push('\n');
        let text = format!("Caveat ({}): {}", words::caveat(caveat.kind), caveat.message);
        page.paragraph(out, &text, "", Ink::Open);
        page.paragraph(out, &caveat.advice, "  ", Ink::Plain);
    }
}

/// Trials that did not finish, with their messages.
fn trials(out: &mut String, findings: &Findings, page: &Page) {
    let failed = findings.trials.iter().filter(|t| t.message.is_some());
    for (i, trial) in failed.enumerate() {
        if i == 0 {
            out.push('\n');
        }
        let message = trial.message.as_deref().unwrap_or_default();
        let text = format!("Trial {} {}: {message}", trial.number, trial.state);
        page.paragraph(out, &text, "", Ink::Bad);
    }
}
