//! The study: a database, the transactions by their share, and comments on what the log does not say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use super::sessions::{Found, Shape, Step, Template};
use super::statement::{NUMBER, NUMBERS, TEXT, TEXTS, VALUES_MOST};
use super::values::Stats;
use super::{CaptureError, Captured, Format, Reason, Request};

/// Most executions of a step that a study takes.
const TIMES_MOST: u64 = 1_000_000;
/// The largest weight.
const WEIGHT_MOST: u64 = u32::MAX as u64;

/// Writes the study of what was found.
pub(super) fn study(
    mut found: Found,
    format: Format,
    request: &Request,
) -> Result<Captured, CaptureError> {
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
        return Err(CaptureError::Nothing(why_nothing(&found)));
    }
    let transactions = shapes.iter().map(|shape| shape.transactions).sum();
    let mut out = String::new();
    head(&mut out, &found, (format, request));
    database(&mut out, schema.as_deref(), request);
    for (idx, shape) in shapes.iter().enumerate() {
        let name = name_of(shape, &found.templates, idx);
        transaction(&mut out, (&name, shape, transactions), &found.templates);
    }
    let _ = write!(
        out,
        "\n[design]\n# As many sessions were open at once in the log; how many of them were busy, and how long \
         they paused, is not known.\nclients = {}\nduration = \"60s\"\nwarm_up = \"10s\"\n",
        found.sessions.clamp(1, 1000)
    );
    Ok(Captured {
        study: out,
        format,
        schema: schema.map(|name| name.to_string()),
        kinds: shapes.len(),
        transactions,
        counts: found.counts,
    })
}

fn leave_out(found: &mut Found, reason: Reason, shapes: &[Shape]) {
    let n: u64 = shapes.iter().map(|shape| shape.statements).sum();
    found.counts.replayed -= n;
    found.counts.leave_out(reason, n);
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

fn why_nothing(found: &Found) -> String {
    let counts = &found.counts;
    let left_out = counts.left_out.iter().map(|(reason, n)| format!("{n} {}", reason.text()));
    let mut parts: Vec<String> = vec![format!("{} statements were read", counts.read)];
    if counts.control > 0 {
        parts.push(format!("{} begin or end transactions", counts.control));
    }
    parts.extend(left_out);
    parts.join(", ")
}

/// A comment of one line, whatever the text.
fn comment(out: &mut String, text: &str) {
    let _ = writeln!(out, "# {}", dyno_units::clean_text(text).replace(['\n', '\r'], " "));
}

fn head(out: &mut String, found: &Found, (format, request): (Format, &Request)) {
    let counts = &found.counts;
    comment(out, &format!("Captured from {}, a {}.", request.source, format.text()));
    comment(out, &format!("{} statements were read:", counts.read));
    comment(out, &format!("  {} are replayed by this study", counts.replayed));
    comment(out, &format!("  {} begin or end transactions", counts.control));
    for (reason, n) in &counts.left_out {
        comment(out, &format!("  {n} are left out: {}", reason.text()));
    }
    out.push_str("#\n");
    for line in unknown(found.has_texts, format) {
        comment(out, line);
    }
    let tables: BTreeSet<&str> =
        found.templates.iter().filter_map(|one| one.table.as_deref()).collect();
    let tables: Vec<&str> = tables.into_iter().take(100).collect();
    comment(out, &format!("Tables: {}", tables.join(", ")));
    let _ = writeln!(
        out,
        "\ntitle = {}\n",
        quoted(&format!(
            "What do the transactions captured from {} cost?",
            dyno_units::clean_text(&request.source)
        ))
    );
}

/// What the study does not have of the workload.
fn unknown(has_texts: bool, format: Format) -> Vec<&'static str> {
    let mut lines = vec![
        "What the log does not say, and this study therefore does not have:",
        "- the tables and their rows: load it on a copy of the database, never on the one that is in use",
        "- how many rows each statement returned or changed: the study expects none in particular",
        "- which values belong together, other than those that were always equal within a transaction",
        "- what the program read from one statement to use in the next",
    ];
    if !has_texts {
        lines.push(
            "- texts: letters of the same lengths stand for them, so comparisons with texts may find nothing",
        );
    }
    if format == Format::MySqlSlow {
        lines.push(
            "- statements that were not slow: with long_query_time above 0, shares are those among the slow ones",
        );
    }
    lines
}

