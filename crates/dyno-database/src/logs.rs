//! Logs apart from their server's data. Kept data include their logs, so logs are moved to their folder
//! before a start on kept data, and back after the end, while no server runs. Also reads the end of a server's log. A
//! crashing server reports stack and state in more lines than are shown, and its reason before them: of a report at the
//! end, only the first line stays.

use std::path::Path;
use std::{fs, io};

use dyno_host::{CopyLayout, Keeper, Place};

use crate::DeployError;
use crate::data::{gone, move_data};
use crate::error::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFiles {
    /// Files and folders whose names begin so; the server is told where they lie.
    Named(&'static [&'static str]),
    /// This folder, which may be a link to another one.
    Folder(&'static str),
}

impl LogFiles {
    /// Moves the logs of whole data, which no server uses yet, to their own folder.
    pub(crate) fn part(self, data: &Path, logs: &Path, place: &Place) -> Result<()> {
        match self {
            LogFiles::Named(beginnings) => {
                for name in names(data)? {
                    if beginnings.iter().any(|beginning| name.starts_with(beginning)) {
                        relocate(&data.join(&name), &logs.join(&name), place)?;
                    }
                }
                Ok(())
            }
            LogFiles::Folder(name) => {
                let inside = data.join(name);
                fs::remove_dir(logs).map_err(|error| failed(logs, &error))?;
                relocate(&inside, logs, place)?;
                std::os::unix::fs::symlink(logs, &inside).map_err(|error| failed(&inside, &error))
            }
        }
    }

    /// Moves data whose server has ended to `to`, with their logs among them again.
    pub(crate) fn unite(
        self,
        (data, logs): (&Path, &Path),
        to: &Path,
        keeper: &Keeper,
    ) -> Result<()> {
        if let LogFiles::Folder(name) = self {
            let link = data.join(name);
            fs::remove_file(&link).map_err(|error| failed(&link, &error))?;
        }
        let how = (keeper, CopyLayout::AsOriginal);
        move_data(data, to, how)?;
        match self {
            LogFiles::Folder(name) => move_data(logs, &to.join(name), how),
            LogFiles::Named(_) => names(logs)?
                .iter()
                .try_for_each(|name| move_data(&logs.join(name), &to.join(name), how)),
        }
    }
}

/// Moves a file or folder, between filesystems as well; nothing is left where it was.
fn relocate(from: &Path, to: &Path, place: &Place) -> Result<()> {
    move_data(from, to, (place.keeper(), place.copies()))?;
    let left = fs::symlink_metadata(from).and_then(|facts| match facts.is_dir() {
        true => fs::remove_dir_all(from),
        false => fs::remove_file(from),
    });
    gone(left).map_err(|error| failed(from, &error))
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let name = |entry: io::Result<fs::DirEntry>| {
        Ok(entry
            .map_err(|error| failed(folder, &error))?
            .file_name()
            .to_string_lossy()
            .into_owned())
    };
    entries.map(name).collect()
}

fn failed(path: &Path, error: &io::Error) -> DeployError {
    DeployError::new(format!("the server's logs cannot be moved: {}: {error}", path.display()))
}

/// Lines of the end of a log in which the beginning of a report is looked for.
const LINES_READ: usize = 2_000;

/// What the first line of a report says, behind the name of the program and before the number.
const CRASHED: [&str; 2] = [" got signal ", " got exception "];

/// Beginnings of the advice that follows a failed assertion of InnoDB.
const ADVICE: [&str; 8] = [
    "InnoDB: We intentionally",
    "InnoDB: Submit a detailed",
    "InnoDB: If you get repeated",
    "InnoDB: immediately after",
    "InnoDB: corruption in the",
    "InnoDB: http",
    "InnoDB: about forcing",
    "InnoDB: Please refer to",
];

/// The last lines of a server's log that say something of what happened, at most so many.
pub(crate) fn last_words(log: &Path, n_lines: usize) -> Vec<String> {
    let lines = without_report(dyno_host::last_lines(log, LINES_READ));
    lines[lines.len().saturating_sub(n_lines)..].to_vec()
}

/// A log without the report of a crash at its end, but for the line that says so.
fn without_report(mut lines: Vec<String>) -> Vec<String> {
    let is_crash = |line: &String| CRASHED.iter().any(|words| line.contains(words));
    let Some(crash) = lines.iter().rposition(is_crash) else { return lines };
    // A server that was started again writes behind the report of an earlier crash.
    if lines[crash + 1..].iter().any(|line| begins_with_date(line)) {
        return lines;
    }
    lines.truncate(crash + 1);
    lines.retain(|line| !ADVICE.iter().any(|advice| line.starts_with(advice)));
    lines
}

