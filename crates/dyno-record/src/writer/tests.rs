//! A run is written, killed, resumed, read and queried.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dyno_units::{Direction, MetricId, Unit};

use super::*;
use crate::*;

pub(crate) fn manifest(fingerprint: &str) -> Manifest {
    Manifest {
        questions: Vec::new(),
        stopping: None,
        voiding: None,
        requirements: Vec::new(),
        format: FORMAT,
        dyno: "0.1.0".into(),
        title: "Is it?".into(),
        fingerprint: fingerprint.into(),
        seed: 7,
        created_unix_ms: 1,
        threshold: 0.03,
        order: "interleaved".into(),
        variants: vec![VariantRecord {
            price_per_hour: None,
            asked: BTreeMap::new(),
            name: "only · x=1".into(),
            levels: vec![],
            baseline: None,
            database: "only".into(),
            product: "sqlite".into(),
            settings: BTreeMap::new(),
            workload: "oltp_read_only".into(),
            options: BTreeMap::new(),
            own_steps: BTreeMap::new(),
        }],
        steps: vec![StepRecord {
            own: None,
            name: "1 client".into(),
            clients: 1,
            rate: None,
            arrivals: "closed".into(),
            warm_up_s: 1.0,
            duration_s: 2.0,
            until_steady_s: None,
            stepped: None,
            search: None,
        }],
        trials: vec![trial(1), trial(2)],
        environment: Environment::default(),
        design: BTreeMap::new(),
        conditions: BTreeMap::new(),
        extensions: Vec::new(),
        study_source: String::new(),
    }
}

pub(crate) fn trial(number: u32) -> TrialPlan {
    TrialPlan { number, variant: 0, repetition: number, block: number }
}

pub(crate) fn summary(number: u32) -> TrialSummary {
    let mut histogram = new_histogram();
    histogram.record_n(2_000_000, 10).unwrap();
    let encoded = EncodedHistogram::encode(&histogram);
    let column = vec![5.0, 5.0];
    TrialSummary {
        host: None,
        canary: None,
        meanings: std::collections::BTreeMap::new(),
        metrics: Vec::new(),
        run_off: None,
        number,
        variant: 0,
        repetition: number,
        block: number,
        outcome: TrialOutcome::Finished,
        began_unix_ms: 1,
        ended_unix_ms: 2,
        audit: Vec::new(),
        server: ServerFacts::default(),
        members: Vec::new(),
        data: DataSet::default(),
        steps: vec![StepSummary {
            step: 0,
            measured_s: 2.0,
            kinds: vec![KindSummary {
                commits_100ms: None,
                name: "oltp_read_only".into(),
                outcomes: BTreeMap::from([("committed".into(), 10), ("deadlock".into(), 1)]),
                response: encoded.clone(),
                service: encoded,
            }],
            reads: 140,
            writes: 0,
            others: 20,
            rows_received: 100,
            rows_changed: 0,
            due: 10,
            missed: 0,
            in_flight_at_end: Some(2),
            retries: 1,
            reconnects: 0,
            lag: EncodedHistogram::default(),
            generator: GeneratorSummary::default(),
            server_cpu_s: None,
            error_examples: BTreeMap::new(),
            intervals: IntervalColumns {
                start_s: vec![0.0, 1.0],
                throughput: column.clone(),
                errors: column.clone(),
                missed: column.clone(),
                p50_us: column.clone(),
                p95_us: column.clone(),
                p99_us: column.clone(),
                max_us: column.clone(),
                lag_p99_us: column,
            },
            readings: BTreeMap::from([("cpu.user_pct".into(), vec![None, Some(12.5)])]),
            ..StepSummary::default()
        }],
        probes_cpu_s: 0.0,
        probes_wall_s: 0.0,
    }
}

