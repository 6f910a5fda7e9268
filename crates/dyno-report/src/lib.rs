//! Findings → terminal, Markdown, HTML, JSON, and tables. Each renderer takes findings and returns text.
//!
//! Nothing here reads a file, a clock or the network, and nothing prints. The HTML report also takes
//! the runs and the response times of their seconds, because it shows more than findings hold.

mod author;
mod chart;
mod document;
pub mod export;
mod field;
mod findings_index;
mod format;
pub mod html;
pub mod json;
pub mod markdown;
mod markup;
mod measured;
mod sections;
pub mod terminal;
pub mod times;
mod view;
mod words;

#[cfg(test)]
mod figures_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod looks_tests;
#[cfg(test)]
mod pages_tests;
