//! Probes of the servers' hosts, read there and recorded here. All hosts are asked at the start of each second, so that
//! their seconds are the load's. A measured server's processes are `server.…`, summed over several servers, each of
//! which is also recorded by its member's name.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use dyno_host::{Probe, Readings, host_readings};
use dyno_units::reading::{Reading, Topic};
use dyno_units::{Nanoseconds, Registry};

use super::channel::Channel;
use super::server::ServerHosts;
use crate::agent::message::Sample;
use crate::observe::Names;

/// How long the hosts may take to answer: what comes later would be taken for the next second's.
const LIMIT: Duration = Duration::from_millis(800);

/// Notes of a host that are kept, and readings by name.
const NOTES_MOST: usize = 100;
const READINGS_MOST: usize = 4096;

static KNOWN: LazyLock<Registry> = LazyLock::new(host_readings);

const SERVER: &str = "server.";
const GROUP: &str = "*.";
const BUSIEST: &str = "busiest_thread_pct";

#[derive(Clone)]
pub(crate) struct WatchedHost {
    pub(crate) idx: usize,
    pub(crate) host: String,
    pub(crate) member: String,
    pub(crate) is_measured: bool,
    /// What is wanted of its own probes there, if it is a router.
    pub(crate) of_router: Vec<Reading>,
}

struct HostsProbe {
    channels: Vec<Arc<Channel>>,
    names: Vec<WatchedHost>,
    registered: Vec<Reading>,
    /// Whether it has been noted of a host that it did not answer in time.
    is_late: Vec<bool>,
    /// Of each host, the names that its readings have had, and how many notes have come.
    known: Vec<[Names; 2]>,
    n_notes: Vec<usize>,
    notes: Vec<String>,
}

impl ServerHosts {
    pub(crate) fn probe(&self, names: Vec<WatchedHost>) -> Box<dyn Probe> {
        let channels = names.iter().map(|one| Arc::clone(self.channel(one.idx))).collect();
        let channels: Vec<Arc<Channel>> = channels;
        let registered = registered(&names);
        let (is_late, n_notes) = (vec![false; channels.len()], vec![0; channels.len()]);
        let new = |_: &Arc<Channel>| [READINGS_MOST, READINGS_MOST].map(Names::new);
        let (known, notes) = (channels.iter().map(new).collect(), Vec::new());
        Box::new(HostsProbe { registered, is_late, known, n_notes, channels, names, notes })
    }
}

fn registered(names: &[WatchedHost]) -> Vec<Reading> {
    let own = host_readings();
    let mut all: Vec<Reading> = Vec::new();
    // The sum over the hosts has the place of the server of this machine.
    all.extend(own.iter().filter(|reading| reading.id.starts_with(SERVER)).cloned());
    let mut hosts = BTreeSet::new();
    for WatchedHost { host, member, of_router, .. } in names {
        all.extend(of_router.iter().cloned());
        // A router may be on a host that has a server as well.
        let is_new = hosts.insert(host);
        let of_host = own.iter().filter_map(|reading| {
            let (id, name) = match reading.id.strip_prefix(GROUP) {
                Some(_) if names.len() == 1 => return None,
                Some(rest) => (format!("{member}.{rest}"), member),
                None if reading.id.starts_with(SERVER) || !is_new => return None,
                None => (format!("host.{host}.{}", reading.id), host),
            };
            // Those of this machine have the charts and the evidence.
            Some(Reading {
                id: id.into(),
                unit: reading.unit.clone(),
                title: format!("{name}: {}", reading.title).into(),
                text: reading.text.clone(),
                topic: Topic::Instance,
                rise: reading.rise,
                ..Reading::default()
            })
        });
        all.extend(of_host);
    }
    all
}

/// Drops readings that Dyno's own probes do not have, as nobody knows their meaning, and bounds what the star in a name
/// stands for.
fn bound(sample: &mut Sample, [of_machine, of_router]: &mut [Names; 2]) {
    sample.machine.retain(|name, _| KNOWN.find(name).is_some());
    of_machine.keep(&mut sample.machine);
    of_router.keep(&mut sample.router);
}

