//! What gives something back when Dyno ends, however that happens.
//!
//! A guard is a process that waits for the end of its input, which comes when Dyno ends, also by
//! `kill -9`. Then it runs the command that gives back what was requested; twice, because the request may
//! have been on its way.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dyno_host::PipedProcess;

use super::tool::words;

const SCRIPT: &str = "trap '' HUP INT TERM; exec >/dev/null 2>&1
if read -r word && [ \"$word\" = dismissed ]; then exit 0; fi
\"$@\" </dev/null; sleep 5; \"$@\" </dev/null";

/// How long a dismissed guard may take to end.
const END_LIMIT: Duration = Duration::from_secs(2);

/// A guard on its post.
pub(super) struct Guard {
    process: Option<PipedProcess>,
    input: Mutex<Option<Box<dyn Write + Send>>>,
}

impl Guard {
    /// Posts a guard that runs this command when Dyno has ended.
    ///
    /// # Errors
    ///
    /// There is no shell.
    pub(super) fn post(command: &[String], hidden: &[String]) -> std::io::Result<Guard> {
        let shell = words(&["sh", "-c", SCRIPT, "dyno-guard"]);
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

    fn guard(file: &Path) -> Guard {
        let command = words(&["touch", file.to_str().expect("the name is ASCII")]);
        Guard::post(&command, &[]).expect("there is a shell")
    }

    #[test]
    fn it_gives_back_unless_it_is_dismissed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [kept, given] = ["kept", "given"].map(|name| folder.path().join(name));
        guard(&kept).dismiss();
        drop(guard(&given));
        let mut looks = 0;
        while !given.exists() {
            looks += 1;
            assert!(looks < 12_000, "the guard has not run its command");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!kept.exists());
    }
}
