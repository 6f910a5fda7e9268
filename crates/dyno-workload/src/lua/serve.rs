//! Requests of a script answered at once: nothing else waits, or no wait is needed.

use std::sync::Arc;

use dyno_sysbench::{Call, Counter, Held, Level, ParamKind, Reply, Request, Setup, State};

use super::links::{Connected, Links};
use super::statistics::ClientCells;
use super::{Settings, driver_of};
use crate::pgbench::server_message;
use crate::{Dialect, Session, SqlState, StatementClass, StatementError};

pub(super) struct Runner {
    pub(super) settings: Arc<Settings>,
    pub(super) state: State,
    pub(super) cells: Arc<ClientCells>,
    pub(super) links: Links,
    pub(super) driver: &'static str,
}

/// The message of an error, without its detail and hint.
fn alone(error: &StatementError) -> &str {
    error.details.as_ref().map_or(&error.message, |details| &details.message)
}

/// States of PostgreSQL after which sysbench begins an event again.
const RETRIED_STATES: [&str; 3] = ["40P01", "40001", "23505"];

impl Runner {
    /// Loads a script and runs its text, on the connection `main` if there is one.
    /// Fails with how its text ended.
    pub(super) fn load(
        settings: &Arc<Settings>,
        (tid, seed): (usize, [u64; 2]),
        main: Option<Session>,
        dialect: Dialect,
        cells: Arc<ClientCells>,
    ) -> Result<Runner, Ended> {
        let (settings, driver) = (Arc::clone(settings), driver_of(dialect));
        let counters = Arc::clone(&cells.counters);
        let setup = Setup { program: &settings.program, tid, seed, driver, counters };
        let state = State::load(&setup).map_err(Ended::of_script)?;
        let links = Links::new(main, settings.connector.clone());
        let mut runner = Runner { settings, state, cells, links, driver };
        match runner.call(Call::Body) {
            None | Some(Ended::Well | Ended::False) => Ok(runner),
            Some(ended) => Err(ended),
        }
    }

    /// Exports the options of its settings.
    /// Fails if they are not declared as sysbench wants them.
    pub(super) fn export(&self) -> Result<(), Ended> {
        let Settings { options, globals, .. } = self.settings.as_ref();
        // It sets what a help text shows.
        let declared = self.state.options();
        declared.and_then(|_| self.state.export(options, globals)).map_err(Ended::of_script)
    }

    pub(super) fn is_pgsql(&self) -> bool {
        self.driver == "pgsql"
    }

