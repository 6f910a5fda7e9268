//! Renders findings as json.
