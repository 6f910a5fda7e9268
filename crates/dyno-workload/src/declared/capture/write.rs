//! Writes the study: database, transactions by share, comments on what the log does not say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use crate::Dialect;

use super::sessions::{Found, Shape};
use super::statement::Template;
use super::steps::{Naming, Sequences, TABLES_MOST, transaction};
use super::values::quoted;
use super::{CaptureError, Captured, Counts, Format, Outcome, Reason, Request};

const WEIGHT_MOST: u64 = u32::MAX as u64;

pub(super) fn study(mut found: Found, format: Format, request: &Request) -> Outcome {
    let schema = chosen(&found, request);
    let is_chosen = |shape: &Shape| match (&shape.schema, &schema) {
        (Some(one), Some(chosen)) => one == chosen,
        _ => true,
    };
    let (mut shapes, others): (Vec<Shape>, Vec<Shape>) =
        std::mem::take(&mut found.shapes).into_iter().partition(is_chosen);
    leave_out(&mut found, Reason::OtherSchema, &others);
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.transactions));
    let rare = shapes.split_off(request.kinds.min(shapes.len()));
    leave_out(&mut found, Reason::Rare, &rare);
    if shapes.is_empty() {
        return Err(CaptureError::Nothing(why_no_shape(&found.counts, format)));
    }
    let n_rare = shapes.iter_mut().map(leave_out_tables).sum();
    found.counts.replayed -= n_rare;
    found.counts.leave_out(Reason::ManyTables, n_rare);
    let transactions = shapes.iter().map(|shape| shape.transactions).sum();
    let mut out = String::new();
    head(&mut out, (&found, &shapes), (format, request));
    copy(&mut out, schema.as_deref(), (format, request));
    let dialect = format.dialect();
    let namings: Vec<Naming<'_>> =
        shapes.iter().map(|shape| Naming::new(shape, &found.templates, dialect)).collect();
    let sequences = Sequences::new(&namings);
    for (idx, naming) in namings.iter().enumerate() {
        let templates = || (0..naming.shape.steps.len()).map(|step| naming.template(step));
        let name = match templates().find(|one| one.changes_rows()).or(templates().next()) {
            // The first statement that changes rows, or the first.
            Some(first) => name_of(idx, &first.verb, first.table.as_deref()),
            None => format!("t{}", idx + 1),
        };
        transaction(&mut out, (&name, idx, transactions), &namings, &sequences);
    }
    let note = "This many sessions were open at once in the log; it is not known how many of them were busy, or \
                how long they paused.";
    design(&mut out, note, found.sessions.clamp(1, 1000));
    let (schema, kinds) = (schema.map(|name| name.to_string()), shapes.len());
    Ok(Captured { study: out, format, schema, kinds, transactions, counts: found.counts })
}

fn leave_out(found: &mut Found, reason: Reason, shapes: &[Shape]) {
    let n: u64 = shapes.iter().map(|shape| shape.statements).sum();
    found.counts.replayed -= n;
    found.counts.leave_out(reason, n);
}

/// Keeps each step's most frequent numbered tables; returns the number of statements on others.
fn leave_out_tables(shape: &mut Shape) -> u64 {
    let mut n = 0;
    for step in &mut shape.steps {
        let mut tables: Vec<(u64, u64)> =
            std::mem::take(&mut step.tables).into_iter().map(|(number, n)| (n, number)).collect();
        tables.sort_unstable_by_key(|(n, number)| (std::cmp::Reverse(*n), *number));
        n += tables.iter().skip(TABLES_MOST).map(|(n, _)| n).sum::<u64>();
        step.tables = tables.into_iter().take(TABLES_MOST).map(|(n, number)| (number, n)).collect();
    }
    n
}

fn tables(shapes: &[Shape], templates: &[Template]) -> BTreeSet<String> {
    let name = |step: &super::sessions::Step| {
        let name = templates[step.template as usize].table.as_ref()?;
        Some(match (step.tables.keys().next(), step.tables.keys().next_back()) {
            (Some(first), Some(last)) if first != last => format!("{name}{first} … {name}{last}"),
            (Some(only), _) => format!("{name}{only}"),
            _ => name.clone(),
        })
    };
    shapes.iter().flat_map(|shape| &shape.steps).filter_map(name).collect()
}

/// The database whose statements are captured: as asked for, or that with the most.
fn chosen(found: &Found, request: &Request) -> Option<Rc<str>> {
    if let Some(name) = &request.schema {
        return Some(name.as_str().into());
    }
    let mut statements: BTreeMap<&Rc<str>, u64> = BTreeMap::new();
    for shape in &found.shapes {
        if let Some(name) = &shape.schema {
            *statements.entry(name).or_default() += shape.statements;
        }
    }
    // The first one of those with as many.
    let most = statements.iter().rev().max_by_key(|(_, n)| **n);
    most.map(|(name, _)| Rc::clone(name))
}

fn why_no_shape(counts: &Counts, format: Format) -> String {
    let mut parts = vec![format!("{} statements were read", counts.read)];
    if counts.control > 0 {
        parts.push(format!("{} begin or end transactions", counts.control));
    }
    let advice = match format == Format::PostgreSqlPlain && counts.read == 0 {
        true => {
            "; if its messages begin otherwise than was assumed, give the server's log_line_prefix with --prefix"
        }
        false => "",
    };
    why_nothing(parts, counts) + advice
}

