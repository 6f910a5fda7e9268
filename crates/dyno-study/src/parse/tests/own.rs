//! Workloads that define their own steps.

use dyno_units::{Nanoseconds, Seed};
use expect_test::{Expect, expect};

use crate::diagnostic::render;
use crate::fixture::{study, vocabulary};
use crate::plan::{TableContext, render_table};
use crate::{LoadLevel, parse, plan};

/// A study of the workload that has steps of its own, its table and its design with these lines.
fn staged(workload: &str, design: &str) -> String {
    format!(
        "title = 'x'\n[database.a]\nproduct = 'sqlite'\n[database.b]\nproduct = 'mariadb'\n\
         [workload.staged]\n{workload}\n[workload.tpcb]\n[workload.loads]\nworkload = 'staged'\n\
         reads = false\n[design]\n{design}\n"
    )
}

#[track_caller]
fn refused(source: &str, expected: Expect) {
    let diagnostics = parse(source, &vocabulary()).expect_err("this study has errors");
    expected.assert_eq(&render("study.toml", source, &diagnostics));
}

const CHOSEN: &str = "database = 'a'\nworkload = 'staged'\n";

#[test]
fn its_steps_take_the_place_of_load_levels() {
    let study = study(&staged("", &format!("{CHOSEN}clients = 4\nduration = '1min'")));
    let plan = plan(&study, Seed(1));
    let names: Vec<&str> = plan.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["load", "read"]);
    let clients: Vec<usize> = plan.steps.iter().map(|step| step.load.clients()).collect();
    assert_eq!(clients, [4, 5]);
    let LoadLevel::Own(own) = &plan.steps[0].load else { panic!("{:?}", plan.steps[0]) };
    assert_eq!((own.request.clients, own.step.roles[0].quota), (4, Some(250)));
    assert!(plan.steps.iter().all(|step| step.warm_up == Nanoseconds::ZERO));
}

#[test]
fn a_warm_up_that_is_asked_for_is_that_of_the_steps_that_end_by_time() {
    let study = study(&staged("", &format!("{CHOSEN}warm_up = '5s'")));
    let steps = plan(&study, Seed(1)).steps;
    let times: Vec<Nanoseconds> = steps.iter().map(|step| step.warm_up).collect();
    assert_eq!(times, [Nanoseconds::ZERO, Nanoseconds::from_secs(5)]);
}

