//! A statement that a server received: its kind, and its text with marks for values.

use crate::Dialect;
use crate::declared::sql::{Scanned, Token, is_one_of, trimmed};

use super::Reason;
use super::control::{Change, not_replayed};
use super::dangerous::{
    change_of_executable, ends_alike, has_executable_comment, has_unclear_literal, hints,
    uses_file, uses_server,
};
use super::fixed::Place;
use super::values::{Seen, Shown};

/// Stands in a form where a number was.
pub(super) const NUMBER: char = '\u{1}';
/// Stands in a form where a text was.
pub(super) const TEXT: char = '\u{2}';
/// Stands in a form where a list of numbers was, in `IN (1, 2)`.
pub(super) const NUMBERS: char = '\u{3}';
/// Stands in a form where a list of texts was.
pub(super) const TEXTS: char = '\u{4}';
/// Stands in a form where the number of a numbered table was: `7` of `sbtest7`.
pub(super) const TABLE: char = '\u{5}';
/// Stands in a form where that number was again.
pub(super) const SAME_TABLE: char = '\u{6}';

const TABLE_DIGITS_MOST: usize = 9;

/// Most values of a statement that a study can declare.
pub(super) const VALUES_MOST: usize = 255;
/// Most bytes of a form.
const FORM_MOST: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// It begins or ends a transaction.
    Control(Change),
    Replayed(Box<Form>),
    /// It is left out, whatever it changes of the session.
    LeftOut(Reason, Change),
}

/// A statement to be replayed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Form {
    /// Its text with marks.
    pub(super) text: String,
    /// Its values: for each mark the one, or those of its list.
    pub(super) values: Vec<Vec<Seen>>,
    /// Its first word.
    pub(super) verb: String,
    /// Its first table, if it names one; a numbered one without its number.
    pub(super) table: Option<String>,
    /// The number of its table, if that has been taken out.
    pub(super) table_number: Option<u64>,
    pub(super) is_insert: bool,
}

impl Form {
    pub(super) fn is_routine(&self) -> bool {
        is_routine(&self.verb)
    }
}

/// Whether a statement that begins with this word calls a routine or runs code.
pub(super) fn is_routine(verb: &str) -> bool {
    matches!(verb, "call" | "do")
}

/// Words after which a minus belongs to the number.
const BEFORE_NUMBER: &str = "\
    select returning when then else and or not between limit set values in like by distinct \
    offset return div mod is xor value interval";
/// Types whose names may stand before a literal, but not before a placeholder.
const TYPES: &str = "date time timestamp timestamptz uuid inet cidr json jsonb xml bytea text";
/// Parts of words beside which texts may be secrets.
const SECRET: &str = "\
    passw passphrase passcode pwd secret token crypt credential api_key apikey private_key \
    access_key signature session_id cookie";

