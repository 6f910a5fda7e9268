//! `dyno archive`: moves old rows of a table to another database in batches.

use dyno_analysis::numbers::grouped;
use dyno_database::{ArchiveOptions, ArchiveSide, Archived, TableBytes};
use dyno_load::AbortFlag;
use dyno_units::{Clock, Nanoseconds};

use crate::clock::SystemClock;
use crate::commands::{counted, explain_cost::endpoint_of};
use crate::{End, signals, terminal};

/// The rows of a batch are locked, and in memory, at once.
const BATCH_MAX: u64 = 100_000;

const LOOK: Nanoseconds = Nanoseconds::from_millis(100);

/// Options of `dyno archive`.
#[derive(clap::Args)]
pub(crate) struct ArchiveArguments {
    /// The database whose rows are moved: mysql://user@host/database, postgresql://user@host/database
    #[arg(value_name = "FROM")]
    from: String,
    /// The destination: clickhouse://user@host/database, or a URL of either kind above
    #[arg(value_name = "TO")]
    to: String,
    /// The table; it has the same name in both databases
    #[arg(long, value_name = "NAME")]
    table: String,
    /// Which rows to move: an SQL condition in the source database's dialect
    #[arg(long = "where", value_name = "CONDITION")]
    condition: String,
    /// Rows per batch; each batch is one transaction
    #[arg(long, value_name = "N", default_value = "5k", value_parser = batch)]
    batch: u64,
    /// How long to pause between two batches
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = dyno_units::parse_duration)]
    pause: Nanoseconds,
    /// The maximum number of rows to archive
    #[arg(long, value_name = "N", value_parser = dyno_units::parse_count)]
    limit: Option<u64>,
    /// Create the table at the destination if it is missing (ClickHouse only)
    #[arg(long)]
    create: bool,
    /// A query to time in both databases, before and after archiving
    #[arg(long, value_name = "SQL")]
    query: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn batch(text: &str) -> Result<u64, String> {
    match dyno_units::parse_count(text) {
        Ok(rows @ 1..=BATCH_MAX) => Ok(rows),
        Ok(_) => Err(format!("a batch has 1 to {} rows", grouped(BATCH_MAX))),
        Err(error) => Err(error.to_string()),
    }
}

struct Measured {
    /// At the source and at the destination.
    bytes: [TableBytes; 2],
    /// In milliseconds, at the source and at the destination.
    query: [Option<f64>; 2],
}

fn measure(
    options: &ArchiveArguments,
    sides: &mut [ArchiveSide; 2],
    clock: &SystemClock,
) -> anyhow::Result<Measured> {
    let [source, to] = sides;
    let bytes = [
        dyno_database::archive_bytes(source, &options.table)?,
        dyno_database::archive_bytes(to, &options.table)?,
    ];
    let mut query = [None; 2];
    if let Some(sql) = &options.query {
        for (side, (time, bytes)) in sides.iter_mut().zip(query.iter_mut().zip(bytes)) {
            // The table does not exist yet.
            if bytes.bytes == 0 && options.create {
                continue;
            }
            let took = side.time(sql, clock);
            let took = took.map_err(|error| anyhow::anyhow!("--query: {error}"))?;
            *time = Some(took.as_secs_f64() * 1e3);
        }
    }
    Ok(Measured { bytes, query })
}

pub(crate) fn run(options: &ArchiveArguments) -> anyhow::Result<End> {
    let from = endpoint_of(&options.from).map_err(crate::usage_error)?;
    let to = endpoint_of(&options.to).map_err(crate::usage_error)?;
    let request = ArchiveOptions {
        table: options.table.clone(),
        condition: options.condition.clone(),
        batch: options.batch,
        limit: options.limit,
        creates: options.create,
        destination: to.to_string(),
    };
    let abort = AbortFlag::new();
    signals::raise(&abort, "stopping after this batch …")?;
    let clock = SystemClock::start();
    let query = options.query.as_deref();
    let [source, to, mut notes] =
        dyno_database::archive_sides(&from, &to, &request.condition, query)?;
    let mut sides = [source, to];
    let before = measure(options, &mut sides, &clock)?;
    let began = clock.now();
    let mut told = began;
    let mut last = Archived::default();
    let mut goes_on = |done: &Archived| {
        last = *done;
        if terminal::is_interactive()
            && clock.now().saturating_sub(told) >= Nanoseconds::from_secs(1)
        {
            told = clock.now();
            terminal::say(&format!("{} rows", grouped(done.rows)));
        }
        let until = clock.now() + options.pause;
        while clock.now() < until && !abort.is_raised() {
            clock.sleep_until(until.min(clock.now() + LOOK));
        }
        !abort.is_raised()
    };
    let [source, to] = &mut sides;
    let done = dyno_database::archive_between(source, to, &mut notes, &request, &mut goes_on);
    let took = clock.now().saturating_sub(began);
    let done = match done {
        Ok(done) => done,
        Err(error) => {
            let mut text = error.to_string();
            if last.rows > 0 {
                let rows = counted(last.rows as usize, "row");
                text += &format!("\n{rows} had been archived before that");
            }
            if error.may_continue() {
                text += "\nrun the same command again to continue";
            }
            anyhow::bail!(text);
        }
    };
    let after = measure(options, &mut sides, &clock)?;
    for (side, bytes) in ["source", "destination"].into_iter().zip(after.bytes) {
        if bytes.is_estimate {
            terminal::say(&format!(
                "the size of the table at the {side} is an estimate from InnoDB's statistics: the \
                 account is not allowed to read the size of the table's file (GRANT PROCESS ON *.* \
                 would allow it), or the table has no file of its own"
            ));
        }
    }
    say_done(options, &done, took, [&before, &after]);
    Ok(End::Good)
}

fn say_done(
    options: &ArchiveArguments,
    done: &Archived,
    took: Nanoseconds,
    [before, after]: [&Measured; 2],
) {
    let seconds = took.as_secs_f64();
    let rate = if seconds > 0.0 { done.rows as f64 / seconds } else { 0.0 };
    let mut figures = vec![
        ("rows", Some(done.rows as f64)),
        ("rows_found_at_destination", Some(done.found as f64)),
        ("batches", Some(done.batches as f64)),
        ("batches_repeated", Some(done.repeated as f64)),
        ("seconds", Some(seconds)),
        ("rows_per_s", Some(rate)),
        ("source_bytes_before", Some(before.bytes[0].bytes as f64)),
        ("source_bytes_after", Some(after.bytes[0].bytes as f64)),
        ("destination_bytes_before", Some(before.bytes[1].bytes as f64)),
        ("destination_bytes_after", Some(after.bytes[1].bytes as f64)),
    ];
    if options.query.is_some() {
        figures.extend([
            ("source_query_ms_before", before.query[0]),
            ("source_query_ms_after", after.query[0]),
            ("destination_query_ms_before", before.query[1]),
            ("destination_query_ms_after", after.query[1]),
        ]);
    }
    if options.json {
        let mut object = serde_json::json!({"format": super::JSON_FORMAT});
        figures.iter().for_each(|(name, value)| object[*name] = serde_json::json!(value));
        return terminal::out(&object.to_string());
    }
    terminal::out(&format!(
        "archived {} of `{}` in {}",
        counted(done.rows as usize, "row"),
        dyno_units::clean_text(&options.table),
        counted(done.batches as usize, "batch"),
    ));
    for (name, value) in figures {
        if let Some(value) = value {
            let digits = if value.fract() == 0.0 { 0 } else { 3 };
            terminal::out(&format!("{name}: {value:.digits$}"));
        }
    }
}
