//! Scripts that run by themselves, outside of a step: their commands and hooks. All calls block.

use std::sync::Arc;

use dyno_sysbench::{Call, State};

use super::links::Links;
use super::serve::Runner;
use super::{Settings, driver_of};
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

/// A script in a state of its own, with connections that it opens itself.
pub struct Single {
    runner: Runner,
}

impl Single {
    /// Loads the script; its options are exported later.
    ///
    /// # Errors
    ///
    /// How its text ended, if not well.
    pub fn new(
        settings: &Arc<Settings>,
        tid: usize,
        seed: [u64; 2],
        dialect: Dialect,
    ) -> Result<Single, Ended> {
        let driver = driver_of(dialect);
        let cells = Arc::default();
        let state = settings
            .state(tid, seed, driver, &cells)
            .map_err(|message| Ended::Broken("script".to_owned(), message))?;
        let links = Links::new(None, settings.connector.clone());
        let mut single = Single {
            runner: Runner { settings: Arc::clone(settings), state, cells, links, driver },
        };
        match single.call(Call::Body) {
            Ended::Well | Ended::False => Ok(single),
            ended => Err(ended),
        }
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
    ///
    /// # Errors
    ///
    /// They are not declared as sysbench wants them.
    pub fn export(&self) -> Result<(), String> {
        let settings = &self.runner.settings;
        // It sets what a help text shows.
        self.runner.state.options()?;
        self.runner.state.export(&settings.options, &settings.globals)
    }
}
