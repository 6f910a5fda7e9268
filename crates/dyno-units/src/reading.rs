//! Readings as data: unit, title, where it is shown, and what its rise is evidence of.
//!
//! A reading is one line of a table, in the file of its probe:
//!
//! ```
//! use dyno_units::reading::prelude::*;
//!
//! #[rustfmt::skip]
//! const READINGS: &[Reading] = &[
//!     reading("disk.queue", Count, "requests in flight", "requests in flight on all disks").worse().row(500),
//!     reading("disk.*.queue", Count, "requests in flight", "requests in flight on this disk").up(StallCause::Disk),
//! ];
//! assert!(READINGS[1].is_for("disk.vda.queue"));
//! ```
//!
//! A record holds the [`Reading`] of each name that was read, so that analysis and report know no
//! probe and old runs explain themselves. Fields may be added with a default, but none changed.

pub mod known;
pub mod prelude;
mod registry;
mod unit;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::metric::Text;

pub use registry::Registry;
pub use unit::Unit;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// `disk.*.queue`: a star stands for an instance (device, table, member). Empty in old records.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub id: Cow<'static, str>,
    pub unit: Unit,
    /// In a few words, for a chart or line.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub title: Cow<'static, str>,
    /// In one sentence without a full stop.
    pub text: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub topic: Topic,
    /// `None` if it is only in the table of further readings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub rise: Rise,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Place among the main rows of `dyno watch`, the most informative first.
    #[serde(skip)]
    pub row: Option<u16>,
    /// Label in a plain line of `dyno watch`.
    #[serde(skip)]
    pub words: Option<&'static str>,
    /// The id of the more general reading with which it is exported.
    #[serde(skip)]
    pub family: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    CpuMode,
    CpuGroup,
    /// What runs, what waits for a CPU, and how long.
    Load,
    Disk,
    Files,
    Memory,
    /// Pressure: the share of time in which something waited.
    Pressure,
    Debt,
    /// Devices, interfaces, members; readings of one instance stay together.
    Instance,
    /// Anything else, such as the server's own counters.
    #[default]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Chart {
    pub place: u8,
    /// Show the chart even if it never changes: "nothing was read from disk" is worth showing.
    #[serde(default)]
    pub always: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rise {
    Better,
    Worse,
    #[default]
    Neither,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Committed by the server, per second.
    Transactions,
    /// Executed by the server, per second; for servers that count no transactions.
    Statements,
    /// Of the server, in seconds.
    Uptime,
    /// The limit of the readings that are evidence of this cause.
    Limit(StallCause),
    /// All deferred work in one number.
    DebtGauge,
}

/// What the movement of a reading around a stall is evidence of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub cause: StallCause,
    #[serde(default, alias = "way")]
    pub movement: Movement,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Movement {
    /// Above its usual range.
    #[default]
    Up,
    /// Below this percentage of its usual value.
    DownTo(u8),
    /// To the value of the reading with `Role::Limit` of the same cause.
    ToLimit,
    /// To this value, which counts as the limit.
    From(u32),
}

/// What may stop or slow down a server for a moment. A moved reading is evidence, not proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StallCause {
    NotRunning,
    CheckpointLimit,
    StolenCpu,
    CpuQuota,
    WaitingForCpu,
    OtherProcesses,
    Fsync,
    Disk,
    Compaction,
    Vacuum,
    Purge,
    Checkpoint,
    Flushing,
    Locks,
    Pooler,
    Memory,
    Writing,
    Reading,
}

