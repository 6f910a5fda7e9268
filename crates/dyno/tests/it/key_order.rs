//! `key-order`: inserts by sequential and random keys on every product, and the space they need.

use serde_json::Value;

use crate::bench::check_audit;
use crate::support::Workbench;

fn run(place: &[&str], more: &[&str]) -> Value {
    let length = ["--duration", "700ms", "--warm-up", "300ms", "--clients", "2"];
    let small = ["key-order", "--tables", "2", "--table-size", "2000"];
    Workbench::new().bench(&[&small[..], place, &length[..], more].concat())
}

/// Bytes per row of table 1: data, indexes.
#[track_caller]
fn check(place: &[&str], key: &str, more: &[&str]) -> [f64; 2] {
    let result = run(place, &[&["--key", key], more].concat());
    let name = format!("{key} on {place:?}");
    check_audit(&result, &name);
    assert!(result["transactions"].as_u64() > Some(0), "{name}: {result:#}");
    let audit = result["audit"].as_array().unwrap();
    let order = if key == "sequential" { "sequential" } else { "random" };
    ["data", "indexes"].map(|part| {
        let wanted = format!("size of the {part} of test_{order}_pk1");
        let row = audit.iter().find(|row| row["name"] == wanted.as_str()).unwrap();
        let measured = row["measured"].as_str().unwrap();
        let per_row = measured.split(", ").nth(1).unwrap().split(' ').next().unwrap();
        per_row.parse().unwrap()
    })
}

fn both_keys_on(place: &[&str]) {
    let sequential = check(place, "sequential", &[]);
    let random = check(place, "random-string", &[]);
    for (sequential, random) in sequential.iter().zip(random) {
        assert!(*sequential > 0.0 && random > 0.0, "{place:?}");
    }
    check(place, "random-string", &["--rows-per-transaction", "20"]);
}

#[test]
fn both_keys_on_sqlite() {
    both_keys_on(&["--on", "sqlite"]);
}

#[test]
fn both_keys_on_innodb() {
    both_keys_on(&["--on", "mariadb"]);
}

#[test]
#[ignore = "matrix products: as on InnoDB, which is in the suite"]
fn both_keys_on_rocksdb() {
    both_keys_on(&["--on", "mariadb", "--engine", "RocksDB"]);
}

#[test]
fn both_keys_on_postgresql() {
    both_keys_on(&["--on", "postgresql"]);
}
