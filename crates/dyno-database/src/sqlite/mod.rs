//! SQLite, in Dyno's own process. To read its numbers:
//!
//! - A client's work runs on its own thread in `poll_reply`: waiting for a lock or the disk blocks
//!   the worker, so each client needs a worker of its own.
//! - SQLite's busy handler waits for locks by sleeping, first 1 ms, later up to 100 ms, and trying
//!   again, without a queue: a later client may win. Response times of several writers show these
//!   steps.
//! - A transaction that reads and then writes may fail at once, whatever the busy timeout: another
//!   client has written (`SQLITE_BUSY_SNAPSHOT` in WAL mode, counted as `serialization`), or
//!   waiting would be a deadlock (`SQLITE_BUSY`, counted as `lock_timeout`). An application would
//!   send BEGIN IMMEDIATE; a workload that sends BEGIN sends BEGIN here, too.
//! - SQLite counts memory (`MEMSTATUS`, its default), so all clients' allocations pass one mutex.
//!   The facts list compile options.

mod connection;
mod cost;
mod debt;
mod pragma;
pub(crate) mod probe;
mod product;
mod server;
pub(crate) mod sql;

pub(crate) use product::FAMILY;

#[cfg(test)]
mod tests;

/// A database that ends with its connection. Fails if there is no memory for it.
pub(crate) fn connection_in_memory() -> Result<Box<dyn dyno_workload::Connection>, rusqlite::Error>
{
    let database = rusqlite::Connection::open_in_memory()?;
    Ok(Box::new(connection::SqliteConnection::over(database)))
}
