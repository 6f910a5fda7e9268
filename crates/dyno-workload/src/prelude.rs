//! What most workloads import.

pub(crate) use std::sync::Arc;

pub(crate) use crate::catalog::{PlanError, PlanInput, WorkloadSpec};
pub(crate) use crate::{
    AuditRow, AuditTotals, ClientContext, ClientFuture, Clients, Dialect, Done, Outline, Row,
    Session, Statement, StatementClass, Table, TextRows, Transactions, Value, Workload, drive,
    number_in,
};
