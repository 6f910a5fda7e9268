//! Follows a reply to its end without decoding it: the measured path.
//!
//! Rows and column definitions are skipped by length, even incomplete ones, so that long rows need
//! no more memory. Only framing packets are read: OK, errors, column counts, ends. If rows are
//! kept, a [`RowKeeper`] reads them and their definitions.

use dyno_workload::{ErrorClass, Reply, StatementError};

use super::keep::{Column, RowKeeper};
use super::packets::{self, ColumnCount, Outcome};
use super::{Fields, HEADER_LEN, MAX_CONTROL, MAX_PAYLOAD, Negotiated, not_understood, status};

/// Follows the reply to one statement.
// Hot fields first, so that they share cache lines.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ReplyReader {
    state: State,
    reply: Reply,
    // Bytes of the current packet that are still to be skipped.
    n_skip: usize,
    negotiated: Negotiated,
    // Sequence number of the next packet.
    sequence: u8,
    // Whether the packet being skipped is continued in the next one.
    continues: bool,
    // The file the server asked for and was refused.
    refused_file: Option<Box<str>>,
    pub(crate) keeper: RowKeeper,
}

/// The capabilities of a server with the shortest replies.
const PLAIN: Negotiated = Negotiated { deprecates_eof: true, caches_metadata: true };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// An OK packet, an error, a column count or a request for a file comes next.
    First,
    /// So many column definitions come next; at least one.
    Definitions(u64),
    /// The EOF packet after the definitions comes next.
    DefinitionsEnd,
    Rows,
    Done,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Partial,
    /// It is complete. The error is boxed to keep the result of every statement small.
    Complete(Result<Reply, Box<StatementError>>),
    /// The server asked for a local file: it waits for a packet with this sequence number (an empty
    /// one refuses), and continues the reply after that.
    FileWanted(u8),
}

impl ReplyReader {
    pub(crate) fn new(negotiated: Negotiated) -> ReplyReader {
        ReplyReader {
            negotiated,
            state: State::Done,
            sequence: 0,
            n_skip: 0,
            continues: false,
            reply: Reply::default(),
            refused_file: None,
            keeper: RowKeeper::default(),
        }
    }

    /// `columns` are the results' columns, as far as known, if rows are kept.
    #[inline]
    pub(crate) fn begin(&mut self, sequence: u8, columns: Option<&[Column]>) {
        self.keeper.begin(columns);
        self.state = State::First;
        self.sequence = sequence;
        self.n_skip = 0;
        self.continues = false;
        self.reply = Reply::default();
    }

