//! Quantities with units, the clock, random streams; nouns that several layers share; cleaning of foreign text and secrets.
//!
//! The crate reads no clock, environment or randomness: they are arguments everywhere in Dyno, so
//! that a whole study repeats exactly in a test.

mod clock;
mod locked;
mod metric;
mod noun;
mod percent;
mod quantity;
mod question;
mod random;
pub mod reading;
mod redact;
mod setting;
mod stepped;
mod text;
mod version;
mod volume;
mod way;

pub use clock::{Clock, ManualClock, Nanoseconds, civil, utc_date_time};
pub use locked::locked;
pub use metric::{Direction, METRIC_ID_MAX, Metric, MetricId, MetricRole, metric};
pub use noun::{LevelRecord, PlaceFacts, Price, TrialPlan};
pub use percent::{PercentEncoded, percent_decode};
pub use quantity::{ByteCount, ParseQuantityError, parse_count, parse_duration, parse_percentage};
pub use question::{Question, Varied};
pub use random::{FNV_1A, RandomStream, Seed, fnv_1a};
pub use reading::{Reading, Registry, Unit};
pub use redact::{
    is_secret_name, mask_secrets, redact_command, redact_name_or_url, redact_secrets,
    redact_setting, redact_tokens, redact_url,
};
pub use setting::SettingValue;
pub use stepped::{RateStep, SteppedRate};
pub use text::{FOREIGN_TEXT_MAX, aligned, clean_text, is_unsafe_char};
pub use version::{version_fits, version_numbers};
pub use volume::{Backing, Dips, IoLimit, VolumeSpec};
pub use way::{
    open_named, open_unplanted, planted_on_way, read_named, read_unplanted, refuse_planted, way_to,
};
