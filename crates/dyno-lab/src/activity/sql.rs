//! Statements with an end: each is sent when a connection of the job is free, and timed. A
//! statement has no time limit; if it must stop early, another connection cancels it.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dyno_record::ActivitySummary;
use dyno_units::Direction::Lower;
use dyno_units::{Clock, Metric, Nanoseconds, Unit, clean_text, metric, redact_secrets};
use dyno_workload::Connector;

use super::sessions::{Sessions, Worked};
use super::{Activity, StepEnd, Surroundings, add_figures};
use crate::trial::TrialError;

const SHOWN_CHARACTERS: usize = 80;

#[rustfmt::skip]
const METRICS: [Metric; 2] = [
    metric("job.time", Unit::Seconds, Lower, "job time", "from the first statement of the job to the end of the last one").main(),
    metric("job.slowest", Unit::Seconds, Lower, "slowest statement", "duration of the longest statement of the job").secondary(),
];

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

impl Sql {
    pub(crate) fn new(job: SqlJob, connector: Connector, clock: &Arc<dyn Clock>) -> Sql {
        let sessions = Sessions::new(connector, clock);
        Sql { job, sessions, clock: Arc::clone(clock), outcome: None }
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
        // Of one statement, both would be the same.
        let own = METRICS.into_iter().take(1 + usize::from(self.job.statements.len() > 1));
        own.chain(super::server_metrics(self.job.is_alone)).collect()
    }

    fn run(&mut self, at: &mut Surroundings<'_, '_, '_>) -> Result<(), TrialError> {
        let n = self.job.at_once.min(self.job.statements.len()).max(1);
        let (job, clock) = (&self.job, &*self.clock);
        let (next, ended) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        // One statement after the other, until none is left or one has failed.
        let worked = self.sessions.work(n, at, |connection, work| {
            loop {
                let idx = next.fetch_add(1, Ordering::Relaxed);
                let Some(statement) = job.statements.get(idx) else { break };
                if work.is_stopped() {
                    break;
                }
                let began = clock.now();
                if let Err(error) = connection.query(statement) {
                    let (n, statement) = (idx + 1, shown(statement));
                    work.fail(format!("failed at statement {n} (`{statement}`): {error}"));
                    break;
                }
                let took = clock.now().saturating_sub(began);
                lock(&ended).push((idx, took));
            }
        })?;
        let mut statements = std::mem::take(&mut *lock(&ended));
        statements.sort_unstable();
        let is_done = statements.len() == job.statements.len();
        let Worked { began, took, .. } = worked;
        let ended = worked.in_words(is_done);
        self.outcome = Some(Outcome { began, took, ended, is_done, statements });
        worked.result(&self.job.name, at)
    }

    fn add_to(&mut self, end: &mut StepEnd) {
        let Some(outcome) = &self.outcome else { return };
        if outcome.is_done {
            let slowest = outcome.statements.iter().map(|(_, took)| took.as_secs_f64());
            let slowest = slowest.reduce(f64::max).filter(|_| self.job.statements.len() > 1);
            add_figures(end, METRICS, [Some(outcome.took.as_secs_f64()), slowest]);
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
