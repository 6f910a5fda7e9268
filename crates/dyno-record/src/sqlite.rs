//! One SQLite file of a run, for queries with any client.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, ToSql, Transaction, params};
use serde::Deserialize;

use crate::columns::{take, values_most, within};
use crate::files::{Log, check_closed, check_way, unpacked_most, with_suffix};
use crate::reader::{n_bytes, trial_folders};
use crate::readings::LogLines;
use crate::writer::READINGS;
use crate::{
    LoadProbe, ReadError, Run, StepRecord, StepSummary, TrialOutcome, TrialSummary, VariantRecord,
    read_run,
};

type Result<T = (), E = QueryError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(pub String);

impl From<rusqlite::Error> for QueryError {
    fn from(error: rusqlite::Error) -> QueryError {
        QueryError(error.to_string())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRows {
    pub columns: Vec<String>,
    /// As text; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// Raised when a table or a column is removed, or changes its meaning.
const SQL_FORMAT: u32 = 1;

const SCHEMA: &str = "
CREATE TABLE run(name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE variant(variant INTEGER PRIMARY KEY, name TEXT, baseline INTEGER, product TEXT,
  workload TEXT);
CREATE TABLE variant_setting(variant INTEGER, name TEXT, value TEXT);
CREATE TABLE step(step INTEGER PRIMARY KEY, name TEXT, clients INTEGER, rate REAL, arrivals TEXT,
  warm_up_s REAL, duration_s REAL);
CREATE TABLE trial(trial INTEGER PRIMARY KEY, variant INTEGER, repetition INTEGER, block INTEGER,
  state TEXT, began_unix_ms INTEGER, ended_unix_ms INTEGER, server TEXT, durability TEXT,
  rows INTEGER, populate_s REAL, bytes INTEGER);
CREATE TABLE result(trial INTEGER, step INTEGER, kind TEXT, committed INTEGER, failed INTEGER,
  measured_s REAL, throughput REAL, mean_us REAL, p50_us REAL, p95_us REAL, p99_us REAL,
  p999_us REAL, max_us REAL, service_p95_us REAL, response_hdr TEXT,
  PRIMARY KEY(trial, step, kind)) WITHOUT ROWID;
CREATE TABLE metric(metric TEXT PRIMARY KEY, unit TEXT, title TEXT, text TEXT);
CREATE TABLE figure(trial INTEGER, step INTEGER, metric TEXT, value REAL,
  PRIMARY KEY(trial, step, metric)) WITHOUT ROWID;
CREATE TABLE outcome(trial INTEGER, step INTEGER, kind TEXT, outcome TEXT, attempts INTEGER);
CREATE TABLE step_total(trial INTEGER, step INTEGER, reads INTEGER, writes INTEGER, others INTEGER,
  rows_received INTEGER, rows_changed INTEGER, due INTEGER, missed INTEGER, retries INTEGER,
  reconnects INTEGER, generator_user_s REAL, generator_system_s REAL, server_cpu_s REAL);
CREATE TABLE interval(trial INTEGER, step INTEGER, start_s REAL, throughput REAL, errors REAL,
  missed REAL, p50_us REAL, p95_us REAL, p99_us REAL, max_us REAL, lag_p99_us REAL,
  PRIMARY KEY(trial, step, start_s)) WITHOUT ROWID;
CREATE TABLE reading_name(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE reading_value(trial INTEGER, step INTEGER, id INTEGER, start_s REAL, value REAL,
  PRIMARY KEY(trial, step, id, start_s)) WITHOUT ROWID;
CREATE TABLE log_value(trial INTEGER, at_s REAL, id INTEGER, value REAL);
CREATE TABLE load_probe(trial INTEGER, step INTEGER, number INTEGER, level REAL, throughput REAL,
  limited_us REAL, held INTEGER, broken_by TEXT, PRIMARY KEY(trial, step, number)) WITHOUT ROWID;
CREATE TABLE audit(trial INTEGER, name TEXT, expected TEXT, measured TEXT, pass INTEGER);
CREATE TABLE event(trial INTEGER, at_s REAL, unix_ms INTEGER, event TEXT, json TEXT);
CREATE VIEW results AS SELECT v.name AS variant, s.name AS step, t.repetition, t.block, r.*
  FROM result r JOIN trial t USING(trial) JOIN variant v USING(variant) JOIN step s USING(step);
CREATE VIEW reading AS SELECT trial, step, name, start_s, value
  FROM reading_value JOIN reading_name USING(id);
CREATE VIEW log_reading AS SELECT trial, at_s, name, value FROM log_value JOIN reading_name USING(id);
";

/// The texts that logs and summaries bring into the file.
struct Texts {
    /// Of names of readings. Each name is in the file once: with every value, a long one would fill the disk.
    ids: HashMap<String, usize>,
    /// Bytes of names and other texts that the file may still get: logs unpack to a thousand times their size.
    left: u64,
}

impl Texts {
    fn id(&mut self, name: &str) -> Result<usize> {
        if let Some(id) = self.ids.get(name) {
            return Ok(*id);
        }
        self.take(name.len())?;
        self.ids.insert(name.to_owned(), self.ids.len());
        Ok(self.ids.len() - 1)
    }

    fn take(&mut self, n_bytes: usize) -> Result {
        let left = self.left.checked_sub(n_bytes as u64);
        self.left = left.ok_or_else(|| {
            let why = "the run has longer events or names for its size than any run of Dyno's";
            QueryError(why.to_owned())
        })?;
        Ok(())
    }

    fn insert(&self, to: &Transaction<'_>) -> Result {
        let mut insert = to.prepare("INSERT INTO reading_name VALUES(?, ?)")?;
        for (name, id) in &self.ids {
            insert.execute(params![id, name])?;
        }
        Ok(())
    }
}

/// Builds `record.sqlite` in the run's folder, replacing any file of that name.
fn build_database(folder: &Path) -> Result<PathBuf> {
    let run = read_run(folder).map_err(|error| QueryError(error.to_string()))?;
    let is_safe = check_way(folder).and_then(|()| check_closed(folder));
    is_safe.map_err(|error| QueryError(error.to_string()))?;
    let path = folder.join("record.sqlite");
    remove_parts(folder);
    // Each query builds its own, as another process may hold the run's lock.
    let nth = N_BUILT.fetch_add(1, Relaxed);
    let part = folder.join(format!("{PART}{}-{nth}", std::process::id()));
    let built = build(&part, folder, &run);
    let io =
        |error: std::io::Error| QueryError(format!("cannot write {}: {error}", part.display()));
    // SQLite would take companions for this file's: a journal undoes what was written.
    let alone = built.and_then(|()| remove_companions(&path));
    let named = alone.and_then(|()| std::fs::rename(&part, &path).map_err(io));
    if named.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    named.map(|()| path)
}

/// For files under construction; process id and number follow.
const PART: &str = "record.sqlite.part-";

static N_BUILT: AtomicU64 = AtomicU64::new(0);

/// Of processes that no longer run.
fn remove_parts(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(|name| name.strip_prefix(PART)) else { continue };
        let pid = owner.split('-').next().unwrap_or_default();
        let is_alive =
            pid.parse::<u32>().is_ok_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
        if !is_alive {
            // A leftover does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Rollback journal, write-ahead log and its index.
fn remove_companions(path: &Path) -> Result {
    for suffix in ["-journal", "-wal", "-shm"] {
        let companion = with_suffix(path, suffix);
        match std::fs::remove_file(&companion) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(QueryError(format!(
                    "cannot remove {}: {error}; remove it, or copy the record",
                    companion.display()
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

fn build(part: &Path, folder: &Path, run: &Run) -> Result {
    let io =
        |error: std::io::Error| QueryError(format!("cannot write {}: {error}", part.display()));
    // Made here, so that a link put there meanwhile is not followed.
    std::fs::File::create_new(part).map_err(io)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(absolute(part)?, flags)?;
    // A file that is made again whenever it is missing needs no journal.
    connection.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    insert_design(&transaction, run)?;
    let folders = trial_folders(folder);
    let n_bytes = n_bytes(&folders);
    let mut texts = Texts { ids: HashMap::new(), left: unpacked_most(n_bytes) };
    for trial in &run.trials {
        insert_trial(&transaction, trial, &mut texts)?;
    }
    within(values_most(n_bytes), || {
        for (number, trial) in &folders {
            insert_events(&transaction, *number, trial, &mut texts)?;
            let ended = run.trials.binary_search_by_key(number, |ended| ended.number);
            let is_whole = |at: usize| run.trials[at].outcome == TrialOutcome::Finished;
            if !ended.is_ok_and(is_whole) {
                insert_log(&transaction, *number, trial, &mut texts)?;
            }
        }
        Ok::<_, QueryError>(())
    })?;
    texts.insert(&transaction)?;
    transaction.commit()?;
    Ok(())
}

fn add(to: &Transaction<'_>, table: &str, row: &[&dyn ToSql]) -> Result {
    let places = vec!["?"; row.len()].join(", ");
    to.execute(&format!("INSERT INTO {table} VALUES({places})"), row)?;
    Ok(())
}

fn insert_design(to: &Transaction<'_>, run: &Run) -> Result {
    let manifest = &run.manifest;
    let mut insert = to.prepare("INSERT INTO run VALUES(?, ?)")?;
    for (name, value) in [
        ("format", SQL_FORMAT.to_string()),
        ("title", manifest.title.clone()),
        ("dyno", manifest.dyno.clone()),
        ("seed", manifest.seed.to_string()),
        ("machine", manifest.environment.machine.clone()),
        ("cpus", manifest.environment.cpus.to_string()),
        ("memory_bytes", manifest.environment.memory_bytes.to_string()),
        ("created_unix_ms", manifest.created_unix_ms.to_string()),
        ("threshold", manifest.threshold.to_string()),
    ] {
        insert.execute(params![name, value])?;
    }
    for (name, value) in &manifest.environment.facts {
        insert.execute(params![format!("environment.{name}"), value])?;
    }
    for (idx, variant) in manifest.variants.iter().enumerate() {
        let VariantRecord { name, baseline, product, workload, settings, .. } = variant;
        add(to, "variant", params![idx, name, baseline, product, workload])?;
        for (name, value) in settings {
            add(to, "variant_setting", params![idx, name, value])?;
        }
    }
    for (idx, step) in manifest.steps.iter().enumerate() {
        let StepRecord { name, clients, rate, arrivals, warm_up_s, duration_s, .. } = step;
        add(to, "step", params![idx, name, clients, rate, arrivals, warm_up_s, duration_s])?;
    }
    Ok(())
}

fn insert_trial(to: &Transaction<'_>, trial: &TrialSummary, texts: &mut Texts) -> Result {
    let state = match &trial.outcome {
        crate::TrialOutcome::Finished => "finished",
        crate::TrialOutcome::Failed { .. } => "failed",
    };
    let TrialSummary { number, variant, repetition, block, server, data, .. } = trial;
    let (began, ended) = (trial.began_unix_ms, trial.ended_unix_ms);
    let (product, safety) = (format!("{} {}", server.product, server.version), &server.durability);
    let (rows, fill_s, bytes) = (data.rows, data.populate_s, data.bytes);
    let row = params![
        number, variant, repetition, block, state, began, ended, product, safety, rows, fill_s,
        bytes
    ];
    add(to, "trial", row)?;
    for metric in &trial.metrics {
        to.execute(
            "INSERT OR IGNORE INTO metric VALUES(?, ?, ?, ?)",
            params![metric.id.as_str(), metric.unit.code(), metric.title, metric.text],
        )?;
    }
    for row in &trial.audit {
        add(to, "audit", params![number, row.name, row.expected, row.measured, row.pass])?;
    }
    for step in &trial.steps {
        insert_results(to, trial.number, step, texts)?;
        insert_columns(to, trial.number, step, texts)?;
        insert_probes(to, trial.number, step)?;
    }
    Ok(())
}

fn insert_results(
    to: &Transaction<'_>,
    trial: u32,
    step: &StepSummary,
    texts: &mut Texts,
) -> Result {
    let StepSummary { reads, writes, others, due, missed, retries, reconnects, .. } = step;
    let (received, changed, cpu_s) = (step.rows_received, step.rows_changed, step.server_cpu_s);
    let (user_s, system_s) = (step.generator.cpu_user_s, step.generator.cpu_system_s);
    let row = params![
        trial, step.step, reads, writes, others, received, changed, due, missed, retries,
        reconnects, user_s, system_s, cpu_s
    ];
    add(to, "step_total", row)?;
    for kind in &step.kinds {
        let (Some(response), Some(service)) = (kind.response.decode(), kind.service.decode())
        else {
            return Err(QueryError(format!("trial {trial}: a histogram is damaged")));
        };
        let committed = kind.outcomes.get("committed").copied().unwrap_or(0);
        let attempts: u64 = kind.outcomes.values().sum();
        // NULL if no observation lies beyond the quantile.
        let us = |quantile: f64| {
            let is_known = response.len() as f64 >= (1.0 / (1.0 - quantile)).round();
            is_known.then(|| response.value_at_quantile(quantile) as f64 / 1e3)
        };
        let [p50, p95, p99, p999] = [0.5, 0.95, 0.99, 0.999].map(us);
        let (mean, max) = (response.mean() / 1e3, response.max() as f64 / 1e3);
        let service = service.value_at_quantile(0.95) as f64 / 1e3;
        let (failed, seconds) = (attempts - committed, step.measured_s);
        let per_s = committed as f64 / seconds.max(f64::MIN_POSITIVE);
        let (name, text) = (&kind.name, &kind.response.0);
        let row = params![
            trial, step.step, name, committed, failed, seconds, per_s, mean, p50, p95, p99, p999,
            max, service, text
        ];
        add(to, "result", row)?;
        for (outcome, count) in &kind.outcomes {
            texts.take(kind.name.len() + outcome.len())?;
            add(to, "outcome", params![trial, step.step, kind.name, outcome, count])?;
        }
    }
    for (metric, value) in &step.figures {
        add(to, "figure", params![trial, step.step, metric.as_str(), value])?;
    }
    Ok(())
}

fn insert_columns(
    to: &Transaction<'_>,
    trial: u32,
    step: &StepSummary,
    texts: &mut Texts,
) -> Result {
    let columns = &step.intervals;
    let mut insert = to.prepare("INSERT INTO interval VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
    for (idx, start) in columns.start_s.iter().enumerate() {
        let [throughput, errors, missed, p50, p95, p99, max, lag_p99] =
            columns.values().map(|column| column.get(idx));
        insert.execute(params![
            trial, step.step, start, throughput, errors, missed, p50, p95, p99, max, lag_p99
        ])?;
    }
    let mut insert = to.prepare("INSERT INTO reading_value VALUES(?, ?, ?, ?, ?)")?;
    for (name, values) in &step.readings {
        let id = texts.id(name)?;
        for (start, value) in columns.start_s.iter().zip(values) {
            if let Some(value) = value {
                insert.execute(params![trial, step.step, id, start, value])?;
            }
        }
    }
    Ok(())
}

fn insert_probes(to: &Transaction<'_>, trial: u32, step: &StepSummary) -> Result {
    for probe in step.search.iter().flat_map(|search| &search.probes) {
        let LoadProbe { number, level, throughput, limited_us, held, broken_by, .. } = probe;
        let row = params![trial, step.step, number, level, throughput, limited_us, held, broken_by];
        add(to, "load_probe", row)?;
    }
    Ok(())
}

/// The fields that events of all versions have.
#[derive(Deserialize)]
struct EventHead {
    #[serde(default)]
    at_ns: f64,
    unix_ms: Option<u64>,
    event: Option<String>,
}

fn insert_events(to: &Transaction<'_>, trial: u32, folder: &Path, texts: &mut Texts) -> Result {
    let plain = folder.join("events.jsonl");
    let packed = folder.join("events.jsonl.gz");
    let is_there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    let path = if is_there(&packed) { packed } else { plain };
    if !is_there(&path) {
        return Ok(());
    }
    let mut log = Log::open(&path)
        .map_err(|error| QueryError(format!("cannot read {}: {error}", path.display())))?;
    let mut line = Vec::new();
    while log.read_line(&mut line).is_ok_and(|n| n > 0) {
        // A kill may have cut the last line.
        let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        let Ok(head) = serde_json::from_str::<EventHead>(&text) else { break };
        texts.take(text.len() + head.event.as_ref().map_or(0, String::len))?;
        let unix_ms = head.unix_ms.and_then(|ms| i64::try_from(ms).ok());
        add(to, "event", params![trial, head.at_ns / 1e9, unix_ms, head.event, text])?;
        line.clear();
    }
    Ok(())
}

/// Readings of an unfinished trial, by the run's clock: its last step has nothing else.
fn insert_log(to: &Transaction<'_>, trial: u32, folder: &Path, texts: &mut Texts) -> Result {
    let path = folder.join(READINGS);
    if std::fs::symlink_metadata(&path).is_err() {
        return Ok(());
    }
    let failed = |error: ReadError| QueryError(error.to_string());
    let mut lines = LogLines::open(&path).map_err(failed)?;
    let mut insert = to.prepare("INSERT INTO log_value VALUES(?, ?, ?, ?)")?;
    let mut ids: Vec<usize> = Vec::new();
    // The log of a killed trial ends early.
    while let Ok(Some(line)) = lines.next() {
        for name in &lines.names()[ids.len()..] {
            ids.push(texts.id(name)?);
        }
        for (number, value) in line.numbered() {
            if !take(1) {
                return Err(QueryError(format!(
                    "{} and the logs before it have more values for their size than those of any run of Dyno's; \
                     for the rest of the run, move the trial's folder elsewhere",
                    path.display()
                )));
            }
            insert.execute(params![trial, line.at_ns as f64 / 1e9, ids[number], value])?;
        }
    }
    Ok(())
}

/// Runs one read-only query on a newly built file: an existing one may be out of date, damaged or
/// changed. For many queries, open the file with a SQLite client.
pub fn query(folder: &Path, sql: &str) -> Result<QueryRows> {
    let path = build_database(folder)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(absolute(&path)?, flags)?;
    // The file may come from anybody.
    connection.execute_batch("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;")?;
    let mut statement = connection.prepare(sql)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let n_columns = columns.len();
    let mut rows = statement.query([])?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let mut cells = Vec::with_capacity(n_columns);
        for idx in 0..n_columns {
            cells.push(match row.get_ref(idx)? {
                ValueRef::Null => None,
                ValueRef::Integer(value) => Some(value.to_string()),
                ValueRef::Real(value) => Some(value.to_string()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    Some(String::from_utf8_lossy(bytes).into_owned())
                }
            });
        }
        out.push(cells);
    }
    Ok(QueryRows { columns, rows: out })
}

/// Without links above the file: SQLite refuses those as well.
fn absolute(file: &Path) -> Result<PathBuf> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    let folder =
        folder.map_err(|error| QueryError(format!("cannot find {}: {error}", file.display())))?;
    Ok(folder.join(file.file_name().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::tests::{manifest, summary, trial};
    use crate::{Event, EventKind, RunWriter, TrialOutcome};

    #[test]
    fn text_of_a_record_is_no_sql() {
        let attack = "'); DROP TABLE variant; ATTACH 'x' AS y; --\"\u{1b}[8m".to_owned();
        let mut planned = manifest("2-a");
        planned.title = attack.clone();
        planned.variants[0].name = attack.clone();
        planned.variants[0].settings.insert(attack.clone(), attack.clone());
        planned.steps[0].name = attack.clone();
        planned.environment.facts.insert(attack.clone(), attack.clone());
        let outcome = TrialOutcome::Failed { message: attack.clone(), server_log: Vec::new() };
        let mut failed = TrialSummary { outcome, steps: Vec::new(), ..summary(1) };
        failed.server.product = attack.clone();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut run = RunWriter::create(&path, &planned).unwrap();
        let mut writer = run.begin_trial(&trial(1), "base").unwrap();
        let kind = EventKind::Noted { message: attack.clone() };
        writer.event(&Event { at_ns: 1, unix_ms: 1, kind }).unwrap();
        writer.finish(failed).unwrap();
        let check = |sql: &str| {
            let rows = query(&path, sql).unwrap().rows;
            let found = rows.iter().flatten().flatten().any(|cell| cell.contains(&attack[..20]));
            assert!(found, "{sql}: {rows:?}");
        };
        check("SELECT value FROM run WHERE name = 'title'");
        check("SELECT name FROM run WHERE name LIKE 'environment.%'");
        check("SELECT name FROM variant");
        check("SELECT name || value FROM variant_setting");
        check("SELECT name FROM step");
        check("SELECT * FROM trial");
        check("SELECT * FROM event WHERE event = 'noted'");
        assert!(!folder.path().join("x").exists());
    }

    #[test]
    fn names_of_readings_are_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut run = RunWriter::create(&path, &manifest("2-a")).unwrap();
        let long = "x".repeat(1_000);
        let with_readings = |number: u32| {
            let mut one = summary(number);
            let step = &mut one.steps[0];
            let n = step.intervals.start_s.len();
            step.readings = [(long.clone(), vec![Some(f64::from(number)); n])].into();
            (one, n)
        };
        let (finished, n) = with_readings(1);
        run.begin_trial(&trial(1), "base").unwrap().finish(finished).unwrap();
        let mut killed = run.begin_trial(&trial(2), "base").unwrap();
        for second in 1..=2_000 {
            killed.readings(second * 1_000_000_000, &[(long.clone(), 7.0)].into()).unwrap();
        }
        let outcome = TrialOutcome::Failed { message: String::new(), server_log: Vec::new() };
        killed.finish(TrialSummary { outcome, steps: Vec::new(), ..summary(2) }).unwrap();
        let count = |sql: &str| query(&path, sql).unwrap().rows[0][0].clone().unwrap();
        let of_summary = "SELECT count(*) FROM reading WHERE length(name) = 1000 AND value = 1";
        assert_eq!(count(of_summary), n.to_string());
        let of_log = "SELECT count(*) FROM log_reading WHERE length(name) = 1000 AND at_s > 1950";
        assert_eq!(count(of_log), "50");
        assert!(std::fs::metadata(path.join("record.sqlite")).unwrap().len() < 400_000);
    }

    #[test]
    fn values_of_logs_are_counted_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut run = RunWriter::create(&path, &manifest("2-a")).unwrap();
        let mut killed = run.begin_trial(&trial(1), "base").unwrap();
        for second in 1..=50 {
            killed.readings(second * 1_000_000_000, &[("zero".to_owned(), 0.0)].into()).unwrap();
        }
        drop(killed);
        let (_, log) = trial_folders(&path).remove(0);
        let insert = |times: usize, most: usize| {
            let mut connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(SCHEMA).unwrap();
            let to = connection.transaction().unwrap();
            let mut texts = Texts { ids: HashMap::new(), left: 4 };
            let all = || (0..times).try_for_each(|_| insert_log(&to, 1, &log, &mut texts));
            within(most, all).map_err(|error| error.to_string())
        };
        assert_eq!(insert(2, 100), Ok(()));
        assert!(insert(2, 99).unwrap_err().contains("more values for their size"));
    }

    #[test]
    fn texts_of_logs_are_counted_together() {
        let folder = tempfile::tempdir().unwrap();
        let event = "{\"at_ns\":1,\"unix_ms\":1,\"event\":\"noted\"}";
        std::fs::write(folder.path().join("events.jsonl"), format!("{event}\n{event}\n")).unwrap();
        let all = 2 * (event.len() as u64 + 5) + 4;
        let insert = |left: u64| {
            let mut connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(SCHEMA).unwrap();
            let to = connection.transaction().unwrap();
            let mut texts = Texts { ids: HashMap::new(), left };
            // A name counts once.
            texts.id("zero").and_then(|_| texts.id("zero"))?;
            insert_events(&to, 1, folder.path(), &mut texts)
        };
        assert!(insert(all).is_ok());
        for too_little in [3, all - 1] {
            let error = insert(too_little).unwrap_err().to_string();
            assert!(error.contains("longer events or names"), "{error}");
        }
    }

    #[test]
    fn files_that_sqlite_would_take_for_parts_of_the_new_one_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        RunWriter::create(&path, &manifest("2-a")).unwrap();
        // A journal that SQLite would roll back: of another database, cut off within a transaction.
        let other = folder.path().join("other");
        let writing = Connection::open(&other).unwrap();
        writing
            .execute_batch(
                "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
                 LIMIT 500) SELECT i, zeroblob(1000) AS b FROM n; PRAGMA cache_size = 1; BEGIN; \
                 UPDATE t SET i = i + 1",
            )
            .unwrap();
        let kept_beside = |suffix: &str| path.join(format!("record.sqlite{suffix}"));
        let journal = std::fs::read(folder.path().join("other-journal")).unwrap();
        assert!(journal.starts_with(&[0xd9, 0xd5, 0x05, 0xf9]));
        std::fs::write(kept_beside("-journal"), &journal).unwrap();
        std::fs::write(kept_beside("-wal"), "anything").unwrap();
        std::os::unix::fs::symlink(&other, kept_beside("-shm")).unwrap();
        let title = query(&path, "SELECT value FROM run WHERE name = 'title'").unwrap();
        assert_eq!(title.rows, [[Some(manifest("2-a").title)]]);
        for suffix in ["-journal", "-wal", "-shm"] {
            assert!(!kept_beside(suffix).exists(), "{suffix}");
        }
        assert!(other.exists());
    }
}
