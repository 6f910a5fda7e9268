//! The text of SHOW ENGINE INNODB STATUS, parsed into named values: MySQL 5.1 to 9, XtraDB and
//! MariaDB 10 and 11.
//!
//! The names follow those of `InnoDB_Stats`, the script that the dim_STAT author wrote for 5.1,
//! which has become the well-known list. Repeated lines (wait arrays, hash tables) are
//! summed up; of several buffer pools only the total is read. The averages that the text
//! gives are over an unknown time: rates are made of the counters instead.

use super::pattern::{leading_number, numbers};
use crate::probe::Values;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    None,
    Background,
    Semaphores,
    Transactions,
    Files,
    Buffer,
    Log,
    Pool,
    Rows,
}

impl Section {
    /// The section that a line between two rules of dashes begins; none if it is no heading.
    fn of(heading: &str) -> Option<Section> {
        Some(match heading.trim() {
            "BACKGROUND THREAD" => Section::Background,
            "SEMAPHORES" => Section::Semaphores,
            "TRANSACTIONS" => Section::Transactions,
            "FILE I/O" => Section::Files,
            "INSERT BUFFER AND ADAPTIVE HASH INDEX" | "INSERT BUFFER" => Section::Buffer,
            "LOG" => Section::Log,
            "BUFFER POOL AND MEMORY" => Section::Pool,
            "ROW OPERATIONS" => Section::Rows,
            // Of the pools only their total is read; deadlocks and foreign keys hold statements
            // of users.
            "INDIVIDUAL BUFFER POOL INFO"
            | "LATEST DETECTED DEADLOCK"
            | "LATEST FOREIGN KEY ERROR"
            | "END OF INNODB MONITOR OUTPUT" => Section::None,
            _ => return None,
        })
    }
}

