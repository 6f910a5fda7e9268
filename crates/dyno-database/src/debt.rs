//! An engine's debt: work that it has confirmed but not done, such as pages to flush, row versions
//! to purge or vacuum, files to compact. An idle server works it off, for a measurable time; a step
//! that begins earlier pays for the one before.

/// The deferred work of one engine at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Debt {
    /// Its parts, in the order of relevance.
    pub parts: Vec<DebtPart>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DebtPart {
    /// Its name as a reading: `debt.history_list_length`.
    pub reading: &'static str,
    /// The amount, in the unit of the reading.
    pub value: f64,
    /// At or below this value the engine counts as caught up.
    pub caught_up_at: f64,
}

/// A part of this name and value, caught up at the other value.
pub(crate) fn part(reading: &'static str, value: f64, caught_up_at: f64) -> DebtPart {
    DebtPart { reading, value, caught_up_at }
}

impl Debt {
    pub fn is_caught_up(&self) -> bool {
        self.parts.iter().all(|part| part.value <= part.caught_up_at)
    }

    /// The worst part, each divided by the value at which it counts as caught up. At or below 1 the
    /// engine has caught up. `None` if no part could be read.
    pub fn gauge(&self) -> Option<f64> {
        let shares = self.parts.iter().map(|part| match part.caught_up_at {
            caught_up_at if caught_up_at > 0.0 => part.value / caught_up_at,
            // Nothing at all may be left.
            _ => 1.0 + part.value.max(0.0),
        });
        shares.reduce(f64::max)
    }
}

/// Reads the debt of one server, on a connection of its own.
pub trait DebtMeter: Send {
    /// Fails, with the reason, if the server does not report it.
    fn read(&mut self) -> Result<Debt, String>;

    /// Speeds up paying the debt, and does what is due between steps (statistics, VACUUM,
    /// CHECKPOINT) on these tables. Returns a line for each action. Fails with the statement that
    /// failed, and why.
    fn begin_settling(&mut self, tables: &[String]) -> Result<Vec<String>, String>;

    /// Undoes [`DebtMeter::begin_settling`]. After a failure the step must not run.
    fn end_settling(&mut self) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(parts: &[(f64, f64)], expected: Option<f64>) {
        let part = |&(value, caught_up_at)| DebtPart { reading: "debt.x", value, caught_up_at };
        let debt = Debt { parts: parts.iter().map(part).collect() };
        assert_eq!(debt.gauge(), expected);
        assert_eq!(debt.is_caught_up(), expected.is_none_or(|gauge| gauge <= 1.0));
    }

    #[test]
    fn the_gauge_is_the_worst_part() {
        check(&[], None);
        check(&[(500.0, 1000.0)], Some(0.5));
        check(&[(500.0, 1000.0), (3.0, 1.0)], Some(3.0));
        check(&[(1.0, 1.0)], Some(1.0));
        check(&[(0.0, 0.0)], Some(1.0));
        check(&[(2.0, 0.0)], Some(3.0));
    }
}
