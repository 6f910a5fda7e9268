//! Hosts of whole trials, and which trials ran where.

use dyno_record::{Environment, Manifest, TrialSummary};
use dyno_units::ByteCount;
use serde::{Deserialize, Serialize};

use crate::join::Joined;

/// Equal in machines of one kind.
const KIND: [&str; 4] = ["cpu.model", "cpu.architecture", "cgroup.cpus", "cgroup.memory_bytes"];

/// Different if a machine was changed during a run.
const STAY: [&str; 4] = ["cpu.model", "kernel", "filesystem", "filesystem.device"];

/// Relative difference: firmware and kernel keep some memory.
const MEMORY_ALIKE: f64 = 0.02;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialHostFacts {
    /// The table of the study.
    pub pool: String,
    pub host: String,
    /// What is there, if the study does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub environment: Environment,
    /// With trials there.
    pub variants: Vec<usize>,
    pub blocks: Vec<u32>,
    /// Ended there.
    pub n: u32,
}

impl TrialHostFacts {
    /// By CPUs and memory.
    pub(crate) fn is_alike(&self, other: &TrialHostFacts) -> bool {
        let (ours, theirs) = (&self.environment, &other.environment);
        let (a, b) = (ours.memory_bytes as f64, theirs.memory_bytes as f64);
        let fact = |name: &&str| ours.facts.get(*name) == theirs.facts.get(*name);
        ours.cpus == theirs.cpus
            && (a - b).abs() <= MEMORY_ALIKE * a.max(b)
            && KIND.iter().all(fact)
    }

    /// With the limit of control groups: `2 (limit 0.5)`.
    pub fn cpus_in_words(&self) -> String {
        format!("{}{}", self.environment.cpus, self.cpu_limit_in_words())
    }

    fn cpu_limit_in_words(&self) -> String {
        let limit = self.environment.cpu_limit();
        limit.map(|limit| format!(" (limit {limit})")).unwrap_or_default()
    }

    /// With the limit of control groups.
    pub fn memory_in_words(&self) -> String {
        let limit = self.environment.memory_limit_bytes();
        let limit = limit.map(|bytes| format!(" (limit {})", ByteCount(bytes)));
        format!("{}{}", ByteCount(self.environment.memory_bytes), limit.unwrap_or_default())
    }

    /// `AMD EPYC, 2 CPUs, 4 GiB`.
    pub(crate) fn in_words(&self) -> String {
        let Environment { cpus, facts, .. } = &self.environment;
        let model = facts.get("cpu.model").map(|model| format!("{model}, ")).unwrap_or_default();
        let plural = if *cpus == 1 { "" } else { "s" };
        let limit = self.cpu_limit_in_words();
        format!("{model}{cpus} CPU{plural}{limit}, {}", self.memory_in_words())
    }
}

/// Of all ended trials, in order. A changed machine is another one.
pub(crate) fn trial_hosts(joined: &Joined<'_>) -> Vec<TrialHostFacts> {
    let mut all: Vec<TrialHostFacts> = Vec::new();
    for trial in &joined.trials {
        let Some(host) = trial.summary.and_then(|summary| summary.host.as_ref()) else { continue };
        // Other facts may change on the same machine.
        let stays = |environment: &Environment| {
            let fact = |name: &str| environment.facts.get(name).cloned();
            let Environment { machine, cpus, memory_bytes, .. } = environment;
            (machine.clone(), *cpus, *memory_bytes, STAY.map(fact))
        };
        let is_it = |one: &TrialHostFacts| {
            (&one.pool, &one.host, &one.place) == (&host.pool, &host.name, &host.place)
                && stays(&one.environment) == stays(&host.environment)
        };
        let idx = all.iter().position(is_it).unwrap_or_else(|| {
            all.push(TrialHostFacts {
                pool: host.pool.clone(),
                host: host.name.clone(),
                place: host.place.clone(),
                environment: host.environment.clone(),
                ..TrialHostFacts::default()
            });
            all.len() - 1
        });
        let one = &mut all[idx];
        one.n += 1;
        one.blocks.push(trial.block);
        one.variants.push(trial.variant);
    }
    for one in &mut all {
        one.blocks.sort_unstable();
        one.blocks.dedup();
        one.variants.sort_unstable();
        one.variants.dedup();
    }
    all
}

pub(crate) fn environment_of<'a>(
    trial: &'a TrialSummary,
    manifest: &'a Manifest,
) -> &'a Environment {
    trial.host.as_ref().map_or(&manifest.environment, |host| &host.environment)
}

/// Unique in a run; empty for the machine that ran the study.
pub(crate) fn machine_of(trial: &TrialSummary) -> (&str, &str) {
    trial.host.as_ref().map_or(("", ""), |host| (host.pool.as_str(), host.name.as_str()))
}
