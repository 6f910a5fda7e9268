//! Btrfs.

use dyno_units::ByteCount;

use super::{Filesystem, MadeBy, Maker};

pub(super) const FILESYSTEM: Filesystem = Filesystem {
    name: "btrfs",
    sentence: "Btrfs; `mount_options = [\"compress=zstd:1\"]` compresses",
    made_by: MadeBy::Program(Maker {
        program: "mkfs.btrfs",
        package: "btrfs-progs",
        arguments: &["-q", "-f"],
        unless_given: &[],
    }),
    least_size: ByteCount(128 << 20),
};
