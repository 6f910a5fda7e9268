//! Which properties of a server shape its data files, so that data sets can be kept and reused.
//!
//! Another server may use a data set only if it would have made the same files. Each product names
//! the settings that surely leave no trace in them (sizes of caches, limits of connections, what a
//! commit waits for); all others count, even unknown ones. One too many costs populating once more;
//! one too few would measure something else than asked.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use dyno_host::{CopyLayout, Keeper, Place, Program};
use dyno_units::SettingValue;
use serde::{Deserialize, Serialize};

use crate::ServerSpec;
use crate::error::{Context, Result, fail};
use crate::settings::{Settings, Words};

/// Servers with equal shapes can use each other's data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataShape {
    /// The product's title: `MariaDB`.
    pub product: String,
    /// The full version text that the server reports.
    pub version: String,
    /// What distinguishes two builds of one version.
    pub build: String,
    pub engine: Option<String>,
    /// The settings that shape the files, as the product's option file has them.
    pub settings: Settings,
}

/// The settings of a product that have no effect on its files, only on the running server.
pub(crate) struct RuntimeSettings {
    pub(crate) names: Words,
    /// Prefixes of the names of further ones.
    pub(crate) beginnings: Words,
}

impl RuntimeSettings {
    /// Fails for a value with a path: the data set would not be in one folder.
    pub(crate) fn shaping(
        &self,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Settings> {
        let mut shaping = BTreeMap::new();
        for (name, value) in settings {
            if self.has(&name) {
                continue;
            }
            if value.contains('/') {
                return fail(format!(
                    "the setting `{name}` points outside the data folder, so a copy of the folder \
                     would be incomplete"
                ));
            }
            shaping.insert(name, value);
        }
        Ok(shaping)
    }

    /// The shape of the data of a server with this program and version; `spell` writes a setting as its option file
    /// has it.
    pub(crate) fn shape<'a>(
        &self,
        spec: &ServerSpec,
        (program, version): (impl Into<Program<'a>>, &str),
        spell: impl Fn(&str, &SettingValue) -> Result<(String, String)>,
    ) -> Result<DataShape> {
        let build = build_of(program)?;
        let settings = spec.settings.iter().map(|(name, value)| spell(name, value));
        let settings = settings.collect::<Result<Vec<_>>>()?;
        Ok(DataShape {
            product: spec.product.clone(),
            version: version.to_owned(),
            build,
            engine: spec.engine.as_deref().map(str::to_ascii_lowercase),
            settings: self.shaping(settings)?,
        })
    }

    fn has(&self, name: &str) -> bool {
        self.names.has(name) || self.beginnings.iter().any(|beginning| name.starts_with(beginning))
    }
}

/// Distinguishes builds of the same version: the program's size and date, or its image's digest.
pub(crate) fn build_of<'a>(program: impl Into<Program<'a>>) -> Result<String> {
    let program = program.into();
    if let Some(image) = program.image {
        return Ok(format!("image {}", image.id()));
    }
    let program = program.path;
    let facts = fs::metadata(program).context(format!("{} cannot be read", program.display()))?;
    Ok(format!("{} bytes, made at {}.{:09}", facts.len(), facts.mtime(), facts.mtime_nsec()))
}

/// Folders for data without a server: Dyno's own user works there.
pub(crate) struct OwnFolder {
    pub(crate) place: Place,
    /// The folder that is marked as Dyno's.
    path: PathBuf,
    /// The same, unless its place is elsewhere.
    pub(crate) data: PathBuf,
}

impl OwnFolder {
    pub(crate) fn make(place: &Place, name: &str) -> Result<OwnFolder> {
        let path = place.keeper().make_folder(name)?;
        let data = place.data_of(&path, path.clone());
        let folder = OwnFolder { place: place.clone(), path, data };
        let is_apart = folder.data != folder.path;
        let made = if is_apart { fs::create_dir(&folder.data) } else { Ok(()) };
        if made.is_err() {
            // This error is the one to report; a folder that stays is found as a leftover.
            let _ = folder.remove();
        }
        made.context(format!("{} cannot be created", folder.data.display()))?;
        Ok(folder)
    }

    pub(crate) fn remove(&self) -> Result<()> {
        let folder = self.place.keeper().remove_folder(&self.path);
        Ok(folder.and(self.place.remove_data(&self.data))?)
    }
}

/// What came of removing something that need not be there.
pub(crate) fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Moves a folder or file of a server. Between filesystems it is copied in this layout, and what is left
/// goes with the folder it lies in.
pub(crate) fn move_data(
    from: &Path,
    to: &Path,
    (keeper, layout): (&Keeper, CopyLayout),
) -> Result<()> {
    let what = format!("the data in {} cannot be moved to {}", from.display(), to.display());
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let owner = fs::symlink_metadata(from).map(|facts| facts.uid()).ok();
            let owner = keeper.run_as().filter(|user| Some(user.uid) == owner);
            dyno_host::copy_folder(from, to, owner, layout, &|| false).context(what)
        }
        moved => moved.context(what),
    }
}
