//! Where the record of a bench goes: a folder the user named, or one that is removed at the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use dyno_host::Keeper;
use dyno_lab::Lab;

use crate::lab;

/// A place for one record.
pub(super) struct Place {
    path: PathBuf,
    passing: Option<Passing>,
}

/// A folder that is removed with this; what a killed Dyno leaves there, the next bench removes.
struct Passing {
    keeper: Arc<Keeper>,
    folder: PathBuf,
}

impl Place {
    /// The folder that is named, or one of Dyno's own. That is never in a data folder which the
    /// user chose: the record is small, and tells of a disk that is full.
    pub(super) fn choose(named: Option<&String>, lab: &Lab) -> anyhow::Result<Place> {
        if let Some(path) = named {
            return Ok(Place { path: PathBuf::from(path), passing: None });
        }
        let root = lab::data_root(None)?;
        let keeper = if lab.keeper.root() == root {
            Arc::clone(&lab.keeper)
        } else {
            let keeper = Keeper::new(&root)
                .context("there is no place for the record; --out names another")?;
            // Of the keeper of servers the run does it.
            keeper.end_leftovers(lab.clock.as_ref());
            Arc::new(keeper)
        };
        let folder = keeper
            .make_folder("bench")
            .context("there is no place for the record; --out names another")?;
        let path = folder.join("record");
        Ok(Place { path, passing: Some(Passing { keeper, folder }) })
    }

    /// The folder of the record, which may not be there yet.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the user named it.
    pub(super) fn is_named(&self) -> bool {
        self.passing.is_none()
    }

    /// Keeps the record after all; returns where it is now.
    pub(super) fn keep(&self) -> anyhow::Result<PathBuf> {
        let Some(Passing { keeper, folder }) = &self.passing else { return Ok(self.path.clone()) };
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let kept = keeper.root().join(format!("failed-{name}"));
        std::fs::rename(&self.path, &kept)
            .with_context(|| format!("cannot keep the record as {}", kept.display()))?;
        Ok(kept)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(Passing { keeper, folder }) = &self.passing {
            // What stays behind is found and removed by the next bench.
            let _ = keeper.remove_folder(folder);
        }
    }
}