/// Its only step had no load, but an activity with these figures.
fn summary_of_figures(figures: &[(&'static str, f64)]) -> TrialSummary {
    let metrics = ["job.time", "job.size"]
        .map(|id| dyno_units::metric(id, Unit::Seconds, Direction::Lower, "title", "text").main());
    let figures = figures.iter().map(|(id, value)| (MetricId::new(id), *value)).collect();
    let step = StepSummary { figures, measured_s: 7.0, ..StepSummary::default() };
    TrialSummary { metrics: metrics.to_vec(), steps: vec![step], ..summary(1) }
}

#[test]
fn figures_of_activities_are_kept_and_explain_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = RunWriter::create(&path, &manifest("2-a")).unwrap();
    let written = summary_of_figures(&[("job.time", 12.5), ("job.size", f64::INFINITY)]);
    run.begin_trial(&trial(1), "only · x=1").unwrap().finish(written).unwrap();
    let read = read_run(&path).unwrap();
    // A figure that is no number is left out.
    assert_eq!(read.trials[0], summary_of_figures(&[("job.time", 12.5)]));
    let answer = query(&path, "SELECT title, value FROM figure JOIN metric USING(metric)").unwrap();
    assert_eq!(answer.rows, [[Some("title".to_owned()), Some("12.5".to_owned())]]);
    // Older records have no figures; unexplained figures are refused.
    let file = trial_folders(&path)[0].1.join("summary.json");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("\"job.size\": null") && text.contains("\"job.time\": 12.5"), "{text}");
    fs::remove_file(file.with_file_name("checksums.json")).unwrap();
    fs::write(&file, text.replace("\"job.time\": 12.5", "\"job.tame\": 12.5")).unwrap();
    let refused = read_run(&path).unwrap_err().to_string();
    assert!(refused.contains("job.tame"), "{refused}");
}

fn write_trial(run: &mut RunWriter, number: u32) -> TrialWriter {
    let mut writer = run.begin_trial(&trial(number), "only · x=1").unwrap();
    let kind = EventKind::TrialBegan { trial: number, variant: "only".into(), repetition: 1 };
    writer.event(&Event { at_ns: 5, unix_ms: 6, kind }).unwrap();
    let mut histogram = new_histogram();
    histogram.record(1_500_000).unwrap();
    let kinds = vec![KindInterval { kind: "k", response: &histogram, service: &histogram }];
    writer
        .interval(&IntervalRecord {
            step: 0,
            phase: "measure",
            start_ns: 1_000_000_000,
            length_ns: 1_000_000_000,
            kinds,
        })
        .unwrap();
    writer.readings(1, &BTreeMap::from([("cpu.user_pct".into(), 1.0)])).unwrap();
    writer
}

fn unpack(path: &Path) -> String {
    use std::io::Read;
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_killed_run_is_readable_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("run");
    let mut run = RunWriter::create(&folder, &manifest("2-a")).unwrap();
    write_trial(&mut run, 1).finish(summary(1)).unwrap();
    drop(write_trial(&mut run, 2));
    drop(run);
    let read = read_run(&folder).unwrap();
    assert_eq!(read.trials, [summary(1)]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700, "what is measured is nobody else's business");

    let mut run = RunWriter::resume(&folder, &manifest("2-a")).unwrap();
    assert_eq!(run.ended_trials(), [1]);
    write_trial(&mut run, 2).finish(summary(2)).unwrap();
    assert_eq!(run.ended_trials(), [1, 2]);
    assert_eq!(read_run(&folder).unwrap().trials.len(), 2);
}

#[test]
fn another_studys_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    drop(RunWriter::create(&path, &manifest("2-a")).unwrap());
    let error = RunWriter::resume(&path, &manifest("2-b")).err().unwrap().to_string();
    assert!(error.contains("another study"), "{error}");
    let error = RunWriter::create(&path, &manifest("2-b")).err().unwrap().to_string();
    assert!(error.contains("holds a run"), "{error}");
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("notes.txt"), "").unwrap();
    let error = RunWriter::create(&other, &manifest("2-b")).err().unwrap().to_string();
    let expected = "other: it is not empty and holds no Dyno run; choose";
    assert!(error.starts_with("cannot use the folder ") && error.contains(expected), "{error}");
}

#[test]
fn a_newer_record_is_refused_with_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let newer = Manifest { format: FORMAT + 1, dyno: "9.9".into(), ..manifest("2-a") };
    drop(RunWriter::create(&folder.path().join("run"), &newer).unwrap());
    let error = read_run(&folder.path().join("run")).unwrap_err().to_string();
    assert!(error.contains("9.9") && error.contains("newer"), "{error}");
}

