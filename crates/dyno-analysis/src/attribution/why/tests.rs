//! Differences whose cause is planted, and what the record shows of it.

use expect_test::{Expect, expect};

use crate::fixtures::{run, wobble};
use crate::statistics::Call;
use crate::{Findings, Options, analyse};

/// In µs for each transaction.
const CPU: f64 = 600.0;

type Readings<'a> = &'a [(&'a str, &'a dyn Fn(usize, f64) -> f64)];

/// Of `a` and `b` at one load level, readings as rates from variant and transactions per second.
fn found(rates: [f64; 2], readings: Readings<'_>) -> Findings {
    noisy(1.0, rates, readings)
}

fn noisy(noise: f64, rates: [f64; 2], readings: Readings<'_>) -> Findings {
    let throughput = |variant: usize, repetition: u32| {
        rates[variant] * (1.0 + noise * (wobble(variant, 0, repetition) - 1.0))
    };
    let mut run =
        run(&["a", "b"], &[4], 5, |variant, _, repetition| throughput(variant, repetition));
    for trial in &mut run.trials {
        let (variant, repetition) = (trial.variant, trial.repetition - 1);
        let rate = throughput(variant, repetition);
        let step = &mut trial.steps[0];
        let n = step.intervals.start_s.len();
        for (place, (name, value)) in readings.iter().enumerate() {
            let noise = 1.0 + (wobble(variant, place + 1, repetition) - 1.0) / 5.0;
            let column = vec![Some(value(variant, rate) * noise); n];
            step.readings.insert((*name).to_owned(), column);
        }
    }
    analyse(&[run], &Options::default())
}

/// What is named, what is shown to be the same, and what differs the other way.
#[track_caller]
fn check(findings: &Findings, named: &[&str], same: &[&str], others: &[&str]) {
    let [why] = findings.why.as_slice() else { panic!("{:?}", findings.why) };
    let names = |is_it: &dyn Fn(Call) -> bool| -> Vec<&str> {
        let such = why.others.iter().filter(|one| is_it(one.call));
        such.map(|one| one.name.as_str()).collect()
    };
    let reasons: Vec<&str> = why.reasons.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(reasons, named, "{why:?}");
    assert_eq!(names(&|call| call == Call::Inside), same, "{why:?}");
    assert_eq!(names(&|call| matches!(call, Call::Higher | Call::Lower)), others, "{why:?}");
}

/// The readings of a server that uses as much for each transaction with both variants.
fn cpu(_: usize, rate: f64) -> f64 {
    CPU * 1e-6 * rate
}

fn writes(_: usize, rate: f64) -> f64 {
    0.8 * rate
}

#[test]
fn what_costs_more_goes_with_what_is_slower() {
    let reads = |variant: usize, rate: f64| [0.5, 1.0][variant] * rate;
    let findings = found(
        [1000.0, 700.0],
        &[
            ("server.cpu_s_per_s", &cpu),
            ("data_disk.reads_per_s", &reads),
            ("data_disk.writes_per_s", &writes),
        ],
    );
    check(
        &findings,
        &["reads.data"],
        &["cpu.server", "writes.data", "written_bytes", "statements"],
        &[],
    );
    let why = &findings.why[0];
    let effect = &why.reasons[0].effect;
    assert!((effect.value - 100.0).abs() < 5.0 && effect.low.unwrap() > 80.0, "{effect:?}");
    // All disks together, of which the data disk is one, are not looked at besides.
    assert!(why.others.iter().all(|one| one.name != "reads"), "{why:?}");
    let faster = found(
        [700.0, 1000.0],
        &[("data_disk.reads_per_s", &|variant, rate| [1.0, 0.5][variant] * rate)],
    );
    assert_eq!(faster.why[0].reasons[0].name, "reads.data");
}

#[test]
fn what_costs_less_is_no_reason_to_be_slower() {
    let reads = |variant: usize, rate: f64| [1.0, 0.5][variant] * rate;
    let readings: [(&str, &dyn Fn(usize, f64) -> f64); 2] =
        [("server.cpu_s_per_s", &cpu), ("data_disk.reads_per_s", &reads)];
    let findings = found([1000.0, 700.0], &readings);
    check(&findings, &[], &["cpu.server", "written_bytes", "statements"], &["reads.data"]);
}

#[test]
fn constant_background_work_is_no_reason_to_be_slower() {
    let background = |per_s: [f64; 2]| {
        let purge = move |variant: usize, _: f64| per_s[variant];
        let whole = move |variant: usize, rate: f64| cpu(variant, rate) + per_s[variant];
        found(
            [1000.0, 700.0],
            &[
                ("server.cpu_s_per_s", &whole),
                ("server.foreground.cpu_s_per_s", &cpu),
                ("server.background.cpu_s_per_s", &purge),
                ("server.thread.purge.cpu_s_per_s", &purge),
            ],
        )
    };
    // For each transaction it is 43 % more in either case.
    let names = |findings: &Findings| -> Vec<String> {
        findings.why[0].reasons.iter().map(|one| one.name.clone()).collect()
    };
    assert_eq!(names(&background([0.2, 0.2])), [""; 0]);
    let doubled = names(&background([0.2, 0.4]));
    assert!(doubled[0].starts_with("cpu.server.") && doubled[1] == "cpu.server", "{doubled:?}");
    assert_eq!(doubled.len(), 2);
}

