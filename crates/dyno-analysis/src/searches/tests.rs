//! Records of searches with a known truth.

use dyno_record::{Run, SearchSummary};

use super::*;
use crate::fixtures::{self, wobble};
use crate::{CaveatKind, Findings, Options, Verdict, analyse};

/// `found` gets variant and repetition, and returns the lower end of a bracket of 5 % or a client.
fn searched(
    sought: &str,
    variants: &[&str],
    repetitions: u32,
    found: impl Fn(usize, u32) -> Option<f64>,
) -> Run {
    let mut run = fixtures::run(variants, &[64], repetitions, |_, _, _| 500.0);
    let step = &mut run.manifest.steps[0];
    step.name = "highest rate with p99 ≤ 20 ms".to_owned();
    step.search = Some(SearchRecord {
        sought: sought.to_owned(),
        statistic: "p99".to_owned(),
        bound_us: 20_000.0,
        limit: "p99 ≤ 20 ms".to_owned(),
        precision: 0.05,
    });
    for trial in &mut run.trials {
        let found = found(trial.variant, trial.repetition - 1);
        trial.steps[0].search = Some(SearchSummary {
            found,
            lowest_broken: Some(match sought {
                "clients" => found.unwrap_or(1.0) + 1.0,
                _ => found.unwrap_or(1.0) * 1.05,
            }),
            settled: true,
            probes: Vec::new(),
        });
    }
    run
}

fn findings(run: Run) -> Findings {
    analyse(&[run], &Options::default())
}

#[test]
fn the_rate_that_was_found_is_estimated_compared_and_told() {
    let rate = |variant: usize, repetition| {
        let truth = if variant == 1 { 1500.0 } else { 1000.0 };
        Some(truth * wobble(variant, 0, repetition))
    };
    let found = findings(searched("rate", &["a", "b"], 5, rate));
    let estimate = &found.cells[1].metrics[&metrics::RATE_AT_LIMIT];
    // The middle of the bracket.
    assert!((estimate.value - 1537.0).abs() < 15.0 && estimate.unit == "1/s", "{estimate:?}");
    let compared: Vec<MetricId> = found.comparisons.iter().map(|c| c.metric).collect();
    assert_eq!(compared, [metrics::RATE_AT_LIMIT, metrics::SERVER_CPU]);
    assert_eq!(found.comparisons[0].verdict, Verdict::Better);
    let headline = &found.answer.headline;
    assert!(headline.starts_with("b sustains "), "{headline}");
    assert!(headline.contains(" more load than a: 1,"), "{headline}");
    assert!(headline.contains("within p99 ≤ 20 ms"), "{headline}");
    assert_eq!(found.searches.len(), 10);
    assert_eq!(found.concurrency, []);
}

#[test]
fn the_most_clients_are_compared_with_their_throughput() {
    let clients = |variant: usize, _| Some(if variant == 1 { 20.0 } else { 40.0 });
    let found = findings(searched("clients", &["a", "b"], 5, clients));
    let compared: Vec<(MetricId, Verdict)> =
        found.comparisons.iter().map(|c| (c.metric, c.verdict)).collect();
    assert_eq!(compared[0], (metrics::CLIENTS_AT_LIMIT, Verdict::Worse));
    assert_eq!(compared[1].0, metrics::THROUGHPUT);
    let headline = &found.answer.headline;
    assert!(headline.contains(": 20 clients against 40 clients within p99 ≤ 20 ms"), "{headline}");
}

#[test]
fn one_variant_is_described_and_the_best_of_several_is_named() {
    let found = findings(searched("rate", &["a"], 3, |_, repetition| {
        Some(1000.0 * wobble(0, 0, repetition))
    }));
    let headline = &found.answer.headline;
    assert!(headline.starts_with("a sustains "), "{headline}");
    assert!(headline.contains("search precision: 5 %"), "{headline}");
    let found = findings(searched("rate", &["a", "b", "c"], 3, |variant, repetition| {
        Some(1000.0 * (variant as f64 + 1.0) * wobble(variant, 0, repetition))
    }));
    let headline = &found.answer.headline;
    assert!(headline.starts_with("c sustains the highest rate within p99 ≤ 20 ms: "), "{headline}");
}

