//! A search for the highest load under a response-time limit, as a study asks for it.

use std::fmt;
use std::str::FromStr;

use dyno_model::Arrivals;
use dyno_units::{Nanoseconds, parse_duration};

/// A step that searches: the highest load at which a limit on response times is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    pub sought: Sought,
    pub limit: Limit,
    /// How near the highest load that was seen to hold and the lowest that was seen to break have
    /// to come, as a fraction (0.05 for 5 %).
    pub precision: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The offered rate of an open load.
    Rate {
        arrivals: Arrivals,
        /// Clients that serve the arrivals: the most transactions in flight.
        clients: usize,
    },
    /// The number of clients of a closed load.
    Clients { most: usize },
}

impl Search {
    /// The precision of a search that names none.
    pub const PRECISION: f64 = 0.05;
    /// Finest and coarsest precision that may be asked for.
    pub const PRECISIONS: (f64, f64) = (0.005, 0.5);
    /// Most clients that a search for clients tries, unless the study says otherwise.
    pub const CLIENTS_MOST: usize = 1024;
    /// How many times as long as the limit a load has to be measured: a server that is asked for
    /// more than it can do shows it by a backlog that grows, which takes time.
    pub const DURATION_LEAST: u64 = 10;

    /// Load probes that such a search takes as a rule: a few to break the limit, then halving a
    /// bracket that is a factor of [`Sought::growth`] wide until it is as narrow as the precision,
    /// then both ends once more.
    pub fn probes_expected(&self) -> u32 {
        const TO_BREAK: f64 = 6.0;
        const BOTH_ENDS: f64 = 2.0;
        let halvings = (self.sought.growth().ln() / self.precision.ln_1p()).log2().ceil();
        (TO_BREAK + halvings.max(0.0) + BOTH_ENDS) as u32
    }

    /// Refuses a measured time that is too short to see a backlog grow; says why.
    pub fn check_duration(&self, duration: Nanoseconds) -> Result<(), String> {
        let least = Nanoseconds(self.limit.bound.0.saturating_mul(Search::DURATION_LEAST));
        if duration >= least {
            return Ok(());
        }
        Err(format!(
            "a load has to be measured for at least {} times the limit, here {least}, so that a \
             growing backlog is seen",
            Search::DURATION_LEAST
        ))
    }
}

impl fmt::Display for Search {
    /// Writes it as the name of a step: `highest rate with p99 ≤ 20 ms`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sought = match self.sought {
            Sought::Rate { .. } => "highest rate",
            Sought::Clients { .. } => "most clients",
        };
        write!(out, "{sought} with {}", self.limit)
    }
}

impl Sought {
    /// The factor by which the load is raised until the limit breaks.
    pub fn growth(self) -> f64 {
        match self {
            // An overload with a bounded number of clients ends with its step.
            Sought::Rate { .. } => 4.0,
            // Every client is a connection that has to be opened.
            Sought::Clients { .. } => 2.0,
        }
    }
}

/// A limit on response times, written `p99 <= 20ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub statistic: Statistic,
    pub bound: Nanoseconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    Mean,
    P50,
    P90,
    P95,
    P99,
    /// A quantile: 0.999.
    P999,
    Max,
}

impl Statistic {
    pub(crate) const WORDS: [(&'static str, Statistic); 8] = [
        ("mean", Statistic::Mean),
        ("p50", Statistic::P50),
        ("p90", Statistic::P90),
        ("p95", Statistic::P95),
        ("p99", Statistic::P99),
        ("p99.9", Statistic::P999),
        ("p999", Statistic::P999),
        ("max", Statistic::Max),
    ];

    /// The quantile in [0, 1]; none for the mean.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Statistic::Mean => None,
            Statistic::P50 => Some(0.5),
            Statistic::P90 => Some(0.9),
            Statistic::P95 => Some(0.95),
            Statistic::P99 => Some(0.99),
            Statistic::P999 => Some(0.999),
            Statistic::Max => Some(1.0),
        }
    }

    /// Its word in study files, on the command line and in records.
    pub fn word(self) -> &'static str {
        let is_it = |(_, statistic): &&(&'static str, Statistic)| *statistic == self;
        Statistic::WORDS.iter().find(is_it).map_or("", |(word, _)| word)
    }
}

impl fmt::Display for Limit {
    /// Writes `p99 ≤ 20 ms`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ≤ {}", self.statistic.word(), self.bound)
    }
}

impl FromStr for Limit {
    /// Why it could not be read, with the accepted form.
    type Err = String;

    /// Reads `p99 <= 20ms`, `mean ≤ 5ms`; `<` means the same, and blanks do not matter.
    fn from_str(text: &str) -> Result<Limit, String> {
        let parts = ["<=", "≤", "<"].iter().find_map(|sign| text.split_once(sign));
        let Some((word, bound)) = parts else {
            return Err(format!("`{text}` is not a limit; write it like \"p99 <= 20ms\""));
        };
        let word = word.trim();
        let Some((_, statistic)) = Statistic::WORDS.iter().find(|(other, _)| *other == word) else {
            return Err(format!(
                "`{word}` cannot have a limit; choose one of mean, p50, p90, p95, p99, p99.9 and max"
            ));
        };
        match parse_duration(bound.trim()) {
            Ok(Nanoseconds::ZERO) => Err(format!("the limit of `{text}` is zero")),
            Ok(bound) => Ok(Limit { statistic: *statistic, bound }),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let found = text.parse::<Limit>().map(|limit| limit.to_string());
        match expected {
            Ok(expected) => assert_eq!(found.as_deref(), Ok(expected)),
            Err(part) => {
                let message = found.expect_err("it is wrong").to_string();
                assert!(message.contains(part), "{message}");
            }
        }
    }

    #[test]
    fn limits() {
        check("p99 <= 20ms", Ok("p99 ≤ 20 ms"));
        check("p99.9≤1s", Ok("p99.9 ≤ 1 s"));
        check(" p999 <=  500us ", Ok("p99.9 ≤ 500 µs"));
        check("mean <= 5ms", Ok("mean ≤ 5 ms"));
        check("max <= 1min", Ok("max ≤ 1 min"));
        check("p99 < 20ms", Ok("p99 ≤ 20 ms"));
        check("p99 > 20ms", Err("write it like"));
        check("20ms", Err("write it like"));
        check("p98 <= 20ms", Err("`p98` cannot have a limit"));
        check("p99 <= 20", Err("`20` is not a duration"));
        check("p99 <= 0", Err("is zero"));
    }

    fn search(precision: f64, sought: Sought) -> Search {
        Search { sought, limit: "p99 <= 20ms".parse().expect("it is right"), precision }
    }

    #[test]
    fn finer_searches_take_more_probes() {
        let rate = Sought::Rate { arrivals: Arrivals::Poisson, clients: 64 };
        assert_eq!(search(0.05, rate).probes_expected(), 13);
        assert_eq!(search(0.01, rate).probes_expected(), 16);
        assert_eq!(search(0.05, Sought::Clients { most: 1024 }).probes_expected(), 12);
    }

    #[test]
    fn a_backlog_needs_time_to_grow() {
        let search = search(0.05, Sought::Clients { most: 8 });
        assert_eq!(search.check_duration(Nanoseconds::from_millis(200)), Ok(()));
        let short = search.check_duration(Nanoseconds::from_millis(199));
        assert!(short.expect_err("it is short").contains("200 ms"));
    }
}
