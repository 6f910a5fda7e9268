//! Initial data: the contents of a new server's data folder before its first start.
//!
//! Initialising takes seconds, with the same result each time. A copy is kept as a data set without tables
//! ([`crate::datasets`]), and later servers start on a copy of that, if all that initialising reads is the same:
//! programs, settings, arguments, user, filesystem. What must be a server's own (ids, keys) is not kept. The first
//! server of a kind is initialised in its own folder; none works on the kept data.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dyno_host::{CopyLayout, Keeper, Program};
use dyno_units::{Clock, Nanoseconds};

use crate::data::build_of;
use crate::datasets::{Contents, DataSets, Description, Limits, Staging};
use crate::error::Result;
use crate::private::ServerFolder;
use crate::{DataShape, DeployError};

const FORMAT: u32 = 1;

/// Data with more bytes are not kept: those of a large redo log, say, which is quickly made.
const BYTES_MAX: u64 = 512 << 20;

pub(crate) struct Initialising {
    pub(crate) shape: DataShape,
    /// Programs ([`identity`]), settings and arguments; nothing that differs from server to server.
    pub(crate) reads: Vec<String>,
    /// Whether a file right in the data folder has to be a server's own: it is not kept.
    pub(crate) is_own: fn(&str) -> bool,
}

pub(crate) fn identity(program: Program<'_>) -> Result<String> {
    Ok(format!("{}: {}", program.path.display(), build_of(program)?))
}

impl Initialising {
    fn contents(self, folder: &ServerFolder) -> Contents {
        let place = folder.place();
        let mut reads = vec![format!("format {FORMAT}")];
        reads.extend(self.reads);
        let user = folder.keeper().run_as();
        reads.push(user.map_or_else(String::new, |user| format!("user {}", user.uid)));
        // Two places of one kind may have other filesystems.
        reads.push(place.facts().filesystem.unwrap_or_default());
        Contents::of_initial(self.shape, place.kind(), reads)
    }
}

impl ServerFolder {
    /// Copies kept data into a new server's folder, or lets `make` make them in an empty folder and keeps a copy. Data
    /// are always made without `initialising`, and with separate logs, which a copy would lack.
    pub(crate) fn put_initial_data(
        &self,
        initialising: Option<Initialising>,
        clock: &Arc<dyn Clock>,
        make: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (data, place) = (self.data(), self.place());
        let initialising = initialising.filter(|_| self.logs().is_none());
        let Some((keeper, initialising)) = keeper_of_initial_data(self.keeper()).zip(initialising)
        else {
            place.make_data(&data)?;
            return make();
        };
        let is_own = initialising.is_own;
        let contents = initialising.contents(self);
        if let Some(kept) = DataSets::of(&keeper).find(&contents) {
            return Ok(kept.copy_new(&data, self.keeper().run_as(), place.copies())?);
        }
        place.make_data(&data)?;
        let began = clock.now();
        make()?;
        let took = clock.now().saturating_sub(began);
        // This server needs no copy; the next one of its kind tries again.
        let _ = keep(&keeper, contents, (&data, is_own), (took, clock.as_ref()));
        Ok(())
    }
}

/// The keeper of initial data; none if none are kept, or if it cannot be made.
fn keeper_of_initial_data(keeper: &Arc<Keeper>) -> Option<Arc<Keeper>> {
    let root = keeper.initial_data()?;
    match root == keeper.root() {
        true => Some(Arc::clone(keeper)),
        false => Keeper::new(root).ok().map(Arc::new),
    }
}

