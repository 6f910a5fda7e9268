//! The view of a running load: throughput, response time, CPU by process, debt.

use std::collections::BTreeMap;

use dyno_units::reading::{Topic, known};
use dyno_units::{Nanoseconds, Reading, Unit};

use super::Curve;
use crate::readings::registry;

/// In characters.
const CURVE: usize = 40;

/// Readings from which the trend is estimated.
pub(super) const SLOPE_S: usize = 30;

#[derive(Default)]
pub(crate) struct LoadView {
    throughput: Curve,
    p95_us: Curve,
    readings: BTreeMap<String, f64>,
    gauge: Curve,
}

impl LoadView {
    pub(crate) fn push(&mut self, throughput: f64, p95_us: f64) {
        self.throughput.push(throughput);
        self.p95_us.push(p95_us);
    }

    pub(crate) fn set_readings(&mut self, values: &BTreeMap<String, f64>) {
        values.get(known::DEBT_GAUGE).into_iter().for_each(|gauge| self.gauge.push(*gauge));
        self.readings.extend(values.iter().map(|(name, value)| (name.clone(), *value)));
    }

    /// Empty while nothing is known.
    pub(crate) fn lines(&self, n_cpus: u32) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(latest), Some(mean)) = (self.throughput.latest(), self.throughput.mean()) {
            let curve = self.throughput.drawn(CURVE);
            lines.push(format!("  throughput  {latest:>10.0} tx/s  {curve}  mean {mean:.0}"));
        }
        if let Some(latest) = self.p95_us.latest() {
            let time = Nanoseconds((latest * 1e3) as u64).to_string();
            lines.push(format!("  p95         {time:>15}  {}", self.p95_us.drawn(CURVE)));
        }
        lines.extend(self.cpu_line(n_cpus));
        let slope = self.gauge.slope(SLOPE_S);
        lines.extend(debt(&self.readings, slope).map(|text| format!("  backlog     {text}")));
        lines
    }

    /// Also without load.
    pub(crate) fn cpu_line(&self, n_cpus: u32) -> Option<String> {
        let shares = processes(&self.readings, &PROCESSES, n_cpus);
        shares.map(|text| format!("  CPU         {text}"))
    }
}

/// Name in readings, and name for people.
const PROCESSES: [(&str, &str); 3] =
    [("server", "server"), ("generator", "generator"), ("rest", "other processes")];

/// `server 1.20, generator 0.40, other processes 0.05 of 2 CPUs`; `names` as in [`PROCESSES`].
pub(crate) fn processes(
    readings: &BTreeMap<String, f64>,
    names: &[(&str, &str)],
    n_cpus: u32,
) -> Option<String> {
    let share = |(name, title): &(&str, &str)| {
        let value = readings.get(&format!("{name}.cpu_s_per_s"))?;
        Some(format!("{title} {value:.2}"))
    };
    let shares: Vec<String> = names.iter().filter_map(share).collect();
    (!shares.is_empty()).then(|| format!("{} of {n_cpus} CPUs", shares.join(", ")))
}

