//! A run of scripts: through the lab, so that it leaves a record.

use std::sync::Arc;

use dyno_database::Endpoint;
use dyno_units::{Clock, Nanoseconds, locked};
use dyno_workload::catalog::WorkloadSpec;
use dyno_workload::pgbench::{NAME, PgBench, ScriptTotals, Settings, Statistics};

use super::host::Terminal;
use super::options::Options;
use super::results::{self, Reported, TableFacts};
use crate::commands::beside::{self, Folder, Interruption};
use crate::written::Written;
use crate::{End, lab, scripts, terminal};

fn failed(message: &str) -> End {
    terminal::say(&format!("pgbench: error: {message}"));
    End::Bad
}

/// Runs the scripts, and prints the results.
pub(super) fn run(
    options: &Options,
    endpoint: &Endpoint,
    tables: TableFacts,
    seed: u64,
) -> anyhow::Result<End> {
    let is_asked = options.record.is_some();
    let mut lab = lab::make_without_signals(None)?;
    let interruption = Interruption::listen(&lab.abort, &lab.clock)?;
    lab.checks_host = !options.no_record;
    let shift_us = (lab.clock.unix_millis() * 1000).saturating_sub(lab.clock.now().0 / 1000);
    let stop = options.exit_on_abort.then(|| lab.abort.clone());
    let host = match Terminal::new(options, stop, (std::process::id(), shift_us)) {
        Ok(host) => Arc::new(host),
        Err(message) => return Ok(failed(&message)),
    };
    let statistics = Arc::new(Statistics::default());
    let settings = settings(options, tables, seed, &statistics);
    let of_scripts = Arc::clone(&host);
    lab.catalog.add(WorkloadSpec::new(NAME, "Scripts of pgbench", Vec::new(), move |input| {
        Ok(Arc::new(PgBench::new(settings.clone(), Arc::clone(&of_scripts) as _, input.request)))
    }));
    let study = beside::read(&study(options, endpoint, seed), Some(endpoint), &lab)?;
    let folder = Folder::choose("pgbench", options.record.as_deref(), options.no_record, &lab)?;
    let mut progress = Progress { options, clock: lab.clock.as_ref(), last: None };
    let (measured, failure) =
        beside::measure(&lab, &study, &folder, &mut |_| progress.on_interval(&statistics));
    // Whatever became of the record, what was measured is printed.
    let (span, interrupted) = (statistics.span(), interruption.at());
    if let (Err(error), None) = (&measured, span) {
        return Ok(failed(&format!("{error:#}")));
    }
    let stopped_by = *locked(&host.stopped_by);
    if let Some(thread) = stopped_by {
        failed(&format!("Run was aborted due to an error in thread {thread}"));
        return Ok(End::Inconclusive);
    }
    let n_aborted = statistics.n_aborted();
    if let Some(message) = failure
        && n_aborted == 0
        && interrupted.is_none()
    {
        let end = failed(&message);
        beside::tell_of_record(folder.kept().as_deref(), is_asked);
        return Ok(end);
    }
    let ended = span.map_or(lab.clock.now(), |(_, ended)| ended);
    if let Err(message) = host.finish(ended.0) {
        failed(&message);
    }
    if span.is_some() || interrupted.is_none() {
        terminal::out(&results::text(options, tables, &statistics, interrupted));
    }
    let record = match measured {
        Ok(()) => folder.kept(),
        Err(error) if beside::tell_of_failed_record(&error, is_asked) => None,
        Err(_) => return Ok(failed("the record that was asked for is not whole")),
    };
    if n_aborted > 0 {
        failed("Run was aborted; the above results are incomplete.");
    }
    beside::tell_of_record(record.as_deref(), is_asked);
    // The exit code 2, as pgbench has it.
    Ok(if n_aborted > 0 { End::Inconclusive } else { End::Good })
}

