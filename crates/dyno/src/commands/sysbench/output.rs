//! What sysbench 1.0 prints, to the letter.

use std::fmt::Write;

use dyno_units::Nanoseconds;
use dyno_workload::lua::{Snapshot, Statistics};

use super::options::Options;

/// What is printed before the threads are made.
pub(super) const INITIALIZING: &str = "Initializing worker threads...\n";

pub(super) fn header(options: &Options) -> String {
    let mut lines = vec![
        "Running the test with following options:".to_owned(),
        format!("Number of threads: {}", options.count("threads")),
    ];
    let mut line = |name: &str, before: &str, behind: &str| {
        let n = options.count(name);
        lines.extend((n > 0).then(|| format!("{before} {n}{behind}")));
    };
    line("rate", "Target transaction rate:", "/sec");
    line("warmup_time", "Warmup time:", "s");
    line("report_interval", "Report intermediate results every", " second(s)");
    let checkpoints = options.list("report_checkpoints");
    if !checkpoints.is_empty() {
        lines.push(format!("Report checkpoint(s) at {} seconds", checkpoints.join(", ")));
    }
    if options.is_on("debug") {
        lines.push("Debug mode enabled.\n".to_owned());
    }
    lines.push(match options.count("rand_seed") {
        0 => "Initializing random number generator from current time\n\n".to_owned(),
        seed => format!("Initializing random number generator from seed ({seed}).\n\n"),
    });
    lines.join("\n") + "\n"
}

/// What the clients had done at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    pub(super) at: Nanoseconds,
    pub(super) counted: Snapshot,
}

impl Mark {
    pub(super) fn now(statistics: &Statistics, at: Nanoseconds) -> Mark {
        Mark { at, counted: statistics.snapshot() }
    }

    /// What was done since an earlier one, in a run that began at `start`.
    pub(super) fn since(&self, before: &Mark, start: Nanoseconds) -> Stretch {
        let seconds = |from: Nanoseconds| self.at.saturating_sub(from).0 as f64 / 1e9;
        let done = self.counted.since(&before.counted);
        Stretch { done, seconds: seconds(before.at), at: seconds(start) }
    }
}

/// A span of time and what the clients did in it.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) done: Snapshot,
    pub(super) seconds: f64,
    /// From the beginning of the run to its end, in seconds.
    pub(super) at: f64,
}

impl Stretch {
    pub(super) fn per_second(&self, n: u64) -> f64 {
        n as f64 / self.seconds.max(1e-9)
    }

    /// The numbers that report hooks are given.
    pub(super) fn numbers(&self, percentile: f64) -> Vec<(&'static str, f64)> {
        let done = &self.done;
        let s = |time: Nanoseconds| time.0 as f64 / 1e9;
        vec![
            ("threads_running", done.running as f64),
            ("time_interval", self.seconds),
            ("time_total", self.at),
            ("latency_pct", done.latencies.percentile(percentile) / 1e3),
            ("events", done.events as f64),
            ("reads", done.reads as f64),
            ("writes", done.writes as f64),
            ("other", done.others as f64),
            ("errors", done.errors as f64),
            ("reconnects", done.reconnects as f64),
            ("latency_min", s(done.min.unwrap_or_default())),
            ("latency_max", s(done.max)),
            ("latency_avg", s(done.sum) / done.events.max(1) as f64),
            ("latency_sum", s(done.sum)),
        ]
    }
}

pub(super) fn interval(options: &Options, stretch: &Stretch, uses_database: bool) -> String {
    let done = &stretch.done;
    let percentile = options.number("percentile");
    let latency = done.latencies.percentile(percentile);
    let of = |n: u64| stretch.per_second(n);
    if !uses_database {
        return format!(
            "[ {:.0}s ] thds: {} eps: {:4.2} lat (ms,{percentile}%): {latency:4.2}\n",
            stretch.at,
            done.running,
            of(done.events),
        );
    }
    format!(
        "[ {:.0}s ] thds: {} tps: {:4.2} qps: {:4.2} (r/w/o: {:4.2}/{:4.2}/{:4.2}) \
         lat (ms,{percentile}%): {latency:4.2} err/s: {:4.2} reconn/s: {:4.2}\n",
        stretch.at,
        done.running,
        of(done.events),
        of(done.queries()),
        of(done.reads),
        of(done.writes),
        of(done.others),
        of(done.errors),
        of(done.reconnects),
    )
}

/// The report on a whole run, or on what came after the last checkpoint.
pub(super) fn report(options: &Options, stretch: &Stretch, uses_database: bool) -> String {
    let own = if uses_database { statements(stretch) } else { String::new() };
    report_with(options, stretch, &own)
}

/// The same with this text before the general statistics.
pub(super) fn report_with(options: &Options, stretch: &Stretch, own: &str) -> String {
    let mut out = String::new();
    let histogram = stretch.done.latencies.text();
    if options.is_on("histogram") && !histogram.is_empty() {
        // Writing into a String cannot fail.
        let _ = write!(out, "Latency histogram (values are in milliseconds)\n{histogram} \n");
    }
    out.push_str(own);
    general(&mut out, options, stretch);
    fairness(&mut out, &stretch.done);
    out
}

