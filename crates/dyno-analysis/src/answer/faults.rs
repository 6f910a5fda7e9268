//! Faults made by the study: time without commits, and recovery of the load.

use super::AnswerWriter;
use crate::FaultFacts;
use crate::statistics::median;
use crate::words::{count, list, seconds};

impl AnswerWriter<'_> {
    /// The possible headline first; empty without faults.
    pub(super) fn faults(&self) -> Vec<String> {
        let all = &self.findings.faults;
        let mut variants: Vec<usize> = all.iter().map(|facts| facts.variant).collect();
        variants.sort_unstable();
        variants.dedup();
        let of = |variant: usize| -> Vec<&FaultFacts> {
            all.iter().filter(|facts| facts.variant == variant).collect()
        };
        let parts: Vec<String> =
            variants.iter().map(|variant| part(self.name(*variant), &of(*variant))).collect();
        let mut done: Vec<String> = all.iter().map(what).collect();
        done.sort_unstable();
        done.dedup();
        if parts.is_empty() {
            return Vec::new();
        }
        let whole = format!("After {}: {}.", list(&done), parts.join("; "));
        let away: Vec<(f64, &str)> = variants
            .iter()
            .filter_map(|variant| Some((median_away(&of(*variant))?, self.name(*variant))))
            .collect();
        match in_short(&away) {
            Some(short) if whole.split_whitespace().count() > SHORT_MOST => {
                let median = if all.len() > variants.len() { " (median)" } else { "" };
                let lost = lost_in_short(all);
                let short = format!("After {}, {short}{median}{lost}.", list(&done));
                std::iter::once(short).chain(parts.into_iter().map(|part| part + ".")).collect()
            }
            _ => vec![whole],
        }
    }
}

/// Words of a possible headline.
const SHORT_MOST: usize = 25;

fn median_away(faults: &[&FaultFacts]) -> Option<f64> {
    let away: Vec<f64> = faults.iter().filter_map(|facts| facts.away_s).collect();
    (!away.is_empty()).then(|| median(&away))
}

/// `nothing was committed for 1.8 s with a and 3 s with b`; of more variants the extremes.
fn in_short(away: &[(f64, &str)]) -> Option<String> {
    let least = away.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let most = away.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let one = |(away, name): &(f64, &str)| format!("{} with {name}", seconds(*away));
    Some(match away {
        [only] => format!("{} committed nothing for {}", only.1, seconds(only.0)),
        [first, second] => {
            format!("nothing was committed for {} and {}", one(first), one(second))
        }
        _ => format!("nothing was committed for {} to {}", one(least), one(most)),
    })
}

