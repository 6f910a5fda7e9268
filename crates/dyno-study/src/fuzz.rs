//! The fuzz target of this crate.

use dyno_units::Seed;

use crate::diagnostic::render;
use crate::fixture::vocabulary;
use crate::plan::{TableContext, plan, render_table};
use crate::{Diagnostic, parse};

/// A study is parsed, and what `dyno check` and `dyno plan` do with the outcome is done.
pub fn study(input: &[u8]) {
    let source = String::from_utf8_lossy(input);
    match parse(&source, &vocabulary()) {
        Ok(study) => {
            let plan = plan(&study, Seed(1));
            assert!(!plan.trials.is_empty());
            assert!(!render_table(&plan, &TableContext::default()).is_empty());
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a word");
            assert!(diagnostics.iter().all(|one| is_inside(one, &source)), "{diagnostics:?}");
            assert!(diagnostics.is_sorted_by_key(|one| one.span.start));
            assert!(!render("study.toml", &source, &diagnostics).is_empty());
        }
    }
}

fn is_inside(diagnostic: &Diagnostic, source: &str) -> bool {
    diagnostic.span.start <= diagnostic.span.end && diagnostic.span.end <= source.len()
}

#[cfg(test)]
#[path = "../../../fuzz/mutations.rs"]
mod mutations;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_are_read_or_refused() {
        mutations::run("study", 1000, study);
    }
}
