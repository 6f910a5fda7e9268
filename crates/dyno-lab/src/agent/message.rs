//! The messages: orders of the controller, answers of the agent.
//!
//! The first message of each side is its hello, which every version understands: see [`Hello`].

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

use dyno_host::{VolumeSpec, VolumeUsage};
use dyno_load::{IntervalPart, SliceEnd, StepSpec};
use dyno_model::{Arrivals, Load};
use dyno_record::{BuildFacts, Environment, Event, NetworkFacts, PlaceFacts};
use dyno_units::{Nanoseconds, Seed, SettingValue};
use serde::{Deserialize, Serialize};

use super::fault::{ActedThere, AwayThere, FaultOrder};
use super::part::PartOrder;
use crate::command::{CommandEnd, CommandOrder};
use crate::failures::Failure;
use crate::trial::TrialEnd;

/// What the controller says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Who it is; the first message.
    Hello(Hello),
    /// Asks for the time; answered at once.
    Ping {
        /// Repeated in the answer.
        id: u64,
    },
    /// Connect the clients of a load and wait.
    Load(Box<LoadOrder>),
    /// Begin the load whose clients are connected, at this time of the agent's clock.
    Begin {
        load: u64,
        at: Nanoseconds,
    },
    /// Stop the load before its time.
    Stop,
    Server {
        /// Counted from 1; repeated in the answer.
        task: u64,
        order: ServerOrder,
    },
    /// Read the probes of the machine, and of the server if there is one.
    Sample {
        /// Repeated in the answer.
        id: u64,
    },
    Trial(Box<TrialOrder>),
}

/// A trial of a study, to be run as a whole on the agent's machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrialOrder {
    /// The text of the study.
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
    /// Whether programs and images may be fetched.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndThere {
    Recorded(RecordedEnd),
    Abandoned,
    /// It could not be begun, or not be recorded; says why.
    Unrecorded(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedEnd {
    Finished {
        /// Whether all that was made for it could be removed.
        is_clean: bool,
    },
    Failed {
        message: String,
        log: Vec<String>,
        was_deployed: bool,
    },
}

impl From<RecordedEnd> for TrialEnd {
    fn from(end: RecordedEnd) -> TrialEnd {
        match end {
            RecordedEnd::Finished { is_clean: true } => TrialEnd::Finished,
            RecordedEnd::Finished { is_clean: false } => TrialEnd::FinishedUncleaned,
            RecordedEnd::Failed { message, log, was_deployed } => {
                TrialEnd::Failed(Failure { message, log, was_deployed })
            }
        }
    }
}

/// What is done with an agent's server, of which it has one at most.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerOrder {
    /// Make the volumes for its data, if there are to be any, before anything else.
    Provide(Box<ProvideOrder>),
    /// Bind the limit of a volume, or lift it.
    Limit {
        /// Which volume, in the order in which they were made.
        volume: usize,
        binds: bool,
    },
    /// Lower the limit of a volume to that of its dips, or raise it again.
    Dip {
        volume: usize,
        is_lower: bool,
    },
    /// Find out what the data take on the volume that they lie on.
    Measure,
    /// Start it, on the data that are held if there are any.
    Start(Box<StartOrder>),
    /// Stop it in order, and hold its data: the next server is started on them.
    Halt,
    /// Send the data that are held to other agents that fetch them.
    Send {
        takers: usize,
    },
    /// Fetch data from another agent, and hold them.
    Fetch {
        from: SocketAddrV4,
        /// What it wants to hear first.
        token: Password,
        /// The folder for them, if not the usual one.
        data_folder: Option<String>,
    },
    Route(Box<RouteOrder>),
    Fault(FaultOrder),
    /// Start a command of a job beside it; [`Answer::CommandEnded`] says what comes of it.
    Run(Box<CommandOrder>),
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
    Look {
        log_lines: usize,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProvideOrder {
    /// The volume to make for them; none if they lie in the folder for data.
    pub(crate) data: Option<VolumeSpec>,
    /// The volume to make for their logs; none if these lie with the data.
    pub(crate) logs: Option<VolumeSpec>,
    /// The folder for data, if not the usual one.
    pub(crate) data_folder: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub(crate) product: String,
    /// What its version must begin with.
    pub(crate) version: Option<String>,
    pub(crate) engine: Option<String>,
    pub(crate) programs: Option<String>,
    pub(crate) from: Option<String>,
    /// Its settings; shares are of the agent's own machine.
    pub(crate) settings: BTreeMap<String, SettingValue>,
    pub(crate) cpus: Vec<u32>,
    /// The address of the machine at which clients reach it.
    pub(crate) address: Ipv4Addr,
    pub(crate) password: Password,
    pub(crate) part: PartOrder,
    /// The folder for its data, if not the usual one.
    pub(crate) data_folder: Option<String>,
}

/// A router to start, which is a server without data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RouteOrder {
    pub(crate) router: String,
    pub(crate) options: BTreeMap<String, String>,
    /// The address of the server that it passes on to, without the password.
    pub(crate) to: String,
    /// The same of further servers that take the same load.
    pub(crate) also: Vec<String>,
    /// The most clients that will be connected.
    pub(crate) clients: usize,
    pub(crate) cpus: Vec<u32>,
    /// The address of the machine at which clients reach it.
    pub(crate) address: Ipv4Addr,
    /// The password of these clients, which is that of the servers.
    pub(crate) password: Password,
    /// The folder for its files, if not the usual one.
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
#[derive(Clone, Debug, Serialize, Deserialize)]
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

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerDone {
    Provided(Box<PlaceFacts>),
    Limited,
    Measured(Box<VolumeUsage>),
    Up(Box<ServerUp>),
    Stopped,
    Alive,
    Acted(ActedThere),
    /// Whether it is back after one; why not, if it is not.
    Back(Option<AwayThere>),
    Allowed,
    CachesDropped {
        before_bytes: u64,
        after_bytes: u64,
    },
    Held,
    /// The command has been started, or is to stop.
    Running,
    JobEnded,
    Sending {
        /// The port of the address at which its server was ordered.
        port: u16,
        token: Password,
    },
    Seen {
        down: Option<String>,
        log: Vec<String>,
        data_bytes: Option<u64>,
    },
}

/// What the agent says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Who it is and where; the first message.
    Hello(Hello),
    Pong {
        id: u64,
        /// When the ping came in, by the agent's clock.
        received: Nanoseconds,
        /// When this went out, by the same clock.
        sent: Nanoseconds,
        unix_ms: u64,
    },
    Connected {
        load: u64,
        clients: usize,
    },
    /// A second of load.
    Interval {
        load: u64,
        part: IntervalPart,
    },
    Ended(Box<LoadEnd>),
    /// The order about the server was followed.
    Done {
        task: u64,
        done: ServerDone,
    },
    /// It could not be followed.
    Undone {
        task: u64,
        message: String,
        log: Vec<String>,
    },
    /// A command has ended, or could not be started.
    CommandEnded {
        task: u64,
        end: Result<CommandEnd, String>,
    },
    Sampled {
        id: u64,
        sample: Sample,
    },
    TrialEvent(Box<Event>),
    /// The next part of a file of the trial's record.
    TrialFile {
        name: String,
        /// Its bytes, in base64.
        part: String,
    },
    /// The trial has ended, and all its files have been sent.
    TrialEnded(Box<TrialReport>),
    Failed {
        load: u64,
        message: String,
    },
}

/// Bytes of an answer that is neither a part of a load nor of a trial's files: these hold histograms.
const ANSWER_BYTES_MAX: usize = 1 << 20;

impl Answer {
    /// An answer of so many bytes as it may be used: a host is as little trusted as what it measures. All its texts are
    /// cleaned here, and nowhere else.
    ///
    /// # Errors
    ///
    /// It is too long, or is none any more.
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

/// Who speaks. Its two versions are in every protocol under these names; all else has a default, so
/// that each side can say of which versions they are before it refuses the other.
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
    /// The server's address, without a password.
    pub(crate) url: String,
    pub(crate) password: Option<Password>,
    pub(crate) supports_named_statements: bool,
    pub(crate) work: Work,
    pub(crate) step: Step,
    /// Its index among the generators.
    pub(crate) index: usize,
    /// How many generators there are.
    pub(crate) count: usize,
    /// Threads; if it is not given, one for each of its CPUs …
    pub(crate) workers: Option<usize>,
    /// … divided by the number of agents that share them.
    pub(crate) sharing: usize,
    /// Whether the network to the server is to be measured first.
    pub(crate) measures_network: bool,
}

/// A password on its way. It is in no debug output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Password(pub(crate) String);

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
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

/// [`StepSpec`] as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    clients: usize,
    rate: Option<f64>,
    rates: Option<String>,
    arrivals: Option<String>,
    step: usize,
    warm_up: Nanoseconds,
    duration: Nanoseconds,
    gone_limit: Option<Nanoseconds>,
    statement_timeout: Nanoseconds,
    retries: u32,
    cpus: Vec<u32>,
    seed: u64,
}

