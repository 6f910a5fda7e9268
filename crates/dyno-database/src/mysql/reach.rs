//! What a statement may change in MariaDB and MySQL that cannot be rolled back: tables of engines
//! without transactions, also through views, triggers and functions. Every word of the statement
//! counts as a name: a table that is only mentioned may be refused, but none that the user sees is
//! missed.

use std::collections::BTreeMap;

use dyno_workload::{Connection, TextRows};

use crate::explain_cost::words;

/// Tables that a rollback does not restore: catalog, name, engine.
const ASK_TABLES: &str = "SELECT table_schema, table_name, engine FROM information_schema.TABLES \
     WHERE table_type NOT IN ('VIEW', 'SYSTEM VIEW') \
     AND LOWER(table_schema) NOT IN ('information_schema', 'performance_schema') \
     AND (engine IS NULL OR engine NOT IN \
     (SELECT engine FROM information_schema.ENGINES WHERE transactions = 'YES'))";

/// Objects that refer to others: the name, its kind, and its text.
const ASK_LINKS: [&str; 3] = [
    "SELECT table_name, 'view', view_definition FROM information_schema.VIEWS \
     WHERE table_schema NOT IN ('sys', 'mysql')",
    "SELECT event_object_table, 'trigger', action_statement FROM information_schema.TRIGGERS \
     WHERE trigger_schema NOT IN ('sys', 'mysql')",
    "SELECT routine_name, 'routine', routine_definition FROM information_schema.ROUTINES \
     WHERE routine_schema NOT IN ('sys', 'mysql')",
];

/// Views that run, with the functions that they call, with the rights of this user, who reads or made them: catalog, name,
/// who made it, 1 if that is another user, and its text. Others run with the rights of who made them. Users whose names
/// differ in case alone are two.
const ASK_VIEWS: &str = "SELECT table_schema, table_name, definer, \
     CAST(definer AS BINARY) <> CAST(CURRENT_USER() AS BINARY), view_definition \
     FROM information_schema.VIEWS WHERE (security_type = 'INVOKER' \
     OR CAST(definer AS BINARY) = CAST(CURRENT_USER() AS BINARY)) \
     AND table_schema NOT IN ('sys', 'mysql')";

/// A table without transactions.
#[derive(Debug)]
struct Table {
    catalog: String,
    name: String,
    engine: String,
}

#[derive(Debug)]
struct Link {
    name: String,
    kind: String,
    /// None if the user may not see it.
    text: Option<String>,
}

/// Fails if changes could not be rolled back, or the server does not say, with the reason.
pub(super) fn check(connection: &mut dyn Connection, sql: &str) -> Result<(), String> {
    let mut ask = |sql: &str| {
        connection.query(sql).map_err(|error| {
            format!("what the statement may change is not known, because `{sql}` failed: {error}")
        })
    };
    let tables = tables(ask(ASK_TABLES)?);
    let catalog = ask("SELECT DATABASE()")?.into_iter().flatten().next().flatten();
    let mut links = Vec::new();
    for sql in ASK_LINKS {
        links.extend(links_of(ask(sql)?));
    }
    judge(sql, &catalog.unwrap_or_default(), &tables, links)
}

/// Fails if the statement leads to a view of another user that would run with the rights of this one, with the reason.
pub(super) fn check_views(
    connection: &mut dyn Connection,
    _: &[String],
    sql: &str,
) -> Result<(), String> {
    let mut ask = |sql: &str| {
        connection.query(sql).map_err(|error| {
            format!("what the statement's views do is not known, because `{sql}` failed: {error}")
        })
    };
    let catalog = ask("SELECT DATABASE()")?.into_iter().flatten().next().flatten();
    judge_views(sql, &catalog.unwrap_or_default(), ask(ASK_VIEWS)?)
}

fn judge_views(sql: &str, catalog: &str, views: TextRows) -> Result<(), String> {
    let cells = |row: Vec<Option<String>>| {
        let cells: Vec<String> = row.into_iter().map(Option::unwrap_or_default).collect();
        <[String; 5]>::try_from(cells).ok()
    };
    let mut left: Vec<[String; 5]> = views.into_iter().filter_map(cells).collect();
    let mut words = words(&sql.to_lowercase());
    loop {
        let is_reached = |[schema, name, ..]: &[String; 5]| {
            let is_named = |name: &String| words.contains(&name.to_lowercase());
            is_named(name) && (schema.eq_ignore_ascii_case(catalog) || is_named(schema))
        };
        let (reached, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(is_reached);
        if reached.is_empty() {
            return Ok(());
        }
        for [schema, name, definer, is_others, text] in &reached {
            if is_others == "1" {
                return Err(format!(
                    "the view `{schema}`.`{name}` of `{definer}`, and functions that it calls, run with the \
                     privileges of whoever reads it (SQL SECURITY INVOKER); connect as that user, or \
                     write the view's query in place of its name"
                ));
            }
            words.extend(crate::explain_cost::words(&text.to_lowercase()));
        }
        left = rest;
    }
}

fn tables(rows: TextRows) -> Vec<Table> {
    let table = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        Some(Table {
            catalog: cells.next()??,
            name: cells.next()??,
            engine: cells.next()?.unwrap_or_else(|| "an unknown engine".to_owned()),
        })
    };
    rows.into_iter().filter_map(table).collect()
}

