//! The scripts of sysbench, run by real clients on a real SQLite.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use dyno_model::StepRequest;
use dyno_units::{Nanoseconds, Seed};
use dyno_workload::catalog::Catalog;
use dyno_workload::{
    ClientContext, ConnectError, Connection, Ended, MadeWorkload, Next, Pace, Session, Statement,
    StatementError, Tally,
};

use super::{database, populate};
use crate::sqlite::server::Database;

/// Lets a client do a number of transactions, none of which may fail.
struct Counted {
    left: Cell<u64>,
    total: RefCell<Tally>,
}

impl Pace for Counted {
    fn poll_due(&self) -> Poll<bool> {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        Poll::Ready(left > 0)
    }

    fn sent(&self) {}

    fn done(&self, _kind: usize, tally: Tally, result: Result<Ended, &StatementError>) -> Next {
        assert_eq!(result, Ok(Ended::Committed));
        self.total.borrow_mut().add(&tally);
        Next::Proceed
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
        panic!("SQLite never waits");
    }

    fn is_overdue(&self) -> bool {
        false
    }

    fn poll_connect(&self) -> Poll<Result<Box<dyn Connection>, ConnectError>> {
        panic!("no connection is lost here");
    }

    fn reconnect_failed(&self, _error: &ConnectError) -> bool {
        false
    }
}

/// Runs client 0 of 1 for `n` transactions.
fn run(workload: &MadeWorkload, database: &Database, n: u64) -> Tally {
    let connection = database.connector()().unwrap();
    let statements: Rc<[Statement]> = workload.statements(connection.dialect()).into();
    let pace = Rc::new(Counted { left: Cell::new(n), total: RefCell::default() });
    let session = Session::open(connection, &statements, pace.clone()).unwrap();
    let random = Seed(9).derive("client", 0).stream();
    let context = ClientContext {
        client_idx: 0,
        n_clients: 1,
        step: 0,
        role: 0,
        idx_in_role: 0,
        n_in_role: 1,
        random,
        session,
        statements,
        pace: Rc::clone(&pace) as Rc<dyn Pace>,
    };
    let mut client = pin!(workload.client(context));
    assert!(client.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    *pace.total.borrow()
}

/// Populates two tables of 1000 rows, runs 100 transactions; returns the tally and how many rows
/// there are afterwards.
fn tally_of(script: &str, options: &[(&str, &str)]) -> (Tally, u64) {
    let catalog = Catalog::built_in();
    let spec = catalog.find(script).unwrap();
    let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut all = BTreeMap::from([given("tables", "2")]);
    if spec.options.iter().any(|option| option.name == "table_size") {
        all.insert("table_size".to_owned(), "1000".to_owned());
    }
    all.extend(options.iter().map(|(name, value)| given(name, value)));
    let workload = spec.plan(&all, StepRequest::LEAST, Seed(7)).unwrap();
    let workload = MadeWorkload::new(workload);
    let (_folder, database) = database(&[("journal_mode", "wal"), ("synchronous", "off")]);
    let mut connection = database.connector()().unwrap();
    populate(&*workload, connection.as_mut());
    let tally = run(&workload, &database, 100);
    let sql = "SELECT (SELECT count(*) FROM sbtest1) + (SELECT count(*) FROM sbtest2)";
    let n_rows = connection.query(sql).unwrap()[0][0].clone().unwrap();
    (tally, n_rows.parse().unwrap())
}

#[test]
fn reads_return_rows_and_change_none() {
    let (tally, n_rows) = tally_of("oltp_read_only", &[("row_filter", "on")]);
    assert_eq!((tally.reads, tally.writes, tally.others), (1400, 0, 200));
    // Ranges may begin within 100 rows of the end, and are then shorter: 10 to 14 rows.
    assert!((1000..=1400).contains(&tally.rows_received), "{tally:?}");
    assert_eq!((tally.rows_changed, n_rows), (0, 2000));

    let (tally, _) = tally_of("oltp_point_select", &[("point_select_keys", "5")]);
    assert_eq!(tally.reads, 100);
    // Keys may be drawn twice.
    assert!((490..=500).contains(&tally.rows_received), "{tally:?}");

    let (tally, _) = tally_of("select_random_points", &[]);
    assert!(tally.rows_received > 500, "{tally:?}");
    let (tally, _) = tally_of("select_random_ranges", &[]);
    assert_eq!(tally.rows_received, 100);
}

#[test]
fn writes_change_rows_and_keep_their_number() {
    for script in ["oltp_read_write", "oltp_write_only"] {
        let (tally, n_rows) = tally_of(script, &[]);
        assert_eq!((tally.writes, tally.rows_changed, n_rows), (400, 400, 2000), "{script}");
    }
    for script in ["oltp_update_index", "oltp_update_non_index"] {
        let (tally, n_rows) = tally_of(script, &[("distribution", "zipfian")]);
        assert_eq!((tally.writes, tally.rows_changed, n_rows), (100, 100, 2000), "{script}");
    }
}

#[test]
fn inserts_and_deletes_change_the_number_of_rows() {
    let (tally, n_rows) = tally_of("oltp_delete", &[]);
    assert_eq!((tally.writes, tally.rows_changed), (100, 2000 - n_rows));
    assert_eq!(tally_of("oltp_insert", &[]).1, 2100);
    assert_eq!(tally_of("oltp_insert", &[("auto_inc", "off")]).1, 100);
    assert_eq!(tally_of("oltp_insert", &[("secondary", "on")]).1, 2100);
    let (tally, n_rows) = tally_of("bulk_insert", &[("statement_bytes", "500")]);
    assert_eq!(tally.rows_changed, n_rows);
    assert!(tally.writes == 1 && n_rows > 50, "{tally:?} {n_rows}");
}
