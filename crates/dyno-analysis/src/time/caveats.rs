//! Unsteadiness as caveats: by half of a cell's trials, as one in a hundred looks so by chance.

use super::{Steadiness, TimeFacts};
use crate::words::{self, count, list, seconds, share};
use crate::{Caveat, CaveatKind, Cell, Findings, StallFacts};

const PLACES_NAMED: usize = 3;

pub(crate) fn caveats(findings: &Findings) -> Vec<Caveat> {
    [warm_up(findings), not_steady(findings), never_steady(findings), stalls(findings)]
        .into_iter()
        .flatten()
        .collect()
}

/// Trials with this verdict, if they are at least half.
fn half_agree(cell: &Cell, is_it: impl Fn(&TimeFacts) -> bool) -> Option<Vec<&TimeFacts>> {
    let found: Vec<&TimeFacts> = cell.time.iter().filter(|facts| is_it(facts)).collect();
    (!found.is_empty() && 2 * found.len() >= cell.time.len()).then_some(found)
}

fn caveat(
    findings: &Findings,
    kind: CaveatKind,
    cells: &[(&Cell, String)],
    (what, advice): (&str, String),
) -> Option<Caveat> {
    if cells.is_empty() {
        return None;
    }
    let place = |(cell, detail): &(&Cell, String)| {
        let (variant, step) = (&findings.variants[cell.variant], &findings.steps[cell.step]);
        format!("{} at {} ({detail})", variant.name, step.name)
    };
    let mut places: Vec<String> = cells.iter().take(PLACES_NAMED).map(place).collect();
    if cells.len() > PLACES_NAMED {
        places.push(format!("{} more", cells.len() - PLACES_NAMED));
    }
    let sorted = |of: fn(&Cell) -> usize| {
        let mut indexes: Vec<usize> = cells.iter().map(|(cell, _)| of(cell)).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    };
    Some(Caveat {
        kind,
        message: format!("{what}: {}.", list(&places)),
        advice,
        variants: sorted(|cell| cell.variant),
        steps: sorted(|cell| cell.step),
    })
}

fn warm_up(findings: &Findings) -> Option<Caveat> {
    let mut longest = 0.0_f64;
    let mut cells = Vec::new();
    for cell in &findings.cells {
        let is_it = |facts: &TimeFacts| facts.steadiness == Steadiness::SteadyLater;
        let Some(trials) = half_agree(cell, is_it) else { continue };
        let most = trials.iter().filter_map(|f| f.warm_up_s).fold(0.0, f64::max);
        longest = longest.max(most);
        let all = count(cell.time.len() as u64, "trial");
        cells.push((cell, format!("up to {most} s in {} of {all}", trials.len())));
    }
    let advice =
        format!("The results include these seconds. Lengthen `warm_up` by {longest} s or more.");
    let what = "The first measured seconds were still warm-up";
    caveat(findings, CaveatKind::WarmUpTooShort, &cells, (what, advice))
}

fn not_steady(findings: &Findings) -> Option<Caveat> {
    let mut cells = Vec::new();
    for cell in &findings.cells {
        // That has its own caveat.
        if half_agree(cell, is_never_steady).is_some() {
            continue;
        }
        let is_it =
            |facts: &TimeFacts| matches!(facts.steadiness, Steadiness::Trend | Steadiness::Changes);
        let Some(trials) = half_agree(cell, is_it) else { continue };
        cells.push((cell, course(cell, &trials)));
    }
    let advice = "Another period might have a different mean. See the charts by second; lengthen \
                  `warm_up` until throughput is level, or `duration` until it covers several ups \
                  and downs."
        .to_owned();
    let what = "Throughput changed during the measurement";
    caveat(findings, CaveatKind::NotSteady, &cells, (what, advice))
}

fn course(cell: &Cell, trials: &[&TimeFacts]) -> String {
    let trends: Vec<f64> = trials.iter().filter_map(|f| f.trend_percent).collect();
    let n_changes = trials.iter().map(|f| f.changes.len()).max().unwrap_or(0);
    let among = format!("in {} of {}", trials.len(), count(cell.time.len() as u64, "trial"));
    match trends.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())) {
        Some(trend) => format!("{} from beginning to end {among}", crate::words::percent(trend)),
        None if n_changes == 0 => format!("catching up after a stall {among}"),
        None => format!("{} {among}", count(n_changes as u64, "level change")),
    }
}

/// Long enough to judge, without a level kept to the end.
fn is_never_steady(facts: &TimeFacts) -> bool {
    facts.steadiness != Steadiness::TooShort && facts.steady_from_s.is_none()
}

fn never_steady(findings: &Findings) -> Option<Caveat> {
    let mut cells = Vec::new();
    for cell in &findings.cells {
        let Some(trials) = half_agree(cell, is_never_steady) else { continue };
        cells.push((cell, course(cell, &trials)));
    }
    let advice =
        "There was no steady state, so the mean depends on how long you measure. Read the charts \
                  by second rather than the means, or measure for longer."
            .to_owned();
    let what = "Throughput was not steady even at the end";
    caveat(findings, CaveatKind::NeverSteady, &cells, (what, advice))
}

