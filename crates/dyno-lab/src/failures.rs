//! Skips trials after failures. A variant whose server cannot be deployed for a lasting reason (a
//! refused setting, a missing program), or that failed twice in the same way before its load, is
//! not tried again. A disk that stays full ends the run.

use std::collections::BTreeMap;

use dyno_database::Products;
use dyno_record::{EventKind, TrialOutcome};
use serde::{Deserialize, Serialize};

/// By a full disk, in a row. After the first its trial is torn down, and another may need less.
const DISK_FULL_MOST: u32 = 2;

/// From the operating system; products have others ([`Products::says_disk_full`]).
const FULL: &str = "No space left on device";

/// Messages that would come again; products have others ([`Products::says_refused`]).
const REFUSED: [&str; 6] = [
    "the study requires version",
    "not found",
    "is not installed",
    "`dyno products fetch",
    "there is no image",
    "images need a container engine",
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) log: Vec<String>,
    pub(crate) was_deployed: bool,
    /// The next time, as its first step had begun, or a host was lost after the server was up.
    pub(crate) may_go_well: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrialEnd {
    Finished,
    /// The same, but what was made for it could not be removed.
    FinishedUncleaned,
    Failed(Failure),
    /// The user stopped it; it is not recorded as ended.
    Abandoned,
}

impl TrialEnd {
    pub(crate) fn event(&self, trial: u32) -> EventKind {
        match self.outcome() {
            None => EventKind::TrialAbandoned { trial },
            Some(TrialOutcome::Finished) => EventKind::TrialFinished { trial },
            Some(TrialOutcome::Failed { message, server_log }) => {
                EventKind::TrialFailed { trial, message, server_log }
            }
        }
    }

    /// For the record; none if it was abandoned.
    pub(crate) fn outcome(&self) -> Option<TrialOutcome> {
        match self {
            TrialEnd::Failed(Failure { message, log, .. }) => {
                Some(TrialOutcome::Failed { message: message.clone(), server_log: log.clone() })
            }
            TrialEnd::Finished | TrialEnd::FinishedUncleaned => Some(TrialOutcome::Finished),
            TrialEnd::Abandoned => None,
        }
    }
}

impl Failure {
    fn is_refusal(&self, products: &Products) -> bool {
        let says = |line: &str| {
            REFUSED.iter().any(|words| line.contains(words)) || products.says_refused(line)
        };
        says(&self.message) || self.log.iter().any(|line| says(line))
    }
}

pub(crate) fn is_disk_full(products: &Products, log: &[String], message: &str) -> bool {
    let is_full = |line: &str| line.contains(FULL) || products.says_disk_full(line);
    is_full(message) || log.iter().any(|line| is_full(line))
}

pub(crate) struct Failures {
    products: Products,
    /// Of each variant, how its trials failed before their load.
    unloaded: BTreeMap<usize, Vec<String>>,
    /// Of each variant that is not tried again, why, and whether its server was up.
    hopeless: BTreeMap<usize, (String, bool)>,
    n_disk_full: u32,
}

impl Failures {
    pub(crate) fn new(products: &Products) -> Failures {
        Failures {
            products: products.clone(),
            unloaded: BTreeMap::new(),
            hopeless: BTreeMap::new(),
            n_disk_full: 0,
        }
    }

    pub(crate) fn add(&mut self, variant: usize, failure: Option<&Failure>) {
        let Some(failure) = failure else {
            self.n_disk_full = 0;
            return;
        };
        if is_disk_full(&self.products, &failure.log, &failure.message) {
            self.n_disk_full += 1;
            return;
        }
        self.n_disk_full = 0;
        if failure.may_go_well {
            return;
        }
        let earlier = self.unloaded.entry(variant).or_default();
        let shape = without_numbers(&failure.message);
        let is_refusal = !failure.was_deployed && failure.is_refusal(&self.products);
        if is_refusal || earlier.contains(&shape) {
            let what = if failure.was_deployed {
                "it fails each time before its load"
            } else if failure.message.starts_with("host ") {
                "what it needs on that host cannot be started"
            } else {
                "its server cannot be deployed"
            };
            let why = format!("{what} ({})", failure.message);
            self.hopeless.entry(variant).or_insert((why, failure.was_deployed));
        }
        earlier.push(shape);
    }

