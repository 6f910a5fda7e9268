//! Blocks as plain text for a terminal. No text from outside can steer it.

use std::collections::BTreeSet;

use dyno_analysis::{Caveat, Verdict};

use super::{Block, Cell, Piece, Table, Text};
use crate::markup::{FIXED, JOINER, kept_together};
use crate::words::{self, Judged};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ink {
    Plain,
    Bold,
    Quiet,
    Good,
    Bad,
    Open,
}

const WIDTH_MIN: usize = 40;

pub(crate) struct Screen {
    /// Columns.
    width: usize,
    colour: bool,
}

impl Screen {
    pub(crate) fn new(width: usize, colour: bool) -> Screen {
        Screen { width: width.max(WIDTH_MIN), colour }
    }

    /// Whether a table has room without anything being shortened.
    pub(crate) fn fits(&self, table: &Table) -> bool {
        let widths = needed(&texts(table));
        widths.iter().sum::<usize>() + 2 * (widths.len() - 1) <= self.width
    }

    /// Writes blocks. What belongs together stands together; a table, a caveat and messages have an
    /// empty line before them.
    pub(crate) fn blocks(&self, out: &mut String, blocks: &[Block]) {
        let mut is_behind_paragraph = false;
        for block in blocks {
            let gap = if out.is_empty() { "" } else { "\n" };
            match block {
                Block::Title(text) => self.paragraph(out, text, "", Ink::Quiet),
                Block::Headline(text) => self.paragraph(out, &text.plain(), "", Ink::Bold),
                Block::Heading(_, text) => self.paragraph(out, text, "", Ink::Bold),
                Block::Paragraph(text) => {
                    *out += if is_behind_paragraph { gap } else { "" };
                    self.paragraph(out, text, "", Ink::Quiet);
                }
                Block::Note(_, text) => self.paragraph(out, &text.plain(), "", Ink::Quiet),
                Block::List(items) => {
                    let item = |item: &Text| self.paragraph(out, &item.plain(), "  ", Ink::Plain);
                    items.iter().for_each(item);
                }
                Block::Messages(items) => {
                    *out += if items.is_empty() { "" } else { gap };
                    items.iter().for_each(|item| self.paragraph(out, item, "", Ink::Bad));
                }
                Block::Caveats(all) => all.iter().for_each(|(one, _)| self.caveat(out, one)),
                Block::Table(one) => {
                    *out += if is_behind_paragraph { "" } else { gap };
                    self.table(out, one);
                }
                Block::Fold { summary, blocks, .. } => {
                    *out += gap;
                    self.paragraph(out, &summary.plain(), "", Ink::Plain);
                    self.blocks(out, blocks);
                }
                Block::Group(_, blocks) => self.blocks(out, blocks),
                // Figures and controls are for a browser.
                Block::Figure(_) | Block::Control(_) => {}
            }
            is_behind_paragraph = matches!(block, Block::Paragraph(_));
        }
    }

    fn caveat(&self, out: &mut String, caveat: &Caveat) {
        out.push('\n');
        let text = format!("Caveat ({}): {}", words::caveat(caveat.kind), caveat.message);
        self.paragraph(out, &text, "", Ink::Open);
        self.paragraph(out, &caveat.advice, "  ", Ink::Plain);
    }

