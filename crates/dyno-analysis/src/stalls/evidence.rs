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
/// Robust standard deviations from which on a reading has moved.
const DEVIATIONS: f64 = 4.0;
/// A spread is not taken to be less than this share of the ordinary value: readings that hardly ever
/// change would else move at every trifle.
const LEAST_SPREAD: f64 = 0.05;
/// An ordinary second may be as far off as the moved one in this share of cases.
const RARE: f64 = 0.02;
/// Fewest ordinary seconds that tell what is ordinary.
const SECONDS_LEAST: usize = 3;
/// A limit is reached from this share of it on.
const AT_LIMIT: f64 = 0.9;
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
const CHECKPOINT_LIMITS: &[&str] = &[
    "innodb.checkpoint_max_age",
    "innodb.checkpoint_age_limit",
    "innodb.checkpoint_age_max",
    "innodb.checkpoint_age_async",
    "innodb.*max_modified_age_async",
    "innodb.*max_modified_age_sync",
    "innodb.*checkpoint_max_age",
];

/// The catalogue, what is most telling first.
const SIGNS: &[Sign] = &[
    Sign {
        name: "a process that did not run",
        way: Way::Up,
        patterns: &["server.stopped*", "server.processes_stopped", "*.not_running*"],
    },
    Sign { name: "a process that did not run", way: Way::DownTo(0.7), patterns: NOT_RUNNING },
    Sign {
        name: "checkpoint age at its limit",
        way: Way::ToLimit(CHECKPOINT_LIMITS),
        patterns: &["innodb.checkpoint_age", "innodb.*checkpoint_age"],
    },
    Sign {
        // In percent of its limit; from seven eighths on InnoDB flushes as fast as it can.
        name: "checkpoint age at its limit",
        way: Way::From(85.0),
        patterns: &["debt.checkpoint_age_percent", "innodb.checkpoint_age_percent"],
    },
    Sign { name: "stolen CPU", way: Way::Up, patterns: &["cpu.steal_pct", "cpu.steal_s_per_s"] },
    Sign {
        name: "CPU held back by a quota",
        way: Way::Up,
        patterns: &["*throttled*", "cgroup.*throttl*"],
    },
    Sign {
        name: "waiting for a CPU",
        way: Way::Up,
        patterns: &[
            "psi.cpu.*",
            "responsiveness.process_ms",
            "server.runqueue_wait_s_per_s",
            "cpu.running",
        ],
    },
    Sign { name: "CPU used by other processes", way: Way::Up, patterns: &["rest.cpu_s_per_s"] },
    Sign {
        name: "fsync",
        way: Way::Up,
        patterns: &["*fsync*", "*flush_await*", "disk.flushes_per_s", "pg.*sync_time*"],
    },
    Sign {
        name: "a slow or throttled disk",
        way: Way::Up,
        patterns: &[
            "disk.*await*",
            "disk.*queue*",
            "disk.*busy_pct",
            "psi.io.*",
            "cpu.blocked",
            "cpu.iowait_pct",
        ],
    },
    Sign {
        name: "writing to disk",
        way: Way::Up,
        patterns: &[
            "disk.*write_bytes_per_s",
            "disk.writes_per_s",
            "server.disk_write_bytes_per_s",
            "memory.writeback_bytes",
        ],
    },
    Sign {
        name: "reading from disk",
        way: Way::Up,
        patterns: &["disk.read_bytes_per_s", "disk.reads_per_s", "server.disk_read_bytes_per_s"],
    },
    Sign {
        name: "memory pressure",
        way: Way::Up,
        patterns: &["psi.memory.*", "memory.swap_*_per_s", "memory.major_faults_per_s"],
    },
    Sign {
        name: "compaction or a write stall of the engine",
        way: Way::Up,
        patterns: &[
            "server.thread.*compact*",
            "rocksdb.*compact*",
            "rocksdb.*stall*",
            "rocksdb.*slowdown*",
            "rocksdb.*l0*",
            "debt.*compaction*",
        ],
    },
    Sign {
        name: "vacuum",
        way: Way::Up,
        patterns: &["server.thread.*vacuum*", "pg.*vacuum*", "postgresql.*vacuum*"],
    },
    Sign {
        name: "purge",
        way: Way::Up,
        patterns: &["server.thread.*purge*", "innodb.*purge*", "innodb.*history*", "debt.history*"],
    },
    Sign {
        name: "a checkpoint",
        way: Way::Up,
        patterns: &[
            "server.thread.*checkpoint*",
            "pg.*checkpoint*",
            "postgresql.*checkpoint*",
            "debt.checkpoint_distance",
            "sqlite.*checkpoint*",
            "innodb.*checkpoints*",
        ],
    },
    Sign {
        name: "flushing",
        way: Way::Up,
        patterns: &[
            "server.thread.*flush*",
            "server.thread.*clean*",
            "server.thread.*writer*",
            "innodb.*flush*",
            "innodb.*wait_free*",
            "innodb.*log_wait*",
            "innodb.*pages_written*",
            "pg.*buffers_*",
            "pg.*written*",
        ],
    },
    Sign {
        name: "waiting for locks",
        way: Way::Up,
        patterns: &[
            "innodb.*lock_wait*",
            "innodb.*row_lock*",
            "pg.*lock*wait*",
            "pg.*locks*waiting*",
        ],
    },
];

