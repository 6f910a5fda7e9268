//! sysbench's tests: shell sessions with expected output (cram). They expect servers of their time, so sysbench
//! itself fails some: a difference counts where Dyno differs from the test and sysbench does not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::setting::{Outcome, Setting, files, open, path, stand_in};
use crate::shell::output;

/// Intended differences: file, number of lines, reason.
const KNOWN: [(&str, usize, &str); 13] = [
    (
        "api_legacy_sql.t",
        8,
        "the warning of a deprecated option comes before the version, not after it",
    ),
    ("api_sql_mysql.t", 10, MISUSE),
    ("api_sql_pgsql.t", 75, MISUSE),
    (
        "cmdline.t",
        7,
        "help has names with underscores; functions of a script on standard input are called",
    ),
    ("drivers.t", 1, "one message says that there is no such driver, not two"),
    ("help_drv_mysql.t", 26, HELP),
    ("help_drv_pgsql.t", 11, HELP),
    ("opt_help.t", 108, HELP),
    ("opt_rate.t", 2, "clients wait for a schedule: there is no queue that could be full"),
    ("opt_version.t", 2, "the version is Dyno's as well"),
    ("test_fileio.t", 2, "`--validate` is refused"),
    ("test_memory.t", 34, "`--events` counts operations"),
    ("tests.t", 1, "scripts are built in, too"),
];
const HELP: &str = "help texts are Dyno's own";
const MISUSE: &str = "a run connects before the script does, so that it cannot catch an error in this; PostgreSQL's \
     connections can be replaced; what is done with closed results and connections has other messages";

/// Lines by file.
type Differences = BTreeMap<String, Vec<String>>;

pub(super) fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let files = files(setting, "tests/t", "t")?;
    let bin = stand_in(setting, "sysbench")?;
    let dyno = setting.dyno.as_path();
    let data = setting.folder.join("data");
    open(&setting.folder)?;
    let mariadb = Server::start(dyno, "mariadb", &data)?;
    let postgresql = Server::start(dyno, "postgresql", &data)?;
    let suite = Suite {
        setting,
        mariadb: mariadb.folder_and_port()?,
        postgresql: postgresql.folder_and_port()?,
    };
    let ours = suite.differences("dyno", &files, Some(&bin))?;
    let is_ours = |file: &&PathBuf| ours.contains_key(&name_of(file));
    let of_ours: Vec<PathBuf> = files.iter().filter(is_ours).cloned().collect();
    let theirs = suite.differences("sysbench", &of_ours, None)?;
    let own: Differences =
        ours.iter().map(|(file, lines)| (file.clone(), own(lines, theirs.get(file)))).collect();
    let n_same = own.values().filter(|lines| lines.is_empty()).count();
    let said = format!(
        "{} of {} files passed, {n_same} differ as they do with sysbench itself",
        files.len() - ours.len(),
        files.len()
    );
    Ok(Outcome { said, wrong: wrong(&own, &KNOWN) })
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Stopped on drop.
struct Server<'a> {
    dyno: &'a Path,
    name: String,
    url: String,
}

impl<'a> Server<'a> {
    fn start(dyno: &'a Path, product: &str, data: &Path) -> anyhow::Result<Server<'a>> {
        let name = format!("peers-{product}-{}", std::process::id());
        let mut command = Command::new(dyno);
        command.args(["up", product, "--name", &name, "--data-folder"]).arg(data);
        let printed = output(&mut command)?;
        let mut words = printed.split_whitespace();
        let url = words.find(|word| word.contains("://")).context("`dyno up` printed no URL")?;
        Ok(Server { dyno, name, url: url.to_owned() })
    }

    fn folder_and_port(&self) -> anyhow::Result<(String, String)> {
        let (place, options) = self.url.split_once('?').context("its URL has no socket")?;
        let socket = options.split_once('=').context("its URL has no socket")?.1;
        let host = place.rsplit('@').next().unwrap_or_default();
        let port = host.split(['/', '?']).next().unwrap_or_default().split_once(':');
        Ok((socket.to_owned(), port.map(|(_, port)| port.to_owned()).unwrap_or_default()))
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if let Err(error) = output(Command::new(self.dyno).args(["down", &self.name])) {
            crate::shell::say(&format!("{} was not removed: {error}", self.name));
        }
    }
}

/// The servers: MariaDB by socket, PostgreSQL by folder and port.
struct Suite<'a> {
    setting: &'a Setting,
    mariadb: (String, String),
    postgresql: (String, String),
}

