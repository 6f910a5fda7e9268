//! The simulated product: a queue with known behaviour in simulated time, for tests of Dyno's
//! measurements, and to show stalls or overload in a report. Only the server is simulated: plan,
//! schedule, clients, histograms, record, analysis and report are real.
//!
//! By default it has no rows, and nothing is populated or audited. With `store = "sqlite"`,
//! statements run in an SQLite database of the trial, which is populated, kept and audited like a
//! private server's: rows are true, times simulated. That tests audits, and workloads that decide
//! by what they read, alike on every machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_database::{DeployError, Product, ProductSpec, ServerSpec};
use dyno_load::simulation::{Noise, ServiceTime, SimulatedServer, Store, run_simulated_step};
use dyno_load::{LoadError, StepEvent, StepSpec, StepTotals};
use dyno_record::{ProductFacts, ServerFacts};
use dyno_units::{ManualClock, Nanoseconds, SettingValue, parse_duration};
use dyno_workload::{Connector, ErrorClass, MadeWorkload};

use crate::error::{Result, TrialError, fail};

pub(crate) fn product() -> Product {
    let summary =
        "a simulated queueing server in simulated time: tests Dyno itself, measures nothing";
    let spec = ProductSpec {
        is_embedded: true,
        is_simulated: true,
        stores_data: false,
        ..ProductSpec::new("simulated", "Simulated", summary, None)
    };
    let why = "a simulated server has no connections: only a study can use it";
    Product::new(spec, move |_| Err(DeployError::new(why)))
}

const SETTINGS: &str = "service_time (mean of a statement, 1ms), distribution (exponential or \
                        constant), servers (parallel, 1), stall_at and stall (durations), noise \
                        (relative deviation, 0), correlation (of noise from one second to the \
                        next, 0.5), drift (growth in an hour, 0), deadlocks (share of statements, \
                        0), store (none, or sqlite: statements are done in an SQLite database)";

/// The SQLite database of a simulated server. Readers do not wait for a writer; nothing is synced,
/// as its time is not measured; and no lock is waited for in real time, while simulated time stands
/// still.
const STORE_SETTINGS: [(&str, &str); 3] =
    [("journal_mode", "wal"), ("synchronous", "off"), ("busy_timeout", "0")];

