//! A run of a script: through the lab, so that it leaves a record.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use anyhow::Context;
use dyno_lab::Lab;
use dyno_record::EventKind;
use dyno_study::Study;
use dyno_sysbench::{Call, Host, Level, ScriptOption};
use dyno_units::{Clock, Nanoseconds, Seed};
use dyno_workload::Workload;
use dyno_workload::catalog::{Catalog, WorkloadSpec};
use dyno_workload::lua::{LuaWorkload, NAME, Settings};

use super::options::Options;
use super::reports::Reports;
use super::{Script, Session, Stop, commands, output};
use crate::commands::beside::{self, Folder};
use crate::written::Written;
use crate::{End, lab, scripts, vocabulary};

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
        ("rand_type".to_owned(), options.text("rand_type")),
        ("ps_mode".to_owned(), options.text("db_ps_mode")),
    ];
    for (name, digest) in modules {
        recorded.push((format!("{name}_sha256"), digest));
    }
    for option in declared.into_iter().flatten() {
        let given = options.unknown.iter().rev().find(|(name, ..)| *name == option.name);
        let text = match given {
            Some((_, text, _)) => text.clone().unwrap_or_else(|| "on".to_owned()),
            None => option.default.clone().unwrap_or_default(),
        };
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

/// How a run ends that a script has broken off.
#[derive(Default)]
struct Broken {
    is_broken: AtomicBool,
    has_started: AtomicBool,
    /// The exit code that the script wants; less than 0 if it wants none.
    exit_code: AtomicI64,
}

pub(super) fn run(session: Session) -> Result<End, Stop> {
    let Session { options, script, settings, mut single, host, endpoint, clock, interruption } =
        session;
    let is_asked = options.record.is_some();
    if !single.state().has_function("event") {
        let text = format!("cannot find the event() function in {}", script.path);
        host.log(Level::Fatal, &text);
        return Err(Stop::Said);
    }
    if single.state().has_function("init") {
        let end = commands::end_of(&settings, single.call(Call::Function("init")), false);
        if !matches!(end, End::Good) {
            return Ok(end);
        }
    }
    host.notice(&output::header(&options));
    host.notice(output::INITIALIZING);
    host.notice("\n");
    if let Some(connector) = &settings.connector
        && let Err(error) = connector()
    {
        host.log(Level::Fatal, &error.to_string());
        host.log(Level::Fatal, "Thread initialization failed!");
        return Err(Stop::Said);
    }
    let mut lab = lab::make_without_signals(None)?;
    // One flag for both, so that Ctrl-C ends a script's endless loop, too.
    lab.abort = host.abort.clone();
    lab.clock = Arc::clone(&clock);
    lab.checks_host = !options.no_record;
    let broken = Arc::new(Broken::default());
    let settings = Arc::new(with_ends(&settings, (&host, &clock), &broken, &options));
    lab.catalog = catalog(&settings);
    let (study, source) =
        study(&options, &script, (&endpoint, settings.connector.is_some()), &lab)?;
    let folder = Folder::choose(
        "sysbench",
        options.record.as_deref().map(Path::new),
        options.no_record,
        &lab,
    )?;
    let mut failure = None;
    let mut reports = Reports::new(&options, &settings, &host, Arc::clone(&clock), single);
    let place = (&study, source.as_str());
    let measured = beside::measure(&lab, place, folder.path(), &mut |event| match &event.kind {
        EventKind::TrialFailed { message, .. } => failure = Some(message.clone()),
        EventKind::IntervalEnded { second, .. } => reports.on_second(*second < 0),
        _ => {}
    });
    let interrupted = interruption.at();
    let ended = interrupted.unwrap_or_else(|| clock.now());
    host.end_scripts_at(&clock, None);
    // Whatever became of the record, what was measured is printed.
    let has_begun = settings.statistics.span().is_some();
    let mut unrecorded = measured.err();
    if let Some(error) = unrecorded.take_if(|_| !has_begun) {
        return Err(error.into());
    }
    if broken.is_broken.load(Relaxed) {
        if !broken.has_started.load(Relaxed) {
            host.log(Level::Fatal, "Thread initialization failed!");
        }
        return Ok(match broken.exit_code.load(Relaxed) {
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
        commands::end_of(&settings, single.call(Call::Function("done")), false);
    }
    single.end_reports();
    if let Some(error) = unrecorded {
        let is_good = beside::tell_of_failed_record(&error, is_asked);
        return Ok(if is_good { End::Good } else { End::Bad });
    }
    beside::tell_of_record(folder.kept().as_deref(), is_asked);
    Ok(End::Good)
}

/// The settings with what happens when clients begin and when one breaks off.
fn with_ends(
    settings: &Arc<Settings>,
    (host, clock): (&Arc<super::Terminal>, &Arc<dyn Clock>),
    broken: &Arc<Broken>,
    options: &Options,
) -> Settings {
    let seconds = options.count("time");
    let longest = (seconds > 0).then(|| options.count("warmup_time") + seconds + PATIENCE_S);
    let (of_start, notes, clock) = (Arc::clone(broken), Arc::clone(host), Arc::clone(clock));
    let started = move || {
        let end = longest.map(|seconds| clock.now() + Nanoseconds::from_secs(seconds));
        notes.end_scripts_at(&clock, end);
        // Where one could not be prepared, none begins.
        if !of_start.is_broken.load(Relaxed) {
            of_start.has_started.store(true, Relaxed);
            notes.notice("Threads started!\n\n");
        }
    };
    let (of_end, stops) = (Arc::clone(broken), Arc::clone(host));
    let breaks = move |exit_code: Option<i32>| {
        of_end.exit_code.store(exit_code.map_or(-1, i64::from), Relaxed);
        of_end.is_broken.store(true, Relaxed);
        stops.is_broken.store(true, Relaxed);
        stops.abort.raise();
    };
    Settings {
        started: Arc::new(started),
        broken: Arc::new(breaks),
        limit: (seconds > 0).then(|| Nanoseconds::from_secs(seconds)),
        ..Settings::clone(settings)
    }
}

fn catalog(settings: &Arc<Settings>) -> Catalog {
    let mut catalog = Catalog::built_in();
    let settings = Arc::clone(settings);
    catalog.add(WorkloadSpec::new(NAME, "A script of sysbench", Vec::new(), move |input| {
        let settings = Settings::clone(&settings);
        Ok(Arc::new(LuaWorkload::new(settings, input.request)) as Arc<dyn Workload>)
    }));
    catalog
}

/// How many seconds events in flight are awaited when the time is over.
const PATIENCE_S: u64 = 5;

/// Longest time of a run that nothing else ends.
const LONGEST_S: u64 = 30 * 24 * 3600;

/// Most clients that have a worker each, as sysbench has a thread for each: on a busy machine, a program with few
/// threads is given less of the CPUs than one with many.
const MOST_WORKERS: u64 = 256;

fn study(
    options: &Options,
    script: &Script,
    (endpoint, has_server): (&dyno_database::Endpoint, bool),
    lab: &Lab,
) -> anyhow::Result<(Study, String)> {
    let mut written = Written::new(&format!("sysbench: {}", script.name));
    written.table(&["database", "server"]);
    match has_server {
        false => written.fixed("product", "null-mysql"),
        true => written.fixed("url", beside::url(endpoint)),
    };
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
    let source = written.text().to_owned();
    let words = vocabulary::vocabulary_of(&lab.products, &lab.catalog);
    let mut study = written.read_with(&words).context("the run cannot be planned")?;
    if has_server {
        beside::put_password(&mut study, endpoint)?;
    }
    Ok((study, source))
}
