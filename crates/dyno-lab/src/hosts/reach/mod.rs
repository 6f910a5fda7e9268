//! Ways to reach hosts: each is a `Way` and a line in [`open`]. A request is held from the first
//! trial that needs it to the end of the run.

mod copy;
mod guard;
mod job;
mod kubernetes;
mod plain;
mod slurm;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use dyno_study::{HostPool, Reach};
use dyno_units::locked;

pub(crate) use tool::Tools;
pub(super) use tool::{LOST_LIMIT, LOST_PAUSE};

use crate::{Context, Lab, Result, TrialError};

/// Takes what is worth knowing while hosts are waited for.
pub(crate) type Say<'a> = &'a mut dyn FnMut(String);

/// What hosts are asked for with, and who hears of it.
type Talk<'a> = (&'a Tools, Say<'a>);

/// Hexadecimal digits of a token: enough that nobody guesses it, few enough for the names of objects.
const TOKEN_DIGITS: usize = 12;

/// A way to the hosts of a pool, which are counted from 0.
pub(super) trait Way: Send + Sync {
    /// What is at the other end, where the study does not name it: `node c2`.
    fn place(&self, _host: usize) -> Option<String> {
        None
    }

    /// The address at which the others reach a host, where its name in the study is none.
    fn address(&self, _host: usize) -> Option<String> {
        None
    }

    /// The command that starts an agent of the program that is installed there.
    fn agent(&self, host: usize) -> Vec<String>;

    /// The command that runs another command there.
    fn on_host(&self, host: usize, words: &[&str]) -> Vec<String>;

    /// The command that writes what it reads to a file there, whose path a shell would not change.
    fn write_on_host(&self, host: usize, file: &str) -> Vec<String> {
        self.on_host(host, &["dd", &format!("of={file}"), "bs=65536"])
    }

    /// Why the hosts must be requested again; none while they are held. Fails if that cannot be
    /// found out, or they do not come back in time.
    fn gone(&self, _tools: &Tools, _say: Say<'_>) -> Result<Option<String>> {
        Ok(None)
    }

    /// Fails if that is impossible now; the guard will try again.
    fn give_back(self: Box<Self>, _tools: &Tools) -> Result {
        Ok(())
    }
}

fn open(pool: &HostPool, program: Option<&Path>, talk: Talk<'_>) -> Result<Box<dyn Way>> {
    Ok(match &pool.reach {
        Reach::Local => Box::new(plain::Local::open(program.and_then(Path::to_str))?),
        Reach::Command(words) => Box::new(plain::Command::new(words, &pool.names)),
        Reach::Slurm(request) => Box::new(slurm::Slurm::open(pool, request, talk)?),
        Reach::Kubernetes(request) => Box::new(kubernetes::Kubernetes::open(pool, request, talk)?),
    })
}

/// What Dyno would apply to a Kubernetes cluster for a pool's hosts; none for other ways. Zeros
/// stand in for a run's random token.
pub fn kubernetes_manifest(pool: &HostPool) -> Option<String> {
    let Reach::Kubernetes(request) = &pool.reach else { return None };
    let token = "0".repeat(TOKEN_DIGITS);
    serde_json::to_string_pretty(&kubernetes::manifest(pool, request, &token)).ok()
}

fn token() -> Result<String> {
    let token = dyno_host::random_token().context("no random number can be drawn")?;
    Ok(token[..TOKEN_DIGITS].to_owned())
}

fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// The hosts that a run has requested, by the names of their pools.
#[derive(Default)]
pub struct HeldHosts {
    pools: Mutex<BTreeMap<String, Arc<Reached>>>,
    lost: Mutex<Option<String>>,
}

impl fmt::Debug for HeldHosts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HeldHosts")
    }
}

pub(super) struct Reached {
    way: Box<dyn Way>,
    tools: Tools,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// Hosts to which the program was copied, and where it is there.
    pub(super) copied: BTreeMap<usize, String>,
    /// Hosts that have had an agent in this run.
    pub(super) seen: BTreeSet<usize>,
    pub(super) given_up: BTreeSet<usize>,
}