/// Puts what the hosts have read into the readings; none of a host that has not answered.
fn put(hosts: &[(&WatchedHost, Option<Sample>)], readings: &mut Readings) {
    let mut sums: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for (WatchedHost { host, member, is_measured, of_router, .. }, sample) in hosts {
        let Some(sample) = sample else { continue };
        let is_wanted = |name: &str| of_router.iter().any(|reading| reading.is_for(name));
        let own = sample.router.iter().filter(|(name, _)| is_wanted(name));
        readings.extend(own.map(|(name, value)| (name.clone(), *value)));
        for (name, value) in &sample.machine {
            match name.strip_prefix(SERVER) {
                Some(rest) => {
                    if *is_measured {
                        let (sum, n) = sums.entry(name).or_default();
                        // Of the busiest threads, the busiest.
                        let both = if rest == BUSIEST { sum.max(*value) } else { *sum + value };
                        (*sum, *n) = (both, *n + 1);
                    }
                    if hosts.len() > 1 {
                        readings.insert(format!("{member}.{rest}"), *value);
                    }
                }
                None => drop(readings.insert(format!("host.{host}.{name}"), *value)),
            }
        }
    }
    // A part is no sum.
    let n_measured = hosts.iter().filter(|(named, _)| named.is_measured).count();
    let whole = sums.into_iter().filter(|(_, (_, n))| *n == n_measured);
    readings.extend(whole.map(|(name, (sum, _))| (name.to_owned(), sum)));
}

