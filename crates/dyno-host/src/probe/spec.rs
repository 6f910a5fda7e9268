//! What of this host is watched, and the probes that follow from it.

use std::path::Path;
use std::sync::Arc;

use dyno_units::Clock;

use super::cgroups::CgroupsProbe;
use super::data::DataProbe;
use super::filesystem::FilesystemProbe;
use super::frequency::FrequencyProbe;
use super::responsiveness::ResponsivenessProbe;
use super::{DataFiles, Probe, Sampler, ThreadGroups, ThreadKinds, ThreadListing, usual_groups};
use crate::storage::{Disk, Mount, nearest_existing};

/// What of this host is watched.
#[derive(Clone, Debug, Default)]
pub struct HostSpec {
    /// The server's own processes; empty where it is on another host, or inside Dyno.
    pub server_pids: Vec<i32>,
    /// Its data, where they can be seen.
    pub data: Option<DataFiles>,
    /// How the kinds of its threads are told, where their names do.
    pub threads: Option<ThreadGroups>,
    /// What the server itself says of its threads; empty where nobody asks it.
    pub listing: ThreadListing,
}

impl HostSpec {
    /// Probes that may take long, start processes, or are read less often than once a second: each
    /// wants a thread of its own.
    pub fn slow_probes(&self, clock: &Arc<dyn Clock>) -> Vec<Box<dyn Probe>> {
        let mut probes: Vec<Box<dyn Probe>> = vec![
            Box::new(ResponsivenessProbe::new(Arc::clone(clock))),
            Box::new(FrequencyProbe::new(Path::new("/"))),
        ];
        if let Some(files) = &self.data {
            probes.push(Box::new(DataProbe::new(files.clone(), Arc::clone(clock))));
        }
        probes
    }
}

impl Sampler {
    /// All probes of this host that are read together. The groups of processes are `server`, its
    /// processes with all their descendants (none where it has none), and `generator`, the calling
    /// process.
    pub fn of(spec: &HostSpec) -> Sampler {
        let root = Path::new("/");
        let disk = spec.data.as_ref().and_then(|data| disk_of(root, &data.root));
        let groups = usual_groups(&spec.server_pids);
        let kinds = ThreadKinds { names: spec.threads, listing: spec.listing.clone() };
        let mut sampler = Sampler::base(&root.join("proc"), groups, &kinds, disk);
        sampler.add(Box::new(CgroupsProbe::new(root, spec.server_pids.first().copied())));
        if let Some(data) = &spec.data {
            sampler.add(Box::new(FilesystemProbe::new(data.root.clone())));
        }
        sampler
    }
}

/// Name of the disk that holds a folder; `root` holds `proc` and `sys`.
fn disk_of(root: &Path, folder: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let mount = Mount::of(&mounts, &nearest_existing(folder)?)?;
    Disk::of(&root.join("sys"), &mount).name
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use dyno_units::{ManualClock, Nanoseconds};

    use super::super::{FileKind, Readings};
    use super::*;

    #[test]
    fn this_host_tells_of_a_data_folder() {
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
