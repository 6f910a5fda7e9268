//! ZFS.

use dyno_units::ByteCount;

use super::{Filesystem, MadeBy};

pub(super) const FILESYSTEM: Filesystem = Filesystem {
    name: "zfs",
    sentence: "ZFS, a pool with one dataset: the kernel's, or zfs-fuse in user space",
    made_by: MadeBy::Pool,
    least_size: ByteCount(128 << 20),
};
