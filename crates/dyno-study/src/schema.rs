//! The JSON Schema of study files.
use crate::Vocabulary;
/// The schema as a JSON value.
pub fn schema(_vocabulary: &Vocabulary) -> serde_json::Value { unimplemented!() }
