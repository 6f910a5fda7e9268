//! Runs with known disturbances.

use dyno_record::{Canary, Run, VoidingRecord};
use dyno_units::Seed;

use super::*;
use crate::fixtures::{run, wobble};
use crate::{Caveat, Options, Verdict, analyse};

/// Two variants at one step, `b` 20 % faster than `a`, with the rule on.
fn quiet(repetitions: u32, repeats_max: u32) -> Run {
    let mut run = run(&["a", "b"], &[4], repetitions, |variant, step, repetition| {
        let rate = [1000.0, 1200.0][variant];
        rate * (1.0 + 0.02 * (wobble(variant, step, repetition) - 1.0))
    });
    run.manifest.environment.cpus = 2;
    run.manifest.voiding =
        Some(VoidingRecord { steal: 0.02, others: 0.10, canary: 0.25, repeats_max });
    for trial in 0..run.trials.len() {
        others(&mut run, trial, 0.05);
        run.trials[trial].canary = Some(Canary { before_s: 0.050, after_s: 0.051 });
    }
    run
}

/// So many CPUs used by others.
fn others(run: &mut Run, trial: usize, cpus: f64) {
    set(&mut run.trials[trial].steps[0], "rest.cpu_user_s_per_s", |_| cpus);
}

fn set(step: &mut StepSummary, name: &str, value: impl Fn(f64) -> f64) {
    let column = step.intervals.start_s.iter().map(|start| Some(value(*start))).collect();
    step.readings.insert(name.to_owned(), column);
}

