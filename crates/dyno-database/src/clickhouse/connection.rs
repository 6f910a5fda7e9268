//! A connection to ClickHouse: a request for each statement, its answer in a blocking read. Buffers are
//! reused. A connection that the server ended while idle is opened again before the next statement, of
//! which the server has seen nothing. One that ends under a statement is lost.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Poll;

use dyno_model::Name;
use dyno_units::Nanoseconds;
use dyno_workload::{
    ConnectError, Connection, Connector, Dialect, ErrorClass, NamedRows, Reply, Row, Statement,
    StatementError, TextRows, Value,
};

use super::http::{Answer, HttpError};
use super::request::{Heads, Template, cell, error_in, login, write_request};
use crate::cleaner::Cleaner;
use crate::error::StatementResult as Result;
use crate::transport::{
    COLD_RESULT_MAX, READS_MOST, ROWS_SILENCE, ReadBuffer, Transport, row_room, too_much,
};
use crate::waiting::SET_UP_LIMIT;
use crate::{Address, Endpoint, TlsMode};

/// Length of one wait under load, after which the worker looks at its clock.
const SLICE: Nanoseconds = Nanoseconds::from_millis(100);

const COLUMNS_MAX: usize = 1 << 16;

/// Rows are sent in chunks of about this size, in bytes.
const CHUNK: usize = 128 * 1024;

/// Codes of errors for a right that the user lacks, or a wrong password.
const NO_LOGIN: [&str; 4] = ["192", "193", "194", "516"];

/// The code of an error for a database that is not there.
const NO_DATABASE: &str = "81";

/// Says whether whoever listens at the endpoint may be sent the password: asked before each connection.
pub(super) type Guard = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

struct Target {
    endpoint: Endpoint,
    heads: Heads,
    cleaner: Cleaner,
    guard: Option<Guard>,
}

#[derive(Debug)]
pub(super) struct OpenError {
    pub(super) error: ConnectError,
    pub(super) lacks_database: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InFlight {
    Nothing,
    Answer,
    Ignored,
}

pub(super) struct ClickHouseConnection {
    target: Arc<Target>,
    transport: Transport,
    received: ReadBuffer,
    answer: Answer,
    templates: Vec<Template>,
    body: Vec<u8>,
    /// The request; the first `n_written` bytes are on their way.
    out: Vec<u8>,
    n_written: usize,
    in_flight: InFlight,
    /// An error to be returned by the next `poll_reply`.
    failure: Option<StatementError>,
    is_closed: bool,
    lost: Option<String>,
    // Of a cold call; 0 for none.
    pub(super) cold_limit: Nanoseconds,
}

pub(super) fn connector(endpoint: Endpoint, guard: Option<Guard>) -> Connector {
    crate::server::connector(move || {
        open(&endpoint, guard.as_ref()).map_err(|failure| failure.error)
    })
}

/// Asks for an answer, so that user, password and database are checked. Until another limit is set, cold calls have
/// half a minute each, as for set-up work.
pub(super) fn open(
    endpoint: &Endpoint,
    guard: Option<&Guard>,
) -> Result<ClickHouseConnection, OpenError> {
    let cleaner = cleaner(endpoint);
    let failed = |reason: &str, lacks_database: bool| OpenError {
        error: endpoint.not_opened(cleaner.clean(reason)),
        lacks_database,
    };
    check_trust(endpoint).map_err(|why| failed(&why, false))?;
    let heads = Heads::new(endpoint).map_err(|why| failed(&why, false))?;
    let target = Arc::new(Target {
        endpoint: endpoint.clone(),
        heads,
        cleaner: cleaner.clone(),
        guard: guard.cloned(),
    });
    let transport = reach(&target).map_err(|why| failed(&why, false))?;
    let mut connection = ClickHouseConnection {
        target,
        transport,
        received: ReadBuffer::new(),
        answer: Answer::new(COLD_RESULT_MAX),
        templates: Vec::new(),
        body: Vec::with_capacity(4096),
        out: Vec::with_capacity(4096),
        n_written: 0,
        in_flight: InFlight::Nothing,
        failure: None,
        is_closed: false,
        lost: None,
        cold_limit: SET_UP_LIMIT,
    };
    match connection.query("SELECT 1") {
        Ok(_) => Ok(connection),
        Err(error) if NO_LOGIN.contains(&error.code.as_ref()) => {
            let advice =
                "is this user's password right, and is the user allowed to log in from here?";
            Err(failed(&format!("{error}; {advice}"), false))
        }
        Err(error) => Err(failed(&error.to_string(), error.code == NO_DATABASE)),
    }
}

/// Also knows the password in HTTP's form: servers and proxies quote request heads in errors.
fn cleaner(endpoint: &Endpoint) -> Cleaner {
    let cleaner = Cleaner::new(endpoint.password.as_ref());
    match &endpoint.password {
        Some(word) if !word.reveal().is_empty() => cleaner.with(login(endpoint)),
        _ => cleaner,
    }
}

fn has_password(endpoint: &Endpoint) -> bool {
    endpoint.password.as_ref().is_some_and(|word| !word.reveal().is_empty())
}

/// Refuses to send a password in clear text where others could read it.
fn check_trust(endpoint: &Endpoint) -> Result<(), String> {
    let is_verified = matches!(endpoint.tls, TlsMode::Verify { .. });
    match &endpoint.address {
        Address::Tcp { host, .. }
            if has_password(endpoint) && !is_verified && !dyno_host::is_loopback(host) =>
        {
            Err("ClickHouse's interface takes the password as clear text, so Dyno sends it only to this \
                 host or to a server whose certificate is verified: connect with `tls=verify` to its \
                 port for HTTPS, or through a tunnel to a port of this host"
                .to_owned())
        }
        _ => Ok(()),
    }
}

fn reach(target: &Target) -> Result<Transport, String> {
    let Target { endpoint, guard, .. } = target;
    let mut transport = Transport::open(endpoint).map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                "; nothing is listening there: is the server up, and is this its HTTP port?"
            }
            _ => "",
        };
        format!("{error}{advice}")
    })?;
    // After the connection stands, so that whoever it leads to is the one that is asked about.
    guard.as_ref().map_or(Ok(()), |guard| guard())?;
    if endpoint.tls != TlsMode::Off {
        let started = transport.start_tls(&endpoint.tls, endpoint.tls_name());
        started.map_err(|error| format!("TLS: {error}"))?;
    }
    let is_socket = matches!(endpoint.address, Address::Unix(_));
    if is_socket && has_password(endpoint) && !transport.is_trusted(endpoint) {
        return Err(endpoint.trust_advice());
    }
    transport.set_blocking(true, SLICE.0).map_err(|error| error.to_string())?;
    Ok(transport)
}

