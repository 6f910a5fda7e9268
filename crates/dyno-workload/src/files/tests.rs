//! What clients do with files, and its audit.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use crate::catalog::{Catalog, PlanError};
use crate::fake::{Fake, Ran, made, refused_option};
use crate::workload::MeasuredStep;
use crate::{AuditRow, AuditTotals, Dialect, KindTotals, MadeWorkload, Tally, Target, TextRows};

type Given<'a> = &'a [(&'a str, &'a str)];

fn make(name: &str, options: Given<'_>) -> Result<MadeWorkload, PlanError> {
    made(name, options, 4)
}

/// What this client sends, without what opens its files.
fn ran(fake: Fake, made: &MadeWorkload, n: u64) -> Ran {
    let mut ran = fake.run(made, n);
    ran.sent.retain(|sent| !sent.sql.contains('='));
    ran
}

fn run(name: &str, options: Given<'_>, n: u64) -> Ran {
    ran(Fake::new(Dialect::Sqlite), &make(name, options).unwrap(), n)
}

#[test]
fn only_these_workloads_work_on_files() {
    for spec in Catalog::built_in().workloads() {
        let expected = match &*spec.name {
            "file-io" | "fsync" => Target::Files,
            "none" => Target::Anything,
            "documents" => Target::Documents,
            _ => Target::Sql,
        };
        let planned = made(&spec.name, &[], 1).unwrap();
        assert_eq!((spec.target, planned.outline().target), (expected, expected), "{}", spec.name);
    }
}

