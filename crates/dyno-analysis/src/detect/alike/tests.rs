//! Unlike variants, one way at a time.

use std::collections::BTreeMap;

use dyno_record::{LevelRecord, Run};

use super::super::tests::{caveats_of, contains, only, sound};
use crate::CaveatKind;

fn set(run: &mut Run, variant: usize, name: &str, value: &str) {
    for trial in run.trials.iter_mut().filter(|trial| trial.variant == variant) {
        trial.server.settings.insert(name.to_owned(), value.to_owned());
    }
}

/// In pages, for the servers of a variant.
fn read(run: &mut Run, variant: usize, reads_per_s: f64) {
    insert(run, variant, ("server.disk_read_bytes_per_s", reads_per_s * 16_384.0));
}

fn insert(run: &mut Run, variant: usize, (reading, value): (&str, f64)) {
    for trial in run.trials.iter_mut().filter(|trial| trial.variant == variant) {
        let step = &mut trial.steps[0];
        let column = vec![Some(value); step.intervals.start_s.len()];
        step.readings.insert(reading.to_owned(), column);
    }
}

#[test]
fn different_memory() {
    let caveat = only(CaveatKind::DifferentMemory, |run| {
        set(run, 0, "innodb_buffer_pool_size", "134217728");
        set(run, 1, "shared_buffers", "512MB");
    });
    contains(&caveat.message, "b: 537 MB; a: 134 MB");
    assert_eq!(caveat.variants, [0, 1]);
    // SQLite: 128 MiB in pages, and in KiB.
    let mut run = sound();
    for (variant, size) in [(0, "32768"), (1, "-131072")] {
        set(&mut run, variant, "cache_size", size);
        set(&mut run, variant, "page_size", "4096");
    }
    assert_eq!(caveats_of(run), []);
}

#[test]
fn versions_of_different_builders() {
    let build = |run: &mut Run, variant: usize, source: &str, builder: &str| {
        for trial in run.trials.iter_mut().filter(|trial| trial.variant == variant) {
            let mut product = trial.server.product_facts().into_owned();
            product.build = Some(dyno_record::BuildFacts {
                source: source.to_owned(),
                builder: builder.to_owned(),
                programs: format!("/opt/{variant}/bin"),
                package: (source == "maven").then(|| "postgres".to_owned()),
                ..dyno_record::BuildFacts::default()
            });
            trial.server.of_product = Some(product);
        }
    };
    let caveat = only(CaveatKind::DifferentBuilders, |run| {
        build(run, 0, "machine", "Debian bookworm");
        build(run, 1, "maven", "Maven x");
    });
    contains(&caveat.message, "b: Maven x, postgres; a: Debian bookworm.");
    contains(&caveat.advice, "from one builder");
    let none = |one: (&str, &str), other: (&str, &str)| {
        let mut run = sound();
        build(&mut run, 0, one.0, one.1);
        build(&mut run, 1, other.0, other.1);
        assert_eq!(caveats_of(run), [], "{one:?} {other:?}");
    };
    none(("maven", "Maven x"), ("maven", "Maven x"));
    none(("machine", "Debian bookworm"), ("debian", "Debian bookworm"));
    // Builds of the user's own are the question.
    none(("machine", ""), ("machine", ""));
}

#[test]
fn memory_that_is_the_question_is_no_caveat() {
    let mut run = sound();
    set(&mut run, 0, "innodb_buffer_pool_size", "134217728");
    set(&mut run, 1, "innodb_buffer_pool_size", "1073741824");
    for (record, size) in run.manifest.variants.iter_mut().zip(["128M", "1G"]) {
        let factor = "setting.innodb_buffer_pool_size".to_owned();
        record.levels = vec![LevelRecord { factor, level: size.to_owned() }];
        record.settings.insert("innodb_buffer_pool_size".to_owned(), size.to_owned());
    }
    assert_eq!(caveats_of(run.clone()), []);
    // On databases as the factor: on purpose, and said so.
    for (idx, record) in run.manifest.variants.iter_mut().enumerate() {
        let (factor, level) = ("database".to_owned(), format!("d{idx}"));
        record.levels = vec![LevelRecord { factor, level }];
    }
    let caveats = caveats_of(run);
    let [caveat] = caveats.as_slice() else { panic!("{caveats:?}") };
    assert_eq!(caveat.kind, CaveatKind::DifferentMemory);
    contains(&caveat.advice, "Varied on purpose");
}

