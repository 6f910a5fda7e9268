//! The MySQL protocol, bytes in and out: no socket, clock or thread. Sources: the protocol
//! documentation of MariaDB and MySQL. A server's lengths are checked against what has arrived;
//! nothing panics on hostile bytes.

pub(crate) mod execute;
mod fields;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub(crate) mod greeting;
pub(crate) mod keep;
pub(crate) mod packets;
pub(crate) mod reply;

pub(crate) use fields::{Fields, push_lenenc};

use dyno_workload::{ErrorClass, StatementError};

/// Length of a packet's header: 3 bytes length of the payload, 1 byte sequence number.
pub(crate) const HEADER_LEN: usize = 4;

/// A payload of this length is continued in the next packet.
pub(crate) const MAX_PAYLOAD: usize = 0xff_ffff;

/// Of packets other than rows and column definitions; longer ones are not understood.
pub(crate) const MAX_CONTROL: usize = 1 << 20;

pub(crate) mod capability {
    /// Set by MySQL; a MariaDB server leaves it out and has extended capabilities instead.
    pub(crate) const MYSQL: u32 = 1;
    pub(crate) const LONG_FLAG: u32 = 1 << 2;
    pub(crate) const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(crate) const LOCAL_FILES: u32 = 1 << 7;
    pub(crate) const PROTOCOL_41: u32 = 1 << 9;
    pub(crate) const SSL: u32 = 1 << 11;
    pub(crate) const TRANSACTIONS: u32 = 1 << 13;
    pub(crate) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(crate) const MULTI_STATEMENTS: u32 = 1 << 16;
    pub(crate) const MULTI_RESULTS: u32 = 1 << 17;
    pub(crate) const PS_MULTI_RESULTS: u32 = 1 << 18;
    pub(crate) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(crate) const CONNECT_ATTRS: u32 = 1 << 20;
    pub(crate) const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    pub(crate) const DEPRECATE_EOF: u32 = 1 << 24;
    /// From MariaDB: a prepared statement's column definitions are sent again only after a change.
    pub(crate) const MARIADB_CACHE_METADATA: u32 = 1 << 4;
}

pub(crate) mod status {
    pub(crate) const MORE_RESULTS: u16 = 0x0008;
    pub(crate) const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
}

pub(crate) mod command {
    pub(crate) const QUIT: u8 = 0x01;
    pub(crate) const QUERY: u8 = 0x03;
    pub(crate) const STMT_PREPARE: u8 = 0x16;
    pub(crate) const STMT_EXECUTE: u8 = 0x17;
    pub(crate) const STMT_CLOSE: u8 = 0x19;
}

/// The negotiated capabilities that change how replies are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Negotiated {
    /// Results end with an OK packet, and column definitions with nothing.
    pub(crate) deprecates_eof: bool,
    /// The column count is followed by a byte that says whether definitions follow.
    pub(crate) caches_metadata: bool,
}

/// What a client does about a server's error number.
pub(crate) fn class_of(code: u16) -> ErrorClass {
    match code {
        1213 | 1614 => ErrorClass::Deadlock,
        1205 => ErrorClass::LockTimeout,
        // MariaDB's changed record; the write conflicts of TiDB.
        1020 | 8002 | 8022 | 9007 => ErrorClass::Serialization,
        1022 | 1062 | 1169 | 1586 | 1859 => ErrorClass::DuplicateKey,
        1969 | 3024 => ErrorClass::TimedOut,
        // Shutdown, aborted, killed, network errors of the server, closed for idleness.
        1053 | 1152 | 1158..=1161 | 1184 | 1927 | 2006 | 2013 | 2055 | 3169 | 4031 => {
            ErrorClass::Disconnected
        }
        _ => ErrorClass::Refused,
    }
}

/// An error for a violation of the protocol, after which the connection is unusable.
#[cold]
pub(crate) fn not_understood(what: &str) -> StatementError {
    StatementError::new(
        ErrorClass::Disconnected,
        "protocol",
        format!("the server's reply is not understood: {what}"),
    )
}

/// Appends `payload` as one or more packets. Returns the next sequence number.
pub(crate) fn push_packets(out: &mut Vec<u8>, mut payload: &[u8], mut sequence: u8) -> u8 {
    loop {
        let (now, rest) = payload.split_at(payload.len().min(MAX_PAYLOAD));
        push_header(out, now.len(), sequence);
        out.extend_from_slice(now);
        sequence = sequence.wrapping_add(1);
        if now.len() < MAX_PAYLOAD {
            return sequence;
        }
        payload = rest;
    }
}

pub(crate) fn push_header(out: &mut Vec<u8>, len: usize, sequence: u8) {
    let [a, b, c, ..] = (len as u32).to_le_bytes();
    out.extend_from_slice(&[a, b, c, sequence]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_payloads_become_several_packets() {
        let mut out = Vec::new();
        assert_eq!(push_packets(&mut out, &[7; 3], 5), 6);
        assert_eq!(out, [3, 0, 0, 5, 7, 7, 7]);
        out.clear();
        // A payload of exactly the maximum is followed by an empty packet.
        assert_eq!(push_packets(&mut out, &vec![1; MAX_PAYLOAD], 0), 2);
        assert_eq!(out.len(), HEADER_LEN + MAX_PAYLOAD + HEADER_LEN);
        assert_eq!(out[HEADER_LEN + MAX_PAYLOAD..], [0, 0, 0, 1]);
    }

    #[track_caller]
    fn check(code: u16, expected: ErrorClass) {
        assert_eq!(class_of(code), expected);
    }

    #[test]
    fn error_numbers_have_classes() {
        check(1213, ErrorClass::Deadlock);
        check(1205, ErrorClass::LockTimeout);
        check(1020, ErrorClass::Serialization);
        check(1062, ErrorClass::DuplicateKey);
        check(1969, ErrorClass::TimedOut);
        check(1053, ErrorClass::Disconnected);
        check(1927, ErrorClass::Disconnected);
        check(1064, ErrorClass::Refused);
    }
}
