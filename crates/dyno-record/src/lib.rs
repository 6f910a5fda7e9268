//! The run directory: everything written during a run, append-only, readable after a `kill -9`.
//! The types are the format, apart from those of study and load, so that old records stay readable.

mod beside;
mod columns;
mod consistency;
mod counts;
mod error;
mod event;
mod files;
mod growth;
mod histogram;
mod lock;
mod manifest;
mod reader;
mod readings;
mod received;
mod server;
mod sqlite;
mod summary;
mod times;
mod voids;
mod writer;

pub use dyno_units::{LevelRecord, PlaceFacts, Price, TrialPlan};

pub use counts::EncodedCounts;
pub use error::{ReadError, WriteError, WriteErrorKind};
pub use event::{Event, EventKind, KindSecond};
pub use files::{Digest, WHOLE_MOST, check_way, open_regular, read_bounded, write_replacing};
pub use histogram::{EncodedHistogram, new_histogram};
pub use lock::is_being_written;
pub use manifest::{
    Environment, Extension, Manifest, OwnStepRecord, RequirementRecord, RoleRecord, SearchRecord,
    StepRecord, StoppingRecord, VariantRecord, VoidingRecord, sends_nothing,
};
pub use reader::{Run, read_manifest, read_run, trial_folders};
pub use received::{TrialReceiver, cleaned};
pub use server::{
    BuildFacts, CommitSafety, DURABILITY_SETTINGS, Entry, MemberFacts, MemberHost, MemberRole,
    NetworkFacts, ProductFacts, SCHEDULING_GROUP, ServerFacts,
};
pub use sqlite::{QueryError, QueryRows, query};
pub use summary::{
    ActivitySummary, AuditRow, Canary, ClockFacts, ClockReading, DataSet, Fault, GeneratorSummary,
    HostSummary, ImportedFrom, IntervalColumns, KindSummary, LoadProbe, Promotion, RunOff,
    SearchSummary, Settled, StepSummary, Survived, TrialHost, TrialOutcome, TrialSummary,
    VolumeDip,
};
pub use times::{LogEnd, SecondOfTimes, read_times, read_times_lines};
pub use voids::{VoidBlock, VoidTrial};
pub use writer::{
    FailedTrial, IntervalRecord, KindInterval, RunWriter, TrialWriter, check_empty, make_run_folder,
};

/// Written by this crate, and the newest that it reads.
pub const FORMAT: u32 = 1;
