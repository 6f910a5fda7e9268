//! What a transaction, a statement and an inserted row cost of each resource, by process.

use serde::{Deserialize, Serialize};

use crate::Estimate;

/// What one variant used at one step, per transaction and per statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttributionFacts {
    /// Index of the variant.
    pub variant: usize,
    /// Index of the step.
    pub step: usize,
    /// Resources, in the order in which people look for them.
    pub uses: Vec<Use>,
    /// The same under the names that the Insert Benchmark's author uses, with his formulas.
    pub field_names: Vec<FieldName>,
}

/// A resource that something used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// Which: `cpu.server`, `cpu.generator`, `cpu.rest`, `cpu.machine`, `cpu.server.NAME`,
    /// `context_switches`, `reads`, `read_bytes`, `writes`, `written_bytes`, `fsyncs`,
    /// `network_received_bytes`, `network_sent_bytes`, `round_trips`.
    pub name: String,
    /// In words: `CPU of the server`.
    pub title: String,
    /// Unit of one: `µs`, `B`, or empty for a count.
    pub unit: String,
    /// Where the numbers come from, and how: `server.cpu_s_per_s × measured seconds ÷ …`.
    pub formula: String,
    /// Per second of measured time (for CPU: µs per second).
    pub per_second: Option<Estimate>,
    /// Per committed transaction.
    pub per_transaction: Option<Estimate>,
    /// Per statement: one round trip.
    pub per_statement: Option<Estimate>,
    /// Per inserted row, where kinds of transactions tell how many there were.
    pub per_inserted_row: Option<Estimate>,
    /// Why there are no numbers; none where there are.
    pub absent: Option<String>,
}

/// A figure under the name that the field knows it by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldName {
    /// `cpupq`, `rkbpq`, `wkbpi` …
    pub name: String,
    /// Its formula, in words.
    pub formula: String,
    /// Our name of the same thing: the name of a [`Use`] and per what.
    pub ours: String,
    /// Its value; none where it could not be had.
    pub value: Option<Estimate>,
}
