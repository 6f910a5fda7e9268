//! What both protocols have in common: what answers contain, and the reading of what a client sent, which checks every
//! length. Not the reader of Dyno's connections: a shared one would hide its bugs from tests against null servers.

use dyno_workload::Dialect;

use crate::Protocol;

/// The only column of every row: 119 zeros, as long as sysbench's `c`, or a number.
pub(super) const VALUE: &[u8; 119] = &[b'0'; 119];
pub(super) const COLUMN: &[u8] = b"c";
/// Longest message of a client, in bytes; a client that claims more is disconnected.
pub(super) const MESSAGE_MAX: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    MySql,
    /// The PostgreSQL protocol, version 3.0.
    PostgreSql,
}

impl Wire {
    pub const ALL: [Wire; 2] = [Wire::MySql, Wire::PostgreSql];

    pub fn named(name: &str) -> Option<Wire> {
        Wire::ALL.into_iter().find(|wire| wire.name() == name)
    }

    pub fn name(self) -> &'static str {
        self.protocol().name
    }

    pub fn title(self) -> &'static str {
        match self {
            Wire::MySql => "MySQL",
            Wire::PostgreSql => "PostgreSQL",
        }
    }

    pub fn dialect(self) -> Dialect {
        self.protocol().dialect.expect("both protocols carry SQL")
    }

    pub fn protocol(self) -> &'static Protocol {
        match self {
            Wire::MySql => &crate::mysql::PROTOCOL,
            Wire::PostgreSql => &crate::postgresql::PROTOCOL,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) n_bytes: usize,
    pub(super) n_statements: u64,
    pub(super) n_executions: u64,
    /// Whether it has ended: the connection is closed after the answer.
    pub(super) is_over: bool,
}

/// The unread rest of a message. Each method returns none if too few bytes are left.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(super) fn u32_le(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(super) fn u32_be(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    pub(super) fn u16_be(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// The text up to a zero byte, which is skipped.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.bytes(len)?;
        self.u8()?;
        Some(text)
    }
}
