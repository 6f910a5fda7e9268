//! Workloads and steps that differ between runs.

use crate::join::Joined;
use crate::words::list;
use crate::{Caveat, CaveatKind, Findings};

use super::sorted;

const NAMED_MOST: usize = 4;

pub(super) fn caveats(joined: &Joined<'_>, findings: &Findings) -> Vec<Caveat> {
    let found = [different_workload(joined, findings), different_steps(joined, findings)];
    found.into_iter().flatten().collect()
}

fn different_workload(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let name = |idx: usize| &findings.variants[idx].name;
    let parts = joined.mismatches.iter().map(|mismatch| {
        format!("{} and {}: {}", name(mismatch.other), name(mismatch.variant), list(&mismatch.what))
    });
    let parts: Vec<String> = parts.collect();
    let both = joined.mismatches.iter().flat_map(|mismatch| [mismatch.other, mismatch.variant]);
    (!parts.is_empty()).then(|| Caveat {
        kind: CaveatKind::DifferentWorkload,
        message: format!(
            "These variants did different work and are not compared: {}.",
            first_of(&parts)
        ),
        advice: "Give both runs the same workload with the same options. To compare workloads or \
                 options, vary them in one study."
            .to_owned(),
        variants: sorted(both),
        steps: Vec::new(),
    })
}

fn first_of(parts: &[String]) -> String {
    let named = parts[..parts.len().min(NAMED_MOST)].join("; ");
    match parts.len().saturating_sub(NAMED_MOST) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

/// Variants not planned at every step. Further steps of the same variants are no difference.
fn different_steps(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    if joined.n_runs < 2 {
        return None;
    }
    let (mut parts, mut variants, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for (idx, variant) in findings.variants.iter().enumerate() {
        let planned = |step: usize| {
            let mut own = joined.trials.iter().filter(|trial| trial.variant == idx);
            own.any(|trial| trial.has_step(step))
        };
        let lacking: Vec<usize> = (0..findings.steps.len()).filter(|&s| !planned(s)).collect();
        if !lacking.is_empty() {
            let names = lacking.iter().map(|&step| findings.steps[step].name.clone());
            parts.push(format!("{} has no {}", variant.name, list(&names.collect::<Vec<_>>())));
            variants.push(idx);
            steps.extend(lacking);
        }
    }
    (!parts.is_empty()).then(|| Caveat {
        kind: CaveatKind::DifferentSteps,
        message: format!("The runs have different load levels. {}.", first_of(&parts)),
        advice:
            "Compare only at load levels that both have: averages and peaks come from different loads. Run \
                 the missing load levels."
                .to_owned(),
        variants,
        steps: sorted(steps.into_iter()),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use dyno_record::Run;

    use crate::fixtures::run;
    use crate::{CaveatKind, Findings, Options, analyse};

    /// A second run, changed: is there such a caveat, with this message?
    fn check(kind: CaveatKind, change: impl Fn(&mut Run), expected: Option<&str>) -> Findings {
        let first = run(&["a", "b"], &[1, 4], 3, |_, _, r| 1000.0 + f64::from(r));
        let mut second = first.clone();
        second.folder = PathBuf::from("runs/second");
        change(&mut second);
        let found = analyse(&[first, second], &Options::default());
        let caveat = found.caveats.iter().find(|caveat| caveat.kind == kind);
        let message = caveat.map(|caveat| caveat.message.as_str());
        match (message, expected) {
            (Some(message), Some(part)) => assert!(message.contains(part), "{message}"),
            (message, expected) => assert_eq!(message, expected),
        }
        found
    }

    #[test]
    fn unlike_workloads_are_told_and_not_compared() {
        let kind = CaveatKind::DifferentWorkload;
        check(kind, |_| (), None);
        let other = |run: &mut Run| {
            run.manifest.variants.iter_mut().for_each(|v| v.workload = "tpcb".to_owned());
        };
        let found = check(kind, other, Some("a and a (tpcb): workload sysbench and tpcb"));
        let baselines: Vec<Option<usize>> = found.variants.iter().map(|v| v.baseline).collect();
        assert_eq!(baselines, [None, Some(0), None, Some(2)]);
        assert!(!found.answer.headline.contains("is fastest"), "{}", found.answer.headline);
    }

    #[test]
    fn unlike_workloads_are_told_without_namesakes_too() {
        let other = |run: &mut Run| {
            for variant in &mut run.manifest.variants {
                variant.workload = "tpcb".to_owned();
                variant.name += "2";
            }
        };
        let found = check(CaveatKind::DifferentWorkload, other, Some("workload sysbench and tpcb"));
        assert!(!found.answer.headline.contains("is fastest"), "{}", found.answer.headline);
    }

    #[test]
    fn unlike_steps_are_told_where_a_variant_lacks_some() {
        let kind = CaveatKind::DifferentSteps;
        let shorter = |run: &mut Run| run.manifest.steps[1].clients = 8;
        check(kind, shorter, None);
        let other = |run: &mut Run| {
            run.manifest.steps[1].clients = 8;
            run.manifest.steps[1].name = "8 clients".to_owned();
            run.manifest.variants[1].name = "c".to_owned();
        };
        check(kind, other, Some("b has no 8 clients; c has no 4 clients"));
    }
}
