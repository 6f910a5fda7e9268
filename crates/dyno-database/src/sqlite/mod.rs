//! SQLite, in Dyno's own process: nothing to install, and nothing between a client and the engine.
//!
//! What an expert must know to read its numbers:
//!
//! - All work is done on the client's own thread, inside `poll_reply`: a client that waits for a
//!   lock, or for the disk, blocks its worker. So each client wants a worker of its own.
//! - Waiting for a lock is SQLite's busy handler: it sleeps, for 1 ms first and for up to 100 ms
//!   later, and tries again. There is no queue: a later client may win. Response times of
//!   several writers show these steps.
//! - A transaction that begins with a read and then writes may fail at once, however long the busy
//!   timeout: another client has written meanwhile (`SQLITE_BUSY_SNAPSHOT` in WAL mode, counted as
//!   `serialization`), or waiting would be a deadlock (`SQLITE_BUSY`, counted as `lock_timeout`).
//!   An application would send BEGIN IMMEDIATE; a workload that sends BEGIN sends BEGIN here, too.
//! - SQLite is built with its default of counting memory (`MEMSTATUS`), so allocations of all
//!   clients pass one mutex. The facts list the options it was compiled with.

mod connection;
mod cost;
mod data;
mod debt;
mod pragma;
pub(crate) mod probe;
mod product;
mod server;
mod sql;

pub(crate) use product::FAMILY;

#[cfg(test)]
mod tests;

/// A connection to a database in memory, which ends with it.
///
/// # Errors
///
/// SQLite has no memory for it.
pub(crate) fn connection_in_memory() -> Result<Box<dyn dyno_workload::Connection>, rusqlite::Error>
{
    let database = rusqlite::Connection::open_in_memory()?;
    Ok(Box::new(connection::SqliteConnection::over(database)))
}
