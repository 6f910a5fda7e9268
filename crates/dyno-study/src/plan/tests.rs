//! Plans of studies, and the rules that every plan keeps.

use std::collections::BTreeSet;

use dyno_units::{ByteCount, Nanoseconds, Seed, SettingValue};
use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::fixture::{FULL_STUDY, study};

/// A study of MariaDB databases `a`, `b`, `c` whose `[design]` has these lines.
fn with_design(lines: &str) -> Study {
    study(&format!(
        "title = 'x'\n[database.a]\nproduct = 'mariadb'\n[database.b]\nlike = 'a'\n\
         [database.c]\nlike = 'a'\n[workload.oltp_read_only]\n[workload.oltp_insert]\n\
         [design]\n{lines}\n"
    ))
}

/// Names of the variants, each with the name of its baseline.
fn comparisons(lines: &str) -> Vec<(String, Option<String>)> {
    let plan = plan(&with_design(lines), Seed(1));
    let name = |index: usize| plan.variants[index].name.clone();
    plan.variants.iter().map(|one| (one.name.clone(), one.baseline.map(name))).collect()
}

#[track_caller]
fn check_comparisons(lines: &str, expected: &[(&str, Option<&str>)]) {
    let found = comparisons(lines);
    let found: Vec<(&str, Option<&str>)> =
        found.iter().map(|(name, baseline)| (name.as_str(), baseline.as_deref())).collect();
    assert_eq!(found, expected);
}

#[test]
fn nothing_varied_is_one_variant() {
    check_comparisons("database = 'b'\nworkload = 'oltp_insert'", &[("b", None)]);
}

#[test]
fn first_level_of_every_factor_is_the_one_baseline() {
    check_comparisons(
        "vary = { database = ['b', 'a'], workload = ['oltp_insert', 'oltp_read_only'] }",
        &[
            ("b · oltp_insert", None),
            ("b · oltp_read_only", Some("b · oltp_insert")),
            ("a · oltp_insert", Some("b · oltp_insert")),
            ("a · oltp_read_only", Some("b · oltp_insert")),
        ],
    );
}

#[test]
fn named_factors_are_compared_within_the_levels_of_the_others() {
    check_comparisons(
        "workload = 'oltp_insert'\nbaseline = { 'setting.x' = '8GiB' }\n\
         vary = { setting = { x = ['4GiB', '8GiB'] }, database = ['a', 'b'] }",
        &[
            ("x=4GiB · a", Some("x=8GiB · a")),
            ("x=4GiB · b", Some("x=8GiB · b")),
            ("x=8GiB · a", None),
            ("x=8GiB · b", None),
        ],
    );
    check_comparisons(
        "workload = 'oltp_read_only'\nbaseline = { database = 'c' }\n\
         vary.database = ['a', 'b', 'c']",
        &[("a", Some("c")), ("b", Some("c")), ("c", None)],
    );
}

#[test]
fn each_product_may_have_a_baseline_of_its_own() {
    let text = "title = 'x'\n[database.maria]\nproduct = 'mariadb'\n[database.maria-tuned]\nlike = 'maria'\n\
                [database.pg]\nproduct = 'postgresql'\n[database.pg-tuned]\nlike = 'pg'\n\
                [workload.oltp_read_only]\n[design]\nworkload = 'oltp_read_only'\n\
                baseline = { database = 'own' }\n\
                vary = { database = ['maria', 'pg', 'pg-tuned', 'maria-tuned'] }\n";
    let plan = plan(&study(text), Seed(1));
    let baselines: Vec<Option<usize>> = plan.variants.iter().map(|one| one.baseline).collect();
    assert_eq!(baselines, [None, None, Some(1), Some(0)]);
}

#[test]
fn settings_and_options_of_the_levels_are_in_the_variant() {
    let plan = plan(&study(FULL_STUDY), Seed(1));
    assert_eq!(plan.variants.len(), 8);
    let last = &plan.variants[7];
    assert_eq!(last.name, "b · innodb_io_capacity=2000 · range_size=1000");
    let levels: Vec<(&str, &str)> =
        last.levels.iter().map(|one| (one.factor.as_str(), one.level.as_str())).collect();
    assert_eq!(
        levels,
        [("database", "b"), ("setting.innodb_io_capacity", "2000"), ("option.range_size", "1000")]
    );
    assert_eq!(last.database.settings["innodb_io_capacity"], SettingValue::Integer(2000));
    assert_eq!(last.database.settings["innodb_flush_log_at_trx_commit"], SettingValue::Integer(2));
    assert_eq!(last.workload.options["range_size"], "1000");
    assert_eq!(last.workload.options["tables"], "4");
}

