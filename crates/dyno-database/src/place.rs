//! Where a server's files live.

use std::path::PathBuf;
use std::sync::Arc;

use dyno_host::Keeper;

use crate::DeployError;

/// Where a server's files live: in a folder of its own under a keeper's root. It is handed to the
/// server by whoever deploys it.
#[derive(Clone)]
pub struct Place {
    keeper: Arc<Keeper>,
}

impl Place {
    /// Folders under the keeper's root.
    pub fn under(keeper: &Arc<Keeper>) -> Place {
        Place { keeper: Arc::clone(keeper) }
    }

    /// Who starts and ends processes here, and owns the folders.
    pub fn keeper(&self) -> &Arc<Keeper> {
        &self.keeper
    }

    /// Makes a new folder whose name begins with `name`.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub(crate) fn make_folder(&self, name: &str) -> Result<PathBuf, DeployError> {
        Ok(self.keeper.make_folder(name)?)
    }
}
