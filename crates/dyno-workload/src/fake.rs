//! A connection that answers at once and records statements, and a pace for a number of
//! transactions.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use dyno_model::{Name, OptionError, StepRequest};
use dyno_units::{Nanoseconds, Seed};

use crate::catalog::{Catalog, PlanError};
use crate::{
    ClientContext, ConnectError, Connection, Dialect, Ended, KeptRows, MadeWorkload, Next, Pace,
    Reply, Row, Session, Statement, StatementError, Tally, TextRows, Value,
};

#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) sql: String,
    pub(crate) values: Vec<String>,
    /// Whether it was prepared, and is executed; else it is sent as text.
    pub(crate) is_prepared: bool,
    /// In which round trip, counted from 0.
    pub(crate) trip: usize,
}

pub(crate) struct Ran {
    pub(crate) sent: Vec<Sent>,
    pub(crate) tallies: Vec<Tally>,
}

impl Ran {
    /// One line a statement, long text shortened to its length.
    pub(crate) fn sent_text(&self) -> String {
        self.sent
            .iter()
            .map(|sent| {
                format!("{} {}", sent.sql, sent.values.join(" ")).trim_end().to_owned() + "\n"
            })
            .collect()
    }

    pub(crate) fn integers(&self) -> impl Iterator<Item = i64> {
        self.sent.iter().flat_map(|sent| &sent.values).filter_map(|value| value.parse().ok())
    }
}

/// One client with a scripted connection.
pub(crate) struct Fake {
    dialect: Dialect,
    client_idx: usize,
    n_clients: usize,
    /// Indexes of the client's step and role.
    place: (usize, usize),
    answers: Option<Answers>,
    affected: u64,
    errors: VecDeque<Option<StatementError>>,
}

