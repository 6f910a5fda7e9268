//! Restores a dump: several connections load files; what is built from all rows of a table follows its
//! last file.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};

use super::folder::Piece;
use super::{Dump, DumpError, DumpedTable, Loader, Moved};
use crate::{Endpoint, waiting};

/// Makes and loads all tables with `threads` connections. Fails if a table exists, something is refused, or after
/// [`wait_no_more`](crate::wait_no_more): restored tables then stay, and the message names them.
pub fn restore(
    dump: &Dump,
    folder: &Path,
    endpoint: &Endpoint,
    threads: usize,
    moved: &Moved,
) -> Result<(), DumpError> {
    let dumping = endpoint.protocol.dumping.ok_or_else(|| not_there(endpoint))?;
    if dump.protocol != endpoint.protocol.name {
        return Err(DumpError::new(format!(
            "the dump is from a server that speaks the protocol {}, but this server speaks {}",
            dump.protocol, endpoint.protocol.name
        )));
    }
    // Before anything is run.
    let names = dump.tables.iter().map(|one| one.table.name.as_str()).collect();
    dump.tables.iter().try_for_each(|one| dumping.check(&one.table, &names))?;
    let n_loaders = threads.clamp(1, dump.n_files().max(1));
    let mut loaders =
        (0..n_loaders).map(|_| dumping.loader(endpoint)).collect::<Result<Vec<_>, DumpError>>()?;
    let there = loaders[0].tables()?;
    if let Some(table) = dump.tables.iter().find(|one| there.contains(&one.table.name)) {
        return Err(DumpError::new(format!(
            "the table `{}` already exists; drop it yourself, or restore into another database",
            table.table.name
        )));
    }
    let sessions: Vec<u64> = loaders.iter_mut().filter_map(|one| one.session()).collect();
    let mut made = Vec::new();
    let restored = restore_all(dump, folder, &mut loaders, moved, &mut made);
    if restored.is_err() && waiting::is_over() {
        cancel(endpoint, &sessions);
    }
    restored.map_err(|error| match made.as_slice() {
        [] => error,
        made => DumpError::new(format!(
            "{error}; what was restored so far is left in place, in {}",
            made.join(", ")
        )),
    })
}

/// Ends what the sessions still do: a server goes on building an index although its client has left.
fn cancel(endpoint: &Endpoint, sessions: &[u64]) {
    waiting::wait_again();
    // What cannot be cancelled ends by itself.
    let Ok(mut connection) = endpoint.protocol.connector(endpoint)() else { return };
    for session in sessions {
        let _ = crate::cancel(connection.as_mut(), *session);
    }
}

pub(super) fn not_there(endpoint: &Endpoint) -> DumpError {
    DumpError::new(format!(
        "Dyno does not dump or restore {} servers; use the server's own tools",
        endpoint.protocol.name
    ))
}

fn restore_all(
    dump: &Dump,
    folder: &Path,
    loaders: &mut [Box<dyn Loader>],
    moved: &Moved,
    made: &mut Vec<String>,
) -> Result<(), DumpError> {
    for one in &dump.tables {
        let create = std::slice::from_ref(&one.table.create);
        loaders[0].run(create).map_err(|error| error.at(&one.table.name))?;
        made.push(one.table.name.clone());
    }
    let queue = Queue::new(&dump.tables);
    std::thread::scope(|scope| {
        for loader in loaders.iter_mut() {
            let queue = &queue;
            scope.spawn(move || {
                while let Some(work) = queue.next() {
                    let done = do_one(loader.as_mut(), &work, folder, moved);
                    queue.ended(&work, done);
                }
            });
        }
    });
    queue.into_result()?;
    for one in &dump.tables {
        loaders[0].run(&one.table.at_last).map_err(|error| error.at(&one.table.name))?;
    }
    Ok(())
}

enum Work<'a> {
    Load(usize, &'a DumpedTable, &'a Piece),
    Finish(&'a DumpedTable),
}

fn do_one(
    loader: &mut dyn Loader,
    work: &Work<'_>,
    folder: &Path,
    moved: &Moved,
) -> Result<(), DumpError> {
    match work {
        Work::Finish(one) => {
            loader.run(&one.table.after).map_err(|error| error.at(&one.table.name))
        }
        Work::Load(_, one, piece) => {
            let mut file = piece.open(folder)?;
            let rows = loader
                .load(&one.table, &mut file)
                .map_err(|error| error.at(&format!("{} into {}", piece.file, one.table.name)))?;
            if rows != piece.rows {
                return Err(DumpError::new(format!(
                    "{}: {rows} rows were stored, but the dump has {}",
                    piece.file, piece.rows
                )));
            }
            moved.add_rows(rows);
            moved.add_bytes(piece.bytes as usize);
            Ok(())
        }
    }
}

/// Work left. A loader takes a file of the table with the fewest loaders: some servers store rows of one
/// table by only one statement at a time.
struct Queue<'a> {
    state: Mutex<State<'a>>,
    has_changed: Condvar,
}

