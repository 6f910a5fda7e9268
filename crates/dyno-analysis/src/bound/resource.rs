//! What may limit a load, and from which share of its limit each counts as at it.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Of operations or bytes per second, as the study set it.
    VolumeLimit,
    DataDisk,
    HostCpus,
    /// Those of `server_cpus`, or what a quota leaves of all.
    ServerCpus,
    ServerThread,
    RouterThread,
    Generator,
    /// Its use is the share of the clients in transactions that wait for one.
    Locks,
    /// Its use is the share of the seconds in which a client waited for a connection.
    Pool,
    Network,
}

/// Of a limit that is a capacity.
const REACHED: f64 = 0.9;
const CLEAR: f64 = 0.7;

impl Resource {
    /// From this share of its limit on it is at it, whatever the others' use.
    pub fn reached(self) -> f64 {
        if self == Resource::Locks { 0.5 } else { REACHED }
    }

    /// Below this share it is clear of its limit; between both it is near, which decides nothing.
    pub fn clear(self) -> f64 {
        match self {
            Resource::Locks => 0.2,
            Resource::Pool => 0.5,
            _ => CLEAR,
        }
    }

    /// To follow "at".
    pub(super) fn limit(self) -> &'static str {
        match self {
            Resource::VolumeLimit => "the volume's limit",
            Resource::DataDisk => "the limit of the data disk",
            Resource::HostCpus => "the limit of the host's CPUs",
            Resource::ServerCpus => "the limit of the server's CPUs",
            Resource::ServerThread => "the limit of one thread of the server",
            Resource::RouterThread => "the limit of one thread of the router",
            Resource::Generator => "the limit of the load generator",
            Resource::Locks => "the limit that locks set",
            Resource::Pool => "the limit of the connection pool",
            Resource::Network => "the limit of the network",
        }
    }

    /// For a sentence and a row.
    pub fn name(self) -> &'static str {
        match self {
            Resource::VolumeLimit => "limit of the volume",
            Resource::DataDisk => "data disk",
            Resource::HostCpus => "CPUs of the host",
            Resource::ServerCpus => "CPUs of the server",
            Resource::ServerThread => "busiest thread of the server",
            Resource::RouterThread => "busiest thread of the router",
            Resource::Generator => "load generator",
            Resource::Locks => "clients that wait for locks",
            Resource::Pool => "seconds with a queue for the pool",
            Resource::Network => "network",
        }
    }
}
