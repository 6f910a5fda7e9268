//! Runs with repeated looks.

use dyno_record::{Run, StoppingRecord};
use dyno_units::{RandomStream, Seed};

use super::*;
use crate::fixtures::{run, wobble};
use crate::statistics::{Effect, decide_at};
use crate::{CaveatKind, MetricId, Options, Verdict, analyse, metrics};

const RULE: Rule = Rule { threshold: 0.03, confidence: 0.95 };

fn stopping(repetitions_min: u32, repetitions_max: u32) -> StoppingRecord {
    StoppingRecord { repetitions_min, repetitions_max }
}

#[test]
fn looks_become_rarer() {
    assert_eq!(looks(&stopping(3, 20)), [3, 4, 5, 7, 9, 12, 15, 19, 20]);
    assert_eq!(looks(&stopping(5, 5)), [5]);
    assert_eq!(looks(&stopping(1, 4)), [2, 3, 4]);
}

#[test]
fn the_levels_of_all_looks_add_up_to_the_whole() {
    for (min, max) in [(3, 3), (3, 4), (3, 10), (2, 40), (5, 100)] {
        let stopping = stopping(min, max);
        let before = looks(&stopping).len() as f64 - 1.0;
        let sum = before * level_of_a_look(&stopping, &RULE) + level_of_the_end(&stopping, &RULE);
        assert!((sum - 0.05).abs() < 1e-12, "{min} {max} {sum}");
    }
}

/// At most ten repetitions, with these so far; `noise` is relative to the usual.
fn partly(rates: &[f64], repetitions: &[u32], noise: f64) -> Run {
    let names = ["a", "b", "c", "d"];
    let rate = |variant: usize, step: usize, repetition: u32| {
        rates[variant] * (1.0 + noise * (wobble(variant, step, repetition) - 1.0))
    };
    let mut run = run(&names[..rates.len()], &[4], 10, rate);
    run.manifest.stopping = Some(stopping(3, 10));
    run.trials.retain(|trial| trial.repetition <= repetitions[trial.variant]);
    run
}

fn settled(run: &Run) -> Vec<usize> {
    decide(run).settled.into_iter().map(|(variant, _)| variant).collect()
}

#[test]
fn what_is_decided_is_settled_and_the_baseline_goes_on() {
    // b is half as fast; c as fast as a, which takes longer to see.
    let run = partly(&[1_000.0, 500.0, 1_000.0], &[3, 3, 3], 1.0);
    assert_eq!(settled(&run), [1]);
    assert_eq!(decide(&run).settled[0].1, "decided against a: worse at 4 clients");
    // Almost no spread settles all, and the baseline with them.
    let run = partly(&[1_000.0, 500.0, 1_000.0], &[3, 3, 3], 0.01);
    assert_eq!(settled(&run), [0, 1, 2]);
    assert_eq!(decide(&run).settled[0].1, "everything compared with it is decided");
    assert_eq!(decide(&run).settled[2].1, "decided against a: no difference at 4 clients");
}

#[test]
fn nothing_is_settled_before_the_first_look_or_without_being_asked_to() {
    assert!(settled(&partly(&[1_000.0, 2_000.0], &[2, 2], 0.01)).is_empty());
    // Six is no look: 3, 4, 5, 7, 9, 10.
    assert!(settled(&partly(&[1_000.0, 2_000.0], &[6, 6], 0.01)).is_empty());
    let mut plain = partly(&[1_000.0, 2_000.0], &[5, 5], 0.01);
    plain.manifest.stopping = None;
    assert_eq!(decide(&plain), StoppingDecision::default());
    let mut sequential = partly(&[1_000.0, 2_000.0], &[5, 5], 0.01);
    sequential.manifest.order = "sequential".to_owned();
    assert_eq!(decide(&sequential), StoppingDecision::default());
}

#[test]
fn what_is_settled_stays_settled_while_others_go_on() {
    let run = partly(&[1_000.0, 500.0, 1_000.0], &[9, 3, 9], 1.0);
    assert!(settled(&run).contains(&1));
    let run = partly(&[1_000.0, 500.0, 1_000.0], &[10, 3, 10], 1.0);
    assert_eq!(settled(&run), [0, 1, 2]);
    assert_eq!(decide(&run).settled[2].1, "all its repetitions are done");
}

