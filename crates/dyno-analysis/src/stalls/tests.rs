//! Planted stalls, and noise without any.

use std::collections::BTreeMap;

use dyno_record::{EncodedCounts, KindSummary};
use dyno_units::reading::prelude::*;
use dyno_units::{RandomStream, Registry, Seed};

use super::bins::Bins;
use super::find::{Found, find, find_in_total};
use crate::fixtures::{register, run};
use crate::{Findings, Options, StallFacts, analyse};

/// By multiplication of uniforms; normal from 50 on.
fn poisson(mean: f64, random: &mut RandomStream) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    if mean > 50.0 {
        return (mean + mean.sqrt() * random.normal()).round().max(0.0);
    }
    let limit = (-mean).exp();
    let (mut n, mut product) = (0.0, random.unit());
    while product > limit {
        n += 1.0;
        product *= random.unit();
    }
    n
}

/// Nothing from `from` to `to`.
fn planted(rate: f64, seconds: f64, (from, to): (f64, f64), random: &mut RandomStream) -> Bins {
    let n = (seconds * 10.0).round() as usize;
    let starts: Vec<f64> = (0..n).map(|i| i as f64 / 10.0).collect();
    let count = |start: &f64| {
        let stalled = (start + 0.1).min(to) - start.max(from);
        poisson(rate * (0.1 - stalled.max(0.0)), random)
    };
    let counts = starts.iter().map(count).collect();
    Bins::new(&starts, &vec![0.1; n], counts)
}

