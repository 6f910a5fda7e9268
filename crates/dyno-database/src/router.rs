//! Routers, such as poolers: they pass on to a server what clients send. A router is a folder of its
//! own, in the registry beside the products.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::Keeper;
use dyno_model::OptionSpec;
use dyno_units::{Clock, Reading};

use crate::error::Result;
use crate::part::Listening;
use crate::{Address, Client, DeployError, Endpoint, Place, Server};

/// Connections that a router accepts beside those of the clients: the lab's own, those to its console.
const SPARE_CLIENTS: usize = 30;

/// A router that can stand in front of a server.
pub trait Router: Send + Sync {
    fn spec(&self) -> &RouterSpec;

    /// Fails, with what to install, if its program is missing.
    fn check(&self, place: &Place) -> Result<()> {
        self.spec().program(place.keeper()).map(drop)
    }

    /// Waits until it answers. Fails if it is not installed, or does not start.
    fn start(&self, launch: &RouterLaunch<'_>) -> Result<Box<dyn Server>>;

    /// What is worth knowing about one that is started like this.
    fn notes(&self, _launch: &RouterLaunch<'_>) -> Vec<String> {
        Vec::new()
    }

    fn readings(&self) -> &'static [Reading];

    /// The client for people, of a router that is reached there; none if it has none.
    fn client(&self, _endpoint: &Endpoint) -> Option<Client> {
        None
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct RouterSpec {
    pub name: &'static str,
    pub title: &'static str,
    /// What it is among the members: `pooler`.
    pub member: &'static str,
    pub summary: &'static str,
    pub fronts: &'static [&'static str],
    pub shares_load: bool,
    /// What `behind` may say besides its name.
    pub options: Vec<OptionSpec>,
    /// Names of other programs for the same purpose, each with what to say of it.
    pub confused_names: &'static [(&'static str, &'static str)],
}

impl RouterSpec {
    pub(crate) fn program(&self, keeper: &Keeper) -> Result<PathBuf> {
        let name = self.name;
        keeper.find_program(name, &[]).ok_or_else(|| {
            DeployError::new(format!(
                "the program `{name}` is not on this machine; install it (Debian, Ubuntu: package \
                 `{name}`), or leave `behind` out"
            ))
        })
    }

    /// The version that a program tells with this argument, behind these words: `1.18.0`.
    pub(crate) fn version(
        &self,
        (program, keeper): (&Path, &Keeper),
        argument: &str,
        words: &str,
    ) -> Result<String> {
        let text = keeper.ask(program, &[argument])?;
        let rest = text.lines().next().and_then(|line| line.strip_prefix(words));
        let version = rest.and_then(|rest| rest.split_whitespace().next());
        version.map(str::to_owned).ok_or_else(|| {
            let (program, title) = (program.display(), self.title);
            DeployError::new(format!("{program} does not say that it is {title}"))
        })
    }
}

#[derive(Clone, Copy)]
pub struct RouterLaunch<'a> {
    /// The values of its options by name; those that are missing have their defaults.
    pub options: &'a BTreeMap<String, String>,
    pub to: &'a Endpoint,
    /// Further servers that take the same load: the other nodes of a cluster.
    pub also: &'a [Endpoint],
    /// For clients on other machines; servers then have addresses. None if all have sockets.
    pub open: Option<&'a Listening>,
    pub clients: usize,
    /// CPUs to bind it to; empty for none.
    pub cpus: &'a [u32],
    pub place: &'a Place,
    pub clock: &'a Arc<dyn Clock>,
}

impl RouterLaunch<'_> {
    /// How clients reach it: at this socket, or where it listens for those on other machines.
    pub(crate) fn endpoint(&self, socket: PathBuf) -> Endpoint {
        match self.open {
            Some(listening) => listening.endpoint(self.to.protocol),
            None => Endpoint { address: Address::Unix(socket), ..self.to.clone() },
        }
    }

    pub(crate) fn transport(&self) -> &'static str {
        if self.open.is_some() { "tcp" } else { "unix" }
    }

    /// The most client connections that an option admits; 0 for as many as there will be, plus some.
    pub(crate) fn max_clients(&self, spec: &RouterSpec) -> Result<u64> {
        match self.count(spec, "max_clients")? {
            0 => Ok((self.clients + SPARE_CLIENTS) as u64),
            given => Ok(given),
        }
    }

    pub(crate) fn count(&self, spec: &RouterSpec, name: &str) -> Result<u64> {
        let count = dyno_units::parse_count(self.option(spec, name));
        count.map_err(|error| DeployError::new(error.to_string()))
    }

    /// Why it cannot be placed in front of servers at these addresses.
    pub(crate) fn misplaced(&self, spec: &RouterSpec) -> DeployError {
        DeployError::new(format!(
            "{} can only be placed in front of servers that Dyno starts: on the same machine by their \
             sockets, and on others by their addresses",
            spec.title
        ))
    }

    /// The value of an option, or its default.
    pub(crate) fn option<'s>(&'s self, spec: &'s RouterSpec, name: &str) -> &'s str {
        let default = || spec.options.iter().find(|option| option.name == name);
        let given = self.options.get(name).map(String::as_str);
        given.or_else(|| default().map(|option| option.default.as_ref())).unwrap_or_default()
    }
}
