//! The purpose of ClickHouse's files and threads.

use std::path::Path;

use dyno_host::{FileKind, ThreadGroup};

/// By path under the data folder: `data` or, in newer servers, `store` has a folder for each part with its
/// columns and marks; parts being made begin with `tmp_`.
pub(crate) fn file_kind(path: &Path) -> FileKind {
    let is_temporary = |part: &std::ffi::OsStr| part.to_string_lossy().starts_with("tmp_");
    match path.iter().next().and_then(|part| part.to_str()) {
        Some("data" | "store") if path.iter().any(is_temporary) => FileKind::Temporary,
        Some("data" | "store") => FileKind::TablesAndIndexes,
        Some("tmp") => FileKind::Temporary,
        _ => FileKind::Other,
    }
}

/// Names of threads as the server sets them (the kernel has 15 letters of them), and what they are for.
const THREADS: [(&str, &str, bool); 5] = [
    ("HTTPHandler", "client", true),
    ("BackgrProcPool", "background", false),
    ("BackgroundSched", "background", false),
    ("AsyncMetrics", "statistics", false),
    ("ConfigReloader", "configuration", false),
];

/// Threads without a name of their own, such as those that execute statements, are `other`.
pub(crate) fn thread_group(process: &str, thread: &str) -> Option<ThreadGroup> {
    if !process.contains("clickhouse") {
        return None;
    }
    let found = THREADS.iter().find(|(name, ..)| thread.starts_with(name));
    Some(match found {
        Some(&(_, name, is_foreground)) => ThreadGroup { name, is_foreground },
        None => ThreadGroup { name: "other", is_foreground: true },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_threads_are_classified_by_their_names() {
        let kind = |path: &str| file_kind(Path::new(path));
        assert_eq!(kind("data/dyno/t/all_1_1_0/id.bin"), FileKind::TablesAndIndexes);
        assert_eq!(kind("data/dyno/t/tmp_merge_all_1_2_1/id.bin"), FileKind::Temporary);
        assert_eq!(kind("metadata/dyno/t.sql"), FileKind::Other);
        let group = |process: &str, thread: &str| thread_group(process, thread).map(|g| g.name);
        assert_eq!(group("/usr/sbin/clickhouse-server --config", "HTTPHandler"), Some("client"));
        assert_eq!(group("clickhouse-server", "BackgrProcPool"), Some("background"));
        assert_eq!(group("clickhouse-server", "clickhouse-serv"), Some("other"));
        assert_eq!(group("postgres: dyno", "HTTPHandler"), None);
    }
}