fn stalls(findings: &Findings) -> Option<Caveat> {
    let mut cells = Vec::new();
    for cell in &findings.cells {
        let is_here = |s: &&StallFacts| (s.variant, s.step) == (cell.variant, cell.step);
        let all: Vec<&StallFacts> = findings.stalls.iter().filter(is_here).collect();
        if all.is_empty() {
            continue;
        }
        let length: f64 = all.iter().map(|stall| stall.length_s).sum();
        let missing: f64 = all.iter().map(|stall| stall.missing).sum();
        let done = cell.outcomes.get("committed").copied().unwrap_or(0) as f64;
        let rate = words::rate(missing);
        let detail = format!(
            "{}, {}{}; about {} fewer transactions than expected, {} of the total",
            count(all.len() as u64, "stall"),
            seconds(length),
            of_kinds(&findings.variants[cell.variant].workload, cell, &all),
            rate.trim_end_matches("/s"),
            share(missing / (done + missing).max(1.0)),
        );
        cells.push((cell, detail));
    }
    let advice =
        "The estimates include the stalls. The list of stalls shows which readings of server and machine \
                  moved first: evidence of where to look, not proof."
            .to_owned();
    let what = "Throughput stalled";
    caveat(findings, CaveatKind::Stalls, &cells, (what, advice))
}

/// `, only insert`, if others went on.
fn of_kinds(workload: &str, cell: &Cell, stalls: &[&StallFacts]) -> String {
    let mut kinds: Vec<&str> =
        stalls.iter().flat_map(|stall| &stall.kinds).map(String::as_str).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let ran = cell.kinds.values().filter(|n| **n > 0).count();
    match kinds.len() {
        0 => String::new(),
        n if n >= ran => String::new(),
        _ => {
            let title = |kind: &&str| crate::kinds::title(workload, kind).to_owned();
            format!(", only {}", list(&kinds.iter().map(title).collect::<Vec<_>>()))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::run;
    use crate::{Caveat, CaveatKind, Options, analyse};

    /// `second` gives throughput by trial and second.
    fn found(kind: CaveatKind, second: impl Fn(u32, usize) -> f64) -> Vec<Caveat> {
        let mut run = run(&["a"], &[4], 3, |_, _, _| 1000.0);
        for trial in &mut run.trials {
            let step = &mut trial.steps[0];
            step.measured_s = 60.0;
            step.intervals.start_s = (0..62).map(|i| f64::from(i) - 2.0).collect();
            let measured = (0..60).map(|i| second(trial.number, i));
            // The warm-up does not count.
            step.intervals.throughput = [10.0, 10.0].into_iter().chain(measured).collect();
        }
        let caveats = analyse(&[run], &Options::default()).caveats;
        caveats.into_iter().filter(|caveat| caveat.kind == kind).collect()
    }

    fn wobble(i: usize) -> f64 {
        [3.0, -4.0, 9.0, 0.0, -7.0, 5.0, -6.0][i % 7] * 2.0
    }

    #[test]
    fn a_warm_up_that_goes_on() {
        let slow = |_: u32, i: usize| if i < 12 { 700.0 } else { 1000.0 + wobble(i) };
        let caveats = found(CaveatKind::WarmUpTooShort, slow);
        assert!(
            caveats[0].message.contains("a at 4 clients (up to 12 s in 3 of 3 trials)"),
            "{caveats:?}"
        );
        assert!(caveats[0].advice.contains("by 12 s"), "{caveats:?}");
        // One trial of three may be chance.
        let once = |trial: u32, i: usize| slow(trial, if trial == 2 { i } else { i + 12 });
        assert_eq!(found(CaveatKind::WarmUpTooShort, once), []);
    }

    #[test]
    fn throughput_that_falls_all_the_time() {
        let falls = |_: u32, i: usize| 1000.0 - 5.0 * i as f64 + wobble(i);
        let caveats = found(CaveatKind::NeverSteady, falls);
        assert!(caveats[0].message.contains("from beginning to end in 3 of 3"), "{caveats:?}");
        assert_eq!(found(CaveatKind::NeverSteady, |_, i| 1000.0 + wobble(i)), []);
        assert_eq!(found(CaveatKind::NotSteady, falls), []);
    }

    #[test]
    fn a_level_that_changes_to_the_end_was_never_steady() {
        let steps = |_: u32, i: usize| if i < 50 { 1000.0 } else { 800.0 } + wobble(i);
        let caveats = found(CaveatKind::NeverSteady, steps);
        assert!(caveats[0].message.contains("1 level change in 3 of 3"), "{caveats:?}");
    }

    #[test]
    fn a_level_that_changes() {
        let steps = |_: u32, i: usize| if i < 40 { 1000.0 } else { 800.0 } + wobble(i);
        let caveats = found(CaveatKind::NotSteady, steps);
        assert!(caveats[0].message.contains("1 level change in 3 of 3"), "{caveats:?}");
    }

    #[test]
    fn a_stall_of_one_kind_is_told_as_that() {
        let of = |kinds: &[(&str, u64)], stalled: &[&str]| {
            let cell = crate::Cell {
                kinds: kinds.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
                ..crate::Cell::default()
            };
            let kinds = stalled.iter().map(|kind| (*kind).to_owned()).collect();
            let stall = crate::StallFacts { kinds, ..crate::StallFacts::default() };
            super::of_kinds("insert-benchmark", &cell, &[&stall])
        };
        let kinds = [("insert", 40), ("market", 31_000), ("delete", 0)];
        assert_eq!(of(&kinds, &["insert"]), ", only insert");
        assert_eq!(of(&kinds, &["market"]), ", only market query");
        assert_eq!(of(&kinds, &["insert", "market"]), "");
        assert_eq!(of(&kinds[..1], &["insert"]), "");
    }

    #[test]
    fn stalls_are_told_even_of_one_trial() {
        let stall = |trial: u32, i: usize| {
            if trial == 1 && (30..32).contains(&i) { 0.0 } else { 1000.0 + wobble(i) }
        };
        let caveats = found(CaveatKind::Stalls, stall);
        assert!(caveats[0].message.contains("1 stall, 2 s; about 2,000 "), "{caveats:?}");
    }
}
