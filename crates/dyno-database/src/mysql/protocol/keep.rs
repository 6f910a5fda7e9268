//! Keeps the rows of a prepared statement's reply: the binary format, decoded into [`KeptRows`].
//! Numbers stay numbers, decimals stay text, dates and times become the server's text. Once warm,
//! nothing is allocated.

use std::io::Write;

use dyno_workload::KeptRows;

use super::{Fields, not_understood};

use crate::error::StatementResult as Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(super) code: u8,
    pub(super) is_unsigned: bool,
}

/// The byte for NULL in a text row.
const NULL: u8 = 0xfb;

const UNSIGNED: u16 = 0x20;

impl Column {
    pub(crate) fn read(payload: &[u8]) -> Option<Column> {
        let mut fields = Fields(payload);
        // Catalog, schema, table, its original name, name, original name.
        for _ in 0..6 {
            fields.lenenc_bytes()?;
        }
        let mut fixed = Fields(fields.lenenc_bytes()?);
        // Character set, length.
        fixed.bytes(6)?;
        Some(Column { code: fixed.u8()?, is_unsigned: fixed.u16()? & UNSIGNED != 0 })
    }
}

/// Memory that the kept rows of a reply may take, in bytes: transactions go on with a few rows.
const KEPT_MAX: usize = 64 << 20;

/// Columns of a result, at most: servers have at most 4096.
const COLUMNS_MAX: usize = 1 << 16;

/// Keeps the rows of the first result of a reply that has any.
// First the fields that are hot even if rows are not kept.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct RowKeeper {
    /// Whether rows that come are kept.
    pub(crate) wants: bool,
    // Rows are those of the text protocol.
    is_text: bool,
    /// Whether `columns` came with the reply itself.
    is_described: bool,
    columns: Vec<Column>,
    pub(crate) rows: KeptRows,
    // A date or time on its way into `rows`.
    text: Vec<u8>,
}

impl RowKeeper {
    /// `columns`: of the statement's latest result, as far as known; none if rows are not kept.
    #[inline]
    pub(crate) fn begin(&mut self, columns: Option<&[Column]>) {
        self.wants = columns.is_some();
        self.is_text = false;
        if let Some(columns) = columns {
            self.rows.clear(0);
            self.columns.clear();
            self.columns.extend_from_slice(columns);
            self.is_described = false;
        }
    }

    /// A text statement was sent whose rows are kept: they come as texts.
    pub(crate) fn begin_text(&mut self) {
        self.begin(Some(&[]));
        self.is_text = true;
    }

    pub(crate) fn result_begins(&mut self, n_columns: u64, has_definitions: bool) -> Result<()> {
        if has_definitions {
            self.columns.clear();
            self.is_described = true;
        } else if self.columns.len() as u64 != n_columns {
            return Err(not_understood("a result whose columns were never described"));
        }
        self.rows.clear(n_columns as usize);
        Ok(())
    }

    pub(crate) fn definition(&mut self, payload: &[u8]) -> Result<()> {
        if self.columns.len() >= COLUMNS_MAX {
            return Err(not_understood("a result with more columns than any server has"));
        }
        let column = Column::read(payload).ok_or_else(|| not_understood("a column definition"))?;
        self.columns.push(column);
        Ok(())
    }

    pub(crate) fn row(&mut self, payload: &[u8]) -> Result<()> {
        self.decode(payload).ok_or_else(|| not_understood("a row in binary"))?;
        // By what they take and not by what was sent: a NULL is one bit of a packet.
        if self.rows.room() > KEPT_MAX {
            return Err(not_understood(&format!(
                "more than {} MiB of rows to keep",
                KEPT_MAX >> 20
            )));
        }
        Ok(())
    }

    /// A result has ended: later ones are not kept if it had rows.
    pub(crate) fn result_ended(&mut self) {
        self.wants &= self.rows.n_rows() == 0;
    }

    /// The columns, if the reply has brought new ones.
    pub(crate) fn new_columns(&self) -> Option<&[Column]> {
        self.is_described.then_some(&self.columns)
    }

    fn decode(&mut self, payload: &[u8]) -> Option<()> {
        let RowKeeper { columns, rows, text, .. } = self;
        let mut fields = Fields(payload);
        if self.is_text {
            for _ in columns.iter() {
                if fields.0.first() == Some(&NULL) {
                    fields.u8()?;
                    rows.push_null();
                } else {
                    rows.push_text(fields.lenenc_bytes()?);
                }
            }
            return fields.0.is_empty().then_some(());
        }
        fields.u8().filter(|&first| first == 0)?;
        // The bitmap of NULLs begins with two unused bits.
        let nulls = fields.bytes((columns.len() + 2).div_ceil(8))?;
        for (idx, column) in columns.iter().enumerate() {
            let bit = idx + 2;
            if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
                rows.push_null();
            } else {
                push(*column, &mut fields, rows, text)?;
            }
        }
        fields.0.is_empty().then_some(())
    }
}

