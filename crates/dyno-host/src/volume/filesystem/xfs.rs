//! XFS.

use dyno_units::ByteCount;

use super::{Filesystem, MadeBy, Maker};

pub(super) const FILESYSTEM: Filesystem = Filesystem {
    name: "xfs",
    sentence: "XFS",
    made_by: MadeBy::Program(Maker {
        program: "mkfs.xfs",
        package: "xfsprogs",
        arguments: &["-q", "-f"],
        unless_given: &[],
    }),
    // The minimum of xfsprogs 5.19 and later.
    least_size: ByteCount(300 << 20),
};
