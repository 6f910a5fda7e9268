//! Whole records in, findings out.

use std::path::PathBuf;

use dyno_record::{EncodedHistogram, new_histogram};
use dyno_units::Seed;
use proptest::prelude::*;

use super::*;
use crate::fixtures::{fail, make_open, run, step_summary, wobble};
use crate::{Verdict, metrics};

fn findings(run: Run) -> Findings {
    analyse(&[run], &Options::default())
}

#[track_caller]
fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-6 * expected.abs(), "{actual} is not {expected}");
}

#[test]
fn a_cell_holds_the_value_of_each_repetition() {
    let rates = [100.0, 120.0, 140.0];
    let found = findings(run(&["a"], &[4], 3, |_, _, repetition| rates[repetition as usize]));
    let cell = &found.cells[0];
    let throughput = &cell.metrics[&metrics::THROUGHPUT];
    assert_eq!(throughput.values, rates);
    assert_eq!((throughput.min, throughput.max), (100.0, 140.0));
    // Logarithms 4.6052, 4.7875, 4.9416: mean 4.7781, s = 0.16843, t = 4.3027.
    near(throughput.value, 1_680_000_f64.cbrt());
    assert!((throughput.low.expect("three values") - 78.24).abs() < 0.01, "{throughput:?}");
    assert!((throughput.high.expect("three values") - 180.63).abs() < 0.02, "{throughput:?}");
    // 1000, 1200, 1400 transactions of two statements; 8 s of server CPU, 2 s of generator CPU.
    let cpu = &cell.metrics[&metrics::SERVER_CPU];
    near(cpu.values[0], 8000.0);
    near(cell.metrics[&metrics::GENERATOR_CPU].values[0], 1000.0);
    // 5000 bytes a second for ten seconds, without the warm-up's gigabytes.
    near(cell.metrics[&metrics::DISK_WRITTEN].values[0], 50.0);
    assert!(cell.absent[&metrics::DISK_READ].contains("disk.read_bytes_per_s"));
    assert_eq!(cell.outcomes["committed"], 3600);
    assert_eq!(cell.kinds["point_select"], 3600);
}

/// Three zeros are a total loss of throughput, but of CPU time the grain of the clock.
#[test]
fn nothing_at_all_is_worse_only_where_more_is_better() {
    let mut run = run(&["a", "b"], &[4], 3, |v, s, r| 1_000.0 * wobble(v, s, r));
    for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
        trial.steps[0].server_cpu_s = Some(0.0);
    }
    let verdict = |run: &Run, metric| {
        let found = findings(run.clone());
        let is_it = |c: &&crate::Comparison| c.metric == metric;
        let comparison = found.comparisons.iter().find(is_it).expect("it is compared");
        (comparison.verdict, comparison.relative.value)
    };
    assert_eq!(verdict(&run, metrics::SERVER_CPU), (Verdict::Inconclusive, -100.0));
    for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
        trial.steps[0] = step_summary(0, 0.0, 1.0);
    }
    assert_eq!(verdict(&run, metrics::THROUGHPUT), (Verdict::Worse, -100.0));
    // Two zeros may be chance.
    run.trials.truncate(4);
    assert_eq!(verdict(&run, metrics::THROUGHPUT), (Verdict::Inconclusive, -100.0));
}

#[test]
fn kinds_are_merged_into_one_histogram_before_a_quantile_is_taken() {
    let mut run = run(&["a"], &[1], 1, |_, _, _| 10.0);
    let kinds = &mut run.trials[0].steps[0].kinds;
    kinds.push(kinds[0].clone());
    let of = |ns: u64, n: u64| {
        let mut histogram = new_histogram();
        histogram.record_n(ns, n).unwrap();
        EncodedHistogram::encode(&histogram)
    };
    kinds[0].response = of(1_000_000, 900);
    kinds[1].response = of(50_000_000, 100);
    let metrics = &findings(run).cells[0].metrics;
    // The mean of the two p95 would be 25.5 ms.
    assert!((metrics[&metrics::RESPONSE_P95].value - 50_000.0).abs() < 50.0);
    assert!((metrics[&metrics::RESPONSE_P50].value - 1_000.0).abs() < 1.0);
    assert!((metrics[&metrics::RESPONSE_MEAN].value - 5_900.0).abs() < 10.0);
}