fn push(
    column: Column,
    fields: &mut Fields<'_>,
    rows: &mut KeptRows,
    text: &mut Vec<u8>,
) -> Option<()> {
    let is_unsigned = column.is_unsigned;
    match column.code {
        // TINY
        0x01 => {
            let value = fields.u8()?;
            rows.push_integer(if is_unsigned { value.into() } else { value.cast_signed().into() });
        }
        // SHORT, YEAR
        0x02 | 0x0d => {
            let value = fields.u16()?;
            rows.push_integer(if is_unsigned { value.into() } else { value.cast_signed().into() });
        }
        // LONG, INT24
        0x03 | 0x09 => {
            let value = fields.u32()?;
            rows.push_integer(if is_unsigned { value.into() } else { value.cast_signed().into() });
        }
        // LONGLONG
        0x08 => {
            let value = fields.u64()?;
            match (is_unsigned, i64::try_from(value)) {
                (false, _) => rows.push_integer(value.cast_signed()),
                (true, Ok(value)) => rows.push_integer(value),
                (true, Err(_)) => {
                    text.clear();
                    write!(text, "{value}").ok()?;
                    rows.push_text(text);
                }
            }
        }
        // FLOAT, DOUBLE
        0x04 => rows.push_real(f32::from_bits(fields.u32()?).into()),
        0x05 => rows.push_real(f64::from_bits(fields.u64()?)),
        // NULL
        0x06 => rows.push_null(),
        // TIMESTAMP, DATE, DATETIME
        code @ (0x07 | 0x0a | 0x0c) => {
            text.clear();
            write_date(fields, code == 0x0a, text)?;
            rows.push_text(text);
        }
        // TIME
        0x0b => {
            text.clear();
            write_time(fields, text)?;
            rows.push_text(text);
        }
        // Decimals, all kinds of text, bits, JSON.
        0x00 | 0x0f | 0x10 | 0xf5..=0xff => rows.push_text(fields.lenenc_bytes()?),
        _ => return None,
    }
    Some(())
}

fn write_date(fields: &mut Fields<'_>, is_date: bool, out: &mut Vec<u8>) -> Option<()> {
    let len = usize::from(fields.u8()?);
    let mut fields = Fields(fields.bytes(len)?);
    let (year, month, day) = match len {
        0 => (0, 0, 0),
        _ => (fields.u16()?, fields.u8()?, fields.u8()?),
    };
    write!(out, "{year:04}-{month:02}-{day:02}").ok()?;
    if is_date {
        return Some(());
    }
    let (hour, minute, second) = match len {
        0 | 4 => (0, 0, 0),
        _ => (fields.u8()?, fields.u8()?, fields.u8()?),
    };
    write!(out, " {hour:02}:{minute:02}:{second:02}").ok()?;
    write_fraction(&mut fields, out)
}

fn write_time(fields: &mut Fields<'_>, out: &mut Vec<u8>) -> Option<()> {
    let len = usize::from(fields.u8()?);
    let mut fields = Fields(fields.bytes(len)?);
    if len == 0 {
        out.extend_from_slice(b"00:00:00");
        return Some(());
    }
    let is_negative = fields.u8()? != 0;
    let days = u64::from(fields.u32()?);
    let (hour, minute, second) = (u64::from(fields.u8()?), fields.u8()?, fields.u8()?);
    let sign = if is_negative { "-" } else { "" };
    write!(out, "{sign}{:02}:{minute:02}:{second:02}", days * 24 + hour).ok()?;
    write_fraction(&mut fields, out)
}

