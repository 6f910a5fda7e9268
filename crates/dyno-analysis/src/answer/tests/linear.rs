//! Whether throughput grows faster than what is varied.

use expect_test::{Expect, expect};

use dyno_record::LevelRecord;
use dyno_units::Question;

use crate::fixtures::{run, wobble};
use crate::{Options, analyse};

/// The headline, for these levels and throughputs.
#[track_caller]
fn check_question(question: Question, levels: &[(&str, f64)], expected: &Expect) {
    let names: Vec<&str> = levels.iter().map(|(level, _)| *level).collect();
    let mut run = run(&names, &[8], 5, |variant, step, repetition| {
        levels[variant].1 * wobble(variant, step, repetition)
    });
    run.manifest.questions = vec![question];
    for (variant, (level, _)) in run.manifest.variants.iter_mut().zip(levels) {
        let factor = "database.shards".to_owned();
        variant.levels = vec![LevelRecord { factor, level: (*level).to_owned() }];
    }
    let answer = analyse(&[run], &Options::default()).answer;
    let words = answer.headline.split_whitespace().count();
    // Of percentages, signs and units count as well.
    assert!(words <= 32, "{words} words: {}", answer.headline);
    expected.assert_eq(&answer.headline);
}

#[track_caller]
fn check(levels: &[(&str, f64)], expected: &Expect) {
    check_question(Question::Linear, levels, expected);
}

#[test]
fn growth_is_told_where_a_study_asks_how_throughput_scales() {
    let check = |levels, expected: &Expect| check_question(Question::Scales, levels, expected);
    check(
        &[("1", 100.0), ("2", 150.0), ("3", 187.0)],
        &expect![
            "Throughput by number of shards, relative to 1: +49.9 % at 2 (95 % CI +47.8 to +52.1 %), +86.3 % at 3 (+83.8 to +88.9 %); n = 5."
        ],
    );
    check(
        &[("1", 100.0), ("2", 101.0), ("3", 100.0)],
        &expect![
            "Throughput by number of shards, relative to 1: +0.9 % at 2 (95 % CI −0.5 to +2.4 %), −0.4 % at 3 (−1.8 to +1.0 %); n = 5."
        ],
    );
}

#[test]
fn growth_is_compared_with_that_of_the_number_that_is_varied() {
    check(
        &[("1", 29.0), ("2", 67.0), ("3", 150.0), ("4", 219.0), ("8", 500.0)],
        &expect![
            "Throughput is superlinear in shards: 5.15× at 3 (95 % CI 5.09–5.22×), 7.55× at 4 (7.46–7.64×), 17.2× at 8 (17.0–17.5×); n = 5."
        ],
    );
    check(
        &[("1", 100.0), ("2", 150.0), ("4", 900.0)],
        &expect![
            "Throughput is superlinear in shards from 4 upwards: 1.50× at 2 (95 % CI 1.48–1.52×), 8.97× at 4 (8.84–9.09×); n = 5."
        ],
    );
    check(
        &[("1", 100.0), ("2", 150.0), ("4", 300.0)],
        &expect![
            "Throughput is sublinear in shards: 1.50× at 2 (95 % CI 1.48–1.52×), 2.99× at 4 (2.95–3.03×); n = 5."
        ],
    );
    check(
        &[("1", 100.0), ("2", 200.0), ("4", 300.0)],
        &expect![
            "Throughput is not shown to be superlinear in shards: 2.00× at 2 (95 % CI 1.97–2.03×), 2.99× at 4 (2.95–3.03×); n = 5."
        ],
    );
    check(
        &[("1", 100.0), ("2", 250.0), ("4", 300.0)],
        &expect![
            "Throughput is superlinear in shards at 2: 2.50× at 2 (95 % CI 2.46–2.54×), 2.99× at 4 (2.95–3.03×); n = 5."
        ],
    );
}

/// Each group has its own baseline, which is the variant with the least of the number.
#[test]
fn growth_is_told_of_each_group_with_a_baseline() {
    let rates = [100.0, 300.0, 100.0, 150.0];
    let mut run = run(&["a", "b", "c", "d"], &[8], 5, |variant, step, repetition| {
        rates[variant] * wobble(variant, step, repetition)
    });
    run.manifest.questions = vec![Question::Linear];
    for (idx, variant) in run.manifest.variants.iter_mut().enumerate() {
        let levels = [("database.shards", ["1", "2"][idx % 2]), ("rows", ["few", "many"][idx / 2])];
        let level = |(factor, level): (&str, &str)| LevelRecord {
            factor: factor.to_owned(),
            level: level.to_owned(),
        };
        variant.levels = levels.map(level).to_vec();
        variant.baseline = (idx % 2 == 1).then(|| idx - 1);
    }
    let answer = analyse(&[run], &Options::default()).answer;
    let has = |part: &str| assert!(answer.headline.contains(part), "{}", answer.headline);
    has("With few throughput is superlinear in shards: 3.0");
    has(" With many throughput is sublinear in shards: +");
    assert_eq!(answer.claims.len(), 2);
}

#[test]
fn levels_that_are_no_numbers_are_ranked_as_usual() {
    check(
        &[("few", 100.0), ("many", 300.0)],
        &expect!["many is 3.00× as fast as few: 300 transactions/s against 100/s at 8 clients."],
    );
}

#[test]
fn throughput_that_is_level_at_all_loads_does_not_scale() {
    let mut run = run(&["a"], &[1, 4, 16], 5, |_, step, repetition| {
        [1000.0, 1001.0, 1002.0][step] * wobble(0, 0, repetition)
    });
    run.manifest.questions = vec![Question::Scales];
    let headline = analyse(&[run], &Options::default()).answer.headline;
    assert_eq!(
        headline,
        "a measured at most 1.00× from 1 to 16 clients; it is level at all of them."
    );
}
