//! Which variants of several runs are one, and which are kept apart.

use std::path::PathBuf;

use dyno_record::Run;
use dyno_units::{Direction, Unit, metric};

use super::{same_runs, unlike_metrics};
use crate::fixtures::run;
use crate::{Findings, Options, analyse, analyse_against, metrics};

fn storage(run: &mut Run, filesystem: &str, device: &str) {
    let facts = &mut run.manifest.environment.facts;
    facts.insert("filesystem".to_owned(), filesystem.to_owned());
    facts.insert("filesystem.device".to_owned(), device.to_owned());
}

/// The second is changed.
fn two(change: impl Fn(&mut Run)) -> [Run; 2] {
    let mut first = run(&["a"], &[1, 4], 3, |_, _, r| 1000.0 + f64::from(r));
    storage(&mut first, "ext4", "/dev/vda");
    first.manifest.design.insert("server_cpus".to_owned(), "all".to_owned());
    let mut second = first.clone();
    second.folder = PathBuf::from("runs/second");
    change(&mut second);
    [first, second]
}

fn names(found: &Findings) -> Vec<&str> {
    found.variants.iter().map(|variant| variant.name.as_str()).collect()
}

/// Names after joining, and the second variant's last level if there are two.
#[track_caller]
fn check(change: impl Fn(&mut Run), expected: &[&str], level: Option<(&str, &str, &str)>) {
    let found = analyse(&two(change), &Options::default());
    assert_eq!(names(&found), expected);
    let n = found.cells[0].metrics[&metrics::THROUGHPUT].n;
    assert_eq!(n, if expected.len() == 1 { 6 } else { 3 }, "repetitions");
    let last = |idx: usize| {
        let (factor, level) = found.variants[idx].levels.last().expect("it has levels");
        (factor.as_str(), level.as_str())
    };
    if let Some((factor, theirs, ours)) = level {
        assert_eq!((last(0), last(1)), ((factor, theirs), (factor, ours)));
    }
}

#[test]
fn what_is_the_same_is_one_variant() {
    check(|_| (), &["a"], None);
    // Older records that do not say are not kept apart.
    check(|run| run.manifest.design.clear(), &["a"], None);
    check(|run| run.manifest.environment.facts.clear(), &["a"], None);
}

#[test]
fn another_filesystem_is_another_variant() {
    let change = |run: &mut Run| storage(run, "tmpfs", "tmpfs");
    check(change, &["a", "a (tmpfs)"], Some(("filesystem", "ext4", "tmpfs")));
    let change = |run: &mut Run| storage(run, "ext4", "/dev/vdb");
    check(change, &["a", "a (/dev/vdb)"], Some(("filesystem", "/dev/vda", "/dev/vdb")));
}

#[test]
fn where_the_server_is_elsewhere_the_storage_here_is_nothing() {
    let mut runs = two(|run| storage(run, "tmpfs", "tmpfs"));
    for run in &mut runs {
        run.manifest.variants[0].product = "mysql://db.example/test".to_owned();
    }
    assert_eq!(names(&analyse(&runs, &Options::default())), ["a"]);
}

#[test]
fn other_cpus_are_another_variant() {
    let change = |run: &mut Run| {
        run.manifest.design.insert("server_cpus".to_owned(), "0,1".to_owned());
    };
    check(change, &["a", "a (server_cpus 0,1)"], Some(("server_cpus", "all", "0,1")));
}

#[test]
fn other_times_are_another_variant() {
    let change = |run: &mut Run| run.manifest.steps[1].duration_s = 20.0;
    check(change, &["a", "a (duration 20 s)"], Some(("duration", "10 s", "20 s")));
    let change = |run: &mut Run| run.manifest.steps[0].warm_up_s = 5.0;
    check(change, &["a", "a (warm_up 5 s)"], Some(("warm_up", "2 s", "5 s")));
}

#[test]
fn several_differences_are_several_factors() {
    let change = |run: &mut Run| {
        storage(run, "tmpfs", "tmpfs");
        run.manifest.steps[0].warm_up_s = 5.0;
    };
    check(change, &["a", "a (tmpfs, warm_up 5 s)"], Some(("warm_up", "2 s", "5 s")));
}

