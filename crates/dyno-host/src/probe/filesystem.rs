//! How full the filesystem with the server's data is.

use std::path::PathBuf;

use dyno_units::reading::prelude::*;

use super::{Probe, insert, levels};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("filesystem.used_bytes", Bytes, "filesystem in use", "bytes used on the filesystem of the server's data").worse(),
    reading("filesystem.free_bytes", Bytes, "free on the filesystem", "bytes that can still be written on the filesystem of the server's data").better(),
    reading("filesystem.used_pct", Percent, "filesystem in use", "share of the filesystem of the server's data that is used, as `df` shows it").worse().row(970),
    reading("filesystem.free_inodes", Unit::other("files"), "free inodes", "files that can still be created on the filesystem of the server's data").better(),
];

pub(super) fn probe(folder: PathBuf) -> Box<dyn Probe> {
    levels(("filesystem", READINGS), move |readings| {
        let facts = rustix::fs::statvfs(&folder).ok()?;
        let used = facts.f_blocks.saturating_sub(facts.f_bfree);
        let usable = used.saturating_add(facts.f_bavail);
        let bytes = |blocks: u64| Some(blocks.saturating_mul(facts.f_frsize) as f64);
        insert(readings, "filesystem.used_bytes", bytes(used));
        insert(readings, "filesystem.free_bytes", bytes(facts.f_bavail));
        let used_pct = (usable > 0).then(|| 100.0 * used as f64 / usable as f64);
        insert(readings, "filesystem.used_pct", used_pct);
        // Filesystems without a limit report none.
        let free_inodes = (facts.f_files > 0).then_some(facts.f_favail as f64);
        insert(readings, "filesystem.free_inodes", free_inodes);
        None
    })
}

#[cfg(test)]
mod tests {
    use dyno_units::Nanoseconds;

    use super::super::Readings;
    use super::*;

    #[test]
    fn the_filesystem_is_reported() {
        let mut readings = Readings::new();
        probe("/".into()).read(Nanoseconds::ZERO, &mut readings);
        let share = readings["filesystem.used_pct"];
        assert!((0.0..=100.0).contains(&share), "{readings:?}");
        assert!(readings.keys().all(|name| READINGS.iter().any(|one| one.is_for(name))));
        let mut none = Readings::new();
        probe("/no/such/folder".into()).read(Nanoseconds::ZERO, &mut none);
        assert_eq!(none, Readings::new());
    }
}
