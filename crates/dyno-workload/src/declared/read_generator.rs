//! Reads generators: `value` of a column, and names in `let`.

use std::collections::BTreeMap;

use dyno_model::Tree;
use dyno_model::declared::{GENERATORS, NULL};
use dyno_pgbench::{Expression, Names};

use crate::prelude::*;
use crate::sysbench::distribution::DistributionSpec;

use super::calendar;
use super::generator::{Constant, Generator, Kind, Normal};
use super::problems::{
    Entries, Problems, each, find, list, listed, number, only, read, table, text,
};
use super::template;
use super::values::Formula;
use super::{Files, LINES_MOST};

/// The exponent of `zipf` where none is given.
const THETA: f64 = 0.99;

const DECIMALS_MOST: i64 = 9;

const LETTERS_MOST: i64 = 1 << 24;

/// Longest text of `text`, with the values in it: texts that are made of texts grow fast.
const TEXT_MOST: usize = 1 << 24;

pub(super) struct Known<'a> {
    /// The values that can be used, by name, each with its place.
    pub(super) values: &'a BTreeMap<String, usize>,
    /// What `values` holds, for messages: "columns before this one".
    pub(super) what: &'static str,
    pub(super) rows: &'a BTreeMap<String, u64>,
    pub(super) files: &'a Files,
    pub(super) names: &'a mut Names,
    /// What is counted while clients run; none for columns.
    pub(super) numbering: Option<&'a mut Numbering>,
    pub(super) used: &'a mut Vec<usize>,
    /// Most bytes of the values that generators make, by their places.
    pub(super) rooms: &'a BTreeMap<usize, usize>,
}

/// Numbers given to generators that clients count with.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    /// One for each sequence: the column that it goes on after, if any. Sequences after one column are one.
    pub(super) sequences: Vec<Option<After>>,
    pub(super) counted: usize,
}

/// Where a sequence goes on in each trial.
#[derive(Clone, Debug)]
pub(super) struct After {
    /// Table and column, as SQL has them.
    column: String,
    step: i64,
    /// The first number if the column has none.
    pub(super) start: i64,
}

impl After {
    pub(super) fn query(&self) -> String {
        let (table, column) = self.column.rsplit_once('.').unwrap_or_default();
        format!("SELECT MAX({column}) FROM {table}")
    }

    /// After the question's answer. Fails unless that is a whole number that others can follow.
    pub(super) fn first(&self, answer: &TextRows) -> Result<i64, String> {
        let Some(largest) = answer.first().and_then(|row| row.first()?.as_deref()) else {
            return Ok(self.start);
        };
        let first = largest.parse::<i64>().ok().and_then(|largest| largest.checked_add(1));
        let shown: String = dyno_units::clean_text(largest).chars().take(100).collect();
        first.ok_or_else(|| {
            let column = &self.column;
            format!(
                "a `sequence` cannot go on after {column}, whose largest value is {shown}; leave out `after`"
            )
        })
    }
}

impl Known<'_> {
    fn place(&mut self, name: &str) -> Result<usize, String> {
        let Some(&place) = self.values.get(name) else {
            let names = listed(self.values.keys().cloned());
            let there = match self.values.is_empty() {
                true => format!("there are no {}", self.what),
                false => format!("the {} are {names}", self.what),
            };
            return Err(format!("`{name}` is not known here; {there}"));
        };
        self.used.push(place);
        Ok(place)
    }
}

