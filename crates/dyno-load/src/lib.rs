//! When and how transactions are sent: schedules, clients, attempts, histograms.
//!
//! The path between `due` and `done` allocates nothing, locks nothing and logs nothing. This crate
//! knows no database, no host and no study: it is small enough to be read in full.
//!
//! How it works, from the outside in:
//!
//! - [`run_step`] starts the workers (OS threads), lets them open all connections, gives them one
//!   common start, and merges what they report each second into [`Interval`]s.
//! - A worker turns one loop: it wakes the clients that are due, polls them, and waits for
//!   replies. A client is a future that the worker polls itself; there is no runtime.
//! - Each client has a pace, which keeps `due`, `sent` and `done` and counts the outcome.
//! - One trait hides how a worker waits: with epoll on a real server, with a simulated clock in
//!   [`simulation`], so that the code that measures is the code that is tested.
//!
//! Several generators, on several hosts, run one step as one: each has a slice of the schedule and of
//! the clients ([`run_slice`]), sends what it counted each second as an [`IntervalPart`], and a
//! [`StepMerge`] adds the parts up as a collector adds up its workers.
//!
//! A step ends by time; or, if clients have quotas, when the last of these is done.
//!
//! What counts: an attempt belongs to the interval in which it is done. An attempt that is done
//! after the end of the measurement phase belongs to none and is counted in
//! [`StepTotals::in_flight_at_end`]; an arrival that was due before the end and never sent is
//! missed.

mod abort;
mod arrivals;
mod canary;
mod collector;
mod counted;
mod engine;
mod finish;
#[cfg(test)]
mod fixture;
mod load;
mod merge;
#[cfg(test)]
mod null_server;
mod opener;
mod pace;
mod part;
mod reactor;
mod recorder;
pub mod schedule;
pub mod simulation;
mod steady;
mod step;
mod timeline;
mod times;
mod usage;
mod worker;
mod worker_state;

pub use abort::AbortFlag;
pub use canary::canary;
pub use engine::{Job, StepEvent, run_slice, run_step};
pub use merge::{SliceEnd, StepMerge};
pub use part::{COUNT_MOST, IntervalPart, KindPart, TimesPart};
pub use schedule::Slice;
pub use step::{
    BIN_LENGTH, BINS, EndedBy, GONE_LIMIT, GeneratorUse, Interval, KindInterval, LoadError,
    OUTCOMES, Outcomes, Phase, RoleTotals, StepSpec, StepTotals,
};
