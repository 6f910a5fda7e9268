//! Scripts as workloads, planned and run against a connection that answers at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_model::StepRequest;
use dyno_sysbench::{Host, Level, Module, built_in_module};
use dyno_units::Seed;

use super::*;

struct Quiet;

impl Host for Quiet {
    fn print(&self, _: &str) {}

    fn print_error(&self, _: &str) {}

    fn log(&self, _: Level, _: &str) {}

    fn module(&self, name: &str, _: &str) -> Result<Module, String> {
        let text = built_in_module(name).ok_or("nowhere")?;
        Ok(Module { path: name.to_owned(), text: text.to_owned() })
    }

    fn file(&self, _: &str) -> Result<Module, String> {
        Err("there are no files".to_owned())
    }

    fn package_path(&self) -> String {
        String::new()
    }

    fn sleep(&self, _: f64) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

fn planned(given: &[(&str, &str)]) -> Result<Arc<dyn Workload>, String> {
    let text = "sysbench.cmdline.options = { n = {'a number', 3}, on = {'a switch', false} } \
        function event() end";
    let options = declared("mine.lua", text, Arc::new(Quiet)).unwrap();
    let file = ScriptFile {
        path: "mine.lua".to_owned(),
        text: text.to_owned(),
        digest: "abc".to_owned(),
        options,
    };
    let spec = spec(BTreeMap::from([("mine.lua".to_owned(), file)]), Arc::new(Quiet));
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
    assert!(workload.makes_nothing() && workload.tables(Dialect::MySql).is_empty());
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

#[test]
fn a_script_without_events_is_refused() {
    let error = declared("x.lua", "x = 1", Arc::new(Quiet)).unwrap_err();
    assert_eq!(error, "cannot find the event() function in x.lua");
    assert!(declared("x.lua", "function", Arc::new(Quiet)).is_err());
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
