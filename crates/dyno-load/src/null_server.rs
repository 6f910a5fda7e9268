//! A test server that answers each line with a line, and its connection.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use dyno_model::Name;
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::{
    ConnectError, Connection, Connector, Dialect, ErrorClass, Reply, Row, Statement,
    StatementError, TextRows, Value,
};

pub(crate) struct KernelClock;

impl Clock for KernelClock {
    fn now(&self) -> Nanoseconds {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Nanoseconds(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    fn unix_millis(&self) -> u64 {
        0
    }

    fn sleep_until(&self, until: Nanoseconds) {
        thread::sleep(until.saturating_sub(self.now()).to_duration());
    }
}

#[derive(Clone, Default)]
pub(crate) struct NullServer {
    /// 0 for never.
    pub(crate) replies_before_close: usize,
    /// Gives no reply to so many first statements, over all connections.
    pub(crate) silent: usize,
    /// Sends a reply in two pieces.
    pub(crate) in_pieces: bool,
    /// Bytes of padding in a request.
    pub(crate) padding: usize,
    /// Numbers of connections, from 0, that are refused.
    pub(crate) refused: std::ops::Range<usize>,
    pub(crate) refuses_prepare: bool,
    /// Has no descriptor, and answers at once.
    pub(crate) is_immediate: bool,
}

#[derive(Default)]
pub(crate) struct Log {
    pub(crate) n_connects: AtomicUsize,
    pub(crate) n_silent: AtomicUsize,
    pub(crate) immediate: Mutex<Vec<Arc<AtomicUsize>>>,
    pub(crate) threads: Mutex<std::collections::BTreeSet<String>>,
}

impl NullServer {
    pub(crate) fn start(self) -> (Connector, Arc<Log>) {
        let log = Arc::new(Log::default());
        let shared = Arc::clone(&log);
        let connector: Connector = Arc::new(move || self.connect(&shared));
        (connector, log)
    }

    fn connect(&self, log: &Arc<Log>) -> Result<Box<dyn Connection>, ConnectError> {
        let number = log.n_connects.fetch_add(1, Ordering::SeqCst);
        if self.refused.contains(&number) {
            let (address, reason) = ("null".to_owned(), "connections are refused".to_owned());
            return Err(ConnectError { address, reason, details: None });
        }
        if self.is_immediate {
            let n_sent = Arc::new(AtomicUsize::new(0));
            log.immediate.lock().expect("no panic").push(Arc::clone(&n_sent));
            return Ok(Box::new(ImmediateConnection { n_sent }));
        }
        let (client, server) = UnixStream::pair().expect("there are descriptors");
        let (behaviour, shared) = (self.clone(), Arc::clone(log));
        thread::spawn(move || behaviour.serve(server, &shared));
        Ok(Box::new(LineConnection {
            stream: client,
            unsent: Vec::new(),
            error: None,
            log: Arc::clone(log),
            padding: self.padding,
            refuses_prepare: self.refuses_prepare,
        }))
    }

    fn serve(&self, stream: UnixStream, log: &Log) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut writer = stream;
        let mut line = Vec::new();
        for n_replies in 1.. {
            line.clear();
            if reader.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            if log.n_silent.load(Ordering::SeqCst) < self.silent {
                log.n_silent.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            if self.in_pieces {
                writer.write_all(b"re").ok()?;
                thread::yield_now();
                writer.write_all(b"ply\n").ok()?;
            } else {
                writer.write_all(b"reply\n").ok()?;
            }
            if n_replies == self.replies_before_close {
                return None;
            }
        }
        None
    }
}

struct LineConnection {
    stream: UnixStream,
    unsent: Vec<u8>,
    error: Option<StatementError>,
    log: Arc<Log>,
    padding: usize,
    refuses_prepare: bool,
}

fn lost(error: &io::Error) -> StatementError {
    StatementError::new(ErrorClass::Disconnected, "io", error.to_string())
}

impl LineConnection {
    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    self.unsent.clear();
                    self.error = Some(lost(&error));
                }
            }
        }
    }
}

impl Connection for LineConnection {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn prepare(&mut self, _statements: &[Statement]) -> Result<(), StatementError> {
        if self.refuses_prepare {
            return Err(StatementError::new(ErrorClass::Refused, "42", "no such table"));
        }
        Ok(())
    }

    fn send_execute(&mut self, _statement: usize, _values: &[Value<'_>]) {
        self.send_text("SELECT 1");
    }

    fn send_text(&mut self, sql: &str) {
        if let Some(name) = thread::current().name() {
            self.log.threads.lock().expect("no panic").insert(name.to_owned());
        }
        self.unsent.extend_from_slice(sql.as_bytes());
        self.unsent.resize(self.unsent.len() + self.padding, b' ');
        self.unsent.push(b'\n');
        self.flush();
    }

    fn poll_reply(&mut self) -> Poll<Result<Reply, StatementError>> {
        self.flush();
        if let Some(error) = self.error.take() {
            return Poll::Ready(Err(error));
        }
        // A reply takes more than one read.
        let mut bytes = [0; 3];
        match self.stream.read(&mut bytes) {
            Ok(0) => Poll::Ready(Err(lost(&ErrorKind::UnexpectedEof.into()))),
            Ok(n) if bytes[..n].contains(&b'\n') => {
                Poll::Ready(Ok(Reply { rows: 1, ..Reply::default() }))
            }
            Ok(_) => Poll::Pending,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(lost(&error))),
        }
    }

    fn wants_write(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn set_blocking(&mut self, blocking: bool, timeout_ns: u64) -> Result<(), StatementError> {
        let timeout = (timeout_ns > 0).then(|| Duration::from_nanos(timeout_ns));
        self.stream
            .set_nonblocking(!blocking)
            .and_then(|()| self.stream.set_read_timeout(timeout))
            .map_err(|error| lost(&error))
    }

    fn query(&mut self, _sql: &str) -> Result<TextRows, StatementError> {
        Ok(TextRows::new())
    }

    fn load_rows(
        &mut self,
        _table: &str,
        _columns: &[Name],
        _next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64, StatementError> {
        Ok(0)
    }
}

struct ImmediateConnection {
    n_sent: Arc<AtomicUsize>,
}

impl Connection for ImmediateConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare(&mut self, _statements: &[Statement]) -> Result<(), StatementError> {
        Ok(())
    }

    fn send_execute(&mut self, _statement: usize, _values: &[Value<'_>]) {
        self.n_sent.fetch_add(1, Ordering::SeqCst);
    }

    fn send_text(&mut self, _sql: &str) {}

    fn poll_reply(&mut self) -> Poll<Result<Reply, StatementError>> {
        Poll::Ready(Ok(Reply { rows: 1, ..Reply::default() }))
    }

    fn set_blocking(&mut self, _blocking: bool, _timeout_ns: u64) -> Result<(), StatementError> {
        Ok(())
    }

    fn query(&mut self, _sql: &str) -> Result<TextRows, StatementError> {
        Ok(TextRows::new())
    }

    fn load_rows(
        &mut self,
        _table: &str,
        _columns: &[Name],
        _next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64, StatementError> {
        Ok(0)
    }
}