fn settings(
    options: &Options,
    tables: TableFacts,
    seed: u64,
    statistics: &Arc<Statistics>,
) -> Settings {
    let has_quota = options.duration == 0;
    let given = &options.settings;
    Settings {
        name: NAME.into(),
        scale: tables.scale,
        seed: Some(seed),
        transactions: has_quota.then_some(options.transactions.unsigned_abs()),
        rate: given.rate.filter(|_| has_quota),
        is_paced: given.rate.is_some(),
        measures: options.progress > 0
            || given.rate.is_some()
            || given.latency_limit_us > 0
            || given.scripts.len() > 1,
        options: recorded(options, tables),
        statistics: Arc::clone(statistics),
        ..given.clone()
    }
}

fn recorded(options: &Options, tables: TableFacts) -> Vec<(String, String)> {
    let mut recorded = vec![
        ("protocol".to_owned(), options.settings.protocol.word().to_owned()),
        ("scale".to_owned(), tables.scale.to_string()),
        ("max_tries".to_owned(), options.settings.max_tries.to_string()),
    ];
    for (nth, script) in options.settings.scripts.iter().enumerate() {
        let lines = script.script.commands.iter().map(|command| match &command.action {
            dyno_pgbench::Action::Sql(sql) => sql.text(),
            _ => command.line.clone(),
        });
        let digest = scripts::digest(&lines.collect::<Vec<_>>().join("\n"));
        let (title, digest) = (&script.script.title, &digest[..16]);
        let what = format!("{title}@{} (sha256 {digest}…)", script.weight);
        recorded.push((format!("script_{}", nth + 1), what));
    }
    for (name, value) in &options.settings.defines {
        recorded.push((format!("define_{name}"), dyno_units::redact_secrets(value)));
    }
    let Settings { connects, latency_limit_us, rate, .. } = options.settings;
    let limit_ms = latency_limit_us as f64 / 1e3;
    let flags = [
        ("connect", connects.then(|| "each transaction".to_owned())),
        ("latency_limit_ms", (latency_limit_us > 0).then(|| limit_ms.to_string())),
        ("rate", rate.map(|rate| rate.to_string())),
    ];
    recorded.extend(flags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    recorded
}

fn study(options: &Options, endpoint: &Endpoint, seed: u64) -> Written {
    let mut written = Written::new(&format!("pgbench: {}", options.title()));
    written.table(&["database", "postgresql"]);
    written.fixed("url", beside::url(endpoint));
    written.table(&["workload", NAME]);
    written.table(&["design"]);
    written.fixed("repetitions", 1);
    for key in ["rest", "warm_up", "statement_timeout"] {
        written.fixed(key, "0s");
    }
    written.fixed("retries", 0);
    written.fixed("clients", options.clients);
    written.fixed("workers", options.threads);
    written.fixed("seed", (seed >> 1) as i64);
    if options.duration > 0 {
        written.fixed("duration", format!("{}s", options.duration));
        if let Some(rate) = options.settings.rate {
            written.fixed("rate", rate);
        }
    }
    written
}

struct Progress<'a> {
    options: &'a Options,
    clock: &'a dyn Clock,
    last: Option<Reported>,
}

/// How much earlier than the full time an interval may end.
const EARLY: Nanoseconds = Nanoseconds::from_millis(200);

impl Progress<'_> {
    fn on_interval(&mut self, statistics: &Statistics) {
        let every = Nanoseconds::from_secs(self.options.progress.unsigned_abs());
        let Some((began, _)) = statistics.span().filter(|_| self.options.progress > 0) else {
            return;
        };
        let at = self.clock.now();
        let last = self.last.unwrap_or(Reported { at: began, total: ScriptTotals::default() });
        if at + EARLY < last.at + every {
            self.last = Some(last);
            return;
        }
        let mut total = ScriptTotals::default();
        statistics.scripts().iter().for_each(|script| total.add(script));
        let now = Reported { at, total };
        let time = match self.options.progress_timestamp {
            true => format!("{:.3} s", self.clock.unix_millis() as f64 / 1e3),
            false => format!("{:.1} s", (at - began).as_secs_f64()),
        };
        terminal::say(&results::progress(self.options, &time, &last, &now));
        self.last = Some(now);
    }
}
