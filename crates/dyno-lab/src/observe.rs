//! Reads the probes once a second while a step runs, on the same boundaries as the load's intervals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use dyno_host::Sampler;
use dyno_units::{Clock, Nanoseconds};

/// One second's readings, and when they were read.
pub(crate) type Sample = (Nanoseconds, BTreeMap<String, f64>);

/// The shortest time over which rates are worth reading.
const SHORTEST: Nanoseconds = Nanoseconds::from_millis(100);

/// The thread that reads the probes.
pub(crate) struct Observer {
    stop: Sender<()>,
    samples: Receiver<Sample>,
    thread: JoinHandle<Cost>,
}

/// What the probes cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cpu: Nanoseconds,
    pub(crate) wall: Nanoseconds,
}

impl Observer {
    /// Starts reading at `origin` and every second after it. The first reading sets the counters
    /// from which the next one derives rates.
    pub(crate) fn start(
        mut sampler: Sampler,
        clock: Arc<dyn Clock>,
        origin: Nanoseconds,
    ) -> std::io::Result<Observer> {
        let (stop, stopped) = channel();
        let (send, samples) = channel();
        let thread =
            std::thread::Builder::new().name("dyno-probes".to_owned()).spawn(move || {
                let cost_before = sampler.cost();
                let mut latest = origin;
                for tick in 0.. {
                    let due = origin + Nanoseconds::from_secs(tick);
                    let pause = due.saturating_sub(clock.now()).to_duration();
                    let is_stopped = stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
                    let now = clock.now();
                    // The last interval may be shorter than a second, or have ended this very moment.
                    if is_stopped && now.saturating_sub(latest) < SHORTEST {
                        break;
                    }
                    latest = now;
                    if send.send((now, sampler.read(now))).is_err() || is_stopped {
                        break;
                    }
                }
                Cost {
                    cpu: sampler.cost().saturating_sub(cost_before),
                    wall: clock.now().saturating_sub(origin),
                }
            })?;
        Ok(Observer { stop, samples, thread })
    }

    /// The samples that have come in since the last call.
    pub(crate) fn take(&self) -> Vec<Sample> {
        self.samples.try_iter().collect()
    }

    /// Stops reading; returns the samples not yet taken and what all of it cost.
    pub(crate) fn finish(self) -> (Vec<Sample>, Cost) {
        // The thread may have ended already; then there is nothing to stop.
        let _ = self.stop.send(());
        let cost = self.thread.join().expect("probes do not panic");
        (self.samples.try_iter().collect(), cost)
    }
}

/// Lays samples beside intervals (start and length): the sample read nearest to the end of an
/// interval, and less than half its length away from it, is that interval's. Intervals and samples
/// are on the same clock. Values keep six significant digits.
pub(crate) fn align(
    intervals: &[(Nanoseconds, Nanoseconds)],
    samples: &[Sample],
) -> BTreeMap<String, Vec<Option<f64>>> {
    let mut columns: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    for (idx, &(start, length)) in intervals.iter().enumerate() {
        let end = start + length;
        let distance = |at: Nanoseconds| at.saturating_sub(end).0 + end.saturating_sub(at).0;
        let nearest = samples.iter().min_by_key(|(at, _)| distance(*at));
        let Some((_, values)) = nearest.filter(|(at, _)| distance(*at) * 2 < length.0) else {
            continue;
        };
        for (name, &value) in values {
            let column = columns.entry(name.clone()).or_insert_with(|| vec![None; intervals.len()]);
            column[idx] = Some(six_digits(value));
        }
    }
    columns
}

/// Rounds to six significant digits, so that a record of many hours stays small.
pub(crate) fn six_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    // Powers of ten with positive exponents are exact, those with negative ones are not.
    let digits = value.abs().log10().floor() as i32 - 5;
    let power = 10_f64.powi(digits.abs());
    let rounded =
        if digits > 0 { (value / power).round() * power } else { (value * power).round() / power };
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_are_kept() {
        let check = |value: f64, expected: f64| assert_eq!(six_digits(value), expected);
        check(123_456_789.0, 123_457_000.0);
        check(0.000_123_456_78, 0.000_123_457);
        check(-2.5, -2.5);
        check(0.0, 0.0);
        check(1.234_567_8e15, 1.234_57e15);
        check(f64::MIN_POSITIVE, f64::MIN_POSITIVE);
    }

    #[test]
    fn a_sample_belongs_to_the_interval_it_ends() {
        let s = Nanoseconds::from_secs;
        let sample = |at: Nanoseconds, value: f64| (at, BTreeMap::from([("x".to_owned(), value)]));
        let late = Nanoseconds::from_millis(30);
        let samples = [
            sample(s(10), 0.0),
            sample(s(11) + late, 1.0),
            sample(s(13), 3.0),
            sample(s(13) + Nanoseconds::from_millis(450), 4.0),
        ];
        let second = |start: u64| (s(start), s(1));
        let short = (s(13), Nanoseconds::from_millis(400));
        let columns = align(&[second(10), second(11), second(12), short], &samples);
        assert_eq!(columns["x"], [Some(1.0), None, Some(3.0), Some(4.0)]);
    }
}
