//! Output of sysbench 0.5, 1.0 and 1.1, from any of its tests.

use dyno_units::Direction::{Higher, Lower};
use dyno_units::{Metric, Unit, metric};

use super::measured::{
    Format, Found, Interval, Kind, Measured, ReadError, Times, add, behind, number, whole,
};

pub(super) const FORMAT: Format = Format {
    name: "sysbench",
    text: "sysbench's output; with `--histogram`, including its response times",
    is_it: |text| {
        let says = |what: &str| text.contains(what);
        says("sysbench") && (says("Number of threads:") || says("General statistics:"))
    },
    read,
};

#[rustfmt::skip]
const MEAN: Metric =
    metric("sysbench.latency_mean", Unit::Microseconds, Lower, "mean latency (sysbench)", "the mean that sysbench printed").secondary();
#[rustfmt::skip]
const MAX: Metric =
    metric("sysbench.latency_max", Unit::Microseconds, Lower, "longest latency (sysbench)", "the maximum that sysbench printed");
#[rustfmt::skip]
const QUERIES: Metric =
    metric("sysbench.queries_per_s", Unit::PerSecond, Higher, "queries/s (sysbench)", "queries counted by sysbench ÷ its total time");
#[rustfmt::skip]
const P95: Metric =
    metric("sysbench.latency_p95", Unit::Microseconds, Lower, "p95 latency (sysbench)", "the 95th percentile that sysbench printed, from a histogram whose buckets are 1.8 % wide").secondary();

fn read(text: &str, _rate: Option<f64>) -> Result<Found, ReadError> {
    let mut found = Found::default();
    let mut run = Run::default();
    for (idx, line) in text.lines().enumerate() {
        let is_version = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        let begins = line.strip_prefix("sysbench ").is_some_and(is_version)
            || (line.starts_with("Number of threads:") && run.threads.is_some());
        if begins && run.has_begun() {
            found.push(std::mem::take(&mut run).finish());
        }
        if run.line == 0 && !line.trim().is_empty() {
            run.line = idx + 1;
        }
        run.take(line, idx + 1)?;
    }
    if run.has_begun() {
        found.push(run.finish());
    }
    found.checked()
}

#[derive(Default)]
struct Run {
    /// From 1.
    line: usize,
    version: Option<String>,
    threads: Option<u64>,
    rate: Option<f64>,
    section: Section,
    statements: [u64; 3],
    transactions: Option<u64>,
    queries: Option<u64>,
    events: Option<u64>,
    errors: u64,
    reconnects: u64,
    seconds: Option<f64>,
    /// In milliseconds.
    mean: Option<f64>,
    max: Option<f64>,
    /// Percentile and value in milliseconds.
    percentile: Option<(f64, f64)>,
    times: Option<Times>,
    intervals: Vec<Interval>,
    fatal: Option<String>,
}

/// The part of the output: `read:` counts queries in one and is a rate in another.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Other,
    Queries,
    Latency,
    Histogram,
}

impl Run {
    fn has_begun(&self) -> bool {
        self.threads.is_some() || self.seconds.is_some() || self.fatal.is_some()
    }

    fn take(&mut self, line: &str, nth: usize) -> Result<(), ReadError> {
        if line.contains("Checkpoint report:") {
            return Err(ReadError::at(
                nth,
                "the run has checkpoints (`--report-checkpoints`), so its final report covers \
                 only the time since the last checkpoint: import runs without checkpoints",
            ));
        }
        if let Some(version) = behind(line, "sysbench ")
            && let Some((version, _)) = version.split_once([':', ' '])
        {
            self.version.get_or_insert_with(|| version.to_owned());
        }
        if line.trim_start().starts_with("FATAL:") {
            self.fatal.get_or_insert_with(|| line.trim().to_owned());
        }
        if line.starts_with('[') {
            return self.interval(line, nth);
        }
        self.section = match line.trim() {
            "queries performed:" => Section::Queries,
            "Latency (ms):" | "response time:" => Section::Latency,
            text if text.starts_with("Latency histogram") => Section::Histogram,
            text if text.starts_with("transactions:") => Section::Other,
            text if text.starts_with("Threads fairness") => Section::Other,
            text if text.starts_with("SQL statistics") => Section::Other,
            _ => self.section,
        };
        self.count(line);
        match self.section {
            Section::Latency => self.latency(line),
            Section::Histogram => self.bucket(line),
            Section::Queries | Section::Other => {}
        }
        Ok(())
    }