#[test]
fn damage_is_an_error_and_not_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = RunWriter::create(&path, &manifest("2-a")).unwrap();
    let mut damaged = summary(1);
    damaged.steps[0].step = 9;
    write_trial(&mut run, 1).finish(damaged).unwrap();
    assert!(read_run(&path).unwrap_err().to_string().contains("damaged"));
    let mut damaged = summary(2);
    damaged.steps[0].lag = EncodedHistogram("!".into());
    fs::remove_dir_all(path.join("trials")).unwrap();
    fs::create_dir(path.join("trials")).unwrap();
    write_trial(&mut run, 2).finish(damaged).unwrap();
    assert!(read_run(&path).unwrap_err().to_string().contains("histogram"));
}

#[test]
fn interval_logs_are_read_by_the_standard_reader() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunWriter::create(&folder.path().join("run"), &manifest("2-a")).unwrap();
    let writer = write_trial(&mut run, 1);
    let trial = writer.folder().to_owned();
    writer.finish(summary(1)).unwrap();
    let text = unpack(&trial.join("intervals.hlog.gz"));
    // A line is tag, start, length, maximum, histogram.
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Tag=")).collect();
    assert_eq!(lines.len(), 2);
    let fields: Vec<&str> = lines[0].split(',').collect();
    assert_eq!(fields[..3], ["Tag=response/k/step0/measure", "1.000", "1.000"]);
    let histogram = EncodedHistogram(fields[4].into()).decode().unwrap();
    assert_eq!(histogram.len(), 1);
    assert!(!trial.join("events.jsonl").exists());
}

#[test]
fn a_run_can_be_queried() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = RunWriter::create(&path, &manifest("2-a")).unwrap();
    write_trial(&mut run, 1).finish(summary(1)).unwrap();
    let check = |sql: &str, expected: &[&str]| {
        let answer = query(&path, sql).unwrap();
        let first: Vec<&str> =
            answer.rows[0].iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
        assert_eq!(first, expected, "{sql}");
    };
    check(
        "SELECT variant, step, committed, throughput FROM results",
        &["only · x=1", "1 client", "10", "5"],
    );
    check("SELECT count(*), max(value) FROM reading", &["1", "12.5"]);
    check("SELECT event FROM event", &["trial_began"]);
    check("SELECT count(*) FROM log_reading", &["0"]);
    // Readings of a failed trial can be queried.
    let outcome = TrialOutcome::Failed { message: "it is gone".into(), server_log: Vec::new() };
    let failed = TrialSummary { outcome, steps: Vec::new(), ..summary(2) };
    write_trial(&mut run, 2).finish(failed).unwrap();
    check(
        "SELECT trial, at_s, name, value FROM log_reading",
        &["2", "0.000000001", "cpu.user_pct", "1"],
    );
    assert!(query(&path, "DELETE FROM run").is_err());
}

#[test]
fn only_the_record_itself_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = RunWriter::create(&path, &manifest("2-a")).unwrap();
    write_trial(&mut run, 1).finish(summary(1)).unwrap();
    let check = || {
        let rows = query(&path, "SELECT throughput FROM result").unwrap().rows;
        assert_eq!(rows, [[Some("5".to_owned())]]);
    };
    check();
    let file = path.join("record.sqlite");
    let database = rusqlite::Connection::open(&file).unwrap();
    database.execute("UPDATE result SET throughput = 1e9", []).unwrap();
    drop(database);
    check();
    for bytes in ["", "no database"] {
        fs::write(&file, bytes).unwrap();
        check();
    }
    // Leftovers of a killed process are removed, another's work is not.
    let (left, others) =
        (path.join("record.sqlite.part-4294967295-0"), path.join("record.sqlite.part-1-0"));
    fs::write(&left, "half").unwrap();
    fs::write(&others, "half").unwrap();
    check();
    assert!(!left.exists() && others.exists());
}

