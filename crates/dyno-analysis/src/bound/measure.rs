//! What the record of a trial has of the uses that the rule asks for. What is missing is an error
//! with its reason, never a guess.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dyno_record::{
    MemberRole, ProductFacts, RoleRecord, StepRecord, StepSummary, TrialSummary, VariantRecord,
};
use dyno_units::reading::{fits, known};

use super::resource::Resource;
use super::rule::{Demand, TrialUses};
use crate::attribution::readings::{mean_rate, measured_intervals, measured_values};
use crate::cells::Measured;
use crate::join::Joined;
use crate::metrics;

type Use = Result<f64, String>;

/// By variant, step and block.
pub(super) type Measurements<'a> = BTreeMap<(usize, usize, u32), &'a Measured>;

/// Requests in flight of one load relative to another, from which on a device that does no more
/// is at its limit.
const QUEUE_FACTOR: f64 = 1.5;
/// What it does relative to the other load, at most.
const GAIN_MOST: f64 = 1.1;

/// One trial at one step.
struct Place<'a> {
    trial: &'a TrialSummary,
    summary: &'a StepSummary,
    step: &'a StepRecord,
    variant: &'a VariantRecord,
    server: Cow<'a, ProductFacts>,
    /// As the study binds them; `None` for all.
    server_cpus: Option<f64>,
    generator_cpus: Option<f64>,
    /// Committed transactions per second × their mean response time.
    in_transactions: Option<f64>,
}

/// Of finished trials, in order.
pub(super) fn trials(
    joined: &Joined<'_>,
    measured: &Measurements<'_>,
    (variant, step): (usize, usize),
) -> Vec<TrialUses> {
    let of = |trial: &crate::join::JoinedTrial<'_>| {
        let (ended, summary) = (trial.finished()?, trial.step(step)?);
        let values = measured.get(&(variant, step, trial.block));
        let [generator_cpus, server_cpus] = joined.bound_cpus[variant];
        let place = Place {
            trial: ended,
            summary,
            step: &joined.steps[step],
            variant: &joined.variants[variant],
            server: ended.server.product_facts(),
            server_cpus: server_cpus.map(f64::from),
            generator_cpus: generator_cpus.map(f64::from),
            in_transactions: values.copied().and_then(in_transactions),
        };
        Some(place.uses())
    };
    joined.finished_of(variant).filter_map(of).collect()
}

fn in_transactions(values: &Measured) -> Option<f64> {
    let throughput = values.value(metrics::THROUGHPUT)?;
    Some(throughput * values.value(metrics::RESPONSE_MEAN)? / 1e6)
}

