//! tmpfs.

use dyno_units::ByteCount;

use super::Filesystem;

pub(super) const FILESYSTEM: Filesystem = Filesystem {
    name: "tmpfs",
    sentence: "memory: what a commit costs without a disk",
    maker: None,
    least_size: ByteCount(1 << 20),
    caveat: Some("a tmpfs is memory: a sync does nothing, and nothing survives a power failure"),
};
