//! A statement that a server received: its kind, and its text with marks for values.

use crate::Dialect;
use crate::declared::sql::{Scanned, Token, in_quotes, is_one_of, trimmed};

use super::Reason;
use super::control::{
    Change, change_of_executable, ends_alike, has_executable_comment, has_unclear_literal, hints,
    not_replayed, uses_file, uses_server,
};
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
const FORM_MOST: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// It begins or ends a transaction.
    Control(Change),
    Replayed(Box<Form>),
    /// It is left out, whatever it changes of the session.
    LeftOut(Reason, Change),
}

/// A statement without its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template {
    /// Its text with marks.
    pub(super) text: String,
    pub(super) verb: String,
    /// Its first table, if it names one; a numbered one without its number.
    pub(super) table: Option<String>,
    pub(super) is_insert: bool,
}

pub(super) fn is_mark(c: char) -> bool {
    [NUMBER, TEXT, NUMBERS, TEXTS, TABLE].contains(&c)
}

impl Template {
    /// Its marks, one for each value.
    pub(super) fn marks(&self) -> impl Iterator<Item = char> {
        self.text.chars().filter(|c| is_mark(*c))
    }

    pub(super) fn changes_rows(&self) -> bool {
        matches!(&*self.verb, "insert" | "update" | "delete" | "replace" | "merge")
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Form {
    pub(super) template: Template,
    /// Its values: for each mark the one, or those of its list.
    pub(super) values: Vec<Vec<Seen>>,
    /// The number of its table, if that has been taken out.
    pub(super) table_number: Option<u64>,
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

/// The values of the parameters `$1`, `$2` … of a statement, of which some may be NULL.
pub(super) type Bound = [Option<String>];

pub(super) fn read(text: &str, bound: &Bound, dialect: Dialect, has_texts: bool) -> Kind {
    let understood = understood(trimmed(text), bound, dialect, has_texts);
    understood.unwrap_or_else(|reason| Kind::LeftOut(reason, Change::None))
}

fn understood(text: &str, bound: &Bound, dialect: Dialect, texts: bool) -> Result<Kind, Reason> {
    let scanned = scan(text, dialect)?;
    if has_executable_comment(text, dialect) {
        return Ok(Kind::LeftOut(Reason::Executable, change_of_executable(text)));
    }
    if scanned.tokens.is_empty() {
        return Err(Reason::NotUnderstood);
    }
    if let Some(kind) = not_replayed(&scanned) {
        return Ok(kind);
    }
    obstacle(&scanned, Some(bound.len()))?;
    let former = Former {
        scanned: &scanned,
        bound,
        out: String::new(),
        starts: Vec::new(),
        values: Vec::new(),
        fixed: None,
        at: 0,
        end: 0,
        numbered: numbered(&scanned),
        table_number: None,
        shown: match (is_secret(&scanned), texts) {
            (true, _) => Shown::None,
            (false, true) => Shown::All,
            (false, false) => Shown::Words,
        },
    };
    Ok(Kind::Replayed(Box::new(former.form()?)))
}

/// Scans a statement. If it does not end, its first word may still say what it is about.
pub(super) fn scan(text: &str, dialect: Dialect) -> Result<Scanned<'_>, Reason> {
    let first = || text.split_whitespace().next().unwrap_or_default().to_lowercase();
    Scanned::of_server(text, dialect).map_err(|_| match first().as_str() {
        "grant" | "revoke" => Reason::Users,
        "create" | "alter" | "drop" => Reason::Schema,
        _ => Reason::NotUnderstood,
    })
}

pub(super) fn first_word<'s>(scanned: &'s Scanned<'_>) -> &'s str {
    let first = scanned.tokens.iter().position(|token| *token != Token::Sign('('));
    scanned.word(first.unwrap_or(0))
}

/// `n_bound` is the number of parameters with values; none allows all placeholders.
pub(super) fn obstacle(scanned: &Scanned<'_>, n_bound: Option<usize>) -> Result<(), Reason> {
    let is_mysql = scanned.is_mysql();
    if scanned.names().next().is_some() {
        return Err(Reason::Colon);
    }
    let mut open = 0_i64;
    for (idx, token) in scanned.tokens.iter().enumerate() {
        match token {
            Token::Sign(';') => return Err(Reason::Several),
            // With a setting of MariaDB, names are in such brackets.
            Token::Sign('[') if is_mysql => return Err(Reason::NotUnderstood),
            Token::Sign('0') if hides_word(scanned.at(idx), scanned.dialect) => {
                return Err(Reason::NotUnderstood);
            }
            Token::Sign('(') => open += 1,
            Token::Sign(')') => open -= 1,
            Token::Sign('?' | '$') if n_bound.is_none() => {}
            Token::Sign('?') if scanned.dialect != Dialect::PostgreSql => {
                return Err(Reason::Placeholder);
            }
            Token::Sign('$') => {
                let known = 1..=n_bound.unwrap_or(0);
                let number = scanned.at(idx)[1..].parse::<usize>();
                if !number.is_ok_and(|number| known.contains(&number)) {
                    return Err(Reason::Placeholder);
                }
            }
            Token::Sign('@') if is_mysql => {
                let is_system = idx > 0 && scanned.is_sign(idx - 1, '@');
                let next = scanned.tokens.get(idx + 1);
                if !is_system && next.is_some_and(|next| *next != Token::Sign('@')) {
                    return Err(Reason::Variable);
                }
            }
            _ => {}
        }
        if open < 0 {
            return Err(Reason::NotUnderstood);
        }
    }
    // Where no values are known, the text stays as it is.
    if n_bound.is_none() && has_unclear_literal(scanned) {
        return Err(Reason::NotUnderstood);
    }
    if uses_server(scanned) {
        return Err(Reason::Server);
    }
    // The server writes it for the variables of routines.
    if is_mysql && scanned.has_word("name_const") {
        return Err(Reason::Inner);
    }
    if uses_file(scanned) {
        return Err(Reason::File);
    }
    if open == 0 { Ok(()) } else { Err(Reason::NotUnderstood) }
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

fn is_secret(scanned: &Scanned<'_>) -> bool {
    (0..scanned.tokens.len()).any(|idx| scanned.named(idx).is_some_and(names_secret))
}

pub(super) fn names_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET.split(' ').any(|part| name.contains(part))
}

pub(super) fn table_of(scanned: &Scanned<'_>) -> Option<String> {
    let marks = match first_word(scanned) {
        "update" => &["update"][..],
        "insert" | "replace" => return scanned.inserted().map(|(name, _)| name),
        _ => &["from", "into", "update", "call"][..],
    };
    let positions = marks.iter().filter_map(|mark| scanned.find_word(&[mark]));
    let mut names = positions.filter_map(|at| scanned.name(at + 1));
    names.next().map(|(name, _)| name)
}

/// A name without the number at its end.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Of the only numbered table, such as `sbtest7`; empty without one, or with several.
fn numbered(scanned: &Scanned<'_>) -> Vec<usize> {
    let mut named: Vec<usize> = Vec::new();
    for idx in (0..scanned.tokens.len()).filter(|&idx| scanned.precedes_table(idx)) {
        let mut last = idx + 1;
        while scanned.named(last).is_some() && scanned.is_sign(last + 1, '.') {
            last += 2;
        }
        let is_numbered = |name: &str| {
            let digits = &name[stem(name).len()..];
            digits.len() < name.len()
                && (1..=TABLE_DIGITS_MOST).contains(&digits.len())
                && !digits.starts_with('0')
        };
        // A function in FROM is none.
        let may_be = !is_one_of(scanned.word(idx), "from join") || !scanned.is_sign(last + 1, '(');
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
    scanned: &'a Scanned<'a>,
    bound: &'a Bound,
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

impl<'a> Former<'a> {
    fn form(mut self) -> Result<Form, Reason> {
        while self.at < self.scanned.tokens.len() {
            let at = self.at;
            self.gap();
            if self.list()? || self.literal()? || self.table()? || self.null() {
                continue;
            }
            self.push(1);
            self.out.push_str(self.plain(at)?);
        }
        let Former { scanned, out: text, values, table_number, .. } = self;
        if text.len() > FORM_MOST {
            return Err(Reason::Long);
        }
        let lists_only_once = text.contains([NUMBERS, TEXTS]);
        let n_values = values.iter().map(Vec::len).sum::<usize>();
        if values.len() > VALUES_MOST || (!lists_only_once && n_values > VALUES_MOST) {
            return Err(Reason::ManyValues);
        }
        let mut table = table_of(scanned);
        if let (Some(name), Some(_)) = (&mut table, table_number) {
            name.truncate(stem(name).len());
        }
        let verb = first_word(scanned).to_owned();
        let is_insert = matches!(verb.as_str(), "insert" | "replace");
        Ok(Form { template: Template { text, verb, table, is_insert }, values, table_number })
    }

    fn push(&mut self, n_tokens: usize) {
        self.starts.extend((0..n_tokens).map(|_| self.out.len()));
        self.at += n_tokens;
        self.end = self.scanned.spans[self.at - 1].end;
    }

    /// The text of a token; nothing in it may look like a mark.
    fn plain(&self, idx: usize) -> Result<&'a str, Reason> {
        let text = self.scanned.at(idx);
        match text.contains(|c: char| ('\u{1}'..='\u{6}').contains(&c)) {
            true => Err(Reason::NotUnderstood),
            false => Ok(text),
        }
    }

    /// Writes what is between two tokens: a blank, or a hint.
    fn gap(&mut self) {
        let begin = self.scanned.spans[self.at].start;
        if self.end < begin {
            self.blank();
        }
        let gap = &self.scanned.text[self.end.min(begin)..begin];
        for hint in hints(gap, self.scanned.dialect) {
            self.out.push_str(hint);
            self.blank();
        }
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with(' ') {
            self.out.push(' ');
        }
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
            if *is_of_texts.get_or_insert(is_text) != is_text {
                return Ok(false);
            }
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
        self.push(idx - self.at);
        self.out.extend(['(', if is_of_texts == Some(true) { TEXTS } else { NUMBERS }, ')']);
        self.values.push(seen);
        Ok(true)
    }

    /// The value of a parameter; none if it is NULL.
    fn parameter(&self, at: usize) -> Option<&str> {
        let number: usize = self.scanned.at(at).get(1..)?.parse().ok()?;
        self.bound.get(number.checked_sub(1)?)?.as_deref()
    }

    fn null(&mut self) -> bool {
        let is_null = self.scanned.is_sign(self.at, '$');
        if is_null {
            self.push(1);
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
        let text = self.plain(at)?;
        let name = text.trim_end_matches(['`', '"', ']']);
        let stem = stem(name);
        let digits = &name[stem.len()..];
        let number = digits.parse().map_err(|_| Reason::NotUnderstood)?;
        self.push(1);
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
        let (is_secret, is_joined) = (self.shown == Shown::None, self.is_joined(at));
        let (scanned, fixed) = (self.scanned, self.fixed);
        let place = Place { scanned, at, after, is_text, is_secret, is_joined, fixed };
        if !self.scanned.is_sign(at, '$') && place.is_fixed() {
            let text = self.kept(self.between(at, after - 1))?;
            if self.shown != Shown::All && place.is_value(&text) {
                return Err(Reason::Literal);
            }
            self.push(after - at);
            self.out.push_str(&text);
            self.fixed = Some(after - 1);
            return Ok(true);
        }
        let kind = if is_text { self.without_prefix(at) } else { None };
        self.push(after - at);
        let mark = if is_text { TEXT } else { NUMBER };
        match kind {
            Some(kind) => self.out.push_str(&format!("CAST({mark} AS {kind})")),
            None => self.out.push(mark),
        }
        self.values.push(vec![seen]);
        Ok(true)
    }

    /// A literal that stays, so that all servers read it to the same end.
    fn kept(&self, literal: &str) -> Result<String, Reason> {
        let before = self.scanned.word_before(self.at);
        match self.scanned.dialect {
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
        let is_postgresql = self.scanned.dialect == Dialect::PostgreSql;
        let n_types = if is_postgresql { usize::MAX } else { 3 };
        let typed = TYPES.split(' ').take(n_types).find(|name| *name == word);
        let is_mark = self.is_joined(at) && (matches!(&*word, "e" | "n") || word.starts_with('_'));
        if is_mark || word.starts_with("_utf8") || word.starts_with("_latin") {
            self.out.truncate(start);
            return None;
        }
        let typed = typed?;
        self.out.truncate(start);
        let is_stamp = typed == "timestamp" && self.scanned.is_mysql();
        Some(if is_stamp { "datetime" } else { typed })
    }

    /// The value that begins at a token: the index behind it, what was seen, and whether it is a text.
    fn value(&self, at: usize) -> Result<Option<(usize, Seen, bool)>, Reason> {
        match self.scanned.tokens.get(at) {
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
                let has_escapes = self.scanned.is_mysql() || before == "e";
                let text = meant(self.scanned.at(at), has_escapes);
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
        let digits = self.scanned.at(idx);
        if digits.starts_with("0x") || digits.starts_with("0b") {
            return Err(Reason::Binary);
        }
        let is_exponent = digits.ends_with(['e', 'E'])
            && self.scanned.is_any_sign(idx + 1, "-+")
            && self.scanned.is_sign(idx + 2, '0')
            && self.is_joined(idx + 1)
            && self.is_joined(idx + 2);
        let last = if is_exponent { idx + 2 } else { idx };
        Ok(Seen::number(self.between(at, last)).map(|seen| (last + 1, seen, false)))
    }

    /// The text from one token to another.
    fn between(&self, first: usize, last: usize) -> &'a str {
        &self.scanned.text[self.scanned.spans[first].start..self.scanned.spans[last].end]
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
    in_quotes(raw, has_escapes).map(|(meant, _)| meant).unwrap_or_default()
}

// Literals that belong to a statement: no placeholder may stand there, or another value would make another
// statement.

/// Words whose numbers in parentheses belong to a type or a precision.
const WITH_PRECISION: &str = "\
    char varchar nchar character varying binary varbinary decimal numeric dec float double bit \
    datetime time timestamp now curtime sysdate utc_time utc_timestamp current_time \
    current_timestamp localtime localtimestamp int bigint percentile_cont percentile_disc";
/// Words before a literal that is part of the statement.
const BEFORE: &str = "separator escape as charset collate interval zone path";
/// Words before a value. A text behind any other word, without a sign between them, is a name: `SELECT a 'b'`.
const BEFORE_VALUE: &str = "\
    select distinct all where and or not xor on having when then else case between like ilike \
    rlike regexp similar to is in from for set values value return returning by limit offset div \
    mod any some default using with symmetric binary date time timestamp timestamptz datetime \
    uuid inet cidr json jsonb xml bytea text n x b e u of sounds leading trailing both placing \
    if interval straight_join distinctrow do sql_no_cache sql_cache sql_small_result \
    sql_big_result sql_buffer_result sql_calc_found_rows high_priority fetch first next";
/// Functions whose first argument is part of the statement: what they act on, or a unit.
const FIRST_ARGUMENT: &str = "nextval currval date_trunc date_part timezone";
/// Functions whose first argument is, if there is a second one: how a text is read.
const FIRST_OF_TWO: &str =
    "to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_headline";
/// Functions whose further arguments are: formats, paths, zones.
const FURTHER_ARGUMENTS: &str = "\
    to_char to_date to_timestamp to_number date_format time_format str_to_date convert_tz \
    json_table json_value json_query json_extract json_length json_contains_path";
/// Types of PostgreSQL whose values name something, or have a form of their own.
const NAMING_TYPES: &str = "regclass regtype regproc regprocedure regrole regconfig interval";
/// Most tokens of a call that are looked at.
const CALL_MOST: usize = 200;

pub(super) struct Place<'a> {
    pub(super) scanned: &'a Scanned<'a>,
    /// Its first token, and that behind it.
    pub(super) at: usize,
    pub(super) after: usize,
    pub(super) is_text: bool,
    /// Whether it may be a secret, which is not shown where it could be a value.
    pub(super) is_secret: bool,
    /// Whether nothing is between its first token and the one before.
    pub(super) is_joined: bool,
    /// The last token of a literal before it that stayed in the text.
    pub(super) fixed: Option<usize>,
}

impl Place<'_> {
    fn before(&self) -> &str {
        self.scanned.word_before(self.at)
    }

    /// Whether the literal is part of the statement.
    pub(super) fn is_fixed(&self) -> bool {
        let at = self.at;
        let is_arrow =
            at > 1 && self.scanned.is_sign(at - 1, '>') && self.scanned.is_any_sign(at - 2, "->");
        is_arrow || if self.is_text { self.is_fixed_text() } else { self.is_fixed_number() }
    }

    fn is_fixed_number(&self) -> bool {
        let at = self.at;
        let follows = at > 1 && self.scanned.is_sign(at - 1, ',') && self.fixed == Some(at - 2);
        let has_precision = at > 1
            && self.scanned.is_sign(at - 1, '(')
            && is_one_of(self.scanned.word(at - 2), WITH_PRECISION);
        let is_of_window = matches!(self.scanned.word(self.after), "preceding" | "following");
        let is_of_lock = self.before() == "wait";
        self.before() == "by" || follows || has_precision || is_of_window || is_of_lock
    }

    fn is_fixed_text(&self) -> bool {
        // MySQL's INTERVAL takes any value, PostgreSQL's only a literal.
        let before = self.before();
        let is_interval = before == "interval" && self.scanned.is_mysql();
        let names = self.scanned.is_sign(self.after, ':')
            && is_one_of(self.scanned.word(self.after + 1), NAMING_TYPES);
        (is_one_of(before, BEFORE) && !is_interval)
            || names
            || self.is_alias()
            || self.is_argument()
    }

    /// Whether it is a name, belongs to a type before it, or is part of a text before or behind it.
    fn is_alias(&self) -> bool {
        if self.is_secret {
            return false;
        }
        if self.scanned.is_sign(self.after, '\'') {
            return true;
        }
        let Some(before) = self.at.checked_sub(1).and_then(|idx| self.scanned.tokens.get(idx))
        else {
            return false;
        };
        match before {
            Token::Sign('\'') => true,
            Token::Sign(')' | '0') => self.scanned.is_mysql(),
            Token::Sign(_) => false,
            Token::Quoted(_) => true,
            // A word that belongs to the literal: `_utf8'…'`.
            Token::Word(word) => {
                !self.is_joined && !word.starts_with('_') && !is_one_of(word, BEFORE_VALUE)
            }
        }
    }

    /// A meaningful literal where no placeholder may stand: a part of a text, or a value after its type's name.
    pub(super) fn is_value(&self, literal: &str) -> bool {
        let is_text = |idx: usize| self.scanned.is_sign(idx, '\'');
        let is_part = is_text(self.after) || self.at.checked_sub(1).is_some_and(is_text);
        let is_typed = self.scanned.dialect == Dialect::PostgreSql
            && !is_one_of(self.before(), BEFORE)
            && self.is_alias();
        self.is_text && literal.contains(char::is_alphabetic) && (is_part || is_typed)
    }

    fn is_argument(&self) -> bool {
        let (mut depth, mut nth) = (0_u32, 0);
        for idx in (self.at.saturating_sub(CALL_MOST)..self.at).rev() {
            match self.scanned.tokens[idx] {
                Token::Sign(')') => depth += 1,
                Token::Sign('(') if depth == 0 => {
                    let function = self.scanned.word_before(idx);
                    let is_one_of_two =
                        is_one_of(function, FIRST_OF_TWO) && self.scanned.is_sign(self.after, ',');
                    return match nth {
                        0 => is_one_of(function, FIRST_ARGUMENT) || is_one_of_two,
                        _ => is_one_of(function, FURTHER_ARGUMENTS),
                    };
                }
                Token::Sign('(') => depth -= 1,
                Token::Sign(',') if depth == 0 => nth += 1,
                _ => {}
            }
        }
        false
    }
}
