//! A machine: its processes, its facts, and what its kernel tells every second.
//!
//! Knows no database and no load. A process that Dyno starts is marked on disk in such a way that
//! a later run can prove whose it is; nothing else is ever ended.

mod keeper;

pub use keeper::{Keeper, KeeperError, KeptProcess, ProcessSpec, RunAs};
