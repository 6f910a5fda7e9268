//! Why a server cannot be deployed or used, and how other errors become that.

use std::fmt;

use dyno_host::{CopyError, KeeperError};
use dyno_workload::{ConnectError, StatementError};

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct DeployError {
    /// What happened, where, what to do; no secret.
    pub message: String,
    /// The last lines of the server's log, if it got that far.
    pub log: Vec<String>,
}

impl DeployError {
    pub fn new(message: impl Into<String>) -> DeployError {
        DeployError { message: message.into(), log: Vec::new() }
    }

    /// The same with the last lines of the log in its message.
    pub(crate) fn with_last_words(self) -> DeployError {
        let said = self.log[self.log.len().saturating_sub(3)..].join("; ");
        DeployError { message: format!("{}: {said}", self.message), ..self }
    }
}

/// Of what has to do with servers, unless another error is named.
pub(crate) type Result<T, E = DeployError> = std::result::Result<T, E>;

/// Of what has to do with connections.
pub(crate) type StatementResult<T, E = StatementError> = std::result::Result<T, E>;

pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(DeployError::new(message))
}

/// Errors that say by themselves what could not be done.
pub trait Telling: fmt::Display {}

impl Telling for ConnectError {}
impl Telling for StatementError {}
impl Telling for CopyError {}
impl Telling for KeeperError {}

impl Telling for std::io::Error {}

impl<E: Telling> From<E> for DeployError {
    fn from(error: E) -> DeployError {
        DeployError::new(error.to_string())
    }
}

/// Says before an error what could not be done.
pub(crate) trait Context<T> {
    /// `what: error`
    fn context(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| DeployError::new(format!("{what}: {error}")))
    }
}