pub(super) fn generator(
    problems: &mut Problems,
    tree: &Tree,
    known: &mut Known<'_>,
) -> Option<Generator> {
    let Tree::Table(entries) = tree else {
        let kind = Kind::Constant(constant(problems, tree)?);
        return Some(Generator { kind, null_share: 0.0 });
    };
    let named = GENERATORS.iter().filter(|one| find(entries, one.key.name).is_some());
    let named: Vec<_> = named.collect();
    let [found] = named[..] else {
        let names: Vec<&str> = GENERATORS.iter().map(|one| one.key.name).collect();
        let named: Vec<String> = named.iter().map(|one| format!("`{}`", one.key.name)).collect();
        let message = match named.is_empty() {
            true => "none of these keys is a generator".to_owned(),
            false => format!("{} are generators, but a value has only one", named.join(" and ")),
        };
        return problems.refuse(message, &format!("the generators are {}", names.join(", ")));
    };
    only(problems, entries, [&found.key, &NULL].into_iter().chain(found.beside));
    let null_share = read(problems, entries, "null", share).unwrap_or(0.0);
    let kind = match found.key.name {
        "sequence" => sequence(problems, entries, known),
        "uniform" => uniform(problems, entries, known),
        "zipf" => zipf(problems, entries, known),
        "normal" => normal(problems, entries, known),
        "one_of" => one_of(problems, entries),
        "map" => map(problems, entries, known),
        name => {
            read(problems, entries, name, |problems, value| simple(problems, name, value, known))
        }
    };
    Some(Generator { kind: kind?, null_share })
}

/// Generators of which one value says all.
fn simple(problems: &mut Problems, name: &str, tree: &Tree, known: &mut Known<'_>) -> Option<Kind> {
    match name {
        "text" => {
            let pieces = template::read(text(problems, tree)?, |name| known.place(name));
            let read = pieces.and_then(|pieces| {
                let room = template::room(&pieces, |place| known.rooms.get(&place).copied());
                let why = || format!("this text may have more than {TEXT_MOST} bytes");
                if room > TEXT_MOST { Err(why()) } else { Ok(Kind::Template { pieces, room }) }
            });
            read.map_err(|why| problems.add(why, "")).ok()
        }
        "letters" => letters(problems, tree),
        "uuid" => match tree {
            Tree::Switch(true) => Some(Kind::Uuid),
            _ => problems.refuse("write `uuid = true`", ""),
        },
        "date" => {
            let days = moments(problems, tree, calendar::date);
            days.map(|(first, n)| Kind::Date { first, n })
        }
        "timestamp" => {
            let seconds = moments(problems, tree, calendar::timestamp);
            seconds.map(|(first, n)| Kind::Timestamp { first, n })
        }
        "lines" => lines(problems, tree, known),
        _ => {
            let text = text(problems, tree)?;
            formula(problems, text, known).map(Kind::Formula)
        }
    }
}

/// Reads an expression of pgbench's language.
pub(super) fn formula(problems: &mut Problems, of: &str, known: &mut Known<'_>) -> Option<Formula> {
    let help = "expressions are those of pgbench, with `:name` for a value: \":qty * 2 + 1\"";
    let read = Expression::read(of, known.names);
    let wrong = |why| problems.add(format!("`{of}` is not an expression: {why}"), help);
    let expression = read.map_err(wrong).ok()?;
    let mut variables = Vec::new();
    for slot in expression.variables() {
        let name = known.names.name(slot).to_owned();
        let place = known.place(&name).map_err(|why| problems.add(why, ""));
        variables.extend(place.ok().map(|place| (slot, place)));
    }
    let offset = expression.as_offset().and_then(|(slot, number)| {
        let place = variables.iter().find(|(variable, _)| *variable == slot);
        place.map(|(_, place)| (*place, number))
    });
    Some(Formula { expression, variables, offset })
}

fn constant(problems: &mut Problems, tree: &Tree) -> Option<Constant> {
    match tree {
        Tree::Integer(number) => Some(Constant::Integer(*number)),
        Tree::Real(number) => Some(Constant::Real(*number)),
        Tree::Switch(is_on) => Some(Constant::Integer((*is_on).into())),
        Tree::Text(text) => Some(Constant::Text(text.as_bytes().to_vec())),
        other => problems.wrong_kind("a number, a text, true or false", other),
    }
}

/// The share of NULL: `"10%"` or `0.1`.
fn share(problems: &mut Problems, tree: &Tree) -> Option<f64> {
    let share = match tree {
        Tree::Text(text) => dyno_units::parse_percentage(text).ok().map(|percent| percent / 100.0),
        Tree::Integer(number) => Some(*number as f64),
        Tree::Real(number) => Some(*number),
        _ => None,
    };
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.or_else(|| problems.refuse("expected a share such as \"10%\" or 0.1", ""))
}

