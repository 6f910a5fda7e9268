//! A private server by a recipe.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_host::{Keeper, ProcessSpec, free_loopback_ports, random_token};
use dyno_units::{Clock, Nanoseconds, SettingValue};
use dyno_workload::Connection;

use super::places::fill;
use super::text::{ListensOn, Recipe, STOP_SIGNALS, Text};
use crate::error::{Context, Result, fail};
use crate::private::{self, LOG_LINES, OwnServer, ServerFolder, ServerKind};
use crate::running::{Running, concealed};
use crate::settings::{GivenSettings, Settings};
use crate::{
    Address, DeployError, Endpoint, Installation, Launch, Secret, Server, ServerFacts, ServerSpec,
    sql_probe, version_fits,
};

/// The catalog of a private server, unless the recipe names another.
const CATALOG: &str = "dyno";

const INITIALISE_LIMIT: Nanoseconds = Nanoseconds::from_secs(300);

const INITIALISE_LOG: &str = "initialise.log";

/// Settings as the recipe writes them.
/// Fails if the recipe has no form for settings, or a name or value cannot be written safely.
pub(super) fn spelled(recipe: &Recipe, title: &str, settings: &GivenSettings) -> Result<Settings> {
    if let Some(name) = settings.keys().next().filter(|_| recipe.text.setting.is_none()) {
        return fail(format!(
            "the recipe of {title} does not say how a setting reaches the server (`setting`), so `{name}` \
             cannot be set"
        ));
    }
    let spelled = |(name, value): (&String, &SettingValue)| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if name.is_empty() || name.starts_with('-') || !name.bytes().all(is_plain) {
            return fail(format!("`{name}` cannot be the name of a setting of {title}"));
        }
        let form = recipe.text.setting.as_ref().and_then(|form| form.bytes.as_deref());
        let text = match value {
            SettingValue::Bytes(bytes) => {
                form.unwrap_or("{bytes}").replace("{bytes}", &bytes.0.to_string())
            }
            other => other.to_string(),
        };
        match text.contains(char::is_control) {
            true => fail(format!("the value of `{name}` has a control character")),
            false => Ok((name.clone(), text)),
        }
    };
    settings.iter().map(spelled).collect()
}

fn written(form: Option<&String>, given: &Settings, quote: fn(&str) -> String) -> Vec<String> {
    let Some(form) = form else { return Vec::new() };
    let one = |(name, value): (&String, &String)| {
        fill(form, &BTreeMap::from([("name", name.clone()), ("value", quote(value))]))
    };
    given.iter().map(one).collect()
}

/// A value in a statement: numbers as they are, everything else as a text.
fn literal(value: &str) -> String {
    match value.parse::<f64>().is_ok_and(f64::is_finite) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")),
    }
}

/// On another server's kept data, if any. Returns when it answers.
pub(super) fn start(
    recipe: &Recipe,
    title: &'static str,
    installation: Installation,
    launch: &Launch<'_>,
) -> Result<Box<dyn Server>> {
    let password = match recipe.text.listens_on {
        ListensOn::Port => {
            Some(random_token().context(format!("there is no password for {title}"))?)
        }
        ListensOn::Socket | ListensOn::PortWithoutPassword => None,
    };
    let password = password.map(Secret::new);
    start_with(recipe, title, (installation, password.clone()), launch)
        .map_err(|error| concealed(error, password.as_ref()))
}

