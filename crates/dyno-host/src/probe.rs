//! Probes of the kernel, read once a second by a [`Sampler`]: each file has a probe with its
//! parsers and table of readings. Missing or garbled files give no readings, and never fail.

mod arc;
mod cgroups;
mod cpu;
mod data;
mod disk;
mod filesystem;
mod frequency;
mod io_limit;
mod load;
mod memory;
mod network;
mod pressure;
mod processes;
mod responsiveness;
mod source;
mod spec;
mod user;

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

pub(crate) use cpu::{CpuCounters, busy, stolen, sum};
pub use data::{DataFiles, FileKind};
pub use processes::{ListedThread, ProcessGroup, ThreadGroup, ThreadGroups, ThreadListing};
pub use spec::{HOST_PROBES, HostSpec, Sampler, host_readings};
pub use user::{CommandProbe, Failures, ProbeCommand, USER_READINGS, reading_name};

/// By name; unavailable readings are missing.
pub type Readings = BTreeMap<String, f64>;

pub trait Probe: Send {
    fn registered(&self) -> Cow<'static, [Reading]>;

    /// Adds what is available. Rates are since the last read, so the first read gives none.
    fn read(&mut self, now: Nanoseconds, readings: &mut Readings);

    /// For messages and readings of its cost: the first word of its readings.
    fn name(&self) -> &str {
        match self.registered() {
            Cow::Borrowed([first, ..]) => first.id.split('.').next().unwrap_or("probe"),
            _ => "probe",
        }
    }

    /// Between reads, if it has its own thread.
    fn every(&self) -> Nanoseconds {
        Nanoseconds::SECOND
    }

    fn command(&self) -> Option<Arc<ProbeCommand>> {
        None
    }

    /// For the user, since the last call, each once: for example that it cannot be read.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// A probe of counters, which keeps those of the last read.
struct Counting<C, L, R> {
    name: &'static str,
    readings: &'static [Reading],
    look: L,
    rates: R,
    before: Option<(Nanoseconds, C)>,
}

/// `look` adds what is known at once, and finds the counters; `rates` gets those of the last read,
/// those of this one, and the seconds in between.
fn counting<C: Send + 'static>(
    (name, readings): (&'static str, &'static [Reading]),
    look: impl FnMut(&mut Readings) -> Option<C> + Send + 'static,
    rates: impl FnMut(&C, &C, f64, &mut Readings) + Send + 'static,
) -> Box<dyn Probe> {
    Box::new(Counting { name, readings, look, rates, before: None })
}

fn levels(
    table: (&'static str, &'static [Reading]),
    look: impl FnMut(&mut Readings) -> Option<()> + Send + 'static,
) -> Box<dyn Probe> {
    counting(table, look, |_, _, _, _| {})
}

impl<C, L, R> Probe for Counting<C, L, R>
where
    C: Send,
    L: FnMut(&mut Readings) -> Option<C> + Send,
    R: FnMut(&C, &C, f64, &mut Readings) + Send,
{
    fn registered(&self) -> Cow<'static, [Reading]> {
        self.readings.into()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let counters = (self.look)(readings);
        if let (Some((at, before)), Some(counters)) = (&self.before, &counters)
            && let Some(seconds) = seconds_since(Some(*at), now)
        {
            (self.rates)(before, counters, seconds, readings);
        }
        self.before = counters.map(|counters| (now, counters));
    }
}

fn insert(readings: &mut Readings, name: impl Into<String>, value: Option<f64>) {
    readings.extend(value.map(|value| (name.into(), value)));
}

/// `None` for the first read, or if no time has passed.
fn seconds_since(before: Option<Nanoseconds>, now: Nanoseconds) -> Option<f64> {
    let seconds = now.saturating_sub(before?).as_secs_f64();
    (seconds > 0.0).then_some(seconds)
}

/// Counters that step back, or restart at 0, have no growth.
fn growth(before: u64, now: u64) -> f64 {
    now.saturating_sub(before) as f64
}

fn grown(before: Option<u64>, now: Option<u64>) -> Option<f64> {
    Some(growth(before?, now?))
}

#[cfg(test)]
mod tests;
