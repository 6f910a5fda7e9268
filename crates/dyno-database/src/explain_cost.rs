//! What one statement costs the engine: the counters that it moves in repeated runs, less the
//! activity of an idle server. Runs alternate with idle intervals of the same length: both include
//! the server's own activity, and the cost of reading counters.

use std::collections::{BTreeMap, BTreeSet};

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{Connection, NamedRows, Reply};

use crate::dialects::ALL as ALL_SQL;

/// Counters by name, since the engine began to count.
pub type Counters = BTreeMap<String, f64>;

/// An engine whose counters can be read around a statement.
pub trait CostSource: Send {
    /// Before it runs. Fails, with the reason, if the server cannot give the access.
    fn check(&mut self, _sql: &str) -> Result<(), String> {
        Ok(())
    }

    fn counters(&mut self) -> Result<Counters, String>;

    /// Without a statement, only the transaction around it. Fails with the server's reason.
    fn run(&mut self, sql: Option<&str>) -> Result<Reply, String>;

    /// The optimizer's plan, as lines of the server; nothing is executed. Fails with the reason.
    fn plan(&mut self, sql: &str) -> Result<Vec<String>, String>;

    /// Rolls back the statement's changes after counters were read. Fails with the reason.
    fn after(&mut self) -> Result<(), String> {
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may not, and the transaction is declared read-only on the server, too.
    ReadOnly,
    /// It may; each run is rolled back.
    RolledBack,
}

#[derive(Clone, Copy, Debug)]
pub struct CostPlan {
    /// Runs that count, at least 1; one more before them warms up.
    pub runs: u32,
    pub access: Access,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    pub runs: u32,
    pub rows: u64,
    pub changed: u64,
    /// How long a run took, in seconds.
    pub seconds: Spread,
    /// Counters that moved beyond what they do on an idle server, the most moved first.
    pub counters: Vec<CounterCost>,
    pub n_counters: usize,
    /// The optimizer's plan, asked for after the last run; or why there is none.
    pub plan: Result<Vec<String>, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CounterCost {
    pub name: String,
    /// In a run, with the idle median subtracted.
    pub per_run: Spread,
    /// In an idle interval of the same length.
    pub idle: Spread,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The median; of an even number of values the mean of the two in the middle.
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Spread {
    /// The spread of these values; all zero if there are none.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else {
            return Spread::default();
        };
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        };
        Spread { median, low, high }
    }

    fn less(self, value: f64) -> Spread {
        Spread { median: self.median - value, low: self.low - value, high: self.high - value }
    }
}

/// First words of statements that only read.
const READING: [&str; 10] = [
    "SELECT", "WITH", "SHOW", "EXPLAIN", "ANALYZE", "DESCRIBE", "DESC", "TABLE", "VALUES", "PRAGMA",
];

/// First words of statements that can be rolled back. Others end the transaction (DDL, LOCK), are
/// outside of it (SET, KILL) or hide what they do (CALL, DO, EXECUTE).
const TAKEN_BACK: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE"];

/// First words of statements that have a plan.
const PLANNED: [&str; 9] =
    ["SELECT", "WITH", "TABLE", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE"];

/// Refuses a statement that makes forbidden changes, or changes that cannot be rolled back. The
/// transaction is read-only on the server as well; this catches what that allows all the same (SET,
/// KILL, SHUTDOWN), and what ends the transaction. Fails with the fault and a remedy.
pub fn check_statement(sql: &str, access: Access) -> Result<(), String> {
    let word = first_word(sql);
    if word.is_empty() {
        return Err("there is no statement to explain".to_owned());
    }
    if let Some(why) = ALL_SQL.iter().find_map(|dialect| (dialect.hidden_text)(sql)) {
        return Err(why.to_owned());
    }
    if access == Access::ReadOnly && !READING.contains(&word.as_str()) {
        return Err(format!(
            "a statement that begins with `{word}` is not known to be read-only; if it writes, allow \
             that: each run is then rolled back"
        ));
    }
    if !READING.contains(&word.as_str()) && !TAKEN_BACK.contains(&word.as_str()) {
        return Err(format!(
            "a statement that begins with {word} cannot be explained: each run is rolled back, \
             which undoes only INSERT, UPDATE, DELETE, REPLACE and MERGE"
        ));
    }
    // Where texts end differs by server and setting: a semicolon inside of one is not recognised.
    if sql.trim_end().trim_end_matches(';').contains(';') {
        return Err(
            "it contains a semicolon: only one statement can be explained at a time, and what \
             follows could end the transaction around it; if the semicolon is in a string, write \
             it in another way, such as by its character code"
                .to_owned(),
        );
    }
    Ok(())
}

/// The first word in capitals; comments and brackets before it are skipped.
fn first_word(sql: &str) -> String {
    let mut rest = sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    loop {
        let after = if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else if rest.starts_with("--") || rest.starts_with('#') {
            rest.split_once('\n').map_or("", |(_, after)| after)
        } else {
            break;
        };
        rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    }
    rest.chars().take_while(char::is_ascii_alphabetic).collect::<String>().to_ascii_uppercase()
}

/// All that may be a name: words, and what is between two quotes of any kind.
pub(crate) fn words(text: &str) -> BTreeSet<String> {
    // To servers, whatever is not ASCII is a letter.
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
    let plain = text.split(|c| !is_letter(c)).map(str::to_owned);
    // Behind each quote, whichever of them begins a name.
    let quoted = ['`', '"'].into_iter().flat_map(|quote| {
        text.match_indices(quote).map(move |(at, _)| until_quote(&text[at + 1..], quote))
    });
    plain.chain(quoted).filter(|word| !word.is_empty()).collect()
}

/// What a name is whose first quote is before the text; a quote within it is doubled.
fn until_quote(text: &str, quote: char) -> String {
    let mut name = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == quote && letters.next_if_eq(&quote).is_none() {
            break;
        }
        name.push(letter);
    }
    name
}