#[test]
fn the_plan_says_what_is_not_known_beforehand() {
    let source = staged("", &format!("{CHOSEN}clients = 4\nrepetitions = 2\nbudget = '3h'"));
    let table = render_table(&plan(&study(&source), Seed(1)), &TableContext::default());
    expect![[r#"
        x

        variant  compared with
        a        (baseline)

        step of each trial  warm-up  measured                 wait for backlog  clients
        load                0 s      until done, at most 2 h  none              4 × inserter until 250 are committed
        read                0 s      30 s                     at most 10 min    4 × query, 1 × deleter at 100/s

        trial  block  variant  repetition  steps  elapsed
        1      1      a        1 of 2      2      1 min 35 s
        2      2      a        2 of 2      2      3 min 12 s

        trials  2 (1 variant, 2 repetitions of each)
        time    about 3 min 12 s (warm-up, measured time and rest; deploying and populating take additional time)
                a guess: 100 transactions/s per client until quotas are met, and waits of a tenth of their limit; limits end it after 4 h 21 min at the latest
        budget  none given
        seed    1
    "#]]
    .assert_eq(&table);
}

#[test]
fn variants_may_differ_in_what_their_steps_do() {
    let lines = format!("{CHOSEN}vary = {{ option = {{ rows = [1000, 8000] }} }}\nclients = 8");
    let steps = plan(&study(&staged("", &lines)), Seed(1)).steps;
    assert_eq!(steps.len(), 2);
}

#[test]
fn levels_rates_and_searches_are_refused() {
    refused(
        &staged("", "database = 'a'\nworkload = 'staged'\nvary = { clients = [1, 2], rate = [5] }"),
        expect![[r#"
            error: `clients` cannot be combined with workload `staged`
              --> study.toml:15:10
               |
            15 | vary = { clients = [1, 2], rate = [5] }
               |          ^^^^^^^ it defines its own steps: `load`, `read`
               |
               = help: give one number of clients: clients = 4

            error: `rate` cannot be combined with workload `staged`
              --> study.toml:15:28
               |
            15 | vary = { clients = [1, 2], rate = [5] }
               |                            ^^^^ it defines its own steps: `load`, `read`
               |
               = help: give one number of clients: clients = 4
        "#]],
    );
    refused(
        &staged("", &format!("{CHOSEN}rate = 5")),
        expect![[r#"
        error: `rate` cannot be combined with workload `staged`
          --> study.toml:15:1
           |
        15 | rate = 5
           | ^^^^ it defines its own steps: `load`, `read`
           |
           = help: give one number of clients: clients = 4
    "#]],
    );
    refused(
        &staged("", &format!("{CHOSEN}find_rate = 'p99 <= 20ms'")),
        expect![[r#"
        error: `find_rate` cannot be combined with workload `staged`
          --> study.toml:15:1
           |
        15 | find_rate = 'p99 <= 20ms'
           | ^^^^^^^^^ it defines its own steps: `load`, `read`
           |
           = help: give one number of clients: clients = 4
    "#]],
    );
}

#[test]
fn variants_with_other_steps_are_refused() {
    refused(
        &staged("", "database = 'a'\nvary = { workload = ['staged', 'tpcb'] }"),
        expect![[r#"
            error: the variants have different steps, so they cannot be compared
              --> study.toml:14:10
               |
            14 | vary = { workload = ['staged', 'tpcb'] }
               |          ^^^^^^^^ `tpcb` and `staged` have different steps
               |
               = help: one has `load`, `read`; the other the load levels of the study
        "#]],
    );
    refused(
        &staged("", "database = 'a'\nvary = { workload = ['staged', 'loads'] }"),
        expect![[r#"
            error: the variants have different steps, so they cannot be compared
              --> study.toml:14:10
               |
            14 | vary = { workload = ['staged', 'loads'] }
               |          ^^^^^^^^ `loads` and `staged` have different steps
               |
               = help: one has `load`, `read`; the other `load`
        "#]],
    );
    refused(
        &staged("", &format!("{CHOSEN}vary = {{ option = {{ reads = [true, false] }} }}")),
        expect![[r#"
            error: the variants have different steps, so they cannot be compared
              --> study.toml:15:21
               |
            15 | vary = { option = { reads = [true, false] } }
               |                     ^^^^^ `reads=off` and `reads=on` have different steps
               |
               = help: one has `load`, `read`; the other `load`
        "#]],
    );
}

#[test]
fn what_the_workload_refuses_is_told_where_it_stands() {
    refused(
        &staged("rows = 3", &format!("{CHOSEN}clients = 4")),
        expect![[r#"
            error: workload `staged` cannot run with these options
             --> study.toml:6:11
              |
            6 | [workload.staged]
              |           ^^^^^^ 3 rows are too few; give rows = 4 or more
        "#]],
    );
    refused(
        &staged("", &format!("{CHOSEN}clients = 9\nvary = {{ option = {{ rows = [10, 5, 6] }} }}")),
        expect![[r#"
            error: workload `staged` cannot run with these options
             --> study.toml:6:11
              |
            6 | [workload.staged]
              |           ^^^^^^ 5 rows are too few; give rows = 9 or more
              |
              = help: in variant `rows=5`

            error: workload `staged` cannot run with these options
             --> study.toml:6:11
              |
            6 | [workload.staged]
              |           ^^^^^^ 6 rows are too few; give rows = 9 or more
              |
              = help: in variant `rows=6`
        "#]],
    );
}

#[test]
fn what_a_product_cannot_do_is_told_before_any_table_is_made() {
    refused(
        &staged(
            "procedures = true",
            "workload = 'staged'\nvary = { database = ['a', 'b'] }\nrate = 5",
        ),
        expect![[r#"
            error: workload `staged` cannot run on database `a`
             --> study.toml:6:11
              |
            6 | [workload.staged]
              |           ^^^^^^ SQLite has no stored procedures; leave out `procedures`
              |
              = help: in variant `a`
        "#]],
    );
}
