//! Running servers, given by their URLs.

use dyno_database::{AttachOptions, Endpoint, Server, UrlError};
use dyno_study::Variant;
use dyno_workload::MadeWorkload;

use super::{Deployment, Source, is_observed};
use crate::trial::TrialError;

/// The server of a variant that runs already. One that is only observed needs no catalog.
pub(crate) fn endpoint(variant: &Variant, url: &str) -> Result<Endpoint, UrlError> {
    if is_observed(variant) { Endpoint::from_url_of_server(url) } else { Endpoint::from_url(url) }
}

pub(crate) fn attach(
    endpoint: &Endpoint,
    options: AttachOptions,
    (variant, version): (&Variant, Option<&str>),
) -> Result<Box<dyn Server>, TrialError> {
    let server = match is_observed(variant) {
        true => dyno_database::observe(endpoint)?,
        false => dyno_database::attach(endpoint, options)?,
    };
    let Some(wanted) = version else { return Ok(server) };
    let found = server.facts()?.version;
    if dyno_database::version_fits(&found, wanted) {
        return Ok(server);
    }
    Err(TrialError::new(format!(
        "the study requires version {wanted}, but the server has version \
        {found}"
    )))
}

impl Deployment {
    /// Leaves servers that run already as they are, if the workload makes nothing in them.
    pub(crate) fn leave_untouched(&mut self, workload: &MadeWorkload) {
        for member in &mut self.members {
            if let Source::Attach { options, .. } = &mut member.source {
                options.makes_nothing |= workload.makes_nothing();
            }
        }
    }
}
