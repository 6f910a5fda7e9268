//! Effects of a statement on its session and transaction, and what should not be replayed.

use crate::Dialect;
use crate::declared::sql::{
    Scanned, Token, end_of_comment, end_of_line, in_quotes, is_blank, is_one_of,
};

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

// Statements that use more than an application's tables: a log has all that its server was sent, even what
// it refused, and a study runs with its user's rights.

/// Databases of MariaDB and MySQL, and a schema of all servers, that belong to the server.
const SCHEMAS: &str = "mysql sys performance_schema information_schema";
/// Functions of MariaDB and MySQL that concern the server, its sessions or sequences, or wait.
const OF_MYSQL: &str = "\
    get_lock release_lock release_all_locks is_free_lock is_used_lock sleep benchmark \
    master_pos_wait source_pos_wait master_gtid_wait wait_for_executed_gtid_set \
    wait_until_sql_thread_after_gtids wsrep_sync_wait_upto_gtid load_rewrite_rules \
    flush_rewrite_rules setval";
/// How names of such functions of plug-ins begin; `sys_exec` and its like are common additions.
const OF_MYSQL_BEGIN: &str = "\
    sys_ spider_ group_replication_ asynchronous_connection_failover_ audit_log_ keyring_ \
    version_tokens_ service_ gen_dictionary_ mroonga_ mysql_firewall_ set_firewall_ \
    read_firewall_";
/// The function of MariaDB and MySQL that reads a file.
const READS_FILE: &str = "load_file";
/// Words of statements of MariaDB and MySQL that write one.
const WRITES_FILE: &[&str] = &["outfile", "dumpfile"];
/// Functions of PostgreSQL that do, besides those whose names begin with `pg_`, or that execute a text.
const OF_POSTGRESQL: &str = "\
    setval set_config ts_stat ts_rewrite connectby xpath_table loread lowrite \
    gin_clean_pending_list";
/// How names of others begin: other servers, files, texts that are executed.
const OF_POSTGRESQL_BEGIN: &str =
    "dblink http lo_ crosstab brin_ postgres_fdw_ autoprewarm_ binary_upgrade_";
/// What is in the names of those that read what a text names: `query_to_xml`, `table_to_xml_and_xmlschema`.
const READS_NAMED: &str = "_to_xml";
const SETTING_HINTS: &[&str] = &["set", "set_var", "resource_group"];

pub(super) fn is_system(schema: &str, dialect: Dialect) -> bool {
    dialect == Dialect::MySql && SCHEMAS.split(' ').any(|name| name.eq_ignore_ascii_case(schema))
}

/// What may be a name in a statement, in lower case, with the index of its token. Names of functions may be quoted.
fn names(scanned: &Scanned<'_>) -> impl Iterator<Item = (usize, String)> {
    scanned.tokens.iter().enumerate().filter_map(move |(idx, token)| {
        let name = match token {
            Token::Word(word) => word.clone(),
            Token::Quoted(name) => name.to_lowercase(),
            // A text, or a name: servers of MySQL have a setting for it (ANSI_QUOTES).
            Token::Sign('\'') if scanned.is_mysql() => {
                scanned.at(idx).trim_matches('"').replace("\"\"", "\"").to_lowercase()
            }
            Token::Sign(_) => return None,
        };
        Some((idx, name))
    })
}

/// Whether a statement of MariaDB or MySQL reads or writes a file of the server.
pub(super) fn uses_file(scanned: &Scanned<'_>) -> bool {
    let reads = |(idx, name): (usize, String)| name == READS_FILE && scanned.is_sign(idx + 1, '(');
    scanned.is_mysql()
        && (WRITES_FILE.iter().any(|word| scanned.has_word(word)) || names(scanned).any(reads))
}

/// Whether a statement names a table of the server's, or calls a function that controls it.
pub(super) fn uses_server(scanned: &Scanned<'_>) -> bool {
    names(scanned).any(|(idx, name)| {
        let name = name.as_str();
        let is_called = scanned.is_sign(idx + 1, '(');
        let is_schema = scanned.is_sign(idx + 1, '.') && is_one_of(name, SCHEMAS);
        let begins = |beginnings: &str| beginnings.split(' ').any(|begin| name.starts_with(begin));
        match scanned.dialect {
            Dialect::PostgreSql => {
                // `U&"\0070g_…"` may be any name.
                let is_escaped = matches!(scanned.tokens[idx], Token::Quoted(_))
                    && idx > 1
                    && scanned.is_sign(idx - 1, '&')
                    && scanned.word(idx - 2) == "u";
                let is_function = is_one_of(name, OF_POSTGRESQL)
                    || begins(OF_POSTGRESQL_BEGIN)
                    || name.contains(READS_NAMED);
                is_escaped || name.starts_with("pg_") || is_schema || (is_called && is_function)
            }
            _ => {
                let is_function = is_one_of(name, OF_MYSQL) || begins(OF_MYSQL_BEGIN);
                is_schema || (is_called && is_function)
            }
        }
    })
}

