//! A connection to a server of MongoDB's protocol. Under load an operation is one write from a template in a reused
//! buffer, and one read; the answer is parsed where it was received.

use std::io;
use std::os::fd::BorrowedFd;
use std::task::Poll;

use bson::raw::{RawDocument, RawDocumentBuf};
use dyno_model::Name;
use dyno_units::Nanoseconds;
use dyno_workload::documents::DocumentCommand;
use dyno_workload::{
    Connection, Dialect, ErrorClass, Reply, Row, Statement, StatementError, TextRows, Value,
};

use super::reply;
use super::template::Template;
use super::wire::{MESSAGE_MAX, begin_message, end_message, read_message, write_message};
use crate::cleaner::Cleaner;
use crate::error::StatementResult as Result;
use crate::transport::{READS_MOST, ROWS_SILENCE, ReadBuffer, SHORT_READ, Transport};
use crate::waiting::SET_UP_LIMIT;

pub(super) const PING: &str = "ping";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InFlight {
    Nothing,
    Message(i32),
    Ignored,
}

pub(super) struct MongoConnection {
    transport: Transport,
    received: ReadBuffer,
    database: String,
    cleaner: Cleaner,
    templates: Vec<Template>,
    /// The message that is being sent; its first `n_written` bytes are on their way.
    out: Vec<u8>,
    n_written: usize,
    in_flight: InFlight,
    number: i32,
    answer_max: usize,
    /// An error to be returned by the next `poll_reply`.
    failure: Option<StatementError>,
    /// Why writing failed: the reason that the server gave may still be there to be read.
    write_failure: Option<String>,
    lost: Option<String>,
    is_blocking: bool,
    timeout_ns: u64,
    // Of a cold call; 0 for none.
    cold_limit: Nanoseconds,
}

pub(super) fn refused(message: impl Into<String>) -> StatementError {
    StatementError::new(ErrorClass::Refused, "documents", message)
}

impl MongoConnection {
    /// On an open stream; commands go to this database. Answers are short until [`MongoConnection::logged_in`].
    pub(super) fn new(transport: Transport, database: &str, cleaner: Cleaner) -> MongoConnection {
        MongoConnection {
            transport,
            received: ReadBuffer::new(),
            database: database.to_owned(),
            cleaner,
            templates: Vec::new(),
            out: Vec::with_capacity(4096),
            n_written: 0,
            in_flight: InFlight::Nothing,
            number: 0,
            answer_max: super::wire::LOGIN_MAX,
            failure: None,
            write_failure: None,
            lost: None,
            is_blocking: false,
            timeout_ns: 0,
            cold_limit: SET_UP_LIMIT,
        }
    }

    /// The login has succeeded: from here on nothing blocks but cold calls, and answers may be long.
    pub(super) fn logged_in(&mut self) -> io::Result<()> {
        self.answer_max = MESSAGE_MAX;
        self.transport.set_blocking(false, 0)
    }

