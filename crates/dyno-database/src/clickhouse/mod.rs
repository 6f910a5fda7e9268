//! ClickHouse: a private server from the program on this machine, or one that is already running.
//!
//! It is spoken to by HTTP, a request for each statement. What an expert must know to read its numbers:
//!
//! - A client waits for its answer in a blocking read, and opens its connection again where the server has
//!   ended it after an answer, as servers of HTTP do with idle ones. So each client wants a worker of its own.
//! - Nothing is prepared: values are written into the text, which the server parses for every statement.
//! - There are no transactions. ROLLBACK, which a client sends after any error, is answered by Dyno.
//! - Answers are asked for with `wait_end_of_query`: the server sends nothing before a statement has ended,
//!   so that its status says whether it failed.
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
mod sql;
#[cfg(test)]
mod tests;

pub(crate) use product::FAMILY;
pub(crate) use product::PROTOCOL;
