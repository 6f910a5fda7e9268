//! Claiming and dropping, on SQLite.

use super::*;

/// A database in memory that holds these tables, made by another user.
fn catalog_with(tables: &[&str]) -> Box<dyn Connection> {
    let mut connection = crate::sqlite::connection_in_memory().unwrap();
    for table in tables {
        connection.query(&format!("CREATE TABLE {table} (id INTEGER)")).unwrap();
    }
    connection
}

fn make(connection: &mut dyn Connection, tables: &[&str]) -> Result<(), CatalogError> {
    let names: Vec<String> = tables.iter().map(|table| (*table).to_owned()).collect();
    note_tables(connection, &names)?;
    for table in tables {
        connection.query(&format!("CREATE TABLE IF NOT EXISTS {table} (id INTEGER)"))?;
    }
    Ok(())
}

fn tables_of(connection: &mut dyn Connection) -> Vec<String> {
    let catalog = Catalog::look(connection).unwrap();
    let all = catalog.relations.iter().filter(|one| one.is_content);
    all.map(|one| one.name.clone()).collect()
}

#[test]
fn an_empty_catalog_is_claimed_and_left_empty() {
    let mut connection = catalog_with(&[]);
    let connection = connection.as_mut();
    claim_catalog(connection, false).unwrap();
    make(connection, &["sbtest1", "sbtest2"]).unwrap();
    assert_eq!(tables_of(connection), ["dyno_tables", "sbtest1", "sbtest2"]);
    // A second run finds it as its own.
    claim_catalog(connection, false).unwrap();
    make(connection, &["sbtest2", "sbtest3"]).unwrap();
    drop_claimed_tables(connection).unwrap();
    assert!(tables_of(connection).is_empty());
    // And again, with nothing to drop.
    drop_claimed_tables(connection).unwrap();
    make(connection, &["sbtest1"]).unwrap();
    assert_eq!(tables_of(connection), ["dyno_tables", "sbtest1"]);
}

#[test]
fn statistics_tables_of_sqlite_have_no_owner() {
    let mut connection = catalog_with(&[]);
    claim_catalog(connection.as_mut(), false).unwrap();
    make(connection.as_mut(), &["a"]).unwrap();
    connection.query("CREATE INDEX i ON a (id)").unwrap();
    connection.query("INSERT INTO a VALUES (1)").unwrap();
    connection.query("ANALYZE a").unwrap();
    claim_catalog(connection.as_mut(), false).unwrap();
}

#[test]
fn a_list_of_tables_that_no_workload_makes_is_not_read() {
    let mut connection = catalog_with(&[]);
    let text = format!("{TITLE}: {}", "a ".repeat(NOTED_MAX / 2));
    connection.query(&format!("CREATE VIEW {NOTES} AS SELECT '{text}' AS noted")).unwrap();
    let error = claim_catalog(connection.as_mut(), false).unwrap_err().to_string();
    assert!(error.contains("did not create in this form"), "{error}");
}

#[test]
fn foreign_tables_are_refused_and_named() {
    let names = ["t1", "t2", "t3", "t4", "t5", "t6", "t7"];
    let mut connection = catalog_with(&names);
    let error = claim_catalog(connection.as_mut(), false).unwrap_err();
    assert!(matches!(error, CatalogError::Foreign(_)));
    let message = error.to_string();
    assert!(message.contains("t1, t2, t3, t4, t5 and 2 more"), "{message}");
    assert_eq!(tables_of(connection.as_mut()), names);
}

#[test]
fn a_foreign_table_added_later_is_refused_too() {
    let mut connection = catalog_with(&[]);
    claim_catalog(connection.as_mut(), false).unwrap();
    connection.query("CREATE VIEW report AS SELECT 1").unwrap();
    assert!(claim_catalog(connection.as_mut(), false).is_err());
}

#[test]
fn allowed_foreign_tables_stay() {
    let mut connection = catalog_with(&["customers"]);
    let connection = connection.as_mut();
    claim_catalog(connection, true).unwrap();
    make(connection, &["sbtest1"]).unwrap();
    drop_claimed_tables(connection).unwrap();
    assert_eq!(tables_of(connection), ["customers"]);
}

#[test]
fn a_foreign_table_is_never_taken_over() {
    let mut connection = catalog_with(&["SBTEST1"]);
    let connection = connection.as_mut();
    claim_catalog(connection, true).unwrap();
    let error = make(connection, &["sbtest0", "sbtest1"]).unwrap_err();
    assert!(error.to_string().contains("`sbtest1`"), "{error}");
    // Nothing was noted, so nothing is dropped.
    drop_claimed_tables(connection).unwrap();
    assert_eq!(tables_of(connection), ["SBTEST1"]);
}

/// On servers where case counts, two tables may have the name that is noted, and only one of them be Dyno's.
#[test]
fn a_name_that_another_user_s_table_has_in_other_letters_is_not_dropped() {
    let check = |owners: &[(&str, &str, bool)], expected: bool| {
        let relation = |(name, kind, is_ours): &(&str, &str, bool)| Relation {
            name: (*name).to_owned(),
            kind: (*kind).to_owned(),
            is_ours: *is_ours,
            is_content: true,
        };
        let relations: Vec<Relation> = owners.iter().map(relation).collect();
        let sql = catalog_sql(catalog_with(&[]).as_ref());
        let catalog = Catalog::of(sql, String::new(), relations);
        assert_eq!(catalog.is_ours("sbtest1"), expected, "{owners:?}");
    };
    check(&[("sbtest1", "table", true)], true);
    check(&[("SBTEST1", "table", true)], true);
    check(&[("SBTEST1", "table", true), ("sbtest1", "table", false)], false);
    check(&[("SBTEST1", "view", false), ("sbtest1", "table", true)], false);
    check(&[("sbtest2", "table", true)], false);
}

