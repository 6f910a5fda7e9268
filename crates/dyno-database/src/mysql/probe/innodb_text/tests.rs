//! Texts of each supported version: real ones of MariaDB 10.11 and MySQL 9.7, others written from
//! documentation.

use proptest::prelude::*;

use super::parse_innodb_status;

const MARIADB_10_11: &str = include_str!("../../../../tests/fixtures/innodb/mariadb-10.11.txt");

#[track_caller]
fn check(text: &str, expected: &[(&str, f64)]) {
    let values = parse_innodb_status(text);
    for (name, expected) in expected {
        let found = values.get(*name).copied();
        assert_eq!(found, Some(*expected), "{name}\n{values:#?}");
    }
}

#[test]
fn mariadb_10_11_as_it_is() {
    check(
        MARIADB_10_11,
        &[
            ("history_list_length", 1.0),
            ("trx_id", 31.0),
            ("purge_lag", 6.0),
            ("transactions_active", 4.0),
            ("transactions_waiting", 3.0),
            ("transaction_longest_s", 1.0),
            ("pending_flushes", 0.0),
            ("os_file_reads", 179.0),
            ("os_file_writes", 934.0),
            ("os_fsyncs", 173.0),
            ("lsn", 17_613_368.0),
            ("master_loops_idle", 1802.0),
        ],
    );
    let values = parse_innodb_status(MARIADB_10_11);
    assert_eq!(values["checkpoint_age"], values["lsn"] - values["lsn_checkpoint"]);
    assert!(values["dirty_percent"] > 1.0 && values["dirty_percent"] < 100.0);
    assert!(values.contains_key("pages_written") && values.contains_key("lru_len"));
}

#[test]
fn mysql_9_7_as_it_is() {
    check(
        include_str!("../../../../tests/fixtures/innodb/mysql-9.7.txt"),
        &[
            ("history_list_length", 6.0),
            ("purge_lag", 4.0),
            ("transactions_active", 3.0),
            ("transactions_waiting", 2.0),
            ("transaction_longest_s", 2.0),
            ("checkpoint_age", 6_161_364.0),
            ("log_age", 700_922.0),
            ("log_capacity", 16_777_216.0),
            ("log_ios", 1567.0),
            ("os_wait_reservations", 53.0),
            ("pending_aio_reads", 0.0),
            ("pending_flushes", 0.0),
            ("hash_table_size", 8.0 * 34_679.0),
            ("dirty_pages", 104.0),
            ("pages_created", 724.0),
            ("rows_inserted", 30_000.0),
            ("rows_read", 16_026.0),
        ],
    );
}

#[test]
fn mysql_5_1_has_two_words() {
    let word = 4_294_967_296.0;
    check(
        include_str!("../../../../tests/fixtures/innodb/mysql-5.1.txt"),
        &[
            ("trx_id", word + 80_157_601.0),
            ("purge_lag", 3028.0),
            ("history_list_length", 6.0),
            ("transactions_active", 2.0),
            ("transactions_waiting", 1.0),
            ("transaction_longest_s", 4.0),
            ("lsn", 84.0 * word + 3_000_620_880.0),
            ("log_age", 9615.0),
            ("checkpoint_age", 60_731_681.0),
            ("pending_log_writes", 0.0),
            ("pending_checkpoint_writes", 1.0),
            ("log_ios", 14_073_669.0),
            ("semaphore_waits", 2.0),
            ("semaphore_wait_longest_s", 3.0),
            ("os_wait_reservations", 250_000.0),
            ("mutex_os_waits", 3_899_888.0),
            ("rw_shared_spins", 4719.0),
            ("rw_excl_os_waits", 1000.0),
            ("pending_aio_reads", 3.0),
            ("pending_aio_writes", 2.0),
            ("pending_flushes", 3.0),
            ("os_fsyncs", 1_743_764.0),
            ("ibuf_seg_size", 889.0),
            ("ibuf_inserts", 246_452.0),
            ("ibuf_merged_records", 228_482.0),
            ("ibuf_merges", 215_602.0),
            ("hash_table_size", 17_700_857.0),
            ("hash_node_buffers", 10_803.0),
            ("hash_searches_per_s", 1.24),
            ("memory_bytes", 4_648_979_546.0),
            ("additional_pool_bytes", 16_773_888.0),
            ("pool_pages", 262_144.0),
            ("dirty_pages", 23_095.0),
            ("hit_percent_of_window", 99.7),
            ("queries_inside", 2.0),
            ("queries_in_queue", 5.0),
            ("rows_read", 454_561_562.0),
        ],
    );
}

#[test]
fn xtradb_reports_the_checkpoint_age_that_it_allows() {
    check(
        include_str!("../../../../tests/fixtures/innodb/xtradb-5.1.txt"),
        &[
            ("checkpoint_age", 200_000_000.0),
            ("checkpoint_age_max", 241_591_910.0),
            ("checkpoint_age_target", 234_042_162.0),
            ("purge_lag", 256.0),
            ("pool_pages", 8191.0),
            ("dirty_percent", 50.0),
            ("pending_page_writes", 1.0),
            ("pending_single_page_flushes", 2.0),
            ("hit_percent_of_window", 85.0),
            ("rows_read", 360.0),
        ],
    );
}

