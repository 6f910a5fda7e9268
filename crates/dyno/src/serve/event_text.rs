//! Events of a run as text, for the live page.

use dyno_record::{EventKind, Fault, TrialPlan};
use dyno_units::ByteCount;

use super::runs::About;
use crate::commands::{time, within_limit};

/// Without a full stop.
pub(super) fn in_words(event: &EventKind) -> String {
    match event {
        EventKind::TrialBegan { .. } => "the trial began".to_owned(),
        EventKind::TrialPhaseBegan { phase } => format!("{phase} began"),
        EventKind::TrialPhaseEnded { phase: what, took_s, is_done }
        | EventKind::ActivityEnded { activity: what, took_s, is_done, .. } => {
            let ending = if *is_done { "ended" } else { "failed" };
            format!("{what} {ending} after {}", time_s(*took_s))
        }
        EventKind::PhaseBegan { name, phase, .. } => format!("{name}: {phase} began"),
        EventKind::StepEnded { throughput, p95_us, .. } => {
            let p95 = time(*p95_us);
            format!("the measurement ended: {throughput:.1} transactions/s, p95 {p95}")
        }
        EventKind::LoadProbed { number, level, throughput, broken_by, .. } => {
            let ending = within_limit(broken_by.as_deref());
            format!(
                "load {number} of the search, {level}: {throughput:.1} transactions/s, {ending}"
            )
        }
        EventKind::Audited { n_passed, failed, skipped, took_s, .. } => {
            audited(*n_passed, (failed, skipped), *took_s)
        }
        EventKind::Rested { seconds } => format!("{} of idle time began", time_s(*seconds)),
        EventKind::WaitBegan { wait, limit_s } => {
            format!("{wait} began, for at most {}", time_s(*limit_s))
        }
        EventKind::WaitEnded { wait, took_s, paid, notes } => {
            let state = match paid {
                Some(true) => "the engine had caught up",
                Some(false) => "the engine had not caught up",
                None => "whether the engine had caught up is unknown",
            };
            let all: Vec<&str> =
                [state].into_iter().chain(notes.iter().map(String::as_str)).collect();
            format!("{wait} ended after {}: {}", time_s(*took_s), all.join("; "))
        }
        EventKind::TrialFinished { .. } => "the trial finished".to_owned(),
        EventKind::TrialFailed { message, .. } => format!("the trial failed: {message}"),
        EventKind::CleanUpFailed { message, .. } => format!("the clean-up failed: {message}"),
        EventKind::TrialAbandoned { .. } => "the trial was stopped".to_owned(),
        EventKind::VariantSettled { variant, repetitions, why } => {
            format!("{variant} is decided after {repetitions} repetitions: {why}")
        }
        EventKind::TrialSkipped { trial, variant, why, .. } => {
            format!("trial {trial} of {variant} is skipped: {why}")
        }
        EventKind::BlockVoided { block, why } => {
            format!(
                "block {block} is discarded, to be repeated after the other trials, because the host was busy: \
                 {why}"
            )
        }
        EventKind::LeftoverEnded { what } => format!("cleaned up: {what}"),
        EventKind::Noted { message } => message.clone(),
        other => host_in_words(other),
    }
}

fn host_in_words(event: &EventKind) -> String {
    match event {
        EventKind::KernelSet { settings } => {
            let all: Vec<String> =
                settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            format!("the kernel was set to {}", all.join(", "))
        }
        EventKind::VolumeLimited { volume, limit: Some(limit) } => {
            format!("volume {volume} was limited to {limit}")
        }
        EventKind::VolumeLimited { volume, limit: None } => {
            format!("the limit of volume {volume} was lifted")
        }
        EventKind::VolumeDipped { volume, start_s, length_s, limit, .. } => format!(
            "volume {volume} was limited to {limit} from second {start_s:.1} of the measurement on, for {}",
            time_s(*length_s)
        ),
        EventKind::FaultMade { fault, .. } => fault_in_words(fault),
        EventKind::CachesDropped { host, before_bytes, after_bytes } => format!(
            "the page cache{} was emptied: {} before, {} after",
            host.as_ref().map(|host| format!(" of host {host}")).unwrap_or_default(),
            ByteCount(*before_bytes),
            ByteCount(*after_bytes)
        ),
        of_data => data_in_words(of_data),
    }
}

