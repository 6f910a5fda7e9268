//! CPU clocks, from cpufreq or `/proc/cpuinfo`; has its own thread, as reading may ask every CPU.

use std::path::Path;

use dyno_units::reading::prelude::*;

use super::source::Source;
use super::{Probe, insert, levels};
use crate::kernel_text::numbers;

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("cpu.frequency_mhz_mean", Unit::other("MHz"), "CPU frequency", "frequency of the CPUs, mean of all").row(990),
    reading("cpu.frequency_mhz_min", Unit::other("MHz"), "frequency of the slowest CPU", "frequency of the slowest CPU"),
];

pub(super) fn probe(root: &Path) -> Box<dyn Probe> {
    // One file for each CPU, in kHz; empty without cpufreq.
    let folders = std::fs::read_dir(root.join("sys/devices/system/cpu"));
    let files = folders.into_iter().flatten().flatten();
    let files = files.map(|entry| entry.path().join("cpufreq/scaling_cur_freq"));
    let mut each: Vec<Source> = files.filter(|path| path.exists()).map(Source::new).collect();
    let mut cpuinfo = Source::new(root.join("proc/cpuinfo"));
    levels(("frequency", READINGS), move |readings| {
        let mhz: Vec<f64> = if each.is_empty() {
            parse_cpuinfo(cpuinfo.text()?)
        } else {
            let khz = each.iter_mut().filter_map(|source| numbers(source.text()?).next());
            khz.map(|khz| khz as f64 / 1e3).collect()
        };
        let slowest = mhz.iter().copied().reduce(f64::min)?;
        let mean = mhz.iter().sum::<f64>() / mhz.len() as f64;
        insert(readings, "cpu.frequency_mhz_mean", Some(mean));
        insert(readings, "cpu.frequency_mhz_min", Some(slowest));
        None
    })
}

/// `cpu MHz : 2596.096`, on x86 only.
fn parse_cpuinfo(text: &str) -> Vec<f64> {
    let mhz = |line: &str| line.strip_prefix("cpu MHz")?.split_once(':')?.1.trim().parse().ok();
    text.lines().filter_map(mhz).filter(|mhz: &f64| mhz.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use dyno_units::Nanoseconds;

    use super::super::Readings;
    use super::*;

    fn read(files: &[(&str, &str)]) -> Readings {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let mut readings = Readings::new();
        probe(root.path()).read(Nanoseconds::ZERO, &mut readings);
        readings
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: Option<(f64, f64)>) {
        let found = read(files);
        let pair = |found: &Readings| {
            Some((*found.get("cpu.frequency_mhz_mean")?, *found.get("cpu.frequency_mhz_min")?))
        };
        assert_eq!(pair(&found), expected, "{found:?}");
    }

    #[test]
    fn cpufreq_comes_before_cpuinfo() {
        let cpuinfo = ("proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2596.096\ncpu MHz : x\n");
        check(&[cpuinfo], Some((2596.096, 2596.096)));
        let one = ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n");
        let two = ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "1000000\n");
        check(&[cpuinfo, one, two], Some((2000.0, 1000.0)));
        check(&[], None);
        check(&[("proc/cpuinfo", "cpu MHz : NaN\nBogoMIPS : 50\n")], None);
    }
}
