//! A client's life: answers its script's requests without keeping other clients waiting.

use std::future::poll_fn;
use std::rc::Rc;

use dyno_sysbench::{Call, Counter, Held, Level, ParamKind, Reply, Request};

use crate::prelude::*;

use super::events::{EventLoop, KIND};
use super::links::Connected;
use super::serve::Runner;
use super::{Ended as CallEnd, Shared};
use crate::Reply as Answered;

pub(super) struct Client {
    shared: Arc<Shared>,
    runner: Runner,
    pace: Rc<dyn Pace>,
    events: Rc<EventLoop>,
    error: Option<StatementError>,
}

impl Client {
    /// Makes a client, whose script runs until its preparations are over. None if it fails before.
    pub(super) fn start(shared: Arc<Shared>, context: ClientContext) -> Option<Client> {
        let ClientContext { client_idx, mut random, session, pace, .. } = context;
        let settings = Arc::clone(&shared.settings);
        let cells = settings.statistics.client();
        if let Some(seed) = settings.seed {
            random = Seed(seed).derive("sysbench", client_idx as u64).stream();
        }
        let seed = [random.next_u64(), random.next_u64()];
        let dialect = session.dialect();
        let begun = Runner::load(&settings, (client_idx, seed), Some(session), dialect, cells)
            .and_then(|mut runner| {
                runner.export()?;
                runner.call(Call::Run).map_or(Ok(runner), Err)
            });
        let mut runner = match begun {
            Ok(runner) => runner,
            Err(CallEnd::Broken(function, message)) => {
                let text = CallEnd::report(&function, &message);
                settings.program.host.log(Level::Fatal, &text);
                shared.broke(text, None);
                return None;
            }
            Err(CallEnd::Exit(code)) => {
                shared.broke("the script ended the program".to_owned(), Some(code));
                return None;
            }
            // A loop of its own ends before it begins.
            Err(CallEnd::Well | CallEnd::False) => return None,
        };
        let cells = Arc::clone(&runner.cells);
        let events = Rc::new(EventLoop::new(Arc::clone(&shared), cells, Rc::clone(&pace)));
        runner.state.set_events(Rc::clone(&events) as Rc<dyn dyno_sysbench::Events>);
        Some(Client { shared, runner, pace, events, error: None })
    }

    pub(super) async fn run(mut self) {
        let mut reply = Reply::Done;
        loop {
            reply = match self.resume(reply) {
                Request::Execute(number, statement) if self.runner.links.is_main(number) => {
                    self.execute(statement).await
                }
                Request::Await => self.awaited().await,
                Request::Query(number) if self.runner.links.is_main(number) => self.query().await,
                Request::Next => {
                    self.done();
                    self.more().await
                }
                Request::More => self.more().await,
                Request::Stop => self.done(),
                Request::Restart => self.restart(),
                Request::Failed(message) => self.failed(&message).await,
                Request::Cancel => self.cancel(),
                Request::Sleep(us) => {
                    self.pace.begin_sleep(Nanoseconds((us * 1000.0) as u64));
                    let pace = Rc::clone(&self.pace);
                    poll_fn(|_| pace.poll_pause()).await;
                    Reply::Done
                }
                Request::Connect => self.connect().await,
                Request::Reconnect(number) if self.runner.links.is_main(number) => {
                    self.replace().await
                }
                Request::Ended(_) => return self.end(),
                Request::Broken(..) if self.runner.settings.program.host.is_stopped() => {
                    return self.give_up();
                }
                Request::Broken(function, message) => {
                    let text = format!("`{function}' function failed: {message}");
                    if function == "thread_done" {
                        // Its events were done.
                        self.runner.settings.program.host.log(Level::Fatal, &text);
                        return self.end();
                    }
                    return self.broke(text, None);
                }
                Request::Exit(code) => {
                    return self.broke("the script ended the program".to_owned(), Some(code));
                }
                request => self.runner.serve(&request),
            };
        }
    }

    fn session(&mut self) -> Option<&mut Session> {
        self.runner.links.main.as_mut()
    }

    fn resume(&mut self, reply: Reply) -> Request {
        self.events.lend(std::mem::take(&mut self.runner.links));
        let request = self.runner.state.resume(reply);
        self.runner.links = self.events.take_back();
        request
    }

    /// What the event has done so far; the next one begins with nothing.
    fn take_tally(&mut self) -> Tally {
        self.session().map(Session::take_tally).unwrap_or_default()
    }

