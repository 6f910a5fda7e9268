//! What a study asks of its data. The question decides what the answer says first, and nothing that is measured.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Which variant is best in the main metric?
    Best,
    /// Is any variant worse than its baseline?
    Worse,
    /// Is any variant different from its baseline?
    Same,
    /// How does throughput grow with clients, or with the number of members that is varied?
    Scales,
    /// Does throughput grow faster than the number that is varied?
    Linear,
    /// From how many clients on does response time turn up?
    Saturates,
    /// How much load does each variant carry within the study's limits?
    Limit,
    /// What does a million transactions cost?
    Cost,
    /// How often is the data disk read for a transaction?
    Reads,
    /// Which variant takes the least disk space?
    Space,
    /// What does it cost to sync every commit?
    Durability,
    /// How long do snapshots and clones of a volume take?
    Snapshots,
    /// How much work has the engine put off at the end?
    Backlog,
    /// Does what runs beside the load hold it up?
    Blocks,
    /// For how long is nothing committed after a fault, and when has the load recovered?
    Recovers,
    /// How much does throughput vary while it is measured?
    Steady,
}

impl Question {
    pub const ALL: [(&'static str, Question); 16] = [
        ("best", Question::Best),
        ("worse", Question::Worse),
        ("same", Question::Same),
        ("scales", Question::Scales),
        ("linear", Question::Linear),
        ("saturates", Question::Saturates),
        ("limit", Question::Limit),
        ("cost", Question::Cost),
        ("reads", Question::Reads),
        ("space", Question::Space),
        ("durability", Question::Durability),
        ("snapshots", Question::Snapshots),
        ("backlog", Question::Backlog),
        ("blocks", Question::Blocks),
        ("recovers", Question::Recovers),
        ("steady", Question::Steady),
    ];

    pub const WORDS: [&'static str; 16] = {
        let mut words = [""; 16];
        let mut at = 0;
        while at < words.len() {
            words[at] = Question::ALL[at].0;
            at += 1;
        }
        words
    };

    pub fn word(self) -> &'static str {
        Question::ALL.iter().find(|(_, one)| *one == self).map_or("", |(word, _)| word)
    }
}

/// What tells a study's question where the study does not say it.
#[derive(Clone, Debug, Default)]
pub struct Varied {
    pub faults: bool,
    /// Variants with a job are compared with variants without one.
    pub jobs: bool,
    /// Variants on a volume that is slowed down for a while, again and again, with variants on one that is not.
    pub dips: bool,
    /// Variants of one product differ in settings that decide what a commit survives.
    pub durability: bool,
    pub prices: bool,
    /// The factor of which the levels are numbers of servers, shards, nodes or replicas.
    pub members: Option<String>,
    pub limits: bool,
    pub versions: bool,
}

impl Varied {
    /// Whether the levels of a factor are numbers of members.
    pub fn is_of_members<'a>(factor: &str, levels: impl Iterator<Item = &'a str>) -> bool {
        let levels: Vec<&str> = levels.collect();
        let is_number = |level: &&str| level.parse::<u64>().is_ok();
        Varied::counts_members(factor) && levels.len() > 1 && levels.iter().all(is_number)
    }

    /// Whether a factor is a number of members by its name, with or without what stands before the last dot.
    pub fn counts_members(factor: &str) -> bool {
        let name = factor.rsplit('.').next().unwrap_or(factor);
        matches!(name, "servers" | "sql_servers" | "shards" | "nodes" | "replicas")
    }

    pub fn question(&self) -> Question {
        match () {
            () if self.faults => Question::Recovers,
            () if self.jobs => Question::Blocks,
            () if self.dips => Question::Steady,
            () if self.durability => Question::Durability,
            () if self.prices => Question::Cost,
            () if self.members.is_some() => Question::Scales,
            () if self.limits => Question::Limit,
            () if self.versions => Question::Worse,
            () => Question::Best,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_has_the_word_that_records_have_for_it() {
        for (word, question) in Question::ALL {
            assert_eq!(question.word(), word);
            assert_eq!(serde_json::to_value(question).unwrap(), word);
        }
        assert_eq!(Question::WORDS[0], "best");
    }

    #[test]
    fn what_is_varied_tells_the_question() {
        let check = |change: fn(&mut Varied), expected: Question| {
            let mut varied = Varied::default();
            change(&mut varied);
            assert_eq!(varied.question(), expected);
        };
        check(|_| {}, Question::Best);
        check(|one| one.versions = true, Question::Worse);
        check(|one| one.limits = true, Question::Limit);
        let servers = |one: &mut Varied| {
            one.members = Some("database.servers".to_owned());
            one.limits = true;
        };
        check(servers, Question::Scales);
        check(|one| one.prices = true, Question::Cost);
        check(|one| (one.prices, one.durability) = (true, true), Question::Durability);
        check(|one| one.jobs = true, Question::Blocks);
        check(|one| (one.dips, one.versions) = (true, true), Question::Steady);
        check(|one| (one.faults, one.durability) = (true, true), Question::Recovers);
        assert!(Varied::is_of_members("database.servers", ["1", "3"].into_iter()));
        assert!(!Varied::is_of_members("database.servers", ["1"].into_iter()));
        assert!(!Varied::is_of_members("option.shards_of", ["1", "2"].into_iter()));
        assert!(!Varied::is_of_members("database.replicas", ["few", "2"].into_iter()));
    }
}
