//! From start to exit code.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;

use crate::{End, UsageError, cli, process_list, signals, terminal};

pub fn main() -> ExitCode {
    keep_others_from_writing();
    if let Err(error) = process_list::hide_from_process_list() {
        terminal::error(&error);
        return ExitCode::from(1);
    }
    if let Err(error) = survive_file_size_limit() {
        terminal::error(&error);
        return ExitCode::from(1);
    }
    let end = cli::run().unwrap_or_else(|error| {
        // A failure because of the user's signal is no error.
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

/// Nobody else may write what Dyno makes, such as fetched programs, whatever the umask.
fn keep_others_from_writing() {
    use rustix::fs::Mode;
    let others = Mode::WGRP | Mode::WOTH;
    let of_user = rustix::process::umask(others);
    rustix::process::umask(of_user | others);
}

/// A write beyond `ulimit -f` becomes an error of that write, so that Dyno can stop its servers. Programs that it
/// starts get the signal's default action.
fn survive_file_size_limit() -> anyhow::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())
        .context("cannot listen for the signal SIGXFSZ")?;
    Ok(())
}

/// 2 after a usage error, when nothing was done; 1 after a failure, or for a lost result.
fn exit_code(end: &End, is_printed: bool) -> ExitCode {
    match end {
        End::Good if is_printed => ExitCode::SUCCESS,
        End::Good | End::Bad => ExitCode::from(1),
        End::Misused | End::Inconclusive => ExitCode::from(2),
        End::Interrupted => ExitCode::from(signals::EXIT_CODE),
        End::Exit(code) => ExitCode::from(*code),
    }
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
