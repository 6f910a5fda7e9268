//! The resources, and where the record has each.

use dyno_record::StepSummary;

use dyno_units::reading::{fits, instances, known};

use super::readings::{mean_rate, mean_rate_of_all};

#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// Mean of a reading, times a factor.
    Reading(&'static str, f64),
    Sum(&'static str, &'static str),
    All(&'static str),
    /// Over engines; of each the first pattern that the record has.
    Engines(&'static [&'static [&'static str]]),
    Statements,
}

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
    ("cpu.server", "CPU of the server", "µs", Origin::Reading(known::SERVER_CPU, 1e6)),
    (
        "cpu.server.foreground",
        "CPU of the server's foreground (client) threads",
        "µs",
        Origin::Reading(known::SERVER_FOREGROUND_CPU, 1e6),
    ),
    (
        "cpu.server.background",
        "CPU of the server's background threads",
        "µs",
        Origin::Reading(known::SERVER_BACKGROUND_CPU, 1e6),
    ),
    (
        "cpu.generator",
        "CPU of the load generator",
        "µs",
        Origin::Reading(known::GENERATOR_CPU, 1e6),
    ),
    (
        "cpu.rest",
        "CPU of everything else (other programs, kernel threads, interrupts)",
        "µs",
        Origin::Reading(known::REST_CPU, 1e6),
    ),
    ("cpu.machine", "CPU of the whole machine", "µs", Origin::Reading(known::CPU_BUSY, 1e6)),
    (
        "context_switches",
        "context switches of the machine",
        "",
        Origin::Reading(known::CONTEXT_SWITCHES, 1.0),
    ),
    (
        "context_switches.server",
        "context switches of the server",
        "",
        Origin::Sum(known::SERVER_VOLUNTARY_SWITCHES, known::SERVER_INVOLUNTARY_SWITCHES),
    ),
    ("reads", "reads from all disks (whole machine)", "", Origin::Reading(known::DISK_READS, 1.0)),
    ("read_bytes", "bytes read from all disks", "B", Origin::Reading(known::DISK_READ_BYTES, 1.0)),
    ("writes", "writes to all disks", "", Origin::Reading(known::DISK_WRITES, 1.0)),
    (
        "written_bytes",
        "bytes written to all disks",
        "B",
        Origin::Reading(known::DISK_WRITE_BYTES, 1.0),
    ),
    ("reads.data", "reads from the data disk", "", Origin::Reading(known::DATA_DISK_READS, 1.0)),
    ("writes.data", "writes to the data disk", "", Origin::Reading(known::DATA_DISK_WRITES, 1.0)),
    (
        "read_bytes.server",
        "bytes read from disks by the server",
        "B",
        Origin::Reading(known::SERVER_DISK_READ_BYTES, 1.0),
    ),
    (
        "written_bytes.server",
        "bytes written to disks by the server",
        "B",
        Origin::Reading(known::SERVER_DISK_WRITE_BYTES, 1.0),
    ),
    ("fsyncs", "synchronous writes, as counted by the engine", "", Origin::Engines(FSYNCS)),
    ("flushes", "cache flushes of all disks", "", Origin::Reading(known::DISK_FLUSHES, 1.0)),
    (
        "network_received_bytes",
        "bytes received, all interfaces",
        "B",
        Origin::All(known::NETWORK_RECEIVED_BYTES),
    ),
    (
        "network_sent_bytes",
        "bytes sent, all interfaces",
        "B",
        Origin::All(known::NETWORK_SENT_BYTES),
    ),
    ("statements", "statements", "", Origin::Statements),
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
    let mut threads: Vec<(String, String)> = Vec::new();
    for name in summaries.iter().flat_map(|summary| summary.readings.keys()) {
        let Some(kind) = instances(known::SERVER_THREAD_CPU, name) else { continue };
        if threads.iter().all(|(_, known)| known != name) {
            threads.push((kind.concat(), name.clone()));
        }
    }
    let thread = |(kind, reading): (String, String)| Resource {
        title: format!("CPU of the server's threads “{kind}”"),
        name: format!("cpu.server.thread.{kind}"),
        unit: "µs",
        origin: Origin::Reading("", 1e6),
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
            Origin::Reading(reading, factor) => {
                let reading = self.reading.as_deref().unwrap_or(reading);
                let rate = mean_rate(summary, reading);
                let rate = match (rate, self.name.as_str(), summary.server_cpu_s) {
                    (Err(_), "cpu.server", Some(cpu_s)) => Ok(cpu_s / summary.measured_s),
                    (rate, ..) => rate,
                };
                Ok(rate? * factor)
            }
            Origin::Sum(a, b) => Ok(mean_rate(summary, a)? + mean_rate(summary, b)?),
            Origin::All(pattern) => mean_rate_of_all(summary, pattern),
            Origin::Engines(engines) => {
                let sum_of = |patterns: &&[&str]| {
                    patterns.iter().find_map(|pattern| mean_rate_of_all(summary, pattern).ok())
                };
                let none = || "the engine has no counter for them".to_owned();
                engines.iter().filter_map(sum_of).reduce(|a, b| a + b).ok_or_else(none)
            }
            Origin::Statements => match statements(summary) {
                0 => Err("no statements were counted".to_owned()),
                n => Ok(n as f64 / summary.measured_s),
            },
        }
    }

    pub(super) fn source(&self, summaries: &[&StepSummary]) -> String {
        match self.origin {
            Origin::Reading(reading, _) => {
                let reading = self.reading.as_deref().unwrap_or(reading);
                format!("mean of `{reading}`")
            }
            Origin::Sum(a, b) => format!("mean of `{a}` + mean of `{b}`"),
            Origin::All(pattern) => format!("sum over interfaces of the mean of `{pattern}`"),
            Origin::Engines(engines) => {
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
            Origin::Statements => "statements ÷ measured seconds".to_owned(),
        }
    }
}

/// Pipelined statements share a round trip, which no record counts.
pub(crate) fn statements(summary: &StepSummary) -> u64 {
    summary.reads + summary.writes + summary.others
}
