//! Who may have Dyno drop what: notes that somebody else made, catalogs with things of others.

use dyno_database::mysql as product;
use dyno_database::{AttachOptions, Endpoint, attach, note_tables, replace_routines};
use dyno_workload::Connection;

use crate::mysql_server::{Fixture, user_name};
use crate::{ALLOWING, text, value};

/// A user who may do a lot in the database `shared`, and not drop; and one with a password.
const SET_UP: [&str; 6] = [
    "CREATE DATABASE shared",
    "CREATE TABLE shared.payroll (id INT)",
    "CREATE USER mallory@localhost IDENTIFIED VIA mysql_native_password USING PASSWORD('mal')",
    "GRANT SELECT, INSERT, CREATE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, TRIGGER ON shared.* \
     TO mallory@localhost",
    "CREATE USER victim@localhost IDENTIFIED VIA mysql_native_password USING PASSWORD('vic')",
    "GRANT ALL ON *.* TO victim@localhost WITH GRANT OPTION",
];

pub(crate) fn check(fixture: &Fixture) {
    let mut root = fixture.connect();
    for sql in SET_UP {
        text(root.as_mut(), sql).unwrap();
    }
    let endpoint = |user: &str, password: &str, catalog: &str| Endpoint {
        catalog: catalog.to_owned(),
        ..fixture.socket_endpoint(user, Some(password))
    };
    let shared = endpoint("victim", "vic", "shared");
    let mut mallory = product::connect(&endpoint("mallory", "mal", "shared")).unwrap();
    forged_notes(root.as_mut(), &mut mallory, &shared);
    replaced_routines(&mut mallory, &shared);
    kept_catalogs(root.as_mut(), &|name| endpoint("victim", "vic", name));
    other_kinds(root.as_mut(), &endpoint("victim", "vic", "named"));
    let me = fixture.socket_endpoint(&user_name(), None);
    kept_tables(root.as_mut(), &Endpoint { catalog: "keeping".to_owned(), ..me });
}

fn forged_notes(root: &mut dyn Connection, mallory: &mut dyn Connection, shared: &Endpoint) {
    assert!(mallory.query("DROP TABLE payroll").is_err());
    let grant = "CREATE FUNCTION evil() RETURNS TEXT MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN \
                 INSERT INTO mysql.global_priv SELECT * FROM mysql.global_priv; RETURN 'payroll'; END";
    mallory.query(grant).unwrap();
    let attacks = [
        "CREATE TABLE dyno_tables AS SELECT 1 AS made_order, 'payroll' AS table_name",
        "CREATE SQL SECURITY INVOKER VIEW dyno_tables AS SELECT 1 AS made_order, evil() AS table_name",
        "CREATE VIEW dyno_tables AS SELECT 'tables of Dyno: payroll' AS noted",
    ];
    for attack in attacks {
        mallory.query(attack).unwrap();
        for options in [AttachOptions::default(), ALLOWING] {
            let error = attach(shared, options).err().expect("refused").message;
            assert!(error.contains("`dyno_tables`"), "{error}");
        }
        assert_eq!(value(root, "SELECT COUNT(*) FROM shared.payroll"), "0");
        let kind = if attack.contains("VIEW") { "VIEW" } else { "TABLE" };
        root.query(&format!("DROP {kind} shared.dyno_tables")).unwrap();
    }
    // To say that somebody else has made a view takes more rights than that.
    let forged = "CREATE DEFINER = victim@localhost VIEW dyno_tables AS \
                  SELECT 'tables of Dyno: payroll' AS noted";
    assert!(mallory.query(forged).is_err());
    let attached = attach(shared, ALLOWING).unwrap();
    assert!(mallory.query("INSERT INTO dyno_tables VALUES ('x')").is_err());
    let replaced =
        "CREATE OR REPLACE VIEW dyno_tables AS SELECT 'tables of Dyno: payroll' AS noted";
    assert!(mallory.query(replaced).is_err());
    let mut client = (attached.connector())().unwrap();
    note_tables(client.as_mut(), &["mine".to_owned()]).unwrap();
    client.query("CREATE TABLE mine (id INT)").unwrap();
    attached.stop().unwrap();
    let tables = "SELECT GROUP_CONCAT(table_name) FROM information_schema.tables \
                  WHERE table_schema = 'shared'";
    assert_eq!(value(root, tables), "payroll");
}

