//! The slow log of MariaDB and MySQL: lines with `#` say who, where and how long; then come `use` and
//! `SET timestamp`, if they are needed, and the statement with a semicolon.

use super::Reader;
use super::lines::{Gathered, Line};
use super::mysql_general::is_opening;
use super::sessions::Sessions;

/// A reader of the slow log.
#[derive(Default)]
pub(super) struct Slow {
    session: String,
    schema: Option<String>,
    body: Gathered,
    /// Whether the lines before were those with `#`.
    is_head: bool,
    /// Lines to pass over.
    skip: usize,
}

impl Reader for Slow {
    fn line(&mut self, line: &Line, to: &mut Sessions) {
        let text = line.text.as_str();
        if is_opening(text) {
            self.end(to);
            self.skip = 2;
            return;
        }
        if self.skip > 0 {
            self.skip -= 1;
            if !text.starts_with('#') {
                return;
            }
            self.skip = 0;
        }
        if text.starts_with("# Time: ") || text.starts_with("# User@Host: ") {
            self.end(to);
            self.is_head = true;
        }
        if self.is_head && text.starts_with("# ") {
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
        if let Some(schema) = &self.schema {
            to.uses(&self.session, schema);
        }
        to.statement(&self.session, body.text());
    }
}

impl Slow {
    /// Reads a line with `#`.
    fn head(&mut self, text: &str, to: &mut Sessions) {
        if let Some(command) = text.strip_prefix("# administrator command: ") {
            if command.starts_with("Quit") {
                to.quit(&self.session);
            }
            return;
        }
        if let Some(rest) = text.strip_prefix("# User@Host: ") {
            // MySQL has the connection here; MariaDB on the next line.
            self.session = after(rest, " Id:").unwrap_or_default().to_owned();
        }
        if let Some(rest) = text.strip_prefix("# Thread_id:") {
            self.session = rest.split_whitespace().next().unwrap_or_default().to_owned();
        }
        if let Some(rest) = text.split_once("Schema: ").map(|(_, rest)| rest) {
            let schema = rest.split("  ").next().unwrap_or_default().trim();
            self.schema = (!schema.is_empty()).then(|| schema.to_owned());
        }
    }

    /// Whether the line was written by the server before the statement.
    fn is_setup(&mut self, text: &str) -> bool {
        if let Some(name) = text.strip_prefix("use ").and_then(|rest| rest.strip_suffix(';')) {
            self.schema = Some(name.trim_matches('`').to_owned());
            return true;
        }
        text.starts_with("SET timestamp=")
            || text.starts_with("SET last_insert_id=")
            || text.starts_with("SET insert_id=")
    }
}

/// The word after a mark.
fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark)?.1.split_whitespace().next()
}
