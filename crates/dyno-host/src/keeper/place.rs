//! Places: where servers' data live; made before the servers and released at the end. Data are in
//! the servers' folders or apart, in a keeper's folder with an owner file ([`Storage`]: a folder on
//! another disk, a volume), so that the next run can clean up.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_units::{IoLimit, PlaceFacts};

use super::{Keeper, files, leftovers};
use crate::copy::CopyLayout;
use crate::{Host, OrKeeper, Result};

/// Lost when the power fails.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

#[derive(Clone)]
pub struct Place {
    keeper: Arc<Keeper>,
    storage: Option<Arc<dyn Storage>>,
    logs: Option<Arc<dyn Storage>>,
    copies: CopyLayout,
}

/// Holds data apart from the servers' folders.
pub trait Storage: Send + Sync {
    /// What shapes how files lie on it: `folder`, `zfs recordsize=16k`. Data are reused by kind.
    fn kind(&self) -> String;

    /// Of operations and bytes per second; `None` without one.
    fn limit(&self) -> Option<IoLimit> {
        None
    }

    /// For the data. Only the servers' user can pass through it.
    fn folder(&self) -> &Path;

    /// Fails if something is left, or something foreign is there.
    fn release(&self) -> Result<()>;
}

impl Place {
    /// In the servers' own folders.
    pub fn under(keeper: &Arc<Keeper>) -> Place {
        let keeper = Arc::clone(keeper);
        Place { keeper, storage: None, logs: None, copies: CopyLayout::AsOriginal }
    }

    /// Apart from the servers' own folders.
    pub fn on(keeper: &Arc<Keeper>, storage: Arc<dyn Storage>) -> Place {
        Place { storage: Some(storage), ..Place::under(keeper) }
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

    /// `None` if they are with the data.
    pub fn logs_of(&self, server: &Path) -> Option<PathBuf> {
        Some(self.logs.as_ref()?.folder().join(server.file_name()?))
    }

    pub fn keeper(&self) -> &Arc<Keeper> {
        &self.keeper
    }

    pub fn kind(&self) -> String {
        self.storage.as_ref().map_or_else(|| "folder".to_owned(), |storage| storage.kind())
    }

    /// Holds servers' data and nothing else; `None` if they are in the servers' own folders.
    pub fn apart(&self) -> Option<&Path> {
        self.storage.as_ref().map(|storage| storage.folder())
    }

    fn path(&self) -> &Path {
        self.storage.as_ref().map_or(self.keeper.root(), |storage| storage.folder())
    }

    pub fn facts(&self) -> PlaceFacts {
        let path = self.path();
        let facts = PlaceFacts {
            kind: self.kind(),
            path: path.display().to_string(),
            limit: self.storage.as_ref().and_then(|storage| storage.limit()),
            ..PlaceFacts::default()
        };
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

    /// `beside` unless data live apart.
    pub fn data_of(&self, server: &Path, beside: PathBuf) -> PathBuf {
        match (&self.storage, server.file_name()) {
            (Some(storage), Some(name)) => storage.folder().join(name),
            _ => beside,
        }
    }

    /// Empty, new, and private to the servers' user.
    pub fn make_data(&self, data: &Path) -> Result<()> {
        files::make_folder(data, self.keeper.run_as()).or_path(data, "cannot be created")
    }

    /// An empty new folder of Dyno's on the filesystem of the data; `None` if these are in the
    /// servers' folders. [`Place::remove_data`] removes it.
    pub fn make_beside(&self, name: &str) -> Result<Option<PathBuf>> {
        let Some(storage) = &self.storage else { return Ok(None) };
        let path = storage.folder().join(name);
        files::make_folder(&path, None).or_path(&path, "cannot be created")?;
        Ok(Some(path))
    }

    /// Data and logs in a server's folder are removed with that instead.
    pub fn remove_data(&self, data: &Path) -> Result<()> {
        let mut apart = [&self.storage, &self.logs].into_iter().flatten();
        match apart.any(|storage| data.parent() == Some(storage.folder())) {
            true => leftovers::remove(data),
            false => Ok(()),
        }
    }

    /// Fails if something is left.
    pub fn release(&self) -> Result<()> {
        // What was made last goes first.
        let all = [&self.logs, &self.storage].into_iter().flatten();
        all.map(|storage| storage.release()).fold(Ok(()), Result::and)
    }
}

impl Keeper {
    /// Servers begin with a copy of the initial data under this root.
    pub fn with_initial_data(self, root: &Path) -> Keeper {
        Keeper { initial_data: Some(root.to_owned()), ..self }
    }

    pub fn initial_data(&self) -> Option<&Path> {
        self.initial_data.as_deref()
    }
}

pub struct FolderElsewhere {
    keeper: Arc<Keeper>,
    folder: PathBuf,
}

impl FolderElsewhere {
    /// With an owner file. Fails if the servers' user cannot reach it.
    pub fn make(keeper: &Arc<Keeper>) -> Result<FolderElsewhere> {
        let folder = keeper.make_folder("place")?;
        match keeper.open_to_servers(&folder) {
            Ok(()) => Ok(FolderElsewhere { keeper: Arc::clone(keeper), folder }),
            Err(error) => {
                // The next run removes what stays.
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

    fn release(&self) -> Result<()> {
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
        // Not in the storage: not removed.
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
        assert!(facts.path.starts_with('/'));
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