impl HeldHosts {
    /// Requests them unless they are held. Fails, with the pool's name, if there are none.
    pub(super) fn reach(&self, lab: &Lab, pool: &HostPool, say: Say<'_>) -> Result<Arc<Reached>> {
        let tools = tools(lab, pool);
        let held = locked(&self.pools).get(&pool.name).cloned();
        if let Some(held) = held {
            let gone = held.way.gone(&tools, say);
            match gone.inspect_err(|error| self.lose_hosts(pool, error))? {
                None => return Ok(held),
                Some(why) => say(format!("host {}: {why}; requesting it again", pool.name)),
            }
            locked(&self.pools).remove(&pool.name);
            // A guard goes on where that fails, and what has ended is in nobody's way.
            if let Err(TrialError::Failed { message, .. }) = give_back(held) {
                say(not_released(&pool.name, &message));
            }
        }
        let way = open(pool, lab.program.as_deref(), (&tools, say))?;
        let reached = Arc::new(Reached { way, tools, state: Mutex::default() });
        locked(&self.pools).insert(pool.name.clone(), Arc::clone(&reached));
        Ok(reached)
    }

    /// Gives back all hosts; returns what could not be.
    pub(crate) fn give_back(&self) -> Vec<String> {
        let pools = std::mem::take(&mut *locked(&self.pools));
        let results = pools.into_iter().map(|(name, held)| (name, give_back(held)));
        let failed = results.filter_map(|(name, result)| match result {
            Err(TrialError::Failed { message, .. }) => Some(not_released(&name, &message)),
            _ => None,
        });
        failed.collect()
    }

    /// Notes why hosts are lost without which the run cannot go on.
    pub(super) fn lose(&self, pool: &HostPool, why: &str) {
        let then = match pool.reach {
            Reach::Slurm(_) | Reach::Kubernetes(_) => {
                "the same command requests hosts again, and continues the run"
            }
            _ => "when it is reachable again, the same command continues the run",
        };
        locked(&self.lost).get_or_insert_with(|| {
            format!(
                "{why}. The remaining trials were not started, because earlier trials used this host: {then}"
            )
        });
    }

    fn lose_hosts(&self, pool: &HostPool, error: &TrialError) {
        if let TrialError::Failed { message, .. } = error {
            self.lose(pool, message);
        }
    }

    pub(crate) fn lost(&self) -> Option<String> {
        locked(&self.lost).clone()
    }
}

fn give_back(held: Arc<Reached>) -> Result {
    // Trials that have ended hold nothing.
    let Some(Reached { way, tools, .. }) = Arc::into_inner(held) else { return Ok(()) };
    way.give_back(&tools.after_the_end())
}

fn not_released(pool: &str, why: &str) -> String {
    format!("the hosts of {pool} could not be released: {why}")
}

pub(super) fn tools(lab: &Lab, pool: &HostPool) -> Tools {
    Tools {
        abort: lab.abort.clone(),
        hidden: pool.hidden_variables.clone(),
        clock: Arc::clone(&lab.clock),
    }
}

impl Reached {
    pub(super) fn hosts(&self, pool: &HostPool) -> Vec<usize> {
        let state = self.state();
        (0..pool.names.len()).filter(|host| !state.given_up.contains(host)).collect()
    }

    pub(super) fn place(&self, host: usize) -> Option<String> {
        self.way.place(host)
    }

    pub(super) fn address(&self, host: usize, pool: &HostPool) -> String {
        let name = &pool.names[host];
        let of_way = || self.way.address(host).unwrap_or_else(|| pool.address_of(name));
        if pool.address.is_some() { pool.address_of(name) } else { of_way() }
    }

    /// The command that starts an agent. Copies the program if the study says so; fails, without the
    /// host's name, if it cannot.
    pub(super) fn agent(&self, host: usize, (lab, pool): (&Lab, &HostPool)) -> Result<Vec<String>> {
        if !pool.copy {
            return Ok(self.way.agent(host));
        }
        let copied = self.state().copied.get(&host).cloned();
        let file = match copied {
            Some(file) => file,
            None => {
                let tools = tools(lab, pool);
                let file = copy::copy(&*self.way, host, lab.program.as_deref(), &tools)?;
                self.state().copied.insert(host, file.clone());
                file
            }
        };
        Ok(self.way.on_host(host, &[&file, "agent"]))
    }

    /// Checks that the hosts are still held. Fails if they are not, or it is unknown: the run
    /// cannot continue, which is noted.
    pub(super) fn look(&self, lab: &Lab, pool: &HostPool, say: Say<'_>) -> Result {
        let gone = match self.way.gone(&self.tools, say) {
            Ok(None) => return Ok(()),
            Ok(Some(why)) => TrialError::new(why).of_pool(&pool.name),
            Err(error) => error,
        };
        lab.hosts.lose_hosts(pool, &gone);
        Err(gone)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}
