//! Scripts of sysbench: its Lua API in a state for each client, its random numbers, options and histogram.
//!
//! A script runs until it needs something that takes time (a statement, the next event, a pause); then it
//! asks for it, and whoever runs it goes on with the answer: [`State::resume`] takes a [`Reply`] and
//! returns a [`Request`]. What may be done at once, it asks of [`Events`] without being left. So this crate knows neither connections nor clocks, and any number of clients can
//! share a thread.

mod builtin;
mod counters;
mod histogram;
mod host;
mod option;
mod random;
mod request;
mod state;
#[cfg(test)]
mod tests;
mod watched;

pub use builtin::{BUILT_IN, BuiltIn, built_in, built_in_module};
pub use counters::{Counter, Counters};
pub use histogram::{BUCKETS, Histogram, bucket_of};
pub use host::{Events, Executed, Host, Level, Module};
pub use option::{
    Kind, OptionValue, ParseError, ScriptOption, declared, normal_name, options_text,
};
pub use random::{Distribution, RandomSettings, Unique};
pub use request::{Held, ParamKind, Reply, Request};
pub use state::{Call, Limits, Program, Setup, State};

/// The version of sysbench that scripts find.
pub const VERSION: &str = "1.0.20";
