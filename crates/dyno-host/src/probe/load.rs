//! Threads that want to run, over the last minutes, from `/proc/loadavg`.

use std::path::Path;

use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("load.avg1", Unit::other("threads"), "Load average (1 min)", "threads that ran or waited, exponentially damped average over a minute").chart(Topic::Load, 2).row(320),
    reading("load.threads", Unit::other("threads"), "threads", "threads on the machine"),
];

/// Mean of the last minute, and number of threads.
pub(crate) fn parse(text: &str) -> (Option<f64>, Option<f64>) {
    let mut words = text.split_ascii_whitespace();
    let avg1 =
        words.next().and_then(|word| word.parse().ok()).filter(|load: &f64| load.is_finite());
    let threads = words.nth(2).and_then(|word| word.split_once('/')?.1.parse::<u32>().ok());
    (avg1, threads.map(f64::from))
}

pub(super) struct LoadProbe {
    source: Source,
}

impl LoadProbe {
    pub(super) fn new(proc_root: &Path) -> LoadProbe {
        LoadProbe { source: Source::new(proc_root.join("loadavg")) }
    }
}

impl Probe for LoadProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, _now: Nanoseconds, readings: &mut Readings) {
        let Some(text) = self.source.text() else { return };
        let (avg1, threads) = parse(text);
        for (name, value) in [("load.avg1", avg1), ("load.threads", threads)] {
            if let Some(value) = value {
                readings.insert(name.into(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_read() {
        let check = |text: &str, expected: (Option<f64>, Option<f64>)| {
            assert_eq!(parse(text), expected, "{text}");
        };
        check("0.13 0.21 0.18 1/96 13793\n", (Some(0.13), Some(96.0)));
        check("12.5 0.21\n", (Some(12.5), None));
        check("NaN x y z/96", (None, Some(96.0)));
        check("", (None, None));
    }
}
