//! What variants are called in drawings, and how long names are set: whole, in several lines if need be. No two of
//! them look the same.

use std::collections::{HashMap, HashSet};

use dyno_analysis::VariantFacts;

use crate::words;

/// What stands between the levels of a name.
pub(crate) const BETWEEN: &str = " · ";

/// Lines of a name; what is longer is cut at its end.
const LINES_MOST: usize = 4;

/// Levels that say nothing without their factor.
const BARE: [&str; 8] = ["on", "off", "yes", "no", "true", "false", "none", "default"];

/// The factors that have several levels.
pub(crate) fn varied(variants: &[VariantFacts]) -> Vec<&str> {
    let levels = || variants.iter().flat_map(|variant| &variant.levels);
    let n_levels = |factor: &str| {
        words::distinct(levels().filter(|(f, _)| f == factor).map(|(_, level)| level)).len()
    };
    let factors = words::distinct(levels().map(|(factor, _)| factor.as_str()));
    factors.into_iter().filter(|factor| n_levels(factor) > 1).collect()
}

/// The names of variants without the factors of levels that name themselves, and without levels that all have:
/// `fdatasync` for `sync=fdatasync`. Names that are not made of their levels stay.
pub(crate) fn labels(variants: &[VariantFacts]) -> Vec<String> {
    let names = || variants.iter().map(|variant| variant.name.clone()).collect();
    let levels = || variants.iter().flat_map(|variant| &variant.levels);
    let factors = varied(variants);
    if factors.len() < 2 {
        return names();
    }
    let mut factors_of = HashMap::<&str, HashSet<&str>>::new();
    for (factor, level) in levels().filter(|(factor, _)| factors.contains(&factor.as_str())) {
        factors_of.entry(level).or_default().insert(factor);
    }
    let is_plain = |factor: &str, level: &str| {
        let has_others = factors_of[level].iter().any(|f| *f != factor);
        let is_word = level.chars().any(char::is_alphabetic) && !BARE.contains(&level);
        is_word && !has_others
    };
    let part = |(factor, level): &(String, String)| match is_plain(factor, level) {
        true => level.clone(),
        false => format!("{}={level}", factor.rsplit('.').next().unwrap_or(factor)),
    };
    let label = |variant: &VariantFacts| {
        let own = variant.levels.iter().filter(|(factor, _)| factors.contains(&factor.as_str()));
        let is_made = own.clone().all(|(_, level)| variant.name.contains(level.as_str()));
        let label = own.map(part).collect::<Vec<String>>().join(BETWEEN);
        if is_made { label } else { variant.name.clone() }
    };
    let labels: Vec<String> = variants.iter().map(label).collect();
    let is_apart = words::distinct(labels.iter()).len() == labels.len();
    if is_apart { labels } else { names() }
}

/// Names in lines of so many letters.
pub(crate) fn in_lines(names: &[&str], most: usize) -> Vec<Vec<String>> {
    let cut: Vec<String> = names.iter().map(|name| shorten(name, most * LINES_MOST)).collect();
    let mut n_of = HashMap::<&String, usize>::new();
    cut.iter().for_each(|name| *n_of.entry(name).or_default() += 1);
    let numbered = |(i, name): (usize, &String)| match n_of[name] > 1 {
        true => wrapped(&format!("{}. {name}", i + 1), most),
        false => wrapped(name, most),
    };
    cut.iter().enumerate().map(numbered).collect()
}

fn shorten(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A line ends between levels if it can, else at a space, else anywhere.
fn wrapped(name: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest: Vec<char> = name.chars().collect();
    while rest.len() > most {
        let line = &rest[..=most];
        let last = |is_end: &dyn Fn(usize) -> bool| (1..most).rev().find(|i| is_end(*i));
        let between = last(&|i| line[i] == '·' && line[i - 1] == ' ').map(|i| i - 1);
        let end = between.filter(|i| *i > 0).or_else(|| last(&|i| line[i] == ' ')).unwrap_or(most);
        lines.push(line[..end].iter().collect());
        let skipped = rest[end..].iter().take_while(|c| matches!(c, ' ' | '·')).count();
        rest.drain(..end + skipped);
    }
    lines.push(rest.into_iter().collect());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_names_itself_needs_no_factor() {
        let check = |factors: [&str; 3], rows: &[([&str; 3], &str)]| {
            let variant = |(levels, _): &([&str; 3], &str)| VariantFacts {
                name: levels.join(BETWEEN),
                levels: factors
                    .iter()
                    .zip(levels)
                    .map(|(f, l)| ((*f).into(), (*l).into()))
                    .collect(),
                ..VariantFacts::default()
            };
            let all: Vec<VariantFacts> = rows.iter().map(variant).collect();
            let expected: Vec<&str> = rows.iter().map(|(_, label)| *label).collect();
            assert_eq!(labels(&all), expected);
        };
        check(
            ["database", "options.sync", "direct"],
            &[
                (["ext4", "fsync", "on"], "ext4 · fsync · direct=on"),
                (["ext4", "fdatasync", "on"], "ext4 · fdatasync · direct=on"),
                (["xfs", "fsync", "off"], "xfs · fsync · direct=off"),
            ],
        );
        // What all have is left out; a level of two factors tells which.
        check(
            ["database", "a.first", "b.second"],
            &[
                (["one", "x", "x"], "first=x · second=x"),
                (["one", "y", "x"], "y · second=x"),
                (["one", "x", "z"], "first=x · z"),
            ],
        );
        check(
            ["database", "a", "b"],
            &[(["m", "1", "2"], "m · 1 · 2"), (["n", "1", "2"], "n · 1 · 2")],
        );
    }

    #[test]
    fn a_variant_with_a_name_of_its_own_keeps_it() {
        let variant = |name: &str, a: &str, b: &str| VariantFacts {
            name: name.to_owned(),
            levels: vec![("a".to_owned(), a.to_owned()), ("b".to_owned(), b.to_owned())],
            ..VariantFacts::default()
        };
        assert_eq!(
            labels(&[variant("fast", "x", "y"), variant("slow", "v", "w")]),
            ["fast", "slow"]
        );
    }

    #[test]
    fn long_names_are_whole_and_apart() {
        let check =
            |names: &[&str], expected: &[&[&str]]| assert_eq!(in_lines(names, 20), expected);
        check(&["ext4 · fsync"], &[&["ext4 · fsync"]]);
        check(&["ext4 · fdatasync · direct=yes"], &[&["ext4 · fdatasync", "direct=yes"]]);
        check(&["one beginning of a long name"], &[&["one beginning of a", "long name"]]);
        check(&["abcdefghijklmnopqrstuvwxyz"], &[&["abcdefghijklmnopqrst", "uvwxyz"]]);
        let long = ["x".repeat(100) + "a", "x".repeat(100) + "b"];
        let both = in_lines(&[&long[0], &long[1]], 20);
        assert!(both[0] != both[1] && both[0].last().unwrap().ends_with('…'), "{both:?}");
        assert!(both.iter().flatten().all(|line| line.chars().count() <= 20));
    }
}
