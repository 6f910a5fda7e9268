//! What was measured, in one line: the workload, the server, the size of the design, and what the host
//! spoiled.

use dyno_analysis::{VariantFacts, is_watched};

use crate::view::View;
use crate::words;

/// Most different names that are listed; of more, their number is said.
const NAMES_MOST: usize = 3;

/// The parts of the line, the workload first.
pub(crate) fn parts(view: &View<'_>) -> Vec<String> {
    let findings = view.findings;
    let confidence = view.confidence();
    let threshold = view.threshold();
    if is_watched(findings) {
        // There was no design, and no load.
        return names(view, "servers", |variant| &variant.server).into_iter().collect();
    }
    let mut parts = Vec::new();
    parts.extend(names(view, "workloads", |variant| &variant.workload));
    parts.extend(names(view, "servers", |variant| &variant.server));
    parts.push(words::counted(findings.variants.len(), "variant", "variants"));
    if findings.steps.len() > 1 {
        parts.push(words::counted(findings.steps.len(), "step", "steps"));
    }
    parts.push(trials(view));
    parts.extend(discarded(view));
    parts.push(format!("threshold {threshold}"));
    parts.push(format!("{confidence} confidence"));
    parts
}

/// `tpcb`, `tpcb; tpcc`, `5 workloads`; none where nothing has a name.
fn names<'a>(
    view: &View<'a>,
    noun: &str,
    name: impl Fn(&'a VariantFacts) -> &'a str,
) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for variant in &view.findings.variants {
        // Servers say at length how they were built; the settings have it all.
        let name = name(variant);
        let end = [" (", " on ", ", "].iter().filter_map(|sign| name.find(sign)).min();
        let name = &name[..end.unwrap_or(name.len())];
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    match names.len() {
        0 => None,
        1..=NAMES_MOST => Some(names.join("; ")),
        n => Some(format!("{n} {noun}")),
    }
}

fn trials(view: &View<'_>) -> String {
    let findings = view.findings;
    let in_state = |state: &str| findings.trials.iter().filter(|t| t.state == state).count();
    let mut trials = words::counted(findings.trials.len(), "trial", "trials");
    for state in ["failed", "missing", "not needed"] {
        if in_state(state) > 0 {
            trials += &format!(", {} {state}", in_state(state));
        }
    }
    trials
}

/// How many blocks the host spoiled: on the first screen, because it says how quiet the machine was.
fn discarded(view: &View<'_>) -> Option<String> {
    let n = view.findings.void_blocks.len();
    (n > 0).then(|| format!("{} repeated (busy host)", words::counted(n, "block", "blocks")))
}
