//! db_STRESS, Dimitri Kravtchuk's stress test: objects, each with a history of twenty states.
//!
//! A *read* selects an object with section and zone (SEL1) and its twenty rows of history (SEL2). A
//! *write*, of the object just read, deletes a row of history and inserts it again, and updates
//! another. A client writes after every `rw_ratio` reads; 0 is read only. Statements commit by
//! themselves, unless `trx` adds BEGIN and COMMIT.
//!
//! Reads and writes are two kinds of transactions. The sysbench port's event is a read with the
//! write that may follow: its events per second are reads per second.
//!
//! Option `ref` decides which objects a client draws. With objects of its own (*anti-deadlock*) it
//! never waits for another's rows; with `random` (*true random*) it may, and without a unique key
//! on history (`hpk`) two clients may insert a row twice: the audit reports this drift of HISTORY.
//! The three ways to own objects reach different shares of the data: all but the ends of each
//! slice, one 2000th for each client, half. Departures from the original are in `schema` and `own`.

mod audit;
mod own;
mod schema;
mod transactions;

#[cfg(test)]
mod tests;

use crate::options::{Options, any_count, count, real, refuse, switch, word};
use crate::prelude::*;

use audit::{Audit, Counts};
use own::{Own, Sharing};
use transactions::Client;

const NAME: &str = "dbstress";

pub fn spec() -> WorkloadSpec {
    let summary = "db_STRESS: objects with a history of states, read and rewritten by many users";
    WorkloadSpec::new(NAME, summary, OPTIONS.to_vec(), plan)
}

/// Rows follow from numbers, not the seed. Refuses more clients than there are objects for.
fn plan(input: &PlanInput<'_>) -> Planned {
    let settings = Settings::read(input.options)?;
    let clients = input.request.clients as u64;
    settings.sharing.check(settings.objects, clients).map_err(PlanError::Load)?;
    Ok(Arc::new(DbStress { outline: input.outline(settings.kinds()), settings }))
}

struct DbStress {
    outline: Outline,
    settings: Settings,
}

impl Workload for DbStress {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn check(&self, dialect: Dialect) -> Result<(), String> {
        crate::workload::refuse_without_transactions(self.name(), dialect)?;
        if self.settings.for_update && dialect == Dialect::Sqlite {
            let why = "option `for_update`: SQLite has no SELECT … FOR UPDATE; leave the option out, or \
                       vary it in a study of other products";
            return Err(why.to_owned());
        }
        Ok(())
    }

    fn check_load(&self, is_open: bool) -> Result<(), String> {
        if is_open && self.settings.think_ns > 0.0 {
            return Err("option `think_time_ms` cannot be combined with a rate: the rate decides \
                        when transactions begin; leave out one of the two"
                .to_owned());
        }
        Ok(())
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        schema::tables(&self.settings, dialect)
    }

    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        schema::fill_row(table_idx, number, row);
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        transactions::statements(&self.settings, dialect)
    }

    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        audit::queries(&self.settings)
    }

    fn clients(self: Arc<Self>) -> Arc<dyn Clients> {
        Arc::new(DbStressClients { workload: self, counts: Counts::default() })
    }
}

struct DbStressClients {
    workload: Arc<DbStress>,
    counts: Counts,
}

impl Clients for DbStressClients {
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture {
        let settings = &self.workload.settings;
        let place = (context.client_idx as u64, context.n_clients as u64);
        let own = Own::of(settings.sharing, settings.objects, place);
        let counts = self.counts.client(place, own);
        Box::pin(drive(Client::new(settings, place, own, counts), context))
    }

    fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let settings = &self.workload.settings;
        Audit { settings, counts: &self.counts, totals, answers }.judge()
    }
}

const HISTORY: u64 = 20;

/// Most objects: a REF has ten digits.
const OBJECTS_MAX: u64 = 9_999_999_999;

/// Most sets of tables: each connection prepares the statements of all of them.
const SETS_MAX: u64 = 100;

const REPEATS_MAX: usize = 20;

