//! `dyno dump` and `dyno restore`: the tables of a database as a folder of text files, and back.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use dyno_analysis::numbers::grouped;
use dyno_database::{Dump, DumpError, DumpOptions, Moved};
use dyno_units::{ByteCount, Clock, Nanoseconds, clean_text};

use crate::commands::{counted, explain_cost::endpoint_of};
use crate::{End, signals, terminal};

const THREADS_MAX: usize = 256;

/// Options of `dyno dump`.
#[derive(clap::Args)]
pub(crate) struct DumpArguments {
    /// The database: mysql://user@host/database
    #[arg(value_name = "URL")]
    url: String,
    /// The folder to create
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Number of parallel connections; more than one needs a short global read lock [default: one
    /// for each CPU]
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// Approximate number of rows in a file; a table whose primary key is not an integer gets a single
    /// file
    #[arg(long, value_name = "N", default_value = "200k", value_parser = rows)]
    rows: u64,
    /// Dump only this table; may be repeated [default: all tables of the database]
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// Do not flush files to the disk at the end
    #[arg(long)]
    no_sync: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Options of `dyno restore`.
#[derive(clap::Args)]
pub(crate) struct RestoreArguments {
    /// The folder made by `dyno dump`
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The database to restore into: mysql://user@host/database
    #[arg(value_name = "URL")]
    url: String,
    /// Number of parallel connections [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=THREADS_MAX) => Ok(threads),
        _ => Err(format!("give a number of connections from 1 to {THREADS_MAX}")),
    }
}

fn rows(text: &str) -> Result<u64, String> {
    match dyno_units::parse_count(text) {
        Ok(0) => Err("a file has at least 1 row".to_owned()),
        Ok(rows) => Ok(rows),
        Err(error) => Err(error.to_string()),
    }
}

fn one_per_cpu() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

pub(crate) fn run(options: &DumpArguments) -> anyhow::Result<End> {
    let endpoint = endpoint_of(&options.url).map_err(crate::usage_error)?;
    let request = DumpOptions {
        folder: options.folder.clone(),
        tables: options.tables.clone(),
        threads: options.threads.unwrap_or_else(one_per_cpu),
        rows_per_file: options.rows,
        is_synced: !options.no_sync,
    };
    let moved = Moved::default();
    let (dump, took) = timed(&moved, || dyno_database::dump(&endpoint, &request, &moved))?;
    say_done("dumped", &dump, took, options.json);
    Ok(End::Good)
}

pub(crate) fn restore(options: &RestoreArguments) -> anyhow::Result<End> {
    let endpoint = endpoint_of(&options.url).map_err(crate::usage_error)?;
    let dump = Dump::open(&options.folder).map_err(|e| crate::usage_error(e.into()))?;
    let threads = options.threads.unwrap_or_else(one_per_cpu);
    let moved = Moved::default();
    let folder = &options.folder;
    let work = || dyno_database::restore(&dump, folder, &endpoint, threads, &moved);
    let ((), took) = timed(&moved, work)?;
    say_done("restored", &dump, took, options.json);
    Ok(End::Good)
}

/// Shows progress each second on a terminal; the first signal ends the work.
fn timed<T: Send>(
    moved: &Moved,
    work: impl FnOnce() -> Result<T, DumpError> + Send,
) -> anyhow::Result<(T, Nanoseconds)> {
    signals::on_first(|| {
        terminal::say("\nstopping …");
        dyno_database::wait_no_more();
    })?;
    let clock = crate::clock::SystemClock::start();
    let began = clock.now();
    let (send, ended) = channel::<()>();
    let done = std::thread::scope(|scope| {
        if terminal::is_interactive() {
            scope.spawn(move || {
                while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                    let (rows, bytes) = (moved.rows(), ByteCount(moved.bytes()));
                    terminal::say(&format!("{} rows, {bytes}", grouped(rows)));
                }
            });
        }
        let done = work();
        drop(send);
        done
    });
    Ok((done?, clock.now().saturating_sub(began)))
}

fn say_done(what: &str, dump: &Dump, took: Nanoseconds, is_json: bool) {
    dump.notes.iter().for_each(|note| terminal::say(&format!("note: {}", clean_text(note))));
    let seconds = took.as_secs_f64();
    let (rows, bytes) = (dump.rows(), dump.bytes());
    if is_json {
        let text = serde_json::json!({
            "format": super::JSON_FORMAT,
            "tables": dump.tables.len(),
            "files": dump.n_files(),
            "rows": rows,
            "bytes": bytes,
            "seconds": seconds,
            "notes": dump.notes,
        });
        return terminal::out(&text.to_string());
    }
    let rate = if seconds > 0.0 { (bytes as f64 / seconds) as u64 } else { bytes };
    terminal::out(&format!(
        "{what} {} with {} rows: {} in {}, {seconds:.2} s, {}/s",
        counted(dump.tables.len(), "table"),
        grouped(rows),
        ByteCount(bytes),
        counted(dump.n_files(), "file"),
        ByteCount(rate),
    ));
}
