//! What of a server shapes the files of its data, so that data sets can be kept and used again.
//!
//! A data set may serve a second server only if that server would have made the same files. Each
//! product therefore names the settings that surely leave no trace in them (sizes of caches, limits
//! of connections, what a commit waits for); all others count, also those that Dyno has never
//! heard of. A setting too many costs populating once more; one too few would measure something
//! else than was asked for.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::DeployError;

/// What of a server shapes the files of its data. Servers of equal shapes can work on each other's
/// data, and find there what they would have made themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataShape {
    /// The product's name.
    pub product: String,
    /// Its full version.
    pub version: String,
    /// What tells two builds of one version apart.
    pub build: String,
    /// The storage engine that was asked for.
    pub engine: Option<String>,
    /// The settings that shape the files, as the product's option file has them.
    pub settings: BTreeMap<String, String>,
}

/// Which settings of a product leave no trace in its files.
pub(crate) struct Traceless {
    /// Their names.
    pub(crate) names: &'static [&'static str],
    /// How the names of others begin.
    pub(crate) beginnings: &'static [&'static str],
}

impl Traceless {
    /// The settings that shape the files. A value that names a place is refused: the data set
    /// would not be in one folder.
    pub(crate) fn shaping(
        &self,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<BTreeMap<String, String>, DeployError> {
        let mut shaping = BTreeMap::new();
        for (name, value) in settings {
            if self.has(&name) {
                continue;
            }
            if value.contains('/') {
                return Err(DeployError::new(format!(
                    "the setting `{name}` points outside the data folder, so a copy of the folder \
                     would be incomplete"
                )));
            }
            shaping.insert(name, value);
        }
        Ok(shaping)
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
            || self.beginnings.iter().any(|beginning| name.starts_with(beginning))
    }
}

/// What tells a build of a program from others of the same version: its size and when it was made.
pub(crate) fn build_of(program: &Path) -> Result<String, DeployError> {
    let facts = fs::metadata(program).map_err(|error| {
        DeployError::new(format!("{} cannot be read: {error}", program.display()))
    })?;
    Ok(format!("{} bytes, made at {}.{:09}", facts.len(), facts.mtime(), facts.mtime_nsec()))
}

/// Moves a folder or file; both places are under the keeper's root.
pub(crate) fn move_data(from: &Path, to: &Path) -> Result<(), DeployError> {
    fs::rename(from, to).map_err(|error| {
        let (from, to) = (from.display(), to.display());
        DeployError::new(format!("the data in {from} cannot be moved to {to}: {error}"))
    })
}
