//! Effects of a statement on its session and transaction.

use crate::Dialect;
use crate::declared::sql::{Scanned, Token, is_blank};

use super::Reason;
use super::statement::{Kind, first_word};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    None,
    /// A transaction begins; MySQL commits one that is under way.
    Begin,
    End(End),
    /// The transaction is committed by a statement that cannot be part of one.
    Commit,
    /// The session can no longer commit or roll back what it has done.
    Detach,
    Savepoint(String),
    /// A savepoint is given up, and those after it.
    Release(String),
    RollBackTo(String),
    /// Tables are locked, which commits; or unlocked, which commits if any were locked.
    Lock(bool),
    /// Whether statements commit by themselves, and whether the end of a transaction begins the next one.
    Settings {
        autocommit: Option<bool>,
        chains: Option<bool>,
    },
    Use(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) rolls_back: bool,
    /// Whether the next one begins at once, if the statement says so.
    pub(super) chains: Option<bool>,
}

/// First words of statements that are replayed.
const REPLAYED: &[&str] = &[
    "select", "insert", "update", "delete", "replace", "with", "values", "table", "call", "do",
    "merge",
];
/// First words of statements that change or maintain tables.
const SCHEMA: &[&str] = &[
    "create", "alter", "drop", "rename", "truncate", "analyze", "optimize", "repair", "vacuum",
    "reindex", "cluster", "comment", "refresh", "check", "checksum", "import", "security",
];
/// First words of other statements with which MariaDB commits, as it was found to do.
const COMMITTING: &[&str] = &["flush", "reset", "install", "uninstall"];
/// First words of statements that contain others, with semicolons between them.
const COMPOUND: &[&str] =
    &["create", "alter", "if", "case", "for", "while", "loop", "repeat", "declare"];

pub(super) fn split(text: &str, dialect: Dialect) -> Vec<&str> {
    let whole = vec![text];
    if !text.contains(';') {
        return whole;
    }
    let Ok(scanned) = Scanned::of_server(text, dialect) else { return whole };
    if COMPOUND.contains(&first_word(&scanned)) || is_compound(&scanned) {
        return whole;
    }
    let mut parts = Vec::new();
    let mut begin = 0;
    for (token, span) in scanned.tokens.iter().zip(&scanned.spans) {
        if *token == Token::Sign(';') {
            parts.push(&scanned.text[begin..span.start]);
            begin = span.end;
        }
    }
    parts.push(&scanned.text[begin..]);
    parts.retain(|part| !part.trim_matches(is_blank).is_empty());
    if parts.is_empty() { whole } else { parts }
}

/// `BEGIN NOT ATOMIC …`.
fn is_compound(scanned: &Scanned<'_>) -> bool {
    scanned.word(0) == "begin" && scanned.word(1) == "not"
}

/// What a statement is that is no query and changes no rows.
pub(super) fn not_replayed(scanned: &Scanned<'_>) -> Option<Kind> {
    let (first, second) = (first_word(scanned), scanned.word(1));
    let is_mysql = scanned.is_mysql();
    let left_out = |reason, change| Some(Kind::LeftOut(reason, change));
    let control = |change| Some(Kind::Control(change));
    // With `commits`, MySQL commits before it.
    let committing = |reason, commits: bool| {
        let change = if commits && is_mysql { Change::Commit } else { Change::None };
        left_out(reason, change)
    };
    match first {
        _ if !is_mysql && makes_table(scanned) => left_out(Reason::Schema, Change::None),
        word if REPLAYED.contains(&word) => None,
        "begin" if is_compound(scanned) => left_out(Reason::Several, Change::None),
        "begin" => control(Change::Begin),
        "start" if second == "transaction" => control(Change::Begin),
        "commit" | "rollback" if second == "prepared" => left_out(Reason::Savepoint, Change::None),
        "rollback" | "abort" if scanned.has_word("to") => {
            left_out(Reason::Savepoint, Change::RollBackTo(last_name(scanned)))
        }
        "commit" | "end" => control(Change::End(end(scanned, false))),
        "rollback" | "abort" => control(Change::End(end(scanned, true))),
        "savepoint" => left_out(Reason::Savepoint, Change::Savepoint(last_name(scanned))),
        "release" => left_out(Reason::Savepoint, Change::Release(last_name(scanned))),
        "xa" => left_out(Reason::Savepoint, two_phase(second)),
        "prepare" if second == "transaction" => left_out(Reason::Savepoint, Change::Detach),
        "set" if scanned.has_word("password") || second == "role" => {
            committing(Reason::Users, second == "password")
        }
        "set" if is_mysql => left_out(Reason::Session, settings(scanned)),
        "use" => {
            let name = scanned.name(1).map(|(name, _)| Change::Use(name));
            left_out(Reason::Session, name.unwrap_or(Change::None))
        }
        "lock" | "unlock" if is_mysql && matches!(second, "tables" | "table") => {
            left_out(Reason::Session, Change::Lock(first == "lock"))
        }
        "grant" | "revoke" => committing(Reason::Users, true),
        word if SCHEMA.contains(&word) => {
            let of_users = ["user", "role", "identified", "password"];
            let is_of_users = of_users.iter().any(|word| scanned.has_word(word));
            let reason = if is_of_users { Reason::Users } else { Reason::Schema };
            committing(reason, word != "checksum" && !is_of_temporary(scanned))
        }
        "load" if scanned.has_word("cache") => left_out(Reason::Session, Change::None),
        "load" | "copy" => left_out(Reason::File, Change::None),
        word if COMMITTING.contains(&word) => committing(Reason::Session, second != "persist"),
        _ => left_out(Reason::Session, Change::None),
    }
}

