//! Hosts that need no request: this machine, and those that a command of the study reaches, such as OpenSSH.

use dyno_study::with_name;

use super::{Way, tool};
use crate::error::{Context, Result};

pub(super) struct Local {
    program: String,
}

impl Local {
    /// Uses Dyno's own program; fails if its path is unknown.
    pub(super) fn open(program: Option<&str>) -> Result<Local> {
        let program = program.map(str::to_owned);
        let program =
            program.context("the path of this program is unknown: give the host a `reach`")?;
        Ok(Local { program })
    }
}

impl Way for Local {
    fn agent(&self, _: usize) -> Vec<String> {
        tool::words(&[&self.program, "agent"])
    }

    fn on_host(&self, _: usize, words: &[&str]) -> Vec<String> {
        tool::words(words)
    }
}

/// Words at the end of the command that are not the way there: the program, and `agent`.
const AGENT_WORDS: usize = 2;

pub(super) struct Command {
    words: Vec<String>,
    names: Vec<String>,
}

impl Command {
    pub(super) fn new(words: &[String], names: &[String]) -> Command {
        Command { words: words.to_vec(), names: names.to_vec() }
    }
}

impl Way for Command {
    fn agent(&self, host: usize) -> Vec<String> {
        with_name(&self.words, &self.names[host])
    }

    fn on_host(&self, host: usize, words: &[&str]) -> Vec<String> {
        let there = &self.words[..self.words.len().saturating_sub(AGENT_WORDS)];
        [with_name(there, &self.names[host]), tool::words(words)].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_before_the_agent_runs_other_commands_too() {
        let words = tool::words(&["ssh", "-p", "7", "{name}.lan", "/opt/dyno", "agent"]);
        let way = Command::new(&words, &tool::words(&["a", "b"]));
        assert_eq!(way.agent(1).join(" "), "ssh -p 7 b.lan /opt/dyno agent");
        assert_eq!(way.on_host(0, &["sh"]).join(" "), "ssh -p 7 a.lan sh");
    }
}
