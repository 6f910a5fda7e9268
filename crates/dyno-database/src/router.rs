//! Routers: what stands in front of a server and passes on to it what clients send, such as a pooler.
//!
//! A router is a folder of its own, in the registry beside the products.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use dyno_model::OptionSpec;
use dyno_units::{Clock, Reading};

use crate::part::Listening;
use crate::{Address, Client, DeployError, Endpoint, Place, Server};

/// A router that can stand in front of a server.
pub trait Router: Send + Sync {
    fn spec(&self) -> &RouterSpec;

    /// Whether its program is here.
    ///
    /// # Errors
    ///
    /// It is not: what to install.
    fn check(&self, place: &Place) -> Result<(), DeployError>;

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    ///
    /// It is not installed, or did not start.
    fn start(&self, launch: &RouterLaunch<'_>) -> Result<Box<dyn Server>, DeployError>;

    /// What is worth knowing about one that is started like this.
    fn notes(&self, launch: &RouterLaunch<'_>) -> Vec<String> {
        let _ = launch;
        Vec::new()
    }

    fn readings(&self) -> &'static [Reading];

    /// The client for people, of a router that is reached there; none if it has none.
    fn client(&self, endpoint: &Endpoint) -> Option<Client> {
        let _ = endpoint;
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

#[derive(Clone, Copy)]
pub struct RouterLaunch<'a> {
    /// The values of its options by name; those that are missing have their defaults.
    pub options: &'a BTreeMap<String, String>,
    pub to: &'a Endpoint,
    /// Further servers that take the same load: the other nodes of a cluster.
    pub also: &'a [Endpoint],
    /// Where clients on other machines reach it, which then reaches its servers by addresses; none if all of them are on
    /// this machine and have sockets.
    pub open: Option<&'a Listening>,
    /// The most clients that will be connected.
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

    /// The value of an option, or its default.
    pub(crate) fn option<'s>(&'s self, spec: &'s RouterSpec, name: &str) -> &'s str {
        let default = || spec.options.iter().find(|option| option.name == name);
        let given = self.options.get(name).map(String::as_str);
        given.or_else(|| default().map(|option| option.default.as_ref())).unwrap_or_default()
    }
}
