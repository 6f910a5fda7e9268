//! Findings → plain text for a terminal: the answer, one table, the caveats.

use dyno_analysis::Findings;

use crate::document::terminal::Screen;
use crate::sections::{self, page::Reader};

#[cfg(test)]
mod tests;

/// Renders findings for a terminal of `width` columns. With `colour`, verdicts are coloured by ANSI
/// escape sequences; without, by words and signs alone. Control characters in names
/// and messages are replaced, so that no text from a server can steer the terminal.
pub fn render(findings: &Findings, width: usize, colour: bool) -> String {
    let mut out = String::new();
    let blocks = sections::in_text(findings, Reader::Terminal, width);
    Screen::new(width, colour).blocks(&mut out, &blocks);
    out
}
