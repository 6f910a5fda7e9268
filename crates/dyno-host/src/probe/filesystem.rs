//! How full the filesystem with the server's data is.

use std::path::PathBuf;

use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use super::{Probe, Readings};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("filesystem.used_bytes", Bytes, "filesystem in use", "bytes used on the filesystem of the server's data").worse(),
    reading("filesystem.free_bytes", Bytes, "free on the filesystem", "bytes that can still be written on the filesystem of the server's data").better(),
    reading("filesystem.used_pct", Percent, "filesystem in use", "share of the filesystem of the server's data that is used, as `df` shows it").worse().row(970),
    reading("filesystem.free_inodes", Unit::other("files"), "free inodes", "files that can still be created on the filesystem of the server's data").better(),
];

pub(super) struct FilesystemProbe {
    folder: PathBuf,
}

impl FilesystemProbe {
    pub(super) fn new(folder: PathBuf) -> FilesystemProbe {
        FilesystemProbe { folder }
    }
}

impl Probe for FilesystemProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, _now: Nanoseconds, readings: &mut Readings) {
        let Ok(facts) = rustix::fs::statvfs(&self.folder) else { return };
        let used = facts.f_blocks.saturating_sub(facts.f_bfree);
        let usable = used.saturating_add(facts.f_bavail);
        let bytes = |blocks: u64| blocks.saturating_mul(facts.f_frsize) as f64;
        let mut add = |name: &str, value: f64| readings.insert(name.to_owned(), value);
        add("filesystem.used_bytes", bytes(used));
        add("filesystem.free_bytes", bytes(facts.f_bavail));
        if usable > 0 {
            add("filesystem.used_pct", 100.0 * used as f64 / usable as f64);
        }
        // Filesystems without a limit report none.
        if facts.f_files > 0 {
            add("filesystem.free_inodes", facts.f_favail as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filesystem_is_reported() {
        let mut readings = Readings::new();
        FilesystemProbe::new("/".into()).read(Nanoseconds::ZERO, &mut readings);
        let share = readings["filesystem.used_pct"];
        assert!((0.0..=100.0).contains(&share), "{readings:?}");
        assert!(readings.keys().all(|name| READINGS.iter().any(|one| one.is_for(name))));
        let mut none = Readings::new();
        FilesystemProbe::new("/no/such/folder".into()).read(Nanoseconds::ZERO, &mut none);
        assert_eq!(none, Readings::new());
    }
}