/// Keeps a copy of data on which no server has been started yet.
fn keep(
    keeper: &Arc<Keeper>,
    contents: Contents,
    (data, is_own): (&Path, fn(&str) -> bool),
    (took, clock): (Nanoseconds, &dyn Clock),
) -> Result<()> {
    let store = DataSets::of(keeper);
    let bytes = dyno_host::folder_bytes(data);
    if store.find(&contents).is_some() || bytes.is_ok_and(|bytes| bytes > BYTES_MAX) {
        return Ok(());
    }
    let staging = Staging::make(keeper, "initial")?;
    let copy = staging.data();
    dyno_host::copy_new_folder(data, &copy, None, CopyLayout::AsOriginal)?;
    let failed = |error: std::io::Error| DeployError::new(format!("{}: {error}", copy.display()));
    for entry in fs::read_dir(&copy).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_str().is_some_and(is_own) {
            fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    let mut description = Description::new(&contents, "");
    description.bytes = dyno_host::folder_bytes(&copy).map_err(failed)?;
    description.populate_s = took.as_secs_f64();
    description.created_unix_ms = clock.unix_millis();
    store.keep(&staging, &description, &Limits::USUAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::{MetadataExt, chown};
    use std::sync::Barrier;

    use dyno_host::FolderElsewhere;
    use dyno_units::ManualClock;

    use super::*;
    use crate::Place;
    use crate::datasets::Listed;

    /// Folders for servers and for what is kept, which are not the same.
    struct Bench {
        root: tempfile::TempDir,
        kept: Arc<Keeper>,
    }

    fn initialising(setting: &str) -> Initialising {
        let shape = DataShape {
            product: "product".to_owned(),
            version: "1".to_owned(),
            build: "one".to_owned(),
            engine: None,
            settings: BTreeMap::new(),
        };
        Initialising { shape, reads: vec![setting.to_owned()], is_own: |name| name == "id" }
    }

    /// What an initialising program makes, as the servers' user.
    fn initialise(data: &Path, rows: &str) {
        let user = fs::metadata(data).unwrap().uid();
        for (name, text) in [("rows", rows), ("id", "of its own")] {
            fs::write(data.join(name), text).unwrap();
            chown(data.join(name), Some(user), None).unwrap();
        }
    }

    impl Bench {
        fn new() -> Bench {
            let root = tempfile::tempdir().unwrap();
            let kept = Arc::new(Keeper::new(&root.path().join("kept")).unwrap());
            Bench { root, kept }
        }

        fn place(&self) -> Place {
            let keeper = Keeper::new(&self.root.path().join("servers")).unwrap();
            Place::under(&Arc::new(keeper.with_initial_data(self.kept.root())))
        }

        /// The folder of a new server, and whether it was initialised there; `make` says with what.
        fn put(
            &self,
            place: &Place,
            setting: &str,
            make: impl FnOnce(&Path) -> Result<(), DeployError>,
        ) -> Result<(ServerFolder, bool), DeployError> {
            let folder = ServerFolder::make(place, "product").unwrap();
            let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
            let mut is_made = false;
            folder.put_initial_data(Some(initialising(setting)), &clock, || {
                is_made = true;
                make(&folder.data())
            })?;
            Ok((folder, is_made))
        }

        #[track_caller]
        fn check(&self, setting: &str, rows: &str, is_made: bool) -> ServerFolder {
            let made = self.put(&self.place(), setting, |data| {
                initialise(data, rows);
                Ok(())
            });
            let (folder, was_made) = made.unwrap();
            assert_eq!(was_made, is_made, "{setting}");
            folder
        }

        fn listed(&self) -> Vec<Listed> {
            DataSets::of(&self.kept).list().unwrap()
        }
    }

    fn text(folder: &ServerFolder, name: &str) -> Option<String> {
        fs::read_to_string(folder.data().join(name)).ok()
    }

    #[test]
    fn the_first_server_of_its_kind_is_initialised_and_others_begin_with_a_copy() {
        let bench = Bench::new();
        let first = bench.check("a = 1", "first", true);
        assert_eq!(text(&first, "id").as_deref(), Some("of its own"));
        // What the server does to its data is not in those that are kept.
        fs::write(first.data().join("rows"), "changed").unwrap();
        let second = bench.check("a = 1", "second", false);
        assert_eq!(text(&second, "rows").as_deref(), Some("first"));
        assert_eq!(text(&second, "id"), None);
        bench.check("a = 2", "other", true);
        assert_eq!(text(&bench.check("a = 2", "", false), "rows").as_deref(), Some("other"));
        let listed = bench.listed();
        assert!(listed.len() == 2 && listed.iter().all(Listed::is_initial), "{listed:?}");
        for one in &listed {
            DataSets::of(&bench.kept).remove(&one.key).unwrap();
        }
        let again = bench.check("a = 1", "again", true);
        assert_eq!(text(&again, "rows").as_deref(), Some("again"));
    }

    #[test]
    fn two_at_once_are_both_initialised_and_one_is_kept() {
        let bench = Bench::new();
        let both = Barrier::new(2);
        std::thread::scope(|scope| {
            for name in ["one", "two"] {
                let (bench, both) = (&bench, &both);
                scope.spawn(move || {
                    let made = bench.put(&bench.place(), "a = 1", |data| {
                        initialise(data, name);
                        both.wait();
                        Ok(())
                    });
                    let (folder, is_made) = made.unwrap();
                    assert_eq!((text(&folder, "rows").as_deref(), is_made), (Some(name), true));
                });
            }
        });
        assert_eq!(bench.listed().len(), 1);
        bench.check("a = 1", "third", false);
    }

    #[test]
    fn what_was_begun_is_neither_kept_nor_used() {
        let bench = Bench::new();
        let failed = bench.put(&bench.place(), "a = 1", |data| {
            initialise(data, "half");
            Err(DeployError::new("it ended"))
        });
        assert!(failed.is_err() && bench.listed().is_empty());
        // A Dyno that is killed while it copies leaves this.
        let staging = Staging::make(&bench.kept, "initial").unwrap();
        fs::create_dir(staging.data()).unwrap();
        initialise(&staging.data(), "half");
        std::mem::forget(staging);
        let folder = bench.check("a = 1", "whole", true);
        assert_eq!(text(&folder, "rows").as_deref(), Some("whole"));
        assert_eq!(text(&bench.check("a = 1", "", false), "rows").as_deref(), Some("whole"));
    }

    #[test]
    fn with_logs_apart_each_server_is_initialised() {
        let bench = Bench::new();
        let place = bench.place();
        let elsewhere = Arc::new(FolderElsewhere::make(place.keeper()).unwrap());
        let apart = place.with_logs_on(elsewhere);
        let make = |data: &Path| {
            initialise(data, "rows");
            Ok(())
        };
        assert!(bench.put(&apart, "a = 1", make).unwrap().1);
        assert!(bench.listed().is_empty(), "data without their logs were kept");
        bench.check("a = 1", "rows", true);
        assert!(bench.put(&apart, "a = 1", make).unwrap().1);
        apart.release().unwrap();
    }
}
