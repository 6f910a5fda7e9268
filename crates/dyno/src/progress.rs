//! Shows a run's events: one changing line at a terminal, plain lines elsewhere.

use std::collections::BTreeSet;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use dyno_analysis::metrics::{self, with_thing};
use dyno_analysis::numbers::{Unit, grouped};
use dyno_lab::{Lab, RunEnd, RunOrder};
use dyno_record::{Event, EventKind};
use dyno_study::{LoadLevel, Plan, PlannedStep, Sought};
use dyno_units::{ByteCount, Clock, Nanoseconds, utc_date_time};

use crate::commands::{counted, time, within_limit};
use crate::live::{LoadView, Panel, SearchView, WaitView};
use crate::metrics::Metrics;
use crate::terminal;

const LOG_LINES: usize = 5;

/// Between reports on populating or waiting in plain lines.
const POPULATE_PAUSE: Nanoseconds = Nanoseconds::from_secs(10);

/// Below this, nothing is said of servers without a process of their own.
const READY_LEAST_S: f64 = 0.5;

const CHECKS_NAMED: usize = 2;

pub(crate) struct Progress {
    clock: Arc<dyn Clock>,
    is_interactive: bool,
    n_trials: usize,
    trial_time: Nanoseconds,
    steps: Vec<PlannedStep>,
    search: Option<SearchView>,
    /// Between two loads.
    rest: Nanoseconds,
    began: Nanoseconds,
    /// In this process, with the time they took.
    ended: u32,
    /// Trials that ended before this process began.
    current: Option<u32>,
    context: String,
    panel: Panel,
    load: LoadView,
    n_cpus: u32,
    /// The step of `load`.
    load_of: Option<usize>,
    /// On the run's clock.
    populate_began: Nanoseconds,
    populate_reported: Nanoseconds,
    wait: WaitView,
    wait_reported: Nanoseconds,
    noted: Noted,
    /// Trials of a discarded block begin again.
    begun: BTreeSet<u32>,
    /// Trials per block.
    n_variants: usize,
    /// Trials of discarded blocks, and those begun again.
    n_repeats: usize,
    nth_repeat: usize,
}

/// Limits memory: hosts may send ever new notes.
const NOTED_MOST: usize = 10_000;

/// As hashes.
#[derive(Default)]
struct Noted(BTreeSet<u64>);

impl Noted {
    /// Only the first time.
    fn is_new(&mut self, note: &str) -> bool {
        let mut hasher = std::hash::DefaultHasher::new();
        note.hash(&mut hasher);
        if self.0.len() >= NOTED_MOST {
            self.0.clear();
        }
        self.0.insert(hasher.finish())
    }
}

impl Progress {
    /// Runs the trials; shows events for which `observe` is true.
    pub(crate) fn follow(
        lab: &Lab,
        order: &RunOrder<'_>,
        metrics: Option<&Metrics>,
        observe: &mut dyn FnMut(&Event) -> bool,
    ) -> anyhow::Result<RunEnd> {
        let mut progress = Progress::new(order.plan, lab);
        let end = dyno_lab::run(lab, order, &mut |event| {
            metrics.iter().for_each(|metrics| metrics.on_event(event));
            if observe(event) {
                progress.on_event(event);
            }
        });
        progress.panel.wipe();
        end
    }

    fn new(plan: &Plan, lab: &Lab) -> Progress {
        Progress {
            clock: Arc::clone(&lab.clock),
            is_interactive: terminal::is_interactive(),
            n_trials: plan.trials.len(),
            trial_time: plan.trial_time_least(),
            steps: plan.steps.clone(),
            search: None,
            rest: plan.rest,
            began: lab.clock.now(),
            ended: 0,
            current: None,
            context: String::new(),
            panel: Panel::default(),
            load: LoadView::default(),
            n_cpus: lab.environment.cpus,
            load_of: None,
            populate_began: Nanoseconds::ZERO,
            populate_reported: Nanoseconds::ZERO,
            wait: WaitView::default(),
            wait_reported: Nanoseconds::ZERO,
            noted: Noted::default(),
            begun: BTreeSet::new(),
            n_variants: plan.variants.len(),
            n_repeats: 0,
            nth_repeat: 0,
        }
    }

