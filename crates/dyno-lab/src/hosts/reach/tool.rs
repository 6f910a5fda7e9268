//! Programs that end by themselves: cluster managers' commands, and commands on a host.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use dyno_host::PipedProcess;
use dyno_load::AbortFlag;
use dyno_units::{Nanoseconds, clean_text, redact_command, redact_secrets};

use crate::trial::TrialError;

/// Between two looks whether a program has ended.
const LOOK: Duration = Duration::from_millis(20);
/// How many looks make a second.
const LOOKS_PER_S: u64 = 50;
/// How long what it printed may take to arrive after its end.
const OUTPUT_LIMIT: Duration = Duration::from_secs(2);
/// Bytes of its output that are read.
const OUTPUT_MAX: u64 = 16 << 20;
/// Bytes of its complaints that are in a message.
const SHOWN: usize = 400;

/// How long a command of a cluster manager may take that only asks or tells.
pub(super) const USUAL_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

/// What programs are run with.
#[derive(Clone)]
pub(crate) struct Tools {
    /// Ends them.
    pub(crate) abort: AbortFlag,
    /// Environment variables that they do not inherit.
    pub(crate) hidden: Vec<String>,
}

/// A program to be run.
pub(super) struct Run<'a> {
    command: &'a [String],
    input: Option<Box<dyn Read + Send>>,
    limit: Nanoseconds,
    each_second: &'a mut dyn FnMut(),
}

impl<'a> Run<'a> {
    /// A program that reads nothing, with the usual limit of time.
    pub(super) fn of(command: &'a [String], each_second: &'a mut dyn FnMut()) -> Run<'a> {
        Run { command, input: None, limit: USUAL_LIMIT, each_second }
    }

    /// The same, with what it reads.
    pub(super) fn reading(self, input: impl Read + Send + 'static) -> Run<'a> {
        Run { input: Some(Box::new(input)), ..self }
    }

    /// The same, within this time.
    pub(super) fn within(self, limit: Nanoseconds) -> Run<'a> {
        Run { limit, ..self }
    }
}

impl Tools {
    /// Runs a program to its end and returns what it printed.
    ///
    /// # Errors
    ///
    /// It cannot be started, fails, or takes longer than it may: a message with what it complained of,
    /// which begins with the command. Or the user wants to stop.
    pub(super) fn run(&self, run: Run<'_>) -> Result<String, TrialError> {
        let Run { command, input, limit, each_second } = run;
        let failed = |how: &str, complaint: &str| {
            let words = redact_command(command).join(" ");
            let colon = if complaint.is_empty() { "" } else { ": " };
            TrialError::new(format!("`{words}` {how}{colon}{complaint}"))
        };
        let (mut process, pipes) = PipedProcess::start(command, &self.hidden)
            .map_err(|error| failed(&format!("cannot be started: {error}"), ""))?;
        let (mut to, (output, errors)) = (pipes.input, (whole(pipes.output), whole(pipes.errors)));
        thread::spawn(move || {
            // One that reads no more says why by itself.
            if let Some(mut input) = input {
                let _ = std::io::copy(&mut input, &mut to).and_then(|_| to.flush());
            }
        });
        let looks = (limit.as_secs_f64() * LOOKS_PER_S as f64) as u64;
        for look in 1..=looks.max(1) {
            let Some(result) = process.result(LOOK) else {
                if self.abort.is_raised() {
                    process.kill();
                    return Err(TrialError::Abandoned);
                }
                if look % LOOKS_PER_S == 0 {
                    each_second();
                }
                continue;
            };
            let complaint = || last_words(&errors.recv_timeout(OUTPUT_LIMIT).unwrap_or_default());
            return match result {
                Ok(()) => Ok(output.recv_timeout(OUTPUT_LIMIT).unwrap_or_default()),
                Err(how) => Err(failed(&how, &complaint())),
            };
        }
        process.kill();
        let complaint = last_words(&errors.recv_timeout(OUTPUT_LIMIT).unwrap_or_default());
        Err(failed(&format!("has not ended within {limit}"), &complaint))
    }

    /// Runs a program that only asks or tells.
    ///
    /// # Errors
    ///
    /// Those of [`Tools::run`].
    pub(super) fn ask(&self, command: &[String]) -> Result<String, TrialError> {
        self.run(Run::of(command, &mut || {}))
    }
}

/// What is printed, once it is complete.
fn whole(from: Box<dyn Read + Send>) -> Receiver<String> {
    let (done, text) = channel();
    thread::spawn(move || {
        let (mut bytes, mut from) = (Vec::new(), from);
        let _ = (&mut from).take(OUTPUT_MAX).read_to_end(&mut bytes);
        let _ = done.send(String::from_utf8_lossy(&bytes).into_owned());
        // So that it does not wait for somebody who reads the rest.
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    });
    text
}

/// The end of what a program complained of, in one line and without secrets.
fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = redact_secrets(&lines.join(" / "));
    let skip = text.chars().count().saturating_sub(SHOWN);
    clean_text(&text.chars().skip(skip).collect::<String>())
}

impl TrialError {
    /// The same, with these words before the message.
    pub(in crate::hosts) fn before(self, words: &str) -> TrialError {
        match self {
            TrialError::Failed { message, log } => {
                TrialError::Failed { message: format!("{words}{message}"), log }
            }
            other => other,
        }
    }

    /// The same, with these words behind the message.
    pub(in crate::hosts) fn with(self, words: &str) -> TrialError {
        match self {
            TrialError::Failed { message, log } => {
                TrialError::Failed { message: format!("{message}{words}"), log }
            }
            other => other,
        }
    }

    /// The same, with the name of a host, or of a pool of them.
    pub(in crate::hosts) fn of_pool(self, name: &str) -> TrialError {
        self.before(&format!("host {name}: "))
    }
}

/// Words as a command.
pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Tools {
        Tools { abort: AbortFlag::new(), hidden: Vec::new() }
    }

    fn message(result: Result<String, TrialError>) -> String {
        match result {
            Err(TrialError::Failed { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_program_prints_is_returned_and_what_it_reads_is_given() {
        let cat = words(&["cat"]);
        let said = tools().run(Run::of(&cat, &mut || {}).reading(&b"meow"[..]));
        assert_eq!(said.expect("it is there"), "meow");
        assert_eq!(tools().ask(&cat).expect("its input is empty"), "");
    }

    #[test]
    fn what_fails_is_said_with_the_command() {
        let check = |command: &[&str], expected: &str| {
            assert_eq!(message(tools().ask(&words(command))), expected);
        };
        check(
            &["sh", "-c", "echo no; echo queue >&2; exit 3"],
            "`sh -c echo no; echo queue >&2; exit 3` ended with exit code 3: queue",
        );
        let said = message(tools().ask(&words(&["/nowhere/salloc"])));
        assert!(said.starts_with("`/nowhere/salloc` cannot be started"), "{said}");
        let sleep = words(&["sleep", "1000"]);
        let mut seconds = 0;
        let limit = Nanoseconds::from_millis(1100);
        let slow = tools().run(Run::of(&sleep, &mut || seconds += 1).within(limit));
        assert_eq!(
            (message(slow).as_str(), seconds),
            ("`sleep 1000` has not ended within 1.1 s", 1)
        );
    }

    #[test]
    fn a_raised_flag_ends_it() {
        let tools = tools();
        tools.abort.raise();
        let result = tools.ask(&words(&["sleep", "1000"]));
        assert!(matches!(result, Err(TrialError::Abandoned)), "{result:?}");
    }
}
