//! Agents as processes of the machine that runs the study.

use super::{Way, tool};
use crate::trial::TrialError;

pub(super) struct Local {
    program: String,
}

impl Local {
    /// Uses Dyno's own program; fails if its path is unknown.
    pub(super) fn open(program: Option<&str>) -> Result<Local, TrialError> {
        let program = program.map(str::to_owned).ok_or_else(|| {
            TrialError::new("the path of this program is unknown: give the host a `reach`")
        })?;
        Ok(Local { program })
    }
}

impl Way for Local {
    fn agent(&self, _: usize) -> Vec<String> {
        tool::words(&[&self.program, "agent"])
    }

    fn on_host(&self, _: usize, words: &[&str]) -> Vec<String> {
        tool::words(words)
    }
}