/// Microseconds, if there are any.
fn write_fraction(fields: &mut Fields<'_>, out: &mut Vec<u8>) -> Option<()> {
    if !fields.0.is_empty() {
        write!(out, ".{:06}", fields.u32()?).ok()?;
    }
    fields.0.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper(columns: &[(u8, bool)]) -> RowKeeper {
        let columns: Vec<Column> =
            columns.iter().map(|&(code, is_unsigned)| Column { code, is_unsigned }).collect();
        let mut keeper = RowKeeper::default();
        keeper.begin(Some(&columns));
        keeper.result_begins(columns.len() as u64, false).unwrap();
        keeper
    }

    /// A row of one column of this type, as text.
    #[track_caller]
    fn check(column: (u8, bool), value: &[u8], expected: &str) {
        let mut keeper = keeper(&[column]);
        keeper.row(&[&[0, 0], value].concat()).unwrap();
        let mut out = Vec::new();
        keeper.rows.write_text(0, 0, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn values_are_read_by_type() {
        check((0x01, false), &[0xff], "-1");
        check((0x01, true), &[0xff], "255");
        check((0x02, false), &[0xfe, 0xff], "-2");
        check((0x03, false), &[0, 0, 0, 0x80], "-2147483648");
        check((0x03, true), &[0, 0, 0, 0x80], "2147483648");
        check((0x08, false), &[0xff; 8], "-1");
        check((0x08, true), &[0xff; 8], "18446744073709551615");
        check((0x05, false), &2.5_f64.to_le_bytes(), "2.5");
        check((0xf6, false), b"\x05-1.50", "-1.50");
        check((0xfd, false), b"\x02ab", "ab");
        check((0x0a, false), &[4, 0xe8, 7, 2, 29], "2024-02-29");
        check((0x0c, false), &[0], "0000-00-00 00:00:00");
        check((0x0c, false), &[7, 0xe8, 7, 2, 29, 1, 2, 3], "2024-02-29 01:02:03");
        check(
            (0x07, false),
            &[11, 0xe8, 7, 2, 29, 1, 2, 3, 1, 0, 0, 0],
            "2024-02-29 01:02:03.000001",
        );
        check((0x0b, false), &[8, 1, 1, 0, 0, 0, 2, 3, 4], "-26:03:04");
        check((0x0b, false), &[0], "00:00:00");
    }

    #[test]
    fn rows_with_nulls_follow_one_another() {
        let mut keeper = keeper(&[(0x03, false), (0xfd, false), (0x03, false)]);
        keeper.row(b"\x00\x08\x05\0\0\0\x07\0\0\0").unwrap();
        keeper.row(b"\x00\x00\x06\0\0\0\x01x\x08\0\0\0").unwrap();
        let rows = &keeper.rows;
        assert_eq!(rows.n_rows(), 2);
        assert_eq!(
            (rows.integer(0, 0), rows.is_null(0, 1), rows.integer(0, 2)),
            (Some(5), true, Some(7))
        );
        assert_eq!((rows.text(1, 1), rows.integer(1, 2)), (Some(&b"x"[..]), Some(8)));
        keeper.result_ended();
        assert!(!keeper.wants);
    }

    #[test]
    fn columns_that_were_never_described_are_an_error() {
        let mut keeper = keeper(&[(0x03, false)]);
        assert!(keeper.result_begins(2, false).is_err());
        assert!(keeper.result_begins(2, true).is_ok());
    }

    /// Whether texts or NULLs, whose bits take next to nothing in a packet.
    #[test]
    fn rows_without_end_are_not_kept() {
        const N_COLUMNS: usize = 4096;
        let check = |columns: &[(u8, bool)], row: &[u8]| {
            let mut keeper = keeper(columns);
            let error = (0..10_000).find_map(|_| keeper.row(row).err()).expect("it gives up");
            assert!(error.message.contains("more than 64 MiB of rows to keep"), "{error}");
            assert_eq!(error.class, dyno_workload::ErrorClass::Disconnected);
            assert!(keeper.rows.room() < KEPT_MAX + (2 << 20), "{}", keeper.rows.room());
        };
        let text = vec![b'x'; 1 << 20];
        check(&[(0xfd, false)], &[&[0, 0, 0xfd, 0, 0, 0x10], &text[..]].concat());
        let nulls = vec![0xff; (N_COLUMNS + 2).div_ceil(8)];
        check(&[(0x03, false); N_COLUMNS], &[&[0], &nulls[..]].concat());
    }

    #[test]
    fn definitions_without_end_are_an_error() {
        let mut keeper = RowKeeper::default();
        keeper.begin_text();
        keeper.result_begins(u64::MAX, true).unwrap();
        let mut definition = b"\x03def\x00\x00\x00\x01c\x00\x0c\x3f\0\x0b\0\0\0\x03".to_vec();
        definition.extend_from_slice(&[0; 5]);
        let error = (0..=COLUMNS_MAX).find_map(|_| keeper.definition(&definition).err());
        assert!(error.expect("it gives up").message.contains("more columns than any server"));
    }
}
