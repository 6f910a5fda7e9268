//! Generating hosts: their work, and their clocks.

use std::collections::BTreeMap;

use dyno_record::{ClockFacts, HostSummary, MemberHost, MemberRole, NetworkFacts, StepSummary};
use serde::{Deserialize, Serialize};

use crate::join::Joined;

/// At one step of one variant, all finished trials together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    pub variant: usize,
    pub step: usize,
    /// Its name in the study.
    pub host: String,
    /// As a URL without a password, if the load was divided among servers.
    pub server: Option<String>,
    /// The machine's own name.
    pub machine: String,
    /// Trials.
    pub n: u32,
    /// Of the commits, as a fraction.
    pub share: f64,
    /// The planned share, of the due arrivals or of the clients.
    pub share_meant: f64,
    /// Commits per second.
    pub throughput: f64,
    /// Of the agent per commit; `None` if unknown.
    pub cpu_us: Option<f64>,
    /// Share of the time on CPU; the most of all trials.
    pub busiest_worker: f64,
    /// Share of the time that workers waited for a CPU; the most of all trials.
    pub run_queue: f64,
    /// sent − due; the most of all trials.
    pub lag_p99_us: f64,
    /// In the trial with the largest error; `None` if not measured.
    pub clock: Option<ClockFacts>,
    /// To its server before the load, by the longest round trips; `None` if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFacts>,
    /// Largest distance of its clock from its estimate within a step: by drift, and by uncertainty.
    pub clock_moved_us: f64,
}

/// On which an agent started a server; all trials together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerHostFacts {
    /// Its name in the study.
    pub host: String,
    /// With roles: `replica-1 (replica)`; `server` if each server is independent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The machine's own name.
    pub machine: String,
    pub dyno: String,
    /// CPUs that the agent may use.
    pub cpus: u32,
    pub facts: BTreeMap<String, String>,
    /// Trials in which it had a server.
    pub n: u32,
    /// To the machine that ran the study, by the longest round trips; `None` if not measured.
    pub network: Option<NetworkFacts>,
}

/// In the order of their first server. A changed machine is another one.
pub(crate) fn server_hosts(joined: &Joined<'_>) -> Vec<ServerHostFacts> {
    let mut all: Vec<ServerHostFacts> = Vec::new();
    let summaries = joined.trials.iter().filter_map(|trial| trial.summary);
    for member in summaries.flat_map(|summary| &summary.members) {
        let Some(MemberHost { name, machine, dyno, cpus, facts, network }) = &member.host else {
            continue;
        };
        let name = if name.is_empty() { &member.name } else { name };
        let is = match *name == member.name {
            // Independent.
            true => "server".to_owned(),
            false => format!("{} ({})", member.name, role(member.role)),
        };
        let is_it = |host: &&mut ServerHostFacts| {
            (&host.host, &host.machine, &host.dyno, host.cpus, &host.facts)
                == (name, machine, dyno, *cpus, facts)
        };
        match all.iter_mut().find(is_it) {
            Some(host) => {
                host.n += 1;
                if !host.members.contains(&is) {
                    host.members.push(is);
                }
                host.network = worst([&host.network, network].into_iter().flatten());
            }
            None => all.push(ServerHostFacts {
                host: name.clone(),
                members: vec![is],
                machine: machine.clone(),
                dyno: dyno.clone(),
                cpus: *cpus,
                facts: facts.clone(),
                n: 1,
                network: network.clone(),
            }),
        }
    }
    all
}

fn role(role: MemberRole) -> &'static str {
    match role {
        MemberRole::Primary => "primary",
        MemberRole::Replica => "replica",
        MemberRole::Node => "node",
        MemberRole::Router => "router",
        MemberRole::Shard => "shard",
        MemberRole::Generator => "generator",
        MemberRole::Store => "store",
        MemberRole::OtherDatabase => "other database",
        MemberRole::Other => "other",
    }
}

/// By the longest round trips.
fn worst<'n>(all: impl Iterator<Item = &'n NetworkFacts>) -> Option<NetworkFacts> {
    all.max_by(|a, b| a.round_trip_us.total_cmp(&b.round_trip_us)).cloned()
}

type OfTrial<'a> = (&'a HostSummary, &'a StepSummary);

