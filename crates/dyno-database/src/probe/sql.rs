//! A user's own probe: an SQL statement whose numbers become readings.

use dyno_host::{Probe, ReadingLegend, Readings};
use dyno_units::Nanoseconds;
use dyno_workload::{Connector, NamedRows};

use super::{Asker, Every, cell, legend, named_numbers, number};

pub(super) const LEGEND: &[ReadingLegend] =
    &[legend("probe.*", "", "a number that the study's own probe of this name read")];

/// A probe that asks `sql` every `every`, on a connection of its own.
///
/// The answer is rows of a name and a number (the readings `probe.NAME.<name>`), or one row of
/// numbers with named columns (`probe.NAME.<column>`). Whatever is not a number is left out, and a
/// statement that fails gives no readings.
pub fn sql_probe(
    connector: Connector,
    name: &str,
    sql: &str,
    every: Nanoseconds,
) -> Box<dyn Probe> {
    Box::new(SqlProbe {
        asker: Asker::new(connector),
        name: name.to_owned(),
        sql: sql.to_owned(),
        every: Every::new(every),
    })
}

struct SqlProbe {
    asker: Asker,
    name: String,
    sql: String,
    every: Every,
}

impl Probe for SqlProbe {
    fn legend(&self) -> &'static [ReadingLegend] {
        LEGEND
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        if !self.every.is_due(now) {
            return;
        }
        let Some(answer) = self.asker.named_rows(now, &self.sql) else { return };
        for (name, value) in numbers(&answer) {
            readings.insert(format!("probe.{}.{}", self.name, spelt(&name)), value);
        }
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
