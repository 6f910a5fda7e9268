//! `dyno agent`: what a study on another machine starts here.
//!
//! It speaks messages on standard input and output and ends with them. Before it starts a server it starts a
//! guard: another Dyno process, in a session of its own, which ends what a killed agent leaves behind.

mod trial;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use dyno_host::Keeper;
use dyno_lab::agent::{AgentSetup, FromTrial, Hosting, TrialOrder, serve};
use dyno_load::AbortFlag;
use dyno_units::{ByteCount, Clock, Nanoseconds, locked};

use crate::clock::SystemClock;
use crate::{End, lab};

const FACTS: [&str; 5] = ["cpu.model", "kernel", "os", "virtualisation", "cgroup.cpus"];

/// How long a guard waits for the end of its agent, whose last moments outlive its pipes.
const AGENT_LIMIT: Nanoseconds = Nanoseconds::from_secs(10);
/// How often a guard cleans up: while another one works in the same folder, each attempt waits for 2 s.
const GUARD_ROUNDS: usize = 10;
const GUARD_POLL: Nanoseconds = Nanoseconds::from_millis(5);

const READY: &[u8] = b"ready\n";

/// Options of `dyno agent`.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentOptions {
    /// Wait for the end of the standard input, and then end what dead agents have left in this folder
    #[arg(long, value_name = "FOLDER", hide = true)]
    guard: Option<PathBuf>,
}

pub(crate) fn run(options: &AgentOptions) -> anyhow::Result<End> {
    if let Some(root) = &options.guard {
        return guard(root);
    }
    lab::raise_open_files();
    let environment = lab::environment(Path::new("/"));
    let memory = ByteCount(environment.usable_memory_bytes());
    let mut facts = environment.facts;
    facts.retain(|name, _| FACTS.contains(&name.as_str()));
    facts.insert("memory".to_owned(), memory.to_string());
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let hosting = Hosting {
        products: dyno_lab::products(),
        keeper: guarded_keeper(&clock),
        memory,
        program: std::env::current_exe().ok(),
    };
    let keepers = guarded_keeper(&clock);
    let run = move |order: &TrialOrder, abort: &AbortFlag, tell: &mut dyn FnMut(FromTrial<'_>)| {
        trial::run(order, abort, &keepers, tell)
    };
    let setup = AgentSetup::new(clock, (name, environment.cpus), facts);
    let setup = setup.hosting(hosting).running_trials(Arc::new(run));
    let output = Box::new(std::io::stdout());
    let on_silence = Box::new(|| {
        crate::terminal::say("the controller has sent nothing for a minute: this agent stops");
        std::process::exit(1);
    });
    let result = serve(&mut std::io::stdin(), output, setup, on_silence);
    // A load that still runs has no controller any more: the process ends with all it has started.
    match result {
        Ok(()) => Ok(End::Good),
        Err(why) => Err(anyhow::Error::msg(why)),
    }
}

fn guarded_keeper(clock: &Arc<dyn Clock>) -> dyno_lab::agent::MakeKeeper {
    let clock = Arc::clone(clock);
    // Pipes to the guards: they close when this process ends, however that happens.
    let guards: Mutex<BTreeMap<PathBuf, ChildStdin>> = Mutex::default();
    Box::new(move |folder| {
        let make = || -> anyhow::Result<Keeper> {
            let root = lab::data_root(folder)?;
            let keeper = lab::keeper(&root)?.with_builds(lab::builds()?);
            keeper.end_leftovers(clock.as_ref());
            let mut guards = locked(&guards);
            if !guards.contains_key(keeper.root()) {
                guards.insert(keeper.root().to_owned(), start_guard(keeper.root())?);
            }
            Ok(keeper)
        };
        make().map_err(|error| format!("{error:#}"))
    })
}

/// Waits until the guard is ready. The guard ends when the returned pipe is closed.
fn start_guard(root: &Path) -> anyhow::Result<ChildStdin> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let mut command = Command::new(program);
    command.args(["agent", "--guard"]).arg(root);
    // The guard must not hold the agent's standard error open.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut guard = command.spawn().context("no guard can be started for the server")?;
    let mut said = [0; READY.len()];
    let (input, output) = (guard.stdin.take(), guard.stdout.take());
    let (Some(input), Some(mut output)) = (input, output) else {
        anyhow::bail!("the guard of the server cannot be reached");
    };
    output.read_exact(&mut said).context("the guard of the server has ended")?;
    Ok(input)
}

fn guard(root: &Path) -> anyhow::Result<End> {
    let agent = rustix::process::getppid();
    // A signal to the agent's group or session must not reach the guard.
    rustix::process::setsid().context("a guard is started by an agent, not by hand")?;
    let keeper = lab::keeper(root)?;
    let mut output = std::io::stdout();
    output.write_all(READY).and_then(|()| output.flush())?;
    // Nothing is ever sent.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    // The agent's end of the pipe closes a moment before the agent ends, and nothing of a living Dyno is cleaned up.
    let clock = SystemClock::start();
    let until = clock.now() + AGENT_LIMIT;
    while rustix::process::getppid() == agent && clock.now() < until {
        clock.sleep_until(clock.now() + GUARD_POLL);
    }
    for _ in 0..GUARD_ROUNDS {
        keeper.end_leftovers(&clock);
    }
    Ok(End::Good)
}
