//! The interface of every workload.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use dyno_model::{
    DefinitionProblem, Name, OptionError, OptionSpec, Pacing, Role, StepRequest, WorkloadStep,
};
use dyno_units::{Metric, MetricId, Nanoseconds, Seed};

use crate::ledger::Ledger;
use crate::options::Options;
use crate::{
    AuditRow, AuditTotals, ClientContext, ClientFuture, Connection, Dialect, Row, Statement,
    StatementError, TextRows,
};

#[derive(Clone)]
pub struct WorkloadSpec {
    pub name: Name,
    pub summary: Name,
    pub options: Vec<OptionSpec>,
    pub target: Target,
    plan: Plan,
    problems: Option<Problems>,
}

type Problems = Arc<dyn Fn(&Given) -> Vec<DefinitionProblem> + Send + Sync>;

type Plan = Arc<dyn Fn(&PlanInput<'_>) -> Planned + Send + Sync>;

/// Option values as a study gives them, by name.
type Given = BTreeMap<String, String>;

pub type Planned = Result<Arc<dyn Workload>, PlanError>;

#[derive(Clone, Debug)]
pub struct PlanInput<'a> {
    pub name: &'a Name,
    pub options: &'a Options,
    pub target: Target,
    pub request: StepRequest,
    pub seed: Seed,
}

