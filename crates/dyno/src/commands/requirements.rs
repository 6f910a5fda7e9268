//! Exit codes for the demands of `require`.

use dyno_analysis::{Findings, RequirementFacts, RequirementOutcome};

use crate::{End, terminal};

/// Prints demands not met (exit code 1) or undecided (exit code 2), for variants that count.
pub(crate) fn end(findings: &Findings, counts: &dyn Fn(usize) -> bool) -> End {
    let of = |outcome: RequirementOutcome| -> Vec<String> {
        let those = findings.requirements.iter().filter(|one| one.outcome == outcome);
        those.filter(|one| counts(one.variant)).map(|one| in_words(findings, one)).collect()
    };
    let (broken, open) = (of(RequirementOutcome::NotMet), of(RequirementOutcome::Inconclusive));
    if !broken.is_empty() {
        terminal::say(&format!("required but not met: {}", broken.join(", ")));
    }
    if !open.is_empty() {
        terminal::say(&format!("required but inconclusive: {}", open.join(", ")));
    }
    match (broken.is_empty(), open.is_empty()) {
        (false, _) => End::Bad,
        (true, false) => End::Inconclusive,
        (true, true) => End::Good,
    }
}

fn in_words(findings: &Findings, one: &RequirementFacts) -> String {
    let (variant, step) = (&findings.variants[one.variant], &findings.steps[one.step]);
    format!("{} ({} at {})", one.text, variant.name, step.name)
}
