//! Places: where the data of servers live.
//!
//! A place is made before the servers are started, handed to them, and given back in the end. Data live
//! in the servers' own folders, or in a [`Storage`] apart from them: a folder on another disk, a volume.
//! Either is a folder of a keeper, with an owner file: what a killed Dyno leaves, the next run removes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Keeper, KeeperError, files, leftovers};
use crate::copy::CopyLayout;
use crate::facts::Host;

/// Filesystems that are gone when the power fails.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// Where the data of servers live.
#[derive(Clone)]
pub struct Place {
    keeper: Arc<Keeper>,
    storage: Option<Arc<dyn Storage>>,
    logs: Option<Arc<dyn Storage>>,
    copies: CopyLayout,
}

/// What holds the data of servers apart from their own folders.
pub trait Storage: Send + Sync {
    /// What shapes how files lie on it, in a word or a few: `folder`, `zfs recordsize=16k`. Data that
    /// were made on one kind are not used again on another.
    fn kind(&self) -> String;

    /// The folder that data are put into. The user that servers run as can pass through it, and nobody
    /// else.
    fn folder(&self) -> &Path;

    /// Removes all that was made for it.
    ///
    /// # Errors
    ///
    /// Something is left, or something that was not made for it is there.
    fn release(&self) -> Result<(), KeeperError>;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceFacts {
    /// What shapes how files lie on it: see [`Storage::kind`].
    pub kind: String,
    pub path: PathBuf,
    /// `ext4`; none if the kernel does not say.
    pub filesystem: Option<String>,
    /// `/dev/sda1`; none if the kernel does not say.
    pub device: Option<String>,
    /// Options of the mount and of the filesystem.
    pub options: Option<String>,
    /// Whether its disk turns; none if there is no disk, or the kernel does not say.
    pub is_rotational: Option<bool>,
    /// `write back` if a sync must flush the disk's own cache, else `write through`.
    pub write_cache: Option<String>,
    /// Of a loop device, the file that it shows as a disk.
    pub loop_file: Option<String>,
    /// Of a loop device, whether it goes past the page cache of that file.
    pub is_loop_direct: Option<bool>,
    /// Whether what was synced is there after the power has failed: not in memory. None if the
    /// filesystem is not known.
    pub survives_power_failure: Option<bool>,
}

impl Place {
    /// In the servers' own folders, under the keeper's root.
    pub fn under(keeper: &Arc<Keeper>) -> Place {
        Place {
            keeper: Arc::clone(keeper),
            storage: None,
            logs: None,
            copies: CopyLayout::AsOriginal,
        }
    }

    /// Apart from the servers' own folders, which this keeper makes.
    pub fn on(keeper: &Arc<Keeper>, storage: Arc<dyn Storage>) -> Place {
        let keeper = Arc::clone(keeper);
        Place { keeper, storage: Some(storage), logs: None, copies: CopyLayout::AsOriginal }
    }

    pub fn with_logs_on(self, storage: Arc<dyn Storage>) -> Place {
        Place { logs: Some(storage), ..self }
    }

    pub fn with_copies(self, copies: CopyLayout) -> Place {
        Place { copies, ..self }
    }

    pub fn copies(&self) -> CopyLayout {
        self.copies
    }

    /// Where the logs of the server with this folder live; none if they live with its data.
    pub fn logs_of(&self, server: &Path) -> Option<PathBuf> {
        Some(self.logs.as_ref()?.folder().join(server.file_name()?))
    }

    pub fn keeper(&self) -> &Arc<Keeper> {
        &self.keeper
    }

    pub fn kind(&self) -> String {
        self.storage.as_ref().map_or_else(|| "folder".to_owned(), |storage| storage.kind())
    }

    /// The folder that holds the data of servers and nothing else; none where data live in the
    /// servers' own folders.
    pub fn apart(&self) -> Option<&Path> {
        self.storage.as_ref().map(|storage| storage.folder())
    }

    fn path(&self) -> &Path {
        self.storage.as_ref().map_or(self.keeper.root(), |storage| storage.folder())
    }

    pub fn facts(&self) -> PlaceFacts {
        let path = self.path();
        let facts =
            PlaceFacts { kind: self.kind(), path: path.to_owned(), ..PlaceFacts::default() };
        let Some((mount, disk)) = Host::new(Path::new("/")).storage(path) else { return facts };
        PlaceFacts {
            survives_power_failure: Some(!IN_MEMORY.contains(&mount.filesystem.as_str())),
            filesystem: Some(mount.filesystem),
            device: Some(mount.device),
            options: Some(mount.options),
            is_rotational: disk.is_rotational,
            write_cache: disk.write_cache,
            loop_file: disk.loop_file,
            is_loop_direct: disk.is_loop_direct,
            ..facts
        }
    }

    /// Where the data of the server with this folder live; `beside` if they live in that folder.
    pub fn data_of(&self, server: &Path, beside: PathBuf) -> PathBuf {
        match (&self.storage, server.file_name()) {
            (Some(storage), Some(name)) => storage.folder().join(name),
            _ => beside,
        }
    }

    /// Makes an empty folder for data, private to the user that servers run as.
    ///
    /// # Errors
    ///
    /// It cannot be made, or is there.
    pub fn make_data(&self, data: &Path) -> Result<(), KeeperError> {
        files::make_folder(data, self.keeper.run_as())
            .map_err(|error| KeeperError(format!("{} cannot be created: {error}", data.display())))
    }

