//! Clusters: servers that can all take writes, and what they know of each other.
//!
//! Clients on the same machine use the nodes' sockets. Nodes reach each other by ports of the loopback or of their
//! machines' addresses. To join, a server must know the cluster's name (128 random bits, made for it and kept like
//! a password), or log in with a password made for the cluster.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{ConnectError, Connector};

use crate::error::{Context, Result};
use crate::{Endpoint, Secret};

pub const NODES_MIN: u32 = 2;

pub const NODES_MAX: u32 = 8;

const POLL: Nanoseconds = Nanoseconds::from_millis(20);

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cluster {
    /// Its name, which servers need to join.
    pub name: Secret,
    /// The password with which its nodes log in to each other, where the product has one.
    pub password: Secret,
    pub nodes: u32,
    /// By node number. On several machines, only its own and those of earlier nodes.
    pub ports: Vec<NodePorts>,
    /// Whether all nodes take writes, where the product leaves the choice.
    pub writes_on_all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NodePorts {
    pub address: Ipv4Addr,
    /// Where the nodes exchange what they commit.
    pub group: u16,
    /// Where it receives what it has missed.
    pub transfer: u16,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Node {
    /// Its number, from 1; the first makes the cluster, and the others join it in order.
    pub number: u32,
    pub cluster: Cluster,
    /// What the cluster has committed ([`Clustering::position`]), if the node starts on a copy of that; otherwise
    /// it gets the data from another node.
    pub joins_at: Option<String>,
}

impl NodePorts {
    /// Fails if this machine lacks the address, or has no free ports of it.
    pub fn at(address: Ipv4Addr) -> std::io::Result<NodePorts> {
        let free = dyno_host::free_ports(address, 2)?;
        Ok(NodePorts { address, group: free[0], transfer: free[1] })
    }

    pub fn of_group(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.address, self.group)
    }
}

impl Cluster {
    /// With a new name and ports. Fails if the system gives no random bytes or ports.
    pub fn new(nodes: u32, writes_on_all: bool) -> Result<Cluster> {
        let name = dyno_host::random_token().context("there is no name for the cluster")?;
        let password = dyno_host::random_token().context("there is no password for the cluster")?;
        let free = dyno_host::free_loopback_ports(2 * nodes as usize);
        let free = free.context("there is no port for the cluster")?;
        let address = Ipv4Addr::LOCALHOST;
        let of_node = |pair: &[u16]| NodePorts { address, group: pair[0], transfer: pair[1] };
        let ports = free.chunks_exact(2).map(of_node).collect();
        let (name, password) = (Secret::new(name), Secret::new(password));
        Ok(Cluster { name, password, nodes, ports, writes_on_all })
    }
}

impl Node {
    pub fn name(&self) -> String {
        node_name(self.number)
    }

    /// Takes note of where all nodes are reached by others, in the order of their numbers.
    pub(crate) fn meet(&mut self, nodes: &[SocketAddrV4]) {
        let own = self.ports();
        // Where others receive what they have missed is of no interest to this one.
        let port = |node: &SocketAddrV4| NodePorts {
            address: *node.ip(),
            group: node.port(),
            transfer: 0,
        };
        let mut ports: Vec<NodePorts> = nodes.iter().map(port).collect();
        if let Some(place) = ports.get_mut(self.number as usize - 1) {
            *place = own;
            self.cluster.ports = ports;
        }
    }

    pub fn ports(&self) -> NodePorts {
        self.cluster.ports[self.number as usize - 1]
    }
}

/// The name of a node among the members: `node-1`.
pub fn node_name(number: u32) -> String {
    format!("node-{number}")
}

/// How servers of a product form a cluster.
pub trait Clustering: Sync {
    /// The name of this kind of cluster in studies: `galera`.
    fn kind(&self) -> &'static str;

    /// Otherwise it gets the data from another node.
    fn starts_on_copies(&self) -> bool {
        false
    }

    /// Whether nodes reach each other at the port at which clients reach them, where that is one of a network.
    fn shares_port(&self) -> bool {
        false
    }

    /// Returns 1 on a node that takes writes, for clusters where only one does unless told otherwise
    /// ([`Cluster::writes_on_all`]); none if all do.
    fn takes_writes(&self) -> Option<&'static str> {
        None
    }

    /// Needed by a node that starts on a copy of this node's data; none if the product does not join nodes so. Fails
    /// if the node does not answer.
    fn position(&self, _node: &Endpoint) -> Result<Option<String>> {
        Ok(None)
    }

    /// Fails if the node does not answer.
    fn state(&self, node: &Endpoint) -> Result<NodeState>;

    /// Asks a node that is not among the others to join them again, where it does not do so by itself for minutes.
    fn ask_to_join(&self, _node: &Endpoint) {}

    fn probe(&self, name: &str, node: &Endpoint) -> Box<dyn dyno_host::Probe>;

    /// Lists the tables of the catalog of a connection, as a statement names them.
    fn tables(&self) -> &'static str;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    /// Whether it has what the others have, and takes statements.
    pub is_synced: bool,
    /// How many nodes it sees, itself included.
    pub size: u32,
    /// The number of the last transaction that it has committed.
    pub committed: u64,
    /// Its state, in the product's words.
    pub words: String,
}

