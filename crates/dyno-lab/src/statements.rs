//! Checks before the first trial that statements of declared workloads can be prepared. A server by URL only
//! prepares them, in a transaction that is rolled back and makes no table. Databases of Dyno's own, in this
//! process's memory or on a server started for this, also get the workload's tables with a few rows, and run
//! each kind of transaction once.

use std::collections::HashSet;
use std::sync::Arc;

use dyno_database::{Part, Products, ServerSpec};
use dyno_model::DefinitionProblem;
use dyno_study::{Design, Plan, Product, Variant};
use dyno_units::Nanoseconds;
use dyno_workload::catalog::Catalog;
use dyno_workload::{
    Connection, Dialect, MadeWorkload, Statement, StatementError, Table, Tried, Workload,
};

use crate::deployment::{endpoint, source};
use crate::{Lab, Source, TrialError, plan_workload};

/// Rows of each table on which transactions are tried.
const ROWS_TRIED: u64 = 10;

const ANSWER_LIMIT: Nanoseconds = Nanoseconds::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedSql {
    pub workload: String,
    pub title: &'static str,
    /// Where it stands in that table, and the database's words.
    pub problem: DefinitionProblem,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementCheck {
    /// What databases refuse, each place and reason once.
    pub refused: Vec<RefusedSql>,
    pub unchecked: Vec<String>,
}

/// Changes nothing that is not Dyno's own. Private servers are started only with a `lab`.
pub fn check_statements(
    (products, catalog): (&Products, &Catalog),
    (plan, design): (&Plan, &Design),
    lab: Option<&Lab>,
) -> StatementCheck {
    let mut check = StatementCheck::default();
    let mut seen = HashSet::new();
    for variant in &plan.variants {
        // What a workload cannot be planned for is reported elsewhere.
        let Ok(workload) = plan_workload(catalog, plan, variant) else { continue };
        let database = &variant.database;
        // Neither settings nor `scale` change what a statement means.
        let server = (&database.product, &database.version, &database.engine);
        let programs = (&database.programs, &database.image);
        let is_declared = workload.declared_at(Dialect::WITH_TRANSACTIONS[0]).is_some();
        if !is_declared
            || !seen.insert(format!("{server:?} {programs:?} {}", variant.workload.name))
        {
            continue;
        }
        let outcome = match &database.product {
            Product::Url(url) => on_url(&*workload, variant, url),
            Product::Private(name) => {
                on_private(&workload, (products, name), (variant, design), lab)
            }
        };
        match outcome {
            Ok(Found { refused, untried }) => {
                check.add(&variant.workload.name, refused);
                let (workload, database) = (&variant.workload.name, &database.name);
                check.unchecked.extend(
                    untried.into_iter().map(|(what, why)| {
                        format!("{what} of `{workload}` on `{database}`: {why}")
                    }),
                );
            }
            Err(why) => check.unchecked.push(format!(
                "the statements of `{}` on `{}`: {why}",
                variant.workload.name, database.name
            )),
        }
    }
    check
}

impl StatementCheck {
    fn add(&mut self, workload: &str, problems: Vec<(&'static str, DefinitionProblem)>) {
        for (title, problem) in problems {
            let refused = RefusedSql { workload: workload.to_owned(), title, problem };
            if !self.refused.contains(&refused) {
                self.refused.push(refused);
            }
        }
    }
}

#[derive(Default)]
struct Found {
    refused: Vec<(&'static str, DefinitionProblem)>,
    untried: Vec<(String, String)>,
}

/// What was found out; else why nothing could be checked.
type Outcome = Result<Found, String>;

fn on_url(workload: &dyn Workload, variant: &Variant, url: &str) -> Outcome {
    if !workload.outline().makes_nothing {
        return Err("its tables are created there only when the study runs".to_owned());
    }
    let endpoint = endpoint(variant, url).map_err(|error| error.0)?;
    let connector = endpoint.protocol.connector(&endpoint);
    let mut connection = connector().map_err(|error| error.to_string())?;
    connection.set_cold_limit(ANSWER_LIMIT.0);
    let mut found = prepare_rolled_back(workload, &mut *connection)?;
    let why = "they were prepared, not executed; each trial executes every kind once before its load, and rolls back";
    found.untried.push(("the transactions".to_owned(), why.to_owned()));
    Ok(found)
}

fn on_private(
    workload: &Arc<dyn Workload>,
    (products, name): (&Products, &str),
    (variant, design): (&Variant, &Design),
    lab: Option<&Lab>,
) -> Outcome {
    let Some(product) = products.find(name) else {
        return Err(format!("there is no product `{name}`"));
    };
    if product.spec.is_simulated || !product.spec.stores_data {
        return Err(format!("`{name}` has no tables and accepts any statement"));
    }
    if let Some(connection) = (product.in_memory)() {
        return on_few_rows(workload, connection);
    }
    let Some(lab) = lab else {
        let why = "no server was started; `dyno check --start-servers` prepares them on one with \
             ten rows in each table and executes each kind of transaction once, and `dyno run` does \
             so when a trial begins";
        return Err(why.to_owned());
    };
    let spec = match source(lab.basis(design), variant) {
        Ok((Source::Start(spec), _)) if variant.database.on.is_none() => spec,
        Err(TrialError::Failed { message, .. }) => return Err(message),
        _ => return Err("no server is started for it".to_owned()),
    };
    let alone = ServerSpec { part: Part::Alone, ..spec };
    let server = lab.products.start(&alone, &lab.place(), &lab.clock);
    let server = server.map_err(|error| format!("no server could be started: {error}"))?;
    let connection = server.connector()().map_err(|error| error.to_string());
    let outcome = connection.and_then(|connection| on_few_rows(workload, connection));
    match server.stop() {
        Ok(()) => outcome,
        Err(error) => Err(format!("the server that was started for it did not stop: {error}")),
    }
}

/// In a database of Dyno's own, where each kind of transaction runs once on a few rows.
fn on_few_rows(workload: &Arc<dyn Workload>, mut connection: Box<dyn Connection>) -> Outcome {
    connection.set_cold_limit(ANSWER_LIMIT.0);
    let dialect = connection.dialect();
    let mut found = Found::default();
    for (idx, table) in workload.tables(dialect).iter().enumerate() {
        if let Err(error) = make(&**workload, (idx, table), &mut *connection) {
            let path = vec!["table".to_owned(), table.name.clone()];
            let problem = problem(&*connection, path, &error)?;
            let title = "the database refuses this table, an index or a row of it";
            found.refused.push((title, problem));
        }
    }
    if !found.refused.is_empty() {
        // Each statement on such a table would be one more error for the same mistake.
        return Ok(found);
    }
    found = prepare_each(&**workload, &mut *connection, |connection, statement, _| {
        connection.prepare(std::slice::from_ref(statement))
    })?;
    if found.refused.is_empty() {
        try_kinds(workload, connection, &mut found)?;
    }
    Ok(found)
}

fn make(
    workload: &dyn Workload,
    (idx, table): (usize, &Table),
    connection: &mut dyn Connection,
) -> Result<(), StatementError> {
    connection.query(&table.create)?;
    let dialect = connection.dialect();
    let mut rows = 0..table.rows.min(ROWS_TRIED);
    connection.load_rows(&table.name, &table.columns, &mut |row| {
        let Some(number) = rows.next() else { return false };
        row.clear();
        workload.fill_row_in(dialect, idx, number, row);
        true
    })?;
    table.after.iter().try_for_each(|sql| connection.query(sql).map(|_| ()))
}

fn try_kinds(
    workload: &Arc<dyn Workload>,
    mut connection: Box<dyn Connection>,
    found: &mut Found,
) -> Result<(), String> {
    let made = MadeWorkload::new(Arc::clone(workload));
    let told = |error: StatementError| error.to_string();
    let answers = workload.first_queries().into_iter().map(|sql| connection.query(&sql));
    let answers = answers.collect::<Result<Vec<_>, _>>().map_err(told)?;
    made.clients.begin(&answers)?;
    let tried = made.clients.try_kinds(connection).map_err(told)?;
    for (kind, tried) in workload.kinds().iter().zip(tried) {
        match tried {
            Tried::Done => {}
            Tried::Not(why) => found.untried.push((format!("transaction `{kind}`"), why)),
            Tried::Refused(error) => {
                let path = vec!["transaction".to_owned(), kind.to_string()];
                let problem = DefinitionProblem {
                    path,
                    message: dyno_units::clean_text(&error.to_string()),
                    help: None,
                };
                found.refused.push(("the database refuses this transaction", problem));
            }
        }
    }
    Ok(())
}

fn prepare_rolled_back(workload: &dyn Workload, connection: &mut dyn Connection) -> Outcome {
    prepare_each(workload, connection, |connection, statement, idx| {
        connection.query("BEGIN")?;
        let prepared = connection.prepare_at(idx, statement);
        let rolled_back = connection.query("ROLLBACK");
        prepared.and(rolled_back.map(|_| ()))
    })
}

/// Prepares one statement after the other; `prepare` is given the number of those that were accepted.
fn prepare_each(
    workload: &dyn Workload,
    connection: &mut dyn Connection,
    prepare: impl Fn(&mut dyn Connection, &Statement, usize) -> Result<(), StatementError>,
) -> Outcome {
    let dialect = connection.dialect();
    let places = workload.declared_at(dialect).unwrap_or_default();
    let mut found = Found::default();
    let mut n_accepted = 0;
    for (path, statement) in places.into_iter().zip(workload.statements(dialect)) {
        match prepare(connection, &statement, n_accepted) {
            Ok(()) => n_accepted += 1,
            Err(error) => {
                let problem = problem(connection, path, &error)?;
                found.refused.push(("the database refuses this statement", problem));
            }
        }
    }
    Ok(found)
}

/// What the database said, at a place of the study; an error if it cannot be asked any more.
fn problem(
    connection: &dyn Connection,
    path: Vec<String>,
    error: &StatementError,
) -> Result<DefinitionProblem, String> {
    if error.class.loses_connection() {
        return Err(format!("the connection was lost: {}", connection.shown(&error.message)));
    }
    let details = error.details.as_deref();
    let message = details.map_or(&error.message, |details| &details.message);
    let hint = details.and_then(|details| details.hint.as_deref());
    Ok(DefinitionProblem {
        path,
        message: connection.shown(message),
        help: hint.map(|hint| connection.shown(hint)),
    })
}
