//! A run of a script: through the lab, so that it leaves a record.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use dyno_database::Endpoint;
use dyno_sysbench::{Call, Host, Level, ScriptOption};
use dyno_units::{Clock, Nanoseconds, Seed};
use dyno_workload::catalog::WorkloadSpec;
use dyno_workload::lua::{LuaWorkload, NAME, Settings, Single};

use super::host::{Stop, Terminal, end_of};
use super::options::Options;
use super::output;
use super::reports::Reports;
use crate::commands::beside::{self, Folder, Interruption};
use crate::written::Written;
use crate::{End, lab, scripts, vocabulary};

pub(super) struct Script {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) text: String,
    pub(super) folder: Option<PathBuf>,
    pub(super) is_built_in: bool,
}

impl Script {
    /// The name without folders, as messages have it.
    pub(super) fn file_name(&self) -> String {
        let name = Path::new(&self.name).file_name();
        name.unwrap_or(self.name.as_ref()).to_string_lossy().into_owned()
    }
}

pub(super) struct Session {
    pub(super) options: Options,
    pub(super) script: Script,
    pub(super) settings: Arc<Settings>,
    /// The state of commands and hooks.
    pub(super) single: Single,
    pub(super) host: Arc<Terminal>,
    pub(super) endpoint: Endpoint,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) interruption: Interruption,
}

/// What the record keeps: the script, its options, and those of the tool on which the load depends.
pub(super) fn recorded(
    options: &Options,
    script: &Script,
    declared: Option<&[ScriptOption]>,
    modules: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let mut recorded = vec![
        ("script".to_owned(), script.name.clone()),
        ("script_sha256".to_owned(), scripts::digest(&script.text)),
        ("rand_type".to_owned(), options.text("rand_type").to_owned()),
        ("ps_mode".to_owned(), options.text("db_ps_mode").to_owned()),
    ];
    let digests = modules.into_iter().map(|(name, digest)| (format!("{name}_sha256"), digest));
    recorded.extend(digests);
    for option in declared.into_iter().flatten() {
        let given = options.unknown.iter().rev().find(|(name, ..)| *name == option.name);
        let given = given.map(|(_, text, _)| text.clone().unwrap_or_else(|| "on".to_owned()));
        let text = given.or_else(|| option.default.clone()).unwrap_or_default();
        recorded.push((option.name.clone(), dyno_units::redact_secrets(&text)));
    }
    if declared.is_none() {
        for (name, text, _) in &options.unknown {
            let text = dyno_units::redact_secrets(text.as_deref().unwrap_or_default());
            recorded.push((name.clone(), text));
        }
    }
    recorded
}

/// What decides about the random numbers of a thread.
pub(super) fn seed_of(settings: &Settings, tid: usize) -> [u64; 2] {
    let mut stream = Seed(settings.seed.unwrap_or(1)).derive("command", tid as u64).stream();
    [stream.next_u64(), stream.next_u64()]
}

/// What comes before the load; an end if the script's `init` has asked for it.
fn begin(session: &mut Session) -> Result<Option<End>, Stop> {
    let Session { options, script, settings, single, host, .. } = session;
    if !single.state().has_function("event") {
        let path = &script.path;
        return Err(host.fatal(&format!("cannot find the event() function in {path}")));
    }
    if single.state().has_function("init") {
        let end = end_of(settings, single.call(Call::Function("init")), false);
        if !matches!(end, End::Good) {
            return Ok(Some(end));
        }
    }
    host.notice(&output::header(options));
    host.notice(output::INITIALIZING);
    host.notice("\n");
    if let Some(connector) = &settings.connector
        && let Err(error) = connector()
    {
        host.log(Level::Fatal, &error.to_string());
        return Err(host.fatal("Thread initialization failed!"));
    }
    Ok(None)
}

