//! Properties that every schedule must have.

use proptest::prelude::*;

use super::*;

fn slices(arrivals: Arrivals, rate: f64, count: usize) -> Vec<Schedule> {
    (0..count)
        .map(|index| {
            let slice = Slice { index, count };
            Schedule::new(arrivals, rate, Nanoseconds::from_secs(5), Seed(11), slice)
        })
        .collect()
}

fn due_before(mut schedule: Schedule, end: Nanoseconds) -> Vec<u64> {
    std::iter::from_fn(|| (schedule.peek() < end).then(|| schedule.take().0)).collect()
}

#[test]
fn constant_arrivals_lie_on_a_grid_that_starts_at_the_origin() {
    let schedule = slices(Arrivals::Constant, 4.0, 1).remove(0);
    let due = due_before(schedule, Nanoseconds::from_secs(6));
    assert_eq!(due, [5_000_000_000, 5_250_000_000, 5_500_000_000, 5_750_000_000]);
}

#[test]
fn constant_slices_are_disjoint_and_complete() {
    let end = Nanoseconds::from_secs(7);
    let whole = due_before(slices(Arrivals::Constant, 333.0, 1).remove(0), end);
    let mut parts: Vec<u64> =
        slices(Arrivals::Constant, 333.0, 4).into_iter().flat_map(|s| due_before(s, end)).collect();
    parts.sort_unstable();
    assert_eq!(parts, whole);
}

#[test]
fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
    let schedule = slices(Arrivals::Poisson, 1000.0, 1).remove(0);
    let due = due_before(schedule, Nanoseconds::from_secs(105));
    let gaps: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.02, "mean gap {mean} ms");
    assert!((variance.sqrt() - 1.0).abs() < 0.02, "deviation {} ms", variance.sqrt());
}

#[test]
fn poisson_slices_are_independent_and_add_up_to_the_rate() {
    let end = Nanoseconds::from_secs(105);
    let parts: Vec<Vec<u64>> =
        slices(Arrivals::Poisson, 1000.0, 4).into_iter().map(|s| due_before(s, end)).collect();
    let n: usize = parts.iter().map(Vec::len).sum();
    // 100 000 expected, standard deviation 316.
    assert!((99_000..=101_000).contains(&n), "{n} arrivals");
    assert_ne!(parts[0][..10], parts[1][..10]);
}

proptest! {
    #[test]
    fn due_times_never_decrease_and_follow_from_the_seed(
        rate in 0.1_f64..1e6,
        seed: u64,
        count in 1_usize..9,
        poisson: bool,
    ) {
        let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
        let slice = Slice { index: count - 1, count };
        let make = || Schedule::new(arrivals, rate, Nanoseconds(7), Seed(seed), slice);
        let take = |mut s: Schedule| (0..200).map(|_| s.take()).collect::<Vec<_>>();
        let due = take(make());
        prop_assert!(due.is_sorted());
        prop_assert!(due[0] >= Nanoseconds(7));
        prop_assert_eq!(due, take(make()));
    }

    #[test]
    fn the_rate_is_right(rate in 10.0_f64..1e5, count in 1_usize..9) {
        let end = Nanoseconds::from_secs(7);
        let n: u64 = slices(Arrivals::Constant, rate, count)
            .into_iter()
            .map(|mut slice| slice.skip_before(end))
            .sum();
        prop_assert!((n as f64 - 2.0 * rate).abs() <= 1.0, "{} of {}", n, 2.0 * rate);
    }

    #[test]
    fn skipping_is_taking(rate in 1.0_f64..1e4, end_ms in 0_u64..3_000, poisson: bool) {
        let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
        let end = Nanoseconds::from_millis(5_000 + end_ms);
        let mut schedule = slices(arrivals, rate, 1).remove(0);
        let expected = due_before(schedule.clone(), end).len() as u64;
        prop_assert_eq!(schedule.skip_before(end), expected);
        prop_assert!(schedule.peek() >= end);
    }
}
