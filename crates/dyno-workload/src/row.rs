//! A row to store, in reused memory, and how numbers and letters are written.

use dyno_units::RandomStream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Null,
    Integer(i64),
    /// Text: a range of the row's bytes.
    Text {
        start: usize,
        end: usize,
    },
}

#[derive(Clone, Debug, Default)]
pub struct Row {
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

impl Row {
    pub fn new() -> Row {
        Row::default()
    }

    pub fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
    }

    pub fn push_null(&mut self) {
        self.cells.push(Cell::Null);
    }

    pub fn push_integer(&mut self, value: i64) {
        self.cells.push(Cell::Integer(value));
    }

    pub fn push_text(&mut self, text: &[u8]) {
        self.push_text_with(|bytes| bytes.extend_from_slice(text));
    }

    pub fn push_text_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.cells.push(Cell::Text { start, end: self.bytes.len() });
    }

    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub fn text(&self, cell: Cell) -> &[u8] {
        match cell {
            Cell::Text { start, end } => &self.bytes[start..end],
            _ => &[],
        }
    }

    /// A line of values between tabs, NULL as `\N`, escaped as LOAD DATA and COPY read by default.
    pub fn write_tab_separated(&self, out: &mut Vec<u8>) {
        for (idx, cell) in self.cells.iter().enumerate() {
            if idx > 0 {
                out.push(b'\t');
            }
            match *cell {
                Cell::Null => out.extend_from_slice(b"\\N"),
                Cell::Integer(value) => push_decimal(out, value),
                Cell::Text { .. } => {
                    for &byte in self.text(*cell) {
                        match byte {
                            b'\t' => out.extend_from_slice(b"\\t"),
                            b'\n' => out.extend_from_slice(b"\\n"),
                            b'\r' => out.extend_from_slice(b"\\r"),
                            b'\\' => out.extend_from_slice(b"\\\\"),
                            other => out.push(other),
                        }
                    }
                }
            }
        }
        out.push(b'\n');
    }
}

/// The decimal digits of 0 to 99, two each.
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
    2021222324252627282930313233343536373839\
    4041424344454647484950515253545556575859\
    6061626364656667686970717273747576777879\
    8081828384858687888990919293949596979899";

/// The two digits of a number below 100, so that two cost one division.
#[inline]
pub(crate) fn pair(number: u32) -> &'static [u8] {
    let at = 2 * number as usize;
    &PAIRS[at..at + 2]
}

/// Random letters, six bits each; 64 bits are good for ten of them.
pub(crate) fn write_letters(out: &mut [u8], letters: &[u8; 64], random: &mut RandomStream) {
    for part in out.chunks_mut(10) {
        let mut bits = random.next_u64();
        for letter in part {
            *letter = letters[(bits % 64) as usize];
            bits >>= 6;
        }
    }
}

/// The last digits of `number`, with zeros in front.
pub(crate) fn write_digits(out: &mut [u8], mut number: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Appends `value` in decimal without allocating.
pub(crate) fn push_decimal(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    while rest >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(pair((rest % 100) as u32));
        rest /= 100;
    }
    // What is left: a digit in front of the pairs, or a single zero.
    if rest > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + rest as u8;
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tab_separated_text_is_escaped() {
        let mut row = Row::new();
        row.push_integer(i64::MIN);
        row.push_null();
        row.push_text(b"a\tb\\c\nd");
        row.push_integer(0);
        let mut out = Vec::new();
        row.write_tab_separated(&mut out);
        assert_eq!(out, b"-9223372036854775808\t\\N\ta\\tb\\\\c\\nd\t0\n");
        row.clear();
        assert!(row.cells().is_empty());
    }

    proptest::proptest! {
        #[test]
        fn numbers_are_written_as_everybody_writes_them(value: i64, shift in 0_u32..64) {
            let mut out = Vec::new();
            for value in [value, value >> shift, value.wrapping_neg() >> shift] {
                out.clear();
                push_decimal(&mut out, value);
                proptest::prop_assert_eq!(std::str::from_utf8(&out).unwrap(), value.to_string());
            }
        }
    }

    #[test]
    fn numbers_of_all_lengths() {
        for power in 0..19 {
            for value in [10_i64.pow(power) - 1, 10_i64.pow(power), 10_i64.pow(power) + 1] {
                let mut out = Vec::new();
                push_decimal(&mut out, value);
                assert_eq!(std::str::from_utf8(&out).unwrap(), value.to_string());
            }
        }
    }
}
