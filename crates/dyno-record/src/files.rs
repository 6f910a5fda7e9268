//! Access to the files of a run's folder, which may come from anybody. Links are not followed; only
//! regular files are read (a FIFO blocks, a device has no end), and nothing without a limit. A
//! write replaces the file in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dyno_units::{ByteCount, FNV_1A, fnv_1a, planted_on_way};
use flate2::read::GzDecoder;
use rustix::fs::OFlags;

use crate::error::{WriteError, WriteResult};

/// Largest JSON file, which is read as a whole.
pub const WHOLE_MOST: u64 = 256 << 20;
/// Longest line of a log.
const LINE_MOST: u64 = 16 << 20;
/// Largest ratio of unpacked to packed, above [`UNPACKED_LEAST`]: real logs reach about 20, a file
/// made to fill the memory about 1,000.
const UNPACKED_TIMES: u64 = 100;
const UNPACKED_LEAST: u64 = 64 << 20;

/// Fails if the file is missing, or is a link, a folder, a FIFO or a device.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        // Otherwise opening a FIFO blocks until somebody writes to it.
        .custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
        .open(path)
        .map_err(|error| explain_link(path, error))?;
    check_regular(file)
}

/// Fails as [`open_regular`] does, or if the file has more than `most` bytes.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(invalid(format!(
            "the file is larger than {}: no file of Dyno's is that large",
            ByteCount(most)
        )));
    }
    Ok(bytes)
}

/// Writes the whole file or nothing: a new file is renamed. A link is replaced, never followed.
pub fn write_replacing(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = part_of(path);
    // Left by a killed Dyno; removing does not follow links.
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
        // On a full disk the file would be in the way.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Refuses a folder that another user made or could replace, and so lead elsewhere.
pub fn check_way(folder: &Path) -> WriteResult {
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

/// Refuses a folder in which every user may make files: those of a run could be there before Dyno makes them. On a
/// filesystem that keeps no modes, no folder is closed to others, and all are accepted.
pub(crate) fn check_closed(folder: &Path) -> WriteResult {
    if !fs::metadata(folder).is_ok_and(|facts| is_open(&facts)) || keeps_no_modes(folder) {
        return Ok(());
    }
    Err(WriteError::usage(
        folder,
        "every user may make files in it, and so change what is recorded; run `chmod o-w` on it, or use \
         another folder",
    ))
}

fn is_open(facts: &fs::Metadata) -> bool {
    facts.mode() & 0o002 != 0
}

/// For files made to look at their mode; process id and number follow.
pub(crate) const MODE_PROBE: &str = "mode.part-";

/// Whether a file there that is made for its owner alone is open to everybody all the same. Files that are there
/// already say nothing: they may have been made open, or put there by others.
fn keeps_no_modes(folder: &Path) -> bool {
    static N_MADE: AtomicU64 = AtomicU64::new(0);
    let nth = N_MADE.fetch_add(1, Relaxed);
    let path = folder.join(format!("{MODE_PROBE}{}-{nth}", std::process::id()));
    // Left by a killed Dyno of the same process id; removing does not follow links.
    let _ = fs::remove_file(&path);
    let probe = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let is_found_open = probe.and_then(|file| file.metadata()).is_ok_and(|facts| is_open(&facts));
    let _ = fs::remove_file(&path);
    is_found_open
}

/// `NAME.part`.
pub(crate) fn part_of(path: &Path) -> PathBuf {
    with_suffix(path, ".part")
}

/// Also for paths that are not UTF-8.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes the file if it is missing; fails if it has another name, which may be outside the run's folder.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    append_with(path, 0o666)
}

/// With this mode if it is made, less the process's mask.
pub(crate) fn append_with(path: &Path, mode: u32) -> io::Result<File> {
    let file = OpenOptions::new()
        .mode(mode)
        .create(true)
        .append(true)
        .custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
        .open(path)
        .map_err(|error| explain_link(path, error))?;
    let file = check_regular(file)?;
    match file.metadata()?.nlink() > 1 {
        true => Err(invalid(
            "it has several hard links, so its contents may belong to another file; copy the run's folder \
                 with `cp -a`, and use the copy",
        )),
        false => Ok(file),
    }
}

fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn check_regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(invalid("it is not a regular file")) }
}

/// In place of "Too many levels of symbolic links".
fn explain_link(path: &Path, error: io::Error) -> io::Error {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_symlink() => {
            invalid("it is a symbolic link, and links in a run's folder are not followed")
        }
        _ => error,
    }
}

pub(crate) fn unpacks_to_too_much() -> String {
    format!("it unpacks to more than {UNPACKED_TIMES} times its size, which no log of Dyno's does")
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why.into())
}

/// Appends the next line; returns its length, 0 at the end. Fails if it is longer than Dyno's are.
pub(crate) fn read_line(from: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    let n = from.take(LINE_MOST).read_until(b'\n', line)?;
    if n as u64 == LINE_MOST && line.last() != Some(&b'\n') {
        return Err(invalid(format!("it has a line of more than {} MiB", LINE_MOST >> 20)));
    }
    Ok(n)
}

