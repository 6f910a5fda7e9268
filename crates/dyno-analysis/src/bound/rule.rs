//! The rule of METHOD 4.7, on what is known of each trial.

use super::resource::Resource;
use crate::words::{distinct, joined, list, share};

/// Named at most; a third one would have less than either to say.
const NAMED_MOST: usize = 2;
/// Of the nearness of a resource that is at its limit. With a little more of that one, another so
/// near would be at its own.
const BESIDE: f64 = 0.9;
/// Of the clients' time outside of transactions; then even a server that answers at once would
/// do no more than a ninth more.
const PAUSING_LEAST: f64 = 0.9;
/// Of the arrivals; with more of them not done, the load is not what limited throughput.
const UNDONE_MOST: f64 = 0.02;

/// What the clients asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// Open load, with the share of the arrivals that were not done.
    Rate { undone: f64 },
    /// Closed load, with the share of their time that clients spent outside of transactions;
    /// `None` if not known.
    Clients { pausing: Option<f64> },
    /// Some clients send at a rate, others as soon as they can: arrivals that were not done are not
    /// known apart from the others' work.
    Mixed,
}

/// Of one trial at one step.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialUses {
    pub demand: Demand,
    /// Of each resource that could limit it, as a share of its limit; an error says why that is
    /// not known.
    pub uses: Vec<(Resource, Result<f64, String>)>,
}

/// What limited one trial, or most of several.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// At least one, at most two.
    Resources(Vec<Resource>),
    Clients,
    Rate,
    Unknown(String),
}

impl TrialUses {
    pub fn bound(&self) -> Bound {
        match self.demand {
            Demand::Rate { undone } if undone <= UNDONE_MOST => return Bound::Rate,
            Demand::Clients { pausing: Some(share) } if share >= PAUSING_LEAST => {
                return Bound::Clients;
            }
            _ => {}
        }
        let at_limit = self.at_limit();
        if !at_limit.is_empty() {
            return Bound::Resources(at_limit);
        }
        match (self.in_doubt(), self.demand) {
            (Some(why), _) => Bound::Unknown(why),
            (None, Demand::Clients { .. }) => Bound::Clients,
            (None, Demand::Rate { undone }) => Bound::Unknown(format!(
                "{} of the arrivals were not done, and no resource that is recorded was at its limit",
                share(undone)
            )),
            (None, Demand::Mixed) => Bound::Unknown(
                "some clients send at a rate, others as soon as they can, and no resource that is \
                 recorded was at its limit"
                    .to_owned(),
            ),
        }
    }

    /// The nearest to its limit first.
    fn at_limit(&self) -> Vec<Resource> {
        let known = self.uses.iter().filter_map(|(of, used)| Some((*of, *used.as_ref().ok()?)));
        let near = known.map(|(of, used)| (of, used.min(1.0) / of.reached()));
        let mut those: Vec<(Resource, f64)> = near.collect();
        those.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let most = those.first().map(|(_, nearness)| *nearness).filter(|most| *most >= 1.0);
        let Some(most) = most else { return Vec::new() };
        // What is at its own limit counts, however far others are beyond theirs: locks begin at half.
        let least = (BESIDE * most).min(1.0);
        let is_named = |(_, nearness): &(Resource, f64)| *nearness >= least;
        those.into_iter().filter(is_named).map(|(of, _)| of).take(NAMED_MOST).collect()
    }

    /// Why it is not certain that nothing is at its limit.
    fn in_doubt(&self) -> Option<String> {
        let near = self.uses.iter().find_map(|(of, used)| {
            let used = *used.as_ref().ok().filter(|used| **used >= of.clear())?;
            Some(format!("near a limit, but not at it ({}: {})", of.name(), share(used)))
        });
        near.or_else(|| self.uses.iter().find_map(|(_, used)| used.clone().err()))
    }
}

/// What is true of most trials, and of how many.
pub fn agreed(trials: &[Bound]) -> (Bound, u32) {
    let is_most = |n: usize| 2 * n > trials.len();
    let n_named = |all: &[Resource]| {
        let names = |trial: &&Bound| match trial {
            Bound::Resources(own) => all.iter().all(|one| own.contains(one)),
            _ => false,
        };
        trials.iter().filter(names).count()
    };
    let own = trials.iter().flat_map(|trial| match trial {
        Bound::Resources(own) => own.as_slice(),
        _ => &[],
    });
    let mut named = distinct(own.copied());
    // In the order of the first trial that names them.
    named.retain(|one| is_most(n_named(&[*one])));
    named.sort_by_key(|one| std::cmp::Reverse(n_named(&[*one])));
    named.truncate(NAMED_MOST);
    if !is_most(n_named(&named)) {
        named.truncate(1);
    }
    if !named.is_empty() {
        let n = n_named(&named);
        return (Bound::Resources(named), n as u32);
    }
    for nothing in [Bound::Clients, Bound::Rate] {
        let n = trials.iter().filter(|trial| **trial == nothing).count();
        if is_most(n) {
            return (nothing, n as u32);
        }
    }
    let n = trials.iter().filter(|trial| matches!(trial, Bound::Unknown(_))).count();
    (Bound::Unknown(why_unknown(trials)), n as u32)
}

fn why_unknown(trials: &[Bound]) -> String {
    let why = |trial: &Bound| match trial {
        Bound::Unknown(why) => Some(why.clone()),
        _ => None,
    };
    let whys: Option<Vec<String>> = trials.iter().map(why).collect();
    if let Some(whys) = whys {
        return joined(distinct(whys), "; ");
    }
    let word = |trial: &Bound| match trial {
        Bound::Resources(all) => list(all.iter().map(|one| one.limit())),
        Bound::Clients | Bound::Rate => "no limit".to_owned(),
        Bound::Unknown(_) => "not known".to_owned(),
    };
    let words: Vec<String> = trials.iter().map(word).collect();
    let counted = distinct(words.iter()).into_iter().map(|word| {
        let n = words.iter().filter(|other| *other == word).count();
        format!("{word} in {n}")
    });
    format!("the trials differ: {} of {}", joined(counted, ", "), trials.len())
}