#[test]
fn what_cannot_win_gives_its_time_away() {
    // b may be slightly better than a; c is far ahead of both.
    let run = partly(&[1_000.0, 1_015.0, 3_000.0], &[5, 5, 5], 2.0);
    let decision = decide(&run);
    // Then the baseline is not needed: c is decided.
    assert_eq!(
        decision.settled[1],
        (1, "it can no longer win: c is ahead by more than the threshold".to_owned())
    );
    // Whether b is better than a was not decided.
    let findings = analyse(&[run], &Options::default());
    let of_b = findings.comparisons.iter().filter(|c| c.variant == 1);
    assert!(of_b.clone().count() > 0);
    assert!(of_b.clone().all(|c| c.verdict == Verdict::Inconclusive));
}

#[test]
fn a_variant_that_others_are_compared_with_goes_on_for_them() {
    // b is clearly faster than a, and c, which takes longer, is compared with b.
    let mut run = partly(&[500.0, 1_000.0, 1_000.0], &[3, 3, 3], 1.0);
    run.manifest.variants[2].baseline = Some(1);
    assert_eq!(settled(&run), [0]);
    let mut run = partly(&[500.0, 1_000.0, 1_000.0], &[3, 3, 3], 0.01);
    run.manifest.variants[2].baseline = Some(1);
    assert_eq!(settled(&run), [0, 1, 2]);
}

#[test]
fn a_variant_alone_is_settled_when_it_is_known_well_enough() {
    assert!(settled(&partly(&[1_000.0], &[3], 6.0)).is_empty());
    let run = partly(&[1_000.0], &[5], 0.2);
    assert_eq!(
        decide(&run).settled,
        [(0, "its value is known to within the threshold".to_owned())]
    );
}

#[test]
fn findings_use_the_levels_of_the_looks() {
    let early = partly(&[1_000.0, 500.0, 1_000.0], &[5, 3, 5], 1.0);
    let mut plain = early.clone();
    plain.manifest.stopping = None;
    let (with, without) =
        (analyse(&[early], &Options::default()), analyse(&[plain], &Options::default()));
    let width = |findings: &crate::Findings, variant: usize| {
        let compared = findings.comparisons.iter().find(|c| c.variant == variant).unwrap();
        compared.relative.high.unwrap() - compared.relative.low.unwrap()
    };
    // At a look 0.5 % of the level, at the end 2.5 %; without a common error.
    assert!(with.comparisons.iter().all(|c| c.pooled.is_none()));
    assert!(width(&with, 1) > 2.0 * width(&without, 1));
    let of_own_pairs = |variant: usize| {
        let c = without.comparisons.iter().find(|c| c.variant == variant).unwrap();
        let own = c.pooled.expect("it has one").own_deviation;
        let n = f64::from(c.relative.n);
        let half = crate::statistics::t_quantile(0.975, n - 1.0) * own / n.sqrt();
        200.0 * half.sinh() * (1.0 + c.relative.value / 100.0)
    };
    assert!(width(&with, 2) > 1.1 * of_own_pairs(2));
    let own_width = |findings: &crate::Findings, variant: usize| {
        let cell = findings.cells.iter().find(|cell| cell.variant == variant).unwrap();
        let estimate = &cell.metrics[&metrics::THROUGHPUT];
        estimate.high.unwrap() - estimate.low.unwrap()
    };
    assert!(own_width(&with, 1) > 2.0 * own_width(&without, 1));
    assert!(own_width(&with, 2) > 1.1 * own_width(&without, 2));
    let verdict = |findings: &crate::Findings| findings.comparisons[0].verdict;
    assert_eq!((verdict(&with), verdict(&without)), (Verdict::Worse, Verdict::Worse));
    let facts = with.stopping.as_ref().expect("it may stop early");
    assert_eq!((facts.looks, facts.saved_trials), (6, 7));
    assert!((facts.confidence_of_looks - 0.995).abs() < 1e-12);
    assert_eq!(with.trials.iter().filter(|trial| trial.state == "not needed").count(), 7);
    assert_eq!(without.stopping, None);
}

