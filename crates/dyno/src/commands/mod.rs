//! One file a subcommand.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod datasets;
pub(crate) mod doctor;
pub(crate) mod explain_cost;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod sql;
pub(crate) mod watch;

use std::path::Path;

use anyhow::Context;
use dyno_study::{Product, Study, diagnostic};

use crate::{secrets, terminal, vocabulary};

/// `1 row`, `2 rows`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A study file that was read without an error.
pub(crate) struct StudyFile {
    pub(crate) study: Study,
    pub(crate) source: String,
}

/// Reads a study file. None when it has errors, all of which have been shown then.
pub(crate) fn read_study(path: &Path) -> anyhow::Result<Option<StudyFile>> {
    let source = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the study {}", path.display()))
        .map_err(crate::misuse)?;
    match dyno_study::parse(&source, &vocabulary::vocabulary()) {
        Ok(mut study) => {
            for database in &mut study.databases {
                if let Product::Url(url) = &mut database.product {
                    *url = secrets::expand(url)
                        .with_context(|| format!("database `{}`", database.name))
                        .map_err(crate::misuse)?;
                }
            }
            Ok(Some(StudyFile { study, source }))
        }
        Err(diagnostics) => {
            let render = if terminal::messages_have_colours() {
                diagnostic::render_coloured
            } else {
                diagnostic::render
            };
            terminal::say(&render(&path.display().to_string(), &source, &diagnostics));
            Ok(None)
        }
    }
}
