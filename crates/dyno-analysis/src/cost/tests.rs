//! Prices whose frontier is known.

use dyno_record::Price;

use super::Dominated;
use crate::fixtures::{run, step_summary, wobble};
use crate::{Findings, Options, analyse};

/// Throughputs and prices.
fn found(points: &[(f64, Option<(f64, &str)>)]) -> Findings {
    let names: Vec<String> = (0..points.len()).map(|i| format!("m{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let rate =
        |variant: usize, step: usize, rep: u32| points[variant].0 * wobble(variant, step, rep);
    let mut run = run(&names, &[4], 3, rate);
    for (record, (_, price)) in run.manifest.variants.iter_mut().zip(points) {
        record.price_per_hour =
            price.map(|(amount, currency)| Price { amount, currency: currency.to_owned() });
    }
    analyse(&[run], &Options::default())
}

#[test]
fn work_for_money_and_for_cpu_time() {
    let cost = found(&[(1_000.0, Some((0.36, "USD"))), (2_000.0, None)]).cost;
    let work = cost[0].work_per_money.as_ref().unwrap();
    // 3.6 million transactions an hour for 36 cents.
    assert!((work.value / 1e7 - 1.0).abs() < 0.02, "{work:?}");
    assert_eq!((work.unit.as_str(), work.n), ("1/USD", 3));
    assert!(work.low.unwrap() < work.value && work.value < work.high.unwrap());
    let million = cost[0].money_per_million.as_ref().unwrap();
    assert!((million.value - 0.1).abs() < 0.002, "{million:?}");
    // The fixture's server uses 8 CPU seconds in ten.
    let per_cpu = cost[0].work_per_cpu_s.as_ref().unwrap();
    assert!((per_cpu.value / 1_250.0 - 1.0).abs() < 0.02, "{per_cpu:?}");
    // No price, no money; alone, no frontier.
    assert_eq!((&cost[1].work_per_money, cost[1].on_frontier), (&None, None));
    assert_eq!(cost[0].on_frontier, None);
}

#[test]
fn money_that_is_no_number_is_none() {
    for amount in [1e308, 1e-308, f64::INFINITY, f64::NAN] {
        let found = found(&[(1_000.0, Some((amount, "USD"))), (2_000.0, Some((1.0, "USD")))]);
        let money = found.cost.iter().flat_map(|c| [&c.work_per_money, &c.money_per_million]);
        let is_number = |one: &crate::Estimate| one.value.is_normal() && one.high.is_some();
        assert!(money.flatten().all(is_number), "{amount}: {:?}", found.cost);
        let texts = format!("{:?}", found.answer);
        assert!(!texts.contains("NaN") && !texts.contains("inf"), "{amount}: {texts}");
    }
}

/// It costs as much as any other.
#[test]
fn a_trial_that_commits_nothing_is_paid_for() {
    let price = |amount: f64| Some(Price { amount, currency: "USD".to_owned() });
    let mut run = run(&["a", "b"], &[4], 3, |_, _, _| 1_000.0);
    run.manifest.variants[0].price_per_hour = price(3.6);
    run.manifest.variants[1].price_per_hour = price(3.6);
    let is_idle = |trial: &&mut dyno_record::TrialSummary| trial.number == 1 || trial.variant == 1;
    for trial in run.trials.iter_mut().filter(is_idle) {
        trial.steps[0] = step_summary(0, 0.0, 1.0);
    }
    let cost = analyse(&[run], &Options::default()).cost;
    // A million transactions for a dollar in two trials, nothing in the third.
    let work = cost[0].work_per_money.as_ref().unwrap();
    assert_eq!((work.n, work.values.as_slice()), (3, &[0.0, 1e6, 1e6][..]));
    let million = cost[0].money_per_million.as_ref().unwrap();
    assert!((million.value - 1.5).abs() < 1e-6, "{million:?}");
    assert_eq!((million.n, million.no_bounds), (3, Some(crate::NoBounds::Zero)));
    let b = cost.iter().find(|facts| facts.variant == 1);
    assert_eq!(b.and_then(|facts| facts.money_per_million.as_ref()), None);
}

#[test]
fn the_frontier_holds_what_nothing_dominates() {
    let usd = |amount: f64| Some((amount, "USD"));
    let cost = found(&[
        (1_000.0, usd(1.0)),
        (2_000.0, usd(2.0)),
        (900.0, usd(1.5)),
        (1_985.0, usd(2.0)),
        (500.0, Some((9.0, "EUR"))),
    ])
    .cost;
    let found: Vec<(Option<bool>, Option<Dominated>)> =
        cost.iter().map(|facts| (facts.on_frontier, facts.dominated)).collect();
    assert_eq!(found[0], (Some(true), None));
    assert_eq!(found[1], (Some(true), None));
    assert_eq!(found[2], (Some(false), Some(Dominated { by: 0, surely: true })));
    assert_eq!(found[3], (Some(false), Some(Dominated { by: 1, surely: false })));
    // Another currency is not comparable.
    assert_eq!(found[4], (None, None));
}