    fn count(&mut self, line: &str) {
        let of = |label: &str| behind(line, label).and_then(number);
        let n = |label: &str| behind(line, label).and_then(whole);
        self.threads = self.threads.or_else(|| n("Number of threads:"));
        self.rate = self.rate.or_else(|| of("Target transaction rate:")).filter(|rate| *rate > 0.0);
        self.transactions = self.transactions.or_else(|| n("transactions:"));
        self.queries = self.queries.or_else(|| n("queries:"));
        self.events = self.events.or_else(|| n("total number of events:"));
        let seconds = || of("total time:").or_else(|| of("time elapsed:"));
        self.seconds = self.seconds.or_else(seconds);
        add(&mut self.errors, n("ignored errors:"));
        add(&mut self.reconnects, n("reconnects:"));
        if self.section == Section::Queries {
            let labels = ["read:", "write:", "other:"];
            for (count, label) in self.statements.iter_mut().zip(labels) {
                add(count, n(label));
            }
        }
    }

    fn latency(&mut self, line: &str) {
        let of = |label: &str| behind(line, label).and_then(number);
        self.mean = self.mean.or_else(|| of("avg:"));
        self.max = self.max.or_else(|| of("max:"));
        // `95th percentile:  16.71`, and in 0.5 `approx.  95 percentile:  16.71ms`.
        if let Some((rank, value)) = line.split_once("percentile:") {
            let rank = rank.trim().trim_start_matches("approx.");
            self.percentile = self.percentile.or_else(|| Some((number(rank)?, number(value)?)));
        }
    }

    /// `       0.861 |********        12`
    fn bucket(&mut self, line: &str) {
        let Some((value, rest)) = line.split_once('|') else { return };
        let count = rest.split_whitespace().next_back().and_then(whole);
        if let (Some(ms), Some(count)) = (number(value), count) {
            let ns = (ms * 1e6).round() as u64;
            self.times.get_or_insert_with(Times::new).note(ns, ns, count);
        }
    }

    /// `[ 10s ] thds: 16 tps: 1234.56 qps: … lat (ms,95%): 16.71 err/s: 0.00 reconn/s: 0.00`; in 0.5
    /// `[  10s] threads: 16, tps: 1234.56, …, response time: 16.71ms (95%), errors: 0.00, …`.
    fn interval(&mut self, line: &str, nth: usize) -> Result<(), ReadError> {
        let after = |label: &str| line.split_once(label).map(|(_, rest)| rest);
        let Some(throughput) = after(" tps: ").and_then(number) else { return Ok(()) };
        let end_s = number(&line[1..])
            .ok_or_else(|| ReadError::at(nth, "the time of an interval is not a number"))?;
        let start_s = self.intervals.last().map_or(0.0, |last| last.start_s + last.length_s);
        if end_s <= start_s {
            return Err(ReadError::at(nth, "an interval ends before it begins"));
        }
        let errors = ["err/s: ", "err/s ", "errors: "]
            .into_iter()
            .find_map(after)
            .and_then(number)
            .unwrap_or(0.0);
        let latency = match after(" lat (ms,") {
            Some(rest) => {
                rest.split_once("%): ").and_then(|(p, ms)| Some((number(p)?, number(ms)?)))
            }
            None => after("response time: ").and_then(|rest| {
                let (ms, rest) = rest.split_once("ms (")?;
                Some((number(rest)?, number(ms)?))
            }),
        };
        let mut response_us = [0.0; 4];
        match latency {
            Some((50.0, ms)) => response_us[0] = ms * 1e3,
            Some((95.0, ms)) => response_us[1] = ms * 1e3,
            Some((99.0, ms)) => response_us[2] = ms * 1e3,
            _ => {}
        }
        let length_s = end_s - start_s;
        self.intervals.push(Interval { start_s, length_s, throughput, errors, response_us });
        Ok(())
    }

