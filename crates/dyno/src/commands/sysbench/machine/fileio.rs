//! `fileio`: reads, writes and syncs of files `test_file.0`, `test_file.1`, … in the current folder.
//!
//! What is asked next is one sequence for all threads, as in sysbench 1.0: blocks one after the other, or at
//! uniformly random places; and a sync of each file after so many requests, each an event of its own.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use dyno_sysbench::{Counter, Counters};
use dyno_units::{Clock, RandomStream, locked};
use dyno_workload::lua::ClientCells;
use rustix::fs::OFlags;

use super::{Client, Options, Spec, Stretch, Terminal, Test};
use crate::clock::SystemClock;
use crate::commands::beside::system_message;
use crate::scripts::is_there;
use crate::terminal;

pub(super) const SPEC: Spec = Spec {
    name: "fileio",
    options: "\
\x20 --file-num=N                  number of files to create [128]
  --file-block-size=N           block size to use in all IO operations [16384]
  --file-total-size=SIZE        total size of files to create [2G]
  --file-test-mode=STRING       test mode {seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw}
  --file-io-mode=STRING         file operations mode; Dyno has {sync}, not async or mmap [sync]
  --file-async-backlog=N        accepted and ignored [128]
  --file-extra-flags=[LIST,...] list of additional flags to use to open files {sync,dsync,direct} []
  --file-fsync-freq=N           do fsync() after this number of requests (0 - don't use fsync()) \
[100]
  --file-fsync-all[=on|off]     do fsync() after each write operation [off]
  --file-fsync-end[=on|off]     do fsync() at the end of test [on]
  --file-fsync-mode=STRING      which method to use for synchronization {fsync, fdatasync} [fsync]
  --file-merged-requests=N      merge at most this number of IO requests if possible (0 - don't \
merge) [0]
  --file-rw-ratio=N             reads/writes ratio for combined test [1.5]
",
    make: |options| {
        let settings = Settings::read(options)?;
        let given = options.text("file_test_mode");
        if given.is_empty() {
            let help = SPEC.help();
            return Err(format!("Missing required argument: --file-test-mode\n\n{help}"));
        }
        let found = MODES.into_iter().find(|(_, word, _)| *word == given);
        let (mode, _, words) =
            found.ok_or_else(|| format!("Invalid IO operations mode: {given}."))?;
        let (files, next) = Default::default();
        Ok(Box::new(FileIo { settings, mode, words, files, next }))
    },
    commands: &[("prepare", prepare), ("cleanup", cleanup)],
};

/// Buffers begin at a multiple of this, for direct I/O.
const ALIGNMENT: usize = 4096;

const BLOCK_MOST: f64 = (1_u32 << 30) as f64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Write,
    Rewrite,
    Read,
    RandomRead,
    RandomWrite,
    RandomBoth,
}

/// All modes, with their words on the command line and in output.
const MODES: [(Mode, &str, &str); 6] = [
    (Mode::Write, "seqwr", "sequential write (creation)"),
    (Mode::Rewrite, "seqrewr", "sequential rewrite"),
    (Mode::Read, "seqrd", "sequential read"),
    (Mode::RandomRead, "rndrd", "random read"),
    (Mode::RandomWrite, "rndwr", "random write"),
    (Mode::RandomBoth, "rndrw", "random r/w"),
];

/// Flags by their words, how sysbench shows them (in this order, with these blanks), and what they are.
static FLAGS: [(&str, &str, OFlags); 3] = [
    ("sync", "sync ", OFlags::SYNC),
    ("dsync", "dsync ", OFlags::DSYNC),
    ("direct", "directio", OFlags::DIRECT),
];

impl Mode {
    fn is_random(self) -> bool {
        matches!(self, Mode::RandomRead | Mode::RandomWrite | Mode::RandomBoth)
    }
}

#[derive(Clone, Debug)]
struct Settings {
    files: u64,
    block: u64,
    /// Bytes of one file.
    size: u64,
    total: u64,
    flags: Vec<String>,
    /// Requests between two rounds of syncs; none if there are no such rounds.
    sync_every: Option<u64>,
    syncs_all: bool,
    syncs_at_end: bool,
    is_data_sync: bool,
    /// Blocks of a sequential request.
    merged: u64,
    read_ratio: f64,
    events: u64,
}

impl Settings {
    fn read(options: &Options) -> Result<Settings, String> {
        let files = options.number("file_num");
        if !(1.0..=1e6).contains(&files) {
            return Err(format!("Invalid value for file-num: {files}"));
        }
        let block = options.number("file_block_size");
        if !(1.0..=BLOCK_MOST).contains(&block) {
            return Err(format!("Invalid value for file-block-size: {block}."));
        }
        match options.text("file_io_mode") {
            "sync" => {}
            mode @ ("async" | "mmap") => {
                return Err(format!(
                    "Dyno does not have --file-io-mode={mode}: it reads and writes with pread and \
                     pwrite (sync)"
                ));
            }
            other => return Err(format!("unknown I/O mode: {other}")),
        }
        if options.command.as_deref() == Some("run") && options.is_on("validate") {
            let why = "Dyno does not have --validate for fileio: the audit of the workload file-io \
                       checks what was written";
            return Err(why.to_owned());
        }
        let is_data_sync = match options.text("file_fsync_mode") {
            "fsync" => false,
            "fdatasync" => true,
            other => return Err(format!("Invalid fsync mode: {other}.")),
        };
        let flags = options.list("file_extra_flags").to_vec();
        if let Some(flag) = flags.iter().find(|flag| FLAGS.iter().all(|(word, ..)| flag != word)) {
            return Err(format!("Invalid value for file-extra-flags: {flag}"));
        }
        let read_ratio = options.number("file_rw_ratio");
        if read_ratio < 0.0 {
            return Err(format!("Invalid value for --file-rw-ratio: {read_ratio:.6}."));
        }
        let (files, block) = (files as u64, block as u64);
        let total = options.count("file_total_size");
        let size = total / files;
        if size < block {
            return Err(format!(
                "Invalid value for file-total-size: {total} bytes in {files} files are less than a block of \
                 {block} bytes in each"
            ));
        }
        let syncs_all = options.is_on("file_fsync_all");
        let sync_every = Some(options.count("file_fsync_freq")).filter(|n| *n > 0 && !syncs_all);
        Ok(Settings {
            files,
            block,
            size,
            total,
            flags,
            sync_every,
            syncs_all,
            syncs_at_end: options.is_on("file_fsync_end") && !syncs_all,
            is_data_sync,
            merged: options.count("file_merged_requests").clamp(1, 1 << 20),
            read_ratio,
            events: options.count("events"),
        })
    }

    fn flag_words(&self) -> String {
        match self.flags.is_empty() {
            true => "(none)".to_owned(),
            false => self.given_flags().map(|(_, shown, _)| *shown).collect(),
        }
    }

    fn given_flags(&self) -> impl Iterator<Item = &'static (&'static str, &'static str, OFlags)> {
        FLAGS.iter().filter(|(word, ..)| self.flags.iter().any(|flag| flag == word))
    }

    /// Opens a file of the test; a link of its name is not followed, and a file with other names, or one that another
    /// user has put there, is not used.
    fn open(&self, number: u64, is_made: bool) -> Result<File, String> {
        let name = file_name(number);
        let flags = self.given_flags().fold(OFlags::NOFOLLOW, |all, (.., flag)| all | *flag);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(is_made)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(&name)
            .map_err(|error| {
                let hint = "\nWARNING: Did you forget to run the prepare step?";
                let hint = if is_made { "" } else { hint };
                format!("Cannot open file '{name}' {}{hint}", in_words(&error))
            })?;
        let facts = file.metadata().map_err(|error| in_words(&error))?;
        let why = if !facts.is_file() || facts.nlink() > 1 {
            "it is not a regular file, or it has several hard links, so its contents may belong to something else"
        } else if !is_there(Path::new(&name)) {
            "it belongs to another user, who could change it during the test, and is in a folder that everybody may \
             write to; use a folder of your own"
        } else {
            return Ok(file);
        };
        Err(format!("Cannot open file '{name}': {why}"))
    }
}