/// By variant and step; empty if the machine that runs the study generated the load.
pub(crate) fn hosts(joined: &Joined<'_>) -> Vec<HostFacts> {
    let mut all: BTreeMap<(usize, usize, usize), Vec<OfTrial<'_>>> = BTreeMap::new();
    // Lost hosts are replaced by others.
    let mut names: Vec<&str> = Vec::new();
    for (trial, step, summary) in joined.measured_steps() {
        for host in &summary.hosts {
            let known = names.iter().position(|name| *name == host.name);
            let idx = known.unwrap_or_else(|| {
                names.push(&host.name);
                names.len() - 1
            });
            all.entry((trial.variant, step, idx)).or_default().push((host, summary));
        }
    }
    all.into_iter().map(|((variant, step, _), trials)| facts((variant, step), &trials)).collect()
}

fn committed(host: &HostSummary) -> f64 {
    let kinds = host.kinds.iter();
    kinds.filter_map(|kind| kind.outcomes.get("committed")).sum::<u64>() as f64
}

fn facts((variant, step): (usize, usize), trials: &[(&HostSummary, &StepSummary)]) -> HostFacts {
    let n = trials.len() as f64;
    let mean = |of: &dyn Fn(&HostSummary, &StepSummary) -> f64| {
        trials.iter().map(|(host, step)| of(host, step)).sum::<f64>() / n
    };
    let most = |of: &dyn Fn(&HostSummary, &StepSummary) -> f64| {
        trials.iter().map(|(host, step)| of(host, step)).fold(0.0, f64::max)
    };
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let of_all = |step: &StepSummary, of: &dyn Fn(&HostSummary) -> f64| {
        step.hosts.iter().map(of).sum::<f64>()
    };
    let meant = |host: &HostSummary, step: &StepSummary| {
        // Under closed load, due is sent.
        let is_open = step.hosts.iter().any(|host| !is_empty(host));
        match is_open {
            true => share(host.due as f64, of_all(step, &|host| host.due as f64)),
            false => share(host.clients as f64, of_all(step, &|host| host.clients as f64)),
        }
    };
    let (first, _) = trials[0];
    let cpu = |host: &HostSummary| {
        let generator = &host.generator;
        Some(generator.process_cpu_user_s? + generator.process_cpu_system_s?)
    };
    let cpu_s: Option<f64> = trials.iter().map(|(host, _)| cpu(host)).sum();
    let all_committed: f64 = trials.iter().map(|(host, _)| committed(host)).sum();
    let clocks = trials.iter().filter_map(|(host, _)| host.clock.as_ref());
    HostFacts {
        variant,
        step,
        host: first.name.clone(),
        server: first.server.clone(),
        machine: first.machine.clone(),
        n: trials.len() as u32,
        share: mean(&|host, step| share(committed(host), of_all(step, &committed))),
        share_meant: mean(&meant),
        throughput: mean(&|host, step| share(committed(host), step.measured_s)),
        cpu_us: cpu_s.filter(|_| all_committed > 0.0).map(|s| s * 1e6 / all_committed),
        busiest_worker: most(&|host, _| host.generator.busiest_worker),
        run_queue: most(&|host, step| {
            let time = f64::from(host.generator.workers.max(1)) * step.measured_s;
            share(host.generator.run_queue_s.unwrap_or_default(), time)
        }),
        lag_p99_us: most(&|host, _| {
            let lag = host.lag.decode();
            lag.map_or(0.0, |lag| lag.value_at_quantile(0.99) as f64 / 1e3)
        }),
        network: worst(trials.iter().filter_map(|(host, _)| host.network.as_ref())),
        clock_moved_us: clocks.clone().map(moved_us).fold(0.0, f64::max),
        clock: clocks.max_by(|a, b| a.bound_us.total_cmp(&b.bound_us)).cloned(),
    }
}

/// Without lag there was no schedule.
fn is_empty(host: &HostSummary) -> bool {
    host.lag.decode().is_none_or(|lag| lag.is_empty())
}

/// At the end.
fn moved_us(clock: &ClockFacts) -> f64 {
    let after = clock.after.as_ref();
    clock.bound_us + after.map_or(0.0, |after| after.offset_us.abs() - after.bound_us).max(0.0)
}
