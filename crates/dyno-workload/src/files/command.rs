//! Commands to a connection to files, as text.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSet {
    pub first: u64,
    pub files: u64,
    /// Bytes of each file when it is whole; a limit for files that grow.
    pub size: u64,
    pub block: u64,
    /// Offsets are multiples of this many bytes.
    pub step: u64,
    /// Whether operations go past the page cache (`O_DIRECT`).
    pub is_direct: bool,
    /// Whether each write is on disk before it ends (`O_DSYNC`).
    pub is_synced: bool,
    /// Bytes of each sector that do not compress.
    pub random: u64,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileCommand {
    /// The first file, empty. Fails if the set does not fit, or is impossible.
    Make(FileSet),
    Open(FileSet),
    /// Makes the first file of the set, with its first block, and opens it for what follows.
    Begin(FileSet),
    Read,
    Write,
    Truncate,
    Fsync,
    /// Syncs the file's data, and of its metadata what is needed to read them.
    Fdatasync,
    Settle(FileSet),
    /// Reads back a sample. One row: bytes of the files, bytes on disk, sectors read, sectors never
    /// written, sectors with wrong content.
    Check(FileSet),
}

/// The name of file `number` of a set, in its folder and as a table.
pub fn file_name(number: u64) -> String {
    format!("file{number}")
}

pub fn file_number(name: &str) -> Option<u64> {
    name.strip_prefix("file")?.parse().ok()
}

impl fmt::Display for FileCommand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, set) = match self {
            FileCommand::Read => return out.write_str("read ? ?"),
            FileCommand::Write => return out.write_str("write ? ?"),
            FileCommand::Truncate => return out.write_str("truncate ?"),
            FileCommand::Fsync => return out.write_str("fsync ?"),
            FileCommand::Fdatasync => return out.write_str("fdatasync ?"),
            FileCommand::Make(set) => ("make", set),
            FileCommand::Open(set) => ("open", set),
            FileCommand::Begin(set) => ("begin", set),
            FileCommand::Settle(set) => ("settle", set),
            FileCommand::Check(set) => ("check", set),
        };
        let FileSet { first, files, size, block, step, is_direct, is_synced, random, seed } = set;
        write!(
            out,
            "{word} first={first} files={files} size={size} block={block} step={step} \
             direct={} synced={} random={random} seed={seed}",
            u8::from(*is_direct),
            u8::from(*is_synced)
        )
    }
}

impl FromStr for FileCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<FileCommand, String> {
        let refuse = || format!("`{text}` is not an operation on files");
        let pairs: BTreeMap<&str, &str> =
            text.split(' ').filter_map(|pair| pair.split_once('=')).collect();
        let number = |name: &str| pairs.get(name)?.parse::<u64>().ok();
        let set = || {
            Some(FileSet {
                first: number("first")?,
                files: number("files")?,
                size: number("size")?,
                block: number("block")?,
                step: number("step")?,
                is_direct: number("direct")? != 0,
                is_synced: number("synced")? != 0,
                random: number("random")?,
                seed: number("seed")?,
            })
        };
        use FileCommand::{
            Begin, Check, Fdatasync, Fsync, Make, Open, Read, Settle, Truncate, Write,
        };
        let on_sets = set().map(|set| [Make(set), Open(set), Begin(set), Settle(set), Check(set)]);
        let mut all = [Read, Write, Truncate, Fsync, Fdatasync]
            .into_iter()
            .chain(on_sets.into_iter().flatten());
        // Nothing but what is written above is read.
        all.find(|command| command.to_string() == text).ok_or_else(refuse)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_command_is_read_as_it_is_written(
            n in prop::array::uniform6(any::<u64>()),
            flags in any::<(bool, bool)>(),
        ) {
            let [first, files, size, block, step, seed] = n;
            let (is_direct, is_synced) = flags;
            let random = seed % 513;
            let set =
                FileSet { first, files, size, block, step, is_direct, is_synced, random, seed };
            for command in [
                FileCommand::Make(set),
                FileCommand::Open(set),
                FileCommand::Begin(set),
                FileCommand::Settle(set),
                FileCommand::Check(set),
                FileCommand::Read,
                FileCommand::Write,
                FileCommand::Truncate,
                FileCommand::Fsync,
                FileCommand::Fdatasync,
            ] {
                prop_assert_eq!(command.to_string().parse(), Ok(command));
            }
            prop_assert_eq!(file_number(&file_name(first)), Some(first));
        }

        #[test]
        fn other_texts_are_no_commands(text in "[a-z =0-9?]{0,60}") {
            if let Ok(command) = text.parse::<FileCommand>() {
                prop_assert!(text.starts_with(command.to_string().split(' ').next().unwrap()));
            }
        }
    }

    #[test]
    fn what_is_no_operation_is_refused() {
        for text in ["", "SELECT 1", "read", "open first=1", "open first=x", "write ? ? ?"] {
            assert!(text.parse::<FileCommand>().is_err(), "{text}");
        }
    }
}
