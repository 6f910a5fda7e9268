//! A connection to MariaDB or MySQL: the measured path, and cold calls.
//!
//! A statement costs one write and one read of the socket, and no allocation: the request is copied
//! from a template into a reused buffer, and the reply is followed by its packet lengths. Rare
//! cases are in functions marked cold. A pipeline is several requests in one write; the server
//! executes and answers each, also those after a failed one.

mod cold;

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::task::Poll;

use dyno_model::Name;
use dyno_units::Nanoseconds;
use dyno_workload::{
    ConnectError, Connection, Dialect, ErrorClass, KeptRows, NamedRows, Reply, Row, Statement,
    StatementError, TextRows, Value,
};

use super::channel::{Channel, closed, gone, lost};
use super::protocol::execute::ExecuteTemplate;
use super::protocol::keep::Column;
use super::protocol::reply::{Progress, ReplyReader};
use super::protocol::{
    HEADER_LEN, MAX_PAYLOAD, Negotiated, command, push_header, push_packets, status,
};
use super::{load, login};
use crate::Endpoint;
use crate::cleaner::Cleaner;
use crate::error::StatementResult as Result;
use crate::transport::{READS_MOST, SHORT_READ};
use crate::waiting::SET_UP_LIMIT;

/// Columns of a result, at most: servers have at most 4096.
const COLUMNS_MAX: u64 = 1 << 16;

/// Initial capacity of the request buffer, in bytes: enough for most statements.
const REQUEST_ROOM: usize = 4 * 1024;

#[derive(Debug)]
struct OwnStatement {
    template: ExecuteTemplate,
    // If its rows are kept: its columns, as far as they are known.
    columns: Option<Vec<Column>>,
}

// Hot fields first, so that they share cache lines: with many clients, each statement finds its caches cold.
#[repr(C, align(64))]
pub struct MySqlConnection {
    pub(super) channel: Channel,
    // The request in flight, and how much of it is written.
    request: Vec<u8>,
    n_written: usize,
    timeout_ns: u64,
    is_blocking: bool,
    // The last read may have left bytes in the socket.
    may_have_more: bool,
    is_pipelining: bool,
    // The text statement that is being sent keeps its rows.
    keeps_text: bool,
    // An error in sending, which `poll_reply` returns.
    kept: Option<Box<StatementError>>,
    // Why the connection can no longer be used.
    down: Option<Box<str>>,
    statements: Vec<OwnStatement>,
    // The prepared statement in flight.
    executing: Option<usize>,
    // The prepared statements of a pipeline (none: text) whose replies come after the one that is received.
    awaited: VecDeque<Option<usize>>,
    reader: ReplyReader,
    // The requests of a pipeline that is being buffered.
    pipeline: Vec<u8>,
    pub(super) negotiated: Negotiated,
    version: String,
    cleaner: Cleaner,
    // Names of the columns of the last cold result.
    names: Vec<String>,
    // Of a cold call; 0 for none.
    cold_limit: Nanoseconds,
    // Status bits of the last cold reply.
    status: u16,
    // Memory of the names and rows of the cold exchange that goes on, in bytes.
    n_kept: usize,
}

