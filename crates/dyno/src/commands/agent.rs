//! `dyno agent`: what a study on another machine starts here.
//!
//! It speaks messages on its standard input and output and nothing else, and ends with them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dyno_lab::agent::{AgentSetup, serve};
use dyno_units::Clock;

use crate::clock::SystemClock;
use crate::{End, lab};

/// Facts of the machine that its agent tells.
const FACTS: [&str; 4] = ["cpu", "kernel", "os", "memory"];

/// Obeys until the input ends.
pub(crate) fn run() -> anyhow::Result<End> {
    lab::raise_open_files();
    let environment = dyno_host::environment(Path::new("/"), Path::new("/"));
    let facts: BTreeMap<String, String> =
        environment.facts.into_iter().filter(|(name, _)| FACTS.contains(&name.as_str())).collect();
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let setup = AgentSetup::new(clock, (name, environment.cpus), facts);
    let output = Box::new(std::io::stdout());
    let on_silence = Box::new(|| {
        crate::terminal::say("the controller has sent nothing for a minute: this agent stops");
        std::process::exit(1);
    });
    let result = serve(&mut std::io::stdin(), output, setup, on_silence);
    // A load that still goes on has nobody to go on for: the process ends with what it has started.
    match result {
        Ok(()) => Ok(End::Good),
        Err(why) => Err(anyhow::Error::msg(why)),
    }
}
