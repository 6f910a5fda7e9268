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
          64 clients are not decided: the bounds are wider than the effect. About 9 repetitions
          would decide it.

        variant                 step           throughput      p95        effect  verdict
        MariaDB 11.8            1 client     5.24k/s ± 94   400 µs
                                4 clients   16.9k/s ± 300   500 µs
                                8 clients   26.7k/s ± 480   637 µs
                                16 clients  36.7k/s ± 660   906 µs
                                64 clients  41.0k/s ± 740  3.28 ms
        MariaDB 12.3            1 client    5.63k/s ± 100   371 µs  +7.6 % ± 2.4  ▲ better
                                4 clients   18.4k/s ± 330   460 µs  +8.8 % ± 3.1  ▲ better
                                8 clients   29.1k/s ± 520   575 µs  +9.0 % ± 3.3  ▲ better
                                16 clients  40.2k/s ± 720   825 µs  +9.8 % ± 2.0  ▲ better
                                64 clients  44.4k/s ± 800  3.01 ms  +8.4 % ± 8.4  ? inconclusive
        MariaDB 12.3, 4k pages  1 client     4.77k/s ± 85   451 µs  −9.0 % ± 2.2  ▼ worse
                                4 clients   15.4k/s ± 280   540 µs  −9.0 % ± 2.4  ▼ worse
                                8 clients   24.3k/s ± 440   688 µs  −9.0 % ± 2.5  ▼ worse
                                16 clients  33.4k/s ± 600  1.02 ms  −8.9 % ± 3.3  ▼ worse
                                64 clients  37.1k/s ± 670  3.64 ms  −9.4 % ± 8.3  ▼ worse

        Caveat, simulated: The server was simulated: no database was measured.
          Use this report to see what a report looks like, and for nothing else.

        Caveat, the load generator was the limit: The busiest worker of the load generator used 83 %
        of a CPU.
          Give the generator more CPUs, or put it on a host of its own; what is measured here may be
          the generator.

        Caveat, trials are missing: 1 of 9 trials failed.
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
          With one repetition there are no bounds.

        variant        step       throughput     p95
        PostgreSQL 18  8 clients     27.0k/s  647 µs

        Caveat, simulated: The server was simulated: no database was
        measured.
          Use this report to see what a report looks like, and for
          nothing else.

        Caveat, too few repetitions: Each variant was measured once;
        chance cannot be told from effect.
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
    assert!(line.contains("5.63k/s (1.2k … 26k)"), "{line}");
    assert!(line.contains("122 × (26.5 … 557)  ▲ better"), "{line}");
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