fn start_with(
    recipe: &Recipe,
    title: &'static str,
    (installation, password): (Installation, Option<Secret>),
    launch: &Launch<'_>,
) -> Result<Box<dyn Server>> {
    let Launch { spec, data, place, clock } = *launch;
    let given = spelled(recipe, title, &spec.settings)?;
    let text = &recipe.text;
    let folder = ServerFolder::make(place, &spec.product)?;
    let n_ports = if text.listens_on == ListensOn::Socket { 0 } else { 1 + text.ports.len() };
    let ports =
        free_loopback_ports(n_ports).context(format!("there is no free port for {title}"))?;
    let port = ports.first().copied();
    let form = text.setting.clone().unwrap_or_default();
    let program = installation.programs.join(&text.program);
    let places = places(text, &program, &folder, &ports);
    let mut in_files = places.clone();
    in_files.insert("settings", written(form.line.as_ref(), &given, str::to_owned).join("\n"));
    in_files.extend(password.as_ref().map(|password| ("password", password.reveal().to_owned())));
    for (name, text) in &text.files {
        folder.write(name, &fill(text, &in_files))?;
    }
    let kind = ServerKind {
        stop_signal: STOP_SIGNALS.into_iter().find(|name| *name == text.stop).unwrap_or("TERM"),
        ports: private::ports(&ports),
        start_limit: recipe.start_limit,
        ..ServerKind::new(title)
    };
    folder.put_data(data, kind)?;
    let process = |program: PathBuf, arguments: &[String]| {
        let arguments = arguments.iter().map(|one| fill(one, &places)).collect();
        let mut process = folder.process(program, arguments);
        let own = text.environment.iter();
        process.environment.extend(own.map(|(name, value)| (name.clone(), fill(value, &places))));
        process
    };
    let to_run = if data.is_none() { &text.initialise[..] } else { &[] };
    for command in to_run {
        let Some((name, arguments)) = command.split_first() else { continue };
        let path = beside(&program, &fill(name, &places), folder.keeper())?;
        initialise(title, &folder, process(path, arguments), clock.as_ref())?;
    }
    let mut arguments = text.start.clone();
    arguments.extend(written(form.argument.as_ref(), &given, str::to_owned));
    let process = process(program.clone(), &arguments);
    let process = ProcessSpec { cpus: spec.cpus.clone(), limits: spec.limits, ..process };
    let address =
        port.map_or_else(|| Address::Unix(places["socket"].clone().into()), Address::of_loopback);
    let catalog = text.catalog.as_deref().unwrap_or(CATALOG);
    let endpoint =
        Endpoint { password, ..Endpoint::plain(recipe.protocol, address, &text.user, catalog) };
    // The catalog is there once it has been prepared.
    let first = match data {
        None => Endpoint { catalog: recipe.protocol.common_catalog.to_owned(), ..endpoint.clone() },
        Some(_) => endpoint.clone(),
    };
    let connector = recipe.protocol.connector(&first);
    let reach = || connector().map_err(|error| error.to_string());
    let (server, mut connection) = OwnServer::start(folder, &process, kind, clock, reach)?;
    let found = (&*program, &*installation.version);
    let prepared = prepare(recipe, found, &given, (spec, data.is_none()), &mut *connection);
    let prepared = prepared.map_err(|message| DeployError {
        message: format!("{title}: {message}"),
        log: server.folder.log_tail(LOG_LINES),
    });
    let running = Running::new(server.prepared(prepared)?, endpoint);
    Ok(Box::new(with_recipe(running, recipe.clone(), (title, installation, given))))
}

/// What the placeholders of a recipe stand for, but for those that only its files may have.
fn places<'t>(
    text: &'t Text,
    program: &Path,
    folder: &ServerFolder,
    ports: &[u16],
) -> BTreeMap<&'t str, String> {
    let mut places = BTreeMap::from([
        ("program", program.display().to_string()),
        ("folder", folder.path().display().to_string()),
        ("data", folder.data().display().to_string()),
        ("run", folder.run().display().to_string()),
        ("tmp", folder.tmp().display().to_string()),
    ]);
    let names = ["port"].into_iter().chain(text.ports.iter().map(String::as_str));
    places.extend(names.zip(ports.iter().map(u16::to_string)));
    places.insert("socket", fill(&text.socket, &places));
    places
}

/// Runs a program that makes the data of a new server.
fn initialise(
    title: &str,
    folder: &ServerFolder,
    process: ProcessSpec,
    clock: &dyn Clock,
) -> Result<()> {
    let log = folder.path().join(INITIALISE_LOG);
    let process = ProcessSpec { log: log.clone(), ..process };
    let made = folder.keeper().run(folder.path(), &process, clock, INITIALISE_LIMIT);
    made.map_err(|error| DeployError {
        message: format!("the data of {title} cannot be initialised: {error}"),
        log: dyno_host::last_lines(&log, LOG_LINES),
    })
}

