//! A connection to PostgreSQL. The hot path is one write and one read per statement: Bind, Execute
//! and Sync go from a template into a reused buffer, and the reply is scanned where it was
//! received. A pipeline has one Sync after its last statement: the server answers all together, and
//! skips the rest after an error.

mod copy;
mod prepare;

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::task::Poll;

use dyno_model::Name;
use dyno_units::Nanoseconds;
use dyno_workload::{
    Connection, Dialect, ErrorClass, ErrorDetails, KeptRows, LastRows, NamedRows, Reply, Row,
    Statement, StatementError, TextRows, Value,
};

use crate::cleaner::Cleaner;
use crate::error::StatementResult as Result;
use crate::transport::{COLD_RESULT_MAX, READS_MOST, ROWS_SILENCE, SHORT_READ, row_room, too_much};
use crate::waiting::SET_UP_LIMIT;

use super::prepared::{Expected, Prepared, TEXT_COLUMNS, check_text, is_commit, refused};
use super::protocol::{
    HEADER_BYTES, NOTICES_MOST, ProtocolError, ReplyScanner, SYNC, Scan, ServerMessage,
    column_names, row_texts, write_parse_named, write_query, write_unprepared,
};
use super::sql::quote_name;
use super::wire::{Wire, WireError, closed};
use copy::write_copy_fail;

/// A callback for the kind and the body of a message.
type OnMessage<'a> = &'a mut dyn FnMut(u8, &[u8]) -> Result<(), ProtocolError>;

pub struct PgConnection {
    wire: Wire,
    scanner: ReplyScanner,
    prepared: Vec<Prepared>,
    /// Parse with each execution: a pooler may send the next one to another server.
    parses_each: bool,
    // The messages being sent; the first `n_written` bytes are on their way.
    out: Vec<u8>,
    n_written: usize,
    // Whether a reply is being received, and to what.
    is_in_flight: bool,
    expected: Expected,
    // Those of a pipeline whose replies come after that one.
    awaited: VecDeque<Expected>,
    // Whether a pipeline is being built.
    is_pipelining: bool,
    // The last read may have left bytes in the socket.
    may_have_more: bool,
    // An error to be returned by the next `poll_reply`.
    failure: Option<StatementError>,
    // Why writing failed: the reason that the server gave may still be there to be read.
    write_failure: Option<String>,
    // Why the connection can no longer be used.
    lost: Option<String>,
    is_blocking: bool,
    timeout_ns: u64,
    // Of a cold call; 0 for none.
    cold_limit: Nanoseconds,
    // For what the server says.
    cleaner: Cleaner,
    // Its process on the server's side.
    pub(super) backend_pid: i32,
}

impl PgConnection {
    /// On a ready server. Until another limit is set, cold calls have half a minute each.
    pub(super) fn new(wire: Wire, login: super::startup::Login) -> io::Result<PgConnection> {
        let mut connection = PgConnection {
            wire,
            scanner: login.scanner,
            cleaner: login.cleaner,
            backend_pid: login.backend_pid,
            prepared: Vec::new(),
            parses_each: false,
            out: Vec::with_capacity(4096),
            n_written: 0,
            is_in_flight: false,
            expected: Expected::default(),
            awaited: VecDeque::new(),
            is_pipelining: false,
            may_have_more: false,
            failure: None,
            write_failure: None,
            lost: None,
            is_blocking: false,
            timeout_ns: 0,
            cold_limit: SET_UP_LIMIT,
        };
        connection.wire.transport.set_blocking(false, 0)?;
        Ok(connection)
    }

    /// Oldest first, with the number of earlier notices that were dropped.
    pub fn take_notices(&mut self) -> (Vec<String>, u64) {
        let (notices, n_dropped) = self.scanner.notices.take();
        (notices.iter().map(|notice| self.cleaner.clean(&notice.to_line())).collect(), n_dropped)
    }

    /// Why the connection is gone, as far as that can be seen without asking the server.
    pub fn lost(&mut self) -> Option<String> {
        if self.lost.is_none()
            && self.n_awaited() == 0
            && let Err(error) = self.look()
        {
            self.lost = Some(self.cleaner.clean(&error.0));
        }
        self.lost.clone()
    }