/// A step and a search with two load probes, each of `n_seconds` with `n_names` readings a second,
/// the second half too late for any interval. Returns the summary and its file's text.
fn write_much(run: &mut RunWriter, n_names: u64, n_seconds: u64) -> (TrialSummary, String) {
    let mut summary = summary(1);
    let mut writer = run.begin_trial(&trial(1), "only · x=1").unwrap();
    let second = 1_000_000_000;
    let mut load = |base: u64| {
        let mut load = summary.steps[0].clone();
        let n = n_seconds as usize;
        let spans: Vec<_> = (0..n_seconds).map(|s| (base + s * second, second)).collect();
        let mut columns = BTreeMap::new();
        for (idx, (start, length)) in spans.iter().enumerate() {
            let name = |number: u64| format!("probe.{number}");
            let value = |number: u64| (number * 1000 + idx as u64) as f64 / 8.0;
            let in_time = (0..n_names / 2).map(|number| (name(number), value(number)));
            let late = (n_names / 2..n_names).map(|number| (name(number), value(number)));
            let (in_time, late): (BTreeMap<_, _>, BTreeMap<_, _>) =
                (in_time.collect(), late.collect());
            writer.readings(start + length + 1000, &in_time).unwrap();
            // Too late for this interval, and at no other's end.
            writer.readings(start + length + length / 2, &late).unwrap();
            for (name, value) in in_time {
                columns.entry(name).or_insert_with(|| vec![None; n])[idx] = Some(value);
            }
        }
        let column = vec![1.0; n];
        load.measured_s = n as f64;
        load.intervals = IntervalColumns {
            start_s: (0..n).map(|s| s as f64).collect(),
            throughput: column.clone(),
            errors: column.clone(),
            missed: column.clone(),
            p50_us: column.clone(),
            p95_us: column.clone(),
            p99_us: column.clone(),
            max_us: column.clone(),
            lag_p99_us: column,
        };
        (load.spans, load.readings) = (Some(spans), columns);
        load
    };
    let first = load(0);
    let probes = [load(1_000 * second), load(2_000 * second)];
    // The summary of a search's step is that of the load probe that held.
    let mut search = probes[0].clone();
    search.step = 1;
    let held = |number: u32, load: &StepSummary| LoadProbe {
        number,
        level: 1.0,
        throughput: 1.0,
        limited_us: None,
        held: true,
        broken_by: None,
        load: Some(load.clone()),
    };
    search.search = Some(SearchSummary {
        found: Some(1.0),
        lowest_broken: None,
        settled: true,
        probes: vec![held(1, &probes[0]), held(2, &probes[1])],
    });
    summary.steps = vec![first, search];
    let folder = writer.folder().to_owned();
    writer.finish(summary.clone()).unwrap();
    (summary, fs::read_to_string(folder.join("summary.json")).unwrap())
}

fn two_steps() -> Manifest {
    let mut manifest = manifest("2-a");
    manifest.steps.push(manifest.steps[0].clone());
    manifest
}

#[test]
fn so_many_readings_that_they_are_kept_once_are_all_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = RunWriter::create(&path, &two_steps()).unwrap();
    let (n_names, n_seconds) = (24_000, 15);
    assert!(3 * n_names * n_seconds > crate::readings::KEPT_TWICE);
    let (summary, written) = write_much(&mut run, n_names, n_seconds);
    assert!(!written.contains("probe.7"), "the summary has them again");
    // Readings of intervals are read as if the summary had them …
    assert_eq!(read_run(&path).unwrap().trials, [summary]);
    // … and all others are in the log, with their times.
    let log = fs::read_dir(path.join("trials")).unwrap().next().unwrap().unwrap().path();
    let log = log.join("readings.jsonl.gz");
    let text = unpack(&log);
    assert_eq!(text.lines().count() as u64, 3 * 2 * n_seconds);
    let late: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(late["at_ns"], 1_500_000_000);
    assert_eq!(late["values"]["12000"].as_array().unwrap().len(), 12_000);
    assert_eq!(
        query(&path, "SELECT count(*) FROM reading").unwrap().rows[0][0].as_deref(),
        Some((2 * n_names / 2 * n_seconds).to_string().as_str())
    );

    // A record without its log is refused.
    fs::remove_file(&log).unwrap();
    let error = read_run(&path).unwrap_err().to_string();
    assert!(error.contains("readings.jsonl.gz"), "{error}");
}

#[test]
fn few_readings_are_in_the_summary_and_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = RunWriter::create(&path, &two_steps()).unwrap();
    let (mut summary, written) = write_much(&mut run, 20, 5);
    assert!(written.contains("probe.7") && !written.contains("spans"), "{written}");
    summary.each_load(&mut |load| load.spans = None);
    assert_eq!(read_run(&path).unwrap().trials, [summary]);
    let log = fs::read_dir(path.join("trials")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(unpack(&log.join("readings.jsonl.gz")).lines().count(), 3 * 2 * 5);
}

