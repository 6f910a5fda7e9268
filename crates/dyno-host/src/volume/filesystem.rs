//! The filesystems for volumes.

use dyno_units::ByteCount;

pub(crate) const ALL: &[Filesystem] = &[
    Filesystem {
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
    },
    Filesystem {
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
    },
    Filesystem {
        name: "btrfs",
        sentence: "Btrfs; `mount_options = [\"compress=zstd:1\"]` compresses",
        made_by: MadeBy::Program(Maker {
            program: "mkfs.btrfs",
            package: "btrfs-progs",
            arguments: &["-q", "-f"],
            unless_given: &[],
        }),
        least_size: ByteCount(128 << 20),
    },
    Filesystem {
        name: "zfs",
        sentence: "ZFS, a pool with one dataset: the kernel's, or zfs-fuse in user space",
        made_by: MadeBy::Pool,
        least_size: ByteCount(128 << 20),
    },
    Filesystem {
        name: "tmpfs",
        sentence: "memory: shows what a commit costs without a disk",
        made_by: MadeBy::Memory,
        least_size: ByteCount(1 << 20),
    },
];

#[derive(Debug)]
pub(crate) struct Filesystem {
    pub(crate) name: &'static str,
    pub(crate) sentence: &'static str,
    pub(crate) made_by: MadeBy,
    pub(crate) least_size: ByteCount,
}

#[derive(Debug)]
pub(crate) enum MadeBy {
    /// On a device.
    Program(Maker),
    /// It is made by mounting, in memory.
    Memory,
    /// ZFS: a pool on a device, with a dataset.
    Pool,
}

#[derive(Debug)]
pub(crate) struct Maker {
    pub(crate) program: &'static str,
    /// Of Debian.
    pub(crate) package: &'static str,
    /// Always given.
    pub(crate) arguments: &'static [&'static str],
    /// Given unless the user's options have its first word: a default for measurements.
    pub(crate) unless_given: &'static [&'static str],
}

impl Filesystem {
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.made_by, MadeBy::Memory)
    }

    pub(crate) fn find(name: &str) -> Option<&'static Filesystem> {
        ALL.iter().find(|one| one.name == name)
    }
}

impl Maker {
    pub(crate) fn arguments<'a>(
        &'a self,
        options: &'a [String],
        label: &'a str,
        device: &'a str,
    ) -> Vec<&'a str> {
        let mut all = self.arguments.to_vec();
        let is_given =
            self.unless_given.first().is_some_and(|first| options.iter().any(|o| o == first));
        if !is_given {
            all.extend(self.unless_given);
        }
        all.extend(["-L", label]);
        all.extend(options.iter().map(String::as_str));
        all.push(device);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_user_replace_what_is_given_by_default() {
        let check = |options: &[&str], expected: &[&str]| {
            let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
            let MadeBy::Program(maker) = &ALL[0].made_by else { panic!("it is made by a program") };
            assert_eq!(maker.arguments(&options, "dyno", "/dev/x"), expected);
        };
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        check(&[], &["-q", "-F", "-E", lazy, "-L", "dyno", "/dev/x"]);
        check(&["-b", "1024"], &["-q", "-F", "-E", lazy, "-L", "dyno", "-b", "1024", "/dev/x"]);
        check(&["-E", "stride=4"], &["-q", "-F", "-L", "dyno", "-E", "stride=4", "/dev/x"]);
    }

    #[test]
    fn each_has_a_name_of_its_own() {
        let mut names: Vec<&str> = ALL.iter().map(|one| one.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|one| Filesystem::find(one.name).is_some()));
    }
}
