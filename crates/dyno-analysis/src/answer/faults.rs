//! Faults made by the study: time without commits, and recovery of the load.

use std::collections::BTreeSet;

use super::AnswerWriter;
use crate::FaultFacts;
use crate::statistics::median;
use crate::words::{count, joined, list, seconds};

/// Words of a possible headline.
const SHORT_MOST: usize = 25;

impl AnswerWriter<'_> {
    /// The possible headline first; empty without faults.
    pub(super) fn faults(&self) -> Vec<String> {
        let all = &self.findings.faults;
        let variants: BTreeSet<usize> = all.iter().map(|facts| facts.variant).collect();
        let n_variants = variants.len();
        let (mut parts, mut away) = (Vec::new(), Vec::new());
        for variant in variants {
            let own: Vec<&FaultFacts> = all.iter().filter(|one| one.variant == variant).collect();
            let name = self.name(variant);
            parts.push(part(name, &own));
            let times: Vec<f64> = own.iter().filter_map(|facts| facts.away_s).collect();
            away.extend((!times.is_empty()).then(|| (median(&times), name)));
        }
        if parts.is_empty() {
            return parts;
        }
        let done = list(all.iter().map(what).collect::<BTreeSet<String>>());
        let whole = format!("After {done}: {}.", joined(&parts, "; "));
        match in_short(&away) {
            Some(short) if whole.split_whitespace().count() > SHORT_MOST => {
                let median = match (n_variants, all.len()) {
                    (n_variants, n) if n <= n_variants => String::new(),
                    (1, n) => format!(" (median of {n})"),
                    (_, n) => format!(" (medians of {n} faults)"),
                };
                let lost = lost(all).map_or(String::new(), |lost| format!("; {lost}"));
                let short = format!("After {done}, {short}{median}{lost}.");
                std::iter::once(short).chain(parts.into_iter().map(|part| part + ".")).collect()
            }
            _ => vec![whole],
        }
    }
}

/// `nothing was committed for 1.8 s with a and 3 s with b`; of more variants the extremes.
pub(super) fn in_short(away: &[(f64, &str)]) -> Option<String> {
    let least = away.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let most = away.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let one = |(away, name): &(f64, &str)| format!("{} with {name}", seconds(*away));
    Some(match away {
        [only] => format!("{} committed nothing for {}", only.1, seconds(only.0)),
        [first, second] => format!("nothing was committed for {} and {}", one(first), one(second)),
        _ => format!("nothing was committed for {} to {}", one(least), one(most)),
    })
}

/// `the server was killed`, `replica-1 was stopped`.
fn what(facts: &FaultFacts) -> String {
    let member = match facts.fault.member.as_str() {
        "server" => "the server",
        other => other,
    };
    let done = match facts.fault.kind.as_str() {
        "kill" => "killed",
        "stop" => "stopped",
        "restart" => "restarted",
        "isolate" => "isolated from its cluster",
        other => other,
    };
    match &facts.fault.promotion {
        // Nothing has to notice the fault first, as in other set-ups.
        Some(promotion) => format!("{member} was {done} and {} promoted at once", promotion.member),
        None => format!("{member} was {done}"),
    }
}

pub(super) fn part(name: &str, faults: &[&FaultFacts]) -> String {
    let values = |of: fn(&FaultFacts) -> Option<f64>| -> Vec<f64> {
        faults.iter().filter_map(|facts| of(facts)).collect()
    };
    let mut text = name.to_owned();
    let away = values(|facts| facts.away_s);
    if !away.is_empty() {
        text += &format!(" committed nothing for {}", with_range(&away));
    }
    let recovered = values(|facts| facts.recovered_after_s);
    let (n, n_all) = (recovered.len(), faults.len());
    const NOT: &str = "not recovered by the end of the measurement";
    text += &match (n, n_all) {
        (0, 1) => format!(", {NOT}"),
        (0, n_all) => format!(", {NOT} in any of {n_all} faults"),
        _ => format!(", recovered after {}", with_range(&recovered)),
    };
    if n > 0 && n < n_all {
        text += &format!("; {NOT} in {} of {n_all} faults", n_all - n);
    }
    let lost = lost(faults.iter().copied());
    text + &lost.map_or(String::new(), |lost| format!(", {lost}"))
}

/// `40 to 44 confirmed transactions lost`, of all trials; none without a promotion.
pub(super) fn lost<'a>(faults: impl IntoIterator<Item = &'a FaultFacts>) -> Option<String> {
    let all: Vec<(u64, u64)> = faults.into_iter().filter_map(|facts| facts.lost).collect();
    let least = all.iter().map(|(least, _)| *least).min()?;
    let most = all.iter().map(|(_, most)| *most).max()?;
    let per = if all.len() > 1 { " per trial" } else { "" };
    let n = |n: u64| count(n, "confirmed transaction");
    Some(match (least, most) {
        (0, 0) => "no confirmed transaction lost".to_owned(),
        (least, most) if least == most => format!("{} lost{per}", n(least)),
        (0, most) if all.iter().all(|(least, _)| *least == 0) => {
            format!("no loss shown (at most {}{per})", n(most))
        }
        (least, most) => format!("{least} to {} lost{per}", n(most)),
    })
}

fn with_range(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let middle = seconds(median(values));
    match values.len() {
        1 => middle,
        n => format!("{middle} (median of {n}, range {} to {})", seconds(least), seconds(most)),
    }
}
