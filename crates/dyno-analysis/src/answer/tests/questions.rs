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
                let figures = [("data.on_disk", Unit::Bytes, 1e8), ("volume.snapshot_time", Unit::Seconds, 0.1)];
                let figures = figures.into_iter().chain([("volume.clone_time", Unit::Seconds, 0.2)]);
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
    let expected: Expect = expect![[""]];
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
