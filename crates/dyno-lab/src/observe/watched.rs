//! What is observed: the host's probes together, each other probe for itself.

use std::borrow::Cow;
use std::sync::Arc;

use dyno_database::Server;
use dyno_host::{HostSpec, Probe, ProcessGroup, Readings, Sampler, ThreadListing};
use dyno_units::{Clock, Nanoseconds, Reading, Registry};

use super::source::READINGS;

pub struct Watched {
    sampler: Sampler,
    probes: Vec<Box<dyn Probe>>,
    pub(super) period: Nanoseconds,
}

impl Watched {
    /// This host, and on it these processes and data.
    pub fn host(spec: &HostSpec, clock: &Arc<dyn Clock>) -> Watched {
        let (sampler, probes) = (Sampler::of(spec), spec.slow_probes(clock));
        Watched { sampler, probes, period: Nanoseconds::SECOND }
    }

    /// A server, by all its own probes, and the host.
    pub fn server(server: &dyn Server, clock: &Arc<dyn Clock>) -> Watched {
        Watched::among((Some(server), None), None, Vec::new(), clock)
    }

    /// The server if any; `process` replaces its own; `data_disk` is the disk under its data, if the volume
    /// knows it; `members` are groups of other members' processes.
    pub fn among(
        (server, process): (Option<&dyn Server>, Option<i32>),
        data_disk: Option<String>,
        members: Vec<ProcessGroup>,
        clock: &Arc<dyn Clock>,
    ) -> Watched {
        let listing = ThreadListing::default();
        let server_pids = match process {
            Some(pid) => vec![pid],
            None => server.map(Server::watched_processes).unwrap_or_default(),
        };
        // Threads on another host are nobody's concern here.
        let wanted = (!server_pids.is_empty()).then_some(&listing);
        let probes = server.map(|server| server.probes(wanted)).unwrap_or_default();
        let spec = HostSpec {
            server_pids,
            data: server.and_then(Server::data_files),
            data_disk,
            // Of a process alone it is not known whose it is.
            threads: server.map_or(Some(dyno_database::thread_group as _), Server::thread_groups),
            listing: listing.clone(),
            members,
        };
        let mut watched = Watched::host(&spec, clock);
        watched.probes.extend(probes);
        watched
    }

    pub fn with(mut self, probe: Box<dyn Probe>) -> Watched {
        self.probes.push(probe);
        self
    }

    pub fn without(mut self, names: &[&str]) -> Watched {
        self.probes.retain(|probe| !names.contains(&probe.name()));
        self
    }

    pub fn with_period(self, period: Nanoseconds) -> Watched {
        Watched { period, ..self }
    }

    pub(super) fn registry(&self) -> Registry {
        let mut all = Registry::new(self.sampler.registered());
        self.probes.iter().for_each(|probe| all.extend(probe.registered().iter()));
        all.extend(READINGS);
        all
    }

    /// The sources with their names, no name twice.
    pub(super) fn into_probes(self) -> Vec<(String, Box<dyn Probe>)> {
        let host: Box<dyn Probe> = Box::new(HostProbe(self.sampler));
        let mut probes = vec![("host".to_owned(), host)];
        for probe in self.probes {
            let name = probe.name().to_owned();
            let is_free = |wanted: &String| probes.iter().all(|(taken, _)| taken != wanted);
            let name = std::iter::once(name.clone())
                .chain((2..).map(|n| format!("{name}-{n}")))
                .find(is_free)
                .expect("there is a number that is not taken");
            probes.push((name, probe));
        }
        probes
    }
}

/// The probes of the host that share a thread.
struct HostProbe(Sampler);

impl Probe for HostProbe {
    fn registered(&self) -> Cow<'static, [Reading]> {
        self.0.registered().into()
    }

    fn read(&mut self, now: Nanoseconds, readings: &mut Readings) {
        readings.extend(self.0.read(now));
    }
}
