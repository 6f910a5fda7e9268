//! The parts of servers in a deployment of several, and what members know of each other.
//!
//! On one machine, members listen on sockets that only Dyno's user of servers reaches. If replication needs a
//! port, it is on the loopback and admits only [`REPLICATION_USER`], with a password made for the deployment. On
//! several machines, members listen on an address ([`Listening`]) that admits that user and clients.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use dyno_units::reading::prelude::*;
use dyno_units::{Clock, Nanoseconds};

use crate::error::{Context, Result};
use crate::{Address, DeployError, Endpoint, Node, Protocol, Secret};

pub const REPLICATION_USER: &str = "dyno_replica";

pub const REPLICAS_MAX: u32 = 8;

/// What a server is for in its deployment.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Part {
    #[default]
    Alone,
    Primary(Replication),
    #[serde(skip)]
    Replica(Follow),
    Node(Node),
    /// It passes on to shards what is sent to it.
    Router,
}

/// The user that clients on other machines log in as.
pub const CLIENT_USER: &str = "dyno_client";

pub(crate) const CLIENT_CATALOG: &str = "dyno";

/// For clients on other machines, as [`CLIENT_USER`], who may do anything.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Listening {
    pub address: SocketAddrV4,
    pub password: Secret,
}

impl Listening {
    /// Uses a free port. Fails if this machine lacks the address, or has no free port of it.
    pub fn at(address: Ipv4Addr, password: Secret) -> std::io::Result<Listening> {
        let port = dyno_host::free_ports(address, 1)?[0];
        Ok(Listening { address: SocketAddrV4::new(address, port), password })
    }

    /// How clients reach a server of this protocol: nothing of it is the server's to say.
    pub fn endpoint(&self, protocol: &'static Protocol) -> Endpoint {
        let (host, port) = (self.address.ip().to_string(), self.address.port());
        let address = Address::Tcp { host, port };
        Endpoint {
            password: Some(self.password.clone()),
            ..Endpoint::plain(protocol, address, CLIENT_USER, CLIENT_CATALOG)
        }
    }
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Replication {
    pub replicas: u32,
    pub mode: ReplicationMode,
    /// Where replication knows no sockets: a loopback port, or the primary's for clients.
    pub address: SocketAddrV4,
    pub password: Secret,
}

impl Replication {
    /// With a new password and port. Fails if the system gives no random bytes or port.
    pub fn new(replicas: u32, mode: ReplicationMode) -> Result<Replication> {
        let password =
            dyno_host::random_token().context("there is no password for the replication")?;
        let port =
            dyno_host::free_loopback_port().context("there is no port for the replication")?;
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        Ok(Replication { replicas, mode, address, password: Secret::new(password) })
    }
}

/// What a commit on the primary waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ReplicationMode {
    /// For no replica.
    #[default]
    Asynchronous,
    /// Until one replica has the transaction in its log (MariaDB, MySQL: semi-synchronous).
    Synchronous,
}

impl ReplicationMode {
    /// The words of all modes, the default first.
    pub const WORDS: [&'static str; 2] = ["asynchronous", "synchronous"];
}

impl fmt::Display for ReplicationMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(ReplicationMode::WORDS[usize::from(*self == ReplicationMode::Synchronous)])
    }
}

impl FromStr for ReplicationMode {
    type Err = String;

