//! Scripts that run by themselves, outside of a step: their commands and hooks. All calls block.

use std::sync::Arc;

use dyno_sysbench::{Call, Reply, Request, State};

use super::links::Links;
use super::serve::Runner;
use super::{Settings, driver_of};
use crate::Dialect;

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Well,
    /// It returned `false`.
    False,
    /// The script wants to exit with this code.
    Exit(i32),
    /// By an error: the function that failed, and the message.
    Broken(String, String),
}

/// Calls a function of a state that was made of `settings`, and waits until it has ended.
pub fn run(
    settings: &Arc<Settings>,
    state: State,
    call: Call<'_>,
    dialect: Dialect,
) -> (Ended, State) {
    let mut runner = Runner {
        settings: Arc::clone(settings),
        state,
        cells: Arc::default(),
        links: Links::new(None, settings.connector.clone()),
        driver: driver_of(dialect),
    };
    if let Err(message) = runner.state.begin(call) {
        return (Ended::Broken("script".to_owned(), message), runner.state);
    }
    let mut reply = Reply::Done;
    loop {
        let ended = match runner.state.resume(reply) {
            Request::Ended(true) => Ended::False,
            Request::Ended(false) => Ended::Well,
            Request::Broken(function, message) => Ended::Broken(function, message),
            Request::Exit(code) => Ended::Exit(code),
            request => {
                reply = runner.serve(&request);
                continue;
            }
        };
        return (ended, runner.state);
    }
}
