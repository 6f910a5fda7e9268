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
    // Each transaction looks names up as checked, whatever session of a pooler serves it.
    let path = "SELECT 1 / (pg_catalog.current_setting('search_path') = 'public')::int";
    source.run(Some(path)).unwrap();
    source.after().unwrap();
    // The trap is one.
    for table in ["orders", "seen"] {
        let why = owner.query(&format!("SELECT * FROM {table}")).unwrap_err().to_string();
        assert!(why.contains("sprung"), "{why}");
    }
    crate::open(&server).query("CREATE DATABASE owned_to").unwrap();
    let there = Endpoint { catalog: "owned_to".to_owned(), ..endpoint.clone() };
    let condition = "id IN (SELECT id FROM parts)";
    let why = archive_sides(&endpoint, &there, condition, None).err().expect("refused").to_string();
    assert!(why.contains("`public.parts` of `mallory`"), "{why}");
    queries_are_checked(&endpoint, &there);
    let [mut from, mut to, mut notes] = archive_sides(&endpoint, &there, "true", None).unwrap();
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
    refused("mine", "`public.mine (trigger hers)` of `mallory`");
}

fn queries_are_checked(one: &Endpoint, other: &Endpoint) {
    let query = Some("SELECT max(id) FROM parts");
    for (from, to) in [(one, other), (other, one)] {
        let why = archive_sides(from, to, "true", query).err().expect("refused").to_string();
        assert!(why.contains("the query: reading `public.parts` of `mallory`"), "{why}");
    }
}

/// Who has been granted ALL on a table may make triggers on it.
fn triggers_of_others_on_tables_of_this_user_are_not_run() {
    let server = server();
    let (endpoint, mut mallory) = shared_with_mallory(&server, "granted");
    let mut owner = connect(&endpoint).unwrap();
    for sql in [
        "DROP FUNCTION public.current_schema(), public.pg_get_userbyid(oid)",
        "CREATE TABLE mine (id int PRIMARY KEY)",
        "CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE part PARTITION OF parted DEFAULT",
        "CREATE TABLE parents (id int PRIMARY KEY)",
        "CREATE TABLE children (id int REFERENCES parents ON DELETE CASCADE)",
        "CREATE TABLE quiet (id int PRIMARY KEY REFERENCES parents)",
        "GRANT ALL ON mine, parted, part, children TO PUBLIC",
    ] {
        owner.query(sql).unwrap();
    }
    let connector = endpoint.protocol.checked_connector(&endpoint);
    let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
    let mut source = endpoint.protocol.cost_source(&connector, Access::RolledBack, &clock).unwrap();
    let mut check = |sql: &str, expected: Option<&str>| match (source.check(sql), expected) {
        (found, None) => assert_eq!(found, Ok(()), "{sql}"),
        (found, Some(named)) => {
            let why = found.unwrap_err();
            assert!(why.contains(&format!("`{named} (trigger hers)` of `mallory`")), "{why}");
        }
    };
    let writes = [
        ("INSERT INTO mine VALUES (1)", "public.mine"),
        ("INSERT INTO parted VALUES (1)", "public.parted"),
        ("INSERT INTO part VALUES (1)", "public.part"),
        ("DELETE FROM parents", "public.children"),
    ];
    writes.iter().for_each(|(sql, _)| check(sql, None));
    for table in ["mine", "parted", "children"] {
        let made = format!(
            "CREATE TRIGGER hers AFTER INSERT OR DELETE ON {table} FOR EACH ROW \
             EXECUTE FUNCTION evil_trigger()"
        );
        mallory.query(&made).unwrap();
    }
    writes.iter().for_each(|(sql, named)| check(sql, Some(named)));
    check("INSERT INTO quiet VALUES (1)", None);
}

/// Their own functions run when a table is planned, analysed or indexed.
fn types_of_others_in_tables_of_this_user_are_refused() {
    let server = server();
    let (endpoint, mut mallory) = shared_with_mallory(&server, "types");
    let nothing = AttachOptions { makes_nothing: true, ..AttachOptions::default() };
    for sql in [
        "DROP FUNCTION public.current_schema(), public.pg_get_userbyid(oid)",
        SPRUNG,
        "CREATE FUNCTION apart(int, int) RETURNS float8 IMMUTABLE LANGUAGE sql AS 'SELECT sprung($1)::float8'",
        "CREATE TYPE span AS RANGE (subtype = int, subtype_diff = apart)",
        "CREATE TYPE plain AS RANGE (subtype = int)",
        "CREATE DOMAIN checked AS int CHECK (sprung(VALUE) = 1)",
        "CREATE DOMAIN unchecked AS int",
        "CREATE TYPE pair AS (a checked)",
        "CREATE TYPE wide AS RANGE (subtype = checked)",
        "CREATE TABLE hers (a span, b checked)",
    ] {
        mallory.query(sql).unwrap();
    }
    let mut owner = connect(&endpoint).unwrap();
    let mut check = |of_type: &str, expected: Option<&str>| {
        owner.query(&format!("CREATE TABLE used (s {of_type})")).unwrap();
        match (attach(&endpoint, nothing), expected) {
            (attached, None) => attached.unwrap().stop().unwrap(),
            (attached, Some(named)) => {
                let error = attached.err().expect(of_type).message;
                assert!(error.contains(&format!("the type {named} of mallory")), "{error}");
            }
        }
        owner.query("DROP TABLE used").unwrap();
    };
    ["int", "plain", "unchecked"].iter().for_each(|one| check(one, None));
    for (of_type, named) in [
        ("span", "span"),
        ("span[]", "span"),
        ("checked", "checked"),
        ("pair", "checked"),
        ("wide", "checked"),
    ] {
        check(of_type, Some(named));
    }
    // Also where nothing but the server's own schema is searched.
    crate::open(&server).query("ALTER DATABASE types SET search_path = ''").unwrap();
    owner.query("CREATE TABLE public.used (s public.span)").unwrap();
    let error = attach(&endpoint, nothing).err().expect("refused").message;
    assert!(error.contains("the type span of mallory"), "{error}");
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
    let mut probe = sql_probe(connector, "own", sql, Nanoseconds::from_secs(60));
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
        (
            "triggers_of_others_on_tables_of_this_user_are_not_run",
            triggers_of_others_on_tables_of_this_user_are_not_run,
        ),
        (
            "types_of_others_in_tables_of_this_user_are_refused",
            types_of_others_in_tables_of_this_user_are_refused,
        ),
        ("nobody_else_chooses_the_role_of_a_session", nobody_else_chooses_the_role_of_a_session),
        ("no_setting_stays_behind_in_a_session", no_setting_stays_behind_in_a_session),
        (
            "routines_that_dyno_cannot_show_to_have_made_are_not_replaced",
            routines_that_dyno_cannot_show_to_have_made_are_not_replaced,
        ),
    ]);
}
