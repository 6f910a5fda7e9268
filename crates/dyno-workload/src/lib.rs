//! Workloads: tables, data, transactions and mixes, and the connection that carries them.
//!
//! A workload is written once for all databases: it reaches servers only through [`Connection`],
//! which products implement, and time only through [`Pace`], which the load generator implements.
//! It knows no driver, clock or host. Its [`catalog::WorkloadSpec`] plans it, which is pure; the
//! plan makes a trial's [`Clients`], and [`Clients::audit`] checks after the load what the server
//! confirmed. To add a workload, copy the folder `tpcb` (one workload) or `sysbench` (a family) and
//! name it in [`catalog`].

mod audit;
pub mod catalog;
mod connection;
pub mod dbstress;
pub mod declared;
pub mod documents;
mod drive;
#[cfg(test)]
mod fake;
pub mod files;
pub mod insert_benchmark;
mod kept;
pub mod key_order;
mod last_rows;
mod ledger;
#[cfg(feature = "lua")]
pub mod lua;
pub mod none;
pub mod options;
pub mod pgbench;
#[cfg(test)]
mod pinned;
mod prelude;
mod row;
mod session;
pub mod skew;
pub mod sysbench;
pub mod tpcb;
pub mod tpcc;
pub mod vectors;
mod workload;

pub use audit::{AuditRow, AuditTotals, KindTotals, Stored, number_in};
pub use connection::{
    COPY_REFUSED, ConnectError, Connection, Connector, Dialect, Done, ErrorClass, ErrorDetails,
    NamedRows, NextRow, Reply, SqlState, Statement, StatementClass, StatementError, TextRows,
    Value,
};
pub use drive::{ClientContext, ClientFuture, Ended, Next, Pace, Transactions, drive};
pub use kept::KeptRows;
pub use last_rows::LastRows;
pub use ledger::Ledger;
pub use row::{Cell, Row};
pub use session::{Answer, Session, Tally};
pub use workload::{
    Clients, MadeWorkload, MeasuredStep, Observation, Outline, TABLE_MARK, Table, TableShape,
    Target, Tried, Workload,
};
