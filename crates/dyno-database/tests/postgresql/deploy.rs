//! Starting, asking, attaching and stopping servers.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use dyno_database::datasets::DataSets;
use dyno_database::postgresql::{PgConnection, connect};
use dyno_database::{
    ArchiveOptions, AttachOptions, CatalogError, DeployError, Endpoint, Part, Place, Products,
    Replication, ReplicationMode, Secret, Server, ServerSpec, archive_between, archive_sides,
    attach, claim_catalog, note_tables,
};
use dyno_host::Keeper;
use dyno_units::{ByteCount, SettingValue};
use dyno_workload::Connection;

use crate::server::{Laboratory, TestServer, one_by_one, programs, server, spec};

fn start_with(
    laboratory: &Laboratory,
    settings: &[(&str, SettingValue)],
) -> Result<Box<dyn Server>, DeployError> {
    Products::built_in().start(&spec(settings), &laboratory.place(), &laboratory.clock)
}

/// Names in the laboratory's folder: what a server left behind.
fn leftovers(laboratory: &Laboratory) -> Vec<String> {
    let entries = std::fs::read_dir(laboratory.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn is_alive(pid: i32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_private_server_lives_and_leaves_nothing() {
    let laboratory = Laboratory::new();
    let settings = [
        ("shared_buffers", SettingValue::Bytes(ByteCount(24 << 20))),
        ("synchronous_commit", SettingValue::Switch(false)),
        ("work_mem", SettingValue::Text("3MB".to_owned())),
        ("checkpoint_completion_target", SettingValue::Real(0.25)),
        ("max_connections", SettingValue::Integer(17)),
    ];
    let mut server = start_with(&laboratory, &settings).unwrap();
    let facts = server.facts().unwrap();
    assert_eq!((facts.product.as_str(), facts.transport, facts.tls), ("PostgreSQL", "unix", false));
    assert!(facts.version.starts_with(|c: char| c.is_ascii_digit()), "{}", facts.version);
    assert_eq!(facts.durability.words, "synced within 3 × 200ms");
    let setting = |name: &str| facts.settings[name].as_str();
    assert_eq!(setting("shared_buffers"), "24MB");
    assert_eq!(setting("work_mem"), "3MB");
    assert_eq!(setting("checkpoint_completion_target"), "0.25");
    assert_eq!(setting("max_connections"), "17");
    assert_eq!(setting("server_encoding"), "UTF8");
    assert!(server.data_bytes().unwrap() > 10 << 20);
    assert!(server.log_tail(50).iter().any(|line| line.contains("ready to accept connections")));
    assert_eq!(server.log_tail(1).len(), 1);
    assert_eq!(server.down(), None);
    let pid = server.processes()[0];
    assert!(is_alive(pid));
    let mut connection = (server.connector())().unwrap();
    assert_eq!(connection.query("SELECT 1").unwrap().len(), 1);
    server.stop().unwrap();
    assert!(!is_alive(pid));
    assert_eq!(leftovers(&laboratory), [""; 0]);
    assert!(connection.query("SELECT 1").unwrap_err().class.loses_connection());
}

/// Starts a server, and returns its system identifier and its databases.
fn identity(keeper: &Arc<Keeper>, laboratory: &Laboratory, part: Part) -> (String, String) {
    let spec = ServerSpec { part, ..spec(&[]) };
    let place = Place::under(keeper);
    let server = Products::built_in().start(&spec, &place, &laboratory.clock).unwrap();
    let mut connection = (server.connector())().unwrap();
    let mut ask = |sql: &str| connection.query(sql).unwrap()[0][0].clone().unwrap();
    let found = (
        ask("SELECT system_identifier FROM pg_control_system()"),
        ask("SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database"),
    );
    drop(connection);
    server.stop().unwrap();
    found
}

#[test]
fn servers_begin_with_a_copy_of_initial_data_and_members_of_a_deployment_do_not() {
    let laboratory = Laboratory::new();
    let folder = |name: &str| laboratory.path().join(name);
    let kept = Arc::new(Keeper::new(&folder("kept")).unwrap());
    let keeper = Keeper::new(&folder("servers")).unwrap().with_initial_data(kept.root());
    let keeper = Arc::new(keeper);
    let start = |part: Part| identity(&keeper, &laboratory, part);
    let first = start(Part::Alone);
    assert_eq!(DataSets::of(&kept).list().unwrap().len(), 1);
    assert_eq!(start(Part::Alone), first);
    let primary = || {
        let mode = ReplicationMode::Asynchronous;
        Part::Primary(Replication::new(1, mode).unwrap())
    };
    let members = [start(primary()).0, start(primary()).0];
    assert!(members[0] != members[1] && !members.contains(&first.0), "{members:?} {first:?}");
    assert_eq!(DataSets::of(&kept).list().unwrap().len(), 1);
}

/// Segments of System V shared memory that a process has made.
fn segments_of(pid: i32) -> usize {
    let text = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let creator = |line: &str| line.split_whitespace().nth(4).map(str::to_owned);
    text.lines().filter(|line| creator(line) == Some(pid.to_string())).count()
}

/// Files of POSIX shared memory that a process uses.
fn shared_files_of(pid: i32) -> Vec<String> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.filter(|path| path.starts_with("/dev/shm/PostgreSQL.")).map(str::to_owned).collect()
}

#[test]
fn a_server_that_is_killed_is_reported_and_leaves_no_shared_memory() {
    let laboratory = Laboratory::new();
    let server = start_with(&laboratory, &[]).unwrap();
    let pid = server.processes()[0];
    let files = shared_files_of(pid);
    assert!(!files.is_empty() && segments_of(pid) > 0);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    // The signal takes a moment to arrive.
    let is_dead = || server.check_alive().is_err();
    laboratory.wait_until("the server is dead", is_dead);
    let error = server.stop().unwrap_err();
    assert!(
        error.message.contains("did not shut down cleanly: it was ended by signal 9"),
        "{error}"
    );
    assert_eq!(segments_of(pid), 0);
    let left: Vec<&String> = files.iter().filter(|path| std::fs::exists(path).unwrap()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(leftovers(&laboratory), [""; 0]);
}

/// Makes all that is noted in a laboratory look as if a Dyno had made it that was killed.
fn abandon(laboratory: &Laboratory) {
    let notes: Vec<String> =
        leftovers(laboratory).into_iter().filter(|name| name.ends_with(".owner.json")).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let path = laboratory.path().join(&notes[0]);
    let mut owner: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // No process ever gets an id above 2^22.
    owner["dyno"]["pid"] = 2_000_000_000.into();
    // A file of its own: the old one stays locked as long as this process lives.
    let fresh = laboratory.path().join("fresh");
    std::fs::write(&fresh, owner.to_string()).unwrap();
    std::fs::rename(fresh, path).unwrap();
}

/// A process that has ended looks as if it ran until its parent has collected it, and a new parent may never
/// do so.
#[test]
fn what_a_killed_dyno_and_its_killed_server_leave_in_memory_is_removed() {
    let laboratory = Laboratory::new();
    let server = start_with(&laboratory, &[]).unwrap();
    let pid = server.processes()[0];
    let files = shared_files_of(pid);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let stat = format!("/proc/{pid}/stat");
    laboratory.wait_until("the server is dead", || {
        std::fs::read_to_string(&stat).unwrap().contains(") Z ")
    });
    assert!(segments_of(pid) > 0);
    abandon(&laboratory);
    let keeper = Keeper::new(laboratory.path()).unwrap();
    let done = keeper.end_leftovers(laboratory.clock.as_ref());
    assert_eq!(segments_of(pid), 0, "{done:?}");
    let left: Vec<&String> = files.iter().filter(|path| std::fs::exists(path).unwrap()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(leftovers(&laboratory), [""; 0], "{done:?}");
    // Collects it; its folder is gone.
    drop(server);
}

/// The newest programs of this machine, of which the server dies while `initdb` runs it, as on a full disk;
/// its process is in the file `who`.
fn dying_programs(folder: &Path, laboratory: &Laboratory) {
    const SCRIPT: &str = r#"#!/bin/sh
case " $* " in *' --boot '*) ;; *) exec REAL/postgres "$@" ;; esac
# It waits for its input, which never comes, until it is killed.
mkfifo FOLDER/never
exec 3<>FOLDER/never
REAL/postgres "$@" <&3 &
# This line says where its shared memory is.
until [ "$(sed -n 7p "$PGDATA/postmaster.pid")" ]; do kill -0 $! || exit; done
echo $! > FOLDER/who
kill -9 $!
wait $!
"#;
    let (real, folder) = (programs(&laboratory.keeper), folder.to_str().unwrap());
    let real = real.to_str().unwrap();
    let script = SCRIPT.replace("REAL", real).replace("FOLDER", folder);
    // By another process: what is open for writing in this one is so in the children of other tests for a
    // moment, and cannot be run.
    let make = "cp \"$1/initdb\" \"$2\" && printf %s \"$3\" > \"$2/postgres\" && \
                chmod 755 \"$2/postgres\" && chmod 777 \"$2\"";
    let made = Command::new("sh").args(["-c", make, "sh", real, folder, &script]).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_server_that_dies_while_its_data_are_made_leaves_no_shared_memory() {
    let laboratory = Laboratory::new();
    let folder = tempfile::tempdir().unwrap();
    dying_programs(folder.path(), &laboratory);
    let spec = ServerSpec { programs: Some(folder.path().to_owned()), ..spec(&[]) };
    let started = Products::built_in().start(&spec, &laboratory.place(), &laboratory.clock);
    let error = started.err().expect("it fails").message;
    assert!(error.contains("child process exited with exit code 137"), "{error}");
    let who = std::fs::read_to_string(folder.path().join("who")).unwrap();
    assert_eq!(segments_of(who.trim().parse().unwrap()), 0, "{error}");
    assert_eq!(leftovers(&laboratory), [""; 0]);
}

#[test]
fn a_server_that_opens_a_port_after_all_is_not_used() {
    let laboratory = Laboratory::new();
    let check = |name: &str| {
        let value = SettingValue::Text("*".to_owned());
        let error = start_with(&laboratory, &[(name, value)]).err().expect("refused").message;
        assert!(error.contains("make a private server reachable by others"), "{error}");
    };
    check("listen_addresses");
    check("Hba_File");
    let server = start_with(&laboratory, &[]).unwrap();
    let mut connection = (server.connector())().unwrap();
    // What a server has written into its own configuration does not count either.
    connection.query("ALTER SYSTEM SET listen_addresses = '*'").unwrap();
    drop(connection);
    let data = laboratory.keeper.make_folder("data").unwrap().join("data");
    server.stop_and_keep_data(&data).unwrap();
    let server = Products::built_in()
        .start_on(&data, &spec(&[]), &laboratory.place(), &laboratory.clock)
        .unwrap();
    assert_eq!(server.facts().unwrap().settings["listen_addresses"], "");
    assert_eq!(dyno_host::listens_by_network(server.processes()[0]).unwrap(), [""; 0]);
    server.stop().unwrap();
}

#[test]
fn refused_settings_are_reported_in_the_servers_words() {
    let laboratory = Laboratory::new();
    let check = |name, value, part: &str| {
        let error = start_with(&laboratory, &[(name, value)]).err().expect("refused");
        assert!(error.message.contains(part), "{error}");
        error
    };
    let number = SettingValue::Integer;
    let error = check("no_such_setting", number(1), "unrecognized configuration parameter");
    assert!(error.log.iter().any(|line| line.contains("FATAL")), "{:?}", error.log);
    check("shared_buffers", number(1), "outside the valid range");
    check("fsync", SettingValue::Text("perhaps".to_owned()), "requires a Boolean value");
    check("port", number(5432), "make a private server reachable by others");
    let mut engine = spec(&[]);
    engine.engine = Some("InnoDB".to_owned());
    let error =
        Products::built_in().start(&engine, &laboratory.place(), &laboratory.clock).err().unwrap();
    assert!(error.message.contains("no storage engine `InnoDB`"), "{error}");
    assert_eq!(leftovers(&laboratory), [""; 0]);
}

#[test]
fn missing_programs_and_versions_are_reported() {
    let laboratory = Laboratory::new();
    let mut spec = spec(&[]);
    spec.version = Some("8.4".to_owned());
    let error =
        Products::built_in().start(&spec, &laboratory.place(), &laboratory.clock).err().unwrap();
    assert!(
        error
            .message
            .contains("PostgreSQL 8.4 is not installed or fetched on this machine; found: "),
        "{error}"
    );
    spec.programs = Some("/nowhere".into());
    let error =
        Products::built_in().start(&spec, &laboratory.place(), &laboratory.clock).err().unwrap();
    assert!(error.message.contains("are not in /nowhere"), "{error}");
    assert!(error.message.contains("package `postgresql`"), "{error}");
}

/// Tables of others may be there.
const ALLOWING: AttachOptions =
    AttachOptions { allow_existing_tables: true, keep_tables: false, makes_nothing: false };

fn with_catalog(server: &TestServer, catalog: &str) -> Endpoint {
    Endpoint { catalog: catalog.to_owned(), ..server.tcp() }
}

fn catalogs(server: &TestServer, name: &str) -> usize {
    let sql = format!("SELECT 1 FROM pg_database WHERE datname = '{name}'");
    crate::open(server).query(&sql).unwrap().len()
}

fn a_missing_catalog_is_made_and_dropped() {
    let server = server();
    let name = "made \"by\" Dyno";
    let attached = attach(&with_catalog(&server, name), AttachOptions::default()).unwrap();
    assert_eq!(catalogs(&server, name), 1);
    let facts = attached.facts().unwrap();
    assert_eq!((facts.transport, facts.durability.words.as_str()), ("tcp", "not synced"));
    assert!(attached.data_bytes().unwrap() > 1 << 20);
    assert!(attached.processes().is_empty());
    // A client that was forgotten does not keep it.
    let forgotten = (attached.connector())().unwrap();
    attached.stop().unwrap();
    drop(forgotten);
    assert_eq!(catalogs(&server, name), 0);
}

fn foreign_tables_are_safe() {
    let server = server();
    let mut connection = crate::open(&server);
    connection.query("CREATE DATABASE precious").unwrap();
    let endpoint = with_catalog(&server, "precious");
    let mut owner = connect(&endpoint).unwrap();
    owner.query("CREATE TABLE letters (id int)").unwrap();
    assert!(attach(&endpoint, AttachOptions::default()).is_err());
    let attached = attach(&endpoint, ALLOWING).unwrap();
    let mut client = (attached.connector())().unwrap();
    let noted = note_tables(client.as_mut(), &["mine".to_owned()]);
    noted.unwrap();
    client.query("CREATE TABLE mine (id int)").unwrap();
    let foreign = note_tables(client.as_mut(), &["letters".to_owned()]);
    assert!(matches!(foreign, Err(CatalogError::Foreign(_))));
    attached.stop().unwrap();
    let sql = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(owner.query(sql).unwrap(), [vec![Some("letters".to_owned())]]);
}

/// A database in which `mallory` may make things, with a table that she may not touch; her
/// connection.
pub(crate) fn shared_with_mallory(server: &TestServer, name: &str) -> (Endpoint, PgConnection) {
    let mut admin = crate::open(server);
    // Another test may have made her, or be about to.
    let _ = admin.query("CREATE ROLE mallory LOGIN");
    admin.query(&format!("CREATE DATABASE {name}")).unwrap();
    let endpoint = Endpoint { catalog: name.to_owned(), ..server.endpoint.clone() };
    let mut owner = connect(&endpoint).unwrap();
    owner.query("CREATE TABLE payroll (id int)").unwrap();
    owner.query("GRANT CREATE, USAGE ON SCHEMA public TO mallory").unwrap();
    let mallory = Endpoint { user: "mallory".to_owned(), ..endpoint.clone() };
    let mut mallory = connect(&mallory).unwrap();
    // Runs with the rights of whoever selects from her view, writes to her table, or meets her
    // function where the server's own was meant.
    for sql in [
        "CREATE FUNCTION evil() RETURNS text LANGUAGE plpgsql AS $$ BEGIN \
         EXECUTE 'ALTER ROLE mallory SUPERUSER'; RETURN 'payroll'; END $$",
        "CREATE FUNCTION evil_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         EXECUTE 'ALTER ROLE mallory SUPERUSER'; RETURN NEW; END $$",
        "CREATE FUNCTION pg_get_userbyid(oid) RETURNS name LANGUAGE sql AS \
         $$ SELECT evil(); SELECT current_user::name $$",
        "CREATE FUNCTION current_schema() RETURNS name LANGUAGE sql AS \
         $$ SELECT evil(); SELECT 'public'::name $$",
        "CREATE FUNCTION same(name, unknown) RETURNS bool LANGUAGE sql AS \
         $$ SELECT evil(); SELECT true $$",
        "CREATE OPERATOR = (LEFTARG = name, RIGHTARG = unknown, FUNCTION = same)",
    ] {
        let made = mallory.query(sql);
        // The servers know better than to take an operator on a pseudo-type.
        assert!(made.is_ok() || sql.contains("unknown"), "{made:?}");
    }
    assert!(mallory.query("DROP TABLE payroll").is_err());
    (endpoint, mallory)
}

fn is_harmed(endpoint: &Endpoint) -> bool {
    let mut owner = connect(endpoint).unwrap();
    let super_user = "SELECT 1 FROM pg_roles WHERE rolname = 'mallory' AND rolsuper";
    let payroll = "SELECT 1 FROM pg_tables WHERE tablename = 'payroll'";
    !owner.query(super_user).unwrap().is_empty() || owner.query(payroll).unwrap().is_empty()
}

fn forged_notes_drop_nothing_and_run_nothing() {
    let server = server();
    let (endpoint, mut mallory) = shared_with_mallory(&server, "forged");
    let attacks: [&[&str]; 4] = [
        &[
            "CREATE TABLE dyno_tables (made_order int, table_name text)",
            "INSERT INTO dyno_tables VALUES (1, 'payroll')",
        ],
        &["CREATE VIEW dyno_tables AS SELECT 1 AS made_order, evil() AS table_name"],
        &["CREATE VIEW dyno_tables AS SELECT 'tables of Dyno: payroll'::text AS noted"],
        &[
            "CREATE TABLE dyno_tables (made_order int, table_name text)",
            "CREATE TRIGGER t BEFORE INSERT OR DELETE ON dyno_tables FOR EACH ROW \
             EXECUTE FUNCTION evil_trigger()",
        ],
    ];
    for attack in attacks {
        for sql in attack {
            mallory.query(sql).unwrap();
        }
        for is_allowed in [false, true] {
            let mut owner = connect(&endpoint).unwrap();
            let error = claim_catalog(&mut owner, is_allowed).expect_err("refused").to_string();
            assert!(error.contains("`dyno_tables` of the user `mallory`"), "{error}");
            let options = AttachOptions { allow_existing_tables: is_allowed, ..ALLOWING };
            let error = attach(&endpoint, options).err().expect("refused").message;
            assert!(error.contains("the function current_schema of mallory"), "{error}");
        }
        assert!(!is_harmed(&endpoint));
        let kind = if attack[0].contains("VIEW") { "VIEW" } else { "TABLE" };
        mallory.query(&format!("DROP {kind} dyno_tables")).unwrap();
    }
    mallory.query("DROP FUNCTION public.current_schema(), public.pg_get_userbyid(oid)").unwrap();
    // Nor does she get at the notes that Dyno makes.
    let attached = attach(&endpoint, ALLOWING).unwrap();
    for sql in [
        "CREATE OR REPLACE VIEW dyno_tables AS SELECT 'tables of Dyno: payroll'::text AS noted",
        "DROP VIEW dyno_tables",
        "INSERT INTO dyno_tables VALUES ('x')",
    ] {
        assert!(mallory.query(sql).is_err(), "{sql}");
    }
    let mut client = (attached.connector())().unwrap();
    note_tables(client.as_mut(), &["mine".to_owned(), "not_mine".to_owned()]).unwrap();
    client.query("CREATE TABLE mine (id int)").unwrap();
    // She is quicker than Dyno with a table that it has noted.
    mallory.query("CREATE TABLE not_mine (id int)").unwrap();
    attached.stop().unwrap();
    assert!(!is_harmed(&endpoint));
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
    let left = connect(&endpoint).unwrap().query(tables).unwrap();
    let left: Vec<_> = left.into_iter().flatten().flatten().collect();
    assert_eq!(left, ["not_mine", "payroll"]);
}

fn operators_of_others_are_refused_and_no_probe_runs_them() {
    let server = server();
    let (endpoint, mut mallory) = shared_with_mallory(&server, "trapped");
    mallory.query("DROP FUNCTION public.current_schema(), public.pg_get_userbyid(oid)").unwrap();
    let attached = attach(&endpoint, ALLOWING).unwrap();
    let mut probes = attached.probes(None);
    // From now on she waits for whoever multiplies or compares what the server has no operator of
    // its own for. A lock is seen from outside, and can be had in a session that only reads.
    for (name, left, right, result) in [
        ("*", "int", "numeric", "numeric"),
        ("/", "numeric", "bigint", "numeric"),
        ("*", "float8", "bigint", "float8"),
        ("+", "float8", "numeric", "float8"),
        ("||", "name", "name", "text"),
        ("=", "varchar", "varchar", "bool"),
    ] {
        let trap = format!("trap_{left}_{right}");
        mallory
            .query(&format!(
                "CREATE OR REPLACE FUNCTION {trap}({left}, {right}) RETURNS {result} \
                 LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_catalog.pg_advisory_lock_shared(4711); \
                 RETURN NULL; END $$; \
                 CREATE OPERATOR {name} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = {trap})"
            ))
            .unwrap();
    }
    let mut owner = connect(&endpoint).unwrap();
    let locks = "SELECT count(*)::text FROM pg_catalog.pg_locks WHERE objid = 4711";
    let mut n_readings = 0;
    for probe in &mut probes {
        let mut readings = dyno_host::Readings::new();
        probe.read(dyno_units::Nanoseconds::SECOND, &mut readings);
        n_readings += readings.len();
    }
    let mut meter = attached.debt_meter().unwrap();
    assert!(!meter.read().unwrap().parts.is_empty());
    assert!(n_readings > 20, "{n_readings}");
    assert_eq!(owner.query(locks).unwrap(), [vec![Some("0".to_owned())]]);
    // The trap is one.
    owner.query("SELECT 100 * pg_catalog.pg_wal_lsn_diff('0/5', '0/0')").unwrap();
    assert_eq!(owner.query(locks).unwrap(), [vec![Some("1".to_owned())]]);
    attached.stop().unwrap();
    let error = attach(&endpoint, ALLOWING).err().expect("refused").message;
    assert!(error.contains("the operator * of mallory"), "{error}");
}

/// `count(k)` is a cast to a type of that name where no function fits exactly; casts belong to no schema.
fn types_and_casts_of_others_are_refused() {
    let server = server();
    let (endpoint, mut mallory) = shared_with_mallory(&server, "typed");
    mallory.query("DROP FUNCTION public.current_schema(), public.pg_get_userbyid(oid)").unwrap();
    let mut check = |makes: &str, removes: &str, expected: &str| {
        mallory.query(makes).unwrap();
        let error = attach(&endpoint, ALLOWING).err().expect("refused").message;
        assert!(error.contains(expected), "{error}");
        mallory.query(removes).unwrap();
    };
    check("CREATE DOMAIN count AS int", "DROP DOMAIN count", "the type count of mallory");
    // A cast for what only her own tables hold is hers alone.
    let makes = "CREATE TYPE state AS ENUM ('a'); CREATE TABLE states (s state); \
                 CREATE FUNCTION shown(state) RETURNS text LANGUAGE sql AS $$SELECT 'x'$$; \
                 CREATE CAST (state AS text) WITH FUNCTION shown(state)";
    mallory.query(makes).unwrap();
    attach(&endpoint, ALLOWING).unwrap().stop().unwrap();
    for of_owner in ["state", "state[]"] {
        let mut owner = connect(&endpoint).unwrap();
        owner.query(&format!("CREATE TABLE used (s {of_owner})")).unwrap();
        let error = attach(&endpoint, ALLOWING).err().expect("refused").message;
        assert!(error.contains("the cast by shown of mallory"), "{error}");
        owner.query("DROP TABLE used").unwrap();
    }
}

pub(crate) fn of_orders() -> ArchiveOptions {
    ArchiveOptions {
        table: "orders".to_owned(),
        condition: "true".to_owned(),
        batch: 1,
        limit: None,
        creates: false,
        destination: "there".to_owned(),
    }
}

fn an_archiving_neither_runs_nor_believes_nor_drops_what_others_made() {
    let server = server();
    let (endpoint, mut mallory) = shared_with_mallory(&server, "archived");
    let to = Endpoint { catalog: "archive".to_owned(), ..endpoint.clone() };
    crate::open(&server).query("CREATE DATABASE archive").unwrap();
    for side in [&endpoint, &to] {
        let made = "CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1)";
        connect(side).unwrap().query(made).unwrap();
    }
    for (from, to) in [(&endpoint, &to), (&to, &endpoint)] {
        let error = archive_sides(from, to, "true", None).err().expect("refused").to_string();
        assert!(error.contains("the function current_schema of mallory"), "{error}");
    }
    // What is left is a note, which tells that the row at the destination is of a batch that was cut.
    for sql in [
        "DROP FUNCTION public.current_schema(), public.pg_get_userbyid(oid)",
        "CREATE TABLE dyno_archive_e52ffdee (part int primary key, destination text, row_keys text)",
        "INSERT INTO dyno_archive_e52ffdee VALUES (1, 'there', '1')",
        "CREATE TRIGGER t BEFORE INSERT OR DELETE ON dyno_archive_e52ffdee FOR EACH ROW \
         EXECUTE FUNCTION evil_trigger()",
        "GRANT ALL ON dyno_archive_e52ffdee TO PUBLIC",
    ] {
        mallory.query(sql).unwrap();
    }
    let options = of_orders();
    let [mut source, mut there, mut notes] = archive_sides(&endpoint, &to, "true", None).unwrap();
    let mut archive =
        || archive_between(&mut source, &mut there, &mut notes, &options, &mut |_| true);
    let error = archive().unwrap_err().to_string();
    assert!(error.contains("not a plain table"), "{error}");
    assert!(!is_harmed(&endpoint));
    let ask = |side: &Endpoint, sql: &str| connect(side).unwrap().query(sql).unwrap();
    assert_eq!(ask(&to, "SELECT id FROM orders").len(), 1);
    assert_eq!(ask(&endpoint, "SELECT part FROM dyno_archive_e52ffdee").len(), 1);
    mallory.query("DROP TABLE dyno_archive_e52ffdee").unwrap();
    assert_eq!(archive().unwrap().rows, 1);
}

fn settings_of_a_database_give_its_owner_no_rights() {
    let server = server();
    let mut admin = crate::open(&server);
    let _ = admin.query("CREATE ROLE mallory LOGIN");
    admin.query("CREATE DATABASE settings OWNER mallory").unwrap();
    let endpoint = Endpoint { catalog: "settings".to_owned(), ..server.endpoint.clone() };
    let mallory = Endpoint { user: "mallory".to_owned(), ..endpoint.clone() };
    let mut mallory = connect(&mallory).unwrap();
    let mut check = |made: &str, undone: &str, expected: &str| {
        mallory.query(made).unwrap();
        let error = attach(&endpoint, AttachOptions::default()).err().expect("refused").message;
        assert!(error.contains(expected), "{error}");
        mallory.query(undone).unwrap();
        attach(&endpoint, AttachOptions::default()).unwrap().stop().unwrap();
    };
    check(
        "CREATE SCHEMA first; CREATE DOMAIN first.text AS pg_catalog.text; \
         ALTER DATABASE settings SET search_path = first, pg_catalog, public",
        "ALTER DATABASE settings SET search_path = first, public",
        "in the schema `first` before its own",
    );
    check(
        "ALTER DATABASE settings SET role = mallory",
        "ALTER DATABASE settings RESET role",
        "act as `mallory`",
    );
}

fn a_table_that_is_called_like_the_password_is_not_named() {
    let server = server();
    let (endpoint, _) = shared_with_mallory(&server, "quoting");
    let endpoint = Endpoint { password: Some(Secret::new("payroll")), ..endpoint };
    let mut owner = connect(&endpoint).unwrap();
    let error = claim_catalog(&mut owner, false).expect_err("refused").to_string();
    assert!(error.contains("did not create (***)"), "{error}");
    let error = note_tables(&mut owner, &["payroll".to_owned()]).expect_err("refused").to_string();
    assert!(error.contains("a table `***`"), "{error}");
}

fn a_name_that_something_else_has_is_refused_before_anything_is_made() {
    let server = server();
    let mut connection = crate::open(&server);
    connection.query("CREATE DATABASE named").unwrap();
    let endpoint = Endpoint { catalog: "named".to_owned(), ..server.endpoint.clone() };
    let mut owner = connect(&endpoint).unwrap();
    owner.query("CREATE SEQUENCE sbtest1; CREATE TYPE sbtest2 AS ENUM ('a')").unwrap();
    let attached = attach(&endpoint, AttachOptions::default()).unwrap();
    let mut client = (attached.connector())().unwrap();
    for (name, kind) in [("sbtest1", "a sequence"), ("sbtest2", "a type")] {
        let error = note_tables(client.as_mut(), &[name.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(&format!("{kind} `{name}`")), "{error}");
    }
    attached.stop().unwrap();
    assert!(
        owner.query("SELECT 1 FROM pg_views WHERE viewname = 'dyno_tables'").unwrap().is_empty()
    );
}

fn a_catalog_with_things_or_sessions_of_others_stays() {
    let server = server();
    let check = |name: &str, sql: &str| {
        let endpoint = Endpoint { catalog: name.to_owned(), ..server.endpoint.clone() };
        let attached = attach(&endpoint, AttachOptions::default()).unwrap();
        connect(&endpoint).unwrap().query(sql).unwrap();
        attached.stop().unwrap();
        assert_eq!(catalogs(&server, name), 1, "{sql}");
    };
    check("with_function", "CREATE FUNCTION theirs() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    check("with_type", "CREATE TYPE theirs AS ENUM ('a')");
    check("with_sequence", "CREATE SEQUENCE theirs");
    check("with_schema", "CREATE SCHEMA theirs");
    check("with_large_object", "SELECT lo_create(0)");
    // Routines that Dyno makes itself are no reason.
    let endpoint = Endpoint { catalog: "with_own".to_owned(), ..server.endpoint.clone() };
    let attached = attach(&endpoint, AttachOptions::default()).unwrap();
    let own =
        "CREATE FUNCTION dyno_tpcc_x() RETURNS int LANGUAGE sql AS ' -- made by Dyno\nSELECT 1'";
    connect(&endpoint).unwrap().query(own).unwrap();
    attached.stop().unwrap();
    assert_eq!(catalogs(&server, "with_own"), 0);
    check("with_name", "CREATE FUNCTION dyno_tpcc_x() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    // No other user's session is ended.
    let endpoint = Endpoint { catalog: "in_use".to_owned(), ..server.endpoint.clone() };
    let attached = attach(&endpoint, AttachOptions::default()).unwrap();
    let mut theirs = connect(&endpoint).unwrap();
    let error = attached.stop().unwrap_err().message;
    assert!(error.contains("`in_use`, which Dyno created, was not dropped"), "{error}");
    assert_eq!(theirs.query("SELECT 1").unwrap().len(), 1);
}

fn tables_are_kept_where_asked_for() {
    let server = server();
    let endpoint = Endpoint { catalog: "kept".to_owned(), ..server.endpoint.clone() };
    let keeping = AttachOptions { keep_tables: true, ..AttachOptions::default() };
    let attached = attach(&endpoint, keeping).unwrap();
    let mut client = (attached.connector())().unwrap();
    note_tables(client.as_mut(), &["mine".to_owned()]).unwrap();
    client.query("CREATE TABLE mine (id int)").unwrap();
    attached.stop().unwrap();
    let tables = "SELECT 1 FROM pg_tables WHERE tablename = 'mine'";
    assert_eq!(connect(&endpoint).unwrap().query(tables).unwrap().len(), 1);
    // They are still known as Dyno's.
    drop(client);
    attach(&endpoint, AttachOptions::default()).unwrap().stop().unwrap();
    assert_eq!(connect(&endpoint).unwrap().query(tables).unwrap().len(), 0);
}

#[test]
fn an_attached_server_that_ends_is_noticed() {
    let laboratory = Laboratory::new();
    let private = start_with(&laboratory, &[("fsync", SettingValue::Switch(false))]).unwrap();
    let mut connection = (private.connector())().unwrap();
    let folder = connection.query("SHOW unix_socket_directories").unwrap()[0][0].clone().unwrap();
    let url = format!("postgresql://dyno@x:5432/dyno?host={folder}");
    let mut attached =
        attach(&Endpoint::from_url(&url).unwrap(), AttachOptions::default()).unwrap();
    assert_eq!(attached.down(), None);
    // An idle connection that is ended says nothing about the server.
    connection
        .query(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )
        .unwrap();
    assert_eq!(attached.down(), None);
    private.stop().unwrap();
    let reason = attached.down().expect("it is down");
    assert!(reason.contains("terminating connection"), "{reason}");
    let socket = format!("cannot connect to {folder}/.s.PGSQL.5432");
    assert!(reason.contains(&socket), "{reason}");
}

#[test]
fn on_one_server() {
    one_by_one(&[
        ("a_missing_catalog_is_made_and_dropped", a_missing_catalog_is_made_and_dropped),
        ("foreign_tables_are_safe", foreign_tables_are_safe),
        ("forged_notes_drop_nothing_and_run_nothing", forged_notes_drop_nothing_and_run_nothing),
        (
            "operators_of_others_are_refused_and_no_probe_runs_them",
            operators_of_others_are_refused_and_no_probe_runs_them,
        ),
        ("types_and_casts_of_others_are_refused", types_and_casts_of_others_are_refused),
        (
            "an_archiving_neither_runs_nor_believes_nor_drops_what_others_made",
            an_archiving_neither_runs_nor_believes_nor_drops_what_others_made,
        ),
        (
            "settings_of_a_database_give_its_owner_no_rights",
            settings_of_a_database_give_its_owner_no_rights,
        ),
        (
            "a_table_that_is_called_like_the_password_is_not_named",
            a_table_that_is_called_like_the_password_is_not_named,
        ),
        (
            "a_name_that_something_else_has_is_refused_before_anything_is_made",
            a_name_that_something_else_has_is_refused_before_anything_is_made,
        ),
        (
            "a_catalog_with_things_or_sessions_of_others_stays",
            a_catalog_with_things_or_sessions_of_others_stays,
        ),
        ("tables_are_kept_where_asked_for", tables_are_kept_where_asked_for),
    ]);
}
