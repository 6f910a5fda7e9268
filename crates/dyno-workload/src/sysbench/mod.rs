//! The sysbench OLTP family, with sysbench's tables, statements, options and counting.
//!
//! A study names a script as its workload. Options have sysbench's names and defaults, of its
//! current source where versions differ: `distribution` is `special` in sysbench 1.0 and `uniform`
//! in the current source. `point_select_keys` and `row_filter` are RonDB's variants (many keys in a
//! point select; range scans that return one row). A transaction is a sysbench event. Departures
//! are described where they happen: tables in `schema`, statements in `statements`, ids in
//! `sequence`, drawing in [`distribution`].

mod audit;
mod digits;
pub mod distribution;
mod schema;
pub(crate) mod sequence;
mod settings;
mod statements;
mod transactions;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::catalog::{PlanError, PlanInput, WorkloadSpec};
use crate::ledger::{Ledger, Note, NotedRows};
use crate::skew::DrawnKeys;
use crate::{
    AuditRow, AuditTotals, ClientContext, ClientFuture, Clients, Dialect, Outline, Row, Statement,
    Table, TableShape, TextRows, Workload, drive,
};

use crate::workload::refuse_without_transactions;

use audit::Audit;
use distribution::DistributionSpec;
use schema::Schema;
use sequence::Sequences;
use settings::{ScriptId, Settings};
use statements::Mix;
use transactions::{
    BulkClient, InsertClient, InsertIds, MixClient, RandomKeysClient, RowText, Rows,
};

struct Script {
    name: &'static str,
    summary: &'static str,
}

const SCRIPTS: &[Script] = &[
    Script {
        name: "oltp_read_only",
        summary: "10 point selects and 4 range scans of 100 rows per transaction",
    },
    Script {
        name: "oltp_read_write",
        summary: "oltp_read_only and oltp_write_only in one transaction",
    },
    Script { name: "oltp_write_only", summary: "2 updates, 1 delete and 1 insert per transaction" },
    Script { name: "oltp_point_select", summary: "one row by its primary key, no transaction" },
    Script { name: "oltp_update_index", summary: "adds 1 to an indexed column of one row" },
    Script { name: "oltp_update_non_index", summary: "overwrites an unindexed column of one row" },
    Script { name: "oltp_delete", summary: "deletes one row; soon most rows are already gone" },
    Script { name: "oltp_insert", summary: "inserts one row" },
    Script { name: "bulk_insert", summary: "inserts thousands of small rows per statement" },
    Script {
        name: "select_random_points",
        summary: "10 values of an indexed column in one statement",
    },
    Script {
        name: "select_random_ranges",
        summary: "counts rows in 10 ranges of an indexed column in one statement",
    },
];

pub fn specs() -> Vec<WorkloadSpec> {
    let spec = |(script, id): (&Script, ScriptId)| {
        let options = settings::option_specs(id);
        WorkloadSpec::new(script.name, script.summary, options, move |input| plan(id, input))
    };
    SCRIPTS.iter().zip(ScriptId::ALL).map(spec).collect()
}

/// The seed determines the initial rows.
fn plan(script: ScriptId, input: &PlanInput<'_>) -> Result<Arc<dyn Workload>, PlanError> {
    let settings = Settings::read(script, input.options)?;
    Ok(Arc::new(Sysbench {
        outline: input.outline([input.name.clone()]),
        schema: settings.schema(input.seed),
        shape: Shape::new(script, &settings),
        distribution: settings.distribution,
        table_size: settings.table_size,
        notes_commits: false,
    }))
}

#[derive(Clone)]
struct Sysbench {
    outline: Outline,
    schema: Schema,
    shape: Shape,
    distribution: DistributionSpec,
    table_size: u64,
    notes_commits: bool,
}

