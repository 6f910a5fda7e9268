//! Planted series are found, and noise is not.

use dyno_units::Seed;

use super::*;

/// Around 1000, with standard deviation `deviation` and memory `phi`.
fn noise(seed: u64, n: usize, phi: f64, deviation: f64) -> Vec<f64> {
    let mut random = Seed(seed).stream();
    let mut normal = || random.normal();
    let mut state = normal();
    (0..n)
        .map(|_| {
            state = phi * state + (1.0 - phi * phi).sqrt() * normal();
            1000.0 + deviation * state
        })
        .collect()
}

fn judged(values: &[f64]) -> TimeFacts {
    judge(1, values, 0.03)
}

/// At most the rates of the method's table, plus three standard errors of a hundred series.
#[test]
fn noise_is_steady_whether_it_remembers_or_not() {
    let rows = [
        (20, 0.0, 5),
        (20, 0.5, 14),
        (20, 0.8, 22),
        (20, 0.9, 28),
        (30, 0.0, 5),
        (30, 0.5, 9),
        (30, 0.8, 18),
        (30, 0.9, 24),
        (60, 0.0, 5),
        (60, 0.5, 5),
        (60, 0.8, 12),
        (300, 0.0, 5),
        (300, 0.5, 5),
        (300, 0.8, 5),
    ];
    for (n, phi, most) in rows {
        let all: Vec<TimeFacts> = (0..100).map(|seed| judged(&noise(seed, n, phi, 60.0))).collect();
        let count = |is_it: fn(&TimeFacts) -> bool| all.iter().filter(|f| is_it(f)).count();
        let unsteady = count(|f| f.steadiness != Steadiness::Steady);
        assert!(unsteady <= most, "{n} {phi}: {unsteady} of 100 unsteady");
        let periodic = count(|f| f.period.is_some());
        assert!(periodic <= 3, "{n} {phi}: {periodic} of 100 periodic");
        assert_eq!(count(|f| !f.stalls.is_empty()), 0, "{n} {phi}");
    }
}

#[test]
fn a_step_is_found_where_it_is() {
    for seed in 0..20 {
        let mut values = noise(seed, 120, 0.3, 30.0);
        values[70..].iter_mut().for_each(|v| *v -= 150.0);
        let facts = judged(&values);
        assert_eq!(facts.steadiness, Steadiness::Changes, "{seed}: {facts:?}");
        let near = facts.changes.iter().find(|c| (c.at_s - 70.0).abs() <= 2.0);
        let change = near.unwrap_or_else(|| panic!("{seed}: {:?}", facts.changes));
        assert!((change.before - change.after - 150.0).abs() < 60.0, "{change:?}");
    }
}

#[test]
fn a_beginning_that_is_slower_is_warm_up() {
    let mut values = noise(3, 120, 0.3, 20.0);
    values[..15].iter_mut().for_each(|v| *v *= 0.7);
    let facts = judged(&values);
    assert_eq!(facts.steadiness, Steadiness::SteadyLater, "{facts:?}");
    assert!((facts.warm_up_s.unwrap() - 15.0).abs() <= 1.0, "{facts:?}");
}

#[test]
fn a_stall_that_is_made_up_for_is_not_steady_before_it_was() {
    // 3500 a second on a server of 4000, stopped for a second.
    let mut values: Vec<f64> = (0..20).map(|i| 3500.0 + 20.0 * f64::from(i % 3)).collect();
    values[5] = 0.0;
    values[6..13].fill(4000.0);
    let facts = judged(&values);
    assert_eq!((facts.stalls.len(), facts.steady_from_s), (1, Some(13.0)), "{facts:?}");
    assert!(facts.score < 0.7, "{facts:?}");
    // A second is enough if there is room.
    values[7..13].fill(3500.0);
    assert_eq!(judged(&values).steady_from_s, Some(0.0));
}

