//! Statements with an end: each is sent when a connection of the job is free, and timed. A
//! statement has no time limit; if it must stop early, another connection cancels it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dyno_units::Direction::Lower;
use dyno_units::{Clock, Metric, Unit, clean_text, locked, metric, redact_secrets};
use dyno_workload::Connector;

use super::job::{JobActivity, figures};
use super::sessions::Sessions;

const SHOWN_CHARACTERS: usize = 80;

#[rustfmt::skip]
const METRICS: [Metric; 2] = [
    metric("job.time", Unit::Seconds, Lower, "job time", "from the first statement of the job to the end of the last one").main(),
    metric("job.slowest", Unit::Seconds, Lower, "slowest statement", "duration of the longest statement of the job").secondary(),
];

/// A statement as a message shows it: one line, without secrets, cut.
pub(crate) fn shown(statement: &str) -> String {
    let line =
        clean_text(&redact_secrets(&statement.split_whitespace().collect::<Vec<_>>().join(" ")));
    match line.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

pub(crate) fn sql(
    statements: Vec<String>,
    at_once: usize,
    (connector, clock): (Connector, &Arc<dyn Clock>),
) -> JobActivity {
    let sessions = Sessions::new(connector, clock);
    // Of one statement, both would be the same.
    let metrics = METRICS[..1 + usize::from(statements.len() > 1)].to_vec();
    JobActivity::new("sql", metrics, move |name, at| {
        let clock = &*sessions.clock;
        let n = at_once.min(statements.len()).max(1);
        let (next, ended) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        // One statement after the other, until none is left or one has failed.
        let worked = sessions.work(n, at, |connection, work| {
            loop {
                let idx = next.fetch_add(1, Ordering::Relaxed);
                let Some(statement) = statements.get(idx) else { break };
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
                locked(&ended).push((idx, took.as_secs_f64()));
            }
        })?;
        let mut times = std::mem::take(&mut *locked(&ended));
        times.sort_unstable_by_key(|(idx, _)| *idx);
        let is_done = times.len() == statements.len();
        let slowest = times.iter().map(|(_, took)| *took).reduce(f64::max);
        let values = [Some(worked.took.as_secs_f64()), slowest.filter(|_| statements.len() > 1)];
        let figures = if is_done { figures(METRICS, values) } else { Vec::new() };
        let shown =
            |(idx, took): &(usize, f64)| format!("{took:.3} s: {}", shown(&statements[*idx]));
        let output = times.iter().map(shown).collect();
        Ok(worked.into_end((name, at), is_done, (figures, output)))
    })
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