#[track_caller]
fn check_sent((name, options): (&str, Given<'_>), n: u64, expected: Expect) {
    expected.assert_eq(&run(name, options, n).sent_text());
}

const SMALL: (&str, &str) = ("total_size", "64KiB");

#[test]
fn sequential_clients_go_through_their_part_and_begin_again() {
    let options = [SMALL, ("access", "sequential"), ("files", "2")];
    check_sent(
        ("file-io", &options),
        5,
        expect![[r#"
            read ? ? 0 0
            read ? ? 0 16384
            read ? ? 1 0
            read ? ? 1 16384
            read ? ? 0 0
        "#]],
    );
    let made = make("file-io", &options).unwrap();
    let second = ran(Fake::of(1, 2), &made, 3).sent_text();
    assert_eq!(second, "read ? ? 1 0\nread ? ? 1 16384\nread ? ? 1 0\n");
    // More clients than blocks share them.
    let last = ran(Fake::of(6, 7), &made, 1).sent_text();
    assert_eq!(last, "read ? ? 1 16384\n");
}

#[test]
fn a_client_syncs_after_so_many_of_its_writes() {
    let options = [SMALL, ("access", "sequential"), ("operation", "write"), ("sync", "fdatasync")];
    check_sent(
        ("file-io", &[&options[..], &[("sync_every", "2")]].concat()),
        4,
        expect![[r#"
            write ? ? 0 0
            write ? ? 0 16384
            fdatasync ? 0
            write ? ? 0 32768
            write ? ? 0 49152
            fdatasync ? 0
        "#]],
    );
    let kinds = |more: Given<'_>| -> Vec<String> {
        let made = make("file-io", &[&options[..3], more].concat()).unwrap();
        made.kinds().iter().map(|name| name.clone().into_owned()).collect()
    };
    assert_eq!(kinds(&[]), ["write"]);
    assert_eq!(kinds(&[("sync", "dsync")]), ["synced write"]);
    assert_eq!(kinds(&[("sync", "fsync")]), ["synced write"]);
    assert_eq!(kinds(&[("sync", "fsync"), ("sync_every", "9")]), ["write", "synced write"]);
}

#[test]
fn fsync_overwrites_or_appends_until_the_limit() {
    check_sent(
        ("fsync", &[]),
        2,
        expect![[r#"
            write ? ? 0 0
            fsync ? 0
            write ? ? 0 0
            fsync ? 0
        "#]],
    );
    check_sent(
        ("fsync", &[("position", "append"), ("append_limit", "1600"), ("sync", "dsync")]),
        4,
        expect![[r#"
            write ? ? 0 512
            write ? ? 0 1024
            truncate ? 0
            write ? ? 0 0
            write ? ? 0 512
        "#]],
    );
    let made = make("fsync", &[("operations", "1000")]).unwrap();
    let [step] = made.steps() else { panic!("it has one step") };
    assert_eq!((&*step.name, step.roles[0].quota), ("1000 operations", Some(1000)));
    assert!(make("fsync", &[]).unwrap().steps().is_empty());
}

#[test]
fn random_places_are_aligned_and_within_the_files() {
    let options =
        [("total_size", "1MiB"), ("files", "4"), ("block_size", "4KiB"), ("alignment", "512")];
    let ran = run("file-io", &options, 500);
    let mut odd = 0;
    for sent in &ran.sent {
        let [file, offset] = [0, 1].map(|idx| sent.values[idx].parse::<u64>().unwrap());
        assert!(file < 4 && offset + 4096 <= 256 << 10 && offset % 512 == 0, "{sent:?}");
        odd += u64::from(offset % 4096 != 0);
    }
    assert!(odd > 400, "{odd}");
}

#[track_caller]
fn check_refused((name, options): (&str, Given<'_>), option: &str, reason: &str) {
    let error = refused_option(make(name, options));
    assert_eq!(error.name, option);
    assert!(error.reason.contains(reason), "{}", error.reason);
}

#[test]
fn what_cannot_be_done_is_refused_with_what_to_do() {
    let io = |options: Given<'_>, option: &str, reason: &str| {
        check_refused(("file-io", options), option, reason);
    };
    io(&[("block_size", "1000")], "block_size", "not a multiple of 512");
    io(&[("alignment", "100")], "alignment", "set direct = false");
    assert!(make("file-io", &[("block_size", "1000"), ("direct", "off")]).is_ok());
    io(&[("block_size", "0")], "block_size", "not between 1 and 64MiB");
    io(&[("block_size", "x")], "block_size", "is not a size such as 512");
    io(&[("total_size", "8KiB")], "total_size", "at least one block of 16KiB");
    io(&[("files", "0")], "files", "from 1 to 10000");
    io(&[("operation", "write")], "operation", "access = \"sequential\"");
    io(&[("sync_every", "2")], "sync_every", "with sync = \"fsync\"");
    io(&[("sync", "dsync"), ("sync_every", "2")], "sync_every", "with sync = \"fsync\"");
    io(&[("compress_ratio", "0.5")], "compress_ratio", "from 1 to 32");
    io(&[("read_share", "101")], "read_share", "percentage");
    io(&[("access", "sequential"), ("alignment", "512")], "alignment", "follow one another");
    let fsync = |options: Given<'_>, option: &str, reason: &str| {
        check_refused(("fsync", options), option, reason);
    };
    fsync(&[("bytes", "100"), ("direct", "on")], "bytes", "not a multiple of 512");
    fsync(&[("append_limit", "100")], "append_limit", "not between 512");
}

fn totals(kinds: &[u64], tally: Tally) -> AuditTotals {
    let kinds = kinds.iter().map(|n| KindTotals { committed: *n, ..KindTotals::default() });
    AuditTotals { kinds: kinds.collect(), tally, in_flight: 0 }
}

fn answer(numbers: [u64; 5]) -> Vec<TextRows> {
    vec![vec![numbers.iter().map(|n| Some(n.to_string())).collect()]]
}

fn failed(rows: &[AuditRow]) -> BTreeMap<&str, &str> {
    let failed = rows.iter().filter(|row| !row.pass);
    failed.map(|row| (row.name.split(',').next().unwrap(), row.measured.as_str())).collect()
}

#[test]
fn the_audit_finds_what_is_missing_damaged_or_was_never_done() {
    let options = [
        SMALL,
        ("operation", "mixed"),
        ("sync", "fsync"),
        ("sync_every", "4"),
        ("read_share", "50"),
    ];
    let made = make("file-io", &options).unwrap();
    // Nothing was drawn, so that the share of reads says nothing.
    let tally = Tally { reads: 10, writes: 10, others: 2, ..Tally::default() };
    let all = totals(&[10, 8, 2], tally);
    let right = answer([65536, 65536, 128, 0, 0]);
    assert_eq!(failed(&made.audit(&all, &right)), BTreeMap::new());
    let wrong = made.audit(&all, &answer([65000, 100, 128, 3, 2]));
    assert_eq!(
        failed(&wrong),
        BTreeMap::from([
            ("bytes of the files", "65000; 100 on disk, 0.002 of that"),
            ("sectors without content", "3"),
            ("sectors with wrong content", "2"),
        ])
    );
    let less = totals(&[10, 8, 2], Tally { reads: 9, writes: 11, others: 0, ..Tally::default() });
    let found = made.audit(&less, &right);
    assert_eq!(failed(&found), BTreeMap::from([("reads", "9"), ("writes", "11"), ("syncs", "0")]));
    assert_eq!(failed(&made.audit(&all, &[])).len(), 3);
}

#[test]
fn writes_that_begin_again_are_no_first_writes() {
    let options = [SMALL, ("access", "sequential"), ("operation", "write")];
    for (n, expected) in [(4, None), (6, Some("2"))] {
        let made = make("file-io", &options).unwrap();
        let ran = ran(Fake::new(Dialect::Sqlite), &made, n);
        assert_eq!(ran.sent.len() as u64, n);
        let all = totals(&[n], Tally { writes: n, ..Tally::default() });
        let rows = made.audit(&all, &answer([65536, 65536, 128, 0, 0]));
        let again = "writes to offsets that were written before";
        assert_eq!(failed(&rows).get(again).copied(), expected);
    }
}

#[test]
fn a_skew_that_is_not_there_is_found() {
    let options = [("distribution", "zipfian"), ("total_size", "16MiB")];
    let made = make("file-io", &options).unwrap();
    Fake::new(Dialect::Sqlite).run(&made, 3000);
    let row = |made: &MadeWorkload| {
        let rows = made.audit(&AuditTotals::default(), &[]);
        rows.into_iter().find(|row| row.name.starts_with("offsets drawn")).unwrap()
    };
    let found = row(&made);
    assert!(found.pass && !found.is_undecided, "{found:?}");
}

#[test]
fn figures_are_of_bytes_and_cpu() {
    let made = make("file-io", &[("block_size", "4KiB")]).unwrap();
    let step = MeasuredStep {
        committed: &[1000],
        seconds: 2.0,
        cpu_s: Some(0.01),
        ..MeasuredStep::default()
    };
    let figures: Vec<f64> = made.figures(&step).into_iter().map(|(_, value)| value).collect();
    assert_eq!(figures, [2_048_000.0, 10.0]);
    let ids: Vec<_> = made.figures(&step).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, made.outline().metrics.iter().map(|metric| metric.id).collect::<Vec<_>>());
    let nothing = MeasuredStep { committed: &[0], ..MeasuredStep::default() };
    assert!(made.figures(&nothing).is_empty());
}
