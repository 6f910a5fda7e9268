//! PostgreSQL's log, CSV or plain text: statements as sent, and prepared ones with each execution's
//! parameters in the message's detail.

use super::Reason;
use super::log::{Gathered, Line, Reader};
use super::log_line_prefix::Prefix;
use super::sessions::Sessions;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Log,
    Error,
    Fatal,
}

impl Severity {
    fn of(text: &str) -> Option<Severity> {
        Some(match text {
            "LOG" => Severity::Log,
            "ERROR" => Severity::Error,
            "FATAL" | "PANIC" => Severity::Fatal,
            _ => return None,
        })
    }
}

struct Message {
    severity: Severity,
    session: String,
    database: Option<String>,
    text: Gathered,
    detail: Option<Gathered>,
    statement: Option<Gathered>,
}

impl Message {
    fn tell(self, to: &mut Sessions) {
        let Message { severity, session, database, text, detail, statement } = self;
        match severity {
            Severity::Log => {}
            Severity::Error => {
                return to.failed(&session, statement.as_ref().and_then(Gathered::text));
            }
            Severity::Fatal => return to.quit(&session),
        }
        let Some(text) = text.text() else {
            // Longer than any other message.
            return to.leave_out(Reason::Long);
        };
        if let Some(database) = database {
            to.uses(&session, &database);
        }
        let is_over = text.starts_with("duration: ");
        let rest =
            if is_over { text.split_once(" ms  ").map(|(_, rest)| rest) } else { Some(text) };
        // The statement was logged when it began.
        let Some(text) = rest else { return };
        if let Some(sql) = text.strip_prefix("statement: ") {
            to.executed(&session, sql, &[], is_over);
        } else if let Some(rest) = text.strip_prefix("execute ") {
            // `execute name: …`; more rows of one that is under way are no execution.
            let Some((name, sql)) = rest.split_once(": ") else { return };
            if name.starts_with("fetch from ") {
                return;
            }
            let detail = detail.as_ref().map(|detail| detail.text().unwrap_or_default());
            to.executed(&session, sql, &parameters(detail.unwrap_or_default()), is_over);
        } else if text.starts_with("connection received: ") {
            // Numbers of processes are used again.
            to.connected(&session, None);
        } else if text.starts_with("disconnection: ") {
            to.quit(&session);
        } else if text.starts_with("database system is ready") {
            to.restarted();
        }
    }
}

/// The parameters in a detail, in their order; `None` for NULL.
fn parameters(detail: &str) -> Vec<Option<String>> {
    let rest = detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: "));
    let mut rest = rest.unwrap_or_default();
    let mut all = Vec::new();
    while let Some(after) = rest.strip_prefix(&format!("${} = ", all.len() + 1)) {
        let (value, after) = match after.strip_prefix('\'') {
            Some(text) => {
                let (value, after) = quoted(text, '\'');
                (Some(value), after)
            }
            None => (None, after.strip_prefix("NULL").unwrap_or(after)),
        };
        all.push(value);
        rest = after.strip_prefix(", ").unwrap_or(after);
    }
    all
}

/// The text up to its quote, which is doubled within it, and what follows.
fn quoted(mut text: &str, quote: char) -> (String, &str) {
    let mut value = String::new();
    while let Some((part, after)) = text.split_once(quote) {
        value.push_str(part);
        text = after;
        let Some(after) = text.strip_prefix(quote) else { break };
        value.push(quote);
        text = after;
    }
    (value, text)
}

const PREFIXES_MOST: usize = 4;

pub(super) struct Plain {
    /// The latest one first: sessions read the setting again one after the other.
    prefixes: Vec<Prefix>,
    open: Option<Message>,
    part: Part,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    Text,
    Detail,
    Statement,
}

impl Plain {
    pub(super) fn new(prefix: Prefix) -> Plain {
        Plain { prefixes: vec![prefix], open: None, part: Part::None }
    }

    fn gathered(&mut self) -> Option<&mut Gathered> {
        let open = self.open.as_mut()?;
        match self.part {
            Part::None => None,
            Part::Text => Some(&mut open.text),
            Part::Detail => open.detail.as_mut(),
            Part::Statement => open.statement.as_mut(),
        }
    }
}

impl Reader for Plain {
    fn line(&mut self, line: &Line, to: &mut Sessions) {
        if let Some(rest) = line.text.strip_prefix('\t') {
            if let Some(part) = self.gathered() {
                part.add(rest, line.is_cut);
            }
            return;
        }
        self.part = Part::None;
        let found = self.prefixes.iter().find_map(|prefix| prefix.matches(&line.text));
        let Some(found) = found else { return };
        if let Some(prefix) = Prefix::said(found.message) {
            self.prefixes.insert(0, prefix);
            self.prefixes.truncate(PREFIXES_MOST);
        }
        let text = Gathered::new(found.message, line.is_cut);
        let open = self.open.as_mut().filter(|open| open.session == found.session);
        match (found.severity, open) {
            ("DETAIL", Some(open)) => {
                open.detail = Some(text);
                self.part = Part::Detail;
            }
            ("STATEMENT", Some(open)) => {
                open.statement = Some(text);
                self.part = Part::Statement;
            }
            // They belong to a message before.
            ("DETAIL" | "HINT" | "CONTEXT" | "STATEMENT" | "QUERY" | "LOCATION", _) => {}
            (severity, _) => {
                self.end(to);
                if let Some(severity) = Severity::of(severity) {
                    self.part = Part::Text;
                    let database = found.database.map(str::to_owned);
                    let (session, detail, statement) = (found.session.to_owned(), None, None);
                    self.open =
                        Some(Message { severity, session, database, text, detail, statement });
                }
            }
        }
    }

