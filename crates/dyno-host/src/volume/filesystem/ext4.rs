//! ext4.

use dyno_units::ByteCount;

use super::{Filesystem, MadeBy, Maker};

pub(super) const FILESYSTEM: Filesystem = Filesystem {
    name: "ext4",
    sentence: "ext4, with its inode tables written at once: otherwise the kernel writes them \
        during the measurement",
    made_by: MadeBy::Program(Maker {
        program: "mkfs.ext4",
        package: "e2fsprogs",
        arguments: &["-q", "-F"],
        unless_given: &["-E", "lazy_itable_init=0,lazy_journal_init=0"],
    }),
    least_size: ByteCount(16 << 20),
};
