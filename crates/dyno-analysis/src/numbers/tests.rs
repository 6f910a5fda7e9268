//! Numbers, word for word.

use super::*;

#[test]
fn values_have_three_digits_and_a_unit() {
    let check = |unit: Unit, value: f64, expected: &str| {
        assert_eq!(unit.show(value), expected, "{unit:?} {value}");
    };
    check(Unit::PerSecond, 12_345.0, "12,300/s");
    check(Unit::PerSecond, 999.7, "1,000/s");
    check(Unit::PerSecond, 99_949.0, "99,900/s");
    check(Unit::PerSecond, 99_950.0, "100k/s");
    check(Unit::PerSecond, 999_499.0, "999k/s");
    check(Unit::PerSecond, 999_500.0, "1.00M/s");
    check(Unit::PerSecond, 7.0, "7/s");
    check(Unit::PerSecond, 0.0, "0/s");
    check(Unit::PerSecond, 0.01234, "0.0123/s");
    check(Unit::PerSecond, -1_234.0, "−1,230/s");
    check(Unit::Micros, 850.0, "850 µs");
    check(Unit::Micros, 1_234.0, "1.23 ms");
    check(Unit::Micros, 12_000_000.0, "12.0 s");
    check(Unit::Seconds, 1_800.0, "1,800 s");
    check(Unit::Seconds, 0.25, "250 ms");
    check(Unit::Millis, 12.5, "12.5 ms");
    check(Unit::Micros, 0.25, "250 ns");
    check(Unit::Micros, 0.0, "0 µs");
    check(Unit::Bytes, 3_400_000.0, "3.40 MB");
    check(Unit::Bytes, -2_000.0, "−2.00 kB");
    check(Unit::BytesPerSecond, 0.0, "0 B/s");
    check(Unit::Effect, -12.34, "−12.3 %");
    check(Unit::Effect, 0.04, "0.0 %");
    check(Unit::Effect, 3.0, "+3.0 %");
    check(Unit::Effect, 250.4, "+250 %");
    check(Unit::Percent, 99.0, "99.0 %");
    check(Unit::Ratio, 122.4, "122×");
    check(Unit::Ratio, 2.0, "2.00×");
    check(Unit::Ratio, 0.00107, "0.00107×");
    check(Unit::Ratio, 3_125.0, "3,130×");
    check(Unit::Count, f64::NAN, "–");
    check(Unit::Other("rows".into()), 1500.0, "1,500 rows");
    check(Unit::Other("1/CPU s".into()), 41_200.0, "41,200 per CPU s");
    check(Unit::Other("processes".into()), 1.0, "1 process");
    check(Unit::Other("undo logs".into()), 1.0, "1 undo log");
    check(Unit::Other("processes".into()), 0.0, "0 processes");
    check(Unit::Other("MHz".into()), 1.0, "1 MHz");
    check(Unit::Count, 0.000_027_8, "0.0000278");
    check(Unit::Other("USD".into()), 2.78e-7, "0.000000278 USD");
    check(Unit::Count, 3e-9, "<0.0000001");
    check(Unit::Bytes, 3.3e-7, "<0.0001 B");
    check(Unit::Seconds, -3e-14, ">−0.0001 ns");
}

#[test]
fn ticks_are_trimmed() {
    let check = |unit: Unit, value: f64, expected: &str| {
        assert_eq!(unit.tick(value), expected, "{unit:?} {value}");
    };
    check(Unit::PerSecond, 10_000.0, "10,000/s");
    check(Unit::PerSecond, 250_000.0, "250k/s");
    check(Unit::Micros, 1_000.0, "1 ms");
    check(Unit::Effect, 5.0, "+5 %");
    check(Unit::Effect, -2.5, "−2.5 %");
    check(Unit::Percent, 100.0, "100 %");
    check(Unit::Ratio, 2.0, "2×");
}

#[test]
fn long_units_stand_beside_the_axis() {
    let check = |unit: &str, tick: &str, beside: Option<&str>| {
        let unit = Unit::Other(unit.to_owned());
        assert_eq!((unit.on_axis(1500.0).as_str(), unit.beside_axis()), (tick, beside));
    };
    check("ms", "1,500 ms", None);
    check("transactions", "1,500", Some("transactions"));
    assert_eq!(Unit::PerSecond.on_axis(1500.0), "1,500/s");
}

fn estimate(value: f64, low: Option<f64>, high: Option<f64>, unit: &str) -> Estimate {
    Estimate {
        value,
        low,
        high,
        n: 3,
        min: value,
        max: value,
        unit: unit.to_owned(),
        values: vec![value; 3],
        ..Estimate::default()
    }
}

