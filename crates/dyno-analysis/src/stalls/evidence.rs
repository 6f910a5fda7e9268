//! Which readings left their ordinary range about the time of a stall, and which did first.
//!
//! A fixed catalogue says which readings are evidence of what. Nothing here decides what caused a
//! stall: several things move in most of them, and what moved first is only where to look first.

use std::collections::BTreeMap;

use dyno_record::{Meaning, StepSummary};

use crate::statistics::{median, robust_deviation};

use super::Moved;
use super::pattern::fits;

/// Seconds before a stall in which a reading may have moved.
const BEFORE_S: f64 = 3.0;
/// Robust standard deviations from which on a reading has moved, on the plain scale and, rising, on
/// that of logarithms: waits and queues have long tails, which are nothing out of the ordinary.
const DEVIATIONS: f64 = 5.0;
/// A spread is not taken to be less than this share of the ordinary value: readings that hardly ever
/// change would else move at every trifle.
const LEAST_SPREAD: f64 = 0.05;
/// An ordinary second may be as far off as the moved one in this share of cases.
const RARE: f64 = 0.02;
/// Least rises by how the names of readings end; the first that fits counts. For CPU time two ticks
/// of 10 ms.
const LEAST_RISES: [(&str, f64); 6] = [
    (".cpu_s_per_s", 0.02),
    ("_s_per_s", 0.01),
    ("bytes_per_s", 65_536.0),
    ("_per_s", 1.0),
    ("_pct", 2.0),
    ("_ms", 1.0),
];
/// Fewest seconds far from every stall, else those that no stall touches are ordinary, too.
const SECONDS_ENOUGH: usize = 5;
/// Fewest ordinary seconds that tell what is ordinary.
const SECONDS_LEAST: usize = 3;
/// A limit is reached from this share of it on.
const AT_LIMIT: f64 = 0.9;
/// A reading that falls below this share of what is ordinary has all but stopped.
const NEXT_TO_NOTHING: f64 = 0.1;
/// Most entries of a stall, and most of them of the same sign.
const MOVED_MOST: usize = 8;
const OF_SAME_SIGN_MOST: usize = 2;

/// In which way a reading has to move.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Up,
    /// Down to less than this share of what is ordinary.
    DownTo(f64),
    /// Up to the limit that one of these readings tells.
    ToLimit(&'static [&'static str]),
    /// Up to this value, which is as good as the limit.
    From(f64),
}

/// What the movement of some readings is evidence of.
struct Sign {
    name: &'static str,
    way: Way,
    /// Names of readings; `*` stands for anything.
    patterns: &'static [&'static str],
}

/// Readings of processes that stop where a process does.
const NOT_RUNNING: &[&str] = &["server.cpu_s_per_s", "server.foreground.cpu_s_per_s"];
const CHECKPOINT_LIMITS: &[&str] =
    &["innodb.checkpoint_age_max_bytes", "innodb.checkpoint_age_max_text_bytes"];

