//! The words that a study may use, and what is wrong with it: diagnostics are collected while it is read, and
//! those that help are kept.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use crate::{Diagnostic, Vocabulary};
use dyno_units::redact_secrets;

/// What is known while a study is read.
#[derive(Debug)]
pub(super) struct Parser<'v> {
    pub(super) vocabulary: &'v Vocabulary,
    pub(super) syntax: RefCell<Vec<Diagnostic>>,
    wrong: RefCell<Vec<Diagnostic>>,
    missing: RefCell<Vec<Diagnostic>>,
}

impl<'v> Parser<'v> {
    pub(super) fn new(vocabulary: &'v Vocabulary) -> Parser<'v> {
        let [syntax, wrong, missing] = Default::default();
        Parser { vocabulary, syntax, wrong, missing }
    }

    pub(super) fn add(&self, diagnostic: Diagnostic) {
        self.wrong.borrow_mut().push(diagnostic);
    }

    /// Adds a problem with something that is not there, which may be only because a part of the
    /// file could not be read.
    pub(super) fn add_missing(&self, diagnostic: Diagnostic) {
        self.missing.borrow_mut().push(diagnostic);
    }

    pub(super) fn count(&self) -> usize {
        [&self.syntax, &self.wrong, &self.missing].iter().map(|all| all.borrow().len()).sum()
    }

    /// All problems in the order of the text, each place and kind once (what is inherited is read
    /// again), without those that only follow from
    /// broken TOML, and without passwords.
    pub(super) fn into_diagnostics(self, source: &str) -> Vec<Diagnostic> {
        let (mut all, syntax) = (self.wrong.into_inner(), self.syntax.into_inner());
        if syntax.is_empty() {
            all.extend(self.missing.into_inner());
        }
        let broken = Lines::new(source, syntax.iter().map(|one| &one.span));
        all.retain(|one| !broken.touch(&one.span));
        all.extend(syntax);
        all.sort_by(|a, b| (a.span.start, &a.message).cmp(&(b.span.start, &b.message)));
        all.dedup_by(|later, first| later.span == first.span && later.label == first.label);
        all.into_iter().map(without_passwords).collect()
    }
}

impl Diagnostic {
    pub(super) fn add_to(self, parser: &Parser<'_>) {
        parser.add(self);
    }
}

fn without_passwords(diagnostic: Diagnostic) -> Diagnostic {
    Diagnostic {
        span: diagnostic.span,
        message: redact_secrets(&diagnostic.message),
        label: redact_secrets(&diagnostic.label),
        help: diagnostic.help.as_deref().map(redact_secrets),
    }
}

struct Lines {
    starts: Vec<usize>,
    /// Those that are touched, by their numbers.
    touched: BTreeSet<usize>,
}

impl Lines {
    /// The lines of a text, of which these spans touch some.
    fn new<'s>(source: &str, spans: impl Iterator<Item = &'s Range<usize>>) -> Lines {
        let newlines = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        let mut lines = Lines { starts, touched: BTreeSet::new() };
        lines.touched = spans.flat_map(|span| lines.of(span)).collect();
        lines
    }

    fn of(&self, span: &Range<usize>) -> RangeInclusive<usize> {
        let line = |at: usize| self.starts.partition_point(|start| *start <= at);
        line(span.start)..=line(span.end)
    }

    fn touch(&self, span: &Range<usize>) -> bool {
        self.touched.range(self.of(span)).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_on_broken_lines_are_found() {
        let check = |broken: &[Range<usize>], span: Range<usize>, expected: bool| {
            let lines = Lines::new("ab\ncd\n\nef", broken.iter());
            assert_eq!(lines.touch(&span), expected, "{broken:?} {span:?}");
        };
        check(&[3..4], 4..5, true);
        check(&[3..4], 0..2, false);
        check(&[3..4], 7..9, false);
        check(&[0..1, 7..9], 8..9, true);
        check(&[0..1, 7..9], 3..4, false);
        check(&[0..4], 3..4, true);
        check(&[90..99], 7..8, true);
        check(&[], 0..9, false);
    }
}
