//! Programs that end by themselves: commands of cluster managers, and on hosts.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use dyno_host::PipedProcess;
use dyno_load::AbortFlag;
use dyno_units::{Clock, Nanoseconds, clean_text, redact_command, redact_secrets};

use super::Say;
use crate::error::{Result, TrialError};

const LOOK: Duration = Duration::from_millis(20);
const POLL: Nanoseconds = Nanoseconds::from_millis(100);
/// How long what it printed may take to arrive after its end.
const OUTPUT_LIMIT: Duration = Duration::from_secs(2);
const OUTPUT_MAX: u64 = 16 << 20;
const SHOWN: usize = 400;

/// How long a host that has had an agent is tried again, where the run does not go on without it.
pub(in crate::hosts) const LOST_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);
pub(in crate::hosts) const LOST_PAUSE: Nanoseconds = Nanoseconds::from_secs(5);

/// How long a command of a cluster manager may take that only asks or tells.
pub(super) const USUAL_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) abort: AbortFlag,
    /// Environment variables that they do not inherit.
    pub(crate) hidden: Vec<String>,
    pub(crate) clock: Arc<dyn Clock>,
}

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

    pub(super) fn reading(self, input: impl Read + Send + 'static) -> Run<'a> {
        Run { input: Some(Box::new(input)), ..self }
    }

    pub(super) fn within(self, limit: Nanoseconds) -> Run<'a> {
        Run { limit, ..self }
    }
}

#[derive(Debug)]
pub(super) struct Printed {
    pub(super) output: String,
    errors: Receiver<String>,
}

impl Printed {
    /// What it complained of all the same, in one line; empty if it did not.
    pub(super) fn complaint(&self) -> String {
        complaint(&self.errors)
    }
}

impl Tools {
    /// The same for what has to be done although the user wants to stop.
    pub(super) fn after_the_end(&self) -> Tools {
        Tools { abort: AbortFlag::new(), ..self.clone() }
    }

    pub(super) fn pause(&self, length: Nanoseconds) -> Result {
        let until = self.clock.now() + length;
        while self.clock.now() < until {
            if self.abort.is_raised() {
                return Err(TrialError::Abandoned);
            }
            self.clock.sleep_until(until.min(self.clock.now() + POLL));
        }
        Ok(())
    }

    /// Returns the output. Fails, with the command and its standard error, if it cannot be started,
    /// fails, or takes too long; or if the user wants to stop.
    pub(super) fn run(&self, run: Run<'_>) -> Result<Printed> {
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
        let mut next_second = self.clock.now() + Nanoseconds::SECOND;
        let until = self.clock.now() + limit;
        loop {
            if let Some(result) = process.result(LOOK) {
                return match result {
                    Ok(()) => {
                        let output = output.recv_timeout(OUTPUT_LIMIT).unwrap_or_default();
                        Ok(Printed { output, errors })
                    }
                    Err(how) => Err(failed(&how, &complaint(&errors))),
                };
            }
            if self.abort.is_raised() {
                process.kill();
                return Err(TrialError::Abandoned);
            }
            let now = self.clock.now();
            if now >= next_second {
                next_second += Nanoseconds::SECOND;
                each_second();
            }
            if now >= until {
                process.kill();
                return Err(failed(&format!("has not ended within {limit}"), &complaint(&errors)));
            }
        }
    }

    pub(super) fn ask(&self, command: &[String]) -> Result<String> {
        self.run(Run::of(command, &mut || {})).map(|printed| printed.output)
    }

    /// Retries for a minute while the manager `is_away`; fails as [`Tools::run`] does.
    pub(super) fn ask_again(
        &self,
        command: &[String],
        is_away: fn(&str) -> bool,
        say: Say<'_>,
    ) -> Result<String> {
        let until = self.clock.now() + LOST_LIMIT;
        let mut is_told = false;
        loop {
            let message = match self.ask(command) {
                Err(TrialError::Failed { message, .. })
                    if is_away(&message) && self.clock.now() < until =>
                {
                    message
                }
                result => return result,
            };
            if !is_told {
                say(format!("{message}; retrying for {LOST_LIMIT}"));
                is_told = true;
            }
            self.pause(LOST_PAUSE)?;
        }
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

fn complaint(errors: &Receiver<String>) -> String {
    last_words(&errors.recv_timeout(OUTPUT_LIMIT).unwrap_or_default())
}

/// The end of what a program complained of, in one line and without secrets.
fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = redact_secrets(&lines.join(" / "));
    let skip = text.chars().count().saturating_sub(SHOWN);
    let end: String = text.chars().skip(skip).collect();
    // It does not begin in the middle of a word.
    clean_text(&match end.split_once(' ') {
        Some((_, rest)) if skip > 0 => format!("… {rest}"),
        _ => end,
    })
}

pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Each look at it takes so long.
    struct Ticking(AtomicU64);

    impl Clock for Ticking {
        fn now(&self) -> Nanoseconds {
            Nanoseconds(self.0.fetch_add(Nanoseconds::from_millis(50).0, Ordering::Relaxed))
        }

        fn unix_millis(&self) -> u64 {
            0
        }

        fn sleep_until(&self, until: Nanoseconds) {
            self.0.fetch_max(until.0, Ordering::Relaxed);
        }
    }

    fn tools() -> Tools {
        let clock = Arc::new(Ticking(AtomicU64::new(0)));
        Tools { abort: AbortFlag::new(), hidden: Vec::new(), clock }
    }

    fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
        match result {
            Err(TrialError::Failed { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_program_prints_is_returned_and_what_it_reads_is_given() {
        let cat = words(&["cat"]);
        let said = tools().run(Run::of(&cat, &mut || {}).reading(&b"meow"[..]));
        assert_eq!(said.expect("it is there").output, "meow");
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
    fn what_is_away_is_asked_again_for_a_minute() {
        let folder = tempfile::tempdir().expect("a folder");
        let looks = folder.path().join("looks");
        // It answers the third time, where that is wanted.
        let ask = |code: &str, what: &str| {
            let script = format!(
                "echo look >> '{0}'; test $(wc -l < '{0}') = {code} && exit; echo {what} >&2; exit 1",
                looks.display()
            );
            let _ = std::fs::remove_file(&looks);
            let mut said = Vec::new();
            let command = words(&["sh", "-c", &script]);
            let is_away = |message: &str| message.ends_with("away");
            let result = tools().ask_again(&command, is_away, &mut |text| said.push(text));
            let n = std::fs::read_to_string(&looks).expect("it was run").lines().count();
            (result.is_ok(), n, said.len())
        };
        assert_eq!(ask("3", "away"), (true, 3, 1));
        assert_eq!(ask("3", "forbidden"), (false, 1, 0));
        let (is_good, n, said) = ask("never", "away");
        assert!(!is_good && (2..=13).contains(&n) && said == 1, "{n} {said}");
    }

    #[test]
    fn a_complaint_that_is_too_long_begins_with_a_whole_word() {
        assert_eq!(last_words("a\n\n b \n"), "a / b");
        let text = last_words(&format!("first {} last", "word ".repeat(100)));
        assert!(text.starts_with("… word word ") && text.ends_with(" last"), "{text}");
        assert!(text.chars().count() <= SHOWN + 2, "{text}");
    }

    #[test]
    fn a_raised_flag_ends_it() {
        let tools = tools();
        tools.abort.raise();
        let result = tools.ask(&words(&["sleep", "1000"]));
        assert!(matches!(result, Err(TrialError::Abandoned)), "{result:?}");
    }
}
