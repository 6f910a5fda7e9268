//! Kills, stops, restarts or isolates a server that Dyno started, at given times of a step; may promote a replica in
//! place of a killed primary.
//!
//! Faults act only on the process, through the handle that started it; on a host, its agent does that. The server is
//! always up again at the end of the step, so that confirmed work can be audited; if it does not come back, the trial
//! fails.

use std::sync::{Arc, OnceLock};

use dyno_database::{Act, Acted, Away, Control, DeployError, Endpoint, Following, Replicating};
use dyno_load::AbortFlag;
use dyno_record::{Fault, Promotion};
use dyno_study::{FaultChoice, FaultKind};
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::Connector;

use super::{Activity, POLL, StepEnd, Surroundings};
use crate::deployment::Promoted;
use crate::{Context, Deployment, Lab, Result, TrialError, fail};

/// How long a server may take to answer after it was started again: it recovers first.
const ANSWER_LIMIT: Nanoseconds = Nanoseconds::from_secs(1800);

/// How often the machines of servers are looked for while a fault is waited for.
const LOOK: Nanoseconds = Nanoseconds::from_millis(100);

const STATEMENT_LIMIT: Nanoseconds = Nanoseconds::from_secs(5);

pub(crate) struct Faults<'a> {
    title: String,
    choice: FaultChoice,
    member: String,
    control: Box<dyn Control>,
    connector: Connector,
    clock: Arc<dyn Clock>,
    /// How long the step is measured by plan: none begins that would not be over by then.
    length: Nanoseconds,
    abort: AbortFlag,
    promoting: Option<Promoting<'a>>,
    made: Vec<Fault>,
}

struct Promoting<'a> {
    replicating: &'a dyn Replicating,
    replicas: Vec<(String, Endpoint, Connector)>,
    /// Where clients learn the new primary.
    promoted: Arc<OnceLock<Promoted>>,
}

impl Promoting<'_> {
    /// Lets the replica that has received most take the place of the primary, and clients find it; its name.
    fn promote(&self, clock: &dyn Clock) -> Result<String, DeployError> {
        let mut most: Option<(u64, &(String, Endpoint, Connector))> = None;
        for replica in &self.replicas {
            let received = self.replicating.received(&replica.1)?;
            // Of several that have the same, the first.
            if most.is_none_or(|(most, _)| received > most) {
                most = Some((received, replica));
            }
        }
        let (_, (name, endpoint, connector)) =
            most.ok_or_else(|| DeployError::new("there is no replica that could be promoted"))?;
        self.replicating.promote(endpoint, clock)?;
        let (connector, member) = (Arc::clone(connector), name.clone());
        // It is set once in a trial: a fault that promotes happens once.
        let _ = self.promoted.set(Promoted { name: member, connector });
        Ok(name.clone())
    }
}