/// Reads a statement; `bound` has the values of its parameters `$1`, `$2` …, of which some may be NULL.
pub(super) fn read(
    text: &str,
    bound: &[Option<String>],
    dialect: Dialect,
    has_texts: bool,
) -> Kind {
    let text = trimmed(text);
    let Ok(scanned) = Scanned::of_server(text, dialect) else {
        return Kind::LeftOut(reason_of_unread(text), Change::None);
    };
    if has_executable_comment(text, dialect) {
        return Kind::LeftOut(Reason::Executable, change_of_executable(text));
    }
    if scanned.tokens.is_empty() {
        return Kind::LeftOut(Reason::NotUnderstood, Change::None);
    }
    if let Some(kind) = not_replayed(&scanned, text, dialect) {
        return kind;
    }
    if let Some(reason) = obstacle(&scanned, text, Some(bound.len()), dialect) {
        return Kind::LeftOut(reason, Change::None);
    }
    let verb = first_word(&scanned).to_owned();
    let is_secret = is_secret(&scanned);
    let mut former = Former {
        text,
        scanned: &scanned,
        bound,
        dialect,
        out: String::new(),
        starts: Vec::new(),
        values: Vec::new(),
        fixed: None,
        at: 0,
        end: 0,
        numbered: numbered(&scanned),
        table_number: None,
        shown: match (is_secret, has_texts) {
            (true, _) => Shown::None,
            (false, true) => Shown::All,
            (false, false) => Shown::Words,
        },
    };
    if let Err(reason) = former.form() {
        return Kind::LeftOut(reason, Change::None);
    }
    let Former { out, values, table_number, .. } = former;
    if out.len() > FORM_MOST {
        return Kind::LeftOut(Reason::Long, Change::None);
    }
    let n_values = |slot: &Vec<Seen>| slot.len();
    let lists_only_once = out.contains([NUMBERS, TEXTS]);
    if !lists_only_once && values.iter().map(n_values).sum::<usize>() > VALUES_MOST {
        return Kind::LeftOut(Reason::ManyValues, Change::None);
    }
    if values.len() > VALUES_MOST {
        return Kind::LeftOut(Reason::ManyValues, Change::None);
    }
    let mut table = table_of(&scanned);
    if table_number.is_some()
        && let Some(name) = &mut table
    {
        name.truncate(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    }
    let is_insert = matches!(verb.as_str(), "insert" | "replace");
    Kind::Replayed(Box::new(Form { text: out, values, verb, table, table_number, is_insert }))
}

/// The reason for a statement that does not end: its first word may still say what it is about.
pub(super) fn reason_of_unread(text: &str) -> Reason {
    let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
    match first.as_str() {
        "grant" | "revoke" => Reason::Users,
        "create" | "alter" | "drop" => Reason::Schema,
        _ => Reason::NotUnderstood,
    }
}

pub(super) fn first_word(scanned: &Scanned) -> &str {
    let first = scanned.tokens.iter().position(|token| *token != Token::Sign('('));
    scanned.word(first.unwrap_or(0))
}

/// `n_bound` is the number of parameters with values; none allows all placeholders.
pub(super) fn obstacle(
    scanned: &Scanned,
    text: &str,
    n_bound: Option<usize>,
    dialect: Dialect,
) -> Option<Reason> {
    if scanned.names().next().is_some() {
        return Some(Reason::Colon);
    }
    let mut open = 0_i64;
    for (idx, token) in scanned.tokens.iter().enumerate() {
        match token {
            Token::Sign(';') => return Some(Reason::Several),
            // With a setting of MariaDB, names are in such brackets.
            Token::Sign('[') if dialect == Dialect::MySql => return Some(Reason::NotUnderstood),
            Token::Sign('0') if hides_word(&text[scanned.spans[idx].clone()], dialect) => {
                return Some(Reason::NotUnderstood);
            }
            Token::Sign('(') => open += 1,
            Token::Sign(')') => open -= 1,
            Token::Sign('?' | '$') if n_bound.is_none() => {}
            Token::Sign('?') if dialect != Dialect::PostgreSql => return Some(Reason::Placeholder),
            Token::Sign('$') => {
                let n_bound = n_bound.unwrap_or(0);
                let number = text[scanned.spans[idx].clone()][1..].parse::<usize>();
                if !number.is_ok_and(|number| (1..=n_bound).contains(&number)) {
                    return Some(Reason::Placeholder);
                }
            }
            Token::Sign('@') if dialect == Dialect::MySql => {
                let is_system = idx > 0 && scanned.tokens[idx - 1] == Token::Sign('@');
                let next = scanned.tokens.get(idx + 1);
                if !is_system && next.is_some_and(|next| *next != Token::Sign('@')) {
                    return Some(Reason::Variable);
                }
            }
            _ => {}
        }
        if open < 0 {
            return Some(Reason::NotUnderstood);
        }
    }
    // Where no values are known, the text stays as it is.
    if n_bound.is_none() && has_unclear_literal(text, scanned, dialect) {
        return Some(Reason::NotUnderstood);
    }
    if uses_server(scanned, text, dialect) {
        return Some(Reason::Server);
    }
    // The server writes it for the variables of routines.
    if dialect == Dialect::MySql && scanned.has_word("name_const") {
        return Some(Reason::Inner);
    }
    if uses_file(scanned, text, dialect) {
        return Some(Reason::File);
    }
    (open != 0).then_some(Reason::NotUnderstood)
}

/// Whether another word begins within what was read as a number: `1into`, `1.5union`. In MariaDB and MySQL, names
/// may begin with digits: `2fa`.
fn hides_word(text: &str, dialect: Dialect) -> bool {
    let lower = text.to_ascii_lowercase();
    if ["0x", "0b", "0o"].iter().any(|begin| lower.starts_with(begin)) {
        return !lower[2..].bytes().all(|c| c.is_ascii_hexdigit() || c == b'_');
    }
    let rest = lower.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_'));
    let exponent = rest.strip_prefix('e');
    let is_number = exponent
        .map_or(rest.is_empty(), |rest| rest.bytes().all(|c| c.is_ascii_digit() || c == b'_'));
    let has_number = lower.contains('.')
        || exponent.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    !is_number && (dialect != Dialect::MySql || has_number)
}

fn is_secret(scanned: &Scanned) -> bool {
    (0..scanned.tokens.len()).any(|idx| scanned.named(idx).is_some_and(names_secret))
}

pub(super) fn names_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET.split(' ').any(|part| name.contains(part))
}

