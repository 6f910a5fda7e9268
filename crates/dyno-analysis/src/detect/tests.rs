//! Each kind of caveat is provoked, and absent where it does not belong.

use dyno_record::{Environment, Run, TrialHost};

use super::*;
use crate::fixtures::{fail, run};
use crate::{CaveatKind, Options, analyse};

mod dead_end;
mod differences;
mod hosts;
mod imported;
mod in_memory;
mod joined;
mod not_on_disk;
mod steadiness;
mod texts;
mod throttled;
mod uncompressed;
mod unserved;
mod user_space;

/// No caveats.
pub(super) fn sound() -> Run {
    run(&["a", "b"], &[4], 3, |_, _, _| 5_000.0)
}

pub(super) fn caveats_of(run: Run) -> Vec<Caveat> {
    analyse(&[run], &Options::default()).caveats
}

/// Returns the only caveat of the spoilt run.
#[track_caller]
pub(super) fn only(kind: CaveatKind, spoil: impl FnOnce(&mut Run)) -> Caveat {
    let mut run = sound();
    spoil(&mut run);
    let mut caveats = caveats_of(run);
    let kinds: Vec<CaveatKind> = caveats.iter().map(|caveat| caveat.kind).collect();
    assert_eq!(kinds, [kind], "{caveats:?}");
    caveats.remove(0)
}

#[track_caller]
pub(super) fn contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in {text:?}");
}

#[test]
fn a_sound_run_has_none() {
    assert_eq!(caveats_of(sound()), []);
}

#[test]
fn too_few_repetitions() {
    let caveats = caveats_of(run(&["a"], &[4], 2, |_, _, _| 5_000.0));
    assert_eq!(caveats[0].kind, CaveatKind::TooFewRepetitions);
    contains(&caveats[0].message, "a has 2");
    contains(&caveats[0].advice, "Set `repetitions`");
}

#[test]
fn repetitions_that_are_planned_need_only_be_run() {
    let mut run = sound();
    run.trials.truncate(3);
    let caveats = caveats_of(run);
    assert_eq!(caveats[0].kind, CaveatKind::TooFewRepetitions);
    contains(&caveats[0].message, "a has 2 and b has 1");
    contains(&caveats[0].advice, "start the same run again");
}

#[test]
fn a_busy_worker() {
    let caveat = only(CaveatKind::GeneratorLimit, |run| {
        run.trials[1].steps[0].generator.busiest_worker = 0.91;
    });
    contains(&caveat.message, "used 91 % of a CPU (b at 4 clients)");
    contains(&caveat.advice, "workers");
    assert_eq!((caveat.variants, caveat.steps), (vec![1], vec![0]));
}

#[test]
fn workers_that_wait_for_a_cpu() {
    // 4 s of two workers' 20 s.
    let caveat = only(CaveatKind::GeneratorLimit, |run| {
        run.trials[0].steps[0].generator.run_queue_s = Some(4.0);
    });
    contains(&caveat.message, "waited for a CPU 20 % of the time (a at 4 clients)");
    contains(&caveat.advice, "separate CPUs with `generator_cpus`");
    let caveat = only(CaveatKind::GeneratorLimit, |run| {
        run.trials[0].steps[0].generator.run_queue_s = Some(4.0);
        let bound = [("generator_cpus", "1"), ("server_cpus", "0")];
        run.manifest.design.extend(bound.map(|(key, cpus)| (key.to_owned(), cpus.to_owned())));
    });
    contains(&caveat.advice, "more CPUs (`generator_cpus`)");
}

#[test]
fn workers_close_to_what_they_were_calibrated_to() {
    let caveat = only(CaveatKind::GeneratorLimit, |run| {
        run.trials[0].steps[0].generator.share_of_calibrated = Some(0.65);
        run.trials[1].steps[0].generator.share_of_calibrated = Some(0.85);
        run.trials[1].steps[0].generator.calibration_disturbed = true;
    });
    contains(&caveat.message, "ran at 85 % of their calibrated maximum");
    contains(&caveat.message, "(b at 4 clients, by a calibration that other processes disturbed");
    assert_eq!((caveat.variants, caveat.steps), (vec![1], vec![0]));
}

