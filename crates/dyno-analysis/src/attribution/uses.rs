//! The resources, and where the record has each.

use std::collections::BTreeSet;

use dyno_record::StepSummary;

use dyno_units::reading::{fits, instances, known};

use super::readings::{mean_rate, mean_rate_of_all};

#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// The mean.
    Reading(&'static str),
    Sum(&'static str, &'static str),
    All(&'static str),
    /// Over engines; of each the first pattern that the record has.
    Engines(&'static [&'static [&'static str]]),
    Statements,
}

use Origin::{All, Engines, Reading, Statements, Sum};

#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) unit: &'static str,
    pub(super) origin: Origin,
    /// A reading that only some records have.
    pub(super) reading: Option<String>,
}

/// Synchronous writes by engine; a server can have several. PostgreSQL counts WAL apart from other
/// files (from 16), and all together from 18.
const FSYNCS: &[&[&str]] = &[
    &[known::INNODB_OS_FSYNCS, known::INNODB_DATA_FSYNCS],
    &[known::ROCKSDB_WAL_SYNCS],
    &[known::PG_WAL_SYNCS],
    &[known::PG_IO_FSYNCS, known::PG_BACKEND_FSYNCS],
];

/// Asked of every record, in the order in which readers look for them.
const RESOURCES: [(&str, &str, &str, Origin); 21] = [
    ("cpu.server", "CPU of the server", "µs", Reading(known::SERVER_CPU)),
    (
        "cpu.server.foreground",
        "CPU of the server's foreground (client) threads",
        "µs",
        Reading(known::SERVER_FOREGROUND_CPU),
    ),
    (
        "cpu.server.background",
        "CPU of the server's background threads",
        "µs",
        Reading(known::SERVER_BACKGROUND_CPU),
    ),
    ("cpu.generator", "CPU of the load generator", "µs", Reading(known::GENERATOR_CPU)),
    (
        "cpu.rest",
        "CPU of everything else (other programs, kernel threads, interrupts)",
        "µs",
        Reading(known::REST_CPU),
    ),
    ("cpu.machine", "CPU of the whole machine", "µs", Reading(known::CPU_BUSY)),
    ("context_switches", "context switches of the machine", "", Reading(known::CONTEXT_SWITCHES)),
    (
        "context_switches.server",
        "context switches of the server",
        "",
        Sum(known::SERVER_VOLUNTARY_SWITCHES, known::SERVER_INVOLUNTARY_SWITCHES),
    ),
    ("reads", "reads from all disks (whole machine)", "", Reading(known::DISK_READS)),
    ("read_bytes", "bytes read from all disks", "B", Reading(known::DISK_READ_BYTES)),
    ("writes", "writes to all disks", "", Reading(known::DISK_WRITES)),
    ("written_bytes", "bytes written to all disks", "B", Reading(known::DISK_WRITE_BYTES)),
    ("reads.data", "reads from the data disk", "", Reading(known::DATA_DISK_READS)),
    ("writes.data", "writes to the data disk", "", Reading(known::DATA_DISK_WRITES)),
    (
        "read_bytes.server",
        "bytes read from disks by the server",
        "B",
        Reading(known::SERVER_DISK_READ_BYTES),
    ),
    (
        "written_bytes.server",
        "bytes written to disks by the server",
        "B",
        Reading(known::SERVER_DISK_WRITE_BYTES),
    ),
    ("fsyncs", "synchronous writes, as counted by the engine", "", Engines(FSYNCS)),
    ("flushes", "cache flushes of all disks", "", Reading(known::DISK_FLUSHES)),
    (
        "network_received_bytes",
        "bytes received, all interfaces",
        "B",
        All(known::NETWORK_RECEIVED_BYTES),
    ),
    ("network_sent_bytes", "bytes sent, all interfaces", "B", All(known::NETWORK_SENT_BYTES)),
    ("statements", "statements", "", Statements),
];

pub(super) fn resources(summaries: &[&StepSummary]) -> Vec<Resource> {
    let fixed = |(name, title, unit, origin): (&str, &str, &'static str, Origin)| Resource {
        name: name.to_owned(),
        title: title.to_owned(),
        unit,
        origin,
        reading: None,
    };
    let mut all: Vec<Resource> = RESOURCES.into_iter().map(fixed).collect();
    let (mut threads, mut known_names) = (Vec::<(String, String)>::new(), BTreeSet::new());
    for name in summaries.iter().flat_map(|summary| summary.readings.keys()) {
        let Some(kind) = instances(known::SERVER_THREAD_CPU, name) else { continue };
        if known_names.insert(name) {
            threads.push((kind.concat(), name.clone()));
        }
    }
    let thread = |(kind, reading): (String, String)| Resource {
        title: format!("CPU of the server's threads “{kind}”"),
        name: format!("cpu.server.thread.{kind}"),
        unit: "µs",
        origin: Reading(""),
        reading: Some(reading),
    };
    let behind = all.iter().position(|r| r.name == "cpu.generator").unwrap_or(all.len());
    threads.sort();
    all.splice(behind..behind, threads.into_iter().map(thread));
    all
}

impl Resource {
    /// In its unit.
    pub(super) fn per_second(&self, summary: &StepSummary) -> Result<f64, String> {
        match self.origin {
            Reading(reading) => {
                let rate = mean_rate(summary, self.reading.as_deref().unwrap_or(reading));
                let rate = match (rate, self.name.as_str(), summary.server_cpu_s) {
                    (Err(_), "cpu.server", Some(cpu_s)) => cpu_s / summary.measured_s,
                    (rate, ..) => rate?,
                };
                Ok(if self.unit == "µs" { rate * 1e6 } else { rate })
            }
            Sum(a, b) => Ok(mean_rate(summary, a)? + mean_rate(summary, b)?),
            All(pattern) => mean_rate_of_all(summary, pattern),
            Engines(engines) => {
                let sum_of = |patterns: &&[&str]| {
                    patterns.iter().find_map(|pattern| mean_rate_of_all(summary, pattern).ok())
                };
                let none = || "the engine has no counter for them".to_owned();
                engines.iter().filter_map(sum_of).reduce(|a, b| a + b).ok_or_else(none)
            }
            Statements => match statements(summary) {
                0 => Err("no statements were counted".to_owned()),
                n => Ok(n as f64 / summary.measured_s),
            },
        }
    }

    pub(super) fn source(&self, summaries: &[&StepSummary]) -> String {
        match self.origin {
            Reading(reading) => {
                let reading = self.reading.as_deref().unwrap_or(reading);
                format!("mean of `{reading}`")
            }
            Sum(a, b) => format!("mean of `{a}` + mean of `{b}`"),
            All(pattern) => format!("sum over interfaces of the mean of `{pattern}`"),
            Engines(engines) => {
                let has = |pattern: &&&str| {
                    let names = summaries.iter().flat_map(|s| s.readings.keys());
                    names.into_iter().any(|name| fits(pattern, name))
                };
                let found = engines.iter().filter_map(|patterns| patterns.iter().find(has));
                let means: Vec<String> =
                    found.map(|pattern| format!("mean of `{pattern}`")).collect();
                match means.is_empty() {
                    true => "mean of a reading of the server".to_owned(),
                    false => means.join(" + "),
                }
            }
            Statements => "statements ÷ measured seconds".to_owned(),
        }
    }
}

/// Pipelined statements share a round trip, which no record counts.
pub(crate) fn statements(summary: &StepSummary) -> u64 {
    summary.reads + summary.writes + summary.others
}