pub(super) fn table_of(scanned: &Scanned) -> Option<String> {
    let marks = match first_word(scanned) {
        "update" => &["update"][..],
        "insert" | "replace" => &["into", "insert", "replace"][..],
        _ => &["from", "into", "update", "call"][..],
    };
    let positions = marks.iter().filter_map(|mark| scanned.find_word(&[mark]));
    let mut names = positions.filter_map(|at| scanned.name(at + 1));
    names.next().map(|(name, _)| name)
}

/// Of the only numbered table, such as `sbtest7`; empty without one, or with several.
fn numbered(scanned: &Scanned) -> Vec<usize> {
    let mut named: Vec<usize> = Vec::new();
    for idx in (0..scanned.tokens.len()).filter(|&idx| scanned.precedes_table(idx)) {
        let mut last = idx + 1;
        while scanned.named(last).is_some() && scanned.is_sign(last + 1, '.') {
            last += 2;
        }
        let is_numbered = |name: &str| {
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let digits = &name[stem.len()..];
            !stem.is_empty()
                && (1..=TABLE_DIGITS_MOST).contains(&digits.len())
                && !digits.starts_with('0')
        };
        // A function in FROM is none.
        let may_be = scanned.word(idx) == "into" || !scanned.is_sign(last + 1, '(');
        if may_be && scanned.named(last).is_some_and(is_numbered) {
            named.push(last);
        }
    }
    let Some(name) = named.first().and_then(|&idx| scanned.named(idx)) else { return Vec::new() };
    if named.iter().any(|&idx| scanned.named(idx) != Some(name)) {
        return Vec::new();
    }
    // Also where it says whose column is meant.
    let qualifies = |idx: usize| scanned.named(idx) == Some(name) && scanned.is_sign(idx + 1, '.');
    let is_named = |idx: &usize| named.binary_search(idx).is_ok();
    (0..scanned.tokens.len()).filter(|idx| is_named(idx) || qualifies(*idx)).collect()
}

struct Former<'a> {
    text: &'a str,
    scanned: &'a Scanned,
    bound: &'a [Option<String>],
    dialect: Dialect,
    out: String,
    /// Length of `out` before each token.
    starts: Vec<usize>,
    values: Vec<Vec<Seen>>,
    /// The last number that stayed in the text.
    fixed: Option<usize>,
    at: usize,
    end: usize,
    /// The tokens that name the numbered table, in their order.
    numbered: Vec<usize>,
    table_number: Option<u64>,
    shown: Shown,
}