#[test]
fn levels_follow_from_the_threshold_of_the_run() {
    let run = partly(&[1_000.0, 500.0, 1_000.0], &[5, 3, 5], 1.0);
    let with = |threshold: Option<f64>| {
        let options = Options { threshold, ..Options::default() };
        let findings = analyse(std::slice::from_ref(&run), &options);
        let bounds = |c: &crate::Comparison| (c.variant, c.relative.low, c.relative.high);
        findings.comparisons.iter().map(bounds).collect::<Vec<_>>()
    };
    // A threshold that settles nothing changes no level.
    assert_eq!(with(None), with(Some(0.000_1)));
    assert_eq!(with(None), with(Some(0.9)));
}

/// Level of the bounds of two variants' throughput.
fn level_of_bounds(runs: &[Run]) -> f64 {
    let findings = analyse(runs, &Options::default());
    let c = findings.comparisons.iter().find(|c| c.metric == metrics::THROUGHPUT).unwrap();
    let logs: Vec<f64> = c.relative.values.iter().map(|v| (v / 100.0).ln_1p()).collect();
    let effect = Effect::paired(&logs, 0.0).unwrap();
    let log = |percent: Option<f64>| (percent.unwrap() / 100.0).ln_1p();
    let value = 0.5 * (log(c.relative.high) - log(c.relative.low));
    Effect { value, ..effect }.p_value()
}

#[test]
fn every_extension_after_results_is_a_look() {
    // Three repetitions of two variants, the last of which may have been asked for later.
    let extended = |ended: &[Option<u32>]| {
        let mut run = run(&["a", "b"], &[4], 4, |v, s, r| 1_000.0 * wobble(v, s, r));
        let extension = |trials_ended: &Option<u32>| dyno_record::Extension {
            at_unix_ms: 1,
            trials_before: 6,
            trials_after: 8,
            trials_ended: *trials_ended,
        };
        run.manifest.extensions = ended.iter().map(extension).collect();
        run
    };
    let check = |ended: &[Option<u32>], looks: u32| {
        let run = extended(ended);
        assert_eq!(looks_at(&run), looks, "{ended:?}");
        let level = level_of_bounds(std::slice::from_ref(&run));
        assert!((level / (0.05 * share_of_look(looks)) - 1.0).abs() < 1e-6, "{ended:?}: {level}");
        let findings = analyse(&[run], &Options::default());
        let looked = findings.repeated_looks.map(|facts| facts.looks);
        assert_eq!(looked, (looks > 1).then_some(looks));
        let sentence = findings.answer.details.iter().any(|d| d.contains("opportunities to look"));
        assert_eq!(sentence, looks > 1);
    };
    check(&[], 1);
    check(&[Some(6)], 2);
    check(&[Some(2), Some(6)], 3);
    // Nothing new had ended before the extension.
    check(&[Some(0)], 1);
    check(&[Some(6), Some(6)], 2);
    // Nothing has ended since.
    check(&[Some(6), Some(8)], 2);
    // An older record.
    check(&[None], 2);
    // An extended run and another are three looks.
    let mut again = extended(&[]);
    again.folder = std::path::PathBuf::from("runs/again");
    again.manifest.created_unix_ms += 1;
    let level = level_of_bounds(&[extended(&[Some(6)]), again]);
    assert!((level / (0.05 / 12.0) - 1.0).abs() < 1e-6, "{level}");
}

#[test]
fn a_run_that_was_extended_keeps_its_common_error() {
    let mut run = run(&["a", "b", "c"], &[4], 4, |v, s, r| 1_000.0 * wobble(v, s, r));
    run.manifest.extensions.push(dyno_record::Extension {
        at_unix_ms: 1,
        trials_before: 9,
        trials_after: 12,
        trials_ended: Some(9),
    });
    let findings = analyse(&[run], &Options::default());
    assert!(findings.comparisons.iter().all(|c| c.pooled.is_some()));
}

