//! The purpose of MySQL's and MariaDB's files and threads, by name.

use std::path::Path;

use dyno_host::{FileKind, ThreadGroup};

/// By path under the data folder, from the manuals of MariaDB and MySQL and RocksDB's wiki.
pub(crate) fn file_kind(path: &Path) -> FileKind {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let is_in = |folder: &str| path.iter().any(|part| part.eq_ignore_ascii_case(folder));
    let is_numbered = extension.len() == 6 && extension.bytes().all(|b| b.is_ascii_digit());
    match extension.as_ref() {
        "ibd" | "sst" => FileKind::TablesAndIndexes,
        "MYD" | "MAD" => FileKind::Tables,
        "MYI" | "MAI" => FileKind::Indexes,
        "ibu" => FileKind::Undo,
        "ibt" => FileKind::Temporary,
        "log" if is_in("#rocksdb") || is_in(".rocksdb") => FileKind::Logs,
        _ if name.starts_with("ibtmp") || name.starts_with("#sql") => FileKind::Temporary,
        _ if is_in("#innodb_temp") => FileKind::Temporary,
        _ if name.starts_with("ibdata") || name.starts_with("undo") => FileKind::Undo,
        _ if name.starts_with("ib_logfile") || is_in("#innodb_redo") => FileKind::Logs,
        _ if name.starts_with("aria_log") => FileKind::Logs,
        // Binary and relay logs are numbered, whatever their base name is.
        _ if is_numbered && path.components().count() == 1 => FileKind::Logs,
        _ => FileKind::Other,
    }
}

/// MySQL names threads since 8.0, MariaDB since 10.11.10; the kernel cuts names to 15 bytes.
/// RocksDB names its pools itself.
const THREADS: [(&str, &str, bool); 22] = [
    ("connection", "connection", true),
    ("one_connection", "connection", true),
    ("tpool_worker", "connection", true),
    ("pool_worker", "connection", true),
    ("timer", "timer", false),
    ("ib_tpool", "innodb_tasks", false),
    ("ib_purge", "purge", false),
    ("ib_srv_purge", "purge", false),
    ("purge", "purge", false),
    ("page_cleaner", "page_cleaner", false),
    ("ib_pg_flush", "page_cleaner", false),
    ("ib_page", "page_cleaner", false),
    ("ib_log", "log", false),
    ("ib_dict", "statistics", false),
    ("ib_", "innodb", false),
    ("innodb", "innodb", false),
    ("my-io_uring", "innodb_io", false),
    ("rocksdb:low", "compaction", false),
    ("rocksdb:high", "flush", false),
    ("rocksdb:", "rocksdb", false),
    ("myrocks-", "rocksdb", false),
    ("checkpoint_bg", "aria_checkpoint", false),
];

pub(crate) fn thread_group(_process: &str, thread: &str) -> Option<ThreadGroup> {
    let found = THREADS.iter().find(|(head, ..)| thread.starts_with(head));
    found.map(|&(_, name, is_foreground)| ThreadGroup { name, is_foreground })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_classified_by_their_names() {
        let check = |path: &str, expected: FileKind| {
            assert_eq!(file_kind(Path::new(path)), expected, "{path}");
        };
        check("dyno/sbtest1.ibd", FileKind::TablesAndIndexes);
        check("dyno/t.MYD", FileKind::Tables);
        check("dyno/t.MAI", FileKind::Indexes);
        check("#rocksdb/000012.sst", FileKind::TablesAndIndexes);
        check("#rocksdb/000013.log", FileKind::Logs);
        check("#rocksdb/LOG", FileKind::Other);
        check(".rocksdb/000013.log", FileKind::Logs);
        check("ib_logfile0", FileKind::Logs);
        check("#innodb_redo/#ib_redo12", FileKind::Logs);
        check("aria_log.00000001", FileKind::Logs);
        check("mysql-bin.000001", FileKind::Logs);
        check("ibdata1", FileKind::Undo);
        check("undo001", FileKind::Undo);
        check("undo_001", FileKind::Undo);
        check("ibtmp1", FileKind::Temporary);
        check("#innodb_temp/temp_1.ibt", FileKind::Temporary);
        check("dyno/#sql-ib12.ibd", FileKind::TablesAndIndexes);
        check("mysql/user.frm", FileKind::Other);
        check("error.log", FileKind::Other);
        check("", FileKind::Other);
    }

    #[test]
    fn threads_are_classified_by_their_names() {
        let check = |thread: &str, expected: Option<(&str, bool)>| {
            let found = thread_group("mariadbd", thread);
            let found = found.map(|group| (group.name, group.is_foreground));
            assert_eq!(found, expected, "{thread}");
        };
        check("connection", Some(("connection", true)));
        check("ib_purge_wkr-1", Some(("purge", false)));
        check("rocksdb:low0", Some(("compaction", false)));
        check("rocksdb:high", Some(("flush", false)));
        check("mariadbd", None);
        check("", None);
    }
}