impl Sysbench {
    /// Whether it can run on ClickHouse: rows are read and inserted, and that is all.
    fn check_without_transactions(&self) -> Result<(), String> {
        match self.shape {
            Shape::Mix(mix) if mix.has_writes() => {
                refuse_without_transactions(self.name(), Dialect::ClickHouse)?;
            }
            Shape::Mix(mix) if mix.has_begin => {
                let why =
                    "option `skip_trx`: ClickHouse has no transactions; write `skip_trx = true`";
                return Err(why.to_owned());
            }
            Shape::BulkInsert { .. } => {
                return Err(format!(
                    "`{}` counts the rows that the server says it stored, which ClickHouse does \
                     not report; use `oltp_insert`, or measure how long populating takes",
                    self.name()
                ));
            }
            _ => {}
        }
        if self.schema.is_id_secondary {
            let why =
                "option `secondary`: ClickHouse has no secondary indexes; leave the option out";
            return Err(why.to_owned());
        }
        if self.schema.has_k_index {
            let why = "option `create_secondary`: ClickHouse has no secondary indexes; write \
                       `create_secondary = false`";
            return Err(why.to_owned());
        }
        Ok(())
    }
}

struct SysbenchClients {
    script: Arc<Sysbench>,
    sequences: Sequences,
    /// The rows that clients drew; none if each draws from a part of its own, or not at all.
    drawn: Option<Arc<DrawnKeys>>,
    ledger: Option<Arc<Ledger>>,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Mix(Mix),
    Insert,
    BulkInsert { bytes_max: usize },
    RandomKeys { n_keys: u64, delta: Option<i64> },
}

impl Shape {
    fn new(script: ScriptId, settings: &Settings) -> Shape {
        match script {
            ScriptId::Insert => Shape::Insert,
            ScriptId::BulkInsert => Shape::BulkInsert { bytes_max: settings.statement_bytes },
            ScriptId::RandomPoints | ScriptId::RandomRanges => {
                Shape::RandomKeys { n_keys: settings.n_keys, delta: settings.delta }
            }
            _ => Shape::Mix(settings.mix),
        }
    }

    fn draws_from_all_rows(self) -> bool {
        matches!(self, Shape::Mix(_) | Shape::Insert)
    }
}

impl Workload for Sysbench {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        if dialect.has_transactions() {
            return Ok(());
        }
        self.check_without_transactions()
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        match self.shape {
            Shape::BulkInsert { .. } => schema::bulk_tables(self.schema.n_tables),
            _ => self.schema.tables(dialect),
        }
    }

    fn table_shapes(&self) -> Vec<TableShape> {
        let rows = match self.shape {
            Shape::BulkInsert { .. } => 0,
            _ => self.schema.n_rows,
        };
        vec![TableShape { first: 0, n_tables: self.schema.n_tables, rows }]
    }

    /// The ids of further rows follow from one count of all clients.
    fn check_apart(&self) -> Result<(), String> {
        match self.shape {
            Shape::Mix(_) | Shape::RandomKeys { .. } => Ok(()),
            Shape::Insert | Shape::BulkInsert { .. } => Err(format!(
                "the clients of `{}` number their rows together, so they must run in one process",
                self.name()
            )),
        }
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        self.schema.fill_row(table_idx, number, row);
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let n_tables = self.schema.n_tables;
        match self.shape {
            Shape::Mix(mix) => mix.statements(dialect, n_tables),
            Shape::Insert => {
                statements::insert_statements(dialect, n_tables, self.schema.needs_ids(dialect))
            }
            Shape::BulkInsert { .. } => Vec::new(),
            Shape::RandomKeys { n_keys, delta } => {
                vec![statements::random_keys_statement(dialect, n_keys, delta.is_some())]
            }
        }
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        Audit { shape: self.shape, schema: &self.schema }.queries()
    }

    fn why_tables_are_not_audited(&self) -> Option<&'static str> {
        Audit { shape: self.shape, schema: &self.schema }.why_not_of_tables()
    }

    fn counts_commits(&self) -> bool {
        matches!(self.shape, Shape::Insert)
    }

    /// By the random digits of `c`.
    fn noting_commits(self: Arc<Self>) -> Result<Arc<dyn Workload>, &'static str> {
        if !self.counts_commits() {
            return Err("its audit does not count its transactions");
        }
        Ok(Arc::new(Sysbench { notes_commits: true, ..Sysbench::clone(&self) }))
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let rows = self.distribution.over(self.table_size);
        let drawn = self.shape.draws_from_all_rows().then(|| rows.counted());
        let ledger = self.notes_commits.then(|| {
            Ledger::new(NotedRows {
                tables: (1..=self.schema.n_tables).map(|n| format!("sbtest{n}")).collect(),
                column: "c",
                filled: self.schema.n_tables * self.schema.n_rows,
                per_transaction: 1,
            })
        });
        Arc::new(SysbenchClients { script: self, sequences: Sequences::default(), drawn, ledger })
    }
}

