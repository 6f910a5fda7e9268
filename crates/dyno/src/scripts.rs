//! Script files and lists of values that a study names, read before the study, so that later stages work on texts.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use dyno_workload::catalog::Catalog;
use dyno_workload::declared;
use dyno_workload::pgbench::{self, ScriptText};
use sha2::{Digest, Sha256};
use toml::Value;

/// In bytes.
const FILE_MOST: u64 = 64 << 20;

/// Their names and digests are kept.
#[cfg(feature = "lua")]
const MODULES_MOST: usize = 1000;

/// The built-in workloads, and scripts that the study names relative to its folder. Errors of the
/// study are left to its parser. Fails if a script cannot be read.
pub(crate) fn catalog(study: &str, folder: &Path) -> anyhow::Result<Catalog> {
    let mut catalog = Catalog::built_in();
    let Ok(study) = study.parse::<toml::Table>() else {
        // So that only the broken TOML is reported.
        catalog.add(declared::spec(BTreeMap::new()));
        return Ok(catalog);
    };
    if let Some(files) = named(&study, pgbench::NAME) {
        let is_built_in =
            |file: &String| dyno_pgbench::BUILT_IN.iter().any(|script| script.name == file);
        let mut texts = BTreeMap::new();
        for file in files.into_iter().filter(|file| !is_built_in(file)) {
            let (text, digest) = read(&folder.join(&file), "script")?;
            texts.insert(file, ScriptText { text, digest });
        }
        catalog.add(pgbench::spec(texts));
    }
    #[cfg(feature = "lua")]
    if let Some(files) = named(&study, dyno_workload::lua::NAME) {
        catalog.add(of_sysbench(files, folder)?);
    }
    if let Some(files) = declared_files(&study) {
        let mut texts = BTreeMap::new();
        for file in files {
            let (text, _) = read(&folder.join(&file), "list of values")?;
            texts.insert(file, text);
        }
        catalog.add(declared::spec(texts));
    }
    Ok(catalog)
}

const SENT_MOST: usize = 8 << 20;

/// For hosts that read the study again. Fails for a file outside the study's folder or too much
/// text.
pub(crate) fn files(study: &str, folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let Ok(study) = study.parse::<toml::Table>() else { return Ok(BTreeMap::new()) };
    let mut names = named(&study, pgbench::NAME).unwrap_or_default();
    names.retain(|name| dyno_pgbench::BUILT_IN.iter().all(|script| script.name != name));
    #[cfg(feature = "lua")]
    {
        let lua = named(&study, dyno_workload::lua::NAME).unwrap_or_default();
        names.extend(lua.into_iter().filter(|name| dyno_sysbench::built_in(name).is_none()));
    }
    names.extend(declared_files(&study).unwrap_or_default());
    let mut texts = BTreeMap::new();
    for name in names {
        let parts = Path::new(&name).components();
        if !parts.clone().all(|part| matches!(part, std::path::Component::Normal(_))) {
            return Err(crate::usage_error(anyhow::anyhow!(
                "the file {name} is not in the folder of the study: only files there go to the \
                 hosts of `trials_on`"
            )));
        }
        let (text, _) = read(&folder.join(&name), "file")?;
        texts.insert(name, text);
    }
    let bytes: usize = texts.values().map(String::len).sum();
    if bytes > SENT_MOST {
        return Err(crate::usage_error(anyhow::anyhow!(
            "the files that this study names are larger than {} MiB: too large to go to the hosts \
             of `trials_on` with each trial",
            SENT_MOST >> 20
        )));
    }
    Ok(texts)
}

