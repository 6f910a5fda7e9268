//! Findings → Markdown for a pull request: the answer, tables, caveats, and the rest folded.

use dyno_analysis::Findings;

use crate::document::markdown::blocks;
use crate::sections::{self, page::Reader};

#[cfg(test)]
mod tests;

/// Renders findings as GitHub-flavoured Markdown. Text from outside is escaped: it can neither
/// break a table nor become markup.
pub fn render(findings: &Findings) -> String {
    let mut out = String::new();
    blocks(&mut out, &sections::in_text(findings, Reader::PullRequest, 0));
    // One line break ends the text.
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// A text as it is safe in Markdown: it can become no markup, and be no part of a table.
pub fn escaped(text: &str) -> String {
    crate::document::markdown::escape(text)
}
