//! `dyno watch`: a study of the workload `none`, shown while it runs.

mod study;
mod target;
mod view;

use anyhow::bail;
use dyno_lab::Watching;
use dyno_load::AbortFlag;
use dyno_record::{Event, EventKind};
use dyno_units::{Nanoseconds, clean_text};

use super::beside::{self, Folder};
use super::report;
use crate::metrics::Metrics;
use crate::{End, lab, signals, terminal};
pub(crate) use study::WatchOptions;
use target::Target;
use view::View;

/// Until the time is over, the process ends, or Ctrl-C.
pub(crate) fn run(options: &WatchOptions) -> anyhow::Result<End> {
    // Wrong options are reported before the server is contacted.
    study::read(options, "watch").map_err(crate::usage_error)?;
    let target = Target::find(options)?;
    let (mut study, source) = study::read(options, &target.name).map_err(crate::usage_error)?;
    super::expand_urls(&mut study).map_err(crate::usage_error)?;
    let metrics = Metrics::from_option(options.metrics.as_ref())?;
    let lab = lab::make_without_signals(None)?;
    let record = options.record.as_deref();
    let folder =
        Folder::choose("watch", record, record.is_none(), &lab).map_err(crate::usage_error)?;
    let end = AbortFlag::new();
    let stop = end.clone();
    signals::on_first(move || stop.raise())?;
    signals::are_expected();
    let watching = Watching { end: end.clone(), keeps_readings: record.is_some() };
    let every = dyno_units::parse_duration(&options.every)?;
    let mut watcher = Watcher { view: View::new(&target, every), metrics, failure: None };
    terminal::say(&format!("watching {}", target.name));
    let place = (folder.path(), Some(watching));
    let result = beside::watch(&lab, (&study, &source), place, &mut |event| {
        watcher.on_event(event, &target);
    });
    watcher.view.close();
    result?;
    if let Some(why) = watcher.failure {
        bail!("{} cannot be watched: {why}", target.name);
    }
    if target.has_ended() {
        terminal::say(&format!("{} has ended", target.name));
    }
    if let Some(folder) = folder.kept() {
        terminal::out(&report::write_all(&folder, lab.clock.unix_millis())?);
    }
    Ok(End::Good)
}

/// Feeds the view and the metrics with the same events.
struct Watcher {
    view: View,
    metrics: Option<Metrics>,
    failure: Option<String>,
}

impl Watcher {
    fn on_event(&mut self, event: &Event, target: &Target) {
        match &event.kind {
            EventKind::ReadingsTaken { values } => {
                self.view.push(event.at_ns, values);
                self.metrics.iter().for_each(|metrics| metrics.on_event(event));
            }
            EventKind::IntervalObserved { passed_s, .. } => {
                if let Some(lost) = target.lost_process() {
                    self.view.note(&lost);
                }
                let elapsed = Nanoseconds::from_secs_f64((passed_s * 10.0).round() / 10.0);
                self.view.draw(elapsed, event.unix_ms);
            }
            EventKind::Noted { message } => self.view.note(message),
            EventKind::LeftoverEnded { what } => self.view.note(&format!("cleaned up: {what}")),
            EventKind::TrialFailed { message, .. } => self.failure = Some(clean_text(message)),
            _ => {}
        }
    }
}
