//! What this process's threads read from files and wrote to them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::process_table::list_pids;

/// So far (proc_pid_io(5)): files and caches, not sockets by `send` and `recv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadIo {
    pub read_calls: u64,
    pub read_bytes: u64,
    pub write_calls: u64,
    pub written_bytes: u64,
}

impl ThreadIo {
    fn parse(text: &str) -> Option<ThreadIo> {
        let count = |key: &str| -> Option<u64> {
            let rest = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            rest.trim().parse().ok()
        };
        Some(ThreadIo {
            read_calls: count("syscr")?,
            read_bytes: count("rchar")?,
            write_calls: count("syscw")?,
            written_bytes: count("wchar")?,
        })
    }

    #[must_use]
    pub fn plus(self, more: ThreadIo) -> ThreadIo {
        ThreadIo {
            read_calls: self.read_calls.saturating_add(more.read_calls),
            read_bytes: self.read_bytes.saturating_add(more.read_bytes),
            write_calls: self.write_calls.saturating_add(more.write_calls),
            written_bytes: self.written_bytes.saturating_add(more.written_bytes),
        }
    }

    #[must_use]
    pub fn since(self, before: ThreadIo) -> ThreadIo {
        ThreadIo {
            read_calls: self.read_calls.saturating_sub(before.read_calls),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            write_calls: self.write_calls.saturating_sub(before.write_calls),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

/// Of the calling thread.
pub fn thread_io() -> Option<ThreadIo> {
    ThreadIo::parse(&fs::read_to_string("/proc/thread-self/io").ok()?)
}

/// By thread id, for names that begin so; empty if the kernel does not report it.
pub fn own_thread_io(name: &str) -> BTreeMap<i32, ThreadIo> {
    let tasks = Path::new("/proc/self/task");
    let io = |tid: i32| {
        let folder = tasks.join(tid.to_string());
        let comm = fs::read_to_string(folder.join("comm")).ok()?;
        let text = comm.starts_with(name).then(|| fs::read_to_string(folder.join("io")))?.ok()?;
        Some((tid, ThreadIo::parse(&text)?))
    };
    list_pids(tasks).into_iter().filter_map(io).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let text = "rchar: 7\nwchar: 8\nsyscr: 9\nsyscw: 10\nread_bytes: 11\nwrite_bytes: 12\n";
        let expected = ThreadIo { read_calls: 9, read_bytes: 7, write_calls: 10, written_bytes: 8 };
        assert_eq!(ThreadIo::parse(text), Some(expected));
        assert_eq!(ThreadIo::parse("rchar: x"), None);
        let later = ThreadIo { read_bytes: 107, ..expected };
        assert_eq!(later.since(expected), ThreadIo { read_bytes: 100, ..ThreadIo::default() });
        assert_eq!(expected.since(later), ThreadIo::default());
    }

    #[test]
    fn a_thread_of_this_process_is_found_by_its_name() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), [1; 5000]).expect("written");
        let path = file.path().to_owned();
        let (read, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let work = || {
                fs::read(path).expect("it is there");
                read.wait();
                go_on.wait();
            };
            let builder = std::thread::Builder::new().name("io-of-a-test".to_owned());
            builder.spawn_scoped(scope, work).expect("a thread");
            read.wait();
            let found = own_thread_io("io-of-a-test");
            go_on.wait();
            assert_eq!(found.len(), 1);
            assert!(found.values().all(|io| io.read_bytes >= 5000), "{found:?}");
        });
        let before = thread_io().expect("Linux reports it");
        fs::read(file.path()).expect("it is there");
        assert!(thread_io().expect("Linux reports it").since(before).read_bytes >= 5000);
        assert!(own_thread_io("no-such-thread").is_empty());
    }
}
