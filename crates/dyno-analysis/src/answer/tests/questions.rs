//! The first sentence of every question, where it is decided, undecided, equal, or about one variant; and that
//! the title has no part in it.

use dyno_record::{LevelRecord, Price, RequirementRecord, Run};
use dyno_units::reading::known;
use dyno_units::reading::prelude::*;
use dyno_units::{Direction, MetricId, Question, Unit, metric};
use expect_test::{Expect, expect};

use super::{noisy, with_durability};
use crate::fixtures::make_open;
use crate::{Options, analyse};

/// A run that has what this question is answered from; the second variant does so many times as much as the first.
fn asked(question: Question, names: &[&str], repetitions: u32, times: f64) -> Run {
    let rates = [[1000.0, 2000.0, 3000.0], [1000.0 * times, 2000.0 * times, 3000.0 * times]];
    let rates: Vec<&[f64]> = rates.iter().map(|rates| &rates[..]).collect();
    let clients: &[u64] = match question {
        Question::Scales | Question::Saturates | Question::Limit => &[1, 4, 16],
        _ => &[4],
    };
    let rates: Vec<&[f64]> = rates.iter().map(|rates| &rates[..clients.len()]).collect();
    let mut run = noisy(names, clients, repetitions, &rates[..names.len()]);
    run.manifest.threshold = 0.05;
    run.manifest.questions = vec![question];
    match question {
        Question::Linear => {
            for (idx, variant) in run.manifest.variants.iter_mut().enumerate() {
                let (factor, level) = ("database.shards".to_owned(), (idx + 1).to_string());
                variant.levels = vec![LevelRecord { factor, level }];
            }
        }
        Question::Limit => {
            run.manifest.requirements = vec![RequirementRecord {
                text: "mean ≤ 3 ms".to_owned(),
                measure: "mean".to_owned(),
                bound: 3000.0,
                is_in_own_unit: false,
                is_least: None,
            }];
        }
        Question::Cost => {
            for variant in &mut run.manifest.variants {
                let currency = "USD".to_owned();
                variant.price_per_hour = Some(Price { amount: 1.0, currency });
            }
        }
        Question::Durability => {
            run = with_durability(run, &["every commit is synced", "not synced"]);
        }
        Question::Blocks => make_open(&mut run),
        Question::Reads => readings(&mut run, "data_disk.reads_per_s", [1000.0, 1000.0 * times]),
        Question::Backlog => {
            readings(&mut run, known::DEBT_GAUGE, [1.0, times]);
            let meaning = reading(known::DEBT_GAUGE, Number, "deferred work", "deferred work");
            let meaning = meaning.topic(Topic::Debt).role(Role::DebtGauge);
            for trial in &mut run.trials {
                trial.meanings.insert(known::DEBT_GAUGE.to_owned(), meaning.clone());
            }
        }
        Question::Space | Question::Snapshots => {
            for trial in &mut run.trials {
                let lower = Direction::Lower;
                let figures = [
                    ("data.on_disk", Unit::Bytes, 1e8),
                    ("volume.snapshot_time", Unit::Seconds, 0.1),
                ];
                let figures =
                    figures.into_iter().chain([("volume.clone_time", Unit::Seconds, 0.2)]);
                let factor = if trial.variant == 0 { 1.0 } else { times };
                for (id, unit, value) in figures {
                    trial.metrics.push(metric(id, unit, lower, id, "x").secondary());
                    for step in &mut trial.steps {
                        step.figures.insert(MetricId::new(id), value * factor);
                    }
                }
            }
        }
        Question::Best | Question::Worse | Question::Same | Question::Scales => {}
        Question::Saturates | Question::Recovers | Question::Steady => {}
    }
    run
}

fn readings(run: &mut Run, name: &str, values: [f64; 2]) {
    for trial in &mut run.trials {
        for step in &mut trial.steps {
            let n = step.intervals.start_s.len();
            step.readings.insert(name.to_owned(), vec![Some(values[trial.variant]); n]);
        }
    }
}

fn headline(run: Run) -> String {
    analyse(&[run], &Options::default()).answer.headline
}

