//! Findings → plain text for a terminal: the answer, one table, the caveats.

use dyno_analysis::{Findings, Metric, Verdict, is_watched};

use crate::field;
use crate::format::{self, Unit};
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

/// A row of a table: its cells as text, and the verdict that the last tells, if it is one.
struct Row {
    cells: Vec<String>,
    verdict: Option<Verdict>,
}

impl Row {
    fn plain(cells: Vec<String>) -> Row {
        Row { cells: cells.iter().map(|cell| clean(cell)).collect(), verdict: None }
    }
}

/// The table of estimates and effects, with p95 beside them where there is room, else below.
fn tables(out: &mut String, view: &View<'_>, page: &Page) {
    if is_watched(view.findings) && !view.has(view.main_metric()) {
        return;
    }
    let wide = rows(view, view.has(Metric::ResponseP95));
    if wide.len() == 1 {
        page.paragraph(out, "Nothing was measured.", "", Ink::Plain);
        return;
    }
    let confidence = Unit::Percent.tick(view.findings.confidence * 100.0);
    let legend = format!("n: repetitions; ± or (low–high): {confidence} CI");
    page.paragraph(out, &legend, "", Ink::Quiet);
    if width_of(&wide) <= page.width {
        table(out, &wide, page);
    } else {
        table(out, &rows(view, false), page);
        out.push('\n');
        table(out, &p95_rows(view), page);
    }
    for field in field::tables(view) {
        out.push('\n');
        page.paragraph(out, &field.title, "", Ink::Plain);
        let rows = [field.head].into_iter().chain(field.rows).map(Row::plain).collect();
        table(out, &without_repeated(rows), page);
    }
}

fn table(out: &mut String, rows: &[Row], page: &Page) {
    let widths = widths(rows, page.width);
    for (i, row) in rows.iter().enumerate() {
        let ink = if i == 0 { Ink::Quiet } else { Ink::Plain };
        line(out, page, row, &widths, ink);
    }
}

/// A variant's name is told in the first of its rows alone.
fn without_repeated(mut rows: Vec<Row>) -> Vec<Row> {
    for idx in (1..rows.len()).rev() {
        if rows[idx].cells[0] == rows[idx - 1].cells[0] {
            rows[idx].cells[0].clear();
        }
    }
    rows
}

fn rows(view: &View<'_>, with_p95: bool) -> Vec<Row> {
    let is_compared = !view.findings.comparisons.is_empty();
    let mut head = vec!["variant", "step", "n", field::main_head(view, view.main_metric())];
    if with_p95 {
        head.push("p95");
    }
    if is_compared {
        head.extend([effect_head(view), "verdict"]);
    }
    let mut rows = vec![Row::plain(head.into_iter().map(str::to_owned).collect())];
    let own = view.places().filter_map(|place| row(view, place, (is_compared, with_p95)));
    rows.extend(own);
    without_repeated(rows)
}

/// What the effect is of, where that is not the value beside it.
fn effect_head(view: &View<'_>) -> &'static str {
    let is_of_p95 = |step: &dyno_analysis::StepFacts| step.main_metric == Metric::ResponseP95;
    let steps = &view.findings.steps;
    if !steps.is_empty() && steps.iter().all(is_of_p95) { "effect on p95" } else { "effect" }
}

fn row(view: &View<'_>, at: (usize, usize), (is_compared, with_p95): (bool, bool)) -> Option<Row> {
    let (variant, step) = at;
    view.cell(variant, step)?;
    let main = view.estimate(variant, step, view.main_metric());
    let absent = || "–".to_owned();
    let mut cells = vec![
        clean(view.variant(variant)),
        clean(view.step(step)),
        main.map_or_else(absent, |estimate| estimate.n.to_string()),
        main.map_or_else(absent, |e| format!("{}{}", format::told(e), field::mode(view, at))),
    ];
    if with_p95 {
        let p95 = view.estimate(variant, step, Metric::ResponseP95);
        cells.push(p95.map_or_else(absent, format::told));
    }
    let comparison = view.main_comparison(variant, step);
    if is_compared {
        match comparison {
            Some(c) => {
                cells.push(view.effect_style(c.metric).with_ci(&c.relative));
                let sign = words::verdict_sign(c.verdict);
                cells.push(format!("{sign} {}", words::verdict(c.verdict)));
            }
            None => cells.extend([String::new(), String::new()]),
        }
    }
    Some(Row { cells, verdict: comparison.map(|c| c.verdict) })
}

fn p95_rows(view: &View<'_>) -> Vec<Row> {
    let head = ["variant", "step", "n", words::metric(Metric::ResponseP95)];
    let row = |(variant, step): (usize, usize)| {
        let p95 = view.estimate(variant, step, Metric::ResponseP95)?;
        let place = [view.variant(variant), view.step(step)].map(str::to_owned);
        let numbers = [p95.n.to_string(), format::told(p95)];
        Some(Row::plain([place, numbers].concat()))
    };
    let head = Row::plain(head.map(str::to_owned).to_vec());
    without_repeated([head].into_iter().chain(view.places().filter_map(row)).collect())
}

/// Widths of the columns as they need them.
fn needed(rows: &[Row]) -> Vec<usize> {
    let of = |i: usize| rows.iter().map(|r| r.cells[i].chars().count()).max().unwrap_or(0);
    (0..rows[0].cells.len()).map(of).collect()
}

/// The width of the whole table.
fn width_of(rows: &[Row]) -> usize {
    let widths = needed(rows);
    widths.iter().sum::<usize>() + 2 * (widths.len() - 1)
}

/// Widths of the columns: what they need, the first one shortened until the table fits.
fn widths(rows: &[Row], width: usize) -> Vec<usize> {
    let (mut widths, total) = (needed(rows), width_of(rows));
    if total > width {
        widths[0] = widths[0].saturating_sub(total - width).max(8);
    }
    widths
}

fn line(out: &mut String, page: &Page, row: &Row, widths: &[usize], ink: Ink) {
    let mut text = String::new();
    let last = row.cells.len() - 1;
    for (i, (cell, width)) in row.cells.iter().zip(widths).enumerate() {
        let cell = shorten(cell, *width);
        let padding = " ".repeat(width - cell.chars().count());
        let is_verdict = i == last && row.verdict.is_some();
        let is_number = i >= 2 && !is_verdict && !is_head_of_verdicts(&cell);
        let shown = match row.verdict {
            Some(verdict) if is_verdict => page.paint(&cell, verdict_ink(verdict)),
            _ => page.paint(&cell, ink),
        };
        text += if i > 0 { "  " } else { "" };
        text += &if is_number { padding + &shown } else { shown + &padding };
    }
    out.push_str(text.trim_end());
    out.push('\n');
}

fn is_head_of_verdicts(cell: &str) -> bool {
    cell == "verdict"
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