#[test]
fn a_metric_that_is_absent_says_why() {
    let mut run = run(&["a"], &[1], 1, |_, _, _| 100.0);
    run.trials[0].server.transport = "in process".to_owned();
    run.trials[0].steps[0].server_cpu_s = None;
    run.trials[0].steps[0].kinds[0].service = EncodedHistogram("!".to_owned());
    let absent = &findings(run).cells[0].absent;
    assert!(absent[&metrics::SERVER_CPU].contains("own process"));
    assert!(absent[&metrics::GENERATOR_CPU].contains("own threads"));
    assert!(absent[&metrics::SERVICE_P95].contains("cannot be decoded"));
}

#[test]
fn the_spectrum_rises_and_goes_as_far_as_there_are_observations() {
    let found = findings(run(&["a"], &[1], 2, |_, _, _| 50.0));
    let spectrum = &found.cells[0].spectrum;
    assert!(spectrum.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1), "{spectrum:?}");
    assert_eq!((spectrum[0].0, spectrum[spectrum.len() - 1].0), (0.0, 1.0));
    // 1000 transactions: the last quantile is 0.999.
    near(spectrum[spectrum.len() - 2].0, 0.999);
    let found = findings(run(&["a"], &[1], 2, |_, _, _| 50_000.0));
    let spectrum = &found.cells[0].spectrum;
    near(spectrum[spectrum.len() - 2].0, 0.99999);
    assert!((50..=70).contains(&spectrum.len()), "{}", spectrum.len());
}

#[test]
fn pairing_by_block_takes_out_what_blocks_share() {
    // The machine slows down from block to block; b is always 10 % faster than a.
    let drift = [1.0, 0.7, 0.4];
    let rate = move |variant: usize, step: usize, repetition: u32| {
        let faster = if variant == 1 { 1.1 } else { 1.0 };
        1000.0
            * faster
            * drift[repetition as usize]
            * (1.0 + 0.001 * wobble(variant, step, repetition))
    };
    let interleaved = run(&["a", "b"], &[4], 3, rate);
    let mut sequential = interleaved.clone();
    sequential.manifest.order = "sequential".to_owned();
    let of = |run: Run| {
        let found = findings(run);
        found.comparisons.into_iter().find(|c| c.metric == metrics::THROUGHPUT).expect("compared")
    };
    let (paired, apart) = (of(interleaved), of(sequential));
    assert!(paired.paired && !apart.paired);
    assert!((paired.relative.value - 10.0).abs() < 0.1);
    assert_eq!(paired.verdict, Verdict::Better);
    assert_eq!(paired.relative.values.len(), 3);
    assert_eq!(paired.p_value, Some(0.25));
    assert!((apart.relative.value - 10.0).abs() < 0.1);
    assert_eq!(apart.verdict, Verdict::Inconclusive);
    assert!(apart.repetitions_needed.expect("undecided") > 3);
    // Relative to the baseline's geometric mean, to agree with the ratio.
    assert_eq!(paired.absolute.unit, "1/s");
    assert!((paired.absolute.value - 65.4).abs() < 1.0);
}

#[test]
fn less_response_time_is_better() {
    let rate = |variant, step, repetition| {
        (if variant == 1 { 2000.0 } else { 1000.0 }) * wobble(variant, step, repetition)
    };
    let found = findings(run(&["a", "b"], &[4], 5, rate));
    for comparison in &found.comparisons {
        assert_eq!(comparison.verdict, Verdict::Better, "{:?}", comparison.metric);
    }
    // Without two of searches, one of quotas and four of faults.
    assert_eq!(found.comparisons.len(), found.metrics.compared().count() - 7);
    let corrected = found.comparisons[0].p_value_corrected.expect("five repetitions");
    assert_eq!(found.comparisons[0].p_value, Some(corrected));
}

