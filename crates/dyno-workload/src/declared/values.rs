//! Values of a row or transaction in the making, in reused memory.

use dyno_pgbench::{
    EvaluationError, Expression, Names, Prng, Scope, Value as Evaluated, Variables,
};

use crate::Value;
use crate::row::push_decimal;

/// A value that was drawn or read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Slot {
    /// Nothing yet, or the SQL value NULL.
    #[default]
    Null,
    Integer(i64),
    /// A number in units of 10^-decimals.
    Decimal {
        units: i64,
        decimals: u32,
    },
    Real(f64),
    /// A range of the bytes.
    Text {
        start: usize,
        end: usize,
    },
}

#[derive(Debug, Default)]
pub(super) struct Values {
    slots: Vec<Slot>,
    bytes: Vec<u8>,
}

impl Values {
    /// `n` values, all NULL, with room for texts of so many bytes together.
    pub(super) fn new(n: usize, room: usize) -> Values {
        Values { slots: vec![Slot::Null; n], bytes: Vec::with_capacity(room) }
    }

    /// Makes all NULL, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.slots.fill(Slot::Null);
        self.bytes.clear();
    }

    /// Where the texts end that are there now.
    pub(super) fn mark(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets the texts behind a mark. Values that refer to them must be set again before they are used.
    pub(super) fn truncate(&mut self, mark: usize) {
        self.bytes.truncate(mark);
    }

    /// Keeps those texts alone that values refer to.
    #[cold]
    pub(super) fn compact(&mut self) {
        let before = std::mem::take(&mut self.bytes);
        for slot in &mut self.slots {
            if let Slot::Text { start, end } = slot {
                let text = before.get(*start..*end).unwrap_or_default();
                *start = self.bytes.len();
                self.bytes.extend_from_slice(text);
                *end = self.bytes.len();
            }
        }
    }

    #[inline]
    pub(super) fn set(&mut self, at: usize, slot: Slot) {
        self.slots[at] = slot;
    }

    #[inline]
    pub(super) fn slot(&self, at: usize) -> Slot {
        self.slots[at]
    }

    #[inline]
    pub(super) fn set_text_with(&mut self, at: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.slots[at] = Slot::Text { start, end: self.bytes.len() };
    }

    /// Begins a text that is appended piece by piece.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends a value as text to the bytes; NULL appends nothing.
    pub(super) fn append(&mut self, at: usize) {
        match self.slots[at] {
            Slot::Null => {}
            Slot::Integer(number) => push_decimal(&mut self.bytes, number),
            Slot::Decimal { units, decimals } => push_fixed(&mut self.bytes, units, decimals),
            Slot::Real(number) => push_real(&mut self.bytes, number),
            Slot::Text { start, end } => self.bytes.extend_from_within(start..end),
        }
    }

    pub(super) fn text(&self, at: usize) -> Option<&[u8]> {
        match self.slots[at] {
            Slot::Text { start, end } => Some(&self.bytes[start..end]),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn value(&self, at: usize) -> Value<'_> {
        match self.slots[at] {
            Slot::Null => Value::Null,
            Slot::Integer(number) => Value::Integer(number),
            Slot::Decimal { units, decimals } => {
                Value::Real(units as f64 / 10_f64.powi(decimals as i32))
            }
            Slot::Real(number) => Value::Real(number),
            Slot::Text { start, end } => Value::Text(&self.bytes[start..end]),
        }
    }
}

/// Appends `units` of 10^-decimals in decimal.
pub(super) fn push_fixed(out: &mut Vec<u8>, units: i64, decimals: u32) {
    if decimals == 0 {
        return push_decimal(out, units);
    }
    let scale = 10_u64.pow(decimals);
    let size = units.unsigned_abs();
    if units < 0 {
        out.push(b'-');
    }
    push_decimal(out, (size / scale) as i64);
    out.push(b'.');
    let at = out.len();
    let mut rest = size % scale;
    out.resize(at + decimals as usize, b'0');
    for digit in out[at..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

pub(super) fn push_real(out: &mut Vec<u8>, number: f64) {
    use std::io::Write as _;
    // Writing into memory cannot fail.
    let _ = write!(out, "{number}");
}

pub(super) struct Scratch {
    variables: Variables,
    random: Prng,
}

impl Scratch {
    /// For expressions with these names, whose own random numbers follow from `seed`.
    pub(super) fn new(names: &Names, seed: u64) -> Scratch {
        Scratch { variables: Variables::new(names), random: Prng::new(seed) }
    }
}

/// An expression, and where the values of its variables are.
#[derive(Clone, Debug)]
pub(super) struct Formula {
    pub(super) expression: Expression,
    /// Each variable with the place of its value.
    pub(super) variables: Vec<(dyno_pgbench::Slot, usize)>,
    /// The place and the number, if the expression adds a whole number to a value: `:a + 99`.
    pub(super) offset: Option<(usize, i64)>,
}

impl Formula {
    /// Fails for a wrong type, an overflow, a division by zero.
    #[inline]
    pub(super) fn evaluate(
        &self,
        values: &Values,
        (names, scratch): (&Names, &mut Scratch),
    ) -> Result<Evaluated, EvaluationError> {
        // Most expressions of workloads are these; whatever else there is, and an overflow, goes the long way.
        if let Some((at, number)) = self.offset
            && let Slot::Integer(value) = values.slot(at)
            && let Some(sum) = value.checked_add(number)
        {
            return Ok(Evaluated::Integer(sum));
        }
        let Scratch { variables, random } = scratch;
        for (variable, at) in &self.variables {
            match values.slot(*at) {
                Slot::Null => variables.set(*variable, Evaluated::Null),
                Slot::Integer(number) => variables.set(*variable, Evaluated::Integer(number)),
                Slot::Decimal { units, decimals } => {
                    let number = units as f64 / 10_f64.powi(decimals as i32);
                    variables.set(*variable, Evaluated::Double(number));
                }
                Slot::Real(number) => variables.set(*variable, Evaluated::Double(number)),
                Slot::Text { .. } => {
                    variables.set_text(*variable, values.text(*at).unwrap_or_default());
                }
            }
        }
        let mut scope = Scope { names, variables, random, debug: &mut |_| {} };
        self.expression.evaluate(&mut scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_with_all_their_digits() {
        let check = |units, decimals, expected: &str| {
            let mut out = Vec::new();
            push_fixed(&mut out, units, decimals);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(1234, 2, "12.34");
        check(-5, 2, "-0.05");
        check(7, 0, "7");
        check(i64::MIN, 3, "-9223372036854775.808");
    }

    #[test]
    fn texts_that_no_value_refers_to_are_forgotten() {
        let mut values = Values::new(3, 0);
        for text in ["first", "second", "third"] {
            values.set_text_with(1, |out| out.extend_from_slice(text.as_bytes()));
        }
        values.set_text_with(0, |out| out.push(b'x'));
        values.set(2, Slot::Integer(5));
        values.compact();
        let texts = [values.text(0), values.text(1), values.text(2)];
        assert_eq!(texts, [Some(&b"x"[..]), Some(&b"third"[..]), None]);
        assert_eq!((values.mark(), values.slot(2)), (6, Slot::Integer(5)));
    }

    #[test]
    fn adding_a_number_gives_the_same_by_the_short_way_and_by_the_long_one() {
        let check = |text: &str, has_offset: bool, slots: &[Slot]| {
            let mut names = Names::default();
            let expression = Expression::read(text, &mut names).unwrap();
            let variable = expression.variables()[0];
            let offset = expression.as_offset().map(|(_, number)| (0, number));
            assert_eq!(offset.is_some(), has_offset, "{text}");
            let long = Formula { expression, variables: vec![(variable, 0)], offset: None };
            let short = Formula { offset, ..long.clone() };
            for slot in slots {
                let mut values = Values::new(1, 0);
                values.set(0, *slot);
                let of = |formula: &Formula| {
                    let value = formula.evaluate(&values, (&names, &mut Scratch::new(&names, 1)));
                    value.map_err(|error| error.message().to_owned())
                };
                assert_eq!(of(&short), of(&long), "{text} of {slot:?}");
            }
        };
        let slots = [
            Slot::Integer(1),
            Slot::Integer(i64::MAX),
            Slot::Integer(i64::MIN),
            Slot::Real(1.5),
            Slot::Decimal { units: 125, decimals: 2 },
            Slot::Null,
        ];
        check(":a + 99", true, &slots);
        check("99 + :a", true, &slots);
        check(":a - 1", true, &slots);
        check("1 - :a", false, &slots);
        check(":a * 2", false, &slots);
        check(":a + :a", false, &slots);
        check(":a + 1.5", false, &slots);
    }

    #[test]
    fn values_are_what_they_were_set_to() {
        let mut values = Values::new(3, 0);
        values.set(0, Slot::Integer(-4));
        values.set_text_with(1, |out| out.extend_from_slice(b"ab"));
        values.set_text_with(2, |_| {});
        assert_eq!(values.value(0), Value::Integer(-4));
        assert_eq!((values.value(1), values.value(2)), (Value::Text(b"ab"), Value::Text(b"")));
        values.append(1);
        assert_eq!(values.bytes(), b"abab");
        values.clear();
        assert_eq!((values.value(1), values.mark()), (Value::Null, 0));
    }
}
