//! How a trial, or something in it, goes wrong.

use std::fmt::Display;

use dyno_database::{CatalogError, DeployError, UrlError};
use dyno_host::KeeperError;
use dyno_load::LoadError;
use dyno_record::WriteError;
use dyno_workload::{ConnectError, StatementError};

pub(crate) type Result<T = (), E = TrialError> = std::result::Result<T, E>;

#[derive(Debug)]
pub(crate) enum TrialError {
    /// Something outside went wrong: the trial is marked failed and the next one runs.
    Failed { message: String, log: Vec<String> },
    /// The user has stopped it.
    Abandoned,
    /// The record cannot be written: the run ends.
    Record(WriteError),
}

pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(TrialError::new(message))
}

/// Says what could not be done.
pub(crate) trait Context<T> {
    /// `WHAT: ERROR`, or of a missing value just `WHAT`.
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|error| TrialError::new(format!("{what}: {error}")))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, what: impl Display) -> Result<T> {
        self.ok_or_else(|| TrialError::new(what.to_string()))
    }
}

impl TrialError {
    pub(crate) fn new(message: impl Into<String>) -> TrialError {
        TrialError::Failed { message: message.into(), log: Vec::new() }
    }

    fn said(self, say: impl FnOnce(String) -> String) -> TrialError {
        match self {
            TrialError::Failed { message, log } => {
                TrialError::Failed { message: say(message), log }
            }
            other => other,
        }
    }

    pub(crate) fn before(self, words: &str) -> TrialError {
        self.said(|message| format!("{words}{message}"))
    }

    /// The same, with these words behind the message.
    pub(crate) fn with(self, words: &str) -> TrialError {
        self.said(|message| message + words)
    }

    pub(crate) fn of_pool(self, name: &str) -> TrialError {
        self.before(&format!("host {name}: "))
    }
}

impl From<DeployError> for TrialError {
    fn from(error: DeployError) -> TrialError {
        TrialError::Failed { message: error.message, log: error.log }
    }
}

impl From<TrialError> for DeployError {
    fn from(error: TrialError) -> DeployError {
        match error {
            TrialError::Failed { message, log } => DeployError { message, log },
            _ => DeployError::new("the order was not followed"),
        }
    }
}

impl From<WriteError> for TrialError {
    fn from(error: WriteError) -> TrialError {
        TrialError::Record(error)
    }
}

macro_rules! failed_by {
    ($($error:ty),*) => {$(
        impl From<$error> for TrialError {
            fn from(error: $error) -> TrialError {
                TrialError::new(error.to_string())
            }
        }
    )*};
}

failed_by!(CatalogError, StatementError, ConnectError, LoadError, KeeperError, UrlError);

impl From<anyhow::Error> for TrialError {
    fn from(error: anyhow::Error) -> TrialError {
        TrialError::new(format!("{error:#}"))
    }
}