#[test]
fn names_are_unique_even_when_values_imitate_the_separator() {
    let plan = plan(
        &with_design(
            "database = 'a'\nworkload = 'oltp_insert'\n\
             vary = { setting = { x = ['1', '1 · y=2'], y = ['2', '2 · y=2'] } }",
        ),
        Seed(1),
    );
    let names: Vec<&str> = plan.variants.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        ["x=1 · y=2", "x=1 · y=2 · y=2", "x=1 · y=2 · y=2 (2)", "x=1 · y=2 · y=2 · y=2"]
    );
}

#[test]
fn steps_are_named_by_what_varies() {
    let check = |lines: &str, expected: &[&str]| {
        let lines = format!("database = 'a'\nworkload = 'oltp_insert'\n{lines}");
        let plan = plan(&with_design(&lines), Seed(1));
        let names: Vec<&str> = plan.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, expected);
    };
    check("", &["1 client"]);
    check("vary = { clients = [8, 1] }", &["8 clients", "1 client"]);
    check("rate = 500", &["500/s"]);
    check("rate = 0.5\nclients = 8", &["0.5/s"]);
    check("vary = { clients = [8, 64], rate = [500] }", &["500/s, 8 clients", "500/s, 64 clients"]);
}

#[test]
fn sequential_order_is_as_written() {
    let plan = plan(
        &with_design(
            "workload = 'oltp_insert'\nvary.database = ['b', 'a']\norder = 'sequential'\n\
             repetitions = 2",
        ),
        Seed(1),
    );
    let order: Vec<(u32, usize, u32, u32)> = plan
        .trials
        .iter()
        .map(|trial| (trial.number, trial.variant, trial.repetition, trial.block))
        .collect();
    assert_eq!(order, [(1, 0, 1, 1), (2, 0, 2, 2), (3, 1, 1, 1), (4, 1, 2, 2)]);
}

#[test]
fn times_count_steps_and_rests() {
    let plan = plan(
        &with_design(
            "database = 'a'\nworkload = 'oltp_insert'\nwarm_up = '1s'\nduration = '10s'\n\
             rest = '3s'\nrepetitions = 2\nvary = { clients = [1, 2] }",
        ),
        Seed(1),
    );
    assert_eq!(plan.trial_time(), Nanoseconds::from_secs(2 * 11 + 3));
    assert_eq!(plan.load_time(), Nanoseconds::from_secs(2 * 25 + 3));
    assert_eq!(
        plan.total_time(Nanoseconds::from_secs(7)),
        plan.load_time() + Nanoseconds::from_secs(14)
    );
}

