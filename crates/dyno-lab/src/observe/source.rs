//! A source of readings: a thread that reads it on time until it is stopped.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};

use dyno_host::{Probe, Readings, thread_cpu};
use dyno_units::reading::prelude::*;
use dyno_units::{Clock, Nanoseconds};

use super::{Names, Sample};

/// The shortest time over which rates are worth reading.
const SHORTEST: Nanoseconds = Nanoseconds::from_millis(100);

/// The most readings of a source, by name: ten times what a large deployment has.
const READINGS_MOST: usize = 16_384;

const NOTES_MOST: usize = 1000;

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("probes.*.cpu_s_per_s", Cpus, "CPU used by the probe", "CPU time that this probe itself uses, in Dyno's process").worse(),
    reading("probes.*.read_ms", Milliseconds, "time to read the probe", "how long reading this probe took").worse(),
];

pub(super) enum Heard {
    Sample(Sample),
    Note(String),
    Done { source: usize, cpu: Nanoseconds },
}

pub(super) struct Source {
    pub(super) idx: usize,
    pub(super) name: String,
    pub(super) probe: Box<dyn Probe>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) origin: Nanoseconds,
    pub(super) period: Nanoseconds,
    pub(super) told: Told,
}

/// What a source has told so far: what it reads may come from outside, without end.
pub(super) struct Told {
    names: Names,
    n_notes: usize,
    /// Whether readings were left out, and whether that has been noted.
    is_too_much: bool,
    is_noted: bool,
}

impl Default for Told {
    fn default() -> Told {
        Told { names: Names::new(READINGS_MOST), n_notes: 0, is_too_much: false, is_noted: false }
    }
}

impl Source {
    fn take_notes(&mut self) -> Vec<String> {
        let mut notes = self.probe.take_notes();
        notes.truncate(NOTES_MOST - self.told.n_notes);
        self.told.n_notes += notes.len();
        if self.told.is_too_much && !std::mem::replace(&mut self.told.is_noted, true) {
            notes.push(format!(
                "the probe `{}` has more than {READINGS_MOST} readings by name, or names that are too \
                 long: those are not recorded",
                self.name
            ));
        }
        notes
    }

    /// Reads until it is told to stop, or nobody listens any more.
    pub(super) fn run(mut self, stopped: &Receiver<()>, send: &Sender<Heard>) {
        let every = self.probe.every().max(SHORTEST).max(self.period);
        let mut due = self.origin;
        let mut before: Option<(Nanoseconds, Nanoseconds)> = None;
        loop {
            let pause = due.saturating_sub(self.clock.now()).to_duration();
            let is_stopped = stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
            let now = self.clock.now();
            // The last interval may be shorter than a second, or have ended this very moment.
            if is_stopped && before.is_some_and(|(at, _)| now.saturating_sub(at) < SHORTEST) {
                break;
            }
            let sample = self.read(now, &mut before);
            let notes = self.take_notes();
            let has_ear = notes.into_iter().all(|note| send.send(Heard::Note(note)).is_ok())
                && send.send(Heard::Sample(sample)).is_ok();
            // One that was told to stop while it read, and may be slow, reads no more.
            if is_stopped || !has_ear || stopped.try_recv() != Err(TryRecvError::Empty) {
                break;
            }
            due = next_due(self.origin, every, self.clock.now());
        }
        let _ = send.send(Heard::Done { source: self.idx, cpu: thread_cpu() });
    }

    fn read(&mut self, now: Nanoseconds, last: &mut Option<(Nanoseconds, Nanoseconds)>) -> Sample {
        let mut values = Readings::new();
        self.probe.read(now, &mut values);
        // A server's number times the factor of its unit may be none; nor can messages carry it.
        values.retain(|_, value| value.is_finite());
        let is_too_much = self.told.names.keep(&mut values);
        let took = self.clock.now().saturating_sub(now);
        values.insert(format!("probes.{}.read_ms", self.name), took.as_secs_f64() * 1e3);
        // What reading costs is told with the next reading, so that all of it is told.
        let cpu = thread_cpu();
        if let Some((at, cpu_then)) = *last {
            let seconds = now.saturating_sub(at).as_secs_f64();
            let used = cpu.saturating_sub(cpu_then).as_secs_f64();
            if seconds > 0.0 {
                values.insert(format!("probes.{}.cpu_s_per_s", self.name), used / seconds);
            }
        }
        *last = Some((now, cpu));
        self.told.is_too_much |= is_too_much;
        Sample { at: now, source: self.idx, values }
    }
}

/// The first boundary after `now`: one that was missed is not made up for.
fn next_due(origin: Nanoseconds, every: Nanoseconds, now: Nanoseconds) -> Nanoseconds {
    let n_passed = now.saturating_sub(origin).0 / every.0.max(1);
    origin + Nanoseconds((n_passed + 1).saturating_mul(every.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe of a server that never says the same twice.
    struct Endless(usize);

    impl Probe for Endless {
        fn registered(&self) -> std::borrow::Cow<'static, [Reading]> {
            std::borrow::Cow::Borrowed(&[])
        }

        fn name(&self) -> &str {
            "endless"
        }

        fn read(&mut self, _: Nanoseconds, readings: &mut Readings) {
            self.0 += 1;
            readings.extend((0..1000).map(|nth| (format!("probe.endless.{}-{nth}", self.0), 1.0)));
            readings.insert("infinite".to_owned(), f64::INFINITY);
        }

        fn take_notes(&mut self) -> Vec<String> {
            (0..100).map(|nth| format!("{}-{nth}", self.0)).collect()
        }
    }

    #[test]
    fn what_a_source_tells_is_bounded() {
        let clock: Arc<dyn Clock> = Arc::new(dyno_units::ManualClock::new());
        let mut source = Source {
            idx: 0,
            name: "endless".to_owned(),
            probe: Box::new(Endless(0)),
            clock,
            origin: Nanoseconds::ZERO,
            period: Nanoseconds::SECOND,
            told: Told::default(),
        };
        let (mut names, mut notes) = (std::collections::BTreeSet::new(), Vec::new());
        for second in 0..40 {
            let sample = source.read(Nanoseconds::from_secs(second), &mut None);
            assert!(sample.values.values().all(|value| value.is_finite()));
            names.extend(sample.values.into_keys().filter(|name| name.starts_with("probe.")));
            notes.extend(source.take_notes());
        }
        assert_eq!(names.len(), READINGS_MOST);
        assert_eq!(notes.len(), NOTES_MOST + 1);
        let about: Vec<_> = notes.iter().filter(|note| note.contains("not recorded")).collect();
        assert_eq!(about.len(), 1, "{about:?}");
    }

    #[test]
    fn missed_boundaries_are_left_out() {
        let check = |now_ms: u64, expected_ms: u64| {
            let ms = Nanoseconds::from_millis;
            assert_eq!(next_due(ms(500), ms(1000), ms(now_ms)), ms(expected_ms), "{now_ms}");
        };
        check(500, 1500);
        check(1499, 1500);
        check(1500, 2500);
        check(4200, 4500);
        check(0, 1500);
    }
}