#[test]
fn one_repetition_is_inconclusive() {
    let found = findings(run(&["a", "b"], &[4], 1, |variant, _, _| 100.0 + variant as f64));
    for comparison in &found.comparisons {
        assert_eq!(comparison.verdict, Verdict::Inconclusive);
        assert_eq!(comparison.repetitions_needed, None);
        assert_eq!((comparison.relative.low, comparison.p_value), (None, None));
        assert_eq!(comparison.relative.n, 1);
    }
}

#[test]
fn identical_variants_show_no_difference() {
    let found = findings(run(&["a", "b"], &[1, 8], 5, |_, step, repetition| {
        1000.0 * wobble(0, step, repetition)
    }));
    assert!(found.comparisons.iter().all(|c| c.verdict == Verdict::NoDifference));
}

#[test]
fn the_resolution_of_a_histogram_is_not_taken_for_an_effect() {
    // 50 and 51 ns are neighbouring classes: the true difference is between nothing and two.
    for repetitions in [3, 30] {
        let p50 = neighbouring_classes(repetitions).relative;
        let (low, high) = (p50.low.expect("it has bounds"), p50.high.expect("it has bounds"));
        assert!(low < 0.5 && high > 3.5, "{p50:?}");
    }
}

fn neighbouring_classes(repetitions: u32) -> crate::Comparison {
    let mut run = run(&["a", "b"], &[1], repetitions, |_, _, _| 1000.0);
    for trial in &mut run.trials {
        let mut histogram = new_histogram();
        let ns = if trial.variant == 0 { 50 } else { 51 };
        histogram.record_n(ns, 10_000).unwrap();
        trial.steps[0].kinds[0].response = EncodedHistogram::encode(&histogram);
    }
    let found = findings(run);
    let is_it = |c: &crate::Comparison| c.metric == metrics::RESPONSE_P50;
    found.comparisons.into_iter().find(is_it).expect("it is compared")
}

#[test]
fn failed_and_missing_trials_give_no_estimates() {
    let mut run = run(&["a", "b"], &[4], 3, |_, _, _| 1000.0);
    fail(&mut run, 2, "the server ended");
    run.trials.retain(|trial| trial.number != 6);
    let found = findings(run);
    let throughput = &found.comparisons[0];
    assert_eq!((throughput.relative.n, throughput.paired), (1, true));
    let states: Vec<&str> = found.trials.iter().map(|trial| trial.state.as_str()).collect();
    assert_eq!(states, ["finished", "failed", "finished", "finished", "finished", "missing"]);
    assert_eq!(found.trials[1].server_log, ["[ERROR] aborting"]);
    assert_eq!((found.variants[1].finished, found.variants[1].failed), (1, 1));
}

#[test]
fn a_variant_that_commits_nothing_is_worse_and_has_no_ratio() {
    let found = findings(run(
        &["a", "b"],
        &[4],
        3,
        |variant, _, _| {
            if variant == 0 { 1000.0 } else { 0.0 }
        },
    ));
    assert_eq!(found.comparisons.len(), 1, "{:?}", found.comparisons);
    let throughput = &found.comparisons[0];
    assert_eq!(throughput.verdict, Verdict::Worse);
    assert_eq!((throughput.relative.value, throughput.relative.low), (-100.0, None));
    assert!(found.cells[1].absent[&metrics::RESPONSE_P95].contains("no transaction"));
    // The other way round there is no ratio.
    let found = findings(run(&["a", "b"], &[4], 3, |variant, _, _| variant as f64 * 1000.0));
    assert!(found.comparisons.is_empty());
}

#[test]
fn low_and_high_concurrency_are_compared_by_geometric_means() {
    // Four CPUs: 1 and 4 clients are low, 16 is high.
    let rate = |variant: usize, step: usize, repetition: u32| {
        let faster = [[1.0, 1.0, 1.0], [2.0, 0.5, 3.0]][variant][step];
        1000.0 * faster * (1.0 + 0.001 * (wobble(variant, step, repetition) - 1.0))
    };
    let found = findings(run(&["a", "b"], &[1, 4, 16], 3, rate));
    let [low, high] = found.concurrency.as_slice() else { panic!("{:?}", found.concurrency) };
    assert!(low.relative.value.abs() < 0.01, "{low:?}");
    assert_eq!(low.verdict, Verdict::NoDifference);
    assert!((high.relative.value - 200.0).abs() < 0.1, "{high:?}");
    assert_eq!(high.verdict, Verdict::Better);
    // All steps of one kind.
    assert!(findings(run(&["a", "b"], &[1, 4], 3, rate)).concurrency.is_empty());
}

