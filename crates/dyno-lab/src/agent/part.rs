//! What a server on a host is for among the members of its deployment, as it travels to the agent there.
//!
//! The controller knows the members that are there already, and the agent the addresses of its own machine.

use std::net::SocketAddrV4;

use dyno_database::{
    Address, Cluster, DeployError, Endpoint, Follow, Listening, Node, NodePorts, Part, Replication,
    Secret,
};
use serde::{Deserialize, Serialize};

use super::message::Password;

/// [`Part`] as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartOrder {
    Alone,
    Primary(ReplicationOrder),
    Replica {
        /// Its number, from 1.
        number: u32,
        /// The primary, without the password of its clients, which all members have.
        primary: String,
        replication: ReplicationOrder,
    },
    Node(NodeOrder),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplicationOrder {
    replicas: u32,
    mode: String,
    password: Password,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeOrder {
    number: u32,
    nodes: u32,
    name: Password,
    password: Password,
    writes_on_all: bool,
    /// Where the nodes that run are reached by others, in the order of their numbers.
    before: Vec<SocketAddrV4>,
    joins_at: Option<String>,
}

impl From<&Replication> for ReplicationOrder {
    fn from(replication: &Replication) -> ReplicationOrder {
        ReplicationOrder {
            replicas: replication.replicas,
            mode: replication.mode.to_string(),
            password: Password(replication.password.reveal().to_owned()),
        }
    }
}

impl ReplicationOrder {
    fn replication(&self, address: SocketAddrV4) -> Result<Replication, DeployError> {
        Ok(Replication {
            replicas: self.replicas,
            mode: self.mode.parse().map_err(DeployError::new)?,
            address,
            password: Secret::new(self.password.0.clone()),
        })
    }
}

impl PartOrder {
    /// The order for a server with this part; `before` is where the nodes of its cluster that run are reached.
    ///
    /// # Errors
    ///
    /// Such a server is not started on hosts.
    pub(crate) fn of(part: &Part, before: Vec<SocketAddrV4>) -> Result<PartOrder, DeployError> {
        Ok(match part {
            Part::Alone => PartOrder::Alone,
            Part::Primary(replication) => PartOrder::Primary(replication.into()),
            Part::Replica(follow) => PartOrder::Replica {
                number: follow.number,
                primary: follow.primary.to_string(),
                replication: (&follow.replication).into(),
            },
            Part::Node(Node { number, cluster, joins_at }) => PartOrder::Node(NodeOrder {
                number: *number,
                nodes: cluster.nodes,
                name: Password(cluster.name.reveal().to_owned()),
                password: Password(cluster.password.reveal().to_owned()),
                writes_on_all: cluster.writes_on_all,
                before,
                joins_at: joins_at.clone(),
            }),
            Part::Router => {
                return Err(DeployError::new("a router of shards is not started on another host"));
            }
        })
    }

    /// The part of a server that clients reach there; nodes of its cluster reach it there as well if they share the port.
    ///
    /// # Errors
    ///
    /// The order is not one of a controller's, or there are no free ports.
    pub(crate) fn part(
        &self,
        listening: &Listening,
        shares_port: bool,
    ) -> Result<Part, DeployError> {
        Ok(match self {
            PartOrder::Alone => Part::Alone,
            PartOrder::Primary(order) => Part::Primary(order.replication(listening.address)?),
            PartOrder::Replica { number, primary, replication } => {
                let endpoint = Endpoint::from_url(primary)?;
                let primary = Endpoint { password: Some(listening.password.clone()), ..endpoint };
                let replication = replication.replication(address_of(&primary)?)?;
                Part::Replica(Follow { number: *number, primary, replication })
            }
            PartOrder::Node(order) => Part::Node(order.node(listening, shares_port)?),
        })
    }
}

impl NodeOrder {
    fn node(&self, listening: &Listening, shares_port: bool) -> Result<Node, DeployError> {
        if self.before.len() + 1 != self.number as usize {
            let (number, n) = (self.number, self.before.len());
            return Err(DeployError::new(format!(
                "node {number} of a cluster cannot join {n} nodes"
            )));
        }
        let own = NodePorts::at(*listening.address.ip()).map_err(|error| {
            DeployError::new(format!("there are no free ports for a node of a cluster: {error}"))
        })?;
        let own = match shares_port {
            true => NodePorts { group: listening.address.port(), ..own },
            false => own,
        };
        // Where others receive what they have missed is of no interest to this one.
        let before = self.before.iter();
        let before =
            before.map(|one| NodePorts { address: *one.ip(), group: one.port(), transfer: 0 });
        let cluster = Cluster {
            name: Secret::new(self.name.0.clone()),
            password: Secret::new(self.password.0.clone()),
            nodes: self.nodes,
            ports: before.chain([own]).collect(),
            writes_on_all: self.writes_on_all,
        };
        Ok(Node { number: self.number, cluster, joins_at: self.joins_at.clone() })
    }
}

fn address_of(primary: &Endpoint) -> Result<SocketAddrV4, DeployError> {
    let none = || DeployError::new(format!("no other host can reach the primary at {primary}"));
    let Address::Tcp { host, port } = &primary.address else { return Err(none()) };
    host.parse().map(|ip| SocketAddrV4::new(ip, *port)).map_err(|_| none())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use dyno_database::ReplicationMode;

    use super::*;

    fn listening() -> Listening {
        Listening {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7),
            password: Secret::new("hush"),
        }
    }

    /// The part that arrives.
    fn travelled(part: &Part, before: &[&str]) -> Result<Part, String> {
        let before = before.iter().map(|one| one.parse().expect("it is an address")).collect();
        let order = PartOrder::of(part, before).expect("it can travel");
        assert!(!format!("{order:?}").contains("hush"), "{order:?}");
        let text = serde_json::to_string(&order).expect("it is text");
        let order: PartOrder = serde_json::from_str(&text).expect("it is an order");
        order.part(&listening(), false).map_err(|error| error.message)
    }

    #[test]
    fn a_replica_is_told_where_its_primary_listens_and_its_password() {
        let replication = Replication {
            replicas: 2,
            mode: ReplicationMode::Synchronous,
            address: "127.0.0.1:1".parse().expect("it is an address"),
            password: Secret::new("hush too"),
        };
        let primary = travelled(&Part::Primary(replication.clone()), &[]).expect("it arrives");
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
        let arrived = travelled(&follow("127.0.0.1:1", &endpoint), &[]);
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
        let Ok(Part::Node(third)) = travelled(&Part::Node(node(3)), &["10.0.0.1:4", "10.0.0.2:5"])
        else {
            panic!("it is a node");
        };
        assert_eq!((third.number, third.cluster.nodes), (3, 3));
        assert_eq!(third.joins_at.as_deref(), Some("u:7"));
        assert_eq!(third.cluster.name, cluster.name);
        let groups: Vec<String> =
            third.cluster.ports.iter().map(|one| one.of_group().to_string()).collect();
        assert_eq!(groups[..2], ["10.0.0.1:4", "10.0.0.2:5"]);
        assert!(groups[2].starts_with("127.0.0.1:") && third.ports().group > 0, "{groups:?}");
        let order = PartOrder::of(&Part::Node(node(1)), Vec::new()).expect("it can travel");
        let Ok(Part::Node(first)) = order.part(&listening(), true) else { panic!("it is a node") };
        assert_eq!(first.ports().of_group(), listening().address);
        let refused = travelled(&Part::Node(node(3)), &["10.0.0.1:4"]).expect_err("one is missing");
        assert!(refused.contains("cannot join 1 nodes"), "{refused}");
    }
}
