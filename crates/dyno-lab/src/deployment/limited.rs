//! CPUs and memory limits of individual members.

use dyno_database::ServerSpec;
use dyno_study::Database;
use dyno_units::{ByteCount, SettingValue};

use super::{Member, Source};
use crate::error::{Result, fail};

/// Sets the study's CPUs and memory limits of members. Members that this deployment lacks are skipped, as another
/// variant may have them ([`unknown`]). Fails if a member is no process that can be limited.
pub(super) fn apply(members: &mut [Member], database: &Database, memory: ByteCount) -> Result {
    for (name, cpus) in &database.member_cpus {
        match named(members, name).map(|member| &mut member.source) {
            Some(Source::Route(route)) => route.cpus.clone_from(cpus),
            Some(source) => spec_of(source, "member_cpus", name)?.cpus.clone_from(cpus),
            None => {}
        }
    }
    for (name, limit) in &database.member_memory {
        let SettingValue::Bytes(limit) = limit.resolve(memory) else { continue };
        if let Some(member) = named(members, name) {
            spec_of(&mut member.source, "member_memory", name)?.limits.memory = Some(limit);
        }
    }
    Ok(())
}

/// A message for each member that a database limits and that is not among `known`, the members of all its variants.
pub(crate) fn unknown(database: &Database, known: &[String]) -> Vec<String> {
    let cpus = database.member_cpus.keys().map(|name| ("member_cpus", name));
    let memory = database.member_memory.keys().map(|name| ("member_memory", name));
    let unknown = cpus.chain(memory).filter(|(_, name)| !known.contains(name));
    let message = |(key, name): (&str, &String)| {
        format!(
            "`{key}` names the member `{name}`, which this deployment does not have; its members: {}",
            known.join(", ")
        )
    };
    unknown.map(message).collect()
}

fn named<'m>(members: &'m mut [Member], name: &str) -> Option<&'m mut Member> {
    members.iter_mut().find(|member| member.facts.name == name)
}

fn spec_of<'s>(source: &'s mut Source, key: &str, name: &str) -> Result<&'s mut ServerSpec> {
    match source {
        Source::Start(spec)
        | Source::Follow(spec, _)
        | Source::Join(spec)
        | Source::Shard(spec, _)
        | Source::Front(spec)
        | Source::Other(spec) => Ok(spec),
        Source::Route(_) | Source::Attach { .. } | Source::Simulate(_) => fail(format!(
            "`{key}` cannot be given to `{name}`: it is not a database server that Dyno starts"
        )),
    }
}
