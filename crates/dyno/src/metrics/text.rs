//! OpenMetrics text (OpenMetrics 1.0, "Text format").
//!
//! Every reading is a gauge. The family comes from the registered id; what its star matches is the
//! label `of`, so that all disks are one family.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use dyno_record::KindSecond;
use dyno_units::Unit;
use dyno_units::reading::instances;

use crate::latest::Latest;
use crate::readings::registry;

#[derive(Default)]
pub(super) struct Exposed {
    trial: u32,
    variant: String,
    /// None while there is no load.
    load: Option<(String, Vec<KindSecond>)>,
    readings: Latest,
    /// By outcome.
    ended: BTreeMap<&'static str, u64>,
}

impl Exposed {
    pub(super) fn begin_trial(&mut self, trial: u32, variant: &str) {
        (self.trial, self.variant) = (trial, variant.to_owned());
        self.load = None;
        self.readings.clear();
    }

    pub(super) fn set_load(&mut self, step: &str, kinds: &[KindSecond]) {
        self.load = Some((step.to_owned(), kinds.to_vec()));
    }

    pub(super) fn end_load(&mut self) {
        self.load = None;
    }

    /// Overdue readings are no longer exposed.
    pub(super) fn set_readings(&mut self, at_ns: u64, values: &BTreeMap<String, f64>) {
        self.readings.take(at_ns, values);
    }

    pub(super) fn count_trial(&mut self, how: &'static str) {
        *self.ended.entry(how).or_default() += 1;
        self.load = None;
    }

    fn families(&self) -> BTreeMap<String, Family> {
        let mut all = BTreeMap::new();
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let mut put = |name: &str, kind, unit, help: &str, samples| {
            all.insert(name.to_owned(), Family { kind, unit, help: help.to_owned(), samples });
        };
        put("dyno", "info", "", "the program", vec![("_info", version, 1.0)]);
        if self.trial > 0 {
            let labels = vec![("variant", self.variant.clone())];
            let number = vec![("", labels, f64::from(self.trial))];
            put("dyno_trial", "gauge", "", "number of the current trial", number);
        }
        let ended: Vec<_> = self
            .ended
            .iter()
            .map(|(how, n)| ("_total", vec![("outcome", (*how).to_owned())], *n as f64))
            .collect();
        if !ended.is_empty() {
            put("dyno_trials_ended", "counter", "", "trials that have ended", ended);
        }
        if let Some((step, kinds)) = &self.load {
            let labels = |kind: &KindSecond| {
                let kind = ("kind", kind.name.clone());
                vec![("variant", self.variant.clone()), ("step", step.clone()), kind]
            };
            let of = |value: fn(&KindSecond) -> f64| {
                kinds.iter().map(|kind| ("", labels(kind), value(kind))).collect::<Vec<_>>()
            };
            let help = "committed transactions in the most recent second";
            put("dyno_throughput_per_s", "gauge", "per_s", help, of(|kind| kind.throughput));
            let help = "attempts that did not commit, in the most recent second";
            put("dyno_errors_per_s", "gauge", "per_s", help, of(|kind| kind.errors));
            let help = "response times (done - due) during the most recent second";
            let times = kinds.iter().flat_map(|kind| {
                kind.response_us.iter().map(move |(quantile, us)| {
                    let mut labels = labels(kind);
                    labels.push(("quantile", quantile.to_string()));
                    ("", labels, us / 1e6)
                })
            });
            put("dyno_response_time_seconds", "summary", "seconds", help, times.collect());
        }
        self.add_readings(&mut all);
        all
    }

    fn add_readings(&self, all: &mut BTreeMap<String, Family>) {
        for (name, value) in &self.readings.current() {
            let reading = registry().find(name);
            let id = reading.map_or(name.as_str(), |reading| reading.family());
            let of = instances(id, name).unwrap_or_default().join(".");
            let labels = if of.is_empty() { Vec::new() } else { vec![("of", of)] };
            let family_name = family_name(id);
            let family = all.entry(family_name.clone()).or_insert_with(|| {
                // The general description, not that of this instance.
                let general = registry().iter().find(|reading| reading.id == id);
                Family {
                    kind: "gauge",
                    unit: general.map_or("", |reading| unit(&family_name, &reading.unit)),
                    help: general.map_or_else(String::new, |one| match one.unit.code() {
                        "" => one.text.to_string(),
                        unit => format!("{} ({unit})", one.text),
                    }),
                    samples: Vec::new(),
                }
            });
            family.samples.push(("", labels, *value));
        }
    }
}

struct Family {
    kind: &'static str,
    unit: &'static str,
    help: String,
    /// Suffix of the name, labels, value.
    samples: Vec<(&'static str, Labels, f64)>,
}

type Labels = Vec<(&'static str, String)>;

impl fmt::Display for Exposed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, family) in self.families() {
            family.write(&name, out)?;
        }
        out.write_str("# EOF\n")
    }
}

