//! Messages: orders of the controller, answers of the agent. Each side begins with a hello that
//! every version understands: see [`Hello`].

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use dyno_database::{
    Act, Acted, Away, BuildFacts, Endpoint, Listening, Secret, ServerSpec, UrlError,
};
use dyno_host::{VolumeSpec, VolumeUsage};
use dyno_load::{IntervalPart, SliceEnd, StepSpec};
use dyno_model::Load;
use dyno_record::{Environment, Event, NetworkFacts, PlaceFacts};
use dyno_units::Nanoseconds;
use serde::{Deserialize, Serialize};

use super::part::Followed;
use crate::{CommandEnd, CommandOrder, Route, TrialEnd, VolumeAct};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Who it is; the first message.
    Hello(Hello),
    /// Asks for the time; answered at once.
    Ping { id: u64 },
    /// Connect the clients of a load and wait.
    Load(Box<LoadOrder>),
    /// Begin the load whose clients are connected, at this time of the agent's clock.
    Begin { load: u64, at: Nanoseconds },
    /// Stop the load, or the trial, before its time.
    Stop,
    /// About the agent's server; orders are counted from 1, and answers repeat the number.
    Server { task: u64, order: ServerOrder },
    /// Read the probes of the machine, and of the server if there is one.
    Sample { id: u64 },
    /// Run a trial as a whole.
    Trial(Box<TrialOrder>),
}

/// A trial of a study, to be run as a whole on the agent's machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialOrder {
    pub study: String,
    /// The files that it names, with their texts. Names are relative to the study's folder.
    pub files: BTreeMap<String, String>,
    /// What the plan is drawn from.
    pub seed: u64,
    pub number: u32,
    /// The name of its variant, to be sure that both have made the same plan.
    pub variant: String,
    /// The folder for data, if not the usual one.
    pub data_folder: Option<String>,
    /// Whether it may begin on a copy of a data set that is kept there.
    pub reuse: bool,
    pub fetch: bool,
    /// How many bytes of data sets are kept there …
    pub keep_bytes: u64,
    /// … and for how long.
    pub keep_for: Nanoseconds,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialReport {
    pub(crate) end: EndThere,
    pub(crate) environment: Environment,
}

/// How a trial ended there; or why it could not be begun, or not be recorded.
pub(crate) type EndThere = Result<TrialEnd, String>;

/// How a command ended there; or why it could not be started.
pub(crate) type CommandEndThere = Result<CommandEnd, String>;

/// What is done with an agent's server, of which it has one at most.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerOrder {
    /// Make the volumes for its data, if there are to be any, before anything else.
    Provide(Box<ProvideOrder>),
    /// Do something to a volume; they are counted in the order in which they were made.
    Volume { volume: usize, act: VolumeAct },
    /// Find out what the data take on the volume that they lie on.
    Measure,
    /// Start it, on the data that are held if there are any.
    Start(Box<StartOrder>),
    /// Stop it in order, and hold its data: the next server is started on them.
    Halt,
    /// Send the data that are held to other agents that fetch them.
    Send { takers: usize },
    /// Fetch data from another agent, which wants to hear the token first, and hold them.
    Fetch { from: SocketAddrV4, token: Secret, data_folder: Option<String> },
    /// Start a router.
    Route(Box<RouteOrder>),
    /// Do something to the server on purpose. `nodes`: where others reach all nodes of its cluster, in the order of their
    /// numbers.
    Act { act: Act, nodes: Vec<SocketAddrV4> },
    /// Find out whether it does again what it did before.
    IsBack,
    /// Start a command of a job beside it; [`Answer::CommandEnded`] says what comes of it.
    Run(Box<CommandOrder>),
    /// Stop the command.
    Interrupt,
    /// Remove what commands have left to each other.
    EndJob,
    /// Find out whether the agent may empty the page cache of its machine …
    MayDropCaches,
    /// … and empty it.
    DropCaches,
    /// Stop it and remove its data.
    Stop,
    /// Find out whether it still answers.
    Check,
    /// Find out why it is down, if it is, the end of its log, and what its data take.
    Look { log_lines: usize },
}

