//! Runs the commands of a transaction.

use std::future::poll_fn;

use dyno_pgbench::{
    Action, Expression, Keeps, Part, Scope, Slot, Sql, Value as ScriptValue, is_valid_name,
};
use dyno_units::Nanoseconds;

use super::client::Client;
use super::{Protocol, message_of, server_message};
use crate::{COPY_REFUSED, ErrorClass, ErrorDetails, Pace, Session, StatementError, Value};

/// Why a transaction was not done to its end.
pub(super) enum Stop {
    /// The server refused a command, and the client goes on.
    Failed { error: StatementError, command: usize },
    /// The client cannot go on; why was reported.
    Aborted(StatementError),
}

/// Values of a statement that need no memory of their own.
const FEW: usize = 16;

/// A pipeline that is open: how many replies are to come.
#[derive(Default)]
pub(super) struct Pipeline {
    is_open: bool,
    n_sent: usize,
}

fn script_error(message: impl Into<String>) -> StatementError {
    StatementError::new(ErrorClass::Refused, "script", message)
}

impl Client {
    pub(super) async fn commands(
        &mut self,
        script: usize,
        session: &mut Session,
        pace: &dyn Pace,
    ) -> Result<(), Stop> {
        let shared = std::sync::Arc::clone(&self.shared);
        let dyno_pgbench::Script { title, commands } = &shared.settings.scripts[script].script;
        let is_measured = shared.settings.measures_commands;
        if shared.settings.is_debugging {
            self.tell(&format!("executing script \"{title}\""));
        }
        self.pipeline = Pipeline::default();
        let (mut at, mut came_by_jump) = (0, false);
        while let Some(command) = commands.get(at) {
            self.place = Place { script, command: at };
            let began = if is_measured { pace.now() } else { Nanoseconds::ZERO };
            let by_jump = std::mem::take(&mut came_by_jump);
            let mut next = at + 1;
            if shared.settings.is_debugging {
                self.tell_of_command(command);
            }
            match &command.action {
                Action::Sql(sql) if self.pipeline.is_open => {
                    self.push(sql, session)?;
                    self.pipeline.n_sent += 1;
                }
                Action::Sql(sql) => self.sql(sql, session).await?,
                Action::Set { variable, is_valid, expression } => {
                    let value = self.value("set", expression)?;
                    self.set(*variable, *is_valid, value)?;
                }
                Action::Elif { end, .. } if !by_jump => next = *end,
                Action::If { condition, otherwise } | Action::Elif { condition, otherwise, .. } => {
                    let name = if by_jump { "elif" } else { "if" };
                    if !self.value(name, condition)?.is_true() {
                        (next, came_by_jump) = (*otherwise, true);
                    }
                }
                Action::Else { end } => next = *end,
                Action::EndIf => {}
                Action::Sleep { time, unit } => {
                    let us = time.microseconds(*unit, &self.variables).map_err(|message| {
                        self.report(&message);
                        self.fail("sleep", "execution of meta-command failed")
                    })?;
                    pace.begin_sleep(Nanoseconds(us.saturating_mul(1000)));
                    poll_fn(|_| pace.poll_pause()).await;
                }
                Action::Shell { variable, words } => self.shell(*variable, words)?,
                Action::StartPipeline => self.start_pipeline(session)?,
                Action::SyncPipeline => {
                    self.end_pipeline("syncpipeline", session).await?;
                    session.begin_pipeline();
                    self.pipeline.is_open = true;
                }
                Action::EndPipeline => self.end_pipeline("endpipeline", session).await?,
            }
            if is_measured {
                let took = pace.now().saturating_sub(began);
                self.cells.command_done(script, at, took.0 / 1000);
            }
            at = next;
            // A jump to an `\elif` lets it decide; one behind `\else` or `\endif` is no such jump.
            came_by_jump &=
                matches!(commands.get(at).map(|one| &one.action), Some(Action::Elif { .. }));
        }
        if self.pipeline.is_open { Err(self.pipeline_left_open()) } else { Ok(()) }
    }

    #[cold]
    fn pipeline_left_open(&self) -> Stop {
        let id = self.id;
        self.aborted(format!("client {id} aborted: end of script reached with pipeline open"))
    }

    #[cold]
    fn aborted(&self, message: String) -> Stop {
        self.report(&message);
        Stop::Aborted(script_error(message))
    }

