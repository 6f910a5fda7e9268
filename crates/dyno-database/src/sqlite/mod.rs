//! SQLite, in the process.
use std::sync::Arc;
use dyno_host::Keeper;
use crate::{DeployError, Server, ServerSpec};
pub(crate) fn start(_: &ServerSpec, _: &Arc<Keeper>) -> Result<Box<dyn Server>, DeployError> { unimplemented!() }
