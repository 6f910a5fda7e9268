//! Access to the files of a run's folder, which may have come from anybody.
//!
//! Links are not followed, only regular files are read (a FIFO would block for ever, a device has no
//! end), and no file, line or unpacked log is read beyond a limit. What is written replaces what was
//! there in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use dyno_units::planted_on_way;
use flate2::read::GzDecoder;
use rustix::fs::OFlags;

use crate::WriteError;

/// The most bytes of a JSON file that is read as a whole.
pub const WHOLE_MOST: u64 = 256 << 20;
/// The most bytes of a line of a log.
const LINE_MOST: u64 = 16 << 20;
/// An unpacked log may be this many times as large as it is packed, and [`UNPACKED_LEAST`] in any
/// case: real ones reach about 20 times; a file made to fill the memory about 1,000 times.
const UNPACKED_TIMES: u64 = 100;
const UNPACKED_LEAST: u64 = 64 << 20;

/// Opens a regular file for reading.
///
/// # Errors
///
/// It is not there, or it is a link, a folder, a FIFO or a device.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        // Without waiting: opening a FIFO would else block until somebody writes to it.
        .custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
        .open(path)
        .map_err(|error| explain_link(path, error))?;
    check_regular(file)
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
///
/// As [`open_regular`]; or the file is larger.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let mib = most >> 20;
        return Err(invalid(format!(
            "the file is larger than {mib} MiB: no file of Dyno's is that large"
        )));
    }
    Ok(bytes)
}

/// Writes a file so that it is there whole or not at all: into a new file beside it, which then takes
/// its name. A link of that name is replaced, never followed.
///
/// # Errors
///
/// The folder cannot be written to, or the disk is full.
pub fn write_replacing(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = part_of(path);
    // What a killed Dyno has left; removing does not follow links.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let result = (|| {
        let mut file = File::create_new(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), |folder| match folder.as_os_str().is_empty() {
            true => File::open(".")?.sync_all(),
            false => File::open(folder)?.sync_all(),
        })
    })();
    if result.is_err() {
        // On a full disk it would only be in the way.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Refuses a folder that another user has put there, or who could put another one there: what is written in it
/// could be led elsewhere, and changed.
///
/// # Errors
///
/// It is such a folder, or cannot be examined.
pub fn check_way(folder: &Path) -> Result<(), WriteError> {
    let me = rustix::process::geteuid().as_raw();
    match planted_on_way(folder, me).map_err(|error| WriteError::io(folder, &error))? {
        None => Ok(()),
        Some((found, user)) => Err(WriteError::usage(
            folder,
            format!(
                "{} belongs to user {user} and lies in a folder that everybody may write to, so that this \
                 user could change what is written there, or lead it elsewhere; use a folder in which only you \
                 may write, or a copy there",
                found.display()
            ),
        )),
    }
}

/// Where a file is written before it takes its name: `NAME.part`.
pub(crate) fn part_of(path: &Path) -> PathBuf {
    with_suffix(path, ".part")
}

/// A path with something added to its end, whatever bytes it is made of.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Opens a regular file for appending; makes it if it is not there.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
        .open(path)
        .map_err(|error| explain_link(path, error))?;
    check_regular(file)
}

fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn check_regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(invalid("it is not a regular file")),
    }
}

/// "Too many levels of symbolic links" is not what a person should have to read.
fn explain_link(path: &Path, error: io::Error) -> io::Error {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_symlink() => {
            invalid("it is a symbolic link, and links in a run's folder are not followed")
        }
        _ => error,
    }
}

/// Why a log is not read any further.
pub(crate) fn unpacks_to_too_much() -> String {
    format!("it unpacks to more than {UNPACKED_TIMES} times its size, which no log of Dyno's does")
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why.into())
}

/// Appends the next line, its end included, to `line`; returns its length, 0 at the end.
///
/// # Errors
///
/// The file cannot be read, or the line is longer than any that Dyno writes.
pub(crate) fn read_line(from: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    let n = from.take(LINE_MOST).read_until(b'\n', line)?;
    if n as u64 == LINE_MOST && line.last() != Some(&b'\n') {
        return Err(invalid(format!("it has a line of more than {} MiB", LINE_MOST >> 20)));
    }
    Ok(n)
}

/// A log, unpacked while it is read if its name ends in `.gz`, with the digest of the file.
pub(crate) struct Log {
    lines: BufReader<Unpacked>,
    unpacked_most: u64,
}

/// What a file of so many bytes may unpack to.
pub(crate) fn unpacked_most(packed: u64) -> u64 {
    packed.saturating_mul(UNPACKED_TIMES).max(UNPACKED_LEAST)
}

enum Unpacked {
    Plain(Digested),
    Packed { from: GzDecoder<Digested>, left: u64 },
}

impl Log {
    pub(crate) fn open(path: &Path) -> io::Result<Log> {
        let file = open_regular(path)?;
        let unpacked_most = unpacked_most(file.metadata()?.len());
        let file = Digested { file, digest: Digest::default() };
        let unpacked = match path.extension().is_some_and(|end| end == "gz") {
            false => Unpacked::Plain(file),
            true => Unpacked::Packed { from: GzDecoder::new(file), left: unpacked_most },
        };
        Ok(Log { lines: BufReader::with_capacity(1 << 16, unpacked), unpacked_most })
    }

    /// The most bytes that it may unpack to; what is packed once more within its lines may have as many again.
    pub(crate) fn unpacked_most(&self) -> u64 {
        self.unpacked_most
    }

    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<usize> {
        read_line(&mut self.lines, line)
    }

