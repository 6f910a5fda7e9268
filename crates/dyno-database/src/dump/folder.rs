//! The folder of a dump: `dump.json`, written last, and the files that it names.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dyno_units::planted_on_way;
use flate2::Crc;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{DumpError, Table};

/// The file that says what the others are. A folder without it is not a complete dump.
const CONTENTS: &str = "dump.json";

const FORMAT: u32 = 1;

/// Of `dump.json`, in bytes.
const CONTENTS_MAX: u64 = 64 << 20;
/// The most that a file of rows takes there, without its name; and a table, without definition and files.
const PIECE_BYTES: u64 = 100;
const TABLE_BYTES: u64 = 100;

/// A dump: what `dump.json` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dump {
    format: u32,
    pub protocol: String,
    pub version: String,
    pub tables: Vec<DumpedTable>,
    /// What it lacks, in sentences without a full stop.
    #[serde(default)]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DumpedTable {
    pub(crate) table: Table,
    pub(crate) files: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Piece {
    pub(crate) file: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) crc32: u32,
}

impl Dump {
    pub(super) fn new(protocol: &str, version: String, notes: Vec<String>) -> Dump {
        let protocol = protocol.to_owned();
        Dump { format: FORMAT, protocol, version, tables: Vec::new(), notes }
    }

    /// The most bytes that a table with so many files of rows takes in `dump.json`.
    pub(crate) fn table_bytes(table: &Table, n_pieces: u64) -> u64 {
        let definition = serde_json::to_string(table).map_or(0, |text| text.len()) as u64;
        let piece = PIECE_BYTES + file_name(&table.name, 0).len() as u64;
        n_pieces.saturating_mul(piece).saturating_add(definition + TABLE_BYTES)
    }

    /// Fails if tables that take so many bytes have no place in `dump.json`.
    pub(crate) fn check_size(bytes: u64, n_pieces: u64) -> Result<(), DumpError> {
        match bytes > CONTENTS_MAX {
            true => Err(DumpError::new(format!(
                "the definitions of the tables and the list of {n_pieces} files would need more than the {} MiB of a \
                 dump's list; dump fewer tables at once, or more rows per file (--rows)",
                CONTENTS_MAX >> 20
            ))),
            false => Ok(()),
        }
    }

    pub fn rows(&self) -> u64 {
        self.files().map(|file| file.rows).fold(0, u64::saturating_add)
    }

    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    pub fn n_files(&self) -> usize {
        self.files().count()
    }

    fn files(&self) -> impl Iterator<Item = &Piece> {
        self.tables.iter().flat_map(|table| &table.files)
    }

    /// Fails if it is no dump, has another format, or a file is missing or has another size.
    pub fn open(folder: &Path) -> Result<Dump, DumpError> {
        let path = folder.join(CONTENTS);
        let named = |why: String| DumpError::new(format!("{}: {why}", path.display()));
        let file = match open_to_read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => {
                return Err(DumpError::new(format!("there is no folder {}", folder.display())));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DumpError::new(format!(
                    "{} is not a complete Dyno dump: {CONTENTS}, which is written last, is missing",
                    folder.display()
                )));
            }
            Err(error) => return Err(named(error.to_string())),
        };
        let length = file.metadata()?.len();
        if length > CONTENTS_MAX {
            return Err(named(format!("it is longer than {} MiB", CONTENTS_MAX >> 20)));
        }
        let dump = Dump::read(io::BufReader::new(file)).map_err(named)?;
        for piece in dump.files() {
            piece.check(folder)?;
        }
        Ok(dump)
    }

    pub(super) fn read(mut text: impl Read + Seek) -> Result<Dump, String> {
        /// What all formats have. The rest is passed over, and takes no memory.
        #[derive(Deserialize)]
        struct Format {
            format: Option<u64>,
        }
        let head: Format = serde_json::from_reader(&mut text).map_err(|error| error.to_string())?;
        match head.format {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => {
                return Err(format!(
                    "it has format {format}; this version of Dyno reads format {FORMAT}"
                ));
            }
            None => return Err("it names no format".to_owned()),
        }
        text.rewind().map_err(|error| error.to_string())?;
        let dump: Dump = serde_json::from_reader(text).map_err(|error| error.to_string())?;
        let mut names = BTreeSet::new();
        for piece in dump.files() {
            piece.check_name()?;
            // A small dump must not fill a disk with one file.
            if !names.insert(&piece.file) {
                return Err(format!("it names the file {:?} more than once", piece.file));
            }
        }
        Ok(dump)
    }

    pub(super) fn finish(&self, folder: &Path, is_synced: bool) -> Result<(), DumpError> {
        let path = folder.join(CONTENTS);
        let write = || -> io::Result<()> {
            let file = make_file(&path)?;
            let mut out = io::BufWriter::new(file);
            serde_json::to_writer(&mut out, self)?;
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            if file.metadata()?.len() > CONTENTS_MAX {
                let message = format!("it is larger than {} MiB", CONTENTS_MAX >> 20);
                return Err(io::Error::other(message));
            }
            if is_synced {
                file.sync_all()?;
                File::open(folder)?.sync_all()?;
            }
            Ok(())
        };
        write().map_err(|error| DumpError::new(format!("{}: {error}", path.display())))
    }
}