    fn done(&mut self) -> Reply {
        let tally = self.take_tally();
        self.events.done(tally);
        Reply::Done
    }

    async fn more(&mut self) -> Reply {
        let events = Rc::clone(&self.events);
        if poll_fn(|_| events.poll_more()).await { Reply::Yes } else { Reply::No }
    }

    /// The event was the last one, and is not counted.
    fn cancel(&mut self) -> Reply {
        self.drop_event(Ok(Ended::RolledBack));
        self.events.end();
        Reply::Done
    }

    /// Tells the pace what has become of an event that is not counted, if one is under way.
    fn drop_event(&mut self, ended: Result<Ended, &StatementError>) {
        if self.events.give_up() {
            let tally = self.take_tally();
            self.pace.done(KIND, tally, ended);
        }
    }

    /// What went wrong last; an error of the script itself if nothing did.
    fn last_error(&mut self, message: &str) -> StatementError {
        let error = self.error.take();
        error.unwrap_or_else(|| StatementError::new(ErrorClass::Refused, "script", message))
    }

    fn restart(&mut self) -> Reply {
        let error = self.last_error("the script begins its event again");
        let tally = self.take_tally();
        // True as long as the step goes on.
        if self.pace.begin_pause(Nanoseconds::ZERO) {
            self.pace.retried_at_once(KIND, tally, &error);
            return Reply::Yes;
        }
        self.events.give_up();
        self.pace.done(KIND, tally, Err(&error));
        Reply::No
    }

    /// The event failed: whether the client goes on with the next one.
    async fn failed(&mut self, message: &str) -> Reply {
        let error = self.last_error(message);
        let tally = self.take_tally();
        let is_lost = error.class.loses_connection();
        // What the script did not want to retry is not retried.
        let class = if is_lost { error.class } else { ErrorClass::Refused };
        if self.events.give_up() {
            self.pace.done(KIND, tally, Err(&StatementError { class, ..error }));
        }
        if !self.shared.settings.continues {
            return Reply::No;
        }
        if is_lost {
            self.replace().await;
        } else if let Some(session) = self.session()
            && session.is_in_transaction() != Some(false)
        {
            // If this fails, so does the next statement, which reports it.
            let _ = session.rollback().await;
        }
        Reply::Yes
    }

    async fn connect(&mut self) -> Reply {
        match self.runner.connect() {
            Connected::Number(number) => Reply::Number(number),
            Connected::Again => match self.reconnect().await {
                true => Reply::Number(0),
                false => self.runner.not_connected("the connection could not be opened again"),
            },
            Connected::Refused(why) => self.runner.not_connected(&why),
        }
    }

    /// Replaces a connection that was lost, or that the script wants a new one for.
    async fn replace(&mut self) -> Reply {
        if self.reconnect().await {
            self.runner.cells.counters.add(Counter::Reconnect, 1);
        }
        Reply::Done
    }

    /// Replaces the connection by a new one with the same statements, however often that takes.
    async fn reconnect(&mut self) -> bool {
        let statements = self.runner.links.of_server();
        let pace = Rc::clone(&self.pace);
        let Some(session) = self.session() else { return false };
        while let Err(error) = session.reconnect(&statements).await {
            if !pace.reconnect_failed(&error) {
                return false;
            }
        }
        true
    }

    async fn query(&mut self) -> Reply {
        self.runner.links.forget_early();
        let Runner { state, links, .. } = &mut self.runner;
        let Some(session) = &mut links.main else { return Reply::No };
        let class = StatementClass::of_text(state.sql());
        match session.text_keeping(state.sql(), 0, class).await {
            Ok(answer) => {
                let kept = session.kept_rows();
                let n_columns = kept.n_columns();
                let is_read = n_columns > 0 || answer.rows > 0;
                // Of several results, it is the first one that the script reads.
                let rows = if n_columns > 0 { kept.n_rows() as u64 } else { answer.rows };
                self.answered(is_read, n_columns, Answered { rows, ..answer })
            }
            Err(error) => {
                let sql = self.runner.state.sql().to_owned();
                self.refused(error, self.runner.text_call(), &sql).await
            }
        }
    }