/// A line of a section: its pattern and the names of its numbers. A name that begins with `+` is
/// summed up over all such lines; an empty one is skipped.
type Line = (Section, &'static str, &'static [&'static str]);

/// The first that fits a line counts.
const LINES: &[Line] = &[
    (
        Section::Background,
        "srv_master_thread loops: # srv_active, # srv_shutdown, # srv_idle",
        &["master_loops_active", "", "master_loops_idle"],
    ),
    (
        Section::Semaphores,
        "OS WAIT ARRAY INFO: reservation count #, signal count #",
        &["+os_wait_reservations", "+os_wait_signals"],
    ),
    (Section::Semaphores, "OS WAIT ARRAY INFO: reservation count #", &["+os_wait_reservations"]),
    (Section::Semaphores, "OS WAIT ARRAY INFO: signal count #", &["+os_wait_signals"]),
    (
        Section::Semaphores,
        "Mutex spin waits #, rounds #, OS waits #",
        &["mutex_spin_waits", "mutex_spin_rounds", "mutex_os_waits"],
    ),
    (
        Section::Semaphores,
        "RW-shared spins #, OS waits #; RW-excl spins #, OS waits #",
        &["rw_shared_spins", "rw_shared_os_waits", "rw_excl_spins", "rw_excl_os_waits"],
    ),
    (
        Section::Semaphores,
        "RW-shared spins #, rounds #, OS waits #",
        &["rw_shared_spins", "rw_shared_rounds", "rw_shared_os_waits"],
    ),
    (
        Section::Semaphores,
        "RW-excl spins #, rounds #, OS waits #",
        &["rw_excl_spins", "rw_excl_rounds", "rw_excl_os_waits"],
    ),
    (
        Section::Semaphores,
        "RW-sx spins #, rounds #, OS waits #",
        &["rw_sx_spins", "rw_sx_rounds", "rw_sx_os_waits"],
    ),
    (Section::Transactions, "History list length #", &["history_list_length"]),
    (
        Section::Files,
        "Pending flushes (fsync) log: #; buffer pool: #",
        &["+pending_flushes", "+pending_flushes"],
    ),
    (Section::Files, "Pending flushes (fsync): #", &["+pending_flushes"]),
    (
        Section::Files,
        "# OS file reads, # OS file writes, # OS fsyncs",
        &["os_file_reads", "os_file_writes", "os_fsyncs"],
    ),
    (
        Section::Buffer,
        "Ibuf: size #, free list len #, seg size #, # merges",
        &["ibuf_size", "ibuf_free_list_len", "ibuf_seg_size", "ibuf_merges"],
    ),
    (
        Section::Buffer,
        "Ibuf: size #, free list len #, seg size #",
        &["ibuf_size", "ibuf_free_list_len", "ibuf_seg_size"],
    ),
    (
        Section::Buffer,
        "# inserts, # merged recs, # merges",
        &["ibuf_inserts", "ibuf_merged_records", "ibuf_merges"],
    ),
    (
        Section::Buffer,
        "Hash table size #, used cells #, node heap has # buffer(s)",
        &["+hash_table_size", "", "+hash_node_buffers"],
    ),
    (
        Section::Buffer,
        "Hash table size #, node heap has # buffer(s)",
        &["+hash_table_size", "+hash_node_buffers"],
    ),
    (
        Section::Buffer,
        "# hash searches/s, # non-hash searches/s",
        &["hash_searches_per_s", "non_hash_searches_per_s"],
    ),
    (Section::Log, "Max checkpoint age #", &["checkpoint_age_max"]),
    (Section::Log, "Checkpoint age target #", &["checkpoint_age_target"]),
    (Section::Log, "Log capacity #", &["log_capacity"]),
    (
        Section::Log,
        "# pending log writes, # pending chkp writes",
        &["pending_log_writes", "pending_checkpoint_writes"],
    ),
    (
        Section::Log,
        "# pending log flushes, # pending chkp writes",
        &["pending_log_writes", "pending_checkpoint_writes"],
    ),
    (Section::Log, "# log i/o's done", &["log_ios"]),
    (
        Section::Pool,
        "Total memory allocated #; in additional pool allocated #",
        &["memory_bytes", "additional_pool_bytes"],
    ),
    (Section::Pool, "Total large memory allocated #", &["memory_bytes"]),
    (Section::Pool, "Total memory allocated #", &["memory_bytes"]),
    (Section::Pool, "Dictionary memory allocated #", &["dictionary_bytes"]),
    (Section::Pool, "Buffer pool size #", &["pool_pages"]),
    (Section::Pool, "Free buffers #", &["free_pages"]),
    (Section::Pool, "Database pages #", &["database_pages"]),
    (Section::Pool, "Old database pages #", &["old_database_pages"]),
    (Section::Pool, "Modified db pages #", &["dirty_pages"]),
    (Section::Pool, "Pending reads #", &["pending_page_reads"]),
    (
        Section::Pool,
        "Pending writes: LRU #, flush list #, single page #",
        &["+pending_page_writes", "+pending_page_writes", "pending_single_page_flushes"],
    ),
    (
        Section::Pool,
        "Pending writes: LRU #, flush list #",
        &["+pending_page_writes", "+pending_page_writes"],
    ),
    (
        Section::Pool,
        "Pages made young #, not young #",
        &["pages_made_young", "pages_not_made_young"],
    ),
    (
        Section::Pool,
        "Pages read #, created #, written #",
        &["pages_read", "pages_created", "pages_written"],
    ),
    (Section::Pool, "Buffer pool hit rate # / #", &["hits_of_window", "hits_of_window_max"]),
    (Section::Pool, "LRU len: #, unzip_LRU len: #", &["lru_len", "lru_unzip_len"]),
    (
        Section::Rows,
        "# queries inside InnoDB, # queries in queue",
        &["queries_inside", "queries_in_queue"],
    ),
    (Section::Rows, "# read views open inside InnoDB", &["read_views"]),
    (
        Section::Rows,
        "Number of rows inserted #, updated #, deleted #, read #",
        &["rows_inserted", "rows_updated", "rows_deleted", "rows_read"],
    ),
];

/// Log sequence numbers: what the line begins with, and their names.
const LSNS: &[(&str, &str)] = &[
    ("Log sequence number", "lsn"),
    ("Log flushed up to", "lsn_flushed"),
    ("Pages flushed up to", "lsn_pages_flushed"),
    ("Last checkpoint at", "lsn_checkpoint"),
];

/// Parses the text. What is missing or not understood has no value.
pub fn parse_innodb_status(text: &str) -> Values {
    let mut parser = Parser::default();
    let mut section = Section::None;
    let mut before = "";
    for line in text.lines() {
        // A heading stands between rules of dashes; statements of users stand in lists.
        let is_ruled = before.starts_with("---") && before.trim_end().bytes().all(|b| b == b'-');
        match Section::of(line).filter(|_| is_ruled) {
            Some(found) => section = found,
            None => parser.line(section, line),
        }
        before = line;
    }
    parser.derive();
    parser.values
}

#[derive(Default)]
struct Parser {
    values: Values,
    // Transaction ids: one word is hexadecimal in 5.5, decimal after it.
    is_hexadecimal: bool,
    trx_ids: [Option<f64>; 2],
    // Whether the list of transactions has begun, which holds statements of users.
    is_in_list: bool,
    // What the operations on the next line are: merged or discarded.
    operations: Option<&'static str>,
}

impl Parser {
    fn line(&mut self, section: Section, line: &str) {
        match section {
            Section::None => self.banner(line),
            Section::Semaphores => self.semaphore(line),
            Section::Transactions if self.is_in_list => return self.listed(line),
            Section::Transactions => self.transactions(line),
            Section::Files => self.pending_aio(line),
            Section::Buffer => self.merges(line),
            Section::Log => self.lsn(line),
            _ => {}
        }
        for (_, pattern, names) in LINES.iter().filter(|(of, ..)| *of == section) {
            if let Some(found) = numbers(line, pattern) {
                for (name, value) in names.iter().zip(found) {
                    match name.strip_prefix('+') {
                        Some(name) => self.add(name, value),
                        None if name.is_empty() => {}
                        None => self.set(name, value),
                    }
                }
                return;
            }
        }
    }

    fn set(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }

    fn add(&mut self, name: &str, value: f64) {
        *self.values.entry(name.to_owned()).or_insert(0.0) += value;
    }

    /// Up to 5.5 the banner's date is six digits: `130401 12:00:00 INNODB MONITOR OUTPUT`.
    fn banner(&mut self, line: &str) {
        if line.contains("INNODB MONITOR OUTPUT") {
            let date = line.split_whitespace().next().unwrap_or("");
            self.is_hexadecimal = date.len() == 6 && date.bytes().all(|b| b.is_ascii_digit());
        }
    }

    /// `--Thread 140 has waited at buf0buf.cc line 2493 for 241.00 seconds the semaphore:`
    fn semaphore(&mut self, line: &str) {
        if let Some(found) = numbers(line, "--Thread # has waited at * for # seconds") {
            self.add("semaphore_waits", 1.0);
            let longest = self.values.get("semaphore_wait_longest_s").copied().unwrap_or(0.0);
            self.set("semaphore_wait_longest_s", found.get(1).copied().unwrap_or(0.0).max(longest));
        }
    }

    fn transactions(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("Trx id counter ") {
            self.trx_ids[0] = self.trx_id(rest);
        } else if let Some(rest) = line.strip_prefix("Purge done for trx's n:o < ") {
            self.trx_ids[1] = self.trx_id(rest.split(" undo").next().unwrap_or(rest));
        } else if line.starts_with("LIST OF TRANSACTIONS") {
            self.is_in_list = true;
            for name in ["transactions_active", "transactions_waiting", "transaction_longest_s"] {
                self.set(name, 0.0);
            }
        }
    }

    /// `0 80157601` (two words of 32 bits), `3E5` (5.5) or `421` (5.6 and later).
    fn trx_id(&self, text: &str) -> Option<f64> {
        let mut words = text.split_whitespace();
        let first = words.next()?;
        match words.next().filter(|word| word.bytes().all(|b| b.is_ascii_hexdigit())) {
            Some(low) => {
                let low: u32 = low.parse().ok()?;
                Some(f64::from(first.parse::<u32>().ok()?) * 4_294_967_296.0 + f64::from(low))
            }
            None if self.is_hexadecimal => u64::from_str_radix(first, 16).ok().map(|id| id as f64),
            None => first.parse::<u64>().ok().map(|id| id as f64),
        }
    }

    fn listed(&mut self, line: &str) {
        if line.starts_with("---TRANSACTION") {
            let Some((_, rest)) = line.split_once(", ACTIVE ") else { return };
            let rest = rest.trim_start_matches("(PREPARED) ");
            self.add("transactions_active", 1.0);
            let seconds = leading_number(rest).map_or(0.0, |(seconds, _)| seconds);
            let longest = self.values.get("transaction_longest_s").copied().unwrap_or(0.0);
            self.set("transaction_longest_s", seconds.max(longest));
        } else if line.starts_with("------- TRX HAS BEEN WAITING ") {
            self.add("transactions_waiting", 1.0);
        }
    }

    /// `Pending normal aio reads: 3 [1, 2] , aio writes: 0 [0, 0] ,`; 8.0 has the lists alone, 5.1
    /// the sums alone.
    fn pending_aio(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("Pending normal aio reads:") else { return };
        let (reads, writes) = rest.split_once("aio writes:").unwrap_or((rest, ""));
        for (name, text) in [("pending_aio_reads", reads), ("pending_aio_writes", writes)] {
            let listed = || {
                let list = text.split_once('[')?.1.split(']').next()?;
                list.split(',').map(|number| number.trim().parse::<f64>().ok()).sum::<Option<f64>>()
            };
            if let Some(sum) = leading_number(text).map(|(sum, _)| sum).or_else(listed) {
                self.set(name, sum);
            }
        }
    }

    /// The operations stand on the line below their kind.
    fn merges(&mut self, line: &str) {
        let names = match self.operations.take() {
            Some("merged") => ["ibuf_inserts_merged", "ibuf_marks_merged", "ibuf_deletes_merged"],
            Some(_) => ["ibuf_inserts_discarded", "ibuf_marks_discarded", "ibuf_deletes_discarded"],
            None => {
                self.operations = match line.trim() {
                    "merged operations:" => Some("merged"),
                    "discarded operations:" => Some("discarded"),
                    _ => None,
                };
                return;
            }
        };
        let found = numbers(line, "insert #, delete mark #, delete #").unwrap_or_default();
        for (name, value) in names.iter().zip(found) {
            self.set(name, value);
        }
    }

    /// One number, or two words of 32 bits up to 5.1.
    fn lsn(&mut self, line: &str) {
        for (prefix, name) in LSNS {
            let Some(rest) = line.strip_prefix(prefix) else { continue };
            let words: Option<Vec<f64>> = rest
                .split_whitespace()
                .map(|word| word.parse::<u64>().ok().map(|n| n as f64))
                .collect();
            match words.as_deref() {
                Some([lsn]) => self.set(name, *lsn),
                Some([high, low]) => self.set(name, high * 4_294_967_296.0 + low),
                _ => {}
            }
        }
    }

    fn derive(&mut self) {
        let value = |name: &str| self.values.get(name).copied();
        let difference = |left: &str, right: &str| Some((value(left)? - value(right)?).max(0.0));
        let derived = [
            ("log_age", difference("lsn", "lsn_flushed")),
            ("checkpoint_age", difference("lsn", "lsn_checkpoint")),
            ("flush_age", difference("lsn", "lsn_pages_flushed")),
            ("hit_percent_of_window", {
                let of = value("hits_of_window_max").filter(|max| *max > 0.0);
                value("hits_of_window").zip(of).map(|(hits, max)| 100.0 * hits / max)
            }),
            ("dirty_percent", {
                let pages = value("database_pages").zip(value("free_pages")).map(|(a, b)| a + b);
                let pages = pages.filter(|pages| *pages > 0.0);
                value("dirty_pages").zip(pages).map(|(dirty, pages)| 100.0 * dirty / pages)
            }),
            ("trx_id", self.trx_ids[0]),
            (
                "purge_lag",
                self.trx_ids[0].zip(self.trx_ids[1]).map(|(next, done)| (next - done).max(0.0)),
            ),
        ];
        for (name, value) in derived {
            if let Some(value) = value {
                self.set(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
