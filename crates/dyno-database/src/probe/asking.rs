//! Probes that ask a server several statements.

use std::borrow::Cow;

use dyno_host::{Probe, Readings};
use dyno_units::{Nanoseconds, Reading};

use super::Asker;

/// What a probe reads, on a connection of its own.
type Read = Box<dyn FnMut(&mut Asker, Nanoseconds, &mut Readings) + Send>;

struct AskingProbe {
    name: &'static str,
    registered: Vec<Reading>,
    asker: Asker,
    read: Read,
}

pub(crate) fn asking(
    name: &'static str,
    registered: Vec<Reading>,
    asker: Asker,
    read: impl FnMut(&mut Asker, Nanoseconds, &mut Readings) + Send + 'static,
) -> Box<dyn Probe> {
    Box::new(AskingProbe { name, registered, asker, read: Box::new(read) })
}

impl Probe for AskingProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        self.registered.clone().into()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        (self.read)(&mut self.asker, now, readings);
    }

    fn take_notes(&mut self) -> Vec<String> {
        self.asker.take_notes()
    }
}
