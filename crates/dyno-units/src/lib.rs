//! Quantities with units, the clock and the random streams that every other crate is handed.
//!
//! Nothing here reads a clock, the environment or a source of randomness: time and randomness
//! are arguments everywhere in Dyno, so that a whole study runs in a test and gives the same
//! result each time. This crate knows no other.

mod clock;
mod quantity;
mod random;
mod reading;
mod setting;
mod stepped;

pub use clock::{Clock, ManualClock, Nanoseconds};
pub use quantity::{ByteCount, ParseQuantityError, parse_count, parse_duration, parse_percentage};
pub use random::{RandomStream, Seed};
pub use reading::ReadingUnit;
pub use setting::SettingValue;
pub use stepped::{Stair, SteppedRate};