fn refused(message: impl Into<String>) -> StatementError {
    StatementError::new(ErrorClass::Refused, "http", message)
}

impl ClickHouseConnection {
    pub(super) fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }

    /// Whether a statement may be sent; else the next `poll_reply` says why not.
    fn begin(&mut self) -> bool {
        if self.in_flight == InFlight::Nothing && self.failure.is_none() && self.lost.is_none() {
            self.out.clear();
            self.n_written = 0;
            return true;
        }
        if self.failure.is_none() {
            self.failure = Some(match &self.lost {
                Some(why) => StatementError::new(ErrorClass::Disconnected, "http", why.clone()),
                None => refused("the statement before this one is still in flight"),
            });
        }
        false
    }

    /// Makes the statement in `body` the request that `poll_reply` sends.
    fn start(&mut self, names_columns: bool) {
        let heads = &self.target.heads;
        let head = if names_columns { &heads.naming } else { &heads.counting };
        write_request(head, &self.body, &mut self.out);
        self.answer.begin(names_columns);
        self.in_flight = InFlight::Answer;
    }

    /// Opens the connection again if the server has ended it since the last answer.
    fn freshen(&mut self) -> Result<(), String> {
        let has_ended = self.is_closed || {
            match self.transport.read_now(&mut self.received) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
                // Its end, or bytes that nobody asked for.
                _ => true,
            }
        };
        if has_ended {
            self.transport = reach(&self.target)?;
            self.received.clear();
            self.is_closed = false;
        }
        Ok(())
    }

    /// Writes the rest of the request and reads with at most this many reads; none if it must wait.
    fn exchange(&mut self, reads_most: usize) -> Result<Option<()>, String> {
        match self.transport.write_rest(&self.out, &mut self.n_written) {
            Ok(true) => self.receive(reads_most),
            Ok(false) => Ok(None),
            // The reason that the server gave may still be there to be read.
            Err(error) => match self.receive(reads_most) {
                Ok(Some(())) => Ok(Some(())),
                _ => Err(format!("{error} (while sending)")),
            },
        }
    }

    /// Reads until the answer is complete; none if a read runs out of its time, or after so many reads.
    fn receive(&mut self, reads_most: usize) -> Result<Option<()>, String> {
        let http = |error: HttpError| error.0;
        let mut n_reads = 0;
        while !self.answer.is_done() {
            if n_reads == reads_most {
                return Ok(None);
            }
            n_reads += 1;
            match self.transport.read_some(&mut self.received) {
                Ok(0) => self.answer.end().map_err(http)?,
                Ok(_) => {
                    let n_taken = self.answer.read(self.received.unread()).map_err(http)?;
                    self.received.consume(n_taken);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.to_string()),
            }
        }
        self.is_closed = self.answer.closes || !self.received.unread().is_empty();
        Ok(Some(()))
    }

    fn complete(&mut self) -> Result<Reply> {
        self.in_flight = InFlight::Nothing;
        if self.answer.is_error() {
            return Err(self.server_error());
        }
        Ok(Reply { rows: self.answer.n_lines, affected: 0, warnings: 0 })
    }

    #[cold]
    fn server_error(&self) -> StatementError {
        let answer = &self.answer;
        let error = error_in(answer.status, answer.exception, &answer.body);
        self.target.cleaner.clean_error(error)
    }

    #[cold]
    fn lose(&mut self, why: &str) -> StatementError {
        self.in_flight = InFlight::Nothing;
        let why = self.target.cleaner.clean(why);
        self.lost = Some(why.clone());
        StatementError::new(ErrorClass::Disconnected, "http", why)
    }

    /// Sends what is in `out`, and waits for the whole answer, all of it within the limit of cold calls.
    fn converse(&mut self) -> Result<()> {
        let limit = self.cold_limit;
        self.cold(move |connection| {
            connection.transport.begin_cold(limit).map_err(|error| error.to_string())?;
            match connection.exchange(usize::MAX)? {
                Some(()) => Ok(()),
                None => Err("the server does not answer".to_owned()),
            }
        })
    }

    /// Does cold work, on a connection that stands; an error loses it.
    fn cold(
        &mut self,
        work: impl FnOnce(&mut ClickHouseConnection) -> Result<(), String>,
    ) -> Result<()> {
        let worked = self.freshen().and_then(|()| work(self));
        let restored = self.transport.set_blocking(true, SLICE.0).map_err(|e| e.to_string());
        if let Err(why) = worked.and(restored) {
            return Err(self.lose(&why));
        }
        self.complete().map(drop)
    }

    fn send_rows(&mut self, next_row: &mut dyn FnMut(&mut Row) -> bool) -> Result<u64, String> {
        let mut row = Row::new();
        let mut chunk = Vec::with_capacity(CHUNK + 4096);
        let mut n_rows = 0;
        loop {
            row.clear();
            let has_more = next_row(&mut row);
            if has_more {
                row.write_tab_separated(&mut chunk);
                n_rows += 1;
            }
            if chunk.len() >= CHUNK || (!has_more && !chunk.is_empty()) {
                self.out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                self.out.append(&mut chunk);
                self.out.extend_from_slice(b"\r\n");
                if !has_more {
                    break;
                }
                if !self.write_all()? {
                    // The server has answered before it has read all rows: it refuses them.
                    return Ok(n_rows);
                }
            } else if !has_more {
                break;
            }
        }
        self.out.extend_from_slice(b"0\r\n\r\n");
        match self.exchange(usize::MAX)? {
            Some(()) => Ok(n_rows),
            None => Err("the server does not answer".to_owned()),
        }
    }

    /// Writes `out` and empties it; false if the server has answered instead of taking it.
    fn write_all(&mut self) -> Result<bool, String> {
        while self.n_written < self.out.len() {
            match self.transport.write_some(&self.out[self.n_written..]) {
                Ok(n_taken) => self.n_written += n_taken,
                Err(error) => {
                    return match self.receive(usize::MAX) {
                        Ok(Some(())) => Ok(false),
                        _ => Err(format!("{error} (while sending rows)")),
                    };
                }
            }
        }
        self.out.clear();
        self.n_written = 0;
        Ok(true)
    }
}

