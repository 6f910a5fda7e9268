//! Every caveat word for word, in `caveats.txt`: `UPDATE_EXPECT=1` rewrites it, for review.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use dyno_record::{
    AuditRow, BuildFacts, Canary, ClockFacts, ClockReading, EncodedHistogram, ImportedFrom,
    LevelRecord, MemberFacts, OwnStepRecord, PlaceFacts, ProductFacts, Run, RunOff,
    SCHEDULING_GROUP, SearchRecord, SearchSummary, Settled, StepSummary, StoppingRecord,
    TrialSummary, VoidBlock, VoidingRecord, new_histogram,
};
use dyno_units::reading::prelude::*;
use dyno_units::{MetricId, Seed};
use expect_test::expect_file;

use super::hosts::spread;
use super::{add_outcome, forget_durability, place, sound};
use crate::fixtures::{fail, register, run, step_summary, wobble};
use crate::{Caveat, CaveatKind, Findings, Options, analyse, analyse_against};

fn set(step: &mut StepSummary, name: &str, value: impl Fn(f64) -> f64) {
    let column = step.intervals.start_s.iter().map(|start| Some(value(*start))).collect();
    step.readings.insert(name.to_owned(), column);
}

fn steps(run: &mut Run, variant: usize) -> impl Iterator<Item = &mut StepSummary> {
    let own = run.trials.iter_mut().filter(move |trial| trial.variant == variant);
    own.flat_map(|trial| &mut trial.steps)
}

fn of_variant(run: &mut Run, variant: usize, change: impl Fn(&mut TrialSummary)) {
    run.trials.iter_mut().filter(|trial| trial.variant == variant).for_each(change);
}

fn level(run: &mut Run, factor: &str, levels: [&str; 2]) {
    for (record, level) in run.manifest.variants.iter_mut().zip(levels) {
        record.levels = vec![LevelRecord { factor: factor.to_owned(), level: level.to_owned() }];
    }
}

fn on(run: &mut Run, variant: usize, place: &PlaceFacts) {
    of_variant(run, variant, |trial| {
        let place = Some(place.clone());
        trial.members = vec![MemberFacts { place, ..MemberFacts::default() }];
    });
}

fn workload(run: &mut Run, name: &str, options: &[(&str, &str)]) {
    for variant in &mut run.manifest.variants {
        variant.workload = name.to_owned();
        variant.options =
            options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    }
}

