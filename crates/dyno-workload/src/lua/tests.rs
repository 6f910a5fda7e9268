//! Scripts planned and run on a connection that answers at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_model::StepRequest;
use dyno_sysbench::{Host, Level, Module, Unique, built_in_module};
use dyno_units::Seed;

use super::*;
use crate::fake::Fake;
use crate::{ErrorClass, MadeWorkload, SqlState, StatementError};

#[derive(Default)]
struct Quiet {
    printed: Mutex<String>,
}

impl Host for Quiet {
    fn print(&self, text: &str) {
        self.printed.lock().unwrap().push_str(text);
    }

    fn print_error(&self, _: &str) {}

    fn log(&self, _: Level, _: &str) {}

    fn module(&self, name: &str, _: &str) -> Result<Module, String> {
        let text = built_in_module(name).ok_or("nowhere")?;
        Ok(Module { path: name.to_owned(), text: text.to_owned() })
    }

    fn file(&self, _: &str) -> Result<Module, String> {
        Err("there are no files".to_owned())
    }

    fn may_open(&self, _: &std::path::Path) -> std::io::Result<()> {
        Err(std::io::Error::other("there are no files"))
    }

    fn package_path(&self) -> String {
        String::new()
    }

    fn sleep(&self, _: f64) {}

    fn execute(&self, _: Option<&str>) -> i32 {
        -1
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

#[test]
fn a_script_that_is_loaded_has_one_limit_for_all_its_statements() {
    let check = |turns: u64, expected: Result<usize, &str>| {
        let text = "local c = sysbench.sql.driver():connect()
            for i = 1, 50 do c:query('x') for j = 1, 20000 do end end function event() end";
        let found = study::declared_within(("x.lua", text), Arc::new(Quiet::default()), turns);
        assert_eq!(found.map(|options| options.len()), expected.map_err(str::to_owned));
    };
    check(10_000_000, Ok(0));
    check(100_000, Err("it runs for too long while it is being loaded"));
}

fn planned(given: &[(&str, &str)]) -> Result<Arc<dyn Workload>, String> {
    let text = "sysbench.cmdline.options = { n = {'a number', 3}, on = {'a switch', false} } \
        function event() end";
    let options = declared("mine.lua", text, Arc::new(Quiet::default())).unwrap();
    let file = ScriptFile {
        path: "mine.lua".to_owned(),
        text: text.to_owned(),
        digest: "abc".to_owned(),
        options,
        host: Arc::new(Quiet::default()),
    };
    let spec = spec(BTreeMap::from([("mine.lua".to_owned(), file)]), Arc::new(Quiet::default()));
    let given: BTreeMap<String, String> =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    spec.plan(&given, StepRequest::LEAST, Seed(1)).map_err(|error| error.to_string())
}

#[test]
fn options_of_a_script_are_options_of_the_workload() {
    let workload = planned(&[("script", "mine.lua"), ("n", "5"), ("sbtest", "off")]).unwrap();
    let options: BTreeMap<String, String> = workload.options().into_iter().collect();
    assert_eq!(options["n"], "5");
    assert_eq!(options["on"], "off");
    assert_eq!(options["script_sha256"], "abc");
    assert!(workload.outline().makes_nothing && workload.tables(Dialect::MySql).is_empty());
    assert_eq!(workload.kinds(), ["mine"]);
    assert!(workload.check(Dialect::Sqlite).is_err());
    let refused = planned(&[("script", "mine.lua"), ("n", "many")]).err().unwrap();
    assert!(refused.contains("`n`"), "{refused}");
}

#[test]
fn built_in_scripts_have_the_tables_of_sysbench() {
    let workload = planned(&[("tables", "3"), ("table_size", "100")]).unwrap();
    let tables = workload.tables(Dialect::MySql);
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["sbtest1", "sbtest2", "sbtest3"]);
    assert!(tables.iter().all(|table| table.rows == 100));
}

/// What one client of a script came to: what it printed and counted.
struct Client {
    printed: String,
    counted: Snapshot,
}

/// Runs a client against a connection that makes its statements fail in this order; none for one that succeeds.
fn client(text: &str, ignored: &[&str], errors: &[Option<StatementError>]) -> Client {
    let (host, statistics) = (Arc::new(Quiet::default()), Arc::new(Statistics::default()));
    let settings = Settings {
        name: NAME.into(),
        kind: "mine".into(),
        program: Program {
            unique: Arc::new(Unique::new(1, 2)),
            is_trusted: true,
            ..Program::new("mine.lua", text, Arc::clone(&host) as _)
        },
        options: Vec::new(),
        globals: Vec::new(),
        seed: Some(1),
        prepares: true,
        ignored: Ignored::Codes(ignored.iter().map(ToString::to_string).collect()),
        events: None,
        rate: None,
        limit: None,
        is_paced: false,
        continues: false,
        tables: None,
        is_without_server: false,
        connector: None,
        recorded: Vec::new(),
        statistics: Arc::clone(&statistics),
    };
    let workload = MadeWorkload::new(Arc::new(LuaWorkload::new(settings, StepRequest::LEAST)));
    let mut fake = Fake::new(Dialect::MySql).answering(Box::new(|sql, _, rows| {
        if sql == "ROWS" {
            rows.clear(1);
            rows.push_text(b"5");
            rows.push_text(b"6");
        }
    }));
    for error in errors {
        match error {
            Some(error) => fake.fail_next(error.clone()),
            None => fake.succeed_next(),
        }
    }
    fake.run(&workload, 4);
    let printed = std::mem::take(&mut *host.printed.lock().unwrap());
    Client { printed, counted: statistics.snapshot() }
}

fn refused(code: &str, state: &str) -> Option<StatementError> {
    let error = StatementError::new(ErrorClass::Refused, code, "why");
    Some(StatementError { state: SqlState::new(state.as_bytes()), ..error })
}

const CONNECTS: &str = "function thread_init() con = sysbench.sql.driver():connect() end\n";

#[test]
fn errors_are_counted_whoever_ignores_them() {
    let query = "function event() con:query('SELECT 1') end";
    let hook = "function sysbench.hooks.sql_error_ignorable(e) return true end";
    let caught = "function event() pcall(con.query, con, 'SELECT 1') end";
    let bulk = "function event() con:bulk_insert_init('INSERT') con:bulk_insert_next('(1)') \
        pcall(con.bulk_insert_done, con) end";
    let check = |body: &str, ignored: &[&str], expected: (u64, u64, u64)| {
        let errors = [refused("1146", "42S02"), None, refused("1213", "40001")];
        let counted = client(&format!("{CONNECTS}{body}"), ignored, &errors).counted;
        assert_eq!((counted.errors, counted.events, counted.others), expected, "{body}");
    };
    check(&format!("{query} {hook}"), &[], (2, 4, 4));
    check(query, &["1146", "1213"], (2, 4, 4));
    check(caught, &[], (2, 4, 2));
    check(caught, &["1146"], (2, 4, 2));
    check(bulk, &[], (2, 4, 2));
    // The second one ends the client.
    check(query, &["1146"], (2, 1, 1));
}

#[test]
fn connections_that_replace_others_are_reconnects_and_those_that_are_opened_are_not() {
    let check = |body: &str, errors: &[Option<StatementError>], expected: (u64, u64, u64)| {
        let counted = client(body, &["2013"], errors).counted;
        assert_eq!((counted.reconnects, counted.errors, counted.events), expected, "{body}");
    };
    let each = "function thread_init() drv = sysbench.sql.driver() end
        function event() local c = drv:connect() c:query('SELECT 1') c:disconnect() end";
    check(each, &[], (0, 0, 4));
    let again = format!("{CONNECTS}function event() con:query('SELECT 1') con:reconnect() end");
    check(&again, &[], (4, 0, 4));
    let lost = Some(StatementError::new(ErrorClass::Disconnected, "disconnected", "why"));
    let query = format!("{CONNECTS}function event() con:query('SELECT 1') end");
    check(&query, &[None, lost], (1, 0, 4));
}

#[test]
fn scripts_find_the_state_that_the_server_has_sent() {
    let body = "n = 0 function event() n = n + 1 con:query('SELECT 1') end
        function sysbench.hooks.sql_error_ignorable(e) print(e.sql_errno, e.sql_state) return true end";
    let errors = [
        refused("1048", "23000"),
        refused("1644", "45000"),
        refused("4091", "42S02"),
        // Of the client library, or of a server that sent none.
        refused("2030", ""),
        Some(StatementError::new(ErrorClass::Disconnected, "disconnected", "why")),
        Some(StatementError::new(ErrorClass::Disconnected, "2006", "why")),
        refused("1927", "70100")
            .map(|error| StatementError { class: ErrorClass::Disconnected, ..error }),
    ];
    let printed = client(&format!("{CONNECTS}{body}"), &[], &errors).printed;
    let expected = "1048\t23000\n1644\t45000\n4091\t42S02\n2030\tHY000\n2013\tHY000\n\
        2006\tHY000\n1927\t70100\n";
    assert_eq!(printed, expected);
}

#[test]
fn results_have_the_rows_that_scripts_can_read() {
    let body = "function event() local rs = con:query('ROWS') print(rs.nrows, rs.nfields, rs:fetch_row()[1])
        rs.nrows = 1e18 rs.next_row = 1e17 print(#rs:fetch_row()) return true end";
    // The reply has counted none: what the script reads counts, which is the first of several results.
    assert_eq!(client(&format!("{CONNECTS}{body}"), &[], &[]).printed, "2\t1\t5\n0\n");
    let body = "function event() con.id = 77 print(pcall(con.prepare, con, 'x')) return true end";
    assert!(client(&format!("{CONNECTS}{body}"), &[], &[]).printed.starts_with("false"));
}

/// `dyno check` of a study loads its scripts.
#[test]
fn loading_a_script_ends() {
    let check = |text: &str, expected: &str| {
        let error = declared("x.lua", text, Arc::new(Quiet::default())).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    let asks = "again and again while it is being loaded";
    check("while true do ffi.C.usleep(0) end", asks);
    check("while true do pcall(db_query, 'SELECT 1') end", asks);
    let options = "sysbench.cmdline.options = {} function event() end
        for i = 1, 1001 do sysbench.cmdline.options['o' .. i] = { 'x', 1 } end";
    check(options, "it declares more than 1000 options");
}

#[test]
fn a_script_without_events_is_refused() {
    let error = declared("x.lua", "x = 1", Arc::new(Quiet::default())).unwrap_err();
    assert_eq!(error, "cannot find the event() function in x.lua");
    assert!(declared("x.lua", "function", Arc::new(Quiet::default())).is_err());
}

#[test]
fn counts_are_summed_over_clients() {
    let statistics = Statistics::default();
    let clients = [statistics.client(), statistics.client()];
    for (idx, client) in clients.iter().enumerate() {
        client.began(Nanoseconds(1000 * (idx as u64 + 1)));
        client.event_began();
        client.event_ended(Nanoseconds(5000), Nanoseconds(2_000_000 * (idx as u64 + 1)));
    }
    let before = statistics.snapshot();
    assert_eq!((before.events, before.running, before.in_event), (2, 2, 0));
    assert_eq!((before.min, before.max), (Some(Nanoseconds(2_000_000)), Nanoseconds(4_000_000)));
    assert_eq!(statistics.span(), Some((Nanoseconds(1000), Nanoseconds(5000))));
    clients[0].event_ended(Nanoseconds(9000), Nanoseconds(8_000_000));
    clients[1].ended(Nanoseconds(9500));
    let since = statistics.snapshot().since(&before);
    assert_eq!((since.events, since.running), (1, 1));
    assert!((since.latencies.percentile(95.0) - 8.0).abs() < 0.1);
    assert_eq!(since.clients, [(1, Nanoseconds(8_000_000)), (0, Nanoseconds::ZERO)]);
}
