//! The exit code of a command that has done its work: whether the demands of `require` are met.

use dyno_analysis::{Findings, RequirementFacts, RequirementOutcome};

use crate::{End, terminal};

/// Prints the demands that are not met, or not decided, for the variants that count. Not met is
/// exit code 1, not decided 2.
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
