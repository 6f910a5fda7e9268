//! SQL commands of a script: where one ends, and the variables in it.

use crate::variables::Variables;
use crate::variables::{Names, Slot, begins_name, continues_name};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sql {
    pub parts: Vec<Part>,
    pub keeps: Keeps,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// A variable, as it is written, with its colon.
    Variable(Slot, String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keeps {
    #[default]
    Nothing,
    /// `\gset`: the columns of the last query, which has one row, become variables with this prefix.
    Last(String),
    /// `\aset`: the columns of the last rows of all queries do.
    All(String),
}

pub(crate) const PARAMETERS_MOST: usize = 255;

impl Sql {
    pub(crate) fn new(text: &str, names: &mut Names) -> Sql {
        let mut parts = Vec::new();
        let (mut from, mut at) = (0, 0);
        let bytes = text.as_bytes();
        while at < bytes.len() {
            if bytes[at] != b':' {
                at += 1;
                continue;
            }
            let Some(end) = variable_end(bytes, at) else {
                // Colons that follow one another are no variable's: `x::int`.
                while bytes.get(at) == Some(&b':') {
                    at += 1;
                }
                continue;
            };
            if from < at {
                parts.push(Part::Text(text[from..at].to_owned()));
            }
            parts.push(Part::Variable(names.slot(&text[at + 1..end]), text[at..end].to_owned()));
            (from, at) = (end, end);
        }
        if from < text.len() {
            parts.push(Part::Text(text[from..].to_owned()));
        }
        Sql { parts, keeps: Keeps::Nothing }
    }

    pub fn text(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) | Part::Variable(_, text) => text.clone(),
        };
        self.parts.iter().map(text).collect()
    }

    /// Appends the text with the values of the variables, for the simple protocol. What is undefined
    /// stays as it is written.
    pub fn write_with_values(&self, variables: &Variables, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Variable(slot, written) => {
                    if !variables.write_text(*slot, out) {
                        out.extend_from_slice(written.as_bytes());
                    }
                }
            }
        }
    }

    /// The text with `$1`, `$2` … for its variables.
    pub fn numbered(&self) -> String {
        let mut position = 0;
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Variable(..) => {
                position += 1;
                format!("${position}")
            }
        };
        self.parts.iter().map(text).collect()
    }

    pub fn parameters(&self) -> impl Iterator<Item = Slot> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(slot, _) => Some(*slot),
            Part::Text(_) => None,
        })
    }

    /// Why the command cannot be sent with parameters; none if it can.
    pub fn too_many_parameters(&self) -> Option<String> {
        let what = format!("statement has too many arguments (maximum is {PARAMETERS_MOST})");
        (self.parameters().count() > PARAMETERS_MOST).then(|| format!("{what}: {}", self.text()))
    }
}

/// The end of the variable whose colon is at `at`; none if no name follows.
fn variable_end(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at + 1).filter(|byte| begins_name(**byte))?;
    let rest = &bytes[at + 1..];
    let length = rest.iter().position(|byte| !continues_name(*byte)).unwrap_or(rest.len());
    Some(at + 1 + length)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Semicolon,
    /// A backslash, which was read.
    Backslash,
    EndOfFile,
}

