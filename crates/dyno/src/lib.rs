//! The command line: the only crate that prints, exits, reads the environment and makes the real
//! clock. Each subcommand has a file.

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
mod progress;
mod readings;
mod recipes;
mod scripts;
mod secrets;
mod serve;
mod signals;
mod terminal;
mod vocabulary;
mod written;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;

/// How a command ends, which decides the exit code.
pub(crate) enum End {
    Good,
    /// It was done, and part of it failed: a trial, a check.
    Bad,
    /// The input is wrong, and a message said so.
    Misused,
    /// The data do not decide a gate.
    Inconclusive,
    Interrupted,
    /// A script of sysbench has ended the program with this exit code.
    #[cfg_attr(not(feature = "lua"), expect(dead_code, reason = "there are no such scripts"))]
    Exit(u8),
}

pub fn main() -> ExitCode {
    keep_others_from_writing();
    if let Err(error) = secrets::hide_from_process_list() {
        terminal::error(&error);
        return ExitCode::from(1);
    }
    if let Err(error) = survive_file_size_limit() {
        terminal::error(&error);
        return ExitCode::from(1);
    }
    let end = cli::run().unwrap_or_else(|error| {
        // What fails because the user stops it is no error.
        match signals::have_come() {
            true => terminal::say(&format!("{error:#}")),
            false => terminal::error(&error),
        }
        if error.is::<UsageError>() { End::Misused } else { End::Bad }
    });
    let end = if signals::have_come() { End::Interrupted } else { end };
    let printed = terminal::check_output();
    if let Err(error) = &printed {
        terminal::error(error);
    }
    exit_code(&end, printed.is_ok())
}

/// Whatever the user's umask allows: nobody else may write in what Dyno makes, such as programs that were fetched.
fn keep_others_from_writing() {
    use rustix::fs::Mode;
    let others = Mode::WGRP | Mode::WOTH;
    let of_user = rustix::process::umask(others);
    rustix::process::umask(of_user | others);
}

/// A write beyond the limit for the size of a file (`ulimit -f`) is an error of that write, and does not end Dyno before
/// it has stopped its servers. These begin with the signal's usual meaning, as programs that are started do.
fn survive_file_size_limit() -> anyhow::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())
        .context("cannot listen for the signal SIGXFSZ")?;
    Ok(())
}

/// 2 after a usage error, when nothing was done; 1 if the command failed, or its result could not
/// be printed.
fn exit_code(end: &End, is_printed: bool) -> ExitCode {
    match end {
        End::Good if is_printed => ExitCode::SUCCESS,
        End::Good | End::Bad => ExitCode::from(1),
        End::Misused | End::Inconclusive => ExitCode::from(2),
        End::Interrupted => ExitCode::from(signals::EXIT_CODE),
        End::Exit(code) => ExitCode::from(*code),
    }
}

/// A usage error: a wrong option or a wrong study. Nothing was done.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_may_write_in_what_dyno_makes() {
        use rustix::fs::Mode;
        let before = rustix::process::umask(Mode::ROTH);
        keep_others_from_writing();
        let now = rustix::process::umask(before);
        assert_eq!(now, Mode::ROTH | Mode::WGRP | Mode::WOTH);
    }

    #[test]
    fn exit_codes_are_those_of_the_documents() {
        let check = |end: End, is_printed: bool, expected: u8| {
            let expected = ExitCode::from(expected);
            assert_eq!(format!("{:?}", exit_code(&end, is_printed)), format!("{expected:?}"));
        };
        check(End::Good, true, 0);
        check(End::Good, false, 1);
        check(End::Bad, true, 1);
        check(End::Misused, true, 2);
        check(End::Inconclusive, false, 2);
        check(End::Interrupted, true, 130);
        check(End::Exit(3), false, 3);
    }
}