    /// Writes a table. A variant is named in the first of its rows alone.
    fn table(&self, out: &mut String, table: &Table) {
        if let Some(title) = &table.title {
            self.paragraph(out, &title.plain(), "", Ink::Plain);
        }
        let texts = texts(table);
        let widths = widths(&texts, &explanations(table), self.width);
        let is_alike: Vec<bool> =
            (0..widths.len()).map(|i| is_alike(&texts, i, widths[i])).collect();
        for (idx, row) in texts.iter().enumerate() {
            let before = idx.checked_sub(1).filter(|before| *before > 0);
            let is_repeated = before.is_some_and(|before| texts[before][0] == row[0]);
            let mut text = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = if column == 0 && is_repeated { "" } else { cell };
                let cell = match is_alike[column] {
                    true => shorten_middle(cell, *width),
                    false => shorten(cell, *width),
                };
                let padding = " ".repeat(width - cell.chars().count());
                let ink = match idx.checked_sub(1).map(|idx| &table.rows[idx].cells[column]) {
                    None => Ink::Quiet,
                    Some(cell) => verdict(cell).map_or(Ink::Plain, verdict_ink),
                };
                let shown = self.paint(&cell, ink);
                text += if column > 0 { "  " } else { "" };
                let is_number = table.columns[column].is_number;
                text += &if is_number { padding + &shown } else { shown + &padding };
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
    }

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

    fn paragraph(&self, out: &mut String, text: &str, indent: &str, ink: Ink) {
        for line in wrap(&clean(text), self.width.saturating_sub(indent.len())) {
            out.push_str(indent);
            out.push_str(&self.paint(&line, ink));
            out.push('\n');
        }
    }
}

/// Replaces what a terminal would obey; line breaks become spaces.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if dyno_units::is_unsafe_char(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Breaks a text into lines of at most `width` characters, a number never before its unit; longer words are broken too.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    let kept = kept_together(text);
    let words = kept.split(|c: char| c.is_whitespace() && c != FIXED);
    for word in words.filter(|word| !word.is_empty()) {
        let letters = word.chars().filter(|c| *c != JOINER);
        let mut letters: Vec<char> = letters.map(|c| if c == FIXED { ' ' } else { c }).collect();
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

/// The head and the rows of a table as text that steers no terminal.
fn texts(table: &Table) -> Vec<Vec<String>> {
    let head = table.columns.iter().map(|column| clean(&column.head.plain())).collect();
    let rows = table.rows.iter();
    let rows = rows.map(|row| row.cells.iter().map(|cell| clean(&cell.text())).collect());
    std::iter::once(head).chain(rows).collect()
}

fn needed(rows: &[Vec<String>]) -> Vec<usize> {
    let of = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    (0..rows[0].len()).map(of).collect()
}

/// The columns of text behind those that say what a row is of, verdicts apart; the last of them first.
fn explanations(table: &Table) -> Vec<usize> {
    let is_verdict =
        |idx: usize| table.rows.iter().any(|row| row.cells.get(idx).and_then(verdict).is_some());
    let is_one = |idx: &usize| !table.columns[*idx].is_number && !is_verdict(*idx);
    (2..table.columns.len()).filter(is_one).rev().collect()
}

const COLUMN_MIN: usize = 8;

/// Widths of the columns: what they need, explanations and then the first one shortened until the table fits.
fn widths(rows: &[Vec<String>], explanations: &[usize], width: usize) -> Vec<usize> {
    let mut widths = needed(rows);
    for &idx in explanations.iter().chain(&[0]) {
        let total = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        let room = widths[idx].saturating_sub(total.saturating_sub(width));
        widths[idx] = room.max(widths[idx].min(COLUMN_MIN));
    }
    widths
}

/// Whether texts of a column look the same if their ends are cut off.
fn is_alike(rows: &[Vec<String>], column: usize, width: usize) -> bool {
    let whole: BTreeSet<&str> = rows.iter().map(|row| row[column].as_str()).collect();
    let short: BTreeSet<String> = whole.iter().map(|text| shorten(text, width)).collect();
    short.len() < whole.len()
}

fn verdict(cell: &Cell) -> Option<Judged> {
    cell.text.0.iter().find_map(|piece| match piece {
        Piece::Verdict(judged) => Some(*judged),
        _ => None,
    })
}

fn verdict_ink(judged: Judged) -> Ink {
    match judged {
        Judged::Verdict(Verdict::Better) => Ink::Good,
        Judged::Verdict(Verdict::Worse) => Ink::Bad,
        Judged::Verdict(Verdict::NoDifference) => Ink::Plain,
        Judged::Verdict(Verdict::Inconclusive) | Judged::LessDurable { .. } => Ink::Open,
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

fn shorten_middle(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let n_end = width / 2;
    let begin = &letters[..width.saturating_sub(1 + n_end)];
    begin.iter().chain(&['…']).chain(&letters[letters.len() - n_end..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_wrapped_at_words_and_long_words_are_broken() {
        let check = |text: &str, width: usize, expected: &[&str]| {
            assert_eq!(wrap(text, width), expected);
        };
        check("one two three", 7, &["one two", "three"]);
        check("abcdefghij k", 4, &["abcd", "efgh", "ij k"]);
        check("above 2 % of it", 7, &["above", "2 % of", "it"]);
        check("", 10, &[]);
    }

    #[test]
    fn rows_that_are_too_long_stay_apart() {
        let mut table = Table::headed("", "variant | load | #n | relative to");
        table.row([
            "wal-sync-full (run-before)",
            "1 client",
            "5",
            "wal-sync-full of the other run",
        ]);
        table.row(["wal-sync-full (run-after)", "1 client", "5", "wal-sync-full"]);
        let mut out = String::new();
        Screen::new(50, false).blocks(&mut out, &[Block::Table(table.clone())]);
        // What a row is relative to gives way first.
        assert!(out.contains("wal-sync-full (run-before)  ") && out.contains("  5  wal-"), "{out}");
        let mut out = String::new();
        Screen::new(40, false).blocks(&mut out, &[Block::Table(table)]);
        let rows: Vec<&str> = out.lines().skip(1).collect();
        assert!(rows[0].starts_with("wal-sync…-before)"), "{out}");
        assert!(rows[1].starts_with("wal-sync…n-after)"), "{out}");
    }

    #[test]
    fn each_block_has_its_place() {
        let mut table = Table::headed("Of it", "variant | #n");
        table.row(["a", "10"]);
        table.row(["a", "9"]);
        let fold = Block::fold("More", false, vec![Block::List(vec!["one".into()])]);
        let blocks = [
            Block::Title("T".to_owned()),
            Block::Paragraph("first".to_owned()),
            Block::Paragraph("legend".to_owned()),
            Block::Table(table.clone()),
            Block::Table(table),
            fold,
            Block::Messages(Vec::new()),
            Block::Messages(vec!["bad".to_owned()]),
        ];
        let mut out = String::new();
        Screen::new(0, false).blocks(&mut out, &blocks);
        let table = "Of it\nvariant   n\na        10\n          9\n";
        let expected = format!("T\nfirst\n\nlegend\n{table}\n{table}\nMore\n  one\n\nbad\n");
        assert_eq!(out, expected);
    }
}
