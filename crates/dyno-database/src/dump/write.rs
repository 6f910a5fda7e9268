//! Writes a dump: several connections read pieces of tables, each into a file of its own.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flate2::Crc;

use super::folder::{Dump, DumpedTable, Piece, file_name, make_file, make_folder};
use super::{DumpError, Moved, PieceReader, Table, TableSource, Wanted};
use crate::Endpoint;

#[derive(Clone, Debug)]
pub struct DumpOptions {
    pub folder: PathBuf,
    /// Names of tables; all of the database if there are none.
    pub tables: Vec<String>,
    /// Connections that read at once, at least 1.
    pub threads: usize,
    /// Rows of a file, about.
    pub rows_per_file: u64,
    /// Whether files are flushed to the disk before the dump is complete.
    pub is_synced: bool,
}

/// Dumps tables into a folder, which is removed on failure. Fails if server or disk do, the product has no
/// dumps, or after [`wait_no_more`](crate::wait_no_more).
pub fn dump(endpoint: &Endpoint, options: &DumpOptions, moved: &Moved) -> Result<Dump, DumpError> {
    let dumping = endpoint.protocol.dumping.ok_or_else(|| super::restore::not_there(endpoint))?;
    make_folder(&options.folder)?;
    let written = (|| {
        let wanted = Wanted {
            tables: &options.tables,
            n_readers: options.threads.max(1),
            rows_per_file: options.rows_per_file.max(1),
        };
        let mut snapshot = dumping.begin(endpoint, &wanted)?;
        let readers = std::mem::take(&mut snapshot.readers);
        let tables = std::mem::take(&mut snapshot.tables);
        // A dump that could not be restored is none.
        let names = tables.iter().map(|one| one.table.name.as_str()).collect();
        tables.iter().try_for_each(|one| dumping.check(&one.table, &names))?;
        let files = read_all(&tables, readers, options, moved)?;
        let mut dump = Dump::new(endpoint.protocol.name, snapshot.version, snapshot.notes);
        dump.tables = tables
            .into_iter()
            .zip(files)
            .map(|(source, files)| DumpedTable { table: source.table, files })
            .collect();
        dump.finish(&options.folder, options.is_synced)?;
        Ok(dump)
    })();
    if written.is_err() {
        // It was made above, where no other user can lead elsewhere, and holds nothing but what was written here.
        let _ = std::fs::remove_dir_all(&options.folder);
    }
    written
}

struct Task<'a> {
    table: usize,
    number: usize,
    source: &'a Table,
    condition: &'a str,
    /// Bytes of its rows, estimated.
    bytes: u64,
}

/// Reads all pieces; returns the files of each table in the order of their rows.
fn read_all(
    tables: &[TableSource],
    readers: Vec<Box<dyn PieceReader>>,
    options: &DumpOptions,
    moved: &Moved,
) -> Result<Vec<Vec<Piece>>, DumpError> {
    let mut tasks: Vec<Task<'_>> =
        tables.iter().enumerate().flat_map(|(idx, one)| tasks_of(idx, one)).collect();
    // The large ones first, so that no reader is left with one at the end.
    tasks.sort_by_key(|task| std::cmp::Reverse(task.bytes));
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let done = Mutex::new(Vec::with_capacity(tasks.len()));
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for mut reader in readers {
            let (tasks, next, has_failed) = (&tasks, &next, &has_failed);
            let (done, failure) = (&done, &failure);
            scope.spawn(move || {
                while !has_failed.load(Ordering::Relaxed)
                    && let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    match write_piece(reader.as_mut(), task, options, moved) {
                        Ok(piece) => {
                            let mut done = done.lock().unwrap_or_else(|e| e.into_inner());
                            done.push((task.table, task.number, piece));
                        }
                        Err(error) => {
                            has_failed.store(true, Ordering::Relaxed);
                            let mut failure = failure.lock().unwrap_or_else(|e| e.into_inner());
                            failure.get_or_insert(error.at(&task.source.name));
                        }
                    }
                }
            });
        }
    });
    if let Some(failure) = failure.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(failure);
    }
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_by_key(|(table, number, _)| (*table, *number));
    let mut files: Vec<Vec<Piece>> = tables.iter().map(|_| Vec::new()).collect();
    for (table, _, piece) in done {
        files[table].extend(piece);
    }
    Ok(files)
}

fn tasks_of(table: usize, source: &TableSource) -> impl Iterator<Item = Task<'_>> {
    let bytes = source.bytes / source.pieces.len().max(1) as u64;
    source.pieces.iter().enumerate().map(move |(idx, condition)| Task {
        table,
        number: idx + 1,
        source: &source.table,
        condition,
        bytes,
    })
}

/// Reads a piece into a file; none if it has no rows.
fn write_piece(
    reader: &mut dyn PieceReader,
    task: &Task<'_>,
    options: &DumpOptions,
    moved: &Moved,
) -> Result<Option<Piece>, DumpError> {
    let name = file_name(&task.source.name, task.number);
    // Two names of tables may be cut to one name of a file.
    let name = if name.len() > 200 { format!("{}-{name}", task.table) } else { name };
    let path = options.folder.join(&name);
    let mut target = Target { path: &path, file: None, crc: Crc::new(), bytes: 0 };
    let rows = reader.read(task.source, task.condition, &mut |lines| {
        moved.add_bytes(lines.len());
        target.write(lines)
    })?;
    moved.add_rows(rows);
    let Target { file: Some(file), crc, bytes, .. } = target else { return Ok(None) };
    if options.is_synced {
        file.sync_all().map_err(|error| named(&path, &error))?;
    }
    Ok(Some(Piece { file: name, rows, bytes, crc32: crc.sum() }))
}

/// A file that is made when its first lines come.
struct Target<'a> {
    path: &'a Path,
    file: Option<File>,
    crc: Crc,
    bytes: u64,
}

impl Target<'_> {
    fn write(&mut self, lines: &[u8]) -> Result<(), DumpError> {
        if self.file.is_none() {
            self.file = Some(make_file(self.path).map_err(|error| named(self.path, &error))?);
        }
        let file = self.file.as_mut().expect("it is made above");
        file.write_all(lines).map_err(|error| named(self.path, &error))?;
        self.crc.update(lines);
        self.bytes += lines.len() as u64;
        Ok(())
    }
}

fn named(path: &Path, error: &std::io::Error) -> DumpError {
    DumpError::new(format!("{} cannot be written: {error}", path.display()))
}
