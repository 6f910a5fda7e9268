//! `dyno sysbench`: command lines and Lua scripts of sysbench, on Dyno's load generator, with sysbench's
//! output and a record beside it.

mod commands;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod host;
mod machine;
mod options;
mod output;
mod reports;
mod run;
mod target;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use dyno_database::Endpoint;
use dyno_load::AbortFlag;
use dyno_sysbench::{Distribution, Host, OptionValue, Program, RandomSettings, Unique, built_in};
use dyno_units::{Clock, Nanoseconds, Seed};
use dyno_workload::Connector;
use dyno_workload::lua::{Ignored, NAME, Settings, Single, Statistics};

use self::host::{Stop, Terminal, end_of};
use self::options::{OPTIONS, Options, Wrong};
use self::run::{Script, Session};
use crate::clock::SystemClock;
use crate::commands::beside::Interruption;
use crate::scripts::{self, is_there};
use crate::{End, signals, terminal};

/// Options that hold one; their names may have hyphens as well.
pub(crate) const PASSWORDS: [&str; 2] = ["mysql_password", "pgsql_password"];

/// The version of sysbench whose output this is.
const VERSION: &str = concat!("1.0.20 (Dyno ", env!("CARGO_PKG_VERSION"), ")");

pub(crate) fn run(words: &[String]) -> anyhow::Result<End> {
    let performed = perform(words);
    signals::die_of_first();
    match performed {
        Ok(end) => Ok(end),
        Err(Stop::Said) => Ok(End::Bad),
        Err(Stop::Error(error)) => Err(error),
    }
}

fn wrong(wrong: Wrong) -> Stop {
    match wrong {
        Wrong::Error(text) => terminal::say(&text),
        Wrong::Fatal(text) => terminal::out(&format!("FATAL: {text}")),
    }
    Stop::Said
}

fn help() -> String {
    let scripts = dyno_sysbench::BUILT_IN.iter().map(|script| script.name);
    let tests = scripts.chain(machine::names()).map(|name| format!("  {name}\n"));
    format!(
        "Usage:\n  dyno sysbench [options]... [testname] [command]\n\n\
         Commands implemented by most tests: prepare run cleanup help\n\n{OPTIONS}\
         Dyno's own options:\n  --record=FOLDER keep the record in this folder (default: \
         runs/sysbench, with a number)\n  --no-record     keep no record\n\nCompiled-in \
         tests:\n{}\n\
         See 'dyno sysbench <testname> help' for a list of options for each test.\n",
        tests.collect::<String>()
    )
}

fn perform(words: &[String]) -> Result<End, Stop> {
    let read_file = |name: &str| {
        std::fs::read_to_string(name).map_err(|error| format!("cannot read {name}: {error}"))
    };
    let options = Options::read(words, &read_file).map_err(wrong)?;
    for warning in &options.warnings {
        let text = format!("WARNING: {warning}");
        // Where sysbench writes them, too.
        let is_said = warning.starts_with("the --test option");
        if is_said { terminal::say(&text) } else { terminal::out(&text) }
    }
    if options.is_on("help") {
        terminal::out(&help());
        return Ok(End::Good);
    }
    if options.is_on("version") {
        terminal::out(&format!("sysbench {VERSION}"));
        return Ok(End::Good);
    }
    options.check().map_err(wrong)?;
    let verbosity = if options.is_on("debug") { 5 } else { options.count("verbosity") };
    if verbosity >= 3 {
        terminal::out_part(&format!("sysbench {VERSION}\n\n"));
    }
    if let Some(outcome) = machine::perform(&options, verbosity) {
        return outcome;
    }
    let script = find_script(&options)?;
    let abort = AbortFlag::new();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let interruption = Interruption::listen(&abort, &clock)?;
    let host =
        Arc::new(Terminal::new(verbosity, abort, script.folder.clone(), &terminal::variable));
    match prepare(options, script, host, (clock, interruption))? {
        Ok(session) => commands::dispatch(session),
        // The script has ended the program.
        Err(end) => Ok(end),
    }
}