impl Piece {
    /// Where it is. Its name has been checked.
    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(&self.file)
    }

    fn check_name(&self) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '%');
        match self.file.starts_with('.') || !self.file.chars().all(is_plain) {
            true => {
                Err(format!("it names the file {:?}, which Dyno would not have written", self.file))
            }
            false => Ok(()),
        }
    }

    fn check(&self, folder: &Path) -> Result<(), DumpError> {
        let path = self.path(folder);
        let length = open_to_read(&path)
            .and_then(|file| file.metadata())
            .map_err(|error| DumpError::new(format!("{}: {error}", path.display())))?
            .len();
        match length == self.bytes {
            true => Ok(()),
            false => Err(DumpError::new(format!(
                "{}: it has {length} bytes, but was written with {}",
                path.display(),
                self.bytes
            ))),
        }
    }

    /// Opens it; reading it to its end fails if its text is not what was written.
    pub(super) fn open(&self, folder: &Path) -> Result<Checked, DumpError> {
        let path = self.path(folder);
        let file = open_to_read(&path)
            .map_err(|error| DumpError::new(format!("{}: {error}", path.display())))?;
        Ok(Checked { file, crc: Crc::new(), expected: self.crc32, path })
    }
}

/// A file that is read once, and must be what was written.
pub(super) struct Checked {
    file: File,
    crc: Crc,
    expected: u32,
    path: PathBuf,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.file.read(buffer)?;
        self.crc.update(&buffer[..n_read]);
        if n_read == 0 && !buffer.is_empty() && self.crc.sum() != self.expected {
            return Err(io::Error::other(format!(
                "{}: the file is damaged (its checksum is not the one of the dump)",
                self.path.display()
            )));
        }
        Ok(n_read)
    }
}

/// Makes a folder for a dump, for its user alone; fails if another user has put something on the way, and so could
/// lead elsewhere what is written or removed.
pub(super) fn make_folder(folder: &Path) -> Result<(), DumpError> {
    check_way(folder)?;
    let made = std::fs::DirBuilder::new().mode(0o700).create(folder);
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => DumpError::new(format!(
            "{} already exists; name a folder that does not exist yet",
            folder.display()
        )),
        _ => DumpError::new(format!("{} cannot be created: {error}", folder.display())),
    })?;
    // Another user may have made part of the way until now; from now on none can.
    check_way(folder)
}

fn check_way(folder: &Path) -> Result<(), DumpError> {
    let me = rustix::process::geteuid().as_raw();
    let planted = planted_on_way(folder, me)
        .map_err(|error| DumpError::new(format!("{}: {error}", folder.display())))?;
    planted.map_or(Ok(()), |(found, user)| {
        Err(DumpError::new(format!(
            "{} belongs to user {user} and lies in a folder that everybody may write to, so that this user could \
             change what is written to {}; name a folder in which only you may write",
            found.display(),
            folder.display()
        )))
    })
}

