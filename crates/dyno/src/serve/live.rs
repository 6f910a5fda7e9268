//! The live page's events: sends what is appended to a run's files. The wait between checks is a
//! read from the browser with a time limit, so that a disconnect ends it immediately.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyno_record::{Event, SecondOfTimes, new_histogram, open_regular, read_times_lines};
use dyno_units::Clock;
use serde_json::{Value, json};

use super::runs::{RunEntry, Runs};
use super::{event_text, pages};
use crate::http::{self, Exchange};

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// For the browser to read what one check sends.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of a file read per check.
const BLOCK: u64 = 4 << 20;

/// Until the browser disconnects.
pub(super) fn stream(
    runs: &Runs,
    run: &RunEntry,
    exchange: &Exchange,
    clock: &dyn Clock,
) -> std::io::Result<()> {
    let (request, mut stream) = (&exchange.request, &exchange.stream);
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(http::stream_head().as_bytes())?;
    if request.method != "GET" {
        return Ok(());
    }
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let mut watched = Watched::default();
    loop {
        let mut text = String::new();
        watched.look(runs, run, clock.unix_millis(), &mut |name, data| {
            text += &message(name, &data);
        });
        // A comment keeps the connection alive and detects a disconnect.
        stream.write_all(if text.is_empty() { b":\n\n" } else { text.as_bytes() })?;
        stream.flush()?;
        match stream.read(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The script puts these texts into the page as they are, so they are cleaned here.
fn message(name: &str, data: &Value) -> String {
    // Cannot fail for a `Value`.
    let data = dyno_record::cleaned(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

#[derive(Default)]
struct Watched {
    files: HashMap<PathBuf, Tail>,
    state: Option<Value>,
    trial: Option<PathBuf>,
}

impl Watched {
    fn look(&mut self, runs: &Runs, of: &RunEntry, now_ms: u64, send: &mut dyn FnMut(&str, Value)) {
        let Some(run) = runs.only(&of.folder) else { return };
        let planned = run.planned();
        let trial = run.open_trial.as_ref().and_then(|path| path.file_name());
        let trial = trial.map(|trial| trial.to_string_lossy().into_owned());
        let about = run.about.as_ref().ok();
        let words = |folder: &String| event_text::trial(about?, folder);
        let state = json!({ "run": of.name, "planned": planned, "ended": run.ended(), "trial": trial,
            "of": trial.as_ref().and_then(words), "running": run.is_running,
            "left": run.left_ms(now_ms).map(pages::rounded) });
        if self.state.as_ref() != Some(&state) {
            send("state", state.clone());
            self.state = Some(state);
        }
        for line in self.lines(&of.folder.join("events.jsonl")) {
            send_event(&line, None, send);
        }
        // The last events of an ended trial are in its packed files and the report.
        self.trial = run.open_trial.clone().or(self.trial.take());
        let Some(trial) = self.trial.clone() else { return };
        let folder = trial.file_name().map(|folder| folder.to_string_lossy().into_owned());
        let of = folder.as_ref().and_then(words);
        let variant =
            folder.and_then(|folder| Some(event_text::variant(about?, &folder)?.to_owned()));
        for line in self.lines(&trial.join("events.jsonl")) {
            send_event(&line, of.as_deref(), send);
        }
        let mut seconds = Seconds { variant, ..Seconds::default() };
        let lines = self.lines(&trial.join("intervals.hlog"));
        let read = read_times_lines(&lines, &mut |second| seconds.add(second, send));
        seconds.flush(send);
        if let Err(why) = read {
            send("happened", json!({ "text": format!("the log of the load: {why}"), "of": of }));
        }
    }

    /// Whole lines only.
    fn lines(&mut self, path: &Path) -> Vec<String> {
        self.files.entry(path.to_owned()).or_default().lines(path)
    }
}

#[derive(Default)]
struct Tail {
    offset: u64,
}

impl Tail {
    fn lines(&mut self, path: &Path) -> Vec<String> {
        // The file does not exist yet, or was packed.
        let Ok(mut file) = open_regular(path) else { return Vec::new() };
        let mut bytes = Vec::new();
        if file.seek(SeekFrom::Start(self.offset)).is_err()
            || file.take(BLOCK).read_to_end(&mut bytes).is_err()
        {
            return Vec::new();
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.offset += whole as u64;
        let text = String::from_utf8_lossy(&bytes[..whole]);
        text.lines().map(str::to_owned).collect()
    }
}

/// Adds the event's text (`text`) and its variant and trial (`of`; null for the run).
fn send_event(line: &str, of: Option<&str>, send: &mut dyn FnMut(&str, Value)) {
    let Ok(Value::Object(mut event)) = serde_json::from_str(line) else { return };
    // Events of other versions of Dyno are shown by name.
    let text = serde_json::from_str::<Event>(line).map(|known| event_text::in_words(&known.kind));
    let name = || event.get("event").and_then(Value::as_str).unwrap_or_default().replace('_', " ");
    let text = text.unwrap_or_else(|_| name());
    event.insert("text".to_owned(), json!(text));
    event.insert("of".to_owned(), json!(of));
    send("happened", Value::Object(event));
}

/// Of a second, for all kinds of transactions.
#[derive(Default)]
struct Seconds {
    variant: Option<String>,
    start_s: Option<f64>,
    step: usize,
    is_measured: bool,
    length_s: f64,
    /// By time: bounded, however many lines a second has.
    counts: BTreeMap<u64, u64>,
}

impl Seconds {
    fn add(&mut self, second: &SecondOfTimes<'_>, send: &mut dyn FnMut(&str, Value)) {
        if self.start_s.is_some_and(|start| (start - second.start_s).abs() > 1e-6) {
            self.flush(send);
        }
        self.start_s = Some(second.start_s);
        (self.step, self.is_measured) = (second.step, second.is_measured);
        self.length_s = second.length_s;
        for (time, n) in second.counts {
            let all = self.counts.entry(*time).or_default();
            *all = all.saturating_add(*n);
        }
    }

    fn flush(&mut self, send: &mut dyn FnMut(&str, Value)) {
        let Some(start_s) = self.start_s.take() else { return };
        let mut all = new_histogram();
        // Quantiles add up all counts.
        let mut left = u64::MAX;
        for (time, n) in std::mem::take(&mut self.counts) {
            let n = n.min(left);
            left -= n;
            all.saturating_record_n(time, n);
        }
        let us = |quantile: f64| all.value_at_quantile(quantile) as f64 / 1000.0;
        let throughput = if self.length_s > 0.0 { all.len() as f64 / self.length_s } else { 0.0 };
        let second = json!({
            "at_s": start_s,
            "step": self.step,
            "variant": self.variant,
            "measured": self.is_measured,
            "throughput": throughput,
            "p50_us": us(0.5),
            "p99_us": us(0.99),
            "max_us": all.max() as f64 / 1000.0,
        });
        send("second", second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_gives_whole_lines_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut tail = Tail::default();
        assert!(tail.lines(&path).is_empty());
        std::fs::write(&path, "one\ntw").unwrap();
        assert_eq!(tail.lines(&path), ["one"]);
        assert!(tail.lines(&path).is_empty());
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail.lines(&path), ["two", "three"]);
    }

    #[test]
    fn nothing_is_sent_that_turns_the_text_of_the_page_around() {
        let check = |data: &Value, expected: &str| {
            assert_eq!(message("happened", data), format!("event: happened\ndata: {expected}\n\n"));
        };
        let text = "a\u{202e}b\u{2066}\u{9b}c\nd";
        check(&json!({ "text": text }), "{\"text\":\"a\u{fffd}b\u{fffd}\u{fffd}c d\"}");
        check(&json!([{ text: 1 }]), "[{\"a\u{fffd}b\u{fffd}\u{fffd}c d\":1}]");
        check(&json!({ "at_s": 1.5, "of": null }), "{\"at_s\":1.5,\"of\":null}");
    }

    #[test]
    fn events_are_reported_in_words_with_variant_and_trial() {
        let check = |line: &str, of: Option<&str>, expected: Option<(&str, Value)>| {
            let mut sent = None;
            send_event(line, of, &mut |_, event| sent = Some(event));
            let sent = sent.map(|event| (event["text"].clone(), event["of"].clone()));
            assert_eq!(sent, expected.map(|(words, of)| (json!(words), of)), "{line}");
        };
        let noted = r#"{"at_ns":1,"unix_ms":1,"event":"noted","message":"a note"}"#;
        check(
            noted,
            Some("a, trial 1, repetition 1"),
            Some(("a note", json!("a, trial 1, repetition 1"))),
        );
        check(noted, None, Some(("a note", Value::Null)));
        check(r#"{"event":"not_known_yet"}"#, None, Some(("not known yet", Value::Null)));
        for line in ["{", "5", r#""x""#, "[]", "null", "true"] {
            check(line, None, None);
        }
        check("{}", None, Some(("", Value::Null)));
    }

    #[test]
    fn kinds_of_a_second_are_put_together() {
        let mut sent = Vec::new();
        let mut seconds = Seconds::default();
        let second = |start_s: f64, kind: &'static str, counts: &'static [(u64, u64)]| {
            SecondOfTimes { step: 1, kind, is_measured: true, start_s, length_s: 1.0, counts }
        };
        let mut send = |name: &str, value: Value| sent.push((name.to_owned(), value));
        seconds.add(&second(5.0, "read", &[(1_000_000, 90)]), &mut send);
        seconds.add(&second(5.0, "write", &[(5_000_000, 10)]), &mut send);
        seconds.add(&second(6.0, "read", &[(1_000_000, 1)]), &mut send);
        seconds.flush(&mut send);
        seconds.flush(&mut send);
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[0].1["throughput"], 100.0);
        assert!((sent[0].1["p50_us"].as_f64().unwrap() - 1000.0).abs() < 1.0);
        assert!((sent[0].1["p99_us"].as_f64().unwrap() - 5000.0).abs() < 5.0);
        assert_eq!(sent[1].1["at_s"], 6.0);
        // Lines of the same second take no further memory.
        let mut seconds = Seconds::default();
        for _ in 0..1_000 {
            seconds.add(&second(5.0, "read", &[(1_000_000, 1), (2_000_000, 1)]), &mut |_, _| ());
        }
        assert_eq!(seconds.counts, [(1_000_000, 1_000), (2_000_000, 1_000)].into());
        // Nor do their numbers overflow.
        let most = &[(1_000_000, u64::MAX), (2_000_000, u64::MAX), (3_000_000, 1)];
        seconds.add(&second(5.0, "read", most), &mut |_, _| ());
        let mut sent = Value::Null;
        seconds.flush(&mut |_, value| sent = value);
        assert!((sent["p50_us"].as_f64().unwrap() - 1000.0).abs() < 1.0, "{sent}");
    }
}