impl Place<'_> {
    fn uses(&self) -> TrialUses {
        let demand = self.demand();
        let mut uses: Vec<(Resource, Use)> = Vec::new();
        if self.server.simulated {
            let why = "the server is simulated and uses no resource of the machine".to_owned();
            uses.push((Resource::ServerThread, Err(why)));
            return TrialUses { demand, uses };
        }
        let known = |used: f64| match used.is_finite() {
            true => Ok(used),
            false => Err("its use is not a number".to_owned()),
        };
        let mut add = |resource: Resource, used: Option<Use>| {
            uses.extend(used.map(|used| (resource, used.and_then(known))));
        };
        add(Resource::VolumeLimit, self.volume_limit().map(Ok));
        add(Resource::DataDisk, self.data_disk());
        add(Resource::HostCpus, Some(self.host_cpus()));
        add(Resource::ServerCpus, self.server_cpus());
        add(Resource::ServerThread, Some(self.server_thread()));
        add(Resource::RouterThread, self.router_thread());
        add(Resource::Generator, self.generator());
        add(Resource::Locks, self.locks());
        add(Resource::Pool, self.pool());
        let why = "the capacity of the network between hosts is not recorded";
        add(Resource::Network, self.has_hosts().then(|| Err(why.to_owned())));
        TrialUses { demand, uses }
    }

    fn demand(&self) -> Demand {
        let is_search_of_rate = self.step.search.as_ref().is_some_and(|s| s.sought == "rate");
        let n_paced = self.roles().iter().filter(|role| role.pacing != "closed").count();
        let is_paced = n_paced > 0 && n_paced == self.roles().len() && self.summary.due > 0;
        if n_paced > 0 && !is_paced {
            return Demand::Mixed;
        }
        if self.step.rate.is_some() || is_search_of_rate || is_paced {
            let outcomes = self.summary.kinds.iter().flat_map(|kind| &kind.outcomes);
            let is_done = |name: &str| matches!(name, "committed" | "rolled_back");
            let done = outcomes.filter(|(name, _)| is_done(name)).map(|(_, n)| *n as f64);
            let undone = 1.0 - done.sum::<f64>() / self.summary.due.max(1) as f64;
            return Demand::Rate { undone: undone.max(0.0) };
        }
        let clients = self.step.clients.max(1) as f64;
        let inside = self.inside().filter(|_| self.is_closed_by_clients());
        Demand::Clients { pausing: inside.map(|inside| (1.0 - inside / clients).max(0.0)) }
    }

    /// None is done before the others, and their number was not searched.
    fn is_closed_by_clients(&self) -> bool {
        self.roles().iter().all(|role| role.quota.is_none()) && self.step.search.is_none()
    }

    /// Of a step that the workload defines.
    fn roles(&self) -> &[RoleRecord] {
        self.step.own_of(self.variant).map_or(&[], |own| &own.roles)
    }

    /// Mean number of clients inside a transaction. Those that roll back by design take as long;
    /// `None` with attempts that failed, as their times are not known.
    fn inside(&self) -> Option<f64> {
        let outcomes = self.summary.kinds.iter().flat_map(|kind| &kind.outcomes);
        let (mut committed, mut all) = (0, 0);
        for (name, n) in outcomes {
            match name.as_str() {
                "committed" => committed += n,
                "rolled_back" => {}
                _ if *n > 0 => return None,
                _ => {}
            }
            all += n;
        }
        Some(self.in_transactions? * all as f64 / committed as f64).filter(|n| n.is_finite())
    }

    /// Of the machine, or of the host where it is highest.
    fn mean(&self, reading: &str) -> Option<f64> {
        self.means(reading).map(|(_, value)| value).reduce(f64::max)
    }

    /// With what the names begin with: `host.NAME.`, or nothing.
    fn means<'r>(&'r self, reading: &'r str) -> impl Iterator<Item = (&'r str, f64)> {
        let of_hosts = format!("host.*.{reading}");
        let of = move |name: &'r String| {
            let is_it = name == reading || fits(&of_hosts, name);
            let mean = is_it.then(|| mean_rate(self.summary, name).ok())??;
            Some((name.strip_suffix(reading)?, mean))
        };
        self.summary.readings.keys().filter_map(of)
    }

    fn has_hosts(&self) -> bool {
        !self.summary.hosts.is_empty() || self.has_remote_servers()
    }

    fn has_remote_servers(&self) -> bool {
        self.trial.members.iter().any(|member| member.host.is_some())
    }

    /// A limit that is only there at times, as in dips, is reached at these times at most.
    fn volume_limit(&self) -> Option<f64> {
        let n = measured_intervals(self.summary).len().max(1) as f64;
        let of_host = |(host, _): (&str, f64)| {
            let reading = format!("{host}{}", known::DATA_DISK_LIMIT_USED_PCT);
            let values = measured_values(self.summary, &reading);
            values.iter().map(|(_, pct)| pct / 100.0).sum::<f64>() / n
        };
        let hosts = self.means(known::DATA_DISK_LIMIT_USED_PCT).map(of_host);
        hosts.reduce(f64::max).map(|used| used.min(1.0))
    }

    fn data_disk(&self) -> Option<Use> {
        if !self.server.stores_data {
            return None;
        }
        let mut places = self.trial.members.iter().filter_map(|member| member.place.as_ref());
        let Some(busy) = self.mean(known::DATA_DISK_BUSY_PCT).map(|pct| pct / 100.0) else {
            let is_in_memory = places.any(|place| place.survives_power_failure == Some(false));
            return (!is_in_memory).then(|| Err(not_recorded(known::DATA_DISK_BUSY_PCT)));
        };
        if busy < Resource::DataDisk.clear() || self.does_no_more() {
            return Some(Ok(busy));
        }
        Some(Err(format!(
            "the data disk was busy {} of the time, and whether it could have done more at a time \
             is not known",
            crate::words::share(busy)
        )))
    }

    /// At another load level of the trial it was as busy, had far more or fewer requests in
    /// flight, and did no more with the more of them.
    fn does_no_more(&self) -> bool {
        let works = |summary: &StepSummary| {
            let mean = |name: &str| mean_rate(summary, name).ok();
            let sum = |a: &str, b: &str| Some(mean(a)? + mean(b)?);
            let operations = sum(known::DATA_DISK_READS, known::DATA_DISK_WRITES)?;
            let bytes = sum(known::DATA_DISK_READ_BYTES, known::DATA_DISK_WRITE_BYTES)?;
            let busy = mean(known::DATA_DISK_BUSY_PCT)? / 100.0;
            Some((mean(known::DATA_DISK_QUEUE)?, [operations, bytes], busy))
        };
        let Some(ours) = works(self.summary).filter(|_| self.step.own.is_none()) else {
            return false;
        };
        let others = self.trial.steps.iter().filter(|other| other.step != self.summary.step);
        others.filter_map(works).any(|theirs| {
            let (light, heavy) = if ours.0 < theirs.0 { (ours, theirs) } else { (theirs, ours) };
            let is_busy = light.2.min(heavy.2) >= Resource::DataDisk.reached();
            let does_more = |(light, heavy): (f64, f64)| heavy > GAIN_MOST * light;
            let has_more = heavy.0 >= QUEUE_FACTOR * light.0;
            is_busy && has_more && !light.1.into_iter().zip(heavy.1).any(does_more)
        })
    }

    /// What the hypervisor gave to others was not there to be used.
    fn host_cpus(&self) -> Use {
        let own = self.means(known::CPU_BUSY_PCT).map(|(host, busy)| {
            let stolen = format!("{host}{}", known::CPU_STEAL_PCT);
            let stolen = mean_rate(self.summary, &stolen).unwrap_or(0.0);
            (!host.is_empty(), busy / (100.0 - stolen).max(1.0))
        });
        let all: Vec<(bool, f64)> = own.collect();
        let is_known = all.iter().any(|(is_of_host, _)| *is_of_host || !self.has_remote_servers());
        let most = all.iter().map(|(_, used)| used.min(1.0)).reduce(f64::max);
        match most {
            Some(most) if is_known || most >= Resource::HostCpus.reached() => Ok(most),
            _ => Err(not_recorded(known::CPU_BUSY_PCT)),
        }
    }

    fn server_cpu(&self) -> Option<f64> {
        let whole = self.summary.server_cpu_s.map(|cpu_s| cpu_s / self.summary.measured_s);
        mean_rate(self.summary, known::SERVER_CPU).ok().or(whole)
    }

    /// `None` if all CPUs of the host are the server's.
    fn server_cpus(&self) -> Option<Use> {
        let mean = |name: &str| mean_rate(self.summary, name).ok();
        let quota = mean(known::SERVER_CPU_LIMIT).filter(|limit| *limit > 0.0);
        let limits = [self.server_cpus, quota].into_iter().flatten().filter(|limit| *limit > 0.0);
        let limit = limits.reduce(f64::min)?;
        let Some(server) = self.server_cpu().filter(|used| used.is_finite()) else {
            return Some(Err(not_recorded(known::SERVER_CPU)));
        };
        // In one group with the generator, both use up one quota.
        let is_shared = quota.is_some_and(|quota| mean(known::GENERATOR_CPU_LIMIT) == Some(quota))
            && mean(known::SERVER_THROTTLED_PERIODS).is_some_and(|periods| periods >= 1.0);
        let generator = mean(known::GENERATOR_CPU).filter(|_| is_shared).unwrap_or(0.0);
        let used = ((server + generator) / limit).min(1.0);
        let n_servers = self.trial.members.iter().filter(|member| {
            let is_none = matches!(member.role, MemberRole::Generator | MemberRole::Other);
            !is_none && member.host.is_none()
        });
        // The others share the CPUs, and only the first one's use is here.
        if used < Resource::ServerCpus.reached() && n_servers.count() > 1 {
            return Some(
                Err("several servers share the CPUs that the study gives them".to_owned()),
            );
        }
        Some(Ok(used))
    }

    /// No thread uses more than the server.
    fn server_thread(&self) -> Use {
        if self.server.in_process {
            return Ok(self.summary.generator.busiest_worker);
        }
        if let Some(pct) = self.mean(known::SERVER_BUSIEST_THREAD) {
            return Ok(pct / 100.0);
        }
        let clear = Resource::ServerThread.clear();
        let most = self.server_cpu().filter(|cpus| *cpus < clear);
        most.ok_or_else(|| not_recorded(known::SERVER_BUSIEST_THREAD))
    }

    fn routers(&self) -> impl Iterator<Item = &str> {
        let members = self.trial.members.iter();
        let routers = members.filter(|member| member.role == MemberRole::Router);
        routers.map(|member| member.name.as_str())
    }

    fn router_thread(&self) -> Option<Use> {
        let used = self.routers().map(|name| {
            let reading = format!("{name}.busiest_thread_pct");
            mean_rate(self.summary, &reading).map(|pct| pct / 100.0)
        });
        used.reduce(|a, b| Ok(a?.max(b?)))
    }

    /// `None` if the database runs inside it.
    fn generator(&self) -> Option<Use> {
        if self.server.in_process {
            return None;
        }
        let own = &self.summary.generator;
        let hosts = self.summary.hosts.iter().map(|host| &host.generator);
        let calibrated = std::iter::once(own).chain(hosts.clone()).filter_map(|generator| {
            generator.share_of_calibrated.filter(|_| !generator.calibration_disturbed)
        });
        let busiest = hosts.map(|generator| generator.busiest_worker);
        let cpu = mean_rate(self.summary, known::GENERATOR_CPU).ok();
        let of_cpus =
            self.generator_cpus.filter(|cpus| *cpus > 0.0).zip(cpu).map(|(cpus, used)| used / cpus);
        let all = busiest.chain(calibrated).chain(of_cpus);
        Some(Ok(all.fold(own.busiest_worker, f64::max).min(1.0)))
    }

    /// `None` where nobody waits for another.
    fn locks(&self) -> Option<Use> {
        if self.step.clients <= 1 || self.summary.writes == 0 {
            return None;
        }
        let ids =
            [known::INNODB_ROW_LOCK_WAITS, known::INNODB_ROW_LOCK_WAITING, known::PG_LOCK_WAITS];
        let Some(waiting) = ids.iter().find_map(|id| mean_rate(self.summary, id).ok()) else {
            return Some(Err(
                "no reading of the server says how many clients wait for locks".to_owned()
            ));
        };
        let clients = self.step.clients as f64;
        let inside = self.inside().map_or(clients, |inside| inside.min(clients));
        Some(Ok((waiting / inside.max(1.0)).min(1.0)))
    }

    /// `None` without a router.
    fn pool(&self) -> Option<Use> {
        self.routers().next()?;
        let queues = [known::POOLER_WAITING, known::PROXY_QUEUED];
        let mut read = queues.iter().map(|id| measured_values(self.summary, id));
        let Some(queue) = read.find(|values| !values.is_empty()) else {
            return Some(Err(
                "no reading of the router says how many clients wait in it".to_owned()
            ));
        };
        let n = queue.iter().filter(|(_, waiting)| *waiting >= 1.0).count();
        Some(Ok(n as f64 / queue.len() as f64))
    }
}

fn not_recorded(reading: &str) -> String {
    format!("`{reading}` was not recorded")
}
