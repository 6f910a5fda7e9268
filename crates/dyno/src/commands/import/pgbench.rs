//! Output of pgbench 9.6 to 18.

use dyno_units::Direction::Lower;
use dyno_units::{Metric, Unit, metric};

use super::measured::{
    Format, Found, Interval, Kind, Measured, NO_RATE, ReadError, SECONDS_MOST, add, behind, number,
    whole,
};

pub(super) const FORMAT: Format = Format {
    name: "pgbench",
    text: "pgbench's output, with its progress lines if there are any",
    is_it: |text| text.contains("number of transactions actually processed:"),
    read,
};

#[rustfmt::skip]
const MEAN: Metric =
    metric("pgbench.latency_mean", Unit::Microseconds, Lower, "mean latency (pgbench)", "the mean that pgbench printed").secondary();
#[rustfmt::skip]
const DEVIATION: Metric =
    metric("pgbench.latency_stddev", Unit::Microseconds, Lower, "standard deviation of the latency (pgbench)", "as pgbench printed it");
#[rustfmt::skip]
const CONNECTION: Metric =
    metric("pgbench.connection_time", Unit::Milliseconds, Lower, "initial connection time (pgbench)", "as pgbench printed it");

fn read(text: &str, rate: Option<f64>) -> Result<Found, ReadError> {
    let mut found = Found::default();
    let mut run = Run::default();
    for (idx, line) in text.lines().enumerate() {
        // Progress lines precede the run that they belong to.
        if line.starts_with("transaction type:") && run.kind.is_some() {
            let progress = std::mem::take(&mut run.next);
            let ended = std::mem::replace(&mut run, Run { progress, ..Run::default() });
            found.push(ended.finish(rate)?);
        }
        run.take(line, idx + 1, &mut found)?;
    }
    let rest = std::mem::take(&mut run.next);
    if run.kind.is_some() || run.clients.is_some() {
        found.push(run.finish(rate)?);
    } else {
        found.cut.extend(run.progress.cut());
    }
    found.cut.extend(rest.cut());
    found.checked()
}

/// Printed before the results of a run.
#[derive(Default)]
struct Progress {
    /// From 1.
    line: usize,
    intervals: Vec<Interval>,
}

impl Progress {
    fn cut(&self) -> Option<ReadError> {
        let what = "a run was cut short: there are no results behind its progress";
        (!self.intervals.is_empty()).then(|| ReadError::at(self.line, what))
    }
}

#[derive(Default)]
struct Run {
    line: usize,
    version: Option<String>,
    kind: Option<String>,
    clients: Option<u64>,
    processed: Option<u64>,
    failed: u64,
    skipped: u64,
    retries: u64,
    tps: Option<f64>,
    figures: Vec<(Metric, f64)>,
    has_lag: bool,
    progress: Progress,
    /// For the next run.
    next: Progress,
    /// The last line was the first of a run.
    begins: bool,
}

impl Run {
    fn take(&mut self, line: &str, nth: usize, found: &mut Found) -> Result<(), ReadError> {
        if self.line == 0 && !line.trim().is_empty() {
            self.line = nth;
        }
        self.begins |= line.starts_with("pgbench (") || line.starts_with("starting vacuum");
        if let Some(version) = line.strip_prefix("pgbench (") {
            let version = version.split([' ', ')']).next().unwrap_or_default();
            self.version.get_or_insert_with(|| version.to_owned());
        }
        if let Some(rest) = line.strip_prefix("progress: ") {
            return self.progress(rest, nth, found);
        }
        let n = |label: &str| behind(line, label).and_then(whole);
        // After `=`, until version 10 also after `:`.
        let of = |label: &str| {
            behind(line, label).and_then(|rest| number(rest.trim_start_matches([' ', '=', ':'])))
        };
        if let Some(kind) = behind(line, "transaction type:") {
            self.kind = Some(kind.trim().trim_matches(['<', '>']).to_owned());
        }
        self.clients = self.clients.or_else(|| n("number of clients:"));
        // A slash and the requested number follow.
        self.processed = self.processed.or_else(|| n("number of transactions actually processed:"));
        add(&mut self.failed, n("number of failed transactions:"));
        add(&mut self.skipped, n("number of transactions skipped:"));
        add(&mut self.retries, n("total number of retries:"));
        self.has_lag |= line.starts_with("rate limit schedule lag");
        // Of two rates, the one without connection time counts.
        if line.starts_with("tps") && (self.tps.is_none() || line.contains("excluding")) {
            self.tps = of("tps");
        }
        for (metric, label, scale) in [
            (MEAN, "latency average", 1e3),
            (DEVIATION, "latency stddev", 1e3),
            (CONNECTION, "initial connection time", 1.0),
        ] {
            let is_new = self.figures.iter().all(|(known, _)| known.id != metric.id);
            if let Some(value) = of(label).filter(|_| is_new) {
                self.figures.push((metric, value * scale));
            }
        }
        Ok(())
    }

