//! Hosts reached by a command of the study that starts agents, such as OpenSSH.

use dyno_study::with_name;

use super::{Way, tool};

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
