//! Connections that are known to be a probe's: what they cost the server is told apart.

use std::sync::Arc;

use dyno_host::ThreadListing;
use dyno_workload::{Connection, Connector};

use super::number;

/// The same connector, each of whose connections is put down in `threads` as a probe's, if there is
/// such a list. `sql` asks for the server's number of the connection; where it is not told, nothing
/// is put down.
pub(crate) fn marked(
    connector: &Connector,
    sql: &'static str,
    threads: Option<&ThreadListing>,
) -> Connector {
    let connector = Arc::clone(connector);
    let Some(threads) = threads.cloned() else { return connector };
    Arc::new(move || {
        let mut connection = connector()?;
        if let Some(number) = own_number(connection.as_mut(), sql) {
            threads.add_probe(number);
        }
        Ok(connection)
    })
}

fn own_number(connection: &mut dyn Connection, sql: &str) -> Option<u64> {
    let answer = connection.query(sql).ok()?;
    let told = answer.into_iter().flatten().next()??;
    number(&told).map(|number| number as u64)
}