/// Whether a line begins as `2026-11-27`.
fn begins_with_date(line: &str) -> bool {
    let is_date = |(idx, byte): (usize, &u8)| match idx {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    line.len() >= 10 && line.as_bytes()[..10].iter().enumerate().all(is_date)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[track_caller]
    fn check(files: LogFiles, log: &str) {
        let root = tempfile::tempdir().unwrap();
        let keeper = Arc::new(Keeper::new(&root.path().join("root")).unwrap());
        let path = |name: &str| root.path().join(name);
        let [data, logs, kept] = ["data", "logs", "kept"].map(path);
        fs::create_dir_all(data.join(log).parent().unwrap()).unwrap();
        fs::create_dir(&logs).unwrap();
        fs::write(data.join("rows"), "rows").unwrap();
        fs::write(data.join(log), "log").unwrap();
        let place = Place::under(&keeper);
        files.part(&data, &logs, &place).unwrap();
        let name = Path::new(log).file_name().unwrap();
        assert_eq!(fs::read_to_string(logs.join(name)).unwrap(), "log");
        assert!(!names(&data).unwrap().contains(&log.to_owned()), "{files:?}");
        fs::write(logs.join(name), "more").unwrap();
        files.unite((&data, &logs), &kept, &keeper).unwrap();
        assert_eq!(fs::read_to_string(kept.join(log)).unwrap(), "more");
        assert!(!kept.join(log).parent().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(kept.join("rows")).unwrap(), "rows");
    }

    #[test]
    fn logs_go_to_their_own_folder_and_come_back() {
        check(LogFiles::Named(&["ib_logfile"]), "ib_logfile0");
        check(LogFiles::Folder("pg_wal"), "pg_wal/000000010000000000000001");
    }
}

#[cfg(test)]
mod tests_of_last_words {
    use super::*;

    /// As MariaDB 10.11 reports a crash, shortened.
    const CRASH: &str = "2026-11-27  1:02:03 0 [Note] InnoDB: Starting crash recovery from checkpoint LSN=46846\n\
        2026-11-27  1:02:04 0x7f2c51c016c0  InnoDB: Assertion failure in file ./storage/innobase/log/log0recv.cc line 4711\n\
        InnoDB: Failing assertion: !recv_sys.is_corrupt_log()\n\
        InnoDB: We intentionally generate a memory trap.\n\
        InnoDB: Submit a detailed bug report to https://jira.mariadb.org/\n\
        InnoDB: If you get repeated assertion failures or crashes, even\n\
        InnoDB: immediately after the mariadbd startup, there may be\n\
        InnoDB: corruption in the InnoDB tablespace. Please refer to\n\
        InnoDB: https://mariadb.com/kb/en/library/innodb-recovery-modes/\n\
        InnoDB: about forcing recovery.\n\
        261127  1:02:04 [ERROR] /usr/sbin/mariadbd got signal 6 ;\n\
        Sorry, we probably made a mistake, and this is a bug.\n\
        Server version: 10.11.6-MariaDB-0+deb12u1 source revision: \n\
        key_buffer_size=134217728\n\
        Thread pointer: 0x0\n\
        /usr/sbin/mariadbd(my_print_stacktrace+0x2e)[0x55d1a5c4b7ee]\n\
        Limit                     Soft Limit           Hard Limit           Units\n\
        Core pattern: core\n\
        Kernel version: Linux version 6.1.0\n";

    /// As MySQL does.
    const OTHER: &str = "2026-11-27T01:02:03.000000Z 1 [ERROR] [MY-012960] [InnoDB] Cannot create redo log files\n\
        2026-11-27T01:02:04Z UTC - mysqld got signal 11 ;\n\
        Most likely, you have hit a bug, but this error can also be caused by malfunctioning hardware.\n\
        Thread pointer: 0x0\n \
        #0 0x105a1a8 _Z19my_print_stacktracePKhm\n";

    #[track_caller]
    fn check(log: &str, n_lines: usize, expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        std::fs::write(&path, log).unwrap();
        assert_eq!(last_words(&path, n_lines), expected);
    }

    #[test]
    fn what_was_said_before_a_crash_is_seen() {
        let reason = "2026-11-27  1:02:04 0x7f2c51c016c0  InnoDB: Assertion failure in file \
                      ./storage/innobase/log/log0recv.cc line 4711";
        let assertion = "InnoDB: Failing assertion: !recv_sys.is_corrupt_log()";
        let crash = "261127  1:02:04 [ERROR] /usr/sbin/mariadbd got signal 6 ;";
        check(CRASH, 3, &[reason, assertion, crash]);
        check(CRASH, 1, &[crash]);
        let error = "2026-11-27T01:02:03.000000Z 1 [ERROR] [MY-012960] [InnoDB] Cannot create redo log files";
        check(OTHER, 30, &[error, "2026-11-27T01:02:04Z UTC - mysqld got signal 11 ;"]);
    }

    #[test]
    fn what_was_said_after_an_earlier_crash_is_seen() {
        let later = "2026-11-27  1:03:00 0 [ERROR] Aborting";
        check(&format!("{CRASH}{later}\n"), 1, &[later]);
        check("a\nb\nc\n", 2, &["b", "c"]);
        check("", 2, &[]);
    }
}