#[test]
fn table_for_people() {
    let study = with_design(
        "workload = 'oltp_insert'\nvary = { database = ['a', 'b'], clients = [1, 16] }\n\
         warm_up = '5s'\nduration = '30s'\nrepetitions = 2\nseed = 42\nbudget = '4min'",
    );
    let plan = plan(&study, Seed(1));
    let size = VariantSize { rows: 40_000, bytes: ByteCount(10 << 20) };
    let context = TableContext {
        budget: study.design.budget,
        sizes: vec![Some(size), None],
        ..TableContext::default()
    };
    expect![[r#"
        x

        variant  compared with  rows   data
        a        (baseline)     40000  10 MiB
        b        a              ?      ?

        load level of each trial  warm-up  measured
        1 client                  5 s      30 s
        16 clients                5 s      30 s

        trial  block  variant  repetition  load levels  elapsed
        1      1      b        1 of 2      2            1 min 12 s
        2      1      a        1 of 2      2            2 min 26 s
        3      2      a        2 of 2      2            3 min 40 s
        4      2      b        2 of 2      2            4 min 54 s

        trials  4 (2 variants, 2 repetitions of each)
        time    4 min 54 s (warm-up, measured time and rest; deploying and populating take additional time)
        budget  4 min: exceeded by 54 s; trials that would exceed it are not started
        disk    unknown, because the workload's own steps fill its tables
        seed    42
    "#]]
    .assert_eq(&render_table(&plan, &context));
    let context = TableContext { prepare: Some(Nanoseconds::from_secs(10)), ..context };
    let text = render_table(&plan, &context);
    assert!(text.contains("5 min 34 s (with 10 s to deploy in each trial)"), "{text}");
    assert!(text.contains("4 min: exceeded by 1 min 34 s"), "{text}");
    let second = Nanoseconds::from_secs;
    let populate = vec![second(20), second(0), second(0), second(0)];
    let text = render_table(&plan, &TableContext { populate, ..context });
    let expected = "5 min 54 s (with 10 s to deploy in each trial, and 20 s to populate in all)";
    assert!(text.contains(expected), "{text}");
    let text = render_table(&plan, &TableContext::default());
    assert!(text.contains("budget  none given"), "{text}");
    assert!(!text.contains("disk"), "{text}");
}

#[test]
fn a_guess_stands_where_quotas_end_a_step_and_the_past_is_better() {
    let source = "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[workload.staged]\n[design]\n\
                  clients = 4\nrest = '0s'\nrepetitions = 1\n";
    let plan = plan(&study(source), Seed(1));
    let guess = plan.trial_time_likely(&std::collections::BTreeMap::new());
    let (least, most) = (plan.trial_time_least(), plan.trial_time());
    assert!(least < guess && guess < most, "{least} {guess} {most}");
    let by_quota = plan.steps.iter().find(|step| step.is_open_ended()).expect("one has a quota");
    let measured = [(by_quota.name.clone(), Nanoseconds::from_secs(7))].into();
    let known = plan.trial_time_likely(&measured);
    assert_ne!(known, guess);
    let text = render_table(&plan, &TableContext { measured, ..TableContext::default() });
    assert!(text.contains("by earlier runs of this workload on this machine"), "{text}");
    assert!(text.contains(&format!("about {known} (")), "{text}");
}

#[test]
fn a_search_is_one_step_of_many_probes() {
    let study = with_design(
        "database = 'a'\nworkload = 'oltp_insert'\nfind_rate = 'p99 <= 20ms'\nwarm_up = '1s'\n\
         duration = '4s'\nrest = '2s'\nrepetitions = 1",
    );
    let plan = plan(&study, Seed(1));
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(plan.steps[0].name, "highest rate with p99 ≤ 20 ms");
    assert_eq!(plan.trial_time(), Nanoseconds::from_secs(13 * 5 + 12 * 2));
    expect![[r#"
        x

        variant  compared with
        a        (baseline)

        load level of each trial       warm-up         measured
        highest rate with p99 ≤ 20 ms  about 13 × 1 s  about 13 × 4 s

        trial  block  variant  repetition  load levels  elapsed
        1      1      a        1 of 1      1            1 min 29 s

        trials  1 (1 variant, 1 repetition of each)
        time    1 min 29 s (warm-up, measured time and rest; deploying and populating take additional time)
                a search takes as many probes as it needs: its time is an estimate
        budget  none given
        seed    1
    "#]]
    .assert_eq(&render_table(&plan, &TableContext::default()));
}

#[test]
fn a_step_until_it_is_steady_has_a_shortest_and_a_longest_time() {
    let study = with_design(
        "database = 'a'\nworkload = 'oltp_insert'\nwarm_up = '1s'\nduration = '20s'\n\
         until_steady = '5min'\nrest = '2s'\nrepetitions = 2\nvary = { clients = [1, 4] }",
    );
    let plan = plan(&study, Seed(1));
    let seconds = Nanoseconds::from_secs;
    assert_eq!(plan.steps[0].until_steady, Some(seconds(20)));
    assert_eq!((plan.trial_time_least(), plan.trial_time()), (seconds(44), seconds(604)));
    assert_eq!(plan.time_bounds(seconds(3)), (seconds(96), seconds(1216)));
    let text = render_table(&plan, &TableContext::default());
    assert!(
        text.contains("4 clients                 1 s      until steady for 20 s, at most 5 min"),
        "{text}"
    );
}

/// Designs of several factors, orders and sizes.
fn designs() -> impl Strategy<Value = String> {
    let factors = (0..4_usize, 0..4_usize, 1..4_usize, 1..6_u32, any::<bool>());
    factors.prop_map(|(n_databases, n_levels, n_clients, repetitions, is_interleaved)| {
        let quoted = |n: usize| ["'a'", "'b'", "'c'"][..n].join(", ");
        let numbers = |n: usize| ["1", "2", "3"][..n].join(", ");
        let mut text = format!("workload = 'oltp_insert'\nrepetitions = {repetitions}\n");
        if n_databases == 0 {
            text += "database = 'a'\n";
        } else {
            text += &format!("vary.database = [{}]\n", quoted(n_databases));
        }
        if n_levels > 0 {
            text += &format!("vary.setting.x = [{}]\n", numbers(n_levels));
            text += "baseline = { setting = { x = 1 } }\n";
        }
        text += &format!("vary.clients = [{}]\n", numbers(n_clients));
        text + if is_interleaved { "order = 'interleaved'" } else { "order = 'sequential'" }
    })
}

proptest! {
    #[test]
    fn every_block_has_every_variant_once(lines in designs(), seed: u64) {
        let study = with_design(&lines);
        let plan = plan(&study, Seed(seed));
        let n_variants = plan.variants.len();
        prop_assert_eq!(plan.trials.len(), n_variants * study.design.repetitions as usize);
        for block in 1..=study.design.repetitions {
            let trials = plan.trials.iter().filter(|trial| trial.block == block);
            let variants: BTreeSet<usize> = trials.clone().map(|trial| trial.variant).collect();
            prop_assert_eq!(trials.count(), n_variants);
            prop_assert_eq!(variants.len(), n_variants);
        }
        let pairs: BTreeSet<(usize, u32)> =
            plan.trials.iter().map(|trial| (trial.variant, trial.repetition)).collect();
        prop_assert_eq!(pairs.len(), plan.trials.len());
        prop_assert!(plan.trials.iter().enumerate().all(|(at, one)| one.number == at as u32 + 1));
    }

    #[test]
    fn the_seed_decides_the_order_and_only_it(lines in designs(), seed: u64) {
        let study = with_design(&lines);
        let first = plan(&study, Seed(seed));
        prop_assert_eq!(&first, &plan(&study, Seed(seed)));
        let other = plan(&study, Seed(seed.wrapping_add(1)));
        prop_assert_eq!(&first.variants, &other.variants);
        prop_assert_eq!(first.load_time(), other.load_time());
    }

    #[test]
    fn baselines_are_variants_without_a_baseline(lines in designs()) {
        let plan = plan(&with_design(&lines), Seed(0));
        let names: BTreeSet<&str> = plan.variants.iter().map(|one| one.name.as_str()).collect();
        prop_assert_eq!(names.len(), plan.variants.len());
        for variant in &plan.variants {
            if let Some(baseline) = variant.baseline {
                prop_assert_eq!(plan.variants[baseline].baseline, None);
                prop_assert!(plan.variants[baseline].name != variant.name);
            }
        }
        prop_assert!(plan.variants.iter().any(|variant| variant.baseline.is_none()));
    }
}

#[test]
fn a_steady_drift_weighs_on_all_variants_alike_in_two_blocks() {
    let order = |repetitions: u32, order: BlockOrder| -> Vec<Vec<usize>> {
        let lines = format!(
            "workload = 'oltp_insert'\nrepetitions = {repetitions}\nvary.database = ['a', 'b', 'c']"
        );
        let plan = plan_in(&with_design(&lines), Seed(3), order);
        plan.trials.chunks(3).map(|block| block.iter().map(|one| one.variant).collect()).collect()
    };
    // What a drift adds to a trial grows with its place in its block.
    let drifts = |blocks: &[Vec<usize>]| -> Vec<usize> {
        let place = |block: &Vec<usize>, variant| block.iter().position(|one| *one == variant);
        (0..3).map(|v| blocks.iter().filter_map(|block| place(block, v)).sum()).collect()
    };
    for repetitions in [2, 6] {
        let blocks = order(repetitions, BlockOrder::Mirrored);
        let alike = repetitions as usize;
        assert_eq!(drifts(&blocks), [alike; 3], "{blocks:?}");
    }
    // An odd last block is drawn on its own; what came before it does not change.
    let (odd, even) = (order(5, BlockOrder::Mirrored), order(6, BlockOrder::Mirrored));
    assert_eq!(odd, even[..5]);
    assert_eq!(drifts(&odd[..4]), [4; 3]);
    // Runs of before are gone on with as they were planned: each first block is the same.
    let free = order(6, BlockOrder::Free);
    assert_eq!(free[0], even[0]);
    assert_ne!(free, even);
}

#[test]
fn blocks_are_in_different_orders_and_a_fixed_seed_wins() {
    let lines = "workload = 'oltp_insert'\nrepetitions = 8\nvary.database = ['a', 'b', 'c']";
    let orders = |lines: &str, seed: u64| -> Vec<Vec<usize>> {
        let plan = plan(&with_design(lines), Seed(seed));
        plan.trials.chunks(3).map(|block| block.iter().map(|one| one.variant).collect()).collect()
    };
    let drawn: BTreeSet<Vec<usize>> = orders(lines, 1).into_iter().step_by(2).collect();
    assert!(drawn.len() > 1, "all blocks have the order {drawn:?}");
    assert_ne!(orders(lines, 1), orders(lines, 2));
    let fixed = format!("{lines}\nseed = 7");
    assert_eq!(orders(&fixed, 1), orders(&fixed, 2));
    assert_eq!(orders(&fixed, 1), orders(lines, 7));
}

#[test]
fn hosts_that_are_requested_for_too_short_a_time_are_named() {
    let study = with_design(
        "database = 'a'\nworkload = 'oltp_insert'\nclients = 1\nwarm_up = '5s'\nduration = '30s'\nrepetitions = 4\n\
         rest = '0s'",
    );
    let plan = plan(&study, Seed(1));
    let minutes = |n: u64| Nanoseconds::from_secs(60 * n);
    let hosts = vec![("short".to_owned(), minutes(1)), ("long".to_owned(), minutes(60))];
    let context = TableContext { hosts, ..TableContext::default() };
    let expected = "the trials take about 2 min 20 s one after the other, and the hosts of `short` are \
                    requested for 1 min (`time`): the trial that runs when they end fails";
    assert_eq!(over_host_time(&plan, &context), [expected]);
    let table = render_table(&plan, &context);
    assert!(table.contains(&format!("\nhosts   {expected}\n")), "{table}");
}

/// The lines of the plan's table that begin with this word.
fn line_of(lines: &str, budget_s: u64, word: &str) -> String {
    let source = format!(
        "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[workload.staged]\n[design]\n\
         database = 'a'\nworkload = 'staged'\nclients = 4\nrest = '0s'\n{lines}\n"
    );
    let plan = plan(&study(&source), Seed(1));
    let budget = Some(Nanoseconds::from_secs(budget_s));
    let table = render_table(&plan, &TableContext { budget, ..TableContext::default() });
    let line = table.lines().find(|line| line.starts_with(word));
    line.unwrap_or_else(|| panic!("{table}")).to_owned()
}

#[test]
fn steps_that_end_by_quota_make_a_span_of_times_and_not_one() {
    // A step of at most 2 h, a wait of at most 10 min, and 30 s that are known; three times.
    let check = |budget_s: u64, expected: &str| {
        assert_eq!(line_of("repetitions = 3", budget_s, "budget"), format!("budget  {expected}"));
    };
    let time = line_of("repetitions = 3", 0, "time");
    assert!(time.starts_with("time    about "), "{time}");
    assert!(!time.contains(" to 6 h"), "{time}");
    check(8 * 3600, "8 h: fits, with 1 h 28 min to spare");
    check(
        3600,
        "1 h: may be exceeded, by up to 5 h 31 min; trials that would exceed it are not started",
    );
    check(60, "1 min: exceeded by 30 s to 6 h 30 min; trials that would exceed it are not started");
}

#[test]
fn trials_that_may_be_left_out_are_not_in_the_shortest_time() {
    let lines = "stop = 'settled'\nrepetitions_min = 3\nrepetitions = 10";
    let study = with_design(&format!(
        "workload = 'oltp_insert'\nvary = {{ database = ['a', 'b'] }}\nwarm_up = '0s'\n\
         duration = '10s'\nrest = '2s'\n{lines}"
    ));
    let plan = plan(&study, Seed(1));
    let second = Nanoseconds::from_secs;
    assert_eq!(
        plan.time_bounds(Nanoseconds::ZERO),
        (second(6 * 10 + 5 * 2), second(20 * 10 + 19 * 2))
    );
}