#[test]
fn memory_that_comes_with_shards_is_said_to_do_so() {
    let mut run = sound();
    // In all, as the members report it.
    set(&mut run, 0, "innodb_buffer_pool_size", "134217728");
    set(&mut run, 1, "innodb_buffer_pool_size", "536870912");
    for (record, shards) in run.manifest.variants.iter_mut().zip(["1", "4"]) {
        let factor = "database.shards".to_owned();
        record.levels = vec![LevelRecord { factor, level: shards.to_owned() }];
    }
    let caveats = caveats_of(run);
    let [caveat] = caveats.as_slice() else { panic!("{caveats:?}") };
    assert_eq!(caveat.kind, CaveatKind::DifferentMemory);
    contains(&caveat.advice, "more servers and more memory together");
}

#[test]
fn different_protocol() {
    let caveat = only(CaveatKind::DifferentProtocol, |run| {
        for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
            trial.server.transport = "tcp".to_owned();
        }
    });
    contains(&caveat.message, "b: tcp; a: unix");
    let caveat = only(CaveatKind::DifferentProtocol, |run| {
        for (record, word) in run.manifest.variants.iter_mut().zip(["simple", "prepared"]) {
            record.options = BTreeMap::from([("protocol".to_owned(), word.to_owned())]);
        }
    });
    contains(&caveat.message, "b: unix and protocol prepared; a: unix and protocol simple");
}

#[test]
fn a_protocol_that_is_varied_on_purpose_is_no_caveat() {
    let mut run = sound();
    for (record, word) in run.manifest.variants.iter_mut().zip(["simple", "prepared"]) {
        record.options = BTreeMap::from([("protocol".to_owned(), word.to_owned())]);
        let factor = "option.protocol".to_owned();
        record.levels = vec![LevelRecord { factor, level: word.to_owned() }];
    }
    assert_eq!(caveats_of(run), []);
}

#[test]
fn different_scheduling() {
    let group = |run: &mut Run, variant: usize, value: &str| {
        for trial in run.trials.iter_mut().filter(|trial| trial.variant == variant) {
            let machine = &mut trial.server.machine;
            machine.insert(dyno_record::SCHEDULING_GROUP.to_owned(), value.to_owned());
        }
    };
    let caveat = only(CaveatKind::DifferentScheduling, |run| {
        group(run, 0, "the generator's");
        group(run, 1, "its own, CPU weights 1 : 1");
    });
    contains(&caveat.message, "b: its own, CPU weights 1 : 1; a: the generator's.");
    let mut run = sound();
    group(&mut run, 0, "its own, CPU weights 1 : 1");
    // Unknown for a URL on another machine.
    assert_eq!(caveats_of(run.clone()), []);
    group(&mut run, 1, "its own, CPU weights 0.5 : 1");
    for (record, weight) in run.manifest.variants.iter_mut().zip(["100", "50"]) {
        let factor = "database.cpu_weight".to_owned();
        record.levels = vec![LevelRecord { factor, level: weight.to_owned() }];
    }
    assert_eq!(caveats_of(run), []);
}

#[test]
fn different_tls() {
    let caveat = only(CaveatKind::DifferentTls, |run| {
        for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
            trial.server.tls = true;
        }
    });
    contains(&caveat.message, "b: TLS; a: no TLS");
}

