//! Files that a study or a command line names: scripts, their modules, and lists of values. Those of a study are read
//! before it, so that later stages work on texts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[cfg(feature = "lua")]
use dyno_sysbench::Module;
use dyno_units::planted_on_way;
use dyno_workload::catalog::Catalog;
use dyno_workload::declared;
use dyno_workload::pgbench::{self, ScriptText};
use sha2::{Digest, Sha256};
use toml::Value;
use toml::de::{DeTable, DeValue};

/// In bytes.
const FILE_MOST: u64 = 64 << 20;

/// Most bytes of all files that a study names: their texts are kept.
const FILES_MOST: u64 = 512 << 20;

/// Their names and digests are kept.
#[cfg(feature = "lua")]
const MODULES_MOST: usize = 1000;

/// Most bytes of all places where modules are looked for.
#[cfg(feature = "lua")]
const PLACES_MOST: usize = 64 << 10;

/// The built-in workloads, and scripts that the study names relative to its folder. Errors of the
/// study are left to its parser. Fails if a script cannot be read.
pub(crate) fn catalog(study: &str, folder: &Path) -> anyhow::Result<Catalog> {
    let mut catalog = Catalog::built_in();
    let Some(study) = table_of(study) else {
        // So that only the broken TOML is reported.
        catalog.add(declared::spec(BTreeMap::new()));
        return Ok(catalog);
    };
    let mut left = FILES_MOST;
    if let Some(files) = named(&study, pgbench::NAME) {
        let is_built_in =
            |file: &String| dyno_pgbench::BUILT_IN.iter().any(|script| script.name == file);
        let mut texts = BTreeMap::new();
        for file in files.into_iter().filter(|file| !is_built_in(file)) {
            let (text, digest) = read((folder, &file), "script", &mut left)?;
            texts.insert(file, ScriptText { text, digest });
        }
        catalog.add(pgbench::spec(texts));
    }
    #[cfg(feature = "lua")]
    if let Some(files) = named(&study, dyno_workload::lua::NAME) {
        catalog.add(of_sysbench(files, folder, &mut left)?);
    }
    if let Some(files) = declared_files(&study) {
        let mut texts = BTreeMap::new();
        for file in files {
            let (text, _) = read((folder, &file), "list of values", &mut left)?;
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
    let Some(study) = table_of(study) else { return Ok(BTreeMap::new()) };
    let mut names = named(&study, pgbench::NAME).unwrap_or_default();
    names.retain(|name| dyno_pgbench::BUILT_IN.iter().all(|script| script.name != name));
    #[cfg(feature = "lua")]
    {
        let lua = named(&study, dyno_workload::lua::NAME).unwrap_or_default();
        names.extend(lua.into_iter().filter(|name| dyno_sysbench::built_in(name).is_none()));
    }
    names.extend(declared_files(&study).unwrap_or_default());
    let (mut texts, mut left) = (BTreeMap::new(), FILES_MOST);
    for name in names {
        let parts = Path::new(&name).components();
        if !parts.clone().all(|part| matches!(part, std::path::Component::Normal(_))) {
            return Err(crate::usage_error(anyhow::anyhow!(
                "the file {name} is not in the folder of the study: only files there go to the \
                 hosts of `trials_on`"
            )));
        }
        let (text, _) = read((folder, &name), "file", &mut left)?;
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

/// A study as TOML, whatever its numbers are: no file is named by one, and the study's parser says which are too large.
fn table_of(study: &str) -> Option<toml::Table> {
    fn value(of: &DeValue<'_>) -> Value {
        match of {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Array(items) => {
                Value::Array(items.iter().map(|item| value(item.get_ref())).collect())
            }
            DeValue::Table(entries) => Value::Table(table(entries)),
            _ => Value::Boolean(false),
        }
    }
    fn table(of: &DeTable<'_>) -> toml::Table {
        of.iter().map(|(key, of)| (key.get_ref().to_string(), value(of.get_ref()))).collect()
    }
    DeTable::parse(study).ok().map(|parsed| table(parsed.get_ref()))
}

/// Files with values for generators; none if no workload is declared.
fn declared_files(study: &toml::Table) -> Option<BTreeSet<String>> {
    let tables = study.get("workload")?.as_table()?;
    let is_declared = |table: &&Value| {
        table.get("transaction").is_some()
            || table.get("workload").and_then(Value::as_str) == Some(declared::NAME)
    };
    let mut files = BTreeSet::new();
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

/// A file that a study names relative to its folder, and its digest. Of the bytes that are left for such files, it takes its own.
fn read(
    (folder, name): (&Path, &str),
    what: &str,
    left: &mut u64,
) -> anyhow::Result<(String, String)> {
    let path = folder.join(name);
    let text = contents(&path).map_err(|why| {
        crate::usage_error(anyhow::anyhow!("cannot read the {what} {}: {why}", path.display()))
    })?;
    *left = left.checked_sub(text.len() as u64).ok_or_else(|| {
        crate::usage_error(anyhow::anyhow!(
            "the files that this study names, {} the last one, are together larger than {} MiB",
            path.display(),
            FILES_MOST >> 20
        ))
    })?;
    let digest = digest(&text);
    Ok((text, digest))
}

fn contents(path: &Path) -> Result<String, String> {
    String::from_utf8(bytes(path)?).map_err(|_| "it is not UTF-8".to_owned())
}

/// Of whatever a study or a script names: its script, modules, lists, and what it runs.
fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    dyno_units::read_unplanted(path, FILE_MOST).map_err(|error| error.to_string())
}

/// Whether something is there that counts where somebody looks for it: nothing that another user has put where
/// everybody may, such as the socket of a server, or a script, in /tmp.
pub(crate) fn is_there(path: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    path.exists() && planted_on_way(path, me).is_ok_and(|found| found.is_none())
}

#[cfg(feature = "lua")]
pub(crate) fn module(path: &Path) -> Result<Module, String> {
    bytes(path).map(|bytes| module_of(path, &bytes))
}

/// A script that the command line names by its path, which may be another user's.
#[cfg(feature = "lua")]
pub(crate) fn named_by_user(path: &Path) -> Result<Module, String> {
    let bytes = dyno_units::read_named(path, FILE_MOST).map_err(|error| error.to_string())?;
    Ok(module_of(path, &bytes))
}

/// Bytes that are not UTF-8 are replaced.
#[cfg(feature = "lua")]
fn module_of(path: &Path, bytes: &[u8]) -> Module {
    let text = String::from_utf8_lossy(bytes).into_owned();
    Module { path: path.display().to_string(), text }
}

/// Looks for a module: beside the script, in the places of `path`, and among those that are built in. One that another
/// user has put where everybody may is none: it would run as part of the script.
#[cfg(feature = "lua")]
pub(crate) fn find_module(name: &str, path: &str, folder: Option<&Path>) -> Result<Module, String> {
    use std::path::PathBuf;
    /// Most bytes of the path of a module.
    const PLACE_MOST: usize = 4096;
    let built_in = || {
        let text = dyno_sysbench::built_in_module(name)?.to_owned();
        Some(Module { path: name.to_owned(), text })
    };
    let length = |place: &str| place.len() + place.matches('?').count() * name.len();
    if path.len() > PLACES_MOST || path.split(';').any(|place| length(place) > PLACE_MOST) {
        return Err("\n\tpackage.path or a place in it is too long".to_owned());
    }
    let file = name.replace('.', "/");
    let beside = folder.iter().map(|folder| folder.join(format!("{file}.lua")));
    let named = path.split(';').filter(|one| !one.is_empty());
    let named = named.map(|one| PathBuf::from(one.replace('?', &file)));
    let places: Vec<PathBuf> = beside.chain(named).collect();
    if folder.is_none()
        && let Some(module) = built_in()
    {
        return Ok(module);
    }
    let found = places.iter().find_map(|place| module(place).ok());
    let no_file = |place: &PathBuf| format!("\n\tno file '{}'", place.display());
    found.or_else(built_in).ok_or_else(|| places.iter().map(no_file).collect())
}

/// Waits for so many microseconds, in pieces, so that it is noticed when scripts are to end.
#[cfg(feature = "lua")]
pub(crate) fn sleep(us: f64, are_to_end: &dyn Fn() -> bool) {
    const PIECE_US: f64 = 100_000.0;
    let mut left = us;
    while left > 0.0 && !are_to_end() {
        std::thread::sleep(std::time::Duration::from_micros(left.min(PIECE_US) as u64));
        left -= PIECE_US;
    }
}

pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(feature = "lua")]
fn of_sysbench(
    files: BTreeSet<String>,
    folder: &Path,
    left: &mut u64,
) -> anyhow::Result<dyno_workload::catalog::WorkloadSpec> {
    use dyno_workload::lua;
    use std::sync::Arc;
    let mut scripts = BTreeMap::new();
    for file in files {
        if dyno_sysbench::built_in(&file).is_some() {
            continue;
        }
        let path = folder.join(&file);
        let (text, own) = read((folder, &file), "script", left)?;
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
        let modules = dyno_units::locked(&self.modules);
        modules.iter().map(|(name, digest)| format!("\n{name} {digest}")).collect()
    }

    /// Up to the limit, and the same text each time: the record has the digest of the first one.
    fn noted(&self, name: &str, module: Module) -> Result<Module, String> {
        let mut modules = dyno_units::locked(&self.modules);
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

    fn module(&self, name: &str, path: &str) -> Result<Module, String> {
        self.noted(name, find_module(name, path, self.folder.as_deref())?)
    }

    fn file(&self, path: &str) -> Result<Module, String> {
        let folder = self.folder.clone().unwrap_or_default();
        let found = folder.join(path);
        let text = contents(&found)?;
        self.noted(path, Module { path: found.display().to_string(), text })
    }

    fn may_open(&self, path: &Path) -> std::io::Result<()> {
        dyno_units::open_unplanted(path).map(drop)
    }

    fn package_path(&self) -> String {
        "/usr/share/sysbench/?.lua".to_owned()
    }

    fn sleep(&self, us: f64) {
        sleep(us, &crate::signals::have_come);
    }

    fn execute(&self, _: Option<&str>) -> i32 {
        // Not for scripts of studies.
        -1
    }

    fn is_stopped(&self) -> bool {
        crate::signals::have_come()
    }
}

/// Also of factors' levels, each once; none if no table is of this workload.
fn named(study: &toml::Table, workload: &str) -> Option<BTreeSet<String>> {
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
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[track_caller]
    fn check(study: &str, expected: Option<&[&str]>) {
        let found = named(&table_of(study).expect("it is TOML"), pgbench::NAME);
        let found: Option<Vec<&str>> =
            found.as_ref().map(|names| names.iter().map(String::as_str).collect());
        assert_eq!(found.as_deref(), expected, "{study}");
    }

    #[test]
    fn large_numbers_hide_no_file() {
        check(
            "[workload.pgbench]\nscript = 'a.sql'\n[design]\nseed = 9223372036854775808",
            Some(&["a.sql"]),
        );
    }

    #[test]
    fn what_has_no_end_is_not_read() {
        let check = |path: &Path, expected: &str| {
            let path = path.to_str().expect("it is text");
            let mut left = FILES_MOST;
            let read = read((Path::new(""), path), "script", &mut left);
            let why = read.expect_err(expected).to_string();
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
        check(Path::new("/proc/self/environ"), "it is a file of the kernel, which may have no end");
    }

    #[test]
    fn files_of_a_study_are_bounded_together() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.sql"), "SELECT").unwrap();
        let mut left = 10;
        let mut read = || read((folder.path(), "a.sql"), "script", &mut left);
        assert_eq!(read().unwrap().0, "SELECT");
        let why = read().unwrap_err().to_string();
        assert!(why.ends_with("/a.sql the last one, are together larger than 512 MiB"), "{why}");
    }

    #[test]
    fn what_another_user_has_put_there_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        let path = folder.path().join("mysql.sock");
        assert!(!is_there(&path));
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(is_there(&path));
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(54_321), None).unwrap();
            assert!(!is_there(&path));
        }
    }

    #[cfg(feature = "lua")]
    #[test]
    fn a_module_of_another_user_in_a_shared_folder_is_not_found() {
        let shared = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o1777)).expect("set");
        let file = shared.path().join("oltp_common.lua");
        std::fs::write(&file, "-- mine").expect("written");
        let in_path = format!("{}/?.lua", shared.path().display());
        let find = || {
            let beside = find_module("oltp_common", "", Some(shared.path()));
            let in_path = find_module("oltp_common", &in_path, Some(Path::new("/")));
            [beside, in_path].map(|found| found.expect("it is built in").path)
        };
        assert_eq!(find(), [file.to_str(); 2].map(|path| path.expect("it is text")));
        if rustix::process::geteuid().is_root() {
            chown(&file, Some(54_321), None).expect("given away");
            assert_eq!(find(), ["oltp_common"; 2]);
        }
    }

    /// Each way by which a study or a script names a file, with what it says to one of another user in a shared folder.
    #[test]
    fn a_file_of_another_user_in_a_shared_folder_is_not_read() {
        let shared = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o1777)).expect("set");
        let check = |name: &str, study: &str| {
            let path = shared.path().join(name);
            std::fs::write(&path, "function event() end").expect("written");
            let found = [catalog(study, shared.path()).err(), files(study, shared.path()).err()];
            assert!(found.iter().all(Option::is_none), "{study}: {found:?}");
            if rustix::process::geteuid().is_root() {
                chown(&path, Some(54_321), None).expect("given away");
                let found =
                    [catalog(study, shared.path()).err(), files(study, shared.path()).err()];
                for why in found.map(|why| why.expect(study).to_string()) {
                    assert!(why.contains("belongs to user 54321 and lies in a folder"), "{why}");
                }
            }
        };
        check("a.sql", "[workload.pgbench]\nscript = 'a.sql'\n");
        check("a.txt", "[[workload.x.transaction]]\nvalues = { a = { lines = 'a.txt' } }\n");
        #[cfg(feature = "lua")]
        {
            check("a.lua", "[workload.sysbench]\nscript = 'a.lua'\n");
            let host = StudyHost { folder: Some(shared.path().to_owned()), ..StudyHost::default() };
            use dyno_sysbench::Host as _;
            let of_script = |name: &str| {
                let path = shared.path().join(name);
                let is_module = host.module(name.trim_end_matches(".lua"), "").is_ok();
                [host.file(name).is_ok(), is_module, host.may_open(&path).is_ok()]
            };
            std::fs::write(shared.path().join("mine.lua"), "").expect("written");
            assert_eq!(of_script("mine.lua"), [true; 3]);
            if rustix::process::geteuid().is_root() {
                assert_eq!(of_script("a.lua"), [false; 3]);
            }
        }
    }

    #[cfg(feature = "lua")]
    #[test]
    fn scripts_of_a_study_open_only_files_that_have_an_end() {
        use dyno_sysbench::Host as _;
        let host = StudyHost::default();
        let check = |path: &str, expected: Result<(), &str>| {
            let found = host.may_open(Path::new(path)).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{path}");
        };
        let not_regular = Err("it is not a regular file");
        check(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), Ok(()));
        check("/nowhere/at/all", Err("No such file or directory (os error 2)"));
        check("/dev/zero", not_regular);
        check("/", not_regular);
        check("/proc/self/environ", Err("it is a file of the kernel, which may have no end"));
    }

    #[cfg(feature = "lua")]
    #[test]
    fn a_script_that_sleeps_for_ever_is_ended() {
        let n_looks = std::cell::Cell::new(0);
        sleep(f64::INFINITY, &|| n_looks.replace(n_looks.get() + 1) == 2);
        assert_eq!(n_looks.get(), 3);
        sleep(f64::NAN, &|| false);
    }

    #[cfg(feature = "lua")]
    #[test]
    fn modules_are_looked_for_in_bounded_files_and_places() {
        let why = |name: &str, path: &str| find_module(name, path, None).expect_err(path);
        assert_eq!(why("zero", "/dev/?"), "\n\tno file '/dev/zero'");
        let too_long = "\n\tpackage.path or a place in it is too long";
        assert_eq!(why(&"a".repeat(100), &"?".repeat(100)), too_long);
        assert_eq!(why("a", &"?;".repeat(PLACES_MOST)), too_long);
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
            let mut left = FILES_MOST;
            let spec = of_sysbench(files, folder.path(), &mut left).unwrap();
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
