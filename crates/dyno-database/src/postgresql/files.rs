//! The purpose of PostgreSQL's files and processes.

use std::path::Path;

use dyno_host::{FileKind, ThreadGroup};

/// From the manual, "Database File Layout"; names do not distinguish tables and indexes.
pub(crate) fn file_kind(path: &Path) -> FileKind {
    if path.iter().any(|part| part.to_string_lossy().starts_with("pgsql_tmp")) {
        return FileKind::Temporary;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match path.iter().next().and_then(|part| part.to_str()) {
        // Temporary relations are called t, the number of the backend, and their own.
        Some("base" | "pg_tblspc") if name.starts_with('t') && name.contains('_') => {
            FileKind::Temporary
        }
        Some("base" | "global" | "pg_tblspc") if name.starts_with(|c: char| c.is_ascii_digit()) => {
            FileKind::TablesAndIndexes
        }
        Some("pg_wal" | "pg_xlog") => FileKind::Logs,
        _ => FileKind::Other,
    }
}

/// From the manual, "Monitoring Database Activity". A parallel worker serves a client.
const PROCESSES: [(&str, &str, bool); 13] = [
    ("parallel worker", "parallel_worker", true),
    ("checkpointer", "checkpointer", false),
    ("background writer", "background_writer", false),
    ("walwriter", "walwriter", false),
    ("autovacuum launcher", "autovacuum", false),
    ("autovacuum worker", "autovacuum", false),
    ("logical replication", "replication", false),
    ("walsender", "replication", false),
    ("walreceiver", "replication", false),
    ("stats collector", "statistics", false),
    ("archiver", "archiver", false),
    ("io worker", "io_worker", false),
    ("startup", "startup", false),
];

/// Other titles are backends', which begin with user and catalog.
pub(crate) fn thread_group(process: &str, _thread: &str) -> Option<ThreadGroup> {
    let Some((_, title)) = process.split_once("postgres: ") else {
        // The postmaster; or a process that has not got its title yet.
        let is_server = process.contains("postgres ") || process.ends_with("postgres");
        return is_server.then_some(ThreadGroup { name: "postmaster", is_foreground: false });
    };
    // A server with a cluster_name puts it before: `postgres: main: checkpointer`.
    let found = PROCESSES.iter().find(|(words, ..)| {
        title.starts_with(words)
            || title.split_once(": ").is_some_and(|(_, rest)| rest.starts_with(words))
    });
    Some(match found {
        Some(&(_, name, is_foreground)) => ThreadGroup { name, is_foreground },
        None => ThreadGroup { name: "backend", is_foreground: true },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_classified_by_their_places() {
        let check = |path: &str, expected: FileKind| {
            assert_eq!(file_kind(Path::new(path)), expected, "{path}");
        };
        check("base/5/16384", FileKind::TablesAndIndexes);
        check("base/5/16384.1", FileKind::TablesAndIndexes);
        check("base/5/16384_fsm", FileKind::TablesAndIndexes);
        check("global/1262", FileKind::TablesAndIndexes);
        check("base/5/t3_16390", FileKind::Temporary);
        check("base/pgsql_tmp/pgsql_tmp77.0", FileKind::Temporary);
        check("pg_wal/000000010000000000000001", FileKind::Logs);
        check("pg_xact/0000", FileKind::Other);
        check("base/5/PG_VERSION", FileKind::Other);
        check("postgresql.conf", FileKind::Other);
    }

    #[test]
    fn processes_are_classified_by_their_titles() {
        let check = |title: &str, expected: Option<(&str, bool)>| {
            let found = thread_group(title, "postgres");
            let found = found.map(|group| (group.name, group.is_foreground));
            assert_eq!(found, expected, "{title}");
        };
        check("postgres: checkpointer", Some(("checkpointer", false)));
        check("postgres: main: walwriter", Some(("walwriter", false)));
        check("postgres: dyno dyno [local] INSERT", Some(("backend", true)));
        check("postgres: parallel worker for PID 77", Some(("parallel_worker", true)));
        check("postgres: autovacuum worker dyno", Some(("autovacuum", false)));
        check("/usr/lib/postgresql/15/bin/postgres -D /data", Some(("postmaster", false)));
        check("cat", None);
    }
}
