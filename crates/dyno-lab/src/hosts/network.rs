//! Measures the network between a machine and a server, before any load.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};

use dyno_database::{Address, Endpoint};
use dyno_record::NetworkFacts;
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::Connection;

const ROUND_TRIPS: usize = 20;
const LIMIT: Nanoseconds = Nanoseconds::from_secs(2);
/// Bytes of an answer by which bandwidth is measured, and how many of them there are.
const ANSWER_BYTES: usize = 4 << 20;
const ANSWERS: usize = 3;

/// Only for TCP; none if the network could not be measured. Opening a connection is one round trip without work of the
/// server. Bandwidth is the best of a few answers of 4 MiB, including the server's time to make them.
pub(crate) fn measure(endpoint: &Endpoint, clock: &dyn Clock) -> Option<NetworkFacts> {
    let Address::Tcp { host, port } = &endpoint.address else { return None };
    let address = (host.as_str(), *port).to_socket_addrs().ok()?.next()?;
    let mut trips: Vec<f64> =
        (0..ROUND_TRIPS).map(|_| round_trip_us(&address, clock)).collect::<Option<_>>()?;
    trips.sort_by(f64::total_cmp);
    let connection = endpoint.protocol.connector(endpoint)();
    let bytes_per_s = connection.ok().and_then(|mut connection| {
        let all = (0..ANSWERS).map(|_| bytes_per_s(connection.as_mut(), clock));
        all.flatten().reduce(f64::max)
    });
    Some(NetworkFacts {
        round_trip_us: trips[trips.len() / 2],
        round_trip_least_us: trips[0],
        bytes_per_s,
    })
}

fn round_trip_us(address: &SocketAddr, clock: &dyn Clock) -> Option<f64> {
    let began = clock.now();
    let connected = TcpStream::connect_timeout(address, LIMIT.to_duration());
    let took = clock.now().saturating_sub(began);
    connected.ok().map(|_| took.as_micros_f64())
}

fn bytes_per_s(connection: &mut dyn Connection, clock: &dyn Clock) -> Option<f64> {
    connection.set_cold_limit(Nanoseconds::from_secs(30).0);
    let began = clock.now();
    let rows = connection.query(&format!("SELECT REPEAT('x', {ANSWER_BYTES})")).ok()?;
    let took = clock.now().saturating_sub(began).as_secs_f64();
    let is_whole = rows.first()?.first()?.as_ref().is_some_and(|text| text.len() == ANSWER_BYTES);
    (is_whole && took > 0.0).then(|| ANSWER_BYTES as f64 / took)
}
