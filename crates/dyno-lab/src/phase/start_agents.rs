//! Starts the agents that generate load.

use dyno_record::EventKind;
use dyno_study::HostPool;

use crate::hosts::{Agents, Wanted};
use crate::trial::{Trial, TrialError};

/// Starts an agent on each host, and waits until all of them are there.
pub(super) fn start_agents(trial: &mut Trial<'_, '_>, pool: &HostPool) -> Result<(), TrialError> {
    let mut told = Ok(());
    let Trial { lab, events, writer, .. } = trial;
    // What is waited for is told while it is.
    let mut say = |message: String| {
        let event = events.in_trial(writer, EventKind::Noted { message });
        told = std::mem::replace(&mut told, Ok(())).and(event);
    };
    let started = Agents::start(lab, pool, Wanted::on_all(pool), &mut say);
    told?;
    let generators = started?;
    let message = generators.in_words();
    trial.generators = Some(generators);
    trial.note(message)
}