fn links_of(rows: TextRows) -> Vec<Link> {
    let link = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        let (name, kind) = (cells.next()??.to_lowercase(), cells.next()??);
        Some(Link { name, kind, text: cells.next()?.filter(|text| !text.is_empty()) })
    };
    rows.into_iter().filter_map(link).collect()
}

fn judge(sql: &str, catalog: &str, tables: &[Table], links: Vec<Link>) -> Result<(), String> {
    let mut by_name: BTreeMap<String, Vec<Link>> = BTreeMap::new();
    for link in links {
        by_name.entry(link.name.clone()).or_default().push(link);
    }
    let mut words = words(&sql.to_lowercase());
    // Each word is followed once, however many links there are.
    let mut ahead: Vec<String> = words.iter().cloned().collect();
    while let Some(word) = ahead.pop() {
        for link in by_name.remove(&word).unwrap_or_default() {
            let Some(text) = link.text else {
                return Err(format!(
                    "this user cannot see what the {} of `{}` does, so a rollback might not undo \
                     it",
                    link.kind, link.name
                ));
            };
            let new: Vec<String> = crate::explain_cost::words(&text.to_lowercase())
                .into_iter()
                .filter(|word| !words.contains(word))
                .collect();
            words.extend(new.iter().cloned());
            ahead.extend(new);
        }
    }
    let is_reached = |table: &&Table| {
        let is_its_catalog = |name: &str| table.catalog.eq_ignore_ascii_case(name);
        words.contains(&table.name.to_lowercase())
            && (is_its_catalog(catalog) || words.iter().any(|word| is_its_catalog(word)))
    };
    match tables.iter().find(is_reached) {
        None => Ok(()),
        Some(Table { catalog, name, engine }) => Err(format!(
            "the statement may change `{catalog}`.`{name}`, and its engine {engine} cannot roll \
             back: the changes of each run would stay"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sql: &str, refusal: Option<&str>) {
        let table = |catalog: &str, name: &str| Table {
            catalog: catalog.to_owned(),
            name: name.to_owned(),
            engine: "MyISAM".to_owned(),
        };
        let tables = [table("shop", "Old"), table("other", "far"), table("shop", "with blank")];
        let link = |name: &str, kind: &str, text: Option<&str>| Link {
            name: name.to_owned(),
            kind: kind.to_owned(),
            text: text.map(str::to_owned),
        };
        let links = vec![
            link("seen", "view", Some("select * from `shop`.`deeper`")),
            link("deeper", "view", Some("select * from `shop`.`old`")),
            link("orders", "trigger", Some("INSERT INTO other.far VALUES (1)")),
            link("dark", "routine", None),
            link("ring", "view", Some("select * from ring")),
        ];
        let found = judge(sql, "shop", &tables, links);
        match refusal {
            None => assert_eq!(found, Ok(()), "{sql}"),
            Some(words) => assert!(found.as_ref().is_err_and(|e| e.contains(words)), "{found:?}"),
        }
    }

    #[test]
    fn what_cannot_be_rolled_back_is_found_however_it_is_named() {
        check("DELETE FROM new", None);
        check("DELETE FROM old", Some("`shop`.`Old`"));
        check("DELETE FROM OLD WHERE a = 1", Some("MyISAM"));
        check("DELETE FROM `with blank`", Some("with blank"));
        check("DELETE FROM far", None);
        check("DELETE FROM `other`.far", Some("`other`.`far`"));
    }

    #[test]
    fn views_triggers_and_functions_are_followed() {
        check("DELETE FROM seen", Some("`shop`.`Old`"));
        check("UPDATE orders SET a = 1", Some("`other`.`far`"));
        check("SELECT dark(1)", Some("cannot see"));
        check("DELETE FROM ring", None);
    }

    #[test]
    fn views_of_others_that_run_as_their_reader_are_found() {
        let view = |schema: &str, name: &str, is_others: &str, text: &str| {
            let definer = if is_others == "1" { "mallory@%" } else { "me@%" };
            [schema, name, definer, is_others, text].map(|cell| Some(cell.to_owned())).to_vec()
        };
        let views = vec![
            view("shop", "Trap", "1", "select f()"),
            view("shop", "mine", "0", "select * from `shop`.`trap`"),
            view("shop", "plain", "0", "select * from `shop`.`orders`"),
            view("shop", "a`b", "1", "select f()"),
            view("other", "far", "1", "select f()"),
        ];
        let check = |sql: &str, expected: Option<&str>| {
            let found = judge_views(sql, "shop", views.clone());
            match expected {
                None => assert_eq!(found, Ok(()), "{sql}"),
                Some(named) => {
                    let why = found.unwrap_err();
                    assert!(why.contains(&format!("{named} of `mallory@%`")), "{why}");
                }
            }
        };
        check("SELECT * FROM orders, plain, far", None);
        check("SELECT * FROM TRAP", Some("`shop`.`Trap`"));
        check("SELECT * FROM mine", Some("`shop`.`Trap`"));
        check("SELECT * FROM `a``b`", Some("`shop`.`a`b`"));
        // Views of this user run what they name as this user, whatever their security.
        let as_own = "OR CAST(definer AS BINARY) = CAST(CURRENT_USER() AS BINARY))";
        assert!(ASK_VIEWS.contains(as_own));
        check("SELECT * FROM `other`.far", Some("`other`.`far`"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-é`\"'. ]{0,60}") {
            let _ = words(&text);
        }
    }
}