/// A sound run, spoilt in one way.
type Spoilt = (&'static str, fn(&mut Run));

const GENERATORS: [Spoilt; 8] = [
    ("a busy worker", |run| run.trials[1].steps[0].generator.busiest_worker = 0.91),
    ("calibrated", |run| run.trials[0].steps[0].generator.share_of_calibrated = Some(0.85)),
    ("calibrated and disturbed", |run| {
        run.trials[0].steps[0].generator.share_of_calibrated = Some(0.85);
        run.trials[0].steps[0].generator.calibration_disturbed = true;
    }),
    ("waits", |run| run.trials[0].steps[0].generator.run_queue_s = Some(4.0)),
    ("waits with bound CPUs", |run| {
        run.trials[0].steps[0].generator.run_queue_s = Some(4.0);
        let bound = [("generator_cpus", "1"), ("server_cpus", "0")];
        run.manifest.design.extend(bound.map(|(key, cpus)| (key.to_owned(), cpus.to_owned())));
    }),
    ("all of it, with full CPUs", |run| {
        run.trials[1].steps[0].generator.busiest_worker = 0.91;
        run.trials[0].steps[0].generator.share_of_calibrated = Some(0.85);
        run.trials[0].steps[0].generator.run_queue_s = Some(4.0);
        set(&mut run.trials[0].steps[0], "cpu.busy_pct", |_| 98.0);
    }),
    ("a null server", |run| {
        of_variant(run, 1, |trial| trial.server.product = "Null (MySQL protocol)".to_owned());
    }),
    ("a simulation", |run| {
        run.trials.iter_mut().for_each(|trial| trial.server.transport = "simulated".to_owned());
    }),
];

const HOSTS: [Spoilt; 9] =
    [
        ("hosts at their limit", |run| {
            spread(run);
            run.trials[0].steps[0].hosts[1].generator.busiest_worker = 0.8;
            run.trials[1].steps[0].hosts[1].generator.busiest_worker = 0.9;
            run.trials[1].steps[0].hosts[2].generator.run_queue_s = Some(4.0);
        }),
        ("a host that lags", |run| {
            spread(run);
            for (trial, summary) in run.trials.iter_mut().enumerate() {
                for (idx, host) in summary.steps[0].hosts.iter_mut().enumerate() {
                    let mut lag = new_histogram();
                    let us = if (trial, idx) == (0, 1) { 5_000 } else { 100 };
                    lag.record(us * 1000).expect("it is within the bounds");
                    host.lag = EncodedHistogram::encode(&lag);
                }
            }
        }),
        ("another share", |run| {
            spread(run);
            for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
                let committed = step.hosts[1].kinds[0].outcomes.get_mut("committed");
                *committed.expect("it committed") /= 2;
            }
        }),
        ("a missing host", |run| {
            spread(run);
            let step = &mut run.trials[0].steps[0];
            step.hosts.remove(1);
            for host in &mut step.hosts {
                let n = step.kinds[0].outcomes["committed"] / 2;
                host.kinds[0].outcomes.insert("committed".to_owned(), n);
                (host.due, host.clients) = (n, 3);
            }
        }),
        ("an uncertain clock", |run| {
            spread(run);
            let after = ClockReading { at_s: 600.0, offset_us: 30_000.0, bound_us: 50.0 };
            let clock = ClockFacts { bound_us: 50.0, after: Some(after), ..ClockFacts::default() };
            run.trials[0].steps[0].hosts[1].clock = Some(clock);
        }),
        ("machines of a variant", |run| {
            place(run, |_, block| if block == 2 { ("m5", "m5-2", 4) } else { ("m5", "m5-1", 2) });
        }),
        ("machines of two variants", |run| {
            place(run, |variant, _| [("m5", "x", 2), ("m6", "y", 8)][variant]);
        }),
        ("a split block", |run| {
            place(run, |variant, block| {
                if (variant, block) == (1, 2) { ("m5", "m5-2", 2) } else { ("m5", "m5-1", 2) }
            });
        }),
        ("split blocks", |run| {
            place(run, |variant, block| {
                if variant == 1 && block > 1 { ("m5", "m5-2", 2) } else { ("m5", "m5-1", 2) }
            });
        }),
    ];

