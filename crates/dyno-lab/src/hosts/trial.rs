//! A whole trial on a host: its agent runs it, and sends events and record.

use std::ops::ControlFlow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dyno_record::{EventKind, TrialHost};
use dyno_study::HostPool;
use dyno_units::Nanoseconds;

use super::channel::Said;
use super::reach::{Reached, Say};
use super::{Agents, POLL, StartError, Wanted, after_loss};
use crate::agent::message::{Answer, EndThere, Order, TrialOrder, TrialReport};
use crate::{Lab, Result, fail};

const STOP_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

pub(crate) enum FromHost {
    Event(Box<EventKind>),
    Part { name: String, bytes: Vec<u8> },
}

/// Who takes it. What breaks stops the trial.
pub(crate) type Take<'a> = &'a mut dyn FnMut(FromHost) -> ControlFlow<()>;

pub(crate) struct TrialSite<'a> {
    pub(crate) pool: &'a HostPool,
    pub(crate) host: usize,
    /// What tells its kernel from others: hosts with the same one are one machine.
    pub(crate) machine: String,
    reached: Arc<Reached>,
}

impl TrialSite<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.pool.names[self.host]
    }

    pub(crate) fn is_used(&self) -> bool {
        self.reached.hosts(self.pool).contains(&self.host)
    }

    /// Fails, with the host's name, if the host cannot be reached or is lost.
    pub(crate) fn run(
        &self,
        lab: &Lab,
        order: &TrialOrder,
        take: Take<'_>,
    ) -> Result<(EndThere, TrialHost)> {
        let agents = self.start(lab, &mut |message| {
            // Whoever wants no more says so again.
            let _ = take(FromHost::Event(Box::new(EventKind::Noted { message })));
        })?;
        agents.channels.0[0].say(&Order::Trial(Box::new(order.clone())));
        let TrialReport { end, environment } = follow(lab, &agents, take)?;
        let host = TrialHost {
            pool: self.pool.name.clone(),
            name: self.name().to_owned(),
            place: self.reached.place(self.host),
            environment,
        };
        agents.stop();
        Ok((end, host))
    }

    /// Starts its agent. A host that has had one is tried for a minute, or given up, as the study says.
    fn start(&self, lab: &Lab, say: Say<'_>) -> Result<Agents> {
        let mut until = None;
        loop {
            self.reached.look(lab, self.pool, say)?;
            let hosts = [self.host];
            let error = match Agents::on(lab, self.pool, (&self.reached, &hosts)) {
                Ok(agents) => return Ok(agents),
                Err(StartError { host: None, error }) => return Err(error),
                Err(StartError { error, .. }) => error,
            };
            self.reached.state().copied.remove(&self.host);
            let is_needed = self.reached.hosts(self.pool).len() <= 1;
            let lost = (&*self.reached, self.host, is_needed);
            if let Some(error) = after_loss(lab, self.pool, lost, (error, &mut until), say)? {
                return Err(error);
            }
        }
    }
}

/// An agent of this version must start on each host; fails, with its name, if one does not.
pub(crate) fn trial_sites<'a>(
    lab: &Lab,
    pool: &'a HostPool,
    say: Say<'_>,
) -> Result<(Vec<TrialSite<'a>>, String)> {
    let agents = Agents::start(lab, pool, Wanted::on_all(pool), say)?;
    let machines: Vec<String> = agents.hellos.iter().map(|hello| hello.boot.clone()).collect();
    let words = agents.hosts_in_words();
    agents.stop();
    let reached = lab.hosts.reach(lab, pool, say)?;
    let hosts = reached.hosts(pool).into_iter().zip(machines);
    let site = |(host, machine)| TrialSite { pool, host, machine, reached: Arc::clone(&reached) };
    Ok((hosts.map(site).collect(), words))
}

fn follow(lab: &Lab, agents: &Agents, take: Take<'_>) -> Result<TrialReport> {
    let channel = &agents.channels.0[0];
    let mut stop_until: Option<Nanoseconds> = None;
    let mut is_wanted = true;
    loop {
        if stop_until.is_none() && (lab.abort.is_raised() || !is_wanted) {
            channel.say(&Order::Stop);
            stop_until = Some(lab.clock.now() + STOP_LIMIT);
        }
        if stop_until.is_some_and(|until| lab.clock.now() > until) {
            let why = format!("its trial has not stopped within {STOP_LIMIT}");
            return Err(channel.fail(&why));
        }
        let Ok((_, said)) = agents.answers.recv_timeout(POLL) else { continue };
        let from = match said {
            Said::Lost(why) => return fail(why),
            Said::Answer(answer) => match *answer {
                Answer::TrialEnded(report) => return Ok(*report),
                Answer::TrialEvent(event) => FromHost::Event(Box::new(event.kind)),
                Answer::TrialFile { name, part } => {
                    let Ok(bytes) = STANDARD.decode(part) else {
                        return Err(channel.fail("a part of the trial's record cannot be decoded"));
                    };
                    FromHost::Part { name, bytes }
                }
                _ => return Err(channel.fail("its agent answered what it was not asked")),
            },
        };
        is_wanted &= take(from).is_continue();
    }
}
