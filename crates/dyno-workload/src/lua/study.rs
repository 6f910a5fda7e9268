//! Lua scripts as workloads of a study.

use std::collections::BTreeMap;

use dyno_model::{OptionKind, Words};
use dyno_sysbench::{
    BuiltIn, Call, Distribution, Host, Kind, Limits, OptionValue, Program, RandomSettings, Reply,
    Request, ScriptOption, Setup, State, Unique, built_in,
};

use crate::prelude::*;

use super::{Ignored, LuaWorkload, NAME, Settings, Statistics};
use crate::options::word;
use crate::pgbench::{kind_of, script_option, wrong};

#[derive(Clone)]
pub struct ScriptFile {
    /// Its path, for messages.
    pub path: String,
    pub text: String,
    /// The digest that the record keeps of it.
    pub digest: String,
    pub options: Vec<ScriptOption>,
    /// Finds its modules where they were found when it was loaded.
    pub host: Arc<dyn Host>,
}

/// By the names that studies use.
type Files = BTreeMap<String, ScriptFile>;

/// Most turns of loops while a script is loaded, which takes some seconds: it is to define functions.
const TURNS_MOST: u64 = 1_000_000_000;
const REQUESTS_MOST: usize = 10_000;
const OPTIONS_MOST: usize = 1000;

/// Fails if the script cannot be loaded.
pub fn declared(path: &str, text: &str, host: Arc<dyn Host>) -> Result<Vec<ScriptOption>, String> {
    declared_within((path, text), host, TURNS_MOST)
}

/// The same, with another limit of turns.
pub(super) fn declared_within(
    (path, text): (&str, &str),
    host: Arc<dyn Host>,
    turns: u64,
) -> Result<Vec<ScriptOption>, String> {
    let limits = Limits { turns, ..Limits::default() };
    let program = Program { limits, ..Program::new(path, text, host) };
    let counters = Arc::default();
    let setup = Setup { program: &program, tid: 0, seed: [1, 2], driver: "mysql", counters };
    let mut state = State::load(&setup)?;
    load(&mut state, turns)?;
    if !state.has_function("event") {
        return Err(format!("cannot find the event() function in {path}"));
    }
    let options = state.options()?.unwrap_or_default();
    let why = || format!("it declares more than {OPTIONS_MOST} options");
    if options.len() > OPTIONS_MOST { Err(why()) } else { Ok(options) }
}

/// Runs the text of a script, whose statements are answered as if there were no rows.
fn load(state: &mut State, turns: u64) -> Result<(), String> {
    state.begin(Call::Body)?;
    let (mut reply, mut n_turns) = (Reply::Done, 0);
    for _ in 0..REQUESTS_MOST {
        reply = match state.resume(reply) {
            Request::Ended(_) => return Ok(()),
            Request::Broken(_, message) => return Err(message),
            Request::Exit(_) => return Err("it exits while it is being loaded".to_owned()),
            Request::Connect | Request::Prepare(_) => Reply::Number(0),
            Request::Query(_) | Request::Execute(..) => Reply::Executed,
            _ => Reply::Done,
        };
        // The state's limit is that between two requests.
        n_turns += state.n_turns();
        if n_turns > turns {
            return Err("it runs for too long while it is being loaded".to_owned());
        }
    }
    Err("it executes statements or sleeps again and again while it is being loaded".to_owned())
}

/// Options of the workload itself, by the names that scripts cannot use for theirs.
const OWN: [&str; 5] = ["script", "sbtest", "rand_type", "ps_mode", "ignore_errors"];

/// The workload `sysbench` of studies that name these script files, by the names that they use. The host is that of
/// built-in scripts.
pub fn spec(files: Files, host: Arc<dyn Host>) -> WorkloadSpec {
    let built_in = dyno_sysbench::BUILT_IN.iter().map(|script| script.name);
    let mut options = vec![
        script_option("oltp_read_write", built_in.chain(files.keys().map(String::as_str))),
        word("sbtest", &["on", "off"]).help(
            "whether the tables of sysbench's OLTP scripts are created, or none, for a server that \
             has what the script needs",
        ),
        word("rand_type", &["special", "uniform", "gaussian", "pareto", "zipfian"])
            .help("what sysbench.rand.default draws"),
        word("ps_mode", &["auto", "disable"]).help("whether statements are prepared by the server"),
        word("ignore_errors", &["1213,1020,1205", "all", "none"])
            .help("errors after which an event begins again, on MariaDB and MySQL"),
    ];
    for option in files.values().flat_map(|file| &file.options).chain(&of_built_in(&host)) {
        let is_there = options.iter().any(|one| one.name == option.name);
        if !is_there && !OWN.contains(&option.name.as_str()) {
            options.push(of_study(option));
        }
    }
    let summary = "a script of sysbench";
    WorkloadSpec::new(NAME, summary, options, move |input| plan(input, &files, &host))
}

fn of_built_in(host: &Arc<dyn Host>) -> Vec<ScriptOption> {
    let declared = |script: &BuiltIn| declared(script.name, script.text, Arc::clone(host)).ok();
    dyno_sysbench::BUILT_IN.iter().filter_map(declared).flatten().collect()
}