impl Connection for ClickHouseConnection {
    fn dialect(&self) -> Dialect {
        Dialect::ClickHouse
    }

    fn shown(&self, text: &str) -> String {
        self.target.cleaner.clean(text)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare(&mut self, statements: &[Statement]) -> Result<()> {
        let is_foreign = |one: &&Statement| {
            one.is_unnamed || one.texts.is_some() || one.keeps_rows || one.keeps_last
        };
        if let Some(statement) = statements.iter().find(is_foreign) {
            return Err(refused(format!(
                "ClickHouse has no prepared statements, and Dyno keeps none of its rows under load: {}",
                statement.sql
            )));
        }
        self.templates = statements.iter().map(|one| Template::new(&one.sql)).collect();
        Ok(())
    }

    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        if !self.begin() {
            return;
        }
        self.body.clear();
        let is_written = self
            .templates
            .get(statement)
            .is_some_and(|template| template.write(values, &mut self.body));
        match is_written {
            true => self.start(false),
            false => {
                self.failure =
                    Some(refused("no statement with this number of values was prepared"));
            }
        }
    }

    fn send_text(&mut self, sql: &str) {
        if !self.begin() {
            return;
        }
        match sql {
            "ROLLBACK" => self.in_flight = InFlight::Ignored,
            "BEGIN" | "COMMIT" => {
                self.failure = Some(refused(format!("ClickHouse has no transactions: {sql}")));
            }
            _ => {
                self.body.clear();
                self.body.extend_from_slice(sql.as_bytes());
                self.start(false);
            }
        }
    }

