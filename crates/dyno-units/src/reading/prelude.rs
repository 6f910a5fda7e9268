//! What a probe needs for its table of readings.

pub use std::borrow::Cow;

pub use super::Unit::{
    AtATime, Bytes, BytesPerSecond, Count, Cpus, Microseconds, Milliseconds, Number, PerSecond,
    Percent, Seconds, Waiters,
};
pub use super::{Movement, Reading, Role, StallCause, Topic, Unit, reading};