const ATTEMPTS: [Spoilt; 19] = [
    ("too few trials yet", |run| run.trials.truncate(3)),
    ("errors", |run| {
        add_outcome(run, "refused", 150_000);
        add_outcome(run, "deadlock", 3);
        run.trials[1].steps[0].kinds[0].outcomes.insert("lost_link".to_owned(), 2);
    }),
    ("timeouts", |run| add_outcome(run, "timed_out", 3)),
    ("conflicts", |run| add_outcome(run, "deadlock", 1_000)),
    ("a dead end", |run| {
        for trial in [1, 3] {
            let step = &mut run.trials[trial].steps[0];
            let n = step.intervals.throughput.len();
            step.intervals.throughput[n - 1 - trial..].fill(0.0);
            step.in_flight_at_end = Some(trial as u64);
        }
    }),
    ("a limit of CPU time", |run| {
        for step in steps(run, 1) {
            set(step, "cgroup.server.throttled_periods_per_s", |_| 9.5);
            set(step, "cgroup.server.cpu_limit", |_| 0.2);
        }
        set(&mut run.trials[0].steps[0], "cgroup.server.throttled_periods_per_s", |_| 2.0);
    }),
    ("missed arrivals", |run| {
        run.trials[3].steps[0].missed = 15_000;
        run.trials[0].steps[0].missed = 5_000;
    }),
    ("nothing sent", |run| {
        let step = &mut run.trials[3].steps[0];
        (step.missed, step.due) = (70_000, 50_000);
        run.trials[1].steps[0].due = 10_000;
        run.trials[5].steps[0].due = 10_000;
    }),
    ("some missed", |run| {
        let step = &mut run.trials[3].steps[0];
        step.missed = 5;
        step.intervals.missed = vec![0.0; step.intervals.start_s.len()];
        step.intervals.missed[5] = 5.0;
    }),
    ("missed in a stall", |run| {
        let step = &mut run.trials[3].steps[0];
        step.missed = 4_000;
        step.intervals.missed = vec![0.0; step.intervals.start_s.len()];
        *step.intervals.missed.last_mut().unwrap() = 4_000.0;
        step.intervals.throughput[10] = 0.0;
    }),
    ("waiting in a pooler", |run| {
        for step in steps(run, 1) {
            step.readings.insert("pgbouncer.wait_longest_s".to_owned(), vec![Some(6.0), None]);
            step.readings.insert("pgbouncer.clients_waiting".to_owned(), vec![Some(56.0), None]);
        }
    }),
    ("durability", forget_durability),
    ("durability on purpose", |run| {
        forget_durability(run);
        let settings = &mut run.manifest.variants[1].settings;
        settings.insert("innodb_flush_log_at_trx_commit".to_owned(), "0".to_owned());
    }),
    ("a failed trial", |run| fail(run, 2, "the server ended.")),
    ("failed and missing trials", |run| {
        fail(run, 2, "the server ended.");
        run.trials.retain(|trial| ![3, 4].contains(&trial.number));
    }),
    ("an audit", |run| {
        run.trials[3].audit.push(AuditRow {
            name: "rows in history, 1 a transaction".to_owned(),
            expected: "50000".to_owned(),
            measured: "49999".to_owned(),
            pass: false,
            is_undecided: false,
        });
    }),
    ("imported", |run| {
        for (trial, tool) in run.trials.iter_mut().zip(["HammerDB 3.2", "sysbench 1.0.20"]) {
            let (tool, place) = (tool.to_owned(), "a.log".to_owned());
            trial.steps[0].imported = Some(ImportedFrom { tool, place });
            trial.steps[0].kinds[0].response = EncodedHistogram::encode(&new_histogram());
        }
    }),
    ("imported with times", |run| {
        let (tool, place) = ("sysbench 1.0.20".to_owned(), "a.log".to_owned());
        run.trials[0].steps[0].imported = Some(ImportedFrom { tool, place });
    }),
    ("searches", |run| {
        let step = &mut run.manifest.steps[0];
        step.name = "highest rate with p99 ≤ 20 ms".to_owned();
        step.search = Some(SearchRecord {
            sought: "rate".to_owned(),
            statistic: "p99".to_owned(),
            bound_us: 20_000.0,
            limit: "p99 ≤ 20 ms".to_owned(),
            precision: 0.05,
        });
        for (trial, found) in run.trials.iter_mut().zip([None, None, Some(9.0), Some(9.0)]) {
            let (settled, probes) = (trial.number > 1, Vec::new());
            let lowest_broken = found.filter(|_| trial.number > 3).map(|found| found + 1.0);
            trial.steps[0].search = Some(SearchSummary { found, lowest_broken, settled, probes });
        }
    }),
];

const STORAGE: [Spoilt; 9] = [
    ("data in memory", |run| {
        let place = PlaceFacts { survives_power_failure: Some(false), ..PlaceFacts::default() };
        on(run, 0, &place);
        on(run, 1, &PlaceFacts { filesystem: Some("tmpfs".to_owned()), ..place });
    }),
    ("fuse", |run| {
        let place = PlaceFacts { filesystem: Some("fuse.zfs".into()), ..PlaceFacts::default() };
        on(run, 1, &place);
        workload(run, "fsync", &[("sync", "fsync"), ("direct", "off")]);
    }),
    ("an image file", |run| {
        let place = PlaceFacts { is_loop_direct: Some(false), ..PlaceFacts::default() };
        on(run, 0, &place);
        on(run, 1, &place);
        workload(run, "file-io", &[("operation", "read"), ("direct", "on")]);
    }),
    ("the page cache", |run| {
        on(run, 1, &PlaceFacts::default());
        workload(run, "fsync", &[("sync", "none"), ("direct", "off")]);
    }),
    ("a disk's cache", |run| {
        let place = PlaceFacts { write_cache: Some("write back".into()), ..PlaceFacts::default() };
        on(run, 1, &place);
        workload(run, "fsync", &[("sync", "none"), ("direct", "on")]);
    }),
    ("a fast disk", |run| {
        on(run, 1, &PlaceFacts { is_rotational: Some(true), ..PlaceFacts::default() });
        workload(run, "fsync", &[("sync", "fsync"), ("direct", "off")]);
    }),
    ("a fast device", |run| {
        on(run, 1, &PlaceFacts { is_rotational: Some(false), ..PlaceFacts::default() });
        workload(run, "fsync", &[("sync", "fsync"), ("direct", "off")]);
        for kind in steps(run, 1).flat_map(|step| &mut step.kinds) {
            kind.outcomes.insert("committed".to_owned(), 9_000_000);
        }
    }),
    ("uncompressed data", |run| {
        let options = Some("rw,compress=zstd:1".to_owned());
        let place = PlaceFacts { options, ..PlaceFacts::default() };
        for (variant, share) in [(0, 97.2), (1, 12.0)] {
            on(run, variant, &place);
            for step in steps(run, variant) {
                let figures = [("data.stored_uncompressed", share), ("data.compressibility", 2.1)];
                step.figures.extend(figures.map(|(name, value)| (MetricId::new(name), value)));
            }
        }
    }),
    ("data that grow", |run| {
        of_variant(run, 1, |trial| {
            trial.data.bytes = Some(100_000_000);
            trial.data.bytes_after = Some(140_000_000);
            trial.data.log_bytes = (trial.number > 2).then_some(10_000_000);
            trial.data.log_bytes_after = (trial.number > 2).then_some(20_000_000);
        });
    }),
];

