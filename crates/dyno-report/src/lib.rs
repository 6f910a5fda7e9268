//! Findings → terminal, Markdown, HTML, JSON. Each renderer takes findings and returns text.

pub mod html;
pub mod json;
pub mod markdown;
pub mod terminal;
