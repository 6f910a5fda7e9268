//! "Bound by": how often the resource that is named is the one that limits throughput, in closed
//! networks of queues whose throughput is known exactly.

use dyno_analysis::bound::{Bound, Demand, Resource, TrialUses, agreed};
use dyno_units::{RandomStream, Seed};

use crate::{Rows, percent};

const STUDIES: u32 = 4_000;
/// What is raised to see whether it limits throughput: a quarter more of it.
const MORE: f64 = 1.25;
/// Of demands from trial to trial, and of readings, as standard deviations.
const NOISE: f64 = 0.02;
const READING: f64 = 0.01;
/// CPUs, and workers of the generator.
const CPUS: f64 = 4.0;
const WORKERS: f64 = 2.0;
/// Of arrivals under open load, in a measurement of 30 s at 1,000/s.
const ARRIVALS: f64 = 30_000.0;

/// In the order of [`System::demands`].
const QUEUES: [(Resource, f64); 5] = [
    (Resource::VolumeLimit, 1.0),
    (Resource::HostCpus, CPUS),
    (Resource::ServerThread, 1.0),
    (Resource::Generator, WORKERS),
    (Resource::Locks, 1.0),
];
const CPU: usize = 1;
const THREAD: usize = 2;
const LOCK: usize = 4;

#[derive(Clone, Copy)]
struct System {
    clients: u32,
    /// Outside of transactions, in ms.
    pause: f64,
    /// In transactions, where nothing queues: a network, a device that serves all at once.
    delay: f64,
    /// Of a transaction, in ms of each queue's servers.
    demands: [f64; QUEUES.len()],
}

/// What is measured at one load.
struct Load {
    /// In 1/ms.
    throughput: f64,
    used: [f64; QUEUES.len()],
    /// Clients in transactions.
    inside: f64,
    /// Of them, those that wait for the lock.
    waiting: f64,
}

impl System {
    /// With this load level's demands drawn over two orders of magnitude, so that any of them may
    /// be the largest, or two be alike.
    fn drawn(clients: u32, random: &mut RandomStream) -> System {
        let mut draw = |(_, servers): (Resource, f64)| servers * log_uniform(0.1, 10.0, random);
        let mut demands = QUEUES.map(&mut draw);
        let delay = log_uniform(0.1, 10.0, random);
        // Half of the workloads have no hot row, and a generator is rarely the largest.
        if random.unit() < 0.5 {
            demands[LOCK] = 0.0;
        }
        demands[3] *= 0.3;
        System { clients, pause: 0.0, delay, demands }
    }

    /// Mean value analysis of the queues; one with several servers is a faster queue and a delay
    /// (Seidmann et al. 1987).
    fn load(&self) -> Load {
        let queues = self.demands.iter().zip(QUEUES).map(|(demand, (_, servers))| demand / servers);
        let queues: Vec<f64> = queues.collect();
        let apart: f64 =
            self.demands.iter().zip(&queues).map(|(demand, queue)| demand - queue).sum();
        let mut lengths = vec![0.0; queues.len()];
        let mut throughput = 0.0;
        for n in 1..=self.clients {
            let times: Vec<f64> =
                queues.iter().zip(&lengths).map(|(queue, length)| queue * (1.0 + length)).collect();
            let around = self.pause + self.delay + apart + times.iter().sum::<f64>();
            throughput = f64::from(n) / around;
            lengths = times.iter().map(|time| throughput * time).collect();
        }
        let mut used = [0.0; QUEUES.len()];
        for (used, queue) in used.iter_mut().zip(&queues) {
            *used = throughput * queue;
        }
        let waiting = lengths[LOCK] - used[LOCK];
        // Each client has a thread of the server, which its work on CPUs keeps busy.
        let of_client = throughput * self.demands[CPU] / f64::from(self.clients);
        used[THREAD] = used[THREAD].max(of_client);
        let inside = f64::from(self.clients) - throughput * self.pause;
        Load { throughput, used, inside, waiting }
    }

    /// One trial, as its readings show it.
    fn trial(&self, random: &mut RandomStream) -> TrialUses {
        let mut own = *self;
        own.demands = own.demands.map(|demand| demand * (1.0 + NOISE * random.normal()));
        let load = own.load();
        let pausing = 1.0 - load.inside / f64::from(self.clients);
        TrialUses { demand: Demand::Clients { pausing: Some(pausing) }, uses: load.uses(random) }
    }

