//! A user's statement: its names, its effects on tables, and errors visible without a server. Reads
//! only literals, comments and quoted names by each dialect's rules, as a `:name` in them does not
//! count. The rest of the grammar is the server's.

use std::ops::Range;

use crate::Dialect;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// A `:name`.
    Name(String),
}

/// A word or a sign outside of literals and comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, in lower case.
    Word(String),
    /// A quoted name, as it is meant.
    Quoted(String),
    /// Anything else: the first character of it; a literal is `'`.
    Sign(char),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scanned<'t> {
    /// Without a semicolon at the end.
    pub(super) text: &'t str,
    pub(super) dialect: Dialect,
    /// Its text and its names, in their order.
    pub(super) parts: Vec<Part>,
    /// What it consists of, without comments.
    pub(super) tokens: Vec<Token>,
    /// Where each token is in the text.
    pub(super) spans: Vec<Range<usize>>,
}

/// What a statement does to the number of rows of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// It adds the rows that it reports.
    Insert(String),
    /// It takes away the rows that it reports.
    Delete(String),
    /// It may change the number of rows of this table, and does not report it.
    Unclear(String),
    /// It may change the number of rows of any table.
    Unknown,
}

/// Words with which a transaction begins or ends.
const CONTROL: &[&str] =
    &["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "xa"];

/// What may stand before INTO in MariaDB and MySQL.
const INSERT_MODIFIERS: &[&str] = &["low_priority", "delayed", "high_priority", "ignore"];

/// First words of statements that change no table's rows.
const HARMLESS: &[&str] =
    &["select", "values", "table", "show", "explain", "set", "lock", "analyze", "update", "pragma"];

struct Scanner<'t> {
    scanned: Scanned<'t>,
    at: usize,
    /// Where the text begins that is in no part yet.
    from: usize,
    begin: usize,
    /// Whether placeholders of the server are tokens like others: `?` and `$`.
    has_placeholders: bool,
}

/// What a text that begins with a quote means up to the next one, and the index behind that; none if there is none.
pub(super) fn in_quotes(text: &str, has_escapes: bool) -> Option<(String, usize)> {
    let mut meant = String::new();
    let mut chars = text.char_indices().peekable();
    let (_, quote) = chars.next()?;
    while let Some((at, c)) = chars.next() {
        if c == '\\' && has_escapes {
            meant.extend(chars.next().map(|(_, c)| match c {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                c => c,
            }));
        } else if c != quote {
            meant.push(c);
        } else if chars.peek().is_some_and(|(_, next)| *next == quote) {
            chars.next();
            meant.push(quote);
        } else {
            return Some((meant, at + c.len_utf8()));
        }
    }
    None
}

/// The index behind the comment with which a text begins; in PostgreSQL they nest.
pub(super) fn end_of_comment(text: &str, dialect: Dialect) -> Option<usize> {
    dyno_pgbench::comment_length(text.as_bytes(), dialect == Dialect::PostgreSql)
}

/// Whether a word is one of these, which have blanks between them.
pub(super) fn is_one_of(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// A statement without blanks around it and without semicolons at its end.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches(is_blank).trim_end_matches(|c| c == ';' || is_blank(c))
}

impl<'t> Scanned<'t> {
    /// Fails with what is wrong.
    pub(super) fn read(text: &'t str, dialect: Dialect) -> Result<Scanned<'t>, String> {
        let scanned = Scanned::scan(text, dialect, false)?;
        scanned.check()?;
        Ok(scanned)
    }

    /// Accepts any statement, also with placeholders. Fails if something in it does not end.
    pub(super) fn of_server(text: &'t str, dialect: Dialect) -> Result<Scanned<'t>, String> {
        Scanned::scan(text, dialect, true)
    }

    fn scan(text: &'t str, dialect: Dialect, has_placeholders: bool) -> Result<Self, String> {
        let text = trimmed(text);
        if text.contains('\0') {
            return Err("the statement contains a zero byte".to_owned());
        }
        let (parts, tokens, spans) = Default::default();
        let scanned = Scanned { text, dialect, parts, tokens, spans };
        let mut scanner = Scanner { scanned, at: 0, from: 0, begin: 0, has_placeholders };
        while scanner.at < text.len() {
            scanner.step()?;
        }
        scanner.end_text(text.len());
        Ok(scanner.scanned)
    }

    /// The names in it, one for each placeholder.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Name(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text with the dialect's placeholders.
    pub(super) fn prepared(&self) -> String {
        let mut position = 0;
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Name(_) => {
                position += 1;
                self.dialect.placeholder(position)
            }
        };
        self.parts.iter().map(text).collect()
    }

    pub(super) fn at(&self, idx: usize) -> &'t str {
        &self.text[self.spans[idx].clone()]
    }

