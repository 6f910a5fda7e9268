//! The units of readings, as a type and as records write them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What a reading counts. A record holds it as [`ReadingUnit::code`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ReadingUnit {
    /// A bare number: a ratio, or whatever a user's own probe means by it.
    #[default]
    Number,
    /// A plain count.
    Count,
    /// Events per second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A share in percent.
    Percent,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// CPU seconds per second: how many CPUs were busy.
    Cpus,
    /// Seconds waited per second: how many waited, on average.
    Waiters,
    /// Any other time per second: how many were at it at a time, on average.
    AtATime,
    /// Something that is counted and has a name of its own: `threads`, `MHz`.
    Other(Cow<'static, str>),
}

/// Units as records write them; of several for the same unit the first is what is written now.
const CODES: [(&str, ReadingUnit); 20] = [
    ("", ReadingUnit::Number),
    ("1", ReadingUnit::Count),
    ("count", ReadingUnit::Count),
    ("1/s", ReadingUnit::PerSecond),
    ("/s", ReadingUnit::PerSecond),
    ("bytes", ReadingUnit::Bytes),
    ("B", ReadingUnit::Bytes),
    ("bytes/s", ReadingUnit::BytesPerSecond),
    ("B/s", ReadingUnit::BytesPerSecond),
    ("%", ReadingUnit::Percent),
    ("s", ReadingUnit::Seconds),
    ("ms", ReadingUnit::Milliseconds),
    ("µs", ReadingUnit::Microseconds),
    ("us", ReadingUnit::Microseconds),
    ("CPUs", ReadingUnit::Cpus),
    ("CPU s/s", ReadingUnit::Cpus),
    ("waiters", ReadingUnit::Waiters),
    ("at a time", ReadingUnit::AtATime),
    // In older records, of waiting and of work alike.
    ("s/s", ReadingUnit::AtATime),
    ("CPU", ReadingUnit::Cpus),
];

impl ReadingUnit {
    /// A unit with no entry of its own: `threads`.
    pub const fn other(name: &'static str) -> ReadingUnit {
        ReadingUnit::Other(Cow::Borrowed(name))
    }

    /// The unit as a record has it.
    pub fn code(&self) -> &str {
        match self {
            ReadingUnit::Other(name) => name,
            unit => CODES.iter().find(|(_, known)| known == unit).map_or("", |(code, _)| code),
        }
    }

    /// The unit as the head of a column has it; empty for a count and a bare number.
    pub fn symbol(&self) -> &str {
        match self {
            ReadingUnit::Count => "",
            unit => unit.code(),
        }
    }

    /// The least by which a reading in this unit has to rise to have moved at all, whatever its spread:
    /// one tick of a clock, or the first microseconds of a thread that ordinarily sleeps, are a movement
    /// of nothing. CPU time has to rise by two ticks of 10 ms.
    pub fn least_rise(&self) -> f64 {
        match self {
            ReadingUnit::Cpus => 0.02,
            ReadingUnit::Waiters | ReadingUnit::AtATime => 0.01,
            ReadingUnit::BytesPerSecond => 65_536.0,
            ReadingUnit::PerSecond | ReadingUnit::Milliseconds => 1.0,
            ReadingUnit::Percent => 2.0,
            _ => 0.0,
        }
    }
}

impl From<&str> for ReadingUnit {
    fn from(code: &str) -> ReadingUnit {
        match CODES.iter().find(|(known, _)| *known == code) {
            Some((_, unit)) => unit.clone(),
            None => ReadingUnit::Other(Cow::Owned(code.to_owned())),
        }
    }
}

impl From<String> for ReadingUnit {
    fn from(code: String) -> ReadingUnit {
        ReadingUnit::from(code.as_str())
    }
}

impl From<ReadingUnit> for String {
    fn from(unit: ReadingUnit) -> String {
        unit.code().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_as_it_was_written() {
        for (code, unit) in &CODES {
            assert_eq!(ReadingUnit::from(*code), *unit, "{code}");
            assert_eq!(ReadingUnit::from(unit.code()), *unit, "{code}");
        }
        assert_eq!(ReadingUnit::from("transactions"), ReadingUnit::other("transactions"));
        assert_eq!(ReadingUnit::other("pages").code(), "pages");
    }

    #[test]
    fn cpu_time_and_waiting_are_different_units() {
        let check = |code: &str, symbol: &str| {
            assert_eq!(ReadingUnit::from(code).symbol(), symbol, "{code}");
        };
        check("CPU s/s", "CPUs");
        check("waiters", "waiters");
        check("s/s", "at a time");
        check("1", "");
        check("1/s", "1/s");
    }
}
