//! `dyno schema`: the JSON Schema of study files, or their reference page.

use crate::cli::SchemaFormat;
use crate::{End, terminal, vocabulary};

pub(crate) fn run(format: SchemaFormat) -> anyhow::Result<End> {
    let vocabulary = vocabulary::vocabulary();
    terminal::out(&match format {
        SchemaFormat::Json => {
            serde_json::to_string_pretty(&dyno_study::schema::schema(&vocabulary))?
        }
        SchemaFormat::Markdown => dyno_study::reference::markdown(&vocabulary),
    });
    Ok(End::Good)
}
