//! The members of a trial's deployment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ServerFacts;

/// One part of a deployment: a server, a router, or what stands in for one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberFacts {
    /// Its name, unique in the trial.
    pub name: String,
    pub role: MemberRole,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
    /// Where its data live, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceFacts>,
    /// The host on which an agent has started it; none if it was the machine that ran the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<MemberHost>,
    /// What its server says of itself. Empty in a summary for the primary member, whose facts are the
    /// trial's `server`; and for a member that did not come up.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub server: ServerFacts,
}

/// A host on which an agent has started a member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberHost {
    /// What the study calls it; empty if the member has its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What the machine calls itself.
    pub machine: String,
    /// The version of Dyno there.
    pub dyno: String,
    /// CPUs that the agent may use.
    pub cpus: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// The network between it and the machine that ran the study, before any load; none if it could not be
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFacts>,
}

/// The network between a machine and a server, before any load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkFacts {
    /// Median time to open a connection, which takes one round trip, in microseconds.
    pub round_trip_us: f64,
    pub round_trip_least_us: f64,
    /// Bytes per second of a long answer of the server's; none if there was no such answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceFacts {
    /// What shapes how files lie on it: `folder`, or a volume with its properties.
    pub kind: String,
    pub path: String,
    /// `ext4`; none if the kernel did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// `/dev/sda1`; none if the kernel did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Options of the mount and of the filesystem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
    /// Whether its disk turns; none if there is no disk, or the kernel did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_rotational: Option<bool>,
    /// `write back` if a sync had to flush the disk's own cache, else `write through`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<String>,
    /// Of a loop device, the file that it shows as a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_file: Option<String>,
    /// Of a loop device, whether it goes past the page cache of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_loop_direct: Option<bool>,
    /// Whether what was synced is there after the power has failed: not in memory. None if the
    /// filesystem is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survives_power_failure: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberRole {
    /// It is what is measured, or the first of those.
    #[default]
    Primary,
    Replica,
    /// It is a node of a cluster whose first node is the primary.
    Node,
    Router,
    Shard,
    Generator,
    /// It holds data for another member.
    Store,
    OtherDatabase,
    /// A role that a later version of Dyno has given it.
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    Write,
    Read,
    /// To make, fill and audit its tables.
    Admin,
    /// What a later version of Dyno connects for.
    #[serde(other)]
    Other,
}

fn is_empty(facts: &ServerFacts) -> bool {
    *facts == ServerFacts::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_that_a_later_version_wrote() {
        let check = |text: &str, role: MemberRole, entries: &[Entry]| {
            let read: MemberFacts = serde_json::from_str(text).expect("it is a member");
            assert_eq!((read.role, read.entries.as_slice()), (role, entries), "{text}");
        };
        check(r#"{"name":"a","role":"primary"}"#, MemberRole::Primary, &[]);
        let entries = [Entry::Read, Entry::Other];
        check(
            r#"{"name":"b","role":"arbiter","entries":["read","vote"],"more":1}"#,
            MemberRole::Other,
            &entries,
        );
    }

    #[test]
    fn a_member_is_written_without_what_it_does_not_have() {
        let member = MemberFacts { name: "server".to_owned(), ..MemberFacts::default() };
        let text = serde_json::to_string(&member).expect("it is text");
        assert_eq!(text, r#"{"name":"server","role":"primary"}"#);
    }
}
