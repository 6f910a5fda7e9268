//! What pairing does not remove: drifting differences, copied data sets, runs not interleaved.

use std::collections::BTreeSet;

use crate::cells::Measured;
use crate::join::Joined;
use crate::statistics::t_two_sided_p;
use crate::words::{count, list, percent};
use crate::{Caveat, CaveatKind, Findings};

use super::course::slope_and_p;
use super::{place_name, sorted};

/// Of false alarms, for all comparisons of a study together.
const ALPHA: f64 = 0.01;
const NAMED_MOST: usize = 3;

pub(super) fn caveats(
    joined: &Joined<'_>,
    measured: &[Measured],
    findings: &Findings,
) -> Vec<Caveat> {
    let found = [
        drifting_differences(joined, measured, findings),
        one_data_set(joined, findings),
        separate_runs(joined, findings),
    ];
    found.into_iter().flatten().collect()
}

/// A main metric's differences of logarithms, with block and distance from the baseline in trials.
struct Differences {
    variant: usize,
    step: usize,
    /// Block, trials later, difference.
    points: Vec<(f64, f64, f64)>,
}

fn differences(joined: &Joined<'_>, measured: &[Measured]) -> Vec<Differences> {
    let numbers: std::collections::BTreeMap<(usize, u32), u32> =
        joined.trials.iter().map(|t| ((t.variant, t.block), t.number)).collect();
    let mut all = Vec::new();
    for (variant, record) in joined.variants.iter().enumerate() {
        let Some(baseline) = record.baseline else { continue };
        for (step, &metric) in joined.main.iter().enumerate() {
            let log = |variant: usize, block: u32| {
                let is_it = |m: &&Measured| (m.variant, m.step, m.block) == (variant, step, block);
                let value = measured.iter().find(is_it)?.value(metric)?;
                (value > 0.0).then(|| value.ln())
            };
            let blocks: BTreeSet<u32> =
                measured.iter().filter(|m| m.variant == variant).map(|m| m.block).collect();
            let point = |&block: &u32| {
                let (our, their) =
                    (numbers.get(&(variant, block))?, numbers.get(&(baseline, block))?);
                let later = f64::from(*our) - f64::from(*their);
                Some((f64::from(block), later, log(variant, block)? - log(baseline, block)?))
            };
            let points: Vec<(f64, f64, f64)> = blocks.iter().filter_map(point).collect();
            all.push(Differences { variant, step, points });
        }
    }
    all
}

/// They change from block to block, or with the distance from the baseline in the block.
fn drifting_differences(
    joined: &Joined<'_>,
    measured: &[Measured],
    findings: &Findings,
) -> Option<Caveat> {
    if !joined.interleaved || joined.n_first > 0 {
        return None;
    }
    let all = differences(joined, measured);
    let matters = findings.threshold.max(0.01).ln_1p();
    let level = ALPHA / all.len().max(1) as f64;
    let mut parts = Vec::new();
    let (mut variants, mut steps) = (Vec::new(), Vec::new());
    for one in &all {
        let by_block: Vec<(f64, f64)> = one.points.iter().map(|(b, _, d)| (*b, *d)).collect();
        let Some((slope, p)) = slope_and_p(&by_block) else { continue };
        let change = slope * (by_block[by_block.len() - 1].0 - by_block[0].0);
        if p <= level && change.abs() >= matters {
            parts.push(format!(
                "{} vs. {}: {} from the first to the last of {}",
                place_name(findings, one.variant, one.step),
                baseline_name(findings, one.variant),
                percent(change.exp_m1() * 100.0),
                count(by_block.len() as u64, "block"),
            ));
            variants.push(one.variant);
            steps.push(one.step);
        }
    }
    let within = within_blocks(&all, matters);
    parts.extend(within.map(|(per_trial, n)| {
        format!(
            "within blocks, results changed by {} from each trial to the next (over {})",
            percent(per_trial.exp_m1() * 100.0),
            count(n, "block"),
        )
    }));
    if parts.is_empty() {
        return None;
    }
    let more = parts.len().saturating_sub(NAMED_MOST);
    parts.truncate(NAMED_MOST);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Some(Caveat {
        kind: CaveatKind::DriftingDifferences,
        message: format!(
            "Differences between variants drift, which pairing by block does not cancel: {}{more}.",
            parts.join("; ")
        ),
        advice:
            "Look for something that affects variants unequally over time: a table that grows, a \
             cache that fills, throttling. A drift within blocks cancels over two blocks in \
             opposite order, so use an even number of repetitions."
                .to_owned(),
        variants: sorted(variants.into_iter()),
        steps: sorted(steps.into_iter()),
    })
}

