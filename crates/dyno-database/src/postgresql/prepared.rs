//! Statements that are prepared, now or at their first execution.

use dyno_workload::{ErrorClass, Statement, StatementError};

use super::protocol::{Encoding, ExecuteTemplate};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    pub(super) prepared: Option<usize>,
    /// Whether it is a COMMIT, which a failed transaction turns into a rollback without an error.
    pub(super) is_commit: bool,
    /// Columns of a text statement whose rows are kept; 0 if they are not.
    pub(super) n_kept_columns: usize,
    /// Whether the rows of a text statement are kept whose columns are not known.
    pub(super) learns_columns: bool,
    pub(super) keeps_last: bool,
    /// Whether it was sent by the extended protocol.
    pub(super) is_extended: bool,
}

pub(super) const TEXT_COLUMNS: [Encoding; 16] = [Encoding::Text; 16];

pub(super) struct Prepared {
    pub(super) template: ExecuteTemplate,
    pub(super) is_commit: bool,
    pub(super) keeps_last: bool,
    /// None for one that the server has parsed.
    pub(super) unparsed: Option<Unparsed>,
}

/// A statement that the server parses when it is first executed.
pub(super) struct Unparsed {
    pub(super) name: String,
    pub(super) sql: String,
    /// Whether Parse has been sent …
    pub(super) is_sent: bool,
    /// … and the statement has been executed since.
    pub(super) is_known: bool,
}

impl Prepared {
    /// In texts; nothing is sent yet. `name` is empty if it is parsed for each execution.
    pub(super) fn of_texts(name: &str, statement: &Statement, n_values: usize) -> Prepared {
        let sql = &statement.sql;
        let name = if statement.is_unnamed { "" } else { name };
        let unparsed =
            Unparsed { name: name.to_owned(), sql: sql.clone(), is_sent: false, is_known: false };
        Prepared {
            template: ExecuteTemplate::of_texts(sql, name, n_values, statement.keeps_last),
            is_commit: is_commit(sql),
            keeps_last: statement.keeps_last,
            unparsed: (!name.is_empty()).then_some(unparsed),
        }
    }
}

pub(super) fn refused(code: &str, message: &str) -> StatementError {
    StatementError::new(ErrorClass::Refused, code, message)
}

/// A zero byte would end the statement early on the wire.
pub(super) fn check_text(sql: &str) -> Result<(), StatementError> {
    if sql.as_bytes().contains(&0) {
        return Err(refused("22021", "a statement must not contain a zero byte"));
    }
    if sql.len() >= 1 << 30 {
        return Err(refused("54000", "the statement is longer than 1 GiB"));
    }
    Ok(())
}

pub(super) fn is_commit(sql: &str) -> bool {
    sql.get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case("commit"))
}
