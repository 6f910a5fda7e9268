//! `dyno watch`: the same probes live beside any server or process, without load.

mod target;
mod view;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use dyno_lab::{Recording, Watch, WatchOrder};
use dyno_record::{Event, EventKind};
use dyno_units::{Clock, Nanoseconds};

use super::report;
use crate::clock::SystemClock;
use crate::metrics::Metrics;
use crate::{End, lab, terminal};
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
    let recording = record(options, &target, &clock)?;
    terminal::say(&format!("watching {}", target.name));
    let is_stopped = stop_flag()?;
    let off: Vec<&str> = options.probes_off.iter().map(String::as_str).collect();
    let watched = target.watched(&clock).without(&off);
    let mut watch = Watch::start(watched, options.every, &clock, recording)?;
    let mut view = View::new(&target, watch.registry().clone(), options.every);
    let origin = watch.origin();
    let mut due = origin;
    let end = options.r#for.map(|length| origin + length);
    loop {
        due += options.every;
        sleep_until(clock.as_ref(), due + GRACE, &is_stopped);
        watch.take(&mut |event| show(&mut view, metrics.as_ref(), event))?;
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
    if target.has_ended() {
        terminal::say(&format!("{} has ended", target.name));
    }
    // What is read at the end goes into the record alone.
    let is_recorded = watch.finish(&mut |_| {})?;
    if let Some(folder) = options.record.as_ref().filter(|_| is_recorded) {
        terminal::out(&report::write_all(folder, clock.unix_millis())?);
    }
    Ok(End::Good)
}

/// Begins the record, if one is wanted.
fn record(
    options: &WatchOptions,
    target: &Target,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Option<Recording>> {
    let Some(folder) = &options.record else { return Ok(None) };
    if std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()) {
        return Err(crate::usage_error(anyhow::anyhow!(
            "--record {}: the folder is not empty; name a new one",
            folder.display()
        )));
    }
    let order = WatchOrder {
        name: target.name.clone(),
        product: target.product.to_owned(),
        every: options.every,
        length: options.r#for,
    };
    let environment = lab::environment(Path::new("/"));
    Recording::begin(folder, &order, target.facts()?, &environment, clock).map(Some)
}

/// Shows what has happened: the view and the metrics are fed by the same events.
fn show(view: &mut View, metrics: Option<&Metrics>, event: &Event) {
    match &event.kind {
        EventKind::ReadingsTaken { values } => view.push(event.at_ns, values),
        EventKind::Noted { message } => view.note(message),
        _ => {}
    }
    if let Some(metrics) = metrics {
        metrics.on_event(event);
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