    /// Makes an empty folder of Dyno's own beside the data of servers, on the same filesystem; none where
    /// data live in the servers' own folders. [`Place::remove_data`] removes it.
    ///
    /// # Errors
    ///
    /// It cannot be made, or is there.
    pub fn make_beside(&self, name: &str) -> Result<Option<PathBuf>, KeeperError> {
        let Some(storage) = &self.storage else { return Ok(None) };
        let path = storage.folder().join(name);
        files::make_folder(&path, None).map_err(|error| {
            KeeperError(format!("{} cannot be created: {error}", path.display()))
        })?;
        Ok(Some(path))
    }

    /// Removes data or logs that live apart from their server's folder; others go with that.
    ///
    /// # Errors
    ///
    /// They cannot be removed.
    pub fn remove_data(&self, data: &Path) -> Result<(), KeeperError> {
        let mut apart = [&self.storage, &self.logs].into_iter().flatten();
        match apart.any(|storage| data.parent() == Some(storage.folder())) {
            true => leftovers::remove(data),
            false => Ok(()),
        }
    }

    /// Gives it back: removes all that was made for it.
    ///
    /// # Errors
    ///
    /// Something is left.
    pub fn release(&self) -> Result<(), KeeperError> {
        // What was made last goes first.
        let all = [&self.logs, &self.storage].into_iter().flatten();
        all.map(|storage| storage.release()).fold(Ok(()), Result::and)
    }
}

impl Keeper {
    /// The same keeper, whose servers begin with a copy of the initial data that a keeper with this root keeps.
    pub fn with_initial_data(self, root: &Path) -> Keeper {
        Keeper { initial_data: Some(root.to_owned()), ..self }
    }

    pub fn initial_data(&self) -> Option<&Path> {
        self.initial_data.as_deref()
    }
}

/// A folder under the root of another keeper: on another disk, say.
pub struct FolderElsewhere {
    keeper: Arc<Keeper>,
    folder: PathBuf,
}

impl FolderElsewhere {
    /// Makes one under this keeper's root, with an owner file.
    ///
    /// # Errors
    ///
    /// It cannot be made, or the user that servers run as cannot get there.
    pub fn make(keeper: &Arc<Keeper>) -> Result<FolderElsewhere, KeeperError> {
        let folder = keeper.make_folder("place")?;
        match keeper.open_to_servers(&folder) {
            Ok(()) => Ok(FolderElsewhere { keeper: Arc::clone(keeper), folder }),
            Err(error) => {
                // The error that matters is already there; what stays is removed by the next run.
                let _ = keeper.remove_folder(&folder);
                Err(error)
            }
        }
    }
}

impl Storage for FolderElsewhere {
    fn kind(&self) -> String {
        "folder".to_owned()
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn release(&self) -> Result<(), KeeperError> {
        self.keeper.remove_folder(&self.folder)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn keeper(root: &Path) -> Arc<Keeper> {
        Arc::new(Keeper::new(root).expect("the root can be used"))
    }

    #[test]
    fn data_live_with_their_server_or_apart_from_it() {
        let roots = [tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made")];
        let [here, there] = roots.each_ref().map(|root| keeper(root.path()));
        let server = here.make_folder("server").expect("made");
        let beside = server.join("data");
        assert_eq!(Place::under(&here).data_of(&server, beside.clone()), beside);

        let place = Place::on(&here, Arc::new(FolderElsewhere::make(&there).expect("made")));
        let data = place.data_of(&server, beside);
        assert!(data.starts_with(there.root()), "{}", data.display());
        place.make_data(&data).expect("made");
        fs::write(data.join("rows"), "rows").expect("written");
        // What is not in the storage is not removed by it.
        place.remove_data(&server).expect("it is left alone");
        assert!(server.is_dir());
        place.remove_data(&data).expect("removed");
        assert!(!data.exists());
        place.make_data(&data).expect("made again");
        let logs =
            place.clone().with_logs_on(Arc::new(FolderElsewhere::make(&there).expect("made")));
        assert_eq!(place.logs_of(&server), None);
        let of_logs = logs.logs_of(&server).expect("apart");
        assert!(of_logs.starts_with(there.root()) && of_logs.file_name() == server.file_name());
        logs.make_data(&of_logs).expect("made");
        logs.remove_data(&of_logs).expect("removed");
        assert!(!of_logs.exists());
        logs.release().expect("given back");
        let left: Vec<_> = fs::read_dir(there.root()).expect("read").collect();
        assert!(left.is_empty(), "{left:?}");
        here.remove_folder(&server).expect("removed");
    }

    #[test]
    fn a_place_says_what_it_is() {
        let root = tempfile::tempdir().expect("made");
        let facts = Place::under(&keeper(root.path())).facts();
        assert_eq!(facts.kind, "folder");
        assert!(facts.path.is_absolute());
        assert!(facts.filesystem.is_some() && facts.device.is_some(), "{facts:?}");
        if Path::new("/dev/shm").is_dir() {
            let root = tempfile::tempdir_in("/dev/shm").expect("made");
            let facts = Place::under(&keeper(root.path())).facts();
            let expected = (facts.filesystem.as_deref() != Some("tmpfs"), None);
            assert_eq!(
                (facts.survives_power_failure, facts.write_cache),
                (Some(expected.0), expected.1)
            );
        }
    }
}
