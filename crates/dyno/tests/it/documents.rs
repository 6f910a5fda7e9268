//! Documents as a user sees them: a private FerretDB and one by URL, under load, with audits.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_database::{Act, Place, Products, Server, ServerSpec};
use dyno_host::Keeper;
use dyno_units::SettingValue;

use crate::bench::check_audit;
use crate::foreign::TestClock;
use crate::support::{DataFolder, Workbench, await_good, is_alive};

/// One client: FerretDB 1.24 loses simultaneous updates of a document, as the audit finds.
const SHORT: [&str; 6] = ["--duration", "1s", "--warm-up", "300ms", "--clients", "1"];
const SMALL: [&str; 4] = ["--documents", "600", "--document-size", "200"];

/// The folder in PATH with FerretDB, if any; `scripts/test` builds it where Go is. Reports a skipped test.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find(|folder| folder.join("ferretdb").is_file());
    if found.is_none() {
        eprintln!(
            "skipped: the program `ferretdb` is not in PATH (scripts/test builds it where Go is)"
        );
    }
    found
}

fn start(
    programs: &Path,
    folder: &DataFolder,
    settings: &[(&str, &str)],
) -> Result<Box<dyn Server>, String> {
    let keeper = Arc::new(Keeper::new(folder.path()).unwrap());
    let mut spec = ServerSpec::new("ferretdb");
    spec.programs = Some(programs.to_owned());
    let text = |value: &str| SettingValue::Text(value.to_owned());
    spec.settings = settings.iter().map(|(n, value)| ((*n).to_owned(), text(value))).collect();
    Products::built_in()
        .start(&spec, &Place::under(&keeper), &TestClock::start())
        .map_err(|error| format!("{} {:?}", error.message, error.log))
}

#[track_caller]
fn check_load(programs: &Path, more: &[&str]) {
    let place = ["documents", "--on", "ferretdb", "--programs", programs.to_str().unwrap()];
    let load = [&place[..], &SMALL, &SHORT, more].concat();
    let result = Workbench::new().bench(&load);
    check_audit(&result, &format!("{more:?}"));
    assert!(result["transactions"].as_u64() > Some(0), "{result:#}");
    assert_eq!(result["errors"]["total"].as_u64().unwrap_or(0), 0, "{result:#}");
}

#[test]
fn operations_are_carried_out_and_audited() {
    let Some(programs) = programs() else { return };
    check_load(&programs, &[]);
    check_load(&programs, &["--distribution", "zipfian", "--insert-weight", "0", "--rate", "60"]);
    let writes = ["--find-weight", "0", "--range-weight", "0", "--insert-weight", "30"];
    check_load(&programs, &[&writes[..], &["--setting", "synchronous=off"]].concat());
}

#[test]
fn what_does_not_fit_together_is_refused_before_anything_is_started() {
    let bench = Workbench::new();
    let url = "mongodb://me@127.0.0.1:1/d";
    for (arguments, expected) in [
        (
            &["oltp_read_only", "--on", "ferretdb"][..],
            "`oltp_read_only` sends SQL, but ferretdb stores documents",
        ),
        (&["tpcc", "--on", url], "`tpcc` sends SQL, but a server with a URL stores documents"),
        (&["file-io", "--on", "ferretdb"], "works on files, but ferretdb stores documents"),
        (
            &["documents", "--on", "sqlite"],
            "works on documents, but sqlite stores none; choose the product `ferretdb`",
        ),
        (&["documents", "--on", "mysql://me@h/c"], "or a URL like mongodb://"),
        (&["documents", "--on", "files"], "works on documents, but files stores none"),
        (
            &["documents", "--on", "mongodb"],
            "Dyno starts `ferretdb`, and uses a running MongoDB by its URL",
        ),
        (
            &["documents", "--on", "ferretdb", "--setting", "foreign_keys=1"],
            "pragmas of its SQLite databases",
        ),
    ] {
        let answer = bench.dyno(&[&["bench"], arguments].concat());
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.err);
        assert!(answer.err.contains(expected), "{arguments:?}: {}", answer.err);
    }
    // A job with SQL has no server to send it to.
    let study = "title = 'x'\n[database.a]\nproduct = 'ferretdb'\n[workload.documents]\n[job.j]\n\
                 sql = 'SELECT 1'\n[design]\nrepetitions = 1\nduration = '1s'\n";
    bench.write("study.toml", study);
    let answer = bench.dyno(&["check", "study.toml"]);
    assert!(
        answer.code == 2 && answer.err.contains("ferretdb does not understand"),
        "{}",
        answer.err
    );
}

