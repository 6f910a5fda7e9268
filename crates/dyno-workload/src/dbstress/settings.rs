//! Checked options, with the sysbench port's names where it has them.

use dyno_model::{Name, OptionError, OptionSpec, name};

use crate::options::{Options, refuse};

use super::own::Sharing;

/// Rows of history that each object has.
pub(super) const HISTORY: u64 = 20;

/// Most objects: a REF has ten digits.
const OBJECTS_MAX: u64 = 9_999_999_999;

/// Most sets of tables: each connection prepares the statements of all of them.
const SETS_MAX: u64 = 100;

pub(super) const REPEATS_MAX: usize = 20;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::count(
        "obj_tables",
        "1",
        "sets of the five tables; a client draws one for each read",
    )
    .within(1, SETS_MAX),
    OptionSpec::count(
        "obj_table_size",
        "10k",
        "objects of each set, with 20 rows of history each (about 4 kB an object; the classic \
               size is 10M)",
    )
    .within(1, OBJECTS_MAX),
    OptionSpec::count("rw_ratio", "1", "reads for each write of a client; 0 for read only"),
    OptionSpec::word(
        "ref",
        &["slice", "mod2000", "mod2t", "random"],
        "objects of a client: its own slice; every 2000th, or every (2 × clients)th of its own \
               (anti-deadlock v05, v06, v07); any of all (true random)",
    ),
    OptionSpec::count(
        "sel1",
        "1",
        "selects per read of an object with its section and zone (1 row)",
    )
    .within(0, REPEATS_MAX as u64),
    OptionSpec::count(
        "sel2",
        "1",
        "selects per read of an object's history with its states (20 rows)",
    )
    .within(0, REPEATS_MAX as u64),
    OptionSpec::count("delete_inserts", "1", "rows of history that a write deletes and reinserts")
        .within(0, REPEATS_MAX as u64),
    OptionSpec::count("updates", "1", "rows of history that a write updates")
        .within(0, REPEATS_MAX as u64),
    OptionSpec::switch(
        "trx",
        false,
        "BEGIN and COMMIT around the statements of each read and write; otherwise autocommit",
    ),
    OptionSpec::switch("for_update", false, "SELECT … FOR UPDATE (not on SQLite)"),
    OptionSpec::switch(
        "hpk",
        false,
        "a unique key on history; otherwise a plain index on the same columns",
    ),
    OptionSpec::real(
        "think_time_ms",
        "0",
        "mean pause of a client after a read and the write that follows it (closed-loop load only)",
    ),
    OptionSpec::word(
        "think_time",
        &["constant", "uniform", "exponential"],
        "how long pauses are: always the mean, from 0 to twice the mean, or exponential",
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    Constant,
    Uniform,
    Exponential,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) sets: u64,
    /// Objects of each set.
    pub(super) objects: u64,
    /// Reads for each write; 0 for no writes.
    pub(super) rw_ratio: u64,
    pub(super) sharing: Sharing,
    pub(super) sel1: usize,
    pub(super) sel2: usize,
    pub(super) delete_inserts: usize,
    pub(super) updates: usize,
    pub(super) trx: bool,
    pub(super) for_update: bool,
    pub(super) hpk: bool,
    /// Mean pause, in nanoseconds.
    pub(super) think_ns: f64,
    pub(super) spread: Spread,
}

impl Settings {
    pub(super) fn read(options: &Options) -> Result<Settings, OptionError> {
        let repeats = |name| options.in_range(name).map(|count| count as usize);
        let settings = Settings {
            sets: options.in_range("obj_tables")?,
            objects: options.in_range("obj_table_size")?,
            rw_ratio: options.count("rw_ratio"),
            sharing: options.meaning("ref", Sharing::ALL),
            sel1: repeats("sel1")?,
            sel2: repeats("sel2")?,
            delete_inserts: repeats("delete_inserts")?,
            updates: repeats("updates")?,
            trx: options.switch("trx"),
            for_update: options.switch("for_update"),
            hpk: options.switch("hpk"),
            think_ns: think_ns(options)?,
            spread: options
                .meaning("think_time", [Spread::Constant, Spread::Uniform, Spread::Exponential]),
        };
        settings.check()
    }

    /// Refuses transactions without statements.
    fn check(self) -> Result<Settings, OptionError> {
        if self.rw_ratio > 0 && self.delete_inserts + self.updates == 0 {
            return refuse(
                "rw_ratio",
                "there is nothing to write, because `delete_inserts` and `updates` are 0; set it \
                 to 0 for a read-only load",
            );
        }
        if self.has_reads() || self.rw_ratio == 1 {
            return Ok(self);
        }
        let why = "`sel1` and `sel2` are 0, so there is nothing to read; set it to 1 for a \
                   write-only load";
        refuse("rw_ratio", why)
    }

    /// Whether a read has any statements; without, a client only writes.
    pub(super) fn has_reads(&self) -> bool {
        self.sel1 + self.sel2 > 0
    }

    pub(super) fn has_writes(&self) -> bool {
        self.rw_ratio > 0
    }

    pub(super) fn kinds(&self) -> &'static [Name] {
        match (self.has_reads(), self.has_writes()) {
            (true, true) => const { &[name("read"), name("write")] },
            (true, false) => const { &[name("read")] },
            (false, _) => const { &[name("write")] },
        }
    }

    /// Statements of a read, and of a write.
    pub(super) fn n_statements(&self) -> (u64, u64) {
        let around = if self.trx { 2 } else { 0 };
        let read = self.sel1 + self.sel2;
        let write = 2 * self.delete_inserts + self.updates;
        ((read + around) as u64, (write + around) as u64)
    }

    pub(super) fn history_rows(&self) -> u64 {
        self.objects * HISTORY
    }
}

fn think_ns(options: &Options) -> Result<f64, OptionError> {
    let ms = options.real("think_time_ms");
    if (0.0..=3_600_000.0).contains(&ms) {
        return Ok(ms * 1e6);
    }
    refuse("think_time_ms", format!("`{ms}` is not between 0 and an hour"))
}