impl PlanInput<'_> {
    /// Of a workload with these kinds, and no steps of its own.
    pub(crate) fn outline(&self, kinds: impl Into<Vec<Name>>) -> Outline {
        let (name, options) = (self.name.clone(), self.options.pairs());
        let (kinds, target) = (kinds.into(), self.target);
        Outline { name, kinds, options, target, ..Outline::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Option(#[from] OptionError),
    /// It cannot run under this load: why not, and what to do.
    #[error("{0}")]
    Load(String),
}

impl WorkloadSpec {
    /// A workload with the function that plans it, which must be pure.
    pub fn new(
        name: impl Into<Name>,
        summary: impl Into<Name>,
        options: Vec<OptionSpec>,
        plan: impl Fn(&PlanInput<'_>) -> Planned + Send + Sync + 'static,
    ) -> WorkloadSpec {
        let (name, summary, plan) = (name.into(), summary.into(), Arc::new(plan));
        WorkloadSpec { name, summary, options, target: Target::Sql, plan, problems: None }
    }

    /// Adds a pure function that finds all errors of a study's declaration, with their places.
    #[must_use]
    pub fn checked_by(
        self,
        problems: impl Fn(&Given) -> Vec<DefinitionProblem> + Send + Sync + 'static,
    ) -> WorkloadSpec {
        WorkloadSpec { problems: Some(Arc::new(problems)), ..self }
    }

    pub fn problems(&self, given: &Given) -> Vec<DefinitionProblem> {
        self.problems.as_ref().map(|problems| problems(given)).unwrap_or_default()
    }

    #[must_use]
    pub fn on(self, target: Target) -> WorkloadSpec {
        WorkloadSpec { target, ..self }
    }

    /// Missing options get defaults. Pure: the same arguments give the same steps, tables, rows and
    /// statements. Fails for an unknown or wrong option, and a load that the workload cannot run
    /// with them.
    pub fn plan(&self, given: &Given, request: StepRequest, seed: Seed) -> Planned {
        let options = Options::resolve(&self.options, given)?;
        let (name, target) = (&self.name, self.target);
        (self.plan)(&PlanInput { name, options: &options, target, request, seed })
    }
}

impl fmt::Debug for WorkloadSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WorkloadSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What the lab and the record know of a workload without asking what it does.
#[derive(Clone, Default)]
pub struct Outline {
    pub name: Name,
    pub kinds: Vec<Name>,
    pub options: Vec<(String, String)>,
    /// What it works on; the same as its [`WorkloadSpec`] says.
    pub target: Target,
    /// None if the study's load levels are its steps.
    pub steps: Vec<WorkloadStep>,
    /// Transactions depend on rows that they read: all would fail on a server that stores nothing.
    pub needs_rows: bool,
    /// Its tables have vectors with indexes, which not every installation supports.
    pub needs_vectors: bool,
    /// The workload whose tables are made and filled, if it has none of its own.
    pub tables_of: Option<Arc<dyn Workload>>,
    /// Neither tables nor anything else of Dyno's is made: a running server stays as it is.
    pub makes_nothing: bool,
    /// Whether its audit tells how many of its transactions the tables have ([`crate::AuditRow::stored`]).
    pub counts_commits: bool,
    /// In words after "because", if [`Workload::audit_queries`] is empty despite tables.
    pub why_tables_are_not_audited: Option<&'static str>,
    /// Rows inserted by its own steps, as far as options tell: for estimates of disk space.
    pub rows_of_steps: u64,
    /// Bytes that its tables take on disk, where its rows do not say.
    pub bytes_on_disk: Option<u64>,
    /// A digest of what decides rows besides the seed and does not show in statements, numbers and
    /// samples of rows: kept data sets must have the same.
    pub fills: Option<String>,
    /// How steps without clients are observed; none if the workload sends something.
    pub observation: Option<Observation>,
    /// For [`Workload::figures`] and [`Clients::figures`], besides transactions and times.
    pub metrics: &'static [Metric],
}

/// A planned workload: what follows from its options, the load and the seed alone.
///
/// Nothing in it changes while it runs: that is in its [`Clients`].
pub trait Workload: Send + Sync {
    fn outline(&self) -> &Outline;

    fn name(&self) -> &str {
        &self.outline().name
    }

    /// The kinds of its transactions; elsewhere a kind is an index into this list.
    fn kinds(&self) -> &[Name] {
        &self.outline().kinds
    }

    /// Its options, resolved, as name and value: what a record keeps.
    fn options(&self) -> Vec<(String, String)> {
        self.outline().options.clone()
    }

    /// For each of [`Workload::statements`], the keys that lead to its declaration from the workload's
    /// table. None for workloads that the study does not declare.
    fn declared_at(&self, _dialect: Dialect) -> Option<Vec<Vec<String>>> {
        None
    }

    /// Fails, with advice, if it cannot run on this dialect with its options. Called before any
    /// table is made, as planning comes before the product is known.
    fn check(&self, dialect: Dialect) -> Result<(), String> {
        refuse_without_transactions(self.name(), dialect)
    }

    /// Open (a rate decides when transactions begin) or closed. Fails with advice.
    fn check_load(&self, _is_open: bool) -> Result<(), String> {
        Ok(())
    }

    /// Fails, with the reason, if clients cannot run in several processes, which share only tables
    /// and the sums of [`Clients::counts`].
    fn check_apart(&self) -> Result<(), String> {
        Err(format!(
            "the clients of `{}` count together what its audit needs, or share state, and so run in one \
             process",
            self.name()
        ))
    }

    /// The workload's own steps; none if the study's load levels are the steps. [`ClientContext`]
    /// tells clients their step and role.
    fn steps(&self) -> &[WorkloadStep] {
        &self.outline().steps
    }

    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        self.outline().tables_of.as_ref().map_or_else(Vec::new, |other| other.tables(dialect))
    }

    /// For estimates; without statements and names, which take time.
    fn table_shapes(&self) -> Vec<TableShape> {
        // Rows do not depend on the dialect; only the statements that make the tables do.
        table_shapes(self.tables(Dialect::ALL[0]))
    }

    /// Row `number` (from 0) of table `table_idx` of [`Workload::tables`]. A pure function of
    /// arguments and seed: any worker can make any row in any order, alike on every machine.
    fn fill_row(&self, table_idx: usize, number: u64, row: &mut Row) {
        let other = self.outline().tables_of.as_ref();
        debug_assert!(other.is_some(), "`{}` has a table whose rows it does not fill", self.name());
        other.iter().for_each(|other| other.fill_row(table_idx, number, row));
    }

    /// The same row as this dialect takes it, where dialects write a value differently.
    fn fill_row_in(&self, _dialect: Dialect, table_idx: usize, number: u64, row: &mut Row) {
        self.fill_row(table_idx, number, row);
    }

    /// The statements each connection prepares; none if clients prepare their own.
    fn statements(&self, _dialect: Dialect) -> Vec<Statement> {
        Vec::new()
    }

    /// A cheap query for each second: one row of numbers, read as `probe.WORKLOAD.COLUMN`.
    fn readings_query(&self, _dialect: Dialect) -> Option<String> {
        None
    }

    /// Its clients note a row of each transaction, so that the audit counts missing confirmed ones exactly;
    /// statements may mark rows for that. Fails, in words after "because", if rows cannot be told apart.
    fn noting_commits(self: Arc<Self>) -> Result<Arc<dyn Workload>, &'static str> {
        Err("the workload makes no rows that tell its transactions apart")
    }

    fn first_queries(&self) -> Vec<String> {
        Vec::new()
    }

    /// For [`Clients::audit`], after the load. Numbers that are compared must come from one
    /// statement, hence one moment: work in flight at the end may still be finishing.
    fn audit_queries(&self, _dialect: Dialect) -> Vec<String> {
        Vec::new()
    }

    fn figures(&self, _step: &MeasuredStep<'_>) -> Vec<(MetricId, f64)> {
        Vec::new()
    }

    /// What a trial's clients share. Tables must be as [`Workload::fill_row`] fills them.
    fn clients(self: Arc<Self>) -> Arc<dyn Clients>;
}

/// For workloads that need UPDATE, DELETE and unique keys, which come with transactions.
pub(crate) fn refuse_without_transactions(name: &str, dialect: Dialect) -> Result<(), String> {
    if dialect.has_transactions() {
        return Ok(());
    }
    Err(format!(
        "`{name}` needs transactions and single rows that change, and ClickHouse has neither; it runs \
         oltp_point_select, oltp_read_only with `skip_trx = true`, oltp_insert, select_random_points, \
         select_random_ranges, pgbench scripts with `tables = \"none\"`, and jobs of SQL"
    ))
}

#[derive(Clone, Copy, Debug, Default)]
pub struct MeasuredStep<'a> {
    pub step: usize,
    pub committed: &'a [u64],
    pub seconds: f64,
    /// CPU seconds of the load generator's process in that time; none where time is simulated.
    pub cpu_s: Option<f64>,
    /// Most resident memory of the server's processes in a second of it, in bytes, if that was read.
    pub server_memory: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    #[default]
    Sql,
    /// Files, by operations on them: [`crate::files::FileCommand`].
    Files,
    /// Collections of documents, by operations on them: [`crate::documents::DocumentCommand`].
    Documents,
    /// A workload that sends nothing; a product that nothing can be sent to.
    Anything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Time between two readings; at least a second.
    pub every: Nanoseconds,
    /// Observed instead of the server's, with descendants; its end ends the observation.
    pub process: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    Done,
    /// The server refused one of them, with several values.
    Refused(StatementError),
    Not(String),
}