    fn on_event(&mut self, event: &Event) {
        let at = Nanoseconds(event.at_ns);
        match &event.kind {
            EventKind::TrialBegan { trial, variant, repetition } => {
                self.current = Some(*trial);
                let trial = match self.begun.insert(*trial) {
                    true => format!("trial {trial}/{}", self.n_trials),
                    false => {
                        self.nth_repeat += 1;
                        let n = self.n_repeats.max(self.nth_repeat);
                        format!("repeat {}/{n}, trial {trial}", self.nth_repeat)
                    }
                };
                self.context = format!("{trial} {variant} #{repetition}");
                if self.is_interactive {
                    self.line("deploying");
                }
            }
            EventKind::Audited { passed, failed, skipped, .. } => {
                let text = audit_passed(passed, skipped);
                if let Some(text) = text.filter(|_| failed.is_empty()) {
                    // Trials of one workload have the same checks: they are listed once.
                    match self.noted.is_new(&text) {
                        true => self.line(&text),
                        false if passed.is_empty() => {}
                        false => {
                            self.line(&format!("audit: {} passed", counted(passed.len(), "check")));
                        }
                    }
                }
                for demand in failed {
                    self.permanent(&format!("AUDIT FAILED: {demand}"));
                }
            }
            EventKind::TrialFinished { .. } => self.ended += 1,
            EventKind::TrialFailed { message, server_log, .. } => {
                self.ended += 1;
                self.permanent(&format!("FAILED: {message}"));
                for line in server_log.iter().rev().take(LOG_LINES).rev() {
                    self.permanent(&format!("log: {line}"));
                }
            }
            EventKind::CleanUpFailed { message, .. } => {
                self.permanent(&format!("CLEAN-UP FAILED: {message}"));
            }
            EventKind::TrialAbandoned { .. } => self.permanent("abandoned"),
            EventKind::BlockVoided { block, .. } => {
                self.n_repeats += self.n_variants;
                self.permanent(&format!(
                    "block {block} (one trial of each variant) is discarded, because the host was busy; it is \
                     repeated after the other trials"
                ));
            }
            EventKind::LeftoverEnded { what } => self.permanent(&format!("cleaned up: {what}")),
            // The probes of each step repeat a problem; it is shown once.
            EventKind::Noted { message } => {
                if self.noted.is_new(message) {
                    self.permanent(message);
                }
            }
            other if self.wait.on_event(other) => self.show_wait(at),
            other => {
                self.on_load_event(other);
                self.on_data_event(other, at);
            }
        }
    }

