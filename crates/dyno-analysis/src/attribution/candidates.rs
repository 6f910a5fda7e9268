//! The uses that a difference between variants may go with, and their values by trial.

use std::collections::BTreeMap;

use dyno_units::reading::known;

use crate::join::Joined;

use super::uses::{Origin, Resource, resources};
use super::work::Work;

/// Of each family a sentence names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Cpu,
    ClientThreads,
    /// Of which the largest is named, beside the whole.
    OtherThreads,
    Generator,
    Reads,
    Writes,
    Syncs,
    Network,
    Statements,
    Waits,
    /// What takes CPU from the server.
    Elsewhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Per {
    Transaction,
    /// Whether or not there are transactions.
    Second,
}

impl Per {
    pub(super) fn word(self) -> &'static str {
        match self {
            Per::Transaction => "transaction",
            Per::Second => "second",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// That of a resource.
    pub(super) name: String,
    /// In sentences.
    pub(super) words: String,
    pub(super) unit: &'static str,
    pub(super) family: Family,
    pub(super) per: Per,
}

type Named = (&'static str, &'static str);

/// Of names in one row the first that both variants have: what is nearer to the server says more.
const CANDIDATES: [(&[Named], Family); 15] = [
    (&[("cpu.server", "server CPU")], Family::Cpu),
    (&[("cpu.server.foreground", "CPU of the server's client threads")], Family::ClientThreads),
    (&[("cpu.server.background", "CPU of the server's background threads")], Family::OtherThreads),
    (&[("reads.data", "reads from the data disk"), ("reads", "disk reads")], Family::Reads),
    (&[("writes.data", "writes to the data disk"), ("writes", "disk writes")], Family::Writes),
    (&[("fsyncs", "fsyncs")], Family::Syncs),
    (
        &[
            ("read_bytes.server", "bytes read by the server"),
            ("read_bytes", "bytes read from disks"),
        ],
        Family::Reads,
    ),
    (
        &[
            ("written_bytes.server", "bytes written by the server"),
            ("written_bytes", "bytes written to disks"),
        ],
        Family::Writes,
    ),
    (&[("flushes", "cache flushes of disks")], Family::Syncs),
    (&[("statements", "statements")], Family::Statements),
    (&[("wait.row_locks", "waiting time for row locks")], Family::Waits),
    (&[("wait.cpu", "time that the server's threads waited for a CPU")], Family::Waits),
    (&[("context_switches.server", "context switches of the server")], Family::Waits),
    (&[("network_sent_bytes", "bytes sent over networks")], Family::Network),
    (&[("cpu.generator", "CPU of the load generator")], Family::Generator),
];

/// Not of transactions: fewer transactions do not make more of it.
const ELSEWHERE: [Named; 2] = [
    ("cpu.rest", "CPU per second of everything else on the machine"),
    ("cpu.steal", "CPU per second that the hypervisor gave to others"),
];

/// Beside what is attributed.
const WAITS: [(&str, &str); 3] = [
    ("wait.row_locks", known::INNODB_ROW_LOCK_WAITS),
    ("wait.cpu", known::SERVER_RUN_QUEUE_WAIT),
    ("cpu.steal", known::CPU_STEAL),
];

const THREADS: &str = "cpu.server.thread.";
/// Kinds of threads in a study that can be named; servers have some dozens.
const THREADS_MOST: usize = 200;
/// They answer Dyno's own probes.
const OF_PROBES: &str = "cpu.server.thread.probe";

/// Of one trial at one step, by resource.
struct Used {
    block: u32,
    rates: BTreeMap<String, f64>,
    transactions: f64,
}

pub(super) struct Uses {
    /// By variant and step.
    trials: BTreeMap<(usize, usize), Vec<Used>>,
    threads: Vec<Candidate>,
    units: BTreeMap<String, &'static str>,
}

impl Uses {
    /// Of finished trials; a search tries other loads with each variant.
    pub(super) fn of(joined: &Joined<'_>) -> Uses {
        let (mut trials, mut threads) = (BTreeMap::<_, Vec<Used>>::new(), BTreeMap::new());
        let mut units = BTreeMap::new();
        for (trial, step, summary) in joined.measured_steps() {
            if joined.steps[step].search.is_some() {
                continue;
            }
            let mut rates = BTreeMap::new();
            for resource in resources(&[summary]).into_iter().chain(waits()) {
                let Ok(rate) = resource.per_second(summary) else { continue };
                if resource.name.starts_with(THREADS) && resource.name != OF_PROBES {
                    let named = (resource.name.clone(), resource.title.clone());
                    *threads.entry(named).or_insert(0.0) += rate;
                }
                units.insert(resource.name.clone(), resource.unit);
                rates.insert(resource.name, rate);
            }
            let transactions = Work::of(summary).transactions;
            let used = Used { block: trial.block, rates, transactions };
            trials.entry((trial.variant, step)).or_default().push(used);
        }
        let thread = |(name, words): (String, String)| Candidate {
            name,
            words,
            unit: "µs",
            family: Family::OtherThreads,
            per: Per::Transaction,
        };
        Uses { trials, threads: largest(threads).into_iter().map(thread).collect(), units }
    }