#[test]
fn a_slope_is_a_trend_and_no_steps() {
    for seed in 0..20 {
        let mut values = noise(seed, 120, 0.3, 30.0);
        values.iter_mut().enumerate().for_each(|(i, v)| *v += 300.0 * i as f64 / 119.0);
        let facts = judged(&values);
        assert_eq!(facts.steadiness, Steadiness::Trend, "{seed}: {facts:?}");
        let trend = facts.trend_percent.unwrap();
        assert!((20.0..33.0).contains(&trend), "{seed}: {trend}");
    }
}

/// As in the method's table.
#[test]
fn a_longer_phase_shows_smaller_slopes() {
    let found = |n: usize, slope: f64| {
        let is_found = |seed: &u64| {
            let mut values = noise(*seed, n, 0.5, 30.0);
            let rise = |i: usize| 1000.0 * slope * i as f64 / n as f64;
            values.iter_mut().enumerate().for_each(|(i, v)| *v += rise(i));
            judged(&values).steadiness != Steadiness::Steady
        };
        (0..100).filter(is_found).count()
    };
    for (n, slope, expected) in [
        (20, 0.2, 52..82),
        (30, 0.1, 35..67),
        (30, 0.2, 68..93),
        (60, 0.1, 66..93),
        (60, 0.2, 97..101),
    ] {
        let found = found(n, slope);
        assert!(expected.contains(&found), "{n} {slope}: {found} of 100");
    }
}

#[test]
fn waves_and_combs_have_their_period() {
    for seed in 0..20 {
        let wave =
            |(i, v): (usize, f64)| v + 60.0 * (i as f64 * std::f64::consts::TAU / 20.0).sin();
        let values: Vec<f64> =
            noise(seed, 200, 0.3, 30.0).into_iter().enumerate().map(wave).collect();
        let period = judged(&values).period.unwrap_or_else(|| panic!("{seed}: no period"));
        assert!((period.every_s - 20.0).abs() <= 1.0, "{seed}: {period:?}");
        // A checkpoint of two seconds every thirty.
        let dip = |(i, v): (usize, f64)| if i % 30 < 2 { 0.3 * v } else { v };
        let values: Vec<f64> =
            noise(seed, 240, 0.3, 20.0).into_iter().enumerate().map(dip).collect();
        let facts = judged(&values);
        assert_eq!(facts.period.map(|p| p.every_s), Some(30.0), "{seed}: {facts:?}");
        assert_eq!((facts.stalls.len(), facts.stalls[0].seconds), (8, 2));
    }
}

#[test]
fn a_stall_is_counted_and_is_no_change_of_level() {
    let mut values = noise(9, 60, 0.0, 20.0);
    values[30] = 0.0;
    values[31] = 100.0;
    values[32] = 1400.0;
    let facts = judged(&values);
    assert_eq!(facts.steadiness, Steadiness::Steady, "{facts:?}");
    let [stall] = facts.stalls[..] else { panic!("{facts:?}") };
    assert_eq!((stall.at_s, stall.seconds), (30.0, 2));
    assert!((stall.missing - 1900.0).abs() < 30.0, "{stall:?}");
}

#[test]
fn slow_seconds_of_a_slow_server_are_no_stalls() {
    // About four a second: one or none is usual.
    let values: Vec<f64> = (0..60).map(|i| f64::from([4, 5, 1, 6, 3, 4, 0, 5][i % 8])).collect();
    assert_eq!(judged(&values).stalls, []);
}

#[test]
fn what_cannot_be_judged_is_not() {
    assert_eq!(judged(&[1000.0; 19]).steadiness, Steadiness::TooShort);
    assert_eq!(judged(&[]).steadiness, Steadiness::TooShort);
    assert_eq!(judged(&[0.0; 60]).steadiness, Steadiness::TooShort);
    assert_eq!(judged(&[1000.0; 60]).steadiness, Steadiness::Steady);
    let mut gap = vec![1000.0; 60];
    gap[4] = f64::NAN;
    assert_eq!(judged(&gap).steadiness, Steadiness::TooShort);
}