    /// The digest of the whole file, packed as it is.
    pub(crate) fn digest(self) -> io::Result<String> {
        let mut file = match self.lines.into_inner() {
            Unpacked::Plain(file) => file,
            Unpacked::Packed { from, .. } => from.into_inner(),
        };
        io::copy(&mut file, &mut io::sink())?;
        Ok(file.digest.text())
    }
}

impl Read for Unpacked {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Unpacked::Plain(file) => file.read(to),
            Unpacked::Packed { from, left } => {
                let n = from.read(to)?;
                *left = left.checked_sub(n as u64).ok_or_else(|| invalid(unpacks_to_too_much()))?;
                Ok(n)
            }
        }
    }
}

struct Digested {
    file: File,
    digest: Digest,
}

impl Read for Digested {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(to)?;
        self.digest.add(&to[..n]);
        Ok(n)
    }
}

/// FNV-1a, 64 bits. It finds damage and edits by hand; it is no protection against forgery.
#[derive(Clone, Copy)]
pub(crate) struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> String {
        let mut digest = Digest::default();
        digest.add(bytes);
        digest.text()
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn nothing_is_written_where_another_user_could_change_it() {
        use std::os::unix::fs::{PermissionsExt, chown};

        use crate::writer::tests::manifest;
        use crate::{RunWriter, query};

        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give folders away");
            return;
        }
        let shared = tempfile::tempdir().unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let path = |name: &str| shared.path().join(name);
        let give = |name: &str| chown(path(name), Some(54_321), None).unwrap();
        fs::create_dir(path("runs")).unwrap();
        give("runs");
        let refused = |result: Result<RunWriter, WriteError>| {
            let why = result.err().expect("it is another user's").to_string();
            assert!(why.contains("runs belongs to user 54321"), "{why}");
        };
        refused(RunWriter::create(&path("runs"), &manifest("x")));
        refused(RunWriter::create(&path("runs/deep/run"), &manifest("x")));
        let why = crate::make_run_folder(&path("runs/new")).expect_err("as well").to_string();
        assert!(why.contains("runs belongs to user 54321"), "{why}");
        assert_eq!(fs::read_dir(path("runs")).unwrap().count(), 0);
        // One's own run can be continued, and the received one of another user is only read.
        drop(RunWriter::create(&path("own"), &manifest("x")).unwrap());
        drop(RunWriter::resume(&path("own"), &manifest("x")).unwrap());
        fs::remove_dir(path("runs")).unwrap();
        fs::rename(path("own"), path("runs")).unwrap();
        give("runs");
        refused(RunWriter::resume(&path("runs"), &manifest("x")));
        let why = query(&path("runs"), "SELECT 1").expect_err("it is not its own").to_string();
        assert!(why.contains("runs belongs to user 54321"), "{why}");
    }

    #[test]
    fn only_regular_files_are_read_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("good"), "text").unwrap();
        symlink(path("good"), path("link")).unwrap();
        let fifo = path("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let check = |name: &str, expected: &str| {
            let found = read_bounded(&path(name), 100).unwrap_err().to_string();
            assert!(found.contains(expected), "{name}: {found}");
        };
        assert_eq!(read_bounded(&path("good"), 100).unwrap(), b"text");
        assert!(read_bounded(&path("good"), 3).is_err());
        check("link", "symbolic link");
        check("fifo", "regular file");
        check(".", "regular file");
        assert!(open_regular(Path::new("/dev/zero")).is_err());
        assert!(append(&path("link")).unwrap_err().to_string().contains("symbolic link"));
    }

    #[test]
    fn a_link_is_replaced_and_what_it_names_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("outside"), "mine").unwrap();
        symlink(path("outside"), path("report.html")).unwrap();
        symlink(path("outside"), path("report.html.part")).unwrap();
        write_replacing(&path("report.html"), b"new").unwrap();
        assert_eq!(fs::read(path("outside")).unwrap(), b"mine");
        assert_eq!(fs::read(path("report.html")).unwrap(), b"new");
        assert!(!path("report.html.part").exists());
        assert!(fs::symlink_metadata(path("report.html")).unwrap().is_file());
    }

    #[test]
    fn a_file_that_unpacks_to_far_too_much_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let check = |line: usize, n_lines: usize, expected: &str| {
            let path = folder.path().join("log.gz");
            let mut packer = GzEncoder::new(File::create(&path).unwrap(), Compression::best());
            let text = [vec![b'x'; line], vec![b'\n']].concat();
            (0..n_lines).for_each(|_| packer.write_all(&text).unwrap());
            packer.finish().unwrap();
            let mut log = Log::open(&path).unwrap();
            let mut line = Vec::new();
            let error = loop {
                line.clear();
                match log.read_line(&mut line) {
                    Ok(0) => panic!("it was read to its end"),
                    Ok(_) => {}
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains(expected), "{error}");
        };
        check(17 << 20, 1, "a line of more than 16 MiB");
        check(1 << 20, 70, "100 times");
    }

    #[test]
    fn the_digest_is_of_the_packed_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.gz");
        let mut packer = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        packer.write_all(b"one\ntwo\n").unwrap();
        packer.finish().unwrap();
        let mut log = Log::open(&path).unwrap();
        let mut line = Vec::new();
        log.read_line(&mut line).unwrap();
        assert_eq!(line, b"one\n");
        assert_eq!(log.digest().unwrap(), Digest::of(&fs::read(&path).unwrap()));
    }
}