#[track_caller]
fn only(found: Vec<Found>) -> Found {
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

#[test]
fn a_second_is_found_within_a_tenth_at_any_phase_and_rate() {
    for rate in [300.0, 1_000.0, 5_000.0, 40_000.0] {
        for phase in 0..25 {
            let mut random = Seed(7).derive("phase", phase).stream();
            let from = 12.0 + phase as f64 * 0.037;
            let bins = planted(rate, 40.0, (from, from + 1.0), &mut random);
            let found = only(find(&bins));
            let length = found.end_s - found.start_s;
            assert!((length - 1.0).abs() < 0.1, "{rate}/s from {from}: {found:?}");
            assert!((found.start_s - from).abs() < 0.1, "{rate}/s from {from}: {found:?}");
            assert!((found.missing / rate - 1.0).abs() < 0.15, "{found:?}");
            assert!(found.is_gap);
        }
    }
}

#[test]
fn a_second_of_nothing_is_found_however_much_the_rate_swings() {
    for phase in 0..25 {
        let mut random = Seed(5).derive("swing", phase).stream();
        let (from, mut noise) = (4.0 + phase as f64 * 0.037, 0.0);
        let starts: Vec<f64> = (0..100).map(|i| f64::from(i) / 10.0).collect();
        let mut count = |start: &f64| {
            noise = 0.8 * noise + 0.3 * random.normal();
            let stalled = (start + 0.1).min(from + 1.0) - start.max(from);
            // From half the level to 1.5 times, for half a second each.
            poisson(5_000.0 * (0.1 - stalled.max(0.0)) * (1.0 + 0.5 * f64::sin(noise)), &mut random)
        };
        let counts: Vec<f64> = starts.iter().map(&mut count).collect();
        let found = find(&Bins::new(&starts, &[0.1; 100], counts));
        let is_it = |f: &&Found| f.start_s < from + 0.5 && f.end_s > from + 0.5;
        let one = found.iter().find(is_it).unwrap_or_else(|| panic!("{phase}: {found:?}"));
        assert!((one.end_s - one.start_s - 1.0).abs() <= 0.15 && one.is_gap, "{phase}: {one:?}");
    }
}

#[test]
fn what_waited_and_is_done_at_once_does_not_lengthen_a_stall() {
    // A thousand waiting arrivals are done at three times the ordinary rate.
    for phase in 0..20 {
        let (from, to) = (8.0 + f64::from(phase) * 0.005, 9.0 + f64::from(phase) * 0.005);
        let starts: Vec<f64> = (0..200).map(|i| f64::from(i) / 10.0).collect();
        let overlap = |start: f64, a: f64, b: f64| ((start + 0.1).min(b) - start.max(a)).max(0.0);
        let count = |start: &f64| {
            let normal = 0.1 - overlap(*start, from, to + 0.5);
            1_000.0 * normal + 3_000.0 * overlap(*start, to, to + 0.5)
        };
        let counts = starts.iter().map(count).map(f64::round).collect();
        let found = only(find(&Bins::new(&starts, &[0.1; 200], counts)));
        assert!((found.end_s - found.start_s - 1.0).abs() < 0.03, "{phase} {found:?}");
    }
}

#[test]
fn rare_transactions_get_wider_bins() {
    let mut random = Seed(3).stream();
    let bins = planted(20.0, 120.0, (50.0, 54.0), &mut random);
    let found = only(find(&bins));
    assert!((found.end_s - found.start_s - 4.0).abs() < 0.6, "{found:?}");
    // Sixty-four clients commit together, once a second.
    let starts: Vec<f64> = (0..600).map(|i| f64::from(i) / 10.0).collect();
    let counts = |gap: std::ops::Range<usize>| {
        let count = |i: usize| if i.is_multiple_of(10) && !gap.contains(&i) { 64.0 } else { 0.0 };
        (0..600).map(count).collect()
    };
    assert_eq!(find(&Bins::new(&starts, &[0.1; 600], counts(0..0))), []);
    let found = only(find(&Bins::new(&starts, &[0.1; 600], counts(295..345))));
    assert!(found.bin_s >= 1.0 && (found.end_s - found.start_s - 5.0).abs() <= 1.0, "{found:?}");
}

#[test]
fn a_dip_is_no_gap() {
    let starts: Vec<f64> = (0..600).map(|i| f64::from(i) / 10.0).collect();
    let counts = (0..600).map(|i| if (300..315).contains(&i) { 20.0 } else { 100.0 }).collect();
    let found = only(find(&Bins::new(&starts, &[0.1; 600], counts)));
    assert!(!found.is_gap, "{found:?}");
    assert!((found.missing - 15.0 * 80.0).abs() < 60.0, "{found:?}");
    assert!((found.end_s - found.start_s - 1.5).abs() < 0.05, "{found:?}");
}

#[test]
fn a_level_that_falls_slowly_is_no_stall_and_a_stall_on_it_is_one() {
    let starts: Vec<f64> = (0..6_000).map(|i| f64::from(i) / 10.0).collect();
    let level = |i: usize| 1_000.0 - 0.15 * i as f64;
    let counts = |from: usize| {
        let is_stalled = |i: usize| (from..from + 8).contains(&i);
        (0..6_000).map(|i| if is_stalled(i) { 0.0 } else { level(i).round() }).collect()
    };
    assert_eq!(find(&Bins::new(&starts, &[0.1; 6_000], counts(10_000))), []);
    let found = only(find(&Bins::new(&starts, &[0.1; 6_000], counts(5_500))));
    assert!((found.end_s - found.start_s - 0.8).abs() < 0.05, "{found:?}");
    assert!((found.level / 10.0 / level(5_500) - 1.0).abs() < 0.1, "{found:?}");
}

#[test]
fn nothing_at_all_is_a_gap_however_long_it_lasts() {
    for (rate, from, to) in
        [(5_000.0, 20.0, 40.0), (5_000.0, 3.0, 40.0), (50.0, 10.0, 40.0), (5_000.0, 8.0, 30.0)]
    {
        let mut random = Seed(17).stream();
        let bins = planted(rate, 40.0, (from, to), &mut random);
        let found = only(find_in_total(&bins));
        assert!((found.start_s - from).abs() < 0.4 && (found.end_s - to).abs() < 0.4, "{found:?}");
        assert!(
            found.is_gap && (found.missing / (rate * (to - from)) - 1.0).abs() < 0.2,
            "{found:?}"
        );
    }
    // A gap that is also found otherwise counts once.
    let mut random = Seed(7).stream();
    only(find_in_total(&planted(1_000.0, 40.0, (12.0, 15.0), &mut random)));
}

#[test]
fn work_that_comes_in_bursts_has_no_gaps() {
    let starts: Vec<f64> = (0..600).map(|i| f64::from(i) / 10.0).collect();
    let check = |is_busy: &dyn Fn(usize) -> bool| {
        let counts = (0..600).map(|i| if is_busy(i) { 400.0 } else { 0.0 }).collect();
        assert_eq!(find_in_total(&Bins::new(&starts, &[0.1; 600], counts)), []);
    };
    check(&|i| i % 10 == 0);
    check(&|i| i % 100 < 20);
    check(&|_| false);
}

#[test]
fn a_server_that_hangs_until_the_end_is_a_stall() {
    let frozen = |i: usize| if i >= 220 { (0, 0) } else { (80, 20) };
    let findings = found(frozen, &[]);
    let [stall] = findings.stalls.as_slice() else { panic!("{:?}", findings.stalls) };
    assert!((stall.start_s - 20.0).abs() < 0.2 && (stall.length_s - 40.0).abs() < 0.2, "{stall:?}");
    assert_eq!(stall.kinds, ["a", "b"]);
    // A kind that has done all its work has not stalled.
    let done = |i: usize| (80, if i >= 220 { 0 } else { 20 });
    assert_eq!(found(done, &[]).stalls, []);
}

#[test]
fn noise_has_hardly_a_stall() {
    // At most 1 % by the method, so 5 of 300 would be rare.
    for (rate, memory) in [(30.0, 0.0), (300.0, 0.0), (3_000.0, 0.6), (20_000.0, 0.8)] {
        let mut false_alarms = 0;
        for series in 0..300 {
            let mut random = Seed(11).derive("noise", series).stream();
            let mut noise = 0.0;
            let starts: Vec<f64> = (0..600).map(|i| f64::from(i) / 10.0).collect();
            let mut count = |_: &f64| {
                noise = memory * noise + 0.1 * random.normal();
                poisson((rate / 10.0) * f64::max(1.0 + noise, 0.0), &mut random)
            };
            let counts = starts.iter().map(&mut count).collect();
            let bins = Bins::new(&starts, &[0.1; 600], counts);
            false_alarms += u32::from(!find_in_total(&bins).is_empty());
        }
        assert!(false_alarms <= 5, "{rate}/s, memory {memory}: {false_alarms} of 300");
    }
}

#[rustfmt::skip]
const READINGS: &[Reading] = &[
    reading("server.cpu_s_per_s", Cpus, "server", "CPU of the server").moves(StallCause::NotRunning, Movement::DownTo(70)),
    reading("server.stopped", Count, "x", "x").up(StallCause::NotRunning),
    reading("data_disk.limit_used_pct", Percent, "x", "x").moves(StallCause::Disk, Movement::From(90)),
    reading("server.thread.compaction.cpu_s_per_s", Cpus, "x", "x").up(StallCause::Compaction),
    reading("cpu.steal_pct", Percent, "x", "x").up(StallCause::StolenCpu),
    reading("psi.io.*", Percent, "x", "x").up(StallCause::Disk),
    reading("innodb.checkpoint_age_bytes", Bytes, "x", "x").moves(StallCause::CheckpointLimit, Movement::ToLimit),
    reading("innodb.checkpoint_age_max_bytes", Bytes, "x", "x").role(Role::Limit(StallCause::CheckpointLimit)),
    reading("innodb.checkpoint_age_percent", Percent, "x", "x").moves(StallCause::CheckpointLimit, Movement::From(85)),
    reading("innodb.os_fsyncs_per_s", PerSecond, "x", "x").up(StallCause::Fsync),
    reading("disk.flushes_per_s", PerSecond, "x", "x").up(StallCause::Fsync),
    reading("disk.*.await_ms", Milliseconds, "x", "x").up(StallCause::Disk),
    reading("disk.*.queue", Count, "x", "x").up(StallCause::Disk),
    reading("innodb.pages_flushed_per_s", PerSecond, "x", "x").up(StallCause::Flushing),
    reading("innodb.pages_written_per_s", PerSecond, "x", "x").up(StallCause::Flushing),
    reading("disk.write_bytes_per_s", BytesPerSecond, "x", "x").up(StallCause::Writing),
    reading("disk.writes_per_s", PerSecond, "x", "x").up(StallCause::Writing),
    reading("innodb.row_lock_*", Count, "x", "x").up(StallCause::Locks),
];

/// 60 s; counts of kinds `a` and `b` by bin of 100 ms, and readings by interval.
fn found(
    counts: impl Fn(usize) -> (u32, u32),
    readings: &[(&str, &dyn Fn(f64) -> f64)],
) -> Findings {
    let mut run = run(&["x"], &[4], 1, |_, _, _| 1_000.0);
    let step = &mut run.trials[0].steps[0];
    step.measured_s = 60.0;
    step.intervals.start_s = (0..62).map(|i| f64::from(i) - 2.0).collect();
    step.intervals.throughput = vec![1_000.0; 62];
    let column = |of: fn((u32, u32)) -> u32| {
        EncodedCounts::encode(&(0..620).map(|i| of(counts(i))).collect::<Vec<u32>>())
    };
    let (a, b) = (column(|both| both.0), column(|both| both.1));
    let first = step.kinds[0].clone();
    step.kinds = vec![
        KindSummary { name: "a".to_owned(), commits_100ms: Some(a), ..first.clone() },
        KindSummary { name: "b".to_owned(), commits_100ms: Some(b), ..first },
    ];
    step.readings = BTreeMap::new();
    for (name, reading) in readings {
        let column = step.intervals.start_s.iter().map(|start| Some(reading(*start))).collect();
        step.readings.insert((*name).to_owned(), column);
    }
    register(&mut run, READINGS);
    analyse(&[run], &Options::default())
}

/// Nothing in bins 320 to 330: from second 30 to 31 of the measurement phase.
fn stopped(idx: usize) -> (u32, u32) {
    if (320..330).contains(&idx) { (0, 0) } else { (80 + (idx % 3) as u32, 20) }
}

fn wobble(start_s: f64) -> f64 {
    1.0 + 0.02 * (start_s * 1.7).sin()
}

#[test]
fn the_process_that_did_not_run_is_named() {
    let cpu = |s: f64| if s == 30.0 { 0.0 } else { 1.6 * wobble(s) };
    let idle = |s: f64| 20.0 * wobble(s);
    let findings = found(stopped, &[("server.cpu_s_per_s", &cpu), ("cpu.steal_pct", &idle)]);
    let [stall] = findings.stalls.as_slice() else { panic!("{:?}", findings.stalls) };
    assert!(
        (stall.length_s - 1.0).abs() < 0.05 && (stall.start_s - 30.0).abs() < 0.05,
        "{stall:?}"
    );
    assert!((stall.missing - 1_010.0).abs() < 40.0, "{stall:?}");
    assert_eq!(stall.kinds, ["a", "b"]);
    let [moved] = stall.moved_first.as_slice() else { panic!("{stall:?}") };
    assert_eq!(moved.sign_of, "a server that waits or is suspended");
    assert_eq!((moved.reading.as_str(), moved.value), ("server.cpu_s_per_s", 0.0));
    assert_eq!(moved.meaning, "CPU of the server");
    assert!(moved.deviations.unwrap() < -10.0 && moved.at_s.abs() < 0.05, "{moved:?}");
}

#[test]
fn a_limit_is_named_before_the_server_that_waits_for_it() {
    let in_stall = |s: f64, there: f64, ordinary: f64| if s == 30.0 { there } else { ordinary };
    let cpu = |s: f64| in_stall(s, 0.0, 1.6 * wobble(s));
    let limit = |s: f64| in_stall(s, 100.0, 40.0 * wobble(s));
    let findings =
        found(stopped, &[("data_disk.limit_used_pct", &limit), ("server.cpu_s_per_s", &cpu)]);
    let moved = findings.stalls[0].moved_first.iter().map(|one| one.reading.as_str());
    let limit_first = ["data_disk.limit_used_pct", "server.cpu_s_per_s"];
    assert_eq!(moved.collect::<Vec<_>>(), limit_first);
    // Of a stall that begins within a second, the rest of which was ordinary.
    let earlier = |s: f64| if s == 29.0 { 0.5 } else { cpu(s) };
    let findings =
        found(stopped, &[("data_disk.limit_used_pct", &limit), ("server.cpu_s_per_s", &earlier)]);
    let moved = findings.stalls[0].moved_first.iter().map(|one| one.reading.as_str());
    assert_eq!(moved.collect::<Vec<_>>(), limit_first);
    // A process that a signal stopped waits for nothing.
    let stopped_one = |s: f64| f64::from(u8::from(s == 30.0));
    let findings =
        found(stopped, &[("server.stopped", &stopped_one), ("server.cpu_s_per_s", &cpu)]);
    assert_eq!(findings.stalls[0].moved_first[0].reading, "server.stopped");
}

#[test]
fn a_process_that_did_not_run_is_named_even_if_it_hardly_ran_before() {
    // One to five ticks of 10 ms a second: little to do.
    let ticks = [2.0, 2.0, 4.0, 3.0, 1.0, 5.0, 1.0, 2.0];
    let cpu = |s: f64| if s == 30.0 { 0.0 } else { 0.01 * ticks[(s + 2.0) as usize % 8] };
    let findings = found(stopped, &[("server.cpu_s_per_s", &cpu)]);
    let moved = &findings.stalls[0].moved_first;
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_eq!(
        (moved[0].sign_of.as_str(), moved[0].value),
        ("a server that waits or is suspended", 0.0)
    );
}

#[test]
fn trifles_are_no_evidence() {
    // A tick of steal, microseconds of a sleeping thread, a moment of waiting.
    let at_stall = |value: f64| move |s: f64| if s == 30.0 { value } else { 0.0 };
    let (tick, thread, moment) = (at_stall(0.5), at_stall(3e-6), at_stall(0.09));
    let trifles: [(&str, &dyn Fn(f64) -> f64); 3] = [
        ("cpu.steal_pct", &tick),
        ("server.thread.compaction.cpu_s_per_s", &thread),
        ("psi.io.full_pct", &moment),
    ];
    assert_eq!(found(stopped, &trifles).stalls[0].moved_first, []);
    let much = at_stall(7.0);
    let findings = found(stopped, &[("cpu.steal_pct", &much)]);
    assert_eq!(findings.stalls[0].moved_first[0].sign_of, "CPU steal");
}

#[test]
fn a_short_step_with_several_stalls_has_ordinary_seconds() {
    let mut run = run(&["x"], &[4], 1, |_, _, _| 1_000.0);
    let step = &mut run.trials[0].steps[0];
    step.intervals.start_s = (0..12).map(|i| f64::from(i) - 2.0).collect();
    let check = |stalls: &[(f64, f64)], expected: &[f64]| {
        let is_ordinary = super::evidence::ordinary_seconds(step, stalls);
        let both = step.intervals.start_s.iter().zip(is_ordinary);
        let found: Vec<f64> = both.filter(|(_, is)| *is).map(|(start, _)| *start).collect();
        assert_eq!(found, expected, "{stalls:?}");
    };
    check(&[(5.0, 6.0)], &[0.0, 1.0, 2.0, 3.0, 7.0, 8.0, 9.0]);
    check(&[(1.3, 1.5), (5.0, 6.0), (9.7, 10.0)], &[0.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0]);
}

#[test]
fn what_moved_first_stands_first() {
    let age = |s: f64| if (28.0..32.0).contains(&s) { 7.4e6 } else { 4e6 * wobble(s) };
    let limit = |_: f64| 7.7e6;
    let fsync = |s: f64| if (29.0..31.0).contains(&s) { 400.0 } else { 40.0 * wobble(s) };
    let cpu = |s: f64| if s == 30.0 { 0.3 } else { wobble(s) };
    let findings = found(
        stopped,
        &[
            ("innodb.checkpoint_age_bytes", &age),
            ("innodb.checkpoint_age_max_bytes", &limit),
            ("innodb.os_fsyncs_per_s", &fsync),
            ("server.cpu_s_per_s", &cpu),
            ("unheard.of", &fsync),
        ],
    );
    let signs: Vec<(&str, f64)> = findings.stalls[0]
        .moved_first
        .iter()
        .map(|moved| (moved.sign_of.as_str(), moved.at_s.round()))
        .collect();
    assert_eq!(
        signs,
        [
            ("checkpoint age at its limit", -2.0),
            ("fsync", -1.0),
            ("a server that waits or is suspended", 0.0)
        ]
    );
}

#[test]
fn many_readings_of_a_few_signs_hide_no_other_sign() {
    let busy = |s: f64| if (28.0..31.0).contains(&s) { 400.0 } else { 40.0 * wobble(s) };
    let age = |s: f64| if s >= 29.0 { 99.0 } else { 60.0 };
    let stopped_one = |s: f64| f64::from(u8::from(s == 30.0));
    let findings = found(
        stopped,
        &[
            ("disk.flushes_per_s", &busy),
            ("innodb.os_fsyncs_per_s", &busy),
            ("disk.vda.await_ms", &busy),
            ("disk.vda.queue", &busy),
            ("innodb.pages_flushed_per_s", &busy),
            ("innodb.pages_written_per_s", &busy),
            ("disk.write_bytes_per_s", &busy),
            ("disk.writes_per_s", &busy),
            ("innodb.checkpoint_age_percent", &age),
            ("server.stopped", &stopped_one),
        ],
    );
    let moved = &findings.stalls[0].moved_first;
    let readings: Vec<&str> = moved.iter().map(|moved| moved.reading.as_str()).collect();
    assert_eq!(moved.len(), 8, "{readings:?}");
    // All first movers precede later ones, which are listed as well.
    assert_eq!(readings[6..], ["innodb.checkpoint_age_percent", "server.stopped"]);
    assert_eq!(moved[7].sign_of, "a server that waits or is suspended");
}

#[test]
fn a_stall_of_one_kind_is_its_own() {
    let only_b = |i: usize| (80, if (320..335).contains(&i) { 0 } else { 20 });
    let findings = found(only_b, &[]);
    let [stall] = findings.stalls.as_slice() else { panic!("{:?}", findings.stalls) };
    assert_eq!(stall.kinds, ["b"]);
    assert!((stall.length_s - 1.5).abs() < 0.1, "{stall:?}");
    // The first half second is in the warm-up.
    let across = |i: usize| if (15..25).contains(&i) { (0, 0) } else { (80, 20) };
    let findings = found(across, &[]);
    let [stall] = findings.stalls.as_slice() else { panic!("{:?}", findings.stalls) };
    assert!((stall.start_s + 0.5).abs() < 0.05 && (stall.length_s - 1.0).abs() < 0.05, "{stall:?}");
    assert!((stall.missing - 500.0).abs() < 40.0, "{stall:?}");
    let before = |i: usize| if (5..15).contains(&i) { (0, 0) } else { (80, 20) };
    assert_eq!(found(before, &[]).stalls, []);
}

#[test]
fn records_without_bins_have_stalls_by_second() {
    let mut run = run(&["x"], &[4], 1, |_, _, _| 1_000.0);
    run.trials[0].steps[0].intervals.throughput[6] = 0.0;
    let stalls = analyse(&[run], &Options::default()).stalls;
    let [StallFacts { start_s, length_s, bin_s, .. }] = stalls.as_slice() else {
        panic!("{stalls:?}")
    };
    assert_eq!((*start_s, *length_s, *bin_s), (4.0, 1.0, 1.0));
}

/// Of 150 stalls of 2 s in 60 s, those at which one of forty readings of pure noise moved.
fn moved_by_chance(draw: impl Fn(&mut RandomStream) -> f64) -> usize {
    let mut random = Seed(31).stream();
    let mut summary = crate::fixtures::step_summary(0, 1_000.0, 0.004);
    summary.measured_s = 60.0;
    summary.intervals.start_s = (0..60).map(f64::from).collect();
    let is_moved = |_: &usize| {
        summary.readings = (0..40)
            .map(|i| {
                let column = (0..60).map(|_| Some(draw(&mut random))).collect();
                (format!("innodb.row_lock_{i}"), column)
            })
            .collect();
        let stall = (30.3, 32.1);
        let meanings = Registry::new(READINGS.to_vec()).meanings(summary.readings.keys());
        let evidence = super::evidence::Evidence::new(&summary, &meanings, &[stall]);
        !evidence.moved(stall).is_empty()
    };
    (0..150).filter(is_moved).count()
}

#[test]
fn noise_rarely_moves_before_a_stall_however_skewed_it_is() {
    // 5 % would be 7.5 of 150.
    let found = [
        moved_by_chance(|random| 100.0 + 20.0 * random.normal()),
        moved_by_chance(|random| (0.5 * random.normal()).exp()),
        moved_by_chance(|random| random.normal().exp()),
        moved_by_chance(|random| random.exponential(1.0)),
    ];
    assert!(found.iter().all(|n| *n <= 7), "{found:?} of 150 each");
}

#[test]
fn what_moved_says_how_likely_it_is_by_chance() {
    let mut random = Seed(32).stream();
    let mut summary = crate::fixtures::step_summary(0, 1_000.0, 0.004);
    summary.measured_s = 60.0;
    summary.intervals.start_s = (0..60).map(f64::from).collect();
    let mut column: Vec<Option<f64>> = (0..60).map(|_| Some(1.0 + random.unit())).collect();
    column[30] = Some(500.0);
    summary.readings = BTreeMap::from([("innodb.row_lock_waits".to_owned(), column)]);
    let meanings = Registry::new(READINGS.to_vec()).meanings(summary.readings.keys());
    let stall = (30.3, 31.1);
    let moved = super::evidence::Evidence::new(&summary, &meanings, &[stall]).moved(stall);
    assert_eq!(moved.len(), 1);
    // One of 57 ordinary seconds and itself, in a window of five: 1 − (57/58)⁵.
    let chance = moved[0].chance.expect("it is no limit");
    assert!((0.05..0.1).contains(&chance), "{chance}");
}

#[test]
fn readings_of_old_records_are_explained_by_the_registry() {
    let mut run = run(&["x"], &[4], 1, |_, _, _| 1_000.0);
    let trial = &mut run.trials[0];
    let names = ["cpu.steal_pct", "disk.vda.queue", "un.heard"];
    for name in names {
        trial.steps[0].readings.insert(name.to_owned(), vec![Some(1.0)]);
    }
    // An older record's reading, a user's own, and an unknown one.
    let old = serde_json::from_str(r#"{"unit":"%","text":"x"}"#).expect("it is read");
    trial.meanings.insert(names[0].to_owned(), old);
    let own = reading("disk.vda.queue", Count, "own", "x");
    trial.meanings.insert(names[1].to_owned(), own.clone());
    run.explain_readings(&Registry::new(READINGS.to_vec()));
    let meanings = &run.trials[0].meanings;
    let steal = READINGS.iter().find(|reading| reading.id == names[0]);
    assert_eq!(Some(&meanings[names[0]]), steal);
    assert_eq!(meanings[names[1]], own);
    assert_eq!(meanings.get(names[2]), None);
}

#[test]
fn a_record_tells_of_no_more_seconds_than_it_has_intervals() {
    let mut run = run(&["a"], &[4], 1, |_, _, _| 100.0);
    let step = &mut run.trials[0].steps[0];
    step.kinds[0].commits_100ms = Some(EncodedCounts::encode(&[1; 700]));
    let name = step.kinds[0].name.clone();
    let seconds = super::seconds_of_kind(step, &name).expect("it tells");
    assert_eq!(seconds.len(), step.measured_s.round() as usize);
    // A few bytes would make four billion numbers.
    step.measured_s = 4e9;
    assert_eq!(super::seconds_of_kind(step, &name), None);
    step.intervals.start_s = vec![0.0, 4e9 - 1.0];
    assert_eq!(super::seconds_of_kind(step, &name), None);
}