/// `None` if `is_stopped` between two runs. Fails, with the reason, if it is refused.
pub fn explain_cost(
    source: &mut dyn CostSource,
    sql: &str,
    plan: CostPlan,
    clock: &dyn Clock,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Cost>, String> {
    check_statement(sql, plan.access)?;
    source.check(sql)?;
    // The first run fills caches, and shows how long an idle interval has to be.
    let mut length = interval(source, Some(sql), Nanoseconds::ZERO, clock)?.length;
    let (mut runs, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        if is_stopped() {
            return Ok(None);
        }
        idle.push(interval(source, None, length, clock)?);
        let run = interval(source, Some(sql), Nanoseconds::ZERO, clock)?;
        length = run.length;
        runs.push(run);
    }
    let seconds: Vec<f64> = runs.iter().map(|run| run.length.as_secs_f64()).collect();
    let last = runs.last().map(|run| run.reply).unwrap_or_default();
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.moved.keys()).collect();
    let word = first_word(sql);
    let optimizers = match PLANNED.contains(&word.as_str()) {
        true => source.plan(sql),
        false => Err(format!("a statement that begins with {word} has none")),
    };
    Ok(Some(Cost {
        plan: optimizers,
        runs: plan.runs.max(1),
        rows: last.rows,
        changed: last.affected,
        seconds: Spread::of(&seconds),
        n_counters: names.len(),
        counters: moved(&runs, &idle, names),
    }))
}

/// Counters around one run, or around as long a time without one.
struct Interval {
    length: Nanoseconds,
    reply: Reply,
    moved: Counters,
}

fn interval(
    source: &mut dyn CostSource,
    sql: Option<&str>,
    at_least: Nanoseconds,
    clock: &dyn Clock,
) -> Result<Interval, String> {
    let before = source.counters()?;
    let began = clock.now();
    let reply = source.run(sql)?;
    let length = clock.now().saturating_sub(began);
    clock.sleep_until(began + at_least);
    let after = source.counters()?;
    source.after()?;
    let difference = |(name, value): (String, f64)| {
        let before = before.get(&name).copied()?;
        Some((name, value - before))
    };
    Ok(Interval { length, reply, moved: after.into_iter().filter_map(difference).collect() })
}

/// The counters whose median in runs is outside the range of idle intervals.
fn moved(runs: &[Interval], idle: &[Interval], names: BTreeSet<&String>) -> Vec<CounterCost> {
    let spread = |intervals: &[Interval], name: &str| {
        let values: Vec<f64> =
            intervals.iter().filter_map(|one| one.moved.get(name).copied()).collect();
        Spread::of(&values)
    };
    let mut found: Vec<CounterCost> = names
        .into_iter()
        .filter_map(|name| {
            let (run, idle) = (spread(runs, name), spread(idle, name));
            let is_beyond = run.median > idle.high || run.median < idle.low;
            let per_run = run.less(idle.median);
            (is_beyond && per_run.median != 0.0).then(|| CounterCost {
                name: name.clone(),
                per_run,
                idle,
            })
        })
        .collect();
    found.sort_by(|a, b| {
        let (left, right) = (a.per_run.median.abs(), b.per_run.median.abs());
        right.total_cmp(&left).then_with(|| a.name.cmp(&b.name))
    });
    found
}

pub(crate) fn table(answer: &NamedRows) -> Vec<String> {
    let cells = |row: &Vec<Option<String>>| -> Vec<String> {
        row.iter().map(|cell| cell.clone().unwrap_or_else(|| "NULL".to_owned())).collect()
    };
    let mut lines = vec![answer.columns.clone()];
    lines.extend(answer.rows.iter().map(cells));
    dyno_units::aligned(&lines, &[])
}

/// Runs a statement without taking its rows into memory.
pub(crate) fn execute(connection: &mut dyn Connection, sql: &str) -> Result<Reply, String> {
    connection.set_blocking(true, 0).map_err(|error| error.to_string())?;
    connection.send_text(sql);
    loop {
        if let std::task::Poll::Ready(reply) = connection.poll_reply() {
            return reply.map_err(|error| format!("the server refuses the statement: {error}"));
        }
    }
}

#[cfg(test)]
mod tests;
