//! `dyno watch`: the same probes live beside any server or process, without load.

mod record;
mod target;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use dyno_lab::observe::{Observer, Sample};
use dyno_record::{Event, EventKind};
use dyno_units::{Clock, Nanoseconds};

use crate::clock::SystemClock;
use crate::metrics::Metrics;
use crate::{End, terminal};
use record::Recording;
use target::Target;
use view::View;

/// Options of `dyno watch`.
#[derive(clap::Args)]
pub(crate) struct WatchOptions {
    /// URL of a running server; without it (and without --pid), only this host is watched
    pub(crate) url: Option<String>,
    /// A process to watch with all its descendants: the server's, or any other
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<i32>,
    /// How often to read
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    pub(crate) every: Nanoseconds,
    /// How long to watch [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub(crate) r#for: Option<Nanoseconds>,
    /// Keep a record in this folder, and write its report
    #[arg(long, value_name = "FOLDER")]
    pub(crate) record: Option<PathBuf>,
    /// A probe to leave out; may be repeated
    #[arg(long, value_name = "PROBE", value_parser = clap::builder::PossibleValuesParser::new(crate::vocabulary::probes()))]
    pub(crate) probes_off: Vec<String>,
    /// Serve the latest readings as OpenMetrics text on this loopback address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
}

/// How long after a boundary its readings are awaited before they are shown.
const GRACE: Nanoseconds = Nanoseconds::from_millis(200);

/// Watches until the time is over, the process has ended, or Ctrl-C.
pub(crate) fn run(options: &WatchOptions) -> anyhow::Result<End> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let target = Target::find(options)?;
    let metrics = Metrics::from_option(options.metrics.as_ref())?;
    let mut recording = match &options.record {
        Some(folder) => Some(Recording::begin(folder, &target, options, clock.as_ref())?),
        None => None,
    };
    terminal::say(&format!("watching {}", target.name));
    let is_stopped = stop_flag()?;
    let origin = clock.now();
    let off: Vec<&str> = options.probes_off.iter().map(String::as_str).collect();
    let watched = target.watched(&clock).without(&off).with_period(options.every);
    let observer = Observer::start(watched, Arc::clone(&clock), origin)
        .context("the probes cannot be started")?;
    let registry = observer.registry().clone();
    let mut view = View::new(&target, registry.clone(), options.every);
    let mut due = origin;
    let end = options.r#for.map(|length| origin + length);
    loop {
        due += options.every;
        sleep_until(clock.as_ref(), due + GRACE, &is_stopped);
        let (samples, notes) = observer.take();
        for note in notes {
            view.note(&note);
        }
        for sample in samples {
            expose(metrics.as_ref(), &sample, clock.as_ref());
            view.push(&sample);
            if let Some(recording) = &mut recording {
                recording.push(sample)?;
            }
        }
        if let Some(lost) = target.lost_process() {
            view.note(&lost);
        }
        view.draw(due.saturating_sub(origin), clock.unix_millis());
        let is_over = end.is_some_and(|end| due >= end);
        if is_over || is_stopped.load(Ordering::Relaxed) || target.has_ended() {
            break;
        }
    }
    view.close();
    let observed = observer.finish();
    if target.has_ended() {
        terminal::say(&format!("{} has ended", target.name));
    }
    if let Some(mut recording) = recording {
        for sample in observed.samples {
            recording.push(sample)?;
        }
        let names = recording.names();
        let meant = registry.meanings(names.iter());
        terminal::out(&recording.finish(meant, observed.cost, clock.as_ref())?);
    }
    Ok(End::Good)
}

fn expose(metrics: Option<&Metrics>, sample: &Sample, clock: &dyn Clock) {
    if let Some(metrics) = metrics {
        let kind = EventKind::ReadingsTaken { values: sample.values.clone() };
        metrics.on_event(&Event { at_ns: sample.at.0, unix_ms: clock.unix_millis(), kind });
    }
}

/// Becomes true at Ctrl-C; a second one ends Dyno at once.
fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot listen for Ctrl-C")?;
    }
    Ok(flag)
}

/// Sleeps in slices, so that Ctrl-C is heard.
fn sleep_until(clock: &dyn Clock, until: Nanoseconds, is_stopped: &AtomicBool) {
    while clock.now() < until && !is_stopped.load(Ordering::Relaxed) {
        let slice = clock.now() + Nanoseconds::from_millis(100);
        clock.sleep_until(slice.min(until));
    }
}

fn every(text: &str) -> Result<Nanoseconds, String> {
    let every = dyno_units::parse_duration(text).map_err(|error| error.to_string())?;
    let is_enough = every >= Nanoseconds::SECOND;
    is_enough.then_some(every).ok_or_else(|| "the shortest is 1s".to_owned())
}

fn length(text: &str) -> Result<Nanoseconds, String> {
    let length = dyno_units::parse_duration(text).map_err(|error| error.to_string())?;
    let is_enough = length >= Nanoseconds::from_secs(2);
    is_enough.then_some(length).ok_or_else(|| "watch for at least 2s".to_owned())
}

#[cfg(test)]
mod tests {
    use dyno_database::{Endpoint, endpoint_probes};
    use dyno_host::{HostSpec, ThreadListing};
    use dyno_units::ManualClock;

    use super::*;

    #[test]
    fn every_probe_can_be_turned_off_by_its_name() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        let mut probes = HostSpec::default().slow_probes(&clock);
        for url in ["mysql://me@h", "postgres://me@h"] {
            let endpoint = Endpoint::from_url_of_server(url).expect("a good URL");
            probes.extend(endpoint_probes(&endpoint, Some(&ThreadListing::default())));
        }
        assert!(probes.len() >= 10);
        for probe in probes {
            assert!(crate::vocabulary::probes().contains(&probe.name()), "{}", probe.name());
        }
    }
}
