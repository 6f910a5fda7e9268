//! The project's own commands: `cargo xtask perf` measures Dyno beside its peers, `cargo xtask aa`
//! how often it reports a difference where there is none, `cargo xtask kills` what is left of runs that
//! are killed, `cargo xtask notices` writes the notices
//! of third parties, `cargo xtask package` makes a Debian package.
//!
//! Its tests are the house rules: the borders between crates, what every file must have, and what
//! dependencies may be.

#![allow(clippy::disallowed_methods, reason = "it is a program of its own, with an environment")]

mod aa;
#[cfg(test)]
mod borders;
mod dependencies;
mod kills;
mod package;
mod perf;
#[cfg(test)]
mod products;
#[cfg(test)]
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("perf") => perf::run(&arguments[1..]),
        Some("aa") => aa::run(&arguments[1..]),
        Some("kills") => kills::run(&arguments[1..]),
        Some("notices") => dependencies::write_notices(),
        Some("package") => package::run(),
        _ => {
            say(
                "usage: cargo xtask perf [ROW…]   measures Dyno beside sysbench and pgbench\n       \
                 cargo xtask aa [--noisy]   counts false alarms of studies without a difference\n       \
                 cargo xtask kills          kills runs at random moments, and looks for what is left\n       \
                 cargo xtask notices        writes THIRD_PARTY.md\n       \
                 cargo xtask package        makes a Debian package",
            );
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line to standard output.
#[expect(clippy::print_stderr, reason = "a command prints")]
fn say(text: &str) {
    eprintln!("{text}");
}