impl Suite<'_> {
    /// Makes the tests' database anew.
    fn prepare(&self) -> anyhow::Result<()> {
        let (folder, port) = &self.postgresql;
        let socket = format!("--socket={}", self.mariadb.0);
        for sql in ["DROP DATABASE IF EXISTS sbtest", "CREATE DATABASE sbtest"] {
            let mut psql = Command::new("psql");
            psql.args(["-q", "-h", folder, "-p", port, "-U", "dyno", "-d", "dyno", "-c", sql]);
            crate::shell::succeed(&mut psql)?;
            crate::shell::succeed(Command::new("mysql").args(["-uroot", &socket, "-e", sql]))?;
        }
        Ok(())
    }

    /// With the `sysbench` of a folder, or the machine's.
    fn differences(
        &self,
        name: &str,
        files: &[PathBuf],
        bin: Option<&Path>,
    ) -> anyhow::Result<Differences> {
        if files.is_empty() {
            return Ok(Differences::new());
        }
        self.prepare()?;
        let tests = self.setting.source.join("tests");
        let scripts = self.setting.source.join("src/lua");
        let folders = [&scripts, &tests.join("include")].map(|folder| folder.display().to_string());
        let modules = folders.map(|folder| format!("{folder}/?;{folder}/?.lua")).join(";");
        let work = self.setting.folder.join(name);
        // Copies, as cram writes its output beside them.
        std::fs::create_dir(&work).context("cannot make a folder")?;
        crate::shell::succeed(Command::new("cp").args(files).arg(&work))?;
        let (folder, port) = &self.postgresql;
        let mut command = Command::new("cram");
        command.arg("--shell=/bin/bash").args(files.iter().filter_map(|file| file.file_name()));
        command.current_dir(&work).stdin(Stdio::null());
        command.env("PATH", path(bin.as_slice())?).env("LUA_PATH", modules);
        command.env("SBTEST_ROOTDIR", &tests).env("SBTEST_SCRIPTDIR", &scripts);
        command.env("SBTEST_SUITEDIR", tests.join("t")).env("SBTEST_INCDIR", tests.join("include"));
        command.env("SBTEST_VERSION", "1.0.20").env("SBTEST_VERSION_STRING", "sysbench 1.0.20");
        command.env("SBTEST_HAS_MYSQL", "yes").env("SBTEST_HAS_PGSQL", "yes");
        let mysql =
            format!("--mysql-socket={} --mysql-user=root --mysql-db=sbtest", self.mariadb.0);
        let pgsql = format!(
            "--pgsql-host={folder} --pgsql-port={port} --pgsql-user=dyno --pgsql-db=sbtest"
        );
        command.env("SBTEST_MYSQL_ARGS", mysql).env("SBTEST_PGSQL_ARGS", pgsql);
        // For the clients that tests call: MariaDB's reads its socket from a file, if the machine has one.
        let option = format!("[client]\nsocket={}\n", self.mariadb.0);
        std::fs::write(work.join(".my.cnf"), option).context("cannot write an option file")?;
        command.env("HOME", &work);
        command.env("PGHOST", folder).env("PGPORT", port).env("PGUSER", "dyno");
        let output =
            command.output().context("cram cannot be started (`pip install cram` installs it)")?;
        let text = String::from_utf8_lossy(&output.stdout);
        std::fs::write(self.setting.folder.join(format!("{name}.log")), &*text)
            .context("cannot write a log")?;
        let all = format!("# Ran {} tests, 0 skipped", files.len());
        if !text.contains(&all) {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("cram did not run {} files to their end: {text}{said}", files.len());
        }
        Ok(read(&text, &self.setting.folder))
    }
}

