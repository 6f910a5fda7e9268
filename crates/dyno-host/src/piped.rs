//! A process used through its standard input and output. It has no folder and no owner file: its
//! input closes when Dyno ends, and that tells it to end.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

const POLL: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct PipedProcess {
    child: Child,
}

pub struct Pipes {
    pub input: Box<dyn Write + Send>,
    pub output: Box<dyn Read + Send>,
    pub errors: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Pipes {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Pipes")
    }
}

impl PipedProcess {
    /// Without a shell, in its own process group, so that Dyno gets Ctrl-C first. The environment
    /// is inherited without the variables in `hidden`.
    pub fn start(command: &[String], hidden: &[String]) -> io::Result<(PipedProcess, Pipes)> {
        let empty = || io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
        let (program, arguments) = command.split_first().ok_or_else(empty)?;
        // What a program that reaches hosts is given often has paths of theirs.
        dyno_units::refuse_planted(&command[..1])?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in hidden {
            command.env_remove(name);
        }
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(io::Error::other("its input and output cannot be accessed"));
        };
        let pipes =
            Pipes { input: Box::new(input), output: Box::new(output), errors: Box::new(errors) };
        Ok((PipedProcess { child }, pipes))
    }

    /// Also the id of its group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended; `None` if it runs after the limit.
    pub fn wait(&mut self, limit: Duration) -> Option<String> {
        let mut waited = Duration::ZERO;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(how(status)),
                Err(error) => return Some(format!("cannot be waited for: {error}")),
                Ok(None) if waited >= limit => return None,
                Ok(None) => {}
            }
            std::thread::sleep(POLL);
            waited += POLL;
        }
    }

    /// `Err` says how it ended badly; `None` if it runs after the limit.
    pub fn result(&mut self, limit: Duration) -> Option<Result<(), String>> {
        let how = self.wait(limit)?;
        let is_good = matches!(self.child.try_wait(), Ok(Some(status)) if status.success());
        Some(if is_good { Ok(()) } else { Err(how) })
    }

    /// With its group; waits for its end.
    pub fn kill(&mut self) {
        // Not waited for, so its id is its own.
        if matches!(self.child.try_wait(), Ok(None))
            && let Some(pid) = Pid::from_raw(self.child.id().cast_signed())
        {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for PipedProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended".to_owned(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_is_said_comes_back_and_the_end_of_the_input_is_its_end() {
        let (mut process, mut pipes) =
            PipedProcess::start(&words(&["cat"]), &[]).expect("there is a cat");
        pipes.input.write_all(b"meow").expect("it reads");
        drop(pipes.input);
        let mut said = String::new();
        pipes.output.read_to_string(&mut said).expect("it writes");
        assert_eq!(said, "meow");
        assert_eq!(process.wait(Duration::from_secs(60)).as_deref(), Some("ended"));
        assert_eq!(process.result(Duration::ZERO), Some(Ok(())));
    }

    #[test]
    fn its_group_is_killed_with_it() {
        let command = words(&["sh", "-c", "sleep 1000 & echo $!; wait"]);
        let (mut process, mut pipes) = PipedProcess::start(&command, &[]).expect("it starts");
        let mut line = [0; 1];
        let mut text = String::new();
        while pipes.output.read_exact(&mut line).is_ok() && line[0] != b'\n' {
            text.push(char::from(line[0]));
        }
        assert_eq!(process.wait(Duration::ZERO), None);
        process.kill();
        // The sleeper held the other end.
        let mut rest = String::new();
        pipes.output.read_to_string(&mut rest).expect("it is closed");
        assert!(text.parse::<u32>().is_ok() && rest.is_empty(), "{text} {rest}");
    }

    #[test]
    fn a_program_that_is_not_there_cannot_be_started() {
        assert!(PipedProcess::start(&words(&["/nowhere/to-be-found"]), &[]).is_err());
        assert!(PipedProcess::start(&[], &[]).is_err());
    }
}