/// PostgreSQL's `SELECT … INTO new_table`, also in brackets.
fn makes_table(scanned: &Scanned<'_>) -> bool {
    // Whether a query has begun, at each depth of brackets. Behind its SELECT, `insert` is a name: `SELECT a AS insert INTO b`.
    let mut is_query = vec![false];
    for (idx, token) in scanned.tokens.iter().enumerate() {
        match token {
            Token::Sign('(') => is_query.push(false),
            Token::Sign(')') if is_query.len() > 1 => _ = is_query.pop(),
            Token::Word(word) if word == "select" => {
                if let Some(last) = is_query.last_mut() {
                    *last = true;
                }
            }
            Token::Word(word) if word == "into" => {
                let adds = matches!(scanned.word_before(idx), "insert" | "merge");
                if !adds || is_query.last() == Some(&true) {
                    return matches!(first_word(scanned), "select" | "with");
                }
            }
            _ => {}
        }
    }
    false
}

/// `COMMIT AND CHAIN`, `ROLLBACK AND NO CHAIN`.
fn end(scanned: &Scanned<'_>, rolls_back: bool) -> End {
    let chains = scanned.find_word(&["chain"]).map(|at| scanned.word_before(at) != "no");
    End { rolls_back, chains }
}

/// The transaction of `XA START 'a'` ends with COMMIT or ROLLBACK; END and PREPARE come before.
fn two_phase(second: &str) -> Change {
    match second {
        "start" | "begin" => Change::Begin,
        "commit" | "rollback" => {
            Change::End(End { rolls_back: second == "rollback", chains: Some(false) })
        }
        _ => Change::None,
    }
}

/// `CREATE TEMPORARY TABLE` and `DROP TEMPORARY TABLE` do not commit.
fn is_of_temporary(scanned: &Scanned<'_>) -> bool {
    let at = if scanned.word(1) == "or" { 3 } else { 1 };
    matches!(first_word(scanned), "create" | "drop") && scanned.word(at) == "temporary"
}

fn last_name(scanned: &Scanned<'_>) -> String {
    let last = scanned.tokens.len().saturating_sub(1);
    scanned.name(last).map(|(name, _)| name).unwrap_or_default()
}

/// What `SET` changes: `autocommit = 0`, also as `@@session.autocommit := OFF` and among other settings.
fn settings(scanned: &Scanned<'_>) -> Change {
    let value = |name: &str| {
        let is_assigned = |idx: &usize| {
            // `@autocommit` is a variable of the program.
            let at = idx.checked_sub(1).filter(|at| scanned.is_sign(*at, '@'));
            let is_variable = at.is_some_and(|at| at == 0 || !scanned.is_sign(at - 1, '@'));
            let is_scoped = scanned.is_sign(idx - 1, '.');
            let scope = scanned.word_before(idx - usize::from(is_scoped));
            scanned.word(*idx) == name && !is_variable && !["global", "persist"].contains(&scope)
        };
        let at = (1..scanned.tokens.len()).rfind(is_assigned)?;
        let value = (at + 1..scanned.tokens.len()).find(|&idx| !scanned.is_any_sign(idx, "=:"))?;
        Some(scanned.at(value).trim_matches(['\'', '"']).to_lowercase())
    };
    let autocommit =
        value("autocommit").map(|value| !["0", "off", "false"].contains(&value.as_str()));
    let chains = value("completion_type").map(|value| ["1", "chain"].contains(&value.as_str()));
    let is_none = autocommit.is_none() && chains.is_none();
    if is_none { Change::None } else { Change::Settings { autocommit, chains } }
}
