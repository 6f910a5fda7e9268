//! tmpfs.

use dyno_units::ByteCount;

use super::{Filesystem, MadeBy};

pub(super) const FILESYSTEM: Filesystem = Filesystem {
    name: "tmpfs",
    sentence: "memory: shows what a commit costs without a disk",
    made_by: MadeBy::Memory,
    least_size: ByteCount(1 << 20),
};