#[test]
fn estimates_show_their_interval_or_that_there_is_none() {
    let check = |e: Estimate, short: &str, long: Option<&str>| {
        assert_eq!(with_ci(&e), short);
        assert_eq!(interval(&e).as_deref(), long);
    };
    let rate = estimate(41_234.0, Some(40_900.0), Some(41_650.0), "1/s");
    check(rate, "41,200/s (40,900–41,700)", Some("40,900–41,700/s"));
    let rate = estimate(41_234.0, Some(40_830.0), Some(41_650.0), "1/s");
    check(rate, "41,200/s (40,800–41,700)", Some("40,800–41,700/s"));
    let wide = estimate(981.0, Some(512.3), Some(1_890.0), "1/s");
    check(wide, "981/s (512–1,890)", Some("512–1,890/s"));
    check(estimate(41_234.0, None, None, "1/s"), "41,200/s", None);
    let effect = estimate(-3.2, Some(-4.0), Some(-2.0), "%");
    check(effect, "−3.2 % (−4.0 to −2.0)", Some("−4.0 to −2.0 %"));
    let effect = estimate(-3.0, Some(-4.08), Some(-2.0), "%");
    check(effect, "−3.0 % (−4.1 to −2.0)", Some("−4.1 to −2.0 %"));
    let large = estimate(12_057.0, Some(2_552.0), Some(55_636.0), "%");
    check(large, "122× (26.5–557)", Some("26.5–557×"));
    let small = estimate(-92.4, Some(-97.0), Some(-7.9), "%");
    check(small, "0.0760× (0.0300–0.921)", Some("0.0300–0.921×"));
    let narrow = estimate(20.0, Some(19.998), Some(20.01), "");
    check(narrow, "20 (20.00–20.01)", Some("20.00–20.01"));
    let narrow = estimate(216.04, Some(215.96), Some(216.12), "1/s");
    check(narrow, "216.0/s (216.0–216.1)", Some("216.0–216.1/s"));
    let narrow = estimate(12_345.0, Some(12_343.0), Some(12_347.0), "1/s");
    check(narrow, "12,350/s (12,340–12,350)", Some("12,340–12,350/s"));
    let narrow = estimate(1.0, Some(0.98), Some(1.04), "%");
    check(narrow, "+1.00 % (+0.98 to +1.04)", Some("+0.98 to +1.04 %"));
    check(estimate(7.0, Some(7.0), Some(7.0), ""), "7 (no spread)", Some("no spread"));
    let time = estimate(1_234.0, Some(1_200.0), Some(1_300.0), "µs");
    check(time, "1.23 ms (1.20–1.30 ms)", Some("1.20–1.30 ms"));
    let time = estimate(1_034.0, Some(900.0), Some(1_300.0), "µs");
    check(time, "1.03 ms (900 µs–1.30 ms)", Some("900 µs–1.30 ms"));
    let from_nothing = estimate(57.6, Some(0.0), Some(1_290.0), "µs");
    check(from_nothing, "57.6 µs (0–1.29 ms)", Some("0–1.29 ms"));
    let work = estimate(1_212.0, Some(1_180.0), Some(1_250.0), "1/CPU s");
    check(work, "1,210 per CPU s (1,180–1,250)", Some("1,180–1,250 per CPU s"));
    let flow = estimate(255e3, Some(245e3), Some(1.2e6), "B/s");
    check(flow, "255 kB/s (245 kB/s–1.20 MB/s)", Some("245 kB/s–1.20 MB/s"));
    let few = estimate(1.5, Some(1.0), Some(3.0), "processes");
    check(few, "1.50 processes (1–3 processes)", Some("1–3 processes"));
    let busy = estimate(64.8, Some(60.0), Some(69.0), PERCENT_LEVEL);
    check(busy, "64.8 % (60.0–69.0)", Some("60.0–69.0 %"));
}

#[test]
fn two_repetitions_show_their_values_and_no_interval() {
    let mut time = estimate(936.0, Some(5.8e-5), Some(1.5e10), "µs");
    (time.n, time.values) = (2, vec![1_070.0, 820.0]);
    assert_eq!(with_ci(&time), "936 µs (820 µs and 1.07 ms)");
    assert_eq!(interval(&time).as_deref(), Some("820 µs and 1.07 ms"));
    let mut work = estimate(1_210.0, None, None, "1/CPU s");
    (work.n, work.values) = (2, vec![1_180.0, 1_250.0]);
    assert_eq!(with_ci(&work), "1,210 per CPU s (1,180 and 1,250)");
    let mut effect = estimate(3.0, Some(-80.0), Some(400.0), "%");
    (effect.n, effect.values) = (2, vec![2.0, 4.0]);
    assert_eq!(with_ci(&effect), "+3.0 % (+2.0 and +4.0)");
}

#[test]
fn no_interval_spans_more_than_a_hundred() {
    let wide = estimate(981.0, Some(9.0), Some(1_890.0), "1/s");
    assert_eq!(with_ci(&wide), "981/s (CI wider than a factor of 100)");
    assert_eq!(interval(&wide).as_deref(), Some("CI wider than a factor of 100"));
    let effect = estimate(-92.4, Some(-99.4), Some(-7.9), "%");
    assert_eq!(with_ci(&effect), "0.0760× (CI wider than a factor of 100)");
    // A value that may be zero spans no factor.
    let rare = estimate(4.0, Some(0.0), Some(12.0), "1/s");
    assert_eq!(interval(&rare).as_deref(), Some("0–12/s"));
}

#[test]
fn one_column_has_one_style() {
    let small = estimate(6.3, Some(5.0), Some(7.6), "%");
    let large = estimate(293.0, Some(250.0), Some(340.0), "%");
    let style = EffectStyle::of([&small, &large]);
    assert_eq!(style.show(small.value), "1.06×");
    assert_eq!(style.with_ci(&large), "3.93× (3.50–4.40)");
    assert_eq!(EffectStyle::of([&small]).show(small.value), "+6.3 %");
    assert_eq!(EffectStyle::Ratio.show(f64::NAN), "–");
}

#[test]
fn counts_and_p_values() {
    assert_eq!(grouped(1_250_000), "1,250,000");
    assert_eq!(grouped(12), "12");
    assert_eq!(p_value(0.0004), "p < 0.001");
    assert_eq!(p_value(0.0421), "p = 0.042");
    assert_eq!(p_value(1.0), "p = 1");
}