/// Writes the rows that a statement with these values gets, if they are kept.
pub(crate) type Answers = Box<dyn FnMut(&str, &[Value<'_>], &mut KeptRows) + Send>;

impl Fake {
    pub(crate) fn new(dialect: Dialect) -> Fake {
        Fake { dialect, ..Fake::of(0, 1) }
    }

    pub(crate) fn of(client_idx: usize, n_clients: usize) -> Fake {
        Fake {
            dialect: Dialect::MySql,
            client_idx,
            n_clients,
            place: (0, 0),
            answers: None,
            affected: 0,
            errors: VecDeque::new(),
        }
    }

    pub(crate) fn in_step(self, step: usize, role: usize) -> Fake {
        Fake { place: (step, role), ..self }
    }

    pub(crate) fn answering(self, answers: Answers) -> Fake {
        Fake { answers: Some(answers), ..self }
    }

    pub(crate) fn affecting(self, affected: u64) -> Fake {
        Fake { affected, ..self }
    }

    pub(crate) fn fail_next(&mut self, error: StatementError) {
        self.errors.push_back(Some(error));
    }

    /// Lets the next statement succeed, so that a later one can fail.
    pub(crate) fn succeed_next(&mut self) {
        self.errors.push_back(None);
    }

    /// Runs the client until `n` transactions have ended well or for good.
    pub(crate) fn run(self, workload: &MadeWorkload, n: u64) -> Ran {
        let statements: Rc<[Statement]> = workload.statements(self.dialect).into();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let (dialect, affected) = (self.dialect, self.affected);
        let again = Arc::clone(&sent);
        let connection = FakeConnection {
            errors: self.errors,
            answers: self.answers,
            ..FakeConnection::new(dialect, affected, Arc::clone(&sent))
        };
        let pace = Rc::new(FakePace {
            left: Cell::new(n),
            tallies: RefCell::default(),
            connect: Box::new(move || FakeConnection::new(dialect, affected, Arc::clone(&again))),
        });
        let session =
            Session::open(Box::new(connection), &statements, pace.clone() as Rc<dyn Pace>).unwrap();
        let context = ClientContext {
            client_idx: self.client_idx,
            n_clients: self.n_clients,
            step: self.place.0,
            role: self.place.1,
            idx_in_role: self.client_idx,
            n_in_role: self.n_clients,
            random: Seed(3).derive("client", self.client_idx as u64).stream(),
            session,
            statements,
            pace: pace.clone(),
        };
        let mut client = pin!(workload.client(context));
        let outcome = client.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(outcome.is_ready(), "nothing here ever waits");
        let sent = sent.lock().unwrap().clone();
        Ran { sent, tallies: pace.tallies.take() }
    }
}

struct FakeConnection {
    dialect: Dialect,
    prepared: Vec<Statement>,
    sent: Arc<Mutex<Vec<Sent>>>,
    errors: VecDeque<Option<StatementError>>,
    answers: Option<Answers>,
    affected: u64,
    kept: KeptRows,
    // The rows of the statements of a pipeline that is being written down.
    pipeline: Option<VecDeque<KeptRows>>,
    // The same, of those whose replies were not taken.
    awaited: VecDeque<KeptRows>,
    n_trips: usize,
}

impl FakeConnection {
    fn new(dialect: Dialect, affected: u64, sent: Arc<Mutex<Vec<Sent>>>) -> FakeConnection {
        FakeConnection {
            dialect,
            prepared: Vec::new(),
            sent,
            errors: VecDeque::new(),
            answers: None,
            affected,
            kept: KeptRows::default(),
            pipeline: None,
            awaited: VecDeque::new(),
            n_trips: 0,
        }
    }

    fn send(&mut self, sql: &str, values: Option<Vec<String>>, rows: KeptRows) {
        let (sql, is_prepared) = (sql.to_owned(), values.is_some());
        let values = values.unwrap_or_default();
        self.sent.lock().unwrap().push(Sent { sql, values, is_prepared, trip: self.n_trips });
        match &mut self.pipeline {
            Some(pipeline) => pipeline.push_back(rows),
            None => {
                assert!(self.awaited.is_empty(), "replies were not taken");
                self.awaited.push_back(rows);
                self.n_trips += 1;
            }
        }
    }
}

impl Connection for FakeConnection {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare(&mut self, statements: &[Statement]) -> Result<(), StatementError> {
        self.prepared = statements.to_vec();
        Ok(())
    }

    fn send_execute(&mut self, statement: usize, values: &[Value<'_>]) {
        let sql = self.prepared[statement].sql.clone();
        let n_marks = match self.dialect {
            Dialect::PostgreSql => sql.matches('$').count(),
            _ => sql.matches('?').count(),
        };
        assert_eq!(n_marks, values.len(), "{sql}");
        let show = |value: &Value<'_>| match value {
            Value::Integer(value) => value.to_string(),
            Value::Text(text) => format!("text[{}]", text.len()),
            other => format!("{other:?}"),
        };
        let mut rows = KeptRows::default();
        if let (Some(answer), true) = (&mut self.answers, self.prepared[statement].keeps_rows) {
            answer(&sql, values, &mut rows);
        }
        self.send(&sql, Some(values.iter().map(show).collect()), rows);
    }

    fn send_text(&mut self, sql: &str) {
        self.send(sql, None, KeptRows::default());
    }

    fn send_text_keeping(&mut self, sql: &str, _n_columns: usize) {
        let mut rows = KeptRows::default();
        if let Some(answer) = &mut self.answers {
            answer(sql, &[], &mut rows);
        }
        self.send(sql, None, rows);
    }

    fn begin_pipeline(&mut self) -> bool {
        assert!(self.awaited.is_empty(), "replies were not taken");
        self.pipeline = (self.dialect != Dialect::Sqlite).then(VecDeque::new);
        self.pipeline.is_some()
    }

    fn send_pipeline(&mut self) {
        self.awaited = self.pipeline.take().unwrap_or_default();
        self.n_trips += usize::from(!self.awaited.is_empty());
    }

    /// Every second reply of a pipeline has arrived together with the one before.
    fn poll_received(&mut self) -> Poll<Result<Reply, StatementError>> {
        match self.awaited.len() % 2 {
            0 => self.poll_reply(),
            _ => Poll::Pending,
        }
    }

    fn n_awaited(&self) -> usize {
        self.awaited.len()
    }

    /// After an error the rest of a pipeline is skipped or executed, depending on the product.
    fn poll_reply(&mut self) -> Poll<Result<Reply, StatementError>> {
        self.kept = self.awaited.pop_front().expect("a reply is asked for that is to come");
        let reply = Reply { affected: self.affected, ..Reply::default() };
        let result = self.errors.pop_front().flatten().map_or(Ok(reply), Err);
        if result.is_err() && self.dialect == Dialect::PostgreSql {
            self.awaited.clear();
        }
        Poll::Ready(result)
    }

    fn kept_rows(&self) -> &KeptRows {
        &self.kept
    }

    fn set_blocking(&mut self, _blocking: bool, _timeout_ns: u64) -> Result<(), StatementError> {
        Ok(())
    }

    /// Only what sets something up for later statements is asked so by clients.
    fn query(&mut self, sql: &str) -> Result<TextRows, StatementError> {
        self.sent.lock().unwrap().push(Sent {
            sql: sql.to_owned(),
            values: Vec::new(),
            is_prepared: false,
            trip: self.n_trips,
        });
        Ok(Vec::new())
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

struct FakePace {
    left: Cell<u64>,
    tallies: RefCell<Vec<Tally>>,
    /// Connections that replace the first one.
    connect: Box<dyn Fn() -> FakeConnection>,
}

impl Pace for FakePace {
    fn poll_due(&self) -> Poll<bool> {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        Poll::Ready(left > 0)
    }

    fn sent(&self) {}

    fn done(&self, _kind: usize, tally: Tally, result: Result<Ended, &StatementError>) -> Next {
        self.tallies.borrow_mut().push(tally);
        match result {
            Ok(_) => Next::Proceed,
            Err(error) if error.class.is_transient() => Next::Retry,
            Err(_) => Next::GiveUp,
        }
    }

    fn begin_pause(&self, _length: Nanoseconds) -> bool {
        true
    }

    fn poll_pause(&self) -> Poll<()> {
        Poll::Ready(())
    }

    fn attach(&self, _connection: &mut dyn Connection) -> Result<(), StatementError> {
        Ok(())
    }

    fn detach(&self) {}

    fn awaits_reply(&self, _connection: &dyn Connection) {
        panic!("the fake connection always answers at once");
    }

    fn is_overdue(&self) -> bool {
        false
    }

    fn poll_connect(&self) -> Poll<Result<Box<dyn Connection>, ConnectError>> {
        Poll::Ready(Ok(Box::new((self.connect)())))
    }

    fn reconnect_failed(&self, _error: &ConnectError) -> bool {
        false
    }
}

pub(crate) fn given(options: &[(&str, &str)]) -> BTreeMap<String, String> {
    options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A load of so many clients, for a minute.
pub(crate) fn request(clients: usize) -> StepRequest {
    StepRequest { clients, duration: Nanoseconds::from_secs(60) }
}

/// A workload of the catalogue, for one client.
pub(crate) fn made(
    name: &str,
    options: &[(&str, &str)],
    seed: u64,
) -> Result<MadeWorkload, PlanError> {
    let catalog = Catalog::built_in();
    let spec = catalog.find(name).unwrap();
    spec.plan(&given(options), request(1), Seed(seed)).map(MadeWorkload::new)
}

/// The same, of a trial that promotes a replica.
pub(crate) fn noting(name: &str, options: &[(&str, &str)]) -> Result<MadeWorkload, PlanError> {
    let catalog = Catalog::built_in();
    let plan = catalog.find(name).unwrap().plan(&given(options), request(1), Seed(1))?;
    Ok(MadeWorkload::new(plan.noting_commits().expect("its rows can be told apart")))
}

#[track_caller]
pub(crate) fn refused_option(result: Result<MadeWorkload, PlanError>) -> OptionError {
    match result {
        Err(PlanError::Option(error)) => error,
        Err(PlanError::Load(why)) => panic!("the load was refused: {why}"),
        Ok(_) => panic!("nothing was refused"),
    }
}
