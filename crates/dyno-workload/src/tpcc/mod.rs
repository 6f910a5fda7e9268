//! TPC-C: a wholesale supplier's order entry, after revision 5.11 of the specification. Data and
//! transactions are the specification's, as an audit shows after each run ([`audit`]). Options,
//! which are recorded:
//!
//! - `mode`: *paced* terminals key and think; *unpaced* ones begin when the last transaction has
//!   ended; *open* is a rate of arrivals, whatever the server does, and what *unpaced* becomes
//!   under a rate. The specification measures only *paced*, so only its throughput may be called
//!   tpmC.
//! - `home`: a client is a terminal of one warehouse, or (not TPC-C) draws one each time.
//! - `mix`: kinds by weights of 45/43/4/4/4 %, or from shuffled decks of 23 cards; the
//!   specification permits both.
//! - `procedures`: statement by statement, or a stored procedure per transaction.
//! - `batched`: one statement for what the specification does line by line.
//! - `pipelined`: independent statements share a round trip.
//! - `tables`: several sets of the nine tables, as in sysbench-tpcc.
//! - `size`: the specification's, or (not TPC-C) a fiftieth of a warehouse's rows.
//!
//! Departures: any row of the population can be made on its own (`rows`); an order's lines take
//! their stock in key order, unless `sort_lines` is off; delivery runs at once instead of queued;
//! what terminals would show is computed, but not shown.

mod audit;
mod client;
mod inputs;
mod new_order;
mod others;
mod pipelined;
mod procedures;
mod random;
mod rows;
mod schema;
mod settings;
mod statements;
mod transaction;

#[cfg(test)]
mod tests;

use audit::Audit;
use client::Client;
use inputs::{Counts, Source, Terminal};
use random::{Constants, NuRand};
use schema::{Schema, suffix};
use settings::{KINDS, Mode, OPTIONS, Settings, Sizes};
use statements::StatementMode;

use crate::prelude::*;

pub use settings::Fault;

const NAME: &str = "tpcc";

pub fn spec() -> WorkloadSpec {
    let summary = "TPC-C: orders, payments and deliveries of a wholesale supplier";
    WorkloadSpec::new(NAME, summary, OPTIONS.to_vec(), |input| plan(input, |settings| settings))
}

/// For tests of the audit: a small TPC-C (a fiftieth of the rows) with this fault in it.
#[doc(hidden)]
pub fn small_spec(fault: Option<Fault>) -> WorkloadSpec {
    WorkloadSpec::new(NAME, "", OPTIONS.to_vec(), move |input| {
        plan(input, |settings| Settings { fault, sizes: Sizes::SMALL, ..settings })
    })
}

fn plan(input: &PlanInput<'_>, adapt: impl Fn(Settings) -> Settings) -> Planned {
    let settings = adapt(Settings::read(input.options)?);
    let (n_terminals, clients) = (settings.n_terminals(), input.request.clients);
    if settings.mode == Mode::Paced && clients as u64 > n_terminals {
        return Err(PlanError::Load(format!(
            "tpcc in mode `paced` has ten terminals for each warehouse, {n_terminals} in all, \
             which is fewer than {clients}; use more `warehouses` or fewer clients"
        )));
    }
    let outline = Outline { needs_rows: true, ..input.outline(names(&KINDS)) };
    Ok(Arc::new(TpcC::new(outline, settings, input.seed)))
}

struct TpcC {
    outline: Outline,
    settings: Settings,
    schema: Schema,
    statement_mode: StatementMode,
    /// Of items, customers and last names, as they are drawn.
    skews: [NuRand; 3],
    /// The same, as the specification demands them.
    intended: [NuRand; 3],
}

impl TpcC {
    fn new(outline: Outline, settings: Settings, seed: Seed) -> TpcC {
        let constants = Constants::draw(seed);
        let sizes = settings.sizes;
        let intended = [
            NuRand::new(8191, constants.item, (1, sizes.items)),
            NuRand::new(1023, constants.customer, (1, sizes.customers)),
            NuRand::new(255, constants.last_name_of_run, (0, sizes.names - 1)),
        ];
        let is_flat = settings.has_fault(Fault::FlatSkew);
        TpcC {
            outline,
            settings,
            schema: Schema::new(settings, seed, constants),
            statement_mode: match (settings.has_procedures, settings.is_batched) {
                (true, _) => StatementMode::Procedures,
                (false, true) => StatementMode::Batched,
                (false, false) => StatementMode::Single,
            },
            skews: intended.map(|skew| if is_flat { skew.flat() } else { skew }),
            intended,
        }
    }
}

impl Workload for TpcC {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        crate::workload::refuse_without_transactions(self.name(), dialect)?;
        let refused = |option: &str, reason: &str| {
            Err(format!(
                "option `{option}`: {reason}; leave the option out, or vary it in a study of other \
                 products"
            ))
        };
        match dialect {
            Dialect::Sqlite if self.settings.has_procedures => {
                refused("procedures", "SQLite has no stored procedures")
            }
            Dialect::Sqlite if self.settings.has_foreign_keys => {
                refused("foreign_keys", "SQLite cannot add foreign keys to existing tables")
            }
            Dialect::Sqlite if self.settings.is_pipelined => {
                refused("pipelined", "SQLite runs in the client's process, without round trips")
            }
            _ => Ok(()),
        }
    }

    fn check_load(&self, is_open: bool) -> Result<(), String> {
        match (self.settings.mode, is_open) {
            (Mode::Paced, true) => {
                Err("tpcc in mode `paced` cannot be combined with a rate: a client begins when it \
                     has finished keying and thinking; leave out the rate or the mode"
                    .to_owned())
            }
            (Mode::Unpaced, true) => {
                Err("tpcc in mode `unpaced` cannot be combined with a rate: under a rate its mode \
                     is `open`; write mode = \"open\", or leave out the rate"
                    .to_owned())
            }
            (Mode::Open, false) => {
                Err("tpcc in mode `open` needs a rate (`rate`, or `find_rate`); \
                                        give one, or leave out the mode"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        self.schema.tables(dialect)
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        self.schema.fill_row(table_idx, number, row);
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let n_sets = self.settings.sets;
        let of_set = |set| statements::of_set(self.statement_mode, dialect, &suffix(set, n_sets));
        (0..n_sets).flat_map(of_set).collect()
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        audit::queries(&self.settings)
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        let counts = Counts::new(&self.intended);
        Arc::new(Terminals { workload: self, counts })
    }
}

struct Terminals {
    workload: Arc<TpcC>,
    counts: Counts,
}

impl Clients for Terminals {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        let TpcC { settings, statement_mode, skews, .. } = self.workload.as_ref();
        let terminal = Terminal::of(settings, context.client_idx);
        let source = Source::new(*settings, terminal, *skews, self.counts.client());
        let client = Client::new(source, *statement_mode, terminal.set);
        Box::pin(drive(client, context))
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        Audit { plan: &self.workload, counts: &self.counts, totals, answers }.rows()
    }
}
