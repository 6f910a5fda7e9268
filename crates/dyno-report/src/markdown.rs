//! Renders findings as markdown.
