//! What clients send; audits of right and wrong answers.

use std::collections::BTreeSet;

use expect_test::expect;

use crate::fake::{Fake, made, refused_option};
use crate::{
    AuditTotals, Cell, Dialect, KindTotals, MadeWorkload, Row, StatementClass, Tally, TextRows,
};

/// None is spoken.
const NONE: Dialect = Dialect::Sqlite;

fn workload(options: &[(&str, &str)]) -> MadeWorkload {
    made(super::NAME, options, 1).unwrap()
}

const SMALL: [(&str, &str); 3] =
    [("documents", "1000"), ("document_size", "12"), ("range_size", "7")];

#[test]
fn operations_and_their_values() {
    let ran = Fake::new(NONE).run(&workload(&SMALL), 8);
    expect![[r#"
        find collection=documents ? 29
        insert collection=documents content=12 ? ? ? 1000 1000 text[12]
        find collection=documents ? 451
        find collection=documents ? 122
        update collection=documents content=12 ? ? 142 text[12]
        find collection=documents ? 579
        find collection=documents ? 851
        find collection=documents ? 586
    "#]]
    .assert_eq(&ran.sent_text());
}

#[test]
fn keys_are_those_of_documents_and_new_ones_follow() {
    let only = |weight: &'static str| -> Vec<(&str, &str)> {
        let all = ["find_weight", "update_weight", "insert_weight", "range_weight"];
        let weights = all.map(|name| (name, if name == weight { "1" } else { "0" }));
        SMALL.into_iter().chain(weights).collect()
    };
    let sent = |weight| -> Vec<i64> {
        let ran = Fake::new(NONE).run(&workload(&only(weight)), 500);
        assert_eq!(ran.sent.len(), 500);
        ran.integers().collect()
    };
    for weight in ["find_weight", "update_weight"] {
        let keys = sent(weight);
        assert!(keys.len() == 500 && keys.iter().all(|key| (0..1000).contains(key)), "{weight}");
    }
    let inserted: Vec<i64> = (1000..1500).flat_map(|key| [key, key]).collect();
    assert_eq!(sent("insert_weight"), inserted);
    for range in sent("range_weight").chunks(2) {
        assert!(range[0] >= 0 && range[1] <= 1000 && range[1] - range[0] == 7, "{range:?}");
    }
}

#[test]
fn a_document_is_the_same_on_every_machine() {
    let workload = workload(&SMALL);
    let mut numbers = BTreeSet::new();
    let mut row = Row::new();
    for key in 0..1000 {
        row.clear();
        workload.fill_row(0, key, &mut row);
        let [Cell::Integer(id), Cell::Integer(number), Cell::Integer(0), content] = row.cells()
        else {
            panic!("{row:?}");
        };
        assert_eq!((*id, row.text(*content).len()), (key as i64, 12));
        numbers.insert(*number);
        if key == 77 {
            let text = String::from_utf8(row.text(*content).to_vec()).unwrap();
            expect!["663 diyinj_9ZsII"].assert_eq(&format!("{number} {text}"));
        }
    }
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
    let classes: Vec<_> = workload.statements(NONE).iter().map(|one| one.class).collect();
    use StatementClass::{Read, Write};
    assert_eq!(classes, [Read, Write, Write, Read]);
}

/// 100 finds, 20 updates, 5 inserts and 3 ranges, of which some have an unknown outcome.
fn totals(lost_updates: u64, in_flight: u64) -> AuditTotals {
    let kind = |committed, lost| KindTotals { committed, lost, ..KindTotals::default() };
    let tally =
        Tally { reads: 103, writes: 25 + lost_updates, rows_received: 121, ..Tally::default() };
    AuditTotals {
        kinds: vec![kind(100, 0), kind(20, lost_updates), kind(5, 0), kind(3, 0)],
        tally,
        in_flight,
    }
}

/// The names of the demands that are not met by a collection of so many documents and sums.
fn failed(totals: &AuditTotals, sums: [i64; 3]) -> Vec<String> {
    let settings = settings(&SMALL);
    let counts = super::Counts::new(&settings);
    for key in 0..5 {
        assert_eq!(counts.take_new(), key);
    }
    let answers: TextRows = vec![sums.iter().map(|sum| Some(sum.to_string())).collect()];
    let rows = counts.audit(&settings, totals, &[answers]);
    rows.into_iter().filter(|row| !row.pass).map(|row| row.name).collect()
}

fn settings(given: &[(&str, &str)]) -> super::Settings {
    let given =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = crate::options::Options::resolve(&super::options(), &given).unwrap();
    super::Settings::read(&options).unwrap()
}

#[test]
fn what_was_acknowledged_must_be_there() {
    // 0 + 1 + … + 1004.
    let sum = 1005 * 1004 / 2;
    let nothing: [&str; 0] = [];
    assert_eq!(failed(&totals(0, 0), [1005, 20, sum]), nothing);
    assert_eq!(failed(&totals(0, 0), [1004, 20, sum]), ["documents"]);
    assert_eq!(failed(&totals(0, 0), [1005, 19, sum]), ["updates, by the versions"]);
    assert_eq!(failed(&totals(0, 0), [1005, 21, sum]), ["updates, by the versions"]);
    assert_eq!(failed(&totals(0, 0), [1005, 20, sum - 1]), ["sum of the indexed numbers"]);
    // What has an unknown outcome may be there or not.
    for versions in [20, 21, 22] {
        assert_eq!(failed(&totals(2, 0), [1005, versions, sum]), nothing, "{versions}");
    }
    assert_eq!(failed(&totals(2, 0), [1005, 23, sum]), ["updates, by the versions"]);
    let mut found = totals(0, 0);
    found.tally.rows_received -= 1;
    assert_eq!(failed(&found, [1005, 20, sum]), ["documents found: 1 per key, 7 per range"]);
}

#[test]
fn a_wrong_skew_is_detected() {
    let zipfian = [SMALL[0], SMALL[1], SMALL[2], ("distribution", "zipfian")];
    let n = 5000;
    let check = |drawn: &[(&str, &str)], declared: &[(&str, &str)]| -> bool {
        let settings = settings(declared);
        let counts = super::Counts::new(&settings);
        let client = counts.client();
        let ran = Fake::new(NONE).run(&workload(drawn), n);
        for sent in ran.sent.iter().filter(|sent| sent.sql.starts_with("find")) {
            client.keys.note(sent.values[0].parse().unwrap());
        }
        let rows = counts.audit(&settings, &AuditTotals::default(), &[]);
        rows.iter().find(|row| row.name.starts_with("keys drawn")).unwrap().pass
    };
    assert!(check(&SMALL, &SMALL) && check(&zipfian, &zipfian));
    assert!(!check(&SMALL, &zipfian) && !check(&zipfian, &SMALL));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let check = |options: &[(&str, &str)], name: &str| {
        assert_eq!(refused_option(made(super::NAME, options, 1)).name, name, "{options:?}");
    };
    check(&[("documents", "0")], "documents");
    check(&[("document_size", "0")], "document_size");
    check(&[("document_size", "16MiB")], "document_size");
    check(&[("range_size", "0")], "range_size");
    check(&[("documents", "5")], "range_size");
    check(&[("document_size", "8MiB"), ("documents", "9"), ("range_size", "3")], "range_size");
    check(&[("find_weight", "-1")], "find_weight");
    let none = ["find_weight", "update_weight", "insert_weight", "range_weight"].map(|n| (n, "0"));
    check(&none, "find_weight");
    assert!(made(super::NAME, &[("documents", "5"), ("range_weight", "0")], 1).is_ok());
}
