//! Commands of jobs, run by the agent beside the server.

use dyno_load::AbortFlag;
use dyno_units::Nanoseconds;

use super::POLL;
use super::server::ServerHosts;
use crate::agent::message::ServerOrder;
use crate::command::{CommandEnd, CommandOrder, STOP_LIMIT};
use crate::trial::TrialError;

/// How long its end may take longer than stopping it.
const LATE: Nanoseconds = Nanoseconds::from_secs(10);

impl ServerHosts {
    /// To its end or `stop`. Fails, with the host's name, if it or its agent does.
    pub(crate) fn run_command(
        &self,
        idx: usize,
        order: &CommandOrder,
        stop: &AbortFlag,
    ) -> Result<CommandEnd, TrialError> {
        let channel = self.channel(idx);
        let run = ServerOrder::Run(Box::new(order.clone()));
        let task = self.numbered(vec![(idx, run)])?.0[0].1;
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
                    self.perform(idx, ServerOrder::Interrupt)?;
                    until = Some(self.agents.clock.now() + STOP_LIMIT + LATE);
                }
                Some(until) if self.agents.clock.now() > until => {
                    let why = format!("the command `{}` does not end", order.name);
                    return Err(TrialError::new(channel.lose(&why)));
                }
                _ => {}
            }
        }
    }

    /// Removes what commands left to each other; what cannot be removed now goes with the agent.
    pub(crate) fn end_job(&self, idx: usize) {
        if self.channel(idx).lost().is_none() {
            let _ = self.perform(idx, ServerOrder::EndJob);
        }
    }
}