/// What is ordinary of one reading.
struct Ordinary<'a> {
    name: &'a str,
    column: &'a [Option<f64>],
    sign: &'a Sign,
    median: f64,
    spread: f64,
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
        let starts = &summary.intervals.start_s;
        let is_ordinary = |start: f64| {
            start >= -1e-9
                && stalls.iter().all(|(from, to)| start + 1.0 < from - 1.0 || start > to + 1.0)
        };
        let ordinary: Vec<bool> = starts.iter().map(|start| is_ordinary(*start)).collect();
        let readings = summary
            .readings
            .iter()
            .filter_map(|(name, column)| of_reading(summary, name, column, &ordinary))
            .collect();
        Evidence { summary, meanings, readings }
    }

    /// What moved about a stall, earliest first; of the same second, what moved farthest.
    pub(super) fn moved(&self, (from_s, to_s): (f64, f64)) -> Vec<Moved> {
        let mut moved: Vec<(usize, Moved)> =
            self.readings.iter().filter_map(|one| self.first_move(one, from_s, to_s)).collect();
        let distance = |m: &Moved| m.deviations.map_or(f64::INFINITY, f64::abs);
        moved.sort_by(|(a_idx, a), (b_idx, b)| {
            a_idx.cmp(b_idx).then(distance(b).total_cmp(&distance(a)))
        });
        let mut kept: Vec<Moved> = Vec::new();
        for (_, one) in moved {
            let n_same = kept.iter().filter(|other| other.sign_of == one.sign_of).count();
            if kept.len() < MOVED_MOST && n_same < OF_SAME_SIGN_MOST {
                kept.push(one);
            }
        }
        kept
    }

    /// The first interval about the stall in which a reading is not ordinary.
    fn first_move(&self, one: &Ordinary<'_>, from_s: f64, to_s: f64) -> Option<(usize, Moved)> {
        let starts = &self.summary.intervals.start_s;
        for (idx, &start) in starts.iter().enumerate() {
            // Each reading tells of its whole interval: one that overlaps the stall counts.
            if start < from_s - BEFORE_S || start >= to_s {
                continue;
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
            };
            return Some((idx, moved));
        }
        None
    }
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
    Some(Ordinary { name, column, sign, median: middle, spread, values, limit })
}

impl Ordinary<'_> {
    /// By how many robust standard deviations a value is off in the way that counts, if it is.
    fn leaves_range(&self, value: f64) -> Option<f64> {
        let off = value - self.median;
        // A reading that is ordinarily still (zero) has no spread: any value moves it.
        let deviations = if self.spread > 0.0 { off / self.spread } else { off.signum() * 99.0 };
        let is_far = match self.sign.way {
            Way::DownTo(share) => deviations <= -DEVIATIONS && value < share * self.median,
            _ => off > 0.0 && deviations >= DEVIATIONS,
        };
        let as_far = |v: &&f64| if off > 0.0 { **v >= value } else { **v <= value };
        let n_as_far = self.values.iter().filter(as_far).count();
        let is_rare = n_as_far as f64 <= RARE * self.values.len() as f64;
        (is_far && is_rare).then(|| deviations.clamp(-99.0, 99.0))
    }

    /// The limit, where a value has reached it.
    fn reaches_limit(&self, idx: usize, value: f64) -> Option<f64> {
        let limit = self.limit?.get(idx).copied().flatten()?;
        (limit > 0.0 && value >= AT_LIMIT * limit).then_some(limit)
    }
}
