//! The agent: what Dyno does on another machine, or in another process of this one.
//!
//! A host is a command that starts `dyno agent` there. The agent speaks messages on standard input and output only: it
//! opens no port and ends with its input. The controller plans, records and analyses; the agent follows orders, with
//! the code that runs locally. It generates load, or starts a server on a volume, with commands and faults, or runs a
//! whole trial. A new message is a variant of [`message::Order`] or [`message::Answer`], and a new [`PROTOCOL`].

mod command;
mod frame;
pub(crate) mod message;
pub(crate) mod part;
mod serve;
mod server;
mod transfer;
mod trial;

pub(crate) use frame::{FrameError, frame_of, read_counted, read_frame, write_frame};
pub use message::{TrialOrder, TrialReport};
pub use serve::{AgentSetup, RunSlice, serve};
pub use server::{Hosting, MakeKeeper};
pub use trial::{FromTrial, RunTrial, run_trial, unrecorded};

/// Version of the messages; it must be the same on both sides.
pub(crate) const PROTOCOL: u32 = 10;

pub(crate) const DYNO: &str = env!("CARGO_PKG_VERSION");
