//! MariaDB and MySQL.
use std::sync::Arc;
use dyno_host::Keeper;
use dyno_units::Clock;
use crate::{DeployError, Endpoint, Server, ServerSpec};
pub(crate) fn start(_: &ServerSpec, _: &Arc<Keeper>, _: &Arc<dyn Clock>) -> Result<Box<dyn Server>, DeployError> { unimplemented!() }
pub(crate) fn attach(_: &Endpoint, _: bool) -> Result<Box<dyn Server>, DeployError> { unimplemented!() }