/// The script by the name that was given: a file, a built-in one, or a module.
fn find_script(options: &Options) -> Result<Script, Stop> {
    let name = options.test.as_deref().unwrap_or("-");
    let fatal = |why: String| wrong(Wrong::Fatal(why));
    let file = Path::new(name);
    let (mut text, mut path, mut is_built_in) = (String::new(), name.to_owned(), false);
    // A name alone is looked for, and may mean a built-in script; a path means this file.
    if name == "-" {
        std::io::stdin().lock().read_to_string(&mut text)?;
        path = "stdin".to_owned();
    } else if file.is_file() && (name.contains('/') || is_there(file)) {
        let module = scripts::named_by_user(file);
        text = module.map_err(|why| fatal(format!("cannot read {name}: {why}")))?.text;
    } else if let Some(script) = built_in(name) {
        (text, is_built_in) = (script.text.to_owned(), true);
    } else {
        let searched = host::package_path(&terminal::variable);
        let found = scripts::find_module(name, &searched, Some(Path::new(".")));
        let module = found.map_err(|_| {
            let why = match file.is_file() {
                true => {
                    "the file of this name belongs to another user and is in a folder that everybody may write to; \
                     if you have read it, name it with its path: ./"
                }
                false => "no such built-in test, file or module",
            };
            let path = if file.is_file() { name } else { "" };
            fatal(format!("Cannot find benchmark '{name}': {why}{path}"))
        })?;
        (path, text) = (module.path, module.text);
    }
    let folder = match name {
        "-" => Some(".".into()),
        _ => Path::new(&path).parent().filter(|_| !is_built_in).map(Path::to_owned),
    };
    Ok(Script { name: name.to_owned(), path, text, folder, is_built_in })
}

/// Loads the script and reads its options; or how the script has ended the program.
fn prepare(
    options: Options,
    script: Script,
    host: Arc<Terminal>,
    (clock, interruption): (Arc<dyn Clock>, Interruption),
) -> Result<Result<Session, End>, Stop> {
    let endpoint = target::resolve(&options, &terminal::variable, &is_there)
        .map_err(|why| host.fatal(&why))?;
    let mut settings = settings(&options, &script, (&host, clock.as_ref()), &endpoint)?;
    let before = Arc::new(settings.clone());
    let dialect = target::dialect(&options);
    let single = match Single::new(&before, 0, run::seed_of(&before, 0), dialect) {
        Ok(single) => single,
        Err(ended) => return Ok(Err(end_of(&before, ended, false))),
    };
    let declared = single.state().options().map_err(|text| host.fatal(&text))?;
    let mut values = options.exported();
    // Scripts that declare no options, those of sysbench 0.5, read all of them as variables. `debug` is a
    // library, and stays it.
    let globals = values.iter().filter(|(name, _)| declared.is_none() && name != "debug");
    let mut globals = globals.cloned().collect();
    for option in declared.iter().flatten() {
        put(&mut values, &option.name, option.default_value());
    }
    for (name, text, word) in &options.unknown {
        let invalid = || {
            terminal::say(&format!("invalid option: {word}"));
            Stop::Said
        };
        let value = match &declared {
            None => {
                let value = OptionValue::Text(text.clone().unwrap_or_default());
                put(&mut globals, name, value.clone());
                value
            }
            Some(declared) => {
                let option = declared.iter().find(|option| option.name == *name);
                let option = option.ok_or_else(invalid)?;
                option.kind.parse(text.as_deref()).map_err(|_| invalid())?
            }
        };
        put(&mut values, name, value);
    }
    single.state().export(&values, &globals).map_err(|text| host.fatal(&text))?;
    (settings.options, settings.globals) = (values, globals);
    settings.recorded = run::recorded(&options, &script, declared.as_deref(), host.required());
    let settings = Arc::new(settings);
    Ok(Ok(Session { options, script, settings, single, host, endpoint, clock, interruption }))
}

fn put(values: &mut Vec<(String, OptionValue)>, name: &str, value: OptionValue) {
    values.retain(|(known, _)| known != name);
    values.push((name.to_owned(), value));
}

