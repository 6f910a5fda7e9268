//! Terminal output, word for word.

use dyno_analysis::metrics;
use expect_test::{Expect, expect};

use super::*;
use crate::fixture;

#[track_caller]
fn check(findings: &Findings, width: usize, expected: Expect) {
    let text = render(findings, width, false);
    for line in text.lines() {
        assert!(line.chars().count() <= width, "too wide: {line}");
    }
    expected.assert_eq(&text);
}

#[test]
fn three_variants() {
    check(
        &fixture::three_variants().0,
        92,
        expect![[r#"
            Is MariaDB 12.3 faster than 11.8, and do 4k pages help?
            MariaDB 12.3 is faster than MariaDB 11.8 by 8 to 10 %; 4k pages cost more than they gain.
              MariaDB 12.3 commits between 7.1 % and 11.2 % more transactions per second at 4 of 5
              steps; p95 response time falls in step.
              With 4k pages throughput is lower by about 9 % at every step that was decided.
              64 clients are undecided: the CI is wider than the effect. Roughly 9 repetitions would be
              needed to decide.
            workload oltp_read_write, 8,000,000 rows · MariaDB 11.8.2-log; MariaDB 12.3.2-log; MariaDB
            12.3 · 3 variants × 3 repetitions × 5 load levels · 9 trials, 1 failed · smallest difference
            that matters: 3 %

            n: repetitions. (low–high): 95 % CI. Verdicts are adjusted for multiple comparisons (Holm's
            method); CIs are not. ✓ better, ✗ worse, ? undecided (the data do not decide).
            variant                 load level  n  throughput (transactions/s)
            MariaDB 11.8            1 client    3        5,240/s (5,140–5,330)
                                    4 clients   3     16,900/s (16,600–17,200)
                                    8 clients   3     26,700/s (26,200–27,200)
                                    16 clients  3     36,700/s (36,000–37,300)
                                    64 clients  3     41,000/s (40,200–41,700)
            MariaDB 12.3            1 client    3        5,630/s (5,530–5,740)
                                    4 clients   3     18,400/s (18,100–18,700)
                                    8 clients   3     29,100/s (28,600–29,600)
                                    16 clients  3     40,200/s (39,500–41,000)
                                    64 clients  3     44,400/s (43,600–45,200)
            MariaDB 12.3, 4k pages  1 client    3        4,770/s (4,680–4,850)
                                    4 clients   3     15,400/s (15,100–15,700)
                                    8 clients   3     24,300/s (23,900–24,700)
                                    16 clients  3     33,400/s (32,800–34,000)
                                    64 clients  3     37,100/s (36,500–37,800)

            variant                 load level                  effect  verdict
            MariaDB 12.3            1 client    +7.6 % (+5.1 to +10.0)  ✓ better
                                    4 clients   +8.8 % (+5.7 to +12.0)  ✓ better
                                    8 clients   +9.0 % (+5.7 to +12.3)  ✓ better
                                    16 clients  +9.8 % (+7.8 to +11.8)  ✓ better
                                    64 clients   +8.4 % (0.0 to +16.8)  ? undecided
            MariaDB 12.3, 4k pages  1 client    −9.0 % (−11.2 to −6.8)  ✗ worse
                                    4 clients   −9.0 % (−11.4 to −6.6)  ✗ worse
                                    8 clients   −9.0 % (−11.5 to −6.6)  ✗ worse
                                    16 clients  −8.9 % (−12.1 to −5.6)  ✗ worse
                                    64 clients  −9.4 % (−17.7 to −1.1)  ✗ worse

            variant                 load level  n         p95 response time
            MariaDB 11.8            1 client    3       400 µs (386–415 µs)
                                    4 clients   3       500 µs (482–518 µs)
                                    8 clients   3       637 µs (614–659 µs)
                                    16 clients  3       906 µs (873–939 µs)
                                    64 clients  3    3.28 ms (3.17–3.40 ms)
            MariaDB 12.3            1 client    3       371 µs (358–385 µs)
                                    4 clients   3       460 µs (443–476 µs)
                                    8 clients   3       575 µs (555–596 µs)
                                    16 clients  3       825 µs (795–856 µs)
                                    64 clients  3    3.01 ms (2.91–3.12 ms)
            MariaDB 12.3, 4k pages  1 client    3       451 µs (435–467 µs)
                                    4 clients   3       540 µs (520–560 µs)
                                    8 clients   3       688 µs (663–713 µs)
                                    16 clients  3  1.02 ms (982 µs–1.05 ms)
                                    64 clients  3    3.64 ms (3.51–3.77 ms)

            Cost of the work
            variant                 load level  per hour           per million transactions  n
            MariaDB 11.8            1 client       1 USD     0.0532 USD (0.0519–0.0545 USD)  3
                                    4 clients      1 USD     0.0165 USD (0.0161–0.0169 USD)  3
                                    8 clients      1 USD     0.0104 USD (0.0102–0.0107 USD)  3
                                    16 clients     1 USD  0.00760 USD (0.00742–0.00778 USD)  3
                                    64 clients     1 USD  0.00680 USD (0.00664–0.00696 USD)  3
            MariaDB 12.3            1 client     1.4 USD     0.0693 USD (0.0676–0.0709 USD)  3
                                    4 clients    1.4 USD     0.0212 USD (0.0207–0.0217 USD)  3
                                    8 clients    1.4 USD     0.0134 USD (0.0131–0.0137 USD)  3
                                    16 clients   1.4 USD  0.00970 USD (0.00946–0.00993 USD)  3
                                    64 clients   1.4 USD  0.00878 USD (0.00857–0.00899 USD)  3
            MariaDB 12.3, 4k pages  1 client     1.8 USD        0.105 USD (0.103–0.108 USD)  3
                                    4 clients    1.8 USD     0.0326 USD (0.0318–0.0334 USD)  3
                                    8 clients    1.8 USD     0.0206 USD (0.0201–0.0211 USD)  3
                                    16 clients   1.8 USD     0.0150 USD (0.0147–0.0154 USD)  3
                                    64 clients   1.8 USD     0.0135 USD (0.0132–0.0138 USD)  3

            Caveat (simulated): The server was simulated: no database was measured.
              Use this report to see what a report looks like, and for nothing else.

            Caveat (load generator near its limit): The busiest worker of the load generator used 83 %
            of a CPU.
              Give the generator more CPUs, or put it on a host of its own; what is measured here may be
              the generator.

            Caveat (missing trials): 1 of 9 trials failed.
              `dyno run` on the same folder tries again what is missing.

            Trial 7 failed: the server ended while tables were populated
        "#]],
    );
}

#[test]
fn one_repetition_of_one_variant() {
    check(
        &fixture::single().0,
        60,
        expect![[r#"
            How fast is PostgreSQL 18 with 8 clients?
            PostgreSQL 18 commits 26.9k transactions per second with 8
            clients, measured once.
              One repetition has no confidence interval.
            workload oltp_read_write, 8,000,000 rows · PostgreSQL
            18.2-log · 1 variant · 1 trial

            n: repetitions. (low–high): 95 % CI.
            variant        load level  n  throughput (transactions/s)
            PostgreSQL 18  8 clients   1              27,000/s, no CI

            variant        load level  n  p95 response time
            PostgreSQL 18  8 clients   1      647 µs, no CI

            Caveat (simulated): The server was simulated: no database
            was measured.
              Use this report to see what a report looks like, and for
              nothing else.

            Caveat (too few repetitions): Each variant was measured
            once; chance cannot be separated from effect.
              Set `repetitions = 3` or more in the study.
        "#]],
    );
}

#[test]
fn large_effects_are_ratios_and_lopsided_bounds_are_both_told() {
    let mut findings = fixture::three_variants().0;
    fixture::make_large(&mut findings);
    let text = render(&findings, 92, false);
    assert!(text.contains("5,630/s (1,210–26,100)"), "{text}");
    assert!(text.contains("122× (26.5–557)  ✓ better"), "{text}");
}

#[test]
fn colour_only_adds_escape_sequences() {
    let findings = fixture::three_variants().0;
    let coloured = render(&findings, 92, true);
    assert!(coloured.contains("\u{1b}[32m✓ better\u{1b}[0m"));
    let mut plain = coloured;
    for code in ["0", "1", "2", "31", "32", "33"] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(plain, render(&findings, 92, false));
}

#[test]
fn no_text_from_outside_steers_the_terminal() {
    let mut findings = fixture::three_variants().0;
    findings.answer.headline = "\u{1b}]0;title\u{7}\r\nforged line".to_owned();
    findings.variants[1].name = "\u{1b}[2J\u{9b}31m".to_owned();
    let text = render(&findings, 92, false);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(!text.lines().any(|l| l == "forged line"));
}

/// A step that is judged by p95 among others that are judged by throughput, whose value is shown.
#[test]
fn an_effect_that_is_not_of_the_value_beside_it_names_its_metric() {
    let (mut findings, _) = fixture::three_variants();
    findings.steps[0].main_metric = metrics::RESPONSE_P95;
    let text = render(&findings, 200, false);
    let rows: Vec<&str> = text.lines().filter(|line| line.ends_with("better")).collect();
    let (first, others) = rows.split_first().expect("the second variant is better");
    assert!(first.contains(") on p95 "), "{text}");
    assert!(!others.is_empty() && others.iter().all(|row| !row.contains(" on p95")), "{text}");
    // If all are, the head says so.
    for step in &mut findings.steps {
        step.main_metric = metrics::RESPONSE_P95;
    }
    findings.comparisons.retain(|comparison| comparison.metric != metrics::THROUGHPUT);
    let text = render(&findings, 200, false);
    assert!(text.contains("effect on p95  ") && !text.contains(") on p95"), "{text}");
}
