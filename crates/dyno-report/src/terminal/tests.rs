//! Terminal output, word for word.

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
              64 clients are inconclusive: the CI is wider than the effect. Roughly 9 repetitions would
              be needed to decide.

            n: repetitions; ± or (low–high): 95 % CI
            variant                 step        n      throughput        effect  verdict
            MariaDB 11.8            1 client    3    5,240/s ± 94
                                    4 clients   3  16,900/s ± 300
                                    8 clients   3  26,700/s ± 480
                                    16 clients  3  36,700/s ± 660
                                    64 clients  3  41,000/s ± 740
            MariaDB 12.3            1 client    3   5,630/s ± 100  +7.6 % ± 2.4  ▲ better
                                    4 clients   3  18,400/s ± 330  +8.8 % ± 3.1  ▲ better
                                    8 clients   3  29,100/s ± 520  +9.0 % ± 3.3  ▲ better
                                    16 clients  3  40,200/s ± 720  +9.8 % ± 2.0  ▲ better
                                    64 clients  3  44,400/s ± 800  +8.4 % ± 8.4  ? inconclusive
            MariaDB 12.3, 4k pages  1 client    3    4,770/s ± 85  −9.0 % ± 2.2  ▼ worse
                                    4 clients   3  15,400/s ± 280  −9.0 % ± 2.4  ▼ worse
                                    8 clients   3  24,300/s ± 440  −9.0 % ± 2.5  ▼ worse
                                    16 clients  3  33,400/s ± 600  −8.9 % ± 3.3  ▼ worse
                                    64 clients  3  37,100/s ± 670  −9.4 % ± 8.3  ▼ worse

            variant                 step        n  p95 response time
            MariaDB 11.8            1 client    3     400 µs ± 15 µs
                                    4 clients   3     500 µs ± 18 µs
                                    8 clients   3     637 µs ± 23 µs
                                    16 clients  3     906 µs ± 33 µs
                                    64 clients  3   3.28 ms ± 120 µs
            MariaDB 12.3            1 client    3     371 µs ± 13 µs
                                    4 clients   3     460 µs ± 16 µs
                                    8 clients   3     575 µs ± 21 µs
                                    16 clients  3     825 µs ± 30 µs
                                    64 clients  3   3.01 ms ± 110 µs
            MariaDB 12.3, 4k pages  1 client    3     451 µs ± 16 µs
                                    4 clients   3     540 µs ± 20 µs
                                    8 clients   3     688 µs ± 25 µs
                                    16 clients  3    1.02 ms ± 36 µs
                                    64 clients  3   3.64 ms ± 130 µs

            Cost of the work
            variant                 step        an hour  a million transactions  n
            MariaDB 11.8            1 client      1 USD     0.0532 USD ± 0.0013  3
                                    4 clients     1 USD    0.0165 USD ± 0.00039  3
                                    8 clients     1 USD    0.0104 USD ± 0.00025  3
                                    16 clients    1 USD   0.00760 USD ± 0.00018  3
                                    64 clients    1 USD   0.00680 USD ± 0.00016  3
            MariaDB 12.3            1 client    1.4 USD     0.0693 USD ± 0.0017  3
                                    4 clients   1.4 USD    0.0212 USD ± 0.00051  3
                                    8 clients   1.4 USD    0.0134 USD ± 0.00032  3
                                    16 clients  1.4 USD   0.00970 USD ± 0.00023  3
                                    64 clients  1.4 USD   0.00878 USD ± 0.00021  3
            MariaDB 12.3, 4k pages  1 client    1.8 USD      0.105 USD ± 0.0025  3
                                    4 clients   1.8 USD    0.0326 USD ± 0.00078  3
                                    8 clients   1.8 USD    0.0206 USD ± 0.00049  3
                                    16 clients  1.8 USD    0.0150 USD ± 0.00036  3
                                    64 clients  1.8 USD    0.0135 USD ± 0.00032  3

            Caveat (simulated): The server was simulated: no database was measured.
              Use this report to see what a report looks like, and for nothing else.

            Caveat (load generator possibly the bottleneck): The busiest worker of the load generator
            used 83 % of a CPU.
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

            n: repetitions; ± or (low–high): 95 % CI
            variant        step       n       throughput            p95
            PostgreSQL 18  8 clients  1  27,000/s, no CI  647 µs, no CI

            Caveat (simulated): The server was simulated: no database
            was measured.
              Use this report to see what a report looks like, and for
              nothing else.

            Caveat (too few repetitions): Each variant was measured
            once; chance cannot be told from effect.
              Set `repetitions = 3` or more in the study.
        "#]],
    );
}

#[test]
fn large_effects_are_ratios_and_lopsided_bounds_are_both_told() {
    let mut findings = fixture::three_variants().0;
    fixture::make_large(&mut findings);
    let text = render(&findings, 92, false);
    let line = text.lines().find(|line| line.starts_with("MariaDB 12.3  ")).unwrap();
    assert!(line.contains("5,630/s (1,210–26,100)"), "{line}");
    assert!(line.contains("122× (26.5–557)  ▲ better"), "{line}");
}

#[test]
fn colour_only_adds_escape_sequences() {
    let findings = fixture::three_variants().0;
    let coloured = render(&findings, 92, true);
    assert!(coloured.contains("\u{1b}[32m▲ better\u{1b}[0m"));
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

#[test]
fn texts_are_wrapped_at_words_and_long_words_are_broken() {
    let check = |text: &str, width: usize, expected: &[&str]| {
        assert_eq!(wrap(text, width), expected);
    };
    check("one two three", 7, &["one two", "three"]);
    check("abcdefghij k", 4, &["abcd", "efgh", "ij k"]);
    check("", 10, &[]);
}
