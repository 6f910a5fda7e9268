//! Renders findings as terminal.
