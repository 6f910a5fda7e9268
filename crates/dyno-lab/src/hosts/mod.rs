//! Hosts: the agents that this controller has started, and their orders. A host is a command that starts `dyno
//! agent` there. Agents live for one trial, so that no fault of one trial reaches the next. They generate load,
//! or have a server with volumes, commands and faults.

mod channel;
mod clock;
mod hosted;
mod network;
mod orders;
mod probe;
mod reach;
mod server;
mod step;
#[cfg(test)]
mod tests;
mod trial;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_host::{PipedProcess, Pipes};
use dyno_load::AbortFlag;
use dyno_study::{HostPool, Lost};
use dyno_units::{Clock, Nanoseconds, redact_command};

use self::channel::{Answers, Channel, Inbox, Said, inbox};
pub(crate) use self::reach::Say;
use self::reach::{LOST_LIMIT, LOST_PAUSE, Reached};
use crate::agent::message::{Answer, Hello, Order};
use crate::agent::{DYNO, PROTOCOL};
use crate::{Context, Lab, Result, TrialError, fail};

pub(crate) use hosted::There;
pub(crate) use network::measure as measure_network;
pub(crate) use orders::MadeVolume;
pub(crate) use probe::WatchedHost;
pub use reach::{HeldHosts, kubernetes_manifest};
pub(crate) use server::ServerHosts;
#[cfg(any(test, fuzzing))]
pub(crate) use step::fuzz;
pub(crate) use step::{Generated, LoadRequest, work_of};
pub(crate) use trial::{FromHost, TrialSite, trial_sites};

/// How long agents may take to be there: a login over a slow network.
const HELLO_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);
/// An agent that has not answered, or not read, for so long hangs, or cannot be reached.
const SILENCE_MOST: Nanoseconds = Nanoseconds::from_secs(10);
const BEAT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// So many hosts have to be there …
    pub(crate) least: usize,
    /// … and so many have an agent each, if they are.
    pub(crate) most: usize,
    /// Whether there is one agent more: on the next host or, if there is none, on the first one.
    pub(crate) has_further: bool,
}

impl Wanted {
    pub(crate) fn on_all(pool: &HostPool) -> Wanted {
        Wanted { least: 1, most: pool.names.len(), has_further: false }
    }

    /// The hosts of the agents, of those that are there.
    fn choose(self, hosts: &[usize]) -> Vec<usize> {
        let each = hosts.iter().take(self.most);
        let next = hosts.get(self.most).or(hosts.first()).filter(|_| self.has_further);
        each.chain(next).copied().collect()
    }
}

/// The agents of a trial. They end with this.
pub(crate) struct Agents {
    // Ended before the channels.
    heart: Option<Heart>,
    channels: Channels,
    hellos: Vec<Hello>,
    /// The hosts as the study names them, and what is there where the study does not say it.
    hosts: Vec<(String, Option<String>)>,
    addresses: Vec<String>,
    clock: Arc<dyn Clock>,
    answers: Answers,
    n_loads: AtomicU64,
    is_local: bool,
}

#[derive(Debug)]
struct StartError {
    host: Option<usize>,
    error: TrialError,
}

impl StartError {
    fn of(host: usize) -> impl FnOnce(TrialError) -> StartError {
        move |error| StartError { host: Some(host), error }
    }

    fn of_none(error: TrialError) -> StartError {
        StartError { host: None, error }
    }
}

struct Channels(Vec<Arc<Channel>>);

impl Drop for Channels {
    fn drop(&mut self) {
        // All of them end at the same time.
        self.0.iter().for_each(|channel| channel.close());
        self.0.iter().for_each(|channel| channel.end());
    }
}

/// Asks all agents for the time, again and again, and notices which do not answer.
struct Heart {
    beats: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.beats = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the agent of a host, by its number among those that are used.
type StartAgent<'a> = &'a dyn Fn(usize) -> Result<(Option<PipedProcess>, Pipes)>;

impl Agents {
    /// Starts agents on this many hosts of a pool, or on all that exist, and waits until all are ready. Requests hosts
    /// if necessary. Fails if one cannot be started, has another version, or is no agent; the others have ended then.
    pub(crate) fn start(lab: &Lab, pool: &HostPool, size: Wanted, say: Say<'_>) -> Result<Agents> {
        let mut until = None;
        loop {
            let reached = lab.hosts.reach(lab, pool, say)?;
            let left = reached.hosts(pool);
            let (n_left, hosts) = (left.len(), size.choose(&left));
            let StartError { host, error } = match Agents::on(lab, pool, (&reached, &hosts)) {
                Ok(all) => {
                    reached.state().seen.extend(&hosts);
                    return Ok(all);
                }
                Err(error) => error,
            };
            let Some(host) = host.map(|nth| hosts[nth]) else { return Err(error) };
            // It is looked for again.
            reached.state().copied.remove(&host);
            // One that has never been there is not lost, but wrong.
            if !reached.state().seen.contains(&host) {
                return Err(error);
            }
            let lost = (&*reached, host, n_left <= size.least);
            after_loss(lab, pool, lost, (error, &mut until), say)?;
        }
    }