impl Clients for SysbenchClients {
    fn client(&self, context: ClientContext) -> ClientFuture {
        match self.script.shape {
            Shape::Mix(mix) => Box::pin(drive(
                MixClient::new(mix, self.script.schema.n_tables, self.rows()),
                context,
            )),
            Shape::Insert => Box::pin(drive(self.insert_client(&context), context)),
            Shape::BulkInsert { bytes_max } => {
                Box::pin(drive(self.bulk_client(bytes_max, &context), context))
            }
            Shape::RandomKeys { n_keys, delta } => {
                let (first, keys) = self.segment(&context);
                Box::pin(drive(RandomKeysClient::new(first, keys, n_keys, delta), context))
            }
        }
    }

    fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    fn counts(&self) -> Vec<u64> {
        self.drawn.as_ref().map(|drawn| drawn.sums()).unwrap_or_default()
    }

    fn add_counts(&self, counts: &[u64]) {
        self.drawn.iter().for_each(|drawn| drawn.add(counts));
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let Sysbench { shape, schema, .. } = self.script.as_ref();
        let mut rows = Audit { shape: *shape, schema }.judge(totals, answers);
        rows.extend(self.drawn.iter().map(|drawn| drawn.audit_row("rows drawn")));
        rows
    }
}

impl SysbenchClients {
    fn insert_client(&self, context: &ClientContext) -> InsertClient {
        let sequence = self.sequences.member(context.client_idx as u64, context.n_clients as u64);
        let ids = if !self.script.schema.needs_ids(context.session.dialect()) {
            InsertIds::Server
        } else if self.script.schema.is_auto_increment {
            InsertIds::After(self.script.schema.n_rows, sequence)
        } else {
            InsertIds::Scattered(sequence)
        };
        InsertClient {
            n_tables: self.script.schema.n_tables,
            k: self.rows(),
            ids,
            text: RowText::new(),
            note: self
                .ledger
                .as_ref()
                .map(|ledger| Note::new(ledger, digits::text_len(digits::C_GROUPS))),
        }
    }

    fn rows(&self) -> Rows {
        let drawn = self.drawn.as_ref().map(DrawnKeys::client);
        Rows { distribution: self.script.distribution.over(self.script.table_size), drawn }
    }

    /// As in sysbench, client i fills table i; clients that share a table interleave their ids.
    fn bulk_client(&self, bytes_max: usize, context: &ClientContext) -> BulkClient {
        let n_tables = self.script.schema.n_tables;
        let (client, n_clients) = (context.client_idx as u64, context.n_clients as u64);
        let table_idx = client % n_tables;
        let n_sharing = (n_clients - table_idx).div_ceil(n_tables);
        let sequence = self.sequences.member(client / n_tables, n_sharing);
        BulkClient::new(table_idx, bytes_max, sequence)
    }

    /// The client's part of [0, rows]: its first key, and a distribution over its keys.
    fn segment(&self, context: &ClientContext) -> (i64, distribution::Distribution) {
        let len = self.script.table_size as f64 / context.n_clients as f64;
        let low = len * context.client_idx as f64;
        let (first, last) = (low as u64, (low + len) as u64);
        (first as i64, self.script.distribution.over(last - first + 1))
    }
}