    pub(super) fn is_mysql(&self) -> bool {
        self.dialect == Dialect::MySql
    }

    /// The word at this token, or nothing.
    pub(super) fn word(&self, idx: usize) -> &str {
        if let Some(Token::Word(word)) = self.tokens.get(idx) { word } else { "" }
    }

    /// The word or the quoted name at this token.
    pub(super) fn named(&self, idx: usize) -> Option<&str> {
        match self.tokens.get(idx)? {
            Token::Word(name) | Token::Quoted(name) => Some(name),
            Token::Sign(_) => None,
        }
    }

    /// Whether the name of a table follows this word.
    pub(super) fn precedes_table(&self, idx: usize) -> bool {
        match self.word(idx) {
            "from" | "into" | "join" => true,
            "update" => !["key", "for", "do"].contains(&self.word_before(idx)),
            // INTO may be missing.
            _ => {
                matches!(self.word(0), "insert" | "replace")
                    && (1..=idx).all(|idx| INSERT_MODIFIERS.contains(&self.word(idx)))
                    && self.inserted_at() == Some(idx + 1)
            }
        }
    }

    /// The word before this token, or nothing.
    pub(super) fn word_before(&self, idx: usize) -> &str {
        idx.checked_sub(1).map_or("", |idx| self.word(idx))
    }

    pub(super) fn is_sign(&self, idx: usize, sign: char) -> bool {
        self.tokens.get(idx) == Some(&Token::Sign(sign))
    }

    /// Whether this token is one of these signs.
    pub(super) fn is_any_sign(&self, idx: usize, signs: &str) -> bool {
        matches!(self.tokens.get(idx), Some(Token::Sign(sign)) if signs.contains(*sign))
    }

    /// The first token that is one of these words.
    pub(super) fn find_word(&self, words: &[&str]) -> Option<usize> {
        (0..self.tokens.len()).find(|&idx| words.contains(&self.word(idx)))
    }

