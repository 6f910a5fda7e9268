//! How safe a confirmed commit is: the record's words for durability, as an order.

use serde::{Deserialize, Serialize};

/// What may become of a commit that a server has confirmed, when the power fails or the operating
/// system crashes; the safest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitSafety {
    /// Nothing: it was on disk before it was confirmed.
    EveryCommit,
    /// The last commits may be lost; what came before is whole.
    LastCommitsAtRisk,
    /// Commits may be lost, and the database may be damaged.
    DataAtRisk,
}

impl CommitSafety {
    /// From the words that a record has for it (`ServerFacts::durability` in `dyno-record`, a closed
    /// list); none where it is not known.
    pub fn of(durability: &str) -> Option<CommitSafety> {
        match durability {
            "every commit is synced" => Some(CommitSafety::EveryCommit),
            "synced once a second"
            | "written at every commit, synced once a second"
            | "written and synced once a second"
            | "synced at checkpoints" => Some(CommitSafety::LastCommitsAtRisk),
            "not synced" | "every commit is synced, a crash may corrupt" => {
                Some(CommitSafety::DataAtRisk)
            }
            // PostgreSQL: `synced within three times 200ms`.
            text if text.starts_with("synced within ") => Some(CommitSafety::LastCommitsAtRisk),
            _ => None,
        }
    }

    /// In a few words, behind a variant's name.
    pub fn words(self) -> &'static str {
        match self {
            CommitSafety::EveryCommit => "every commit synced",
            CommitSafety::LastCommitsAtRisk => "last commits at risk",
            CommitSafety::DataAtRisk => "not crash-safe",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_records_have_an_order() {
        let check = |words: &str, expected: Option<CommitSafety>| {
            assert_eq!(CommitSafety::of(words), expected, "{words}");
        };
        let last = Some(CommitSafety::LastCommitsAtRisk);
        check("every commit is synced", Some(CommitSafety::EveryCommit));
        check("synced once a second", last);
        check("written at every commit, synced once a second", last);
        check("written and synced once a second", last);
        check("synced at checkpoints", last);
        check("synced within three times 200ms", last);
        check("every commit is synced, a crash may corrupt", Some(CommitSafety::DataAtRisk));
        check("not synced", Some(CommitSafety::DataAtRisk));
        check("unknown", None);
        check("", None);
        assert!(CommitSafety::EveryCommit < CommitSafety::DataAtRisk);
    }
}
