//! Names and formulas of the field: the columns of the Insert Benchmark author's reports.

use dyno_record::StepSummary;
use dyno_units::reading::known;

use crate::cells::{estimate_resource, largest};
use crate::metrics::longest_response_us;
use crate::statistics::Rule;

use super::FieldName;
use super::readings::{mean_rate, measured_values};
use super::work::Work;

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * MIB;

/// Of this column, the largest of all trials counts.
const LONGEST: &str = "maxop";

struct Column {
    name: &'static str,
    unit: &'static str,
    formula: &'static str,
    ours: &'static str,
    value: fn(&StepSummary, &Work, f64) -> Option<f64>,
}

fn rate(summary: &StepSummary, reading: &str) -> Option<f64> {
    mean_rate(summary, reading).ok()
}

fn per(value: Option<f64>, of: f64) -> Option<f64> {
    value.filter(|_| of > 0.0).map(|value| value / of)
}

fn most(summary: &StepSummary, reading: &str) -> Option<f64> {
    measured_values(summary, reading).into_iter().map(|(_, value)| value).reduce(f64::max)
}

fn last(summary: &StepSummary, reading: &str) -> Option<f64> {
    measured_values(summary, reading).last().map(|(_, value)| *value)
}

/// With indexes, however files divide them.
fn tables(summary: &StepSummary) -> Option<f64> {
    let parts =
        [known::DATA_TABLES_BYTES, known::DATA_INDEXES_BYTES, known::DATA_TABLES_AND_INDEXES_BYTES];
    parts.iter().filter_map(|name| last(summary, name)).reduce(|a, b| a + b)
}

/// In seconds.
fn longest(summary: &StepSummary) -> Option<f64> {
    longest_response_us(summary).map(|us| us / 1e6)
}

