//! Declared transactions: drawn values, steps, expectations.

use std::collections::BTreeMap;

use dyno_model::declared::DIALECTS;
use dyno_model::{Tree, declared};
use dyno_pgbench::is_valid_name;

use crate::prelude::*;

use super::Files;
use super::definition::{Definition, PerDialect, TEXTS_MOST, per_dialect};
use super::generator::Generator;
use super::problems::{
    Entries, Problems, count, each, find, list, listed, only, switch, table, text, texts,
};
use super::read_generator::{Known, Numbering, formula, generator};
use super::sql::{Effect, Scanned};
use super::values::Formula;

#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) name: String,
    pub(super) weight: u64,
    /// Whether its statements are one transaction of the database.
    pub(super) has_begin: bool,
    /// What is drawn when it begins.
    pub(super) lets: Vec<Let>,
    pub(super) steps: Vec<Step>,
    pub(super) think: Think,
    pub(super) n_values: usize,
    /// Bytes that its texts take, roughly.
    pub(super) room: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Let {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) generator: Generator,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) times: u64,
    /// What is drawn each time.
    pub(super) lets: Vec<Let>,
    pub(super) condition: Option<Formula>,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Sql(Sql),
    RollBack,
}

#[derive(Clone, Debug)]
pub(super) struct Sql {
    /// As it is in each of [`Dialect::WITH_TRANSACTIONS`], or why it cannot be sent there.
    pub(super) forms: [Result<Form, String>; 3],
    /// Where the columns of the first row go.
    pub(super) read: Vec<usize>,
    /// Fewest and most rows that are expected.
    pub(super) rows: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) prepared: String,
    /// The places of its values.
    pub(super) values: Vec<usize>,
    pub(super) is_read: bool,
    pub(super) is_write: bool,
    pub(super) effect: Effect,
}

/// How long a client pauses after a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Think {
    #[default]
    No,
    Fixed(Nanoseconds),
    /// Exponentially distributed, with this mean.
    Exponential(Nanoseconds),
}

/// The place of the number of rows of the latest statement.
pub(super) const ROWS: usize = 0;

const TIMES_MOST: u64 = 1_000_000;

/// Most values of a statement: what all protocols take.
const VALUES_MOST: usize = 255;

struct Scope<'a> {
    definition: &'a Definition,
    /// The numbers given so far, and the names of expressions.
    names: dyno_pgbench::Names,
    numbering: Numbering,
    files: &'a Files,
    rows: BTreeMap<String, u64>,
    values: BTreeMap<String, usize>,
    n_values: usize,
    used: Vec<usize>,
    /// Most bytes of the values of generators, by their places.
    rooms: BTreeMap<usize, usize>,
}

impl Scope<'_> {
    fn known(&mut self) -> Known<'_> {
        Known {
            values: &self.values,
            what: "values before it",
            rows: &self.rows,
            files: self.files,
            names: &mut self.names,
            numbering: Some(&mut self.numbering),
            used: &mut self.used,
            rooms: &self.rooms,
        }
    }

    fn add(&mut self, problems: &mut Problems, name: &str) -> usize {
        if !is_valid_name(name) {
            let help = "use letters, digits and `_`, not beginning with a digit";
            problems.add(format!("`{name}` cannot be the name of a value"), help);
        }
        if self.values.contains_key(name) {
            let of_rows = "is the number of rows of the latest statement";
            let why = if name == "rows" { of_rows } else { "already exists" };
            let message = format!("`{name}` {why}");
            problems.add(message, "give it another name");
        }
        self.values.insert(name.to_owned(), self.n_values);
        self.n_values += 1;
        self.n_values - 1
    }
}