    /// With blocks.
    pub(super) fn values(
        &self,
        (name, per): (&str, Per),
        variant: usize,
        step: usize,
    ) -> Vec<(u32, f64)> {
        let own = self.trials.get(&(variant, step)).into_iter().flatten();
        let value = |one: &Used| {
            let rate = *one.rates.get(name)?;
            match per {
                Per::Second => Some((one.block, rate)),
                Per::Transaction if one.transactions > 0.0 => {
                    Some((one.block, rate / one.transactions))
                }
                Per::Transaction => None,
            }
        };
        own.filter_map(value).collect()
    }

    /// What both variants have at this step.
    pub(super) fn candidates(&self, (ours, theirs): (usize, usize), step: usize) -> Vec<Candidate> {
        let has = |name: &str, per: Per| {
            let is_there = |variant| !self.values((name, per), variant, step).is_empty();
            is_there(ours) && is_there(theirs)
        };
        let candidate = |(name, words): &Named, family: Family, per: Per| {
            let unit = self.units.get(*name).copied().filter(|_| has(name, per))?;
            let (name, words) = ((*name).to_owned(), (*words).to_owned());
            Some(Candidate { name, words, unit, family, per })
        };
        let of_row = |(names, family): &(&[Named], Family)| {
            names.iter().find_map(|named| candidate(named, *family, Per::Transaction))
        };
        let elsewhere =
            ELSEWHERE.iter().filter_map(|named| candidate(named, Family::Elsewhere, Per::Second));
        let threads = self.threads.iter().filter(|one| has(&one.name, one.per)).cloned();
        CANDIDATES.iter().filter_map(of_row).chain(threads).chain(elsewhere).collect()
    }
}

/// Those that took most CPU, by name.
fn largest(threads: BTreeMap<(String, String), f64>) -> Vec<(String, String)> {
    let mut all: Vec<_> = threads.into_iter().collect();
    all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    all.truncate(THREADS_MOST);
    let mut names: Vec<(String, String)> = all.into_iter().map(|(named, _)| named).collect();
    names.sort();
    names
}

/// In µs.
fn waits() -> impl Iterator<Item = Resource> {
    WAITS.into_iter().map(|(name, reading)| Resource {
        name: name.to_owned(),
        title: String::new(),
        unit: "µs",
        origin: Origin::Reading(reading),
        reading: None,
    })
}

/// Whether the record tells more than what the load generator counts.
pub(super) fn is_of_server(candidate: &Candidate) -> bool {
    !matches!(candidate.family, Family::Statements | Family::Generator | Family::Elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_threads_the_largest_are_candidates() {
        let named = |n: usize| (format!("thread{n:04}"), String::new());
        let all = (0..1000).map(|n| (named(n), n as f64)).collect();
        let expected: Vec<_> = (1000 - THREADS_MOST..1000).map(named).collect();
        assert_eq!(largest(all), expected);
    }
}