    pub fn is_tls(&self) -> bool {
        self.wire.transport.is_tls()
    }

    /// Reads what came without having been asked for, and whether the server ends the connection.
    fn look(&mut self) -> Result<(), WireError> {
        let read = self.wire.read_now();
        self.take_asides()?.map_or(read, |failure| Err(WireError(failure.to_line())))
    }

    /// Removes messages that may come at any time; returns the error after them, which stays.
    fn take_asides(&mut self) -> Result<Option<ServerMessage>, WireError> {
        while let Some((tag, n_bytes)) = self.wire.peek()? {
            let body = &self.wire.received.unread()[HEADER_BYTES..n_bytes];
            match tag {
                b'E' => return Ok(Some(ServerMessage::parse(body)?)),
                b'N' => self.scanner.keep_notice(body)?,
                b'S' | b'A' => {}
                _ => break,
            }
            self.wire.received.consume(n_bytes);
        }
        Ok(None)
    }

    /// Whether a statement may be sent; else the next `poll_reply` says why not.
    fn begin(&mut self) -> bool {
        let is_idle = self.n_awaited() == 0 && !self.is_pipelining;
        if self.lost.is_none() && is_idle && self.failure.is_none() {
            self.out.clear();
            self.n_written = 0;
            return true;
        }
        self.failure = Some(match &self.lost {
            Some(reason) => WireError(reason.clone()).into(),
            None => refused("HY010", "the statement before this one is still in flight"),
        });
        false
    }

    fn may_write(&mut self) -> bool {
        if self.is_pipelining { self.failure.is_none() } else { self.begin() }
    }

    /// Sends the statement in `out`, which ends it; in a pipeline, keeps it for its end.
    fn start(&mut self, expected: Expected) {
        if self.is_pipelining {
            self.out.truncate(self.out.len() - SYNC.len());
            self.awaited.push_back(expected);
            return;
        }
        self.expect(expected);
        self.write_out();
    }

    /// Sends a text; nothing is expected if its rows cannot be kept. In a pipeline by the extended protocol, because
    /// a simple query would be answered separately.
    fn send_as(&mut self, sql: &str, expected: Option<Expected>) {
        if !self.may_write() {
            return;
        }
        match (check_text(sql), expected) {
            (Err(error), _) => self.failure = Some(error),
            (Ok(()), None) => {
                self.failure = Some(refused("HY010", "the rows of this statement cannot be kept"));
            }
            (Ok(()), Some(expected)) => {
                match self.is_pipelining {
                    true => write_unprepared(sql, &mut self.out),
                    false => write_query(sql, &mut self.out),
                }
                self.start(Expected { is_commit: is_commit(sql), ..expected });
            }
        }
    }

    fn expect(&mut self, expected: Expected) {
        let prepared = expected.prepared.and_then(|idx| self.prepared.get(idx));
        let columns = match expected.n_kept_columns {
            0 => prepared.and_then(|prepared| prepared.template.columns()),
            n_columns => TEXT_COLUMNS.get(..n_columns),
        };
        match self.awaited.is_empty() {
            true => self.scanner.begin(columns),
            false => self.scanner.begin_amid(columns),
        }
        if expected.keeps_last {
            self.scanner.keep_last();
        } else if expected.learns_columns {
            self.scanner.learn_columns();
        }
        self.expected = expected;
        self.is_in_flight = true;
    }

    /// Continues with the next reply of a pipeline; false if there is none.
    fn expect_next(&mut self) -> bool {
        match self.awaited.pop_front() {
            Some(expected) => self.expect(expected),
            None => return false,
        }
        true
    }

    fn has_unwritten(&self) -> bool {
        self.n_written < self.out.len() || self.wire.transport.wants_write()
    }

    fn write_out(&mut self) {
        if let Err(error) = self.wire.transport.write_rest(&self.out, &mut self.n_written) {
            self.write_failure = Some(error.to_string());
        }
    }

