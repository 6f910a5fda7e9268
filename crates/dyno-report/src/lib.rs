//! Findings → terminal, Markdown, HTML, JSON. Each renderer takes findings and returns text.
//!
//! Nothing here reads a file, a clock or the network, and nothing prints. The HTML report also takes
//! the runs, because its one-second charts show more than findings hold.

mod chart;
mod format;
pub mod html;
pub mod json;
pub mod markdown;
mod markup;
pub mod terminal;
mod view;
mod words;

#[cfg(test)]
#[path = "../fixture/mod.rs"]
mod fixture;
