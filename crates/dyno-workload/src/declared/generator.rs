//! Makes values: of a column by row, or of a name at each transaction.

use std::sync::Arc;

use dyno_pgbench::{EvaluationError, Names, Value as Evaluated};
use dyno_units::RandomStream;

use crate::skew::DrawnByClient;
use crate::sysbench::distribution::Distribution;
use crate::sysbench::sequence::Sequence;

use super::calendar;
use super::template::{self, Piece};
use super::values::{Formula, Scratch, Slot, Values};

/// Fails if an expression has no value.
pub(super) type Drawn = Result<(), EvaluationError>;

/// A generator with how often it gives NULL instead.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    pub(super) kind: Kind,
    /// From 0 to 1.
    pub(super) null_share: f64,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Constant(Constant),
    /// `start + step * n`: n is the number of the row, or what a sequence of the clients gives.
    Sequence {
        start: i64,
        step: i64,
        /// Index of its count among those of all transactions; none for a column.
        nth: Option<usize>,
    },
    /// A number from a distribution over `low`, `low + 1` …, in units of 10^-decimals.
    Number {
        low: i64,
        decimals: u32,
        items: Distribution,
        /// Index among the numbers that are counted for the audit; none for a column.
        counted: Option<usize>,
    },
    Normal(Normal),
    Template {
        pieces: Vec<Piece>,
        /// Most bytes of such a text, roughly.
        room: usize,
    },
    Letters {
        least: usize,
        most: usize,
    },
    Uuid,
    /// A day, in days since 1970.
    Date {
        first: i64,
        n: u64,
    },
    /// A second, in seconds since 1970.
    Timestamp {
        first: i64,
        n: u64,
    },
    OneOf {
        items: Arc<[Constant]>,
        /// The weights of each and of all before it.
        cumulated: Arc<[u64]>,
    },
    Formula(Formula),
    /// What stands beside the value of another one.
    Map {
        of: usize,
        pairs: Vec<(Vec<u8>, Constant)>,
        otherwise: Option<Constant>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
}

/// A normal distribution without its ends, in units of 10^-decimals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Normal {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) decimals: u32,
}

/// Draws outside of the bounds that are thrown away before the nearest bound is taken.
const TRIES: usize = 1000;

impl Normal {
    fn draw(&self, random: &mut RandomStream) -> i64 {
        let mut drawn = self.mean;
        for _ in 0..TRIES {
            drawn = (self.mean + self.deviation * random.normal()).round();
            if (self.low..=self.high).contains(&drawn) {
                break;
            }
        }
        drawn.clamp(self.low, self.high) as i64
    }
}

pub(super) struct Numbers {
    /// The first number, if the sequence goes on after a column; else each generator has its own.
    pub(super) first: Option<i64>,
    pub(super) sequence: Sequence,
}

pub(super) struct Drawing<'a> {
    pub(super) random: &'a mut RandomStream,
    pub(super) row: u64,
    pub(super) names: &'a Names,
    pub(super) scratch: &'a mut Scratch,
    pub(super) sequences: &'a mut [Numbers],
    pub(super) drawn: &'a [DrawnByClient],
}

impl Constant {
    fn set(&self, at: usize, values: &mut Values) {
        match self {
            Constant::Integer(number) => values.set(at, Slot::Integer(*number)),
            Constant::Real(number) => values.set(at, Slot::Real(*number)),
            Constant::Text(text) => values.set_text_with(at, |out| out.extend_from_slice(text)),
        }
    }

    fn room(&self) -> usize {
        match self {
            Constant::Text(text) => text.len(),
            Constant::Integer(_) | Constant::Real(_) => 0,
        }
    }
}

/// A number in units of 10^-decimals.
fn fixed(units: i64, decimals: u32) -> Slot {
    if decimals == 0 { Slot::Integer(units) } else { Slot::Decimal { units, decimals } }
}

impl Generator {
    /// Fails, with the value NULL, if an expression has none.
    #[inline]
    pub(super) fn draw(&self, at: usize, values: &mut Values, drawing: &mut Drawing<'_>) -> Drawn {
        if self.null_share > 0.0 && drawing.random.unit() < self.null_share {
            values.set(at, Slot::Null);
            return Ok(());
        }
        // Most draws are numbers, which must not pay for the state of others.
        if let Kind::Number { low, decimals, items, counted } = &self.kind {
            let item = items.draw(drawing.random);
            if let Some(counted) = counted {
                drawing.drawn[*counted].note(item);
            }
            values.set(at, fixed(low.wrapping_add(item as i64), *decimals));
            return Ok(());
        }
        self.draw_other(at, values, drawing)
    }