fn memory(run: &mut Run, sizes: [&str; 2]) {
    for (variant, size) in sizes.into_iter().enumerate() {
        of_variant(run, variant, |trial| {
            let settings = &mut trial.server.settings;
            settings.insert("innodb_buffer_pool_size".to_owned(), size.to_owned());
        });
    }
}

/// In pages.
fn read(run: &mut Run, variant: usize, reads_per_s: f64) {
    for step in steps(run, variant) {
        set(step, "server.disk_read_bytes_per_s", |_| reads_per_s * 16_384.0);
    }
}

const ALIKE: [Spoilt; 14] = [
    ("memory", |run| memory(run, ["134217728", "536870912"])),
    ("memory on purpose", |run| {
        memory(run, ["134217728", "536870912"]);
        for (record, size) in run.manifest.variants.iter_mut().zip(["128M", "512M"]) {
            record.settings.insert("innodb_buffer_pool_size".to_owned(), size.to_owned());
        }
    }),
    ("memory of shards", |run| {
        memory(run, ["134217728", "536870912"]);
        level(run, "database.shards", ["1", "4"]);
    }),
    ("builders", |run| {
        for (variant, builder) in ["Debian bookworm", "Maven x"].into_iter().enumerate() {
            of_variant(run, variant, |trial| {
                let mut product = trial.server.product_facts().into_owned();
                product.build = Some(BuildFacts {
                    source: builder.to_owned(),
                    builder: builder.to_owned(),
                    ..BuildFacts::default()
                });
                trial.server.of_product = Some(product);
            });
        }
    }),
    ("protocols", |run| {
        of_variant(run, 1, |trial| trial.server.transport = "tcp".to_owned());
        for (record, word) in run.manifest.variants.iter_mut().zip(["simple", "prepared"]) {
            record.options.insert("protocol".to_owned(), word.to_owned());
        }
    }),
    ("scheduling", |run| {
        for (variant, group) in ["the generator's", "its own"].into_iter().enumerate() {
            of_variant(run, variant, |trial| {
                let machine = &mut trial.server.machine;
                machine.insert(SCHEDULING_GROUP.to_owned(), group.to_owned());
            });
        }
    }),
    ("encryption", |run| of_variant(run, 1, |trial| trial.server.tls = true)),
    ("one side cached", |run| {
        read(run, 0, 0.0);
        read(run, 1, 5_000.0);
    }),
    ("data that fit", |run| {
        memory(run, ["134217728"; 2]);
        read(run, 0, 2_500.0);
        read(run, 1, 2_500.0);
    }),
    ("data that do not fit", |run| {
        memory(run, ["524288"; 2]);
        read(run, 0, 0.0);
        read(run, 1, 0.0);
    }),
    ("caches, one side and unexpected", |run| {
        memory(run, ["524288", "134217728"]);
        read(run, 0, 0.0);
        read(run, 1, 5_000.0);
    }),
    ("one after the other", |run| run.manifest.order = "sequential".to_owned()),
    ("one data set each", |run| {
        for trial in &mut run.trials {
            trial.data.key = Some(format!("set{}", trial.variant));
        }
    }),
    ("a product in the process", |run| {
        of_variant(run, 1, |trial| {
            let product = ProductFacts { in_process: true, ..ProductFacts::default() };
            trial.server.of_product = Some(product);
        });
    }),
];