#[test]
fn a_data_set_that_grows() {
    let caveat = only(CaveatKind::DataChangedSize, |run| {
        run.trials[1].data.bytes = Some(100_000_000);
        run.trials[1].data.bytes_after = Some(140_000_000);
        run.trials[0].data.bytes_after = run.trials[0].data.bytes;
    });
    contains(&caveat.message, "b went from 100 MB to 140 MB, logs included");
    assert_eq!(caveat.variants, [1]);
}

#[test]
fn logs_that_grow_are_no_data() {
    let with_logs = |run: &mut Run, log_bytes_after| {
        run.trials[1].data.bytes = Some(100_000_000);
        run.trials[1].data.bytes_after = Some(140_000_000);
        run.trials[1].data.log_bytes = Some(10_000_000);
        run.trials[1].data.log_bytes_after = Some(log_bytes_after);
        run.trials[0].data.bytes_after = run.trials[0].data.bytes;
    };
    let caveat = only(CaveatKind::DataChangedSize, |run| with_logs(run, 20_000_000));
    contains(&caveat.message, "b went from 90.0 MB to 120 MB, logs excluded");
    let mut run = sound();
    with_logs(&mut run, 50_000_000);
    assert_eq!(caveats_of(run), []);
}

#[test]
fn data_in_memory_on_one_side_only() {
    let caveat = only(CaveatKind::UnexpectedCaching, |run| {
        read(run, 0, 0.0);
        read(run, 1, 5_000.0);
    });
    contains(&caveat.message, "b at 4 clients did 1.00 disk reads per transaction, a almost none");
    assert_eq!((caveat.variants, caveat.steps), (vec![0, 1], vec![0]));
}

#[test]
fn what_a_handful_of_transactions_read_says_nothing_of_caches() {
    let mut run = sound();
    for trial in &mut run.trials {
        for kind in trial.steps.iter_mut().flat_map(|step| &mut step.kinds) {
            kind.outcomes.insert("committed".to_owned(), 1);
        }
    }
    read(&mut run, 0, 0.0);
    read(&mut run, 1, 5_000.0);
    let found = caveats_of(run);
    assert!(found.iter().all(|c| c.kind != CaveatKind::UnexpectedCaching), "{found:?}");
}

#[test]
fn what_others_read_from_the_same_disks_does_not_count() {
    let mut run = sound();
    insert(&mut run, 1, ("disk.reads_per_s", 5_000.0));
    insert(&mut run, 0, ("disk.reads_per_s", 0.0));
    assert_eq!(caveats_of(run.clone()), []);
    read(&mut run, 0, 0.0);
    read(&mut run, 1, 0.0);
    assert_eq!(caveats_of(run), []);
}

#[test]
fn data_that_fit_and_are_read_all_the_same() {
    let caveat = only(CaveatKind::UnexpectedCaching, |run| {
        for variant in 0..2 {
            set(run, variant, "innodb_buffer_pool_size", "134217728");
            read(run, variant, 2_500.0);
        }
    });
    contains(
        &caveat.message,
        "a at 4 clients fits in cache (1.05 MB of data, 134 MB of cache) but did",
    );
}

#[test]
fn logs_are_no_data_that_a_cache_holds() {
    let of = |log_bytes: u64| {
        let mut run = sound();
        for variant in 0..2 {
            set(&mut run, variant, "innodb_buffer_pool_size", "524288");
            read(&mut run, variant, 0.0);
        }
        for trial in &mut run.trials {
            trial.data.log_bytes = Some(log_bytes);
        }
        caveats_of(run).iter().any(|caveat| caveat.kind == CaveatKind::UnexpectedCaching)
    };
    assert!(!of(600_000));
    // More logs than data: the size is without them.
    assert!(of(5_000_000));
}

#[test]
fn data_that_do_not_fit_and_are_not_read() {
    let caveat = only(CaveatKind::UnexpectedCaching, |run| {
        for variant in 0..2 {
            set(run, variant, "innodb_buffer_pool_size", "524288");
            read(run, variant, 0.0);
        }
    });
    contains(&caveat.message, "a at 4 clients caches 50 % (1.05 MB of data, 524 kB of cache)");
}
