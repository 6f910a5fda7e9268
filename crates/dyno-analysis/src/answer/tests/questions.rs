//! The first sentence of every question, however its data come out, in `sentences.txt` (`UPDATE_EXPECT=1` rewrites
//! it, for review); and that the title has no part in it.

use dyno_record::{
    AuditRow, EncodedCounts, Fault, LevelRecord, Price, RequirementRecord, Run, StepSummary,
};
use dyno_units::reading::known;
use dyno_units::reading::prelude::*;
use dyno_units::{Direction, MetricId, Question, Unit, metric};
use expect_test::{expect, expect_file};

use super::{noisy, with_durability};
use crate::fixtures::{make_open, step_summary, wobble};
use crate::{Claim, Options, Verdict, analyse};

/// A run that has what this question is answered from; the second variant does so many times as much as the first
/// and the third, where it scales only with more clients.
fn asked(question: Question, names: &[&str], repetitions: u32, times: f64) -> Run {
    let clients: &[u64] = match question {
        Question::Scales | Question::Saturates | Question::Limit => &[1, 4, 16],
        _ => &[4],
    };
    let first = if question == Question::Scales { 1.0 } else { times };
    let rates = [
        [1000.0, 2000.0, 3000.0],
        [1000.0 * first, 2000.0 * times, 3000.0 * times],
        [1000.0, 2000.0, 3000.0],
    ];
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
        Question::Limit => run.manifest.requirements = vec![mean_at_most(3.0)],
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
        Question::Space | Question::Snapshots => figures(&mut run, times),
        Question::Recovers => {
            in_seconds(&mut run, |step, variant| {
                let away = (20.0 * if variant == 0 { 1.0 } else { times }).round() as usize;
                let is_away = |tenth: &usize| (40..40 + away).contains(tenth);
                let tenths = (0..10 * SECONDS).map(|tenth| if is_away(&tenth) { 0 } else { 10 });
                let tenths: Vec<u32> = tenths.collect();
                step.kinds[0].commits_100ms = Some(EncodedCounts::encode(&tenths));
                let (kind, member) = ("kill".to_owned(), "server".to_owned());
                let answered_s = Some(4.0 + away as f64 / 10.0);
                step.faults =
                    vec![Fault { kind, member, began_s: 4.0, answered_s, ..Fault::default() }];
            });
        }
        Question::Steady => {
            in_seconds(&mut run, |step, variant| {
                // High and low in turn.
                let low = 1_000.0 / if variant == 0 { 1.0 } else { times };
                let second = |i: usize| if i.is_multiple_of(2) { 1_000.0 } else { low };
                step.intervals.throughput = (0..SECONDS).map(second).collect();
                step.readings.clear();
            });
        }
        Question::Best | Question::Worse | Question::Same => {}
        Question::Scales | Question::Saturates => {}
    }
    run
}

/// Of the storage, by the variant's factor.
fn figures(run: &mut Run, times: f64) {
    for trial in &mut run.trials {
        let lower = Direction::Lower;
        let figures =
            [("data.on_disk", Unit::Bytes, 1e8), ("volume.snapshot_time", Unit::Seconds, 0.1)];
        let figures = figures.into_iter().chain([("volume.clone_time", Unit::Seconds, 0.2)]);
        let factor = if trial.variant == 0 { 1.0 } else { times };
        for (id, unit, value) in figures {
            trial.metrics.push(metric(id, unit, lower, id, "x").secondary());
            // Times are without noise.
            let noise = match id {
                "data.on_disk" => wobble(trial.variant, 0, trial.repetition - 1),
                _ => 1.0,
            };
            for step in &mut trial.steps {
                step.figures.insert(MetricId::new(id), value * factor * noise);
            }
        }
    }
}

/// Of a measurement; more than the minimum for a judgement of its course.
const SECONDS: usize = 31;

fn in_seconds(run: &mut Run, change: impl Fn(&mut StepSummary, usize)) {
    for trial in &mut run.trials {
        for step in &mut trial.steps {
            step.measured_s = SECONDS as f64;
            step.intervals.start_s = (0..SECONDS).map(|second| second as f64).collect();
            step.intervals.throughput = vec![1_000.0; SECONDS];
            change(step, trial.variant);
        }
    }
}

