//! Commands of jobs on hosts: run by the agent beside the server, and waited for from here.

use dyno_load::AbortFlag;
use dyno_units::Nanoseconds;

use super::POLL;
use super::server::{LOOK_LIMIT, ServerHosts, Waiting};
use crate::agent::message::ServerOrder;
use crate::command::{CommandEnd, CommandOrder, STOP_LIMIT};
use crate::trial::TrialError;

const REMOVE_LIMIT: Nanoseconds = Nanoseconds::from_secs(60);

impl ServerHosts {
    /// Runs a command beside the server of a host to its end, or until `stop` is raised.
    ///
    /// # Errors
    ///
    /// It cannot be started, or its agent is lost; the message names the host.
    pub(crate) fn run_command(
        &self,
        idx: usize,
        order: &CommandOrder,
        stop: &AbortFlag,
    ) -> Result<CommandEnd, TrialError> {
        let channel = &self.channels[idx];
        let run = ServerOrder::Run(Box::new(order.clone()));
        let (task, _) = self.numbered(idx, run, LOOK_LIMIT, Waiting::InAnyCase)?;
        let mut until = None;
        loop {
            match channel.command_end(task, POLL) {
                Some(Ok(end)) => return Ok(end),
                Some(Err(why)) => {
                    return Err(TrialError::new(format!("host {}: {why}", channel.name)));
                }
                None => {}
            }
            if let Some(why) = channel.lost() {
                return Err(TrialError::new(why));
            }
            match until {
                None if stop.is_raised() => {
                    self.in_any_case(idx, ServerOrder::Interrupt, LOOK_LIMIT)?;
                    until = Some(self.clock.now() + STOP_LIMIT + LOOK_LIMIT);
                }
                Some(until) if self.clock.now() > until => {
                    let why = format!("the command `{}` does not end", order.name);
                    return Err(TrialError::new(channel.lose(&why)));
                }
                _ => {}
            }
        }
    }

    /// Has the agent of a host remove what commands have left to each other. What cannot be removed now is removed
    /// with the agent.
    pub(crate) fn end_job(&self, idx: usize) {
        if self.channels[idx].lost().is_none() {
            let _ = self.in_any_case(idx, ServerOrder::EndJob, REMOVE_LIMIT);
        }
    }
}
