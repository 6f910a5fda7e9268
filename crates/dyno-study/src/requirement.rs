//! What a study demands of its answer, beside asking: `require = "p99 <= 20ms"`.

use std::fmt;
use std::str::FromStr;

use dyno_units::{Nanoseconds, parse_count};

use crate::search::{Limit, ParseLimitError, Statistic};

/// A demand on every variant at every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Requirement {
    /// A statistic of response times that must not be longer.
    Response(Limit),
    /// Committed transactions per second that must not be fewer.
    Throughput(f64),
}

impl fmt::Display for Requirement {
    /// Writes `p99 ≤ 20 ms`, `throughput ≥ 1000/s`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Response(limit) => limit.fmt(out),
            Requirement::Throughput(rate) => write!(out, "throughput ≥ {rate}/s"),
        }
    }
}

impl Requirement {
    /// Its measure, as records and findings name it: `throughput`, `p99`.
    pub fn measure(&self) -> &'static str {
        match self {
            Requirement::Response(limit) => limit.statistic.word(),
            Requirement::Throughput(_) => "throughput",
        }
    }

    /// Its bound: microseconds, or transactions per second.
    pub fn bound(&self) -> f64 {
        match self {
            Requirement::Response(limit) => {
                let Nanoseconds(bound) = limit.bound;
                bound as f64 / 1e3
            }
            Requirement::Throughput(rate) => *rate,
        }
    }
}

impl FromStr for Requirement {
    type Err = ParseLimitError;

    /// Reads `p99 <= 20ms`, `throughput >= 1000`, `throughput >= 2k`; `<` and `>` are taken as `<=` and
    /// `>=`, and blanks do not matter.
    fn from_str(text: &str) -> Result<Requirement, ParseLimitError> {
        let refuse = |why: String| Err(ParseLimitError::new(why));
        let sign = [">=", "≥", ">"].into_iter().find(|sign| text.contains(sign));
        let Some((word, bound)) = sign.and_then(|sign| text.split_once(sign)) else {
            let limit: Limit = text.parse().map_err(|error: ParseLimitError| {
                ParseLimitError::new(format!(
                    "{error}; a requirement may also be \"throughput >= 1000\""
                ))
            })?;
            if limit.statistic == Statistic::P90 {
                return refuse("p90 is not among the estimates; use p95".to_owned());
            }
            return Ok(Requirement::Response(limit));
        };
        if word.trim() != "throughput" {
            return refuse(format!(
                "`{}` cannot have a minimum; write it like \"throughput >= 1000\", or \"p99 <= \
                 20ms\"",
                word.trim()
            ));
        }
        let bound = bound.trim().trim_end_matches("/s");
        let rate = match bound.parse::<f64>() {
            Ok(rate) => Some(rate),
            Err(_) => parse_count(bound).ok().map(|rate| rate as f64),
        };
        match rate.filter(|rate| *rate > 0.0 && rate.is_finite()) {
            Some(rate) => Ok(Requirement::Throughput(rate)),
            None => refuse(format!("`{bound}` is not a rate above zero; write 1000 or 2k")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements() {
        let check = |text: &str, expected: Result<(&str, f64), &str>| match (
            text.parse::<Requirement>(),
            expected,
        ) {
            (Ok(found), Ok((words, bound))) => {
                assert_eq!(found.to_string(), words);
                assert_eq!(found.bound(), bound);
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        check("p99 <= 20ms", Ok(("p99 ≤ 20 ms", 20_000.0)));
        check("p99<20ms", Ok(("p99 ≤ 20 ms", 20_000.0)));
        check("throughput >= 1000", Ok(("throughput ≥ 1000/s", 1000.0)));
        check("throughput > 2k", Ok(("throughput ≥ 2000/s", 2000.0)));
        check("throughput ≥ 0.5/s", Ok(("throughput ≥ 0.5/s", 0.5)));
        check("throughput >= 0", Err("above zero"));
        check("p99 >= 20ms", Err("cannot have a minimum"));
        check("p90 <= 20ms", Err("use p95"));
        check("fast", Err("throughput >= 1000"));
    }
}