#[test]
fn in_one_process_busy_workers_are_the_database() {
    let mut run = sound();
    for trial in &mut run.trials {
        trial.server.transport = "in process".to_owned();
        trial.steps[0].generator.busiest_worker = 1.0;
        trial.steps[0].generator.run_queue_s = Some(15.0);
    }
    assert_eq!(caveats_of(run), []);
}

fn add_outcome(run: &mut Run, outcome: &str, n: u64) {
    let step = &mut run.trials[0].steps[0];
    step.kinds[0].outcomes.insert(outcome.to_owned(), n);
    step.error_examples.insert(outcome.to_owned(), format!("no luck with {outcome}"));
}

#[test]
fn errors_of_the_server() {
    let caveat = only(CaveatKind::Errors, |run| add_outcome(run, "refused", 150_000));
    // 150,000 of 300,000 attempts of variant a.
    contains(&caveat.message, "up to 50 % of them (a at 4 clients)");
    contains(&caveat.message, "refused (“no luck with refused”)");
    contains(&caveat.advice, "run again");
    let caveat = only(CaveatKind::Errors, |run| {
        add_outcome(run, "refused", 3);
        let long = format!("no table in {}", "SELECT 1 FROM a, ".repeat(20));
        run.trials[0].steps[0].error_examples.insert("refused".to_owned(), long);
    });
    contains(&caveat.message, "refused (“no table in SELECT 1 FROM a, ");
    contains(&caveat.message, "…”)");
    assert!(caveat.message.chars().count() < 300, "{}", caveat.message);
    let caveat = only(CaveatKind::Errors, |run| add_outcome(run, "timed_out", 3));
    contains(&caveat.advice, "statement_timeout");
}

#[test]
fn transient_errors_count_when_they_are_many() {
    let caveat = only(CaveatKind::Errors, |run| add_outcome(run, "deadlock", 1_000));
    contains(&caveat.advice, "retries");
    let mut few = sound();
    add_outcome(&mut few, "deadlock", 10);
    add_outcome(&mut few, "rolled_back", 50_000);
    assert_eq!(caveats_of(few), []);
}

#[test]
fn missed_arrivals_are_a_caveat() {
    let caveat = only(CaveatKind::MissedArrivals, |run| {
        run.trials[3].steps[0].missed = 15_000;
    });
    contains(
        &caveat.message,
        "10 % of the arrivals were never sent (b at 4 clients: 15000 of 150000)",
    );
    contains(&caveat.advice, "They amount to 3 s of load");
    contains(&caveat.advice, "the offered rate is more than this variant can serve");
    assert_eq!(caveat.variants, [1]);
}

#[test]
fn a_few_arrivals_missed_at_the_end_are_no_overload() {
    let caveat = only(CaveatKind::MissedArrivals, |run| {
        let step = &mut run.trials[3].steps[0];
        step.missed = 5;
        step.intervals.missed = vec![0.0; step.intervals.start_s.len()];
        *step.intervals.missed.last_mut().unwrap() = 5.0;
    });
    contains(&caveat.message, "5 of 150000, still waiting when the measurement ended");
    contains(&caveat.advice, "They amount to 1 ms of load, and to less than 1 % of all");
    contains(&caveat.advice, "does not mean that the rate is too high");
    // It explains arrivals missed soon after, but not much later.
    for (at, explains) in [(1, false), (8, true)] {
        let mut run = sound();
        let step = &mut run.trials[3].steps[0];
        step.missed = 4_000;
        step.intervals.missed = vec![0.0; step.intervals.start_s.len()];
        *step.intervals.missed.last_mut().unwrap() = 4_000.0;
        step.intervals.throughput[2 + at] = 0.0;
        let caveats = caveats_of(run);
        let missed = caveats.iter().find(|c| c.kind == CaveatKind::MissedArrivals).unwrap();
        assert_eq!(missed.advice.starts_with("Its stalls"), explains, "{missed:?}");
    }
}