impl StallCause {
    pub fn text(self) -> &'static str {
        match self {
            StallCause::NotRunning => "a server that waits or is suspended",
            StallCause::CheckpointLimit => "checkpoint age at its limit",
            StallCause::StolenCpu => "CPU steal",
            StallCause::CpuQuota => "CPU throttled by a quota",
            StallCause::WaitingForCpu => "waiting for a CPU",
            StallCause::OtherProcesses => "CPU used by other processes",
            StallCause::Fsync => "fsync",
            StallCause::Disk => "a slow or throttled disk",
            StallCause::Compaction => "compaction or a write stall of the engine",
            StallCause::Vacuum => "vacuum",
            StallCause::Purge => "purge",
            StallCause::Checkpoint => "a checkpoint",
            StallCause::Flushing => "flushing",
            StallCause::Locks => "waiting for locks",
            StallCause::Pooler => "waiting in the connection pooler",
            StallCause::Memory => "page faults or memory pressure",
            StallCause::Writing => "writing to disk",
            StallCause::Reading => "reading from disk",
        }
    }
}

/// Methods add the rest. A reading whose id is made at run time is a [`Reading`] with owned texts.
pub const fn reading(id: Text, unit: Unit, title: Text, text: Text) -> Reading {
    Reading {
        id: Cow::Borrowed(id),
        unit,
        title: Cow::Borrowed(title),
        text: Cow::Borrowed(text),
        topic: Topic::Other,
        chart: None,
        rise: Rise::Neither,
        evidence: None,
        role: None,
        row: None,
        words: None,
        family: None,
    }
}

impl Reading {
    /// Places it in the table of further readings.
    pub const fn topic(mut self, topic: Topic) -> Reading {
        self.topic = topic;
        self
    }

    /// Gives it a chart, even if it never changes.
    pub const fn chart(mut self, topic: Topic, place: u8) -> Reading {
        self.topic = topic;
        self.chart = Some(Chart { place, always: true });
        self
    }

    /// Gives it a chart if it changes.
    pub const fn chart_if_moving(mut self, topic: Topic, place: u8) -> Reading {
        self.topic = topic;
        self.chart = Some(Chart { place, always: false });
        self
    }

    pub const fn better(mut self) -> Reading {
        self.rise = Rise::Better;
        self
    }

    pub const fn worse(mut self) -> Reading {
        self.rise = Rise::Worse;
        self
    }

    pub const fn up(self, cause: StallCause) -> Reading {
        self.moves(cause, Movement::Up)
    }

    pub const fn moves(mut self, cause: StallCause, movement: Movement) -> Reading {
        self.evidence = Some(Evidence { cause, movement });
        self
    }

    pub const fn role(mut self, role: Role) -> Reading {
        self.role = Some(role);
        self
    }

    pub const fn row(mut self, place: u16) -> Reading {
        self.row = Some(place);
        self
    }

    pub const fn words(mut self, words: &'static str) -> Reading {
        self.words = Some(words);
        self
    }

    pub const fn instance_of(mut self, family: &'static str) -> Reading {
        self.family = Some(family);
        self
    }

    pub fn is_for(&self, name: &str) -> bool {
        fits(&self.id, name)
    }

    pub fn family(&self) -> &str {
        self.family.unwrap_or(&self.id)
    }

    /// The group in the table of further readings: `innodb`; with the instance, `disk.vda`.
    pub fn group<'n>(&self, name: &'n str) -> &'n str {
        let whole = match (self.topic, self.id.split_once('*')) {
            (Topic::Instance, Some((_, rest))) => name.strip_suffix(rest),
            _ => None,
        };
        whole.unwrap_or_else(|| name.split_once('.').map_or("others", |(first, _)| first))
    }
}

/// A star matches one character or more.
pub fn fits(pattern: &str, name: &str) -> bool {
    instances(pattern, name).is_some()
}