fn debt(readings: &BTreeMap<String, f64>, slope_per_s: Option<f64>) -> Option<String> {
    let gauge = readings.get(known::DEBT_GAUGE).map(|gauge| {
        format!("{}× the caught-up level ({})", short(*gauge), trend(*gauge, slope_per_s))
    });
    let all: Vec<String> = gauge.into_iter().chain(parts(readings)).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Whether the engine has caught up (gauge at most 1), or the debt's trend and the time left.
pub(super) fn trend(gauge: f64, slope_per_s: Option<f64>) -> String {
    if gauge <= 1.0 {
        return "caught up".to_owned();
    }
    let slope = slope_per_s.filter(|slope| slope.abs() * 1_000.0 >= gauge);
    match slope {
        Some(slope) if slope < 0.0 => {
            let left = (gauge - 1.0) / -slope;
            format!("falling by {}/s, about {} left", short(-slope), seconds(left.ceil()))
        }
        Some(slope) => format!("growing by {}/s", short(slope)),
        None if slope_per_s.is_some() => "behind, level".to_owned(),
        None => "behind".to_owned(),
    }
}

pub(super) fn seconds(seconds: f64) -> String {
    Nanoseconds::from_secs_f64((seconds * 10.0).round() / 10.0).to_string()
}

/// `dirty pages 5.6 %`; none for other readings.
pub(super) fn part(name: &str, value: f64) -> Option<String> {
    let is_part = |one: &&Reading| one.topic == Topic::Debt && one.id != known::DEBT_GAUGE;
    let reading = registry().find(name).filter(is_part)?;
    Some(format!("{} {}", reading.title, with_unit(value, &reading.unit)))
}

fn parts(readings: &BTreeMap<String, f64>) -> impl Iterator<Item = String> {
    readings.iter().filter_map(|(name, value)| part(name, *value))
}

/// With the unit if it is short.
pub(crate) fn with_unit(value: f64, unit: &Unit) -> String {
    let unit = match unit {
        Unit::PerSecond => "/s",
        Unit::Percent => " %",
        Unit::Bytes => "B",
        Unit::Milliseconds => " ms",
        _ => "",
    };
    format!("{}{unit}", short(value))
}

/// The debt by part, and its trend. No verdict: what an idle server defers is its own choice.
pub(crate) fn deferred(latest: &BTreeMap<String, f64>, slope_per_s: Option<f64>) -> Option<String> {
    let parts: Vec<String> = parts(latest).collect();
    let trend = latest.get(known::DEBT_GAUGE).and_then(|gauge| match trend(*gauge, slope_per_s) {
        trend if trend.starts_with("growing") => Some(", growing"),
        trend if trend.starts_with("falling") => Some(", falling"),
        _ => None,
    });
    (!parts.is_empty()).then(|| parts.join(", ") + trend.unwrap_or_default())
}

pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 1e12 => format!("{:.2}T", value / 1e12),
        _ if size >= 1e9 => format!("{:.2}G", value / 1e9),
        _ if size >= 1e6 => format!("{:.2}M", value / 1e6),
        _ if size >= 1e4 => format!("{:.1}k", value / 1e3),
        _ if size < 0.000_5 => "0".to_owned(),
        _ if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let check = |value: f64, expected: &str| assert_eq!(short(value), expected);
        check(0.0, "0");
        check(0.1234, "0.123");
        check(0.000_06, "0");
        check(7.0, "7");
        check(12.34, "12.3");
        check(123.4, "123");
        check(12_345.0, "12.3k");
        check(1.5e7, "15.00M");
        check(2e9, "2.00G");
    }

    #[test]
    fn the_way_of_a_debt_is_reported() {
        let check = |gauge, slope, expected: &str| assert_eq!(trend(gauge, slope), expected);
        check(0.4, Some(1.0), "caught up");
        check(4.0, None, "behind");
        check(4.0, Some(0.001), "behind, level");
        check(4.0, Some(0.5), "growing by 0.500/s");
        check(4.0, Some(-0.5), "falling by 0.500/s, about 6 s left");
    }

    #[test]
    fn deferred_work_is_reported_without_a_verdict() {
        let check = |parts: &[(&str, f64)], slope: Option<f64>, expected: &str| {
            let readings = parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            assert_eq!(deferred(&readings, slope).unwrap_or_default(), expected);
        };
        // An idle MariaDB with default settings.
        let idle = [("debt.gauge", 5.6), ("debt.dirty_pages_percent", 5.6)];
        check(&idle, Some(0.0), "dirty pages 5.6 %");
        check(&idle, Some(0.5), "dirty pages 5.6 %, growing");
        check(&[("debt.memtable_bytes", 2e6)], None, "memtable 2.00MB");
        check(&[("debt.gauge", 5.6)], None, "");
    }

    #[test]
    fn a_step_is_reported_in_lines() {
        let mut view = LoadView::default();
        assert_eq!(view.lines(2), Vec::<String>::new());
        view.push(100.0, 1500.0);
        view.push(300.0, 2500.0);
        let values = [
            ("server.cpu_s_per_s", 1.2),
            ("rest.cpu_s_per_s", 0.05),
            ("debt.gauge", 3.0),
            ("debt.history_list_length", 12_000.0),
        ];
        view.set_readings(&values.map(|(name, value)| (name.to_owned(), value)).into());
        let lines = view.lines(2).join("\n");
        let expected = "  throughput         300 tx/s  ▃█  mean 200\n  p95                  2.5 \
                        ms  ▅█\n  CPU         server 1.20, other processes 0.05 of 2 \
                        CPUs\n  backlog     3× the caught-up level (behind), history list length \
                        12.0k";
        assert_eq!(lines, expected);
    }
}