/// A number, or the name of a table, which stands for its number of rows.
fn bound(problems: &mut Problems, tree: &Tree, known: &Known<'_>) -> Option<f64> {
    match tree {
        Tree::Text(name) => {
            let rows = known.rows.get(name).map(|rows| *rows as f64);
            let help = "a bound is a number, or a table, for its number of rows";
            rows.or_else(|| problems.refuse(format!("there is no table `{name}`"), help))
        }
        other => number(problems, other),
    }
}

/// Two bounds; the name of a table alone stands for 1 to its number of rows.
fn bounds(problems: &mut Problems, tree: &Tree, known: &Known<'_>) -> Option<(f64, f64)> {
    let (low, high) = match tree {
        Tree::Text(_) => (1.0, bound(problems, tree, known)?),
        Tree::List(items) if items.len() == 2 => {
            let read = each(problems, items, |problems, item| bound(problems, item, known));
            (read[0]?, read[1]?)
        }
        _ => {
            let help = "the name of a table stands for 1 to its number of rows";
            let message = "expected two bounds such as [1, 5000], or the name of a table";
            return problems.refuse(message, help);
        }
    };
    if low > high {
        let message = match tree {
            Tree::Text(name) => format!("table `{name}` has no rows to draw from"),
            _ => format!("the lower bound, {low}, is above the upper one, {high}"),
        };
        return problems.refuse(message, "");
    }
    Some((low, high))
}

/// Digits behind the point: as given, else none.
fn decimals(problems: &mut Problems, entries: Entries<'_>) -> u32 {
    let read = read(problems, entries, "decimals", |problems, tree| match tree {
        Tree::Integer(n) if (0..=DECIMALS_MOST).contains(n) => Some(*n as u32),
        _ => problems.refuse(format!("expected a whole number from 0 to {DECIMALS_MOST}"), ""),
    });
    read.unwrap_or(0)
}

/// A bound in units of 10^-decimals.
fn units(problems: &mut Problems, bound: f64, decimals: u32) -> Option<i64> {
    let units = bound * 10_f64.powi(decimals as i32);
    let is_near = (units - units.round()).abs() < 1e-6 * units.abs().max(1.0);
    if !is_near || units.abs() > 9e15 {
        let many = format!("has more than {decimals} decimal places");
        let message = format!("{bound} {}", if is_near { "is too large" } else { &many });
        return problems.refuse(message, "`decimals` is the number of decimal places");
    }
    Some(units.round() as i64)
}