/// An error as sysbench prints it.
fn in_words(error: &std::io::Error) -> String {
    let number = error.raw_os_error().unwrap_or(0);
    format!("errno = {number} ({})", system_message(error))
}

fn file_name(number: u64) -> String {
    format!("test_file.{number}")
}

/// A buffer whose used part begins at a multiple of [`ALIGNMENT`].
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    fn new(len: u64) -> Buffer {
        let bytes = vec![0; len as usize + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Buffer { bytes, start }
    }

    fn part(&mut self, len: u64) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + len as usize]
    }
}

fn prepare(options: &Options, host: &Terminal) -> Result<(), String> {
    let settings = Settings::read(options)?;
    host.notice(&format!(
        "{} files, {}Kb each, {}Mb total\nCreating files for the test...\nExtra file open flags: {}\n",
        settings.files,
        settings.size >> 10,
        (settings.size * settings.files) >> 20,
        settings.flag_words()
    ));
    let clock = SystemClock::start();
    let mut buffer = Buffer::new(settings.block);
    let mut written = 0;
    for number in 0..settings.files {
        let file = settings.open(number, true)?;
        let failed = |error: std::io::Error| {
            format!("Failed to write file '{}': {}", file_name(number), in_words(&error))
        };
        let mut at = file.metadata().map_err(failed)?.len();
        let verb = if at == 0 { "Creating" } else { "Reusing existing" };
        host.notice(&format!("{verb} file {}\n", file_name(number)));
        while at < settings.size {
            if host.abort.is_raised() {
                let why = "stopped before all files were complete; `cleanup` removes them";
                return Err(why.to_owned());
            }
            let len = settings.block.min(settings.size - at);
            file.write_all_at(buffer.part(len), at).map_err(failed)?;
            at += len;
            written += len;
        }
        file.sync_all().map_err(failed)?;
    }
    let seconds = clock.now().0 as f64 / 1e9;
    host.notice(&match written {
        0 => "No bytes written.\n".to_owned(),
        bytes => {
            let rate = bytes as f64 / f64::from(1 << 20) / seconds.max(1e-9);
            format!("{bytes} bytes written in {seconds:.2} seconds ({rate:.2} MiB/sec).\n")
        }
    });
    Ok(())
}