fn two_trials(folder: &Path) {
    let mut run = RunWriter::create(folder, &manifest("2-a")).unwrap();
    for number in [1, 2] {
        write_trial(&mut run, number).finish(summary(number)).unwrap();
    }
}

#[test]
fn a_run_is_written_by_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let run = RunWriter::create(&path, &manifest("2-a")).unwrap();
    assert!(is_being_written(&path));
    let error = RunWriter::resume(&path, &manifest("2-a")).err().unwrap();
    let held = format!("another Dyno (process {}) is writing this run", std::process::id());
    assert!(error.to_string().contains(&held), "{error}");
    assert_eq!(error.kind, WriteErrorKind::Held);
    drop(run);
    assert!(!is_being_written(&path));
    RunWriter::resume(&path, &manifest("2-a")).unwrap();
}

#[test]
fn another_dyno_is_named_only_if_no_other_user_can_hold_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    drop(RunWriter::create(&path, &manifest("2-a")).unwrap());
    let lock = path.join("lock");
    assert_eq!(fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
    // What another user can lock, and what only this one can.
    let check = |modes: [u32; 2], locked: &[&Path], is_dyno: bool| {
        let all = [path.as_path(), lock.as_path()];
        for (path, mode) in all.into_iter().zip(modes) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let held: Vec<fs::File> = locked.iter().map(|at| fs::File::open(at).unwrap()).collect();
        held.iter().for_each(|file| file.lock().unwrap());
        let error = RunWriter::resume(&path, &manifest("2-a")).err().unwrap();
        assert_eq!(error.kind, WriteErrorKind::Held);
        let (error, who) = (error.to_string(), ["another process holds a lock", "another Dyno"]);
        assert!(error.contains(who[usize::from(is_dyno)]), "{error}");
    };
    check([0o755, 0o600], &[&path, &lock], true);
    check([0o700, 0o644], &[&path, &lock], true);
    check([0o755, 0o600], &[&path], false);
    check([0o755, 0o644], &[&path, &lock], false);
}

#[test]
fn a_lock_file_that_was_removed_or_replaced_admits_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let run = RunWriter::create(&path, &manifest("2-a")).unwrap();
    let is_held = || {
        assert!(is_being_written(&path));
        let error = RunWriter::resume(&path, &manifest("2-a")).err().unwrap();
        assert_eq!(error.kind, WriteErrorKind::Held, "{error}");
    };
    fs::remove_file(path.join("lock")).unwrap();
    is_held();
    fs::write(path.join("another"), "1\n").unwrap();
    fs::rename(path.join("another"), path.join("lock")).unwrap();
    is_held();
    drop(run);
    assert!(!is_being_written(&path));
    RunWriter::resume(&path, &manifest("2-a")).unwrap();
}

#[test]
fn a_kill_while_the_manifest_is_written_leaves_a_folder_that_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    for leftovers in [&["lock"][..], &["lock", "manifest.json.part"], &["manifest.json.part"]] {
        fs::create_dir(&path).unwrap();
        leftovers.iter().for_each(|name| fs::write(path.join(name), "{ \"for").unwrap());
        RunWriter::create(&path, &manifest("2-a")).unwrap();
        assert!(!path.join("manifest.json.part").exists());
        assert_eq!(read_manifest(&path).unwrap(), manifest("2-a"));
        fs::remove_dir_all(&path).unwrap();
    }
    fs::create_dir(&path).unwrap();
    fs::write(path.join("manifest.json.part"), "").unwrap();
    fs::write(path.join("letter.txt"), "dear").unwrap();
    let error = RunWriter::create(&path, &manifest("2-a")).err().unwrap();
    assert!(
        error.kind == WriteErrorKind::Usage && error.to_string().contains("not empty"),
        "{error}"
    );
    assert!(!path.join("lock").exists(), "nothing is put into somebody's folder");
}

#[test]
fn a_path_may_be_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"r\xff\xfe"));
    two_trials(&path);
    assert_eq!(read_run(&path).unwrap().trials.len(), 2);
    assert_eq!(
        query(&path, "SELECT count(*) FROM trial").unwrap().rows[0][0].as_deref(),
        Some("2")
    );
}