fn baseline_name(findings: &Findings, variant: usize) -> &str {
    let baseline = findings.variants[variant].baseline;
    baseline.map_or("its baseline", |baseline| findings.variants[baseline].name.as_str())
}

/// Change per trial within blocks, and the number of blocks, if significant and relevant: the slope
/// of the differences (less their means) over the variant's distance from the baseline. Steps of a
/// trial share its noise, and variants of a block share the baseline, so their means count once.
fn within_blocks(all: &[Differences], matters: f64) -> Option<(f64, u64)> {
    // Sums of products and squares over the comparisons of a block.
    let mut blocks: std::collections::BTreeMap<u64, (f64, f64)> = std::collections::BTreeMap::new();
    for one in all {
        let n = one.points.len() as f64;
        let (later, off) = (
            one.points.iter().map(|(_, later, _)| later).sum::<f64>() / n,
            one.points.iter().map(|(.., d)| d).sum::<f64>() / n,
        );
        for (block, x, y) in &one.points {
            let sums = blocks.entry(*block as u64).or_default();
            sums.0 += (x - later) * (y - off);
            sums.1 += (x - later).powi(2);
        }
    }
    let n = blocks.len();
    let squares: f64 = blocks.values().map(|(_, xx)| xx).sum();
    if n < super::course::BLOCKS_LEAST || squares <= 0.0 {
        return None;
    }
    let slope = blocks.values().map(|(xy, _)| xy).sum::<f64>() / squares;
    // Blocks are independent: the error is that of their residuals.
    let left: f64 = blocks.values().map(|(xy, xx)| (xy - slope * xx).powi(2)).sum();
    let error = (left * n as f64 / (n as f64 - 1.0)).sqrt() / squares;
    let p = if error > 0.0 { t_two_sided_p(slope / error, n as f64 - 2.0) } else { 0.0 };
    (p <= ALPHA && slope.abs() >= 0.1 * matters).then_some((slope, n as u64))
}

/// The difference between data sets that variants' repetitions copy is in effects, not in bounds.
fn one_data_set(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let keys = |variant: usize| -> Option<BTreeSet<&str>> {
        let own = joined.trials.iter().filter(|trial| trial.variant == variant);
        own.filter_map(|trial| trial.finished()).map(|ended| ended.data.key.as_deref()).collect()
    };
    let finished = |variant: usize| findings.variants[variant].finished;
    let mut of = Vec::new();
    for (variant, facts) in findings.variants.iter().enumerate() {
        let Some(baseline) = facts.baseline else { continue };
        let (Some(ours), Some(theirs)) = (keys(variant), keys(baseline)) else { continue };
        let is_copied = |keys: &BTreeSet<&str>, n: u32| n >= 2 && keys.len() == 1;
        if ours != theirs
            && (is_copied(&ours, finished(variant)) || is_copied(&theirs, finished(baseline)))
        {
            of.extend([variant, baseline]);
        }
    }
    if of.is_empty() {
        return None;
    }
    let of = sorted(of.into_iter());
    let names: Vec<&str> = of.iter().map(|&v| findings.variants[v].name.as_str()).collect();
    Some(Caveat {
        kind: CaveatKind::OneDataSet,
        message: match joined.n_first {
            0 => format!(
                "Each variant's repetitions start from copies of one data set, and these variants have \
                 different ones: {}.",
                list(&names)
            ),
            _ => "Each run's trials start from copies of one data set; the two runs have different ones."
                .to_owned(),
        },
        advice:
            "Two data sets with the same contents may be laid out differently, and that difference \
                 is not in the confidence intervals: if data sets have a standard deviation of \
                 1 %, about 18 of 100 studies with 5 repetitions have a false positive, and more \
                 with 10. Set `reuse = false` to populate anew in each trial."
                .to_owned(),
        variants: of,
        steps: Vec::new(),
    })
}