/// What the stars match, the first ones as little as possible; `None` if the name does not fit.
pub fn instances<'n>(pattern: &str, name: &'n str) -> Option<Vec<&'n str>> {
    // Most of the patterns differ from a name in the first byte.
    if !pattern.starts_with('*') && pattern.as_bytes().first() != name.as_bytes().first() {
        return None;
    }
    let Some((head, rest)) = pattern.split_once('*') else {
        return (pattern == name).then(Vec::new);
    };
    let name = name.strip_prefix(head)?;
    let next = rest.split('*').next().unwrap_or_default();
    let ends = name.char_indices().skip(1).map(|(at, _)| at).chain([name.len()]);
    ends.filter(|at| *at > 0 && name[*at..].starts_with(next)).find_map(|at| {
        let mut found = vec![&name[..at]];
        found.extend(instances(rest, &name[at..])?);
        Some(found)
    })
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_interfaces_are_groups_of_their_own() {
        let check = |id: &'static str, topic: Topic, name: &str, expected: &str| {
            let reading = reading(id, Unit::Count, "t", "x").topic(topic);
            assert_eq!(reading.group(name), expected);
        };
        let instance = Topic::Instance;
        check(
            "network.*.received_bytes_per_s",
            instance,
            "network.eth0.received_bytes_per_s",
            "network.eth0",
        );
        check("disk.*.reads_per_s", instance, "disk.vda.reads_per_s", "disk.vda");
        check("innodb.rows_read_per_s", Topic::Debt, "innodb.rows_read_per_s", "innodb");
        check("load", Topic::Debt, "load", "others");
    }

    #[test]
    fn a_star_stands_for_one_character_or_more() {
        let check = |pattern: &str, name: &str, expected: Option<&[&str]>| {
            assert_eq!(instances(pattern, name).as_deref(), expected, "{pattern} {name}");
        };
        check("cpu.steal_pct", "cpu.steal_pct", Some(&[]));
        check("cpu.steal_pct", "cpu.steal_pct2", None);
        check("disk.*.queue", "disk.vda.queue", Some(&["vda"]));
        check("disk.*.queue", "disk.queue", None);
        check("disk.*.queue", "disk..queue", None);
        check("network.*.sent", "network.eth0.100.sent", Some(&["eth0.100"]));
        check("*.thread.*.cpu", "server.thread.purge.cpu", Some(&["server", "purge"]));
        check("probe.*", "probe.mine.queue", Some(&["mine.queue"]));
        check("probe.*.failures", "probe.failures.failures", Some(&["failures"]));
        check("*.cpu", "é.cpu", Some(&["é"]));
        check("*", "", None);
    }

    #[test]
    fn devices_have_groups_of_their_own() {
        let one = |id: &'static str| reading(id, Unit::Count, "x", "x");
        let check = |reading: Reading, name: &str, expected: &str| {
            assert_eq!(reading.group(name), expected, "{name}");
        };
        check(one("disk.*.queue").topic(Topic::Instance), "disk.sda.queue", "disk.sda");
        let sent = one("network.*.sent").topic(Topic::Instance);
        check(sent, "network.eth0.100.sent", "network.eth0.100");
        check(one("innodb.data.reads"), "innodb.data.reads", "innodb");
        check(one("rocksdb.level.*.files"), "rocksdb.level.L0.files", "rocksdb");
        check(one("load"), "load", "others");
    }

    #[test]
    fn a_reading_is_read_as_it_was_written() {
        let whole = reading("disk.*.x", Unit::Waiters, "title", "text")
            .chart(Topic::Disk, 3)
            .worse()
            .moves(StallCause::Disk, Movement::DownTo(70))
            .role(Role::Limit(StallCause::CheckpointLimit));
        for reading in [whole, reading("a", Unit::other("threads"), "t", "x")] {
            let text = serde_json::to_string(&reading).expect("it is written");
            assert_eq!(serde_json::from_str::<Reading>(&text).expect(&text), reading);
        }
    }

    #[test]
    fn readings_of_old_records_have_unit_and_text() {
        let old = serde_json::from_str::<Reading>(r#"{"unit":"CPU s/s","text":"x"}"#);
        let expected = reading("", Unit::Cpus, "", "x");
        assert_eq!(old.expect("it is read"), expected);
    }

    proptest::proptest! {
        #[test]
        fn no_name_makes_it_panic(pattern in "[a-cé.*]{0,8}", name in "[a-cé.]{0,12}") {
            if let Some(found) = instances(&pattern, &name) {
                let mut whole = pattern.clone();
                for instance in found {
                    whole = whole.replacen('*', instance, 1);
                }
                proptest::prop_assert_eq!(whole, name);
            }
        }
    }
}
