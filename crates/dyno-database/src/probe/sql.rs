//! A user's own probe: an SQL statement whose numbers become readings.
//!
//! One that fails costs its own readings; it is told once, and counted.

use dyno_host::{Probe, ReadingLegend, Readings, USER_LEGEND};
use dyno_units::Nanoseconds;
use dyno_workload::{Connector, NamedRows};

use super::{Asker, cell, named_numbers, number};

/// A probe that asks `sql` every `every`, on a connection of its own.
///
/// The answer is rows of a name and a number (the readings `probe.NAME.<name>`), or one row of
/// numbers with named columns (`probe.NAME.<column>`). Whatever is not a number is left out. Times
/// at which there was no number at all are counted in `probe.NAME.failures`, and the first is told.
pub fn sql_probe(
    connector: Connector,
    name: &str,
    sql: &str,
    every: Nanoseconds,
) -> Box<dyn Probe> {
    Box::new(SqlProbe {
        asker: Asker::new(connector),
        name: format!("probe.{name}"),
        sql: sql.to_owned(),
        every,
        n_failed: 0,
        notes: Vec::new(),
    })
}

struct SqlProbe {
    asker: Asker,
    name: String,
    sql: String,
    every: Nanoseconds,
    n_failed: u64,
    notes: Vec<String>,
}

impl SqlProbe {
    /// The numbers that the server answers at `now`, by their names; at least one.
    fn ask(&mut self, now: Nanoseconds) -> Result<Vec<(String, f64)>, String> {
        let found = numbers(&self.asker.answer(now, &self.sql)?);
        if found.is_empty() {
            let reason = "the answer is neither rows of a name and a number nor one row of numbers";
            return Err(reason.to_owned());
        }
        Ok(found)
    }
}

impl Probe for SqlProbe {
    fn legend(&self) -> &'static [ReadingLegend] {
        USER_LEGEND
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        match self.ask(now) {
            Ok(found) => {
                for (name, value) in found {
                    readings.insert(format!("{}.{}", self.name, spelt(&name)), value);
                }
            }
            Err(reason) => {
                if self.n_failed == 0 {
                    self.notes.push(format!("{} cannot be read: {reason}", self.name));
                }
                self.n_failed += 1;
            }
        }
        readings.insert(format!("{}.failures", self.name), self.n_failed as f64);
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn every(&self) -> Nanoseconds {
        self.every
    }

    fn take_notes(&mut self) -> Vec<String> {
        // The first failure says why; what the connection would tell is that again.
        std::mem::take(&mut self.notes)
    }
}

/// The numbers of an answer by their names.
pub(super) fn numbers(answer: &NamedRows) -> Vec<(String, f64)> {
    let is_named = |row: &Vec<Option<String>>| {
        row.len() == 2
            && cell(row, 0).is_some_and(|name| number(name).is_none())
            && cell(row, 1).is_none_or(|value| number(value).is_some())
    };
    if !answer.rows.is_empty() && answer.rows.iter().all(is_named) {
        let pair =
            |row: &Vec<Option<String>>| Some((cell(row, 0)?.to_owned(), number(cell(row, 1)?)?));
        return answer.rows.iter().filter_map(pair).collect();
    }
    if answer.rows.len() == 1 {
        return named_numbers(answer).into_iter().collect();
    }
    Vec::new()
}

/// A name as a reading has it: no blanks, nothing that a pattern or a query would trip over.
pub(crate) fn spelt(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    name.trim().chars().map(keep).collect()
}
