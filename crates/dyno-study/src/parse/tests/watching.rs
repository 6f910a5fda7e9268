//! Prices, probes, the run-off and sequential stopping.

use dyno_units::{Nanoseconds, Seed};
use expect_test::{Expect, expect};

use crate::diagnostic::render;
use crate::fixture::{FULL_STUDY, study, vocabulary};
use crate::plan::{TableContext, render_table};
use crate::{Price, ProbeSource, parse, plan};

#[track_caller]
fn refused(source: &str, expected: Expect) {
    let diagnostics = parse(source, &vocabulary()).expect_err("this study has errors");
    expected.assert_eq(&render("study.toml", source, &diagnostics));
}

/// A study with these lines in its design, and these tables.
fn with(design: &str, tables: &str) -> String {
    format!(
        "title = 'x'\n[database.a]\nproduct = 'mariadb'\n[database.b]\nlike = 'a'\n\
         [workload.tpcb]\n[design]\nvary = {{ database = ['a', 'b'] }}\n{design}\n{tables}\n"
    )
}

#[test]
fn all_of_them_are_read() {
    let study = study(FULL_STUDY);
    let price = |amount: f64| Some(Price { amount, currency: "USD".to_owned() });
    let prices: Vec<_> = study.databases.iter().map(|one| one.price_per_hour.clone()).collect();
    assert_eq!(prices, [price(0.1), price(0.1), price(0.192)]);
    assert_eq!(study.design.run_off, Some(Nanoseconds::from_secs(1800)));
    assert_eq!(study.design.repetitions_min, None);
    let [locks, load] = &study.probes[..] else { panic!("{:?}", study.probes) };
    assert_eq!(locks.source, ProbeSource::Sql("SELECT count(*) FROM locks".to_owned()));
    assert_eq!(
        (locks.every, &locks.databases[..]),
        (Nanoseconds::from_secs(5), &["a", "b"].map(str::to_owned)[..])
    );
    assert_eq!(
        load.source,
        ProbeSource::Command(vec!["cat".to_owned(), "/proc/loadavg".to_owned()])
    );
    assert_eq!((load.every, load.databases.len()), (Nanoseconds::SECOND, 0));
}

