//! A replica that takes the place of the primary while clients use it.

use std::sync::{Arc, OnceLock};

use dyno_database::Server;
use dyno_workload::Connector;

use super::Deployment;

/// A replica that has taken the place of the primary.
pub(crate) struct Promoted {
    /// Its name among the members.
    pub(crate) name: String,
    /// Opens connections to it.
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

impl Deployment {
    /// The server of the member with this name, if it is up.
    pub(super) fn named(&self, name: &str) -> Option<&dyn Server> {
        let member = self.members.iter().find(|member| member.facts.name == name)?;
        member.instance.as_ref()?.server()
    }
}
