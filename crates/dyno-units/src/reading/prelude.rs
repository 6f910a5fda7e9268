//! What a probe's table of readings is written with: `use dyno_units::reading::prelude::*`.

pub use std::borrow::Cow;

pub use super::Unit::{
    AtATime, Bytes, BytesPerSecond, Count, Cpus, Microseconds, Milliseconds, Number, PerSecond,
    Percent, Seconds, Waiters,
};
pub use super::{Movement, Reading, Role, StallCause, Topic, Unit, reading};