    pub(crate) fn begin_text(&mut self, sequence: u8) {
        self.begin(sequence, None);
        self.keeper.begin_text();
    }

    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.state != State::Done
    }

    /// Reads a usual reply: all of it has arrived and nothing else, it is one result with known
    /// columns, and rows are not kept. `None` for others, of which nothing is read.
    #[inline]
    pub(crate) fn plain_rows(&mut self, bytes: &[u8]) -> Option<Reply> {
        // A column count of one byte, and the byte that says that no definitions follow.
        let Some((&[2, 0, 0, sequence, 1..=0xfa, 0], mut rest)) = bytes.split_first_chunk() else {
            return None;
        };
        let is_plain = self.state == State::First
            && sequence == self.sequence
            && self.negotiated == PLAIN
            && !self.keeper.wants
            && self.refused_file.is_none()
            // The counts of an earlier result would be lost.
            && self.reply == Reply::default();
        if !is_plain {
            return None;
        }
        let mut rows = 0;
        loop {
            let &[a, b, c, next, first] = rest.first_chunk()?;
            let len = u32::from_le_bytes([a, b, c, 0]) as usize;
            let (payload, more) = rest[HEADER_LEN..].split_at_checked(len)?;
            rows += 1;
            if next != sequence.wrapping_add(rows as u8) || !(1..MAX_PAYLOAD).contains(&len) {
                return None;
            }
            if first < packets::END {
                rest = more;
                continue;
            }
            let outcome = Outcome::from_ok(payload).filter(|_| first == packets::END)?;
            if outcome.status & status::MORE_RESULTS != 0 || !more.is_empty() {
                return None;
            }
            self.state = State::Done;
            let (affected, warnings) = (outcome.affected, u64::from(outcome.warnings));
            return Some(Reply { rows: rows - 1, affected, warnings });
        }
    }

    /// Returns the number of bytes consumed; the rest must be offered again, with more.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> (usize, Progress) {
        let mut at = 0;
        while self.state != State::Done {
            let n_passed = self.n_skip.min(bytes.len() - at);
            at += n_passed;
            self.n_skip -= n_passed;
            if self.state == State::Rows && !self.continues && !self.keeper.wants {
                at += self.pass_rows(&bytes[at..]);
            }
            // Rows and ends alike are known by their first byte.
            let rest = &bytes[at..];
            let &[a, b, c, sequence, ref payload @ ..] = rest else {
                return (at, Progress::Partial);
            };
            let len = u32::from_le_bytes([a, b, c, 0]) as usize;
            let is_passed = self.continues || {
                // What is behind an empty packet is not its own.
                let first = if len == 0 { Some(&0) } else { payload.first() };
                let Some(&first) = first else { return (at, Progress::Partial) };
                self.is_passed(first, len)
            };
            if is_passed && self.keeper.wants {
                // It is not skipped but read, so it has to be complete.
                let Some(whole) = payload.get(..len) else { return (at, Progress::Partial) };
                if let Err(error) = self.keep(whole, sequence) {
                    return (at, self.failed(error));
                }
                at += HEADER_LEN + len;
                continue;
            }
            if is_passed {
                if let Err(error) = self.pass(len, sequence) {
                    return (at, self.failed(*error));
                }
                at += HEADER_LEN;
                continue;
            }
            if len > MAX_CONTROL {
                let error = not_understood("a packet is too long for its type");
                return (at, self.failed(error));
            }
            let Some(payload) = payload.get(..len) else { return (at, Progress::Partial) };
            at += HEADER_LEN + len;
            if let Some(progress) = self.control(payload, sequence) {
                return (at, progress);
            }
        }
        (at, Progress::Partial)
    }

    /// Skips complete rows of one packet, as nearly all are. Returns the number of bytes.
    #[inline]
    fn pass_rows(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let [a, b, c, sequence, 0..packets::END, ..] = bytes[at..] {
            let len = u32::from_le_bytes([a, b, c, 0]) as usize;
            let is_plain = sequence == self.sequence && (1..MAX_PAYLOAD).contains(&len);
            if !is_plain || bytes.len() - at < HEADER_LEN + len {
                break;
            }
            self.sequence = sequence.wrapping_add(1);
            self.reply.rows += 1;
            at += HEADER_LEN + len;
        }
        at
    }

    /// Whether a packet that begins like this is a row or a column definition.
    #[inline]
    fn is_passed(&self, first: u8, len: usize) -> bool {
        match self.state {
            State::Rows => match first {
                packets::ERROR => false,
                packets::END if self.negotiated.deprecates_eof => len == MAX_PAYLOAD,
                packets::END => len >= 9,
                _ => true,
            },
            State::Definitions(_) => first != packets::ERROR,
            State::First | State::DefinitionsEnd | State::Done => false,
        }
    }

    #[inline]
    fn pass(&mut self, len: usize, sequence: u8) -> Result<(), Box<StatementError>> {
        if sequence != self.sequence {
            return Err(Box::new(out_of_order()));
        }
        self.sequence = sequence.wrapping_add(1);
        if !self.continues {
            if len == 0 {
                return Err(Box::new(not_understood("a row without any bytes")));
            }
            match self.state {
                State::Definitions(left) if left > 1 => self.state = State::Definitions(left - 1),
                State::Definitions(_) if self.negotiated.deprecates_eof => self.state = State::Rows,
                State::Definitions(_) => self.state = State::DefinitionsEnd,
                _ => self.reply.rows += 1,
            }
        }
        self.n_skip = len;
        self.continues = len == MAX_PAYLOAD;
        Ok(())
    }

    fn keep(&mut self, payload: &[u8], sequence: u8) -> Result<(), StatementError> {
        if payload.len() == MAX_PAYLOAD {
            return Err(not_understood("a row of 16 MiB or more, which cannot be kept"));
        }
        let is_row = self.state == State::Rows;
        self.pass(payload.len(), sequence).map_err(|error| *error)?;
        self.n_skip = 0;
        if is_row { self.keeper.row(payload) } else { self.keeper.definition(payload) }
    }

    /// Reads a packet that is neither row nor column definition; none if the reply goes on.
    fn control(&mut self, payload: &[u8], sequence: u8) -> Option<Progress> {
        // A server that closes the connection may send an error with its own sequence number.
        if payload.first() == Some(&packets::ERROR) {
            return Some(self.failed(packets::read_error(payload)));
        }
        if sequence != self.sequence {
            return Some(self.failed(out_of_order()));
        }
        self.sequence = sequence.wrapping_add(1);
        match self.state {
            State::First => self.first(payload),
            State::Rows => {
                if self.keeper.wants {
                    self.keeper.result_ended();
                }
                let outcome = Outcome::from_end(payload, self.negotiated);
                self.result_ended(outcome, "the end of a result")
            }
            State::DefinitionsEnd if payload.first() == Some(&packets::END) => {
                self.state = State::Rows;
                None
            }
            State::DefinitionsEnd | State::Definitions(_) | State::Done => {
                Some(self.failed(not_understood("no end of the column definitions")))
            }
        }
    }

    fn first(&mut self, payload: &[u8]) -> Option<Progress> {
        match payload.first() {
            Some(&packets::OK) => self.result_ended(Outcome::from_ok(payload), "an OK packet"),
            Some(&packets::LOCAL_FILE) => Some(self.file_wanted(&payload[1..])),
            _ => {
                let Some(count) = ColumnCount::read(payload, self.negotiated) else {
                    let error = not_understood("neither OK nor error nor a column count");
                    return Some(self.failed(error));
                };
                if self.keeper.wants
                    && let Err(error) =
                        self.keeper.result_begins(count.n_columns, count.has_definitions)
                {
                    return Some(self.failed(error));
                }
                self.state = match count.has_definitions {
                    true => State::Definitions(count.n_columns),
                    false if self.negotiated.deprecates_eof => State::Rows,
                    false => State::DefinitionsEnd,
                };
                None
            }
        }
    }

    #[inline]
    fn result_ended(&mut self, outcome: Option<Outcome>, what: &str) -> Option<Progress> {
        let Some(outcome) = outcome else {
            return Some(self.failed(not_understood(&format!("{what} is too short"))));
        };
        self.reply.affected = self.reply.affected.saturating_add(outcome.affected);
        self.reply.warnings += u64::from(outcome.warnings);
        if outcome.status & status::MORE_RESULTS != 0 {
            self.state = State::First;
            return None;
        }
        self.state = State::Done;
        if self.refused_file.is_some() {
            return Some(self.refused());
        }
        Some(Progress::Complete(Ok(self.reply)))
    }

    #[cold]
    fn file_wanted(&mut self, name: &[u8]) -> Progress {
        self.refused_file = Some(String::from_utf8_lossy(Fields(name).rest()).into());
        // Ours is the next number; the reply continues with the one after it.
        let ours = self.sequence;
        self.sequence = ours.wrapping_add(1);
        Progress::FileWanted(ours)
    }

    /// The reply has ended with this error, or with the refusal of a file before it.
    #[cold]
    fn failed(&mut self, error: StatementError) -> Progress {
        self.state = State::Done;
        match self.refused_file {
            Some(_) => self.refused(),
            None => Progress::Complete(Err(Box::new(error))),
        }
    }

    #[cold]
    fn refused(&mut self) -> Progress {
        let name = self.refused_file.take().unwrap_or_default();
        Progress::Complete(Err(Box::new(file_refused(&name))))
    }
}

#[cold]
pub(crate) fn file_refused(name: &str) -> StatementError {
    StatementError::new(
        ErrorClass::Refused,
        "local file",
        format!("the server asked for the local file `{name}`; Dyno sends no files"),
    )
}

#[cold]
fn out_of_order() -> StatementError {
    not_understood("packets are out of order")
}

#[cfg(test)]
mod tests;
