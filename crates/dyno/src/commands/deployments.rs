//! `dyno ls`, `connect`, `logs` and `down`: deployments made by `dyno up`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow, bail};
use dyno_database::{Address, ClientSecret, Endpoint};
use dyno_host::{Keeper, ListedDeployment, Register, RegisteredMember};
use dyno_units::{ByteCount, utc_date_time};

use super::{each, table};
use crate::clock::SystemClock;
use crate::{End, lab, terminal};

pub(crate) fn ls(json: bool) -> anyhow::Result<End> {
    let listed = Register::open(&lab::register()?)?.list()?;
    if json {
        let all: Vec<serde_json::Value> = listed.iter().map(as_json).collect();
        terminal::out(&(serde_json::to_string_pretty(&all)? + "\n"));
        return Ok(End::Good);
    }
    terminal::out(&match listed.is_empty() {
        true => "no servers; `dyno up PRODUCT@VERSION` starts one\n".to_owned(),
        false => rows(&listed),
    });
    Ok(End::Good)
}

fn as_json(one: &ListedDeployment) -> serde_json::Value {
    let registered = &one.registered;
    let member = |member: &RegisteredMember| {
        serde_json::json!({
            "name": member.name, "role": member.role, "product": member.product,
            "version": member.version, "url": member.url, "pid": member.pid,
            "data": member.data, "log": member.log, "programs": member.programs,
            "memory_bytes": dyno_host::memory_of(member.pid),
        })
    };
    serde_json::json!({
        "format": super::JSON_FORMAT,
        "name": registered.name,
        "since_unix_ms": registered.since_unix_ms,
        "state": state(one),
        "members": registered.members.iter().map(member).collect::<Vec<_>>(),
    })
}

/// `up`, or the fault and its remedy.
fn state(one: &ListedDeployment) -> String {
    let name = &one.registered.name;
    match (&one.registered.failure, one.is_held) {
        (Some(failure), true) => failure.clone(),
        (_, false) => format!("left over; `dyno down {name}` removes it"),
        (None, true) if one.registered.members.is_empty() => "starting".to_owned(),
        (None, true) => "up".to_owned(),
    }
}

const HEADINGS: [&str; 9] = [
    "NAME",
    "MEMBER",
    "PRODUCT",
    "VERSION",
    "ROLE",
    "MEMORY",
    "SINCE",
    "STATE",
    "ADDRESS AND DATA",
];

fn rows(listed: &[ListedDeployment]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for one in listed {
        let registered = &one.registered;
        let nobody = RegisteredMember::default();
        let members = match registered.members.as_slice() {
            [] => std::slice::from_ref(&nobody),
            members => members,
        };
        for member in members {
            let memory = match dyno_host::memory_of(member.pid) {
                0 => String::new(),
                bytes => ByteCount(bytes).to_string(),
            };
            rows.push([
                registered.name.clone(),
                member.name.clone(),
                member.product.clone(),
                member.version.split(' ').next().unwrap_or_default().to_owned(),
                member.role.clone(),
                memory,
                utc_date_time(registered.since_unix_ms),
                state(one),
                format!("{}  {}", member.url, member.data.display()).trim().to_owned(),
            ]);
        }
    }
    table(&rows, &[5])
}

fn find(name: &str) -> anyhow::Result<(Register, ListedDeployment)> {
    let register = Register::open(&lab::register()?)?;
    let found = register.find(name).ok_or_else(|| missing(name))?;
    Ok((register, found))
}

fn missing(name: &str) -> anyhow::Error {
    crate::usage_error(anyhow!("there is no server `{name}`; `dyno ls` lists the servers"))
}

/// `pg/replica-1` is a member of the deployment `pg`.
fn split(name: &str) -> (&str, Option<&str>) {
    name.split_once('/').map_or((name, None), |(name, member)| (name, Some(member)))
}

fn member<'a>(
    found: &'a ListedDeployment,
    wanted: Option<&str>,
) -> anyhow::Result<&'a RegisteredMember> {
    let name = &found.registered.name;
    let members = &found.registered.members;
    let first = members.first().with_context(|| format!("{name} is {}", state(found)))?;
    let Some(wanted) = wanted else { return Ok(first) };
    members.iter().find(|member| member.name == wanted).ok_or_else(|| {
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        crate::usage_error(anyhow!("{name} has no member `{wanted}`; it has {}", names.join(", ")))
    })
}

