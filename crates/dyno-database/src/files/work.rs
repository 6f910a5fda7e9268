//! Operations on files: make, fill, read, write, sync, check.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dyno_units::{ByteCount, locked};
use dyno_workload::files::{Content, FileSet, SECTOR, Sectors, file_name};
use dyno_workload::{ErrorClass, StatementError};
use rustix::fs::OFlags;
use rustix::io::{Errno, pread, pwrite};

use super::aligned::Aligned;
use super::product::REFUSED;

use crate::error::StatementResult as Result;

/// Bytes that are written at once when files are filled, if blocks are smaller.
const FILL_BYTES: u64 = 1 << 20;

/// Blocks, and bytes, that a check reads back at most.
const CHECKED_MOST: (u64, u64) = (1024, 64 << 20);

#[derive(Debug)]
pub(super) struct Shared {
    folder: PathBuf,
    /// How many connections have opened files: each numbers its writes in a range of its own.
    n_opened: AtomicU64,
    /// The files as they were made, for those who fill them.
    made: Mutex<Option<FileSet>>,
}

impl Shared {
    pub(super) fn new(folder: &Path) -> Shared {
        Shared { folder: folder.to_owned(), n_opened: AtomicU64::new(0), made: Mutex::new(None) }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, file: u64) -> PathBuf {
        self.folder.join(file_name(file))
    }

    fn open(&self, set: &FileSet, file: u64, makes: bool) -> Result<File> {
        let mut flags = OFlags::empty();
        flags.set(OFlags::DIRECT, set.is_direct);
        flags.set(OFlags::DSYNC, set.is_synced);
        let path = self.path(file);
        let opened = File::options()
            .read(true)
            .write(true)
            .create(makes)
            .custom_flags(flags.bits() as i32)
            .open(&path);
        opened.map_err(|error| {
            if set.is_direct && error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) {
                return refused(format!(
                    "{REFUSED}the filesystem of {} cannot bypass the page cache (O_DIRECT); set \
                     direct = false",
                    self.folder.display()
                ));
            }
            failed(&format!("{} cannot be opened", path.display()), &error)
        })
    }

    pub(super) fn filler(&self, file: u64) -> Result<Filler> {
        let made = *locked(&self.made);
        let set = made.ok_or_else(|| refused("no files were created".to_owned()))?;
        // Each write by itself would only take longer: all is synced in the end.
        let set = FileSet { is_synced: false, ..set };
        let blocks = (FILL_BYTES / set.block).max(1);
        Ok(Filler {
            opened: self.open(&set, file, false)?,
            content: Content::new(set.seed, set.random),
            buffer: Aligned::new((blocks * set.block) as usize),
            set,
            file,
            most: blocks,
            first: 0,
            n: 0,
        })
    }
}

fn refused(message: String) -> StatementError {
    StatementError::new(ErrorClass::Refused, "files", message)
}

#[cold]
fn failed(what: &str, error: &io::Error) -> StatementError {
    let code = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC) => "ENOSPC".to_owned(),
        Some(Errno::IO) => "EIO".to_owned(),
        Some(Errno::INVAL) => "EINVAL".to_owned(),
        Some(Errno::ROFS) => "EROFS".to_owned(),
        Some(Errno::ACCESS) => "EACCES".to_owned(),
        Some(Errno::DQUOT) => "EDQUOT".to_owned(),
        Some(Errno::FBIG) => "EFBIG".to_owned(),
        Some(errno) => format!("errno {}", errno.raw_os_error()),
        None => "files".to_owned(),
    };
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    StatementError::new(ErrorClass::Refused, code, format!("{what}: {text}"))
}

#[cold]
fn failed_at(what: &str, bytes: usize, (file, offset): (u64, u64), error: Errno) -> StatementError {
    let what = format!("{what} {bytes} bytes at {offset} of {}", file_name(file));
    failed(&what, &error.into())
}

#[inline]
fn write_all(opened: &File, mut block: &[u8], (file, mut offset): (u64, u64)) -> Result<()> {
    while !block.is_empty() {
        match pwrite(opened, block, offset) {
            Ok(0) => return Err(failed_at("writing", block.len(), (file, offset), Errno::IO)),
            Ok(n) => {
                block = &block[n..];
                offset += n as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed_at("writing", block.len(), (file, offset), error)),
        }
    }
    Ok(())
}

