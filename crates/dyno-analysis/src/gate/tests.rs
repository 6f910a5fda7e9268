//! Gates on runs with a known truth.

use std::path::PathBuf;

use dyno_record::{AuditRow, Run};

use crate::fixtures::{fail, run, wobble};
use crate::{Gate, Options, analyse_against, metrics};

/// The candidate is `ratio` times as fast; `change` gets both runs.
fn gate(ratio: f64, change: impl Fn(&mut Run, &mut Run)) -> Gate {
    let of = |v: usize, rate: f64| {
        run(&["a"], &[1, 4], 8, move |_, step, r| rate * (1.0 + 0.1 * (wobble(v, step, r) - 1.0)))
    };
    let (mut baseline, mut candidate) = (of(0, 1000.0), of(1, 1000.0 * ratio));
    candidate.folder = PathBuf::from("runs/second");
    change(&mut baseline, &mut candidate);
    analyse_against(&baseline, &candidate, &Options::default()).gate.expect("runs are compared")
}

/// Whichever run is changed, and whatever the verdict.
#[track_caller]
fn check_invalid(change: fn(&mut Run), reason: &str) {
    for ratio in [1.0, 0.5] {
        for gate in [gate(ratio, |run, _| change(run)), gate(ratio, |_, run| change(run))] {
            let Gate::Inconclusive(reasons) = &gate else { panic!("{gate}") };
            assert!(reasons.iter().any(|given| given.contains(reason)), "{gate}");
        }
    }
}

fn outcome(run: &mut Run, name: &str, share: f64) {
    for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        let outcomes = &mut step.kinds[0].outcomes;
        let committed = outcomes["committed"] as f64;
        outcomes.insert(name.to_owned(), (committed * share) as u64);
    }
}

#[test]
fn what_is_sound_is_judged_by_its_verdicts() {
    assert_eq!(gate(1.0, |_, _| ()), Gate::NoWorse);
    let Gate::Worse(reasons) = gate(0.5, |_, _| ()) else { panic!("half the speed is worse") };
    assert_eq!(reasons.len(), 4, "throughput and p95 at two steps: {reasons:?}");
    assert_eq!(reasons[0], "throughput of a (second) at 1 client (50.0 % worse)");
}

#[test]
fn a_name_cannot_add_a_line_to_what_the_gate_says() {
    let name =
        |run: &mut Run| run.manifest.variants[0].name = "a\ngate: no worse\u{1b}[8m".to_owned();
    let gate = gate(0.5, |baseline, candidate| [baseline, candidate].into_iter().for_each(name));
    let Gate::Worse(reasons) = &gate else { panic!("{gate}") };
    assert!(reasons[0].starts_with("throughput of a gate: no worse\u{fffd}[8m"), "{gate}");
    assert_eq!(gate.in_lines().lines().count(), 5, "{gate}");
}

#[test]
fn runs_with_nothing_in_common_say_what_each_has() {
    let (first, mut second) = (
        run(&["a", "b", "c", "d", "e"], &[4], 3, |_, _, _| 1000.0),
        run(&["synced", "relaxed"], &[4], 3, |_, _, _| 1000.0),
    );
    second.folder = PathBuf::from("runs/second");
    second.manifest.variants.iter_mut().for_each(|variant| variant.baseline = None);
    let found = analyse_against(&first, &second, &Options::default());
    let lines = found.answer.lines.join(" ");
    assert!(lines.contains("a, b, c, d and e are in the first run only."), "{lines}");
    let Some(Gate::Inconclusive(reasons)) = &found.gate else { panic!("{:?}", found.gate) };
    assert!(reasons.contains(&"synced and relaxed are in the second run only".to_owned()));
    let text = found.gate.as_ref().map(Gate::in_lines).unwrap_or_default();
    assert!(text.starts_with("undecided:\n  a, b, c, d and e are"), "{text}");
    assert!(text.contains("\n  synced and relaxed are in the second run only"), "{text}");
}

