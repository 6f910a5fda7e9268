//! Trials on several machines: of one variant on different ones, and of compared variants.

use std::collections::BTreeMap;

use crate::join::Joined;
use crate::trial_hosts::{TrialHostFacts, machine_of};
use crate::words::list;
use crate::{Caveat, CaveatKind, Findings};

use super::sorted;

const NAMED_MOST: usize = 6;

pub(super) fn caveats(joined: &Joined<'_>, findings: &Findings) -> Vec<Caveat> {
    let found = [differing(findings), apart(findings), split(joined, findings)];
    found.into_iter().flatten().collect()
}

fn caveat(message: String, advice: &str, variants: impl Iterator<Item = usize>) -> Caveat {
    Caveat {
        kind: CaveatKind::SeveralMachines,
        message,
        advice: advice.to_owned(),
        variants: sorted(variants),
        steps: Vec::new(),
    }
}

fn named(hosts: &[&TrialHostFacts]) -> String {
    let mut parts: Vec<String> = hosts
        .iter()
        .take(NAMED_MOST)
        .map(|host| format!("{} ({})", host.host, host.in_words()))
        .collect();
    if let Some(more) = hosts.len().checked_sub(NAMED_MOST).filter(|more| *more > 0) {
        parts.push(format!("{more} more"));
    }
    list(&parts)
}

fn differing(findings: &Findings) -> Option<Caveat> {
    let mut pools: BTreeMap<&str, Vec<&TrialHostFacts>> = BTreeMap::new();
    for host in &findings.trial_hosts {
        pools.entry(&host.pool).or_default().push(host);
    }
    pools.retain(|_, hosts| hosts.iter().any(|host| !host.is_alike(hosts[0])));
    let parts: Vec<String> =
        pools.iter().map(|(pool, hosts)| format!("{pool}: {}", named(hosts))).collect();
    let variants = pools.values().flatten().flat_map(|host| host.variants.iter().copied());
    (!parts.is_empty()).then(|| {
        caveat(
            format!("Trials of the same variant ran on machines that differ. {}.", parts.join("; ")),
            "Variants whose trials share a machine in each block are compared block by block, so that \
             these comparisons are not affected; but means and their CIs are over all these \
             machines. Give each kind of machine a [host.NAME] table of its own, and vary `trials_on`.",
            variants,
        )
    })
}

fn apart(findings: &Findings) -> Option<Caveat> {
    let of = |variant: usize| -> Vec<&TrialHostFacts> {
        findings.trial_hosts.iter().filter(|host| host.variants.contains(&variant)).collect()
    };
    let mut parts: Vec<String> = Vec::new();
    let mut variants = Vec::new();
    for (idx, variant) in findings.variants.iter().enumerate() {
        let Some(baseline) = variant.baseline else { continue };
        let (ours, theirs) = (of(idx), of(baseline));
        let (Some(our), Some(their)) = (ours.first(), theirs.first()) else { continue };
        if our.pool == their.pool {
            continue;
        }
        variants.extend([idx, baseline]);
        for (variant, hosts) in [(baseline, &theirs), (idx, &ours)] {
            let part = format!("{} on {}", findings.variants[variant].name, named(hosts));
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    (!parts.is_empty()).then(|| {
        caveat(
            format!("Variants that are compared ran on different machines: {}.", parts.join("; ")),
            "The effect is that of the machine, and of all else that differs between them, such as \
             kernel, disk and neighbours. Machines of one type differ, too: several hosts in each \
             table show by how much.",
            variants.into_iter(),
        )
    })
}

/// Blocks in which a variant and its baseline, of one pool, had different hosts.
fn split(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let mut places: BTreeMap<(u32, usize), (&str, &str)> = BTreeMap::new();
    for trial in &joined.trials {
        if let Some(summary) = trial.finished().filter(|summary| summary.host.is_some()) {
            places.insert((trial.block, trial.variant), machine_of(summary));
        }
    }
    let mut blocks = Vec::new();
    let mut variants = Vec::new();
    for (&(block, variant), ours) in &places {
        let baseline = findings.variants.get(variant).and_then(|variant| variant.baseline);
        let Some(baseline) = baseline else { continue };
        let theirs = places.get(&(block, baseline));
        if theirs.is_some_and(|theirs| theirs.0 == ours.0 && theirs.1 != ours.1) {
            blocks.push(block);
            variants.extend([variant, baseline]);
        }
    }
    blocks.dedup();
    let blocks: Vec<String> = blocks.iter().map(u32::to_string).collect();
    (!blocks.is_empty()).then(|| {
        let (s, the) = if blocks.len() == 1 { ("", "this block") } else { ("s", "these blocks") };
        caveat(
            format!(
                "In block{s} {} a variant and its baseline ran on different hosts, because a host was \
                 lost.",
                list(&blocks)
            ),
            &format!("Differences within {the} include those between the hosts: repeat the run if they matter."),
            variants.into_iter(),
        )
    })
}