    /// Reports that a backslash command failed.
    #[cold]
    fn fail(&self, name: &str, why: &str) -> Stop {
        let (id, Place { script, command }) = (self.id, self.place);
        let what = format!("client {id} aborted in command {command} ({name}) of script {script}");
        self.aborted(format!("{what}; {why}"))
    }

    #[cold]
    fn refused(&self, (query, sql): (usize, Option<&str>), error: StatementError) -> Stop {
        let (id, Place { script, command }) = (self.id, self.place);
        let said = server_message(&error, sql);
        if self.survives(&error) {
            if self.shared.settings.is_verbose {
                let place = format!("command {command} (SQL) of script {script}");
                self.note(&format!("client {id} got an error in {place}; {said}\n"));
            }
            return Stop::Failed { error, command };
        }
        if error.message.contains(COPY_REFUSED) {
            self.report("COPY is not supported in pgbench, aborting");
        } else if error.class.loses_connection() {
            self.fail("SQL", "perhaps the backend died while processing");
        } else {
            let place = format!("command {command} query {query}");
            self.report(&format!("client {id} script {script} aborted in {place}: {said}"));
        }
        Stop::Aborted(error)
    }

    fn value(&mut self, name: &str, expression: &Expression) -> Result<ScriptValue, Stop> {
        let (settings, host) = (&self.shared.settings, &self.shared.host);
        let Place { script, command } = self.place;
        let debug = &mut |text: &str| {
            host.say(&format!("debug(script={script},command={}): {text}", command + 1));
        };
        let (variables, random) = (&mut self.variables, &mut self.random);
        let mut scope = Scope { names: &settings.names, variables, random, debug };
        expression.evaluate(&mut scope).map_err(|error| {
            if !error.message().is_empty() {
                self.report(error.message());
            }
            self.fail(name, "evaluation of meta-command failed")
        })
    }

    #[inline]
    fn set(&mut self, variable: Slot, is_valid: bool, value: ScriptValue) -> Result<(), Stop> {
        if !is_valid {
            let name = self.shared.settings.names.name(variable);
            self.report(&format!("set: invalid variable name: \"{name}\""));
            return Err(self.fail("set", "assignment of meta-command failed"));
        }
        self.variables.set(variable, value);
        Ok(())
    }

    async fn sql(&mut self, sql: &Sql, session: &mut Session) -> Result<(), Stop> {
        let Place { script, command } = self.place;
        let Some((statement, class)) = self.shared.statements[script][command] else {
            return Ok(());
        };
        if self.shared.settings.is_debugging {
            self.tell_of_sql(sql);
            self.tell("receiving");
        }
        let result = if self.has_parameters() {
            self.with_values(sql, |values| session.execute(statement, values)).await
        } else {
            self.buffer.clear();
            sql.write_with_values(&self.variables, &mut self.buffer);
            let Ok(text) = std::str::from_utf8(&self.buffer) else {
                return Err(self.fail("SQL", "the command is not UTF-8"));
            };
            match sql.keeps {
                Keeps::Nothing => session.text(text, class).await,
                Keeps::Last(_) | Keeps::All(_) => match session.text_keeping_last(text, class) {
                    Some(answer) => answer.await,
                    None => Err(script_error("this product keeps no rows of texts")),
                },
            }
        };
        if !result.as_ref().is_ok_and(|reply| reply.warnings == 0) {
            self.show_notices(session);
        }
        if let Err(error) = result {
            let query = session.last_rows().n_results();
            let query = if sql.keeps == Keeps::Nothing { 0 } else { query };
            let text = match self.has_parameters() {
                true => sql.numbered(),
                false => String::from_utf8_lossy(&self.buffer).into_owned(),
            };
            return Err(self.refused((query, Some(&text)), error));
        }
        match &sql.keeps {
            Keeps::Nothing => Ok(()),
            Keeps::Last(prefix) => self.keep_last(prefix, session),
            Keeps::All(prefix) => self.keep_all(prefix, session),
        }
    }