#[test]
fn another_option_is_another_workload_unless_a_study_varies_it() {
    let rows = |rows: &str, is_factor: bool| {
        let (rows, name) = (rows.to_owned(), "option.rows");
        move |run: &mut Run| {
            let variant = &mut run.manifest.variants[0];
            variant.options.insert("rows".to_owned(), rows.clone());
            if is_factor {
                variant.levels.push(super::matching::level(name, &rows));
            }
        }
    };
    let check = |is_factor: bool, expected: (&str, Option<usize>)| {
        let mut runs = two(rows("20", is_factor));
        rows("10", is_factor)(&mut runs[0]);
        let found = analyse(&runs, &Options::default());
        assert_eq!((found.variants[1].name.as_str(), found.variants[1].baseline), expected);
    };
    check(false, ("a (rows 20)", None));
    check(true, ("a (second)", Some(0)));
    // An option that only one record knows, such as a new one, is no difference.
    let found = analyse_against(&two(|_| ())[0], &two(rows("20", false))[1], &Options::default());
    assert_eq!(found.variants[1].baseline, Some(0));
}

#[test]
fn joined_steps_are_in_the_order_of_their_load() {
    let first = run(&["a"], &[4], 3, |_, _, _| 400.0);
    let mut second = run(&["a"], &[1, 2, 8], 3, |_, step, _| [100.0, 200.0, 800.0][step]);
    second.manifest.created_unix_ms += 1;
    let found = analyse(&[first, second], &Options::default());
    let steps: Vec<&str> = found.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["1 client", "2 clients", "4 clients", "8 clients"]);
    let mut cells = found.cells.clone();
    cells.sort_by_key(|cell| cell.step);
    let rates: Vec<f64> =
        cells.iter().map(|cell| cell.metrics[&metrics::THROUGHPUT].value.round()).collect();
    assert_eq!(rates, [100.0, 200.0, 400.0, 800.0]);
}

#[test]
fn one_runs_steps_keep_the_order_of_its_study() {
    let found = analyse(&[run(&["a"], &[8, 1], 3, |_, _, _| 1.0)], &Options::default());
    assert_eq!(found.steps[0].name, "8 clients");
}

#[test]
fn a_comparison_says_what_else_differs() {
    let [first, second] = two(|run| storage(run, "tmpfs", "tmpfs"));
    let found = analyse_against(&first, &second, &Options::default());
    assert_eq!(names(&found), ["a (first)", "a (second, tmpfs)"]);
    let [first, second] = two(|_| ());
    let found = analyse_against(&first, &second, &Options::default());
    assert_eq!(names(&found), ["a (first)", "a (second)"]);
}

#[test]
fn a_run_is_known_again_in_its_copy() {
    let check = |change: fn(&mut Run), expected: Option<(usize, usize)>| {
        assert_eq!(same_runs(&two(change)), expected);
    };
    check(|_| (), Some((0, 1)));
    // The copy may have gone on, or be older.
    check(|run| run.trials.truncate(1), Some((0, 1)));
    check(|run| run.manifest.created_unix_ms += 1, None);
    check(|run| run.manifest.seed += 1, None);
}

#[test]
fn a_metric_means_the_same_in_all_runs() {
    let check = |unit: Unit, better: Direction, title: &'static str, is_alike: bool| {
        let mut runs = two(|_| ());
        let first = metric("job.time", Unit::Seconds, Direction::Lower, "job time", "its time");
        runs[0].trials[1].metrics.push(first);
        runs[1].trials[0].metrics.push(metric("job.time", unit, better, title, "its time").main());
        let unlike = unlike_metrics(&runs).map(|(first, second, id)| (first, second, id.as_str()));
        assert_eq!(unlike, (!is_alike).then_some((0, 1, "job.time")), "{title}");
    };
    check(Unit::Seconds, Direction::Lower, "time of the job", true);
    check(Unit::Seconds, Direction::Higher, "turned around", false);
    check(Unit::Milliseconds, Direction::Lower, "in another unit", false);
    let mut one = two(|_| ()).into_iter().take(1).collect::<Vec<Run>>();
    for (number, better) in [Direction::Lower, Direction::Higher].into_iter().enumerate() {
        let declared = metric("job.time", Unit::Seconds, better, "job time", "its time");
        one[0].trials[number].metrics.push(declared);
    }
    assert!(unlike_metrics(&one).is_some(), "trials of one run");
}
