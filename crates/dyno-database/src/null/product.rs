//! A null server for each protocol, as products.

use std::path::PathBuf;
use std::sync::Arc;

use dyno_host::Keeper;
use dyno_units::{Nanoseconds, SettingValue, parse_duration};
use dyno_workload::Connector;

use super::{Listen, NullServer, Script, Wire};
use crate::error::{Result, fail};
use crate::product::Family;
use crate::settings::{GivenSettings, Settings};
use crate::{
    DeployError, Durability, Endpoint, Launch, Product, ProductSpec, Server, ServerFacts,
    ServerSpec,
};

pub(crate) const FAMILY: Family = Family::of(|| Wire::ALL.map(product).into());

const SETTINGS: &str = "delay (of each answer, 0), stall (its length, 0) and stall_at (since the \
                        load began, 0), all durations";

fn product(wire: Wire) -> Product {
    let name = format!("null-{}", wire.name());
    let title = format!("Null ({} protocol)", wire.title());
    let summary = format!(
        "answers the {} protocol immediately, stores nothing: measures the load generator itself \
         (settings: delay, stall_at, stall)",
        wire.title()
    );
    let spec = ProductSpec::new(&name, &title, &summary, Some(wire.dialect()));
    let spec = ProductSpec { is_embedded: true, has_socket: true, stores_data: false, ..spec };
    let start = move |launch: &Launch<'_>| start(wire, &title, launch);
    Product { client: |_, _| None, ..Product::new(spec, start) }
}

fn start(wire: Wire, title: &str, launch: &Launch<'_>) -> Result<Box<dyn Server>> {
    let Launch { spec, place, clock, .. } = *launch;
    check_spec(spec)?;
    let script = Script { cpus: spec.cpus.clone(), ..script(&spec.settings)? };
    let keeper = Arc::clone(place.keeper());
    let folder = keeper.make_folder(&spec.product)?;
    let listen = Listen::Folder(folder.clone());
    match NullServer::start(wire, &listen, script, Arc::clone(clock)) {
        Ok(server) => {
            let settings = spec.settings.iter();
            let settings = settings.map(|(name, value)| (name.clone(), value.to_string()));
            let (settings, title) = (settings.collect(), title.to_owned());
            Ok(Box::new(NullProduct { server, settings, title, folder, keeper }))
        }
        Err(error) => {
            // The first error is the one to report; a folder that stays is found as a leftover.
            let _ = keeper.remove_folder(&folder);
            fail(format!("cannot start a null server in {}: {error}", folder.display()))
        }
    }
}

fn check_spec(spec: &ServerSpec) -> Result<()> {
    let given = [
        ("version", spec.version.is_some()),
        ("engine", spec.engine.is_some()),
        ("programs", spec.programs.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => {
            fail(format!("a null server is part of Dyno and stores nothing; leave `{name}` out"))
        }
    }
}

fn script(settings: &GivenSettings) -> Result<Script> {
    let (mut delay, mut stall_at, mut stall) = Default::default();
    for (name, value) in settings {
        let place = match name.as_str() {
            "delay" => &mut delay,
            "stall_at" => &mut stall_at,
            "stall" => &mut stall,
            _ => return fail(format!("a null server has no setting `{name}`; it has {SETTINGS}")),
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
    title: String,
    settings: Settings,
    folder: PathBuf,
    keeper: Arc<Keeper>,
}

impl Server for NullProduct {
    fn connector(&self) -> Connector {
        self.server.connector()
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(self.server.endpoint())
    }

    fn facts(&self) -> Result<ServerFacts> {
        Ok(ServerFacts {
            product: self.title.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            transport: "unix",
            tls: false,
            settings: self.settings.clone(),
            durability: Durability { words: "nothing is stored".to_owned(), safety: None },
            ..ServerFacts::default()
        })
    }

    fn down(&mut self) -> Option<String> {
        self.server.down()
    }

    fn stores_data(&self) -> bool {
        false
    }

    fn stop(self: Box<Self>) -> Result<()> {
        let NullProduct { server, folder, keeper, .. } = *self;
        drop(server);
        Ok(keeper.remove_folder(&folder)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, value: SettingValue, expected: Result<Script, &str>) {
        let result = script(&GivenSettings::from([(name.to_owned(), value)]));
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