    fn draw_other(&self, at: usize, values: &mut Values, drawing: &mut Drawing<'_>) -> Drawn {
        match &self.kind {
            Kind::Template { pieces, .. } => {
                let start = values.mark();
                template::write(pieces, values, drawing.random);
                values.set(at, Slot::Text { start, end: values.mark() });
            }
            Kind::Formula(formula) => {
                values.set(at, Slot::Null);
                let scope = (drawing.names, &mut *drawing.scratch);
                let slot = match formula.evaluate(values, scope)? {
                    Evaluated::Null => Slot::Null,
                    Evaluated::Boolean(is_true) => Slot::Integer(is_true.into()),
                    Evaluated::Integer(number) => Slot::Integer(number),
                    Evaluated::Double(number) => Slot::Real(number),
                };
                values.set(at, slot);
            }
            Kind::Sequence { start, step, nth } => {
                let (start, n) = match nth {
                    Some(nth) => {
                        let Numbers { first, sequence } = &mut drawing.sequences[*nth];
                        (first.as_ref().unwrap_or(start), sequence.take())
                    }
                    None => (start, drawing.row),
                };
                values.set(at, Slot::Integer(start.wrapping_add(step.wrapping_mul(n as i64))));
            }
            Kind::Constant(constant) => constant.set(at, values),
            other => draw_rare(other, at, values, drawing.random),
        }
        Ok(())
    }
}

/// The kinds that need nothing but random numbers, apart from the most frequent ones.
fn draw_rare(kind: &Kind, at: usize, values: &mut Values, random: &mut RandomStream) {
    match kind {
        Kind::Normal(normal) => values.set(at, fixed(normal.draw(random), normal.decimals)),
        Kind::Letters { least, most } => {
            let n = least + random.below((most - least) as u64 + 1) as usize;
            values.set_text_with(at, |out| template::push_letters(out, n, random));
        }
        Kind::Uuid => values.set_text_with(at, |out| push_uuid(out, random)),
        Kind::Date { first, n } => {
            let day = first + random.below(*n) as i64;
            values.set_text_with(at, |out| calendar::push_date(out, day));
        }
        Kind::Timestamp { first, n } => {
            let second = first + random.below(*n) as i64;
            values.set_text_with(at, |out| calendar::push_timestamp(out, second));
        }
        Kind::OneOf { items, cumulated } => {
            let drawn = random.below(cumulated.last().copied().unwrap_or(1).max(1));
            let nth = cumulated.partition_point(|weight| *weight <= drawn);
            items.get(nth).into_iter().for_each(|item| item.set(at, values));
        }
        Kind::Map { of, pairs, otherwise } => {
            let mark = values.mark();
            values.append(*of);
            let found = pairs.iter().find(|(key, _)| key[..] == values.bytes()[mark..]);
            values.truncate(mark);
            values.set(at, Slot::Null);
            let found = found.map(|(_, value)| value).or(otherwise.as_ref());
            found.into_iter().for_each(|value| value.set(at, values));
        }
        Kind::Number { .. }
        | Kind::Template { .. }
        | Kind::Formula(_)
        | Kind::Sequence { .. }
        | Kind::Constant(_) => unreachable!("drawn by the caller"),
    }
}

/// Appends a random UUID: version 4 of RFC 9562.
fn push_uuid(out: &mut Vec<u8>, random: &mut RandomStream) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let high = random.next_u64() & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = random.next_u64() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    for (half, dashes) in [(high, [8, 12]), (low, [0, 4])] {
        for nth in 0..16 {
            if dashes.contains(&nth) {
                out.push(b'-');
            }
            out.push(DIGITS[(half >> (60 - 4 * nth)) as usize & 15]);
        }
    }
}

impl Kind {
    pub(super) fn counted(&self) -> Option<&Distribution> {
        match self {
            Kind::Number { items, counted: Some(_), .. } => Some(items),
            _ => None,
        }
    }

    /// Most bytes that a text of this kind takes, roughly: for the memory to begin with.
    pub(super) fn room(&self) -> usize {
        match self {
            Kind::Template { room, .. } => *room,
            Kind::Letters { most, .. } => *most,
            Kind::Constant(constant) => constant.room(),
            Kind::OneOf { items, .. } => items.iter().map(Constant::room).max().unwrap_or(0),
            Kind::Map { pairs, .. } => {
                40 + pairs.iter().map(|(_, value)| value.room()).max().unwrap_or(0)
            }
            Kind::Sequence { .. } | Kind::Number { .. } | Kind::Normal(_) => 0,
            Kind::Uuid | Kind::Date { .. } | Kind::Timestamp { .. } | Kind::Formula(_) => 40,
        }
    }
}