fn separate_runs(joined: &Joined<'_>, findings: &Findings) -> Option<Caveat> {
    let compared = findings.comparisons.iter().filter(|c| c.variant >= joined.n_first);
    if joined.n_first == 0 || compared.clone().count() == 0 {
        return None;
    }
    Some(Caveat {
        kind: CaveatKind::SeparateRuns,
        message:
            "The two runs were measured one after the other and are not paired by block: whatever \
                  changed on the machine between them looks like an effect."
                .to_owned(),
        advice:
            "Run both builds in the same blocks (`dyno gate OLD NEW`). METHOD.md says how often a \
             gate fails because the machine was 2 % slower in one of the runs."
                .to_owned(),
        variants: sorted(compared.flat_map(|c| [c.variant, c.baseline])),
        steps: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use dyno_record::Run;
    use dyno_units::Seed;

    use crate::fixtures::run;
    use crate::{CaveatKind, Findings, Options, analyse, analyse_against};

    fn has(findings: &Findings, kind: CaveatKind) -> bool {
        findings.caveats.iter().any(|caveat| caveat.kind == kind)
    }

    /// Eight blocks, every second reversed; b drifts from a by `per_block`, all by `per_trial`.
    fn drifting(per_block: f64, per_trial: f64, seed: u64) -> Run {
        let mut random = Seed(seed).stream();
        let noise: Vec<f64> = (0..16).map(|_| 0.002 * random.normal()).collect();
        let place = |variant: usize, block: u32| {
            if block.is_multiple_of(2) { variant } else { 1 - variant }
        };
        let mut run = run(&["a", "b"], &[4], 8, |variant, _, block| {
            let later = f64::from(block) * 2.0 + place(variant, block) as f64;
            let log = per_block * f64::from(block) * variant as f64
                + per_trial * later
                + noise[block as usize * 2 + variant];
            1_000.0 * log.exp()
        });
        for (plan, trial) in run.manifest.trials.iter_mut().zip(&mut run.trials) {
            let block = plan.block - 1;
            plan.number = block * 2 + place(plan.variant, block) as u32 + 1;
            trial.number = plan.number;
        }
        run
    }

    #[track_caller]
    fn check(per_block: f64, per_trial: f64, expected: bool) {
        let findings = analyse(&[drifting(per_block, per_trial, 5)], &Options::default());
        assert_eq!(has(&findings, CaveatKind::DriftingDifferences), expected);
    }

    #[test]
    fn differences_that_drift_are_a_caveat() {
        check(0.0, 0.0, false);
        check(0.01, 0.0, true);
        check(0.0, 0.01, true);
        // Pairing removes drift of whole blocks, which has its own caveat.
        let mut whole = drifting(0.0, 0.0, 5);
        for trial in &mut whole.trials {
            let factor = 1.02_f64.powi(trial.block as i32);
            trial.steps[0] = crate::fixtures::step_summary(0, 1_000.0 * factor, 0.004 / factor);
        }
        let findings = analyse(&[whole], &Options::default());
        assert!(has(&findings, CaveatKind::Drift));
        assert!(!has(&findings, CaveatKind::DriftingDifferences));
    }

    #[test]
    fn noise_alone_is_rarely_called_a_drift_of_differences() {
        let is_called = |seed: &u64| {
            let findings = analyse(&[drifting(0.0, 0.0, *seed)], &Options::default());
            has(&findings, CaveatKind::DriftingDifferences)
        };
        assert!((100..200).filter(is_called).count() <= 4);
    }

    #[test]
    fn one_data_set_for_each_variant_is_a_caveat() {
        let with = |key: &dyn Fn(usize, u32) -> Option<String>| {
            let mut run = run(&["a", "b"], &[4], 3, |_, _, r| 1_000.0 + f64::from(r));
            for trial in &mut run.trials {
                trial.data.key = key(trial.variant, trial.repetition);
            }
            has(&analyse(&[run], &Options::default()), CaveatKind::OneDataSet)
        };
        assert!(with(&|variant, _| Some(format!("set{variant}"))));
        assert!(!with(&|_, _| Some("shared".to_owned())));
        assert!(!with(&|variant, r| Some(format!("set{variant}-{r}"))));
        // Populated for each trial, or an older record.
        assert!(!with(&|_, _| None));
    }

    #[test]
    fn two_runs_were_not_interleaved() {
        let first = run(&["a"], &[4], 3, |_, _, r| 1_000.0 + f64::from(r));
        let mut second = first.clone();
        second.folder = PathBuf::from("runs/second");
        let found = analyse_against(&first, &second, &Options::default());
        assert!(has(&found, CaveatKind::SeparateRuns));
        assert!(!has(&analyse(&[first], &Options::default()), CaveatKind::SeparateRuns));
    }
}