#[test]
fn every_question_has_its_first_sentence() {
    let two = ["a", "b"];
    let mut all = String::new();
    for (word, question) in Question::ALL {
        // How long faults last is recorded by the lab, and how even the seconds are by longer steps.
        if matches!(question, Question::Recovers | Question::Steady) {
            continue;
        }
        let cases = [
            ("decided", headline(asked(question, &two, 5, 1.5))),
            ("undecided", headline(asked(question, &two, 3, 1.03))),
            ("equal", headline(asked(question, &two, 10, 1.001))),
            ("one variant", headline(asked(question, &two[..1], 3, 1.0))),
        ];
        all += &format!("{word}\n");
        for (case, text) in cases {
            all += &format!("    {case}: {text}\n");
        }
    }
    let expected: Expect = expect![[r#"
        best
            decided: b is 49.9 % faster than a: 1,500 transactions/s against 1,000/s at 4 clients.
            undecided: Undecided: b may be 0.6 % slower or 6.3 % faster than a at 4 clients (measured: +2.8 %).
            equal: No difference: b and a are within 5 % of each other at 4 clients.
            one variant: a does 1,000 transactions/s at 4 clients, p95 7.73 ms.
        worse
            decided: b is 49.9 % faster than a: 1,500 transactions/s against 1,000/s at 4 clients.
            undecided: Undecided: b may be 0.6 % slower or 6.3 % faster than a at 4 clients (measured: +2.8 %).
            equal: No difference: b and a are within 5 % of each other at 4 clients.
            one variant: a does 1,000 transactions/s at 4 clients, p95 7.73 ms.
        same
            decided: b is 49.9 % faster than a: 1,500 transactions/s against 1,000/s at 4 clients.
            undecided: Undecided: b may be 0.6 % slower or 6.3 % faster than a at 4 clients (measured: +2.8 %).
            equal: No difference: b and a are within 5 % of each other at 4 clients.
            one variant: a does 1,000 transactions/s at 4 clients, p95 7.73 ms.
        scales
            decided: Highest speed-up from 1 to 16 clients: a 3.00×, still rising; b 2.99×, still rising.
            undecided: Highest speed-up from 1 to 16 clients: b 3.00×, still rising; a 3.00×, still rising.
            equal: Highest speed-up from 1 to 16 clients: a 3.00×, still rising; b 3.00×, still rising.
            one variant: a scales to 3.00× from 1 to 16 clients and is still rising.
        linear
            decided: Throughput is sublinear in shards: +49.9 % at 2 (95 % CI +47.4 to +52.5 %); n = 5.
            undecided: Throughput is sublinear in shards: +2.8 % at 2 (95 % CI −0.6 to +6.3 %); n = 3.
            equal: Throughput is sublinear in shards: +0.1 % at 2 (95 % CI −0.8 to +1.1 %); n = 10.
            one variant: a does 1,000 transactions/s at 4 clients, p95 7.73 ms.
        saturates
            decided: Response time turns up between 1 and 4 clients with a (5.33× as long at 16 clients as at 1) and between 1 and 4 clients with b (5.35×).
            undecided: Response time turns up between 1 and 4 clients with a (5.34× as long at 16 clients as at 1) and between 1 and 4 clients with b (5.33×).
            equal: Response time turns up between 1 and 4 clients with a (5.33× as long at 16 clients as at 1) and between 1 and 4 clients with b (5.33×).
            one variant: Response time of a turns up between 1 and 4 clients: at 16 clients it is 5.34× that at 1 client.
        limit
            decided: Highest throughput shown within mean ≤ 3 ms: b 3,000 transactions/s at 4 clients; a 2,000/s at 4 clients.
            undecided: Highest throughput shown within mean ≤ 3 ms: b 2,060 transactions/s at 4 clients; a 2,000/s at 4 clients.
            equal: Highest throughput shown within mean ≤ 3 ms: b 2,000 transactions/s at 4 clients; a 2,000/s at 4 clients.
            one variant: Highest throughput shown within mean ≤ 3 ms: a 2,000 transactions/s at 4 clients.
        cost
            decided: b is cheapest: 0.185 USD per million transactions at 4 clients; a 0.277.
            undecided: Undecided which is cheapest: b measured 0.27 USD per million transactions at 4 clients; a 0.277.
            equal: Undecided which is cheapest: b measured 0.277 USD per million transactions at 4 clients; a 0.278.
            one variant: a costs 0.277 USD per million transactions at 4 clients.
        reads
            decided: Data disk reads per transaction at 4 clients: a 0.999, b 0.999.
            undecided: Data disk reads per transaction at 4 clients: a 0.999, b 1.
            equal: Data disk reads per transaction at 4 clients: a 1, b 1.
            one variant: Data disk reads per transaction at 4 clients: a 0.999.
        space
            decided: a takes the least disk space: 100 MB, 33 % less than b (150 MB).
            undecided: a takes the least disk space: 100 MB, 2.9 % less than b (103 MB).
            equal: The data take about the same disk space in all variants: 100 MB to 100 MB.
            one variant: a does 1,000 transactions/s at 4 clients, p95 7.73 ms.
        durability
            decided: Syncing every commit cuts throughput by 33.3 % (95 % CI 32.1–34.4 %) at 4 clients: 1,000 transactions/s with a, 1,500/s with b (which risks corruption).
            undecided: Undecided: b may be 0.6 % slower or 6.3 % faster than a at 4 clients (measured: +2.8 %).
            equal: Syncing every commit costs no measurable throughput at 4 clients: 1,000 transactions/s with a, 1,000/s with b (which risks corruption).
            one variant: a does 1,000 transactions/s at 4 clients, p95 7.73 ms.
        snapshots
            decided: A snapshot takes 100 ms to 150 ms, a clone of it 200 ms to 300 ms.
            undecided: A snapshot takes 100 ms to 103 ms, a clone of it 200 ms to 206 ms.
            equal: A snapshot takes 100 ms, a clone of it 200 ms.
            one variant: A snapshot takes 100 ms, a clone of it 200 ms.
        backlog
            decided: Deferred work at the end (4 clients), relative to the level at which an engine counts as caught up: b 1.5×, a 1×.
            undecided: Deferred work at the end (4 clients), relative to the level at which an engine counts as caught up: b 1.03×, a 1×.
            equal: Deferred work at the end (4 clients), relative to the level at which an engine counts as caught up: b 1×, a 1×.
            one variant: Deferred work at the end (4 clients), relative to the level at which an engine counts as caught up: a 1×.
        blocks
            decided: The p95 response time of b is 33.2 % shorter than that of a: 5.17 ms against 7.74 ms at 400/s offered.
            undecided: Undecided: the p95 response time of b may be 5.0 % shorter or 0.1 % longer than that of a at 400/s offered (measured: −2.5 %).
            equal: No difference: b and a are within 5 % of each other in p95 response time at 400/s offered.
            one variant: a does 1,000 transactions/s at 400/s offered, p95 7.73 ms.
    "#]];
    expected.assert_eq(&all);
}

#[test]
fn the_title_has_no_part_in_the_answer() {
    let titles = [
        "x",
        "Where is it saturated, what does durability cost, and which is fastest?",
        "Wo ist die Sättigung erreicht, und was kosten sichere Commits?",
        "¿Cuál es la base de datos más rápida?",
    ];
    for (_, question) in Question::ALL {
        let answers = titles.map(|title| {
            let mut run = asked(question, &["a", "b"], 3, 1.5);
            run.manifest.title = title.to_owned();
            analyse(&[run], &Options::default()).answer
        });
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    }
}

#[test]
fn several_questions_are_answered_in_their_order() {
    let answer = |questions: &[Question]| {
        let mut run = asked(Question::Scales, &["a", "b"], 5, 1.5);
        run.manifest.questions = questions.to_vec();
        analyse(&[run], &Options::default()).answer
    };
    let both = answer(&[Question::Worse, Question::Scales]);
    assert!(both.headline.starts_with("b is faster than a at all 3"), "{}", both.headline);
    assert!(both.lines[0].starts_with("Highest speed-up"), "{:?}", both.lines);
    let scales = answer(&[Question::Scales, Question::Worse]);
    assert_eq!([&scales.headline, &scales.lines[0]], [&both.lines[0], &both.headline]);
    // A record of another origin may repeat one.
    assert_eq!(answer(&[Question::Worse; 100_000]), answer(&[Question::Worse]));
}

#[test]
fn a_question_without_data_is_said_to_have_no_answer() {
    let mut run = asked(Question::Best, &["a", "b"], 5, 1.5);
    run.manifest.questions = vec![Question::Linear, Question::Space];
    let answer = analyse(&[run], &Options::default()).answer;
    assert!(answer.headline.starts_with("b is 49.9 % faster"), "{}", answer.headline);
    expect!["Not answered, as the run lacks what they need: `linear` and `space`."]
        .assert_eq(&answer.lines[0]);
}
