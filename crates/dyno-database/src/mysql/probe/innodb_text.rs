//! Parses SHOW ENGINE INNODB STATUS into named values: MySQL 5.1 to 9, XtraDB, MariaDB 10 and 11.
//!
//! Names follow `InnoDB_Stats`, the dim_STAT author's script for 5.1, whose list is well known.
//! Repeated lines (wait arrays, hash tables) are summed; of several buffer pools only the total
//! counts. The text's averages cover an unknown time: rates are derived from counters instead.

use super::pattern::{leading_number, named, numbers};
use crate::probe::Values;

/// Patterns of the lines of each section, by the heading between two rules of dashes. Those without patterns count
/// nothing: only the pools' total counts; deadlocks and foreign keys contain users' statements.
const SECTIONS: [(&str, &[&str]); 13] = [
    ("BACKGROUND THREAD", BACKGROUND),
    ("SEMAPHORES", SEMAPHORES),
    ("TRANSACTIONS", TRANSACTIONS),
    ("FILE I/O", FILES),
    ("INSERT BUFFER AND ADAPTIVE HASH INDEX", BUFFER),
    ("INSERT BUFFER", BUFFER),
    ("LOG", LOG),
    ("BUFFER POOL AND MEMORY", POOL),
    ("ROW OPERATIONS", ROWS),
    ("INDIVIDUAL BUFFER POOL INFO", &[]),
    ("LATEST DETECTED DEADLOCK", &[]),
    ("LATEST FOREIGN KEY ERROR", &[]),
    ("END OF INNODB MONITOR OUTPUT", &[]),
];

/// Section, pattern, names of numbers: `+` sums over all such lines, empty ones are skipped.
const BACKGROUND: &[&str] =
    &["srv_master_thread loops: {master_loops_active} srv_active, {} srv_shutdown, \
     {master_loops_idle} srv_idle"];

const SEMAPHORES: &[&str] = &[
    "OS WAIT ARRAY INFO: reservation count {+os_wait_reservations}, signal count \
     {+os_wait_signals}",
    "OS WAIT ARRAY INFO: reservation count {+os_wait_reservations}",
    "OS WAIT ARRAY INFO: signal count {+os_wait_signals}",
    "Mutex spin waits {mutex_spin_waits}, rounds {mutex_spin_rounds}, OS waits {mutex_os_waits}",
    "RW-shared spins {rw_shared_spins}, OS waits {rw_shared_os_waits}; RW-excl spins \
     {rw_excl_spins}, OS waits {rw_excl_os_waits}",
    "RW-shared spins {rw_shared_spins}, rounds {rw_shared_rounds}, OS waits {rw_shared_os_waits}",
    "RW-excl spins {rw_excl_spins}, rounds {rw_excl_rounds}, OS waits {rw_excl_os_waits}",
    "RW-sx spins {rw_sx_spins}, rounds {rw_sx_rounds}, OS waits {rw_sx_os_waits}",
];

const TRANSACTIONS: &[&str] = &["History list length {history_list_length}"];

const FILES: &[&str] = &[
    "Pending flushes (fsync) log: {+pending_flushes}; buffer pool: {+pending_flushes}",
    "Pending flushes (fsync): {+pending_flushes}",
    "{os_file_reads} OS file reads, {os_file_writes} OS file writes, {os_fsyncs} OS fsyncs",
];

const BUFFER: &[&str] = &[
    "Ibuf: size {ibuf_size}, free list len {ibuf_free_list_len}, seg size {ibuf_seg_size}, \
     {ibuf_merges} merges",
    "Ibuf: size {ibuf_size}, free list len {ibuf_free_list_len}, seg size {ibuf_seg_size}",
    "{ibuf_inserts} inserts, {ibuf_merged_records} merged recs, {ibuf_merges} merges",
    "Hash table size {+hash_table_size}, used cells {}, node heap has {+hash_node_buffers} \
     buffer(s)",
    "Hash table size {+hash_table_size}, node heap has {+hash_node_buffers} buffer(s)",
    "{hash_searches_per_s} hash searches/s, {non_hash_searches_per_s} non-hash searches/s",
];

const LOG: &[&str] = &[
    "Max checkpoint age {checkpoint_age_max}",
    "Checkpoint age target {checkpoint_age_target}",
    "Log capacity {log_capacity}",
    "{pending_log_writes} pending log writes, {pending_checkpoint_writes} pending chkp writes",
    "{pending_log_writes} pending log flushes, {pending_checkpoint_writes} pending chkp writes",
    "{log_ios} log i/o's done",
];

const POOL: &[&str] = &[
    "Total memory allocated {memory_bytes}; in additional pool allocated {additional_pool_bytes}",
    "Total large memory allocated {memory_bytes}",
    "Total memory allocated {memory_bytes}",
    "Dictionary memory allocated {dictionary_bytes}",
    "Buffer pool size {pool_pages}",
    "Free buffers {free_pages}",
    "Database pages {database_pages}",
    "Old database pages {old_database_pages}",
    "Modified db pages {dirty_pages}",
    "Pending reads {pending_page_reads}",
    "Pending writes: LRU {+pending_page_writes}, flush list {+pending_page_writes}, single page \
     {pending_single_page_flushes}",
    "Pending writes: LRU {+pending_page_writes}, flush list {+pending_page_writes}",
    "Pages made young {pages_made_young}, not young {pages_not_made_young}",
    "Pages read {pages_read}, created {pages_created}, written {pages_written}",
    "Buffer pool hit rate {hits_of_window} / {hits_of_window_max}",
    "LRU len: {lru_len}, unzip_LRU len: {lru_unzip_len}",
];

const ROWS: &[&str] = &[
    "{queries_inside} queries inside InnoDB, {queries_in_queue} queries in queue",
    "{read_views} read views open inside InnoDB",
    "Number of rows inserted {rows_inserted}, updated {rows_updated}, deleted {rows_deleted}, \
     read {rows_read}",
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
    let mut section: (&str, &[&str]) = ("", &[]);
    let mut before = "";
    for line in text.lines() {
        // A heading stands between rules of dashes; statements of users stand in lists.
        let is_ruled = before.starts_with("---") && before.trim_end().bytes().all(|b| b == b'-');
        let begun = SECTIONS.iter().find(|(heading, _)| is_ruled && *heading == line.trim());
        match begun {
            Some(begun) => section = *begun,
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
    fn line(&mut self, (heading, patterns): (&str, &[&str]), line: &str) {
        match heading {
            "SEMAPHORES" => self.semaphore(line),
            "TRANSACTIONS" if self.is_in_list => return self.listed(line),
            "TRANSACTIONS" => self.transactions(line),
            "FILE I/O" => self.pending_aio(line),
            "INSERT BUFFER" | "INSERT BUFFER AND ADAPTIVE HASH INDEX" => self.merges(line),
            "LOG" => self.lsn(line),
            _ if patterns.is_empty() => self.banner(line),
            _ => {}
        }
        let found = patterns.iter().find_map(|pattern| named(line, pattern));
        for (name, value) in found.unwrap_or_default() {
            match name.strip_prefix('+') {
                Some(name) => self.add(name, value),
                None if name.is_empty() => {}
                None => self.set(name, value),
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

    /// `Pending normal aio reads: 3 [1, 2] , aio writes: 0 [0, 0] ,`; 8.0: lists, 5.1: sums.
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
