//! Connections that are known to be a probe's: what they cost the server is counted separately.

use std::sync::Arc;

use dyno_host::ThreadListing;
use dyno_workload::{Connection, Connector};

use super::number;

/// The same connector, with each of its connections marked in `threads` as a probe's, if there is
/// such a list. `sql` asks for the server's id of the connection; without an id, nothing is marked.
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
    let id = answer.into_iter().flatten().next()??;
    number(&id).map(|number| number as u64)
}