impl<'a> Faults<'a> {
    /// `length` is the step's. Fails for an unknown member, or one that Dyno did not start.
    pub(crate) fn of(
        (choice, length): (FaultChoice, Nanoseconds),
        lab: &'a Lab,
        deployment: &Deployment,
    ) -> Result<Faults<'a>> {
        let wanted = choice.member.as_deref().unwrap_or("primary");
        let name = &choice.name;
        let member = deployment.wanted(Some(wanted)).context(format_args!(
            "the fault {name} cannot be injected: there is no member {wanted}"
        ))?;
        let server = member.server();
        let controlled = server.and_then(|server| Some((server.control()?, server.connector())));
        let (control, connector) = controlled.context(format_args!(
            "the fault {name} cannot be injected into {wanted}: it is not a process that Dyno \
             started"
        ))?;
        let promoting = choice.promotes.then(|| promoting(name, lab, deployment)).transpose()?;
        Ok(Faults {
            promoting,
            title: format!("fault {name}"),
            member: member.facts.name.clone(),
            choice,
            control,
            connector,
            clock: Arc::clone(&lab.clock),
            length,
            abort: lab.abort.clone(),
            made: Vec::new(),
        })
    }

    fn make(&self, fault: &mut Fault, began: Nanoseconds, at: &Surroundings<'_, '_, '_>) -> Result {
        let now = || self.clock.now().saturating_sub(began).as_secs_f64();
        let of = |time: Nanoseconds| time.saturating_sub(began).as_secs_f64();
        match self.choice.kind {
            FaultKind::Stop { length } => {
                let frozen = self.begin(fault, Act::Freeze, of)?;
                // Also when the step ends meanwhile.
                self.wait(at, frozen.began + length)?;
                fault.ended_s = Some(of(self.control.act(Act::Thaw)?.ended));
                return Ok(());
            }
            FaultKind::Isolate { length } => {
                let cut = self.begin(fault, Act::CutOff, of)?;
                self.wait(at, cut.began + length)?;
                fault.ended_s = Some(of(self.control.act(Act::Rejoin)?.ended));
                self.wait_until_it_answers()?;
                fault.answered_s = Some(now());
                return Ok(());
            }
            FaultKind::Kill { start_after } => {
                let killed = self.begin(fault, Act::Kill, of)?;
                fault.ended_s = Some(of(killed.ended));
                let later = |length: Nanoseconds| killed.began + length;
                let until = start_after.map_or(Nanoseconds(u64::MAX), later);
                if let Some(promoting) = &self.promoting {
                    let member = promoting.promote(&*self.clock)?;
                    fault.answered_s = Some(now());
                    fault.promotion = Some(Promotion { member, survived: None });
                }
                self.wait(at, until)?;
            }
            FaultKind::Restart => {
                fault.ended_s = Some(of(self.begin(fault, Act::Stop, of)?.ended));
            }
        }
        let started = self.control.act(Act::Start)?;
        let is_replaced = fault.promotion.is_some();
        fault.started_s = Some(of(started.ended)).filter(|_| !is_replaced);
        self.wait_until_it_answers()?;
        fault.answered_s = fault.answered_s.or_else(|| Some(now()));
        self.control.act(Act::CheckNetwork)?;
        Ok(())
    }

    fn begin(&self, fault: &mut Fault, act: Act, of: impl Fn(Nanoseconds) -> f64) -> Result<Acted> {
        let acted = self.control.act(act)?;
        fault.began_s = of(acted.began);
        Ok(acted)
    }

    /// False if the step ends first. Fails if a member's machine is lost, to end at once.
    fn wait(&self, at: &Surroundings<'_, '_, '_>, until: Nanoseconds) -> Result<bool> {
        loop {
            if let Some(why) = self.control.lost() {
                return fail(why);
            }
            let next = until.min(self.clock.now() + LOOK);
            if !at.wait(&*self.clock, next) {
                return Ok(false);
            }
            if next == until {
                return Ok(true);
            }
        }
    }

    /// Waits until the server answers a statement, also after the end of the step.
    fn wait_until_it_answers(&self) -> Result {
        let until = self.clock.now() + ANSWER_LIMIT;
        let failed = |why: String| {
            let (title, member) = (&self.title, &self.member);
            TrialError::new(format!("after the {title}, {member} did not come back: {why}"))
        };
        loop {
            // One on a host takes logins only as soon as it has been told of their password.
            let answered = match self.control.is_back() {
                Ok(()) => answer(&self.connector),
                Err(Away::NotYet(reason)) => Err(reason),
                Err(Away::Down(how)) => return Err(failed(how)),
            };
            let Err(reason) = answered else { return Ok(()) };
            if self.abort.is_raised() {
                return Err(TrialError::Abandoned);
            }
            let now = self.clock.now();
            if now >= until {
                return Err(failed(format!("it does not answer within {ANSWER_LIMIT}: {reason}")));
            }
            self.clock.sleep_until(now + POLL);
        }
    }
}

fn promoting<'a>(name: &str, lab: &'a Lab, deployment: &Deployment) -> Result<Promoting<'a>> {
    let replicating = deployment
        .replicating(lab)
        .context(format_args!("the fault {name} cannot promote a replica: there is none"))?;
    let replica = |one: &&Following| {
        Some((one.name.clone(), one.server.endpoint()?.clone(), one.server.connector()))
    };
    let replicas = deployment.replicas().iter().filter_map(replica).collect();
    Ok(Promoting { replicating, replicas, promoted: Arc::clone(&deployment.promoted) })
}

fn answer(connector: &Connector) -> Result<(), String> {
    let mut connection = connector().map_err(|error| error.to_string())?;
    connection.set_cold_limit(STATEMENT_LIMIT.0);
    connection.query("SELECT 1").map(|_| ()).map_err(|error| error.to_string())
}

impl Activity for Faults<'_> {
    fn name(&self) -> &str {
        &self.title
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result {
        let began = self.clock.now();
        for n in 0.. {
            let Some(planned) = self.choice.time(n) else { break };
            let is_in_time =
                planned < self.length && planned + self.choice.kind.length() <= self.length;
            if !is_in_time || !self.wait(at, began + planned)? {
                break;
            }
            let mut fault = Fault {
                name: self.choice.name.clone(),
                kind: self.choice.kind.word().to_owned(),
                member: self.member.clone(),
                planned_s: planned.as_secs_f64(),
                began_s: self.clock.now().saturating_sub(began).as_secs_f64(),
                ..Fault::default()
            };
            let result = self.make(&mut fault, began, at);
            self.made.push(fault);
            result?;
        }
        if self.control.is_elsewhere() {
            self.wait(at, Nanoseconds(u64::MAX))?;
        }
        Ok(())
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        end.summary.faults.append(&mut self.made);
    }
}
