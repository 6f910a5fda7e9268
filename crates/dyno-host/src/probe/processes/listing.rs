//! The server's own list of its threads, for what their names do not show: work for clients and for
//! Dyno's probes. A server's probe fills it, the process probe reads the latest; neither waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use super::ThreadGroup;
use dyno_units::locked;

/// Threads that answer Dyno's probes.
pub(super) const PROBE: ThreadGroup = ThreadGroup { name: "probe", is_foreground: false };

/// Works for no client; nothing else is known.
const BACKGROUND: ThreadGroup = ThreadGroup { name: "", is_foreground: false };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedThread {
    /// The kernel's id.
    pub tid: i32,
    /// The server's connection id; `None` for work without a client.
    pub connection: Option<u64>,
    pub group: ThreadGroup,
}

/// As the server reports it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ThreadListing {
    shared: Arc<Mutex<Listed>>,
}

#[derive(Debug, Default)]
struct Listed {
    /// `None` until the server has listed all.
    threads: Option<BTreeMap<i32, ListedThread>>,
    probes: BTreeSet<u64>,
}

impl ThreadListing {
    /// Marks a connection as a probe's. With a process per connection, its number is the process's.
    pub fn add_probe(&self, connection: u64) {
        locked(&self.shared).probes.insert(connection);
    }

    /// All threads that work for clients, and others with known work; the rest work for no client.
    pub fn set(&self, threads: impl IntoIterator<Item = ListedThread>) {
        let threads = threads.into_iter().map(|thread| (thread.tid, thread)).collect();
        locked(&self.shared).threads = Some(threads);
    }

    /// `known` is from elsewhere. `is_new`: it may have begun after the list.
    pub(super) fn group(
        &self,
        tid: i32,
        known: Option<ThreadGroup>,
        is_new: bool,
    ) -> Option<ThreadGroup> {
        let listed = locked(&self.shared);
        let is_probe = |connection: u64| listed.probes.contains(&connection);
        let Some(threads) = &listed.threads else {
            let is_probe = u64::try_from(tid).is_ok_and(is_probe);
            return if is_probe { Some(PROBE) } else { known };
        };
        match threads.get(&tid) {
            Some(ListedThread { connection: Some(connection), .. }) if is_probe(*connection) => {
                Some(PROBE)
            }
            Some(thread) => known.filter(|known| !known.name.is_empty()).or(Some(thread.group)),
            // A thread that served a client may wait for the next, and is listed again then.
            None => known.or((!is_new).then_some(BACKGROUND)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: ThreadGroup = ThreadGroup { name: "connection", is_foreground: true };
    const PURGE: ThreadGroup = ThreadGroup { name: "purge", is_foreground: false };

    #[test]
    fn nothing_is_changed_before_the_server_has_listed_them() {
        let listing = ThreadListing::default();
        assert_eq!(listing.group(7, None, false), None);
        assert_eq!(listing.group(7, Some(CLIENT), false), Some(CLIENT));
        // PostgreSQL: a process for each connection needs no list.
        listing.clone().add_probe(7);
        assert_eq!(listing.group(7, Some(CLIENT), false), Some(PROBE));
        assert_eq!(listing.group(8, Some(CLIENT), false), Some(CLIENT));
    }

    #[test]
    fn the_list_reports_what_names_do_not() {
        let listing = ThreadListing::default();
        let thread = |tid, connection, group| ListedThread { tid, connection, group };
        listing.add_probe(101);
        listing.set([
            thread(1, Some(100), CLIENT),
            thread(2, Some(101), CLIENT),
            thread(3, None, PURGE),
        ]);
        let check = |tid, known, is_new, expected| {
            assert_eq!(listing.group(tid, known, is_new), expected, "{tid}");
        };
        check(1, None, false, Some(CLIENT));
        check(2, None, false, Some(PROBE));
        check(3, None, false, Some(PURGE));
        check(4, None, false, Some(BACKGROUND));
        // It may serve a client that came after the list.
        check(4, None, true, None);
        // It waits for its next client.
        check(5, Some(CLIENT), false, Some(CLIENT));
        // A background thread serves a client now; a name stays.
        check(1, Some(BACKGROUND), false, Some(CLIENT));
        check(1, Some(PURGE), false, Some(PURGE));
        // 101 is a connection, not a thread.
        check(101, None, false, Some(BACKGROUND));
        // The probe is gone; its thread serves another client.
        listing.set([thread(2, Some(102), CLIENT)]);
        check(2, None, false, Some(CLIENT));
    }
}
