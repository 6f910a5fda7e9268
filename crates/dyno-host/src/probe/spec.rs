//! What is observed on this host, and by which probes.

use std::path::Path;
use std::sync::Arc;

use dyno_units::reading::prelude::*;
use dyno_units::{Clock, Nanoseconds, Registry};

use super::processes::{ProcessesProbe, ThreadKinds};
use super::{
    DataFiles, Probe, ProcessGroup, Readings, ThreadGroups, ThreadListing, USER_READINGS, arc,
    cgroups, cpu, data, disk, filesystem, frequency, io_limit, load, memory, network, pressure,
    processes, responsiveness,
};
use crate::storage::{Disk, Mount, nearest_existing};

pub(super) struct Surroundings<'a> {
    /// Holds `proc` and `sys`.
    pub(super) root: &'a Path,
    pub(super) proc_root: &'a Path,
    pub(super) groups: &'a [ProcessGroup],
    pub(super) kinds: &'a ThreadKinds,
    pub(super) data_disk: Option<&'a str>,
    pub(super) data: Option<&'a DataFiles>,
    /// A process of the server.
    pub(super) server: Option<i32>,
    pub(super) clock: Option<&'a Arc<dyn Clock>>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Thread {
    /// Shared, every second: it may not block.
    Shared,
    /// Own: it may take long, start processes, or be read less often.
    Own,
}

/// `None` if its subject is not visible here.
type Make = fn(&Surroundings<'_>) -> Option<Box<dyn Probe>>;

/// Readings, thread, and how it is made.
#[rustfmt::skip]
pub(super) const PROBES: &[(&[Reading], Thread, Make)] = &[
    (cpu::READINGS, Thread::Shared, |on| Some(cpu::probe(on.proc_root, rustix::param::clock_ticks_per_second()))),
    (processes::READINGS, Thread::Shared, |on| Some(Box::new(ProcessesProbe::new(on.proc_root, on.groups.to_vec(), on.kinds)))),
    (load::READINGS, Thread::Shared, |on| Some(load::probe(on.proc_root))),
    (pressure::READINGS, Thread::Shared, |on| Some(pressure::probe(on.proc_root))),
    (memory::READINGS, Thread::Shared, |on| Some(memory::probe(on.proc_root))),
    (disk::READINGS, Thread::Shared, |on| Some(disk::probe(on.proc_root, on.data_disk.map(str::to_owned)))),
    (io_limit::READINGS, Thread::Shared, |on| io_limit::probe(on.root, on.data_disk?, on.server)),
    (network::READINGS, Thread::Shared, |on| Some(network::probe(on.proc_root))),
    (cgroups::READINGS, Thread::Shared, |on| Some(cgroups::probe(on.root, on.server))),
    (filesystem::READINGS, Thread::Shared, |on| Some(filesystem::probe(on.data?.root.clone()))),
    (arc::READINGS, Thread::Shared, |on| Some(arc::probe(on.proc_root))),
    (responsiveness::READINGS, Thread::Own, |on| Some(Box::new(responsiveness::ResponsivenessProbe::new(Arc::clone(on.clock?))))),
    (frequency::READINGS, Thread::Own, |on| Some(frequency::probe(on.root))),
    (data::READINGS, Thread::Own, |on| Some(Box::new(data::DataProbe::new(on.data?.clone(), Arc::clone(on.clock?))))),
];

impl Surroundings<'_> {
    pub(super) fn probes(&self, thread: Thread) -> Vec<Box<dyn Probe>> {
        let own = PROBES.iter().filter(|(_, on, _)| *on == thread);
        own.filter_map(|(.., make)| make(self)).collect()
    }
}

/// Those with their own threads: each can be turned off.
pub const HOST_PROBES: [&str; 3] = ["responsiveness", "frequency", "data"];

#[derive(Clone, Debug, Default)]
pub struct HostSpec {
    /// Empty if it is on another host, or inside Dyno.
    pub server_pids: Vec<i32>,
    pub data: Option<DataFiles>,
    /// The disk under its data, such as `loop0`, if the mount does not tell: under ZFS.
    pub data_disk: Option<String>,
    pub threads: Option<ThreadGroups>,
    /// Empty if the server is not asked.
    pub listing: ThreadListing,
    /// Of further members, a group for each.
    pub members: Vec<ProcessGroup>,
}

impl HostSpec {
    /// Probes with their own threads: slow ones, and those that start processes or are read seldom.
    pub fn slow_probes(&self, clock: &Arc<dyn Clock>) -> Vec<Box<dyn Probe>> {
        self.with(Some(clock), |host| host.probes(Thread::Own))
    }

