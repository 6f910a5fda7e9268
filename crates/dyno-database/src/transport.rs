//! Bytes to and from a server: Unix socket or TCP, plain or TLS, blocking or not.

use std::io;
use std::os::fd::RawFd;

use crate::{Endpoint, TlsMode};

/// An open stream to a server.
pub(crate) struct Transport {}

impl Transport {
    /// Opens a plain stream, blocking, TCP_NODELAY set. Gives up after ten seconds.
    pub(crate) fn open(_endpoint: &Endpoint) -> io::Result<Transport> {
        unimplemented!()
    }

    /// Wraps the stream in TLS and finishes the handshake; blocks. `host` is the name to verify.
    pub(crate) fn start_tls(&mut self, _mode: &TlsMode, _host: &str) -> io::Result<()> {
        unimplemented!()
    }

    /// Whether it is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        unimplemented!()
    }

    /// The descriptor.
    pub(crate) fn descriptor(&self) -> RawFd {
        unimplemented!()
    }

    /// Blocking or not; a blocking read gives up after `timeout_ns` (0: never) with `WouldBlock`.
    pub(crate) fn set_blocking(&mut self, _blocking: bool, _timeout_ns: u64) -> io::Result<()> {
        unimplemented!()
    }

    /// Reads once, appending to `buffer`; 0 means the peer has closed. With TLS: decrypted bytes,
    /// `WouldBlock` where a record is incomplete.
    pub(crate) fn read_some(&mut self, _buffer: &mut ReadBuffer) -> io::Result<usize> {
        unimplemented!()
    }

    /// Writes as much as it can and returns how much was taken.
    pub(crate) fn write_some(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        unimplemented!()
    }

    /// Whether encrypted bytes wait inside (TLS only) for the socket to take them.
    pub(crate) fn wants_write(&self) -> bool {
        unimplemented!()
    }

    /// Whether decrypted bytes wait inside (TLS only) that a poll of the descriptor cannot see.
    pub(crate) fn has_buffered(&self) -> bool {
        unimplemented!()
    }
}

/// Bytes received and not yet consumed; grows when it must and never shrinks.
pub(crate) struct ReadBuffer {}