    fn on(
        lab: &Lab,
        pool: &HostPool,
        (reached, hosts): (&Reached, &[usize]),
    ) -> Result<Agents, StartError> {
        let name = |nth: usize| {
            let host = hosts[nth];
            let place = reached.place(host);
            (pool.names[host].clone(), place)
        };
        let hosts_named: Vec<_> = (0..hosts.len()).map(name).collect();
        let called: Vec<String> = hosts_named.iter().map(called).collect();
        let commands = agent_commands(lab, pool, (reached, hosts), &called)?;
        let start = |nth: usize| {
            let started = PipedProcess::start(&commands[nth], &pool.hidden_variables);
            let (command, host) = (redact_command(&commands[nth]).join(" "), &called[nth]);
            let (process, pipes) =
                started.context(format_args!("host {host}: `{command}` cannot be started"))?;
            Ok((Some(process), pipes))
        };
        let all = Agents::with(&called, &start, &lab.clock, (&lab.abort, pool.is_local()))?;
        let addresses = hosts.iter().map(|&host| reached.address(host, pool)).collect();
        Ok(Agents { hosts: hosts_named, addresses, ..all })
    }

    fn with(
        names: &[String],
        start: StartAgent<'_>,
        clock: &Arc<dyn Clock>,
        (abort, is_local): (&AbortFlag, bool),
    ) -> Result<Agents, StartError> {
        let (inbox, answers) = inbox();
        let mut channels = Channels(Vec::new());
        for (idx, name) in names.iter().enumerate() {
            let pipes = start(idx).map_err(StartError::of(idx))?;
            let opened = Channel::open((name, idx), pipes, clock, &inbox);
            let what = format_args!("host {name}: no thread can be started for it");
            channels.0.push(opened.context(what).map_err(StartError::of_none)?);
        }
        let hellos = greet(&channels.0, &answers, clock.as_ref(), abort)?;
        let heart = Heart::start(&channels.0, clock, inbox).map_err(StartError::of_none)?;
        Ok(Agents {
            heart: Some(heart),
            channels,
            hellos,
            hosts: names.iter().map(|name| (name.clone(), None)).collect(),
            addresses: names.to_vec(),
            clock: Arc::clone(clock),
            answers,
            n_loads: AtomicU64::new(0),
            is_local,
        })
    }

    pub(crate) fn lost(&self) -> Option<String> {
        self.channels.0.iter().find_map(|channel| channel.lost())
    }

    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// What is there, in words: the hosts with the names that their machines have for themselves.
    pub(crate) fn in_words(&self) -> String {
        format!("load generators: {}", self.hosts_in_words())
    }

    fn hosts_in_words(&self) -> String {
        let hosts = self.channels.0.iter().zip(&self.hellos);
        let hosts: Vec<String> = hosts
            .map(|(channel, hello)| format!("{} ({})", channel.name, hello.in_words()))
            .collect();
        hosts.join(", ")
    }

