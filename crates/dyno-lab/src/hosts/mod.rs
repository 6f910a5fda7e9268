//! Hosts: agents that this controller has started, and what it has them do.
//!
//! A host is a command that starts `dyno agent` there. The agents of a trial are started for it and end
//! with it, so that what went wrong in one trial is not there in the next. They generate load or have a server;
//! volumes and jobs are on the controller's own machine.

mod channel;
mod clock;
mod network;
mod probe;
mod server;
mod step;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dyno_host::{PipedProcess, Pipes};
use dyno_load::AbortFlag;
use dyno_study::HostPool;
use dyno_units::{Clock, Nanoseconds, redact_command};

use self::channel::{Answers, Channel, Inbox, Said};
use crate::agent::message::{Answer, Hello, Order};
use crate::agent::{DYNO, PROTOCOL};
use crate::run::Lab;
use crate::trial::TrialError;

pub(crate) use network::measure as measure_network;
pub(crate) use server::ServerHosts;
pub(crate) use step::{Generated, LoadRequest, work_of};

/// How long agents may take to be there: a login over a slow network.
const HELLO_LIMIT: Nanoseconds = Nanoseconds::from_secs(30);
/// An agent that has not answered for so long hangs, or cannot be reached.
const SILENCE_MOST: Nanoseconds = Nanoseconds::from_secs(10);
/// Between two questions for the time.
const BEAT: Duration = Duration::from_secs(1);
/// How often somebody who waits looks whether the user wants to stop.
const POLL: Duration = Duration::from_millis(100);
/// What agents have said and nobody has taken: then they wait.
const INBOX: usize = 4096;

/// The agents of a trial. They end with this.
pub(crate) struct Generators {
    // Ended before the channels.
    heart: Option<Heart>,
    channels: Channels,
    hellos: Vec<Hello>,
    clock: Arc<dyn Clock>,
    answers: Answers,
    n_loads: Cell<u64>,
    is_local: bool,
}

/// Conversations that end together.
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

/// Starts the agent of a host by its name.
type StartAgent<'a> = &'a dyn Fn(&str) -> Result<(Option<PipedProcess>, Pipes), TrialError>;

impl Generators {
    /// Starts an agent on each host of a pool, and waits until all of them are there.
    ///
    /// # Errors
    ///
    /// One cannot be started, is of another version, or is none; the others have ended then.
    pub(crate) fn start(lab: &Lab, pool: &HostPool) -> Result<Generators, TrialError> {
        let start = |name: &str| {
            let command = pool.command(name, lab.program.as_deref().and_then(Path::to_str));
            let command = command.ok_or_else(|| {
                TrialError::new("the path of this program is unknown: give the host a `reach`")
            })?;
            let started = PipedProcess::start(&command, &pool.hidden_variables);
            let (process, pipes) = started.map_err(|error| {
                let command = redact_command(&command).join(" ");
                TrialError::new(format!("host {name}: `{command}` cannot be started: {error}"))
            })?;
            Ok((Some(process), pipes))
        };
        Generators::with(&pool.names, &start, &lab.clock, (&lab.abort, pool.is_local()))
    }

    /// The same with what each is talked to through.
    fn with(
        names: &[String],
        start: StartAgent<'_>,
        clock: &Arc<dyn Clock>,
        (abort, is_local): (&AbortFlag, bool),
    ) -> Result<Generators, TrialError> {
        let (inbox, answers) = sync_channel(INBOX);
        let mut channels = Channels(Vec::new());
        for (idx, name) in names.iter().enumerate() {
            let opened = Channel::open((name, idx), start(name)?, clock, &inbox);
            channels.0.push(opened.map_err(|error| {
                TrialError::new(format!("host {name}: no thread can be started for it: {error}"))
            })?);
        }
        let hellos = greet(&channels.0, &answers, clock.as_ref(), abort)?;
        let heart = Heart::start(&channels.0, clock, inbox)?;
        Ok(Generators {
            heart: Some(heart),
            channels,
            hellos,
            clock: Arc::clone(clock),
            answers,
            n_loads: Cell::new(0),
            is_local,
        })
    }

