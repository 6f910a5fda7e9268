//! What differs between runs, results of other tools, and data sets that are not shared.

use std::collections::BTreeSet;

use super::found::{Evidence, Found, sorted};
use crate::words::list;
use crate::{CaveatKind, Findings};

const NAMED_MOST: usize = 4;

pub(super) fn workloads(seen: &Evidence<'_>) -> Option<Found> {
    let mut found = Found::default();
    for mismatch in &seen.joined.mismatches {
        let [other, variant] = [mismatch.other, mismatch.variant].map(|idx| seen.variant(idx));
        let words = format!("{other} and {variant}: {}", list(&mismatch.what));
        found.add_pair(words, (mismatch.variant, mismatch.other));
    }
    found.joined("; ", NAMED_MOST)
}

/// Variants not planned at every step. Further steps of the same variants are no difference.
pub(super) fn steps(seen: &Evidence<'_>) -> Option<Found> {
    if seen.joined.n_runs < 2 {
        return None;
    }
    let mut found = Found::default();
    for (idx, variant) in seen.findings.variants.iter().enumerate() {
        let planned = |step: usize| {
            let mut own = seen.joined.trials.iter().filter(|trial| trial.variant == idx);
            own.any(|trial| trial.has_step(step))
        };
        let steps = &seen.findings.steps;
        let lacking: Vec<usize> = (0..steps.len()).filter(|&step| !planned(step)).collect();
        if !lacking.is_empty() {
            let names: Vec<&str> = lacking.iter().map(|&step| steps[step].name.as_str()).collect();
            found.words.push(format!("{} has no {}", variant.name, list(&names)));
            found.variants.push(idx);
            found.steps.extend(lacking);
        }
    }
    found.joined("; ", NAMED_MOST)
}

/// The difference between data sets that variants' repetitions copy is in effects, not in bounds.
pub(super) fn one_data_set(seen: &Evidence<'_>) -> Option<Found> {
    let keys = |variant: usize| -> Option<BTreeSet<&str>> {
        let own = seen.joined.finished_of(variant).filter_map(|trial| trial.finished());
        own.map(|ended| ended.data.key.as_deref()).collect()
    };
    let is_copied = |variant: usize, keys: &BTreeSet<&str>| {
        seen.findings.variants[variant].finished >= 2 && keys.len() == 1
    };
    let is_such = |&(variant, baseline): &(usize, usize)| {
        keys(variant).zip(keys(baseline)).is_some_and(|(ours, theirs)| {
            ours != theirs && (is_copied(variant, &ours) || is_copied(baseline, &theirs))
        })
    };
    let mut found = Found::of(seen.pairs().filter(is_such).flat_map(|(a, b)| [a, b]))?;
    found.words = vec![match seen.joined.n_first {
        0 => format!(
            "variant's repetitions start from copies of one data set, and these variants have \
             different ones: {}",
            seen.names(sorted(found.variants.iter().copied()))
        ),
        _ => "run's trials start from copies of one data set; the two runs have different ones"
            .to_owned(),
    }];
    Some(found)
}

pub(super) fn separate(seen: &Evidence<'_>) -> Option<Found> {
    let n_first = seen.joined.n_first;
    let compared = seen.findings.comparisons.iter().filter(|c| n_first > 0 && c.variant >= n_first);
    Found::of(compared.flat_map(|c| [c.variant, c.baseline]))
}

pub fn is_imported(findings: &Findings) -> bool {
    findings.caveats.iter().any(|caveat| caveat.kind == CaveatKind::Imported)
}

const TRANSACTIONS: &str = " Of HammerDB before version 4.0, an earlier version of Dyno has read transactions \
    a minute (TPM) as new orders (NOPM), which is several times too many: import its logs again.";

/// Little is known of how they were measured.
pub(super) fn imported(seen: &Evidence<'_>) -> Option<Found> {
    let imported =
        || seen.places.iter().filter_map(|place| Some((place, place.summary.imported.as_ref()?)));
    imported().next()?;
    let tools = list(&sorted(imported().map(|(_, from)| from.tool.as_str())));
    let of_times = imported().any(|(place, _)| {
        place.summary.kinds.iter().any(|kind| kind.response.decode().is_none_or(|h| h.is_empty()))
    });
    // Dyno 0.1 recorded the number of transactions as new orders if it came first, and no other.
    let are_transactions = imported().any(|(place, from)| {
        let has_both = place.summary.figures.keys().any(|id| id.as_str() == "hammerdb.tpm");
        from.tool.starts_with("HammerDB") && !has_both
    });
    let words = format!(
        "{tools}, which does not say on which machine, against which server and with which \
         settings they were measured, what else the machine was doing, or in which order the runs \
         were made: drift of the machine would look like a difference between variants.{}{}",
        if of_times { " Only the percentiles that were printed are known." } else { "" },
        if are_transactions { TRANSACTIONS } else { "" }
    );
    Some(Found::at(words, imported().map(|(place, _)| place.at)))
}
