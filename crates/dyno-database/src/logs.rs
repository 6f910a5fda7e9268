//! Logs apart from their server's data. Kept data include their logs, so logs are moved to their folder
//! before a start on kept data, and back after the end, while no server runs.

use std::fs;
use std::io;
use std::path::Path;

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
