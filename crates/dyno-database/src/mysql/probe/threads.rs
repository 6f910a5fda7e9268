//! Which of the server's threads work for clients, as the server reports: not every MariaDB names
//! its threads. From the performance schema, which reports most, if it is on; else from MariaDB's
//! process list, whose column TID is the kernel's thread id.

use std::sync::Arc;

use dyno_host::{ListedThread, Probe, Readings, ThreadGroup, ThreadListing};
use dyno_units::Nanoseconds;
use dyno_units::reading::prelude::*;
use dyno_workload::{Connector, TextRows};

use crate::probe::{Asker, cell, number};

#[rustfmt::skip]
pub(super) const READINGS: &[Reading] = &[
    reading("mysql.threads_listed", Count, "threads listed", "threads whose purpose the server lists; used to split CPU time into foreground and background if threads have no names"),
];

/// Threads that are listed in a second at most: with more, the list is asked less often.
const THREADS_PER_S: u64 = 256;

const ASK_SCHEMA: &str = "SELECT THREAD_OS_ID, PROCESSLIST_ID, TYPE, NAME \
     FROM performance_schema.threads WHERE THREAD_OS_ID IS NOT NULL";
const ASK_PROCESSES: &str =
    "SELECT TID, ID, USER, COMMAND FROM information_schema.PROCESSLIST WHERE TID > 0";
const ASK_CONNECTED: &str = "SHOW GLOBAL STATUS LIKE 'Threads_connected'";

const CLIENT: ThreadGroup = ThreadGroup { name: "connection", is_foreground: true };
/// The kind of thread that works for an internal connection: replication, events.
const SERVICE: ThreadGroup = ThreadGroup { name: "replication", is_foreground: false };

/// Parts of names in the performance schema, with the threads' purpose (from source files of MySQL
/// 8 and MariaDB 10.11: the instruments of `sql` and `innodb`).
const NAMES: [(&str, &str); 10] = [
    ("purge", "purge"),
    ("srv_worker_thread", "purge"),
    ("page_cleaner", "page_cleaner"),
    ("page_flush", "page_cleaner"),
    ("/log_", "log"),
    ("dict_stats", "statistics"),
    ("io_", "innodb_io"),
    ("thread_pool", "innodb_tasks"),
    ("slave", "replication"),
    ("replica", "replication"),
];

/// Asks for the threads and puts them where the processes' probe finds them.
pub(super) struct ThreadsProbe {
    asker: Asker,
    listing: ThreadListing,
    not_before: Nanoseconds,
}

impl ThreadsProbe {
    pub(super) fn new(connector: Connector, listing: &ThreadListing) -> ThreadsProbe {
        ThreadsProbe {
            asker: Asker::new(connector),
            listing: listing.clone(),
            not_before: Nanoseconds::ZERO,
        }
    }

    fn list(&mut self, now: Nanoseconds) -> Option<Vec<ListedThread>> {
        let threads = self.asker.rows(now, ASK_SCHEMA).map(|rows| by_schema(&rows));
        if let Some(threads) = threads.filter(|threads| !threads.is_empty()) {
            return Some(threads);
        }
        let threads = by_processes(&self.asker.rows(now, ASK_PROCESSES)?);
        // A user without the right PROCESS sees only its own connections, without an error.
        let connected = self.asker.rows(now, ASK_CONNECTED)?;
        let n_connected = connected.first().and_then(|row| cell(row, 1)).and_then(number)?;
        let n_clients = threads.iter().filter(|thread| thread.group == CLIENT).count();
        is_whole(n_clients as f64, n_connected).then_some(threads)
    }
}

/// Whether the list holds all connections, as far as they come and go between two questions.
fn is_whole(n_clients: f64, n_connected: f64) -> bool {
    n_clients * 1.1 + 2.0 >= n_connected
}

impl Probe for ThreadsProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        READINGS.into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        if now + Nanoseconds::from_millis(100) < self.not_before {
            return;
        }
        let Some(threads) = self.list(now) else { return };
        let n_threads = threads.len() as u64;
        self.not_before = now + Nanoseconds::from_secs((n_threads / THREADS_PER_S).min(60));
        readings.insert("mysql.threads_listed".to_owned(), n_threads as f64);
        self.listing.set(threads);
    }

    fn name(&self) -> &str {
        "threads"
    }
}

