//! Collects diagnostics while a study file is read, and keeps those that help.

use std::ops::Range;

use crate::Diagnostic;
use dyno_units::redact_secrets;

#[derive(Debug, Default)]
pub(super) struct Problems {
    syntax: Vec<Diagnostic>,
    wrong: Vec<Diagnostic>,
    missing: Vec<Diagnostic>,
}

impl Problems {
    pub(super) fn add_syntax(&mut self, diagnostic: Diagnostic) {
        self.syntax.push(diagnostic);
    }

    pub(super) fn add(&mut self, diagnostic: Diagnostic) {
        self.wrong.push(diagnostic);
    }

    /// Adds a problem with something that is not there, which may be only because a part of the
    /// file could not be read.
    pub(super) fn add_missing(&mut self, diagnostic: Diagnostic) {
        self.missing.push(diagnostic);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.syntax.is_empty() && self.wrong.is_empty() && self.missing.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.syntax.len() + self.wrong.len() + self.missing.len()
    }

    /// All problems in the order of the text, each place and kind once (what is inherited is read
    /// again), without those that only follow from
    /// broken TOML, and without passwords.
    pub(super) fn into_diagnostics(self, source: &str) -> Vec<Diagnostic> {
        let mut all = self.wrong;
        if self.syntax.is_empty() {
            all.extend(self.missing);
        }
        let broken = Lines::new(source).around(self.syntax.iter().map(|one| &one.span));
        all.retain(|one| !broken.touch(&one.span));
        all.extend(self.syntax);
        all.sort_by(|a, b| (a.span.start, &a.message).cmp(&(b.span.start, &b.message)));
        all.dedup_by(|later, first| later.span == first.span && later.label == first.label);
        all.into_iter().map(without_passwords).collect()
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
    end: usize,
}

impl Lines {
    fn new(source: &str) -> Lines {
        let newlines = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Lines { starts, end: source.len() }
    }

    fn of(&self, span: &Range<usize>) -> Range<usize> {
        let after = |at: usize| self.starts.partition_point(|start| *start <= at.min(self.end));
        let start = after(span.start).checked_sub(1).map_or(0, |line| self.starts[line]);
        let end = self.starts.get(after(span.end)).map_or(self.end, |next| next - 1);
        start..end
    }

    /// The lines of all these spans, in order and merged.
    fn around<'a>(&self, spans: impl Iterator<Item = &'a Range<usize>>) -> Stretches {
        let mut all: Vec<Range<usize>> = spans.map(|span| self.of(span)).collect();
        all.sort_by_key(|one| one.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for one in all {
            match merged.last_mut() {
                Some(last) if one.start <= last.end => last.end = last.end.max(one.end),
                _ => merged.push(one),
            }
        }
        Stretches(merged)
    }
}

/// Stretches of a text, in order and apart from each other.
struct Stretches(Vec<Range<usize>>);

impl Stretches {
    fn touch(&self, span: &Range<usize>) -> bool {
        let at = self.0.partition_point(|one| one.end < span.start);
        self.0.get(at).is_some_and(|one| one.start <= span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_on_broken_lines_are_found() {
        let check = |broken: &[Range<usize>], span: Range<usize>, expected: bool| {
            let lines = Lines::new("ab\ncd\n\nef");
            assert_eq!(lines.around(broken.iter()).touch(&span), expected, "{broken:?} {span:?}");
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