    pub(crate) fn stop(mut self) {
        self.heart = None;
    }
}

/// What becomes of a run after a host that has been there cannot be reached: it is given up, and its error returned; or it
/// `is_needed` and tried again for a minute, for which this waits; or the run ends, which is noted.
fn after_loss(
    lab: &Lab,
    pool: &HostPool,
    (reached, host, is_needed): (&Reached, usize, bool),
    (error, until): (TrialError, &mut Option<Nanoseconds>),
    say: Say<'_>,
) -> Result<Option<TrialError>> {
    let TrialError::Failed { message, .. } = &error else { return Err(error) };
    let until = *until.get_or_insert_with(|| lab.clock.now() + LOST_LIMIT);
    match pool.lost {
        Lost::Continue if !is_needed => {
            say(format!("{message}; the run continues with the other hosts"));
            reached.state().given_up.insert(host);
            return Ok(Some(error));
        }
        Lost::Stop if lab.clock.now() < until => {
            say(format!("{message}; retrying"));
            lab.sleep(LOST_PAUSE);
            if lab.abort.is_raised() {
                return Err(TrialError::Abandoned);
            }
        }
        _ => lab.hosts.lose(pool, message),
    }
    if lab.hosts.lost().is_some() { Err(error) } else { Ok(None) }
}

fn called((name, place): &(String, Option<String>)) -> String {
    if let Some(place) = place { format!("{name} ({place})") } else { name.clone() }
}

/// Starts agents on these hosts; copies the program, if necessary, to all at the same time.
fn agent_commands(
    lab: &Lab,
    pool: &HostPool,
    (reached, hosts): (&Reached, &[usize]),
    called: &[String],
) -> Result<Vec<Vec<String>>, StartError> {
    let one = |nth: usize| {
        let command = reached.agent(hosts[nth], (lab, pool));
        command.map_err(|error| StartError::of(nth)(error.of_pool(&called[nth])))
    };
    let results: Vec<_> = thread::scope(|scope| {
        let one = &one;
        let works: Vec<_> = (0..hosts.len()).map(|nth| scope.spawn(move || one(nth))).collect();
        works.into_iter().map(|work| work.join().expect("no copying panics")).collect()
    });
    results.into_iter().collect()
}

fn greet(
    channels: &[Arc<Channel>],
    answers: &Answers,
    clock: &dyn Clock,
    abort: &AbortFlag,
) -> Result<Vec<Hello>, StartError> {
    let own = Hello { protocol: PROTOCOL, dyno: DYNO.to_owned(), ..Hello::default() };
    channels.iter().for_each(|channel| channel.say(&Order::Hello(own.clone())));
    let mut hellos: Vec<Option<Hello>> = vec![None; channels.len()];
    let limit = clock.now() + HELLO_LIMIT;
    while hellos.iter().any(Option::is_none) {
        match answers.recv_timeout(POLL) {
            Ok((idx, Said::Lost(why))) => return Err(StartError::of(idx)(TrialError::new(why))),
            Ok((idx, Said::Answer(answer))) => match *answer {
                Answer::Hello(hello) => {
                    check_version(&channels[idx].name, &hello).map_err(StartError::of(idx))?;
                    hellos[idx] = Some(hello);
                }
                _ => {
                    let error = channels[idx].fail("its agent did not say its version first");
                    return Err(StartError::of(idx)(error));
                }
            },
            Err(_) => {}
        }
        // Also if something has come: others may speak without end.
        let Some(silent) = hellos.iter().position(Option::is_none) else { break };
        if abort.is_raised() {
            return Err(StartError::of_none(TrialError::Abandoned));
        }
        if clock.now() >= limit {
            let why = format!("no agent has answered within {HELLO_LIMIT}");
            return Err(StartError::of(silent)(channels[silent].fail(&why)));
        }
    }
    Ok(hellos.into_iter().flatten().collect())
}

fn check_version(host: &str, hello: &Hello) -> Result {
    let Hello { protocol, dyno, .. } = hello;
    if (*protocol, dyno.as_str()) == (PROTOCOL, DYNO) {
        return Ok(());
    }
    fail(format!(
        "host {host} has Dyno {dyno} (protocol {protocol}), but this is Dyno {DYNO} (protocol \
         {PROTOCOL}): install the same version there"
    ))
}

impl Heart {
    fn start(channels: &[Arc<Channel>], clock: &Arc<dyn Clock>, inbox: Inbox) -> Result<Heart> {
        let (beats, ended) = channel::<()>();
        let (channels, clock) = (channels.to_vec(), Arc::clone(clock));
        let work = move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                for (idx, channel) in channels.iter().enumerate() {
                    if channel.lost().is_some() {
                        continue;
                    }
                    let is_over =
                        |since: Nanoseconds| clock.now().saturating_sub(since) > SILENCE_MOST;
                    let what = match (is_over(channel.heard()), channel.stuck()) {
                        (true, _) => "answered",
                        (false, Some(since)) if is_over(since) => "read what it was told",
                        _ => {
                            channel.ping();
                            continue;
                        }
                    };
                    let why = channel.lose(&format!(
                        "its agent has not {what} for {SILENCE_MOST}: it hangs, or can no longer be \
                         reached"
                    ));
                    inbox.try_lost(idx, why);
                }
            }
        };
        let thread = thread::Builder::new().name("dyno-hosts".to_owned()).spawn(work);
        let thread = thread.context("no thread can be started for the hosts")?;
        Ok(Heart { beats: Some(beats), thread: Some(thread) })
    }
}
