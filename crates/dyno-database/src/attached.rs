//! A running server that Dyno did not start, of any protocol: it is used, or only observed.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use dyno_units::locked;
use dyno_workload::Connector;

use crate::error::Result;
use crate::{AttachOptions, Endpoint, LocalServer, Server, ServerFacts};

/// What a protocol holds of a server that Dyno did not start.
pub(crate) trait Hold: Send {
    /// Why it is down, or none while it runs or that cannot be seen.
    fn down(&mut self, _endpoint: &Endpoint) -> Option<String> {
        None
    }

    /// Bytes of the catalog, as the server reports them.
    fn data_bytes(&mut self, _endpoint: &Endpoint) -> Option<u64> {
        None
    }

    /// Drops what Dyno made in it.
    fn remove(self: Box<Self>, endpoint: &Endpoint) -> Result<()>;
}

/// Replaces a lost connection; returns why the server is down if none can be opened.
pub(crate) fn replaced<C>(
    guard: &mut C,
    reason: impl fmt::Display,
    opened: Result<C, impl fmt::Display>,
) -> Option<String> {
    match opened {
        Ok(connection) => {
            *guard = connection;
            None
        }
        Err(error) => Some(format!("{reason}; {error}")),
    }
}

/// The message of an error after which a catalog stays that Dyno made.
pub(crate) fn stays(endpoint: &Endpoint, why: impl fmt::Display) -> String {
    format!("{why}; the database `{}`, which Dyno created, stays", endpoint.catalog)
}

impl Hold for () {
    fn remove(self: Box<Self>, _: &Endpoint) -> Result<()> {
        Ok(())
    }
}

pub(crate) struct Attached {
    pub(crate) endpoint: Endpoint,
    pub(crate) connector: Connector,
    /// The parts of it on this host, to be observed.
    pub(crate) local: Option<LocalServer>,
    pub(crate) keeps_tables: bool,
    pub(crate) hold: Mutex<Box<dyn Hold>>,
}

impl Attached {
    pub(crate) fn new(
        endpoint: &Endpoint,
        options: AttachOptions,
        local: Option<LocalServer>,
        hold: impl Hold + 'static,
    ) -> Attached {
        Attached {
            endpoint: endpoint.clone(),
            connector: endpoint.protocol.connector(endpoint),
            local,
            keeps_tables: options.keep_tables || options.makes_nothing,
            hold: Mutex::new(Box::new(hold)),
        }
    }
}

/// A running server, for observation alone: it is neither claimed nor changed, and may come and go.
/// Fails if it cannot be reached.
pub fn observe(endpoint: &Endpoint) -> Result<Box<dyn Server>> {
    let mut connection = endpoint.protocol.connector(endpoint)()?;
    let local = LocalServer::find(endpoint, connection.as_mut());
    Ok(Box::new(Attached::new(endpoint, AttachOptions::default(), local, ())))
}

impl Server for Attached {
    fn connector(&self) -> Connector {
        Arc::clone(&self.connector)
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn local(&self) -> Option<&LocalServer> {
        self.local.as_ref()
    }

    fn facts(&self) -> Result<ServerFacts> {
        self.endpoint.protocol.facts(&self.endpoint)
    }

    fn down(&mut self) -> Option<String> {
        locked(&self.hold).down(&self.endpoint)
    }

    fn data_bytes(&self) -> Option<u64> {
        locked(&self.hold).data_bytes(&self.endpoint)
    }

    fn stop(self: Box<Self>) -> Result<()> {
        let Attached { endpoint, hold, keeps_tables, .. } = *self;
        match keeps_tables {
            true => Ok(()),
            false => hold.into_inner().unwrap_or_else(PoisonError::into_inner).remove(&endpoint),
        }
    }
}