/// Reads a transaction; numbers and names that it needs are added to those of the definition.
pub(super) fn read(
    problems: &mut Problems,
    (name, tree): (&str, &Tree),
    definition: &mut Definition,
    files: &Files,
) -> Option<Transaction> {
    let entries = table(problems, tree)?;
    only(problems, entries, declared::TRANSACTION);
    let mut scope = Scope {
        definition,
        names: definition.names.clone(),
        numbering: definition.numbering.clone(),
        files,
        rows: definition.tables.iter().map(|table| (table.name.clone(), table.rows)).collect(),
        values: BTreeMap::from([("rows".to_owned(), ROWS)]),
        n_values: ROWS + 1,
        used: vec![ROWS],
        rooms: BTreeMap::new(),
    };
    let weight = super::problems::read(problems, entries, "weight", count).unwrap_or(1);
    if u32::try_from(weight).is_err() {
        problems.within("weight", |problems| problems.add("this weight is too large", ""));
    }
    let lets = lets(problems, entries, &mut scope);
    let steps = match find(entries, "steps") {
        Some(tree) => problems.within("steps", |problems| steps(problems, tree, &mut scope)),
        None => problems
            .refuse("the transaction has no steps", "add `steps = [{ sql = \"SELECT 1\" }]`"),
    }?;
    unused(problems, (&lets, &scope), "is drawn and never used", "leave it out");
    let n_statements: u64 = steps.iter().filter(|step| step.is_sql()).map(|step| step.times).sum();
    let begin = super::problems::read(problems, entries, "begin", switch);
    let rolls_back = steps.iter().any(|step| !step.is_sql());
    let has_begin = begin.unwrap_or(n_statements > 1 || rolls_back);
    if !has_begin && rolls_back {
        problems.add("without BEGIN there is nothing to roll back", "leave `begin = false` out");
    }
    let think = super::problems::read(problems, entries, "think", think).unwrap_or_default();
    let all = lets.iter().chain(steps.iter().flat_map(|step| &step.lets));
    let room = 1024 + all.map(|one| one.generator.kind.room()).sum::<usize>();
    if room > TEXTS_MOST {
        let message = format!("its values may have more than {} MiB of text", TEXTS_MOST >> 20);
        problems.add(message, "");
    }
    let Scope { names, numbering, n_values, .. } = scope;
    definition.names = names;
    definition.numbering = numbering;
    let name = name.to_owned();
    Some(Transaction { name, weight, has_begin, lets, steps, think, n_values, room })
}

