//! Blocking exchange of packets with a server, for cold calls.

use std::io;

use dyno_workload::{ErrorClass, StatementError};

use super::protocol::{HEADER_LEN, MAX_PAYLOAD, not_understood, packets, push_packets};
use crate::error::StatementResult as Result;
use crate::transport::{ReadBuffer, Transport};

/// Of a payload before authentication, all packets together: a login takes a few kilobytes.
const LOGIN_MAX: usize = 1 << 20;

/// The same after authentication: no cold call needs longer rows.
const PAYLOAD_MAX: usize = 64 << 20;

pub(super) struct Channel {
    pub(super) transport: Transport,
    pub(super) buffer: ReadBuffer,
    // Sequence number of the next packet of either side.
    sequence: u8,
    // Longest payload that is taken in.
    payload_max: usize,
}

impl Channel {
    pub(super) fn new(transport: Transport) -> Channel {
        Channel { transport, buffer: ReadBuffer::new(), sequence: 0, payload_max: LOGIN_MAX }
    }

    /// Authentication has succeeded: longer packets are accepted from now on.
    pub(super) fn logged_in(&mut self) {
        self.payload_max = PAYLOAD_MAX;
    }

    /// Sends a command: the first packet of an exchange.
    pub(super) fn command(&mut self, command: u8, body: &[u8]) -> Result<()> {
        self.sequence = 0;
        self.packet_out(&[&[command], body].concat())
    }

    /// Sends a packet that continues an exchange.
    pub(super) fn packet_out(&mut self, payload: &[u8]) -> Result<()> {
        let mut out = Vec::with_capacity(HEADER_LEN + payload.len());
        self.sequence = push_packets(&mut out, payload, self.sequence);
        self.write_all(&out)
    }

    /// Writes `packet`, whose first bytes are free for its header.
    pub(super) fn framed_out(&mut self, packet: &mut [u8]) -> Result<()> {
        let len = packet.len() - HEADER_LEN;
        assert!(len < MAX_PAYLOAD, "the packet has to be split");
        packet[..3].copy_from_slice(&(len as u32).to_le_bytes()[..3]);
        packet[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.write_all(packet)
    }

    /// Receives a payload, joined if it came in several packets.
    pub(super) fn packet_in(&mut self) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        loop {
            let &[a, b, c, sequence] = self.wait_for(HEADER_LEN)? else {
                return Err(not_understood("a packet without a header"));
            };
            let len = u32::from_le_bytes([a, b, c, 0]) as usize;
            if payload.len() + len > self.payload_max {
                return Err(not_understood(&format!(
                    "a packet of more than {} MiB",
                    self.payload_max >> 20
                )));
            }
            let packet = &self.wait_for(HEADER_LEN + len)?[HEADER_LEN..];
            payload.extend_from_slice(packet);
            // An unsolicited error has a sequence number of its own.
            let is_error = payload.first() == Some(&packets::ERROR);
            self.buffer.consume(HEADER_LEN + len);
            if sequence != self.sequence && !is_error {
                return Err(not_understood("packets are out of order"));
            }
            self.sequence = sequence.wrapping_add(1);
            if len < MAX_PAYLOAD {
                return Ok(payload);
            }
        }
    }

    /// Receives a payload and passes it on where it lies; one that came in several packets is joined first.
    pub(super) fn packet_in_place<T>(&mut self, pass_on: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let &[a, b, c, sequence] = self.wait_for(HEADER_LEN)? else {
            return Err(not_understood("a packet without a header"));
        };
        let len = u32::from_le_bytes([a, b, c, 0]) as usize;
        if len == MAX_PAYLOAD || sequence != self.sequence {
            return self.packet_in().map(|payload| pass_on(&payload));
        }
        let done = pass_on(&self.wait_for(HEADER_LEN + len)?[HEADER_LEN..]);
        self.buffer.consume(HEADER_LEN + len);
        self.sequence = sequence.wrapping_add(1);
        Ok(done)
    }

    /// Waits for the first `n` unread bytes.
    fn wait_for(&mut self, n: usize) -> Result<&[u8]> {
        while self.buffer.unread().len() < n {
            match self.transport.read_some(&mut self.buffer) {
                Ok(0) => return Err(closed()),
                Ok(_) => {}
                Err(error) => return Err(lost(&error.to_string())),
            }
        }
        Ok(&self.buffer.unread()[..n])
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() || self.transport.wants_write() {
            match self.transport.write_some(bytes) {
                Ok(0) if !bytes.is_empty() => return Err(gone("the socket accepts no more data")),
                Ok(n_taken) => bytes = &bytes[n_taken..],
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(gone("the server does not read what it is sent"));
                }
                Err(error) => return Err(self.last_words(gone(&error.to_string()))),
            }
        }
        Ok(())
    }

    /// The reason that a server sent before it closed the connection; else the noticed error.
    fn last_words(&mut self, noticed: StatementError) -> StatementError {
        match self.packet_in() {
            Ok(payload) if payload.first() == Some(&packets::ERROR) => {
                let said = packets::read_error(&payload);
                StatementError { class: ErrorClass::Disconnected, ..said }
            }
            _ => noticed,
        }
    }
}

#[cold]
pub(super) fn lost(reason: &str) -> StatementError {
    StatementError::new(
        ErrorClass::Disconnected,
        "disconnected",
        format!("the connection to the server is lost: {reason}"),
    )
}

/// The same if the statement was not sent: client libraries have a number for that.
#[cold]
pub(super) fn gone(reason: &str) -> StatementError {
    StatementError { code: "2006".to_owned(), ..lost(reason) }
}

#[cold]
pub(super) fn closed() -> StatementError {
    lost("the server closed it")
}