const COURSE: [Spoilt; 6] = [
    ("a busy host", |run| {
        for trial in &mut run.trials {
            trial.canary = Some(Canary { before_s: 0.05, after_s: 0.052 });
        }
        run.trials[3].canary = Some(Canary { before_s: 0.05, after_s: 0.11 });
        set(&mut run.trials[0].steps[0], "cpu.steal_pct", |_| 7.0);
        set(&mut run.trials[1].steps[0], "rest.cpu_s_per_s", |_| 1.5);
    }),
    ("a busy host with limits", |run| {
        let voiding = VoidingRecord { steal: 0.02, others: 0.1, canary: 0.25, repeats_max: 2 };
        run.manifest.voiding = Some(voiding);
        for trial in &mut run.trials {
            trial.canary = Some(Canary { before_s: 0.05, after_s: 0.052 });
            set(&mut trial.steps[0], "cpu.steal_pct", |_| 1.0);
            set(&mut trial.steps[0], "rest.cpu_s_per_s", |_| 0.3);
            set(&mut trial.steps[0], "rest.cpu_user_s_per_s", |_| 0.2);
        }
        run.trials[3].canary = Some(Canary { before_s: 0.11, after_s: 0.05 });
        set(&mut run.trials[0].steps[0], "cpu.steal_pct", |_| 7.0);
        set(&mut run.trials[1].steps[0], "rest.cpu_s_per_s", |_| 1.5);
        set(&mut run.trials[1].steps[0], "rest.cpu_user_s_per_s", |_| 0.5);
    }),
    ("restarts", |run| {
        let young = |s: f64| if s < 5.0 { 100.0 + s } else { s - 5.0 };
        set(&mut run.trials[1].steps[0], "mysql.uptime_s", young);
        set(&mut run.trials[2].steps[0], "server.processes", |s| if s == 3.0 { 0.0 } else { 1.0 });
        register(run, &[reading("*.uptime_s", Seconds, "x", "x").role(Role::Uptime)]);
    }),
    ("unfinished steps", |run| {
        for (trial, end) in run.trials.iter_mut().zip(["limit", "unsteady", "quota"]) {
            trial.steps[0].ended_by = Some(end.to_owned());
        }
    }),
    ("a backlog", |run| {
        let own = OwnStepRecord { roles: Vec::new(), ends_by_quota: false, settle_s: 10.0 };
        run.manifest.steps[0].own = Some(own);
        for trial in &mut run.trials {
            let paid = trial.variant == 0;
            let settled = Settled { limit_s: 10.0, took_s: 10.0, paid, notes: Vec::new() };
            trial.steps[0].settled = Some(settled);
        }
        run.trials[0].run_off = Some(RunOff {
            limit_s: 30.0,
            paid_after_s: None,
            unseen: None,
            start_s: Vec::new(),
            readings: BTreeMap::new(),
        });
    }),
    ("discarded blocks", |run| {
        let voiding = VoidingRecord { steal: 0.02, others: 0.1, canary: 0.25, repeats_max: 20 };
        run.manifest.voiding = Some(voiding);
        let why = |trial: u32| format!("trial {trial} (b): the CPU probe took 1 s (limit 500 ms)");
        for (block, n) in [(1, 1), (2, 2), (3, 3), (1, 0), (2, 1), (3, 1), (1, 1), (2, 1), (3, 1)] {
            let why = (0..n).map(|idx| why(2 * (block + idx).min(3))).collect();
            run.voids.push(VoidBlock { block, why, ..VoidBlock::default() });
        }
    }),
];

/// `second` gives throughput by variant, trial and second.
fn by_second(second: impl Fn(usize, u32, usize) -> f64) -> Run {
    let mut run = run(&["a", "b"], &[1, 4], 3, |_, _, _| 5_000.0);
    for trial in &mut run.trials {
        let (variant, number) = (trial.variant, trial.number);
        for step in &mut trial.steps {
            step.measured_s = 60.0;
            step.intervals.start_s = (0..62).map(|i| f64::from(i) - 2.0).collect();
            let measured = (0..60).map(|i| second(variant, number, i));
            step.intervals.throughput = [10.0, 10.0].into_iter().chain(measured).collect();
        }
    }
    run
}

