//! `dyno schema`: the JSON Schema of study files.

use crate::{End, terminal, vocabulary};

/// Prints the schema.
pub(crate) fn run() -> anyhow::Result<End> {
    let schema = dyno_study::schema::schema(&vocabulary::vocabulary());
    terminal::out(&serde_json::to_string_pretty(&schema)?);
    Ok(End::Good)
}
