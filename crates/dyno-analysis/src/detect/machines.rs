//! Trials on several machines: of one variant on different ones, and of compared variants.

use std::collections::BTreeMap;

use super::found::{Evidence, Found, sorted};
use crate::trial_hosts::{TrialHostFacts, machine_of};
use crate::words::{cut, list};

const NAMED_MOST: usize = 6;

fn named(hosts: &[&TrialHostFacts]) -> String {
    let words = hosts.iter().map(|host| format!("{} ({})", host.host, host.in_words()));
    let mut words: Vec<String> = words.collect();
    cut(&mut words, NAMED_MOST, "");
    list(&words)
}

pub(super) fn differing(seen: &Evidence<'_>) -> Option<Found> {
    let mut pools: BTreeMap<&str, Vec<&TrialHostFacts>> = BTreeMap::new();
    for host in &seen.findings.trial_hosts {
        pools.entry(&host.pool).or_default().push(host);
    }
    pools.retain(|_, hosts| hosts.iter().any(|host| !host.is_alike(hosts[0])));
    let mut found = Found::default();
    for (pool, hosts) in pools {
        found.words.push(format!("{pool}: {}", named(&hosts)));
        found.variants.extend(hosts.iter().flat_map(|host| &host.variants));
    }
    found.joined("; ", usize::MAX)
}

pub(super) fn apart(seen: &Evidence<'_>) -> Option<Found> {
    let of = |variant: usize| -> Vec<&TrialHostFacts> {
        let hosts = seen.findings.trial_hosts.iter();
        hosts.filter(|host| host.variants.contains(&variant)).collect()
    };
    let mut found = Found::default();
    for (idx, baseline) in seen.pairs() {
        let (ours, theirs) = (of(idx), of(baseline));
        let (Some(our), Some(their)) = (ours.first(), theirs.first()) else { continue };
        if our.pool == their.pool {
            continue;
        }
        for (variant, hosts) in [(baseline, &theirs), (idx, &ours)] {
            found.variants.push(variant);
            let words = format!("{} on {}", seen.variant(variant), named(hosts));
            if !found.words.contains(&words) {
                found.words.push(words);
            }
        }
    }
    found.joined("; ", usize::MAX)
}

/// Blocks in which a variant and its baseline, of one pool, had different hosts.
pub(super) fn split(seen: &Evidence<'_>) -> Option<Found> {
    let mut places: BTreeMap<(u32, usize), (&str, &str)> = BTreeMap::new();
    for trial in &seen.joined.trials {
        if let Some(summary) = trial.finished().filter(|summary| summary.host.is_some()) {
            places.insert((trial.block, trial.variant), machine_of(summary));
        }
    }
    let (mut blocks, mut variants) = (Vec::new(), Vec::new());
    for (&(block, variant), ours) in &places {
        let Some(baseline) = seen.findings.variants[variant].baseline else { continue };
        let theirs = places.get(&(block, baseline));
        if theirs.is_some_and(|theirs| theirs.0 == ours.0 && theirs.1 != ours.1) {
            blocks.push(block);
            variants.extend([variant, baseline]);
        }
    }
    let blocks: Vec<String> = sorted(blocks).iter().map(u32::to_string).collect();
    let (s, the) = if blocks.len() == 1 { ("", "this block") } else { ("s", "these blocks") };
    blocks.first()?;
    Found::new(format!("block{s} {}", list(&blocks)), variants).advise(format!(
        "Differences within {the} include those between the hosts: repeat the run if they matter."
    ))
}
