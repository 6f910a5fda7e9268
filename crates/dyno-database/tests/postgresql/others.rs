//! What other users of a server put into their own tables, roles and settings.

use std::sync::Arc;

use dyno_database::postgresql::connect;
use dyno_database::{
    Access, ArchiveOptions, AttachOptions, Endpoint, archive_between, archive_sides, attach,
    replace_routines, sql_probe,
};
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::Connection;

use crate::deploy::{of_orders, shared_with_mallory};
use crate::server::{RealClock, one_by_one, server};

/// Functions of `mallory` that do not let a superuser read what they stand in.
const SPRUNG: &str = "CREATE FUNCTION sprung(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
     IF pg_catalog.current_setting('is_superuser') = 'on' THEN RAISE EXCEPTION 'sprung'; END IF; RETURN 1; END $$";

fn tables_of_others_are_not_read() {
    let server = server();
    let (endpoint, mut mallory) = shared_with_mallory(&server, "owned");
    let mut owner = connect(&endpoint).unwrap();
    for sql in [
        "DROP FUNCTION public.current_schema(), public.pg_get_userbyid(oid)",
        SPRUNG,
        "CREATE TABLE orders (id int PRIMARY KEY)",
        "CREATE INDEX ON orders ((sprung(1)))",
        "CREATE TABLE parts (id int PRIMARY KEY)",
        "CREATE INDEX ON parts ((sprung(1)))",
        "GRANT ALL ON parts TO PUBLIC",
    ] {
        mallory.query(sql).unwrap();
    }
    owner.query("CREATE VIEW seen AS SELECT id FROM parts").unwrap();
    owner.query("CREATE TABLE mine (id int PRIMARY KEY)").unwrap();
    let connector = endpoint.protocol.checked_connector(&endpoint);
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let mut source = endpoint.protocol.cost_source(&connector, Access::ReadOnly, &clock).unwrap();
    let mut check = |sql: &str, expected: Option<&str>| match (source.check(sql), expected) {
        (found, None) => assert_eq!(found, Ok(()), "{sql}"),
        (found, Some(named)) => {
            let why = found.unwrap_err();
            assert!(why.contains(&format!("`{named}` of `mallory`")), "{why}");
        }
    };
    check("SELECT * FROM mine", None);
    check("SELECT count(*) FROM pg_catalog.pg_class", None);
    check("SELECT * FROM Orders WHERE id = 1", Some("public.orders"));
    check("SELECT * FROM \"public\".\"orders\"", Some("public.orders"));
    let long = "x".repeat(70);
    for name in [&long, "a\"b"] {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        mallory.query(&format!("CREATE TABLE {quoted} (id int)")).unwrap();
        check(
            &format!("TABLE {quoted}"),
            Some(&format!("public.{}", name.get(..63).unwrap_or(name))),
        );
    }
    check(&format!("TABLE {long}"), Some(&format!("public.{}", &long[..63])));
    // What a view names is read with the view.
    check("SELECT * FROM seen", Some("public.parts"));
    let why = source.check("TABLE U&\"\\006frders\"").unwrap_err();
    assert!(why.contains("Unicode escapes"), "{why}");
    // The trap is one.
    for table in ["orders", "seen"] {
        let why = owner.query(&format!("SELECT * FROM {table}")).unwrap_err().to_string();
        assert!(why.contains("sprung"), "{why}");
    }
    crate::open(&server).query("CREATE DATABASE owned_to").unwrap();
    let there = Endpoint { catalog: "owned_to".to_owned(), ..endpoint.clone() };
    let condition = "id IN (SELECT id FROM parts)";
    let why = archive_sides(&endpoint, &there, condition).err().expect("refused").to_string();
    assert!(why.contains("`public.parts` of `mallory`"), "{why}");
    let [mut from, mut to, mut notes] = archive_sides(&endpoint, &there, "true").unwrap();
    let mut refused = |table: &str, expected: &str| {
        let options = ArchiveOptions { table: table.to_owned(), ..of_orders() };
        let archived = archive_between(&mut from, &mut to, &mut notes, &options, &mut |_| true);
        let why = archived.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    };
    refused("orders", "reading `public.orders` of `mallory`");
    owner.query("GRANT TRIGGER ON mine TO mallory").unwrap();
    let trigger =
        "CREATE TRIGGER hers BEFORE DELETE ON mine FOR EACH ROW EXECUTE FUNCTION evil_trigger()";
    mallory.query(trigger).unwrap();
    refused("mine", "the trigger `hers` of `mallory` on `mine`");
}

