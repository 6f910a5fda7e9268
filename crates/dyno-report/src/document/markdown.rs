//! Blocks as GitHub-flavoured Markdown. Text from outside is escaped: it can neither break a table nor
//! become markup.

use dyno_units::is_unsafe_char;

use super::{Block, Cell, Piece, Table, Text};
use crate::words;

pub(crate) fn blocks(out: &mut String, blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Title(text) => *out += &format!("## {}\n\n", escape(text)),
            Block::Headline(headline) => *out += &format!("**{}**\n\n", text(headline)),
            Block::Heading(_, heading) => *out += &format!("### {}\n\n", escape(heading)),
            Block::Paragraph(text) => *out += &format!("{}\n\n", prose(text)),
            Block::Note(_, note) => *out += &format!("{}\n\n", text(note)),
            Block::List(items) if items.is_empty() => {}
            Block::List(items) => {
                items.iter().for_each(|item| *out += &format!("- {}\n", text(item)));
                out.push('\n');
            }
            Block::Messages(items) => {
                items.iter().for_each(|item| *out += &format!("- {}\n", escape(item)));
                out.push('\n');
            }
            Block::Caveats(caveats) => {
                let quoted = caveats.iter().map(|(caveat, _)| {
                    let kind = words::caveat(caveat.kind);
                    let (message, advice) = (prose(&caveat.message), prose(&caveat.advice));
                    format!("> **Caveat: {kind}.** {message} {advice}\n")
                });
                *out += &format!("{}\n", quoted.collect::<Vec<_>>().join(">\n"));
            }
            Block::Table(one) => table(out, one),
            Block::Fold { summary, blocks, .. } => {
                *out += &format!("<details><summary>{}</summary>\n\n", text(summary));
                self::blocks(out, blocks);
                *out += "</details>\n\n";
            }
            Block::Group(_, blocks) => self::blocks(out, blocks),
            // Figures and controls are for a browser.
            Block::Figure(_) | Block::Control(_) => {}
        }
    }
}

fn text(text: &Text) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Prose(text, _) => prose(text),
        other => escape(&Text::of(other.clone()).plain()),
    };
    text.0.iter().map(piece).collect()
}

pub(crate) fn table(out: &mut String, table: &Table) {
    let title = table.title.as_ref().map(Text::plain).unwrap_or_default();
    *out += &if title.is_empty() { title } else { format!("{}:\n\n", escape(&title)) };
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    *out += &row(table.columns.iter().map(|column| escape(&column.head.plain())).collect());
    let rule = |column: &super::Column| if column.is_number { "---:" } else { "---" };
    let rules: Vec<&str> = table.columns.iter().map(rule).collect();
    *out += &format!("|{}|\n", rules.join("|"));
    for one in &table.rows {
        *out += &row(one.cells.iter().map(Cell::text).map(|text| escape(&text)).collect());
    }
    out.push('\n');
}

/// Makes a text harmless: Markdown signs are escaped, HTML too, and line breaks become spaces.
pub(crate) fn escape(text: &str) -> String {
    escape_keeping_ends(text).trim().to_owned()
}

fn escape_keeping_ends(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
                // An issue's number, which a backslash before it does not hide.
                if c == '#' && chars.peek().is_some_and(char::is_ascii_digit) {
                    out.push('\u{200b}');
                }
            }
            // A name behind an @ would be notified of the pull request.
            '@' => out.push_str("@\u{200b}"),
            // GitHub's words for formulas.
            '$' => out.push_str("<span>$</span>"),
            // Behind these, GitHub makes a link of what follows; behind "Fixes", it closes that issue.
            '-' if begins_link(&out, c) && chars.peek().is_some_and(char::is_ascii_digit) => {
                out.push_str("-\u{200b}");
            }
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
pub(crate) fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without its partner is no mark of code. Two beside each other are one mark of another length, and what
    // is code would depend on where the next of that length is.
    if parts.len().is_multiple_of(2) || text.contains("``") {
        return escape(text);
    }
    let mut out = String::new();
    for (i, part) in parts.iter().enumerate() {
        if i % 2 == 1 {
            let code: String =
                part.chars().map(|c| if is_unsafe_char(c) { ' ' } else { c }).collect();
            out += &format!("`{code}`");
        } else {
            out += &escape_keeping_ends(part);
        }
    }
    out.trim().to_owned()
}

/// Whether a text that ends so begins an address when this character follows.
fn begins_link(before: &str, next: char) -> bool {
    let words: &[&str] = match next {
        ':' => &["http", "https", "ftp"],
        '.' => &["www"],
        _ => &["GH"],
    };
    let ends_with = |word: &&str| {
        let start = before.len().checked_sub(word.len());
        start
            .and_then(|start| before.get(start..))
            .is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    words.iter().any(ends_with)
}