/// Whichever of the two runs it is.
#[test]
fn a_comparison_of_two_runs_has_the_level_of_the_stricter_one() {
    let plain = || run(&["a"], &[4], 5, |v, s, r| 1_000.0 * wobble(v, s, r + 3));
    let mut looked = plain();
    looked.folder = std::path::PathBuf::from("runs/looked");
    looked.manifest.created_unix_ms += 1;
    looked.manifest.extensions = vec![dyno_record::Extension {
        at_unix_ms: 1,
        trials_before: 3,
        trials_after: 5,
        trials_ended: Some(3),
    }];
    let width = |first: &Run, second: &Run| {
        let found = crate::analyse_against(first, second, &Options::default());
        let c = found.comparisons.iter().find(|c| c.metric == metrics::THROUGHPUT).unwrap();
        c.relative.high.unwrap() - c.relative.low.unwrap()
    };
    let mut other = plain();
    other.folder = std::path::PathBuf::from("runs/other");
    let both_plain = width(&plain(), &other);
    let (first, second) = (width(&looked, &plain()), width(&plain(), &looked));
    assert!(first > 1.3 * both_plain && second > 1.3 * both_plain, "{first} {second} {both_plain}");
}

#[test]
fn joined_runs_are_repeated_looks() {
    let first = run(&["a", "b"], &[4], 3, |v, s, r| 1_000.0 * wobble(v, s, r));
    let again = |nth: u64| {
        let mut again = first.clone();
        again.manifest.created_unix_ms += nth;
        again.folder = std::path::PathBuf::from(format!("runs/again{nth}"));
        again
    };
    for (n, level) in [(1, 0.05), (2, 0.05 / 6.0), (3, 0.05 / 12.0)] {
        let runs: Vec<Run> = (0..n).map(again).collect();
        assert!((level_of_bounds(&runs) / level - 1.0).abs() < 1e-6, "{n}");
    }
    let sum: f64 = (2..1_000).map(share_of_look).sum();
    assert!(share_of_look(1) == 1.0 && sum < 0.5);
}

#[test]
fn open_verdicts_are_a_caveat() {
    let caveats = |run: Run| analyse(&[run], &Options::default()).caveats;
    let open = caveats(partly(&[1_000.0, 1_030.0], &[10, 10], 6.0));
    let found = open.iter().find(|c| c.kind == CaveatKind::NotSettled).expect("b is open");
    assert_eq!(found.variants, [1]);
    let clear = caveats(partly(&[4_000.0, 8_000.0], &[3, 3], 0.01));
    assert_eq!(clear, []);
}

#[test]
fn open_load_is_settled_by_response_time_and_not_by_the_offered_rate() {
    // Throughput is the offered rate; p95 differs by half.
    let p95_of = |variant: usize, repetition: u32| {
        let noise = 1.0 + 8.0 * (wobble(variant, 0, repetition) - 1.0);
        [0.002, 0.0021][variant] * noise
    };
    let mut run = run(&["a", "b"], &[4], 10, |_, _, _| 400.0);
    crate::fixtures::make_open(&mut run);
    run.manifest.stopping = Some(stopping(3, 10));
    for trial in &mut run.trials {
        let response_s = p95_of(trial.variant, trial.repetition);
        trial.steps[0] = crate::fixtures::step_summary(0, 400.0, response_s);
    }
    run.trials.retain(|trial| trial.repetition <= 3);
    assert_eq!(settled(&run), [] as [usize; 0], "the response times are open");
    let findings = analyse(&[run], &Options::default());
    let of = |metric: MetricId| {
        findings.comparisons.iter().find(|c| c.metric == metric).expect("compared").verdict
    };
    assert_eq!(of(metrics::THROUGHPUT), Verdict::NoDifference);
    assert_eq!(of(metrics::RESPONSE_P95), Verdict::Inconclusive);
    assert!(findings.caveats.iter().any(|c| c.kind == CaveatKind::NotSettled));
}

