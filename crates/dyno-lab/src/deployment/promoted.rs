//! A replica that replaces the primary while clients use it.

use std::sync::{Arc, OnceLock};

use dyno_database::Server;
use dyno_workload::Connector;

use super::Deployment;

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

impl Deployment {
    pub(super) fn named(&self, name: &str) -> Option<&dyn Server> {
        let member = self.members.iter().find(|member| member.facts.name == name)?;
        member.instance.as_ref()?.server()
    }
}
