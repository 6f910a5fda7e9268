//! pgbench scripts as workloads of a study.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_model::{Name, OptionError, OptionKind, OptionSpec, Words, name};
use dyno_pgbench::{Names, Script, find_built_in};

use super::{NAME, PgBench, Protocol, Settings, SilentHost, WeightedScript};
use crate::Workload;
use crate::catalog::{PlanError, PlanInput, WorkloadSpec};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptText {
    pub text: String,
    /// The digest that the record keeps of it.
    pub digest: String,
}

/// The workload `pgbench` of studies that name these script files, by the names that they use.
pub fn spec(files: BTreeMap<String, ScriptText>) -> WorkloadSpec {
    let built_in = dyno_pgbench::BUILT_IN.iter().map(|script| script.name);
    let options = vec![
        script_option("tpcb-like", built_in.chain(files.keys().map(String::as_str))),
        OptionSpec::word(
            "protocol",
            &["simple", "extended", "prepared"],
            "how statements are sent; the last two on PostgreSQL only",
        ),
        OptionSpec::word(
            "tables",
            &["pgbench", "none"],
            "whether pgbench's tables are created, or none, for a server that has what the script \
             needs",
        ),
        OptionSpec::count("scale", "1", "branches of the tables; the value of :scale"),
        OptionSpec::count(
            "max_tries",
            "1",
            "how often a transaction is tried after deadlocks and serialization failures",
        ),
    ];
    let summary = "a script of pgbench";
    WorkloadSpec::new(NAME, summary, options, move |input| plan(input, &files))
}

/// The option that names a script, of a workload that has these.
pub(crate) fn script_option<'s>(
    default: &'static str,
    scripts: impl Iterator<Item = &'s str>,
) -> OptionSpec {
    let kind = OptionKind::Word(Words::Owned(scripts.map(str::to_owned).collect()));
    let help = name("the file of the script, or a built-in one");
    OptionSpec { name: name("script"), kind, default: name(default), help, range: None }
}

/// What is wrong with the script.
pub(crate) fn wrong(reason: String) -> PlanError {
    PlanError::Option(OptionError { name: "script".to_owned(), reason })
}

/// The kind of a script's transactions: its name, without folders.
pub(crate) fn kind_of(script: &str) -> Name {
    let stem = std::path::Path::new(script).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned().into()
}

fn plan(
    input: &PlanInput<'_>,
    files: &BTreeMap<String, ScriptText>,
) -> Result<Arc<dyn Workload>, PlanError> {
    let options = input.options;
    let file = options.text("script");
    let mut names = Names::new();
    let mut recorded = options.pairs();
    let (title, text) = match files.get(file) {
        Some(script) => {
            recorded.push(("script_sha256".to_owned(), script.digest.clone()));
            (file.to_owned(), script.text.as_str())
        }
        None => {
            let script = find_built_in(file).map_err(wrong)?;
            (script.title.to_owned(), script.text)
        }
    };
    let script = Script::read(&title, text, &mut names).map_err(|error| {
        let lines = error.lines.iter().map(|line| format!("\n{line}"));
        wrong(error.message + &lines.collect::<String>())
    })?;
    if script.has_shell() {
        let why = "it has shell commands, which a study does not run; `dyno pgbench` does";
        return Err(wrong(why.to_owned()));
    }
    let scale = options.count("scale");
    let tables = match options.text("tables") {
        "none" => None,
        _ => {
            let given = BTreeMap::from([("scale".to_owned(), scale.to_string())]);
            Some(crate::tpcb::spec().plan(&given, input.request, input.seed)?)
        }
    };
    let protocol = Protocol::ALL.into_iter().find(|one| one.word() == options.text("protocol"));
    let kind = kind_of(file);
    let settings = Settings {
        name: input.name.clone(),
        scripts: vec![WeightedScript { script, kind, weight: 1 }],
        names,
        protocol: protocol.unwrap_or_default(),
        scale: i64::try_from(scale).unwrap_or(i64::MAX),
        tables,
        max_tries: u32::try_from(options.count("max_tries")).unwrap_or(u32::MAX).max(1),
        // In a study, a failed transaction is counted and the next one begins.
        continues_on_error: true,
        options: recorded,
        ..Settings::default()
    };
    Ok(Arc::new(PgBench::new(settings, Arc::new(SilentHost), input.request)))
}