#[test]
fn routines_are_known_by_the_statements_that_make_them() {
    let check = |sql: &str, expected: Option<&str>| {
        assert_eq!(routine_of(sql).as_deref(), expected, "{sql}");
    };
    check("CREATE PROCEDURE dyno_x4(a INT)\nBEGIN END", Some("dyno_x4"));
    check("CREATE FUNCTION dyno_x(a int) RETURNS int", Some("dyno_x"));
    check("CREATE INDEX dyno_x ON t (a)", None);
    check("ALTER TABLE t ADD PRIMARY KEY (a)", None);
}

#[test]
fn the_last_made_is_dropped_first() {
    let mut connection = catalog_with(&[]);
    let connection = connection.as_mut();
    claim_catalog(connection, false).unwrap();
    note_tables(connection, &["parent".to_owned(), "child".to_owned()]).unwrap();
    connection.query("PRAGMA foreign_keys = on").unwrap();
    connection.query("CREATE TABLE parent (id INTEGER PRIMARY KEY)").unwrap();
    connection.query("CREATE TABLE child (id INTEGER REFERENCES parent (id))").unwrap();
    connection.query("INSERT INTO parent VALUES (1)").unwrap();
    connection.query("INSERT INTO child VALUES (1)").unwrap();
    drop_claimed_tables(connection).unwrap();
    assert!(tables_of(connection).is_empty());
}

#[test]
fn a_note_without_its_table_does_no_harm() {
    let mut connection = catalog_with(&[]);
    let connection = connection.as_mut();
    claim_catalog(connection, false).unwrap();
    note_tables(connection, &["never_made".to_owned()]).unwrap();
    claim_catalog(connection, false).unwrap();
    drop_claimed_tables(connection).unwrap();
    assert!(tables_of(connection).is_empty());
}

#[test]
fn names_that_need_quotes_are_refused() {
    let check = |name: &str, is_accepted: bool| {
        assert_eq!(check_name(name).is_ok(), is_accepted, "{name}");
    };
    check("sbtest1", true);
    check("_x", true);
    check("1x", false);
    check("a b", false);
    check("a'; DROP TABLE b; --", false);
    check("", false);
    check(&"a".repeat(64), false);
}

#[test]
fn a_note_whose_table_is_gone_is_forgotten() {
    let mut connection = catalog_with(&[]);
    let connection = connection.as_mut();
    claim_catalog(connection, false).unwrap();
    note_tables(connection, &["never_made".to_owned()]).unwrap();
    claim_catalog(connection, false).unwrap();
    connection.query("CREATE TABLE never_made (id INTEGER)").unwrap();
    drop_claimed_tables(connection).unwrap();
    assert_eq!(tables_of(connection), ["never_made"]);
}

#[test]
fn notes_that_dyno_did_not_make_are_refused() {
    let check = |sql: &str| {
        let mut connection = catalog_with(&["customers"]);
        let connection = connection.as_mut();
        connection.query(sql).unwrap();
        for result in [
            claim_catalog(connection, true),
            note_tables(connection, &["sbtest1".to_owned()]),
            drop_claimed_tables(connection),
        ] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("`dyno_tables`"), "{error}");
        }
        assert_eq!(tables_of_any(connection), ["customers", "dyno_tables"]);
    };
    check("CREATE TABLE dyno_tables (made_order INTEGER, table_name TEXT)");
    check("CREATE VIEW dyno_tables AS SELECT 1 AS made_order, 'customers' AS table_name");
    check("CREATE VIEW dyno_tables AS SELECT 'tables of Dyno: x; DROP TABLE customers' AS noted");
}

/// Names of all relations, whichever user's notes there are.
fn tables_of_any(connection: &mut dyn Connection) -> Vec<String> {
    let rows = connection.query("SELECT name FROM sqlite_master ORDER BY 1").unwrap();
    rows.into_iter().flatten().flatten().collect()
}

#[test]
fn an_index_of_the_same_name_is_refused_and_nothing_is_noted() {
    let mut connection = catalog_with(&["customers"]);
    let connection = connection.as_mut();
    connection.query("CREATE INDEX sbtest1 ON customers (id)").unwrap();
    let error = note_tables(connection, &["sbtest1".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("an index `sbtest1`"), "{error}");
    assert_eq!(tables_of(connection), ["customers"]);
}

#[test]
fn a_failed_drop_keeps_the_notes_of_what_is_left() {
    let mut connection = catalog_with(&[]);
    let connection = connection.as_mut();
    claim_catalog(connection, false).unwrap();
    note_tables(connection, &["parent".to_owned(), "other".to_owned()]).unwrap();
    connection.query("PRAGMA foreign_keys = on").unwrap();
    connection.query("CREATE TABLE parent (id INTEGER PRIMARY KEY)").unwrap();
    connection.query("CREATE TABLE other (id INTEGER)").unwrap();
    connection.query("CREATE TABLE foreigner (id INTEGER REFERENCES parent (id))").unwrap();
    connection.query("INSERT INTO parent VALUES (1)").unwrap();
    connection.query("INSERT INTO foreigner VALUES (1)").unwrap();
    assert!(matches!(drop_claimed_tables(connection), Err(CatalogError::Statement(_))));
    assert_eq!(Catalog::look(connection).unwrap().noted, ["parent"]);
}
