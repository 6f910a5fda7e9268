//! Statements with an end: each is sent when one of the job's connections is free, and timed.
//!
//! A statement runs until it has ended, however long that takes. Where it has to stop before, it is
//! cancelled by a connection of its own.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use dyno_record::ActivitySummary;
use dyno_units::{
    Clock, Direction, Metric, MetricRole, Nanoseconds, Unit, clean_text, redact_secrets,
};
use dyno_workload::{Connection, Connector, StatementError};

use super::sessions::Sessions;
use super::{Activity, StepEnd, Surroundings, job_figure};
use crate::trial::TrialError;

const SHOWN_CHARACTERS: usize = 80;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SqlJob {
    /// Its name, unique in a step, as of a metric.
    pub(crate) name: String,
    /// In the order in which they are sent.
    pub(crate) statements: Vec<String>,
    /// Connections, each with one statement at a time.
    pub(crate) at_once: usize,
    /// Whether nothing else goes on in the step, so that what the server does is the job's.
    pub(crate) is_alone: bool,
}

pub(crate) struct Sql {
    job: SqlJob,
    sessions: Sessions,
    clock: Arc<dyn Clock>,
    outcome: Option<Outcome>,
}

struct Outcome {
    began: Nanoseconds,
    took: Nanoseconds,
    ended: String,
    is_done: bool,
    /// The time of each statement that has ended.
    statements: Vec<(usize, Nanoseconds)>,
}

struct Shared<'s> {
    job: &'s SqlJob,
    clock: &'s dyn Clock,
    next: AtomicUsize,
    is_stopped: AtomicBool,
    n_alive: AtomicUsize,
    ended: Mutex<Vec<(usize, Nanoseconds)>>,
    failure: Mutex<Option<(usize, StatementError)>>,
}

impl Sql {
    pub(crate) fn new(job: SqlJob, connector: Connector, clock: &Arc<dyn Clock>) -> Sql {
        let sessions = Sessions::new(connector, clock);
        Sql { job, sessions, clock: Arc::clone(clock), outcome: None }
    }
}

impl Shared<'_> {
    /// Sends one statement after the other, until none is left or one has failed.
    fn work(&self, connection: &mut dyn Connection) {
        loop {
            let idx = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(statement) = self.job.statements.get(idx) else { break };
            if self.is_stopped.load(Ordering::Relaxed) {
                break;
            }
            let began = self.clock.now();
            match connection.query(statement) {
                Ok(_) => {
                    let took = self.clock.now().saturating_sub(began);
                    lock(&self.ended).push((idx, took));
                }
                Err(error) => {
                    // What fails because another one has failed is no news.
                    if !self.is_stopped.swap(true, Ordering::Relaxed) {
                        lock(&self.failure).get_or_insert((idx, error));
                    }
                    break;
                }
            }
        }
        self.n_alive.fetch_sub(1, Ordering::Release);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A statement as a message shows it: one line, without secrets, cut.
pub(crate) fn shown(statement: &str) -> String {
    let line =
        clean_text(&redact_secrets(&statement.split_whitespace().collect::<Vec<_>>().join(" ")));
    match line.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

impl Activity for Sql {
    fn name(&self) -> &str {
        &self.job.name
    }

    fn metrics(&self) -> Vec<Metric> {
        let metric = |part, unit, title: &'static str, text: &'static str, role| {
            let better = Direction::Lower;
            Some(Metric {
                id: job_figure(part)?,
                unit,
                better,
                role,
                at_most: None,
                title: title.into(),
                text: text.into(),
            })
        };
        let time = "from the first statement of the job to the end of the last one";
        let slowest = "duration of the longest statement of the job";
        let secondary = MetricRole::Secondary;
        let all = [
            metric("time", Unit::Seconds, "job time", time, MetricRole::Main),
            (self.job.statements.len() > 1)
                .then(|| {
                    let title = "slowest statement";
                    metric("slowest", Unit::Seconds, title, slowest, secondary)
                })
                .flatten(),
        ];
        let of_server = super::server_metrics(self.job.is_alone);
        all.into_iter().flatten().chain(of_server).collect()
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result<(), TrialError> {
        let n = self.job.at_once.min(self.job.statements.len()).max(1);
        let (mut connections, ids) = self.sessions.connect(n)?;
        let shared = Shared {
            job: &self.job,
            clock: &*self.clock,
            next: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(at.stop.is_raised()),
            n_alive: AtomicUsize::new(connections.len()),
            ended: Mutex::default(),
            failure: Mutex::default(),
        };
        let began = self.clock.now();
        thread::scope(|scope| {
            let shared = &shared;
            for connection in &mut connections {
                scope.spawn(move || shared.work(connection.as_mut()));
            }
            self.sessions.watch((&shared.n_alive, &shared.is_stopped), &ids, at);
        });
        let took = self.clock.now().saturating_sub(began);
        let mut statements = std::mem::take(&mut *lock(&shared.ended));
        statements.sort_unstable();
        let is_done = statements.len() == self.job.statements.len();
        let failure = lock(&shared.failure).take().map(|(idx, error)| {
            let statement = shown(&self.job.statements[idx]);
            format!("failed at statement {} (`{statement}`): {error}", idx + 1)
        });
        let ended = match &failure {
            Some(why) => why.clone(),
            None if is_done => "ended".to_owned(),
            None => "was stopped at the end of the measured time".to_owned(),
        };
        self.outcome = Some(Outcome { began, took, ended, is_done, statements });
        match failure {
            Some(why) if !at.stop.is_raised() => {
                Err(TrialError::new(format!("the job `{}` {why}", self.job.name)))
            }
            _ => Ok(()),
        }
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        let Some(outcome) = &self.outcome else { return };
        if outcome.is_done {
            let slowest = outcome.statements.iter().map(|(_, took)| took.as_secs_f64());
            let values = [
                (job_figure("time"), Some(outcome.took.as_secs_f64())),
                (
                    job_figure("slowest"),
                    slowest.reduce(f64::max).filter(|_| self.job.statements.len() > 1),
                ),
            ];
            let values = values.into_iter().filter_map(|(id, value)| Some((id?, value?)));
            end.summary.figures.extend(values);
        }
        let output = outcome.statements.iter().map(|(idx, took)| {
            format!("{:.3} s: {}", took.as_secs_f64(), shown(&self.job.statements[*idx]))
        });
        end.summary.activities.push(ActivitySummary {
            name: self.job.name.clone(),
            kind: "sql".to_owned(),
            began_ns: outcome.began.0,
            took_s: outcome.took.as_secs_f64(),
            ended: outcome.ended.clone(),
            is_done: outcome.is_done,
            output: output.collect(),
        });
    }

    fn add_readings_to(&self, end: &mut StepEnd) {
        let is_done = self.outcome.as_ref().is_some_and(|outcome| outcome.is_done);
        if is_done && self.job.is_alone {
            super::add_server_figures(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_shown_on_one_line() {
        assert_eq!(shown("CREATE INDEX a\n  ON t (b)"), "CREATE INDEX a ON t (b)");
        assert!(shown(&"x ".repeat(200)).ends_with('…'));
        let secret = shown("CREATE USER a IDENTIFIED BY 'geheim'");
        assert!(!secret.contains("geheim"), "{secret}");
    }
}
