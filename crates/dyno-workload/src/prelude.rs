//! What most workloads import.

pub(crate) use std::sync::Arc;

pub(crate) use dyno_model::{Name, OptionError, OptionSpec, name, names};
pub(crate) use dyno_units::{Nanoseconds, RandomStream, Seed};

pub(crate) use crate::workload::{PlanError, PlanInput, Planned, WorkloadSpec};
pub(crate) use crate::{
    AuditRow, AuditTotals, ClientContext, ClientFuture, Clients, Connection, Dialect, Done, Ended,
    ErrorClass, KeptRows, KindTotals, Outline, Pace, Reply, Row, Session, Statement,
    StatementClass, StatementError, Table, TableShape, Tally, TextRows, Transactions, Value,
    Workload, drive, number_in,
};