#[test]
fn a_figure_that_was_changed_is_told_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    two_trials(&path);
    read_run(&path).unwrap();
    let trial = path.join("trials/0001-only-x=1");
    let check = |file: &Path, from: &str, to: &str, expected: &[&str]| {
        let before = fs::read_to_string(file).unwrap();
        assert!(before.contains(from), "{from}: {before}");
        fs::write(file, before.replacen(from, to, 1)).unwrap();
        let error = read_run(&path).unwrap_err().to_string();
        for words in expected {
            assert!(error.contains(words), "{from} → {to}: {error}");
        }
        fs::write(file, before).unwrap();
    };
    let summary = trial.join("summary.json");
    check(&summary, "\"reads\": 140", "\"reads\": 141", &["summary.json", "checksum"]);
    // An older record, without checksums.
    fs::remove_file(trial.join("checksums.json")).unwrap();
    read_run(&path).unwrap();
    let committed = "\"committed\": 10";
    check(&summary, committed, "\"committed\": 20", &["trial 1", "20 transactions", "are 10"]);
    check(&summary, "\"measured_s\": 2.0", "\"measured_s\": 1e-300", &["measured time is 0.0"]);
    check(&summary, "\"measured_s\": 2.0", "\"measured_s\": 9.0", &["last second begins at 1 s"]);
    check(&summary, "\"variant\": 0", "\"variant\": 7", &["variant"]);
    let steps = fs::read_to_string(&summary).unwrap();
    let mut emptied: serde_json::Value = serde_json::from_str(&steps).unwrap();
    emptied["steps"] = serde_json::json!([]);
    fs::write(&summary, emptied.to_string()).unwrap();
    let error = read_run(&path).unwrap_err().to_string();
    assert!(error.contains("finished with 0 steps"), "{error}");
    fs::write(&summary, steps).unwrap();
    let manifest = path.join("manifest.json");
    check(&manifest, "\"repetition\": 1", "\"repetition\": 3", &["manifest.json", "repetition 3"]);
}

#[test]
fn a_log_that_was_changed_is_told() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    two_trials(&path);
    let log = path.join("trials/0001-only-x=1/intervals.hlog.gz");
    assert_eq!(read_times(log.parent().unwrap(), &mut |_| {}).unwrap(), LogEnd::Whole);
    let text = unpack(&log);
    let mut packer = GzEncoder::new(File::create(&log).unwrap(), Compression::fast());
    packer.write_all(text.lines().next().unwrap().as_bytes()).unwrap();
    packer.write_all(b"\n").unwrap();
    packer.finish().unwrap();
    let error = read_times(log.parent().unwrap(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("intervals.hlog.gz") && error.contains("checksum"), "{error}");
}

#[test]
fn what_is_no_regular_file_is_an_error_and_does_not_hang() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    two_trials(&path);
    let summary = path.join("trials/0001-only-x=1/summary.json");
    let fifo = |path: &Path| {
        fs::remove_file(path).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    fifo(&summary);
    let error = read_run(&path).unwrap_err().to_string();
    assert!(error.contains("regular file"), "{error}");
    fs::remove_file(&summary).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &summary).unwrap();
    assert!(read_run(&path).unwrap_err().to_string().contains("symbolic link"));
    fifo(&path.join("manifest.json"));
    assert!(read_run(&path).unwrap_err().to_string().contains("regular file"));
}

#[test]
fn a_failed_trial_is_kept_beside_the_one_that_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = RunWriter::create(&path, &manifest("2-a")).unwrap();
    let outcome = TrialOutcome::Failed { message: "it is gone".into(), server_log: Vec::new() };
    let failed = TrialSummary { outcome, steps: Vec::new(), ..summary(1) };
    write_trial(&mut run, 1).finish(failed).unwrap();
    let found = run.failed_trials();
    assert_eq!((found.len(), found[0].number, &*found[0].message), (1, 1, "it is gone"));
    assert!(!found[0].was_deployed);
    write_trial(&mut run, 1).finish(summary(1)).unwrap();
    assert_eq!(run.failed_trials(), []);
    assert_eq!(read_run(&path).unwrap().trials, [summary(1)]);
    assert!(path.join("trials/0001-only-x=1.failed-1/summary.json").exists());
}

