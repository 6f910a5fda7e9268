//! What was at its limit at a load level (METHOD 4.7): a volume, a disk, CPUs, a thread, the load
//! generator, locks or a connection pool; nothing; or it is not known.

mod facts;
mod measure;
mod resource;
mod rule;
#[cfg(test)]
mod tests;

pub use facts::{BoundBy, BoundFacts, ResourceUse};
pub use resource::Resource;
pub use rule::{Bound, Demand, TrialUses, agreed};

use dyno_record::{PlaceFacts, sends_nothing};
use dyno_units::IoLimit;

use crate::cells::Measured;
use crate::join::Joined;
use crate::statistics::median;

/// For each variant and step with clients.
pub(crate) fn bound_by(joined: &Joined<'_>, measured: &[Measured]) -> Vec<BoundFacts> {
    let with_clients = joined.measured_cells().filter(|(variant, step, _)| {
        let (step, variant) = (&joined.steps[*step], &joined.variants[*variant]);
        let has_clients = step.clients > 0 || step.rate.is_some() || step.search.is_some();
        has_clients && !sends_nothing(&variant.workload)
    });
    let measured: measure::Measurements<'_> =
        measured.iter().map(|m| ((m.variant, m.step, m.block), m)).collect();
    let facts = |(variant, step, _)| {
        let trials = measure::trials(joined, &measured, (variant, step));
        facts_of((variant, step), &trials, limit_of(joined, variant))
    };
    with_clients.map(facts).collect()
}

fn facts_of(
    (variant, step): (usize, usize),
    trials: &[TrialUses],
    limit: Option<IoLimit>,
) -> BoundFacts {
    let each: Vec<Bound> = trials.iter().map(TrialUses::bound).collect();
    let (bound, agreeing) = agreed(&each);
    let n = trials.len() as u32;
    let (by, resources, text, why) = match bound {
        Bound::Resources(all) => {
            let words: Vec<String> = all.iter().map(|one| words(*one, limit)).collect();
            (BoundBy::Resources, all, crate::words::list(words), None)
        }
        Bound::Clients => {
            (BoundBy::Clients, Vec::new(), "nothing: the clients' own waiting".to_owned(), None)
        }
        Bound::Rate => (BoundBy::Rate, Vec::new(), "nothing: the offered rate".to_owned(), None),
        Bound::Unknown(why) => (BoundBy::Unknown, Vec::new(), "not known".to_owned(), Some(why)),
    };
    BoundFacts { variant, step, by, resources, agreeing, n, text, why, uses: uses(trials) }
}

/// `the volume's limit of 500 reads/s`.
fn words(resource: Resource, limit: Option<IoLimit>) -> String {
    let of_volume = limit.filter(|_| resource == Resource::VolumeLimit);
    match of_volume.and_then(|limit| limit.words()) {
        Some(limit) if limit.contains(',') => format!("{} ({limit})", resource.limit()),
        Some(limit) => format!("{} of {limit}", resource.limit()),
        None => resource.limit().to_owned(),
    }
}

/// The same in all trials, as a volume is part of what varies; `None` if it is not known.
fn limit_of(joined: &Joined<'_>, variant: usize) -> Option<IoLimit> {
    let trials = joined.finished_of(variant).filter_map(|trial| trial.finished());
    let places = trials.flat_map(|trial| &trial.members).filter_map(|member| member.place.as_ref());
    let limits: Vec<IoLimit> = places.filter_map(|place: &PlaceFacts| place.limit).collect();
    let first = *limits.first()?;
    limits.iter().all(|limit| *limit == first).then_some(first)
}

fn uses(trials: &[TrialUses]) -> Vec<ResourceUse> {
    let resources = trials.iter().flat_map(|trial| trial.uses.iter().map(|(of, _)| *of));
    let mut resources: Vec<Resource> = resources.collect();
    resources.sort_unstable();
    resources.dedup();
    let of = |resource: Resource| {
        let all = trials.iter().flat_map(|trial| &trial.uses).filter(|(of, _)| *of == resource);
        let all: Vec<&Result<f64, String>> = all.map(|(_, used)| used).collect();
        let known: Vec<f64> = all.iter().filter_map(|used| used.as_ref().ok().copied()).collect();
        ResourceUse {
            resource,
            share: (!known.is_empty()).then(|| median(&known)),
            n: known.len() as u32,
            absent: all.iter().find_map(|used| used.as_ref().err().cloned()),
        }
    };
    resources.into_iter().map(of).collect()
}
