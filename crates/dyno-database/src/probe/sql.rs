//! A user's probe: an SQL statement whose numbers become readings. A failure costs its own
//! readings; the first is reported, all are counted.

use dyno_host::{Failures, Probe, Readings, USER_READINGS, reading_name};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connector, NamedRows};

use super::{Asker, cell, named_numbers, number};

/// Runs `sql` every `every`, on its own connection.
///
/// The answer is rows of name and number (readings `probe.NAME.<name>`), or one row with named columns
/// (`probe.NAME.<column>`); anything else is ignored. Runs without any number are counted in
/// `probe.NAME.failures`; the first is reported.
pub fn sql_probe(
    connector: Connector,
    name: &str,
    sql: &str,
    every: Nanoseconds,
) -> Box<dyn Probe> {
    Box::new(SqlProbe {
        asker: Asker::of_tables(connector),
        name: format!("probe.{name}"),
        sql: sql.to_owned(),
        every,
        failures: Failures::default(),
    })
}

struct SqlProbe {
    asker: Asker,
    name: String,
    sql: String,
    every: Nanoseconds,
    failures: Failures,
}

impl SqlProbe {
    /// The readings that the server answers at `now`; at least one.
    fn ask(&mut self, now: Nanoseconds) -> Result<Vec<(String, f64)>, String> {
        let found = numbers(&self.asker.answer(now, &self.sql)?);
        if found.is_empty() {
            let reason = "the answer is neither rows of a name and a number nor one row of numbers";
            return Err(reason.to_owned());
        }
        Ok(found
            .into_iter()
            .map(|(name, value)| (reading_name(&self.name, &name), value))
            .collect())
    }
}

impl Probe for SqlProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        USER_READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        let found = self.ask(now);
        self.failures.add(&self.name, found, readings);
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn every(&self) -> Nanoseconds {
        self.every
    }

    fn take_notes(&mut self) -> Vec<String> {
        // The first failure says why; the connection would only repeat it.
        self.failures.take_notes()
    }
}

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
