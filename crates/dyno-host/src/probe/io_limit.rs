//! How much of its limit the data disk uses, by control groups. At 100 % the limit binds and
//! requests wait (`data_disk.queue`, `data_disk.await_ms`); how long is not counted by the kernel.

use std::fs;
use std::path::Path;

use dyno_units::reading::prelude::*;

use super::{Probe, Readings, counting, growth, insert};
use crate::cgroup::{Groups, group_folders};
use crate::kernel_text;
use crate::volume::{V1_FILES, V2_WORDS};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("data_disk.limit_used_pct", Percent, "Use of the limit of the data disk", "operations or bytes per second that passed the limit set for the data disk, as a share of that limit; for the most heavily used of its components (reads, writes, bytes read, bytes written); flushes count as writes").chart_if_moving(Topic::Disk, 10).moves(StallCause::Disk, Movement::From(90)),
];

/// Of reads, writes, bytes read and bytes written, in the order of [`V1_FILES`] or [`V2_WORDS`].
type Parts<T> = [T; 4];

/// In the order of [`V2_WORDS`].
const V2_COUNTS: Parts<&str> = ["rbytes", "wbytes", "rios", "wios"];

struct Limited {
    group: Groups,
    /// `7:0`.
    device: String,
}

/// `None` if no control group can limit the server's disk. `root` holds `proc` and `sys`.
pub(super) fn probe(root: &Path, disk: &str, server: Option<i32>) -> Option<Box<dyn Probe>> {
    let device = fs::read_to_string(root.join("sys/block").join(disk).join("dev")).ok()?;
    let v1 = root.join("sys/fs/cgroup/blkio");
    let group = match v1.join(V1_FILES[0].0).exists() {
        true => Groups::V1(v1),
        false => {
            let process = server.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
            let mut all = group_folders(root, &process).into_iter();
            Groups::V2(all.find(|folder| folder.join("io.max").exists())?)
        }
    };
    let limited = Limited { group, device: device.trim().to_owned() };
    let look = move |_: &mut Readings| {
        let limits = limited.limits();
        limits.iter().any(Option::is_some).then(|| Some((limits, limited.counts()?))).flatten()
    };
    Some(counting(
        ("data_disk", READINGS),
        look,
        |(_, before), (limits, now), seconds, readings| {
            let used = limits.iter().zip(before.iter().zip(now)).filter_map(|(limit, (a, b))| {
                let limit = limit.filter(|limit| *limit > 0)?;
                Some(growth(*a, *b) / seconds / limit as f64 * 100.0)
            });
            insert(readings, "data_disk.limit_used_pct", used.reduce(f64::max));
        },
    ))
}

impl Limited {
    fn line<'t>(&self, text: &'t str) -> Option<&'t str> {
        kernel_text::value(text, &self.device, ' ')
    }

    fn limits(&self) -> Parts<Option<u64>> {
        match &self.group {
            Groups::V1(folder) => V1_FILES.map(|(file, _)| {
                let text = fs::read_to_string(folder.join(file)).ok()?;
                self.line(&text)?.trim().parse().ok()
            }),
            Groups::V2(folder) => {
                let text = fs::read_to_string(folder.join("io.max")).unwrap_or_default();
                V2_WORDS.map(|(word, _)| value(self.line(&text)?, word))
            }
        }
    }

    fn counts(&self) -> Option<Parts<u64>> {
        match &self.group {
            Groups::V1(folder) => {
                let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
                let operations = read("blkio.throttle.io_serviced")?;
                let bytes = read("blkio.throttle.io_service_bytes")?;
                let of = |text: &str, kind: &str| -> Option<u64> {
                    kernel_text::count(text, &format!("{} {kind}", self.device), ' ')
                };
                Some([
                    of(&operations, "Read")?,
                    of(&operations, "Write")?,
                    of(&bytes, "Read")?,
                    of(&bytes, "Write")?,
                ])
            }
            Groups::V2(folder) => {
                let text = fs::read_to_string(folder.join("io.stat")).ok()?;
                let line = self.line(&text)?;
                Some(V2_COUNTS.map(|word| value(line, word).unwrap_or(0)))
            }
        }
    }
}

/// The number after `word=`; `None` for `max`.
fn value(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    words.find_map(|one| one.strip_prefix(word)?.strip_prefix('='))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use dyno_units::Nanoseconds;

    use super::*;

    /// With the disk `loop0`.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        write(&root, "sys/block/loop0/dev", "7:0\n");
        files.iter().for_each(|(path, text)| write(&root, path, text));
        root
    }

    fn write(root: &tempfile::TempDir, path: &str, text: &str) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// After two seconds, with these changes of files.
    fn used(root: &tempfile::TempDir, later: &[(&str, &str)]) -> Option<f64> {
        let mut probe = probe(root.path(), "loop0", Some(9)).expect("a probe");
        let mut readings = Readings::new();
        probe.read(Nanoseconds::from_secs(1), &mut readings);
        later.iter().for_each(|(path, text)| write(root, path, text));
        probe.read(Nanoseconds::from_secs(3), &mut readings);
        readings.get("data_disk.limit_used_pct").copied()
    }

    #[test]
    fn the_part_that_is_used_most_counts_in_version_1() {
        let folder = "sys/fs/cgroup/blkio/blkio.throttle";
        let path = |name: &str| format!("{folder}.{name}");
        let (reads, writes) = (path("read_iops_device"), path("write_iops_device"));
        let (operations, bytes) = (path("io_serviced"), path("io_service_bytes"));
        let root = machine(&[
            (&reads, "7:1 5\n"),
            (&writes, "7:1 9\n7:0 500\n"),
            (&path("write_bps_device"), "7:0 1000000\n"),
            (&operations, "7:0 Read 70\n7:0 Write 1000\n7:0 Total 1070\nTotal 1070\n"),
            (&bytes, "7:0 Read 9\n7:0 Write 0\n"),
        ]);
        let later = [
            (operations.as_str(), "7:0 Read 9999\n7:0 Write 1900\n"),
            (bytes.as_str(), "7:0 Read 9\n7:0 Write 200000\n"),
        ];
        assert_eq!(used(&root, &later), Some(90.0));
        write(&root, &writes, "");
        write(&root, &path("write_bps_device"), "7:0 0\n");
        assert_eq!(used(&root, &later), None, "there is no limit any more");
    }

    #[test]
    fn the_group_of_the_server_counts_in_version_2() {
        let root = machine(&[
            ("proc/9/cgroup", "0::/dyno-a\n"),
            ("sys/fs/cgroup/dyno-a/io.max", "7:0 rbps=max wbps=max riops=max wiops=500\n"),
            (
                "sys/fs/cgroup/dyno-a/io.stat",
                "7:0 rbytes=1 wbytes=2 rios=3 wios=0 dbytes=0 dios=0\n",
            ),
        ]);
        let later =
            [("sys/fs/cgroup/dyno-a/io.stat", "7:0 rbytes=1 wbytes=2 rios=3 wios=1000 dbytes=0\n")];
        assert_eq!(used(&root, &later), Some(100.0));
        assert!(probe(root.path(), "vda", Some(9)).is_none());
    }
}