    fn with<T>(
        &self,
        clock: Option<&Arc<dyn Clock>>,
        job: impl FnOnce(&Surroundings<'_>) -> T,
    ) -> T {
        let root = Path::new("/");
        let mounted = || self.data.as_ref().and_then(|data| disk_of(root, &data.root));
        let data_disk = self.data_disk.clone().or_else(mounted);
        job(&Surroundings {
            root,
            proc_root: &root.join("proc"),
            groups: &[usual_groups(&self.server_pids), self.members.clone()].concat(),
            kinds: &ThreadKinds { names: self.threads, listing: self.listing.clone() },
            data_disk: data_disk.as_deref(),
            data: self.data.as_ref(),
            server: self.server_pids.first().copied(),
            clock,
        })
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

pub struct Sampler {
    probes: Vec<Box<dyn Probe>>,
    group_names: Vec<String>,
    /// By how much the groups exceeded busy time so far, in CPU s/s, to be subtracted from later
    /// rests; in the order of [`REST_PARTS`].
    owed: [f64; REST_PARTS],
}

/// All, user, system.
const REST_PARTS: usize = 3;

impl Sampler {
    /// Probes that are read together, for the groups `server`, if any, and `generator` (Dyno).
    pub fn of(spec: &HostSpec) -> Sampler {
        spec.with(None, Sampler::on)
    }

    pub(super) fn on(host: &Surroundings<'_>) -> Sampler {
        let group_names = host.groups.iter().map(|group| group.name.clone()).collect();
        let probes = host.probes(Thread::Shared);
        Sampler { probes, group_names, owed: [0.0; REST_PARTS] }
    }

    /// Rates are over the time since the last read.
    pub fn read(&mut self, now: Nanoseconds) -> Readings {
        let mut readings = Readings::new();
        for probe in &mut self.probes {
            probe.read(now, &mut readings);
        }
        self.add_rest(&mut readings);
        readings
    }

    pub fn registered(&self) -> Vec<Reading> {
        let of_probes = self.probes.iter().flat_map(|probe| probe.registered().into_owned());
        of_probes.chain(REST_READINGS.iter().cloned()).collect()
    }

    /// Busy time that no group of processes explains.
    pub(super) fn add_rest(&mut self, readings: &mut Readings) {
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

fn disk_of(root: &Path, folder: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let mount = Mount::of(&mounts, &nearest_existing(folder)?)?;
    Disk::of(&root.join("sys"), &mount).name
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use dyno_units::ManualClock;

    use super::super::FileKind;
    use super::*;

    #[test]
    fn this_host_reports_a_data_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataFiles { root: folder.path().to_owned(), kind: |_| FileKind::Other };
        let own = i32::try_from(std::process::id()).expect("fits");
        let spec = HostSpec { server_pids: vec![own], data: Some(data), ..HostSpec::default() };
        let mut sampler = Sampler::of(&spec);
        sampler.read(Nanoseconds::from_secs(1));
        let mut readings = sampler.read(Nanoseconds::from_secs(2));
        let mut known = sampler.registered();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        for mut probe in spec.slow_probes(&clock) {
            let mut found = Readings::new();
            probe.read(Nanoseconds::from_secs(2), &mut found);
            let is_registered =
                |name: &String| probe.registered().iter().any(|one| one.is_for(name));
            assert!(found.keys().all(is_registered), "{found:?}");
            known.extend(probe.registered().into_owned());
            readings.extend(found);
        }
        for name in ["filesystem.free_bytes", "data.files", "responsiveness.process_ms"] {
            assert!(readings.contains_key(name), "{name} is missing");
        }
        let all = crate::host_readings();
        let is_known =
            |name: &String| all.find(name).is_some() && known.iter().any(|one| one.is_for(name));
        let unknown: Vec<&String> = readings.keys().filter(|name| !is_known(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn the_disk_of_a_folder_is_found() {
        let root = tempfile::tempdir().expect("a folder");
        let make = |path: &str| std::fs::create_dir_all(root.path().join(path)).expect("made");
        make("proc/self");
        make("sys/devices/vda/queue");
        make("sys/dev/block");
        let disk = || disk_of(root.path(), Path::new("/no/such/folder"));
        assert_eq!(disk(), None);
        let mounts = "27 1 254:0 / / rw - ext4 /dev/vda rw\n";
        std::fs::write(root.path().join("proc/self/mountinfo"), mounts).expect("written");
        let link = root.path().join("sys/dev/block/254:0");
        std::os::unix::fs::symlink(PathBuf::from("../../devices/vda"), link).expect("linked");
        assert_eq!(disk().as_deref(), Some("vda"));
    }
}
