//! What an engine has put off: work that it confirmed and still has to do.
//!
//! Pages to flush, old row versions to purge or vacuum, files to compact. A server that stops being
//! asked for anything pays it off; how long that takes is measured, and a step that begins before it
//! is paid pays for the one before.

/// What one engine has put off, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Debt {
    /// Its parts, in the order in which people look for them.
    pub parts: Vec<DebtPart>,
}

/// One kind of work that was put off.
#[derive(Clone, Debug, PartialEq)]
pub struct DebtPart {
    /// Its name as a reading: `debt.history_list_length`.
    pub reading: &'static str,
    /// How much of it there is.
    pub value: f64,
    /// At or below this value it counts as paid.
    pub paid_at: f64,
}

impl Debt {
    /// Whether all of it is paid.
    pub fn is_paid(&self) -> bool {
        self.parts.iter().all(|part| part.value <= part.paid_at)
    }
}

/// Reads the debt of one server, on a connection of its own.
pub trait DebtMeter: Send {
    /// How much there is now.
    ///
    /// # Errors
    ///
    /// Why the server does not tell, in words.
    fn read(&mut self) -> Result<Debt, String>;

    /// Makes the engine pay sooner than it would by itself, and does what is due between steps
    /// (statistics, VACUUM, CHECKPOINT) on these tables. Returns what was done, a line each.
    ///
    /// # Errors
    ///
    /// Which statement failed, and why.
    fn begin_settling(&mut self, tables: &[String]) -> Result<Vec<String>, String>;

    /// Puts back the settings that [`DebtMeter::begin_settling`] changed.
    ///
    /// # Errors
    ///
    /// Which setting could not be put back: the step must then not be run.
    fn end_settling(&mut self) -> Result<(), String>;
}
