//! A running server that is only observed: it is neither claimed nor changed, and may come and go.

use dyno_host::{DataFiles, Probe, ThreadGroups, ThreadListing};
use dyno_workload::{Connector, Dialect};

use crate::{
    DebtMeter, DeployError, Endpoint, LocalServer, Server, ServerFacts, endpoint_debt_meter,
    endpoint_facts, endpoint_probes, thread_group,
};

struct ObservedServer {
    endpoint: Endpoint,
    /// The parts of it on this host.
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

    fn endpoint(&self) -> Option<Endpoint> {
        Some(self.endpoint.clone())
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        endpoint_facts(&self.endpoint)
    }

    fn processes(&self) -> Vec<i32> {
        Vec::new()
    }

    fn watched_processes(&self) -> Vec<i32> {
        self.local.iter().map(|local| local.pid).collect()
    }

    fn data_files(&self) -> Option<DataFiles> {
        self.local.as_ref()?.data.clone()
    }

    fn thread_groups(&self) -> Option<ThreadGroups> {
        Some(thread_group)
    }

    fn down(&mut self) -> Option<String> {
        None
    }

    fn log_tail(&self, _lines: usize) -> Vec<String> {
        Vec::new()
    }

    fn data_bytes(&self) -> Option<u64> {
        None
    }

    fn probes(&self, threads: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        endpoint_probes(&self.endpoint, threads)
    }

    fn debt_meter(&self) -> Result<Box<dyn DebtMeter>, String> {
        endpoint_debt_meter(&self.endpoint)
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        Ok(())
    }
}
