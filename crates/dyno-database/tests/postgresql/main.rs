//! Dyno's PostgreSQL against a real server, started by Dyno itself, and against the `postgres`
//! crate as a reference.
//!
//! Needs PostgreSQL's programs on the machine (Debian: package `postgresql`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod deploy;
mod login;
mod others;
mod pipelines;
mod reference;
mod server;
mod statements;
mod texts;

use std::task::Poll;

use dyno_database::postgresql::{PgConnection, connect};
use dyno_workload::{Connection, Reply, Statement, StatementClass, StatementError, Value};
use rustix::event::{PollFd, PollFlags, poll};
use server::TestServer;

/// Polls until the reply is there, as a worker would.
fn finish(connection: &mut dyn Connection) -> Result<Reply, StatementError> {
    loop {
        if let Poll::Ready(result) = connection.poll_reply() {
            return result;
        }
        let mut flags = PollFlags::IN;
        if connection.wants_write() {
            flags |= PollFlags::OUT;
        }
        let descriptor = connection.descriptor().unwrap();
        poll(&mut [PollFd::from_borrowed_fd(descriptor, flags)], None).unwrap();
    }
}

fn execute(
    connection: &mut dyn Connection,
    statement: usize,
    values: &[Value<'_>],
) -> Result<Reply, StatementError> {
    connection.send_execute(statement, values);
    finish(connection)
}

fn text(connection: &mut dyn Connection, sql: &str) -> Result<Reply, StatementError> {
    connection.send_text(sql);
    finish(connection)
}

fn statement(sql: &str) -> Statement {
    Statement::new(sql, StatementClass::Read)
}

fn open(server: &TestServer) -> PgConnection {
    connect(&server.endpoint).unwrap()
}

fn rows(rows: u64) -> Reply {
    Reply { rows, ..Reply::default() }
}

fn affected(affected: u64) -> Reply {
    Reply { affected, ..Reply::default() }
}
