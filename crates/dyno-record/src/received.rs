//! A trial that another host ran and recorded. Only a trial's files are taken, of bounded size, and
//! the expected trial's summary. Until all have come, the trial has not ended.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;

use dyno_units::{clean_text, is_unsafe_char};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::columns::{VALUES_MOST, within};
use crate::error::{WriteError, WriteResult};
use crate::files::{append, read_bounded, with_suffix};
use crate::writer::{EVENTS, INTERVALS, READINGS, SUMMARY, write_summary};
use crate::{Event, RunWriter, TrialHost, TrialPlan, TrialSummary, TrialWriter, WHOLE_MOST};

/// Largest size of a trial's files, and of the events before them.
const BYTES_MOST: u64 = 16 << 30;

const COMING: &str = ".received";

/// The receiver back, and why.
type Refused = (Box<TrialReceiver>, String);

pub struct TrialReceiver {
    writer: TrialWriter,
    planned: TrialPlan,
    bytes: u64,
    bytes_most: u64,
}

impl RunWriter {
    /// Moves an earlier try aside, as [`RunWriter::begin_trial`] does.
    pub fn receive_trial(&mut self, trial: &TrialPlan, name: &str) -> WriteResult<TrialReceiver> {
        let writer = self.begin_trial(trial, name)?;
        let planned = trial.clone();
        Ok(TrialReceiver { writer, planned, bytes: 0, bytes_most: BYTES_MOST })
    }
}

impl TrialReceiver {
    /// The packed logs, and the summary.
    pub fn files() -> [String; 4] {
        [packed(EVENTS), packed(INTERVALS), READINGS.to_owned(), SUMMARY.to_owned()]
    }

    /// Appends an event, from there or from here; drops passing ones, and those beyond the limit.
    pub fn event(&mut self, event: &Event) -> WriteResult {
        if event.kind.is_passing() || self.take(event_bytes(event)).is_err() {
            return Ok(());
        }
        self.writer.event(event)
    }

    fn take(&mut self, n_bytes: usize) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(n_bytes as u64);
        if self.bytes <= self.bytes_most {
            return Ok(());
        }
        Err(format!("its record is larger than {} GiB", BYTES_MOST >> 30))
    }

    /// `Ok(Err(why))` if it is no file of a trial, or too large; `Err` if it cannot be written.
    pub fn part(&mut self, name: &str, bytes: &[u8]) -> WriteResult<Result<(), String>> {
        if !TrialReceiver::files().iter().any(|file| file == name) {
            return Ok(Err("it sent a file that is none of a trial".to_owned()));
        }
        if let Err(why) = self.take(bytes.len()) {
            return Ok(Err(why));
        }
        let path = self.coming(name);
        let written = append(&path).and_then(|mut file| file.write_all(bytes));
        written.map(Ok).map_err(|error| WriteError::io(&path, &error))
    }

    /// Ends the trial by putting its files in place, the summary last. `Ok(Err(…))` gives the
    /// receiver back, with the reason, if the files are not those of this trial.
    pub fn finish(mut self, host: TrialHost) -> WriteResult<Result<TrialSummary, Refused>> {
        let mut summary = match self.summary() {
            Ok(summary) => summary,
            Err(why) => return Ok(Err((Box::new(self), why))),
        };
        summary.host = Some(host);
        let folder = self.writer.folder.clone();
        // The received files have this as well.
        for name in [EVENTS, INTERVALS, READINGS] {
            let path = folder.join(name);
            fs::remove_file(&path).map_err(|error| WriteError::io(&path, &error))?;
        }
        let [events, intervals, readings, coming] = TrialReceiver::files();
        for name in [&events, &intervals, &readings] {
            let (from, path) = (self.coming(name), folder.join(name));
            let moved = fs::rename(&from, &path).and_then(|()| File::open(&path)?.sync_all());
            moved.map_err(|error| WriteError::io(&path, &error))?;
        }
        let coming = self.coming(&coming);
        fs::remove_file(&coming).map_err(|error| WriteError::io(&coming, &error))?;
        write_summary(&folder, &summary, [&folder.join(intervals), &folder.join(readings)])?;
        Ok(Ok(summary))
    }

    /// Ends the trial with a summary made here, because the host's did not come; removes its files.
    pub fn finish_without(self, summary: TrialSummary) -> WriteResult {
        for name in TrialReceiver::files() {
            let _ = fs::remove_file(self.coming(&name));
        }
        self.writer.finish(summary)
    }

    /// Checked to be of this trial, with all logs received.
    fn summary(&mut self) -> Result<TrialSummary, String> {
        // If something was dropped, the rest is not the trial.
        self.take(0)?;
        let files = TrialReceiver::files();
        if let Some(missing) = files.iter().find(|name| !self.coming(name).is_file()) {
            return Err(format!("it did not send {missing}"));
        }
        let bytes = read_bounded(&self.coming(SUMMARY), WHOLE_MOST);
        let bytes = bytes.map_err(|error| format!("its summary cannot be read: {error}"))?;
        let unread = |error: String| format!("its summary cannot be read: {}", clean_text(&error));
        // As a summary first: as a tree it could take a hundred times its bytes.
        let summary: TrialSummary = within(VALUES_MOST, || serde_json::from_slice(&bytes))
            .map_err(|error| unread(error.to_string()))?;
        let mut summary = cleaned(&summary).map_err(unread)?;
        let TrialPlan { number, variant, repetition, block } = self.planned;
        let is_it = (summary.number, summary.variant, summary.repetition, summary.block)
            == (number, variant, repetition, block);
        if !is_it {
            return Err("its summary is of another trial".to_owned());
        }
        // Its own agents, if it says so, are none of the study's hosts.
        summary.members.iter_mut().for_each(|member| member.host = None);
        summary.each_load(&mut |load| load.hosts.clear());
        self.writer.check(&summary)?;
        Ok(summary)
    }

    fn coming(&self, name: &str) -> PathBuf {
        with_suffix(&self.writer.folder.join(name), COMING)
    }
}