/// A server of which the recipe says what its protocol does not.
fn with_recipe(
    running: Running,
    recipe: Recipe,
    (title, installation, given): (&'static str, Installation, Settings),
) -> Running {
    // What a password is kept in would be opened with another one.
    let can_keep_data = recipe.text.listens_on == ListensOn::Socket;
    let asked = (recipe.name.clone(), recipe.text.ask.clone());
    let probes = move |one: &Running| {
        let (name, asked) = &asked;
        let probe = |(item, sql): (&String, &String)| {
            let name = format!("{name}.{item}");
            sql_probe(Arc::clone(&one.connector), &name, sql, Nanoseconds::SECOND)
        };
        asked.iter().map(probe).collect::<Vec<_>>()
    };
    let facts = move |one: &Running| -> Result<ServerFacts> {
        let mut facts = recipe.protocol.facts(&one.endpoint)?;
        for (name, value) in &given {
            facts.settings.entry(name.clone()).or_insert_with(|| value.clone());
        }
        if let Some(durability) = recipe.durability(&facts.settings) {
            facts.durability = durability;
        }
        Ok(ServerFacts {
            product: title.to_owned(),
            version: installation.version.clone(),
            build: Some(installation.facts(None)),
            ..facts
        })
    };
    Running { facts: Box::new(facts), probes: Box::new(probes), can_keep_data, ..running }
}

/// A program that a recipe names: in the folder of the server's program, or else where programs are.
fn beside(server: &Path, name: &str, keeper: &Keeper) -> Result<PathBuf> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let folder: Vec<PathBuf> = server.parent().map(Path::to_owned).into_iter().collect();
    keeper.find_program(name, &folder).ok_or_else(|| {
        DeployError::new(format!(
            "the program `{name}`, which initialises the data, is neither beside {} nor in PATH",
            server.display()
        ))
    })
}

/// Checks the version, and sends the statements that make a new server ready and those that set settings.
fn prepare(
    recipe: &Recipe,
    (program, version): (&Path, &str),
    given: &Settings,
    (spec, is_new): (&ServerSpec, bool),
    connection: &mut dyn Connection,
) -> Result<(), String> {
    if let Some(wanted) = &spec.version
        && !version_fits(version, wanted)
    {
        return Err(format!("{} is version {version}, not {wanted}", program.display()));
    }
    connection.set_cold_limit(INITIALISE_LIMIT.0);
    let form = recipe.text.setting.as_ref().and_then(|form| form.statement.as_ref());
    let own = recipe.text.prepare.iter().filter(|_| is_new).cloned();
    let default = format!("CREATE DATABASE {CATALOG}");
    let makes_catalog = is_new && recipe.text.catalog.is_none() && recipe.text.prepare.is_empty();
    let all = makes_catalog.then_some(default).into_iter().chain(own);
    for statement in all.chain(written(form, given, literal)) {
        connection.query(&statement).map_err(|error| format!("{statement}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_as_the_recipe_says() {
        let text = "title = \"X\"\nprotocol = \"mysql\"\nprogram = \"xd\"\nstart = []\n";
        let none = Recipe::parse("x", text).unwrap();
        let settings = |name: &str, value: &str| {
            BTreeMap::from([(name.to_owned(), SettingValue::Text(value.to_owned()))])
        };
        let error = spelled(&none, "X", &settings("a", "1")).unwrap_err().message;
        assert!(error.contains("does not say how a setting reaches the server"), "{error}");
        let with = format!("{text}setting = {{ argument = \"--{{name}}={{value}}\" }}\n");
        let recipe = Recipe::parse("x", &with).unwrap();
        let given = spelled(&recipe, "X", &settings("a-b", "{c} d")).unwrap();
        let form = "--{name}={value}".to_owned();
        assert_eq!(written(Some(&form), &given, str::to_owned), ["--a-b={c} d"]);
        let statement = "SET {name} = {value}".to_owned();
        assert_eq!(written(Some(&statement), &given, literal), ["SET a-b = '{c} d'"]);
        assert_eq!(literal("1.5"), "1.5");
        assert_eq!(literal("it's \\"), "'it''s \\\\'");
        for name in ["", "--x", "a b", "a;b", "a'"] {
            assert!(spelled(&recipe, "X", &settings(name, "1")).is_err(), "{name}");
        }
        assert!(spelled(&recipe, "X", &settings("a", "1\n2")).is_err());
    }
}
