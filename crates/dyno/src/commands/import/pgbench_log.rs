//! Logs of pgbench with a line for each transaction (`-l`).
//!
//! A line is: client, transaction number, time in µs, script, end as seconds since 1970 and
//! microseconds; then the lag behind the schedule in µs with `-R`, and retries with `--max-tries`.
//! The time counts from when the transaction was due: it includes the lag.

use std::collections::BTreeMap;

use super::measured::{Format, Found, Interval, Kind, Measured, NO_RATE, ReadError, Times, add};

pub(super) const FORMAT: Format = Format {
    name: "pgbench-log",
    text: "pgbench's per-transaction logs (`-l`), with all response times; the logs \
           `X.PID` and `X.PID.N` of its threads are one run",
    is_it: |text| text.lines().next().is_some_and(|line| Line::read(line).is_some()),
    read,
};

/// A month, in seconds.
const LOG_SECONDS_MOST: f64 = 31.0 * 86_400.0;
/// pgbench's own limit; each script takes a histogram.
const SCRIPTS_MOST: usize = 128;
/// Tells retries from a lag in µs, which exceeds this sooner or later.
const RETRIES_MOST: u64 = 1_000;

struct Line<'a> {
    client: u64,
    /// In µs, or a word.
    time: &'a str,
    script: u64,
    /// Since 1970, in µs.
    ended_us: u64,
    more: Vec<u64>,
}

impl Line<'_> {
    fn read(line: &str) -> Option<Line<'_>> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [client, nth, time, script, seconds, us, more @ ..] = fields.as_slice() else {
            return None;
        };
        let whole = |text: &str| text.parse::<u64>().ok();
        let more: Option<Vec<u64>> = more.iter().map(|text| whole(text)).collect();
        whole(nth)?;
        let ended_us = whole(seconds)?.checked_mul(1_000_000)?.checked_add(whole(us)?)?;
        let is_time = whole(time).is_some() || time.chars().all(|c| c.is_ascii_lowercase());
        // Lines of an aggregated log begin with a time since 1970.
        let is_client = whole(client)? < 1_000_000_000;
        let more = more.filter(|more| more.len() <= 2)?;
        (is_time && is_client).then_some(Line {
            client: whole(client)?,
            time,
            script: whole(script)?,
            ended_us,
            more,
        })
    }
}

/// Logs of a run's threads may be concatenated.
fn read(text: &str, rate: Option<f64>) -> Result<Found, ReadError> {
    let mut log = Log::default();
    for (idx, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let read = Line::read(line).ok_or_else(|| {
            let what = "this line is not from a per-transaction log; a log with \
                        `--aggregate-interval` has no response times";
            ReadError::at(idx + 1, what)
        })?;
        log.take(&read, rate).map_err(|why| ReadError::at(idx + 1, &why))?;
    }
    log.finish(rate).map(|run| vec![run].into())
}

/// Commits' response times in µs and failures, by second of their end. A histogram for each second would
/// take the memory of ten thousand transactions.
#[derive(Default)]
struct Second {
    times_us: Vec<u32>,
    failed: u64,
}

#[derive(Default)]
struct Log {
    /// Estimated from the first transactions.
    began_us: Option<u64>,
    ended_us: u64,
    clients: std::collections::BTreeSet<u64>,
    kinds: BTreeMap<u64, Kind>,
    /// By the second of their end, since 1970.
    seconds: BTreeMap<u64, Second>,
    retries: u64,
    skipped: u64,
}

impl Log {
    fn take(&mut self, line: &Line<'_>, rate: Option<f64>) -> Result<(), String> {
        self.clients.insert(line.client);
        let script = || Kind { name: format!("script {}", line.script), ..Kind::default() };
        let (lag_us, retries) = match (line.more.as_slice(), rate) {
            ([lag, retries], Some(_)) => (*lag, *retries),
            ([lag], Some(_)) => (*lag, 0),
            ([retries], None) if *retries <= RETRIES_MOST => (0, *retries),
            ([], _) => (0, 0),
            _ => return Err(NO_RATE.to_owned()),
        };
        add(&mut self.retries, Some(retries));
        if line.time == "skipped" {
            self.skipped += 1;
            return Ok(());
        }
        if self.kinds.len() == SCRIPTS_MOST && !self.kinds.contains_key(&line.script) {
            return Err(format!("a run of pgbench has at most {SCRIPTS_MOST} scripts"));
        }
        let kind = self.kinds.entry(line.script).or_insert_with(script);
        self.ended_us = self.ended_us.max(line.ended_us);
        let second = self.seconds.entry(line.ended_us / 1_000_000).or_default();
        let Ok(time_us) = line.time.parse::<u64>() else {
            let outcome = match line.time {
                "deadlock" => "deadlock",
                "serialization" => "serialization",
                _ => "failed",
            };
            *kind.failed.entry(outcome).or_default() += 1;
            second.failed += 1;
            return Ok(());
        };
        let (response, service) =
            (time_us.saturating_mul(1_000), time_us.saturating_sub(lag_us).saturating_mul(1_000));
        kind.committed += 1;
        kind.times.get_or_insert_with(Times::new).note(response, service, 1);
        second.times_us.push(u32::try_from(time_us).unwrap_or(u32::MAX));
        let began = line.ended_us.saturating_sub(time_us);
        self.began_us = Some(self.began_us.map_or(began, |earlier| earlier.min(began)));
        Ok(())
    }

