//! The ordered stream of events: written to the record first, then passed to the listener.

use std::sync::Arc;

use dyno_record::{Event, EventKind, RunWriter, TrialWriter, WriteError};
use dyno_units::{Clock, Nanoseconds};

/// Emits events: into the record, then to the listener.
pub(crate) struct EventLog<'a> {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) listener: &'a mut dyn FnMut(&Event),
}

impl EventLog<'_> {
    /// Emits an event that belongs to no trial.
    pub(crate) fn in_run(
        &mut self,
        record: &mut RunWriter,
        kind: EventKind,
    ) -> Result<(), WriteError> {
        let event = self.stamp(kind);
        record.event(&event)?;
        (self.listener)(&event);
        Ok(())
    }

    pub(crate) fn in_trial(
        &mut self,
        record: &mut TrialWriter,
        kind: EventKind,
    ) -> Result<(), WriteError> {
        let event = self.stamp(kind);
        record.event(&event)?;
        (self.listener)(&event);
        Ok(())
    }

    /// Passes an event to the listener only, for what the record holds in another form.
    pub(crate) fn notify(&mut self, kind: EventKind) {
        let event = self.stamp(kind);
        (self.listener)(&event);
    }

    pub(crate) fn notify_of(&mut self, at: Nanoseconds, kind: EventKind) {
        let event = Event { at_ns: at.0, ..self.stamp(kind) };
        (self.listener)(&event);
    }

    pub(crate) fn stamp(&self, kind: EventKind) -> Event {
        Event { at_ns: self.clock.now().0, unix_ms: self.clock.unix_millis(), kind }
    }
}