/// What others have put into a database that Dyno made keeps it.
fn kept_catalogs(root: &mut dyn Connection, endpoint: &dyn Fn(&str) -> Endpoint) {
    let mut check = |name: &str, sql: &str, expected: &str| {
        let attached = attach(&endpoint(name), AttachOptions::default()).unwrap();
        if !sql.is_empty() {
            product::connect(&endpoint(name)).unwrap().query(sql).unwrap();
        }
        attached.stop().unwrap();
        let schemata = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name";
        assert_eq!(value(root, &format!("{schemata} = '{name}'")), expected, "{name}");
    };
    check("empty_one", "", "0");
    check("with_function", "CREATE FUNCTION theirs() RETURNS INT RETURN 1", "1");
    check("with_event", "CREATE EVENT theirs ON SCHEDULE EVERY 1 YEAR DO SELECT 1", "1");
    check("with_sequence", "CREATE SEQUENCE theirs", "1");
    check("with_own", "CREATE PROCEDURE dyno_tpcc_x() COMMENT 'made by Dyno' SELECT 1", "0");
    check("with_name", "CREATE PROCEDURE dyno_tpcc_x() SELECT 1", "1");
}

/// Only a procedure that the mark and its definer show to be Dyno's is dropped.
fn replaced_routines(mallory: &mut dyn Connection, shared: &Endpoint) {
    let ours = "CREATE PROCEDURE dyno_tpcc_x(a INT)\nCOMMENT 'made by Dyno'\nSELECT a".to_owned();
    let mut victim = product::connect(shared).unwrap();
    let mut replace = || replace_routines(&mut victim, [&ours].into_iter());
    mallory.query(&ours).unwrap();
    let error = replace().unwrap_err().to_string();
    assert!(error.contains("PROCEDURE `dyno_tpcc_x` of the user `mallory@localhost`"), "{error}");
    mallory.query("DROP PROCEDURE dyno_tpcc_x").unwrap();
    let mut owner = product::connect(shared).unwrap();
    owner.query("CREATE PROCEDURE dyno_tpcc_x() SELECT 1").unwrap();
    assert!(replace().unwrap_err().to_string().contains("did not create in this form"));
    owner.query("DROP PROCEDURE dyno_tpcc_x").unwrap();
    for _ in 0..2 {
        replace().unwrap();
        owner.query(&ours).unwrap();
    }
    replace().unwrap();
    assert!(owner.query("DROP PROCEDURE dyno_tpcc_x").is_err());
}

/// What has the name of a table of Dyno's and is no table is refused before anything is made.
fn other_kinds(root: &mut dyn Connection, endpoint: &Endpoint) {
    let attached = attach(endpoint, AttachOptions::default()).unwrap();
    root.query("CREATE SEQUENCE named.sbtest1").unwrap();
    let mut client = (attached.connector())().unwrap();
    let error = note_tables(client.as_mut(), &["sbtest1".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("a sequence `sbtest1`"), "{error}");
    attached.stop().unwrap();
    assert_eq!(value(root, "SELECT NEXT VALUE FOR named.sbtest1"), "1");
}

fn kept_tables(root: &mut dyn Connection, endpoint: &Endpoint) {
    let keeping = AttachOptions { keep_tables: true, ..AttachOptions::default() };
    let attached = attach(endpoint, keeping).unwrap();
    let mut client = (attached.connector())().unwrap();
    note_tables(client.as_mut(), &["mine".to_owned()]).unwrap();
    client.query("CREATE TABLE mine (id INT)").unwrap();
    attached.stop().unwrap();
    assert_eq!(value(root, "SELECT COUNT(*) FROM keeping.mine"), "0");
    // A later run that does not keep them removes them; the database is not its own.
    attach(endpoint, AttachOptions::default()).unwrap().stop().unwrap();
    assert!(root.query("SELECT 1 FROM keeping.mine").is_err());
}