#[test]
fn a_step_whose_schedule_sets_its_length_is_settled_by_throughput() {
    use dyno_record::{OwnStepRecord, RoleRecord};
    let role = |name: &str, rate, quota| RoleRecord {
        name: name.to_owned(),
        clients: 1,
        pacing: "bursts".to_owned(),
        rate,
        quota,
        kinds: Vec::new(),
    };
    // Inserts at a rate take as long in both; queries differ by 3 %, with noise.
    let mut run = partly(&[1_000.0, 1_030.0], &[3, 3], 6.0);
    let roles = vec![role("inserter", Some(100.0), Some(6_000)), role("query", None, None)];
    let own = OwnStepRecord { roles, ends_by_quota: true, settle_s: 0.0 };
    run.manifest.steps[0].own = Some(own);
    for trial in &mut run.trials {
        trial.steps[0].ended_by = Some("quota".to_owned());
    }
    assert_eq!(settled(&run), [] as [usize; 0], "throughput is open");
    let findings = analyse(&[run], &Options::default());
    let of = |metric: MetricId| {
        findings.comparisons.iter().find(|c| c.metric == metric).expect("compared").verdict
    };
    assert_eq!(of(metrics::STEP_TIME), Verdict::NoDifference);
    assert_eq!(of(metrics::THROUGHPUT), Verdict::Inconclusive);
    assert_eq!(findings.steps[0].main_metric, metrics::THROUGHPUT);
}

/// After every block, simulated.
fn looked_at(effects: &[f64], noise: f64, random: &mut RandomStream) -> Series {
    let stopping = stopping(3, 12);
    let n = effects.len();
    let mut series = Series {
        baselines: (0..n).map(|v| (v > 0).then_some(0)).collect(),
        logs: vec![vec![Vec::new()]; n],
        more_is_better: vec![true],
        resolution: vec![0.0],
        repetitions: vec![0; n],
    };
    for block in 1..=stopping.repetitions_max {
        let open = settle(&series, &stopping, &RULE);
        if open.iter().all(Option::is_some) {
            break;
        }
        let drift = 0.05 * random.normal();
        for variant in 0..n {
            let value = effects[variant] + drift + noise * random.normal();
            if open[variant].is_none() {
                series.logs[variant][0].push((block, value));
                series.repetitions[variant] += 1;
            }
        }
    }
    series
}

/// Calls against the baseline, and repetitions of all variants.
fn simulate(effects: &[f64], noise: f64, random: &mut RandomStream) -> (Vec<Call>, u32) {
    let series = looked_at(effects, noise, random);
    let n = effects.len();
    let levels = levels(&series, &stopping(3, 12), &RULE);
    let effects: Vec<_> = (1..n).map(|v| (series.effect(v, 0, 0), levels[v])).collect();
    let calls = decide_at(&effects, &RULE).into_iter().map(|decision| decision.call).collect();
    (calls, series.repetitions.iter().sum())
}

#[test]
fn looking_often_makes_no_false_alarms() {
    let mut random = Seed(21).stream();
    let mut alarms = 0;
    for _ in 0..400 {
        let (calls, _) = simulate(&[0.0; 4], 0.02, &mut random);
        alarms += u32::from(calls.iter().any(|c| matches!(c, Call::Higher | Call::Lower)));
    }
    // 5 % would be 20; 31 has a probability of 1 % then.
    assert!(alarms <= 20, "{alarms} of 400");
}

#[test]
fn bounds_of_single_cells_hold_the_truth_whenever_they_were_stopped() {
    let (mut random, mut holds) = (Seed(23).stream(), 0);
    let truth = [0.0, 0.03, 0.06, -0.05];
    for _ in 0..400 {
        let series = looked_at(&truth, 0.02, &mut random);
        let levels = levels_of_cells(&series, &stopping(3, 12), &RULE);
        for (variant, level) in levels.into_iter().enumerate() {
            let logs: Vec<f64> = series.logs[variant][0].iter().map(|(_, log)| *log).collect();
            let (low, high) = Effect::paired(&logs, 0.0).unwrap().bounds(1.0 - level);
            holds += u32::from((low..=high).contains(&truth[variant]));
        }
    }
    // 95 % of 1600.
    assert!(holds >= 1_520, "{holds} of 1600");
}

#[test]
fn large_effects_save_most_repetitions() {
    let mut random = Seed(22).stream();
    let (mut found, mut repetitions) = (0, 0);
    for _ in 0..200 {
        let (calls, n) = simulate(&[0.0, 0.4, -0.4, 0.5], 0.01, &mut random);
        found += u32::from(calls == [Call::Higher, Call::Lower, Call::Higher]);
        repetitions += n;
    }
    assert!(found >= 198, "{found} of 200");
    // 48 trials each without stopping.
    assert!(f64::from(repetitions) / 200.0 < 24.0, "{repetitions}");
}
