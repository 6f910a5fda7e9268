//! The general log of MariaDB and MySQL: each line that begins an entry has the time (or two tabs, within
//! the same second), the number of the connection, a command and its argument, which may have more lines.

use super::Reader;
use super::lines::{Gathered, Line};
use super::sessions::Sessions;

/// The commands; what is none of them is a line of the entry before.
const COMMANDS: &[&str] = &[
    "Query",
    "Execute",
    "Prepare",
    "Connect",
    "Quit",
    "Init DB",
    "Close stmt",
    "Reset stmt",
    "Reset connection",
    "Long Data",
    "Field List",
    "Statistics",
    "Ping",
    "Change user",
    "Fetch",
    "Bulk_execute",
    "Set option",
    "Binlog Dump",
    "Binlog Dump GTID",
    "Register Slave",
    "Register Replica",
    "Kill",
    "Debug",
    "Refresh",
    "Shutdown",
    "Create DB",
    "Drop DB",
    "Processlist",
    "Sleep",
    "Time",
    "Delayed insert",
    "Daemon",
    "Clone",
    "Group Replication Data Stream subscription",
    "Error",
];

/// The beginning of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// The connection.
    pub(super) session: &'a str,
    /// The command.
    pub(super) command: &'a str,
    /// What follows it on its line.
    pub(super) argument: &'a str,
}

/// Reads the beginning of an entry.
pub(super) fn header(line: &str) -> Option<Header<'_>> {
    let rest = match line.strip_prefix("\t\t") {
        Some(rest) => rest,
        None => {
            let (time, rest) = line.split_once('\t')?;
            is_time(time).then_some(rest)?
        }
    };
    let rest = rest.trim_start_matches(' ');
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let (session, rest) = rest.split_at(digits);
    if session.is_empty() {
        return None;
    }
    let rest = rest.strip_prefix(' ')?;
    let (command, argument) = rest.split_once('\t').unwrap_or((rest, ""));
    COMMANDS.contains(&command).then_some(Header { session, command, argument })
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

/// A reader of the general log.
#[derive(Default)]
pub(super) struct General {
    open: Option<Entry>,
    /// Lines to pass over.
    skip: usize,
}

struct Entry {
    session: String,
    command: String,
    text: Gathered,
}

impl Reader for General {
    fn line(&mut self, line: &Line, to: &mut Sessions) {
        if self.skip > 0 && header(&line.text).is_none() {
            self.skip -= 1;
            return;
        }
        if is_opening(&line.text) {
            self.end(to);
            to.restarted();
            self.skip = 2;
            return;
        }
        match header(&line.text) {
            Some(found) => {
                self.end(to);
                let mut text = Gathered::default();
                text.add(found.argument, line.is_cut);
                self.open = Some(Entry {
                    session: found.session.to_owned(),
                    command: found.command.to_owned(),
                    text,
                });
            }
            None => {
                if let Some(entry) = &mut self.open {
                    entry.text.add(&line.text, line.is_cut);
                }
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
