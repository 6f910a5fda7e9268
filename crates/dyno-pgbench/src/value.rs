//! Values of expressions, and how they are written.

use std::io::Write;

use crate::EvaluationError;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
}

/// 2^63, exactly: doubles below it fit a whole number of 64 bits.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

impl Value {
    /// Whether a condition with this value holds: zero and null do not.
    pub fn is_true(self) -> bool {
        match self {
            Value::Null => false,
            Value::Boolean(value) => value,
            Value::Integer(value) => value != 0,
            Value::Double(value) => value != 0.0,
        }
    }

    pub fn type_name(self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "boolean",
            Value::Integer(_) => "int",
            Value::Double(_) => "double",
        }
    }

    /// A whole number; a double is rounded, half to even.
    /// Fails if it is no number, or too large.
    pub(crate) fn to_integer(self) -> Result<i64, EvaluationError> {
        match self {
            Value::Integer(value) => Ok(value),
            Value::Double(value) => {
                let rounded = value.round_ties_even();
                let why = || format!("double to int overflow for {}", fixed(rounded));
                let fits = (-TWO_63..TWO_63).contains(&rounded);
                if fits { Ok(rounded as i64) } else { Err(EvaluationError::new(why())) }
            }
            Value::Null | Value::Boolean(_) => Err(self.cannot_become("int")),
        }
    }

    /// A double.
    /// Fails if it is no number.
    pub(crate) fn to_double(self) -> Result<f64, EvaluationError> {
        match self {
            Value::Integer(value) => Ok(value as f64),
            Value::Double(value) => Ok(value),
            Value::Null | Value::Boolean(_) => Err(self.cannot_become("double")),
        }
    }

    /// A boolean; numbers are none.
    /// Fails if it is of another type.
    pub(crate) fn to_boolean(self) -> Result<bool, EvaluationError> {
        match self {
            Value::Boolean(value) => Ok(value),
            _ => Err(self.cannot_become("boolean")),
        }
    }

    #[cold]
    fn cannot_become(self, wanted: &str) -> EvaluationError {
        EvaluationError::new(format!("cannot coerce {} to {wanted}", self.type_name()))
    }

    /// Appends the value as it stands in a statement: `NULL`, `true`, `-5`, `0.25`.
    pub fn write_text(self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Boolean(true) => out.extend_from_slice(b"true"),
            Value::Boolean(false) => out.extend_from_slice(b"false"),
            Value::Integer(value) => write_integer(value, out),
            Value::Double(value) => write_double(value, out),
        }
    }

    /// The value as `debug` shows it: with its type.
    pub(crate) fn shown(self) -> String {
        if self == Value::Null {
            return "null".to_owned();
        }
        let mut out = format!("{} ", self.type_name()).into_bytes();
        self.write_text(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// A number with six places, as pgbench writes it in messages.
pub(crate) fn fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { special(value).to_owned() }
}

fn special(value: f64) -> &'static str {
    match value {
        value if value.is_nan() => "NaN",
        value if value > 0.0 => "Infinity",
        _ => "-Infinity",
    }
}

fn write_integer(value: i64, out: &mut Vec<u8>) {
    // The longest: 19 digits and a sign.
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a double with 15 significant digits, as C's `%.15g` does.
fn write_double(value: f64, out: &mut Vec<u8>) {
    const DIGITS: i32 = 15;
    if !value.is_finite() {
        out.extend_from_slice(special(value).as_bytes());
        return;
    }
    let start = out.len();
    // Writing into memory cannot fail.
    let _ = write!(out, "{value:.14e}");
    let Some(e) = out[start..].iter().position(|&byte| byte == b'e') else { return };
    let exponent = std::str::from_utf8(&out[start + e + 1..]);
    let exponent: i32 = exponent.ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        out.truncate(start);
        let places = (DIGITS - 1 - exponent) as usize;
        let _ = write!(out, "{value:.places$}");
        trim_zeros(start, out);
        return;
    }
    out.truncate(start + e);
    trim_zeros(start, out);
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{sign}{:02}", exponent.abs());
}

fn trim_zeros(start: usize, out: &mut Vec<u8>) {
    if !out[start..].contains(&b'.') {
        return;
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
}
