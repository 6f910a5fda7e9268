//! Scripts outside of a step: their commands and hooks. All calls block.

use std::sync::Arc;

use dyno_sysbench::{Call, State};

use super::Settings;
use super::serve::Runner;
use crate::Dialect;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Well,
    /// It returned `false`.
    False,
    Exit(i32),
    /// By an error: the function that failed, or `script`, and the message.
    Broken(String, String),
}

impl Ended {
    pub(super) fn of_script(message: String) -> Ended {
        Ended::Broken("script".to_owned(), message)
    }

    /// What is reported of a function that has failed.
    pub fn report(function: &str, message: &str) -> String {
        let of = if function == "script" { "" } else { &format!("`{function}' function failed: ") };
        format!("{of}{message}")
    }
}

/// A script in a state of its own, with connections that it opens itself.
pub struct Single {
    runner: Runner,
}

impl Single {
    /// Options are exported later. Fails with how the script's text ended.
    pub fn new(
        settings: &Arc<Settings>,
        tid: usize,
        seed: [u64; 2],
        dialect: Dialect,
    ) -> Result<Single, Ended> {
        let runner = Runner::load(settings, (tid, seed), None, dialect, Arc::default())?;
        Ok(Single { runner })
    }

    pub fn state(&self) -> &State {
        &self.runner.state
    }

    /// Calls a function, and waits until it has ended.
    pub fn call(&mut self, call: Call<'_>) -> Ended {
        self.runner.call(call).unwrap_or(Ended::Well)
    }

    /// Its hooks are not called any more.
    pub fn end_reports(&self) {
        // What cannot be ended has not begun for want of memory.
        let _ = self.runner.state.end_reports();
    }

    /// Exports the options of its settings.
    /// Fails if they are not declared as sysbench wants them.
    pub fn export(&self) -> Result<(), Ended> {
        self.runner.export()
    }
}
