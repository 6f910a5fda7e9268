//! Servers that run already, given by their URLs, and servers beside the first one: over the same data, independent, or
//! promoted.

use std::sync::{Arc, OnceLock};

use dyno_database::{AttachOptions, Endpoint, Part, Server, ServerSpec, UrlError};
use dyno_record::{Entry, MemberRole};
use dyno_study::Variant;
use dyno_workload::{Connector, MadeWorkload};

use super::{Deployment, Member, Source, is_observed, part_of};
use crate::{Result, ServerHosts, TrialError, fail};

pub(crate) struct Promoted {
    pub(crate) name: String,
    pub(crate) connector: Connector,
}

/// Opens connections to the primary, or to the replica that has taken its place.
pub(super) fn or_promoted(primary: &Connector, promoted: &Arc<OnceLock<Promoted>>) -> Connector {
    let (primary, promoted) = (Arc::clone(primary), Arc::clone(promoted));
    Arc::new(move || match promoted.get() {
        None => primary(),
        Some(promoted) => (promoted.connector)(),
    })
}

/// The server of a variant that runs already. One that is only observed needs no catalog.
pub(crate) fn endpoint(variant: &Variant, url: &str) -> Result<Endpoint, UrlError> {
    if is_observed(variant) { Endpoint::from_url_of_server(url) } else { Endpoint::from_url(url) }
}

pub(crate) fn attach(
    endpoint: &Endpoint,
    options: AttachOptions,
    (variant, version): (&Variant, Option<&str>),
) -> Result<Box<dyn Server>> {
    let server = match is_observed(variant) {
        true => {
            // Statements of a job look names up like those of a load.
            if variant.job().is_some_and(|job| job.has_sql()) {
                let opened = endpoint.protocol.checked_connector(endpoint)();
                opened.map_err(|error| TrialError::new(error.to_string()))?;
            }
            dyno_database::observe(endpoint)?
        }
        false => dyno_database::attach(endpoint, options)?,
    };
    let Some(wanted) = version else { return Ok(server) };
    let found = server.facts()?.version;
    if dyno_database::version_fits(&found, wanted) {
        return Ok(server);
    }
    fail(format!(
        "the study requires version {wanted}, but the server has version \
        {found}"
    ))
}

impl Deployment {
    pub(crate) fn further_servers(&self) -> impl Iterator<Item = (&str, &dyn Server, &Endpoint)> {
        self.members.iter().filter_map(|member| match (&member.source, member.facts.role) {
            (Source::Attach { endpoint, .. }, MemberRole::Node) => {
                let server = member.server()?;
                Some((member.facts.name.as_str(), server, &**endpoint))
            }
            _ => None,
        })
    }

    /// Servers on hosts with data of their own, in no deployment of several; the first one first.
    pub(crate) fn independent_servers(&self) -> impl Iterator<Item = (&str, &dyn Server)> {
        self.members.iter().filter_map(|member| match member.source {
            Source::Start(_) if member.host.is_some() => {
                let server = member.server()?;
                Some((member.facts.name.as_str(), server))
            }
            _ => None,
        })
    }

    /// Independent servers are named after their actual hosts: others may have replaced a lost one.
    pub(crate) fn name_hosted(&mut self, hosts: &ServerHosts) {
        if self.members.iter().any(|member| matches!(member.source, Source::Route(_))) {
            return;
        }
        for member in &mut self.members {
            if part_of(&member.source) == Part::Alone
                && let Some(idx) = member.host
                && matches!(member.source, Source::Start(_))
            {
                hosts.name(idx).clone_into(&mut member.facts.name);
            }
        }
    }

    /// The members on hosts that begin for themselves, by their indexes, with their hosts and specifications.
    pub(crate) fn beginning_there(&self) -> Vec<(usize, usize, ServerSpec)> {
        let there = self.members.iter().enumerate().filter_map(|(member, one)| match &one.source {
            Source::Start(spec) => Some((member, one.host?, spec.clone())),
            _ => None,
        });
        there.collect()
    }

    pub(crate) fn joining_there(&self) -> Vec<usize> {
        let joins =
            |member: &&Member| matches!(member.source, Source::Follow(..) | Source::Join(_));
        self.members.iter().filter(joins).filter_map(|member| member.host).collect()
    }

    /// Whether all members that take the load support named prepared statements.
    pub(crate) fn supports_named_statements(&self) -> bool {
        let loaded = self.members.iter().filter(|member| member.serves(Entry::Write));
        let mut servers = loaded.filter_map(Member::server);
        servers.all(Server::supports_named_statements)
    }

    /// The addresses of all members that take the load; none if one of them has no address.
    pub(crate) fn load_endpoints(&self) -> Vec<Endpoint> {
        let all = self.members.iter().filter(|member| member.serves(Entry::Write));
        let endpoint = |member: &Member| member.server()?.endpoint().cloned();
        all.map(endpoint).collect::<Option<Vec<Endpoint>>>().unwrap_or_default()
    }

    /// Leaves servers that run already as they are, if the workload makes nothing in them.
    pub(crate) fn leave_untouched(&mut self, workload: &MadeWorkload) {
        for member in &mut self.members {
            if let Source::Attach { options, .. } = &mut member.source {
                options.makes_nothing |= workload.outline().makes_nothing;
            }
        }
    }

    pub(super) fn named(&self, name: &str) -> Option<&dyn Server> {
        let member = self.members.iter().find(|member| member.facts.name == name)?;
        member.server()
    }
}

/// The further servers over the data of the first one. Nothing is made or removed through them.
pub(super) fn sources(variant: &Variant, first: &Source) -> Result<Vec<Source>> {
    let Source::Attach { options, version, .. } = first else { return Ok(Vec::new()) };
    let options = AttachOptions { makes_nothing: true, ..*options };
    let further = variant.database.further_servers().map(|url| {
        let endpoint = endpoint(variant, url)?;
        let (endpoint, version) = (Box::new(endpoint), version.clone());
        Ok(Source::Attach { endpoint, options, version })
    });
    further.collect()
}

/// The servers on further hosts, with the names of the hosts; each is independent of the first one.
pub(super) fn independent<'h>(
    variant: &Variant,
    first: &Source,
    hosts: &'h [String],
) -> Vec<(&'h str, Source)> {
    if variant.database.is_one_deployment() {
        return Vec::new();
    }
    hosts.iter().skip(1).map(|host| (host.as_str(), first.clone())).collect()
}