    fn on_load_event(&mut self, event: &EventKind) {
        match event {
            EventKind::PhaseBegan { name, phase, step } => {
                if self.load_of != Some(*step) {
                    self.search = self.search_of(*step);
                }
                if phase == "warm-up" || self.load_of != Some(*step) {
                    (self.load, self.load_of) = (LoadView::default(), Some(*step));
                }
                let n = self.steps.len();
                let phase = if phase == "measure" { "measuring" } else { phase };
                let noun = match self.steps.get(*step).map(|step| &step.load) {
                    Some(LoadLevel::Own(_)) => "step",
                    _ => "load level",
                };
                let place = match n {
                    1 => String::new(),
                    _ => format!("{noun} {} of {n}, ", step + 1),
                };
                self.line(&format!("{place}{name}: {phase}"));
            }
            EventKind::IntervalEnded { step, second, throughput, p95_us } => {
                self.load.push(*throughput, *p95_us);
                if self.is_interactive {
                    let when = match second {
                        ..0 => "warm-up".to_owned(),
                        second => format!("second {second}"),
                    };
                    self.draw(&format!("{}, {when}", self.steps[*step].name));
                }
            }
            EventKind::IntervalObserved { step, passed_s } if self.is_interactive => {
                let name = &self.steps[*step].name;
                let mut lines = vec![format!("[{}] {name}, {passed_s:.0} s", self.context)];
                lines.extend(self.load.cpu_line(self.n_cpus));
                self.panel.draw_with_tail(&lines, &self.time_left());
            }
            EventKind::ReadingsTaken { values } => self.load.set_readings(values),
            EventKind::LoadProbed { step, number, level, throughput, limited_us, broken_by } => {
                let limited = limited_us.map_or("nothing committed".to_owned(), time);
                let ending = within_limit(broken_by.as_deref());
                let left = self.search.as_mut().map(|search| {
                    search.push(*level, broken_by.is_none());
                    format!("; {}", search.left())
                });
                let left = left.filter(|_| !self.is_interactive).unwrap_or_default();
                self.permanent(&format!(
                    "probe {number} at {}: {}, {limited}, {ending}{left}",
                    self.level(*step, *level),
                    rate(*throughput)
                ));
            }
            EventKind::ActivityEnded { activity, took_s, is_done, .. } => {
                let ending = if *is_done { "ended" } else { "failed" };
                self.permanent(&format!("{activity}: {ending} after {took_s:.1} s"));
            }
            EventKind::StepEnded { step, throughput, p95_us, measured_s } => {
                let result = (*throughput, *p95_us, *measured_s);
                let text = step_ended(&self.steps[*step], result);
                self.permanent(&text);
            }
            _ => {}
        }
    }

    fn on_data_event(&mut self, event: &EventKind, at: Nanoseconds) {
        match event {
            EventKind::ServerReady { server, took_s, pid } => {
                (self.populate_began, self.populate_reported) = (at, at);
                // Nothing was started, or the server was up already.
                if pid.is_some() || *took_s >= READY_LEAST_S {
                    let server = server.split(" (").next().unwrap_or(server);
                    self.line(&format!("{server} ready after {took_s:.1} s"));
                }
            }
            EventKind::PopulateProgressed { rows, rows_total } => {
                let pause = at.saturating_sub(self.populate_reported);
                if self.is_interactive || pause >= POPULATE_PAUSE {
                    self.populate_reported = at;
                    let took = at.saturating_sub(self.populate_began);
                    self.line(&populating(*rows, *rows_total, took));
                }
            }
            // The workload has no tables.
            EventKind::Populated { rows, took_s } if *rows > 0 => {
                self.line(&populated(*rows, *took_s));
            }
            EventKind::DataSetKept { key, bytes } => {
                self.line(&format!("data set kept as {key} ({})", ByteCount(*bytes)));
            }
            EventKind::DataSetReused { rows, populate_s, populated_unix_ms, took_s, .. } => {
                self.line(&format!(
                    "data set reused ({} rows, populated in {} on {}), copied in {}",
                    grouped(*rows),
                    Unit::Micros.show(populate_s * 1e6),
                    utc_date_time(*populated_unix_ms),
                    Unit::Micros.show(took_s * 1e6)
                ));
            }
            _ => {}
        }
    }

    /// Continuously at a terminal; elsewhere its start, its end, and now and then between.
    fn show_wait(&mut self, at: Nanoseconds) {
        if let Some(text) = self.wait.ended() {
            return self.permanent(&text);
        }
        let Some(text) = self.wait.text() else { return };
        if self.is_interactive {
            let mut lines = vec![format!("[{}] {text}", self.context)];
            lines.extend(self.wait.lines());
            lines.extend(self.load.cpu_line(self.n_cpus));
            self.panel.draw(&lines);
        } else if self.wait.has_begun() || at.saturating_sub(self.wait_reported) >= POPULATE_PAUSE {
            self.wait_reported = at;
            self.line(&text);
        }
    }

    /// Replaced by the next line at a terminal; stays elsewhere.
    fn line(&mut self, text: &str) {
        let line = format!("[{}] {text}", self.context);
        match self.is_interactive {
            true => self.panel.draw_with_tail(&[line], &self.time_left()),
            false => terminal::say(&line),
        }
    }