fn forget_durability(run: &mut Run) {
    for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
        trial.server.durability = "not synced".to_owned();
    }
}

#[test]
fn different_durability_by_accident() {
    let caveat = only(CaveatKind::DifferentDurability, forget_durability);
    contains(&caveat.message, "every commit is synced (a); not synced (b)");
    contains(&caveat.advice, "the same durability");
    assert_eq!(caveat.variants, [0, 1]);
}

#[test]
fn different_durability_on_purpose() {
    let caveat = only(CaveatKind::DifferentDurability, |run| {
        forget_durability(run);
        let settings = &mut run.manifest.variants[1].settings;
        settings.insert("innodb_flush_log_at_trx_commit".to_owned(), "0".to_owned());
    });
    contains(&caveat.advice, "the price of durability");
}

#[test]
fn failed_trials() {
    let mut run = run(&["a", "b"], &[4], 4, |_, _, _| 5_000.0);
    fail(&mut run, 2, "the server ended.");
    let caveats = caveats_of(run.clone());
    assert_eq!(caveats[0].kind, CaveatKind::MissingTrials);
    contains(&caveats[0].message, "Of 8 planned trials, 1 failed (trial 2, b: the server ended).");
    contains(&caveats[0].advice, "log");
    run.trials.retain(|trial| trial.number != 3);
    let caveats = caveats_of(run);
    contains(&caveats[0].message, "and 1 has not finished yet");
    contains(&caveats[0].advice, "start the same run again");
    assert_eq!(caveats[0].variants, [0, 1]);
}

#[test]
fn a_measurement_too_short_for_its_quantile() {
    // 1500 transactions: 15 beyond p99, 1.5 beyond p99.9.
    let caveats = caveats_of(run(&["a"], &[4], 3, |_, _, _| 150.0));
    let kinds: Vec<CaveatKind> = caveats.iter().map(|caveat| caveat.kind).collect();
    assert_eq!(kinds, [CaveatKind::ShortMeasurement]);
    contains(&caveats[0].message, "The p99 and p99.9 response times rest on too few observations");
    contains(
        &caveats[0].message,
        "the trial with the fewest has 1,500 transactions, of which about 15 lie beyond p99 and 2 beyond \
         p99.9. Throughput, p50 and p95 are not affected.",
    );
    contains(
        &caveats[0].advice,
        "At this trial's rate of 150 transactions/s, each trial needs 2,000 transactions for p99 (about 14 s) \
         and 20,000 transactions for p99.9 (about 2 min 14 s) at each load level: increase `duration` (10 s) in the study's \
         `[design]`.",
    );
    let caveats = caveats_of(run(&["a"], &[4], 3, |_, _, _| 500.0));
    contains(&caveats[0].message, "The p99.9 response time rests on too few observations");
    contains(&caveats[0].message, "of which about 5 lie beyond p99.9.");
    // 20,000 transactions are just enough for p99.9.
    assert_eq!(caveats_of(run(&["a"], &[4], 3, |_, _, _| 2_000.0)), []);
}

#[test]
fn tables_that_are_not_as_they_should_be() {
    let row = |measured: &str| dyno_record::AuditRow {
        name: "rows in history, 1 a transaction".to_owned(),
        expected: "50000".to_owned(),
        measured: measured.to_owned(),
        pass: measured == "50000",
        is_undecided: false,
    };
    let caveat = only(CaveatKind::AuditFailed, |run| {
        for trial in &mut run.trials {
            trial.audit = vec![row("50000")];
        }
        run.trials[3].audit.push(row("49999"));
    });
    contains(&caveat.message, "the tables of 1 of 6 audited trials");
    contains(&caveat.message, "In trial 4 (b), rows in history, 1 a transaction: expected 50000");
    contains(&caveat.message, "found 49999");
    contains(&caveat.advice, "Do not use these numbers");
    assert_eq!((caveat.variants, caveat.steps), (vec![1], vec![]));
}

