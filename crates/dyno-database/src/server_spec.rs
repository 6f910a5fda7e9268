//! What is asked for of a server.

use std::path::{Path, PathBuf};

use dyno_host::ServerLimits;
use dyno_units::version_fits;

use crate::error::{Result, fail};
use crate::settings::GivenSettings;
use crate::{Listening, Part};

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ServerSpec {
    /// The name of the product as studies write it: `mariadb`.
    pub product: String,
    /// What the server's version must begin with ([`crate::version_fits`]).
    pub version: Option<String>,
    /// The storage engine tables get by default.
    pub engine: Option<String>,
    /// Folder with the programs; else PATH, the usual places, and what was fetched.
    pub programs: Option<PathBuf>,
    /// Where the programs must come from: [`crate::MACHINE`], or a source of packages.
    pub from: Option<String>,
    /// The image of a container engine that has the programs; none for programs of this machine.
    pub image: Option<String>,
    /// Settings, shares of memory resolved.
    pub settings: GivenSettings,
    /// CPUs to bind it to; empty for none.
    pub cpus: Vec<u32>,
    pub limits: ServerLimits,
    pub part: Part,
    /// For the product's own client, if that needs another port ([`crate::Server::client_port`]).
    pub admits_client: bool,
    /// Where clients and members on other machines connect to it; none if they do not.
    pub open: Option<Listening>,
}

impl ServerSpec {
    pub fn new(product: &str) -> ServerSpec {
        ServerSpec { product: product.to_owned(), ..ServerSpec::default() }
    }

    /// Refuses a part in a deployment of several servers.
    #[cfg(feature = "servers")]
    pub(crate) fn check_alone(&self, title: &str) -> Result<()> {
        match self.part {
            Part::Alone => Ok(()),
            _ => fail(format!(
                "Dyno starts only single {title} servers: no replicas and no clusters"
            )),
        }
    }

    /// Refuses programs of another version than is asked for.
    pub(crate) fn check_version(&self, title: &str, programs: &Path, version: &str) -> Result<()> {
        match &self.version {
            Some(wanted) if !version_fits(version, wanted) => {
                fail(format!("{title} in {} is {version}, not {wanted}", programs.display()))
            }
            _ => Ok(()),
        }
    }
}
