//! Statements that a server has counted since its statistics were reset, and values of columns.

use std::collections::BTreeSet;

use dyno_workload::declared::capture::{CountedColumn, CountedStatement};
use dyno_workload::{Connection, Dialect, StatementError, TextRows};

use crate::dialects::{OfOthers, sql_of, within};
use crate::sql::CountedSql;

pub struct Counted {
    session: Session,
    sql: &'static CountedSql,
    /// Its statements, the most frequent first.
    pub statements: Vec<CountedStatement>,
    pub columns: Vec<CountedColumn>,
    /// Why some tables are not read, and what to do; none if all are.
    pub not_read: Option<String>,
    /// For each column whether an index begins with it, and the quoted name of its table.
    facts: Vec<(bool, String)>,
    /// Quoted names of tables whose values are taken from the server's statistics.
    sampled: BTreeSet<String>,
}

struct Session {
    connection: Box<dyn Connection>,
    settings: Vec<&'static str>,
}

impl Session {
    /// With the numbers of the tables whose names are found without a schema, if there are schemas.
    fn begin(
        mut connection: Box<dyn Connection>,
        sql: &CountedSql,
    ) -> Result<(Session, String), String> {
        let mut settings = sql_of(connection.dialect()).guard.to_vec();
        let mut visible = String::new();
        if let Some(guard) = &sql.guard {
            (guard.check)(connection.as_mut())?;
            let rows = connection.query(guard.visible).map_err(|error| error.to_string())?;
            let numbers = rows.into_iter().flatten().flatten();
            visible = numbers.collect::<Vec<String>>().join(", ");
            settings.extend(guard.settings);
        }
        Ok((Session { connection, settings }, visible))
    }

    /// With the settings: without them a query could call what others have made.
    fn ask(&mut self, sql: &str) -> Result<TextRows, StatementError> {
        within(self.connection.as_mut(), &self.settings, sql).map(|answer| answer.rows)
    }
}

/// Fails, with the reason, if the product counts no statements or the user may not read them.
pub fn counted(connection: Box<dyn Connection>) -> Result<Counted, String> {
    let Some(sql) = &sql_of(connection.dialect()).counted else {
        return Err(
            "this product keeps no statement statistics that could be captured; if it has a \
                    log of its statements, give the path of the log instead of the URL"
                .to_owned(),
        );
    };
    let told = |error: StatementError| error.to_string();
    let (mut session, visible) = Session::begin(connection, sql)?;
    let mut schema = String::new();
    if let Some(guard) = &sql.guard {
        let found = session.ask(guard.schema).map_err(told)?.into_iter().flatten().flatten().next();
        schema = found.ok_or(sql.missing)?;
    }
    let mut found = Err(String::new());
    for statement in sql.statements {
        let statement = statement.replace("{schema}", &schema);
        found = session.ask(&statement).map_err(told);
        if found.is_ok() {
            break;
        }
    }
    let rows = found.map_err(|why| format!("{}: {why}", sql.missing))?;
    if rows.is_empty() {
        return Err(sql.missing.to_owned());
    }
    let number = |cell: Option<&Option<String>>| {
        let text = cell.and_then(|cell| cell.as_deref()).unwrap_or("0");
        text.parse().unwrap_or(0)
    };
    let text = |cell: Option<&Option<String>>| cell.cloned().flatten().unwrap_or_default();
    let statements = rows.iter().map(|row| CountedStatement {
        text: text(row.first()),
        executions: number(row.get(1)),
        rows: number(row.get(2)),
    });
    let mut statements: Vec<CountedStatement> =
        statements.filter(|one| one.executions > 0).collect();
    if let Some(sql) = sql.without_text {
        let rows = session.ask(sql).map_err(told)?;
        let executions = number(rows.first().and_then(|row| row.first()));
        statements.push(CountedStatement { executions, ..CountedStatement::default() });
    }
    let rows = session
        .ask(&sql.columns.replace("{visible}", &visible))
        .map_err(|error| format!("the columns of the tables cannot be read: {error}"))?;
    let columns = rows.iter().map(|row| CountedColumn {
        table: text(row.first()),
        name: text(row.get(1)),
        is_number: number(row.get(2)) == 1,
        is_unique: number(row.get(4)) == 1,
    });
    let columns = columns.collect();
    let facts = rows.iter().map(|row| {
        let name = match row.get(5) {
            Some(name) => text(Some(name)),
            None => quoted(&text(row.first()), sql.quote),
        };
        (number(row.get(3)) == 1, name)
    });
    let facts = facts.collect();
    let of_others = of_others(&mut session, sql, &visible)?;
    let not_read = OfOthers::refusal(&of_others)
        .map(|why| format!("values of columns are those in the server's statistics: {why}"))
        .map(|why| session.connection.shown(&why));
    let sampled = of_others.into_iter().map(|one| one.first).collect();
    Ok(Counted { session, sql, statements, columns, not_read, facts, sampled })
}

fn of_others(
    session: &mut Session,
    sql: &CountedSql,
    visible: &str,
) -> Result<Vec<OfOthers>, String> {
    let ask = sql_of(session.connection.dialect()).tables_of_others.zip(sql.of_others);
    let Some((ask, condition)) = ask else { return Ok(Vec::new()) };
    let rows = session.ask(&ask(&condition.replace("{visible}", visible)));
    rows.map(OfOthers::all)
        .map_err(|error| format!("the owners of the tables cannot be read: {error}"))
}

fn quoted(name: &str, quote: char) -> String {
    format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
}

impl Counted {
    pub fn dialect(&self) -> Dialect {
        self.session.connection.dialect()
    }

    /// With minimum and maximum if an index knows them; of tables that are not read, what the server's statistics have.
    /// Fails with the server's error.
    pub fn values(&mut self, column: &CountedColumn) -> Result<Vec<String>, String> {
        let quote = self.sql.quote;
        let mut known = self.columns.iter().zip(&self.facts);
        let (leads, table) = match known.find(|(one, _)| *one == column) {
            Some((_, (leads, table))) => (*leads, table.clone()),
            None => (false, quoted(&column.table, quote)),
        };
        let queries = match self.sql.sampled.filter(|_| self.sampled.contains(&table)) {
            Some(sampled) => vec![sampled(&table, &column.name)],
            None => {
                let [some, least] = (self.sql.values)(&table, &quoted(&column.name, quote));
                if leads { vec![some, least] } else { vec![some] }
            }
        };
        let mut values = Vec::new();
        for query in &queries {
            let rows = self.session.ask(query).map_err(|error| {
                format!("the values of {}.{} cannot be read: {error}", column.table, column.name)
            })?;
            values.extend(rows.into_iter().flatten().flatten());
        }
        Ok(values)
    }
}
