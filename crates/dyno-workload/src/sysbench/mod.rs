//! The sysbench OLTP family, with sysbench's tables, statements, options and counting.
//!
//! A study names a script as its workload. Options have sysbench's names and defaults, of its
//! current source where versions differ: `distribution` is `special` in sysbench 1.0 and `uniform`
//! in the current source. `point_select_keys` and `row_filter` are RonDB's variants (many keys in a
//! point select; range scans that return one row). A transaction is a sysbench event. Departures
//! are described where they happen: tables in `schema`, statements in `statements`, ids in
//! `sequence`, drawing in [`distribution`].

mod digits;
pub mod distribution;
mod schema;
pub(crate) mod sequence;
mod settings;
mod statements;
mod transactions;

#[cfg(test)]
mod tests;

use crate::ledger::{Ledger, Note, NotedRows};
use crate::prelude::*;
use crate::skew::DrawnKeys;

use crate::workload::{ONLY_READS, refuse_without_transactions};

use sequence::Sequences;
use settings::{SCRIPTS, Script, Settings, Shape};
use statements::{Mix, StatementKind};
use transactions::{
    BulkClient, InsertClient, InsertIds, MixClient, RandomKeysClient, RowText, Rows,
};

pub fn specs() -> Vec<WorkloadSpec> {
    let spec = |script: &'static Script| {
        let options = script.option_specs();
        WorkloadSpec::new(script.name, script.summary, options, move |input| plan(script, input))
    };
    SCRIPTS.iter().map(spec).collect()
}

fn plan(script: &Script, input: &PlanInput<'_>) -> Planned {
    let settings = Settings::read(script, input.options, input.seed)?;
    let outline = Outline {
        counts_commits: matches!(settings.shape, Shape::Insert),
        why_tables_are_not_audited: settings.why_not_of_tables(),
        ..input.outline([input.name.clone()])
    };
    Ok(Arc::new(Sysbench { outline, settings, notes_commits: false }))
}

#[derive(Clone)]
struct Sysbench {
    outline: Outline,
    settings: Settings,
    notes_commits: bool,
}

struct SysbenchClients {
    script: Arc<Sysbench>,
    sequences: Sequences,
    /// The rows that clients drew; none if each draws from a part of its own, or not at all.
    drawn: Option<Arc<DrawnKeys>>,
    ledger: Option<Arc<Ledger>>,
}

impl Workload for Sysbench {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        let Settings { is_id_secondary, has_k_index, shape, .. } = self.settings;
        let why = match shape {
            _ if dialect.has_transactions() => return Ok(()),
            Shape::Mix(mix) if mix.has_writes() => {
                return refuse_without_transactions(self.name(), dialect);
            }
            Shape::Mix(mix) if mix.has_begin => {
                "option `skip_trx`: ClickHouse has no transactions; write `skip_trx = true`"
            }
            Shape::BulkInsert { .. } => {
                return Err(format!(
                    "`{}` counts the rows that the server says it stored, which ClickHouse does \
                     not report; use `oltp_insert`, or measure how long populating takes",
                    self.name()
                ));
            }
            _ if is_id_secondary => {
                "option `secondary`: ClickHouse has no secondary indexes; leave the option out"
            }
            _ if has_k_index => {
                "option `create_secondary`: ClickHouse has no secondary indexes; write \
                 `create_secondary = false`"
            }
            _ => return Ok(()),
        };
        Err(why.to_owned())
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        match self.settings.shape {
            Shape::BulkInsert { .. } => schema::bulk_tables(self.settings.n_tables),
            _ => self.settings.tables(dialect),
        }
    }

    fn table_shapes(&self) -> Vec<TableShape> {
        let rows = match self.settings.shape {
            Shape::BulkInsert { .. } => 0,
            _ => self.settings.n_rows,
        };
        vec![TableShape { first: 0, n_tables: self.settings.n_tables, rows }]
    }

    /// The ids of further rows follow from one count of all clients.
    fn check_apart(&self) -> Result<(), String> {
        match self.settings.shape {
            Shape::Mix(_) | Shape::RandomKeys { .. } => Ok(()),
            Shape::Insert | Shape::BulkInsert { .. } => Err(format!(
                "the clients of `{}` number their rows together, so they must run in one process",
                self.name()
            )),
        }
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        self.settings.fill_row(table_idx, number, row);
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let n_tables = self.settings.n_tables;
        match self.settings.shape {
            Shape::Mix(mix) => mix.statements(dialect, n_tables),
            Shape::Insert => {
                statements::insert_statements(dialect, n_tables, self.settings.needs_ids(dialect))
            }
            Shape::BulkInsert { .. } => Vec::new(),
            Shape::RandomKeys { n_keys, delta } => {
                vec![statements::random_keys_statement(dialect, n_keys, delta.is_some())]
            }
        }
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        self.settings.audit_queries()
    }

    /// By the random digits of `c`.
    fn noting_commits(self: Arc<Self>) -> Result<Arc<dyn Workload>, &'static str> {
        if !self.outline().counts_commits {
            return Err("its audit does not count its transactions");
        }
        Ok(Arc::new(Sysbench { notes_commits: true, ..Sysbench::clone(&self) }))
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let rows = self.settings.distribution.over(self.settings.table_size);
        let draws_from_all = matches!(self.settings.shape, Shape::Mix(_) | Shape::Insert);
        let drawn = draws_from_all.then(|| rows.counted());
        let ledger = self.notes_commits.then(|| {
            Ledger::new(NotedRows {
                tables: (1..=self.settings.n_tables).map(|n| format!("sbtest{n}")).collect(),
                column: "c",
                filled: self.settings.n_tables * self.settings.n_rows,
                per_transaction: 1,
            })
        });
        Arc::new(SysbenchClients { script: self, sequences: Sequences::default(), drawn, ledger })
    }
}