pub(crate) fn run_load(
    server: &SimulatedServer,
    spec: &StepSpec,
    (workload, rows): (&MadeWorkload, Option<&Connector>),
    observe: &mut dyn FnMut(StepEvent<'_>),
) -> Result<StepTotals, LoadError> {
    let clock = Arc::new(ManualClock::new());
    let server = match rows {
        Some(connector) => server.clone().with_store(Store::new(Arc::clone(connector))),
        None => server.clone(),
    };
    let server = server.with_seed(spec.seed.derive("server", 0));
    run_simulated_step(spec, workload, &server, &clock, observe)
}

/// With the database for its rows, if any. Unknown settings are refused, as a real server would.
pub(crate) fn server(
    settings: &BTreeMap<String, SettingValue>,
) -> Result<(SimulatedServer, Option<ServerSpec>)> {
    let mut mean = Nanoseconds::from_millis(1);
    let mut is_constant = false;
    let mut stall_at = Nanoseconds::ZERO;
    let mut stall = Nanoseconds::ZERO;
    let mut noise = Noise { deviation: 0.0, correlation: 0.5 };
    let mut has_store = false;
    let mut server = SimulatedServer::new(1, ServiceTime::Exponential(mean));
    for (name, value) in settings {
        match name.as_str() {
            "service_time" => mean = duration(name, value)?,
            "distribution" => is_constant = word(name, value, ["exponential", "constant"])? == 1,
            "servers" => server.servers = (number(name, value)? as usize).max(1),
            "stall_at" => stall_at = duration(name, value)?,
            "stall" => stall = duration(name, value)?,
            "noise" => noise.deviation = number(name, value)?,
            "correlation" => noise.correlation = number(name, value)?.min(0.999),
            "drift" => server.drift = number(name, value)?,
            "deadlocks" => {
                server = server.with_errors(ErrorClass::Deadlock, number(name, value)?.min(1.0));
            }
            "store" => has_store = word(name, value, ["none", "sqlite"])? == 1,
            _ => {
                return fail(format!(
                    "the simulated server has no setting `{name}`; it has {SETTINGS}"
                ));
            }
        }
    }
    server.service =
        if is_constant { ServiceTime::Constant(mean) } else { ServiceTime::Exponential(mean) };
    if stall > Nanoseconds::ZERO {
        server = server.with_stall(stall_at, stall);
    }
    let server = if noise.deviation > 0.0 { server.with_noise(noise) } else { server };
    Ok((server, has_store.then(store_spec)))
}

fn store_spec() -> ServerSpec {
    let setting =
        |(name, value): (&str, &str)| (name.to_owned(), SettingValue::Text(value.to_owned()));
    ServerSpec { settings: STORE_SETTINGS.map(setting).into(), ..ServerSpec::new("sqlite") }
}

fn refused(name: &str, value: &SettingValue, wanted: &str) -> TrialError {
    TrialError::new(format!("the simulated server: {name} = `{value}` is not {wanted}"))
}

fn duration(name: &str, value: &SettingValue) -> Result<Nanoseconds> {
    if let SettingValue::Text(text) = value { parse_duration(text).ok() } else { None }
        .ok_or_else(|| refused(name, value, "a duration such as \"1ms\""))
}

fn number(name: &str, value: &SettingValue) -> Result<f64> {
    match value {
        SettingValue::Integer(number) => Some(*number as f64),
        SettingValue::Real(number) => Some(*number),
        SettingValue::Text(text) => text.parse().ok(),
        _ => None,
    }
    .filter(|number| *number >= 0.0 && number.is_finite())
    .ok_or_else(|| refused(name, value, "a number of at least 0"))
}

fn word(name: &str, value: &SettingValue, words: [&str; 2]) -> Result<usize> {
    let text = value.to_string();
    let found = words.iter().position(|word| *word == text);
    found.ok_or_else(|| refused(name, value, &format!("one of {}", words.join(", "))))
}

pub(crate) fn facts() -> ServerFacts {
    ServerFacts {
        product: "Simulated".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        transport: "simulated".to_owned(),
        tls: false,
        settings: BTreeMap::new(),
        machine: BTreeMap::new(),
        durability: "simulated".to_owned(),
        of_product: Some(ProductFacts { simulated: true, ..ProductFacts::default() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, value: SettingValue, expected: Result<(), &str>) {
        let result = server(&BTreeMap::from([(name.to_owned(), value)])).map(|made| made.0);
        match (result, expected) {
            (Ok(_), Ok(())) => {}
            (Err(TrialError::Failed { message, .. }), Err(part)) => {
                assert!(message.contains(part), "{message}");
            }
            (result, expected) => panic!("{result:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn settings_are_taken_or_refused_by_name() {
        check("service_time", SettingValue::Text("2ms".into()), Ok(()));
        check("service_time", SettingValue::Integer(2), Err("a duration"));
        check("servers", SettingValue::Integer(4), Ok(()));
        check("noise", SettingValue::Text("much".into()), Err("a number"));
        check("distribution", SettingValue::Text("normal".into()), Err("exponential, constant"));
        check("speed", SettingValue::Integer(1), Err("no setting `speed`"));
        check("store", SettingValue::Text("sqlite".into()), Ok(()));
        check("store", SettingValue::Text("mariadb".into()), Err("none, sqlite"));
    }

    #[test]
    fn it_has_rows_where_it_is_told_to() {
        let check = |word: &str, expected: bool| {
            let setting = ("store".to_owned(), SettingValue::Text(word.to_owned()));
            let Ok((_, store)) = server(&BTreeMap::from([setting])) else {
                panic!("{word} is taken")
            };
            assert_eq!(store.is_some(), expected, "{word}");
        };
        check("sqlite", true);
        check("none", false);
    }
}
