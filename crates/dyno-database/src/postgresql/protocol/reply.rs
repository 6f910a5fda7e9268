//! Scans a statement's reply by kind and length; rows are counted, and decoded only if kept.

use dyno_workload::{COPY_REFUSED, ErrorClass, Reply, StatementError};

use super::bind::Encoding;
use super::frame::{HEADER_BYTES, ProtocolError, header};
use super::keep::{KEPT_MAX, RowKeeper};
use super::message::{Notices, ServerMessage};

/// Longest message that has to be complete (an error, a notice), in bytes.
const WHOLE_MAX: usize = 16 << 20;

/// The most notices of one statement: whoever sends them without end would be listened to without end.
pub(in crate::postgresql) const NOTICES_MOST: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgresql) enum Scan {
    More,
    Done,
    /// The server waits for rows of a COPY; they have to be refused.
    CopyIn,
}

#[derive(Debug, Default)]
pub(in crate::postgresql) struct ReplyScanner {
    // Bytes of the current message that are still to be skipped.
    n_skip: usize,
    // The reply ends with its command: others of the same pipeline follow.
    ends_at_command: bool,
    reply: Reply,
    error: Option<ServerMessage>,
    /// The statement ended with a rollback: what COMMIT does in a failed transaction.
    pub(in crate::postgresql) has_rolled_back: bool,
    /// The statement is a COPY that exchanges rows with its client.
    pub(in crate::postgresql) copies: bool,
    // The server's word for the state of its transaction: `I`, `T` or `E`.
    transaction: u8,
    pub(in crate::postgresql) keeper: RowKeeper,
    pub(in crate::postgresql) notices: Notices,
}

impl ReplyScanner {
    /// Begins the next reply; `columns` says how the columns are encoded if the rows are kept.
    pub(in crate::postgresql) fn begin(&mut self, columns: Option<&[Encoding]>) {
        self.keeper.begin(columns);
        self.reply = Reply::default();
        self.error = None;
        self.has_rolled_back = false;
        self.copies = false;
        self.ends_at_command = false;
    }

    /// Keeps the last rows of the reply that was begun, instead of its rows.
    pub(in crate::postgresql) fn keep_last(&mut self) {
        self.keeper.begin_last();
    }

    /// Keeps the rows of the reply that was begun as texts, whatever columns it has.
    pub(in crate::postgresql) fn learn_columns(&mut self) {
        self.keeper.begin_learning();
    }

    /// For a pipeline's replies other than the last: each ends with its command. If that fails, the
    /// server skips the others, and the reply ends like the last one.
    pub(in crate::postgresql) fn begin_amid(&mut self, columns: Option<&[Encoding]>) {
        self.begin(columns);
        self.ends_at_command = true;
    }

    /// Scans what has arrived; returns the number of bytes consumed, and the progress.
    pub(in crate::postgresql) fn scan(
        &mut self,
        bytes: &[u8],
    ) -> Result<(usize, Scan), ProtocolError> {
        let mut at = self.n_skip.min(bytes.len());
        self.n_skip -= at;
        while let Some((tag, length)) = header(&bytes[at..])? {
            let end = at + HEADER_BYTES + length;
            match tag {
                b'D' | b'T' if self.keeper.wants_message(tag) => {
                    // It is read, so it has to be complete.
                    let Some(body) = bytes.get(at + HEADER_BYTES..end) else {
                        if length > KEPT_MAX {
                            return Err(ProtocolError(format!("a row of {length} bytes to keep")));
                        }
                        return Ok((at, Scan::More));
                    };
                    self.keeper.take(tag, body)?;
                    self.reply.rows += u64::from(tag == b'D');
                }
                b'D' => self.reply.rows += 1,
                b'I' if self.ends_at_command && length == 0 => return Ok((end, Scan::Done)),
                b'I' => self.keeper.end_result()?,
                // BindComplete, RowDescription, NoData, ParseComplete, CloseComplete,
                // ParameterDescription, PortalSuspended, ParameterStatus, NotificationResponse,
                // CopyData, CopyDone.
                b'2' | b'T' | b'n' | b'1' | b'3' | b't' | b's' | b'S' | b'A' | b'd' | b'c' => {}
                // CopyOutResponse.
                b'H' => self.copies = true,
                b'C' | b'Z' | b'E' | b'N' | b'G' if end > bytes.len() => {
                    if length > WHOLE_MAX {
                        return Err(ProtocolError(format!("a message of {length} bytes")));
                    }
                    return Ok((at, Scan::More));
                }
                b'C' | b'Z' | b'E' | b'N' | b'G' => {
                    let scan = self.take_whole(tag, &bytes[at + HEADER_BYTES..end])?;
                    if scan != Scan::More {
                        return Ok((end, scan));
                    }
                }
                other => return Err(ProtocolError::unexpected(other)),
            }
            if end > bytes.len() {
                self.n_skip = end - bytes.len();
                return Ok((bytes.len(), Scan::More));
            }
            at = end;
        }
        Ok((at, Scan::More))
    }

