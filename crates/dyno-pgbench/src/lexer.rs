//! Words and tokens of backslash commands, up to the end of their line.

use crate::variables::{begins_name, continues_name, double};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// One of [`SIGNS`] or [`KEYWORDS`].
    Known(&'static str),
    Boolean(bool),
    Integer(i64),
    /// 9223372036854775808, which a minus makes a whole number.
    TooLargeByOne,
    Double(f64),
    Variable(String),
    Word(String),
    End,
}

/// Signs, the longer ones first.
const SIGNS: [&str; 21] = [
    "<=", ">=", "<>", "!=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "|", "&", "#", "~",
    "(", ")", ",",
];

const KEYWORDS: [&str; 12] =
    ["and", "or", "not", "is", "isnull", "notnull", "case", "when", "then", "else", "end", "null"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: &'static str,
    /// What it is about, in parentheses.
    pub(crate) about: Option<String>,
    /// The byte of the script that is pointed at.
    pub(crate) at: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) at: usize,
}

pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    // The line has ended, and its newline was read.
    has_ended: bool,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c')
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, at: usize) -> Lexer<'a> {
        Lexer { text, at, has_ended: false }
    }

    /// The byte behind what was read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Skips white space and continued lines; false at the end of the line.
    fn skip_space(&mut self) -> bool {
        loop {
            match self.peek(0) {
                None => return false,
                Some(b'\n') => {
                    self.at += usize::from(!self.has_ended);
                    self.has_ended = true;
                    return false;
                }
                Some(b'\\') if self.peek(1) == Some(b'\n') => self.at += 2,
                Some(byte) if is_space(byte) => self.at += 1,
                Some(_) => return true,
            }
        }
    }

    /// The next word; none at the end of the line.
    pub(crate) fn word(&mut self) -> Option<Word> {
        if self.has_ended || !self.skip_space() {
            return None;
        }
        let start = self.at;
        while let Some(byte) = self.peek(0)
            && byte != b'\n'
            && !is_space(byte)
        {
            self.at += 1;
        }
        let mut end = self.at;
        if self.peek(0) == Some(b'\n') && end > start + 1 && self.text.as_bytes()[end - 1] == b'\\'
        {
            end -= 1;
            self.at += 1;
        }
        Some(Word { text: self.text[start..end].to_owned(), at: start })
    }

    /// An error at the end of the latest token.
    pub(crate) fn problem(&self, message: &'static str, about: Option<&str>) -> Problem {
        Problem { message, about: about.map(str::to_owned), at: Some(self.at.saturating_sub(1)) }
    }

    /// The next token of an expression.
    /// Fails if a character begins none, or a number is too large.
    pub(crate) fn next_token(&mut self) -> Result<Token, Problem> {
        if self.has_ended || !self.skip_space() {
            return Ok(Token::End);
        }
        let rest = &self.text.as_bytes()[self.at..];
        match rest {
            [b':', next, ..] if begins_name(*next) => return Ok(self.variable()),
            [b'.', digit, ..] if digit.is_ascii_digit() => return self.number(),
            [digit, ..] if digit.is_ascii_digit() => return self.number(),
            [byte, ..] if begins_name(*byte) => return Ok(self.keyword()),
            _ => {}
        }
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign.as_bytes()));
        let sign = sign.ok_or_else(|| self.unexpected_character())?;
        self.at += sign.len();
        Ok(Token::Known(sign))
    }

    fn unexpected_character(&mut self) -> Problem {
        let c = self.text[self.at..].chars().next().unwrap_or('?').to_string();
        self.at += c.len();
        self.problem("unexpected character", Some(&c))
    }

    fn name(&mut self, start: usize) -> &'a str {
        while self.peek(0).is_some_and(continues_name) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn variable(&mut self) -> Token {
        self.at += 1;
        Token::Variable(self.name(self.at).to_owned())
    }

    fn keyword(&mut self) -> Token {
        let word = self.name(self.at);
        let lower = word.to_ascii_lowercase();
        match (lower.as_str(), KEYWORDS.into_iter().find(|keyword| *keyword == lower)) {
            ("true", _) => Token::Boolean(true),
            ("false", _) => Token::Boolean(false),
            (_, Some(keyword)) => Token::Known(keyword),
            (_, None) => Token::Word(word.to_owned()),
        }
    }

    fn digits(&mut self) {
        while self.peek(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Token, Problem> {
        let start = self.at;
        self.digits();
        let n_whole = self.at - start;
        if self.peek(0) == Some(b'.') {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
            if self.peek(1 + sign).is_some_and(|byte| byte.is_ascii_digit()) {
                self.at += 1 + sign;
                self.digits();
            }
        }
        let text = &self.text[start..self.at];
        if text.len() == n_whole {
            return match text.parse() {
                Ok(value) => Ok(Token::Integer(value)),
                Err(_) if text == "9223372036854775808" => Ok(Token::TooLargeByOne),
                Err(_) => Err(self.problem("bigint constant overflow", Some(text))),
            };
        }
        double(text)
            .map(Token::Double)
            .ok_or_else(|| self.problem("double constant overflow", Some(text)))
    }
}
