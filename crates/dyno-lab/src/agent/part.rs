//! The part of a server on a host in its deployment, as a message to its agent. The controller knows the
//! members that are up, the agent its machine's addresses.

use std::net::SocketAddrV4;

use dyno_database::{
    Address, DeployError, Endpoint, Follow, Listening, Node, NodePorts, Part, Replication,
};
use serde::{Deserialize, Serialize};

use super::message::ServerUrl;
use crate::error::Context;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Followed {
    number: u32,
    primary: ServerUrl,
    replication: Replication,
}

/// Takes what a replica follows out of its part, and tells a node where those of its cluster that run are reached by
/// others, in the order of their numbers.
pub(crate) fn leave(part: &mut Part, nodes: &[SocketAddrV4]) -> Option<Followed> {
    if let Part::Node(node) = part {
        // Where others receive what they have missed is of no interest to this one.
        let ports =
            |one: &SocketAddrV4| NodePorts { address: *one.ip(), group: one.port(), transfer: 0 };
        node.cluster.ports = nodes.iter().map(ports).collect();
    }
    let Part::Replica(Follow { number, primary, replication }) = part else { return None };
    let (number, primary) = (*number, ServerUrl::from(&*primary));
    let followed = Followed { number, primary, replication: replication.clone() };
    *part = Part::Alone;
    Some(followed)
}

/// The part of a server that clients reach here; nodes of its cluster reach it there as well if they share the port.
pub(super) fn arrive(
    (part, followed): (Part, Option<Followed>),
    listening: &Listening,
    shares_port: bool,
) -> Result<Part, DeployError> {
    if let Some(Followed { number, primary, replication }) = followed {
        let primary = primary.endpoint()?;
        let replication = Replication { address: address_of(&primary)?, ..replication };
        return Ok(Part::Replica(Follow { number, primary, replication }));
    }
    match part {
        Part::Primary(replication) => {
            Ok(Part::Primary(Replication { address: listening.address, ..replication }))
        }
        Part::Node(node) => with_own_ports(node, listening, shares_port).map(Part::Node),
        Part::Router => Err(DeployError::new("a router of shards is not started on another host")),
        part => Ok(part),
    }
}

fn with_own_ports(
    mut node: Node,
    listening: &Listening,
    shares_port: bool,
) -> Result<Node, DeployError> {
    let (number, n) = (node.number, node.cluster.ports.len());
    if n + 1 != number as usize {
        return Err(DeployError::new(format!("node {number} of a cluster cannot join {n} nodes")));
    }
    let own = NodePorts::at(*listening.address.ip());
    let own = own.context("there are no free ports for a node of a cluster")?;
    let group = if shares_port { listening.address.port() } else { own.group };
    node.cluster.ports.push(NodePorts { group, ..own });
    Ok(node)
}

fn address_of(primary: &Endpoint) -> Result<SocketAddrV4, DeployError> {
    let none = || DeployError::new(format!("no other host can reach the primary at {primary}"));
    let Address::Tcp { host, port } = &primary.address else { return Err(none()) };
    host.parse().map(|ip| SocketAddrV4::new(ip, *port)).map_err(|_| none())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use dyno_database::{Cluster, ReplicationMode, Secret};

    use super::*;

    fn listening() -> Listening {
        Listening {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7),
            password: Secret::new("hush"),
        }
    }

    /// The part that arrives.
    fn travelled(part: &Part, before: &[&str], shares_port: bool) -> Result<Part, String> {
        let before = before.iter().map(|one| one.parse().expect("it is an address"));
        let mut part = part.clone();
        let followed = leave(&mut part, &before.collect::<Vec<_>>());
        let order = (part, followed);
        assert!(!format!("{order:?}").contains("hush"), "{order:?}");
        let text = serde_json::to_string(&order).expect("it is text");
        let order = serde_json::from_str(&text).expect("it is an order");
        arrive(order, &listening(), shares_port).map_err(|error| error.message)
    }

    #[test]
    fn a_replica_is_told_where_its_primary_listens_and_its_password() {
        let replication = Replication {
            replicas: 2,
            mode: ReplicationMode::Synchronous,
            address: "127.0.0.1:1".parse().expect("it is an address"),
            password: Secret::new("hush too"),
        };
        let primary =
            travelled(&Part::Primary(replication.clone()), &[], false).expect("it arrives");
        let there = Replication { address: listening().address, ..replication.clone() };
        assert_eq!(primary, Part::Primary(there));
        let endpoint = Endpoint::from_url("mysql://me:hush@10.0.0.9:3307/x").expect("a URL");
        let follow = |address: &str, endpoint: &Endpoint| {
            Part::Replica(Follow {
                number: 2,
                primary: endpoint.clone(),
                replication: Replication {
                    address: address.parse().expect("it is an address"),
                    ..replication.clone()
                },
            })
        };
        let arrived = travelled(&follow("127.0.0.1:1", &endpoint), &[], false);
        assert_eq!(arrived, Ok(follow("10.0.0.9:3307", &endpoint)));
    }

    #[test]
    fn a_node_is_told_of_those_before_it_and_finds_its_own_ports() {
        let cluster = Cluster::new(3, false).expect("it is made");
        let node = |number| Node {
            number,
            cluster: cluster.clone(),
            joins_at: (number > 1).then(|| "u:7".to_owned()),
        };
        let third = Part::Node(node(3));
        let Ok(Part::Node(third)) = travelled(&third, &["10.0.0.1:4", "10.0.0.2:5"], false) else {
            panic!("it is a node");
        };
        assert_eq!((third.number, third.cluster.nodes), (3, 3));
        assert_eq!(third.joins_at.as_deref(), Some("u:7"));
        assert_eq!(third.cluster.name, cluster.name);
        let groups: Vec<String> =
            third.cluster.ports.iter().map(|one| one.of_group().to_string()).collect();
        assert_eq!(groups[..2], ["10.0.0.1:4", "10.0.0.2:5"]);
        assert!(groups[2].starts_with("127.0.0.1:") && third.ports().group > 0, "{groups:?}");
        let Ok(Part::Node(first)) = travelled(&Part::Node(node(1)), &[], true) else {
            panic!("it is a node");
        };
        assert_eq!(first.ports().of_group(), listening().address);
        let refused = travelled(&Part::Node(node(3)), &["10.0.0.1:4"], false);
        let refused = refused.expect_err("one is missing");
        assert!(refused.contains("cannot join 1 nodes"), "{refused}");
    }
}