/// `; up to 44 confirmed transactions were lost`, of all trials; empty without a promotion.
fn lost_in_short(faults: &[FaultFacts]) -> String {
    let all = || faults.iter().filter_map(|facts| facts.lost);
    let shown = all().map(|(least, _)| least).max();
    match (shown, all().map(|(_, most)| most).max()) {
        (Some(0), Some(0)) => "; no confirmed transaction was lost".to_owned(),
        (Some(0), Some(n)) => {
            let most = count(n, "confirmed transaction");
            format!("; no loss was shown, and at most {most} could be missing")
        }
        (_, Some(1)) => "; up to 1 confirmed transaction was lost".to_owned(),
        (_, Some(n)) => format!("; up to {n} confirmed transactions were lost"),
        (_, None) => String::new(),
    }
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

fn part(name: &str, faults: &[&FaultFacts]) -> String {
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
    text += &match (n, n_all) {
        (0, 1) => ", not recovered by the end of the measurement".to_owned(),
        (0, n_all) => {
            format!(", not recovered by the end of the measurement in any of {n_all} faults")
        }
        _ => format!(", recovered after {}", with_range(&recovered)),
    };
    if n > 0 && n < n_all {
        text += &format!(
            "; not recovered by the end of the measurement in {} of {n_all} faults",
            n_all - n
        );
    }
    text + &lost(faults)
}

/// `, lost 40 to 44 confirmed transactions`, of all trials; empty without a promotion.
fn lost(faults: &[&FaultFacts]) -> String {
    let all: Vec<(u64, u64)> = faults.iter().filter_map(|facts| facts.lost).collect();
    let least = all.iter().map(|(least, _)| *least).min();
    let most = all.iter().map(|(_, most)| *most).max();
    let per = if all.len() > 1 { " per trial" } else { "" };
    match (least, most) {
        (Some(0), Some(0)) => ", lost no confirmed transaction".to_owned(),
        (Some(least), Some(most)) if least == most => {
            format!(", lost {}{per}", count(least, "confirmed transaction"))
        }
        (Some(0), Some(most)) if all.iter().all(|(least, _)| *least == 0) => {
            format!(", no loss shown (at most {}{per})", count(most, "confirmed transaction"))
        }
        (Some(least), Some(most)) => {
            format!(", lost {least} to {}{per}", count(most, "confirmed transaction"))
        }
        _ => String::new(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_said() {
        let check = |all: &[Option<(u64, u64)>], expected: &str| {
            let facts: Vec<FaultFacts> = all
                .iter()
                .map(|lost| FaultFacts { lost: *lost, ..FaultFacts::default() })
                .collect();
            assert_eq!(lost(&facts.iter().collect::<Vec<_>>()), expected);
        };
        check(&[None], "");
        check(&[Some((0, 0))], ", lost no confirmed transaction");
        check(&[Some((40, 40))], ", lost 40 confirmed transactions");
        check(&[Some((40, 44))], ", lost 40 to 44 confirmed transactions");
        check(&[Some((0, 0)), Some((2, 5))], ", lost 0 to 5 confirmed transactions per trial");
        check(&[Some((0, 32))], ", no loss shown (at most 32 confirmed transactions)");
    }

    #[test]
    fn a_headline_says_how_long_nothing_was_committed() {
        let check = |away: &[(f64, &str)], expected: Option<&str>| {
            assert_eq!(in_short(away).as_deref(), expected);
        };
        check(&[], None);
        check(&[(1.5, "a")], Some("a committed nothing for 1.5 s"));
        let two = [(1.5, "a"), (3.0, "b")];
        check(&two, Some("nothing was committed for 1.5 s with a and 3 s with b"));
        let three = [(2.0, "a"), (1.0, "b"), (3.0, "c")];
        check(&three, Some("nothing was committed for 1 s with b to 3 s with c"));
        let lost = |all: &[(u64, u64)]| {
            let of = |lost: &(u64, u64)| FaultFacts { lost: Some(*lost), ..FaultFacts::default() };
            lost_in_short(&all.iter().map(of).collect::<Vec<_>>())
        };
        assert_eq!(lost(&[]), "");
        assert_eq!(lost(&[(0, 0), (0, 0)]), "; no confirmed transaction was lost");
        assert_eq!(
            lost(&[(0, 0), (0, 32)]),
            "; no loss was shown, and at most 32 confirmed transactions could be missing"
        );
        assert_eq!(lost(&[(0, 0), (40, 44)]), "; up to 44 confirmed transactions were lost");
    }

    #[test]
    fn faults_of_all_trials_are_one_sentence() {
        let one = |away: f64, recovered_after_s: Option<f64>| FaultFacts {
            away_s: Some(away),
            recovered_after_s,
            ..FaultFacts::default()
        };
        let check = |faults: &[FaultFacts], expected: &str| {
            assert_eq!(part("pg", &faults.iter().collect::<Vec<_>>()), expected);
        };
        check(&[one(4.2, Some(5.5))], "pg committed nothing for 4.2 s, recovered after 5.5 s");
        check(
            &[one(4.0, Some(5.0)), one(6.0, None), one(5.0, Some(7.0))],
            "pg committed nothing for 5 s (median of 3, range 4 s to 6 s), recovered after 6 s (median of 2, \
             range 5 s to 7 s); not recovered by the end of the measurement in 1 of 3 faults",
        );
        check(
            &[one(9.0, None), one(9.0, None)],
            "pg committed nothing for 9 s (median of 2, range 9 s to 9 s), not recovered by the end of the measurement \
             in any of 2 faults",
        );
        check(
            &[one(9.0, None)],
            "pg committed nothing for 9 s, not recovered by the end of the measurement",
        );
    }
}