    /// The number and the state of an error, as the driver has them.
    fn number_and_state<'e>(&self, error: &'e StatementError) -> (u32, &'e str) {
        if self.is_pgsql() {
            return (0, error.code.as_str());
        }
        // Client libraries have one state for all errors of their own, and this number if there is no reply.
        let state = error.state.as_ref().map_or("HY000", SqlState::as_str);
        let number = if error.class.loses_connection() { 2013 } else { 0 };
        (error.code.parse().unwrap_or(number), state)
    }

    fn log(&self, text: &str) {
        self.settings.program.host.log(Level::Fatal, text);
    }

    pub(super) fn is_ignored(&self, error: &StatementError) -> bool {
        match self.is_pgsql() {
            true => RETRIED_STATES.contains(&error.code.as_str()),
            false => self.settings.ignored.contains(&self.number_and_state(error).0.to_string()),
        }
    }

    /// Calls a function, and answers at once what it asks for. None when a client's preparations are over.
    pub(super) fn call(&mut self, call: Call<'_>) -> Option<Ended> {
        if let Err(message) = self.state.begin(call) {
            return Some(Ended::of_script(message));
        }
        let mut reply = Reply::Done;
        loop {
            match self.state.resume(reply) {
                Request::Ready => return None,
                Request::Ended(true) => return Some(Ended::False),
                Request::Ended(false) => return Some(Ended::Well),
                Request::Broken(of, message) => return Some(Ended::Broken(of, message)),
                Request::Exit(code) => return Some(Ended::Exit(code)),
                request => reply = self.serve(&request),
            }
        }
    }

    /// Counts an error and reports it unless ignored. `call` is what failed, in the driver's words.
    pub(super) fn refused(&self, error: &StatementError, call: &str, sql: &str) -> Reply {
        let is_ignored = self.is_ignored(error);
        let (number, state) = self.number_and_state(error);
        // A script may ignore what the options do not. A connection that is replaced counts as a reconnect.
        if !(is_ignored && error.class.loses_connection()) {
            self.cells.counters.add(Counter::Error, 1);
        }
        if !is_ignored && !self.settings.continues {
            let message = alone(error);
            if self.is_pgsql() {
                self.log(&format!("{call} failed: 7 {message}"));
                self.log(&format!("failed query was: {sql}"));
            } else {
                self.log(&format!("{call} returned error {number} ({message}) for query '{sql}'"));
            }
        }
        let (state, message) = (state.to_owned(), alone(error).to_owned());
        Reply::Refused { number, state, message, is_ignored }
    }

    /// The name of the driver's function that executes a text.
    pub(super) fn text_call(&self) -> &'static str {
        if self.is_pgsql() { "PQexec()" } else { "mysql_drv_query()" }
    }

    /// Executes a text on a connection that blocks.
    fn query(&mut self, number: usize, sql: &str) -> Reply {
        let Some(connection) = self.links.cold(number) else { return closed() };
        match connection.query_named(sql) {
            Ok(answer) => {
                let n_columns = answer.columns.len();
                let n_rows = answer.rows.len() as u64;
                // What it has changed is not known here.
                let changed = u64::from(StatementClass::of_text(sql) == StatementClass::Write);
                self.cells.answered(n_columns > 0, changed);
                self.links.keep(number, answer.rows, n_columns);
                if n_columns > 0 { Reply::Rows(n_rows, n_columns) } else { Reply::Executed }
            }
            Err(error) => {
                let reply = self.refused(&error, self.text_call(), sql);
                if self.is_pgsql()
                    && self.is_ignored(&error)
                    && let Some(connection) = self.links.cold(number)
                {
                    // If this fails, so does the next statement, which reports it.
                    let _ = connection.query("ROLLBACK");
                }
                reply
            }
        }
    }

    /// The text of a prepared statement with the values of the latest request.
    pub(super) fn emulated(&self, number: usize, statement: usize) -> Option<String> {
        let made = self.links.statement(number, statement)?;
        let (values, bytes) = (self.state.values(), self.state.bytes());
        Some(with_values(&made.sql, &made.kinds, values, bytes))
    }

    pub(super) fn prepare(&mut self, number: usize) -> Reply {
        let sql = self.state.sql().to_owned();
        match self.links.prepare(number, &sql, !self.settings.prepares) {
            Ok(statement) => Reply::Number(statement),
            Err(error) => {
                let (errno, state) = self.number_and_state(&error);
                let ends = [" (when preparing `", ", in: "];
                let cut = ends.iter().filter_map(|end| error.message.find(end)).min();
                let message = &error.message[..cut.unwrap_or(error.message.len())];
                if self.is_pgsql() {
                    let sent = Dialect::PostgreSql.placeholders(&sql);
                    let said = server_message(&error, Some(&sent));
                    self.log(&format!("PQprepare() failed: {said}\n"));
                } else {
                    self.log("mysql_stmt_prepare() failed");
                    self.log(&format!("MySQL error: {errno} \"{message}\""));
                }
                let (state, message) = (state.to_owned(), message.to_owned());
                Reply::Unprepared { number: errno, state, message }
            }
        }
    }

    pub(super) fn connect(&mut self) -> Connected {
        if self.settings.is_without_server {
            let why = "the script's text names neither `sysbench.sql` nor modules, so Dyno is not connected to a server; \
                       name one of them, in a comment for example";
            return Connected::Refused(why.to_owned());
        }
        self.settings.statistics.connected();
        self.links.connect()
    }

    pub(super) fn not_connected(&self, why: &str) -> Reply {
        self.log(why);
        Reply::No
    }

    /// Answers what does not begin or end an event.
    pub(super) fn serve(&mut self, request: &Request) -> Reply {
        match request {
            Request::Connect => {
                return match self.connect() {
                    Connected::Number(number) => Reply::Number(number),
                    Connected::Again => Reply::Number(0),
                    Connected::Refused(why) => self.not_connected(&why),
                };
            }
            Request::Disconnect(number) => self.links.disconnect(*number),
            Request::Reconnect(number) => match self.links.reopen(*number) {
                Ok(()) => self.cells.counters.add(Counter::Reconnect, 1),
                Err(why) => return self.not_connected(&why),
            },
            Request::Query(number) => {
                let sql = self.state.sql().to_owned();
                return self.query(*number, &sql);
            }
            Request::Prepare(number) => return self.prepare(*number),
            Request::Bind(number, statement, kinds) => {
                self.links.bind(*number, *statement, kinds.clone());
            }
            Request::Execute(number, statement) => {
                let sql = self.emulated(*number, *statement);
                return sql.map_or_else(closed, |sql| self.query(*number, &sql));
            }
            Request::Close(number, statement) => self.links.close(*number, *statement),
            Request::Fetch(number, row) => return Reply::Row(self.links.row(*number, *row)),
            Request::Sleep(us) => self.settings.program.host.sleep(*us),
            Request::NoteError(..) => {}
            // There are no events here.
            _ => return Reply::No,
        }
        Reply::Done
    }
}