impl Family {
    fn write(&self, name: &str, out: &mut impl Write) -> fmt::Result {
        writeln!(out, "# TYPE {name} {}", self.kind)?;
        if !self.unit.is_empty() {
            writeln!(out, "# UNIT {name} {}", self.unit)?;
        }
        if !self.help.is_empty() {
            writeln!(out, "# HELP {name} {}", escaped(&self.help))?;
        }
        for (suffix, labels, value) in &self.samples {
            write!(out, "{name}{suffix}")?;
            for (idx, (label, text)) in labels.iter().enumerate() {
                let open = if idx == 0 { '{' } else { ',' };
                write!(out, "{open}{label}=\"{}\"", escaped(text))?;
            }
            writeln!(out, "{} {value}", if labels.is_empty() { "" } else { "}" })?;
        }
        Ok(())
    }
}

/// `disk.*.queue` is `dyno_disk_each_queue`, `*.cpu_s_per_s` is `dyno_processes_cpu_s_per_s`: a
/// total has another family than its parts.
fn family_name(pattern: &str) -> String {
    let mut name = "dyno_".to_owned();
    for (idx, part) in pattern.split('*').enumerate() {
        if idx > 0 {
            name.push_str(if name == "dyno_" { "processes" } else { "each" });
        }
        name.extend(part.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
    }
    name
}

/// OpenMetrics requires that a family's name end with its unit; else there is none.
fn unit(family: &str, unit: &Unit) -> &'static str {
    let words: &[&'static str] = match unit {
        Unit::PerSecond => &["per_s"],
        Unit::Bytes => &["bytes"],
        Unit::BytesPerSecond => &["bytes_per_s"],
        Unit::Percent => &["pct", "percent"],
        Unit::Seconds => &["s"],
        Unit::Milliseconds => &["ms"],
        Unit::Cpus | Unit::Waiters | Unit::AtATime => &["s_per_s"],
        // The mean number of waiting threads.
        Unit::Other(name) if name == "threads" => &["s_per_s"],
        _ => &[],
    };
    let is_end = |word: &&&str| family.strip_suffix(**word).is_some_and(|head| head.ends_with('_'));
    words.iter().find(is_end).copied().unwrap_or_default()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str, name: &str) -> Option<String> {
        let found = instances(pattern, name)?;
        (!found.is_empty()).then(|| found.join("."))
    }

    #[test]
    fn names_and_labels_follow_from_patterns() {
        let check = |pattern: &str, name: &str, family: &str, label: Option<&str>| {
            assert_eq!(family_name(pattern), family);
            assert_eq!(of(pattern, name).as_deref(), label, "{name}");
        };
        check("cpu.busy_pct", "cpu.busy_pct", "dyno_cpu_busy_pct", None);
        check("disk.*.queue", "disk.vda.queue", "dyno_disk_each_queue", Some("vda"));
        let family = "dyno_network_each_sent_bytes_per_s";
        let name = "network.eth0.100.sent_bytes_per_s";
        check("network.*.sent_bytes_per_s", name, family, Some("eth0.100"));
        let family = "dyno_processes_thread_each_cpu_s_per_s";
        let name = "server.thread.purge.cpu_s_per_s";
        check("*.thread.*.cpu_s_per_s", name, family, Some("server.purge"));
        check("probe.*", "probe.mine.queue", "dyno_probe_each", Some("mine.queue"));
    }

    #[test]
    fn a_unit_is_the_end_of_the_name() {
        let check = |id: &str, expected: &str| {
            let reading = registry().find(id).expect(id);
            assert_eq!(unit(&family_name(id), &reading.unit), expected, "{id}");
        };
        check("disk.*.read_bytes_per_s", "bytes_per_s");
        check("rest.cpu_s_per_s", "s_per_s");
        check("cpu.forks_per_s", "per_s");
        check("memory.free_bytes", "bytes");
        check("disk.*.await_ms", "ms");
        check("innodb.pool_hit_percent", "percent");
        check("cpu.running", "");
        check("mysql.threads_running", "");
    }

    #[test]
    fn the_text_is_as_the_format_wants_it() {
        let mut exposed = Exposed::default();
        exposed.begin_trial(3, "size=\"big\"");
        exposed.set_readings(1, &BTreeMap::from([("load.avg1".into(), 7.0)]));
        exposed.set_readings(200_000_000_000, &BTreeMap::from([("disk.vda.queue".into(), 1.5)]));
        exposed.set_load(
            "8 clients",
            &[KindSecond {
                name: "read".into(),
                throughput: 12.0,
                errors: 0.0,
                response_us: vec![(0.5, 1500.0)],
            }],
        );
        exposed.set_readings(200_000_000_001, &BTreeMap::from([("un.known".into(), 1.0)]));
        let text = exposed.to_string();
        let labels = "variant=\"size=\\\"big\\\"\",step=\"8 clients\",kind=\"read\"";
        for line in [
            "# TYPE dyno info".to_owned(),
            "# TYPE dyno_disk_each_queue gauge".to_owned(),
            "dyno_disk_each_queue{of=\"vda\"} 1.5".to_owned(),
            "# UNIT dyno_response_time_seconds seconds".to_owned(),
            format!("dyno_response_time_seconds{{{labels},quantile=\"0.5\"}} 0.0015"),
            format!("dyno_throughput_per_s{{{labels}}} 12"),
            "dyno_un_known 1".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n") && !text.contains("load_avg"), "{text}");
        exposed.count_trial("finished");
        let text = exposed.to_string();
        assert!(text.contains("dyno_trials_ended_total{outcome=\"finished\"} 1\n"), "{text}");
        assert!(!text.contains("dyno_throughput"), "{text}");
    }
}
