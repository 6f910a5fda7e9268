//! Runs the phases of a trial and keeps their results.

use dyno_database::Server;
use dyno_record::{
    Canary, EventKind, MemberRole, Settled, TrialOutcome, TrialPlan, TrialSummary, TrialWriter,
};
use dyno_study::Variant;
use dyno_units::{clean_text, redact_secrets, redact_tokens};
use dyno_workload::{AuditTotals, MadeWorkload};

use crate::datasets::Staging;
use crate::{Agents, Deployment, DoneThere, EventLog, Lab, Result, RunOrder, TrialError};

const LOG_LINES: usize = 30;

/// What a trial has come to so far; what is there is kept when it fails.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) summary: TrialSummary,
    pub(crate) settled: Option<Settled>,
    pub(crate) did: AuditTotals,
    pub(crate) done_there: Vec<DoneThere>,
    pub(crate) clean_up_failure: Option<String>,
    /// Whether the first step began.
    pub(crate) was_loaded: bool,
    /// Whether an agent could no longer be reached when a phase failed.
    pub(crate) has_lost_host: bool,
}

impl Results {
    pub(crate) fn was_deployed(&self) -> bool {
        self.summary.members.iter().any(|member| !member.server.version.is_empty())
    }

    /// Whether what has failed may go well the next time: a host that is lost says nothing of the variant.
    pub(crate) fn may_go_well(&self) -> bool {
        self.was_loaded || self.has_lost_host && self.was_deployed()
    }

    /// The summary of a trial that has ended; `times` are its begin and end, Unix milliseconds.
    pub(crate) fn into_summary(
        self,
        trial: &TrialPlan,
        outcome: TrialOutcome,
        (began_unix_ms, ended_unix_ms): (u64, u64),
        canary: Option<Canary>,
    ) -> TrialSummary {
        // What is said of the trial's server is said of the primary member, once.
        let mut members = self.summary.members;
        let primary = members.iter_mut().find(|member| member.role == MemberRole::Primary);
        let server = primary.map(|member| std::mem::take(&mut member.server)).unwrap_or_default();
        TrialSummary {
            number: trial.number,
            variant: trial.variant,
            repetition: trial.repetition,
            block: trial.block,
            outcome,
            began_unix_ms,
            ended_unix_ms,
            server,
            members,
            canary,
            ..self.summary
        }
    }
}

pub(crate) struct Phase {
    /// Its name in events: `deploy`, `step 8 clients`.
    pub(crate) name: String,
    /// Does it. What it finds out goes into the trial's results as soon as it is known, and stays there
    /// when this or a later phase fails. After an error, the phases that remain are left out, but for those that run
    /// after a failure.
    pub(crate) run: Box<dyn Fn(&mut Trial<'_, '_>) -> Result>,
    /// Whether it also runs when an earlier phase has failed, or the user has stopped the trial.
    pub(crate) runs_after_failure: bool,
}

pub(crate) struct Trial<'a, 't> {
    pub(crate) lab: &'a Lab,
    pub(crate) order: &'a RunOrder<'a>,
    pub(crate) planned: &'a TrialPlan,
    pub(crate) variant: &'a Variant,
    pub(crate) workload: MadeWorkload,
    pub(crate) deployment: Deployment,
    /// Copies of the primary's data for replicas that have not started yet.
    pub(crate) copies: Vec<Staging>,
    /// The agents that generate its load; none where this process does.
    pub(crate) generators: Option<Agents>,
    pub(crate) results: &'a mut Results,
    pub(crate) events: &'a mut EventLog<'t>,
    pub(crate) writer: &'a mut TrialWriter,
}

impl Trial<'_, '_> {
    /// Runs the phases in order. After the first one that fails, only those that run in every case.
    pub(crate) fn run(&mut self, phases: &[Phase]) -> Result {
        let mut result = Ok(());
        for phase in phases {
            if result.is_err() && !phase.runs_after_failure {
                continue;
            }
            if let Err(TrialError::Failed { message, .. }) = &result {
                let announced = self.announce_wait(message);
                result = announced.and(result);
            }
            let outcome = self.run_phase(phase);
            result = result.and(outcome.map_err(|error| self.explain(error)));
        }
        result
    }