    fn poll_reply(&mut self) -> Poll<Result<Reply>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        match self.in_flight {
            InFlight::Nothing => return Poll::Ready(Err(refused("no statement is in flight"))),
            InFlight::Ignored => {
                self.in_flight = InFlight::Nothing;
                return Poll::Ready(Ok(Reply::default()));
            }
            InFlight::Answer => {}
        }
        if self.n_written == 0
            && let Err(why) = self.freshen()
        {
            return Poll::Ready(Err(self.lose(&why)));
        }
        match self.exchange(READS_MOST) {
            Ok(Some(())) => Poll::Ready(self.complete()),
            Ok(None) => Poll::Pending,
            Err(why) => Poll::Ready(Err(self.lose(&why))),
        }
    }

    fn n_awaited(&self) -> usize {
        usize::from(self.in_flight != InFlight::Nothing)
    }

    fn set_blocking(&mut self, _blocking: bool, _timeout_ns: u64) -> Result<()> {
        // Reads always block, for a slice of time.
        Ok(())
    }

    fn set_cold_limit(&mut self, limit_ns: u64) {
        self.cold_limit = Nanoseconds(limit_ns);
    }

    fn query(&mut self, sql: &str) -> Result<TextRows> {
        self.query_named(sql).map(|answer| answer.rows)
    }

    fn query_named(&mut self, sql: &str) -> Result<NamedRows> {
        if !self.begin() {
            return Err(self.failure.take().expect("`begin` says why not"));
        }
        self.body.clear();
        self.body.extend_from_slice(sql.as_bytes());
        self.start(true);
        self.converse()?;
        let mut answer = NamedRows::default();
        let mut n_kept = 0;
        let lines = self.answer.body.split(|&byte| byte == b'\n');
        for (idx, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            // A tab takes a byte of a line, and a cell far more memory.
            if memchr::memchr_iter(b'\t', line).count() >= COLUMNS_MAX {
                return Err(refused("a result with more columns than any table has"));
            }
            let row: Vec<Option<String>> = line.split(|&byte| byte == b'\t').map(cell).collect();
            if idx == 0 {
                answer.columns = row.into_iter().flatten().map(|name| self.shown(&name)).collect();
                continue;
            }
            n_kept += row_room(&row);
            if n_kept > COLD_RESULT_MAX {
                return Err(refused(too_much()));
            }
            answer.rows.push(row);
        }
        Ok(answer)
    }

    fn load_rows(
        &mut self,
        table: &str,
        columns: &[Name],
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64> {
        if !self.begin() {
            return Err(self.failure.take().expect("`begin` says why not"));
        }
        let insert = format!("INSERT INTO {table} ({}) FORMAT TabSeparated", columns.join(", "));
        let head = self.target.heads.of_rows(&insert);
        self.out.extend_from_slice(&head);
        self.answer.begin(true);
        self.in_flight = InFlight::Answer;
        let mut n_rows = 0;
        self.cold(|connection| {
            let transport = &mut connection.transport;
            transport
                .begin_cold_within(Nanoseconds::ZERO, ROWS_SILENCE)
                .map_err(|error| error.to_string())?;
            n_rows = connection.send_rows(next_row)?;
            Ok(())
        })?;
        Ok(n_rows)
    }
}
