//! Blocking exchange of complete messages, for cold calls.

use std::io;

use dyno_workload::{ErrorClass, StatementError};

use super::protocol::{HEADER_BYTES, ProtocolError, header};
use crate::transport::{ReadBuffer, Transport};

pub(super) struct Wire {
    pub(super) transport: Transport,
    pub(super) received: ReadBuffer,
    // Length of the message at the front of `received`, header included; 0 before the first.
    n_current: usize,
    // Longest message that is taken in.
    length_max: usize,
}

/// The wire failed. Its text fits after "connection lost:".
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct WireError(pub(super) String);

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> WireError {
        WireError(error.to_string())
    }
}

impl From<ProtocolError> for WireError {
    fn from(error: ProtocolError) -> WireError {
        WireError(error.to_string())
    }
}

impl From<WireError> for StatementError {
    fn from(error: WireError) -> StatementError {
        // `connection_failure`.
        StatementError::new(ErrorClass::Disconnected, "08006", error.0)
    }
}

impl Wire {
    pub(super) fn new(transport: Transport) -> Wire {
        Wire { transport, received: ReadBuffer::new(), n_current: 0, length_max: LOGIN_MAX }
    }

    /// Authentication has succeeded: longer messages are accepted from now on.
    pub(super) fn logged_in(&mut self) {
        self.length_max = MESSAGE_MAX;
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let n_taken = self.transport.write_some(rest)?;
            if n_taken == 0 {
                return Err(WireError("the server accepts no more data".to_owned()));
            }
            rest = &rest[n_taken..];
        }
        while self.transport.wants_write() {
            self.transport.write_some(&[])?;
        }
        Ok(())
    }

    /// Returns the kind; [`Wire::body`] is the body until the next call.
    pub(super) fn next_message(&mut self) -> Result<u8, WireError> {
        self.finish_message();
        loop {
            let unread = self.received.unread();
            let n_missing = match header(unread)? {
                None => HEADER_BYTES - unread.len(),
                Some((_, length)) if length > self.length_max => {
                    return Err(WireError(format!(
                        "the server violated the protocol: a message of more than {} MiB",
                        self.length_max >> 20
                    )));
                }
                Some((tag, length)) => {
                    let n_whole = HEADER_BYTES + length;
                    if unread.len() >= n_whole {
                        self.n_current = n_whole;
                        return Ok(tag);
                    }
                    n_whole - unread.len()
                }
            };
            // Grow by what has arrived, not by what a length claims.
            let n_room = n_missing.min(unread.len().max(READ_STEP));
            self.received.room(n_room);
            self.read()?;
        }
    }

    /// The body of the message that [`Wire::next_message`] found.
    pub(super) fn body(&self) -> &[u8] {
        self.received.unread().get(HEADER_BYTES..self.n_current).unwrap_or_default()
    }

    /// Removes the current message, so that only bytes after it are unread.
    pub(super) fn finish_message(&mut self) {
        self.received.consume(std::mem::take(&mut self.n_current));
    }

    pub(super) fn read(&mut self) -> Result<(), WireError> {
        match self.transport.read_some(&mut self.received)? {
            0 => Err(closed()),
            _ => Ok(()),
        }
    }

    /// Without waiting. Fails if the server is gone, or sends more than anybody takes.
    pub(super) fn read_now(&mut self) -> Result<(), WireError> {
        if self.received.unread().len() > UNASKED_MAX {
            return Err(WireError(format!(
                "the server violated the protocol: more than {} MiB that nobody asked for",
                UNASKED_MAX >> 20
            )));
        }
        match self.transport.read_now(&mut self.received) {
            Ok(0) => Err(closed()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Of the first message if it is complete, and there is no current one.
    pub(super) fn peek(&self) -> Result<Option<(u8, usize)>, WireError> {
        let unread = self.received.unread();
        match header(unread)? {
            Some((tag, length)) if unread.len() - HEADER_BYTES >= length => {
                Ok(Some((tag, HEADER_BYTES + length)))
            }
            _ => Ok(None),
        }
    }
}

pub(super) fn closed() -> WireError {
    WireError("the server closed the connection".to_owned())
}

/// Of a message before authentication: a login takes a few kilobytes.
const LOGIN_MAX: usize = 1 << 20;

/// The same after authentication: no cold call needs longer rows.
const MESSAGE_MAX: usize = 64 << 20;

/// How much may have arrived that answers nothing, in bytes.
const UNASKED_MAX: usize = 1 << 20;

/// Least room for a read, in bytes.
const READ_STEP: usize = 16 * 1024;
