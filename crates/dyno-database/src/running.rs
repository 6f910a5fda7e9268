//! A server that Dyno started, of any product. What is done with all of them is here; what only a product knows, it
//! gives as a value.

use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;

use dyno_host::{DataFiles, Probe, ThreadListing};
use dyno_workload::Connector;

use crate::error::{Result, fail};
use crate::private::{OwnServer, ServerControl};
use crate::server::{NOT_MOVED, ping};
use crate::{Control, DeployError, Endpoint, Node, Reach, Secret, Server, ServerFacts};

/// Something that a product does with a server of its own.
pub(crate) type Hook<T> = Box<dyn Fn(&Running) -> T + Send>;

pub(crate) struct Running {
    pub(crate) own: OwnServer,
    pub(crate) endpoint: Endpoint,
    pub(crate) connector: Connector,
    pub(crate) facts: Hook<Result<ServerFacts>>,
    pub(crate) check_alive: Hook<Result<()>>,
    /// Probes besides those of its protocol.
    pub(crate) probes: Hook<Vec<Box<dyn Probe>>>,
    pub(crate) control: Hook<ServerControl>,
    /// What it is in its cluster, if it is in one.
    pub(crate) node: Option<Node>,
    pub(crate) client_port: Option<u16>,
    /// Environment variables that the product's own clients read, for a server at this socket.
    pub(crate) client_variables: fn(&Endpoint, &Path) -> Vec<(&'static str, String)>,
    pub(crate) supports_named_statements: bool,
    pub(crate) stores_data: bool,
    pub(crate) can_keep_data: bool,
    /// Removes from data that are kept what the next server makes anew.
    pub(crate) tidy: fn(&Path) -> Result<()>,
}

impl Running {
    /// A server that stores data, of which its protocol knows everything.
    pub(crate) fn new(own: OwnServer, endpoint: Endpoint) -> Running {
        Running {
            own,
            connector: endpoint.protocol.connector(&endpoint),
            endpoint,
            facts: Box::new(|one| one.endpoint.protocol.facts(&one.endpoint)),
            check_alive: Box::new(|one| ping(&one.connector, Some(&one.endpoint))),
            probes: Box::new(|_| Vec::new()),
            control: Box::new(|one| one.own.control.clone()),
            node: None,
            client_port: None,
            // MySQL's clients read MYSQL_UNIX_PORT, but option files have the last word.
            client_variables: |_, _| Vec::new(),
            supports_named_statements: true,
            stores_data: true,
            can_keep_data: true,
            tidy: |_| Ok(()),
        }
    }

    /// A server that stores nothing: it may end as it likes.
    pub(crate) fn router(own: OwnServer, endpoint: Endpoint) -> Running {
        Running {
            control: Box::new(|one| ServerControl { ends_anyhow: true, ..one.own.control.clone() }),
            stores_data: false,
            can_keep_data: false,
            ..Running::new(own, endpoint)
        }
    }
}

/// A text without the server's password: some programs write down what they are configured with.
fn without_password(text: &str, password: Option<&Secret>) -> String {
    match password {
        Some(password) if !password.reveal().is_empty() => text.replace(password.reveal(), "***"),
        _ => text.to_owned(),
    }
}

pub(crate) fn concealed(error: DeployError, password: Option<&Secret>) -> DeployError {
    let hide = |text: &String| without_password(text, password);
    DeployError { message: hide(&error.message), log: error.log.iter().map(hide).collect() }
}

impl Server for Running {
    fn connector(&self) -> Connector {
        Arc::clone(&self.connector)
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn facts(&self) -> Result<ServerFacts> {
        (self.facts)(self)
    }

    fn processes(&self) -> Vec<i32> {
        vec![self.own.control.pid()]
    }

    fn down(&mut self) -> Option<String> {
        self.own.control.down()
    }

    fn data_bytes(&self) -> Option<u64> {
        self.stores_data.then(|| dyno_host::folder_bytes(&self.own.folder.data()).ok()).flatten()
    }

    fn data_files(&self) -> Option<DataFiles> {
        let (root, kind) = (self.own.folder.data(), self.endpoint.protocol.file_kind);
        self.stores_data.then_some(DataFiles { root, kind })
    }

    fn reach(&self) -> Option<Reach> {
        Some(Reach { endpoint: self.endpoint.clone(), log: self.own.folder.log() })
    }

    fn log_tail(&self, lines: usize) -> Vec<String> {
        let lines = self.own.folder.log_tail(lines);
        let password = self.endpoint.password.as_ref();
        lines.into_iter().map(|line| without_password(&line, password)).collect()
    }

    fn client_environment(&self) -> Vec<(String, String)> {
        if !self.stores_data {
            return Vec::new();
        }
        self.endpoint.client_environment(|socket| (self.client_variables)(&self.endpoint, socket))
    }

    fn client_port(&self) -> Option<u16> {
        self.client_port
    }

    fn meet(&mut self, nodes: &[SocketAddrV4]) {
        if let Some(node) = &mut self.node {
            node.meet(nodes);
        }
    }

    fn control(&self) -> Option<Box<dyn Control>> {
        Some(Box::new((self.control)(self)))
    }

    fn supports_named_statements(&self) -> bool {
        self.supports_named_statements
    }

    fn stores_data(&self) -> bool {
        self.stores_data
    }

    fn probes(&self, threads: Option<&ThreadListing>) -> Vec<Box<dyn Probe>> {
        let protocol = self.endpoint.protocol;
        let mut all = match self.stores_data {
            true => (protocol.probes)(self.connector(), &self.endpoint, threads),
            false => Vec::new(),
        };
        all.extend((self.probes)(self));
        all
    }

    fn check_alive(&self) -> Result<()> {
        (self.check_alive)(self)
    }

    fn stop(self: Box<Self>) -> Result<()> {
        let Running { own, endpoint, stores_data, .. } = *self;
        let stopped = if stores_data { own.stop() } else { own.discard() };
        stopped.map_err(|error| concealed(error, endpoint.password.as_ref()))
    }

    fn can_keep_data(&self) -> bool {
        self.can_keep_data
    }

    fn stop_and_keep_data(self: Box<Self>, to: &Path) -> Result<()> {
        match self.can_keep_data {
            true => {
                let Running { own, endpoint, tidy, .. } = *self;
                let kept = own.stop_and_keep_data(to, tidy);
                kept.map_err(|error| concealed(error, endpoint.password.as_ref()))
            }
            false => fail(NOT_MOVED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_a_server_writes_down_is_not_shown() {
        let said = || DeployError {
            message: "it wrote: P=s3cret".to_owned(),
            log: vec!["U=dyno P=s3cret".to_owned()],
        };
        assert_eq!(concealed(said(), None).log, said().log);
        let secret = Secret::new("s3cret".to_owned());
        let error = concealed(said(), Some(&secret));
        assert_eq!(
            (error.message.as_str(), error.log[0].as_str()),
            ("it wrote: P=***", "U=dyno P=***")
        );
    }
}
