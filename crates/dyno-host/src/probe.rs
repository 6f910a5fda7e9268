//! What the kernel tells every second: probes and the sampler that reads them all.
//!
//! Main type: `Sampler`. Every probe is one file with the same shape: a struct that holds its open
//! files and the counters of the read before, pure parsers over text, and a legend. A file that is
//! missing or garbled gives no readings; it is never a failure.

mod cpu;
mod disk;
mod load;
mod memory;
mod network;
mod pressure;
mod processes;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use dyno_units::Nanoseconds;
use rustix::time::{ClockId, clock_gettime};

pub(crate) use cpu::{CpuCounters, busy, stolen, sum};
pub(crate) use memory::meminfo_bytes;
pub use processes::{ProcessGroup, server_cpu_total};

/// Readings of one moment, by name. A reading that could not be had is not in it.
pub type Readings = BTreeMap<String, f64>;

/// Reads one thing of the kernel once per interval.
pub trait Probe: Send {
    /// What its readings mean.
    fn legend(&self) -> &'static [ReadingLegend];

    /// Reads, and puts into `readings` what can be told. Rates are over the time since the read
    /// before, so the first read gives none.
    fn read(&mut self, now: Nanoseconds, readings: &mut Readings);
}

/// What one kind of reading means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingLegend {
    /// Its name, with `*` for a device, an interface or a group of processes.
    pub pattern: &'static str,
    /// Its unit, such as `bytes/s`.
    pub unit: &'static str,
    /// One sentence for people.
    pub meaning: &'static str,
}

/// A shorthand that keeps the legends of the probes readable as tables.
const fn legend(pattern: &'static str, unit: &'static str, meaning: &'static str) -> ReadingLegend {
    ReadingLegend { pattern, unit, meaning }
}

impl ReadingLegend {
    /// Whether a reading of this name is of this kind.
    pub fn is_for(&self, name: &str) -> bool {
        match self.pattern.split_once('*') {
            None => self.pattern == name,
            Some((head, tail)) => {
                name.len() > head.len() + tail.len()
                    && name.starts_with(head)
                    && name.ends_with(tail)
            }
        }
    }
}

/// What every reading means, in the order in which people look for it.
pub fn readings_legend() -> Vec<ReadingLegend> {
    [
        cpu::LEGEND,
        processes::LEGEND,
        REST_LEGEND,
        load::LEGEND,
        pressure::LEGEND,
        memory::LEGEND,
        disk::LEGEND,
        network::LEGEND,
    ]
    .concat()
}

/// What a reading of this name means. The exact names come first: `disk.writes_per_s` is the
/// total, and not of a device.
pub fn reading_legend(name: &str) -> Option<ReadingLegend> {
    let all = readings_legend();
    let exact = all.iter().find(|legend| legend.pattern == name);
    exact.or_else(|| all.iter().find(|legend| legend.is_for(name))).copied()
}

const REST_LEGEND: &[ReadingLegend] = &[legend(
    "rest.cpu_s_per_s",
    "CPU s/s",
    "CPU time of everything else: the machine's busy time without the server and the generator",
)];

/// Reads all probes, and measures what that costs.
pub struct Sampler {
    probes: Vec<Box<dyn Probe>>,
    group_names: Vec<String>,
    cost: Nanoseconds,
}

impl Sampler {
    /// All probes of this host. The groups of processes are `server`, these processes with all
    /// their descendants (none where the list is empty), and `generator`, the calling process.
    pub fn new(server_pids: &[i32]) -> Sampler {
        Sampler::with_groups(Path::new("/proc"), usual_groups(server_pids))
    }

    /// All probes, with `/proc` at another place and these groups of processes.
    pub fn with_groups(proc_root: &Path, groups: Vec<ProcessGroup>) -> Sampler {
        let group_names = groups.iter().map(|group| group.name.clone()).collect();
        let probes: Vec<Box<dyn Probe>> = vec![
            Box::new(cpu::CpuProbe::new(proc_root)),
            Box::new(processes::ProcessesProbe::new(proc_root, groups)),
            Box::new(load::LoadProbe::new(proc_root)),
            Box::new(pressure::PressureProbe::new(proc_root)),
            Box::new(memory::MemoryProbe::new(proc_root)),
            Box::new(disk::DiskProbe::new(proc_root)),
            Box::new(network::NetworkProbe::new(proc_root)),
        ];
        Sampler { probes, group_names, cost: Nanoseconds::ZERO }
    }

    /// Adds a probe that is read with the others.
    pub fn add(&mut self, probe: Box<dyn Probe>) {
        self.probes.push(probe);
    }

    /// Reads all probes. Rates are over the time since the read before.
    pub fn read(&mut self, now: Nanoseconds) -> Readings {
        let begin = thread_cpu_time();
        let mut readings = Readings::new();
        for probe in &mut self.probes {
            probe.read(now, &mut readings);
        }
        self.add_rest(&mut readings);
        self.cost += thread_cpu_time().saturating_sub(begin);
        readings
    }

    /// What the readings of all its probes mean.
    pub fn legend(&self) -> Vec<ReadingLegend> {
        self.probes
            .iter()
            .map(|probe| probe.legend())
            .chain([REST_LEGEND])
            .flatten()
            .copied()
            .collect()
    }

    /// CPU time that all reads so far have taken.
    pub fn cost(&self) -> Nanoseconds {
        self.cost
    }

    /// The machine's busy time that no group of processes explains.
    fn add_rest(&self, readings: &mut Readings) {
        let Some(busy) = readings.get("cpu.busy_s_per_s").copied() else { return };
        let mut explained = 0.0;
        for name in &self.group_names {
            // A group whose share is unknown makes the rest unknown.
            let Some(share) = readings.get(&format!("{name}.cpu_s_per_s")) else { return };
            explained += share;
        }
        // The two come from clocks of different grain and can disagree by a few ticks.
        readings.insert("rest.cpu_s_per_s".into(), (busy - explained).max(0.0));
    }
}

/// The server, if it is on this host, and the generator.
fn usual_groups(server_pids: &[i32]) -> Vec<ProcessGroup> {
    let mut groups = Vec::new();
    if !server_pids.is_empty() {
        groups.push(ProcessGroup {
            name: "server".into(),
            pids: server_pids.to_vec(),
            has_descendants: true,
        });
    }
    groups.push(ProcessGroup {
        name: "generator".into(),
        pids: vec![rustix::process::getpid().as_raw_nonzero().get()],
        // The server is a child of Dyno, but no part of the generator.
        has_descendants: false,
    });
    groups
}

/// CPU time of the calling thread.
fn thread_cpu_time() -> Nanoseconds {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanoseconds(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// The load average of the last minute, from the text of `/proc/loadavg`.
pub(crate) fn load_average(text: &str) -> Option<f64> {
    load::parse(text).0
}

/// Seconds since the read before; none for the first read, or if no time has passed.
fn seconds_since(before: Option<Nanoseconds>, now: Nanoseconds) -> Option<f64> {
    let seconds = now.saturating_sub(before?).as_secs_f64();
    (seconds > 0.0).then_some(seconds)
}

/// Growth of a counter. The kernel's counters can step back a little, or start anew: no growth.
fn growth(before: u64, now: u64) -> f64 {
    now.saturating_sub(before) as f64
}

/// The numbers of a line, as far as they are numbers.
fn numbers(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split_ascii_whitespace().map_while(|word| word.parse().ok())
}

#[cfg(test)]
mod tests;