#[test]
fn a_run_may_grow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    two_trials(&path);
    let mut wanted = Manifest { title: "What is it?".into(), threshold: 0.1, ..manifest("2-a") };
    wanted.trials.push(trial(3));
    wanted.created_unix_ms = 99;
    wanted.variants[0].price_per_hour = Some(Price { amount: 1.0, currency: "EUR".into() });
    drop(RunWriter::resume(&path, &wanted).unwrap());
    let now = read_manifest(&path).unwrap();
    let extension =
        Extension { at_unix_ms: 99, trials_before: 2, trials_after: 3, trials_ended: Some(2) };
    assert_eq!(now.extensions, [extension]);
    // An older record does not say how many had ended: any may have been looked at.
    let before = r#"{"at_unix_ms": 99, "trials_before": 2, "trials_after": 3}"#;
    let before: Extension = serde_json::from_str(before).unwrap();
    assert_eq!((before.trials_ended, before.ended()), (None, 2));
    let expected =
        Manifest { extensions: now.extensions.clone(), created_unix_ms: 1, ..wanted.clone() };
    assert_eq!(now, expected);
    drop(RunWriter::resume(&path, &wanted).unwrap());
    assert_eq!(read_manifest(&path).unwrap(), expected);
    assert_eq!(read_run(&path).unwrap().trials.len(), 2);
}

#[test]
fn what_would_make_trials_incomparable_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    two_trials(&path);
    let before = fs::read(path.join("manifest.json")).unwrap();
    let check = |change: &dyn Fn(&mut Manifest), expected: &str| {
        let mut wanted = manifest("2-b");
        change(&mut wanted);
        let error = RunWriter::resume(&path, &wanted).err().unwrap();
        assert!(
            error.kind == WriteErrorKind::Usage && error.to_string().contains(expected),
            "{error}"
        );
        assert_eq!(fs::read(path.join("manifest.json")).unwrap(), before);
    };
    let set = |map: &mut BTreeMap<String, String>, key: &str, value: &str| {
        map.insert(key.into(), value.into());
    };
    check(&|m| m.seed = 8, "`seed` was 7, is now 8");
    check(&|m| m.steps[0].duration_s = 9.0, "step `1 client`: duration_s was 2.0, is now 9.0");
    check(
        &|m| set(&mut m.variants[0].settings, "cache_size", "9"),
        "`only · x=1: setting cache_size` was not set, is now 9",
    );
    check(&|m| set(&mut m.conditions, "rest", "5 s"), "`rest` was not set, is now 5 s");
    check(&|m| m.variants[0].name = "other".into(), "`the variants` was only · x=1, is now other");
    check(&|m| m.trials.truncate(1), "`repetitions` was lowered");
    check(&|m| m.trials.reverse(), "order of its trials");
    check(
        &|m| {
            m.stopping = Some(StoppingRecord { repetitions_min: 1, repetitions_max: 2 });
        },
        "`stop`",
    );
    check(&|_| {}, "another study");
}

#[test]
fn runs_of_other_plan_formats_continue_or_are_refused_with_a_clear_word() {
    let folder = tempfile::tempdir().unwrap();
    let check = |was: &str, is: &str, expected: Option<&str>| {
        let path = folder.path().join(format!("{was} {is}"));
        drop(RunWriter::create(&path, &manifest(was)).unwrap());
        let error = RunWriter::resume(&path, &manifest(is)).err().map(|error| error.to_string());
        match (&error, expected) {
            (Some(error), Some(expected)) => assert!(error.contains(expected), "{error}"),
            _ => assert_eq!(error.as_deref(), expected),
        }
        if expected.is_none() {
            assert_eq!(read_manifest(&path).unwrap().fingerprint, is);
        }
    };
    check("plan1-a", "plan1-a", None);
    check("plan1-a", "plan1-b", Some("another study"));
    // A digest of the record: compared part by part.
    check("2-a", "plan1-b", None);
    check("plan1-a", "plan2-b", None);
    check("plan2-a", "plan1-b", Some("planned by another version of Dyno (0.1.0)"));
    check("a", "plan1-b", Some("earlier version"));
}

#[test]
fn a_run_of_before_is_refused_with_a_clear_word() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    drop(RunWriter::create(&path, &manifest("9ae3")).unwrap());
    let error = RunWriter::resume(&path, &manifest("2-a")).err().unwrap().to_string();
    assert!(error.contains("an earlier version of Dyno (0.1.0)"), "{error}");
    assert!(error.contains("`dyno report` can read it"), "{error}");
}

