//! Dips of a volume's limit that the study made: those found as stalls, their period and depth.

use super::AnswerWriter;
use crate::MadeDips;
use crate::statistics::median;
use crate::words::{count, number};

impl AnswerWriter<'_> {
    pub(super) fn made_dips(&self) -> Vec<String> {
        let all = &self.findings.made_dips;
        let mut volumes: Vec<&str> = all.iter().map(|dips| &*dips.volume).collect();
        volumes.sort_unstable();
        volumes.dedup();
        let of = |volume: &str| -> Vec<&MadeDips> {
            all.iter().filter(|dips| dips.volume == volume).collect()
        };
        volumes.into_iter().map(|volume| line(volume, &of(volume))).collect()
    }
}

fn line(volume: &str, dips: &[&MadeDips]) -> String {
    let sum = |of: fn(&MadeDips) -> u32| dips.iter().map(|one| of(one)).sum::<u32>();
    let middle = |of: fn(&MadeDips) -> Option<f64>| {
        let values: Vec<f64> = dips.iter().filter_map(|one| of(one)).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    let seconds = |value: f64| format!("{value:.1} s");
    let made = count(u64::from(sum(|d| d.made)), "time");
    let mut text =
        format!("Volume {volume} was slowed down {made}: {} detected as stalls", sum(|d| d.found));
    if let (Some(found), Some(made)) = (middle(|d| d.found_period_s), middle(|d| d.period_s)) {
        text += &format!(", {} apart (made {} apart)", seconds(found), seconds(made));
    }
    if let Some(left) = middle(|d| d.level_left) {
        text +=
            &format!("; throughput fell to {} % of its level between them", number(left * 100.0));
    }
    match sum(|d| d.others) {
        0 => text + "; no other stalls.",
        n => format!("{text}; {}.", count(u64::from(n), "other stall")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dips_of_all_trials_are_one_line() {
        let one = MadeDips {
            volume: "dipping".to_owned(),
            made: 3,
            found: 3,
            period_s: Some(10.0),
            found_period_s: Some(9.98),
            level_left: Some(0.018),
            ..MadeDips::default()
        };
        let check =
            |dips: &[&MadeDips], expected: &str| assert_eq!(line("dipping", dips), expected);
        check(
            &[&one, &MadeDips { others: 1, ..one.clone() }],
            "Volume dipping was slowed down 6 times: 6 detected as stalls, 10.0 s apart (made 10.0 s apart); \
             throughput fell to 1.8 % of its level between them; 1 other stall.",
        );
        // A single dip has no period; without bins there is no depth.
        let single = MadeDips {
            made: 1,
            found: 0,
            period_s: None,
            found_period_s: None,
            level_left: None,
            ..one
        };
        check(
            &[&single],
            "Volume dipping was slowed down 1 time: 0 detected as stalls; no other stalls.",
        );
    }
}