impl ServerOrder {
    /// How long it may take to follow it, and whether the user's wish to stop ends the wait.
    pub(crate) fn limit(&self) -> (Nanoseconds, bool) {
        let (seconds, ends_on_stop) = match self {
            // All that is not on disk yet is written first.
            ServerOrder::MayDropCaches | ServerOrder::DropCaches => (1800, true),
            ServerOrder::Provide(_) | ServerOrder::Measure => (600, true),
            ServerOrder::Volume { act: VolumeAct::Bind | VolumeAct::Lift, .. } => (600, false),
            // System tables are made.
            ServerOrder::Start(_) | ServerOrder::Route(_) => (600, true),
            ServerOrder::Halt | ServerOrder::Fetch { .. } => (3600, true),
            ServerOrder::Send { .. } => (10, true),
            // It may have to find out first what its data hold.
            ServerOrder::Act { act: Act::Start, .. } => (2000, true),
            // Longer than an agent waits for its end, or for an answer of its own.
            ServerOrder::Act { .. } | ServerOrder::IsBack => (200, false),
            ServerOrder::Stop => (150, false),
            ServerOrder::EndJob => (60, false),
            ServerOrder::Volume { .. }
            | ServerOrder::Run(_)
            | ServerOrder::Interrupt
            | ServerOrder::Check
            | ServerOrder::Look { .. } => (10, false),
        };
        (Nanoseconds::from_secs(seconds), ends_on_stop)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProvideOrder {
    /// The volume to make for them; none if they lie in the folder for data.
    pub(crate) data: Option<VolumeSpec>,
    /// The volume to make for their logs; none if these lie with the data.
    pub(crate) logs: Option<VolumeSpec>,
    pub(crate) data_folder: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    /// Shares of memory in its settings are of the agent's own machine.
    pub(crate) spec: ServerSpec,
    /// Of a replica, in place of its part.
    pub(crate) followed: Option<Followed>,
    /// The address of the machine at which clients reach it; its port is found there.
    pub(crate) open: Listening,
    pub(crate) data_folder: Option<String>,
}

/// A router to start, which is a server without data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RouteOrder {
    pub(crate) route: Route,
    /// The server that it passes on to.
    pub(crate) to: ServerUrl,
    /// Further servers that take the same load.
    pub(crate) also: Vec<ServerUrl>,
    pub(crate) open: Listening,
    pub(crate) data_folder: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RouterUp {
    /// Its name in its own words.
    pub(crate) product: String,
    pub(crate) version: String,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) supports_named_statements: bool,
    pub(crate) notes: Vec<String>,
}

/// A server that is up. Where and as whom it is used is what was ordered; the agent says at which port.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerUp {
    pub(crate) port: u16,
    /// The id of its process on the agent's machine.
    pub(crate) pid: Option<i32>,
    pub(crate) build: Option<BuildFacts>,
    /// The port of this address at which other nodes of its cluster reach it.
    pub(crate) group: Option<u16>,
    /// What it says of itself, if it is a router: of others, the controller asks them.
    pub(crate) router: Option<RouterUp>,
}

/// Times are of the agent's clock.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerDone {
    Followed,
    Provided(Box<PlaceFacts>),
    Measured(Box<VolumeUsage>),
    Up(Box<ServerUp>),
    Acted(Acted),
    Back(Result<(), Away>),
    CachesDropped { before_bytes: u64, after_bytes: u64 },
    Sending { port: u16, token: Secret },
    Seen(Seen),
}

/// How a server is: why it is down, if it is, the end of its log, and what its data take.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) down: Option<String>,
    pub(crate) log: Vec<String>,
    pub(crate) data_bytes: Option<u64>,
}

