//! The variables of a client.

use std::collections::BTreeMap;

use crate::evaluate::EvaluationError;
use crate::value::Value;

/// A variable: undefined, a value, or a text whose value is found when it is needed.
#[derive(Clone, Debug, Default)]
struct Variable {
    value: Option<Value>,
    // Used again for each text that the variable is set to.
    text: Vec<u8>,
    has_text: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Variables {
    variables: Vec<Variable>,
}

impl Variables {
    pub fn new(names: &Names) -> Variables {
        Variables { variables: vec![Variable::default(); names.len()] }
    }

    #[inline]
    pub fn set(&mut self, slot: Slot, value: Value) {
        let variable = &mut self.variables[slot.index()];
        variable.value = Some(value);
        variable.has_text = false;
    }

    /// Sets a variable to a text, as options and rows give it. Its value is what it looks like.
    pub fn set_text(&mut self, slot: Slot, text: &[u8]) {
        let variable = &mut self.variables[slot.index()];
        variable.value = None;
        variable.text.clear();
        variable.text.extend_from_slice(text);
        variable.has_text = true;
    }

    /// The value of a variable that was set to one, not to a text.
    #[inline]
    pub fn plain(&self, slot: Slot) -> Option<Value> {
        let variable = &self.variables[slot.index()];
        if variable.has_text { None } else { variable.value }
    }

    /// The text of a variable that was set to one.
    pub fn text(&self, slot: Slot) -> Option<&[u8]> {
        let variable = &self.variables[slot.index()];
        variable.has_text.then_some(&variable.text)
    }

    /// Appends the variable as it stands in a statement; false if it is undefined.
    pub fn write_text(&self, slot: Slot, out: &mut Vec<u8>) -> bool {
        let variable = &self.variables[slot.index()];
        match (variable.has_text, variable.value) {
            (true, _) => out.extend_from_slice(&variable.text),
            (false, Some(value)) => value.write_text(out),
            (false, None) => return false,
        }
        true
    }

    /// The variable's value.
    /// Fails if it is undefined, or its text is no value.
    #[inline]
    pub(crate) fn value(&mut self, slot: Slot, names: &Names) -> Result<Value, EvaluationError> {
        let variable = &mut self.variables[slot.index()];
        match variable.value {
            Some(value) => Ok(value),
            None if variable.has_text => {
                let value = text_value(names.name(slot), &variable.text)?;
                variable.value = Some(value);
                Ok(value)
            }
            None => {
                Err(EvaluationError::new(format!("undefined variable \"{}\"", names.name(slot))))
            }
        }
    }
}

fn text_value(name: &str, text: &[u8]) -> Result<Value, EvaluationError> {
    let text = String::from_utf8_lossy(text);
    let lower = text.to_ascii_lowercase();
    let begins = |word: &str| word.starts_with(&lower);
    if lower.is_empty() {
        return Err(EvaluationError::silent());
    }
    // Beginnings of the words are taken as well; 0 and 1 are numbers.
    Ok(match lower.as_str() {
        "null" => Value::Null,
        "on" => Value::Boolean(true),
        "off" | "of" => Value::Boolean(false),
        _ if begins("true") || begins("yes") => Value::Boolean(true),
        _ if begins("false") || begins("no") => Value::Boolean(false),
        _ if looks_whole(&text) => Value::Integer(whole(&text)?),
        _ => Value::Double(double(&text).ok_or_else(|| {
            EvaluationError::new(format!("malformed variable \"{name}\" value: \"{text}\""))
        })?),
    })
}

/// Whether a text is a whole number, of any size.
fn looks_whole(text: &str) -> bool {
    let text = text.trim_start_matches(is_space);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

fn whole(text: &str) -> Result<i64, EvaluationError> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.trim_start_matches(is_space).parse().map_err(|error: std::num::ParseIntError| {
        EvaluationError::new(match error.kind() {
            PosOverflow | NegOverflow => {
                format!("value \"{text}\" is out of range for type bigint")
            }
            _ => format!("invalid input syntax for type bigint: \"{text}\""),
        })
    })
}

/// A double that neither overflows nor vanishes.
pub(crate) fn double(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(is_space);
    let value: f64 = text.parse().ok()?;
    let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let is_lost = has_digits && (value.is_infinite() || (!value.is_normal() && !is_zero));
    (!is_lost).then_some(value)
}

// Names of variables: each has a number, under which clients keep its value.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of all variables that scripts refer to.
#[derive(Clone, Debug, Default)]
pub struct Names {
    slots: BTreeMap<String, Slot>,
    names: Vec<String>,
}

impl Names {
    pub fn new() -> Names {
        Names::default()
    }

    /// The number of this name; a new one gets the next.
    pub fn slot(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = Slot(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.to_owned());
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    pub fn find(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    pub fn name(&self, slot: Slot) -> &str {
        self.names.get(slot.index()).map_or("", String::as_str)
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

pub(crate) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub(crate) fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

/// Whether a variable may have this name: letters, digits, underscores and any characters beyond
/// ASCII, and no digit in front.
pub fn is_valid_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|&byte| begins_name(byte))
        && bytes.iter().all(|&byte| continues_name(byte))
}