fn over(
    problems: &mut Problems,
    (low, high): (f64, f64),
    decimals: u32,
    (spec, known): (DistributionSpec, &mut Known<'_>),
) -> Option<Kind> {
    let (low, high) = (units(problems, low, decimals)?, units(problems, high, decimals)?);
    let items = spec.over((high - low) as u64 + 1);
    let counted = known.numbering.as_mut().map(|numbering| {
        numbering.counted += 1;
        numbering.counted - 1
    });
    Some(Kind::Number { low, decimals, items, counted })
}

fn uniform(problems: &mut Problems, entries: Entries<'_>, known: &mut Known<'_>) -> Option<Kind> {
    let decimals = decimals(problems, entries);
    read(problems, entries, "uniform", |problems, value| {
        let bounds = bounds(problems, value, known)?;
        over(problems, bounds, decimals, (DistributionSpec::Uniform, known))
    })
}

fn zipf(problems: &mut Problems, entries: Entries<'_>, known: &mut Known<'_>) -> Option<Kind> {
    let exponent = read(problems, entries, "theta", |problems, tree| {
        let theta = number(problems, tree)?;
        let is_right = (0.0..=20.0).contains(&theta);
        let help = "0 is uniform, larger is more skewed";
        let wrong = || problems.refuse(format!("{theta} is not in [0, 20]"), help);
        is_right.then_some(theta).or_else(wrong)
    });
    let exponent = exponent.unwrap_or(THETA);
    read(problems, entries, "zipf", |problems, value| {
        let bounds = bounds(problems, value, known)?;
        over(problems, bounds, 0, (DistributionSpec::Zipfian { exponent }, known))
    })
}

fn normal(problems: &mut Problems, entries: Entries<'_>, known: &mut Known<'_>) -> Option<Kind> {
    let decimals = decimals(problems, entries);
    let (low, high) =
        read(problems, entries, "normal", |problems, value| bounds(problems, value, known))?;
    let mean = read(problems, entries, "mean", number).unwrap_or((low + high) / 2.0);
    let deviation = read(problems, entries, "deviation", number).unwrap_or((high - low) / 6.0);
    if !(low..=high).contains(&mean) {
        problems.within("mean", |problems| {
            problems.add(format!("{mean} is not within the bounds {low} to {high}"), "");
        });
        return None;
    }
    if deviation <= 0.0 {
        let help = "without `deviation` it is a sixth of the distance between the bounds";
        let message = format!("the standard deviation, {deviation}, is not above 0");
        return problems.refuse(message, help);
    }
    let (low, high) = (units(problems, low, decimals)?, units(problems, high, decimals)?);
    let scale = 10_f64.powi(decimals as i32);
    let (low, high, mean, deviation) = (low as f64, high as f64, mean * scale, deviation * scale);
    Some(Kind::Normal(Normal { low, high, mean, deviation, decimals }))
}

fn letters(problems: &mut Problems, value: &Tree) -> Option<Kind> {
    let lengths = match (value, pair(value)) {
        (Tree::Integer(n), _) => Some((*n, *n)),
        (_, Some([Tree::Integer(least), Tree::Integer(most)])) => Some((*least, *most)),
        _ => None,
    };
    let expected = "expected a length such as 20, or two such as [10, 30]";
    match lengths.filter(|(least, most)| 0 <= *least && least <= most && *most <= LETTERS_MOST) {
        Some((least, most)) => Some(Kind::Letters { least: least as usize, most: most as usize }),
        None => problems.refuse(format!("{expected}; at most {LETTERS_MOST}"), ""),
    }
}

fn pair(tree: &Tree) -> Option<&[Tree; 2]> {
    if let Tree::List(items) = tree { items[..].try_into().ok() } else { None }
}

/// Reads a moment as a number.
type Moment = fn(&str) -> Option<i64>;

fn moments(problems: &mut Problems, value: &Tree, read: Moment) -> Option<(i64, u64)> {
    let found = match pair(value) {
        Some([Tree::Text(first), Tree::Text(last)]) => read(first).zip(read(last)),
        _ => None,
    };
    match found {
        Some((first, last)) if first > last => {
            problems.refuse("the first value is after the last", "")
        }
        Some((first, last)) => Some((first, (last - first) as u64 + 1)),
        None => {
            let such = "such as [\"2024-01-01\", \"2024-12-31\"]";
            problems.refuse(format!("expected the first and the last value, {such}"), "")
        }
    }
}

fn one_of(problems: &mut Problems, entries: Entries<'_>) -> Option<Kind> {
    let items = read(problems, entries, "one_of", |problems, value| {
        let items = list(problems, value)?;
        if items.is_empty() {
            return problems.refuse("there is nothing to choose from", "");
        }
        let read = each(problems, items, constant);
        read.into_iter().collect::<Option<Vec<Constant>>>()
    })?;
    let weights = read(problems, entries, "weights", |problems, tree| {
        let weights = list(problems, tree)?;
        let read = weights.iter().map(|weight| match weight {
            Tree::Integer(weight) => u32::try_from(*weight).ok().map(u64::from),
            _ => None,
        });
        let read: Option<Vec<u64>> = read.collect();
        let read = read.filter(|read| read.len() == items.len() && read.iter().sum::<u64>() > 0);
        let n = items.len();
        let message = || format!("expected {n} whole numbers, one for each item, not all 0");
        read.or_else(|| problems.refuse(message(), ""))
    });
    let weights = weights.unwrap_or_else(|| vec![1; items.len()]);
    let cumulated = cumulated(weights.iter()).into();
    Some(Kind::OneOf { items: items.into(), cumulated })
}

/// The sums of each weight and all before it.
pub(super) fn cumulated<'w>(weights: impl Iterator<Item = &'w u64>) -> Vec<u64> {
    let sums = weights.scan(0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    });
    sums.collect()
}

