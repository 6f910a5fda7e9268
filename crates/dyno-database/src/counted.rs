//! Statements that a server has counted since its statistics were reset, and values of columns.

use dyno_workload::declared::capture::{CountedColumn, CountedStatement};
use dyno_workload::{Connection, Dialect};

use crate::dialects::sql_of;
use crate::sql::CountedSql;

pub struct Counted {
    connection: Box<dyn Connection>,
    sql: &'static CountedSql,
    /// Its statements, the most frequent first.
    pub statements: Vec<CountedStatement>,
    pub columns: Vec<CountedColumn>,
    /// For each column whether an index begins with it, and the quoted name of its table.
    facts: Vec<(bool, String)>,
}

/// Fails, with the reason, if the product counts no statements or the user may not read them.
pub fn counted(mut connection: Box<dyn Connection>) -> Result<Counted, String> {
    let Some(sql) = &sql_of(connection.dialect()).counted else {
        return Err(
            "this product keeps no statement statistics that could be captured; if it has a \
                    log of its statements, give the path of the log instead of the URL"
                .to_owned(),
        );
    };
    let (mut schema, mut visible) = (String::new(), String::new());
    if let Some(guard) = &sql.guard {
        let mut ask = |sql: &str| connection.query(sql).map_err(|error| error.to_string());
        let numbers = ask(guard.visible)?.into_iter().flatten().flatten();
        visible = numbers.collect::<Vec<String>>().join(", ");
        for setting in guard.settings {
            ask(setting)?;
        }
        let found = ask(guard.schema)?.into_iter().flatten().flatten().next();
        schema = found.ok_or(sql.missing)?;
    }
    let mut found = Err(String::new());
    for statement in sql.statements {
        let statement = statement.replace("{schema}", &schema);
        found = connection.query(&statement).map_err(|error| error.to_string());
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
        let rows = connection.query(sql).map_err(|error| error.to_string())?;
        let executions = number(rows.first().and_then(|row| row.first()));
        statements.push(CountedStatement { executions, ..CountedStatement::default() });
    }
    let rows = connection
        .query(&sql.columns.replace("{visible}", &visible))
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
    Ok(Counted { connection, sql, statements, columns, facts })
}

fn quoted(name: &str, quote: char) -> String {
    format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
}

impl Counted {
    pub fn dialect(&self) -> Dialect {
        self.connection.dialect()
    }

    /// With minimum and maximum if an index knows them. Fails with the server's error.
    pub fn values(&mut self, column: &CountedColumn) -> Result<Vec<String>, String> {
        let quote = self.sql.quote;
        let mut known = self.columns.iter().zip(&self.facts);
        let (leads, table) = match known.find(|(one, _)| *one == column) {
            Some((_, (leads, table))) => (*leads, table.clone()),
            None => (false, quoted(&column.table, quote)),
        };
        let queries = (self.sql.values)(&table, &quoted(&column.name, quote));
        let mut values = Vec::new();
        for query in queries.iter().take(if leads { 2 } else { 1 }) {
            let rows = self.connection.query(query).map_err(|error| {
                format!("the values of {}.{} cannot be read: {error}", column.table, column.name)
            })?;
            values.extend(rows.into_iter().flatten().flatten());
        }
        Ok(values)
    }
}