/// Times are of the agent's clock: when a ping came in, and when its pong went out. A command that could not be started
/// has ended as well. The files of a trial's record come in parts, in base64, before its end.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Hello(Hello),
    Pong { id: u64, received: Nanoseconds, sent: Nanoseconds, unix_ms: u64 },
    Connected { load: u64, clients: usize },
    Interval { load: u64, idx: u64, part: IntervalPart },
    Ended(Box<LoadEnd>),
    Done { task: u64, done: ServerDone },
    Undone { task: u64, message: String, log: Vec<String> },
    CommandEnded { task: u64, end: CommandEndThere },
    Sampled { id: u64, sample: Sample },
    TrialEvent(Box<Event>),
    TrialFile { name: String, part: String },
    TrialEnded(Box<TrialReport>),
    Failed { load: u64, message: String },
}

/// Bytes of an answer that is neither a part of a load nor of a trial's files: these hold histograms.
const ANSWER_BYTES_MAX: usize = 1 << 20;

impl Answer {
    /// Cleans all texts, here and nowhere else: a host is trusted as little as what it measures. `n_bytes` is the size
    /// of the message. Fails if it is too long or no longer valid.
    pub(crate) fn checked(self, n_bytes: usize) -> Result<Answer, String> {
        let is_large =
            matches!(self, Answer::Interval { .. } | Answer::Ended(_) | Answer::TrialFile { .. });
        if !is_large && n_bytes > ANSWER_BYTES_MAX {
            return Err(format!("a message of {n_bytes} bytes is too long"));
        }
        match self {
            // They have no texts, or such as are checked where they are used; and there are many.
            Answer::Pong { .. } | Answer::TrialFile { .. } => Ok(self),
            other => dyno_record::cleaned(&other),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Readings of the machine and of the server's processes, by name.
    pub(crate) machine: BTreeMap<String, f64>,
    pub(crate) router: BTreeMap<String, f64>,
    pub(crate) notes: Vec<String>,
}

/// The sender. Both versions have these names in every protocol and all else has a default, so that
/// each side can name the versions before it refuses the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    /// The version of Dyno.
    pub(crate) dyno: String,
    /// Of an agent: the machine's name for itself.
    #[serde(default)]
    pub(crate) machine: String,
    /// Of an agent: what is known of the machine, by name.
    #[serde(default)]
    pub(crate) facts: BTreeMap<String, String>,
    /// Of an agent: CPUs that it may use.
    #[serde(default)]
    pub(crate) cpus: u32,
    /// Of an agent: what tells its kernel from all others, and from itself after a restart.
    #[serde(default)]
    pub(crate) boot: String,
}

impl Hello {
    /// The machine in words: its name, and its CPUs or the part of them that control groups allow.
    pub(crate) fn in_words(&self) -> String {
        let limit = self.facts.get("cgroup.cpus").and_then(|text| text.parse::<f64>().ok());
        let of = limit.map(|limit| format!("{limit} of ")).unwrap_or_default();
        format!("{}, {of}{} CPUs", self.machine, self.cpus)
    }
}

/// A load, as one of several generators runs it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoadOrder {
    /// Which load, counted from 1 in a trial.
    pub(crate) load: u64,
    pub(crate) server: ServerUrl,
    pub(crate) supports_named_statements: bool,
    pub(crate) work: Work,
    pub(crate) step: Step,
    /// Its index among the generators.
    pub(crate) index: usize,
    pub(crate) count: usize,
    /// Threads; if it is not given, one for each of its CPUs …
    pub(crate) workers: Option<usize>,
    /// … divided by the number of agents that share them.
    pub(crate) sharing: usize,
    /// Whether the network to the server is to be measured first.
    pub(crate) measures_network: bool,
}

/// How a server is reached, as it travels: its URL has no password.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServerUrl {
    url: String,
    password: Option<Secret>,
}

impl From<&Endpoint> for ServerUrl {
    fn from(endpoint: &Endpoint) -> ServerUrl {
        ServerUrl { url: endpoint.to_string(), password: endpoint.password.clone() }
    }
}

impl ServerUrl {
    pub(crate) fn endpoint(&self) -> Result<Endpoint, UrlError> {
        Ok(Endpoint { password: self.password.clone(), ..Endpoint::from_url(&self.url)? })
    }
}

/// A workload to be planned: the same words give the same workload everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) workload: String,
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) clients: usize,
    /// Length of its own steps.
    pub(crate) duration: Nanoseconds,
    /// Determines the rows.
    pub(crate) seed: u64,
}

