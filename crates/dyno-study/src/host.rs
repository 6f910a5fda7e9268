//! Hosts: machines on which Dyno has agents do something, and how they are reached.

/// One `[host.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPool {
    /// Its name in the study.
    pub name: String,
    /// The command that starts an agent on a host, in which `{name}` stands for the host's name; empty
    /// for processes of this machine.
    pub reach: Vec<String>,
    /// The names of its hosts, in file order; at least one.
    pub names: Vec<String>,
    /// The address at which servers on a host are reached, in which `{name}` stands for the host's name; none
    /// for the name itself, or for the loopback of this machine.
    pub address: Option<String>,
    /// Environment variables that the command does not inherit: those from which the study took parts of
    /// URLs. None until somebody has read them.
    pub hidden_variables: Vec<String>,
}

/// What stands for the name of a host in `reach`.
pub(crate) const NAME: &str = "{name}";

/// The word for agents that are processes of this machine.
pub(crate) const LOCAL: &str = "local";

/// Where servers on this machine are reached.
const LOOPBACK: &str = "127.0.0.1";

impl HostPool {
    /// Whether its agents are processes of the machine that runs the study.
    pub fn is_local(&self) -> bool {
        self.reach.is_empty()
    }

    /// The command that starts the agent of a host; `program` is Dyno's own file. None if the agent is
    /// one of this machine, and that file is not known.
    pub fn command(&self, host: &str, program: Option<&str>) -> Option<Vec<String>> {
        if self.is_local() {
            return program.map(|program| vec![program.to_owned(), "agent".to_owned()]);
        }
        Some(self.reach.iter().map(|word| word.replace(NAME, host)).collect())
    }

    /// The name or address at which servers on a host are reached.
    pub fn address_of(&self, host: &str) -> String {
        match &self.address {
            Some(address) => address.replace(NAME, host),
            None if self.is_local() => LOOPBACK.to_owned(),
            None => host.to_owned(),
        }
    }

    /// How its agents are reached, as a study has it.
    pub fn reach_in_words(&self) -> String {
        if self.is_local() { LOCAL.to_owned() } else { self.reach.join(" ") }
    }
}

/// Splits a command into words: at blanks, but not between quotes. There is no other special
/// character, and no shell.
///
/// # Errors
///
/// A quote without an end.
pub(crate) fn words(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(quote) = quote {
        return Err(format!("there is a {quote} without its end"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_at_blanks_that_are_not_quoted() {
        let check = |command: &str, expected: &[&str]| {
            assert_eq!(words(command), Ok(expected.iter().map(|w| (*w).to_owned()).collect()));
        };
        check("ssh {name}  dyno agent ", &["ssh", "{name}", "dyno", "agent"]);
        check("a 'b c' d\"e f\"'g' ''", &["a", "b c", "de fg", ""]);
        check("a $HOME; rm * \\", &["a", "$HOME;", "rm", "*", "\\"]);
        check("", &[]);
        assert!(words("a 'b").is_err());
    }

    #[test]
    fn a_command_names_its_host() {
        let pool = |reach: &[&str]| HostPool {
            name: "sql".to_owned(),
            reach: reach.iter().map(|word| (*word).to_owned()).collect(),
            names: vec!["db1".to_owned()],
            address: None,
            hidden_variables: Vec::new(),
        };
        let command = pool(&["ssh", "{name}.lan", "dyno"]).command("db1", None);
        assert_eq!(command.as_deref(), Some(&["ssh", "db1.lan", "dyno"].map(str::to_owned)[..]));
        let local = pool(&[]).command("db1", Some("/usr/bin/dyno"));
        assert_eq!(local.as_deref(), Some(&["/usr/bin/dyno", "agent"].map(str::to_owned)[..]));
        assert_eq!(pool(&[]).command("db1", None), None);
        assert_eq!(pool(&[]).address_of("db1"), "127.0.0.1");
        assert_eq!(pool(&["ssh"]).address_of("db1"), "db1");
        let inner = HostPool { address: Some("{name}.lan".to_owned()), ..pool(&["ssh"]) };
        assert_eq!(inner.address_of("db1"), "db1.lan");
    }
}
