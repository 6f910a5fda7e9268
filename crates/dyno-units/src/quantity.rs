//! Sizes, counts, durations and percentages, as users write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Nanoseconds;

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ByteCount(pub u64);

/// Its text says why, and shows the accepted forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuantityError(String);

impl ParseQuantityError {
    pub(crate) fn new(text: String) -> ParseQuantityError {
        ParseQuantityError(text)
    }
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for ParseQuantityError {}

/// `12.5 GiB` as 12.5 and `GiB`.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim()))
}

fn whole(text: &str, value: f64) -> Result<u64, ParseQuantityError> {
    if value.is_finite() && (0.0..=9.0e18).contains(&value) {
        Ok(value.round() as u64)
    } else {
        Err(ParseQuantityError(format!("`{text}` is too large")))
    }
}

impl FromStr for ByteCount {
    type Err = ParseQuantityError;

    /// Reads `8GiB`, `8MB`, `512k`: `kB` is 1000; `KiB` and, as servers read it, `k` are 1024.
    fn from_str(text: &str) -> Result<ByteCount, ParseQuantityError> {
        let refuse = || {
            ParseQuantityError(format!("`{text}` is not a size; write it like \"8GiB\", \"500MB\""))
        };
        let (number, unit) = number_and_unit(text).ok_or_else(refuse)?;
        let factor = match unit {
            "" | "B" => 1.0,
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            "KiB" | "k" | "K" => 1024.0,
            "MiB" | "m" | "M" => 1024.0 * 1024.0,
            "GiB" | "g" | "G" => 1024.0 * 1024.0 * 1024.0,
            "TiB" | "t" | "T" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            _ => return Err(refuse()),
        };
        whole(text, number * factor).map(ByteCount)
    }
}

impl ByteCount {
    /// The number in the largest binary unit that leaves it whole: `16KiB`, `512`.
    pub fn exact_text(self) -> String {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let whole = |shift: &u32| self.0 > 0 && self.0.trailing_zeros() >= *shift;
        match units.iter().find(|(_, shift)| whole(shift)) {
            Some((unit, shift)) => format!("{}{unit}", self.0 >> shift),
            None => self.0.to_string(),
        }
    }

    /// Rounds to significant digits of the displayed unit: `about 250 MiB`, not 253.41 MiB.
    pub fn rounded(self, digits: u32) -> ByteCount {
        let units = [40, 30, 20, 10].map(|shift| 1_u64 << shift);
        let unit = units.into_iter().find(|unit| self.0 >= *unit).unwrap_or(1) as f64;
        let number = self.0 as f64 / unit;
        let step = 10_f64.powi(number.max(1.0).log10().floor() as i32 + 1 - digits as i32);
        ByteCount(((number / step).round() * step * unit) as u64)
    }
}

impl fmt::Display for ByteCount {
    /// In the largest binary unit that leaves at least 1: `1.5 GiB`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        for (unit, shift) in units {
            if self.0 >> shift > 0 {
                let text = format!("{:.2}", self.0 as f64 / (1_u64 << shift) as f64);
                return write!(out, "{} {unit}", text.trim_end_matches('0').trim_end_matches('.'));
            }
        }
        write!(out, "{} B", self.0)
    }
}

/// Reads `250000`, `250_000`, `250k`, `20M`, `1.5B` (powers of 1000).
pub fn parse_count(text: &str) -> Result<u64, ParseQuantityError> {
    let refuse = || {
        ParseQuantityError(format!(
            "`{text}` is not a whole number such as 16, \"250k\" or \"20M\""
        ))
    };
    let (number, unit) = number_and_unit(text).ok_or_else(refuse)?;
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" | "m" => 1e6,
        "B" | "G" => 1e9,
        _ => return Err(refuse()),
    };
    whole(text, number * factor)
}

/// Reads `250ms`, `10s`, `5min`, `2h`, and sums such as `1h30min`.
pub fn parse_duration(text: &str) -> Result<Nanoseconds, ParseQuantityError> {
    let refuse = || {
        ParseQuantityError(format!(
            "`{text}` is not a duration; write it like \"1500ms\", \"30s\", \"5min\""
        ))
    };
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest == "0" {
        return Ok(Nanoseconds::ZERO);
    }
    if rest.is_empty() {
        return Err(refuse());
    }
    while !rest.is_empty() {
        let (number, tail) = number_and_unit(rest).ok_or_else(refuse)?;
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let factor = match tail[..end].trim() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" | "sec" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            "d" => 86400e9,
            _ => return Err(refuse()),
        };
        total += number * factor;
        rest = &tail[end..];
    }
    whole(text, total).map(Nanoseconds)
}

/// Reads `3%` or `2.5 %` as 3 or 2.5.
pub fn parse_percentage(text: &str) -> Result<f64, ParseQuantityError> {
    match number_and_unit(text) {
        Some((number, "%")) => Ok(number),
        _ => Err(ParseQuantityError(format!("`{text}` is not a percentage; write it like \"3%\""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(text.parse::<ByteCount>().ok().map(|b| b.0), expected, "{text}");
        };
        check("8GiB", Some(8 << 30));
        check("8 MB", Some(8_000_000));
        check("16k", Some(16 << 10));
        check("1.5G", Some(3 << 29));
        check("512", Some(512));
        check("8GBit", None);
        check("-1", None);
        check("", None);
        check("99999999999999999999TiB", None);
    }

    #[test]
    fn estimates_are_rounded() {
        let check = |bytes: u64, digits: u32, expected: &str| {
            assert_eq!(ByteCount(bytes).rounded(digits).to_string(), expected, "{bytes}");
        };
        check(265_700_000, 2, "250 MiB");
        check(265_700_000, 3, "253 MiB");
        check(1_194_000_000, 2, "1.1 GiB");
        check(1 << 30, 2, "1 GiB");
        check(10_036, 2, "9.8 KiB");
        check(40, 2, "40 B");
        check(0, 2, "0 B");
    }

    #[test]
    fn counts() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(parse_count(text).ok(), expected, "{text}");
        };
        check("20M", Some(20_000_000));
        check("250_000", Some(250_000));
        check("1.5k", Some(1500));
        check("many", None);
    }

    #[test]
    fn durations() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(parse_duration(text).ok().map(|d| d.0), expected, "{text}");
        };
        check("250ms", Some(250_000_000));
        check("1h30min", Some(5_400_000_000_000));
        check("2 min", Some(120_000_000_000));
        check("0", Some(0));
        check("10", None);
        check("", None);
        check("s", None);
        check("10 parsecs", None);
    }

    #[test]
    fn percentages() {
        assert_eq!(parse_percentage("2.5 %"), Ok(2.5));
        assert!(parse_percentage("2.5").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,24}") {
            let _ = text.parse::<ByteCount>();
            let _ = parse_count(&text);
            let _ = parse_duration(&text);
            let _ = parse_percentage(&text);
        }
    }
}