/// Replaces this process by the product's own client.
pub(crate) fn connect(name: &str, arguments: &[String]) -> anyhow::Result<End> {
    let (name, wanted) = split(name);
    let (register, found) = find(name)?;
    let member = member(&found, wanted)?;
    if state(&found) != "up" {
        bail!("{name} is not up: {}", state(&found));
    }
    let products = dyno_lab::products();
    let mut endpoint = Endpoint::from_url(&crate::secrets::expand(&member.url)?)?;
    if let (Some(other), Address::Tcp { port, .. }) = (member.client_port, &mut endpoint.address) {
        *port = other;
    }
    let client = match products.find(&member.product) {
        Some(product) => (product.client)(&endpoint, &member.version),
        None => products.router(&member.product)?.client(&endpoint),
    };
    let client = client.with_context(|| format!("{} has no client", member.product))?;
    let keeper = lab::keeper(&found.registered.root)?;
    let beside = client_folders(&member.programs);
    let program = client.programs.iter().find_map(|words| {
        let mut words = words.split(' ');
        Some((keeper.find_program(words.next()?, &beside)?, words))
    });
    let (program, first) = program.with_context(|| {
        format!(
            "the client of {} is not on this machine (`{}`); install it, or use {} with another one",
            member.product,
            client.programs.join("` or `"),
            member.url
        )
    })?;
    check_port(member, &endpoint)?;
    let mut command = Command::new(&program);
    command.args(first);
    match &client.secret {
        None => {}
        Some(ClientSecret::Variable(variable, word)) => {
            command.env(variable, word.reveal());
        }
        Some(ClientSecret::File { ending, text, argument }) => {
            let file = format!("{}.client{ending}", member.name);
            let file = register.keep_secret(name, &file, text.reveal())?;
            let mut argument = OsString::from(argument);
            argument.push(file);
            command.arg(argument);
        }
    }
    let error = command.args(client.arguments).args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

/// Never sends a password to a port that the server does not hold.
fn check_port(member: &RegisteredMember, endpoint: &Endpoint) -> anyhow::Result<()> {
    let (Some(_), Address::Tcp { .. }) = (&endpoint.password, &endpoint.address) else {
        return Ok(());
    };
    let address = endpoint.address.to_string();
    if !dyno_host::listens_by_network(member.pid)?.contains(&address) {
        bail!("{address} is not held by {}, so it is not sent the password", member.name);
    }
    Ok(())
}

/// Beside the server, or in the `bin` beside its `sbin`.
fn client_folders(programs: &Path) -> Vec<std::path::PathBuf> {
    let base = programs.parent().unwrap_or(programs);
    vec![programs.to_owned(), base.join("bin")]
}

pub(crate) fn logs(name: &str, n_lines: usize) -> anyhow::Result<End> {
    let (name, wanted) = split(name);
    let (_, found) = find(name)?;
    let member = member(&found, wanted)?;
    let lines = dyno_host::last_lines(&member.log, n_lines);
    let lines = lines.iter().map(|line| terminal::harmless(line).into_owned() + "\n");
    terminal::out(&lines.collect::<String>());
    Ok(End::Good)
}

pub(crate) fn down(names: &[String], all: bool) -> anyhow::Result<End> {
    let register = Register::open(&lab::register()?)?;
    let listed = || -> anyhow::Result<Vec<String>> {
        Ok(register.list()?.into_iter().map(|one| one.registered.name).collect())
    };
    let names = if all { listed()? } else { names.to_vec() };
    if let Some(unknown) = names.iter().find(|name| register.find(name).is_none()) {
        return Err(missing(unknown));
    }
    Ok(each(&names, |name| down_one(&register, name).map(|()| format!("{name} is down"))))
}

fn down_one(register: &Register, name: &str) -> anyhow::Result<()> {
    let found = register.find(name).ok_or_else(|| missing(name))?;
    let clock = SystemClock::start();
    register.end_holder(name, &clock)?;
    // What a killed holder left.
    let root = &found.registered.root;
    if root.is_dir() {
        Keeper::new(root)?.end_leftovers(&clock).iter().for_each(|what| terminal::say(what));
    }
    if register.find(name).is_none() {
        return Ok(());
    }
    match register.forget(name)? {
        Some(failure) if found.is_held => bail!("{name}: {failure}"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use dyno_host::Registered;

    use super::*;

    #[test]
    fn a_deployment_says_how_it_is() {
        let one = |failure: Option<&str>, is_held: bool, n_members: usize| {
            let members = vec![RegisteredMember::default(); n_members];
            let failure = failure.map(str::to_owned);
            let name = "db".to_owned();
            let registered = Registered { name, failure, members, ..Registered::default() };
            state(&ListedDeployment { registered, is_held })
        };
        assert_eq!(one(None, true, 1), "up");
        assert_eq!(one(None, true, 0), "starting");
        assert_eq!(one(Some("it crashed"), true, 1), "it crashed");
        assert_eq!(one(None, false, 1), "left over; `dyno down db` removes it");
    }
}
