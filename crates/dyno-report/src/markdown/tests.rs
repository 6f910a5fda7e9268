//! Markdown, word for word.

use expect_test::expect;

use super::*;
use crate::document::markdown::{escape, prose};
use crate::fixture;

#[test]
fn three_variants() {
    expect![[r#"
        ## Is MariaDB 12.3 faster than 11.8, and do 4k pages help?

        **MariaDB 12.3 is faster than MariaDB 11.8 by 8 to 10 %; 4k pages cost more than they gain.**

        - MariaDB 12.3 commits between 7.1 % and 11.2 % more transactions per second at 4 of 5 steps; p95 response time falls in step.
        - With 4k pages throughput is lower by about 9 % at every step that was decided.
        - 64 clients are undecided: the CI is wider than the effect. Roughly 9 repetitions would be needed to decide.

        workload oltp\_read\_write, 8,000,000 rows · MariaDB 11.8.2-log; MariaDB 12.3.2-log; MariaDB 12.3 · 3 variants × 3 repetitions × 5 load levels · 9 trials, 1 failed · smallest difference that matters: 3 %

        > **Caveat: simulated.** The server was simulated: no database was measured. Use this report to see what a report looks like, and for nothing else.
        >
        > **Caveat: load generator near its limit.** The busiest worker of the load generator used 83 % of a CPU. Give the generator more CPUs, or put it on a host of its own; what is measured here may be the generator.
        >
        > **Caveat: missing trials.** 1 of 9 trials failed. `dyno run` on the same folder tries again what is missing.

        Effects relative to the baseline with 95 % CIs; ✓ better, ✗ worse, ? undecided (the data do not decide).

        | variant | load level | throughput | CI | verdict | n | p95 response time | CI | verdict | n |
        |---|---|---:|---:|---:|---:|---:|---:|---:|---:|
        | MariaDB 12.3 | 1 client | +7.6 % | +5.1 to +10.0 % | ✓ better | 3 | −7.1 % | −9.6 to −4.7 % | ✓ better | 3 |
        | MariaDB 12.3 | 4 clients | +8.8 % | +5.7 to +12.0 % | ✓ better | 3 | −8.1 % | −11.2 to −5.0 % | ✓ better | 3 |
        | MariaDB 12.3 | 8 clients | +9.0 % | +5.7 to +12.3 % | ✓ better | 3 | −9.6 % | −12.9 to −6.3 % | ✓ better | 3 |
        | MariaDB 12.3 | 16 clients | +9.8 % | +7.8 to +11.8 % | ✓ better | 3 | −8.9 % | −10.9 to −6.9 % | ✓ better | 3 |
        | MariaDB 12.3 | 64 clients | +8.4 % | 0.0 to +16.8 % | ? undecided | 3 | −8.2 % | −16.6 to +0.2 % | ? undecided | 3 |
        | MariaDB 12.3, 4k pages | 1 client | −9.0 % | −11.2 to −6.8 % | ✗ worse | 3 | +12.7 % | +10.4 to +14.9 % | ✗ worse | 3 |
        | MariaDB 12.3, 4k pages | 4 clients | −9.0 % | −11.4 to −6.6 % | ✗ worse | 3 | +8.0 % | +5.6 to +10.4 % | ✗ worse | 3 |
        | MariaDB 12.3, 4k pages | 8 clients | −9.0 % | −11.5 to −6.6 % | ✗ worse | 3 | +8.1 % | +5.6 to +10.5 % | ✗ worse | 3 |
        | MariaDB 12.3, 4k pages | 16 clients | −8.9 % | −12.1 to −5.6 % | ✗ worse | 3 | +12.4 % | +9.1 to +15.7 % | ✗ worse | 3 |
        | MariaDB 12.3, 4k pages | 64 clients | −9.4 % | −17.7 to −1.1 % | ✗ worse | 3 | +10.9 % | +2.6 to +19.3 % | ✗ worse | 3 |

        Cost of the work, with 95 % CIs:

        | variant | load level | per hour | per million transactions | n |
        |---|---|---:|---:|---:|
        | MariaDB 11.8 | 1 client | 1 USD | 0.0532 USD (0.0519–0.0545 USD) | 3 |
        | MariaDB 11.8 | 4 clients | 1 USD | 0.0165 USD (0.0161–0.0169 USD) | 3 |
        | MariaDB 11.8 | 8 clients | 1 USD | 0.0104 USD (0.0102–0.0107 USD) | 3 |
        | MariaDB 11.8 | 16 clients | 1 USD | 0.00760 USD (0.00742–0.00778 USD) | 3 |
        | MariaDB 11.8 | 64 clients | 1 USD | 0.00680 USD (0.00664–0.00696 USD) | 3 |
        | MariaDB 12.3 | 1 client | 1.4 USD | 0.0693 USD (0.0676–0.0709 USD) | 3 |
        | MariaDB 12.3 | 4 clients | 1.4 USD | 0.0212 USD (0.0207–0.0217 USD) | 3 |
        | MariaDB 12.3 | 8 clients | 1.4 USD | 0.0134 USD (0.0131–0.0137 USD) | 3 |
        | MariaDB 12.3 | 16 clients | 1.4 USD | 0.00970 USD (0.00946–0.00993 USD) | 3 |
        | MariaDB 12.3 | 64 clients | 1.4 USD | 0.00878 USD (0.00857–0.00899 USD) | 3 |
        | MariaDB 12.3, 4k pages | 1 client | 1.8 USD | 0.105 USD (0.103–0.108 USD) | 3 |
        | MariaDB 12.3, 4k pages | 4 clients | 1.8 USD | 0.0326 USD (0.0318–0.0334 USD) | 3 |
        | MariaDB 12.3, 4k pages | 8 clients | 1.8 USD | 0.0206 USD (0.0201–0.0211 USD) | 3 |
        | MariaDB 12.3, 4k pages | 16 clients | 1.8 USD | 0.0150 USD (0.0147–0.0154 USD) | 3 |
        | MariaDB 12.3, 4k pages | 64 clients | 1.8 USD | 0.0135 USD (0.0132–0.0138 USD) | 3 |

        | throughput (transactions/s), with 95 % CIs | 1 client | 4 clients | 8 clients | 16 clients | 64 clients |
        |---|---:|---:|---:|---:|---:|
        | MariaDB 11.8 | 5,240/s (5,140–5,330) (n = 3) | 16,900/s (16,600–17,200) (n = 3) | 26,700/s (26,200–27,200) (n = 3) | 36,700/s (36,000–37,300) (n = 3) | 41,000/s (40,200–41,700) (n = 3) |
        | MariaDB 12.3 | 5,630/s (5,530–5,740) (n = 3) | 18,400/s (18,100–18,700) (n = 3) | 29,100/s (28,600–29,600) (n = 3) | 40,200/s (39,500–41,000) (n = 3) | 44,400/s (43,600–45,200) (n = 3) |
        | MariaDB 12.3, 4k pages | 4,770/s (4,680–4,850) (n = 3) | 15,400/s (15,100–15,700) (n = 3) | 24,300/s (23,900–24,700) (n = 3) | 33,400/s (32,800–34,000) (n = 3) | 37,100/s (36,500–37,800) (n = 3) |

        | p95 response time, with 95 % CIs | 1 client | 4 clients | 8 clients | 16 clients | 64 clients |
        |---|---:|---:|---:|---:|---:|
        | MariaDB 11.8 | 400 µs (386–415 µs) (n = 3) | 500 µs (482–518 µs) (n = 3) | 637 µs (614–659 µs) (n = 3) | 906 µs (873–939 µs) (n = 3) | 3.28 ms (3.17–3.40 ms) (n = 3) |
        | MariaDB 12.3 | 371 µs (358–385 µs) (n = 3) | 460 µs (443–476 µs) (n = 3) | 575 µs (555–596 µs) (n = 3) | 825 µs (795–856 µs) (n = 3) | 3.01 ms (2.91–3.12 ms) (n = 3) |
        | MariaDB 12.3, 4k pages | 451 µs (435–467 µs) (n = 3) | 540 µs (520–560 µs) (n = 3) | 688 µs (663–713 µs) (n = 3) | 1.02 ms (982 µs–1.05 ms) (n = 3) | 3.64 ms (3.51–3.77 ms) (n = 3) |

        - Trial 7 (MariaDB 12.3, 4k pages, repetition 3) failed: the server ended while tables were populated

        <details><summary>Every comparison in words</summary>

        - MariaDB 12.3 against MariaDB 11.8: better at 4 of 5 loads.

        </details>

        <details><summary>Settings that differ</summary>

        | setting | MariaDB 11.8 | MariaDB 12.3 | MariaDB 12.3, 4k pages |
        |---|---|---|---|
        | innodb\_page\_size | 16384 | 16384 | 4096 |
        | innodb\_snapshot\_isolation | not set | ON | ON |

        </details>

        <details><summary>Environment</summary>

        | fact | value |
        |---|---|
        | CPUs | 8 |
        | cpu.model | AMD EPYC 7763 64-Core Processor |
        | filesystem | ext4 (rw,noatime) |
        | kernel | Linux 6.12.48 |
        | MariaDB 11.8 | MariaDB 11.8.2-log, compiled from source; every commit is synced |
        | MariaDB 12.3 | MariaDB 12.3.2-log, compiled from source; every commit is synced |
        | MariaDB 12.3, 4k pages | MariaDB 12.3, 4k pages.2-log, compiled from source; every commit is synced |

        report.html has 2 more facts about the machine.

        </details>
    "#]].assert_eq(&render(&fixture::three_variants().0));
}

#[test]
fn large_effects_are_ratios_and_lopsided_bounds_are_both_told() {
    let mut findings = fixture::three_variants().0;
    fixture::make_large(&mut findings);
    let text = render(&findings);
    assert!(text.contains("| 122× | 26.5–557× | ✓ better | 3 |"), "{text}");
    assert!(text.contains("| 5,630/s (1,210–26,100) (n = 3) |"), "{text}");
}

#[test]
fn one_repetition_of_one_variant() {
    expect![[r#"
        ## How fast is PostgreSQL 18 with 8 clients?

        **PostgreSQL 18 commits 26.9k transactions per second with 8 clients, measured once.**

        - One repetition has no confidence interval.

        workload oltp\_read\_write, 8,000,000 rows · PostgreSQL 18.2-log · 1 variant · 1 trial

        > **Caveat: simulated.** The server was simulated: no database was measured. Use this report to see what a report looks like, and for nothing else.
        >
        > **Caveat: too few repetitions.** Each variant was measured once; chance cannot be separated from effect. Set `repetitions = 3` or more in the study.

        | throughput (transactions/s), with 95 % CIs | 8 clients |
        |---|---:|
        | PostgreSQL 18 | 27,000/s, no CI (n = 1) |

        | p95 response time, with 95 % CIs | 8 clients |
        |---|---:|
        | PostgreSQL 18 | 647 µs, no CI (n = 1) |

        <details><summary>Environment</summary>

        | fact | value |
        |---|---|
        | CPUs | 8 |
        | cpu.model | AMD EPYC 7763 64-Core Processor |
        | filesystem | ext4 (rw,noatime) |
        | kernel | Linux 6.12.48 |
        | all servers | PostgreSQL 18.2-log, compiled from source; every commit is synced |

        report.html has 2 more facts about the machine.

        </details>
    "#]].assert_eq(&render(&fixture::single().0));
}

#[test]
fn hostile_text_breaks_no_table_and_makes_no_markup() {
    let text = render(&fixture::hostile().0);
    assert!(!text.contains("<script") && !text.contains("<img"));
    let mut columns = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let n = line.replace("\\|", "").matches('|').count();
        assert_eq!(*columns.get_or_insert(n), n, "{line}");
    }
}

#[test]
fn signs_are_escaped() {
    let check = |text: &str, expected: &str| assert_eq!(escape(text), expected);
    check("a|b", "a\\|b");
    check("oltp_read_write", "oltp\\_read\\_write");
    check("<b>&", "&lt;b&gt;&amp;");
    check("one\ntwo", "one two");
    check("@someone", "@\u{200b}someone");
    check("see https://evil.example/ or WWW.evil.example", {
        "see https:\u{200b}//evil.example/ or WWW.\u{200b}evil.example"
    });
    check("at 10:30, version 8.0, xhttp", "at 10:30, version 8.0, xhttp");
    check("Fixes #12, a/b#3, gh-4", "Fixes \\#\u{200b}12, a/b\\#\u{200b}3, gh-\u{200b}4");
    check("# a, high-5, GH-x", "\\# a, high-\u{200b}5, GH-x");
    check("$x$", "<span>$</span>x<span>$</span>");
    check("a\u{202e}b\u{9b}c", "a b c");
}

#[test]
fn code_stays_code_and_hides_nothing() {
    let check = |text: &str, expected: &str| assert_eq!(prose(text), expected);
    check("use `generator_cpus` now", "use `generator_cpus` now");
    check("a_b `c|d` <e>", "a\\_b `c|d` &lt;e&gt;");
    check("one ` alone_", "one \\` alone\\_");
    check("`a` and `b`", "`a` and `b`");
    // By the rules of Markdown `[y](z)` is no code here.
    check("`` a ` b `` [y](z) `", "\\`\\` a \\` b \\`\\` \\[y\\](z) \\`");
}