#[test]
fn a_group_of_one_load_says_what_the_load_says() {
    let rate = |variant: usize, step: usize, repetition: u32| {
        1000.0 * (1.0 + variant as f64 * 0.03) * wobble(variant, step, repetition)
    };
    let found = findings(run(&["a", "b", "c", "d"], &[4, 16, 32], 3, rate));
    let [low, high] = &found.concurrency[..2] else { panic!("{:?}", found.concurrency) };
    let own = |step: usize| {
        let is_it = |c: &&crate::Comparison| {
            (c.variant, c.step, c.metric) == (low.variant, step, metrics::THROUGHPUT)
        };
        found.comparisons.iter().find(is_it).expect("it is compared")
    };
    assert_eq!((&low.relative, low.verdict), (&own(0).relative, own(0).verdict));
    // A mean of two loads has its own common error, of at least six degrees of freedom.
    let width = |e: &crate::Estimate| {
        (1.0 + e.high.unwrap() / 100.0).ln() - (1.0 + e.low.unwrap() / 100.0).ln()
    };
    let logs: Vec<f64> = high.relative.values.iter().map(|v| (v / 100.0).ln_1p()).collect();
    let alone = crate::statistics::Effect::paired(&logs, 0.0).unwrap();
    assert!((width(&high.relative) / 2.0 / alone.half_width(0.95) - 1.0).abs() > 0.01);
}

#[test]
fn runs_of_the_same_thing_add_repetitions() {
    let first = run(&["a", "b"], &[4], 2, |_, _, repetition| 1000.0 + f64::from(repetition));
    let mut second = run(&["a", "b"], &[4], 3, |_, _, repetition| 1010.0 + f64::from(repetition));
    second.folder = PathBuf::from("runs/second");
    let found = analyse(&[first, second], &Options::default());
    assert_eq!(found.variants.len(), 2);
    assert_eq!(found.cells[0].metrics[&metrics::THROUGHPUT].n, 5);
    assert_eq!((found.comparisons[0].relative.n, found.comparisons[0].paired), (5, true));
    let mut repetitions: Vec<u32> =
        found.trials.iter().filter(|t| t.variant == 1).map(|t| t.repetition).collect();
    repetitions.sort_unstable();
    assert_eq!(repetitions, [1, 2, 3, 4, 5]);
}

#[test]
fn another_machine_or_version_is_another_variant() {
    let first = run(&["a"], &[4], 3, |_, _, _| 1000.0);
    let mut elsewhere = first.clone();
    elsewhere.manifest.environment.machine = "cloud".to_owned();
    let found = analyse(&[first.clone(), elsewhere], &Options::default());
    assert_eq!(found.variants[1].name, "a (cloud)");
    let last = found.variants[1].levels.last().expect("a further level");
    assert_eq!(last, &("machine".to_owned(), "cloud".to_owned()));
    assert_eq!(found.variants[1].baseline, Some(0));
    assert!(!found.comparisons[0].paired);
    assert_eq!(found.environment["machine"], "bench; cloud");
    let mut newer = first.clone();
    newer.trials.iter_mut().for_each(|trial| trial.server.version = "11.4.2".to_owned());
    let found = analyse(&[first, newer], &Options::default());
    assert_eq!(found.variants[1].name, "a (MariaDB 11.4.2)");
}

