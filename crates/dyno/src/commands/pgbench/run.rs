//! A run of scripts: through the lab, so that it leaves a record.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use dyno_database::Endpoint;
use dyno_lab::Lab;
use dyno_record::EventKind;
use dyno_study::Study;
use dyno_units::{Clock, Nanoseconds};
use dyno_workload::Workload;
use dyno_workload::catalog::{Catalog, WorkloadSpec};
use dyno_workload::pgbench::{NAME, PgBench, ScriptTotals, Settings, Statistics};
use sha2::{Digest, Sha256};

use super::host::Terminal;
use super::options::Options;
use super::results::{self, Reported, TableFacts};
use crate::commands::beside::{self, Folder, Interruption};
use crate::written::Written;
use crate::{lab, terminal, vocabulary};

pub(super) enum Ended {
    Well,
    Aborted,
    /// It was ended by the first client that was aborted; there are no results.
    Stopped,
    Failed(String),
}

/// Runs the scripts, prints the results, and returns where the record is.
pub(super) fn run(
    options: &Options,
    endpoint: &Endpoint,
    tables: TableFacts,
    seed: u64,
) -> anyhow::Result<(Ended, Option<PathBuf>)> {
    let mut lab = lab::make_without_signals(None)?;
    let interruption = Interruption::listen(&lab.abort, &lab.clock)?;
    lab.checks_host = !options.no_record;
    let shift_us = (lab.clock.unix_millis() * 1000).saturating_sub(lab.clock.now().0 / 1000);
    let mut host = match Terminal::new(options, std::process::id(), shift_us) {
        Ok(host) => host,
        Err(message) => return Ok((Ended::Failed(message), None)),
    };
    host.stop = options.exit_on_abort.then(|| lab.abort.clone());
    let host = Arc::new(host);
    let statistics = Arc::new(Statistics::default());
    lab.catalog = catalog(options, tables, seed, (&host, &statistics));
    let (study, source) = study(options, endpoint, seed, &lab)?;
    let folder = Folder::choose(
        "pgbench",
        options.record.as_deref().map(Path::new),
        options.no_record,
        &lab,
    )?;
    let mut failure = None;
    let mut progress = Progress::new(options, lab.clock.as_ref());
    let place = (&study, source.as_str());
    let measured = beside::measure(&lab, place, folder.path(), &mut |event| match &event.kind {
        EventKind::TrialFailed { message, .. } => failure = Some(message.clone()),
        EventKind::IntervalEnded { .. } => progress.on_interval(&statistics),
        _ => {}
    });
    // Whatever became of the record, what was measured is printed.
    let (span, interrupted) = (statistics.span(), interruption.at());
    if let (Err(error), None) = (&measured, span) {
        return Ok((Ended::Failed(format!("{error:#}")), None));
    }
    let stopped_by = *host.stopped_by.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(thread) = stopped_by {
        terminal::say(&format!(
            "pgbench: error: Run was aborted due to an error in thread {thread}"
        ));
        return Ok((Ended::Stopped, None));
    }
    let n_aborted = statistics.n_aborted();
    if let Some(message) = failure
        && n_aborted == 0
        && interrupted.is_none()
    {
        return Ok((Ended::Failed(message), folder.kept()));
    }
    let ended = span.map_or(lab.clock.now(), |(_, ended)| ended);
    if let Err(message) = host.finish(ended.0) {
        terminal::say(&format!("pgbench: error: {message}"));
    }
    if span.is_some() || interrupted.is_none() {
        terminal::out(&results::text(options, tables, &statistics, interrupted));
    }
    let ended = if n_aborted > 0 { Ended::Aborted } else { Ended::Well };
    match measured {
        Ok(()) => Ok((ended, folder.kept())),
        Err(error) if beside::tell_of_failed_record(&error, options.record.is_some()) => {
            Ok((ended, None))
        }
        Err(_) => {
            Ok((Ended::Failed("the record that was asked for is not whole".to_owned()), None))
        }
    }
}