/// A trial's clients and their state: mostly counters for the audit.
pub trait Clients: Send + Sync {
    /// One client. Allocates here, once, and not again while it runs.
    fn client(self: Arc<Self>, context: ClientContext) -> ClientFuture;

    /// With the answers to [`Workload::first_queries`]. Fails if clients cannot begin so.
    fn begin(&self, _answers: &[TextRows]) -> Result<(), String> {
        Ok(())
    }

    /// Runs each kind of transaction once and rolls it back, as far as possible; outcomes by kind. Counts nothing,
    /// and changes no draws. Empty unless the study declares the workload. Fails if the server refuses to prepare.
    fn try_kinds(&self, _connection: Box<dyn Connection>) -> Result<Vec<Tried>, StatementError> {
        Ok(Vec::new())
    }

    /// All connections of a step are open, which took so long; its clients begin.
    fn connected(&self, _took: Nanoseconds) {}

    /// What the clients have counted for the audit, where they ran in another process.
    fn counts(&self) -> Vec<u64> {
        Vec::new()
    }

    /// From another process; ignored if the length differs from [`Clients::counts`].
    fn add_counts(&self, _counts: &[u64]) {}

    /// Measured by the clients, for [`Outline::metrics`]; called at the end of a step.
    fn figures(&self, _step: &MeasuredStep<'_>) -> Vec<(MetricId, f64)> {
        Vec::new()
    }

    /// What they have noted, if they do ([`Workload::noting_commits`]).
    fn ledger(&self) -> Option<&Ledger> {
        None
    }

    /// Why clients have ended before their step did, if they know.
    fn why_ended(&self) -> Option<String> {
        None
    }

    /// Whether the server did what it confirmed. `answers` are those to
    /// [`Workload::audit_queries`], in order. A pure function of them and the clients' counts.
    /// Tables must have been as [`Workload::fill_row`] fills them before the first transaction in
    /// `totals`.
    fn audit(&self, _totals: &AuditTotals, _answers: &[TextRows]) -> Vec<AuditRow> {
        Vec::new()
    }
}

#[derive(Clone)]
pub struct MadeWorkload {
    plan: Arc<dyn Workload>,
    pub clients: Arc<dyn Clients>,
}