    /// Reads and scans until the reply is complete or nothing more is there, or for [`READS_MOST`] reads.
    fn read_reply(&mut self) -> Result<Poll<()>, WireError> {
        // What came after the previous reply, such as the message that ends the connection.
        if !self.wire.received.unread().is_empty() && self.scan()? {
            return Ok(Poll::Ready(()));
        }
        for _ in 0..READS_MOST {
            let wire = &mut self.wire;
            if self.is_blocking && !wire.transport.wait_readable(self.timeout_ns) {
                return Ok(Poll::Pending);
            }
            let n_read = match wire.transport.read_some(&mut wire.received) {
                Ok(0) => return Err(closed()),
                Ok(n_read) => n_read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.may_have_more = false;
                    return Ok(Poll::Pending);
                }
                Err(error) => return Err(error.into()),
            };
            // A short read has emptied the socket: another read would only return `WouldBlock`.
            self.may_have_more = n_read >= SHORT_READ || self.wire.transport.is_tls();
            if self.scan()? {
                return Ok(Poll::Ready(()));
            }
            if !self.is_blocking && !self.may_have_more {
                return Ok(Poll::Pending);
            }
        }
        Ok(Poll::Pending)
    }

    /// Scans what was received; true if the reply is complete.
    fn scan(&mut self) -> Result<bool, WireError> {
        loop {
            let (n_done, scan) = self.scanner.scan(self.wire.received.unread())?;
            self.wire.received.consume(n_done);
            match scan {
                Scan::Done => return Ok(true),
                Scan::More => return Ok(false),
                Scan::CopyIn => self.refuse_copy()?,
            }
        }
    }

    fn complete(&mut self) -> Result<Reply> {
        self.is_in_flight = false;
        if self.scanner.is_fatal() {
            let error = self.finish();
            self.awaited.clear();
            self.lost = error.as_ref().err().map(|error| error.message.clone());
            return error;
        }
        let reply = match self.scanner.finish() {
            Ok(reply) => reply,
            Err(error) if self.scanner.copies && !self.awaited.is_empty() => {
                // The server goes on with the rest of the pipeline, whose replies nobody takes.
                return Err(self.lose(WireError(error.message)));
            }
            Err(error) => {
                // The server has skipped the rest of the pipeline.
                self.awaited.clear();
                self.forget_unparsed();
                return Err(self.cleaner.clean_error(error));
            }
        };
        if let Some(prepared) = self.expected.prepared.and_then(|idx| self.prepared.get_mut(idx))
            && let Some(unparsed) = &mut prepared.unparsed
        {
            unparsed.is_known = true;
        }
        if self.expected.is_commit && self.scanner.has_rolled_back {
            return Err(refused("25P02", "the transaction had failed; COMMIT rolled it back"));
        }
        Ok(reply)
    }

    /// After an error: of statements that were just sent to be parsed it is not known whether they were.
    #[cold]
    fn forget_unparsed(&mut self) {
        for unparsed in self.prepared.iter_mut().filter_map(|prepared| prepared.unparsed.as_mut()) {
            unparsed.is_sent = unparsed.is_known;
        }
    }

    #[cold]
    fn finish(&mut self) -> Result<Reply> {
        self.scanner.finish().map_err(|error| self.cleaner.clean_error(error))
    }

    #[cold]
    fn lose(&mut self, error: WireError) -> StatementError {
        self.is_in_flight = false;
        self.awaited.clear();
        let reason = match self.write_failure.take() {
            Some(write_failure) if write_failure != error.0 => {
                format!("{} (while sending: {write_failure})", error.0)
            }
            _ => error.0,
        };
        let reason = self.cleaner.clean(&reason);
        self.lost = Some(reason.clone());
        WireError(reason).into()
    }

    /// Does cold work with a transport that blocks, all of it within `limit` (0: any time).
    fn blocking<T>(
        &mut self,
        limit: Nanoseconds,
        work: impl FnOnce(&mut PgConnection) -> Result<T>,
    ) -> Result<T> {
        self.blocking_as(limit, false, work)
    }

    /// The same, with a shorter limit on silence while rows are stored.
    fn blocking_as<T>(
        &mut self,
        limit: Nanoseconds,
        is_filling: bool,
        work: impl FnOnce(&mut PgConnection) -> Result<T>,
    ) -> Result<T> {
        if !self.begin() {
            return Err(self.failure.take().expect("`begin` says why not"));
        }
        let begun = match is_filling {
            true => self.wire.transport.begin_cold_within(limit, ROWS_SILENCE),
            false => self.wire.transport.begin_cold(limit),
        };
        begun.map_err(WireError::from)?;
        let result = work(self).map_err(|error| self.cleaner.clean_error(error));
        // What was sent is not a statement in flight.
        self.out.clear();
        if let Err(error) = &result
            && error.class == ErrorClass::Disconnected
        {
            self.lost = Some(error.message.clone());
        }
        let restored = self.wire.transport.set_blocking(self.is_blocking, self.timeout_ns);
        restored.map_err(WireError::from)?;
        result
    }

    /// Passes messages to `on_message` until the server is ready or sends `stop` (then true). The
    /// first error is returned when the server is ready again.
    fn converse(&mut self, stop: u8, on_message: OnMessage<'_>) -> Result<bool> {
        let mut failure = None;
        let mut n_asides = 0;
        loop {
            let tag = self.wire.next_message()?;
            // Rows are bounded by whoever keeps them, but notices and results of others would come without end.
            n_asides += u64::from(tag != b'D');
            if n_asides > NOTICES_MOST {
                let why = format!("more than {NOTICES_MOST} notices or results for one statement");
                return Err(WireError::from(ProtocolError(why)).into());
            }
            let body = self.wire.body();
            match tag {
                b'E' => {
                    let message = ServerMessage::parse(body).map_err(WireError::from)?;
                    let error = failure.get_or_insert_with(|| message.to_error());
                    if message.is_fatal() {
                        return Err(error.clone());
                    }
                }
                b'N' => self.scanner.keep_notice(body).map_err(WireError::from)?,
                b'Z' => break,
                tag if tag == stop => return Ok(true),
                b'G' => {
                    let mut fail = Vec::new();
                    write_copy_fail(&mut fail);
                    self.wire.send(&fail)?;
                }
                b'D' | b'C' | b't' | b'T' => on_message(tag, body).map_err(WireError::from)?,
                b'n' | b'1' | b'2' | b'3' | b'I' | b's' | b'S' | b'A' | b'H' | b'd' | b'c' => {}
                other => return Err(WireError::from(ProtocolError::unexpected(other)).into()),
            }
        }
        self.wire.finish_message();
        failure.map_or(Ok(false), Err)
    }

    fn simple(&mut self, sql: &str, on_message: OnMessage<'_>) -> Result<()> {
        check_text(sql)?;
        self.out.clear();
        write_query(sql, &mut self.out);
        self.wire.send(&self.out)?;
        self.converse(b'Z', on_message).map(|_| ())
    }
}

