//! Text → study, with all errors at once.
//!
//! The spanned TOML tree is lowered by hand, so that every problem can point at its place: serde
//! stops at the first one. A value that is wrong is reported where it is read and then counts as
//! unknown, so that one mistake makes one diagnostic.

mod baseline;
mod database;
mod design;
mod like;
mod money;
mod own;
mod probe;
mod problems;
mod search;
mod steady;
mod stopping;
mod value;
mod vary;
mod workload;

#[cfg(test)]
mod tests;

use toml::de::DeTable;

pub use self::value::parse_setting;

use self::problems::Problems;
use self::value::Section;
use self::vary::Choices;
use crate::keys::STUDY;
use crate::{Diagnostic, Study, Vocabulary};

/// Reads a study file. On any problem returns all of them, in the order of the text.
pub fn parse(source: &str, vocabulary: &Vocabulary) -> Result<Study, Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let (tree, errors) = DeTable::parse_recoverable(source);
    for error in errors {
        let is_nested = error.message().contains("recurs");
        let span = error.span().filter(|span| span.start > 0 || !is_nested);
        let span = span.unwrap_or_else(|| if is_nested { deepest_key(source) } else { 0..0 });
        problems.add_syntax(
            Diagnostic::new(span, format!("not valid TOML: {}", error.message()))
                .with_label("here"),
        );
    }
    let mut study = lower(&mut problems, tree.get_ref(), vocabulary);
    if let Some(study) = &mut study {
        own::resolve(&mut problems, tree.get_ref(), study, vocabulary);
    }
    match study {
        Some(study) if problems.is_empty() => Ok(study),
        _ => Err(problems.into_diagnostics(source)),
    }
}

/// The line with the most dots in its key: TOML does not say where keys are nested too deep.
fn deepest_key(source: &str) -> std::ops::Range<usize> {
    let mut start = 0;
    let mut deepest = (0, 0..0);
    for line in source.split_inclusive('\n') {
        let key = line.split(['=', '#']).next().unwrap_or_default();
        let dots = key.matches('.').count();
        if dots > deepest.0 {
            deepest = (dots, start..start + key.trim_end().len());
        }
        start += line.len();
    }
    deepest.1
}

fn lower(problems: &mut Problems, tree: &DeTable<'_>, vocabulary: &Vocabulary) -> Option<Study> {
    let section = Section::closed(problems, ("a study file", 0..0), tree, STUDY);
    let title = section.read("title", problems, value::text);
    if title.is_none() {
        problems.add_missing(
            Diagnostic::new(0..0, "the study has no title")
                .with_help("add a line such as: title = \"Is a faster than b?\""),
        );
    }
    let databases = database::read(problems, &section, vocabulary);
    let workloads = workload::read(problems, &section, vocabulary);
    let probes = &vocabulary.probes;
    let choices = Choices { databases: &databases, workloads: &workloads, probes };
    let design = design::read(problems, &section, &choices);
    let probes = probe::read(problems, &section, &databases);
    let mut databases: Vec<_> = databases.into_iter().map(|one| one.database).collect();
    money::of_machine(problems, &section, &mut databases);
    Some(Study {
        title: title?.value?,
        probes: probes?,
        databases: databases.into_iter().collect::<Option<_>>()?,
        workloads: workloads.into_iter().map(|one| one.choice).collect::<Option<_>>()?,
        design: design?,
    })
}
