//! The members of a trial's deployment.

use std::collections::BTreeMap;

use dyno_units::PlaceFacts;
use serde::{Deserialize, Serialize};

use crate::ServerFacts;

/// A server, a router, or a stand-in for one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberFacts {
    /// Unique in the trial.
    pub name: String,
    pub role: MemberRole,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
    /// `None` without data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceFacts>,
    /// Where an agent started it; `None` for the machine that ran the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<MemberHost>,
    /// Empty if it did not come up; in a summary also for the primary: see the trial's `server`.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub server: ServerFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberHost {
    /// Its name in the study; empty if it is the member's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The machine's own name.
    pub machine: String,
    /// Version of Dyno there.
    pub dyno: String,
    /// CPUs that the agent may use.
    pub cpus: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// To the machine that ran the study, before any load; `None` if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFacts>,
}

/// Between a machine and a server, before any load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkFacts {
    /// Median time to open a connection, which takes one round trip.
    pub round_trip_us: f64,
    pub round_trip_least_us: f64,
    /// Measured by a long answer of the server; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberRole {
    /// What is measured, or the first of several.
    #[default]
    Primary,
    Replica,
    /// Of a cluster, after the primary.
    Node,
    Router,
    Shard,
    Generator,
    /// Holds data for another member.
    Store,
    OtherDatabase,
    /// A role of a later version of Dyno.
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    Write,
    Read,
    /// To make, fill and audit tables.
    Admin,
    /// A use of a later version of Dyno.
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