fn needs_server(options: &Options, script: &Script) -> bool {
    !options.is_on("mysql_dry_run") && may_use_server(&script.text)
}

/// Nobody but the script's author knows whether it uses a server, but it cannot without `sql`, `db_`, or a function
/// that loads other text. Libraries of Lua's own use none.
fn may_use_server(text: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let libraries = ["bit", "ffi", "io", "jit", "math", "os", "string", "table"];
    let loads = |word: &&str| {
        text.match_indices(*word).any(|(at, _)| {
            let rest = &text[at + word.len()..];
            if text[..at].ends_with(is_of_word) || rest.starts_with(is_of_word) {
                return false;
            }
            let name = rest.trim_start_matches([' ', '(', '"', '\'']);
            let end = name.find(['"', '\'']).unwrap_or(name.len());
            *word != "require" || !libraries.contains(&&name[..end])
        })
    };
    let loaders = ["require", "dofile", "load", "loadfile", "loadstring", "loaders"];
    text.contains("sql") || text.contains("db_") || loaders.iter().any(loads)
}

fn settings(
    options: &Options,
    script: &Script,
    (host, clock): (&Arc<Terminal>, &dyn Clock),
    endpoint: &Endpoint,
) -> Result<Settings, Stop> {
    let seed = options.seed(clock);
    let unique = |label| Seed(seed).derive(label, 0).0 as u32;
    let ignored = options.list("mysql_ignore_errors");
    let stem = Path::new(&script.name).file_stem().unwrap_or_default();
    let (events, seconds) = (options.count("events"), options.count("time"));
    let rate = options.number("rate");
    let connector = endpoint.protocol.connector(endpoint);
    let needs_server = needs_server(options, script);
    Ok(Settings {
        name: NAME.into(),
        kind: stem.to_string_lossy().into_owned().into(),
        program: Program {
            argv: options.argv.clone(),
            command: options.command.clone(),
            random: RandomSettings {
                distribution: Distribution::of_word(options.text("rand_type")).unwrap_or_default(),
                iterations: options.count("rand_spec_iter") as u32,
                special_percent: options.number("rand_spec_pct"),
                special_share: options.number("rand_spec_res"),
                pareto_h: options.number("rand_pareto_h"),
                zipfian_exponent: options.number("rand_zipfian_exp"),
            },
            unique: Arc::new(Unique::new(unique("unique"), unique("offset"))),
            is_trusted: true,
            is_compiled: options.text("luajit_cmd") != "off",
            ..Program::new(&script.path, &script.text, Arc::clone(host) as Arc<dyn Host>)
        },
        options: Vec::new(),
        globals: Vec::new(),
        seed: Some(seed),
        prepares: options.text("db_ps_mode") == "auto",
        ignored: match ignored.iter().any(|code| code == "all") {
            true => Ignored::All,
            false => Ignored::Codes(ignored.to_vec()),
        },
        events: (events > 0).then_some(events),
        rate: (events > 0 && rate > 0.0).then_some(rate),
        limit: (seconds > 0).then(|| Nanoseconds::from_secs(seconds)),
        is_paced: rate > 0.0,
        continues: false,
        tables: None,
        is_without_server: !needs_server && !options.is_on("mysql_dry_run"),
        connector: needs_server.then_some(connector as Connector),
        recorded: Vec::new(),
        statistics: Arc::new(Statistics::default()),
    })
}

#[cfg(test)]
mod tests {
    use super::may_use_server;

    #[test]
    fn a_script_may_use_a_server_if_it_names_what_reaches_one() {
        let check =
            |text: &str, expected: bool| assert_eq!(may_use_server(text), expected, "{text}");
        check("function event() print('loaded', payload) end", false);
        check("local ffi = require(\"ffi\") require 'bit' require('jit')", false);
        check("local x = sysbench.sql", true);
        check("db_connect()", true);
        check("require('ffi') require('oltp_common')", true);
        check("require(name)", true);
        check("f = loadstring(x)", true);
        check("for _, f in ipairs(package.loaders) do end", true);
    }
}
