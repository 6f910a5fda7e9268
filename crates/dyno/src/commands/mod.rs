//! The subcommands, one file each.

pub(crate) mod agent;
#[cfg(feature = "servers")]
pub(crate) mod archive;
mod beforehand;
pub(crate) mod bench;
mod beside;
#[cfg(feature = "servers")]
pub(crate) mod calibrate;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod datasets;
pub(crate) mod deployments;
mod disk;
pub(crate) mod doctor;
#[cfg(feature = "servers")]
pub(crate) mod dump;
pub(crate) mod explain_cost;
pub(crate) mod gate;
pub(crate) mod hold;
pub(crate) mod import;
pub(crate) mod pgbench;
pub(crate) mod plan;
mod power;
pub(crate) mod products;
pub(crate) mod reference;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sql;
#[cfg(feature = "lua")]
pub(crate) mod sysbench;
#[cfg(not(feature = "lua"))]
#[path = "sysbench_left_out.rs"]
pub(crate) mod sysbench;
pub(crate) mod up;
pub(crate) mod watch;

use std::io::Read as _;
use std::path::Path;

use anyhow::Context;
use dyno_database::Products;
use dyno_lab::{Lab, RunOrder};
use dyno_record::Manifest;
use dyno_study::{Database, Diagnostic, Plan, Study, Vocabulary, diagnostic};
use dyno_units::Nanoseconds;
use dyno_workload::catalog::Catalog;

use crate::{End, recipes, scripts, secrets, terminal, vocabulary};

/// `1 row`, `2 rows`, `2 batches`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    let ending = if noun.ends_with("ch") { "es" } else { "s" };
    format!("{n} {noun}{}", if n == 1 { "" } else { ending })
}

/// Of microseconds.
pub(crate) fn time(us: f64) -> String {
    Nanoseconds((us * 1e3) as u64).to_string()
}

/// How a load of a search has ended.
pub(crate) fn within_limit(broken_by: Option<&str>) -> String {
    broken_by.map_or("within the limit".to_owned(), |why| format!("over the limit: {why}"))
}

/// `name`, `name-2`, `name-3` …
pub(crate) fn numbered(name: &str) -> impl Iterator<Item = String> {
    std::iter::once(name.to_owned()).chain((2_u64..).map(move |n| format!("{name}-{n}")))
}

/// The first row has the headings; columns in `right` are aligned to the right.
pub(crate) fn table<const N: usize>(rows: &[[String; N]], right: &[usize]) -> String {
    dyno_units::aligned(rows, right).into_iter().map(|line| line + "\n").collect()
}

/// Says what became of each; an error does not keep the others from their turn.
pub(crate) fn each(names: &[String], mut work: impl FnMut(&str) -> anyhow::Result<String>) -> End {
    let mut end = End::Good;
    for name in names {
        match work(name) {
            Ok(done) => terminal::out(&done),
            Err(error) => {
                terminal::error(&error);
                end = End::Bad;
            }
        }
    }
    end
}

/// Version of the objects that `bench`, `explain-cost`, `ls`, `dump`, `restore` and `archive` print with `--json`, and
/// `gate` with `--format json`. Raise it when a key goes or changes its meaning.
pub(crate) const JSON_FORMAT: u32 = 1;

pub(crate) struct StudyFile {
    pub(crate) study: Study,
    pub(crate) source: String,
    /// With the study's own scripts.
    pub(crate) catalog: Catalog,
    /// With the products that the study describes.
    pub(crate) products: Products,
}

/// A study that can be run.
pub(crate) struct Planned<'a> {
    study: &'a Study,
    pub(crate) plan: Plan,
    pub(crate) manifest: Manifest,
}

impl<'a> Planned<'a> {
    pub(crate) fn new(
        lab: &Lab,
        (study, source): (&'a Study, &str),
        plan: Plan,
    ) -> anyhow::Result<Planned<'a>> {
        let (study_text, now) = ((study, source), lab.clock.unix_millis());
        let manifest =
            dyno_lab::make_manifest(&lab.catalog, &plan, study_text, &lab.environment, now)?;
        Ok(Planned { study, plan, manifest })
    }

    /// All trials are run as planned, and nobody watches.
    pub(crate) fn order(&self, folder: &Path) -> RunOrder<'_> {
        RunOrder {
            plan: &self.plan,
            design: &self.study.design,
            manifest: &self.manifest,
            probes: &self.study.probes,
            decide: None,
            retry_failed: false,
            void: None,
            text: None,
            watching: None,
            folder: folder.to_owned(),
        }
    }
}

/// A run's folder must exist and be no file.
pub(crate) fn check_run_folder(folder: &Path) -> anyhow::Result<()> {
    let name = folder.display();
    let why = match std::fs::metadata(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("there is no folder {name}; name the folder of a run, such as runs/quickstart")
        }
        Ok(facts) if !facts.is_dir() => {
            format!("{name} is a file; name the folder of a run, such as runs/quickstart")
        }
        _ => return Ok(()),
    };
    Err(crate::usage_error(anyhow::anyhow!(why)))
}

pub(crate) fn not_opened(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => anyhow::anyhow!("there is no such file"),
        _ => error.into(),
    }
}