const fn up(name: &'static str, patterns: &'static [&'static str]) -> Sign {
    Sign { name, way: Way::Up, patterns }
}

/// The catalogue. A reading counts for the first sign that it fits.
const SIGNS: &[Sign] = &[
    up("a process that did not run", &["server.stopped"]),
    Sign { name: "a process that did not run", way: Way::DownTo(0.7), patterns: NOT_RUNNING },
    Sign {
        name: "checkpoint age at its limit",
        way: Way::ToLimit(CHECKPOINT_LIMITS),
        patterns: &["innodb.checkpoint_age_bytes"],
    },
    Sign {
        // In percent of its limit; from seven eighths on InnoDB flushes as fast as it can.
        name: "checkpoint age at its limit",
        way: Way::From(85.0),
        patterns: &["debt.checkpoint_age_percent", "innodb.checkpoint_age_percent"],
    },
    up("stolen CPU", &["cpu.steal_pct"]),
    up("CPU held back by a quota", &["cgroup.*throttled_s_per_s", "cgroup.*throttled*"]),
    up(
        "waiting for a CPU",
        &["psi.cpu.*", "responsiveness.process_ms", "server.runqueue_wait_s_per_s", "cpu.running"],
    ),
    up("CPU used by other processes", &["rest.cpu_s_per_s"]),
    up(
        "fsync",
        &[
            "*fsync*",
            "innodb.pending_flushes",
            "disk.*flush_await_ms",
            "disk.flushes_per_s",
            "pg.wal_sync_s_per_s",
            "pg.checkpoint_sync_s_per_s",
            "rocksdb.wal_syncs_per_s",
        ],
    ),
    up(
        "a slow or throttled disk",
        &[
            "disk.*await_ms",
            "disk.*queue",
            "disk.*busy_pct",
            "psi.io.*",
            "cpu.blocked",
            "cpu.iowait_pct",
            "innodb.data_pending_*",
            "innodb.pending_aio_*",
        ],
    ),
    up(
        "compaction or a write stall of the engine",
        &[
            "rocksdb.*stall*",
            "rocksdb.*compact*",
            "rocksdb.l0_files",
            "rocksdb.immutable_memtables",
            "rocksdb.flushes_pending",
            "debt.pending_compaction_bytes",
            "debt.l0_files",
            "server.thread.compaction.*",
        ],
    ),
    up("vacuum", &["server.thread.autovacuum.*", "pg.*vacuum*", "pg.autoanalyzes_per_s"]),
    up(
        "purge",
        &[
            "server.thread.purge.*",
            "innodb.purge*",
            "innodb.history_list_length",
            "debt.history_list_length",
        ],
    ),
    up(
        "a checkpoint",
        &[
            "server.thread.checkpointer.*",
            "pg.checkpoint*_per_s",
            "innodb.checkpoints_per_s",
            "innodb.pending_checkpoint_writes",
            "sqlite.wal_frames*",
        ],
    ),
    up(
        "flushing",
        &[
            "server.thread.page_cleaner.*",
            "server.thread.flush.*",
            "server.thread.background_writer.*",
            "innodb.flushed_*",
            "innodb.pages_flushed_per_s",
            "innodb.pages_written_per_s",
            "innodb.*free*_waits_per_s",
            "innodb.lru_*flush*",
            "innodb.log_waits_per_s",
            "innodb.pending_page_writes",
            "innodb.pending_log_writes",
            "pg.*_buffers_per_s",
            "pg.wal_buffers_full_per_s",
            "rocksdb.flush_bytes_per_s",
        ],
    ),
    up(
        "waiting for locks",
        &[
            "innodb.row_lock_*",
            "innodb.transactions_waiting",
            "innodb.semaphore_*",
            "pg.lock_waits",
            "pg.waiting.*",
            "mysql.table_lock_waits_per_s",
        ],
    ),
    up("waiting in the pooler", &["pgbouncer.clients_waiting"]),
    up("memory pressure", &["psi.memory.*", "memory.swap_*_per_s", "memory.major_faults_per_s"]),
    up(
        "writing to disk",
        &[
            "disk.write_bytes_per_s",
            "disk.writes_per_s",
            "server.disk_write_bytes_per_s",
            "memory.writeback_bytes",
        ],
    ),
    up(
        "reading from disk",
        &["disk.read_bytes_per_s", "disk.reads_per_s", "server.disk_read_bytes_per_s"],
    ),
];

/// Every pattern of readings that the catalogue refers to.
pub(crate) fn patterns() -> Vec<&'static str> {
    let of_sign = |sign: &'static Sign| {
        let limits: &[&'static str] = match sign.way {
            Way::ToLimit(names) => names,
            _ => &[],
        };
        sign.patterns.iter().chain(limits).copied()
    };
    SIGNS.iter().flat_map(of_sign).collect()
}

/// What is ordinary of one reading.
struct Ordinary<'a> {
    name: &'a str,
    column: &'a [Option<f64>],
    sign: &'a Sign,
    median: f64,
    spread: f64,
    /// Median and spread of the logarithms; none where the reading is ordinarily zero.
    logs: Option<(f64, f64)>,
    /// The values of ordinary intervals.
    values: Vec<f64>,
    /// The limit by interval, of a reading that has one.
    limit: Option<&'a [Option<f64>]>,
}

/// The readings of one step that are evidence, with what is ordinary of each.
pub(super) struct Evidence<'a> {
    summary: &'a StepSummary,
    meanings: &'a BTreeMap<String, Meaning>,
    readings: Vec<Ordinary<'a>>,
}