const OPTIONS: &[OptionSpec] = &[
    count("obj_tables", "1", 1, SETS_MAX)
        .help("sets of the five tables; a client draws one for each read"),
    count("obj_table_size", "10k", 1, OBJECTS_MAX).help(
        "objects of each set, with 20 rows of history each (about 4 kB an object; the classic \
         size is 10M)",
    ),
    any_count("rw_ratio", "1").help("reads for each write of a client; 0 for read only"),
    word("ref", &["slice", "mod2000", "mod2t", "random"]).help(
        "objects of a client: its own slice; every 2000th, or every (2 × clients)th of its own \
         (anti-deadlock v05, v06, v07); any of all (true random)",
    ),
    count("sel1", "1", 0, REPEATS_MAX as u64)
        .help("selects per read of an object with its section and zone (1 row)"),
    count("sel2", "1", 0, REPEATS_MAX as u64)
        .help("selects per read of an object's history with its states (20 rows)"),
    count("delete_inserts", "1", 0, REPEATS_MAX as u64)
        .help("rows of history that a write deletes and reinserts"),
    count("updates", "1", 0, REPEATS_MAX as u64).help("rows of history that a write updates"),
    switch("trx", false).help(
        "BEGIN and COMMIT around the statements of each read and write; otherwise autocommit",
    ),
    switch("for_update", false).help("SELECT … FOR UPDATE (not on SQLite)"),
    switch("hpk", false)
        .help("a unique key on history; otherwise a plain index on the same columns"),
    real("think_time_ms", "0").help(
        "mean pause of a client after a read and the write that follows it (closed-loop load only)",
    ),
    word("think_time", &["constant", "uniform", "exponential"])
        .help("how long pauses are: always the mean, from 0 to twice the mean, or exponential"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    Constant,
    Uniform,
    Exponential,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    sets: u64,
    objects: u64,
    rw_ratio: u64,
    sharing: Sharing,
    sel1: usize,
    sel2: usize,
    delete_inserts: usize,
    updates: usize,
    trx: bool,
    for_update: bool,
    hpk: bool,
    think_ns: f64,
    spread: Spread,
}

impl Settings {
    fn read(options: &Options) -> Result<Settings, OptionError> {
        let repeats = |name| options.in_range(name).map(|count| count as usize);
        let settings = Settings {
            sets: options.in_range("obj_tables")?,
            objects: options.in_range("obj_table_size")?,
            rw_ratio: options.count("rw_ratio"),
            sharing: options.meaning("ref", Sharing::ALL),
            sel1: repeats("sel1")?,
            sel2: repeats("sel2")?,
            delete_inserts: repeats("delete_inserts")?,
            updates: repeats("updates")?,
            trx: options.switch("trx"),
            for_update: options.switch("for_update"),
            hpk: options.switch("hpk"),
            think_ns: think_ns(options)?,
            spread: options
                .meaning("think_time", [Spread::Constant, Spread::Uniform, Spread::Exponential]),
        };
        settings.check()
    }

    fn check(self) -> Result<Settings, OptionError> {
        if self.rw_ratio > 0 && self.delete_inserts + self.updates == 0 {
            let why = "there is nothing to write, because `delete_inserts` and `updates` are 0; set it \
                       to 0 for a read-only load";
            return refuse("rw_ratio", why);
        }
        if self.has_reads() || self.rw_ratio == 1 {
            return Ok(self);
        }
        let why = "`sel1` and `sel2` are 0, so there is nothing to read; set it to 1 for a \
                   write-only load";
        refuse("rw_ratio", why)
    }

    fn has_reads(&self) -> bool {
        self.sel1 + self.sel2 > 0
    }

    fn has_writes(&self) -> bool {
        self.rw_ratio > 0
    }

    fn kinds(&self) -> &'static [Name] {
        match (self.has_reads(), self.has_writes()) {
            (true, true) => const { &[name("read"), name("write")] },
            (true, false) => const { &[name("read")] },
            (false, _) => const { &[name("write")] },
        }
    }

    fn n_statements(&self) -> (u64, u64) {
        let around = if self.trx { 2 } else { 0 };
        let read = self.sel1 + self.sel2;
        let write = 2 * self.delete_inserts + self.updates;
        ((read + around) as u64, (write + around) as u64)
    }

    fn history_rows(&self) -> u64 {
        self.objects * HISTORY
    }
}

fn think_ns(options: &Options) -> Result<f64, OptionError> {
    let ms = options.real("think_time_ms");
    if (0.0..=3_600_000.0).contains(&ms) {
        return Ok(ms * 1e6);
    }
    refuse("think_time_ms", format!("`{ms}` is not between 0 and an hour"))
}