    fn draw(&mut self, text: &str) {
        let mut lines = vec![format!("[{}] {text}", self.context)];
        lines.extend(self.load.lines(self.n_cpus));
        self.panel.draw_with_tail(&lines, &self.time_left());
    }

    fn permanent(&mut self, text: &str) {
        self.panel.wipe();
        match self.context.as_str() {
            "" => terminal::say(text),
            context => terminal::say(&format!("[{context}] {text}")),
        }
    }

    /// A level of a search, with its unit.
    fn level(&self, step: usize, level: f64) -> String {
        match self.steps.get(step).map(|step| &step.load) {
            Some(LoadLevel::Search(search)) => probed(search.sought, level),
            _ => level.to_string(),
        }
    }

    fn search_of(&self, step: usize) -> Option<SearchView> {
        let step = self.steps.get(step)?;
        let LoadLevel::Search(search) = &step.load else { return None };
        let probe = step.warm_up + step.duration + self.rest;
        Some(SearchView::new(search, probe))
    }

    /// From the mean time of trials, or the plan before any has ended; of a search, from its
    /// probes.
    fn time_left(&self) -> String {
        if let (Some(search), 1, 1) = (&self.search, self.n_trials, self.steps.len()) {
            return format!(" · {}", search.left());
        }
        let Some(current) = self.current else { return String::new() };
        let elapsed = self.clock.now().saturating_sub(self.began);
        let trials_left = (self.n_trials as u64 + 1).saturating_sub(u64::from(current));
        let per_trial = match self.ended {
            0 => self.trial_time.0,
            n => elapsed.0 / u64::from(n + 1).max(1),
        };
        let left = Nanoseconds((per_trial.max(self.trial_time.0) * trials_left).max(1));
        let whole = Nanoseconds::from_secs(left.0 / 1_000_000_000);
        format!(" · about {whole} left")
    }
}