fn catalog(
    options: &Options,
    tables: TableFacts,
    seed: u64,
    (host, statistics): (&Arc<Terminal>, &Arc<Statistics>),
) -> Catalog {
    let has_quota = options.duration == 0;
    let settings = Settings {
        name: NAME.into(),
        scripts: options.scripts.clone(),
        names: options.names.clone(),
        protocol: options.protocol,
        defines: options.defines.clone(),
        scale: tables.scale,
        seed: Some(seed),
        tables: None,
        transactions: has_quota.then_some(options.transactions.unsigned_abs()),
        rate: options.rate.filter(|_| has_quota),
        is_paced: options.rate.is_some(),
        latency_limit_us: options.latency_limit_us,
        max_tries: options.max_tries,
        continues_on_error: options.continue_on_error,
        connects: options.connects,
        measures: options.progress > 0
            || options.rate.is_some()
            || options.latency_limit_us > 0
            || options.scripts.len() > 1,
        measures_commands: options.per_command,
        is_verbose: options.is_verbose,
        is_debugging: options.is_debugging,
        options: recorded(options, tables),
        host: Arc::clone(host) as _,
        statistics: Arc::clone(statistics),
    };
    let mut catalog = Catalog::built_in();
    let summary = "Scripts of pgbench";
    catalog.add(WorkloadSpec::new(NAME, summary, Vec::new(), move |input| {
        Ok(Arc::new(PgBench::new(settings.clone(), input.request)) as Arc<dyn Workload>)
    }));
    catalog
}

fn recorded(options: &Options, tables: TableFacts) -> Vec<(String, String)> {
    let mut recorded = vec![
        ("protocol".to_owned(), options.protocol.word().to_owned()),
        ("scale".to_owned(), tables.scale.to_string()),
        ("max_tries".to_owned(), options.max_tries.to_string()),
    ];
    for (nth, script) in options.scripts.iter().enumerate() {
        let lines = script.script.commands.iter().map(|command| match &command.action {
            dyno_pgbench::Action::Sql(sql) => sql.text(),
            _ => command.line.clone(),
        });
        let digest = Sha256::digest(lines.collect::<Vec<_>>().join("\n"));
        let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let weight = script.weight;
        recorded.push((
            format!("script_{}", nth + 1),
            format!("{}@{weight} (sha256 {digest}…)", script.script.title),
        ));
    }
    for (name, value) in &options.defines {
        recorded.push((format!("define_{name}"), dyno_units::redact_secrets(value)));
    }
    let mut flag = |name: &str, value: String| recorded.push((name.to_owned(), value));
    if options.connects {
        flag("connect", "each transaction".to_owned());
    }
    if options.latency_limit_us > 0 {
        flag("latency_limit_ms", (options.latency_limit_us as f64 / 1e3).to_string());
    }
    if let Some(rate) = options.rate {
        flag("rate", rate.to_string());
    }
    recorded
}

fn study(
    options: &Options,
    endpoint: &Endpoint,
    seed: u64,
    lab: &Lab,
) -> anyhow::Result<(Study, String)> {
    let title = match &options.scripts[..] {
        [script] => script.script.title.clone(),
        _ => "multiple scripts".to_owned(),
    };
    let mut written = Written::new(&format!("pgbench: {title}"));
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
        if let Some(rate) = options.rate {
            written.fixed("rate", rate);
        }
    }
    let source = written.text().to_owned();
    let words = vocabulary::vocabulary_of(&lab.products, &lab.catalog);
    let mut study = written.read_with(&words).context("the run cannot be planned")?;
    beside::put_password(&mut study, endpoint)?;
    Ok((study, source))
}

struct Progress<'a> {
    options: &'a Options,
    clock: &'a dyn Clock,
    last: Option<Reported>,
}

/// How much earlier than the full time an interval may end.
const EARLY: Nanoseconds = Nanoseconds::from_millis(200);

impl<'a> Progress<'a> {
    fn new(options: &'a Options, clock: &'a dyn Clock) -> Progress<'a> {
        Progress { options, clock, last: None }
    }

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
