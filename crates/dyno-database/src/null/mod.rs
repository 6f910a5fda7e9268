//! Servers that reply at once and store nothing, to measure the load generator alone.
//!
//! A null server is a thread of Dyno's process that speaks the minimum of a protocol: it accepts
//! any login and decides by a statement's first word. A SELECT has one row with one text column, as
//! long as sysbench's `c`; an INSERT has inserted its rows; COPY and LOAD DATA LOCAL take and count
//! rows. It shows Dyno's own limits (`dyno calibrate`). With a [`Script`] of delays and stalls the
//! true result is known: a stall of one second must be measured as one. It shares the machine: on
//! few CPUs the speed is that of generator and server together, but CPU time per statement is the
//! generator's own.

mod event_loop;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod mysql;
mod postgresql;
mod product;
mod sql;
#[cfg(test)]
mod tests;
mod wire;

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use dyno_units::{Clock, Nanoseconds};
use dyno_workload::Connector;
use rustix::event::{EventfdFlags, eventfd};

use crate::{Address, Endpoint};
use event_loop::EventLoop;
pub(crate) use product::FAMILY;
use wire::Taken;
pub use wire::Wire;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On a Unix socket in this folder, which is there.
    Folder(PathBuf),
    /// On a free TCP port of 127.0.0.1.
    Loopback,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// From a statement's arrival to its answer. Clients do not wait for each other; a client's
    /// statements that arrive together are answered together.
    pub delay: Nanoseconds,
    /// Start and length. Statements that arrive meanwhile are answered afterwards.
    pub stalls: Vec<(Nanoseconds, Nanoseconds)>,
    pub origin: StallOrigin,
    /// CPUs the server's thread is bound to; empty for none.
    pub cpus: Vec<u32>,
}

/// What the start of a stall is counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StallOrigin {
    /// The first execution of a prepared statement: where a load begins, for populating uses none.
    #[default]
    FirstExecution,
    /// The clock's own origin: starts are times of the clock.
    Clock,
}

/// A null server; it stops when this is dropped.
pub struct NullServer {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    is_stopped: AtomicBool,
    // Written to wake the server's thread.
    bell: OwnedFd,
    n_statements: AtomicU64,
    // Why the thread has ended by itself.
    fault: OnceLock<String>,
}

impl NullServer {
    /// Listens on return. Fails if the socket cannot be made, or descriptors or threads run out.
    pub fn start(
        wire: Wire,
        place: &Listen,
        script: Script,
        clock: Arc<dyn Clock>,
    ) -> io::Result<NullServer> {
        let (listener, address) = listen(wire, place)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared {
            is_stopped: AtomicBool::new(false),
            bell,
            n_statements: AtomicU64::new(0),
            fault: OnceLock::new(),
        });
        let endpoint = Endpoint::plain(wire.protocol(), address, "dyno", "dyno");
        // From here on the socket's file is removed whatever happens.
        let mut server = NullServer { endpoint, shared: Arc::clone(&shared), thread: None };
        let mut event_loop = EventLoop::new(wire, listener, script, clock, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new().name("dyno-null".to_owned()).spawn(move || {
            if let Err(error) = event_loop.run() {
                let _ = shared.fault.set(format!("the null server ended: {error}"));
            }
        })?;
        server.thread = Some(thread);
        Ok(server)
    }

    /// Its endpoint; any user and any password are accepted.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub fn connector(&self) -> Connector {
        self.endpoint.protocol.connector(&self.endpoint)
    }

    /// Statements that it has been sent, text and prepared ones; preparing is none.
    pub fn statements(&self) -> u64 {
        self.shared.n_statements.load(Ordering::Relaxed)
    }

    pub fn down(&self) -> Option<String> {
        let has_ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        let fault = self.shared.fault.get().cloned();
        fault.or_else(|| has_ended.then(|| "the null server's thread has panicked".to_owned()))
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        // It cannot fail: the counter is far from overflow.
        let _ = rustix::io::write(&self.shared.bell, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // The panic has already been reported.
            let _ = thread.join();
        }
        if let Address::Unix(path) = &self.endpoint.address {
            // It is removed with the folder.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn listen(wire: Wire, place: &Listen) -> io::Result<(OwnedFd, Address)> {
    match place {
        Listen::Folder(folder) => {
            let path = folder.join(match wire {
                Wire::MySql => "mysql.sock",
                Wire::PostgreSql => ".s.PGSQL.5432",
            });
            let listener = UnixListener::bind(&path)?;
            listener.set_nonblocking(true)?;
            Ok((listener.into(), Address::Unix(path)))
        }
        Listen::Loopback => {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            Ok((listener.into(), Address::of_loopback(port)))
        }
    }
}

enum Conversation {
    MySql(mysql::Conversation),
    PostgreSql(postgresql::Conversation),
}

impl Conversation {
    /// Begins a session; the server's greeting, if any, is appended to `out`.
    fn begin(wire: Wire, out: &mut Vec<u8>) -> Conversation {
        match wire {
            Wire::MySql => {
                mysql::Conversation::greet(out);
                Conversation::MySql(mysql::Conversation::default())
            }
            Wire::PostgreSql => Conversation::PostgreSql(postgresql::Conversation::new()),
        }
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Taken {
        match self {
            Conversation::MySql(conversation) => conversation.take(bytes, out),
            Conversation::PostgreSql(conversation) => conversation.take(bytes, out),
        }
    }
}
