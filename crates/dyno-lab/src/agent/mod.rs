//! The agent: what Dyno does on another machine, or in another process of this one.
//!
//! A host is a command that starts `dyno agent` there. The agent speaks messages on its standard
//! input and output and nothing else: it opens no port, stays for nobody, and ends with its input. The
//! controller, which runs the study, plans, records and analyses; the agent does what it is ordered to,
//! with the code that does it locally.
//!
//! An agent generates load, starts a server on a volume, runs commands beside it and has faults happen to it, or runs a whole
//! trial. A message of another kind is one more word of [`message::Order`] or [`message::Answer`], and a new [`PROTOCOL`].

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

/// The version of the messages. Controller and agent must be of one version: there is no
/// translation.
pub(crate) const PROTOCOL: u32 = 8;

pub(crate) const DYNO: &str = env!("CARGO_PKG_VERSION");