impl Probe for HostsProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        Cow::Owned(self.registered.clone())
    }

    fn name(&self) -> &str {
        "hosts"
    }

    fn read(&mut self, _: Nanoseconds, readings: &mut Readings) {
        // All are asked before any is waited for.
        let asked: Vec<u64> = self.channels.iter().map(|channel| channel.ask_sample()).collect();
        let mut found = Vec::new();
        for (idx, (channel, id)) in self.channels.iter().zip(asked).enumerate() {
            let mut sample = channel.sample(id, LIMIT);
            if let Some(sample) = &mut sample {
                bound(sample, &mut self.known[idx]);
            }
            let notes = sample.iter_mut().flat_map(|sample| std::mem::take(&mut sample.notes));
            let left = NOTES_MOST.saturating_sub(self.n_notes[idx]);
            let notes: Vec<String> =
                notes.take(left).map(|note| format!("host {}: {note}", channel.name)).collect();
            self.n_notes[idx] += notes.len();
            self.notes.extend(notes);
            let is_late = sample.is_none() && channel.lost().is_none();
            if is_late && !self.is_late[idx] {
                self.notes.push(format!(
                    "host {}: its probes could not be read within {} ms; their readings are missing for such seconds",
                    channel.name,
                    LIMIT.as_millis()
                ));
            }
            self.is_late[idx] |= is_late;
            found.push((&self.names[idx], sample));
        }
        put(&found, readings);
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn values(values: &[(&str, f64)]) -> Option<Sample> {
        Some(Sample { machine: by_name(values), ..Sample::default() })
    }

    fn named(host: &str, member: &str, is_measured: bool) -> WatchedHost {
        let (host, member) = (host.to_owned(), member.to_owned());
        WatchedHost { idx: 0, host, member, is_measured, of_router: Vec::new() }
    }

    #[track_caller]
    fn check(hosts: &[(&str, Option<Sample>)], expected: &[(&str, f64)]) {
        let names: Vec<WatchedHost> =
            hosts.iter().map(|(name, _)| named(name, name, true)).collect();
        let hosts = names.iter().zip(hosts.iter().map(|(_, values)| values.clone()));
        check_named(&hosts.collect::<Vec<_>>(), expected);
    }

    #[track_caller]
    fn check_named(hosts: &[(&WatchedHost, Option<Sample>)], expected: &[(&str, f64)]) {
        let mut readings = Readings::new();
        let mut hosts = hosts.to_vec();
        for (_, sample) in &mut hosts {
            let mut known = [READINGS_MOST; 2].map(Names::new);
            sample.iter_mut().for_each(|sample| bound(sample, &mut known));
        }
        put(&hosts, &mut readings);
        assert_eq!(readings, by_name(expected));
        let names: Vec<WatchedHost> = hosts.iter().map(|(named, _)| (*named).clone()).collect();
        let registry = Registry::new(registered(&names));
        for name in readings.keys() {
            assert!(registry.find(name).is_some(), "{name} is not registered");
        }
    }

    #[test]
    fn one_server_has_the_readings_of_a_server_here() {
        let invented = ("invented", 1.0);
        let read = values(&[("server.rss_bytes", 7.0), ("disk.vda.queue", 2.0), invented]);
        check(&[("db1", read)], &[("host.db1.disk.vda.queue", 2.0), ("server.rss_bytes", 7.0)]);
    }

    #[test]
    fn a_host_has_no_new_disks_every_second() {
        let mut known = [READINGS_MOST; 2].map(Names::new);
        let (mut names, mut of_router) = (BTreeSet::new(), BTreeSet::new());
        for second in 0..10 {
            let named = |what: &str| {
                (0..1000).map(|nth| (format!("{what}.{second}-{nth}.queue"), 1.0)).collect()
            };
            let mut sample =
                Sample { machine: named("disk"), router: named("pool"), ..Sample::default() };
            bound(&mut sample, &mut known);
            names.extend(sample.machine.into_keys());
            of_router.extend(sample.router.into_keys());
        }
        assert_eq!((names.len(), of_router.len()), (READINGS_MOST, READINGS_MOST));
    }

    #[test]
    fn a_replica_has_readings_of_its_own_and_no_part_in_those_of_the_primary() {
        let (primary, replica) =
            (named("sql1", "primary", true), named("sql2", "replica-1", false));
        let read = |cpu: f64| values(&[("server.cpu_s_per_s", cpu), ("disk.vda.queue", 2.0)]);
        check_named(
            &[(&primary, read(1.5)), (&replica, read(0.5))],
            &[
                ("primary.cpu_s_per_s", 1.5),
                ("replica-1.cpu_s_per_s", 0.5),
                ("server.cpu_s_per_s", 1.5),
                ("host.sql1.disk.vda.queue", 2.0),
                ("host.sql2.disk.vda.queue", 2.0),
            ],
        );
    }

    #[test]
    fn a_router_on_the_host_of_a_server_has_readings_of_its_own() {
        let primary = named("sql1", "primary", true);
        let of_router =
            vec![Reading { id: "pgbouncer.clients_waiting".into(), ..Reading::default() }];
        let pooler = WatchedHost { of_router, ..named("sql1", "pooler", false) };
        let read = |cpu: f64| values(&[("server.cpu_s_per_s", cpu), ("disk.vda.queue", 2.0)]);
        let router = by_name(&[("pgbouncer.clients_waiting", 3.0), ("pgbouncer.pools", 1.0)]);
        let sample = read(0.5).map(|sample| Sample { router, ..sample });
        let mut readings = Readings::new();
        put(&[(&primary, read(1.5)), (&pooler, sample)], &mut readings);
        let expected = [
            ("primary.cpu_s_per_s", 1.5),
            ("pooler.cpu_s_per_s", 0.5),
            ("server.cpu_s_per_s", 1.5),
            ("host.sql1.disk.vda.queue", 2.0),
            ("pgbouncer.clients_waiting", 3.0),
        ];
        assert_eq!(readings, by_name(&expected));
        let known = registered(&[primary, pooler]);
        let queues = known.iter().filter(|reading| reading.id == "host.sql1.disk.*.queue");
        assert_eq!(queues.count(), 1, "the host is known twice");
    }

    #[test]
    fn several_servers_have_their_own_readings_and_a_sum() {
        let busiest = |db1: f64, db2: f64| {
            let of = |pct: f64| values(&[("server.busiest_thread_pct", pct)]);
            check(
                &[("db1", of(db1)), ("db2", of(db2))],
                &[
                    ("db1.busiest_thread_pct", db1),
                    ("db2.busiest_thread_pct", db2),
                    ("server.busiest_thread_pct", db1.max(db2)),
                ],
            );
        };
        busiest(80.0, 95.0);
        busiest(95.0, 80.0);
        let first = || values(&[("server.cpu_s_per_s", 1.5)]);
        let second = values(&[("server.cpu_s_per_s", 2.0)]);
        let own = [("db1.cpu_s_per_s", 1.5), ("db2.cpu_s_per_s", 2.0)];
        check(&[("db1", first()), ("db2", second)], &[own[0], own[1], ("server.cpu_s_per_s", 3.5)]);
        // Without one of them, nothing is known of the sum.
        check(&[("db1", first()), ("db2", None)], &own[..1]);
    }
}