fn closed() -> Reply {
    let [state, message] = ["HY000", "the connection is closed"].map(str::to_owned);
    Reply::Refused { number: 2006, state, message, is_ignored: false }
}

// Scripts outside of a step: their commands and hooks. All calls block.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Well,
    /// It returned `false`.
    False,
    Exit(i32),
    /// By an error: the function that failed, or `script`, and the message.
    Broken(String, String),
}

impl Ended {
    pub(super) fn of_script(message: String) -> Ended {
        Ended::Broken("script".to_owned(), message)
    }

    /// What is reported of a function that has failed.
    pub fn report(function: &str, message: &str) -> String {
        let of = if function == "script" { "" } else { &format!("`{function}' function failed: ") };
        format!("{of}{message}")
    }
}

/// A script in a state of its own, with connections that it opens itself.
pub struct Single {
    runner: Runner,
}

impl Single {
    /// Options are exported later. Fails with how the script's text ended.
    pub fn new(
        settings: &Arc<Settings>,
        tid: usize,
        seed: [u64; 2],
        dialect: Dialect,
    ) -> Result<Single, Ended> {
        let runner = Runner::load(settings, (tid, seed), None, dialect, Arc::default())?;
        Ok(Single { runner })
    }

    pub fn state(&self) -> &State {
        &self.runner.state
    }

    /// Calls a function, and waits until it has ended.
    pub fn call(&mut self, call: Call<'_>) -> Ended {
        self.runner.call(call).unwrap_or(Ended::Well)
    }

    /// Its hooks are not called any more.
    pub fn end_reports(&self) {
        // What cannot be ended has not begun for want of memory.
        let _ = self.runner.state.end_reports();
    }

    /// Exports the options of its settings.
    /// Fails if they are not declared as sysbench wants them.
    pub fn export(&self) -> Result<(), Ended> {
        self.runner.export()
    }
}

// Statements whose values are written into their texts.

fn with_values(sql: &str, kinds: &[ParamKind], values: &[Held], bytes: &[u8]) -> String {
    let mut out = String::with_capacity(sql.len() + 16 * values.len());
    let mut next = 0;
    let mut quote = None;
    for c in sql.chars() {
        match (c, quote) {
            ('?', None) => {
                let kind = kinds.get(next).copied().unwrap_or_default();
                push(&mut out, kind, values.get(next).copied().unwrap_or(Held::Null), bytes);
                next += 1;
                continue;
            }
            ('\'' | '"' | '`', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        out.push(c);
    }
    out
}

fn push(out: &mut String, kind: ParamKind, value: Held, bytes: &[u8]) {
    use std::fmt::Write;
    // Writing into a String cannot fail.
    match (value, kind) {
        (Held::Null, _) => out.push_str("NULL"),
        (Held::Number(number), ParamKind::Real) => drop(write!(out, "{number}")),
        (Held::Number(number), ParamKind::Text) => drop(write!(out, "'{number}'")),
        (Held::Number(number), ParamKind::Integer) => drop(write!(out, "{}", number as i64)),
        (Held::Text(start, end), _) => {
            let text = String::from_utf8_lossy(&bytes[start..end]).replace('\'', "''");
            out.extend(["'", &text, "'"]);
        }
    }
}

#[cfg(test)]
mod emulated {
    use super::*;

    #[test]
    fn values_are_written_into_the_text() {
        let kinds = [ParamKind::Integer, ParamKind::Text, ParamKind::Real, ParamKind::Integer];
        let values = [Held::Number(5.0), Held::Text(0, 3), Held::Number(0.5), Held::Null];
        let sql = "SELECT '?', ? FROM t WHERE a = ? AND b > ? AND c = ?";
        assert_eq!(
            with_values(sql, &kinds, &values, b"x'y"),
            "SELECT '?', 5 FROM t WHERE a = 'x''y' AND b > 0.5 AND c = NULL"
        );
    }
}