/// Lines that begin with a sign, masked.
fn read(log: &str, folder: &Path) -> Differences {
    let mut all = Differences::new();
    let mut file: Option<String> = None;
    for line in log.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            let name = name_of(Path::new(path.trim_end_matches(".err")));
            all.insert(name.clone(), Vec::new());
            file = Some(name);
        } else if line.starts_with("--- ") {
            file = None;
        } else if let Some(name) = &file
            && line.starts_with(['+', '-'])
        {
            let line = masked(&line.replace(&folder.display().to_string(), "FOLDER"));
            all.entry(name.clone()).or_default().push(line);
        }
    }
    all
}

/// Masks each number, cram's folder and the program's version with `#`.
fn masked(line: &str) -> String {
    let mut line = line.to_owned();
    for (start, end) in [("/tmp/cramtests-", "/"), ("sysbench 1.0.20 (", ")")] {
        if let Some(at) = line.find(start) {
            let at = at + start.len();
            let length = line[at..].find(end).unwrap_or(line.len() - at);
            line.replace_range(at..at + length, "#");
        }
    }
    let mut masked = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if masked.ends_with('#') => {}
            // Padding of numbers.
            ' ' if masked.ends_with(' ') => {}
            '0'..='9' => masked.push('#'),
            c => masked.push(c),
        }
    }
    masked
}

fn own(lines: &[String], theirs: Option<&Vec<String>>) -> Vec<String> {
    let mut theirs = theirs.cloned().unwrap_or_default();
    let is_own = |line: &&String| match theirs.iter().position(|other| other == *line) {
        Some(at) => {
            theirs.swap_remove(at);
            false
        }
        None => true,
    };
    lines.iter().filter(is_own).cloned().collect()
}

/// Files whose number of differing lines is not the known one.
fn wrong(own: &Differences, known: &[(&str, usize, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, lines) in own {
        let entry = known.iter().find(|(name, _, _)| name == file);
        let expected = entry.map_or(0, |(_, n, _)| *n);
        if lines.len() != expected {
            let shown = lines.join("\n    ");
            wrong.push(format!(
                "{file}: {} lines differ, not {expected}:\n    {shown}",
                lines.len()
            ));
        }
    }
    let gone = known.iter().filter(|(name, _, _)| !own.contains_key(*name));
    wrong.extend(gone.map(|(name, n, _)| format!("{name}: no line differs, not {n}")));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_sysbench_does_not_print_count() {
        let log = "--- /f/a.t\n+++ /f/a.t.err\n@@ -1,2 +1,2 @@\n   $ sysbench\n-  sysbench 1.0.20 (Dyno)\n\
                   +  [ 2s ] 10.5 /tmp/cramtests-a1/x.lua\n--- /f/b.t\n+++ /f/b.t.err\n-  gone\n+  /f/new\n\
                   # Ran 2 tests, 0 skipped, 2 failed.\n";
        let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
        let first = lines(&["- sysbench #.#.# (#)", "+ [ #s ] #.# /tmp/cramtests-#/x.lua"]);
        let second = lines(&["- gone", "+ FOLDER/new"]);
        let expected = [("a.t".to_owned(), first.clone()), ("b.t".to_owned(), second)];
        assert_eq!(read(log, Path::new("/f")), Differences::from(expected));
        assert_eq!(own(&first, Some(&first)), lines(&[]));
        assert_eq!(own(&first, None), first);
        // Each line of the other counts once.
        let twice = [&first[..], &first[..1]].concat();
        assert_eq!(own(&twice, Some(&first)), first[..1]);
    }

    #[test]
    fn another_number_of_lines_than_is_known_is_wrong() {
        let check = |own: &[(&str, usize)], n_wrong: usize| {
            let own = own.iter().map(|(file, n)| ((*file).to_owned(), vec!["+".to_owned(); *n]));
            let known = [("a.t", 2, "its help is another")];
            assert_eq!(wrong(&own.collect(), &known).len(), n_wrong);
        };
        check(&[("a.t", 2)], 0);
        check(&[("a.t", 2), ("b.t", 0)], 0);
        check(&[("a.t", 3)], 1);
        check(&[("a.t", 2), ("b.t", 1)], 1);
        check(&[], 1);
    }
}
