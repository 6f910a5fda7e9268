//! Confirmed writes are there, nothing else is, and no write of another client is lost.

use std::os::fd::BorrowedFd;
use std::sync::{LazyLock, Mutex};
use std::task::Poll;

use dyno_model::{Name, name};
use dyno_units::RandomStream;
use dyno_workload::{
    ClientContext, ClientFuture, Clients, Connection, Dialect, KeptRows, Outline, Reply, Row,
    Session, Statement, StatementClass, StatementError, Table, TextRows, Transactions, Value,
    Workload, drive,
};

use super::*;

/// One number. Refuses a second writer, as SQLite would.
#[derive(Default)]
struct Ledger {
    number: i64,
    writer: Option<u64>,
    n_opened: u64,
}

struct LedgerConnection {
    ledger: Arc<Mutex<Ledger>>,
    id: u64,
    in_flight: Option<Command>,
    is_in_transaction: bool,
    written: Option<i64>,
    kept: KeptRows,
}

#[derive(Clone, Copy)]
enum Command {
    Begin,
    Commit,
    Rollback,
    Read,
    Write(i64),
}

impl LedgerConnection {
    fn end(&mut self, commits: bool) {
        let mut ledger = self.ledger.lock().expect("no thread panics while it holds the lock");
        if let (true, Some(number)) = (commits, self.written) {
            ledger.number = number;
        }
        if ledger.writer == Some(self.id) {
            ledger.writer = None;
        }
        (self.written, self.is_in_transaction) = (None, false);
    }

    fn write(&mut self, number: i64) -> Result<Reply, StatementError> {
        let mut ledger = self.ledger.lock().expect("no thread panics while it holds the lock");
        if ledger.writer.is_some_and(|writer| writer != self.id) {
            return Err(StatementError::new(ErrorClass::Refused, "busy", "another client writes"));
        }
        ledger.writer = Some(self.id);
        drop(ledger);
        self.written = Some(number);
        if !self.is_in_transaction {
            self.end(true);
        }
        Ok(Reply { affected: 1, ..Reply::default() })
    }
}

impl Drop for LedgerConnection {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl Connection for LedgerConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare(&mut self, _statements: &[Statement]) -> Result<(), StatementError> {
        Ok(())
    }

    fn send_execute(&mut self, _statement: usize, values: &[Value<'_>]) {
        self.in_flight = Some(match values {
            [Value::Integer(number)] => Command::Write(*number),
            _ => Command::Read,
        });
    }

    fn send_text(&mut self, sql: &str) {
        self.in_flight = Some(match sql {
            "COMMIT" => Command::Commit,
            "ROLLBACK" => Command::Rollback,
            _ => Command::Begin,
        });
    }

    fn poll_reply(&mut self) -> Poll<Result<Reply, StatementError>> {
        Poll::Ready(match self.in_flight.take().expect("something was sent") {
            Command::Begin => {
                self.is_in_transaction = true;
                Ok(Reply::default())
            }
            Command::Commit | Command::Rollback if !self.is_in_transaction => Ok(Reply::default()),
            Command::Commit => {
                self.end(true);
                Ok(Reply::default())
            }
            Command::Rollback => {
                self.end(false);
                Ok(Reply::default())
            }
            Command::Read => {
                let number =
                    self.ledger.lock().expect("no thread panics while it holds the lock").number;
                self.kept.clear(1);
                self.kept.push_integer(self.written.unwrap_or(number));
                Ok(Reply { rows: 1, ..Reply::default() })
            }
            Command::Write(number) => self.write(number),
        })
    }

    fn kept_rows(&self) -> &KeptRows {
        &self.kept
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

/// Clients that add one to the number; with `looks`, every other transaction only reads.
#[derive(Clone, Copy)]
struct Adding {
    looks: bool,
}

const ADD: usize = 0;

static OUTLINE: LazyLock<Outline> = LazyLock::new(|| Outline {
    name: name("adding"),
    kinds: vec![name("add"), name("look")],
    ..Outline::default()
});

impl Workload for Adding {
    fn outline(&self) -> &Outline {
        &OUTLINE
    }

    fn tables(&self, _dialect: Dialect) -> Vec<Table> {
        Vec::new()
    }

    fn fill_row(&self, _table_idx: usize, _number: u64, _row: &mut Row) {}

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        assert_eq!(dialect, Dialect::Sqlite, "the dialect is the store's");
        vec![
            Statement::new("SELECT n FROM t", StatementClass::Read).keeping_rows(),
            Statement::new("UPDATE t SET n = ?", StatementClass::Write),
        ]
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        self
    }
}

impl Clients for Adding {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        Box::pin(drive(*self, context))
    }
}

impl Transactions for Adding {
    fn draw(&mut self, random: &mut RandomStream) -> usize {
        if self.looks { random.below(2) as usize } else { ADD }
    }

