//! Packets of replies: OK, end of a result, errors, reply to a prepare, text rows.

use dyno_workload::{SqlState, StatementError};

use super::{Fields, Negotiated, class_of, not_understood};

/// First byte of an OK packet.
pub(crate) const OK: u8 = 0x00;
/// First byte of a request for a local file.
pub(crate) const LOCAL_FILE: u8 = 0xfb;
/// First byte of a packet that ends a result.
pub(crate) const END: u8 = 0xfe;
/// First byte of an error.
pub(crate) const ERROR: u8 = 0xff;

/// The contents of an OK packet, or of the packet that ends the rows of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) affected: u64,
    pub(crate) status: u16,
    pub(crate) warnings: u16,
}

impl Outcome {
    /// Reads an OK packet; its first byte is `OK`, or `END` if it ends rows.
    #[inline]
    pub(crate) fn from_ok(payload: &[u8]) -> Option<Outcome> {
        // The usual case: both numbers take a byte each.
        if let [_, affected @ 0..=0xfa, 0..=0xfa, a, b, c, d, ..] = *payload {
            return Some(Outcome {
                affected: u64::from(affected),
                status: u16::from_le_bytes([a, b]),
                warnings: u16::from_le_bytes([c, d]),
            });
        }
        Outcome::from_any_ok(payload)
    }

    /// The same, whatever size the numbers have.
    #[inline(never)]
    fn from_any_ok(payload: &[u8]) -> Option<Outcome> {
        let mut fields = Fields(payload);
        fields.u8()?;
        let affected = fields.lenenc()?;
        fields.lenenc()?; // The last insert id.
        Some(Outcome { affected, status: fields.u16()?, warnings: fields.u16()? })
    }

    pub(crate) fn from_eof(payload: &[u8]) -> Option<Outcome> {
        let mut fields = Fields(payload);
        fields.u8()?;
        let warnings = fields.u16()?;
        Some(Outcome { affected: 0, status: fields.u16()?, warnings })
    }

    #[inline]
    pub(crate) fn from_end(payload: &[u8], negotiated: Negotiated) -> Option<Outcome> {
        match negotiated.deprecates_eof {
            true => Outcome::from_ok(payload),
            false => Outcome::from_eof(payload),
        }
    }
}

pub(crate) fn read_column_name(payload: &[u8]) -> Option<String> {
    let mut fields = Fields(payload);
    // Catalog (always `def`), schema, the table's alias and its name.
    for _ in 0..4 {
        fields.lenenc_bytes()?;
    }
    Some(String::from_utf8_lossy(fields.lenenc_bytes()?).into_owned())
}