    fn with_values<T>(&mut self, sql: &Sql, send: impl FnOnce(&[Value<'_>]) -> T) -> T {
        // Doubles are written first, so that the values can refer to their texts.
        self.buffer.clear();
        self.ends.clear();
        for slot in sql.parameters() {
            if let Some(value @ ScriptValue::Double(_)) = self.variables.plain(slot) {
                value.write_text(&mut self.buffer);
                self.ends.push(self.buffer.len());
            }
        }
        let (variables, buffer) = (&self.variables, &self.buffer);
        let (mut start, mut ends) = (0, self.ends.iter());
        let values = sql.parameters().map(|slot| match variables.plain(slot) {
            Some(ScriptValue::Integer(value)) => Value::Integer(value),
            Some(ScriptValue::Double(_)) => {
                let end = *ends.next().unwrap_or(&start);
                let text = &buffer[start..end];
                start = end;
                Value::Text(text)
            }
            Some(ScriptValue::Boolean(true)) => Value::Text(b"true"),
            Some(ScriptValue::Boolean(false)) => Value::Text(b"false"),
            // A null is sent as its text, as pgbench does.
            Some(ScriptValue::Null) => Value::Text(b"NULL"),
            None => variables.text(slot).map_or(Value::Null, Value::Text),
        });
        let (mut few, mut many, mut n) = ([Value::Null; FEW], Vec::new(), 0);
        for value in values {
            if let Some(place) = few.get_mut(n) {
                *place = value;
            } else {
                many.extend_from_slice(if many.is_empty() { &few } else { &[] });
                many.push(value);
            }
            n += 1;
        }
        send(if many.is_empty() { &few[..n] } else { &many })
    }

    /// `\gset`: the one row of the last query becomes variables.
    fn keep_last(&mut self, prefix: &str, session: &Session) -> Result<(), Stop> {
        let last = session.last_rows().n_results().saturating_sub(1);
        let n_rows = session.last_rows().n_rows(last).unwrap_or(0);
        if n_rows != 1 {
            let place = self.place_of(last);
            return Err(self.aborted(format!("{place}: expected one row, got {n_rows}")));
        }
        self.keep(("gset", prefix), last, session)
    }

    /// `\aset`: the last rows of all queries that have any become variables.
    fn keep_all(&mut self, prefix: &str, session: &Session) -> Result<(), Stop> {
        for result in 0..session.last_rows().n_results() {
            if session.last_rows().n_rows(result).is_some_and(|n_rows| n_rows > 0) {
                self.keep(("aset", prefix), result, session)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, by: (&str, &str), result: usize, session: &Session) -> Result<(), Stop> {
        let (command, prefix) = by;
        let shared = std::sync::Arc::clone(&self.shared);
        for (name, value) in session.last_rows().columns(result) {
            self.buffer.clear();
            self.buffer.extend_from_slice(prefix.as_bytes());
            self.buffer.extend_from_slice(name);
            let name = std::str::from_utf8(&self.buffer).unwrap_or_default();
            if !is_valid_name(name) {
                let name = String::from_utf8_lossy(&self.buffer).into_owned();
                return Err(self.not_kept(command, result, &name));
            }
            // What no command refers to need not be kept.
            if let Some(slot) = shared.settings.names.find(name) {
                self.variables.set_text(slot, value.unwrap_or_default());
            }
        }
        Ok(())
    }

    #[cold]
    fn not_kept(&self, by: &str, query: usize, name: &str) -> Stop {
        self.report(&format!("{by}: invalid variable name: \"{name}\""));
        let place = self.place_of(query);
        self.aborted(format!("{place}: error storing into variable {name}"))
    }

    fn place_of(&self, query: usize) -> String {
        let Place { script, command } = self.place;
        format!("client {} script {script} command {command} query {query}", self.id)
    }

    fn start_pipeline(&mut self, session: &mut Session) -> Result<(), Stop> {
        let refuse = |why: &str| Err(self.fail("startpipeline", why));
        if !self.has_parameters() {
            return refuse("cannot use pipeline mode with the simple query protocol");
        }
        if self.pipeline.is_open {
            return refuse("already in pipeline mode");
        }
        session.begin_pipeline();
        self.pipeline = Pipeline { is_open: true, n_sent: 0 };
        Ok(())
    }

    fn push(&mut self, sql: &Sql, session: &mut Session) -> Result<(), Stop> {
        let refuse =
            |name: &str| Err(self.fail(name, &format!("\\{name} is not allowed in pipeline mode")));
        match sql.keeps {
            Keeps::Nothing => {}
            Keeps::Last(_) => return refuse("gset"),
            Keeps::All(_) => return refuse("aset"),
        }
        if self.shared.settings.is_debugging {
            self.tell_of_sql(sql);
        }
        if let Some((statement, _)) = self.shared.statements[self.place.script][self.place.command]
        {
            self.with_values(sql, |values| session.push_execute(statement, values));
        }
        Ok(())
    }

    async fn end_pipeline(&mut self, name: &str, session: &mut Session) -> Result<(), Stop> {
        if !self.pipeline.is_open {
            return Err(self.fail(name, "not in pipeline mode"));
        }
        let n_sent = std::mem::take(&mut self.pipeline).n_sent;
        session.send_pipeline();
        for query in 0..n_sent {
            if self.shared.settings.is_debugging {
                self.tell("receiving");
            }
            let result = session.next_reply().await;
            if !result.as_ref().is_ok_and(|reply| reply.warnings == 0) {
                self.show_notices(session);
            }
            result.map_err(|error| self.refused((query, None), error))?;
        }
        if self.shared.settings.is_debugging {
            self.tell("pipeline ending");
        }
        Ok(())
    }

    /// Shows what the server has said besides its replies; where it happened is shown of errors alone.
    #[cold]
    fn show_notices(&self, session: &mut Session) {
        for details in session.connection().notices() {
            let details = ErrorDetails { context: None, position: None, ..details };
            self.shared.host.say(&message_of(&details, None));
        }
    }

    /// `\shell` and `\setshell`.
    fn shell(&mut self, variable: Option<(Slot, bool)>, words: &[Part]) -> Result<(), Stop> {
        let name = if variable.is_some() { "setshell" } else { "shell" };
        let failed = |client: &Client, message: String| {
            client.report(&message);
            client.fail(name, "execution of meta-command failed")
        };
        let first = match words.first() {
            Some(Part::Text(text) | Part::Variable(_, text)) => text.clone(),
            None => String::new(),
        };
        let mut command = Vec::new();
        for (idx, word) in words.iter().enumerate() {
            if idx > 0 {
                command.push(b' ');
            }
            match word {
                Part::Text(text) => command.extend_from_slice(text.as_bytes()),
                Part::Variable(slot, _) if self.variables.write_text(*slot, &mut command) => {}
                Part::Variable(_, written) => {
                    return Err(failed(self, format!("{first}: undefined variable \"{written}\"")));
                }
            }
        }
        if command.len() >= SHELL_COMMAND_MOST {
            return Err(failed(self, format!("{first}: shell command is too long")));
        }
        let command = String::from_utf8_lossy(&command).into_owned();
        let line = self.shared.host.shell(&command, variable.is_some());
        let line = line.map_err(|why| failed(self, format!("{first}: {why}")))?;
        let Some((slot, is_valid)) = variable else { return Ok(()) };
        let Ok(number) = line.trim().parse::<i32>() else {
            let why = format!("{first}: shell command must return an integer (not \"{line}\")");
            return Err(failed(self, why));
        };
        if !is_valid {
            let name = self.shared.settings.names.name(slot);
            return Err(failed(self, format!("setshell: invalid variable name: \"{name}\"")));
        }
        self.variables.set(slot, ScriptValue::Integer(number.into()));
        Ok(())
    }

    /// Shows what `--debug` asks for.
    #[cold]
    fn tell(&self, what: &str) {
        self.note(&format!("client {} {what}", self.id));
    }

    #[cold]
    fn tell_of_command(&self, command: &dyno_pgbench::Command) {
        let line = command.line.trim();
        let shown = match &command.action {
            Action::Sql(_) => return,
            // Of one with an expression, what is in front of it.
            Action::Set { .. } => line.split_whitespace().take(2).collect::<Vec<_>>(),
            Action::If { .. } | Action::Elif { .. } => line.split_whitespace().take(1).collect(),
            _ => line.split_whitespace().collect(),
        };
        self.tell(&format!("executing {}", shown.join(" ")));
    }

    #[cold]
    fn tell_of_sql(&mut self, sql: &Sql) {
        match self.shared.settings.protocol {
            Protocol::Simple => {
                let mut text = Vec::new();
                sql.write_with_values(&self.variables, &mut text);
                self.tell(&format!("sending {}", String::from_utf8_lossy(&text)));
            }
            Protocol::Extended => self.tell(&format!("sending {}", sql.numbered())),
            Protocol::Prepared => {
                // They are numbered through all scripts.
                let statement = self.shared.statements[self.place.script][self.place.command];
                let number = statement.map_or(0, |(number, _)| number);
                let name = format!("P_{number}");
                if !self.told_prepared.contains(&number) {
                    self.told_prepared.push(number);
                    self.tell(&format!("preparing {name}"));
                }
                self.tell(&format!("sending {name}"));
            }
        }
    }
}

const SHELL_COMMAND_MOST: usize = 255;

#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    script: usize,
    command: usize,
}