    async fn execute(&mut self, statement: usize) -> Reply {
        let links = &self.runner.links;
        let Some(made) = links.statement(0, statement) else {
            let closed = StatementError::new(ErrorClass::Refused, "2030", "Statement not prepared");
            return self.refused(closed, "mysql_stmt_execute()", "").await;
        };
        let class = made.class;
        let Some(idx) = made.prepared else {
            let sql = self.runner.emulated(0, statement).unwrap_or_default();
            let Some(session) = self.session() else { return Reply::No };
            return match session.text(&sql, class).await {
                Ok(answer) => self.answered(class == StatementClass::Read, 1, answer),
                Err(error) => self.refused(error, self.runner.text_call(), &sql).await,
            };
        };
        let Runner { state, links, .. } = &mut self.runner;
        let Some(made) = links.statement(0, statement) else { return Reply::No };
        let (held, bytes) = (state.values(), state.bytes());
        let value = |at: usize| value_of(held[at], made.kinds.get(at).copied(), bytes);
        // Most statements have a few values, which need no memory of their own.
        let mut few = [Value::Null; 8];
        let many: Vec<Value<'_>>;
        let values = match few.get_mut(..held.len()) {
            Some(few) => {
                few.iter_mut().enumerate().for_each(|(at, place)| *place = value(at));
                &*few
            }
            None => {
                many = (0..held.len()).map(value).collect();
                &many
            }
        };
        let Some(session) = &mut links.main else { return Reply::No };
        let result = session.execute(idx, values).await;
        self.executed(statement, result).await
    }

    /// What the statement came to that was sent without leaving the script.
    async fn awaited(&mut self) -> Reply {
        let (statement, error) = self.events.take_sent();
        let Some(session) = self.session() else { return Reply::No };
        let result = match error {
            Some(error) => Err(error),
            None => session.unanswered().await,
        };
        self.executed(statement, result).await
    }

    async fn executed(&mut self, statement: usize, result: Done<Answered>) -> Reply {
        let made = self.runner.links.statement(0, statement);
        match result {
            Ok(answer) => {
                let is_read = made.is_some_and(|made| made.class == StatementClass::Read);
                self.answered(is_read, 1, answer)
            }
            Err(error) => {
                let sql = made.map(|made| made.sql.clone());
                let is_pgsql = self.runner.is_pgsql();
                let call = if is_pgsql { "PQexecPrepared()" } else { "mysql_stmt_execute()" };
                self.refused(error, call, &sql.unwrap_or_default()).await
            }
        }
    }

    fn answered(&self, is_read: bool, n_columns: usize, answer: Answered) -> Reply {
        let has_rows = is_read || answer.rows > 0;
        self.runner.cells.answered(has_rows, answer.affected);
        if has_rows { Reply::Rows(answer.rows, n_columns) } else { Reply::Executed }
    }

    #[cold]
    async fn refused(&mut self, error: StatementError, call: &str, sql: &str) -> Reply {
        let reply = self.runner.refused(&error, call, sql);
        let is_ignored = self.runner.is_ignored(&error);
        if error.class.loses_connection() {
            if is_ignored {
                self.replace().await;
            }
        } else if is_ignored
            && self.runner.is_pgsql()
            && let Some(session) = self.session()
        {
            // If this fails, so does the next statement, which reports it.
            let _ = session.rollback().await;
        }
        self.error = Some(error);
        reply
    }

    fn end(&mut self) {
        // Its statements need not have read the clock.
        self.runner.cells.ended(self.pace.now());
        // A loop of the script's own has left its last event open.
        self.drop_event(Ok(Ended::RolledBack));
        self.pace.finished();
    }

    /// The script was ended because the run has: its event is dropped, as is one that waits for its server.
    fn give_up(&mut self) {
        self.events.give_up();
    }

    fn broke(&mut self, problem: String, exit_code: Option<i32>) {
        self.runner.cells.ended(self.pace.latest());
        if self.events.give_up() {
            let error = self.last_error(&problem);
            let tally = self.take_tally();
            self.pace.done(KIND, tally, Err(&error));
        }
        if exit_code.is_none() {
            self.shared.settings.program.host.log(Level::Fatal, &problem);
        }
        self.shared.broke(problem, exit_code);
    }
}

/// A value as a parameter of this kind is sent, whose text is in `bytes`.
pub(super) fn value_of(held: Held, kind: Option<ParamKind>, bytes: &[u8]) -> Value<'_> {
    match held {
        Held::Null => Value::Null,
        Held::Number(number) if kind == Some(ParamKind::Real) => Value::Real(number),
        Held::Number(number) => Value::Integer(number as i64),
        Held::Text(start, end) => Value::Text(&bytes[start..end]),
    }
}