    pub(super) fn has_word(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| matches!(token, Token::Word(found) if found == word))
    }

    fn check(&self) -> Result<(), String> {
        if self.tokens.is_empty() {
            return Err("the statement is empty".to_owned());
        }
        if CONTROL.contains(&self.word(0)) {
            let word = self.word(0).to_uppercase();
            return Err(format!(
                "`{word}` cannot be a statement: the transaction's key `begin` says whether its statements form one \
                 database transaction, and a step with `roll_back = true` rolls it back"
            ));
        }
        let mut open = 0_i64;
        for token in &self.tokens {
            match token {
                Token::Sign('(') => open += 1,
                Token::Sign(')') => open -= 1,
                Token::Sign(';') => {
                    let why = "these are several statements; make each a separate step";
                    return Err(why.to_owned());
                }
                _ => {}
            }
            if open < 0 {
                return Err("a `)` has no matching `(`".to_owned());
            }
        }
        if open == 0 { Ok(()) } else { Err("a `(` has no matching `)`".to_owned()) }
    }

    /// The name that begins at token `idx`, without what qualifies it, and the index behind it.
    pub(super) fn name(&self, mut idx: usize) -> Option<(String, usize)> {
        loop {
            let name = self.named(idx)?.to_lowercase();
            idx += 1;
            if !self.is_sign(idx, '.') {
                return Some((name, idx));
            }
            idx += 1;
        }
    }

    /// A column that INSERT names, with its table, as they stand in the text.
    pub(super) fn inserted_column(&self, column: &str) -> Option<(&'t str, &'t str)> {
        let (_, columns) = self.inserted_columns()?;
        let first = self.inserted_at()?;
        let (_, after) = self.name(first)?;
        let nth = columns.iter().position(|one| one == column)?;
        // A name, and a comma or the parenthesis before it.
        let column = self.spans.get(after + 1 + 2 * nth)?;
        let table = self.spans.get(first)?.start..self.spans.get(after - 1)?.end;
        Some((self.text.get(table)?, self.text.get(column.clone())?))
    }

    /// The tokens that stand alone at a place of an inserted row, from that of VALUES on: depth of brackets,
    /// place in the row, index.
    pub(super) fn inserted_values(&self, values: usize) -> Vec<(i32, usize, usize)> {
        let mut found = Vec::new();
        let (mut depth, mut nth) = (0, 0);
        for idx in values + 1..self.tokens.len() {
            match self.tokens[idx] {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') => {
                    depth -= 1;
                    nth = if depth == 0 { 0 } else { nth };
                }
                Token::Sign(',') => nth += usize::from(depth == 1),
                _ if depth == 0 => break,
                _ if self.is_any_sign(idx - 1, "(,") && self.is_any_sign(idx + 1, "),") => {
                    found.push((depth, nth, idx));
                }
                _ => {}
            }
        }
        found
    }

    /// The table that INSERT writes to, and the index of the token behind it.
    pub(super) fn inserted(&self) -> Option<(String, usize)> {
        self.name(self.inserted_at()?)
    }

    /// The index of the token at which the name of the table begins that INSERT writes to.
    fn inserted_at(&self) -> Option<usize> {
        match self.find_word(&["into"]) {
            Some(into) => Some(into + 1),
            None => (1..).find(|&idx| !INSERT_MODIFIERS.contains(&self.word(idx))),
        }
    }

    /// The columns that INSERT names, with their table.
    pub(super) fn inserted_columns(&self) -> Option<(String, Vec<String>)> {
        if !matches!(self.word(0), "insert" | "replace") {
            return None;
        }
        let (table, mut idx) = self.inserted()?;
        if !self.is_sign(idx, '(') || self.word(idx + 1) == "select" {
            return None;
        }
        let mut columns = Vec::new();
        loop {
            let (column, after) = self.name(idx + 1)?;
            columns.push(column);
            idx = after;
            match self.tokens.get(idx)? {
                Token::Sign(',') => {}
                Token::Sign(')') => return Some((table, columns)),
                _ => return None,
            }
        }
    }

    pub(super) fn effect(&self) -> Effect {
        match self.word(0) {
            "insert" => {
                let Some((table, _)) = self.inserted() else { return Effect::Unknown };
                // What is updated instead is reported as if it were inserted.
                let updates = self.has_word("conflict") && self.has_word("update");
                let replaces = self.word(1) == "or" && self.word(2) == "replace";
                let is_unclear = updates || replaces || self.has_word("duplicate");
                if is_unclear { Effect::Unclear(table) } else { Effect::Insert(table) }
            }
            "replace" => {
                self.inserted().map_or(Effect::Unknown, |(table, _)| Effect::Unclear(table))
            }
            "delete" => {
                let modifiers = ["low_priority", "quick", "ignore"];
                let from = (1..).find(|&idx| !modifiers.contains(&self.word(idx)));
                // What stands before FROM names the tables that lose rows, of those behind it.
                let from = from.filter(|&idx| self.word(idx) == "from");
                let first = from.map(|from| from + 1 + usize::from(self.word(from + 1) == "only"));
                match first.and_then(|first| self.name(first)) {
                    // Several tables at once.
                    Some((_, after)) if self.is_sign(after, ',') => Effect::Unknown,
                    Some((table, _)) => Effect::Delete(table),
                    None => Effect::Unknown,
                }
            }
            "with" => {
                let writes = ["insert", "delete", "merge", "replace"];
                let writes = writes.iter().any(|word| self.has_word(word));
                if writes { Effect::Unknown } else { Effect::None }
            }
            word if HARMLESS.contains(&word) => Effect::None,
            _ => Effect::Unknown,
        }
    }

    pub(super) fn is_read(&self) -> bool {
        match self.word(0) {
            "with" => {
                let writes = ["insert", "delete", "merge", "update"];
                !writes.iter().any(|word| self.has_word(word))
            }
            word => ["select", "values", "table", "show", "explain"].contains(&word),
        }
    }

    pub(super) fn is_write(&self) -> bool {
        let writes = ["insert", "update", "delete", "merge", "replace"];
        writes.contains(&self.word(0)) || (self.word(0) == "with" && !self.is_read())
    }
}

