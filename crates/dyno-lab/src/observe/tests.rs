//! Tests the observer with probes of known behaviour.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_host::{HostSpec, Probe, Readings};
use dyno_units::reading::prelude::*;

use super::*;

/// A clock of real time that begins when it is made.
struct RealClock(AtomicU64);

impl RealClock {
    fn start() -> Arc<dyn Clock> {
        let clock = RealClock(AtomicU64::new(0));
        clock.0.store(monotonic_ns(), Ordering::Relaxed);
        Arc::new(clock)
    }
}

fn monotonic_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").expect("Linux tells");
    let seconds: f64 = text.split(' ').next().expect("a number").parse().expect("a number");
    (seconds * 1e9) as u64
}

impl Clock for RealClock {
    fn now(&self) -> Nanoseconds {
        Nanoseconds(monotonic_ns() - self.0.load(Ordering::Relaxed))
    }

    fn unix_millis(&self) -> u64 {
        0
    }

    fn sleep_until(&self, _until: Nanoseconds) {}
}

const READINGS: &[Reading] =
    &[reading("test.*", Unit::other("reads"), "test", "a reading of a test")];

/// Counts its reads; waits in each until it may go on.
struct Counting {
    name: &'static str,
    n_reads: f64,
    gate: Option<Arc<Mutex<()>>>,
    notes: Vec<String>,
}

impl Counting {
    fn boxed(name: &'static str, gate: Option<Arc<Mutex<()>>>) -> Box<Counting> {
        Box::new(Counting { name, n_reads: 0.0, gate, notes: vec![format!("{name} began")] })
    }
}

impl Probe for Counting {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, _now: Nanoseconds, readings: &mut Readings) {
        if let Some(gate) = &self.gate {
            let _open = gate.lock();
        }
        self.n_reads += 1.0;
        readings.insert(format!("test.{}", self.name), self.n_reads);
    }

    fn name(&self) -> &str {
        self.name
    }

    fn every(&self) -> Nanoseconds {
        Nanoseconds::from_millis(100)
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

/// Takes samples until a reading has come so often.
fn until(observer: &Observer, series: &mut Series, name: &str, n_times: usize) -> Vec<String> {
    let mut notes = Vec::new();
    while series.column(name).len() < n_times {
        let Observed { samples, notes: more, .. } = observer.take();
        samples.into_iter().for_each(|sample| series.push(sample));
        notes.extend(more);
        std::thread::yield_now();
    }
    notes
}

#[test]
fn a_probe_that_hangs_delays_nobody_and_is_left_behind() {
    let clock = RealClock::start();
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().expect("nobody has it");
    let watched = Watched::host(&HostSpec::default(), &clock)
        .with(Counting::boxed("quick", None))
        .with(Counting::boxed("slow", Some(Arc::clone(&gate))));
    let observer = Observer::start(watched, Arc::clone(&clock), clock.now()).expect("it starts");
    let mut series = Series::default();
    let notes = until(&observer, &mut series, "test.quick", 4);
    assert!(notes.contains(&"quick began".to_owned()), "{notes:?}");
    assert_eq!(series.column("test.slow"), []);
    assert!(series.column("test.quick").windows(2).all(|pair| pair[0] < pair[1]));

    let observed = observer.finish();
    assert!(observed.notes.iter().any(|note| note.contains("`slow` did not finish")));
    assert!(!observed.notes.iter().any(|note| note.contains("`quick`")), "{:?}", observed.notes);
    assert!(observed.cost.cpu > Nanoseconds::ZERO && observed.cost.wall >= observed.cost.cpu);
    drop(closed);
}

#[test]
fn every_reading_has_a_meaning_and_every_source_tells_its_cost() {
    let clock = RealClock::start();
    let watched = Watched::host(&HostSpec::default(), &clock)
        .with(Counting::boxed("twin", None))
        .with(Counting::boxed("twin", None));
    let observer = Observer::start(watched, Arc::clone(&clock), clock.now()).expect("it starts");
    let mut series = Series::default();
    until(&observer, &mut series, "probes.twin-2.cpu_s_per_s", 1);
    until(&observer, &mut series, "cpu.busy_s_per_s", 1);
    let registry = observer.registry().clone();
    observer.finish().samples.into_iter().for_each(|sample| series.push(sample));
    let names: Vec<&String> = series.names().collect();
    for expected in ["probes.host.cpu_s_per_s", "probes.twin.read_ms", "cpu.busy_s_per_s"] {
        assert!(names.iter().any(|name| *name == expected), "{expected} is not in {names:?}");
    }
    let meant = registry.meanings(series.names());
    let without: Vec<_> = names.iter().filter(|name| !meant.contains_key(**name)).collect();
    assert!(without.is_empty(), "{without:?} have no meaning");
    assert_eq!(meant["probes.twin.read_ms"].unit, Milliseconds);
}