    /// With a quarter more of these.
    fn with_more(mut self, named: &[Resource]) -> System {
        let is_of_client =
            self.load().used[THREAD] > self.load().throughput * self.demands[THREAD] * (1.0 + 1e-9);
        for (idx, (resource, _)) in QUEUES.iter().enumerate() {
            let is_thread = is_of_client && idx == CPU && named.contains(&Resource::ServerThread);
            if named.contains(resource) || is_thread {
                self.demands[idx] /= MORE;
            }
        }
        self
    }

    /// Whether it would do at least half as much more.
    fn gains(&self, other: &System, more: f64) -> bool {
        (other.load().throughput / self.load().throughput).ln() >= 0.5 * more.ln()
    }

    fn is_limited_by(&self, named: &[Resource]) -> bool {
        self.gains(&self.with_more(named), MORE)
    }

    /// More clients, at least one.
    fn is_limited_by_clients(&self) -> bool {
        let clients = (f64::from(self.clients) * MORE).ceil() as u32;
        self.gains(&System { clients, ..*self }, f64::from(clients) / f64::from(self.clients))
    }
}

impl Load {
    fn uses(&self, random: &mut RandomStream) -> Vec<(Resource, Result<f64, String>)> {
        let one = |(idx, (resource, _)): (usize, (Resource, f64))| {
            let used = match idx {
                LOCK => self.waiting / self.inside.max(1.0),
                _ => self.used[idx],
            };
            (resource, Ok((used * (1.0 + READING * random.normal())).min(1.0)))
        };
        QUEUES.into_iter().enumerate().map(one).collect()
    }
}

fn log_uniform(low: f64, high: f64, random: &mut RandomStream) -> f64 {
    low * (high / low).powf(random.unit())
}

/// Of sentences of one kind, those that are wrong.
#[derive(Default)]
struct Said {
    n: u32,
    wrong: u32,
}

impl Said {
    fn add(&mut self, is_right: bool) {
        self.n += 1;
        self.wrong += u32::from(!is_right);
    }

    fn cells(&self) -> String {
        format!("{} | {}", percent(self.n, STUDIES), percent(self.wrong, self.n))
    }
}

pub(crate) const COLUMNS: &str = "load | clients | n | one resource named | of these wrong | two named | \
    of these wrong | nothing named | of these wrong | of these, one resource would give half as much | not known";

fn row_of(
    n: usize,
    random: &mut RandomStream,
    draw: &dyn Fn(&mut RandomStream) -> System,
) -> String {
    let (mut one, mut two, mut nothing) = (Said::default(), Said::default(), Said::default());
    let (mut missed, mut unknown) = (0, 0);
    for _ in 0..STUDIES {
        let system = draw(random);
        let trials: Vec<Bound> = (0..n).map(|_| system.trial(random).bound()).collect();
        match agreed(&trials).0 {
            Bound::Resources(named) => {
                let said = if named.len() == 1 { &mut one } else { &mut two };
                said.add(system.is_limited_by(&named));
            }
            Bound::Clients | Bound::Rate => {
                nothing.add(system.is_limited_by_clients());
                let mut all = QUEUES.iter().map(|(resource, _)| *resource);
                missed += u32::from(all.any(|resource| system.is_limited_by(&[resource])));
            }
            Bound::Unknown(_) => unknown += 1,
        }
    }
    let missed = percent(missed, nothing.n);
    let unknown = percent(unknown, STUDIES);
    format!("{} | {} | {} | {missed} | {unknown}", one.cells(), two.cells(), nothing.cells())
}