/// Reads until the block is full or the file ends; returns the bytes read.
#[inline]
fn read_all(opened: &File, block: &mut [u8], (file, offset): (u64, u64)) -> Result<usize> {
    let mut n_read = 0;
    while n_read < block.len() {
        let at = offset + n_read as u64;
        match pread(opened, &mut block[n_read..], at) {
            Ok(0) => break,
            Ok(n) => n_read += n,
            Err(Errno::INTR) => {}
            Err(error) => {
                return Err(failed_at("reading", block.len() - n_read, (file, at), error));
            }
        }
    }
    Ok(n_read)
}

/// Checks that the set fits and can be used as specified. Makes the first file, empty.
pub(super) fn make(shared: &Shared, set: FileSet) -> Result<()> {
    check_space(shared, &set)?;
    let path = shared.path(set.first);
    let opened = shared.open(&set, set.first, true)?;
    // What an earlier step of the same trial left.
    opened.set_len(0).map_err(|error| failed("the file cannot be emptied", &error))?;
    try_out(shared, &set, &opened)?;
    opened.set_len(0).map_err(|error| failed(&path.display().to_string(), &error))?;
    let mut made = locked(&shared.made);
    *made = Some(set);
    Ok(())
}

fn check_space(shared: &Shared, set: &FileSet) -> Result<()> {
    let wanted = set.files.saturating_mul(set.size);
    // Data that compress may need less than their size.
    if set.random < SECTOR as u64 {
        return Ok(());
    }
    let free = dyno_host::free_bytes(&shared.folder)
        .map_err(|error| failed(&shared.folder.display().to_string(), &error))?;
    if wanted <= free {
        return Ok(());
    }
    Err(refused(format!(
        "{REFUSED}they need {}, but only {} are free in {}",
        ByteCount(wanted),
        ByteCount(free),
        shared.folder.display()
    )))
}

/// Writes a block at the second place there is, as clients will.
fn try_out(shared: &Shared, set: &FileSet, opened: &File) -> Result<()> {
    let mut block = Aligned::new(set.block as usize);
    match pwrite(opened, block.bytes(), set.step) {
        Err(Errno::INVAL) if set.is_direct => {
            let needed = direct_alignment(opened)
                .map_or(String::new(), |bytes| format!(" (it needs multiples of {bytes} bytes)"));
            Err(refused(format!(
                "{REFUSED}the device of {} does not accept direct I/O in blocks of {} bytes at \
                 multiples of {}{needed}; choose others, or set direct = false",
                shared.folder.display(),
                set.block,
                set.step
            )))
        }
        Err(error) => Err(failed_at("writing", set.block as usize, (set.first, set.step), error)),
        Ok(_) => Ok(()),
    }
}

/// What offsets and sizes of operations past the page cache must be multiples of, if the kernel says.
fn direct_alignment(opened: &File) -> Option<u32> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let found = statx(opened, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let is_known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::DIOALIGN);
    Some(found.stx_dio_offset_align).filter(|bytes| is_known && *bytes > 0)
}

pub(super) fn settle(shared: &Shared, set: FileSet) -> Result<()> {
    for file in set.first..set.first + set.files {
        let opened = shared.open(&set, file, false)?;
        opened
            .sync_all()
            .map_err(|error| failed(&format!("fsync of {}", file_name(file)), &error))?;
    }
    Ok(())
}

/// Writes the blocks of a file, several at once.
pub(super) struct Filler {
    opened: File,
    content: Content,
    buffer: Aligned,
    set: FileSet,
    file: u64,
    /// Blocks that are written at once.
    most: u64,
    /// The first of those in the buffer, and how many there are.
    first: u64,
    n: u64,
}

impl Filler {
    pub(super) fn push(&mut self, block: u64) -> Result<()> {
        if self.n == self.most || (self.n > 0 && block != self.first + self.n) {
            self.write()?;
        }
        if self.n == 0 {
            self.first = block;
        }
        self.n += 1;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        let (offset, len) = (self.first * self.set.block, (self.n * self.set.block) as usize);
        let blocks = &mut self.buffer.bytes()[..len];
        self.content.fill(self.file, offset, 0, blocks);
        self.n = 0;
        write_all(&self.opened, blocks, (self.file, offset))
    }
}

pub(super) struct Opened {
    set: FileSet,
    files: Vec<File>,
    content: Content,
    buffer: Aligned,
    sequence: u64,
}

impl Opened {
    pub(super) fn open(shared: &Shared, set: FileSet) -> Result<Opened> {
        let files = (set.first..set.first + set.files).map(|file| shared.open(&set, file, false));
        Ok(Opened {
            set,
            files: files.collect::<Result<_, _>>()?,
            content: Content::new(set.seed, set.random),
            buffer: Aligned::new(set.block as usize),
            // 16 million connections, each with a million million writes.
            sequence: (shared.n_opened.fetch_add(1, Ordering::Relaxed) + 1) << 40,
        })
    }