struct State<'a> {
    tables: Vec<TableState<'a>>,
    failure: Option<DumpError>,
}

struct TableState<'a> {
    table: &'a DumpedTable,
    waiting: VecDeque<&'a Piece>,
    n_loading: usize,
    /// Whether what comes after its rows is begun, or there is none.
    is_finishing: bool,
}

impl<'a> Queue<'a> {
    fn new(tables: &'a [DumpedTable]) -> Queue<'a> {
        let tables = tables
            .iter()
            .map(|table| TableState {
                table,
                waiting: table.files.iter().collect(),
                n_loading: 0,
                is_finishing: table.table.after.is_empty(),
            })
            .collect();
        Queue { state: Mutex::new(State { tables, failure: None }), has_changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(|error| error.into_inner())
    }

    /// The next thing to do; waits while others may bring some. None when all is done, or something failed.
    fn next(&self) -> Option<Work<'a>> {
        let mut state = self.lock();
        loop {
            if state.failure.is_some() {
                return None;
            }
            if let Some(work) = state.take() {
                return Some(work);
            }
            let will_bring_work =
                |table: &TableState<'_>| table.n_loading > 0 && !table.is_finishing;
            if !state.tables.iter().any(will_bring_work) {
                return None;
            }
            state = self.has_changed.wait(state).unwrap_or_else(|error| error.into_inner());
        }
    }

    fn ended(&self, work: &Work<'_>, done: Result<(), DumpError>) {
        let mut state = self.lock();
        if let Work::Load(idx, ..) = work {
            state.tables[*idx].n_loading -= 1;
        }
        if let Err(error) = done {
            state.failure.get_or_insert(error);
        }
        self.has_changed.notify_all();
    }

    fn into_result(self) -> Result<(), DumpError> {
        let state = self.state.into_inner().unwrap_or_else(|error| error.into_inner());
        state.failure.map_or(Ok(()), Err)
    }
}

impl<'a> State<'a> {
    fn take(&mut self) -> Option<Work<'a>> {
        let is_loaded = |table: &TableState<'_>| table.waiting.is_empty() && table.n_loading == 0;
        let mut loaded = self.tables.iter_mut();
        if let Some(table) = loaded.find(|table| is_loaded(table) && !table.is_finishing) {
            table.is_finishing = true;
            return Some(Work::Finish(table.table));
        }
        let waiting = self.tables.iter_mut().enumerate();
        let (idx, table) = waiting
            .filter(|(_, table)| !table.waiting.is_empty())
            .min_by_key(|(_, table)| (table.n_loading, std::cmp::Reverse(table.waiting.len())))?;
        let piece = table.waiting.pop_front()?;
        table.n_loading += 1;
        Some(Work::Load(idx, table.table, piece))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Column, Table};
    use super::*;

    fn table(name: &str, n_files: usize, after: &[&str]) -> DumpedTable {
        let piece =
            |number| Piece { file: format!("{name}.{number}"), rows: 1, bytes: 1, crc32: 0 };
        DumpedTable {
            table: Table {
                name: name.to_owned(),
                columns: vec![Column { name: "a".to_owned(), data_type: "int".to_owned() }],
                create: String::new(),
                after: after.iter().map(|&text| text.to_owned()).collect(),
                at_last: Vec::new(),
            },
            files: (1..=n_files).map(piece).collect(),
        }
    }

    fn name(work: Option<&Work<'_>>) -> String {
        match work {
            None => "nothing".to_owned(),
            Some(Work::Load(_, _, piece)) => piece.file.clone(),
            Some(Work::Finish(one)) => format!("finish {}", one.table.name),
        }
    }

    #[test]
    fn loaders_spread_over_tables_and_finish_those_that_are_loaded() {
        let tables = [table("a", 2, &["index"]), table("b", 3, &[]), table("c", 0, &["index"])];
        let queue = Queue::new(&tables);
        let mut state = queue.lock();
        let taken: Vec<Option<Work<'_>>> = (0..7).map(|_| state.take()).collect();
        let names: Vec<String> = taken.iter().map(|work| name(work.as_ref())).collect();
        assert_eq!(names, ["finish c", "b.1", "a.1", "b.2", "a.2", "b.3", "nothing"]);
        drop(state);
        for work in taken.iter().flatten() {
            queue.ended(work, Ok(()));
        }
        assert_eq!(name(queue.next().as_ref()), "finish a");
        assert_eq!(name(queue.next().as_ref()), "nothing");
        assert_eq!(queue.into_result(), Ok(()));
    }

    #[test]
    fn a_failure_ends_the_others() {
        let tables = [table("a", 3, &[])];
        let queue = Queue::new(&tables);
        let work = queue.next().unwrap();
        queue.ended(&work, Err(DumpError::new("the disk is full")));
        assert_eq!(name(queue.next().as_ref()), "nothing");
        assert_eq!(queue.into_result(), Err(DumpError::new("the disk is full")));
    }
}