impl MadeWorkload {
    pub fn new(plan: Arc<dyn Workload>) -> MadeWorkload {
        let clients = Arc::clone(&plan).clients();
        MadeWorkload { plan, clients }
    }

    /// A plan with the clients that a test gives it.
    #[cfg(test)]
    pub(crate) fn with(plan: Arc<dyn Workload>, clients: Arc<dyn Clients>) -> MadeWorkload {
        MadeWorkload { plan, clients }
    }

    pub fn client(&self, context: ClientContext) -> ClientFuture {
        Arc::clone(&self.clients).client(context)
    }

    pub fn figures(&self, step: &MeasuredStep<'_>) -> Vec<(MetricId, f64)> {
        let mut figures = self.plan.figures(step);
        figures.extend(self.clients.figures(step));
        figures
    }

    /// See [`Workload::audit_queries`]. The last query looks up what clients have noted, if any.
    pub fn audit_queries(&self, dialect: Dialect) -> Vec<String> {
        let mut queries = self.plan.audit_queries(dialect);
        queries.extend(self.clients.ledger().and_then(Ledger::query));
        queries
    }

    /// Why an audit leaves a range of confirmed transactions that can be missing, in words that follow "because".
    pub fn why_loss_is_a_range(&self) -> Option<String> {
        match self.clients.ledger() {
            Some(ledger) => ledger.why_not(),
            None => Arc::clone(&self.plan).noting_commits().err().map(str::to_owned),
        }
    }

    pub fn audit(&self, totals: &AuditTotals, answers: &[TextRows]) -> Vec<AuditRow> {
        let looked_up = self.clients.ledger().filter(|ledger| ledger.query().is_some());
        let (Some(ledger), Some((last, answers))) = (looked_up, answers.split_last()) else {
            return self.clients.audit(totals, answers);
        };
        let rows = self.clients.audit(totals, answers).into_iter();
        match ledger.lost(last, totals.committed()) {
            Some(lost) => rows.map(|row| row.lacking(lost)).collect(),
            None => rows.collect(),
        }
    }
}

impl Deref for MadeWorkload {
    type Target = dyn Workload;

    fn deref(&self) -> &Self::Target {
        self.plan.as_ref()
    }
}

/// The comment by which a routine is known as Dyno's, and a table on servers that report no owners.
pub const TABLE_MARK: &str = "made by Dyno";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub create: String,
    /// The columns that [`Workload::fill_row`] gives, in its order.
    pub columns: Vec<Name>,
    pub rows: u64,
    /// Statements to run after it is filled: secondary indexes, statistics.
    pub after: Vec<String>,
}

/// Tables that have the same columns and the same number of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// The first of them, counted from 0 in [`Workload::tables`].
    pub first: usize,
    pub n_tables: u64,
    pub rows: u64,
}

/// Why the tables of some workloads are not audited.
pub(crate) const ONLY_READS: &str = "the workload only reads";

/// The names of the columns in a table's definition, whose types have no commas.
pub(crate) fn columns_of(definition: &str) -> Vec<Name> {
    let words = definition.split(", ").filter_map(|column| column.split(' ').next());
    words.map(|word| Name::Owned(word.to_owned())).collect()
}

/// A step of the workload's own that begins at once.
pub(crate) fn own_step(name: Name, roles: Vec<Role>, limit: Nanoseconds) -> WorkloadStep {
    WorkloadStep { name, roles, limit, settle: Nanoseconds::ZERO }
}

pub(crate) fn closed_role(role: Name, clients: usize, quota: Option<u64>, kinds: &[Name]) -> Role {
    Role { name: role, clients, pacing: Pacing::Closed, quota, kinds: kinds.to_vec() }
}

fn table_shapes(tables: Vec<Table>) -> Vec<TableShape> {
    let mut shapes: Vec<(Vec<Name>, TableShape)> = Vec::new();
    for (first, table) in tables.into_iter().enumerate() {
        let is_alike = |(columns, shape): &&mut (Vec<Name>, TableShape)| {
            shape.rows == table.rows && *columns == table.columns
        };
        match shapes.iter_mut().find(is_alike) {
            Some((_, shape)) => shape.n_tables += 1,
            None => {
                let shape = TableShape { first, n_tables: 1, rows: table.rows };
                shapes.push((table.columns, shape));
            }
        }
    }
    shapes.into_iter().map(|(_, shape)| shape).collect()
}
