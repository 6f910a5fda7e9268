//! What was watched as a record: one variant, one trial, one step without load.
//!
//! Where the server counts its transactions, these are the throughput. MariaDB and MySQL do not count
//! them (a statement outside a transaction commits by itself, and no counter says how many did): of
//! them only statements are known. There are no response times, because nobody waited.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dyno_lab::observe::{Cost, Sample, Series, six_digits};
use dyno_record::{
    DataSet, EncodedHistogram, FORMAT, IntervalColumns, KindSummary, Manifest, NO_WORKLOAD,
    RunWriter, ServerFacts, StepRecord, StepSummary, TrialOutcome, TrialPlan, TrialSummary,
    TrialWriter, VariantRecord, new_histogram,
};
use dyno_units::reading::{Role, known};
use dyno_units::{Clock, Nanoseconds, Reading};

use super::WatchOptions;
use super::target::Target;
use crate::commands::report;
use crate::lab;

/// A record that is being written.
pub(super) struct Recording {
    folder: PathBuf,
    /// Holds the lock on the folder.
    _run: RunWriter,
    writer: TrialWriter,
    series: Series,
    every: Nanoseconds,
    origin: Nanoseconds,
    began_unix_ms: u64,
    server: ServerFacts,
}

impl Recording {
    /// Begins a record in a folder that holds none yet.
    pub(super) fn begin(
        folder: &Path,
        target: &Target,
        options: &WatchOptions,
        clock: &dyn Clock,
    ) -> anyhow::Result<Recording> {
        let began_unix_ms = clock.unix_millis();
        let is_used = std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
        if is_used {
            return Err(crate::usage_error(anyhow::anyhow!(
                "--record {}: the folder is not empty; name a new one",
                folder.display()
            )));
        }
        let server = target.facts()?;
        let mut run = RunWriter::create(folder, &manifest(target, options, began_unix_ms))?;
        let plan = TrialPlan { number: 1, variant: 0, repetition: 1, block: 1 };
        let writer = run.begin_trial(&plan, "watch")?;
        Ok(Recording {
            folder: folder.to_owned(),
            _run: run,
            writer,
            series: Series::default(),
            every: options.every,
            origin: clock.now(),
            began_unix_ms,
            server,
        })
    }

    /// Keeps a sample.
    pub(super) fn push(&mut self, sample: Sample) -> anyhow::Result<()> {
        let short = sample.values.iter().map(|(name, value)| (name.clone(), six_digits(*value)));
        self.writer.readings(sample.at.0, &short.collect())?;
        self.series.push(sample);
        Ok(())
    }

    /// Names of the readings so far.
    pub(super) fn names(&self) -> Vec<String> {
        self.series.names().cloned().collect()
    }

    /// Ends the record, and writes its report; returns what to tell of it.
    pub(super) fn finish(
        self,
        meanings: BTreeMap<String, Reading>,
        cost: Cost,
        clock: &dyn Clock,
    ) -> anyhow::Result<String> {
        let n = (clock.now().saturating_sub(self.origin).0 / self.every.0).max(1);
        let spans: Vec<(Nanoseconds, Nanoseconds)> =
            (0..n).map(|idx| (self.origin + Nanoseconds(idx * self.every.0), self.every)).collect();
        let readings = self.series.align(&spans);
        let mut step = summarise(readings, &meanings, n, self.every);
        step.spans = Some(spans.iter().map(|(start, length)| (start.0, length.0)).collect());
        let now = clock.unix_millis();
        self.writer.finish(TrialSummary {
            number: 1,
            variant: 0,
            repetition: 1,
            block: 1,
            outcome: TrialOutcome::Finished,
            began_unix_ms: self.began_unix_ms,
            ended_unix_ms: now,
            server: self.server,
            members: Vec::new(),
            data: DataSet::default(),
            steps: vec![step],
            probes_cpu_s: cost.cpu.as_secs_f64(),
            probes_wall_s: cost.wall.as_secs_f64(),
            audit: Vec::new(),
            run_off: None,
            canary: None,
            meanings,
            metrics: Vec::new(),
        })?;
        report::write_all(&self.folder, now)
    }
}