impl Clients for SysbenchClients {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        let Settings { shape, n_tables, .. } = self.script.settings;
        match shape {
            Shape::Mix(mix) => Box::pin(drive(MixClient::new(mix, n_tables, self.rows()), context)),
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
        let mut rows = self.script.settings.audit(totals, answers);
        rows.extend(self.drawn.iter().map(|drawn| drawn.audit_row("rows drawn")));
        rows
    }
}

impl SysbenchClients {
    fn insert_client(&self, context: &ClientContext) -> InsertClient {
        let sequence = self.sequences.member(context.client_idx as u64, context.n_clients as u64);
        let ids = if !self.script.settings.needs_ids(context.session.dialect()) {
            InsertIds::Server
        } else if self.script.settings.is_auto_increment {
            InsertIds::After(self.script.settings.n_rows, sequence)
        } else {
            InsertIds::Scattered(sequence)
        };
        let note = |ledger: &Arc<Ledger>| Note::new(ledger, digits::text_len(digits::C_GROUPS));
        let (n_tables, text) = (self.script.settings.n_tables, RowText::new());
        let note = self.ledger.as_ref().map(note);
        InsertClient { n_tables, k: self.rows(), ids, text, note }
    }

    fn rows(&self) -> Rows {
        let Settings { distribution, table_size, .. } = &self.script.settings;
        let drawn = self.drawn.as_ref().map(DrawnKeys::client);
        Rows { distribution: distribution.over(*table_size), drawn }
    }

    /// As in sysbench, client i fills table i; clients that share a table interleave their ids.
    fn bulk_client(&self, bytes_max: usize, context: &ClientContext) -> BulkClient {
        let n_tables = self.script.settings.n_tables;
        let (client, n_clients) = (context.client_idx as u64, context.n_clients as u64);
        let table_idx = client % n_tables;
        let n_sharing = (n_clients - table_idx).div_ceil(n_tables);
        let sequence = self.sequences.member(client / n_tables, n_sharing);
        BulkClient::new(table_idx, bytes_max, sequence)
    }

    /// The client's part of [0, rows]: its first key, and a distribution over its keys.
    fn segment(&self, context: &ClientContext) -> (i64, distribution::Distribution) {
        let len = self.script.settings.table_size as f64 / context.n_clients as f64;
        let low = len * context.client_idx as f64;
        let (first, last) = (low as u64, (low + len) as u64);
        (first as i64, self.script.settings.distribution.over(last - first + 1))
    }
}

// Checks after the scripts; sysbench itself has none.

/// Shortest text of a row of `bulk_insert`: `(1,1),`.
const BULK_ROW_BYTES_LEAST: u64 = 6;

