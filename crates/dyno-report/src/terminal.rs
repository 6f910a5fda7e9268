//! Findings → plain text for a terminal: the answer, one table, the caveats.

use dyno_analysis::{Findings, Metric, Verdict};

use crate::format::{self, Unit};
use crate::view::View;
use crate::words;

#[cfg(test)]
mod tests;

/// Narrowest width that is laid out for.
const WIDTH_MIN: usize = 40;

/// Renders findings for a terminal of `width` columns. With `colour`, verdicts are coloured by ANSI
/// escape sequences; without, they are told by words and signs alone. Control characters in names
/// and messages are replaced, so that no text from a server can steer the terminal.
pub fn render(findings: &Findings, width: usize, colour: bool) -> String {
    let view = View::new(findings);
    let page = Page { width: width.max(WIDTH_MIN), colour };
    let mut out = String::new();
    page.paragraph(&mut out, &findings.title, "", Ink::Quiet);
    page.paragraph(&mut out, &findings.answer.headline, "", Ink::Bold);
    for detail in &findings.answer.details {
        page.paragraph(&mut out, detail, "  ", Ink::Plain);
    }
    out.push('\n');
    table(&mut out, &view, &page);
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
            c if c.is_control() => '\u{fffd}',
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

/// A row of the table: its cells as text, and the ink of the last.
struct Row {
    cells: Vec<String>,
    verdict: Option<Verdict>,
}

fn table(out: &mut String, view: &View<'_>, page: &Page) {
    let is_compared = !view.findings.comparisons.is_empty();
    let mut head = vec!["variant", "step", words::metric(view.main_metric()), "p95"];
    if is_compared {
        head.extend(["effect", "verdict"]);
    }
    let head = Row { cells: head.into_iter().map(str::to_owned).collect(), verdict: None };
    let mut rows = vec![head];
    let mut before = None;
    for (variant, step) in view.places() {
        let Some(row) = row(view, (variant, step), is_compared, before == Some(variant)) else {
            continue;
        };
        before = Some(variant);
        rows.push(row);
    }
    if rows.len() == 1 {
        page.paragraph(out, "Nothing was measured.", "", Ink::Plain);
        return;
    }
    let widths = widths(&rows, page.width);
    for (i, row) in rows.iter().enumerate() {
        let ink = if i == 0 { Ink::Quiet } else { Ink::Plain };
        line(out, page, row, &widths, ink);
    }
}

fn row(view: &View<'_>, at: (usize, usize), is_compared: bool, is_same: bool) -> Option<Row> {
    let (variant, step) = at;
    view.cell(variant, step)?;
    let show = |metric| view.estimate(variant, step, metric).map(format::with_bounds);
    let value = |metric| view.estimate(variant, step, metric).map(|e| Unit::of(e).show(e.value));
    let absent = || "–".to_owned();
    let name = if is_same { String::new() } else { clean(view.variant(variant)) };
    let mut cells = vec![
        name,
        clean(view.step(step)),
        show(view.main_metric()).unwrap_or_else(absent),
        value(Metric::ResponseP95).unwrap_or_else(absent),
    ];
    let comparison = view.comparison(variant, step, view.main_metric());
    if is_compared {
        match comparison {
            Some(c) => {
                cells.push(format::with_bounds(&c.relative));
                let sign = words::verdict_sign(c.verdict);
                cells.push(format!("{sign} {}", words::verdict(c.verdict)));
            }
            None => cells.extend([String::new(), String::new()]),
        }
    }
    Some(Row { cells, verdict: comparison.map(|c| c.verdict) })
}

/// Widths of the columns: what they need, the first one shortened until the table fits.
fn widths(rows: &[Row], width: usize) -> Vec<usize> {
    let n = rows[0].cells.len();
    let mut widths: Vec<usize> = (0..n)
        .map(|i| rows.iter().map(|r| r.cells[i].chars().count()).max().unwrap_or(0))
        .collect();
    let total: usize = widths.iter().sum::<usize>() + 2 * (n - 1);
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
        let is_number = (2..=4).contains(&i);
        let is_verdict = i == last && row.verdict.is_some();
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
        let text = format!("Caveat, {}: {}", words::caveat(caveat.kind), caveat.message);
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
