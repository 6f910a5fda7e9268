//! The ordered stream of events: written to the record first, then passed to the listener.

use std::sync::Arc;

use dyno_load::Interval;
use dyno_model::Name;
use dyno_record::{Event, EventKind, KindSecond, RunWriter, TrialWriter, WriteError};
use dyno_units::{Clock, Nanoseconds};

use crate::observe::{Sample, six_digits};

pub(crate) type Listener<'a> = &'a mut dyn FnMut(&Event);

type Written = Result<(), WriteError>;

pub(crate) struct EventLog<'a> {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) listener: Listener<'a>,
}

impl EventLog<'_> {
    pub(crate) fn in_run(&mut self, record: &mut RunWriter, kind: EventKind) -> Written {
        self.written(kind, |event| record.event(event))
    }

    pub(crate) fn in_trial(&mut self, record: &mut TrialWriter, kind: EventKind) -> Written {
        self.written(kind, |event| record.event(event))
    }

    fn written(&mut self, kind: EventKind, write: impl FnOnce(&Event) -> Written) -> Written {
        let event = self.stamp(kind);
        write(&event)?;
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

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 1.0];

pub(crate) fn kinds_event(step: String, names: &[Name], interval: &Interval) -> EventKind {
    let seconds = interval.length.as_secs_f64().max(1e-9);
    let per_s = |count: u64| six_digits(count as f64 / seconds);
    let kinds = names.iter().zip(&interval.kinds).map(|(name, kind)| {
        let us = |quantile| kind.response.value_at_quantile(quantile) as f64 / 1e3;
        let quantiles = QUANTILES.into_iter().filter(|_| !kind.response.is_empty());
        KindSecond {
            name: name.clone().into_owned(),
            throughput: per_s(kind.outcomes.committed()),
            errors: per_s(kind.outcomes.failed()),
            response_us: quantiles.map(|nth| (nth, six_digits(us(nth)))).collect(),
        }
    });
    EventKind::Kinds { step, kinds: kinds.collect() }
}

pub(crate) fn readings_event(sample: &Sample) -> EventKind {
    EventKind::ReadingsTaken { values: sample.values.clone() }
}
