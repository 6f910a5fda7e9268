//! Quotable sentences, word for word.

mod backlog;
mod baselines;
mod blocking;
mod bounds;
mod course;
mod dips;
mod faults;
mod limits;
mod linear;
mod own_steps;
mod questions;
mod reads;
mod second_run;
mod storage;
mod workloads;

use dyno_record::Run;
use dyno_units::Question;
use dyno_units::reading::prelude::*;
use expect_test::{Expect, expect};

use crate::fixtures::{fail, make_open, register, run, wobble};
use crate::{Answer, Options, analyse};

#[track_caller]
fn check(run: &Run, expected: &Expect) {
    let answer = analyse(std::slice::from_ref(run), &Options::default()).answer;
    check_size(&answer);
    let mut text = answer.headline;
    for (sign, sentences) in [("-", answer.lines), ("*", answer.details)] {
        for sentence in sentences {
            text.push_str(&format!("\n{sign} {sentence}"));
        }
    }
    expected.assert_eq(&text);
}

/// About 25 words, and five lines below.
#[track_caller]
fn check_size(answer: &Answer) {
    let words = answer.headline.split_whitespace();
    let n_words = words.filter(|word| word.contains(char::is_alphanumeric)).count();
    assert!(n_words <= 30, "{n_words} words: {}", answer.headline);
    assert!(answer.lines.len() <= 5, "{:?}", answer.lines);
}

#[track_caller]
fn check_headline(run: &Run, expected: &Expect) {
    let answer = analyse(std::slice::from_ref(run), &Options::default()).answer;
    check_size(&answer);
    expected.assert_eq(&answer.headline);
}

/// Throughput by variant and step, give or take 1 %.
fn noisy(names: &[&str], clients: &[u64], repetitions: u32, rates: &[&[f64]]) -> Run {
    run(names, clients, repetitions, |variant, step, repetition| {
        rates[variant][step] * wobble(variant, step, repetition)
    })
}

/// Only watched, with constant readings.
fn watch(run: &mut Run, readings: &[(&str, f64)]) {
    run.manifest.variants[0].workload = "none".to_owned();
    for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        step.server_cpu_s = None;
        let n = step.intervals.start_s.len();
        for (name, value) in readings {
            step.readings.insert((*name).to_owned(), vec![Some(*value); n]);
        }
    }
}