    /// Makes the first file of a set with its first block on disk, and opens it.
    pub(super) fn begin(shared: &Shared, set: FileSet) -> Result<Opened> {
        let opened = shared.open(&set, set.first, true)?;
        let what = || format!("{} cannot be begun", shared.path(set.first).display());
        opened.set_len(0).map_err(|error| failed(&what(), &error))?;
        drop(opened);
        let mut all = Opened::open(shared, FileSet { files: 1, ..set })?;
        all.write(set.first, 0)?;
        all.fsync(set.first)?;
        Ok(all)
    }

    #[inline]
    fn file(&self, file: u64) -> Result<&File> {
        let opened = self.files.get(file.wrapping_sub(self.set.first) as usize);
        opened.ok_or_else(|| refused(format!("{} is not open", file_name(file))))
    }

    /// Reads a block, which must be that of its place.
    #[inline]
    pub(super) fn read(&mut self, file: u64, offset: u64) -> Result<()> {
        let Opened { set, files, content, buffer, .. } = self;
        let Some(opened) = files.get(file.wrapping_sub(set.first) as usize) else {
            return Err(refused(format!("{} is not open", file_name(file))));
        };
        let block = buffer.bytes();
        let n = read_all(opened, block, (file, offset))?;
        if n < block.len() {
            return Err(refused(format!("{} ends at {}", file_name(file), offset + n as u64)));
        }
        if !content.is_in_place(file, offset, block) {
            return Err(refused(format!(
                "the block at {offset} of {} does not contain what was written there",
                file_name(file)
            )));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn write(&mut self, file: u64, offset: u64) -> Result<()> {
        let Opened { set, files, content, buffer, sequence } = self;
        let Some(opened) = files.get(file.wrapping_sub(set.first) as usize) else {
            return Err(refused(format!("{} is not open", file_name(file))));
        };
        *sequence += 1;
        let block = buffer.bytes();
        content.fill(file, offset, *sequence, block);
        write_all(opened, block, (file, offset))
    }

    pub(super) fn truncate(&self, file: u64) -> Result<()> {
        let cut = self.file(file)?.set_len(0);
        cut.map_err(|error| failed(&format!("cutting {}", file_name(file)), &error))
    }

    pub(super) fn fsync(&self, file: u64) -> Result<()> {
        rustix::fs::fsync(self.file(file)?)
            .map_err(|error| failed(&format!("fsync of {}", file_name(file)), &error.into()))
    }

    pub(super) fn fdatasync(&self, file: u64) -> Result<()> {
        rustix::fs::fdatasync(self.file(file)?)
            .map_err(|error| failed(&format!("fdatasync of {}", file_name(file)), &error.into()))
    }
}

/// Bytes of the files, bytes on disk, sectors read back, sectors never written, sectors with wrong
/// content. Samples blocks at equal distances.
pub(super) fn check(shared: &Shared, set: FileSet) -> Result<[u64; 5]> {
    let (mut size, mut on_disk, mut sectors) = (0, 0, Sectors::default());
    let content = Content::new(set.seed, set.random);
    let mut buffer = Aligned::new(set.block as usize);
    let is_whole = [set.block, set.step].iter().all(|bytes| bytes.is_multiple_of(SECTOR as u64));
    let most = CHECKED_MOST.0.min(CHECKED_MOST.1 / set.block).max(1);
    let blocks = (set.size / set.block).max(1);
    let stride = (set.files * blocks).div_ceil(most);
    for file in 0..set.files {
        let Ok(facts) = std::fs::metadata(shared.path(set.first + file)) else { continue };
        size += facts.len();
        on_disk += facts.blocks() * 512;
        let opened = shared.open(&set, set.first + file, false)?;
        let before = file * blocks;
        let first = before.div_ceil(stride) * stride - before;
        for block in (first..blocks).step_by(stride as usize) {
            let offset = block * set.block;
            if offset + set.block > facts.len() {
                break;
            }
            let bytes = buffer.bytes();
            read_all(&opened, bytes, (set.first + file, offset))?;
            let found = content.check(set.first + file, offset, bytes, is_whole);
            sectors.all += found.all;
            sectors.empty += found.empty;
            sectors.wrong += found.wrong;
        }
    }
    Ok([size, on_disk, sectors.all, sectors.empty, sectors.wrong])
}
