//! The slow log of MariaDB and MySQL: lines with `#` for who, where and how long; then `use` and `SET
//! timestamp` if needed, and the statement with a semicolon.

use super::lines::{Gathered, Line};
use super::mysql_general::is_opening;
use super::sessions::Sessions;
use super::{Reader, Reason};

/// First lines of an entry; which exist depends on the server, and on filters of its log.
const BEGINNINGS: &[&str] =
    &["# Time: ", "# User@Host: ", "# Thread_id: ", "# Schema: ", "# Query_time: "];
const SHARED: &str = "- connections, which this log does not number: statements of one user and host are taken for \
     those of one connection";
const ALONE: &str = "- who sent some of the statements: each of these is its own transaction";

#[derive(Default)]
pub(super) struct Slow {
    /// The connection, or who it is if the log does not number connections; none if it says neither.
    session: Option<String>,
    has_number: bool,
    /// Whether the statement is part of a stored routine.
    is_inner: bool,
    schema: Option<String>,
    body: Gathered,
    /// Whether the lines before were those with `#`.
    is_head: bool,
    skip: usize,
}

impl Reader for Slow {
    fn line(&mut self, line: &Line, to: &mut Sessions) {
        let text = line.text.as_str();
        if is_opening(text) {
            self.end(to);
            to.restarted();
            self.skip = 2;
            return;
        }
        self.skip = if text.starts_with('#') { 0 } else { self.skip };
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if !self.is_head && BEGINNINGS.iter().any(|begin| text.starts_with(begin)) {
            self.end(to);
            *self = Slow { schema: self.schema.take(), is_head: true, ..Slow::default() };
        }
        if self.is_head && text.starts_with('#') {
            self.head(text, to);
            return;
        }
        self.is_head = false;
        if self.body.is_empty() && self.is_setup(text) {
            return;
        }
        self.body.add(text, line.is_cut);
    }

    fn end(&mut self, to: &mut Sessions) {
        let body = std::mem::take(&mut self.body);
        if body.is_empty() {
            return;
        }
        if self.is_inner {
            return to.leave_out(Reason::Inner);
        }
        if self.session.is_none() {
            to.doubt(ALONE);
            to.connected("", None);
        } else if !self.has_number {
            to.doubt(SHARED);
        }
        let session = self.session.as_deref().unwrap_or_default();
        if let Some(schema) = &self.schema {
            to.uses(session, schema);
        }
        to.statement(session, body.text());
    }
}

impl Slow {
    /// Reads a line with `#`.
    fn head(&mut self, text: &str, to: &mut Sessions) {
        if let Some(command) = text.strip_prefix("# administrator command: ") {
            let session = self.session.as_deref().unwrap_or_default();
            self.is_head = false;
            if command.starts_with("Quit") {
                to.quit(session);
            } else if command.starts_with("Change user") || command.starts_with("Reset conn") {
                to.reset(session);
            }
        } else if let Some(rest) = text.strip_prefix("# User@Host: ") {
            // MySQL has the connection here; MariaDB on the next line.
            let number = after(rest, " Id:");
            self.has_number = number.is_some();
            self.session = Some(number.unwrap_or(rest.trim()).to_owned());
        } else if text.starts_with("# Stored_routine: ") {
            self.is_inner = true;
        } else if text.starts_with("# Thread_id:") || text.starts_with("# Schema: ") {
            if let Some(number) = after(text, "Thread_id:") {
                self.has_number = true;
                self.session = Some(number.to_owned());
            }
            if let Some((_, rest)) = text.split_once("Schema: ") {
                let schema = rest.split("  ").next().unwrap_or_default().trim();
                self.schema = (!schema.is_empty()).then(|| schema.to_owned());
            }
        }
    }

    /// Whether the line was written by the server before the statement.
    fn is_setup(&mut self, text: &str) -> bool {
        if let Some(name) = text.strip_prefix("use ").and_then(|rest| rest.strip_suffix(';')) {
            self.schema = Some(name.trim_matches('`').to_owned());
            return true;
        }
        let settings = ["SET timestamp=", "SET last_insert_id=", "SET insert_id="];
        settings.iter().any(|setting| text.starts_with(setting))
    }
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark)?.1.split_whitespace().next()
}
