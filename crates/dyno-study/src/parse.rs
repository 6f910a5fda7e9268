//! Text → study, with all errors at once.
use crate::{Diagnostic, Study, Vocabulary};

/// Reads a study file. On any problem returns all of them, in the order of the text.
pub fn parse(_source: &str, _vocabulary: &Vocabulary) -> Result<Study, Vec<Diagnostic>> {
    unimplemented!()
}