#[test]
fn a_part_that_is_too_small_to_matter_is_not_named() {
    let purge = |variant: usize, rate: f64| [0.5e-6, 2e-6][variant] * rate;
    let readings: [(&str, &dyn Fn(usize, f64) -> f64); 2] =
        [("server.cpu_s_per_s", &cpu), ("server.thread.purge.cpu_s_per_s", &purge)];
    let findings = found([1000.0, 700.0], &readings);
    // The fixture writes 5 and 7 bytes for a transaction.
    let same = ["cpu.server", "written_bytes", "statements", "cpu.server.thread.purge"];
    check(&findings, &[], &same, &[]);
    let rare = |variant: usize, rate: f64| [1e-4, 9e-4][variant] * rate;
    let readings: [(&str, &dyn Fn(usize, f64) -> f64); 2] =
        [("server.cpu_s_per_s", &cpu), ("data_disk.reads_per_s", &rare)];
    let findings = found([1000.0, 700.0], &readings);
    check(&findings, &[], &["cpu.server", "reads.data", "written_bytes", "statements"], &[]);
}

#[test]
fn reads_where_there_were_none_have_no_ratio() {
    let reads = |variant: usize, rate: f64| [0.0, 0.5][variant] * rate;
    let readings: [(&str, &dyn Fn(usize, f64) -> f64); 2] =
        [("server.cpu_s_per_s", &cpu), ("data_disk.reads_per_s", &reads)];
    let findings = found([1000.0, 700.0], &readings);
    check(&findings, &["reads.data"], &["cpu.server", "written_bytes", "statements"], &[]);
    let effect = &findings.why[0].reasons[0].effect;
    assert!(effect.unit.is_empty() && (effect.value - 0.5).abs() < 0.01, "{effect:?}");
}

#[test]
fn no_difference_needs_no_reason_and_a_record_without_readings_has_none() {
    let same: [(&str, &dyn Fn(usize, f64) -> f64); 1] = [("server.cpu_s_per_s", &cpu)];
    assert_eq!(found([1000.0, 1000.0], &same).why, []);
    let mut run = run(&["a", "b"], &[4], 5, |variant, _, repetition| {
        [1000.0, 700.0][variant] * wobble(variant, 0, repetition)
    });
    for step in run.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        step.readings.clear();
        step.server_cpu_s = None;
    }
    assert_eq!(analyse(&[run], &Options::default()).why, []);
}

#[track_caller]
fn says(findings: &Findings, expected: &Expect) {
    expected.assert_eq(&findings.answer.why.join("\n"));
}

#[test]
fn sentences() {
    let reads = |variant: usize, rate: f64| [0.5, 1.2][variant] * rate;
    let more = |variant: usize, rate: f64| [1.0, 1.12][variant] * cpu(variant, rate);
    let rest = |_: usize, _: f64| 1.5;
    says(
        &found(
            [1000.0, 700.0],
            &[
                ("server.cpu_s_per_s", &more),
                ("data_disk.reads_per_s", &reads),
                ("data_disk.writes_per_s", &writes),
            ],
        ),
        &expect![
            "b vs. a at 4 clients: throughput −30.0 % (n = 5) goes with reads from the data disk 2.40× (2.39–2.41) and server CPU +11.9 % (+11.4 to +12.5) per transaction (95 % CIs, n = 5, corrected for 4 uses in all comparisons); unchanged: writes to the data disk −0.1 % (−0.4 to +0.3) per transaction (95 % CIs, n = 5)."
        ],
    );
    says(
        &found([1000.0, 700.0], &[("server.cpu_s_per_s", &cpu)]),
        &expect![
            "b vs. a at 4 clients: throughput −30.0 % (n = 5), with which none of 3 uses compared is shown to go; unchanged: server CPU −0.1 % (−0.4 to +0.3) and statements 0.0 % (no spread) per transaction (95 % CIs, n = 5)."
        ],
    );
    // Undecided, on a machine where others work.
    let open = |readings: Readings<'_>| noisy(6.0, [1000.0, 1040.0], readings);
    says(
        &open(&[
            ("server.cpu_s_per_s", &cpu),
            ("data_disk.reads_per_s", &|_, rate| 0.5 * rate),
            ("data_disk.writes_per_s", &writes),
            ("rest.cpu_s_per_s", &rest),
        ]),
        &expect![
            "b vs. a at 4 clients: throughput undecided, but unchanged: server CPU −0.1 % (−0.4 to +0.3), reads from the data disk −0.1 % (−0.4 to +0.2) and writes to the data disk −0.1 % (−0.4 to +0.3) per transaction (95 % CIs, n = 5): the server did the same work; everything else on the machine, interrupts included, used 1.5 (b) and 1.5 (a) of 4 CPUs."
        ],
    );
    says(
        &open(&[("server.cpu_s_per_s", &more)]),
        &expect![
            "b vs. a at 4 clients: throughput undecided, but different: server CPU +11.9 % (+11.5 to +12.4) per transaction (95 % CIs, n = 5, corrected for 2 uses in all comparisons); unchanged: statements 0.0 % (no spread) per transaction (95 % CIs, n = 5)."
        ],
    );
    // Something else of the server may differ.
    let findings = open(&[
        ("server.cpu_s_per_s", &cpu),
        ("data_disk.reads_per_s", &|_, rate| 0.5 * rate),
        ("data_disk.writes_per_s", &|_, rate| rate * rate / 1000.0),
    ]);
    let undecided = findings.why[0].others.iter().filter(|one| one.call == Call::Undecided);
    assert!(undecided.count() > 0, "{:?}", findings.why);
    assert!(!findings.answer.why[0].contains("the same work"), "{:?}", findings.answer.why);
    // Undecided both.
    says(&open(&[("server.cpu_s_per_s", &|variant, _| [0.6, 0.603][variant])]), &expect![[""]]);
}
