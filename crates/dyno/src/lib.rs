//! The command line; the only crate that prints, exits, reads the environment, makes the clock.

mod calibration;
mod cli;
mod clock;
mod commands;
mod examples;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod hints;
mod http;
mod lab;
mod latest;
mod live;
mod metrics;
mod process_list;
mod program;
mod progress;
mod readings;
mod recipes;
mod scripts;
mod secrets;
mod serve;
mod signals;
mod terminal;
mod values;
mod vocabulary;
mod written;

pub use program::main;

/// Decides the exit code.
pub(crate) enum End {
    Good,
    /// Done, but a part failed: a trial, a check.
    Bad,
    /// The input is wrong; a message has said so.
    Misused,
    /// A gate is undecided.
    Inconclusive,
    Interrupted,
    /// A sysbench script ended the program with this exit code.
    #[cfg_attr(not(feature = "lua"), expect(dead_code, reason = "there are no such scripts"))]
    Exit(u8),
}

/// A wrong option or study; nothing was done.
#[derive(Debug)]
pub(crate) struct UsageError(anyhow::Error);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for UsageError {}

pub(crate) fn usage_error(error: anyhow::Error) -> anyhow::Error {
    anyhow::Error::new(UsageError(error))
}
