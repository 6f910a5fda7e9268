//! Stalls for lack of CPU, memory or disk, from `/proc/pressure` (Linux 4.20).

use std::path::Path;

use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, Readings, counting, grown, insert};
use crate::kernel_text::value;

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("psi.cpu.some_pct", Percent, "Waited for a CPU", "share of time that some thread waited for a CPU").chart(Topic::Pressure, 1).worse().up(StallCause::WaitingForCpu).row(1020),
    reading("psi.cpu.full_pct", Percent, "all waited for a CPU", "share of time that all threads with work waited for a CPU; the kernel always reports 0 for the whole machine").worse().up(StallCause::WaitingForCpu),
    reading("psi.cpu.some_avg10_pct", Percent, "waited for a CPU, 10 s", "share of time that some thread waited for a CPU, the kernel's 10-second average").worse().up(StallCause::WaitingForCpu),
    reading("psi.cpu.full_avg10_pct", Percent, "all waited for a CPU, 10 s", "share of time that all threads with work waited for a CPU, the kernel's 10-second average").worse().up(StallCause::WaitingForCpu),
    reading("psi.io.some_pct", Percent, "Waited for a disk", "share of time that some thread waited for a disk").chart(Topic::Pressure, 2).worse().up(StallCause::Disk).row(1030),
    reading("psi.io.full_pct", Percent, "all waited for a disk", "share of time that all threads with work waited for a disk").worse().up(StallCause::Disk),
    reading("psi.io.some_avg10_pct", Percent, "waited for a disk, 10 s", "share of time that some thread waited for a disk, the kernel's 10-second average").worse().up(StallCause::Disk),
    reading("psi.io.full_avg10_pct", Percent, "all waited for a disk, 10 s", "share of time that all threads with work waited for a disk, the kernel's 10-second average").worse().up(StallCause::Disk),
    reading("psi.memory.some_pct", Percent, "Waited for memory", "share of time that some thread waited for memory").chart(Topic::Pressure, 3).worse().up(StallCause::Memory),
    reading("psi.memory.full_pct", Percent, "all waited for memory", "share of time that all threads with work waited for memory").worse().up(StallCause::Memory),
    reading("psi.memory.some_avg10_pct", Percent, "waited for memory, 10 s", "share of time that some thread waited for memory, the kernel's 10-second average").worse().up(StallCause::Memory),
    reading("psi.memory.full_avg10_pct", Percent, "all waited for memory, 10 s", "share of time that all threads with work waited for memory, the kernel's 10-second average").worse().up(StallCause::Memory),
];

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stall {
    avg10_pct: f64,
    total_us: u64,
}

/// `some avg10=0.00 avg60=0.19 avg300=0.39 total=19662451`
fn parse_line(text: &str, kind: &str) -> Option<Stall> {
    let line = value(text, kind, ' ')?;
    let field = |name: &str| {
        line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let avg10_pct = field("avg10")?.parse().ok().filter(|pct: &f64| pct.is_finite())?;
    Some(Stall { avg10_pct, total_us: field("total")?.parse().ok()? })
}

pub(super) fn probe(proc_root: &Path) -> Box<dyn Probe> {
    let mut resources = ["cpu", "io", "memory"]
        .map(|name| (name, Source::new(proc_root.join("pressure").join(name))));
    let look = move |readings: &mut Readings| {
        let mut totals = Vec::new();
        for (name, source) in &mut resources {
            let text = source.text().unwrap_or_default();
            for kind in ["some", "full"] {
                let stall = parse_line(text, kind);
                let avg10_pct = stall.map(|stall| stall.avg10_pct);
                insert(readings, format!("psi.{name}.{kind}_avg10_pct"), avg10_pct);
                totals.push((format!("psi.{name}.{kind}_pct"), stall.map(|stall| stall.total_us)));
            }
        }
        Some(totals)
    };
    counting(("psi", READINGS), look, |before, now, seconds, readings| {
        for ((_, before), (name, now)) in before.iter().zip(now) {
            let share = grown(*before, *now).map(|us| us / (seconds * 1e6));
            insert(readings, name, share.map(|share| (100.0 * share).min(100.0)));
        }
    })
}

#[cfg(test)]
mod tests {
    use dyno_units::Nanoseconds;

    use super::*;

    #[test]
    fn a_line_is_read() {
        let text = "some avg10=1.50 avg60=0.19 avg300=0.39 total=19662451\n\
                    full avg10=0.25 avg60=0.00 avg300=0.00 total=7\n";
        let check = |text: &str, kind: &str, expected: Option<(f64, u64)>| {
            let found = parse_line(text, kind).map(|stall| (stall.avg10_pct, stall.total_us));
            assert_eq!(found, expected, "{kind} in {text}");
        };
        check(text, "some", Some((1.5, 19_662_451)));
        check(text, "full", Some((0.25, 7)));
        check("some avg10=1.50 avg60=0.19 total=5", "full", None);
        check("some avg10=x total=5", "some", None);
        check("something avg10=1 total=5", "some", None);
        check("some avg10=1 total=-5", "some", None);
        check("", "some", None);
    }

    #[test]
    fn the_share_is_of_the_time_between() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("pressure")).expect("made");
        let write = |total: u64| {
            let text = format!("some avg10=2.00 avg60=0.00 avg300=0.00 total={total}\n");
            std::fs::write(folder.path().join("pressure/io"), text).expect("written");
        };
        let mut probe = probe(folder.path());
        let mut read = |second: u64| {
            let mut readings = Readings::new();
            probe.read(Nanoseconds::from_secs(second), &mut readings);
            readings
        };
        write(1_000_000);
        assert_eq!(read(1), Readings::from([("psi.io.some_avg10_pct".into(), 2.0)]));
        write(1_500_000);
        assert_eq!(read(3)["psi.io.some_pct"], 25.0);
        write(9_500_000);
        assert_eq!(read(4)["psi.io.some_pct"], 100.0);
    }
}
