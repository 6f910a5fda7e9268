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

use dyno_units::reading::prelude::*;
use dyno_units::{Nanoseconds, Registry};

use crate::process_table::thread_cpu;

pub(crate) use cpu::{CpuCounters, busy, stolen, sum};
pub use data::{DataFiles, FileKind};
pub use processes::{ListedThread, ProcessGroup, ThreadGroup, ThreadGroups, ThreadListing};
pub use spec::{HOST_PROBES, HostSpec};
use spec::{PROBES, Surroundings, Thread};
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

/// In the order of relevance.
pub fn host_readings() -> Registry {
    let of_probes = PROBES.iter().flat_map(|(table, ..)| *table);
    Registry::new(of_probes.chain(REST_READINGS).chain(USER_READINGS).cloned())
}

#[rustfmt::skip]
const REST_READINGS: &[Reading] = &[
    reading("rest.cpu_s_per_s", Cpus, "everything else", "CPU time of everything else, including interrupts and context switches: the machine's busy time without the server, the other members of its deployment, and the generator").chart(Topic::CpuGroup, 3).worse().up(StallCause::OtherProcesses).row(250),
    reading("rest.cpu_user_s_per_s", Cpus, "everything else, user", "user CPU time of everything else, as far as sampled"),
    reading("rest.cpu_system_s_per_s", Cpus, "everything else, system", "system CPU time of everything else, interrupts included, as far as sampled"),
];

/// Also measures its cost.
pub struct Sampler {
    probes: Vec<Box<dyn Probe>>,
    group_names: Vec<String>,
    /// By how much the groups exceeded busy time so far, in CPU s/s, to be subtracted from later
    /// rests; in the order of [`REST_PARTS`].
    owed: [f64; REST_PARTS],
    cost: Nanoseconds,
}

/// All, user, system.
const REST_PARTS: usize = 3;

impl Sampler {
    /// See [`Sampler::of`].
    pub fn new(server_pids: &[i32]) -> Sampler {
        Sampler::of(&HostSpec { server_pids: server_pids.to_vec(), ..HostSpec::default() })
    }

    fn on(host: &Surroundings<'_>) -> Sampler {
        let group_names = host.groups.iter().map(|group| group.name.clone()).collect();
        let probes = host.probes(Thread::Shared);
        Sampler { probes, group_names, owed: [0.0; REST_PARTS], cost: Nanoseconds::ZERO }
    }

    pub fn add(&mut self, probe: Box<dyn Probe>) {
        self.probes.push(probe);
    }

    /// Rates are over the time since the last read.
    pub fn read(&mut self, now: Nanoseconds) -> Readings {
        let begin = thread_cpu();
        let mut readings = Readings::new();
        for probe in &mut self.probes {
            probe.read(now, &mut readings);
        }
        self.add_rest(&mut readings);
        self.cost += thread_cpu().saturating_sub(begin);
        readings
    }

    pub fn registered(&self) -> Vec<Reading> {
        let of_probes = self.probes.iter().flat_map(|probe| probe.registered().into_owned());
        of_probes.chain(REST_READINGS.iter().cloned()).collect()
    }

    pub fn cost(&self) -> Nanoseconds {
        self.cost
    }

    /// Busy time that no group of processes explains.
    fn add_rest(&mut self, readings: &mut Readings) {
        let sum = |names: &[&str]| -> Option<f64> {
            names.iter().map(|name| readings.get(&format!("cpu.{name}_s_per_s")).copied()).sum()
        };
        let parts: [_; REST_PARTS] = [
            ("cpu_s_per_s", sum(&["busy"])),
            ("cpu_user_s_per_s", sum(&["user", "nice"])),
            ("cpu_system_s_per_s", sum(&["system", "irq", "softirq"])),
        ];
        for ((what, busy), owed) in parts.into_iter().zip(&mut self.owed) {
            let share = |name: &String| readings.get(&format!("{name}.{what}")).copied();
            // An unknown share makes the rest unknown.
            let explained: Option<f64> = self.group_names.iter().map(share).sum();
            if let (Some(busy), Some(explained)) = (busy, explained) {
                // The two clocks disagree by a few ticks: what one second lacks, the next has.
                let rest = busy - explained - *owed;
                *owed = (-rest).max(0.0);
                readings.insert(format!("rest.{what}"), rest.max(0.0));
            }
        }
    }
}

/// The server, if on this host, and the generator.
fn usual_groups(server_pids: &[i32]) -> Vec<ProcessGroup> {
    let pids = server_pids.to_vec();
    let server = ProcessGroup { name: "server".into(), pids, has_descendants: true };
    let pids = vec![rustix::process::getpid().as_raw_nonzero().get()];
    // The server is a child of Dyno, but not part of the generator.
    let generator = ProcessGroup { name: "generator".into(), pids, has_descendants: false };
    if server_pids.is_empty() { vec![generator] } else { vec![server, generator] }
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

/// A probe without counters.
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

/// If it is known.
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
