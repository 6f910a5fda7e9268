//! Where the Universal Scalability Law does not describe the measurements.

use crate::scaling::LawMiss;
use crate::words::{ci_of, rate};
use crate::{Caveat, CaveatKind, Findings};

use super::sorted;

pub(super) fn law_misses(findings: &Findings) -> Option<Caveat> {
    let (mut parts, mut variants, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for scaling in &findings.scaling {
        let Some(law) = &scaling.law else { continue };
        let off = |miss: &LawMiss| (miss.law / miss.measured.value).ln().abs();
        let Some(worst) = law.misses.iter().max_by(|a, b| off(a).total_cmp(&off(b))) else {
            continue;
        };
        let interval = ci_of(&worst.measured, findings.confidence);
        let load = format!(
            "at {} it predicts {}, but {} ({interval}) was measured",
            findings.steps[worst.step].name,
            rate(worst.law),
            rate(worst.measured.value),
        );
        let more = match law.misses.len() - 1 {
            0 => String::new(),
            1 => "; 1 more load is outside".to_owned(),
            n => format!("; {n} more loads are outside"),
        };
        let r_squared = law.r_squared.map_or(String::new(), |r| format!(" (R² = {r:.3})"));
        let name = &findings.variants[scaling.variant].name;
        parts.push(format!("{name}{r_squared}: {load}{more}"));
        variants.push(scaling.variant);
        steps.extend(law.misses.iter().map(|miss| miss.step));
    }
    (!parts.is_empty()).then(|| Caveat {
        kind: CaveatKind::LawMisses,
        message: format!(
            "At some loads the fitted scaling curve lies outside the measured CI. {}.",
            parts.join(". ")
        ),
        advice: "Use the measured values; ignore the parameters and the peak of the fit. The \
                 Universal Scalability Law cannot describe a hard cap on throughput."
            .to_owned(),
        variants: sorted(variants.into_iter()),
        steps: sorted(steps.into_iter()),
    })
}
