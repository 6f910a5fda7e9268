//! Reads a log, line by line, with the reader of its format.

use std::io::{self, BufRead};

use super::log_line_prefix::Prefix;
use super::sessions::Sessions;
use super::{CaptureError, Format, Outcome, Request, mysql_log, postgresql_log, write};

const LINES_TO_RECOGNISE: usize = 200;

/// Fails if the log cannot be read, is not recognised, or has no statement to replay.
pub fn capture(log: &mut dyn BufRead, request: &Request) -> Outcome {
    let mut first = Vec::new();
    let mut format = request.format;
    while format.is_none() && first.len() < LINES_TO_RECOGNISE {
        let Some(line) = next_line(log)? else { break };
        format = recognise(&line.text);
        first.push(line);
    }
    let prefix = request.prefix.as_deref().map(Prefix::read).transpose();
    let mut prefix = prefix.map_err(CaptureError::Prefix)?;
    if prefix.is_none() && format.is_none_or(|format| format == Format::PostgreSqlPlain) {
        while first.len() < LINES_TO_RECOGNISE
            && let Some(line) = next_line(log)?
        {
            first.push(line);
        }
        prefix = Prefix::guess(first.iter().map(|line| line.text.as_str()));
    }
    let format = format.or(prefix.as_ref().map(|_| Format::PostgreSqlPlain));
    let format = format.ok_or(CaptureError::UnknownFormat)?;
    let is_complete = format == Format::MySqlGeneral;
    let mut sessions = Sessions::new(format.dialect(), is_complete, request);
    let mut reader: Box<dyn Reader> = match format {
        Format::MySqlGeneral => Box::new(mysql_log::General::default()),
        Format::MySqlSlow => Box::new(mysql_log::Slow::default()),
        Format::PostgreSqlCsv => Box::new(postgresql_log::Csv::default()),
        Format::MySqlDigests | Format::PostgreSqlStatements => {
            return Err(CaptureError::UnknownFormat);
        }
        Format::PostgreSqlPlain => {
            let unknown = "the prefix of the messages is not recognised; give the server's setting \
                           log_line_prefix with --prefix";
            let prefix = prefix.ok_or_else(|| CaptureError::Prefix(unknown.to_owned()))?;
            Box::new(postgresql_log::Plain::new(prefix))
        }
    };
    let mut first = first.into_iter();
    while let Some(line) = first.next().map_or_else(|| next_line(log), |line| Ok(Some(line)))? {
        reader.line(&line, &mut sessions);
    }
    reader.end(&mut sessions);
    write::study(sessions.end(), format, request)
}

/// A reader of a format. It is given each line, and tells the sessions what it finds.
pub(super) trait Reader {
    fn line(&mut self, line: &Line, to: &mut Sessions);
    fn end(&mut self, to: &mut Sessions);
}

fn recognise(line: &str) -> Option<Format> {
    if mysql_log::header(line).is_some() || mysql_log::header_with_blanks(line).is_some() {
        return Some(Format::MySqlGeneral);
    }
    if postgresql_log::is_csv(line) {
        return Some(Format::PostgreSqlCsv);
    }
    (line.starts_with("# User@Host: ") || line.starts_with("# Query_time: "))
        .then_some(Format::MySqlSlow)
}

/// The most bytes of a line that are kept, and of a statement.
const BYTES_MOST: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its text; bytes that are not UTF-8 are replaced.
    pub(super) text: String,
    pub(super) is_cut: bool,
}

/// The next line, up to a length limit; none at the end.
fn next_line(log: &mut dyn BufRead) -> io::Result<Option<Line>> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut is_cut = false;
    let mut has_any = false;
    loop {
        let buffer = match log.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            break;
        }
        has_any = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let kept = part.len().min(BYTES_MOST - bytes.len());
        is_cut |= kept < part.len();
        bytes.extend_from_slice(&part[..kept]);
        let used = part.len() + usize::from(end.is_some());
        log.consume(used);
        if end.is_some() {
            break;
        }
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(has_any.then_some(Line { text, is_cut }))
}

/// A statement that arrives in lines, with a limit.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    text: String,
    is_cut: bool,
}

impl Gathered {
    pub(super) fn new(text: &str, is_cut: bool) -> Gathered {
        let mut gathered = Gathered::default();
        gathered.add(text, is_cut);
        gathered
    }

    pub(super) fn add(&mut self, text: &str, is_cut: bool) {
        self.is_cut |= is_cut;
        if self.text.len() + text.len() >= BYTES_MOST {
            self.is_cut = true;
            return;
        }
        let end = if self.text.is_empty() { "" } else { "\n" };
        self.text.extend([end, text]);
    }

    /// The text, unless it was too long.
    pub(super) fn text(&self) -> Option<&str> {
        (!self.is_cut).then_some(self.text.as_str())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && !self.is_cut
    }
}
