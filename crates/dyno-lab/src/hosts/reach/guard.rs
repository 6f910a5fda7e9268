//! Gives requested hosts back when Dyno ends in any way. A guard is a process that waits for the end of
//! its input, which comes with Dyno's end, also by `kill -9`. Then it runs the command that gives back:
//! twice, as the request may have been on its way, or until it succeeds if the manager is away.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dyno_host::PipedProcess;
use dyno_units::Nanoseconds;

use super::tool::{Tools, words};
use crate::error::{Context, Result};

/// Its first words are the seconds after which it gives up, and those of the first pause; pauses grow to five minutes.
const SCRIPT: &str = "trap '' HUP INT TERM; exec >/dev/null 2>&1
if read -r word && [ \"$word\" = dismissed ]; then exit 0; fi
left=$1 pause=$2; shift 2
if \"$@\" </dev/null; then sleep $pause; \"$@\" </dev/null; exit; fi
while sleep $pause; ! \"$@\" </dev/null && [ $left -gt 0 ]; do
    left=$((left - pause - 1)) pause=$((pause < 150 ? pause * 2 : 300))
done";

const PAUSE_S: u32 = 5;

const END_LIMIT: Duration = Duration::from_secs(2);

pub(super) struct Guard {
    process: Option<PipedProcess>,
    input: Mutex<Option<Box<dyn Write + Send>>>,
}

impl Guard {
    /// After Dyno's end, until `limit`, when the request ends by itself. Fails without a shell.
    pub(super) fn post(
        command: &[String],
        (pool, tools): (&str, &Tools),
        limit: Nanoseconds,
    ) -> Result<Guard> {
        Guard::pausing(command, &tools.hidden, (limit, PAUSE_S))
            .context(format_args!("host {pool}: `sh` cannot be started"))
    }

    fn pausing(
        command: &[String],
        hidden: &[String],
        (limit, pause_s): (Nanoseconds, u32),
    ) -> std::io::Result<Guard> {
        let limit_s = (limit.as_secs_f64().ceil() as u64).to_string();
        let shell = ["sh", "-c", SCRIPT, "dyno-guard", &limit_s, &pause_s.to_string()];
        let shell = words(&shell);
        let (process, pipes) = PipedProcess::start(&[&shell, command].concat(), hidden)?;
        Ok(Guard { process: Some(process), input: Mutex::new(Some(pipes.input)) })
    }

    /// Ends the guard: all has been given back.
    pub(super) fn dismiss(mut self) {
        let input = self.input.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut input) = input.take() {
            let _ = input.write_all(b"dismissed\n").and_then(|()| input.flush());
        }
        if let Some(mut process) = self.process.take() {
            process.wait(END_LIMIT);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        *self.input.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        // It is not killed: now it does its work.
        std::mem::forget(self.process.take());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn guard(script: &str, file: &Path) -> Guard {
        let file = file.to_str().expect("the name is ASCII");
        let command = words(&["sh", "-c", script, "sh", file]);
        Guard::pausing(&command, &[], (Nanoseconds::from_secs(60), 0)).expect("there is a shell")
    }

    fn await_that(what: &str, is_so: impl Fn() -> bool) {
        let mut looks = 0;
        while !is_so() {
            looks += 1;
            assert!(looks < 12_000, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    #[test]
    fn it_gives_back_unless_it_is_dismissed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [kept, given] = ["kept", "given"].map(|name| folder.path().join(name));
        guard("touch \"$1\"", &kept).dismiss();
        drop(guard("touch \"$1\"", &given));
        await_that("the guard has not run its command", || given.exists());
        assert!(!kept.exists());
    }

    #[test]
    fn it_ends_once_it_has_given_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("guards");
        // The second try finds nothing any more, as where the folder of a command was removed.
        drop(guard("echo $PPID >> \"$1\"; [ $(wc -l < \"$1\") = 1 ]", &file));
        let tries = || std::fs::read_to_string(&file).unwrap_or_default();
        await_that("the guard has not tried twice", || tries().lines().count() >= 2);
        let pid = tries().lines().next().unwrap_or_default().to_owned();
        await_that("the guard has not ended", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // Nobody waits for it here.
            stat.is_empty() || stat.contains(") Z ")
        });
        assert_eq!(tries().lines().count(), 2);
    }

    #[test]
    fn it_tries_until_it_succeeds() {
        let folder = tempfile::tempdir().expect("a folder");
        let [tries, done] = ["tries", "tries.done"].map(|name| folder.path().join(name));
        // Whoever takes it back is away four times.
        let script = "echo >> \"$1\"; [ $(wc -l < \"$1\") = 5 ] && touch \"$1.done\"";
        drop(guard(script, &tries));
        await_that("the guard has given up", || done.exists());
    }
}