fn statements(stretch: &Stretch) -> String {
    let done = &stretch.done;
    let mut out = String::from("SQL statistics:\n    queries performed:\n");
    let rows = [
        ("read", done.reads),
        ("write", done.writes),
        ("other", done.others),
        ("total", done.queries()),
    ];
    for (name, n) in rows {
        let name = format!("{name}:");
        let _ = writeln!(out, "        {name:<33}{n}");
    }
    let rows = [
        ("transactions", done.events),
        ("queries", done.queries()),
        ("ignored errors", done.errors),
        ("reconnects", done.reconnects),
    ];
    for (name, n) in rows {
        let (name, rate) = (format!("{name}:"), stretch.per_second(n));
        let _ = writeln!(out, "    {name:<37}{n:<6} ({rate:.2} per sec.)");
    }
    out
}

fn general(out: &mut String, options: &Options, stretch: &Stretch) {
    let done = &stretch.done;
    let ms = |time: Nanoseconds| time.0 as f64 / 1e6;
    let average = ms(done.sum) / done.events.max(1) as f64;
    let percentile = options.count("percentile");
    let _ = write!(
        out,
        "\nGeneral statistics:\n    total time:                          {:.4}s\n    \
         total number of events:              {}\n\n\
         Latency (ms):\n         min: {:39.2}\n         avg: {average:39.2}\n         max: {:39.2}\n",
        stretch.seconds,
        done.events,
        ms(done.min.unwrap_or_default()),
        ms(done.max),
    );
    let value = done.latencies.percentile(percentile as f64);
    let _ = match percentile {
        0 => writeln!(out, "         percentile stats:               disabled"),
        percentile => writeln!(out, "        {percentile:3}th percentile: {value:27.2}"),
    };
    let _ = writeln!(out, "         sum: {:39.2}\n", ms(done.sum));
}

/// Mean and standard deviation.
fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count().max(1) as f64;
    // The sum of no floating-point numbers is -0.
    let sum = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |sum, value| sum + value);
    let mean = sum(&mut values.clone()) / n;
    let variance = sum(&mut values.map(|value| (value - mean).powi(2))) / n;
    (mean, variance.sqrt())
}

fn fairness(out: &mut String, done: &Snapshot) {
    let (events, events_deviation) = moments(done.clients.iter().map(|one| one.0 as f64));
    let (time, time_deviation) = moments(done.clients.iter().map(|one| one.1.0 as f64 / 1e9));
    let _ = write!(
        out,
        "Threads fairness:\n    events (avg/stddev):           {events:.4}/{events_deviation:3.2}\n    \
         execution time (avg/stddev):   {time:.4}/{time_deviation:3.2}\n\n",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch() -> Stretch {
        let mut done = Snapshot {
            reads: 1400,
            writes: 400,
            others: 200,
            events: 100,
            sum: Nanoseconds::from_millis(1900),
            min: Some(Nanoseconds(510_000)),
            max: Nanoseconds::from_millis(10),
            running: 2,
            clients: vec![
                (60, Nanoseconds::from_millis(900)),
                (40, Nanoseconds::from_millis(1000)),
            ],
            ..Snapshot::default()
        };
        done.latencies.add(dyno_sysbench::bucket_of(2.3), 100);
        Stretch { done, seconds: 2.0, at: 2.0 }
    }

    fn options(line: &str) -> Options {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::read(&words, &|_| Ok(String::new())).unwrap()
    }

    #[test]
    fn a_report_is_printed_as_by_sysbench() {
        let expected = "SQL statistics:
    queries performed:
        read:                            1400
        write:                           400
        other:                           200
        total:                           2000
    transactions:                        100    (50.00 per sec.)
    queries:                             2000   (1000.00 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          2.0000s
    total number of events:              100

Latency (ms):
         min:                                    0.51
         avg:                                   19.00
         max:                                   10.00
         95th percentile:                        2.30
         sum:                                 1900.00

Threads fairness:
    events (avg/stddev):           50.0000/10.00
    execution time (avg/stddev):   0.9500/0.05

";
        assert_eq!(report(&options("x run"), &stretch(), true), expected);
        let without = report(&options("x --percentile=0 run"), &stretch(), false);
        assert!(without.starts_with("\nGeneral statistics:") && without.contains("disabled\n"));
    }

    #[test]
    fn intervals_are_printed_as_by_sysbench() {
        let line = interval(&options("x run"), &stretch(), true);
        let expected = "[ 2s ] thds: 2 tps: 50.00 qps: 1000.00 (r/w/o: 700.00/200.00/100.00) \
            lat (ms,95%): 2.30 err/s: 0.00 reconn/s: 0.00\n";
        assert_eq!(line, expected);
        let line = interval(&options("x run"), &stretch(), false);
        assert_eq!(line, "[ 2s ] thds: 2 eps: 50.00 lat (ms,95%): 2.30\n");
    }
}