fn unused(problems: &mut Problems, (lets, scope): (&[Let], &Scope<'_>), why: &str, help: &str) {
    for unused in lets.iter().filter(|one| !scope.used.contains(&one.at)) {
        let message = format!("`{}` {why}", unused.name);
        problems.path_in("let", &unused.name, |problems| problems.add(message, help));
    }
}

impl Step {
    /// Whether it takes nothing from the rows that it receives.
    pub(super) fn reads_nothing(&self) -> bool {
        if let Action::Sql(sql) = &self.action { sql.read.is_empty() } else { true }
    }

    fn is_sql(&self) -> bool {
        matches!(self.action, Action::Sql(_))
    }
}

/// Reads `let`: values in their order, each of which may use those before it.
fn lets(problems: &mut Problems, entries: Entries<'_>, scope: &mut Scope<'_>) -> Vec<Let> {
    let read = super::problems::read(problems, entries, "let", |problems, tree| {
        let mut lets = Vec::new();
        for (name, tree) in table(problems, tree)? {
            problems.within(name.clone(), |problems| {
                let generator = generator(problems, tree, &mut scope.known());
                // Also if it is wrong: its name is known from here on.
                let at = scope.add(problems, name);
                scope.rooms.extend(generator.iter().map(|made| (at, made.kind.room())));
                lets.extend(generator.map(|generator| Let { name: name.clone(), at, generator }));
            });
        }
        Some(lets)
    });
    read.unwrap_or_default()
}

fn steps(problems: &mut Problems, tree: &Tree, scope: &mut Scope<'_>) -> Option<Vec<Step>> {
    let items = list(problems, tree)?;
    if items.is_empty() {
        problems.add("the transaction has no steps", "");
    }
    each(problems, items, |problems, item| step(problems, item, scope)).into_iter().collect()
}

fn step(problems: &mut Problems, tree: &Tree, scope: &mut Scope<'_>) -> Option<Step> {
    let entries = table(problems, tree)?;
    only(problems, entries, declared::STEP);
    let times = super::problems::read(problems, entries, "times", |problems, tree| {
        let times = count(problems, tree)?;
        if !(1..=TIMES_MOST).contains(&times) {
            problems.add(format!("expected a whole number from 1 to {TIMES_MOST}"), "");
        }
        Some(times)
    });
    let lets = lets(problems, entries, scope);
    let condition = super::problems::read(problems, entries, "if", |problems, tree| {
        let text = text(problems, tree)?;
        formula(problems, text, &mut scope.known())
    });
    let rolls_back = super::problems::read(problems, entries, "roll_back", switch);
    let action = match (find(entries, "sql"), rolls_back.unwrap_or(false)) {
        (Some(tree), false) => {
            let forms = problems.within("sql", |problems| {
                let sql = per_dialect(problems, tree)?;
                forms(problems, &sql, scope)
            });
            let read = super::problems::read(problems, entries, "read", |problems, tree| {
                let names = texts(problems, tree)?;
                if names.is_empty() {
                    problems.add("name the columns that are read", "");
                }
                Some(names.iter().map(|name| read_into(problems, name, scope)).collect())
            });
            let rows = super::problems::read(problems, entries, "rows", expected_rows);
            Action::Sql(Sql { forms: forms?, read: read.unwrap_or_default(), rows })
        }
        (None, true) => {
            for key in ["read", "rows"].into_iter().filter(|key| find(entries, key).is_some()) {
                problems.add(format!("`{key}` belongs to a statement"), "");
            }
            Action::RollBack
        }
        _ => {
            let help = "write `sql = \"SELECT …\"`, or `roll_back = true`";
            return problems.refuse("a step is either a statement or a rollback", help);
        }
    };
    let help = "draw it in the step that uses it first, or leave it out";
    unused(problems, (&lets, scope), "is drawn and not used in this step", help);
    Some(Step { times: times.unwrap_or(1), lets, condition, action })
}

/// The place that a column is read into: a new one, or that of an earlier reading.
fn read_into(problems: &mut Problems, name: &str, scope: &mut Scope<'_>) -> usize {
    let known = scope.values.get(name).copied().filter(|at| *at != ROWS);
    known.unwrap_or_else(|| scope.add(problems, name))
}

/// An error in all given dialects is a problem; in some it is refused once one is known.
fn forms(
    problems: &mut Problems,
    sql: &PerDialect,
    scope: &mut Scope<'_>,
) -> Option<[Result<Form, String>; 3]> {
    let forms = Dialect::WITH_TRANSACTIONS.map(|dialect| match sql.of(dialect) {
        Some(text) => form(text, dialect, scope),
        None => {
            let named = DIALECTS[super::definition::place(dialect)];
            Err(format!("the statement is not given for this dialect; add `{named} = \"…\"`"))
        }
    });
    let given = Dialect::WITH_TRANSACTIONS.iter().zip(&forms);
    let given = given.filter(|(dialect, _)| sql.of(**dialect).is_some());
    let wrong: Vec<_> = given.map(|(_, form)| form.as_ref().err()).collect();
    if wrong.iter().all(Option::is_some) {
        return problems.refuse(wrong[0]?.clone(), "");
    }
    Some(forms)
}

fn form(text: &str, dialect: Dialect, scope: &mut Scope<'_>) -> Result<Form, String> {
    let scanned = Scanned::read(text, dialect)?;
    let mut values = Vec::new();
    for name in scanned.names() {
        let Some(&at) = scope.values.get(name) else {
            let known = listed(scope.values.keys().map(|name| format!("`:{name}`")));
            let why = "has no value here: it is neither in `let` nor read before; known here";
            return Err(format!("`:{name}` {why}: {known}"));
        };
        values.push(at);
        scope.used.push(at);
    }
    let n = values.len();
    if n > VALUES_MOST {
        return Err(format!("the statement has {n} values, but at most {VALUES_MOST} are allowed"));
    }
    if let Some((table, columns)) = scanned.inserted_columns()
        && let Some(idx) = scope.definition.find_table(&table)
    {
        let table = &scope.definition.tables[idx];
        for column in columns {
            if table.columns.iter().all(|one| one.name.to_lowercase() != column) {
                return Err(format!("table `{}` has no column `{column}`", table.name));
            }
        }
    }
    let (is_read, is_write) = (scanned.is_read(), scanned.is_write());
    Ok(Form { prepared: scanned.prepared(), values, is_read, is_write, effect: scanned.effect() })
}

/// Reads `1`, `"0..1"`, `"1.."` or `"..10"`.
fn expected_rows(problems: &mut Problems, tree: &Tree) -> Option<(u64, u64)> {
    let bounds = match tree {
        Tree::Integer(n) => u64::try_from(*n).ok().map(|n| (n, n)),
        Tree::Text(text) => text.split_once("..").and_then(|(least, most)| {
            let read = |text: &str, open: u64| match text.trim() {
                "" => Some(open),
                text => dyno_units::parse_count(text).ok(),
            };
            Some((read(least, 0)?, read(most, u64::MAX)?))
        }),
        _ => None,
    };
    let bounds = bounds.filter(|(least, most)| least <= most);
    let message = "expected a number of rows such as 1, \"0..1\" or \"1..\"";
    bounds.or_else(|| problems.refuse(message, ""))
}

fn think(problems: &mut Problems, tree: &Tree) -> Option<Think> {
    let duration = |problems: &mut Problems, tree: &Tree| {
        let read = match tree {
            Tree::Text(text) => dyno_units::parse_duration(text).ok(),
            _ => None,
        };
        let help = "for exponentially distributed times write { exponential = \"5ms\" }";
        read.or_else(|| problems.refuse("expected a duration such as \"5ms\"", help))
    };
    match tree {
        Tree::Table(entries) => {
            only(problems, entries, declared::THINK);
            let mean = super::problems::read(problems, entries, "exponential", duration)?;
            Some(Think::Exponential(mean))
        }
        other => duration(problems, other).map(Think::Fixed),
    }
}
