//! Rows that a client keeps, in reused memory.

use crate::row::push_decimal;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kept {
    Null,
    Integer(i64),
    Real(f64),
    Text(usize, usize),
}

/// Rows of the latest statement that keeps them ([`crate::Statement::keeping_rows`]). Products
/// write them while reading a reply; clients read them until they send the next statement. Once
/// warm, nothing is allocated: clearing keeps the memory.
#[derive(Clone, Debug, Default)]
pub struct KeptRows {
    values: Vec<Kept>,
    bytes: Vec<u8>,
    n_columns: usize,
}

static NONE: KeptRows = KeptRows { values: Vec::new(), bytes: Vec::new(), n_columns: 0 };

impl KeptRows {
    pub fn none() -> &'static KeptRows {
        &NONE
    }

    pub fn clear(&mut self, n_columns: usize) {
        self.values.clear();
        self.bytes.clear();
        self.n_columns = n_columns;
    }

    pub fn push_null(&mut self) {
        self.values.push(Kept::Null);
    }

    pub fn push_integer(&mut self, value: i64) {
        self.values.push(Kept::Integer(value));
    }

    pub fn push_real(&mut self, value: f64) {
        self.values.push(Kept::Real(value));
    }

    /// Appends text; numbers, decimals and times may come as text too.
    pub fn push_text(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.values.push(Kept::Text(start, self.bytes.len()));
    }

    pub fn room(&self) -> usize {
        size_of_val(&self.values[..]) + self.bytes.len()
    }

    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    pub fn n_rows(&self) -> usize {
        self.values.len().checked_div(self.n_columns).unwrap_or(0)
    }

    /// Whether the value is NULL; also true if there is no such value.
    pub fn is_null(&self, row: usize, column: usize) -> bool {
        matches!(self.value(row, column), None | Some(Kept::Null))
    }

    /// A whole number, also one that came as text or as a number without a fraction.
    pub fn integer(&self, row: usize, column: usize) -> Option<i64> {
        self.fixed(row, column, 0)
    }

    /// In units of 10^-`scale`: `12.5` at scale 2 is 1250. Further digits round half away from
    /// zero. None if it is no number or too large.
    pub fn fixed(&self, row: usize, column: usize, scale: u32) -> Option<i64> {
        let factor = 10_i64.checked_pow(scale)?;
        match self.value(row, column)? {
            Kept::Null => None,
            Kept::Integer(value) => value.checked_mul(factor),
            Kept::Real(value) => {
                let scaled = (value * factor as f64).round();
                (scaled.abs() < 9e18).then_some(scaled as i64)
            }
            Kept::Text(start, end) => parse_fixed(&self.bytes[start..end], scale),
        }
    }

    /// The value at this place as a number; `None` if it is NULL or something else.
    pub fn real(&self, row: usize, column: usize) -> Option<f64> {
        match self.value(row, column)? {
            Kept::Null => None,
            Kept::Integer(value) => Some(value as f64),
            Kept::Real(value) => Some(value),
            Kept::Text(start, end) => {
                std::str::from_utf8(&self.bytes[start..end]).ok()?.trim().parse().ok()
            }
        }
    }

    /// Text as it came; none for NULL and for what came as a number.
    pub fn text(&self, row: usize, column: usize) -> Option<&[u8]> {
        match self.value(row, column)? {
            Kept::Text(start, end) => Some(&self.bytes[start..end]),
            Kept::Null | Kept::Integer(_) | Kept::Real(_) => None,
        }
    }

    pub fn write_text(&self, row: usize, column: usize, out: &mut Vec<u8>) {
        match self.value(row, column) {
            None | Some(Kept::Null) => {}
            Some(Kept::Integer(value)) => push_decimal(out, value),
            Some(Kept::Real(value)) => {
                use std::io::Write as _;
                // Writing into memory cannot fail.
                let _ = write!(out, "{value}");
            }
            Some(Kept::Text(start, end)) => out.extend_from_slice(&self.bytes[start..end]),
        }
    }

    fn value(&self, row: usize, column: usize) -> Option<Kept> {
        if column >= self.n_columns {
            return None;
        }
        self.values.get(row * self.n_columns + column).copied()
    }
}

/// Reads `-12.345` as units of 10^-`scale`.
fn parse_fixed(text: &[u8], scale: u32) -> Option<i64> {
    let text = text.trim_ascii();
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (whole, fraction) = match digits.iter().position(|&byte| byte == b'.') {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: i64 = 0;
    let mut push = |byte: u8| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
        Some(())
    };
    whole.iter().try_for_each(|&byte| push(byte))?;
    for place in 0..scale as usize {
        push(fraction.get(place).copied().unwrap_or(b'0'))?;
    }
    let rest = fraction.get(scale as usize..).unwrap_or_default();
    if !rest.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if rest.first().is_some_and(|&byte| byte >= b'5') {
        value = value.checked_add(1)?;
    }
    Some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_whole_numbers_of_their_smallest_unit() {
        let check = |text: &str, scale: u32, expected: Option<i64>| {
            assert_eq!(parse_fixed(text.as_bytes(), scale), expected, "{text}");
        };
        check("12.5", 2, Some(1250));
        check("-0.1234", 4, Some(-1234));
        check("300000.00", 2, Some(30_000_000));
        check("7", 0, Some(7));
        check("7.005", 2, Some(701));
        check("7.004", 2, Some(700));
        check(".5", 1, Some(5));
        check("1e5", 0, None);
        check("", 0, None);
        check("-", 0, None);
        check("99999999999999999999", 0, None);
    }

    #[test]
    fn values_are_found_by_row_and_column() {
        let mut rows = KeptRows::default();
        rows.clear(3);
        rows.push_integer(5);
        rows.push_text(b"ab");
        rows.push_null();
        rows.push_real(2.5);
        rows.push_text(b"0.1");
        rows.push_text(b"-7");
        assert_eq!(rows.n_rows(), 2);
        assert_eq!(rows.integer(0, 0), Some(5));
        assert_eq!(rows.text(0, 1), Some(&b"ab"[..]));
        assert!(rows.is_null(0, 2) && rows.is_null(2, 0) && rows.is_null(0, 3));
        assert_eq!(rows.real(1, 0), Some(2.5));
        assert_eq!(rows.fixed(1, 1, 4), Some(1000));
        assert_eq!(rows.integer(1, 2), Some(-7));
        assert_eq!(rows.integer(0, 1), None);
        let mut out = Vec::new();
        rows.write_text(1, 0, &mut out);
        rows.write_text(0, 0, &mut out);
        assert_eq!(out, b"2.55");
        rows.clear(1);
        assert_eq!(rows.n_rows(), 0);
    }
}