/// With what was left out.
pub(super) fn why_nothing(mut parts: Vec<String>, counts: &Counts) -> String {
    parts.extend(counts.left_out.iter().map(|(reason, n)| format!("{n} {}", reason.text())));
    parts.join(", ")
}

/// A comment of one line, whatever the text.
pub(super) fn comment(out: &mut String, text: &str) {
    let _ = writeln!(out, "# {}", dyno_units::clean_text(text).replace(['\n', '\r'], " "));
}

/// Writes what became of all that was read.
pub(super) fn counted(out: &mut String, read: &str, counts: &Counts) {
    comment(out, &format!("{} {read}:", counts.read));
    comment(out, &format!("  {} are replayed by this study", counts.replayed));
    comment(out, &format!("  {} begin or end transactions", counts.control));
    for (reason, n) in &counts.left_out {
        comment(out, &format!("  {n} are left out: {}", reason.text()));
    }
    out.push_str("#\n");
}

pub(super) fn title(out: &mut String, question: &str, of: &str) {
    let title = format!("{question} {} cost?", dyno_units::clean_text(of));
    let _ = writeln!(out, "\ntitle = {}\n", quoted(&title));
}

pub(super) fn design(out: &mut String, note: &str, clients: usize) {
    let lengths = "duration = \"60s\"\nwarm_up = \"10s\"";
    let _ = writeln!(out, "\n[design]\n# {note}\nclients = {clients}\n{lengths}");
}

/// Begins the table of a kind of transactions, of which there were `n` of all.
pub(super) fn begin(out: &mut String, path: &str, (of, more): (&str, &str), (n, all): (u64, u64)) {
    let share = n as f64 / all as f64 * 100.0;
    let weight = n.div_ceil(all / WEIGHT_MOST + 1).max(1);
    out.push('\n');
    comment(out, &format!("{share:.1} % of the {of}: {n} of {all}{more}"));
    let _ = writeln!(out, "[{path}]\nweight = {weight}");
}

/// Writes named generators, and a comment on them.
pub(super) fn lets(out: &mut String, generators: &[(String, String)], words: &str) {
    comment(out, words);
    for (name, text) in generators {
        let _ = writeln!(out, "{name} = {text}");
    }
}

fn head(out: &mut String, of: (&Found, &[Shape]), (format, request): (Format, &Request)) {
    let (found, shapes) = of;
    comment(out, &format!("Captured from {}, a {}.", request.source, format.text()));
    counted(out, "statements were read", &found.counts);
    for line in unknown(found.has_texts, format).into_iter().chain(found.doubts.iter().copied()) {
        comment(out, line);
    }
    let tables = tables(shapes, &found.templates);
    let tables: Vec<String> = tables.into_iter().take(100).collect();
    comment(out, &format!("Tables: {}", tables.join(", ")));
    title(out, "What do the transactions captured from", &request.source);
}

fn unknown(has_texts: bool, format: Format) -> Vec<&'static str> {
    let mut lines = vec![
        "What the log does not say, and this study therefore lacks:",
        "- the tables and their rows: run it on a copy of the database, never on the one that is \
         in use",
        "- how many rows each statement returned or changed: the study expects none in particular",
        "- which values belong together, other than those within a transaction that were equal or \
         differed by a constant",
        "- what the program read with one statement to use in the next",
    ];
    if !has_texts {
        lines.push(
            "- strings: letters of the same lengths replace them, so comparisons with strings may \
             find nothing",
        );
    }
    if matches!(format, Format::PostgreSqlPlain | Format::PostgreSqlCsv) {
        lines.push(
            "- statements that were not logged: with log_min_duration_statement above 0 and log_statement other \
             than all, shares are among the logged statements only",
        );
    }
    if format == Format::MySqlSlow {
        lines.push(
            "- statements that were not slow: with long_query_time above 0, shares are among the \
             slow statements only",
        );
    }
    lines
}

pub(super) fn copy(out: &mut String, schema: Option<&str>, (format, request): (Format, &Request)) {
    out.push_str("[database.copy]\n");
    let url = match &request.url {
        Some(url) => url.clone(),
        None => {
            comment(out, "The server with the copy; its password comes from the environment.");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let name = schema.filter(|name| name.chars().all(is_plain)).unwrap_or("test");
            let (scheme, port) = match format.dialect() {
                Dialect::PostgreSql => ("postgresql", 5432),
                _ => ("mysql", 3306),
            };
            format!("{scheme}://dyno:${{DB_PASSWORD}}@127.0.0.1:{port}/{name}")
        }
    };
    let _ = writeln!(out, "url = {}", quoted(&url));
}

/// `t1_update_accounts`, from the words of a statement.
pub(super) fn name_of(idx: usize, verb: &str, table: Option<&str>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let table: String =
        table.unwrap_or_default().chars().filter(|c| is_plain(*c)).take(40).collect();
    let parts = [format!("t{}", idx + 1), verb.to_owned(), table.to_lowercase()];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("_")
}
