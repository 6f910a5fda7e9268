//! Collects diagnostics while a study file is read, and keeps those that help.

use std::ops::Range;

use crate::Diagnostic;
use dyno_units::redact_secrets;

/// All problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    syntax: Vec<Diagnostic>,
    wrong: Vec<Diagnostic>,
    missing: Vec<Diagnostic>,
}

impl Problems {
    /// Adds a problem of the TOML itself.
    pub(super) fn add_syntax(&mut self, diagnostic: Diagnostic) {
        self.syntax.push(diagnostic);
    }

    /// Adds a problem with something that is there.
    pub(super) fn add(&mut self, diagnostic: Diagnostic) {
        self.wrong.push(diagnostic);
    }

    /// Adds a problem with something that is not there, which may be only because a part of the
    /// file could not be read.
    pub(super) fn add_missing(&mut self, diagnostic: Diagnostic) {
        self.missing.push(diagnostic);
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.syntax.is_empty() && self.wrong.is_empty() && self.missing.is_empty()
    }

    /// All problems in the order of the text, each place and kind once (what is inherited is read
    /// again), without those that only follow from
    /// broken TOML, and without passwords.
    pub(super) fn into_diagnostics(self, source: &str) -> Vec<Diagnostic> {
        let mut all = self.wrong;
        if self.syntax.is_empty() {
            all.extend(self.missing);
        }
        let broken: Vec<Range<usize>> =
            self.syntax.iter().map(|one| lines_around(source, &one.span)).collect();
        all.retain(|one| !broken.iter().any(|lines| touch(lines, &one.span)));
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

/// The whole lines that a span lies in.
fn lines_around(source: &str, span: &Range<usize>) -> Range<usize> {
    let bytes = source.as_bytes();
    let (from, to) = (span.start.min(bytes.len()), span.end.min(bytes.len()));
    let is_newline = |byte: &u8| *byte == b'\n';
    let start = bytes[..from].iter().rposition(is_newline).map_or(0, |at| at + 1);
    let end = bytes[to..].iter().position(is_newline).map_or(bytes.len(), |at| to + at);
    start..end
}

fn touch(lines: &Range<usize>, span: &Range<usize>) -> bool {
    span.start <= lines.end && lines.start <= span.end
}