/// Other blanks of Unicode are parts of names.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// Where a comment up to the end of its line ends.
pub(super) fn end_of_line(text: &str, dialect: Dialect) -> usize {
    let is_end = |c: char| c == '\n' || (c == '\r' && dialect == Dialect::PostgreSql);
    text.find(is_end).unwrap_or(text.len())
}

/// Whether a name may begin so; any character beyond ASCII is a letter.
fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

pub(super) fn continues_name(c: char) -> bool {
    begins_name(c) || c.is_ascii_digit()
}

/// Whether a text begins with a comment up to the end of its line.
fn begins_line_comment(text: &str, dialect: Dialect) -> bool {
    // Two dashes are two minus signs for MySQL unless a blank follows.
    let is_blank = |c: char| c == ' ' || c.is_ascii_control();
    let is_mysql = dialect == Dialect::MySql;
    let begins = |after: &str| !is_mysql || after.chars().next().is_none_or(is_blank);
    text.strip_prefix("--").is_some_and(begins) || (is_mysql && text.starts_with('#'))
}

fn placeholder(sign: &str) -> String {
    format!("`{sign}` is a placeholder of the server; write :name, and define the name in `let`")
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.scanned.text[self.at..]
    }

    fn token(&mut self, token: Token) {
        self.scanned.tokens.push(token);
        self.scanned.spans.push(self.begin..self.at);
    }

    fn end_text(&mut self, end: usize) {
        if self.from < end {
            let text = &self.scanned.text[self.from..end];
            self.scanned.parts.push(Part::Text(text.to_owned()));
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let (rest, dialect) = (self.rest(), self.scanned.dialect);
        self.begin = self.at;
        let Some(c) = rest.chars().next() else { return Ok(()) };
        let is_mysql = self.scanned.is_mysql();
        if is_blank(c) {
            self.at += c.len_utf8();
        } else if begins_line_comment(rest, dialect) {
            self.at += end_of_line(rest, dialect);
        } else if rest.starts_with("/*") {
            let end = end_of_comment(rest, dialect);
            self.at += end.ok_or("a comment that begins with /* is not closed")?;
        } else if c == '\'' {
            let has_escapes = is_mysql || self.has_escape_prefix();
            self.quoted(has_escapes, "a string that begins with ' is not closed")?;
            self.token(Token::Sign('\''));
        } else if c == '"' && is_mysql {
            self.quoted(true, "a string that begins with \" is not closed")?;
            self.token(Token::Sign('\''));
        } else if c == '"' || (c == '`' && dialect != Dialect::PostgreSql) {
            let name = self.quoted(false, "a quoted name is not closed")?;
            self.token(Token::Quoted(name));
        } else if c == '[' && dialect == Dialect::Sqlite {
            let end = rest.find(']').ok_or("a name that begins with [ is not closed")?;
            let name = rest[1..end].to_owned();
            self.at += end + 1;
            self.token(Token::Quoted(name));
        } else if c == '$' && dialect == Dialect::PostgreSql {
            self.dollar()?;
        } else if c == ':' {
            self.colon();
        } else if c == '?' && dialect != Dialect::PostgreSql && !self.has_placeholders {
            return Err(placeholder("?"));
        } else if begins_name(c) {
            let is_inside = |c: char| continues_name(c) || c == '$';
            let end = rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
            self.at += end;
            self.token(Token::Word(rest[..end].to_lowercase()));
        } else if c.is_ascii_digit() {
            let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
            self.at += rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
            self.token(Token::Sign('0'));
        } else {
            self.at += c.len_utf8();
            self.token(Token::Sign(c));
        }
        Ok(())
    }

    /// Whether an E stands before a literal of PostgreSQL, so that a backslash escapes.
    fn has_escape_prefix(&mut self) -> bool {
        self.scanned.dialect == Dialect::PostgreSql
            && self.scanned.text[..self.at].ends_with(['e', 'E'])
            && self.scanned.tokens.last() == Some(&Token::Word("e".to_owned()))
    }

    fn quoted(&mut self, has_escapes: bool, wrong: &str) -> Result<String, String> {
        let (meant, end) = in_quotes(self.rest(), has_escapes).ok_or(wrong)?;
        self.at += end;
        Ok(meant)
    }

    /// A literal between dollars of PostgreSQL: `$$…$$`, `$tag$…$tag$`.
    fn dollar(&mut self) -> Result<(), String> {
        let rest = self.rest();
        if rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            if self.has_placeholders {
                let end = rest[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - 1);
                self.at += 1 + end;
                self.token(Token::Sign('$'));
                return Ok(());
            }
            return Err(placeholder("$1"));
        }
        let end = rest[1..].find(|c| !continues_name(c)).map_or(rest.len(), |end| end + 1);
        if !rest[end..].starts_with('$') {
            self.at += 1;
            self.token(Token::Sign('$'));
            return Ok(());
        }
        let tag = &rest[..=end];
        let wrong = || format!("a string that begins with {tag} is not closed");
        let close = rest[tag.len()..].find(tag).ok_or_else(wrong)?;
        self.at += 2 * tag.len() + close;
        self.token(Token::Sign('\''));
        Ok(())
    }

    /// A `:name`; several colons, and one that no name follows, are the server's.
    fn colon(&mut self) {
        let rest = self.rest();
        let n_colons = rest.find(|c| c != ':').unwrap_or(rest.len());
        let name = &rest[n_colons..];
        let end = name.find(|c| !continues_name(c)).unwrap_or(name.len());
        if n_colons > 1 || !name.starts_with(begins_name) {
            self.at += n_colons;
            self.token(Token::Sign(':'));
            return;
        }
        let name = name[..end].to_owned();
        self.end_text(self.at);
        self.at += 1 + end;
        self.from = self.at;
        self.scanned.parts.push(Part::Name(name));
        self.token(Token::Sign(':'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(dialect: Dialect, sql: &str, prepared: &str, names: &[&str]) {
        let scanned = Scanned::read(sql, dialect).unwrap();
        assert_eq!(scanned.prepared(), prepared);
        assert_eq!(scanned.names().collect::<Vec<_>>(), names);
    }

    #[test]
    fn blanks_are_those_of_the_server() {
        use Dialect::{MySql, PostgreSql, Sqlite};
        let check = |dialect: Dialect, sql: &str, expected: &[&str]| {
            let scanned = Scanned::scan(sql, dialect, false).unwrap();
            let found: Vec<String> = (0..scanned.tokens.len())
                .map(|at| scanned.word(at).to_owned())
                .filter(|word| !word.is_empty())
                .collect();
            assert_eq!(found, expected, "{dialect:?}: {sql}");
        };
        for dialect in [MySql, PostgreSql, Sqlite] {
            check(dialect, "a\u{a0}b\u{2003}c d\t\r\n\x0b\x0ce", &["a\u{a0}b\u{2003}c", "d", "e"]);
        }
        check(MySql, " \u{a0}a b\u{a0} ; ", &["\u{a0}a", "b\u{a0}"]);
        check(MySql, "a --\u{a0}b\n-- c", &["a", "\u{a0}b"]);
        check(PostgreSql, "a -- b\rc", &["a", "c"]);
        check(MySql, "a -- b\rc", &["a"]);
    }

    #[test]
    fn names_are_found_where_they_are_names() {
        use Dialect::{MySql, PostgreSql, Sqlite};
        for dialect in Dialect::WITH_TRANSACTIONS {
            let marks = [1, 2].map(|position| dialect.placeholder(position));
            let [a, b] = &marks;
            check(
                dialect,
                "SELECT ':x', 1 /* :y */ FROM t -- :z\n WHERE a=:a AND b = :bé_2 ;; ",
                &format!("SELECT ':x', 1 /* :y */ FROM t -- :z\n WHERE a={a} AND b = {b}"),
                &["a", "bé_2"],
            );
            check(dialect, "SELECT 'it''s :x', :a", &format!("SELECT 'it''s :x', {a}"), &["a"]);
        }
        check(PostgreSql, "SELECT :a::int, x::text", "SELECT $1::int, x::text", &["a"]);
        check(PostgreSql, "SELECT 'a\\', :b, E'\\':c'", "SELECT 'a\\', $1, E'\\':c'", &["b"]);
        check(
            PostgreSql,
            "SELECT $$ :a $$, $t$ :b $x$ $t$, :c",
            "SELECT $$ :a $$, $t$ :b $x$ $t$, $1",
            &["c"],
        );
        check(
            PostgreSql,
            "SELECT /* /* */ :a */ :b, \":c\" ? 'k'",
            "SELECT /* /* */ :a */ $1, \":c\" ? 'k'",
            &["b"],
        );
        check(
            MySql,
            "SELECT \"it\\\":x\", `:y`, @v := :a # :z",
            "SELECT \"it\\\":x\", `:y`, @v := ? # :z",
            &["a"],
        );
        check(MySql, "SELECT 5--:a", "SELECT 5--?", &["a"]);
        check(Sqlite, "SELECT [a :b], \":c\", `:d`, :e", "SELECT [a :b], \":c\", `:d`, ?", &["e"]);
        check(MySql, "SELECT :a, :a", "SELECT ?, ?", &["a", "a"]);
    }

    #[track_caller]
    fn refused(dialect: Dialect, sql: &str, why: &str) {
        let error = Scanned::read(sql, dialect).unwrap_err();
        assert!(error.contains(why), "{sql}: {error}");
    }

    #[test]
    fn what_cannot_be_a_statement_is_refused() {
        use Dialect::{MySql, PostgreSql, Sqlite};
        for dialect in Dialect::WITH_TRANSACTIONS {
            refused(dialect, " ; ", "is empty");
            refused(dialect, "-- x", "is empty");
            refused(dialect, "SELECT 'x", "is not closed");
            refused(dialect, "SELECT 1 /* x", "is not closed");
            refused(dialect, "SELECT (1", "has no matching `)`");
            refused(dialect, "SELECT 1)", "has no matching `(`");
            refused(dialect, "SELECT 1; SELECT 2", "several statements");
            refused(dialect, "COMMIT", "cannot be a statement");
            refused(dialect, "SELECT '\0'", "zero byte");
        }
        refused(MySql, "SELECT ?", "placeholder");
        refused(Sqlite, "SELECT ?1", "placeholder");
        refused(PostgreSql, "SELECT $1", "placeholder");
        refused(PostgreSql, "SELECT $a$ x", "begins with $a$");
        refused(MySql, "SELECT 'x\\'", "is not closed");
    }

    #[test]
    fn effects_on_the_number_of_rows() {
        let check = |sql: &str, expected: Effect| {
            let scanned = Scanned::read(sql, Dialect::MySql).unwrap();
            assert_eq!(scanned.effect(), expected, "{sql}");
        };
        let t = || "t".to_owned();
        check("INSERT INTO t VALUES (:a)", Effect::Insert(t()));
        check("insert ignore t (a) values (:a)", Effect::Insert(t()));
        check("INSERT INTO s.`T` SELECT 1", Effect::Insert(t()));
        check("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1", Effect::Unclear(t()));
        check("INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1", Effect::Unclear(t()));
        check("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", Effect::Insert(t()));
        check("INSERT OR REPLACE INTO t VALUES (1)", Effect::Unclear(t()));
        check("REPLACE INTO t VALUES (1)", Effect::Unclear(t()));
        check("DELETE FROM t WHERE a = :a", Effect::Delete(t()));
        check("DELETE QUICK FROM t", Effect::Delete(t()));
        check("DELETE u FROM t JOIN u", Effect::Unknown);
        check("DELETE FROM t, u USING t JOIN u", Effect::Unknown);
        check("DELETE FROM ONLY t", Effect::Delete(t()));
        check("TRUNCATE t", Effect::Unknown);
        check("CALL p(:a)", Effect::Unknown);
        check("WITH x AS (SELECT 1) SELECT * FROM x", Effect::None);
        check("WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x", Effect::Unknown);
        check("UPDATE t SET a = 'delete'", Effect::None);
        check("SELECT 1", Effect::None);
    }

    #[test]
    fn columns_of_an_insert() {
        let check = |sql: &str, expected: Option<(&str, &[&str])>| {
            let found = Scanned::read(sql, Dialect::PostgreSql).unwrap().inserted_columns();
            let found = found.as_ref().map(|(table, columns)| {
                (table.as_str(), columns.iter().map(String::as_str).collect::<Vec<_>>())
            });
            assert_eq!(found, expected.map(|(table, columns)| (table, columns.to_vec())), "{sql}");
        };
        check("INSERT INTO t (a, \"B c\") VALUES (1, 2)", Some(("t", &["a", "b c"])));
        check("INSERT INTO t VALUES (1, 2)", None);
        check("INSERT INTO t (SELECT 1)", None);
        check("UPDATE t SET a = 1", None);
    }
}
