//! CPUs and memory limits of individual members.

use dyno_study::Database;
use dyno_units::{ByteCount, SettingValue};

use super::{Member, Source};
use crate::trial::TrialError;

/// Gives members the CPUs and memory limits that the study sets for them.
///
/// # Errors
///
/// There is no such member, or it is not a process that can be limited in this way.
pub(super) fn apply(
    members: &mut [Member],
    database: &Database,
    memory: ByteCount,
) -> Result<(), TrialError> {
    for (name, cpus) in &database.member_cpus {
        match &mut named(members, "member_cpus", name)?.source {
            Source::Route(route) => route.cpus.clone_from(cpus),
            source => spec_of(source, "member_cpus", name)?.cpus.clone_from(cpus),
        }
    }
    for (name, limit) in &database.member_memory {
        let SettingValue::Bytes(limit) = limit.resolve(memory) else { continue };
        let source = &mut named(members, "member_memory", name)?.source;
        spec_of(source, "member_memory", name)?.limits.memory = Some(limit);
    }
    Ok(())
}

fn named<'m>(
    members: &'m mut [Member],
    key: &str,
    name: &str,
) -> Result<&'m mut Member, TrialError> {
    let known = members.iter().map(|member| member.facts.name.as_str()).collect::<Vec<_>>();
    let unknown = format!(
        "`{key}` names the member `{name}`, which this deployment does not have; its members: {}",
        known.join(", ")
    );
    let mut members = members.iter_mut();
    members.find(|member| member.facts.name == name).ok_or_else(|| TrialError::new(unknown))
}

fn spec_of<'s>(
    source: &'s mut Source,
    key: &str,
    name: &str,
) -> Result<&'s mut dyno_database::ServerSpec, TrialError> {
    match source {
        Source::Start(spec)
        | Source::Follow(spec, _)
        | Source::Join(spec)
        | Source::Shard(spec, _)
        | Source::Front(spec)
        | Source::Other(spec) => Ok(spec),
        Source::Route(_) | Source::Attach { .. } | Source::Simulate(_) => {
            Err(TrialError::new(format!(
                "`{key}` cannot be given to `{name}`: it is not a database server that Dyno starts"
            )))
        }
    }
}