impl Settings {
    fn audit_queries(&self) -> Vec<String> {
        let count = |number| format!("SELECT COUNT(*) FROM sbtest{number}");
        match self.shape {
            Shape::Mix(mix) if mix.count(StatementKind::Delete) == 0 => Vec::new(),
            Shape::RandomKeys { .. } => Vec::new(),
            Shape::Mix(_) | Shape::Insert | Shape::BulkInsert { .. } => {
                (1..=self.n_tables).map(count).collect()
            }
        }
    }

    fn why_not_of_tables(&self) -> Option<&'static str> {
        match self.shape {
            Shape::Mix(mix) if mix.count(StatementKind::Delete) > 0 => None,
            Shape::Mix(mix) if mix.has_writes() => Some("the workload only updates rows in place"),
            Shape::Mix(_) | Shape::RandomKeys { .. } => Some(ONLY_READS),
            Shape::Insert | Shape::BulkInsert { .. } => None,
        }
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let per_transaction = match self.shape {
            Shape::Mix(mix) => Some(mix.n_statements()),
            Shape::Insert | Shape::RandomKeys { .. } => Some(1),
            // One statement for thousands of transactions.
            Shape::BulkInsert { .. } => None,
        };
        let statements = per_transaction.map(|n| AuditRow::statements(n, totals));
        let received = match self.shape {
            Shape::Mix(mix) => received(&mix, totals),
            _ => None,
        };
        statements.into_iter().chain(received).chain(self.rows(totals, answers)).collect()
    }

    fn rows(&self, totals: &AuditTotals, answers: &[TextRows]) -> Option<AuditRow> {
        let counts: Vec<Option<i128>> =
            answers.iter().map(|answer| number_in(answer, 0, 0)).collect();
        let total = counts.iter().copied().sum::<Option<i128>>();
        let Settings { n_tables, n_rows, .. } = *self;
        let filled = i128::from(n_tables * n_rows);
        let changed = i128::from(totals.tally.rows_changed);
        let unknown = i128::from(totals.unknown());
        let bounds = match self.shape {
            Shape::Mix(mix) if mix.count(StatementKind::Delete) == 0 => return None,
            Shape::Mix(mix) if mix.count(StatementKind::Insert) == 0 => {
                (filled - changed - unknown, filled - changed)
            }
            Shape::Mix(mix) if mix.has_begin => return Some(self.unchanged(&counts)),
            Shape::Mix(_) => {
                // Attempts that ended between DELETE and INSERT lack their row.
                let halves = i128::from(totals.unfinished() + totals.in_flight);
                (filled - halves, filled)
            }
            Shape::Insert => {
                let filled = (n_tables * n_rows, 1);
                return Some(AuditRow::inserted("rows in the tables", filled, totals, total));
            }
            Shape::BulkInsert { bytes_max } => {
                let rows_most = bytes_max as u64 / BULK_ROW_BYTES_LEAST;
                (changed, changed + unknown * i128::from(rows_most))
            }
            Shape::RandomKeys { .. } => return None,
        };
        Some(AuditRow::between("rows in the tables", bounds, total))
    }

    fn unchanged(&self, counts: &[Option<i128>]) -> AuditRow {
        let Settings { n_tables, n_rows, .. } = *self;
        let wrong = counts.iter().position(|count| *count != Some(n_rows.into()));
        let measured = match wrong {
            None if counts.len() as u64 == n_tables => format!("{n_rows} in each"),
            None => format!("{} tables", counts.len()),
            Some(idx) => {
                let count = counts[idx].map_or("no number".to_owned(), |count| count.to_string());
                format!("{count} in sbtest{}", idx + 1)
            }
        };
        let expected = format!("{n_rows} in each");
        let pass = measured == expected;
        let name = match n_tables {
            1 => "rows in the table".to_owned(),
            n => format!("rows in {n} tables"),
        };
        AuditRow::judged(name, expected, measured, pass)
    }
}

/// Rows received by a mix that changes none: every key that is asked for is there.
fn received(mix: &Mix, totals: &AuditTotals) -> Option<AuditRow> {
    if mix.has_writes() {
        return None;
    }
    let (least, most) = mix.rows_returned();
    let committed = i128::from(totals.committed());
    let of_unfinished = i128::from(totals.unfinished()) * i128::from(most);
    let bounds = (committed * i128::from(least), committed * i128::from(most) + of_unfinished);
    let received = totals.tally.rows_received.into();
    Some(AuditRow::between("rows received", bounds, Some(received)).of_clients())
}