/// What the texts from 5.5 on have in common; they were written with the same numbers.
const COMMON: [(&str, f64); 12] = [
    ("os_file_reads", 10.0),
    ("os_file_writes", 20.0),
    ("os_fsyncs", 30.0),
    ("log_age", 10_000.0),
    ("flush_age", 50_000_000.0),
    ("checkpoint_age", 100_000_000.0),
    ("pool_pages", 65_535.0),
    ("dirty_pages", 6102.0),
    ("pending_flushes", 1.0),
    ("pages_written", 33.0),
    ("lru_unzip_len", 7.0),
    ("read_views", 2.0),
];

#[test]
fn mysql_5_5_counts_transactions_in_hexadecimal() {
    let text = include_str!("../../../../tests/fixtures/innodb/mysql-5.5.txt");
    check(text, &COMMON);
    check(
        text,
        &[
            ("trx_id", 6699.0),
            ("purge_lag", 43.0),
            ("transaction_longest_s", 7.0),
            ("rw_shared_rounds", 90.0),
            ("ibuf_merges", 9.0),
            ("ibuf_deletes_merged", 30.0),
            ("ibuf_inserts_discarded", 1.0),
            ("pending_checkpoint_writes", 2.0),
        ],
    );
}

/// The list of transactions in the texts from 5.6 on.
const TRANSACTIONS: [(&str, f64); 5] = [
    ("purge_lag", 337.0),
    ("history_list_length", 5000.0),
    ("transactions_active", 2.0),
    ("transactions_waiting", 1.0),
    ("transaction_longest_s", 12.0),
];

#[test]
fn repeated_lines_are_summed_up_and_pools_are_not() {
    let semaphores = [
        ("os_wait_reservations", 1000.0),
        ("os_wait_signals", 800.0),
        ("rw_sx_os_waits", 16.0),
        ("semaphore_waits", 1.0),
        ("semaphore_wait_longest_s", 241.0),
        ("hash_table_size", 8.0 * 276_707.0),
        ("hash_node_buffers", 36.0),
        ("pending_aio_reads", 3.0),
        ("pending_aio_writes", 4.0),
        ("rows_inserted", 111.0),
        ("log_ios", 12_345.0),
    ];
    for text in [
        include_str!("../../../../tests/fixtures/innodb/mysql-5.7.txt"),
        include_str!("../../../../tests/fixtures/innodb/mysql-8.0.txt"),
        include_str!("../../../../tests/fixtures/innodb/mysql-8.4.txt"),
        include_str!("../../../../tests/fixtures/innodb/mariadb-10.3.txt"),
    ] {
        check(text, &COMMON);
        check(text, &TRANSACTIONS);
        check(text, &semaphores);
    }
    let text = include_str!("../../../../tests/fixtures/innodb/mysql-5.6.txt");
    check(text, &COMMON);
    check(text, &TRANSACTIONS);
    check(text, &[("os_wait_reservations", 600.0), ("mutex_spin_rounds", 600.0)]);
}

#[test]
fn mariadb_11_reports_less() {
    let text = include_str!("../../../../tests/fixtures/innodb/mariadb-11.4.txt");
    check(text, &COMMON);
    check(text, &TRANSACTIONS);
    let values = parse_innodb_status(text);
    for missing in ["ibuf_size", "rows_read", "log_ios", "os_wait_reservations", "queries_inside"] {
        assert!(!values.contains_key(missing), "{missing}");
    }
}

#[test]
fn statements_of_users_are_not_taken_for_values() {
    let text = MARIADB_10_11.replace(
        "select sleep(2)",
        "select 'x\nHistory list length 999\nLog sequence number 5\n---\nLOG of mine\n---\n'",
    );
    assert_ne!(text, MARIADB_10_11);
    assert_eq!(parse_innodb_status(&text), parse_innodb_status(MARIADB_10_11));
}

#[test]
fn nothing_gives_nothing() {
    assert!(parse_innodb_status("").is_empty());
    assert!(parse_innodb_status("ERROR 1227 (42000): Access denied").is_empty());
}

proptest! {
    #[test]
    fn a_cut_text_is_no_harm(at in 0..MARIADB_10_11.len(), from in 0..MARIADB_10_11.len()) {
        let cut = |n: usize| (n..).find(|&n| MARIADB_10_11.is_char_boundary(n)).unwrap();
        let (from, at) = (cut(from.min(at)), cut(from.max(at)));
        let _ = parse_innodb_status(&MARIADB_10_11[from..at]);
        let whole = parse_innodb_status(MARIADB_10_11);
        // A text cut at a line's end has fewer values, and no other ones.
        let lines = MARIADB_10_11[..at].rfind('\n').map_or("", |end| &MARIADB_10_11[..end]);
        for (name, value) in parse_innodb_status(lines) {
            let grows = name.starts_with("transaction") || name.starts_with("pending");
            prop_assert!(grows || whole.get(&name) == Some(&value), "{name}");
        }
    }

    #[test]
    fn garbage_is_no_harm(
        text in "(\n?(---+|LOG|SEMAPHORES|TRANSACTIONS|FILE I/O|BUFFER POOL AND MEMORY|\
                 Trx id counter |Log sequence number |---TRANSACTION |, ACTIVE |\
                 Pending normal aio reads:|[é#,:;/ 0-9A-F.-]{0,9})){0,40}",
    ) {
        for value in parse_innodb_status(&text).values() {
            prop_assert!(value.is_finite());
        }
    }
}
