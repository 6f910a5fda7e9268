//! The general log and the slow log of MariaDB and MySQL. An entry of the general log begins with the time (or two tabs,
//! within the same second), connection number, command, and argument, which may have more lines.

use super::Reason;
use super::log::{Gathered, Line, Reader};
use super::sessions::Sessions;

/// The commands; what is none of them is a line of the entry before.
const COMMANDS: &str = "\
    Query|Execute|Prepare|Connect|Quit|Init DB|Close stmt|Reset stmt|Reset connection|Long Data|\
    Field List|Statistics|Ping|Change user|Fetch|Bulk_execute|Set option|Binlog Dump|\
    Binlog Dump GTID|Register Slave|Register Replica|Kill|Debug|Refresh|Shutdown|Create DB|\
    Drop DB|Processlist|Sleep|Time|Delayed insert|Daemon|Clone|\
    Group Replication Data Stream subscription|Error";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) session: &'a str,
    pub(super) command: &'a str,
    pub(super) argument: &'a str,
}

pub(super) fn header(line: &str) -> Option<Header<'_>> {
    let rest = match line.strip_prefix("\t\t") {
        Some(rest) => rest,
        None => {
            let (time, rest) = line.split_once('\t')?;
            is_time(time).then_some(rest)?
        }
    };
    let (session, rest) = number(rest.trim_start_matches(' '))?;
    let rest = rest.strip_prefix(' ')?;
    let (command, argument) = rest.split_once('\t').unwrap_or((rest, ""));
    COMMANDS.split('|').any(|one| one == command).then_some(Header { session, command, argument })
}

/// Reads the beginning of an entry in a log that a program has rewritten with blanks in place of tabs.
pub(super) fn header_with_blanks(line: &str) -> Option<Header<'_>> {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let rest = line.trim_start_matches(is_blank);
    let has_margin = line.len() - rest.len() >= MARGIN_LEAST;
    let rest = match has_margin {
        true => rest,
        false => {
            // The time ends before the blanks that precede the number.
            let (time, rest) = rest.split_at(rest.find("  ").or_else(|| rest.find('\t'))?);
            // `261123 20:22:53`; one digit of the hour is a blank in `261123  9:22:53`.
            let (time, rest) = if is_time(time) { (time, rest) } else { rest_of_time(line)? };
            is_time(time).then_some(rest)?.trim_start_matches(is_blank)
        }
    };
    let (session, rest) = number(rest)?;
    let rest = rest.strip_prefix(is_blank)?.trim_start_matches(is_blank);
    // The longest one: `Init DB`, `Close stmt`.
    let fits = |command: &&str| {
        rest.strip_prefix(*command)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(is_blank))
    };
    let command = COMMANDS.split('|').filter(fits).max_by_key(|command| command.len())?;
    let argument = rest[command.len()..].trim_start_matches(is_blank);
    Some(Header { session, command, argument })
}

/// Fewest blanks before the number of a connection in an entry of the same second as that before.
const MARGIN_LEAST: usize = 12;

/// `261123  9:22:53` and what follows.
fn rest_of_time(line: &str) -> Option<(&str, &str)> {
    let is_one = line.get(6..8) == Some("  ") && line.is_char_boundary(15.min(line.len()));
    (is_one && line.len() > 15).then(|| line.split_at(15))
}

fn number(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    (digits > 0).then(|| text.split_at(digits))
}

/// `261123 20:22:53`, with or without a space before the hour, or `2026-11-23T20:22:53.123456Z`.
fn is_time(text: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_digit() || " :-T.Z+".contains(c);
    text.len() >= 14
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(':')
        && text.chars().all(is_inside)
}

/// Whether a line is the first of those that a server writes when it opens a log.
pub(super) fn is_opening(line: &str) -> bool {
    line.contains(", Version: ") && line.ends_with("started with:")
}

#[derive(Default)]
pub(super) struct General {
    open: Option<Entry>,
    /// Whether its columns are separated by tabs, as a server does.
    has_tabs: bool,
    skip: usize,
}

struct Entry {
    session: String,
    command: String,
    text: Gathered,
}

impl Reader for General {
    fn line(&mut self, line: &Line, to: &mut Sessions) {
        let found = header(&line.text);
        self.has_tabs |= found.is_some();
        // Only where nothing else begins an entry, since a statement may have such a line.
        let with_blanks = || header_with_blanks(&line.text).filter(|_| !self.has_tabs);
        let found = found.or_else(with_blanks);
        if self.skip > 0 && found.is_none() {
            self.skip -= 1;
            return;
        }
        if is_opening(&line.text) {
            self.end(to);
            to.restarted();
            self.skip = 2;
            return;
        }
        match found {
            Some(found) => {
                self.end(to);
                let [session, command] = [found.session, found.command].map(str::to_owned);
                let text = Gathered::new(found.argument, line.is_cut);
                self.open = Some(Entry { session, command, text });
            }
            None => {
                let open = self.open.iter_mut();
                open.for_each(|entry| entry.text.add(&line.text, line.is_cut));
            }
        }
    }

    fn end(&mut self, to: &mut Sessions) {
        let Some(Entry { session, command, text }) = self.open.take() else { return };
        let argument = text.text().unwrap_or("");
        match command.as_str() {
            "Query" | "Execute" => to.statement(&session, text.text()),
            "Connect" => {
                let schema = argument.split_once(" on ").map(|(_, rest)| rest);
                let schema =
                    schema.and_then(|rest| rest.split_once(" using ")).map(|(name, _)| name);
                to.connected(&session, schema.map(str::trim).filter(|name| !name.is_empty()));
            }
            "Change user" | "Reset connection" => to.reset(&session),
            "Init DB" => to.uses(&session, argument.trim()),
            "Quit" => to.quit(&session),
            // Their statements are in the entries of other commands, or they have none.
            _ => {}
        }
    }
}

// The slow log of MariaDB and MySQL: lines with `#` for who, where and how long; then `use` and `SET
// timestamp` if needed, and the statement with a semicolon.

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
