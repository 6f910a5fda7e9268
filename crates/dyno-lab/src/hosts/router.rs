//! Routers on hosts: each is started by an agent there, and used from here by its address.
//!
//! What it says of itself, and whether it answers, its agent finds out: a router has no tables to be asked, and its
//! statistics are at a socket of its machine.

use std::sync::Arc;

use dyno_database::{Control, DeployError, Endpoint, Server, ServerFacts};
use dyno_workload::{Connector, Dialect};

use super::fault::HostedControl;
use super::server::ServerHosts;
use crate::agent::message::RouterUp;
use crate::trial::TrialError;

pub(super) struct HostedRouter {
    hosts: Arc<ServerHosts>,
    idx: usize,
    endpoint: Endpoint,
    dialect: Dialect,
    connector: Connector,
    about: RouterUp,
}

impl HostedRouter {
    /// One that is up there.
    ///
    /// # Errors
    ///
    /// It stands in front of servers that speak no SQL.
    pub(super) fn new(
        hosts: Arc<ServerHosts>,
        idx: usize,
        (endpoint, about): (Endpoint, RouterUp),
    ) -> Result<HostedRouter, TrialError> {
        let protocol = endpoint.protocol;
        let dialect = protocol.spec().dialect.ok_or_else(|| {
            TrialError::new("routers are only started in front of servers that speak SQL")
        })?;
        let connector = match about.supports_named_statements {
            true => protocol.connector(&endpoint),
            false => protocol.unnamed_connector(&endpoint),
        };
        Ok(HostedRouter { hosts, idx, endpoint, dialect, connector, about })
    }
}

impl Server for HostedRouter {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn connector(&self) -> Connector {
        Arc::clone(&self.connector)
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        Ok(ServerFacts {
            product: self.about.product.clone(),
            version: self.about.version.clone(),
            transport: "tcp",
            settings: self.about.settings.clone(),
            ..ServerFacts::default()
        })
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn control(&self) -> Option<Box<dyn Control>> {
        Some(Box::new(HostedControl::new(&self.hosts, self.idx)))
    }

    fn down(&mut self) -> Option<String> {
        self.hosts.down(self.idx, None)
    }

    fn log_tail(&self, lines: usize) -> Vec<String> {
        self.hosts.log_tail(self.idx, lines)
    }

    fn supports_named_statements(&self) -> bool {
        self.about.supports_named_statements
    }

    fn stores_data(&self) -> bool {
        false
    }

    fn check_alive(&self) -> Result<(), DeployError> {
        self.hosts.check(self.idx)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        self.hosts.stop(self.idx)
    }
}
