//! Bytes to and from a server: Unix socket or TCP, plain or TLS, blocking or not. Knows no
//! protocol. A connection owns one [`Transport`] and one [`ReadBuffer`].

mod buffer;
mod patience;
mod socket;
#[cfg(test)]
pub(crate) mod tests;
mod tls;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

pub(crate) use buffer::ReadBuffer;
use dyno_units::Nanoseconds;
pub(crate) use patience::{CATALOG_LIMIT, ROWS_SILENCE, STATEMENT_SILENCE};
use patience::{Patience, Patient};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket::Socket;
use tls::{RECORD_READS, TlsStream};

use crate::{Address, Endpoint, TlsMode};

/// Least room that a read is given, in bytes.
const READ_ROOM: usize = 8 * 1024;

/// Per reply under load, before the worker looks at the clock and other clients: a server that never pauses
/// must hit the statement's limit like a silent one.
pub(crate) const READS_MOST: usize = 32;

/// A plain read of fewer bytes than this has emptied the socket.
pub(crate) const SHORT_READ: usize = READ_ROOM;

/// Of a cold result, in bytes: queries need a fraction, and servers could send without end.
pub(crate) const COLD_RESULT_MAX: usize = 64 << 20;

/// The memory that a row of texts takes, in bytes.
pub(crate) fn row_room(row: &[Option<String>]) -> usize {
    let texts: usize = row.iter().flatten().map(String::len).sum();
    texts + size_of_val(row) + size_of::<Vec<Option<String>>>()
}

pub(crate) fn too_much() -> String {
    format!("its result is larger than {} MiB, the most that Dyno accepts", COLD_RESULT_MAX >> 20)
}

/// Why a server was not reached, with what to look at, such as `no_socket` where there is none.
pub(crate) fn unreached(error: &io::Error, address: &Address, no_socket: &str) -> String {
    let advice = match (address, error.kind()) {
        (Address::Unix(_), io::ErrorKind::NotFound) => no_socket,
        (_, io::ErrorKind::ConnectionRefused) => "nothing is listening there: is the server up?",
        (_, io::ErrorKind::PermissionDenied) => "this user is not allowed to use that socket",
        (_, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            "no answer within ten seconds: is it the right host, and is there a firewall in \
             between?"
        }
        _ => return error.to_string(),
    };
    format!("{error}; {advice}")
}

pub(crate) struct Transport {
    socket: Socket,
    tls: Option<Box<TlsStream>>,
    is_blocking: bool,
    // Of the cold work in progress; boxed, so that the hot fields share a cache line.
    patience: Option<Box<Patience>>,
}

impl Transport {
    /// Plain, blocking, with TCP_NODELAY; gives up after ten seconds. Reads and writes then have
    /// ten seconds in total, which bounds a handshake, until [`Transport::begin_cold`] or
    /// [`Transport::set_blocking`].
    pub(crate) fn open(endpoint: &Endpoint) -> io::Result<Transport> {
        let socket = Socket::open(&endpoint.address)?;
        let mut transport = Transport { socket, tls: None, is_blocking: true, patience: None };
        transport.begin_cold(socket::OPEN_LIMIT)?;
        Ok(transport)
    }

    /// Finishes the handshake; blocks for at most ten seconds. `host` is verified.
    pub(crate) fn start_tls(&mut self, mode: &TlsMode, host: &str) -> io::Result<()> {
        self.begin_cold(socket::OPEN_LIMIT)?;
        let patience = self.patience.as_mut().expect("it has just begun");
        let mut socket = Patient { socket: &mut self.socket, patience };
        if let Some(tls) = TlsStream::handshake(mode, host, &mut socket)? {
            self.tls = Some(Box::new(tls));
        }
        Ok(())
    }

