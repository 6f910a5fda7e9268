//! How long a program that does nothing takes, each second: a loaded machine may let nobody log in.

use std::process::{Command, Stdio};
use std::sync::Arc;

use dyno_units::reading::prelude::*;
use dyno_units::{Clock, Nanoseconds};

use super::{Probe, Readings};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("responsiveness.process_ms", Milliseconds, "Time to start and end a trivial process", "time from start to end of a process that does nothing (/bin/true)").chart(Topic::Load, 4).worse().up(StallCause::WaitingForCpu).row(330).words("small process"),
];

const PROGRAM: &str = "/bin/true";

pub(super) struct ResponsivenessProbe {
    program: &'static str,
    clock: Arc<dyn Clock>,
    has_reported: bool,
    notes: Vec<String>,
}

impl ResponsivenessProbe {
    pub(super) fn new(clock: Arc<dyn Clock>) -> ResponsivenessProbe {
        ResponsivenessProbe { program: PROGRAM, clock, has_reported: false, notes: Vec::new() }
    }
}

impl Probe for ResponsivenessProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, _now: Nanoseconds, readings: &mut Readings) {
        let mut command = Command::new(self.program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
        let began = self.clock.now();
        match command.status() {
            Ok(_) => {
                let took = self.clock.now().saturating_sub(began);
                readings.insert("responsiveness.process_ms".into(), took.as_secs_f64() * 1e3);
            }
            Err(error) if !self.has_reported => {
                self.has_reported = true;
                self.notes.push(format!("{} cannot be started: {error}", self.program));
            }
            Err(_) => {}
        }
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use dyno_units::ManualClock;

    use super::*;

    #[test]
    fn a_process_is_started_and_timed() {
        let mut probe = ResponsivenessProbe::new(Arc::new(ManualClock::new()));
        let mut readings = Readings::new();
        probe.read(Nanoseconds::ZERO, &mut readings);
        assert_eq!(readings, Readings::from([("responsiveness.process_ms".into(), 0.0)]));

        probe.program = "/no/such/program";
        readings.clear();
        probe.read(Nanoseconds::ZERO, &mut readings);
        probe.read(Nanoseconds::ZERO, &mut readings);
        assert_eq!((readings.len(), probe.take_notes().len()), (0, 1));
    }
}