fn lines(problems: &mut Problems, value: &Tree, known: &Known<'_>) -> Option<Kind> {
    let name = text(problems, value)?;
    let Some(file) = known.files.get(name) else {
        return problems.refuse(format!("the file `{name}` was not read"), "");
    };
    if known.files.values().map(|file| file.n_lines).sum::<usize>() > LINES_MOST {
        let why = format!("the files of `lines` have together more than {LINES_MOST} lines");
        return problems.refuse(why, "");
    }
    let (items, cumulated) = file.items();
    match items.is_empty() {
        true => problems.refuse(format!("the file `{name}` is empty"), ""),
        false => Some(Kind::OneOf { items, cumulated }),
    }
}

fn sequence(problems: &mut Problems, entries: Entries<'_>, known: &mut Known<'_>) -> Option<Kind> {
    let step = read(problems, entries, "step", |problems, tree| match tree {
        Tree::Integer(step) if *step != 0 => Some(*step),
        _ => problems.refuse("expected a whole number other than 0", ""),
    });
    let start = read(problems, entries, "sequence", |problems, value| match value {
        Tree::Integer(start) => Some(*start),
        // Behind the rows that the table was filled with.
        Tree::Text(_) if known.numbering.is_some() => {
            bound(problems, value, known).map(|rows| rows as i64 + 1)
        }
        _ => problems.refuse("expected the first number, such as 1", ""),
    })?;
    let step = step.unwrap_or(1);
    let is_of_rows = known.numbering.is_none();
    let after = read(problems, entries, "after", |problems, tree| {
        let column = text(problems, tree)?.to_owned();
        if is_of_rows {
            problems.add("`after` is for sequences of transactions, and this is a column", "");
        } else if !is_column(&column) {
            problems.add("expected a table and a column, such as \"orders.id\"", "");
        } else if step < 1 {
            problems.add("with `after`, `step` must be at least 1", "");
        }
        Some(After { column, step, start })
    });
    let nth = known
        .numbering
        .as_mut()
        .map(|numbering| problems.within("after", |problems| numbering.add(problems, after)));
    Some(Kind::Sequence { start, step, nth })
}

impl Numbering {
    /// The index of a sequence: a new one, or that after the same column.
    fn add(&mut self, problems: &mut Problems, after: Option<After>) -> usize {
        let same = self.sequences.iter_mut().enumerate().find_map(|(idx, known)| {
            let known = known.as_mut()?;
            (known.column == after.as_ref()?.column).then_some((idx, known))
        });
        if let (Some((idx, known)), Some(after)) = (same, &after) {
            if known.step != after.step {
                let message = format!("another sequence after {} has another `step`", after.column);
                problems.add(message, "give both the same: they share their numbers");
            }
            known.start = known.start.max(after.start);
            return idx;
        }
        self.sequences.push(after);
        self.sequences.len() - 1
    }
}

/// Whether a text is a table and a column, with or without quotes, and nothing else.
pub(super) fn is_column(text: &str) -> bool {
    let is_name = |part: &str| {
        let quote = part.chars().next().filter(|c| ['"', '`'].contains(c));
        let inside = quote.map_or(Some(part), |quote| part.get(1..)?.strip_suffix(quote));
        let is_inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        inside.is_some_and(|inside| !inside.is_empty() && inside.chars().all(is_inside))
    };
    text.contains('.') && text.split('.').all(is_name)
}

fn map(problems: &mut Problems, entries: Entries<'_>, known: &mut Known<'_>) -> Option<Kind> {
    let Some(of) = find(entries, "of") else {
        return problems.refuse("`map` needs `of`: the value to look up", "");
    };
    let of = problems.within("of", |problems| {
        let place = known.place(text(problems, of)?);
        place.map_err(|why| problems.add(why, "")).ok()
    });
    let pairs = read(problems, entries, "map", |problems, value| {
        let pairs = table(problems, value)?.iter().map(|(key, value)| {
            problems.within(key.clone(), |problems| {
                Some((key.as_bytes().to_vec(), constant(problems, value)?))
            })
        });
        pairs.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>()
    });
    let otherwise = read(problems, entries, "otherwise", constant);
    Some(Kind::Map { of: of?, pairs: pairs?, otherwise })
}
