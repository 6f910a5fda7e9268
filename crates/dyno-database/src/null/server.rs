//! Null servers as products, so that studies and `dyno bench` can name them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use dyno_host::Keeper;
use dyno_units::{Clock, Nanoseconds, SettingValue, parse_duration};
use dyno_workload::{Connector, Dialect};

use super::{NullServer, Place, Script};
use crate::{DeployError, ProductSpec, Protocol, Server, ServerFacts, ServerSpec};

/// The products' entries in the catalog.
pub(crate) const SPECS: [ProductSpec; 2] = [
    ProductSpec {
        name: "null-mysql",
        summary: "answers the MySQL protocol at once, stores nothing: measures the load generator \
                  itself (settings: delay, stall_at, stall)",
        engines: &[],
        is_embedded: true,
    },
    ProductSpec {
        name: "null-postgresql",
        summary: "answers the PostgreSQL protocol at once, stores nothing: measures the load \
                  generator itself (settings: delay, stall_at, stall)",
        engines: &[],
        is_embedded: true,
    },
];

/// The settings a null server takes.
const SETTINGS: &str = "delay (of each answer, 0), stall (its length, 0) and stall_at (since the \
                        load began, 0), all durations";

/// Starts one of the products.
pub(crate) fn start(
    spec: &ServerSpec,
    keeper: &Arc<Keeper>,
    clock: &Arc<dyn Clock>,
) -> Result<Box<dyn Server>, DeployError> {
    let protocol =
        if spec.product == SPECS[0].name { Protocol::MySql } else { Protocol::PostgreSql };
    check_spec(spec)?;
    let script = Script { cpus: spec.cpus.clone(), ..script(&spec.settings)? };
    let folder = keeper.make_folder(&spec.product).map_err(|error| DeployError::new(error.0))?;
    let place = Place::Folder(folder.clone());
    match NullServer::start(protocol, &place, script, Arc::clone(clock)) {
        Ok(server) => Ok(Box::new(NullProduct {
            server,
            settings: spec
                .settings
                .iter()
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect(),
            folder,
            keeper: Arc::clone(keeper),
        })),
        Err(error) => {
            // The first error is the one to tell; a folder that stays is found as a leftover.
            let _ = keeper.remove_folder(&folder);
            Err(DeployError::new(format!(
                "cannot start a null server in {}: {error}",
                folder.display()
            )))
        }
    }
}

/// Refuses what cannot be had from a server in the process.
fn check_spec(spec: &ServerSpec) -> Result<(), DeployError> {
    let given = [
        ("version", spec.version.is_some()),
        ("engine", spec.engine.is_some()),
        ("programs", spec.programs.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => Err(DeployError::new(format!(
            "a null server is a part of Dyno and stores nothing; leave `{name}` out"
        ))),
    }
}

fn script(settings: &BTreeMap<String, SettingValue>) -> Result<Script, DeployError> {
    let (mut delay, mut stall_at, mut stall) = Default::default();
    for (name, value) in settings {
        let place = match name.as_str() {
            "delay" => &mut delay,
            "stall_at" => &mut stall_at,
            "stall" => &mut stall,
            _ => {
                return Err(DeployError::new(format!(
                    "a null server has no setting `{name}`; it has {SETTINGS}"
                )));
            }
        };
        *place = match value {
            SettingValue::Text(text) => parse_duration(text).ok(),
            SettingValue::Integer(0) => Some(Nanoseconds::ZERO),
            _ => None,
        }
        .ok_or_else(|| {
            DeployError::new(format!(
                "a null server: {name} = `{value}` is not a duration such as \"1ms\""
            ))
        })?;
    }
    let stalls = if stall > Nanoseconds::ZERO { vec![(stall_at, stall)] } else { Vec::new() };
    Ok(Script { delay, stalls, ..Script::default() })
}

struct NullProduct {
    server: NullServer,
    settings: BTreeMap<String, String>,
    folder: PathBuf,
    keeper: Arc<Keeper>,
}

impl Server for NullProduct {
    fn dialect(&self) -> Dialect {
        match self.server.endpoint().protocol {
            Protocol::MySql => Dialect::MySql,
            Protocol::PostgreSql => Dialect::PostgreSql,
        }
    }

    fn connector(&self) -> Connector {
        self.server.connector()
    }

    fn facts(&self) -> Result<ServerFacts, DeployError> {
        let protocol = match self.server.endpoint().protocol {
            Protocol::MySql => "MySQL",
            Protocol::PostgreSql => "PostgreSQL",
        };
        Ok(ServerFacts {
            product: format!("Null ({protocol} protocol)"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            transport: "unix",
            tls: false,
            settings: self.settings.clone(),
            durability: "unknown".to_owned(),
        })
    }

    fn processes(&self) -> Vec<i32> {
        Vec::new()
    }

    fn down(&mut self) -> Option<String> {
        self.server.down()
    }

    fn log_tail(&self, _lines: usize) -> Vec<String> {
        Vec::new()
    }

    fn data_bytes(&self) -> Option<u64> {
        None
    }

    fn stores_data(&self) -> bool {
        false
    }

    fn stop(self: Box<Self>) -> Result<(), DeployError> {
        let NullProduct { server, folder, keeper, .. } = *self;
        drop(server);
        keeper.remove_folder(&folder).map_err(|error| DeployError::new(error.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, value: SettingValue, expected: Result<Script, &str>) {
        let result = script(&BTreeMap::from([(name.to_owned(), value)]));
        match (result, expected) {
            (Ok(script), Ok(expected)) => assert_eq!(script, expected),
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{}", error.message),
            (result, expected) => panic!("{result:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn settings_are_taken_or_refused_by_name() {
        let text = |text: &str| SettingValue::Text(text.to_owned());
        let delay = Nanoseconds::from_millis(2);
        check("delay", text("2ms"), Ok(Script { delay, ..Script::default() }));
        let stalls = vec![(Nanoseconds::ZERO, Nanoseconds::SECOND)];
        check("stall", text("1s"), Ok(Script { stalls, ..Script::default() }));
        check("stall_at", text("1s"), Ok(Script::default()));
        check("delay", SettingValue::Integer(2), Err("is not a duration"));
        check("speed", text("2ms"), Err("no setting `speed`"));
    }
}
