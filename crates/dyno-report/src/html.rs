//! Renders findings as html.