/// Number, `#` and SQL state (not before authentication), message.
#[cold]
pub(crate) fn read_error(payload: &[u8]) -> StatementError {
    let mut fields = Fields(payload);
    let Some((_, code)) = fields.u8().zip(fields.u16()) else {
        return not_understood("an error packet without an error number");
    };
    let mut state = None;
    if fields.0.first() == Some(&b'#') {
        state = fields.0.get(1..6).and_then(SqlState::new);
        // Too short a state leaves an empty message.
        fields = Fields(fields.0.get(6..).unwrap_or_default());
    }
    let message = String::from_utf8_lossy(fields.rest()).into_owned();
    StatementError { state, ..StatementError::new(class_of(code), code.to_string(), message) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnCount {
    pub(crate) n_columns: u64,
    pub(crate) has_definitions: bool,
}

impl ColumnCount {
    #[inline]
    pub(crate) fn read(payload: &[u8], negotiated: Negotiated) -> Option<ColumnCount> {
        // What a prepared statement's result begins with if definitions are cached.
        if let [n_columns @ 1..=0xfa, 0] = *payload
            && negotiated.caches_metadata
        {
            let n_columns = u64::from(n_columns);
            return Some(ColumnCount { n_columns, has_definitions: false });
        }
        let mut fields = Fields(payload);
        let n_columns = fields.lenenc().filter(|&n| n > 0)?;
        let has_definitions = !negotiated.caches_metadata || fields.u8()? != 0;
        fields.0.is_empty().then_some(ColumnCount { n_columns, has_definitions })
    }
}

/// The answer to a prepare. Definitions of parameters, then of columns, follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) id: u32,
    pub(crate) n_columns: u16,
    pub(crate) n_parameters: u16,
}

impl Prepared {
    pub(crate) fn read(payload: &[u8]) -> Option<Prepared> {
        let mut fields = Fields(payload);
        (fields.u8()? == OK).then_some(())?;
        Some(Prepared { id: fields.u32()?, n_columns: fields.u16()?, n_parameters: fields.u16()? })
    }
}

pub(crate) fn read_text_row(payload: &[u8], n_columns: u64) -> Option<Vec<Option<String>>> {
    let mut fields = Fields(payload);
    // Each value has a byte at least.
    let mut row = Vec::with_capacity(payload.len().min(n_columns as usize));
    for _ in 0..n_columns {
        if fields.0.first() == Some(&LOCAL_FILE) {
            fields.u8()?;
            row.push(None);
        } else {
            let text = fields.lenenc_bytes()?;
            // Nearly all is valid UTF-8, which is checked first.
            let whole = std::str::from_utf8(text).map(str::to_owned);
            row.push(Some(whole.unwrap_or_else(|_| String::from_utf8_lossy(text).into_owned())));
        }
    }
    fields.0.is_empty().then_some(row)
}

#[cfg(test)]
mod tests {
    use dyno_workload::ErrorClass;

    use super::*;

    #[test]
    fn errors_are_read_with_and_without_state() {
        let error = read_error(b"\xff\xbd\x04#40001Deadlock found");
        assert_eq!(error.class, ErrorClass::Deadlock);
        assert_eq!((error.code.as_str(), error.message.as_str()), ("1213", "Deadlock found"));
        let state = |payload| read_error(payload).state.map(|state| state.as_str().to_owned());
        assert_eq!(state(b"\xff\xbd\x04#40001Deadlock found").as_deref(), Some("40001"));
        assert_eq!(state(b"\xff\x10\x04#4\x1b[mxToo many"), None);
        assert_eq!(state(b"\xff\x10\x04Too many connections"), None);
        assert_eq!(read_error(b"\xff\x10\x04Too many connections").code, "1040");
        assert_eq!(read_error(b"\xff\x10\x04#42").message, "");
        assert_eq!(read_error(b"\xff\x10").class, ErrorClass::Disconnected);
    }

    #[test]
    fn rows_are_read_whole_or_not() {
        let row = read_text_row(b"\x02ab\xfb\x00", 3);
        assert_eq!(row, Some(vec![Some("ab".to_owned()), None, Some(String::new())]));
        assert_eq!(read_text_row(b"\x02ab", 2), None);
        assert_eq!(read_text_row(b"\x02ab\x00", 1), None);
        assert_eq!(read_text_row(b"\x05ab", 1), None);
        assert_eq!(read_text_row(b"", u64::MAX), None);
    }

    #[test]
    fn column_counts_show_whether_definitions_follow() {
        let cached = Negotiated { deprecates_eof: true, caches_metadata: true };
        let count = |payload: &[u8], negotiated| ColumnCount::read(payload, negotiated);
        let expected =
            |n_columns, has_definitions| Some(ColumnCount { n_columns, has_definitions });
        assert_eq!(count(&[1], Negotiated::default()), expected(1, true));
        assert_eq!(count(&[4, 1], cached), expected(4, true));
        assert_eq!(count(&[4, 0], cached), expected(4, false));
        assert_eq!(count(&[4], cached), None);
        assert_eq!(count(&[4, 0], Negotiated::default()), None);
        assert_eq!(count(&[0], Negotiated::default()), None);
    }
}