/// A step that several generators can run: by time, without roles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) spec: StepSpec,
    /// A rate that changes, in words; the step has the first one in its place.
    rates: Option<String>,
}

impl Step {
    /// None if it is another one.
    pub(crate) fn of(spec: &StepSpec, cpus: Vec<u32>) -> Option<Step> {
        let (load, rates) = match &spec.load {
            _ if spec.until_steady.is_some() => return None,
            Load::Roles(_) => return None,
            Load::Stepped { rate, arrivals, clients } => {
                let first =
                    Load::Open { rate: rate.first(), arrivals: *arrivals, clients: *clients };
                (first, Some(rate.to_string()))
            }
            load => (load.clone(), None),
        };
        Some(Step { spec: StepSpec { load, cpus, ..spec.clone() }, rates })
    }

    /// The step with so many threads; none if its rates are none.
    pub(crate) fn spec(&self, workers: usize) -> Option<StepSpec> {
        let mut spec = StepSpec { workers, ..self.spec.clone() };
        if let (Some(rates), &Load::Open { arrivals, clients, .. }) = (&self.rates, &spec.load) {
            spec.load = Load::Stepped { rate: rates.parse().ok()?, arrivals, clients };
        }
        Some(spec)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LoadEnd {
    pub(crate) load: u64,
    pub(crate) end: SliceEnd,
    /// What its clients have counted for the audit.
    pub(crate) counts: Vec<u64>,
    /// User and system CPU seconds of the whole agent in the measure phase.
    pub(crate) process_cpu: Option<(f64, f64)>,
    pub(crate) rss_bytes: u64,
    /// The network to the server, if it was to be measured and could be.
    pub(crate) network: Option<NetworkFacts>,
}

#[cfg(test)]
mod tests {
    use dyno_model::Arrivals;
    use dyno_units::Seed;

    use super::*;

    #[test]
    fn steps_come_out_as_they_went_in() {
        let check = |load: Load| {
            let spec = StepSpec {
                load,
                step: 3,
                warm_up: Nanoseconds::from_secs(1),
                duration: Nanoseconds::from_millis(1500),
                until_steady: None,
                gone_limit: Some(Nanoseconds::from_secs(11)),
                statement_timeout: Nanoseconds::from_secs(7),
                retries: 2,
                workers: 4,
                cpus: vec![1, 3],
                seed: Seed(0xffff_ffff_ffff_fff1),
            };
            let step = Step::of(&spec, spec.cpus.clone()).expect("it can travel");
            let text = serde_json::to_string(&step).expect("it is text");
            let back: Step = serde_json::from_str(&text).expect("it is a step");
            assert_eq!(back.spec(4), Some(spec));
        };
        let arrivals = Arrivals::Poisson;
        check(Load::Closed { clients: 7 });
        check(Load::Open { rate: 1000.0 / 3.0, arrivals, clients: 9 });
        let rate = "500 for 10s, 0 for 2.5s".parse().expect("it is a rate");
        check(Load::Stepped { rate, arrivals: Arrivals::Constant, clients: 9 });
    }

    #[test]
    fn a_hello_of_any_version_is_understood() {
        let hello: Hello =
            serde_json::from_str(r#"{"protocol": 9, "dyno": "7.1", "news": [1]}"#).expect("it is");
        assert_eq!((hello.protocol, hello.dyno.as_str()), (9, "7.1"));
    }

    #[test]
    fn a_hello_says_how_many_cpus_may_be_used() {
        let check = |limit: Option<&str>, expected: &str| {
            let facts = limit.map(|limit| ("cgroup.cpus".to_owned(), limit.to_owned()));
            let hello = Hello {
                machine: "k1".to_owned(),
                cpus: 8,
                facts: facts.into_iter().collect(),
                ..Hello::default()
            };
            assert_eq!(hello.in_words(), expected);
        };
        check(None, "k1, 8 CPUs");
        check(Some("0.5"), "k1, 0.5 of 8 CPUs");
        check(Some("<b>"), "k1, 8 CPUs");
    }
}