    pub(super) fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }

    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// Why the connection is gone, as far as that can be seen without asking the server.
    pub(super) fn lost(&mut self) -> Option<String> {
        if self.lost.is_none() && self.in_flight == InFlight::Nothing {
            let why = match self.transport.read_now(&mut self.received) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                Err(error) => Some(error.to_string()),
                Ok(0) => Some(closed()),
                Ok(_) => Some("the server sent an unsolicited message".to_owned()),
            };
            self.lost = why.map(|why| self.cleaner.clean(&why));
        }
        self.lost.clone()
    }

    /// Whether an operation may be sent; else the next `poll_reply` says why not.
    fn begin(&mut self) -> bool {
        if self.in_flight == InFlight::Nothing && self.failure.is_none() && self.lost.is_none() {
            self.out.clear();
            self.n_written = 0;
            self.number = self.number.wrapping_add(1);
            return true;
        }
        if self.failure.is_none() {
            self.failure = Some(match &self.lost {
                Some(why) => disconnected(why.clone()),
                None => refused("the operation before this one is still in flight"),
            });
        }
        false
    }

    fn has_unwritten(&self) -> bool {
        self.n_written < self.out.len() || self.transport.wants_write()
    }

    fn write_out(&mut self) {
        if let Err(error) = self.transport.write_rest(&self.out, &mut self.n_written) {
            self.write_failure = Some(error.to_string());
        }
    }

    /// Reads until the answer is there or nothing more is, with a bounded number of reads. True if it is there.
    fn receive(&mut self, number: i32) -> Result<bool, String> {
        if self.has_answer(number)? {
            return Ok(true);
        }
        for _ in 0..READS_MOST {
            if self.is_blocking && !self.transport.wait_readable(self.timeout_ns) {
                return Ok(false);
            }
            let n_read = match self.transport.read_some(&mut self.received) {
                Ok(0) => return Err(closed()),
                Ok(n_read) => n_read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.to_string()),
            };
            if self.has_answer(number)? {
                return Ok(true);
            }
            // A short read has emptied the socket.
            if !self.is_blocking && n_read < SHORT_READ && !self.transport.is_tls() {
                return Ok(false);
            }
        }
        Ok(false)
    }

    fn has_answer(&self, number: i32) -> Result<bool, String> {
        let message = read_message(self.received.unread(), self.answer_max);
        match message.map_err(|error| error.to_string())? {
            None => Ok(false),
            Some(message) if message.answers == number => Ok(true),
            Some(_) => Err("the server sent an unexpected reply".to_owned()),
        }
    }

    fn take_answer<T>(&mut self, take: impl FnOnce(&RawDocument) -> T) -> Result<T, String> {
        self.in_flight = InFlight::Nothing;
        let read = read_message(self.received.unread(), self.answer_max);
        let message = read.map_err(|error| error.to_string())?.ok_or_else(closed)?;
        let taken = take(message.body);
        let length = message.length;
        self.received.consume(length);
        Ok(taken)
    }

    #[cold]
    fn lose(&mut self, why: &str) -> StatementError {
        self.in_flight = InFlight::Nothing;
        let why = match self.write_failure.take() {
            Some(writing) if writing != why => format!("{why} (while sending: {writing})"),
            _ => why.to_owned(),
        };
        let why = self.cleaner.clean(&why);
        self.lost = Some(why.clone());
        disconnected(why)
    }

    /// What the server says of an operation, cleaned; a server that goes down loses its connections.
    #[cold]
    fn failed(&mut self, error: StatementError) -> StatementError {
        let error = self.cleaner.clean_error(error);
        if error.class.loses_connection() {
            self.lost = Some(error.message.clone());
        }
        error
    }

    /// Sends a command to a database and waits for its answer, whatever it says. Cold.
    pub(super) fn ask(&mut self, command: &RawDocument) -> Result<RawDocumentBuf> {
        let limit = self.cold_limit;
        self.converse((limit, None), |number, out| write_message(number, command, out))
    }

    /// The same; an answer that reports an error is one.
    pub(super) fn command(&mut self, command: &RawDocument) -> Result<RawDocumentBuf> {
        let answer = self.ask(command)?;
        match reply::read(&answer) {
            Ok(_) => Ok(answer),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Sends the message that `write` makes, and waits for its answer: in total at most `limit` (0: no limit),
    /// and at most `silence` without a byte.
    fn converse(
        &mut self,
        (limit, silence): (Nanoseconds, Option<Nanoseconds>),
        write: impl FnOnce(i32, &mut Vec<u8>),
    ) -> Result<RawDocumentBuf> {
        if !self.begin() {
            return Err(self.failure.take().expect("`begin` says why not"));
        }
        write(self.number, &mut self.out);
        let talked = self.talk(limit, silence);
        self.out.clear();
        self.n_written = 0;
        let restored = self.transport.set_blocking(self.is_blocking, self.timeout_ns);
        let answer = talked.and_then(|answer| {
            restored.map_err(|error| error.to_string())?;
            Ok(answer)
        });
        answer.map_err(|why| self.lose(&why))
    }

    fn talk(
        &mut self,
        limit: Nanoseconds,
        silence: Option<Nanoseconds>,
    ) -> Result<RawDocumentBuf, String> {
        let begun = match silence {
            Some(silence) => self.transport.begin_cold_within(limit, silence),
            None => self.transport.begin_cold(limit),
        };
        begun.map_err(|error| error.to_string())?;
        self.write_out();
        if let Some(why) = &self.write_failure {
            return Err(why.clone());
        }
        while !self.has_answer(self.number)? {
            match self.transport.read_some(&mut self.received) {
                Ok(0) => return Err(closed()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        self.take_answer(RawDocument::to_owned)
    }

    /// Inserts documents, which `documents` has one after the other. Returns how many were stored.
    pub(super) fn insert(&mut self, collection: &str, documents: &[u8]) -> Result<u64> {
        let body =
            bson::rawdoc! { "insert": collection, "ordered": true, "$db": self.database.as_str() };
        let limits = (Nanoseconds::ZERO, Some(ROWS_SILENCE));
        let answer = self.converse(limits, |number, out| {
            let start = begin_message(number, &body, out);
            // A section with a sequence of documents: its kind, its length, its name.
            const NAME: &[u8] = b"documents\0";
            out.push(1);
            let length = (4 + NAME.len() + documents.len()) as u32;
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(NAME);
            out.extend_from_slice(documents);
            end_message(start, out);
        })?;
        match reply::read(&answer) {
            Ok(reply) => Ok(reply.affected),
            Err(error) => Err(self.failed(error)),
        }
    }
}

fn closed() -> String {
    "the server closed the connection".to_owned()
}

fn disconnected(why: String) -> StatementError {
    StatementError::new(ErrorClass::Disconnected, "network", why)
}

impl Connection for MongoConnection {
    /// None is spoken.
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn speaks_sql(&self) -> bool {
        false
    }

    fn shown(&self, text: &str) -> String {
        self.cleaner.clean(text)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.transport.descriptor())
    }

    fn prepare(&mut self, statements: &[Statement]) -> Result<()> {
        let template = |statement: &Statement| {
            let command: DocumentCommand = statement.sql.parse()?;
            Template::new(&command, &self.database)
        };
        let templates: Result<Vec<Template>, String> = statements.iter().map(template).collect();
        self.templates = templates.map_err(refused)?;
        Ok(())
    }

    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        if !self.begin() {
            return;
        }
        let template = self.templates.get(statement);
        if template.is_some_and(|template| template.write(self.number, values, &mut self.out)) {
            self.in_flight = InFlight::Message(self.number);
            self.write_out();
        } else {
            self.out.clear();
            self.failure = Some(refused("no operation with these values was prepared"));
        }
    }

    fn send_text(&mut self, sql: &str) {
        if !self.begin() {
            return;
        }
        match sql {
            // Each operation is a transaction of its own.
            "ROLLBACK" => self.in_flight = InFlight::Ignored,
            _ => self.failure = Some(no_sql(sql)),
        }
    }

    fn poll_reply(&mut self) -> Poll<Result<Reply>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        let number = match self.in_flight {
            InFlight::Message(number) => number,
            InFlight::Nothing => return Poll::Ready(Err(refused("no operation is in flight"))),
            InFlight::Ignored => {
                self.in_flight = InFlight::Nothing;
                return Poll::Ready(Ok(Reply::default()));
            }
        };
        if self.has_unwritten() {
            self.write_out();
            if self.has_unwritten() {
                return Poll::Pending;
            }
        }
        match self.receive(number) {
            Ok(false) if self.write_failure.is_some() => {
                Poll::Ready(Err(self.lose("the server does not accept the operation")))
            }
            Ok(false) => Poll::Pending,
            Ok(true) => match self.take_answer(reply::read) {
                Ok(Ok(reply)) => Poll::Ready(Ok(reply)),
                Ok(Err(error)) => Poll::Ready(Err(self.failed(error))),
                Err(why) => Poll::Ready(Err(self.lose(&why))),
            },
            Err(why) => Poll::Ready(Err(self.lose(&why))),
        }
    }

    fn n_awaited(&self) -> usize {
        usize::from(self.in_flight != InFlight::Nothing)
    }

    fn wants_write(&self) -> bool {
        // What needs no answer is returned by a poll at once: there is nothing to wait for.
        self.failure.is_some()
            || self.in_flight == InFlight::Ignored
            || self.write_failure.is_some()
            || self.has_unwritten()
    }

    fn set_blocking(&mut self, blocking: bool, timeout_ns: u64) -> Result<()> {
        let set = self.transport.set_blocking(blocking, timeout_ns);
        set.map_err(|error| disconnected(error.to_string()))?;
        self.is_blocking = blocking;
        self.timeout_ns = timeout_ns;
        Ok(())
    }

    fn set_cold_limit(&mut self, limit_ns: u64) {
        self.cold_limit = Nanoseconds(limit_ns);
    }

    fn query(&mut self, sql: &str) -> Result<TextRows> {
        if sql == PING {
            let ping = bson::rawdoc! { "ping": 1, "$db": self.database.as_str() };
            return self.command(&ping).map(|_| TextRows::new());
        }
        match sql.parse() {
            Ok(command) => super::cold::carry_out(self, &command),
            Err(_) => Err(no_sql(sql)),
        }
    }

    fn load_rows(
        &mut self,
        table: &str,
        columns: &[Name],
        next_row: &mut dyn FnMut(&mut Row) -> bool,
    ) -> Result<u64> {
        super::cold::load(self, table, columns, next_row)
    }
}

fn no_sql(sql: &str) -> StatementError {
    refused(format!("MongoDB's protocol carries no SQL: {}", dyno_units::clean_text(sql)))
}