    fn run_phase(&mut self, phase: &Phase) -> Result {
        let name = phase.name.clone();
        let began = self.lab.clock.now();
        let announced = self.event(EventKind::TrialPhaseBegan { phase: name.clone() });
        let outcome = match (&announced, phase.runs_after_failure) {
            (_, true) => (phase.run)(self),
            (Ok(()), false) => self.check_abort().and_then(|()| (phase.run)(self)),
            (Err(_), false) => Ok(()),
        };
        let ended = self.event(EventKind::TrialPhaseEnded {
            phase: name,
            took_s: self.lab.clock.now().saturating_sub(began).as_secs_f64(),
            is_done: outcome.is_ok(),
        });
        announced.and(outcome).and(ended)
    }

    pub(crate) fn event(&mut self, kind: EventKind) -> Result {
        Ok(self.events.in_trial(self.writer, kind)?)
    }

    pub(crate) fn note(&mut self, message: String) -> Result {
        self.event(EventKind::Noted { message })
    }

    /// Before waiting for servers by URL: one that no longer answers takes its time.
    fn announce_wait(&mut self, failure: &str) -> Result {
        let servers = self.deployment.to_drop_from();
        // Whoever has stopped the trial knows why it ends.
        if servers.is_empty() || self.lab.abort.is_raised() {
            return Ok(());
        }
        let servers = servers.join(" and ");
        self.note(foreign(&format!(
            "the trial has failed: {failure}; waiting for {servers} to drop Dyno's tables; Ctrl-C ends the wait"
        )))
    }

    pub(crate) fn check_abort(&self) -> Result {
        if self.lab.abort.is_raised() { Err(TrialError::Abandoned) } else { Ok(()) }
    }

    /// Says of a failure what the servers say: which one is down, and the last lines of its log.
    fn explain(&mut self, error: TrialError) -> TrialError {
        let TrialError::Failed { message, log } = error else { return error };
        let message = match self.deployment.down() {
            // That is what failed.
            Some(why) if message.contains(&why) => message,
            Some(why) => format!("the server went down: {why}; then: {message}"),
            None => message,
        };
        let of_servers = self.deployment.hosts.as_ref().and_then(|hosts| hosts.lost());
        let lost = of_servers.or_else(|| self.generators.as_ref()?.lost());
        self.results.has_lost_host |= lost.is_some();
        let log = if log.is_empty() { self.deployment.log_tail(LOG_LINES) } else { log };
        TrialError::Failed { message, log }
    }
}

/// Bytes of logs among the server's data, as far as its files tell.
pub(crate) fn log_bytes(server: &dyn Server) -> Option<u64> {
    server.data_files()?.log_bytes()
}

/// What servers hold together, if each tells. What one says may be any number.
pub(crate) fn bytes_of_all<'s>(
    servers: impl Iterator<Item = &'s dyn Server>,
    of_one: impl Fn(&dyn Server) -> Option<u64>,
) -> Option<u64> {
    servers.map(of_one).try_fold(0, |all: u64, bytes| Some(all.saturating_add(bytes?)))
}

/// A text in which a server or its log may be quoted, as it may be shown and kept.
pub(crate) fn foreign(text: &str) -> String {
    clean_text(&redact_tokens(&redact_secrets(text)))
}

#[cfg(test)]
mod tests {
    use dyno_record::MemberFacts;

    use super::*;

    #[test]
    fn a_host_that_is_lost_after_the_server_was_up_says_nothing_of_the_variant() {
        let check = |was_up: bool, has_lost_host: bool, was_loaded: bool, expected: bool| {
            let mut results = Results { was_loaded, has_lost_host, ..Results::default() };
            let mut member = MemberFacts::default();
            member.server.version = if was_up { "11.4".to_owned() } else { String::new() };
            results.summary.members.push(member);
            assert_eq!(results.may_go_well(), expected, "{was_up} {has_lost_host} {was_loaded}");
        };
        check(true, true, false, true);
        check(true, false, true, true);
        check(true, false, false, false);
        // It may be lost because the server cannot be started there.
        check(false, true, false, false);
    }

    #[test]
    fn what_a_server_said_is_kept_without_secrets_and_controls() {
        let check = |text: &str, expected: &str| assert_eq!(foreign(text), expected);
        check("FATAL:\x1b[31m no mysql://me:pw@h\n", "FATAL:\u{fffd}[31m no mysql://me:***@h ");
        let token = "3c23f39a0d2e4b5f8a7c6d5e4f3a2b1c";
        check(
            &format!("connecting to group '{token}', peer '10.0.0.1:4567'"),
            "connecting to group '***', peer '10.0.0.1:4567'",
        );
        assert!(foreign(&"x".repeat(1 << 20)).len() < 5000);
    }
}