#[test]
fn a_program_that_is_missing_is_said_with_what_to_do() {
    let bench = Workbench::new();
    let folder = DataFolder::new();
    let load =
        [&["bench", "documents", "--on", "ferretdb", "--programs", folder.text()], &SHORT[..]];
    let answer = bench.dyno(&load.concat());
    assert!(
        answer.code != 0 && answer.err.contains("docs/documents.md says how"),
        "{}",
        answer.err
    );
}

#[test]
fn a_private_server_has_no_port_and_leaves_nothing() {
    let Some(programs) = programs() else { return };
    let folder = DataFolder::new();
    let server = start(&programs, &folder, &[("synchronous", "normal")]).unwrap();
    let facts = server.facts().unwrap();
    assert_eq!((&*facts.product, facts.transport), ("FerretDB", "unix"));
    assert!(facts.version.starts_with("1."), "{}", facts.version);
    assert_eq!(facts.durability.words, "synced at checkpoints");
    assert_eq!(facts.settings["synchronous"], "normal");
    let pid = server.processes()[0];
    assert_eq!(dyno_host::listens_by_network(pid).unwrap(), Vec::<String>::new());
    server.check_alive().unwrap();
    server.stop().unwrap();
    assert!(!is_alive(pid));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was left");
}

#[test]
fn by_its_url_it_is_a_server_like_any_other() {
    let Some(programs) = programs() else { return };
    let folder = DataFolder::new();
    let server = start(&programs, &folder, &[("synchronous", "off")]).unwrap();
    let url = server.reach().unwrap().endpoint.to_string().replace("/dyno?", "/mine?");
    let bench = Workbench::new();
    let load = [&["bench", "documents", "--on", &url], &SMALL[..], &SHORT].concat();
    bench.dyno_good(&load);
    bench.dyno_good(&[&load[..], &["--keep-tables"]].concat());
    // Its own collection of an earlier run is replaced and removed.
    bench.dyno_good(&load);
    let mine = dyno_database::Endpoint::from_url(&url).unwrap();
    let mut connection = mine.protocol.connector(&mine)().unwrap();
    let sums = "sums collection=documents";
    assert_eq!(connection.query(sums).unwrap()[0][0].as_deref(), Some("0"));
    // Others' collections stay.
    let columns = dyno_model::names(&["_id"]);
    let mut n = 0;
    let mut next_row = |row: &mut dyno_workload::Row| {
        row.push_integer(n);
        n += 1;
        n <= 3
    };
    assert_eq!(connection.load_rows("documents", &columns, &mut next_row).unwrap(), 3);
    let answer = bench.dyno(&load);
    assert!(answer.code != 0 && answer.err.contains("(documents)"), "{}", answer.err);
    let answer = bench.dyno(&[&load[..], &["--allow-existing-tables"]].concat());
    assert!(answer.code != 0 && answer.err.contains("will not replace"), "{}", answer.err);
    assert_eq!(connection.query(sums).unwrap()[0][0].as_deref(), Some("3"));
    drop(connection);
    server.stop().unwrap();
}

#[test]
fn a_server_that_dies_loses_its_connections() {
    let Some(programs) = programs() else { return };
    let folder = DataFolder::new();
    let mut server = start(&programs, &folder, &[]).unwrap();
    let mut connection = server.connector()().unwrap();
    connection.query("ping").unwrap();
    let control = server.control().unwrap();
    control.act(Act::Kill).unwrap();
    assert!(server.down().is_some());
    let error = connection.query("ping").unwrap_err();
    assert!(error.class.loses_connection(), "{error}");
    control.act(Act::Start).unwrap();
    await_good(|| server.check_alive().map_err(|error| error.to_string()));
    let pid = server.processes()[0];
    server.stop().unwrap();
    assert!(!is_alive(pid));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was left");
}