/// Unpacked while it is read if its name ends in `.gz`; has the digest of the file.
pub(crate) struct Log {
    lines: BufReader<Unpacked>,
    unpacked_most: u64,
}

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

    /// Values packed within its lines may unpack to as many bytes again.
    pub(crate) fn unpacked_most(&self) -> u64 {
        self.unpacked_most
    }

    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<usize> {
        read_line(&mut self.lines, line)
    }

    /// Of the whole file as it is, packed or not.
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

/// FNV-1a, 64 bits. Finds damage and edits by hand; no protection against forgery.
#[derive(Clone, Copy)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(FNV_1A)
    }
}

impl Digest {
    pub fn of(bytes: &[u8]) -> String {
        let mut digest = Digest::default();
        digest.add(bytes);
        digest.text()
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0 = fnv_1a(self.0, bytes);
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
        let refused = |result: WriteResult<RunWriter>| {
            let why = result.err().expect("it is another user's").to_string();
            assert!(why.contains("runs belongs to user 54321"), "{why}");
        };
        refused(RunWriter::create(&path("runs"), &manifest("x")));
        refused(RunWriter::create(&path("runs/deep/run"), &manifest("x")));
        let why = crate::make_run_folder(&path("runs/new")).expect_err("as well").to_string();
        assert!(why.contains("runs belongs to user 54321"), "{why}");
        assert_eq!(fs::read_dir(path("runs")).unwrap().count(), 0);
        // An own run can be continued; a received one of another user is only read.
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
    fn no_record_is_written_where_every_user_may_make_files() {
        use std::os::unix::fs::PermissionsExt;

        use crate::writer::tests::manifest;
        use crate::{RunWriter, query};

        let bench = tempfile::tempdir().unwrap();
        let path = |name: &str| bench.path().join(name);
        drop(RunWriter::create(&path("run"), &manifest("x")).unwrap());
        let set = |name: &str, mode: u32| {
            fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        let check = |modes: [(&str, u32); 3], refused: Option<&str>| {
            modes.iter().for_each(|(name, mode)| set(name, *mode));
            let why = RunWriter::resume(&path("run"), &manifest("x")).err();
            let expected = refused.map(|name| {
                format!("cannot use the folder {}: every user may make", path(name).display())
            });
            let why = why.map(|why| why.to_string());
            let is_it = match (&why, &expected) {
                (Some(why), Some(expected)) => why.starts_with(expected),
                _ => why.is_none() && expected.is_none(),
            };
            assert!(is_it, "{modes:?}: {why:?}");
        };
        let modes = |run: u32, trials: u32, manifest: u32| {
            [("run", run), ("run/trials", trials), ("run/manifest.json", manifest)]
        };
        check(modes(0o755, 0o755, 0o644), None);
        check(modes(0o775, 0o775, 0o664), None);
        check(modes(0o1777, 0o755, 0o644), Some("run"));
        check(modes(0o777, 0o755, 0o644), Some("run"));
        check(modes(0o755, 0o1777, 0o644), Some("run/trials"));
        // The umask may have been 0, or another user may have put the manifest there.
        check(modes(0o777, 0o755, 0o666), Some("run"));
        check(modes(0o755, 0o777, 0o666), Some("run/trials"));
        assert_eq!(fs::read_dir(path("run/trials")).unwrap().count(), 0);
        set("run", 0o777);
        let why = query(&path("run"), "SELECT 1").expect_err("it is open").to_string();
        assert!(why.contains("every user may make files in it"), "{why}");
        assert!(!path("run/record.sqlite").exists());
        fs::create_dir(path("empty")).unwrap();
        set("empty", 0o1777);
        let why = RunWriter::create(&path("empty"), &manifest("x")).err().unwrap().to_string();
        assert!(why.contains("every user may make files in it"), "{why}");
        assert_eq!(fs::read_dir(path("empty")).unwrap().count(), 0);
        // A Dyno was killed while it looked at modes, and the user has closed the folder.
        set("empty", 0o755);
        fs::write(path("empty").join(format!("{MODE_PROBE}1-0")), "").unwrap();
        drop(RunWriter::create(&path("empty"), &manifest("x")).unwrap());
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
        let why = read_bounded(&path("good"), 3).unwrap_err().to_string();
        assert!(why.contains("larger than 3 B:"), "{why}");
        assert_eq!(read_bounded(&path("good"), u64::MAX).unwrap(), b"text");
        check("link", "symbolic link");
        check("fifo", "regular file");
        check(".", "regular file");
        assert!(open_regular(Path::new("/dev/zero")).is_err());
        assert!(append(&path("link")).unwrap_err().to_string().contains("symbolic link"));
        append(&path("good")).unwrap();
        fs::hard_link(path("good"), path("again")).unwrap();
        assert!(append(&path("again")).unwrap_err().to_string().contains("hard links"));
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
