//! Server errors in the words of PostgreSQL's programs.

use dyno_pgbench::cursor;

use crate::{ErrorDetails, StatementError};

/// With line, detail, hint and context, as far as given. `sql` is the statement, if known.
pub fn server_message(error: &StatementError, sql: Option<&str>) -> String {
    let plain = || format!("ERROR:  {}", error.message);
    error.details.as_ref().map_or_else(plain, |details| message_of(details, sql))
}

pub fn message_of(details: &ErrorDetails, sql: Option<&str>) -> String {
    let ErrorDetails { severity, message, detail, hint, context, position } = details;
    let mut text = format!("{severity}:  {message}");
    let mark = position.zip(sql).and_then(|(position, sql)| cursor(sql, position));
    match (mark, position) {
        (Some(mark), _) => text.extend(["\n", &mark]),
        (None, Some(position)) => text.push_str(&format!(" at character {position}")),
        (None, None) => {}
    }
    for (label, more) in [("DETAIL", detail), ("HINT", hint), ("CONTEXT", context)] {
        if let Some(more) = more {
            text.push_str(&format!("\n{label}:  {more}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    #[test]
    fn all_that_the_server_said_is_shown() {
        let check = |details: ErrorDetails, sql: Option<&str>, expected: &str| {
            let error = StatementError::new(ErrorClass::Refused, "1", "m; detail: d");
            let error = StatementError { details: Some(Box::new(details)), ..error };
            assert_eq!(server_message(&error, sql), expected);
        };
        let details = |position: Option<usize>| ErrorDetails {
            severity: "ERROR".to_owned(),
            message: "m".to_owned(),
            position,
            ..ErrorDetails::default()
        };
        let select = Some("SELECT x");
        check(details(Some(8)), select, "ERROR:  m\nLINE 1: SELECT x\n               ^");
        check(details(Some(8)), None, "ERROR:  m at character 8");
        let with_more = ErrorDetails {
            detail: Some("d".to_owned()),
            hint: Some("h".to_owned()),
            context: Some("c\nc2".to_owned()),
            ..details(None)
        };
        check(with_more, select, "ERROR:  m\nDETAIL:  d\nHINT:  h\nCONTEXT:  c\nc2");
        let plain = StatementError::new(ErrorClass::Refused, "1", "m");
        assert_eq!(server_message(&plain, None), "ERROR:  m");
    }
}
