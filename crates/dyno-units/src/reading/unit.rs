//! The units of readings, as a type and as records write them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A record holds the unit as [`Unit::code`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Unit {
    /// A ratio, or anything of a user's own probe.
    #[default]
    Number,
    /// At one moment.
    Count,
    PerSecond,
    Bytes,
    BytesPerSecond,
    Percent,
    Seconds,
    Milliseconds,
    Microseconds,
    /// CPU seconds per second: busy CPUs.
    Cpus,
    /// Seconds waited per second: the mean number of waiters.
    Waiters,
    /// Seconds of other work per second: the mean number at a time.
    AtATime,
    /// Counted things with a name of their own: `threads`, `MHz`.
    Other(Cow<'static, str>),
}

/// As records write them; of several codes for a unit the first is written now.
const CODES: [(&str, Unit); 21] = [
    ("", Unit::Number),
    ("1", Unit::Count),
    ("count", Unit::Count),
    ("1/s", Unit::PerSecond),
    ("/s", Unit::PerSecond),
    ("bytes", Unit::Bytes),
    ("B", Unit::Bytes),
    ("bytes/s", Unit::BytesPerSecond),
    ("B/s", Unit::BytesPerSecond),
    ("%", Unit::Percent),
    ("s", Unit::Seconds),
    ("ms", Unit::Milliseconds),
    ("µs", Unit::Microseconds),
    ("us", Unit::Microseconds),
    ("CPUs", Unit::Cpus),
    ("CPU s/s", Unit::Cpus),
    ("waiting", Unit::Waiters),
    // In older records.
    ("waiters", Unit::Waiters),
    ("at a time", Unit::AtATime),
    // In older records, of waiting and of work alike.
    ("s/s", Unit::AtATime),
    ("CPU", Unit::Cpus),
];

impl Unit {
    pub const fn other(name: &'static str) -> Unit {
        Unit::Other(Cow::Borrowed(name))
    }

    pub fn code(&self) -> &str {
        match self {
            Unit::Other(name) => name,
            unit => CODES.iter().find(|(_, known)| known == unit).map_or("", |(code, _)| code),
        }
    }

    /// For the head of a column; empty for a count and a bare number.
    pub fn symbol(&self) -> &str {
        match self {
            Unit::Count => "",
            unit => unit.code(),
        }
    }

    /// Least rise that counts as movement, whatever the spread; of CPU time, two ticks of 10 ms.
    pub fn least_rise(&self) -> f64 {
        match self {
            Unit::Cpus => 0.02,
            Unit::Waiters | Unit::AtATime => 0.01,
            // A mean over time, of threads that wait for a CPU.
            Unit::Other(name) if name == "threads" => 0.01,
            Unit::BytesPerSecond => 65_536.0,
            Unit::PerSecond | Unit::Milliseconds => 1.0,
            Unit::Percent => 2.0,
            _ => 0.0,
        }
    }
}

impl From<&str> for Unit {
    fn from(code: &str) -> Unit {
        match CODES.iter().find(|(known, _)| *known == code) {
            Some((_, unit)) => unit.clone(),
            None => Unit::Other(Cow::Owned(code.to_owned())),
        }
    }
}

impl From<String> for Unit {
    fn from(code: String) -> Unit {
        Unit::from(code.as_str())
    }
}

impl From<Unit> for String {
    fn from(unit: Unit) -> String {
        unit.code().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_as_it_was_written() {
        for (code, unit) in &CODES {
            assert_eq!(Unit::from(*code), *unit, "{code}");
            assert_eq!(Unit::from(unit.code()), *unit, "{code}");
        }
        assert_eq!(Unit::from("transactions"), Unit::other("transactions"));
        assert_eq!(Unit::other("pages").code(), "pages");
    }

    #[test]
    fn cpu_time_and_waiting_are_different_units() {
        let check = |code: &str, symbol: &str| {
            assert_eq!(Unit::from(code).symbol(), symbol, "{code}");
        };
        check("CPU s/s", "CPUs");
        check("waiters", "waiting");
        check("s/s", "at a time");
        check("1", "");
        check("1/s", "1/s");
    }
}