/// The error says where the text is not UTF-8.
fn text_of(bytes: Vec<u8>) -> anyhow::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let (before, wrong) = error.as_bytes().split_at(valid);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        anyhow::anyhow!(
            "line {line}, byte {column} (0x{:02x}), is not UTF-8; save the file as UTF-8",
            wrong.first().copied().unwrap_or_default()
        )
    })
}

/// Names similar studies beside the path.
fn no_such_study(path: &Path) -> anyhow::Error {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return anyhow::anyhow!("there is no folder {}", folder.display());
    };
    let files = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let files: Vec<String> = files.filter_map(|name| name.into_string().ok()).collect();
    let studies: Vec<&str> =
        files.iter().map(String::as_str).filter(|name| name.ends_with(".toml")).collect();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match crate::hints::did_you_mean(name, &studies) {
        Some(hint) => anyhow::anyhow!("there is no such file; {hint}"),
        None => anyhow::anyhow!("there is no such file"),
    }
}

/// None if it has errors, which have been shown.
pub(crate) fn read_study(path: &Path) -> anyhow::Result<Option<StudyFile>> {
    let mut file = read_study_as_it_is(path)?;
    if let Some(file) = &mut file {
        expand_urls(&mut file.study).map_err(crate::usage_error)?;
    }
    Ok(file)
}

/// In bytes; a file that somebody sent may be a link to a device.
const STUDY_MOST: u64 = 64 << 20;

/// Leaves variables in URLs unexpanded.
pub(crate) fn read_study_as_it_is(path: &Path) -> anyhow::Result<Option<StudyFile>> {
    let read = || {
        let mut source = Vec::new();
        // The user has named it: a pipe, too, whoever made it.
        std::fs::File::open(path)?.take(STUDY_MOST + 1).read_to_end(&mut source)?;
        match source.len() as u64 > STUDY_MOST {
            true => {
                Err(std::io::Error::other(format!("it is larger than {} MiB", STUDY_MOST >> 20)))
            }
            false => Ok(source),
        }
    };
    let source = read()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => no_such_study(path),
            std::io::ErrorKind::IsADirectory => {
                anyhow::anyhow!(
                    "it is a folder; name a file, such as {}",
                    path.join("study.toml").display()
                )
            }
            _ => error.into(),
        })
        .and_then(text_of)
        .with_context(|| format!("cannot read the study {}", path.display()))
        .map_err(crate::usage_error)?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let catalog = scripts::catalog(&source, folder)?;
    let products = recipes::products(&source)
        .with_context(|| format!("the study {}", path.display()))
        .map_err(crate::usage_error)?;
    let words = vocabulary::vocabulary_of(&products, &catalog);
    let Some(study) = parse_with(&path.display().to_string(), &source, &words) else {
        return Ok(None);
    };
    Ok(Some(StudyFile { study, source, catalog, products }))
}

/// `name` is for messages. None if it has errors, which have been shown.
pub(crate) fn parse_study(name: &str, source: &str) -> Option<Study> {
    parse_with(name, source, &vocabulary::vocabulary())
}

fn parse_with(name: &str, source: &str, vocabulary: &Vocabulary) -> Option<Study> {
    let diagnostics = match dyno_study::parse(source, vocabulary) {
        Ok(study) => return Some(study),
        Err(diagnostics) => diagnostics,
    };
    say_diagnostics(name, source, &diagnostics);
    None
}

pub(crate) fn say_diagnostics(name: &str, source: &str, diagnostics: &[Diagnostic]) {
    let render = match terminal::messages_have_colours() {
        true => diagnostic::render_coloured,
        false => diagnostic::render,
    };
    terminal::say(&render(name, source, diagnostics));
}

/// Puts variables' values into URLs. Commands of probes and hosts do not inherit those variables.
pub(crate) fn expand_urls(study: &mut Study) -> anyhow::Result<()> {
    let urls = study.databases.iter().flat_map(Database::urls);
    let variables: Vec<String> = urls.flat_map(|url| secrets::variables(url)).collect();
    study.probes.iter_mut().for_each(|probe| probe.hidden_variables.clone_from(&variables));
    let design = &mut study.design;
    let pools = design.generators.iter_mut().chain(&mut design.server_hosts);
    for pool in pools.chain(&mut design.trial_hosts) {
        pool.hidden_variables.clone_from(&variables);
    }
    study.map_urls(|name, url| secrets::expand(url).with_context(|| format!("database `{name}`")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_misspelt_study_is_answered_with_the_nearest_one() {
        let folder = tempfile::tempdir().expect("a folder is made");
        std::fs::write(folder.path().join("quickstart.toml"), "").expect("it is written");
        let check = |name: &str, expected: &str| {
            let error = super::no_such_study(&folder.path().join(name)).to_string();
            assert_eq!(error, expected.replace("FOLDER", &folder.path().display().to_string()));
        };
        check("quikstart.toml", "there is no such file; did you mean `quickstart.toml`?");
        check("quite-another.toml", "there is no such file");
        check("none/quickstart.toml", "there is no folder FOLDER/none");
    }

    #[test]
    fn what_is_no_text_is_reported_with_its_place() {
        let check = |bytes: &[u8], expected: &str| {
            let error = super::text_of(bytes.to_vec()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check(b"title = \"x\"\n# M\xfcller", "line 2, byte 4 (0xfc)");
        check(b"\xff\xfe", "line 1, byte 1 (0xff)");
        assert_eq!(super::text_of("ä".into()).unwrap(), "ä");
    }
}