    async fn perform(
        &mut self,
        kind: usize,
        _random: &mut RandomStream,
        session: &mut Session,
    ) -> Result<(), StatementError> {
        let begin = if kind == ADD { "BEGIN IMMEDIATE" } else { "BEGIN" };
        session.text(begin, StatementClass::Other).await?;
        session.execute(0, &[]).await?;
        if kind == ADD {
            let number = session.kept_rows().integer(0, 0).expect("the row was kept");
            session.execute(1, &[Value::Integer(number + 1)]).await?;
        }
        session.commit().await?;
        Ok(())
    }
}

fn add(spec: &StepSpec, server: SimulatedServer, looks: bool) -> (Seen, i64) {
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let shared = Arc::clone(&ledger);
    let store = Store::new(Arc::new(move || {
        let ledger = Arc::clone(&shared);
        let mut opened = shared.lock().expect("no thread panics while it holds the lock");
        opened.n_opened += 1;
        Ok(Box::new(LedgerConnection {
            id: opened.n_opened,
            ledger,
            in_flight: None,
            is_in_transaction: false,
            written: None,
            kept: KeptRows::default(),
        }) as Box<dyn Connection>)
    }));
    let workload = MadeWorkload::new(Arc::new(Adding { looks }));
    let seen = try_simulate_workload(spec, &server.with_store(store), &workload);
    let number = ledger.lock().expect("no thread panics while it holds the lock").number;
    (seen.expect("the step runs"), number)
}

#[track_caller]
fn check_kept(seen: &Seen, number: i64) {
    let committed = seen.totals.measured.kinds[ADD].outcomes.committed() as i64;
    let most = committed + seen.totals.in_flight_at_end as i64;
    assert!((committed..=most).contains(&number), "{number} of {committed} to {most}");
    assert_eq!(outcome(&seen.totals, "refused"), 0, "{:?}", seen.totals.error_examples);
}

#[test]
fn one_client_writes_at_a_time_and_all_its_writes_are_there() {
    let server = SimulatedServer::new(4, ServiceTime::Constant(MS));
    let (seen, number) = add(&closed(8, 20), server, false);
    // Four statements of 1 ms under the lock, whatever the number of clients and places.
    assert_eq!(seen.totals.measured.kinds[ADD].outcomes.committed(), 20 * 250 - 1);
    check_kept(&seen, number);
    // First come, first served: each waits for the seven others.
    check_close("response, ms", mean_response_ms(&seen.totals), 8.0 * 4.0, 0.01);
}

#[test]
fn who_only_reads_does_not_wait_for_who_writes() {
    let server = SimulatedServer::new(8, ServiceTime::Constant(MS));
    let (seen, number) = add(&closed(8, 20), server, true);
    check_kept(&seen, number);
    let kinds = &seen.totals.measured.kinds;
    check_close("a look, ms", kinds[1].service.max() as f64 / 1e6, 3.0, 0.001);
    assert!(kinds[ADD].service.max() > 4 * MS.0, "{}", kinds[ADD].service.max());
}

#[test]
fn nothing_is_lost_by_errors_outages_and_lost_connections() {
    let spec = StepSpec {
        retries: 3,
        statement_timeout: MS.times(200),
        ..open(150.0, Arrivals::Poisson, 8, 30)
    };
    let server = SimulatedServer::new(2, exponential(MS))
        .with_errors(ErrorClass::Deadlock, 0.02)
        .with_errors(ErrorClass::TimedOut, 0.001)
        .with_outage(MS.times(9_000), MS.times(700))
        .with_stall(MS.times(19_000), MS.times(150));
    let (seen, number) = add(&spec, server, false);
    for name in ["deadlock", "timed_out", "disconnected"] {
        assert!(outcome(&seen.totals, name) > 0, "there is no {name}");
    }
    check_kept(&seen, number);
    let last = seen.intervals.last().expect("there are intervals");
    assert!(last.committed() > 50, "the lock went on: {}", last.committed());
}

#[test]
fn a_step_with_rows_is_the_same_each_time() {
    let run = || {
        let server = SimulatedServer::new(2, exponential(MS)).with_seed(Seed(5));
        let (seen, number) = add(&closed(5, 10), server, true);
        (number, seen.totals.measured.kinds[ADD].response.clone())
    };
    assert_eq!(run(), run());
}