/// Offered from half to one and a half times what the largest queue can do.
fn open(n: usize, random: &mut RandomStream) -> String {
    let (mut one, mut two, mut nothing) = (Said::default(), Said::default(), Said::default());
    let (mut missed, mut unknown) = (0, 0);
    for _ in 0..STUDIES {
        let system = System::drawn(1, random);
        let queues =
            system.demands.iter().zip(QUEUES).map(|(demand, (_, servers))| demand / servers);
        let queues: Vec<f64> = queues.collect();
        let capacity = |queues: &[f64]| 1.0 / queues.iter().copied().fold(0.0, f64::max);
        let most = capacity(&queues);
        let offered = most * (0.5 + random.unit());
        let trials: Vec<Bound> = (0..n)
            .map(|_| {
                let own = most * (1.0 + NOISE * random.normal());
                let counted = offered * (1.0 + random.normal() / ARRIVALS.sqrt());
                let done = own.min(counted);
                let mut used = [0.0; QUEUES.len()];
                for (used, queue) in used.iter_mut().zip(&queues) {
                    *used = (done * queue * most / own).min(1.0);
                }
                // In an overloaded lock nearly all wait.
                let load =
                    Load { throughput: done, used, inside: 1.0, waiting: used[LOCK].powi(8) };
                let demand = Demand::Rate { undone: 1.0 - done / counted };
                TrialUses { demand, uses: load.uses(random) }.bound()
            })
            .collect();
        let gains = |named: &dyn Fn(Resource) -> bool| {
            let more: Vec<f64> = queues
                .iter()
                .zip(QUEUES)
                .map(|(queue, (of, _))| if named(of) { queue / MORE } else { *queue })
                .collect();
            let (before, after) = (most.min(offered), capacity(&more).min(offered));
            after > before && (after >= offered || (after / before).ln() >= 0.5 * MORE.ln())
        };
        match agreed(&trials).0 {
            Bound::Resources(named) => {
                let said = if named.len() == 1 { &mut one } else { &mut two };
                said.add(gains(&|of| named.contains(&of)));
            }
            Bound::Clients | Bound::Rate => {
                // A higher rate would be done as well, at least a little higher.
                nothing.add(offered < most * (1.0 + 0.02));
                missed += u32::from(gains(&|_| true) && offered > most * 1.1);
            }
            Bound::Unknown(_) => unknown += 1,
        }
    }
    let missed = percent(missed, nothing.n);
    let unknown = percent(unknown, STUDIES);
    format!("{} | {} | {} | {missed} | {unknown}", one.cells(), two.cells(), nothing.cells())
}

pub(crate) fn table(row: Rows<'_>) {
    let seed = Seed(83);
    for clients in [1, 4, 16, 64] {
        for n in [1, 3, 5] {
            let mut random = seed.derive("closed", u64::from(clients) * 10 + n as u64).stream();
            let cells = row_of(n, &mut random, &|random| System::drawn(clients, random));
            row(format!("closed | {clients} | {n} | {cells}"));
        }
    }
    for clients in [16, 64] {
        let mut random = seed.derive("alike", clients.into()).stream();
        let cells = row_of(3, &mut random, &|random| alike(clients, random));
        row(format!("closed, the two largest alike | {clients} | 3 | {cells}"));
    }
    for clients in [16, 64] {
        let mut random = seed.derive("pauses", clients.into()).stream();
        let cells = row_of(3, &mut random, &|random| with_pauses(clients, random));
        row(format!("closed, with pauses | {clients} | 3 | {cells}"));
    }
    let mut random = seed.derive("open", 0).stream();
    row(format!("open | – | 3 | {}", open(3, &mut random)));
}

/// The second largest queue has as much to do as the largest, to within 5 %.
fn alike(clients: u32, random: &mut RandomStream) -> System {
    let mut system = System::drawn(clients, random);
    let per_server = |system: &System, idx: usize| system.demands[idx] / QUEUES[idx].1;
    let mut order: Vec<usize> = (0..QUEUES.len()).filter(|idx| *idx != LOCK).collect();
    order.sort_by(|a, b| per_server(&system, *b).total_cmp(&per_server(&system, *a)));
    let near = 1.0 + 0.05 * (2.0 * random.unit() - 1.0);
    system.demands[order[1]] = per_server(&system, order[0]) * QUEUES[order[1]].1 * near;
    system
}

/// From a tenth of a transaction's time to a hundred times that of one alone.
fn with_pauses(clients: u32, random: &mut RandomStream) -> System {
    let system = System::drawn(clients, random);
    let alone = system.delay + system.demands.iter().sum::<f64>();
    System { pause: alone * log_uniform(0.1, 100.0, random), ..system }
}