#[test]
fn nothing_is_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let outside = folder.path().join("outside");
    two_trials(&path);
    fs::write(&outside, "mine").unwrap();
    for name in ["events.jsonl", "record.sqlite"] {
        let _ = fs::remove_file(path.join(name));
        std::os::unix::fs::symlink(&outside, path.join(name)).unwrap();
    }
    query(&path, "SELECT 1").unwrap();
    let error = RunWriter::resume(&path, &manifest("2-a")).err().unwrap().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    assert_eq!(fs::read(&outside).unwrap(), b"mine");
}

#[test]
fn counts_that_cannot_be_are_refused_and_not_added_up() {
    fn promoted(step: &mut crate::StepSummary, survived: crate::Survived) {
        let member = "replica-1".to_owned();
        let promotion = Some(crate::Promotion { member, survived: Some(survived) });
        step.faults.push(crate::Fault { promotion, ..crate::Fault::default() });
    }
    fn generated(step: &mut crate::StepSummary, committed: u64) {
        let committed = vec![committed];
        step.hosts.push(crate::HostSummary { committed, ..crate::HostSummary::default() });
    }
    let changes: [fn(&mut crate::StepSummary); 7] = [
        |step| step.reads = u64::MAX,
        |step| step.due = 1 << 54,
        |step| step.in_flight_at_end = Some(u64::MAX),
        |step| step.kinds[0].outcomes.extend([("refused".to_owned(), u64::MAX)]),
        |step| promoted(step, crate::Survived { in_doubt: u64::MAX, ..Default::default() }),
        |step| generated(step, u64::MAX),
        |step| {
            let many = (0..2_048).map(|n| (format!("refused {n}"), 1 << 53));
            step.kinds[0].outcomes.extend(many);
        },
    ];
    for change in changes {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut run = RunWriter::create(&path, &manifest("a")).unwrap();
        let plan = crate::TrialPlan { number: 1, variant: 0, repetition: 1, block: 1 };
        let mut summary = summary(1);
        change(&mut summary.steps[0]);
        run.begin_trial(&plan, "a").unwrap().finish(summary).unwrap();
        let error = crate::read_run(&path).unwrap_err().to_string();
        assert!(error.contains("its counts add up to more than 9007199254740992"), "{error}");
    }
}

#[test]
fn a_full_disk_is_told_with_what_to_do() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = WriteError::io(Path::new("run/events.jsonl"), &full).to_string();
    assert!(error.contains("free some space, then run the same command again"), "{error}");
}

#[test]
fn a_void_block_is_set_aside_and_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut run = RunWriter::create(&path, &manifest("a")).unwrap();
    let plan = |number: u32| crate::TrialPlan { number, variant: 0, repetition: 1, block: number };
    for number in [1, 2] {
        let trial = run.begin_trial(&plan(number), "a").unwrap();
        trial.finish(summary(number)).unwrap();
    }
    let began_unix_ms = summary(2).began_unix_ms;
    let void = crate::VoidBlock {
        block: 2,
        why: vec!["others were busy".to_owned()],
        trials: vec![crate::VoidTrial { number: 2, began_unix_ms }],
    };
    assert_eq!(run.void(vec![void.clone()]).unwrap(), [2]);
    assert_eq!(run.ended_trials(), [1]);
    let read = crate::read_run(&path).unwrap();
    assert_eq!((read.trials.len(), read.voids), (1, vec![void]));
    assert!(path.join("trials/0002-a.void-1/summary.json").is_file(), "nothing measured is lost");
    // The replacement stays; a trial not moved before the kill is moved later.
    let again = TrialSummary { began_unix_ms: began_unix_ms + 1, ..summary(2) };
    run.begin_trial(&plan(2), "a").unwrap().finish(again).unwrap();
    assert_eq!(run.void(Vec::new()).unwrap(), [] as [u32; 0]);
    assert_eq!(run.ended_trials().len(), 2);
    fs::remove_dir_all(path.join("trials/0002-a")).unwrap();
    fs::rename(path.join("trials/0002-a.void-1"), path.join("trials/0002-a")).unwrap();
    assert_eq!(run.void(Vec::new()).unwrap(), [2]);
}