    pub(crate) fn hopeless(&self, variant: usize) -> Option<(&str, bool)> {
        self.hopeless.get(&variant).map(|(why, was_deployed)| (why.as_str(), *was_deployed))
    }

    pub(crate) fn ends_run(&self) -> Option<String> {
        (self.n_disk_full >= DISK_FULL_MOST).then(|| {
            format!(
                "{DISK_FULL_MOST} trials in a row failed because the disk with the servers' data was \
                 full; the others were not started. Free some space, then run the same command again \
                 with --retry-failed"
            )
        })
    }
}

/// The message without what is different each time: process ids, ports, names of folders.
fn without_numbers(message: &str) -> String {
    let mut text = String::new();
    for c in message.chars() {
        match c {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str, was_deployed: bool) -> Failure {
        let (message, log) = (message.to_owned(), Vec::new());
        Failure { message, log, was_deployed, may_go_well: was_deployed }
    }

    #[test]
    fn a_variant_that_is_refused_is_tried_once_and_one_that_fails_alike_twice() {
        let check = |messages: &[(&str, bool)], expected: bool| {
            let mut failures = Failures::new(&Products::built_in());
            for (message, was_deployed) in messages {
                failures.add(3, Some(&failure(message, *was_deployed)));
            }
            assert_eq!(failures.hopeless(3).is_some(), expected, "{messages:?}");
            assert_eq!(failures.hopeless(2), None);
            assert_eq!(failures.ends_run(), None);
        };
        check(&[("[ERROR] mariadbd: unknown variable 'no_such=1'", false)], true);
        let version = "version 4.1 was requested, but the programs on this machine are 10.11";
        check(&[(version, false)], true);
        check(&[("process 17 ended with 1", false)], false);
        check(&[("process 17 ended with 1", false), ("process 4711 ended with 1", false)], true);
        check(&[("process 17 ended", false), ("it did not answer in 60 s", false)], false);
        // What fails under load may go well the next time.
        check(&[("the server went down", true), ("the server went down", true)], false);
    }

    #[test]
    fn a_variant_that_is_not_populated_twice_in_the_same_way_is_not_tried_again() {
        let failed = |message| Failure { may_go_well: false, ..failure(message, true) };
        let mut failures = Failures::new(&Products::built_in());
        // What a server that is up does not find may be there the next time.
        failures.add(0, Some(&failed("populating t: table 17 not found")));
        failures.add(0, Some(&failed("populating t: it ended after 60 s")));
        assert_eq!(failures.hopeless(0), None);
        failures.add(0, Some(&failed("populating t: table 18 not found")));
        let why = "it fails each time before its load (populating t: table 18 not found)";
        assert_eq!(failures.hopeless(0), Some((why, true)));
    }

    #[test]
    fn what_the_log_says_counts() {
        let mut failures = Failures::new(&Products::built_in());
        let log = vec!["FATAL:  unrecognized configuration parameter \"shared_bufers\"".to_owned()];
        let failed = Failure { log, ..failure("postgres ended", false) };
        failures.add(0, Some(&failed));
        let why = "its server cannot be deployed (postgres ended)";
        assert_eq!(failures.hopeless(0), Some((why, false)));
    }

    #[test]
    fn a_disk_that_stays_full_ends_the_run() {
        let mut failures = Failures::new(&Products::built_in());
        let full = failure("populating t: The table 't' is full (1114)", true);
        failures.add(0, Some(&full));
        failures.add(1, None);
        failures.add(0, Some(&full));
        assert_eq!(failures.ends_run(), None);
        failures.add(1, Some(&full));
        assert!(failures.ends_run().is_some_and(|why| why.contains("--retry-failed")));
        assert_eq!(failures.hopeless(0), None);
    }
}
