//! The sentences people quote, word for word.

use dyno_record::Run;
use expect_test::{Expect, expect};

use crate::fixtures::{fail, make_open, run, wobble};
use crate::{Metric, Options, analyse};

/// Headline, and details below it.
#[track_caller]
fn check(run: &Run, expected: &Expect) {
    let answer = analyse(std::slice::from_ref(run), &Options::default()).answer;
    let mut text = answer.headline;
    for detail in answer.details {
        text.push_str("\n- ");
        text.push_str(&detail);
    }
    expected.assert_eq(&text);
}

/// The headline alone.
#[track_caller]
fn check_headline(run: &Run, expected: &Expect) {
    expected.assert_eq(&analyse(std::slice::from_ref(run), &Options::default()).answer.headline);
}

/// A run in which each variant has this throughput at each step, give or take 1 %.
fn noisy(names: &[&str], clients: &[u64], repetitions: u32, rates: &[&[f64]]) -> Run {
    run(names, clients, repetitions, |variant, step, repetition| {
        rates[variant][step] * wobble(variant, step, repetition)
    })
}

/// Makes a run one that was only watched, with these readings all the time.
fn watch(run: &mut Run, readings: &[(&str, f64)]) {
    run.manifest.variants[0].workload = dyno_record::NO_WORKLOAD.to_owned();
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
    // MariaDB and MySQL count statements; nobody counts what they commit by themselves.
    for step in server.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        step.kinds.clear();
        (step.reads, step.writes) = (0, 0);
        step.others = (1234.0 * step.measured_s) as u64;
    }
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
    check(
        &server,
        &expect![[r#"
            Observed (Dyno sent no load): the server used 0.42 of 4 CPUs, the whole machine 0.61; it ran 1,234 statements/s, Dyno's own included.
            - All disks: 12 reads/s (98.3 kB/s), 250 writes/s (4.1 MB/s).
            - Deferred work of the engine at its peak: history list length 6,500."#]],
    );
    let findings = analyse(&[server], &Options::default());
    assert!(findings.caveats.is_empty());
    // A statement is no transaction: nothing is told by transaction, nor of responses.
    let cell = &findings.cells[0];
    assert_eq!(cell.metrics.keys().collect::<Vec<_>>(), Vec::<&Metric>::new());
    let why = cell.absent.get(&Metric::Throughput).map(String::as_str);
    assert_eq!(why, Some("this server counts statements, not transactions"));
    assert_eq!(cell.absent.len(), 1, "{:?}", cell.absent);
    let cpu = findings.attribution[0].uses.iter().find(|used| used.name == "cpu.server");
    let cpu = cpu.expect("it was read");
    assert!(cpu.per_transaction.is_none());
    let per_statement = cpu.per_statement.as_ref().map(|estimate| estimate.value);
    assert!(per_statement.is_some_and(|us| (us - 420_000.0 / 1234.0).abs() < 1.0));
}

#[test]
fn a_server_that_counts_its_commits() {
    let mut server = run(&["watch"], &[0], 1, |_, _, _| 50.0);
    watch(&mut server, &[("server.cpu_s_per_s", 0.2), ("cpu.busy_s_per_s", 2.4)]);
    check(
        &server,
        &expect![[r#"
            Observed (Dyno sent no load): the machine was busy with other work, 2.2 of 4 CPUs; the server used 0.2; it committed 50 transactions/s, Dyno's own included."#]],
    );
    let findings = analyse(&[server], &Options::default());
    let cell = &findings.cells[0];
    assert!(cell.metrics.contains_key(&Metric::Throughput));
    assert!(!cell.metrics.contains_key(&Metric::ResponseP95), "nobody waited for a response");
    assert!(cell.absent.is_empty(), "{:?}", cell.absent);
}

#[test]
fn a_host_that_was_only_watched() {
    let mut host = run(&["watch"], &[0], 1, |_, _, _| 1.0);
    watch(&mut host, &[("cpu.busy_s_per_s", 0.61), ("debt.gauge", 0.1)]);
    for step in host.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        step.kinds.clear();
        (step.reads, step.writes, step.others) = (0, 0, 0);
    }
    check(
        &host,
        &expect![[r#"
            Observed (Dyno sent no load): 0.61 of 4 CPUs of this machine were busy."#]],
    );
}

#[test]
fn two_variants_at_one_step() {
    check(
        &noisy(&["delete-full", "wal-normal"], &[4], 3, &[&[1000.0], &[2310.0]]),
        &expect![[r#"
            wal-normal is 2.31 × as fast as delete-full (95 % bounds 2.23 × … 2.38 ×, n = 3): 2,308 (2,260 … 2,357) against 1,001 (982 … 1,021) transactions/s at 4 clients.
            - wal-normal against delete-full at 4 clients: p95 response time 0.435 × (95 % bounds 0.423 × … 0.447 ×, n = 3), better; server CPU per transaction 0.434 × (0.42 × … 0.448 ×), better."#]],
    );
}

#[test]
fn no_difference_at_one_step() {
    let mut run = noisy(&["a", "b"], &[4], 10, &[&[1000.0], &[1001.0]]);
    run.manifest.threshold = 0.05;
    check(
        &run,
        &expect![[r#"
            No difference that matters between b and a: throughput +0.11 % at 4 clients (95 % bounds −0.81 % … +1.05 %, n = 10; threshold 5 %).
            - b against a at 4 clients: p95 response time −0.12 % (95 % bounds −1.03 % … +0.8 %, n = 10), no difference that matters."#]],
    );
}

#[test]
fn undecided_at_one_step() {
    check(
        &noisy(&["a", "b"], &[4], 3, &[&[1000.0], &[1030.0]]),
        &expect![[r#"
            The data do not decide between b and a: throughput +2.79 % at 4 clients (95 % bounds −0.57 % … +6.26 %, n = 3); about 5 repetitions would probably decide.
            - b against a at 4 clients: p95 response time −2.47 % (95 % bounds −5 % … +0.12 %, n = 3), inconclusive; about 4 repetitions would probably decide."#]],
    );
}

#[test]
fn one_repetition() {
    check(
        &noisy(&["a", "b"], &[4], 1, &[&[1000.0], &[2000.0]]),
        &expect![[r#"
            The data do not decide between b and a: throughput 2.02 × at 4 clients (n = 1, so no bounds); one repetition has no spread, so how many would decide is not known.
            - b against a at 4 clients: p95 response time 0.499 × (n = 1, so no bounds), inconclusive; one repetition has no spread, so how many would decide is not known."#]],
    );
}

#[test]
fn two_variants_with_different_verdicts_by_step() {
    let rates: [&[f64]; 2] = [&[1000.0, 2000.0, 2500.0], &[1000.0, 3000.0, 1500.0]];
    check(
        &noisy(&["a", "b"], &[1, 4, 16], 5, &rates),
        &expect![[r#"
            b against a: throughput better at 4 clients (+49.5 %: +47.6 % … +51.5 %), worse at 16 clients (−40.3 %: −41 % … −39.5 %) and no difference at 1 client (95 % bounds, n = 5).
            - b against a (95 % bounds, n = 5): throughput better at 4 clients (+49.5 %: +47.6 % … +51.5 %), worse at 16 clients (−40.3 %: −41 % … −39.5 %) and no difference at 1 client; p95 response time better at 4 clients (−33.3 %: −34.4 % … −32.2 %), worse at 16 clients (+67.4 %: +64.9 % … +69.9 %) and no difference at 1 client; server CPU per transaction better at 4 clients (−33.1 %: −34 % … −32.2 %) and worse at 16 clients (+67.4 %: +65.2 % … +69.6 %).
            - b against a by concurrency, throughput as the geometric mean over steps (95 % bounds, n = 5): no more clients than CPUs +22.2 % (+20.3 % … +24.2 %), better; more clients than CPUs −40.3 % (−41.2 % … −39.3 %), worse."#]],
    );
}

#[test]
fn better_at_every_step() {
    let rates: [&[f64]; 2] = [&[1000.0, 2000.0], &[1500.0, 4000.0]];
    check(
        &noisy(&["a", "b"], &[1, 4], 5, &rates),
        &expect![[r#"
            b against a: throughput better at both steps, from +49.9 % (+47.7 % … +52.2 %) at 1 client to +99.4 % (+96.5 % … +102 %) at 4 clients (95 % bounds, n = 5).
            - b against a (95 % bounds, n = 5): throughput better at 1 client (+49.9 %: +47.7 % … +52.2 %) and 4 clients (+99.4 %: +96.5 % … +102 %); p95 response time better at 1 client (−33.2 %: −34.1 % … −32.2 %) and 4 clients (−49.8 %: −50.6 % … −49.1 %); server CPU per transaction better at 1 client (−33.3 %: −34.3 % … −32.3 %) and 4 clients (−49.8 %: −50.6 % … −49.1 %)."#]],
    );
}

#[test]
fn the_best_of_several() {
    let rates: [&[f64]; 3] = [&[1000.0], &[1500.0], &[900.0]];
    check(
        &noisy(&["a", "b", "c"], &[4], 5, &rates),
        &expect![[r#"
            b is fastest: 1,501 transactions/s (95 % bounds 1,487 … 1,516, n = 5) at 4 clients, +49.9 % against a (95 % bounds +47.8 % … +52.1 %, n = 5).
            - b against a at 4 clients: throughput +49.9 % (95 % bounds +47.8 % … +52.1 %, n = 5), better; p95 response time −33.2 % (−34.1 % … −32.2 %), better; server CPU per transaction −33.3 % (−34.2 % … −32.3 %), better.
            - c against a at 4 clients: throughput −10.3 % (95 % bounds −11.6 % … −9.11 %, n = 5), worse; p95 response time +11.8 % (+10.1 % … +13.4 %), worse; server CPU per transaction +11.6 % (+10 % … +13.1 %), worse."#]],
    );
}

#[test]
fn variants_that_are_not_told_apart_are_not_fastest() {
    // The second is as fast as the third, and both are faster than the baseline.
    let rates: [&[f64]; 3] = [&[500.0], &[1000.0], &[1000.0]];
    check_headline(
        &noisy(&["slow", "twin1", "twin2"], &[4], 5, &rates),
        &expect![
            "twin1 and twin2 are fastest, and not told apart: 1,001 transactions/s (95 % bounds 991 … 1,011, n = 5) and 998 transactions/s (95 % bounds 988 … 1,007, n = 5) at 4 clients; twin1 +99.9 % against slow (95 % bounds +97.1 % … +103 %, n = 5)."
        ],
    );
    // Nothing is told apart.
    let rates: [&[f64]; 3] = [&[1000.0], &[1003.0], &[1001.0]];
    check_headline(
        &noisy(&["a", "b", "c"], &[4], 3, &rates),
        &expect![
            "No variant is told to be fastest: b had the highest throughput, 1,002 transactions/s (95 % bounds 981 … 1,023, n = 3) at 4 clients, +0.1 % against a (95 % bounds −3.18 % … +3.49 %, n = 3): inconclusive; about 4 repetitions would probably decide; a and c are not told from it."
        ],
    );
    // Nor is it by one repetition.
    let rates: [&[f64]; 3] = [&[1000.0], &[2000.0], &[500.0]];
    check_headline(
        &noisy(&["a", "b", "c"], &[4], 1, &rates),
        &expect![
            "No variant is told to be fastest: b had the highest throughput, 2,017 transactions/s (n = 1, so no bounds) at 4 clients, 2.02 × a (n = 1, so no bounds): inconclusive; one repetition has no spread, so how many would decide is not known; a and c are not told from it."
        ],
    );
    // Three of four, over several steps.
    let rates: [&[f64]; 4] = [&[100.0, 90.0], &[1000.0, 900.0], &[1001.0, 901.0], &[999.0, 901.0]];
    check_headline(
        &noisy(&["a", "b", "c", "d"], &[1, 4], 5, &rates),
        &expect![
            "d had the best mean, 951 transactions/s (95 % bounds 942 … 959, n = 5) as the geometric mean over both steps; against a, better at 1 client (9.99 ×: 9.99 × … 10 ×) and 4 clients (10 ×: 10 × … 10 ×) (95 % bounds, n = 5); b and c are not told from it, and all others are behind."
        ],
    );
}

#[test]
fn one_sentence_has_one_scale() {
    let rates: [&[f64]; 2] = [&[1000.0, 1000.0, 1000.0, 1000.0], &[768.0, 600.0, 500.0, 383.0]];
    check_headline(
        &noisy(&["a", "b"], &[1, 4, 8, 32], 5, &rates),
        &expect![
            "b against a: throughput worse at all 4 steps, from 0.382 × (0.377 × … 0.387 ×) at 32 clients to 0.768 × (0.758 × … 0.778 ×) at 1 client (95 % bounds, n = 5)."
        ],
    );
}

#[test]
fn steps_that_are_unlike_work_have_no_mean() {
    let rates: [&[f64]; 3] = [&[1000.0, 10.0], &[1500.0, 10.0], &[900.0, 10.0]];
    let mut several = noisy(&["a", "b", "c"], &[4, 8], 5, &rates);
    make_own(&mut several);
    check_headline(
        &several,
        &expect![
            "Step by step, as steps are unlike work: b is fastest at 4 clients (1,501 transactions/s: 1,487 … 1,516); no variant is told to be fastest at 8 clients (95 % bounds, n = 5)."
        ],
    );
    let mut alone = noisy(&["a"], &[4, 8], 3, &[&[1000.0, 10.0]]);
    make_own(&mut alone);
    check_headline(
        &alone,
        &expect![
            "a, step by step, as steps are unlike work: 1,001 transactions/s (982 … 1,021) at 4 clients and 10 transactions/s (9.75 … 10.3) at 8 clients (95 % bounds, n = 3)."
        ],
    );
}

/// Makes all steps the workload's own.
fn make_own(run: &mut Run) {
    for step in &mut run.manifest.steps {
        let roles = Vec::new();
        step.own = Some(dyno_record::OwnStepRecord { roles, ends_by_quota: false, settle_s: 0.0 });
    }
}

#[test]
fn tpcc_is_told_with_its_mode_and_its_new_orders() {
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
        TPC-C, unpaced: b is 49.7 % faster than a (95 % bounds +45 % … +54.6 %, n = 3): 300 (294 … 306) against 200 (196 … 204) transactions/s at 10 clients.
        - New-orders of a: 6,006 a minute at 10 clients (NOPM, unpaced; 95 % bounds 5,894 … 6,119, n = 3).
        - New-orders of b: 8,992 a minute at 10 clients (NOPM, unpaced; 95 % bounds 8,805 … 9,182, n = 3).
        - b against a at 10 clients: p95 response time −33 % (95 % bounds −34.8 % … −31.2 %, n = 3), better; server CPU per transaction −33.2 % (−35.3 % … −31 %), better."#]],
    );
}

#[test]
fn the_cheapest_is_told() {
    let priced = |names: &[&str], rates: &[&[f64]], prices: &[f64], repetitions: u32| {
        let mut run = noisy(names, &[1, 4], repetitions, rates);
        for (variant, amount) in run.manifest.variants.iter_mut().zip(prices) {
            let currency = "EUR".to_owned();
            variant.price_per_hour = Some(dyno_record::Price { amount: *amount, currency });
        }
        analyse(&[run], &Options::default()).answer.details.swap_remove(0)
    };
    let rates: [&[f64]; 3] = [&[1000.0, 2000.0], &[1500.0, 2500.0], &[900.0, 3000.0]];
    expect!["a is cheapest for its work: a million transactions cost 0.0694 EUR at 4 clients (95 % bounds 0.0679 … 0.071, n = 3) on a, 0.0925 EUR at 4 clients (95 % bounds 0.0905 … 0.0947, n = 3) on c and 0.111 EUR at 4 clients (95 % bounds 0.109 … 0.113, n = 3) on b."].assert_eq(&priced(&["a", "b", "c"], &rates, &[0.5, 1.0, 1.0], 3));
    expect!["a and b are cheapest, and not told apart: a million transactions cost 0.0694 EUR at 4 clients (95 % bounds 0.0679 … 0.071, n = 3) on a, 0.0695 EUR at 4 clients (95 % bounds 0.0682 … 0.0709, n = 3) on b and 0.0925 EUR at 4 clients (95 % bounds 0.0905 … 0.0947, n = 3) on c."].assert_eq(&priced(&["a", "b", "c"], &rates, &[0.5, 0.625, 1.0], 3));
    expect!["No variant is told to be cheapest for its work; a cost least: a million transactions cost 0.069 EUR at 4 clients (n = 1, so no bounds) on a, 0.111 EUR at 4 clients (n = 1, so no bounds) on b."].assert_eq(&priced(&["a", "b"], &rates[..2], &[0.5, 1.0], 1));
    expect!["On a a million transactions cost 0.0694 EUR at 4 clients (95 % bounds 0.0679 … 0.071, n = 3)."].assert_eq(&priced(&["a"], &rates[..1], &[0.5], 3));
}

#[test]
fn the_baseline_is_the_best_of_several() {
    let rates: [&[f64]; 3] = [&[2000.0, 3000.0], &[1500.0, 2900.0], &[900.0, 1200.0]];
    check(
        &noisy(&["a", "b", "c"], &[4, 8], 3, &rates),
        &expect![[r#"
            a is fastest: 2,452 transactions/s (95 % bounds 2,404 … 2,500, n = 3) as the geometric mean over both steps; all 4 comparisons with it came out worse.
            - b against a (95 % bounds, n = 3): throughput worse at 4 clients (−25.1 %: −26.7 % … −23.6 %) and 8 clients (−3.51 %: −5.5 % … −1.47 %); p95 response time worse at 4 clients (+34 %: +30.7 % … +37.3 %) and 8 clients (+3.62 %: +0.99 % … +6.31 %); server CPU per transaction worse at 4 clients (+33.6 %: +30.9 % … +36.4 %) and 8 clients (+3.63 %: +1.49 % … +5.82 %).
            - c against a (95 % bounds, n = 3): throughput worse at 4 clients (0.449 ×: 0.44 × … 0.459 ×) and 8 clients (0.4 ×: 0.391 × … 0.409 ×); p95 response time worse at 4 clients (2.23 ×: 2.17 × … 2.3 ×) and 8 clients (2.49 ×: 2.42 × … 2.57 ×); server CPU per transaction worse at 4 clients (2.23 ×: 2.18 × … 2.27 ×) and 8 clients (2.5 ×: 2.45 × … 2.56 ×).
            - b against a by concurrency, throughput as the geometric mean over steps (95 % bounds, n = 3): no more clients than CPUs −25.1 % (−27.6 % … −22.6 %), worse; more clients than CPUs −3.51 % (−6.83 % … −0.07 %), worse.
            - c against a by concurrency, throughput as the geometric mean over steps (95 % bounds, n = 3): no more clients than CPUs 0.449 × (0.433 × … 0.466 ×), worse; more clients than CPUs 0.4 × (0.384 × … 0.417 ×), worse."#]],
    );
}

#[test]
fn one_variant() {
    check(
        &noisy(&["a"], &[4], 3, &[&[1000.0]]),
        &expect![
            "a had a throughput of 1,001/s at 4 clients (95 % bounds 982/s … 1,021/s, n = 3); its p95 response time there was 7.73 ms (95 % bounds 7.57 ms … 7.9 ms, n = 3)."
        ],
    );
    check(
        &noisy(&["a"], &[1, 4, 16], 3, &[&[1000.0, 3000.0, 2500.0]]),
        &expect![[r#"
            a had its highest throughput, 3,002/s, at 4 clients (95 % bounds 2,935/s … 3,070/s, n = 3); its p95 response time there was 2.59 ms (95 % bounds 2.53 ms … 2.65 ms, n = 3).
            - a had a throughput of 1,001/s at 1 client (95 % bounds 982/s … 1,021/s, n = 3); its p95 response time there was 1.93 ms (95 % bounds 1.89 ms … 1.97 ms, n = 3).
            - a had a throughput of 3,002/s at 4 clients (95 % bounds 2,935/s … 3,070/s, n = 3); its p95 response time there was 2.59 ms (95 % bounds 2.53 ms … 2.65 ms, n = 3).
            - a had a throughput of 2,499/s at 16 clients (95 % bounds 2,442/s … 2,559/s, n = 3); its p95 response time there was 12.4 ms (95 % bounds 12.1 ms … 12.7 ms, n = 3)."#]],
    );
}

#[test]
fn open_load_is_judged_by_response_time() {
    let mut alone = noisy(&["a"], &[1, 2], 3, &[&[100.0, 200.0]]);
    make_open(&mut alone);
    check(
        &alone,
        &expect![[r#"
            a had a p95 response time of 19.3 ms at 100/s offered (95 % bounds 18.9 ms … 19.7 ms, n = 3) and 19.3 ms at 200/s offered (95 % bounds 19.1 ms … 19.6 ms, n = 3).
            - a had a throughput of 100/s at 100/s offered (95 % bounds 98.2/s … 102/s, n = 3); its p95 response time there was 19.3 ms (95 % bounds 18.9 ms … 19.7 ms, n = 3).
            - a had a throughput of 200/s at 200/s offered (95 % bounds 196/s … 205/s, n = 3); its p95 response time there was 19.3 ms (95 % bounds 19.1 ms … 19.6 ms, n = 3)."#]],
    );
    let mut two = noisy(&["a", "b"], &[4], 5, &[&[400.0], &[800.0]]);
    make_open(&mut two);
    check(
        &two,
        &expect![[r#"
            The p95 response time of b is 50 % shorter than that of a (95 % bounds −51 % … −49 %, n = 5): 9.68 ms (9.55 ms … 9.8 ms) against 19.3 ms (19.1 ms … 19.5 ms) at 400/s offered.
            - b against a at 400/s offered: throughput +99.9 % (95 % bounds +96.5 % … +103 %, n = 5), better; server CPU per transaction −50 % (−50.8 % … −49.1 %), better."#]],
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
        &expect![[
            r#"No trial has finished: 2 trials failed, the first of them: the server did not start."#
        ]],
    );
}

#[test]
fn the_baseline_failed() {
    let mut run = noisy(&["a", "b"], &[4], 1, &[&[1000.0], &[2000.0]]);
    fail(&mut run, 1, "the server did not start");
    check(
        &run,
        &expect![[r#"
        Nothing can be compared yet: no variant and its baseline have both committed transactions at the same step.
        - b had a throughput of 2,017/s at 4 clients (n = 1, so no bounds); its p95 response time there was 3.85 ms (n = 1, so no bounds).
        - a has no finished trial: nothing is known of it."#]],
    );
}

#[test]
fn a_variant_that_commits_nothing() {
    check(
        &noisy(&["a", "b"], &[4], 3, &[&[1000.0], &[0.0]]),
        &expect![[r#"b committed nothing at 4 clients in any of 3 repetitions: worse."#]],
    );
    check(
        &noisy(&["a"], &[4], 3, &[&[0.0]]),
        &expect![[r#"a committed no transaction at 4 clients."#]],
    );
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
            The data do not decide between b and a: throughput −33.3 % at 4 clients (n = 3, no bounds because some repetition committed nothing).
            - b against a at 4 clients: p95 response time 0 % (95 % bounds −0.19 % … +0.2 %, n = 2), no difference that matters."#]],
    );
}

#[test]
fn trials_that_were_not_interleaved() {
    let mut run = noisy(&["a", "b"], &[4], 5, &[&[1000.0], &[2000.0]]);
    run.manifest.order = "sequential".to_owned();
    check(
        &run,
        &expect![[r#"
            b is 99.9 % faster than a (95 % bounds +97.6 % … +102 %, n = 5): 2,002 (1,982 … 2,021) against 1,001 (992 … 1,011) transactions/s at 4 clients.
            - b against a at 4 clients: p95 response time −50 % (95 % bounds −50.7 % … −49.3 %, n = 5), better; server CPU per transaction −50 % (−50.5 % … −49.4 %), better.
            - Some comparisons are not paired by block, because their trials were not interleaved or too few blocks have both: there, a drift of the machine between the variants cannot be told from an effect."#]],
    );
}

#[test]
fn one_comparison_among_many() {
    // Bounds that exclude zero, and still no verdict: among ten comparisons one such is chance.
    let names = ["a", "b", "c", "d", "e", "f"];
    let run = run(&names, &[4, 8], 3, |variant, step, repetition| {
        let faster = if variant == 1 { 1.06 } else { 1.0 };
        let spread = if variant <= 1 { 1.6 } else { 4.0 };
        1000.0 * faster * (1.0 + spread * (wobble(variant, step, repetition) - 1.0))
    });
    let answer = analyse(&[run], &Options::default()).answer;
    let throughput = answer.details.iter().find(|d| d.starts_with("b against a ("));
    expect!["b against a (95 % bounds, n = 3): throughput inconclusive at both steps; about 10 repetitions would probably decide; p95 response time inconclusive at both steps; about 11 repetitions would probably decide."].assert_eq(throughput.expect("b is compared"));
}
