//! Parses SHOW ENGINE ROCKSDB STATUS: compaction by column family, and write stalls. For RocksDB 5
//! (MyRocks of 2017) to 9, with MariaDB's.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RocksDbStatus {
    /// Levels by column family.
    pub families: BTreeMap<String, Vec<Level>>,
    /// Bytes that wait for compaction, if the text has them; all column families together.
    pub pending_compaction_bytes: Option<f64>,
    /// By the text's reason, for all column families together, since the start.
    pub stalls: BTreeMap<String, f64>,
    /// Share of the time since the start in which writers were held up, in percent.
    pub stalled_percent: Option<f64>,
}

/// One level of a column family, or a sum (`Sum`, `Int`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    /// `L0` …, `Sum`, `Int`.
    pub name: String,
    pub files: f64,
    pub compacting: f64,
    pub bytes: f64,
    /// The compaction score: at 1 compaction is due.
    pub score: f64,
    /// All columns as the text heads them, sizes of files left out.
    pub columns: BTreeMap<String, f64>,
}

/// Accepts several texts, concatenated. Skips what it does not understand.
pub fn parse_rocksdb_status(text: &str) -> RocksDbStatus {
    let mut status = RocksDbStatus::default();
    let mut family: Option<String> = None;
    let mut heads: Vec<&str> = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("** Compaction Stats [") {
            family = rest.split(']').next().map(str::to_owned);
            heads.clear();
        } else if line.starts_with("Level ") && line.contains("Score") {
            heads = line.split_whitespace().collect();
        } else if line.is_empty() || line.starts_with("Priority ") {
            heads.clear();
        } else if let (Some(family), false) = (&family, heads.is_empty()) {
            if let Some(level) = level(&heads, line) {
                status.families.entry(family.clone()).or_default().push(level);
            }
        } else {
            aside(line, &mut status);
        }
    }
    status
}

fn aside(line: &str, status: &mut RocksDbStatus) {
    if let Some(rest) = line.strip_prefix("Estimated pending compaction bytes:") {
        let number = rest.split_whitespace().next().and_then(amount);
        if let Some(bytes) = number {
            *status.pending_compaction_bytes.get_or_insert(0.0) += bytes;
        }
    } else if let Some(rest) = line.strip_prefix("Cumulative stall:") {
        let share = rest.split(',').nth(1).and_then(|text| text.split_whitespace().next());
        status.stalled_percent = share.and_then(amount);
    } else if let Some(rest) = line.strip_prefix("Stalls(count):") {
        // `0 level0_slowdown, 0 level0_numfiles, …, interval 0 total count`
        for piece in rest.split(',') {
            let mut words = piece.trim().splitn(2, ' ');
            let count = words.next().and_then(amount);
            add(&mut status.stalls, words.next(), count);
        }
    } else if let Some(rest) = line.strip_prefix("Write Stall (count):") {
        // `cf-l0-file-count-limit-delays: 0, …, total-stops: 0` and what more is on the line
        for piece in rest.split([',', '|']) {
            let mut sides = piece.splitn(2, ':');
            let reason = sides.next();
            let count = sides.next().and_then(|text| text.split_whitespace().next());
            add(&mut status.stalls, reason, count.and_then(amount));
        }
    }
}

fn add(stalls: &mut BTreeMap<String, f64>, reason: Option<&str>, count: Option<f64>) {
    if let (Some(reason), Some(count)) = (reason, count) {
        *stalls.entry(reason.trim().to_owned()).or_insert(0.0) += count;
    }
}

/// One line of the table: as many values as there are heads, where `Size` has a unit of its own.
fn level(heads: &[&str], line: &str) -> Option<Level> {
    let mut words = line.split_whitespace();
    let mut level = Level { name: words.next()?.to_owned(), ..Level::default() };
    let is_known = level.name == "Sum"
        || level.name == "Int"
        || level.name.strip_prefix('L').is_some_and(|number| number.parse::<u32>().is_ok());
    if !is_known {
        return None;
    }
    for head in &heads[1..] {
        let word = words.next()?;
        match *head {
            "Files" => {
                let (files, compacting) = word.split_once('/').unwrap_or((word, "0"));
                (level.files, level.compacting) = (amount(files)?, amount(compacting)?);
            }
            "Size" => level.bytes = amount(word)? * unit(words.next()?)?,
            "Size(MB)" => level.bytes = amount(word)? * unit("MB")?,
            head => {
                let value = amount(word)?;
                if head == "Score" {
                    level.score = value;
                }
                level.columns.insert(head.to_owned(), value);
            }
        }
    }
    Some(level)
}

fn unit(text: &str) -> Option<f64> {
    let powers = ["B", "KB", "MB", "GB", "TB"];
    let power = powers.iter().position(|unit| *unit == text)?;
    Some(1024_f64.powi(i32::try_from(power).ok()?))
}

/// A number, which may be of thousands (`93K`), millions or thousands of millions.
fn amount(text: &str) -> Option<f64> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1e3),
        b'M' => (&text[..text.len() - 1], 1e6),
        b'G' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 = digits.parse().ok()?;
    number.is_finite().then_some(number * factor)
}

/// Estimated from sizes and scores if the server does not report it: a level's excess over its
/// target (size × (1 − 1 ÷ score)), all of level 0 once it is due. RocksDB's own estimate adds what
/// compaction would then move from the levels below.
pub(in crate::mysql) fn pending_compaction_bytes(levels: &[Level]) -> f64 {
    let pending = |level: &Level| match level.name.as_str() {
        "Sum" | "Int" => 0.0,
        "L0" if level.score >= 1.0 => level.bytes,
        "L0" => 0.0,
        _ if level.score > 1.0 => level.bytes * (1.0 - 1.0 / level.score),
        _ => 0.0,
    };
    levels.iter().map(pending).sum()
}

#[cfg(test)]
mod tests;