    /// `5.0 s, 1234.5 tps, lat 8.100 ms stddev 1.234, 0 failed`
    fn progress(&mut self, rest: &str, nth: usize, found: &mut Found) -> Result<(), ReadError> {
        let progress = if self.processed.is_some() { &mut self.next } else { &mut self.progress };
        // A time since 1970 is longer than any run.
        let end_s = number(rest).filter(|end_s| *end_s > 0.0 && *end_s < SECONDS_MOST);
        let end_of = |last: &Interval| last.start_s + last.length_s;
        let goes_back = progress.intervals.last().is_some_and(|last| end_s <= Some(end_of(last)));
        // In redirected output the version comes last, right before the results.
        if std::mem::take(&mut self.begins) || goes_back {
            found.cut.extend(progress.cut());
            progress.intervals.clear();
        }
        if progress.intervals.is_empty() {
            progress.line = nth;
        }
        let intervals = &mut progress.intervals;
        let start_s = intervals.last().map_or(0.0, end_of);
        let tps = rest.split(", ").find_map(|part| part.strip_suffix(" tps")).and_then(number);
        let (Some(end_s), Some(throughput)) = (end_s, tps) else {
            return Err(ReadError::at(
                nth,
                "a progress line has no tps, or no time since the run began: with \
                 `--progress-timestamp`, only logs (`-l`) can be imported",
            ));
        };
        let failed = rest.split(", ").find_map(|part| part.strip_suffix(" failed"));
        let length_s = end_s - start_s;
        let errors = failed.and_then(number).unwrap_or(0.0) / length_s;
        intervals.push(Interval { start_s, length_s, throughput, errors, ..Interval::default() });
        Ok(())
    }

    fn finish(self, rate: Option<f64>) -> Result<Result<Measured, ReadError>, ReadError> {
        if self.has_lag && rate.is_none() {
            return Err(ReadError::at(self.line, NO_RATE));
        }
        Ok(self.results(rate))
    }