fn noise(i: usize) -> f64 {
    [3.0, -4.0, 9.0, 0.0, -7.0, 5.0, -6.0][i % 7] * 2.0
}

/// Eight blocks in which b drifts from a.
fn drifting(per_block: f64, per_trial: f64, clients: &[u64]) -> Run {
    let mut random = Seed(5).stream();
    let noise: Vec<f64> = (0..16).map(|_| 0.002 * random.normal()).collect();
    let place = |variant: usize, block: u32| {
        if block.is_multiple_of(2) { variant } else { 1 - variant }
    };
    let mut run = run(&["a", "b"], clients, 8, |variant, _, block| {
        let later = f64::from(block) * 2.0 + place(variant, block) as f64;
        let drift = per_block * f64::from(block) * variant as f64 + per_trial * later;
        5_000.0 * (drift + noise[block as usize * 2 + variant]).exp()
    });
    for (plan, trial) in run.manifest.trials.iter_mut().zip(&mut run.trials) {
        let block = plan.block - 1;
        plan.number = block * 2 + place(plan.variant, block) as u32 + 1;
        trial.number = plan.number;
    }
    run
}

fn shapes() -> Vec<(&'static str, Run)> {
    let at = |rate: f64, n: u32| run(&["a"], &[4], n, |_, _, _| rate);
    let mut open = run(&["a", "b"], &[4], 3, |v, _, r| [1_000.0, 1_030.0][v] * wobble(v, 9, r));
    open.manifest.stopping = Some(StoppingRecord { repetitions_min: 3, repetitions_max: 10 });
    let plateau = [50.0, 100.0, 200.0, 400.0, 400.0, 400.0];
    let plateau = |_: usize, step: usize, r: u32| 50.0 * plateau[step] * wobble(0, step, r);
    let mut levels = run(&["a", "b"], &[1, 4, 16], 3, |_, _, _| 5_000.0);
    memory(&mut levels, ["134217728"; 2]);
    for step in levels.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        set(step, "server.disk_read_bytes_per_s", |_| 2_500.0 * 16_384.0);
    }
    of_variant(&mut levels, 1, |trial| {
        trial.data.bytes = Some(100_000_000);
        trial.data.bytes_after = Some(40_000_000);
    });
    let slow = |i: usize| if i < 12 { 700.0 } else { 1000.0 + noise(i) };
    let step_of = |at: usize, i: usize| if i < at { 1000.0 } else { 800.0 } + noise(i);
    let slower = |_: usize, _: usize, r: u32| 5_000.0 * 0.98_f64.powi(r as i32) * wobble(0, 0, r);
    let mut alone = at(5_000.0, 1);
    set(&mut alone.trials[0].steps[0], "cpu.steal_pct", |_| 7.0);
    let mut pair = at(5_000.0, 3);
    set(&mut pair.trials[0].steps[0], "cpu.steal_pct", |_| 7.0);
    let mut job = run(&["a"], &[0], 3, |_, _, _| 5_000.0);
    job.manifest.steps[0].name = "load".to_owned();
    for trial in &mut job.trials {
        trial.steps[0] = step_summary(0, 5_000.0, 0.001);
    }
    job.trials[1].steps[0].ended_by = Some("limit".to_owned());
    vec![
        ("too few repetitions", at(5_000.0, 2)),
        ("a short measurement", at(150.0, 3)),
        ("a shorter one", at(8.0, 1)),
        ("one transaction", at(0.1, 1)),
        ("a little short", at(500.0, 3)),
        ("open verdicts", open),
        ("no law", run(&["a"], &[1, 2, 4, 8, 16, 32], 3, plateau)),
        ("load levels", levels),
        ("warm-up", by_second(|_, trial, i| if trial > 2 { slow(i) } else { 1000.0 + noise(i) })),
        ("a trend", by_second(|v, _, i| 1000.0 - [5.0, 4.0][v] * i as f64 + noise(i))),
        ("a late change", by_second(|_, _, i| step_of(50, i))),
        ("a change", by_second(|_, _, i| step_of(40, i))),
        ("stalls", by_second(|_, t, i| if t == 1 && i == 30 { 0.0 } else { 1000.0 + noise(i) })),
        ("a drift", run(&["a", "b"], &[4], 8, slower)),
        ("differences that drift", drifting(0.01, 0.0, &[1, 2, 4, 8])),
        ("a drift within blocks", drifting(0.0, 0.01, &[4])),
        ("one trial on a busy host", alone),
        ("one variant on a busy host", pair),
        ("a job", job),
    ]
}