/// Cleans all texts of another host's value; the error says why the result is no such value.
pub fn cleaned<T: Serialize + DeserializeOwned>(value: &T) -> Result<T, String> {
    let mut json = serde_json::to_value(value).map_err(|error| error.to_string())?;
    clean(&mut json);
    within(VALUES_MOST, || serde_json::from_value(json)).map_err(|error| error.to_string())
}

fn clean(value: &mut Value) {
    match value {
        // Long texts, such as histograms, stay whole.
        Value::String(text) if text.contains(is_unsafe_char) => *text = clean_text(text),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains(is_unsafe_char)) {
                let all = std::mem::take(fields).into_iter();
                fields.extend(all.map(|(name, value)| (clean_text(&name), value)));
            }
            fields.values_mut().for_each(clean);
        }
        _ => {}
    }
}

fn event_bytes(event: &Event) -> usize {
    serde_json::to_vec(event).map_or(usize::MAX, |json| json.len() + 1)
}

fn packed(name: &str) -> String {
    format!("{name}.gz")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::tests::{manifest, summary, trial};
    use crate::{EventKind, TrialOutcome, read_run};

    fn host() -> TrialHost {
        TrialHost { pool: "m5".into(), name: "m5-1".into(), ..TrialHost::default() }
    }

    fn recorded(number: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunWriter::create(&folder.path().join("run"), &manifest("x")).unwrap();
        let writer = run.begin_trial(&trial(number), "base").unwrap();
        let there = writer.folder().to_owned();
        writer.finish(summary(number)).unwrap();
        (folder, there)
    }

    fn send(receiver: &mut TrialReceiver, there: &std::path::Path) {
        for name in TrialReceiver::files() {
            for part in fs::read(there.join(&name)).unwrap().chunks(100) {
                receiver.part(&name, part).unwrap().unwrap();
            }
        }
    }

    #[test]
    fn a_trial_of_another_host_is_read_like_one_of_this_machine() {
        let (_kept, there) = recorded(1);
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunWriter::create(&folder.path().join("run"), &manifest("x")).unwrap();
        let mut receiver = run.receive_trial(&trial(1), "base").unwrap();
        let event = |kind| Event { at_ns: 1, unix_ms: 1, kind };
        receiver.event(&event(EventKind::Noted { message: "x".into() })).unwrap();
        send(&mut receiver, &there);
        receiver.finish(host()).unwrap().map_err(|(_, why)| why).unwrap();
        let read = read_run(&folder.path().join("run")).unwrap();
        let expected = TrialSummary { host: Some(host()), ..summary(1) };
        assert_eq!(read.trials[0].host, expected.host);
        assert_eq!(read.trials[0].steps.len(), expected.steps.len());
        let names = fs::read_dir(run.folder().join("trials/0001-base")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let all = ["checksums.json", "events.jsonl.gz", "intervals.hlog.gz", READINGS, SUMMARY];
        assert_eq!(names, all);
    }

    #[test]
    fn a_host_cannot_fill_the_disk_with_what_happens() {
        let (_kept, there) = recorded(1);
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunWriter::create(&folder.path().join("run"), &manifest("x")).unwrap();
        let mut receiver = run.receive_trial(&trial(1), "base").unwrap();
        receiver.bytes_most = 100_000;
        let kind = EventKind::Noted { message: "x".repeat(1000) };
        let event = Event { at_ns: 1, unix_ms: 1, kind };
        (0..1000).for_each(|_| receiver.event(&event).unwrap());
        let written = fs::metadata(run.folder().join("trials/0001-base").join(EVENTS)).unwrap();
        assert!((90_000..=100_000).contains(&written.len()), "{}", written.len());
        assert!(receiver.part(SUMMARY, b"x").unwrap().is_err());
        // Without the dropped events the record is incomplete.
        for name in TrialReceiver::files() {
            fs::copy(there.join(&name), receiver.coming(&name)).unwrap();
        }
        let Err((_, why)) = receiver.finish(host()).unwrap() else { panic!("it is too large") };
        assert_eq!(why, "its record is larger than 16 GiB");
    }

    #[test]
    fn what_would_make_the_run_unreadable_is_refused() {
        let check = |change: fn(&mut TrialSummary), expected: &str| {
            let (_kept, there) = recorded(1);
            let mut sent = summary(1);
            change(&mut sent);
            fs::write(there.join(SUMMARY), serde_json::to_vec(&sent).unwrap()).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("run");
            let mut run = RunWriter::create(&path, &manifest("x")).unwrap();
            let mut receiver = run.receive_trial(&trial(1), "base").unwrap();
            send(&mut receiver, &there);
            match receiver.finish(host()).unwrap() {
                Ok(received) => {
                    assert_eq!(expected, "");
                    assert!(received.steps.iter().all(|step| step.hosts.is_empty()));
                    assert!(received.members.iter().all(|member| member.host.is_none()));
                }
                Err((back, why)) => {
                    assert!(!expected.is_empty() && why.contains(expected), "{why}");
                    let outcome = TrialOutcome::Failed { message: why, server_log: Vec::new() };
                    let failed = TrialSummary { outcome, steps: Vec::new(), ..summary(1) };
                    back.finish_without(failed).unwrap();
                }
            }
            read_run(&path).unwrap();
        };
        check(|_| {}, "");
        let other_hosts = |sent: &mut TrialSummary| {
            let named = crate::HostSummary { name: "other".into(), ..Default::default() };
            sent.steps[0].hosts.push(named);
            let host = Some(crate::MemberHost::default());
            sent.members.push(crate::MemberFacts { host, ..Default::default() });
        };
        check(other_hosts, "");
        check(|sent| sent.steps[0].due = u64::MAX, "add up to more than");
        check(|sent| sent.steps[0].measured_s = 1e19, "1e19 s");
        check(|sent| sent.steps[0].intervals.start_s[0] = -1e19, "times is");
        check(|sent| sent.steps[0].step = 9, "not in the manifest");
        let uncommitted = |sent: &mut TrialSummary| {
            sent.steps[0].kinds[0].outcomes.insert("committed".into(), 1_000_000);
        };
        check(uncommitted, "contradicts itself");
    }

    #[test]
    fn texts_of_a_host_are_harmless() {
        let kind = EventKind::Noted { message: "a\x1b[31mb".into() };
        let event = cleaned(&Event { at_ns: u64::MAX, unix_ms: 1, kind }).unwrap();
        let expected = EventKind::Noted { message: "a\u{fffd}[31mb".into() };
        assert_eq!((event.at_ns, event.kind), (u64::MAX, expected));
        let names = std::collections::BTreeMap::from([("x\ny".to_owned(), "z".repeat(10_000))]);
        let names = cleaned(&names).unwrap();
        assert_eq!(names["x y"].len(), 10_000);
    }

    #[test]
    fn what_is_no_record_of_the_trial_is_refused_and_the_trial_can_fail() {
        let (_kept, there) = recorded(2);
        let folder = tempfile::tempdir().unwrap();
        let mut run = RunWriter::create(&folder.path().join("run"), &manifest("x")).unwrap();
        let mut receiver = run.receive_trial(&trial(1), "base").unwrap();
        for name in ["../../manifest.json", "checksums.json", "", "events.jsonl"] {
            assert!(receiver.part(name, b"x").unwrap().is_err(), "{name}");
        }
        let (mut receiver, why) = receiver.finish(host()).unwrap().unwrap_err();
        assert_eq!(why, "it did not send events.jsonl.gz");
        send(&mut receiver, &there);
        let (receiver, why) = receiver.finish(host()).unwrap().unwrap_err();
        assert_eq!(why, "its summary is of another trial");
        let outcome = TrialOutcome::Failed { message: why, server_log: Vec::new() };
        receiver.finish_without(TrialSummary { outcome, ..summary(1) }).unwrap();
        let read = read_run(&folder.path().join("run")).unwrap();
        assert!(matches!(read.trials[0].outcome, TrialOutcome::Failed { .. }));
        assert!(fs::read_dir(run.folder().join("trials/0001-base")).unwrap().count() == 5);
    }
}