/// `audit: 5 checks passed (rows of the history; 3 more); not checked: …`; none if there is nothing
/// to say.
fn audit_passed(passed: &[String], skipped: &[String]) -> Option<String> {
    let first_few = |all: &[String]| {
        let mut named: Vec<String> = all.iter().take(CHECKS_NAMED).cloned().collect();
        let n_more = all.len().saturating_sub(CHECKS_NAMED);
        named.extend((n_more > 0).then(|| format!("{n_more} more")));
        named.join("; ")
    };
    let passed = (!passed.is_empty()).then(|| {
        format!("audit: {} passed ({})", counted(passed.len(), "check"), first_few(passed))
    });
    let not = (!skipped.is_empty()).then(|| format!("not checked: {}", first_few(skipped)));
    let parts: Vec<String> = passed.into_iter().chain(not).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Rows, rate and time left.
fn populating(rows: u64, rows_total: u64, took: Nanoseconds) -> String {
    if rows >= rows_total {
        return format!("{} rows loaded, building indexes and gathering statistics", grouped(rows));
    }
    let rows_per_s = rows as f64 / took.as_secs_f64().max(1e-3);
    let left = match rows {
        0 => "unknown time".to_owned(),
        _ => Nanoseconds::from_secs(((rows_total - rows) as f64 / rows_per_s).ceil() as u64)
            .to_string(),
    };
    let (rows, rows_total) = (grouped(rows), grouped(rows_total));
    format!("populating, {rows} of {rows_total} rows ({}, {left} left)", row_rate(rows_per_s))
}

/// `10,000 rows loaded in 37.5 ms (267k rows/s)`.
fn populated(rows: u64, took_s: f64) -> String {
    let rows_per_s = rows as f64 / took_s.max(1e-6);
    let took = Unit::Micros.show(took_s * 1e6);
    format!("{} rows loaded in {took} ({})", grouped(rows), row_rate(rows_per_s))
}

fn row_rate(per_second: f64) -> String {
    let text = Unit::PerSecond.show(per_second);
    format!("{} rows/s", text.trim_end_matches("/s"))
}

fn rate(per_second: f64) -> String {
    with_thing(metrics::THROUGHPUT, &Unit::PerSecond.show(per_second))
}

fn probed(sought: Sought, level: f64) -> String {
    match sought {
        Sought::Rate { .. } => format!("{}/s", (level * 10.0).round() / 10.0),
        Sought::Clients { .. } if level.total_cmp(&1.0).is_eq() => "1 client".to_owned(),
        Sought::Clients { .. } => format!("{level} clients"),
    }
}

/// With its time if that is the result: its transactions may differ as inserts and indexes do.
fn step_ended(step: &PlannedStep, (throughput, p95_us, took_s): (f64, f64, Option<f64>)) -> String {
    match took_s.filter(|_| step.is_timed()) {
        Some(took) => format!("{}: took {took:.1} s", step.name),
        None => format!("{}: {}, p95 {}", step.name, rate(throughput), time(p95_us)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_said_once_and_do_not_fill_the_memory() {
        let mut noted = Noted::default();
        assert!(noted.is_new("a") && !noted.is_new("a"));
        (0..3 * NOTED_MOST).for_each(|nth| assert!(noted.is_new(&nth.to_string())));
        assert!(noted.0.len() <= NOTED_MOST);
    }

    #[test]
    fn a_load_that_was_tried_has_its_unit() {
        let rate = Sought::Rate { arrivals: dyno_model::Arrivals::Poisson, clients: 4 };
        let clients = Sought::Clients { most: 64 };
        let check = |sought, level, expected: &str| assert_eq!(probed(sought, level), expected);
        check(rate, 800.0, "800/s");
        check(rate, 812.3456, "812.3/s");
        check(clients, 1.0, "1 client");
        check(clients, 16.0, "16 clients");
    }

    #[test]
    fn a_step_whose_time_is_the_result_says_its_time() {
        let source = "title = 'x'\n[database.a]\nproduct = 'simulated'\n[workload.insert-benchmark]\n\
                      [design]\nclients = 1\n";
        let study = dyno_study::parse(source, &crate::vocabulary::vocabulary()).unwrap();
        let plan = dyno_study::plan(&study, dyno_units::Seed(1));
        let check = |name: &str, expected: &str| {
            let step = plan.steps.iter().find(|step| step.name == name).expect(name);
            let text = step_ended(step, (20.9, 1500.0, Some(47.0)));
            assert_eq!(text, format!("{name}: {expected}"));
        };
        check("l.i0", "took 47.0 s");
        check("l.x", "took 47.0 s");
        // Its inserts have a given rate, and end when that rate's number is done.
        check("qr100", "20.9 transactions/s, p95 1.5 ms");
    }

    #[test]
    fn populating_is_reported_with_its_rate_and_the_time_left() {
        let check = |rows, seconds, expected: &str| {
            assert_eq!(populating(rows, 1000, Nanoseconds::from_secs(seconds)), expected);
        };
        check(250, 5, "populating, 250 of 1,000 rows (50 rows/s, 15 s left)");
        check(0, 1, "populating, 0 of 1,000 rows (0 rows/s, unknown time left)");
        check(1000, 20, "1,000 rows loaded, building indexes and gathering statistics");
        assert_eq!(populated(10_000, 0.0375), "10,000 rows loaded in 37.5 ms (267k rows/s)");
        let checks = ["a", "b", "c"].map(str::to_owned);
        let text = |n: usize, skipped: &[String]| audit_passed(&checks[..n], skipped);
        assert_eq!(text(0, &[]), None);
        assert_eq!(text(2, &[]).as_deref(), Some("audit: 2 checks passed (a; b)"));
        let skipped = ["d, because it only reads".to_owned()];
        let expected =
            "audit: 3 checks passed (a; b; 1 more); not checked: d, because it only reads";
        assert_eq!(text(3, &skipped).as_deref(), Some(expected));
    }
}