    fn end(&mut self, to: &mut Sessions) {
        if let Some(message) = self.open.take() {
            message.tell(to);
        }
    }
}

mod column {
    pub(super) const DATABASE: usize = 2;
    pub(super) const SESSION: usize = 5;
    pub(super) const SEVERITY: usize = 11;
    pub(super) const MESSAGE: usize = 13;
    pub(super) const DETAIL: usize = 14;
    pub(super) const STATEMENT: usize = 19;
}

#[derive(Default)]
pub(super) struct Csv {
    record: Gathered,
    /// Whether a quoted text is open at the end of what was gathered.
    is_open: bool,
}

impl Reader for Csv {
    fn line(&mut self, line: &Line, to: &mut Sessions) {
        // The record before has no end, as after a crash.
        if self.is_open && begins_record(&line.text) {
            self.record = Gathered::default();
            self.is_open = false;
            to.leave_out(Reason::NotUnderstood);
        }
        let n_quotes = line.text.matches('"').count();
        self.is_open ^= n_quotes % 2 == 1;
        self.record.add(&line.text, line.is_cut);
        if !self.is_open {
            self.end(to);
        }
    }

    fn end(&mut self, to: &mut Sessions) {
        let record = std::mem::take(&mut self.record);
        if std::mem::take(&mut self.is_open) {
            return to.leave_out(Reason::NotUnderstood);
        }
        if record.is_empty() {
            return;
        }
        let Some(text) = record.text() else { return to.leave_out(Reason::Long) };
        let fields = fields(text);
        let of = |idx: usize| fields.get(idx).map(String::as_str).unwrap_or_default();
        let Some(severity) = Severity::of(of(column::SEVERITY)) else { return };
        let gathered = |text: &str| Gathered::new(text, false);
        let message = Message {
            severity,
            session: of(column::SESSION).to_owned(),
            database: Some(of(column::DATABASE)).filter(|name| !name.is_empty()).map(str::to_owned),
            text: gathered(of(column::MESSAGE)),
            detail: Some(gathered(of(column::DETAIL))),
            statement: Some(of(column::STATEMENT)).filter(|text| !text.is_empty()).map(gathered),
        };
        message.tell(to);
    }
}

fn fields(record: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut rest = record;
    while fields.len() <= column::STATEMENT {
        let (value, after) = match rest.strip_prefix('"') {
            Some(text) => quoted(text, '"'),
            None => {
                let (value, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                (value.to_owned(), after)
            }
        };
        fields.push(value);
        let Some(after) = after.strip_prefix(',') else { break };
        rest = after;
    }
    fields
}

/// Whether this is the first line of a record of the log as CSV.
pub(super) fn is_csv(line: &str) -> bool {
    let fields = fields(line);
    let is_session = |text: &str| {
        text.split_once('.').is_some_and(|(one, other)| {
            let is_hex =
                |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit());
            is_hex(one) && is_hex(other)
        })
    };
    fields.len() > column::MESSAGE
        && line.starts_with(|c: char| c.is_ascii_digit())
        && is_session(&fields[column::SESSION])
}

/// Whether a line begins a record despite an open quoted text, in which quotes would be doubled.
fn begins_record(line: &str) -> bool {
    let user = line.split_once(',').map_or("", |(_, user)| user);
    let is_within = user.starts_with("\"\"") && !user.starts_with("\"\",");
    !is_within && is_csv(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_cut_off_takes_no_others_with_it() {
        let record = |n: u32| {
            format!(
                "2026-11-23 20:22:53.123 UTC,\"me\",\"shop\",412,\"[local]\",69238f.19c,{n},\"SELECT\",\
                 2026-11-23 20:22:50 UTC,3/5,0,LOG,00000,\"statement: SELECT a FROM t WHERE id = {n}\",,,,,,,,,\"\"\n"
            )
        };
        let mut log: String = (0..20).map(record).collect();
        let cut = record(20);
        log.push_str(&cut[..cut.len() - 20]);
        log.push('\n');
        log.extend((21..50).map(record));
        let request = super::super::Request {
            format: Some(super::super::Format::PostgreSqlCsv),
            prefix: None,
            schema: None,
            kinds: 50,
            has_texts: false,
            has_routines: false,
            url: None,
            source: "here".to_owned(),
        };
        let counts = super::super::capture(&mut log.as_bytes(), &request).unwrap().counts;
        assert_eq!((counts.read, counts.replayed), (50, 49), "{counts:?}");
    }

    #[test]
    fn parameters_are_read() {
        let check = |detail: &str, expected: &[Option<&str>]| {
            let found = parameters(detail);
            let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
            assert_eq!(found, expected, "{detail}");
        };
        check(
            "parameters: $1 = '5', $2 = NULL, $3 = 'it''s, $4 = ''x'''",
            &[Some("5"), None, Some("it's, $4 = 'x'")],
        );
        check("Parameters: $1 = ''", &[Some("")]);
        check("prepare: PREPARE a AS SELECT 1", &[]);
        check("parameters: $1 = 'cut", &[Some("")]);
        check("", &[]);
    }

    #[test]
    fn records_are_split() {
        let fields = fields("a,\"b,\"\"c\"\"\nd\",,\"\",e");
        assert_eq!(fields, ["a", "b,\"c\"\nd", "", "", "e"]);
        assert!(is_csv(
            "2026-11-23 20:22:53.123 UTC,\"me\",\"shop\",412,\"[local]\",69238f.19c,3,\"SELECT\",\
             2026-11-23 20:22:50 UTC,3/5,0,LOG,00000,\"statement: SELECT 1"
        ));
        assert!(!is_csv("a,b"));
    }
}
