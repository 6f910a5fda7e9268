//! What is wrong with a study file, and where.

/// One problem, pointing at a stretch of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Bytes of the source text that are meant.
    pub span: std::ops::Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What stands beside the caret.
    pub label: String,
    /// What to do: the nearest right word, an example.
    pub help: Option<String>,
}

/// Renders diagnostics as rustc does: file, line, caret, help.
pub fn render(_file_name: &str, _source: &str, _diagnostics: &[Diagnostic]) -> String {
    unimplemented!()
}