impl Step {
    /// A step that several generators can run: by time, without roles; none if it is another one.
    pub(crate) fn of(spec: &StepSpec, cpus: Vec<u32>) -> Option<Step> {
        if spec.until_steady.is_some() {
            return None;
        }
        let (rate, rates, arrivals) = match &spec.load {
            Load::Closed { .. } => (None, None, None),
            Load::Open { rate, arrivals, .. } => (Some(*rate), None, Some(*arrivals)),
            Load::Stepped { rate, arrivals, .. } => (None, Some(rate.to_string()), Some(*arrivals)),
            Load::Roles(_) => return None,
        };
        Some(Step {
            clients: spec.load.clients(),
            rate,
            rates,
            arrivals: arrivals.map(|arrivals| arrivals.word().to_owned()),
            step: spec.step,
            warm_up: spec.warm_up,
            duration: spec.duration,
            gone_limit: spec.gone_limit,
            statement_timeout: spec.statement_timeout,
            retries: spec.retries,
            cpus,
            seed: spec.seed.0,
        })
    }

    /// The step with so many threads; none if a word in it is not known.
    pub(crate) fn spec(&self, workers: usize) -> Option<StepSpec> {
        let clients = self.clients;
        let arrivals = match &self.arrivals {
            Some(word) => Arrivals::ALL.into_iter().find(|arrivals| arrivals.word() == word),
            None => None,
        };
        let load = match (self.rate, &self.rates, arrivals) {
            (Some(rate), None, Some(arrivals)) => Load::Open { rate, arrivals, clients },
            (None, Some(rates), Some(arrivals)) => {
                Load::Stepped { rate: rates.parse().ok()?, arrivals, clients }
            }
            (None, None, None) if self.arrivals.is_none() => Load::Closed { clients },
            _ => return None,
        };
        Some(StepSpec {
            load,
            step: self.step,
            warm_up: self.warm_up,
            duration: self.duration,
            until_steady: None,
            gone_limit: self.gone_limit,
            statement_timeout: self.statement_timeout,
            retries: self.retries,
            workers,
            cpus: self.cpus.clone(),
            seed: Seed(self.seed),
        })
    }

    /// Clients of all generators.
    pub(crate) fn clients(&self) -> usize {
        self.clients
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

    #[test]
    fn a_password_is_in_no_debug_output() {
        assert_eq!(format!("{:?}", Password("hush".to_owned())), "***");
    }
}