    fn from_str(word: &str) -> Result<ReplicationMode, String> {
        match ReplicationMode::WORDS.iter().position(|known| *known == word) {
            Some(0) => Ok(ReplicationMode::Asynchronous),
            Some(_) => Ok(ReplicationMode::Synchronous),
            None => Err(format!("`{word}` is not one of {}", ReplicationMode::WORDS.join(", "))),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Follow {
    /// Its number, from 1.
    pub number: u32,
    /// The primary, with the user that may do anything.
    pub primary: Endpoint,
    pub replication: Replication,
}

impl Follow {
    pub fn name(&self) -> String {
        replica_name(self.number)
    }
}

/// The name of a replica among the members: `replica-1`.
pub fn replica_name(number: u32) -> String {
    format!("replica-{number}")
}

/// How servers of a product follow each other.
pub trait Replicating: Sync {
    /// Prepares a server that started as [`Part::Primary`], before the first replica starts. It
    /// does not change until the last one has started. Fails if the server refuses or is too old.
    fn lead(&self, primary: &Endpoint, replication: &Replication) -> Result<()>;

    /// Makes commits wait as the mode says; all replicas stream. Fails if the server refuses.
    fn wait_for_replicas(&self, primary: &Endpoint) -> Result<()>;

    /// Of those that should have; none if the server allows none. Fails without an answer.
    fn unacknowledged(&self, _primary: &Endpoint) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Of the primary's log; comparable between replicas. Fails without an answer.
    fn received(&self, replica: &Endpoint) -> Result<u64>;

    /// Makes a replica take writes, after it has applied all that it received from its lost primary. Returns
    /// when it takes them. Fails if it refuses, is too old, or takes too long.
    fn promote(&self, replica: &Endpoint, clock: &dyn Clock) -> Result<()>;

    /// Whether a replica copies the data of its primary by itself when it starts.
    fn copies_data(&self) -> bool {
        false
    }

    fn lag_meter(&self, follow: &Follow, replica: &Endpoint) -> Box<dyn LagMeter>;

    /// Lists the tables of the catalog of a connection, as a statement names them.
    fn tables(&self) -> &'static str;
}

/// How long a replica may take to apply what it has received before it is promoted.
pub(crate) const PROMOTION_LIMIT: Nanoseconds = Nanoseconds::from_secs(600);

pub(crate) const PROMOTION_POLL: Nanoseconds = Nanoseconds::from_millis(2);

pub(crate) fn not_promoted(why: impl fmt::Display) -> DeployError {
    DeployError::new(format!("the replica cannot be promoted: {why}"))
}

/// Reads how far a replica is behind its primary.
pub trait LagMeter: Send {
    /// Asks both servers on its own connections. Fails with the reason.
    fn read(&mut self, now: Nanoseconds) -> Result<Lag, String>;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lag {
    /// Whether it receives and applies what the primary writes.
    pub is_streaming: bool,
    /// If it does not, what it says.
    pub reason: String,
    /// Bytes of the primary's log that it has not applied.
    pub bytes: Option<f64>,
    /// For how long it has been behind; what the product says, in its own resolution.
    pub seconds: Option<f64>,
}

impl Lag {
    pub fn is_caught_up(&self) -> bool {
        self.is_streaming && self.bytes.is_some_and(|bytes| bytes <= 0.0)
    }
}

#[rustfmt::skip]
pub(crate) const READINGS: &[Reading] = &[
    reading("replication.*.lag_bytes", Bytes, "replica behind, in bytes of log", "bytes of the primary's log that this replica has not applied").topic(Topic::Instance).worse(),
    reading("replication.*.lag_s", Seconds, "replica behind, in time", "for how long this replica has been behind, as the product reports it: some in microseconds, some in whole seconds").topic(Topic::Instance).worse(),
    reading("replication.*.streaming", Count, "replica streaming", "1 while this replica receives and applies what the primary writes, else 0").topic(Topic::Instance),
];

pub fn lag_probe(name: &str, meter: Box<dyn LagMeter>) -> Box<dyn dyno_host::Probe> {
    Box::new(LagProbe { name: name.to_owned(), meter, said: None, notes: Vec::new() })
}

struct LagProbe {
    name: String,
    meter: Box<dyn LagMeter>,
    said: Option<String>,
    notes: Vec<String>,
}

impl dyno_host::Probe for LagProbe {
    fn registered(&self) -> std::borrow::Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn name(&self) -> &str {
        "replication"
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut dyno_host::Readings) {
        let lag = match self.meter.read(now) {
            Ok(lag) => lag,
            Err(reason) => Lag { reason, ..Lag::default() },
        };
        let mut put = |what: &str, value: Option<f64>| {
            let name = format!("replication.{}.{what}", self.name);
            readings.extend(value.map(|value| (name, value)));
        };
        put("lag_bytes", lag.bytes);
        put("lag_s", lag.seconds);
        put("streaming", Some(f64::from(u8::from(lag.is_streaming))));
        let broken = (!lag.is_streaming).then_some(lag.reason);
        if broken != self.said {
            let text = broken.as_ref().map(|why| format!("{} does not stream: {why}", self.name));
            self.notes.extend(text);
            self.said = broken;
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use dyno_host::{Probe, Readings};

    use super::*;

    struct Script(Vec<Result<Lag, String>>);

    impl LagMeter for Script {
        fn read(&mut self, _: Nanoseconds) -> Result<Lag, String> {
            self.0.remove(0)
        }
    }

    #[test]
    fn lag_is_a_reading_of_its_member_and_a_break_is_noted_once() {
        let streaming =
            Lag { is_streaming: true, bytes: Some(7.0), seconds: None, ..Lag::default() };
        let broken = || Err("it was killed".to_owned());
        let script = Script(vec![Ok(streaming), broken(), broken()]);
        let mut probe = LagProbe {
            name: replica_name(2),
            meter: Box::new(script),
            said: None,
            notes: Vec::new(),
        };
        let mut read = |expected: &[(&str, f64)], notes: &[&str]| {
            let mut readings = Readings::new();
            probe.read(Nanoseconds::SECOND, &mut readings);
            let named = expected.iter().map(|(name, value)| ((*name).to_owned(), *value));
            assert_eq!(readings, named.collect());
            assert!(readings.keys().all(|name| READINGS.iter().any(|one| one.is_for(name))));
            assert_eq!(probe.take_notes(), notes);
        };
        read(
            &[("replication.replica-2.lag_bytes", 7.0), ("replication.replica-2.streaming", 1.0)],
            &[],
        );
        let down = [("replication.replica-2.streaming", 0.0)];
        read(&down, &["replica-2 does not stream: it was killed"]);
        read(&down, &[]);
    }

    #[test]
    fn a_replica_has_caught_up_only_if_it_streams() {
        let check = |is_streaming, bytes, expected: bool| {
            let lag = Lag { is_streaming, bytes, ..Lag::default() };
            assert_eq!(lag.is_caught_up(), expected, "{lag:?}");
        };
        check(true, Some(0.0), true);
        check(true, Some(1.0), false);
        check(true, None, false);
        check(false, Some(0.0), false);
    }

    #[test]
    fn clients_on_other_machines_have_an_address_and_a_password_of_their_own() {
        let protocol = Endpoint::from_url("mysql://me@h/x").expect("it is an address").protocol;
        let listening = Listening::at(Ipv4Addr::LOCALHOST, Secret::new("hush"));
        let listening = listening.expect("the loopback has ports");
        let endpoint = listening.endpoint(protocol);
        let shown = endpoint.to_string();
        assert_eq!(shown, format!("mysql://{CLIENT_USER}@{}/{CLIENT_CATALOG}", listening.address));
        assert!(!format!("{shown}{endpoint:?}{listening:?}").contains("hush"), "{endpoint:?}");
        // TEST-NET-1 is nobody's.
        assert!(Listening::at([192, 0, 2, 1].into(), Secret::new("hush")).is_err());
    }

    #[test]
    fn no_password_is_shown() {
        let replication = Replication::new(2, ReplicationMode::Synchronous).expect("it is made");
        let shown = format!("{replication:?}");
        assert!(shown.contains("***"), "{shown}");
        assert!(!shown.contains(replication.password.reveal()), "{shown}");
        assert_eq!(replication.password.reveal().len(), 32);
    }
}