fn cleanup(options: &Options, host: &Terminal) -> Result<(), String> {
    let settings = Settings::read(options)?;
    host.notice("Removing test files...\n");
    for number in 0..settings.files {
        let name = file_name(number);
        let failed = |error| format!("{name} cannot be removed: {error}");
        match fs::symlink_metadata(&name) {
            Ok(found) if found.is_file() => fs::remove_file(&name).map_err(failed)?,
            Ok(_) => {
                terminal::say(&format!("WARNING: {name} is not a regular file and is left alone"))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Read { file: u64, at: u64, len: u64 },
    Write { file: u64, at: u64, len: u64 },
    Sync { file: u64 },
}

#[derive(Debug, Default)]
struct Next {
    file: u64,
    at: u64,
    /// The file that is synced next.
    synced: u64,
    /// Whether something was written since the last round of syncs.
    is_dirty: bool,
    reads: u64,
    writes: u64,
}

impl Next {
    /// What comes next; `unit` is a random number in [0, 1).
    fn draw(&mut self, mode: Mode, settings: &Settings, unit: f64) -> Request {
        let performed = self.reads + self.writes;
        if let Some(every) = settings.sync_every
            && self.is_dirty
            && performed.is_multiple_of(every)
        {
            let file = self.synced;
            self.synced = (file + 1) % settings.files;
            self.is_dirty = self.synced != 0;
            return Request::Sync { file };
        }
        let (file, at, len);
        if mode.is_random() {
            let place = (unit * (settings.size * settings.files) as f64) as u64;
            let place = place - place % settings.block;
            (file, at) = (place / settings.size, place % settings.size);
            len = settings.block.min(settings.size - at);
        } else {
            (file, at) = (self.file % settings.files, self.at);
            len = (settings.block * settings.merged).min(settings.size - at);
            let is_end = at + len == settings.size;
            (self.file, self.at) = if is_end { (file + 1, 0) } else { (file, at + len) };
        }
        let reads = match mode {
            Mode::Read | Mode::RandomRead => true,
            Mode::Write | Mode::Rewrite | Mode::RandomWrite => false,
            Mode::RandomBoth => {
                ((self.reads + 1) as f64 / (self.writes + 1) as f64) < settings.read_ratio
            }
        };
        self.reads += u64::from(reads);
        self.writes += u64::from(!reads);
        self.is_dirty |= !reads;
        if reads { Request::Read { file, at, len } } else { Request::Write { file, at, len } }
    }
}

struct FileIo {
    settings: Settings,
    mode: Mode,
    /// Of the mode.
    words: &'static str,
    files: OnceLock<Vec<File>>,
    next: Mutex<Next>,
}

impl FileIo {
    fn file(&self, number: u64) -> Result<&File, String> {
        let file = self.files.get().and_then(|files| files.get(number as usize));
        file.ok_or_else(|| format!("there is no file {number}"))
    }

    fn perform(
        &self,
        request: Request,
        buffer: &mut Buffer,
        counters: &Counters,
    ) -> Result<(), String> {
        let failed = |verb: &str, (file, at): (u64, u64), error: std::io::Error| {
            let why = in_words(&error);
            format!("Failed to {verb} file! file: {file} pos: {at} {why}")
        };
        match request {
            Request::Read { file, at, len } => {
                let read = self.file(file)?.read_exact_at(buffer.part(len), at);
                read.map_err(|error| failed("read", (file, at), error))?;
                counters.add(Counter::Read, 1);
            }
            Request::Write { file, at, len } => {
                let written = self.file(file)?.write_all_at(buffer.part(len), at);
                written.map_err(|error| failed("write", (file, at), error))?;
                counters.add(Counter::Write, 1);
                if self.settings.syncs_all {
                    self.sync(file, counters)?;
                }
            }
            Request::Sync { file } => self.sync(file, counters)?,
        }
        Ok(())
    }

    fn sync(&self, number: u64, counters: &Counters) -> Result<(), String> {
        let file = self.file(number)?;
        let done = if self.settings.is_data_sync { file.sync_data() } else { file.sync_all() };
        done.map_err(|e| format!("Failed to fsync file! file: {number} {}", in_words(&e)))?;
        counters.add(Counter::Other, 1);
        Ok(())
    }

    /// MiB a second that were read and written.
    fn rates(&self, stretch: &Stretch) -> (f64, f64) {
        let merged = if self.mode.is_random() { 1 } else { self.settings.merged };
        let requests = self.settings.size.div_ceil(self.settings.block * merged);
        // The last request of a file may be shorter: this is the mean.
        let mib = self.settings.size as f64 / requests as f64 / f64::from(1 << 20);
        let rate = |n: u64| stretch.per_second(n) * mib;
        (rate(stretch.done.reads), rate(stretch.done.writes))
    }
}

fn sized(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (0..units.len() - 1).take_while(|power| bytes >> (10 * (power + 1)) > 0).count();
    let value = bytes as f64 / 1024_f64.powi(power as i32);
    // As many digits as six significant ones need, and no zeros at the end.
    let text = format!("{value:.3}");
    format!("{}{}", text.trim_end_matches('0').trim_end_matches('.'), units[power])
}

impl Test for FileIo {
    fn mode(&self) -> String {
        let Settings { files, size, total, block, events, .. } = &self.settings;
        let mut out = format!(
            "Extra file open flags: {}\n{files} files, {} each\n{} total file size\nBlock size {}\n",
            self.settings.flag_words(),
            sized(*size),
            sized(*total),
            sized(*block)
        );
        if self.settings.merged > 1 {
            let most = sized(self.settings.merged * block);
            out += &format!("Merging requests up to {most} for sequential IO.\n");
        }
        if self.mode.is_random() {
            let ratio = self.settings.read_ratio;
            out += &format!(
                "Number of IO requests: {events}\nRead/Write ratio for combined random IO test: {ratio:.2}\n"
            );
        }
        // sysbench says so for fdatasync, too.
        if let Some(every) = self.settings.sync_every {
            out += &format!("Periodic FSYNC enabled, calling fsync() each {every} requests.\n");
        }
        if self.settings.syncs_at_end {
            out += "Calling fsync() at the end of test, Enabled.\n";
        }
        if self.settings.syncs_all {
            out += "Calling fsync() after each write operation.\n";
        }
        out + "Using synchronous I/O mode\nDoing " + self.words + " test\n"
    }

    fn begin(&self) -> Result<(), String> {
        let makes = self.mode == Mode::Write;
        let files: Result<Vec<File>, String> = (0..self.settings.files)
            .map(|number| {
                let file = self.settings.open(number, makes)?;
                let wrong = |why: String| format!("file '{}' {why}", file_name(number));
                let found = file.metadata().map_err(|error| wrong(in_words(&error)))?.len();
                if makes {
                    file.set_len(0).map_err(|error| wrong(in_words(&error)))?;
                } else if found < self.settings.size {
                    let (name, found) = (file_name(number), sized(found));
                    let size = sized(self.settings.size);
                    return Err(format!(
                        "Size of file '{name}' is {found}, but at least {size} is expected.\nWARNING: Did you run \
                         'prepare' with different --file-total-size or --file-num values?"
                    ));
                }
                Ok(file)
            })
            .collect();
        let _ = self.files.set(files?);
        Ok(())
    }

    fn client(&self, _tid: usize, mut random: RandomStream) -> Client<'_> {
        let mut buffer = Buffer::new(self.settings.block * self.settings.merged);
        Box::new(move |cells| {
            let unit = random.unit();
            let mut next = locked(&self.next);
            let request = next.draw(self.mode, &self.settings, unit);
            drop(next);
            self.perform(request, &mut buffer, &cells.counters).map(|()| true)
        })
    }

    fn finish(&self, cells: &ClientCells) -> Result<(), String> {
        let reads_only = matches!(self.mode, Mode::Read | Mode::RandomRead);
        if !self.settings.syncs_at_end || reads_only {
            return Ok(());
        }
        (0..self.settings.files).try_for_each(|number| self.sync(number, &cells.counters))
    }

    fn interval(&self, options: &Options, stretch: &Stretch) -> Option<String> {
        let (read, written) = self.rates(stretch);
        let percentile = options.number("percentile");
        let latency = stretch.done.latencies.percentile(percentile);
        let syncs = stretch.per_second(stretch.done.others);
        Some(format!(
            "reads: {read:4.2} MiB/s writes: {written:4.2} MiB/s fsyncs: {syncs:4.2}/s \
             latency (ms,{percentile}%): {latency:4.3}"
        ))
    }

    fn summary(&self, stretch: &Stretch) -> String {
        let done = &stretch.done;
        let (read, written) = self.rates(stretch);
        format!(
            "\nFile operations:\n    reads/s:                      {:4.2}\n    \
             writes/s:                     {:4.2}\n    fsyncs/s:                     {:4.2}\n\n\
             Throughput:\n    read, MiB/s:                  {read:4.2}\n    \
             written, MiB/s:               {written:4.2}\n",
            stretch.per_second(done.reads),
            stretch.per_second(done.writes),
            stretch.per_second(done.others),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            files: 2,
            block: 16,
            size: 40,
            total: 80,
            flags: Vec::new(),
            sync_every: None,
            syncs_all: false,
            syncs_at_end: false,
            is_data_sync: false,
            merged: 1,
            read_ratio: 1.5,
            events: 0,
        }
    }

    #[test]
    fn sequential_requests_go_through_all_files_and_begin_again() {
        let (mut next, settings) = (Next::default(), settings());
        let mut places = Vec::new();
        for _ in 0..7 {
            match next.draw(Mode::Read, &settings, 0.9) {
                Request::Read { file, at, len } => places.push((file, at, len)),
                other => panic!("{other:?}"),
            }
        }
        let of = |file| [(file, 0, 16), (file, 16, 16), (file, 32, 8)];
        assert_eq!(places, [&of(0)[..], &of(1), &of(0)[..1]].concat());
    }

    #[test]
    fn all_files_are_synced_after_so_many_requests() {
        let mut next = Next::default();
        let settings = Settings { sync_every: Some(2), ..settings() };
        let drawn: Vec<Request> =
            (0..6).map(|_| next.draw(Mode::RandomWrite, &settings, 0.5)).collect();
        // 0.5 of 80 bytes is byte 40, in the block of byte 32.
        let write = Request::Write { file: 0, at: 32, len: 8 };
        let [first, second] = [Request::Sync { file: 0 }, Request::Sync { file: 1 }];
        assert_eq!(drawn, [write, write, first, second, write, write]);
        // Where nothing was written, nothing is synced.
        let mut next = Next::default();
        let is_read =
            |_| matches!(next.draw(Mode::RandomRead, &settings, 0.0), Request::Read { .. });
        assert!((0..6).all(is_read));
    }

    #[test]
    fn reads_and_writes_keep_their_ratio() {
        let mut next = Next::default();
        let settings = settings();
        for _ in 0..1000 {
            next.draw(Mode::RandomBoth, &settings, 0.1);
        }
        assert_eq!((next.reads, next.writes), (600, 400));
    }

    #[test]
    fn sizes_are_written_as_by_sysbench() {
        let check = |bytes: u64, expected: &str| assert_eq!(sized(bytes), expected);
        check(16_384, "16KiB");
        check(2 << 30, "2GiB");
        check(1_536, "1.5KiB");
        check(512, "512B");
    }
}