#[track_caller]
fn check(run: &Run, expected: &[u32]) {
    let found: Vec<u32> = void_blocks(run).iter().map(|(block, _)| *block).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_disturbed_block_is_void_and_its_place_is_taken() {
    let run = quiet(5, 2);
    check(&run, &[]);
    let disturbed = |change: &dyn Fn(&mut Run, usize)| {
        let mut run = run.clone();
        let trial = run.trials.iter().position(|trial| trial.block == 3).expect("it is there");
        change(&mut run, trial);
        run
    };
    check(&disturbed(&|run, trial| others(run, trial, 0.5)), &[3]);
    let steal = |run: &mut Run, trial: usize| {
        for at in 0..run.trials.len() {
            let share = if at == trial { 7.0 } else { 0.5 };
            set(&mut run.trials[at].steps[0], "cpu.steal_pct", |_| share);
        }
    };
    check(&disturbed(&steal), &[3]);
    let canary = |run: &mut Run, trial: usize| {
        run.trials[trial].canary = Some(Canary { before_s: 0.080, after_s: 0.051 });
    };
    check(&disturbed(&canary), &[3]);
    // Without the rule.
    let mut without = disturbed(&canary);
    without.manifest.voiding = None;
    check(&without, &[]);
}

#[test]
fn a_machine_that_is_always_busy_is_taken_as_it_is() {
    let mut busy = quiet(6, 3);
    for trial in 0..busy.trials.len() {
        others(&mut busy, trial, 1.2);
    }
    check(&busy, &[]);
    // A variant's own effect on the host does not count.
    let mut loud = quiet(6, 3);
    for trial in 0..loud.trials.len() {
        if loud.trials[trial].variant == 1 {
            others(&mut loud, trial, 0.9);
        }
    }
    check(&loud, &[]);
}

/// Kernel work, and the canary afterwards.
#[test]
fn what_a_variant_may_have_done_itself_makes_no_block_void() {
    let mut run = quiet(6, 3);
    let slow = run.trials.iter().position(|trial| trial.block == 4).expect("it is there");
    set(&mut run.trials[slow].steps[0], "rest.cpu_s_per_s", |_| 1.5);
    set(&mut run.trials[slow].steps[0], "rest.cpu_system_s_per_s", |_| 1.4);
    run.trials[slow].canary = Some(Canary { before_s: 0.050, after_s: 0.200 });
    check(&run, &[]);
}

#[test]
fn a_variant_that_is_always_the_reason_is_suspected() {
    // Variants over a limit, by discarded block.
    let check = |n_variants: usize, blocks: &[&[usize]], expected: &str, is_suspect: bool| {
        let names = ["a", "b", "c", "d"];
        let mut run = run(&names[..n_variants], &[4], 12, |_, _, _| 1000.0);
        for (idx, variants) in blocks.iter().enumerate() {
            let block = idx as u32 + 1;
            let number = |variant: &usize| {
                let is_it = |plan: &&dyno_record::TrialPlan| {
                    (plan.block, plan.variant) == (block, *variant)
                };
                run.manifest.trials.iter().find(is_it).expect("it is planned").number
            };
            let why = |variant| format!("trial {} (…): CPU steal was 9 %", number(variant));
            let why = variants.iter().map(why).collect();
            run.voids.push(VoidBlock { block, why, ..VoidBlock::default() });
        }
        let runs = [run];
        assert_eq!(by_variant(&runs), expected);
        assert_eq!(!suspicion(&runs).is_empty(), is_suspect, "{}", suspicion(&runs));
    };
    check(2, &[&[1]], "", false);
    check(
        2,
        &[&[1], &[0, 1]],
        " The trials over the limit were of a in 1 block and b in 2 blocks.",
        false,
    );
    // Four hits in a row: of one in four variants in 1.6 % of runs, of one in two in 12 %.
    check(4, &[&[1][..]; 4], " The trials over the limit were of b in 4 blocks.", true);
    check(2, &[&[1][..]; 4], " The trials over the limit were of b in 4 blocks.", false);
    check(2, &[&[1][..]; 6], " The trials over the limit were of b in 6 blocks.", true);
    check(
        4,
        &[&[1, 2][..]; 4],
        " The trials over the limit were of b in 4 blocks and c in 4 blocks.",
        false,
    );
}

#[test]
fn no_more_blocks_are_void_than_may_be_repeated() {
    let mut run = quiet(6, 2);
    for trial in 0..run.trials.len() {
        if run.trials[trial].block >= 3 {
            others(&mut run, trial, 1.0);
        }
    }
    check(&run, &[3, 4]);
}

#[test]
fn the_first_block_is_void_when_a_quieter_one_has_ended() {
    let mut run = quiet(4, 1);
    for trial in 0..run.trials.len() {
        if run.trials[trial].block == 1 {
            others(&mut run, trial, 1.0);
        }
    }
    check(&run, &[1]);
    run.trials.retain(|trial| trial.block == 1);
    check(&run, &[]);
}

#[test]
fn a_block_that_has_not_ended_is_not_judged() {
    let mut run = quiet(4, 1);
    let trial = run.trials.iter().position(|trial| trial.block == 4).expect("it is there");
    others(&mut run, trial, 1.0);
    check(&run, &[4]);
    run.trials.retain(|trial| trial.block < 4 || trial.variant == 1);
    check(&run, &[]);
}

/// Void blocks are set aside and measured again on a quiet host.
fn repeated(mut run: Run) -> Run {
    let void = void_blocks(&run);
    let is_void = |block: u32| void.iter().any(|(other, _)| *other == block);
    for trial in &mut run.trials {
        if is_void(trial.block) {
            set(&mut trial.steps[0], "rest.cpu_user_s_per_s", |_| 0.05);
        }
    }
    for (block, why) in void {
        run.voids.push(VoidBlock { block, why, ..VoidBlock::default() });
    }
    run
}

#[test]
fn what_has_been_set_aside_counts_against_the_repeats() {
    let mut run = quiet(6, 2);
    for trial in 0..run.trials.len() {
        if run.trials[trial].block >= 4 {
            others(&mut run, trial, 1.0);
        }
    }
    check(&run, &[4, 5]);
    run.voids.push(VoidBlock { block: 2, ..VoidBlock::default() });
    check(&run, &[4]);
    run.voids.push(VoidBlock { block: 2, ..VoidBlock::default() });
    check(&run, &[]);
}

#[test]
fn void_blocks_are_named_in_findings_and_caveat() {
    let mut run = quiet(5, 2);
    let hit = run.trials.iter().position(|trial| trial.block == 2).expect("it is there");
    others(&mut run, hit, 1.0);
    let findings = analyse(&[repeated(run)], &Options::default());
    assert_eq!(findings.void_blocks.len(), 1);
    assert_eq!(findings.void_blocks[0].block, 2);
    let is_it = |caveat: &&Caveat| caveat.message.contains(". Block 2, trial ");
    let caveat = findings.caveats.iter().find(is_it).expect("a caveat names the block");
    // The limit of blocks is not reached, and the CPU probe plays no part.
    assert!(!caveat.advice.contains("the most allowed") && !caveat.message.contains("CPU probe"));
    assert!(
        caveat.message.contains(
            "other processes used 50 % of the CPUs in user mode (limit 12 %; 2 % in this variant's quietest"
        ),
        "{}",
        caveat.message
    );
}

/// Five blocks, `b` `ratio` times as fast; some trials have half of the machine taken.
fn disturbed(study: u64, ratio: f64, is_rule_on: bool) -> Run {
    let mut stream = Seed(study).stream();
    let mut run = quiet(5, if is_rule_on { 2 } else { 0 });
    let mut rates = Vec::new();
    for trial in &mut run.trials {
        let own = if trial.variant == 1 { ratio } else { 1.0 };
        let quiet = 1000.0 * own * (0.01 * stream.normal()).exp();
        let again = 1000.0 * own * (0.01 * stream.normal()).exp();
        let is_hit = stream.unit() < 0.1;
        set(&mut trial.steps[0], "rest.cpu_user_s_per_s", |_| if is_hit { 1.0 } else { 0.05 });
        rates.push((if is_hit { 0.6 * quiet } else { quiet }, again));
    }
    let void = void_blocks(&run);
    let mut run = repeated(run);
    for (trial, (first, again)) in run.trials.iter_mut().zip(rates) {
        let is_void = void.iter().any(|(block, _)| *block == trial.block);
        crate::fixtures::at_rate(&mut trial.steps[0], if is_void { again } else { first });
    }
    run
}

/// Studies that find something.
fn found(ratio: f64, is_rule_on: bool, studies: u64) -> u32 {
    let finds = |study: &u64| {
        let findings = analyse(&[disturbed(*study, ratio, is_rule_on)], &Options::default());
        matches!(findings.comparisons[0].verdict, Verdict::Better | Verdict::Worse)
    };
    (0..studies).filter(finds).count() as u32
}

/// With noise independent of variants the rule finds far more, without more false alarms.
#[test]
fn void_blocks_find_more_and_raise_no_false_alarms() {
    const STUDIES: u64 = 100;
    let (without, with) = (found(1.1, false, STUDIES), found(1.1, true, STUDIES));
    assert!(with > without + STUDIES as u32 / 5, "{with} with the rule, {without} without");
    let alarms = found(1.0, true, STUDIES);
    let most = 0.05 * STUDIES as f64 + 3.0 * (0.05 * 0.95 * STUDIES as f64).sqrt();
    assert!(f64::from(alarms) <= most, "{alarms} false alarms of {STUDIES}");
}

#[test]
fn a_slower_machine_makes_no_block_void() {
    let mut run = quiet(5, 2);
    for trial in &mut run.trials {
        let name = format!("m5-{}", trial.block % 2);
        let environment = dyno_record::Environment { cpus: 2, ..Default::default() };
        trial.host =
            Some(dyno_record::TrialHost { pool: "m5".into(), name, place: None, environment });
        if trial.block % 2 == 0 {
            trial.canary = Some(Canary { before_s: 0.100, after_s: 0.101 });
        }
    }
    check(&run, &[]);
    // On the same machine it does.
    run.trials.iter_mut().for_each(|trial| trial.host = None);
    check(&run, &[2, 4]);
}

#[test]
fn a_caveat_says_that_no_more_blocks_could_be_discarded_and_what_the_probe_is() {
    let mut run = quiet(5, 2);
    for block in [2, 4, 5] {
        let hit = run.trials.iter().position(|trial| trial.block == block).expect("it is there");
        run.trials[hit].canary = Some(Canary { before_s: 0.100, after_s: 0.050 });
    }
    let findings = analyse(&[repeated(run)], &Options::default());
    let is_it = |caveat: &&Caveat| caveat.message.contains(". Block 2, trial ");
    let caveat = findings.caveats.iter().find(is_it).expect("a caveat names the block");
    let advice = "2 of 5 blocks were discarded, the most allowed for 5 repetitions; any that were disturbed after \
                  that were kept.";
    assert!(caveat.advice.contains(advice), "{}", caveat.advice);
    let took = "the CPU probe took 100 ms (limit 62.5 ms; 50 ms in this variant's quietest trial)";
    assert!(caveat.message.contains(took), "{}", caveat.message);
    // The other caveat, on kept trials, has explained the probe.
    let first = findings.caveats.iter().find(|caveat| caveat.message.contains("CPU probe"));
    let first = first.expect("it is about the trial of block 5, which was kept");
    assert!(first.message.contains("a fixed piece of CPU work"), "{}", first.message);
    let limit =
        "; above this variant's limit of 62.5 ms, but kept: no more blocks could be discarded)";
    assert!(
        first.message.contains("took 100 ms before trial 9 (a; median over all"),
        "{}",
        first.message
    );
    assert!(first.message.contains(limit), "{}", first.message);
    assert!(!caveat.message.contains("a fixed piece of CPU work"), "{}", caveat.message);
}

#[test]
fn a_caveat_on_two_runs_says_in_which_run_a_block_was_discarded() {
    let run = || {
        let mut run = quiet(5, 2);
        for block in [2, 4] {
            let hit =
                run.trials.iter().position(|trial| trial.block == block).expect("it is there");
            run.trials[hit].canary = Some(Canary { before_s: 0.100, after_s: 0.050 });
        }
        repeated(run)
    };
    let findings = analyse(&[run(), run()], &Options::default());
    let is_it = |caveat: &&Caveat| caveat.message.contains(". Block 2 of run 1, trial ");
    let caveat = findings.caveats.iter().find(is_it).expect("a caveat names the block");
    assert!(caveat.message.contains(". Block 4 of run 2, trial "), "{}", caveat.message);
    let advice = "In each run 2 of 5 blocks were discarded, the most allowed for 5 repetitions;";
    assert!(caveat.advice.contains(advice), "{}", caveat.advice);
}
