//! Reads all probes on time, at the boundaries of the load's intervals. Main type: [`Observer`]. Probes of
//! the host share a thread; each server's probe and each that may be slow has its own, so that it delays
//! only itself. A probe that is not done at the end is left behind; a command that it runs is killed.

mod names;
mod series;
mod source;
mod watched;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use dyno_host::{ProbeCommand, children_cpu};
use dyno_units::{Clock, Nanoseconds, Registry};

/// Readings of the host, all servers, a study's own probes, and the probes themselves.
pub fn registry() -> Registry {
    let mut all = dyno_host::host_readings();
    all.extend(dyno_database::server_readings().iter());
    all.extend(source::READINGS);
    all
}

pub(crate) use names::Names;
pub use series::{Series, Span, six_digits};
use source::{Heard, Source};
pub use watched::Watched;

/// How long a probe may take to end after it was told to; then it is left behind.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// When its reading began.
    pub at: Nanoseconds,
    pub source: usize,
    pub values: BTreeMap<String, f64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// CPU time of all their threads, and of the processes that they started.
    pub cpu: Nanoseconds,
    pub wall: Nanoseconds,
}

#[derive(Debug, Default)]
pub struct Observed {
    pub samples: Vec<Sample>,
    pub notes: Vec<String>,
    pub cost: Cost,
}

pub struct Observer {
    clock: Arc<dyn Clock>,
    origin: Nanoseconds,
    stops: Vec<(String, Sender<()>)>,
    heard: Receiver<Heard>,
    registry: Registry,
    children_cpu_s: Option<f64>,
    commands: Commands,
}

#[derive(Default)]
struct Commands(Vec<Arc<ProbeCommand>>);

impl Drop for Commands {
    fn drop(&mut self) {
        self.0.iter().for_each(|command| command.end());
    }
}

impl Observer {
    /// Reads at `origin` and every second after it (slower probes: at multiples of their period). A
    /// probe's first reading only sets the counters for rates. Fails if no thread can be started.
    pub fn start(
        watched: Watched,
        clock: Arc<dyn Clock>,
        origin: Nanoseconds,
    ) -> std::io::Result<Observer> {
        let (registry, period) = (watched.registry(), watched.period);
        let (send, heard) = channel();
        let mut stops = Vec::new();
        let mut commands = Commands::default();
        let children_cpu_s = children_cpu();
        for (idx, (name, probe)) in watched.into_probes().into_iter().enumerate() {
            commands.0.extend(probe.command());
            let (stop, stopped) = channel();
            let clock = Arc::clone(&clock);
            let (name_of, told) = (name.clone(), source::Told::default());
            let source = Source { idx, name: name_of, probe, clock, origin, period, told };
            let send = send.clone();
            std::thread::Builder::new()
                .name(format!("probe-{name}").chars().take(15).collect())
                .spawn(move || source.run(&stopped, &send))?;
            stops.push((name, stop));
        }
        Ok(Observer { clock, origin, stops, heard, registry, children_cpu_s, commands })
    }

    /// The samples, and what is worth telling, that have come in since the last call.
    pub fn take(&self) -> Observed {
        let mut observed = Observed::default();
        self.heard.try_iter().for_each(|heard| observed.add(heard));
        observed
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Reads each probe once more; returns the readings not taken yet, and the cost of all.
    pub fn finish(self) -> Observed {
        for (_, stop) in &self.stops {
            // A thread that has ended already needs no stopping.
            let _ = stop.send(());
        }
        let mut observed = Observed::default();
        let deadline = self.clock.now() + Nanoseconds::from(PATIENCE);
        let mut is_done = vec![false; self.stops.len()];
        while is_done.contains(&false) {
            let pause = deadline.saturating_sub(self.clock.now()).to_duration();
            let Ok(heard) = self.heard.recv_timeout(pause) else { break };
            if let Heard::Done { source, .. } = heard {
                is_done[source] = true;
            }
            observed.add(heard);
        }
        for ((name, _), _) in self.stops.iter().zip(&is_done).filter(|(_, done)| !**done) {
            observed.notes.push(format!(
                "the probe `{name}` did not finish in time: its last reading and its cost are \
                 unknown"
            ));
        }
        drop(self.commands);
        if let (Some(before), Some(now)) = (self.children_cpu_s, children_cpu()) {
            observed.cost.cpu += Nanoseconds::from_secs_f64(now - before);
        }
        observed.cost.wall = self.clock.now().saturating_sub(self.origin);
        observed
    }
}

impl Observed {
    fn add(&mut self, heard: Heard) {
        match heard {
            Heard::Sample(sample) => self.samples.push(sample),
            Heard::Note(note) => self.notes.push(note),
            Heard::Done { cpu, .. } => self.cost.cpu += cpu,
        }
    }
}

#[cfg(test)]
mod tests;