/// Even inside a literal, as its end depends on the server's settings.
pub(super) fn has_executable_comment(text: &str, dialect: Dialect) -> bool {
    dialect == Dialect::MySql && (text.contains("/*!") || text.contains("/*M!"))
}

/// What such a statement does to its session and its transaction: `/*!40101 SET autocommit = 0 */`.
pub(super) fn change_of_executable(text: &str) -> Change {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        plain.push_str(before);
        let inner = after.strip_prefix('!').or_else(|| after.strip_prefix("M!"));
        match inner {
            Some(inner) => rest = inner.trim_start_matches(|c: char| c.is_ascii_digit()),
            None => rest = after.split_once("*/").map_or("", |(_, rest)| rest),
        }
        plain.push(' ');
    }
    plain.push_str(rest);
    let plain = plain.replace("*/", " ");
    let Ok(scanned) = Scanned::of_server(&plain, Dialect::MySql) else { return Change::None };
    match not_replayed(&scanned) {
        Some(Kind::Control(change) | Kind::LeftOut(_, change)) => change,
        _ => Change::None,
    }
}

/// Whether servers read a literal to the same end, whatever their settings say of backslashes.
pub(super) fn ends_alike(literal: &str) -> bool {
    if !literal.starts_with(['\'', '"']) {
        return true;
    }
    let end_of = |has_escapes| in_quotes(literal, has_escapes).map(|(_, end)| end);
    [true, false].map(end_of) == [Some(literal.len()); 2]
}

/// Whether servers may read one of its literals to another end. In PostgreSQL that depends also on a literal before it.
pub(super) fn has_unclear_literal(scanned: &Scanned<'_>) -> bool {
    let is_unclear = |literal: &str| match scanned.dialect {
        Dialect::PostgreSql => literal.starts_with('\'') && literal.contains('\\'),
        _ => !ends_alike(literal),
    };
    let mut literals = (0..scanned.tokens.len()).filter(|&idx| scanned.is_sign(idx, '\''));
    literals.any(|idx| is_unclear(scanned.at(idx)))
}

/// Optimizer hints between two tokens: `/*+ … */`. Drops other comments, which may hold anything, hints that change
/// settings, and those with quotes: for MySQL, a hint does not end within a quoted name.
pub(super) fn hints(gap: &str, dialect: Dialect) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = gap.trim_start();
    while !rest.is_empty() {
        let end = match rest.strip_prefix("/*") {
            Some(_) => end_of_comment(rest, dialect).unwrap_or(rest.len()),
            None => end_of_line(rest, dialect),
        };
        let comment = &rest[..end];
        let mut words = comment.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_plain =
            !comment.contains(|c: char| (c.is_control() && c != '\n') || "`\"'".contains(c));
        let sets = |word: &str| SETTING_HINTS.iter().any(|one| one.eq_ignore_ascii_case(word));
        if comment.starts_with("/*+") && is_plain && !words.any(sets) {
            found.push(comment);
        }
        rest = rest[end..].trim_start();
    }
    found
}

/// A statement without its comments, but with its hints, and with this mark of the server's.
pub(super) fn without_comments(scanned: &Scanned<'_>, mark: &str) -> String {
    let kept = |gap: &str| match gap.trim() {
        gap_text if gap_text.is_empty() || gap_text == mark => gap.to_owned(),
        _ => {
            let hints = hints(gap, scanned.dialect);
            hints.iter().fold(" ".to_owned(), |out, hint| out + hint + " ")
        }
    };
    let text = scanned.text;
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for span in &scanned.spans {
        out.push_str(&kept(&text[end.min(span.start)..span.start]));
        out.push_str(&text[span.clone()]);
        end = span.end;
    }
    out.push_str(&kept(&text[end..]));
    out.trim_end().to_owned()
}