    /// Whether a transaction is open, or has failed and is to be rolled back.
    pub(in crate::postgresql) fn is_in_transaction(&self) -> bool {
        matches!(self.transaction, b'T' | b'E')
    }

    pub(in crate::postgresql) fn finish(&mut self) -> Result<Reply, StatementError> {
        match self.error.take() {
            Some(error) if error.is_fatal() || !self.copies => Err(error.to_error()),
            // What the server says of it follows from how it was answered.
            _ if self.copies => {
                Err(StatementError::new(ErrorClass::Refused, "0A000", COPY_REFUSED))
            }
            _ => Ok(self.reply),
        }
    }

    /// Whether the server ends the connection with this reply.
    pub(in crate::postgresql) fn is_fatal(&self) -> bool {
        self.error.as_ref().is_some_and(|error| {
            error.is_fatal() || error.to_error().class == ErrorClass::Disconnected
        })
    }

    pub(in crate::postgresql) fn keep_notice(&mut self, body: &[u8]) -> Result<(), ProtocolError> {
        self.notices.keep(body)
    }

    fn take_whole(&mut self, tag: u8, body: &[u8]) -> Result<Scan, ProtocolError> {
        match tag {
            b'C' => {
                self.reply.affected = self.reply.affected.saturating_add(command_rows(body)?);
                self.keeper.end_result()?;
                self.has_rolled_back |= body == b"ROLLBACK\0";
                if self.ends_at_command {
                    return Ok(Scan::Done);
                }
            }
            b'Z' if self.ends_at_command && self.error.is_none() => {
                return Err(ProtocolError("ReadyForQuery within a pipeline".to_owned()));
            }
            b'Z' if body.len() == 1 => {
                self.transaction = body[0];
                return Ok(Scan::Done);
            }
            b'Z' => return Err(ProtocolError("ReadyForQuery has a wrong length".to_owned())),
            b'E' => {
                let message = ServerMessage::parse(body)?;
                let error = self.error.get_or_insert(message);
                if error.is_fatal() {
                    return Ok(Scan::Done);
                }
            }
            b'N' => {
                self.reply.warnings += 1;
                if self.reply.warnings > NOTICES_MOST {
                    let why = format!("more than {NOTICES_MOST} notices for one statement");
                    return Err(ProtocolError(why));
                }
                self.notices.keep(body)?;
            }
            _ => {
                self.copies = true;
                return Ok(Scan::CopyIn);
            }
        }
        Ok(Scan::More)
    }
}

/// The rows that a command changed, by its `CommandComplete`: `INSERT 0 5`, `UPDATE 3`.
pub(in crate::postgresql) fn command_rows(body: &[u8]) -> Result<u64, ProtocolError> {
    let Some((0, tag)) = body.split_last() else {
        return Err(ProtocolError::cut_off("CommandComplete"));
    };
    let changes_rows = [b"INSERT ".as_slice(), b"UPDATE ", b"DELETE ", b"MERGE ", b"COPY "]
        .iter()
        .any(|verb| tag.starts_with(verb));
    if !changes_rows {
        return Ok(0);
    }
    let digits = tag.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    let number = digits.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    });
    number
        .filter(|_| !digits.is_empty())
        .ok_or_else(|| ProtocolError(format!("CommandComplete `{}`", String::from_utf8_lossy(tag))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_cannot_have_been_changed_are_no_small_number() {
        let body = b"UPDATE 18446744073709551615\0";
        let length = u32::try_from(body.len() + 4).expect("it is short").to_be_bytes();
        let results = [&b"C"[..], &length, body].concat().repeat(2);
        let mut scanner = ReplyScanner::default();
        scanner.begin(None);
        assert_eq!(scanner.scan(&results), Ok((results.len(), Scan::More)));
        assert_eq!(scanner.finish().expect("no error").affected, u64::MAX);
    }

    #[test]
    fn notices_without_end_are_not_listened_to() {
        let body = b"SNOTICE\0VNOTICE\0C00000\0Mx\0\0";
        let length = u32::try_from(body.len() + 4).expect("it is short").to_be_bytes();
        let notice = [&b"N"[..], &length, body].concat();
        let mut scanner = ReplyScanner::default();
        scanner.begin(None);
        scanner.reply.warnings = NOTICES_MOST - 1;
        assert_eq!(scanner.scan(&notice).expect("there is room"), (notice.len(), Scan::More));
        let error = scanner.scan(&notice).expect_err("it is too much");
        assert!(error.0.contains("1000000 notices"), "{error:?}");
    }
}