#[test]
fn a_server_that_was_only_watched() {
    let mut server = run(&["watch"], &[0], 1, |_, _, _| 1234.0);
    watch(
        &mut server,
        &[
            ("server.cpu_s_per_s", 0.42),
            ("cpu.busy_s_per_s", 0.61),
            ("disk.reads_per_s", 12.0),
            ("disk.read_bytes_per_s", 98_304.0),
            ("disk.writes_per_s", 250.0),
            ("disk.write_bytes_per_s", 4_096_000.0),
            ("debt.gauge", 6.5),
            ("debt.history_list_length", 6500.0),
        ],
    );
    let gauge = reading("debt.gauge", Number, "deferred work", "x").role(Role::DebtGauge);
    let part = reading("debt.history_list_length", Count, "history list length", "x");
    register(&mut server, &[gauge, part].map(|one| one.topic(Topic::Debt)));
    check(
        &server,
        &expect![[r#"
            Observed (Dyno sent no load): the server used 0.42 of 4 CPUs, the whole machine 0.61; it committed 1,230 transactions/s, Dyno's own included.
            - All disks: 12 reads/s (98.3 kB/s), 250 writes/s (4.10 MB/s).
            - Deferred work of the engine at its peak: history list length 6,500."#]],
    );
    assert!(analyse(&[server], &Options::default()).caveats.is_empty());
}

#[test]
fn a_host_that_was_only_watched() {
    let mut host = run(&["watch"], &[0], 1, |_, _, _| 1.0);
    watch(&mut host, &[("cpu.busy_s_per_s", 0.61), ("debt.gauge", 0.1)]);
    for step in host.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        step.kinds.clear();
    }
    check(
        &host,
        &expect![
            "Observed (Dyno sent no load): 0.61 of 4 CPUs of this machine were busy; the server ran 2 statements/s, Dyno's own included."
        ],
    );
}

#[test]
fn two_variants_at_one_step() {
    check(
        &noisy(&["delete-full", "wal-normal"], &[4], 3, &[&[1000.0], &[2310.0]]),
        &expect![[r#"
            wal-normal is 2.31× as fast as delete-full: 2,310 transactions/s against 1,000/s at 4 clients.
            - Throughput: 2.31× (95 % CI 2.23–2.38×, n = 3), better.
            - p95 response time: 0.435× (95 % CI 0.423–0.447×, n = 3), better.
            - Server CPU per transaction: 0.434× (95 % CI 0.420–0.448×, n = 3), better.
            * wal-normal vs. delete-full at 4 clients: throughput 2.31× (95 % CI 2.23–2.38×, n = 3), better; p95 response time 0.435× (95 % CI 0.423–0.447×, n = 3), better; server CPU per transaction 0.434× (95 % CI 0.420–0.448×, n = 3), better.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 63 % of its starts or fewer is absent from n = 3 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn no_difference_at_one_step() {
    let mut run = noisy(&["a", "b"], &[4], 10, &[&[1000.0], &[1001.0]]);
    run.manifest.threshold = 0.05;
    check(
        &run,
        &expect![[r#"
            No difference: b and a are within 5 % of each other at 4 clients.
            - Throughput: +0.1 % (95 % CI −0.8 to +1.1 %, n = 10), no difference.
            - p95 response time: −0.1 % (95 % CI −1.0 to +0.8 %, n = 10), no difference.
            * b vs. a at 4 clients: throughput +0.1 % (95 % CI −0.8 to +1.1 %, n = 10), no difference; p95 response time −0.1 % (95 % CI −1.0 to +0.8 %, n = 10), no difference.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 26 % of its starts or fewer is absent from n = 10 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn undecided_at_one_step() {
    check(
        &noisy(&["a", "b"], &[4], 3, &[&[1000.0], &[1030.0]]),
        &expect![[r#"
            Undecided: b may be 0.6 % slower or 6.3 % faster than a at 4 clients (measured: +2.8 %).
            - Throughput: +2.8 % (95 % CI −0.6 to +6.3 %, n = 3), undecided.
            - p95 response time: −2.5 % (95 % CI −5.0 to +0.1 %, n = 3), undecided.
            - About 5 repetitions in total would be needed to decide.
            * b vs. a at 4 clients: throughput +2.8 % (95 % CI −0.6 to +6.3 %, n = 3), undecided; about 5 repetitions in total would be needed to decide; p95 response time −2.5 % (95 % CI −5.0 to +0.1 %, n = 3), undecided; about 4 repetitions in total would be needed to decide.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 63 % of its starts or fewer is absent from n = 3 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn one_repetition() {
    check(
        &noisy(&["a", "b"], &[4], 1, &[&[1000.0], &[2000.0]]),
        &expect![[r#"
            One repetition cannot show a difference between b and a; measured: 2.02× at 4 clients.
            - Throughput: 2.02× (n = 1, no CI), undecided.
            - p95 response time: 0.499× (n = 1, no CI), undecided.
            - Raise `repetitions` to at least 3.
            * b vs. a at 4 clients: throughput 2.02× (n = 1, no CI), undecided; raise `repetitions` to at least 3; p95 response time 0.499× (n = 1, no CI), undecided; raise `repetitions` to at least 3.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory."#]],
    );
}

#[test]
fn two_variants_with_different_verdicts_by_step() {
    let rates: [&[f64]; 2] = [&[1000.0, 2000.0, 2500.0], &[1000.0, 3000.0, 1500.0]];
    check(
        &noisy(&["a", "b"], &[1, 4, 16], 5, &rates),
        &expect![[r#"
            Compared with a, b is faster at 4 clients (+49.5 %); slower at 16 clients (−40.3 %); no different at 1 client.
            - b scales furthest: 2.99× from 1 to 16 clients, peak at 4; a 2.50×, still rising.
            - Throughput: faster at 4 clients (+49.5 %, +47.6 to +51.5 %); slower at 16 clients (−40.3 %, −41.0 to −39.5 %); no different at 1 client (−0.1 %, −1.4 to +1.3 %); 95 % CIs, n = 5.
            - p95 response time: shorter at 4 clients (−33.3 %); longer at 16 clients (+67.4 %); no different at 1 client.
            - Server CPU per transaction: lower at 4 clients (−33.1 %); higher at 16 clients (+67.4 %).
            - Throughput by concurrency: up to one client per CPU +22.2 % (+20.6 to +23.9 %), better; more clients than CPUs −40.3 % (−41.0 to −39.5 %), worse (95 % CIs, n = 5).
            * b vs. a (95 % CIs, n = 5). Throughput: faster at 4 clients (+49.5 %, +47.6 to +51.5 %); slower at 16 clients (−40.3 %, −41.0 to −39.5 %); no different at 1 client (−0.1 %, −1.4 to +1.3 %). p95 response time: shorter at 4 clients (−33.3 %, −34.4 to −32.2 %); longer at 16 clients (+67.4 %, +64.9 to +69.9 %); no different at 1 client (+0.1 %, −1.5 to +1.6 %). Server CPU per transaction: lower at 4 clients (−33.1 %, −34.0 to −32.2 %); higher at 16 clients (+67.4 %, +65.2 to +69.6 %).
            * b vs. a by concurrency, throughput as the geometric mean over load levels (95 % CIs, n = 5): up to one client per CPU +22.2 % (+20.6 to +23.9 %), better; more clients than CPUs −40.3 % (−41.0 to −39.5 %), worse.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 45 % of its starts or fewer is absent from n = 5 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn better_at_every_step() {
    let rates: [&[f64]; 2] = [&[1000.0, 2000.0], &[1500.0, 4000.0]];
    check(
        &noisy(&["a", "b"], &[1, 4], 5, &rates),
        &expect![[r#"
            b is faster than a at both load levels, by 49.9 % (1 client) to 99.4 % (4 clients).
            - Throughput: faster at both load levels, by 49.9 % (1 client, +47.7 to +52.2 %) to 99.4 % (4 clients, +96.4 to +102 %); 95 % CIs, n = 5.
            - p95 response time: shorter at both load levels, by 33.2 % (1 client) to 49.8 % (4 clients).
            - Server CPU per transaction: lower at both load levels, by 33.3 % (1 client) to 49.8 % (4 clients).
            * b vs. a (95 % CIs, n = 5). Throughput: faster at both load levels, by 49.9 % (1 client, +47.7 to +52.2 %) to 99.4 % (4 clients, +96.4 to +102 %). p95 response time: shorter at both load levels, by 33.2 % (1 client, −34.1 to −32.2 %) to 49.8 % (4 clients, −50.6 to −49.1 %). Server CPU per transaction: lower at both load levels, by 33.3 % (1 client, −34.3 to −32.3 %) to 49.8 % (4 clients, −50.6 to −49.1 %).
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 45 % of its starts or fewer is absent from n = 5 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn the_best_of_several() {
    let rates: [&[f64]; 3] = [&[1000.0], &[1500.0], &[900.0]];
    check(
        &noisy(&["a", "b", "c"], &[4], 5, &rates),
        &expect![[r#"
            b is fastest at 4 clients: 1,500 transactions/s, 49.9 % more than a.
            - b vs. a: throughput +49.9 % (95 % CI +47.8 to +52.1 %, n = 5), better; p95 −33.2 %.
            - c vs. a: throughput −10.4 % (95 % CI −11.6 to −9.1 %, n = 5), worse; p95 +11.8 %.
            * b vs. a at 4 clients: throughput +49.9 % (95 % CI +47.8 to +52.1 %, n = 5), better; p95 response time −33.2 % (95 % CI −34.1 to −32.2 %, n = 5), better; server CPU per transaction −33.3 % (95 % CI −34.2 to −32.3 %, n = 5), better.
            * c vs. a at 4 clients: throughput −10.4 % (95 % CI −11.6 to −9.1 %, n = 5), worse; p95 response time +11.8 % (95 % CI +10.1 to +13.4 %, n = 5), worse; server CPU per transaction +11.5 % (95 % CI +10.0 to +13.1 %, n = 5), worse.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 45 % of its starts or fewer is absent from n = 5 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn tied_variants_are_not_fastest() {
    // The second equals the third, and both are faster than the baseline.
    let rates: [&[f64]; 3] = [&[500.0], &[1000.0], &[1000.0]];
    check_headline(
        &noisy(&["slow", "twin1", "twin2"], &[4], 5, &rates),
        &expect![
            "Undecided which is fastest at 4 clients: twin1 had the highest throughput (1,000 transactions/s), not shown to be faster than twin2; the other measured slower."
        ],
    );
    let rates: [&[f64]; 3] = [&[1000.0], &[1003.0], &[1001.0]];
    check_headline(
        &noisy(&["a", "b", "c"], &[4], 3, &rates),
        &expect![
            "No winner at 4 clients: b had the highest throughput (1,000 transactions/s), but none of the other 2 differs by more than 3 %."
        ],
    );
    // One repetition.
    let rates: [&[f64]; 3] = [&[1000.0], &[2000.0], &[500.0]];
    check_headline(
        &noisy(&["a", "b", "c"], &[4], 1, &rates),
        &expect![
            "One repetition cannot rank variants at 4 clients: b had the highest throughput (2,020 transactions/s). Raise `repetitions` to at least 3."
        ],
    );
    // Three of four, over several steps.
    let rates: [&[f64]; 4] = [&[100.0, 90.0], &[1000.0, 900.0], &[1001.0, 901.0], &[999.0, 901.0]];
    check_headline(
        &noisy(&["a", "b", "c", "d"], &[1, 4], 5, &rates),
        &expect!["No winner at both load levels."],
    );
}

#[test]
fn failed_audits_come_first() {
    let row = |measured: &str| dyno_record::AuditRow {
        name: "rows of sbtest1".into(),
        expected: "50000".into(),
        measured: measured.into(),
        pass: measured == "50000",
        is_undecided: false,
    };
    let lines = |failed: &[usize]| {
        let mut run = noisy(&["a", "b"], &[4], 3, &[&[1000.0], &[1100.0]]);
        for trial in &mut run.trials {
            trial.audit = vec![row("50000")];
        }
        for number in failed {
            run.trials[*number].audit = vec![row("49999")];
        }
        analyse(&[run], &Options::default()).answer.lines
    };
    let is_said = |line: &String| line.contains("audit");
    assert!(!lines(&[]).iter().any(is_said));
    // Trials of a and b take turns.
    assert_eq!(
        lines(&[1, 3])[0],
        "The audit failed in 2 of 6 audited trials (b): the tables do not contain what was committed."
    );
}

#[test]
fn the_best_is_ranked_by_the_error_of_the_verdicts() {
    // By its own pairs alone, which happen to have almost no spread, b would be ahead of c.
    let shared = |variant: usize| if variant == 2 { 1 } else { variant };
    let run = run(&["a", "b", "c", "d"], &[4], 3, |variant, step, repetition| {
        let own = [1000.0, 1320.0, 1280.0, 900.0][variant];
        own * (1.0 + 6.0 * (wobble(shared(variant), step, repetition) - 1.0))
    });
    check_headline(
        &run,
        &expect![
            "Undecided which is fastest at 4 clients: b had the highest throughput (1,310 transactions/s), not shown to be faster than c; the remaining 2 measured slower."
        ],
    );
}

#[test]
fn one_repetition_ranks_nothing() {
    let rates: [&[f64]; 3] = [&[1000.0], &[2000.0], &[500.0]];
    let three = ["a", "b", "c"];
    check_headline(
        &noisy(&three, &[4], 1, &rates),
        &expect![
            "One repetition cannot rank variants at 4 clients: b had the highest throughput (2,020 transactions/s). Raise `repetitions` to at least 3."
        ],
    );
    check_headline(
        &noisy(&three[..2], &[4, 8], 1, &[&[1000.0; 2], &[2000.0; 2]]),
        &expect!["One repetition cannot show a difference between b and a at both load levels."],
    );
    // One variant has one repetition left.
    let mut run = noisy(&three, &[4], 3, &rates);
    for number in [3, 6] {
        fail(&mut run, number, "the disk is full");
    }
    check_headline(
        &run,
        &expect![
            "One repetition cannot rank c at 4 clients: b had the highest throughput (2,000 transactions/s); the other measured slower. Raise `repetitions` to at least 3."
        ],
    );
}

#[test]
fn one_sentence_has_one_scale() {
    let rates: [&[f64]; 2] = [&[1000.0, 1000.0, 1000.0, 1000.0], &[768.0, 600.0, 500.0, 383.0]];
    check_headline(
        &noisy(&["a", "b"], &[1, 4, 8, 32], 5, &rates),
        &expect![
            "b is slower than a at all 4 load levels, 0.768× (1 client) to 0.382× (32 clients)."
        ],
    );
}

#[test]
fn steps_of_different_work_have_no_mean() {
    let rates: [&[f64]; 3] = [&[1000.0, 10.0], &[1500.0, 10.0], &[900.0, 10.0]];
    let mut several = noisy(&["a", "b", "c"], &[4, 8], 5, &rates);
    make_own(&mut several);
    check_headline(
        &several,
        &expect!["b is fastest at 4 clients (1,500 transactions/s); no difference at 8 clients."],
    );
    let mut alone = noisy(&["a"], &[4, 8], 3, &[&[1000.0, 10.0]]);
    make_own(&mut alone);
    check_headline(
        &alone,
        &expect!["a: 4 clients 1,000 transactions/s and 8 clients 10.0 transactions/s."],
    );
}

fn make_own(run: &mut Run) {
    for step in &mut run.manifest.steps {
        let roles = Vec::new();
        step.own = Some(dyno_record::OwnStepRecord { roles, ends_by_quota: false, settle_s: 0.0 });
    }
}

#[test]
fn tpcc_has_its_mode_and_its_new_orders() {
    let mut run = noisy(&["a", "b"], &[10], 3, &[&[100.0], &[150.0]]);
    for variant in &mut run.manifest.variants {
        variant.workload = crate::tpcc::WORKLOAD.to_owned();
    }
    for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        let mut other = step.kinds[0].clone();
        step.kinds[0].name = "new_order".to_owned();
        other.name = "payment".to_owned();
        step.kinds.push(other);
    }
    check(
        &run,
        &expect![[r#"
            b is 49.7 % faster than a: 300 transactions/s against 200/s at 10 clients (TPC-C, unpaced).
            - New orders per minute (NOPM; n = 3): a 6,010 at 10 clients and b 8,990 at 10 clients.
            - Throughput: +49.7 % (95 % CI +45.0 to +54.6 %, n = 3), better.
            - p95 response time: −33.0 % (95 % CI −34.8 to −31.2 %, n = 3), better.
            - Server CPU per transaction: −33.2 % (95 % CI −35.3 to −31.0 %, n = 3), better.
            * b vs. a at 10 clients: throughput +49.7 % (95 % CI +45.0 to +54.6 %, n = 3), better; p95 response time −33.0 % (95 % CI −34.8 to −31.2 %, n = 3), better; server CPU per transaction −33.2 % (95 % CI −35.3 to −31.0 %, n = 3), better.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 63 % of its starts or fewer is absent from n = 3 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

fn priced(names: &[&str], rates: &[&[f64]], prices: &[f64], repetitions: u32) -> Run {
    let mut run = noisy(names, &[1, 4], repetitions, rates);
    run.manifest.questions = vec![Question::Cost];
    for (variant, amount) in run.manifest.variants.iter_mut().zip(prices) {
        let currency = "EUR".to_owned();
        variant.price_per_hour = Some(dyno_record::Price { amount: *amount, currency });
    }
    run
}

#[test]
fn a_study_with_prices_says_which_is_cheapest() {
    let rates: [&[f64]; 3] = [&[1000.0, 2000.0], &[1500.0, 2500.0], &[900.0, 3000.0]];
    let three = ["a", "b", "c"];
    check_headline(
        &priced(&three, &rates, &[0.5, 1.0, 1.0], 3),
        &expect![
            "a is cheapest: 0.0694 EUR per million transactions at 4 clients, 25.0 % less than c (0.0925; 95 % CI −27.0 to −23.0 %, n = 3, best of 2 loads); b 0.111."
        ],
    );
    check_headline(
        &priced(&three, &rates, &[0.5, 0.625, 1.0], 3),
        &expect![
            "Undecided which is cheapest: a measured 0.0694 EUR per million transactions at 4 clients; b 0.0695; c 0.0925, not shown to be cheaper than b; the other measured dearer."
        ],
    );
    check_headline(
        &priced(&three[..2], &rates[..2], &[0.5, 1.0], 1),
        &expect![
            "One repetition cannot rank variants by cost: a measured 0.069 EUR per million transactions at 4 clients; b 0.111. Raise `repetitions` to at least 3."
        ],
    );
    check_headline(
        &priced(&three[..1], &rates[..1], &[0.5], 3),
        &expect![
            "a costs 0.0694 EUR per million transactions at 4 clients (95 % CI 0.0679–0.0710 EUR, n = 3)."
        ],
    );
}

/// By the variants' levels.
fn with_durability(mut run: Run, levels: &[&str]) -> Run {
    for (variant, level) in run.manifest.variants.iter_mut().zip(levels) {
        variant.settings.insert("synchronous".to_owned(), (*level).to_owned());
    }
    for trial in &mut run.trials {
        trial.server.product = "SQLite".to_owned();
        trial.server.durability = levels[trial.variant].to_owned();
    }
    run
}

#[test]
fn the_cost_of_durability_is_that_of_the_safe_variant() {
    let safe = "every commit is synced";
    let names = ["delete-full", "wal-full", "wal-normal", "wal-off"];
    let rates: [&[f64]; 4] = [&[600.0], &[1800.0], &[65_000.0], &[72_000.0]];
    let levels = [safe, safe, "synced at checkpoints", "not synced"];
    let run = with_durability(noisy(&names, &[1], 5, &rates), &levels);
    check(
        &run,
        &expect![[r#"
            Syncing every commit cuts throughput by 97.5 % (95 % CI 97.46–97.55 %) at 1 client: 1,800 transactions/s with wal-full, 72,100/s with wal-off (which risks corruption).
            - delete-full, the baseline (synchronous=every commit is synced; every commit synced): 601 transactions/s (95 % CI 595–607/s, n = 5).
            - wal-full (synchronous=every commit is synced; every commit synced): 1,800 transactions/s, 3.00× the baseline (95 % CI 2.96–3.04×, n = 5): faster, equally durable.
            - wal-normal (synchronous=synced at checkpoints; a power failure or OS crash may lose the last commits): 64,800 transactions/s, 108× the baseline (95 % CI 107–109×, n = 5): faster, less durable.
            - wal-off (synchronous=not synced; a power failure or OS crash may corrupt the database): 72,100 transactions/s, 120× the baseline (95 % CI 119–121×, n = 5): faster, less durable.
            * wal-full vs. delete-full at 1 client: throughput 3.00× (95 % CI 2.96–3.04×, n = 5), better; p95 response time 0.334× (95 % CI 0.329–0.339×, n = 5), better; server CPU per transaction 0.334× (95 % CI 0.329–0.338×, n = 5), better.
            * wal-normal (less durable) vs. delete-full at 1 client: throughput 108× (95 % CI 107–109×, n = 5), higher; p95 response time 0.00928× (95 % CI 0.00916–0.00941×, n = 5), shorter; server CPU per transaction 0.00927× (95 % CI 0.00915–0.00938×, n = 5), lower.
            * wal-off (less durable) vs. delete-full at 1 client: throughput 120× (95 % CI 119–121×, n = 5), higher; p95 response time 0.00835× (95 % CI 0.00824–0.00846×, n = 5), shorter; server CPU per transaction 0.00833× (95 % CI 0.00824–0.00843×, n = 5), lower.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 45 % of its starts or fewer is absent from n = 5 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
    // The safe one is as fast.
    let rates: [&[f64]; 2] = [&[1000.0], &[1001.0]];
    let mut same = noisy(&["full", "relaxed"], &[4], 10, &rates);
    same.manifest.threshold = 0.05;
    check(
        &with_durability(same, &[safe, "not synced"]),
        &expect![[r#"
            Syncing every commit costs less than 5 % of throughput at 4 clients: 1,000 transactions/s with full, 1,000/s with relaxed (which risks corruption).
            - full, the baseline (synchronous=every commit is synced; every commit synced): 1,000 transactions/s (95 % CI 995–1,010/s, n = 10).
            - relaxed (synchronous=not synced; a power failure or OS crash may corrupt the database): 1,000 transactions/s, +0.1 % vs. the baseline (95 % CI −0.8 to +1.1 %, n = 10): no difference, less durable.
            - p95 response time: −0.1 % (95 % CI −1.0 to +0.8 %, n = 10), no difference.
            * relaxed (less durable) vs. full at 4 clients: throughput +0.1 % (95 % CI −0.8 to +1.1 %, n = 10), no difference; p95 response time −0.1 % (95 % CI −1.0 to +0.8 %, n = 10), no difference.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 26 % of its starts or fewer is absent from n = 10 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
    // Unasked durability is a caveat, not a cost.
    let rates: [&[f64]; 3] = [&[1000.0], &[2000.0], &[3000.0]];
    let mut accident = with_durability(
        noisy(&["a", "b", "c"], &[4], 5, &rates),
        &[safe, "not synced", "not synced"],
    );
    accident.manifest.variants.iter_mut().for_each(|v| v.settings.clear());
    check_headline(
        &accident,
        &expect!["c is fastest at 4 clients: 2,990 transactions/s, 2.99× that of a."],
    );
    let rates: [&[f64]; 4] = [&[500.0], &[1000.0], &[800.0], &[1000.0]];
    let names = ["maria", "maria-fast", "pg", "pg-fast"];
    let levels = [safe, "not synced", safe, "synced within 3 × 200ms"];
    let mut both = with_durability(noisy(&names, &[4], 5, &rates), &levels);
    for (idx, variant) in both.manifest.variants.iter_mut().enumerate().skip(2) {
        variant.product = "postgresql".to_owned();
        both.trials.iter_mut().filter(|trial| trial.variant == idx).for_each(|trial| {
            trial.server.product = "PostgreSQL".to_owned();
        });
    }
    check(
        &both,
        &expect![[r#"
            Syncing every commit cuts throughput by 50.0 % (95 % CI 49.3–50.6 %) in SQLite and by 20.3 % (95 % CI 19.3–21.3 %) in PostgreSQL.
            - SQLite: 501 transactions/s with maria, which syncs every commit; +99.9 % with maria-fast (95 % CI +97.2 to +103 %, n = 5; risks corruption).
            - PostgreSQL: 798 transactions/s with pg, which syncs every commit; +25.5 % with pg-fast (95 % CI +23.9 to +27.1 %, n = 5; risks losing commits).
            * maria-fast (less durable) vs. maria at 4 clients: throughput 2.00× (95 % CI 1.97–2.03×, n = 5), higher; p95 response time −50.0 % (95 % CI −50.7 to −49.2 %, n = 5), shorter; server CPU per transaction 0.500× (95 % CI 0.494–0.507×, n = 5), lower.
            * pg vs. maria at 4 clients: throughput 1.59× (95 % CI 1.57–1.61×, n = 5), better; p95 response time −37.1 % (95 % CI −38.0 to −36.3 %, n = 5), better; server CPU per transaction 0.627× (95 % CI 0.620–0.635×, n = 5), better.
            * pg-fast (less durable) vs. maria at 4 clients: throughput 2.00× (95 % CI 1.98–2.02×, n = 5), higher; p95 response time −49.9 % (95 % CI −50.6 to −49.3 %, n = 5), shorter; server CPU per transaction 0.500× (95 % CI 0.494–0.506×, n = 5), lower.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 45 % of its starts or fewer is absent from n = 5 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn where_it_saturates_comes_first_if_the_study_asks() {
    // Throughputs that follow from mean response times of 0.14 … 1.95 ms.
    let clients = [1, 4, 16, 64, 256];
    let nvme: Vec<f64> =
        [0.14, 0.15, 0.21, 0.50, 1.95].iter().zip(clients).map(|(ms, n)| n as f64 / ms).collect();
    let even: Vec<f64> = clients.iter().map(|n| *n as f64 * 7.0).collect();
    let check = |names: &[&str], rates: &[&[f64]], expected: Expect| {
        let mut run = noisy(names, &clients, 3, rates);
        run.manifest.questions = vec![Question::Saturates];
        check_headline(&run, &expected);
    };
    check(
        &["nvme"],
        &[&nvme],
        expect![
            "Response time of nvme turns up at 16 clients: at 256 clients it is 13.8× that at 1 client."
        ],
    );
    check(
        &["even"],
        &[&even],
        expect![
            "Response time of even turns up at no load level: at 256 clients it is 0.994× that at 1 client."
        ],
    );
    check(
        &["nvme", "even"],
        &[&nvme, &even],
        expect![
            "Response time turns up at 16 clients with nvme (13.8× as long at 256 clients as at 1) and at no load level with even (0.990×)."
        ],
    );
}

#[test]
fn who_scales_is_said_by_speed_up_and_first_if_the_study_asks() {
    let rates: [&[f64]; 3] = [
        &[100.0, 180.0, 300.0, 560.0],
        &[200.0, 380.0, 700.0, 500.0],
        &[300.0, 500.0, 605.0, 610.0],
    ];
    let mut run = noisy(&["pg", "maria", "lite"], &[1, 2, 4, 8], 3, &rates);
    check(
        &run,
        &expect![[r#"
            lite is fastest at 1, 2 and 8 clients; maria at 4 clients.
            - pg scales furthest: 5.59× from 1 to 8 clients, still rising; maria 3.50×, peak at 4; lite 2.04×, level from 4.
            - maria vs. pg: faster at 3 of 4 load levels (up to 2.33×); slower at 8 clients (0.893×).
            - lite vs. pg: faster at all 4 load levels, 1.09× (8 clients) to 3.00× (1 client).
            - 95 % CI of the speed-up, for the best of 3 load levels: pg 5.28–5.92× at 8 clients, maria 3.32–3.69× at 4 clients and lite 1.90–2.18× at 8 clients.
            * maria vs. pg (95 % CIs, n = 3). Throughput: faster at 1 client (2.00×, 1.96–2.03×), 2 clients (2.11×, 2.07–2.15×) and 4 clients (2.33×, 2.29–2.38×); slower at 8 clients (0.893×, 0.877–0.911×). p95 response time: shorter at 1 client (0.502×, 0.493–0.512×), 2 clients (0.475×, 0.465–0.484×) and 4 clients (0.428×, 0.418–0.438×); longer at 8 clients (1.12×, 1.10–1.14×). Server CPU per transaction: lower at 1 client (0.501×, 0.492–0.510×), 2 clients (0.474×, 0.466–0.483×) and 4 clients (0.429×, 0.421–0.437×); higher at 8 clients (1.12×, 1.10–1.14×).
            * lite vs. pg (95 % CIs, n = 3). Throughput: faster at all 4 load levels, 1.09× (8 clients, 1.07–1.11×) to 3.00× (1 client, 2.94–3.05×). p95 response time: shorter at all 4 load levels, 0.916× (8 clients, 0.899–0.934×) to 0.335× (1 client, 0.328–0.342×). Server CPU per transaction: lower at all 4 load levels, 0.916× (8 clients, 0.899–0.933×) to 0.334× (1 client, 0.328–0.340×).
            * maria vs. pg by concurrency, throughput as the geometric mean over load levels (95 % CIs, n = 3): up to one client per CPU 2.14× (2.10–2.18×), better; more clients than CPUs 0.893× (0.877–0.911×), worse.
            * lite vs. pg by concurrency, throughput as the geometric mean over load levels (95 % CIs, n = 3): up to one client per CPU 2.56× (2.51–2.61×), better; more clients than CPUs 1.09× (1.07–1.11×), better.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 63 % of its starts or fewer is absent from n = 3 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
    run.manifest.questions = vec![Question::Scales];
    check_headline(
        &run,
        &expect![
            "pg scales furthest: 5.59× from 1 to 8 clients, still rising; maria 3.50×, peak at 4; lite 2.04×, level from 4."
        ],
    );
    let one: [&[f64]; 1] = [&[100.0, 180.0, 300.0, 290.0]];
    let mut one = noisy(&["pg"], &[1, 2, 4, 8], 3, &one);
    one.manifest.questions = vec![Question::Scales];
    check(
        &one,
        &expect![[r#"
            pg scales to 3.00× from 1 to 8 clients, peaks at 4 clients and falls beyond.
            - pg measured its highest throughput at 4 clients: 300 transactions/s, p95 25.9 ms.
            - At 1 client: throughput 100 transactions/s (95 % CI 98.2–102/s, n = 3) and p95 response time 19.3 ms (95 % CI 18.9–19.7 ms, n = 3).
            - At 2 clients: throughput 180 transactions/s (95 % CI 176–184/s, n = 3) and p95 response time 21.5 ms (95 % CI 21.1–22.0 ms, n = 3).
            - At 4 clients: throughput 300 transactions/s (95 % CI 293–307/s, n = 3) and p95 response time 25.9 ms (95 % CI 25.3–26.5 ms, n = 3).
            - At 8 clients: throughput 290 transactions/s (95 % CI 284–296/s, n = 3) and p95 response time 53.6 ms (95 % CI 52.4–54.7 ms, n = 3)."#]],
    );
    let names = ["a", "b", "c", "d", "e"];
    let all: Vec<&[f64]> = vec![rates[0]; 5];
    let mut many = noisy(&names, &[1, 2, 4, 8], 3, &all);
    many.manifest.questions = vec![Question::Scales];
    check_headline(
        &many,
        &expect![
            "Undecided which scales furthest: c measured 5.61× from 1 to 8 clients, still rising; lowest: d 5.59×, still rising."
        ],
    );
}

#[test]
fn a_saturation_says_what_it_means_and_how_sure_it_is() {
    let clients = [1, 4, 16, 64, 256];
    let rates = |ms: [f64; 5]| -> Vec<f64> {
        ms.iter().zip(clients).map(|(ms, n)| n as f64 / ms).collect()
    };
    let (nvme, disk) = (rates([0.14, 0.15, 0.21, 0.50, 1.95]), rates([0.14, 0.5, 2.0, 8.0, 32.0]));
    let mut run = noisy(&["nvme", "disk"], &clients, 3, &[&nvme, &disk]);
    run.manifest.questions = vec![Question::Saturates];
    let answer = analyse(&[run], &Options::default()).answer;
    check_size(&answer);
    expect!["Response time turns up at 16 clients with nvme (13.8× as long at 256 clients as at 1) and at 1 client with disk (228×)."].assert_eq(&answer.headline);
    expect!["Turns up: from there to twice as many clients, response time grows faster than the square root of the number of clients, in each repetition. Throughput may still rise. 95 % CI of the multiple: 13.3–14.4× with nvme and 218–238× with disk."].assert_eq(&answer.note.unwrap_or_default());
}

#[test]
fn effects_over_many_loads_say_in_which_direction_they_go() {
    let clients = [1, 2, 4, 8, 16, 32];
    let steady: &[f64] = &[1000.0; 6];
    let less: &[f64] = &[1000.0, 990.0, 500.0, 400.0, 350.0, 300.0];
    check_headline(
        &noisy(&["a", "b"], &clients, 5, &[steady, less]),
        &expect![
            "Compared with a, b is slower at 4 of 6 load levels (down to 0.301×); no different at 1 and 2 clients."
        ],
    );
    let less: &[f64] = &[1000.0, 990.0, 900.0, 850.0, 800.0, 750.0];
    check_headline(
        &noisy(&["a", "b"], &clients, 5, &[steady, less]),
        &expect![
            "Compared with a, b is slower at 4 of 6 load levels (by up to 24.8 %); no different at 1 and 2 clients."
        ],
    );
}

#[test]
fn the_fastest_at_both_loads_is_said_to_be_that_and_else_each_load_has_its_own() {
    let rates: [&[f64]; 3] = [&[100.0, 500.0], &[200.0, 300.0], &[6000.0, 9000.0]];
    check_headline(
        &noisy(&["a", "b", "c"], &[1, 8], 3, &rates),
        &expect![
            "c is fastest at both load levels: 1 client (6,000 transactions/s) and 8 clients (9,010 transactions/s)."
        ],
    );
    let rates: [&[f64]; 3] = [&[100.0, 500.0], &[101.0, 400.0], &[120.0, 600.0]];
    check_headline(
        &noisy(&["a", "b", "c"], &[1, 8], 3, &rates),
        &expect![
            "c is fastest at both load levels: 1 client (120 transactions/s) and 8 clients (600 transactions/s)."
        ],
    );
    check_headline(
        &noisy(&["a", "b", "c"], &[1, 8], 2, &rates),
        &expect!["Undecided which is fastest at both load levels."],
    );
    // Each load has its own.
    let rates: [&[f64]; 3] = [&[100.0, 500.0], &[150.0, 600.0], &[120.0, 9000.0]];
    check_headline(
        &noisy(&["a", "b", "c"], &[1, 8], 3, &rates),
        &expect![
            "b is fastest at 1 client (150 transactions/s); c at 8 clients (9,010 transactions/s)."
        ],
    );
}

#[test]
fn what_only_the_correction_leaves_undecided_is_said_to_be_that() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let of = |names: &[&str]| {
        run(names, &[4], 5, |variant, step, repetition| {
            let faster = if variant == 1 { 1.05 } else { 1.0 };
            1000.0 * faster * (1.0 + 3.2 * (wobble(variant, step, repetition) - 1.0))
        })
    };
    let answer = analyse(&[of(&names)], &Options::default()).answer;
    let line = answer.lines.iter().find(|line| line.starts_with("b vs. a"));
    expect!["b vs. a: throughput +4.8 % (95 % CI +0.6 to +9.2 %, n = 5), undecided (significant if tested alone, but not after correcting for 5 comparisons); p95 −4.4 %."].assert_eq(line.expect("b is compared"));
}

#[test]
fn two_repetitions_show_their_values() {
    check(
        &noisy(&["a", "b"], &[4], 2, &[&[1000.0], &[2000.0]]),
        &expect![[r#"
            b is 99.2 % faster than a: 2,000 transactions/s against 1,000/s at 4 clients.
            - Throughput: +99.2 % (two repetitions: +96.6 % and +102 %), better.
            - p95 response time: −49.6 % (two repetitions: −50.1 % and −49.1 %), better.
            - Server CPU per transaction: −49.8 % (two repetitions: −50.4 % and −49.1 %), better.
            * b vs. a at 4 clients: throughput +99.2 % (two repetitions: +96.6 % and +102 %), better; p95 response time −49.6 % (two repetitions: −50.1 % and −49.1 %), better; server CPU per transaction −49.8 % (two repetitions: −50.4 % and −49.1 %), better.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 78 % of its starts or fewer is absent from n = 2 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn the_baseline_is_the_best_of_several() {
    let rates: [&[f64]; 3] = [&[2000.0, 3000.0], &[1500.0, 2900.0], &[900.0, 1200.0]];
    check(
        &noisy(&["a", "b", "c"], &[4, 8], 3, &rates),
        &expect![[r#"
            a is fastest at both load levels: 4 clients (2,000 transactions/s) and 8 clients (3,000 transactions/s).
            - b vs. a: slower at both load levels, 0.965× (8 clients, 0.945–0.985×) to 0.748× (4 clients, 0.733–0.764×); 95 % CIs, n = 3.
            - c vs. a: slower at both load levels, 0.449× (4 clients, 0.440–0.459×) to 0.400× (8 clients, 0.391–0.409×); 95 % CIs, n = 3.
            * b vs. a (95 % CIs, n = 3). Throughput: slower at both load levels, 0.965× (8 clients, 0.945–0.985×) to 0.748× (4 clients, 0.733–0.764×). p95 response time: longer at both load levels, 1.04× (8 clients, 1.01–1.06×) to 1.34× (4 clients, 1.31–1.37×). Server CPU per transaction: higher at both load levels, 1.04× (8 clients, 1.01–1.06×) to 1.34× (4 clients, 1.31–1.36×).
            * c vs. a (95 % CIs, n = 3). Throughput: slower at both load levels, 0.449× (4 clients, 0.440–0.459×) to 0.400× (8 clients, 0.391–0.409×). p95 response time: longer at both load levels, 2.23× (4 clients, 2.17–2.30×) to 2.49× (8 clients, 2.42–2.57×). Server CPU per transaction: higher at both load levels, 2.23× (4 clients, 2.18–2.27×) to 2.50× (8 clients, 2.45–2.56×).
            * b vs. a by concurrency, throughput as the geometric mean over load levels (95 % CIs, n = 3): up to one client per CPU −25.2 % (−26.7 to −23.6 %), worse; more clients than CPUs −3.5 % (−5.5 to −1.5 %), worse.
            * c vs. a by concurrency, throughput as the geometric mean over load levels (95 % CIs, n = 3): up to one client per CPU 0.449× (0.440–0.459×), worse; more clients than CPUs 0.400× (0.391–0.409×), worse.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 63 % of its starts or fewer is absent from n = 3 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn one_variant() {
    check(
        &noisy(&["a"], &[4], 3, &[&[1000.0]]),
        &expect![[r#"
            a does 1,000 transactions/s at 4 clients, p95 7.73 ms.
            - At 4 clients: throughput 1,000 transactions/s (95 % CI 982–1,020/s, n = 3) and p95 response time 7.73 ms (95 % CI 7.57–7.90 ms, n = 3)."#]],
    );
    check(
        &noisy(&["a"], &[1, 4, 16], 3, &[&[1000.0, 3000.0, 2500.0]]),
        &expect![[r#"
            a measured its highest throughput at 4 clients: 3,000 transactions/s, p95 2.59 ms.
            - a scales to 3.00× from 1 to 16 clients, peaks at 4 clients and falls beyond.
            - At 1 client: throughput 1,000 transactions/s (95 % CI 982–1,020/s, n = 3) and p95 response time 1.93 ms (95 % CI 1.89–1.97 ms, n = 3).
            - At 4 clients: throughput 3,000 transactions/s (95 % CI 2,940–3,070/s, n = 3) and p95 response time 2.59 ms (95 % CI 2.53–2.65 ms, n = 3).
            - At 16 clients: throughput 2,500 transactions/s (95 % CI 2,440–2,560/s, n = 3) and p95 response time 12.4 ms (95 % CI 12.1–12.7 ms, n = 3).
            - 95 % CI of the speed-up, for the best of 2 load levels: a 2.93–3.06× at 4 clients."#]],
    );
}

#[test]
fn open_load_is_judged_by_response_time() {
    let mut alone = noisy(&["a"], &[1, 2], 3, &[&[100.0, 200.0]]);
    make_open(&mut alone);
    check(
        &alone,
        &expect![[r#"
            The p95 response time of a is 19.3 ms at 100/s offered and 19.3 ms at 200/s offered.
            - At 100/s offered: p95 response time 19.3 ms (95 % CI 18.9–19.7 ms, n = 3).
            - At 200/s offered: p95 response time 19.3 ms (95 % CI 19.1–19.6 ms, n = 3)."#]],
    );
    let mut two = noisy(&["a", "b"], &[4], 5, &[&[400.0], &[800.0]]);
    make_open(&mut two);
    check(
        &two,
        &expect![[r#"
            The p95 response time of b is 50.0 % shorter than that of a: 9.68 ms against 19.3 ms at 400/s offered.
            - p95 response time: −50.0 % (95 % CI −50.9 to −49.0 %, n = 5), better.
            - Server CPU per transaction: −50.0 % (95 % CI −50.8 to −49.1 %, n = 5), better.
            * b vs. a at 400/s offered: throughput +99.9 % (95 % CI +96.5 to +103 %, n = 5), better; p95 response time −50.0 % (95 % CI −50.9 to −49.0 %, n = 5), better; server CPU per transaction −50.0 % (95 % CI −50.8 to −49.1 %, n = 5), better.
            * Only verdicts on p95 response time answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 45 % of its starts or fewer is absent from n = 5 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn nothing_finished() {
    let mut run = noisy(&["a", "b"], &[4], 1, &[&[1000.0], &[2000.0]]);
    let all = std::mem::take(&mut run.trials);
    check(&run, &expect![[r#"No trial has finished yet."#]]);
    run.trials = all;
    fail(&mut run, 1, "the server did not start.");
    fail(&mut run, 2, "the disk is full");
    check(
        &run,
        &expect![[r#"
            No trial has finished: 2 trials failed.
            - First failure, trial 1 (a): the server did not start."#]],
    );
}

#[test]
fn the_baseline_failed() {
    let mut run = noisy(&["a", "b"], &[4], 1, &[&[1000.0], &[2000.0]]);
    fail(&mut run, 1, "the server did not start");
    check(
        &run,
        &expect![[r#"
            No comparison is possible yet: no load level has results for both a variant and its baseline.
            - a has no finished trial, so nothing is known about it.
            - b does 2,020 transactions/s at 4 clients, p95 3.85 ms.
            - At 4 clients: throughput 2,020 transactions/s (n = 1, no CI) and p95 response time 3.85 ms (n = 1, no CI)."#]],
    );
}

#[test]
fn a_job_alone_is_answered_with_its_time() {
    use dyno_units::{Direction, MetricId, Unit, metric};
    let mut run = run(&["a"], &[4], 1, |_, _, _| 0.0);
    run.manifest.steps[0].clients = 0;
    for trial in &mut run.trials {
        let time = metric("job_time", Unit::Seconds, Direction::Lower, "job time", "x");
        trial.metrics = vec![time.main()];
        trial.steps[0].kinds.clear();
        trial.steps[0].figures.insert(MetricId::new("job_time"), 10.2);
    }
    let answer = crate::analyse(&[run], &crate::Options::default()).answer;
    assert_eq!(answer.headline, "The job time of a is 10.2 s.");
}

#[test]
fn what_differs_most_of_jobs_is_said_with_them() {
    use dyno_units::{Direction, MetricId, Unit, metric};
    let mut run = run(&["a", "b"], &[4], 4, |_, _, _| 0.0);
    run.manifest.steps[0].clients = 0;
    for trial in &mut run.trials {
        let figures = [
            metric("job.time", Unit::Seconds, Direction::Lower, "job time", "x").main(),
            metric("job.size", Unit::Bytes, Direction::Lower, "size of the job", "x").secondary(),
            metric("job.ms", Unit::from("ms"), Direction::Lower, "ms of the job", "x").secondary(),
            metric("job.same", Unit::from("s"), Direction::Lower, "same of the job", "x")
                .secondary(),
        ];
        let noise = 1.0 + 0.01 * f64::from(trial.block % 2);
        let is_b = trial.variant == 1;
        let values = [10.0, if is_b { 1e6 } else { 4e6 }, if is_b { 90.0 } else { 6.0 }, 7.0];
        trial.metrics = figures.to_vec();
        trial.steps[0].kinds.clear();
        for (figure, value) in figures.iter().zip(values) {
            trial.steps[0].figures.insert(MetricId::new(figure.id.as_str()), value * noise);
        }
    }
    check(
        &run,
        &expect![[r#"
            No difference: b and a are within 3 % of each other in job time without load.
            - Job time: 0.0 % (no spread, n = 4), no difference.
            - Ms of the job: 90.4 ms against 6.03 ms, 15.0× (no spread, n = 4), worse.
            - Size of the job: 1.00 MB against 4.02 MB, 0.250× (no spread, n = 4), better.
            * b vs. a without load: job time 0.0 % (no spread, n = 4), no difference; size of the job 0.250× (no spread, n = 4), better; ms of the job 15.0× (no spread, n = 4), worse.
            * Only verdicts on job time answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 53 % of its starts or fewer is absent from n = 4 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn a_variant_that_commits_nothing() {
    check(
        &noisy(&["a", "b"], &[4], 3, &[&[1000.0], &[0.0]]),
        &expect![[r#"
            b committed nothing at 4 clients in any of 3 trials.
            - Throughput: nothing committed in any of 3 trials.
            * b vs. a at 4 clients: throughput nothing committed in any of 3 trials.
            * A mode of a variant, such as slow starts, that occurs in 63 % of its starts or fewer is absent from n = 3 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
    check(&noisy(&["a"], &[4], 3, &[&[0.0]]), &expect!["a committed no transaction at 4 clients."]);
    let sometimes =
        run(
            &["a", "b"],
            &[4],
            3,
            |variant, _, repetition| {
                if variant == 1 && repetition == 2 { 0.0 } else { 1000.0 }
            },
        );
    check(
        &sometimes,
        &expect![[r#"
            Undecided whether b and a differ at 4 clients (measured: −33.3 %).
            - Throughput: −33.3 % (n = 3, no CI because some trial committed nothing), undecided.
            * b vs. a at 4 clients: throughput −33.3 % (n = 3, no CI because some trial committed nothing), undecided.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 78 % of its starts or fewer is absent from n = 2 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn trials_that_were_not_interleaved() {
    let mut run = noisy(&["a", "b"], &[4], 5, &[&[1000.0], &[2000.0]]);
    run.manifest.order = "sequential".to_owned();
    check(
        &run,
        &expect![[r#"
            b is 99.9 % faster than a: 2,000 transactions/s against 1,000/s at 4 clients.
            - Throughput: +99.9 % (95 % CI +97.6 to +102 %, n = 5), better.
            - p95 response time: −50.0 % (95 % CI −50.7 to −49.3 %, n = 5), better.
            - Server CPU per transaction: −50.0 % (95 % CI −50.5 to −49.4 %, n = 5), better.
            * b vs. a at 4 clients: throughput +99.9 % (95 % CI +97.6 to +102 %, n = 5), better; p95 response time −50.0 % (95 % CI −50.7 to −49.3 %, n = 5), better; server CPU per transaction −50.0 % (95 % CI −50.5 to −49.4 %, n = 5), better.
            * Some comparisons are not paired by block, because their trials were not interleaved or too few blocks contain both variants: in these comparisons, drift of the machine between the variants' trials looks like an effect.
            * Only verdicts on throughput answer the question that was asked; those on other metrics are exploratory.
            * A mode of a variant, such as slow starts, that occurs in 45 % of its starts or fewer is absent from n = 5 of them in at least one of 20 runs: CIs and verdicts do not include what did not occur."#]],
    );
}

#[test]
fn one_comparison_among_many() {
    // Bounds exclude zero without a verdict: one such among ten comparisons is chance.
    let names = ["a", "b", "c", "d", "e", "f"];
    let run = run(&names, &[4, 8], 3, |variant, step, repetition| {
        let faster = if variant == 1 { 1.06 } else { 1.0 };
        let spread = if variant <= 1 { 1.6 } else { 4.0 };
        1000.0 * faster * (1.0 + spread * (wobble(variant, step, repetition) - 1.0))
    });
    let answer = analyse(&[run], &Options::default()).answer;
    let throughput = answer.details.iter().find(|d| d.starts_with("b vs. a ("));
    expect!["b vs. a (95 % CIs, n = 3). Throughput: undecided at both load levels, +5.7 % (4 clients, −0.2 to +11.8 %) to +5.7 % (8 clients, −0.1 to +11.9 %); about 10 repetitions in total would be needed to decide. p95 response time: undecided at both load levels, −5.4 % (8 clients, −10.7 to +0.2 %) to −5.1 % (4 clients, −10.4 to +0.5 %); about 11 repetitions in total would be needed to decide."].assert_eq(throughput.expect("b is compared"));
}