    /// For passwords: nobody else can have made the socket, or the certificate is verified.
    pub(crate) fn is_trusted(&self, endpoint: &Endpoint) -> bool {
        let is_verified = matches!(endpoint.tls, TlsMode::Verify { .. });
        match &endpoint.address {
            Address::Unix(path) => is_verified || self.socket.is_of_server(path),
            Address::Tcp { .. } => is_verified,
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The server's certificate (DER), for channel binding; none without TLS.
    pub(crate) fn server_certificate(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.server_certificate()
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Blocking calls end after `timeout_ns` (0: never) with `WouldBlock`. Ends cold work.
    pub(crate) fn set_blocking(&mut self, blocking: bool, timeout_ns: u64) -> io::Result<()> {
        self.patience = None;
        self.is_blocking = blocking;
        self.socket.set_blocking(blocking, timeout_ns)
    }

    /// Reads and writes block, in total for at most `limit` (0: any time; then `TimedOut`), and end
    /// when the user stops, or no byte moves for a day.
    pub(crate) fn begin_cold(&mut self, limit: Nanoseconds) -> io::Result<()> {
        self.begin_cold_within(limit, STATEMENT_SILENCE)
    }

    pub(crate) fn begin_cold_within(
        &mut self,
        limit: Nanoseconds,
        silence: Nanoseconds,
    ) -> io::Result<()> {
        self.is_blocking = true;
        let is_short = Nanoseconds::ZERO < limit && limit < patience::SLICE;
        let slice = if is_short { limit } else { patience::SLICE };
        self.socket.set_blocking(true, slice.0)?;
        self.patience = Some(Box::new(Patience::begin(limit, silence)));
        Ok(())
    }

    /// Appends to `buffer`; 0 if the peer has closed. TLS decrypts; `WouldBlock` if a record is incomplete. A blocking
    /// stream waits for the rest, but under load, where only the caller knows the limit, only for a few reads.
    pub(crate) fn read_some(&mut self, buffer: &mut ReadBuffer) -> io::Result<usize> {
        if self.patience.is_some() {
            return self.read_patiently(buffer);
        }
        if let Some(tls) = &mut self.tls {
            let reads_most = if self.is_blocking { RECORD_READS } else { 1 };
            return tls.read_some(&mut self.socket, buffer, reads_most);
        }
        let n_read = self.socket.read(buffer.room(READ_ROOM))?;
        buffer.filled(n_read);
        Ok(n_read)
    }

    #[cold]
    fn read_patiently(&mut self, buffer: &mut ReadBuffer) -> io::Result<usize> {
        let patience = self.patience.as_mut().expect("cold work goes on");
        let mut socket = Patient { socket: &mut self.socket, patience };
        if let Some(tls) = &mut self.tls {
            return tls.read_some(&mut socket, buffer, usize::MAX);
        }
        let n_read = socket.read(buffer.room(READ_ROOM))?;
        buffer.filled(n_read);
        Ok(n_read)
    }

    /// Reads what is there already without waiting for it, whatever the stream's mode.
    pub(crate) fn read_now(&mut self, buffer: &mut ReadBuffer) -> io::Result<usize> {
        let (patience, was_blocking) = (self.patience.take(), self.is_blocking);
        self.socket.set_waiting(false)?;
        self.is_blocking = false;
        let result = self.read_some(buffer);
        self.is_blocking = was_blocking;
        self.patience = patience;
        self.socket.set_waiting(was_blocking)?;
        result
    }

    /// Returns the number accepted. TLS without bytes writes encrypted bytes that wait.
    pub(crate) fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.patience.is_some() {
            return self.write_patiently(bytes);
        }
        match &mut self.tls {
            Some(tls) => tls.write_some(&mut self.socket, bytes),
            None if bytes.is_empty() => Ok(0),
            None => self.socket.write(bytes),
        }
    }

    #[cold]
    fn write_patiently(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let patience = self.patience.as_mut().expect("cold work goes on");
        let mut socket = Patient { socket: &mut self.socket, patience };
        match &mut self.tls {
            Some(tls) => tls.write_some(&mut socket, bytes),
            None if bytes.is_empty() => Ok(0),
            None => socket.write(bytes),
        }
    }

    /// Writes what is left of a message, of which so many bytes are on their way; false if something is still left.
    /// After an error nothing is.
    pub(crate) fn write_rest(&mut self, message: &[u8], n_written: &mut usize) -> io::Result<bool> {
        while *n_written < message.len() || self.wants_write() {
            match self.write_some(&message[*n_written..]) {
                Ok(n_taken) => *n_written += n_taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => {
                    *n_written = message.len();
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Whether encrypted bytes wait inside (TLS only) for the socket to take them.
    pub(crate) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Blocks until a read finds something; false after `timeout_ns` (0: no limit). Returns at once
    /// for TCP, where the read itself may block.
    ///
    /// A thread in a read of a Unix socket wakes twice per statement: when the server takes the
    /// request, and for the reply. In `poll` it wakes only for the reply, which saves more than the
    /// call costs.
    #[inline]
    pub(crate) fn wait_readable(&self, timeout_ns: u64) -> bool {
        if matches!(self.socket, Socket::Tcp(_)) || self.has_buffered() {
            return true;
        }
        let limit = Timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as i64,
            tv_nsec: (timeout_ns % 1_000_000_000) as i64,
        };
        let limit = (timeout_ns > 0).then_some(&limit);
        let descriptor = self.descriptor();
        loop {
            match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], limit) {
                Ok(n_ready) => return n_ready > 0,
                Err(Errno::INTR) => {}
                // The read that follows meets the same error, and returns it.
                Err(_) => return true,
            }
        }
    }

    /// Whether decrypted bytes wait inside (TLS only) that a poll of the descriptor cannot see.
    pub(crate) fn has_buffered(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_buffered())
    }
}