#[test]
fn a_run_can_be_compared_with_another_of_the_same_thing() {
    let first = run(&["a", "b"], &[4], 3, |_, _, r| 1000.0 * wobble(0, 0, r));
    let mut second = run(&["a", "b"], &[4], 3, |_, _, r| 500.0 * wobble(1, 0, r));
    second.folder = PathBuf::from("runs/second");
    let found = analyse_against(&first, &second, &Options::default());
    let names: Vec<&str> = found.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["a (first)", "b (first)", "a (second)", "b (second)"]);
    let baselines: Vec<Option<usize>> = found.variants.iter().map(|v| v.baseline).collect();
    assert_eq!(baselines, [None, Some(0), Some(0), Some(1)]);
    let verdict = |variant: usize| {
        let is_it =
            |c: &&crate::Comparison| c.variant == variant && c.metric == metrics::THROUGHPUT;
        found.comparisons.iter().find(is_it).expect("compared").verdict
    };
    assert_eq!((verdict(2), verdict(3)), (Verdict::Worse, Verdict::Worse));
}

#[test]
fn options_override_the_record() {
    let rate = |variant: usize, step: usize, repetition: u32| {
        (if variant == 1 { 1050.0 } else { 1000.0 })
            * (1.0 + 0.05 * (wobble(variant, step, repetition) - 1.0))
    };
    let run = run(&["a", "b"], &[4], 5, rate);
    let of = |threshold| {
        let options = Options { threshold, ..Options::default() };
        analyse(std::slice::from_ref(&run), &options).comparisons[0].verdict
    };
    assert_eq!((of(None), of(Some(0.1))), (Verdict::Better, Verdict::NoDifference));
}

#[test]
fn nothing_gives_empty_findings() {
    let found = analyse(&[], &Options::default());
    assert!(found.cells.is_empty() && found.variants.is_empty());
    assert_eq!(found.answer.headline, "No trial has finished yet.");
}

/// A/A studies: three equal variants, two steps, and noise that a trial's steps share.
#[test]
fn studies_without_an_effect_rarely_see_one() {
    let mut false_calls = 0;
    let studies = 60;
    for study in 0..studies {
        let noise = |variant: usize, step: usize, repetition: u32| {
            let seed = Seed(study).derive("trial", (variant * 100) as u64 + u64::from(repetition));
            let shared = seed.stream().normal();
            let own = seed.derive("step", step as u64).stream().exponential(1.0);
            1000.0 * (0.02 * shared - 0.02 * own).exp()
        };
        let found = findings(run(&["a", "b", "c"], &[1, 8], 3, noise));
        let is_false = |c: &crate::Comparison| {
            c.metric == metrics::THROUGHPUT && matches!(c.verdict, Verdict::Better | Verdict::Worse)
        };
        false_calls += u64::from(found.comparisons.iter().any(is_false));
    }
    // 5 % of 60 are 3; 8 or more have a probability below 1 %.
    assert!(false_calls <= 7, "{false_calls} of {studies}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Any record has findings, which survive JSON without infinities and NaN.
    #[test]
    fn findings_of_any_record_survive_json(
        rates in prop::collection::vec(prop_oneof![Just(0.0), 0.05..5_000.0_f64], 18),
        lost in prop::collection::vec(0..3_u8, 9),
        is_open in any::<bool>(),
        is_interleaved in any::<bool>(),
    ) {
        let mut run = run(&["a", "b", "c"], &[1, 8], 3, |variant, step, repetition| {
            rates[variant * 6 + step * 3 + repetition as usize]
        });
        for (number, fate) in (1..).zip(&lost) {
            match fate {
                0 => fail(&mut run, number, "it fell over"),
                1 => run.trials.retain(|trial| trial.number != number),
                _ => {}
            }
        }
        if is_open {
            make_open(&mut run);
        }
        if !is_interleaved {
            run.manifest.order = "sequential".to_owned();
        }
        let found = findings(run);
        let text = serde_json::to_string(&found).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Findings>(&text).unwrap(), &found);
        prop_assert!(!found.answer.headline.is_empty());
        for cell in &found.cells {
            for estimate in cell.metrics.values() {
                prop_assert!(estimate.min <= estimate.value * (1.0 + 1e-9));
                prop_assert!(estimate.value <= estimate.max * (1.0 + 1e-9));
            }
        }
        for c in &found.comparisons {
            prop_assert!(c.relative.min <= c.relative.value + 1e-6);
            prop_assert!(c.relative.value <= c.relative.max + 1e-6);
        }
    }
}
