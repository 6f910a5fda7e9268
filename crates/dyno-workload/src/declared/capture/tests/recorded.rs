//! Random statements of several sessions at once, as MariaDB 10.11 and PostgreSQL 15 have logged them, with the rows
//! that they committed: the study commits the same. Each INSERT has its number in its text and in its row.

use std::collections::BTreeSet;

use super::*;

/// The numbers of the INSERTs of each transaction that the study of a log commits.
fn committed(log: &str) -> BTreeSet<Vec<u64>> {
    let study = captured_with(log, &Request { kinds: usize::MAX, ..request() }).study;
    let number = |line: &str| -> Option<u64> {
        let number = line.strip_prefix("sql = \"INSERT INTO marks SELECT ")?.split(' ').next()?;
        Some(number.parse().unwrap())
    };
    let kinds = study.split("\nweight = ").skip(1);
    let kinds = kinds.filter(|kind| !kind.contains("roll_back = true"));
    let kinds = kinds.map(|kind| kind.lines().filter_map(number).collect::<Vec<u64>>());
    kinds.filter(|numbers| !numbers.is_empty()).collect()
}

/// `rows` has a line for each transaction that was committed.
fn transactions(rows: &str) -> BTreeSet<Vec<u64>> {
    let numbers = |line: &str| line.split_whitespace().map(|n| n.parse().unwrap()).collect();
    rows.lines().map(numbers).collect()
}

/// The numbers, whatever their transactions.
fn numbers(transactions: BTreeSet<Vec<u64>>) -> BTreeSet<u64> {
    transactions.into_iter().flatten().collect()
}

#[track_caller]
fn check<T: Ord + std::fmt::Debug>(found: &BTreeSet<T>, expected: &BTreeSet<T>) {
    let too_much: Vec<&T> = found.difference(expected).collect();
    let missing: Vec<&T> = expected.difference(found).collect();
    assert!(expected.len() > 20, "{expected:?}");
    assert!(too_much.is_empty() && missing.is_empty(), "{too_much:?} {missing:?}");
}

#[test]
fn what_mariadb_committed() {
    let expected = numbers(transactions(include_str!("../cases/random-mariadb.rows")));
    check(&numbers(committed(include_str!("../cases/random-mariadb-general.log"))), &expected);
    check(&numbers(committed(include_str!("../cases/random-mariadb-slow.log"))), &expected);
}

#[test]
fn what_postgresql_committed() {
    let expected = transactions(include_str!("../cases/random-postgresql.rows"));
    check(&committed(include_str!("../cases/random-postgresql.log")), &expected);
}
