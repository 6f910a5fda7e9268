//! The project's own commands: `cargo xtask perf` measures Dyno beside its peers.
//!
//! Its tests are the house rules: the borders between crates, and what every file must have.

#[cfg(test)]
mod borders;
mod perf;
#[cfg(test)]
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("perf") => perf::run(&arguments[1..]),
        _ => {
            say("usage: cargo xtask perf [ROW…]   measures Dyno beside sysbench and pgbench");
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

/// Prints a line for a person.
#[expect(clippy::print_stderr, reason = "a command prints")]
fn say(text: &str) {
    eprintln!("{text}");
}