fn manifest(target: &Target, options: &WatchOptions, now: u64) -> Manifest {
    let length = options.r#for.unwrap_or(options.every);
    Manifest {
        format: FORMAT,
        dyno: env!("CARGO_PKG_VERSION").to_owned(),
        title: target.name.clone(),
        fingerprint: format!("watch-{now}"),
        seed: 0,
        created_unix_ms: now,
        threshold: 0.03,
        order: "interleaved".to_owned(),
        variants: vec![VariantRecord {
            name: "watch".to_owned(),
            levels: Vec::new(),
            baseline: None,
            database: target.name.clone(),
            product: target.product.to_owned(),
            settings: BTreeMap::new(),
            price_per_hour: None,
            workload: NO_WORKLOAD.to_owned(),
            options: BTreeMap::new(),
            asked: BTreeMap::new(),
            own_steps: BTreeMap::new(),
        }],
        steps: vec![StepRecord {
            name: "watch".to_owned(),
            clients: 0,
            rate: None,
            arrivals: "closed".to_owned(),
            warm_up_s: 0.0,
            duration_s: length.as_secs_f64(),
            until_steady_s: None,
            stepped: None,
            search: None,
            own: None,
        }],
        trials: vec![TrialPlan { number: 1, variant: 0, repetition: 1, block: 1 }],
        stopping: None,
        voiding: None,
        requirements: Vec::new(),
        environment: lab::environment(Path::new("/")),
        design: BTreeMap::new(),
        conditions: BTreeMap::new(),
        extensions: Vec::new(),
        study_source: String::new(),
    }
}

fn summarise(
    readings: BTreeMap<String, Vec<Option<f64>>>,
    meanings: &BTreeMap<String, Reading>,
    n: u64,
    every: Nanoseconds,
) -> StepSummary {
    let seconds = every.as_secs_f64();
    let measured_s = n as f64 * seconds;
    let counter = |role: Role| {
        let mut counters = meanings.iter().filter(|(_, reading)| reading.role == Some(role));
        counters.find_map(|(name, reading)| Some((reading, readings.get(name)?)))
    };
    let total = |column: &[Option<f64>]| (mean(column) * measured_s).round() as u64;
    let counted = counter(Role::Transactions);
    let zeros = || vec![0.0; n as usize];
    let rates: Vec<f64> = counted
        .map_or_else(zeros, |(_, column)| column.iter().map(|rate| rate.unwrap_or(0.0)).collect());
    let kinds = counted.map(|(reading, column)| KindSummary {
        name: format!("{} (counted by the server)", reading.title),
        outcomes: BTreeMap::from([("committed".to_owned(), total(column))]),
        response: EncodedHistogram::encode(&new_histogram()),
        service: EncodedHistogram::encode(&new_histogram()),
        commits_100ms: None,
    });
    let statements = counter(Role::Statements).map_or(0, |(_, column)| total(column));
    StepSummary {
        step: 0,
        measured_s,
        kinds: kinds.into_iter().collect(),
        others: statements,
        server_cpu_s: server_cpu_s(&readings, seconds),
        intervals: IntervalColumns {
            start_s: (0..n).map(|idx| idx as f64 * seconds).collect(),
            throughput: rates,
            errors: zeros(),
            missed: zeros(),
            p50_us: zeros(),
            p95_us: zeros(),
            p99_us: zeros(),
            max_us: zeros(),
            lag_p99_us: zeros(),
        },
        readings,
        ended_by: Some("time".to_owned()),
        ..StepSummary::default()
    }
}

/// The mean of the values that are there; 0 without any. The first interval has no rate: that takes
/// two readings.
fn mean(column: &[Option<f64>]) -> f64 {
    let values: Vec<f64> = column.iter().flatten().copied().collect();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// CPU seconds of the server; none where a value is missing.
fn server_cpu_s(readings: &BTreeMap<String, Vec<Option<f64>>>, seconds: f64) -> Option<f64> {
    let column = readings.get(known::SERVER_CPU)?;
    column.iter().map(|rate| rate.map(|rate| rate * seconds)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(name: &str, column: Vec<Option<f64>>) -> StepSummary {
        let n = column.len() as u64;
        let readings = BTreeMap::from([(name.to_owned(), column)]);
        let meanings = crate::readings::registry().meanings(readings.keys());
        summarise(readings, &meanings, n, Nanoseconds::SECOND)
    }

    #[test]
    fn statements_are_no_transactions() {
        let column = vec![None, Some(100.0), Some(300.0)];
        let mysql = summary("mysql.statements_per_s", column.clone());
        assert!(mysql.kinds.is_empty() && mysql.intervals.throughput == [0.0; 3]);
        // The first second has no rate: it is taken to be as the others are.
        assert_eq!((mysql.others, mysql.measured_s), (600, 3.0));
        let postgresql = summary("pg.commits_per_s", column);
        assert_eq!(postgresql.kinds[0].outcomes["committed"], 600);
        assert_eq!(postgresql.intervals.throughput, [0.0, 100.0, 300.0]);
        assert_eq!(postgresql.others, 0);
        let host = summary("cpu.busy_pct", vec![Some(1.0)]);
        assert!(host.kinds.is_empty() && host.others == 0);
    }
}