fn fault_in_words(fault: &Fault) -> String {
    let Fault { name, kind, member, began_s, ended_s, started_s, answered_s, .. } = fault;
    let done = match kind.as_str() {
        "kill" => "was killed",
        "stop" => "was stopped",
        "isolate" => "was isolated",
        _ => "was shut down",
    };
    let mut text =
        format!("fault {name}: {member} {done} at second {began_s:.1} of the measurement");
    let mut add = |what: &str, at: &Option<f64>| {
        text.extend(at.map(|at| format!(", {what} at second {at:.1}")));
    };
    match kind.as_str() {
        "stop" => add("resumed", ended_s),
        _ => {
            add("was started again", started_s);
            add("answered", answered_s);
        }
    }
    text
}

fn data_in_words(event: &EventKind) -> String {
    match event {
        EventKind::ServerReady { server, took_s, .. } => {
            format!("{server} was ready after {}", time_s(*took_s))
        }
        EventKind::Populated { rows, took_s } => {
            format!("{rows} rows were populated in {}", time_s(*took_s))
        }
        EventKind::PopulateProgressed { rows, rows_total } => {
            format!("{rows} of {rows_total} rows are populated")
        }
        EventKind::DataSetKept { key, bytes } => {
            format!("the data set was kept as {key} ({})", ByteCount(*bytes))
        }
        EventKind::DataSetReused { key, rows, took_s, .. } => {
            format!("the data set {key} ({rows} rows) was copied in {}", time_s(*took_s))
        }
        // Reported live, never written to the record's events.
        _ => String::new(),
    }
}

fn audited(n_passed: usize, (failed, skipped): (&[String], &[String]), took_s: f64) -> String {
    let n = n_passed.saturating_add(failed.len());
    let not = match skipped {
        [] => String::new(),
        some => format!("; not checked: {}", some.join("; ")),
    };
    match failed {
        [] => format!("audit: {n} of {n} checks passed, in {}{not}", time_s(took_s)),
        _ => format!(
            "audit FAILED: {} of {n} checks failed: {}{not}",
            failed.len(),
            failed.join("; ")
        ),
    }
}

fn time_s(seconds: f64) -> String {
    time(seconds * 1e6)
}

/// None for a folder that the plan does not know.
pub(super) fn variant<'a>(run: &'a About, folder: &str) -> Option<&'a str> {
    planned(run, folder).map(|(_, variant)| variant)
}

/// `MariaDB, trial 3, repetition 2`; none for a folder that the plan does not know.
pub(super) fn trial(run: &About, folder: &str) -> Option<String> {
    let (plan, variant) = planned(run, folder)?;
    Some(format!("{variant}, trial {}, repetition {}", plan.number, plan.repetition))
}

fn planned<'a>(run: &'a About, folder: &str) -> Option<(&'a TrialPlan, &'a str)> {
    let number: u32 = folder.split('-').next()?.parse().ok()?;
    let plan = run.trials.iter().find(|plan| plan.number == number)?;
    Some((plan, run.variants.get(plan.variant)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_reported_in_words_with_units() {
        let check = |event: &str, expected: &str| {
            let event: EventKind = serde_json::from_str(event).expect("it is an event");
            assert_eq!(in_words(&event), expected);
        };
        check(
            r#"{"event":"audited","n_passed":2,"failed":[],"took_s":0.000009094}"#,
            "audit: 2 of 2 checks passed, in 9.09 µs",
        );
        check(
            r#"{"event":"audited","n_passed":1,"failed":[],"skipped":["a, because b"],"took_s":1}"#,
            "audit: 1 of 1 checks passed, in 1 s; not checked: a, because b",
        );
        check(
            r#"{"event":"audited","n_passed":1,"failed":["rows: expected 3, found 2"],"took_s":1}"#,
            "audit FAILED: 1 of 2 checks failed: rows: expected 3, found 2",
        );
        check(
            r#"{"event":"phase_began","step":0,"name":"4 clients","phase":"measure"}"#,
            "4 clients: measure began",
        );
        check(
            r#"{"event":"step_ended","step":0,"throughput":38.12,"p95_us":36000}"#,
            "the measurement ended: 38.1 transactions/s, p95 36 ms",
        );
        check(
            r#"{"event":"trial_phase_ended","phase":"fill","took_s":2,"is_done":false}"#,
            "fill failed after 2 s",
        );
        check(r#"{"event":"noted","message":"a note"}"#, "a note");
        check(
            r#"{"event":"audited","n_passed":18446744073709551615,"failed":["x"],"took_s":1e300}"#,
            "audit FAILED: 1 of 18446744073709551615 checks failed: x",
        );
    }
}
