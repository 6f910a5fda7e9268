//! Statements that use more than an application's tables: a log has all that its server was sent, even what
//! it refused, and a study runs with its user's rights.

use crate::Dialect;
use crate::declared::sql::{Scanned, Token, end_of_comment, end_of_line, in_quotes, is_one_of};

use super::control::{Change, not_replayed};
use super::statement::Kind;

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