fn by_schema(rows: &TextRows) -> Vec<ListedThread> {
    let thread = |row: &Vec<Option<String>>| {
        let name = cell(row, 3)?;
        let is_client = cell(row, 2) == Some("FOREGROUND") && name.contains("connection");
        let found = NAMES.iter().find(|(part, _)| name.contains(part));
        let group = match found {
            _ if is_client => CLIENT,
            Some(&(_, name)) => ThreadGroup { name, is_foreground: false },
            None => ThreadGroup { name: "", is_foreground: false },
        };
        Some(ListedThread { tid: tid(row)?, connection: connection(row), group })
    };
    rows.iter().filter_map(thread).collect()
}

fn by_processes(rows: &TextRows) -> Vec<ListedThread> {
    let thread = |row: &Vec<Option<String>>| {
        let user = cell(row, 2).unwrap_or_default();
        let command = cell(row, 3).unwrap_or_default();
        let is_service = matches!(user, "system user" | "event_scheduler")
            || matches!(command, "Daemon" | "Binlog Dump")
            || command.starts_with("Slave");
        let group = match command {
            _ if !is_service => CLIENT,
            "Daemon" => ThreadGroup { name: "", is_foreground: false },
            _ => SERVICE,
        };
        Some(ListedThread { tid: tid(row)?, connection: connection(row), group })
    };
    rows.iter().filter_map(thread).collect()
}

fn tid(row: &[Option<String>]) -> Option<i32> {
    cell(row, 0)?.parse().ok().filter(|tid| *tid > 0)
}

fn connection(row: &[Option<String>]) -> Option<u64> {
    cell(row, 1)?.parse().ok().filter(|number| *number > 0)
}

pub(super) fn probe(connector: &Connector, listing: &ThreadListing) -> Box<dyn Probe> {
    Box::new(ThreadsProbe::new(Arc::clone(connector), listing))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &[[&str; 4]]) -> TextRows {
        let text = |text: &&str| (!text.is_empty()).then(|| (*text).to_owned());
        texts.iter().map(|row| row.iter().map(text).collect()).collect()
    }

    fn summary(threads: Vec<ListedThread>) -> Vec<(i32, Option<u64>, &'static str, bool)> {
        let one = |t: ListedThread| (t.tid, t.connection, t.group.name, t.group.is_foreground);
        threads.into_iter().map(one).collect()
    }

    #[test]
    fn clients_are_distinguished_from_the_server_s_own() {
        // MariaDB 10.11 with events and replication.
        let found = summary(by_processes(&rows(&[
            ["4711", "31", "app", "Query"],
            ["4712", "32", "app", "Sleep"],
            ["4690", "5", "event_scheduler", "Daemon"],
            ["4691", "6", "system user", "Slave_IO"],
            ["4692", "7", "copier", "Binlog Dump"],
            ["0", "8", "app", "Query"],
            ["x", "9", "app", "Query"],
            ["", "", "", ""],
        ])));
        let expected = [
            (4711, Some(31), "connection", true),
            (4712, Some(32), "connection", true),
            (4690, Some(5), "", false),
            (4691, Some(6), "replication", false),
            (4692, Some(7), "replication", false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_performance_schema_lists_all() {
        // Written from the manual of MySQL 8.0.
        let found = summary(by_schema(&rows(&[
            ["70", "12", "FOREGROUND", "thread/sql/one_connection"],
            ["71", "", "BACKGROUND", "thread/innodb/page_flush_coordinator_thread"],
            ["72", "", "BACKGROUND", "thread/innodb/srv_purge_thread"],
            ["73", "", "BACKGROUND", "thread/innodb/log_writer_thread"],
            ["74", "5", "FOREGROUND", "thread/sql/compress_gtid_table"],
            ["75", "", "BACKGROUND", "thread/sql/main"],
        ])));
        let expected = [
            (70, Some(12), "connection", true),
            (71, None, "page_cleaner", false),
            (72, None, "purge", false),
            (73, None, "log", false),
            (74, Some(5), "", false),
            (75, None, "", false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_list_of_one_s_own_connections_is_not_the_whole() {
        let check = |n_clients, n_connected, expected| {
            assert_eq!(is_whole(n_clients, n_connected), expected, "{n_clients} {n_connected}");
        };
        check(5.0, 5.0, true);
        check(5.0, 7.0, true);
        check(1000.0, 1080.0, true);
        check(5.0, 64.0, false);
    }
}