impl Connection for PgConnection {
    fn shown(&self, text: &str) -> String {
        self.cleaner.clean(text)
    }

    fn dialect(&self) -> Dialect {
        Dialect::PostgreSql
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wire.transport.descriptor())
    }

    fn prepare(&mut self, statements: &[Statement]) -> Result<()> {
        let limit = if self.cold_limit.0 > 0 { self.cold_limit } else { SET_UP_LIMIT };
        let unnamed: Vec<Statement>;
        let statements = match self.parses_each {
            true => {
                unnamed = statements.iter().cloned().map(Statement::unnamed).collect();
                &unnamed
            }
            false => statements,
        };
        self.blocking(limit, |connection| {
            if !connection.prepared.is_empty() {
                connection.prepared.clear();
                connection.deallocate_all()?;
            }
            for (idx, statement) in statements.iter().enumerate() {
                if let Some(n_values) = statement.texts {
                    check_text(&statement.sql)?;
                    let name = format!("s{idx}");
                    connection.prepared.push(Prepared::of_texts(&name, statement, n_values));
                    continue;
                }
                match connection.prepare_one(&format!("s{idx}"), statement, false) {
                    Ok(template) => connection.prepared.push(Prepared {
                        template,
                        is_commit: is_commit(&statement.sql),
                        keeps_last: false,
                        unparsed: None,
                    }),
                    Err(mut error) => {
                        error.message = format!("{}, in: {}", error.message, statement.sql);
                        // The statements prepared before it are useless alone.
                        connection.prepared.clear();
                        if !error.class.loses_connection() {
                            connection.deallocate_all()?;
                        }
                        return Err(error);
                    }
                }
            }
            Ok(())
        })
    }

    fn prepare_at(&mut self, idx: usize, statement: &Statement) -> Result<()> {
        let limit = if self.cold_limit.0 > 0 { self.cold_limit } else { SET_UP_LIMIT };
        let replaces = idx < self.prepared.len();
        let unnamed = self.parses_each.then(|| statement.clone().unnamed());
        let statement = unnamed.as_ref().unwrap_or(statement);
        self.blocking(limit, |connection| {
            let template = connection.prepare_one(&format!("s{idx}"), statement, replaces)?;
            let is_commit = is_commit(&statement.sql);
            let prepared = Prepared { template, is_commit, keeps_last: false, unparsed: None };
            match connection.prepared.get_mut(idx) {
                Some(place) => *place = prepared,
                None => connection.prepared.push(prepared),
            }
            Ok(())
        })
    }

    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        if !self.may_write() {
            return;
        }
        let encoded = match self.prepared.get_mut(statement) {
            Some(Prepared { template, is_commit, keeps_last, unparsed }) => {
                if let Some(unparsed) = unparsed.as_mut().filter(|unparsed| !unparsed.is_sent) {
                    write_parse_named(&unparsed.name, &unparsed.sql, &mut self.out);
                    unparsed.is_sent = true;
                }
                template.encode(values, &mut self.out).map(|()| Expected {
                    prepared: Some(statement),
                    is_commit: *is_commit,
                    keeps_last: *keeps_last,
                    is_extended: true,
                    ..Expected::default()
                })
            }
            None => Err(refused("26000", "no statement was prepared under this index")),
        };
        match encoded {
            Ok(expected) => self.start(expected),
            Err(error) => {
                self.forget_unparsed();
                self.failure = Some(error);
            }
        }
    }

    fn send_text(&mut self, sql: &str) {
        let is_extended = self.is_pipelining;
        self.send_as(sql, Some(Expected { is_extended, ..Expected::default() }));
    }

    fn send_text_keeping(&mut self, sql: &str, n_columns: usize) {
        let is_possible = !self.is_pipelining && n_columns <= TEXT_COLUMNS.len();
        let kept = Expected { n_kept_columns: n_columns, ..Expected::default() };
        let kept = Expected { learns_columns: n_columns == 0, ..kept };
        self.send_as(sql, is_possible.then_some(kept));
    }

    fn send_text_keeping_last(&mut self, sql: &str) -> bool {
        let kept = Expected { keeps_last: true, ..Expected::default() };
        self.send_as(sql, (!self.is_pipelining).then_some(kept));
        true
    }

    fn begin_pipeline(&mut self) -> bool {
        if self.begin() {
            self.is_pipelining = true;
        }
        true
    }

    fn send_pipeline(&mut self) {
        if !std::mem::take(&mut self.is_pipelining) {
            return;
        }
        if self.failure.is_some() || self.awaited.is_empty() {
            self.awaited.clear();
            self.out.clear();
            return;
        }
        self.out.extend_from_slice(&SYNC);
        self.expect_next();
        self.write_out();
    }

    fn poll_reply(&mut self) -> Poll<Result<Reply>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        if !self.is_in_flight && !self.expect_next() {
            return Poll::Ready(Err(refused("HY010", "no statement is in flight")));
        }
        if self.has_unwritten() {
            self.write_out();
            if self.has_unwritten() {
                return Poll::Pending;
            }
        }
        match self.read_reply() {
            Ok(Poll::Ready(())) => Poll::Ready(self.complete()),
            Ok(Poll::Pending) if self.write_failure.is_some() => {
                let reason = "the server does not accept the statement".to_owned();
                Poll::Ready(Err(self.lose(WireError(reason))))
            }
            Ok(Poll::Pending) => Poll::Pending,
            Err(error) => Poll::Ready(Err(self.lose(error))),
        }
    }

    fn poll_received(&mut self) -> Poll<Result<Reply>> {
        if self.failure.is_some() || !(self.is_in_flight || self.expect_next()) {
            return Poll::Pending;
        }
        let scanned = match self.may_have_more && !self.is_blocking {
            true => self.read_reply().map(|poll| poll.is_ready()),
            false => self.scan(),
        };
        match scanned {
            Ok(true) => Poll::Ready(self.complete()),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(self.lose(error))),
        }
    }

    fn n_awaited(&self) -> usize {
        self.awaited.len() + usize::from(self.is_in_flight)
    }

    fn notices(&mut self) -> Vec<ErrorDetails> {
        let (notices, _) = self.scanner.notices.take();
        notices.iter().map(|notice| self.cleaner.clean_details(&notice.details)).collect()
    }

    fn kept_rows(&self) -> &KeptRows {
        &self.scanner.keeper.rows
    }

    fn last_rows(&self) -> &LastRows {
        &self.scanner.keeper.last
    }

    fn is_in_transaction(&self) -> Option<bool> {
        Some(self.scanner.is_in_transaction())
    }

    fn wants_write(&self) -> bool {
        // An error is returned by a poll at once: there is nothing to wait for.
        self.failure.is_some() || self.write_failure.is_some() || self.has_unwritten()
    }

    fn set_cold_limit(&mut self, limit_ns: u64) {
        self.cold_limit = Nanoseconds(limit_ns);
    }

    fn set_blocking(&mut self, blocking: bool, timeout_ns: u64) -> Result<()> {
        self.wire.transport.set_blocking(blocking, timeout_ns).map_err(WireError::from)?;
        self.is_blocking = blocking;
        self.timeout_ns = timeout_ns;
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<TextRows> {
        self.query_named(sql).map(|answer| answer.rows)
    }

    fn query_named(&mut self, sql: &str) -> Result<NamedRows> {
        let mut answer = NamedRows::default();
        let mut n_kept = 0;
        self.blocking(self.cold_limit, |connection| {
            connection.simple(sql, &mut |tag, body| {
                match tag {
                    b'D' => {
                        let row = row_texts(body)?;
                        n_kept += row_room(&row);
                        if n_kept > COLD_RESULT_MAX {
                            return Err(ProtocolError(too_much()));
                        }
                        answer.rows.push(row);
                    }
                    b'T' => answer.columns = column_names(body)?,
                    _ => {}
                }
                Ok(())
            })
        })?;
        for name in &mut answer.columns {
            *name = self.cleaner.clean(name);
        }
        Ok(answer)
    }

    fn copy_rows(&mut self, sql: &str, next_row: &mut dyn FnMut(&mut Row) -> bool) -> Result<u64> {
        self.blocking_as(Nanoseconds::ZERO, true, |connection| connection.copy(sql, next_row))
    }

    fn load_rows(
        &mut self,
        table: &str,
        columns: &[Name],
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64> {
        let columns: Vec<String> = columns.iter().map(|name| quote_name(name)).collect();
        let sql = format!("COPY {} ({}) FROM STDIN", quote_name(table), columns.join(", "));
        self.blocking_as(Nanoseconds::ZERO, true, |connection| {
            // The last commit makes tables durable: syncing each piece would gain nothing.
            connection.simple("BEGIN; SET LOCAL synchronous_commit = off", &mut |_, _| Ok(()))?;
            match connection.copy(&sql, next_row) {
                Ok(n_stored) => {
                    connection.simple("COMMIT", &mut |_, _| Ok(()))?;
                    Ok(n_stored)
                }
                Err(error) => {
                    if !error.class.loses_connection() {
                        // The first error is the one to report.
                        let _ = connection.simple("ROLLBACK", &mut |_, _| Ok(()));
                    }
                    Err(error)
                }
            }
        })
    }
}

impl Drop for PgConnection {
    /// Sends Terminate, so that the server does not log a lost client; it may get lost.
    fn drop(&mut self) {
        if self.lost.is_none() && self.n_awaited() == 0 {
            let _ = self.wire.transport.set_blocking(false, 0);
            let _ = self.wire.transport.write_some(&[b'X', 0, 0, 0, 4]);
        }
    }
}
