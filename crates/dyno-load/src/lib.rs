//! When and how transactions are sent: schedules, clients, attempts, histograms.
//!
//! - [`run_step`] starts the workers (OS threads), opens all connections, and merges the reports of
//!   each second into [`Interval`]s.
//! - A worker polls its clients, which are futures, itself: there is no runtime. Between `due` and
//!   `done` nothing is allocated, locked or logged.
//! - A trait hides how a worker waits: with epoll on a real server, with a simulated clock in
//!   [`simulation`], so that the code that measures is the code that is tested.
//! - Several generators run one step together: each has a slice ([`run_slice`]) and sends what it
//!   counts each second as an [`IntervalPart`]; a [`StepMerge`] adds the parts up.
//!
//! An attempt belongs to the interval in which it is done; after the measurement phase, to none:
//! see [`StepTotals::in_flight_at_end`]. An arrival due in that phase and never sent is missed.

mod abort;
mod arrivals;
mod canary;
mod collector;
mod counted;
mod engine;
#[cfg(test)]
mod fixture;
mod load;
mod merge;
#[cfg(test)]
mod null_server;
mod pace;
mod part;
mod reactor;
mod recorder;
pub mod schedule;
pub mod simulation;
mod step;
mod timeline;
mod times;
mod worker;
mod worker_state;

pub use abort::AbortFlag;
pub use canary::canary;
pub use engine::{Job, StepEvent, run_slice, run_step};
pub use merge::{SliceEnd, StepMerge};
pub use part::{COUNT_MOST, IntervalPart, TimesPart};
pub use schedule::Slice;
pub use step::{
    BIN_LENGTH, BINS, EndedBy, GONE_LIMIT, GeneratorUse, Interval, KindInterval, LoadError,
    OUTCOMES, Outcomes, Phase, RoleTotals, StepSpec, StepTotals,
};