/// Q counts queries if any, else inserted rows; without inserts as a kind, transactions.
const COLUMNS: &[Column] = &[
    Column {
        name: "ips",
        unit: "1/s",
        formula: "inserted rows per second",
        ours: "rows per second of insert transactions",
        value: |_, work, _| work.inserted_rows,
    },
    Column {
        name: "qps",
        unit: "1/s",
        formula: "queries per second",
        ours: "throughput of the query transactions",
        value: |_, work, _| work.queries,
    },
    Column {
        name: "rps",
        unit: "1/s",
        formula: "disk reads per second",
        ours: "reads, per second",
        value: |s, _, _| rate(s, known::DISK_READS),
    },
    Column {
        name: "rmbps",
        unit: "MiB/s",
        formula: "MiB read per second",
        ours: "read_bytes, per second",
        value: |s, _, _| per(rate(s, known::DISK_READ_BYTES), MIB),
    },
    Column {
        name: "wps",
        unit: "1/s",
        formula: "disk writes per second",
        ours: "writes, per second",
        value: |s, _, _| rate(s, known::DISK_WRITES),
    },
    Column {
        name: "wmbps",
        unit: "MiB/s",
        formula: "MiB written per second",
        ours: "written_bytes, per second",
        value: |s, _, _| per(rate(s, known::DISK_WRITE_BYTES), MIB),
    },
    Column {
        name: "rpq",
        unit: "",
        formula: "rps ÷ Q",
        ours: "reads, per operation",
        value: |s, work, _| per(rate(s, known::DISK_READS), work.operations()),
    },
    Column {
        name: "rkbpq",
        unit: "KiB",
        formula: "KiB read per second ÷ Q",
        ours: "read_bytes, per operation",
        value: |s, work, _| per(rate(s, known::DISK_READ_BYTES), 1024.0 * work.operations()),
    },
    Column {
        name: "wpi",
        unit: "",
        formula: "wps ÷ ips, even in steps with queries",
        ours: "writes, per inserted row",
        value: |s, work, _| per(rate(s, known::DISK_WRITES), work.inserted_rows?),
    },
    Column {
        name: "wkbpi",
        unit: "KiB",
        formula: "KiB written per second ÷ ips",
        ours: "written_bytes, per inserted row",
        value: |s, work, _| per(rate(s, known::DISK_WRITE_BYTES), 1024.0 * work.inserted_rows?),
    },
    Column {
        name: "wkbpq",
        unit: "KiB",
        formula: "KiB written per second ÷ Q",
        ours: "written_bytes, per operation",
        value: |s, work, _| per(rate(s, known::DISK_WRITE_BYTES), 1024.0 * work.operations()),
    },
    Column {
        name: "csps",
        unit: "1/s",
        formula: "context switches of the machine per second",
        ours: "context_switches, per second",
        value: |s, _, _| rate(s, known::CONTEXT_SWITCHES),
    },
    Column {
        name: "cpups",
        unit: crate::numbers::PERCENT_LEVEL,
        formula: "user + system time, percent of all CPUs",
        ours: "the reading cpu.busy_pct (with low priority and interrupts)",
        value: |s, _, _| rate(s, known::CPU_BUSY_PCT),
    },
    Column {
        name: "cspq",
        unit: "",
        formula: "csps ÷ Q",
        ours: "context_switches, per operation",
        value: |s, work, _| per(rate(s, known::CONTEXT_SWITCHES), work.operations()),
    },
    Column {
        name: "cpupq",
        unit: "µs",
        formula: "cpups ÷ 100 × CPUs × 10⁶ ÷ Q: server, generator and everything else",
        ours: "cpu.machine, per operation",
        value: |s, work, cpus| {
            let busy = rate(s, known::CPU_BUSY)
                .or_else(|| rate(s, known::CPU_BUSY_PCT).map(|pct| pct / 100.0 * cpus));
            per(busy.map(|seconds| seconds * 1e6), work.operations())
        },
    },
    Column {
        name: "ccpupq",
        unit: "µs",
        formula: "CPU of the client ÷ Q (the Insert Benchmark's author no longer publishes it)",
        ours: "cpu.generator, per operation",
        value: |s, work, _| {
            let busy = rate(s, known::GENERATOR_CPU).map(|seconds| seconds * 1e6);
            per(busy, work.operations())
        },
    },
    Column {
        name: "dbgb1",
        unit: "GiB",
        formula: "size of the tables and indexes at the end of the measurement",
        ours: "the last data.tables_bytes + data.indexes_bytes + data.tables_and_indexes_bytes",
        value: |s, _, _| per(tables(s), GIB),
    },
    Column {
        name: "dbgb2",
        unit: "GiB",
        formula: "size of all data files at the end of the measurement, logs included",
        ours: "the last data.bytes",
        value: |s, _, _| per(last(s, known::DATA_BYTES), GIB),
    },
    Column {
        name: "rss",
        unit: "GiB",
        formula: "largest resident memory of the server",
        ours: "the largest server.rss_bytes",
        value: |s, _, _| per(most(s, known::SERVER_RSS), GIB),
    },
    Column {
        name: LONGEST,
        unit: "s",
        formula: "longest response time over all clients, from due time to completion (the Insert \
                  Benchmark times the statement only)",
        ours: "response_max",
        value: |s, _, _| longest(s),
    },
];

pub(crate) fn field_names(summaries: &[&StepSummary], cpus: u32, rule: &Rule) -> Vec<FieldName> {
    let works: Vec<Work> = summaries.iter().map(|summary| Work::of(summary)).collect();
    let one = |column: &Column| {
        let both = summaries.iter().zip(&works);
        let values: Vec<f64> = both
            .filter_map(|(summary, work)| (column.value)(summary, work, f64::from(cpus)))
            .filter(|value| value.is_finite())
            .collect();
        FieldName {
            name: column.name.to_owned(),
            formula: column.formula.to_owned(),
            ours: column.ours.to_owned(),
            value: (!values.is_empty()).then(|| {
                if column.name == LONGEST {
                    return largest(values, column.unit);
                }
                let mut value = estimate_resource(values, column.unit, rule.confidence);
                if column.unit == crate::numbers::PERCENT_LEVEL {
                    // At most all CPUs.
                    value.high = value.high.map(|high| high.min(100.0));
                }
                value
            }),
        }
    };
    COLUMNS.iter().map(one).collect()
}