impl<'a> Evidence<'a> {
    /// Reads what is ordinary from the measured intervals that no stall touches.
    pub(super) fn new(
        summary: &'a StepSummary,
        meanings: &'a BTreeMap<String, Meaning>,
        stalls: &[(f64, f64)],
    ) -> Evidence<'a> {
        let ordinary = ordinary_seconds(summary, stalls);
        let readings = summary
            .readings
            .iter()
            .filter_map(|(name, column)| of_reading(summary, name, column, &ordinary))
            .collect();
        Evidence { summary, meanings, readings }
    }

    /// What moved about a stall, earliest first; of the same second, what moved farthest. Where more
    /// moved than is told, each sign has its first reading there before another has its second: else
    /// ten readings of one busy disk would hide the rest.
    pub(super) fn moved(&self, (from_s, to_s): (f64, f64)) -> Vec<Moved> {
        let mut moved: Vec<(usize, Moved)> =
            self.readings.iter().filter_map(|one| self.first_move(one, from_s, to_s)).collect();
        let distance = |m: &Moved| m.deviations.map_or(f64::INFINITY, f64::abs);
        moved.sort_by(|(a_idx, a), (b_idx, b)| {
            a_idx.cmp(b_idx).then(distance(b).total_cmp(&distance(a)))
        });
        let rank = |place: usize| {
            let is_same = |(_, other): &&(usize, Moved)| other.sign_of == moved[place].1.sign_of;
            moved[..place].iter().filter(is_same).count()
        };
        let mut places: Vec<(usize, usize)> = (0..moved.len()).map(|p| (rank(p), p)).collect();
        places.retain(|(rank, _)| *rank < OF_SAME_SIGN_MOST);
        places.sort_unstable();
        places.truncate(MOVED_MOST);
        let is_kept = |place: &usize| places.iter().any(|(_, kept)| kept == place);
        let told = moved.iter().enumerate().filter(|(place, _)| is_kept(place));
        told.map(|(_, (_, one))| one.clone()).collect()
    }

    /// The first interval about the stall in which a reading is not ordinary.
    fn first_move(&self, one: &Ordinary<'_>, from_s: f64, to_s: f64) -> Option<(usize, Moved)> {
        let starts = &self.summary.intervals.start_s;
        // Each reading tells of its whole interval: one that overlaps the stall counts.
        let first = starts.partition_point(|start| *start < from_s - BEFORE_S);
        let window = starts.partition_point(|start| *start < to_s).saturating_sub(first);
        for (idx, &start) in starts.iter().enumerate().skip(first) {
            if start >= to_s {
                break;
            }
            let Some(value) = one.column.get(idx).copied().flatten() else { continue };
            let told = match one.sign.way {
                Way::From(limit) => (value >= limit).then_some((limit, None)),
                Way::ToLimit(_) => one.reaches_limit(idx, value).map(|limit| (limit, None)),
                _ => one.leaves_range(value).map(|z| (one.median, Some(z))),
            };
            let Some((ordinary, deviations)) = told else { continue };
            let meaning = self.meanings.get(one.name);
            let moved = Moved {
                reading: one.name.to_owned(),
                sign_of: one.sign.name.to_owned(),
                at_s: ((start - from_s) * 1e3).round() / 1e3,
                value,
                ordinary,
                deviations: deviations.map(|z| (z * 10.0).round() / 10.0),
                unit: meaning.map_or_else(String::new, |m| m.unit.clone()),
                meaning: meaning.map_or_else(String::new, |m| m.text.clone()),
                chance: deviations.map(|_| one.chance(value, window)),
            };
            return Some((idx, moved));
        }
        None
    }
}

/// Which intervals are ordinary: those at some distance from every stall; where these are too few
/// to tell, as in a short step with several stalls, those that no stall touches.
pub(super) fn ordinary_seconds(summary: &StepSummary, stalls: &[(f64, f64)]) -> Vec<bool> {
    let starts = &summary.intervals.start_s;
    let apart = |distance: f64| -> Vec<bool> {
        let is_apart = |start: f64| {
            let is_clear =
                |(from, to): &(f64, f64)| start + 1.0 <= from - distance || start >= to + distance;
            start >= -1e-9 && stalls.iter().all(is_clear)
        };
        starts.iter().map(|start| is_apart(*start)).collect()
    };
    let far = apart(1.0);
    if far.iter().filter(|is| **is).count() >= SECONDS_ENOUGH { far } else { apart(0.0) }
}