    fn finish(self, rate: Option<f64>) -> Result<Measured, ReadError> {
        let at = |what: &str| ReadError::at(1, what);
        let began_us =
            self.began_us.ok_or_else(|| at("no transaction of this log has committed"))?;
        let seconds = self.ended_us.saturating_sub(began_us) as f64 / 1e6;
        if seconds <= 0.0 || seconds > LOG_SECONDS_MOST {
            return Err(at(
                "the log covers no time, or far too much: the times of its transactions are wrong",
            ));
        }
        let intervals = intervals(self.seconds, began_us, self.ended_us);
        Ok(Measured {
            tool: "pgbench".to_owned(),
            place: String::new(),
            clients: self.clients.len() as u64,
            rate,
            seconds,
            kinds: self.kinds.into_values().collect(),
            retries: self.retries,
            missed: self.skipped,
            intervals,
            ..Measured::default()
        })
    }
}

/// Counted from the start of the run, with seconds in which nothing ended.
fn intervals(mut seconds: BTreeMap<u64, Second>, began_us: u64, ended_us: u64) -> Vec<Interval> {
    let all = began_us / 1_000_000..=ended_us / 1_000_000;
    let interval = |second: u64| {
        let start_us = (second * 1_000_000).max(began_us);
        let end_us = (second + 1).saturating_mul(1_000_000).min(ended_us);
        let length_s = end_us.saturating_sub(start_us) as f64 / 1e6;
        let start_s = (start_us - began_us) as f64 / 1e6;
        let Second { mut times_us, failed } = seconds.remove(&second).unwrap_or_default();
        times_us.sort_unstable();
        // The smallest time at or above this share.
        let at = |share: f64| {
            let nth = (share * times_us.len() as f64).ceil() as usize;
            times_us.get(nth.saturating_sub(1)).copied().map_or(0.0, f64::from)
        };
        Interval {
            start_s,
            length_s,
            throughput: times_us.len() as f64 / length_s,
            errors: failed as f64 / length_s,
            response_us: [at(0.5), at(0.95), at(0.99), at(1.0)],
        }
    };
    all.map(interval).filter(|interval| interval.length_s > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, rate: Option<f64>) -> Measured {
        read(text, rate).expect(text).runs.remove(0)
    }

    #[test]
    fn every_transaction_counts() {
        let text = "0 1 10000 0 1000 500000\n1 1 20000 1 1000 600000\n0 2 30000 0 1002 0\n1 2 failed 1 1002 100000\n";
        let run = one(text, None);
        assert_eq!((run.clients, run.committed(), run.seconds), (2, 3, 1.61));
        assert_eq!(run.kinds.len(), 2);
        assert_eq!((run.kinds[0].committed, run.kinds[1].failed["failed"]), (2, 1));
        let times = run.kinds[0].times.as_ref().expect("it has times");
        assert_eq!(times.response.len(), 2);
        // Part of the first second, one without transactions, and the last.
        let shapes: Vec<(f64, f64)> = run
            .intervals
            .iter()
            .map(|i| (i.start_s, (i.throughput * i.length_s).round()))
            .collect();
        assert_eq!(shapes, [(0.0, 2.0), (0.51, 0.0), (1.51, 1.0)]);
        assert_eq!(run.intervals[0].response_us, [10000.0, 20000.0, 20000.0, 20000.0]);
    }

    #[test]
    fn the_lag_is_part_of_the_response_and_not_of_the_service() {
        let text = "0 1 5000 0 1000 500000 4000\n0 2 skipped 0 1000 600000 9000\n0 3 1000 0 1000 700000 0\n";
        let run = one(text, Some(100.0));
        let times = run.kinds[0].times.as_ref().expect("it has times");
        let ms = |ns: u64| (ns as f64 / 1e6).round();
        assert_eq!((ms(times.response.max()), ms(times.service.max())), (5.0, 1.0));
        assert_eq!((run.missed, run.rate), (1, Some(100.0)));
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let check = |text: &str, expected: &str| {
            let error = read(text, None).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(expected), "{error}");
        };
        check("0 1 5000 0 1000 500000 400000\n", "--rate");
        check("0 1 failed 0 1000 500000\n", "no transaction of this log");
        check(
            "0 1 5 0 1000 500000\n0 2 5 0 9000000 500000\n",
            "the times of its transactions are wrong",
        );
        let scripts: String = (0..129).map(|n| format!("0 1 5 {n} 1000 500000\n")).collect();
        check(&scripts, "line 129: a run of pgbench has at most 128 scripts");
        check("0 1 5000 0 1000 500000\nx\n", "line 2: this line is not from a per-transaction log");
        assert!(!(FORMAT.is_it)("1345828501 5601 1542744 483552416 61 2573\n"));
        assert!((FORMAT.is_it)("0 1 5000 0 1345828501 500000\n"));
    }
}
