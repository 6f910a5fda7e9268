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

fn stepped(arrivals: Arrivals, rate: &str, before_s: u64, count: usize) -> Vec<Schedule> {
    let course = Course {
        rate: rate.parse().expect("it is a stepped rate"),
        before: Nanoseconds::from_secs(before_s),
    };
    let slice = |index| {
        let slice = Slice { index, count };
        let origin = Nanoseconds::from_secs(5);
        Schedule::stepped(arrivals, course.clone(), origin, Seed(11), slice)
    };
    (0..count).map(slice).collect()
}

fn by_second(schedules: Vec<Schedule>, seconds: usize) -> Vec<usize> {
    let end = Nanoseconds::from_secs(5 + seconds as u64);
    let mut counts = vec![0; seconds];
    for due in schedules.into_iter().flat_map(|schedule| due_before(schedule, end)) {
        counts[((due - 5_000_000_000) / 1_000_000_000) as usize] += 1;
    }
    counts
}

#[test]
fn a_stepped_rate_begins_after_the_warm_up_and_again_behind_its_last_stair() {
    let rate = "10 for 1s, 0 for 1s, 200 for 2s";
    let whole = stepped(Arrivals::Constant, rate, 2, 1);
    let expected = [10, 10, 10, 0, 200, 200, 10, 0, 200];
    assert_eq!(by_second(whole, 9), expected);
    assert_eq!(by_second(stepped(Arrivals::Constant, rate, 2, 3), 9), expected);
}

#[test]
fn stepped_constant_slices_are_disjoint_and_complete() {
    let end = Nanoseconds::from_secs(15);
    let rate = "333 for 700ms, 21 for 1.1s, 0 for 200ms";
    let whole = due_before(stepped(Arrivals::Constant, rate, 1, 1).remove(0), end);
    let parts = stepped(Arrivals::Constant, rate, 1, 4);
    let mut parts: Vec<u64> = parts.into_iter().flat_map(|s| due_before(s, end)).collect();
    parts.sort_unstable();
    assert_eq!(parts, whole);
}

#[test]
fn stepped_poisson_arrivals_have_the_rate_of_their_second() {
    let schedules = stepped(Arrivals::Poisson, "1k for 1s, 0 for 1s, 10k for 1s", 0, 4);
    let counts = by_second(schedules, 30);
    for (second, count) in counts.iter().enumerate() {
        // Six standard deviations.
        let expected = match second % 3 {
            0 => 810..1190,
            1 => 0..1,
            _ => 9400..10_600,
        };
        assert!(expected.contains(count), "second {second}: {count}");
    }
    // 110 000 expected, standard deviation 332.
    let n: usize = counts.iter().sum();
    assert!((108_000..112_000).contains(&n), "{n}");
}

#[test]
fn a_rate_of_one_stair_is_a_constant_one() {
    let end = Nanoseconds::from_secs(9);
    let steady = due_before(slices(Arrivals::Constant, 250.0, 1).remove(0), end);
    let one = due_before(stepped(Arrivals::Constant, "250 for 3s", 1, 1).remove(0), end);
    let apart = steady.iter().zip(&one).map(|(a, b)| a.abs_diff(*b)).max();
    assert_eq!((steady.len(), apart <= Some(1)), (one.len(), true), "{apart:?} ns apart");
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

#[test]
fn the_parts_of_slices_are_slices_of_the_whole() {
    let due = |slice: Slice, n: usize| {
        let mut schedule =
            Schedule::new(Arrivals::Constant, 1000.0, Nanoseconds::ZERO, Seed(3), slice);
        (0..n).map(|_| schedule.take()).collect::<Vec<_>>()
    };
    // With different numbers of workers.
    let workers = [2, 1, 3];
    let parts = (0..3).flat_map(|index| {
        let whole = Slice { index, count: 3 };
        (0..workers[index]).map(move |worker| whole.part(worker, workers[index]))
    });
    let parts: Vec<Slice> = parts.collect();
    let mut all: Vec<Nanoseconds> = parts.iter().flat_map(|part| due(*part, 60)).collect();
    all.sort_unstable();
    assert_eq!(all[..60], due(Slice::WHOLE, 60));
    let mut different = parts.clone();
    different.sort_unstable_by_key(|part| (part.index, part.count));
    different.dedup();
    assert_eq!(different.len(), 6, "no two draw the same arrivals: {parts:?}");
    // With equal numbers of workers they are those of one generator with all workers.
    let equal =
        (0..3).flat_map(|index| (0..2).map(move |nth| Slice { index, count: 3 }.part(nth, 2)));
    let mut equal: Vec<Slice> = equal.collect();
    equal.sort_unstable_by_key(|part| part.index);
    assert_eq!(equal, (0..6).map(|index| Slice { index, count: 6 }).collect::<Vec<_>>());
    let shares = (0..3).map(|index| Slice { index, count: 3 }.share_of(7));
    assert_eq!(shares.collect::<Vec<_>>(), [3, 2, 2]);
    assert_eq!(Slice { index: 2, count: 3 }.share_of(2), 0);
}