    fn finish(self) -> Result<Measured, ReadError> {
        let at = |what: String| ReadError::at(self.line, &what);
        if let Some(fatal) = &self.fatal {
            return Err(at(format!("sysbench ended with “{fatal}”")));
        }
        let missing = |what: &str| {
            at(format!(
                "the run has no `{what}` line: the output was cut short, or comes from another command"
            ))
        };
        let clients = self.threads.ok_or_else(|| missing("Number of threads:"))?;
        let seconds = self.seconds.filter(|s| *s > 0.0).ok_or_else(|| missing("total time:"))?;
        let is_sql = self.transactions.is_some();
        let events = self.transactions.or(self.events);
        let committed = events.ok_or_else(|| missing("total number of events:"))?;
        let times = self.times.filter(|times| times.response.len() == committed);
        let mut figures = Vec::new();
        let mut figure = |metric: Metric, value: Option<f64>| {
            figures.extend(value.map(|value| (metric, value)));
        };
        if times.is_none() {
            figure(MEAN, self.mean.map(|ms| ms * 1e3));
            figure(MAX, self.max.map(|ms| ms * 1e3));
            if let Some((rank, ms)) = self.percentile {
                figure(percentile(rank), Some(ms * 1e3));
            }
        }
        figure(QUERIES, self.queries.map(|n| n as f64 / seconds));
        let failed = [("ignored_error", self.errors)].into_iter().filter(|(_, n)| *n > 0).collect();
        let name = if is_sql { "transaction" } else { "event" }.to_owned();
        let mut run = Measured {
            tool: format!("sysbench {}", self.version.unwrap_or_default()).trim().to_owned(),
            place: format!("line {}", self.line),
            clients,
            rate: self.rate,
            seconds,
            kinds: vec![Kind { name, committed, failed, times }],
            statements: self.statements,
            reconnects: self.reconnects,
            intervals: self.intervals,
            figures,
            ..Measured::default()
        };
        run.close_intervals();
        Ok(run)
    }
}