/// Splits a script into SQL and backslash commands, by psql's rules.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    pub(crate) at: usize,
    n_open: usize,
    n_begun: usize,
    // Of the words of the command so far.
    n_words: usize,
    // First letters of the words that make a CREATE FUNCTION or PROCEDURE.
    initials: [u8; 4],
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0, n_open: 0, n_begun: 0, n_words: 0, initials: [0; 4] }
    }

    pub(crate) fn scan(&mut self, out: &mut String) -> Stop {
        loop {
            let rest = &self.text[self.at..];
            let bytes = rest.as_bytes();
            let Some(&byte) = bytes.first() else { return Stop::EndOfFile };
            let length = match byte {
                b';' if self.n_open == 0 && self.n_begun == 0 => {
                    self.at += 1;
                    out.push(';');
                    self.n_words = 0;
                    return Stop::Semicolon;
                }
                b'\\' => match bytes.get(1) {
                    Some(&next @ (b';' | b':')) => {
                        out.push(char::from(next));
                        self.at += 2;
                        continue;
                    }
                    _ => {
                        self.at += 1;
                        return Stop::Backslash;
                    }
                },
                // White space and comments up to the end of the line count only within a command.
                b' ' | b'\t' | b'\r' | b'\n' | b'\x0b' | b'\x0c' => {
                    self.skip(1, out);
                    continue;
                }
                b'-' if bytes.get(1) == Some(&b'-') => {
                    self.skip(rest.find(['\n', '\r']).unwrap_or(rest.len()), out);
                    continue;
                }
                b'/' if bytes.get(1) == Some(&b'*') => {
                    comment_length(bytes, true).unwrap_or(bytes.len())
                }
                b'\'' => quoted(bytes, 1, b'\'', false),
                b'"' => quoted(bytes, 1, b'"', false),
                b'$' => dollar_quoted(rest),
                b'(' | b')' => {
                    let open = self.n_open;
                    self.n_open = if byte == b'(' { open + 1 } else { open.saturating_sub(1) };
                    1
                }
                byte if begins_name(byte) => self.word(bytes),
                byte if byte.is_ascii_digit() => {
                    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
                    bytes.iter().position(|byte| !is_number(byte)).unwrap_or(bytes.len())
                }
                _ => rest.chars().next().map_or(1, char::len_utf8),
            };
            out.push_str(&rest[..length]);
            self.at += length;
        }
    }

    fn skip(&mut self, length: usize, out: &mut String) {
        if !out.is_empty() {
            out.push_str(&self.text[self.at..self.at + length]);
        }
        self.at += length;
    }

    /// A word, or a text whose quote it begins; notes where the body of a function begins and ends.
    fn word(&mut self, bytes: &[u8]) -> usize {
        let is_word = |byte: &u8| continues_name(*byte) || *byte == b'$';
        let length = bytes.iter().position(|byte| !is_word(byte)).unwrap_or(bytes.len());
        let word = &bytes[..length];
        if bytes.get(length) == Some(&b'\'') && matches!(word, b"e" | b"E") {
            return quoted(bytes, length + 1, b'\'', true);
        }
        let is = |text: &str| word.eq_ignore_ascii_case(text.as_bytes());
        if self.n_words == 0 {
            self.initials = [0; 4];
        }
        if ["create", "function", "procedure", "or", "replace"].iter().any(|text| is(text))
            && let Some(initial) = self.initials.get_mut(self.n_words)
        {
            *initial = word[0].to_ascii_lowercase();
        }
        self.n_words += 1;
        let makes_routine =
            matches!(self.initials, [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']);
        if makes_routine && self.n_open == 0 {
            if is("begin") || (is("case") && self.n_begun > 0) {
                self.n_begun += 1;
            } else if is("end") {
                self.n_begun = self.n_begun.saturating_sub(1);
            }
        }
        length
    }
}

/// The length of a quoted text that begins before `at`; up to the end of the file if it is open.
fn quoted(bytes: &[u8], mut at: usize, quote: u8, has_escapes: bool) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte == b'\\' && has_escapes {
            at += 1;
        } else if byte == quote {
            if bytes.get(at) != Some(&quote) {
                return at;
            }
            at += 1;
        }
    }
    bytes.len()
}

/// The length of the comment with which a text begins; if they nest, it may hold others. None if it does not end.
pub fn comment_length(text: &[u8], nest: bool) -> Option<usize> {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        match text.get(at..)? {
            [] => return None,
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            [b'/', b'*', ..] if nest => (at, depth) = (at + 2, depth + 1),
            _ => at += 1,
        }
    }
    Some(at)
}

/// The length of a text between `$tag$` and `$tag$`; 1 if the dollar begins none.
fn dollar_quoted(rest: &str) -> usize {
    let Some(end) = rest[1..].find('$') else { return 1 };
    let tag = &rest.as_bytes()[1..=end];
    let is_tag = tag.first().is_none_or(|byte| begins_name(*byte))
        && tag.iter().all(|byte| continues_name(*byte));
    if !is_tag {
        return 1;
    }
    let delimiter = &rest[..end + 2];
    let end = rest[delimiter.len()..].find(delimiter);
    end.map_or(rest.len(), |at| at + 2 * delimiter.len())
}
