//! Text → study, with all errors at once.
//!
//! The spanned TOML tree is lowered by hand, so that every problem can point at its place: serde
//! stops at the first one. A value that is wrong is reported where it is read and then counts as
//! unknown, so that one mistake makes one diagnostic.

mod baseline;
mod behind;
mod by_url;
mod choice;
mod database;
mod declaration;
mod design;
mod fault;
mod host;
mod job;
pub(crate) mod kind;
mod kubernetes;
mod like;
mod member;
mod money;
mod on_hosts;
mod own;
mod parser;
mod probe;
mod programs;
mod reach;
mod relation;
mod search;
mod steady;
mod stopping;
pub(crate) mod table;
mod trials_on;
mod value;
mod variants;
mod vary;
mod volume;
mod workload;

#[cfg(test)]
mod tests;

use std::ops::Range;

use toml::Spanned;
use toml::de::DeTable;

pub use self::value::parse_setting;

use self::kind::{KINDS, STUDY};
use self::parser::Parser;
use self::table::{Kind, NamedTable, NamedTables};
use self::value::{Entry, Section};
use crate::{Database, Diagnostic, Study, Table, Vocabulary, WorkloadChoice};

/// Reads a study file. On any problem returns all of them, in the order of the text.
pub fn parse(source: &str, vocabulary: &Vocabulary) -> Result<Study, Vec<Diagnostic>> {
    let parser = Parser::new(vocabulary);
    let tree = read_toml(&parser, source);
    let mut lowered = lower(&parser, tree.get_ref());
    if let Some((study, places)) = &mut lowered {
        own::resolve(&parser, (tree.get_ref(), places), study);
    }
    match lowered {
        Some((study, _)) if parser.count() == 0 => Ok(study),
        _ => Err(parser.into_diagnostics(source)),
    }
}

/// The tables of a study file, as far as it is TOML.
fn read_toml<'s>(parser: &Parser<'_>, source: &'s str) -> Spanned<DeTable<'s>> {
    let (tree, errors) = DeTable::parse_recoverable(source);
    let mut is_placed = false;
    for error in errors {
        let is_nested = error.message().contains("recurs");
        let span = match error.span().filter(|span| span.start > 0 || !is_nested) {
            Some(span) => span,
            // There is one such error for each level of each key: one place stands for all of them.
            None if is_nested && std::mem::replace(&mut is_placed, true) => continue,
            None if is_nested => deepest_key(source),
            None => 0..0,
        };
        let wrong = Diagnostic::new(span, format!("not valid TOML: {}", error.message()));
        parser.syntax.borrow_mut().push(wrong.with_label("here"));
    }
    tree
}

/// Where in a study something stands that it declares of a workload: the keys lead there from the workload's
/// table, which may have it from the table that it is `like`.
pub fn declared_place(source: &str, workload: &str, path: &[String]) -> Range<usize> {
    let (tree, _) = DeTable::parse_recoverable(source);
    declaration::declared(tree.get_ref(), workload, path).unwrap_or(0..0)
}

/// The line with the most dots in its key: TOML does not say where keys are nested too deep.
fn deepest_key(source: &str) -> Range<usize> {
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

/// Whether products that the study describes are tables. What they say is checked by who starts them.
fn check_recipes(study: &Section<'_>) {
    let Some(given) = study.entry("product") else { return };
    let Some(recipes) = value::table(&given) else { return };
    for recipe in value::entries(study.parser, recipes) {
        value::table(&recipe);
    }
}

/// A study, and where each of its factors is.
fn lower<'a>(parser: &'a Parser<'a>, tree: &'a DeTable<'a>) -> Option<(Study, Vec<Range<usize>>)> {
    let section = Section::closed(parser, ("a study file", 0..0), tree, &STUDY);
    let title = section.read("title", value::text);
    if title.is_none() {
        parser.add_missing(
            Diagnostic::new(0..0, "the study has no title")
                .with_help("add a line such as: title = \"Is a faster than b?\""),
        );
    }
    check_recipes(&section);
    let names = workload::name_values(&section);
    let implied = (workload::implied(&names), money::of_machine(&section));
    let chosen = KINDS.iter().filter(|kind| kind.is_chosen);
    let tables: Vec<NamedTables<'_>> =
        chosen.map(|kind| read_tables(&section, kind, &implied)).collect();
    let hosts = read_tables(&section, &host::KIND, &implied);
    let design = design::read(&section, (&tables, &hosts));
    let probes = read_tables(&section, &probe::KIND, &implied);
    let probes = probe::read(&probes, of_kind(&tables, &database::KIND));
    let databases = typed(of_kind(&tables, &database::KIND), Database::of)?;
    let workloads = typed(of_kind(&tables, &workload::KIND), WorkloadChoice::of)?;
    let ((design, variants, places), title, probes) = (design?, title?.value?, probes?);
    let study = Study { title, probes, databases, workloads, design, variants };
    Some((study, places))
}

/// `implied` is what tables have without saying it: the workloads of tables by their names, each at the key of
/// its table, and the price of the machine.
fn read_tables<'a>(
    study: &Section<'a>,
    kind: &'static Kind,
    (workloads, price): &(Vec<Entry<'a>>, Option<Entry<'a>>),
) -> NamedTables<'a> {
    let raws = table::raws(study, kind, workloads);
    let mut resolved = like::resolve(&raws);
    money::check(price.as_ref(), &mut resolved);
    let tables = raws.iter().zip(resolved);
    let tables = tables.map(|(raw, resolved)| NamedTable {
        name: raw.name,
        table: resolved.as_ref().and_then(|raw| (kind.read)(raw)),
        raw: resolved,
    });
    NamedTables { kind, tables: tables.collect() }
}

fn of_kind<'t, 'a>(tables: &'t [NamedTables<'a>], kind: &Kind) -> &'t NamedTables<'a> {
    let mut found = tables.iter().filter(|tables| tables.kind == kind);
    found.next().unwrap_or_else(|| unreachable!("all kinds were read"))
}

/// All tables of a kind; none if one of them was wrong.
fn typed<T>(tables: &NamedTables<'_>, of: fn(&Table) -> Option<T>) -> Option<Vec<T>> {
    tables.tables.iter().map(|table| of(table.table.as_ref()?)).collect()
}