fn database(out: &mut String, schema: Option<&str>, request: &Request) {
    out.push_str("[database.copy]\n");
    let url = match &request.url {
        Some(url) => url.clone(),
        None => {
            comment(out, "The server with the copy; its password comes from the environment.");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let name = schema.filter(|name| name.chars().all(is_plain)).unwrap_or("test");
            format!("mysql://dyno:${{DB_PASSWORD}}@127.0.0.1:3306/{name}")
        }
    };
    let _ = writeln!(out, "url = {}", quoted(&url));
}

/// `t1_update_accounts`: the first statement that changes rows, or the first.
fn name_of(shape: &Shape, templates: &[Template], idx: usize) -> String {
    let steps = shape.steps.iter().map(|step| &templates[step.template as usize]);
    let writes = ["insert", "update", "delete", "replace", "merge"];
    let first = steps.clone().find(|one| writes.contains(&one.verb.as_str()));
    let Some(first) = first.or_else(|| steps.clone().next()) else {
        return format!("t{}", idx + 1);
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let table: String = first
        .table
        .iter()
        .flat_map(|table| table.chars())
        .filter(|c| is_plain(*c))
        .take(40)
        .collect();
    let parts = [format!("t{}", idx + 1), first.verb.clone(), table.to_lowercase()];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

/// A text as TOML has it, in double quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Where the values of a transaction come from.
struct Naming<'a> {
    shape: &'a Shape,
    offsets: Vec<usize>,
    /// The place of the first value that is always the same, by the class.
    leaders: BTreeMap<usize, usize>,
}

impl<'a> Naming<'a> {
    fn new(shape: &'a Shape, templates: &[Template]) -> Naming<'a> {
        let offsets = shape.offsets();
        let mut leaders = BTreeMap::new();
        for (step, offset) in shape.steps.iter().zip(&offsets) {
            let marks = marks(&templates[step.template as usize].text);
            for idx in 0..step.values.len() {
                let is_single = step.most == 1 && matches!(marks.get(idx), Some(&(NUMBER | TEXT)));
                let place = offset + idx;
                if is_single && let Some(class) = shape.same.get(place) {
                    leaders.entry(*class).or_insert(place);
                }
            }
        }
        Naming { shape, offsets, leaders }
    }

    /// The place whose value stands at a place of a step that is executed once.
    fn leader(&self, place: usize) -> usize {
        let class = self.shape.same.get(place).copied().unwrap_or(place);
        self.leaders.get(&class).copied().unwrap_or(place)
    }

    /// Whether a value is given to new rows anywhere.
    fn is_new(&self, leader: usize, templates: &[Template]) -> bool {
        let steps = self.shape.steps.iter().zip(&self.offsets);
        steps.into_iter().any(|(step, offset)| {
            templates[step.template as usize].is_insert
                && (0..step.values.len()).any(|idx| self.leader(offset + idx) == leader)
        })
    }
}

fn marks(text: &str) -> Vec<char> {
    text.chars().filter(|c| [NUMBER, TEXT, NUMBERS, TEXTS].contains(c)).collect()
}

fn transaction(out: &mut String, (name, shape, all): (&str, &Shape, u64), templates: &[Template]) {
    let naming = Naming::new(shape, templates);
    let share = shape.transactions as f64 / all as f64 * 100.0;
    out.push('\n');
    comment(out, &format!("{share:.1} % of the transactions: {} of {all}", shape.transactions));
    let path = format!("workload.captured.transaction.{name}");
    let weight = (shape.transactions.div_ceil(all / WEIGHT_MOST + 1)).max(1);
    let _ = writeln!(out, "[{path}]\nweight = {weight}");
    let n_statements: u64 = shape.steps.iter().map(times).sum();
    if shape.begins != (n_statements > 1 || shape.rolls_back) {
        let _ = writeln!(out, "begin = {}", shape.begins);
    }
    let mut steps = String::new();
    let mut lets = String::new();
    for (idx, step) in shape.steps.iter().enumerate() {
        let template = &templates[step.template as usize];
        let mut written = Written { sql: String::new(), own: String::new(), lets: &mut lets };
        written.statement((&naming, templates), idx, template);
        let Written { sql, own, .. } = written;
        let _ = writeln!(steps, "\n[[{path}.steps]]");
        repetition(&mut steps, step);
        let _ = writeln!(steps, "sql = {}", quoted(&sql));
        if !own.is_empty() {
            let _ = write!(steps, "[{path}.steps.let]\n{own}");
        }
    }
    if shape.rolls_back {
        let _ = writeln!(steps, "\n[[{path}.steps]]\nroll_back = true");
    }
    if !lets.is_empty() {
        let _ = write!(out, "\n[{path}.let]\n{lets}");
    }
    out.push_str(&steps);
}

/// How often a step is executed in a row: the mean.
fn times(step: &Step) -> u64 {
    let runs = step.runs.max(1);
    ((step.executions + runs / 2) / runs).clamp(1, TIMES_MOST)
}

fn repetition(out: &mut String, step: &Step) {
    let times = times(step);
    if step.least != step.most {
        comment(out, &format!("{} to {} times, {times} on average", step.least, step.most));
    }
    if times > 1 {
        let _ = writeln!(out, "times = {times}");
    }
}

/// A statement and its generators.
struct Written<'a> {
    sql: String,
    /// Generators of the step.
    own: String,
    /// Generators of the transaction.
    lets: &'a mut String,
}

impl Written<'_> {
    fn statement(
        &mut self,
        (naming, templates): (&Naming<'_>, &[Template]),
        step_idx: usize,
        template: &Template,
    ) {
        let (step, offset) = (&naming.shape.steps[step_idx], naming.offsets[step_idx]);
        let n_marks = marks(&template.text).len();
        let mut idx = 0;
        for c in template.text.chars() {
            if ![NUMBER, TEXT, NUMBERS, TEXTS].contains(&c) {
                self.sql.push(c);
                continue;
            }
            let place = offset + idx;
            let stats = &step.values[idx];
            let is_text = [TEXT, TEXTS].contains(&c);
            if [NUMBERS, TEXTS].contains(&c) {
                self.list((step, idx), (place, is_text), n_marks);
            } else if let Some(constant) = stats.constant() {
                self.sql.push_str(&if is_text {
                    format!("'{constant}'")
                } else {
                    constant.to_owned()
                });
            } else if step.most > 1 {
                let name = format!("v{}", place + 1);
                let _ = write!(self.sql, ":{name}");
                draw(&mut self.own, &name, (stats, template.is_insert, is_text));
            } else {
                let leader = naming.leader(place);
                let name = format!("v{}", leader + 1);
                let _ = write!(self.sql, ":{name}");
                if leader == place {
                    let is_new = naming.is_new(leader, templates);
                    draw(self.lets, &name, (stats, is_new, is_text));
                }
            }
            idx += 1;
        }
    }

    /// Writes a list of as many values as there were on average.
    fn list(
        &mut self,
        (step, idx): (&Step, usize),
        (place, is_text): (usize, bool),
        n_marks: usize,
    ) {
        let stats = &step.values[idx];
        let mean = (step.elements[idx] + step.executions / 2) / step.executions.max(1);
        let room = (VALUES_MOST.saturating_sub(n_marks - 1) / n_marks.max(1)).max(1);
        let n = mean.clamp(1, room as u64);
        let names: Vec<String> = (1..=n).map(|nth| format!("v{}_{nth}", place + 1)).collect();
        for name in &names {
            draw(&mut self.own, name, (stats, false, is_text));
        }
        self.sql += &names.iter().map(|name| format!(":{name}")).collect::<Vec<_>>().join(", ");
    }
}

/// Writes the generators of a value.
fn draw(out: &mut String, name: &str, (stats, is_new, is_text): (&Stats, bool, bool)) {
    let (generators, words) = stats.generators(name, is_new, is_text);
    comment(out, &words);
    for (name, text) in generators {
        let _ = writeln!(out, "{name} = {text}");
    }
}