impl Former<'_> {
    fn form(&mut self) -> Result<(), Reason> {
        while self.at < self.scanned.tokens.len() {
            let at = self.at;
            self.gap();
            if self.list()? || self.literal()? || self.table()? || self.null() {
                continue;
            }
            let span = self.scanned.spans[at].clone();
            self.push(span.end, 1);
            let text = &self.text[span];
            if text.contains(|c: char| ('\u{1}'..='\u{6}').contains(&c)) {
                return Err(Reason::NotUnderstood);
            }
            self.out.push_str(text);
        }
        Ok(())
    }

    /// Steps over so many tokens, which end there.
    fn push(&mut self, end: usize, n_tokens: usize) {
        for _ in 0..n_tokens {
            self.starts.push(self.out.len());
        }
        self.at += n_tokens;
        self.end = end;
    }

    /// Writes what is between two tokens: a blank, or a hint.
    fn gap(&mut self) {
        let begin = self.scanned.spans[self.at].start;
        if self.end < begin {
            self.blank();
        }
        for hint in hints(&self.text[self.end.min(begin)..begin], self.dialect) {
            self.out.push_str(hint);
            self.blank();
        }
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
    }

    fn token(&self, idx: usize) -> Option<&Token> {
        self.scanned.tokens.get(idx)
    }

    /// Whether nothing is between this token and the one before.
    fn is_joined(&self, idx: usize) -> bool {
        idx > 0 && self.scanned.spans[idx - 1].end == self.scanned.spans[idx].start
    }

    /// Reads `(1, 2, 3)` behind IN as one list.
    fn list(&mut self) -> Result<bool, Reason> {
        if self.scanned.word_before(self.at) != "in" || !self.scanned.is_sign(self.at, '(') {
            return Ok(false);
        }
        let mut idx = self.at + 1;
        let mut seen: Vec<Seen> = Vec::new();
        let mut is_of_texts = None;
        loop {
            let Some((after, one, is_text)) = self.value(idx)? else { return Ok(false) };
            if is_of_texts.is_some_and(|of_texts| of_texts != is_text) {
                return Ok(false);
            }
            is_of_texts = Some(is_text);
            seen.push(one);
            if seen.len() > 1000 {
                return Err(Reason::ManyValues);
            }
            idx = after + 1;
            if self.scanned.is_sign(after, ')') {
                break;
            }
            if !self.scanned.is_sign(after, ',') {
                return Ok(false);
            }
        }
        let end = self.scanned.spans[idx - 1].end;
        self.push(end, idx - self.at);
        self.out.push('(');
        self.out.push(if is_of_texts == Some(true) { TEXTS } else { NUMBERS });
        self.out.push(')');
        self.values.push(seen);
        Ok(true)
    }

    /// The value of a parameter; none if it is NULL.
    fn parameter(&self, at: usize) -> Option<&str> {
        let number: usize = self.text[self.scanned.spans[at].clone()].get(1..)?.parse().ok()?;
        self.bound.get(number.checked_sub(1)?)?.as_deref()
    }

    fn null(&mut self) -> bool {
        let is_null = self.scanned.is_sign(self.at, '$');
        if is_null {
            self.push(self.scanned.spans[self.at].end, 1);
            self.out.push_str("NULL");
        }
        is_null
    }

    /// Writes the name of a numbered table with a mark for its number.
    fn table(&mut self) -> Result<bool, Reason> {
        let at = self.at;
        if self.numbered.binary_search(&at).is_err() {
            return Ok(false);
        }
        let span = self.scanned.spans[at].clone();
        let text = &self.text[span.clone()];
        if text.contains(|c: char| ('\u{1}'..='\u{6}').contains(&c)) {
            return Err(Reason::NotUnderstood);
        }
        let name = text.trim_end_matches(['`', '"', ']']);
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[stem.len()..];
        let number = digits.parse().map_err(|_| Reason::NotUnderstood)?;
        self.push(span.end, 1);
        self.out.push_str(stem);
        match self.table_number {
            None => {
                self.out.push(TABLE);
                self.values.extend(Seen::number(digits).map(|seen| vec![seen]));
                self.table_number = Some(number);
            }
            Some(_) => self.out.push(SAME_TABLE),
        }
        self.out.push_str(&text[name.len()..]);
        Ok(true)
    }

    fn literal(&mut self) -> Result<bool, Reason> {
        let at = self.at;
        let Some((after, seen, is_text)) = self.value(at)? else { return Ok(false) };
        let end = self.scanned.spans[after - 1].end;
        let place = Place {
            scanned: self.scanned,
            dialect: self.dialect,
            at,
            after,
            is_text,
            is_secret: self.shown == Shown::None,
            is_joined: self.is_joined(at),
            fixed: self.fixed,
        };
        if !self.scanned.is_sign(at, '$') && place.is_fixed() {
            let begin = self.scanned.spans[at].start;
            let text = self.kept(&self.text[begin..end])?;
            if self.shown != Shown::All && place.is_value(&text) {
                return Err(Reason::Literal);
            }
            self.push(end, after - at);
            self.out.push_str(&text);
            self.fixed = Some(after - 1);
            return Ok(true);
        }
        let kind = if is_text { self.without_prefix(at) } else { None };
        self.push(end, after - at);
        let mark = if is_text { TEXT } else { NUMBER };
        match kind {
            Some(kind) => {
                self.out.push_str("CAST(");
                self.out.push(mark);
                self.out.push_str(&format!(" AS {kind})"));
            }
            None => self.out.push(mark),
        }
        self.values.push(vec![seen]);
        Ok(true)
    }

    /// A literal that stays, so that all servers read it to the same end.
    fn kept(&self, literal: &str) -> Result<String, Reason> {
        let before = self.scanned.word_before(self.at);
        match self.dialect {
            // There an E before it says that backslashes are escapes, and nothing else does for all servers.
            Dialect::PostgreSql if literal.starts_with('\'') && before != "e" => {
                match literal.contains('\\') {
                    true if self.is_joined(self.at) && !before.is_empty() => {
                        Err(Reason::NotUnderstood)
                    }
                    true => Ok(format!("E{}", literal.replace('\\', "\\\\"))),
                    false => Ok(literal.to_owned()),
                }
            }
            Dialect::MySql if !ends_alike(literal) => Err(Reason::NotUnderstood),
            _ => Ok(literal.to_owned()),
        }
    }

    /// Takes back a word that belongs to a literal, as in `E'…'` and `DATE '…'`; the type that it names.
    fn without_prefix(&mut self, at: usize) -> Option<&'static str> {
        let word = self.scanned.word_before(at).to_owned();
        let start = *self.starts.last()?;
        // MySQL has three of them.
        let n_types = if self.dialect == Dialect::PostgreSql { usize::MAX } else { 3 };
        let typed = TYPES.split(' ').take(n_types).find(|name| *name == word);
        if self.is_joined(at) && (["e", "n"].contains(&word.as_str()) || word.starts_with('_')) {
            self.out.truncate(start);
            return None;
        }
        if word.starts_with("_utf8") || word.starts_with("_latin") {
            self.out.truncate(start);
            return None;
        }
        let typed = typed?;
        self.out.truncate(start);
        Some(match (typed, self.dialect) {
            ("timestamp", Dialect::MySql) => "datetime",
            (name, _) => name,
        })
    }

    /// The value that begins at a token: the index behind it, what was seen, and whether it is a text.
    fn value(&self, at: usize) -> Result<Option<(usize, Seen, bool)>, Reason> {
        match self.token(at) {
            Some(Token::Sign('\'')) => {
                let before = self.scanned.word_before(at);
                let is_binary = self.is_joined(at) && ["x", "b"].contains(&before)
                    || before == "_binary"
                    || (at > 1
                        && self.scanned.is_sign(at - 1, '&')
                        && self.scanned.word(at - 2) == "u");
                if is_binary {
                    return Err(Reason::Binary);
                }
                let raw = &self.text[self.scanned.spans[at].clone()];
                let has_escapes = self.dialect == Dialect::MySql || before == "e";
                let text = meant(raw, has_escapes);
                Ok(Some((at + 1, Seen::text(&text, self.shown), true)))
            }
            Some(Token::Sign('$')) => {
                let Some(text) = self.parameter(at) else { return Ok(None) };
                let seen = Seen::bound(text, self.shown);
                let is_text = !seen.is_bound_number();
                Ok(Some((at + 1, seen, is_text)))
            }
            _ => self.number(at),
        }
    }

    fn number(&self, at: usize) -> Result<Option<(usize, Seen, bool)>, Reason> {
        let mut idx = at;
        if self.scanned.is_sign(idx, '-') && self.is_unary(idx) {
            idx += 1;
        }
        if self.scanned.is_sign(idx, '.') && (idx == 0 || !self.is_joined(idx)) {
            idx += 1;
        }
        if !self.scanned.is_sign(idx, '0') || (idx > at && !self.is_joined(idx)) {
            return Ok(None);
        }
        let of = |idx: usize| &self.text[self.scanned.spans[idx].clone()];
        if of(idx).starts_with("0x") || of(idx).starts_with("0b") {
            return Err(Reason::Binary);
        }
        let is_sign = self.scanned.is_sign(idx + 1, '-') || self.scanned.is_sign(idx + 1, '+');
        let is_exponent = of(idx).ends_with(['e', 'E'])
            && is_sign
            && self.scanned.is_sign(idx + 2, '0')
            && self.is_joined(idx + 1)
            && self.is_joined(idx + 2);
        let last = if is_exponent { idx + 2 } else { idx };
        let text = &self.text[self.scanned.spans[at].start..self.scanned.spans[last].end];
        Ok(Seen::number(text).map(|seen| (last + 1, seen, false)))
    }

    /// Whether a minus belongs to the number behind it.
    fn is_unary(&self, at: usize) -> bool {
        match at.checked_sub(1).map(|idx| &self.scanned.tokens[idx]) {
            None => true,
            Some(Token::Sign(sign)) => "(,=<>+*/%|&^".contains(*sign),
            Some(Token::Word(word)) => is_one_of(word, BEFORE_NUMBER),
            Some(Token::Quoted(_)) => false,
        }
    }
}

fn meant(raw: &str, has_escapes: bool) -> String {
    if raw.starts_with('$') {
        let tag = raw[1..].find('$').map_or(1, |end| end + 2);
        return raw.get(tag..raw.len().saturating_sub(tag)).unwrap_or_default().to_owned();
    }
    let quote = raw.chars().next().unwrap_or('\'');
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c == quote {
            chars.next();
            out.push(quote);
        } else if c == '\\' && has_escapes {
            out.extend(chars.next().map(|c| match c {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                c => c,
            }));
        } else {
            out.push(c);
        }
    }
    out
}