impl MySqlConnection {
    /// Blocks. Until another limit is set, cold calls have half a minute each, for set-up work.
    pub(super) fn open(
        endpoint: &Endpoint,
        catalog: Option<&str>,
    ) -> Result<MySqlConnection, ConnectError> {
        let mut login = login::open(endpoint, catalog)?;
        let set = login.channel.transport.set_blocking(true, 0);
        set.map_err(|error| endpoint.not_opened(error.to_string()))?;
        Ok(MySqlConnection {
            channel: login.channel,
            request: Vec::with_capacity(REQUEST_ROOM),
            n_written: 0,
            timeout_ns: 0,
            is_blocking: true,
            may_have_more: false,
            is_pipelining: false,
            keeps_text: false,
            kept: None,
            down: None,
            statements: Vec::new(),
            executing: None,
            awaited: VecDeque::new(),
            reader: ReplyReader::new(login.negotiated),
            pipeline: Vec::new(),
            negotiated: login.negotiated,
            version: login.version,
            cleaner: login.cleaner,
            names: Vec::new(),
            cold_limit: SET_UP_LIMIT,
            status: 0,
            n_kept: 0,
        })
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn is_encrypted(&self) -> bool {
        self.channel.transport.is_tls()
    }

    /// Whether a request may be sent now; else keeps the reason for `poll_reply`.
    #[inline]
    fn may_send(&mut self) -> bool {
        let is_idle = !self.reader.is_waiting() && self.awaited.is_empty();
        if (is_idle || self.is_pipelining) && self.down.is_none() && self.kept.is_none() {
            return true;
        }
        self.keep_why_not();
        false
    }

    #[cold]
    fn keep_why_not(&mut self) {
        if self.kept.is_none() {
            let error = match &self.down {
                Some(reason) => gone(reason),
                None => misuse("a statement is already in flight"),
            };
            self.keep(error);
        }
    }

    #[cold]
    fn keep(&mut self, error: StatementError) {
        self.kept = Some(Box::new(error));
    }

    /// Sends the request, whose reply begins with this sequence number.
    #[inline]
    fn send(&mut self, sequence: u8) {
        if self.is_pipelining {
            return self.write_down(sequence);
        }
        match self.keeps_text {
            false => {
                let columns =
                    self.executing.and_then(|idx| self.statements[idx].columns.as_deref());
                self.reader.begin(sequence, columns);
            }
            true => self.reader.begin_text(sequence),
        }
        self.n_written = 0;
        match self.channel.transport.write_some(&self.request) {
            // Nearly always: the socket accepts all bytes at once.
            Ok(n_taken) if n_taken == self.request.len() && !self.channel.transport.is_tls() => {
                self.n_written = n_taken;
            }
            taken => self.go_on_sending(taken),
        }
    }

    #[cold]
    fn go_on_sending(&mut self, taken: io::Result<usize>) {
        let result = match taken {
            Ok(0) if !self.request.is_empty() => Err(gone("the socket accepts no more data")),
            Ok(n_taken) => {
                self.n_written = n_taken;
                self.flush()
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(gone(&error.to_string())),
        };
        if let Err(error) = result {
            self.keep(error);
        }
    }

    fn write_down(&mut self, sequence: u8) {
        self.awaited.push_back(self.executing);
        if sequence == 1 {
            self.pipeline.extend_from_slice(&self.request);
        } else {
            self.keep(misuse("a statement of 16 MiB or more cannot be pipelined"));
        }
    }

    #[cold]
    fn forget_pipeline(&mut self) {
        for idx in self.awaited.drain(..).flatten() {
            // The server has not received the buffered types.
            self.statements[idx].template.unbind();
        }
        self.pipeline.clear();
        self.request.clear();
        self.n_written = 0;
    }

    /// Continues with the next reply of a pipeline; false if there is none.
    fn expect_next(&mut self) -> bool {
        let Some(executing) = self.awaited.pop_front() else { return false };
        self.executing = executing;
        let columns = executing.and_then(|idx| self.statements[idx].columns.as_deref());
        self.reader.begin(1, columns);
        true
    }

    /// Writes the remaining bytes, until the socket accepts no more.
    fn flush(&mut self) -> Result<()> {
        while self.wants_write() {
            match self.channel.transport.write_some(&self.request[self.n_written..]) {
                Ok(n_taken) => {
                    self.n_written += n_taken;
                    if n_taken == 0 && self.n_written < self.request.len() {
                        return Err(gone("the socket accepts no more data"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(gone(&error.to_string())),
            }
        }
        Ok(())
    }

    fn follow(&mut self) -> Option<Result<Reply, Box<StatementError>>> {
        loop {
            let (n_used, progress) = self.reader.advance(self.channel.buffer.unread());
            self.channel.buffer.consume(n_used);
            match progress {
                Progress::Partial => return None,
                Progress::Complete(result) => return Some(result),
                Progress::FileWanted(sequence) => {
                    self.request.clear();
                    self.n_written = 0;
                    push_header(&mut self.request, 0, sequence);
                    if let Err(error) = self.flush() {
                        return Some(Err(Box::new(error)));
                    }
                }
            }
        }
    }

    #[inline]
    fn ended(&mut self, result: Result<Reply, Box<StatementError>>) -> Result<Reply> {
        match result {
            Ok(reply) => Ok(self.completed(reply)),
            Err(error) => Err(self.failed(*error)),
        }
    }

    /// The reply is complete: notes its columns for the next execution.
    #[inline]
    fn completed(&mut self, reply: Reply) -> Reply {
        if let Some(idx) = self.executing
            && let Some(known) = &mut self.statements[idx].columns
            && let Some(columns) = self.reader.keeper.new_columns()
        {
            known.clear();
            known.extend_from_slice(columns);
        }
        reply
    }

    /// An error ends the statement in flight: notes its effect on the connection.
    #[cold]
    fn failed(&mut self, error: StatementError) -> StatementError {
        let error = self.cleaner.clean_error(error);
        self.reader = ReplyReader::new(self.negotiated);
        if let Some(own) = self.executing.and_then(|idx| self.statements.get_mut(idx)) {
            own.template.unbind();
        }
        if error.class == ErrorClass::Disconnected {
            self.awaited.clear();
            self.down.get_or_insert_with(|| error.message.as_str().into());
        }
        error
    }

    /// If the server closed the connection, its own message replaces the kept error.
    #[cold]
    fn take_kept_error(&mut self) -> StatementError {
        let Some(kept) = self.kept.take() else { return misuse("no statement is in flight") };
        if kept.class == ErrorClass::Disconnected && self.reader.is_waiting() {
            let said = match self.channel.transport.read_some(&mut self.channel.buffer) {
                Ok(n_read) if n_read > 0 => self.follow(),
                _ => None,
            };
            if let Some(Err(error)) = said {
                return self.failed(StatementError { class: ErrorClass::Disconnected, ..*error });
            }
        }
        if kept.class == ErrorClass::Disconnected {
            return self.failed(*kept);
        }
        *kept
    }

    /// Reads until the reply is complete, or nothing more is there, or after [`READS_MOST`] reads.
    #[inline]
    fn receive(&mut self) -> Poll<Result<Reply>> {
        for _ in 0..READS_MOST {
            let channel = &mut self.channel;
            if self.is_blocking && !channel.transport.wait_readable(self.timeout_ns) {
                return Poll::Pending;
            }
            let n_read = match channel.transport.read_some(&mut channel.buffer) {
                Ok(0) => return Poll::Ready(Err(self.failed(closed()))),
                Ok(n_read) => n_read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.may_have_more = false;
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(self.failed(lost(&error.to_string())))),
            };
            // A short read has emptied the socket: another read would only return `WouldBlock`.
            self.may_have_more = n_read >= SHORT_READ || self.channel.transport.is_tls();
            if let Some(reply) = self.reader.plain_rows(self.channel.buffer.unread()) {
                self.channel.buffer.clear();
                return Poll::Ready(Ok(reply));
            }
            if let Some(result) = self.follow() {
                return Poll::Ready(self.ended(result));
            }
            if !self.is_blocking && !self.may_have_more {
                return Poll::Pending;
            }
        }
        Poll::Pending
    }

    /// Whether the session takes a backslash in a literal for itself.
    pub(super) fn escapes_by_backslash(&self) -> bool {
        self.status & status::NO_BACKSLASH_ESCAPES == 0
    }
}

impl Connection for MySqlConnection {
    fn shown(&self, text: &str) -> String {
        self.cleaner.clean(text)
    }

    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.channel.transport.descriptor())
    }

    fn prepare(&mut self, statements: &[Statement]) -> Result<()> {
        if statements.iter().any(|statement| statement.is_unnamed || statement.texts.is_some()) {
            return Err(misuse("there are no unnamed statements, which are parsed each time"));
        }
        let limit = if self.cold_limit.0 > 0 { self.cold_limit } else { SET_UP_LIMIT };
        self.cold(limit, |connection| {
            for own in std::mem::take(&mut connection.statements) {
                let id = own.template.id;
                connection.channel.command(command::STMT_CLOSE, &id.to_le_bytes())?;
            }
            for statement in statements {
                let own = connection.prepare_one(statement)?;
                connection.statements.push(own);
            }
            Ok(())
        })
    }

    fn prepare_at(&mut self, idx: usize, statement: &Statement) -> Result<()> {
        let limit = if self.cold_limit.0 > 0 { self.cold_limit } else { SET_UP_LIMIT };
        self.cold(limit, |connection| {
            if let Some(own) = connection.statements.get(idx) {
                let id = own.template.id;
                connection.channel.command(command::STMT_CLOSE, &id.to_le_bytes())?;
            }
            let own = connection.prepare_one(statement)?;
            match connection.statements.get_mut(idx) {
                Some(place) => *place = own,
                None => connection.statements.push(own),
            }
            Ok(())
        })
    }

    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        if !self.may_send() {
            return;
        }
        let Some(OwnStatement { template, .. }) = self.statements.get_mut(statement) else {
            self.keep(misuse(&format!("statement {statement} was not prepared")));
            return;
        };
        if template.n_parameters() != values.len() {
            let (n_parameters, n_values) = (template.n_parameters(), values.len());
            self.keep(misuse(&format!(
                "statement {statement} takes {n_parameters} values and was given {n_values}"
            )));
            return;
        }
        self.executing = Some(statement);
        let mut sequence = 1;
        if !template.write(values, &mut self.request) {
            let payload = self.request.split_off(HEADER_LEN);
            self.request.clear();
            sequence = push_packets(&mut self.request, &payload, 0);
        }
        self.send(sequence);
    }

    fn send_text(&mut self, sql: &str) {
        if !self.may_send() {
            return;
        }
        self.executing = None;
        self.request.clear();
        let len = 1 + sql.len();
        let mut sequence = 1;
        if len < MAX_PAYLOAD {
            push_header(&mut self.request, len, 0);
            self.request.push(command::QUERY);
            self.request.extend_from_slice(sql.as_bytes());
        } else {
            let payload = [&[command::QUERY], sql.as_bytes()].concat();
            sequence = push_packets(&mut self.request, &payload, 0);
        }
        self.send(sequence);
    }

    fn send_text_keeping(&mut self, sql: &str, _n_columns: usize) {
        if self.is_pipelining {
            self.keep(misuse("the rows of text in a pipeline cannot be kept"));
            return;
        }
        self.keeps_text = true;
        self.send_text(sql);
        self.keeps_text = false;
    }

    fn begin_pipeline(&mut self) -> bool {
        self.is_pipelining = self.may_send();
        true
    }

    fn send_pipeline(&mut self) {
        if !std::mem::take(&mut self.is_pipelining) {
            return;
        }
        if self.kept.is_some() || self.awaited.is_empty() {
            return self.forget_pipeline();
        }
        std::mem::swap(&mut self.request, &mut self.pipeline);
        self.pipeline.clear();
        self.n_written = 0;
        self.expect_next();
        if let Err(error) = self.flush() {
            self.keep(error);
        }
    }

    fn poll_received(&mut self) -> Poll<Result<Reply>> {
        if self.kept.is_some() || !(self.reader.is_waiting() || self.expect_next()) {
            return Poll::Pending;
        }
        match self.follow() {
            Some(result) => Poll::Ready(self.ended(result)),
            None if self.may_have_more && !self.is_blocking => self.receive(),
            None => Poll::Pending,
        }
    }

    fn n_awaited(&self) -> usize {
        self.awaited.len() + usize::from(self.reader.is_waiting())
    }

    fn poll_reply(&mut self) -> Poll<Result<Reply>> {
        if self.kept.is_some() {
            return Poll::Ready(Err(self.take_kept_error()));
        }
        if !self.reader.is_waiting() && !self.expect_next() {
            return Poll::Ready(Err(misuse("no statement is in flight")));
        }
        if self.wants_write()
            && let Err(error) = self.flush()
        {
            self.keep(error);
            return Poll::Ready(Err(self.take_kept_error()));
        }
        if !self.channel.buffer.unread().is_empty()
            && let Some(result) = self.follow()
        {
            return Poll::Ready(self.ended(result));
        }
        self.receive()
    }

    fn kept_rows(&self) -> &KeptRows {
        &self.reader.keeper.rows
    }

    #[inline]
    fn wants_write(&self) -> bool {
        // An error in sending is returned by a poll at once: there is nothing to wait for.
        self.kept.is_some()
            || self.n_written < self.request.len()
            || self.channel.transport.wants_write()
    }

    fn set_cold_limit(&mut self, limit_ns: u64) {
        self.cold_limit = Nanoseconds(limit_ns);
    }

    fn set_blocking(&mut self, blocking: bool, timeout_ns: u64) -> Result<()> {
        let result = self.channel.transport.set_blocking(blocking, timeout_ns);
        result.map_err(|error| lost(&error.to_string()))?;
        self.is_blocking = blocking;
        self.timeout_ns = timeout_ns;
        Ok(())
    }

    /// Invalid UTF-8 becomes replacement characters. Rows of several results follow one another.
    fn query(&mut self, sql: &str) -> Result<TextRows> {
        self.cold(self.cold_limit, |connection| {
            let mut rows = TextRows::new();
            connection.exchange_text(sql, &mut |row| rows.push(row))?;
            Ok(rows)
        })
    }

    fn query_named(&mut self, sql: &str) -> Result<NamedRows> {
        self.names.clear();
        let rows = self.query(sql)?;
        Ok(NamedRows { columns: std::mem::take(&mut self.names), rows })
    }

    /// By LOAD DATA LOCAL INFILE in pieces, each committed; if the server has that off, by INSERTs
    /// of many rows. A row that is not stored exactly is an error.
    fn load_rows(
        &mut self,
        table: &str,
        columns: &[Name],
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64> {
        self.cold_as(Nanoseconds::ZERO, true, |connection| {
            load::load_rows(connection, table, columns, next_row)
        })
    }
}

impl Drop for MySqlConnection {
    /// Sends COM_QUIT, so that the server does not count the connection as aborted.
    fn drop(&mut self) {
        let is_idle = self.n_awaited() == 0 && self.down.is_none() && !self.wants_write();
        if is_idle && self.channel.transport.set_blocking(false, 0).is_ok() {
            // A server that is gone needs no COM_QUIT.
            let _ = self.channel.transport.write_some(&[1, 0, 0, 0, command::QUIT]);
        }
    }
}

#[cold]
fn misuse(what: &str) -> StatementError {
    StatementError::new(ErrorClass::Refused, "usage", what)
}

#[cfg(test)]
mod tests;
