//! Checked options of `file-io`.

use dyno_model::{OptionError, OptionSpec};
use dyno_units::ByteCount;

use super::content::SECTOR;
use super::{FileCommand, FileSet};
use crate::options::{Options, refuse};
use crate::sysbench::distribution::{self, DistributionSpec};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Random,
    Sequential,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    Read,
    /// Writes over what was put there when the files were made.
    Rewrite,
    /// Writes where nothing was before.
    Write,
    /// Reads this share of the time, and else rewrites.
    Mixed(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    /// When the kernel wants to.
    No,
    Fsync,
    Fdatasync,
    /// Each write by itself (`O_DSYNC`).
    Dsync,
}

impl Sync {
    /// The operation that follows a write, if any does.
    pub(super) fn command(self) -> Option<FileCommand> {
        match self {
            Sync::Fsync => Some(FileCommand::Fsync),
            Sync::Fdatasync => Some(FileCommand::Fdatasync),
            Sync::No | Sync::Dsync => None,
        }
    }
}

/// `file-io`'s own options; those of the distribution follow.
const OWN: &[OptionSpec] = &[
    OptionSpec::word(
        "access",
        &["random", "sequential"],
        "where operations go: to random offsets, or sequentially",
    ),
    OptionSpec::word(
        "operation",
        &["read", "rewrite", "write", "mixed"],
        "what they do: `rewrite` overwrites existing data, `write` writes where there is none \
         yet, `mixed` reads and rewrites",
    ),
    OptionSpec::real("read_share", "70", "share of reads in `mixed`, in percent"),
    OptionSpec::size("block_size", "16KiB", "bytes per operation"),
    OptionSpec::size("total_size", "1GiB", "bytes of all files together"),
    OptionSpec::count("files", "1", "number of files of equal size"),
    OptionSpec::switch("direct", true, "whether operations bypass the page cache (O_DIRECT)"),
    OptionSpec::word(
        "sync",
        &["none", "fsync", "fdatasync", "dsync"],
        "how writes get to the disk: when the kernel writes them back, by fsync or fdatasync \
         after writes, or each by itself (O_DSYNC)",
    ),
    OptionSpec::count(
        "sync_every",
        "1",
        "with fsync and fdatasync: after how many of its writes a client syncs",
    ),
    OptionSpec::size(
        "alignment",
        "0",
        "random offsets are multiples of this; 0 for the block size",
    ),
    OptionSpec::real(
        "compress_ratio",
        "1",
        "data compress to 1/N of their size; 1 for incompressible data",
    ),
];

pub(super) fn options() -> Vec<OptionSpec> {
    [OWN, distribution::OPTIONS].concat()
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) access: Access,
    pub(super) operation: Operation,
    pub(super) sync: Sync,
    pub(super) sync_every: u64,
    pub(super) distribution: DistributionSpec,
    pub(super) set: FileSet,
}

const FILES_MAX: u64 = 10_000;
const BLOCK_MAX: u64 = 64 << 20;
/// As many bits as a place has in a stamp.
const FILE_MAX: u64 = 1 << 52;
const RATIO_MAX: f64 = 32.0;

pub(super) fn size(options: &Options, name: &str, min: u64, max: u64) -> Result<u64, OptionError> {
    let value = options.size(name);
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    let [given, min, max] = [value, min, max].map(|size| ByteCount(size).exact_text());
    refuse(name, format!("{given} is not between {min} and {max}"))
}

/// Direct operations are a matter of whole sectors on every disk there is.
pub(super) fn check_direct(name: &str, bytes: u64) -> Result<(), OptionError> {
    if bytes.is_multiple_of(SECTOR as u64) {
        return Ok(());
    }
    let given = ByteCount(bytes).exact_text();
    refuse(
        name,
        format!(
            "{given} is not a multiple of 512, which direct I/O requires; set direct = false, or \
             choose another size"
        ),
    )
}

impl Settings {
    pub(super) fn read(options: &Options, seed: u64) -> Result<Settings, OptionError> {
        let block = size(options, "block_size", 1, BLOCK_MAX)?;
        let is_direct = options.switch("direct");
        let (access, operation) = what(options)?;
        let sync = options.meaning("sync", [Sync::No, Sync::Fsync, Sync::Fdatasync, Sync::Dsync]);
        let sync_every = options.count("sync_every");
        if sync_every == 0 || (sync_every > 1 && sync.command().is_none()) {
            return refuse(
                "sync_every",
                "it must be a number of writes from 1, with sync = \"fsync\" or \"fdatasync\"",
            );
        }
        let step = match size(options, "alignment", 0, BLOCK_MAX)? {
            0 => block,
            _ if access == Access::Sequential => {
                return refuse("alignment", "sequential operations follow one another");
            }
            step => step,
        };
        if is_direct {
            check_direct("block_size", block)?;
            check_direct("alignment", step)?;
        }
        Ok(Settings {
            access,
            operation,
            sync,
            sync_every,
            distribution: DistributionSpec::from_options(options)?,
            set: FileSet {
                is_direct,
                is_synced: sync == Sync::Dsync,
                random: random_bytes(options)?,
                seed,
                block,
                step,
                ..files(options, block)?
            },
        })
    }

    /// Whether the files have their content before the load.
    pub(super) fn is_filled(&self) -> bool {
        self.operation != Operation::Write
    }

    pub(super) fn blocks(&self) -> u64 {
        self.set.size / self.set.block
    }

    /// Places in one file at which a random operation may begin.
    pub(super) fn places(&self) -> u64 {
        (self.set.size - self.set.block) / self.set.step + 1
    }
}

fn what(options: &Options) -> Result<(Access, Operation), OptionError> {
    let access = options.meaning("access", [Access::Random, Access::Sequential]);
    let operation = match options.text("operation") {
        "rewrite" => Operation::Rewrite,
        "write" if access == Access::Random => {
            return refuse(
                "operation",
                "random offsets would soon be written a second time; choose \"rewrite\", or \
                 access = \"sequential\"",
            );
        }
        "write" => Operation::Write,
        "mixed" => Operation::Mixed(options.real("read_share") / 100.0),
        _ => Operation::Read,
    };
    if !(0.0..=100.0).contains(&options.real("read_share")) {
        return refuse("read_share", "it must be a percentage from 0 to 100");
    }
    Ok((access, operation))
}

fn random_bytes(options: &Options) -> Result<u64, OptionError> {
    let ratio = options.real("compress_ratio");
    if !(1.0..=RATIO_MAX).contains(&ratio) {
        return refuse("compress_ratio", format!("it must be a number from 1 to {RATIO_MAX}"));
    }
    Ok((SECTOR as f64 / ratio).round() as u64)
}

/// How many files, and their size in whole blocks.
fn files(options: &Options, block: u64) -> Result<FileSet, OptionError> {
    let files = options.count("files");
    if !(1..=FILES_MAX).contains(&files) {
        return refuse("files", format!("it must be a number from 1 to {FILES_MAX}"));
    }
    let size = options.size("total_size") / files / block * block;
    if size == 0 || size > FILE_MAX {
        let shown = |bytes: u64| ByteCount(bytes).exact_text();
        return refuse(
            "total_size",
            format!(
                "each of {files} files has at least one block of {} and at most {}",
                shown(block),
                shown(FILE_MAX)
            ),
        );
    }
    Ok(FileSet {
        first: 0,
        files,
        size,
        block,
        step: block,
        is_direct: false,
        is_synced: false,
        random: 0,
        seed: 0,
    })
}