/// Makes a file that is not there yet, for its user alone.
pub(super) fn make_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Opens a regular file; a link is not followed.
fn open_to_read(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Keeps letters that are safe on all file systems; writes others as `%` with two digits.
pub(super) fn file_name(table: &str, number: usize) -> String {
    use std::fmt::Write as _;
    let mut name = String::new();
    for byte in table.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            _ => write!(name, "%{byte:02x}").expect("a text takes all"),
        }
    }
    // Most file systems end names at 255 bytes; a name of MySQL has up to 64 characters of 4 bytes.
    name.truncate(200);
    format!("{name}.{number:05}.tsv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(file_name("sbtest1", 7), "sbtest1.00007.tsv");
        assert_eq!(file_name("../a b", 12), "%2e%2e%2fa%20b.00012.tsv");
    }

    #[test]
    fn a_list_that_could_not_be_read_is_refused_before_it_is_made() {
        let table = dump(Vec::new()).tables.remove(0).table;
        let check = |n_pieces: u64, is_fine: bool| {
            let bytes = Dump::table_bytes(&table, n_pieces);
            assert_eq!(Dump::check_size(bytes, n_pieces).is_ok(), is_fine, "{n_pieces}");
        };
        check(500_000, true);
        check(650_000, false);
        check(u64::MAX, false);
        assert!(Dump::check_size(65 << 20, 1).is_err());
    }

    #[test]
    fn a_list_takes_no_more_than_is_foreseen() {
        let check = |name: &str| {
            let pieces = (0..3000_usize).map(|number| Piece {
                file: file_name(name, number + 999_998_000),
                rows: u64::MAX,
                bytes: u64::MAX,
                crc32: u32::MAX,
            });
            let mut dump = dump(pieces.collect());
            let column =
                || crate::dump::Column { name: "c".repeat(20), data_type: "varchar".to_owned() };
            dump.tables[0].table.name = name.to_owned();
            dump.tables[0].table.columns.resize_with(100, column);
            let folder = tempfile::tempdir().unwrap();
            dump.finish(folder.path(), false).unwrap();
            let length = std::fs::metadata(folder.path().join(CONTENTS)).unwrap().len();
            let foreseen = Dump::table_bytes(&dump.tables[0].table, 3000);
            assert!(length <= foreseen, "{name}: {length} {foreseen}");
        };
        check("t");
        check(&"long_name_".repeat(6));
        check(&"Größe der Bäume".repeat(4));
    }

    #[test]
    fn nothing_is_made_where_another_user_could_change_it() {
        use std::os::unix::fs::{PermissionsExt, chown};
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give folders away");
            return;
        }
        let shared = tempfile::tempdir().unwrap();
        let all = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(shared.path(), all).unwrap();
        let theirs = shared.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(54_321), None).unwrap();
        let error = make_folder(&theirs.join("dump")).unwrap_err();
        assert!(error.0.contains("theirs belongs to user 54321"), "{error}");
        assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 0);
        make_folder(&shared.path().join("own")).unwrap();
    }

    fn piece(file: &str, text: &str) -> Piece {
        let mut crc = Crc::new();
        crc.update(text.as_bytes());
        Piece { file: file.to_owned(), rows: 1, bytes: text.len() as u64, crc32: crc.sum() }
    }

    fn dump(pieces: Vec<Piece>) -> Dump {
        let table = Table {
            name: "t".to_owned(),
            columns: Vec::new(),
            create: "CREATE TABLE t (a INT)".to_owned(),
            after: Vec::new(),
            at_last: Vec::new(),
        };
        let mut dump = Dump::new("mysql", "1".to_owned(), Vec::new());
        dump.tables.push(DumpedTable { table, files: pieces });
        dump
    }

    #[test]
    fn what_is_not_as_it_was_written_is_refused() {
        let check = |pieces: Vec<Piece>, expected: &str| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("t.1.tsv"), "1\n").unwrap();
            std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link.tsv")).unwrap();
            dump(pieces).finish(folder.path(), false).unwrap();
            let error = Dump::open(folder.path()).unwrap_err();
            assert!(error.0.contains(expected), "{error}");
        };
        check(vec![piece("t.1.tsv", "1\n2\n")], "it has 2 bytes, but was written with 4");
        check(vec![piece("t.2.tsv", "1\n")], "No such file");
        check(vec![piece("../t.1.tsv", "1\n")], "would not have written");
        check(vec![piece("t.1.tsv", "1\n"), piece("t.1.tsv", "1\n")], "more than once");
        check(vec![piece("link.tsv", "1\n")], "link.tsv:");
        let folder = tempfile::tempdir().unwrap();
        let error = Dump::open(folder.path()).unwrap_err();
        assert!(error.0.contains("is not a complete Dyno dump"), "{error}");
        std::fs::write(folder.path().join(CONTENTS), "{\"format\": 2}").unwrap();
        let error = Dump::open(folder.path()).unwrap_err();
        assert!(
            error.0.contains("it has format 2; this version of Dyno reads format 1"),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_file_cannot_be_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.1.tsv"), "2\n").unwrap();
        let mut text = String::new();
        let found = piece("t.1.tsv", "2\n").open(folder.path()).unwrap().read_to_string(&mut text);
        assert_eq!((found.unwrap(), text.as_str()), (2, "2\n"));
        let found = piece("t.1.tsv", "3\n").open(folder.path()).unwrap().read_to_string(&mut text);
        assert!(found.unwrap_err().to_string().contains("the file is damaged"));
    }
}
