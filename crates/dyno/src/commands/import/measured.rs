//! What one run of another tool measured, as far as its output says, and how a format is described.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;

use dyno_units::Metric;

/// Ten years, in seconds.
pub(super) const SECONDS_MOST: f64 = 10.0 * 366.0 * 86_400.0;
pub(super) const NO_RATE: &str = "these transactions were sent at a rate (`-R`), which is not in the file: give it in transactions \
                       per second, as in `--rate 1000`";

pub(super) struct Format {
    pub(super) name: &'static str,
    /// A description without capital and full stop.
    pub(super) text: &'static str,
    pub(super) is_it: fn(&str) -> bool,
    /// Reads all runs of unindented lines. The rate is for runs that had one but do not print it.
    pub(super) read: fn(&str, Option<f64>) -> Result<Found, ReadError>,
}

#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) runs: Vec<Measured>,
    /// Runs without results, with the reason.
    pub(super) cut: Vec<ReadError>,
}

impl From<Vec<Measured>> for Found {
    fn from(runs: Vec<Measured>) -> Found {
        Found { runs, cut: Vec::new() }
    }
}

impl Found {
    pub(super) fn push(&mut self, run: Result<Measured, ReadError>) {
        match run {
            Ok(run) => self.runs.push(run),
            Err(why) => self.cut.push(why),
        }
    }

    /// Fails if no run has results.
    pub(super) fn checked(mut self) -> Result<Found, ReadError> {
        match self.runs.is_empty() && !self.cut.is_empty() {
            true => Err(self.cut.swap_remove(0)),
            false => Ok(self),
        }
    }
}

#[derive(Debug)]
pub(super) struct ReadError {
    pub(super) line: usize,
    pub(super) what: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl ReadError {
    pub(super) fn at(line: usize, what: &str) -> ReadError {
        ReadError { line, what: dyno_units::clean_text(&dyno_units::redact_secrets(what)) }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// With its version if known: `sysbench 1.0.20`.
    pub(super) tool: String,
    /// The file, and the line if the file holds several runs.
    pub(super) place: String,
    pub(super) workload: Option<String>,
    /// Clients, threads or virtual users.
    pub(super) clients: u64,
    /// In transactions per second.
    pub(super) rate: Option<f64>,
    pub(super) seconds: f64,
    /// By kind of transaction; empty if the output does not count transactions.
    pub(super) kinds: Vec<Kind>,
    /// Reads, writes, others.
    pub(super) statements: [u64; 3],
    pub(super) reconnects: u64,
    pub(super) retries: u64,
    /// Arrivals that were due and never sent.
    pub(super) missed: u64,
    pub(super) intervals: Vec<Interval>,
    pub(super) figures: Vec<(Metric, f64)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) committed: u64,
    /// By outcome, in the words of records.
    pub(super) failed: BTreeMap<&'static str, u64>,
    /// None unless the output has a time for each commit.
    pub(super) times: Option<Times>,
}

/// In nanoseconds, one for each commit.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) response: Histogram<u64>,
    pub(super) service: Histogram<u64>,
}

impl Times {
    pub(super) fn new() -> Times {
        let (response, service) = (dyno_record::new_histogram(), dyno_record::new_histogram());
        Times { response, service }
    }

    pub(super) fn note(&mut self, response_ns: u64, service_ns: u64, n: u64) {
        // Growing histograms refuse no value.
        self.response.auto(true);
        self.service.auto(true);
        let _ = self.response.record_n(response_ns.max(1), n);
        let _ = self.service.record_n(service_ns.max(1), n);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Interval {
    /// From the start of the run.
    pub(super) start_s: f64,
    pub(super) length_s: f64,
    /// Commits per second.
    pub(super) throughput: f64,
    /// Failures per second.
    pub(super) errors: f64,
    /// p50, p95, p99 and maximum in microseconds; 0 where unknown.
    pub(super) response_us: [f64; 4],
}

impl Measured {
    pub(super) fn committed(&self) -> u64 {
        self.kinds.iter().fold(0, |sum, kind| sum.saturating_add(kind.committed))
    }

    /// Adds the rest after the last printed interval if it is at least half an interval long.
    pub(super) fn close_intervals(&mut self) {
        let Some(last) = self.intervals.last() else { return };
        let end = last.start_s + last.length_s;
        let left_s = self.seconds - end;
        if left_s < last.length_s / 2.0 {
            return;
        }
        let printed: f64 = self.intervals.iter().map(|i| i.throughput * i.length_s).sum();
        let left = (self.committed() as f64 - printed).max(0.0);
        let throughput = left / left_s;
        self.intervals.push(Interval {
            start_s: end,
            length_s: left_s,
            throughput,
            ..Interval::default()
        });
    }
}

/// Leading spaces are skipped: 1234 for `1234   (123.4 per sec.)`.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".-+eE".contains(c)));
    let value: f64 = text[..end.unwrap_or(text.len())].parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// Counts beyond it are no longer exact as numbers of JSON, and are none of a run.
const COUNT_MOST: u64 = 1 << 53;

pub(super) fn whole(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().ok().filter(|count| *count <= COUNT_MOST)
}

/// Adds a count, if there is one, that a text may repeat.
pub(super) fn add(sum: &mut u64, count: Option<u64>) {
    *sum = sum.saturating_add(count.unwrap_or(0)).min(COUNT_MOST);
}

/// `   10.0s` for `total time:   10.0s` and `total time:`.
pub(super) fn behind<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    line.trim_start().strip_prefix(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_up_to_what_is_none() {
        let check =
            |text: &str, expected: Option<f64>| assert_eq!(number(text), expected, "{text}");
        check("   1234   (123.4 per sec.)", Some(1234.0));
        check(" 10.0012s", Some(10.0012));
        check("0.50ms", Some(0.5));
        check("-3", None);
        check("inf", None);
        check("", None);
        assert_eq!(whole(" 12 (3)"), Some(12));
        assert_eq!(whole("x"), None);
        assert_eq!(whole("9007199254740992"), Some(COUNT_MOST));
        assert_eq!(whole("9007199254740993"), None);
    }

    #[test]
    fn what_came_after_the_last_printed_interval_is_not_lost() {
        let kind = Kind { committed: 250, ..Kind::default() };
        let interval = Interval { length_s: 10.0, throughput: 20.0, ..Interval::default() };
        let run = |seconds: f64| {
            let (kinds, intervals) = (vec![kind.clone()], vec![interval]);
            let mut run = Measured { seconds, kinds, intervals, ..Measured::default() };
            run.close_intervals();
            run.intervals
        };
        // 50 commits in the remaining five seconds.
        let ended = run(15.0);
        assert_eq!((ended.len(), ended[1].start_s, ended[1].throughput), (2, 10.0, 10.0));
        assert_eq!(run(10.4).len(), 1);
    }
}