fn mean_at_most(ms: f64) -> RequirementRecord {
    RequirementRecord {
        text: format!("mean ≤ {ms} ms"),
        measure: "mean".to_owned(),
        bound: ms * 1e3,
        is_in_own_unit: false,
        is_least: None,
    }
}

fn readings(run: &mut Run, name: &str, values: [f64; 2]) {
    for trial in &mut run.trials {
        for step in &mut trial.steps {
            let n = step.intervals.start_s.len();
            step.readings.insert(name.to_owned(), vec![Some(values[trial.variant]); n]);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Case {
    Decided,
    Undecided,
    Equal,
    /// What is required is not met, and decided otherwise.
    NotMet,
    OneVariant,
    /// A kind of transaction never commits, and the rest is decided.
    FailedKind,
    /// Two variants, each measured once.
    Once,
}

const CASES: [(&str, Case); 7] = [
    ("decided", Case::Decided),
    ("undecided", Case::Undecided),
    ("equal", Case::Equal),
    ("not met", Case::NotMet),
    ("one variant", Case::OneVariant),
    ("failed kind", Case::FailedKind),
    ("once", Case::Once),
];

/// Why a question is never answered so; none if it can be.
fn never(question: Question, case: Case) -> Option<&'static str> {
    use Question::{Backlog, Cost, Limit, Linear, Reads, Recovers};
    use Question::{Saturates, Scales, Snapshots, Steady};
    let is_figure = matches!(question, Reads | Snapshots | Backlog | Recovers | Steady);
    match (question, case) {
        (_, Case::Undecided | Case::Equal) if is_figure => Some("figures have no verdict"),
        (Cost | Scales, Case::Equal) => Some("the first is ahead of the others or not shown to be"),
        (Linear, Case::Equal) => {
            Some("linear growth is not shown to be superlinear, and no more is said")
        }
        (Saturates | Limit, Case::Equal) => {
            Some("each variant has its own load, without a comparison")
        }
        _ => None,
    }
}

fn run_of(question: Question, case: Case) -> Run {
    let names: &[&str] = match (question, case) {
        (_, Case::OneVariant) => &["a"],
        (Question::Worse | Question::Same, _) => &["a", "b", "c"],
        _ => &["a", "b"],
    };
    let (repetitions, times) = match (case, question) {
        (Case::Equal, _) => (10, 1.001),
        (Case::OneVariant, _) => (3, 1.0),
        (Case::Undecided, Question::Linear) => (3, 2.0),
        (Case::Undecided, Question::Scales) => (3, 1.0),
        (Case::Undecided, _) => (3, 1.03),
        (Case::Once, Question::Linear) => (1, 2.5),
        (Case::Once, _) => (1, 1.5),
        (_, Question::Linear) => (5, 2.5),
        (_, Question::Worse | Question::Blocks) => (5, 0.7),
        _ => (5, 1.5),
    };
    let mut run = asked(question, names, repetitions, times);
    match (case, question) {
        (Case::NotMet, _) => run.manifest.requirements = vec![mean_at_most(0.1)],
        // The mean of one client, give or take the noise.
        (Case::Undecided, Question::Limit) => run.manifest.requirements = vec![mean_at_most(1.23)],
        (Case::Undecided, Question::Saturates) => {
            // Response times of one repetition do not turn up.
            for trial in run.trials.iter_mut().filter(|trial| trial.repetition == 2) {
                for (step, clients) in trial.steps.iter_mut().zip([1, 4, 16]) {
                    *step = step_summary(step.step, 1_000.0 * f64::from(clients), 0.001);
                }
            }
        }
        (Case::FailedKind, _) => {
            let row = |name: &str, measured: &str, pass| AuditRow {
                name: name.to_owned(),
                expected: String::new(),
                measured: measured.to_owned(),
                pass,
                is_undecided: false,
            };
            for trial in &mut run.trials {
                trial.audit = vec![row("rows of sbtest1", "50000", true)];
                let failed = row(AuditRow::KINDS_COMMIT, "t3 0 of 1671 attempts", false);
                trial.audit.extend((trial.variant == 1).then_some(failed));
            }
        }
        _ => {}
    }
    run
}

#[test]
fn every_question_has_its_first_sentence() {
    let mut all = String::new();
    for (word, question) in Question::ALL {
        all += &format!("{word}\n");
        for (name, case) in CASES {
            let text = match never(question, case) {
                Some(why) => format!("– ({why})"),
                None => {
                    let answer = analyse(&[run_of(question, case)], &Options::default()).answer;
                    let has_line = matches!(case, Case::NotMet | Case::FailedKind);
                    let line = answer.lines.first().filter(|_| has_line);
                    line.map_or(answer.headline.clone(), |line| {
                        format!("{} {line}", answer.headline)
                    })
                }
            };
            all += &format!("    {name}: {text}\n");
        }
    }
    expect_file!["sentences.txt"].assert_eq(&all);
}

/// The claims are what the sentence says.
#[test]
fn a_headline_that_compares_has_its_comparisons_as_data() {
    let claims = |question: Question, case: Case| {
        let answer = analyse(&[run_of(question, case)], &Options::default()).answer;
        assert_eq!(answer.question, Some(question));
        let claim = |claim: &Claim| (claim.variant, claim.other, claim.verdict);
        answer.claims.iter().map(claim).collect::<Vec<_>>()
    };
    use Verdict::{Better, Inconclusive, NoDifference, Worse};
    assert_eq!(claims(Question::Best, Case::Decided), [(1, 0, Better)]);
    assert_eq!(claims(Question::Best, Case::Undecided), [(1, 0, Inconclusive)]);
    assert_eq!(claims(Question::Worse, Case::Decided), [(1, 0, Worse), (2, 0, NoDifference)]);
    assert_eq!(claims(Question::Durability, Case::Decided), [(0, 1, Worse)]);
    assert_eq!(claims(Question::Linear, Case::Decided), [(1, 0, Better)]);
    assert_eq!(claims(Question::Space, Case::Decided), [(0, 1, Better)]);
    assert_eq!(claims(Question::Cost, Case::Decided), [(1, 0, Better)]);
    assert_eq!(claims(Question::Cost, Case::Undecided), [(1, 0, Inconclusive)]);
    assert_eq!(claims(Question::Scales, Case::Decided), [(1, 0, Better)]);
    assert_eq!(claims(Question::Scales, Case::OneVariant), [(0, 0, Better)]);
    assert_eq!(claims(Question::Scales, Case::Once), [(1, 0, Inconclusive)]);
    assert_eq!(claims(Question::Steady, Case::Decided), []);
}

#[test]
fn claims_across_loads_say_where_each_is() {
    let claim = |question: Question, case: Case| {
        let answer = analyse(&[run_of(question, case)], &Options::default()).answer;
        let [claim] = &answer.claims[..] else { panic!("{:?}", answer.claims) };
        claim.clone()
    };
    let cost = claim(Question::Cost, Case::Decided);
    assert_eq!(cost.metric, MetricId::new("money_per_million"));
    // One and a half times the work for as much money.
    let (low, high) = cost.relative.low.zip(cost.relative.high).expect("it has an interval");
    assert!(low < -33.0 && -33.5 < high && low < cost.relative.value, "{cost:?}");
    assert!(cost.relative.value < high && high < 0.0, "{cost:?}");
    let furthest = claim(Question::Scales, Case::Decided);
    assert_eq!(furthest.metric, MetricId::new("speed_up"));
    assert_eq!((&furthest.steps[..], &furthest.other_steps[..]), (&[2][..], &[2][..]));
    let own = claim(Question::Scales, Case::OneVariant);
    assert_eq!((&own.steps[..], &own.other_steps[..]), (&[2][..], &[0][..]));
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
        let mut run = asked(Question::Saturates, &["a", "b"], 5, 1.5);
        run.manifest.questions = questions.to_vec();
        analyse(&[run], &Options::default()).answer
    };
    let both = answer(&[Question::Worse, Question::Scales]);
    assert!(both.headline.starts_with("b is faster than a at all 3"), "{}", both.headline);
    let undecided = "Undecided which scales furthest: ";
    assert!(both.lines[0].starts_with(undecided), "{:?}", both.lines);
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