#[test]
fn a_null_server_says_so() {
    let caveat = only(CaveatKind::Simulated, |run| {
        for trial in run.trials.iter_mut().filter(|trial| trial.variant == 1) {
            trial.server.product = "Null (MySQL protocol)".to_owned();
        }
    });
    contains(&caveat.message, "this measures the load generator, not a database");
    assert_eq!(caveat.variants, [1]);
}

#[test]
fn a_simulation_says_so() {
    let caveat = only(CaveatKind::Simulated, |run| {
        for trial in &mut run.trials {
            trial.server.transport = "simulated".to_owned();
        }
    });
    contains(&caveat.message, "nothing real was measured");
}

/// `of` returns pool, name and CPUs for variant and block.
fn place(run: &mut Run, of: impl Fn(usize, u32) -> (&'static str, &'static str, u32)) {
    for trial in &mut run.trials {
        let (pool, name, cpus) = of(trial.variant, trial.block);
        let environment = Environment {
            machine: name.to_owned(),
            cpus,
            memory_bytes: 4 << 30,
            ..Default::default()
        };
        let (pool, name) = (pool.to_owned(), name.to_owned());
        trial.host = Some(TrialHost { pool, name, place: None, environment });
    }
}

#[test]
fn trials_on_machines_that_are_alike_give_no_caveat() {
    let mut run = sound();
    place(&mut run, |_, block| ("m5", ["m5-1", "m5-2", "m5-3"][block as usize - 1], 2));
    assert_eq!(caveats_of(run), []);
}

#[test]
fn differing_machines_of_a_variant() {
    let caveat = only(CaveatKind::SeveralMachines, |run| {
        place(run, |_, block| if block == 2 { ("m5", "m5-2", 4) } else { ("m5", "m5-1", 2) });
    });
    contains(
        &caveat.message,
        "on machines that differ. m5: m5-1 (2 CPUs, 4 GiB) and m5-2 (4 CPUs, 4 GiB)",
    );
    contains(&caveat.advice, "[host.NAME] table");
    assert_eq!(caveat.variants, [0, 1]);
}

#[test]
fn variants_on_different_machines() {
    let caveat = only(CaveatKind::SeveralMachines, |run| {
        place(run, |variant, _| [("m5", "x", 2), ("m6", "y", 8)][variant]);
    });
    contains(&caveat.message, "a on x (2 CPUs, 4 GiB); b on y (8 CPUs, 4 GiB)");
    assert_eq!(caveat.variants, [0, 1]);
}

#[test]
fn a_block_that_was_split_between_hosts() {
    let caveat =
        only(CaveatKind::SeveralMachines, |run| {
            place(run, |variant, block| {
                if (variant, block) == (1, 2) { ("m5", "m5-2", 2) } else { ("m5", "m5-1", 2) }
            });
        });
    contains(&caveat.message, "In block 2 a variant and its baseline ran on different hosts");
}

#[test]
fn a_canary_is_held_against_those_of_its_own_machine() {
    let mut run = sound();
    // One machine is half as fast.
    place(&mut run, |_, block| ("m5", ["m5-1", "m5-2", "m5-3"][block as usize - 1], 2));
    for trial in &mut run.trials {
        let took = if trial.block == 3 { 0.1 } else { 0.05 };
        trial.canary = Some(dyno_record::Canary { before_s: took, after_s: took });
    }
    assert_eq!(caveats_of(run.clone()), []);
    run.trials[0].canary = Some(dyno_record::Canary { before_s: 0.05, after_s: 0.1 });
    let kinds: Vec<CaveatKind> = caveats_of(run).iter().map(|caveat| caveat.kind).collect();
    assert_eq!(kinds, [CaveatKind::NoisyHost]);
}
