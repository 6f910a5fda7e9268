//! A running server that is only observed: it is neither claimed nor changed, and may come and go.

use dyno_workload::{Connector, Dialect};

use crate::{DeployError, Endpoint, LocalServer, Server, ServerFacts};

struct ObservedServer {
    endpoint: Endpoint,
    local: Option<LocalServer>,
}

/// A running server, for observation alone.
///
/// # Errors
///
/// It cannot be reached.
pub fn observe(endpoint: &Endpoint) -> Result<Box<dyn Server>, DeployError> {
    let mut connection = endpoint.protocol.connector(endpoint)()
        .map_err(|error| DeployError::new(error.to_string()))?;
    let local = LocalServer::find(endpoint, connection.as_mut());
    Ok(Box::new(ObservedServer { endpoint: endpoint.clone(), local }))
}

impl Server for ObservedServer {
    /// Without SQL it means nothing.
    fn dialect(&self) -> Dialect {
        self.endpoint.protocol.spec().dialect.unwrap_or(Dialect::ALL[0])
    }

    fn connector(&self) -> Connector {
        self.endpoint.protocol.connector(&self.endpoint)
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn local(&self) -> Option<&LocalServer> {
        self.local.as_ref()
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        self.endpoint.protocol.facts(&self.endpoint)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        Ok(())
    }
}