/// By how much a reading has to rise at least to count, whatever its spread: one tick of a clock, or
/// the first microseconds of a thread that ordinarily sleeps, are a movement of nothing.
fn least_rise(name: &str) -> f64 {
    let found = LEAST_RISES.iter().find(|(ending, _)| name.ends_with(ending));
    found.map_or(0.0, |(_, least)| *least)
}

/// What is ordinary of a reading; none of one that is evidence of nothing, or was read too rarely.
fn of_reading<'a>(
    summary: &'a StepSummary,
    name: &'a str,
    column: &'a [Option<f64>],
    ordinary: &[bool],
) -> Option<Ordinary<'a>> {
    let is_it = |sign: &&Sign| sign.patterns.iter().any(|pattern| fits(pattern, name));
    let sign = SIGNS.iter().find(is_it)?;
    let values: Vec<f64> =
        column.iter().zip(ordinary).filter(|(_, is)| **is).filter_map(|(v, _)| *v).collect();
    if values.len() < SECONDS_LEAST {
        return None;
    }
    let limit = match sign.way {
        Way::ToLimit(names) => {
            let named = |pattern: &&str| {
                summary.readings.iter().find(|(other, _)| fits(pattern, other.as_str()))
            };
            Some(names.iter().find_map(named)?.1.as_slice())
        }
        _ => None,
    };
    let middle = median(&values);
    let spread = robust_deviation(&values, middle).max(LEAST_SPREAD * middle.abs());
    let logs = logs_of(&values, middle, spread);
    Some(Ordinary { name, column, sign, median: middle, spread, logs, values, limit })
}

/// Median and robust spread of the logarithms of a reading whose median is above zero. Zeros among the
/// values count as very small ones.
fn logs_of(values: &[f64], middle: f64, spread: f64) -> Option<(f64, f64)> {
    if middle <= 0.0 || spread <= 0.0 {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.max(1e-9 * middle).ln()).collect();
    let center = median(&logs);
    Some((center, robust_deviation(&logs, center).max(LEAST_SPREAD)))
}

impl Ordinary<'_> {
    /// The probability, at most, that one of so many seconds has a value as far off as this by chance,
    /// if seconds of ordinary time could be exchanged for each other: by ranks, so that it holds for
    /// every distribution.
    fn chance(&self, value: f64, seconds: usize) -> f64 {
        let is_up = value >= self.median;
        let as_far = |v: &&f64| if is_up { **v >= value } else { **v <= value };
        let n_as_far = self.values.iter().filter(as_far).count() as f64;
        let each = (n_as_far + 1.0) / (self.values.len() as f64 + 1.0);
        1.0 - (1.0 - each).powf(seconds as f64)
    }

    /// By how many robust standard deviations a value is off in the way that counts, if it is.
    fn leaves_range(&self, value: f64) -> Option<f64> {
        let off = value - self.median;
        // A reading that is ordinarily still (zero) has no spread: any value moves it.
        let deviations = if self.spread > 0.0 { off / self.spread } else { off.signum() * 99.0 };
        let is_far = match self.sign.way {
            // CPU time is counted in ticks of 10 ms: with little load it spreads much, and only next
            // to nothing tells.
            Way::DownTo(share) => {
                (deviations <= -DEVIATIONS && value < share * self.median)
                    || value < NEXT_TO_NOTHING * self.median
            }
            _ => {
                let is_far_in_logs = self.logs.is_none_or(|(center, spread)| {
                    value > 0.0 && (value.ln() - center) / spread >= DEVIATIONS
                });
                off >= least_rise(self.name).max(f64::MIN_POSITIVE)
                    && deviations >= DEVIATIONS
                    && is_far_in_logs
            }
        };
        if !is_far {
            return None;
        }
        let as_far = |v: &&f64| if off > 0.0 { **v >= value } else { **v <= value };
        let n_as_far = self.values.iter().filter(as_far).count();
        let is_rare = n_as_far as f64 <= RARE * self.values.len() as f64;
        is_rare.then(|| deviations.clamp(-99.0, 99.0))
    }

    /// The limit, where a value has reached it.
    fn reaches_limit(&self, idx: usize, value: f64) -> Option<f64> {
        let limit = self.limit?.get(idx).copied().flatten()?;
        (limit > 0.0 && value >= AT_LIMIT * limit).then_some(limit)
    }
}
