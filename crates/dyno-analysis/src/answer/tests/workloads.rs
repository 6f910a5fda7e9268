//! Studies that vary the workload.

use dyno_record::{LevelRecord, Run};
use expect_test::{Expect, expect};

use super::{check, check_headline, noisy};

/// Two databases on each workload, the first as baseline; throughputs of both.
fn over_workloads(workloads: &[&str], repetitions: u32, rates: &[[f64; 2]]) -> Run {
    let names: Vec<String> =
        workloads.iter().flat_map(|work| ["pg", "ch"].map(|db| format!("{work} · {db}"))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let flat: Vec<[f64; 1]> = rates.iter().flatten().map(|rate| [*rate]).collect();
    let rates: Vec<&[f64]> = flat.iter().map(|rate| &rate[..]).collect();
    let mut run = noisy(&names, &[4], repetitions, &rates);
    for (idx, record) in run.manifest.variants.iter_mut().enumerate() {
        let (work, db) = (workloads[idx / 2], ["pg", "ch"][idx % 2]);
        record.baseline = (idx % 2 == 1).then(|| idx - 1);
        record.workload = work.to_owned();
        let level = |factor: &str, level: &str| LevelRecord {
            factor: factor.to_owned(),
            level: level.to_owned(),
        };
        record.levels = vec![level("workload", work), level("database", db)];
    }
    run
}

#[test]
fn different_workloads_are_not_ranked_against_each_other() {
    let works = ["point", "sums", "inserts"];
    check(
        &over_workloads(&works, 5, &[[9000.0, 200.0], [10.0, 120.0], [5000.0, 30.0]]),
        &expect![[r#"
            At 4 clients, pg is fastest on point and inserts; ch on sums.
            - point · ch vs. point · pg: throughput 0.0222× (95 % CI 0.0218–0.0226×, n = 5), worse; p95 45.0×.
            - sums · ch vs. sums · pg: throughput 12.0× (95 % CI 11.8–12.3×, n = 5), better; p95 0.0831×.
            - inserts · ch vs. inserts · pg: throughput 0.00598× (95 % CI 0.00588–0.00608×, n = 5), worse; p95 167×.
            * point · ch vs. point · pg at 4 clients: throughput 0.0222× (95 % CI 0.0218–0.0226×, n = 5), worse; p95 response time 45.0× (95 % CI 44.2–45.9×, n = 5), worse; server CPU per transaction 45.0× (95 % CI 44.3–45.8×, n = 5), worse.
            * sums · ch vs. sums · pg at 4 clients: throughput 12.0× (95 % CI 11.8–12.3×, n = 5), better; p95 response time 0.0831× (95 % CI 0.0816–0.0847×, n = 5), better; server CPU per transaction 0.0830× (95 % CI 0.0816–0.0845×, n = 5), better.
            * inserts · ch vs. inserts · pg at 4 clients: throughput 0.00598× (95 % CI 0.00588–0.00608×, n = 5), worse; p95 response time 167× (95 % CI 164–171×, n = 5), worse; server CPU per transaction 167× (95 % CI 164–170×, n = 5), worse.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 45 % of its starts or fewer is absent from n = 5 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
    let headline = |works: &[&str], repetitions: u32, rates: &[[f64; 2]], expected: Expect| {
        check_headline(&over_workloads(works, repetitions, rates), &expected);
    };
    headline(
        &works,
        5,
        &[[9000.0, 200.0], [100.0, 100.1], [50.0, 3000.0]],
        expect![
            "At 4 clients, pg is fastest on point; ch on inserts; no difference between pg and ch on sums."
        ],
    );
    headline(
        &works,
        5,
        &[[100.0, 100.1], [100.0, 100.1], [100.0, 100.1]],
        expect!["At 4 clients, no difference between pg and ch on point, sums and inserts."],
    );
    headline(
        &works,
        1,
        &[[9000.0, 200.0], [10.0, 120.0], [50.0, 30.0]],
        expect![
            "One repetition cannot rank variants on point, sums and inserts at 4 clients. Raise `repetitions` to at least 3."
        ],
    );
    // One commits nothing on a workload.
    headline(
        &works[..2],
        5,
        &[[9000.0, 200.0], [10.0, 0.0]],
        expect!["At 4 clients, pg is fastest on point and sums."],
    );
    let works = ["a", "b", "c", "d", "e"];
    let rates = [[9.0, 2.0], [90.0, 20.0], [9.0, 2.0], [9.0, 2.0], [2.0, 9.0]];
    headline(
        &works,
        5,
        &rates,
        expect!["At 4 clients, pg is fastest on 4 of 5 workloads; ch on e."],
    );
}

#[test]
fn workloads_that_are_compared_on_purpose_are_ranked() {
    let mut run = over_workloads(&["point", "sums"], 5, &[[9000.0, 200.0], [10.0, 120.0]]);
    for record in run.manifest.variants.iter_mut().skip(1) {
        record.baseline = Some(0);
    }
    check_headline(
        &run,
        &expect![
            "point · pg is fastest at 4 clients: 9,010 transactions/s, 45.0× that of point · ch."
        ],
    );
}