/// Connects to whichever node takes writes; `question` is from [`Clustering::takes_writes`].
pub fn to_writer(nodes: Vec<Connector>, question: &'static str) -> Connector {
    let last = AtomicUsize::new(0);
    Arc::new(move || {
        let found = last.load(Ordering::Relaxed);
        let mut failed = None;
        for idx in (0..nodes.len()).map(|step| (found + step) % nodes.len()) {
            match nodes[idx]() {
                Ok(mut connection) => {
                    let answer = connection.query(question);
                    if answer.is_ok_and(|rows| rows == [[Some("1".to_owned())]]) {
                        last.store(idx, Ordering::Relaxed);
                        return Ok(connection);
                    }
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| ConnectError {
            address: "the cluster".to_owned(),
            reason: "no node takes writes at present".to_owned(),
            details: None,
        }))
    })
}

/// Waits, while nothing writes, until all nodes are synced, see each other, and have committed the same.
/// Fails, with the nodes' states, after `limit`.
pub fn wait_until_synced(
    clustering: &dyn Clustering,
    nodes: &[(String, Endpoint)],
    limit: Nanoseconds,
    clock: &dyn Clock,
) -> Result<(), String> {
    let until = clock.now() + limit;
    loop {
        let states: Vec<Result<NodeState>> =
            nodes.iter().map(|(_, endpoint)| clustering.state(endpoint)).collect();
        if are_synced(&states) {
            return Ok(());
        }
        if clock.now() >= until {
            let said = nodes.iter().zip(&states).map(|((name, _), state)| match state {
                Ok(NodeState { size, committed, words, .. }) => {
                    format!("{name}: {words}, {size} nodes, transaction {committed}")
                }
                Err(error) => format!("{name}: {}", error.message),
            });
            return Err(said.collect::<Vec<_>>().join("; "));
        }
        for ((_, node), state) in nodes.iter().zip(&states) {
            if state.as_ref().is_ok_and(|state| !state.is_synced) {
                clustering.ask_to_join(node);
            }
        }
        clock.sleep_until(clock.now() + POLL);
    }
}

fn are_synced(states: &[Result<NodeState>]) -> bool {
    let Some(Ok(first)) = states.first() else { return false };
    states.iter().all(|state| {
        state.as_ref().is_ok_and(|one| {
            one.is_synced && one.size as usize == states.len() && one.committed == first.committed
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeployError;

    #[test]
    fn nodes_are_synced_only_if_all_have_committed_the_same() {
        let node = |is_synced, size, committed| {
            Ok(NodeState { is_synced, size, committed, words: String::new() })
        };
        let check = |states: &[Result<NodeState, DeployError>], expected: bool| {
            assert_eq!(are_synced(states), expected, "{states:?}");
        };
        check(&[node(true, 2, 7), node(true, 2, 7)], true);
        check(&[node(true, 2, 7), node(true, 2, 8)], false);
        check(&[node(true, 2, 7), node(false, 2, 7)], false);
        check(&[node(true, 1, 7), node(true, 1, 7)], false);
        check(&[node(true, 2, 7), Err(DeployError::new("gone"))], false);
        check(&[], false);
    }

    #[test]
    fn the_name_of_a_cluster_is_not_shown() {
        let cluster = Cluster::new(3, false).expect("it is made");
        assert_eq!(cluster.name.reveal().len(), 32);
        for hidden in [&cluster.name, &cluster.password] {
            assert!(!format!("{cluster:?}").contains(hidden.reveal()));
        }
        let mut ports: Vec<u16> =
            cluster.ports.iter().flat_map(|one| [one.group, one.transfer]).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 6);
    }
}