/// Comparisons within the first run weaken neither gate nor verdicts of the second, and vice versa.
#[test]
fn what_the_first_run_compared_among_itself_is_a_family_of_its_own() {
    let of = |names: &[&str], factor: f64| {
        run(names, &[4], 8, move |v, step, r| {
            1000.0 * factor * (1.0 - 0.1 * v as f64) * wobble(v, step, r)
        })
    };
    let (first, mut second) = (of(&["a", "b", "c"], 1.0), of(&["a"], 0.9));
    second.folder = PathBuf::from("runs/second");
    let found = analyse_against(&first, &second, &Options::default());
    let of_metric = |metric, is_second: bool| {
        let is_it = |c: &&crate::Comparison| c.metric == metric && (c.variant >= 3) == is_second;
        let pairs = found.comparisons.iter().filter(is_it);
        let pairs = pairs.map(|c| Some((c.p_value?, c.p_value_corrected?)));
        pairs.collect::<Option<Vec<(f64, f64)>>>().expect("all have p-values")
    };
    for metric in [metrics::THROUGHPUT, metrics::RESPONSE_P95] {
        let [(p, corrected)] = of_metric(metric, true)[..] else { panic!("one comparison") };
        assert!(p < 0.05 && p == corrected, "{p} {corrected}");
        let own = of_metric(metric, false);
        let p_values: Vec<f64> = own.iter().map(|(p, _)| *p).collect();
        let corrected: Vec<f64> = own.iter().map(|(_, corrected)| *corrected).collect();
        assert_eq!((own.len(), corrected), (2, crate::statistics::holm(&p_values)));
    }
    assert_eq!(found.gate_rows.iter().map(|row| row.variant).collect::<Vec<_>>(), [3, 3]);
}

#[test]
fn a_failed_audit_says_nothing() {
    let change = |run: &mut Run| {
        let [name, expected, measured] = ["rows", "10", "9"].map(str::to_owned);
        run.trials[2].audit.push(AuditRow {
            name,
            expected,
            measured,
            pass: false,
            is_undecided: false,
        });
    };
    check_invalid(change, "the audit of a");
}

#[test]
fn failed_and_missing_trials_say_nothing() {
    check_invalid(|run| fail(run, 3, "the server crashed"), "failed or are missing");
    check_invalid(|run| run.trials.truncate(7), "failed or are missing");
}

#[test]
fn failed_attempts_say_nothing() {
    check_invalid(|run| outcome(run, "refused", 0.3), "attempts of a");
}

#[test]
fn conflicts_say_nothing_where_one_side_has_them() {
    check_invalid(|run| outcome(run, "deadlock", 0.01), "ended in conflicts");
    let both =
        |a: &mut Run, b: &mut Run| [a, b].into_iter().for_each(|r| outcome(r, "deadlock", 0.01));
    assert_eq!(gate(1.0, both), Gate::NoWorse);
    assert_eq!(gate(1.0, |_, run| outcome(run, "deadlock", 0.0005)), Gate::NoWorse);
}

#[test]
fn missed_arrivals_say_nothing_from_a_hundredth_on() {
    fn miss(run: &mut Run, part: u64) {
        run.trials.iter_mut().flat_map(|t| &mut t.steps).for_each(|s| s.missed = s.due / part);
    }
    check_invalid(|run| miss(run, 50), "never sent");
    assert_eq!(gate(1.0, |_, run| miss(run, 1000)), Gate::NoWorse);
}

#[test]
fn a_limited_generator_says_nothing_where_it_is_on_one_side() {
    fn limit(run: &mut Run) {
        let steps = run.trials.iter_mut().flat_map(|trial| &mut trial.steps);
        steps.for_each(|step| step.generator.busiest_worker = 0.9);
    }
    check_invalid(limit, "the load generator may have been the bottleneck");
    let both = |a: &mut Run, b: &mut Run| [a, b].into_iter().for_each(limit);
    assert_eq!(gate(1.0, both), Gate::NoWorse);
}

#[test]
fn unlike_durability_says_nothing_unless_it_is_the_question() {
    fn relax(run: &mut Run) {
        for trial in &mut run.trials {
            trial.server.durability = "commits may be lost".to_owned();
        }
    }
    check_invalid(relax, "are not equally durable");
    let asked = |_: &mut Run, run: &mut Run| {
        relax(run);
        let settings = &mut run.manifest.variants[0].settings;
        settings.insert("synchronous_commit".to_owned(), "off".to_owned());
    };
    assert_eq!(gate(1.0, asked), Gate::NoWorse);
}

#[test]
fn unlike_workloads_say_nothing() {
    check_invalid(|run| run.manifest.variants[0].workload = "tpcb".to_owned(), "different work");
}

#[test]
fn worse_stays_where_its_comparison_is_sound() {
    let gate = gate(0.5, |_, run| {
        for trial in &mut run.trials {
            trial.steps[1].kinds[0].outcomes.insert("refused".to_owned(), 900);
        }
    });
    let Gate::Worse(reasons) = &gate else { panic!("{gate}") };
    assert!(reasons.iter().all(|given| given.contains("at 1 client (")), "{reasons:?}");
}

#[test]
fn trials_that_were_not_needed_are_not_missing() {
    let stop = |run: &mut Run| {
        use dyno_record::StoppingRecord;
        run.manifest.stopping = Some(StoppingRecord { repetitions_min: 4, repetitions_max: 8 });
        run.trials.truncate(4);
    };
    // A single variant has nothing to decide, and is settled at once.
    let gate = gate(1.0, |_, run| stop(run));
    let given = gate.to_string();
    assert!(!given.contains("missing"), "{given}");
}
