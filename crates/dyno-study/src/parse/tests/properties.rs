//! No text makes the parser, the renderer or the plan panic.

use dyno_units::Seed;
use proptest::prelude::*;

use crate::diagnostic::render;
use crate::fixture::{FULL_STUDY, vocabulary};
use crate::plan::{TableContext, plan, render_table};
use crate::{Diagnostic, parse};

/// Parses, and does with the outcome what `dyno check` and `dyno plan` do.
fn exercise(source: &str) -> Result<(), TestCaseError> {
    match parse(source, &vocabulary()) {
        Ok(study) => {
            let plan = plan(&study, Seed(1));
            prop_assert!(!plan.trials.is_empty());
            prop_assert!(!render_table(&plan, &TableContext::default()).is_empty());
        }
        Err(diagnostics) => {
            prop_assert!(!diagnostics.is_empty(), "refused without a word");
            prop_assert!(diagnostics.iter().all(|one| is_inside(one, source)), "{diagnostics:?}");
            prop_assert!(diagnostics.is_sorted_by_key(|one| one.span.start));
            prop_assert!(!render("study.toml", source, &diagnostics).is_empty());
        }
    }
    Ok(())
}

fn is_inside(diagnostic: &Diagnostic, source: &str) -> bool {
    diagnostic.span.start <= diagnostic.span.end && diagnostic.span.end <= source.len()
}

/// A value in TOML, right and wrong ones.
fn value() -> impl Strategy<Value = String> {
    let words = [
        "1",
        "0",
        "-1",
        "1.5",
        "true",
        "'a'",
        "'b'",
        "'x y'",
        "'25%'",
        "'10s'",
        "'8GiB'",
        "[]",
        "{}",
        "[1, 2]",
        "['a', 'b']",
        "{ a = 1 }",
        "{ a = [1] }",
        "1979-05-27",
        "nan",
        "99999999999999999999",
        "'mysql://u:p@h'",
        "[[1], 'a']",
        "'mariadb'",
        "'oltp_read_only'",
        "\"\\u0000\"",
        "0x1f",
    ];
    proptest::sample::select(words.to_vec()).prop_map(str::to_owned)
}

/// The full study with one line given another value, cut, doubled or spoilt.
fn mutated() -> impl Strategy<Value = String> {
    let lines: Vec<String> = FULL_STUDY.lines().map(str::to_owned).collect();
    let n_lines = lines.len();
    let edit = (0..n_lines, 0..5_u8, value(), 0..40_usize, "[\\[\\]{}='\"a-z0-9.,#é\\n ]{0,3}");
    proptest::collection::vec(edit, 1..4).prop_map(move |edits| {
        let mut lines = lines.clone();
        for (at, kind, value, column, text) in edits {
            let line = lines[at].clone();
            lines[at] = match kind {
                0 => String::new(),
                1 => format!("{line}\n{line}"),
                2 => {
                    line.split_once('=').map_or(line.clone(), |(key, _)| format!("{key}= {value}"))
                }
                3 => line.chars().take(column).collect(),
                _ => {
                    let head: String = line.chars().take(column).collect();
                    let tail: String = line.chars().skip(column).collect();
                    format!("{head}{text}{tail}")
                }
            };
        }
        lines.join("\n")
    })
}

proptest! {
    #[test]
    fn arbitrary_text(source in "\\PC{0,80}|[\\s\\S]{0,80}") {
        exercise(&source)?;
    }

    #[test]
    fn text_that_looks_like_toml(
        source in "((title|database\\.a|workload|design|vary|like|product|url|'x')( = |\\.|\\]\n|\n)|[\\[\\]{},'\"1]|a){0,30}"
    ) {
        exercise(&source)?;
    }

    #[test]
    fn mutated_studies(source in mutated()) {
        exercise(&source)?;
    }

    #[test]
    fn no_password_is_shown(prefix in "[a-z =.'\"\\[\\]]{0,8}", user in "[a-z]{0,4}") {
        let line = format!("{prefix}url = \"mysql://{user}:SECRET@host\"");
        let source = FULL_STUDY.replace("url = \"postgresql://me:secret@host:5432/db\"", &line);
        if let Err(diagnostics) = parse(&source, &vocabulary()) {
            let text = render("study.toml", &source, &diagnostics);
            prop_assert!(!text.contains("SECRET"), "{text}");
            let debug = format!("{diagnostics:?}");
            prop_assert!(!debug.contains("SECRET"), "a password in a diagnostic");
        }
    }
}
