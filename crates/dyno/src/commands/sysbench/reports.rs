//! Reports while a run goes on and at its end: the tool's own, or those of the script's hooks.

use std::sync::Arc;

use dyno_sysbench::Call;
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::lua::{Settings, Single};

use super::host::{self, Terminal};
use super::options::Options;
use super::output::{self, Mark, Stretch};
use crate::commands::beside::Interruption;

/// How much earlier than the full time a report may come.
const EARLY: Nanoseconds = Nanoseconds::from_millis(200);

/// When a run has ended that began at this time and was to last for so many seconds, 0 for as long as it takes:
/// `latest` is when its clients did something last, `at` when it was over at the latest.
fn end_of(
    (began, seconds): (Nanoseconds, u64),
    latest: Nanoseconds,
    have_ended: bool,
    at: Nanoseconds,
) -> Nanoseconds {
    if have_ended {
        return latest;
    }
    // Those that wait for an event or for its end have done nothing for a while.
    let planned = if seconds == 0 { at } else { began + Nanoseconds::from_secs(seconds) };
    latest.max(planned.min(at))
}

pub(super) struct Reports<'a> {
    pub(super) options: &'a Options,
    pub(super) settings: Arc<Settings>,
    pub(super) host: &'a Terminal,
    pub(super) clock: Arc<dyn Clock>,
    /// The script whose hooks are called.
    single: Single,
    /// When clients began, without the warm-up.
    began: Option<Nanoseconds>,
    last: Mark,
    /// The beginning, or the last checkpoint.
    base: Mark,
    checkpoints: Vec<u64>,
}

impl<'a> Reports<'a> {
    pub(super) fn new(
        options: &'a Options,
        settings: &Arc<Settings>,
        host: &'a Terminal,
        clock: Arc<dyn Clock>,
        single: Single,
    ) -> Reports<'a> {
        Reports {
            options,
            settings: Arc::clone(settings),
            host,
            clock,
            single,
            began: None,
            last: Mark::default(),
            base: Mark::default(),
            checkpoints: options.checkpoints(),
        }
    }

    fn stretch(&self, from: &Mark, to: &Mark) -> Stretch {
        to.since(from, self.began.unwrap_or_default())
    }

    /// Calls a hook of the script, or prints the tool's own report if it has none.
    fn report(
        &mut self,
        hook: &str,
        stretch: &Stretch,
        more: &[(&'static str, f64)],
        text: fn(&Options, &Stretch, bool) -> String,
    ) {
        if !self.single.state().has_hook(hook) {
            let uses_database = self.settings.statistics.uses_database();
            return self.host.notice(&text(self.options, stretch, uses_database));
        }
        let mut numbers = stretch.numbers(self.options.number("percentile"));
        numbers.extend_from_slice(more);
        let ended = self.single.call(Call::Hook(hook, &numbers));
        host::end_of(&self.settings, ended, false);
    }

    /// A second is over; `is_warm_up` if it does not count.
    pub(super) fn on_second(&mut self, is_warm_up: bool) {
        let now = self.clock.now();
        let Some((began, _)) = self.settings.statistics.span() else { return };
        if is_warm_up {
            self.base = self.mark(now);
            self.last = self.base.clone();
            self.began = Some(now);
            return;
        }
        if self.began.is_none() {
            self.began = Some(began);
            (self.base.at, self.last.at) = (began, began);
        }
        let every = Nanoseconds::from_secs(self.options.count("report_interval"));
        if every > Nanoseconds::ZERO && now + EARLY >= self.last.at + every {
            self.interval(now);
        }
        let start = self.began.unwrap_or(began);
        if let Some(&next) = self.checkpoints.last()
            && now + EARLY >= start + Nanoseconds::from_secs(next)
        {
            self.checkpoints.pop();
            self.checkpoint(now);
        }
    }

    fn mark(&self, at: Nanoseconds) -> Mark {
        Mark::now(&self.settings.statistics, at)
    }

    fn interval(&mut self, now: Nanoseconds) {
        let mark = self.mark(now);
        let mut stretch = self.stretch(&self.last, &mark);
        // At the end of a run, its last interval is reported when its clients have ended.
        stretch.done.running = stretch.done.running.max(self.last.counted.running);
        let mut more = vec![("concurrency", stretch.done.in_event as f64)];
        if self.options.count("rate") == 0 {
            more.push(("queue_length", 0.0));
        }
        self.report("report_intermediate", &stretch, &more, output::interval);
        self.last = mark;
    }

    fn checkpoint(&mut self, now: Nanoseconds) {
        let mark = self.mark(now);
        let stretch = self.stretch(&self.base, &mark);
        self.host.notice(&format!("[ {:.0}s ] Checkpoint report:\n", stretch.at));
        self.report("report_cumulative", &stretch, &[], output::report);
        self.base = mark;
    }

    /// The run is over at this time, or was before; `is_interrupted` if a signal has ended it. Returns the script.
    pub(super) fn finish(mut self, at: Nanoseconds, is_interrupted: bool) -> Single {
        let statistics = &self.settings.statistics;
        let (first, latest) = statistics.span().unwrap_or_default();
        let began = *self.began.get_or_insert(first);
        self.base.at = self.base.at.max(began);
        let have_ended = statistics.snapshot().running == 0;
        let end = end_of((began, self.options.count("time")), latest, have_ended, at);
        let mark = self.mark(end.max(self.base.at));
        if is_interrupted {
            let heading = Interruption::heading(mark.at.saturating_sub(began));
            self.host.notice(&format!("{heading}\n\n"));
        }
        let mut stretch = self.stretch(&self.base, &mark);
        // Those that were idle at the end are over, too.
        stretch.done.running = 0;
        self.report("report_cumulative", &stretch, &[], output::report);
        self.single
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_its_time_or_its_clients_or_a_signal() {
        let check = |seconds: u64, (latest, have_ended): (u64, bool), at: u64, expected: u64| {
            let s = Nanoseconds::from_secs;
            let end = end_of((s(10), seconds), s(latest), have_ended, s(at));
            assert_eq!(end, s(expected), "{seconds} {latest} {have_ended} {at}");
        };
        // Its events went on for its whole time, and a little longer.
        check(30, (41, true), 45, 41);
        // Clients that wait for events of a rate, or for one that is never done.
        check(30, (12, false), 45, 40);
        check(30, (41, false), 45, 41);
        // All clients have ended by themselves.
        check(30, (12, true), 45, 12);
        check(0, (12, true), 45, 12);
        // A signal, with events in flight and without.
        check(30, (12, false), 13, 13);
        check(30, (12, true), 13, 12);
        check(0, (12, false), 13, 13);
    }
}
