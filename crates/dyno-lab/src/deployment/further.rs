//! Several servers over the same data: the first one as any other, and those that share its load.

use dyno_database::{AttachOptions, Endpoint, Server};
use dyno_record::{Entry, MemberRole};
use dyno_study::Variant;

use super::{Deployment, Member, Source, endpoint};
use crate::trial::TrialError;

impl Deployment {
    /// Names, servers and addresses of the further servers over the data of the first one.
    pub(crate) fn further_servers(&self) -> impl Iterator<Item = (&str, &dyn Server, &Endpoint)> {
        self.members.iter().filter_map(|member| match (&member.source, member.facts.role) {
            (Source::Attach { endpoint, .. }, MemberRole::Node) => {
                let server = member.instance.as_ref()?.server()?;
                Some((member.facts.name.as_str(), server, &**endpoint))
            }
            _ => None,
        })
    }

    /// The servers on hosts with their names, the first one first: each has data of its own.
    pub(crate) fn independent_servers(&self) -> impl Iterator<Item = (&str, &dyn Server)> {
        self.members.iter().filter_map(|member| match member.source {
            Source::Hosted(..) => {
                let server = member.instance.as_ref()?.server()?;
                Some((member.facts.name.as_str(), server))
            }
            _ => None,
        })
    }

    /// Gives the servers on hosts the names of the hosts that they are really on: where one was lost, others have their
    /// places.
    pub(crate) fn name_hosted(&mut self, hosts: &[String]) {
        for member in &mut self.members {
            if let Source::Hosted(_, idx) = member.source
                && let Some(host) = hosts.get(idx)
            {
                member.facts.name.clone_from(host);
            }
        }
    }

    /// The addresses of all members that take the load; none if one of them has no address.
    pub(crate) fn load_endpoints(&self) -> Vec<Endpoint> {
        let all = self.members.iter().filter(|member| member.serves(Entry::Write));
        let endpoint = |member: &Member| member.instance.as_ref()?.server()?.endpoint();
        all.map(endpoint).collect::<Option<Vec<Endpoint>>>().unwrap_or_default()
    }
}

/// The further servers over the data of the first one. Nothing is made or removed through them.
pub(super) fn sources(variant: &Variant, first: &Source) -> Result<Vec<Source>, TrialError> {
    let Source::Attach { options, version, .. } = first else { return Ok(Vec::new()) };
    let options = AttachOptions { makes_nothing: true, ..*options };
    let further = variant.database.further_servers().map(|url| {
        let endpoint = endpoint(variant, url).map_err(|error| TrialError::new(error.0))?;
        let (endpoint, version) = (Box::new(endpoint), version.clone());
        Ok(Source::Attach { endpoint, options, version })
    });
    further.collect()
}

/// The servers on further hosts, with the names of the hosts; each is independent of the first one.
pub(super) fn hosted<'h>(first: &Source, hosts: &'h [String]) -> Vec<(&'h str, Source)> {
    let Source::Hosted(spec, _) = first else { return Vec::new() };
    let further = hosts.iter().enumerate().skip(1);
    further.map(|(idx, host)| (host.as_str(), Source::Hosted(spec.clone(), idx))).collect()
}
