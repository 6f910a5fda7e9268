//! Hosts: machines on which Dyno has agents do something, and how they are reached.

use std::collections::BTreeMap;

use dyno_units::Nanoseconds;

/// One `[host.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPool {
    pub name: String,
    pub reach: Reach,
    /// The names of its hosts, in file order; at least one.
    pub names: Vec<String>,
    /// Dyno's program there, where the way needs to know it.
    pub program: String,
    /// Whether this program is copied there.
    pub copy: bool,
    pub lost: Lost,
    /// The address at which servers on a host are reached, in which `{name}` stands for the host's name; none
    /// for the name itself, or for the loopback of this machine.
    pub address: Option<String>,
    /// Environment variables that the commands do not inherit: those from which the study took parts of
    /// URLs. None until somebody has read them.
    pub hidden_variables: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its agents are processes of the machine that runs the study.
    Local,
    /// The command that starts an agent on a host, in which `{name}` stands for the host's name.
    Command(Vec<String>),
    Slurm(SlurmRequest),
    Kubernetes(KubernetesRequest),
}

/// What is requested from Slurm: as many nodes as the pool has names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmRequest {
    /// Options of `salloc` by their long names without the dashes: `partition`, `account`.
    pub options: BTreeMap<String, String>,
    /// How long the nodes are requested for; Slurm takes them back afterwards.
    pub time: Nanoseconds,
    /// How long the request may wait in the queue.
    pub wait: Nanoseconds,
}

/// What is requested from Kubernetes: as many pods as the pool has names, each on a node of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesRequest {
    /// The image, which contains Dyno.
    pub image: String,
    /// The namespace; none for that of the context.
    pub namespace: Option<String>,
    /// The context of kubectl's configuration; none for the current one.
    pub context: Option<String>,
    pub node_selector: BTreeMap<String, String>,
    /// Labels of pods that must not be on the same node, such as those of the servers.
    pub avoid: BTreeMap<String, String>,
    /// CPUs of each pod, as Kubernetes writes them.
    pub cpu: Option<String>,
    /// Memory of each pod, as Kubernetes writes it.
    pub memory: Option<String>,
    /// The id of the user as whom the pods run, without any rights; none for the image's own.
    pub user: Option<u32>,
    /// How long the pods are there at most.
    pub time: Nanoseconds,
    /// How long it may take until they run.
    pub wait: Nanoseconds,
}

/// What becomes of the trials after one in which a host was lost that cannot be reached again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lost {
    /// The run ends, to be continued when the host is back.
    #[default]
    Stop,
    /// They use the hosts that are left.
    Continue,
}

const NAME: &str = "{name}";

pub(crate) const LOCAL: &str = "local";

const LOOPBACK: &str = "127.0.0.1";

impl HostPool {
    pub fn is_local(&self) -> bool {
        self.reach == Reach::Local
    }

    pub fn address_of(&self, host: &str) -> String {
        match &self.address {
            Some(address) => address.replace(NAME, host),
            None if self.is_local() => LOOPBACK.to_owned(),
            None => host.to_owned(),
        }
    }

    /// For how long its hosts are requested; none if they are there anyway.
    pub fn requested_time(&self) -> Option<Nanoseconds> {
        match &self.reach {
            Reach::Local | Reach::Command(_) => None,
            Reach::Slurm(SlurmRequest { time, .. })
            | Reach::Kubernetes(KubernetesRequest { time, .. }) => Some(*time),
        }
    }

    pub fn reach_in_words(&self) -> String {
        if self.is_local() { LOCAL.to_owned() } else { self.reach.words().join(" ") }
    }
}

impl Reach {
    /// What decides which machines the hosts are, word by word; nothing for this machine.
    pub fn words(&self) -> Vec<String> {
        let pairs = |map: &BTreeMap<String, String>| -> Vec<String> {
            map.iter().map(|(name, value)| format!("{name}={value}")).collect()
        };
        match self {
            Reach::Local => Vec::new(),
            Reach::Command(words) => words.clone(),
            Reach::Slurm(SlurmRequest { options, time: _, wait: _ }) => {
                [vec!["slurm".to_owned()], pairs(options)].concat()
            }
            Reach::Kubernetes(request) => {
                let KubernetesRequest { image, namespace, context, node_selector, avoid, .. } =
                    request;
                let user = request.user.map(|user| user.to_string());
                let some = [
                    ("namespace", namespace),
                    ("context", context),
                    ("cpu", &request.cpu),
                    ("memory", &request.memory),
                    ("user", &user),
                ];
                let some = some.iter().filter_map(|(name, value)| {
                    value.as_ref().map(|value| format!("{name}={value}"))
                });
                let maps = [("node_selector", node_selector), ("avoid", avoid)];
                let maps = maps.iter().filter(|(_, map)| !map.is_empty());
                let maps = maps.map(|(name, map)| format!("{name}={}", pairs(map).join(",")));
                let first = ["kubernetes".to_owned(), format!("image={image}")];
                first.into_iter().chain(some).chain(maps).collect()
            }
        }
    }
}

/// The words of a command with a host's name in place of `{name}`.
pub fn with_name(words: &[String], host: &str) -> Vec<String> {
    words.iter().map(|word| word.replace(NAME, host)).collect()
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
        return Err(format!("there is a {quote} that is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn commands_are_split_at_blanks_that_are_not_quoted() {
        let check = |command: &str, expected: &[&str]| {
            assert_eq!(words(command), Ok(texts(expected)));
        };
        check("ssh {name}  dyno agent ", &["ssh", "{name}", "dyno", "agent"]);
        check("a 'b c' d\"e f\"'g' ''", &["a", "b c", "de fg", ""]);
        check("a $HOME; rm * \\", &["a", "$HOME;", "rm", "*", "\\"]);
        check("", &[]);
        assert!(words("a 'b").is_err());
    }

    #[test]
    fn a_command_names_its_host() {
        let command = with_name(&texts(&["ssh", "{name}.lan", "dyno"]), "db1");
        assert_eq!(command, texts(&["ssh", "db1.lan", "dyno"]));
    }

    #[test]
    fn servers_are_reached_by_the_name_of_their_host_or_at_its_address() {
        let check = |reach: Reach, address: Option<&str>, expected: &str| {
            let pool = HostPool {
                name: "sql".to_owned(),
                reach,
                names: vec!["db1".to_owned()],
                program: "dyno".to_owned(),
                copy: false,
                lost: Lost::Stop,
                address: address.map(str::to_owned),
                hidden_variables: Vec::new(),
            };
            assert_eq!(pool.address_of("db1"), expected);
        };
        let ssh = || Reach::Command(texts(&["ssh", "{name}", "dyno", "agent"]));
        check(Reach::Local, None, "127.0.0.1");
        check(ssh(), None, "db1");
        check(ssh(), Some("{name}.lan"), "db1.lan");
    }
}