#[test]
fn the_plan_of_a_run_that_may_stop_early() {
    let source = with("stop = 'settled'\nrepetitions = 20\nrun_off = '10m'", "");
    let plan = plan(&study(&source), Seed(1));
    assert_eq!((plan.repetitions_min, plan.trials.len()), (Some(3), 40));
    let table = render_table(&plan, &TableContext::default());
    let totals = table.split("\n\n").last().expect("there are totals");
    expect![[r#"
        trials  at most 40 (2 variants, 3 to 20 repetitions of each, until its verdicts are settled)
        run-off after each trial's last measurement, until the engine has caught up, at most 10 min
        time    about 1 h 4 min (warm-up, measured time and rest; deploying and populating take additional time)
                a guess: 100 transactions/s per client until quotas are met, and waits of a tenth of their limit; limits end it after 7 h 4 min at the latest
        budget  none given
        seed    1
    "#]].assert_eq(totals);
}

#[test]
fn nothing_to_settle() {
    refused(
        &with("stop = 'settled'\nrepetitions = 3", ""),
        expect![[r#"
        error: nothing can be settled in this design
         --> study.toml:9:1
          |
        9 | stop = 'settled'
          | ^^^^ all 3 repetitions are done before the first interim analysis
          |
          = help: set more than 3 repetitions, which are the maximum for each variant
    "#]],
    );
    refused(
        &with("stop = 'settled'\nrepetitions = 9\nrepetitions_min = 9", ""),
        expect![[r#"
        error: nothing can be settled in this design
         --> study.toml:9:1
          |
        9 | stop = 'settled'
          | ^^^^ all 9 repetitions are done before the first interim analysis
          |
          = help: set more than 9 repetitions, which are the maximum for each variant
    "#]],
    );
    refused(
        &with("stop = 'settled'\nrepetitions = 9\norder = 'sequential'", ""),
        expect![[r#"
        error: nothing can be settled in this design
         --> study.toml:9:1
          |
        9 | stop = 'settled'
          | ^^^^ variants are compared at the end of each block (one trial of each)
          |
          = help: use order = "interleaved"
    "#]],
    );
    refused(
        &with("repetitions_min = 2", ""),
        expect![[r#"
        error: `repetitions_min` works only with stop = "settled"
         --> study.toml:9:1
          |
        9 | repetitions_min = 2
          | ^^^^^^^^^^^^^^^ every variant gets all repetitions
          |
          = help: add stop = "settled", or leave this key out
    "#]],
    );
    refused(
        &with("stop = 'settled'\nrepetitions = 9", "").replace("['a', 'b']", "['a']"),
        expect![[r#"
            error: nothing can be settled in this design
             --> study.toml:9:1
              |
            9 | stop = 'settled'
              | ^^^^ there is only one variant
              |
              = help: vary something, or leave this key out
        "#]],
    );
}

#[test]
fn wrong_prices() {
    refused(
        &with("", "[machine]\nprice_per_hour = '12'\nprice = 3"),
        expect![[r#"
            error: `12` is not an amount with its currency, such as "0.192 USD"
              --> study.toml:11:18
               |
            11 | price_per_hour = '12'
               |                  ^^^^ not accepted for `price_per_hour`

            error: unknown key `price` in `[machine]`
              --> study.toml:12:1
               |
            12 | price = 3
               | ^^^^^ unknown key
               |
               = help: only `price_per_hour` is accepted here
        "#]],
    );
    refused(
        &with("", "[machine]\nprice_per_hour = '-1 USD'"),
        expect![[r#"
            error: `-1 USD` is not an amount with its currency, such as "0.192 USD"
              --> study.toml:11:18
               |
            11 | price_per_hour = '-1 USD'
               |                  ^^^^^^^^ not accepted for `price_per_hour`
        "#]],
    );
    refused(
        &with("", "[machine]\nprice_per_hour = '1e300 USD'"),
        expect![[r#"
            error: `1e300 USD` is more than 1000000000000
              --> study.toml:11:18
               |
            11 | price_per_hour = '1e300 USD'
               |                  ^^^^^^^^^^^ not accepted for `price_per_hour`
        "#]],
    );
    refused(
        &with("", "[machine]\nprice_per_hour = 0.2"),
        expect![[r#"
            error: expected an amount with its currency, such as "0.192 USD", found a number with a decimal point
              --> study.toml:11:18
               |
            11 | price_per_hour = 0.2
               |                  ^^^ wrong type for `price_per_hour`
        "#]],
    );
    refused(
        &with("", "[machine]\nprice_per_hour = '1 USD'")
            .replace("like = 'a'", "like = 'a'\nprice_per_hour = '1 EUR'"),
        expect![[r#"
            error: prices in different currencies cannot be compared
             --> study.toml:6:18
              |
            6 | price_per_hour = '1 EUR'
              |                  ^^^^^^^ others are in USD
              |
              = help: convert them to one currency, at one exchange rate
        "#]],
    );
}

#[test]
fn wrong_probes() {
    refused(
        &with("", "[probe.p]\nevery = '100ms'"),
        expect![[r#"
            error: `[probe.p]` reads nothing
              --> study.toml:10:8
               |
            10 | [probe.p]
               |        ^ neither `command` nor `sql`
               |
               = help: add command = ["…"] or sql = "…"

            error: `every` must be at least 1 s, the length of an interval
              --> study.toml:11:9
               |
            11 | every = '100ms'
               |         ^^^^^^^ not accepted for `every`
        "#]],
    );
    refused(
        &with("", "[probe.p]\nsql = 'x'\ncommand = ['y']\ndatabases = ['c']"),
        expect![[r#"
            error: `command` and `sql` cannot be combined
              --> study.toml:12:1
               |
            12 | command = ['y']
               | ^^^^^^^ these two are mutually exclusive
               |
               = help: make them two probes

            error: there is no database `c`
              --> study.toml:13:14
               |
            13 | databases = ['c']
               |              ^^^ not in this study
               |
               = help: choose one of `a`, `b`
        "#]],
    );
    refused(
        &with("", "[probe.p]\ncommand = 'uptime -p'\n[probe.q]\ncommand = []"),
        expect![[r#"
            error: expected a list of strings such as ["cat", "/proc/loadavg"], found a string
              --> study.toml:11:11
               |
            11 | command = 'uptime -p'
               |           ^^^^^^^^^^^ wrong type for `command`

            error: the command names no program
              --> study.toml:13:11
               |
            13 | command = []
               |           ^^ not accepted for `command`
        "#]],
    );
}
