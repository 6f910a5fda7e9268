//! What a study demands of its answer, beside asking: `require = "p99 <= 20ms"`.

use std::fmt;
use std::str::FromStr;

use dyno_units::{ByteCount, MetricId, Nanoseconds, parse_count, parse_duration};

use crate::search::{Limit, Statistic};

/// A demand on every variant at every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Requirement {
    /// A statistic of response times that must not be longer.
    Response(Limit),
    /// Committed transactions per second that must not be fewer.
    Throughput(f64),
    /// Any other metric, by its id: `job.time <= 15s`.
    Metric {
        id: MetricId,
        /// Whether it must not be less; otherwise it must not be more.
        is_least: bool,
        /// The bound: microseconds, bytes, or a number.
        bound: Bound,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    Time(Nanoseconds),
    Size(ByteCount),
    /// A number in the metric's own unit.
    Number(f64),
}

impl fmt::Display for Requirement {
    /// Writes `p99 ≤ 20 ms`, `throughput ≥ 1000/s`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Response(limit) => limit.fmt(out),
            Requirement::Throughput(rate) => write!(out, "throughput ≥ {rate}/s"),
            Requirement::Metric { id, is_least, bound } => {
                let sign = if *is_least { "≥" } else { "≤" };
                match bound {
                    Bound::Time(time) => write!(out, "{id} {sign} {time}"),
                    Bound::Size(size) => write!(out, "{id} {sign} {size}"),
                    Bound::Number(number) => write!(out, "{id} {sign} {number}"),
                }
            }
        }
    }
}

impl Requirement {
    /// Its measure, as records and findings name it: `throughput`, `p99`.
    pub fn measure(&self) -> &'static str {
        match self {
            Requirement::Response(limit) => limit.statistic.word(),
            Requirement::Throughput(_) => "throughput",
            Requirement::Metric { id, .. } => id.as_str(),
        }
    }

    pub fn is_least(&self) -> bool {
        match self {
            Requirement::Response(_) => false,
            Requirement::Throughput(_) => true,
            Requirement::Metric { is_least, .. } => *is_least,
        }
    }

    pub fn is_in_own_unit(&self) -> bool {
        matches!(self, Requirement::Metric { bound: Bound::Number(_), .. })
    }

    /// Its bound: microseconds, bytes, transactions per second, or a number.
    pub fn bound(&self) -> f64 {
        match self {
            Requirement::Response(limit) => {
                let Nanoseconds(bound) = limit.bound;
                bound as f64 / 1e3
            }
            Requirement::Throughput(rate) => *rate,
            Requirement::Metric { bound: Bound::Time(time), .. } => time.0 as f64 / 1e3,
            Requirement::Metric { bound: Bound::Size(size), .. } => size.0 as f64,
            Requirement::Metric { bound: Bound::Number(number), .. } => *number,
        }
    }
}

impl FromStr for Requirement {
    type Err = String;

    /// Reads `p99 <= 20ms`, `throughput >= 1000`, `throughput >= 2k`, `job.time <= 15s`; `<` and `>` are taken as `<=` and
    /// `>=`, and blanks do not matter.
    fn from_str(text: &str) -> Result<Requirement, String> {
        if let Some(metric) = of_metric(text) {
            return metric;
        }
        let sign = [">=", "≥", ">"].into_iter().find(|sign| text.contains(sign));
        let Some((word, bound)) = sign.and_then(|sign| text.split_once(sign)) else {
            let limit = text.parse::<Limit>().map_err(|error| {
                format!("{error}; a requirement may also be \"throughput >= 1000\"")
            })?;
            if limit.statistic == Statistic::P90 {
                return Err("`p90` can be searched for, but not required, because it is not in the report; use p95".to_owned());
            }
            return Ok(Requirement::Response(limit));
        };
        if word.trim() != "throughput" {
            return Err(format!(
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
            None => Err(format!("`{bound}` is not a rate above zero; write 1000 or 2k")),
        }
    }
}

/// A requirement on a metric by its id; none if no id of two parts (`job.time`, `step_time`) comes first.
fn of_metric(text: &str) -> Option<Result<Requirement, String>> {
    let (at, sign) = [">=", "≥", "<=", "≤", ">", "<"]
        .into_iter()
        .find_map(|sign| Some((text.find(sign)?, sign)))?;
    let word = text[..at].trim();
    let is_statistic = Statistic::WORDS.iter().any(|(statistic, _)| *statistic == word);
    let id = MetricId::parse(word).filter(|_| word.contains(['.', '_']) && !is_statistic)?;
    let is_least = sign.starts_with(['>', '≥']);
    let bound = text[at + sign.len()..].trim();
    let number = || bound.parse::<f64>().ok().filter(|number| number.is_finite());
    let time = || parse_duration(bound).ok().map(Bound::Time);
    let size = || bound.parse::<ByteCount>().ok().map(Bound::Size);
    let read = number().map(Bound::Number).or_else(time).or_else(size);
    let why = || {
        format!("`{bound}` is not a bound of {id}; write a number, a time (15s) or a size (2GiB)")
    };
    Some(read.map(|bound| Requirement::Metric { id, is_least, bound }).ok_or_else(why))
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
        check("job.time <= 15s", Ok(("job.time ≤ 15 s", 15e6)));
        check("job.rss_peak<2GiB", Ok(("job.rss_peak ≤ 2 GiB", 2_147_483_648.0)));
        check("vol.ratio ≥ 1.5", Ok(("vol.ratio ≥ 1.5", 1.5)));
        check("job.time <= soon", Err("is not a bound of job.time"));
        check("p99.9 <= 1s", Ok(("p99.9 ≤ 1 s", 1e6)));
        let is_in_own_unit = |text: &str| text.parse::<Requirement>().map(|r| r.is_in_own_unit());
        assert_eq!(is_in_own_unit("job.time <= 15"), Ok(true));
        assert_eq!(is_in_own_unit("job.time <= 15s"), Ok(false));
        assert_eq!(is_in_own_unit("throughput >= 15"), Ok(false));
    }
}
