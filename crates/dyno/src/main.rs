//! The command line: the only crate that prints, exits, reads the environment and makes the real
//! clock. One file a subcommand.

mod calibration;
mod cli;
mod clock;
mod commands;
mod lab;
mod live;
mod metrics;
mod progress;
mod secrets;
mod serve;
mod terminal;
mod vocabulary;

use std::process::ExitCode;

/// What a command ends with.
pub(crate) enum End {
    /// All is well.
    Good,
    /// It was done, and something in it failed: a trial, a check.
    Bad,
    /// The input is wrong, and a message said so.
    Misused,
    /// A gate was asked and the data do not decide.
    CannotSay,
    /// The user stopped it.
    Interrupted,
}

fn main() -> ExitCode {
    if let Err(error) = secrets::hide_from_process_list() {
        terminal::error(&error);
        return ExitCode::from(1);
    }
    match cli::run() {
        Ok(End::Good) => ExitCode::SUCCESS,
        Ok(End::Bad) => ExitCode::from(1),
        Ok(End::Misused | End::CannotSay) => ExitCode::from(2),
        Ok(End::Interrupted) => ExitCode::from(130),
        Err(error) => {
            terminal::error(&error);
            ExitCode::from(1)
        }
    }
}