fn nobody_else_chooses_the_role_of_a_session() {
    let server = server();
    let mut admin = crate::open(&server);
    let _ = admin.query("CREATE ROLE mallory LOGIN");
    for sql in [
        "CREATE DATABASE roles OWNER mallory",
        "CREATE ROLE someone LOGIN",
        "CREATE ROLE gang",
        "GRANT gang TO someone, mallory",
    ] {
        admin.query(sql).unwrap();
    }
    let endpoint = Endpoint { catalog: "roles".to_owned(), ..server.endpoint.clone() };
    let as_user = |user: &str| Endpoint { user: user.to_owned(), ..endpoint.clone() };
    let someone = as_user("someone");
    let nothing = AttachOptions { makes_nothing: true, ..AttachOptions::default() };
    let mut mallory = connect(&as_user("mallory")).unwrap();
    mallory.query("ALTER DATABASE roles SET role = gang").unwrap();
    let error = attach(&someone, nothing).err().expect("refused").message;
    assert!(error.contains("act as `gang`") && error.contains("of the user"), "{error}");
    // What a superuser, or the user, sets for this user is as it should be, and comes first.
    admin.query("ALTER ROLE someone SET role = gang").unwrap();
    attach(&someone, nothing).unwrap().stop().unwrap();
    mallory.query("ALTER DATABASE roles RESET role").unwrap();
    attach(&someone, nothing).unwrap().stop().unwrap();
    // But functions of other members are no more trusted than before.
    for sql in [
        "CREATE SCHEMA theirs",
        "GRANT ALL ON SCHEMA theirs TO gang",
        "ALTER DATABASE roles SET search_path = theirs",
        "SET ROLE gang",
        "CREATE FUNCTION theirs.lower(int) RETURNS text LANGUAGE sql AS $$ SELECT 'a' $$",
        "RESET ROLE",
    ] {
        mallory.query(sql).unwrap();
    }
    let error = attach(&someone, nothing).err().expect("refused").message;
    assert!(error.contains("the function lower of gang"), "{error}");
    mallory.query("DROP FUNCTION theirs.lower(int)").unwrap();
    // A superuser's session could even be another user's.
    let set = mallory.query("ALTER DATABASE roles SET session_authorization = mallory");
    let user = connect(&endpoint).unwrap().query("SELECT session_user::text").unwrap();
    if set.is_ok() && user == [vec![Some("mallory".to_owned())]] {
        let error = attach(&endpoint, nothing).err().expect("refused").message;
        assert!(error.contains("act as `mallory`"), "{error}");
    }
}

/// A pooler gives the session to other clients next.
fn no_setting_stays_behind_in_a_session() {
    let server = server();
    // The comment does not hide the end of the transaction.
    let sql = "SELECT (current_setting('transaction_read_only') = 'on')::int AS only_reads, \
         (current_setting('default_transaction_read_only') = 'on')::int AS of_session -- both";
    let connector = server.endpoint.protocol.connector(&server.endpoint);
    let mut probe = sql_probe(connector, "own", sql, Nanoseconds::SECOND);
    for second in 1..3 {
        let mut readings = dyno_host::Readings::new();
        probe.read(Nanoseconds::from_secs(second), &mut readings);
        let value = |name: &str| readings.get(&format!("probe.own.{name}")).copied();
        assert_eq!(
            (value("only_reads"), value("of_session")),
            (Some(1.0), Some(0.0)),
            "{readings:?}"
        );
    }
}

fn routines_that_dyno_cannot_show_to_have_made_are_not_replaced() {
    let server = server();
    crate::open(&server).query("CREATE DATABASE routines").unwrap();
    let endpoint = Endpoint { catalog: "routines".to_owned(), ..server.endpoint.clone() };
    let mut owner = connect(&endpoint).unwrap();
    let makes = |body: &str| {
        format!(
            "CREATE FUNCTION dyno_tpcc_x(a int) RETURNS int LANGUAGE plpgsql AS $dyno${body}\n\
             BEGIN RETURN 1; END $dyno$"
        )
    };
    let ours = makes(" -- made by Dyno");
    owner.query(&makes("")).unwrap();
    let error = replace_routines(&mut owner, [&ours].into_iter()).unwrap_err().to_string();
    assert!(error.contains("ROUTINE public.dyno_tpcc_x(integer)"), "{error}");
    let there = "SELECT prosrc FROM pg_proc WHERE proname = 'dyno_tpcc_x'";
    assert_eq!(owner.query(there).unwrap().len(), 1);
    owner.query("DROP FUNCTION dyno_tpcc_x").unwrap();
    for _ in 0..2 {
        replace_routines(&mut owner, [&ours].into_iter()).unwrap();
        owner.query(&ours).unwrap();
    }
    // Another one of the name could fit a call better.
    owner.query(&ours.replace("(a int)", "(a bigint)")).unwrap();
    replace_routines(&mut owner, [&ours].into_iter()).unwrap();
    assert_eq!(owner.query(there).unwrap().len(), 0);
}

#[test]
fn on_one_server() {
    one_by_one(&[
        ("tables_of_others_are_not_read", tables_of_others_are_not_read),
        ("nobody_else_chooses_the_role_of_a_session", nobody_else_chooses_the_role_of_a_session),
        ("no_setting_stays_behind_in_a_session", no_setting_stays_behind_in_a_session),
        (
            "routines_that_dyno_cannot_show_to_have_made_are_not_replaced",
            routines_that_dyno_cannot_show_to_have_made_are_not_replaced,
        ),
    ]);
}