pub(super) fn run(mut session: Session) -> Result<End, Stop> {
    if let Some(end) = begin(&mut session)? {
        return Ok(end);
    }
    let Session { options, script, settings, single, host, endpoint, clock, interruption } =
        session;
    let is_asked = options.record.is_some();
    let mut lab = lab::make_without_signals(None)?;
    // One flag for both, so that Ctrl-C ends a script's endless loop, too.
    lab.abort = host.abort.clone();
    lab.clock = Arc::clone(&clock);
    lab.checks_host = !options.no_record;
    let seconds = options.count("time");
    if seconds > 0 {
        let longest = Nanoseconds::from_secs(options.count("warmup_time") + seconds + PATIENCE_S);
        let _ = host.limit.set((Arc::clone(&clock), longest));
    }
    let of_workload = Arc::clone(&settings);
    lab.catalog.add(WorkloadSpec::new(NAME, "A script of sysbench", Vec::new(), move |input| {
        Ok(Arc::new(LuaWorkload::new(Settings::clone(&of_workload), input.request)))
    }));
    let server = settings.connector.is_some().then_some(&endpoint);
    let study = beside::read(&study(&options, &script, server), server, &lab)?;
    let folder = Folder::choose("sysbench", options.record.as_deref(), options.no_record, &lab)?;
    let mut reports = Reports::new(&options, &settings, &host, Arc::clone(&clock), single);
    let (measured, failure) =
        beside::measure(&lab, &study, &folder, &mut |second| reports.on_second(second < 0));
    let interrupted = interruption.at();
    let ended = interrupted.unwrap_or_else(|| clock.now());
    host.end_ns.store(u64::MAX, Relaxed);
    // Whatever became of the record, what was measured is printed.
    let has_begun = settings.statistics.span().is_some();
    let mut unrecorded = measured.err();
    if let Some(error) = unrecorded.take_if(|_| !has_begun) {
        return Err(error.into());
    }
    if host.is_broken.load(Relaxed) {
        if !host.has_started.load(Relaxed) {
            host.log(Level::Fatal, "Thread initialization failed!");
        }
        return Ok(match host.exit_code.load(Relaxed) {
            0 => End::Good,
            code if code < 0 => End::Bad,
            code => End::Exit(code as u8),
        });
    }
    // Clients may end by themselves before their time is over.
    let have_ended = settings.statistics.snapshot().running == 0;
    if let Some(message) = failure.filter(|_| !have_ended && interrupted.is_none()) {
        host.log(Level::Fatal, &message);
        return Ok(End::Bad);
    }
    if interrupted.is_some() && !has_begun {
        return Ok(End::Interrupted);
    }
    let mut single = reports.finish(ended, interrupted.is_some());
    if single.state().has_function("done") {
        end_of(&settings, single.call(Call::Function("done")), false);
    }
    single.end_reports();
    if let Some(error) = unrecorded {
        let is_good = beside::tell_of_failed_record(&error, is_asked);
        return Ok(if is_good { End::Good } else { End::Bad });
    }
    beside::tell_of_record(folder.kept().as_deref(), is_asked);
    Ok(End::Good)
}

/// How many seconds events in flight are awaited when the time is over.
const PATIENCE_S: u64 = 5;

/// Longest time of a run that nothing else ends.
const LONGEST_S: u64 = 30 * 24 * 3600;

/// Most clients that have a worker each, as sysbench has a thread for each: on a busy machine, a program with few
/// threads is given less of the CPUs than one with many.
const MOST_WORKERS: u64 = 256;

fn study(options: &Options, script: &Script, server: Option<&Endpoint>) -> Written {
    let mut written = Written::new(&format!("sysbench: {}", script.name));
    written.table(&["database", "server"]);
    match server {
        None => written.fixed("product", "null-mysql"),
        Some(endpoint) => written.fixed("url", beside::url(endpoint)),
    }
    written.table(&["workload", NAME]);
    written.table(&["design"]);
    written.fixed("repetitions", 1);
    for key in ["rest", "statement_timeout"] {
        written.fixed(key, "0s");
    }
    written.fixed("retries", 0);
    let threads = options.count("threads");
    written.fixed("clients", threads as i64);
    written.fixed("warm_up", format!("{}s", options.count("warmup_time")));
    if options.no_record {
        written.fixed("probes_off", vocabulary::probes());
    }
    // Clients of one worker share the arrivals of a schedule.
    if threads <= MOST_WORKERS && options.count("rate") == 0 {
        written.fixed("workers", threads.max(1) as i64);
    }
    if options.count("events") == 0 {
        let seconds = options.count("time");
        let seconds = if seconds == 0 { LONGEST_S } else { seconds };
        written.fixed("duration", format!("{seconds}s"));
        let rate = options.count("rate");
        if rate > 0 {
            written.fixed("rate", rate as i64);
        }
    }
    written
}
