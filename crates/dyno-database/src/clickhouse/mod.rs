//! ClickHouse: a private server from the program on this machine, or a running one.
//!
//! It speaks HTTP, with a request for each statement. To read its numbers:
//!
//! - A client waits in a blocking read, and opens its connection again if the server ended it after an answer,
//!   as HTTP servers do with idle ones. So each client needs a worker of its own.
//! - Nothing is prepared: values are written into the text, which the server parses for every statement.
//! - There are no transactions. Dyno answers ROLLBACK, which a client sends after any error.
//! - Requests have `wait_end_of_query`: the server answers only after the statement has ended, so that the
//!   status says whether it failed.
//! - The server does not say how many rows an INSERT stored.

mod attached;
mod connection;
mod facts;
mod files;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod http;
mod private;
pub(crate) mod probe;
mod product;
mod programs;
mod request;
mod settings;
pub(crate) mod sql;
#[cfg(test)]
mod tests;

pub(crate) use product::FAMILY;
pub(crate) use product::PROTOCOL;