#[test]
fn a_cell_of_levels_on_the_same_grid_is_not_certain_either() {
    // Repetitions at the same point do not locate the truth in the bracket.
    for n in [3, 30] {
        let found = findings(searched("rate", &["a"], n, |_, _| Some(1396.0)));
        let estimate = &found.cells[0].metrics[&metrics::RATE_AT_LIMIT];
        let middle = 1396.0 * 1.05_f64.sqrt();
        assert!((estimate.value / middle - 1.0).abs() < 1e-9, "{estimate:?}");
        // ln 1.05 / √12 times √(1 + 1 / n), t of 32 degrees of freedom, or many.
        let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
        let expected = if n == 3 { 1.0337 } else { 1.0285 };
        assert!((high / middle - expected).abs() < 0.0005, "{estimate:?}");
        assert!((low * high / middle.powi(2) - 1.0).abs() < 1e-9, "{estimate:?}");
        assert!(low < 1396.0 && high > 1396.0 * 1.05, "{estimate:?}");
    }
}

#[test]
fn levels_on_the_same_grid_are_not_taken_for_certain() {
    // In neighbouring brackets true loads differ by almost nothing, or by twice the precision.
    for n in [3, 30] {
        let rate = |variant: usize, _| Some(if variant == 1 { 1050.0 } else { 1000.0 });
        let found = findings(searched("rate", &["a", "b"], n, rate));
        let is_it = |c: &&crate::Comparison| c.metric == metrics::RATE_AT_LIMIT;
        let effect = &found.comparisons.iter().find(is_it).expect("it is compared").relative;
        let (low, high) = (effect.low.unwrap(), effect.high.unwrap());
        assert!(low < 1.5 && high > 8.5, "{effect:?}");
    }
}

#[test]
fn the_value_of_a_search_is_the_middle_of_its_bracket() {
    let check = |sought: &str, held: Option<f64>, broken: Option<f64>, expected: Option<f64>| {
        let run = searched(sought, &["a"], 1, |_, _| Some(1.0));
        let record = run.manifest.steps[0].search.clone().expect("it searches");
        let search =
            SearchSummary { found: held, lowest_broken: broken, settled: true, probes: Vec::new() };
        assert_eq!(value(&record, &search), expected, "{sought} {held:?} {broken:?}");
    };
    check("rate", Some(100.0), Some(121.0), Some(110.0));
    check("rate", Some(100.0), None, Some(100.0));
    check("rate", None, Some(121.0), None);
    // Whole clients: 20 is the most; of 100 and 121, any up to 120 may be.
    check("clients", Some(20.0), Some(21.0), Some(20.0));
    check("clients", Some(100.0), Some(122.0), Some(110.0));
}

#[test]
fn a_search_without_both_ends_is_a_caveat_and_gives_no_number() {
    let found = findings(searched("rate", &["a", "b"], 3, |variant, repetition| {
        (variant == 0).then(|| 1000.0 * wobble(0, 0, repetition))
    }));
    let cell = &found.cells[1];
    assert!(!cell.metrics.contains_key(&metrics::RATE_AT_LIMIT));
    assert!(
        cell.absent[&metrics::RATE_AT_LIMIT].contains("no load met the limit"),
        "{:?}",
        cell.absent
    );
    let caveat = found.caveats.iter().find(|one| one.kind == CaveatKind::UnsettledSearch);
    let caveat = caveat.expect("there is a caveat");
    assert!(
        caveat.message.contains("3 searches found no load that met the limit"),
        "{}",
        caveat.message
    );
    assert_eq!((&caveat.variants[..], &caveat.steps[..]), (&[1][..], &[0][..]));
}

#[test]
fn steps_that_search_nothing_know_nothing_of_it() {
    let found = findings(fixtures::run(&["a", "b"], &[4], 3, |_, _, _| 100.0));
    let is_sought =
        |metric: &MetricId| matches!(*metric, metrics::RATE_AT_LIMIT | metrics::CLIENTS_AT_LIMIT);
    assert!(!found.comparisons.iter().any(|c| is_sought(&c.metric)));
    for cell in &found.cells {
        assert!(!cell.metrics.keys().chain(cell.absent.keys()).any(is_sought));
    }
    assert_eq!(found.searches, []);
}