fn of_study(option: &ScriptOption) -> OptionSpec {
    let default = option.default.clone().unwrap_or_default();
    let is_count = default.parse::<u64>().is_ok();
    let kind = match option.kind {
        Kind::Bool => OptionKind::Switch,
        Kind::Int | Kind::Double | Kind::Size if is_count => OptionKind::Count,
        Kind::Int | Kind::Double | Kind::Size => OptionKind::Real,
        _ => OptionKind::Word(Words::Owned(vec![default.clone()])),
    };
    let default = match (&kind, default.as_str()) {
        (OptionKind::Real, "") => "0".to_owned(),
        (OptionKind::Switch, "") => "off".to_owned(),
        _ => default,
    };
    let (name, help) = (option.name.clone().into(), option.description.clone().into());
    OptionSpec { name, kind, default: default.into(), help, range: None }
}

fn plan(input: &PlanInput<'_>, files: &Files, host: &Arc<dyn Host>) -> Planned {
    let given = input.options;
    let word = given.text("script");
    let file = match (files.get(word), built_in(word)) {
        (Some(file), _) => file.clone(),
        (None, Some(script)) => ScriptFile {
            path: word.to_owned(),
            text: script.text.to_owned(),
            digest: String::new(),
            options: declared(word, script.text, Arc::clone(host)).map_err(wrong)?,
            host: Arc::clone(host),
        },
        (None, None) => return Err(wrong(format!("there is no script {word}"))),
    };
    let texts: BTreeMap<String, String> = given.pairs().into_iter().collect();
    let (options, recorded) = options(&file, &texts, input.request.clients);
    let has_tables = given.text("sbtest") != "off";
    let tables = has_tables.then(|| tables(&texts, input)).transpose()?;
    let unique = |number| input.seed.derive("unique", number).0 as u32;
    let settings = Settings {
        name: input.name.clone(),
        kind: kind_of(word),
        program: Program {
            argv: vec!["sysbench".to_owned(), word.to_owned(), "run".to_owned()],
            random: RandomSettings {
                distribution: Distribution::of_word(given.text("rand_type")).unwrap_or_default(),
                ..RandomSettings::default()
            },
            unique: Arc::new(Unique::new(unique(0), unique(1))),
            ..Program::new(&file.path, &file.text, Arc::clone(&file.host))
        },
        options,
        globals: Vec::new(),
        seed: None,
        prepares: given.text("ps_mode") == "auto",
        ignored: match given.text("ignore_errors") {
            "all" => Ignored::All,
            text => Ignored::Codes(text.split(',').map(str::to_owned).collect()),
        },
        events: None,
        rate: None,
        limit: None,
        is_paced: false,
        // In a study, a failed event is counted and the next one begins.
        continues: true,
        tables,
        is_without_server: false,
        connector: None,
        recorded,
        statistics: Arc::new(Statistics::default()),
    };
    Ok(Arc::new(LuaWorkload::new(settings, input.request)))
}

/// What `sysbench.opt` has, and what the record keeps.
type Resolved = (Vec<(String, OptionValue)>, Vec<(String, String)>);

fn options(file: &ScriptFile, texts: &BTreeMap<String, String>, clients: usize) -> Resolved {
    let mut options = Vec::new();
    let given = |name: &str| Some((name.to_owned(), texts.get(name)?.clone()));
    let mut recorded: Vec<(String, String)> = OWN.into_iter().filter_map(given).collect();
    for option in &file.options {
        let value = match (texts.get(&option.name), option.kind) {
            (None, _) => option.default_value(),
            (Some(text), Kind::Bool) => OptionValue::Bool(text == "on"),
            (Some(text), Kind::Int | Kind::Size | Kind::Double) => {
                let number = dyno_units::parse_count(text).map(|n| n as f64);
                OptionValue::Number(number.ok().or(text.parse().ok()).unwrap_or(0.0))
            }
            (Some(text), kind) => kind.parse(Some(text)).unwrap_or(option.default_value()),
        };
        options.push((option.name.clone(), value));
        recorded.extend(given(&option.name));
    }
    if !file.digest.is_empty() {
        recorded.push(("script_sha256".to_owned(), file.digest.clone()));
    }
    options.push(("threads".to_owned(), OptionValue::Number(clients as f64)));
    options.push(("db_driver".to_owned(), OptionValue::Text(String::new())));
    (options, recorded)
}

fn tables(texts: &BTreeMap<String, String>, input: &PlanInput<'_>) -> Planned {
    let spec = crate::sysbench::specs().into_iter().find(|spec| spec.name == "oltp_read_write");
    let spec = spec.ok_or_else(|| PlanError::Load("there are no tables of sysbench".to_owned()))?;
    let shared = ["tables", "table_size"];
    let pairs = shared.iter().filter_map(|name| texts.get_key_value(*name));
    let given = pairs.map(|(name, text)| (name.clone(), text.clone())).collect();
    spec.plan(&given, input.request, input.seed)
}
