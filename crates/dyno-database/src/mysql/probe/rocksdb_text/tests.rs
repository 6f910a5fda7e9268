//! Texts of three versions: a real one of MariaDB 10.11, two written from documentation.

use proptest::prelude::*;

use super::*;

const MARIADB: &str = include_str!("../../../../tests/fixtures/rocksdb/mariadb-10.11.txt");
const ROCKSDB_5: &str = include_str!("../../../../tests/fixtures/rocksdb/rocksdb-5.txt");
const ROCKSDB_8: &str = include_str!("../../../../tests/fixtures/rocksdb/rocksdb-8.txt");

fn level<'a>(status: &'a RocksDbStatus, family: &str, name: &str) -> &'a Level {
    status.families[family].iter().find(|level| level.name == name).unwrap()
}

#[test]
fn mariadb_as_it_is() {
    let status = parse_rocksdb_status(MARIADB);
    assert_eq!(status.families.keys().collect::<Vec<_>>(), ["__system__", "default"]);
    let l0 = level(&status, "__system__", "L0");
    assert_eq!((l0.files, l0.compacting, l0.score), (2.0, 0.0, 0.5));
    assert_eq!(l0.bytes, 2.21 * 1024.0);
    assert_eq!(l0.columns["Comp(cnt)"], 6.0);
    assert_eq!(level(&status, "__system__", "Sum").columns["KeyDrop"], 3.0);
    // The table by priority has the same heads and is another one.
    assert!(status.families["__system__"].iter().all(|level| level.name != "Low"));
    assert_eq!(status.stalled_percent, Some(0.0));
    assert_eq!(status.stalls["level0_slowdown"], 0.0);
    assert_eq!(status.pending_compaction_bytes, None);
}

#[test]
fn sizes_in_mebibytes_and_thousands_are_read() {
    let status = parse_rocksdb_status(ROCKSDB_5);
    let l1 = level(&status, "default", "L1");
    assert_eq!((l1.files, l1.compacting), (4.0, 1.0));
    assert_eq!(l1.bytes, 128.0 * 1_048_576.0);
    assert_eq!((l1.columns["KeyIn"], l1.columns["KeyDrop"]), (23e6, 11e3));
    assert_eq!(status.stalls["slowdown for pending_compaction_bytes"], 4.0);
    assert_eq!(status.stalled_percent, Some(2.1));
    // Level 0 is due, level 1 is twice its target, level 2 is below its own.
    let mebibyte = 1_048_576.0;
    let estimate = pending_compaction_bytes(&status.families["default"]);
    assert_eq!(estimate, 90.0 * mebibyte + 64.0 * mebibyte);
}

#[test]
fn newer_texts_report_what_is_pending() {
    let status = parse_rocksdb_status(ROCKSDB_8);
    assert_eq!(status.pending_compaction_bytes, Some(1_610_612_736.0));
    assert_eq!(level(&status, "default", "L0").bytes, 1.5 * 1024_f64.powi(3));
    assert_eq!(level(&status, "default", "L6").columns["Comp(sec)"], 380.0);
    assert_eq!(status.stalls["total-delays"], 8.0);
    assert_eq!(status.stalls["pending-compaction-bytes-delays"], 2.0);
    assert_eq!(status.stalls["write-buffer-manager-limit-stops"], 0.0);
    assert_eq!(status.stalled_percent, Some(16.7));
}

proptest! {
    #[test]
    fn cut_texts_are_no_harm(at in 0_usize..20_000, which in 0_usize..3) {
        let text = [MARIADB, ROCKSDB_5, ROCKSDB_8][which];
        let at = at % text.len();
        if text.is_char_boundary(at) {
            let status = parse_rocksdb_status(&text[..at]);
            parse_rocksdb_status(&text[at..]);
            for levels in status.families.values() {
                prop_assert!(pending_compaction_bytes(levels).is_finite());
            }
        }
    }

    #[test]
    fn garbage_is_no_harm(
        text in "(\n?(\\*\\* Compaction Stats \\[|Level    Files Size Score|L[0-9]|Sum|\
                 [ ][0-9]/[0-9]|Stalls\\(count\\):|Write Stall \\(count\\):|\
                 Estimated pending compaction bytes:|[é ,:|0-9KMG.]{0,9})){0,40}",
    ) {
        parse_rocksdb_status(&text);
    }
}