fn two_runs() -> Vec<(&'static str, Findings)> {
    let first = run(&["a", "b"], &[1, 4], 3, |_, _, r| 5_000.0 + f64::from(r));
    let second = |change: &dyn Fn(&mut Run)| {
        let mut second = Run { folder: PathBuf::from("runs/second"), ..first.clone() };
        second.manifest.created_unix_ms += 1;
        change(&mut second);
        second
    };
    let joined =
        |change: &dyn Fn(&mut Run)| analyse(&[first.clone(), second(change)], &Options::default());
    let other = joined(&|run| {
        run.manifest.variants.iter_mut().for_each(|v| v.workload = "tpcb".to_owned());
    });
    let fewer = joined(&|run| {
        run.manifest.steps[1].clients = 8;
        run.manifest.steps[1].name = "8 clients".to_owned();
        run.manifest.variants[1].name = "c".to_owned();
    });
    let many: Vec<String> = (0..6).map(|idx| format!("v{idx}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let wide = run(&many, &[4], 3, |_, _, _| 5_000.0);
    let mut unlike = Run { folder: PathBuf::from("runs/unlike"), ..wide.clone() };
    unlike.manifest.created_unix_ms += 1;
    unlike.manifest.variants.iter_mut().for_each(|v| v.workload = "tpcb".to_owned());
    let copied = |run: &mut Run, key: &str| {
        run.trials.iter_mut().for_each(|trial| trial.data.key = Some(key.to_owned()));
    };
    let mut one = first.clone();
    copied(&mut one, "x");
    let apart = analyse_against(&one, &second(&|run| copied(run, "y")), &Options::default());
    let void = |run: &mut Run| {
        let voiding = VoidingRecord { steal: 0.02, others: 0.1, canary: 0.25, repeats_max: 1 };
        run.manifest.voiding = Some(voiding);
        let why = vec!["trial 3 (a): CPU steal was 9 % (limit 2 %)".to_owned()];
        run.voids = vec![VoidBlock { block: 2, why, ..VoidBlock::default() }];
    };
    let mut full = first.clone();
    void(&mut full);
    vec![
        ("other workloads", other),
        ("other load levels", fewer),
        ("many other workloads", analyse(&[wide, unlike], &Options::default())),
        ("runs apart", apart),
        ("a full run", analyse(&[full.clone()], &Options::default())),
        ("full runs", analyse(&[full.clone(), second(&void)], &Options::default())),
        ("one full run", analyse(&[full, second(&|_| ())], &Options::default())),
    ]
}

#[test]
fn every_caveat_word_for_word() {
    let spoilt = [&GENERATORS[..], &HOSTS, &ATTEMPTS, &STORAGE, &ALIKE, &COURSE].concat();
    let spoilt = spoilt.into_iter().map(|(name, spoil)| {
        let mut run = sound();
        spoil(&mut run);
        (name, run)
    });
    let one = spoilt.chain(shapes());
    let one = one.map(|(name, run)| (name, analyse(&[run], &Options::default())));
    let mut text = String::new();
    let mut kinds = BTreeSet::new();
    for (name, findings) in one.chain(two_runs()) {
        writeln!(text, "== {name}").unwrap();
        for Caveat { kind, message, advice, variants, steps } in findings.caveats {
            kinds.insert(kind);
            writeln!(text, "{kind:?} {variants:?} {steps:?}\n  {message}\n  {advice}").unwrap();
        }
    }
    expect_file!["caveats.txt"].assert_eq(&text);
    assert_eq!(kinds.last(), Some(&CaveatKind::Simulated));
    assert_eq!(kinds.len(), CaveatKind::Simulated as usize + 1, "{kinds:?}");
}