    fn results(self, rate: Option<f64>) -> Result<Measured, ReadError> {
        let at = |what: String| ReadError::at(self.line, &what);
        let missing =
            |what: &str| at(format!("the run has no `{what}` line: the output was cut short"));
        let clients = self.clients.ok_or_else(|| missing("number of clients:"))?;
        let committed =
            self.processed.ok_or_else(|| missing("number of transactions actually processed:"))?;
        let tps = self.tps.filter(|tps| *tps > 0.0).ok_or_else(|| missing("tps ="))?;
        let failed = [("failed", self.failed)].into_iter().filter(|(_, n)| *n > 0).collect();
        let mut run = Measured {
            tool: format!("pgbench {}", self.version.unwrap_or_default()).trim().to_owned(),
            place: format!("line {}", self.line),
            workload: self.kind,
            clients,
            rate: rate.filter(|_| self.has_lag),
            seconds: committed as f64 / tps,
            kinds: vec![Kind { name: "transaction".to_owned(), committed, failed, times: None }],
            missed: self.skipped,
            retries: self.retries,
            intervals: self.progress.intervals,
            figures: self.figures,
            ..Measured::default()
        };
        run.close_intervals();
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "\
pgbench (15.18 (Debian 15.18-0+deb12u1))
starting vacuum...end.
progress: 5.0 s, 100.0 tps, lat 19.900 ms stddev 4.000, 0 failed
progress: 10.0 s, 140.0 tps, lat 14.100 ms stddev 3.000, 5 failed
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 10
query mode: prepared
number of clients: 2
number of threads: 2
maximum number of tries: 1
duration: 10 s
number of transactions actually processed: 1200
number of failed transactions: 5 (0.415%)
latency average = 16.600 ms
latency stddev = 4.100 ms
initial connection time = 8.000 ms
tps = 120.000000 (without initial connection time)
";

    #[test]
    fn a_run_is_read() {
        let runs = read(RUN, None).expect("it is whole").runs;
        let [run] = runs.as_slice() else { panic!("{} runs", runs.len()) };
        assert_eq!((run.tool.as_str(), run.clients, run.seconds), ("pgbench 15.18", 2, 10.0));
        assert_eq!(run.workload.as_deref(), Some("builtin: TPC-B (sort of)"));
        assert_eq!((run.committed(), run.kinds[0].failed["failed"]), (1200, 5));
        assert_eq!((run.intervals.len(), run.intervals[1].errors), (2, 1.0));
        let means: Vec<f64> = run.figures.iter().map(|(_, value)| *value).collect();
        assert_eq!(means, [16600.0, 4100.0, 8.0]);
    }

    #[test]
    fn counts_without_end_do_not_overflow() {
        let most = "9007199254740992";
        let lines = format!(
            "number of failed transactions: {most}\nnumber of transactions skipped: {most}\n\
             total number of retries: {most}\nlatency average"
        );
        let text = RUN.replace("latency average", &lines).replace("latency average", &lines);
        let run = read(&text, None).expect("it is whole").runs.remove(0);
        let sums = (run.kinds[0].failed["failed"], run.missed, run.retries);
        assert_eq!(sums, (1 << 53, 1 << 53, 1 << 53));
    }

    #[test]
    fn progress_belongs_to_its_run() {
        let runs = read(&format!("{RUN}{}", RUN.replace("clients: 2", "clients: 8")), None);
        let runs = runs.expect("both").runs;
        let shapes: Vec<(u64, usize)> =
            runs.iter().map(|run| (run.clients, run.intervals.len())).collect();
        assert_eq!(shapes, [(2, 2), (8, 2)]);
    }

    #[test]
    fn older_versions_are_read() {
        let old = RUN
            .replace("latency average = ", "latency average: ")
            .replace("processed: 1200", "processed: 1200/1200")
            .replace("tps = 120.000000 (without initial connection time)", "tps = 119.0 (including connections establishing)\ntps = 120.0 (excluding connections establishing)");
        let runs = read(&old, None).expect("it is whole").runs;
        assert_eq!((runs[0].committed(), runs[0].seconds), (1200, 10.0));
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let check = |text: &str, expected: &str| {
            let error = read(text, None).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(expected), "{error}");
        };
        check(&RUN.replace("tps = 120", "speed = 120"), "line 1: the run has no `tps =` line");
        check(
            &RUN.replace("latency stddev", "rate limit schedule lag: avg 0.1\nlatency stddev"),
            "--rate",
        );
        check(&RUN.replace("progress: 5.0 s", "progress: x s"), "--progress-timestamp");
        let since_1970 = RUN.replace("progress: ", "progress: 170000000");
        check(&since_1970, "line 3: a progress line has no tps, or no time since");
        let cut = RUN.split("transaction type").next().expect("it has a beginning");
        check(cut, "line 3: a run was cut short");
    }

    #[test]
    fn runs_that_were_cut_short_are_left_out_of_a_file_that_has_others() {
        let check = |text: &str, lines: &[&str]| {
            let Found { runs, cut } = read(text, None).expect("one run is whole");
            let cut: Vec<String> = cut.iter().map(ToString::to_string).collect();
            assert_eq!((runs.len(), cut.len()), (1, lines.len()), "{cut:?}");
            assert_eq!(runs[0].intervals.len(), 2, "{text}");
            for (cut, line) in cut.iter().zip(lines) {
                assert!(cut.starts_with(line) && cut.contains("cut short"), "{cut}");
            }
        };
        let text = include_str!("cases/pgbench-cut-then-whole.txt");
        check(text, &["line 2:"]);
        // Without a run's first lines, the time tells that it began.
        check(&text.replace("pgbench (16.4)\n", ""), &["line 1:"]);
        check(&text.replace("progress: 1.0 s, 10.0", "progress: 0.5 s, 10.0"), &["line 2:"]);
        let (version, rest) = RUN.split_once('\n').expect("it has lines");
        let (progress, results) = rest.split_at(rest.find("transaction type").expect("a type"));
        check(&format!("{RUN}{version}\n{progress}"), &["line 20:"]);
        check(&format!("{progress}{RUN}{progress}"), &["line 2:", "line 22:"]);
        check(&format!("{progress}{results}"), &[]);
        // In a file, the version comes last.
        check(&format!("{progress}{version}\n{results}"), &[]);
    }

    #[test]
    fn a_rate_that_was_given_is_that_of_runs_with_one() {
        let throttled =
            RUN.replace("latency stddev", "rate limit schedule lag: avg 0.1\nlatency stddev");
        let rate = |text: &str| read(text, Some(130.0)).expect("it is whole").runs[0].rate;
        assert_eq!((rate(&throttled), rate(RUN)), (Some(130.0), None));
    }
}