/// Files with values for generators; none if no workload is declared.
fn declared_files(study: &toml::Table) -> Option<Vec<String>> {
    let tables = study.get("workload")?.as_table()?;
    let is_declared = |table: &&Value| {
        table.get("transaction").is_some()
            || table.get("workload").and_then(Value::as_str) == Some(declared::NAME)
    };
    let mut files = Vec::new();
    let declared: Vec<&Value> = tables.values().filter(is_declared).collect();
    let mut open = declared.clone();
    while let Some(value) = open.pop() {
        match value {
            Value::Table(table) => {
                files.extend(table.get("lines").and_then(Value::as_str).map(str::to_owned));
                open.extend(table.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    (!declared.is_empty()).then_some(files)
}

fn read(path: &Path, what: &str) -> anyhow::Result<(String, String)> {
    let text = contents(path).map_err(|why| {
        crate::usage_error(anyhow::anyhow!("cannot read the {what} {}: {why}", path.display()))
    })?;
    let digest = digest(&text);
    Ok((text, digest))
}

fn contents(path: &Path) -> Result<String, String> {
    String::from_utf8(bytes(path)?).map_err(|_| "it is not UTF-8".to_owned())
}

/// Only regular files: a device has no end, and a pipe may have no writer.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let words = |error: std::io::Error| error.to_string();
    // Without the flag, opening a pipe waits for a writer.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(words)?;
    let facts = file.metadata().map_err(words)?;
    if !facts.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let n_read = file.take(FILE_MOST + 1).read_to_end(&mut bytes).map_err(words)?;
    if n_read as u64 > FILE_MOST {
        return Err(format!("it is larger than {} MiB", FILE_MOST >> 20));
    }
    Ok(bytes)
}

pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(feature = "lua")]
fn of_sysbench(
    files: Vec<String>,
    folder: &Path,
) -> anyhow::Result<dyno_workload::catalog::WorkloadSpec> {
    use dyno_workload::lua;
    use std::sync::Arc;
    let mut scripts = BTreeMap::new();
    for file in files {
        if dyno_sysbench::built_in(&file).is_some() {
            continue;
        }
        let path = folder.join(&file);
        let (text, own) = read(&path, "script")?;
        let beside = path.parent().map(Path::to_owned);
        let host = Arc::new(StudyHost { folder: beside, ..StudyHost::default() });
        let path = path.display().to_string();
        let options = lua::declared(&path, &text, Arc::clone(&host) as _)
            .map_err(|why| dyno_units::clean_text(&format!("the script {path}: {why}")))
            .map_err(|why| crate::usage_error(anyhow::anyhow!("{why}")))?;
        let digest = match host.required() {
            modules if modules.is_empty() => own,
            modules => digest(&format!("{own}{modules}")),
        };
        scripts.insert(file, lua::ScriptFile { path, text, digest, options, host });
    }
    // Modules of built-in scripts are built in, whatever lies beside the study.
    Ok(lua::spec(scripts, Arc::new(StudyHost::default())))
}

#[cfg(feature = "lua")]
#[derive(Default)]
struct StudyHost {
    /// The folder of the script; none for built-in ones.
    folder: Option<std::path::PathBuf>,
    /// Modules that scripts required, and their digests.
    modules: std::sync::Mutex<BTreeMap<String, String>>,
}

#[cfg(feature = "lua")]
impl StudyHost {
    fn required(&self) -> String {
        let modules = self.modules.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        modules.iter().map(|(name, digest)| format!("\n{name} {digest}")).collect()
    }

    /// Up to the limit, and the same text each time: the record has the digest of the first one.
    fn noted(
        &self,
        name: &str,
        module: dyno_sysbench::Module,
    ) -> Result<dyno_sysbench::Module, String> {
        let mut modules = self.modules.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if modules.len() >= MODULES_MOST && !modules.contains_key(name) {
            return Err(format!("a script of a study has at most {MODULES_MOST} modules"));
        }
        let digest = digest(&module.text);
        if modules.get(name).is_some_and(|known| *known != digest) {
            return Err(format!("the text of {name} has changed since the script was loaded"));
        }
        modules.insert(name.to_owned(), digest);
        Ok(module)
    }
}

#[cfg(feature = "lua")]
impl dyno_sysbench::Host for StudyHost {
    fn print(&self, _: &str) {}

    fn print_error(&self, _: &str) {}

    fn log(&self, _: dyno_sysbench::Level, _: &str) {}

    fn module(&self, name: &str, path: &str) -> Result<dyno_sysbench::Module, String> {
        let module =
            crate::commands::sysbench::host::find_module(name, path, self.folder.as_deref())?;
        self.noted(name, module)
    }

    fn file(&self, path: &str) -> Result<dyno_sysbench::Module, String> {
        let folder = self.folder.clone().unwrap_or_default();
        let found = folder.join(path);
        let text = contents(&found)?;
        self.noted(path, dyno_sysbench::Module { path: found.display().to_string(), text })
    }

    fn package_path(&self) -> String {
        "/usr/share/sysbench/?.lua".to_owned()
    }

    fn sleep(&self, us: f64) {
        std::thread::sleep(std::time::Duration::from_micros(us as u64));
    }

    fn execute(&self, _: Option<&str>) -> i32 {
        // Not for scripts of studies.
        -1
    }

    fn is_stopped(&self) -> bool {
        crate::signals::have_come()
    }
}

/// Also of factors' levels; none if no table is of this workload.
fn named(study: &toml::Table, workload: &str) -> Option<Vec<String>> {
    let tables = study.get("workload")?.as_table()?;
    let is_ours = |(name, table): &(&String, &Value)| {
        let word = table.get("workload").and_then(Value::as_str).unwrap_or(name);
        word == workload
    };
    let ours: Vec<&Value> = tables.iter().filter(is_ours).map(|(_, table)| table).collect();
    if ours.is_empty() {
        return None;
    }
    let is_alone = ours.len() == tables.len();
    let of_tables = ours.into_iter().filter_map(|table| table.get("script"));
    let vary = study.get("design").and_then(|design| design.get("vary"));
    let levels = ["workload.script", "option.script"].into_iter();
    let of_levels = levels.filter_map(|key| vary?.get(key)?.as_array()).flatten();
    // If other workloads have scripts, too, the extension tells which a level belongs to.
    let is_lua = workload != pgbench::NAME;
    let of_levels = of_levels.filter(move |level| {
        is_alone || level.as_str().is_some_and(|name| name.ends_with(".lua") == is_lua)
    });
    let texts = of_tables.chain(of_levels).filter_map(Value::as_str);
    Some(texts.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(study: &str, expected: Option<&[&str]>) {
        let found = named(&study.parse().expect("it is TOML"), pgbench::NAME);
        let found: Option<Vec<&str>> =
            found.as_ref().map(|names| names.iter().map(String::as_str).collect());
        assert_eq!(found.as_deref(), expected, "{study}");
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        let check = |path: &Path, expected: &str| {
            let why = read(path, "script").expect_err(expected).to_string();
            assert!(why.ends_with(expected), "{why}");
        };
        check(Path::new("/dev/zero"), "/dev/zero: it is not a regular file");
        let folder = tempfile::tempdir().unwrap();
        check(folder.path(), "it is not a regular file");
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        check(&pipe, "it is not a regular file");
        let large = folder.path().join("large");
        std::fs::File::create(&large).unwrap().set_len(FILE_MOST + 1).unwrap();
        check(&large, "it is larger than 64 MiB");
    }

    #[cfg(feature = "lua")]
    #[test]
    fn built_in_scripts_load_no_module_beside_the_study() {
        let folder = tempfile::tempdir().unwrap();
        let module = "sysbench.cmdline.options = { mine = { '', 1 } } function event() end";
        std::fs::write(folder.path().join("oltp_common.lua"), module).unwrap();
        std::fs::write(folder.path().join("own.lua"), "require('oltp_common')").unwrap();
        let check = |files: &[&str], expected: [bool; 2]| {
            let files = files.iter().map(|file| (*file).to_owned()).collect();
            let spec = of_sysbench(files, folder.path()).unwrap();
            let has = |name: &str| spec.options.iter().any(|option| option.name == name);
            assert_eq!([has("range_selects"), has("mine")], expected);
        };
        check(&["oltp_read_write"], [true, false]);
        check(&["own.lua"], [true, true]);
        let host = StudyHost { folder: Some(folder.path().to_owned()), ..StudyHost::default() };
        let required = || dyno_sysbench::Host::module(&host, "oltp_common", "").map(|one| one.text);
        assert_eq!([required(), required()], [Ok(module.to_owned()), Ok(module.to_owned())]);
        std::fs::write(folder.path().join("oltp_common.lua"), "-- other").unwrap();
        let why = required().unwrap_err();
        assert_eq!(why, "the text of oltp_common has changed since the script was loaded");
    }

    #[test]
    fn scripts_are_found_in_tables_and_levels() {
        check("[workload.tpcb]\nscript = 'select-only'\n", None);
        check("[workload.pgbench]\nscript = 'a.sql'\n", Some(&["a.sql"]));
        let varied = "[workload.x]\nworkload = 'pgbench'\n\
            [design]\nvary = { \"workload.script\" = ['a.sql', 'b.sql'] }\n";
        check(varied, Some(&["a.sql", "b.sql"]));
        check("title = 'x'\n", None);
        check(
            "[workload.sysbench]\nscript = 'a.lua'\n[workload.pgbench]\nscript = 'b.sql'\n",
            Some(&["b.sql"]),
        );
    }
}
