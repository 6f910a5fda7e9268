use dyno_record::Run;
use expect_test::{Expect, expect};

use crate::fixtures::{fail, make_open, run, wobble};
use crate::{Options, analyse};

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

/// A run in which each variant has this throughput at each step, give or take 1 %.
fn noisy(names: &[&str], clients: &[u64], repetitions: u32, rates: &[&[f64]]) -> Run {
    run(names, clients, repetitions, |variant, step, repetition| {
        rates[variant][step] * wobble(variant, step, repetition)
    })
}

#[test]
fn two_variants_at_one_step() {
    check(
        &noisy(&["delete-full", "wal-normal"], &[4], 3, &[&[1000.0], &[2310.0]]),
        &expect![[r#"
        Throughput: wal-normal is 2.31 × delete-full at 4 clients (+131 %, 95 % bounds +123 % … +138 %, n = 3): better.
        - P95 response time: wal-normal is 0.435 × delete-full at 4 clients (−56.5 %, 95 % bounds −57.7 % … −55.3 %, n = 3): better.
        - P99 response time: wal-normal is 0.435 × delete-full at 4 clients (−56.5 %, 95 % bounds −57.7 % … −55.3 %, n = 3): better.
        - Server CPU per transaction: wal-normal is 0.434 × delete-full at 4 clients (−56.6 %, 95 % bounds −58 % … −55.2 %, n = 3): better."#]],
    );
}

#[test]
fn no_difference_at_one_step() {
    let mut run = noisy(&["a", "b"], &[4], 10, &[&[1000.0], &[1001.0]]);
    run.manifest.threshold = 0.05;
    check(
        &run,
        &expect![[r#"
        Throughput: no difference that matters between b and a at 4 clients (+0.11 %, 95 % bounds −0.81 % … +1.05 %, n = 10; threshold 5 %).
        - P95 response time: no difference that matters between b and a at 4 clients (−0.12 %, 95 % bounds −1.03 % … +0.8 %, n = 10; threshold 5 %)."#]],
    );
}

#[test]
fn undecided_at_one_step() {
    check(
        &noisy(&["a", "b"], &[4], 3, &[&[1000.0], &[1030.0]]),
        &expect![[r#"
        Throughput: the data do not decide between b and a at 4 clients (+2.79 %, 95 % bounds −0.57 % … +6.26 %, n = 3); about 4 repetitions would probably decide.
        - P95 response time: the data do not decide between b and a at 4 clients (−2.47 %, 95 % bounds −5 % … +0.12 %, n = 3); about 4 repetitions would probably decide."#]],
    );
}

#[test]
fn one_repetition() {
    check(
        &noisy(&["a", "b"], &[4], 1, &[&[1000.0], &[2000.0]]),
        &expect![[r#"
        Throughput: the data do not decide between b and a at 4 clients (+102 %, n = 1, so no bounds); at least 3 repetitions are needed.
        - P95 response time: the data do not decide between b and a at 4 clients (−50 %, n = 1, so no bounds); at least 3 repetitions are needed."#]],
    );
}

#[test]
fn two_variants_with_different_verdicts_by_step() {
    let rates: [&[f64]; 2] = [&[1000.0, 2000.0, 2500.0], &[1000.0, 3000.0, 1500.0]];
    check(
        &noisy(&["a", "b"], &[1, 4, 16], 5, &rates),
        &expect![[r#"
        Throughput of b against a: better at 4 clients (+49.5 %); worse at 16 clients (−40.3 %); no difference at 1 client (n = 5).
        - Throughput of b against a: 0.999 × at 1 client (−0.06 %, 95 % bounds −1.76 % … +1.67 %, n = 5): no difference that matters; 1.5 × at 4 clients (+49.5 %, 95 % bounds +47.1 % … +52 %, n = 5): better; 0.597 × at 16 clients (−40.3 %, 95 % bounds −41.2 % … −39.3 %, n = 5): worse.
        - P95 response time of b against a: 1 × at 1 client (+0.06 %, 95 % bounds −1.88 % … +2.04 %, n = 5): no difference that matters; 0.667 × at 4 clients (−33.3 %, 95 % bounds −34.7 % … −31.9 %, n = 5): better; 1.67 × at 16 clients (+67.4 %, 95 % bounds +64.7 % … +70.1 %, n = 5): worse.
        - P99 response time of b against a: 0.667 × at 4 clients (−33.3 %, 95 % bounds −34.3 % … −32.3 %, n = 5): better; 1.67 × at 16 clients (+67.4 %, 95 % bounds +64.8 % … +70 %, n = 5): worse.
        - Server CPU per transaction of b against a: 0.669 × at 4 clients (−33.1 %, 95 % bounds −34.2 % … −32 %, n = 5): better; 1.67 × at 16 clients (+67.4 %, 95 % bounds +64.8 % … +70 %, n = 5): worse.
        - At low concurrency (no more clients than CPUs), b has 1.22 × the throughput of a as a geometric mean over the steps (+22.2 %, 95 % bounds +20.3 % … +24.2 %, n = 5): better.
        - At high concurrency (more clients than CPUs), b has 0.597 × the throughput of a as a geometric mean over the steps (−40.3 %, 95 % bounds −41.2 % … −39.3 %, n = 5): worse."#]],
    );
}

#[test]
fn better_at_every_step() {
    let rates: [&[f64]; 2] = [&[1000.0, 2000.0], &[1500.0, 4000.0]];
    check(
        &noisy(&["a", "b"], &[1, 4], 5, &rates),
        &expect![[r#"
            Throughput of b against a: better at both steps, from +49.9 % at 1 client to +99.4 % at 4 clients (n = 5).
            - Throughput of b against a: 1.5 × at 1 client (+49.9 %, 95 % bounds +47.4 % … +52.5 %, n = 5): better; 1.99 × at 4 clients (+99.4 %, 95 % bounds +96.1 % … +103 %, n = 5): better.
            - P95 response time of b against a: 0.668 × at 1 client (−33.2 %, 95 % bounds −34.2 % … −32.1 %, n = 5): better; 0.502 × at 4 clients (−49.8 %, 95 % bounds −50.7 % … −48.9 %, n = 5): better.
            - P99 response time of b against a: 0.668 × at 1 client (−33.2 %, 95 % bounds −34.2 % … −32.1 %, n = 5): better; 0.501 × at 4 clients (−49.9 %, 95 % bounds −50.6 % … −49.2 %, n = 5): better.
            - Server CPU per transaction of b against a: 0.667 × at 1 client (−33.3 %, 95 % bounds −34.4 % … −32.1 %, n = 5): better; 0.502 × at 4 clients (−49.8 %, 95 % bounds −50.7 % … −49 %, n = 5): better."#]],
    );
}

#[test]
fn the_best_of_several() {
    let rates: [&[f64]; 3] = [&[1000.0], &[1500.0], &[900.0]];
    check(
        &noisy(&["a", "b", "c"], &[4], 5, &rates),
        &expect![[r#"
        b had the highest throughput of 3 variants at 4 clients, 1,501/s; throughput: b is 1.5 × a at 4 clients (+49.9 %, 95 % bounds +47.4 % … +52.5 %, n = 5): better.
        - Throughput: b is 1.5 × a at 4 clients (+49.9 %, 95 % bounds +47.4 % … +52.5 %, n = 5): better.
        - P95 response time: b is 0.668 × a at 4 clients (−33.2 %, 95 % bounds −34.2 % … −32.1 %, n = 5): better.
        - P99 response time: b is 0.668 × a at 4 clients (−33.2 %, 95 % bounds −34.2 % … −32.1 %, n = 5): better.
        - Server CPU per transaction: b is 0.667 × a at 4 clients (−33.3 %, 95 % bounds −34.4 % … −32.1 %, n = 5): better.
        - Throughput: c is 0.896 × a at 4 clients (−10.3 %, 95 % bounds −11.8 % … −8.92 %, n = 5): worse.
        - P95 response time: c is 1.12 × a at 4 clients (+11.8 %, 95 % bounds +9.82 % … +13.7 %, n = 5): worse.
        - P99 response time: c is 1.12 × a at 4 clients (+11.8 %, 95 % bounds +9.85 % … +13.7 %, n = 5): worse.
        - Server CPU per transaction: c is 1.12 × a at 4 clients (+11.6 %, 95 % bounds +9.79 % … +13.3 %, n = 5): worse."#]],
    );
}

#[test]
fn the_baseline_is_the_best_of_several() {
    let rates: [&[f64]; 3] = [&[2000.0, 3000.0], &[1500.0, 2900.0], &[900.0, 1200.0]];
    check(
        &noisy(&["a", "b", "c"], &[4, 8], 3, &rates),
        &expect![[r#"
            a had the highest throughput of 3 variants over both steps (geometric mean), 2,452/s; it is the baseline, and the 4 comparisons with it came out 4 worse.
            - Throughput of b against a: 0.748 × at 4 clients (−25.1 %, 95 % bounds −27.6 % … −22.6 %, n = 3): worse; 0.965 × at 8 clients (−3.51 %, 95 % bounds −6.83 % … −0.07 %, n = 3): worse.
            - P95 response time of b against a: 1.34 × at 4 clients (+34 %, 95 % bounds +30.4 % … +37.6 %, n = 3): worse; 1.04 × at 8 clients (+3.62 %, 95 % bounds +0.07 % … +7.29 %, n = 3): worse.
            - P99 response time of b against a: 1.34 × at 4 clients (+33.9 %, 95 % bounds +30.2 % … +37.8 %, n = 3): worse; 1.04 × at 8 clients (+3.64 %, 95 % bounds +0.1 % … +7.3 %, n = 3): worse.
            - Server CPU per transaction of b against a: 1.34 × at 4 clients (+33.6 %, 95 % bounds +29.2 % … +38.1 %, n = 3): worse; 1.04 × at 8 clients (+3.63 %, 95 % bounds +0.07 % … +7.33 %, n = 3): worse.
            - Throughput of c against a: 0.449 × at 4 clients (−55.1 %, 95 % bounds −56.7 % … −53.4 %, n = 3): worse; 0.4 × at 8 clients (−60 %, 95 % bounds −61.6 % … −58.3 %, n = 3): worse.
            - P95 response time of c against a: 2.23 × at 4 clients (+123 %, 95 % bounds +114 % … +133 %, n = 3): worse; 2.49 × at 8 clients (+149 %, 95 % bounds +137 % … +162 %, n = 3): worse.
            - P99 response time of c against a: 2.23 × at 4 clients (+123 %, 95 % bounds +114 % … +133 %, n = 3): worse; 2.5 × at 8 clients (+150 %, 95 % bounds +140 % … +160 %, n = 3): worse.
            - Server CPU per transaction of c against a: 2.23 × at 4 clients (+123 %, 95 % bounds +114 % … +131 %, n = 3): worse; 2.5 × at 8 clients (+150 %, 95 % bounds +140 % … +160 %, n = 3): worse.
            - At low concurrency (no more clients than CPUs), b has 0.748 × the throughput of a as a geometric mean over the steps (−25.1 %, 95 % bounds −27.6 % … −22.6 %, n = 3): worse.
            - At high concurrency (more clients than CPUs), b has 0.965 × the throughput of a as a geometric mean over the steps (−3.51 %, 95 % bounds −6.83 % … −0.07 %, n = 3): worse.
            - At low concurrency (no more clients than CPUs), c has 0.449 × the throughput of a as a geometric mean over the steps (−55.1 %, 95 % bounds −56.7 % … −53.4 %, n = 3): worse.
            - At high concurrency (more clients than CPUs), c has 0.4 × the throughput of a as a geometric mean over the steps (−60 %, 95 % bounds −61.6 % … −58.3 %, n = 3): worse."#]],
    );
}

#[test]
fn one_variant() {
    check(
        &noisy(&["a"], &[4], 3, &[&[1000.0]]),
        &expect![
            "a had a throughput of 1,001/s at 4 clients (95 % bounds 982/s … 1,021/s, n = 3); its p95 response time there was 7.73 ms (95 % bounds 7.57 ms … 7.89 ms, n = 3)."
        ],
    );
    check(
        &noisy(&["a"], &[1, 4, 16], 3, &[&[1000.0, 3000.0, 2500.0]]),
        &expect![[r#"
        a had its highest throughput, 3,002/s, at 4 clients (95 % bounds 2,935/s … 3,069/s, n = 3); its p95 response time there was 2.59 ms (95 % bounds 2.53 ms … 2.64 ms, n = 3).
        - a had a throughput of 1,001/s at 1 client (95 % bounds 982/s … 1,021/s, n = 3); its p95 response time there was 1.93 ms (95 % bounds 1.89 ms … 1.97 ms, n = 3).
        - a had a throughput of 3,002/s at 4 clients (95 % bounds 2,935/s … 3,069/s, n = 3); its p95 response time there was 2.59 ms (95 % bounds 2.53 ms … 2.64 ms, n = 3).
        - a had a throughput of 2,500/s at 16 clients (95 % bounds 2,441/s … 2,558/s, n = 3); its p95 response time there was 12.4 ms (95 % bounds 12.1 ms … 12.7 ms, n = 3)."#]],
    );
}

#[test]
fn open_load_is_judged_by_response_time() {
    let mut alone = noisy(&["a"], &[1, 2], 3, &[&[100.0, 200.0]]);
    make_open(&mut alone);
    check(
        &alone,
        &expect![[r#"
            a had a p95 response time of 19.3 ms at 100/s offered and 19.3 ms at 200/s offered.
            - a had a throughput of 100/s at 100/s offered (95 % bounds 98.2/s … 102/s, n = 3); its p95 response time there was 19.3 ms (95 % bounds 18.9 ms … 19.7 ms, n = 3).
            - a had a throughput of 200/s at 200/s offered (95 % bounds 196/s … 205/s, n = 3); its p95 response time there was 19.3 ms (95 % bounds 19.1 ms … 19.6 ms, n = 3)."#]],
    );
    let mut two = noisy(&["a", "b"], &[4], 5, &[&[400.0], &[800.0]]);
    make_open(&mut two);
    check(
        &two,
        &expect![[r#"
            P95 response time: b is 0.5 × a at 400/s offered (−50 %, 95 % bounds −51 % … −49 %, n = 5): better.
            - Throughput: b is 2 × a at 400/s offered (+99.9 %, 95 % bounds +96.5 % … +103 %, n = 5): better.
            - P99 response time: b is 0.501 × a at 400/s offered (−49.9 %, 95 % bounds −50.7 % … −49.1 %, n = 5): better.
            - Server CPU per transaction: b is 0.5 × a at 400/s offered (−50 %, 95 % bounds −50.8 % … −49.1 %, n = 5): better."#]],
    );
}

#[test]
fn nothing_finished() {
    let mut run = noisy(&["a", "b"], &[4], 1, &[&[1000.0], &[2000.0]]);
    let all = std::mem::take(&mut run.trials);
    check(&run, &expect!["No trial has finished yet."]);
    run.trials = all;
    fail(&mut run, 1, "the server did not start.");
    fail(&mut run, 2, "the disk is full");
    check(
        &run,
        &expect![
            "No trial has finished: 2 trials failed, the first of them: the server did not start."
        ],
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
        &expect!["Throughput: b committed nothing at 4 clients in any of 3 repetitions: worse."],
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
        Throughput: the data do not decide between b and a at 4 clients (−33.3 %, n = 3, no bounds because some repetition committed nothing).
        - P95 response time: no difference that matters between b and a at 4 clients (0 %, 95 % bounds −0.19 % … +0.2 %, n = 2; threshold 3 %)."#]],
    );
}

#[test]
fn trials_that_were_not_interleaved() {
    let mut run = noisy(&["a", "b"], &[4], 5, &[&[1000.0], &[2000.0]]);
    run.manifest.order = "sequential".to_owned();
    check(
        &run,
        &expect![[r#"
        Throughput: b is 2 × a at 4 clients (+99.9 %, 95 % bounds +97.6 % … +102 %, n = 5): better.
        - P95 response time: b is 0.5 × a at 4 clients (−50 %, 95 % bounds −50.7 % … −49.3 %, n = 5): better.
        - P99 response time: b is 0.5 × a at 4 clients (−50 %, 95 % bounds −50.6 % … −49.3 %, n = 5): better.
        - Server CPU per transaction: b is 0.5 × a at 4 clients (−50 %, 95 % bounds −50.5 % … −49.4 %, n = 5): better.
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
    let throughput = answer.details.iter().find(|d| d.starts_with("Throughput of b"));
    expect!["Throughput of b against a: 1.06 × at 4 clients (+5.66 %, 95 % bounds +0.21 % … +11.4 %, n = 3): inconclusive: among 10 comparisons one such may be chance; about 5 repetitions would probably decide; 1.06 × at 8 clients (+5.7 %, 95 % bounds −0.07 % … +11.8 %, n = 3): inconclusive; about 6 repetitions would probably decide."].assert_eq(throughput.expect("b is compared"));
}