    /// Why one of the agents is lost; none while all are there.
    pub(crate) fn lost(&self) -> Option<String> {
        self.channels.0.iter().find_map(|channel| channel.lost())
    }

    /// Whether the agents are processes of this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// What is there, in words: the hosts with the names that their machines have for themselves.
    pub(crate) fn in_words(&self) -> String {
        let hosts = self.channels.0.iter().zip(&self.hellos);
        let hosts: Vec<String> = hosts
            .map(|(channel, hello)| {
                format!("{} ({}, {} CPUs)", channel.name, hello.machine, hello.cpus)
            })
            .collect();
        format!("load generators: {}", hosts.join(", "))
    }

    /// Ends all agents, and waits for their ends.
    pub(crate) fn stop(mut self) {
        self.heart = None;
    }
}

/// Says hello to all, and waits for theirs.
fn greet(
    channels: &[Arc<Channel>],
    answers: &Answers,
    clock: &dyn Clock,
    abort: &AbortFlag,
) -> Result<Vec<Hello>, TrialError> {
    let own = Hello { protocol: PROTOCOL, dyno: DYNO.to_owned(), ..Hello::default() };
    channels.iter().for_each(|channel| channel.say(&Order::Hello(own.clone())));
    let mut hellos: Vec<Option<Hello>> = vec![None; channels.len()];
    let limit = clock.now() + HELLO_LIMIT;
    while hellos.iter().any(Option::is_none) {
        let (idx, said) = match answers.recv_timeout(POLL) {
            Ok(said) => said,
            Err(_) if abort.is_raised() => return Err(TrialError::Abandoned),
            Err(_) if clock.now() < limit => continue,
            Err(_) => {
                let silent = hellos.iter().zip(channels).find(|(hello, _)| hello.is_none());
                let lost = silent.map(|(_, channel)| {
                    channel.lose(&format!("no agent has answered within {HELLO_LIMIT}"))
                });
                return Err(TrialError::new(lost.unwrap_or_default()));
            }
        };
        match said {
            Said::Lost(why) => return Err(TrialError::new(why)),
            Said::Answer(answer) => match *answer {
                Answer::Hello(hello) => {
                    check_version(&channels[idx].name, &hello)?;
                    hellos[idx] = Some(hello);
                }
                _ => {
                    let why = channels[idx].lose("its agent did not say its version first");
                    return Err(TrialError::new(why));
                }
            },
        }
    }
    Ok(hellos.into_iter().flatten().collect())
}

fn check_version(host: &str, hello: &Hello) -> Result<(), TrialError> {
    let Hello { protocol, dyno, .. } = hello;
    if (*protocol, dyno.as_str()) == (PROTOCOL, DYNO) {
        return Ok(());
    }
    Err(TrialError::new(format!(
        "host {host} has Dyno {dyno} (protocol {protocol}), but this is Dyno {DYNO} (protocol \
         {PROTOCOL}): install the same version there"
    )))
}

impl Heart {
    fn start(
        channels: &[Arc<Channel>],
        clock: &Arc<dyn Clock>,
        inbox: Inbox,
    ) -> Result<Heart, TrialError> {
        let (beats, ended) = channel::<()>();
        let (channels, clock) = (channels.to_vec(), Arc::clone(clock));
        let work = move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                for (idx, channel) in channels.iter().enumerate() {
                    if channel.lost().is_some() {
                        continue;
                    }
                    let silence = clock.now().saturating_sub(channel.heard());
                    if silence > SILENCE_MOST {
                        let why = channel.lose(&format!(
                            "its agent has not answered for {SILENCE_MOST}: it hangs, or can no \
                             longer be reached"
                        ));
                        // If the inbox is full, whoever reads it finds out by itself.
                        let _ = inbox.try_send((idx, Said::Lost(why)));
                    } else {
                        channel.ping();
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("dyno-hosts".to_owned()).spawn(work);
        let thread = thread.map_err(|error| {
            TrialError::new(format!("no thread can be started for the hosts: {error}"))
        })?;
        Ok(Heart { beats: Some(beats), thread: Some(thread) })
    }
}