/// For percentiles other than the 95th.
fn percentile(rank: f64) -> Metric {
    let id = format!("sysbench.latency_p{rank}");
    match dyno_units::MetricId::parse(&id) {
        Some(id) if rank != 95.0 => {
            let title = format!("p{rank} latency (sysbench)").into();
            Metric { id, title, text: "the percentile that sysbench printed".into(), ..P95 }
        }
        _ => P95,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
Report intermediate results every 2 second(s)
Initializing random number generator from current time


Initializing worker threads...

Threads started!

[ 2s ] thds: 4 tps: 100.00 qps: 2000.00 (r/w/o: 1400.00/400.00/200.00) lat (ms,95%): 50.11 err/s: 1.50 reconn/s: 0.00
[ 4s ] thds: 4 tps: 120.00 qps: 2400.00 (r/w/o: 1680.00/480.00/240.00) lat (ms,95%): 41.10 err/s: 0.00 reconn/s: 0.00
SQL statistics:
    queries performed:
        read:                            6300
        write:                           1800
        other:                           900
        total:                           9000
    transactions:                        450    (89.91 per sec.)
    queries:                             9000   (1798.20 per sec.)
    ignored errors:                      3      (0.60 per sec.)
    reconnects:                          1      (0.20 per sec.)

General statistics:
    total time:                          5.0050s
    total number of events:              450

Latency (ms):
         min:                                   12.10
         avg:                                   44.40
         max:                                  130.00
         95th percentile:                       48.34
         sum:                                19980.00

Threads fairness:
    events (avg/stddev):           112.5000/1.50
    execution time (avg/stddev):   4.9950/0.00
";

    fn one(text: &str) -> Measured {
        let mut runs = read(text, None).expect(text).runs;
        assert_eq!(runs.len(), 1);
        runs.remove(0)
    }

    #[test]
    fn a_run_is_read() {
        let run = one(RUN);
        assert_eq!((run.tool.as_str(), run.clients, run.seconds), ("sysbench 1.0.20", 4, 5.005));
        assert_eq!((run.committed(), run.statements, run.reconnects), (450, [6300, 1800, 900], 1));
        assert_eq!(run.kinds[0].failed["ignored_error"], 3);
        let figures: Vec<(&str, f64)> =
            run.figures.iter().map(|(metric, value)| (metric.id.as_str(), value.round())).collect();
        assert_eq!(
            figures,
            [
                ("sysbench.latency_mean", 44400.0),
                ("sysbench.latency_max", 130_000.0),
                ("sysbench.latency_p95", 48340.0),
                ("sysbench.queries_per_s", 1798.0),
            ]
        );
        // Two printed intervals, and the remaining second.
        let starts: Vec<f64> = run.intervals.iter().map(|interval| interval.start_s).collect();
        assert_eq!(starts, [0.0, 2.0, 4.0]);
        assert_eq!((run.intervals[0].errors, run.intervals[1].response_us[1]), (1.5, 41100.0));
    }

    #[test]
    fn counts_without_end_do_not_overflow() {
        let most = "9007199254740992";
        let lines =
            format!("    read: {most}\n    ignored errors: {most}\n    reconnects: {most}\n");
        let text = RUN.replace("        write: ", &format!("{}        write: ", lines.repeat(3)));
        let run = one(&text.replace("450 ", &format!("{most} ")));
        let sums = (run.committed(), run.kinds[0].failed["ignored_error"], run.reconnects);
        assert_eq!((sums, run.statements[0]), ((1 << 53, 1 << 53, 1 << 53), 1 << 53));
    }

    #[test]
    fn a_file_may_hold_several_runs() {
        let more = RUN.replace("Number of threads: 4", "Number of threads: 8");
        let runs = read(&format!("{RUN}{more}"), None).expect("both").runs;
        let clients: Vec<u64> = runs.iter().map(|run| run.clients).collect();
        assert_eq!(clients, [4, 8]);
        assert_eq!((runs[0].place.as_str(), runs[1].place.as_str()), ("line 1", "line 40"));
    }

    #[test]
    fn a_histogram_is_kept_if_it_is_whole() {
        let histogram = "\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
      43.388 |****************************************  400
      49.211 |*****                                     50

SQL statistics:";
        let run = one(&RUN.replace("SQL statistics:", histogram));
        let times = run.kinds[0].times.as_ref().expect("450 of 450");
        assert_eq!(times.response.len(), 450);
        assert!((43.0..43.7).contains(&(times.response.value_at_quantile(0.5) as f64 / 1e6)));
        // Then sysbench's own percentiles are not needed.
        assert_eq!(run.figures.len(), 1);
        let cut = one(&RUN.replace("SQL statistics:", &histogram.replace(" 400\n", " 300\n")));
        assert!(cut.kinds[0].times.is_none());
    }

    #[test]
    fn tests_without_sql_have_events() {
        let cpu = "\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)
Number of threads: 2
CPU speed:
    events per second:  1000.10
General statistics:
    total time:                          2.0000s
    total number of events:              2001
Latency (ms):
         avg:                                    0.99
         99th percentile:                        1.10
";
        let run = one(cpu);
        assert_eq!((run.kinds[0].name.as_str(), run.committed()), ("event", 2001));
        assert_eq!(run.figures[1].0.id.as_str(), "sysbench.latency_p99");
    }

    #[test]
    fn the_output_of_0_5_is_read() {
        let old = "\
sysbench 0.5:  multi-threaded system evaluation benchmark
Number of threads: 16
[   1s] threads: 16, tps: 90.00, reads: 1260.00, writes: 360.00, response time: 210.55ms (95%), errors: 0.00, reconnects:  0.00
OLTP test statistics:
    queries performed:
        read:                            1260
        write:                           360
        other:                           180
        total:                           1800
    transactions:                        90     (89.10 per sec.)
General statistics:
    total time:                          1.0101s
    total number of events:              90
    response time:
         min:                                100.00ms
         avg:                                170.00ms
         max:                                250.00ms
         approx.  95 percentile:             210.55ms
";
        let run = one(old);
        assert_eq!((run.tool.as_str(), run.clients, run.committed()), ("sysbench 0.5", 16, 90));
        assert_eq!(run.intervals[0].response_us[1], 210_550.0);
        assert!(run.figures.iter().any(|(m, v)| m.id == P95.id && *v == 210_550.0));
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let check = |text: &str, expected: &str| {
            let error = read(text, None).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(expected), "{error}");
        };
        let cut = RUN.split("General statistics").next().expect("it has a beginning");
        check(cut, "line 1: the run has no `total time:` line");
        check(
            "sysbench 1.0.20\nNumber of threads: 1\nFATAL: unable to connect\n",
            "unable to connect",
        );
        check(&RUN.replace("SQL statistics:", "[ 5s ] Checkpoint report:"), "checkpoints");
    }

    #[test]
    fn runs_without_results_are_left_out_of_a_file_that_has_others() {
        let check = |text: &str, expected: &str| {
            let Found { runs, cut } = read(text, None).expect("one run is whole");
            let cut: Vec<String> = cut.iter().map(ToString::to_string).collect();
            assert_eq!((runs.len(), runs[0].committed(), cut.len()), (1, 450, 1), "{cut:?}");
            assert!(cut[0].contains(expected), "{cut:?}");
        };
        let prepare = "sysbench 1.0.20\n\nCreating table 'sbtest1'...\nFATAL: table exists\n";
        check(&format!("{prepare}{RUN}"), "line 1: sysbench ended with “FATAL: table exists”");
        check(&format!("{RUN}{prepare}"), "line 40: sysbench ended with");
        let cut = RUN.split("SQL statistics").next().expect("it has a beginning");
        check(&format!("{cut}{RUN}"), "line 1: the run has no `total time:` line");
    }
}
