//! The fuzz target of `dyno import`.

use dyno_record::Run;

use super::{FORMATS, Found, INTERVALS_MOST, record};

/// Reads a text in each format that it may have; the resulting record can be read and reported.
pub fn import(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for format in &FORMATS {
        let is_it = (format.is_it)(&text);
        let Ok(Found { runs, .. }) = (format.read)(&text, Some(1000.0)) else { continue };
        if !is_it || runs.iter().any(|run| run.intervals.len() > INTERVALS_MOST) {
            continue;
        }
        let runs = runs.into_iter().map(|run| record::Imported { run, ended_unix_ms: Some(1) });
        let variants = [("imported".to_owned(), runs.collect::<Vec<_>>())];
        let order = record::Order { title: None, baseline: None, threshold: 0.03, now_unix_ms: 1 };
        let Ok(plan) = record::plan(&variants, &order) else { continue };
        let run = Run {
            folder: std::path::PathBuf::new(),
            manifest: plan.manifest,
            trials: plan.trials,
            voids: Vec::new(),
        };
        if let Err(error) = run.check() {
            panic!("{}: {error}", format.name);
        }
        let findings = crate::commands::report::find(&[run], None);
        let _ = dyno_report::markdown::render(&findings);
    }
}
