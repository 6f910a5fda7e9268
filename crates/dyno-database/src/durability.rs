//! How durable a confirmed commit is, as words and as an order.

/// What a power failure or system crash may do to a confirmed commit; the safest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommitSafety {
    /// Nothing: it was on disk before it was confirmed.
    EveryCommit,
    /// The last commits may be lost; earlier ones are intact.
    LastCommitsAtRisk,
    /// Commits may be lost, and the database may be damaged.
    DataAtRisk,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durability {
    /// In words: `every commit is synced`, `synced at checkpoints`, `nothing is stored`.
    pub words: String,
    /// How safe that is; none if it is not known.
    pub safety: Option<CommitSafety>,
}

impl Durability {
    pub fn every_commit() -> Durability {
        Durability::of("every commit is synced", CommitSafety::EveryCommit)
    }

    pub fn not_synced() -> Durability {
        Durability::of("not synced", CommitSafety::DataAtRisk)
    }

    pub fn last_commits_at_risk(words: &str) -> Durability {
        Durability::of(words, CommitSafety::LastCommitsAtRisk)
    }

    /// The same where a crash may leave pages half written that the server cannot repair.
    pub(crate) fn with_torn_pages(self) -> Durability {
        Durability::of(&format!("{}, a crash may tear pages", self.words), CommitSafety::DataAtRisk)
    }

    pub fn unknown() -> Durability {
        Durability { words: "unknown".to_owned(), safety: None }
    }

    pub(crate) fn of(words: &str, safety: CommitSafety) -> Durability {
        Durability { words: words.to_owned(), safety: Some(safety) }
    }
}
